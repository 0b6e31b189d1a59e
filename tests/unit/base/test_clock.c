/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "check.h"

static void dates(void **state)
{
    (void)state;
    static const struct {
        msec wall;
        const char *rfc3339, *http;
    } rows[] = {
        {0, "1970-01-01T00:00:00.000Z", "Thu, 01 Jan 1970 00:00:00 GMT"},
        {1, "1970-01-01T00:00:00.001Z", "Thu, 01 Jan 1970 00:00:00 GMT"},
        {1794721970123, "2026-11-15T05:52:50.123Z", "Sun, 15 Nov 2026 05:52:50 GMT"},
        {2147483648000, "2038-01-19T03:14:08.000Z", "Tue, 19 Jan 2038 03:14:08 GMT"},
        /* Leap years: every fourth, but of the hundreds only every fourth. */
        {951868799999, "2000-02-29T23:59:59.999Z", "Tue, 29 Feb 2000 23:59:59 GMT"},
        {1709164800000, "2024-02-29T00:00:00.000Z", "Thu, 29 Feb 2024 00:00:00 GMT"},
        {1735689599000, "2024-12-31T23:59:59.000Z", "Tue, 31 Dec 2024 23:59:59 GMT"},
        {4107542399000, "2100-02-28T23:59:59.000Z", "Sun, 28 Feb 2100 23:59:59 GMT"},
        {4107542400000, "2100-03-01T00:00:00.000Z", "Mon, 01 Mar 2100 00:00:00 GMT"},
        /* Before 1970 the milliseconds still count forwards. */
        {-1, "1969-12-31T23:59:59.999Z", "Wed, 31 Dec 1969 23:59:59 GMT"},
        {-1000, "1969-12-31T23:59:59.000Z", "Wed, 31 Dec 1969 23:59:59 GMT"},
        {-1001, "1969-12-31T23:59:58.999Z", "Wed, 31 Dec 1969 23:59:58 GMT"},
        {-2203891200000, "1900-03-01T00:00:00.000Z", "Thu, 01 Mar 1900 00:00:00 GMT"},
        /* Years beyond four digits are held at the ends. */
        {-62167219200000, "0000-01-01T00:00:00.000Z", "Sat, 01 Jan 0000 00:00:00 GMT"},
        {-62167219200001, "0000-01-01T00:00:00.000Z", "Sat, 01 Jan 0000 00:00:00 GMT"},
        {INT64_MIN, "0000-01-01T00:00:00.000Z", "Sat, 01 Jan 0000 00:00:00 GMT"},
        {253402300799999, "9999-12-31T23:59:59.999Z", "Fri, 31 Dec 9999 23:59:59 GMT"},
        {253402300800000, "9999-12-31T23:59:59.999Z", "Fri, 31 Dec 9999 23:59:59 GMT"},
        {INT64_MAX, "9999-12-31T23:59:59.999Z", "Fri, 31 Dec 9999 23:59:59 GMT"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char rfc3339[RFC3339_BYTES], http[HTTP_DATE_BYTES];
        clock_rfc3339(rows[i].wall, rfc3339);
        clock_http_date(rows[i].wall, http);
        assert_string_equal(rfc3339, rows[i].rfc3339);
        assert_string_equal(http, rows[i].http);
    }
}

static msec add_wall(void *ctx)
{
    return *(msec *)ctx + 1;
}

static msec add_steady(void *ctx)
{
    return *(msec *)ctx + 2;
}

static void replaced(void **state)
{
    (void)state;
    msec now = 40;
    const struct clock fake = {.wall = add_wall, .steady = add_steady, .ctx = &now};
    assert_int_equal(clock_wall(&fake), 41);
    assert_int_equal(clock_steady(&fake), 42);
}

static void system_clock(void **state)
{
    (void)state;
    assert_true(clock_wall(&clock_system) > 1767225600000); /* 2026 */
    msec before = clock_steady(&clock_system);
    for (int i = 0; i < 1000; i++) {
        msec now = clock_steady(&clock_system);
        assert_true(now >= before);
        before = now;
    }
}

int test_clock(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates),
        cmocka_unit_test(replaced),
        cmocka_unit_test(system_clock),
    };
    return cmocka_run_group_tests_name("base/clock", tests, NULL, NULL);
}
