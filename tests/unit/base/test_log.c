/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "check.h"

enum { WALL = 0 };
#define TEXT_HEAD "1970-01-01T00:00:00.000Z info  e"
#define JSON_HEAD "{\"ts\":\"1970-01-01T00:00:00.000Z\",\"level\":\"info\",\"event\":\"e\""

static void levels(void **state)
{
    (void)state;
    static const struct {
        enum log_level level;
        const char *text, *json;
    } rows[] = {
        {LOG_DEBUG, "2026-11-15T05:52:50.123Z debug server.up",
         "{\"ts\":\"2026-11-15T05:52:50.123Z\",\"level\":\"debug\",\"event\":\"server.up\"}"},
        {LOG_INFO, "2026-11-15T05:52:50.123Z info  server.up",
         "{\"ts\":\"2026-11-15T05:52:50.123Z\",\"level\":\"info\",\"event\":\"server.up\"}"},
        {LOG_WARN, "2026-11-15T05:52:50.123Z warn  server.up",
         "{\"ts\":\"2026-11-15T05:52:50.123Z\",\"level\":\"warn\",\"event\":\"server.up\"}"},
        {LOG_ERROR, "2026-11-15T05:52:50.123Z error server.up",
         "{\"ts\":\"2026-11-15T05:52:50.123Z\",\"level\":\"error\",\"event\":\"server.up\"}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char out[256];
        size_t len =
            log_format(out, sizeof out, 1794721970123, false, rows[i].level, "server.up", NULL, 0);
        assert_str(((str){out, len}), str_c(rows[i].text));
        len = log_format(out, sizeof out, 1794721970123, true, rows[i].level, "server.up", NULL, 0);
        assert_str(((str){out, len}), str_c(rows[i].json));
    }
}

/* What stands behind `f=` and behind `"f":`. */
static void values(void **state)
{
    (void)state;
    static const struct {
        str value;
        const char *text, *json;
    } rows[] = {
        {STR("http://127.0.0.1:8080/"), "http://127.0.0.1:8080/", "\"http://127.0.0.1:8080/\""},
        {STR(""), "\"\"", "\"\""},
        {{NULL, 0}, "\"\"", "\"\""},
        {STR("a b"), "\"a b\"", "\"a b\""},
        {STR("a=b"), "\"a=b\"", "\"a=b\""},
        {STR("a\"b"), "\"a\\\"b\"", "\"a\\\"b\""},
        {STR("a\\b"), "\"a\\\\b\"", "\"a\\\\b\""},
        {STR("a\nb\r\t"), "\"a\\nb\\r\\t\"", "\"a\\nb\\r\\t\""},
        {STR("\0"), "\"\\u0000\"", "\"\\u0000\""},
        {STR("\x1b[31m"), "\"\\u001b[31m\"", "\"\\u001b[31m\""},
        {STR("\x7f"), "\"\\u007f\"", "\"\\u007f\""},
        {STR("\xc2\x9b"), "\"\\u009b\"", "\"\\u009b\""}, /* C1: ESC [ in one */
        {STR("\u202e"), "\"\\u202e\"", "\"\\u202e\""},   /* turns the line around */
        {STR("\u2028"), "\"\\u2028\"", "\"\\u2028\""},   /* breaks it */
        {STR("\u00a0"), "\u00a0", "\"\u00a0\""},         /* the first after C1 */
        {STR("\u4f1a\u8b70"), "\u4f1a\u8b70", "\"\u4f1a\u8b70\""},
        {STR("\U0001f600"), "\U0001f600", "\"\U0001f600\""},
        {STR("\xff"), "\"\\xff\"", "\"\\ufffd\""},
        {STR("\x80"), "\"\\x80\"", "\"\\ufffd\""},
        {STR("\xe4\xbc"), "\"\\xe4\\xbc\"", "\"\\ufffd\\ufffd\""}, /* ends too early */
        {STR("\xc3\x28"), "\"\\xc3(\"", "\"\\ufffd(\""},           /* no continuation */
        {STR("\xc0\xaf"), "\"\\xc0\\xaf\"", "\"\\ufffd\\ufffd\""}, /* overlong */
        {STR("\xed\xa0\x80"), "\"\\xed\\xa0\\x80\"", "\"\\ufffd\\ufffd\\ufffd\""}, /* surrogate */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct log_field field = LOG_STR("f", rows[i].value);
        char out[256], expected[256];
        size_t len = log_format(out, sizeof out, WALL, false, LOG_INFO, "e", &field, 1);
        snprintf(expected, sizeof expected, TEXT_HEAD " f=%s", rows[i].text);
        assert_str(((str){out, len}), str_c(expected));
        len = log_format(out, sizeof out, WALL, true, LOG_INFO, "e", &field, 1);
        snprintf(expected, sizeof expected, JSON_HEAD ",\"f\":%s}", rows[i].json);
        assert_str(((str){out, len}), str_c(expected));
    }
}

static void fields(void **state)
{
    (void)state;
    const struct log_field fields[] = {
        LOG_CSTR("name", "x"),       LOG_CSTR("none", NULL),      LOG_U64("zero", 0),
        LOG_U64("most", UINT64_MAX), LOG_I64("least", INT64_MIN),
    };
    char out[512];
    size_t len = log_format(out, sizeof out, WALL, false, LOG_INFO, "e", fields, COUNT(fields));
    assert_str(((str){out, len}),
               STR(TEXT_HEAD " name=x none=\"\" zero=0 most=18446744073709551615 "
                             "least=-9223372036854775808"));
    len = log_format(out, sizeof out, WALL, true, LOG_INFO, "e", fields, COUNT(fields));
    assert_str(((str){out, len}),
               STR(JSON_HEAD ",\"name\":\"x\",\"none\":\"\",\"zero\":0,"
                             "\"most\":18446744073709551615,\"least\":-9223372036854775808}"));
}

static bool printable(str line)
{
    for (size_t i = 0; i < line.len; i++)
        if ((unsigned char)line.p[i] < 0x20 || line.p[i] == 0x7f) return false;
    return utf8_valid(line);
}

static void check_line(str line, bool json, bool *ret_cut)
{
    *ret_cut = str_ends(line, json ? STR(",\"cut\":true}") : STR(" cut=true"));
    assert_true(printable(line));
    if (!json) return;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct json *tree;
    if (json_parse(&arena, line, &tree, NULL)) fail_msg("not JSON: %.*s", STR_ARG(line));
}

/* At every length of a value, and so with the cut at every place of a value, a name and a number,
 * the line stays within its room, printable, and JSON. */
static void cutting(void **state)
{
    (void)state;
    static const str units[] = {STR("a"), STR("\n"), STR("\x1b"), STR("\xff"), STR("\u4f1a")};
    enum { ROOM = 160, LONGEST = 160 };
    char value[LONGEST * 4], out[ROOM];
    for (size_t u = 0; u < COUNT(units); u++) {
        size_t cuts = 0;
        for (size_t n = 0; n < LONGEST; n++) {
            for (size_t i = 0; i < n; i++)
                memcpy(value + i * units[u].len, units[u].p, units[u].len);
            const struct log_field fields[] = {
                LOG_STR("value", ((str){value, n * units[u].len})),
                LOG_U64("number", UINT64_MAX),
                LOG_CSTR("last", "z"),
            };
            for (int json = 0; json < 2; json++) {
                bool cut;
                size_t len = log_format(out, sizeof out, WALL, json, LOG_INFO, "e", fields, 3);
                assert_true(len <= sizeof out);
                check_line((str){out, len}, json, &cut);
                bool last =
                    str_find((str){out, len}, json ? STR("\"last\":\"z\"") : STR("last=z")) > 0;
                assert_true(cut != last);
                cuts += cut;
            }
        }
        assert_in_range(cuts, 2, 2 * LONGEST - 2);
    }
}

/* Any bytes, also as names: one printable line. */
static void any_bytes(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int round = 0; round < 2000; round++) {
        char value[64], name[8] = {0}, out[1024];
        for (size_t i = 0; i < sizeof value; i++) {
            random = random * 6364136223846793005U + 1442695040888963407U;
            value[i] = (char)(random >> 40);
            if (i < sizeof name - 1) name[i] = value[i];
        }
        const struct log_field field = LOG_STR(name, ((str){value, sizeof value}));
        for (int json = 0; json < 2; json++) {
            bool cut;
            size_t len = log_format(out, sizeof out, WALL, json, LOG_INFO, name, &field, 1);
            check_line((str){out, len}, json, &cut);
            assert_false(cut);
        }
    }
}

static void parsing(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err expected;
        enum log_level level;
        bool json;
    } rows[] = {
        {"debug", OK, LOG_DEBUG, false},           {"info", OK, LOG_INFO, false},
        {"warn,text", OK, LOG_WARN, false},        {"error,json", OK, LOG_ERROR, true},
        {"", ERR_INVALID_FIELD, 0, false},         {"Info", ERR_INVALID_FIELD, 0, false},
        {"json", ERR_INVALID_FIELD, 0, false},     {"info,", ERR_INVALID_FIELD, 0, false},
        {"info,xml", ERR_INVALID_FIELD, 0, false}, {"info,json,text", ERR_INVALID_FIELD, 0, false},
        {",json", ERR_INVALID_FIELD, 0, false},    {"infox", ERR_INVALID_FIELD, 0, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        enum log_level level = LOG_ERROR;
        bool json = true;
        assert_int_equal(log_parse(str_c(rows[i].text), &level, &json), rows[i].expected);
        assert_int_equal(level, rows[i].expected ? LOG_ERROR : rows[i].level);
        assert_int_equal(json, rows[i].expected ? true : rows[i].json);
    }
}

/* Standard error goes into a pipe that keeps packets apart: one read gives what one write gave. */
static void begin_capture(int *ret_saved, int *ret_reader)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_DIRECT | O_NONBLOCK | O_CLOEXEC), 0);
    *ret_saved = dup(STDERR_FILENO);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    *ret_reader = ends[0];
}

static void end_capture(int saved)
{
    dup2(saved, STDERR_FILENO);
    close(saved);
}

static void writing(void **state)
{
    (void)state;
    static char huge[3 * LOG_LINE_BYTES_MAX];
    memset(huge, 'x', sizeof huge);
    int saved, reader;
    begin_capture(&saved, &reader);
    log_setup(LOG_WARN, true);
    log_info("not.wanted", LOG_U64("n", 1));
    log_warn("no.fields");
    log_error("huge", LOG_STR("value", ((str){huge, sizeof huge})), LOG_U64("n", 1));
    log_setup(LOG_INFO, false);
    log_debug("not.wanted");
    log_info("two\nlines", LOG_CSTR("v", "a\nb"));
    end_capture(saved);

    static const struct {
        bool json, cut;
        str part;
    } rows[] = {
        {true, false, STR("\"level\":\"warn\",\"event\":\"no.fields\"}")},
        {true, true, STR("\"event\":\"huge\",\"value\":\"xxxx")},
        {false, false, STR(" info  two\\nlines v=\"a\\nb\"")},
    };
    char line[LOG_LINE_BYTES_MAX + 1];
    for (size_t i = 0; i < COUNT(rows); i++) {
        ssize_t len = read(reader, line, sizeof line);
        assert_in_range(len, 1, LOG_LINE_BYTES_MAX);
        assert_int_equal(line[len - 1], '\n');
        str got = {line, (size_t)len - 1};
        bool cut;
        check_line(got, rows[i].json, &cut);
        assert_int_equal(cut, rows[i].cut);
        assert_true(str_find(got, rows[i].part) > 0);
    }
    assert_int_equal(read(reader, line, sizeof line), 0); /* nothing else, and the writer is gone */
    close(reader);
}

int test_log(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels),  cmocka_unit_test(values),    cmocka_unit_test(fields),
        cmocka_unit_test(cutting), cmocka_unit_test(any_bytes), cmocka_unit_test(parsing),
        cmocka_unit_test(writing),
    };
    return cmocka_run_group_tests_name("base/log", tests, NULL, NULL);
}
