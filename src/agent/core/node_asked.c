/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that need somebody on the way: the tool asks a person something, or its server stays away.
 *
 *   started -- asks, and stays on the line --> started, a question is open -- reply --> the shell hands
 *      |                                                                                it over
 *      +------ asks, and ends with it -------> waiting -- all replies --> approved -- on_start: again
 *      +------ never reached, all attempts --> waiting -- continue -----> approved -- on_start: again
 *                                                 '------ give up ------> failed
 *
 * A question is an interaction like any other: it belongs to the set, and the run goes on when nothing
 * of the set is left. What was asked and what was said stands in the call's row (asked.h): a call that
 * is started again has it all, and what it asks again in the same place is not asked twice.
 */
#include "agent/core/asked.h"
#include "agent/core/node.h"
#include "base/limits.h"
#include "base/plant.h"
#include "base/rows.h"
#include "tool/elicit.h"

/* A row that cannot be read is as good as none: its questions are asked anew. */
static struct asked asked_of(struct step *step, const struct call *call)
{
    struct asked asked;
    if (asked_parse(step->arena, call->asked, &asked)) asked = (struct asked){0};
    return asked;
}

static void keep(struct step *step, struct work_call *work, const struct asked *asked)
{
    work->touched = true;
    work->call.asked = asked_write(step->arena, asked);
}

static bool is_open(const struct step *step, str interaction_id)
{
    for (size_t i = 0; interaction_id.len && i < step->open_count; i++)
        if (str_eq(step->open[i].id, interaction_id)) return true;
    return false;
}

bool asks_open(const struct step *step, str call_id)
{
    for (size_t i = 0; i < step->open_count; i++)
        if (step->open[i].type == INTERACTION_ASK_USER && str_eq(step->open[i].call_id, call_id))
            return true;
    return false;
}

/* ---- asking ---- */

/* One that is not for people to see is declined at once; in a run that is being cancelled nobody is
 * asked, and the tool hears of that. */
static void ask(struct step *step, struct work_call *work, struct asked_question *row)
{
    struct interaction interaction = {.call_id = work->call.call_id};
    struct asking asking = {
        .tool = work->call.tool, .locale = step->state->locale, .question = &row->said.question};
    bool room = step->open_count < QUESTIONS_OPEN_MAX;
    if (step->view->cancelling) {
        row->said.reply.action = STR("cancel");
        return;
    }
    if (!room || asked_interaction(step->arena, &asking, &interaction, NULL)) {
        row->said.reply.action = STR("decline");
        return;
    }
    open_question(step, interaction);
    row->interaction_id = step->open[step->open_count - 1].id;
}

/* Rows from here on are of an earlier start of the call, which has asked something else. */
static void drop_from(struct step *step, struct asked *asked, size_t from)
{
    for (size_t i = from; i < asked->count; i++)
        close_question(step, asked->rows[i].interaction_id);
    if (asked->count > from) asked->count = from;
}

/* The same in the same place: it waits already, or has its answer. One that was closed without an answer,
 * because the call was lost or its server away, is asked anew. */
static bool known(const struct step *step, const struct asked *asked, size_t at, str hash)
{
    if (at >= asked->count || !str_eq(asked->rows[at].hash, hash)) return false;
    const struct asked_question *row = &asked->rows[at];
    bool told = row->said.reply.action.len || is_open(step, row->interaction_id);
    return told && !PLANT(ASKED_TWICE);
}

/* What was asked in the places before this one was answered without anybody. */
static void fill_up_to(struct step *step, struct asked *asked, size_t place)
{
    while (asked->count < place)
        *ROWS_ADD(step->arena, asked->rows, asked->count) =
            (struct asked_question){.said = {.reply = {.action = STR("decline")}}};
}

static void ask_all(struct step *step, struct work_call *work, struct asked *asked, size_t first)
{
    const struct tool_asked *now = step->input->asked;
    for (size_t i = 0; i < now->count; i++) {
        str hash = elicit_hash(step->arena, &now->questions[i]);
        if (known(step, asked, first + i, hash)) continue;
        drop_from(step, asked, first + i);
        fill_up_to(step, asked, first + i);
        struct asked_question *row = ROWS_ADD(step->arena, asked->rows, asked->count);
        *row = (struct asked_question){.said = {.question = now->questions[i]}, .hash = hash};
        ask(step, work, row);
    }
}

static bool all_known(struct step *step, const struct asked *asked)
{
    const struct tool_asked *now = step->input->asked;
    for (size_t i = 0; i < now->count; i++)
        if (!known(step, asked, now->first + i, elicit_hash(step->arena, &now->questions[i])))
            return false;
    return true;
}

static bool all_said(const struct asked *asked)
{
    for (size_t i = 0; i < asked->count; i++)
        if (!asked->rows[i].said.reply.action.len && !(i && PLANT(STARTS_EARLY))) return false;
    return true;
}

/* It has ended with its questions: nobody is asked any more if the run is being cancelled, or if the call
 * was sent back so often that it will never come to an end. True: it has its result. */
static bool end_asked(struct step *step, struct work_call *work)
{
    if (step->view->cancelling)
        end_call(step, work, CALL_CANCELLED, "cancelled",
                 step_say(step, TEXT_CANCELLED, STR_EMPTY));
    else if (work->call.attempts >= QUESTIONS_CALL_MAX)
        end_call(step, work, CALL_FAILED, "too_many_questions",
                 step_say(step, TEXT_ENDLESS, work->call.tool));
    else
        return false;
    show_results(step);
    return true;
}

void on_asked(struct step *step)
{
    const struct tool_asked *now = step->input->asked;
    struct work_call *work = find_call(step, step->input->call_id);
    if (!work || work->call.state != CALL_STARTED) return;
    struct asked asked = asked_of(step, &work->call);
    if (!now->ended && all_known(step, &asked)) return; /* the run waits for it as before */
    begin_leg(step);
    asked.state = now->state; /* none on the line: the tool has had that of an earlier end */
    if (now->ended) drop_from(step, &asked, 0);
    if (!now->ended || !end_asked(step, work)) {
        if (now->ended) work->call.state = CALL_WAITING;
        ask_all(step, work, &asked, now->ended ? 0 : now->first);
        if (now->ended && all_said(&asked)) work->call.state = CALL_APPROVED;
        keep(step, work, &asked);
    }
    settle(step);
}

/* ---- the reply ---- */

bool settle_asked(struct step *step, struct work_call *work, const struct interaction *interaction,
                  const struct resolution *r)
{
    struct asked asked = asked_of(step, &work->call);
    struct asked_question *row = NULL;
    for (size_t i = 0; i < asked.count; i++)
        if (str_eq(asked.rows[i].interaction_id, interaction->id)) row = &asked.rows[i];
    if (!row || graph_tool_is(work->call.tool)) return false;
    row->said.reply = asked_reply(step->arena, &row->said.question, interaction, r);
    keep(step, work, &asked);
    if (work->call.state == CALL_WAITING && all_said(&asked)) work->call.state = CALL_APPROVED;
    return true;
}

str drop_questions(struct step *step, struct work_call *work)
{
    struct asked asked = asked_of(step, &work->call);
    str open = STR_EMPTY;
    for (size_t i = 0; i < asked.count; i++) {
        if (!is_open(step, asked.rows[i].interaction_id) || PLANT(QUESTION_LEFT)) continue;
        open = asked.rows[i].said.question.message;
        close_question(step, asked.rows[i].interaction_id);
    }
    return PLANT(QUESTION_UNTOLD) ? STR_EMPTY : open;
}

/* ---- the server stays away ---- */

void on_away(struct step *step)
{
    struct work_call *work = find_call(step, step->input->call_id);
    if (!work || work->call.state != CALL_STARTED) return;
    str reason = step->input->why_text;
    begin_leg(step);
    drop_questions(step, work);
    if (step->view->cancelling) {
        end_call(step, work, CALL_CANCELLED, "cancelled",
                 step_say(step, TEXT_CANCELLED, STR_EMPTY));
        show_results(step);
    } else {
        work->touched = true;
        work->call.state = CALL_WAITING;
        work->call.content = reason; /* should the person give up */
        open_away(step, work, reason);
    }
    settle(step);
}

void settle_away(struct step *step, struct work_call *work, const struct interaction *interaction,
                 const struct resolution *r)
{
    (void)interaction;
    work->touched = true;
    if (r->decision == DECISION_CONTINUE || PLANT(AWAY_FORGOTTEN))
        work->call.state = CALL_APPROVED;
    else
        end_call(step, work, CALL_FAILED, "tool_unavailable",
                 work->call.content.len ? work->call.content
                                        : step_say(step, TEXT_NO_TOOL, work->call.tool));
}
