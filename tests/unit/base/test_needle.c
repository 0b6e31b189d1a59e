/* SPDX-License-Identifier: Apache-2.0
 *
 * Folding and finding. The slow way to look for a text, letter by letter, says what is right.
 */
#include "base/needle.h"

#include <stdlib.h>
#include <string.h>

#include "base/fold.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "check.h"

static void characters(void **state)
{
    (void)state;
    static const struct {
        uint32_t from, to;
    } rows[] = {
        {'a', 'a'},           {'A', 'a'},       {'Z', 'z'},       {'[', '['},
        {'@', '@'},           {0xc0, 0xe0},     {0xd7, 0xd7},     {0xde, 0xfe},
        {0xdf, 0xdf},         {0x130, 0x130},   {0x178, 0xff},    {0x17f, 's'},
        {0x23a, 0x2c65},      {0x391, 0x3b1},   {0x3c2, 0x3c3},   {0x42f, 0x44f},
        {0x401, 0x451},       {0x531, 0x561},   {0x10a0, 0x2d00}, {0x1e9e, 0xdf},
        {0x212a, 'k'},        {0x2160, 0x2170}, {0x24b6, 0x24d0}, {0x4e2d, 0x4e2d},
        {0xff21, 0xff41},     {0xff3a, 0xff5a}, {0xff3b, 0xff3b}, {0x10400, 0x10428},
        {0x1f600, 0x1f600},   {0x100, 0x101},   {0x101, 0x101},   {0x12f, 0x12f},
        {0x10ffff, 0x10ffff},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (fold_char(rows[i].from) != rows[i].to)
            fail_msg("U+%04X becomes U+%04X, expected U+%04X", rows[i].from,
                     fold_char(rows[i].from), rows[i].to);
}

/* What is folded stays so; every character that has another form is known by its first byte, and
 * none of its forms is longer than FOLD_GROWTH says. */
static void whole_table(void **state)
{
    (void)state;
    for (uint32_t code = 0x80; code <= 0x10ffff; code++) {
        if (code >= 0xd800 && code < 0xe000) continue;
        char from[4], to[4];
        size_t from_len = utf8_write(code, from), read = 0;
        uint32_t folded = fold_char(code);
        assert_int_equal(fold_decode(from, from + from_len, &read), code);
        assert_int_equal(read, from_len);
        if (folded == code) continue;
        assert_int_equal(fold_char(folded), folded);
        assert_true(fold_leads[(unsigned char)from[0]]);
        assert_true(utf8_write(folded, to) <= FOLD_GROWTH * from_len);
    }
}

static void finding(void **state)
{
    (void)state;
    static const struct {
        str needle, text;
        bool expected;
    } rows[] = {
        {STR(""), STR(""), true},
        {STR(""), STR("x"), true},
        {STR("x"), STR(""), false},
        {STR("x"), STR("X"), true},
        {STR("aab"), STR("aaab"), true},
        {STR("abab"), STR("abaabab"), true},
        {STR("ababc"), STR("abababab"), false},
        {STR("会议"), STR("预订会议室"), true},
        {STR("会室"), STR("预订会议室"), false},
        {STR("ÄPFEL"), STR("drei äpfel"), true},
        {STR("äpfel"), STR("drei Äpfe"), false},
        {STR("kg"), STR("5 \u212ag"), true},
        {STR("\u023a"), STR("x\u2c65x"), true},
        {STR("ａ"), STR("Ａ"), true},
        {STR("，"), STR("你，我"), true},
        {STR("é"), STR("e"), false},
        {STR("a"), STR("\xc3"), false},    /* cut off */
        {STR("a"), STR("\xc3\x61"), true}, /* no UTF-8, and what follows it counts */
        {STR("b"), STR("\xff\xf0\x80 B"), true},
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct needle needle;
        needle_make(&needle, &arena, rows[i].needle);
        if (needle_in(&needle, rows[i].text) != rows[i].expected)
            fail_msg("\"%.*s\" in \"%.*s\": expected %d", STR_ARG(rows[i].needle),
                     STR_ARG(rows[i].text), rows[i].expected);
    }
}

static bool slowly_in(str needle, str text)
{
    for (size_t at = 0; at + needle.len <= text.len; at++)
        if (!memcmp(text.p + at, needle.p, needle.len)) return true;
    return false;
}

/* Texts of few letters, in which beginnings come again and again. */
static void as_the_slow_way(void **state)
{
    (void)state;
    unsigned seed = 7;
    for (int round = 0; round < 20 * 1000; round++) {
        char needle[12], text[64], shown[64];
        size_t needle_len = 1 + (size_t)rand_r(&seed) % sizeof needle;
        size_t text_len = (size_t)rand_r(&seed) % sizeof text;
        for (size_t i = 0; i < needle_len; i++) needle[i] = (char)('a' + rand_r(&seed) % 2);
        for (size_t i = 0; i < text_len; i++) {
            text[i] = (char)('a' + rand_r(&seed) % 2);
            shown[i] = rand_r(&seed) % 2 ? text[i] : (char)(text[i] - 'a' + 'A');
        }
        AUTO(arena_done) struct arena arena;
        struct needle made;
        arena_init(&arena);
        needle_make(&made, &arena, (str){needle, needle_len});
        bool expected = slowly_in((str){needle, needle_len}, (str){text, text_len});
        if (needle_in(&made, (str){shown, text_len}) != expected)
            fail_msg("%.*s in %.*s", (int)needle_len, needle, (int)text_len, shown);
    }
}

static void longest(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    char needle[NEEDLE_BYTES_MAX], text[2 * NEEDLE_BYTES_MAX];
    struct needle made;
    arena_init(&arena);
    for (size_t i = 0; i < sizeof needle; i += 2) memcpy(needle + i, "\u023a", 2); /* it grows */
    needle_make(&made, &arena, (str){needle, sizeof needle});
    assert_int_equal(made.len, sizeof needle / 2 * 3);
    assert_true(needle_in(&made, (str){needle, sizeof needle}));
    assert_false(needle_in(&made, (str){needle, sizeof needle - 2}));
    memset(text, 'a', sizeof text);
    memset(needle, 'a', sizeof needle);
    needle[sizeof needle - 1] = 'b';
    needle_make(&made, &arena, (str){needle, sizeof needle});
    assert_false(needle_in(&made, (str){text, sizeof text}));
    text[sizeof text - 1] = 'B';
    assert_true(needle_in(&made, (str){text, sizeof text}));
}

int test_needle(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters),      cmocka_unit_test(whole_table), cmocka_unit_test(finding),
        cmocka_unit_test(as_the_slow_way), cmocka_unit_test(longest),
    };
    return cmocka_run_group_tests_name("base/needle", tests, NULL, NULL);
}
