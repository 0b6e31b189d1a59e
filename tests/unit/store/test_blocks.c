/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db/blocks.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"

/* Around every step, the largest that is kept, and far behind it. */
static void sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = {1,
                                   7,
                                   63,
                                   64,
                                   65,
                                   1000,
                                   STORE_BLOCK_BYTES_MAX - 1,
                                   STORE_BLOCK_BYTES_MAX,
                                   STORE_BLOCK_BYTES_MAX + 1,
                                   100 * 1000};
    for (int round = 0; round < 2; round++) {
        char *blocks[COUNT(sizes)];
        for (size_t i = 0; i < COUNT(sizes); i++) {
            blocks[i] = block_new(sizes[i]);
            assert_non_null(blocks[i]);
            assert_int_equal((uintptr_t)blocks[i] % 8, 0);
            assert_true(block_bytes(blocks[i]) >= sizes[i]);
            assert_int_equal(block_bytes(blocks[i]), block_rounded(sizes[i]));
            memset(blocks[i], (int)i, block_bytes(blocks[i]));
        }
        for (size_t i = 0; i < COUNT(sizes); i++) {
            assert_int_equal(blocks[i][0], i);
            assert_int_equal(blocks[i][block_bytes(blocks[i]) - 1], i);
            block_free(blocks[i]);
        }
    }
    block_free(NULL);
}

/* What was given back comes again, to whoever asks for that size. */
static void again(void **state)
{
    (void)state;
    char *first = block_new(100), *other = block_new(300);
    block_free(first);
    char *second = block_new(128);
    assert_ptr_equal(second, first);
    char *third = block_new(128);
    assert_ptr_not_equal(third, first);
    block_free(second);
    block_free(third);
    block_free(other);
}

static void resized(void **state)
{
    (void)state;
    static const size_t sizes[] = {10, 60, 70, 5000, 50 * 1000, 90 * 1000, 7000, 300, 1};
    char *p = block_new(sizes[0]);
    memset(p, 1, sizes[0]);
    for (size_t i = 1; i < COUNT(sizes); i++) {
        p = block_resize(p, sizes[i]);
        assert_non_null(p);
        assert_true(block_bytes(p) >= sizes[i]);
        size_t kept = sizes[i] < sizes[i - 1] ? sizes[i] : sizes[i - 1];
        for (size_t at = 0; at < kept; at++) assert_int_equal(p[at], i);
        memset(p, (int)i + 1, sizes[i]);
    }
    block_free(p);
}

enum { MANY = 2 * STORE_BLOCKS_KIB };

static void *give_back(void *arg)
{
    char **blocks = arg;
    for (size_t i = 0; i < MANY; i++) block_free(blocks[i]);
    for (size_t i = 0; i < MANY; i++) blocks[i] = block_new(1000);
    block_free(block_new(1000));
    return NULL;
}

/* More than a thread keeps, given back by another one, which ends; the leak checker sees to the rest. */
static void threads(void **state)
{
    (void)state;
    static char *blocks[MANY];
    for (size_t i = 0; i < MANY; i++) blocks[i] = block_new(1000);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, give_back, blocks), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (size_t i = 0; i < MANY; i++) memset(blocks[i], 1, 1000);
    for (size_t i = 0; i < MANY; i++) block_free(blocks[i]);
}

int test_blocks(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(again),
        cmocka_unit_test(resized),
        cmocka_unit_test(threads),
    };
    return cmocka_run_group_tests_name("store/blocks", tests, NULL, NULL);
}
