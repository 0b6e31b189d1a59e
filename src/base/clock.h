/* SPDX-License-Identifier: Apache-2.0
 *
 * Time, read in one place. The wall clock is for what people see and for what outlives the process;
 * it may jump. The steady clock is for time-outs; it never does. Tests replace the clock.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/str.h"

struct clock {
    msec (*wall)(void *ctx);   /* since 1970, UTC */
    msec (*steady)(void *ctx); /* since some moment before */
    void *ctx;
};

extern const struct clock clock_system;

msec clock_wall(const struct clock *clock);
msec clock_steady(const struct clock *clock);

enum { RFC3339_BYTES = 25, HTTP_DATE_BYTES = 30 };

/* "2026-11-15T05:52:50.123Z", always 24 bytes and a NUL. Years 0 to 9999. */
void clock_rfc3339(msec wall, char out[static RFC3339_BYTES]);

/* Back from text: "2026-11-15", "2026-11-15T05:52:50Z", with or without a fraction, Z or +hh:mm. */
enum err clock_parse(str text, msec *ret_wall) MUST_USE;

/* "Sun, 15 Nov 2026 05:52:50 GMT": 29 bytes and a NUL. */
void clock_http_date(msec wall, char out[static HTTP_DATE_BYTES]);

#endif
