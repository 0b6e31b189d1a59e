/* SPDX-License-Identifier: Apache-2.0
 *
 * A button of a card, pressed: once for ever, and from the stored card alone.
 *
 *     body ─► thread, message (a reading job) ─► the stored card ─► its button ─► one write job
 *      │400      │404                              │404              │403           ├─ 200 action
 *      └─ audit  └─ no trace                       └─ audit          └─ audit       └─ 202 a run
 *
 * Invariants:
 * 1. The request only says which button. Tool, arguments, payload and label come from the card that
 *    the server stored; a body that brings more is refused, and that is written down.
 * 2. A press answers a question of the very call that made the card, and nothing else that is open:
 *    no other question, no approval, no unknown outcome. What it starts meanwhile waits its turn.
 * 3. One button of one message has one effect for ever: its run id is made from both, and whoever
 *    presses again gets the first answer, from the row that was committed with the effect.
 * 4. A call that a button asks for is a call like any other: policy, approval, journal.
 *
 * To add a kind of action: card_action.h, and a branch in act().
 */
#include "thread/press_button.h"

#include <string.h>

#include "agent/core/facts.h"
#include "agent/core/interaction.h"
#include "agent/shell/begin.h"
#include "agents/agents.h"
#include "base/limits.h"
#include "feed/interaction_json.h"
#include "server/server.h"
#include "thread/stored_cards.h"

struct reading {
    struct job job;
    struct press_button *press;
};

/* ---- refusals ---- */

static enum err actions_refuse(struct press_button *press, struct db *db, int64_t thread)
{
    change_refuse(&press->tc.change, refusal_err(press->refusal), &press->why, STR_EMPTY,
                  STR_EMPTY);
    return settle_refused(db, &press->settle, thread, NULL, press->refusal);
}

/* More in the body than which button: refused to everybody, written down for whoever has the
 * thread. */
static enum err forged_apply(struct change *change, struct db *db)
{
    struct press_button *press = (struct press_button *)(void *)change;
    thread_change_reset(&press->tc);
    press->settle.now = change->now;
    enum err e = thread_find(db, change_arena(change), change->by.who.user, press->thread_id,
                             &press->tc.thread);
    if (e == ERR_NOT_FOUND) {
        change->why = press->why;
        return ERR_INVALID_FIELD;
    }
    if (e) return e;
    change->thread = press->tc.thread.id;
    return actions_refuse(press, db, press->tc.thread.id);
}

/* ---- what a press does ---- */

/* Pressed before: the same answer. ERR_NOT_FOUND: it is the first time. */
static enum err press_repeated(struct press_button *press, struct db *db)
{
    struct change *change = &press->tc.change;
    struct accepted known;
    enum err e =
        accepted_find(db, change_arena(change), press->thread, press->start.run_id, &known);
    if (e) return e;
    if (memcmp(known.hash, press->hash, HASH_BYTES) != 0)
        return fault_field(&change->why, ERR_IDEMPOTENCY_MISMATCH, "actionId",
                           "the runId of this button was used for another request");
    change->repeated = true;
    change->status = 202;
    change->body = known.answer;
    return OK;
}

static enum err accept_press(struct press_button *press, struct db *db, const struct told *told)
{
    struct change *change = &press->tc.change;
    change->status = 202;
    change->body = accepted_json(&press->tc, told);
    struct accepted accepted = {.answer = change->body};
    memcpy(accepted.hash, press->hash, HASH_BYTES);
    return accepted_add(db, press->thread, press->start.run_id, &accepted, change->now);
}

/* The open question that was asked by the call that made the card; NULL: none. */
static const struct interaction *own_question(const struct press_button *press,
                                              const struct interaction_list *open)
{
    for (size_t i = 0; press->call_id.len && i < open->count; i++)
        if (open->rows[i].type == INTERACTION_ASK_USER &&
            str_eq(open->rows[i].call_id, press->call_id))
            return &open->rows[i];
    return NULL;
}

static enum err actions_answer(struct press_button *press, struct db *db,
                               const struct interaction *question, int64_t seq)
{
    struct change *change = &press->tc.change;
    struct arena *arena = change_arena(change);
    struct settlement s;
    struct run run;
    enum err e = settle_answer(db, arena, &press->settle, question->id,
                               card_action_answer(arena, &press->action, question->choices), &s);
    if (e) return e;
    thread_change_stepped(&press->tc, &s.stepped);
    if (s.refusal) {
        change_refuse(change, refusal_err(s.refusal), &s.why, STR("interaction"),
                      interaction_json(arena, &s.interaction, press->settle.user));
        return OK;
    }
    e = run_find(db, arena, press->thread, question->run_id, &run); /* its leg may be a new one */
    if (e) return e;
    return accept_press(
        press, db,
        &(struct told){.run_id = run.run_id,
                       .task_id = run.task_id,
                       .seq = seq,
                       .answered = arena_printf(arena, "[\"%.*s\"]", STR_ARG(question->id))});
}

/* {"action":{"messageId","actionId"}} */
static str pressed_metadata(const struct press_button *press, struct arena *arena)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, 6 * (press->message_id.len + press->action_id.len) + 64);
    json_object(&doc.w);
    json_key(&doc.w, STR("action"));
    json_object(&doc.w);
    json_member(&doc.w, STR("messageId"), press->message_id);
    json_member(&doc.w, STR("actionId"), press->action_id);
    json_object_end(&doc.w);
    json_object_end(&doc.w);
    assert(!doc.buf.full);
    return json_doc_copy(&doc, arena);
}

/* The press as a message of the person, and its run. */
static enum err say_press(struct press_button *press, struct db *db,
                          const struct interaction_list *open, int64_t seq)
{
    struct change *change = &press->tc.change;
    struct arena *arena = change_arena(change);
    bool tool = press->action.kind == ACTION_TOOL;
    str text = tool ? press->action.label : card_action_text(arena, &press->action);
    struct message message = {.id = press->said_id,
                              .role = STR("user"),
                              .run_id = press->start.run_id,
                              .content = text_json(arena, text),
                              .metadata = pressed_metadata(press, arena),
                              .plain = text,
                              .created = change->now};
    enum err e = start_run(&press->tc, db, &press->start, &message, 1, false, seq);
    if (e) return e;
    return accept_press(press, db,
                        &(struct told){.run_id = press->start.run_id,
                                       .task_id = press->start.task_id,
                                       .seq = seq,
                                       .queued = open->count});
}

static enum err act(struct press_button *press, struct db *db)
{
    struct change *change = &press->tc.change;
    struct arena *arena = change_arena(change);
    struct interaction_list open;
    int64_t seq = press->tc.thread.last_seq;
    enum err e = interactions_of_thread(db, arena, press->thread, &open);
    if (e) return e;
    const struct interaction *question =
        press->action.kind == ACTION_PAYLOAD ? own_question(press, &open) : NULL;
    return question ? actions_answer(press, db, question, seq) : say_press(press, db, &open, seq);
}

static enum err press_apply(struct change *change, struct db *db)
{
    struct press_button *press = (struct press_button *)(void *)change;
    struct arena *arena = change_arena(change);
    thread_change_reset(&press->tc);
    press->settle.now = change->now;
    enum err e = thread_find(db, arena, change->by.who.user, press->thread_id, &press->tc.thread);
    if (e) return e;
    if (press->tc.thread.id != press->thread) return ERR_NOT_FOUND; /* deleted and made anew */
    change->thread = press->thread;
    e = press_repeated(press, db);
    if (e != ERR_NOT_FOUND) return e;
    if (press->refusal) return actions_refuse(press, db, press->thread);
    if (press->action.ours) {
        e = act(press, db);
        if (!e) thread_change_load(&press->tc, db);
        return e;
    }
    change->status = 200;
    change->body = arena_printf(arena, "{\"action\":%.*s}", STR_ARG(press->action.json));
    return OK;
}

/* ---- the card ---- */

/* May this button do what it says? */
static enum refusal judge_button(const struct press_button *press, const struct agent *agent)
{
    const struct card_action *action = &press->action;
    if (action->disabled) return REFUSAL_ACTION_DISABLED;
    if (action->kind != ACTION_TOOL) return REFUSAL_NONE;
    bool offered = !graph_tool_is(action->tool) && agent_tool(agent, action->tool);
    return offered ? REFUSAL_NONE : REFUSAL_ACTION_TOOL;
}

/* What is stored with the run, for when it has to wait: the call, and the zone of the person. */
static str input_of(const struct press_button *press, struct arena *arena)
{
    str zone = press->start.timezone, call = STR_EMPTY;
    if (press->action.kind == ACTION_TOOL)
        call = press_input(arena, press->action.tool, press->action.args);
    if (!zone.len) return call;
    str own = call.len ? (str){call.p + 1, call.len - 2} : STR_EMPTY; /* without its braces */
    return arena_printf(arena, "{\"forwardedProps\":{\"timezone\":%.*s}%s%.*s}",
                        STR_ARG(text_json(arena, zone)), own.len ? "," : "", STR_ARG(own));
}

static void on_card(void *arg, enum err e)
{
    struct press_button *press = arg;
    struct change *change = &press->tc.change;
    struct arena *arena = change_arena(change);
    if (e) {
        change_fail(change, e);
        return;
    }
    bool found = !card_action_find(arena, press->message.ui, press->action_id, &press->action);
    struct agents *agents = change->by.server->agents;
    const struct agent *own = agents_for(agents, press->agent);
    press->refusal = found ? judge_button(press, own) : REFUSAL_ACTION_UNKNOWN;
    if (press->refusal)
        fault_field(&press->why, refusal_err(press->refusal), "actionId", "%s",
                    refusal_says(press->refusal));
    start_run_init(&press->start, &change->by);
    /* words go to whoever is there; a call only to the agent that offered it */
    const struct agent_briefs briefs = agents_briefs(agents, arena);
    press->start.agent = *agent_briefs_pick(&briefs, press->agent);
    if (press->start.agent.busy == BUSY_INTERRUPT) press->start.agent.busy = BUSY_ENQUEUE;
    press->start.press_tool = press->action.tool;
    press->start.press_args = press->action.args;
    press->start.input = input_of(press, arena);
    press->said_id = new_id(arena, "msg_");
    change->apply = press_apply;
    change->after = thread_change_tell;
    change_go(change);
}

/* The agent that made the card, and the zone that the person had then. */
static enum err read_maker(struct press_button *press, struct db *db, struct arena *arena)
{
    struct run run;
    struct json *json = NULL;
    str input = STR_EMPTY;
    enum err e = run_find(db, arena, press->thread, press->message.run_id, &run);
    if (e == ERR_NOT_FOUND) return OK;
    if (!e) press->agent = run.agent;
    if (!e && run.input_bytes) e = run_input(db, arena, run.id, &input);
    if (!e && input.len && !json_parse(arena, input, &json, NULL))
        press->start.timezone = timezone_of(json_get(json, STR("forwardedProps")));
    return e;
}

static enum err read_run(struct job *job, struct db *db)
{
    struct press_button *press = ((struct reading *)(void *)job)->press;
    const struct asker *by = &press->tc.change.by;
    struct arena *arena = by->arena;
    struct message *message = &press->message;
    struct thread thread;
    struct json *metadata = NULL;
    enum err e = thread_find(db, arena, by->who.user, press->thread_id, &thread);
    if (!e) e = message_find(db, arena, thread.id, press->message_id, message);
    if (e) return e;
    press->thread = thread.id;
    press->agent = thread.agent;
    bool tool = str_eq(message->role, STR("tool"));
    if (tool && !json_parse(arena, message->metadata, &metadata, NULL))
        press->call_id = json_text(json_get(metadata, STR("tool_call_id")));
    return read_maker(press, db, arena);
}

static void read_done(struct job *job, enum err e)
{
    struct press_button *press = ((struct reading *)(void *)job)->press;
    const struct asker *by = &press->tc.change.by;
    if (e)
        change_fail(&press->tc.change, e);
    else
        cards_read(by->server, by->arena, &press->message, 1, on_card, press);
}

/* ---- to begin ---- */

static void press_begin(struct press_button *press)
{
    press->settle = settle_by(&press->tc.change.by, STR("card"));
    crypto_sha256(press->sent, press->settle.hash);
}

void press_forged(struct press_button *press, const struct fault *why)
{
    press_begin(press);
    press->why = *why;
    press->refusal = REFUSAL_ACTION_FORGED;
    press->tc.change.apply = forged_apply;
    change_go(&press->tc.change);
}

void press_button(struct press_button *press)
{
    const struct asker *by = &press->tc.change.by;
    press_begin(press);
    press->start.run_id = card_action_run_id(by->arena, press->message_id, press->action_id);
    crypto_sha256(arena_printf(by->arena, "POST /actions\n%.*s", STR_ARG(press->start.run_id)),
                  press->hash);
    struct reading *reading = ARENA_NEW(by->arena, struct reading);
    *reading = (struct reading){{.run = read_run, .done = read_done}, press};
    asker_read(by, &reading->job, READ_PAGE);
}
