/* SPDX-License-Identifier: Apache-2.0
 *
 * A decoded RunAgentInput meets its thread: what is new of it, what it settles, and whether a run
 * begins, waits or goes on. Blocking code for use inside a write job: take_input is the `apply` of its
 * change.
 *
 *     resume[]           settles what it names
 *     tool messages      are results of front-end calls that wait; anything else is forged
 *     user messages      go by the table of plain_message.h, for what is left open then
 *     nothing of these   a join of what there is (stream), else refused
 */
#ifndef THREAD_TAKE_INPUT_H
#define THREAD_TAKE_INPUT_H

#include "thread/client_results.h"
#include "thread/inline_files.h"
#include "thread/plain_message.h"
#include "thread/resume.h"
#include "thread/start_run.h"

struct thread_at;

struct take_input {
    struct thread_change tc; /* first: a struct change begins it */
    struct run_input input;
    struct inline_files files; /* whose bytes came along */
    bool stream;               /* the answer is one: a request that brings nothing is a join */
    bool own_run_id;           /* the client gave none: nothing to repeat */
    str run_id, thread_id;
    unsigned char hash[HASH_BYTES];
    struct leg_input leg;       /* what it brings for the legs that follow */
    struct settle settle;       /* via "ag-ui" */
    struct plain_message plain; /* its new messages */
    struct start_run start;     /* if they are no answer */
    struct agent_briefs agents; /* to choose its agent from; one if the request names it */

    /* Set by take_input: messages that were passed over although they say something else than the
     * one of the same id. How many, and the id of the first. */
    size_t changed_count;
    str changed_id;

    /* Set by take_input, for the stream; not of a repetition. */
    str wait_run;           /* the run whose leg begins, or will; empty: none, it joins */
    str of_run;             /* the run that a join is about; empty: the newest */
    str then_run;           /* its own, which waits behind wait_run's; empty: none */
    struct thread_at *head; /* the thread as that leg begins; NULL: it does not yet, or is long */
};

enum err take_input(struct change *change, struct db *db) MUST_USE;

#endif
