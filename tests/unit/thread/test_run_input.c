/* SPDX-License-Identifier: Apache-2.0 */
#include "thread/run_input.h"

#include <string.h>

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
        {"{\"messages\":[],\"resume\":[7]}", "resume[0]"},
        {"{\"messages\":[],\"resume\":[{}]}", "resume[0].interruptId"},
        {"{\"messages\":[],\"resume\":[{\"interruptId\":7,\"status\":\"resolved\"}]}",
         "resume[0].interruptId"},
        {"{\"messages\":[],\"resume\":[{\"interruptId\":\"\",\"status\":\"resolved\"}]}",
         "resume[0].interruptId"},
        {"{\"messages\":[],\"resume\":[{\"interruptId\":\"a\"}]}", "resume[0].status"},
        {"{\"messages\":[],\"resume\":[{\"interruptId\":\"a\",\"status\":\"done\"}]}",
         "resume[0].status"},
        {"{\"messages\":[],\"resume\":[{\"interruptId\":\"a\",\"status\":\"resolved\"},"
         "{\"interruptId\":\"a\",\"status\":\"cancelled\"}]}",
         "resume[1].interruptId"},
        {"{\"messages\":[],\"protocolVersion\":1.0}", "protocolVersion"},
        {"{\"messages\":[],\"tools\":{}}", "tools"},
        {"{\"messages\":[],\"context\":\"x\"}", "context"},
        {"{\"messages\":null}", "messages"},
        {"{\"messages\":[{\"role\":\"tool\",\"content\":7}]}", "messages[0].content"},
        {"{\"messages\":[{\"role\":\"tool\",\"content\":{}}]}", "messages[0].content"},
        {"{\"messages\":[{\"role\":\"tool\",\"content\":[\"a\"]}]}", "messages[0].content[0]"},
        {"{\"messages\":[{\"role\":\"tool\",\"content\":[{\"type\":\"image\"},"
         "{\"type\":\"text\"}]}]}",
         "messages[0].content[1]"},
        {"{\"messages\":[{\"role\":\"tool\",\"error\":{}}]}", "messages[0].error"},
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
    assert_str(input.leg, STR("{\"state\":{\"a\":0.10}}"));
    assert_false(input.versioned);
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

/* What a tool message says: "text", or "!text" if it failed. */
static void results(void **state)
{
    (void)state;
    static const struct {
        const char *members, *says;
    } rows[] = {
        {"\"content\":\"22 degrees\"", "22 degrees"},
        {"\"content\":\"\"", ""},
        {"\"content\":null", ""},
        {"\"role\":\"tool\"", ""},
        {"\"content\":[]", ""},
        {"\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\"},"
         "{\"type\":\"text\",\"text\":\"b\"}]",
         "ab"},
        {"\"content\":\"no\",\"error\":\"denied\"", "!no"},
        {"\"error\":\"denied\"", "!denied"},
        {"\"content\":\"yes\",\"error\":null", "yes"},
        {"\"content\":\"yes\",\"error\":\"\"", "yes"},
        {"\"content\":\"yes\",\"unknown\":[1]", "yes"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        struct run_input input;
        arena_init(&arena);
        bool own_role = strstr(rows[i].members, "role");
        str body = arena_printf(&arena, "{\"messages\":[{%s%s,\"toolCallId\":\"c\"}]}",
                                own_role ? "" : "\"role\":\"tool\",", rows[i].members);
        assert_int_equal(parse(&arena, arena_cstr(&arena, body), &input, NULL), OK);
        assert_int_equal(input.claim_count, 1);
        const struct claim *claim = &input.claims[0];
        assert_true(claim->tool);
        assert_str(claim->call_id, STR("c"));
        assert_str(arena_printf(&arena, "%s%.*s", claim->failed ? "!" : "", STR_ARG(claim->text)),
                   str_c(rows[i].says));
    }
}

static void resume(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    struct run_input input;
    arena_init(&arena);
    assert_int_equal(
        parse(&arena,
              "{\"protocolVersion\":\"1.0\",\"messages\":[],\"resume\":["
              "{\"interruptId\":\"a\",\"status\":\"resolved\",\"payload\":{\"approved\":true},"
              "\"metadata\":{}},"
              "{\"interruptId\":\"b\",\"status\":\"cancelled\",\"payload\":null},"
              "{\"interruptId\":\"c\",\"status\":\"resolved\",\"payload\":\"x\"}]}",
              &input, NULL),
        OK);
    assert_true(input.versioned);
    assert_str(input.leg, STR("{}"));
    assert_int_equal(input.resume_count, 3);
    assert_str(input.resume[0].interrupt_id, STR("a"));
    assert_false(input.resume[0].cancelled);
    assert_str(input.resume[0].payload->raw, STR("{\"approved\":true}"));
    assert_true(input.resume[1].cancelled);
    assert_null(input.resume[1].payload);
    assert_str(input.resume[2].payload->text, STR("x"));
}

/* Null is absent, wherever a field is optional. */
static void nulls(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    struct run_input input;
    arena_init(&arena);
    assert_int_equal(parse(&arena,
                           "{\"threadId\":null,\"runId\":null,\"agent\":null,\"state\":null,"
                           "\"tools\":null,\"context\":null,\"forwardedProps\":null,"
                           "\"resume\":null,\"protocolVersion\":null,\"parentRunId\":null,"
                           "\"messages\":[{\"role\":\"user\",\"content\":\"hi\",\"id\":null,"
                           "\"name\":null,\"metadata\":null}]}",
                           &input, NULL),
                     OK);
    assert_int_equal(input.message_count, 1);
    assert_int_equal(input.resume_count, 0);
    assert_false(input.versioned);
    assert_str(input.leg, STR("{}"));
}

static void ids(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    struct run_input input;
    arena_init(&arena);
    assert_int_equal(parse(&arena,
                           "{\"messages\":[{\"id\":\"s\",\"role\":\"system\"},"
                           "{\"id\":\"a b\",\"role\":\"assistant\"},"
                           "{\"id\":\"x\",\"role\":\"activity\",\"content\":{}},"
                           "{\"role\":\"reasoning\"},{\"id\":\"t\",\"role\":\"tool\"},"
                           "{\"id\":\"u\",\"role\":\"user\",\"content\":\"hi\"}]}",
                           &input, NULL),
                     OK);
    static const char *const expected[] = {"s", "a b", "", "t", "u"};
    assert_int_equal(input.id_count, COUNT(expected));
    for (size_t i = 0; i < COUNT(expected); i++) assert_str(input.ids[i], str_c(expected[i]));
}

/* At a limit, and one above it: how many of what there are. */
static void limits(void **state)
{
    (void)state;
    static const struct {
        const char *before, *one, *after;
        size_t count_max;
        const char *field; /* that is refused above it; NULL: nothing is */
    } rows[] = {
        {"{\"messages\":[", "{\"role\":\"system\"}", "]}", AGUI_IDS_MAX, NULL},
        {"{\"messages\":[", "{\"role\":\"tool\"}", "]}", RUN_MESSAGES_MAX, "messages"},
        {"{\"messages\":[],\"resume\":[", "{\"interruptId\":\"%zu\",\"status\":\"cancelled\"}",
         "]}", RESUME_ENTRIES_MAX, "resume"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t over = 0; over <= 1; over++) {
            AUTO(arena_done) struct arena arena;
            AUTO(buf_done) struct buf body;
            struct run_input input = {0};
            struct fault why = {0};
            arena_init(&arena);
            buf_init(&body, 1024 * 1024);
            buf_append(&body, str_c(rows[i].before));
            for (size_t n = 0; n < rows[i].count_max + over; n++) {
                if (n) buf_char(&body, ',');
                str one = str_c(rows[i].one), rest = one;
                str head = str_split(&rest, '%');
                buf_append(&body, head);
                if (head.len < one.len) buf_printf(&body, "%zu%.*s", n, STR_ARG(str_drop(rest, 2)));
            }
            buf_append(&body, str_c(rows[i].after));
            assert_false(body.full);
            enum err e = parse(&arena, arena_cstr(&arena, buf_str(&body)), &input, &why);
            assert_int_equal(e, over && rows[i].field ? ERR_INVALID_FIELD : OK);
            if (e) assert_string_equal(why.field, rows[i].field);
            if (!rows[i].field) assert_int_equal(input.id_count, over ? 0 : AGUI_IDS_MAX);
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

/* One message without a RunAgentInput around it is the same message. */
static void lone_messages(void **state)
{
    (void)state;
    static const struct {
        const char *thread_id, *run_id, *id, *content;
    } rows[] = {
        {"t1", "r1", "m1", "\"hi \\u0041\""},
        {"t 1", "r\\n", "m 1", "\"hi\""}, /* no ids */
        {"t1", "", "", "[{\"type\":\"text\",\"text\":\"a\"}]"},
        {"t1", "", "m1",
         "[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"binary\",\"mimeType\":\"a/b\","
         "\"data\":\"YQ==\",\"filename\":\"x\"}]"},
        {"t1", "", "", "\" \""},
        {"t1", "", "", "7"},
        {"t1", "", "", "[7]"},
        {"t1", "", "", "[{\"type\":\"binary\"}]"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        struct run_input want = {0}, got = {0};
        struct fault why_want = {0}, why_got = {0};
        struct json *content = NULL;
        arena_init(&arena);
        str body =
            arena_printf(&arena,
                         "{\"threadId\":\"%s\",\"runId\":\"%s\",\"messages\":[{\"id\":\"%s\","
                         "\"role\":\"user\",\"content\":%s}]}",
                         rows[i].thread_id, rows[i].run_id, rows[i].id, rows[i].content);
        enum err e = parse(&arena, arena_cstr(&arena, body), &want, &why_want);
        assert_int_equal(json_parse(&arena, str_c(rows[i].content), &content, NULL), OK);
        struct lone_message lone = {.thread_id = str_c(rows[i].thread_id),
                                    .run_id = str_c(rows[i].run_id),
                                    .id = str_c(rows[i].id),
                                    .content = content};
        assert_int_equal(
            run_input_of_message(&arena, &lone, &(struct parts_home){0}, &got, &why_got), e);
        assert_string_equal(why_got.field, why_want.field);
        assert_string_equal(why_got.text, why_want.text);
        assert_int_equal(got.message_count, want.message_count);
        assert_int_equal(got.data_count, want.data_count);
        assert_str(got.leg, want.leg);
        assert_str(got.thread_id, want.thread_id);
        assert_str(got.run_id, want.run_id);
        for (size_t j = 0; j < want.message_count; j++) {
            assert_str(got.messages[j].id, want.messages[j].id);
            assert_str(got.messages[j].role, want.messages[j].role);
            assert_str(got.messages[j].content, want.messages[j].content);
            assert_str(got.messages[j].plain, want.messages[j].plain);
            assert_str(got.messages[j].metadata, want.messages[j].metadata);
            assert_int_equal(got.parts[j].count, want.parts[j].count);
            assert_int_equal(got.parts[j].files, want.parts[j].files);
        }
        arena_done(&arena);
    }
}

/* Words and bytes of a chat are what a client would have sent as text and base64. */
static void words_and_files(void **state)
{
    (void)state;
    static const struct {
        str words;
        struct sent_file files[2];
        size_t count;
        const char *content; /* the same, as JSON */
    } rows[] = {
        {STR("a \"b\"\n"), {{.bytes = STR_EMPTY}}, 0, "\"a \\\"b\\\"\\n\""},
        {STR_EMPTY, {{.bytes = STR_EMPTY}}, 0, "\"\""},
        {STR(" "), {{.bytes = STR_EMPTY}}, 0, "\" \""},
        {STR("a"),
         {{STR("../x.png"), STR("image/png; q=1"), STR("b")}, {STR_EMPTY, STR_EMPTY, STR("c")}},
         2,
         "[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"binary\",\"mimeType\":"
         "\"image/png; q=1\",\"filename\":\"../x.png\",\"data\":\"Yg==\"},{\"type\":\"binary\","
         "\"mimeType\":\"application/octet-stream\",\"data\":\"Yw==\"}]"},
        {STR_EMPTY,
         {{STR("x"), STR("a/b"), STR("b")}},
         1,
         "[{\"type\":\"binary\",\"mimeType\":\"a/b\",\"filename\":\"x\",\"data\":\"Yg==\"}]"},
        {STR_EMPTY,
         {{STR("x"), STR("png"), STR("b")}},
         1,
         "[{\"type\":\"binary\",\"mimeType\":\"png\",\"filename\":\"x\",\"data\":\"Yg==\"}]"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        struct run_input want = {0}, got = {0};
        struct fault why_want = {0}, why_got = {0};
        arena_init(&arena);
        str body =
            arena_printf(&arena,
                         "{\"agent\":\"z\",\"messages\":[{\"role\":\"user\",\"content\":%s}]}",
                         rows[i].content);
        enum err e = parse(&arena, arena_cstr(&arena, body), &want, &why_want);
        struct lone_message lone = {.agent = STR("z"),
                                    .words = rows[i].words,
                                    .files = rows[i].files,
                                    .file_count = rows[i].count};
        assert_int_equal(run_input_of_message(&arena, &lone, NULL, &got, &why_got), e);
        assert_string_equal(why_got.field, why_want.field);
        assert_string_equal(why_got.text, why_want.text);
        assert_int_equal(got.data_count, want.data_count);
        assert_str(got.agent, want.agent);
        for (size_t j = 0; j < want.message_count; j++) {
            const struct parts *parts = &got.parts[j];
            assert_str(got.messages[j].content, want.messages[j].content);
            assert_str(got.messages[j].plain, want.messages[j].plain);
            assert_int_equal(parts->count, want.parts[j].count);
            assert_int_equal(parts->files, want.parts[j].files);
            for (size_t k = 0; k < parts->count; k++) {
                const struct part *a = &parts->rows[k], *b = &want.parts[j].rows[k];
                assert_int_equal(a->kind, b->kind);
                assert_str(a->type, b->type);
                assert_str(a->text_json, b->text_json);
                assert_str(a->filename, b->filename);
                assert_int_equal(a->decoded, a->kind == PART_DATA);
            }
        }
        arena_done(&arena);
    }
}

int test_run_input(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lone_messages), cmocka_unit_test(words_and_files),
        cmocka_unit_test(refusals),      cmocka_unit_test(accepted_forms),
        cmocka_unit_test(files),         cmocka_unit_test(too_many_files),
        cmocka_unit_test(claims),        cmocka_unit_test(results),
        cmocka_unit_test(resume),        cmocka_unit_test(nulls),
        cmocka_unit_test(ids),           cmocka_unit_test(limits),
        cmocka_unit_test(titles)};
    return cmocka_run_group_tests_name("app/run_input", tests, NULL, NULL);
}
