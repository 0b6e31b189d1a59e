/* SPDX-License-Identifier: Apache-2.0
 *
 * Somebody answers an interaction, or takes it back unanswered. Use cases (change.h): settle.h has the
 * rules; here they become one change, with an outcome that is told.
 */
#ifndef THREAD_GIVE_ANSWER_H
#define THREAD_GIVE_ANSWER_H

#include "thread/settle.h"
#include "thread/thread_change.h"

struct give_answer {
    struct thread_change tc;
    str id;                  /* of the interaction; or else */
    str thread_id;           /* of the asker: the one question that is open there */
    const struct json *body; /* as interactions are answered: {"answer"}, {"decision", ...} */
    str sent;                /* the bytes of it, for the audit trail */
    struct settle settle;    /* made here */
};

/* The interaction of this id. */
void give_answer(struct give_answer *give);

/* Whatever question is open on the thread; the body has an `answer` in words. ERR_AMBIGUOUS lists them
 * if there are several. */
void give_answer_to_thread(struct give_answer *give);

/* The interaction is over, without an answer; there is no body. */
void give_up_answer(struct give_answer *give);

#endif
