/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph, a pure step: a view and what happened give an outcome; and what there is to do for a
 * view.
 *
 *      graph_start
 *           |
 *           v      text only                                                    completed
 *   +---> chat --------------------------------------------------------------------> end
 *   |       |  calls                                                               ^
 *   |       +---------> execute ----- all settled, no plan ----> chat              |
 *   |       |            ^  |  ^ ---- all settled, a plan -----> execute (step)    |
 *   |       |            |  |  '----- steps or rounds used up -> deliver ----------+
 *   |  submit_plan       |  | question, approval needed, end unknown, model gone,  |
 *   |       |            |  | a call that the client executes, nobody there        |
 *   |       v            |  v                                                      |
 *   |     plan -------> interrupt: the leg ends, the run is rows                   |
 *   |                    |                                                         |
 *   +--- plan rejected --+-- answer, cancel of one, expiry, the client's result:   |
 *                        |   settles its own call                                  |
 *                        '-- cancel of the run ----------------------- cancelled --+
 *
 * The nodes are in node_*.c; here are the machinery of a step and the choice of what follows.
 *
 * Invariants:
 *  1. A leg is run.started, then facts, then one run.finished or run.error, which is last.
 *  2. At most one stage is open, the one state.stage names; it stays open over a pause and is
 *     finished before the run ends.
 *  3. A view that is not done has an effect, or a call under way, or waits for a person or for its
 *     client. So a run cannot be forgotten: whoever loads it knows what to do.
 *  4. The same view and input give the same bytes: nothing is read but the arguments.
 *  5. Every call of a turn gets exactly one result, whatever becomes of it, before the model is asked
 *     again or the run ends.
 *  6. A call leaves only from the state `started`, and reaches it only through on_start, which asks
 *     the policy, and for an approved call also its binding.
 *
 * To add an input: a value in graph.h, its function in the node it belongs to, a row in the switch.
 */
#include "agent/core/graph.h"

#include <string.h>

#include "agent/core/front.h"
#include "agent/core/node.h"
#include "base/limits.h"
#include "base/plant.h"
#include "base/rows.h"

/* ---- what nodes share ---- */

/* Ids derive from the input's random bytes and a count, so that a repeated step makes the same. */
str step_id(struct step *step, const char *prefix)
{
    unsigned char seed[ID_RANDOM_BYTES + 1], hash[HASH_BYTES];
    char id[ID_BYTES];
    memcpy(seed, step->input->random, ID_RANDOM_BYTES);
    assert(step->ids < 256);
    seed[ID_RANDOM_BYTES] = (unsigned char)step->ids++;
    crypto_sha256((str){(const char *)seed, sizeof seed}, hash);
    id_make(hash, id);
    return arena_printf(step->arena, "%s%s", prefix, id);
}

str step_say(struct step *step, enum text text, str argument)
{
    return text_say(step->arena, text, step->state->locale, argument);
}

void add_fact(struct step *step, const char *type, str data)
{
    struct outcome *out = step->out;
    *ROWS_ADD(step->arena, out->facts, out->fact_count) =
        (struct fact){.type = type, .run_id = step->state->trace_id, .at = step->now, .data = data};
}

void add_message(struct step *step, struct message message)
{
    struct outcome *out = step->out;
    message.seq = (int64_t)out->fact_count;
    message.run_id = step->state->trace_id;
    message.created = step->now;
    *ROWS_ADD(step->arena, out->messages, out->message_count) = message;
}

void add_audit(struct step *step, enum audit_action action, const struct interaction *interaction,
               const struct call *call, str why, str about)
{
    struct outcome *out = step->out;
    struct audit_entry *entry = ROWS_ADD(step->arena, out->audit, out->audit_count);
    *entry = (struct audit_entry){.action = action, .why = why, .at = step->now};
    if (interaction) {
        entry->interaction_id = interaction->id;
        entry->who = interaction->answered_by;
        entry->via = interaction->via;
        entry->call_id = interaction->call_id;
    }
    if (call) entry->call_id = call->call_id;
    bool clock = str_eq(entry->via, STR("timer")); /* nobody: time has passed */
    if (!entry->who.len && !clock) entry->who = step->state->user_id;
    if (!entry->via.len) entry->via = STR("run");
    crypto_sha256(about, entry->hash);
}

void move_to_stage(struct step *step, enum stage stage)
{
    if (step->state->stage == stage) return;
    add_fact(step, FACT_STEP_FINISH, fact_step(step->arena, step->state->stage));
    step->state->stage = stage;
    add_fact(step, FACT_STEP_START, fact_step(step->arena, stage));
}

void begin_leg(struct step *step)
{
    const struct view *view = step->view;
    struct outcome *out = step->out;
    if (view->leg_open || out->leg_begins) return;
    out->leg_begins = true;
    step->state->task_id = step_id(step, "task_");
    step->state->leg_since = step->now;
    if (!view->cancelling) out->status = RUN_RUNNING;
    add_fact(step, FACT_RUN_STARTED,
             fact_run_started(step->arena, &(struct start){.task_id = step->state->task_id,
                                                           .leg = view->legs + 1,
                                                           .resumed = true,
                                                           .agent = view->agent,
                                                           .model = view->model}));
}

struct work_call *find_call(struct step *step, str call_id)
{
    for (size_t i = 0; i < step->call_count; i++)
        if (str_eq(step->calls[i].call.call_id, call_id)) return &step->calls[i];
    return NULL;
}

static const struct tool *pressed_alone(const struct step *step)
{
    const struct tool *tool = tools_find(step->input->tools, step->state->press_tool);
    return tool && tool->person ? tool : NULL;
}

const struct tool *step_tool(const struct step *step, str name)
{
    const struct tool *tool = agent_tool(step->input->agent, name);
    bool pressed = !tool && str_eq(name, step->state->press_tool);
    return pressed ? pressed_alone(step) : tool;
}

/* {"run_id", "stage", "task_id"?, "stopped"?} */
str message_metadata(struct step *step, bool stopped)
{
    const struct state *state = step->state;
    AUTO(buf_done) struct buf buf;
    buf_init(&buf, FACT_FRAME_BYTES_MAX);
    struct json_writer w;
    json_write_begin(&w, &buf);
    json_object(&w);
    json_member(&w, STR("run_id"), state->trace_id);
    json_member(&w, STR("stage"), str_c(stage_name(state->stage)));
    if (state->task_id.len) json_member(&w, STR("task_id"), state->task_id);
    if (stopped) {
        json_member_bool(&w, STR("stopped"), true);
    }
    json_object_end(&w);
    assert(!buf.full);
    return arena_str(step->arena, buf_str(&buf));
}

/* ---- what follows ---- */

/* Back to where the first of the set interrupted. */
static void resume(struct step *step)
{
    struct state *state = step->state;
    state_set_phase(state, state->resume.phase);
    state->current_step = state->resume.step;
    state->resume = (struct resume){0};
}

/* Nothing is left of the turn that the server still has to do or to show. A call that asks people
 * something waits like one that has not left, though it is under way. */
static bool turn_settled(const struct step *step)
{
    for (size_t i = 0; i < step->call_count; i++) {
        const struct call *call = &step->calls[i].call;
        bool waits = call->state == CALL_WAITING || call->state == CALL_UNCERTAIN ||
                     (call->state == CALL_STARTED && asks_open(step, call->call_id));
        if (!call->result_id.len && !waits) return false;
    }
    return true;
}

/* Somebody says to the model what to do instead of the call. */
static bool words_for_model(const struct input *input)
{
    bool any = false;
    for (size_t i = 0; input->kind == INPUT_RESOLVE && i < input->resolution_count; i++) {
        const struct resolution *r = &input->resolutions[i];
        bool instead = r->decision == DECISION_REJECT || r->decision == DECISION_RESPOND;
        any = any || (instead && r->text.len);
    }
    return any;
}

/* A button does what it says, and no more. Words of a person want an answer all the same: with them
 * it is a conversation like any other; unless they are for another agent, which is told elsewhere. */
static void end_press(struct step *step)
{
    if (words_for_model(step->input) && !pressed_alone(step))
        step->state->press_tool = step->state->press_args = STR_EMPTY;
    else
        finish_run(step, RUN_COMPLETED, NULL);
}

void settle(struct step *step)
{
    if (step->out->ended) return;
    bool waits = step->open_count || (fronts_open(step) && !PLANT(CLIENT_FORGOTTEN));
    if (step->view->cancelling) {
        step->out->status = RUN_CANCELLING;
        if (!waits && turn_settled(step)) finish_run(step, RUN_CANCELLED, NULL);
        return;
    }
    if ((!waits || PLANT(RESUME_EARLY)) && step->state->phase == PHASE_INTERRUPTED) resume(step);
    bool leave = PLANT(LEG_LEFT_OPEN) && step->input->kind == INPUT_SHOW;
    if (!turn_settled(step)) return;
    if (!waits) count_calls(step);
    if (waits && !leave) pause_leg(step);
    if (!waits && step->call_count && step->state->press_tool.len) end_press(step);
}

/* ---- a step ---- */

static void step_open(struct step *step)
{
    const struct view *view = step->view;
    step->call_count = view->calls.count;
    step->calls = arena_array(step->arena, view->calls.count, sizeof *step->calls);
    for (size_t i = 0; i < view->calls.count; i++) step->calls[i].call = view->calls.rows[i];
    step->open_count = view->open.count;
    size_t open_max =
        view->open.count + CALLS_TURN_MAX + 1; /* mostly none, so they are not zeroed */
    step->open = arena_space(step->arena, open_max * sizeof *step->open);
    for (size_t i = 0; i < view->open.count; i++) step->open[i] = view->open.rows[i];
}

static void name_rows(struct step *step)
{
    struct state *state = step->state;
    state->interaction_ids =
        (struct id_list){arena_array(step->arena, step->open_count, sizeof(str)), step->open_count};
    for (size_t i = 0; i < step->open_count; i++) state->interaction_ids.ids[i] = step->open[i].id;
    state->call_ids = (struct id_list){arena_array(step->arena, step->call_count, sizeof(str)), 0};
    for (size_t i = 0; i < step->call_count; i++)
        if (!step->calls[i].call.result_id.len)
            state->call_ids.ids[state->call_ids.count++] = step->calls[i].call.call_id;
}

static void step_close(struct step *step)
{
    struct outcome *out = step->out;
    name_rows(step);
    out->calls = arena_array(step->arena, step->call_count, sizeof *out->calls);
    for (size_t i = 0; i < step->call_count; i++) {
        const struct work_call *work = &step->calls[i];
        if (!work->touched && !work->added) continue;
        out->calls[out->call_count++] =
            (struct call_change){work->call, work->added, work->started};
    }
}

void graph_step(struct arena *arena, const struct view *view, const struct input *input,
                struct outcome *ret_outcome)
{
    assert(view->state.phase != PHASE_DONE);
    struct outcome out = {.state = view->state,
                          .status = view->cancelling ? RUN_CANCELLING
                                    : view->leg_open ? RUN_RUNNING
                                                     : RUN_WAITING};
    struct step step = {.arena = arena,
                        .now = input->now,
                        .view = view,
                        .input = input,
                        .out = &out,
                        .state = &out.state};
    step_open(&step);
    step.usage = usage_of(arena, &input->turn.usage, &input->turn.price);
    state_add_usage(&out.state, &step.usage);
    if (input->from_message > out.state.from_message) out.state.from_message = input->from_message;
    switch (input->kind) {
    case INPUT_TURN:
        on_turn(&step);
        break;
    case INPUT_DOWN:
        on_down(&step);
        break;
    case INPUT_CANCEL:
        on_cancel(&step);
        break;
    case INPUT_RESOLVE:
        on_resolve(&step);
        break;
    case INPUT_START:
        on_start(&step);
        break;
    case INPUT_RESULT:
        on_result(&step);
        break;
    case INPUT_LOST:
        on_lost(&step);
        break;
    case INPUT_ASKED:
        on_asked(&step);
        break;
    case INPUT_AWAY:
        on_away(&step);
        break;
    case INPUT_SHOW:
        show_results(&step);
        settle(&step);
        break;
    case INPUT_OVERDUE:
        deliver_mechanically(&step, RUN_EXHAUSTED);
        break;
    case INPUT_ALONE:
        on_alone(&step);
        break;
    case INPUT_DAMAGED:
        on_damaged(&step);
        break;
    }
    step_close(&step);
    *ret_outcome = out;
}

void graph_start(struct arena *arena, const struct start *start, struct outcome *ret_outcome)
{
    struct outcome out = {
        .state =
            {
                .trace_id = start->run_id,
                .user_id = start->owner,
                .conversation_id = start->thread_id,
                .task_id = start->task_id,
                .phase = PHASE_CHATTING,
                .max_rounds = start->max_rounds ? start->max_rounds : AGENT_ROUNDS_MAX,
                .leg_since = start->now,
                .from_message = start->from_message,
                .locale = start->locale,
                .timezone = start->timezone,
                .press_tool = start->press_tool,
                .press_args = start->press_args,
            },
        .status = RUN_RUNNING,
        .leg_begins = true,
    };
    struct step step = {.arena = arena, .now = start->now, .out = &out, .state = &out.state};
    add_fact(&step, FACT_RUN_STARTED, fact_run_started(arena, start));
    add_fact(&step, FACT_STEP_START, fact_step(arena, STAGE_INTENT));
    *ret_outcome = out;
}

/* ---- effects ---- */

bool call_repeatable(const struct call *call)
{
    return !call->write || call->idempotent || PLANT(LOST_REPEATED);
}

struct tally {
    unsigned ready, started, unshown;
    unsigned front; /* that wait for the client */
};

static struct tally tally(const struct view *view)
{
    struct tally t = {0};
    for (size_t i = 0; i < view->calls.count; i++) {
        const struct call *call = &view->calls.rows[i];
        t.ready += call_ready(call);
        t.started += call->state == CALL_STARTED;
        t.unshown += call_state_settled(call->state) && !call->result_id.len;
        t.front += front_waits(call);
    }
    return t;
}

enum effect graph_effect(const struct view *view)
{
    struct tally t = tally(view);
    bool waits = view->open.count || t.front;
    if (view->state.phase == PHASE_DONE) return EFFECT_NONE;
    if (view->cancelling && (waits || t.ready || !(t.started || t.unshown))) return EFFECT_CANCEL;
    if (t.unshown) return EFFECT_SHOW;
    if (t.ready && t.started < CALLS_STARTED_MAX && !view->cancelling) return EFFECT_START;
    if (t.started || waits) return EFFECT_NONE;
    return view->state.press_tool.len ? EFFECT_PRESS : EFFECT_MODEL;
}

enum node graph_node(const struct state *state)
{
    uint32_t rounds = state->max_rounds + PLANT(ROUND_TOO_MANY);
    if (plan_done(state) || state->round_used >= rounds) return NODE_DELIVER;
    if (state->phase == PHASE_PLANNING) return NODE_PLAN;
    return state->phase == PHASE_CHATTING ? NODE_CHAT : NODE_EXECUTE;
}

msec graph_deadline(const struct state *state, const struct agent *agent)
{
    if (!agent->active_ms_max) return 0;
    msec left = agent->active_ms_max - (msec)state->active_ms;
    return state->leg_since + (left > 0 ? left : 0);
}

bool graph_overdue(const struct state *state, const struct agent *agent, msec now)
{
    msec deadline = graph_deadline(state, agent);
    uint64_t tokens = state->input_tokens + state->output_tokens;
    /* A model that was exchanged in mid-run may count in other money. */
    bool same = str_eq(state->currency, str_c(agent->model.price.currency));
    return (deadline && now >= deadline) || (agent->tokens_max && tokens >= agent->tokens_max) ||
           (agent->cost_max && same && state->cost >= agent->cost_max);
}
