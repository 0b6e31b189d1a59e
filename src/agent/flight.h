/* SPDX-License-Identifier: Apache-2.0
 *
 * Tool calls under way. A flight takes off after the commit that says `started` and keeps what came
 * back until that is saved, over any number of steps of its run in between. On the loop thread.
 *
 * What was never reached is tried again a few times, and so is what may be repeated; always with
 * the same key. A write that is gone without a word is lost: a person decides.
 */
#ifndef AGENT_FLIGHT_H
#define AGENT_FLIGHT_H

#include "agent/graph.h"

struct loop;
struct spool;
struct flight;

/* The flights of one run; embedded. */
struct flights {
    struct loop *loop;
    struct spool *spool; /* for long results */
    const struct tools *tools;
    msec retry_ms;              /* before the second attempt; doubles */
    void (*on_over)(void *arg); /* one has ended; never from inside a function below */
    void (*on_trouble)(void *arg, const char *what, enum err e);
    void *arg;
    bool letting_go;      /* private: no further attempts */
    struct flight *first; /* private */
};

/* For whom; copied. */
struct passenger {
    str owner, thread_id, run_id, locale, timezone;
};

/* The tool is there. */
void flights_start(struct flights *flights, const struct call *call,
                   const struct passenger *passenger);
void flights_done(struct flights *flights); /* ends them all, without a word */

bool flights_any(const struct flights *flights);
bool flights_has(const struct flights *flights, str call_id);

/* One that has ended: its call, and how; lost: nobody knows. False: none has. */
bool flights_ended(const struct flights *flights, str *ret_call_id, bool *ret_lost,
                   struct call_end *ret_end);
void flights_forget(struct flights *flights, str call_id); /* its end is saved */

/* The run is being cancelled: nothing is tried again, and what only reads is not waited for. */
void flights_let_go(struct flights *flights, str locale);

#endif
