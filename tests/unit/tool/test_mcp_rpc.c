/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/client/mcp_rpc.h"

#include <string.h>

#include "base/limits.h"
#include "check.h"

static const struct {
    const char *text;
    int kind; /* -1: refused */
    uint64_t number;
    const char *id, *method;
} rows[] = {
    {"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}", RPC_RESULT, 7, "", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1,\"message\":\"m\"}}", RPC_ERROR, 7, "",
     ""},
    {"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":1,\"message\":\"m\"}}", RPC_ERROR, 0, "", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}", RPC_ERROR, 0, "", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"result\":{}}", RPC_RESULT, 0, "", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":-7,\"result\":{}}", RPC_RESULT, 0, "", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"method\":\"ping\"}", RPC_REQUEST, 0, "\"a\\\"b\"",
     "ping"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1.50,\"method\":\"ping\",\"params\":null}", RPC_REQUEST, 0,
     "1.50", "ping"},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{}}", RPC_NOTIFICATION, 0, "", "n"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":[]}", -1, 0, "", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}", -1, 0, "", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", -1, 0, "", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[]}", -1, 0, "", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"no\"}", -1, 0, "", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1}", -1, 0, "", ""},
    {"{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}", -1, 0, "", ""},
    {"{\"id\":1,\"result\":{}}", -1, 0, "", ""},
    {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]", -1, 0, "", ""},
    {"7", -1, 0, "", ""},
    {"", -1, 0, "", ""},
};

static void test_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        struct rpc_message message = {0};
        struct fault why = {0};
        arena_init(&arena);
        enum err e = rpc_parse(&arena, str_c(rows[i].text), &message, &why);
        if (rows[i].kind < 0) {
            assert_int_equal(e, ERR_BAD_REQUEST);
            assert_true(why.text[0]);
            continue;
        }
        if (e) fail_msg("row %zu: %s", i, why.text);
        assert_int_equal(message.kind, rows[i].kind);
        assert_int_equal(message.number, rows[i].number);
        assert_str(message.id, str_c(rows[i].id));
        assert_str(message.method, str_c(rows[i].method));
    }
}

static void test_write(void **state)
{
    AUTO(buf_done) struct buf out;
    struct json_writer w;
    (void)state;
    buf_init(&out, 4096);
    rpc_begin(&w, &out, 3, "m");
    json_member(&w, STR("a"), STR("b"));
    rpc_meta(&w, false);
    rpc_end(&w);
    assert_str(buf_str(&out),
               STR("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"m\",\"params\":{\"a\":"
                   "\"b\",\"_meta\":{}}}"));
    buf_clear(&out);
    rpc_begin(&w, &out, 0, "n");
    rpc_end(&w);
    assert_str(buf_str(&out), STR("{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{}}"));
    buf_clear(&out);
    rpc_answer(&out, STR("\"x\""), STR("{\"a\":1}"));
    assert_str(buf_str(&out), STR("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{\"a\":1}}"));
    buf_clear(&out);
    rpc_refuse(&out, STR("4"), -32601, "no");
    assert_str(buf_str(&out), STR("{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":-32601,"
                                  "\"message\":\"no\"}}"));
}

int test_mcp_rpc(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parse), cmocka_unit_test(test_write)};
    return cmocka_run_group_tests_name("mcp_rpc", tests, NULL, NULL);
}
