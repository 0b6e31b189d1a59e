/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts into object storage what could not be put when it was shown: rows that wait (blob_rows.h),
 * oldest first, until none does. While the storage is away it tries less and less often; while
 * nothing waits it does nothing at all. On the loop thread.
 */
#ifndef AGENT_KEEPER_H
#define AGENT_KEEPER_H

#include "base/err.h"
#include "base/str.h"

struct blobs;
struct keeper;
struct loop;
struct spool;
struct store;

struct keeper_options {
    struct loop *loop;
    struct store *store;
    struct blobs *blobs;
    struct spool *spool;
    /* Something does not work, to be logged; or it works again: e is OK. */
    void (*on_trouble)(void *arg, const char *what, enum err e);
    void *arg;
};

struct keeper *keeper_new(const struct keeper_options *options);
void keeper_stop(struct keeper *keeper); /* before the store is closed; begins nothing more */
void keeper_free(struct keeper *keeper); /* after it; NULL is fine */

void keeper_look(struct keeper *keeper);            /* something waits, or may */
size_t keeper_waiting(const struct keeper *keeper); /* as of the last look */

#endif
