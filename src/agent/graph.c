/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph: what a run does with what happens to it. So far it has one node, chat.
 *
 *               graph_start
 *                    |
 *                    v       INPUT_TURN, text only      completed
 *     effect:      chat ------------------------------> end
 *     the model      |  |    INPUT_DOWN, tool calls     failed
 *                    |  +-----------------------------> end
 *                    |       INPUT_CANCEL               cancelled
 *                    +--------------------------------> end
 *
 * Invariants:
 *  1. A leg is run.started, then facts, then one run.finished or run.error, which is last.
 *  2. At most one step is open, the one state.stage names; it is finished before the leg ends.
 *  3. A state that is not done either has an effect or waits for a person. So a run cannot be
 *     forgotten: whoever loads it knows what to do.
 *  4. The same state and input give the same bytes: nothing is read but the arguments.
 *
 * To add a node: a function of struct step in the switch of graph_step, and the effect of its phase
 * in graph_effect.
 */
#include "agent/graph.h"

#include "base/json.h"
#include "base/limits.h"

enum {
    /* step.finish, step.start, reasoning.end, text.message.end, step.finish, run.finished */
    STEP_FACTS_MAX = 6,
    STEP_MESSAGES_MAX = 2, /* reasoning and answer */
};

/* One step at work. */
struct step {
    struct arena *arena;
    msec now;
    const struct input *input; /* NULL at the start of a run */
    struct outcome *out;
};

static void step_begin(struct step *step)
{
    step->out->facts = arena_array(step->arena, STEP_FACTS_MAX, sizeof *step->out->facts);
    step->out->messages = arena_array(step->arena, STEP_MESSAGES_MAX, sizeof *step->out->messages);
}

static void add_fact(struct step *step, const char *type, str data)
{
    struct outcome *out = step->out;
    assert(out->fact_count < STEP_FACTS_MAX);
    out->facts[out->fact_count++] =
        (struct fact){.type = type, .run_id = out->state.trace_id, .at = step->now, .data = data};
}

/* The history row of the fact added last. */
static void add_message(struct step *step, struct message message)
{
    struct outcome *out = step->out;
    assert(out->message_count < STEP_MESSAGES_MAX);
    message.seq = (int64_t)out->fact_count;
    message.run_id = out->state.trace_id;
    message.created = step->now;
    out->messages[out->message_count++] = message;
}

static void open_stage(struct step *step, enum stage stage)
{
    step->out->state.stage = stage;
    add_fact(step, FACT_STEP_START, fact_step(step->arena, stage));
}

static void close_stage(struct step *step)
{
    add_fact(step, FACT_STEP_FINISH, fact_step(step->arena, step->out->state.stage));
}

static void move_to_stage(struct step *step, enum stage stage)
{
    if (step->out->state.stage == stage) return;
    close_stage(step);
    open_stage(step, stage);
}

/* ---- the ends of a run ---- */

static void end_run(struct step *step, enum run_status status)
{
    state_set_phase(&step->out->state, PHASE_DONE);
    step->out->status = status;
    step->out->ended = true;
}

/* Outcome and status are one word for every end that is not an error. */
static void finish_run(struct step *step, enum run_status status)
{
    const struct state *state = &step->out->state;
    struct model_usage usage = {state->input_tokens, state->output_tokens};
    close_stage(step);
    add_fact(step, FACT_RUN_FINISHED,
             fact_run_finished(step->arena, run_status_name(status), &usage));
    end_run(step, status);
}

static void fail_run(struct step *step, const char *code, str message, bool retryable)
{
    close_stage(step);
    add_fact(step, FACT_RUN_ERROR, fact_run_error(step->arena, code, message, retryable));
    end_run(step, RUN_FAILED);
}

/* ---- messages of the model ---- */

/* {"run_id", "stage", "task_id"?, "stopped"?} */
static str message_metadata(struct step *step, bool stopped)
{
    const struct state *state = &step->out->state;
    AUTO(buf_done) struct buf buf;
    buf_init(&buf, FACT_FRAME_BYTES_MAX);
    struct json_writer w;
    json_write_begin(&w, &buf);
    json_object(&w);
    json_member(&w, STR("run_id"), state->trace_id);
    json_member(&w, STR("stage"), str_c(stage_name(state->stage)));
    if (state->task_id.len) json_member(&w, STR("task_id"), state->task_id);
    if (stopped) {
        json_key(&w, STR("stopped"));
        json_bool(&w, true);
    }
    json_object_end(&w);
    assert(!buf.full);
    return arena_str(step->arena, buf_str(&buf));
}

/* Previews have shown the message under the id of its attempt, if there were any. */
static str turn_message_id(struct step *step)
{
    if (step->input->turn.message_id.len) return step->input->turn.message_id;
    char id[ID_BYTES];
    id_make(step->input->random, id);
    return arena_str(step->arena, str_c(id));
}

/* The reasoning's fact has the id of the message it belongs to; its row needs one of its own. */
static void add_reasoning(struct step *step, str message_id, str metadata)
{
    str reasoning = step->input->turn.reasoning;
    if (!reasoning.len) return;
    str content = text_json(step->arena, reasoning);
    add_fact(step, FACT_REASONING_END, fact_reasoning_end(step->arena, message_id, content));
    add_message(step, (struct message){
                          .id = arena_printf(step->arena, "%.*s-reasoning", STR_ARG(message_id)),
                          .role = STR("reasoning"),
                          .content = content,
                          .metadata = metadata,
                          .plain = reasoning,
                      });
}

/* The model's turn as facts and rows. */
static void add_turn(struct step *step, bool stopped)
{
    const struct turn *turn = &step->input->turn;
    str id = turn_message_id(step);
    str content = text_json(step->arena, turn->text);
    str metadata = message_metadata(step, stopped);
    add_reasoning(step, id, metadata);

    struct text_end end = {
        .message_id = id, .content = content, .usage = turn->usage, .stopped = stopped};
    add_fact(step, FACT_TEXT_END, fact_text_end(step->arena, &end));
    add_message(step, (struct message){
                          .id = id,
                          .role = STR("assistant"),
                          .content = content,
                          .metadata = metadata,
                          .usage = usage_json(step->arena, &turn->usage),
                          .plain = turn->text,
                      });
}

/* ---- the inputs ---- */

static bool turn_is_text(const struct turn *turn)
{
    return utf8_valid(turn->text) && utf8_valid(turn->reasoning);
}

/* A turn without calls is the answer. */
static void on_turn(struct step *step)
{
    const struct turn *turn = &step->input->turn;
    if (turn->call_count) {
        fail_run(step, "model_error", STR("The model called a tool, but this agent has none"),
                 false);
        return;
    }
    if (!turn_is_text(turn)) {
        fail_run(step, "model_error", STR("The model's answer is not UTF-8"), false);
        return;
    }
    move_to_stage(step, STAGE_REPORT);
    add_turn(step, false);
    finish_run(step, RUN_COMPLETED);
}

static void on_down(struct step *step)
{
    const struct input *input = step->input;
    bool retryable = input->why == ERR_MODEL_UNAVAILABLE;
    str text = input->why_text;
    if (!text.len || text.len > RUN_ERROR_BYTES_MAX || !utf8_valid(text))
        text = str_c(err_title(input->why));
    fail_run(step, retryable ? err_code(ERR_MODEL_UNAVAILABLE) : "model_error", text, retryable);
}

/* What people have read of the answer stays; reasoning stays only with it. */
static void on_cancel(struct step *step)
{
    const struct turn *turn = &step->input->turn;
    if (turn->text.len && turn_is_text(turn)) add_turn(step, true);
    finish_run(step, RUN_CANCELLED);
}

void graph_step(struct arena *arena, const struct state *state, const struct input *input,
                struct outcome *ret_outcome)
{
    assert(state->phase != PHASE_DONE);
    struct outcome out = {.state = *state, .status = RUN_RUNNING};
    struct step step = {.arena = arena, .now = input->now, .input = input, .out = &out};
    step_begin(&step);
    state_add_usage(&out.state, &input->turn.usage);
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
    }
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
            },
        .status = RUN_RUNNING,
    };
    struct step step = {.arena = arena, .now = start->now, .out = &out};
    step_begin(&step);
    add_fact(&step, FACT_RUN_STARTED, fact_run_started(arena, start));
    open_stage(&step, STAGE_INTENT);
    *ret_outcome = out;
}

enum effect graph_effect(const struct state *state)
{
    static const enum effect effects[PHASE_COUNT] = {
        [PHASE_CHATTING] = EFFECT_MODEL,   [PHASE_PLANNING] = EFFECT_MODEL,
        [PHASE_EXECUTING] = EFFECT_MODEL,  [PHASE_WAITING_CONFIRM] = EFFECT_NONE,
        [PHASE_INTERRUPTED] = EFFECT_NONE, [PHASE_DONE] = EFFECT_NONE,
    };
    return effects[state->phase];
}
