/* SPDX-License-Identifier: Apache-2.0
 *
 * The store: SQLite behind one writing thread and a few reading threads.
 *
 * A job is plain blocking code that runs on a store thread with a database handle. Jobs given to
 * store_write run one behind the other, many in one transaction, and their results go back to the loop
 * in that order and only after the commit: when done() sees OK, the change is on disk. Those of one
 * person run in the order in which they were given, and different people take turns. A job owns its
 * data and gets finished bytes: no parsing, hashing or encoding on the store thread.
 *
 *   A job that fails: its own changes are undone, its neighbours stay.
 *   SQLITE_FULL: not committed; the job ends with ERR_STORAGE_FULL and the store goes on.
 *   I/O error from COMMIT: unknown; the process says so on standard error and exits with code 70,
 *   and the restart decides.
 */
#ifndef STORE_DB_STORE_H
#define STORE_DB_STORE_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/str.h"

struct loop;
struct db;
struct store;

#define STORE_DATABASE_NAME "fermata.db" /* in the data folder */

/* The exit code after which only a restart can tell what was saved (EX_SOFTWARE of sysexits.h). */
enum { STORE_EXIT_UNKNOWN = 70 };

/* Open (and create, and migrate) the database in `folder`. The caller holds the folder's lock.
 * loop may be NULL for the command line: then only store_run may be used, and no threads start. */
enum err store_open(const char *folder, struct loop *loop, struct store **ret_store,
                    struct fault *reterr) MUST_USE;

/* Keep rows in memory that were used last, so many bytes of them at most (store/db/hot.h); 0: none. At
 * the start, before jobs are given. */
void store_keep(struct store *store, size_t bytes_max);

/* Finishes what is queued, stops the threads, and calls every done() that is still owed; a job
 * given from one of those ends with ERR_SHUTTING_DOWN. On the loop thread. NULL is fine. */
void store_close(struct store *store);

/* What a reading job is like: each lane has a thread for which it need not wait for slower lanes. */
enum read_lane {
    READ_PAGE,  /* a page of something: milliseconds */
    READ_QUICK, /* one row that every request needs: microseconds */
    READ_WALK,  /* a search, an export: a second or two */
    READ_COPY,  /* all of the database: minutes */
    READ_LANES
};

/* A job: embed it first in a struct of your own. run() is called on a store thread and may be
 * called again after a rollback of the batch, so it must not change its inputs; done() is called
 * once on the loop. */
struct job {
    enum err (*run)(struct job *job, struct db *db);
    void (*done)(struct job *job, enum err e); /* owns the job again */
    /* For whom: people take turns, whoever brings many waits for their own; empty: us, who count as one
     * more. Borrowed until done(). What is written for a conversation goes in its owner's name. */
    str who;
    /* For reading. */
    enum read_lane lane;
    msec ms_max;      /* of work; 0: what its lane may take */
    atomic_bool gone; /* nobody waits for it any more: it ends soon, or does not begin */
    /* private to the store */
    struct job *next;
    enum err result;
};

/* From the loop thread. A read sees every write whose done() has been called. When
 * STORE_QUEUE_JOBS_MAX jobs are waiting, or STORE_READS_EACH_MAX of one person, a further one ends
 * with ERR_RATE_LIMITED. A read that takes longer than it may ends with ERR_STORE_UNAVAILABLE,
 * one that is gone with ERR_CANCELLED, and one that is under way at store_close with
 * ERR_SHUTTING_DOWN. ERR_NO_THREAD: the thread of its lane, started by the first that needs it, is
 * not to be had; the next one tries again. */
void store_write(struct store *store, struct job *job);
void store_read(struct store *store, struct job *job);

/* Run one job now, on this thread, in a transaction of its own; for the command line, and for
 * start-up before the loop runs. done is not called. */
enum err store_run(struct store *store, struct job *job) MUST_USE;

/* store_close was called: for a job that takes long. From any thread. */
bool store_stopping(struct store *store);

/* Can it be used? ERR_STORAGE_FULL from a write that found no room until there is some again, which
 * the store finds out by itself; ERR_IO while the disk has kept one commit for STORE_STUCK_MS. From
 * the loop thread, at once. */
enum err store_ready(struct store *store) MUST_USE;

/* Figures for metrics. From the loop thread. */
struct store_stats {
    uint64_t commits; /* transactions that reached the disk */
    uint64_t jobs;    /* write jobs finished, well or not */
    uint64_t retries; /* jobs run again, after their batch was rolled back */
    uint64_t full;    /* jobs that ended with ERR_STORAGE_FULL */
    uint64_t reads;   /* read jobs finished, well or not */
    uint64_t statements_write, statements_read; /* of SQL, by the jobs of each kind */
};
struct store_stats store_stats(struct store *store);

#endif
