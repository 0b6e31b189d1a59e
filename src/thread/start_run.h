/* SPDX-License-Identifier: Apache-2.0
 *
 * A request that becomes a run of its own on a thread: now if the thread is idle, else when its
 * turn comes, as fact run.queued. A message and a press of a button both come this way. Blocking
 * code for use inside a write job, but for start_run_init.
 */
#ifndef THREAD_START_RUN_H
#define THREAD_START_RUN_H

#include "agent/core/state.h"
#include "agents/agents.h"
#include "thread/thread_change.h"

struct start_run {
    str run_id, task_id;
    str input;                             /* JSON that is stored with the run; may be empty */
    str tools, context;                    /* likewise, as in struct leg_input */
    str timezone;                          /* of the person; may be empty */
    str press_tool, press_args;            /* of a button; empty: the model is asked */
    str asked_key;                         /* through /mcp, with this key; empty: not so */
    struct agent_brief agent;              /* when the request came; its settings may change */
    unsigned char random[ID_RANDOM_BYTES]; /* for what is cancelled on its behalf */
};

/* On the loop: a new task. The rest is the caller's, the agent too. */
void start_run_init(struct start_run *start, const struct asker *by);

/* tc->thread is the thread, whose newest fact was `seq` when the request came. Messages have their
 * ids and the client's part of their metadata; the run's is added. `follows`: it waits in any case.
 * ERR_BUSY, ERR_RATE_LIMITED, ERR_TOO_LARGE. */
enum err start_run(struct thread_change *tc, struct db *db, const struct start_run *start,
                   struct message *messages, size_t count, bool follows, int64_t seq) MUST_USE;

/* What the 202 says of it. */
struct told {
    str run_id, task_id;
    int64_t seq;
    str answered; /* JSON list; empty: it was no answer */
    bool queued;  /* behind something that a person decides, or a model that is tried again */
};
str accepted_json(const struct thread_change *tc, const struct told *told);

/* Ids as a JSON list. */
str ids_json(struct arena *arena, const struct id_list *ids);

/* The prefix and 26 random characters. */
str new_id(struct arena *arena, const char *prefix);

#endif
