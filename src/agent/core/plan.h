/* SPDX-License-Identifier: Apache-2.0
 *
 * What became of a plan's steps. Pure.
 *
 * A step is running from when it begins until the model moves on, or the run ends. Then its calls
 * say what became of it, not the model: of each tool the last call counts. One that was rejected
 * makes the step rejected, else one that failed makes it failed, else it is done. What no call
 * speaks for is done by the model's word alone, and says so; questions to people are no such calls.
 *
 * The state has the word of every step, and of the running one what its calls said so far.
 */
#ifndef AGENT_CORE_PLAN_H
#define AGENT_CORE_PLAN_H

#include "agent/core/state.h"
#include "store/table/calls.h"

bool plan_done(const struct state *state);   /* every step has its end */
bool plan_active(const struct state *state); /* there is a plan, and a step of it is running */

/* Take the plan over: its first step runs. */
void plan_begin(struct state *state, struct plan plan);

/* What the calls of the last turn say, in the order of the turn, once all have ended. Each turn is
 * counted once, however often this is asked. */
void plan_count(struct arena *arena, struct state *state, const struct call *calls, size_t count);

/* The model moves on: the running step ends, the next one runs. */
void plan_move_on(struct arena *arena, struct state *state);

/* The words that the steps have if the run ends now; the state's own are left as they are. */
struct plan plan_ended(struct arena *arena, const struct state *state);

#endif
