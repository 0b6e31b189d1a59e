/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/1.1 server: connections, time-outs and answers around the parser in http1.h.
 *
 * One request of a connection is answered at a time. When its head is complete, on_head says how
 * large the body may be or refuses; when the body is there, on_request gets the request and owes it
 * exactly one answer: http_answer, http_answer_error or http_answer_file at once or later, or
 * http_stream. A handler that asked for a streamed body gets the request before it, and takes the
 * body piece by piece. The request outlives its connection: answering one whose client has gone is
 * fine and does nothing. All on the loop thread.
 *
 * An idle connection costs one small object: no buffer, no timer of its own.
 */
#ifndef NET_HTTP_SERVER_H
#define NET_HTTP_SERVER_H

#include <stdatomic.h>

#include "base/arena.h"
#include "net/http1.h"

struct loop;
struct sock;
struct http_server;
struct http_conn;

struct http_answer;

/* Who a request is counted for, in what all clients share: memory and connections. */
struct http_account {
    str name;   /* of a user; else of an address, as ip_share (net/ip.h) has it */
    bool known; /* has shown who it is */
    bool alone; /* there are no other users: everything that is theirs is for this one */
};

struct http_request {
    const struct http_head *head; /* for on_head and on_request only, then NULL: copy what is needed
                                   * later (http_head_copy) */
    const char *peer;             /* address of the socket's other end; likewise */
    bool peer_loopback;
    str body;           /* whole, until the request is answered */
    struct arena arena; /* likewise */
    bool body_ignored;  /* set by on_head: a body is read and thrown away */
    bool body_streamed; /* set by on_head: on_request comes before the body, which waits for
                         * http_body_take; `body` stays empty */
    struct http_account account;     /* set by on_head, in the arena */
    char id[32];                     /* X-Request-Id of the answer */
    const struct http_field *fields; /* set by the handler: part of every answer to this request */
    size_t field_count;
    void *user;        /* the handler's own */
    atomic_bool *gone; /* set by the handler, or NULL: becomes true when the client leaves; lives as
                          long as the request */
    struct http_conn *conn; /* private; NULL once the client has gone */
};

struct http_answer {
    int status;
    const char *content_type; /* NULL when there is no body */
    const struct http_field *fields;
    size_t field_count;
    str body;         /* needed only during the call, unless: */
    bool body_static; /* the body lives as long as the process, so it is never copied */
    bool close;       /* end the connection after it */
    /* Of http_answer_file: the file is closed, sent or not. May be NULL; also from inside it, and from
     * loop_free. */
    void (*on_closed)(void *arg);
    void *closed_arg;
};

struct http_handler {
    /* The head is complete. Set *ret_body_max, or refuse: the answer is then sent by the server,
     * after which it closes if a body was coming. fault->field may name a header. */
    enum err (*on_head)(void *ctx, struct http_request *request, uint64_t *ret_body_max,
                        struct fault *reterr);
    void (*on_request)(void *ctx, struct http_request *request);
    /* An answer's head went out; for the log and the counters. request is NULL when the head was
     * refused. */
    void (*on_answered)(void *ctx, const struct http_request *request, int status);
    /* Does a proxy of ours call from this address? Its connections are nobody's but while a request
     * is under way. May be NULL: there are none. */
    bool (*is_proxy)(void *ctx, const char *peer);
};

/* What clients of one server or several may make us hold (http_budget.h). */
struct http_budget;
struct http_budget *http_budget_new(void);
void http_budget_unref(struct http_budget *budget); /* its servers keep it; NULL is fine */

struct http_server_options {
    const struct http_handler *handler;
    void *ctx;
    const char *
        common_fields; /* "Name: value\r\n"... added to every answer; lives as long as the server */
    uint32_t connections_max;
    /* Of them, for an address without a key, and for a user; 0: all. With the first one set, idle
     * connections give way to new ones when there is no room. */
    uint32_t connections_address_max, connections_user_max;
    struct http_budget *budget;                    /* NULL: no bound but those of each request */
    msec head_ms, body_idle_ms, idle_ms, stall_ms; /* 0 = the default of base/limits.h */
    msec quiet_ms; /* a stream that is silent for so long sends a comment, or a ping; likewise */
    msec pong_ms;  /* a socket that answers no ping for so long is cut; likewise */
};

struct http_server *http_server_new(struct loop *loop, const struct http_server_options *options);

/* Give it a freshly accepted connection; for listener_tcp and listener_unix (arg = the server). */
void http_server_accept(void *server, struct sock *sock);

/* Stop: idle connections close now, streams end, requests under way get their answer and
 * SHUTDOWN_MS_MAX; then on_stopped is called and the server may be freed. */
void http_server_stop(struct http_server *server, void (*on_stopped)(void *arg), void *arg);
void http_server_free(struct http_server *server);

size_t http_server_connections(const struct http_server *server);

/* Answer. The request is gone after this. */
void http_answer(struct http_request *request, const struct http_answer *answer);

/* Answer with the problem document of e (RFC 9457). fault may be NULL. */
void http_answer_error(struct http_request *request, enum err e, const struct fault *fault);
void http_answer_error_with(struct http_request *request, enum err e, const struct fault *fault,
                            const struct http_field *fields, size_t field_count);

/* Take the body of a request with body_streamed, once, before it is answered. An answer that comes
 * without it, or before its end, closes the connection behind it. A client that asked for it is
 * told here to go on (100 Continue). No callback runs inside these functions or an answer, and none
 * comes after the answer. */
struct http_body_ops {
    void (*on_piece)(void *arg, str bytes); /* borrowed until it returns; never empty */
    /* Once. OK: that was all. Otherwise there will be no more: ERR_TOO_LARGE, ERR_BAD_REQUEST
     * (framing), ERR_HEAD_TOO_LARGE (trailers), ERR_TIMEOUT, ERR_NETWORK (the client has gone),
     * ERR_SHUTTING_DOWN. The request is still to be answered, in any case; here, or later. */
    void (*on_end)(void *arg, enum err e);
};
void http_body_take(struct http_request *request, const struct http_body_ops *ops, void *arg);
/* Neither a piece nor the end of the body comes between these two, and the client's time-out does
 * not run; a stop of the server still ends it. They do not count. From anywhere, also from
 * on_piece; a pause before http_body_take holds it back. The socket is not read meanwhile: a client
 * that leaves is noticed after the resume, or when it is answered. */
void http_body_pause(struct http_request *request);
void http_body_resume(struct http_request *request);

/* Answer with `len` bytes of a file from `from` on, read piece by piece as the client takes them.
 * The descriptor is closed by the server in any case. answer->body is not used. A file that cannot
 * be read to the end cuts the connection. */
void http_answer_file(struct http_request *request, const struct http_answer *answer, int fd,
                      uint64_t from, uint64_t len);

/* Is there such a field in the answer already, by request->fields? */
bool http_has_field(const struct http_request *request, str name);

/* Has the client gone? Then work for it may stop. */
bool http_gone(const struct http_request *request);

#endif
