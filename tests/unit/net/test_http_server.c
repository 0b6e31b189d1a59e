/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections of the HTTP server over real sockets: answers and their order, slow and vanishing
 * callers, the time limits, and stopping. What a head or a body may look like is tested with
 * http1.c, event streams with sse.c.
 */
#include "net/http_server.h"

#include <stdlib.h>
#include <string.h>

#include "http_kit.h"

#define GET(path)  "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"
#define HEAD(path) "HEAD " path " HTTP/1.1\r\nHost: h\r\n\r\n"

/* Take an answer and check its status and body. */
static void expect(struct caller *caller, int status, str body)
{
    struct response response = caller_take(caller, false);
    assert_int_equal(response.status, status);
    assert_str(response.body, body);
    caller_drop(caller, &response);
}

/* The connection is still good for a request. */
static void expect_alive(struct caller *caller)
{
    caller_send(caller, STR(GET("/hello")));
    expect(caller, 200, STR("hello"));
    assert_false(caller->ended);
}

/* The server ends it, and nothing more has come. */
static void expect_end(struct caller *caller)
{
    WAIT_FOR(caller->kit, caller->ended);
    assert_int_equal(caller->got.len, 0);
}

/* ---- answers ---- */

static void answers(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        int status;
        str body;
        const char *field, *value; /* value NULL: the field is not there */
        bool head_only, closes;
    } rows[] = {
        {GET("/hello"), 200, STR("hello"), "Content-Type", "text/plain", false, false},
        {GET("/hello"), 200, STR("hello"), "Cache-Control", "no-store", false, false},
        {GET("/hello"), 200, STR("hello"), "X-Common", "c", false, false},
        {GET("/hello"), 200, STR("hello"), "Connection", NULL, false, false},
        {GET("/fields"), 201, STR(""), "X-Own", "1", false, false},
        {GET("/fields"), 201, STR(""), "Cache-Control", "max-age=9", false, false},
        {GET("/empty"), 204, STR(""), "Content-Length", NULL, false, false},
        {GET("/same"), 304, STR(""), "Content-Length", NULL, false, false},
        {HEAD("/hello"), 200, STR(""), "Content-Length", "5", true, false},
        {HEAD("/static"), 200, STR(""), "Content-Length", "4194304", true, false},
        {HEAD("/copied"), 200, STR(""), "Content-Length", "4194304", true, false},
        {HEAD("/nowhere"), 404, STR(""), "Content-Type", "application/problem+json", true, false},
        {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", 200, STR("abc"),
         "Content-Length", "3", false, false},
        {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
         "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
         200, STR("abc"), "Content-Length", "3", false, false},
        {GET("/last"), 200, STR("last"), "Connection", "close", false, true},
        {"GET /hello HTTP/1.0\r\n\r\n", 200, STR("hello"), "Connection", "close", false, true},
        {"GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, STR("hello"), "Connection",
         "keep-alive", false, false},
        {"GET /hello HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 200, STR("hello"),
         "Connection", "close", false, true},
        {GET("/forbidden"), 403,
         STR("{\"type\":\"urn:fermata:error:forbidden\",\"title\":\"Not allowed\",\"status\":403,"
             "\"detail\":\"not you\",\"code\":\"forbidden\"}"),
         "Content-Type", "application/problem+json", false, false},
        {GET("/fault"), 400,
         STR("{\"type\":\"urn:fermata:error:invalid_field\",\"title\":\"Invalid field\","
             "\"status\":400,\"detail\":\"not so\",\"code\":\"invalid_field\",\"field\":\"a.b\"}"),
         "Content-Type", "application/problem+json", false, false},
    };
    struct kit kit;
    kit_init(&kit, &(struct http_server_options){.common_fields = "X-Common: c\r\n"});
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct caller caller;
        caller_open(&caller, &kit, false);
        caller_send(&caller, str_c(rows[i].request));
        struct response response = caller_take(&caller, rows[i].head_only);
        assert_int_equal(response.status, rows[i].status);
        assert_str(response.body, rows[i].body);
        str value = response_field(&response, str_c(rows[i].field));
        assert_str(value, str_c(rows[i].value));
        assert_true(!value.p == !rows[i].value);
        assert_int_equal(kit.last_status, rows[i].status);
        caller_drop(&caller, &response);
        if (rows[i].closes)
            expect_end(&caller);
        else
            expect_alive(&caller);
        caller_close(&caller);
    }
    kit_done(&kit);
}

static void request_ids(void **state)
{
    (void)state;
    struct kit kit;
    struct caller caller;
    kit_init(&kit, NULL);
    caller_open(&caller, &kit, false);
    caller_send(&caller, STR(GET("/hello") GET("/hello")));
    char first[32];
    struct response response = caller_take(&caller, false);
    str id = response_field(&response, STR("X-Request-Id"));
    assert_in_range(id.len, 10, sizeof first - 1);
    memcpy(first, id.p, id.len);
    size_t len = id.len;
    caller_drop(&caller, &response);
    response = caller_take(&caller, false);
    id = response_field(&response, STR("X-Request-Id"));
    assert_false(str_eq(id, (str){first, len}));
    caller_close(&caller);
    kit_done(&kit);
}

/* ---- readers that are slow ---- */

static bool is_large(const struct kit *kit, str body)
{
    return body.len == KIT_LARGE_BYTES && memcmp(body.p, kit->large, body.len) == 0;
}

/* What is behind a large answer on the connection waits for it; all of it comes whole. */
static void slow_readers(void **state)
{
    (void)state;
    static const struct {
        const char *requests;
        size_t large; /* answers, then one "hello" */
    } rows[] = {
        {GET("/static") GET("/hello"), 1},
        {GET("/copied") GET("/hello"), 1},
        {GET("/static") GET("/static") GET("/copied") GET("/hello"), 3},
    };
    struct kit kit;
    kit_init(&kit, NULL);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct caller caller;
        caller_open(&caller, &kit, true);
        caller_pause(&caller);
        caller_send(&caller, str_c(rows[i].requests));
        unsigned before = kit.answered;
        WAIT_FOR(&kit, kit.answered > before);
        caller_resume(&caller, 16 * 1024 + 1);
        for (size_t n = 0; n < rows[i].large; n++) {
            struct response response = caller_take(&caller, false);
            assert_true(is_large(&kit, response.body));
            caller_drop(&caller, &response);
        }
        expect(&caller, 200, STR("hello"));
        expect_alive(&caller);
        caller_close(&caller);
    }
    kit_done(&kit);
}

/* A change of the handler's bytes after the answer shows in a static body, which is sent from where
 * it lies, and not in one that was copied. */
static void static_bodies_are_not_copied(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        char last;
    } rows[] = {{GET("/static"), '!'}, {GET("/copied"), 'a' + (KIT_LARGE_BYTES - 1) % 23}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kit kit;
        struct caller caller;
        kit_init(&kit, NULL);
        caller_open(&caller, &kit, true);
        caller_pause(&caller);
        caller_send(&caller, str_c(rows[i].request));
        WAIT_FOR(&kit, kit.answered);
        char *last = kit.large + KIT_LARGE_BYTES - 1, kept = *last;
        *last = '!';
        caller_resume(&caller, 64 * 1024);
        struct response response = caller_take(&caller, false);
        *last = kept;
        assert_int_equal(response.body.p[KIT_LARGE_BYTES - 1], rows[i].last);
        caller_close(&caller);
        kit_done(&kit);
    }
}

/* The handler's mistake is seen as an answer that breaks off, and costs nothing for ever. */
static void too_large_an_answer(void **state)
{
    (void)state;
    struct kit kit;
    struct caller caller;
    kit_init(&kit, NULL);
    caller_open(&caller, &kit, false);
    caller_send(&caller, STR(GET("/too-large")));
    expect_end(&caller);
    WAIT_FOR(&kit, http_server_connections(kit.server) == 0);
    caller_close(&caller);
    kit_done(&kit);
}

/* ---- pipelining ---- */

/* h: answered at once, l: later, e: echo of a body. In one write, and byte by byte. */
static void pipelining(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "hhhhhhhhhhhhhhhhhhhh", "l", "llllllllllllllllllll", "hlhlhlhhll", "ehelee", "lhhhhl",
    };
    static const struct {
        char letter;
        const char *request, *body;
    } kinds[] = {
        {'h', GET("/hello"), "hello"},
        {'l', GET("/later"), "later"},
        {'e', "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nGET ", "GET "},
    };
    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        bool in_bytes = i % 2;
        struct kit kit;
        struct caller caller;
        struct buf requests;
        buf_init(&requests, 64 * 1024);
        kit_init(&kit, NULL);
        caller_open(&caller, &kit, false);
        const char *row = rows[i / 2];
        for (const char *c = row; *c; c++)
            for (size_t k = 0; k < COUNT(kinds); k++)
                if (kinds[k].letter == *c) buf_append(&requests, str_c(kinds[k].request));
        for (size_t n = 0; n < requests.len; n += in_bytes ? 1 : requests.len) {
            caller_send(&caller, (str){requests.p + n, in_bytes ? 1 : requests.len});
            if (in_bytes) kit_turns(&kit, 1);
        }
        for (const char *c = row; *c; c++) {
            if (*c == 'l') {
                WAIT_FOR(&kit, kit.held_count);
                assert_int_equal(kit.held_count, 1); /* one at a time */
                assert_int_equal(caller.got.len, 0);
                kit_answer_held(&kit);
            }
            for (size_t k = 0; k < COUNT(kinds); k++)
                if (kinds[k].letter == *c) expect(&caller, 200, str_c(kinds[k].body));
        }
        assert_int_equal(kit.requests, strlen(row));
        assert_int_equal(kit.answered, strlen(row));
        expect_alive(&caller);
        caller_close(&caller);
        buf_done(&requests);
        kit_done(&kit);
    }
}

/* Thousands of small answers that nobody reads do not pile up: the server stops reading, and goes
 * on where it stopped. */
static void pipelining_without_reading(void **state)
{
    (void)state;
    enum { REQUESTS = 20000 };
    struct kit kit;
    struct caller caller;
    kit_init(&kit, NULL);
    caller_open(&caller, &kit, true);
    caller_pause(&caller);
    struct buf requests;
    buf_init(&requests, 4 << 20);
    for (int i = 0; i < REQUESTS; i++) buf_append(&requests, STR(GET("/hello")));
    size_t sent = requests.len / 4; /* fits in the two sockets' buffers */
    caller_send(&caller, (str){requests.p, sent});
    unsigned before = 0;
    do {
        before = kit.answered;
        kit_turns(&kit, 20);
    } while (kit.answered > before);
    assert_in_range(kit.answered, 1, REQUESTS / 4);
    caller_resume(&caller, 64 * 1024);
    caller_send(&caller, str_drop(buf_str(&requests), sent));
    for (int i = 0; i < REQUESTS; i++) expect(&caller, 200, STR("hello"));
    expect_alive(&caller);
    caller_close(&caller);
    buf_done(&requests);
    kit_done(&kit);
}

/* After `Connection: close` and after a refusal nothing on the connection is parsed any more. */
static void nothing_after_the_end(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        int status;
    } rows[] = {
        {"GET /hello HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" GET("/hello"), 200},
        {GET("/last") GET("/hello"), 200},
        {"GET /hello HTTP/1.1\r\n\r\n" GET("/hello"), 400},
        {"POST /forbidden HTTP/1.1\r\nHost: h\r\nContent-Length: 36\r\n\r\n" GET("/hello"), 403},
        {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 65537\r\n\r\n" GET("/hello"), 413},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kit kit;
        struct caller caller;
        kit_init(&kit, NULL);
        caller_open(&caller, &kit, false);
        caller_send(&caller, str_c(rows[i].bytes));
        struct response response = caller_take(&caller, false);
        assert_int_equal(response.status, rows[i].status);
        assert_str(response_field(&response, STR("Connection")), STR("close"));
        caller_drop(&caller, &response);
        expect_end(&caller);
        assert_false(caller.reset);
        assert_int_equal(kit.answered, 1);
        caller_close(&caller);
        WAIT_FOR(&kit, http_server_connections(kit.server) == 0);
        kit_done(&kit);
    }
}

static void expect_continue(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        const char *body; /* sent after the 100; NULL: no 100 comes */
        int status;
    } rows[] = {
        {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n",
         "body", 200},
        {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n"
         "\r\n",
         "4\r\nbody\r\n0\r\n\r\n", 200},
        {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 65537\r\nExpect: 100-continue\r\n\r\n",
         NULL, 413},
        {"POST /forbidden HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n",
         NULL, 403},
    };
    struct kit kit;
    kit_init(&kit, NULL);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct caller caller;
        caller_open(&caller, &kit, false);
        caller_send(&caller, STR(GET("/hello"))); /* its answer goes before the 100 */
        caller_send(&caller, str_c(rows[i].head));
        expect(&caller, 200, STR("hello"));
        if (rows[i].body) {
            expect(&caller, 100, STR_EMPTY);
            caller_send(&caller, str_c(rows[i].body));
            expect(&caller, rows[i].status, STR("body"));
            expect_alive(&caller);
        } else {
            struct response response = caller_take(&caller, false);
            assert_int_equal(response.status, rows[i].status);
            caller_drop(&caller, &response);
            expect_end(&caller);
        }
        caller_close(&caller);
    }
    kit_done(&kit);
}

/* ---- callers that leave ---- */

static void answer_late(struct http_request *request)
{
    http_answer(request, &(struct http_answer){.status = 200, .body = STR("late")});
}

static void answer_error_late(struct http_request *request)
{
    http_answer_error(request, ERR_INTERNAL, NULL);
}

static void stream_late(struct http_request *request)
{
    static const struct sse_ops ops = {0}; /* never called */
    assert_null(sse_open(request, NULL, 0, &ops, NULL));
}

static void answering_the_gone(void **state)
{
    (void)state;
    void (*const late[])(struct http_request *) = {answer_late, answer_error_late, stream_late};
    for (size_t i = 0; i < COUNT(late); i++) {
        struct kit kit;
        struct caller caller;
        kit_init(&kit, NULL);
        caller_open(&caller, &kit, false);
        caller_send(&caller, STR(GET("/later")));
        WAIT_FOR(&kit, kit.held_count);
        struct http_request *request = kit_take_held(&kit);
        assert_false(http_gone(request));
        caller_reset(&caller);
        WAIT_FOR(&kit, http_gone(request));
        assert_int_equal(http_server_connections(kit.server), 0);
        late[i](request);
        assert_int_equal(kit.answered, 0);
        kit_done(&kit);
    }
}

/* A caller that has said all it wants to say still gets every answer. */
static void half_closed(void **state)
{
    (void)state;
    static const struct {
        const char *requests;
        unsigned later, answers;
    } rows[] = {
        {GET("/hello"), 0, 1},
        {GET("/hello") GET("/hello"), 0, 2},
        {GET("/later"), 1, 1},
        {GET("/later") GET("/later") GET("/hello"), 2, 3},
        {GET("/hello") "GET /hello HTT", 0, 1},
        {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nshort", 0, 0},
        {"", 0, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kit kit;
        struct caller caller;
        kit_init(&kit, NULL);
        caller_open(&caller, &kit, false);
        caller_send(&caller, str_c(rows[i].requests));
        caller_half_close(&caller);
        for (unsigned n = 0; n < rows[i].later; n++) {
            WAIT_FOR(&kit, kit.held_count);
            kit_answer_held(&kit);
        }
        for (unsigned n = 0; n < rows[i].answers; n++) {
            struct response response = caller_take(&caller, false);
            assert_int_equal(response.status, 200);
            caller_drop(&caller, &response);
        }
        expect_end(&caller);
        assert_int_equal(kit.requests, rows[i].answers);
        assert_int_equal(http_server_connections(kit.server), 0);
        caller_close(&caller);
        kit_done(&kit);
    }
}

/* A large answer to somebody who has ended his side is written to its end. */
static void half_closed_slow_reader(void **state)
{
    (void)state;
    struct kit kit;
    struct caller caller;
    kit_init(&kit, NULL);
    caller_open(&caller, &kit, true);
    caller_pause(&caller);
    caller_send(&caller, STR(GET("/static")));
    caller_half_close(&caller);
    WAIT_FOR(&kit, kit.answered);
    caller_resume(&caller, 64 * 1024);
    struct response response = caller_take(&caller, false);
    assert_true(is_large(&kit, response.body));
    caller_drop(&caller, &response);
    expect_end(&caller);
    caller_close(&caller);
    kit_done(&kit);
}

static void resets(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        unsigned requests; /* that reach the handler first */
    } rows[] = {
        {"", 0},
        {"GET /hel", 0},
        {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nshort", 0},
        {GET("/later"), 1},
        {GET("/static"), 1},
        {GET("/copied"), 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kit kit;
        struct caller caller;
        kit_init(&kit, NULL);
        caller_open(&caller, &kit, true);
        caller_pause(&caller);
        caller_send(&caller, str_c(rows[i].bytes));
        WAIT_FOR(&kit, http_server_connections(kit.server) == 1);
        WAIT_FOR(&kit, kit.requests == rows[i].requests);
        caller_reset(&caller);
        WAIT_FOR(&kit, http_server_connections(kit.server) == 0);
        if (kit.held_count) assert_true(http_gone(kit.held[0]));
        kit_done(&kit);
    }
}

/* ---- time limits ---- */

static const struct http_server_options hasty = {
    .head_ms = 200, .body_idle_ms = 200, .idle_ms = 200, .stall_ms = 200};

static void time_limits(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        int statuses[3]; /* of the answers before the end, 0 behind the last */
        bool later;
    } rows[] = {
        {"", {0}, false},
        {"\r\n", {0}, false},
        {"GET", {408}, false},
        {"GET /hello HTTP/1.1\r\nHost: h\r\nX-", {408}, false},
        {GET("/hello"), {200}, false},
        {GET("/hello") GET("/hello"), {200, 200}, false},
        {GET("/later"), {200}, true},
        {GET("/hello") "GET /", {200, 408}, false},
        {GET("/later") "GET /", {200, 408}, true},
        {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nshort", {408}, false},
        {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
         {408},
         false},
        {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n",
         {100, 408},
         false},
    };
    struct kit kit;
    kit_init(&kit, &hasty);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct caller caller;
        caller_open(&caller, &kit, false);
        caller_send(&caller, str_c(rows[i].bytes));
        if (rows[i].later) {
            WAIT_FOR(&kit, kit.held_count);
            kit_answer_held(&kit);
        }
        for (const int *status = rows[i].statuses; *status; status++) {
            struct response response = caller_take(&caller, false);
            assert_int_equal(response.status, *status);
            if (*status == 408)
                assert_str(response_field(&response, STR("Connection")), STR("close"));
            caller_drop(&caller, &response);
        }
        expect_end(&caller);
        assert_false(caller.reset);
        caller_close(&caller);
        WAIT_FOR(&kit, http_server_connections(kit.server) == 0);
    }
    kit_done(&kit);
}

/* Never silent, and yet too slow: one byte of a body at a time. */
static void body_at_a_trickle(void **state)
{
    (void)state;
    struct kit kit;
    struct caller caller;
    kit_init(&kit, &hasty);
    caller_open(&caller, &kit, false);
    caller_send(&caller, STR("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 60000\r\n\r\n"));
    int sent = 0;
    for (kit_wait_begin(&kit); !caller_has(&caller, false); sent++) {
        assert_true(sent < 60000);
        caller_send(&caller, STR("x"));
        for (int i = 0; i < 5 && !caller_has(&caller, false); i++) kit_turn(&kit, "408");
    }
    struct response response = caller_take(&caller, false);
    assert_int_equal(response.status, 408);
    caller_drop(&caller, &response);
    caller_half_close(&caller);
    expect_end(&caller);
    assert_int_equal(kit.requests, 0);
    caller_close(&caller);
    kit_done(&kit);
}

/* A request with the handler has all the time it wants. */
static void handling_has_no_limit(void **state)
{
    (void)state;
    struct kit kit;
    struct caller waits, idles;
    kit_init(&kit, &hasty);
    caller_open(&waits, &kit, false);
    caller_send(&waits, STR(GET("/later")));
    WAIT_FOR(&kit, kit.held_count);
    for (int i = 0; i < 3; i++) { /* three times as long as an idle one lives */
        caller_open(&idles, &kit, false);
        expect_end(&idles);
        caller_close(&idles);
    }
    kit_answer_held(&kit);
    expect(&waits, 200, STR("later"));
    caller_close(&waits);
    kit_done(&kit);
}

/* A reader that takes nothing is reset. */
static void stalled_readers(void **state)
{
    (void)state;
    static const char *const rows[] = {GET("/static"), GET("/copied")};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kit kit;
        struct caller caller;
        kit_init(&kit, &(struct http_server_options){.stall_ms = 60});
        caller_open(&caller, &kit, true);
        caller_pause(&caller);
        caller_send(&caller, str_c(rows[i]));
        WAIT_FOR(&kit, kit.answered == 1);
        WAIT_FOR(&kit, http_server_connections(kit.server) == 0);
        caller_resume(&caller, 64 * 1024);
        WAIT_FOR(&kit, caller.ended);
        assert_true(caller.reset);
        caller_close(&caller);
        kit_done(&kit);
    }
}

/* Collected answers stay in a full socket while the server reads on. Whatever the client sends
 * then, it is still cut for not reading. */
static void stalled_and_talking(void **state)
{
    (void)state;
    enum { PAGES_MAX = 2000 };
    static const char *const rows[] = {GET("/later"), GET("/hello"), "GET /hello HT"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kit kit;
        struct caller caller;
        kit_init(&kit, &(struct http_server_options){.stall_ms = 1000});
        caller_open(&caller, &kit, true);
        int pages = caller_ask_pages(&caller, PAGES_MAX);
        assert_in_range(pages, 4, PAGES_MAX - 1);
        caller_reset(&caller);
        WAIT_FOR(&kit, http_server_connections(kit.server) == 0);

        caller_open(&caller, &kit, true);
        assert_int_equal(caller_ask_pages(&caller, pages - 1), pages - 1);
        caller_send(&caller, str_c(rows[i]));
        WAIT_FOR(&kit, http_server_connections(kit.server) == 0);
        caller_close(&caller);
        kit_done(&kit);
    }
}

/* Slow is not stalled: as long as bytes go, time does not matter. */
static void slow_is_not_stalled(void **state)
{
    (void)state;
    enum { STALL_MS = 1000, PART_BYTES = KIT_LARGE_BYTES / 8 };
    struct kit kit;
    struct caller caller;
    kit_init(&kit, &(struct http_server_options){.stall_ms = STALL_MS});
    caller_open(&caller, &kit, true);
    caller_pause(&caller);
    caller_send(&caller, STR(GET("/static")));
    WAIT_FOR(&kit, kit.answered);
    msec start = loop_now(kit.loop);
    for (size_t parts = 1; parts <= 5; parts++) { /* of eight */
        caller_resume(&caller, 64 * 1024);
        WAIT_FOR(&kit, caller.got.len > parts * PART_BYTES || caller.ended);
        assert_false(caller.ended);
        caller_pause(&caller);
        for (msec end = loop_now(kit.loop) + STALL_MS / 2; loop_now(kit.loop) < end;)
            kit_turns(&kit, 1);
    }
    assert_true(loop_now(kit.loop) - start > 2 * STALL_MS);
    caller_resume(&caller, 64 * 1024);
    struct response response = caller_take(&caller, false);
    assert_true(is_large(&kit, response.body));
    caller_close(&caller);
    kit_done(&kit);
}

/* ---- too many, and stopping ---- */

static void too_many_connections(void **state)
{
    (void)state;
    struct kit kit;
    struct caller callers[3];
    kit_init(&kit, &(struct http_server_options){.connections_max = 2});
    for (int i = 0; i < 2; i++) {
        caller_open(&callers[i], &kit, false);
        expect_alive(&callers[i]);
    }
    caller_open(&callers[2], &kit, false);
    struct response response = caller_take(&callers[2], false);
    assert_int_equal(response.status, 429);
    assert_str(response_field(&response, STR("Retry-After")), STR("1"));
    assert_str(response_field(&response, STR("Connection")), STR("close"));
    caller_drop(&callers[2], &response);
    expect_end(&callers[2]);
    caller_close(&callers[2]);
    expect_alive(&callers[1]);
    caller_close(&callers[0]);
    WAIT_FOR(&kit, http_server_connections(kit.server) == 1);
    caller_open(&callers[0], &kit, false);
    expect_alive(&callers[0]);
    caller_close(&callers[0]);
    caller_close(&callers[1]);
    kit_done(&kit);
}

/* Idle ones close at once; a request with the handler, and an answer on its way, are finished. */
static void stopping(void **state)
{
    (void)state;
    struct kit kit;
    struct caller idle, silent, waits, reads;
    kit_init(&kit, NULL);
    caller_open(&idle, &kit, false);
    expect_alive(&idle);
    caller_open(&silent, &kit, false);
    caller_open(&waits, &kit, false);
    caller_send(&waits, STR(GET("/later") GET("/hello")));
    WAIT_FOR(&kit, kit.held_count);
    caller_open(&reads, &kit, false);
    caller_pause(&reads);
    caller_send(&reads, STR(GET("/static")));
    WAIT_FOR(&kit, kit.answered == 2);

    kit_stop(&kit);
    expect_end(&idle);
    expect_end(&silent);
    assert_false(kit.stopped);
    kit_answer_held(&kit);
    struct response response = caller_take(&waits, false);
    assert_str(response.body, STR("later"));
    assert_str(response_field(&response, STR("Connection")), STR("close"));
    caller_drop(&waits, &response);
    expect_end(&waits); /* the second request was not taken up */
    caller_resume(&reads, 64 * 1024);
    response = caller_take(&reads, false);
    assert_true(is_large(&kit, response.body));
    caller_drop(&reads, &response);
    expect_end(&reads);
    caller_close(&waits);
    caller_close(&reads);
    WAIT_FOR(&kit, kit.stopped);
    caller_close(&idle);
    caller_close(&silent);
    kit_done(&kit);
}

static void stopping_at_rest(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit, NULL);
    kit_stop(&kit);
    WAIT_FOR(&kit, kit.stopped);
    kit_done(&kit);
}

/* Neither a handler nor a reader that never comes to an end holds up the stop. */
static void stopping_in_time(void **state)
{
    (void)state;
    struct kit kit;
    struct caller waits, stalls;
    kit_init(&kit, NULL);
    caller_open(&waits, &kit, false);
    caller_send(&waits, STR(GET("/later")));
    caller_open(&stalls, &kit, true);
    caller_pause(&stalls);
    caller_send(&stalls, STR(GET("/static")));
    WAIT_FOR(&kit, kit.held_count && kit.answered);
    kit_stop(&kit);
    WAIT_FOR(&kit, kit.stopped);
    assert_true(http_gone(kit.held[0]));
    expect_end(&waits);
    caller_close(&waits);
    caller_close(&stalls);
    kit_done(&kit);
}

/* Freed in the middle of everything; requests still with the handler survive it. */
static void freeing(void **state)
{
    (void)state;
    struct kit kit;
    struct caller idle, waits, reads;
    kit_init(&kit, NULL);
    caller_open(&idle, &kit, false);
    expect_alive(&idle);
    caller_open(&waits, &kit, false);
    caller_send(&waits, STR(GET("/later")));
    caller_open(&reads, &kit, true);
    caller_pause(&reads);
    caller_send(&reads, STR(GET("/copied")));
    WAIT_FOR(&kit, kit.held_count && kit.answered == 2);
    caller_close(&idle);
    caller_close(&waits);
    caller_close(&reads);
    kit_done(&kit);
}

int test_http_server(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(request_ids),
        cmocka_unit_test(slow_readers),
        cmocka_unit_test(static_bodies_are_not_copied),
        cmocka_unit_test(too_large_an_answer),
        cmocka_unit_test(pipelining),
        cmocka_unit_test(pipelining_without_reading),
        cmocka_unit_test(nothing_after_the_end),
        cmocka_unit_test(expect_continue),
        cmocka_unit_test(answering_the_gone),
        cmocka_unit_test(half_closed),
        cmocka_unit_test(half_closed_slow_reader),
        cmocka_unit_test(resets),
        cmocka_unit_test(time_limits),
        cmocka_unit_test(body_at_a_trickle),
        cmocka_unit_test(handling_has_no_limit),
        cmocka_unit_test(stalled_readers),
        cmocka_unit_test(stalled_and_talking),
        cmocka_unit_test(slow_is_not_stalled),
        cmocka_unit_test(too_many_connections),
        cmocka_unit_test(stopping),
        cmocka_unit_test(stopping_at_rest),
        cmocka_unit_test(stopping_in_time),
        cmocka_unit_test(freeing),
    };
    return cmocka_run_group_tests_name("http_server", tests, NULL, NULL);
}
