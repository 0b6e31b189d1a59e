/* SPDX-License-Identifier: Apache-2.0 */
#include "chat/inbound.h"

#include <string.h>

#include "base/limits.h"
#include "check.h"

static int setup(void **state)
{
    static struct arena arena;
    arena_init(&arena);
    *state = &arena;
    return 0;
}

static int teardown(void **state)
{
    arena_done(*state);
    return 0;
}

static str letters(struct arena *arena, size_t count, char letter)
{
    char *text = arena_alloc(arena, count);
    memset(text, letter, count);
    return (str){text, count};
}

static void assert_inbound(const struct inbound *got, const struct inbound *expected)
{
    assert_str(got->id, expected->id);
    assert_str(got->sender, expected->sender);
    assert_str(got->name, expected->name);
    assert_int_equal(got->group, expected->group);
    assert_int_equal(got->follow, expected->follow);
    assert_int_equal(got->menu, expected->menu);
    assert_int_equal(got->asked, expected->asked);
    assert_str(got->text, expected->text);
    assert_str(got->reply_token, expected->reply_token);
    assert_str(got->quoted, expected->quoted);
    assert_str(got->button, expected->button);
    assert_str(got->callback_id, expected->callback_id);
    assert_str(got->pressed, expected->pressed);
    assert_str(got->label, expected->label);
    assert_int_equal(got->at, expected->at);
    assert_int_equal(got->allowance, expected->allowance);
    assert_int_equal(got->window_ms, expected->window_ms);
    assert_int_equal(got->file_count, expected->file_count);
    for (size_t i = 0; i < got->file_count; i++) {
        assert_str(got->files[i].name, expected->files[i].name);
        assert_str(got->files[i].mime, expected->files[i].mime);
        assert_str(got->files[i].ref, expected->files[i].ref);
        assert_int_equal(got->files[i].size, expected->files[i].size);
    }
}

static void there_and_back(void **state)
{
    struct arena *arena = *state;
    struct inbound_file files[] = {
        {.name = STR("图.png"),
         .mime = STR("image/png"),
         .ref = STR("{\"id\":7448678501208393000,\"u\":[1]}"),
         .size = UINT64_MAX},
        {.ref = STR("{}")},
    };
    struct inbound rows[] = {
        {.id = STR("1"), .sender = STR("u")},
        {.id = STR("7448678501208393000"),
         .sender = STR("u@im.wechat"),
         .name = STR("小\"王\""),
         .group = true,
         .follow = true,
         .menu = true,
         .asked = INT64_MAX,
         .text = STR("a\0b\n你好\xe2\x80\xa8"),
         .reply_token = STR("t+/="),
         .quoted = STR("5"),
         .button = STR("c:int_1:no"),
         .callback_id = STR("cb"),
         .pressed = STR("m9"),
         .label = STR("好"),
         .files = files,
         .file_count = 2,
         .at = INT64_MAX,
         .allowance = UINT32_MAX,
         .window_ms = 60000},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct inbound got = {0};
        str json = inbound_json(arena, &rows[i]);
        assert_true(json.len > 0);
        assert_int_equal(str_find_char(json, '\n'), -1);
        assert_int_equal(inbound_parse(arena, json, &got), OK);
        assert_inbound(&got, &rows[i]);
    }
    assert_str(inbound_json(arena, &rows[0]), STR("{\"id\":\"1\",\"sender\":\"u\"}"));
}

/* All that may be long is as long as it may be, and every byte has to be escaped. */
static void the_longest(void **state)
{
    struct arena *arena = *state;
    str id = letters(arena, CHANNEL_ID_BYTES_MAX, '\x01');
    char *ref = arena_alloc(arena, CHANNEL_TOKEN_BYTES_MAX);
    memset(ref, ' ', CHANNEL_TOKEN_BYTES_MAX);
    memcpy(ref, "{\"a\":", 5);
    ref[5] = '1';
    ref[CHANNEL_TOKEN_BYTES_MAX - 1] = '}';
    struct inbound_file files[CHANNEL_INBOUND_FILES_MAX];
    for (size_t i = 0; i < COUNT(files); i++)
        files[i] = (struct inbound_file){
            .name = id, .mime = id, .ref = {ref, CHANNEL_TOKEN_BYTES_MAX}, .size = UINT64_MAX};
    struct inbound got = {0}, inbound = {
                                  .id = id,
                                  .sender = id,
                                  .name = id,
                                  .group = true,
                                  .follow = true,
                                  .text = letters(arena, CHANNEL_TEXT_BYTES_MAX, '\x02'),
                                  .reply_token = letters(arena, CHANNEL_TOKEN_BYTES_MAX, '\x03'),
                                  .quoted = id,
                                  .button = id,
                                  .callback_id = id,
                                  .pressed = id,
                                  .label = id,
                                  .files = files,
                                  .file_count = COUNT(files),
                                  .at = INT64_MAX,
                                  .allowance = UINT32_MAX,
                                  .window_ms = INT64_MAX,
                              };
    str json = inbound_json(arena, &inbound);
    assert_true(json.len > 0 && json.len <= CHANNEL_INBOUND_JSON_BYTES_MAX);
    assert_int_equal(inbound_parse(arena, json, &got), OK);
    assert_inbound(&got, &inbound);
}

/* What people read is cut between two characters; what names something is kept whole or not at all. */
static void too_long(void **state)
{
    struct arena *arena = *state;
    char *text = arena_alloc(arena, CHANNEL_TEXT_BYTES_MAX + 2);
    memset(text, 'a', CHANNEL_TEXT_BYTES_MAX);
    memcpy(text + CHANNEL_TEXT_BYTES_MAX - 1, "\xe4\xbd\xa0", 3); /* its last two are too much */
    str id = letters(arena, CHANNEL_ID_BYTES_MAX + 1, 'i');
    str token = letters(arena, CHANNEL_TOKEN_BYTES_MAX + 1, 't');
    struct inbound_file file = {.name = id, .mime = id, .ref = STR("{}")};
    struct inbound got = {0}, inbound = {.id = STR("1"),
                                         .sender = STR("u"),
                                         .name = id,
                                         .label = id,
                                         .text = {text, CHANNEL_TEXT_BYTES_MAX + 2},
                                         .files = &file,
                                         .file_count = 1};
    assert_int_equal(inbound_parse(arena, inbound_json(arena, &inbound), &got), OK);
    assert_int_equal(got.text.len, CHANNEL_TEXT_BYTES_MAX - 1);
    assert_true(utf8_valid(got.text));
    assert_int_equal(got.name.len, CHANNEL_ID_BYTES_MAX);
    assert_int_equal(got.label.len, CHANNEL_ID_BYTES_MAX);
    assert_int_equal(got.files[0].name.len, CHANNEL_ID_BYTES_MAX);
    assert_int_equal(got.files[0].mime.len, CHANNEL_ID_BYTES_MAX);

    struct inbound_file many[CHANNEL_INBOUND_FILES_MAX + 1];
    for (size_t i = 0; i < COUNT(many); i++) many[i] = (struct inbound_file){.ref = STR("{}")};
    struct inbound_file list = {.ref = STR("[]")}, none = {.name = STR("x")},
                        broken = {.ref = STR("{\"a\":}")};
    struct inbound_file unclean = {.name = STR("\xff"), .ref = STR("{}")};
#define MESSAGE .id = STR("1"), .sender = STR("u")
    const struct inbound refused[] = {
        {.sender = STR("u")},
        {.id = STR("1")},
        {.id = id, .sender = STR("u")},
        {.id = STR("1"), .sender = id},
        {MESSAGE, .reply_token = token},
        {MESSAGE, .quoted = id},
        {MESSAGE, .button = id},
        {MESSAGE, .callback_id = id},
        {MESSAGE, .pressed = id},
        {MESSAGE, .text = STR("\xff")},
        {MESSAGE, .files = many, .file_count = COUNT(many)},
        {MESSAGE, .files = &list, .file_count = 1},
        {MESSAGE, .files = &none, .file_count = 1},
        {MESSAGE, .files = &broken, .file_count = 1},
        {MESSAGE, .files = &unclean, .file_count = 1},
    };
#undef MESSAGE
    for (size_t i = 0; i < COUNT(refused); i++)
        if (inbound_json(arena, &refused[i]).len) fail_msg("row %zu was written", i);
}

static void damaged(void **state)
{
    struct arena *arena = *state;
#define MESSAGE "{\"id\":\"1\",\"sender\":\"u\""
    static const struct {
        const char *json;
        enum err expected;
    } rows[] = {
        {MESSAGE "}", OK},
        {MESSAGE ",\"more\":[{}]}", OK}, /* of a later version */
        {MESSAGE ",\"files\":[]}", OK},
        {MESSAGE ",\"group\":false,\"at\":0}", OK},
        {"", ERR_DAMAGED},
        {"[]", ERR_DAMAGED},
        {"{}", ERR_DAMAGED},
        {MESSAGE, ERR_DAMAGED},
        {"{\"id\":\"\",\"sender\":\"u\"}", ERR_DAMAGED},
        {"{\"id\":1,\"sender\":\"u\"}", ERR_DAMAGED},
        {"{\"id\":\"1\"}", ERR_DAMAGED},
        {MESSAGE ",\"text\":null}", ERR_DAMAGED},
        {MESSAGE ",\"group\":1}", ERR_DAMAGED},
        {MESSAGE ",\"at\":-1}", ERR_DAMAGED},
        {MESSAGE ",\"at\":9223372036854775807}", OK},
        {MESSAGE ",\"at\":9223372036854775808}", ERR_DAMAGED},
        {MESSAGE ",\"allowance\":4294967295}", OK},
        {MESSAGE ",\"allowance\":4294967296}", ERR_DAMAGED},
        {MESSAGE ",\"window_ms\":1.5}", ERR_DAMAGED},
        {MESSAGE ",\"files\":{}}", ERR_DAMAGED},
        {MESSAGE ",\"files\":[1]}", ERR_DAMAGED},
        {MESSAGE ",\"files\":[{}]}", ERR_DAMAGED},
        {MESSAGE ",\"files\":[{\"ref\":\"x\"}]}", ERR_DAMAGED},
        {MESSAGE ",\"files\":[{\"ref\":{},\"size\":-1}]}", ERR_DAMAGED},
        {MESSAGE ",\"files\":[{\"ref\":{},\"name\":1}]}", ERR_DAMAGED},
        {MESSAGE ",\"files\":[{\"ref\":{},\"size\":18446744073709551615}]}", OK},
    };
#undef MESSAGE
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct inbound got = {.at = 77};
        enum err e = inbound_parse(arena, str_c(rows[i].json), &got);
        if (e != rows[i].expected) fail_msg("%s: got %s", rows[i].json, err_code(e));
        if (e) assert_int_equal(got.at, 77);
    }
}

int test_inbound(void)
{
#define WITH_ARENA(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_ARENA(there_and_back),
        WITH_ARENA(the_longest),
        WITH_ARENA(too_long),
        WITH_ARENA(damaged),
    };
    return cmocka_run_group_tests_name("channel/inbound", tests, NULL, NULL);
}
