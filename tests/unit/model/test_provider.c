/* SPDX-License-Identifier: Apache-2.0
 *
 * Models behind HTTP, against a server that does what its script says: what is sent, every kind of
 * answer and break, names there and back, keys that stay here, and cancelling at each point.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "check.h"
#include "model/codec.h"
#include "model/model_kit.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "net/script_server.h"

enum { STEPS_MAX = 16, SHORT_MS = 80 };

#define KEY "sk-proj-AbCdEfGhIjKlMnOp"

#define PLAIN           \
    {                   \
        .max_output = 0 \
    }

/* ---- a model and its server ---- */

struct world {
    struct loop *loop;
    struct client *client;
    struct server server;
    struct model model;
    char url[64];
};

static void open_model(struct world *world, const struct model_http_options *more)
{
    struct model_http_options options = *more;
    struct fault fault;
    setenv("no_proxy", "127.0.0.1", 1);
    world->loop = loop_new();
    world->client = client_new(world->loop);
    snprintf(world->url, sizeof world->url, "http://127.0.0.1:%u/v1", world->server.port);
    options.base_url = str_c(world->url);
    options.name = STR("m");
    options.api_key = STR(KEY);
    assert_int_equal(model_openai(world->client, &options, &world->model, &fault), OK);
}

static void open_world(struct world *world, const struct step *steps,
                       const struct model_http_options *more)
{
    *world = (struct world){0};
    server_start(&world->server, steps);
    open_model(world, more);
}

static void close_world(struct world *world)
{
    model_free(&world->model);
    client_free(world->client);
    loop_free(world->loop);
    server_join(&world->server);
    server_done(&world->server);
}

/* One call. Whatever it ends with, no text tells the key. */
static void ask(struct world *world, struct heard *heard)
{
    heard_start(heard, world->loop, &world->model, STR("Hi"), 1);
    heard_wait(heard);
    for (size_t i = 0; i + 8 <= sizeof KEY - 1; i++) {
        char run[9];
        snprintf(run, sizeof run, "%.8s", &KEY[i]);
        if (strstr(heard->why.text, run)) fail_msg("\"%s\" tells the key", heard->why.text);
    }
    for (const char *c = heard->why.text; *c; c++) assert_false((unsigned char)*c < ' ');
}

/* ---- answers ---- */

#define STREAM_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
#define CLOSING     STREAM_HEAD "Connection: close\r\n\r\n"
#define HELLO       "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n"
#define FINISH      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
#define USAGE       "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n"
#define DONE        "data: [DONE]\n\n"
#define WHOLE       HELLO FINISH USAGE DONE
#define ANSWER(status, fields, body)                                                           \
    {                                                                                          \
        ACCEPT, READ, SEND("HTTP/1.1 " status "\r\nConnection: close\r\n" fields "\r\n" body), \
            CLOSE                                                                              \
    }
#define TYPED(type, body)                                                                        \
    {                                                                                            \
        ACCEPT, READ,                                                                            \
            SEND("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: " type "\r\n\r\n" body), \
            CLOSE                                                                                \
    }

static const struct {
    const char *name;
    struct step steps[STEPS_MAX];
    struct model_http_options options;
    const char *trace;
    const char *why; /* a part of it; NULL: none */
    /* clang-format off */
} answers[] = {
    {"whole", {ACCEPT, READ, SEND(CLOSING WHOLE), CLOSE}, PLAIN, "t<Hello>done", NULL},
    {"whole, the server lingers", {ACCEPT, READ, SEND(CLOSING WHOLE), AWAIT}, PLAIN, "t<Hello>done", NULL},
    {"more behind the end", {ACCEPT, READ, SEND(CLOSING WHOLE HELLO "data: {"), CLOSE}, PLAIN, "t<Hello>done", NULL},
    {"no end mark", {ACCEPT, READ, SEND(CLOSING HELLO FINISH), CLOSE}, PLAIN, "t<Hello>done", NULL},
    {"one byte at a time",
     {ACCEPT, READ, SEND(STREAM_HEAD "Transfer-Encoding: chunked\r\n\r\n"),
      REPEAT("1\r\n:\r\n", 500), SEND("1\r\n\n\r\n"), REPEAT("2\r\n\r\n\r\n", 50),
      SEND("5\r\ndata:\r\n"), SEND("d\r\n{\"choices\":[{\r\n"),
      SEND("1c\r\n\"delta\":{\"content\":\"\xe4\xbd\xa0\"}}]}\r\n"), SEND("2\r\n\n\n\r\n"),
      SEND("39\r\n" FINISH "\r\n"), SEND("e\r\n" DONE "\r\n0\r\n\r\n"), AWAIT},
     PLAIN, "t<\xe4\xbd\xa0>done", NULL},
    {"no type", ANSWER("200 OK", "", WHOLE), PLAIN, "t<Hello>done", NULL},
    {"a document", TYPED("application/json",
      "{\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}"), PLAIN, "t<Hi>done", NULL},
    {"a document without an end", TYPED("application/json",
      "{\"choices\":[{\"message\":{\"content\":\"Hi\"}}]}"), PLAIN, "t<Hi>again", "in the middle"},
    {"an error as a document", TYPED("application/json; charset=utf-8",
      "{\"error\":{\"message\":\"overloaded\",\"code\":503}}"), PLAIN, "again", "overloaded"},
    {"half a document", TYPED("application/json", "{\"choices\":[{\"mess"), PLAIN, "again", "no JSON"},
    {"a page", TYPED("text/html", "<html>Welcome</html>"), PLAIN, "again", "check base_url of the model. Got text/html"},
    {"a page without end", {ACCEPT, READ, SEND("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"), AWAIT},
     PLAIN, "again", "base_url"},
    {"nothing", {ACCEPT, READ, SEND("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"), CLOSE}, PLAIN,
     "again", "in the middle"},
    {"a filter", {ACCEPT, READ, SEND(CLOSING HELLO
      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"content_filter\"}]}\n\n"), AWAIT}, PLAIN,
     "t<Hello>failed", "127.0.0.1:"},
    {"an error in the stream that shows the key", {ACCEPT, READ, SEND(CLOSING HELLO
      "data: {\"error\":{\"message\":\"bad\\nkey " KEY " and AbCdEfGhIjKl\"}}\n\n"), AWAIT}, PLAIN,
     "t<Hello>again", "bad key ************************ and ************"},

    {"cut in an event", {ACCEPT, READ, SEND(CLOSING HELLO "data: {\"cho"), CLOSE}, PLAIN,
     "t<Hello>again", "in the middle"},
    {"cut between chunks", {ACCEPT, READ, SEND(STREAM_HEAD "Transfer-Encoding: chunked\r\n\r\n"
      "33\r\n" HELLO "\r\n"), CLOSE}, PLAIN, "t<Hello>again", "127.0.0.1"},
    {"cut behind the finish", {ACCEPT, READ, SEND(STREAM_HEAD "Content-Length: 500\r\n\r\n" HELLO FINISH),
      CLOSE}, PLAIN, "t<Hello>again", "before its answer was complete"},
    {"reset at once", {ACCEPT, READ, RESET}, PLAIN, "again", "broke"},
    {"closed at once", {ACCEPT, READ, CLOSE}, PLAIN, "again", "without an answer"},
    {"not HTTP", {ACCEPT, READ, SEND("what?\r\n"), CLOSE}, PLAIN, "again", "not HTTP"},
    {"hangs", {ACCEPT, READ, AWAIT}, {.first_byte_ms = SHORT_MS}, "again", "did not begin to answer"},
    {"stops", {ACCEPT, READ, SEND(STREAM_HEAD "Content-Length: 500\r\n\r\n" HELLO "data: {"), AWAIT},
     {.idle_ms = SHORT_MS}, "t<Hello>again", "no byte for"},
    {"an endless event", {ACCEPT, READ, SEND(CLOSING HELLO "data: "), REPEAT("0123456789abcdef", 70000), AWAIT},
     PLAIN, "t<Hello>failed", "larger than 1048576 bytes"},
    {"an endless document", {ACCEPT, READ, SEND("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: "
      "application/json\r\n\r\n"), REPEAT("0123456789abcdef", 70000), CLOSE}, PLAIN, "failed", "larger than"},

    {"a wrong key", ANSWER("401 Unauthorized", "Content-Type: application/json\r\n",
      "{\"error\":{\"message\":\"Incorrect API key provided: sk-proj-********MnOp. See " KEY "\"}}"), PLAIN,
     "failed", "answered 401: it does not accept the key; check api_key or api_key_file of the model. It says: "
     "Incorrect API key provided: ********************* See ************************"},
    {"an unknown model", ANSWER("404 Not Found", "", "{\"error\":\"no such model\"}"), PLAIN, "failed",
     "answered 404: it does not know this; check name and base_url of the model. It says: no such model"},
    {"a redirect", ANSWER("302 Found", "Location: http://127.0.0.1:1/\r\nContent-Length: 0\r\n", ""), PLAIN,
     "failed", "points elsewhere"},
    {"a bad request", ANSWER("400 Bad Request", "", "{\"detail\":\"no\"}"), PLAIN, "failed", "It says: no"},
    {"too large", ANSWER("413 Payload Too Large", "", ""), PLAIN, "failed", "answered 413"},
    {"a page with an error", ANSWER("503 Busy", "Content-Type: text/html\r\n", "<h1>no</h1>"), PLAIN, "again",
     "answered 503: it has a problem of its own"},
    {"overloaded", ANSWER("529 Overloaded", "", "overloaded\x01\xff"), PLAIN, "again", "It says: overloaded ?"},
    {"an error cut short", {ACCEPT, READ, SEND("HTTP/1.1 429 Slow\r\nContent-Length: 100\r\n\r\nslow"), CLOSE},
     PLAIN, "again", "answered 429: too many requests, or no quota left. It says: slow"},
    {"an endless error", {ACCEPT, READ, SEND("HTTP/1.1 500 No\r\nConnection: close\r\n\r\n" KEY),
      REPEAT(" " KEY, 8000), CLOSE}, PLAIN, "again", "It says: ************************ ***"},
};
/* clang-format on */

static void talks(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(answers); i++) {
        struct world world;
        AUTO(heard_done) struct heard heard = {0};
        open_world(&world, answers[i].steps, &answers[i].options);
        ask(&world, &heard);
        if (!str_eq(buf_str(&heard.trace), str_c(answers[i].trace)))
            fail_msg("%s: got \"%.*s\" (%s), expected \"%s\"", answers[i].name,
                     STR_ARG(buf_str(&heard.trace)), heard.why.text, answers[i].trace);
        if (answers[i].why && !strstr(heard.why.text, answers[i].why))
            fail_msg("%s: got \"%s\", expected \"%s\"", answers[i].name, heard.why.text,
                     answers[i].why);
        close_world(&world);
    }
}

static void nobody_there(void **state)
{
    (void)state;
    struct world world = {0};
    AUTO(heard_done) struct heard heard = {0};
    int fd = bound_socket(); /* it does not listen */
    world.server.port = bound_port(fd);
    open_model(&world, &(struct model_http_options)PLAIN);
    ask(&world, &heard);
    assert_str(buf_str(&heard.trace), STR("again"));
    assert_non_null(strstr(heard.why.text, "cannot connect to 127.0.0.1"));
    model_free(&world.model);
    client_free(world.client);
    loop_free(world.loop);
    close(fd);
}

static void retry_after(void **state)
{
    (void)state;
    static const struct {
        struct step steps[STEPS_MAX];
        msec wait;
    } rows[] = {
        {ANSWER("429 Slow", "Retry-After: 7\r\n", ""), 7000},
        {ANSWER("503 Busy", "Retry-After: 7\r\nretry-after-ms: 1250\r\n", ""), 1250},
        {ANSWER("429 Slow",
                "Date: Sun, 15 Nov 2026 05:52:50 GMT\r\n"
                "Retry-After: Sun, 15 Nov 2026 05:53:00 GMT\r\n",
                ""),
         10000},
        {ANSWER("429 Slow", "", ""), 0},
        {ANSWER("429 Slow", "Retry-After: later\r\n", ""), 0},
        {ANSWER("400 No", "Retry-After: 7\r\n", ""), 0}, /* nothing to try again */
        {ANSWER("200 OK", "Retry-After: 7\r\n", HELLO), 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world world;
        AUTO(heard_done) struct heard heard = {0};
        open_world(&world, rows[i].steps, &(struct model_http_options)PLAIN);
        ask(&world, &heard);
        assert_int_equal(heard.retry_after_ms, rows[i].wait);
        close_world(&world);
    }
}

/* ---- what is sent ---- */

static const struct step twice[] = {
    ACCEPT,
    READ,
    SEND(STREAM_HEAD "Transfer-Encoding: chunked\r\n\r\n"),
    SEND("33\r\n" HELLO "\r\n39\r\n" FINISH "\r\ne\r\n" DONE "\r\n"),
    SEND("0\r\n\r\n"),
    READ,
    SEND(STREAM_HEAD "Transfer-Encoding: chunked\r\n\r\n"),
    SEND("33\r\n" HELLO "\r\n39\r\n" FINISH "\r\ne\r\n" DONE "\r\n0\r\n\r\n"),
    STOP,
};

/* The end of an answer is waited for, so the next call finds the connection. */
static void keeps_connection(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, twice, &(struct model_http_options){.max_output = 77});
    for (int i = 0; i < 2; i++) {
        AUTO(heard_done) struct heard heard = {0};
        ask(&world, &heard);
        assert_str(buf_str(&heard.trace), STR("t<Hello>done"));
    }
    pthread_join(world.server.thread, NULL);
    assert_int_equal(world.server.accepted, 1);
    assert_true(server_saw(&world.server, "POST /v1/chat/completions HTTP/1.1\r\n"));
    assert_true(server_saw(&world.server, "\r\nAuthorization: Bearer " KEY "\r\n"));
    assert_true(server_saw(&world.server, "\r\nContent-Type: application/json\r\n"));
    assert_true(server_saw(&world.server, "\r\nAccept: text/event-stream\r\n"));
    assert_true(server_saw(&world.server, "\r\n\r\n{\"model\":\"m\",\"stream\":true,"));
    assert_true(server_saw(&world.server, "\"max_tokens\":77,"));
    assert_string_equal(world.model.provider, "openai");
    assert_string_equal(world.model.name, "m");
    assert_int_equal(world.model.max_output, 77);
    assert_false(world.model.images);
    model_free(&world.model);
    client_free(world.client);
    loop_free(world.loop);
    assert_null(world.server.failed);
    close(world.server.listener);
    server_done(&world.server);
}

static void usage(void **state)
{
    (void)state;
    struct world world;
    AUTO(heard_done) struct heard heard = {0};
    open_world(&world, (const struct step[]){ACCEPT, READ, SEND(CLOSING WHOLE), CLOSE, STOP},
               &(struct model_http_options)PLAIN);
    ask(&world, &heard);
    assert_int_equal(heard.usage.input_tokens, 3);
    assert_int_equal(heard.usage.output_tokens, 4);
    assert_int_equal(heard.provider_data.len, 0);
    close_world(&world);
}

#define TOOL(name) "{\"name\":\"" name "\",\"description\":\"\",\"parameters\":{}}"
#define CALL(id, name)                                              \
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"" id \
    "\",\"function\":{\"name\":\"" name "\",\"arguments\":\"{}\"}}]}}]}\n\n"

static void tool_names(void **state)
{
    (void)state;
    struct world world;
    AUTO(heard_done) struct heard heard = {0};
    static const struct step steps[] = {ACCEPT, READ,
                                        SEND(CLOSING CALL("1", "files_write") CALL(
                                            "2", "files_read") CALL("3", "made up") FINISH DONE),
                                        CLOSE, STOP};
    struct model_message message = {.role = STR("user"), .text = STR("x")};
    struct model_request request = {
        .messages = &message,
        .count = 1,
        .tools = STR("[" TOOL("files.read") "," TOOL("files_read") "," TOOL("files.write") "]")};
    open_world(&world, steps, &(struct model_http_options)PLAIN);
    heard_ask(&heard, world.loop, &world.model, &request);
    heard_wait(&heard);
    assert_str(buf_str(&heard.trace),
               STR("c0<1 files.write>a0<{}>c1<2 files_read>a1<{}>c2<3 made up>a2<{}>done"));
    close_world(&world);
    assert_true(str_find(buf_str(&world.server.seen), STR("files.")) < 0);
}

/* ---- ends of our own making ---- */

static void on_patience(void *arg)
{
    loop_stop(arg);
}

/* Let the loop run on, to see that nothing more comes. */
static void run_on(struct loop *loop, msec ms)
{
    struct timer *timer = timer_new(loop, on_patience, loop);
    timer_start(timer, ms);
    loop_run(loop);
    timer_free(timer);
}

/* A request that is larger than any provider takes: the picture is never read. */
static void too_much(void **state)
{
    (void)state;
    struct world world = {0};
    struct model_image image = {.mime = STR("image/png"),
                                .bytes = {"", (size_t)MODEL_REQUEST_BYTES_MAX}};
    struct model_message message = {.role = STR("user"), .images = &image, .image_count = 1};
    struct model_request request = {.messages = &message, .count = 1};
    open_model(&world, &(struct model_http_options)PLAIN);
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        AUTO(heard_done) struct heard heard = {0};
        heard_ask(&heard, world.loop, &world.model, &request);
        if (cancelled) {
            heard_cancel(&heard);
            run_on(world.loop, SHORT_MS / 4);
        } else {
            heard_wait(&heard);
            assert_str(buf_str(&heard.trace), STR("failed"));
            assert_non_null(strstr(heard.why.text, "the request is larger than"));
        }
    }
    model_free(&world.model);
    client_free(world.client);
    loop_free(world.loop);
}

#define RICH                                                                                 \
    CLOSING                                                                                  \
    "data: {\"choices\":[{\"delta\":{\"reasoning\":\"r\",\"content\":\"t\",\"tool_calls\":[" \
    "{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},"                     \
    "{\"id\":\"2\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}}]}\n\n" FINISH DONE

/* Inside each callback, all of which come from one event and the end: none follows. */
static void cancels_inside(void **state)
{
    (void)state;
    static const struct step steps[] = {ACCEPT, READ, SEND(RICH), AWAIT, STOP};
    static const struct step document[] = {
        ACCEPT, READ,
        SEND("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
             "{\"choices\":[{\"message\":{\"content\":\"t\",\"tool_calls\":[{\"id\":\"1\","
             "\"function\":{\"name\":\"f\"}}]},\"finish_reason\":\"stop\"}]}"),
        CLOSE, STOP};
    for (size_t at = 1; at <= 12; at++) {
        struct world world;
        AUTO(heard_done) struct heard heard = {.cancel_at = at > 8 ? at - 8 : at};
        open_world(&world, at > 8 ? document : steps, &(struct model_http_options)PLAIN);
        heard_start(&heard, world.loop, &world.model, STR("Hi"), 1);
        run_on(world.loop, SHORT_MS);
        while (heard.callbacks < heard.cancel_at && !heard.ended) run_on(world.loop, SHORT_MS);
        assert_int_equal(heard.callbacks, heard.cancel_at < 7 ? heard.cancel_at : 7);
        close_world(&world);
    }
}

/* Between callbacks: right after the start, connected, with a head, in the middle. */
static void cancels_outside(void **state)
{
    (void)state;
    static const struct step scripts[][STEPS_MAX] = {
        {ACCEPT, READ, AWAIT},
        {ACCEPT, READ, SEND_PART(CLOSING, 20), AWAIT},
        {ACCEPT, READ, SEND(CLOSING), AWAIT},
        {ACCEPT, READ, SEND(CLOSING HELLO "data: {"), AWAIT},
        {ACCEPT, READ, SEND("HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nno"), AWAIT},
        {ACCEPT, READ, SEND("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"), AWAIT},
    };
    for (size_t i = 0; i < COUNT(scripts); i++) {
        struct world world;
        AUTO(heard_done) struct heard heard = {0};
        open_world(&world, scripts[i], &(struct model_http_options)PLAIN);
        heard_start(&heard, world.loop, &world.model, STR("Hi"), 1);
        run_on(world.loop, SHORT_MS);
        heard_cancel(&heard);
        size_t callbacks = heard.callbacks;
        run_on(world.loop, SHORT_MS / 4);
        assert_int_equal(heard.callbacks, callbacks);
        assert_false(heard.ended);
        close_world(&world);
    }
}

static void cancels_at_once(void **state)
{
    (void)state;
    struct world world = {0};
    AUTO(heard_done) struct heard heard = {0};
    int fd = bound_socket();
    world.server.port = bound_port(fd);
    open_model(&world, &(struct model_http_options)PLAIN);
    heard_start(&heard, world.loop, &world.model, STR("Hi"), 1);
    heard_cancel(&heard);
    run_on(world.loop, SHORT_MS / 4);
    assert_int_equal(heard.callbacks, 0);
    model_free(&world.model);
    client_free(world.client);
    loop_free(world.loop);
    close(fd);
}

/* The client goes while a call is open: it ends; and while one drains: nothing is left. */
static void client_goes(void **state)
{
    (void)state;
    static const struct step scripts[][STEPS_MAX] = {{ACCEPT, READ, SEND(CLOSING HELLO), AWAIT},
                                                     {ACCEPT, READ, SEND(CLOSING WHOLE), AWAIT}};
    for (size_t i = 0; i < COUNT(scripts); i++) {
        struct world world;
        AUTO(heard_done) struct heard heard = {0};
        open_world(&world, scripts[i], &(struct model_http_options)PLAIN);
        heard_start(&heard, world.loop, &world.model, STR("Hi"), 1);
        while (heard.callbacks < 1) run_on(world.loop, SHORT_MS / 4);
        if (i == 1) heard_wait(&heard);
        if (i == 1) model_free(&world.model); /* its call is over, though it drains */
        client_free(world.client);
        assert_str(buf_str(&heard.trace), i == 0 ? STR("t<Hello>again") : STR("t<Hello>done"));
        if (i == 0) model_free(&world.model);
        loop_free(world.loop);
        server_join(&world.server);
        server_done(&world.server);
    }
}

/* ---- options ---- */

static void options(void **state)
{
    (void)state;
    static const struct {
        struct model_http_options options;
        const char *field; /* NULL: fine */
    } rows[] = {
        {{.base_url = STR("https://h/v1"), .name = STR("m")}, NULL},
        {{.base_url = STR("http://h:1/v1/?a=b"), .name = STR("m"), .api_key = STR("k")}, NULL},
        {{.base_url = STR(""), .name = STR("m")}, "base_url"},
        {{.base_url = STR("h/v1"), .name = STR("m")}, "base_url"},
        {{.base_url = STR("ftp://h/v1"), .name = STR("m")}, "base_url"},
        {{.base_url = STR("http://h/\r\nx"), .name = STR("m")}, "base_url"},
        {{.base_url = STR("http://h"), .name = STR("")}, "name"},
        {{.base_url = STR("http://h"), .name = STR("\xff")}, "name"},
        {{.base_url = STR("http://h"), .name = STR("a\0b")}, "name"},
        {{.base_url = STR("http://h"), .name = STR("m"), .api_key = STR("a\nb")}, "api_key"},
        {{.base_url = STR("http://h"), .name = STR("m"), .api_key = STR("a b")}, "api_key"},
    };
    struct loop *loop = loop_new();
    struct client *client = client_new(loop);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct model model = {.retry_ms = 5};
        struct fault fault = {0};
        enum err e = model_openai(client, &rows[i].options, &model, &fault);
        assert_int_equal(e, rows[i].field ? ERR_INVALID_FIELD : OK);
        if (e) {
            assert_string_equal(fault.field, rows[i].field);
            assert_null(model.ops);
        } else {
            assert_int_equal(model.retry_ms, 5);
            model_free(&model);
        }
    }
    client_free(client);
    loop_free(loop);
}

/* A query of base_url stays at the end; slashes are not doubled. */
static void query(void **state)
{
    (void)state;
    struct world world = {0};
    struct fault fault;
    AUTO(heard_done) struct heard heard = {0};
    static const struct step steps[] = {ACCEPT, READ, SEND(CLOSING WHOLE), CLOSE, STOP};
    server_start(&world.server, steps);
    open_model(&world, &(struct model_http_options)PLAIN);
    model_free(&world.model);
    snprintf(world.url, sizeof world.url, "http://u:p@127.0.0.1:%u/v2/?a=b", world.server.port);
    struct model_http_options options = {.base_url = str_c(world.url), .name = STR("m")};
    assert_int_equal(model_anthropic(world.client, &options, &world.model, &fault), OK);
    assert_string_equal(world.model.provider, "anthropic");
    model_free(&world.model);
    assert_int_equal(model_openai(world.client, &options, &world.model, &fault), OK);
    ask(&world, &heard);
    assert_str(buf_str(&heard.trace), STR("t<Hello>done"));
    model_free(&world.model);
    client_free(world.client);
    loop_free(world.loop);
    server_join(&world.server);
    assert_true(server_saw(&world.server, "POST /v2/chat/completions?a=b HTTP/1.1\r\n"));
    server_done(&world.server);
}

int test_provider(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(talks),           cmocka_unit_test(nobody_there),
        cmocka_unit_test(retry_after),     cmocka_unit_test(keeps_connection),
        cmocka_unit_test(usage),           cmocka_unit_test(tool_names),
        cmocka_unit_test(too_much),        cmocka_unit_test(cancels_inside),
        cmocka_unit_test(cancels_outside), cmocka_unit_test(cancels_at_once),
        cmocka_unit_test(client_goes),     cmocka_unit_test(options),
        cmocka_unit_test(query),
    };
    return cmocka_run_group_tests_name("provider", tests, NULL, NULL);
}
