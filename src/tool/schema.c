/* SPDX-License-Identifier: Apache-2.0
 *
 * Values checked against a compiled schema, and the words of a refusal.
 *
 * Where we are is a list of places on the stack, from the innermost outwards; it becomes text only
 * in a refusal: args.attendees[2]. Invariants:
 *
 * 1. Members are checked in the order of the value, then missing ones in the order of the schema; so
 *    the same value always gets the same refusal.
 * 2. Deep comparisons share SCHEMA_STEPS_MAX steps, so that no value takes long. Everything else
 *    goes down with the schema, at most SCHEMA_DEPTH_MAX levels.
 *
 * To add a keyword, see schema_parse.c; its check belongs into the check_* of the values it is about.
 */
#include "tool/schema_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"

const struct schema_type schema_types[] = {
    [TYPE_NULL] = {"null", "null"},
    [TYPE_BOOLEAN] = {"boolean", "true or false"},
    [TYPE_INTEGER] = {"integer", "an integer"},
    [TYPE_NUMBER] = {"number", "a number"},
    [TYPE_STRING] = {"string", "a string"},
    [TYPE_ARRAY] = {"array", "a list"},
    [TYPE_OBJECT] = {"object", "an object"},
};

enum type schema_type_of(const struct json *value)
{
    switch (value->type) {
    case JSON_NULL:
        return TYPE_NULL;
    case JSON_FALSE:
    case JSON_TRUE:
        return TYPE_BOOLEAN;
    case JSON_STRING:
        return TYPE_STRING;
    case JSON_ARRAY:
        return TYPE_ARRAY;
    case JSON_OBJECT:
        return TYPE_OBJECT;
    case JSON_NUMBER:
        break;
    }
    struct decimal number = decimal_read(value->text);
    return decimal_whole(&number) ? TYPE_INTEGER : TYPE_NUMBER;
}

struct property *schema_property(const struct schema *schema, str name)
{
    for (size_t i = 0; i < schema->property_count; i++)
        if (str_eq(schema->properties[i].name, name)) return &schema->properties[i];
    return NULL;
}

/* ---- refusing ---- */

enum { PATH_BYTES_MAX = 120, LIST_BYTES_MAX = 200 };

static bool is_plain_key(str key)
{
    for (size_t i = 0; i < key.len; i++) {
        unsigned char c = (unsigned char)key.p[i], lower = (unsigned char)char_lower((char)c);
        bool plain = (lower >= 'a' && lower <= 'z') || c >= 0x80 || c == '_' || c == '$';
        if (!plain && (i == 0 || !((c >= '0' && c <= '9') || c == '-'))) return false;
    }
    return key.len > 0;
}

/* A key that would be misread stands as a JSON string: args["a.b"]. */
static void write_key(struct buf *out, str key)
{
    AUTO(buf_done) struct buf quoted;
    buf_init(&quoted, PATH_BYTES_MAX);
    struct json_writer w;
    if (is_plain_key(key) && out->len) buf_char(&quoted, '.');
    if (is_plain_key(key)) buf_append(&quoted, key);
    if (!is_plain_key(key)) {
        buf_char(&quoted, '[');
        json_write_begin(&w, &quoted);
        json_string(&w, key);
        buf_char(&quoted, ']');
    }
    out->full |= quoted.full;
    if (!out->full) buf_append(out, buf_str(&quoted)); /* whole or not at all */
}

static void write_path(struct buf *out, const struct schema_place *place)
{
    if (place->up) write_path(out, place->up);
    if (place->item) {
        char index[32];
        snprintf(index, sizeof index, "[%zu]", place->index);
        if (!out->full) buf_append(out, str_c(index));
    } else if (place->up || place->key.len) {
        write_key(out, place->key);
    }
}

enum err schema_refuse(struct fault *reterr, const struct schema_place *place, const char *format,
                       ...)
{
    if (!reterr) return ERR_INVALID_FIELD;
    char path[PATH_BYTES_MAX + 4], text[sizeof reterr->text];
    AUTO(buf_done) struct buf written; /* what does not fit is left out and shown as "..." */
    buf_init(&written, PATH_BYTES_MAX);
    write_path(&written, place);
    snprintf(path, sizeof path, "%.*s%s", STR_ARG(buf_str(&written)), written.full ? "..." : "");
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fault_field(reterr, ERR_INVALID_FIELD, path, "%s %s", path[0] ? path : "the schema",
                       text);
}

/* ", item" or "item"; false when there is no room left, which "..." then says. */
bool schema_list_add(struct buf *list, str item)
{
    if (list->full) return false;
    if (list->len + item.len + 2 > LIST_BYTES_MAX) {
        buf_append(list, list->len ? STR(", ...") : STR("..."));
        list->full = true;
        return false;
    }
    if (list->len) buf_append(list, STR(", "));
    buf_append(list, item);
    return true;
}

void schema_list_init(struct buf *list)
{
    buf_init(list, LIST_BYTES_MAX + sizeof ", ...");
}

/* ---- checking ---- */

struct check {
    struct fault *reterr;
    size_t steps;
};

static enum err check_value(struct check *c, const struct schema *schema, const struct json *value,
                            const struct schema_place *place);

static enum err check_type(struct check *c, const struct schema *schema, const struct json *value,
                           const struct schema_place *place)
{
    enum type type = schema_type_of(value);
    unsigned fits = 1U << type | (type == TYPE_INTEGER ? 1U << TYPE_NUMBER : 0);
    if (!schema->types || schema->types & fits) return OK;

    char wanted[200] = "";
    for (unsigned t = 0; t < TYPE_COUNT; t++) {
        if (!(schema->types & 1U << t)) continue;
        size_t len = strlen(wanted);
        snprintf(wanted + len, sizeof wanted - len, "%s%s", len ? " or " : "",
                 schema_types[t].noun);
    }
    str shown =
        type == TYPE_NUMBER && value->text.len < 40 ? value->text : str_c(schema_types[type].noun);
    return schema_refuse(c->reterr, place, "must be %s, not %.*s", wanted, STR_ARG(shown));
}

static enum err out_of_steps(struct check *c, const struct schema_place *place)
{
    return schema_refuse(c->reterr, place, "is too large to be compared; make it shorter");
}

static enum err check_choices(struct check *c, const struct schema *schema,
                              const struct json *value, const struct schema_place *place)
{
    if (!schema->choices) return OK;
    for (const struct json *choice = schema->choices->child; choice; choice = choice->next)
        if (value_same(choice, value, &c->steps)) return OK;
    if (!c->steps) return out_of_steps(c, place);

    AUTO(buf_done) struct buf list;
    schema_list_init(&list);
    for (const struct json *choice = schema->choices->child; choice; choice = choice->next)
        if (!schema_list_add(&list, choice->raw)) break;
    return schema_refuse(c->reterr, place, "must be one of %.*s", STR_ARG(buf_str(&list)));
}

static enum err check_constant(struct check *c, const struct schema *schema,
                               const struct json *value, const struct schema_place *place)
{
    if (!schema->constant || value_same(schema->constant, value, &c->steps)) return OK;
    if (!c->steps) return out_of_steps(c, place);
    AUTO(buf_done) struct buf list;
    schema_list_init(&list);
    schema_list_add(&list, schema->constant->raw);
    return schema_refuse(c->reterr, place, "must be %.*s", STR_ARG(buf_str(&list)));
}

static enum err check_number(struct check *c, const struct schema *schema, const struct json *value,
                             const struct schema_place *place)
{
    const struct {
        const struct schema_bound *bound;
        int wrong, also_wrong; /* how the value must not compare with it */
        const char *words;
    } rows[] = {
        {&schema->minimum, -1, -1, "at least"},
        {&schema->maximum, 1, 1, "at most"},
        {&schema->above, -1, 0, "more than"},
        {&schema->below, 1, 0, "less than"},
    };
    struct decimal number = decimal_read(value->text);
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (!rows[i].bound->given) continue;
        int order = decimal_cmp(&number, &rows[i].bound->value);
        if (order == rows[i].wrong || order == rows[i].also_wrong)
            return schema_refuse(c->reterr, place, "must be %s %.*s", rows[i].words,
                                 rows[i].bound->text.len > 60 ? 60 : (int)rows[i].bound->text.len,
                                 rows[i].bound->text.p);
    }
    return OK;
}

static enum err check_count(struct check *c, const struct schema_place *place, uint64_t count,
                            uint64_t min, uint64_t max, const char *noun)
{
    if (count >= min && count <= max) return OK;
    uint64_t bound = count < min ? min : max;
    if (count == 0 && min == 1) return schema_refuse(c->reterr, place, "must not be empty");
    return schema_refuse(c->reterr, place, "must have at %s %llu %s%s, not %llu",
                         count < min ? "least" : "most", (unsigned long long)bound, noun,
                         bound == 1 ? "" : "s", (unsigned long long)count);
}

static enum err check_string(struct check *c, const struct schema *schema, const struct json *value,
                             const struct schema_place *place)
{
    enum err e = check_count(c, place, value_chars(value->text), schema->length_min,
                             schema->length_max, "character");
    if (e || !schema->format || schema->format->fits(value->text)) return e;
    return schema_refuse(c->reterr, place, "must %s", schema->format->must);
}

static enum err check_unique(struct check *c, const struct json *list,
                             const struct schema_place *place)
{
    size_t index = 0;
    for (const struct json *item = list->child; item; item = item->next, index++) {
        size_t other = 0;
        for (const struct json *before = list->child; before != item;
             before = before->next, other++) {
            struct schema_place at = {.up = place, .index = index, .item = true};
            if (value_same(before, item, &c->steps))
                return schema_refuse(c->reterr, &at,
                                     "is the same as item %zu; each may stand there once", other);
            if (!c->steps) return out_of_steps(c, place);
        }
    }
    return OK;
}

static enum err check_array(struct check *c, const struct schema *schema, const struct json *value,
                            const struct schema_place *place)
{
    enum err e = check_count(c, place, value->count, schema->items_min, schema->items_max, "item");
    if (e) return e;
    struct schema_place at = {.up = place, .item = true};
    for (const struct json *item = value->child; item && schema->items; item = item->next) {
        e = check_value(c, schema->items, item, &at);
        if (e) return e;
        at.index++;
    }
    return schema->unique ? check_unique(c, value, place) : OK;
}

static enum err refuse_member(struct check *c, const struct schema *schema,
                              const struct schema_place *place)
{
    AUTO(buf_done) struct buf list;
    schema_list_init(&list);
    for (size_t i = 0; i < schema->property_count; i++)
        if (!schema_list_add(&list, schema->properties[i].name)) break;
    if (!list.len) return schema_refuse(c->reterr, place, "is not known; nothing may stand there");
    return schema_refuse(c->reterr, place, "is not known; known are %.*s", STR_ARG(buf_str(&list)));
}

static enum err check_object(struct check *c, const struct schema *schema, const struct json *value,
                             const struct schema_place *place)
{
    for (const struct json *m = value->child; m; m = m->next) {
        struct schema_place at = {.up = place, .key = m->key};
        const struct property *property = schema_property(schema, m->key);
        const struct schema *inner = property ? property->schema : NULL;
        if (!inner && schema->closed) return refuse_member(c, schema, &at);
        if (!inner) inner = schema->additional;
        enum err e = inner ? check_value(c, inner, m, &at) : OK;
        if (e) return e;
    }
    for (size_t i = 0; i < schema->property_count; i++) {
        const struct property *property = &schema->properties[i];
        struct schema_place at = {.up = place, .key = property->name};
        if (property->required && !json_get(value, property->name))
            return schema_refuse(c->reterr, &at, "is missing");
    }
    return OK;
}

static enum err check_value(struct check *c, const struct schema *schema, const struct json *value,
                            const struct schema_place *place)
{
    enum err e = check_type(c, schema, value, place);
    if (!e) e = check_constant(c, schema, value, place);
    if (!e) e = check_choices(c, schema, value, place);
    if (e) return e;
    switch (value->type) {
    case JSON_NUMBER:
        return check_number(c, schema, value, place);
    case JSON_STRING:
        return check_string(c, schema, value, place);
    case JSON_ARRAY:
        return check_array(c, schema, value, place);
    case JSON_OBJECT:
        return check_object(c, schema, value, place);
    case JSON_NULL:
    case JSON_FALSE:
    case JSON_TRUE:
        break;
    }
    return OK;
}

enum err schema_check(const struct schema *schema, const struct json *value, const char *name,
                      struct fault *reterr)
{
    struct check c = {.reterr = reterr, .steps = SCHEMA_STEPS_MAX};
    struct schema_place whole = {.key = str_c(name)};
    return check_value(&c, schema, value, &whole);
}
