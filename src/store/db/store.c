/* SPDX-License-Identifier: Apache-2.0
 *
 * The store's threads: one that writes, with group commit, and some that read. While one commit
 * waits for the disk, the next jobs queue up; the writing thread then takes as many (at most
 * STORE_BATCH_JOBS_MAX) into one transaction:
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
 * Writes wait in a line in which people take turns (turns.h), and a batch takes them from it a few at a
 * time: whoever comes while it is under way gets into it, ahead of what others still have waiting. A batch
 * that several people share ends sooner, with one more turn of each who waits. So nobody waits for all
 * that somebody else has brought.
 *
 * Invariants:
 * 1. A result goes to the loop after the commit that holds the job's changes, never before.
 * 2. Results of writes go to the loop in the order in which the jobs ran: that a batch runs its jobs
 *    again does not change their order. Jobs of one person run in the order of store_write, those of
 *    different people in any. So whoever gives a job that has to run behind another, which is not done
 *    yet, gives both in the same name; and all that is done for a conversation, or its readers, goes in
 *    the name of its owner, but what others decide and what is due, which look at the rows as they are.
 * 3. `mutex` guards the queues, the figures and what is said of walks, and is never held during a
 *    job. `writer_mutex` guards the writing connection, and is held during a batch.
 * 4. Only the writing connection checkpoints (see sqlite.h), between batches, after the results
 *    have gone.
 *
 * Reading. Each lane is a line in which people take turns (turns.h), and each thread serves the
 * lanes of its row in readers[]: no lane waits for a slower one. A job is ended by SQLite's progress
 * handler when its time is up, when nobody waits for it, or when the store closes. A thread is
 * started when a job first needs it: a lane that nobody used costs nothing.
 * 5. While a walk is under way the log cannot begin anew, and walks may follow each other without a
 *    gap. So when the log is long, no walk begins until it has begun anew.
 */
#include "store/db/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "net/loop.h"
#include "store/db/migrate.h"
#include "store/db/sqlite.h"
#include "store/db/turns.h"

/* First in, first out; jobs are linked through job->next. */
struct queue {
    struct job *first, **last;
    size_t count;
};

/* What the loop holds while results wait for it. It outlives the store when the store is closed in
 * that time; then store is NULL and the task has nothing to do but free this. */
struct store_delivery {
    struct loop_task task;
    struct store *store;
    bool posted;
};

/* Who reads what; the first lane goes first, and its jobs start the thread. */
static const struct reader_row {
    const char *name;
    enum read_lane lanes[2];
} readers[STORE_READERS] = {
    {"store-read", {READ_PAGE, READ_PAGE}},
    {"store-walk", {READ_WALK, READ_PAGE}},
    {"store-quick", {READ_QUICK, READ_QUICK}},
    {"store-copy", {READ_COPY, READ_COPY}},
};

static const msec lane_ms_max[READ_LANES] = {
    [READ_PAGE] = STORE_READ_MS_MAX,
    [READ_QUICK] = STORE_READ_MS_MAX,
    [READ_WALK] = STORE_WALK_MS_MAX,
    [READ_COPY] = 0, /* as long as it takes */
};

struct store_reader {
    struct store *store;
    const struct reader_row *row;
    pthread_cond_t ready;
    bool idle; /* waits for `ready` */
    pthread_t thread;
    bool started; /* the loop's own, as is `thread` */
};

/* The disk was full: is there room again? */
struct probe {
    struct job job;
    struct store *store;
    struct timer *timer; /* NULL until the first time */
    bool under_way;      /* timer or job */
    bool found;          /* by the job */
};

struct store {
    struct loop *loop;
    char path[PATH_MAX], folder[PATH_MAX];

    pthread_mutex_t mutex;
    pthread_cond_t write_ready;
    struct turns writes;
    struct queue results;
    struct turns lanes[READ_LANES];
    size_t reads;    /* that wait, in all lanes */
    size_t walks;    /* under way */
    bool walks_held; /* invariant 5 */
    struct store_stats stats;
    bool full;
    msec batch_began;     /* 0: none is under way */
    atomic_bool stopping; /* written under the mutex */
    struct store_delivery *delivery;
    struct loop_defer wake; /* the loop's own */
    struct probe probe;     /* likewise */

    pthread_mutex_t writer_mutex;
    struct db *writer;
    int checkpoint_at; /* pages of the log */

    struct store_reader readers[STORE_READERS];
    pthread_t write_thread;
    bool writing; /* write_thread was started */
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

static void probe_begin(struct store *store);

static void on_delivery(struct loop_task *task)
{
    struct store_delivery *delivery = CONTAINER(task, struct store_delivery, task);
    struct store *store = delivery->store;
    if (!store) {
        free(delivery);
        return;
    }
    struct queue results;
    queue_init(&results);
    pthread_mutex_lock(&store->mutex);
    queue_move(&results, &store->results, SIZE_MAX);
    delivery->posted = false;
    bool full = store->full;
    pthread_mutex_unlock(&store->mutex);
    if (full) probe_begin(store);
    for (struct job *job; (job = queue_pop(&results));) job->done(job, job->result);
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

/* Jobs for one transaction, in the order in which they run. */
struct batch {
    struct queue jobs;
    size_t most; /* it takes no more: those that waited when it began, so that it ends */
    bool shared; /* between several people */
};

/* Some more jobs, if it may have more. The mutex is held. */
static void batch_take(struct store *store, struct batch *batch)
{
    struct turns *writes = &store->writes;
    size_t room = batch->most - batch->jobs.count, take = STORE_BATCH_TAKE_JOBS;
    batch->shared = batch->shared || writes->people > 1;
    bool last = batch->shared && batch->jobs.count >= STORE_BATCH_SHARED_JOBS;
    if (last) take = writes->people; /* a turn of each */
    if (take > room) take = room;
    if (last) batch->most = batch->jobs.count + take;
    for (struct job *job; take && (job = turns_pop(writes)); take--) queue_push(&batch->jobs, job);
}

/* The one behind it, which may have to be taken first; NULL: it was the last. */
static struct job *batch_next(struct store *store, struct batch *batch, const struct job *job)
{
    if (job->next || batch->jobs.count == batch->most) return job->next;
    pthread_mutex_lock(&store->mutex);
    batch_take(store, batch);
    pthread_mutex_unlock(&store->mutex);
    return job->next;
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

static enum batch_end run_together(struct store *store, struct batch *batch,
                                   enum batch_end (*run)(struct db *db, struct job *job))
{
    enum err e = db_begin(store->writer);
    for (struct job *job = batch->jobs.first; job && e; job = job->next) job->result = e;
    if (e) return BATCH_DONE;

    enum batch_end end = BATCH_DONE;
    for (struct job *job = batch->jobs.first; job && end == BATCH_DONE;
         job = end == BATCH_DONE ? batch_next(store, batch, job) : NULL)
        end = run(store->writer, job);
    if (end == BATCH_DONE && commit(store)) end = BATCH_LOST;
    if (end != BATCH_DONE) roll_back(store);
    return end;
}

static void run_batch(struct store *store, struct batch *batch)
{
    const struct queue *jobs = &batch->jobs;
    uint64_t full = 0, retries = 0;
    bool alone = jobs->count == 1;
    enum batch_end end = alone ? BATCH_LOST : run_together(store, batch, run_plainly);
    if (end != BATCH_DONE && !alone) retries = jobs->count;
    if (end == BATCH_SPOILT) end = run_together(store, batch, run_in_savepoint);
    for (struct job *job = jobs->first; job && end == BATCH_LOST; job = job->next)
        job->result = run_alone(store, job);
    for (struct job *job = jobs->first; job; job = job->next)
        full += job->result == ERR_STORAGE_FULL;

    pthread_mutex_lock(&store->mutex);
    store->stats.jobs += jobs->count;
    store->stats.retries += retries;
    store->stats.full += full;
    store->stats.statements_write += db_statements_take(store->writer);
    store->full |= full > 0;
    pthread_mutex_unlock(&store->mutex);
}

/* Somebody should look at this lane. False: all are at work, and look again when they have done it. The
 * mutex is held. */
static bool lane_wake(struct store *store, enum read_lane lane)
{
    for (size_t i = 0; i < STORE_READERS; i++) {
        struct store_reader *reader = &store->readers[i];
        bool serves = reader->row->lanes[0] == lane || reader->row->lanes[1] == lane;
        if (!serves || !reader->idle) continue;
        reader->idle = false;
        pthread_cond_signal(&reader->ready);
        return true;
    }
    return false;
}

/* Let no walk begin. False: one is under way, whose end wakes the writing thread. */
static bool walks_hold(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->walks_held = true;
    bool none = store->walks == 0;
    pthread_mutex_unlock(&store->mutex);
    return none;
}

static void walks_go(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->walks_held = false;
    if (store->lanes[READ_WALK].count) (void)lane_wake(store, READ_WALK);
    pthread_mutex_unlock(&store->mutex);
}

/* Nothing committed depends on it, and a full disk or busy readers only put it off. But a disk
 * that fails here cannot be trusted with the next commit either.
 *
 * Readers may keep the log from beginning anew. Then it is tried again when the log has grown by as
 * much; and when it is so long that we wait for them, and that was in vain, when it has doubled:
 * one long read (a backup) must not hold up every batch until it ends. Walks are not waited for but
 * held back. */
static void checkpoint(struct store *store)
{
    int pages = db_wal_pages(store->writer);
    if (pages < STORE_WAL_PAGES) store->checkpoint_at = STORE_WAL_PAGES; /* it began anew */
    if (pages < store->checkpoint_at) return;
    bool wait = pages >= STORE_WAL_PAGES_HIGH;
    if (wait && !walks_hold(store)) return;
    enum err e = db_checkpoint(store->writer, wait);
    if (e == ERR_IO) stop_process(store->writer, "copying the log into the database");
    store->checkpoint_at = wait && e == ERR_LOCKED ? 2 * pages : pages + STORE_WAL_PAGES;
    if (wait) walks_go(store);
}

static bool checkpoint_due(const struct store *store)
{
    return store->walks_held && !store->walks;
}

/* Wait for jobs, or for the end of walks that a checkpoint waits for. False: there are none left and
 * the store is closing. */
static bool next_batch(struct store *store, struct batch *batch)
{
    *batch = (struct batch){0};
    queue_init(&batch->jobs);
    pthread_mutex_lock(&store->mutex);
    store->batch_began = 0;
    while (!store->writes.count && !store->stopping && !checkpoint_due(store))
        pthread_cond_wait(&store->write_ready, &store->mutex);
    size_t waiting = store->writes.count;
    batch->most = waiting < STORE_BATCH_JOBS_MAX ? waiting : STORE_BATCH_JOBS_MAX;
    bool stop = !waiting && store->stopping;
    batch_take(store, batch);
    if (waiting) store->batch_began = clock_steady(&clock_system);
    pthread_mutex_unlock(&store->mutex);
    return !stop;
}

static void *write_thread(void *arg)
{
    struct store *store = arg;
    for (struct batch batch; next_batch(store, &batch);) {
        pthread_mutex_lock(&store->writer_mutex);
        if (batch.most) {
            run_batch(store, &batch);
            finish(store, &batch.jobs);
        }
        checkpoint(store);
        pthread_mutex_unlock(&store->writer_mutex);
    }
    return NULL;
}

enum err store_run(struct store *store, struct job *job)
{
    struct batch batch = {.most = 1};
    queue_init(&batch.jobs);
    queue_push(&batch.jobs, job);
    pthread_mutex_lock(&store->writer_mutex);
    run_batch(store, &batch);
    checkpoint(store);
    pthread_mutex_unlock(&store->writer_mutex);
    return job->result;
}

/* ---- reading ---- */

struct reading {
    const struct store *store;
    const struct job *job;
    msec until; /* 0: no limit */
};

static enum err read_stops(void *arg)
{
    const struct reading *reading = arg;
    if (atomic_load_explicit(&reading->job->gone, memory_order_relaxed)) return ERR_CANCELLED;
    if (atomic_load_explicit(&reading->store->stopping, memory_order_relaxed))
        return ERR_SHUTTING_DOWN;
    bool late = reading->until && clock_steady(&clock_system) >= reading->until;
    return late ? ERR_STORE_UNAVAILABLE : OK;
}

static enum err run_read(struct store *store, struct db *db, struct job *job)
{
    if (atomic_load(&job->gone)) return ERR_CANCELLED;
    bool unknown = false; /* nothing was written, so it makes no difference */
    enum err e = db_begin(db);
    if (e) return e;
    msec ms_max = job->ms_max ? job->ms_max : lane_ms_max[job->lane];
    struct reading reading = {store, job, ms_max ? clock_steady(&clock_system) + ms_max : 0};
    db_watch(db, read_stops, &reading);
    e = job->run(job, db);
    db_settle(db);
    db_watch(db, NULL, NULL);
    enum err ended = db_commit(db, &unknown);
    if (ended) ended = db_rollback(db);
    return e ? e : ended;
}

/* The mutex is held. */
static struct job *lane_pop(struct store *store, enum read_lane lane)
{
    if (lane == READ_WALK && store->walks_held && !store->stopping) return NULL;
    struct job *job = turns_pop(&store->lanes[lane]);
    if (!job) return NULL;
    store->reads--;
    if (lane == READ_WALK) store->walks++;
    return job;
}

static struct job *next_read(struct store_reader *reader)
{
    struct store *store = reader->store;
    struct job *job = NULL;
    pthread_mutex_lock(&store->mutex);
    for (;;) {
        for (size_t i = 0; !job && i < COUNT(reader->row->lanes); i++)
            job = lane_pop(store, reader->row->lanes[i]);
        if (job || store->stopping) break;
        reader->idle = true;
        pthread_cond_wait(&reader->ready, &store->mutex);
    }
    reader->idle = false;
    pthread_mutex_unlock(&store->mutex);
    return job;
}

/* The connection is opened by the first job, so that a quiet process has none. */
static void *read_thread(void *arg)
{
    struct store_reader *reader = arg;
    struct store *store = reader->store;
    AUTO(db_closep) struct db *db = NULL;
    for (struct job *job; (job = next_read(reader));) {
        job->result = db ? OK : db_open(store->path, DB_READER, &db, NULL);
        if (db) job->result = run_read(store, db, job);
        uint64_t statements = db ? db_statements_take(db) : 0;
        pthread_mutex_lock(&store->mutex);
        store->stats.reads++;
        store->stats.statements_read += statements;
        if (job->lane == READ_WALK) {
            store->walks--;
            if (checkpoint_due(store)) pthread_cond_signal(&store->write_ready);
        }
        pthread_mutex_unlock(&store->mutex);
        struct queue done;
        queue_init(&done);
        queue_push(&done, job);
        finish(store, &done);
    }
    return NULL;
}

/* ---- a full disk ---- */

/* Does a file of STORE_ROOM_BYTES fit on the disk? Any other trouble is not about room. */
static bool room_found(const char *folder)
{
    char path[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s/" STORE_DATABASE_NAME "-room", folder);
    if (len >= (int)sizeof path) return true;
    AUTO(fd_closep) int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return errno != ENOSPC && errno != EDQUOT;
    int failed = posix_fallocate(fd, 0, STORE_ROOM_BYTES);
    unlink(path);
    return failed != ENOSPC && failed != EDQUOT;
}

static enum err probe_run(struct job *job, struct db *db)
{
    struct probe *probe = CONTAINER(job, struct probe, job);
    (void)db;
    probe->found = room_found(probe->store->folder);
    return OK;
}

static void probe_done(struct job *job, enum err e)
{
    struct probe *probe = CONTAINER(job, struct probe, job);
    struct store *store = probe->store;
    probe->under_way = false;
    pthread_mutex_lock(&store->mutex);
    if (!e && probe->found) store->full = false;
    bool again = store->full && !store->stopping;
    pthread_mutex_unlock(&store->mutex);
    if (again) probe_begin(store);
}

static void on_probe_time(void *arg)
{
    struct probe *probe = arg;
    probe->job = (struct job){.run = probe_run, .done = probe_done};
    store_write(probe->store, &probe->job);
}

static void probe_begin(struct store *store)
{
    struct probe *probe = &store->probe;
    if (probe->under_way) return;
    probe->under_way = true;
    probe->store = store;
    if (!probe->timer) probe->timer = timer_new(store->loop, on_probe_time, probe);
    timer_start(probe->timer, STORE_ROOM_MS);
}

enum err store_ready(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    bool full = store->full;
    msec began = store->batch_began;
    pthread_mutex_unlock(&store->mutex);
    if (full) return ERR_STORAGE_FULL;
    return began && clock_steady(&clock_system) - began >= STORE_STUCK_MS ? ERR_IO : OK;
}

/* ---- threads ---- */

/* Signals belong to the loop's thread: a new thread inherits the mask of its maker. */
static int thread_start(const char *name, void *(*run)(void *arg), void *arg, pthread_t *ret_thread)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STORE_STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(ret_thread, &attr, run, arg);
    if (!failed) pthread_setname_np(*ret_thread, name);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return failed;
}

static enum err writer_start(struct store *store, struct fault *reterr)
{
    int failed = thread_start("store-write", write_thread, store, &store->write_thread);
    if (failed)
        return fault(reterr, ERR_IO, "the store's thread cannot be started: %s", strerror(failed));
    store->writing = true;
    return OK;
}

/* One that cannot be started is tried again by the next job. */
static bool reader_start(struct store_reader *reader)
{
    if (reader->started) return true;
    reader->started = !thread_start(reader->row->name, read_thread, reader, &reader->thread);
    return reader->started;
}

/* The thread that slower lanes cannot take. */
static struct store_reader *lane_reader(struct store *store, enum read_lane lane)
{
    for (size_t i = 0; i < STORE_READERS; i++)
        if (readers[i].lanes[0] == lane) return &store->readers[i];
    abort();
}

/* Those who serve it besides, when a job has to wait; the lane goes on without them. */
static void lane_help(struct store *store, enum read_lane lane)
{
    for (size_t i = 0; i < STORE_READERS; i++)
        if (readers[i].lanes[0] != lane && readers[i].lanes[1] == lane)
            (void)reader_start(&store->readers[i]);
}

/* ---- the loop's side ---- */

bool store_stopping(struct store *store)
{
    return atomic_load(&store->stopping);
}

/* Refused: the result is on its way. */
static void refuse(struct store *store, struct job *job, enum err e)
{
    struct queue refused;
    queue_init(&refused);
    job->result = e;
    queue_push(&refused, job);
    finish(store, &refused);
}

static void on_wake(struct loop_defer *wake)
{
    pthread_cond_signal(&CONTAINER(wake, struct store, wake)->write_ready);
}

/* The writing thread is woken at the end of the loop's turn: woken by the first job of a burst it
 * would go and commit that one alone, and the others would wait for the disk twice. */
void store_write(struct store *store, struct job *job)
{
    assert(store->loop); /* without a loop there is only store_run */
    pthread_mutex_lock(&store->mutex);
    enum err e = store->stopping ? ERR_SHUTTING_DOWN : OK;
    bool room = store->writes.count < STORE_QUEUE_JOBS_MAX;
    if (!e && !(room && turns_push(&store->writes, job))) e = ERR_RATE_LIMITED;
    pthread_mutex_unlock(&store->mutex);
    if (e)
        refuse(store, job, e);
    else
        loop_defer(store->loop, &store->wake);
}

void store_read(struct store *store, struct job *job)
{
    assert(store->loop);
    struct store_reader *reader = lane_reader(store, job->lane);
    bool first = !reader->started, crowded = false;
    enum err e = store_stopping(store) ? ERR_SHUTTING_DOWN : OK;
    if (!e && !reader_start(reader)) e = ERR_NO_THREAD;
    pthread_mutex_lock(&store->mutex);
    bool room = store->reads < STORE_QUEUE_JOBS_MAX;
    if (!e && !(room && turns_push(&store->lanes[job->lane], job))) e = ERR_RATE_LIMITED;
    if (!e) {
        store->reads++;
        crowded = !lane_wake(store, job->lane) && !first;
    }
    pthread_mutex_unlock(&store->mutex);
    if (e) refuse(store, job, e);
    if (crowded) lane_help(store, job->lane);
}

struct store_stats store_stats(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    struct store_stats stats = store->stats;
    pthread_mutex_unlock(&store->mutex);
    return stats;
}

/* ---- opening and closing ---- */

static struct store *store_new(struct loop *loop)
{
    struct store *store = mem_new(sizeof *store);
    struct store_delivery *delivery = mem_new(sizeof *delivery);
    store->loop = loop;
    store->delivery = delivery;
    delivery->task.fn = on_delivery;
    delivery->store = store;
    store->wake.fn = on_wake;
    turns_init(&store->writes, STORE_QUEUE_JOBS_MAX); /* a share of it: CHANGES_USER_MAX */
    queue_init(&store->results);
    for (size_t i = 0; i < READ_LANES; i++) turns_init(&store->lanes[i], STORE_READS_EACH_MAX);
    for (size_t i = 0; i < STORE_READERS; i++) {
        store->readers[i] = (struct store_reader){.store = store, .row = &readers[i]};
        pthread_cond_init(&store->readers[i].ready, NULL);
    }
    pthread_mutex_init(&store->mutex, NULL);
    pthread_mutex_init(&store->writer_mutex, NULL);
    pthread_cond_init(&store->write_ready, NULL);
    return store;
}

void store_close(struct store *store)
{
    if (!store) return;
    if (store->loop) loop_defer_cancel(store->loop, &store->wake);
    timer_free(store->probe.timer);
    pthread_mutex_lock(&store->mutex);
    store->stopping = true;
    pthread_mutex_unlock(&store->mutex);
    pthread_cond_broadcast(&store->write_ready);
    for (size_t i = 0; i < STORE_READERS; i++) pthread_cond_broadcast(&store->readers[i].ready);
    if (store->writing) pthread_join(store->write_thread, NULL);
    for (size_t i = 0; i < STORE_READERS; i++)
        if (store->readers[i].started) pthread_join(store->readers[i].thread, NULL);
    /* With the threads gone no lock is needed. A done() may submit once more and so add a result. */
    for (struct job *job; (job = queue_pop(&store->results));) job->done(job, job->result);
    db_close(store->writer);
    store->delivery->store = NULL;
    if (!store->delivery->posted) free(store->delivery); /* else its task does */
    pthread_mutex_destroy(&store->mutex);
    pthread_mutex_destroy(&store->writer_mutex);
    pthread_cond_destroy(&store->write_ready);
    for (size_t i = 0; i < STORE_READERS; i++) pthread_cond_destroy(&store->readers[i].ready);
    turns_done(&store->writes);
    for (size_t i = 0; i < READ_LANES; i++) turns_done(&store->lanes[i]);
    free(store);
}

void store_keep(struct store *store, size_t bytes_max)
{
    pthread_mutex_lock(&store->writer_mutex);
    db_keep(store->writer, bytes_max);
    pthread_mutex_unlock(&store->writer_mutex);
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
    snprintf(store->folder, sizeof store->folder, "%s", folder);
    enum err e = db_open(store->path, DB_WRITER, &store->writer, reterr);
    if (!e) e = migrate(store->writer, reterr);
    if (e) return e;
    db_shrink(store->writer);
    e = loop ? writer_start(store, reterr) : OK;
    if (e) return e;
    *ret_store = TAKE(store);
    return OK;
}
