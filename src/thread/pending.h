/* SPDX-License-Identifier: Apache-2.0
 *
 * What a thread waits for, and what one request settles of it. Entries of `resume`, results of
 * front-end calls, a plain message and the clock each take their part out of what is left; then all of
 * it is one step of the run, one leg and one commit. Blocking code for use inside a write job.
 */
#ifndef THREAD_PENDING_H
#define THREAD_PENDING_H

#include "agent/core/state.h"
#include "thread/settle.h"
#include "thread/thread_change.h"

struct pending {
    struct run run;               /* the current one; id 0: none */
    bool asked;                   /* something was open when the request came */
    struct interaction_list open; /* that are left */
    struct call_list calls;       /* front-end calls that are left */

    struct resolution *resolutions; /* of those that are taken out */
    size_t resolution_count;
    struct front_result *fronts; /* likewise */
    size_t front_count;
    struct id_list answered; /* interactions that a person settles by it */
};

enum err pending_load(struct db *db, struct arena *arena, int64_t thread,
                      struct pending *ret_pending) MUST_USE;

/* The row of an open interaction that is left; NULL: none of this id. */
const struct interaction *pending_named(const struct pending *pending, str id);

/* Take one out. It is of an interaction, or of a call, that is left; else nothing happens. */
void pending_settle(struct pending *pending, const struct resolution *resolution, bool by_person);
void pending_front(struct pending *pending, const struct front_result *front);

/* Take out what is not in time any more. */
void pending_expire(struct pending *pending, msec now);

/* Settle what was taken out; then waits->run is as it goes on. If its state turns out to be beyond
 * reading it has failed instead, and nothing was answered. */
enum err pending_apply(struct thread_change *tc, struct db *db, const struct settle *settle,
                       struct pending *pending) MUST_USE;

#endif
