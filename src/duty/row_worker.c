/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker on rows: take one, do it, store how it ended.
 *
 *          row_worker_go             nothing to do, or the store could not
 *   IDLE ───────────────► TAKING ──────────────────────────────────────────► IDLE, perhaps a timer
 *     ▲                     │ a row
 *     │ row_worker_leave    ▼                  row_worker_end
 *     └────────────────── WORKING ───────────────────────────► ENDING ──────► IDLE
 *                                                   the store could not: once more, in a second
 *
 * Invariants:
 * 1. One step is under way at a time. So what one worker does is done in order; who wants several rows
 *    done at once has several workers, and a take that passes over what the others have.
 * 2. Work whose end is not stored is not left: nothing is done behind it before the store knows.
 * 3. The wall clock says when, and may jump: nobody sleeps longer than CLOCKWORK_LOOK_MS.
 */
#include "duty/row_worker.h"

#include "base/limits.h"
#include "net/loop.h"

msec backoff_ms(uint32_t failures)
{
    static const msec seconds[] = {1, 5, 30, 2 * 60, 10 * 60, 60 * 60};
    size_t i = failures ? failures - 1 : 0;
    return 1000 * seconds[i < COUNT(seconds) ? i : COUNT(seconds) - 1];
}

msec backoff_short_ms(uint32_t failures, msec most)
{
    static const msec seconds[] = {1, 2, 5, 10, 30, 60};
    size_t i = failures ? failures - 1 : 0;
    msec wait = 1000 * seconds[i < COUNT(seconds) ? i : COUNT(seconds) - 1];
    return wait < most ? wait : most;
}

static void on_time(void *arg)
{
    struct row_worker *worker = arg;
    timer_free(TAKE(worker->timer));
    if (worker->state == ROW_ENDING)
        store_write(worker->store, &worker->job);
    else if (worker->ops->due)
        worker->ops->due(worker);
    else
        row_worker_go(worker);
}

static void look_again_in(struct row_worker *worker, msec in)
{
    if (!worker->timer) worker->timer = timer_new(worker->loop, on_time, worker);
    timer_start(worker->timer, in < 0 ? 0 : in < CLOCKWORK_LOOK_MS ? in : CLOCKWORK_LOOK_MS);
}

static void come_to_rest(struct row_worker *worker, bool ended)
{
    worker->state = ROW_IDLE;
    if (worker->ops->rest)
        worker->ops->rest(worker, ended);
    else if (ended)
        row_worker_go(worker);
}

static enum err take_run(struct job *job, struct db *db)
{
    struct row_worker *worker = CONTAINER(job, struct row_worker, job);
    worker->none = false;
    worker->at = 0;
    return worker->ops->take(worker, db);
}

static void take_done(struct job *job, enum err e)
{
    struct row_worker *worker = CONTAINER(job, struct row_worker, job);
    if (worker->stopping) return;
    if (!e && !worker->none) {
        worker->state = ROW_WORKING;
        worker->ops->work(worker);
        return;
    }
    if (e) {
        log_warn(worker->ops->untaken, worker->about, LOG_CSTR("reason", err_title(e)));
        look_again_in(worker, ROW_WORKER_RETRY_MS);
    } else if (worker->at) {
        look_again_in(worker, worker->at - worker->now);
    }
    come_to_rest(worker, false);
}

void row_worker_go(struct row_worker *worker)
{
    assert(worker->state == ROW_IDLE);
    if (worker->stopping) return;
    if (worker->timer) timer_free(TAKE(worker->timer));
    worker->state = ROW_TAKING;
    worker->now = clock_wall(worker->clock);
    worker->job = (struct job){.run = take_run, .done = take_done};
    if (worker->ops->take_reads)
        store_read(worker->store, &worker->job);
    else
        store_write(worker->store, &worker->job);
}

static enum err end_run(struct job *job, struct db *db)
{
    struct row_worker *worker = CONTAINER(job, struct row_worker, job);
    return worker->ops->end(worker, db);
}

static void end_done(struct job *job, enum err e)
{
    struct row_worker *worker = CONTAINER(job, struct row_worker, job);
    if (worker->stopping) return;
    if (e) {
        log_warn(worker->ops->unended, worker->about, LOG_CSTR("reason", err_title(e)));
        look_again_in(worker, ROW_WORKER_RETRY_MS);
        return;
    }
    come_to_rest(worker, true);
}

void row_worker_end(struct row_worker *worker)
{
    assert(worker->state == ROW_WORKING);
    worker->state = ROW_ENDING;
    worker->now = clock_wall(worker->clock);
    worker->job = (struct job){.run = end_run, .done = end_done};
    store_write(worker->store, &worker->job);
}

void row_worker_leave(struct row_worker *worker, msec in)
{
    assert(worker->state == ROW_WORKING);
    if (in) look_again_in(worker, in);
    come_to_rest(worker, false);
}

void row_worker_stop(struct row_worker *worker)
{
    worker->stopping = true;
    timer_free(TAKE(worker->timer));
}
