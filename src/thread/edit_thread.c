/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads renamed and deleted.
 */
#include "thread/edit_thread.h"

#include "agent/core/facts.h"
#include "agent/shell/run.h"
#include "agent/shell/save.h"
#include "duty/remover.h"
#include "duty/webhooks.h"
#include "feed/feed.h"
#include "feed/inbox.h"
#include "feed/thread_json.h"
#include "server/server.h"
#include "store/table/calls.h"
#include "store/table/doomed.h"
#include "thread/thread_change.h"
#include "tool/spool.h"

static enum err rename_apply(struct change *change, struct db *db)
{
    struct rename_thread *rename = (struct rename_thread *)(void *)change;
    struct thread thread;
    struct spent_list spent;
    enum err e =
        thread_find(db, change_arena(change), change->by.who.user, rename->thread_id, &thread);
    if (!e) e = runs_spent(db, change_arena(change), thread.id, USAGE_CURRENCY, &spent);
    if (!e) e = thread_rename(db, thread.id, rename->title, change->now);
    if (e) return e;
    thread.title = rename->title;
    thread.updated = change->now;
    change->status = 200;
    change->body = thread_json(change_arena(change), &thread, &spent);
    return OK;
}

void rename_thread(struct rename_thread *rename)
{
    rename->change.apply = rename_apply;
    change_go(&rename->change);
}

/* ---- deleting ---- */

/* What a call under way does cannot be taken back, and has to be written down somewhere: the run is
 * cancelled, and the thread stays until the call has ended. */
static enum err delete_later(struct delete_thread *delete, struct db *db, int64_t thread)
{
    struct change *change = &delete->change;
    struct arena *arena = change_arena(change);
    struct run run;
    struct stepped stepped;
    struct fault why = {0};
    enum err e = run_current(db, arena, thread, &run);
    if (!e)
        e = run_cancel(db, arena, &change->by.server->saver, thread, &run, change->now,
                       delete->random, &stepped);
    if (e) return e;
    delete->cancelled = change->unremembered = true;
    e = fault(&why, ERR_BUSY, "a tool call is under way; delete the thread when it has ended");
    change_refuse(change, e, &why, STR_EMPTY, STR_EMPTY);
    return OK;
}

/* What was open, as it is now. */
static enum err look_again(struct delete_thread *delete, struct db *db)
{
    struct arena *arena = change_arena(&delete->change);
    enum err e = OK;
    for (size_t i = 0; !e && i < delete->open.count; i++)
        e = interaction_find(db, arena, delete->open.rows[i].id, &delete->open.rows[i]);
    return e;
}

/* Nobody will be asked any more, and webhooks are told so: their rows outlive the thread. */
static enum err end_wait(struct delete_thread *delete, struct db *db, int64_t thread)
{
    struct change *change = &delete->change;
    struct arena *arena = change_arena(change);
    struct run run;
    struct stepped stepped;
    enum err e = run_current(db, arena, thread, &run);
    if (e == ERR_NOT_FOUND || (!e && run.status != RUN_WAITING)) return OK;
    delete->waited = true;
    return e ? e
             : run_cancel(db, arena, &change->by.server->saver, thread, &run, change->now,
                          delete->random, &stepped);
}

static enum err delete_apply(struct change *change, struct db *db)
{
    struct delete_thread *delete = (struct delete_thread *)(void *)change;
    struct arena *arena = change_arena(change);
    struct thread thread;
    bool started = false;
    delete->cancelled = delete->waited = false;
    enum err e = thread_find(db, arena, change->by.who.user, delete->thread_id, &thread);
    if (!e) e = calls_started(db, thread.id, &started);
    if (e) return e;
    delete->thread = thread.id;
    if (started) return delete_later(delete, db, thread.id);
    change->status = 204;
    e = interactions_of_thread(db, arena, thread.id, &delete->open);
    if (!e) e = end_wait(delete, db, thread.id);
    if (!e) e = look_again(delete, db);
    if (!e)
        e = audit_close(db, change->by.server->saver.audit_key, thread.id, change->by.who.user,
                        change->by.via, change->now);
    return e ? e : thread_doom(db, arena, &thread, &delete->spools, &delete->spool_count);
}

/* A run under way finds its rows gone when it commits, and stops; we only hurry it up. */
static void delete_after(struct change *change)
{
    struct delete_thread *delete = (struct delete_thread *)(void *)change;
    struct server *server = change->by.server;
    if (delete->cancelled) {
        runs_cancel(server->runs, delete->thread);
        return;
    }
    runs_forget(server->runs, delete->thread);
    feeds_deleted(server->feeds, delete->thread);
    inbox_deleted(server->inbox, delete->open.rows, delete->open.count, change->now);
    if (delete->waited) webhooks_look(server->webhooks);
    for (size_t i = 0; i < delete->spool_count; i++)
        spool_remove(server->spool, delete->spools[i], NULL, NULL);
    remover_look(server->remover);
}

void delete_thread(struct delete_thread *delete)
{
    crypto_random(delete->random, sizeof delete->random);
    delete->change.apply = delete_apply;
    delete->change.after = delete_after;
    change_go(&delete->change);
}
