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
#include "agent/luggage.h"

struct loop;
struct spool;
struct flight;

/* The flights of one run; embedded. */
struct flights {
    struct loop *loop;
    struct spool *spool; /* for long results */
    struct blobs *blobs; /* for files that they bring along, after a look at them */
    file_look *look;
    const struct tools *tools;
    msec retry_ms; /* before the second attempt; doubles */
    void (*on_over)(
        void *arg); /* one has ended, or asks something; never from inside a function below */
    void (*on_progress)(void *arg, str call_id, const struct tool_progress *progress);
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

/* How one has ended, or that it asks something: as the input of a step that saves it. False: there is
 * nothing to be saved. What the input points to stays until flights_saved. */
bool flights_news(struct flights *flights, struct input *ret_input);
/* The input of this kind and call is saved. */
void flights_saved(struct flights *flights, enum input_kind kind, str call_id);

/* The row of a call that has a flight: replies that people have given since are handed over. */
void flights_reply(struct flights *flights, const struct call *call);

/* Is there one that waits for something else than a person? */
bool flights_busy(const struct flights *flights);

/* The run is being cancelled: nothing is tried again, and what only reads is not waited for. */
void flights_let_go(struct flights *flights, str locale);

#endif
