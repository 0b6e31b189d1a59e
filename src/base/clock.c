/* SPDX-License-Identifier: Apache-2.0
 *
 * The system clock, and dates as text without the C library's locale or static buffers.
 */
#include "base/clock.h"

#include <stdio.h>
#include <string.h>
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

/* The last `digits` digits of a number. */
static void put_number(char *out, int number, size_t digits)
{
    for (; digits; number /= 10) out[--digits] = (char)('0' + number % 10);
}

/* Facts and answers have many of them, so it is written by hand. */
void clock_rfc3339(msec wall, char out[static RFC3339_BYTES])
{
    unsigned ms;
    struct tm t = split(wall, &ms);
    memcpy(out, "0000-00-00T00:00:00.000Z", RFC3339_BYTES);
    put_number(out, t.tm_year + 1900, 4);
    put_number(out + 5, t.tm_mon + 1, 2);
    put_number(out + 8, t.tm_mday, 2);
    put_number(out + 11, t.tm_hour, 2);
    put_number(out + 14, t.tm_min, 2);
    put_number(out + 17, t.tm_sec, 2);
    put_number(out + 20, (int)ms, 3);
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

/* Exactly `digits` digits at the front of *rest, moved past; -1 if they are not there. */
static int take_number(str *rest, size_t digits)
{
    int value = 0;
    if (rest->len < digits) return -1;
    for (size_t i = 0; i < digits; i++) {
        if (rest->p[i] < '0' || rest->p[i] > '9') return -1;
        value = value * 10 + (rest->p[i] - '0');
    }
    *rest = str_drop(*rest, digits);
    return value;
}

static bool take_char(str *rest, char c)
{
    if (!rest->len || rest->p[0] != c) return false;
    *rest = str_drop(*rest, 1);
    return true;
}

/* ".123": milliseconds, further digits dropped. */
static bool take_fraction(str *rest, int *ret_ms)
{
    int ms = 0, scale = 100;
    *ret_ms = 0;
    if (!take_char(rest, '.')) return true;
    if (!rest->len || rest->p[0] < '0' || rest->p[0] > '9') return false;
    for (int digit; (digit = take_number(rest, 1)) >= 0; scale /= 10) ms += digit * scale;
    *ret_ms = ms;
    return true;
}

/* "Z" or "+08:00", in minutes east. */
static bool take_zone(str *rest, int *ret_minutes)
{
    *ret_minutes = 0;
    if (take_char(rest, 'Z')) return true;
    int sign = take_char(rest, '+') ? 1 : take_char(rest, '-') ? -1 : 0;
    int hours = sign ? take_number(rest, 2) : -1;
    if (hours < 0 || hours > 23 || !take_char(rest, ':')) return false;
    int minutes = take_number(rest, 2);
    *ret_minutes = sign * (hours * 60 + minutes);
    return minutes >= 0 && minutes < 60;
}

static bool take_time(str *rest, struct tm *t, int *ret_ms, int *ret_zone)
{
    t->tm_hour = take_number(rest, 2);
    if (t->tm_hour < 0 || t->tm_hour > 23 || !take_char(rest, ':')) return false;
    t->tm_min = take_number(rest, 2);
    if (t->tm_min < 0 || t->tm_min > 59 || !take_char(rest, ':')) return false;
    t->tm_sec = take_number(rest, 2);
    if (t->tm_sec < 0 || t->tm_sec > 59) return false;
    return take_fraction(rest, ret_ms) && take_zone(rest, ret_zone);
}

enum err clock_parse(str text, msec *ret_wall)
{
    struct tm t = {0};
    int ms = 0, zone = 0, year = take_number(&text, 4);
    if (year < 0 || !take_char(&text, '-')) return ERR_INVALID_FIELD;
    int month = take_number(&text, 2);
    if (month < 1 || month > 12 || !take_char(&text, '-')) return ERR_INVALID_FIELD;
    int day = take_number(&text, 2);
    t.tm_year = year - 1900;
    t.tm_mon = month - 1;
    t.tm_mday = day;
    if (text.len && (!take_char(&text, 'T') || !take_time(&text, &t, &ms, &zone)))
        return ERR_INVALID_FIELD;
    if (text.len || day < 1) return ERR_INVALID_FIELD;
    time_t seconds = timegm(&t);
    if (t.tm_mday != day) return ERR_INVALID_FIELD; /* 31 of a shorter month moved on */
    *ret_wall = ((msec)seconds - zone * 60) * 1000 + ms;
    return OK;
}
