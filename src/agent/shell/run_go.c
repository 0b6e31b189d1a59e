/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rows of a run ask for, performed: its model, its calls, calls that a process before this
 * one lost, the next step.
 */
#include "agent/shell/run_int.h"

/* ---- the model ---- */

static void step_turn(struct live_run *live)
{
    struct input input = {.kind = INPUT_TURN,
                          .turn = model_turn_turn(&live->model_turn, &live->now->arena),
                          .from_message = live->context.from_message};
    bool only_calls = input.turn.call_count && !input.turn.text.len;
    if (only_calls && graph_node(&live->now->view.state) == NODE_DELIVER)
        model_turn_discard(&live->model_turn, "no tools were offered"); /* only words count there */
    live_run_step(live, &input);
}

void live_run_whole(void *arg)
{
    step_turn(arg);
}

void live_run_down(void *arg, enum err e, const char *why)
{
    struct input input = {.kind = INPUT_DOWN, .why = e, .why_text = str_c(why)};
    live_run_step(arg, &input);
}

static void step_overdue(struct live_run *live)
{
    struct input input = {.kind = INPUT_OVERDUE};
    live_run_step(live, &input);
}

/* The time of the run is used up in the middle of a model call. */
static void on_deadline(void *arg)
{
    struct live_run *live = arg;
    if (live->state != ACTIVE_SPEAKING) return;
    model_turn_stop(&live->model_turn);
    model_turn_discard(&live->model_turn, "the time of this run is used up");
    model_turn_forget(&live->model_turn);
    step_overdue(live);
}

static void call_model(struct live_run *live)
{
    const struct runs_options *o = &live->runs->options;
    const struct state *state = &live->now->view.state;
    const struct agent *agent = live_run_agent(live);
    msec now = clock_wall(o->clock), deadline = graph_deadline(state, agent);
    if (graph_overdue(state, agent, now)) {
        step_overdue(live);
        return;
    }
    if (deadline && !live->deadline) live->deadline = timer_new(o->loop, on_deadline, live);
    if (deadline) timer_start(live->deadline, deadline - now);
    live->state = ACTIVE_SPEAKING;
    live->model_turn.words_only = graph_node(state) == NODE_DELIVER;
    model_turn_start(&live->model_turn, &agent->model, live->now->run.run_id,
                     &(struct model_request){.system = live->context.system,
                                             .messages = live->context.messages,
                                             .count = live->context.count,
                                             .tools = live->context.tools,
                                             .locale = state->locale,
                                             .round = state->turns + 1});
}

static void on_fetched(void *arg, enum err e)
{
    struct live_run *live = arg;
    live->pictures = NULL;
    bool other = live_run_agent(live) != live->asked;
    if (!live->runs->stopping && !e && other) { /* a reload: what was made is for another model */
        live_run_load(live);
        return;
    }
    if (!e || live->runs->stopping) {
        live_run_go_on(live);
        return;
    }
    live_run_trouble(live, "cannot load files", e);
    live_run_retry(live);
}

/* The bytes that belong into the context come first. */
static void fetch(struct live_run *live)
{
    const struct runs_options *o = &live->runs->options;
    live->state = ACTIVE_FETCHING;
    live->pictures = pictures_load(&(struct pictures_source){.loop = o->loop,
                                                             .store = o->store,
                                                             .blobs = o->blobs,
                                                             .owner = live->now->thread.owner,
                                                             .arena = &live->now->arena,
                                                             .context = &live->context},
                                   on_fetched, live);
}

/* ---- what is next ---- */

/* A started call without a tool run: the process that had it is gone. True: a step was taken. */
static bool look_for_lost(struct live_run *live)
{
    for (size_t i = 0; i < live->now->view.calls.count; i++) {
        const struct call *call = &live->now->view.calls.rows[i];
        if (call->state != CALL_STARTED || tool_runs_has(&live->tool_runs, call->call_id)) continue;
        const struct tools *tools = live->runs->options.saver->tools;
        bool there = tools_find(tools, call->tool);
        if (call_repeatable(call) && there && !live->now->view.cancelling) {
            live_run_take_off(live, call, tools);
            continue;
        }
        struct input input = {.kind = INPUT_LOST, .call_id = call->call_id};
        live_run_step(live, &input);
        return true;
    }
    return false;
}

static bool save_tool_run(struct live_run *live)
{
    struct input input;
    if (!tool_runs_news(&live->tool_runs, &input)) return false;
    live_run_step(live, &input);
    return true;
}

void live_run_tool_run_over(void *arg)
{
    struct live_run *live = arg;
    if (live->state == ACTIVE_WORKING) live_run_go_on(live);
}

static void step_cancel(struct live_run *live)
{
    struct input input = {.kind = INPUT_CANCEL,
                          .turn = model_turn_turn(&live->model_turn, &live->now->arena)};
    if (!input.turn.text.len)
        model_turn_discard(&live->model_turn, "cancelled"); /* no words: nothing is kept */
    live_run_step(live, &input);
}

/* What has come back is put into object storage, and then shown in any case. */
static void run_go_show(struct live_run *live)
{
    struct input input = {.kind = INPUT_SHOW};
    const struct state *state = &live->now->view.state;
    for (size_t i = 0; i < live->now->view.calls.count; i++) {
        const struct call *call = &live->now->view.calls.rows[i];
        if (!call_state_settled(call->state) || call->result_id.len || !call->started) continue;
        payload_put_put(&live->puts,
                        &(struct payload_source){.call = call,
                                                 .locale = state->locale,
                                                 .run_id = state->trace_id,
                                                 .user_id = state->user_id,
                                                 .tools = live->runs->options.saver->tools});
    }
    if (payload_put_busy(&live->puts)) return;
    struct payload *payloads;
    input.payload_count = payload_put_over(&live->puts, &live->now->arena, &payloads);
    input.payloads = payloads;
    live_run_step(live, &input);
}

/* The turn that a button stands for. */
static void press(struct live_run *live)
{
    const struct state *state = &live->now->view.state;
    struct turn_call *call = ARENA_NEW(&live->now->arena, struct turn_call);
    *call = (struct turn_call){.name = state->press_tool, .args = state->press_args};
    struct input input = {.kind = INPUT_TURN, .turn = {.calls = call, .call_count = 1}};
    live_run_step(live, &input);
}

/* Nobody is there, and the agent does not go on without. What ends the run in any case needs nobody. */
static bool waits_for_readers(const struct live_run *live)
{
    const struct agent *agent = live_run_agent(live);
    if (!live->alone || agent->on_disconnect != DISCONNECT_PAUSE) return false;
    return !graph_overdue(&live->now->view.state, agent, clock_wall(live->runs->options.clock));
}

/* Do what the rows just loaded ask for. When the server stops, only what has happened is saved. */
void live_run_go_on(struct live_run *live)
{
    live->state = ACTIVE_WORKING;
    for (size_t i = 0; i < live->now->view.calls.count; i++)
        tool_runs_reply(&live->tool_runs, &live->now->view.calls.rows[i]);
    if (live->now->view.cancelling)
        tool_runs_let_go(&live->tool_runs, live->now->view.state.locale);
    if (save_tool_run(live) || live->runs->stopping || look_for_lost(live)) return;
    if (live->model_turn.whole && !live->now->view.cancelling) {
        step_turn(live);
        return;
    }
    struct input input = {0};
    switch (graph_effect(&live->now->view)) {
    case EFFECT_CANCEL:
        step_cancel(live);
        break;
    case EFFECT_SHOW:
        run_go_show(live);
        break;
    case EFFECT_START:
        input.kind = INPUT_START;
        live_run_step(live, &input);
        break;
    case EFFECT_PRESS:
        press(live);
        break;
    case EFFECT_MODEL:
        if (waits_for_readers(live)) {
            input.kind = INPUT_ALONE;
            live_run_step(live, &input);
        } else if (pictures_needed(&live->context)) {
            fetch(live);
        } else {
            call_model(live);
        }
        break;
    case EFFECT_NONE:
        if (!tool_runs_any(&live->tool_runs)) live_run_free(live);
        break;
    }
}

void live_run_timer(void *arg)
{
    struct live_run *live = arg;
    if (live->state == ACTIVE_COMMITTING)
        live_run_commit_again(live);
    else
        live_run_load(live);
}

/* The row says so already; what the model has said so far is kept for the step. */
void runs_cancel(struct runs *runs, int64_t thread)
{
    struct live_run *live = live_run_find(runs, thread);
    if (!live) {
        runs_wake(runs, thread);
        return;
    }
    live->again = true;
    model_turn_stop(&live->model_turn);
    if (live->state == ACTIVE_SPEAKING || live->state == ACTIVE_WORKING ||
        live->state == ACTIVE_FETCHING)
        live_run_load(live);
}

/* Looked at before the next model call; what is under way goes on. */
void runs_alone(struct runs *runs, int64_t thread, bool alone)
{
    struct live_run *live = live_run_find(runs, thread);
    if (live) live->alone = alone;
}
