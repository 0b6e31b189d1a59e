/* SPDX-License-Identifier: Apache-2.0
 *
 *     IDLE ── look ──▶ READING ── rows ──▶ PUTTING one after the other ──▶ MARKING ──▶ READING
 *       ▲                 │ none                │ failed
 *       └─────────────────┘                     ▼
 *                                            RESTING, longer each time ──▶ READING
 *
 * A page of rows is put one by one; those that were are marked in one commit. A look that comes in
 * between is remembered. A row whose file is lost or damaged can never be put: it is passed over, so
 * that the others do not wait for it, and tried again with the next look.
 */
#include "agent/keeper.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/limits.h"
#include "net/loop.h"
#include "store/blob.h"
#include "store/blob_rows.h"
#include "store/store.h"
#include "tool/spool.h"

enum keeper_state { KEEPER_IDLE, KEEPER_READING, KEEPER_PUTTING, KEEPER_MARKING, KEEPER_RESTING };

struct keeper {
    struct keeper_options options;
    struct job job;
    struct timer *timer;
    struct arena arena; /* of the page */
    enum keeper_state state;
    bool again, stopped;
    bool down;      /* the last put failed */
    unsigned rests; /* in a row */
    int64_t waiting;
    struct blob_rows page;
    size_t at;                /* the row of the page that is being put */
    bool stored[KEEPER_PAGE]; /* of those before it */
    int64_t passed;           /* the page begins behind this row; some up to it were passed over */
    struct blob_job *putting;
};

static void read_page(struct keeper *keeper);

static void on_timer(void *arg)
{
    read_page(arg);
}

static void rest(struct keeper *keeper)
{
    msec span = (msec)KEEPER_REST_MS << (keeper->rests < 6 ? keeper->rests : 6);
    keeper->rests++;
    keeper->state = KEEPER_RESTING;
    timer_start(keeper->timer, span < KEEPER_REST_MS_MAX ? span : KEEPER_REST_MS_MAX);
}

/* ---- marking ---- */

static enum err mark_run(struct job *job, struct db *db)
{
    struct keeper *keeper = CONTAINER(job, struct keeper, job);
    enum err e = OK;
    for (size_t i = 0; !e && i < keeper->at; i++)
        if (keeper->stored[i]) e = blob_row_stored(db, keeper->page.rows[i].n);
    return e;
}

/* On to the rows behind those that were passed over; in the end the next look begins anew. */
static void turn_page(struct keeper *keeper)
{
    for (size_t i = 0; i < keeper->at; i++)
        if (!keeper->stored[i]) keeper->passed = keeper->page.rows[i].n;
    if (keeper->down)
        rest(keeper);
    else
        read_page(keeper);
}

static void mark_done(struct job *job, enum err e)
{
    struct keeper *keeper = CONTAINER(job, struct keeper, job);
    if (keeper->stopped) {
        keeper->state = KEEPER_IDLE;
        return;
    }
    if (e) {
        keeper->options.on_trouble(keeper->options.arg, "stored payloads cannot be marked", e);
        rest(keeper);
        return;
    }
    for (size_t i = 0; i < keeper->at; i++)
        if (keeper->stored[i] && keeper->page.rows[i].spool.len)
            spool_remove(keeper->options.spool, keeper->page.rows[i].spool, NULL, NULL);
    turn_page(keeper);
}

static void mark(struct keeper *keeper)
{
    bool any = false;
    for (size_t i = 0; i < keeper->at; i++) any = any || keeper->stored[i];
    if (!any) {
        turn_page(keeper);
        return;
    }
    keeper->state = KEEPER_MARKING;
    keeper->job = (struct job){.run = mark_run, .done = mark_done};
    store_write(keeper->options.store, &keeper->job);
}

/* ---- putting ---- */

static void put_next(struct keeper *keeper);

/* This row is over. */
static void step(struct keeper *keeper, bool stored)
{
    keeper->stored[keeper->at++] = stored;
    if (keeper->at == keeper->page.count)
        mark(keeper);
    else
        put_next(keeper);
}

/* It is the row's own file that cannot be used; the storage may be well. */
static bool lost(const struct blob_row *row, enum err e)
{
    return row->spool.len && (e == ERR_NOT_FOUND || e == ERR_DAMAGED);
}

static void on_put(void *arg, enum err e, const struct fault *reason)
{
    struct keeper *keeper = arg;
    (void)reason;
    keeper->putting = NULL;
    if (lost(&keeper->page.rows[keeper->at], e)) {
        keeper->options.on_trouble(keeper->options.arg, "a payload is lost with its file", e);
        step(keeper, false);
        return;
    }
    if (keeper->down != (e != OK))
        keeper->options.on_trouble(
            keeper->options.arg, e ? "payloads cannot be stored" : "payloads are stored again", e);
    keeper->down = e != OK;
    if (e) {
        mark(keeper);
        return;
    }
    keeper->rests = 0;
    step(keeper, true);
}

static void put_next(struct keeper *keeper)
{
    const struct keeper_options *o = &keeper->options;
    const struct blob_row *row = &keeper->page.rows[keeper->at];
    keeper->state = KEEPER_PUTTING;
    if (row->spool.len)
        keeper->putting =
            blob_put_file(o->blobs, row->bucket, row->path,
                          spool_path(o->spool, &keeper->arena, row->spool), on_put, keeper);
    else
        keeper->putting = blob_put(o->blobs, row->bucket, row->path, row->bytes, on_put, keeper);
}

/* ---- reading ---- */

static enum err page_run(struct job *job, struct db *db)
{
    struct keeper *keeper = CONTAINER(job, struct keeper, job);
    enum err e = blob_rows_waiting_count(db, &keeper->waiting);
    if (!e) e = blob_rows_waiting(db, &keeper->arena, keeper->passed, KEEPER_PAGE, &keeper->page);
    return e;
}

static void page_done(struct job *job, enum err e)
{
    struct keeper *keeper = CONTAINER(job, struct keeper, job);
    keeper->state = KEEPER_IDLE;
    if (keeper->stopped) return;
    if (e) {
        rest(keeper);
    } else if (keeper->page.count) {
        put_next(keeper);
    } else {
        keeper->passed = 0;
        if (keeper->again) read_page(keeper);
    }
}

static void read_page(struct keeper *keeper)
{
    arena_reset(&keeper->arena);
    keeper->page = (struct blob_rows){0};
    keeper->at = 0;
    keeper->again = false;
    keeper->state = KEEPER_READING;
    keeper->job = (struct job){.run = page_run, .done = page_done};
    store_read(keeper->options.store, &keeper->job);
}

void keeper_look(struct keeper *keeper)
{
    if (keeper->stopped) return;
    if (keeper->state == KEEPER_IDLE)
        read_page(keeper);
    else
        keeper->again = true;
}

size_t keeper_waiting(const struct keeper *keeper)
{
    return (size_t)keeper->waiting;
}

/* ---- life ---- */

struct keeper *keeper_new(const struct keeper_options *options)
{
    struct keeper *keeper = calloc(1, sizeof *keeper);
    if (!keeper) abort();
    keeper->options = *options;
    arena_init(&keeper->arena);
    keeper->timer = timer_new(options->loop, on_timer, keeper);
    return keeper;
}

void keeper_stop(struct keeper *keeper)
{
    keeper->stopped = true;
    timer_stop(keeper->timer);
    if (keeper->putting) blob_forget(TAKE(keeper->putting));
}

void keeper_free(struct keeper *keeper)
{
    if (!keeper) return;
    timer_free(keeper->timer);
    arena_done(&keeper->arena);
    free(keeper);
}
