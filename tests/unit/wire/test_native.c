/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/native.h"

#include "base/json.h"
#include "check.h"

static const msec at = 1794737000123; /* 2026-11-15T10:03:20.123Z */

static str encode(struct buf *out, void (*write)(struct buf *, str, const struct fact *),
                  const struct fact *fact)
{
    buf_clear(out);
    write(out, STR("t1"), fact);
    return buf_str(out);
}

static void facts(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 1 << 20);
    struct fact plain = {
        .seq = 2, .type = "run.started", .run_id = STR("r1"), .at = at, .data = STR("{\"leg\":1}")};
    const str expected = STR(
        "id: 2\nevent: run.started\ndata: {\"type\":\"run.started\",\"threadId\":\"t1\","
        "\"runId\":\"r1\",\"seq\":2,\"ts\":\"2026-11-15T10:03:20.123Z\",\"data\":{\"leg\":1}}\n\n");
    assert_str(encode(&out, native_warm, &plain), expected);
    assert_str(encode(&out, native_cold, &plain), expected);
    buf_done(&out);
}

/* A reader that did not see a message grow gets start, one whole delta, and the fact. */
static void cold_message(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 1 << 20);
    struct fact end = {.seq = 6,
                       .type = "text.message.end",
                       .run_id = STR("r1"),
                       .at = at,
                       .data = STR("{\"messageId\":\"m1\",\"content\":\"a\\n\\u2028b\"}")};
    str cold = encode(&out, native_cold, &end);
    const str before = STR(
        "event: text.message.start\ndata: {\"type\":\"text.message.start\",\"threadId\":\"t1\","
        "\"runId\":\"r1\",\"ts\":\"2026-11-15T10:03:20.123Z\",\"data\":{\"messageId\":\"m1\","
        "\"role\":\"assistant\"}}\n\n"
        "event: text.delta\ndata: {\"type\":\"text.delta\",\"threadId\":\"t1\",\"runId\":\"r1\","
        "\"ts\":\"2026-11-15T10:03:20.123Z\",\"data\":{\"messageId\":\"m1\","
        "\"delta\":\"a\\n\\u2028b\",\"offset\":0}}\n\n"
        "id: 6\nevent: text.message.end\n");
    assert_true(str_starts(cold, before));

    end.data =
        STR("{\"messageId\":\"m1\",\"content\":\"\"}"); /* nothing grew, nothing is made up */
    assert_true(str_starts(encode(&out, native_cold, &end), STR("id: 6\n")));
    struct fact thought = {.seq = 5,
                           .type = "reasoning.end",
                           .run_id = STR("r1"),
                           .at = at,
                           .data = STR("{\"messageId\":\"m1\",\"content\":\"hm\"}")};
    assert_true(str_starts(encode(&out, native_cold, &thought), STR("event: reasoning.delta\n")));
    buf_done(&out);
}

static void previews(void **state)
{
    (void)state;
    static const struct {
        struct preview preview;
        const char *event, *data;
    } rows[] = {
        {{.kind = PREVIEW_MESSAGE_START},
         "text.message.start",
         "{\"messageId\":\"m1\",\"role\":\"assistant\"}"},
        {{.kind = PREVIEW_TEXT, .delta = STR("\r\n\"\x01"), .offset = 7},
         "text.delta",
         "{\"messageId\":\"m1\",\"delta\":\"\\r\\n\\\"\\u0001\",\"offset\":7}"},
        {{.kind = PREVIEW_REASONING, .delta = STR("hm")},
         "reasoning.delta",
         "{\"messageId\":\"m1\",\"delta\":\"hm\",\"offset\":0}"},
        {{.kind = PREVIEW_CALL_START,
          .call_id = STR("c1"),
          .tool = STR("f"),
          .stage = STR("intent")},
         "tool.call.start",
         "{\"toolCallId\":\"c1\",\"toolName\":\"f\",\"parentMessageId\":\"m1\",\"stage\":"
         "\"intent\"}"},
        {{.kind = PREVIEW_CALL_ARGS, .call_id = STR("c1"), .delta = STR("{")},
         "tool.call.args",
         "{\"toolCallId\":\"c1\",\"delta\":\"{\"}"},
        {{.kind = PREVIEW_DISCARD, .delta = STR("cut")},
         "message.discard",
         "{\"messageId\":\"m1\",\"reason\":\"cut\"}"},
    };
    struct buf out, expected;
    buf_init(&out, 1 << 20);
    buf_init(&expected, 1 << 20);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct preview preview = rows[i].preview;
        preview.run_id = STR("r1");
        preview.message_id = STR("m1");
        preview.at = at;
        buf_clear(&out);
        buf_clear(&expected);
        native_preview(&out, STR("t1"), &preview);
        buf_printf(&expected,
                   "event: %s\ndata: {\"type\":\"%s\",\"threadId\":\"t1\",\"runId\":\"r1\","
                   "\"ts\":\"2026-11-15T10:03:20.123Z\",\"data\":%s}\n\n",
                   rows[i].event, rows[i].event, rows[i].data);
        assert_str(buf_str(&out), buf_str(&expected));
    }
    buf_done(&out);
    buf_done(&expected);
}

static void reset(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 1 << 20);
    native_reset(&out, STR("t1"), "future", 0, at);
    assert_str(
        buf_str(&out),
        STR("id: 0\nevent: reset\ndata: {\"type\":\"reset\",\"threadId\":\"t1\",\"seq\":0,"
            "\"ts\":\"2026-11-15T10:03:20.123Z\",\"data\":{\"reason\":\"future\",\"seq\":0}}\n\n"));
    buf_done(&out);
}

static void ends(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    struct fact fact = {.type = "text.message.end", .data = STR("{\"messageId\":\"m1\"}")};
    assert_str(native_ends(&arena, &fact), STR("m1"));
    fact.type = "reasoning.end";
    assert_str(native_ends(&arena, &fact), STR("m1"));
    fact.type = "run.finished";
    assert_str(native_ends(&arena, &fact), STR_EMPTY);
    arena_done(&arena);
}

int test_native(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts), cmocka_unit_test(cold_message), cmocka_unit_test(previews),
        cmocka_unit_test(reset), cmocka_unit_test(ends),
    };
    return cmocka_run_group_tests_name("wire/native", tests, NULL, NULL);
}
