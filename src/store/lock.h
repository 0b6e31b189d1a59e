/* SPDX-License-Identifier: Apache-2.0
 *
 * One process per data folder. Whoever opens the store, the key or the blobs holds this lock; the
 * kernel lets go of it when the process ends in any way, so there is no stale lock to clean up.
 */
#ifndef STORE_LOCK_H
#define STORE_LOCK_H

#include "base/err.h"

struct lock;

/* Create the folder (0700) if it is missing, check that it is ours alone, and lock it.
 * ERR_LOCKED names the process that holds it; ERR_CONFIG says what is wrong with the folder. */
enum err lock_take(const char *folder, struct lock **ret_lock, struct fault *reterr) MUST_USE;
void lock_free(struct lock *lock); /* NULL is fine */
void lock_freep(struct lock **lock);

#endif
