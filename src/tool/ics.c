/* SPDX-License-Identifier: Apache-2.0
 *
 * Events as iCalendar; pure. iCalendar is made of lines `NAME:value` that end in CR LF:
 *
 *     BEGIN:VCALENDAR
 *     ...
 *     BEGIN:VEVENT
 *     UID:evt_...
 *     SUMMARY:A title that is so long that it goes beyond 75 octets of a line, so
 *      it is folded: CR LF and a space, which the reader takes out again
 *     END:VEVENT
 *     END:VCALENDAR
 *
 * 1. No line has more than LINE_OCTETS_MAX octets, the space of a fold counted, CR LF not.
 * 2. A fold never stands inside a character or an escape.
 * 3. A text cannot end its line: a line end in it becomes \n, other control bytes become spaces.
 *
 * Attendees stand in the description: ATTENDEE is for events that invite somebody, and a calendar
 * program may act on it by sending mail.
 *
 * To add a property: a line in ics_put; put_text for texts of people, put_time for moments.
 */
#include "tool/ics.h"

#include "base/clock.h"

enum { LINE_OCTETS_MAX = 75 };

struct ics_line {
    struct buf *out;
    size_t octets; /* so far */
};

/* Bytes that stay together. */
static void line_add(struct ics_line *line, str piece)
{
    if (line->octets + piece.len > LINE_OCTETS_MAX) {
        buf_append(line->out, STR("\r\n "));
        line->octets = 1;
    }
    buf_append(line->out, piece);
    line->octets += piece.len;
}

static struct ics_line line_begin(struct buf *out, str name)
{
    struct ics_line line = {.out = out};
    line_add(&line, name);
    line_add(&line, STR(":"));
    return line;
}

static void line_end(struct ics_line *line)
{
    buf_append(line->out, STR("\r\n"));
}

/* What stands for the first character of the text; *ret_len is what it takes of it. */
static str escape(str text, size_t *ret_len)
{
    char c = text.p[0];
    *ret_len = 1;
    switch (c) {
    case '\\':
        return STR("\\\\");
    case ';':
        return STR("\\;");
    case ',':
        return STR("\\,");
    case '\r':
        if (text.len > 1 && text.p[1] == '\n') *ret_len = 2;
        return STR("\\n");
    case '\n':
        return STR("\\n");
    case '\t':
        return STR("\t");
    default:
        if ((unsigned char)c < 0x20 || c == 0x7f) return STR(" ");
        while (*ret_len < text.len && *ret_len < 4 &&
               ((unsigned char)text.p[*ret_len] & 0xc0) == 0x80)
            ++*ret_len; /* a byte that goes on with the character */
        return (str){text.p, *ret_len};
    }
}

static void line_text(struct ics_line *line, str text)
{
    for (size_t len; text.len; text = str_drop(text, len)) line_add(line, escape(text, &len));
}

static void put_text(struct buf *out, str name, str text)
{
    if (!text.len) return;
    struct ics_line line = line_begin(out, name);
    line_text(&line, text);
    line_end(&line);
}

/* "20261116T070000Z" */
static void put_time(struct buf *out, str name, msec at)
{
    char text[RFC3339_BYTES];
    clock_rfc3339(at, text);
    buf_append(out, name);
    buf_printf(out, ":%.4s%.2s%.5s%.2s%.2sZ\r\n", text, text + 5, text + 8, text + 14, text + 17);
}

static void put_attendees(struct buf *out, const struct json *attendees)
{
    if (!attendees || !attendees->count) return;
    struct ics_line line = line_begin(out, STR("DESCRIPTION"));
    line_text(&line, STR("参加者 / Attendees: "));
    for (const struct json *one = attendees->child; one; one = one->next) {
        line_text(&line, json_text(one));
        if (one->next) line_text(&line, STR(", "));
    }
    line_end(&line);
}

static msec second_of(msec at)
{
    return at / 1000 - (at % 1000 < 0);
}

void ics_begin(struct buf *out)
{
    buf_append(out, STR("BEGIN:VCALENDAR\r\n"
                        "VERSION:2.0\r\n"
                        "PRODID:-//Fermata//Calendar//EN\r\n"
                        "CALSCALE:GREGORIAN\r\n"));
}

/* DTEND must be later than DTSTART, both in whole seconds; an event without it ends as it starts. */
void ics_put(struct buf *out, const struct ics_event *event)
{
    buf_append(out, STR("BEGIN:VEVENT\r\n"));
    put_text(out, STR("UID"), event->uid);
    put_time(out, STR("DTSTAMP"), event->changed);
    put_time(out, STR("DTSTART"), event->start);
    if (second_of(event->end) > second_of(event->start)) put_time(out, STR("DTEND"), event->end);
    put_text(out, STR("SUMMARY"), event->title);
    put_text(out, STR("LOCATION"), event->location);
    put_attendees(out, event->attendees);
    buf_append(out, STR("END:VEVENT\r\n"));
}

void ics_end(struct buf *out)
{
    buf_append(out, STR("END:VCALENDAR\r\n"));
}
