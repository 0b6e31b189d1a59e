/* SPDX-License-Identifier: Apache-2.0
 *
 * The sweeper: removes objects that nothing names, once they are older than the grace time, and
 * files that were sent to a conversation which never came about. A put and the commit that names its
 * object lie apart, and a crash may come between them: that is what the grace time and the sweeper
 * are for. On the loop thread.
 */
#ifndef DUTY_SWEEPER_H
#define DUTY_SWEEPER_H

#include "base/clock.h"
#include "base/err.h"

struct blobs;
struct loop;
struct store;
struct sweeper;

/* What one round did. */
struct sweep_round {
    size_t looked;      /* objects beyond the grace time */
    size_t removed;     /* of these */
    size_t attachments; /* rows removed, and their objects with them */
};

struct sweeper_options {
    struct loop *loop;
    struct store *store;
    struct blobs *blobs;
    const struct clock *clock;
    msec grace_ms; /* since an object was last put */
    msec every_ms; /* between two rounds */
    /* A round has ended. May be NULL. */
    void (*on_round)(void *arg, const struct sweep_round *round);
    /* Something could not be done, and is tried again in the next round: once for a round, the first
     * of `count`. */
    void (*on_trouble)(void *arg, const char *what, size_t count, const struct fault *reason);
    void *arg;
};

/* Its first round begins at once. */
struct sweeper *sweeper_new(const struct sweeper_options *options);

void sweeper_stop(struct sweeper *sweeper); /* begin nothing more */
void sweeper_free(struct sweeper *sweeper); /* after the store was closed; NULL is fine */

#endif
