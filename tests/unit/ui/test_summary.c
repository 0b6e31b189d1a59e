/* SPDX-License-Identifier: Apache-2.0
 *
 * Summaries: rule by rule, in both languages. In JSON ' stands for ".
 */
#include "ui/summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "check.h"

static const struct json *parsed(struct arena *arena, const char *text)
{
    if (!text) return NULL;
    char *copy = arena_cstr(arena, str_c(text));
    for (char *c = copy; *c; c++)
        if (*c == '\'') *c = '"';
    struct json *json = NULL;
    struct json_error why;
    if (json_parse(arena, str_c(copy), &json, &why)) fail_msg("%s: %s", text, why.reason);
    return json;
}

#define TIMES "'start_time':'2026-11-16T15:00:00+08:00','end_time':'2026-11-16T16:00:00+08:00'"

static const struct row {
    const char *tool, *args, *result, *error; /* NULL: none */
    const char *en, *zh;                      /* NULL: as en */
} rows[] = {
    /* errors first */
    {"pay", "{}", "{'title':'x'}", "no such account", "pay failed: no such account",
     "pay 执行失败：no such account"},
    {"pay", "{}", NULL, "", "pay failed", "pay 执行失败"},
    {"pay", "{}", NULL, " \n ", "pay failed", "pay 执行失败"},
    {"pay", "{}", NULL, "{\"message\":\"over limit\"}", "pay failed: over limit",
     "pay 执行失败：over limit"},
    {"pay", "{}", NULL, "{\"a\":{\"b\":1}}", "pay failed", "pay 执行失败"},
    {"pay", "{}", NULL, "HTTP 500: {\"error\":1}", "pay failed: HTTP 500",
     "pay 执行失败：HTTP 500"},
    {"calendar_write", "{'title':'x'," TIMES "}", NULL, "two\nlines",
     "calendar_write failed: two lines", "calendar_write 执行失败：two lines"},
    /* our templates */
    {"calendar_write", "{'title':'评审会'," TIMES "}", "{'id':'evt_1'}", NULL,
     "Event created: 评审会 (2026-11-16 15:00)", "已创建日程：评审会（2026-11-16 15:00）"},
    {"calendar_write", "{'title':'a'," TIMES "}",
     "{'id':'evt_1','title':'b','start_time':'2026-11-16T07:00:00Z'}", NULL,
     "Event created: b (2026-11-16 15:00)", "已创建日程：b（2026-11-16 15:00）"},
    {"calendar_write", "{'title':'a'}", "{'id':'evt_1'}", NULL, "Event created: a",
     "已创建日程：a"},
    {"calendar_write", "{'title':'a','start_time':'tomorrow'}", "{}", NULL,
     "Event created: a (tomorrow)", "已创建日程：a（tomorrow）"},
    {"calendar_write", "{}", "{'id':'evt_1'}", NULL, "id: evt_1", "编号：evt_1"},
    {"calendar_write", NULL, NULL, NULL, "calendar_write completed", "calendar_write 执行完成"},
    {"calendar_read", "{'from':'2026-11-16T00:00:00+08:00','to':'2026-11-17T00:00:00+08:00'}",
     "{'count':2,'events':[{},{}]}", NULL, "2 events found (2026-11-16 00:00 to 2026-11-17 00:00)",
     "查询到 2 条日程（2026-11-16 00:00 至 2026-11-17 00:00）"},
    {"calendar_read", "{'from':'2026-11-16','to':'2026-11-16'}", "{'count':0,'events':[]}", NULL,
     "0 events found (2026-11-16)", "查询到 0 条日程（2026-11-16）"},
    {"calendar_read", "{}", "{'events':[{},{},{}]}", NULL, "3 events found", "查询到 3 条日程"},
    {"calendar_read", "{}", "[{'a':1}]", NULL, "1 events found", "查询到 1 条日程"},
    {"calendar_read", "{}", "{'x':[],'y':[]}", NULL, "calendar_read completed",
     "calendar_read 执行完成"},
    {"calendar_delete", "{'id':'evt_1'}", "{'id':'evt_1','title':'周会'}", NULL,
     "Event deleted: 周会", "已删除日程：周会"},
    {"calendar_delete", "{'id':'evt_1'}", "{}", NULL, "Event deleted: evt_1", "已删除日程：evt_1"},
    {"calendar_share", "{'id':'evt_1','target':'ann'}", "{'id':'evt_1'}", NULL,
     "Event shared with ann", "已分享日程给 ann"},
    {"user_resolve", "{'query':'a'}", "{'users':[{'id':'u1','name':'Ann'}],'count':1}", NULL,
     "User found: Ann", "已匹配用户：Ann"},
    {"user_resolve", "{'query':'a'}", "{'users':[{'id':'u1'},{'id':'u2'}],'count':2}", NULL,
     "User found: u1, u2", "已匹配用户：u1、u2"},
    {"user_resolve", "{}", "{'users':[{'name':'a'},{'name':'b'},{'name':'c'},{'name':'d'}]}", NULL,
     "User found: a, b, c, …", "已匹配用户：a、b、c、…"},
    {"user_resolve", "{'query':'a'}", "{'users':[],'count':0}", NULL, "count: 0", "数量：0"},
    {"user_resolve", "{}", "{'name':'Ann'}", NULL, "User found: Ann", "已匹配用户：Ann"},
    /* the result's own words */
    {"ask_user", "{}", "'1 小时'", NULL, "1 小时", NULL},
    {"shop", "{}", "{'content':'Ordered.\\n\\n  2 x tea','title':'x'}", NULL, "Ordered. 2 x tea",
     NULL},
    {"shop", "{}", "{'content':{'a':1},'title':'x'}", NULL, "title: x", "标题：x"},
    {"shop", "{}", "{'content':'{\\'a\\':1}','title':'x'}", NULL, "title: x", "标题：x"},
    {"shop", "{}", "{'content':'[1, 2, 3]','id':7}", NULL, "id: 7", "编号：7"},
    {"shop", "{}", "'see: {\\n  \\'a\\': 1}'", NULL, "see", NULL},
    {"shop", "{}", "'[draft] notes [1]'", NULL, "[draft] notes [1]", NULL},
    {"shop", "{}", "'\\u202Eevil\\u2066 x'", NULL, "evil x", NULL},
    /* common members */
    {"shop", "{}", "{'title':'Tea','name':'n','id':'i','count':2,'status':true,'message':'ok'}",
     NULL, "title: Tea; name: n; id: i; count: 2; status: true; message: ok",
     "标题：Tea；名称：n；编号：i；数量：2；状态：true；消息：ok"},
    {"shop", "{}", "{'title':{'a':1},'status':'sent'}", NULL, "status: sent", "状态：sent"},
    {"shop", "{}", "[1,2,3]", NULL, "count: 3", "数量：3"},
    /* the name */
    {"shop", "{}", "{}", NULL, "shop completed", "shop 执行完成"},
    {"shop", "{}", "null", NULL, "shop completed", "shop 执行完成"},
    {"shop", "{'title':'x'}", "{'other':1}", NULL, "shop completed", "shop 执行完成"},
};

static void rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        const struct row *row = &rows[i];
        struct summary_source source = {
            .tool = str_c(row->tool),
            .args = parsed(&arena, row->args),
            .result = parsed(&arena, row->result),
            .error = row->error ? str_c(row->error) : (str){NULL, 0},
        };
        source.locale = STR("en");
        assert_str(build_tool_content_summary(&arena, &source), str_c(row->en));
        source.locale = STR("zh-CN");
        assert_str(build_tool_content_summary(&arena, &source), str_c(row->zh ? row->zh : row->en));
    }
}

static void own_templates(void **state)
{
    (void)state;
    static const struct {
        const char *template, *summary;
    } own[] = {
        {"Ordered {count} x {item}", "Ordered 2 x tea"},
        {"{tool}: {item}", "place_order: tea"},
        {"Order {order} ({missing})", "Order 1000"},
        {"Order {order} ({missing}) done", "Order 1000 done"},
        {"Order {order}（{item}）", "Order 1000（tea）"},
        {"{missing_or_item}", "tea"},
        {"{missing_or_absent_or_order}", "1000"},
        {"{missing}", "id: 9; count: 2"},
        {"{", "{"},
        {"\u200b\u200d", "id: 9; count: 2"},
        {"{}", "id: 9; count: 2"},
        {"no names (at all)", "no names (at all)"},
        {"open ({item}", "open (tea"},
        {"{when}", "2026-01-02 03:04"},
    };
    for (size_t i = 0; i < COUNT(own); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct summary_source source = {
            .tool = STR("place_order"),
            .template_en = str_c(own[i].template),
            .template_zh = STR("已下单：{item}"),
            .args = parsed(&arena, "{'item':'tea','count':7}"),
            .result =
                parsed(&arena, "{'order':1000,'count':2,'id':9,'when':'2026-01-02T03:04:05.6Z'}"),
            .error = {NULL, 0},
        };
        assert_str(build_tool_content_summary(&arena, &source), str_c(own[i].summary));
        source.locale = STR("zh");
        assert_str(build_tool_content_summary(&arena, &source), STR("已下单：tea"));
    }
}

static size_t chars(str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) count += ((unsigned char)text.p[i] & 0xc0) != 0x80;
    return count;
}

/* 200 characters stay, 201 become 199 and an ellipsis; longer texts too, at any length. */
static void cuts(void **state)
{
    (void)state;
    static const char *const units[] = {"x", "字", "🎉"};
    for (size_t unit = 0; unit < COUNT(units); unit++)
        for (size_t count = 198; count < 203; count++) {
            AUTO(arena_done) struct arena arena;
            arena_init(&arena);
            str text = STR_EMPTY;
            for (size_t i = 0; i < count; i++)
                text = arena_printf(&arena, "%.*s%s", STR_ARG(text), units[unit]);
            struct json result = {.type = JSON_STRING, .text = text, .raw = text};
            struct summary_source source = {
                .tool = STR("t"), .result = &result, .error = {NULL, 0}};
            str line = build_tool_content_summary(&arena, &source);
            assert_true(utf8_valid(line));
            assert_int_equal(chars(line), count < SUMMARY_CHARS_MAX ? count : SUMMARY_CHARS_MAX);
            assert_true(str_ends(line, STR("…")) == (count > SUMMARY_CHARS_MAX));
        }
}

static void long_texts(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    static char text[100 * 1024];
    for (size_t i = 0; i + 3 <= sizeof text; i += 3) memcpy(text + i, "字", 3);
    str whole = {text, sizeof text / 3 * 3};
    struct json result = {.type = JSON_STRING, .text = whole, .raw = whole};
    struct summary_source source = {.tool = whole, .result = &result, .error = {NULL, 0}};
    str line = build_tool_content_summary(&arena, &source);
    assert_int_equal(chars(line), SUMMARY_CHARS_MAX);
    source.error = whole;
    line = build_tool_content_summary(&arena, &source);
    assert_int_equal(chars(line), SUMMARY_CHARS_MAX);
    assert_true(arena.bytes < 64 * 1024);
}

int test_summary(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules),
        cmocka_unit_test(own_templates),
        cmocka_unit_test(cuts),
        cmocka_unit_test(long_texts),
    };
    return cmocka_run_group_tests_name("summary", tests, NULL, NULL);
}
