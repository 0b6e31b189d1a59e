/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain message on a thread where something is open: which of it the message settles, and what
 * becomes of the message. Never an approval. Blocking code for use inside a write job.
 *
 *   open                          the message
 *   one question                  is its answer, or declines it if it takes choices only
 *   confirms                      rejects them all, as the comment
 *   two or more questions         is refused: which one?
 *   connection_lost               lets the run continue, and follows
 *   uncertain                     waits in the queue; a person has to decide
 */
#ifndef APP_PLAIN_MESSAGE_H
#define APP_PLAIN_MESSAGE_H

#include "app/run_input.h"
#include "app/settle.h"
#include "app/thread_change.h"

struct plain_message {
    struct settle settle;                         /* via "message" */
    unsigned char expire_random[ID_RANDOM_BYTES]; /* for what has run out of time meanwhile */
    struct message *messages; /* new ones, each with an id; metadata as the client may say */
    size_t count;
};

enum plain_fate {
    PLAIN_FREE,    /* nothing is open: it starts a run or waits, as on any thread */
    PLAIN_ANSWER,  /* it is an answer, and is stored */
    PLAIN_FOLLOWS, /* it goes into the queue */
    PLAIN_REFUSED, /* the change has the refusal */
};

struct plain_taken {
    enum plain_fate fate;
    str run_id, task_id; /* of the run that waits */
    str answered;        /* JSON list of the interactions that it settled; empty: none */
};

/* tc->thread is the thread. Facts and wake-ups are added to tc. */
enum err plain_message(struct thread_change *tc, struct db *db, const struct plain_message *plain,
                       struct plain_taken *ret_taken) MUST_USE;

/* A client that sends words of the assistant or of a tool, which the thread does not have, while
 * somebody is asked: they are not used, but they are noted in the audit trail. */
enum err plain_claims(struct thread_change *tc, struct db *db, const struct plain_message *plain,
                      const struct claim *claims, size_t count, bool *ret_noted) MUST_USE;

/* {"run_id","task_id", ...metadata, "answer_to"?}: metadata of a message that a run has;
 * `answer_to` is JSON, or empty. */
str metadata_with_run(struct arena *arena, str metadata, str run_id, str task_id, str answer_to);

#endif
