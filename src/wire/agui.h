/* SPDX-License-Identifier: Apache-2.0
 *
 * The AG-UI dialect: "data: {JSON}\n\n" frames. Pure.
 *
 * What one client is answered has three parts:
 *
 *     head     RUN_STARTED, STATE_SNAPSHOT, MESSAGES_SNAPSHOT?, STEP_STARTED?, what is growing
 *     middle   the facts and previews of the leg; the same bytes for everybody
 *     tail     STEP_FINISHED?, RUN_FINISHED or RUN_ERROR
 *
 * Head and tail have the run id of the request and are made from the store as of a fact's number;
 * the middle is a fold over what is published. A snapshot of the messages may belong between two
 * facts: the fold says where, and whoever has the rows writes it there (agui_snapshot).
 *
 * Two profiles: clients that name a protocolVersion, and those before 1.0, to whom some of it would
 * be fatal.
 */
#ifndef WIRE_AGUI_H
#define WIRE_AGUI_H

#include "base/buf.h"
#include "base/id.h"
#include "store/bus/bus.h"
#include "store/table/interactions.h"

enum agui_profile { AGUI_OLD, AGUI_NEW, AGUI_PROFILE_COUNT };

/* ---- what is growing: a turn of the model that is not a fact yet ---- */

struct agui_call {
    str id, name, args; /* args: as far as written */
};

struct agui_growing {
    str message_id;
    str text, reasoning; /* so far; empty: none has begun */
    const struct agui_call *calls;
    size_t call_count;
};

/* ---- the middle ---- */

/* Words that are open: the message that they are of, or "", and how much was sent. */
struct agui_words {
    char id[ID_CLIENT_BYTES_MAX + 1];
    uint64_t units; /* UTF-16, as previews count */
};

/* Embedded; what everybody who reads along has seen open. */
struct agui {
    enum agui_profile profile;
    bool leg;                            /* one is under way; outside of it nothing is sent */
    bool behind;                         /* the client's messages differ from ours */
    char stray[ID_CLIENT_BYTES_MAX + 1]; /* message whose reasoning was shown and discarded by the
                                            newest call; "": none */
    struct agui_words text, thought;
    struct buf calls; /* open ones, a line each: '-' or, if arguments were sent, '+', then the id */
};

void agui_init(struct agui *agui, enum agui_profile profile);
void agui_done(struct agui *agui);

/* Join in the middle: is a leg under way, and what of it is growing (NULL: nothing)? */
void agui_join(struct agui *agui, bool leg, const struct agui_growing *growing);

/* Append the frames of one fact, or of one preview; perhaps none. True: a MESSAGES_SNAPSHOT of all
 * rows so far belongs right behind them. run.started and the end of a leg write nothing of their
 * own: the end closes what is open, and the rest is the tail's. The run.finished of a run that was
 * dropped from the queue ends no leg, and must not come here. */
bool agui_fact(struct agui *agui, struct buf *out, const struct fact *fact);
bool agui_preview(struct agui *agui, struct buf *out, const struct preview *preview);

/* ---- head, tail, snapshots ---- */

/* A history row; `fact` is the data of the tool.call.result that a tool row came with, or empty. */
struct agui_row {
    struct message message;
    str fact;
};

/* One MESSAGES_SNAPSHOT: user, assistant, reasoning and system rows in their order, tool rows right
 * behind the message that made the call; then what is growing (may be NULL). Rows of other roles, and
 * empty words without calls and card, are left out. The newest that fit into AGUI_SNAPSHOT_BYTES_MAX. */
void agui_snapshot(struct buf *out, enum agui_profile profile, const struct agui_row *rows,
                   size_t count, const struct agui_growing *growing);

/* The same behind a discard. A stock client takes a snapshot that has no reasoning as silent about
 * reasoning, and keeps the `stray` one. So, if no row has any, there are two: the first makes it
 * another kind of message, the second takes that back. Clients before 1.0 cannot be made to drop it;
 * they get it emptied. An empty stray: agui_snapshot. */
void agui_snapshot_without(struct buf *out, enum agui_profile profile, const struct agui_row *rows,
                           size_t count, str stray);

/* Are these the ids of exactly the messages that the snapshot would have, in its order? */
bool agui_same_ids(struct arena *arena, const struct agui_row *rows, size_t count, const str *ids,
                   size_t id_count);

struct agui_head {
    str thread_id, run_id; /* run_id: the request's own */
    str state;             /* JSON; empty: {} */
    str step;              /* the step that is open; empty: none */
    bool messages;         /* send the snapshot */
    const str *ids;        /* of the messages that the client has; where their order is not ours, a
                              shorter snapshot goes first, or it would stay so */
    size_t id_count;
    const struct agui_row *rows;
    size_t row_count;
    const struct agui_growing *growing; /* NULL: nothing. Opened again behind the snapshot, so that
                                           deltas go on; needs `messages` */
};
void agui_head(struct buf *out, enum agui_profile profile, const struct agui_head *head);

/* RUN_STARTED alone, for a tail that has no run before it. */
void agui_started(struct buf *out, enum agui_profile profile, str thread_id, str run_id);

struct agui_tail {
    str thread_id, run_id; /* run_id: the request's own */
    str step;              /* the step that is open; empty: none */
    const char *type;      /* "run.finished" or "run.error"; NULL: no run has ever ended here */
    str data;              /* of that fact */
    const struct interaction *open; /* that it waits for, as the fact names them */
    size_t open_count;
    str model;
    uint64_t input_tokens, output_tokens; /* of this leg; both 0: no usage is told */
};
void agui_tail(struct buf *out, enum agui_profile profile, const struct agui_tail *tail);

/* RUN_ERROR {code, message}: the stream cannot go on. Allowed at any place but behind a tail. */
void agui_error(struct buf *out, const char *code, const char *message);

/* ---- GET /ag-ui/{agent}/capabilities ---- */

struct agui_agent {
    str name, version;
    const struct agui_tool {
        str name, description, schema;
    } * tools;
    size_t tool_count;
    uint32_t max_rounds;
    msec active_ms_max; /* 0: no limit */
};
void agui_capabilities(struct buf *out, const struct agui_agent *agent);

#endif
