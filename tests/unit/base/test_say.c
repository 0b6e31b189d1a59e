/* SPDX-License-Identifier: Apache-2.0 */
#include "base/say.h"

#include <string.h>

#include "check.h"

static void saying(void **state)
{
    (void)state;
    static const struct {
        str text;
        const char *said;
        bool plain;
    } rows[] = {
        {STR(""), "", true},
        {STR("data"), "data", true},
        {STR("数据"), "数据", true},
        {STR("a\nb\x1B[31m"), "a?b?[31m", false},
        {STR("a\0b"), "a?b", false},
        {STR("\x7F"), "?", false},
        {STR("\xC2\x9B"), "??", false},
        {STR("\xC2\xA0"), "\xC2\xA0", true},
        {STR("a\xE2\x80\xA8"), "a???", false},
        {STR("\xE6\x95"), "??", false},
        {STR("\xED\xA0\x80"), "???", false},
        {STR("\xFF"), "?", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_string_equal(say(rows[i].text).text, rows[i].said);
        assert_int_equal(say_plain(rows[i].text), rows[i].plain);
    }
}

static void cutting(void **state)
{
    (void)state;
    char text[100];
    memset(text, 'x', sizeof text);
    assert_int_equal(strlen(say((str){text, 64}).text), 64);
    assert_int_equal(strlen(say((str){text, 65}).text), 67);
    assert_string_equal(say((str){text, 65}).text + 64, "...");

    memcpy(text + 63, "\xE6\x95\xB0", 3); /* would be cut in the middle */
    assert_string_equal(say((str){text, 100}).text + 62, "x...");
}

static void nearest(void **state)
{
    (void)state;
    static const char *const known[] = {"listen", "limits.body", "log"};
    static const struct {
        const char *unknown, *expected;
    } rows[] = {
        {"lisen", "listen"}, {"listen_", "listen"}, {"limit.body", "limits.body"},
        {"lgo", "log"},      {"x", NULL},           {"entirely-different", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct nearest n;
        nearest_init(&n, str_c(rows[i].unknown));
        for (size_t k = 0; k < COUNT(known); k++) nearest_offer(&n, str_c(known[k]), known[k]);
        const char *name = nearest_name(&n);
        assert_str(str_c(name), str_c(rows[i].expected));
        assert_int_equal(name != NULL, rows[i].expected != NULL);
        assert_int_equal(strstr(say_nearest(&n, "see help").text, "see help") != NULL, !name);
    }
    struct nearest none;
    nearest_init(&none, STR("x"));
    assert_null(nearest_name(&none));
}

int test_say(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saying),
        cmocka_unit_test(cutting),
        cmocka_unit_test(nearest),
    };
    return cmocka_run_group_tests_name("app/say", tests, NULL, NULL);
}
