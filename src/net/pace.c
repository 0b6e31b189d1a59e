/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast bytes move, over a window that slides. A ring of counts, one for each part of the window
 * and one for the part that grows. So what is added up covers the window and at most one part more:
 * a verdict comes up to a sixth of the window late, and never too early.
 */
#include "net/pace.h"

void pace_begin(struct pace *pace, msec now)
{
    *pace = (struct pace){.part_at = now};
}

void pace_count(struct pace *pace, msec now, msec span, uint64_t bytes)
{
    msec part = span >= PACE_PARTS ? span / PACE_PARTS : 1;
    msec over = now > pace->part_at ? (now - pace->part_at) / part : 0;
    pace->part_at += over * part;
    for (; over > 0; over--) {
        pace->newest = (pace->newest + 1) % COUNT(pace->bytes);
        pace->bytes[pace->newest] = 0;
        if (pace->age < PACE_PARTS) pace->age++;
        if (over > (msec)COUNT(pace->bytes)) over = (msec)COUNT(pace->bytes); /* all are empty */
    }
    uint32_t *sum = &pace->bytes[pace->newest];
    *sum = bytes < UINT32_MAX - *sum ? *sum + (uint32_t)bytes : UINT32_MAX;
}

void pace_skip(struct pace *pace, msec time)
{
    pace->part_at += time;
}

bool pace_slow(const struct pace *pace, msec span, uint64_t rate)
{
    uint64_t bytes = 0;
    if (pace->age < PACE_PARTS) return false;
    for (size_t i = 0; i < COUNT(pace->bytes); i++) bytes += pace->bytes[i];
    return bytes < rate * (uint64_t)span / 1000;
}
