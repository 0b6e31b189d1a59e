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

struct tool_request {
    str call_id; /* the idempotency key: the same at every attempt of this call */
    str args;    /* JSON object that the tool's schema takes */
    str owner, thread_id, run_id;
    str locale;   /* "zh-CN", "en" */
    str timezone; /* "Asia/Shanghai", or empty */
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
    str summary; /* template of what a call is about, "{title} {start_time}"; may be empty */
    str done_zh, done_en; /* templates of what it did, as ui/summary.h says; may be empty */
    const struct tool_ops *ops;
    void *self;
};

/* All of them, made at start and immutable since: readable from any thread. */
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

#endif
