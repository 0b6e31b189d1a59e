/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/server/mcp_protocol.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"

#define META                                                           \
    "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28'," \
    "'io.modelcontextprotocol/clientInfo':{'name':'it'},"              \
    "'io.modelcontextprotocol/clientCapabilities':{}}"
#define ASKED(method, params) "{'jsonrpc':'2.0','id':1,'method':'" method "','params':{" params "}}"

/* Single quotes stand for double ones. */
static str quoted(struct arena *arena, const char *text)
{
    char *copy = arena_cstr(arena, str_c(text));
    for (char *at = copy; *at; at++)
        if (*at == '\'') *at = '"';
    return str_c(copy);
}

/* NULL: the header is not there. */
static str header(const char *text)
{
    return text ? str_c(text) : (str){NULL, 0};
}

struct row {
    const char *body, *version, *method, *name; /* of the request, and of its headers */
};

static enum err read_row(struct arena *arena, const struct row *row, struct desk_message *message,
                         struct desk_refusal *refusal)
{
    struct desk_headers headers = {header(row->version), header(row->method), header(row->name)};
    return desk_read(arena, quoted(arena, row->body), &headers, message, refusal);
}

static void good_ones(void **state)
{
    (void)state;
    static const struct {
        struct row row;
        enum desk_method method;
        const char *id, *version, *client, *tool;
        bool modern, arguments;
    } rows[] = {
        {{ASKED("ping", ""), 0, 0, 0}, DESK_PING, "1", "2025-11-25", "", "", false, false},
        {{ASKED("ping", ""), "2025-06-18", 0, 0}, DESK_PING, "1", "2025-06-18", "", "", 0, 0},
        {{"{'jsonrpc':'2.0','id':'a','method':'ping'}", 0, 0, 0},
         DESK_PING,
         "'a'",
         "2025-11-25",
         "",
         "",
         0,
         0},
        {{"{'jsonrpc':'2.0','id':-1.5e3,'method':'tools/list'}", 0, 0, 0},
         DESK_TOOLS_LIST,
         "-1.5e3",
         "2025-11-25",
         "",
         "",
         0,
         0},
        {{ASKED("initialize", "'protocolVersion':'2025-06-18','clientInfo':{'name':'c'}"), 0, 0, 0},
         DESK_INITIALIZE,
         "1",
         "2025-06-18",
         "c",
         "",
         0,
         0},
        {{ASKED("initialize", "'protocolVersion':'2026-07-28'"), "2026-07-28", 0, 0},
         DESK_INITIALIZE,
         "1",
         "2025-11-25",
         "",
         "",
         0,
         0},
        {{ASKED("initialize", "'protocolVersion':'x'," META), 0, 0, 0},
         DESK_INITIALIZE,
         "1",
         "2025-11-25",
         "",
         "",
         0,
         0},
        {{ASKED("tools/call", "'name':'t'"), 0, 0, 0},
         DESK_TOOLS_CALL,
         "1",
         "2025-11-25",
         "",
         "t",
         false,
         false},
        {{ASKED("tools/call", "'name':'t','arguments':{}"), 0, 0, 0},
         DESK_TOOLS_CALL,
         "1",
         "2025-11-25",
         "",
         "t",
         false,
         true},
        {{ASKED("tools/list", META), "2026-07-28", "tools/list", 0},
         DESK_TOOLS_LIST,
         "1",
         "2026-07-28",
         "it",
         "",
         true,
         false},
        {{ASKED("server/discover", META), "2026-07-28", "server/discover", 0},
         DESK_DISCOVER,
         "1",
         "2026-07-28",
         "it",
         "",
         true,
         false},
        {{ASKED("tools/call", "'name':'t'," META), "2026-07-28", "tools/call", "t"},
         DESK_TOOLS_CALL,
         "1",
         "2026-07-28",
         "it",
         "t",
         true,
         false},
        {{ASKED("tools/call", "'name':'\\u4e8c'," META), "2026-07-28", "tools/call",
          "=?base64?5LqM?="},
         DESK_TOOLS_CALL,
         "1",
         "2026-07-28",
         "it",
         "\u4e8c",
         true,
         false},
        {{"{'jsonrpc':'2.0','method':'notifications/x'}", "1999", 0, 0},
         DESK_NOTIFICATION,
         "",
         "",
         "",
         "",
         0,
         0},
        {{"{'jsonrpc':'2.0','id':1,'error':{}}", 0, 0, 0},
         DESK_NOTIFICATION,
         "1",
         "",
         "",
         "",
         0,
         0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        struct desk_message message = {0};
        struct desk_refusal refusal = {0};
        arena_init(&arena);
        enum err e = read_row(&arena, &rows[i].row, &message, &refusal);
        if (e) fail_msg("row %zu: %s", i, refusal.text);
        assert_int_equal(message.method, rows[i].method);
        assert_true(str_eq(message.id, quoted(&arena, rows[i].id)));
        assert_true(str_eq(message.version, str_c(rows[i].version)));
        assert_true(str_eq(message.client, str_c(rows[i].client)));
        assert_true(str_eq(message.tool, str_c(rows[i].tool)));
        assert_int_equal(message.modern, rows[i].modern);
        assert_int_equal(message.arguments != NULL, rows[i].arguments);
        arena_done(&arena);
    }
}

static void bad_ones(void **state)
{
    (void)state;
    static const struct {
        struct row row;
        int status, code;
        const char *id;
    } rows[] = {
        {{"", 0, 0, 0}, 400, DESK_PARSE_ERROR, ""},
        {{"{'a':1,'a':2}", 0, 0, 0}, 400, DESK_PARSE_ERROR, ""},
        {{"[]", 0, 0, 0}, 400, DESK_INVALID_REQUEST, ""},
        {{"{}", 0, 0, 0}, 400, DESK_INVALID_REQUEST, ""},
        {{"{'jsonrpc':2.0,'id':1,'method':'ping'}", 0, 0, 0}, 400, DESK_INVALID_REQUEST, "1"},
        {{"{'jsonrpc':'2.0','id':true,'method':'ping'}", 0, 0, 0}, 400, DESK_INVALID_REQUEST, ""},
        {{"{'jsonrpc':'2.0','result':{}}", 0, 0, 0}, 400, DESK_INVALID_REQUEST, ""},
        {{"{'jsonrpc':'2.0','id':1,'method':'ping','params':1}", 0, 0, 0},
         400,
         DESK_INVALID_REQUEST,
         "1"},
        {{ASKED("Ping", ""), 0, 0, 0}, 200, DESK_METHOD_NOT_FOUND, "1"},
        {{ASKED("server/discover", ""), 0, 0, 0}, 200, DESK_METHOD_NOT_FOUND, "1"},
        {{ASKED("ping", META), "2026-07-28", "ping", 0}, 404, DESK_METHOD_NOT_FOUND, "1"},
        {{ASKED("tools/call", "'name':1"), 0, 0, 0}, 200, DESK_INVALID_PARAMS, "1"},
        {{ASKED("tools/call", "'name':'t','arguments':null"), 0, 0, 0},
         200,
         DESK_INVALID_PARAMS,
         "1"},
        {{ASKED("initialize", "'protocolVersion':1"), 0, 0, 0}, 200, DESK_INVALID_PARAMS, "1"},
        {{ASKED("ping", ""), "2025-03-26x", 0, 0}, 400, DESK_UNSUPPORTED_VERSION, "1"},
        {{ASKED("tools/list", ""), "2026-07-28", "tools/list", 0}, 400, DESK_INVALID_PARAMS, "1"},
        {{ASKED("tools/list", META), 0, "tools/list", 0}, 400, DESK_HEADER_MISMATCH, "1"},
        {{ASKED("tools/list", META), "2025-11-25", "tools/list", 0},
         400,
         DESK_HEADER_MISMATCH,
         "1"},
        {{ASKED("tools/list", META), "2026-07-28", "", 0}, 400, DESK_HEADER_MISMATCH, "1"},
        {{ASKED("tools/list", META), "2026-07-28", "Tools/List", 0},
         400,
         DESK_HEADER_MISMATCH,
         "1"},
        {{ASKED("tools/call", "'name':'t'," META), "2026-07-28", "tools/call", 0},
         400,
         DESK_HEADER_MISMATCH,
         "1"},
        {{ASKED("tools/call", "'name':'t'," META), "2026-07-28", "tools/call", "=?base64?dA=?="},
         400,
         DESK_HEADER_MISMATCH,
         "1"},
        {{ASKED("tools/call", "'name':'t'," META), "2026-07-28", "tools/call", "=?base64?!!!!?="},
         400,
         DESK_HEADER_MISMATCH,
         "1"},
        {{ASKED("tools/list", "'_meta':{'io.modelcontextprotocol/protocolVersion':'2027-01-01'}"),
          "2027-01-01", 0, 0},
         400,
         DESK_UNSUPPORTED_VERSION,
         "1"},
        {{ASKED("tools/list", "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28'}"),
          "2026-07-28", "tools/list", 0},
         400,
         DESK_INVALID_PARAMS,
         "1"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        struct desk_message message = {.id = STR("untouched")};
        struct desk_refusal refusal = {0};
        arena_init(&arena);
        enum err e = read_row(&arena, &rows[i].row, &message, &refusal);
        if (e != ERR_BAD_REQUEST || refusal.code != rows[i].code ||
            refusal.status != rows[i].status)
            fail_msg("row %zu: %d %d %d %s", i, e, refusal.status, refusal.code, refusal.text);
        assert_true(str_eq(refusal.id, str_c(rows[i].id)));
        assert_true(str_eq(message.id, STR("untouched")));
        struct json *json = NULL;
        assert_int_equal(json_parse(&arena, desk_refuse(&arena, &refusal), &json, NULL), OK);
        const struct json *error = json_get(json, STR("error"));
        assert_int_equal(json_get(error, STR("data")) != NULL,
                         rows[i].code == DESK_UNSUPPORTED_VERSION);
        arena_done(&arena);
    }
}

/* The same answer in both eras, with what only one of them has. */
static void answers(void **state)
{
    (void)state;
    static const struct {
        struct desk_message message;
        const char *want;
    } rows[] = {
        {{.method = DESK_PING, .id = STR("7")}, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}"},
        {{.method = DESK_PING, .id = STR("\"x\""), .modern = true},
         "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{\"resultType\":\"complete\",\"_meta\":{"
         "\"io.modelcontextprotocol/serverInfo\":{\"name\":\"fermata\",\"title\":\"Fermata\","
         "\"version\":\"" FERMATA_VERSION "\"}}}}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        arena_init(&arena);
        str have = desk_hello(&arena, &rows[i].message);
        assert_string_equal(arena_cstr(&arena, have), rows[i].want);
        arena_done(&arena);
    }
}

int test_mcp_protocol(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones),
        cmocka_unit_test(bad_ones),
        cmocka_unit_test(answers),
    };
    return cmocka_run_group_tests_name("app/mcp_protocol", tests, NULL, NULL);
}
