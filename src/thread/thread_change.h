/* SPDX-License-Identifier: Apache-2.0
 *
 * A change of a thread, and what it tells the loop once it is committed: its facts to whoever reads
 * along, and the run to whoever works on it.
 */
#ifndef THREAD_THREAD_CHANGE_H
#define THREAD_THREAD_CHANGE_H

#include "thread/change.h"

struct stepped;

struct thread_change {
    struct change change;
    struct thread thread;
    struct fact *facts;
    size_t fact_count;
    bool wake, waiting, cancel, created;
};

/* For apply, which may run twice: nothing to tell yet. */
void thread_change_reset(struct thread_change *tc);

/* For apply: facts that were stored, behind those that are there; and what a step has to say. */
void thread_change_facts(struct thread_change *tc, const struct fact *facts, size_t count);
void thread_change_stepped(struct thread_change *tc, const struct stepped *stepped);

/* For apply, when all is stored: what a run that goes on will need is read in the same job. */
void thread_change_load(struct thread_change *tc, struct db *db);

/* change.after: tell it. */
void thread_change_tell(struct change *change);

#endif
