/* SPDX-License-Identifier: Apache-2.0
 *
 * The clock of waiting interactions: what is not answered in time is settled as expired. Expiries
 * are rows, so they survive a restart; in memory there is one timer, set to the nearest. On the
 * loop thread.
 */
#ifndef DUTY_CLOCKWORK_H
#define DUTY_CLOCKWORK_H

struct clockwork;
struct server;

/* Looks once at once. The store, the bus and the runs of the server are there. */
struct clockwork *clockwork_new(struct server *server);
void clockwork_stop(struct clockwork *clockwork); /* begin nothing more */
void clockwork_free(struct clockwork *clockwork); /* after the store was closed; NULL is fine */

/* An expiry may have been set or moved, and is committed. Cheap: many calls are one look. NULL is fine.
 */
void clockwork_look(struct clockwork *clockwork);

#endif
