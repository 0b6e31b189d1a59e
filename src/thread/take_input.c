/* SPDX-License-Identifier: Apache-2.0
 *
 * A RunAgentInput meets its thread: what is new, what it settles, which run begins; one request,
 * one commit:
 *
 *   thread? ─► repeated? ─► resume[] ─► results ─► new messages ─► anything? ─► messages by the table
 *                │ the same 202  │400      │ noted                    │ no: join,     │409      │
 *                                                                    │ or 400                  ▼
 *                                                          202 ◄─ a run, or the queue ◄─ pending_apply
 *
 * Invariants:
 * 1. Nothing is settled before all of the request is looked at; then all of it is one step of the run,
 *    so that one leg has everything. A refusal that leaves a note in the audit trail is committed; any
 *    other is rolled back.
 * 2. A message that came with an answer is queued behind the run that goes on, whatever the agent says
 *    about busy threads: its sender knew that the run waited.
 */
#include "thread/take_input.h"

#include <stdio.h>
#include <string.h>

#include "agent/core/facts.h"
#include "agent/core/files.h"
#include "agent/shell/begin.h"
#include "agent/shell/loaded.h"
#include "base/limits.h"
#include "base/map.h"
#include "feed/thread_at.h"
#include "server/server.h"

/* ---- seen before ---- */

/* The same runId: the same answer, or a refusal. ERR_NOT_FOUND: it is new. */
static enum err repeated(struct take_input *take, struct db *db)
{
    struct change *change = &take->tc.change;
    struct accepted known;
    if (take->own_run_id) return ERR_NOT_FOUND;
    enum err e = accepted_find(db, change_arena(change), take->tc.thread.id, take->run_id, &known);
    if (e) return e;
    if (memcmp(known.hash, take->hash, HASH_BYTES) != 0)
        return fault_field(&change->why, ERR_IDEMPOTENCY_MISMATCH, "runId",
                           "this runId was used for another request on this thread");
    change->repeated = true;
    change->status = 202;
    change->body = known.answer;
    return OK;
}

/* ---- what is new ---- */

/* All messages that wait, into `seen`: together they are bounded, one by one they would be read again
 * and again. One that cannot be read is left out. */
static enum err see_waiting(struct take_input *take, struct db *db, struct map *seen)
{
    struct arena *arena = change_arena(&take->tc.change);
    struct run_list queue;
    enum err e = run_queue(db, arena, take->tc.thread.id, &queue);
    for (size_t i = 0; !e && i < queue.count; i++) {
        struct message *messages;
        size_t count;
        if (queued_parse(arena, queue.runs[i].queued, &messages, &count)) continue;
        for (size_t j = 0; !e && j < count; j++) e = map_put(seen, messages[j].id, &messages[j]);
    }
    return e;
}

/* Does the thread have a message of this id, said or waiting? And does it have the same words? Files
 * are not compared: what came as bytes or by an address has become something else. */
static enum err is_known(struct take_input *take, struct db *db, struct map *seen,
                         const struct message *message, bool *ret_known, bool *ret_same)
{
    int64_t thread = take->tc.thread.id;
    str id = message->id;
    const struct message *twin = id.len ? map_get(seen, id) : NULL;
    *ret_known = twin;
    *ret_same = !twin || str_eq(twin->plain, message->plain);
    if (!id.len || twin || take->tc.created) return OK;
    enum err e = message_says(db, thread, id, message->plain, ret_same);
    *ret_known = !e;
    if (e != ERR_NOT_FOUND) return e;
    e = queued_id_exists(db, thread, id, ret_known);
    if (!e && *ret_known) e = see_waiting(take, db, seen);
    twin = map_get(seen, id);
    *ret_same = !twin || str_eq(twin->plain, message->plain);
    return e;
}

static void note_changed(struct take_input *take, str id)
{
    if (!take->changed_count++) take->changed_id = id;
}

/* Messages that the thread does not have yet, said or waiting, each with an id. The same id twice
 * in one request is one message. */
static enum err find_messages(struct take_input *take, struct db *db)
{
    struct change *change = &take->tc.change;
    struct arena *arena = change_arena(change);
    const struct run_input *input = &take->input;
    struct message *messages = arena_array(arena, input->message_count + 1, sizeof *messages);
    size_t count = 0;
    AUTO(map_done) struct map seen;
    map_init(&seen, (size_t)(RUN_QUEUE_MAX + 1) * RUN_MESSAGES_MAX);
    enum err e = OK;
    for (size_t i = 0; !e && i < input->message_count; i++) {
        struct message message = input->messages[i];
        bool known, same;
        e = is_known(take, db, &seen, &message, &known, &same);
        if (!e && known && !same) note_changed(take, message.id);
        if (e || known) continue;
        if (input->parts[i].count)
            e = parts_take(db, arena, &input->parts[i], &take->tc.thread, &message, &change->why);
        if (e) continue;
        if (!message.id.len) message.id = new_id(arena, "msg_");
        message.run_id = take->run_id;
        message.created = change->now;
        messages[count] = message;
        e = map_put(&seen, message.id, &messages[count++]);
    }
    if (e) return e;
    take->plain.messages = messages;
    take->plain.count = count;
    return OK;
}

/* ---- the thread ---- */

static enum err no_message(struct fault *why)
{
    return fault_field(why, ERR_INVALID_FIELD, "messages", "there is no new user message");
}

static enum err add_thread(struct take_input *take, struct db *db)
{
    struct change *change = &take->tc.change;
    struct thread *thread = &take->tc.thread;
    const struct run_input *input = &take->input;
    if (!input->message_count) return no_message(&change->why);
    take->tc.created = true;
    *thread = (struct thread){.owner = change->by.who.user,
                              .thread_id = take->thread_id,
                              .title = title_from(change_arena(change), input->messages[0].plain),
                              .agent = take->start.agent.name,
                              .created = change->now,
                              .updated = change->now};
    enum err e = thread_add(db, thread);
    if (!e) change->thread = thread->id;
    return e;
}

/* A thread that begins with files alone is called after them. */
static enum err name_after_files(struct take_input *take, struct db *db)
{
    struct thread *thread = &take->tc.thread;
    struct arena *arena = change_arena(&take->tc.change);
    if (!take->tc.created || thread->title.len) return OK;
    thread->title = title_from(arena, files_named(arena, &take->plain.messages[0]));
    return thread_rename(db, thread->id, thread->title, take->tc.change.now);
}

/* The rows of the files that came along with the new messages. */
static enum err add_files(struct take_input *take, struct db *db)
{
    const struct plain_message *plain = &take->plain;
    enum err e = OK;
    for (size_t i = 0; !e && i < take->files.count; i++) {
        struct inline_file *file = &take->files.files[i];
        for (size_t j = 0; !file->used && j < plain->count; j++)
            file->used = str_find(plain->messages[j].attachments, file->row.id) >= 0;
        if (file->used) e = attachment_add(db, &file->row);
    }
    return e;
}

/* ---- answers ---- */

/* The 202, remembered under the runId. */
static enum err accept(struct take_input *take, struct db *db, const struct told *told)
{
    struct change *change = &take->tc.change;
    change->status = 202;
    change->body = accepted_json(&take->tc, told);
    struct accepted accepted = {.answer = change->body};
    memcpy(accepted.hash, take->hash, HASH_BYTES);
    return accepted_add(db, take->tc.thread.id, take->run_id, &accepted, change->now);
}

/* It brings nothing, and is shown what there is. Nothing is remembered: another request may still have
 * this runId. */
static enum err join(struct take_input *take, struct db *db)
{
    struct change *change = &take->tc.change;
    struct arena *arena = change_arena(change);
    int64_t thread = take->tc.thread.id;
    struct run run = {0};
    enum err e = run_current(db, arena, thread, &run);
    if (e == ERR_NOT_FOUND) e = run_newest(db, arena, thread, &run);
    if (e && e != ERR_NOT_FOUND) return e;
    take->of_run = run.run_id;
    change->status = 202;
    change->body = accepted_json(&take->tc, &(struct told){.run_id = run.run_id,
                                                           .task_id = run.task_id,
                                                           .seq = take->tc.thread.last_seq});
    return OK;
}

/* Which leg the stream shows: the one that has just begun, else that of its own run once its turn
 * comes; else it joins. A run of its own that waits behind the one that went on comes after it. */
static void find_leg(struct take_input *take, bool own_run, str run_id)
{
    take->of_run = run_id;
    if (own_run) take->wait_run = take->run_id;
    for (size_t i = 0; i < take->tc.fact_count; i++)
        if (strcmp(take->tc.facts[i].type, FACT_RUN_STARTED) == 0)
            take->wait_run = take->tc.facts[i].run_id;
    if (own_run && !str_eq(take->wait_run, take->run_id)) take->then_run = take->run_id;
}

/* It answers a run, and brings no message. */
static enum err accept_answers(struct take_input *take, struct db *db, int64_t seq, str run_id,
                               const struct id_list *answered)
{
    struct arena *arena = change_arena(&take->tc.change);
    struct run run;
    enum err e = run_find(db, arena, take->tc.thread.id, run_id, &run); /* its leg may be new */
    if (e) return e;
    find_leg(take, false, run.run_id);
    return accept(take, db,
                  &(struct told){.run_id = run.run_id,
                                 .task_id = run.task_id,
                                 .seq = seq,
                                 .answered = ids_json(arena, answered)});
}

static enum err refuse_nothing(struct take_input *take, const struct client_results *results)
{
    struct change *change = &take->tc.change;
    enum err e = no_message(&change->why);
    if (results->forged) {
        char path[64];
        snprintf(path, sizeof path, "messages[%zu].toolCallId", results->forged->index);
        e = fault_field(&change->why, ERR_INVALID_FIELD, path,
                        "no call of this thread waits for a result from you under this id");
    }
    if (!results->noted) return e;
    change_refuse(change, e, &change->why, STR_EMPTY, STR_EMPTY);
    return OK;
}

/* Nothing is new: what it answers is settled, or it answers nothing. */
static enum err take_nothing(struct take_input *take, struct db *db,
                             const struct resume_found *found, const struct client_results *results)
{
    if (results->forged) return refuse_nothing(take, results);
    if (found->named) {
        enum err e =
            accept_answers(take, db, take->tc.thread.last_seq, found->run_id, &(struct id_list){0});
        take->of_run = STR_EMPTY; /* shown is what there is now: another run may wait meanwhile */
        return e;
    }
    return take->stream ? join(take, db) : refuse_nothing(take, results);
}

/* ---- settling, and running ---- */

/* The message is no answer, or is one that is stored: tell what became of it. */
static enum err accept_messages(struct take_input *take, struct db *db,
                                const struct pending *pending, int64_t seq, bool answer,
                                bool follows)
{
    struct told told = {.run_id = answer ? pending->run.run_id : take->run_id,
                        .task_id = answer ? pending->run.task_id : take->start.task_id,
                        .seq = seq,
                        .queued = follows};
    if (answer || pending->answered.count)
        told.answered = ids_json(change_arena(&take->tc.change), &pending->answered);
    find_leg(take, !answer, told.run_id);
    return accept(take, db, &told);
}

/* `went_on`: the request has answered something, besides. */
static enum err take_messages(struct take_input *take, struct db *db, struct pending *pending,
                              bool went_on)
{
    struct plain_message *plain = &take->plain;
    int64_t seq = take->tc.thread.last_seq;
    enum plain_fate fate;
    enum err e = plain_message(&take->tc, db, plain, pending, &fate);
    if (e || fate == PLAIN_REFUSED) return e;
    bool answer = fate == PLAIN_ANSWER, follows = fate == PLAIN_FOLLOWS || (!answer && went_on);
    if (answer) e = plain_store(&take->tc, db, plain, pending);
    if (!e) e = pending_apply(&take->tc, db, &take->settle, pending);
    if (!e) e = add_files(take, db);
    if (!e) e = name_after_files(take, db);
    if (!e && !answer)
        e = start_run(&take->tc, db, &take->start, plain->messages, plain->count, follows, seq);
    return e ? e : accept_messages(take, db, pending, seq, answer, follows);
}

static enum err take_news(struct take_input *take, struct db *db, struct pending *pending)
{
    int64_t seq = take->tc.thread.last_seq;
    bool went_on = pending->resolution_count || pending->front_count;
    bool at_work = pending->run.id && pending->run.status != RUN_CANCELLING;
    if (at_work) pending_expire(pending, take->tc.change.now);
    if (take->plain.count) return take_messages(take, db, pending, went_on);
    enum err e = pending_apply(&take->tc, db, &take->settle, pending);
    return e ? e : accept_answers(take, db, seq, pending->run.run_id, &pending->answered);
}

/* ---- the job ---- */

/* What the stream begins with is read in the same job, if its leg begins in it. */
static void read_head(struct take_input *take, struct db *db)
{
    const struct thread_change *tc = &take->tc;
    const struct loaded *loaded = tc->change.loaded; /* the thread as it is now */
    if (!take->stream || !loaded || !history_short(&loaded->thread, RUN_HISTORY_FACTS_MAX)) return;
    for (size_t i = 0; i < tc->fact_count; i++) {
        const struct fact *fact = &tc->facts[i];
        if (strcmp(fact->type, FACT_RUN_STARTED) != 0) continue;
        struct arena *arena = change_arena(&take->tc.change);
        struct thread_at_want want = {.thread = tc->thread.id,
                                      .seq = fact->seq,
                                      .run_id = fact->run_id,
                                      .messages = true,
                                      .wire_id = take->run_id, /* this request began it */
                                      .facts = tc->facts,
                                      .fact_count = tc->fact_count};
        take->head = ARENA_NEW(arena, struct thread_at);
        if (thread_at_read(db, arena, &want, take->head)) take->head = NULL; /* it is read again */
    }
}

/* It may run twice. */
static void begin(struct take_input *take)
{
    thread_change_reset(&take->tc);
    take->tc.thread = (struct thread){0};
    take->wait_run = take->of_run = take->then_run = STR_EMPTY;
    take->head = NULL;
    take->changed_count = 0;
    for (size_t i = 0; i < take->files.count; i++) take->files.files[i].used = false;
    take->plain.settle.now = take->settle.now = take->tc.change.now;
}

enum err take_input(struct change *change, struct db *db)
{
    struct take_input *take = (struct take_input *)(void *)change;
    struct arena *arena = change_arena(change);
    struct thread_change *tc = &take->tc;
    struct resume_found found;
    struct client_results results = {0};
    struct pending pending = {0};
    begin(take);
    enum err e = thread_find(db, arena, change->by.who.user, take->thread_id, &tc->thread);
    bool is_new = e == ERR_NOT_FOUND;
    if (e && !is_new) return e;
    change->thread = tc->thread.id;
    take->start.agent = *agent_briefs_pick(&take->agents, tc->thread.agent);
    if (!is_new) e = repeated(take, db);
    if (e != ERR_NOT_FOUND) return e;
    e = is_new ? OK : pending_load(db, arena, tc->thread.id, &pending);
    if (!e) e = resume_find(tc, db, &take->settle, &take->input, &pending, &found);
    if (e || found.refused) return e;
    if (is_new)
        e = add_thread(take, db);
    else
        e = client_results_find(db, arena, &take->plain.settle, tc->thread.id, &take->input,
                                &pending, &results);
    if (!e) e = find_messages(take, db);
    if (e) return e;
    bool news = take->plain.count || pending.resolution_count || pending.front_count;
    e = news ? take_news(take, db, &pending) : take_nothing(take, db, &found, &results);
    if (!e) thread_change_load(tc, db);
    if (!e) read_head(take, db);
    return e;
}
