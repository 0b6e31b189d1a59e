/* SPDX-License-Identifier: Apache-2.0
 *
 * The shell around the graph: loads a run, performs the effect of its state, and commits what a
 * step returns before it performs the next. First run and recovery are the same path, runs_wake. On
 * the loop thread.
 *
 * A run that is worked on costs one object; a run that waits costs nothing here.
 */
#ifndef AGENT_SHELL_RUN_H
#define AGENT_SHELL_RUN_H

#include "agent/core/agent.h"
#include "agent/core/graph.h"
#include "agent/shell/result_files.h"
#include "agent/shell/save.h"
#include "base/clock.h"
#include "store/bus/bus.h"

struct loop;
struct runs;
struct store;

struct runs_options {
    struct loop *loop;
    struct store *store;
    struct bus *bus;
    const struct clock *clock;
    /* The agent of a run, by name. Never NULL: one that is not configured any more has a stand-in that
     * may do nothing. Borrowed until the loop goes on, but for its model, which stays. */
    const struct agent *(*agent)(void *arg, str name);
    const struct saver *saver;
    struct spool *spool;
    struct blobs *blobs;
    file_look *look;       /* at files that results bring along */
    msec retry_ms;         /* before the second attempt of a tool's call; 0 = RUN_RETRY_MS */
    int64_t history_facts; /* of a thread whose history is read inside a commit; 0 =
                              RUN_HISTORY_FACTS_MAX */
    /* Interactions were opened or settled: webhooks have to look. */
    void (*on_news)(void *arg);
    /* What a call returned is not in object storage yet: somebody has to try again. */
    void (*on_waiting)(void *arg);
    /* A failure that no client waits for, to be logged. */
    void (*on_trouble)(void *arg, str thread_id, str run_id, const char *what, enum err e);
    void *arg;
};

struct runs *runs_new(const struct runs_options *options);
/* Begin nothing more. on_drained is called once, perhaps at once: when the calls under way have
 * ended and are saved, or after SHUTDOWN_MS_MAX. */
void runs_stop(struct runs *runs, void (*on_drained)(void *arg), void *arg);
void runs_free(struct runs *runs); /* after the store was closed; ends model calls */

/* Go on with every run that has to be worked on, after a start. */
void runs_recover(struct runs *runs);

/* The thread has something to work on: its current run, or the head of its queue. */
void runs_wake(struct runs *runs, int64_t thread);
/* The same, with its rows as the commit left them that there is to tell of; they are the shell's now.
 * NULL: they were not read. */
struct loaded;
void runs_go_on(struct runs *runs, int64_t thread, struct loaded *loaded);

/* The thread's current run was marked as cancelling. */
void runs_cancel(struct runs *runs, int64_t thread);

/* The thread is being deleted: stop working on it, commit nothing. */
void runs_forget(struct runs *runs, int64_t thread);

/* Nobody reads along with the thread any more, or somebody does again. Counts for the run that is at
 * work, under DISCONNECT_PAUSE: before it asks the model again it waits for a person. */
void runs_alone(struct runs *runs, int64_t thread, bool alone);

size_t runs_active(const struct runs *runs);
size_t runs_of(const struct runs *runs, str owner); /* of them, one user's */

/* The turn that is growing now and that readers have seen the start of; NULL if none. Borrowed until
 * the loop goes on. */
struct model_turn;
const struct model_turn *runs_model_turn(const struct runs *runs, int64_t thread);

#endif
