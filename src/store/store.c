/* SPDX-License-Identifier: Apache-2.0
 *
 * Group commit. While one commit waits for the disk, the next jobs queue up; the writing thread
 * then takes them all (at most STORE_BATCH_JOBS_MAX) into one transaction:
 *
 *     BEGIN; job; job; ...; COMMIT; results to the loop                                  plainly
 *              | a job failed, having changed something: ROLLBACK
 *              v
 *     BEGIN; { SAVEPOINT; job; RELEASE or ROLLBACK TO } for each; COMMIT; results        guarded
 *              | SQLite rolled back everything; or, also from above, COMMIT found the
 *              | disk full or a job's deferred check broken
 *              v
 *     each job alone: BEGIN; job; COMMIT or ROLLBACK; results
 *
 * A savepoint copies every page that its job touches, a fifth of this thread's work, and jobs that
 * fail mostly do so before they change anything: so savepoints come second. A COMMIT that fails in
 * any other way (I/O) ends the process: the commit may be on disk, so neither "done" nor "failed"
 * would be true, and going on could make it vanish.
 *
 * Invariants:
 * 1. A result goes to the loop after the commit that holds the job's changes, never before.
 * 2. Results of writes go to the loop in the order of store_write.
 * 3. `mutex` guards the queues, the figures and `stopping`, and is never held during a job.
 *    `writer_mutex` guards the writing connection, and is held during a batch.
 * 4. Only the writing connection checkpoints (see sqlite.h), between batches, after the results
 *    have gone.
 */
#include "store/store.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "net/loop.h"
#include "store/migrate.h"
#include "store/sqlite.h"

/* First in, first out; jobs are linked through job->next. */
struct queue {
    struct job *first, **last;
    size_t count;
};

/* What the loop holds while results wait for it. It outlives the store when the store is closed in
 * that time; then store is NULL and the task has nothing to do but free this. */
struct delivery {
    struct loop_task task;
    struct store *store;
    bool posted;
};

struct store {
    struct loop *loop;
    char path[PATH_MAX];

    pthread_mutex_t mutex;
    pthread_cond_t write_ready, read_ready;
    struct queue writes, reads, results;
    struct store_stats stats;
    bool stopping;
    struct delivery *delivery;
    struct loop_defer wake; /* the loop's own */

    pthread_mutex_t writer_mutex;
    struct db *writer;
    int checkpoint_at; /* pages of the log */

    pthread_t threads[1 + STORE_READERS];
    size_t thread_count;
};

/* ---- queues ---- */

static void queue_init(struct queue *queue)
{
    *queue = (struct queue){.last = &queue->first};
}

static void queue_push(struct queue *queue, struct job *job)
{
    job->next = NULL;
    *queue->last = job;
    queue->last = &job->next;
    queue->count++;
}

static struct job *queue_pop(struct queue *queue)
{
    struct job *job = queue->first;
    if (!job) return NULL;
    queue->first = job->next;
    if (!queue->first) queue->last = &queue->first;
    queue->count--;
    return job;
}

/* Move up to `max` jobs from the front of one to the end of the other. */
static void queue_move(struct queue *to, struct queue *from, size_t max)
{
    for (size_t i = 0; i < max && from->first; i++) queue_push(to, queue_pop(from));
}

/* ---- results, back to the loop ---- */

static void deliver(struct store *store)
{
    struct queue results;
    queue_init(&results);
    pthread_mutex_lock(&store->mutex);
    queue_move(&results, &store->results, SIZE_MAX);
    store->delivery->posted = false;
    pthread_mutex_unlock(&store->mutex);
    for (struct job *job; (job = queue_pop(&results));) job->done(job, job->result);
}

static void on_delivery(struct loop_task *task)
{
    struct delivery *delivery = CONTAINER(task, struct delivery, task);
    if (delivery->store)
        deliver(delivery->store);
    else
        free(delivery);
}

/* The jobs' results are final: hand them to the loop. One message is under way at most; it takes
 * all that has come until it arrives. */
static void finish(struct store *store, struct queue *jobs)
{
    pthread_mutex_lock(&store->mutex);
    queue_move(&store->results, jobs, SIZE_MAX);
    bool post = !store->delivery->posted;
    store->delivery->posted = true;
    pthread_mutex_unlock(&store->mutex);
    if (post) loop_post(store->loop, &store->delivery->task);
}

/* ---- writing ---- */

/* The disk failed in a way that leaves open what is on it. Nothing below app/ logs, but this is
 * the last thing the process does. */
static _Noreturn void stop_process(struct db *db, const char *what)
{
    char line[512];
    int len = snprintf(line, sizeof line,
                       "fermata: fatal: %s failed (%s). What was saved is known only after a "
                       "restart; check the disk, then start again.\n",
                       what, db_message(db));
    size_t count = (size_t)len < sizeof line ? (size_t)len : sizeof line - 1;
    ssize_t written = write(STDERR_FILENO, line, count);
    (void)written;
    _exit(STORE_EXIT_UNKNOWN);
}

static void roll_back(struct store *store)
{
    if (db_rollback(store->writer)) stop_process(store->writer, "rolling back");
}

static enum err commit(struct store *store)
{
    bool unknown = false;
    enum err e = db_commit(store->writer, &unknown);
    if (unknown) stop_process(store->writer, "committing to the database");
    if (e) return e;
    pthread_mutex_lock(&store->mutex);
    store->stats.commits++;
    pthread_mutex_unlock(&store->mutex);
    return OK;
}

static enum err run_alone(struct store *store, struct job *job)
{
    struct db *db = store->writer;
    enum err e = db_begin(db);
    if (e) return e;
    e = job->run(job, db);
    db_settle(db);
    if (!e) e = commit(store);
    if (e) roll_back(store);
    return e;
}

/* How a batch in one transaction ended. The last two: nothing was committed. */
enum batch_end { BATCH_DONE, BATCH_SPOILT, BATCH_LOST };

/* A job that fails before it has changed anything leaves nothing to undo. */
static enum batch_end run_plainly(struct db *db, struct job *job)
{
    int64_t before = db_total_changes(db);
    job->result = job->run(job, db);
    db_settle(db);
    if (db_lost(db)) return BATCH_LOST;
    return job->result && db_total_changes(db) != before ? BATCH_SPOILT : BATCH_DONE;
}

static enum batch_end run_in_savepoint(struct db *db, struct job *job)
{
    if (db_savepoint(db)) return BATCH_LOST;
    job->result = job->run(job, db);
    db_settle(db);
    if (db_lost(db)) return BATCH_LOST;
    if (job->result && db_savepoint_undo(db)) return BATCH_LOST;
    return db_savepoint_release(db) ? BATCH_LOST : BATCH_DONE;
}

static enum batch_end run_together(struct store *store, const struct queue *batch,
                                   enum batch_end (*run)(struct db *db, struct job *job))
{
    enum err e = db_begin(store->writer);
    for (struct job *job = batch->first; job && e; job = job->next) job->result = e;
    if (e) return BATCH_DONE;

    enum batch_end end = BATCH_DONE;
    for (struct job *job = batch->first; job && end == BATCH_DONE; job = job->next)
        end = run(store->writer, job);
    if (end == BATCH_DONE && commit(store)) end = BATCH_LOST;
    if (end != BATCH_DONE) roll_back(store);
    return end;
}

static void run_batch(struct store *store, const struct queue *batch)
{
    uint64_t full = 0, retries = 0;
    bool alone = batch->count == 1;
    enum batch_end end = alone ? BATCH_LOST : run_together(store, batch, run_plainly);
    if (end != BATCH_DONE && !alone) retries = batch->count;
    if (end == BATCH_SPOILT) end = run_together(store, batch, run_in_savepoint);
    for (struct job *job = batch->first; job && end == BATCH_LOST; job = job->next)
        job->result = run_alone(store, job);
    for (struct job *job = batch->first; job; job = job->next)
        full += job->result == ERR_STORAGE_FULL;

    pthread_mutex_lock(&store->mutex);
    store->stats.jobs += batch->count;
    store->stats.retries += retries;
    store->stats.full += full;
    pthread_mutex_unlock(&store->mutex);
}

/* Nothing committed depends on it, and a full disk or busy readers only put it off. But a disk
 * that fails here cannot be trusted with the next commit either.
 *
 * Readers may keep the log from beginning anew. Then it is tried again when the log has grown by as
 * much; and when it is so long that we wait for them, and that was in vain, when it has doubled:
 * one long read (a backup) must not hold up every batch until it ends. */
static void checkpoint(struct store *store)
{
    int pages = db_wal_pages(store->writer);
    if (pages < STORE_WAL_PAGES) store->checkpoint_at = STORE_WAL_PAGES; /* it began anew */
    if (pages < store->checkpoint_at) return;
    bool wait = pages >= STORE_WAL_PAGES_HIGH;
    enum err e = db_checkpoint(store->writer, wait);
    if (e == ERR_IO) stop_process(store->writer, "copying the log into the database");
    store->checkpoint_at = wait && e == ERR_LOCKED ? 2 * pages : pages + STORE_WAL_PAGES;
}

/* Wait for jobs. False: there are none left and the store is closing. */
static bool next_batch(struct store *store, struct queue *batch)
{
    queue_init(batch);
    pthread_mutex_lock(&store->mutex);
    while (!store->writes.first && !store->stopping)
        pthread_cond_wait(&store->write_ready, &store->mutex);
    queue_move(batch, &store->writes, STORE_BATCH_JOBS_MAX);
    pthread_mutex_unlock(&store->mutex);
    return batch->first != NULL;
}

static void *write_thread(void *arg)
{
    struct store *store = arg;
    for (struct queue batch; next_batch(store, &batch);) {
        pthread_mutex_lock(&store->writer_mutex);
        run_batch(store, &batch);
        finish(store, &batch);
        checkpoint(store);
        pthread_mutex_unlock(&store->writer_mutex);
    }
    return NULL;
}

enum err store_run(struct store *store, struct job *job)
{
    struct queue batch;
    queue_init(&batch);
    queue_push(&batch, job);
    pthread_mutex_lock(&store->writer_mutex);
    run_batch(store, &batch);
    checkpoint(store);
    pthread_mutex_unlock(&store->writer_mutex);
    return job->result;
}

/* ---- reading ---- */

static enum err run_read(struct db *db, struct job *job)
{
    bool unknown = false; /* nothing was written, so it makes no difference */
    enum err e = db_begin(db);
    if (e) return e;
    e = job->run(job, db);
    db_settle(db);
    enum err ended = db_commit(db, &unknown);
    if (ended) ended = db_rollback(db);
    return e ? e : ended;
}

static struct job *next_read(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    while (!store->reads.first && !store->stopping)
        pthread_cond_wait(&store->read_ready, &store->mutex);
    struct job *job = queue_pop(&store->reads);
    pthread_mutex_unlock(&store->mutex);
    return job;
}

/* The connection is opened by the first job, so that a quiet process has none. */
static void *read_thread(void *arg)
{
    struct store *store = arg;
    AUTO(db_closep) struct db *db = NULL;
    for (struct job *job; (job = next_read(store));) {
        job->result = db ? OK : db_open(store->path, DB_READER, &db, NULL);
        if (db) job->result = run_read(db, job);
        struct queue done;
        queue_init(&done);
        queue_push(&done, job);
        finish(store, &done);
    }
    return NULL;
}

/* ---- the loop's side ---- */

/* False: refused, and the result is on its way. */
static bool submit(struct store *store, struct queue *queue, struct job *job)
{
    assert(store->loop); /* without a loop there is only store_run */
    struct queue refused;
    queue_init(&refused);
    pthread_mutex_lock(&store->mutex);
    enum err e = store->stopping ? ERR_SHUTTING_DOWN : OK;
    if (!e && queue->count >= STORE_QUEUE_JOBS_MAX) e = ERR_RATE_LIMITED;
    job->result = e;
    queue_push(e ? &refused : queue, job);
    pthread_mutex_unlock(&store->mutex);
    if (e) finish(store, &refused);
    return !e;
}

static void on_wake(struct loop_defer *wake)
{
    pthread_cond_signal(&CONTAINER(wake, struct store, wake)->write_ready);
}

/* The writing thread is woken at the end of the loop's turn: woken by the first job of a burst it
 * would go and commit that one alone, and the others would wait for the disk twice. */
void store_write(struct store *store, struct job *job)
{
    if (submit(store, &store->writes, job)) loop_defer(store->loop, &store->wake);
}

void store_read(struct store *store, struct job *job)
{
    if (submit(store, &store->reads, job)) pthread_cond_signal(&store->read_ready);
}

bool store_stopping(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    bool stopping = store->stopping;
    pthread_mutex_unlock(&store->mutex);
    return stopping;
}

struct store_stats store_stats(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    struct store_stats stats = store->stats;
    pthread_mutex_unlock(&store->mutex);
    return stats;
}

/* ---- opening and closing ---- */

/* Signals belong to the loop's thread: a new thread inherits the mask of its maker. */
static enum err threads_start(struct store *store, struct fault *reterr)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STORE_STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = 0;
    while (store->thread_count < COUNT(store->threads) && !failed) {
        bool writes = store->thread_count == 0;
        pthread_t *thread = &store->threads[store->thread_count];
        failed = pthread_create(thread, &attr, writes ? write_thread : read_thread, store);
        if (failed) break;
        pthread_setname_np(*thread, writes ? "store-write" : "store-read");
        store->thread_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (!failed) return OK;
    return fault(reterr, ERR_IO, "a thread of the store cannot be started: %s", strerror(failed));
}

static struct store *store_new(struct loop *loop)
{
    struct store *store = calloc(1, sizeof *store);
    struct delivery *delivery = calloc(1, sizeof *delivery);
    if (!store || !delivery) abort();
    store->loop = loop;
    store->delivery = delivery;
    delivery->task.fn = on_delivery;
    delivery->store = store;
    store->wake.fn = on_wake;
    queue_init(&store->writes);
    queue_init(&store->reads);
    queue_init(&store->results);
    pthread_mutex_init(&store->mutex, NULL);
    pthread_mutex_init(&store->writer_mutex, NULL);
    pthread_cond_init(&store->write_ready, NULL);
    pthread_cond_init(&store->read_ready, NULL);
    return store;
}

static void threads_stop(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->stopping = true;
    pthread_mutex_unlock(&store->mutex);
    pthread_cond_broadcast(&store->write_ready);
    pthread_cond_broadcast(&store->read_ready);
    for (size_t i = 0; i < store->thread_count; i++) pthread_join(store->threads[i], NULL);
}

/* With the threads gone no lock is needed. A done() may submit once more and so add a result. */
static void results_drain(struct store *store)
{
    for (struct job *job; (job = queue_pop(&store->results));) job->done(job, job->result);
}

void store_close(struct store *store)
{
    if (!store) return;
    if (store->loop) loop_defer_cancel(store->loop, &store->wake);
    threads_stop(store);
    results_drain(store);
    db_close(store->writer);
    store->delivery->store = NULL;
    if (!store->delivery->posted) free(store->delivery); /* else its task does */
    pthread_mutex_destroy(&store->mutex);
    pthread_mutex_destroy(&store->writer_mutex);
    pthread_cond_destroy(&store->write_ready);
    pthread_cond_destroy(&store->read_ready);
    free(store);
}

static void store_closep(struct store **store)
{
    store_close(*store);
}

enum err store_open(const char *folder, struct loop *loop, struct store **ret_store,
                    struct fault *reterr)
{
    AUTO(store_closep) struct store *store = store_new(loop);
    int len = snprintf(store->path, sizeof store->path, "%s/" STORE_DATABASE_NAME, folder);
    if (len >= (int)sizeof store->path)
        return fault(reterr, ERR_CONFIG, "the path of the data folder is too long");
    enum err e = db_open(store->path, DB_WRITER, &store->writer, reterr);
    if (!e) e = migrate(store->writer, reterr);
    if (!e && loop) e = threads_start(store, reterr);
    if (e) return e;
    *ret_store = TAKE(store);
    return OK;
}
