/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the MCP client share: the server as mcp.c keeps it, its session
 * (mcp_session.c), and the calls to it (mcp_call.c). Inside this folder and for its tests.
 */
#ifndef MCP_CLIENT_MCP_INT_H
#define MCP_CLIENT_MCP_INT_H

#include "base/buf.h"
#include "mcp/client/mcp.h"
#include "mcp/client/mcp_link.h"
#include "mcp/client/mcp_rpc.h"
#include "mcp/client/mcp_tools.h"
#include "net/loop.h"

/* Spans of time; those of limits.h unless a test says otherwise. */
struct mcp_pace {
    msec probe_ms, start_ms, rest_ms, rest_ms_max, steady_ms, relist_ms, wait_ms, call_ms;
};

/* The way to a server: by its command or its URL. */
struct mcp_link *mcp_open(const struct mcp_options *options, const struct mcp_link_events *events,
                          void *arg);

/* What tests replace. */
struct mcp_ways {
    struct mcp_pace pace;
    struct mcp_link *(*open)(const struct mcp_options *options,
                             const struct mcp_link_events *events, void *arg);
};

enum mcp_state {
    SESSION_RESTING,  /* gone; the timer brings it back */
    SESSION_OPENING,  /* the link is on its way */
    SESSION_PROBING,  /* server/discover was sent */
    SESSION_GREETING, /* initialize was sent */
    SESSION_LISTING,  /* its first list of tools is on its way */
    SESSION_UP,
    SESSION_CLOSING, /* being stopped */
    SESSION_CLOSED,
};

enum mcp_era { ERA_UNKNOWN, ERA_MODERN, ERA_LEGACY };

/* A list of definitions that was offered. */
struct mcp_list {
    struct mcp_list *next;
    unsigned char hash[HASH_BYTES];
    struct tools tools;
};

/* Definitions as they come in, page by page. */
struct mcp_gathering {
    struct arena arena;
    str *texts; /* MCP_TOOLS_MAX of them */
    size_t count, bytes, pages;
    str cursor; /* of the next page; p NULL: the first */
    uint64_t request;
};

struct mcp_session {
    enum mcp_state state;
    enum mcp_era era;                   /* what it was known as when it was last reached */
    bool modern;                        /* of this session */
    char version[16];                   /* of an older one: what initialize agreed on */
    char id[MCP_SESSION_BYTES_MAX + 1]; /* Mcp-Session-Id; "": none */
    struct mcp_link *link;
    bool opened;                   /* on_open has come */
    bool told;                     /* on_state knows of it */
    uint64_t number;               /* of the newest request */
    uint64_t probe, greet, listen; /* their requests; 0: none is open */
    bool offers_tools, tells_changes;
    struct timer *timer;      /* of the state: an answer that does not come, or a rest */
    struct timer *list_timer; /* the next list, not too soon */
    bool stale;               /* the list may be another by now */
    msec rest_ms, listen_ms, began_at, up_at, listed_at;
    struct fault why; /* text "": it is there */
};

struct mcp_read; /* a long message that is read beside the loop */

struct mcp_server {
    struct mcp_options options; /* its texts in `arena` */
    struct arena arena;
    struct mcp_ways ways;
    struct mcp_session session;
    struct mcp_gathering gathering;
    bool stopping;
    void (*on_stopped)(void *arg);
    void *stopped_arg;
    struct loop_defer stopped; /* tells it */

    struct arena kept;             /* lists and their rows */
    struct mcp_list *lists, *list; /* all of them; the one that is offered */
    size_t list_count;

    struct tool_call *calls; /* newest first */
    size_t call_count;
    struct mcp_read *reads;
    size_t read_count;

    msec note_second; /* notes are counted in it */
    unsigned notes;
};

/* ---- mcp.c ---- */

/* As mcp_server_new does, by other ways. */
enum err mcp_server_make(const struct mcp_options *options, const struct mcp_ways *ways,
                         struct mcp_server **ret_server, struct fault *reterr) MUST_USE;

void mcp_note(struct mcp_server *server, const char *what, str text);

/* Stars for configured secrets, in place. */
void mcp_hide(const struct mcp_server *server, char *text, size_t len);

/* Offer what was gathered, unless it is what is offered already. */
void mcp_offer(struct mcp_server *server, const str *definitions, size_t count);

/* ---- mcp_session.c ---- */

void mcp_session_init(struct mcp_server *server);
void mcp_session_done(struct mcp_server *server);
void mcp_session_begin(struct mcp_server *server); /* now; fine if it is on its way */
void mcp_session_close(struct mcp_server *server); /* for good */

/* The server does not know us any more, or is not there: begin again. */
void mcp_session_lost(struct mcp_server *server, const struct fault *why);

/* A request of the session itself, without params but for `cursor`; its number. */
uint64_t mcp_session_ask(struct mcp_server *server, const char *method, str cursor);
/* An error was answered where that ends the session; `what` did it refuse. */
void mcp_session_refused(struct mcp_server *server, const char *what,
                         const struct rpc_message *message);
void mcp_session_up(struct mcp_server *server); /* the first list is there */

/* Send what was written; `name` is of the tool, or empty. */
struct mcp_send {
    uint64_t number; /* 0: a notification or a response */
    const char *method;
    str name;
    const struct mcp_header *more;
    size_t more_count;
    msec quiet_ms;
};
void mcp_session_send(struct mcp_server *server, struct buf *message, const struct mcp_send *send);

/* A message that was read: what it asks is done, whom it answers is told. */
void mcp_session_take(struct mcp_server *server, const struct rpc_message *message);

bool mcp_session_http(const struct mcp_server *server); /* not a child */

/* ---- mcp_list.c ---- */

void mcp_list_begin(struct mcp_server *server); /* of a new session */
void mcp_list_again(struct mcp_server *server); /* soon: it may be another by now */
void mcp_list_due(void *arg);                   /* of list_timer */
void mcp_list_take(struct mcp_server *server, const struct rpc_message *message);

/* ---- mcp_read.c ---- */

void mcp_read_message(struct mcp_server *server, str json);
void mcp_reads_orphan(struct mcp_server *server); /* the server is freed */

/* ---- mcp_call.c ---- */

extern const struct tool_ops mcp_ops;

void mcp_calls_ready(struct mcp_server *server);                         /* the session is up */
void mcp_calls_away(struct mcp_server *server, const struct fault *why); /* it will not be soon */
void mcp_calls_orphan(struct mcp_server *server);                        /* the server is freed */

/* Is this the result of a call, to be read with mcp_result_read? Then in which language. */
bool mcp_calls_await(const struct mcp_server *server, const struct rpc_message *message,
                     str *ret_locale);
void mcp_calls_result(struct mcp_server *server, uint64_t number, enum tool_end end,
                      struct tool_result *result); /* that was read */
void mcp_calls_answered(struct mcp_server *server, const struct rpc_message *message);
void mcp_calls_unreadable(struct mcp_server *server, uint64_t number, const struct fault *why);
void mcp_calls_lost(struct mcp_server *server, uint64_t number, enum mcp_loss loss, int http_status,
                    const struct fault *why);
void mcp_calls_progress(struct mcp_server *server, const struct json *params);
/* A server's question; false: no call can have asked it. */
bool mcp_calls_asked(struct mcp_server *server, const struct rpc_message *message);

#endif
