/* SPDX-License-Identifier: Apache-2.0 */
#include "app/socket/reply.h"

#include "check.h"

static struct buf out;

static void check(const char *want)
{
    assert_str(buf_str(&out), str_c(want));
    buf_done(&out);
}

static void acks_and_pongs(void **state)
{
    (void)state;
    buf_init(&out, 4096);
    reply_ack(&out, STR("\"a\\u0041\""), STR("{\"threadId\":\"t1\"}"));
    check("{\"type\":\"ack\",\"id\":\"a\\u0041\",\"data\":{\"threadId\":\"t1\"}}");
    reply_ack(&out, STR("1.50"), STR_EMPTY);
    check("{\"type\":\"ack\",\"id\":1.50,\"data\":{}}");
    reply_pong(&out, STR_EMPTY);
    check("{\"type\":\"pong\"}");
    reply_pong(&out, STR("7"));
    check("{\"type\":\"pong\",\"id\":7}");
}

static void faults(void **state)
{
    (void)state;
    struct fault why = {0};
    buf_init(&out, 4096);
    reply_fault(&out, STR_EMPTY, ERR_INTERNAL, &why, STR_EMPTY);
    check("{\"type\":\"error\",\"data\":{\"code\":\"internal\",\"message\":\"Internal error\"}}");
    (void)fault_field(&why, ERR_INVALID_FIELD, "after", "no \"number\"");
    reply_fault(&out, STR("1"), ERR_INVALID_FIELD, &why, STR("t1"));
    check("{\"type\":\"error\",\"id\":1,\"data\":{\"code\":\"invalid_field\","
          "\"message\":\"no \\\"number\\\"\",\"field\":\"after\",\"sessionId\":\"t1\"}}");
}

/* The document of a route, by the kind of frame that asked. */
static void problems(void **state)
{
    (void)state;
#define PROBLEM(field, more)                                                            \
    "{\"type\":\"urn:x\",\"title\":\"Bad\",\"status\":400,\"detail\":\"why\",\"code\":" \
    "\"bad\"" field more "}"
#define ERROR(rest) \
    "{\"type\":\"error\",\"id\":1,\"data\":{\"code\":\"bad\",\"message\":\"why\"" rest "}}"
    static const struct {
        enum client_frame_type type;
        const char *problem, *want;
    } rows[] = {
        {FRAME_STOP, PROBLEM("", ""), ERROR("")},
        {FRAME_CONFIRM, PROBLEM(",\"field\":\"args.count\"", ""),
         ERROR(",\"field\":\"args.count\"")},
        {FRAME_CONFIRM, PROBLEM("", ",\"interaction\":{\"a\": [1.0]},\"x\":null"),
         ERROR(",\"interaction\":{\"a\": [1.0]},\"x\":null")},
        {FRAME_MESSAGE, PROBLEM(",\"field\":\"messages[0].content[1].url\"", ""),
         ERROR(",\"field\":\"content[1].url\"")},
        {FRAME_MESSAGE, PROBLEM(",\"field\":\"messages[0].id\"", ""),
         ERROR(",\"field\":\"messageId\"")},
        {FRAME_MESSAGE, PROBLEM(",\"field\":\"messages\"", ""), ERROR(",\"field\":\"content\"")},
        {FRAME_MESSAGE, "{\"detail\":\"why\",\"code\":\"invalid_field\",\"field\":\"messages\"}",
         "{\"type\":\"error\",\"id\":1,\"data\":{\"code\":\"invalid_field\","
         "\"message\":\"why\",\"field\":\"messageId\"}}"},
        {FRAME_CLARIFY, PROBLEM(",\"field\":\"messages[0].id\"", ""),
         ERROR(",\"field\":\"messages[0].id\"")},
        {FRAME_STOP, "{\"type\":\"cut off",
         "{\"type\":\"error\",\"id\":1,\"data\":{\"code\":\"internal\","
         "\"message\":\"Internal error\"}}"},
        {FRAME_STOP, "",
         "{\"type\":\"error\",\"id\":1,\"data\":{\"code\":\"internal\","
         "\"message\":\"Internal error\"}}"},
    };
    buf_init(&out, 4096);
    for (size_t i = 0; i < COUNT(rows); i++) {
        reply_problem(&out, STR("1"), rows[i].type, str_c(rows[i].problem));
        check(rows[i].want);
    }
}

int test_ws_reply(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acks_and_pongs),
        cmocka_unit_test(faults),
        cmocka_unit_test(problems),
    };
    return cmocka_run_group_tests_name("app/ws_reply", tests, NULL, NULL);
}
