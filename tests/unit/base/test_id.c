/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"

#include <string.h>

#include "check.h"

static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

static void making(void **state)
{
    (void)state;
    static const struct {
        unsigned char random[ID_RANDOM_BYTES];
        const char *id;
    } rows[] = {
        {{0}, "00000000000000000000000000"},
        {{[15] = 1}, "00000000000000000000000001"},
        {{[15] = 31}, "0000000000000000000000000z"},
        {{[15] = 32}, "00000000000000000000000010"},
        {{[0] = 0x80}, "40000000000000000000000000"},
        {{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
         "7zzzzzzzzzzzzzzzzzzzzzzzzz"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char id[ID_BYTES];
        id_make(rows[i].random, id);
        assert_string_equal(id, rows[i].id);
        assert_true(id_valid(str_c(id)));
    }
}

/* Every single bit shows, at the digit where it belongs. */
static void every_bit(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 128; bit++) {
        unsigned char random[ID_RANDOM_BYTES] = {0};
        random[15 - bit / 8] = (unsigned char)(1U << bit % 8);
        char id[ID_BYTES], expected[ID_BYTES] = "00000000000000000000000000";
        expected[25 - bit / 5] = digits[1U << bit % 5];
        id_make(random, id);
        assert_string_equal(id, expected);
    }
}

static void from_the_system(void **state)
{
    (void)state;
    char ids[100][ID_BYTES];
    for (size_t i = 0; i < COUNT(ids); i++) {
        id_random(ids[i]);
        assert_int_equal(strspn(ids[i], digits), ID_BYTES - 1);
        assert_true(ids[i][0] <= '7');
        for (size_t j = 0; j < i; j++) assert_string_not_equal(ids[i], ids[j]);
    }
}

static void client_lengths(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        bool valid;
    } rows[] = {{0, false}, {1, true}, {127, true}, {128, true}, {129, false}};
    char text[129];
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(id_valid((str){text, rows[i].len}), rows[i].valid);
    assert_false(id_valid((str){NULL, 0}));
}

static void client_bytes(void **state)
{
    (void)state;
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789._:-";
    for (int byte = 0; byte < 256; byte++) {
        char text[] = {'a', (char)byte, 'z'};
        bool expected = byte && strchr(allowed, byte);
        assert_int_equal(id_valid((str){text, 3}), expected);
        assert_int_equal(id_valid((str){text + 1, 1}), expected);
    }
}

int test_id(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(making),          cmocka_unit_test(every_bit),
        cmocka_unit_test(from_the_system), cmocka_unit_test(client_lengths),
        cmocka_unit_test(client_bytes),
    };
    return cmocka_run_group_tests_name("base/id", tests, NULL, NULL);
}
