/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions of other agents in the store: one run each, without a model, on a thread of the key that
 * asks.
 *
 *     mcp:<key id>        the first that is open       mcp:local without a login
 *     mcp:<key id>:2      one more beside it, and so on up to DESK_THREADS_MAX; then they queue
 *
 * A thread has one current run, so questions that are open at the same time stand on threads of
 * their own. Blocking code for use inside jobs.
 */
#ifndef MCP_SERVER_QUESTION_H
#define MCP_SERVER_QUESTION_H

#include "mcp/server/mcp_server_tools.h"
#include "thread/start_run.h"

/* Where a question stands. */
struct question {
    int64_t thread;
    str run_id;
};

struct question_new {
    const struct desk_call *call;
    struct start_run start; /* its run_id is the question's, made from the client's key */
    str client;             /* who asks, on one line; may be empty */
    str message_id;         /* of the row that says so */
    str agent;              /* of a new thread */
};

/* "mcp:<key id>", or with the number of one more thread behind it. */
str question_thread(struct arena *arena, str key_id, unsigned n);

/* The run id of a client's key; a random one if there is no key. */
str question_run_id(struct arena *arena, str key_id, str key);

/* In a write job: the question of this key, or a new one. tc->change has who asks, when, and room for
 * facts to be told. ERR_IDEMPOTENCY_MISMATCH: the key was used for another question. */
enum err question_ask(struct thread_change *tc, struct db *db, struct question_new *question,
                      struct question *ret_question) MUST_USE;

/* The question of an id: the interaction's, or the run's. ERR_NOT_FOUND, also for somebody else's and
 * for what is none of these questions. */
enum err question_find(struct db *db, struct arena *arena, const struct identity *who, str id,
                       struct question *ret_question) MUST_USE;

/* What became of it so far. ERR_NOT_FOUND: its thread was deleted. */
enum err question_look(struct db *db, struct arena *arena, const struct question *question,
                       struct desk_state *ret_state) MUST_USE;

#endif
