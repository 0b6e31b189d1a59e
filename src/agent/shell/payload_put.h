/* SPDX-License-Identifier: Apache-2.0
 *
 * Payloads on their way into object storage, between the commit that says what a call returned and
 * the one that shows it. Each is put at most a few times and within a bounded time; then it is over,
 * stored or not: what could not be put waits in its row, and the payload retry puts it later. On the loop
 * thread.
 */
#ifndef AGENT_SHELL_PAYLOAD_PUT_H
#define AGENT_SHELL_PAYLOAD_PUT_H

#include "agent/core/payload.h"
#include "base/err.h"

struct blobs;
struct loop;
struct put;
struct spool;

/* The puts of one run; embedded. */
struct payload_put {
    struct loop *loop;
    struct blobs *blobs;
    struct spool *spool;        /* of long results */
    void (*on_over)(void *arg); /* one is over; never from inside a function below */
    void (*on_trouble)(void *arg, const char *what, enum err e);
    void *arg;
    struct put *first; /* private */
};

/* Make the payload of a call and put it, unless that was begun already. */
void payload_put_put(struct payload_put *puts, const struct payload_source *source);
bool payload_put_busy(const struct payload_put *puts); /* one is not over yet */

/* Those that are over, in the arena; their texts stay here. */
size_t payload_put_over(const struct payload_put *puts, struct arena *arena,
                        struct payload **ret_payloads);
void payload_put_clear(struct payload_put *puts); /* they are saved, or nobody waits any more */

#endif
