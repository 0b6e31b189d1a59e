/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call that ran leaves behind: one line for history, a card, and the object that object
 * storage keeps of it. Pure: the same call gives the same bytes, so that the card of the fact and the
 * card of the object are one, made once.
 *
 * The object is JSON; members that are empty are left out, and a result that has a file of its own is
 * named instead:
 *
 *     {"version":1, "tool_id", "tool_call_id", "run_id", "args", "result" | "result_path",
 *      "result_bytes", "error"?, "content", "ui"?, "started_at", "ended_at"}
 */
#ifndef AGENT_CORE_PAYLOAD_H
#define AGENT_CORE_PAYLOAD_H

#include "base/arena.h"

struct call;
struct tools;

struct payload {
    str call_id;
    str content;     /* the summary */
    str ui;          /* UiSchema; empty: no card */
    str ui_hints;    /* that it was made from; empty: none, or it made no card */
    str refused;     /* why hints made no card, for the log; empty: they did, or there are none */
    str bytes;       /* of the object */
    str path;        /* its name in the bucket of payloads */
    str result_path; /* likewise, of the object that the spool file becomes; empty: no file */
    bool stored;     /* set by whoever has put it, and the file, into object storage */
};

/* For whom. */
struct payload_source {
    const struct call *call; /* it has ended, and was started */
    str locale, run_id, user_id;
    const struct tools *tools; /* for the tool's own templates */
};
void payload_make(struct arena *arena, const struct payload_source *source,
                  struct payload *ret_payload);

/* Reading one back. The texts borrow from the bytes or lie in the arena. */
struct payload_parts {
    str ui;          /* JSON; empty: none */
    str result;      /* JSON; empty: none */
    str result_path; /* or it is there */
    uint64_t result_bytes;
};
enum err payload_parse(struct arena *arena, str bytes, struct payload_parts *ret_parts) MUST_USE;

#endif
