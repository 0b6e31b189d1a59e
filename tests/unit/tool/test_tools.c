/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/tools.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "check.h"

static void risks(void **state)
{
    (void)state;
    static const char *const names[] = {"write", "external", "destructive"};
    enum tool_risk risk = RISK_WRITE;
    for (unsigned i = 0; i < TOOL_RISK_COUNT; i++) {
        assert_string_equal(tool_risk_name((enum tool_risk)i), names[i]);
        assert_int_equal(tool_risk_parse(str_c(names[i]), &risk), OK);
        assert_int_equal(risk, i);
    }
    assert_int_equal(tool_risk_parse(STR("Write"), &risk), ERR_INVALID_FIELD);
    assert_int_equal(tool_risk_parse(STR_EMPTY, &risk), ERR_INVALID_FIELD);
    assert_int_equal(risk, RISK_DESTRUCTIVE);
}

static void names(void **state)
{
    (void)state;
    char longest[TOOL_NAME_BYTES_MAX + 2];
    memset(longest, 'a', sizeof longest);
    static const struct {
        const char *name;
        bool valid;
    } rows[] = {
        {"calendar_write", true}, {"A-9", true},   {"", false},    {"a b", false},
        {"a.b", false},           {"日历", false}, {"a/b", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (tool_name_valid(str_c(rows[i].name)) != rows[i].valid) fail_msg("%s", rows[i].name);
    assert_true(tool_name_valid((str){longest, TOOL_NAME_BYTES_MAX}));
    assert_false(tool_name_valid((str){longest, TOOL_NAME_BYTES_MAX + 1}));
}

/* ---- the registry ---- */

static void count_free(void *self)
{
    ++*(int *)self;
}

static void joining(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    static const struct tool_ops freed = {.free = count_free}, kept = {0};
    int shared = 0, own = 0, never = 0;
    const struct tool first[] = {
        {.name = STR("a"), .ops = &freed, .self = &shared},
        {.name = STR("b"), .ops = &freed, .self = &shared},
    };
    const struct tool second[] = {
        {.name = STR("c"), .ops = &freed, .self = &own},
        {.name = STR("d"), .ops = &kept, .self = &never},
    };
    const struct tools packs[] = {{first, 2}, {NULL, 0}, {second, 2}};
    struct tools tools;
    assert_int_equal(tools_join(&arena, packs, COUNT(packs), &tools, NULL), OK);
    assert_int_equal(tools.count, 4);
    for (size_t i = 0; i < tools.count; i++) {
        char name[] = {(char)('a' + i), '\0'};
        assert_str(tools.rows[i].name, str_c(name));
        assert_ptr_equal(tools_find(&tools, str_c(name)), &tools.rows[i]);
    }
    assert_null(tools_find(&tools, STR("e")));
    assert_null(tools_find(&tools, STR_EMPTY));
    tools_free(&tools);
    assert_int_equal(shared, 1);
    assert_int_equal(own, 1);
    assert_int_equal(never, 0);
}

static void not_joining(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    const struct tool twice[] = {{.name = STR("a")}, {.name = STR("b")}, {.name = STR("a")}};
    const struct tool nameless[] = {{.name = STR("a b")}};
    const struct tools packs[] = {{twice, 3}, {nameless, 1}};
    struct tools tools = {.count = 77};
    struct fault fault;
    assert_int_equal(tools_join(&arena, &packs[0], 1, &tools, &fault), ERR_CONFIG);
    assert_non_null(strstr(fault.text, "two tools are called a:"));
    assert_int_equal(tools_join(&arena, &packs[1], 1, &tools, &fault), ERR_CONFIG);
    assert_non_null(strstr(fault.text, "\"a b\""));
    assert_int_equal(tools.count, 77);
}

static void many_tools(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct tool *rows = arena_array(&arena, TOOLS_MAX + 1, sizeof *rows);
    for (size_t i = 0; i <= TOOLS_MAX; i++) rows[i].name = arena_printf(&arena, "t%zu", i);
    struct tools pack = {rows, TOOLS_MAX}, tools;
    struct fault fault;
    assert_int_equal(tools_join(&arena, &pack, 1, &tools, &fault), OK);
    pack.count++;
    assert_int_equal(tools_join(&arena, &pack, 1, &tools, &fault), ERR_CONFIG);
    assert_non_null(strstr(fault.text, "t500 is one tool too many"));
}

/* ---- what the model sees ---- */

static void short_texts(void **state)
{
    (void)state;
    static const struct {
        const char *content, *result, *error, *en, *zh;
    } rows[] = {
        {"", "", "", "(nothing was returned)", "（没有返回内容）"},
        {"made it", "", "", "made it", "made it"},
        {"", "{\"id\":7}", "", "{\"id\":7}", "{\"id\":7}"},
        {"made it", "{\"id\":7}", "", "made it\n{\"id\":7}", "made it\n{\"id\":7}"},
        {"", "", "HTTP 503: gone", "Error: HTTP 503: gone", "错误：HTTP 503: gone"},
        {"half", "[1]", "gone", "Error: gone\nhalf\n[1]", "错误：gone\nhalf\n[1]"},
        {"", "null", "gone", "Error: gone\nnull", "错误：gone\nnull"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct tool_result result = {
            .content = str_c(rows[i].content),
            .result = str_c(rows[i].result),
            .error = str_c(rows[i].error),
            .ui_hints = STR("{\"never\":\"shown\"}"),
        };
        assert_str(tool_model_text(&arena, &result, STR("en")), str_c(rows[i].en));
        assert_str(tool_model_text(&arena, &result, STR_EMPTY), str_c(rows[i].en));
        assert_str(tool_model_text(&arena, &result, STR("zh-CN")), str_c(rows[i].zh));
        assert_str(tool_model_text(&arena, &result, STR("ZH")), str_c(rows[i].zh));
    }
}

/* The text is cut where it must be, between characters, and the count in the marker is true. */
static void check_cut(str model, const struct buf *whole, const char *before, const char *after)
{
    ptrdiff_t at = str_find(model, str_c(before));
    if (model.len > CALL_MODEL_BYTES_MAX || !utf8_valid(model) || at < 0)
        fail_msg("%zu bytes, marker at %td", model.len, at);
    str head = {model.p, (size_t)at}, rest = str_drop(model, (size_t)at + strlen(before));
    ptrdiff_t end = str_find(rest, str_c(after));
    uint64_t left_out = 0;
    assert_true(end >= 0);
    assert_int_equal(str_to_u64((str){rest.p, (size_t)end}, &left_out), OK);
    str tail = str_drop(rest, (size_t)end + strlen(after));
    assert_true(str_starts(buf_str(whole), head));
    assert_true(str_ends(buf_str(whole), tail));
    assert_int_equal(head.len + left_out + tail.len, whole->len);
    assert_true(model.len > CALL_MODEL_BYTES_MAX - 100); /* and no more than must be */
}

static void long_texts(void **state)
{
    (void)state;
    AUTO(buf_done) struct buf whole;
    buf_init(&whole, 1 << 20);
    for (size_t shift = 0; shift < 4; shift++) { /* so that each byte of a character is met */
        buf_clear(&whole);
        for (size_t i = 0; i < shift; i++) buf_char(&whole, 'x');
        while (whole.len < 3 * CALL_MODEL_BYTES_MAX) buf_append(&whole, STR("会😀"));
        for (size_t content = 0; content < 2; content++) {
            AUTO(arena_done) struct arena arena;
            arena_init(&arena);
            struct tool_result result = {0};
            *(content ? &result.content : &result.result) = buf_str(&whole);
            check_cut(tool_model_text(&arena, &result, STR("en")), &whole, "\n[... ",
                      " bytes left out ...]\n");
            check_cut(tool_model_text(&arena, &result, STR("zh-CN")), &whole, "\n[…… 此处省略 ",
                      " 字节 ……]\n");
        }
    }
}

/* Head and tail may come from different parts of the result. */
static void long_parts(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf content, result, whole;
    arena_init(&arena);
    buf_init(&content, 1 << 20);
    buf_init(&result, 1 << 20);
    buf_init(&whole, 1 << 20);
    for (size_t i = 0; i < 5000; i++) buf_printf(&content, "%zu,", i);
    for (size_t i = 0; i < 5000; i++) buf_printf(&result, "[%zu]", i);
    buf_printf(&whole, "Error: no\n%.*s\n%.*s", STR_ARG(buf_str(&content)),
               STR_ARG(buf_str(&result)));
    struct tool_result parts = {
        .content = buf_str(&content), .result = buf_str(&result), .error = STR("no")};
    check_cut(tool_model_text(&arena, &parts, STR("en")), &whole, "\n[... ",
              " bytes left out ...]\n");
}

/* A result in a file, of which only both ends are here, looks as it would in memory. */
static void in_a_file(void **state)
{
    (void)state;
    static const size_t lengths[] = {0,
                                     1,
                                     CALL_MODEL_BYTES_MAX - 8,
                                     CALL_MODEL_BYTES_MAX,
                                     CALL_MODEL_BYTES_MAX + 1,
                                     2 * CALL_MODEL_BYTES_MAX,
                                     3 * CALL_MODEL_BYTES_MAX};
    AUTO(buf_done) struct buf whole;
    buf_init(&whole, 1 << 20);
    while (whole.len < 4 * CALL_MODEL_BYTES_MAX) buf_append(&whole, STR("会😀x"));
    for (size_t i = 0; i < COUNT(lengths); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        str all = tool_text_head(buf_str(&whole), lengths[i]);
        bool both = all.len > CALL_MODEL_BYTES_MAX;
        size_t tail = !both                                ? 0
                      : all.len < 2 * CALL_MODEL_BYTES_MAX ? all.len - CALL_MODEL_BYTES_MAX
                                                           : CALL_MODEL_BYTES_MAX;
        struct tool_result memory = {.content = STR("made"), .result = all, .error = STR("no")};
        struct tool_result file = {.content = STR("made"),
                                   .error = STR("no"),
                                   .spooled = true,
                                   .result_bytes = all.len,
                                   .result_head = {all.p, both ? CALL_MODEL_BYTES_MAX : all.len},
                                   .result_tail = str_drop(all, all.len - tail)};
        assert_str(tool_model_text(&arena, &file, STR("en")),
                   tool_model_text(&arena, &memory, STR("en")));
        struct tool_ends ends = {file.result_head, file.result_tail, all.len};
        assert_str(tool_ends_cut(&arena, &ends, CALL_MODEL_BYTES_MAX, STR("zh")),
                   tool_text_cut(&arena, all, CALL_MODEL_BYTES_MAX, STR("zh")));
    }
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct tool_result huge = {.spooled = true,
                               .result_bytes = (uint64_t)50 << 30,
                               .result_head = {whole.p, CALL_MODEL_BYTES_MAX},
                               .result_tail = {whole.p, CALL_MODEL_BYTES_MAX}};
    str model = tool_model_text(&arena, &huge, STR("en"));
    assert_true(model.len <= CALL_MODEL_BYTES_MAX);
    assert_true(str_find(model, STR("\n[... 536870")) > 0); /* of 53,687,091,200 */
}

static void edges(void **state)
{
    (void)state;
    AUTO(buf_done) struct buf whole;
    buf_init(&whole, 1 << 20);
    while (whole.len < CALL_MODEL_BYTES_MAX) buf_char(&whole, 'a');
    for (size_t over = 0; over < 2; over++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct tool_result result = {.content = buf_str(&whole)};
        str model = tool_model_text(&arena, &result, STR("en"));
        assert_int_equal(str_eq(model, buf_str(&whole)), over == 0);
        if (over) check_cut(model, &whole, "\n[... ", " bytes left out ...]\n");
        buf_char(&whole, 'a');
    }
}

static void cutting(void **state)
{
    (void)state;
    assert_str(tool_text_head(STR("abc"), 3), STR("abc"));
    assert_str(tool_text_head(STR("abc"), 2), STR("ab"));
    assert_str(tool_text_head(STR("a会"), 3), STR("a"));
    assert_str(tool_text_head(STR("a会"), 4), STR("a会"));
    assert_str(tool_text_head(STR("会"), 1), STR(""));
}

int test_tools(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(risks),       cmocka_unit_test(names),      cmocka_unit_test(joining),
        cmocka_unit_test(not_joining), cmocka_unit_test(many_tools), cmocka_unit_test(short_texts),
        cmocka_unit_test(long_texts),  cmocka_unit_test(long_parts), cmocka_unit_test(edges),
        cmocka_unit_test(cutting),     cmocka_unit_test(in_a_file),
    };
    return cmocka_run_group_tests_name("tool/tools", tests, NULL, NULL);
}
