/* SPDX-License-Identifier: Apache-2.0
 *
 * Links by HTTP against a server that follows a script (net/script_server.h). Each link carries a
 * secret in its headers, and every reason is searched for it.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "check.h"
#include "mcp/client/mcp.h"
#include "mcp_link_kit.h"
#include "net/http_client.h"
#include "net/script_server.h"

#define SECRET "s3cret"
#define JSON_HEAD(more) \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" more "Connection: close\r\n\r\n"
#define SSE_HEAD(more) \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" more "Connection: close\r\n\r\n"
#define REFUSED(status, body) \
    "HTTP/1.1 " status "\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" body
#define ANSWER "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}"
#define NEWS   "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}"

struct world {
    struct owner owner;
    struct client *client;
    struct server server;
};

static void connect_link(struct world *w, uint16_t port)
{
    const struct mcp_pair headers[] = {{STR("Authorization"), STR("Bearer " SECRET)},
                                       {STR("accept"), STR("nonsense/of-the-configuration")}};
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/mcp?key=" SECRET, port);
    owner_init(&w->owner);
    w->client = client_new(w->owner.loop);
    w->owner.link =
        mcp_http_new(w->client, str_c(url), headers, COUNT(headers), &owner_events, &w->owner);
}

static void start(struct world *w, const struct step *steps)
{
    *w = (struct world){0};
    server_start(&w->server, steps);
    connect_link(w, w->server.port);
}

static void drop_link(struct world *w)
{
    str whys = buf_str(&w->owner.whys);
    if (str_find(whys, STR(SECRET)) >= 0) fail_msg("a secret is told: %.*s", STR_ARG(whys));
    owner_done(&w->owner);
    client_free(w->client);
    loop_free(w->owner.loop);
}

static void finish(struct world *w)
{
    drop_link(w);
    server_join(&w->server);
    server_done(&w->server);
}

static const struct mcp_header session[] = {{{"Mcp-Session-Id", 14}, {"s-1", 3}},
                                            {{"MCP-Protocol-Version", 20}, {"2025-11-25", 10}}};
static const struct mcp_header modern[] = {{{"MCP-Protocol-Version", 20}, {"2026-07-28", 10}}};

static void send_with(struct world *w, uint64_t request, const struct mcp_header *headers,
                      size_t count)
{
    char json[64];
    int len = snprintf(json, sizeof json, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"x\"}",
                       (int)request);
    mcp_link_send(w->owner.link, &(struct mcp_post){.json = {json, (size_t)len},
                                                    .request = request,
                                                    .headers = headers,
                                                    .header_count = count});
}

/* ---- one answer ---- */

static const struct {
    const char *answer;
    bool session;
    const char *told; /* behind "open" */
    const char *why;  /* a part of it */
} answers[] = {
    {JSON_HEAD("") ANSWER, false, "message " ANSWER "\n", NULL},
    {JSON_HEAD("Mcp-Session-Id: abc\r\n") ANSWER, false, "session abc\nmessage " ANSWER "\n", NULL},
    {JSON_HEAD("mcp-session-id: a b\r\n") ANSWER, false, "message " ANSWER "\n", NULL},
    {"HTTP/1.1 200 OK\r\ncontent-type: Application/JSON; charset=utf-8\r\nConnection: "
     "close\r\n\r\n{\"id\":\r\n 7,\n\"result\":1}\n",
     false, "message {\"id\":   7, \"result\":1} \n", NULL},
    {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n" ANSWER,
     false, "lost 7 LOST 200\n", "before its answer was complete"},
    {JSON_HEAD("") "{\"id\":8,\"result\":{}}", false, "lost 7 LOST 200\n", "not the answer"},
    {JSON_HEAD("") NEWS, false, "lost 7 LOST 200\n", "not the answer"},
    {JSON_HEAD("") "{\"id\":null,\"error\":{\"code\":-32700,\"message\":\"what\\nis this\"}}",
     false, "lost 7 LOST 200\n", "not the answer: what is this"},
    {JSON_HEAD("") "[" ANSWER "]", false, "lost 7 LOST 200\n", "no JSON-RPC message"},
    {JSON_HEAD("") "{\"id\":7", false, "lost 7 LOST 200\n", "no JSON-RPC message"},
    {JSON_HEAD(""), false, "lost 7 LOST 200\n", "no JSON-RPC message"},
    {"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", false, "lost 7 LOST 202\n",
     "with no message"},
    {"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi", false,
     "lost 7 LOST 200\n", "check its URL"},
    {"", false, "lost 7 LOST 0\n", "without an answer"},
    {"nonsense\r\n\r\n", false, "lost 7 LOST 0\n", "not HTTP"},
    /* refusals */
    {REFUSED("404 Not Found", ""), false, "lost 7 AWAY 404\n", "check its URL"},
    {REFUSED("404 Not Found", ""), true, "lost 7 NO_SESSION 404\n", "404"},
    {REFUSED("404 Not Found", "{\"id\":7,\"error\":{\"code\":-32601}}"), false,
     "message {\"id\":7,\"error\":{\"code\":-32601}}\n", NULL},
    {REFUSED("404 Not Found", "{\"id\":7,\"error\":{\"code\":-32001}}"), true,
     "lost 7 NO_SESSION 404\n", "404"},
    {REFUSED("400 Bad Request", "{\n\"id\":7,\"error\":{\"code\":1}}"), true,
     "message { \"id\":7,\"error\":{\"code\":1}}\n", NULL},
    {REFUSED("400 Bad Request", "{\"id\":null,\"error\":{\"message\":\"No \\u4f60\"}}"), true,
     "lost 7 NO_SESSION 400\n", "status 400: No \xe4\xbd\xa0"},
    {REFUSED("400 Bad Request", "{\"error\":{\"message\":\"Bad\"}}"), false, "lost 7 AWAY 400\n",
     "status 400: Bad"},
    {REFUSED("401 Unauthorized", "not json"), false, "lost 7 AWAY 401\n", "credentials"},
    {REFUSED("403 Forbidden", "{}"), false, "lost 7 AWAY 403\n", "let us in"},
    {REFUSED("405 Method Not Allowed", ""), false, "lost 7 AWAY 405\n", "405"},
    {REFUSED("429 Too Many Requests", ""), false, "lost 7 AWAY 429\n", "429"},
    {REFUSED("302 Found\r\nLocation: http://127.0.0.1:1/", ""), false, "lost 7 AWAY 302\n",
     "new URL"},
    {REFUSED("500 Oops", "{\"id\":7,\"error\":{}}"), false, "message {\"id\":7,\"error\":{}}\n",
     NULL},
    {REFUSED("500 Oops", "{\"id\":6,\"error\":{}}"), false, "lost 7 LOST 500\n", "500"},
    {REFUSED("502 Bad Gateway", ""), false, "lost 7 LOST 502\n", "502"},
    {REFUSED("503 Unavailable", ""), false, "lost 7 LOST 503\n", "503"},
    {"HTTP/1.1 401 No\r\nContent-Length: 100\r\n\r\n{\"id\":7", false, "lost 7 AWAY 401\n", "401"},
    /* event streams */
    {SSE_HEAD("") "data: " ANSWER "\n\n", false, "message " ANSWER "\n", NULL},
    {SSE_HEAD(
         "Mcp-Session-Id: abc\r\n") ": hi\n\nevent: message\ndata: " NEWS
                                    "\n\ndata: {\"id\":7,\"method\":\"m\"}\n\nevent: ping\ndata: "
                                    "what\n\ndata:\n\ndata: {\"id\":7,\ndata: \"result\":1}\n\n",
     false,
     "session abc\nmessage " NEWS
     "\nmessage {\"id\":7,\"method\":\"m\"}\nmessage {\"id\":7, \"result\":1}\n",
     NULL},
    {SSE_HEAD("") "data: " NEWS "\n\n", false, "message " NEWS "\nlost 7 LOST 200\n",
     "without an answer"},
    {SSE_HEAD("") "data: " ANSWER "\n", false, "lost 7 LOST 200\n", "without an answer"},
    {SSE_HEAD("") "data: [" ANSWER "]\n\ndata: " ANSWER "\n\n", false, "lost 7 LOST 200\n",
     "no JSON-RPC message"},
    {SSE_HEAD("") "data: {\xff}\n\n", false, "lost 7 LOST 200\n", "no JSON-RPC message"},
    /* what comes behind the answer belongs to nobody */
    {SSE_HEAD("") "data: " ANSWER "\n\ndata: " ANSWER "\n\ndata: {\n\n", false,
     "message " ANSWER "\n", NULL},
};

/* Run until the last line of `told`, then close: nothing but that may have come, and nothing is open. */
static void expect(struct world *w, const char *told)
{
    struct buf line, all;
    buf_init(&line, 8192);
    buf_init(&all, 8192);
    str rest = str_c(told), last = STR_EMPTY;
    while (rest.p && rest.len) last = str_split(&rest, '\n');
    buf_append(&line, last);
    buf_char(&line, '\0');
    owner_run(&w->owner, line.p, 1);
    mcp_link_close(w->owner.link, NULL, 0);
    owner_run(&w->owner, "down", 1);
    buf_printf(&all, "open\n%sdown\n", told);
    assert_str(buf_str(&w->owner.told), buf_str(&all));
    buf_done(&line);
    buf_done(&all);
}

static void each_answer_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(answers); i++) {
        const struct step steps[] = {ACCEPT, READ, SEND(answers[i].answer), CLOSE, STOP};
        struct world w;
        start(&w, steps);
        send_with(&w, 7, session, answers[i].session ? COUNT(session) : 0);
        expect(&w, answers[i].told);
        str whys = buf_str(&w.owner.whys);
        if (answers[i].why && str_find(whys, str_c(answers[i].why)) < 0)
            fail_msg("row %zu: \"%.*s\" says not: %s", i, STR_ARG(whys), answers[i].why);
        finish(&w);
    }
}

static void a_server_that_is_not_there_was_surely_not_asked(void **state)
{
    (void)state;
    int nobody = bound_socket(); /* does not listen */
    struct world w = {0};
    connect_link(&w, bound_port(nobody));
    send_with(&w, 7, NULL, 0);
    expect(&w, "lost 7 AWAY 0\n");
    drop_link(&w);
    close(nobody);
}

static void requests_look_as_the_protocol_has_them(void **state)
{
    (void)state;
    static const struct step steps[] = {ACCEPT, READ, SEND(JSON_HEAD("") ANSWER), CLOSE, STOP};
    struct world w;
    start(&w, steps);
    send_with(&w, 7, session, COUNT(session));
    expect(&w, "message " ANSWER "\n");
    drop_link(&w);
    server_join(&w.server);
    assert_true(server_saw(&w.server, "POST /mcp?key=" SECRET " HTTP/1.1\r\n"));
    assert_true(server_saw(&w.server, "\r\nAccept: application/json, text/event-stream\r\n"));
    assert_true(server_saw(&w.server, "\r\nContent-Type: application/json\r\n"));
    assert_true(server_saw(&w.server, "\r\nAuthorization: Bearer " SECRET "\r\n"));
    assert_true(server_saw(&w.server, "\r\nMcp-Session-Id: s-1\r\n"));
    assert_true(server_saw(&w.server, "\r\nMCP-Protocol-Version: 2025-11-25\r\n"));
    assert_true(server_saw(&w.server, "\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\"}"));
    assert_false(server_saw(&w.server, "nonsense"));
    assert_false(server_saw(&w.server, "Last-Event-ID"));
    server_done(&w.server);
}

/* Notifications and responses: silence is consent. */
static void what_needs_no_answer_is_told_only_when_refused(void **state)
{
    (void)state;
    static const struct {
        const char *answer, *told;
    } rows[] = {
        {"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", "open\nmessage " ANSWER "\n"},
        {SSE_HEAD("") "data: " NEWS "\n\n", "open\nmessage " ANSWER "\n"},
        {JSON_HEAD("") "{}", "open\nmessage " ANSWER "\n"},
        {REFUSED("400 Bad Request", "{\"error\":{\"message\":\"not now\"}}"),
         "open\nlost 0 AWAY 400\n"},
        {"", "open\nlost 0 LOST 0\n"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct step steps[] = {ACCEPT, READ, SEND(rows[i].answer),       CLOSE,
                                     ACCEPT, READ, SEND(JSON_HEAD("") ANSWER), CLOSE,
                                     STOP};
        struct world w;
        start(&w, steps);
        owner_send(&w.owner, 0);
        bool refused = strstr(rows[i].told, "lost") != NULL;
        if (refused) owner_run(&w.owner, "lost", 1);
        assert_true(!refused || str_eq(buf_str(&w.owner.told), str_c(rows[i].told)));
        send_with(&w, 7, NULL, 0);
        owner_run(&w.owner, "message", 1);
        assert_true(str_starts(buf_str(&w.owner.told), str_c(rows[i].told)));
        finish(&w);
    }
}

/* ---- streams ---- */

static void a_cut_stream_never_gives_half_a_message(void **state)
{
    (void)state;
    static const char stream[] = SSE_HEAD("") "id\r\ndata: " NEWS "\r\n\r\n:c\rdata: {\"id\":7,\n"
                                              "data: \"result\":\"\xe4\xbd\xa0\"}\n\n";
    size_t head = strlen(SSE_HEAD("")), all = sizeof stream - 1;
    for (size_t cut = head; cut <= all; cut++) {
        const struct step steps[] = {ACCEPT, READ, SEND_PART(stream, cut), CLOSE, STOP};
        struct world w;
        start(&w, steps);
        send_with(&w, 7, NULL, 0);
        bool news = cut >= (size_t)(strstr(stream, "\r\n\r\n:c") - stream) + 3; /* CR LF CR */
        char told[256];
        snprintf(told, sizeof told, "%s%s", news ? "message " NEWS "\n" : "",
                 cut == all ? "message {\"id\":7, \"result\":\"\xe4\xbd\xa0\"}\n"
                            : "lost 7 LOST 200\n");
        expect(&w, told);
        finish(&w);
    }
}

#define PRIMED SSE_HEAD("") "retry: 1\nid: e1\ndata:\n\n"

static void a_broken_stream_is_resumed(void **state)
{
    (void)state;
    static const struct step steps[] = {
        ACCEPT, READ, SEND(PRIMED "id: e2\ndata: " NEWS "\n\nid: e3\nda"), RESET,
        /* nothing new, then something, then the answer */
        ACCEPT, READ, SEND(SSE_HEAD("")), CLOSE, ACCEPT, READ,
        SEND(SSE_HEAD("") "id: e4\ndata: " NEWS "\n\n"), CLOSE, ACCEPT, READ,
        SEND(SSE_HEAD("") "id: e5\ndata: " ANSWER "\n\n"), AWAIT, STOP};
    struct world w;
    start(&w, steps);
    send_with(&w, 7, session, COUNT(session));
    expect(&w, "message " NEWS "\nmessage " NEWS "\nmessage " ANSWER "\n");
    drop_link(&w);
    server_join(&w.server);
    assert_true(server_saw(&w.server, "GET /mcp"));
    assert_true(server_saw(&w.server, "\r\nAccept: text/event-stream\r\n"));
    assert_true(server_saw(&w.server, "\r\nLast-Event-ID: e2\r\n"));
    assert_true(server_saw(&w.server, "\r\nLast-Event-ID: e4\r\n"));
    assert_false(server_saw(&w.server, "Last-Event-ID: e3"));
    server_done(&w.server);
}

/* The session that the first answer names is good for the rest of that answer. */
static void the_first_answer_is_resumed_in_its_session(void **state)
{
    (void)state;
    static const struct step steps[] = {
        ACCEPT,
        READ,
        SEND(SSE_HEAD("Mcp-Session-Id: new\r\n") "retry: 1\nid: e1\ndata:\n\n"),
        CLOSE,
        ACCEPT,
        READ,
        SEND(SSE_HEAD("") "data: " ANSWER "\n\n"),
        CLOSE,
        STOP};
    struct world w;
    start(&w, steps);
    send_with(&w, 7, NULL, 0);
    expect(&w, "session new\nmessage " ANSWER "\n");
    drop_link(&w);
    server_join(&w.server);
    assert_true(server_saw(&w.server, "\r\nMcp-Session-Id: new\r\n"));
    server_done(&w.server);
}

static void resuming_has_an_end(void **state)
{
    (void)state;
#define AGAIN(answer) ACCEPT, READ, SEND(answer), CLOSE
    static const struct {
        struct step steps[4 * 8];
        const struct mcp_header *headers;
        size_t header_count;
        const char *told, *why;
    } rows[] = {
        {{AGAIN(PRIMED), AGAIN(REFUSED("405 No", "")), STOP},
         session,
         2,
         "lost 7 LOST 405\n",
         "no rest of it: status 405"},
        {{AGAIN(PRIMED), AGAIN(REFUSED("404 No", "")), STOP},
         session,
         2,
         "lost 7 LOST 404\n",
         "404"},
        {{AGAIN(PRIMED), AGAIN(JSON_HEAD("") ANSWER), STOP},
         session,
         2,
         "lost 7 LOST 200\n",
         "200"},
        {{AGAIN(PRIMED), AGAIN(""), AGAIN(""), AGAIN(REFUSED("503 No", "")), AGAIN(SSE_HEAD("")),
          AGAIN(SSE_HEAD("") "id: e1\ndata:\n\n"), STOP},
         session,
         2,
         "lost 7 LOST 200\n",
         "without an answer"},
        {{AGAIN(PRIMED), STOP}, modern, 1, "lost 7 LOST 200\n", "without an answer"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world w;
        start(&w, rows[i].steps);
        send_with(&w, 7, rows[i].headers, rows[i].header_count);
        expect(&w, rows[i].told);
        assert_true(str_find(buf_str(&w.owner.whys), str_c(rows[i].why)) > 0);
        finish(&w);
    }
}

/* A server that closes its connections on purpose may be asked more often than one that is broken. */
static void it_is_resumed_as_long_as_the_stream_moves_on(void **state)
{
    (void)state;
#define POLL(id) AGAIN(SSE_HEAD("") "retry: 1\nid: " id "\ndata:\n\n")
    static const struct step steps[] = {
        POLL("a"), POLL("b"), POLL("c"),
        POLL("d"), POLL("e"), POLL("f"),
        POLL("g"), POLL("h"), AGAIN(SSE_HEAD("") "data: " ANSWER "\n\n"),
        STOP};
    struct world w;
    start(&w, steps);
    send_with(&w, 7, session, COUNT(session));
    expect(&w, "message " ANSWER "\n");
    finish(&w);
}

static void silence_is_bounded(void **state)
{
    (void)state;
    static const struct step steps[] = {ACCEPT, READ, AWAIT, ACCEPT, READ, SEND(SSE_HEAD("")),
                                        AWAIT,  STOP};
    struct world w;
    start(&w, steps);
    for (uint64_t request = 7; request <= 8; request++) {
        mcp_link_send(w.owner.link,
                      &(struct mcp_post){.json = STR("{}"), .request = request, .quiet_ms = 500});
        owner_run(&w.owner, "lost", 1);
    }
    assert_str(buf_str(&w.owner.told), STR("open\nlost 7 LOST 0\nlost 8 LOST 200\n"));
    finish(&w);
}

/* ---- the standing stream ---- */

static void the_standing_stream_is_kept(void **state)
{
    (void)state;
    static const struct step steps[] = {ACCEPT,
                                        READ,
                                        SEND(SSE_HEAD("") "retry: 1\nid: a\ndata: " NEWS "\n\n"),
                                        CLOSE,
                                        ACCEPT,
                                        READ,
                                        SEND(REFUSED("500 Oops", "")),
                                        CLOSE,
                                        ACCEPT,
                                        READ,
                                        SEND(SSE_HEAD("") "data: {oops\n\n"),
                                        CLOSE,
                                        ACCEPT,
                                        READ,
                                        SEND(SSE_HEAD("") "data: {\"id\":1,\"method\":\"q\"}\n\n"),
                                        AWAIT,
                                        STOP};
    struct world w;
    start(&w, steps);
    mcp_link_listen(w.owner.link, session, COUNT(session));
    expect(&w, "message " NEWS "\nmessage {\"id\":1,\"method\":\"q\"}\n");
    drop_link(&w);
    server_join(&w.server);
    assert_true(server_saw(&w.server, "GET /mcp"));
    assert_true(server_saw(&w.server, "\r\nMcp-Session-Id: s-1\r\n"));
    assert_true(server_saw(&w.server, "\r\nLast-Event-ID: a\r\n"));
    assert_true(server_saw(&w.server, "\r\nAuthorization: Bearer " SECRET "\r\n"));
    assert_false(server_saw(&w.server, "Content-Type"));
    server_done(&w.server);
}

static void on_waited(void *arg)
{
    loop_stop(arg);
}

/* If it were asked once more, that would take the answer of the request. */
static void a_server_without_one_is_left_alone(void **state)
{
    (void)state;
    static const char *const refusals[] = {REFUSED("405 No", ""), REFUSED("404 No", ""),
                                           JSON_HEAD("") "{}"};
    for (size_t i = 0; i < COUNT(refusals); i++) {
        const struct step steps[] = {ACCEPT, READ, SEND(refusals[i]),          CLOSE,
                                     ACCEPT, READ, SEND(JSON_HEAD("") ANSWER), CLOSE,
                                     STOP};
        struct world w;
        start(&w, steps);
        mcp_link_listen(w.owner.link, session, COUNT(session));
        struct timer *wait = timer_new(w.owner.loop, on_waited, w.owner.loop);
        timer_start(wait, MCP_LISTEN_REST_MS + 100);
        loop_run(w.owner.loop);
        timer_free(wait);
        send_with(&w, 7, NULL, 0);
        expect(&w, "message " ANSWER "\n");
        finish(&w);
    }
}

/* ---- forgetting, closing, freeing ---- */

static void a_forgotten_request_closes_its_stream(void **state)
{
    (void)state;
    static const struct step steps[] = {ACCEPT, READ, SEND(SSE_HEAD("") "data: " NEWS "\n\n"),
                                        AWAIT, STOP};
    struct world w;
    start(&w, steps);
    send_with(&w, 7, NULL, 0);
    owner_run(&w.owner, "message", 1);
    mcp_link_forget(w.owner.link, 7);
    mcp_link_forget(w.owner.link, 7);
    mcp_link_forget(w.owner.link, 0);
    mcp_link_close(w.owner.link, NULL, 0);
    owner_run(&w.owner, "down", 1);
    assert_str(buf_str(&w.owner.told), STR("open\nmessage " NEWS "\ndown\n"));
    finish(&w);
}

static void closing_says_farewell_to_a_session(void **state)
{
    (void)state;
    static const struct step farewells[][8] = {
        {ACCEPT, READ, SEND("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), CLOSE, STOP},
        {ACCEPT, READ, SEND(REFUSED("405 No", "")), CLOSE, STOP},
        {ACCEPT, READ, CLOSE, STOP},
        {ACCEPT, READ, AWAIT, STOP}, /* given up after MCP_STOP_MS */
    };
    for (size_t i = 0; i < COUNT(farewells); i++) {
        struct step steps[16] = {ACCEPT, READ, SEND(SSE_HEAD("") "data: " NEWS "\n\n")};
        memcpy(&steps[3], farewells[i], sizeof farewells[i]);
        struct world w;
        start(&w, steps);
        send_with(&w, 7, session, COUNT(session));
        owner_run(&w.owner, "message", 1);
        mcp_link_close(w.owner.link, session, COUNT(session));
        mcp_link_close(w.owner.link, session, COUNT(session));
        mcp_link_listen(w.owner.link, session, COUNT(session));
        send_with(&w, 8, session, COUNT(session));
        owner_run(&w.owner, "down", 1);
        assert_str(buf_str(&w.owner.told),
                   STR("open\nmessage " NEWS "\nlost 7 LOST 200\nlost 8 AWAY 0\ndown\n"));
        drop_link(&w);
        server_join(&w.server);
        assert_true(server_saw(&w.server, "DELETE /mcp"));
        server_done(&w.server);
    }
}

static void too_many_are_refused(void **state)
{
    (void)state;
    int nobody = bound_socket();
    struct world w = {0};
    connect_link(&w, bound_port(nobody));
    for (uint64_t request = 1; request <= MCP_OPEN_MAX + 1; request++)
        send_with(&w, request, NULL, 0);
    owner_run(&w.owner, "lost", MCP_OPEN_MAX + 1);
    assert_true(owner_heard(&w.owner, "lost 1025 AWAY 0\n"));
    assert_true(str_find(buf_str(&w.owner.whys), STR("too many calls")) >= 0);
    drop_link(&w);
    close(nobody);
}

static void it_may_be_freed_in_any_callback(void **state)
{
    (void)state;
    static const struct {
        const char *moment, *answer;
    } rows[] = {
        {"open", NULL},
        {"session", JSON_HEAD("Mcp-Session-Id: a\r\n") ANSWER},
        {"session", SSE_HEAD("Mcp-Session-Id: a\r\n") "data: " ANSWER "\n\n"},
        {"message", JSON_HEAD("") ANSWER},
        {"message", SSE_HEAD("") "data: " NEWS "\n\ndata: " NEWS "\n\n"},
        {"message", SSE_HEAD("") "data: " ANSWER "\n\ndata: " NEWS "\n\n"},
        {"message", REFUSED("400 No", "{\"id\":7,\"error\":{}}")},
        {"lost", REFUSED("400 No", "")},
        {"lost", SSE_HEAD("") "data: {\n\ndata: " NEWS "\n\n"},
        {"lost", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct step steps[] = {ACCEPT, READ, SEND(rows[i].answer), CLOSE, STOP};
        const struct step none[] = {STOP};
        struct world w;
        start(&w, rows[i].answer ? steps : none);
        w.owner.free_at = rows[i].moment;
        if (rows[i].answer) send_with(&w, 7, NULL, 0);
        owner_run(&w.owner, rows[i].moment, 1);
        assert_null(w.owner.link);
        finish(&w);
    }
    static const struct step none[] = {STOP};
    struct world w;
    start(&w, none);
    finish(&w); /* before it even opens */
}

int test_mcp_http(void)
{
    signal(SIGPIPE, SIG_IGN); /* as the server does */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_is_told),
        cmocka_unit_test(a_server_that_is_not_there_was_surely_not_asked),
        cmocka_unit_test(requests_look_as_the_protocol_has_them),
        cmocka_unit_test(what_needs_no_answer_is_told_only_when_refused),
        cmocka_unit_test(a_cut_stream_never_gives_half_a_message),
        cmocka_unit_test(a_broken_stream_is_resumed),
        cmocka_unit_test(the_first_answer_is_resumed_in_its_session),
        cmocka_unit_test(resuming_has_an_end),
        cmocka_unit_test(it_is_resumed_as_long_as_the_stream_moves_on),
        cmocka_unit_test(silence_is_bounded),
        cmocka_unit_test(the_standing_stream_is_kept),
        cmocka_unit_test(a_server_without_one_is_left_alone),
        cmocka_unit_test(a_forgotten_request_closes_its_stream),
        cmocka_unit_test(closing_says_farewell_to_a_session),
        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(it_may_be_freed_in_any_callback),
    };
    return cmocka_run_group_tests_name("mcp_http", tests, NULL, NULL);
}
