/* SPDX-License-Identifier: Apache-2.0
 *
 * Which objects of object storage belong to which thread, and which of them are still to be put
 * there: then their bytes, or the name of the spool file that holds them, wait in the row.
 *
 * A row is written in the commit of the history row that names the object, and goes with its
 * thread. Plain blocking code for use inside a job; texts that come back live in the arena given.
 */
#ifndef STORE_TABLE_BLOB_ROWS_H
#define STORE_TABLE_BLOB_ROWS_H

#include "base/arena.h"

struct db;

struct blob_row {
    int64_t n; /* given by blob_row_add */
    int64_t thread;
    str bucket, path;
    str message_id; /* of the tool row that names it */
    bool waiting;   /* it is not in object storage yet, but here: */
    str spool;      /* name of a spool file; or else */
    str bytes;
    uint64_t size; /* of the object, for what the thread stores; not in the row */
    msec created;
};

struct blob_rows {
    struct blob_row *rows;
    size_t count;
};

/* The same object twice for one thread is one row. */
enum err blob_row_add(struct db *db, const struct blob_row *row) MUST_USE;

/* The oldest that wait, behind row number `after`; not those of deleted threads. */
enum err blob_rows_waiting(struct db *db, struct arena *arena, int64_t after, size_t limit,
                           struct blob_rows *ret_rows) MUST_USE;
enum err blob_rows_waiting_count(struct db *db, int64_t *ret_count) MUST_USE;

/* It is there now: nothing waits any more, and when that was the last one of its message, the mark
 * storage_missing leaves the message's metadata. OK too if the row is gone. */
enum err blob_row_stored(struct db *db, int64_t n) MUST_USE;

/* Does anything name this object, attachments included? */
enum err blob_needed(struct db *db, str bucket, str path, bool *ret_needed) MUST_USE;

#endif
