/* SPDX-License-Identifier: Apache-2.0
 *
 * The system clock, and dates as text without the C library's locale or static buffers.
 */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static msec read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now); /* cannot fail for these ids */
    return (msec)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static msec system_wall(void *ctx)
{
    (void)ctx;
    return read_clock(CLOCK_REALTIME);
}

static msec system_steady(void *ctx)
{
    (void)ctx;
    return read_clock(CLOCK_MONOTONIC);
}

const struct clock clock_system = {.wall = system_wall, .steady = system_steady};

msec clock_wall(const struct clock *clock)
{
    return clock->wall(clock->ctx);
}

msec clock_steady(const struct clock *clock)
{
    return clock->steady(clock->ctx);
}

/* Split a wall time; out-of-range years are held at the ends so that the texts keep their width. */
static struct tm split(msec wall, unsigned *ret_ms)
{
    const msec earliest = -62167219200000, latest = 253402300799999; /* years 0000 and 9999 */
    if (wall < earliest) wall = earliest;
    if (wall > latest) wall = latest;

    msec seconds = wall / 1000, rest = wall % 1000;
    if (rest < 0) {
        rest += 1000;
        seconds--;
    }
    *ret_ms = (unsigned)rest;
    time_t t = (time_t)seconds;
    struct tm parts = {0};
    gmtime_r(&t, &parts);
    return parts;
}

void clock_rfc3339(msec wall, char out[static RFC3339_BYTES])
{
    unsigned ms;
    struct tm t = split(wall, &ms);
    char text[80];
    snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", t.tm_year + 1900,
             t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec, ms);
    snprintf(out, RFC3339_BYTES, "%.24s", text);
}

void clock_http_date(msec wall, char out[static HTTP_DATE_BYTES])
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    unsigned ms;
    struct tm t = split(wall, &ms);
    char text[80];
    snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[t.tm_wday], t.tm_mday,
             months[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
    snprintf(out, HTTP_DATE_BYTES, "%.29s", text);
}
