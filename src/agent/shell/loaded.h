/* SPDX-License-Identifier: Apache-2.0
 *
 * A run as its rows stand: what the shell goes on from. It is read by a job of its own, or inside the
 * commit that changed the rows; then whoever made the commit hands it to the shell, and nothing has to be
 * asked of the store again. It is never the truth: a step that is taken from it is saved only if the
 * version is still that of the snapshot.
 */
#ifndef AGENT_SHELL_LOADED_H
#define AGENT_SHELL_LOADED_H

#include "agent/core/graph.h"
#include "store/table/conversation.h"

struct db;

struct loaded {
    struct arena arena; /* of everything in it */
    struct thread thread;
    struct run run;
    struct view view;
    int64_t version;              /* of the snapshot */
    bool history;                 /* the model is next, and what it is told of is there: */
    struct message_list messages; /* the newest ones */
    struct call_list seen;        /* calls of the run with a result */
    bool queued;                  /* the thread is idle: `run` waits, and there is no view */
    bool damaged;                 /* the state cannot be read, and why; there is no view */
    struct fault why;
};

struct loaded *loaded_new(void);
void loaded_free(struct loaded *loaded);
static inline void loaded_freep(struct loaded **loaded)
{
    loaded_free(*loaded);
}

/* For a job; may be called again. `facts_max`: the history is left out if it is not short, for those
 * who should not keep others waiting; 0: it never is. ERR_NOT_FOUND: nothing is to be worked on. */
enum err loaded_read(struct db *db, int64_t thread, int64_t facts_max, struct loaded *ret_loaded)
    MUST_USE;

/* May it be read on the thread that writes? */
bool history_short(const struct thread *thread, int64_t facts_max);

/* Is there all that the shell needs to go on? */
bool loaded_whole(const struct loaded *loaded);

#endif
