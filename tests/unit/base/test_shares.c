/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shares.h"

#include "check.h"

static void edges(void **state)
{
    (void)state;
    AUTO(shares_done) struct shares shares;
    shares_init(&shares, 10, 4, 100);
    assert_int_equal(shares_take(&shares, STR("ann"), 0), SHARE_GIVEN);
    assert_int_equal(shares_take(&shares, STR("ann"), 5), SHARE_OWN_USED_UP);
    assert_int_equal(shares_take(&shares, STR("ann"), 4), SHARE_GIVEN);
    assert_int_equal(shares_take(&shares, STR("ann"), 1), SHARE_OWN_USED_UP);
    assert_int_equal(shares_take(&shares, STR("ann"), UINT64_MAX), SHARE_OWN_USED_UP);
    assert_int_equal(shares_take(&shares, STR("bob"), 4), SHARE_GIVEN);
    assert_int_equal(shares_take(&shares, STR("eve"), 3), SHARE_ALL_USED_UP);
    assert_int_equal(shares_take(&shares, STR("eve"), 2), SHARE_GIVEN);
    assert_int_equal(shares.held, 10);
    shares_give(&shares, STR("ann"), 3);
    assert_int_equal(shares_held(&shares, STR("ann")), 1);
    assert_int_equal(shares_take(&shares, STR("ann"), 3), SHARE_GIVEN);
}

/* Whoever gives all back leaves nothing behind, also at the most people there may be. */
static void nothing_left(void **state)
{
    (void)state;
    AUTO(shares_done) struct shares shares;
    shares_init(&shares, 100, 2, 2);
    assert_int_equal(shares_take(&shares, STR("ann"), 2), SHARE_GIVEN);
    assert_int_equal(shares_take(&shares, STR_EMPTY, 1), SHARE_GIVEN);
    assert_int_equal(shares_take(&shares, STR("eve"), 1), SHARE_ALL_USED_UP);
    assert_int_equal(shares.held, 3);
    shares_give(&shares, STR("ann"), 1);
    shares_give(&shares, STR("ann"), 1);
    assert_int_equal(shares.by_name.count, 1);
    assert_int_equal(shares_take(&shares, STR("eve"), 1), SHARE_GIVEN);
    shares_give(&shares, STR("eve"), 1);
    shares_give(&shares, STR_EMPTY, 1);
    assert_int_equal(shares.by_name.count, 0);
    assert_int_equal(shares.held, 0);
}

/* What is counted in any case keeps the next one out until enough of it is back. */
static void beyond(void **state)
{
    (void)state;
    AUTO(shares_done) struct shares shares;
    shares_init(&shares, 10, 4, 2);
    assert_true(shares_add(&shares, STR("ann"), 0));
    assert_int_equal(shares.by_name.count, 0);
    assert_true(shares_add(&shares, STR("ann"), 9));
    assert_int_equal(shares_take(&shares, STR("ann"), 1), SHARE_OWN_USED_UP);
    assert_int_equal(shares_take(&shares, STR("bob"), 2), SHARE_ALL_USED_UP);
    assert_int_equal(shares_take(&shares, STR("bob"), 1), SHARE_GIVEN);
    assert_true(shares_add(&shares, STR("bob"), 100));
    assert_int_equal(shares_take(&shares, STR("ann"), 1), SHARE_OWN_USED_UP);
    assert_false(shares_add(&shares, STR("eve"), 1));
    assert_int_equal(shares.held, 110);
    shares_give(&shares, STR("bob"), 101);
    shares_give(&shares, STR("ann"), 6);
    assert_int_equal(shares_take(&shares, STR("ann"), 1), SHARE_GIVEN);
    assert_int_equal(shares.held, 4);
}

int test_shares(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges),
        cmocka_unit_test(nothing_left),
        cmocka_unit_test(beyond),
    };
    return cmocka_run_group_tests_name("base/shares", tests, NULL, NULL);
}
