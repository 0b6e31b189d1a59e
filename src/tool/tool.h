/* SPDX-License-Identifier: Apache-2.0
 *
 * The seam to tools: start a call, get exactly one end. Everything on the loop thread; no callback
 * comes from inside tool_start, and none after tool_cancel.
 *
 * A tool repeats nothing by itself. How it ended says what is known: done, failed, never reached, or
 * lost on the way; the shell of the agent decides what follows.
 */
#ifndef TOOL_TOOL_H
#define TOOL_TOOL_H

#include "base/crypto.h"
#include "base/err.h"
#include "base/str.h"

struct schema;
struct tool_call;

/* risk, name on the wire */
#define TOOL_RISKS(X)            \
    X(RISK_WRITE, "write")       \
    X(RISK_EXTERNAL, "external") \
    X(RISK_DESTRUCTIVE, "destructive")
#define TOOL_RISK_ENUM(value, name) value,
enum tool_risk { TOOL_RISKS(TOOL_RISK_ENUM) TOOL_RISK_COUNT };
#undef TOOL_RISK_ENUM
const char *tool_risk_name(enum tool_risk risk);

/* A question of a tool to a person, in the middle of a call. */
struct tool_question {
    str id;      /* the tool's own name for it; may be empty */
    str message; /* for the person */
    str schema;  /* JSON Schema of the answer, a flat object; empty: none is expected */
    str url;     /* what the person has to open and do there instead; empty: nothing */
};

/* What became of it. */
struct tool_reply {
    str action;  /* "accept", "decline", "cancel" */
    str content; /* JSON object; empty unless accepted with a schema */
};

/* Questions of one moment. */
struct tool_asked {
    const struct tool_question *questions;
    size_t count;
    size_t
        first; /* position of the first: how many questions came before in this start of the call, also
                     those that `said` had the answer to; 0 if it `ended` */
    str state;  /* to be given back with the replies, unread */
    bool ended; /* the call is gone with them, and has changed nothing so far: it is to be started
                   again with the replies. Else it is under way and waits for tool_reply */
};

/* A question of an earlier start of the same call, and what was said; in the order they were asked. Of a
 * call that `ended` with its questions only the newest of them. */
struct tool_said {
    struct tool_question question;
    struct tool_reply reply; /* action is empty: nobody has answered yet */
};

struct tool_progress {
    str progress, total; /* JSON numbers; empty: not told */
    str message;
};

/* A file that a result brings along. */
struct tool_file {
    str mime, filename, bytes;
};

struct tool_request {
    str call_id; /* the idempotency key: the same at every attempt of this call */
    str args;    /* JSON object that the tool's schema takes */
    str owner, thread_id, run_id;
    str locale;   /* "zh-CN", "en" */
    str timezone; /* "Asia/Shanghai", or empty */
    const struct tool_said *said;
    size_t said_count;
    str state; /* of the newest questions with which the call ended; empty: none */
    /* With the arg of on_end; NULL: questions are declined, progress is not told. If the call `ended`
     * with its questions, on_ask is the last callback. */
    void (*on_ask)(void *arg, const struct tool_asked *asked);
    void (*on_progress)(void *arg, const struct tool_progress *progress);
};

/* Borrowed until on_end returns. */
struct tool_result {
    str content;  /* text for people, may be empty */
    str result;   /* JSON value, on one line; empty: none */
    bool spooled; /* it is in the spool file named after the call instead, on disk: */
    uint64_t result_bytes;
    unsigned char result_hash[HASH_BYTES];
    str result_head, result_tail; /* its first and last CALL_MODEL_BYTES_MAX bytes, cut anywhere */
    enum err unkept; /* why a result that was there could not be kept; content says so too */
    str error;       /* why it was not done, for the model and people; empty if it was */
    str ui_hints;    /* JSON, or empty */
    const struct tool_file *files; /* pictures and others, to be kept as attachments */
    size_t file_count;
};

enum tool_end {
    TOOL_DONE,   /* it happened */
    TOOL_FAILED, /* the tool answered that it did not work */
    TOOL_AWAY,   /* never reached: it has surely not happened */
    TOOL_LOST,   /* sent, and no word of what became of it */
};

struct tool_ops {
    struct tool_call *(*start)(void *self, const struct tool_request *request,
                               void (*on_end)(void *arg, enum tool_end end,
                                              const struct tool_result *result),
                               void *arg);
    void (*cancel)(struct tool_call *call);
    void (*free)(void *self);
    /* The question at position `n`, as tool_asked.first counts. NULL: it never asks so. */
    void (*reply)(struct tool_call *call, size_t n, const struct tool_reply *reply);
};

struct tool {
    str name;        /* "calendar_write" */
    str pack;        /* "calendar": what an agent's list of tools may name instead */
    str description; /* for the model */
    str schema;      /* JSON Schema of the arguments, as offered and as shown; on one line */
    const struct schema *args; /* the same, compiled */
    bool write;                /* it changes something */
    bool idempotent;           /* the same key twice has one effect */
    enum tool_risk risk;
    bool
        holds; /* somebody else's server: when it stays away the person is asked whether to go on */
    bool person; /* a person decides about every call, whatever policy and grants allow */
    str summary; /* template of what a call is about, "{title} {start_time}"; may be empty */
    str done_zh, done_en; /* templates of what it did, as ui/summary.h says; may be empty */
    const struct tool_ops *ops;
    void *self;
};

/* All of them at some moment; immutable, and never freed while the server runs: readable from any
 * thread. When tools come or go there is another such list. */
struct tools {
    const struct tool *rows;
    size_t count;
};

const struct tool *tools_find(const struct tools *tools, str name); /* NULL if there is none */

static inline struct tool_call *
tool_start(const struct tool *tool, const struct tool_request *request,
           void (*on_end)(void *arg, enum tool_end end, const struct tool_result *result),
           void *arg)
{
    return tool->ops->start(tool->self, request, on_end, arg);
}

static inline void tool_cancel(const struct tool *tool, struct tool_call *call)
{
    tool->ops->cancel(call);
}

static inline void tool_reply(const struct tool *tool, struct tool_call *call, size_t n,
                              const struct tool_reply *reply)
{
    tool->ops->reply(call, n, reply);
}

#endif
