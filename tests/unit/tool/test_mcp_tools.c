/* SPDX-License-Identifier: Apache-2.0
 *
 * Definitions of MCP servers: names, effects, schemas, headers.
 */
#include "mcp/client/mcp_tools.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "tool/schema.h"

#define NAME_60 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz12345678"

static struct json *parsed(struct arena *arena, str text)
{
    struct json *json = NULL;
    struct json_error why = {0};
    if (json_parse(arena, arena_str(arena, text), &json, &why))
        fail_msg("%.*s: %s", STR_ARG(text), why.reason);
    return json;
}

static void left_out(void *arg, str name, const char *why)
{
    char *out = arg;
    size_t len = strlen(out);
    snprintf(out + len, 400 - len, "%.*s: %s\n", STR_ARG(name), why);
}

/* ---- definitions ---- */

static void test_define(void **state)
{
    static char words[2 * MCP_DESCRIPTION_BYTES_MAX], large[2 * MCP_TOOL_BYTES_MAX];
    AUTO(arena_done) struct arena arena;
    (void)state;
    arena_init(&arena);
    memset(words, 'w', sizeof words - 1);
    static const struct {
        const char *text, *expected; /* NULL: refused */
    } rows[] = {
        {"{\"name\":\"a\",\"title\":\"T\",\"inputSchema\":{\n\"type\": \"object\"}}",
         "{\"name\":\"a\",\"description\":\"T\",\"inputSchema\":{ \"type\": \"object\"}}"},
        {"{\"name\":\"a\",\"description\":\"D\",\"inputSchema\":{\"type\":\"object\"},\"icons\":[],"
         "\"annotations\":{\"readOnlyHint\":true,\"destructiveHint\":1,\"title\":\"x\"}}",
         "{\"name\":\"a\",\"description\":\"D\",\"inputSchema\":{\"type\":\"object\"},"
         "\"annotations\":{\"readOnlyHint\":true}}"},
        {"{\"name\":\"\",\"inputSchema\":{\"type\":\"object\"}}", NULL},
        {"{\"inputSchema\":{\"type\":\"object\"}}", NULL},
        {"{\"name\":\"a\"}", NULL},
        {"{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"},"
         "\"execution\":{\"taskSupport\":\"optional\"}}",
         "{\"name\":\"a\",\"description\":\"\",\"inputSchema\":{\"type\":\"object\"}}"},
        {"{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"},"
         "\"execution\":{\"taskSupport\":\"required\"}}",
         NULL},
        {"{\"name\":\"a\",\"inputSchema\":null}", NULL},
        {"{\"name\":\"a\",\"inputSchema\":{}}", NULL},
        {"{\"name\":\"a\",\"inputSchema\":{\"type\":\"string\"}}", NULL},
        {"{\"name\":\"a\",\"inputSchema\":{\"type\":[\"object\"]}}", NULL},
        {"7", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        str text = STR_EMPTY;
        struct fault why = {0};
        enum err e = mcp_define(&arena, parsed(&arena, str_c(rows[i].text)), &text, &why);
        if (!rows[i].expected) {
            assert_int_equal(e, ERR_INVALID_FIELD);
            continue;
        }
        assert_int_equal(e, OK);
        assert_str(text, str_c(rows[i].expected));
    }
    snprintf(large, sizeof large,
             "{\"name\":\"a\",\"description\":\"%s\",\"inputSchema\":{\"type\":\"object\"}}",
             words);
    str text = STR_EMPTY;
    assert_int_equal(mcp_define(&arena, parsed(&arena, str_c(large)), &text, NULL), OK);
    assert_true(text.len < MCP_DESCRIPTION_BYTES_MAX + 100);
    memset(large, 'l', sizeof large);
    str long_schema =
        arena_printf(&arena,
                     "{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\",\"x\":\"%.*s\"}}",
                     MCP_TOOL_BYTES_MAX, large);
    assert_int_equal(mcp_define(&arena, parsed(&arena, long_schema), &text, NULL), ERR_TOO_LARGE);
}

/* ---- names ---- */

static struct tools rows_of(struct arena *arena, const struct mcp_rules *rules, const char *list,
                            char *why)
{
    str texts[20];
    size_t count = 0;
    for (const struct json *item = parsed(arena, str_c(list))->child; item; item = item->next) {
        struct fault fault = {0};
        if (mcp_define(arena, item, &texts[count], &fault))
            left_out(why, STR_EMPTY, fault.text);
        else
            count++;
    }
    return mcp_rows(arena, rules, texts, count, left_out, why);
}

#define DEF(name) "{\"name\":\"" name "\",\"inputSchema\":{\"type\":\"object\"}}"

static void test_names(void **state)
{
    AUTO(arena_done) struct arena arena;
    struct mcp_rules rules = {.server_name = STR("files")};
    char why[400] = "";
    (void)state;
    arena_init(&arena);
    struct tools tools =
        rows_of(&arena, &rules,
                "[" DEF("read_file") "," DEF("a.b-c") "," DEF("a b") "," DEF("a/b") "," DEF(
                    "读") "," DEF(NAME_60) "," DEF(NAME_60 "x") "," DEF("read_file") "]",
                why);
    assert_int_equal(tools.count, 7);
    assert_str(tools.rows[0].name, STR("files.read_file"));
    assert_str(tools.rows[0].pack, STR("files"));
    assert_str(tools.rows[1].name, STR("files.a.b-c"));
    assert_str(tools.rows[2].name, STR("files.a_b"));
    assert_true(str_starts(tools.rows[3].name, STR("files.a_b-")));
    assert_int_equal(tools.rows[3].name.len, strlen("files.a_b-01234567"));
    assert_str(tools.rows[4].name, STR("files.___"));
    for (size_t i = 5; i < 7; i++) {
        assert_int_equal(tools.rows[i].name.len, TOOL_NAME_BYTES_MAX);
        assert_true(str_starts(tools.rows[i].name, STR("files.abc")));
    }
    assert_false(str_eq(tools.rows[5].name, tools.rows[6].name));
    assert_str(((const struct mcp_tool *)tools.rows[3].self)->name, STR("a/b"));
    assert_string_equal(why, "read_file: another tool has the same name\n");
}

/* ---- effects ---- */

static void test_effects(void **state)
{
    static const str read[] = {STR("get_*"), STR("look")}, again[] = {STR("put")};
    static const struct {
        const char *name, *annotations;
        bool trusted;
        bool write, idempotent;
        enum tool_risk risk;
    } rows[] = {
        /* nobody's word counts */
        {"x", "{}", false, true, false, RISK_EXTERNAL},
        {"x", "{\"readOnlyHint\":true}", false, true, false, RISK_EXTERNAL},
        {"x", "{\"idempotentHint\":true,\"destructiveHint\":false}", false, true, false,
         RISK_EXTERNAL},
        {"get_it", "{\"readOnlyHint\":false}", false, false, false, RISK_EXTERNAL},
        {"look", "{}", false, false, false, RISK_EXTERNAL},
        {"looks", "{}", false, true, false, RISK_EXTERNAL},
        {"put", "{}", false, true, true, RISK_EXTERNAL},
        /* the server's word counts, and the lists more */
        {"x", "{}", true, true, false, RISK_DESTRUCTIVE},
        {"x", "{\"destructiveHint\":false}", true, true, false, RISK_EXTERNAL},
        {"x", "{\"readOnlyHint\":true}", true, false, false, RISK_EXTERNAL},
        {"x", "{\"idempotentHint\":true}", true, true, true, RISK_DESTRUCTIVE},
        {"get_it", "{\"readOnlyHint\":false}", true, false, false, RISK_EXTERNAL},
        {"put", "{\"idempotentHint\":false}", true, true, true, RISK_DESTRUCTIVE},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        char text[300], why[400] = "";
        struct mcp_rules rules = {.server_name = STR("s"),
                                  .trusted = rows[i].trusted,
                                  .read = read,
                                  .read_count = COUNT(read),
                                  .idempotent = again,
                                  .idempotent_count = COUNT(again)};
        arena_init(&arena);
        snprintf(text, sizeof text,
                 "[{\"name\":\"%s\",\"inputSchema\":{\"type\":\"object\"},\"annotations\":%s}]",
                 rows[i].name, rows[i].annotations);
        struct tools tools = rows_of(&arena, &rules, text, why);
        assert_int_equal(tools.count, 1);
        const struct tool *tool = &tools.rows[0];
        if (tool->write != rows[i].write || tool->idempotent != rows[i].idempotent ||
            tool->risk != rows[i].risk)
            fail_msg("row %zu: write %d, idempotent %d, risk %s", i, tool->write, tool->idempotent,
                     tool_risk_name(tool->risk));
        assert_true(tool->holds);
        assert_false(tool->person);
        assert_int_equal(tool->summary.len, 0);
    }
}

/* ---- schemas of others ---- */

static void test_lenient(void **state)
{
    static const struct {
        const char *schema, *value;
        bool fits;
    } rows[] = {
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}},\"required\":[\"a\"]}",
         "{}", false},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/"
         "x\",\"type\":\"string\"}}}",
         "{\"a\":1}", true},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"string\"}]}}}",
         "{\"a\":1}", true},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"multipleOf\":2}}}",
         "{\"a\":\"x\"}", false},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"format\":\"date\"}}}",
         "{\"a\":\"soon\"}", true},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"number\",\"minimum\":3,"
         "\"exclusiveMinimum\":true}}}",
         "{\"a\":2}", false},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"items\":[{\"type\":\"string\"}]}}}",
         "{\"a\":[1]}", true},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"prefixItems\":[{}],\"items\":{\"type\":"
         "\"string\"}}}}",
         "{\"a\":[1]}", true},
        {"{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}", "{\"a\":1}",
         false},
        {"{\"type\":\"object\",\"patternProperties\":{\"^a\":{}},\"additionalProperties\":false}",
         "{\"a\":1}", true},
        {"{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"a\"]}", "{}", false},
        {"{\"type\":\"object\",\"properties\":{\"a\":false}}", "{\"a\":1}", true},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"whatever\",\"maxLength\":1}}}",
         "{\"a\":\"xx\"}", false},
        {"{\"type\":\"object\",\"required\":true,\"properties\":7}", "{}", true},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        struct schema *schema = NULL;
        struct fault why = {0};
        arena_init(&arena);
        enum err e =
            schema_parse_lenient(&arena, parsed(&arena, str_c(rows[i].schema)), &schema, &why);
        if (e) fail_msg("row %zu: %s", i, why.text);
        e = schema_check(schema, parsed(&arena, str_c(rows[i].value)), "args", &why);
        if ((e == OK) != rows[i].fits) fail_msg("row %zu: %s", i, e ? why.text : "it fits");
    }
}

static void test_too_many(void **state)
{
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf text;
    struct schema *schema = NULL;
    char why[400] = "";
    struct mcp_rules rules = {.server_name = STR("s")};
    (void)state;
    arena_init(&arena);
    buf_init(&text, 1024 * 1024);
    buf_append(&text,
               STR("[{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"));
    for (int i = 0; i <= SCHEMA_PROPERTIES_MAX; i++)
        buf_printf(&text, "%s\"p%d\":{}", i ? "," : "", i);
    buf_append(&text, STR("}}}]"));
    buf_char(&text, '\0');
    assert_int_equal(rows_of(&arena, &rules, text.p, why).count, 0);
    assert_non_null(strstr(why, "more than 500 properties"));
    /* As deep as it likes; what is below is not checked. */
    buf_clear(&text);
    for (int i = 0; i < 30; i++) buf_append(&text, STR("{\"items\":"));
    buf_append(&text, STR("{\"type\":\"string\"}"));
    for (int i = 0; i < 30; i++) buf_char(&text, '}');
    assert_int_equal(schema_parse_lenient(&arena, parsed(&arena, buf_str(&text)), &schema, NULL),
                     OK);
}

/* ---- headers ---- */

static void test_params(void **state)
{
    static const struct {
        const char *properties;
        const char *args;
        const char *headers; /* NULL: the tool is left out */
    } rows[] = {
        {"{\"r\":{\"type\":\"string\",\"x-mcp-header\":\"R\"}}", "{\"r\":\"us-1\"}", "R=us-1;"},
        {"{\"r\":{\"type\":\"string\",\"x-mcp-header\":\"R\"}}", "{\"r\":null}", ""},
        {"{\"r\":{\"type\":\"string\",\"x-mcp-header\":\"R\"}}", "{}", ""},
        {"{\"r\":{\"type\":\"string\",\"x-mcp-header\":\"R\"}}", "{\"r\":\" a \"}",
         "R==?base64?IGEg?=;"},
        {"{\"r\":{\"type\":\"string\",\"x-mcp-header\":\"R\"}}", "{\"r\":\"\"}", "R==?base64?\?=;"},
        {"{\"r\":{\"type\":\"string\",\"x-mcp-header\":\"R\"}}", "{\"r\":\"a\\nb\"}",
         "R==?base64?YQpi?=;"},
        {"{\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"N\"},\"b\":{\"type\":\"boolean\","
         "\"x-mcp-header\":\"B\"}}",
         "{\"n\":-7,\"b\":true}", "N=-7;B=true;"},
        {"{\"o\":{\"type\":\"object\",\"properties\":{\"r\":{\"type\":\"string\",\"x-mcp-header\":"
         "\"R\"}}}}",
         "{\"o\":{\"r\":\"x\"}}", "R=x;"},
        {"{\"x-mcp-header\":{\"type\":\"string\"}}", "{\"x-mcp-header\":\"x\"}", ""},
        {"{\"d\":{\"default\":{\"x-mcp-header\":\"R\"}}}", "{}", ""},
        {"{\"n\":{\"type\":\"number\",\"x-mcp-header\":\"N\"}}", "{}", NULL},
        {"{\"r\":{\"type\":\"string\",\"x-mcp-header\":\"\"}}", "{}", NULL},
        {"{\"r\":{\"type\":\"string\",\"x-mcp-header\":\"a b\"}}", "{}", NULL},
        {"{\"r\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},\"s\":{\"type\":\"string\","
         "\"x-mcp-header\":\"a\"}}",
         "{}", NULL},
        {"{\"l\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"x-mcp-header\":\"R\"}}}",
         "{}", NULL},
        {"{\"l\":{\"anyOf\":[{\"type\":\"string\",\"x-mcp-header\":\"R\"}]}}", "{}", NULL},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        char text[600], why[400] = "", headers[200] = "";
        struct mcp_rules rules = {.server_name = STR("s"), .http = true};
        arena_init(&arena);
        snprintf(text, sizeof text,
                 "[{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\",\"properties\":%s}}]",
                 rows[i].properties);
        struct tools tools = rows_of(&arena, &rules, text, why);
        if (tools.count != (rows[i].headers != NULL)) fail_msg("row %zu: %s", i, why);
        if (!tools.count) continue;
        const struct mcp_tool *tool = tools.rows[0].self;
        const struct json *args = parsed(&arena, str_c(rows[i].args));
        for (size_t k = 0; k < tool->param_count; k++) {
            str value = mcp_param_value(&arena, &tool->params[k], args);
            size_t len = strlen(headers);
            if (value.len)
                snprintf(headers + len, sizeof headers - len, "%.*s=%.*s;",
                         STR_ARG(tool->params[k].name), STR_ARG(value));
        }
        assert_string_equal(headers, rows[i].headers);
    }
}

int test_mcp_tools(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_define),   cmocka_unit_test(test_names),
        cmocka_unit_test(test_effects),  cmocka_unit_test(test_lenient),
        cmocka_unit_test(test_too_many), cmocka_unit_test(test_params),
    };
    return cmocka_run_group_tests_name("mcp_tools", tests, NULL, NULL);
}
