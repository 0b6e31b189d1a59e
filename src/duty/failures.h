/* SPDX-License-Identifier: Apache-2.0
 *
 * A line in the log for every run that failed, or that used up what it may cost: which one, whose
 * agent, and why. Whoever runs the server reads it there; the person reads it in the conversation.
 */
#ifndef DUTY_FAILURES_H
#define DUTY_FAILURES_H

struct failures;
struct server;

struct failures *failures_new(struct server *server); /* follows every thread of server->bus */
void failures_free(struct failures *failures);        /* after the store was closed */

#endif
