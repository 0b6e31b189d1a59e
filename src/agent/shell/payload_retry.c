/* SPDX-License-Identifier: Apache-2.0
 *
 * Payloads that could not be put into object storage when they were made: put later.
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
#include "agent/shell/payload_retry.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/limits.h"
#include "net/loop.h"
#include "store/blob/blob.h"
#include "store/db/store.h"
#include "store/table/blob_rows.h"
#include "tool/spool.h"

enum payload_retry_state { RETRY_IDLE, RETRY_READING, RETRY_PUTTING, RETRY_MARKING, RETRY_RESTING };

struct payload_retry {
    struct payload_retry_options options;
    struct job job;
    struct timer *timer;
    struct arena arena; /* of the page */
    enum payload_retry_state state;
    bool again, stopped;
    bool down;       /* the last put failed */
    unsigned rests;  /* in a row */
    int64_t waiting; /* as of the last look; of the loop */
    int64_t counted; /* by the look under way, on a store thread */
    struct blob_rows page;
    size_t at;                       /* the row of the page that is being put */
    bool stored[PAYLOAD_RETRY_PAGE]; /* of those before it */
    int64_t passed; /* the page begins behind this row; some up to it were passed over */
    struct blob_job *putting;
};

static void read_page(struct payload_retry *retry);

static void on_timer(void *arg)
{
    read_page(arg);
}

static void payload_retry_rest(struct payload_retry *retry)
{
    msec span = (msec)PAYLOAD_RETRY_REST_MS << (retry->rests < 6 ? retry->rests : 6);
    retry->rests++;
    retry->state = RETRY_RESTING;
    timer_start(retry->timer, span < PAYLOAD_RETRY_REST_MS_MAX ? span : PAYLOAD_RETRY_REST_MS_MAX);
}

/* ---- marking ---- */

static enum err mark_run(struct job *job, struct db *db)
{
    struct payload_retry *retry = CONTAINER(job, struct payload_retry, job);
    enum err e = OK;
    for (size_t i = 0; !e && i < retry->at; i++)
        if (retry->stored[i]) e = blob_row_stored(db, retry->page.rows[i].n);
    return e;
}

/* On to the rows behind those that were passed over; in the end the next look begins anew. */
static void turn_page(struct payload_retry *retry)
{
    for (size_t i = 0; i < retry->at; i++)
        if (!retry->stored[i]) retry->passed = retry->page.rows[i].n;
    if (retry->down)
        payload_retry_rest(retry);
    else
        read_page(retry);
}

static void mark_done(struct job *job, enum err e)
{
    struct payload_retry *retry = CONTAINER(job, struct payload_retry, job);
    if (retry->stopped) {
        retry->state = RETRY_IDLE;
        return;
    }
    if (e) {
        retry->options.on_trouble(retry->options.arg, "stored payloads cannot be marked", e);
        payload_retry_rest(retry);
        return;
    }
    for (size_t i = 0; i < retry->at; i++)
        if (retry->stored[i] && retry->page.rows[i].spool.len)
            spool_remove(retry->options.spool, retry->page.rows[i].spool, NULL, NULL);
    turn_page(retry);
}

static void mark(struct payload_retry *retry)
{
    bool any = false;
    for (size_t i = 0; i < retry->at; i++) any = any || retry->stored[i];
    if (!any) {
        turn_page(retry);
        return;
    }
    retry->state = RETRY_MARKING;
    retry->job = (struct job){.run = mark_run, .done = mark_done};
    store_write(retry->options.store, &retry->job);
}

/* ---- putting ---- */

static void put_next(struct payload_retry *retry);

/* This row is over. */
static void step(struct payload_retry *retry, bool stored)
{
    retry->stored[retry->at++] = stored;
    if (retry->at == retry->page.count)
        mark(retry);
    else
        put_next(retry);
}

/* It is the row's own file that cannot be used; the storage may be well. */
static bool lost(const struct blob_row *row, enum err e)
{
    return row->spool.len && (e == ERR_NOT_FOUND || e == ERR_DAMAGED);
}

static void on_put(void *arg, enum err e, const struct fault *reason)
{
    struct payload_retry *retry = arg;
    (void)reason;
    retry->putting = NULL;
    if (lost(&retry->page.rows[retry->at], e)) {
        retry->options.on_trouble(retry->options.arg, "a payload is lost with its file", e);
        step(retry, false);
        return;
    }
    if (retry->down != (e != OK))
        retry->options.on_trouble(retry->options.arg,
                                  e ? "payloads cannot be stored" : "payloads are stored again", e);
    retry->down = e != OK;
    if (e) {
        mark(retry);
        return;
    }
    retry->rests = 0;
    step(retry, true);
}

static void put_next(struct payload_retry *retry)
{
    const struct payload_retry_options *o = &retry->options;
    const struct blob_row *row = &retry->page.rows[retry->at];
    retry->state = RETRY_PUTTING;
    if (row->spool.len)
        retry->putting =
            blob_put_file(o->blobs, row->bucket, row->path,
                          spool_path(o->spool, &retry->arena, row->spool), on_put, retry);
    else
        retry->putting = blob_put(o->blobs, row->bucket, row->path, row->bytes, on_put, retry);
}

/* ---- reading ---- */

static enum err page_run(struct job *job, struct db *db)
{
    struct payload_retry *retry = CONTAINER(job, struct payload_retry, job);
    enum err e = blob_rows_waiting_count(db, &retry->counted);
    if (!e)
        e = blob_rows_waiting(db, &retry->arena, retry->passed, PAYLOAD_RETRY_PAGE, &retry->page);
    return e;
}

static void page_done(struct job *job, enum err e)
{
    struct payload_retry *retry = CONTAINER(job, struct payload_retry, job);
    retry->state = RETRY_IDLE;
    if (!e) retry->waiting = retry->counted;
    if (retry->stopped) return;
    if (e) {
        payload_retry_rest(retry);
    } else if (retry->page.count) {
        put_next(retry);
    } else {
        retry->passed = 0;
        if (retry->again) read_page(retry);
    }
}

static void read_page(struct payload_retry *retry)
{
    arena_reset(&retry->arena);
    retry->page = (struct blob_rows){0};
    retry->at = 0;
    retry->again = false;
    retry->state = RETRY_READING;
    retry->job = (struct job){.run = page_run, .done = page_done};
    store_read(retry->options.store, &retry->job);
}

void payload_retry_look(struct payload_retry *retry)
{
    if (retry->stopped) return;
    if (retry->state == RETRY_IDLE)
        read_page(retry);
    else
        retry->again = true;
}

size_t payload_retry_waiting(const struct payload_retry *retry)
{
    return (size_t)retry->waiting;
}

/* ---- life ---- */

struct payload_retry *payload_retry_new(const struct payload_retry_options *options)
{
    struct payload_retry *retry = calloc(1, sizeof *retry);
    if (!retry) abort();
    retry->options = *options;
    arena_init(&retry->arena);
    retry->timer = timer_new(options->loop, on_timer, retry);
    return retry;
}

void payload_retry_stop(struct payload_retry *retry)
{
    retry->stopped = true;
    timer_stop(retry->timer);
    if (retry->putting) blob_forget(TAKE(retry->putting));
}

void payload_retry_free(struct payload_retry *retry)
{
    if (!retry) return;
    timer_free(retry->timer);
    arena_done(&retry->arena);
    free(retry);
}
