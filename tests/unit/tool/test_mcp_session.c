/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions with MCP servers: which version is spoken, what is listed, what is remembered, and what
 * happens when the server is gone.
 */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "store/fixture.h"
#include "store/table/settings.h"
#include "tool/mcp_peer.h"

#define TOOL(name)          "{\"name\":\"" name "\",\"inputSchema\":{\"type\":\"object\"}}"
#define DISCOVERED(version) "{\"supportedVersions\":[" version "],\"capabilities\":{\"tools\":{}}}"
#define GREETED(version)                                                    \
    "{\"protocolVersion\":\"" version "\",\"capabilities\":{\"tools\":{}}," \
    "\"serverInfo\":{\"name\":\"x\",\"version\":\"1\"}}"

static void open_link(struct peer *peer)
{
    peer_settle(peer);
    assert_non_null(peer->link);
    mcp_link_enter(&peer->link->link);
    mcp_link_tell_open(&peer->link->link);
    mcp_link_leave(&peer->link->link);
}

static bool has_link(struct peer *peer, void *arg)
{
    return peer->link && peer->opened >= *(int *)arg;
}

static bool is_away(struct peer *peer, void *arg)
{
    (void)arg;
    return peer->server->session.state == SESSION_RESTING;
}

/* ---- versions ---- */

/* What is answered to server/discover, and what follows. */
static const struct {
    const char *answer; /* NULL: error_code with error_rest */
    int error_code;
    const char *error_rest;
    const char *next; /* the next method; NULL: it is given up */
    const char *why;
} probes[] = {
    {DISCOVERED("\"2026-07-28\""), 0, NULL, "tools/list", NULL},
    {DISCOVERED("\"2099-01-01\",\"2026-07-28\""), 0, NULL, "tools/list", NULL},
    {DISCOVERED("\"2025-11-25\""), 0, NULL, "initialize", NULL},
    {DISCOVERED("\"2099-01-01\""), 0, NULL, NULL, "2099-01-01"},
    {"{}", 0, NULL, "initialize", NULL},
    {NULL, -32601, "\"no\"", "initialize", NULL},
    {NULL, -32602, "\"no\"", "initialize", NULL},
    {NULL, -32000, "\"not initialized\"", "initialize", NULL},
    {NULL, -32022, "\"no\",\"data\":{\"supported\":[\"2025-06-18\"]}", "initialize", NULL},
    {NULL, -32022, "\"no\",\"data\":{\"supported\":[\"2099-01-01\"]}", NULL, "2099-01-01"},
    {NULL, -32021, "\"needs sampling\"", NULL, "needs sampling"},
    {NULL, -32020, "\"other header\"", NULL, "other header"},
};

static void test_probes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(probes); i++) {
        struct peer peer;
        peer_init(&peer, false);
        peer_begin(&peer);
        open_link(&peer);
        const struct peer_post *probe = peer_next(&peer, "server/discover");
        assert_str(peer_member(&peer, probe, "params._meta"),
                   STR("{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                       "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"fermata\",\"title\":"
                       "\"Fermata\",\"version\":\"" FERMATA_VERSION "\"},"
                       "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{"
                       "\"form\":{},\"url\":{}}}}"));
        if (probes[i].answer)
            peer_answer(&peer, probe, probes[i].answer);
        else
            peer_error(&peer, probe, probes[i].error_code, probes[i].error_rest);
        if (probes[i].next) {
            peer_next(&peer, probes[i].next);
        } else {
            peer_until(&peer, is_away, NULL);
            if (!strstr(peer.why, probes[i].why))
                fail_msg("row %zu: \"%s\" without \"%s\"", i, peer.why, probes[i].why);
        }
        peer_done(&peer);
    }
}

static const struct {
    const char *version;
    bool known;
} greetings[] = {
    {GREETED("2025-11-25"), true},  {GREETED("2025-06-18"), true},  {GREETED("2025-03-26"), true},
    {GREETED("2024-11-05"), false}, {GREETED("2031-01-01"), false}, {"{}", false},
};

static void test_greetings(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(greetings); i++) {
        struct peer peer;
        peer_init(&peer, true);
        peer_begin(&peer);
        open_link(&peer);
        peer_lose(&peer, peer_next(&peer, "server/discover"), MCP_AWAY, 400, "HTTP 400");
        const struct peer_post *greet = peer_next(&peer, "initialize");
        assert_str(peer_member(&peer, greet, "params.protocolVersion"), STR("2025-11-25"));
        assert_string_equal(greet->headers, "");
        mcp_link_enter(&peer.link->link);
        mcp_link_tell_session(&peer.link->link, STR("s-1"));
        mcp_link_leave(&peer.link->link);
        peer_answer(&peer, greet, greetings[i].version);
        if (!greetings[i].known) {
            peer_until(&peer, is_away, NULL);
            assert_non_null(strstr(peer.why, "it speaks the MCP versions"));
        } else {
            const struct peer_post *ready = peer_next(&peer, "notifications/initialized");
            assert_int_equal(ready->request, 0);
            assert_non_null(strstr(ready->headers, "Mcp-Session-Id: s-1\n"));
            assert_non_null(strstr(ready->headers, "MCP-Protocol-Version: 2025-"));
            peer_next(&peer, "tools/list");
            assert_int_equal(peer.listens, 1);
        }
        peer_done(&peer);
    }
}

/* HTTP: an older server refuses in its own way; who we are is another matter. */
static void test_probe_lost(void **state)
{
    static const struct {
        enum mcp_loss loss;
        int status;
        bool older;
    } rows[] = {{MCP_AWAY, 400, true},  {MCP_AWAY, 404, true},  {MCP_AWAY, 405, true},
                {MCP_LOST, 500, true},  {MCP_AWAY, 401, false}, {MCP_AWAY, 403, false},
                {MCP_AWAY, 429, false}, {MCP_AWAY, 0, false},   {MCP_LOST, 0, false}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct peer peer;
        peer_init(&peer, true);
        peer_begin(&peer);
        open_link(&peer);
        const struct peer_post *probe = peer_next(&peer, "server/discover");
        assert_non_null(strstr(probe->headers, "MCP-Protocol-Version: 2026-07-28\n"));
        assert_non_null(strstr(probe->headers, "Mcp-Method: server/discover\n"));
        peer_lose(&peer, probe, rows[i].loss, rows[i].status, "because");
        if (rows[i].older)
            peer_next(&peer, "initialize");
        else
            peer_until(&peer, is_away, NULL);
        peer_done(&peer);
    }
}

/* A child that keeps silent is greeted in the old way; its late answer still counts. */
static void test_silence(void **state)
{
    struct peer peer;
    (void)state;
    peer_init(&peer, false);
    peer.ways.pace.probe_ms = 5;
    peer_begin(&peer);
    open_link(&peer);
    const struct peer_post *probe = peer_next(&peer, "server/discover");
    const struct peer_post *greet = peer_next(&peer, "initialize");
    peer_answer(&peer, probe, DISCOVERED("\"2026-07-28\""));
    peer_next(&peer, "tools/list");
    assert_true(peer.server->session.modern);
    peer_error(&peer, greet, -32602, "\"no\"");
    assert_int_equal(peer.server->session.state, SESSION_LISTING);
    peer_done(&peer);
}

/* A child that dies of server/discover is started again at once, and greeted. */
static void test_scared(void **state)
{
    struct peer peer;
    int two = 2;
    (void)state;
    peer_init(&peer, false);
    peer.ways.pace.rest_ms = 60 * 1000;
    peer_begin(&peer);
    open_link(&peer);
    peer_next(&peer, "server/discover");
    peer_down(&peer, "it ended");
    peer_until(&peer, has_link, &two);
    peer_up_legacy(&peer, "[" TOOL("a") "]");
    assert_string_equal(mcp_server_why(peer.server), "");
    peer_done(&peer);
}

/* ---- requests of the server ---- */

static void test_requests(void **state)
{
    struct peer peer;
    (void)state;
    peer_init(&peer, false);
    peer_begin(&peer);
    peer_up_legacy(&peer, "[]");
    peer_say(&peer, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}");
    assert_str(peer_next(&peer, "")->json, STR("{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}"));
    static const char *const others[] = {"roots/list", "sampling/createMessage", "what/ever"};
    for (size_t i = 0; i < COUNT(others); i++) {
        peer_say(&peer, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\",\"params\":{}}",
                 others[i]);
        const struct peer_post *post = peer_next(&peer, "");
        assert_str(peer_member(&peer, post, "error.code"), STR("-32601"));
        assert_str(peer_member(&peer, post, "id"), STR("7"));
    }
    peer_say(&peer,
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":"
             "\"info\",\"data\":\"hello\"}}");
    assert_non_null(strstr(peer.notes, "message: hello\n"));
    peer_say(&peer, "nonsense");
    assert_non_null(strstr(peer.notes, "unreadable message"));
    assert_true(peer_nothing(&peer));
    peer_done(&peer);
}

/* ---- lists ---- */

static str names(struct peer *peer)
{
    AUTO(buf_done) struct buf out;
    struct tools tools = mcp_tools(peer->server);
    buf_init(&out, 4096);
    for (size_t i = 0; i < tools.count; i++)
        buf_printf(&out, "%s%.*s", i ? " " : "", STR_ARG(tools.rows[i].name));
    return arena_str(&peer->arena, buf_str(&out));
}

static void test_pages(void **state)
{
    struct peer peer;
    (void)state;
    peer_init(&peer, false);
    peer_begin(&peer);
    open_link(&peer);
    peer_answer(&peer, peer_next(&peer, "server/discover"), DISCOVERED("\"2026-07-28\""));
    const struct peer_post *list = peer_next(&peer, "tools/list");
    assert_str(peer_member(&peer, list, "params.cursor"), STR("(none)"));
    peer_answer(&peer, list, "{\"tools\":[" TOOL("a") "],\"nextCursor\":\"\"}");
    list = peer_next(&peer, "tools/list"); /* an empty cursor is one */
    assert_str(peer_member(&peer, list, "params.cursor"), STR(""));
    peer_answer(&peer, list,
                "{\"tools\":[" TOOL("b") ",{\"name\":\"bad\"},7],\"nextCursor\":\"p\\\"2\"}");
    list = peer_next(&peer, "tools/list");
    assert_str(peer_member(&peer, list, "params.cursor"), STR("p\"2"));
    assert_int_equal(peer.tools_told, 0);
    peer_answer(&peer, list, "{\"tools\":[" TOOL("c") "],\"nextCursor\":null}");
    assert_str(names(&peer), STR("files.a files.b files.c"));
    assert_int_equal(peer.tools_told, 1);
    assert_non_null(strstr(peer.notes, "tool left out: bad:"));
    peer_done(&peer);
}

static void relist(struct peer *peer, const char *tools)
{
    char text[8192];
    snprintf(text, sizeof text, "{\"tools\":%s}", tools);
    peer_say(peer, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
    peer_answer(peer, peer_next(peer, "tools/list"), text);
}

static void test_changes(void **state)
{
    struct peer peer;
    (void)state;
    peer_init(&peer, false);
    peer_begin(&peer);
    peer_up_modern(&peer, "[" TOOL("a") "]");
    const struct tool *before = mcp_tools(peer.server).rows;
    relist(&peer, "[" TOOL("a") "]"); /* the same: nothing is told */
    assert_int_equal(peer.tools_told, 1);
    relist(&peer, "[" TOOL("a") "," TOOL("b") "]");
    assert_int_equal(peer.tools_told, 2);
    assert_str(names(&peer), STR("files.a files.b"));
    assert_str(before->name, STR("files.a")); /* old rows stay */
    relist(&peer, "[" TOOL("a") "]");
    assert_true(mcp_tools(peer.server).rows == before); /* the same list again */
    /* Many at once make one list, and one more for what came meanwhile. */
    for (int i = 0; i < 10; i++)
        peer_say(&peer, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
    const struct peer_post *list = peer_next(&peer, "tools/list");
    assert_true(peer_nothing(&peer));
    peer_say(&peer, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
    assert_true(peer_nothing(&peer));
    peer_answer(&peer, list, "{\"tools\":[]}");
    peer_error(&peer, peer_next(&peer, "tools/list"), -32603, "\"oops\"");
    assert_int_equal(peer.server->session.state, SESSION_UP); /* the list stays */
    assert_true(peer_nothing(&peer));
    peer_done(&peer);
}

static void test_change_limit(void **state)
{
    struct peer peer;
    char text[200];
    (void)state;
    peer_init(&peer, false);
    peer_begin(&peer);
    peer_up_modern(&peer, "[]");
    for (int i = 1; i <= MCP_LISTS_MAX; i++) {
        snprintf(text, sizeof text, "[" TOOL("t%d") "]", i);
        peer.sent_count = peer.seen = 0;
        relist(&peer, text);
    }
    snprintf(text, sizeof text, "files.t%d", MCP_LISTS_MAX - 1);
    assert_str(names(&peer), str_c(text)); /* one list was the empty one */
    assert_non_null(strstr(peer.notes, "list refused"));
    peer_done(&peer);
}

/* The stream of changes: opened again when it ends, never if the server has none. */
static void test_listen(void **state)
{
    struct peer peer;
    (void)state;
    peer_init(&peer, true);
    peer_begin(&peer);
    peer_up_modern(&peer, "[]");
    const struct peer_post *listen = &peer.sent[peer.seen - 1];
    assert_str(peer_member(&peer, listen, "params.notifications.toolsListChanged"), STR("true"));
    peer_lose(&peer, listen, MCP_LOST, 0, "cut");
    listen = peer_next(&peer, "subscriptions/listen");
    peer_answer(&peer, peer_next(&peer, "tools/list"), "{\"tools\":[]}");
    peer_answer(&peer, listen, "{\"resultType\":\"complete\"}");
    listen = peer_next(&peer, "subscriptions/listen");
    peer_answer(&peer, peer_next(&peer, "tools/list"), "{\"tools\":[]}");
    peer_error(&peer, listen, -32601, "\"none\"");
    assert_true(peer_nothing(&peer));
    peer_done(&peer);
}

/* ---- losing it ---- */

static void test_restart(void **state)
{
    struct peer peer;
    int second = 2;
    (void)state;
    peer_init(&peer, false);
    peer_begin(&peer);
    peer_up_legacy(&peer, "[" TOOL("a") "]");
    assert_string_equal(peer.why, "");
    peer_down(&peer, "the program ended with 1");
    assert_string_equal(peer.why, "the program ended with 1");
    assert_string_equal(mcp_server_why(peer.server), "the program ended with 1");
    assert_str(names(&peer), STR("files.a")); /* its tools stay */
    peer_until(&peer, has_link, &second);
    peer_up_legacy(&peer, "[" TOOL("a") "]"); /* without server/discover: it is known */
    assert_string_equal(mcp_server_why(peer.server), "");
    assert_int_equal(peer.tools_told, 1);
    peer_done(&peer);
}

static void test_rests(void **state)
{
    struct peer peer;
    msec before = 0;
    (void)state;
    peer_init(&peer, false);
    peer.ways.pace.rest_ms = 8;
    peer.ways.pace.rest_ms_max = 32;
    peer_begin(&peer);
    for (int i = 1; i < 6; i++) {
        peer_until(&peer, has_link, &i);
        peer_down(&peer, "no such program");
        assert_true(peer.server->session.rest_ms >= before);
        assert_true(peer.server->session.rest_ms <= 32);
        before = peer.server->session.rest_ms;
    }
    assert_int_equal(before, 32);
    assert_int_equal(peer.states_told, 1); /* the same reason once */
    peer_done(&peer);
}

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
    (void)state;
    for (int up = 0; up < 2; up++) {
        peer_init(&peer, false);
        peer_begin(&peer);
        if (up) peer_up_modern(&peer, "[]");
        mcp_server_stop(peer.server, on_stopped, &peer);
        peer_settle(&peer);
        assert_int_equal(peer.closes, 1);
        assert_int_equal(peer.stopped, 0);
        peer_down(&peer, "it left");
        peer_until(&peer, is_stopped, NULL);
        peer_settle(&peer);
        assert_int_equal(peer.stopped, 1);
        assert_int_equal(peer.opened, 1); /* nothing is begun any more */
        peer_done(&peer);
    }
    peer_init(&peer, false);
    peer_begin(&peer);
    peer.ways.pace.rest_ms = 60 * 1000;
    peer_down(&peer, "gone"); /* resting: there is nothing to close */
    mcp_server_stop(peer.server, on_stopped, &peer);
    peer_until(&peer, is_stopped, NULL);
    peer_done(&peer);
}

/* ---- what is remembered ---- */

static enum err run_damage(struct job *job, struct db *db)
{
    (void)job;
    return settings_set(db, STR("mcp/files"), STR("tool/0"), STR(TOOL("other")));
}

static void memory_open(struct peer *peer, const char *folder)
{
    struct fault why = {0};
    peer_init(peer, false);
    if (store_open(folder, peer->loop, &peer->options.store, &why)) fail_msg("%s", why.text);
    peer_begin(peer);
}

static void memory_close(struct peer *peer)
{
    store_close(peer->options.store); /* finishes what is queued */
    peer->server->options.store = NULL;
    peer_done(peer);
}

static void test_memory(void **state)
{
    char folder[FOLDER_BYTES];
    struct peer peer;
    (void)state;
    folder_make(folder);
    memory_open(&peer, folder);
    assert_int_equal(mcp_tools(peer.server).count, 0);
    peer_up_modern(&peer, "[" TOOL("a") "," TOOL("b") "]");
    memory_close(&peer);

    /* Known before it is reached; and then nothing is told, for it is the same. */
    memory_open(&peer, folder);
    assert_str(names(&peer), STR("files.a files.b"));
    peer_up_modern(&peer, "[" TOOL("a") "," TOOL("b") "]");
    assert_int_equal(peer.tools_told, 0);
    relist(&peer, "[" TOOL("b") "]");
    memory_close(&peer);

    memory_open(&peer, folder);
    assert_str(names(&peer), STR("files.b"));
    struct job damage = {.run = run_damage};
    assert_int_equal(store_run(peer.options.store, &damage), OK);
    memory_close(&peer);

    /* A row that is another than it was: nothing is remembered, and that is said. */
    memory_open(&peer, folder);
    assert_int_equal(mcp_tools(peer.server).count, 0);
    assert_non_null(strstr(peer.notes, "not remembered"));
    memory_close(&peer);
    folder_remove(folder);
}

static void test_options(void **state)
{
    static const str command[] = {STR("x")};
    static const struct mcp_pair broken[] = {{STR("A"), STR("b\nc")}};
    static const struct {
        struct mcp_options options;
        const char *field;
    } rows[] = {
        {{.name = STR(""), .command = command, .command_count = 1}, "name"},
        {{.name = STR("a.b"), .command = command, .command_count = 1}, "name"},
        {{.name = STR("a")}, "url"},
        {{.name = STR("a"), .url = STR("ftp://x")}, "url"},
        {{.name = STR("a"), .url = STR("http://x"), .command = command, .command_count = 1}, "url"},
        {{.name = STR("a"), .url = STR("http://x"), .headers = broken, .header_count = 1},
         "headers"},
        {{.name = STR("a"), .url = STR("http://x"), .timeout_s = 1000000}, "timeout_s"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mcp_server *server = NULL;
        struct fault why = {0};
        assert_int_equal(mcp_server_new(&rows[i].options, &server, &why), ERR_INVALID_FIELD);
        assert_string_equal(why.field, rows[i].field);
        assert_null(server);
    }
}

int test_mcp_session(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probes),       cmocka_unit_test(test_greetings),
        cmocka_unit_test(test_probe_lost),   cmocka_unit_test(test_silence),
        cmocka_unit_test(test_scared),       cmocka_unit_test(test_requests),
        cmocka_unit_test(test_pages),        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_change_limit), cmocka_unit_test(test_listen),
        cmocka_unit_test(test_restart),      cmocka_unit_test(test_rests),
        cmocka_unit_test(test_stop),         cmocka_unit_test(test_memory),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests_name("mcp_session", tests, NULL, NULL);
}
