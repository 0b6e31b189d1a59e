/* SPDX-License-Identifier: Apache-2.0
 *
 * Hidden characters made visible: a table, and the way back for texts that a seed makes up.
 */
#include "ui/visible.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "check.h"
#include "ui/text.h"

static void marks(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown, *on_one_line; /* NULL: the same */
    } rows[] = {
        {"", "", NULL},
        {"a", "a", NULL},
        {"a b", "a b", NULL},
        {"中文，字 é", "中文，字 é", NULL},
        {"a\nb", "a\nb", "a⟦U+000A⟧b"},
        {"a\n\n  b", "a\n\n  b", "a⟦U+000A ×2⟧  b"},
        {"a\r\nb", "a⟦U+000D⟧\nb", "a⟦U+000D⟧⟦U+000A⟧b"},
        {"a\tb", "a⟦U+0009⟧b", NULL},
        {"a\x1b[2Jb", "a⟦U+001B⟧[2Jb", NULL},
        {"a\x7f", "a⟦U+007F⟧", NULL},
        {"a\xc2\x85"
         "b",
         "a⟦U+0085⟧b", NULL},
        {"a\u00a0b", "a⟦U+00A0⟧b", NULL},
        {"a\u00adb", "a⟦U+00AD⟧b", NULL},
        {"gpj.\u202Eexe", "gpj.⟦U+202E⟧exe", NULL},
        {"\u2066a\u2069", "⟦U+2066⟧a⟦U+2069⟧", NULL},
        {"a\u200e\u200fb", "a⟦U+200E⟧⟦U+200F⟧b", NULL},
        {"pay\u200bpal", "pay⟦U+200B⟧pal", NULL},
        {"a\u200d\u200d\u200db", "a⟦U+200D ×3⟧b", NULL},
        {"a\ufeff", "a⟦U+FEFF⟧", NULL},
        {"a\u2028b\u2029", "a⟦U+2028⟧b⟦U+2029⟧", NULL},
        {"a\u061cb\u3164c", "a⟦U+061C⟧b⟦U+3164⟧c", NULL},
        {"a\u2800b", "a⟦U+2800⟧b", NULL},
        {"a\u034fb", "a⟦U+034F⟧b", NULL},
        {"a\ue000b", "a⟦U+E000⟧b", NULL},
        {"a\U000e0041b", "a⟦U+E0041⟧b", NULL},
        {"a\U00013430b", "a⟦U+13430⟧b", NULL},
        {"a\U0010fffdb", "a⟦U+10FFFD⟧b", NULL},
        {"a\U0001fffeb", "a⟦U+1FFFE⟧b", NULL},
        {"\U0001f600", "\U0001f600", NULL},
        /* both ends */
        {" ", "⟦U+0020⟧", NULL},
        {"   ", "⟦U+0020 ×3⟧", NULL},
        {" a", "⟦U+0020⟧a", NULL},
        {"a ", "a⟦U+0020⟧", NULL},
        {"\n", "⟦U+000A⟧", NULL},
        {" \n a b \n", "⟦U+0020⟧⟦U+000A⟧⟦U+0020⟧a b⟦U+0020⟧⟦U+000A⟧",
         "⟦U+0020⟧⟦U+000A⟧ a b ⟦U+000A⟧"},
        {"\u3000a\u3000b\u3000", "⟦U+3000⟧a\u3000b⟦U+3000⟧", NULL},
        {" \u200b ", "⟦U+0020⟧⟦U+200B⟧⟦U+0020⟧", NULL},
        /* rows that push the rest out of sight */
        {"a                                b", "a                                b", NULL},
        {"a                                 b", "a⟦U+0020 ×33⟧b", NULL},
        {"a\n\n\n\nb", "a\n\n\n\nb", "a⟦U+000A ×4⟧b"},
        {"a\n\n\n\n\nb", "a⟦U+000A ×5⟧b", NULL},
        {"a\n \n \n \nb", "a\n \n \n \nb", "a⟦U+000A⟧ ⟦U+000A⟧ ⟦U+000A⟧ ⟦U+000A⟧b"},
        {"a\n \n \n \n \nb", "a⟦U+000A⟧ ⟦U+000A⟧ ⟦U+000A⟧ ⟦U+000A⟧ ⟦U+000A⟧b", NULL},
        {"a                \u3000                b", "a⟦U+0020 ×16⟧⟦U+3000⟧⟦U+0020 ×16⟧b", NULL},
        {"a                \n                 b\u3000c", "a⟦U+0020 ×16⟧\n⟦U+0020 ×17⟧b\u3000c",
         "a                ⟦U+000A⟧                 b\u3000c"},
        /* the marks themselves */
        {"⟦U+202E⟧", "⟦U+27E6⟧U+202E⟦U+27E7⟧", NULL},
        {"a ⟦empty text⟧", "a ⟦U+27E6⟧empty text⟦U+27E7⟧", NULL},
        {"⟦⟦", "⟦U+27E6 ×2⟧", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        const char *line = rows[i].on_one_line ? rows[i].on_one_line : rows[i].shown;
        assert_str(ui_visible(&arena, str_c(rows[i].text), true), str_c(rows[i].shown));
        assert_str(ui_visible(&arena, str_c(rows[i].text), false), str_c(line));
    }
}

static void nul(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    assert_str(ui_visible(&arena, STR("a\0b"), true), STR("a⟦U+0000⟧b"));
    assert_str(ui_visible(&arena, STR("\0\0"), true), STR("⟦U+0000 ×2⟧"));
}

static void borrows(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    static const char *const texts[] = {"plain", "two words", "中文 字", "a\nb"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        str text = str_c(texts[i]);
        assert_ptr_equal(ui_visible(&arena, text, true).p, text.p);
    }
}

/* ---- the way back ---- */

static const str open_mark = STR("⟦U+"), close_mark = STR("⟧"), times = STR(" ×");

/* What the marks stand for, written anew. */
static void read_back(struct buf *out, str shown)
{
    while (shown.len) {
        ptrdiff_t at = str_find(shown, open_mark);
        buf_append(out, (str){shown.p, at < 0 ? shown.len : (size_t)at});
        if (at < 0) return;
        shown = str_drop(shown, (size_t)at + open_mark.len);
        ptrdiff_t end = str_find(shown, close_mark);
        assert_true(end > 0);
        char mark[64], character[4];
        assert_true((size_t)end < sizeof mark);
        memcpy(mark, shown.p, (size_t)end);
        mark[end] = '\0';
        shown = str_drop(shown, (size_t)end + close_mark.len);
        size_t bytes = utf8_write((uint32_t)strtoul(mark, NULL, 16), character);
        ptrdiff_t by = str_find(str_c(mark), times);
        unsigned long count = by < 0 ? 1 : strtoul(mark + by + times.len, NULL, 10);
        for (unsigned long i = 0; i < count; i++) buf_append(out, (str){character, bytes});
    }
}

static uint32_t random_next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static uint32_t random_char(uint32_t *seed)
{
    static const uint32_t often[] = {' ',    ' ',    '\n',   '\r',   '\t',   0,       'a',
                                     0x3000, 0x202e, 0x200b, 0x27e6, 0x27e7, 0x1f600, 0x4e2d};
    if (random_next(seed) % 4) return often[random_next(seed) % COUNT(often)];
    uint32_t code = random_next(seed) % 0x110000;
    return code >= 0xd800 && code < 0xe000 ? 'x' : code;
}

/* Nothing that is hidden is left, and the source can be read back. */
static void backwards(void **state)
{
    (void)state;
    enum { ROUNDS = 20000, CHARS_MAX = 60 };
    uint32_t seed = 20261115;
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf text, back;
    arena_init(&arena);
    buf_init(&text, CHARS_MAX * 4 * 8);
    buf_init(&back, CHARS_MAX * 4 * 8);
    for (size_t round = 0; round < ROUNDS; round++) {
        bool lines = random_next(&seed) % 2;
        buf_clear(&text);
        buf_clear(&back);
        for (size_t i = random_next(&seed) % CHARS_MAX; i; i--) {
            char character[4];
            size_t bytes = utf8_write(random_char(&seed), character);
            for (uint32_t n = random_next(&seed) % 8 ? 1 : random_next(&seed) % 8; n; n--)
                buf_append(&text, (str){character, bytes});
        }
        str shown = ui_visible(&arena, buf_str(&text), lines);
        read_back(&back, shown);
        if (!str_eq(buf_str(&back), buf_str(&text))) fail_msg("round %zu", round);
        assert_true(utf8_valid(shown) && shown.len <= 12 * text.len);
        for (str rest = shown; rest.len;) {
            uint32_t code = ui_next_char(&rest);
            if (ui_is_hidden(code) && code != ' ' && code != 0x3000 && !(lines && code == '\n'))
                fail_msg("round %zu: U+%04X", round, code);
        }
        arena_reset(&arena);
    }
}

static void json(void **state)
{
    (void)state;
    static const struct {
        const char *given, *shown;
    } rows[] = {
        {"{\"a\":\"b c\"}", "{\"a\":\"b c\"}"},
        {"\"\xe4\xb8\xad\xe3\x80\x80\xf0\x9f\x98\x80\"",
         "\"\xe4\xb8\xad\xe3\x80\x80\xf0\x9f\x98\x80\""},
        {"\"\xc2\x9b"
         "31m\xe2\x80\xae\"",
         "\"\\u009b31m\\u202e\""},
        {"\"\x7f\xe2\x80\x8b\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf\"",
         "\"\\u007f\\u200b\\u2028\\u2029\\ufeff\""},
        {"\"\xf3\xa0\x80\x81\"", "\"\\udb40\\udc01\""},
        {"{\r\n\t\"a\": 1}", "{   \"a\": 1}"},
        {"\"\x1b[2J\"", "\"\\u001b[2J\""}, /* no JSON, but no escape sequence either */
        {"\"\xff\"", ""},
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_str(ui_visible_json(&arena, str_c(rows[i].given)), str_c(rows[i].shown));
}

int test_visible(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks),     cmocka_unit_test(nul),  cmocka_unit_test(borrows),
        cmocka_unit_test(backwards), cmocka_unit_test(json),
    };
    return cmocka_run_group_tests_name("visible", tests, NULL, NULL);
}
