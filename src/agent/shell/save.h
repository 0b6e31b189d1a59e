/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the pure graph and the rows: load a view, save an outcome. Blocking code for use inside a
 * job; a job that ran both is one commit.
 */
#ifndef AGENT_SHELL_SAVE_H
#define AGENT_SHELL_SAVE_H

#include "agent/core/graph.h"

struct db;

/* Where news of interactions goes; immutable after start. */
struct hook {
    str url, secret;
    bool opened, resolved; /* events it wants */
};

/* What saving needs to know of the installation. Immutable after start, but for the tools. */
struct saver {
    struct binder binder;
    unsigned char audit_key[HASH_BYTES];
    int64_t epoch; /* of the lease "runs" */
    const struct hook *hooks;
    size_t hook_count;
    const struct tools *_Atomic tools; /* all there are now; a list that was there stays readable */
};

/* The run's row, its snapshot and the rows that it names. *ret_version is for outcome_save.
 * ERR_NOT_FOUND: no snapshot; ERR_DAMAGED: it cannot be read, and *why says so. */
enum err view_load(struct db *db, struct arena *arena, const struct run *run, str owner,
                   struct view *ret_view, int64_t *ret_version, struct fault *why) MUST_USE;

/* Facts are numbered, rows written, the snapshot replaced or removed, all under the version and
 * epoch: ERR_BUSY if somebody else has changed the run since the view was loaded. *run is as it was
 * loaded and as it is on return. */
enum err outcome_save(struct db *db, struct arena *arena, const struct saver *saver,
                      struct run *run, int64_t version, struct outcome *outcome, msec now) MUST_USE;

/* ---- steps from outside the shell: a person's answer, a cancel, the clock ---- */

/* For the loop, once the commit is done. */
struct stepped {
    int64_t thread;
    struct fact *facts;
    size_t fact_count;
    bool wake;    /* the run goes on, or the next of the queue may: runs_wake */
    bool waiting; /* what a call left behind is to be put into object storage */
    bool damaged; /* the run's state cannot be read: it has failed, visibly, instead */
};

struct resolve {
    int64_t thread;
    const struct resolution *resolutions; /* of interactions of its current run, all open */
    size_t resolution_count;
    const struct front_result *fronts; /* of its front-end calls, all pending */
    size_t front_count;
    str wire_run_id; /* what the request calls the leg, should one begin; empty: <runId>-<leg> */
    const struct leg_input *input; /* from now on; NULL: as it was */
    msec now;
    unsigned char random[ID_RANDOM_BYTES];
};

/* Settle what a run waits for, or a part of it, in one step and one commit. */
enum err run_resolve(struct db *db, struct arena *arena, const struct saver *saver,
                     const struct resolve *resolve, struct stepped *ret_stepped) MUST_USE;

/* The front-end calls that the thread's current run waits for; none if it has no such run. */
enum err front_pending(struct db *db, struct arena *arena, int64_t thread,
                       struct call_list *ret_calls) MUST_USE;

/* Cancel the thread's current run: at once if it waits, else it is marked and the shell does it. */
enum err run_cancel(struct db *db, struct arena *arena, const struct saver *saver, int64_t thread,
                    struct run *run, msec now, const unsigned char random[static ID_RANDOM_BYTES],
                    struct stepped *ret_stepped) MUST_USE;

/* The run's state cannot be read: it fails, what it waited for is canceled, and its calls end as far
 * as their rows know. ERR_BUSY: it has ended since it was loaded. */
enum err run_damaged(struct db *db, struct arena *arena, const struct saver *saver, struct run *run,
                     const char *why, msec now, const unsigned char random[static ID_RANDOM_BYTES],
                     struct stepped *ret_stepped) MUST_USE;

#endif
