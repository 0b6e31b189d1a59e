/* SPDX-License-Identifier: Apache-2.0
 *
 * Cards as lines, for places that show letters and nothing else. The tree is walked once; each node
 * adds to the line it stands in or begins its own:
 *
 *     stack vertical, grid     a line for each child; a section has an empty line before it
 *     stack horizontal         its children beside each other on one line
 *     with align start         an entry of a list: behind a dot, or behind the number it begins with
 *     text, badge, kv          their words; [label]; `label: value`, a line each
 *     button                   a link with its address, else nothing
 *     anything else            its `fallback`, or nothing
 *
 * Invariants: 1. no more levels and nodes are looked at than a renderer draws;
 * 2. there is never an empty line at either end, nor two of them together; 3. a card that is cut ends
 * in an ellipsis, within chars_max.
 *
 * Markdown is in ui/markdown.c. To add a node: a row in `nodes` and its function.
 */
#include "ui/plain.h"

#include <string.h>

#include "base/json.h"
#include "ui/out.h"
#include "ui/text.h"

enum { DEPTH_MAX = 24, NODES_MAX = 2000, INDENT = 2 }; /* as renderers have it: spec of UiSchema */

struct page {
    struct arena *arena;
    enum ui_locale locale;
    struct out out;
    unsigned nodes, depth;
    unsigned indent; /* spaces before a line */
    bool beside;     /* nodes go on with the line */
    bool fresh;      /* nothing is on this line yet */
    bool gap;        /* an empty line is wanted before the next words */
};

/* ---- lines ---- */

static void new_line(struct page *page)
{
    if (!page->fresh) out_char(&page->out, '\n');
    page->fresh = true;
}

/* Before the first words of a line. */
static void begin_line(struct page *page)
{
    if (page->gap && page->out.len) out_char(&page->out, '\n');
    page->gap = false;
    for (unsigned i = 0; i < page->indent; i++) out_char(&page->out, ' ');
    page->fresh = false;
}

/* Words of others: no controls, nothing that turns what follows; a line end begins a line. */
static void put_words(struct page *page, str text)
{
    text = ui_trim(text);
    if (!text.len) return;
    if (!page->fresh && page->beside)
        out_char(&page->out, ' ');
    else
        new_line(page);
    while (text.len) {
        str rest = text;
        uint32_t code = ui_next_char(&rest);
        str one = {text.p, text.len - rest.len};
        text = rest;
        bool line = code == '\n' || code == 0x2028 || code == 0x2029;
        bool control = (code < ' ' && code != '\t') || (code >= 0x7f && code < 0xa0);
        bool turning = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
        if (line && page->fresh)
            page->gap = true; /* one empty line at most */
        else if (line)
            new_line(page);
        else if (!control && !turning) {
            if (page->fresh) begin_line(page);
            out_raw(&page->out, one);
        }
    }
}

/* ---- nodes ---- */

static void put_node(struct page *page, const struct json *node);

static bool is(const struct json *node, const char *key, const char *text)
{
    return str_eq(json_text(json_get(node, str_c(key))), str_c(text));
}

static void put_children(struct page *page, const struct json *first)
{
    for (const struct json *m = first; m; m = m->next) put_node(page, m);
}

/* Below each other, whatever stands around them. */
static void put_below(struct page *page, const struct json *first)
{
    bool beside = page->beside;
    page->beside = false;
    put_children(page, first);
    page->beside = beside;
}

/* The column of an entry: its first words beside the dot, the badges behind them, the rest below. */
static void put_column(struct page *page, const struct json *column, const struct json *beside)
{
    const struct json *children = json_get(column, STR("children"));
    const struct json *first = children ? children->child : NULL;
    if (!first) return;
    put_node(page, first);
    for (const struct json *m = beside; m; m = m->next)
        if (is(m, "type", "badge")) put_node(page, m);
    put_below(page, first->next);
}

static bool is_column(const struct json *node)
{
    return is(node, "type", "stack") && !is(node, "direction", "horizontal");
}

/* "• title [badge]", and what belongs to it below, further in. */
static void put_entry(struct page *page, const struct json *first)
{
    str number = is(first, "type", "badge") ? json_text(json_get(first, STR("label"))) : STR_EMPTY;
    size_t before = page->out.len;
    uint64_t counter;
    bool beside = page->beside, counted = str_to_u64(number, &counter) == OK, column = false;
    new_line(page);
    begin_line(page);
    if (counted) out_raw(&page->out, number);
    out_raw(&page->out, counted ? STR(".") : STR("•"));
    size_t bare = page->out.len;
    if (counted) first = first->next;
    page->indent += INDENT;
    page->beside = true;
    for (const struct json *m = first; m; m = m->next) {
        if (is_column(m) && !column)
            put_column(page, m, first);
        else if (!column || !is(m, "type", "badge"))
            put_node(page, m);
        column = column || is_column(m);
    }
    page->indent -= INDENT;
    page->beside = beside;
    if (page->out.len != bare) return;
    out_back(&page->out, before); /* nothing to see: a link that is none, an icon */
    page->fresh = !before || out_last(&page->out) == '\n';
}

static void put_stack(struct page *page, const struct json *node)
{
    const struct json *children = json_get(node, STR("children"));
    const struct json *first = children ? children->child : NULL;
    bool beside = page->beside;
    if (!first || children->type != JSON_ARRAY) return;
    if (is(node, "appearance", "section")) {
        new_line(page);
        page->gap = page->out.len > 0;
    }
    if (is_column(node)) { /* beside an icon it goes on with that line, once */
        put_node(page, first);
        put_below(page, first->next);
        return;
    }
    if (is(node, "align", "start")) {
        put_entry(page, first);
        return;
    }
    new_line(page);
    page->beside = true;
    put_children(page, first);
    page->beside = beside;
}

static void put_grid(struct page *page, const struct json *node)
{
    const struct json *children = json_get(node, STR("children"));
    if (children && children->type == JSON_ARRAY) put_below(page, children->child);
}

static void put_text(struct page *page, const struct json *node)
{
    str content = json_text(json_get(node, STR("content")));
    const struct json *visible = json_get(node, STR("visible"));
    if (visible && visible->type == JSON_FALSE) return;
    bool markdown = is(node, "format", "markdown");
    put_words(page, markdown ? plain_markdown(page->arena, content) : content);
}

static void put_badge(struct page *page, const struct json *node)
{
    str label = ui_line(page->arena, json_text(json_get(node, STR("label"))), SIZE_MAX / 8);
    struct out words;
    if (!label.len) return;
    out_init(&words, page->arena, label.len + 2, SIZE_MAX / 4);
    out_char(&words, '[');
    out_raw(&words, label);
    out_char(&words, ']');
    put_words(page, out_str(&words));
}

/* `name: words`, on a line of its own. */
static void put_pair(struct page *page, str name, str words)
{
    bool beside = page->beside;
    struct out line;
    name = ui_trim(name);
    words = ui_trim(words);
    out_init(&line, page->arena, name.len + words.len + 4, SIZE_MAX / 4);
    out_raw(&line, name);
    if (name.len && words.len) out_raw(&line, page->locale == UI_ZH ? STR("：") : STR(": "));
    out_raw(&line, words);
    page->beside = false;
    put_words(page, out_str(&line));
    page->beside = beside;
}

static str value_words(struct page *page, const struct json *value)
{
    struct out words;
    if (!value || value->type == JSON_NULL) return STR_EMPTY;
    if (value->type == JSON_STRING) return value->text;
    out_init(&words, page->arena, 0, SIZE_MAX / 4);
    out_json(&words, value);
    return out_str(&words);
}

static void put_kv(struct page *page, const struct json *node)
{
    const struct json *items = json_get(node, STR("items"));
    for (const struct json *m = items ? items->child : NULL; m; m = m->next) {
        str label = json_text(json_get(m, STR("label")));
        if (!ui_trim(label).len) label = json_text(json_get(m, STR("key")));
        put_pair(page, label, value_words(page, json_get(m, STR("value"))));
    }
}

/* Only what leads out of here can be followed by who reads letters: an address of ours is half of one. */
static void put_button(struct page *page, const struct json *node)
{
    const struct json *action = json_get(node, STR("action"));
    str url = json_text(json_get(action, STR("url")));
    if (!is(action, "type", "url") || str_starts(url, STR("/"))) return;
    put_pair(page, json_text(json_get(node, STR("label"))), url);
}

static void put_nothing(struct page *page, const struct json *node)
{
    (void)page;
    (void)node;
}

static const struct {
    const char *type;
    void (*put)(struct page *page, const struct json *node);
} nodes[] = {
    {"stack", put_stack},   {"grid", put_grid}, {"text", put_text},    {"badge", put_badge},
    {"button", put_button}, {"kv", put_kv},     {"icon", put_nothing}, {"divider", put_nothing},
};

static void put_node(struct page *page, const struct json *node)
{
    str type = json_text(json_get(node, STR("type")));
    if (page->depth == DEPTH_MAX || page->nodes == NODES_MAX) return;
    page->nodes++;
    page->depth++;
    size_t i = 0;
    while (i < COUNT(nodes) && !str_eq(type, str_c(nodes[i].type))) i++;
    if (i < COUNT(nodes))
        nodes[i].put(page, node);
    else
        put_words(page, json_text(json_get(node, STR("fallback"))));
    page->depth--;
}

/* ---- the whole ---- */

/* At most so many characters; where it is cut, at a line if one is near, an ellipsis. */
static str cut(struct arena *arena, str text, size_t chars_max)
{
    static const str ellipsis = STR("…");
    size_t chars = 0, at = 0, line = 0;
    for (str rest = text; rest.len && chars <= chars_max; chars++) {
        if (chars + 1 == chars_max) at = text.len - rest.len;
        if (chars < chars_max && rest.p[0] == '\n') line = text.len - rest.len;
        ui_next_char(&rest);
    }
    if (chars <= chars_max) return text;
    if (line > at / 2 && line < at) at = line + 1; /* the ellipsis stands on a line of its own */
    char *copy = arena_alloc(arena, at + ellipsis.len);
    if (at) memcpy(copy, text.p, at);
    if (chars_max) memcpy(copy + at, ellipsis.p, ellipsis.len);
    return (str){copy, chars_max ? at + ellipsis.len : 0};
}

str plain_card(struct arena *arena, str card, enum ui_locale locale, size_t chars_max)
{
    struct json *json = NULL;
    struct page page = {.arena = arena, .locale = locale, .fresh = true};
    if (json_parse(arena, card, &json, NULL)) return STR_EMPTY;
    const struct json *root = json_get(json, STR("root"));
    if (!root || root->type != JSON_OBJECT) return STR_EMPTY;
    out_init(&page.out, arena, card.len / 2, SIZE_MAX / 4);
    put_node(&page, root);
    return cut(arena, ui_trim(out_str(&page.out)), chars_max);
}
