/* SPDX-License-Identifier: Apache-2.0
 *
 * For unit tests: cmocka with what it needs before it. A test file
 * tests/unit/<folder>/test_<file>.c ends in one function `int test_<file>(void)` that runs its
 * group; tests.def lists them all.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "base/str.h"

#define TEST_GROUP(file) int test_##file(void);
#include "tests.def"
#undef TEST_GROUP

/* Both values are printed when they differ. */
#define assert_str(actual, expected)                                                           \
    do {                                                                                       \
        str actual_ = (actual), expected_ = (expected);                                        \
        if (!str_eq(actual_, expected_))                                                       \
            fail_msg("got \"%.*s\", expected \"%.*s\"", STR_ARG(actual_), STR_ARG(expected_)); \
    } while (0)

#endif
