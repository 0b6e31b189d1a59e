/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast bytes move, over a window that slides: what moved long ago does not count. The
 * window is cut into a few parts; when a part is over, the oldest one is forgotten.
 */
#ifndef NET_PACE_H
#define NET_PACE_H

#include "base/clock.h"

enum { PACE_PARTS = 6 };

struct pace {
    msec part_at;                   /* when the newest part began */
    unsigned newest;                /* its place in the ring */
    unsigned age;                   /* parts that are over, up to PACE_PARTS */
    uint32_t bytes[PACE_PARTS + 1]; /* of the whole window, and of the part that grows */
};

void pace_begin(struct pace *pace, msec now);

/* Bytes that moved; 0 says that time went by. `span` is the window, always the same. */
void pace_count(struct pace *pace, msec now, msec span, uint64_t bytes);

/* Time that does not count: the other side had to wait for us. */
void pace_skip(struct pace *pace, msec time);

/* Fewer bytes than `rate` a second in the last `span`? Never before so much time went by. */
bool pace_slow(const struct pace *pace, msec span, uint64_t rate);

#endif
