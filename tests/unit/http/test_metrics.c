/* SPDX-License-Identifier: Apache-2.0
 *
 * The text is read back line by line, as a scraper would.
 */
#include "server/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { TEXT_BYTES_MAX = 64 * 1024, FAMILIES_MAX = 64 };

static void statuses(void **state)
{
    (void)state;
    static const struct {
        int status;
        size_t field;
    } rows[] = {
        {200, offsetof(struct metrics, requests_2xx)},
        {299, offsetof(struct metrics, requests_2xx)},
        {304, offsetof(struct metrics, requests_3xx)},
        {399, offsetof(struct metrics, requests_3xx)},
        {400, offsetof(struct metrics, requests_4xx)},
        {499, offsetof(struct metrics, requests_4xx)},
        {500, offsetof(struct metrics, requests_5xx)},
        {507, offsetof(struct metrics, requests_5xx)},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct metrics metrics = {0};
        uint64_t value;
        metrics_count_status(&metrics, rows[i].status);
        memcpy(&value, (const char *)&metrics + rows[i].field, sizeof value);
        assert_int_equal(value, 1);
        assert_int_equal(metrics.requests_2xx + metrics.requests_3xx + metrics.requests_4xx +
                             metrics.requests_5xx,
                         1);
    }
}

/* The value of a sample, or -1. */
static long long sample(str text, const char *name)
{
    for (str rest = text; rest.p;) {
        str value = str_split(&rest, '\n');
        if (str_starts(value, STR("#"))) continue;
        uint64_t number;
        if (str_eq(str_split(&value, ' '), str_c(name)) && str_to_u64(value, &number) == OK)
            return (long long)number;
    }
    return -1;
}

static void values(void **state)
{
    (void)state;
    struct metrics metrics = {.requests_2xx = 7,
                              .requests_4xx = UINT64_MAX >> 1,
                              .rate_limited = 3,
                              .start_seconds = 1700000000};
    AUTO(buf_done) struct buf out;
    buf_init(&out, TEXT_BYTES_MAX);
    metrics_write(&metrics, &out);
    str text = buf_str(&out);
    assert_int_equal(sample(text, "fermata_http_requests_total{class=\"2xx\"}"), 7);
    assert_int_equal(sample(text, "fermata_http_requests_total{class=\"3xx\"}"), 0);
    assert_int_equal(sample(text, "fermata_http_requests_total{class=\"4xx\"}"),
                     (long long)(UINT64_MAX >> 1));
    assert_int_equal(sample(text, "fermata_http_rate_limited_total"), 3);
    assert_int_equal(sample(text, "process_start_time_seconds"), 1700000000);
    assert_int_equal(sample(text, "no_such_metric"), -1);
}

/* The name of "# HELP name ..." or "name{...} 1". */
static str family_of(str line)
{
    if (str_starts(line, STR("#"))) line = str_drop(line, strlen("# HELP "));
    str name = str_split(&line, ' ');
    return str_split(&name, '{');
}

/* Each family is announced once, by HELP and then TYPE, and its samples follow at once. */
static void form(void **state)
{
    (void)state;
    struct metrics metrics = {0};
    AUTO(buf_done) struct buf out;
    buf_init(&out, TEXT_BYTES_MAX);
    metrics_write(&metrics, &out);
    assert_true(str_ends(buf_str(&out), STR("\n")));

    str seen[FAMILIES_MAX], rest = {out.p, out.len - 1};
    size_t families = 0, samples = 0;
    while (rest.p) {
        str line = str_split(&rest, '\n');
        str name = family_of(line);
        if (str_starts(line, STR("# HELP "))) {
            for (size_t i = 0; i < families; i++) assert_false(str_eq(seen[i], name));
            assert_true(families < FAMILIES_MAX);
            seen[families++] = name;
            str type = str_split(&rest, '\n');
            assert_true(str_starts(type, STR("# TYPE ")));
            assert_str(family_of(type), name);
            bool counter = str_ends(name, STR("_total"));
            assert_true(str_ends(type, counter ? STR(" counter") : STR(" gauge")));
            continue;
        }
        assert_true(families > 0);
        assert_str(name, seen[families - 1]);
        samples++;
    }
    assert_int_equal(samples, sizeof(struct metrics) / sizeof(uint64_t)); /* every row is there */
}

static void resident_memory_grows(void **state)
{
    (void)state;
    enum { MORE = 32 * 1024 * 1024 };
    uint64_t before = metrics_resident_bytes();
    assert_true(before > 100 * 1024);
    char *block = malloc(MORE);
    assert_non_null(block);
    memset(block, 1, MORE);
    uint64_t after = metrics_resident_bytes();
    free(block);
    assert_true(after >= before + MORE / 2);
}

int test_metrics(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses),
        cmocka_unit_test(values),
        cmocka_unit_test(form),
        cmocka_unit_test(resident_memory_grows),
    };
    return cmocka_run_group_tests_name("app/metrics", tests, NULL, NULL);
}
