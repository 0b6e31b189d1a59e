/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client says in the name of others: results of tools, words of the assistant. It counts in
 * one case, as the result of a front-end call that the thread waits for. Anything else is not used; if
 * somebody is asked meanwhile it is noted in the audit trail. Blocking code for use inside a write
 * job.
 */
#ifndef THREAD_CLIENT_RESULTS_H
#define THREAD_CLIENT_RESULTS_H

#include "thread/pending.h"
#include "thread/run_input.h"

struct client_results {
    const struct claim *forged; /* the first result of a call that the thread does not have, or that
                                   waits for somebody else; NULL: none */
    bool noted;                 /* an entry is in the trail */
};

/* Looks at the claims of a request to a thread that exists. Results that count are taken out of
 * `pending`. */
enum err client_results_find(struct db *db, struct arena *arena, const struct settle *settle,
                             int64_t thread, const struct run_input *input, struct pending *pending,
                             struct client_results *ret_client_results) MUST_USE;

#endif
