/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/qr.h"

#include <string.h>

#include "base/limits.h"
#include "check.h"

static struct qr made(struct arena *arena, str text)
{
    struct qr qr = {0};
    assert_int_equal(qr_make(arena, text, &qr), OK);
    return qr;
}

/* The three squares that a camera looks for, each with its light border. */
static void assert_finder(const struct qr *qr, size_t top, size_t left)
{
    for (size_t row = 0; row < 7; row++)
        for (size_t column = 0; column < 7; column++) {
            bool ring = row == 0 || row == 6 || column == 0 || column == 6;
            bool core = row >= 2 && row <= 4 && column >= 2 && column <= 4;
            assert_int_equal(qr_dark(qr, top + row, left + column), ring || core);
        }
}

static void structure(void **state)
{
    static const struct {
        size_t length, size;
    } rows[] = {{1, 21}, {14, 21}, {15, 25}, {200, 57}, {QR_TEXT_BYTES_MAX, 169}};
    struct arena *arena = *state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[QR_TEXT_BYTES_MAX];
        memset(text, 'a', sizeof text);
        struct qr qr = made(arena, (str){text, rows[i].length});
        assert_int_equal(qr.size, rows[i].size);
        assert_finder(&qr, 0, 0);
        assert_finder(&qr, 0, qr.size - 7);
        assert_finder(&qr, qr.size - 7, 0);
        for (size_t k = 8; k < qr.size - 8; k++) { /* the lines that count modules */
            assert_int_equal(qr_dark(&qr, 6, k), k % 2 == 0);
            assert_int_equal(qr_dark(&qr, k, 6), k % 2 == 0);
        }
        assert_true(qr_dark(&qr, qr.size - 8, 8)); /* always dark */
    }
}

static void refused(void **state)
{
    struct arena *arena = *state;
    char text[QR_TEXT_BYTES_MAX + 1] = {0};
    struct qr qr = {0};
    assert_int_equal(qr_make(arena, STR_EMPTY, &qr), ERR_INVALID_FIELD);
    assert_int_equal(qr_make(arena, (str){text, sizeof text}, &qr), ERR_INVALID_FIELD);
    assert_null(qr.modules);
}

/* ---- read back, for the smallest version: 21 modules, one block, level M ---- */

static bool mask_bit(unsigned mask, size_t r, size_t c)
{
    switch (mask) {
    case 0:
        return (r + c) % 2 == 0;
    case 1:
        return r % 2 == 0;
    case 2:
        return c % 3 == 0;
    case 3:
        return (r + c) % 3 == 0;
    case 4:
        return (r / 2 + c / 3) % 2 == 0;
    case 5:
        return r * c % 2 + r * c % 3 == 0;
    case 6:
        return (r * c % 2 + r * c % 3) % 2 == 0;
    default:
        return ((r + c) % 2 + r * c % 3) % 2 == 0;
    }
}

/* Not data: finders with borders and format bits, and the counting lines. */
static bool is_function(size_t r, size_t c)
{
    return (r < 9 && (c < 9 || c > 12)) || (r > 12 && c < 9) || r == 6 || c == 6;
}

/* Level and mask, as they stand beside the first finder, without their own mask. */
static unsigned format_of(const struct qr *qr)
{
    unsigned bits = 0;
    for (size_t c = 0; c < 5; c++) bits = bits << 1 | qr_dark(qr, 8, c);
    return bits ^ 0x15; /* 10101, the first of the standard's 101010000010010 */
}

/* Two columns at a time from the right, upwards and downwards in turn. */
static void read_bytes(const struct qr *qr, unsigned mask, unsigned char out[26])
{
    size_t bit = 0;
    bool up = true;
    memset(out, 0, 26);
    for (int right = 20; right > 0; right -= 2, up = !up) {
        if (right == 6) right = 5;
        for (size_t k = 0; k < 21; k++)
            for (int side = 0; side < 2; side++) {
                size_t r = up ? 20 - k : k, c = (size_t)(right - side);
                if (is_function(r, c)) continue;
                if (bit < 208 && (qr_dark(qr, r, c) ^ mask_bit(mask, r, c)))
                    out[bit / 8] |= (unsigned char)(0x80 >> bit % 8);
                bit++;
            }
    }
    assert_int_equal(bit, 208);
}

static void reads_back(void **state)
{
    static const char *const texts[] = {"a", "hello, world", "wx://q/9-Zk~!", "微信登录",
                                        "\x01\xff"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        str text = str_c(texts[i]);
        struct qr qr = made(*state, text);
        assert_int_equal(qr.size, 21);
        unsigned format = format_of(&qr);
        assert_int_equal(format >> 3, 0); /* level M */
        unsigned char bytes[26], got[16];
        read_bytes(&qr, format & 7, bytes);
        assert_int_equal(bytes[0] >> 4, 4); /* bytes */
        size_t count = (size_t)(bytes[0] & 15) << 4 | bytes[1] >> 4;
        assert_int_equal(count, text.len);
        for (size_t k = 0; k < count; k++)
            got[k] = (unsigned char)(bytes[1 + k] << 4 | bytes[2 + k] >> 4);
        assert_memory_equal(got, text.p, text.len);
    }
}

/* ---- drawn ---- */

static size_t count_of(str text, str part)
{
    size_t n = 0;
    for (ptrdiff_t at; (at = str_find(text, part)) >= 0; n++)
        text = str_drop(text, (size_t)at + part.len);
    return n;
}

/* Every module is drawn once, in its place. */
static void terminal(void **state)
{
    struct qr qr = made(*state, STR("hello"));
    AUTO(buf_done) struct buf out;
    buf_init(&out, 64 * 1024);
    qr_terminal(&qr, &out);
    assert_false(out.full);
    str text = buf_str(&out);
    assert_int_equal(count_of(text, STR("\n")), 15); /* 21 and two margins of 4, by twos, up */
    size_t row = 0;
    for (str line = str_split(&text, '\n'); text.p; line = str_split(&text, '\n'), row += 2) {
        str begin = STR("\033[38;5;16;48;5;231m"), end = STR("\033[0m");
        assert_true(str_starts(line, begin) && str_ends(line, end));
        line = (str){line.p + begin.len, line.len - begin.len - end.len};
        for (size_t column = 0; column < 29; column++) {
            static const char *const blocks[] = {" ", "▄", "▀", "█"};
            unsigned both = 0;
            for (size_t k = 0; k < 2; k++) {
                size_t r = row + k;
                bool in = r >= 4 && r < 25 && column >= 4 && column < 25;
                both = both << 1 | (in && qr_dark(&qr, r - 4, column - 4));
            }
            assert_true(str_starts(line, str_c(blocks[both])));
            line = str_drop(line, strlen(blocks[both]));
        }
        assert_int_equal(line.len, 0);
    }
}

static void json(void **state)
{
    struct qr qr = made(*state, STR("hello"));
    AUTO(buf_done) struct buf out;
    struct json_writer w;
    struct json *read = NULL;
    buf_init(&out, 64 * 1024);
    json_write_begin(&w, &out);
    qr_json(&qr, &w);
    assert_int_equal(json_parse(*state, buf_str(&out), &read, NULL), OK);
    assert_str(json_get(read, STR("size"))->text, STR("21"));
    const struct json *rows = json_get(read, STR("rows"));
    assert_int_equal(rows->count, 21);
    assert_true(str_starts(rows->child->text, STR("11111110")));
    for (size_t r = 0; r < 21; r++) {
        str line = json_at(rows, r)->text;
        assert_int_equal(line.len, 21);
        for (size_t c = 0; c < 21; c++) assert_int_equal(line.p[c], '0' + qr_dark(&qr, r, c));
    }
}

static int setup(void **state)
{
    static struct arena arena;
    arena_init(&arena);
    *state = &arena;
    return 0;
}

static int teardown(void **state)
{
    arena_done(*state);
    return 0;
}

int test_qr(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structure), cmocka_unit_test(refused), cmocka_unit_test(reads_back),
        cmocka_unit_test(terminal),  cmocka_unit_test(json),
    };
    return cmocka_run_group_tests_name("app/qr", tests, setup, teardown);
}
