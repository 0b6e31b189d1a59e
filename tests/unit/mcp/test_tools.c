/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/server/mcp_server_tools.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "tool/schema.h"

static struct json *parsed(struct arena *arena, const char *text)
{
    struct json *json = NULL;
    char *copy = arena_cstr(arena, str_c(text));
    for (char *at = copy; *at; at++)
        if (*at == '\'') *at = '"';
    assert_int_equal(json_parse(arena, str_c(copy), &json, NULL), OK);
    return json;
}

static void good_ones(void **state)
{
    (void)state;
    static const struct {
        enum desk_tool tool;
        const char *arguments, *press_tool, *press_args, *key, *words, *id;
        msec wait_ms;
    } rows[] = {
        {DESK_ASK_USER, "{'question':' q? '}", "ask_user", "{\"question\":\" q? \"}", "", "q?", "",
         50000},
        {DESK_ASK_USER,
         "{'wait_s':0,'fields':[{'name':'n','type':'date'}],'key':'k','question':'q','multi':"
         "false}",
         "ask_user",
         "{\"question\":\"q\",\"multi\":false,\"fields\":[{\"name\":\"n\",\"type\":\"date\"}]}",
         "k", "q", "", 0},
        {DESK_ASK_USER,
         "{'question':'q','choices':[ 'a',\n'b' ],'allow_freeform':false,'wait_s':7,'title':'t'}",
         "ask_user", "{\"question\":\"q\",\"choices\":[ \"a\", \"b\" ],\"allow_freeform\":false}",
         "", "q", "", 7000},
        {DESK_CONFIRM, "{'details':{'a':[1.0]},'action':'do it'}", "consent",
         "{\"action\":\"do it\",\"details\":{\"a\":[1.0]}}", "", "do it", "", 50000},
        {DESK_CONFIRM, "{'action':'do it','details':null,'wait_s':50}", "consent",
         "{\"action\":\"do it\",\"details\":null}", "", "do it", "", 50000},
        {DESK_GET_ANSWER, "{'id':'int_1','wait_s':1}", "", "", "", "", "int_1", 1000},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        struct desk_call call;
        struct fault why = {0};
        arena_init(&arena);
        if (desk_parse(&arena, rows[i].tool, parsed(&arena, rows[i].arguments), &call, &why))
            fail_msg("row %zu: %s", i, why.text);
        assert_string_equal(arena_cstr(&arena, call.press_tool), rows[i].press_tool);
        assert_string_equal(arena_cstr(&arena, call.press_args), rows[i].press_args);
        assert_string_equal(arena_cstr(&arena, call.key), rows[i].key);
        assert_string_equal(arena_cstr(&arena, call.words), rows[i].words);
        assert_string_equal(arena_cstr(&arena, call.id), rows[i].id);
        assert_int_equal(call.wait_ms, rows[i].wait_ms);
        arena_done(&arena);
    }
}

static void bad_ones(void **state)
{
    (void)state;
    static const struct {
        enum desk_tool tool;
        const char *arguments, *field;
    } rows[] = {
        {DESK_ASK_USER, "{}", "question"},
        {DESK_ASK_USER, "{'question':'q','wait_s':51}", "wait_s"},
        {DESK_ASK_USER, "{'question':'q','wait_s':1.0}", "wait_s"},
        {DESK_ASK_USER, "{'question':'q','key':5}", "key"},
        {DESK_ASK_USER, "{'question':'q','key':' '}", "key"},
        {DESK_ASK_USER, "{'question':'q','id':'x'}", "id"},
        {DESK_ASK_USER, "{'question':'q','choices':[1]}", "choices[0]"},
        {DESK_CONFIRM, "{'action':'\\u200b'}", "action"},
        {DESK_CONFIRM, "{'action':'a\\tb'}", "action"},
        {DESK_CONFIRM, "{'action':'a','title':''}", "title"},
        {DESK_GET_ANSWER, "{'id':''}", "id"},
        {DESK_GET_ANSWER, "{'id':'x','title':'t'}", "title"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        struct desk_call call = {.wait_ms = -1};
        struct fault why = {0};
        arena_init(&arena);
        enum err e =
            desk_parse(&arena, rows[i].tool, parsed(&arena, rows[i].arguments), &call, &why);
        assert_int_equal(e, ERR_INVALID_FIELD);
        assert_string_equal(why.field, rows[i].field);
        assert_int_equal(call.wait_ms, -1);
        arena_done(&arena);
    }
    struct desk_call call;
    struct arena arena;
    arena_init(&arena);
    for (int tool = 0; tool < DESK_TOOL_COUNT; tool++)
        assert_int_equal(desk_parse(&arena, (enum desk_tool)tool, NULL, &call, NULL),
                         ERR_INVALID_FIELD);
    arena_done(&arena);
}

/* What makes two questions the same: what the person sees, and nothing else. */
static void same(void **state)
{
    (void)state;
    static const struct {
        enum desk_tool tool;
        const char *arguments;
        bool same;
    } rows[] = {
        {DESK_ASK_USER, "{'key':'k','wait_s':3,'title':'t', 'question' : 'q','choices':['a']}",
         true},
        {DESK_ASK_USER, "{'choices':['a'],'question':'q'}", true},
        {DESK_ASK_USER, "{'question':'Q','choices':['a']}", false},
        {DESK_ASK_USER, "{'question':'q','choices':['a','b']}", false},
        {DESK_ASK_USER, "{'question':'q','choices':['a'],'multi':true}", false},
        {DESK_CONFIRM, "{'action':'q'}", false},
    };
    struct arena arena;
    struct desk_call first, call;
    arena_init(&arena);
    assert_int_equal(desk_parse(&arena, DESK_ASK_USER,
                                parsed(&arena, "{'question':'q','choices':['a']}"), &first, NULL),
                     OK);
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(
            desk_parse(&arena, rows[i].tool, parsed(&arena, rows[i].arguments), &call, NULL), OK);
        assert_int_equal(memcmp(first.hash, call.hash, HASH_BYTES) == 0, rows[i].same);
    }
    arena_done(&arena);
}

/* The list is JSON, and each of its schemas takes what desk_parse takes. */
static void list(void **state)
{
    (void)state;
    struct arena arena;
    struct buf out;
    struct json_writer w;
    arena_init(&arena);
    buf_init(&out, DESK_RESULT_BYTES_MAX);
    json_write_begin(&w, &out);
    json_object(&w);
    desk_write_list(&w);
    json_object_end(&w);
    struct json *json = NULL;
    assert_int_equal(json_parse(&arena, buf_str(&out), &json, NULL), OK);
    const struct json *tools = json_get(json, STR("tools"));
    assert_int_equal(tools->count, DESK_TOOL_COUNT);
    for (size_t i = 0; i < DESK_TOOL_COUNT; i++) {
        enum desk_tool found;
        assert_int_equal(desk_find(json_text(json_get(json_at(tools, i), STR("name"))), &found),
                         OK);
        assert_int_equal(found, i);
    }
    enum desk_tool none;
    assert_int_equal(desk_find(STR("askuser"), &none), ERR_NOT_FOUND);
    buf_done(&out);
    arena_done(&arena);
}

static void states(void **state)
{
    (void)state;
    static const struct {
        struct desk_state state;
        const char *want; /* the beginning of the object */
        bool error;
    } rows[] = {
        {{.status = DESK_PENDING, .id = STR("i")},
         "{\"status\":\"pending\",\"id\":\"i\",\"hint\":\"Nobody",
         false},
        {{.status = DESK_PENDING, .id = STR("i"), .queued = true},
         "{\"status\":\"pending\",\"id\":\"i\",\"queued\":true,\"hint\":\"Too many",
         false},
        {{.status = DESK_ANSWERED,
          .id = STR("i"),
          .answer = STR("a\"b"),
          .reply = STR("{\"answer\":\"x\"}"),
          .settled = 1000},
         "{\"status\":\"answered\",\"id\":\"i\",\"answer\":\"a\\\"b\",\"reply\":{\"answer\":\"x\"},"
         "\"answeredAt\":\"1970-01-01T00:00:01.000Z\"}",
         false},
        {{.status = DESK_APPROVED, .id = STR("i"), .args = STR("{}")},
         "{\"status\":\"approved\",\"id\":\"i\",\"changed\":{}}",
         false},
        {{.status = DESK_REJECTED, .id = STR("i"), .comment = STR("no")},
         "{\"status\":\"rejected\",\"id\":\"i\",\"comment\":\"no\"}",
         false},
        {{.status = DESK_FAILED, .id = STR("i"), .reason = STR("why")},
         "{\"status\":\"failed\",\"id\":\"i\",\"reason\":\"why\"}",
         true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        struct buf out;
        struct json_writer w;
        struct json *json = NULL;
        arena_init(&arena);
        buf_init(&out, DESK_RESULT_BYTES_MAX);
        json_write_begin(&w, &out);
        json_object(&w);
        desk_write_state(&w, &arena, &rows[i].state);
        json_object_end(&w);
        assert_int_equal(json_parse(&arena, buf_str(&out), &json, NULL), OK);
        str text = json_text(json_get(json_at(json_get(json, STR("content")), 0), STR("text")));
        assert_true(str_starts(text, str_c(rows[i].want)));
        assert_true(str_eq(text, json_get(json, STR("structuredContent"))->raw));
        assert_int_equal(json_get(json, STR("isError"))->type == JSON_TRUE, rows[i].error);
        buf_done(&out);
        arena_done(&arena);
    }
}

int test_mcp_server_tools(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones), cmocka_unit_test(bad_ones), cmocka_unit_test(same),
        cmocka_unit_test(list),      cmocka_unit_test(states),
    };
    return cmocka_run_group_tests_name("app/mcp_tools", tests, NULL, NULL);
}
