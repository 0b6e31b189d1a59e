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
 *   front-end calls               ends them as not answered, and follows unless it is an answer
 *   uncertain                     waits in the queue; a person has to decide
 *
 * A message of a chat whose writer has not been shown all of it yet settles nothing: it waits behind.
 * One that was read as the reply to one interaction (chat/chat_text.h) is its answer, or
 * is refused: it never becomes anything else.
 */
#ifndef THREAD_PLAIN_MESSAGE_H
#define THREAD_PLAIN_MESSAGE_H

#include "thread/pending.h"

struct plain_message {
    bool behind;              /* it settles nothing, and follows what is open */
    str reply_to;             /* it answers this interaction and settles nothing else, */
    str reply;                /* with this body, JSON; both empty: it is as plain as it looks */
    struct settle settle;     /* via "message" */
    struct message *messages; /* new ones, each with an id; metadata as the client may say */
    size_t count;
    struct id_list answer_to; /* set by plain_message: what they are the answer to */
};

enum plain_fate {
    PLAIN_FREE,    /* nothing is open: it starts a run or waits, as on any thread */
    PLAIN_ANSWER,  /* it is an answer: plain_store */
    PLAIN_FOLLOWS, /* it goes into the queue */
    PLAIN_REFUSED, /* the change has the refusal */
};

/* What becomes of the message, of which there is at least one; what it settles is taken out of
 * `pending`. Nothing but the audit trail is changed. */
enum err plain_message(struct thread_change *tc, struct db *db, struct plain_message *plain,
                       struct pending *pending, enum plain_fate *ret_fate) MUST_USE;

/* Store a message that is an answer, in front of what it settles (pending_apply). Its facts are added to
 * tc. */
enum err plain_store(struct thread_change *tc, struct db *db, const struct plain_message *plain,
                     const struct pending *pending) MUST_USE;

/* {"run_id","task_id", ...metadata, "answer_to"?}: metadata of a message that a run has;
 * `answer_to` is JSON, or empty. */
str metadata_with_run(struct arena *arena, str metadata, str run_id, str task_id, str answer_to);

#endif
