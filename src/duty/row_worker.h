/* SPDX-License-Identifier: Apache-2.0
 *
 * Work that waits in rows of a table until it is done: what goes to webhooks and chats, what came from
 * chats, whatever else has to happen later and must survive a crash. A worker takes one row after the
 * other, does what it asks for, and stores how that ended.
 *
 * Whoever has such work embeds a struct row_worker, fills in what is marked as given, and has three
 * functions: take, work and end. Rows are the owner's, and so is what is particular to them; the
 * worker has the order of the steps, the times, and what happens when the store cannot. On the loop
 * thread, but for what is said to run in a job.
 */
#ifndef DUTY_ROW_WORKER_H
#define DUTY_ROW_WORKER_H

#include "base/clock.h"
#include "base/log.h"
#include "store/db/store.h"

struct row_worker;
struct loop;
struct timer;

struct row_worker_ops {
    /* In a job, which may run twice: the row that is next. It is marked in it if nobody may do it
     * twice. Or worker->none, and worker->at if the time of one is known. */
    enum err (*take)(struct row_worker *worker, struct db *db);
    bool take_reads; /* and changes nothing */
    /* There is one. Leads to row_worker_end or row_worker_leave, at once or later. */
    void (*work)(struct row_worker *worker);
    /* In a job, which may run twice: how it went. Tried until the store can. */
    enum err (*end)(struct row_worker *worker, struct db *db);
    /* The worker is idle, after an end or without. It may be freed here. NULL: on to the next. */
    void (*rest)(struct row_worker *worker, bool ended);
    /* It is time to look again. NULL: row_worker_go. */
    void (*due)(struct row_worker *worker);
    const char *untaken, *unended; /* in the log, when the store could not */
};

enum row_worker_state { ROW_IDLE, ROW_TAKING, ROW_WORKING, ROW_ENDING };

struct row_worker {
    /* given */
    const struct row_worker_ops *ops;
    struct loop *loop;
    struct store *store;
    const struct clock *clock;
    struct log_field about; /* whose work it is */

    msec now;  /* when the take, or the end, was asked for */
    bool none; /* there is nothing to do now */
    msec at;   /* look again then; 0: not before somebody asks for it */

    enum row_worker_state state;
    struct timer *timer; /* NULL: it waits for no time */
    struct job job;
    bool stopping;
};

void row_worker_go(struct row_worker *worker); /* take the next; only while it is idle */
void row_worker_end(struct row_worker *worker);
/* The row stays as it is. To be looked at again in so many ms; 0: when somebody asks for it. */
void row_worker_leave(struct row_worker *worker, msec in);
/* Nothing of `ops` is called any more but in a job that is with the store. */
void row_worker_stop(struct row_worker *worker);

/* Before what failed so many times (from 1 on) is tried again: 1 s, 5 s, 30 s, 2 min, 10 min, an hour.
 * For what may take a day. */
msec backoff_ms(uint32_t failures);
/* 1 s, 2 s, 5 s, 10 s, 30 s, a minute, but not more than `most`. For what somebody waits for. */
msec backoff_short_ms(uint32_t failures, msec most);

#endif
