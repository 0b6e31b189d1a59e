/* SPDX-License-Identifier: Apache-2.0 */
#include "term/term_text.h"

#include <stdio.h>

#include "check.h"
#include "term/term_area.h"

static void columns(void **state)
{
    (void)state;
    static const struct {
        str text;
        size_t columns;
    } rows[] = {
        {STR(""), 0},        {STR("abc"), 3},
        {STR("你好"), 4},    {STR("a你"), 3},
        {STR("，"), 2},      {STR("e\xcc\x81"), 1},
        {STR("한"), 2},      {STR("😀"), 2},
        {STR("é"), 1},       {STR("ｱ"), 1},
        {STR("❯ ✎ ↷ ✓"), 7}, {STR("⟦U+202E⟧"), 8},
        {STR("–…·"), 3},     {STR("\xe2\x80\x8d"), 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(term_columns(rows[i].text), rows[i].columns);
}

static void cleaning(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    static const struct {
        str text;
        bool lines;
        str clean;
    } rows[] = {
        {STR("plain 文"), true, STR("plain 文")},
        {STR("a\nb"), true, STR("a\nb")},
        {STR("a\nb"), false, STR("a b")},
        {STR("a\r\nb"), true, STR("a\nb")},
        {STR("a\rb"), true, STR("a⟦U+000D⟧b")},
        {STR("a\tb"), true, STR("a    b")},
        {STR("\x1b[31mred"), true, STR("⟦U+001B⟧[31mred")},
        {STR("\xc2\x9b"
             "31m"),
         true, STR("⟦U+009B⟧31m")},
        {STR("\x7f\x08"), true, STR("⟦U+007F⟧⟦U+0008⟧")},
        {STR("a\0b"), true, STR("a⟦U+0000⟧b")},
        {STR("\xe2\x80\xae"
             "x"),
         true, STR("⟦U+202E⟧x")},
        {STR("\xe2\x81\xa6"
             "x"),
         true, STR("⟦U+2066⟧x")},
        {STR("👩\xe2\x80\x8d💻"), true, STR("👩\xe2\x80\x8d💻")},
        {STR("\xf3\xa0\x81\x81"), true, STR("⟦U+E0041⟧")},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_str(term_clean(&arena, rows[i].text, rows[i].lines), rows[i].clean);
}

static void wrapping(void **state)
{
    (void)state;
    static const struct {
        str text;
        size_t columns;
        const char *rows; /* with '|' between them */
    } cases[] = {
        {STR(""), 5, ""},
        {STR("abc"), 5, "abc"},
        {STR("abcde"), 5, "abcde"},
        {STR("abcdef"), 5, "abcde|f"},
        {STR("ab cd ef"), 5, "ab |cd ef"},
        {STR("a\n\nb\n"), 5, "a||b|"},
        {STR("你好吗"), 5, "你好|吗"},
        {STR("你"), 1, "你"},
        {STR("e\xcc\x81"
             "e\xcc\x81"),
         1, "e\xcc\x81|e\xcc\x81"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO(buf_done) struct buf out;
        buf_init(&out, 100);
        for (str rest = cases[i].text; rest.p;) {
            str row = term_row(&rest, cases[i].columns);
            if (row.len) buf_append(&out, row);
            if (rest.p) buf_char(&out, '|');
        }
        assert_str(out.len ? buf_str(&out) : STR_EMPTY, str_c(cases[i].rows));
    }
}

/* Words of others that go on in another row stand behind the margin there. */
static void margins(void **state)
{
    (void)state;
    static const struct {
        str text;
        size_t columns;
        str rows;
    } cases[] = {
        {STR(""), 9, STR("")},
        {STR("short\n\nlines\n"), 9, STR("short\n\nlines\n")},
        {STR("123456789"), 9, STR("123456789")},
        {STR("123456789abcdefg"), 9, STR("123456789\n  │ abcde\n  │ fg")},
        {STR("a: xxxxxxxx  b: y"), 9, STR("a: xxxxxx\n  │ xx  \n  │ b: y")},
        {STR("  │ 123456789"), 12, STR("  │ 12345678\n  │ 9")},
        {STR("你好世界你好"), 9, STR("你好世界\n  │ 你好")},
        {STR("a\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0"
             "b!"),
         9,
         STR("a\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0"
             "b\n  │ !")},
        {STR("🏻🏻🏻🏻🏻"), 9, STR("🏻🏻🏻🏻\n  │ 🏻")},
        {STR("abc"), 1, STR("a\n  │ b\n  │ c")},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        assert_str(term_wrap(&arena, cases[i].text, cases[i].columns, TERM_MARGIN), cases[i].rows);
    }
}

static void the_area(void **state)
{
    (void)state;
    struct area area;
    area_init(&area);
    area_begin(&area, 5);
    area_text(&area, STYLE_DIM, STR("abcdefg"));
    assert_int_equal(area.count, 2);
    assert_str(area_row(&area, 1), STR("fg"));
    assert_int_equal(area.rows[1].style, STYLE_DIM);

    static const struct {
        size_t at, row, col;
    } cursors[] = {{0, 0, 0}, {4, 0, 4}, {5, 1, 0}, {7, 1, 2}};
    for (size_t i = 0; i < COUNT(cursors); i++) {
        area_begin(&area, 5);
        area_edited(&area, STR("abcdefg"), cursors[i].at);
        assert_int_equal(area.cursor_row, cursors[i].row);
        assert_int_equal(area.cursor_col, cursors[i].col);
    }
    area_begin(&area, 5);
    area_edited(&area, STR("ab\ncd"), 2); /* before the line end */
    assert_int_equal(area.cursor_row, 0);
    assert_int_equal(area.cursor_col, 2);

    area_begin(&area, 5);
    area_tail(&area, STYLE_PLAIN, STR("1\n2\n3\n4"), 2);
    assert_int_equal(area.count, 2);
    assert_str(area_row(&area, 0), STR("3"));

    area_begin(&area, 5);
    for (int i = 0; i < AREA_ROWS_MAX + 5; i++) area_text(&area, STYLE_PLAIN, STR("x"));
    area_text(&area, STYLE_PLAIN, STR("last"));
    assert_int_equal(area.count, AREA_ROWS_MAX);
    assert_str(area_row(&area, AREA_ROWS_MAX - 1), STR("last"));
    area_cut(&area, 3);
    assert_int_equal(area.count, 3);
    assert_int_equal(area.cursor_row, 2);

    area_begin(&area, 5);
    for (int i = 0; i < 9; i++) area_text(&area, STYLE_PLAIN, i == 2 ? STR("here") : STR("x"));
    area_cursor(&area, 2);
    area_cut(&area, 3);
    assert_str(area_row(&area, area.cursor_row), STR("here"));
    area_done(&area);
}

/* Of a text that is much longer than the area, the rows around the cursor are there. */
static void long_texts(void **state)
{
    (void)state;
    enum { LINES = 30000 };
    AUTO(area_done) struct area area;
    AUTO(buf_done) struct buf text;
    area_init(&area);
    buf_init(&text, LINES * 10);
    for (int i = 0; i < LINES; i++) buf_printf(&text, "line%05d", i);
    static const size_t places[] = {0, 5, 8999, 90000, LINES * 9 - 1, LINES * 9};
    for (size_t i = 0; i < COUNT(places); i++) {
        char expected[20];
        size_t row = places[i] / 9 < LINES ? places[i] / 9 : LINES - 1;
        area_begin(&area, 9);
        area_text(&area, STYLE_DIM, STR("above"));
        area_edited(&area, buf_str(&text), places[i]);
        snprintf(expected, sizeof expected, "line%05zu", row);
        assert_str(area_row(&area, area.cursor_row), str_c(expected));
        assert_int_equal(area.cursor_col, places[i] - row * 9);
        area_cut(&area, 20);
        assert_int_equal(area.count, 20);
        assert_str(area_row(&area, area.cursor_row), str_c(expected));
    }
}

int test_term_text(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns), cmocka_unit_test(cleaning), cmocka_unit_test(wrapping),
        cmocka_unit_test(margins), cmocka_unit_test(the_area), cmocka_unit_test(long_texts),
    };
    return cmocka_run_group_tests_name("term_text", tests, NULL, NULL);
}
