/* SPDX-License-Identifier: Apache-2.0
 *
 * UiHints 2.1, read, checked, and refused by JSON Pointer. The format is the tables below: one row
 * for each field of each object, with its type, whether it must be there, and where it goes.
 * read_object walks an object once and looks its members up; members without a row are ignored.
 *
 * A refusal names its place as a JSON Pointer. The way there is a chain of frames on the stack, made
 * into text only when it is needed; its names come from the tables and its numbers from lists, so it
 * always fits into a fault.
 *
 * To add a field: a member in hints.h, a row here, a line in docs/schema/ui-hints-2.1.json. To add
 * an action: its rows, its line in acts[], and the same in the schema.
 */
#include "ui/hints.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "ui/card_link.h"
#include "ui/text.h"

/* ---- the format ---- */

#define WORDS(name, ...)                            \
    static const str name##_list[] = {__VA_ARGS__}; \
    const struct words name = {name##_list, COUNT(name##_list)}

static const str version_list[] = {STR("2.1")};
static const str intent_list[] = {STR("message"), STR("data"), STR("list"),
                                  STR("status"),  STR("form"), STR("mixed")};
static const str format_list[] = {STR("plain"), STR("markdown")};
static const str target_list[] = {STR("_self"), STR("_blank")};
static const struct words words_version = {version_list, COUNT(version_list)};
static const struct words words_intent = {intent_list, COUNT(intent_list)};
static const struct words words_format = {format_list, COUNT(format_list)};
static const struct words words_target = {target_list, COUNT(target_list)};
WORDS(words_status, STR("info"), STR("success"), STR("warning"), STR("error"), STR("pending"));
WORDS(words_style, STR("primary"), STR("secondary"), STR("ghost"), STR("danger"));
WORDS(words_size, STR("sm"), STR("md"), STR("lg"));

static bool kv_settle(void *at), action_settle(void *at), item_settle(void *at),
    part_settle(void *at);

#define AT(type, member) offsetof(struct type, member)
#define SHAPE(name, type, fn) \
    static const struct shape name = {name##_fields, COUNT(name##_fields), sizeof(struct type), fn}

/* clang-format off */
static const struct field icon_fields[] = {
    {STR("name"),   FIELD_TEXT, true,  AT(hint_icon, name),   NULL, NULL},
    {STR("size"),   FIELD_WORD, false, AT(hint_icon, size),   &words_size, NULL},
    {STR("status"), FIELD_WORD, false, AT(hint_icon, status), &words_status, NULL},
};
SHAPE(icon, hint_icon, NULL);

static const struct field badge_fields[] = {
    {STR("label"),  FIELD_TEXT, true,  AT(hint_badge, label),  NULL, NULL},
    {STR("status"), FIELD_WORD, false, AT(hint_badge, status), &words_status, NULL},
};
SHAPE(badge, hint_badge, NULL);

static const struct field kv_fields[] = {
    {STR("key"),      FIELD_TEXT, true,  AT(hint_kv, key),      NULL, NULL},
    {STR("label"),    FIELD_TEXT, false, AT(hint_kv, label),    NULL, NULL},
    {STR("value"),    FIELD_ANY,  true,  AT(hint_kv, value),    NULL, NULL},
    {STR("copyable"), FIELD_FLAG, false, AT(hint_kv, copyable), NULL, NULL},
};
SHAPE(kv, hint_kv, kv_settle);

static const struct field action_fields[] = {
    {STR("label"),    FIELD_TEXT, true,  AT(hint_action, label),    NULL, NULL},
    {STR("style"),    FIELD_WORD, false, AT(hint_action, style),    &words_style, NULL},
    {STR("disabled"), FIELD_FLAG, false, AT(hint_action, disabled), NULL, NULL},
    {STR("icon"),     FIELD_ICON, false, AT(hint_action, icon),     NULL, &icon},
    {STR("action"),   FIELD_ACT,  true,  AT(hint_action, act),      NULL, NULL},
};
SHAPE(action, hint_action, action_settle);

static const struct field item_fields[] = {
    {STR("title"),       FIELD_TEXT,  true,  AT(hint_item, title),       NULL, NULL},
    {STR("subtitle"),    FIELD_TEXT,  false, AT(hint_item, subtitle),    NULL, NULL},
    {STR("description"), FIELD_TEXT,  false, AT(hint_item, description), NULL, NULL},
    {STR("icon"),        FIELD_ICON,  false, AT(hint_item, icon),        NULL, &icon},
    {STR("badge"),       FIELD_SHAPE, false, AT(hint_item, badge),       NULL, &badge},
    {STR("items"),       FIELD_LIST,  false, AT(hint_item, items),       NULL, &kv},
    {STR("actions"),     FIELD_LIST,  false, AT(hint_item, actions),     NULL, &action},
};
SHAPE(item, hint_item, item_settle);

#define PART(at)                                                                 \
    {STR("title"),       FIELD_TEXT, false, at(title),       NULL, NULL},        \
    {STR("description"), FIELD_TEXT, false, at(description), NULL, NULL},        \
    {STR("body"),        FIELD_TEXT, false, at(body),        NULL, NULL},        \
    {STR("bodyFormat"),  FIELD_WORD, false, at(body_format), &words_format, NULL}, \
    {STR("items"),       FIELD_LIST, false, at(items),       NULL, &kv},         \
    {STR("listItems"),   FIELD_LIST, false, at(list_items),  NULL, &item},       \
    {STR("actions"),     FIELD_LIST, false, at(actions),     NULL, &action},     \
    {STR("icon"),        FIELD_ICON, false, at(icon),        NULL, &icon}

#define AT_PART(member) AT(hint_part, member)
static const struct field part_fields[] = {
    PART(AT_PART),
    {STR("status"), FIELD_WORD, false, AT_PART(status), &words_status, NULL},
};
SHAPE(part, hint_part, part_settle);

#define AT_CARD(member) AT(hints, card.member)
static const struct field hints_fields[] = {
    {STR("version"),  FIELD_WORD,   true,  AT(hints, version),  &words_version, NULL},
    {STR("intent"),   FIELD_WORD,   true,  AT(hints, intent),   &words_intent, NULL},
    {STR("status"),   FIELD_WORD,   true,  AT_CARD(status),     &words_status, NULL},
    PART(AT_CARD),
    {STR("sections"), FIELD_LIST,   false, AT_CARD(sections),   NULL, &part},
    {STR("meta"),     FIELD_OBJECT, false, AT(hints, meta),     NULL, NULL},
};
SHAPE(hints, hints, NULL);

static const struct field navigation_fields[] = {
    {STR("path"),   FIELD_PATH,   true,  AT(hint_act, path),   NULL, NULL},
    {STR("params"), FIELD_OBJECT, false, AT(hint_act, params), NULL, NULL},
};
SHAPE(navigation, hint_act, NULL);

static const struct field url_fields[] = {
    {STR("url"),    FIELD_LINK, true,  AT(hint_act, url),    NULL, NULL},
    {STR("target"), FIELD_WORD, false, AT(hint_act, target), &words_target, NULL},
};
SHAPE(url, hint_act, NULL);

static const struct field event_fields[] = {
    {STR("event"),   FIELD_NAME,   true,  AT(hint_act, event),   NULL, NULL},
    {STR("payload"), FIELD_OBJECT, false, AT(hint_act, payload), NULL, NULL},
};
SHAPE(event, hint_act, NULL);

static const struct field tool_fields[] = {
    {STR("toolId"), FIELD_NAME,   true,  AT(hint_act, tool_id), NULL, NULL},
    {STR("params"), FIELD_OBJECT, false, AT(hint_act, params),  NULL, NULL},
};
SHAPE(tool, hint_act, NULL);

static const struct field copy_fields[] = {
    {STR("content"),        FIELD_EXACT, true,  AT(hint_act, content),         NULL, NULL},
    {STR("successMessage"), FIELD_TEXT,  false, AT(hint_act, success_message), NULL, NULL},
};
SHAPE(copy, hint_act, NULL);

static const struct field payload_fields[] = {
    {STR("payload"),  FIELD_OBJECT, true,  AT(hint_act, payload),   NULL, NULL},
    {STR("submitTo"), FIELD_PATH,   false, AT(hint_act, submit_to), NULL, NULL},
};
SHAPE(payload, hint_act, NULL);

/* Actions by their type; a kind is a place here, and one more. */
static const struct shape *const acts[] = {&navigation, &url, &event, &tool, &copy, &payload};
static const str act_list[] = {STR("navigation"), STR("url"),  STR("event"),
                               STR("tool"),       STR("copy"), STR("payload")};
static const struct words words_act = {act_list, COUNT(act_list)};
_Static_assert(COUNT(acts) == COUNT(act_list), "each action has a name");
/* clang-format on */

str words_at(const struct words *words, unsigned value)
{
    assert(value > 0 && value <= words->count);
    return words->words[value - 1];
}

str hint_act_name(unsigned kind)
{
    return words_at(&words_act, kind);
}

const struct shape *hint_act_shape(unsigned kind)
{
    assert(kind > 0 && kind <= COUNT(acts));
    return acts[kind - 1];
}

/* ---- what would show nothing ---- */

static bool kv_settle(void *at)
{
    struct hint_kv *kv_at = at;
    if (!kv_at->key.len && !kv_at->label.len) return false;
    if (kv_at->value->type == JSON_NULL) return false;
    return kv_at->value->type != JSON_STRING || ui_trim(kv_at->value->text).len;
}

/* A button that nobody can read is no button. */
static bool action_settle(void *at)
{
    const struct hint_action *action_at = at;
    return action_at->label.len > 0;
}

static bool item_settle(void *at)
{
    const struct hint_item *i = at;
    return i->title.len || i->subtitle.len || i->description.len || i->icon.name.len ||
           i->badge.label.len || i->items.count || i->actions.count;
}

static bool part_settle(void *at)
{
    struct hint_part *p = at;
    if (p->body_format == FORMAT_MARKDOWN) p->code = ui_fence(p->body, &p->body);
    return p->title.len || p->description.len || p->body.len || p->icon.name.len ||
           p->status > STATUS_INFO || p->items.count || p->list_items.count || p->sections.count ||
           p->actions.count;
}

/* ---- refusing ---- */

/* One step of the way to a value: a member's name, or a place in a list if it is empty. */
struct frame {
    const struct frame *up;
    str name;
    size_t index;
};

struct hints_reader {
    struct arena *arena;
    struct fault *reterr;
};

static size_t write_pointer(const struct frame *at, char *out, size_t size)
{
    if (!at) return 0;
    size_t len = write_pointer(at->up, out, size);
    int wrote = at->name.len ? snprintf(out + len, size - len, "/%.*s", STR_ARG(at->name))
                             : snprintf(out + len, size - len, "/%zu", at->index);
    assert(wrote > 0 && (size_t)wrote < size - len); /* four names and three numbers */
    return len + (size_t)wrote;
}

static enum err refuse(struct hints_reader *r, const struct frame *at, const char *format, ...)
    PRINTF(3, 4);

/* The text begins with the name: "label must be text, not null". */
static enum err refuse(struct hints_reader *r, const struct frame *at, const char *format, ...)
{
    char pointer[sizeof r->reterr->field] = "", why[256];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    write_pointer(at, pointer, sizeof pointer);
    if (!at) return fault(r->reterr, ERR_INVALID_HINTS, "the hints %s", why);
    const char *entry = at->name.len ? "" : "an entry of ";
    str name = at->name.len ? at->name : at->up->name;
    return fault_field(r->reterr, ERR_INVALID_HINTS, pointer, "%s%.*s %s", entry, STR_ARG(name),
                       why);
}

static const char *const type_names[] = {
    [JSON_NULL] = "null",        [JSON_FALSE] = "false", [JSON_TRUE] = "true",
    [JSON_NUMBER] = "a number",  [JSON_STRING] = "text", [JSON_ARRAY] = "a list",
    [JSON_OBJECT] = "an object",
};

static enum err wrong_type(struct hints_reader *r, const struct frame *at, const struct json *json,
                           const char *wanted)
{
    return refuse(r, at, "must be %s, not %s", wanted, type_names[json->type]);
}

/* ---- reading ---- */

static enum err read_object(struct hints_reader *r, const struct shape *shape,
                            const struct json *json, const struct frame *at, void *into);

static enum err read_word(struct hints_reader *r, const struct words *words,
                          const struct json *json, const struct frame *at, unsigned *ret_value)
{
    if (json->type != JSON_STRING) return wrong_type(r, at, json, "text");
    for (size_t i = 0; i < words->count; i++)
        if (str_eq(words->words[i], json->text)) {
            *ret_value = (unsigned)i + 1;
            return OK;
        }
    char known[128] = "";
    for (size_t i = 0, len = 0; i < words->count; i++)
        len += (size_t)snprintf(known + len, sizeof known - len, "%s%.*s", i ? ", " : "",
                                STR_ARG(words->words[i]));
    return refuse(r, at, words->count > 1 ? "must be one of %s" : "must be %s", known);
}

static enum err read_text(struct hints_reader *r, enum field_type type, const struct json *json,
                          const struct frame *at, str *ret_text)
{
    if (json->type != JSON_STRING) return wrong_type(r, at, json, "text");
    str text = type == FIELD_EXACT ? json->text : ui_trim(json->text);
    if (type == FIELD_NAME && !text.len) return refuse(r, at, "must not be empty");
    if (type == FIELD_PATH && !link_is_path(text))
        return refuse(r, at, "must be a path on this server, such as /orders/7");
    if (type == FIELD_LINK && !link_is_safe(text))
        return refuse(r, at,
                      "must be an https, http, mailto or tel address, or a path on this "
                      "server such as /orders/7");
    *ret_text = text;
    return OK;
}

static bool is_deeper(const struct json *json, unsigned levels)
{
    if (json->type != JSON_ARRAY && json->type != JSON_OBJECT) return false;
    if (!levels) return true;
    for (const struct json *m = json->child; m; m = m->next)
        if (is_deeper(m, levels - 1)) return true;
    return false;
}

static enum err read_list(struct hints_reader *r, const struct shape *shape,
                          const struct json *json, const struct frame *at,
                          struct hint_list *ret_list)
{
    if (json->type != JSON_ARRAY) return wrong_type(r, at, json, "a list");
    char *items = json->count ? arena_array(r->arena, json->count, shape->size) : NULL;
    size_t count = 0;
    struct frame here = {.up = at};
    for (const struct json *m = json->child; m; m = m->next, here.index++) {
        assert(items); /* as many as it counts */
        char *item_at = items + count * shape->size;
        enum err e = read_object(r, shape, m, &here, item_at);
        if (e) return e;
        if (shape->settle(item_at))
            count++;
        else
            memset(item_at, 0, shape->size);
    }
    *ret_list = (struct hint_list){items, count};
    return OK;
}

static enum err read_icon(struct hints_reader *r, const struct json *json, const struct frame *at,
                          struct hint_icon *into)
{
    if (json->type == JSON_STRING) {
        into->name = ui_trim(json->text);
        return OK;
    }
    if (json->type != JSON_OBJECT) return wrong_type(r, at, json, "a name or an object");
    return read_object(r, &icon, json, at, into);
}

static enum err read_act(struct hints_reader *r, const struct json *json, const struct frame *at,
                         struct hint_act *into)
{
    if (json->type != JSON_OBJECT) return wrong_type(r, at, json, "an object");
    struct frame here = {.up = at, .name = STR("type")};
    const struct json *type = json_get(json, here.name);
    if (!type) return refuse(r, &here, "is missing");
    enum err e = read_word(r, &words_act, type, &here, &into->kind);
    if (e) return e;
    return read_object(r, hint_act_shape(into->kind), json, at, into);
}

static enum err read_field(struct hints_reader *r, const struct field *field,
                           const struct json *json, const struct frame *at, void *into)
{
    switch (field->type) {
    case FIELD_TEXT:
    case FIELD_EXACT:
    case FIELD_NAME:
    case FIELD_LINK:
    case FIELD_PATH:
        return read_text(r, field->type, json, at, into);
    case FIELD_WORD:
        return read_word(r, field->words, json, at, into);
    case FIELD_FLAG:
        if (json->type != JSON_TRUE && json->type != JSON_FALSE)
            return wrong_type(r, at, json, "true or false");
        *(bool *)into = json->type == JSON_TRUE;
        return OK;
    case FIELD_ANY:
        *(const struct json **)into = json;
        return OK;
    case FIELD_OBJECT: /* stored and read again: it must leave room for what is around it */
        if (json->type != JSON_OBJECT) return wrong_type(r, at, json, "an object");
        if (is_deeper(json, UI_VALUE_DEPTH_MAX))
            return refuse(r, at, "is nested more than %d deep", UI_VALUE_DEPTH_MAX);
        *(const struct json **)into = json;
        return OK;
    case FIELD_ICON:
        return read_icon(r, json, at, into);
    case FIELD_SHAPE:
        return read_object(r, field->shape, json, at, into);
    case FIELD_LIST:
        return read_list(r, field->shape, json, at, into);
    case FIELD_ACT:
        return read_act(r, json, at, into);
    }
    return OK;
}

/* `into` is zeroed. */
static enum err read_object(struct hints_reader *r, const struct shape *shape,
                            const struct json *json, const struct frame *at, void *into)
{
    if (json->type != JSON_OBJECT) return wrong_type(r, at, json, "an object");
    assert(shape->fields);
    uint32_t seen = 0;
    for (const struct json *m = json->child; m; m = m->next) {
        size_t i = 0;
        while (i < shape->count && !str_eq(shape->fields[i].name, m->key)) i++;
        if (i == shape->count) continue;
        const struct field *field = &shape->fields[i];
        struct frame here = {.up = at, .name = field->name};
        enum err e = read_field(r, field, m, &here, (char *)into + field->offset);
        if (e) return e;
        seen |= (uint32_t)1 << i;
    }
    for (size_t i = 0; i < shape->count; i++) {
        if (!shape->fields[i].required || (seen & (uint32_t)1 << i)) continue;
        struct frame here = {.up = at, .name = shape->fields[i].name};
        return refuse(r, &here, "is missing");
    }
    return OK;
}

enum err hints_read(struct arena *arena, const struct json *json, struct hints *ret_hints,
                    struct fault *reterr)
{
    struct hints_reader r = {arena, reterr};
    struct hints read = {0};
    enum err e = read_object(&r, &hints, json, NULL, &read);
    if (e) return e;
    bool badge_alone = read.intent == INTENT_STATUS; /* says something by itself */
    if (!part_settle(&read.card) && !badge_alone)
        return refuse(&r, NULL, "have nothing to show: give a title, a body or items");
    *ret_hints = read;
    return OK;
}
