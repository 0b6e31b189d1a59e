/* SPDX-License-Identifier: Apache-2.0
 *
 * All rows that name their owner, and how they become another's. Plain blocking code for use inside a
 * job.
 */
#ifndef STORE_TABLE_OWNERS_H
#define STORE_TABLE_OWNERS_H

#include "base/arena.h"

struct db;

enum err owner_threads(struct db *db, str owner, int64_t *ret_count) MUST_USE;

/* A thread that both have under the same name stays where it is, with all that belongs to it, and so
 * does any other row that is in the way of one. Snapshots still name the owner before. */
enum err owner_move(struct db *db, str from, str to) MUST_USE;

/* Their runs that have begun and not ended. */
struct run_ids {
    int64_t *ids;
    size_t count;
};
enum err owner_runs(struct db *db, struct arena *arena, str owner, struct run_ids *ret_runs)
    MUST_USE;

#endif
