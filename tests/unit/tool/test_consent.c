/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/client/consent.h"

#include <stdio.h>

#include "base/json.h"
#include "check.h"
#include "net/loop.h"
#include "tool/schema.h"
#include "tool/tools.h"

struct heard {
    unsigned count;
    enum tool_end end;
    char result[64];
};

static void on_end(void *arg, enum tool_end end, const struct tool_result *result)
{
    struct heard *heard = arg;
    heard->count++;
    heard->end = end;
    snprintf(heard->result, sizeof heard->result, "%.*s", STR_ARG(result->result));
}

struct table {
    struct loop *loop;
    struct arena arena;
    struct tools tools;
};

static void lay(struct table *table)
{
    table->loop = loop_new();
    arena_init(&table->arena);
    table->tools = consent_tools(&table->arena, table->loop);
    assert_int_equal(table->tools.count, 1);
}

static void clear(struct table *table)
{
    tools_free(&table->tools);
    arena_done(&table->arena);
    loop_free(table->loop);
}

static void stop(void *arg)
{
    loop_stop(arg);
}

/* One turn of the loop, and some more. */
static void turn(struct loop *loop)
{
    struct timer *timer = timer_new(loop, stop, loop);
    timer_start(timer, 1);
    loop_run(loop);
    timer_free(timer);
}

static void says_yes_later(void **state)
{
    (void)state;
    struct table table;
    struct heard heard = {0};
    lay(&table);
    const struct tool *tool = &table.tools.rows[0];
    tool_start(tool, &(struct tool_request){.call_id = STR("c"), .args = STR("{\"action\":\"a\"}")},
               on_end, &heard);
    assert_int_equal(heard.count, 0); /* never from inside */
    turn(table.loop);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.end, TOOL_DONE);
    assert_string_equal(heard.result, "{\"approved\":true}");
    clear(&table);
}

static void cancelled_says_nothing(void **state)
{
    (void)state;
    struct table table;
    struct heard heard = {0};
    lay(&table);
    const struct tool *tool = &table.tools.rows[0];
    struct tool_call *call =
        tool_start(tool, &(struct tool_request){.args = STR("{}")}, on_end, &heard);
    tool_cancel(tool, call);
    turn(table.loop);
    assert_int_equal(heard.count, 0);
    clear(&table);
}

/* A person decides, in any case; no list of tools can name it. */
static void is_nobodys(void **state)
{
    (void)state;
    struct table table;
    lay(&table);
    const struct tool *tool = &table.tools.rows[0];
    assert_true(tool->person && tool->write && tool->idempotent);
    assert_true(str_eq(tool->name, consent_name) && tool_name_valid(tool->name));
    assert_true(str_find_char(tool->pack, ':') > 0);
    clear(&table);
}

static void takes(void **state)
{
    (void)state;
    static const struct {
        const char *args;
        bool fits;
    } rows[] = {
        {"{\"action\":\"a\"}", true},
        {"{\"action\":\"a\",\"details\":[1,{\"b\":null}]}", true},
        {"{\"action\":\"a\",\"details\":\"text\"}", true},
        {"{\"action\":\"\"}", false},
        {"{\"details\":1}", false},
        {"{\"action\":\"a\",\"more\":1}", false},
    };
    struct table table;
    lay(&table);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct json *args = NULL;
        assert_int_equal(json_parse(&table.arena, str_c(rows[i].args), &args, NULL), OK);
        enum err e = schema_check(table.tools.rows[0].args, args, "args", NULL);
        assert_int_equal(e, rows[i].fits ? OK : ERR_INVALID_FIELD);
    }
    clear(&table);
}

int test_consent(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_yes_later),
        cmocka_unit_test(cancelled_says_nothing),
        cmocka_unit_test(is_nobodys),
        cmocka_unit_test(takes),
    };
    return cmocka_run_group_tests_name("tool/consent", tests, NULL, NULL);
}
