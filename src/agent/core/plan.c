/* SPDX-License-Identifier: Apache-2.0
 *
 * What became of a plan's steps, as their calls say.
 *
 *   pending -- the step before ended --> running -- the model moves on --> done, failed, rejected
 *      '------ the run ends --> skipped     '------ the run ends --> what its calls say, or skipped
 *
 * 1. Steps before the current one have ended, the current one runs, those behind it are pending. Only
 *    the end of the run makes it otherwise, and then the state is not stored any more.
 * 2. A view is never written: lists are copied before they change.
 * 3. Whatever is not known for sure makes a step worse, never better.
 */
#include "agent/core/plan.h"

#include <string.h>

#include "agent/core/interaction.h"
#include "base/limits.h"
#include "base/plant.h"

bool plan_done(const struct state *state)
{
    return state->plan.count && state->current_step >= state->plan.count;
}

bool plan_active(const struct state *state)
{
    return state->plan.count && state->current_step < state->plan.count;
}

static struct plan copied(struct arena *arena, const struct plan *plan)
{
    struct plan copy = {.steps = arena_array(arena, plan->count, sizeof *copy.steps),
                        .count = plan->count};
    if (plan->count) memcpy(copy.steps, plan->steps, plan->count * sizeof *copy.steps);
    return copy;
}

void plan_begin(struct state *state, struct plan plan)
{
    state->plan = plan;
    state->step_calls = (struct step_calls){0};
    state->calls_counted = state->round_used; /* what stood beside the plan is no part of it */
    if (plan.count) plan.steps[0].status = STEP_RUNNING;
}

/* ---- calls ---- */

/* Errors of ours that say no. A tool's own words may be the same, but such a call has left. */
static bool refused(const struct call *call)
{
    static const char *const unsent[] = {"policy_denied", "read_only", "unattended"};
    if (str_eq(call->error, STR("policy_changed"))) return true; /* also of one that is repeated */
    for (size_t i = 0; !call->started && i < COUNT(unsent); i++)
        if (str_eq(call->error, str_c(unsent[i]))) return true;
    return false;
}

static enum step_status end_of(const struct call *call)
{
    switch (call->state) {
    case CALL_DONE:
        return STEP_DONE;
    case CALL_REJECTED:
        return PLANT(REJECTED_COUNTS) ? STEP_DONE : STEP_REJECTED;
    case CALL_CANCELLED:
        return STEP_REJECTED;
    default:
        return refused(call) ? STEP_REJECTED : STEP_FAILED;
    }
}

static enum step_status worse(enum step_status a, enum step_status b)
{
    if (a == STEP_REJECTED || b == STEP_REJECTED) return STEP_REJECTED;
    return a == STEP_FAILED ? a : b;
}

/* A later call of a tool takes the place of an earlier one. Tools behind the last row share it, and
 * there nothing gets better. */
static void count_call(struct step_calls *list, const struct call *call)
{
    enum step_status end = end_of(call);
    for (size_t i = 0; i < list->count && i + 1 < STEP_TOOLS_MAX; i++) {
        if (!str_eq(list->rows[i].tool, call->tool)) continue;
        list->rows[i].end = end;
        return;
    }
    if (list->count < STEP_TOOLS_MAX) {
        list->rows[list->count++] = (struct step_call){call->tool, end};
        return;
    }
    struct step_call *last = &list->rows[STEP_TOOLS_MAX - 1];
    last->end = worse(last->end, end);
}

void plan_count(struct arena *arena, struct state *state, const struct call *calls, size_t count)
{
    if (!plan_active(state) || state->calls_counted >= state->round_used) return;
    struct step_calls list = {.rows = arena_array(arena, STEP_TOOLS_MAX, sizeof *list.rows),
                              .count = state->step_calls.count};
    if (list.count) memcpy(list.rows, state->step_calls.rows, list.count * sizeof *list.rows);
    for (size_t i = 0; i < count; i++)
        if (call_state_settled(calls[i].state) && !graph_tool_is(calls[i].tool))
            count_call(&list, &calls[i]);
    state->step_calls = list;
    state->calls_counted = state->round_used;
}

/* What they say together; skipped: there are none. */
static enum step_status said(const struct step_calls *list)
{
    if (!list->count) return STEP_SKIPPED;
    enum step_status end = STEP_DONE;
    for (size_t i = 0; i < list->count; i++) end = worse(end, list->rows[i].end);
    return end;
}

/* ---- ends ---- */

void plan_move_on(struct arena *arena, struct state *state)
{
    assert(plan_active(state));
    struct plan plan = copied(arena, &state->plan);
    struct plan_step *step = &plan.steps[state->current_step];
    bool silent = !state->step_calls.count;
    step->status = silent ? STEP_DONE : said(&state->step_calls);
    step->by_model = silent;
    state->current_step++;
    state->step_calls = (struct step_calls){0};
    if (state->current_step < plan.count) plan.steps[state->current_step].status = STEP_RUNNING;
    state->plan = plan;
}

struct plan plan_ended(struct arena *arena, const struct state *state)
{
    struct plan plan = copied(arena, &state->plan);
    for (size_t i = state->current_step; i < plan.count; i++)
        plan.steps[i].status = i > state->current_step ? STEP_SKIPPED : said(&state->step_calls);
    return plan;
}
