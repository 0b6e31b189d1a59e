/* SPDX-License-Identifier: Apache-2.0 */
#include "socket/socket_reply.h"

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

/* A refusal, by the kind of frame that asked. */
static void refusals(void **state)
{
    (void)state;
#define ERROR(rest) \
    "{\"type\":\"error\",\"id\":1,\"data\":{\"code\":\"busy\",\"message\":\"why\"" rest "}}"
    static const struct {
        enum client_frame_type type;
        enum err e;
        struct fault why;
        const char *member, *json, *want;
    } rows[] = {
        {FRAME_STOP, ERR_BUSY, {.text = "why"}, "", "", ERROR("")},
        {FRAME_CONFIRM,
         ERR_BUSY,
         {.text = "why", .field = "args.count"},
         "",
         "",
         ERROR(",\"field\":\"args.count\"")},
        {FRAME_CONFIRM,
         ERR_BUSY,
         {.text = "why"},
         "interaction",
         "{\"a\": [1.0]},\"x\":null",
         ERROR(",\"interaction\":{\"a\": [1.0]},\"x\":null")},
        {FRAME_MESSAGE,
         ERR_BUSY,
         {.text = "why", .field = "messages[0].content[1].url"},
         "",
         "",
         ERROR(",\"field\":\"content[1].url\"")},
        {FRAME_MESSAGE,
         ERR_BUSY,
         {.text = "why", .field = "messages[0].id"},
         "",
         "",
         ERROR(",\"field\":\"messageId\"")},
        {FRAME_MESSAGE,
         ERR_BUSY,
         {.text = "why", .field = "messages"},
         "",
         "",
         ERROR(",\"field\":\"content\"")},
        {FRAME_MESSAGE,
         ERR_INVALID_FIELD,
         {.text = "why", .field = "messages"},
         "",
         "",
         "{\"type\":\"error\",\"id\":1,\"data\":{\"code\":\"invalid_field\","
         "\"message\":\"why\",\"field\":\"messageId\"}}"},
        {FRAME_CLARIFY,
         ERR_BUSY,
         {.text = "why", .field = "messages[0].id"},
         "",
         "",
         ERROR(",\"field\":\"messages[0].id\"")},
        {FRAME_STOP,
         ERR_INTERNAL,
         {.text = ""},
         "",
         "",
         "{\"type\":\"error\",\"id\":1,\"data\":{\"code\":\"internal\","
         "\"message\":\"Internal error\"}}"},
        {FRAME_STOP, /* cut in the middle of a character */
         ERR_BUSY,
         {.text = "why\xc3"},
         "",
         "",
         ERROR("")},
    };
    buf_init(&out, 4096);
    for (size_t i = 0; i < COUNT(rows); i++) {
        reply_refusal(&out, STR("1"), rows[i].type,
                      &(struct refused_frame){.e = rows[i].e,
                                              .why = &rows[i].why,
                                              .member = str_c(rows[i].member),
                                              .json = str_c(rows[i].json)});
        check(rows[i].want);
    }
}

int test_ws_reply(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acks_and_pongs),
        cmocka_unit_test(faults),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("app/ws_reply", tests, NULL, NULL);
}
