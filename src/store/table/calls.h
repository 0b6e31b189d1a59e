/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal of tool calls. Before a call leaves, its row says `started`, with the key that goes
 * out with it (its id); when it has ended, the row holds what came back. What stands between is
 * what a crash leaves in doubt.
 *
 * Plain blocking code for use inside a job; texts that come back live in the arena given.
 */
#ifndef STORE_TABLE_CALLS_H
#define STORE_TABLE_CALLS_H

#include "base/arena.h"

struct db;

/* state, name, whether nothing more happens to it; the numbers are in databases */
#define CALL_STATES(X)                   \
    X(CALL_PROPOSED, "proposed", false)  \
    X(CALL_WAITING, "waiting", false)    \
    X(CALL_APPROVED, "approved", false)  \
    X(CALL_STARTED, "started", false)    \
    X(CALL_DONE, "done", true)           \
    X(CALL_FAILED, "failed", true)       \
    X(CALL_REJECTED, "rejected", true)   \
    X(CALL_CANCELLED, "cancelled", true) \
    X(CALL_UNCERTAIN, "uncertain", false)

#define CALL_ENUM(state, name, settled) state,
enum call_state { CALL_STATES(CALL_ENUM) CALL_STATE_COUNT };
#undef CALL_ENUM

const char *call_state_name(enum call_state state);
bool call_state_settled(enum call_state state);

struct call {
    int64_t run;
    str call_id;    /* "call_..."; also the idempotency key */
    str message_id; /* the assistant's message it stands in */
    uint32_t round; /* which model turn with calls of its run, from 1 */
    uint32_t n;     /* which call of that turn, from 0 */
    enum call_state state;
    uint32_t stage; /* enum stage of the agent */
    bool write, idempotent;
    uint32_t attempts; /* how often it was started */
    str tool;
    str provider_id;
    str rule;    /* why it needs, or needed, an approval; empty: it does not */
    str binding; /* of the approval asked for; empty if none */
    str args;    /* the bytes that were shown; not JSON if the model wrote none */
    str asked; /* what the tool asks people while it runs, JSON of agent/core/asked.h; empty: nothing */

    /* once it has ended */
    str error;       /* a code or the tool's own words; empty: none */
    str content;     /* the tool's own text for people; may be empty */
    str model_text;  /* exactly what the model sees of it in this run */
    str result_id;   /* of its history row; empty: not shown yet */
    str result;      /* JSON; read back only while result_id is empty, or by call_result */
    str spool;       /* name of the file in the spool folder that holds it instead; empty: none */
    str result_hash; /* SHA-256 of that file, 64 hex digits */
    str ui_hints;    /* JSON, as the tool gave them; empty: none */
    str attachments; /* files that came with it, JSON list as of a message; empty: none */
    bool stored;     /* not read back: what it returned is in object storage, forget the result */
    uint64_t result_bytes;
    msec created, started, ended;
};

struct call_list {
    struct call *rows;
    size_t count;
};

enum err call_add(struct db *db, const struct call *call) MUST_USE; /* ERR_BUSY: it is there */
/* All but run, round, n and call_id, by which it is found; result only if not empty, or if it is
 * `stored`: then it goes. ERR_NOT_FOUND. */
enum err call_update(struct db *db, const struct call *call) MUST_USE;

/* The calls of one model turn, in its order. */
enum err calls_of_round(struct db *db, struct arena *arena, int64_t run, uint32_t round,
                        struct call_list *ret_list) MUST_USE;

/* The calls of a run that have no history row yet, in their order. */
enum err calls_unshown(struct db *db, struct arena *arena, int64_t run, struct call_list *ret_list)
    MUST_USE;

/* call_id, tool and model_text of every call of a run that is settled or stands in history, in order:
 * the newest of them, at most about CALLS_SEEN_BYTES_MAX. */
enum err calls_seen(struct db *db, struct arena *arena, int64_t run, struct call_list *ret_list)
    MUST_USE;

/* call_id and state of the calls of the thread's newest CALLS_LATE_RUNS runs, newest first: at most
 * CALLS_LATE_MAX. */
enum err calls_late(struct db *db, struct arena *arena, int64_t thread, struct call_list *ret_list)
    MUST_USE;

/* What the call of a history row returned: result or spool, result_bytes; and run, call_id, tool.
 * ERR_NOT_FOUND. */
enum err call_result(struct db *db, struct arena *arena, int64_t thread, str result_id,
                     struct call *ret_call) MUST_USE;

/* Is a call of this thread's current run under way? */
enum err calls_started(struct db *db, int64_t thread, bool *ret_started) MUST_USE;

/* Is a result of this name still needed? */
enum err calls_spooled(struct db *db, str name, bool *ret_needed) MUST_USE;

/* Names of the spool files of a thread, for its deletion. */
enum err calls_spools(struct db *db, struct arena *arena, int64_t thread, str **ret_names,
                      size_t *ret_count) MUST_USE;

#endif
