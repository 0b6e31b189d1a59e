/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts, links and languages of the ui folder.
 */
#include "ui/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "check.h"
#include "ui/card_link.h"
#include "ui/locale.h"
#include "ui/out.h"

static void trims(void **state)
{
    (void)state;
    static const struct {
        const char *text, *trimmed;
    } rows[] = {
        {"", ""},
        {"a", "a"},
        {" a\t", "a"},
        {"\r\n a b \n", "a b"},
        {"\u3000中文\u3000", "中文"},
        {"\u00a0a\u00a0", "a"},
        {"\u200b\ufeffa\u2060", "a"},
        {"  \u3000", ""},
        {"\u202e", ""},
        {"\u200d\u200e\ufe0f", ""},
        {"\1\2", ""},
        {"\u202ea", "\u202ea"},
        {"é", "é"},
        {"a\u200d", "a\u200d"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_str(ui_trim(str_c(rows[i].text)), str_c(rows[i].trimmed));
}

static void fences(void **state)
{
    (void)state;
    static const struct {
        const char *text, *code; /* NULL: none */
    } rows[] = {
        {"```\na\n```", "a"},
        {"```c\nint a;\n```", "int a;"},
        {"````\n```\na\n```\n````", "```\na\n```"},
        {"~~~ x `y`\na\n~~~", "a"},
        {"```\na\n\n  b\n```  ", "a\n\n  b"},
        {"```\n  a\n````", "  a"},
        {"```\n```", ""},
        {"```\n \n```", ""},
        {"```\na", NULL},
        {"```", NULL},
        {"``\na\n``", NULL},
        {"```a```", NULL},
        {"```a`\nb\n```", NULL},
        {"```\na\n```\nb", NULL},
        {"a\n```\nb\n```", NULL},
        {"```\na\n~~~", NULL},
        {"", NULL},
        {"x", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        str code = STR("untouched");
        bool is = ui_fence(str_c(rows[i].text), &code);
        if (is != (rows[i].code != NULL)) fail_msg("%s", rows[i].text);
        assert_str(code, is ? str_c(rows[i].code) : STR("untouched"));
    }
}

static void lines(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t max;
        const char *line;
    } rows[] = {
        {"", 5, ""},
        {"a b", 5, "a b"},
        {"  a \n\t b\u3000c ", 10, "a b c"},
        {"a\7b", 10, "a b"},
        {"a\u202eb\u2066c", 10, "abc"},
        {"abcde", 5, "abcde"},
        {"abcdef", 5, "abcd…"},
        {"abcd e", 5, "abcd…"},
        {"abc de", 5, "abc…"},
        {"abcde   ", 5, "abcde"},
        {"中文字符很长", 4, "中文字…"},
        {"🎉🎉🎉", 2, "🎉…"},
        {"abce\u0301x", 5, "abc…"},                     /* not between e and its accent */
        {"ab👩\u200d👩\u200d👧x", 5, "ab…"},               /* nor inside a family */
        {"👍\U0001f3fd👍\U0001f3fdx", 4, "👍\U0001f3fd…"}, /* nor before a skin tone */
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_str(ui_line(&arena, str_c(rows[i].text), rows[i].max), str_c(rows[i].line));
}

static void links(void **state)
{
    (void)state;
    enum { NO, SAFE, PATH };
    static const struct {
        const char *text;
        int is;
    } rows[] = {
        {"/", PATH},
        {"/a", PATH},
        {"/a//b?c=d#e", PATH},
        {"/中文", PATH},
        {"/javascript:x", PATH},
        {"https://a", SAFE},
        {"http://a/b", SAFE},
        {"HtTp://a", SAFE},
        {"https://a:8080/b?c#d", SAFE},
        {"mailto:a@b", SAFE},
        {"mailto:?subject=x", SAFE},
        {"tel:+1", SAFE},
        {"", NO},
        {"a", NO},
        {"?a", NO},
        {"#a", NO},
        {"//a", NO},
        {"///a", NO},
        {"/\\a", NO},
        {"/a\\b", NO},
        {"\\/a", NO},
        {"/\ta", NO},
        {"/a b", NO},
        {"/\u200b/a", NO},
        {"/a\u202e", NO},
        {"/a\u3000", NO},
        {"https:", NO},
        {"https:/a", NO},
        {"https:a", NO},
        {"https://", NO},
        {"https:///a", NO},
        {"https://?a", NO},
        {"https://#a", NO},
        {"https:\\\\a", NO},
        {"mailto:", NO},
        {"mailto:/a", NO},
        {"tel:", NO},
        {"javascript:a", NO},
        {"java\nscript:a", NO},
        {"data:text/html,a", NO},
        {"blob:https://a", NO},
        {"file:///a", NO},
        {"ftp://a", NO},
        {"httpsx://a", NO},
        {"xhttps://a", NO},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        str text = str_c(rows[i].text);
        if (link_is_path(text) != (rows[i].is == PATH)) fail_msg("path %s", rows[i].text);
        if (link_is_safe(text) != (rows[i].is != NO)) fail_msg("safe %s", rows[i].text);
    }
}

static void languages(void **state)
{
    (void)state;
    static const struct {
        const char *tag;
        enum ui_locale locale;
    } rows[] = {
        {"", UI_EN},      {"en", UI_EN},      {"zh", UI_ZH},  {"zh-CN", UI_ZH},
        {"zh_TW", UI_ZH}, {"ZH-hant", UI_ZH}, {"zhx", UI_EN}, {"zh.UTF-8", UI_ZH},
        {"z", UI_EN},     {"x-zh", UI_EN},    {"C", UI_EN},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(ui_locale_of(str_c(rows[i].tag)), rows[i].locale);
    assert_str(ui_locale_name(UI_EN), STR("en"));
    assert_str(ui_locale_name(UI_ZH), STR("zh-CN"));
}

/* The longest beginning that fits, against escaping each beginning. */
static void fitting(void **state)
{
    (void)state;
    static const char *const texts[] = {"plain", "\"\\\n\001", "中文\u2028a\u2029", "é🎉\"é", ""};
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(texts); i++) {
        str text = str_c(texts[i]);
        for (size_t room = 0; room < 40; room++) {
            size_t best = 0;
            for (size_t len = 0; len <= text.len; len++) {
                struct out out;
                out_init(&out, &arena, 0, 100);
                if (!utf8_valid((str){text.p, len})) continue;
                out_escaped(&out, (str){text.p, len});
                if (out.len <= room) best = len;
            }
            assert_int_equal(out_fitting(text, room), best);
        }
    }
}

int test_text(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trims), cmocka_unit_test(fences),    cmocka_unit_test(lines),
        cmocka_unit_test(links), cmocka_unit_test(languages), cmocka_unit_test(fitting),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
