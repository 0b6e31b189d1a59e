/* SPDX-License-Identifier: Apache-2.0
 *
 * The sweeper: rounds through object storage that remove objects which nothing names, and files
 * that nobody used.
 *
 *   timer ─► list: a page of old objects ─► read: which are named ─► remove the others, one by one
 *     ▲          ▲                                                      │          │ last page
 *     │          └──────────────────────────────────────────────────────┘          ▼
 *     └─── told ◄── remove their objects ◄── write: rows of attachments that nobody used
 *
 * Invariants:
 * 1. One thing is under way at a time: a job of the storage or of the store, or the timer.
 * 2. An object goes only if it was old when it was listed, nothing named it after that, and it is
 *    still old when it is removed (blob_sweep). So one that is put again meanwhile stays.
 * 3. The row of an attachment goes first: a crash leaves an object that nothing names, which the next
 *    round finds, and never a row without its object.
 * 4. What cannot be removed does not keep the rest from it; a round that cannot look ends.
 */
#include "duty/sweeper.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "net/loop.h"
#include "store/blob/blob.h"
#include "store/db/store.h"
#include "store/table/attachments.h"
#include "store/table/blob_rows.h"

enum sweeper_phase {
    PHASE_LIST,
    PHASE_ASK,
    PHASE_REMOVE,
    PHASE_UNUSED,
    PHASE_REMOVE_UNUSED,
    PHASE_END
};

struct sweeper {
    struct job job; /* one at a time */
    struct sweeper_options options;
    struct timer *timer;
    struct blob_job *blob;    /* under way */
    enum sweeper_phase phase; /* what comes next */
    bool stopping;
    msec before;    /* this round's objects are older */
    uint64_t swept; /* by anybody, before the removal under way */
    struct sweep_round round;
    size_t troubles; /* of this round, and the first of them */
    const char *trouble;
    struct fault reason;

    struct arena arena;     /* of the page */
    struct blob_name *page; /* what is listed; then only what nothing names */
    size_t page_count, at;
    bool *needed;
    bool more;
    char after_bucket[BLOB_BUCKET_BYTES], after_path[BLOB_PATH_BYTES];
};

static void next(struct sweeper *s);

static void sweeper_trouble(struct sweeper *s, const char *what, enum err e,
                            const struct fault *reason)
{
    if (s->troubles++) return;
    s->trouble = what;
    if (reason)
        s->reason = *reason;
    else
        fault(&s->reason, e, "%s", err_title(e));
}

/* ---- objects that nothing names ---- */

static void on_listed(void *arg, enum err e, const struct blob_name *names, size_t count, bool more,
                      const struct fault *reason)
{
    struct sweeper *s = arg;
    s->blob = NULL;
    if (e) sweeper_trouble(s, "objects cannot be listed", e, reason);
    arena_reset(&s->arena);
    s->more = !e && more;
    s->at = 0;
    s->page_count = e ? 0 : count;
    s->page = arena_array(&s->arena, s->page_count, sizeof *s->page);
    s->needed = arena_array(&s->arena, s->page_count, sizeof *s->needed);
    for (size_t i = 0; i < s->page_count; i++)
        s->page[i] = (struct blob_name){arena_str(&s->arena, names[i].bucket),
                                        arena_str(&s->arena, names[i].path)};
    s->round.looked += s->page_count;
    s->phase = s->page_count ? PHASE_ASK : PHASE_UNUSED;
    next(s);
}

static enum err ask_run(struct job *job, struct db *db)
{
    struct sweeper *s = (struct sweeper *)(void *)job;
    for (size_t i = 0; i < s->page_count; i++) {
        enum err e = blob_needed(db, s->page[i].bucket, s->page[i].path, &s->needed[i]);
        if (e) return e;
    }
    return OK;
}

static void ask_done(struct job *job, enum err e)
{
    struct sweeper *s = (struct sweeper *)(void *)job;
    if (e) {
        sweeper_trouble(s, "the store does not say which objects are needed", e, NULL);
        s->phase = PHASE_END;
        next(s);
        return;
    }
    struct blob_name last = s->page[s->page_count - 1];
    memcpy(s->after_bucket, last.bucket.p, last.bucket.len);
    s->after_bucket[last.bucket.len] = '\0';
    memcpy(s->after_path, last.path.p, last.path.len);
    s->after_path[last.path.len] = '\0';
    size_t kept = 0;
    for (size_t i = 0; i < s->page_count; i++)
        if (!s->needed[i]) s->page[kept++] = s->page[i];
    s->page_count = kept;
    s->phase = PHASE_REMOVE;
    next(s);
}

static void on_removed(void *arg, enum err e, const struct fault *reason)
{
    struct sweeper *s = arg;
    s->blob = NULL;
    if (e) sweeper_trouble(s, "an object cannot be removed", e, reason);
    s->round.removed += blobs_stats(s->options.blobs).swept - s->swept; /* it may have stayed */
    next(s);
}

/* ---- attachments that nobody used ---- */

static enum err unused_run(struct job *job, struct db *db)
{
    struct sweeper *s = (struct sweeper *)(void *)job;
    struct attachment_list unused = {0};
    arena_reset(&s->arena);
    s->page_count = 0;
    msec before = clock_wall(s->options.clock) - SWEEP_UNUSED_MS;
    enum err e = attachments_unused(db, &s->arena, before, SWEEP_PAGE, &unused);
    if (e) return e;
    s->page = arena_array(&s->arena, unused.count, sizeof *s->page);
    for (size_t i = 0; i < unused.count; i++) {
        e = attachment_delete(db, unused.rows[i].id);
        if (e) return e;
        s->page[i] = (struct blob_name){unused.rows[i].bucket, unused.rows[i].path};
    }
    s->page_count = unused.count;
    return OK;
}

static void unused_done(struct job *job, enum err e)
{
    struct sweeper *s = (struct sweeper *)(void *)job;
    if (e) {
        sweeper_trouble(s, "files that nobody used cannot be removed", e, NULL);
        s->page_count = 0;
    }
    s->at = 0;
    s->round.attachments += s->page_count;
    s->more = s->page_count == SWEEP_PAGE;
    s->phase = PHASE_REMOVE_UNUSED;
    next(s);
}

static void on_unused_removed(void *arg, enum err e, const struct fault *reason)
{
    struct sweeper *s = arg;
    s->blob = NULL;
    if (e) sweeper_trouble(s, "an object cannot be removed", e, reason);
    next(s);
}

/* ---- rounds ---- */

/* Begin what comes next. */
static void next(struct sweeper *s)
{
    if (s->stopping) return;
    if (s->phase == PHASE_REMOVE && s->at == s->page_count)
        s->phase = s->more ? PHASE_LIST : PHASE_UNUSED;
    if (s->phase == PHASE_REMOVE_UNUSED && s->at == s->page_count)
        s->phase = s->more ? PHASE_UNUSED : PHASE_END;
    struct blob_name name;
    switch (s->phase) {
    case PHASE_LIST:
        s->blob = blob_list(s->options.blobs,
                            (struct blob_name){str_c(s->after_bucket), str_c(s->after_path)},
                            s->before, SWEEP_PAGE, on_listed, s);
        break;
    case PHASE_ASK:
        s->job = (struct job){.run = ask_run, .done = ask_done};
        store_read(s->options.store, &s->job);
        break;
    case PHASE_REMOVE:
        name = s->page[s->at++];
        s->swept = blobs_stats(s->options.blobs).swept;
        s->blob = blob_sweep(s->options.blobs, name.bucket, name.path, s->before, on_removed, s);
        break;
    case PHASE_UNUSED:
        s->job = (struct job){.run = unused_run, .done = unused_done};
        store_write(s->options.store, &s->job);
        break;
    case PHASE_REMOVE_UNUSED:
        name = s->page[s->at++];
        s->blob = blob_sweep(s->options.blobs, name.bucket, name.path, clock_wall(s->options.clock),
                             on_unused_removed, s);
        break;
    case PHASE_END:
        arena_done(&s->arena);
        timer_start(s->timer, s->options.every_ms);
        if (s->troubles) s->options.on_trouble(s->options.arg, s->trouble, s->troubles, &s->reason);
        if (s->options.on_round) s->options.on_round(s->options.arg, &s->round);
        break;
    }
}

static void on_time(void *arg)
{
    struct sweeper *s = arg;
    s->before = clock_wall(s->options.clock) - s->options.grace_ms;
    s->round = (struct sweep_round){0};
    s->troubles = 0;
    s->after_bucket[0] = s->after_path[0] = '\0';
    s->phase = PHASE_LIST;
    next(s);
}

struct sweeper *sweeper_new(const struct sweeper_options *options)
{
    struct sweeper *s = calloc(1, sizeof *s);
    if (!s) abort();
    s->options = *options;
    arena_init(&s->arena);
    s->timer = timer_new(options->loop, on_time, s);
    timer_start(s->timer, 0);
    return s;
}

void sweeper_stop(struct sweeper *s)
{
    s->stopping = true;
    timer_stop(s->timer);
}

void sweeper_free(struct sweeper *s)
{
    if (!s) return;
    if (s->blob) blob_forget(s->blob);
    timer_free(s->timer);
    arena_done(&s->arena);
    free(s);
}
