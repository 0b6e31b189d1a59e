/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP tools against a server that follows a script (script_server.h). Every call carries secrets in
 * its headers and its URL, and every error is searched for them.
 */
#include "tool/http_tool.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "check.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "net/script_server.h"
#include "store/fixture.h"
#include "tool/http_result.h"
#include "tool/schema.h"
#include "tool/spool.h"

enum { STEPS_MAX = 10, RESULT_MAX = 400 };

#define TOKEN    "tok-4711-secret"
#define PASSWORD "pass-0815-secret"
#define QUERY    "key=query-secret"
#define ARGS     "{\"item\": \"tea\",\"count\":2}"
#define SCHEMA                                                                                 \
    "{\"type\":\"object\",\"properties\":{\"item\":{\"type\":\"string\"},\"count\":{\"type\":" \
    "\"integer\"}},\n\t\"required\":[\"item\"]}"

struct world {
    struct arena arena;
    struct loop *loop;
    struct client *client;
    struct timer *guard;
    char folder[FOLDER_BYTES];
    struct spool *spool;
    struct tool tool;
    struct tool_call *call;
    bool cancel_inside;
    int ends;
    enum tool_end end;
    bool spooled;
    uint64_t result_bytes;
    struct buf content, result, error, ui_hints; /* of a file: its ends */
};

static const char *const end_names[] = {"done", "failed", "away", "lost"};

static void on_guard(void *arg)
{
    (void)arg;
    fail_msg("the loop waited too long");
}

static void world_init(struct world *world)
{
    *world = (struct world){.loop = loop_new()};
    arena_init(&world->arena);
    world->client = client_new(world->loop);
    world->guard = timer_new(world->loop, on_guard, NULL);
    struct fault fault = {0};
    folder_make(world->folder);
    assert_int_equal(spool_open(world->loop, world->folder, &world->spool, &fault), OK);
    buf_init(&world->content, SIZE_MAX / 2);
    buf_init(&world->result, SIZE_MAX / 2);
    buf_init(&world->error, SIZE_MAX / 2);
    buf_init(&world->ui_hints, SIZE_MAX / 2);
}

static void world_done(struct world *world)
{
    if (world->tool.ops) http_tool_free(&world->tool);
    client_free(world->client);
    timer_free(world->guard);
    spool_close(world->spool);
    loop_free(world->loop);
    folder_remove(world->folder);
    arena_done(&world->arena);
    buf_done(&world->content);
    buf_done(&world->result);
    buf_done(&world->error);
    buf_done(&world->ui_hints);
}

static void on_end(void *arg, enum tool_end end, const struct tool_result *result)
{
    struct world *world = arg;
    world->ends++;
    world->end = end;
    world->spooled = result->spooled;
    world->result_bytes = result->spooled ? result->result_bytes : result->result.len;
    buf_append(&world->content, result->content);
    buf_append(&world->result, result->result);
    if (result->spooled) {
        buf_append(&world->result, result->result_head);
        buf_append(&world->result, result->result_tail);
    }
    buf_append(&world->error, result->error);
    buf_append(&world->ui_hints, result->ui_hints);
    str error = result->error;
    if (str_find(error, STR("secret")) >= 0) fail_msg("a secret in \"%.*s\"", STR_ARG(error));
    if ((end == TOOL_DONE) != (error.len == 0) || error.len > TOOL_ERROR_BYTES_MAX ||
        !utf8_valid(error) || str_find_char(error, '\n') >= 0)
        fail_msg("%s with \"%.*s\"", end_names[end], STR_ARG(error));
    if (world->cancel_inside) tool_cancel(&world->tool, world->call);
    loop_stop(world->loop);
}

static const struct http_tool_header headers[] = {
    {STR("Authorization"), STR("Bearer " TOKEN)},
    {STR("X-Kind"), STR("tea")},
};

static struct json *parsed(struct arena *arena, const char *text)
{
    struct json *json = NULL;
    assert_int_equal(json_parse(arena, str_c(text), &json, NULL), OK);
    return json;
}

static struct http_tool_options options_for(struct world *world, uint16_t port, const char *scheme)
{
    return (struct http_tool_options){
        .name = STR("place_order"),
        .url = arena_printf(&world->arena, "%s://user:%s@127.0.0.1:%u/order?%s", scheme, PASSWORD,
                            port, QUERY),
        .description = STR("orders something"),
        .schema = parsed(&world->arena, SCHEMA),
        .write = true,
        .idempotent = true,
        .risk = RISK_EXTERNAL,
        .timeout_s = 10,
        .headers = headers,
        .header_count = COUNT(headers),
        .proxy = "",
        .spool = world->spool,
    };
}

static void make_tool(struct world *world, const struct http_tool_options *options)
{
    struct fault fault = {0};
    if (http_tool_new(&world->arena, world->client, options, &world->tool, &fault))
        fail_msg("http_tool_new: %s %s", fault.field, fault.text);
}

static void start(struct world *world, const char *locale)
{
    struct tool_request request = {.call_id = STR("call_7"),
                                   .args = STR(ARGS),
                                   .owner = STR("local"),
                                   .locale = str_c(locale)};
    world->call = tool_start(&world->tool, &request, on_end, world);
    assert_int_equal(world->ends, 0); /* never from inside */
}

static void run(struct world *world)
{
    timer_start(world->guard, 4 * PATIENCE_MS);
    loop_run(world->loop);
    timer_stop(world->guard);
}

static void call(struct world *world, const struct http_tool_options *options)
{
    make_tool(world, options);
    start(world, "zh-CN");
    run(world);
    assert_int_equal(world->ends, 1);
}

static void expect_end(const struct world *world, const char *name, enum tool_end end)
{
    if (world->end != end)
        fail_msg("%s: got %s \"%.*s\", expected %s", name, end_names[world->end],
                 STR_ARG(buf_str(&world->error)), end_names[end]);
}

static void expect_text(const char *name, const char *what, const struct buf *got, const char *text)
{
    if (!str_eq(buf_str(got), str_c(text)))
        fail_msg("%s: %s is \"%.*s\", expected \"%s\"", name, what, STR_ARG(buf_str(got)), text);
}

/* ---- what is sent ---- */

#define ANSWER(status, bytes) \
    "HTTP/1.1 " status "\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n" bytes

static void request(void **state)
{
    (void)state;
    static const struct step steps[] = {ACCEPT, READ, SEND(ANSWER("200 OK", "{\"id\":1}")), CLOSE,
                                        STOP};
    static const char *const parts[] = {
        "POST /order?" QUERY " HTTP/1.1\r\n",
        "\r\nContent-Type: application/json\r\n",
        "\r\nIdempotency-Key: call_7\r\n",
        "\r\nAuthorization: Bearer " TOKEN "\r\n",
        "\r\nX-Kind: tea\r\n",
        "\r\nAccept-Language: zh-CN\r\n",
        ("\r\n\r\n" ARGS),
    };
    struct world world;
    struct server server;
    world_init(&world);
    server_start(&server, steps);
    struct http_tool_options options = options_for(&world, server.port, "http");
    call(&world, &options);
    expect_end(&world, "request", TOOL_DONE);
    server_join(&server);
    for (size_t i = 0; i < COUNT(parts); i++)
        if (!server_saw(&server, parts[i]))
            fail_msg("no \"%s\" in \"%.*s\"", parts[i], STR_ARG(buf_str(&server.seen)));
    server_done(&server);
    world_done(&world);
}

/* A locale that is none is not sent, and a configured header counts more than ours. */
static void languages(void **state)
{
    (void)state;
    static const struct http_tool_header own = {STR("accept-language"), STR("fr")};
    static const struct {
        const char *locale;
        bool configured;
        const char *seen, *unseen;
    } rows[] = {
        {"en", false, "\r\nAccept-Language: en\r\n", "fr"},
        {"", false, "POST", "Accept-Language"},
        {"en\r\nX: y", false, "POST", "X: y"},
        {"en", true, "\r\naccept-language: fr\r\n", "Accept-Language: en"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        static const struct step steps[] = {ACCEPT, READ, SEND(ANSWER("200 OK", "1")), CLOSE, STOP};
        struct world world;
        struct server server;
        world_init(&world);
        server_start(&server, steps);
        struct http_tool_options options = options_for(&world, server.port, "http");
        options.headers = &own;
        options.header_count = rows[i].configured ? 1 : 0;
        make_tool(&world, &options);
        start(&world, rows[i].locale);
        run(&world);
        server_join(&server);
        assert_true(server_saw(&server, rows[i].seen));
        assert_false(server_saw(&server, rows[i].unseen));
        server_done(&server);
        world_done(&world);
    }
}

/* ---- what comes back ---- */

static void answers(void **state)
{
    (void)state;
    static const struct {
        const char *name, *answer;
        enum tool_end end;
        const char *content, *result, *error, *ui_hints;
        /* clang-format off */
    } rows[] = {
        {"all four", ANSWER("200 OK",
         "{\"content\":\"made \\u4f1a\",\"result\":{\"id\":7},\"error\":null,\"ui_hints\":{\"a\":1}}"),
         TOOL_DONE, "made 会", "{\"id\":7}", "", "{\"a\":1}"},
        {"result alone", ANSWER("200 OK", "{\"result\":[1, 2]}"), TOOL_DONE, "", "[1, 2]", "", ""},
        {"null result", ANSWER("200 OK", "{\"result\":null}"), TOOL_DONE, "", "null", "", ""},
        {"content alone", ANSWER("201 Created", "{\"content\":\"x\"}"), TOOL_DONE, "x", "", "", ""},
        {"empty content", ANSWER("200 OK", "{\"content\":\"\"}"), TOOL_DONE, "", "", "", ""},
        {"null content", ANSWER("200 OK", "{\"content\":null,\"result\":1}"),
         TOOL_DONE, "", "1", "", ""},
        {"other object", ANSWER("200 OK", "{\"id\":7}"), TOOL_DONE, "", "{\"id\":7}", "", ""},
        {"empty object", ANSWER("200 OK", "{}"), TOOL_DONE, "", "{}", "", ""},
        {"hints alone", ANSWER("200 OK", "{\"ui_hints\":{}}"),
         TOOL_DONE, "", "{\"ui_hints\":{}}", "", ""},
        {"with other members", ANSWER("200 OK", "{\"id\":7,\"content\":\"note\",\"result\":1}"),
         TOOL_DONE, "", "{\"id\":7,\"content\":\"note\",\"result\":1}", "", ""},
        {"content of another kind", ANSWER("200 OK", "{\"content\":[{\"type\":\"text\"}]}"),
         TOOL_DONE, "", "{\"content\":[{\"type\":\"text\"}]}", "", ""},
        {"array", ANSWER("200 OK", "[1]"), TOOL_DONE, "", "[1]", "", ""},
        {"string", ANSWER("200 OK", "\"hello\""), TOOL_DONE, "", "\"hello\"", "", ""},
        {"number", ANSWER("200 OK", "12345678901234567890.10"),
         TOOL_DONE, "", "12345678901234567890.10", "", ""},
        {"several lines", ANSWER("200 OK", "\r\n{\n\t\"a\": [1,\r\n2], \"b\": \"x\\ny\" }\n"),
         TOOL_DONE, "", "{  \"a\": [1,  2], \"b\": \"x\\ny\" }", "", ""},
        {"several lines, all four", ANSWER("200 OK", "{\n\"result\": {\n\"a\":\n1 },\n\"content\":\"x\"}"),
         TOOL_DONE, "x", "{ \"a\": 1 }", "", ""},
        {"byte order mark", ANSWER("200 OK", "\xef\xbb\xbf{\"result\":1}"), TOOL_DONE, "", "1", "", ""},
        {"nothing", ANSWER("200 OK", ""), TOOL_DONE, "", "", "", ""},
        {"space", ANSWER("200 OK", " \r\n"), TOOL_DONE, "", "", "", ""},
        {"no content", "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
         TOOL_DONE, "", "", "", ""},
        {"text", ANSWER("200 OK", "Ordered: 两杯\nThanks\n"),
         TOOL_DONE, "Ordered: 两杯\nThanks", "", "", ""},
        {"nearly JSON", ANSWER("200 OK", "{\"a\":NaN}"), TOOL_DONE, "{\"a\":NaN}", "", "", ""},
        {"not UTF-8", ANSWER("200 OK", "\xd6\xd0\xce\xc4"), TOOL_DONE,
         "工具返回了 4 字节，既不是 JSON，也不是 UTF-8 文本，因此没有保留。", "", "", ""},

        {"error", ANSWER("200 OK", "{\"error\":\"no stock\"}"), TOOL_FAILED, "", "", "no stock", ""},
        {"error with the rest", ANSWER("200 OK",
         "{\"error\":\"half\",\"content\":\"c\",\"result\":{\"a\":1},\"ui_hints\":{}}"),
         TOOL_FAILED, "c", "{\"a\":1}", "half", "{}"},
        {"error with other members", ANSWER("200 OK", "{\"error\":\"no stock\",\"code\":4}"),
         TOOL_DONE, "", "{\"error\":\"no stock\",\"code\":4}", "", ""},
        {"error object", ANSWER("200 OK", "{\"error\":{\"code\":4,\"message\":\"no stock\"}}"),
         TOOL_FAILED, "", "", "no stock", ""},
        {"error without words", ANSWER("200 OK", "{\"error\":{\n\"code\":4}}"),
         TOOL_FAILED, "", "", "{ \"code\":4}", ""},
        {"error list", ANSWER("200 OK", "{\"error\":[\"a\",\"b\"]}"),
         TOOL_FAILED, "", "", "[\"a\",\"b\"]", ""},
        {"error true", ANSWER("200 OK", "{\"error\":true,\"result\":1}"),
         TOOL_FAILED, "", "1", "the tool reported an error without saying which", ""},
        {"no error: false", ANSWER("200 OK", "{\"error\":false,\"result\":1}"),
         TOOL_DONE, "", "1", "", ""},
        {"no error: empty", ANSWER("200 OK", "{\"error\":\"\",\"result\":1}"),
         TOOL_DONE, "", "1", "", ""},
        {"no error: a number", ANSWER("200 OK", "{\"error\":0.01,\"value\":1.2}"),
         TOOL_DONE, "", "{\"error\":0.01,\"value\":1.2}", "", ""},
        {"no error: a number alone", ANSWER("200 OK", "{\"error\":0}"),
         TOOL_DONE, "", "{\"error\":0}", "", ""},
        {"secrets repeated", ANSWER("200 OK",
         "{\"error\":\"bad Bearer " TOKEN ", or " TOKEN ", at /order?" QUERY " by " PASSWORD "\"}"),
         TOOL_FAILED, "", "", "bad **********************, or ***************, at "
         "/order?**************** by ****************", ""},
        {"several lines of error", ANSWER("200 OK", "{\"error\":\" a\\nb\\tc\\u0000d \"}"),
         TOOL_FAILED, "", "", "a b c d", ""},

        {"status and text", ANSWER("503 X", "try later\n"), TOOL_FAILED, "", "", "HTTP 503: try later", ""},
        {"status and JSON", ANSWER("422 X", "{\"detail\":\"count is too large\",\"title\":\"t\"}"),
         TOOL_FAILED, "", "", "HTTP 422: count is too large", ""},
        {"status and our own form", ANSWER("500 X", "{\"error\":\"no\",\"result\":1}"),
         TOOL_FAILED, "", "", "HTTP 500: no", ""},
        {"status and other JSON", ANSWER("400 X", "{\"fields\":{\"count\":\"large\"}}"),
         TOOL_FAILED, "", "", "HTTP 400: {\"fields\":{\"count\":\"large\"}}", ""},
        {"status and a page", ANSWER("502 X", "<html><h1>Bad</h1>"),
         TOOL_FAILED, "", "", "HTTP 502: bad gateway", ""},
        {"status alone", ANSWER("503 X", ""), TOOL_FAILED, "", "", "HTTP 503: service unavailable", ""},
        {"unusual status", ANSWER("599 X", ""), TOOL_FAILED, "", "", "HTTP 599: no reason was given", ""},
        {"status and bytes", ANSWER("500 X", "\xff\xfe"),
         TOOL_FAILED, "", "", "HTTP 500: internal error of the server", ""},
        {"status and a secret", ANSWER("401 X", "no " TOKEN),
         TOOL_FAILED, "", "", "HTTP 401: no ***************", ""},
        {"redirect", "HTTP/1.1 302 X\r\nLocation: /" TOKEN "\r\nContent-Length: 1\r\n\r\nx",
         TOOL_FAILED, "", "", "HTTP 302: the server points to another address, which is not followed; "
         "give the tool its final URL", ""},
        {"status, then cut", "HTTP/1.1 500 X\r\nContent-Length: 100\r\n\r\nbroken",
         TOOL_FAILED, "", "", "HTTP 500: broken", ""},

        {"closed", NULL, TOOL_LOST, "", "", "closed the connection without an answer", ""},
        {"cut in the head", "HTTP/1.1 200 OK\r\nConte", TOOL_LOST, "", "", "closed the connection", ""},
        {"cut in the body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"result\"",
         TOOL_DONE, "{\"result\"", "", "", ""},
        {"cut one byte sooner", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"result\"",
         TOOL_LOST, "", "", "before its answer was complete", ""},
        {"not HTTP", "220 mail ready\r\n", TOOL_LOST, "", "", "not HTTP", ""},
    };
    /* clang-format on */
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *name = rows[i].name;
        struct step steps[] = {
            ACCEPT, READ, {rows[i].answer ? DO_SEND : DO_CLOSE, rows[i].answer, 0}, CLOSE, STOP};
        struct world world;
        struct server server;
        world_init(&world);
        server_start(&server, steps);
        struct http_tool_options options = options_for(&world, server.port, "http");
        call(&world, &options);
        server_join(&server);
        expect_end(&world, name, rows[i].end);
        expect_text(name, "content", &world.content, rows[i].content);
        expect_text(name, "result", &world.result, rows[i].result);
        expect_text(name, "ui_hints", &world.ui_hints, rows[i].ui_hints);
        if (rows[i].end != TOOL_LOST)
            expect_text(name, "error", &world.error, rows[i].error);
        else if (str_find(buf_str(&world.error), str_c(rows[i].error)) < 0)
            fail_msg("%s: %.*s", name, STR_ARG(buf_str(&world.error)));
        server_done(&server);
        world_done(&world);
    }
}

/* ---- large answers ---- */

static void long_error(void **state)
{
    (void)state;
    static const struct step steps[] = {
        ACCEPT, READ, SEND(ANSWER("500 X", "")), REPEAT("会议" TOKEN, 5000), CLOSE, STOP};
    struct world world;
    struct server server;
    world_init(&world);
    server_start(&server, steps);
    struct http_tool_options options = options_for(&world, server.port, "http");
    call(&world, &options);
    server_join(&server);
    expect_end(&world, "long error", TOOL_FAILED);
    assert_true(str_starts(buf_str(&world.error), STR("HTTP 500: 会议***************会议")));
    assert_true(str_ends(buf_str(&world.error), STR("...")));
    assert_true(world.error.len > TOOL_ERROR_BYTES_MAX - 20);
    server_done(&server);
    world_done(&world);
}

enum { MIB = 1024 * 1024, BLOCK = 4096 };

/* Bodies of `count` pieces: in memory, read beside the loop, or on their way to a file. */
static void large(void **state)
{
    (void)state;
#define BODY16        "0123456789abcde\n"
#define LENGTH(bytes) "HTTP/1.1 200 OK\r\nContent-Length: " #bytes "\r\n\r\n"
    static const struct {
        const char *name, *head, *piece, *tail;
        size_t count;
        enum tool_end end;
        size_t content, result;
    } rows[] = {
        {"text that fits", LENGTH(32768), BODY16, "", 2048, TOOL_DONE, 32767, 0},
        {"text one longer", LENGTH(32770), BODY16, "xy", 2048, TOOL_DONE, 0, 32770 + 2048 + 2},
        {"content that fits", ANSWER("200 OK", "{\"content\":\""), "0123456789abcdef", "\"}", 2048,
         TOOL_DONE, 32768, 0},
        {"content one longer", ANSWER("200 OK", "{\"content\":\"x"), "0123456789abcdef", "\"}",
         2048, TOOL_DONE, 0, 32769 + 2},
        {"long JSON", ANSWER("200 OK", "{\"result\":["), "1,\"会\",\n{\"a\":2},", "3]}", 200 * 1000,
         TOOL_DONE, 0, 2 + 17 * 200 * 1000 + 1},
        {"more values than a tree may have", ANSWER("200 OK", "["), "1,", "1]", JSON_VALUES_MAX,
         TOOL_DONE, 0, 2 * JSON_VALUES_MAX + 3},
        {"nearly JSON", ANSWER("200 OK", "["), "\"012345\",", "NaN]", 200 * 1000, TOOL_DONE, 0,
         11 * 200 * 1000 + 5 + 2},
        {"as much as memory takes", LENGTH(1048576) "[            \"12", "0123456789abcdef",
         "0123456789abcd\"]", MIB / 16 - 2, TOOL_DONE, 0, MIB},
        {"one more", LENGTH(1048577) "[            \"12x", "0123456789abcdef", "0123456789abcd\"]",
         MIB / 16 - 2, TOOL_DONE, 0, MIB + 1},
        {"as large as can be", LENGTH(67108864), "              12", "", 4 * MIB, TOOL_DONE, 0, 0},
        {"JSON as large as can be", LENGTH(67108864) "[            \"12", "0123456789abcdef",
         "0123456789abcd\"]", 4 * MIB - 2, TOOL_DONE, 0, 64 * MIB},
        {"one larger", LENGTH(67108865), "              12", "x", 4 * MIB, TOOL_LOST, 0, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf block; /* many pieces, for fewer system calls */
        buf_init(&block, MIB);
        for (size_t k = 0; k < BLOCK; k++) buf_append(&block, str_c(rows[i].piece));
        buf_char(&block, '\0');
        struct step steps[] = {ACCEPT,
                               READ,
                               SEND(rows[i].head),
                               REPEAT(block.p, rows[i].count / BLOCK),
                               REPEAT(rows[i].piece, rows[i].count % BLOCK),
                               {rows[i].tail[0] ? DO_SEND : DO_CLOSE, rows[i].tail, 0},
                               CLOSE,
                               STOP};
        struct world world;
        struct server server;
        world_init(&world);
        server_start(&server, steps);
        struct http_tool_options options = options_for(&world, server.port, "http");
        options.timeout_s = 60;
        call(&world, &options);
        server_join(&server);
        expect_end(&world, rows[i].name, rows[i].end);
        if (rows[i].content || rows[i].result) {
            if (world.content.len != rows[i].content || world.result_bytes != rows[i].result ||
                world.spooled != (rows[i].result > MIB))
                fail_msg("%s: content %zu, result %zu", rows[i].name, world.content.len,
                         (size_t)world.result_bytes);
        } else if (rows[i].end == TOOL_LOST) {
            assert_true(str_find(buf_str(&world.error), STR("larger than 67108864 bytes")) >= 0);
        }
        assert_true(str_find_char(buf_str(&world.result), '\n') < 0);
        server_done(&server);
        world_done(&world);
    }
}

/* Words too long to be escaped into a result that can be kept: head and tail of them are. */
static void control_characters(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    size_t len = 16 * MIB;
    char *body = malloc(len);
    assert_non_null(body);
    memset(body, 1, len); /* six bytes each in JSON */
    struct tool_result result;
    struct http_reply reply = {200, body, len, STR("en")};
    assert_int_equal(http_result_read(&arena, &reply, &result), TOOL_DONE);
    assert_int_equal(result.result.len, 0);
    assert_true(result.content.len <= TOOL_CONTENT_BYTES_MAX);
    assert_true(str_find(result.content, STR(" bytes left out ...]")) > 0);
    free(body);
}

static void long_content_and_result(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf body;
    arena_init(&arena);
    buf_init(&body, MIB);
    buf_append(&body, STR("{\"result\":1,\"content\":\""));
    for (size_t i = 0; i < 10000; i++) buf_append(&body, STR("会议 "));
    buf_append(&body, STR("\",\"ui_hints\":{\"a\":\""));
    size_t before = body.len;
    while (body.len - before < TOOL_HINTS_BYTES_MAX)
        buf_char(&body, 'x'); /* too long by its ends */
    buf_append(&body, STR("\"}}"));
    struct tool_result result;
    struct http_reply reply = {200, body.p, body.len, STR("zh")};
    assert_int_equal(http_result_read(&arena, &reply, &result), TOOL_DONE);
    assert_str(result.result, STR("1"));
    assert_int_equal(result.ui_hints.len, 0);
    assert_true(result.content.len <= TOOL_CONTENT_BYTES_MAX && utf8_valid(result.content));
    assert_true(str_find(result.content, STR("此处省略")) > 0);
}

/* ---- never reached, or lost ---- */

static void refused(void **state)
{
    (void)state;
    int fd = bound_socket(); /* does not listen */
    struct world world;
    world_init(&world);
    struct http_tool_options options = options_for(&world, bound_port(fd), "http");
    call(&world, &options);
    expect_end(&world, "refused", TOOL_AWAY);
    assert_true(str_starts(buf_str(&world.error), STR("cannot connect to 127.0.0.1:")));
    world_done(&world);
    close(fd);
}

static void no_tls(void **state)
{
    (void)state;
    static const struct step steps[] = {ACCEPT, SEND("HTTP/1.1 400 No\r\n\r\n"), CLOSE, STOP};
    struct world world;
    struct server server;
    world_init(&world);
    server_start(&server, steps);
    struct http_tool_options options = options_for(&world, server.port, "https");
    call(&world, &options);
    server_join(&server);
    expect_end(&world, "no TLS", TOOL_AWAY);
    server_done(&server);
    world_done(&world);
}

/* A name that no resolver has to be asked for: a part of it is too long. */
static void no_such_host(void **state)
{
    (void)state;
    struct world world;
    world_init(&world);
    struct http_tool_options options = options_for(&world, 1, "http");
    options.url =
        STR("http://a0123456789012345678901234567890123456789012345678901234567890123456789"
            ".invalid/");
    call(&world, &options);
    expect_end(&world, "no such host", TOOL_AWAY);
    assert_true(str_starts(buf_str(&world.error), STR("cannot find the host ")));
    world_done(&world);
}

static void time_outs(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct step steps[STEPS_MAX];
        const char *error;
    } rows[] = {
        {"no answer", {ACCEPT, READ, AWAIT}, "within 1000 ms"},
        {"half an answer", {ACCEPT, READ, SEND(LENGTH(9) "{"), AWAIT}, "within 1000 ms"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world world;
        struct server server;
        world_init(&world);
        server_start(&server, rows[i].steps);
        struct http_tool_options options = options_for(&world, server.port, "http");
        options.timeout_s = 1;
        call(&world, &options);
        expect_end(&world, rows[i].name, TOOL_LOST);
        if (str_find(buf_str(&world.error), str_c(rows[i].error)) < 0)
            fail_msg("%s: %.*s", rows[i].name, STR_ARG(buf_str(&world.error)));
        server_join(&server);
        assert_int_equal(server.accepted, 1); /* and never a second time */
        server_done(&server);
        world_done(&world);
    }
}

/* ---- ends from outside ---- */

/* Start two calls and run until the server has read both and answered the second that came. Returns
 * where the other one waits; `twin` shares what the world has but for the end of a call. */
static struct world *start_silent(struct world *world, struct world *twin, struct server *server)
{
    static const struct step steps[] = {ACCEPT, READ,   ACCEPT, READ, SEND(ANSWER("200 OK", "")),
                                        CLOSE,  ACCEPT, STOP};
    server_start(server, steps);
    struct http_tool_options options = options_for(world, server->port, "http");
    make_tool(world, &options);
    *twin = *world; /* no text has come yet, and none does */
    start(world, "en");
    start(twin, "en");
    run(world);
    assert_int_equal(world->ends + twin->ends, 1);
    return world->ends ? twin : world;
}

/* Connect and leave, for a server that waits for it. */
static void knock(const struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(server->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(connect(fd, (struct sockaddr *)&address, sizeof address), errno);
    close(fd);
}

static void dismiss(struct server *server)
{
    knock(server);
    server_join(server);
    server_done(server);
}

/* The client goes while a call is open: what was sent is lost, the rest never left. */
static void client_gone(void **state)
{
    (void)state;
    struct world world, twin, *silent;
    struct server server;
    world_init(&world);
    silent = start_silent(&world, &twin, &server);
    client_free(world.client);
    world.client = NULL;
    assert_int_equal(silent->ends, 1);
    expect_end(silent, "under way", TOOL_LOST);
    if (silent == &twin) world.error = twin.error;
    world_done(&world);
    dismiss(&server);

    world_init(&world);
    struct http_tool_options options = options_for(&world, 1, "http");
    make_tool(&world, &options);
    start(&world, "en");
    client_free(world.client);
    world.client = NULL;
    assert_int_equal(world.ends, 1);
    expect_end(&world, "before it was sent", TOOL_AWAY);
    world_done(&world);
}

static void cancelling(void **state)
{
    (void)state;
    static const struct step answered[] = {ACCEPT, READ, SEND(ANSWER("200 OK", "1")), CLOSE, STOP};
    struct world world, twin, *silent;
    struct server server;

    world_init(&world); /* before it is sent */
    struct http_tool_options options = options_for(&world, 1, "http");
    make_tool(&world, &options);
    start(&world, "en");
    tool_cancel(&world.tool, world.call);
    world_done(&world);
    assert_int_equal(world.ends, 0);

    world_init(&world); /* under way */
    silent = start_silent(&world, &twin, &server);
    tool_cancel(&silent->tool, silent->call);
    world_done(&world);
    assert_int_equal(silent->ends, 0);
    dismiss(&server);

    world_init(&world); /* inside its own end */
    server_start(&server, answered);
    options = options_for(&world, server.port, "http");
    world.cancel_inside = true;
    call(&world, &options);
    server_join(&server);
    server_done(&server);
    world_done(&world);
}

static void stop_loop(void *arg)
{
    loop_stop(arg);
}

/* Work that keeps the threads of the pool until it is told to end. */
enum { BLOCKERS = 64 }; /* the pool has 4 threads, unless the environment says otherwise */

struct blocker {
    struct loop_work work;
    sem_t *go;
};

static void block(struct loop_work *work)
{
    sem_wait(CONTAINER(work, struct blocker, work)->go);
}

static void unblocked(struct loop_work *work)
{
    (void)work;
}

/* Run until the server has sent everything, and on, until the client has read it. */
static void run_until_sent(struct world *world, struct server *server)
{
    struct timer *soon = timer_new(world->loop, stop_loop, world->loop);
    for (int more = 50; more > 0;) {
        timer_start(soon, 1);
        run(world);
        if (more < 50 || pthread_tryjoin_np(server->thread, NULL) == 0) more--;
    }
    timer_free(soon);
    close(server->listener);
    assert_null(server->failed);
}

/* A long answer waits for a thread when its call is cancelled, and is read when its tool is gone. */
static void cancel_while_reading(void **state)
{
    (void)state;
    static const struct step steps[] = {
        ACCEPT, READ, SEND(ANSWER("200 OK", "[")), REPEAT("1,", 40 * 1000), SEND("1]"),
        CLOSE,  STOP};
    struct world world;
    struct server server;
    struct blocker blockers[BLOCKERS];
    sem_t go;
    world_init(&world);
    sem_init(&go, 0, 0);
    for (size_t i = 0; i < BLOCKERS; i++) {
        blockers[i] = (struct blocker){{block, unblocked}, &go};
        loop_work(world.loop, &blockers[i].work);
    }
    server_start(&server, steps);
    struct http_tool_options options = options_for(&world, server.port, "http");
    make_tool(&world, &options);
    start(&world, "en");
    run_until_sent(&world, &server);
    assert_int_equal(world.ends, 0);
    tool_cancel(&world.tool, world.call);
    http_tool_free(&world.tool);
    arena_reset(&world.arena);
    world.tool.ops = NULL;
    for (size_t i = 0; i < BLOCKERS; i++) sem_post(&go);
    world_done(&world);
    assert_int_equal(world.ends, 0);
    sem_destroy(&go);
    server_done(&server);
}

/* While no thread can write, the server has to wait; then all of it comes. */
static void held_back(void **state)
{
    (void)state;
    enum { BLOCKS = 1000 };
    AUTO(buf_done) struct buf block_of;
    buf_init(&block_of, MIB);
    for (size_t k = 0; k < BLOCK; k++) buf_append(&block_of, STR("\"0123456789\","));
    buf_char(&block_of, '\0');
    const struct step steps[] = {
        ACCEPT, READ, SEND(ANSWER("200 OK", "[")), REPEAT(block_of.p, BLOCKS), SEND("1]"),
        CLOSE,  STOP};
    struct world world;
    struct server server;
    struct blocker blockers[BLOCKERS];
    sem_t go;
    world_init(&world);
    sem_init(&go, 0, 0);
    for (size_t i = 0; i < BLOCKERS; i++) {
        blockers[i] = (struct blocker){{block, unblocked}, &go};
        loop_work(world.loop, &blockers[i].work);
    }
    server_start(&server, steps);
    struct http_tool_options options = options_for(&world, server.port, "http");
    options.timeout_s = 60;
    make_tool(&world, &options);
    start(&world, "en");
    struct timer *soon = timer_new(world.loop, stop_loop, world.loop);
    for (int turn = 0; turn < 300; turn++) {
        timer_start(soon, 1);
        run(&world);
        assert_int_not_equal(pthread_tryjoin_np(server.thread, NULL), 0);
    }
    for (size_t i = 0; i < BLOCKERS; i++) sem_post(&go);
    while (!world.ends) run(&world);
    expect_end(&world, "held back", TOOL_DONE);
    assert_int_equal(world.result_bytes, 13 * BLOCK * BLOCKS + 3);
    timer_free(soon);
    server_join(&server);
    server_done(&server);
    world_done(&world);
    sem_destroy(&go);
}

/* A long answer is on its way to a file when its call is cancelled, when it breaks off, and when it
 * is a refusal after all: no file stays. */
static void long_and_gone(void **state)
{
    (void)state;
    static const struct {
        const char *name, *head;
        enum { CANCELLED, CUT, CLIENT_GONE } how;
    } rows[] = {
        {"cancelled", ANSWER("200 OK", "["), CANCELLED},
        {"cut", LENGTH(100000000) "[", CUT},
        {"client gone", ANSWER("200 OK", "["), CLIENT_GONE},
    };
    AUTO(buf_done) struct buf block;
    buf_init(&block, MIB);
    for (size_t k = 0; k < BLOCK; k++) buf_append(&block, STR("\"0123456789\","));
    buf_char(&block, '\0');
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct step steps[] = {ACCEPT,
                               READ,
                               SEND(rows[i].head),
                               REPEAT(block.p, 100),
                               {rows[i].how == CUT ? DO_CLOSE : DO_AWAIT, NULL, 0},
                               STOP};
        struct world world;
        struct server server;
        world_init(&world);
        server_start(&server, steps);
        struct http_tool_options options = options_for(&world, server.port, "http");
        options.timeout_s = 60;
        make_tool(&world, &options);
        start(&world, "en");
        const char *file = path_in(world.folder, "spool/.stream-0");
        struct timer *soon = timer_new(world.loop, stop_loop, world.loop);
        while (rows[i].how != CUT && access(file, F_OK)) {
            timer_start(soon, 1);
            run(&world);
        }
        if (rows[i].how == CANCELLED) tool_cancel(&world.tool, world.call);
        if (rows[i].how == CLIENT_GONE) client_free(TAKE(world.client));
        while (rows[i].how == CUT && !world.ends) run(&world);
        assert_int_equal(world.ends, rows[i].how != CANCELLED);
        if (world.ends) expect_end(&world, rows[i].name, TOOL_LOST);
        while (!access(file, F_OK)) {
            timer_start(soon, 1);
            run(&world);
        }
        assert_int_not_equal(access(path_in(world.folder, "spool/call_7"), F_OK), 0);
        timer_free(soon);
        server_join(&server);
        server_done(&server);
        world_done(&world);
    }
}

/* ---- making a tool ---- */

static void made(void **state)
{
    (void)state;
    struct world world;
    world_init(&world);
    struct http_tool_options options = options_for(&world, 1, "http");
    make_tool(&world, &options);
    const struct tool *tool = &world.tool;
    assert_str(tool->name, STR("place_order"));
    assert_str(tool->pack, STR("place_order"));
    assert_str(tool->description, STR("orders something"));
    assert_true(tool->write && tool->idempotent);
    assert_int_equal(tool->risk, RISK_EXTERNAL);
    assert_int_equal(tool->summary.len, 0);
    assert_int_equal(tool->schema.len, sizeof SCHEMA - 1);
    assert_true(str_find_char(tool->schema, '\n') < 0 && str_find_char(tool->schema, '\t') < 0);
    struct fault fault;
    assert_int_equal(schema_check(tool->args, parsed(&world.arena, "{\"item\":1}"), "args", &fault),
                     ERR_INVALID_FIELD);
    assert_string_equal(fault.text, "args.item must be a string, not an integer");
    world_done(&world);
}

static void not_made(void **state)
{
    (void)state;
    static const struct {
        const char *name, *url, *schema, *header, *value;
        uint32_t timeout_s;
        const char *field, *text;
    } rows[] = {
        {"a b", NULL, NULL, NULL, NULL, 0, "name", "1 to 64 letters"},
        {"", NULL, NULL, NULL, NULL, 0, "name", "1 to 64 letters"},
        {"a", "ftp://" PASSWORD, NULL, NULL, NULL, 0, "url", "http://host/path"},
        {"a", "http://host/ " PASSWORD, NULL, NULL, NULL, 0, "url", "http://host/path"},
        {"a", "http://host/会", NULL, NULL, NULL, 0, "url", "in ASCII"},
        {"a", "", NULL, NULL, NULL, 0, "url", "http://host/path"},
        {"a", NULL, "{}", NULL, NULL, 0, "schema.type", "must have the type object"},
        {"a", NULL, "[]", NULL, NULL, 0, "schema.type", "must have the type object"},
        {"a", NULL, "{\"type\":[\"object\",\"null\"]}", NULL, NULL, 0, "schema.type",
         "type object"},
        {"a", NULL, "{\"type\":\"object\",\"properties\":{\"x\":{\"oneOf\":[]}}}", NULL, NULL, 0,
         "schema.properties.x.oneOf", "properties.x.oneOf is not supported"},
        {"a", NULL, NULL, "X Y", TOKEN, 0, "headers", "\"X Y\" is not the name"},
        {"a", NULL, NULL, "", TOKEN, 0, "headers", "is not the name"},
        {"a", NULL, NULL, "X", TOKEN "\r\nY: z", 0, "headers.X", "control character"},
        {"a", NULL, NULL, "idempotency-key", TOKEN, 0, "headers.idempotency-key", "set by Fermata"},
        {"a", NULL, NULL, "Content-Type", TOKEN, 0, "headers.Content-Type", "set by Fermata"},
        {"a", NULL, NULL, "Content-Length", "5", 0, "headers.Content-Length", "set by Fermata"},
        {"a", NULL, NULL, NULL, NULL, HTTP_TOOL_S_MAX + 1, "timeout_s", "at most 3600 seconds"},
    };
    struct world world;
    world_init(&world);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct http_tool_header header = {str_c(rows[i].header), str_c(rows[i].value)};
        struct http_tool_options options = options_for(&world, 1, "http");
        struct tool tool = {0};
        struct fault fault = {0};
        options.name = str_c(rows[i].name);
        options.timeout_s = rows[i].timeout_s;
        if (rows[i].url) options.url = str_c(rows[i].url);
        if (rows[i].schema) options.schema = parsed(&world.arena, rows[i].schema);
        options.headers = &header;
        options.header_count = rows[i].header ? 1 : 0;
        enum err e = http_tool_new(&world.arena, world.client, &options, &tool, &fault);
        if (e != ERR_INVALID_FIELD || strcmp(fault.field, rows[i].field) ||
            !strstr(fault.text, rows[i].text) || strstr(fault.text, "secret") || tool.ops)
            fail_msg("row %zu: %s \"%s\": \"%s\"", i, err_code(e), fault.field, fault.text);
    }
    world_done(&world);
}

static void many_headers(void **state)
{
    (void)state;
    struct world world;
    struct http_tool_header many[CLIENT_FIELDS_MAX];
    for (size_t i = 0; i < COUNT(many); i++)
        many[i] = (struct http_tool_header){STR("X"), STR("y")};
    world_init(&world);
    struct http_tool_options options = options_for(&world, 1, "http");
    struct tool tool;
    struct fault fault;
    options.headers = many;
    options.header_count = CLIENT_FIELDS_MAX - 3;
    assert_int_equal(http_tool_new(&world.arena, world.client, &options, &tool, &fault), OK);
    options.header_count++;
    assert_int_equal(http_tool_new(&world.arena, world.client, &options, &tool, &fault),
                     ERR_INVALID_FIELD);
    assert_string_equal(fault.field, "headers");
    world_done(&world);
}

static int ignore_sigpipe(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

int test_http_tool(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request),
        cmocka_unit_test(languages),
        cmocka_unit_test(answers),
        cmocka_unit_test(long_error),
        cmocka_unit_test(large),
        cmocka_unit_test(control_characters),
        cmocka_unit_test(long_content_and_result),
        cmocka_unit_test(refused),
        cmocka_unit_test(no_tls),
        cmocka_unit_test(no_such_host),
        cmocka_unit_test(time_outs),
        cmocka_unit_test(client_gone),
        cmocka_unit_test(cancelling),
        cmocka_unit_test(cancel_while_reading),
        cmocka_unit_test(long_and_gone),
        cmocka_unit_test(held_back),
        cmocka_unit_test(made),
        cmocka_unit_test(not_made),
        cmocka_unit_test(many_headers),
    };
    return cmocka_run_group_tests_name("tool/http_tool", tests, ignore_sigpipe, NULL);
}
