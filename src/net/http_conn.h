/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside net/ only: a server's connection, shared by http_server.c (life and reading),
 * http_share.c (who they are counted for), http_body.c (bodies), http_answer.c (writing), http_file.c (answers from
 * files) and ws.c (what an upgrade makes of it). The states and invariants are described at the top of http_server.c.
 */
#ifndef NET_HTTP_CONN_H
#define NET_HTTP_CONN_H

#include "base/clock.h"
#include "net/http_budget.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/pace.h"

struct http_stream_ops;

enum conn_state {
    CONN_IDLE,
    CONN_HEAD,
    CONN_BODY,
    CONN_HANDLING,
    CONN_TAKING, /* the handler takes the body as it comes */
    CONN_FLUSHING,
    CONN_STREAM,
    CONN_LINGER,
    CONN_CLOSED, /* unlinked; freed at the end of this turn */
};

/* One deadline list for each span of time. */
enum span {
    SPAN_HEAD,
    SPAN_BODY,
    SPAN_IDLE,
    SPAN_STALL,
    SPAN_LINGER,
    SPAN_QUIET,
    SPAN_CLOSE,
    SPAN_COUNT
};

/* Connections that wait for a request, the one that has waited longest first. */
struct idle_list {
    struct http_conn *first, *last;
};

struct http_server {
    struct loop *loop;
    struct http_server_options options;
    struct deadlines deadlines[SPAN_COUNT];
    struct http_conn *conns;
    size_t conn_count;
    struct shares by_address, by_user; /* connections: of strangers, and of users */
    struct idle_list idle_strangers, idle_users;
    msec stall_ms;
    msec room_idle_ms;      /* HTTP_ROOM_IDLE_MS_MIN, but for tests */
    struct http_conn *dead; /* closed in this turn */
    struct loop_defer reap;
    struct buf spare; /* the answer buffer of whoever writes now */
    uint64_t requests;
    char id_prefix[9];
    char date[HTTP_DATE_BYTES];
    msec date_at; /* when `date` was made, in whole seconds of the loop's clock */
    bool stopping;
    struct timer *stop_timer;
    void (*on_stopped)(void *arg);
    void *on_stopped_arg;
};

struct http_conn {
    struct http_server *server;
    struct sock *sock;
    struct http_conn *prev, *next;
    struct deadline deadline;
    enum conn_state state;
    bool processing; /* conn_process is on the stack */
    bool writing;    /* the socket has `sending` */
    bool keep_alive; /* after the answer under way */
    bool peer_ended; /* half-closed: answer what is here, then close */
    bool head_only;  /* the request was HEAD */
    bool framed;     /* the stream needs chunk framing */
    struct http1 parser;
    struct request *request; /* being read or handled */
    struct buf out, sending;
    str tail;                  /* static bytes behind `out` */
    struct buf ahead;          /* pipelined bytes that have to wait */
    size_t pending;            /* unwritten bytes when last looked at */
    struct pace pace;          /* at which they go */
    struct http_charge unsent; /* for bytes that wait for the reader */
    struct loop_defer resume;
    struct loop_defer turn; /* the stream's on_turn */
    msec began;             /* the lingering */

    /* Who it is counted for (http_share.c). */
    struct http_account
        account; /* the name is its own; no name: nobody, a proxy between requests */
    bool counted;
    bool proxy; /* a proxy of ours is at its other end */
    bool idle;  /* in one of the two lists, since: */
    msec idle_at;
    struct http_conn *idle_prev, *idle_next;
    const struct http_stream_ops *stream;
    void *stream_arg;
};

/* A request and what only these files need of it. */
struct request {
    struct http_request public;
    struct buf body;
    struct loop *loop;
    struct pace pace;          /* at which the body comes */
    struct http_charge charge; /* for it */

    /* A streamed body. */
    bool open;   /* its end has not been read: the connection ends with the answer */
    bool paused; /* by the handler */
    msec paused_at;
    const struct http_body_ops *ops; /* NULL: not taken */
    void *ops_arg;
    enum err broke; /* why no more will come; told by: */
    struct loop_defer tell;
};

/* http_server.c */
void conn_wait(struct http_conn *conn, enum span span);
void conn_wait_not(struct http_conn *conn);    /* its state has no limit */
bool conn_reads(const struct http_conn *conn); /* is part of a request being read? */
void conn_process(struct http_conn *conn, str input);
void conn_close(struct http_conn *conn);
void conn_cut(struct http_conn *conn); /* with a reset */
void conn_linger(struct http_conn *conn);
void conn_resume(struct http_conn *conn);
void request_free(struct request *request);

/* http_share.c */
bool conn_admit(struct http_server *server, struct sock *sock, struct http_conn *conn);
enum err conn_count_for(struct http_conn *conn, const struct http_account *account,
                        struct fault *reterr);
void conn_uncount(struct http_conn *conn);
void conn_idle(struct http_conn *conn);               /* it waits for the next request */
void conn_idle_over(struct http_conn *conn);          /* one is there, or none will come */
void conn_hold(struct http_conn *conn, size_t bytes); /* they wait for its reader */

/* http_body.c */
bool conn_body_slow(struct http_conn *conn); /* counts the piece at hand */
enum err conn_body_charge(struct http_conn *conn, struct fault *reterr);
bool conn_body_room(struct http_conn *conn); /* for the piece at hand? */
void conn_continue(struct http_conn *conn);  /* tell a client that waits to send its body */
void conn_body_piece(struct http_conn *conn);
void conn_body_end(struct http_conn *conn);
void conn_body_break(struct http_conn *conn, enum err e);
void body_break(struct request *request, enum err e);
void body_tell(struct request *request);

/* http_answer.c */
struct http_conn *conn_of(struct http_request *request);
void conn_answer_head(struct http_conn *conn, const struct http_answer *answer, uint64_t len);
bool conn_answer_has_body(const struct http_conn *conn, int status);
void conn_answered(struct http_conn *conn, int status);
void conn_stream(struct http_conn *conn, int status, const struct http_stream_ops *ops, void *arg);
void conn_flush(struct http_conn *conn);
void conn_refuse(struct http_conn *conn, enum err e, const struct fault *why, bool close);
void conn_return_buf(struct http_server *server, struct buf *b);
void conn_borrow_out(struct http_conn *conn);
void conn_on_writable(void *conn, bool failed);

#endif
