/* SPDX-License-Identifier: Apache-2.0
 *
 * One client that holds all it can, and another one that is served meanwhile: connections, bodies,
 * and answers that nobody reads.
 */
#include <string.h>
#include <sys/socket.h>

#include "http_kit.h"
#include "net/http_conn.h"
#include "net/ip.h"

#define GET(path)          "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"
#define GET_AS(path, user) "GET " path " HTTP/1.1\r\nHost: h\r\nUser: " user "\r\n\r\n"
#define POST(length, more) \
    "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: " length "\r\n" more "\r\n"
#define MIB "1048576"

enum { LONG_MS = 60 * 1000 };

/* No connection is idle for so long in a test, unless one says otherwise. */
static void init(struct kit *kit, const struct http_server_options *options)
{
    kit_init(kit, options);
    kit->server->room_idle_ms = LONG_MS;
}

static int ask(struct caller *caller, const char *request)
{
    caller_send(caller, str_c(request));
    struct response response = caller_take(caller, false);
    int status = response.status;
    if (status == 429) assert_str(response_field(&response, STR("Retry-After")), STR("1"));
    caller_drop(caller, &response);
    return status;
}

/* A new connection that says nothing has no room. */
static void expect_turned_away(struct kit *kit, const char *address)
{
    struct caller caller;
    caller_open_from(&caller, kit, address, false);
    struct response response = caller_take(&caller, false);
    assert_int_equal(response.status, 429);
    assert_str(response_field(&response, STR("Retry-After")), STR("1"));
    caller_drop(&caller, &response);
    WAIT_FOR(kit, caller.ended);
    caller_close(&caller);
}

static void close_all(struct caller *callers, size_t count)
{
    for (size_t i = 0; i < count; i++) caller_close(&callers[i]);
}

/* ---- connections ---- */

static void share_of_an_address(void **state)
{
    (void)state;
    struct kit kit;
    struct caller callers[5];
    init(&kit, &(struct http_server_options){.connections_max = 100, .connections_address_max = 3});
    for (int i = 0; i < 3; i++) caller_open_from(&callers[i], &kit, "127.0.0.2", false);
    WAIT_FOR(&kit, http_server_connections(kit.server) == 3);
    expect_turned_away(&kit, "127.0.0.2");
    caller_open_from(&callers[3], &kit, "127.0.0.3", false);
    assert_int_equal(ask(&callers[3], GET("/hello")), 200);

    /* Whoever says who it is no longer counts for the address. */
    assert_int_equal(ask(&callers[0], GET_AS("/hello", "ann")), 200);
    caller_open_from(&callers[4], &kit, "127.0.0.2", false);
    assert_int_equal(ask(&callers[4], GET("/hello")), 200);
    expect_turned_away(&kit, "127.0.0.2");
    assert_int_equal(ask(&callers[0], GET("/hello")), 200); /* and stays so */
    expect_turned_away(&kit, "127.0.0.2");
    caller_close(&callers[1]);
    WAIT_FOR(&kit, http_server_connections(kit.server) == 4);
    caller_open_from(&callers[1], &kit, "127.0.0.2", false);
    assert_int_equal(ask(&callers[1], GET("/hello")), 200);
    close_all(callers, COUNT(callers));
    kit_done(&kit);
}

/* When all are used up, the one that was idle longest goes, without a key before with one. */
static void idle_ones_give_way(void **state)
{
    (void)state;
    struct kit kit;
    struct caller callers[4], late[4];
    init(&kit, &(struct http_server_options){.connections_max = 4, .connections_address_max = 4});
    for (int i = 0; i < 4; i++) {
        caller_open_from(&callers[i], &kit, "127.0.0.2", false);
        WAIT_FOR(&kit, http_server_connections(kit.server) == (size_t)i + 1);
    }
    assert_int_equal(ask(&callers[1], GET_AS("/hello", "ann")), 200);
    caller_send(&callers[2], STR(GET("/later")));
    WAIT_FOR(&kit, kit.held_count);
    expect_turned_away(&kit, "127.0.0.2"); /* they are not idle for long, and its own */

    caller_open_from(&late[0], &kit, "127.0.0.3", false);
    assert_int_equal(ask(&late[0], GET_AS("/hello", "bob")), 200);
    WAIT_FOR(&kit, callers[0].ended); /* the oldest */
    caller_open_from(&late[1], &kit, "127.0.0.3", false);
    assert_int_equal(ask(&late[1], GET_AS("/hello", "bob")), 200);
    WAIT_FOR(&kit, callers[3].ended); /* no key */
    caller_open_from(&late[2], &kit, "127.0.0.3", false);
    assert_int_equal(ask(&late[2], GET_AS("/hello", "bob")), 200);
    WAIT_FOR(&kit, callers[1].ended); /* idle, if with a key */
    expect_turned_away(&kit, "127.0.0.3");

    kit_answer_held(&kit); /* what is under way never goes */
    struct response response = caller_take(&callers[2], false);
    assert_int_equal(response.status, 200);
    assert_int_equal(http_server_connections(kit.server), 4);
    close_all(callers, COUNT(callers));
    close_all(late, 3);
    kit_done(&kit);
}

/* An address gives none to one that has more. */
static void fewer_give_none(void **state)
{
    (void)state;
    struct kit kit;
    struct caller callers[3], other;
    init(&kit, &(struct http_server_options){.connections_max = 3, .connections_address_max = 3});
    caller_open_from(&callers[0], &kit, "127.0.0.2", false);
    WAIT_FOR(&kit, http_server_connections(kit.server) == 1);
    for (int i = 1; i < 3; i++) caller_open_from(&callers[i], &kit, "127.0.0.3", false);
    WAIT_FOR(&kit, http_server_connections(kit.server) == 3);
    expect_turned_away(&kit, "127.0.0.3");
    assert_int_equal(ask(&callers[0], GET("/hello")), 200);
    caller_open_from(&other, &kit, "127.0.0.4", false);
    assert_int_equal(ask(&other, GET("/hello")), 200);
    WAIT_FOR(&kit, callers[1].ended);
    caller_close(&other);
    close_all(callers, COUNT(callers));
    kit_done(&kit);
}

/* Of its own address what was idle for a while. */
static void own_idle_ones_give_way(void **state)
{
    (void)state;
    struct kit kit;
    struct caller callers[2], late;
    init(&kit, &(struct http_server_options){.connections_max = 100, .connections_address_max = 2});
    for (int i = 0; i < 2; i++) {
        caller_open(&callers[i], &kit, false);
        assert_int_equal(ask(&callers[i], GET("/hello")), 200);
    }
    expect_turned_away(&kit, "127.0.0.1");
    kit.server->room_idle_ms = 0;
    caller_open(&late, &kit, false);
    assert_int_equal(ask(&late, GET("/hello")), 200);
    WAIT_FOR(&kit, callers[0].ended);
    assert_int_equal(ask(&callers[1], GET("/hello")), 200);
    caller_close(&late);
    close_all(callers, COUNT(callers));
    kit_done(&kit);
}

static void share_of_a_user(void **state)
{
    (void)state;
    struct kit kit;
    struct caller callers[6];
    init(&kit, &(struct http_server_options){.connections_max = 100,
                                             .connections_address_max = 50,
                                             .connections_user_max = 2});
    for (int i = 0; i < 6; i++) caller_open(&callers[i], &kit, false);
    assert_int_equal(ask(&callers[0], GET_AS("/hello", "ann")), 200);
    assert_int_equal(ask(&callers[1], GET_AS("/hello", "ann")), 200);
    assert_int_equal(ask(&callers[2], GET_AS("/hello", "ann")), 429);
    assert_int_equal(ask(&callers[3], GET_AS("/hello", "bob")), 200);
    assert_int_equal(ask(&callers[0], GET_AS("/hello", "ann")), 200);
    assert_int_equal(ask(&callers[1], GET_AS("/hello", "eve")), 200); /* it is hers now */
    assert_int_equal(ask(&callers[2], GET_AS("/hello", "ann")), 200);
    for (int i = 3; i < 6; i++)
        assert_int_equal(ask(&callers[i], GET_AS("/hello", "me\r\nAlone: 1")), 200);
    close_all(callers, COUNT(callers));
    WAIT_FOR(&kit, http_server_connections(kit.server) == 0);
    caller_open(&callers[0], &kit, false); /* nothing stays counted */
    caller_open(&callers[1], &kit, false);
    for (int i = 0; i < 2; i++) assert_int_equal(ask(&callers[i], GET_AS("/hello", "ann")), 200);
    close_all(callers, 2);
    kit_done(&kit);
}

/* A proxy has all it wants; the clients behind it have their shares while they ask. */
static void behind_a_proxy(void **state)
{
    (void)state;
    struct kit kit;
    struct caller callers[4];
    init(&kit, &(struct http_server_options){.connections_max = 100,
                                             .connections_address_max = 1,
                                             .connections_user_max = 50});
    kit.proxied = true;
    for (int i = 0; i < 4; i++) {
        caller_open(&callers[i], &kit, false);
        assert_int_equal(ask(&callers[i], "GET /hello HTTP/1.1\r\nHost: h\r\nFor: 1.2.3.4\r\n\r\n"),
                         200);
    }
    caller_send(&callers[0], STR("GET /later HTTP/1.1\r\nHost: h\r\nFor: 1.2.3.4\r\n\r\n"));
    WAIT_FOR(&kit, kit.held_count);
    assert_int_equal(ask(&callers[1], "GET /hello HTTP/1.1\r\nHost: h\r\nFor: 1.2.3.4\r\n\r\n"),
                     429);
    assert_int_equal(ask(&callers[1], "GET /hello HTTP/1.1\r\nHost: h\r\nFor: 1.2.3.5\r\n\r\n"),
                     200);
    assert_int_equal(ask(&callers[2], GET_AS("/hello", "ann")), 200);
    kit_answer_held(&kit);
    WAIT_FOR(&kit, caller_has(&callers[0], false));
    assert_int_equal(ask(&callers[1], "GET /hello HTTP/1.1\r\nHost: h\r\nFor: 1.2.3.4\r\n\r\n"),
                     200);
    close_all(callers, COUNT(callers));
    kit_done(&kit);
}

/* ---- bodies ---- */

static void init_budget(struct kit *kit, msec stall_ms)
{
    struct http_budget *budget = http_budget_new();
    kit_init(kit, &(struct http_server_options){.budget = budget, .stall_ms = stall_ms});
    http_budget_unref(budget);
    kit->body_max = 16 << 20;
}

static void bodies_of_strangers(void **state)
{
    (void)state;
    enum { FIT = HTTP_BODIES_ADDRESS_BYTES_MAX >> 20 };
    struct kit kit;
    struct caller callers[FIT], late;
    init_budget(&kit, 0);
    for (int i = 0; i < FIT; i++) {
        caller_open(&callers[i], &kit, false);
        caller_send(&callers[i], STR(POST(MIB, "Expect: 100-continue\r\n")));
        struct response told = caller_take(&callers[i], false);
        assert_int_equal(told.status, 100);
        caller_drop(&callers[i], &told);
    }
    caller_open(&late, &kit, false);
    assert_int_equal(ask(&late, POST("1", "")), 429); /* with the head: no body was sent */
    WAIT_FOR(&kit, late.ended);
    caller_close(&late);
    caller_open(&late, &kit, false);
    assert_int_equal(
        ask(&late, "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"), 429);
    caller_close(&late);

    caller_open_from(&late, &kit, "127.0.0.2", false);
    assert_int_equal(ask(&late, POST("2", "") "hi"), 200);
    assert_int_equal(ask(&late, POST("2", "User: ann\r\n") "hi"), 200);
    caller_close(&late);
    caller_open(&late, &kit, false); /* and from there, with a name */
    assert_int_equal(ask(&late, POST("2", "User: ann\r\n") "hi"), 200);
    assert_int_equal(ask(&late, GET("/hello")), 200);

    caller_close(&callers[0]);
    WAIT_FOR(&kit, http_server_connections(kit.server) == FIT);
    assert_int_equal(ask(&late, POST("2", "") "hi"), 200);
    caller_close(&late);
    close_all(callers, FIT);
    kit_done(&kit);
}

static void bodies_of_a_user(void **state)
{
    (void)state;
    enum { FIT = HTTP_BODIES_USER_BYTES_MAX / (16 << 20) };
    struct kit kit;
    struct caller callers[FIT + 1], late;
    init_budget(&kit, 0);
    for (int i = 0; i < FIT; i++) {
        caller_open(&callers[i], &kit, false);
        caller_send(&callers[i], STR(POST("16777216", "User: ann\r\n") "{"));
    }
    caller_open(&callers[FIT], &kit, false);
    WAIT_FOR(&kit, http_server_connections(kit.server) == FIT + 1);
    kit_turns(&kit, 5);
    caller_open(&late, &kit, false);
    assert_int_equal(ask(&late, POST("1", "User: ann\r\n")), 429);
    caller_close(&late);
    caller_open(&late, &kit, false);
    assert_int_equal(ask(&late, POST("16777217", "User: ann\r\n")), 413); /* for what it is */
    caller_close(&late);
    caller_open(&late, &kit, false);
    assert_int_equal(ask(&late, POST("2", "User: bob\r\n") "hi"), 200);
    assert_int_equal(ask(&late, POST("2", "User: ann\r\nAlone: 1\r\n") "hi"), 200);
    caller_close(&late);
    close_all(callers, FIT + 1);
    kit_done(&kit);
}

/* One of unknown length is counted as it grows, and refused when its share is used up. */
static void chunked_bodies_grow(void **state)
{
    (void)state;
    enum { CHUNK = 0x10000 };
    struct kit kit;
    struct caller caller, late;
    init_budget(&kit, 0);
    caller_open(&caller, &kit, false);
    caller_send(&caller,
                STR("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"));
    size_t sent = 0;
    while (!caller_has(&caller, false) && sent < 2 * HTTP_BODIES_ADDRESS_BYTES_MAX) {
        caller_send(&caller, STR("10000\r\n"));
        caller_send(&caller, (str){kit.large, CHUNK});
        caller_send(&caller, STR("\r\n"));
        kit_turns(&kit, 1);
        sent += CHUNK;
    }
    struct response response = caller_take(&caller, false);
    assert_int_equal(response.status, 429);
    assert_in_range(sent, HTTP_BODIES_ADDRESS_BYTES_MAX, HTTP_BODIES_ADDRESS_BYTES_MAX * 3 / 2);
    caller_open(&late, &kit, false);
    assert_int_equal(ask(&late, POST("2", "") "hi"), 200);
    caller_close(&late);
    caller_close(&caller);
    kit_done(&kit);
}

/* A request that is with its handler keeps its part, also when the client and the server are gone. */
static void kept_until_answered(void **state)
{
    (void)state;
    struct kit kit;
    struct caller caller;
    init_budget(&kit, 0);
    caller_open(&caller, &kit, false);
    caller_send(&caller, STR("POST /later HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"));
    WAIT_FOR(&kit, kit.held_count);
    caller_reset(&caller);
    WAIT_FOR(&kit, http_server_connections(kit.server) == 0);
    kit_done(&kit); /* answers it behind the server's end */
}

/* What was sent at first does not buy time. */
static void body_that_slows_down(void **state)
{
    (void)state;
    struct kit kit;
    struct caller caller;
    kit_init(&kit, &(struct http_server_options){.body_idle_ms = 600});
    kit.body_max = 16 << 20;
    caller_open(&caller, &kit, false);
    caller_send(&caller, STR(POST("16000000", "")));
    caller_send(&caller, (str){kit.large, 1 << 20});
    for (kit_wait_begin(&kit); !caller_has(&caller, false);) {
        caller_send(&caller, STR("x"));
        for (int i = 0; i < 20 && !caller_has(&caller, false); i++) kit_turn(&kit, "408");
    }
    struct response response = caller_take(&caller, false);
    assert_int_equal(response.status, 408);
    caller_close(&caller);
    kit_done(&kit);
}

/* ---- answers ---- */

/* Large answers that nobody reads: the next one is refused, for this account alone. */
static void answers_that_nobody_reads(void **state)
{
    (void)state;
    enum { FIT = HTTP_UNSENT_ADDRESS_BYTES_MAX / KIT_LARGE_BYTES - 1 }; /* heads count, too */
    struct kit kit;
    struct caller slow[FIT], late;
    init_budget(&kit, 0);
    for (int i = 0; i < FIT; i++) {
        caller_open(&slow[i], &kit, true);
        caller_pause(&slow[i]);
        caller_send(&slow[i], STR(GET("/copied")));
        WAIT_FOR(&kit, kit.answered == (unsigned)i + 1);
        assert_int_equal(kit.last_status, 200);
    }
    caller_open(&late, &kit, false);
    assert_int_equal(ask(&late, GET("/copied")), 429);
    assert_int_equal(ask(&late, GET("/hello")), 200);
    assert_int_equal(ask(&late, GET_AS("/copied", "ann")), 200);
    caller_close(&late);
    caller_open_from(&late, &kit, "127.0.0.2", false);
    assert_int_equal(ask(&late, GET("/copied")), 200);
    caller_close(&late);

    caller_resume(&slow[0], 64 * 1024); /* one is read */
    struct response response = caller_take(&slow[0], false);
    assert_int_equal(response.body.len, KIT_LARGE_BYTES);
    caller_open(&late, &kit, false);
    assert_int_equal(ask(&late, GET("/copied")), 200);
    caller_close(&late);
    close_all(slow, FIT);
    kit_done(&kit);
}

/* What was changed is told in any case; then nothing more is begun until some of it was read. */
static void what_was_changed_is_told(void **state)
{
    (void)state;
    enum { FIT = HTTP_UNSENT_ADDRESS_BYTES_MAX / KIT_LARGE_BYTES - 1 }; /* heads count, too */
    struct kit kit;
    struct caller slow[FIT + 1], late;
    init_budget(&kit, 0);
    for (int i = 0; i < FIT + 1; i++) {
        caller_open(&slow[i], &kit, true);
        caller_pause(&slow[i]);
        caller_send(&slow[i], STR("POST /copied HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"));
        WAIT_FOR(&kit, kit.answered == (unsigned)i + 1);
        assert_int_equal(kit.last_status, 200);
    }
    caller_open(&late, &kit, false);
    assert_int_equal(ask(&late, GET("/hello")), 429);
    assert_int_equal(ask(&late, GET_AS("/hello", "ann")), 200);
    caller_close(&late);
    caller_reset(&slow[0]);
    WAIT_FOR(&kit, http_server_connections(kit.server) == FIT);
    caller_open(&late, &kit, false);
    assert_int_equal(ask(&late, GET("/hello")), 200);
    caller_close(&late);
    close_all(slow + 1, FIT);
    kit_done(&kit);
}

/* All were begun before the first was answered: what does not fit any more is cut, and not kept. */
static void many_changes_at_once(void **state)
{
    (void)state;
    enum { FIT = HTTP_UNSENT_ADDRESS_BYTES_MAX / KIT_LARGE_BYTES - 1, MORE = 4 };
    struct kit kit;
    struct caller slow[FIT + 1 + MORE], late;
    init_budget(&kit, 0);
    for (int i = 0; i < (int)COUNT(slow); i++) {
        caller_open(&slow[i], &kit, true);
        caller_pause(&slow[i]);
        caller_send(&slow[i], STR("POST /later HTTP/1.1\r\nHost: h\r\n"
                                  "Content-Length: 0\r\n\r\n"));
        WAIT_FOR(&kit, kit.held_count == (size_t)i + 1);
    }
    while (kit.held_count) kit_answer_copied(&kit, kit_take_held(&kit));
    WAIT_FOR(&kit, http_server_connections(kit.server) == FIT + 1);
    caller_open(&late, &kit, false);
    assert_int_equal(ask(&late, GET_AS("/hello", "ann")), 200);
    caller_close(&late);
    close_all(slow, COUNT(slow));
    kit_done(&kit);
}

/* Bytes go, but too few of them: it is cut. */
static void reader_at_a_trickle(void **state)
{
    (void)state;
    enum { STALL_MS = 2000, STEP_BYTES = 8, STEP_TURNS = 20 };
    struct kit kit;
    struct caller caller;
    size_t got = 0;
    kit_init(&kit, &(struct http_server_options){.stall_ms = STALL_MS});
    caller_open(&caller, &kit, true);
    caller_pause(&caller);
    caller_send(&caller, STR(GET("/static")));
    WAIT_FOR(&kit, kit.answered);
    kit_wait_begin(&kit);
    while (http_server_connections(kit.server)) {
        char bytes[STEP_BYTES];
        ssize_t count = recv(caller.fd, bytes, sizeof bytes, 0);
        if (count > 0) got += (size_t)count;
        for (int i = 0; i < STEP_TURNS; i++) kit_turn(&kit, "the end");
    }
    assert_true(got > 0);
    caller_resume(&caller, 64 * 1024);
    WAIT_FOR(&kit, caller.ended);
    assert_true(caller.reset);
    caller_close(&caller);
    kit_done(&kit);
}

/* ---- addresses ---- */

static void names_of_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *address, *want;
    } rows[] = {
        {"127.0.0.1", "127.0.0.1"},
        {"1.2.3.4", "1.2.3.4"},
        {"::ffff:1.2.3.4", "1.2.3.4"},
        {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
        {"2001:db8:1:2::9", "2001:db8:1:2::/64"},
        {"2001:db8:1:3::9", "2001:db8:1:3::/64"},
        {"::1", "::/64"},
        {"unix", "unix"},
        {"", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char room[IP_SHARE_BYTES];
        assert_str(ip_share(str_c(rows[i].address), room), str_c(rows[i].want));
    }
    char room[IP_SHARE_BYTES];
    char long_text[200];
    memset(long_text, 'a', sizeof long_text);
    assert_int_equal(ip_share((str){long_text, sizeof long_text}, room).len, INET6_ADDRSTRLEN - 1);
}

int test_http_share(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(share_of_an_address),      cmocka_unit_test(idle_ones_give_way),
        cmocka_unit_test(fewer_give_none),          cmocka_unit_test(own_idle_ones_give_way),
        cmocka_unit_test(share_of_a_user),          cmocka_unit_test(behind_a_proxy),
        cmocka_unit_test(bodies_of_strangers),      cmocka_unit_test(bodies_of_a_user),
        cmocka_unit_test(chunked_bodies_grow),      cmocka_unit_test(kept_until_answered),
        cmocka_unit_test(body_that_slows_down),     cmocka_unit_test(answers_that_nobody_reads),
        cmocka_unit_test(what_was_changed_is_told), cmocka_unit_test(many_changes_at_once),
        cmocka_unit_test(reader_at_a_trickle),      cmocka_unit_test(names_of_addresses),
    };
    return cmocka_run_group_tests_name("net/http_share", tests, NULL, NULL);
}
