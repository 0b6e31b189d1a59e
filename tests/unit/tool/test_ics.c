/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/ics.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "check.h"

enum { LINE_OCTETS_MAX = 75 };

static msec at(const char *text)
{
    msec wall = 0;
    assert_int_equal(clock_parse(str_c(text), &wall), OK);
    return wall;
}

/* The calendar of one event. */
static void write_one(struct buf *out, const struct ics_event *event)
{
    buf_init(out, 1024 * 1024);
    ics_begin(out);
    ics_put(out, event);
    ics_end(out);
    assert_false(out->full);
}

/* The calendar's line that begins with `name:`, unfolded; every line is checked on the way. */
static bool find_line(str text, const char *name, struct buf *line)
{
    bool found = false, within = false;
    char start[40];
    snprintf(start, sizeof start, "%s:", name);
    buf_clear(line);
    while (text.len) {
        ptrdiff_t len = str_find(text, STR("\r\n"));
        assert_true(len >= 0);
        str one = {text.p, (size_t)len};
        text = str_drop(text, one.len + 2);
        assert_true(one.len > 0 && one.len <= LINE_OCTETS_MAX);
        assert_true(utf8_valid(one));
        assert_true(str_find_char(one, '\n') < 0 && str_find_char(one, '\r') < 0);
        if (one.p[0] != ' ') {
            assert_false(found && str_starts(one, str_c(start)));
            within = str_starts(one, str_c(start));
            if (within) found = true;
            if (within) buf_append(line, str_drop(one, strlen(start)));
        } else if (within) {
            buf_append(line, str_drop(one, 1));
        }
    }
    return found;
}

/* ---- tests ---- */

static void whole(void **state)
{
    (void)state;
    struct arena arena;
    struct json *attendees = NULL;
    struct buf out;
    arena_init(&arena);
    assert_int_equal(json_parse(&arena, STR("[\"Ann\",\"bob@example.org\"]"), &attendees, NULL),
                     OK);
    write_one(&out, &(struct ics_event){.uid = STR("evt_1"),
                                        .title = STR("评审会"),
                                        .location = STR("Room 1, 2nd floor"),
                                        .attendees = attendees,
                                        .start = at("2026-11-16T15:00:00+08:00"),
                                        .end = at("2026-11-16T16:00:00.500+08:00"),
                                        .changed = at("2026-11-15T09:12:13.999Z")});
    assert_str(buf_str(&out), STR("BEGIN:VCALENDAR\r\n"
                                  "VERSION:2.0\r\n"
                                  "PRODID:-//Fermata//Calendar//EN\r\n"
                                  "CALSCALE:GREGORIAN\r\n"
                                  "BEGIN:VEVENT\r\n"
                                  "UID:evt_1\r\n"
                                  "DTSTAMP:20261115T091213Z\r\n"
                                  "DTSTART:20261116T070000Z\r\n"
                                  "DTEND:20261116T080000Z\r\n"
                                  "SUMMARY:评审会\r\n"
                                  "LOCATION:Room 1\\, 2nd floor\r\n"
                                  "DESCRIPTION:参加者 / Attendees: Ann\\, bob@example.org\r\n"
                                  "END:VEVENT\r\n"
                                  "END:VCALENDAR\r\n"));
    buf_done(&out);
    arena_done(&arena);
}

static void what_is_not_there_is_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *attendees;
        const char *start, *end;
        bool has_end;
    } rows[] = {
        {"[]", "2026-11-16T15:00:00Z", "2026-11-16T15:00:01Z", true},
        {"[]", "2026-11-16T15:00:00Z", "2026-11-16T15:00:00Z", false},
        {"[]", "2026-11-16T15:00:00.100Z", "2026-11-16T15:00:00.900Z", false},
        {"[]", "2026-11-16T15:00:00.900Z", "2026-11-16T15:00:01.100Z", true},
        {"[]", "1969-12-31T23:59:59.100Z", "1969-12-31T23:59:59.900Z", false},
        {"[]", "1969-12-31T23:59:59.900Z", "1970-01-01T00:00:00.100Z", true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        struct json *attendees = NULL;
        struct buf out, line;
        arena_init(&arena);
        buf_init(&line, 4096);
        assert_int_equal(json_parse(&arena, str_c(rows[i].attendees), &attendees, NULL), OK);
        write_one(&out, &(struct ics_event){.uid = STR("evt_1"),
                                            .title = STR("x"),
                                            .attendees = i % 2 ? attendees : NULL,
                                            .start = at(rows[i].start),
                                            .end = at(rows[i].end)});
        assert_int_equal(find_line(buf_str(&out), "DTEND", &line), rows[i].has_end);
        assert_true(find_line(buf_str(&out), "SUMMARY", &line));
        assert_false(find_line(buf_str(&out), "LOCATION", &line));
        assert_false(find_line(buf_str(&out), "DESCRIPTION", &line));
        buf_done(&out);
        buf_done(&line);
        arena_done(&arena);
    }
}

static void escapes(void **state)
{
    (void)state;
    static const struct {
        str text, expected;
    } rows[] = {
        {STR("plain: \"quoted\" text"), STR("plain: \"quoted\" text")},
        {STR("a\\b"), STR("a\\\\b")},
        {STR("a;b,c"), STR("a\\;b\\,c")},
        {STR("\\n"), STR("\\\\n")},
        {STR("two\nlines"), STR("two\\nlines")},
        {STR("two\r\nlines"), STR("two\\nlines")},
        {STR("two\rlines\r"), STR("two\\nlines\\n")},
        {STR("\n\r"), STR("\\n\\n")},
        {STR("a\tb"), STR("a\tb")},
        {STR("a\0b\x1b\x7f"
             "c"),
         STR("a b  c")},
        {STR("x\r\nEND:VEVENT\r\nBEGIN:VALARM"), STR("x\\nEND:VEVENT\\nBEGIN:VALARM")},
        {STR("评审会；é🎉"), STR("评审会；é🎉")},
    };
    struct buf out, line;
    buf_init(&line, 4096);
    for (size_t i = 0; i < COUNT(rows); i++) {
        write_one(&out, &(struct ics_event){
                            .uid = STR("evt_1"), .title = rows[i].text, .location = rows[i].text});
        assert_true(find_line(buf_str(&out), "SUMMARY", &line));
        assert_str(buf_str(&line), rows[i].expected);
        assert_true(find_line(buf_str(&out), "LOCATION", &line));
        assert_str(buf_str(&line), rows[i].expected);
        buf_done(&out);
    }
    buf_done(&line);
}

/* Characters of one to four bytes and escapes, shifted over every column of a line, for three lines;
 * find_line looks at each. */
static void folds(void **state)
{
    (void)state;
    static const struct {
        const char *unit, *escaped;
    } rows[] = {{"x", "x"}, {"é", "é"}, {"会", "会"}, {"🎉", "🎉"}, {",", "\\,"}, {"\n", "\\n"}};
    struct buf text, expected, out, line;
    buf_init(&text, 4096);
    buf_init(&expected, 4096);
    buf_init(&line, 4096);
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (int before = 0; before < 8; before++) {
            buf_clear(&text);
            buf_clear(&expected);
            for (int n = 0; n < before; n++) buf_char(&text, 'a'), buf_char(&expected, 'a');
            for (int n = 0; n < 220; n++) {
                buf_append(&text, str_c(rows[i].unit));
                buf_append(&expected, str_c(rows[i].escaped));
                write_one(&out, &(struct ics_event){.uid = STR("e"), .title = buf_str(&text)});
                assert_true(find_line(buf_str(&out), "SUMMARY", &line));
                assert_str(buf_str(&line), buf_str(&expected));
                assert_true(str_find(buf_str(&out), STR("\\\r\n")) < 0); /* no cut escape */
                buf_done(&out);
            }
        }
    }
    buf_done(&text);
    buf_done(&expected);
    buf_done(&line);
}

/* A line is filled before it is folded. */
static void folds_at_75(void **state)
{
    (void)state;
    static const char letters[] =
        "................................................................"
        "................................................................"
        "................................................................";
    static const struct {
        size_t title;
        size_t folds;
    } rows[] = {{67, 0}, {68, 1}, {67 + 74, 1}, {67 + 75, 2}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct buf out;
        size_t folds = 0;
        write_one(&out,
                  &(struct ics_event){.uid = STR("e"), .title = (str){letters, rows[i].title}});
        for (str rest = buf_str(&out); rest.p;) {
            str_split(&rest, '\n');
            folds += rest.len > 0 && rest.p[0] == ' ';
        }
        assert_int_equal(folds, rows[i].folds);
        buf_done(&out);
    }
}

int test_ics(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),       cmocka_unit_test(what_is_not_there_is_left_out),
        cmocka_unit_test(escapes),     cmocka_unit_test(folds),
        cmocka_unit_test(folds_at_75),
    };
    return cmocka_run_group_tests_name("tool/ics", tests, NULL, NULL);
}
