/* SPDX-License-Identifier: Apache-2.0
 *
 * A question of another agent in the store: one run without a model, asked once for each key. A
 * question is a press of a button that another agent made: the call of ask_user or of consent, as
 * the only turn of a run. Everything that happens to it is what happens to any interaction.
 *
 *     question_ask    key known? the same run : the first idle thread of the key, a message, a run
 *     question_look   run ─► its call ─► the newest interaction of the call ─► desk_state
 *
 * Invariants:
 * 1. A client's key leads to one run for ever: its id is made from the key, and the row that
 *    remembers the request is written in the commit of the run.
 * 2. A question is found only among the threads of its owner whose names begin with "mcp:".
 * 3. The state of a call decides, not that of the interaction: approved is what has been looked at
 *    again and has run.
 */
#include "mcp/server/question.h"

#include <stdio.h>
#include <string.h>

#include "agent/core/facts.h"
#include "agent/core/texts.h"
#include "base/limits.h"
#include "server/server.h"
#include "store/table/calls.h"
#include "store/table/interactions.h"

#define THREAD_PREFIX STR("mcp:")

/* ---- names ---- */

str question_thread(struct arena *arena, str key_id, unsigned n)
{
    str key = key_id.len ? key_id : STR("local");
    if (n == 1) return arena_printf(arena, "mcp:%.*s", STR_ARG(key));
    return arena_printf(arena, "mcp:%.*s:%u", STR_ARG(key), n);
}

str question_run_id(struct arena *arena, str key_id, str key)
{
    unsigned char hash[HASH_BYTES];
    char id[ID_BYTES];
    if (!key.len) return new_id(arena, "ask_");
    crypto_sha256(arena_printf(arena, "mcp\n%.*s\n%.*s", STR_ARG(key_id), STR_ARG(key)), hash);
    id_make(hash, id);
    return arena_printf(arena, "ask_%s", id);
}

/* ---- asking ---- */

/* Asked before, on this thread? ERR_NOT_FOUND: no. */
static enum err asked_before(struct thread_change *tc, struct db *db,
                             const struct question_new *question, int64_t thread)
{
    struct change *change = &tc->change;
    struct accepted known;
    enum err e = accepted_find(db, change_arena(change), thread, question->start.run_id, &known);
    if (e) return e;
    if (memcmp(known.hash, question->call->hash, HASH_BYTES) != 0)
        return fault_field(&change->why, ERR_IDEMPOTENCY_MISMATCH, "key",
                           "this key was used for another question; take another key, or send the "
                           "same question");
    change->repeated = true;
    return OK;
}

static enum err is_idle(struct db *db, struct arena *arena, int64_t thread, bool *ret_idle)
{
    struct run run;
    enum err e = run_current(db, arena, thread, &run);
    if (e == ERR_NOT_FOUND) e = run_next(db, arena, thread, &run);
    *ret_idle = e == ERR_NOT_FOUND;
    return *ret_idle ? OK : e;
}

/* The thread it is asked on, and whether it has to wait there. ERR_ALREADY_RESOLVED: it was asked
 * before, and stands on tc->thread. */
static enum err choose_thread(struct thread_change *tc, struct db *db,
                              const struct question_new *question, unsigned *ret_free,
                              bool *ret_pending)
{
    struct arena *arena = change_arena(&tc->change);
    const struct identity *who = &tc->change.by.who;
    struct thread chosen = {0};
    unsigned vacant = 0;
    for (unsigned n = 1; n <= DESK_THREADS_MAX; n++) {
        struct thread thread;
        bool idle = false, settled = chosen.id || vacant;
        enum err e =
            thread_find(db, arena, who->user, question_thread(arena, who->key_id, n), &thread);
        if (e && e != ERR_NOT_FOUND) return e;
        if (e) {
            if (!settled) vacant = n;
            continue;
        }
        e = question->call->key.len ? asked_before(tc, db, question, thread.id) : ERR_NOT_FOUND;
        if (!e) tc->thread = thread;
        if (!e) return ERR_ALREADY_RESOLVED;
        if (e != ERR_NOT_FOUND) return e;
        if (n == 1) tc->thread = thread; /* where it waits, if there is no room anywhere */
        e = settled ? OK : is_idle(db, arena, thread.id, &idle);
        if (e) return e;
        if (idle) chosen = thread;
    }
    *ret_free = vacant;
    *ret_pending = !chosen.id && !vacant;
    if (chosen.id) tc->thread = chosen;
    return OK;
}

static enum err add_thread(struct thread_change *tc, struct db *db,
                           const struct question_new *question, unsigned n)
{
    struct change *change = &tc->change;
    struct arena *arena = change_arena(change);
    const struct identity *who = &change->by.who;
    str client = question->client;
    tc->created = true;
    tc->thread =
        (struct thread){.owner = who->user,
                        .thread_id = question_thread(arena, who->key_id, n),
                        .title = client.len ? arena_printf(arena, "MCP: %.*s", STR_ARG(client))
                                            : STR("MCP"),
                        .agent = question->start.agent.name,
                        .created = change->now,
                        .updated = change->now};
    return thread_add(db, &tc->thread);
}

/* Who asks, in the language of the question: "A question through MCP from claude: the title". */
static str announcement(struct arena *arena, const struct question_new *question)
{
    const struct desk_call *call = question->call;
    bool zh = locale_is_chinese(locale_of(call->words)), approval = call->tool == DESK_CONFIRM;
    str client = question->client;
    const str parts[] = {
        zh ? (approval ? STR("通过 MCP 收到的审批请求") : STR("通过 MCP 收到的提问"))
           : (approval ? STR("A request for approval through MCP") : STR("A question through MCP")),
        client.len ? (zh ? STR("，来自 ") : STR(" from ")) : STR_EMPTY,
        client,
        call->title.len ? (zh ? STR("：") : STR(": ")) : STR_EMPTY,
        call->title,
    };
    return text_one_line(arena, text_join(arena, parts, COUNT(parts)));
}

static enum err start(struct thread_change *tc, struct db *db, struct question_new *question,
                      bool waits)
{
    struct change *change = &tc->change;
    struct arena *arena = change_arena(change);
    str text = announcement(arena, question);
    struct message message = {.id = question->message_id,
                              .role = STR("system"),
                              .run_id = question->start.run_id,
                              .content = text_json(arena, text),
                              .metadata = STR("{\"via\":\"mcp\"}"),
                              .plain = text,
                              .created = change->now};
    enum err e = start_run(tc, db, &question->start, &message, 1, waits, tc->thread.last_seq);
    if (e || !question->call->key.len) return e;
    struct accepted accepted = {.answer = STR("{}")};
    memcpy(accepted.hash, question->call->hash, HASH_BYTES);
    return accepted_add(db, tc->thread.id, question->start.run_id, &accepted, change->now);
}

enum err question_ask(struct thread_change *tc, struct db *db, struct question_new *question,
                      struct question *ret_question)
{
    unsigned vacant = 0;
    bool waits = false;
    thread_change_reset(tc);
    tc->thread = (struct thread){0};
    tc->change.repeated = false;
    enum err e = choose_thread(tc, db, question, &vacant, &waits);
    bool known = e == ERR_ALREADY_RESOLVED;
    if (known) e = OK;
    if (!e && !known && vacant) e = add_thread(tc, db, question, vacant);
    if (!e && !known) e = start(tc, db, question, waits);
    if (e) return e;
    tc->change.thread = tc->thread.id;
    *ret_question = (struct question){tc->thread.id, question->start.run_id};
    return OK;
}

/* ---- finding ---- */

/* A run on one of the threads of this key. */
static enum err find_run(struct db *db, struct arena *arena, const struct identity *who, str id,
                         struct question *ret_question)
{
    for (unsigned n = 1; n <= DESK_THREADS_MAX; n++) {
        struct thread thread;
        struct run run;
        enum err e =
            thread_find(db, arena, who->user, question_thread(arena, who->key_id, n), &thread);
        if (!e) e = run_find(db, arena, thread.id, id, &run);
        if (!e) *ret_question = (struct question){thread.id, run.run_id};
        if (e != ERR_NOT_FOUND) return e;
    }
    return ERR_NOT_FOUND;
}

enum err question_find(struct db *db, struct arena *arena, const struct identity *who, str id,
                       struct question *ret_question)
{
    struct interaction interaction;
    enum err e = interaction_find(db, arena, id, &interaction);
    if (e == ERR_NOT_FOUND) return find_run(db, arena, who, id, ret_question);
    if (e) return e;
    if (!str_eq(interaction.owner, who->user) || !str_starts(interaction.thread_id, THREAD_PREFIX))
        return ERR_NOT_FOUND;
    *ret_question = (struct question){interaction.thread, interaction.run_id};
    return OK;
}

/* ---- looking ---- */

static struct json *parse_own(struct arena *arena, str text)
{
    struct json *json = NULL;
    if (!text.len || json_parse(arena, text, &json, NULL)) return NULL; /* stored by us */
    return json;
}

/* Nobody decided: cancelled, run out of time, or it never came so far. */
static void look_at_failure(const struct call *call, struct desk_state *state)
{
    bool expired = str_eq(call->error, STR("expired"));
    state->status = expired                         ? DESK_EXPIRED
                    : call->state == CALL_CANCELLED ? DESK_CANCELLED
                                                    : DESK_FAILED;
    if (state->status == DESK_FAILED)
        state->reason = call->content.len ? call->content : call->error;
}

static void look_at_call(struct arena *arena, const struct call *call,
                         const struct interaction *interaction, struct desk_state *state)
{
    bool question = interaction->type == INTERACTION_ASK_USER;
    bool decided = call->state == CALL_DONE || call->state == CALL_REJECTED;
    state->id = interaction->id;
    state->opened = true;
    if (!call_state_settled(call->state)) return; /* pending, also while an approved one runs */
    state->answered_by = interaction->answered_by;
    state->via = interaction->via;
    state->settled = interaction->settled;
    if (!decided) {
        look_at_failure(call, state);
        return;
    }
    const struct json *reply = parse_own(arena, interaction->answer);
    state->reply = interaction->answer;
    if (question) { /* declined is a skip, and words to a question that takes choices only */
        bool declined = str_eq(interaction->via, STR("message")) && !interaction->allow_freeform;
        const struct json *choices = declined ? parse_own(arena, interaction->choices) : NULL;
        for (const struct json *n = choices ? choices->child : NULL; n; n = n->next)
            if (str_eq(json_text(json_get(n, STR("label"))), interaction->text)) declined = false;
        declined = declined || json_get(reply, STR("skip"));
        state->status = declined ? DESK_DECLINED : DESK_ANSWERED;
        state->answer = interaction->text;
    } else {
        bool done = call->state == CALL_DONE;
        bool edited = str_eq(json_text(json_get(reply, STR("decision"))), STR("edit"));
        state->status = done ? DESK_APPROVED : DESK_REJECTED;
        if (done && edited) state->args = call->args;
        if (!done) state->comment = json_text(json_get(reply, STR("comment")));
    }
}

enum err question_look(struct db *db, struct arena *arena, const struct question *question,
                       struct desk_state *ret_state)
{
    struct desk_state state = {.status = DESK_PENDING, .id = question->run_id};
    struct call_list calls = {0};
    struct interaction interaction;
    struct run run;
    enum err e = run_find(db, arena, question->thread, question->run_id, &run);
    if (!e) e = calls_of_round(db, arena, run.id, 1, &calls);
    if (e) return e;
    state.queued = run.status == RUN_QUEUED;
    e = calls.count
            ? interaction_of_call(db, arena, question->thread, calls.rows[0].call_id, &interaction)
            : ERR_NOT_FOUND;
    if (e && e != ERR_NOT_FOUND) return e;
    if (!e) {
        look_at_call(arena, &calls.rows[0], &interaction, &state);
    } else if (calls.count && call_state_settled(calls.rows[0].state)) {
        look_at_failure(&calls.rows[0], &state);
    } else if (!run_status_open(run.status)) {
        state.status = run.status == RUN_CANCELLED ? DESK_CANCELLED : DESK_FAILED;
        if (state.status == DESK_FAILED) state.reason = STR("The run ended before it could ask");
    }
    *ret_state = state;
    return OK;
}
