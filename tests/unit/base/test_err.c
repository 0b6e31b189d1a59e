/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <string.h>

#include "base/utf8.h"
#include "check.h"

static void table(void **state)
{
    (void)state;
    static const struct {
        enum err err;
        int status;
        const char *code;
    } rows[] = {
        {OK, 200, "ok"},
        {ERR_BAD_REQUEST, 400, "bad_request"},
        {ERR_TOO_LARGE, 413, "too_large"},
        {ERR_STORAGE_FULL, 507, "storage_full"},
        {ERR_CANCELLED, 500, "cancelled"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(err_status(rows[i].err), rows[i].status);
        assert_string_equal(err_code(rows[i].err), rows[i].code);
    }
}

/* A code names one error, is lower-case words, and comes with a status that can be sent. */
static void every_row(void **state)
{
    (void)state;
    for (int e = OK; e < ERR_COUNT; e++) {
        str code = str_c(err_code((enum err)e));
        assert_true(code.len > 0);
        assert_int_equal(strspn(code.p, "abcdefghijklmnopqrstuvwxyz_"), code.len);
        assert_true(strlen(err_title((enum err)e)) > 0);
        assert_in_range(err_status((enum err)e), e == OK ? 200 : 400, 599);
        for (int other = OK; other < e; other++)
            assert_string_not_equal(err_code((enum err)other), code.p);
    }
}

static void faults(void **state)
{
    (void)state;
    assert_int_equal(fault(NULL, ERR_BUSY, "nobody reads %d", 1), ERR_BUSY);

    struct fault f;
    assert_int_equal(fault_field(&f, ERR_INVALID_FIELD, "limits.body", "%d over", 3),
                     ERR_INVALID_FIELD);
    assert_int_equal(f.err, ERR_INVALID_FIELD);
    assert_string_equal(f.field, "limits.body");
    assert_string_equal(f.text, "3 over");

    assert_int_equal(fault(&f, ERR_IO, "gone"), ERR_IO);
    assert_string_equal(f.field, ""); /* the old one does not stay */
    assert_string_equal(f.text, "gone");
}

/* A text longer than its room is cut between characters: `pad` bytes, then the character. */
static void cutting(void **state)
{
    (void)state;
    enum { ROOM = sizeof((struct fault){0}).text - 1 };
    static const struct {
        int pad;
        const char *tail;
        size_t expected;
    } rows[] = {
        {ROOM - 1, "x", ROOM},
        {ROOM, "x", ROOM},
        {ROOM - 2, "\u00e9", ROOM},
        {ROOM - 1, "\u00e9", ROOM - 1},
        {ROOM - 3, "\u4f1a", ROOM},
        {ROOM - 2, "\u4f1a", ROOM - 2},
        {ROOM - 1, "\u4f1a", ROOM - 1},
        {ROOM - 4, "\U0001f600", ROOM},
        {ROOM - 4, "\U0001f600x", ROOM},
        {ROOM - 3, "\U0001f600", ROOM - 3},
        {ROOM - 2, "\U0001f600", ROOM - 2},
        {ROOM - 1, "\U0001f600", ROOM - 1},
        {ROOM, "\U0001f600", ROOM},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fault f;
        assert_int_equal(fault(&f, ERR_IO, "%*s%s", rows[i].pad, "", rows[i].tail), ERR_IO);
        assert_int_equal(strlen(f.text), rows[i].expected);
        assert_true(utf8_valid(str_c(f.text)));
    }

    char field[200];
    memset(field, 'f', sizeof field);
    memcpy(field + 126, "\u4f1a", 4);
    struct fault f;
    assert_int_equal(fault_field(&f, ERR_IO, field, "x"), ERR_IO);
    assert_int_equal(strlen(f.field), 126);
}

int test_err(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),
        cmocka_unit_test(every_row),
        cmocka_unit_test(faults),
        cmocka_unit_test(cutting),
    };
    return cmocka_run_group_tests_name("base/err", tests, NULL, NULL);
}
