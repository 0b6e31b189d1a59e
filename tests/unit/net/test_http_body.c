/* SPDX-License-Identifier: Apache-2.0
 *
 * Bodies that a handler takes as they come, over real sockets: how they arrive, pauses, and answers
 * that do not wait for them.
 */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "net/http_conn.h"
#include "sink.h"

/* ---- bodies that come whole ---- */

static const struct {
    const char *request, *body;
    bool expects; /* a 100 */
} whole[] = {
    {LENGTH("5") "hello", "hello", false},
    {LENGTH("30") "GET /hello HTTP/1.1\r\nHost: h\r\n", "GET /hello HTTP/1.1\r\nHost: h\r\n",
     false},
    {CHUNKED HELLO_CHUNK "1\r\n!\r\n0\r\n\r\n", "hello!", false},
    {CHUNKED HELLO_CHUNK "6;a=b\r\n world\r\n000\r\nX-Trailer: 1\r\n\r\n", "hello world", false},
    {CHUNKED "0\r\n\r\n", "", false},
    {LENGTH("0"), "", false},
    {POST "\r\n", "", false},
    {GET("/own"), "", false},
    {POST EXPECT "Content-Length: 2\r\n\r\nok", "ok", true},
    {POST EXPECT "Content-Length: 0\r\n\r\n", "", false},
};

/* Send a streamed request between two others, in one write or its body byte by byte. */
static void feed(struct caller *caller, struct sink *sink, str request, bool in_bytes)
{
    struct buf bytes;
    buf_init(&bytes, 64 * 1024);
    buf_append(&bytes, STR(GET("/hello")));
    buf_append(&bytes, request);
    size_t at = bytes.len, head = (size_t)str_find(request, STR("\r\n\r\n")) + 4;
    if (in_bytes) at -= request.len - head + 1; /* the head's last byte comes alone, too */
    size_t end = bytes.len;
    buf_append(&bytes, STR(GET("/hello")));
    caller_send(caller, (str){bytes.p, at});
    for (; at < end; at++) {
        kit_turns(caller->kit, 1);
        if (!sink->hold) sink_resume(sink);
        caller_send(caller, (str){bytes.p + at, 1});
    }
    caller_send(caller, str_drop(buf_str(&bytes), end));
    buf_done(&bytes);
}

static void whole_body(size_t row, enum pausing pausing, bool in_bytes, bool hold, bool late)
{
    struct kit kit;
    struct sink sink;
    struct caller caller;
    sink_setup(&kit, &sink, &caller, NULL);
    sink.pausing = pausing;
    sink.hold = hold;
    sink.hold_answer = late;
    feed(&caller, &sink, str_c(whole[row].request), in_bytes);
    sink_expect(&caller, 200, STR("hello"));
    if (hold) {
        WAIT_FOR(&kit, sink.request);
        kit_turns(&kit, 3);
        assert_int_equal(sink.pieces + sink.ends, 0);
        assert_int_equal(caller.got.len, 0); /* no 100 either */
        sink_take(&sink);
        assert_int_equal(sink.pieces + sink.ends, 0); /* never from inside */
    }
    for (kit_wait_begin(&kit); !sink.ends; kit_turn(&kit, "the end")) sink_resume(&sink);
    assert_int_equal(sink.end, OK);
    if (late) {
        kit_turns(&kit, 3);
        assert_int_equal(kit.answered, 1);
        sink_answer(&sink);
    }
    if (whole[row].expects) sink_expect(&caller, 100, STR_EMPTY);
    sink_expect(&caller, 200, str_c(whole[row].body));
    sink_expect(&caller, 200, STR("hello"));
    sink_expect_alive(&caller);
    assert_int_equal(sink.requests, 1);
    assert_int_equal(kit.answered, 4);
    sink_teardown(&kit, &sink, &caller);
}

static void whole_bodies(void **state)
{
    (void)state;
    for (size_t row = 0; row < COUNT(whole); row++)
        for (enum pausing pausing = PAUSE_NEVER; pausing <= PAUSE_EACH; pausing++)
            for (unsigned bits = 0; bits < 8; bits++)
                whole_body(row, pausing, bits & 1, bits & 2, bits & 4);
}

/* Several streamed ones on one connection, each at once and in one write. */
static void pipelined(void **state)
{
    (void)state;
    struct kit kit;
    struct sink sink;
    struct caller caller;
    sink_setup(&kit, &sink, &caller, NULL);
    for (int i = 0; i < 20; i++)
        caller_send(&caller,
                    STR(LENGTH("5") "hello" CHUNKED HELLO_CHUNK "0\r\n\r\n" GET("/hello")));
    for (int i = 0; i < 60; i++) sink_expect(&caller, 200, STR("hello"));
    sink_expect_alive(&caller);
    assert_int_equal(sink.requests, 40);
    sink_teardown(&kit, &sink, &caller);
}

/* The word to go on comes when the body is taken, and then only. */
static void expect_continue(void **state)
{
    (void)state;
    static const struct {
        const char *head, *body;
        bool continues;
        int status;
    } rows[] = {
        {POST EXPECT "Content-Length: 4\r\n\r\n", "body", true, 200},
        {POST EXPECT "Transfer-Encoding: chunked\r\n\r\n", "4\r\nbody\r\n0\r\n\r\n", true, 200},
        {POST EXPECT "Content-Length: 1001\r\n\r\n", NULL, false, 413},
    };
    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        bool answer_at_once = i % 2;
        struct kit kit;
        struct sink sink;
        struct caller caller;
        sink_setup(&kit, &sink, &caller, NULL);
        kit.own_max = 1000;
        sink.hold = true;
        caller_send(&caller, str_c(rows[i / 2].head));
        WAIT_FOR(&kit, sink.request);
        kit_turns(&kit, 3);
        assert_int_equal(caller.got.len, 0);
        if (answer_at_once) {
            sink.end = ERR_FORBIDDEN;
            sink_answer(&sink);
            sink_expect_last(&caller, 403);
        } else {
            sink_take(&sink);
            if (rows[i / 2].continues) sink_expect(&caller, 100, STR_EMPTY);
            if (rows[i / 2].body) caller_send(&caller, str_c(rows[i / 2].body));
            if (rows[i / 2].status == 200)
                sink_expect(&caller, 200, STR("body"));
            else
                sink_expect_last(&caller, rows[i / 2].status);
        }
        sink_teardown(&kit, &sink, &caller);
    }
}

/* ---- pausing ---- */

/* A sink that needs a moment for each piece gets everything, and no more is kept than one read. */
static void slow_sink(void **state)
{
    (void)state;
    enum { TIMES = 16 }; /* of KIT_LARGE_BYTES: 64 MiB */
    struct kit kit;
    struct sink sink;
    struct caller caller;
    sink_setup(&kit, &sink, &caller, NULL);
    sink.keep = false;
    sink.pausing = PAUSE_EACH;
    caller_send(&caller, STR(LENGTH("67108864")));
    WAIT_FOR(&kit, sink.request);
    size_t ahead_max = 0, sent = 0;
    for (kit_wait_begin(&kit); !sink.ends;) {
        str rest = {kit.large + sent % KIT_LARGE_BYTES, KIT_LARGE_BYTES - sent % KIT_LARGE_BYTES};
        ssize_t count = sent < (size_t)TIMES * KIT_LARGE_BYTES
                            ? send(caller.fd, rest.p, rest.len, MSG_NOSIGNAL)
                            : 0;
        if (count > 0) sent += (size_t)count;
        unsigned before = sink.pieces;
        kit_turn(&kit, "a piece");
        assert_in_range(sink.pieces, before, before + 1);
        if (!sink.request) break;
        const struct http_conn *conn = sink.request->conn;
        if (conn->ahead.len > ahead_max) ahead_max = conn->ahead.len;
        http_body_resume(sink.request);
    }
    assert_in_range(ahead_max, 0, 64 * 1024);
    assert_int_equal(sink.end, OK);
    assert_int_equal(sink.bytes, (size_t)TIMES * KIT_LARGE_BYTES);
    sink_expect(&caller, 200, STR_EMPTY);
    sink_expect_alive(&caller);
    sink_teardown(&kit, &sink, &caller);
}

/* Before it is taken, and while it is paused, a body stays with its sender. */
static void held_back(void **state)
{
    (void)state;
    for (int paused = 0; paused < 2; paused++) {
        struct kit kit;
        struct sink sink;
        struct caller caller;
        sink_setup(&kit, &sink, &caller, NULL);
        sink.hold = !paused;
        sink.keep = false;
        sink.pausing = paused ? PAUSE_EACH : PAUSE_NEVER;
        caller_send(&caller, STR(LENGTH("67108864")));
        size_t sent = 0;
        for (int idle = 0; idle < 20;) { /* until the sockets are full */
            size_t at = sent % KIT_LARGE_BYTES;
            ssize_t count = send(caller.fd, kit.large + at, KIT_LARGE_BYTES - at, MSG_NOSIGNAL);
            if (count > 0) sent += (size_t)count;
            idle = count > 0 ? 0 : idle + 1;
            kit_turns(&kit, 1);
        }
        assert_in_range(sent, 1, (size_t)40 << 20);
        assert_in_range(sink.request->conn->ahead.len, 0, 64 * 1024);
        assert_int_equal(sink.pieces, paused);
        uint64_t before = sink.bytes;
        if (paused)
            http_body_resume(sink.request);
        else
            sink_take(&sink);
        WAIT_FOR(&kit, sink.bytes > before);
        sink.end = ERR_TOO_LARGE; /* enough of it */
        sink_answer(&sink);
        sink_expect_last(&caller, 413);
        sink_teardown(&kit, &sink, &caller);
    }
}

static void pause_before_take(void **state)
{
    (void)state;
    struct kit kit;
    struct sink sink;
    struct caller caller;
    sink_setup(&kit, &sink, &caller, &(struct http_server_options){.body_idle_ms = 40});
    sink.hold = true;
    caller_send(&caller, STR(LENGTH("5") "hello" GET("/hello")));
    WAIT_FOR(&kit, sink.request);
    http_body_pause(sink.request);
    http_body_pause(sink.request); /* they do not count */
    sink_take(&sink);
    kit_turns(&kit, 100);
    assert_int_equal(sink.pieces + sink.ends, 0);
    http_body_resume(sink.request);
    http_body_resume(sink.request);
    assert_int_equal(sink.pieces + sink.ends, 0);
    sink_expect(&caller, 200, STR("hello"));
    sink_expect(&caller, 200, STR("hello"));
    sink_teardown(&kit, &sink, &caller);
}

/* A resume that is taken back before the turn ends brings nothing. */
static void pause_again(void **state)
{
    (void)state;
    struct kit kit;
    struct sink sink;
    struct caller caller;
    sink_setup(&kit, &sink, &caller, NULL);
    sink.pausing = PAUSE_EACH;
    caller_send(&caller, STR(CHUNKED HELLO_CHUNK HELLO_CHUNK "0\r\n\r\n"));
    WAIT_FOR(&kit, sink.pieces == 1);
    http_body_resume(sink.request);
    http_body_pause(sink.request);
    kit_turns(&kit, 5);
    assert_int_equal(sink.pieces, 1);
    http_body_resume(sink.request);
    WAIT_FOR(&kit, sink.pieces == 2);
    kit_turns(&kit, 5);
    assert_int_equal(sink.ends, 0); /* the end waits, too */
    http_body_resume(sink.request);
    sink_expect(&caller, 200, STR("hellohello"));
    sink_teardown(&kit, &sink, &caller);
}

/* Time that the handler takes is not the client's. */
static void pauses_are_not_counted(void **state)
{
    (void)state;
    struct kit kit;
    struct sink sink;
    struct caller caller;
    sink_setup(&kit, &sink, &caller, &(struct http_server_options){.body_idle_ms = 60});
    sink.hold = true;
    sink.pausing = PAUSE_EACH;
    caller_send(&caller, STR(LENGTH("4") "a"));
    kit_turns(&kit, 150); /* not taken */
    sink_take(&sink);
    for (unsigned n = 1; n <= 3; n++) {
        WAIT_FOR(&kit, sink.pieces == n);
        kit_turns(&kit, 150); /* paused */
        assert_int_equal(sink.ends, 0);
        caller_send(&caller, STR("b"));
        http_body_resume(sink.request);
    }
    WAIT_FOR(&kit, sink.pieces == 4);
    http_body_resume(sink.request);
    sink_expect(&caller, 200, STR("abbb"));
    sink_teardown(&kit, &sink, &caller);
}

/* ---- answers that do not wait for the body ---- */

static void answer_plainly(struct http_request *request)
{
    http_answer(request, &(struct http_answer){.status = 403, .body = STR("no")});
}

static void answer_problem(struct http_request *request)
{
    http_answer_error(request, ERR_FORBIDDEN, NULL);
}

/* The client goes on sending, sees the whole answer, then the end. Nothing behind is parsed. */
static void early_answers(void **state)
{
    (void)state;
    void (*const answers[])(struct http_request *) = {answer_plainly, answer_problem};
    static const char *const heads[] = {LENGTH("4194304"), CHUNKED "400000\r\n"};
    enum { UNTAKEN, UNTAKEN_LATER, TAKEN, PAUSED, WAYS };
    for (unsigned i = 0; i < COUNT(answers) * COUNT(heads) * WAYS; i++) {
        unsigned way = i / 4;
        struct kit kit;
        struct sink sink;
        struct caller caller;
        sink_setup(&kit, &sink, &caller, NULL);
        sink.hold = way == UNTAKEN || way == UNTAKEN_LATER;
        sink.keep = false;
        sink.pausing = way == PAUSED ? PAUSE_EACH : PAUSE_NEVER;
        caller_send(&caller, str_c(heads[i / 2 % 2]));
        if (way != UNTAKEN) caller_send(&caller, (str){kit.large, 1000});
        WAIT_FOR(&kit, sink.hold ? sink.requests : sink.pieces);
        answers[i % 2](TAKE(sink.request));
        size_t sent = way != UNTAKEN ? 1000 : 0;
        caller_send(&caller, (str){kit.large + sent, KIT_LARGE_BYTES - sent});
        caller_send(&caller, STR(GET("/hello")));
        sink_expect_last(&caller, 403);
        assert_int_equal(sink.ends, 0);
        assert_int_equal(kit.answered, 1);
        sink_teardown(&kit, &sink, &caller);
    }
}

/* The same from inside on_piece, with the rest of the body in the same read. */
static void answer_inside(void **state)
{
    (void)state;
    struct kit kit;
    struct sink sink;
    struct caller caller;
    sink_setup(&kit, &sink, &caller, NULL);
    sink.answer_at = 1;
    caller_send(&caller, STR(CHUNKED HELLO_CHUNK HELLO_CHUNK "0\r\n\r\n" GET("/hello")));
    sink_expect_last(&caller, 200);
    assert_int_equal(sink.pieces, 1);
    assert_int_equal(sink.ends, 0);
    assert_int_equal(kit.answered, 1);
    sink_teardown(&kit, &sink, &caller);
}

/* A request without a body needs no taking: the connection goes on. */
static void nothing_to_take(void **state)
{
    (void)state;
    struct kit kit;
    struct sink sink;
    struct caller caller;
    sink_setup(&kit, &sink, &caller, NULL);
    sink.hold = true;
    for (int i = 0; i < 3; i++) {
        caller_send(&caller, STR(LENGTH("0") GET("/hello")));
        WAIT_FOR(&kit, sink.request);
        sink_answer(&sink);
        sink_expect(&caller, 200, STR_EMPTY);
        sink_expect(&caller, 200, STR("hello"));
    }
    sink_expect_alive(&caller);
    sink_teardown(&kit, &sink, &caller);
}

static void on_left(void *arg)
{
    bool *left = arg;
    *left = true;
}

/* A long answer before the body was read: it is the last one. */
static void stream_early(void **state)
{
    (void)state;
    static const struct sse_ops ops = {.on_close = on_left};
    struct kit kit;
    struct sink sink;
    struct caller caller;
    sink_setup(&kit, &sink, &caller, NULL);
    sink.hold = true;
    bool left = false;
    caller_send(&caller, STR(LENGTH("20") "hello"));
    WAIT_FOR(&kit, sink.request);
    struct sse_stream *sse = sse_open(TAKE(sink.request), NULL, 0, &ops, &left);
    assert_non_null(sse);
    WAIT_FOR(&kit, caller_has(&caller, false));
    caller_send(&caller, STR(GET("/hello")));
    sse_close(sse);
    WAIT_FOR(&kit, caller.ended);
    assert_false(caller.reset);
    assert_int_equal(kit.requests, 1);
    sink_teardown(&kit, &sink, &caller);
}

int test_http_body(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_bodies),    cmocka_unit_test(pipelined),
        cmocka_unit_test(expect_continue), cmocka_unit_test(slow_sink),
        cmocka_unit_test(held_back),       cmocka_unit_test(pause_before_take),
        cmocka_unit_test(pause_again),     cmocka_unit_test(pauses_are_not_counted),
        cmocka_unit_test(early_answers),   cmocka_unit_test(answer_inside),
        cmocka_unit_test(nothing_to_take), cmocka_unit_test(stream_early),
    };
    return cmocka_run_group_tests_name("http_body", tests, NULL, NULL);
}
