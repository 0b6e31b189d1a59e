/* SPDX-License-Identifier: Apache-2.0
 *
 * Work on the audit trail beside requests, one job after the other: strangers, chains from before,
 * grants without a maker.
 *
 *   start ──────────────────────────► chains and grants from before, page by page
 *   trail_stranger ─► list ─► timer ─► those of the list that were not noted before
 *
 * A stranger is told that there is nothing, as for an id that nobody has, and the times of both
 * answers must be alike. So the entry is not written by the job that answers, nor right behind it,
 * where the next request would wait for it, but some TRAIL_WAIT_MS later, with all that came
 * meanwhile.
 *
 * Invariants:
 * 1. At most one job is with the store.
 * 2. The list is bounded, and whoever stands in it already is not added: who tries a thousand times
 *    fills one place. When it is full, the rest is counted and logged.
 * 3. What a process that is killed has not noted is lost; one that is stopped notes it first.
 */
#include "duty/trail.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "net/loop.h"
#include "server/server.h"
#include "store/db/store.h"
#include "store/table/audit.h"
#include "store/table/grants.h"

struct note {
    struct stranger stranger;
    char text[]; /* its words */
};

struct trail {
    struct job job; /* one at a time */
    struct server *server;
    struct timer *timer;
    struct arena arena; /* of the job under way */
    msec now;
    bool busy, stopping;
    bool behind;   /* all from before is done */
    bool page_end; /* of the job under way */

    /* of the job that notes */
    struct note *writing[TRAIL_STRANGERS_MAX];
    size_t writing_count;

    pthread_mutex_t lock; /* of what follows: any thread adds */
    struct note *notes[TRAIL_STRANGERS_MAX];
    size_t count, dropped;
    struct loop_task wake;
    bool posted; /* until the loop has it: a task is in its list once */
};

/* ---- from any thread ---- */

static str put(char **at, str text)
{
    str copy = {*at, text.len};
    if (text.len) memcpy(*at, text.p, text.len);
    *at += text.len;
    return copy;
}

static struct note *note_new(const struct stranger *s)
{
    struct note *note =
        calloc(1, sizeof *note + s->interaction_id.len + s->call_id.len + s->user.len + s->via.len);
    if (!note) abort();
    char *at = note->text;
    note->stranger = *s;
    note->stranger.interaction_id = put(&at, s->interaction_id);
    note->stranger.call_id = put(&at, s->call_id);
    note->stranger.user = put(&at, s->user);
    note->stranger.via = put(&at, s->via);
    return note;
}

static bool is_listed(const struct trail *trail, const struct stranger *s)
{
    for (size_t i = 0; i < trail->count; i++) {
        const struct stranger *other = &trail->notes[i]->stranger;
        if (str_eq(other->interaction_id, s->interaction_id) && str_eq(other->user, s->user))
            return true;
    }
    return false;
}

void trail_stranger(struct trail *trail, const struct stranger *stranger)
{
    if (!trail) return;
    bool wake = false;
    pthread_mutex_lock(&trail->lock);
    if (!is_listed(trail, stranger)) {
        if (trail->count < TRAIL_STRANGERS_MAX)
            trail->notes[trail->count++] = note_new(stranger);
        else
            trail->dropped++;
        wake = !trail->posted;
        trail->posted = true;
    }
    pthread_mutex_unlock(&trail->lock);
    if (wake) loop_post(trail->server->loop, &trail->wake);
}

/* ---- jobs ---- */

static enum err notes_run(struct job *job, struct db *db)
{
    struct trail *trail = (struct trail *)(void *)job;
    enum err e = OK;
    for (size_t i = 0; !e && i < trail->writing_count; i++) {
        const struct stranger *s = &trail->writing[i]->stranger;
        struct audit_entry entry = {.action = AUDIT_REFUSED,
                                    .interaction_id = s->interaction_id,
                                    .call_id = s->call_id,
                                    .who = s->user,
                                    .via = s->via,
                                    .why = STR("not_visible"),
                                    .at = s->at};
        bool before = false;
        memcpy(entry.hash, s->hash, HASH_BYTES);
        e = audit_refused_before(db, s->interaction_id, s->user, &before);
        if (!e && !before) e = audit_add(db, trail->server->saver.audit_key, s->thread, &entry);
        if (e == ERR_NOT_FOUND) e = OK; /* deleted meanwhile */
    }
    return e;
}

static enum err before_run(struct job *job, struct db *db)
{
    struct trail *trail = (struct trail *)(void *)job;
    const unsigned char *key = trail->server->saver.audit_key;
    arena_reset(&trail->arena); /* it may run twice */
    enum err e = audit_take_over(db, key, TRAIL_PAGE, trail->now, &trail->page_end);
    return e ? e : grants_end(db, &trail->arena, key, trail->now);
}

/* ---- the loop's side ---- */

static void trail_look(struct trail *trail);

static void before_done(struct job *job, enum err e)
{
    struct trail *trail = (struct trail *)(void *)job;
    trail->busy = false;
    trail->behind = e || trail->page_end;
    if (e && e != ERR_SHUTTING_DOWN) log_warn("trail.behind", LOG_CSTR("reason", err_title(e)));
    trail_look(trail);
}

static void notes_done(struct job *job, enum err e)
{
    struct trail *trail = (struct trail *)(void *)job;
    trail->busy = false;
    for (size_t i = 0; i < trail->writing_count; i++) free(trail->writing[i]);
    if (e)
        log_warn("trail.unnoted", LOG_CSTR("reason", err_title(e)),
                 LOG_U64("strangers", trail->writing_count));
    trail->writing_count = 0;
    trail_look(trail);
}

static void take_notes(struct trail *trail)
{
    pthread_mutex_lock(&trail->lock);
    size_t dropped = trail->dropped;
    memcpy(trail->writing, trail->notes, trail->count * sizeof *trail->notes);
    trail->writing_count = trail->count;
    trail->count = trail->dropped = 0;
    pthread_mutex_unlock(&trail->lock);
    if (dropped) log_warn("trail.unnoted", LOG_U64("strangers", dropped));
    if (!trail->writing_count) return;
    trail->busy = true;
    trail->job = (struct job){.run = notes_run, .done = notes_done};
    store_write(trail->server->store, &trail->job);
}

static void trail_look(struct trail *trail)
{
    if (trail->busy) return;
    if (!trail->behind && !trail->stopping) {
        trail->busy = true;
        trail->now = clock_wall(&clock_system);
        trail->job = (struct job){.run = before_run, .done = before_done};
        store_write(trail->server->store, &trail->job);
    } else if (trail->stopping) {
        take_notes(trail);
    }
}

static void on_timer(void *arg)
{
    struct trail *trail = arg;
    if (trail->busy)
        timer_start(trail->timer, TRAIL_WAIT_MS);
    else
        take_notes(trail);
}

static void on_wake(struct loop_task *task)
{
    struct trail *trail = CONTAINER(task, struct trail, wake);
    pthread_mutex_lock(&trail->lock);
    trail->posted = false;
    pthread_mutex_unlock(&trail->lock);
    if (trail->stopping)
        trail_look(trail);
    else
        timer_start(trail->timer, TRAIL_WAIT_MS);
}

struct trail *trail_new(struct server *server)
{
    struct trail *trail = calloc(1, sizeof *trail);
    if (!trail) abort();
    trail->server = server;
    trail->wake.fn = on_wake;
    pthread_mutex_init(&trail->lock, NULL);
    arena_init(&trail->arena);
    trail->timer = timer_new(server->loop, on_timer, trail);
    trail_look(trail);
    return trail;
}

void trail_stop(struct trail *trail)
{
    if (!trail) return;
    trail->stopping = true;
    timer_stop(trail->timer);
    trail_look(trail);
}

void trail_free(struct trail *trail)
{
    if (!trail) return;
    timer_free(trail->timer);
    for (size_t i = 0; i < trail->count; i++) free(trail->notes[i]);
    arena_done(&trail->arena);
    pthread_mutex_destroy(&trail->lock);
    free(trail);
}
