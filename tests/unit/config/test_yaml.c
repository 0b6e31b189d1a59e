/* SPDX-License-Identifier: Apache-2.0 */
#include "config/yaml.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "check.h"

static enum err parse(struct arena *arena, str text, struct yaml_node **root, struct fault *fault)
{
    *fault = (struct fault){0};
    return yaml_parse(arena, "f.yaml", text, root, fault);
}

/* The tree in one line: {key@line: "text", list@line: [..]}; null is a scalar that says nothing, and
 * a plain one stands without quotes. */
static void show(struct buf *out, const struct yaml_node *node)
{
    if (node->key.len) buf_printf(out, "%.*s@%u:", STR_ARG(node->key), node->line);
    if (node->type == YAML_SCALAR) {
        if (node->null)
            buf_append(out, STR("null"));
        else
            buf_printf(out, node->plain ? "%.*s" : "\"%.*s\"", STR_ARG(node->text));
        return;
    }
    buf_char(out, node->type == YAML_MAP ? '{' : '[');
    for (const struct yaml_node *n = node->child; n; n = n->next) {
        show(out, n);
        if (n->next) buf_char(out, ' ');
    }
    buf_char(out, node->type == YAML_MAP ? '}' : ']');
}

static void trees(void **state)
{
    (void)state;
    static const struct {
        str text;
        const char *tree;
    } rows[] = {
        {STR(""), "{}"},
        {STR("# only a comment\n"), "{}"},
        {STR("---\n"), "null"},
        {STR("--- {}\n...\n"), "{}"},
        {STR("\xEF\xBB\xBF"
             "a: b"),
         "{a@1:b}"},
        {STR("a: b\r\nc: d\r\n"), "{a@1:b c@2:d}"},
        {STR("a: b\nc:\n  d: 1\n\n  e: [x, 'y z']\n"), "{a@1:b c@2:{d@3:1 e@5:[x \"y z\"]}}"},
        {STR("a:\n  - x\n  - {b: c}\n"), "{a@1:[x {b@3:c}]}"},
        {STR("a:\nb: ~\nc: null\nd: ''\n"), "{a@1:null b@2:null c@3:null d@4:null}"},
        {STR("a: '~'\nb: \"null\"\nc: NULL\nd: !!str null\n"),
         "{a@1:\"~\" b@2:\"null\" c@3:NULL d@4:\"null\"}"},
        {STR("a: 1\nb: '1'\nc: !!str 1\nd: !!str '1'\ne: >\n  1\nf: true\ng: \"true\"\n"),
         "{a@1:1 b@2:\"1\" c@3:\"1\" d@4:\"1\" e@5:\"1\n\" f@7:true g@8:\"true\"}"},
        {STR("a: |\n  two\n  lines\n"), "{a@1:\"two\nlines\n\"}"},
        {STR("a: !!map {}\nb: !!seq []\n"), "{a@1:{} b@2:[]}"},
        {STR("a: \"数\\u636E\"\n"), "{a@1:\"数据\"}"},
        {STR("a: {b: 1}\nc: {b: 1}\n"), "{a@1:{b@1:1} c@2:{b@2:1}}"},
        {STR("[a, [b]]"), "[a [b]]"},
        {STR("just text"), "just text"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        AUTO(buf_done) struct buf out;
        buf_init(&out, 4096);
        struct yaml_node *root = NULL;
        struct fault fault;
        enum err e = parse(&arena, rows[i].text, &root, &fault);
        if (e) fail_msg("row %zu: %s", i, fault.text);
        show(&out, root);
        assert_str(buf_str(&out), str_c(rows[i].tree));
    }
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        str text;
        const char *place, *part;
    } rows[] = {
        {STR("a: &x 1\n"), "f.yaml:1: ", "anchors"},
        {STR("a: 1\nb: &x [1]\n"), "f.yaml:2: ", "anchors"},
        {STR("&x a: 1\n"), "f.yaml:1: ", "anchors"},
        {STR("a: &x {b: 1}\n"), "f.yaml:1: ", "anchors"},
        {STR("a: *x\n"), "f.yaml:1: ", "aliases"},
        {STR("a: !!int 1\n"), "f.yaml:1: ", "tags"},
        {STR("a: !x 1\n"), "f.yaml:1: ", "tags"},
        {STR("a: !!map [1]\n"), "f.yaml:1: ", "tags"},
        {STR("a: !!set {b: }\n"), "f.yaml:1: ", "tags"},
        {STR("a: 1\nb: 2\na: 3\n"), "f.yaml:3: ", "\"a\" was already given in line 1"},
        {STR("x: {a: 1, \"a\": 2}\n"), "f.yaml:1: ", "already given"},
        {STR("a: 1\n? [b]\n: 2\n"), "f.yaml:2: ", "write a plain key"},
        {STR("{a: 1}: 2\n"), "f.yaml:1: ", "write a plain key"},
        {STR("a: 1\n---\nb: 2\n"), "f.yaml:2: ", "second document"},
        {STR("a: 1\n...\nb: 2\n"), "f.yaml:3: ", "document start"},
        {STR("a: 1\nb: \xFF\n"), "f.yaml:2: ", "UTF-8"},
        {STR("a: 1\nb: \xC0\x80\n"), "f.yaml:2: ", "UTF-8"},
        {STR("a: \xED\xA0\x80\n"), "f.yaml:1: ", "UTF-8"},
        {STR("\xFF\xFE"
             "a\0:\0"),
         "f.yaml:1: ", "UTF-8"},
        {STR("a: 1\n\nb: \x01\n"), "f.yaml:3: ", "control characters"},
        {STR("a: b\0c\n"), "f.yaml:1: ", "control characters"},
        {STR("a: \"b\\0c\"\n"), "f.yaml:1: ", "NUL"},
        {STR("a: 1\n b: 2\n"), "f.yaml:2: ", "not valid YAML"},
        {STR("a: [1, 2\nb: 3\n"), "f.yaml:2: ", "not valid YAML"},
        {STR("a: 'open\n"), "f.yaml:2: ", "not valid YAML"},
        {STR("a:\n\t- b\n"), "f.yaml:2: ", "not valid YAML"},
        {STR("%YAML 9.9\n---\na: 1\n"), "f.yaml:1: ", "not valid YAML"},
        {STR("a: \"\\uD800\"\n"), "f.yaml:1: ", "not valid YAML"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct yaml_node *root = NULL;
        struct fault fault;
        enum err e = parse(&arena, rows[i].text, &root, &fault);
        if (e != ERR_CONFIG || root) fail_msg("row %zu was taken: %s", i, rows[i].text.p);
        if (!str_starts(str_c(fault.text), str_c(rows[i].place)) ||
            !strstr(fault.text, rows[i].part))
            fail_msg("got \"%s\", expected \"%s...%s\"", fault.text, rows[i].place, rows[i].part);
        assert_int_equal(yaml_parse(&arena, "f.yaml", rows[i].text, &root, NULL), ERR_CONFIG);
    }
}

/* `size` bytes: one value and a comment that fills the rest. */
static void sized(struct buf *out, size_t size)
{
    buf_append(out, STR("a: 1\n#"));
    while (out->len + 80 < size)
        buf_append(out, STR("###############################################################\n#"));
    while (out->len < size) buf_char(out, '#');
}

static void nested(struct buf *out, size_t depth)
{
    for (size_t i = 0; i < depth; i++) buf_char(out, '[');
    for (size_t i = 0; i < depth; i++) buf_char(out, ']');
}

/* `count` nodes: the sequence and its items. */
static void counted(struct buf *out, size_t count)
{
    for (size_t i = 1; i < count; i++) buf_append(out, STR("- x\n"));
}

static void limits(void **state)
{
    (void)state;
    static const struct {
        void (*make)(struct buf *, size_t);
        size_t allowed;
        const char *part;
    } rows[] = {
        {sized, YAML_BYTES_MAX, "1 MiB"},
        {nested, YAML_DEPTH_MAX, "32 levels"},
        {counted, YAML_NODES_MAX, "10000 values"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t over = 0; over < 2; over++) {
            AUTO(arena_done) struct arena arena;
            arena_init(&arena);
            AUTO(buf_done) struct buf text;
            buf_init(&text, YAML_BYTES_MAX + 1);
            rows[i].make(&text, rows[i].allowed + over);
            assert_false(text.full);
            struct yaml_node *root = NULL;
            struct fault fault;
            enum err e = parse(&arena, buf_str(&text), &root, &fault);
            assert_int_equal(e, over ? ERR_CONFIG : OK);
            if (over && !strstr(fault.text, rows[i].part)) fail_msg("got \"%s\"", fault.text);
        }
}

/* A name out of the file goes to a terminal. */
static void hostile_names(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct yaml_node *root = NULL;
    struct fault fault;
    str text = STR("\"\\e[2J\": 1\n\"\\e[2J\": 2\n");
    assert_int_equal(parse(&arena, text, &root, &fault), ERR_CONFIG);
    assert_non_null(strstr(fault.text, "\"?[2J\""));
}

/* A character, alone and between letters, in every place where a scalar may stand. */
static void write_code(uint32_t code)
{
    static const struct {
        const char *before, *after;
        bool key;
    } places[] = {
        {"", "", false},     {"a: ", "", false},         {"- ", "", false},
        {"", ": v", true},   {"a: [x, ", ", y]", false}, {"{a: ", ", b: c}", false},
        {"{", ": v}", true},
    };
    char text[16] = "x";
    size_t len = 1 + utf8_write(code, text + 1);
    text[len++] = 'y';
    const str forms[] = {{text, len}, {text + 1, len - 2}};
    for (size_t i = 0; i < COUNT(places) * COUNT(forms); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        AUTO(buf_done) struct buf out;
        buf_init(&out, 4096);
        str form = forms[i % COUNT(forms)];
        bool key = places[i / COUNT(forms)].key;
        buf_append(&out, str_c(places[i / COUNT(forms)].before));
        yaml_write(&out, form);
        buf_append(&out, str_c(places[i / COUNT(forms)].after));
        struct yaml_node *root = NULL;
        struct fault fault;
        if (parse(&arena, buf_str(&out), &root, &fault))
            fail_msg("U+%04X: %.*s: %s", code, STR_ARG(buf_str(&out)), fault.text);
        const struct yaml_node *node = root->type == YAML_SCALAR ? root : root->child;
        if (node->type == YAML_SEQUENCE) node = node->child->next;
        str got = key ? node->key : node->text;
        if (!str_eq(got, form) || node->null)
            fail_msg("U+%04X: %.*s was read as \"%.*s\"", code, STR_ARG(buf_str(&out)),
                     STR_ARG(got));
    }
}

static void written(void **state)
{
    (void)state;
    static const uint32_t ranges[][2] = {
        {1, 0x2FF},       {0x2000, 0x206F},  {0xD7F0, 0xD7FF},   {0xE000, 0xE00F},
        {0xFEF0, 0xFF0F}, {0xFFF0, 0x1000F}, {0x1FFF0, 0x1FFFF}, {0x10FFF0, 0x10FFFF},
    };
    for (size_t i = 0; i < COUNT(ranges); i++)
        for (uint32_t code = ranges[i][0]; code <= ranges[i][1]; code++) write_code(code);
}

static void written_words(void **state)
{
    (void)state;
    static const struct {
        const char *text, *plain, *quoted;
    } rows[] = {
        {"", "\"\"", "\"\""},
        {"a", "a", "\"a\""},
        {"a:", "\"a:\"", "\"a:\""},
        {"-1", "\"-1\"", "\"-1\""},
        {"null", "\"null\"", "\"null\""},
        {"~", "\"~\"", "\"~\""},
        {"1", "1", "\"1\""},
        {"a\nb\tc\"d\\e\x1b", "\"a\\nb\\tc\\\"d\\\\e\\x1B\"", "\"a\\nb\\tc\\\"d\\\\e\\x1B\""},
        {"\u2028", "\"\\u2028\"", "\"\\u2028\""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf out;
        buf_init(&out, 256);
        yaml_write(&out, str_c(rows[i].text));
        assert_str(buf_str(&out), str_c(rows[i].plain));
        buf_clear(&out);
        yaml_write_quoted(&out, str_c(rows[i].text));
        assert_str(buf_str(&out), str_c(rows[i].quoted));
    }
}

int test_yaml(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees),   cmocka_unit_test(refusals),
        cmocka_unit_test(limits),  cmocka_unit_test(hostile_names),
        cmocka_unit_test(written), cmocka_unit_test(written_words),
    };
    return cmocka_run_group_tests_name("app/yaml", tests, NULL, NULL);
}
