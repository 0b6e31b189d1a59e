/* SPDX-License-Identifier: Apache-2.0
 *
 * The store: SQLite behind one writing thread and two reading threads.
 *
 * A job is plain blocking code that runs on a store thread with a database handle. Jobs given to
 * store_write run in order, many in one transaction (each in its own savepoint), and their results
 * go back to the loop only after the commit: when done() sees OK, the change is on disk. A job owns
 * its data and gets finished bytes: no parsing, hashing or encoding on the store thread.
 *
 *   SQLITE_FULL: not committed; the job ends with ERR_STORAGE_FULL and the store goes on.
 *   I/O error from COMMIT: unknown; the process logs and exits, and the restart decides.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/err.h"
#include "base/str.h"

struct loop;
struct db;
struct store;

/* Open (and create, and migrate) the database in `folder`. The caller holds the folder's lock.
 * loop may be NULL for the command line: then only store_run may be used, and no threads start. */
enum err store_open(const char *folder, struct loop *loop, struct store **ret_store,
                    struct fault *reterr) MUST_USE;
void store_close(struct store *store); /* finishes what is queued, then stops the threads */

/* A job: embed it first in a struct of your own. run() is called on a store thread and may be
 * called again after a rollback of the batch, so it must not change its inputs; done() is called
 * once on the loop. */
struct job {
    enum err (*run)(struct job *job, struct db *db);
    void (*done)(struct job *job, enum err e); /* owns the job again */
    /* private to the store */
    struct job *next;
    enum err result;
    struct store *store;
};

void store_write(struct store *store, struct job *job);
void store_read(struct store *store, struct job *job);

/* Run one job now, on this thread, in a transaction of its own; for the command line, and for
 * start-up before the loop runs. done is not called. */
enum err store_run(struct store *store, struct job *job) MUST_USE;

/* Figures for metrics. From the loop thread. */
struct store_stats {
    uint64_t commits, jobs, retries, full;
};
struct store_stats store_stats(struct store *store);

#endif
