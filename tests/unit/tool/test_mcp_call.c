/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of MCP tools: what is sent, how they end, what servers ask on the way.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tool/elicit.h"
#include "tool/mcp_peer.h"

#define TOOLS                                                                    \
    "[{\"name\":\"write\",\"inputSchema\":{\"type\":\"object\"}},"               \
    "{\"name\":\"routed\",\"inputSchema\":{\"type\":\"object\",\"properties\":{" \
    "\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"}}}}]"
#define FORM                                                                                       \
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]" \
    "}"
#define TEXT(words) "{\"content\":[{\"type\":\"text\",\"text\":\"" words "\"}]}"

static void begin(struct peer *peer, bool http, bool modern)
{
    peer_init(peer, http);
    peer_begin(peer);
    if (modern)
        peer_up_modern(peer, TOOLS);
    else
        peer_up_legacy(peer, TOOLS);
}

static void call_write(struct peer *peer, struct peer_call *call)
{
    struct tool_request request = peer_request("{\"a\": 1}");
    peer_call(peer, call, "files.write", &request);
}

/* ---- sending and ending ---- */

static void test_sent(void **state)
{
    struct peer peer;
    struct peer_call call;
    (void)state;
    for (int modern = 0; modern < 2; modern++) {
        begin(&peer, true, modern);
        struct tool_request request = peer_request("{\n  \"region\": \"\u5317\",\n\t\"n\": 1.50}");
        peer_call(&peer, &call, "files.routed", &request);
        const struct peer_post *post = peer_next(&peer, "tools/call");
        assert_str(peer_member(&peer, post, "params.name"), STR("routed"));
        assert_str(peer_member(&peer, post, "params.arguments.n"), STR("1.50"));
        assert_str(peer_member(&peer, post, "params._meta.fermata/idempotencyKey"), STR("call-1"));
        assert_str(peer_member(&peer, post, "params._meta.progressToken"),
                   peer_member(&peer, post, "id"));
        bool says_version =
            json_get(json_get(json_get(peer_json(&peer, post), STR("params")), STR("_meta")),
                     STR("io.modelcontextprotocol/protocolVersion"));
        assert_int_equal(says_version, modern);
        assert_int_equal(strstr(post->headers, "Mcp-Method: tools/call\n") != NULL, modern);
        assert_int_equal(strstr(post->headers, "Mcp-Name: routed\n") != NULL, modern);
        assert_int_equal(strstr(post->headers, "Mcp-Param-Region: =?base64?5YyX?=\n") != NULL,
                         modern);
        peer_answer(&peer, post, TEXT("done"));
        peer_wait_end(&call);
        assert_int_equal(call.end, TOOL_DONE);
        assert_str(call.content, STR("done"));
        peer_done(&peer);
    }
}

static const struct {
    bool modern;
    const char *answer; /* NULL: an error */
    int code;
    const char *rest;
    enum tool_end end;
    const char *error;
} answers[] = {
    {true, TEXT("ok"), 0, NULL, TOOL_DONE, ""},
    {true, "{\"resultType\":\"complete\",\"content\":[]}", 0, NULL, TOOL_DONE, ""},
    {true, "{\"resultType\":\"task\"}", 0, NULL, TOOL_FAILED,
     "the server's answer is of a type that Fermata does not know: task"},
    {false, "{\"resultType\":\"task\",\"content\":[]}", 0, NULL, TOOL_DONE, ""},
    {true, "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"no\\nway\"}]}", 0, NULL,
     TOOL_FAILED, "no way"},
    {true, NULL, -32602, "\"Unknown tool\"", TOOL_FAILED, "-32602: Unknown tool"},
    {true, NULL, -32603, "\"with tok-12345 in it\"", TOOL_FAILED, "-32603: with ********* in it"},
    {true, "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"tok-12345\"}]}", 0, NULL,
     TOOL_FAILED, "*********"},
    {true,
     "{\"resultType\":\"input_required\",\"inputRequests\":{\"k\":{\"method\":"
     "\"sampling/createMessage\"}}}",
     0, NULL, TOOL_FAILED,
     "the server asks for sampling/createMessage, which Fermata does not offer to servers"},
    {true, "{\"resultType\":\"input_required\"}", 0, NULL, TOOL_FAILED,
     "the server needs input, and does not say which"},
};

static void test_answers(void **state)
{
    static const struct mcp_pair headers[] = {{STR("Authorization"), STR("Bearer tok-12345")}};
    struct peer peer;
    struct peer_call call;
    (void)state;
    for (size_t i = 0; i < COUNT(answers); i++) {
        peer_init(&peer, true);
        peer.options.headers = headers;
        peer.options.header_count = 1;
        peer_begin(&peer);
        if (answers[i].modern)
            peer_up_modern(&peer, TOOLS);
        else
            peer_up_legacy(&peer, TOOLS);
        call_write(&peer, &call);
        const struct peer_post *post = peer_next(&peer, "tools/call");
        if (answers[i].answer)
            peer_answer(&peer, post, answers[i].answer);
        else
            peer_error(&peer, post, answers[i].code, answers[i].rest);
        peer_wait_end(&call);
        if (call.end != answers[i].end) fail_msg("row %zu: end %d", i, call.end);
        assert_str(call.error, str_c(answers[i].error));
        peer_done(&peer);
    }
}

/* An answer longer than HTTP_TOOL_LOOP_BYTES_MAX is read beside the loop; one that no parser takes
 * ends its call all the same. */
static void test_long(void **state)
{
    enum { BYTES = 200 * 1024 };
    static char text[BYTES + 1];
    struct peer peer;
    struct peer_call call;
    (void)state;
    memset(text, 'x', BYTES);
    begin(&peer, false, true);
    call_write(&peer, &call);
    const struct peer_post *post = peer_next(&peer, "tools/call");
    peer_say(
        &peer,
        "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
        "\"%s\"}]}}",
        (unsigned long long)post->request, text);
    assert_int_equal(call.ends, 0);
    peer_wait_end(&call);
    assert_int_equal(call.end, TOOL_DONE);
    assert_int_equal(call.result.len, BYTES + 2); /* a JSON string */

    for (int i = 0; i < 2; i++) {
        call_write(&peer, &call);
        post = peer_next(&peer, "tools/call");
        peer_say(&peer,
                 "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":{\"a\":{\"k\":1,\"k\":%s%s%s}}}",
                 (unsigned long long)post->request, i ? "\"" : "2", i ? text : "", i ? "\"" : "");
        peer_wait_end(&call);
        assert_int_equal(call.end, TOOL_LOST);
    }

    /* Cancelled, and the server freed, while one is being read. */
    call_write(&peer, &call);
    post = peer_next(&peer, "tools/call");
    peer_say(&peer, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":{\"x\":\"%s\"}}",
             (unsigned long long)post->request, text);
    tool_cancel(call.tool, call.call);
    peer_done(&peer);
    assert_int_equal(call.ends, 0);
}

static void test_losses(void **state)
{
    static const struct {
        bool http;
        enum mcp_loss loss;
        int status;
        enum tool_end end;
        const char *error;
    } rows[] = {
        {false, MCP_LOST, 0, TOOL_LOST,
         "the MCP server files was lost in the middle of the call: because"},
        {false, MCP_AWAY, 0, TOOL_AWAY, "the MCP server files is not reachable: because"},
        {true, MCP_LOST, 502, TOOL_LOST,
         "the MCP server files was lost in the middle of the call: because"},
        {true, MCP_AWAY, 401, TOOL_AWAY, "the MCP server files is not reachable: because"},
    };
    struct peer peer;
    struct peer_call call;
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        begin(&peer, rows[i].http, true);
        call_write(&peer, &call);
        peer_lose(&peer, peer_next(&peer, "tools/call"), rows[i].loss, rows[i].status, "because");
        peer_wait_end(&call);
        assert_int_equal(call.end, rows[i].end);
        assert_str(call.error, str_c(rows[i].error));
        peer_done(&peer);
    }
}

/* HTTP: a session that is gone, or a server that is not there, surely did nothing: a new session, and
 * the call again, once. */
static void test_new_session(void **state)
{
    struct peer peer;
    struct peer_call call;
    (void)state;
    begin(&peer, true, false);
    call_write(&peer, &call);
    peer_lose(&peer, peer_next(&peer, "tools/call"), MCP_NO_SESSION, 404, "no session");
    peer_up_legacy(&peer, TOOLS);
    const struct peer_post *post = peer_next(&peer, "tools/call");
    peer_lose(&peer, post, MCP_NO_SESSION, 404, "no session");
    peer_wait_end(&call);
    assert_int_equal(call.end, TOOL_AWAY);
    peer_done(&peer);

    begin(&peer, true, false);
    call_write(&peer, &call);
    peer_lose(&peer, peer_next(&peer, "tools/call"), MCP_AWAY, 0, "refused");
    peer_lose(&peer, peer_next(&peer, "initialize"), MCP_AWAY, 0, "refused again");
    peer_wait_end(&call);
    assert_int_equal(call.end, TOOL_AWAY);
    assert_str(call.error, STR("the MCP server files is not reachable: refused again"));
    assert_string_equal(peer.why, "refused again");
    peer_done(&peer);
}

/* While it is on its way calls wait; when it does not come they are away. */
static void test_waiting(void **state)
{
    struct peer peer;
    struct peer_call call;
    (void)state;
    begin(&peer, false, true);
    peer_down(&peer, "it fell");
    call_write(&peer, &call); /* right after an attempt: away at once */
    peer_wait_end(&call);
    assert_str(call.error, STR("the MCP server files is not reachable: it fell"));
    assert_int_equal(call.end, TOOL_AWAY);
    peer_done(&peer);

    begin(&peer, false, true);
    peer.server->ways.pace.rest_ms = 0;
    peer_down(&peer, "it fell");
    call_write(&peer, &call); /* wakes it */
    assert_int_equal(peer.opened, 2);
    peer_settle(&peer);
    assert_int_equal(call.ends, 0);
    peer_up_modern(&peer, TOOLS);
    peer_answer(&peer, peer_next(&peer, "tools/call"), TEXT("done"));
    peer_wait_end(&call);
    peer_done(&peer);

    begin(&peer, false, true);
    peer.server->ways.pace.rest_ms = 0;
    peer.server->ways.pace.wait_ms = 5;
    peer_down(&peer, "it fell");
    call_write(&peer, &call);
    peer_wait_end(&call); /* nobody came */
    assert_int_equal(call.end, TOOL_AWAY);
    peer_done(&peer);
}

static void test_time(void **state)
{
    struct peer peer;
    struct peer_call call;
    (void)state;
    begin(&peer, false, true);
    peer.server->ways.pace.call_ms = 5;
    call_write(&peer, &call);
    const struct peer_post *post = peer_next(&peer, "tools/call");
    peer_wait_end(&call);
    assert_int_equal(call.end, TOOL_LOST);
    assert_true(post->forgotten);
    const struct peer_post *off = peer_next(&peer, "notifications/cancelled");
    assert_str(peer_member(&peer, off, "params.requestId"), peer_member(&peer, post, "id"));
    peer_answer(&peer, post, TEXT("late")); /* nobody listens */
    peer_done(&peer);
}

/* How the server hears that nobody waits any more. */
static void test_cancel(void **state)
{
    static const struct {
        bool http, modern, told;
    } rows[] = {
        {false, false, true}, {false, true, true}, {true, false, true}, {true, true, false}};
    struct peer peer;
    struct peer_call call;
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        begin(&peer, rows[i].http, rows[i].modern);
        call_write(&peer, &call);
        const struct peer_post *post = peer_next(&peer, "tools/call");
        tool_cancel(call.tool, call.call);
        assert_true(post->forgotten);
        if (rows[i].told) peer_next(&peer, "notifications/cancelled");
        assert_true(peer_nothing(&peer));
        assert_int_equal(call.ends, 0);
        peer_done(&peer);
    }
}

/* ---- questions of older servers ---- */

static void ask(struct peer *peer, const char *id, const char *words, const char *schema)
{
    peer_say(peer,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"elicitation/create\",\"params\":{"
             "\"message\":\"%s\",\"requestedSchema\":%s}}",
             id, words, schema);
}

static void test_ask(void **state)
{
    struct peer peer;
    struct peer_call call;
    (void)state;
    begin(&peer, false, false);
    peer.server->ways.pace.call_ms = 50;
    call_write(&peer, &call);
    const struct peer_post *post = peer_next(&peer, "tools/call");
    ask(&peer, "\"q-1\"", "Who?", FORM);
    peer_wait_ask(&call, 1);
    assert_false(call.ended_asking);
    assert_int_equal(call.first, 0);
    assert_str(call.questions[0].message, STR("Who?"));
    assert_str(call.questions[0].schema, STR(FORM));
    for (int i = 0; i < 40; i++) peer_settle(&peer); /* longer than the call may take */
    assert_int_equal(call.ends, 0);
    tool_reply(call.tool, call.call, 0,
               &(struct tool_reply){STR("accept"), STR("{\"name\":\"Ann\"}")});
    assert_str(peer_next(&peer, "")->json,
               STR("{\"jsonrpc\":\"2.0\",\"id\":\"q-1\",\"result\":{\"action\":\"accept\","
                   "\"content\":{\"name\":\"Ann\"}}}"));
    ask(&peer, "9", "Sure?", "{\"type\":\"object\",\"properties\":{}}");
    peer_wait_ask(&call, 2);
    assert_int_equal(call.first, 1);
    tool_reply(call.tool, call.call, 1, &(struct tool_reply){.action = STR("decline")});
    assert_str(peer_next(&peer, "")->json,
               STR("{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{\"action\":\"decline\"}}"));
    peer_answer(&peer, post, TEXT("done"));
    peer_wait_end(&call);
    assert_int_equal(call.end, TOOL_DONE);
    peer_done(&peer);
}

/* Not shown to anybody: answered at once, with a reason. */
static void test_not_asked(void **state)
{
    static const char *const params[] = {
        "\"message\":\"x\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"password\":{"
        "\"type\":\"string\"}}}",
        "\"message\":\"x\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"o\":{"
        "\"type\":"
        "\"object\"}}}",
        "\"message\":\"x\"",
        "\"message\":\"x\",\"mode\":\"url\",\"url\":\"javascript:alert(1)\"",
        "\"message\":\"x\",\"mode\":\"url\",\"url\":\"https://good.example@evil.example/\"",
        "\"message\":\"x\",\"mode\":\"telepathy\"",
        "\"mode\":\"form\"",
    };
    struct peer peer;
    struct peer_call call;
    (void)state;
    begin(&peer, false, false);
    call_write(&peer, &call);
    peer_next(&peer, "tools/call");
    for (size_t i = 0; i < COUNT(params); i++) {
        peer_say(&peer,
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\",\"params\":{%s}}",
                 params[i]);
        const struct peer_post *post = peer_next(&peer, "");
        assert_str(peer_member(&peer, post, "result.action"), STR("decline"));
        assert_true(peer_member(&peer, post, "result._meta.fermata/reason").len > 10);
    }
    assert_int_equal(call.asks, 0);
    /* A page. */
    peer_say(&peer,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\",\"params\":{\"mode\":"
             "\"url\",\"message\":\"Log in\",\"url\":\"https://a.example:8/x?y\",\"elicitationId\":"
             "\"e\"}}");
    peer_wait_ask(&call, 1);
    assert_int_equal(call.first, 0);
    assert_str(call.questions[0].message, STR("Log in (a.example:8)"));
    assert_str(call.questions[0].url, STR("https://a.example:8/x?y"));
    tool_reply(call.tool, call.call, 0, &(struct tool_reply){.action = STR("accept")});
    assert_str(peer_member(&peer, peer_next(&peer, ""), "result"), STR("{\"action\":\"accept\"}"));
    tool_cancel(call.tool, call.call);
    peer_next(&peer, "notifications/cancelled");
    /* No call is open. */
    ask(&peer, "2", "Who?", FORM);
    assert_str(peer_member(&peer, peer_next(&peer, ""), "error.code"), STR("-32602"));
    peer_done(&peer);
}

/* Calls of two people, and a question that does not say whose it is. */
static void test_whose(void **state)
{
    struct peer peer;
    struct peer_call ann, bob;
    (void)state;
    begin(&peer, false, false);
    struct tool_request request = peer_request("{}");
    peer_call(&peer, &ann, "files.write", &request);
    request.owner = STR("bob");
    peer_call(&peer, &bob, "files.write", &request);
    peer_next(&peer, "tools/call");
    const struct peer_post *second = peer_next(&peer, "tools/call");
    ask(&peer, "1", "Who?", FORM);
    assert_str(peer_member(&peer, peer_next(&peer, ""), "error.code"), STR("-32602"));
    assert_int_equal(ann.asks + bob.asks, 0);
    peer_answer(&peer, second, TEXT("done"));
    peer_wait_end(&bob);
    ask(&peer, "1", "Who?", FORM);
    peer_wait_ask(&ann, 1);
    /* She is being asked: the next question is of somebody else's call. */
    peer_call(&peer, &bob, "files.write", &request);
    peer_next(&peer, "tools/call");
    ask(&peer, "2", "Who else?", FORM);
    peer_wait_ask(&bob, 1);
    /* Of one person the oldest call without a question. */
    struct peer_call more[2];
    for (int i = 0; i < 2; i++) peer_call(&peer, &more[i], "files.write", &request);
    ask(&peer, "3", "And?", FORM);
    peer_wait_ask(&more[0], 1);
    assert_int_equal(more[1].asks, 0);
    /* Calls may outlive the server in a process that ends; its rows do not. */
    struct tool_call *const open[] = {more[0].call, more[1].call, ann.call, bob.call};
    mcp_server_free(peer.server);
    peer.server = NULL;
    for (size_t i = 0; i < COUNT(open); i++) mcp_ops.cancel(open[i]);
    peer_done(&peer);
}

/* After a restart: what was said already is said again by itself, as long as it is asked the same. */
static void test_replay(void **state)
{
    static const struct {
        const char *message;
        const char *action; /* that was said */
        bool asked;
    } rows[] = {{"Who?", "accept", false}, {"Who?", "", true}, {"Who now?", "accept", true}};
    struct peer peer;
    struct peer_call call;
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        begin(&peer, false, false);
        struct tool_said said = {{.message = STR("Who?"), .schema = STR(FORM)},
                                 {str_c(rows[i].action), STR("{\"name\":\"Ann\"}")}};
        struct tool_request request = peer_request("{}");
        request.said = &said;
        request.said_count = 1;
        peer_call(&peer, &call, "files.write", &request);
        peer_next(&peer, "tools/call");
        ask(&peer, "5", rows[i].message, FORM);
        if (rows[i].asked) {
            peer_wait_ask(&call, 1);
            assert_int_equal(call.first, 0);
        } else {
            assert_str(peer_member(&peer, peer_next(&peer, ""), "result.content.name"), STR("Ann"));
            ask(&peer, "6", "And then?", FORM);
            peer_wait_ask(&call, 1);
            assert_int_equal(call.first, 1);
            tool_reply(call.tool, call.call, 1, &(struct tool_reply){.action = STR("cancel")});
            peer_next(&peer, "");
        }
        tool_cancel(call.tool, call.call);
        peer_done(&peer);
    }
}

/* ---- questions of 2026-07-28 ---- */

#define ELICIT(key, words)                                                                     \
    "\"" key                                                                                   \
    "\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\",\"message\":\"" words \
    "\",\"requestedSchema\":" FORM "}}"

static void test_input_required(void **state)
{
    struct peer peer;
    struct peer_call call;
    (void)state;
    begin(&peer, false, true);
    call_write(&peer, &call);
    peer_answer(
        &peer, peer_next(&peer, "tools/call"),
        "{\"resultType\":\"input_required\",\"requestState\":\"s\\\"1\",\"inputRequests\":{" ELICIT(
            "a", "Who?") "," ELICIT("b", "Where?") ",\"bad\":{\"method\":\"elicitation/"
                                                   "create\",\"params\":{\"message\":\"x\"}}}}");
    peer_wait_ask(&call, 1);
    assert_true(call.ended_asking);
    assert_int_equal(call.question_count, 2);
    assert_str(call.questions[1].id, STR("b"));
    assert_str(call.questions[1].message, STR("Where?"));
    assert_true(call.state.len > 0);
    assert_int_equal(peer.server->call_count, 0);

    /* Started again with the replies; perhaps after a restart. */
    struct tool_said said[2] = {
        {call.questions[0], {STR("accept"), STR("{\"name\":\"Ann\"}")}},
        {call.questions[1], {.action = STR("decline")}},
    };
    struct tool_request request = peer_request("{}");
    request.said = said;
    request.said_count = 2;
    request.state = call.state;
    peer_call(&peer, &call, "files.write", &request);
    const struct peer_post *post = peer_next(&peer, "tools/call");
    assert_str(peer_member(&peer, post, "params.requestState"), STR("s\"1"));
    assert_str(peer_member(&peer, post, "params.inputResponses.a"),
               STR("{\"action\":\"accept\",\"content\":{\"name\":\"Ann\"}}"));
    assert_str(peer_member(&peer, post, "params.inputResponses.b"),
               STR("{\"action\":\"decline\"}"));
    assert_str(peer_member(&peer, post, "params.inputResponses.bad.action"), STR("decline"));
    /* Once more without a question: the state alone goes back, under another number. */
    uint64_t before = post->request;
    peer_answer(&peer, post, "{\"resultType\":\"input_required\",\"requestState\":\"s2\"}");
    post = peer_next(&peer, "tools/call");
    assert_true(post->request != before);
    assert_str(peer_member(&peer, post, "params.requestState"), STR("s2"));
    assert_str(peer_member(&peer, post, "params.inputResponses"), STR("(none)"));
    /* A question without a state: none is sent back. */
    peer_answer(&peer, post,
                "{\"resultType\":\"input_required\",\"inputRequests\":{" ELICIT("a", "Why?") "}}");
    peer_wait_ask(&call, 1);
    said[0].question = call.questions[0];
    request.said_count = 1;
    request.state = call.state;
    peer_call(&peer, &call, "files.write", &request);
    post = peer_next(&peer, "tools/call");
    assert_str(peer_member(&peer, post, "params.requestState"), STR("(none)"));
    assert_str(peer_member(&peer, post, "params.inputResponses.a.action"), STR("accept"));
    peer_answer(&peer, post, TEXT("done"));
    peer_wait_end(&call);
    peer_done(&peer);
}

static void test_sent_back(void **state)
{
    struct peer peer;
    struct peer_call call;
    (void)state;
    begin(&peer, false, true);
    call_write(&peer, &call);
    for (int i = 0; i <= MCP_AGAIN_MAX; i++)
        peer_answer(&peer, peer_next(&peer, "tools/call"),
                    "{\"resultType\":\"input_required\",\"requestState\":\"s\"}");
    peer_wait_end(&call);
    assert_int_equal(call.end, TOOL_FAILED);
    assert_str(call.error, STR("the server keeps sending the call back"));
    assert_true(peer_nothing(&peer));

    /* Nobody can be asked: all is declined. */
    struct tool_request request = peer_request("{}");
    request.on_ask = NULL;
    peer_call(&peer, &call, "files.write", &request);
    peer_answer(&peer, peer_next(&peer, "tools/call"),
                "{\"resultType\":\"input_required\",\"inputRequests\":{" ELICIT("a", "Who?") "}}");
    const struct peer_post *post = peer_next(&peer, "tools/call");
    assert_str(peer_member(&peer, post, "params.inputResponses.a.action"), STR("decline"));
    peer_answer(&peer, post, TEXT("fine"));
    peer_wait_end(&call);
    peer_done(&peer);
}

/* 2025-11-25: pages that have to be opened before the call. */
static void test_pages_first(void **state)
{
    struct peer peer;
    struct peer_call call;
    (void)state;
    for (int accepted = 0; accepted < 2; accepted++) {
        begin(&peer, false, false);
        call_write(&peer, &call);
        peer_error(&peer, peer_next(&peer, "tools/call"), -32042,
                   "\"x\",\"data\":{\"elicitations\":[{\"mode\":\"url\",\"elicitationId\":\"e1\","
                   "\"url\":\"https://a.example/\",\"message\":\"Log in\"}]}");
        peer_wait_ask(&call, 1);
        assert_true(call.ended_asking);
        assert_str(call.questions[0].url, STR("https://a.example/"));
        struct tool_said said = {call.questions[0],
                                 {.action = accepted ? STR("accept") : STR("decline")}};
        struct tool_request request = peer_request("{}");
        request.said = &said;
        request.said_count = 1;
        request.state = call.state;
        peer_call(&peer, &call, "files.write", &request);
        if (accepted) peer_answer(&peer, peer_next(&peer, "tools/call"), TEXT("done"));
        peer_wait_end(&call);
        assert_int_equal(call.end, accepted ? TOOL_DONE : TOOL_FAILED);
        assert_true(peer_nothing(&peer));
        peer_done(&peer);
    }
}

/* ---- progress ---- */

static void test_progress(void **state)
{
    struct peer peer;
    struct peer_call call;
    (void)state;
    begin(&peer, false, true);
    call_write(&peer, &call);
    const struct peer_post *post = peer_next(&peer, "tools/call");
    unsigned long long token = post->request;
    peer_say(&peer,
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
             "\"progressToken\":%llu,\"progress\":0.5,\"total\":2,\"message\":\"half\"}}",
             token);
    assert_str(call.progress_text, STR("0.5/2 half"));
    peer_say(&peer,
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
             "\"progressToken\":%llu,\"progress\":1}}",
             token + 1); /* somebody else's */
    assert_int_equal(call.progress, 1);
    for (int i = 0; i < 100; i++)
        peer_say(&peer,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
                 "\"progressToken\":%llu,\"progress\":%d}}",
                 token, i);
    assert_true(call.progress <= 2 * MCP_PROGRESS_S_MAX); /* a second may have ended meanwhile */
    peer_answer(&peer, post, TEXT("done"));
    peer_wait_end(&call);
    peer_done(&peer);
}

/* ---- the end of the server ---- */

static void on_stopped(void *arg)
{
    ((struct peer *)arg)->stopped++;
}

static bool is_stopped(struct peer *peer, void *arg)
{
    (void)arg;
    return peer->stopped;
}

static void test_stop(void **state)
{
    struct peer peer;
    struct peer_call call, late;
    (void)state;
    begin(&peer, false, true);
    call_write(&peer, &call);
    const struct peer_post *post = peer_next(&peer, "tools/call");
    mcp_server_stop(peer.server, on_stopped, &peer);
    peer_settle(&peer);
    assert_int_equal(peer.closes, 0); /* the call goes on */
    call_write(&peer, &late);
    peer_wait_end(&late);
    assert_int_equal(late.end, TOOL_AWAY);
    peer_answer(&peer, post, TEXT("done"));
    peer_wait_end(&call);
    assert_int_equal(call.end, TOOL_DONE);
    assert_int_equal(peer.closes, 1);
    peer_down(&peer, "it left");
    peer_until(&peer, is_stopped, NULL);
    peer_done(&peer);
}

int test_mcp_call(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sent),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_new_session),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_ask),
        cmocka_unit_test(test_not_asked),
        cmocka_unit_test(test_whose),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_input_required),
        cmocka_unit_test(test_sent_back),
        cmocka_unit_test(test_pages_first),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests_name("mcp_call", tests, NULL, NULL);
}
