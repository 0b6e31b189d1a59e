/* SPDX-License-Identifier: Apache-2.0
 *
 * Somebody stops what a thread is at: its current run, what waits behind it, or one of those. Use
 * cases (change.h).
 */
#ifndef THREAD_CANCEL_RUN_H
#define THREAD_CANCEL_RUN_H

#include "thread/thread_change.h"

struct cancel_run {
    struct thread_change tc;
    str thread_id; /* of the asker */
    str run_id;    /* only if this is the current one; empty: whichever is */
    bool queue;    /* what waits behind it, too */
    unsigned char random[ID_RANDOM_BYTES];
};

/* ERR_NOT_FOUND; ERR_NOT_CURRENT: there is nothing to cancel, or it is another run. */
void cancel_run(struct cancel_run *cancel);

struct drop_run {
    struct thread_change tc;
    str thread_id;
    uint64_t n; /* which of those that wait, as the thread lists them */
};

/* ERR_NOT_FOUND. */
void drop_run(struct drop_run *drop);

#endif
