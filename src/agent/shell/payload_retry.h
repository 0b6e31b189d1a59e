/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts into object storage what could not be put when it was shown: rows that wait (blob_rows.h),
 * oldest first, until none does. While the storage is away it tries less and less often; while
 * nothing waits it does nothing at all. On the loop thread.
 */
#ifndef AGENT_SHELL_PAYLOAD_RETRY_H
#define AGENT_SHELL_PAYLOAD_RETRY_H

#include "base/err.h"
#include "base/str.h"

struct blobs;
struct payload_retry;
struct loop;
struct spool;
struct store;

struct payload_retry_options {
    struct loop *loop;
    struct store *store;
    struct blobs *blobs;
    struct spool *spool;
    /* Something does not work, to be logged; or it works again: e is OK. */
    void (*on_trouble)(void *arg, const char *what, enum err e);
    void *arg;
};

struct payload_retry *payload_retry_new(const struct payload_retry_options *options);
void payload_retry_stop(
    struct payload_retry *retry); /* before the store is closed; begins nothing more */
void payload_retry_free(struct payload_retry *retry); /* after it; NULL is fine */

void payload_retry_look(struct payload_retry *retry);            /* something waits, or may */
size_t payload_retry_waiting(const struct payload_retry *retry); /* as of the last look */

#endif
