/* SPDX-License-Identifier: Apache-2.0 */
#include "app/run_input.h"

#include "base/limits.h"
#include "check.h"

static enum err parse(struct arena *arena, const char *text, struct run_input *input,
                      struct fault *why)
{
    struct json *body = NULL;
    assert_int_equal(json_parse(arena, str_c(text), &body, NULL), OK);
    return run_input_parse(arena, body, &(struct parts_home){0}, input, why);
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *body, *field;
    } rows[] = {
        {"[]", ""},
        {"{}", "messages"},
        {"{\"messages\":{}}", "messages"},
        {"{\"messages\":[],\"threadId\":7}", "threadId"},
        {"{\"messages\":[],\"runId\":[]}", "runId"},
        {"{\"messages\":[],\"agent\":1}", "agent"},
        {"{\"messages\":[{}]}", "messages[0].role"},
        {"{\"messages\":[7]}", "messages[0].role"},
        {"{\"messages\":[{\"role\":\"user\"}]}", "messages[0].content"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\" \\n\\t\"}]}", "messages[0].content"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[]}]}", "messages[0].content"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[7]}]}", "messages[0].content[0]"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
         "{\"type\":\"binary\"}]}]}",
         "messages[0].content[1]"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]}",
         "messages[0].content[0]"},
        {"{\"messages\":[],\"resume\":{}}", "resume"},
        {"{\"messages\":[],\"resume\":[{}]}", "resume[0].interruptId"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        struct run_input input = {0};
        struct fault why = {0};
        arena_init(&arena);
        assert_int_equal(parse(&arena, rows[i].body, &input, &why), ERR_INVALID_FIELD);
        assert_string_equal(why.field, rows[i].field);
        arena_done(&arena);
    }
}

static void accepted_forms(void **state)
{
    (void)state;
    struct arena arena;
    struct run_input input;
    arena_init(&arena);
    assert_int_equal(
        parse(&arena,
              "{\"threadId\":\"t 1\",\"runId\":\"r1\",\"unknown\":1,\"resume\":[],"
              "\"state\":{\"a\":0.10},\"forwardedProps\":null,\"messages\":["
              "{\"role\":\"user\",\"content\":\"old\"},{\"role\":\"assistant\"},"
              "{\"id\":\"u1\",\"role\":\"user\",\"content\":\"one\"},"
              "{\"role\":\"tool\",\"content\":\"forged\"},"
              "{\"id\":\"bad id\",\"role\":\"user\",\"metadata\":{\"replaces\":\"u0\",\"x\":1},"
              "\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}"
              "]}",
              &input, NULL),
        OK);
    assert_str(input.thread_id, STR_EMPTY); /* not valid: ours */
    assert_str(input.run_id, STR("r1"));
    assert_str(input.leg, STR("{\"state\":{\"a\":0.10},\"forwardedProps\":null}"));
    assert_int_equal(input.message_count, 2); /* what follows the last word of anybody else */
    assert_str(input.messages[0].id, STR("u1"));
    assert_str(input.messages[0].content, STR("\"one\""));
    assert_str(input.messages[0].metadata, STR("{}"));
    assert_str(input.messages[1].id, STR_EMPTY);
    assert_str(input.messages[1].plain, STR("ab"));
    assert_int_equal(input.parts[0].count, 0);
    assert_int_equal(input.parts[1].count, 2);
    assert_str(input.messages[1].metadata, STR("{\"replaces\":\"u0\"}"));
    arena_done(&arena);
}

/* A message may have files and no words; only new ones are counted. */
static void files(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    struct run_input input;
    arena_init(&arena);
    assert_int_equal(
        parse(&arena,
              "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"nonsense\"}]},"
              "{\"role\":\"assistant\"},{\"role\":\"user\",\"content\":["
              "{\"type\":\"binary\",\"id\":\"a\"}]},{\"role\":\"user\",\"content\":["
              "{\"type\":\"binary\",\"mimeType\":\"a/b\",\"data\":\"AA==\"}]}]}",
              &input, NULL),
        OK);
    assert_int_equal(input.message_count, 2);
    assert_str(input.messages[0].plain, STR_EMPTY);
    assert_int_equal(input.parts[0].index, 2);
    assert_int_equal(input.parts[1].files, 1);
    assert_int_equal(input.data_count, 1);
}

static void too_many_files(void **state)
{
    (void)state;
    for (size_t count = PART_FILES_MAX; count <= PART_FILES_MAX + 1; count++) {
        AUTO(arena_done) struct arena arena;
        AUTO(buf_done) struct buf body;
        struct run_input input;
        struct fault why = {0};
        arena_init(&arena);
        buf_init(&body, 64 * 1024);
        buf_append(&body, STR("{\"messages\":["));
        for (size_t i = 0; i < count; i++)
            buf_printf(&body,
                       "%s{\"role\":\"user\",\"content\":[{\"type\":\"binary\",\"id\":\"a\"}]}",
                       i ? "," : "");
        buf_append(&body, STR("]}"));
        enum err e = parse(&arena, arena_cstr(&arena, buf_str(&body)), &input, &why);
        assert_int_equal(e, count > PART_FILES_MAX ? ERR_INVALID_FIELD : OK);
        if (e) assert_string_equal(why.field, "messages");
    }
}

/* Trailing words that are not the user's: "id/call" each. */
static void claims(void **state)
{
    (void)state;
    static const struct {
        const char *messages, *claims;
    } rows[] = {
        {"", ""},
        {"{\"role\":\"user\",\"content\":\"a\"}", ""},
        {"{\"role\":\"tool\",\"toolCallId\":\"c1\"}", "/c1 "},
        {"{\"role\":\"assistant\",\"id\":\"m1\"},{\"role\":\"user\",\"content\":\"a\"}", "m1/ "},
        {"{\"role\":\"assistant\",\"id\":\"m1\"},{\"role\":\"tool\",\"id\":\"t1\"},"
         "{\"role\":\"assistant\",\"id\":\"m2\"},{\"role\":\"tool\",\"id\":\"t2\"},"
         "{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"tool\",\"id\":\"t3\"}",
         "m2/ t2/ t3/ "},
        {"{\"role\":\"tool\",\"id\":\"t1\"},{\"role\":\"system\",\"id\":\"s1\"}", ""},
        {"{\"role\":\"tool\",\"id\":7,\"toolCallId\":{}}", "/ "},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        struct run_input input;
        arena_init(&arena);
        str body = arena_printf(&arena, "{\"messages\":[%s]}", rows[i].messages);
        assert_int_equal(parse(&arena, arena_cstr(&arena, body), &input, NULL), OK);
        str seen = STR_EMPTY;
        for (size_t j = 0; j < input.claim_count; j++)
            seen = arena_printf(&arena, "%.*s%.*s/%.*s ", STR_ARG(seen),
                                STR_ARG(input.claims[j].id), STR_ARG(input.claims[j].call_id));
        assert_str(seen, str_c(rows[i].claims));
        arena_done(&arena);
    }
}

static void titles(void **state)
{
    (void)state;
    static const struct {
        const char *plain, *title;
    } rows[] = {
        {"Hello", "Hello"},
        {" \n\t First line \r\nsecond", "First line"},
        {"", ""},
        {"123456789 123456789 123456789 123456789 123456789 123456789 ",
         "123456789 123456789 123456789 123456789 123456789 123456789"},
        {"123456789 123456789 123456789 123456789 123456789 123456789 x",
         "123456789 123456789 123456789 123456789 123456789 123456789…"},
        {"一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四"
         "五六七八九十一二三四五"
         "六七八九十",
         "一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四"
         "五六七八九十一二三四五"
         "六七八九十"},
        {"一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四"
         "五六七八九十一二三四五"
         "六七八九十😀",
         "一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四"
         "五六七八九十一二三四五"
         "六七八九十…"},
    };
    struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_str(title_from(&arena, str_c(rows[i].plain)), str_c(rows[i].title));
    arena_done(&arena);
}

int test_run_input(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refusals), cmocka_unit_test(accepted_forms),
                                       cmocka_unit_test(files),    cmocka_unit_test(too_many_files),
                                       cmocka_unit_test(claims),   cmocka_unit_test(titles)};
    return cmocka_run_group_tests_name("app/run_input", tests, NULL, NULL);
}
