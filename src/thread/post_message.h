/* SPDX-License-Identifier: Apache-2.0
 *
 * Somebody posts to a thread: messages, results, answers, as a RunAgentInput has them. A use case
 * (change.h); what becomes of the input on its thread is told by take_input.h.
 *
 *     bytes that came along into storage ─► take_input, one commit ─► taken() ─► told, and answered
 */
#ifndef THREAD_POST_MESSAGE_H
#define THREAD_POST_MESSAGE_H

#include "thread/take_input.h"

struct post_message {
    struct take_input take;  /* given: input, stream; and of plain: behind, reply_to, reply */
    enum err wrong;          /* with the input, and change->why: told to who has room for a run */
    str agent;               /* that the way in names; empty: the input, or nobody does */
    str via;                 /* what a plain message that answers is called; empty: "message" */
    str sent;                /* the input's bytes: twice the same runId with these is one */
    const struct json *body; /* with the client's tools and context; NULL: it brings none */
    /* After the commit, before anything is told; not for a repetition. May be NULL. */
    void (*taken)(struct post_message *post);
};

/* ERR_RATE_LIMITED: too many runs, or streams, are at work for them. ERR_INVALID_FIELD, naming it by
 * its path in a RunAgentInput. */
void post_message(struct post_message *post);

/* Where addresses of our own attachments begin, for run_input_parse; `host`: that the client called us
 * by, or empty. */
struct parts_home post_message_home(const struct server *server, str host);

#endif
