/* SPDX-License-Identifier: Apache-2.0
 *
 * Payloads on their way into object storage, between the commit that says what a call returned and
 * the one that shows it. Each is put at most a few times and within a bounded time; then it is over,
 * stored or not: what could not be put waits in its row, and the keeper puts it later. On the loop
 * thread.
 */
#ifndef AGENT_SHELF_H
#define AGENT_SHELF_H

#include "agent/payload.h"
#include "base/err.h"

struct blobs;
struct loop;
struct put;
struct spool;

/* The puts of one run; embedded. */
struct shelf {
    struct loop *loop;
    struct blobs *blobs;
    struct spool *spool;        /* of long results */
    void (*on_over)(void *arg); /* one is over; never from inside a function below */
    void (*on_trouble)(void *arg, const char *what, enum err e);
    void *arg;
    struct put *first; /* private */
};

/* Make the payload of a call and put it, unless that was begun already. */
void shelf_put(struct shelf *shelf, const struct payload_source *source);
bool shelf_busy(const struct shelf *shelf); /* one is not over yet */

/* Those that are over, in the arena; their texts stay on the shelf. */
size_t shelf_over(const struct shelf *shelf, struct arena *arena, struct payload **ret_payloads);
void shelf_clear(struct shelf *shelf); /* they are saved, or nobody waits any more */

#endif
