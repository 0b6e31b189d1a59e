/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that were deleted and still have rows. Deleting a thread is two things: one small commit
 * after which nobody finds it (thread_doom), and the removal of its rows and files, which may be any
 * number, a little at a time beside other work. What is left to remove is in the database, so a
 * restart goes on with it.
 *
 * A doomed thread has no owner: every lookup by an owner passes it by, and its name is free for a new
 * one. Its attachments have no owner either. Plain blocking code for use inside a job; texts that
 * come back live in the arena given.
 */
#ifndef STORE_TABLE_DOOMED_H
#define STORE_TABLE_DOOMED_H

#include "base/arena.h"
#include "base/clock.h"

struct db;
struct thread;

/* From this commit on the thread is not there any more, for anybody. Its open runs, interactions and
 * grants go at once, and so a run under way finds its rows gone. *ret_spools: names of its spool
 * files, for the caller to remove; after a crash the sweep of the start does it. */
enum err thread_doom(struct db *db, struct arena *arena, const struct thread *thread,
                     str **ret_spools, size_t *ret_count) MUST_USE;

/* What is to be removed next: a thread, and some of the files that it, or one before it, has left. */
struct doomed_file {
    str bucket, path;
    int64_t blob;   /* its row; 0: */
    str attachment; /* its id */
    bool gone;      /* set by who removed it */
};
struct doomed {
    int64_t thread; /* 0: none */
    struct doomed_file *files;
    size_t count;
};

/* What could not be removed stays behind, and is no reason to leave what comes after it. */
struct doomed_place {
    size_t attachments; /* so many are passed over */
    int64_t thread;     /* and the threads up to this one */
};
enum err doomed_next(struct db *db, struct arena *arena, const struct doomed_place *from,
                     struct doomed *ret_doomed) MUST_USE;

/* The rows that name the files that are gone. */
enum err doomed_files_gone(struct db *db, const struct doomed *doomed) MUST_USE;

/* Remove rows of the thread for about `span`, at last its own. Its files have to be gone. */
enum err doomed_rows_remove(struct db *db, int64_t thread, const struct clock *clock, msec span)
    MUST_USE;

#endif
