/* SPDX-License-Identifier: Apache-2.0
 *
 * The scanner beside the parser, at every cut (json_scan_check.h); and what only it does.
 */
#include "base/json_scan.h"

#include <string.h>

#include "check.h"
#include "json_scan_check.h"

enum { REFUSE, ACCEPT };

static void verdicts(void **state)
{
    (void)state;
    static const struct {
        str bytes;
        bool accept, duplicate;
    } rows[] = {
#define CASE(suite, ours, bytes, name) \
    {{bytes, sizeof(bytes) - 1}, ours, #suite[0] == 'Y' && ours == REFUSE},
#include "base/json_cases.def"
#undef CASE
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct json_scan scan;
        scan_check(rows[i].bytes, rows[i].bytes.len);
        if (rows[i].duplicate) continue; /* there the two may differ */
        assert_int_equal(scan_cut(rows[i].bytes, NULL, rows[i].bytes.len, 1, &scan),
                         rows[i].accept);
    }
}

/* Longer documents, and every beginning of them. */
static void documents(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{\"content\":\"made "
        "\\u4f1a\\n\",\"result\":{\"id\":[7,-0.5e+3]},\"error\":null,\"ui\":{}}",
        " { \"a\" : 1 , \"b\" : true , \"c\" : \"\" , \"d\" : [ ] , \"e\" : 0 } ",
        "{\"\\u00e9\\ud83d\\ude00\":\"\xe4\xbd\xa0\xf0\x9f\x98\x80 \\\"x\\\" \\\\\",\"\":-0.0}",
        "[{\"a\":1,\"a\":2}]",
        "{\"a\":1,\"b\":2,\"a\":3}",
        "{\"a\":1,\"\\u0061\":3}",
        "{\"a\":{\"b\":1,\"b\":2},\"c\":3}",
        "\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\xe0\xa0\x80\xf0\x90\x80\x80\xc2\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xe0\x9f\xbf\"",
        "[1.5E-7,0,0.1,-1,1e5,10]",
        "[01]",
        "[-]",
        "[1.]",
        "[1e+]",
        "12",
        "12e",
        "\"\\ud800\\udc00\\udbff\\udfff\"",
        "\"\\ud800x\"",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "{\"0123456789012345678901234567890123456789012345678901234567890123\":1,"
        "\"01234567890123456789012345678901234567890123456789012345678901234\":2}",
        "{\"0123456789012345678901234567890123456789012345678901234567890123\":1,"
        "\"0123456789012345678901234567890123456789012345678901234567890123\":2}",
        "{\"012345678901234567890123456789012345678901234567890123456789012\xc3\xa9\":\"x\"}",
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t len = 0; len <= strlen(rows[i]); len++) scan_check((str){rows[i], len}, len);
}

/* Brackets up to the limit and one more; an error anywhere in a run of random bytes. */
static void depths(void **state)
{
    (void)state;
    for (size_t depth = JSON_DEPTH_MAX - 1; depth <= JSON_DEPTH_MAX + 1; depth++) {
        AUTO(buf_done) struct buf text;
        struct json_scan scan;
        buf_init(&text, 4096);
        for (size_t i = 0; i < depth; i++) buf_append(&text, i % 2 ? STR("[") : STR("{\"a\":"));
        buf_append(&text, STR("1"));
        for (size_t i = depth; i-- > 0;) buf_char(&text, i % 2 ? ']' : '}');
        scan_check(buf_str(&text), text.len);
        assert_int_equal(scan_cut(buf_str(&text), NULL, text.len, 1, &scan),
                         depth <= JSON_DEPTH_MAX);
    }
}

/* Every document that differs from a good one in one byte. */
static void one_byte_off(void **state)
{
    (void)state;
    static const char bytes[] = "\"\\{}[]:,0-.eE+ \nu/tnf\x01\x7f\x80\xc3\xe4\xf0\xff";
    char text[] = "{\"a\\u00e9\":[1,-2.5e3,true],\"b\":{\"c\":\"\xe4\xbd\xa0\\ud83d\\ude00\"}}";
    for (size_t at = 0; at < sizeof text - 1; at++) {
        char kept = text[at];
        for (size_t i = 0; i < sizeof bytes - 1; i++) {
            text[at] = bytes[i];
            scan_check((str){text, sizeof text - 1}, 0);
        }
        text[at] = kept;
    }
}

/* What json_parse cannot hold, and what is remembered of keys. */
static void without_memory(void **state)
{
    (void)state;
    AUTO(buf_done) struct buf text;
    struct json_scan scan;
    buf_init(&text, 8 << 20);
    buf_char(&text, '[');
    for (size_t i = 0; i < JSON_VALUES_MAX; i++) buf_append(&text, STR("1,"));
    buf_append(&text, STR("1]"));
    assert_true(scan_cut(buf_str(&text), NULL, 100, 16384, &scan));
    assert_int_equal(scan.document.to, text.len);

    for (size_t far = 0; far < 2; far++) { /* the last key of those remembered, and the next one */
        buf_clear(&text);
        buf_char(&text, '{');
        for (size_t i = 0; i < JSON_SCAN_KEYS_MAX + far; i++) buf_printf(&text, "\"k%zu\":1,", i);
        buf_printf(&text, "\"k%zu\":1}", JSON_SCAN_KEYS_MAX - 1 + far);
        assert_int_equal(scan_cut(buf_str(&text), NULL, text.len, 1, &scan), far == 1);
    }
}

/* A refusal stays one, and points at the byte. */
static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t at;
        bool broken_char;
    } rows[] = {
        {"{\"a\":1}x", 7, false},     {"[1,2", 4, false},       {"{\"a\":tru,", 8, false},
        {"[\"\xe4\xbd(\"]", 4, true}, {"[\"\xff", 2, true},     {"\xe4\xbd\xa0", 0, false},
        {"{\"a\":1,\"a\"", 9, false}, {"[\"\xe4\xbd", 4, true}, {"", 0, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct json_scan scan;
        str text = str_c(rows[i].text);
        assert_false(scan_cut(text, NULL, text.len, 1, &scan));
        assert_int_equal(scan.at, rows[i].at);
        assert_int_equal(scan.broken_char, rows[i].broken_char);
        bool ended_early = rows[i].at == text.len;
        str rest = STR("1");
        if (!ended_early) assert_int_equal(json_scan_next(&scan, &rest), JSON_SCAN_REFUSED);
        if (!ended_early) assert_int_equal(rest.len, 1);
    }
}

int test_json_scan(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),       cmocka_unit_test(documents),
        cmocka_unit_test(depths),         cmocka_unit_test(one_byte_off),
        cmocka_unit_test(without_memory), cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("base/json_scan", tests, NULL, NULL);
}
