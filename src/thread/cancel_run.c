/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs cancelled: the current one of a thread, and those that wait behind it.
 */
#include "thread/cancel_run.h"

#include "agent/core/facts.h"
#include "agent/shell/save.h"
#include "base/crypto.h"
#include "server/server.h"

/* A queued run that will never start. */
static enum err drop_queued(struct thread_change *tc, struct db *db, struct run *run)
{
    struct arena *arena = change_arena(&tc->change);
    run->status = RUN_CANCELLED;
    run->ended = tc->change.now;
    run->queued = STR_EMPTY;
    enum err e = run_update(db, run);
    if (e) return e;
    struct fact fact = {
        .type = FACT_RUN_FINISHED,
        .run_id = run->run_id,
        .at = tc->change.now,
        .data = fact_run_finished(arena, &(struct run_finished){.outcome = "cancelled"}),
    };
    e = facts_append(db, run->thread, &fact, 1, tc->change.now);
    if (!e) thread_change_facts(tc, &fact, 1);
    return e;
}

/* A run that waits ends here and now; one that is worked on is told. */
static enum err cancel_current(struct cancel_run *cancel, struct db *db, struct run *current)
{
    struct thread_change *tc = &cancel->tc;
    struct change *change = &tc->change;
    struct stepped stepped;
    if (current->status == RUN_CANCELLING) { /* asked again: look after it again */
        tc->cancel = true;
        return OK;
    }
    enum err e = run_cancel(db, change_arena(change), &change->by.server->saver, tc->thread.id,
                            current, change->now, cancel->random, &stepped);
    if (e) return e;
    tc->cancel = current->status == RUN_CANCELLING;
    thread_change_stepped(tc, &stepped);
    return OK;
}

static enum err cancel_apply(struct change *change, struct db *db)
{
    struct cancel_run *cancel = (struct cancel_run *)(void *)change;
    struct thread_change *tc = &cancel->tc;
    struct arena *arena = change_arena(change);
    thread_change_reset(tc);
    enum err e = thread_find(db, arena, change->by.who.user, cancel->thread_id, &tc->thread);
    if (e) return e;
    struct run current = {0};
    struct run_list queue = {0};
    e = run_current(db, arena, tc->thread.id, &current);
    bool none = e == ERR_NOT_FOUND;
    if (e && !none) return e;
    e = cancel->queue ? run_queue(db, arena, tc->thread.id, &queue) : OK;
    if (e) return e;
    bool other = cancel->run_id.len && !str_eq(cancel->run_id, current.run_id);
    if ((none && !queue.count) || other)
        return fault(&change->why, ERR_NOT_CURRENT,
                     "this run is not the current one of the thread");
    for (size_t i = 0; i < queue.count; i++) {
        e = drop_queued(tc, db, &queue.runs[i]);
        if (e) return e;
    }
    change->status = 202;
    change->body =
        arena_printf(arena, "{\"threadId\":\"%.*s\",\"runId\":\"%.*s\",\"status\":\"%s\"}",
                     STR_ARG(tc->thread.thread_id), STR_ARG(current.run_id),
                     none ? "cancelled" : "cancelling");
    return none ? OK : cancel_current(cancel, db, &current);
}

void cancel_run(struct cancel_run *cancel)
{
    struct change *change = &cancel->tc.change;
    crypto_random(cancel->random, sizeof cancel->random);
    change->apply = cancel_apply;
    change->after = thread_change_tell;
    change_go(change);
}

static enum err drop_apply(struct change *change, struct db *db)
{
    struct drop_run *drop = (struct drop_run *)(void *)change;
    struct arena *arena = change_arena(change);
    thread_change_reset(&drop->tc);
    enum err e = thread_find(db, arena, change->by.who.user, drop->thread_id, &drop->tc.thread);
    if (e) return e;
    struct run_list queue;
    e = run_queue(db, arena, drop->tc.thread.id, &queue);
    if (e) return e;
    change->status = 204;
    for (size_t i = 0; i < queue.count; i++)
        if ((uint64_t)queue.runs[i].start_seq + 1 == drop->n)
            return drop_queued(&drop->tc, db, &queue.runs[i]);
    return ERR_NOT_FOUND;
}

void drop_run(struct drop_run *drop)
{
    struct change *change = &drop->tc.change;
    change->apply = drop_apply;
    change->after = thread_change_tell;
    change_go(change);
}
