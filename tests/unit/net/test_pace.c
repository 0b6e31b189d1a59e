/* SPDX-License-Identifier: Apache-2.0 */
#include "net/pace.h"

#include "check.h"

enum { SPAN = 600, RATE = 1000, NEEDED = RATE * SPAN / 1000 };

/* Count `bytes` at each of these times, and return the first at which the verdict is "slow". */
static msec first_slow(struct pace *pace, msec from, msec step, msec end, uint64_t bytes)
{
    for (msec now = from; now <= end; now += step) {
        pace_count(pace, now, SPAN, bytes);
        if (pace_slow(pace, SPAN, RATE)) return now;
    }
    return -1;
}

static void edges(void **state)
{
    (void)state;
    struct pace pace;
    pace_begin(&pace, 1000);
    assert_false(pace_slow(&pace, SPAN, RATE));
    pace_count(&pace, 1000 + SPAN - 1, SPAN, 0);
    assert_false(pace_slow(&pace, SPAN, RATE)); /* not so long ago */
    pace_count(&pace, 1000 + SPAN, SPAN, NEEDED - 1);
    assert_true(pace_slow(&pace, SPAN, RATE));
    pace_count(&pace, 1000 + SPAN, SPAN, 1);
    assert_false(pace_slow(&pace, SPAN, RATE));
    pace_count(&pace, 1000 + 100 * SPAN, SPAN, 0); /* long ago */
    assert_true(pace_slow(&pace, SPAN, RATE));
}

/* What came at first buys no more than the window. */
static void nothing_is_bought(void **state)
{
    (void)state;
    struct pace pace;
    pace_begin(&pace, 0);
    pace_count(&pace, 0, SPAN, UINT64_MAX);
    pace_count(&pace, 1, SPAN, UINT64_MAX); /* as much as can be counted */
    msec slow = first_slow(&pace, 10, 10, 100 * SPAN, 1);
    assert_in_range(slow, SPAN, SPAN + SPAN / PACE_PARTS);
}

static void steady(void **state)
{
    (void)state;
    struct pace pace;
    pace_begin(&pace, 0);
    assert_int_equal(first_slow(&pace, 10, 10, 100 * SPAN, 10 * RATE / 1000), -1);
    pace_begin(&pace, 0);
    assert_in_range(first_slow(&pace, 10, 10, 100 * SPAN, 10 * RATE / 1000 - 3), SPAN, 2 * SPAN);
    pace_begin(&pace, 0); /* all of it once in a window */
    assert_int_equal(first_slow(&pace, SPAN, SPAN, 100 * SPAN, NEEDED), -1);
}

/* Time in which nothing could come does not count. */
static void skipped(void **state)
{
    (void)state;
    struct pace pace;
    pace_begin(&pace, 0);
    pace_count(&pace, 10, SPAN, 1);
    pace_skip(&pace, 50 * SPAN);
    pace_count(&pace, 51 * SPAN - 1, SPAN, 0);
    assert_false(pace_slow(&pace, SPAN, RATE));
    pace_count(&pace, 51 * SPAN, SPAN, 0);
    assert_true(pace_slow(&pace, SPAN, RATE));
}

int test_pace(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges),
        cmocka_unit_test(nothing_is_bought),
        cmocka_unit_test(steady),
        cmocka_unit_test(skipped),
    };
    return cmocka_run_group_tests_name("net/pace", tests, NULL, NULL);
}
