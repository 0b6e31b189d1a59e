/* SPDX-License-Identifier: Apache-2.0
 *
 * Date and time zone for the demo model. A real model knows the offsets of zones; this one has a
 * table of those that most people live in, and takes UTC for the others.
 *
 * Summer time is told by the day: it begins and ends before anybody meets.
 */
#include "base/clock.h"
#include "model/demo.h"

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

static const struct zone {
    const char *name;
    int minutes; /* in winter */
    enum summer summer;
} zones[] = {
    {"UTC", 0, NO_SUMMER},
    {"Etc/UTC", 0, NO_SUMMER},
    {"Asia/Shanghai", 480, NO_SUMMER},
    {"Asia/Chongqing", 480, NO_SUMMER},
    {"Asia/Urumqi", 360, NO_SUMMER},
    {"Asia/Hong_Kong", 480, NO_SUMMER},
    {"Asia/Macau", 480, NO_SUMMER},
    {"Asia/Taipei", 480, NO_SUMMER},
    {"Asia/Singapore", 480, NO_SUMMER},
    {"Asia/Kuala_Lumpur", 480, NO_SUMMER},
    {"Asia/Manila", 480, NO_SUMMER},
    {"Asia/Tokyo", 540, NO_SUMMER},
    {"Asia/Seoul", 540, NO_SUMMER},
    {"Asia/Bangkok", 420, NO_SUMMER},
    {"Asia/Ho_Chi_Minh", 420, NO_SUMMER},
    {"Asia/Jakarta", 420, NO_SUMMER},
    {"Asia/Kolkata", 330, NO_SUMMER},
    {"Asia/Calcutta", 330, NO_SUMMER},
    {"Asia/Karachi", 300, NO_SUMMER},
    {"Asia/Dubai", 240, NO_SUMMER},
    {"Europe/London", 0, SUMMER_EUROPE},
    {"Europe/Dublin", 0, SUMMER_EUROPE},
    {"Europe/Lisbon", 0, SUMMER_EUROPE},
    {"Europe/Paris", 60, SUMMER_EUROPE},
    {"Europe/Berlin", 60, SUMMER_EUROPE},
    {"Europe/Madrid", 60, SUMMER_EUROPE},
    {"Europe/Rome", 60, SUMMER_EUROPE},
    {"Europe/Amsterdam", 60, SUMMER_EUROPE},
    {"Europe/Brussels", 60, SUMMER_EUROPE},
    {"Europe/Vienna", 60, SUMMER_EUROPE},
    {"Europe/Zurich", 60, SUMMER_EUROPE},
    {"Europe/Stockholm", 60, SUMMER_EUROPE},
    {"Europe/Oslo", 60, SUMMER_EUROPE},
    {"Europe/Copenhagen", 60, SUMMER_EUROPE},
    {"Europe/Prague", 60, SUMMER_EUROPE},
    {"Europe/Warsaw", 60, SUMMER_EUROPE},
    {"Europe/Budapest", 60, SUMMER_EUROPE},
    {"Europe/Athens", 120, SUMMER_EUROPE},
    {"Europe/Helsinki", 120, SUMMER_EUROPE},
    {"Europe/Bucharest", 120, SUMMER_EUROPE},
    {"Europe/Kyiv", 120, SUMMER_EUROPE},
    {"Europe/Istanbul", 180, NO_SUMMER},
    {"Europe/Moscow", 180, NO_SUMMER},
    {"Africa/Lagos", 60, NO_SUMMER},
    {"Africa/Johannesburg", 120, NO_SUMMER},
    {"Africa/Nairobi", 180, NO_SUMMER},
    {"America/New_York", -300, SUMMER_AMERICA},
    {"America/Toronto", -300, SUMMER_AMERICA},
    {"America/Chicago", -360, SUMMER_AMERICA},
    {"America/Denver", -420, SUMMER_AMERICA},
    {"America/Phoenix", -420, NO_SUMMER},
    {"America/Los_Angeles", -480, SUMMER_AMERICA},
    {"America/Vancouver", -480, SUMMER_AMERICA},
    {"America/Mexico_City", -360, NO_SUMMER},
    {"America/Bogota", -300, NO_SUMMER},
    {"America/Lima", -300, NO_SUMMER},
    {"America/Sao_Paulo", -180, NO_SUMMER},
    {"America/Argentina/Buenos_Aires", -180, NO_SUMMER},
    {"Australia/Perth", 480, NO_SUMMER},
    {"Australia/Brisbane", 600, NO_SUMMER},
    {"Australia/Sydney", 600, SUMMER_AUSTRALIA},
    {"Australia/Melbourne", 600, SUMMER_AUSTRALIA},
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

int demo_zone_minutes(str name, msec at, bool *ret_known)
{
    for (size_t i = 0; i < COUNT(zones); i++) {
        if (!str_eq(name, str_c(zones[i].name))) continue;
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

struct demo_time demo_time(str system)
{
    struct demo_time time = {0};
    for (size_t at = system.len; at-- > 0;) {
        str rest = str_drop(system, at);
        if (!stamp_at(rest, &time.now)) continue;
        str_split(&rest, '\n');
        str line = str_split(&rest, '\n'), zone = line;
        for (size_t i = 0; i < line.len; i++) /* behind the last blank or Chinese character */
            if (line.p[i] == ' ' || (unsigned char)line.p[i] >= 0x80) zone = str_drop(line, i + 1);
        time.zone = demo_zone_minutes(zone, time.now + day_ms, &time.zone_known);
        return time;
    }
    time.now = clock_wall(&clock_system);
    return time;
}

str demo_stamp(struct arena *arena, const struct demo_time *time, int days, int minute)
{
    msec local = time->now + (msec)time->zone * MINUTE_MS;
    msec midnight = local - local % day_ms;
    char text[RFC3339_BYTES];
    clock_rfc3339(midnight + days * day_ms + (msec)minute * MINUTE_MS, text);
    int zone = time->zone < 0 ? -time->zone : time->zone;
    return arena_printf(arena, "%.19s%c%02d:%02d", text, time->zone < 0 ? '-' : '+', zone / 60,
                        zone % 60);
}
