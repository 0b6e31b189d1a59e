/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

static void born_empty(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 10);
    buf_append(&b, STR_EMPTY);
    buf_append(&b, (str){NULL, 0});
    assert_null(b.p);
    assert_false(b.full);
    buf_done(&b);
    buf_done(&b); /* twice is fine */
    assert_int_equal(b.max, 10);
}

/* Appends of `first` and `second` bytes to a buf of `max`. */
static void maximum(void **state)
{
    (void)state;
    static const struct {
        size_t max, first, second, len;
        bool full;
    } rows[] = {
        {0, 0, 0, 0, false},
        {0, 1, 0, 0, true},
        {1, 1, 0, 1, false},
        {1, 1, 1, 1, true},
        {300, 256, 44, 300, false},
        {300, 256, 45, 256, true},
        {300, 301, 1, 0, true}, /* a small one after a refusal would leave a gap: refused too */
        {257, 257, 0, 257, false},
        {100000, 1, 99999, 100000, false},
        {100000, 99999, 2, 99999, true},
    };
    static char bytes[100000];
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf b;
        buf_init(&b, rows[i].max);
        buf_append(&b, (str){bytes, rows[i].first});
        buf_append(&b, (str){bytes, rows[i].second});
        assert_int_equal(b.len, rows[i].len);
        assert_int_equal(b.full, rows[i].full);
        assert_true(b.cap <= b.max);
        buf_clear(&b);
        assert_false(b.full);
        assert_int_equal(b.len, 0);
    }
}

static void growing(void **state)
{
    (void)state;
    AUTO(buf_done) struct buf b;
    buf_init(&b, SIZE_MAX);
    for (unsigned i = 0; i < 5000; i++) buf_char(&b, (char)('a' + i % 26));
    assert_int_equal(b.len, 5000);
    assert_true(b.cap >= 5000 && b.cap < 10000);
    for (unsigned i = 0; i < 5000; i++) assert_int_equal(b.p[i], 'a' + i % 26);
    assert_null(buf_room(&b, SIZE_MAX)); /* the sum does not wrap */
    assert_true(b.full);
}

static void numbers(void **state)
{
    (void)state;
    static const struct {
        uint64_t value;
        const char *text;
    } rows[] = {{0, "0"}, {9, "9"}, {10, "10"}, {UINT64_MAX, "18446744073709551615"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf b;
        buf_init(&b, 20);
        buf_u64(&b, rows[i].value);
        assert_str(buf_str(&b), str_c(rows[i].text));
    }
}

/* Around the size of the buffer on the stack. */
static void formatting(void **state)
{
    (void)state;
    static const int lens[] = {0, 1, 254, 255, 256, 257, 1000};
    for (size_t i = 0; i < COUNT(lens); i++) {
        AUTO(buf_done) struct buf b;
        buf_init(&b, 1000);
        buf_printf(&b, "%*s", lens[i], "");
        assert_int_equal(b.len, lens[i]);
        assert_false(b.full);
        for (int j = 0; j < lens[i]; j++) assert_int_equal(b.p[j], ' ');
    }
    AUTO(buf_done) struct buf b;
    buf_init(&b, 1000);
    buf_printf(&b, "%*s", 1001, "");
    assert_true(b.full);
    assert_int_equal(b.len, 0);
}

static void room(void **state)
{
    (void)state;
    AUTO(buf_done) struct buf b;
    buf_init(&b, 8);
    char *p = buf_room(&b, 8);
    assert_non_null(p);
    memcpy(p, "abc", 3);
    buf_added(&b, 3);
    assert_str(buf_str(&b), STR("abc"));
    assert_null(buf_room(&b, 6));
    assert_true(b.full);
}

static void dropping(void **state)
{
    (void)state;
    static const struct {
        size_t count;
        str left;
    } rows[] = {{0, STR("abcdef")}, {1, STR("bcdef")}, {5, STR("f")}, {6, STR("")}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf b;
        buf_init(&b, 6);
        buf_append(&b, STR("abcdef"));
        buf_drop(&b, rows[i].count);
        assert_str(buf_str(&b), rows[i].left);
        buf_append(&b, (str){"uvwxyz", rows[i].count}); /* the room is free again */
        assert_false(b.full);
    }
}

static void taking(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 16);
    buf_append(&b, STR("mine"));
    size_t len = 0;
    char *p = buf_take(&b, &len);
    assert_str(((str){p, len}), STR("mine"));
    free(p);
    assert_null(b.p);
    assert_int_equal(b.max, 16);

    buf_append(&b, STR("gone"));
    buf_clear(&b);
    assert_null(buf_take(&b, &len)); /* empty, although it held memory */
    assert_int_equal(len, 0);
    assert_null(buf_take(&b, &len));
}

int test_buf(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(born_empty), cmocka_unit_test(maximum),    cmocka_unit_test(growing),
        cmocka_unit_test(numbers),    cmocka_unit_test(formatting), cmocka_unit_test(room),
        cmocka_unit_test(dropping),   cmocka_unit_test(taking),
    };
    return cmocka_run_group_tests_name("base/buf", tests, NULL, NULL);
}
