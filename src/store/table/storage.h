/* SPDX-License-Identifier: Apache-2.0
 *
 * How much each user has stored, for the option limits.storage: facts and what they brought along,
 * files, and answers kept for repetitions.
 *
 * Every thread knows its own bytes: they are added in the statement that numbers its facts, so that
 * costs nothing. What a user has altogether is a row of `storage`, written only while somebody counts
 * (storage_count_start); it is counted anew, in steps, when nobody did for a while. Threads older
 * than the count have no number yet; the steps give them one. Plain blocking code for use inside a
 * job.
 */
#ifndef STORE_TABLE_STORAGE_H
#define STORE_TABLE_STORAGE_H

#include "base/err.h"
#include "base/str.h"

struct db;

/* For the start, on the writing connection: count from now on, or no more. */
enum err storage_count_start(struct db *db, bool on) MUST_USE;

/* The next threads of a count that has to be made; *ret_more: there are others. Inside write jobs. */
enum err storage_count_step(struct db *db, bool *ret_more) MUST_USE;

/* Bytes come (or go, below 0) that are no thread's; does nothing while nobody counts. */
enum err storage_add(struct db *db, str owner, int64_t bytes) MUST_USE;
/* The same of a thread, which has added them to its own already. */
enum err storage_add_thread(struct db *db, str owner, int64_t thread, int64_t bytes) MUST_USE;
/* The thread is about to be deleted. */
enum err storage_forget_thread(struct db *db, int64_t thread) MUST_USE;

/* ERR_QUOTA if the user has `allowed` bytes, or would with `more`. *ret_used: what there is. 0 allows
 * everything. */
enum err storage_check(struct db *db, str owner, uint64_t more, uint64_t allowed,
                       uint64_t *ret_used) MUST_USE;

#endif
