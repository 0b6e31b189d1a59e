/* SPDX-License-Identifier: Apache-2.0 */
#include "store/table/fact_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"

static void assert_fact(const struct fact *found, const struct fact *expected, int64_t seq)
{
    assert_int_equal(found->seq, seq);
    assert_string_equal(found->type, expected->type);
    assert_str(found->run_id, expected->run_id);
    assert_int_equal(found->at, expected->at);
    assert_str(found->data, expected->data);
}

static void written(struct buf *out, const struct fact *facts, size_t count)
{
    size_t size = 0;
    assert_int_equal(fact_frames_fit(facts, count, &size), count);
    buf_init(out, size);
    fact_frames_write(out, facts, count);
    assert_false(out->full);
    assert_int_equal(out->len, size);
}

/* The bytes are a promise: rows live as long as their thread. */
static void bytes_of_a_row(void **state)
{
    (void)state;
    const struct fact facts[] = {
        {.type = "a", .run_id = STR("r1"), .at = 1, .data = STR("{}")},
        {.type = "bc", .run_id = STR("r1"), .at = 1, .data = STR("[1]")},
        {.type = "d", .run_id = STR_EMPTY, .at = 0, .data = STR("")},
        {.type = "", .run_id = STR_EMPTY, .at = 64, .data = STR("x")},
    };
    static const char expected[] = "\x02\x03\x02"
                                   "a\0r1{}"
                                   "\0\0\x03"
                                   "bc\0[1]"
                                   "\x01\x01\0"
                                   "d\0"
                                   "\x80\x01\0\x01"
                                   "\0x";
    struct buf out;
    written(&out, facts, COUNT(facts));
    assert_str(buf_str(&out), ((str){expected, sizeof expected - 1}));
    buf_done(&out);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    static char longer[300];
    memset(longer, 'x', sizeof longer);
    const struct fact facts[] = {
        {.type = "first", .data = STR("{}")}, /* run_id: NULL, 0 */
        {.type = "x", .run_id = STR("r"), .at = INT64_MAX, .data = STR("{\"a\":1}")},
        {.type = "x", .run_id = STR("r"), .at = INT64_MIN, .data = STR("\0\n\xe4\xbd\xa0")},
        {.type = "", .run_id = STR("q"), .at = -1, .data = {longer, 127}},
        {.type = "run.started", .run_id = {longer, 126}, .at = 0, .data = {longer, 128}},
        {.type = "run.started", .run_id = {longer, 127}, .data = {longer, sizeof longer}},
        {.type = "y", .run_id = STR_EMPTY, .at = 1700000000000, .data = STR_EMPTY},
    };
    struct buf out;
    written(&out, facts, COUNT(facts));
    struct fact_frames frames;
    struct fact fact = {0};
    fact_frames_begin(&frames, buf_str(&out), 41, 40 + COUNT(facts));
    for (size_t i = 0; i < COUNT(facts); i++) {
        assert_true(fact_frames_next(&frames, &fact));
        assert_fact(&fact, &facts[i], 41 + (int64_t)i);
    }
    assert_false(fact_frames_next(&frames, &fact));
    assert_int_equal(fact_frames_end(&frames), OK);
    buf_done(&out);
}

/* Read from memory that ends where the row does. */
static enum err verdict(str bytes, int64_t first, int64_t last, size_t *ret_count)
{
    char *copy = malloc(bytes.len ? bytes.len : 1);
    assert_non_null(copy);
    if (bytes.len) memcpy(copy, bytes.p, bytes.len);
    struct fact_frames frames;
    struct fact fact;
    fact_frames_begin(&frames, (str){copy, bytes.len}, first, last);
    for (*ret_count = 0; fact_frames_next(&frames, &fact); ++*ret_count) continue;
    enum err e = fact_frames_end(&frames);
    free(copy);
    return e;
}

static void damaged_rows(void **state)
{
    (void)state;
#define BYTES(literal)              \
    {                               \
        literal, sizeof literal - 1 \
    }
    static const struct {
        str bytes;
        int64_t first, last;
        size_t count; /* read before it is noticed */
        enum err expected;
    } rows[] = {
        {BYTES("\0\0\0x\0"), 1, 1, 1, OK},
        {BYTES("\0\0\0\0"), 7, 7, 1, OK},
        {BYTES("\0\0\0x\0\0\0\0x\0"), 1, 2, 2, OK},
        {BYTES("\0\0\0x\0"), 1, 2, 1, ERR_DAMAGED},          /* one is missing */
        {BYTES("\0\0\0x\0\0\0\0x\0"), 1, 1, 1, ERR_DAMAGED}, /* one too many */
        {BYTES(""), 1, 1, 0, ERR_DAMAGED},
        {BYTES(""), 1, 0, 0, ERR_DAMAGED}, /* no row is empty */
        {BYTES("\0\0\0x\0"), 0, 0, 0, ERR_DAMAGED},
        {BYTES("\0\0\0x\0"), 2, 1, 0, ERR_DAMAGED},
        {BYTES("\0\0\0x\0"), INT64_MAX, INT64_MAX, 0, ERR_DAMAGED},
        {BYTES("\0\0\0x"), 1, 1, 0, ERR_DAMAGED},   /* a type without an end */
        {BYTES("\0\0\1x\0"), 1, 1, 0, ERR_DAMAGED}, /* data beyond the row */
        {BYTES("\0\2\0x\0"), 1, 1, 0, ERR_DAMAGED}, /* a run beyond it */
        {BYTES("\0\1\0x\0"), 1, 1, 1, OK},          /* an empty one said twice */
        {BYTES("\0\0\x80"), 1, 1, 0, ERR_DAMAGED},  /* a number without an end */
        {BYTES("\0\0\x80\0x\0"), 1, 1, 1, OK},      /* longer than need be */
        {BYTES("\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1x\0"), 1, 1, 0, ERR_DAMAGED},
        {BYTES("\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0x\0"), 1, 1, 0, ERR_DAMAGED},
        {BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0\0x\0"), 1, 1, 1, OK},
        {BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\2\0\0x\0"), 1, 1, 0, ERR_DAMAGED},
        {BYTES("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\0\0\0x\0"), 1, 1, 0, ERR_DAMAGED},
    };
#undef BYTES
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t count = 0;
        enum err e = verdict(rows[i].bytes, rows[i].first, rows[i].last, &count);
        if (e != rows[i].expected || count != rows[i].count)
            fail_msg("row %zu: %d after %zu facts", i, e, count);
    }
}

/* Whatever is cut off is noticed. */
static void cut_anywhere(void **state)
{
    (void)state;
    const struct fact facts[] = {
        {.type = "run.started",
         .run_id = STR("run"),
         .at = 1700000000000,
         .data = STR("{\"a\":1}")},
        {.type = "step.start", .run_id = STR("run"), .at = 1700000000000, .data = STR("{}")},
    };
    struct buf out;
    size_t count;
    written(&out, facts, COUNT(facts));
    assert_int_equal(verdict(buf_str(&out), 1, COUNT(facts), &count), OK);
    for (size_t len = 0; len < out.len; len++)
        assert_int_equal(verdict((str){out.p, len}, 1, COUNT(facts), &count), ERR_DAMAGED);
    buf_done(&out);
}

/* Around the data stand at, run, its length (3 bytes from 2^14 on, 1 below 2^7), the type, a NUL. */
static void rows_are_bounded(void **state)
{
    (void)state;
    enum { HALF = FACT_ROW_BYTES_MAX / 2, AROUND = 1 + 1 + 3 + 2 };
    static char text[FACT_ROW_BYTES_MAX + 1];
    static const struct {
        size_t first, second, fit, bytes;
    } rows[] = {
        {HALF - AROUND, HALF - AROUND, 2, FACT_ROW_BYTES_MAX},
        {HALF - AROUND, HALF - AROUND + 1, 1, HALF},
        {HALF - AROUND + 1, HALF - AROUND, 1, HALF + 1},
        {0, HALF, 2, AROUND - 2 + HALF + AROUND},
        {FACT_ROW_BYTES_MAX - AROUND, 0, 1, FACT_ROW_BYTES_MAX},
        {sizeof text, 0, 1, sizeof text + AROUND},
        {0, sizeof text, 1, AROUND - 2},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct fact facts[] = {{.type = "x", .data = {text, rows[i].first}},
                                     {.type = "x", .data = {text, rows[i].second}}};
        size_t bytes = 0;
        assert_int_equal(fact_frames_fit(facts, COUNT(facts), &bytes), rows[i].fit);
        assert_int_equal(bytes, rows[i].bytes);
    }
}

int test_fact_frames(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_a_row),   cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(damaged_rows),     cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(rows_are_bounded),
    };
    return cmocka_run_group_tests_name("store/fact_frames", tests, NULL, NULL);
}
