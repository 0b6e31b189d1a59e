/* SPDX-License-Identifier: Apache-2.0
 *
 * A run that is worked on, between the files of its shell: run.c (all of them, and the invariants),
 * run_load.c (its rows), run_go.c (what they ask for), run_commit.c (what a step returns, saved).
 */
#ifndef AGENT_RUN_INT_H
#define AGENT_RUN_INT_H

#include "agent/context.h"
#include "agent/flight.h"
#include "agent/pictures.h"
#include "agent/run.h"
#include "agent/shelf.h"
#include "agent/speech.h"
#include "base/limits.h"
#include "base/map.h"
#include "net/loop.h"
#include "store/store.h"

struct runs {
    struct runs_options options;
    struct map active;   /* thread id, 8 bytes -> struct active */
    bool missed;         /* a run found no room; look for it again when there is some */
    struct timer *again; /* to look after a store that could not */
    bool stopping;
    void (*on_drained)(void *arg); /* of runs_stop; NULL once told */
    void *drained_arg;
};

enum active_state {
    ACTIVE_LOADING,
    ACTIVE_RETRY,
    ACTIVE_FETCHING,
    ACTIVE_SPEAKING,
    ACTIVE_WORKING,
    ACTIVE_COMMITTING
};

struct active {
    struct runs *runs;
    int64_t thread;
    enum active_state state;
    bool again;         /* woken while something was under way: look at the rows again */
    bool forgotten;     /* gone as soon as the job under way is done */
    bool alone;         /* those who read along have all gone */
    struct arena arena; /* of everything loaded */
    struct run run;
    int64_t working;                           /* the run's row, once it is known */
    char thread_name[ID_CLIENT_BYTES_MAX + 1]; /* for the log; they outlive the arena */
    char run_name[ID_CLIENT_BYTES_MAX + 1];
    str thread_id, owner;
    struct view view;
    int64_t version; /* of the snapshot */
    struct context context;
    const struct agent *asked; /* whom the context is made for; only to be compared */
    struct pictures *pictures; /* on their way into the context */
    struct flights flights;
    struct shelf shelf; /* what calls returned, on its way to object storage */

    struct speech speech; /* of the model; a turn that is whole is kept in it until saved */
    struct timer *timer, *deadline;
    unsigned stale; /* commits in a row that came too late */
    struct commit *commit;
};

/* ---- run.c ---- */

struct active *active_find(const struct runs *runs, int64_t thread); /* NULL: it is not worked on */
struct active *active_new(struct runs *runs, int64_t thread);
void active_free(struct active *active);
void active_trouble(const struct active *active, const char *what, enum err e);
/* As it is at this moment; it may be another after the loop has gone on. */
const struct agent *active_agent(const struct active *active);

/* ---- run_load.c ---- */

/* Look at the rows, whatever was known of them. */
void active_load(struct active *active);
/* The store could not serve us just now. Whatever is stored decides when it can. */
void active_retry(struct active *active);

/* ---- run_go.c ---- */

/* Do what the rows just loaded ask for. When the server stops, only what has happened is saved. */
void active_go_on(struct active *active);
void active_timer(void *arg);
void active_flight_over(void *arg);
void active_whole(void *arg);
void active_down(void *arg, enum err e, const char *why);

/* ---- run_commit.c ---- */

/* Take the step, and save what it returns. The active run keeps still until it is saved. */
void active_step(struct active *active, struct input *input);
/* A state that cannot be read fails its own run, visibly. */
void active_damaged(struct active *active, const char *why);
/* The row says started: now it may leave, by the tool that was looked at before. */
void active_take_off(struct active *active, const struct call *call, const struct tools *tools);
/* A commit that there was no room for: tried again, or given up. */
void active_commit_again(struct active *active);
void active_commit_drop(struct active *active);

#endif
