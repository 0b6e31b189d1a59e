/* SPDX-License-Identifier: Apache-2.0
 *
 * The desk, where other agents ask our people: the three tools that they get from us over MCP, what
 * these are called with, and what they give back. Pure.
 *
 *     ask_user     a question of theirs to the person whose key they have
 *     confirm      an approval: of the bytes that the person saw, by the person alone
 *     get_answer   what became of either
 *
 * A question is answered by people, who may take hours. So a call waits a little and then says
 * `pending`, with the id under which the question stays.
 */
#ifndef MCP_SERVER_MCP_SERVER_TOOLS_H
#define MCP_SERVER_MCP_SERVER_TOOLS_H

#include "base/crypto.h"
#include "base/json.h"

enum desk_tool { DESK_ASK_USER, DESK_CONFIRM, DESK_GET_ANSWER, DESK_TOOL_COUNT };

/* What a call asks for. Texts borrow from the arguments, or are in the arena. */
struct desk_call {
    enum desk_tool tool;
    msec wait_ms;
    str id; /* of get_answer */

    /* of the others */
    str key;                        /* of the client; empty: none */
    str title;                      /* may be empty */
    str words;                      /* what is asked, for its language */
    str press_tool, press_args;     /* the call that a run is made of */
    unsigned char hash[HASH_BYTES]; /* of both: what makes two questions the same */
};

/* ERR_NOT_FOUND. */
enum err desk_find(str name, enum desk_tool *ret_tool) MUST_USE;

/* `arguments` may be NULL. ERR_INVALID_FIELD says which argument is wrong, for a model. */
enum err desk_parse(struct arena *arena, enum desk_tool tool, const struct json *arguments,
                    struct desk_call *ret_call, struct fault *reterr) MUST_USE;

/* status, name in results */
#define DESK_STATUSES(X)           \
    X(DESK_PENDING, "pending")     \
    X(DESK_ANSWERED, "answered")   \
    X(DESK_APPROVED, "approved")   \
    X(DESK_REJECTED, "rejected")   \
    X(DESK_DECLINED, "declined")   \
    X(DESK_CANCELLED, "cancelled") \
    X(DESK_EXPIRED, "expired")     \
    X(DESK_FAILED, "failed")
#define DESK_ENUM(value, name) value,
enum desk_status { DESK_STATUSES(DESK_ENUM) DESK_STATUS_COUNT };
#undef DESK_ENUM

/* What became of a question. Texts may be empty. */
struct desk_state {
    enum desk_status status;
    str id;      /* the interaction's; the run's while there is none */
    bool opened; /* people see it */
    bool queued; /* others are before it */
    str answer;  /* in words, as one of our models would get it */
    str reply;   /* JSON: as the person gave it */
    str comment; /* with a rejection */
    str args;    /* JSON: as a person changed them before approving */
    str reason;  /* why it failed */
    str answered_by, via;
    msec settled;
};

/* Members of the results of tools/list and tools/call. */
void desk_write_list(struct json_writer *w);
void desk_write_state(struct json_writer *w, struct arena *arena, const struct desk_state *state);
void desk_write_fault(struct json_writer *w, str text); /* the call went wrong, and why */

#endif
