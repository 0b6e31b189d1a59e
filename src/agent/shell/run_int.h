/* SPDX-License-Identifier: Apache-2.0
 *
 * A run that is worked on, between the files of its shell: run.c (all of them, and the invariants),
 * run_load.c (its rows), run_go.c (what they ask for), run_commit.c (what a step returns, saved).
 */
#ifndef AGENT_SHELL_RUN_INT_H
#define AGENT_SHELL_RUN_INT_H

#include "agent/core/context.h"
#include "agent/shell/loaded.h"
#include "agent/shell/model_turn.h"
#include "agent/shell/payload_put.h"
#include "agent/shell/pictures.h"
#include "agent/shell/run.h"
#include "agent/shell/tool_run.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/shares.h"
#include "net/loop.h"
#include "store/db/store.h"

struct runs {
    struct runs_options options;
    struct map live;      /* thread id, 8 bytes -> struct live_run */
    struct shares owners; /* of those that work */
    bool missed;          /* a run found no room; look for it again when there is some */
    struct timer *again;  /* to look after a store that could not */
    bool stopping;
    void (*on_drained)(void *arg); /* of runs_stop; NULL once told */
    void *drained_arg;
};

enum live_run_state {
    ACTIVE_LOADING,
    ACTIVE_RETRY,
    ACTIVE_FETCHING,
    ACTIVE_SPEAKING,
    ACTIVE_WORKING,
    ACTIVE_COMMITTING
};

struct live_run {
    struct runs *runs;
    int64_t thread;
    enum live_run_state state;
    bool again;         /* woken while something was under way: look at the rows again */
    bool forgotten;     /* gone as soon as the job under way is done */
    bool alone;         /* those who read along have all gone */
    struct loaded *now; /* its rows; NULL until they were read once */
    int64_t working;    /* the run's row, once it is known */
    char thread_name[ID_CLIENT_BYTES_MAX + 1]; /* for the log; they outlive the arena */
    char run_name[ID_CLIENT_BYTES_MAX + 1];
    char counted[USER_BYTES_MAX]; /* for whom, in runs->owners */
    size_t counted_len;           /* 0: not yet */
    struct context context;       /* in the arena of `now` */
    const struct agent *asked;    /* whom the context is made for; only to be compared */
    struct pictures *pictures;    /* on their way into the context */
    struct tool_runs tool_runs;
    struct payload_put puts; /* what calls returned, on its way to object storage */

    struct model_turn model_turn; /* of the model; a turn that is whole is kept in it until saved */
    struct timer *timer, *deadline;
    unsigned stale; /* commits in a row that came too late */
    struct commit *commit;
};

/* ---- run.c ---- */

struct live_run *live_run_find(const struct runs *runs,
                               int64_t thread); /* NULL: it is not worked on */
struct live_run *live_run_new(struct runs *runs, int64_t thread);
void live_run_count(struct live_run *live); /* for its owner, who is known now */
void live_run_free(struct live_run *live);
void live_run_trouble(const struct live_run *live, const char *what, enum err e);
/* As it is at this moment; it may be another after the loop has gone on. */
const struct agent *live_run_agent(const struct live_run *live);

/* ---- run_load.c ---- */

/* Look at the rows, whatever was known of them. */
void live_run_load(struct live_run *live);
/* Go on from rows that were just read, which are its own now. The run may be gone afterwards. */
void live_run_take(struct live_run *live, struct loaded *loaded);
/* The store could not serve us just now. Whatever is stored decides when it can. */
void live_run_retry(struct live_run *live);

/* ---- run_go.c ---- */

/* Do what the rows just loaded ask for. When the server stops, only what has happened is saved. */
void live_run_go_on(struct live_run *live);
void live_run_timer(void *arg);
void live_run_tool_run_over(void *arg);
void live_run_whole(void *arg);
void live_run_down(void *arg, enum err e, const char *why);

/* ---- run_commit.c ---- */

/* Take the step, and save what it returns. The active run keeps still until it is saved. */
void live_run_step(struct live_run *live, struct input *input);
/* A state that cannot be read fails its own run, visibly. */
void live_run_damaged(struct live_run *live, const char *why);
/* The row says started: now it may leave, by the tool that was looked at before. */
void live_run_take_off(struct live_run *live, const struct call *call, const struct tools *tools);
/* A commit that there was no room for: tried again, or given up. */
void live_run_commit_again(struct live_run *live);
void live_run_commit_drop(struct live_run *live);

#endif
