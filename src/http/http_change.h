/* SPDX-License-Identifier: Apache-2.0
 *
 * A request that changes something: a change of change.h that answers an exchange, and whose key is
 * its Idempotency-Key.
 */
#ifndef HTTP_HTTP_CHANGE_H
#define HTTP_HTTP_CHANGE_H

#include "http/exchange.h"
#include "thread/change.h"

/* Start the change; it answers the exchange. */
void change_start(struct change *change, struct exchange *x);

/* The change is the exchange's: who asks, its key and its answer. Then a use case goes on with it. */
void change_for(struct change *change, struct exchange *x);
struct exchange *change_exchange(const struct change *change);

/* Where the body is not there as a whole: `request` is what makes two of them the same. */
void change_same(struct change *change, str request);

#endif
