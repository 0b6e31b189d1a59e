/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests/wire/ does not show: kinds, questions without choices, reset.
 */
#include "wire/socket.h"

#include "base/json.h"
#include "check.h"

static const msec at = 1794737000123; /* 2026-11-15T10:03:20.123Z */

struct got {
    struct buf texts; /* a line each */
    unsigned kinds;
};

static void put(void *arg, enum socket_kind kind, str json)
{
    struct got *got = arg;
    struct json *parsed = NULL;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    assert_int_equal(json_parse(&arena, json, &parsed, NULL), OK);
    got->kinds |= kind;
    buf_append(&got->texts, json);
    buf_char(&got->texts, '\n');
}

static void got_init(struct got *got)
{
    *got = (struct got){0};
    buf_init(&got->texts, 1 << 20);
}

static void kinds(void **state)
{
    (void)state;
    static const struct {
        const char *type, *data;
        unsigned kinds;
    } rows[] = {
        {"run.started", "{}", SOCKET_NATIVE},
        {"run.finished", "{\"outcome\":\"completed\"}", SOCKET_NATIVE | SOCKET_ASK_USER},
        {"run.finished", "{\"outcome\":\"interrupted\"}", SOCKET_NATIVE | SOCKET_ASK_USER},
        {"run.error", "{\"code\":\"x\"}", SOCKET_NATIVE | SOCKET_ASK_USER},
        {"interaction.request", "{\"type\":\"ask_user\"}",
         SOCKET_NATIVE | SOCKET_CLARIFY | SOCKET_ASK_USER},
        {"interaction.request", "{\"type\":\"confirm\"}", SOCKET_NATIVE},
        {"interaction.resolved", "{\"type\":\"ask_user\"}", SOCKET_NATIVE},
        {"text.message.end", "{\"messageId\":\"m1\",\"content\":\"x\"}", SOCKET_NATIVE},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct got got;
        got_init(&got);
        struct fact fact = {.seq = 1,
                            .type = rows[i].type,
                            .run_id = STR("r1"),
                            .at = at,
                            .data = str_c(rows[i].data)};
        socket_warm(STR("t1"), STR("r1"), &fact, put, &got);
        assert_int_equal(got.kinds, rows[i].kinds);
        got.kinds = 0;
        socket_cold(STR("t1"), STR("r1"), &fact, put, &got);
        assert_int_equal(got.kinds, rows[i].kinds);
        buf_done(&got.texts);
    }
}

/* One that was dropped from the queue, or cancelled while it waited, completes nothing. */
static void ends_without_a_leg(void **state)
{
    (void)state;
    static const char *const legs[] = {"", "r1"};
    for (size_t i = 0; i < COUNT(legs); i++) {
        struct got got;
        got_init(&got);
        struct fact fact = {.seq = 9,
                            .type = "run.finished",
                            .run_id = STR("r2"),
                            .at = at,
                            .data = STR("{\"outcome\":\"cancelled\"}")};
        socket_warm(STR("t1"), str_c(legs[i]), &fact, put, &got);
        socket_cold(STR("t1"), str_c(legs[i]), &fact, put, &got);
        assert_int_equal(got.kinds, SOCKET_NATIVE);
        buf_done(&got.texts);
    }
}

/* No choices are an empty list; free words are taken unless the fact says otherwise. */
static void open_question(void **state)
{
    (void)state;
    struct got got;
    got_init(&got);
    struct fact fact = {.seq = 6,
                        .type = "interaction.request",
                        .run_id = STR("r1"),
                        .at = at,
                        .data =
                            STR("{\"interactionId\":\"int_1\",\"type\":\"ask_user\","
                                "\"toolCallId\":\"call_1\",\"question\":\"How \\\"long\\\"?\"}")};
    socket_warm(STR("t1"), STR("r1"), &fact, put, &got);
    assert_str(
        buf_str(&got.texts),
        STR("{\"type\":\"interaction.request\",\"sessionId\":\"t1\",\"runId\":\"r1\",\"seq\":6,"
            "\"ts\":\"2026-11-15T10:03:20.123Z\",\"data\":{\"interactionId\":\"int_1\","
            "\"type\":\"ask_user\",\"toolCallId\":\"call_1\",\"question\":\"How "
            "\\\"long\\\"?\"}}\n"
            "{\"type\":\"clarify_request\",\"sessionId\":\"t1\",\"seq\":6,\"data\":{"
            "\"requestId\":\"int_1\",\"question\":\"How \\\"long\\\"?\",\"choices\":[],"
            "\"allowFreeform\":true}}\n"
            "{\"type\":\"ai-agent-ask-user\",\"data\":{\"conversationId\":\"t1\",\"toolCallId\":"
            "\"call_1\",\"question\":\"How \\\"long\\\"?\",\"choices\":[],\"allowFreeform\":true}}"
            "\n"));
    buf_done(&got.texts);
}

static void reset(void **state)
{
    (void)state;
    struct got got;
    got_init(&got);
    socket_reset(STR("t1"), "future", 0, at, put, &got);
    socket_reset(STR("t1"), "lagging", 7, at, put, &got);
    assert_str(buf_str(&got.texts),
               STR("{\"type\":\"reset\",\"sessionId\":\"t1\",\"seq\":0,\"ts\":"
                   "\"2026-11-15T10:03:20.123Z\",\"data\":{\"reason\":\"future\",\"seq\":0}}\n"
                   "{\"type\":\"reset\",\"sessionId\":\"t1\",\"seq\":7,\"ts\":"
                   "\"2026-11-15T10:03:20.123Z\",\"data\":{\"reason\":\"lagging\",\"seq\":7}}\n"));
    assert_int_equal(got.kinds, SOCKET_ALL);
    buf_done(&got.texts);
}

int test_socket(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),
        cmocka_unit_test(ends_without_a_leg),
        cmocka_unit_test(open_question),
        cmocka_unit_test(reset),
    };
    return cmocka_run_group_tests_name("wire/socket", tests, NULL, NULL);
}
