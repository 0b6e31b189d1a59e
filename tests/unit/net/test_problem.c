/* SPDX-License-Identifier: Apache-2.0
 *
 * Problem documents, above all with texts that a client had a hand in.
 */
#include "net/problem.h"

#include <string.h>

#include "check.h"

#define DOCUMENT(detail, field)                                                         \
    "{\"type\":\"urn:fermata:error:not_found\",\"title\":\"Not found\",\"status\":404," \
    "\"detail\":\"" detail "\",\"code\":\"not_found\"" field "}"

static void documents(void **state)
{
    (void)state;
    static const struct {
        const char *text, *field; /* text NULL: no fault at all */
        const char *expected;
    } rows[] = {
        {NULL, "", DOCUMENT("Not found", "")},
        {"", "", DOCUMENT("Not found", "")},
        {"no thread", "", DOCUMENT("no thread", "")},
        {"", "a.b", DOCUMENT("Not found", ",\"field\":\"a.b\"")},
        {"a \"quoted\" \\ word\n", "", DOCUMENT("a \\\"quoted\\\" \\\\ word\\n", "")},
        {"h\xc3\xa9", "", DOCUMENT("h\xc3\xa9", "")},
        {"cut h\xc3", "", DOCUMENT("cut h", "")},
        {"cut \xf0\x9f\x99", "", DOCUMENT("cut ", "")},
        {"\xff in \xc3\xa9 front", "", DOCUMENT("? in ?? front", "")},
        {"x", "\xff.f", DOCUMENT("x", ",\"field\":\"?.f\"")},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fault why = {.err = ERR_NOT_FOUND};
        memcpy(why.text, rows[i].text ? rows[i].text : "", rows[i].text ? strlen(rows[i].text) : 0);
        memcpy(why.field, rows[i].field, strlen(rows[i].field));
        struct buf out;
        buf_init(&out, 4096);
        problem_write(&out, ERR_NOT_FOUND, rows[i].text ? &why : NULL);
        assert_str(buf_str(&out), str_c(rows[i].expected));
        buf_done(&out);
    }
}

/* A text as long as a fault holds, cut in the middle of a character, and one of bytes that are
 * none. */
static void longest_texts(void **state)
{
    (void)state;
    static const char *const fills[] = {"\xe2\x82\xac", "\xff"};
    for (size_t i = 0; i < COUNT(fills); i++) {
        struct fault why = {.err = ERR_NOT_FOUND};
        for (size_t n = 0; n < sizeof why.text - 1; n++)
            why.text[n] = fills[i][n % strlen(fills[i])];
        for (size_t n = 0; n < sizeof why.field - 1; n++)
            why.field[n] = fills[i][n % strlen(fills[i])];
        struct buf out;
        buf_init(&out, 4096);
        problem_write(&out, ERR_NOT_FOUND, &why);
        assert_false(out.full);
        assert_true(str_find(buf_str(&out), i ? STR("\"detail\":\"????") : STR("\xe2\x82\xac\"")) >
                    0);
        assert_true(str_ends(buf_str(&out), i ? STR("??\"}") : STR("\xe2\x82\xac\"}")));
        buf_done(&out);
    }
}

static void with_a_member(void **state)
{
    (void)state;
    struct fault why = {.err = ERR_AMBIGUOUS, .text = "which one?"};
    struct buf out, plain;
    buf_init(&out, 4096);
    buf_init(&plain, 4096);
    problem_write_with(&out, ERR_AMBIGUOUS, &why, STR("interactions"), STR("[{\"a\":1}]"));
    assert_true(
        str_ends(buf_str(&out), STR("\"code\":\"ambiguous\",\"interactions\":[{\"a\":1}]}")));
    buf_clear(&out);
    problem_write_with(&out, ERR_AMBIGUOUS, &why, STR_EMPTY, STR("ignored"));
    problem_write(&plain, ERR_AMBIGUOUS, &why);
    assert_str(buf_str(&out), buf_str(&plain));
    buf_done(&plain);
    buf_done(&out);
}

int test_problem(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents),
        cmocka_unit_test(longest_texts),
        cmocka_unit_test(with_a_member),
    };
    return cmocka_run_group_tests_name("problem", tests, NULL, NULL);
}
