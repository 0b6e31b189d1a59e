/* SPDX-License-Identifier: Apache-2.0
 *
 * The remover: takes away what deleted threads have left, a little at a time.
 *
 *     IDLE ── look ──▶ LOOKING ── files ──▶ UNLINKING ──▶ FORGETTING their rows ──▶ LOOKING
 *       ▲               │    │ a thread without files
 *       └── nothing ────┘    └──▶ CUTTING: rows, for a few milliseconds ──▶ LOOKING
 *                                        any of them failed: RESTING, longer each time ──▶ LOOKING
 *
 * Invariants:
 * 1. One thing is under way at a time: a job of the store, a page of files, or the timer.
 * 2. A file goes before the row that names it: a crash leaves the row, and the file is looked for
 *    again. That it is not there is no failure.
 * 3. A file that cannot be removed keeps the rows of its thread, and nothing else: what is behind it
 *    is removed first, and then it is tried again.
 * 4. While a backup holds the objects nothing is removed: we rest.
 */
#include "duty/remover.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/limits.h"
#include "net/loop.h"
#include "store/blob/blob.h"
#include "store/db/store.h"
#include "store/table/doomed.h"

enum remover_state { IDLE, LOOKING, UNLINKING, FORGETTING, CUTTING, RESTING };

/* A file that is being removed. */
struct slot {
    struct remover *remover;
    struct blob_job *job; /* NULL: it is done */
};

struct remover {
    struct job job;
    struct remover_options options;
    struct timer *timer;
    enum remover_state state;
    bool again; /* a look came while one was under way */
    bool stopping;
    bool troubled; /* and it was told */
    unsigned rests;
    struct doomed_place from;
    struct arena arena; /* of the page */
    struct doomed page;
    struct slot slots[DOOMED_FILES_MAX];
    size_t left;     /* of them under way */
    enum err failed; /* the first since the beginning of the list; OK: none */
    struct fault reason;
};

static void remover_look_it(struct remover *r);

static void rest(struct remover *r)
{
    msec span = (msec)REMOVER_REST_MS << (r->rests < 8 ? r->rests : 8);
    r->rests++;
    r->state = RESTING;
    if (!r->stopping)
        timer_start(r->timer, span < REMOVER_REST_MS_MAX ? span : REMOVER_REST_MS_MAX);
}

static void remover_trouble(struct remover *r, const char *what, enum err e,
                            const struct fault *reason)
{
    if (!r->troubled && e != ERR_SHUTTING_DOWN)
        r->options.on_trouble(r->options.arg, what, e, reason);
    r->troubled = true;
    rest(r);
}

static void start(struct remover *r, enum remover_state state,
                  enum err (*run)(struct job *job, struct db *db),
                  void (*done)(struct job *job, enum err e))
{
    r->state = state;
    r->job = (struct job){.run = run, .done = done};
    if (state == LOOKING)
        store_read(r->options.store, &r->job);
    else
        store_write(r->options.store, &r->job);
}

/* ---- rows ---- */

static enum err cut_run(struct job *job, struct db *db)
{
    struct remover *r = (struct remover *)(void *)job;
    return doomed_rows_remove(db, r->page.thread, r->options.clock, REMOVER_SLICE_MS);
}

static void cut_done(struct job *job, enum err e)
{
    struct remover *r = (struct remover *)(void *)job;
    if (e) {
        remover_trouble(r, "rows of a deleted thread cannot be removed", e, NULL);
        return;
    }
    /* Two thirds of the time are others': who writes meanwhile waits for one slice at most. */
    r->state = RESTING;
    if (!r->stopping) timer_start(r->timer, 2 * REMOVER_SLICE_MS);
}

/* ---- files ---- */

static enum err forget_run(struct job *job, struct db *db)
{
    struct remover *r = (struct remover *)(void *)job;
    return doomed_files_gone(db, &r->page);
}

static void forget_done(struct job *job, enum err e)
{
    struct remover *r = (struct remover *)(void *)job;
    if (e)
        remover_trouble(r, "rows of removed files cannot be removed", e, NULL);
    else
        remover_look_it(r);
}

static void on_removed(void *arg, enum err e, const struct fault *reason)
{
    struct slot *slot = arg;
    struct remover *r = slot->remover;
    slot->job = NULL;
    r->page.files[slot - r->slots].gone = !e;
    if (e && !r->failed) {
        r->failed = e;
        if (reason)
            r->reason = *reason;
        else
            fault(&r->reason, e, "%s", err_title(e));
    }
    if (--r->left || r->stopping) return;
    for (size_t i = 0; i < r->page.count; i++) { /* on behind what could not be removed */
        const struct doomed_file *file = &r->page.files[i];
        if (file->gone) continue;
        if (file->blob)
            r->from.thread = r->page.thread;
        else
            r->from.attachments++;
    }
    start(r, FORGETTING, forget_run, forget_done);
}

/* ---- looking ---- */

static enum err look_run(struct job *job, struct db *db)
{
    struct remover *r = (struct remover *)(void *)job;
    arena_reset(&r->arena);
    return doomed_next(db, &r->arena, &r->from, &r->page);
}

/* From the beginning again: at once, later, or when there is something to do. */
static void end_of_list(struct remover *r)
{
    enum err failed = r->failed;
    r->from = (struct doomed_place){0};
    r->failed = OK;
    if (failed) {
        remover_trouble(r, "a file of a deleted thread cannot be removed", failed, &r->reason);
        return;
    }
    r->rests = 0;
    r->troubled = false;
    if (r->again) {
        remover_look_it(r);
        return;
    }
    r->state = IDLE;
    arena_done(&r->arena);
}

static void look_done(struct job *job, enum err e)
{
    struct remover *r = (struct remover *)(void *)job;
    if (r->stopping) return;
    if (e) {
        remover_trouble(r, "deleted threads cannot be looked for", e, NULL);
    } else if (r->page.count && blobs_held(r->options.blobs)) {
        rest(r);
    } else if (r->page.count) {
        r->state = UNLINKING;
        r->left = r->page.count;
        for (size_t i = 0; i < r->page.count; i++)
            r->slots[i] =
                (struct slot){r, blob_remove(r->options.blobs, r->page.files[i].bucket,
                                             r->page.files[i].path, on_removed, &r->slots[i])};
    } else if (r->page.thread) {
        start(r, CUTTING, cut_run, cut_done);
    } else {
        end_of_list(r);
    }
}

static void remover_look_it(struct remover *r)
{
    r->again = false;
    if (!r->stopping) start(r, LOOKING, look_run, look_done);
}

static void on_time(void *arg)
{
    remover_look_it(arg);
}

/* ---- life ---- */

struct remover *remover_new(const struct remover_options *options)
{
    struct remover *r = calloc(1, sizeof *r);
    if (!r) abort();
    r->options = *options;
    arena_init(&r->arena);
    r->timer = timer_new(options->loop, on_time, r);
    r->state = RESTING;
    timer_start(r->timer, 0);
    return r;
}

void remover_look(struct remover *r)
{
    if (r->state == IDLE)
        remover_look_it(r);
    else
        r->again = true;
}

void remover_stop(struct remover *r)
{
    r->stopping = true;
    timer_stop(r->timer);
}

void remover_free(struct remover *r)
{
    if (!r) return;
    for (size_t i = 0; i < COUNT(r->slots); i++)
        if (r->slots[i].job) blob_forget(r->slots[i].job);
    timer_free(r->timer);
    arena_done(&r->arena);
    free(r);
}
