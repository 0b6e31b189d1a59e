/* SPDX-License-Identifier: Apache-2.0
 *
 * Carries the requests of an errand to the platform and its replies back, step by step, on the loop.
 */
#ifndef CHAT_PLATFORM_REQUEST_H
#define CHAT_PLATFORM_REQUEST_H

#include "base/clock.h"
#include "chat/channel.h"

struct client;
struct trip;

/* Start an errand; `home` and what the errand points at stay until it ends. on_done comes once, from
 * the loop and never from inside this; errand->verdict says how it ended. */
struct trip *platform_request_go(struct client *client, const struct clock *clock,
                                 const struct channel_home *home, errand_fn *step,
                                 struct errand *errand,
                                 void (*on_done)(void *arg, struct errand *errand), void *arg);

/* May a platform whose address is base_url send us to this one? A host of its own (https, and it ends
 * in `only_host`); where the platform is on this machine, one of this machine. NULL: anywhere. */
bool platform_request_may(str base_url, str url, const char *only_host);

/* on_done does not come any more. The request under way is cut. */
void trip_cancel(struct trip *trip);

#endif
