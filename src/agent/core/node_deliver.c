/* SPDX-License-Identifier: Apache-2.0
 *
 * Node deliver, and every way in which a leg or a run ends.
 *
 * With a plan, or when the rounds are used up, the model is asked once more, without tools, for a
 * report. If it cannot give one, the report is made mechanically: each step with its mark.
 */
#include "agent/core/front.h"
#include "agent/core/node.h"
#include "base/limits.h"
#include "base/plant.h"

/* ---- the plan ---- */

void count_calls(struct step *step)
{
    struct call *calls = arena_array(step->arena, step->call_count, sizeof *calls);
    for (size_t i = 0; i < step->call_count; i++) calls[i] = step->calls[i].call;
    plan_count(step->arena, step->state, calls, step->call_count);
}

/* Every step gets its last word, and those who follow are told if that changes one. */
static void end_plan(struct step *step)
{
    struct state *state = step->state;
    count_calls(step);
    if (!plan_active(state) || state->plan.steps[state->current_step].status != STEP_RUNNING)
        return;
    state->plan = plan_ended(step->arena, state);
    add_fact(step, FACT_PLAN, fact_plan(step->arena, &state->plan, state->current_step));
}

/* ---- ends ---- */

static void end_leg(struct step *step)
{
    struct state *state = step->state;
    if (step->now > state->leg_since) state->active_ms += (uint64_t)(step->now - state->leg_since);
    if (state->active_ms > STATE_TOKENS_MAX) state->active_ms = STATE_TOKENS_MAX;
}

static void end_run(struct step *step, enum run_status status)
{
    state_set_phase(step->state, PHASE_DONE);
    step->out->status = status;
    step->out->ended = !(PLANT(SNAPSHOT_KEPT) && status == RUN_EXHAUSTED);
}

/* Outcome and status are one word for every end that is not an error. */
void finish_run(struct step *step, enum run_status status, const char *code)
{
    end_plan(step);
    end_leg(step);
    add_fact(step, FACT_STEP_FINISH, fact_step(step->arena, step->state->stage));
    add_fact(step, FACT_RUN_FINISHED,
             fact_run_finished(step->arena,
                               &(struct run_finished){.outcome = run_status_name(status),
                                                      .code = code,
                                                      .usage = state_usage(step->state)}));
    end_run(step, status);
}

/* Calls that are still open when a run fails get their result, so that the conversation stays one
 * that a model can go on with. */
void fail_run(struct step *step, const char *code, str message, bool retryable)
{
    cancel_open(step);
    end_unstarted(step, TEXT_DROPPED);
    show_results(step);
    end_plan(step);
    end_leg(step);
    add_fact(step, FACT_STEP_FINISH, fact_step(step->arena, step->state->stage));
    add_fact(step, FACT_RUN_ERROR, fact_run_error(step->arena, code, message, retryable));
    end_run(step, RUN_FAILED);
}

/* Calls and questions are rows of their own and get their end; which stage was open is not known. */
void on_damaged(struct step *step)
{
    cancel_open(step);
    end_started(step);
    end_unstarted(step, TEXT_DROPPED);
    show_results(step);
    add_fact(step, FACT_RUN_ERROR,
             fact_run_error(step->arena, "snapshot_damaged", step->input->why_text, false));
    end_run(step, RUN_FAILED);
}

/* The leg is over; the run waits, and costs nothing until an answer or a result comes. */
void pause_leg(struct step *step)
{
    str *ids = arena_array(step->arena, step->open_count, sizeof *ids);
    str *calls = arena_array(step->arena, step->call_count, sizeof *calls);
    size_t pending = 0;
    for (size_t i = 0; i < step->open_count; i++) ids[i] = step->open[i].id;
    for (size_t i = 0; i < step->call_count; i++)
        if (front_waits(&step->calls[i].call)) calls[pending++] = step->calls[i].call.call_id;
    end_leg(step);
    add_fact(step, FACT_RUN_FINISHED,
             fact_run_finished(step->arena,
                               &(struct run_finished){.outcome = "interrupted",
                                                      .interactions = ids,
                                                      .interaction_count = step->open_count,
                                                      .pending = calls,
                                                      .pending_count = pending,
                                                      .usage = state_usage(step->state)}));
    step->out->status = RUN_WAITING;
}

/* ---- the report ---- */

static enum run_status report_status(const struct state *state)
{
    return plan_done(state) ? RUN_COMPLETED : RUN_EXHAUSTED;
}

static const char *report_code(enum run_status status)
{
    return status == RUN_EXHAUSTED ? "budget_exhausted" : NULL;
}

void deliver_text(struct step *step)
{
    enum run_status status = report_status(step->state);
    if (!step->input->turn.text.len) {
        deliver_mechanically(step, status);
        return;
    }
    end_plan(step);
    move_to_stage(step, STAGE_REPORT);
    add_turn(step, false, STR_EMPTY);
    finish_run(step, status, report_code(status));
}

/* "- [ ] Order tea (rejected)". A step is one line, so that none can look like several. */
static void put_step(struct step *step, struct buf *out, const struct plan_step *planned)
{
    static const enum text ends[STEP_STATUS_COUNT] = {[STEP_FAILED] = TEXT_STEP_FAILED,
                                                      [STEP_REJECTED] = TEXT_STEP_REJECTED,
                                                      [STEP_SKIPPED] = TEXT_STEP_SKIPPED};
    bool done = planned->status == STEP_DONE;
    buf_append(out, done ? STR("\n- [x] ") : STR("\n- [ ] "));
    buf_append(out, text_one_line(step->arena, planned->content));
    if (!done || planned->by_model)
        buf_append(out,
                   step_say(step, done ? TEXT_STEP_BY_MODEL : ends[planned->status], STR_EMPTY));
}

static str mechanical_text(struct step *step, enum run_status status)
{
    const struct state *state = step->state;
    AUTO(buf_done) struct buf buf;
    buf_init(&buf, STATE_BYTES_MAX);
    enum text first = status == RUN_EXHAUSTED ? TEXT_BUDGET : TEXT_REPORT;
    buf_append(&buf, text_say(step->arena, first, state->locale, STR_EMPTY));
    for (size_t i = 0; i < state->plan.count; i++) put_step(step, &buf, &state->plan.steps[i]);
    return arena_str(step->arena, buf_str(&buf));
}

/* Nobody has seen previews of it: readers get it whole, as deltas made up from the fact. */
void deliver_mechanically(struct step *step, enum run_status status)
{
    end_plan(step);
    str text = mechanical_text(step, status);
    str content = text_json(step->arena, text), id = step_id(step, "msg_");
    struct usage none = {0};
    move_to_stage(step, STAGE_REPORT);
    struct text_end end = {.message_id = id, .content = content};
    add_fact(step, FACT_TEXT_END, fact_text_end(step->arena, &end));
    add_message(step, (struct message){
                          .id = id,
                          .role = STR("assistant"),
                          .content = content,
                          .metadata = message_metadata(step, false),
                          .usage = usage_json(step->arena, &none),
                          .plain = text,
                      });
    finish_run(step, status, report_code(status));
}

/* ---- the model stays away ---- */

void on_down(struct step *step)
{
    const struct input *input = step->input;
    str text = input->why_text;
    if (!text.len || text.len > RUN_ERROR_BYTES_MAX || !utf8_valid(text))
        text = str_c(err_title(input->why));
    if (graph_node(step->state) == NODE_DELIVER) {
        deliver_mechanically(step, report_status(step->state));
    } else if (input->why == ERR_MODEL_UNAVAILABLE) {
        open_connection_lost(step, text);
        settle(step);
    } else {
        fail_run(step, "model_error", text, false);
    }
}

/* ---- the person stops the run ---- */

static bool turn_is_text(const struct turn *turn)
{
    return utf8_valid(turn->text) && utf8_valid(turn->reasoning);
}

/* What people have read of the answer stays; reasoning stays only with it. Calls under way are
 * waited for: what they did is told as it was. */
void on_cancel(struct step *step)
{
    const struct turn *turn = &step->input->turn;
    if (turn->text.len && turn_is_text(turn)) add_turn(step, true, STR_EMPTY);
    if (has_state(step, CALL_STARTED)) begin_leg(step);
    cancel_open(step);
    end_unstarted(step, TEXT_CANCELLED);
    show_results(step);
    step->out->status = RUN_CANCELLING;
    if (!has_state(step, CALL_STARTED)) finish_run(step, RUN_CANCELLED, NULL);
}
