/* SPDX-License-Identifier: Apache-2.0
 *
 * The entries of a request's `resume`, as AG-UI has them: looked up and checked, all of them before
 * anything is settled. Blocking code for use inside a write job.
 *
 *     payload of an ask_user   "words" = {"answer"}, or the body of POST answer
 *     of a confirm             {"approved","editedArgs"?,"comment"?}, or that body
 *     of the others            {"decision"}
 */
#ifndef THREAD_RESUME_H
#define THREAD_RESUME_H

#include "thread/pending.h"
#include "thread/run_input.h"

struct resume_found {
    bool named;   /* there is an entry, whatever becomes of it */
    bool refused; /* the change has the refusal, and nothing is to be settled */
    str run_id;   /* of the run that the last entry names; empty: none */
};

/* Check all entries, and take out of `pending` what they settle. Nothing but the audit trail is changed.
 * tc->thread.id is the thread, 0 if it does not exist. ERR_INVALID_FIELD, with tc->change.why: an id
 * that means nothing on this thread. */
enum err resume_find(struct thread_change *tc, struct db *db, const struct settle *settle,
                     const struct run_input *input, struct pending *pending,
                     struct resume_found *ret_found) MUST_USE;

/* The body of POST answer that a payload stands for; pure. ERR_INVALID_FIELD with the member of the
 * payload in reterr->field ("" is the payload itself), ERR_TOO_LARGE. */
struct resume_body {
    const struct json *json;
    bool words, approved; /* how it was said */
};
enum err resume_read(struct arena *arena, enum interaction_type type, const struct json *payload,
                     struct resume_body *ret_body, struct fault *reterr) MUST_USE;

#endif
