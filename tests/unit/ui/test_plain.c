/* SPDX-License-Identifier: Apache-2.0
 *
 * Cards and Markdown as letters: tables of both, the corpus of tests/ui, and lengths at their edges.
 */
#include "ui/plain.h"

#include <dirent.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "check.h"
#include "ui/compile.h"
#include "ui/text.h"

static size_t chars(str text)
{
    size_t count = 0;
    for (; text.len; count++) ui_next_char(&text);
    return count;
}

/* ---- cards ---- */

static str read_case(struct arena *arena, const char *name)
{
    str path = arena_printf(arena, SOURCE_ROOT "/tests/ui/%s", name), text;
    assert_int_equal(file_read(arena, path.p, 1024 * 1024, &text, NULL), OK);
    return text;
}

static str schema_of(struct arena *arena, str text)
{
    struct json *json = NULL;
    assert_int_equal(json_parse(arena, text, &json, NULL), OK);
    const struct json *schema = json_get(json, STR("schema"));
    return schema ? schema->raw : STR_EMPTY;
}

static void cards(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
    } rows[] = {
        {"mixed-all.json",
         "Trip [Warning]\nTwo legs\nCheck the times.\nReference: QX7\n• Leg 1\n• Leg 2\n\nHotel "
         "[Success]\nThree nights\nLate arrival noted.\nroom: 12\n• Breakfast [included]\n\nNo "
         "title "
         "here."},
        {"list-full.json", "• Invoice 7 [open]\n  due tomorrow\n  Paper and ink\n  Sum: 82.10 EUR"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        str schema = schema_of(&arena, read_case(&arena, rows[i].name));
        assert_str(plain_card(&arena, schema, UI_EN, 4000), str_c(rows[i].text));
    }
}

#define CARD(root) "{\"version\":\"2.0\",\"root\":" root "}"
#define COLUMN(children) \
    "{\"type\":\"stack\",\"direction\":\"vertical\",\"children\":[" children "]}"
#define ROW(children) \
    "{\"type\":\"stack\",\"direction\":\"horizontal\",\"children\":[" children "]}"
#define ENTRY(children)                                                                            \
    "{\"type\":\"stack\",\"direction\":\"horizontal\",\"align\":\"start\",\"children\":[" children \
    "]}"
#define TEXT(words) "{\"type\":\"text\",\"content\":\"" words "\",\"format\":\"plain\"}"

static void nodes(void **state)
{
    (void)state;
    static const struct {
        const char *card, *en, *zh; /* NULL: the same */
    } rows[] = {
        {"", "", NULL},
        {"not json", "", NULL},
        {"[]", "", NULL},
        {"{\"version\":\"2.0\"}", "", NULL},
        {"{\"root\":[1]}", "", NULL},
        {CARD("{\"type\":\"text\"}"), "", NULL},
        {CARD("{\"type\":\"hologram\"}"), "", NULL},
        {CARD("{\"type\":\"hologram\",\"fallback\":\"see it\"}"), "see it", NULL},
        {CARD("{\"type\":\"text\",\"content\":\"no\",\"visible\":false}"), "", NULL},
        {CARD("{\"type\":\"text\",\"content\":\"**a** [b](https://c)\",\"format\":\"markdown\"}"),
         "a b (https://c)", NULL},
        {CARD("{\"type\":\"text\",\"content\":\"**a**\",\"format\":\"plain\"}"), "**a**", NULL},
        {CARD(COLUMN(TEXT("a") "," TEXT("b") "," ROW(TEXT("c") "," TEXT("d")))), "a\nb\nc d", NULL},
        {CARD(ROW(
             "{\"type\":\"icon\",\"name\":\"x\"}," COLUMN(TEXT("a") "," TEXT("b")) "," TEXT("c"))),
         "a\nb c", NULL},
        {CARD(COLUMN(ENTRY(TEXT("a")) ",{\"type\":\"divider\"}," ENTRY(TEXT("b\\nc")))),
         "• a\n• b\n  c", NULL},
        {CARD(COLUMN(ENTRY("{\"type\":\"badge\",\"label\":\"1\"}," TEXT("a")))), "1. a", NULL},
        {CARD(COLUMN(TEXT("a") "," ENTRY("{\"type\":\"icon\",\"name\":\"x\"}") "," TEXT("b"))),
         "a\nb", NULL},
        {CARD(
             "{\"type\":\"kv\",\"items\":[{\"key\":\"k\",\"label\":\"L\",\"value\":\"v\"},{\"key\":"
             "\"n\",\"value\":9007199254740993},{\"key\":\"o\",\"value\":{\"a\":[1,null]}},{"
             "\"key\":"
             "\"e\",\"value\":\"\"}]}"),
         "L: v\nn: 9007199254740993\no: {\"a\":[1,null]}\ne",
         "L：v\nn：9007199254740993\no：{\"a\":[1,"
         "null]}\ne"},
        {CARD(ROW(
             "{\"type\":\"button\",\"label\":\"Open\",\"action\":{\"type\":\"url\",\"url\":\"https:"
             "//"
             "a\"}},{\"type\":\"button\",\"label\":\"Pay\",\"action\":{\"type\":\"event\","
             "\"event\":"
             "\"pay\"}}")),
         "Open: https://a", "Open：https://a"},
        {CARD(TEXT("a\\u202Eb\\u0007c")), "abc", NULL},
        {CARD(TEXT("a\\n\\n\\n\\nb")), "a\n\nb", NULL},
        {CARD("{\"type\":\"grid\",\"children\":[" TEXT("a") "," TEXT("b") "]}"), "a\nb", NULL},
        {CARD("{\"type\":\"stack\",\"children\":{\"a\":1}}"), "", NULL},
        {CARD("{\"type\":\"kv\",\"items\":3}"), "", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        const char *zh = rows[i].zh ? rows[i].zh : rows[i].en;
        assert_str(plain_card(&arena, str_c(rows[i].card), UI_EN, 1000), str_c(rows[i].en));
        assert_str(plain_card(&arena, str_c(rows[i].card), UI_ZH, 1000), str_c(zh));
    }
}

/* All words of a card that people read, in plain texts and labels, are in its lines. */
static void check_words(const struct json *node, str lines)
{
    str type = json_text(json_get(node, STR("type")));
    bool shown = str_eq(type, STR("text")) || str_eq(type, STR("badge"));
    str words =
        json_text(json_get(node, str_eq(type, STR("badge")) ? STR("label") : STR("content")));
    bool markdown = str_eq(json_text(json_get(node, STR("format"))), STR("markdown"));
    bool simple = !markdown;
    for (str rest = words; rest.len;) {
        uint32_t code = ui_next_char(&rest);
        if (code != ' ' && ui_is_hidden(code)) simple = false; /* may be left out */
    }
    if (shown && simple && str_find(lines, words) < 0)
        fail_msg("\"%.*s\" is not in \"%.*s\"", STR_ARG(words), STR_ARG(lines));
    const struct json *children = json_get(node, STR("children"));
    for (const struct json *m = children ? children->child : NULL; m; m = m->next)
        check_words(m, lines);
}

static void check_lines(str lines)
{
    assert_true(utf8_valid(lines));
    assert_str(ui_trim(lines), lines);
    assert_true(str_find(lines, STR("\n\n\n")) < 0);
    assert_true(str_find(lines, STR("\u202e")) < 0);
}

static void corpus(void **state)
{
    (void)state;
    DIR *folder = opendir(SOURCE_ROOT "/tests/ui");
    assert_non_null(folder);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!str_ends(str_c(entry->d_name), STR(".json"))) continue;
        AUTO(arena_done) struct arena arena;
        struct json *json = NULL;
        arena_init(&arena);
        str schema = schema_of(&arena, read_case(&arena, entry->d_name));
        if (!schema.len) continue;
        str lines = plain_card(&arena, schema, UI_ZH, SIZE_MAX);
        check_lines(lines);
        assert_int_equal(json_parse(&arena, schema, &json, NULL), OK);
        check_words(json_get(json, STR("root")), lines);
        size_t all = chars(lines);
        for (size_t max = 0; max < 60; max++) {
            str cut = plain_card(&arena, schema, UI_ZH, max);
            assert_true(utf8_valid(cut) && chars(cut) <= max);
            if (max && max < all) assert_true(str_ends(cut, STR("…")));
            if (max >= all) assert_str(cut, lines);
        }
        count++;
    }
    closedir(folder);
    assert_true(count >= 60);
}

static void deep(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf card;
    arena_init(&arena);
    buf_init(&card, 1 << 20);
    buf_append(&card, STR("{\"root\":"));
    for (size_t i = 0; i < 28; i++)
        buf_append(&card, STR("{\"type\":\"stack\",\"children\":[" TEXT("x") ","));
    buf_append(&card, STR("null"));
    for (size_t i = 0; i < 28; i++) buf_append(&card, STR("]}"));
    buf_append(&card, STR("}"));
    str lines = plain_card(&arena, buf_str(&card), UI_EN, 1000);
    assert_int_equal(chars(lines), 23 * 2 - 1); /* of 24 levels the last is a stack without words */

    buf_clear(&card);
    buf_append(&card, STR("{\"root\":{\"type\":\"stack\",\"children\":["));
    for (size_t i = 0; i < 3000; i++) buf_append(&card, STR(TEXT("x") ","));
    buf_append(&card, STR("null]}}"));
    assert_int_equal(chars(plain_card(&arena, buf_str(&card), UI_EN, 100000)), 1999 * 2 - 1);
}

/* ---- Markdown ---- */

static void markdown(void **state)
{
    (void)state;
    static const struct {
        const char *markdown, *plain; /* NULL: as it is */
    } rows[] = {
        {"", NULL},
        {"plain", NULL},
        {"一行\n两行", NULL},
        {"# Title", "Title"},
        {"### 标题 ###", "标题"},
        {"#hashtag", NULL},
        {"C#", NULL},
        {"#", ""},
        {"Title\n=====\ntext", "Title\ntext"},
        {"a\n\n---\n\nb", "a\n\n\n\nb"},
        {"***", ""},
        {"**bold** and *it* and __b__ and _i_", "bold and it and b and i"},
        {"***both***", "both"},
        {"**a *b***", "a b"},
        {"很**重要**的", "很重要的"},
        {"~~old~~ new", "old new"},
        {"~5 min~", NULL},
        {"snake_case_name and __init__", "snake_case_name and init"},
        {"2 * 3 * 4", NULL},
        {"2*3*4", NULL},
        {"a ** b", NULL},
        {"**open", NULL},
        {"close**", NULL},
        {"use `a_b_c` and ``x`y``", "use a_b_c and x`y"},
        {"`*not*`", "*not*"},
        {"an ` alone", NULL},
        {"[text](https://a.example/x_y_z)", "text (https://a.example/x_y_z)"},
        {"[https://a](https://a)", "https://a"},
        {"[a](https://b \"title\") c", "a (https://b) c"},
        {"[a](<https://b>)", "a (https://b)"},
        {"[a](https://b/(c))", "a (https://b/(c))"},
        {"[](https://b)", "https://b"},
        {"[**a**](https://b)", "a (https://b)"},
        {"![a cat](https://b/cat.png)", "a cat"},
        {"[![a](b)](https://c)", "a (https://c)"},
        {"[note] (x)", NULL},
        {"a[1](2", NULL},
        {"<https://a.example>", "https://a.example"},
        {"<me@a.example>", "me@a.example"},
        {"<b>x</b>", NULL},
        {"1 < 2 > 0", NULL},
        {"\\*not\\* \\[x\\]", "*not* [x]"},
        {"a\\b", NULL},
        {"> quoted\n> > twice", "quoted\ntwice"},
        {"- a\n* b\n+ c\n  - d", "• a\n• b\n• c\n  • d"},
        {"1. a\n2. b", NULL},
        {"- [ ] todo\n- [x] done", "☐ todo\n☑ done"},
        {"-5 degrees", NULL},
        {"| a | b |\n|---|:-:|\n| **1** | 2 |", "a | b\n1 | 2"},
        {"| a \\| b | c |", "a | b | c"},
        {"```c\nint *a = **b; # no\n\n  x\n```\nafter", "int *a = **b; # no\n\n  x\nafter"},
        {"~~~\n```\n~~~", "```"},
        {"````\n```\n````\nx", "```\nx"},
        {"```\nnever closed", "never closed"},
        {"`a\nb`", NULL},
        {"line  \nbreak\r\n", "line\nbreak\n"},
        {"你好 👍🏻 **好**", "你好 👍🏻 好"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        const char *plain = rows[i].plain ? rows[i].plain : rows[i].markdown;
        assert_str(plain_markdown(&arena, str_c(rows[i].markdown)), str_c(plain));
    }
}

/* Long rows of marks take a moment and no more; nothing is added but what links say. */
static void rows_of_marks(void **state)
{
    (void)state;
    static const char *const units[] = {"*",       "**a",    "_a ", "`",    "``a`", "[",
                                        "[a](",    "[a](b)", "![",  "<a",   "<a:b", "~~",
                                        "\\",      "|",      "> ",  "- ",   "a* ",  "*a",
                                        "[a](b) ", "]]((",   "((",  "\xff", "😀*"};
    enum { BYTES = 64 * 1024 };
    for (size_t i = 0; i < COUNT(units); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        char *text = arena_alloc(&arena, BYTES);
        size_t len = strlen(units[i]), at = 0;
        for (; at + len <= BYTES; at += len) memcpy(text + at, units[i], len);
        str plain = plain_markdown(&arena, (str){text, at});
        assert_true(plain.len <= 3 * at);
    }
}

int test_plain(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards), cmocka_unit_test(nodes),    cmocka_unit_test(corpus),
        cmocka_unit_test(deep),  cmocka_unit_test(markdown), cmocka_unit_test(rows_of_marks),
    };
    return cmocka_run_group_tests_name("plain", tests, NULL, NULL);
}
