/* SPDX-License-Identifier: Apache-2.0
 *
 * Date and time zone for stories, as the system text tells them. A real model knows the
 * offsets of zones; this one has a table of those that most people live in, and takes UTC for the
 * others.
 *
 * Summer time is told by the day: it begins and ends before anybody meets.
 */
#include "base/clock.h"
#include "model/story.h"

enum { MINUTE_MS = 60 * 1000, DAY_MINUTES = 24 * 60 };
static const msec day_ms = (msec)DAY_MINUTES * MINUTE_MS;

/* Months in which a Sunday begins summer time and ends it. */
enum summer { NO_SUMMER, SUMMER_EUROPE, SUMMER_AMERICA, SUMMER_AUSTRALIA };
enum { LAST_SUNDAY = 5 };
static const struct {
    int begin_month, begin_sunday, end_month, end_sunday;
} summers[] = {
    [SUMMER_EUROPE] = {3, LAST_SUNDAY, 10, LAST_SUNDAY},
    [SUMMER_AMERICA] = {3, 2, 11, 1},
    [SUMMER_AUSTRALIA] = {10, 1, 4, 1},
};

/* Zones that have the same time, blanks between them. */
static const struct zone {
    int minutes; /* in winter */
    enum summer summer;
    const char *names;
} zones[] = {
    {0, NO_SUMMER, "UTC Etc/UTC"},
    {480, NO_SUMMER,
     "Asia/Shanghai Asia/Chongqing Asia/Hong_Kong Asia/Macau "
     "Asia/Taipei Asia/Singapore Asia/Kuala_Lumpur Asia/Manila "
     "Australia/Perth"},
    {360, NO_SUMMER, "Asia/Urumqi"},
    {540, NO_SUMMER, "Asia/Tokyo Asia/Seoul"},
    {420, NO_SUMMER, "Asia/Bangkok Asia/Ho_Chi_Minh Asia/Jakarta"},
    {330, NO_SUMMER, "Asia/Kolkata Asia/Calcutta"},
    {300, NO_SUMMER, "Asia/Karachi"},
    {240, NO_SUMMER, "Asia/Dubai"},
    {0, SUMMER_EUROPE, "Europe/London Europe/Dublin Europe/Lisbon"},
    {60, SUMMER_EUROPE,
     "Europe/Paris Europe/Berlin Europe/Madrid Europe/Rome "
     "Europe/Amsterdam Europe/Brussels Europe/Vienna Europe/Zurich "
     "Europe/Stockholm Europe/Oslo Europe/Copenhagen Europe/Prague "
     "Europe/Warsaw Europe/Budapest"},
    {120, SUMMER_EUROPE, "Europe/Athens Europe/Helsinki Europe/Bucharest Europe/Kyiv"},
    {180, NO_SUMMER, "Europe/Istanbul Europe/Moscow Africa/Nairobi"},
    {60, NO_SUMMER, "Africa/Lagos"},
    {120, NO_SUMMER, "Africa/Johannesburg"},
    {-300, SUMMER_AMERICA, "America/New_York America/Toronto"},
    {-360, SUMMER_AMERICA, "America/Chicago"},
    {-420, SUMMER_AMERICA, "America/Denver"},
    {-420, NO_SUMMER, "America/Phoenix"},
    {-480, SUMMER_AMERICA, "America/Los_Angeles America/Vancouver"},
    {-360, NO_SUMMER, "America/Mexico_City"},
    {-300, NO_SUMMER, "America/Bogota America/Lima"},
    {-180, NO_SUMMER, "America/Sao_Paulo America/Argentina/Buenos_Aires"},
    {600, NO_SUMMER, "Australia/Brisbane"},
    {600, SUMMER_AUSTRALIA, "Australia/Sydney Australia/Melbourne"},
};

/* ---- summer time ---- */

/* The moment, in the clock's own terms, at which the day begins. */
static msec day_start(int year, int month, int day)
{
    char text[40];
    snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, day);
    msec at = 0;
    enum err e = clock_parse(str_c(text), &at);
    assert(e == OK);
    return at;
}

static msec sunday_start(int year, int month, int number)
{
    /* The last Sunday is found from the end: March and October, the only months asked for, have 31
     * days. */
    if (number == LAST_SUNDAY) {
        msec last = day_start(year, month, 31);
        return last - (last / day_ms + 4) % 7 * day_ms;
    }
    msec first = day_start(year, month, 1);
    msec weekday = (first / day_ms + 4) % 7; /* 0 is Sunday; 1970 began on a Thursday */
    return first + ((7 - weekday) % 7 + (number - 1) * 7) * day_ms;
}

static bool is_summer(enum summer summer, msec local)
{
    if (summer == NO_SUMMER) return false;
    char text[RFC3339_BYTES];
    clock_rfc3339(local, text);
    uint64_t year = 0;
    if (str_to_u64((str){text, 4}, &year) || local < 0) return false;
    msec begin = sunday_start((int)year, summers[summer].begin_month, summers[summer].begin_sunday);
    msec end = sunday_start((int)year, summers[summer].end_month, summers[summer].end_sunday);
    /* South of the equator the summer goes over the turn of the year. */
    return begin < end ? local >= begin && local < end : local >= begin || local < end;
}

int story_zone_minutes(str name, msec at, bool *ret_known)
{
    for (size_t i = 0; i < COUNT(zones); i++)
        for (str rest = str_c(zones[i].names); rest.p;) {
            if (!str_eq(name, str_split(&rest, ' '))) continue;
            *ret_known = true;
            msec local = at + (msec)zones[i].minutes * MINUTE_MS;
            return zones[i].minutes + (is_summer(zones[i].summer, local) ? 60 : 0);
        }
    *ret_known = false;
    return 0;
}

/* ---- what the system text tells ---- */

/* "2026-11-15 05:52 UTC" at the front. */
static bool stamp_at(str text, msec *ret_now)
{
    static const str pattern = STR("dddd-dd-dd dd:dd UTC");
    if (text.len < pattern.len) return false;
    for (size_t i = 0; i < pattern.len; i++) {
        bool digit = text.p[i] >= '0' && text.p[i] <= '9';
        if (pattern.p[i] == 'd' ? !digit : text.p[i] != pattern.p[i]) return false;
    }
    char stamp[40];
    snprintf(stamp, sizeof stamp, "%.10sT%.5s:00Z", text.p, text.p + 11);
    return clock_parse(str_c(stamp), ret_now) == OK;
}

struct story_time story_time(str system)
{
    struct story_time time = {0};
    for (size_t at = system.len; at-- > 0;) {
        str rest = str_drop(system, at);
        if (!stamp_at(rest, &time.now)) continue;
        str_split(&rest, '\n');
        str line = str_split(&rest, '\n'), zone = line;
        for (size_t i = 0; i < line.len; i++) /* behind the last blank or Chinese character */
            if (line.p[i] == ' ' || (unsigned char)line.p[i] >= 0x80) zone = str_drop(line, i + 1);
        time.zone = story_zone_minutes(zone, time.now + day_ms, &time.zone_known);
        return time;
    }
    time.now = clock_wall(&clock_system);
    return time;
}

str story_stamp(struct arena *arena, const struct story_time *time, int days, int minute)
{
    msec local = time->now + (msec)time->zone * MINUTE_MS;
    msec midnight = local - local % day_ms;
    char text[RFC3339_BYTES];
    clock_rfc3339(midnight + days * day_ms + (msec)minute * MINUTE_MS, text);
    int zone = time->zone < 0 ? -time->zone : time->zone;
    return arena_printf(arena, "%.19s%c%02d:%02d", text, time->zone < 0 ? '-' : '+', zone / 60,
                        zone % 60);
}
