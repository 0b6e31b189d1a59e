/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares of a pool that many people use: how much all of them hold together, and how much of it
 * each one does. Nobody holds more than `each_max`, so one person's excess is refused while there
 * is still room for the others. What is counted is the caller's: requests, bytes, subscriptions.
 *
 * Somebody who holds nothing costs nothing: an entry lives as long as its count. At most as many
 * people as units: a pool of bytes is bounded in entries by who takes at least one.
 */
#ifndef BASE_SHARES_H
#define BASE_SHARES_H

#include "base/map.h"

struct shares {
    uint64_t all_max, each_max;
    uint64_t held; /* by all together */
    struct map by_name;
};

/* people_max bounds the number of those who hold something at the same time. */
void shares_init(struct shares *shares, uint64_t all_max, uint64_t each_max, size_t people_max);
void shares_done(struct shares *shares);

/* Why something was not given. */
enum share { SHARE_GIVEN, SHARE_OWN_USED_UP, SHARE_ALL_USED_UP };

/* Take n units for somebody, all of them or none. n = 0 is always given. */
enum share shares_take(struct shares *shares, str name, uint64_t n) MUST_USE;

/* Count n units in any case: somebody has them already, and gets no more until some are back. False:
 * there are too many people, and nothing was counted. */
bool shares_add(struct shares *shares, str name, uint64_t n) MUST_USE;

/* Give n units back; they were taken by this name. */
void shares_give(struct shares *shares, str name, uint64_t n);

uint64_t shares_held(const struct shares *shares, str name);

#endif
