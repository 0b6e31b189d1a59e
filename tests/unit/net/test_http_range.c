/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_range.h"

#include "check.h"

#define MAX "18446744073709551615" /* UINT64_MAX */

static void ranges(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        uint64_t size;
        enum range range;
        uint64_t from, len;
    } rows[] = {
        /* both ends */
        {"bytes=0-0", 10, RANGE_PART, 0, 1},
        {"bytes=0-9", 10, RANGE_PART, 0, 10},
        {"bytes=0-10", 10, RANGE_PART, 0, 10},
        {"bytes=3-5", 10, RANGE_PART, 3, 3},
        {"bytes=9-9", 10, RANGE_PART, 9, 1},
        {"bytes=9-99999", 10, RANGE_PART, 9, 1},
        {"bytes=10-10", 10, RANGE_BAD, 0, 0},
        {"bytes=10-99", 10, RANGE_BAD, 0, 0},
        {"bytes=0-0", 1, RANGE_PART, 0, 1},
        {"bytes=0-0", 0, RANGE_BAD, 0, 0},
        {"bytes=003-0005", 10, RANGE_PART, 3, 3},
        {"BYTES=3-5", 10, RANGE_PART, 3, 3},
        /* open end */
        {"bytes=0-", 10, RANGE_PART, 0, 10},
        {"bytes=9-", 10, RANGE_PART, 9, 1},
        {"bytes=10-", 10, RANGE_BAD, 0, 0},
        {"bytes=0-", 0, RANGE_BAD, 0, 0},
        /* the last so many */
        {"bytes=-1", 10, RANGE_PART, 9, 1},
        {"bytes=-10", 10, RANGE_PART, 0, 10},
        {"bytes=-11", 10, RANGE_PART, 0, 10},
        {"bytes=-0", 10, RANGE_BAD, 0, 0},
        {"bytes=-0", 0, RANGE_BAD, 0, 0},
        {"bytes=-1", 0, RANGE_NONE, 0, 0},
        /* numbers at and beyond 64 bits */
        {"bytes=0-" MAX, 10, RANGE_PART, 0, 10},
        {"bytes=0-" MAX, UINT64_MAX, RANGE_PART, 0, UINT64_MAX},
        {"bytes=0-18446744073709551614", UINT64_MAX, RANGE_PART, 0, UINT64_MAX},
        {"bytes=18446744073709551614-", UINT64_MAX, RANGE_PART, UINT64_MAX - 1, 1},
        {"bytes=" MAX "-", UINT64_MAX, RANGE_BAD, 0, 0},
        {"bytes=0-18446744073709551616", 10, RANGE_PART, 0, 10},
        {"bytes=0-99999999999999999999999999999999999999999999999999999999", 10, RANGE_PART, 0, 10},
        {"bytes=18446744073709551616-", 10, RANGE_BAD, 0, 0},
        {"bytes=18446744073709551626-18446744073709551627", 10, RANGE_BAD, 0, 0},
        {"bytes=-18446744073709551616", 10, RANGE_PART, 0, 10},
        {"bytes=-" MAX, UINT64_MAX, RANGE_PART, 0, UINT64_MAX},
        {"bytes=-18446744073709551614", UINT64_MAX, RANGE_PART, 1, UINT64_MAX - 1},
        {"bytes=18446744073709551616-1", 10, RANGE_NONE, 0, 0},
        /* the wrong way round, several, other units, malformed: the whole */
        {"bytes=5-3", 10, RANGE_NONE, 0, 0},
        {"bytes=99-3", 10, RANGE_NONE, 0, 0},
        {"bytes=0-1,3-4", 10, RANGE_NONE, 0, 0},
        {"bytes=0-1,", 10, RANGE_NONE, 0, 0},
        {"bytes=,0-1", 10, RANGE_NONE, 0, 0},
        {"bytes=0-,5-", 10, RANGE_NONE, 0, 0},
        {"bytes=-1,-2", 10, RANGE_NONE, 0, 0},
        {"lines=0-1", 10, RANGE_NONE, 0, 0},
        {"byte=0-1", 10, RANGE_NONE, 0, 0},
        {"bytes 0-1", 10, RANGE_NONE, 0, 0},
        {" bytes=0-1", 10, RANGE_NONE, 0, 0},
        {"bytes=", 10, RANGE_NONE, 0, 0},
        {"bytes=-", 10, RANGE_NONE, 0, 0},
        {"bytes=--1", 10, RANGE_NONE, 0, 0},
        {"bytes=1", 10, RANGE_NONE, 0, 0},
        {"bytes=1-2-3", 10, RANGE_NONE, 0, 0},
        {"bytes=+1-2", 10, RANGE_NONE, 0, 0},
        {"bytes=1- 2", 10, RANGE_NONE, 0, 0},
        {"bytes=0x1-2", 10, RANGE_NONE, 0, 0},
        {"bytes=a-", 10, RANGE_NONE, 0, 0},
        {"bytes=-a", 10, RANGE_NONE, 0, 0},
        {"bytes==0-1", 10, RANGE_NONE, 0, 0},
        {"bytes", 10, RANGE_NONE, 0, 0},
        {"=0-1", 10, RANGE_NONE, 0, 0},
        {"", 10, RANGE_NONE, 0, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t from = 77, len = 77; /* untouched unless there is a stretch */
        enum range range = http_range(str_c(rows[i].value), rows[i].size, &from, &len);
        bool part = rows[i].range == RANGE_PART;
        if (range != rows[i].range || from != (part ? rows[i].from : 77) ||
            len != (part ? rows[i].len : 77))
            fail_msg("\"%s\" of %llu: got %d, %llu, %llu", rows[i].value,
                     (unsigned long long)rows[i].size, range, (unsigned long long)from,
                     (unsigned long long)len);
    }
    uint64_t from, len;
    assert_int_equal(http_range((str){NULL, 0}, 10, &from, &len), RANGE_NONE);
}

int test_http_range(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranges)};
    return cmocka_run_group_tests_name("http_range", tests, NULL, NULL);
}
