/* SPDX-License-Identifier: Apache-2.0
 *
 * The card compiler: UiHints 2.1 to UiSchema 2.0, its layout rules, and the cut of what is too
 * long. hints.c has read the hints and thrown out what is empty; here each part becomes its nodes,
 * always in the same order, and the nodes become bytes at once:
 *
 *     stack (card or plain)                       the root
 *       stack horizontal                          header: icon, title, badge
 *       text caption                              description; subtitle in a section
 *       text body or code
 *       kv                                        items
 *       stack                                     list: rows with dividers between
 *         stack horizontal                          icon, column of texts, kv and buttons, badge
 *       stack section | grid of them              sections, each like the root without sections
 *       stack horizontal, wrap                    actions
 *
 * Limits. A card is written once within the limits. If it does not fit, it is written again with
 * room kept for one caption: nodes are added as long as they fit, a long text is cut at a character,
 * and from the first part that does not fit on nothing more is added but the caption. Invariants:
 *
 * 1. A node is there as a whole or not at all: begin() remembers the place, end() goes back to it.
 * 2. out.limit leaves room for the brackets of all open nodes, so closing never fails.
 * 3. No stack is empty: close_stack() takes one back that has no children.
 * 4. Hints do not nest, so the deepest card has 7 levels; begin() asserts the limit.
 *
 * To add a node: its put_ function between begin() and end(), a definition in
 * docs/schema/ui-schema-2.0.json, a case in tests/ui.
 */
#include "ui/compile.h"

#include "base/limits.h"
#include "ui/hints.h"
#include "ui/locale.h"
#include "ui/out.h"
#include "ui/text.h"

static const struct {
    str label[UI_LOCALES];
    str icon; /* for intent status, when none is given */
} statuses[] = {
    [STATUS_INFO] = {{STR("Info"), STR("提示")}, STR("info")},
    [STATUS_SUCCESS] = {{STR("Success"), STR("成功")}, STR("circle-check")},
    [STATUS_WARNING] = {{STR("Warning"), STR("警告")}, STR("triangle-alert")},
    [STATUS_ERROR] = {{STR("Error"), STR("错误")}, STR("circle-x")},
    [STATUS_PENDING] = {{STR("Pending"), STR("进行中")}, STR("clock")},
};

#define CAPTION(text) \
    STR("{\"type\":\"text\",\"content\":\"" text "\",\"format\":\"plain\",\"role\":\"caption\"}")
static const str cut_captions[UI_LOCALES] = {
    CAPTION("This card is too long to show; the rest is left out."),
    CAPTION("卡片内容过长，其余部分已省略。"),
};

static const str themes[] = {STR("default"), STR("light"), STR("dark")};

struct compile_card {
    struct out out;
    struct out scratch; /* values as text */
    const struct hints *hints;
    enum ui_locale locale;
    bool second; /* the card is known to be too long */
    bool cut;    /* nothing more is added */
    unsigned nodes, nodes_max, depth, buttons;
    bool primary; /* the card has its primary button */
};

/* ---- nodes ---- */

struct compile_place {
    size_t len;
    unsigned nodes, buttons;
    bool primary;
};

static void go_back(struct compile_card *c, const struct compile_place *at)
{
    out_back(&c->out, at->len);
    c->nodes = at->nodes;
    c->buttons = at->buttons;
    c->primary = at->primary;
}

/* False, and nothing done, if the card is full. */
static bool begin(struct compile_card *c, struct compile_place *ret_at)
{
    assert(c->depth < UI_SCHEMA_DEPTH_MAX);
    if (c->nodes == c->nodes_max) c->cut = true;
    if (c->cut) return false;
    *ret_at = (struct compile_place){c->out.len, c->nodes, c->buttons, c->primary};
    c->nodes++;
    if (out_last(&c->out) == '}') out_char(&c->out, ',');
    return true;
}

/* False, and gone, if it did not fit. */
static bool end(struct compile_card *c, const struct compile_place *at)
{
    if (!c->out.over) return true;
    go_back(c, at);
    c->cut = true;
    return false;
}

/* What opens a stack; the order of the members is that of the format. */
#define STACK(direction, more)                                                     \
    STR("{\"type\":\"stack\",\"direction\":\"" direction "\",\"appearance\":" more \
        ",\"children\":[")
static const str card_stack = STACK("vertical", "\"card\"");
static const str plain_stack = STACK("vertical", "\"plain\"");
static const str header_stack = STACK("horizontal", "\"plain\",\"align\":\"center\"");
static const str row_stack = STACK("horizontal", "\"plain\",\"align\":\"start\"");
static const str action_stack = STACK("horizontal", "\"plain\",\"wrap\":true");
static const str grid_of_two =
    STR("{\"type\":\"grid\",\"columns\":2,\"appearance\":\"plain\",\"children\":[");
#define SECTION(more)      STACK("vertical", "\"section\"" more)
#define SECTION_OF(status) SECTION(",\"status\":\"" status "\"")
static const str section_stacks[] = {
    SECTION(""),
    [STATUS_INFO] = SECTION_OF("info"),
    [STATUS_SUCCESS] = SECTION_OF("success"),
    [STATUS_WARNING] = SECTION_OF("warning"),
    [STATUS_ERROR] = SECTION_OF("error"),
    [STATUS_PENDING] = SECTION_OF("pending"),
};

static const str closing = STR("]}");

/* A stack begins: its children follow, then close_stack. False if it does not fit. */
static bool open_stack(struct compile_card *c, str head, struct compile_place *ret_at)
{
    struct out *out = &c->out;
    if (!begin(c, ret_at)) return false;
    out_raw(out, head);
    out->limit -= closing.len;
    if (out->len > out->limit) out->over = true;
    if (end(c, ret_at)) {
        c->depth++;
        return true;
    }
    out->limit += closing.len;
    return false;
}

static void close_stack(struct compile_card *c, const struct compile_place *at)
{
    c->depth--;
    c->out.limit += closing.len;
    if (out_last(&c->out) == '[')
        go_back(c, at);
    else
        out_raw(&c->out, closing);
}

/* A string that is cut where the room ends, with an ellipsis, and what ends its node. */
static void put_beginning(struct compile_card *c, str text, str tail)
{
    static const str ellipsis = STR("…");
    struct out *out = &c->out;
    size_t room = out->limit - out->len, need = 2 + ellipsis.len + tail.len;
    size_t fitting = room > need ? out_fitting(text, room - need) : 0;
    out_char(out, '"');
    out_escaped(out, (str){text.p, fitting});
    out_raw(out, ellipsis);
    out_char(out, '"');
    out_raw(out, tail);
    if (!fitting) out->over = true;
    c->cut = true;
}

/* A string, and what ends its node. It is cut only in the second writing. */
static void put_string(struct compile_card *c, str text, str tail)
{
    struct out *out = &c->out;
    if (out->over) return;
    size_t room = out->limit - out->len, need = 2 + tail.len;
    bool fits = room >= need && text.len <= room - need;
    if (fits && c->second) fits = out_fitting(text, room - need) == text.len;
    if (!fits) {
        if (c->second)
            put_beginning(c, text, tail);
        else
            out->over = true;
        return;
    }
    out_string(out, text);
    out_raw(out, tail);
}

static void put_text(struct compile_card *c, str text, str tail)
{
    struct compile_place at;
    if (!text.len || !begin(c, &at)) return;
    out_raw(&c->out, STR("{\"type\":\"text\",\"content\":"));
    put_string(c, text, tail);
    end(c, &at);
}

#define TEXT(format, role) STR(",\"format\":\"" format "\",\"role\":\"" role "\"}")

static void put_body(struct compile_card *c, const struct hint_part *part)
{
    if (part->code)
        put_text(c, part->body, TEXT("plain", "code"));
    else if (part->body_format == FORMAT_MARKDOWN)
        put_text(c, part->body, TEXT("markdown", "body"));
    else
        put_text(c, part->body, TEXT("plain", "body"));
}

static void put_icon_members(struct out *out, const struct hint_icon *icon)
{
    if (icon->size) out_member(out, STR("size"), words_at(&words_size, icon->size));
    if (icon->status) out_member(out, STR("status"), words_at(&words_status, icon->status));
    out_char(out, '}');
}

static void put_icon(struct compile_card *c, const struct hint_icon *icon)
{
    struct compile_place at;
    if (!icon->name.len || !begin(c, &at)) return;
    out_raw(&c->out, STR("{\"type\":\"icon\",\"name\":"));
    out_string(&c->out, icon->name);
    put_icon_members(&c->out, icon);
    end(c, &at);
}

static void put_badge(struct compile_card *c, str label, unsigned status)
{
    struct compile_place at;
    if (!label.len || !begin(c, &at)) return;
    out_raw(&c->out, STR("{\"type\":\"badge\",\"label\":"));
    out_string(&c->out, label);
    if (status) out_member(&c->out, STR("status"), words_at(&words_status, status));
    out_char(&c->out, '}');
    end(c, &at);
}

static void put_divider(struct compile_card *c)
{
    struct compile_place at;
    if (!begin(c, &at)) return;
    out_raw(&c->out, STR("{\"type\":\"divider\"}"));
    end(c, &at);
}

/* ---- key and value ---- */

static void put_value(struct compile_card *c, const struct json *value, str tail)
{
    if (value->type == JSON_STRING) {
        put_string(c, ui_trim(value->text), tail);
    } else if (value->type == JSON_OBJECT || value->type == JSON_ARRAY) {
        struct out *text = &c->scratch;
        out_clear(text);
        out_json(text, value);
        if (!text->over)
            put_string(c, out_str(text), tail);
        else if (c->second && !c->out.over)
            put_beginning(c, out_str(text), tail);
        else
            c->out.over = true;
    } else {
        out_raw(&c->out, value->raw);
        out_raw(&c->out, tail);
    }
}

enum { KV_COLUMNS_FROM = 4 }; /* items from which on two columns read better than one */

static void put_kv(struct compile_card *c, const struct hint_list *items)
{
    struct compile_place at;
    if (!items->count || !begin(c, &at)) return;
    struct out *out = &c->out;
    bool columns = items->count >= KV_COLUMNS_FROM && c->hints->intent != INTENT_FORM;
    str tail = columns ? STR("],\"columns\":2}") : closing;
    out->limit -= tail.len;
    out_raw(out, STR("{\"type\":\"kv\",\"items\":["));
    const struct hint_kv *kv = items->items;
    for (size_t i = 0; i < items->count && !c->cut && !out->over; i++) {
        size_t before = out->len;
        out_raw(out, out_last(out) == '}' ? STR(",{\"key\":") : STR("{\"key\":"));
        out_string(out, kv[i].key);
        if (kv[i].label.len) out_member(out, STR("label"), kv[i].label);
        out_raw(out, STR(",\"value\":"));
        put_value(c, kv[i].value, kv[i].copyable ? STR(",\"copyable\":true}") : STR("}"));
        if (!out->over || i == 0) continue;
        out_back(out, before);
        c->cut = true;
    }
    out->limit += tail.len;
    out_raw(out, tail);
    end(c, &at);
}

/* ---- actions ---- */

static void put_act(struct out *out, const struct hint_act *act)
{
    out_raw(out, STR(",\"action\":{\"type\":"));
    out_string(out, hint_act_name(act->kind));
    const struct shape *shape = hint_act_shape(act->kind);
    for (size_t i = 0; i < shape->count; i++) {
        const struct field *field = &shape->fields[i];
        const void *from = (const char *)act + field->offset;
        if (field->type == FIELD_OBJECT) {
            const struct json *json = *(const struct json *const *)from;
            if (!json) continue;
            out_raw(out, STR(",\""));
            out_raw(out, field->name);
            out_raw(out, STR("\":"));
            out_json(out, json);
        } else if (field->type == FIELD_WORD) {
            unsigned value = *(const unsigned *)from;
            if (value) out_member(out, field->name, words_at(field->words, value));
        } else {
            const str *text = from;
            if (field->required || text->len) out_member(out, field->name, *text);
        }
    }
    out_char(out, '}');
}

/* One button of a card may be primary: the first that asks, in a form the first of its own. */
static unsigned pick_style(struct compile_card *c, const struct hint_action *action, bool leads)
{
    if (leads) return STYLE_PRIMARY;
    if (action->style != STYLE_PRIMARY) return action->style ? action->style : STYLE_SECONDARY;
    if (c->primary) return STYLE_SECONDARY;
    c->primary = true;
    return STYLE_PRIMARY;
}

static void put_button(struct compile_card *c, const struct hint_action *action, bool leads)
{
    struct compile_place at;
    if (!begin(c, &at)) return;
    struct out *out = &c->out;
    out_raw(out, STR("{\"type\":\"button\",\"id\":\"a"));
    out_u64(out, c->buttons++);
    out_char(out, '"');
    out_member(out, STR("label"), action->label);
    out_member(out, STR("style"), words_at(&words_style, pick_style(c, action, leads)));
    if (action->disabled) out_raw(out, STR(",\"disabled\":true"));
    if (action->icon.name.len) {
        out_raw(out, STR(",\"icon\":{\"name\":"));
        out_string(out, action->icon.name);
        put_icon_members(out, &action->icon);
    }
    put_act(out, &action->act);
    out_char(out, '}');
    end(c, &at);
}

static void put_actions(struct compile_card *c, const struct hint_list *actions, bool form)
{
    struct compile_place at;
    if (!actions->count || !open_stack(c, action_stack, &at)) return;
    const struct hint_action *action = actions->items;
    for (size_t i = 0; i < actions->count && !c->cut; i++)
        put_button(c, &action[i], form && i == 0);
    close_stack(c, &at);
}

/* ---- lists ---- */

static void put_column(struct compile_card *c, const struct hint_item *item)
{
    struct compile_place at;
    int parts = (item->title.len > 0) + (item->subtitle.len > 0) + (item->description.len > 0) +
                (item->items.count > 0) + (item->actions.count > 0);
    bool alone = parts < 2; /* one part needs no stack around it */
    if (!alone && !open_stack(c, plain_stack, &at)) return;
    put_text(c, item->title, TEXT("plain", "title"));
    put_text(c, item->subtitle, TEXT("plain", "subtitle"));
    put_text(c, item->description, TEXT("plain", "caption"));
    put_kv(c, &item->items);
    put_actions(c, &item->actions, false);
    if (!alone) close_stack(c, &at);
}

static void put_row(struct compile_card *c, const struct hint_item *item)
{
    struct compile_place at;
    if (!open_stack(c, row_stack, &at)) return;
    put_icon(c, &item->icon);
    put_column(c, item);
    put_badge(c, item->badge.label, item->badge.status);
    close_stack(c, &at);
}

static void put_list(struct compile_card *c, const struct hint_list *items)
{
    struct compile_place at;
    if (!items->count || !open_stack(c, plain_stack, &at)) return;
    const struct hint_item *item = items->items;
    for (size_t i = 0; i < items->count && !c->cut; i++) {
        struct compile_place before = {c->out.len, c->nodes, c->buttons, c->primary};
        if (i) put_divider(c);
        size_t len = c->out.len;
        put_row(c, &item[i]);
        if (c->out.len == len) go_back(c, &before); /* no divider behind the last */
    }
    close_stack(c, &at);
}

/* ---- parts ---- */

static void put_header(struct compile_card *c, const struct hint_part *part, bool root)
{
    bool always = root && c->hints->intent == INTENT_STATUS;
    bool badge = always || part->status > STATUS_INFO;
    struct hint_icon icon = part->icon;
    if (always && !icon.name.len)
        icon = (struct hint_icon){.name = statuses[part->status].icon, .status = part->status};
    struct compile_place at;
    if (!open_stack(c, header_stack, &at)) return;
    put_icon(c, &icon);
    put_text(c, part->title, TEXT("plain", "title"));
    if (badge) put_badge(c, statuses[part->status].label[c->locale], part->status);
    close_stack(c, &at);
}

static void put_section(struct compile_card *c, const struct hint_part *section)
{
    struct compile_place at;
    if (!open_stack(c, section_stacks[section->status], &at)) return;
    put_header(c, section, false);
    put_text(c, section->description, TEXT("plain", "subtitle"));
    put_body(c, section);
    put_kv(c, &section->items);
    put_list(c, &section->list_items);
    put_actions(c, &section->actions, false);
    close_stack(c, &at);
}

/* Data side by side: every section has items, and nothing that needs the width. */
static bool is_grid(const struct hints *hints)
{
    const struct hint_part *section = hints->card.sections.items;
    if (hints->intent != INTENT_DATA) return false;
    for (size_t i = 0; i < hints->card.sections.count; i++) {
        const struct hint_part *s = &section[i];
        if (!s->items.count || s->body.len || s->list_items.count || s->actions.count) return false;
    }
    return true;
}

static void put_sections(struct compile_card *c)
{
    const struct hint_list *sections = &c->hints->card.sections;
    const struct hint_part *section = sections->items;
    struct compile_place at;
    bool grid = is_grid(c->hints);
    if (!sections->count || (grid && !open_stack(c, grid_of_two, &at))) return;
    for (size_t i = 0; i < sections->count && !c->cut; i++) put_section(c, &section[i]);
    if (grid) close_stack(c, &at);
}

static void put_card(struct compile_card *c)
{
    const struct hint_part *part = &c->hints->card;
    bool form = c->hints->intent == INTENT_FORM && part->actions.count;
    c->primary = form; /* its own first button, wherever others stand */
    put_header(c, part, true);
    put_text(c, part->description, TEXT("plain", "caption"));
    put_body(c, part);
    put_kv(c, &part->items);
    put_list(c, &part->list_items);
    put_sections(c);
    put_actions(c, &part->actions, form);
}

/* ---- the document ---- */

static void put_meta(struct out *out, const struct ui_context *context)
{
    const struct {
        str key, id;
    } ids[] = {
        {STR("requestId"), context->request_id},
        {STR("toolId"), context->tool_id},
        {STR("traceId"), context->trace_id},
        {STR("userId"), context->user_id},
    };
    bool first = true;
    for (size_t i = 0; i < COUNT(ids); i++) {
        assert(ids[i].id.len <= UI_ID_BYTES_MAX);
        if (!ids[i].id.len) continue;
        out_raw(out, first ? STR(",\"meta\":{\"") : STR(",\""));
        out_raw(out, ids[i].key);
        out_raw(out, STR("\":"));
        out_string(out, ids[i].id);
        first = false;
    }
    if (!first) out_char(out, '}');
}

/* False if it does not fit; the second time it always does. */
static bool put_document(struct compile_card *c, const struct ui_context *context)
{
    struct out *out = &c->out;
    size_t kept = c->second ? cut_captions[c->locale].len + 1 : 0;
    c->nodes = c->buttons = c->depth = 0;
    c->cut = false;
    c->nodes_max = UI_SCHEMA_NODES_MAX - (c->second ? 1 : 0);
    out_clear(out);
    out->limit = UI_SCHEMA_BYTES_MAX - kept - 1; /* the last bracket */
    out_raw(out, STR("{\"version\":\"2.0\""));
    out_member(out, STR("locale"), ui_locale_name(c->locale));
    out_member(out, STR("status"), words_at(&words_status, c->hints->card.status));
    out_member(out, STR("theme"), themes[context->theme]);
    put_meta(out, context);
    out_raw(out, STR(",\"root\":"));

    const struct hint_part *card = &c->hints->card;
    bool plain = c->hints->intent == INTENT_MESSAGE && !card->items.count &&
                 !card->list_items.count && !card->sections.count && !card->actions.count;
    struct compile_place at, behind;
    bool there = open_stack(c, plain ? plain_stack : card_stack, &at);
    assert(there); /* the head has a hundredth of the room */
    put_card(c);
    if (c->cut && !c->second) return false;
    out->limit += kept;
    if (c->cut) {
        c->nodes_max++;
        c->cut = false;
        there = begin(c, &behind);
        out_raw(out, cut_captions[c->locale]);
        assert(there && !out->over); /* room was kept */
    }
    close_stack(c, &at);
    out->limit++;
    out_char(out, '}');
    return true;
}

enum err ui_compile(struct arena *arena, const struct json *hints, const struct ui_context *context,
                    str *ret_schema, struct fault *reterr)
{
    struct hints read;
    enum err e = hints_read(arena, hints, &read, reterr);
    if (e) return e;
    struct compile_card card = {.hints = &read, .locale = ui_locale_of(context->locale)};
    out_init(&card.out, arena, hints->raw.len * 4, UI_SCHEMA_BYTES_MAX);
    out_init(&card.scratch, arena, 0, UI_SCHEMA_BYTES_MAX);
    /* An entry of a list takes three nodes with its divider: no need to try. */
    card.second = read.card.list_items.count > UI_SCHEMA_NODES_MAX / 3;
    if (!put_document(&card, context)) {
        card.second = true;
        bool fits = put_document(&card, context);
        assert(fits);
    }
    assert(!card.out.over && card.out.len <= UI_SCHEMA_BYTES_MAX);
    *ret_schema = out_str(&card.out);
    return OK;
}
