/* SPDX-License-Identifier: Apache-2.0
 *
 * Streamed bodies that break off, over real sockets: each way it can happen, in each state, and
 * that nothing stays behind.
 */
#include <signal.h>
#include <string.h>

#include "sink.h"

enum event { NOTHING, RESET, END, STOP, FREE };

static const struct {
    const char *head, *body; /* body: sent with the head or later */
    enum event event;
    enum err end;
    uint64_t bytes; /* that come before it */
} breaks[] = {
    {LENGTH("1001"), "body", NOTHING, ERR_TOO_LARGE, 0},
    {LENGTH("1001"), "", NOTHING, ERR_TOO_LARGE, 0},
    {CHUNKED, HELLO_CHUNK "3e4\r\n", NOTHING, ERR_TOO_LARGE, 5},
    {CHUNKED, "hello", NOTHING, ERR_BAD_REQUEST, 0},
    {CHUNKED, HELLO_CHUNK "x", NOTHING, ERR_BAD_REQUEST, 5},
    {CHUNKED, "5\r\nhelloo\r\n", NOTHING, ERR_BAD_REQUEST, 5},
    {CHUNKED, HELLO_CHUNK "0\r\nX : y\r\n\r\n", NOTHING, ERR_BAD_REQUEST, 5},
    {LENGTH("6"), "hello", NOTHING, ERR_TIMEOUT, 5},
    {LENGTH("6"), "", NOTHING, ERR_TIMEOUT, 0},
    {CHUNKED, HELLO_CHUNK "0\r\n", NOTHING, ERR_TIMEOUT, 5},
    {LENGTH("6"), "hello", RESET, ERR_NETWORK, 5},
    {LENGTH("6"), "", RESET, ERR_NETWORK, 0},
    {LENGTH("6"), "hello", END, ERR_NETWORK, 5},
    {LENGTH("6"), "", END, ERR_NETWORK, 0},
    {CHUNKED, HELLO_CHUNK, END, ERR_NETWORK, 5},
    {CHUNKED, HELLO_CHUNK "0\r\n", END, ERR_NETWORK, 5},
    {LENGTH("6"), "hello", STOP, ERR_SHUTTING_DOWN, 5},
    {CHUNKED, "", STOP, ERR_SHUTTING_DOWN, 0},
    {LENGTH("6"), "hello", FREE, ERR_SHUTTING_DOWN, 5},
    {CHUNKED, "", FREE, ERR_SHUTTING_DOWN, 0},
};

static void break_off(struct kit *kit, struct caller *caller, enum event event)
{
    if (event == RESET) caller_reset(caller);
    if (event == END) caller_half_close(caller);
    if (event == STOP) kit_stop(kit);
    if (event == FREE) http_server_free(TAKE(kit->server));
}

static void broken_body(size_t row, bool split, bool hold, bool late)
{
    bool expire = breaks[row].end == ERR_TIMEOUT;
    struct kit kit;
    struct sink sink;
    struct caller caller;
    sink_setup(&kit, &sink, &caller,
               &(struct http_server_options){.body_idle_ms = expire ? 200 : 0});
    kit.own_max = 1000;
    sink.hold = hold;
    sink.hold_answer = late;
    caller_send(&caller, str_c(breaks[row].head));
    if (split) WAIT_FOR(&kit, sink.request || sink.ends);
    caller_send(&caller, str_c(breaks[row].body));
    WAIT_FOR(&kit, sink.requests);
    if (hold) sink_take(&sink);
    if (breaks[row].event != NOTHING) WAIT_FOR(&kit, sink.bytes == breaks[row].bytes);

    break_off(&kit, &caller, breaks[row].event);
    if (breaks[row].event != FREE) WAIT_FOR(&kit, sink.ends);
    assert_int_equal(sink.ends, 1);
    assert_int_equal(sink.end, breaks[row].end);
    assert_int_equal(sink.bytes, breaks[row].bytes);
    bool gone = breaks[row].end == ERR_NETWORK || breaks[row].event == FREE;
    if (late) {
        kit_turns(&kit, 3);
        assert_int_equal(sink.ends, 1);
        assert_int_equal(http_gone(sink.request), gone);
        sink_answer(&sink);
    }
    if (!gone) sink_expect_last(&caller, err_status(breaks[row].end));
    if (gone && breaks[row].event != FREE) assert_int_equal(kit.answered, 0);
    sink_teardown(&kit, &sink, &caller);
}

static void broken_bodies(void **state)
{
    (void)state;
    for (size_t row = 0; row < COUNT(breaks); row++)
        for (unsigned bits = 0; bits < 8; bits++) broken_body(row, bits & 1, bits & 2, bits & 4);
}

/* Never silent, and yet too slow. */
static void trickle(void **state)
{
    (void)state;
    struct kit kit;
    struct sink sink;
    struct caller caller;
    sink_setup(&kit, &sink, &caller, &(struct http_server_options){.body_idle_ms = 600});
    caller_send(&caller, STR(LENGTH("60000")));
    int sent = 0;
    for (kit_wait_begin(&kit); !sink.ends; sent++) {
        assert_true(sent < 60000);
        caller_send(&caller, STR("x"));
        for (int i = 0; i < 5 && !sink.ends; i++) kit_turn(&kit, "the end");
    }
    assert_int_equal(sink.end, ERR_TIMEOUT);
    assert_true(sent > 5);
    caller_half_close(&caller);
    sink_expect_last(&caller, 408);
    sink_teardown(&kit, &sink, &caller);
}

/* What breaks off while it is paused, or before it was taken. */
static void broken_while_held(void **state)
{
    (void)state;
    static const struct {
        enum event event;
        bool taken; /* and paused */
        enum err end;
        bool told_without_resume;
    } rows[] = {
        {RESET, true, ERR_NETWORK, false},       {END, true, ERR_NETWORK, false},
        {STOP, true, ERR_SHUTTING_DOWN, true},   {FREE, true, ERR_SHUTTING_DOWN, true},
        {RESET, false, ERR_NETWORK, false},      {END, false, ERR_NETWORK, false},
        {STOP, false, ERR_SHUTTING_DOWN, false}, {FREE, false, ERR_NETWORK, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kit kit;
        struct sink sink;
        struct caller caller;
        sink_setup(&kit, &sink, &caller, NULL);
        sink.hold = !rows[i].taken;
        sink.pausing = rows[i].taken ? PAUSE_EACH : PAUSE_NEVER;
        caller_send(&caller, STR(LENGTH("20") "hello"));
        WAIT_FOR(&kit, rows[i].taken ? sink.pieces : sink.requests);
        break_off(&kit, &caller, rows[i].event);
        if (rows[i].event != FREE) kit_turns(&kit, 5);
        assert_int_equal(sink.ends, rows[i].told_without_resume);
        if (!rows[i].taken)
            sink_take(&sink);
        else if (!sink.ends)
            http_body_resume(sink.request);
        WAIT_FOR(&kit, sink.ends);
        assert_int_equal(sink.end, rows[i].end);
        if (rows[i].event == STOP) sink_expect_last(&caller, 503);
        sink_teardown(&kit, &sink, &caller);
    }
}

/* Who answers before he is told is not told any more. */
static void answered_before_told(void **state)
{
    (void)state;
    struct kit kit;
    struct sink sink;
    struct caller caller;
    sink_setup(&kit, &sink, &caller, NULL);
    caller_send(&caller, STR(LENGTH("20") "hello"));
    WAIT_FOR(&kit, sink.pieces);
    kit_stop(&kit);
    sink.end = ERR_BUSY;
    sink_answer(&sink);
    sink_expect_last(&caller, 409);
    assert_int_equal(sink.ends, 0);
    sink_teardown(&kit, &sink, &caller);
}

/* Earlier answers reach a client that ends its side in the middle of a body. */
static void ended_behind_answers(void **state)
{
    (void)state;
    struct kit kit;
    struct sink sink;
    struct caller caller;
    kit_init(&kit, NULL);
    sink_init(&sink, &kit);
    caller_open(&caller, &kit, true);
    caller_pause(&caller);
    caller_send(&caller, STR(GET("/static") LENGTH("20") "hello"));
    caller_half_close(&caller);
    WAIT_FOR(&kit, kit.answered);
    caller_resume(&caller, 64 * 1024);
    struct response response = caller_take(&caller, false);
    assert_int_equal(response.body.len, KIT_LARGE_BYTES);
    WAIT_FOR(&kit, sink.ends && caller.ended);
    assert_int_equal(sink.end, ERR_NETWORK);
    sink_teardown(&kit, &sink, &caller);
}

/* A thousand uploads that end in the middle leave nothing behind. */
static void aborted(void **state)
{
    (void)state;
    struct kit kit;
    struct sink sink;
    kit_init(&kit, NULL);
    sink_init(&sink, &kit);
    int before = 0; /* counted when the first has gone: the loop has made its own by then */
    for (int i = 0; i <= 1000; i++) {
        struct caller caller;
        caller_open(&caller, &kit, false);
        unsigned requests = sink.requests, pieces = sink.pieces;
        bool begun = i % 3; /* some of the body is sent */
        sink.hold = i % 5 == 4;
        sink.pausing = i % 5 == 3 ? PAUSE_EACH : PAUSE_NEVER;
        caller_send(&caller, i % 2 ? STR(LENGTH("20")) : STR(CHUNKED));
        if (begun) caller_send(&caller, i % 2 ? STR("hello") : STR(HELLO_CHUNK));
        WAIT_FOR(&kit, sink.requests > requests);
        if (begun && !sink.hold) WAIT_FOR(&kit, sink.pieces > pieces);
        (i % 7 ? caller_reset : caller_close)(&caller);
        if (sink.hold) sink_take(&sink);
        sink_resume(&sink);
        WAIT_FOR(&kit, !sink.request && http_server_connections(kit.server) == 0);
        assert_int_equal(sink.end, ERR_NETWORK);
        if (i > 0) continue;
        kit_turns(&kit, 5);
        before = kit_descriptors();
    }
    kit_turns(&kit, 5);
    assert_int_equal(kit_descriptors(), before);
    assert_int_equal(http_server_connections(kit.server), 0);
    buf_done(&sink.got);
    kit_done(&kit);
}

int test_http_body_breaks(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_bodies),        cmocka_unit_test(trickle),
        cmocka_unit_test(broken_while_held),    cmocka_unit_test(answered_before_told),
        cmocka_unit_test(ended_behind_answers), cmocka_unit_test(aborted),
    };
    return cmocka_run_group_tests_name("http_body_breaks", tests, NULL, NULL);
}
