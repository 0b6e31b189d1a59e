/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent as a pure function: (state, input) -> (state', facts, messages), and effects(state').
 *
 * No I/O, no clock, no memory but the arena given: the time and 16 random bytes come with the
 * input, and ids derive from them. The shell (run.c) commits what a step returns and only then
 * performs the effect of the new state; after a restart it loads the state and asks for its effect,
 * the same path. A step that is repeated with the same input gives the same bytes.
 */
#ifndef AGENT_GRAPH_H
#define AGENT_GRAPH_H

#include "agent/facts.h"
#include "agent/state.h"
#include "base/id.h"

/* One model turn, whole. */
struct turn {
    str message_id; /* of the attempt that succeeded; empty: one is made */
    str text, reasoning;
    size_t call_count; /* tool calls in it */
    struct model_usage usage;
};

enum input_kind {
    INPUT_TURN,   /* the model finished a turn */
    INPUT_DOWN,   /* the model stays away: gone after all attempts, or failed for good */
    INPUT_CANCEL, /* the person stops the run; `turn` is what was shown so far */
};

struct input {
    enum input_kind kind;
    msec now;
    unsigned char random[ID_RANDOM_BYTES];
    struct turn turn;
    enum err why; /* of INPUT_DOWN: ERR_MODEL_UNAVAILABLE or ERR_INTERNAL (model_error) */
    str why_text; /* for people; empty: the title of `why` */
};

/* What a step wants stored, in one commit. Its texts are in the arena, or where those of the old
 * state and of the input are. */
struct outcome {
    struct state state;
    struct fact *facts;
    size_t fact_count;
    struct message
        *messages; /* seq = index of the fact it belongs to, plus 1; the shell adds the base */
    size_t message_count;
    enum run_status status;
    bool ended; /* the snapshot goes */
};

/* A fresh run: its state, and the facts of its start (run.started, step.start intent). */
struct start {
    str run_id, task_id, owner, thread_id, agent, model;
    uint32_t leg;
    bool resumed;
    uint32_t max_rounds; /* 0: AGENT_ROUNDS_MAX */
    msec now;
};
void graph_start(struct arena *arena, const struct start *start, struct outcome *ret_outcome);

/* The state is not done. */
void graph_step(struct arena *arena, const struct state *state, const struct input *input,
                struct outcome *ret_outcome);

enum effect { EFFECT_NONE, EFFECT_MODEL };
enum effect graph_effect(const struct state *state);

#endif
