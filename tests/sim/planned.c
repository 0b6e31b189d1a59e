/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plan's steps say, against the calls that were made.
 *
 * Nothing of the graph's own counting is used: the rows of all calls of the run, and in which round
 * each step began, say what its word has to be. So a step can never be done after a rejected call that
 * no later one of the same tool made good, and nobody is left with a step that seems to go on.
 */
#include <string.h>

#include "sim.h"

/* The row as it will be. */
static const struct call *row_after(const struct outcome *o, const struct call *row)
{
    for (size_t i = 0; i < o->call_count; i++)
        if (str_eq(o->calls[i].call.call_id, row->call_id)) return &o->calls[i].call;
    return row;
}

/* Calls of the run that the current step made, with those that this commit adds, one after the other. */
static const struct call *step_call(const struct sim *sim, const struct outcome *o, size_t at)
{
    const struct call *call = NULL;
    size_t rows = sim->world.call_count;
    if (at < rows)
        call = row_after(o, &sim->world.calls[at]);
    else if (at < rows + o->call_count && o->calls[at - rows].added)
        call = &o->calls[at - rows].call;
    bool counts = call && call->run == sim->world.run.id && call->round > sim->log.plan_round &&
                  !graph_tool_is(call->tool);
    return counts ? call : NULL;
}

static const char *word_of(const struct call *call)
{
    bool never = str_eq(call->error, STR("policy_denied")) && !call->started;
    if (call->state == CALL_DONE) return "done";
    if (call->state == CALL_REJECTED || call->state == CALL_CANCELLED || never ||
        str_eq(call->error, STR("policy_changed")))
        return "rejected";
    return call->state == CALL_FAILED ? "failed" : "running";
}

static bool later(const struct call *a, const struct call *b)
{
    return a->round != b->round ? a->round > b->round : a->n > b->n;
}

/* NULL: no call speaks for it. */
static const char *expected(const struct sim *sim, const struct outcome *o)
{
    static const char *const words[] = {"done", "failed", "rejected"};
    size_t count = sim->world.call_count + o->call_count, worst = 0;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const struct call *call = step_call(sim, o, i);
        bool last = call;
        for (size_t j = 0; last && j < count; j++) {
            const struct call *other = step_call(sim, o, j);
            if (other && str_eq(other->tool, call->tool) && later(other, call)) last = false;
        }
        if (!last) continue;
        any = true;
        for (size_t w = 0; w < COUNT(words); w++)
            if (!strcmp(word_of(call), words[w]) && w > worst) worst = w;
    }
    return any ? words[worst] : NULL;
}

static bool says(const struct json *step, const char *status, bool by_model)
{
    return str_eq(json_text(json_get(step, STR("status"))), str_c(status)) &&
           str_eq(json_text(json_get(step, STR("by"))), by_model ? STR("model") : STR_EMPTY);
}

/* The step that was running until now, and what stands behind it. */
void planned_check(struct sim *sim, const struct outcome *o, const struct json *data)
{
    struct log *log = &sim->log;
    const struct json *steps = json_get(data, STR("steps"));
    const char *word = expected(sim, o);
    uint64_t current = 0;
    if (!steps || json_u64(json_get(data, STR("current")), &current)) {
        broken(sim, "a plan without steps");
        return;
    }
    bool begins = !log->planned, ends = !begins && current == log->plan_step;
    if (!begins && !ends && current != log->plan_step + 1) broken(sim, "a step is passed over");
    if (ends && !o->ended) broken(sim, "the steps are closed, and the run goes on");
    const struct json *left = json_at(steps, log->plan_step);
    if (!begins && !says(left, word ? word : ends ? "skipped" : "done", !word && !ends))
        broken(sim, "a step says %.*s, its calls %s",
               STR_ARG(json_text(json_get(left, STR("status")))), word ? word : "nothing");
    for (uint64_t i = ends ? current + 1 : current; i < steps->count; i++)
        if (!says(json_at(steps, i),
                  ends           ? "skipped"
                  : i == current ? "running"
                                 : "pending",
                  false))
            broken(sim, "step %llu has another word", (unsigned long long)i + 1);
    log->planned = true;
    log->plan_open = !ends && current < steps->count;
    log->plan_step = current;
    log->plan_round = o->state.round_used;
}

/* Nobody is left with a step that seems to go on. A state that cannot be read knows of no plan. */
void planned_ended(struct sim *sim, const struct input *input)
{
    bool damaged = input && input->kind == INPUT_DAMAGED;
    if (sim->log.plan_open && !damaged) broken(sim, "a run ends, and a step of its plan goes on");
}
