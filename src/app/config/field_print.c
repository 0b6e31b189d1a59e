/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields printed: each type knows how to write what field.c read.
 *
 * Invariants: 1. what is printed is read back as the same, secrets apart; 2. the value of a header
 * or of a program's variable and the text of a secret are never printed.
 */
#include "app/config/field.h"

#include <stdio.h>

#include "app/config/yaml.h"
#include "app/say.h"
#include "base/limits.h"

static void begin_line(struct field_printer *p)
{
    buf_append(p->out, str_c(p->lead));
    p->lead = p->indent;
}

static void end_line(struct field_printer *p)
{
    buf_printf(p->out, "  # %s\n", p->place.text);
}

static void put_text(struct field_printer *p, const void *at)
{
    yaml_write(p->out, *(const str *)at);
}

/* JSON as YAML takes it: strings in our quotes, with our escapes. Recursion ends at the depth that
 * the YAML had. */
static void put_json(struct buf *out, const struct json *json)
{
    bool object = json->type == JSON_OBJECT;
    if (json->type == JSON_STRING) {
        yaml_write_quoted(out, json->text);
        return;
    }
    if (!object && json->type != JSON_ARRAY) {
        buf_append(out, json->raw);
        return;
    }
    buf_char(out, object ? '{' : '[');
    for (const struct json *n = json->child; n; n = n->next) {
        if (object) {
            yaml_write_quoted(out, n->key);
            buf_append(out, STR(": "));
        }
        put_json(out, n);
        if (n->next) buf_append(out, STR(", "));
    }
    buf_char(out, object ? '}' : ']');
}

static void put_schema(struct field_printer *p, const void *at)
{
    put_json(p->out, *(const struct json *const *)at);
}

static void put_template(struct field_printer *p, const void *at)
{
    const struct config_template *template = at;
    const char *before = "";
    if (template->zh.len && str_eq(template->zh, template->en)) {
        yaml_write_quoted(p->out, template->zh);
        return;
    }
    buf_char(p->out, '{');
    for (size_t i = 0; i < field_language_count; i++) {
        str text = *(const str *)((const char *)at + field_languages[i].offset);
        if (!text.len) continue;
        buf_printf(p->out, "%s%s: ", before, field_languages[i].name);
        yaml_write_quoted(p->out, text);
        before = ", ";
    }
    buf_char(p->out, '}');
}

static void put_effect(struct field_printer *p, const void *at)
{
    buf_append(p->out, str_c(field_effects[*(const bool *)at]));
}

static void put_yes_no(struct field_printer *p, const void *at)
{
    buf_append(p->out, str_c(field_truths[*(const bool *)at]));
}

static void put_risk(struct field_printer *p, const void *at)
{
    buf_append(p->out, str_c(tool_risk_name(*(const enum tool_risk *)at)));
}

static void put_seconds(struct field_printer *p, const void *at)
{
    buf_u64(p->out, *(const uint32_t *)at);
}

static void put_headers(struct field_printer *p, const void *at)
{
    const struct config_headers *headers = at;
    if (headers->count == 0) buf_append(p->out, STR("{}"));
    for (size_t i = 0; i < headers->count; i++) {
        const struct config_header *header = &headers->items[i];
        end_line(p);
        begin_line(p);
        buf_append(p->out, STR("  "));
        if (!header->file.len) buf_append(p->out, STR("# "));
        char key[CONFIG_HEADER_NAME_BYTES_MAX + 8];
        snprintf(key, sizeof key, "%.*s%s", STR_ARG(header->name), header->file.len ? "_file" : "");
        yaml_write(p->out, str_c(key));
        buf_append(p->out, STR(": "));
        if (header->file.len)
            yaml_write(p->out, header->file);
        else
            buf_append(p->out, STR("(hidden)"));
    }
}

static void put_pairs(struct field_printer *p, const void *at)
{
    const struct config_pairs *pairs = at;
    if (pairs->count == 0) buf_append(p->out, STR("{}"));
    for (size_t i = 0; i < pairs->count; i++) {
        end_line(p);
        begin_line(p);
        buf_printf(p->out, "  # %.*s: (hidden)", STR_ARG(pairs->items[i].name));
    }
}

static void put_texts(struct field_printer *p, const void *at)
{
    const struct strs *items = at;
    buf_char(p->out, '[');
    for (size_t i = 0; i < items->count; i++) {
        if (i) buf_append(p->out, STR(", "));
        yaml_write_quoted(p->out, items->items[i]);
    }
    buf_char(p->out, ']');
}

static void put_events(struct field_printer *p, const void *at)
{
    const char *before = "[";
    for (size_t i = 0; i < field_event_count; i++) {
        if (!(*(const unsigned *)at & field_events[i].bit)) continue;
        buf_printf(p->out, "%s%s", before, field_events[i].name);
        before = ", ";
    }
    buf_char(p->out, ']');
}

static void (*const types[])(struct field_printer *p, const void *at) = {
    [NAME] = put_text,         [ADDRESS] = put_text,  [PROSE] = put_text,
    [TEMPLATE] = put_template, [SCHEMA] = put_schema, [EFFECT] = put_effect,
    [YES_NO] = put_yes_no,     [RISK] = put_risk,     [SECONDS] = put_seconds,
    [HEADERS] = put_headers,   [KEY_FILE] = put_text, [EVENTS] = put_events,
    [COMMAND] = put_texts,     [PAIRS] = put_pairs,   [PATTERNS] = put_texts,
    [PLATFORM] = put_text,     [WORD] = put_text,     [BASE] = put_text,
    [FILE_AT] = put_text,      [SENDERS] = put_texts,
};

void field_line(struct field_printer *p, str key)
{
    begin_line(p);
    yaml_write(p->out, key);
    buf_char(p->out, ':');
    end_line(p);
}

void field_put(struct field_printer *p, const struct field *field, const void *record)
{
    const void *at = (const char *)record + field->offset;
    bool lines = (field->type == HEADERS && ((const struct config_headers *)at)->count) ||
                 (field->type == PAIRS && ((const struct config_pairs *)at)->count);
    begin_line(p);
    buf_printf(p->out, "%s:%s", field->name, lines ? "" : " ");
    types[field->type](p, at);
    end_line(p);
}
