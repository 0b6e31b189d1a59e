/* SPDX-License-Identifier: Apache-2.0
 *
 * The card compiler: the corpus of tests/ui byte for byte, the context, what a failure leaves alone,
 * and the limits at their edges. In JSON written here ' stands for ".
 */
#include "ui/compile.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "check.h"

static struct json *parsed(struct arena *arena, str text)
{
    struct json *json = NULL;
    struct json_error why;
    if (json_parse(arena, text, &json, &why))
        fail_msg("%s at byte %zu of %.60s", why.reason, why.offset, text.p);
    return json;
}

static struct json *quoted(struct arena *arena, const char *text)
{
    char *copy = arena_cstr(arena, str_c(text));
    for (char *c = copy; *c; c++)
        if (*c == '\'') *c = '"';
    return parsed(arena, str_c(copy));
}

static str compiled(struct arena *arena, const struct json *hints, const struct ui_context *context)
{
    str schema = STR_EMPTY;
    struct fault why = {0};
    if (ui_compile(arena, hints, context, &schema, &why)) fail_msg("%s %s", why.field, why.text);
    return schema;
}

/* ---- the corpus ---- */

static void check_case(struct arena *arena, const char *name, str text)
{
    const struct json *file = parsed(arena, text);
    const struct json *hints = json_get(file, STR("hints"));
    const struct json *schema = json_get(file, STR("schema"));
    const struct json *error = json_get(file, STR("error"));
    struct ui_context context = {.locale = json_text(json_get(file, STR("locale")))};
    str got = STR("untouched");
    struct fault why = {0};
    assert_true(hints && !schema != !error);
    enum err e = ui_compile(arena, hints, &context, &got, &why);
    if (schema) {
        if (e) fail_msg("%s: %s %s", name, why.field, why.text);
        if (!str_eq(got, schema->raw)) print_message("%s differs\n", name);
        assert_str(got, schema->raw);
        return;
    }
    assert_int_equal(e, ERR_INVALID_HINTS);
    assert_str(got, STR("untouched"));
    assert_str(str_c(why.field), json_text(json_get(error, STR("path"))));
    assert_true(why.text[0]);
    assert_int_equal(ui_compile(arena, hints, &context, &got, NULL), ERR_INVALID_HINTS);
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
        arena_init(&arena);
        str path = arena_printf(&arena, SOURCE_ROOT "/tests/ui/%s", entry->d_name), text;
        assert_int_equal(file_read(&arena, path.p, 1024 * 1024, &text, NULL), OK);
        check_case(&arena, entry->d_name, text);
        count++;
    }
    closedir(folder);
    assert_true(count >= 60);
}

/* ---- the context ---- */

static void contexts(void **state)
{
    (void)state;
    static const struct {
        struct ui_context context;
        const char *head;
    } rows[] = {
        {{.theme = UI_THEME_DEFAULT},
         "{'version':'2.0','locale':'en','status':'info','theme':'default','root':"},
        {{.locale = STR("zh"), .theme = UI_THEME_DARK},
         "{'version':'2.0','locale':'zh-CN','status':'info','theme':'dark','root':"},
        {{.locale = STR("fr"), .theme = UI_THEME_LIGHT, .tool_id = STR("t\"")},
         "{'version':'2.0','locale':'en','status':'info','theme':'light','meta':{'toolId':'t\\''},"
         "'root':"},
        {{STR("zh-CN"), UI_THEME_DEFAULT, STR("r"), STR("t"), STR("x"), STR("u")},
         "{'version':'2.0','locale':'zh-CN','status':'info','theme':'default','meta':{"
         "'requestId':'r','toolId':'t','traceId':'x','userId':'u'},'root':"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        const struct json *hints =
            quoted(&arena, "{'version':'2.1','intent':'message','status':'info','title':'x'}");
        char *head = arena_cstr(&arena, str_c(rows[i].head));
        for (char *c = head; *c; c++)
            if (*c == '\'') *c = '"';
        str schema = compiled(&arena, hints, &rows[i].context);
        if (!str_starts(schema, str_c(head))) fail_msg("%.*s", STR_ARG(schema));
    }
}

static void same_bytes(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    const struct json *hints =
        quoted(&arena,
               "{'version':'2.1','intent':'list','status':'error','listItems':[{'title':'a',"
               "'actions':[{'label':'b','action':{'type':'copy','content':'c'}}]}]}");
    struct ui_context context = {0};
    str first = compiled(&arena, hints, &context);
    for (int i = 0; i < 3; i++) assert_str(compiled(&arena, hints, &context), first);
}

/* ---- limits ---- */

struct tally {
    size_t nodes, depth;
};

static void tally_node(const struct json *node, size_t depth, struct tally *tally)
{
    tally->nodes++;
    if (depth > tally->depth) tally->depth = depth;
    const struct json *children = json_get(node, STR("children"));
    assert_true(!children || children->count > 0);
    for (const struct json *m = children ? children->child : NULL; m; m = m->next)
        tally_node(m, depth + 1, tally);
}

static struct tally tallied(struct arena *arena, str schema)
{
    struct tally tally = {0};
    tally_node(json_get(parsed(arena, schema), STR("root")), 1, &tally);
    assert_true(tally.nodes <= UI_SCHEMA_NODES_MAX);
    assert_true(tally.depth <= UI_SCHEMA_DEPTH_MAX);
    assert_true(schema.len <= UI_SCHEMA_BYTES_MAX);
    return tally;
}

static const str caption = STR("This card is too long to show; the rest is left out.");

/* A body of `bytes` letters, in a card. */
static const struct json *long_body(struct arena *arena, size_t bytes)
{
    static const char head[] =
        "{\"version\":\"2.1\",\"intent\":\"message\",\"status\":\"info\",\"body\":\"";
    size_t len = sizeof head - 1;
    char *text = arena_alloc(arena, len + bytes + 2);
    memcpy(text, head, len);
    memset(text + len, 'x', bytes);
    memcpy(text + len + bytes, "\"}", 2);
    return parsed(arena, (str){text, len + bytes + 2});
}

static void bytes_limit(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct ui_context context = {0};
    size_t bare = compiled(&arena, long_body(&arena, 1), &context).len - 1;
    str whole = compiled(&arena, long_body(&arena, UI_SCHEMA_BYTES_MAX - bare), &context);
    assert_int_equal(whole.len, UI_SCHEMA_BYTES_MAX);
    assert_true(str_find(whole, caption) < 0);
    for (size_t more = 1; more < 200; more++) {
        AUTO(arena_done) struct arena own;
        arena_init(&own);
        str cut = compiled(&own, long_body(&own, UI_SCHEMA_BYTES_MAX - bare + more), &context);
        assert_int_equal(cut.len, UI_SCHEMA_BYTES_MAX); /* of letters as many as fit */
        assert_true(str_find(cut, caption) > 0);
        assert_int_equal(tallied(&own, cut).nodes, 3);
    }
}

/* Cards of every length around the limit, so that each kind of node is the one that does not fit. */
static void bytes_cut_anywhere(void **state)
{
    (void)state;
    static const char tail[] =
        "'items':[{'key':'k1','value':'v1'},{'key':'k2','value':{'a':[1,'x']}},{'key':'k3',"
        "'value':3,'copyable':true},{'key':'k4','value':4}],'listItems':[{'title':'t','icon':'i'},"
        "{'title':'t2','subtitle':'s','badge':{'label':'b'},'actions':[{'label':'l','action':"
        "{'type':'event','event':'e','payload':{}}}]}],'sections':[{'title':'s','status':'error',"
        "'items':[{'key':'a','value':1}]}],'actions':[{'label':'z','action':{'type':'url',"
        "'url':'/x'}}]}";
    struct ui_context context = {.locale = STR("en")};
    for (size_t bytes = UI_SCHEMA_BYTES_MAX - 2600; bytes < UI_SCHEMA_BYTES_MAX; bytes += 7) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        static const char head[] = "{'version':'2.1','intent':'data','status':'info','body':'";
        char *text = arena_alloc(&arena, sizeof head + bytes + sizeof tail + 2);
        size_t len = sizeof head - 1;
        memcpy(text, head, len);
        memset(text + len, 'x', bytes);
        len += bytes;
        memcpy(text + len, "',", 2);
        memcpy(text + len + 2, tail, sizeof tail - 1);
        len += 2 + sizeof tail - 1;
        for (size_t i = 0; i < len; i++)
            if (text[i] == '\'') text[i] = '"';
        str schema = compiled(&arena, parsed(&arena, (str){text, len}), &context);
        tallied(&arena, schema);
        bool whole = str_find(schema, STR("\"url\":\"/x\"")) > 0;
        assert_true(whole == (str_find(schema, caption) < 0));
        assert_true(str_find(schema, STR("{\"type\":\"divider\"}]")) < 0);
    }
}

static void nodes_limit(void **state)
{
    (void)state;
    struct ui_context context = {0};
    for (size_t entries = 160; entries < 175; entries++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        AUTO(buf_done) struct buf text;
        buf_init(&text, 64 * 1024);
        buf_append(&text, STR("{\"version\":\"2.1\",\"intent\":\"list\",\"status\":\"info\","
                              "\"body\":\"b\",\"listItems\":["));
        for (size_t i = 0; i < entries; i++)
            buf_append(&text, i ? STR(",{\"title\":\"t\"}") : STR("{\"title\":\"t\"}"));
        buf_append(&text, STR("]}"));
        str schema = compiled(&arena, parsed(&arena, buf_str(&text)), &context);
        size_t wanted = 2 + 3 * entries; /* root, body, stack; two an entry, dividers between */
        struct tally tally = tallied(&arena, schema);
        bool cut = wanted > UI_SCHEMA_NODES_MAX;
        assert_true(cut == (str_find(schema, caption) > 0));
        if (!cut) assert_int_equal(tally.nodes, wanted);
        if (cut) assert_true(tally.nodes > UI_SCHEMA_NODES_MAX - 3);
        assert_true(str_find(schema, STR("{\"type\":\"divider\"}]")) < 0);
    }
}

int test_compile(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corpus),      cmocka_unit_test(contexts),
        cmocka_unit_test(same_bytes),  cmocka_unit_test(bytes_limit),
        cmocka_unit_test(nodes_limit), cmocka_unit_test(bytes_cut_anywhere),
    };
    return cmocka_run_group_tests_name("compile", tests, NULL, NULL);
}
