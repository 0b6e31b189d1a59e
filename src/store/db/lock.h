/* SPDX-License-Identifier: Apache-2.0
 *
 * One process per data folder. Whoever opens the store, the key or the blobs holds this lock; the
 * kernel lets go of it when the process ends in any way, so there is no stale lock to clean up.
 */
#ifndef STORE_DB_LOCK_H
#define STORE_DB_LOCK_H

#include <stdint.h>

#include "base/err.h"

struct lock;

/* Create the folder (0700) if it is missing, check that it is ours alone, and lock it, for a command
 * of this name: "serve". ERR_LOCKED names the process that holds it; ERR_CONFIG says what is wrong with
 * the folder. */
enum err lock_take(const char *folder, const char *command, struct lock **ret_lock,
                   struct fault *reterr) MUST_USE;

/* The same for a server: while a command holds the folder that ends by itself, a backup for instance,
 * wait for it, up to wait_ms, and say so once. Another server is ERR_LOCKED at once. */
enum err lock_take_for_server(const char *folder, int64_t wait_ms,
                              void (*on_wait)(const char *command, uint64_t pid),
                              struct lock **ret_lock, struct fault *reterr) MUST_USE;
void lock_free(struct lock *lock); /* NULL is fine */
void lock_freep(struct lock **lock);

#endif
