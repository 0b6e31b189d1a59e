/* SPDX-License-Identifier: Apache-2.0
 *
 * Any JSON as hints. They are refused with a reason and a JSON Pointer that leads to what is there,
 * or to the place of what is missing; or they become a card: one line of JSON within the limits, no
 * stack empty, buttons numbered, one of them primary at most, no link that runs code, and the same
 * bytes a second time. The same JSON as a tool's result has a summary that is one short line.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "ui/card_link.h"
#include "ui/compile.h"
#include "ui/summary.h"
#include "ui/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) abort();
}

struct tally {
    unsigned nodes, buttons, primary;
};

static bool has(const struct json *node, const char *key, const char *text)
{
    return str_eq(json_text(json_get(node, str_c(key))), str_c(text));
}

static void check_button(const struct json *node, struct tally *tally)
{
    char id[16];
    snprintf(id, sizeof id, "a%u", tally->buttons++);
    must(has(node, "id", id));
    must(json_text(json_get(node, STR("label"))).len);
    tally->primary += has(node, "style", "primary");
    const struct json *action = json_get(node, STR("action"));
    const struct json *url = json_get(action, STR("url"));
    const struct json *path = json_get(action, STR("path"));
    const struct json *submit = json_get(action, STR("submitTo"));
    if (has(action, "type", "url")) must(link_is_safe(json_text(url)));
    if (has(action, "type", "navigation")) must(link_is_path(json_text(path)));
    if (has(action, "type", "payload") && submit) must(link_is_path(json_text(submit)));
}

static void check_node(const struct json *node, unsigned depth, struct tally *tally)
{
    tally->nodes++;
    must(depth <= UI_SCHEMA_DEPTH_MAX);
    must(json_text(json_get(node, STR("type"))).len);
    if (has(node, "type", "button")) check_button(node, tally);
    if (has(node, "type", "text")) must(json_text(json_get(node, STR("content"))).len);
    if (has(node, "type", "kv")) must(json_get(node, STR("items"))->count);
    const struct json *children = json_get(node, STR("children"));
    must(!children == !(has(node, "type", "stack") || has(node, "type", "grid")));
    if (!children) return;
    must(children->count);
    for (const struct json *m = children->child; m; m = m->next) check_node(m, depth + 1, tally);
}

static void check_card(struct arena *arena, str schema)
{
    struct json *json = NULL;
    struct tally tally = {0};
    must(schema.len <= UI_SCHEMA_BYTES_MAX);
    must(str_find_char(schema, '\n') < 0 && str_find_char(schema, '\r') < 0);
    must(!json_parse(arena, schema, &json, NULL));
    check_node(json_get(json, STR("root")), 1, &tally);
    must(tally.nodes <= UI_SCHEMA_NODES_MAX && tally.primary <= 1);
}

/* The last step may name what is missing. */
static void check_pointer(const struct json *json, str pointer)
{
    must(!pointer.len || pointer.p[0] == '/');
    if (pointer.len) pointer = str_drop(pointer, 1);
    while (pointer.len) {
        str step = str_split(&pointer, '/');
        must(json != NULL);
        uint64_t index;
        if (json->type == JSON_OBJECT)
            json = json_get(json, step);
        else if (json->type == JSON_ARRAY && !str_to_u64(step, &index))
            json = json_at(json, index);
        else
            abort();
    }
}

static void check_compiled(struct arena *arena, const struct json *hints, bool zh)
{
    struct ui_context context = {.locale = zh ? STR("zh-CN") : STR("en"), .user_id = STR("u")};
    struct fault why = {0};
    str schema, again;
    enum err e = ui_compile(arena, hints, &context, &schema, &why);
    if (e) {
        must(e == ERR_INVALID_HINTS && why.err == e && why.text[0]);
        check_pointer(hints, str_c(why.field));
        return;
    }
    check_card(arena, schema);
    must(!ui_compile(arena, hints, &context, &again, NULL) && str_eq(schema, again));
}

static void check_summary(struct arena *arena, const struct json *json, bool zh)
{
    static const str tools[] = {STR("calendar_write"), STR("calendar_read"), STR("user_resolve"),
                                STR("shop")};
    for (size_t i = 0; i < COUNT(tools); i++) {
        struct summary_source source = {
            .tool = tools[i],
            .template_en = i == 3 ? json_text(json_get(json, STR("title"))) : STR_EMPTY,
            .args = json,
            .result = json,
            .error = {NULL, 0},
            .locale = zh ? STR("zh") : STR("en"),
        };
        if (i == 2 && json->type == JSON_STRING) source.error = json->text;
        str line = build_tool_content_summary(arena, &source);
        must(line.len && utf8_valid(line) && str_find_char(line, '\n') < 0);
        size_t chars = 0;
        for (str rest = line; rest.len; chars++) ui_next_char(&rest);
        must(chars <= SUMMARY_CHARS_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct json *json = NULL;
    if (json_parse(&arena, (str){(const char *)data, size}, &json, NULL)) return 0;
    check_compiled(&arena, json, size & 1);
    check_summary(&arena, json, size & 1);
    return 0;
}
