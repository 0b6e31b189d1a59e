/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rows of a run ask for: its model, its calls, the next step.
 */
#include "agent/run_int.h"

/* ---- the model ---- */

static void step_turn(struct active *active)
{
    struct input input = {.kind = INPUT_TURN,
                          .turn = speech_turn(&active->speech, &active->arena),
                          .from_message = active->context.from_message};
    bool only_calls = input.turn.call_count && !input.turn.text.len;
    if (only_calls && graph_node(&active->view.state) == NODE_DELIVER)
        speech_discard(&active->speech, "no tools were offered"); /* only words count there */
    active_step(active, &input);
}

void active_whole(void *arg)
{
    step_turn(arg);
}

void active_down(void *arg, enum err e, const char *why)
{
    struct input input = {.kind = INPUT_DOWN, .why = e, .why_text = str_c(why)};
    active_step(arg, &input);
}

static void step_overdue(struct active *active)
{
    struct input input = {.kind = INPUT_OVERDUE};
    active_step(active, &input);
}

/* The time of the run is used up in the middle of a model call. */
static void on_deadline(void *arg)
{
    struct active *active = arg;
    if (active->state != ACTIVE_SPEAKING) return;
    speech_stop(&active->speech);
    speech_discard(&active->speech, "the time of this run is used up");
    speech_forget(&active->speech);
    step_overdue(active);
}

static void call_model(struct active *active)
{
    const struct runs_options *o = &active->runs->options;
    const struct state *state = &active->view.state;
    const struct agent *agent = active_agent(active);
    msec now = clock_wall(o->clock), deadline = graph_deadline(state, agent);
    if (graph_overdue(state, agent, now)) {
        step_overdue(active);
        return;
    }
    if (deadline && !active->deadline) active->deadline = timer_new(o->loop, on_deadline, active);
    if (deadline) timer_start(active->deadline, deadline - now);
    active->state = ACTIVE_SPEAKING;
    active->speech.words_only = graph_node(state) == NODE_DELIVER;
    speech_start(&active->speech, &agent->model, active->run.run_id,
                 &(struct model_request){.system = active->context.system,
                                         .messages = active->context.messages,
                                         .count = active->context.count,
                                         .tools = active->context.tools,
                                         .locale = state->locale,
                                         .round = state->turns + 1});
}

static void on_fetched(void *arg, enum err e)
{
    struct active *active = arg;
    active->pictures = NULL;
    bool other = active_agent(active) != active->asked;
    if (!active->runs->stopping && !e && other) { /* a reload: what was made is for another model */
        active_load(active);
        return;
    }
    if (!e || active->runs->stopping) {
        active_go_on(active);
        return;
    }
    active_trouble(active, "cannot load files", e);
    active_retry(active);
}

/* The bytes that belong into the context come first. */
static void fetch(struct active *active)
{
    const struct runs_options *o = &active->runs->options;
    active->state = ACTIVE_FETCHING;
    active->pictures = pictures_load(&(struct pictures_source){.loop = o->loop,
                                                               .store = o->store,
                                                               .blobs = o->blobs,
                                                               .owner = active->owner,
                                                               .arena = &active->arena,
                                                               .context = &active->context},
                                     on_fetched, active);
}

/* ---- what is next ---- */

/* A started call without a flight: the process that had it is gone. True: a step was taken. */
static bool look_for_lost(struct active *active)
{
    for (size_t i = 0; i < active->view.calls.count; i++) {
        const struct call *call = &active->view.calls.rows[i];
        if (call->state != CALL_STARTED || flights_has(&active->flights, call->call_id)) continue;
        const struct tools *tools = active->runs->options.saver->tools;
        bool there = tools_find(tools, call->tool);
        if (call_repeatable(call) && there && !active->view.cancelling) {
            active_take_off(active, call, tools);
            continue;
        }
        struct input input = {.kind = INPUT_LOST, .call_id = call->call_id};
        active_step(active, &input);
        return true;
    }
    return false;
}

static bool save_flight(struct active *active)
{
    struct input input;
    if (!flights_news(&active->flights, &input)) return false;
    active_step(active, &input);
    return true;
}

void active_flight_over(void *arg)
{
    struct active *active = arg;
    if (active->state == ACTIVE_WORKING) active_go_on(active);
}

static void step_cancel(struct active *active)
{
    struct input input = {.kind = INPUT_CANCEL,
                          .turn = speech_turn(&active->speech, &active->arena)};
    if (!input.turn.text.len)
        speech_discard(&active->speech, "cancelled"); /* no words: nothing is kept */
    active_step(active, &input);
}

/* What has come back is put into object storage, and then shown in any case. */
static void show(struct active *active)
{
    struct input input = {.kind = INPUT_SHOW};
    const struct state *state = &active->view.state;
    for (size_t i = 0; i < active->view.calls.count; i++) {
        const struct call *call = &active->view.calls.rows[i];
        if (!call_state_settled(call->state) || call->result_id.len || !call->started) continue;
        shelf_put(&active->shelf,
                  &(struct payload_source){.call = call,
                                           .locale = state->locale,
                                           .run_id = state->trace_id,
                                           .user_id = state->user_id,
                                           .tools = active->runs->options.saver->tools});
    }
    if (shelf_busy(&active->shelf)) return;
    struct payload *payloads;
    input.payload_count = shelf_over(&active->shelf, &active->arena, &payloads);
    input.payloads = payloads;
    active_step(active, &input);
}

/* The turn that a button stands for. */
static void press(struct active *active)
{
    const struct state *state = &active->view.state;
    struct turn_call *call = ARENA_NEW(&active->arena, struct turn_call);
    *call = (struct turn_call){.name = state->press_tool, .args = state->press_args};
    struct input input = {.kind = INPUT_TURN, .turn = {.calls = call, .call_count = 1}};
    active_step(active, &input);
}

/* Nobody is there, and the agent does not go on without. What ends the run in any case needs nobody. */
static bool waits_for_readers(const struct active *active)
{
    const struct agent *agent = active_agent(active);
    if (!active->alone || agent->on_disconnect != DISCONNECT_PAUSE) return false;
    return !graph_overdue(&active->view.state, agent, clock_wall(active->runs->options.clock));
}

/* Do what the rows just loaded ask for. When the server stops, only what has happened is saved. */
void active_go_on(struct active *active)
{
    active->state = ACTIVE_WORKING;
    for (size_t i = 0; i < active->view.calls.count; i++)
        flights_reply(&active->flights, &active->view.calls.rows[i]);
    if (active->view.cancelling) flights_let_go(&active->flights, active->view.state.locale);
    if (save_flight(active) || active->runs->stopping || look_for_lost(active)) return;
    if (active->speech.whole && !active->view.cancelling) {
        step_turn(active);
        return;
    }
    struct input input = {0};
    switch (graph_effect(&active->view)) {
    case EFFECT_CANCEL:
        step_cancel(active);
        break;
    case EFFECT_SHOW:
        show(active);
        break;
    case EFFECT_START:
        input.kind = INPUT_START;
        active_step(active, &input);
        break;
    case EFFECT_PRESS:
        press(active);
        break;
    case EFFECT_MODEL:
        if (waits_for_readers(active)) {
            input.kind = INPUT_ALONE;
            active_step(active, &input);
        } else if (pictures_needed(&active->context)) {
            fetch(active);
        } else {
            call_model(active);
        }
        break;
    case EFFECT_NONE:
        if (!flights_any(&active->flights)) active_free(active);
        break;
    }
}

void active_timer(void *arg)
{
    struct active *active = arg;
    if (active->state == ACTIVE_COMMITTING)
        active_commit_again(active);
    else
        active_load(active);
}

/* The row says so already; what the model has said so far is kept for the step. */
void runs_cancel(struct runs *runs, int64_t thread)
{
    struct active *active = active_find(runs, thread);
    if (!active) {
        runs_wake(runs, thread);
        return;
    }
    active->again = true;
    speech_stop(&active->speech);
    if (active->state == ACTIVE_SPEAKING || active->state == ACTIVE_WORKING ||
        active->state == ACTIVE_FETCHING)
        active_load(active);
}

/* Looked at before the next model call; what is under way goes on. */
void runs_alone(struct runs *runs, int64_t thread, bool alone)
{
    struct active *active = active_find(runs, thread);
    if (active) active->alone = alone;
}
