/* SPDX-License-Identifier: Apache-2.0
 *
 * What codecs share: names of tools there and back, and JSON with half characters in it.
 */
#include "model/codec.h"

#include "base/json.h"
#include "base/limits.h"
#include "check.h"
#include "model/tool_names.h"

#define TEN     "0123456789"
#define SIXTY   TEN TEN TEN TEN TEN TEN
#define FITTING "abcd" SIXTY

static const struct {
    const char *ours, *theirs;
} single[] = {
    {"files_read", "files_read"}, {"files-read-2", "files-read-2"}, {"files.read", "files_read"},
    {"a b/c", "a_b_c"},           {"\xe5\xa5\xbd", "___"},          {"", "_"},
    {FITTING, FITTING},
};

static void names(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(single); i++)
        assert_str(codec_name(&arena, str_c(single[i].ours)), str_c(single[i].theirs));

    str one = codec_name(&arena, STR(FITTING ".x")), two = codec_name(&arena, STR(FITTING ".y"));
    assert_int_equal(one.len, TOOL_NAME_BYTES_MAX);
    assert_int_equal(two.len, TOOL_NAME_BYTES_MAX);
    assert_false(str_eq(one, two));
    assert_true(str_starts(one, STR("abcd" TEN TEN TEN TEN TEN "0_")));
    assert_str(codec_name(&arena, one), one);
}

#define TOOL(name) "{\"name\":\"" name "\",\"description\":\"d " name "\",\"parameters\":{}}"
#define CALL(name)                                                                                 \
    "{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"arguments\":\"{\"}" \
    "}"

static str offered(struct arena *arena, str tools, size_t index)
{
    struct json *list;
    assert_int_equal(json_parse(arena, tools, &list, NULL), OK);
    return json_text(json_get(json_at(list, index), STR("name")));
}

/* Names that fit stay, whatever comes first; others get one of their own. */
static void given(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena, keep;
    arena_init(&arena);
    arena_init(&keep);
    struct model_message messages[] = {
        {.role = STR("user"), .text = STR("x")},
        {.role = STR("assistant"), .tool_calls = STR("[" CALL("files.read") "," CALL("b") "]")},
        {.role = STR("assistant"), .tool_calls = STR("[" CALL("gone.away") "]")},
        {.role = STR("assistant"), .tool_calls = STR("[" CALL("files_read") "]")},
    };
    struct model_request request = {.messages = messages,
                                    .count = COUNT(messages),
                                    .tools =
                                        STR("[" TOOL("files.read") "," TOOL("files read") "," TOOL(
                                            "files_read") "," TOOL("files.write") "]")};
    struct model_request named = request;
    struct tool_names names = tool_names_give(&arena, &keep, &named);

    assert_int_equal(names.count, 3);
    str read = offered(&arena, named.tools, 0), spaced = offered(&arena, named.tools, 1);
    assert_str(offered(&arena, named.tools, 2), STR("files_read"));
    assert_str(offered(&arena, named.tools, 3), STR("files_write"));
    assert_true(str_starts(read, STR("files_read_")) && str_starts(spaced, STR("files_read_")));
    assert_int_equal(read.len, sizeof "files_read_01234567" - 1);
    assert_false(str_eq(read, spaced));

    assert_str(tool_names_back(&names, read), STR("files.read"));
    assert_str(tool_names_back(&names, spaced), STR("files read"));
    assert_str(tool_names_back(&names, STR("files_read")), STR("files_read"));
    assert_str(tool_names_back(&names, STR("files_write")), STR("files.write"));
    assert_str(tool_names_back(&names, STR("no.such")), STR("no.such"));

    assert_true(str_find(named.messages[1].tool_calls, read) > 0);
    assert_true(str_find(named.messages[1].tool_calls, STR("\"arguments\":\"{\"")) > 0);
    assert_str(named.messages[2].tool_calls, STR("[" CALL("gone_away") "]"));
    assert_ptr_equal(named.messages[3].tool_calls.p, messages[3].tool_calls.p);
    assert_str(named.messages[0].text, STR("x"));

    struct tool_names again = tool_names_give(&arena, &keep, &request);
    for (size_t i = 0; i < names.count; i++) assert_str(again.rows[i].theirs, names.rows[i].theirs);
}

/* What fits is not written anew. */
static void nothing_to_do(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena, keep;
    arena_init(&arena);
    arena_init(&keep);
    str tools = STR("[" TOOL("a") " ," TOOL("b") "]");
    struct model_request request = {.tools = tools};
    assert_int_equal(tool_names_give(&arena, &keep, &request).count, 0);
    assert_ptr_equal(request.tools.p, tools.p);
    request.tools = STR_EMPTY;
    assert_int_equal(tool_names_give(&arena, &keep, &request).count, 0);
    assert_int_equal(request.tools.len, 0);
}

#define FFFD "\xef\xbf\xbd"

static const struct {
    const char *text, *decoded; /* NULL: refused */
} halves[] = {
    {"[\"plain\"]", "plain"},
    {"[\"\\ud83d\\ude42\"]", "\xf0\x9f\x99\x82"},
    {"[\"a\\ud83d\"]", "a" FFFD},
    {"[\"\\ude42b\"]", FFFD "b"},
    {"[\"\\ud83d\\ud83d\\ude42\"]", FFFD "\xf0\x9f\x99\x82"},
    {"[\"\\ud83d\\n\\uDE42\"]", FFFD "\n" FFFD},
    {"[\"\\\\ud83d \\ud83d\"]", "\\ud83d " FFFD},
    {"[\"\\ud83d\\u0041\"]", FFFD "A"},
    {"[\"\\ud83d", NULL},
    {"[\"\\ud83d\\", NULL},
    {"[\"\\ud83", NULL},
    {"[\"\\ud83d\\x\"]", NULL},
    {"[\"\\ud83d\",\"\xff\"]", NULL},
    {"[", NULL},
};

static void half_characters(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(halves); i++) {
        AUTO(arena_done) struct arena arena;
        struct json *json = NULL;
        arena_init(&arena);
        enum err e = codec_json(&arena, str_c(halves[i].text), &json);
        assert_int_equal(e, halves[i].decoded ? OK : ERR_BAD_REQUEST);
        if (!e) assert_str(json_text(json_at(json, 0)), str_c(halves[i].decoded));
    }
}

/* Pieces of one text, as strings of documents of their own; what each gives, and the end. */
static const struct {
    const char *pieces[4], *said[4], *end;
} joins[] = {
    {{"[\"a\\ud83d\"]", "[\"\\ude42b\"]"},
     {"a", "\xf0\x9f\x99\x82"
           "b"},
     ""},
    {{"[\"\\ud83d\"]", "[\"\"]", "[\"\\uDE42\"]"}, {"", "", "\xf0\x9f\x99\x82"}, ""},
    {{"[\"\\ud83d\"]", "[null]", "[\"\\ude42\"]"}, {"", "", "\xf0\x9f\x99\x82"}, ""},
    {{"[\"\\ud83d\"]", "[\"x\"]"}, {"", FFFD "x"}, ""},
    {{"[\"\\ud83d\"]", "[\"\\ud83d\"]", "[\"\\ude42\"]"}, {"", FFFD, "\xf0\x9f\x99\x82"}, ""},
    {{"[\"\\ude42\"]", "[\"\\ude42\"]"}, {FFFD, FFFD}, ""},
    {{"[\"\\ude42\\ud83d\"]", "[\"\\ude42\\ud83d\"]"}, {FFFD, "\xf0\x9f\x99\x82"}, FFFD},
    {{"[\"x \\\\ud83d\"]", "[\"\\ude42\"]"}, {"x \\ud83d", FFFD}, ""},
    {{"[\"\\ufffd\\ud83d\"]", "[\"\\ude42\\ufffd\"]"}, {FFFD, "\xf0\x9f\x99\x82" FFFD}, ""},
    {{"[\"\\ud83d\\ude42\"]", "[\"b\"]"}, {"\xf0\x9f\x99\x82", "b"}, ""},
};

static void joined_halves(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(joins); i++) {
        struct codec_half half = {0};
        for (size_t n = 0; n < COUNT(joins[i].pieces) && joins[i].pieces[n]; n++) {
            AUTO(arena_done) struct arena arena;
            struct json *json = NULL;
            struct codec_said said;
            arena_init(&arena);
            assert_int_equal(codec_document(&arena, str_c(joins[i].pieces[n]), &json, &said), OK);
            assert_str(codec_piece(&arena, &said, json_at(json, 0), &half),
                       str_c(joins[i].said[n]));
        }
        assert_str(codec_piece_end(&half), str_c(joins[i].end));
        assert_int_equal(codec_piece_end(&half).len, 0);
    }
}

int test_codec(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),         cmocka_unit_test(given),
        cmocka_unit_test(nothing_to_do), cmocka_unit_test(half_characters),
        cmocka_unit_test(joined_halves),
    };
    return cmocka_run_group_tests_name("codec", tests, NULL, NULL);
}
