/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include "check.h"

static void numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err expected;
        uint64_t value;
    } rows[] = {
        {"0", OK, 0},
        {"010", OK, 10},
        {"18446744073709551615", OK, UINT64_MAX},
        {"18446744073709551616", ERR_TOO_LARGE, 0},
        {"", ERR_INVALID_FIELD, 0},
        {"+5", ERR_INVALID_FIELD, 0},
        {"5 ", ERR_INVALID_FIELD, 0},
        {"0x5", ERR_INVALID_FIELD, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t value = 77;
        assert_int_equal(str_to_u64(str_c(rows[i].text), &value), rows[i].expected);
        assert_int_equal(value, rows[i].expected ? 77 : rows[i].value);
    }
}

static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err expected;
        uint64_t bytes;
    } rows[] = {
        {"512", OK, 512},
        {"64KiB", OK, 65536},
        {"16 MiB", OK, 16777216},
        {"2GiB", OK, 2147483648},
        {"16MB", ERR_INVALID_FIELD, 0},
        {"KiB", ERR_INVALID_FIELD, 0},
        {"16777216TiB", ERR_TOO_LARGE, 0},
        {"16777215TiB", OK, 18446742974197923840U},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t bytes = 77;
        assert_int_equal(str_to_bytes(str_c(rows[i].text), &bytes), rows[i].expected);
        assert_int_equal(bytes, rows[i].expected ? 77 : rows[i].bytes);
    }
}

static void splitting(void **state)
{
    (void)state;
    str rest = STR("a,,b");
    assert_str(str_split(&rest, ','), STR("a"));
    assert_str(str_split(&rest, ','), STR(""));
    assert_str(str_split(&rest, ','), STR("b"));
    assert_null(rest.p);

    rest = STR("a,");
    assert_str(str_split(&rest, ','), STR("a"));
    assert_non_null(rest.p);
    assert_str(str_split(&rest, ','), STR(""));
    assert_null(rest.p);
}

static void comparing(void **state)
{
    (void)state;
    assert_true(str_eq_nocase(STR("Host"), STR("hOST")));
    assert_false(str_eq_nocase(STR("Host"), STR("Hos")));
    assert_true(str_cmp(STR("a"), STR("ab")) < 0);
    assert_true(str_cmp(STR("b"), STR("ab")) > 0);
    assert_int_equal(str_cmp(STR_EMPTY, (str){NULL, 0}), 0);
    assert_true(str_starts(STR("abc"), STR("ab")));
    assert_true(str_ends(STR("abc"), STR("bc")));
    assert_false(str_ends(STR("c"), STR("bc")));
    assert_str(str_trim(STR(" \t a b\t")), STR("a b"));
    assert_int_equal(str_find(STR("abcabc"), STR("ca")), 2);
    assert_int_equal(str_find(STR("abc"), STR("x")), -1);
    assert_true(str_eq_secret(STR("abc"), STR("abc")));
    assert_false(str_eq_secret(STR("abc"), STR("abd")));
    assert_false(str_eq_secret(STR("abc"), STR("ab")));
}

static void distances(void **state)
{
    (void)state;
    assert_int_equal(str_distance(STR("listen"), STR("listen")), 0);
    assert_int_equal(str_distance(STR("lisen"), STR("listen")), 1);
    assert_int_equal(str_distance(STR("kitten"), STR("sitting")), 3);
    assert_int_equal(str_distance(STR(""), STR("abc")), 3);
}

static void tokens(void **state)
{
    (void)state;
    assert_true(str_is_token(STR("X-Request-Id")));
    assert_true(str_is_token(STR("!#$%&'*+-.^_`|~09azAZ")));
    assert_false(str_is_token(STR_EMPTY));
    assert_false(str_is_token(STR("a b")));
    assert_false(str_is_token(STR("a:")));
    assert_false(str_is_token(STR("a\0")));
    assert_false(str_is_token(STR("\xc3\xa9")));
    assert_true(str_is_field_value(STR_EMPTY));
    assert_true(str_is_field_value(STR("a\tb \xc3\xa9")));
    assert_false(str_is_field_value(STR("a\r\nb")));
    assert_false(str_is_field_value(STR("\x7f")));
    assert_int_equal(char_hex('9'), 9);
    assert_int_equal(char_hex('a'), 10);
    assert_int_equal(char_hex('F'), 15);
    assert_int_equal(char_hex('g'), -1);
}

int test_str(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),   cmocka_unit_test(sizes),     cmocka_unit_test(splitting),
        cmocka_unit_test(comparing), cmocka_unit_test(distances), cmocka_unit_test(tokens),
    };
    return cmocka_run_group_tests_name("base/str", tests, NULL, NULL);
}
