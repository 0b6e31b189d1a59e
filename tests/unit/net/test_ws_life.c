/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a WebSocket: its queue, its times and its ends.
 */
#include <string.h>

#include "base/clock.h"
#include "ws_stage.h"

/* ---- sending ---- */

static void say_many(struct ws_owner *owner, str text)
{
    (void)text;
    for (int i = 0; i < 1000; i++) assert_true(ws_send(owner->ws, STR("0123456789")));
    assert_false(ws_drained(owner->ws));
    assert_int_equal(owner->drains, 0);
}

static void many_messages(void **state)
{
    (void)state;
    struct ws_stage stage;
    struct caller caller;
    ws_stage_init(&stage, NULL);
    stage.on_text = say_many;
    struct ws_owner *owner = ws_join(&stage, &caller, false);
    ws_tell(&caller, "81:go");
    WAIT_FOR(&stage.kit, caller.got.len >= 12000);
    assert_int_equal(caller.got.len, 12000);
    for (size_t i = 0; i < 1000; i++)
        assert_memory_equal(caller.got.p + i * 12,
                            "\x81\x0a"
                            "0123456789",
                            12);
    assert_int_equal(owner->drains, 1);
    assert_true(ws_drained(owner->ws));
    caller_close(&caller);
    ws_stage_done(&stage);
}

/* One message is taken whatever its size, and the next when it has gone. */
static void large_messages(void **state)
{
    (void)state;
    struct ws_stage stage;
    struct caller caller;
    ws_stage_init(&stage, NULL);
    struct ws_owner *owner = ws_join(&stage, &caller, true);
    caller_pause(&caller);
    str large = {stage.kit.large, KIT_LARGE_BYTES};
    assert_true(ws_send(owner->ws, large));
    assert_false(ws_send(owner->ws, STR("too early")));
    kit_turns(&stage.kit, 5);
    assert_false(ws_send(owner->ws, STR("still")));
    assert_int_equal(owner->drains, 0);
    caller_resume(&caller, 64 * 1024);
    WAIT_FOR(&stage.kit, owner->drains == 1);
    assert_true(ws_send(owner->ws, large));
    WAIT_FOR(&stage.kit, caller.got.len >= 2 * (KIT_LARGE_BYTES + 10));
    for (size_t i = 0; i < 2; i++) {
        const char *at = caller.got.p + i * (KIT_LARGE_BYTES + 10);
        assert_memory_equal(at, "\x81\x7f\0\0\0\0\0\x40\0\0", 10);
        assert_memory_equal(at + 10, large.p, large.len);
    }
    caller_close(&caller);
    ws_stage_done(&stage);
}

/* on_drain comes once for all that waited, also behind a refusal. */
static void drain_follows_a_refusal(void **state)
{
    (void)state;
    struct ws_stage stage;
    struct caller caller;
    ws_stage_init(&stage, NULL);
    struct ws_owner *owner = ws_join(&stage, &caller, false);
    int sent = 0;
    while (ws_send(owner->ws, (str){stage.kit.large, 60 * 1024})) sent++;
    assert_true(sent > 3);
    WAIT_FOR(&stage.kit, owner->drains == 1);
    assert_true(ws_send(owner->ws, (str){stage.kit.large, 60 * 1024}));
    WAIT_FOR(&stage.kit, owner->drains == 2);
    kit_turns(&stage.kit, 3);
    assert_int_equal(owner->drains, 2);
    caller_close(&caller);
    ws_stage_done(&stage);
}

static void ignore_text(struct ws_owner *owner, str text)
{
    (void)owner;
    (void)text;
}

/* Fill the socket and the queue of a client that does not read. */
static size_t fill(struct ws_owner *owner)
{
    str text = {owner->stage->kit.large, 30 * 1024};
    size_t count = 0;
    for (int idle = 0; idle < 5;) {
        bool taken = ws_send(owner->ws, text);
        count += taken;
        idle = taken ? 0 : idle + 1;
        kit_turns(&owner->stage->kit, 1);
    }
    owner->drains = 0;
    return count;
}

/* W30: all that was taken, then 1013. */
static void slow_reader(void **state)
{
    (void)state;
    struct ws_stage stage;
    struct caller caller;
    ws_stage_init(&stage, NULL);
    struct ws_owner *owner = ws_join(&stage, &caller, true);
    caller_pause(&caller);
    size_t count = fill(owner);
    ws_owner_end(owner, WS_LATER);
    kit_turns(&stage.kit, 10);
    caller_resume(&caller, 64 * 1024);
    size_t frame = 4 + 30 * 1024;
    WAIT_FOR(&stage.kit, caller.got.len >= count * frame + 11);
    for (size_t i = 0; i < count; i++) assert_memory_equal(caller.got.p + i * frame, "\x81\x7e", 2);
    buf_drop(&caller.got, count * frame);
    assert_memory_equal(caller.got.p,
                        "\x88\x09\x03\xf5"
                        "because",
                        11);
    buf_clear(&caller.got);
    ws_tell(&caller, "88=1013");
    ws_expect_end(&caller);
    caller_close(&caller);
    ws_stage_done(&stage);
    assert_int_equal(owner->closes, 0);
}

/* W30: a reader that has stopped is cut, whether or not its owner gave up before. */
static void stopped_reader(void **state)
{
    (void)state;
    for (int gives_up = 0; gives_up < 2; gives_up++) {
        struct ws_stage stage;
        struct caller caller;
        ws_stage_init(&stage, &(struct http_server_options){.stall_ms = 50});
        struct ws_owner *owner = ws_join(&stage, &caller, true);
        caller_pause(&caller);
        str text = {stage.kit.large, 60 * 1024};
        while (ws_send(owner->ws, text)) {
        }
        if (gives_up) ws_owner_end(owner, WS_LATER);
        WAIT_FOR(&stage.kit, http_server_connections(stage.kit.server) == 0);
        assert_int_equal(owner->closes, !gives_up);
        caller_resume(&caller, 64 * 1024);
        WAIT_FOR(&stage.kit, caller.ended);
        assert_true(caller.reset);
        caller_close(&caller);
        ws_stage_done(&stage);
    }
}

/* To a client that does not read one pong is kept, and what it sends is heard all the same. */
static void pongs_coalesce(void **state)
{
    (void)state;
    struct ws_stage stage;
    struct caller caller;
    ws_stage_init(&stage, NULL);
    stage.on_text = ignore_text;
    struct ws_owner *owner = ws_join(&stage, &caller, true);
    caller_pause(&caller);
    size_t count = fill(owner);
    ws_tell(&caller, "89:a 89*125 81:t 89:bc 89: 8a: 89:last 81:u");
    WAIT_FOR(&stage.kit, owner->texts == 2);
    size_t frame = 4 + 30 * 1024;
    caller_resume(&caller, 64 * 1024);
    WAIT_FOR(&stage.kit, owner->drains == 1);
    WAIT_FOR(&stage.kit, caller.got.len >= count * frame + 6);
    size_t seen = 0;
    for (size_t at = 0; at < caller.got.len; seen++) {
        bool pong = (unsigned char)caller.got.p[at] == 0x8a;
        if (pong) assert_memory_equal(caller.got.p + at, "\x8a\x04last", 6);
        at += pong ? 6 : frame;
    }
    assert_int_equal(seen, count + 1);
    caller_close(&caller);
    ws_stage_done(&stage);
}

/* ---- times ---- */

/* W28. */
static void no_pong(void **state)
{
    (void)state;
    struct ws_stage stage;
    struct caller caller;
    ws_stage_init(&stage, &(struct http_server_options){.quiet_ms = 20, .pong_ms = 500});
    struct ws_owner *owner = ws_join(&stage, &caller, false);
    WAIT_FOR(&stage.kit, caller.ended);
    assert_true(caller.reset);
    assert_true(caller.got.len >= 4 && caller.got.len % 2 == 0);
    for (size_t i = 0; i < caller.got.len; i += 2)
        assert_memory_equal(caller.got.p + i, "\x89\x00", 2);
    assert_int_equal(owner->closes, 1);
    caller_close(&caller);
    ws_stage_done(&stage);
}

/* A pong for every other ping is enough to stay. */
static void pongs(void **state)
{
    (void)state;
    struct ws_stage stage;
    struct caller caller;
    ws_stage_init(&stage, &(struct http_server_options){.quiet_ms = 20, .pong_ms = 500});
    struct ws_owner *owner = ws_join(&stage, &caller, false);
    msec before = clock_steady(&clock_system);
    for (int i = 0; clock_steady(&clock_system) - before < 1200; i++) {
        ws_expect("ping", &caller, "89:");
        if (i % 2) ws_tell(&caller, "8a:");
    }
    assert_int_equal(owner->closes, 0);
    assert_int_equal(owner->drains, 0);
    caller_close(&caller);
    ws_stage_done(&stage);
}

/* ---- ends ---- */

static void end_on_text(struct ws_owner *owner, str text)
{
    assert_true(ws_send(owner->ws, text));
    ws_owner_end(owner, WS_POLICY);
}

/* In the middle of a read: what stands behind it is not heard. */
static void closing_inside_a_callback(void **state)
{
    (void)state;
    struct ws_stage stage;
    struct caller caller;
    ws_stage_init(&stage, NULL);
    stage.on_text = end_on_text;
    struct ws_owner *owner = ws_join(&stage, &caller, false);
    ws_tell(&caller, "89:p 81:last 81:never 89:q 82:x");
    ws_expect("closing", &caller, "8a:p 81:last 88=1008");
    ws_expect_end(&caller);
    assert_int_equal(owner->texts, 1);
    assert_int_equal(owner->closes, 0);
    caller_close(&caller);
    ws_stage_done(&stage);
}

/* We close: the connection stays for their close frame, which ends it, or for WS_CLOSE_MS_MAX. */
static void closing(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        bool ends_soon, half_close;
    } cases[] = {
        {"81:still 89:here 88=1000", true, false},
        {"88:", true, false},
        {"82:nonsense", true, false},
        {"", true, true},
        {"81:never", false, false},
    };
    struct ws_stage stage;
    ws_stage_init(&stage, NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct caller caller;
        struct ws_owner *owner = ws_join(&stage, &caller, false);
        assert_true(ws_send(owner->ws, STR("bye")));
        msec before = clock_steady(&clock_system);
        ws_owner_end(owner, WS_NORMAL);
        ws_expect("closing", &caller, "81:bye 88=1000");
        kit_turns(&stage.kit, 5);
        assert_false(caller.ended);
        if (cases[i].answer[0]) ws_tell(&caller, cases[i].answer);
        if (cases[i].half_close) caller_half_close(&caller);
        ws_expect_end(&caller);
        msec took = clock_steady(&clock_system) - before;
        if (cases[i].ends_soon)
            assert_true(took < WS_CLOSE_MS_MAX);
        else
            assert_true(took >= WS_CLOSE_MS_MAX - 1); /* the loop's clock is cut to milliseconds */
        assert_int_equal(owner->closes + owner->texts, 0);
        caller_close(&caller);
    }
    ws_stage_done(&stage);
}

static void clients_that_leave(void **state)
{
    (void)state;
    struct ws_stage stage;
    struct caller caller;
    ws_stage_init(&stage, NULL);
    for (int i = 0; i < 4; i++) {
        struct ws_owner *owner = ws_join(&stage, &caller, i == 3);
        if (i == 1) ws_tell(&caller, "01:half");
        if (i == 3) {
            caller_pause(&caller);
            assert_true(ws_send(owner->ws, (str){stage.kit.large, KIT_LARGE_BYTES}));
        }
        kit_turns(&stage.kit, 2);
        if (i == 2)
            caller_reset(&caller);
        else
            caller_close(&caller);
        WAIT_FOR(&stage.kit, owner->closes == 1);
    }
    ws_stage_done(&stage);
}

/* Messages that do not end are held for one account up to its share; each that ends gives it back. */
static void messages_that_do_not_end(void **state)
{
    (void)state;
    enum { BYTES = 256 * 1000, FIT = HTTP_BODIES_ADDRESS_BYTES_MAX / BYTES };
    struct ws_stage stage;
    struct caller callers[FIT + 1];
    struct ws_owner *owners[FIT + 1];
    struct http_budget *budget = http_budget_new();
    ws_stage_init(&stage, &(struct http_server_options){.budget = budget});
    for (int i = 0; i < FIT + 1; i++) owners[i] = ws_join(&stage, &callers[i], false);
    for (int i = 0; i < FIT; i++) ws_tell(&callers[i], "01*256000 89:in");
    for (int i = 0; i < FIT; i++) ws_expect("in", &callers[i], "8a:in");
    ws_tell(&callers[FIT], "01*256000 89:in");
    ws_expect("no room", &callers[FIT], "88=1013");
    ws_expect_end(&callers[FIT]);
    assert_int_equal(owners[FIT]->closes, 1);
    caller_close(&callers[FIT]);

    ws_tell(&callers[0], "80:. 89:whole");
    WAIT_FOR(&stage.kit, owners[0]->texts == 1);
    caller_close(&callers[0]);
    WAIT_FOR(&stage.kit, owners[0]->closes == 1);
    owners[0] = ws_join(&stage, &callers[0], false);
    ws_tell(&callers[0], "01*256000 89:in");
    ws_expect("room again", &callers[0], "8a:in");
    assert_int_equal(owners[0]->closes, 0);
    for (int i = 0; i < FIT; i++) caller_close(&callers[i]);
    WAIT_FOR(&stage.kit, http_server_connections(stage.kit.server) == 0);
    ws_stage_done(&stage);
    http_budget_unref(budget);
}

static void last_words(struct ws_owner *owner)
{
    assert_true(ws_send(owner->ws, STR("last")));
}

static void end_on_stop(struct ws_owner *owner)
{
    ws_owner_end(owner, WS_POLICY);
}

/* W32. */
static void stopping(void **state)
{
    (void)state;
    static const struct {
        void (*on_stop)(struct ws_owner *owner);
        const char *gets;
        unsigned closes;
    } cases[] = {
        {NULL, "88=1012", 1}, {last_words, "81:last 88=1012", 1}, {end_on_stop, "88=1008", 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ws_stage stage;
        struct caller caller, waiting, late;
        ws_stage_init(&stage, NULL);
        stage.on_stop = cases[i].on_stop;
        struct ws_owner *owner = ws_join(&stage, &caller, false);
        caller_open(&waiting, &stage.kit, false);
        caller_send(&waiting, STR(WS_ASK("/later")));
        WAIT_FOR(&stage.kit, stage.kit.held_count);
        caller_open(&late, &stage.kit, false);
        kit_stop(&stage.kit);
        assert_int_equal(owner->stops, 1);
        assert_int_equal(owner->closes, cases[i].closes);
        ws_expect("stopping", &caller, cases[i].gets);
        ws_tell(&caller, "88=1012");
        ws_expect_end(&caller);
        assert_null(ws_own(&stage, kit_take_held(&stage.kit)));
        assert_int_equal(caller_take(&waiting, false).status, 503);
        caller_close(&caller);
        caller_close(&waiting);
        caller_close(&late);
        WAIT_FOR(&stage.kit, stage.kit.stopped);
        ws_stage_done(&stage);
    }
}

/* Clients that do not answer the close frame do not hold the server up. */
static void stopping_with_silent_clients(void **state)
{
    (void)state;
    struct ws_stage stage;
    struct caller silent, slow;
    ws_stage_init(&stage, NULL);
    ws_join(&stage, &silent, false);
    struct ws_owner *owner = ws_join(&stage, &slow, true);
    caller_pause(&slow);
    assert_true(ws_send(owner->ws, (str){stage.kit.large, KIT_LARGE_BYTES}));
    kit_turns(&stage.kit, 2);
    kit_stop(&stage.kit);
    for (size_t i = 0; i < 2; i++) assert_int_equal(stage.owners[i].closes, 1);
    ws_expect("stopping", &silent, "88=1012");
    WAIT_FOR(&stage.kit, stage.kit.stopped);
    caller_close(&silent);
    caller_close(&slow);
    ws_stage_done(&stage);
}

/* Open sockets when the server is freed: their owners are told, if they did not close. */
static void freeing_the_server(void **state)
{
    (void)state;
    struct ws_stage stage;
    struct caller callers[4];
    ws_stage_init(&stage, NULL);
    for (size_t i = 0; i < COUNT(callers); i++) ws_join(&stage, &callers[i], i == 3);
    ws_tell(&callers[1], "01:half");
    kit_turns(&stage.kit, 2);
    assert_true(ws_send(stage.owners[0].ws, STR("never sent")));
    ws_owner_end(&stage.owners[2], WS_NORMAL);
    caller_pause(&callers[3]);
    fill(&stage.owners[3]);
    for (size_t i = 0; i < COUNT(callers); i++) caller_close(&callers[i]);
    kit_done(&stage.kit);
    for (size_t i = 0; i < COUNT(callers); i++) assert_int_equal(stage.owners[i].closes, i != 2);
}

int test_ws_life(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_messages),
        cmocka_unit_test(large_messages),
        cmocka_unit_test(drain_follows_a_refusal),
        cmocka_unit_test(slow_reader),
        cmocka_unit_test(stopped_reader),
        cmocka_unit_test(pongs_coalesce),
        cmocka_unit_test(no_pong),
        cmocka_unit_test(pongs),
        cmocka_unit_test(closing_inside_a_callback),
        cmocka_unit_test(closing),
        cmocka_unit_test(messages_that_do_not_end),
        cmocka_unit_test(clients_that_leave),
        cmocka_unit_test(stopping),
        cmocka_unit_test(stopping_with_silent_clients),
        cmocka_unit_test(freeing_the_server),
    };
    return cmocka_run_group_tests_name("ws_life", tests, NULL, NULL);
}
