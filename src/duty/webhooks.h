/* SPDX-License-Identifier: Apache-2.0
 *
 * Outgoing webhooks: what the outbox holds is sent until the receiver has taken it (2xx) or a day
 * has passed. A row is written in the commit that made the news, so nothing is lost; it may arrive
 * twice, and then with the same Fermata-Delivery. docs/WEBHOOKS.md says what a receiver sees. On the
 * loop thread.
 */
#ifndef DUTY_WEBHOOKS_H
#define DUTY_WEBHOOKS_H

#include "base/clock.h"
#include "base/str.h"

struct client;
struct hook;
struct loop;
struct store;
struct webhooks;

struct webhooks_options {
    struct loop *loop;
    struct store *store;
    struct client *client;
    const struct clock *clock;
    const struct hook *hooks; /* outlive it */
    size_t hook_count;
};

/* Looks once at once. */
struct webhooks *webhooks_new(const struct webhooks_options *options);
/* Begin nothing more, and leave what is under way: it is sent again after the next start. */
void webhooks_stop(struct webhooks *webhooks);
void webhooks_free(struct webhooks *webhooks); /* after the store was closed; NULL is fine */

/* A commit has put something into the outbox. Cheap: many calls are one look. NULL is fine. */
void webhooks_look(struct webhooks *webhooks);

#endif
