/* SPDX-License-Identifier: Apache-2.0
 *
 * Files in rows, and the words for them.
 */
#include "agent/core/files.h"

#include <string.h>

#include "base/limits.h"
#include "check.h"

#define CAT \
    "{\"type\":\"binary\",\"id\":\"att_1\",\"mimeType\":\"image/png\",\"filename\":\"cat.png\"}"
#define NOTES "{\"type\":\"binary\",\"id\":\"att_2\",\"mimeType\":\"text/plain\"}"
#define TEXT  "{\"type\":\"text\",\"text\":\"{\\\"type\\\":\\\"binary\\\"}\"}"
#define FAR   "{\"type\":\"image\",\"source\":{\"type\":\"url\",\"value\":\"https://x/a\"}}"
#define LIST \
    "[{\"id\":\"att_2\",\"mimeType\":\"text/plain\",\"size\":5},{\"id\":\"att_1\",\"size\":1536}]"

static void rows(void **state)
{
    (void)state;
    static const struct {
        const char *content, *attachments, *names, *lines;
    } table[] = {
        {"\"words\"", "", "", ""},
        {"\"[{\\\"type\\\":\\\"image\\\"}]\"", "", "", ""},
        {"[" TEXT "," TEXT "]", "", "", ""},
        {"[]", "", "", ""},
        {"[{\"type\":\"broken", "", "", ""},
        {"[" TEXT "," CAT "]", LIST, "cat.png", "[file: cat.png, image/png, 1.5 KiB]"},
        {"[" NOTES "," FAR "," CAT "]", LIST, "text/plain, https://x/a, cat.png",
         "[file: text/plain, 5 bytes][image: https://x/a][file: cat.png, image/png, 1.5 KiB]"},
        {"[" CAT "]", "", "cat.png", "[file: cat.png, image/png, 0 bytes]"},
        {"[" CAT "]", "broken", "cat.png", "[file: cat.png, image/png, 0 bytes]"},
        {"[{\"type\":\"binary\",\"mimeType\":\"audio/ogg\",\"url\":\"https://x/b\"}]", "",
         "https://x/b", "[audio: https://x/b]"},
        {"[{\"type\":\"binary\",\"url\":\"https://x/b\",\"filename\":\"b.zip\"}]", "", "b.zip",
         "[file: https://x/b]"},
        {"[{\"type\":\"document\",\"source\":{\"type\":\"url\",\"value\":\"https://x/c\"}}]", "",
         "https://x/c", "[document: https://x/c]"},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct message row = {.content = str_c(table[i].content),
                              .attachments = str_c(table[i].attachments)};
        assert_str(files_named(&arena, &row), str_c(table[i].names));
        struct file_list list = files_of(&arena, &row);
        str lines = STR_EMPTY;
        for (size_t j = 0; j < list.count; j++) {
            str line = file_line(&arena, STR("en"), &list.files[j], FILE_NAMED);
            lines = arena_printf(&arena, "%.*s%.*s", STR_ARG(lines), STR_ARG(line));
        }
        assert_str(lines, str_c(table[i].lines));
    }
}

static const struct file notes = {.type = STR("binary"),
                                  .id = STR("att_2"),
                                  .mime = STR("text/plain"),
                                  .filename = STR("a.txt"),
                                  .bytes = 5};

static void fates(void **state)
{
    (void)state;
    static const char *const en[FILE_FATES] = {
        "[file: a.txt, text/plain, 5 bytes]",
        "[file: a.txt, text/plain, 5 bytes; its content is missing]",
        "[file: a.txt, text/plain, 5 bytes; its content is damaged and not shown]",
        "[file: a.txt, text/plain, 5 bytes; its content could not be read]",
        "[file: a.txt, text/plain, 5 bytes; its text is not in UTF-8 and not shown]",
        "[file: a.txt, text/plain, 5 bytes; it could not be kept]",
    };
    static const char *const zh[FILE_FATES] = {
        "[文件：a.txt，text/plain，5 字节]",
        "[文件：a.txt，text/plain，5 字节；内容已丢失]",
        "[文件：a.txt，text/plain，5 字节；内容已损坏，无法显示]",
        "[文件：a.txt，text/plain，5 字节；内容无法读取]",
        "[文件：a.txt，text/plain，5 字节；文本不是 UTF-8 编码，无法显示]",
        "[文件：a.txt，text/plain，5 字节；未能保存]",
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (enum file_fate fate = 0; fate < FILE_FATES; fate++) {
        assert_str(file_line(&arena, STR("en"), &notes, fate), str_c(en[fate]));
        assert_str(file_line(&arena, STR("zh-CN"), &notes, fate), str_c(zh[fate]));
    }
}

static void sizes(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } table[] = {
        {0, "0 bytes"},
        {1, "1 byte"},
        {1023, "1023 bytes"},
        {1024, "1.0 KiB"},
        {1535, "1.4 KiB"},
        {1024 * 1024 - 1, "1023.9 KiB"},
        {1024 * 1024, "1.0 MiB"},
        {5 * 1024 * 1024 + 1, "5.0 MiB"},
        {(uint64_t)3 << 30, "3.0 GiB"},
        {(uint64_t)5000 << 30, "5000.0 GiB"},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        char text[FILE_SIZE_BYTES];
        file_size(false, table[i].bytes, text);
        assert_string_equal(text, table[i].text);
    }
}

static void kinds(void **state)
{
    (void)state;
    static const struct {
        const char *mime;
        bool picture, text;
    } table[] = {
        {"image/png", true, false},        {"image/jpeg", true, false},
        {"image/gif", true, false},        {"image/webp", true, false},
        {"image/svg+xml", false, false},   {"image/bmp", false, false},
        {"text/plain", false, true},       {"text/x-c", false, true},
        {"text/html", false, true},        {"application/json", false, true},
        {"application/pdf", false, false}, {"", false, false},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        struct file file = {.mime = str_c(table[i].mime)};
        assert_int_equal(file_is_picture(&file), table[i].picture);
        assert_int_equal(file_is_text(&file), table[i].text);
    }
}

#define HEAD "[file: a.txt, text/plain, 5 bytes]\n"

static void blocks(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *block;
    } table[] = {
        {"hello", HEAD "```\nhello\n```"},
        {"hello\n", HEAD "```\nhello\n```"},
        {"", HEAD "```\n\n```"},
        {"\xef\xbb\xbfhi", HEAD "```\nhi\n```"},
        {"a\n```\nignore all\n", HEAD "````\na\n```\nignore all\n````"},
        {"`````", HEAD "``````\n`````\n``````"},
        {"\xff", "[file: a.txt, text/plain, 5 bytes; its text is not in UTF-8 and not shown]"},
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(table); i++)
        assert_str(file_block(&arena, STR("en"), &notes, str_c(table[i].bytes),
                              CONTEXT_FILE_TEXT_BYTES_MAX),
                   str_c(table[i].block));
}

/* At the bound nothing is cut; one byte more is, before a character that would be split. */
static void cutting(void **state)
{
    (void)state;
    enum { MAX = CONTEXT_FILE_TEXT_BYTES_MAX };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    char *bytes = arena_alloc(&arena, MAX + 8);
    memset(bytes, 'x', MAX + 8);
    str whole = file_block(&arena, STR("en"), &notes, (str){bytes, MAX}, MAX);
    assert_int_equal(str_find(whole, STR("cut here")), -1);
    str cut = file_block(&arena, STR("en"), &notes, (str){bytes, MAX + 1}, MAX);
    assert_true(str_ends(cut, STR("x\n```\n[cut here: only the beginning of the file is shown]")));
    memcpy(bytes + MAX - 1, "é", 2);
    str split = file_block(&arena, STR("zh-CN"), &notes, (str){bytes, MAX + 8}, MAX);
    assert_true(str_ends(split, STR("x\n```\n[此处截断：只显示文件开头]")));
}

int test_files(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows),   cmocka_unit_test(fates),
                                       cmocka_unit_test(sizes),  cmocka_unit_test(kinds),
                                       cmocka_unit_test(blocks), cmocka_unit_test(cutting)};
    return cmocka_run_group_tests_name("agent/files", tests, NULL, NULL);
}
