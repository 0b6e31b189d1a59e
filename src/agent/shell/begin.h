/* SPDX-License-Identifier: Apache-2.0
 *
 * How a run begins: at once, when its thread is idle, or when its turn comes in the queue. Both are
 * one commit: message.added for each new message, run.started, step.start. Blocking code for use
 * inside a write job.
 */
#ifndef AGENT_SHELL_BEGIN_H
#define AGENT_SHELL_BEGIN_H

#include "agent/shell/run.h"

struct db;

struct begin {
    uint32_t max_rounds;        /* of the agent at this moment */
    str locale;                 /* likewise; empty: the language of the messages */
    str timezone;               /* of the person; empty: what a queued run's request says */
    str press_tool, press_args; /* of a button; empty: what a queued run's input says */
    int64_t epoch;
    str owner, thread_id;
    msec now;
};

/* Facts that were stored, for the bus once the commit is done. */
struct begun {
    struct fact *facts;
    size_t fact_count;
};

/* The run's row exists, and is `running` from now on. */
enum err run_begin(struct db *db, struct arena *arena, const struct begin *begin, struct run *run,
                   const struct message *messages, size_t count, struct begun *ret_begun) MUST_USE;

/* The same for a queued run, whose messages wait in its row. */
enum err run_begin_queued(struct db *db, struct arena *arena, const struct begin *begin,
                          struct run *run, struct begun *ret_begun) MUST_USE;

/* A button that is to be pressed, as a run's input: {"press":{"tool","args"}}. */
str press_input(struct arena *arena, str tool, str args);

/* forwardedProps.timezone of a request; empty if there is none. */
struct json;
str timezone_of(const struct json *forwarded_props);

/* Messages on their way through the queue: to the row's text, and back. */
void queued_write(struct buf *out, const struct message *messages, size_t count);
enum err queued_parse(struct arena *arena, str json, struct message **ret_messages,
                      size_t *ret_count) MUST_USE;

#endif
