/* SPDX-License-Identifier: Apache-2.0
 *
 * Tool calls under way. A tool run takes off after the commit that says `started` and keeps what came
 * back until that is saved, over any number of steps of its run in between. On the loop thread.
 *
 * What was never reached is tried again a few times, and so is what may be repeated; always with
 * the same key. A write that is gone without a word is lost: a person decides.
 */
#ifndef AGENT_SHELL_TOOL_RUN_H
#define AGENT_SHELL_TOOL_RUN_H

#include "agent/core/graph.h"
#include "agent/shell/result_files.h"

struct loop;
struct spool;
struct tool_run;

/* The tool runs of one run; embedded. */
struct tool_runs {
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
    bool letting_go;        /* private: no further attempts */
    struct tool_run *first; /* private */
};

/* For whom; copied. */
struct passenger {
    str owner, thread_id, run_id, locale, timezone;
};

/* The tool is there. */
void tool_runs_start(struct tool_runs *tool_runs, const struct call *call,
                     const struct passenger *passenger);
void tool_runs_done(struct tool_runs *tool_runs); /* ends them all, without a word */

bool tool_runs_any(const struct tool_runs *tool_runs);
bool tool_runs_has(const struct tool_runs *tool_runs, str call_id);

/* How one has ended, or that it asks something: as the input of a step that saves it. False: there is
 * nothing to be saved. What the input points to stays until tool_runs_saved. */
bool tool_runs_news(struct tool_runs *tool_runs, struct input *ret_input);
/* The input of this kind and call is saved. */
void tool_runs_saved(struct tool_runs *tool_runs, enum input_kind kind, str call_id);

/* The row of a call that has a tool run: replies that people have given since are handed over. */
void tool_runs_reply(struct tool_runs *tool_runs, const struct call *call);

/* Is there one that waits for something else than a person? */
bool tool_runs_busy(const struct tool_runs *tool_runs);

/* The run is being cancelled: nothing is tried again, and what only reads is not waited for. */
void tool_runs_let_go(struct tool_runs *tool_runs, str locale);

#endif
