/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/client/mcp_result.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"

#define TEXT(words) "{\"type\":\"text\",\"text\":\"" words "\"}"

static struct json *parsed(struct arena *arena, str text)
{
    struct json *json = NULL;
    if (json_parse(arena, text, &json, NULL)) fail_msg("%.*s", STR_ARG(text));
    return json;
}

static const struct {
    const char *answer;
    enum tool_end end;
    const char *content, *result, *error;
} rows[] = {
    {"{}", TOOL_DONE, "", "", ""},
    {"{\"content\":7,\"isError\":\"yes\"}", TOOL_DONE, "", "", ""},
    {"{\"content\":[" TEXT("a") "," TEXT("") "," TEXT("b") "]}", TOOL_DONE, "a\n\nb", "", ""},
    {"{\"content\":[" TEXT("words") "],\"structuredContent\":{\"a\": 1}}", TOOL_DONE, "words",
     "{\"a\": 1}", ""},
    /* the same said twice is said once */
    {"{\"content\":[" TEXT("{\\\"a\\\":1.0}") "],\"structuredContent\":{\"a\":1}}", TOOL_DONE, "",
     "{\"a\":1}", ""},
    {"{\"content\":[],\"structuredContent\":null}", TOOL_DONE, "", "", ""},
    {"{\"content\":[],\"structuredContent\":[1]}", TOOL_DONE, "", "[1]", ""},
    {"{\"content\":[{\"type\":\"resource_link\",\"uri\":\"file:///"
     "a\",\"name\":\"n\",\"description\":"
     "\"d\"}]}",
     TOOL_DONE, "n: file:///a\nd", "", ""},
    {"{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"file:///a\",\"text\":\"t\"}}]}",
     TOOL_DONE, "file:///a:\nt", "", ""},
    {"{\"content\":[{\"type\":\"smell\"},7]}", TOOL_DONE,
     "[content of the unknown type smell]\n\n[content of the unknown type ]", "", ""},
    {"{\"content\":[{\"type\":\"image\",\"data\":\"!\",\"mimeType\":\"image/png\"}]}", TOOL_DONE,
     "[a file (image/png) was not kept: it is no base64]", "", ""},
    {"{\"isError\":true,\"content\":[" TEXT("no\\nway") "]}", TOOL_FAILED, "", "", "no way"},
    {"{\"isError\":true,\"content\":[],\"structuredContent\":{\"a\":1}}", TOOL_FAILED, "",
     "{\"a\":1}", "the tool reported an error without saying which"},
};

static void test_results(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        struct tool_result result = {0};
        arena_init(&arena);
        enum tool_end end =
            mcp_result_read(&arena, parsed(&arena, str_c(rows[i].answer)), STR("en"), &result);
        if (end != rows[i].end) fail_msg("row %zu: %d", i, end);
        assert_str(result.content, str_c(rows[i].content));
        assert_str(result.result, str_c(rows[i].result));
        assert_str(result.error, str_c(rows[i].error));
        assert_int_equal(result.file_count, 0);
    }
}

static void files_of_all_kinds(void **state)
{
    static const struct {
        const char *item, *mime, *name, *bytes;
    } files[] = {
        {"{\"type\":\"image\",\"data\":\"YQ==\",\"mimeType\":\"image/png\"}", "image/png",
         "image-1.png", "a"},
        {"{\"type\":\"image\",\"data\":\"YWI\",\"mimeType\":\"image/what\"}", "image/what",
         "image-1.bin", "ab"},
        {"{\"type\":\"audio\",\"data\":\"YWJj\",\"mimeType\":\"audio/wav\"}", "audio/wav",
         "audio-1.wav", "abc"},
        {"{\"type\":\"resource\",\"resource\":{\"uri\":\"file:///x/"
         "r%C3%A4.pdf?q\",\"blob\":\"AP8=\","
         "\"mimeType\":\"application/pdf\"}}",
         "application/pdf", "r%C3%A4.pdf", "\0\xff"},
        {"{\"type\":\"resource\",\"resource\":{\"uri\":\"x/a\\\"b\",\"blob\":\"_-8=\"}}",
         "application/octet-stream", "a_b", "\xff\xef"},
        {"{\"type\":\"image\",\"data\":\"\",\"mimeType\":\"a\\nb\"}", "application/octet-stream",
         "image-1.bin", ""},
    };
    static const size_t lengths[] = {1, 2, 3, 2, 2, 0};
    (void)state;
    for (size_t i = 0; i < COUNT(files); i++) {
        AUTO(arena_done) struct arena arena;
        struct tool_result result = {0};
        arena_init(&arena);
        str text = arena_printf(&arena, "{\"content\":[%s]}", files[i].item);
        assert_int_equal(mcp_result_read(&arena, parsed(&arena, text), STR("en"), &result),
                         TOOL_DONE);
        assert_int_equal(result.file_count, 1);
        assert_str(result.files[0].mime, str_c(files[i].mime));
        assert_str(result.files[0].filename, str_c(files[i].name));
        assert_str(result.files[0].bytes, ((str){files[i].bytes, lengths[i]}));
    }
}

static void test_limits(void **state)
{
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf text;
    struct tool_result result = {0};
    (void)state;
    arena_init(&arena);
    buf_init(&text, SIZE_MAX / 2);
    buf_append(&text, STR("{\"content\":["));
    for (int i = 0; i < CALL_FILES_MAX + 1; i++)
        buf_printf(&text, "%s{\"type\":\"image\",\"data\":\"YQ==\",\"mimeType\":\"image/png\"}",
                   i ? "," : "");
    buf_append(&text, STR("]}"));
    mcp_result_read(&arena, parsed(&arena, buf_str(&text)), STR("zh-CN"), &result);
    assert_int_equal(result.file_count, CALL_FILES_MAX);
    assert_str(result.content, STR("[没有保留一个文件（image/png）：文件太多]"));

    enum { LARGE = 24 * 1024 * 1024 }; /* each fits, both do not */
    char *data = malloc(LARGE);
    assert_non_null(data);
    memset(data, 'A', LARGE);
    buf_clear(&text);
    buf_append(&text, STR("{\"content\":["));
    for (int i = 0; i < 2; i++) {
        buf_printf(&text, "%s{\"type\":\"audio\",\"mimeType\":\"audio/wav\",\"data\":\"",
                   i ? "," : "");
        buf_append(&text, (str){data, LARGE});
        buf_append(&text, STR("\"}"));
    }
    buf_append(&text, STR("]}"));
    free(data);
    mcp_result_read(&arena, parsed(&arena, buf_str(&text)), STR("en"), &result);
    assert_int_equal(result.file_count, 1);
    assert_str(result.content, STR("[a file (audio/wav) was not kept: it is too large]"));

    /* Long words are a result; beside another result they are cut. */
    char *words = malloc(TOOL_CONTENT_BYTES_MAX + 1);
    assert_non_null(words);
    memset(words, 'w', TOOL_CONTENT_BYTES_MAX + 1);
    for (int structured = 0; structured < 2; structured++) {
        buf_clear(&text);
        buf_append(&text, STR("{\"content\":[{\"type\":\"text\",\"text\":\""));
        buf_append(&text, (str){words, TOOL_CONTENT_BYTES_MAX + 1});
        buf_append(&text, structured ? STR("\"}],\"structuredContent\":{}}") : STR("\"}]}"));
        mcp_result_read(&arena, parsed(&arena, buf_str(&text)), STR("en"), &result);
        assert_int_equal(result.result.len, structured ? 2 : TOOL_CONTENT_BYTES_MAX + 3);
        assert_int_equal(result.content.len > 0, structured);
        assert_true(result.content.len <= TOOL_CONTENT_BYTES_MAX);
    }
    free(words);
}

int test_mcp_result(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_results),
                                       cmocka_unit_test(files_of_all_kinds),
                                       cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests_name("mcp_result", tests, NULL, NULL);
}
