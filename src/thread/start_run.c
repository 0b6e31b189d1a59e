/* SPDX-License-Identifier: Apache-2.0
 *
 * A request that becomes a run: begun now, or queued on a busy thread.
 *
 *     idle, nobody waits   run_begin: message.added, run.started, step.start
 *     idle, others wait    behind them
 *     busy                 as the policy says: queued, refused, or queued and the other ended
 *     follows              queued: something is open that this must not touch
 *
 * Invariants:
 * 1. One commit has the run's row, its facts and what waits; nothing is half accepted.
 * 2. A queue is bounded by number and by bytes, and is not read to find that out.
 */
#include "thread/start_run.h"

#include "agent/shell/begin.h"
#include "base/limits.h"
#include "server/server.h"
#include "thread/plain_message.h"

str new_id(struct arena *arena, const char *prefix)
{
    char id[ID_BYTES];
    id_random(id);
    return arena_printf(arena, "%s%s", prefix, id);
}

void start_run_init(struct start_run *start, const struct asker *by)
{
    start->task_id = new_id(by->arena, "task_");
    crypto_nonce(start->random, sizeof start->random);
}

/* May one more wait on the thread? */
static enum err look_at_queue(struct thread_change *tc, struct db *db)
{
    size_t count = 0, bytes = 0;
    enum err e = run_queue_size(db, tc->thread.id, &count, &bytes);
    if (e || (count < RUN_QUEUE_MAX && bytes <= RUN_QUEUE_BYTES_MAX)) return e;
    return fault(&tc->change.why, ERR_RATE_LIMITED, "too many messages wait on this thread");
}

static str queued_data(struct arena *arena, const struct run *run, const struct message *message)
{
    AUTO(buf_done) struct buf data;
    AUTO(buf_done) struct buf row;
    struct json_writer w;
    buf_init(&data, 4 * RUN_INPUT_BYTES_MAX);
    buf_init(&row, 4 * RUN_INPUT_BYTES_MAX);
    json_write_begin(&w, &data);
    json_object(&w);
    json_member(&w, STR("taskId"), run->task_id);
    json_member_i64(&w, STR("n"), run->start_seq + 1);
    json_key(&w, STR("message"));
    message_write(&row, message);
    json_raw(&w, buf_str(&row));
    json_object_end(&w);
    return arena_str(arena, buf_str(&data));
}

/* It waits its turn, as fact run.queued. */
static enum err enqueue(struct thread_change *tc, struct db *db, struct run *run,
                        const struct message *messages, size_t count)
{
    struct arena *arena = change_arena(&tc->change);
    struct buf queued;
    enum err e = look_at_queue(tc, db);
    if (e) return e;
    buf_init(&queued, 4 * RUN_INPUT_BYTES_MAX);
    queued_write(&queued, messages, count);
    bool too_large = queued.full;
    run->queued = arena_str(arena, buf_str(&queued));
    buf_done(&queued);
    if (too_large) return ERR_TOO_LARGE;
    run->status = RUN_QUEUED;
    e = run_add(db, run);
    for (size_t i = 0; !e && i < count; i++) e = queued_id_add(db, run, messages[i].id);
    if (e) return e;
    struct fact *fact = ARENA_NEW(arena, struct fact);
    *fact = (struct fact){.type = "run.queued",
                          .run_id = run->run_id,
                          .at = tc->change.now,
                          .data = queued_data(arena, run, &messages[count - 1])};
    e = facts_append(db, run->thread, fact, 1, tc->change.now);
    if (!e) thread_change_facts(tc, fact, 1);
    return e;
}

static enum err begin_now(struct thread_change *tc, struct db *db, const struct start_run *start,
                          struct run *run, const struct message *messages, size_t count)
{
    struct change *change = &tc->change;
    struct begun begun;
    struct begin begin = {.max_rounds = start->agent.max_rounds,
                          .locale = start->agent.locale,
                          .timezone = start->timezone,
                          .press_tool = start->press_tool,
                          .press_args = start->press_args,
                          .epoch = change->by.server->saver.epoch,
                          .owner = change->by.who.user,
                          .thread_id = tc->thread.thread_id,
                          .now = change->now};
    enum err e = run_begin(db, change_arena(change), &begin, run, messages, count, &begun);
    if (e) return e;
    thread_change_facts(tc, begun.facts, begun.fact_count);
    tc->wake = true;
    return OK;
}

/* Somebody is at work on the thread: what the agent's policy says. */
static enum err begin_busy(struct thread_change *tc, struct db *db, const struct start_run *start,
                           struct run *current, struct run *run, const struct message *messages,
                           size_t count)
{
    struct change *change = &tc->change;
    if (start->agent.busy == BUSY_REJECT && current->status != RUN_QUEUED)
        return fault(&change->why, ERR_BUSY, "a run is under way on this thread");
    enum err e = enqueue(tc, db, run, messages, count);
    if (e || start->agent.busy != BUSY_INTERRUPT || current->status != RUN_RUNNING) return e;
    struct stepped stepped;
    tc->cancel = true;
    return run_cancel(db, change_arena(change), &change->by.server->saver, current->thread, current,
                      change->now, start->random, &stepped);
}

enum err start_run(struct thread_change *tc, struct db *db, const struct start_run *start,
                   struct message *messages, size_t count, bool follows, int64_t seq)
{
    struct change *change = &tc->change;
    struct arena *arena = change_arena(change);
    struct run current, run = {.thread = tc->thread.id,
                               .run_id = start->run_id,
                               .agent = start->agent.name,
                               .model = start->agent.model,
                               .task_id = start->task_id,
                               .input = start->input,
                               .tools = start->tools,
                               .context = start->context,
                               .start_seq = seq,
                               .created = change->now,
                               .asked_key = start->asked_key};
    /* What is answered, cancelled or deleted does not come here. */
    enum err e = change_quota(change, db, 0);
    if (e) return e;
    for (size_t i = 0; i < count; i++)
        messages[i].metadata = metadata_with_run(arena, messages[i].metadata, start->run_id,
                                                 start->task_id, STR_EMPTY);
    if (follows) return enqueue(tc, db, &run, messages, count);
    e = run_current(db, arena, run.thread, &current);
    bool idle = e == ERR_NOT_FOUND;
    if (idle) e = run_next(db, arena, run.thread, &current); /* others wait already */
    if (e == ERR_NOT_FOUND)
        e = begin_now(tc, db, start, &run, messages, count);
    else if (!e)
        e = begin_busy(tc, db, start, &current, &run, messages, count);
    if (idle) tc->wake = true; /* also if those who wait were left behind by a failure */
    return e;
}

str ids_json(struct arena *arena, const struct id_list *ids)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, STATE_BYTES_MAX);
    json_array(&doc.w);
    for (size_t i = 0; i < ids->count; i++) json_string(&doc.w, ids->ids[i]);
    json_array_end(&doc.w);
    return json_doc_copy(&doc, arena);
}

str accepted_json(const struct thread_change *tc, const struct told *told)
{
    struct arena *arena = tc->change.by.arena;
    str prefix = tc->change.by.server->config->public_url.prefix, thread_id = tc->thread.thread_id;
    str more = STR_EMPTY;
    if (told->answered.len)
        more = arena_printf(arena, ",\"answered\":%.*s", STR_ARG(told->answered));
    return arena_printf(
        arena,
        "{\"taskId\":\"%.*s\",\"threadId\":\"%.*s\",\"runId\":\"%.*s\",\"created\":%s,\"seq\":%lld,"
        "\"eventsUrl\":\"%.*s/api/v1/agent/runs/%.*s/events?after=%lld\"%.*s%s}",
        STR_ARG(told->task_id), STR_ARG(thread_id), STR_ARG(told->run_id),
        tc->created ? "true" : "false", (long long)told->seq, STR_ARG(prefix), STR_ARG(thread_id),
        (long long)told->seq, STR_ARG(more), told->queued ? ",\"queued\":true" : "");
}
