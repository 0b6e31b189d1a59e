/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <string.h>

#include "check.h"

enum { OLD_BYTE = 0x5a };

static bool is_zero(const void *p, size_t size)
{
    const unsigned char *bytes = p;
    for (size_t i = 0; i < size; i++)
        if (bytes[i]) return false;
    return true;
}

/* Sizes around the alignment, the first block, the largest block, and beyond. */
static const size_t sizes[] = {0,    1,    15,   16,    17,    80,    1000,  4000,   4031,
                               4032, 4033, 8064, 10000, 65471, 65472, 65473, 300000, 3};

static void zeroed_aligned_and_apart(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (int round = 0; round < 3; round++) {
        unsigned char *at[COUNT(sizes)];
        for (size_t i = 0; i < COUNT(sizes); i++) {
            at[i] = arena_alloc(&arena, sizes[i]);
            assert_int_equal((uintptr_t)at[i] % _Alignof(max_align_t), 0);
            assert_true(is_zero(at[i], sizes[i]));
            memset(at[i], OLD_BYTE + (int)i, sizes[i]);
        }
        for (size_t i = 0; i < COUNT(sizes); i++)
            for (size_t j = 0; j < sizes[i]; j++) assert_int_equal(at[i][j], OLD_BYTE + i);
        arena_reset(&arena);
    }
}

static void reset_keeps_one_block(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    assert_int_equal(arena.bytes, 0);

    void *first = arena_alloc(&arena, 100);
    size_t small = arena.bytes;
    assert_true(small > 0 && small <= 4096);
    arena_reset(&arena);
    assert_int_equal(arena.bytes, small);
    assert_ptr_equal(arena_alloc(&arena, 100), first);
    assert_int_equal(arena.bytes, small);

    for (int i = 0; i < 10000; i++) arena_alloc(&arena, 100); /* and much more than one block */
    arena_alloc(&arena, 1000 * 1000);
    assert_true(arena.bytes > 2000 * 1000);
    assert_true(arena.bytes < 2200 * 1000);
    arena_reset(&arena);
    assert_int_equal(arena.bytes, small);
    assert_ptr_equal(arena_alloc(&arena, 100), first);

    arena_done(&arena);
    assert_int_equal(arena.bytes, 0);
    assert_null(arena.head);
}

/* A request too large for a block leaves the free space of the head in use. */
static void large_stays_behind(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    char *before = arena_alloc(&arena, 16);
    arena_alloc(&arena, 1000 * 1000);
    assert_ptr_equal(arena_alloc(&arena, 16), before + 16);

    arena_reset(&arena);
    assert_ptr_equal(arena_alloc(&arena, 16), before);
}

static void first_is_large(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    arena_alloc(&arena, 1000 * 1000);
    arena_reset(&arena);
    assert_int_equal(arena.bytes, 0);
    assert_true(is_zero(arena_alloc(&arena, 64), 64));
}

static void copies(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    char source[] = "text";
    str copy = arena_str(&arena, str_c(source));
    char *c = arena_cstr(&arena, (str){source, 2});
    source[0] = 'n';
    assert_str(copy, STR("text"));
    assert_string_equal(c, "te");
    assert_string_equal(arena_cstr(&arena, (str){NULL, 0}), "");
    assert_str(arena_printf(&arena, "%d-%s", 7, "x"), STR("7-x"));
    assert_int_equal(arena_printf(&arena, "%9000d", 7).len, 9000);
    assert_true(is_zero(arena_array(&arena, 1000, 9), 9000));
}

int test_arena(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeroed_aligned_and_apart),
        cmocka_unit_test(reset_keeps_one_block),
        cmocka_unit_test(large_stays_behind),
        cmocka_unit_test(first_is_large),
        cmocka_unit_test(copies),
    };
    return cmocka_run_group_tests_name("base/arena", tests, NULL, NULL);
}
