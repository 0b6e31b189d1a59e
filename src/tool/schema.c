/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON Schema compiled into a tree, and values checked against it.
 *
 * A schema is an object of keywords. keywords[] has a row for each we know, with the function that
 * reads it; a keyword without a row is refused by its name, so nothing is ever checked less strictly
 * than its author thinks. There are no references, so the tree is as deep as the text, and both
 * compiling and checking go down at most SCHEMA_DEPTH_MAX levels.
 *
 *     {"type":"object","properties":{"to":{"type":"array","items":{"format":"email"}}}}
 *
 *     schema ── properties[0] "to" ── schema ── items ── schema: format email
 *       types: object                   types: array
 *
 * Where we are is a list of places on the stack, from the innermost outwards; it becomes text only
 * in a refusal. Invariants:
 *
 * 1. A compiled schema points into its arena and constant tables only.
 * 2. Members are checked in the order of the value, then missing ones in the order of the schema; so
 *    the same value always gets the same refusal.
 * 3. Deep comparisons share SCHEMA_STEPS_MAX steps, so that no value takes long.
 *
 * To add a keyword: a field of struct schema, a row in keywords[], its part in check_*, and a row in
 * docs/TOOLS.md. To add an annotation that means nothing to us: a row with skip.
 */
#include "tool/schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "tool/value.h"

enum type {
    TYPE_NULL,
    TYPE_BOOLEAN,
    TYPE_INTEGER, /* also a number */
    TYPE_NUMBER,
    TYPE_STRING,
    TYPE_ARRAY,
    TYPE_OBJECT,
    TYPE_COUNT
};

static const struct {
    const char *name;
    const char *noun; /* for people */
} types[] = {
    [TYPE_NULL] = {"null", "null"},
    [TYPE_BOOLEAN] = {"boolean", "true or false"},
    [TYPE_INTEGER] = {"integer", "an integer"},
    [TYPE_NUMBER] = {"number", "a number"},
    [TYPE_STRING] = {"string", "a string"},
    [TYPE_ARRAY] = {"array", "a list"},
    [TYPE_OBJECT] = {"object", "an object"},
};

static enum type type_of(const struct json *value)
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

struct property {
    str name;
    const struct schema *schema; /* NULL: only required */
    bool required;
};

struct bound {
    bool given;
    struct decimal value;
    str text;
};

struct schema {
    unsigned types; /* a bit for each; 0: any */
    struct property *properties;
    size_t property_count;
    bool closed;                     /* no other members */
    const struct schema *additional; /* what others must be; NULL: anything */
    const struct schema *items;      /* NULL: anything */
    const struct json *choices;      /* an array: enum; NULL: none */
    const struct json *constant;     /* NULL: none */
    struct bound minimum, maximum, above, below;
    uint64_t length_min, length_max; /* of a string, in characters */
    uint64_t items_min, items_max;
    bool unique;
    const struct text_format *format; /* NULL: any */
};

/* ---- where we are, and refusing ---- */

struct place {
    const struct place *up; /* NULL: the whole */
    str key;                /* of a member; of the whole its name */
    size_t index;           /* of an item */
    bool item;
};

enum { PATH_BYTES_MAX = 120, LIST_BYTES_MAX = 200 };

#define COUNT_MAX 9007199254740992.0 /* what a double counts exactly */

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

static void write_path(struct buf *out, const struct place *place)
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

/* The path as text; what does not fit is left out and shown as "...". */
static void path_text(const struct place *place, char out[static PATH_BYTES_MAX + 4])
{
    AUTO(buf_done) struct buf path;
    buf_init(&path, PATH_BYTES_MAX);
    write_path(&path, place);
    snprintf(out, PATH_BYTES_MAX + 4, "%.*s%s", STR_ARG(buf_str(&path)), path.full ? "..." : "");
}

static PRINTF(3, 4) enum err
    refuse(struct fault *reterr, const struct place *place, const char *format, ...)
{
    if (!reterr) return ERR_INVALID_FIELD;
    char path[PATH_BYTES_MAX + 4], text[sizeof reterr->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    path_text(place, path);
    return fault_field(reterr, ERR_INVALID_FIELD, path, "%s %s", path[0] ? path : "the schema",
                       text);
}

/* ", item" or "item"; false when there is no room left, which "..." then says. */
static bool list_add(struct buf *list, str item)
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

static void list_init(struct buf *list)
{
    buf_init(list, LIST_BYTES_MAX + sizeof ", ...");
}

/* ---- compiling ---- */

struct compiler {
    struct arena *arena;
    struct fault *reterr;
    unsigned depth;
    size_t properties; /* of the whole schema */
};

static enum err compile(struct compiler *c, const struct json *text, const struct place *place,
                        const struct schema **ret_schema);

/* A copy that does not need the schema's text. */
static const struct json *keep(struct compiler *c, const struct json *value)
{
    char *raw = arena_cstr(c->arena, value->raw);
    struct json *copy = NULL;
    value_one_line(raw, value->raw.len); /* it may be shown */
    enum err e = json_parse(c->arena, (str){raw, value->raw.len}, &copy, NULL);
    assert(!e); /* it was parsed before */
    return copy;
}

/* What a row's function gets: where to write is `field`, a pointer into the schema. */
struct input {
    const struct json *value;
    const struct place *place;
    struct schema *schema;
    void *field;
};

static enum err skip(struct compiler *c, const struct input *in)
{
    (void)c, (void)in;
    return OK;
}

static enum err read_type_name(struct compiler *c, const struct input *in, const struct json *name)
{
    for (unsigned type = 0; type < TYPE_COUNT; type++) {
        if (!str_eq(json_text(name), str_c(types[type].name))) continue;
        in->schema->types |= 1U << type;
        return OK;
    }
    return refuse(c->reterr, in->place,
                  "must be string, number, integer, boolean, object, array or null, or a list of "
                  "these");
}

static enum err read_type(struct compiler *c, const struct input *in)
{
    if (in->value->type != JSON_ARRAY || !in->value->count) return read_type_name(c, in, in->value);
    for (const struct json *name = in->value->child; name; name = name->next) {
        enum err e = read_type_name(c, in, name);
        if (e) return e;
    }
    return OK;
}

static enum err count_properties(struct compiler *c, const struct input *in, size_t more)
{
    c->properties += more;
    if (c->properties <= SCHEMA_PROPERTIES_MAX) return OK;
    return refuse(c->reterr, in->place, "makes more than %d properties in the whole schema",
                  SCHEMA_PROPERTIES_MAX);
}

static enum err read_properties(struct compiler *c, const struct input *in)
{
    if (in->value->type != JSON_OBJECT) return refuse(c->reterr, in->place, "must be an object");
    enum err e = count_properties(c, in, in->value->count);
    if (e) return e;
    struct schema *schema = in->schema;
    schema->properties = arena_array(c->arena, in->value->count, sizeof *schema->properties);
    for (const struct json *m = in->value->child; m; m = m->next) {
        struct place place = {.up = in->place, .key = m->key};
        struct property *property = &schema->properties[schema->property_count++];
        property->name = arena_str(c->arena, m->key);
        e = compile(c, m, &place, &property->schema);
        if (e) return e;
    }
    return OK;
}

static struct property *find_property(const struct schema *schema, str name)
{
    for (size_t i = 0; i < schema->property_count; i++)
        if (str_eq(schema->properties[i].name, name)) return &schema->properties[i];
    return NULL;
}

/* Runs after read_properties. A name that is not a property gets a row without a schema. */
static enum err read_required(struct compiler *c, const struct input *in)
{
    if (in->value->type != JSON_ARRAY)
        return refuse(c->reterr, in->place, "must be a list of names");
    struct schema *schema = in->schema;
    size_t before = schema->property_count;
    struct property *rows = arena_array(c->arena, before + in->value->count, sizeof *rows);
    if (before) memcpy(rows, schema->properties, before * sizeof *rows);
    schema->properties = rows;
    for (const struct json *name = in->value->child; name; name = name->next) {
        if (name->type != JSON_STRING)
            return refuse(c->reterr, in->place, "must be a list of names");
        struct property *property = find_property(schema, name->text);
        if (!property) {
            property = &rows[schema->property_count++];
            property->name = arena_str(c->arena, name->text);
        }
        property->required = true;
    }
    return count_properties(c, in, schema->property_count - before);
}

/* Runs after read_required. */
static enum err read_additional(struct compiler *c, const struct input *in)
{
    struct schema *schema = in->schema;
    if (in->value->type == JSON_TRUE) return OK;
    if (in->value->type != JSON_FALSE) return compile(c, in->value, in->place, &schema->additional);
    schema->closed = true;
    for (size_t i = 0; i < schema->property_count; i++)
        if (!schema->properties[i].schema)
            return refuse(c->reterr, in->place,
                          "is false and \"%.*s\" is required, but not in properties: nothing could "
                          "fit",
                          STR_ARG(schema->properties[i].name));
    return OK;
}

static enum err read_items(struct compiler *c, const struct input *in)
{
    if (in->value->type == JSON_ARRAY)
        return refuse(c->reterr, in->place,
                      "must be one schema for all items; a list of schemas is not supported");
    return compile(c, in->value, in->place, &in->schema->items);
}

static enum err read_enum(struct compiler *c, const struct input *in)
{
    if (in->value->type != JSON_ARRAY || !in->value->count)
        return refuse(c->reterr, in->place, "must be a list of at least one value");
    if (in->value->count > SCHEMA_ENUM_MAX)
        return refuse(c->reterr, in->place, "has more than %d values", SCHEMA_ENUM_MAX);
    in->schema->choices = keep(c, in->value);
    return OK;
}

static enum err read_const(struct compiler *c, const struct input *in)
{
    in->schema->constant = keep(c, in->value);
    return OK;
}

static enum err read_bound(struct compiler *c, const struct input *in)
{
    if (in->value->type != JSON_NUMBER) return refuse(c->reterr, in->place, "must be a number");
    struct bound *bound = in->field;
    bound->given = true;
    bound->text = arena_str(c->arena, in->value->text);
    bound->value = decimal_read(bound->text);
    return OK;
}

static enum err read_count(struct compiler *c, const struct input *in)
{
    double value = -1;
    uint64_t *count = in->field;
    if (json_u64(in->value, count) == OK) return OK;
    if (json_f64(in->value, &value) == OK && type_of(in->value) == TYPE_INTEGER && value >= 0 &&
        value < COUNT_MAX) {
        *count = (uint64_t)value; /* 2.0 */
        return OK;
    }
    return refuse(c->reterr, in->place, "must be a whole number, 0 or more");
}

static enum err read_unique(struct compiler *c, const struct input *in)
{
    in->schema->unique = in->value->type == JSON_TRUE;
    if (in->value->type == JSON_TRUE || in->value->type == JSON_FALSE) return OK;
    return refuse(c->reterr, in->place, "must be true or false");
}

static enum err read_format(struct compiler *c, const struct input *in)
{
    in->schema->format = text_format_find(json_text(in->value));
    if (in->schema->format) return OK;
    AUTO(buf_done) struct buf shown;
    list_init(&shown);
    list_add(&shown, in->value->raw);
    return refuse(c->reterr, in->place,
                  "%.*s is not supported; use date-time, date, email or uri, or leave it out",
                  STR_ARG(buf_str(&shown)));
}

/* Read in this order: properties, then required, then additionalProperties. */
#define FIELD(name) offsetof(struct schema, name)
static const struct keyword {
    const char *name;
    enum err (*read)(struct compiler *c, const struct input *in);
    size_t field;
} keywords[] = {
    {"type", read_type, 0},
    {"properties", read_properties, 0},
    {"required", read_required, 0},
    {"additionalProperties", read_additional, 0},
    {"items", read_items, 0},
    {"enum", read_enum, 0},
    {"const", read_const, 0},
    {"minimum", read_bound, FIELD(minimum)},
    {"maximum", read_bound, FIELD(maximum)},
    {"exclusiveMinimum", read_bound, FIELD(above)},
    {"exclusiveMaximum", read_bound, FIELD(below)},
    {"minLength", read_count, FIELD(length_min)},
    {"maxLength", read_count, FIELD(length_max)},
    {"minItems", read_count, FIELD(items_min)},
    {"maxItems", read_count, FIELD(items_max)},
    {"uniqueItems", read_unique, 0},
    {"format", read_format, 0},
    {"title", skip, 0},
    {"description", skip, 0},
    {"default", skip, 0},
    {"examples", skip, 0},
    {"$schema", skip, 0},
};
#undef FIELD

static bool is_keyword(str name)
{
    for (size_t i = 0; i < COUNT(keywords); i++)
        if (str_eq(name, str_c(keywords[i].name))) return true;
    return false;
}

/* A slip of the pen, or a keyword that we do not have. */
static enum err refuse_keyword(struct compiler *c, const struct place *up, str name)
{
    struct place place = {.up = up, .key = name};
    for (size_t i = 0; i < COUNT(keywords); i++)
        if (name.len > 2 && name.len <= 64 && str_distance(name, str_c(keywords[i].name)) == 1)
            return refuse(c->reterr, &place, "is not a keyword; did you mean %s?",
                          keywords[i].name);
    return refuse(c->reterr, &place, "is not supported; docs/TOOLS.md lists the keywords that are");
}

static enum err read_keywords(struct compiler *c, const struct json *text,
                              const struct place *place, struct schema *schema)
{
    for (const struct json *m = text->child; m; m = m->next)
        if (!is_keyword(m->key)) return refuse_keyword(c, place, m->key);
    for (size_t i = 0; i < COUNT(keywords); i++) {
        const struct json *value = json_get(text, str_c(keywords[i].name));
        if (!value) continue;
        struct place inner = {.up = place, .key = value->key};
        struct input in = {value, &inner, schema, (char *)schema + keywords[i].field};
        enum err e = keywords[i].read(c, &in);
        if (e) return e;
    }
    return OK;
}

static enum err compile(struct compiler *c, const struct json *text, const struct place *place,
                        const struct schema **ret_schema)
{
    struct schema *schema = ARENA_NEW(c->arena, struct schema);
    schema->length_max = schema->items_max = UINT64_MAX;
    if (text->type != JSON_OBJECT && text->type != JSON_TRUE)
        return refuse(c->reterr, place, "must be an object of keywords%s",
                      text->type == JSON_FALSE ? "; false takes nothing: leave it out" : "");
    if (c->depth == SCHEMA_DEPTH_MAX)
        return refuse(c->reterr, place, "is more than %d levels deep", SCHEMA_DEPTH_MAX);
    c->depth++;
    enum err e = read_keywords(c, text, place, schema); /* true has none */
    c->depth--;
    if (!e) *ret_schema = schema;
    return e;
}

enum err schema_parse(struct arena *arena, const struct json *text, struct schema **ret_schema,
                      struct fault *reterr)
{
    struct compiler c = {.arena = arena, .reterr = reterr};
    struct place whole = {.key = STR_EMPTY};
    const struct schema *schema = NULL;
    enum err e = compile(&c, text, &whole, &schema);
    if (!e) *ret_schema = (struct schema *)(uintptr_t)schema;
    return e;
}

/* ---- checking ---- */

struct check {
    struct fault *reterr;
    size_t steps;
};

static enum err check_value(struct check *c, const struct schema *schema, const struct json *value,
                            const struct place *place);

static enum err check_type(struct check *c, const struct schema *schema, const struct json *value,
                           const struct place *place)
{
    enum type type = type_of(value);
    unsigned fits = 1U << type | (type == TYPE_INTEGER ? 1U << TYPE_NUMBER : 0);
    if (!schema->types || schema->types & fits) return OK;

    char wanted[200] = "";
    for (unsigned t = 0; t < TYPE_COUNT; t++) {
        if (!(schema->types & 1U << t)) continue;
        size_t len = strlen(wanted);
        snprintf(wanted + len, sizeof wanted - len, "%s%s", len ? " or " : "", types[t].noun);
    }
    str shown = type == TYPE_NUMBER && value->text.len < 40 ? value->text : str_c(types[type].noun);
    return refuse(c->reterr, place, "must be %s, not %.*s", wanted, STR_ARG(shown));
}

static enum err out_of_steps(struct check *c, const struct place *place)
{
    return refuse(c->reterr, place, "is too large to be compared; make it shorter");
}

static enum err check_choices(struct check *c, const struct schema *schema,
                              const struct json *value, const struct place *place)
{
    if (!schema->choices) return OK;
    for (const struct json *choice = schema->choices->child; choice; choice = choice->next)
        if (value_same(choice, value, &c->steps)) return OK;
    if (!c->steps) return out_of_steps(c, place);

    AUTO(buf_done) struct buf list;
    list_init(&list);
    for (const struct json *choice = schema->choices->child; choice; choice = choice->next)
        if (!list_add(&list, choice->raw)) break;
    return refuse(c->reterr, place, "must be one of %.*s", STR_ARG(buf_str(&list)));
}

static enum err check_constant(struct check *c, const struct schema *schema,
                               const struct json *value, const struct place *place)
{
    if (!schema->constant || value_same(schema->constant, value, &c->steps)) return OK;
    if (!c->steps) return out_of_steps(c, place);
    AUTO(buf_done) struct buf list;
    list_init(&list);
    list_add(&list, schema->constant->raw);
    return refuse(c->reterr, place, "must be %.*s", STR_ARG(buf_str(&list)));
}

static enum err check_number(struct check *c, const struct schema *schema, const struct json *value,
                             const struct place *place)
{
    const struct {
        const struct bound *bound;
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
            return refuse(c->reterr, place, "must be %s %.*s", rows[i].words,
                          rows[i].bound->text.len > 60 ? 60 : (int)rows[i].bound->text.len,
                          rows[i].bound->text.p);
    }
    return OK;
}

static enum err check_count(struct check *c, const struct place *place, uint64_t count,
                            uint64_t min, uint64_t max, const char *noun)
{
    if (count >= min && count <= max) return OK;
    uint64_t bound = count < min ? min : max;
    if (count == 0 && min == 1) return refuse(c->reterr, place, "must not be empty");
    return refuse(c->reterr, place, "must have at %s %llu %s%s, not %llu",
                  count < min ? "least" : "most", (unsigned long long)bound, noun,
                  bound == 1 ? "" : "s", (unsigned long long)count);
}

static enum err check_string(struct check *c, const struct schema *schema, const struct json *value,
                             const struct place *place)
{
    enum err e = check_count(c, place, value_chars(value->text), schema->length_min,
                             schema->length_max, "character");
    if (e || !schema->format || schema->format->fits(value->text)) return e;
    return refuse(c->reterr, place, "must %s", schema->format->must);
}

static enum err check_unique(struct check *c, const struct json *list, const struct place *place)
{
    size_t index = 0;
    for (const struct json *item = list->child; item; item = item->next, index++) {
        size_t other = 0;
        for (const struct json *before = list->child; before != item;
             before = before->next, other++) {
            struct place at = {.up = place, .index = index, .item = true};
            if (value_same(before, item, &c->steps))
                return refuse(c->reterr, &at, "is the same as item %zu; each may stand there once",
                              other);
            if (!c->steps) return out_of_steps(c, place);
        }
    }
    return OK;
}

static enum err check_array(struct check *c, const struct schema *schema, const struct json *value,
                            const struct place *place)
{
    enum err e = check_count(c, place, value->count, schema->items_min, schema->items_max, "item");
    if (e) return e;
    struct place at = {.up = place, .item = true};
    for (const struct json *item = value->child; item && schema->items; item = item->next) {
        e = check_value(c, schema->items, item, &at);
        if (e) return e;
        at.index++;
    }
    return schema->unique ? check_unique(c, value, place) : OK;
}

static enum err refuse_member(struct check *c, const struct schema *schema,
                              const struct place *place)
{
    AUTO(buf_done) struct buf list;
    list_init(&list);
    for (size_t i = 0; i < schema->property_count; i++)
        if (!list_add(&list, schema->properties[i].name)) break;
    if (!list.len) return refuse(c->reterr, place, "is not known; nothing may stand there");
    return refuse(c->reterr, place, "is not known; known are %.*s", STR_ARG(buf_str(&list)));
}

static enum err check_object(struct check *c, const struct schema *schema, const struct json *value,
                             const struct place *place)
{
    for (const struct json *m = value->child; m; m = m->next) {
        struct place at = {.up = place, .key = m->key};
        const struct property *property = find_property(schema, m->key);
        const struct schema *inner = property ? property->schema : NULL;
        if (!inner && schema->closed) return refuse_member(c, schema, &at);
        if (!inner) inner = schema->additional;
        enum err e = inner ? check_value(c, inner, m, &at) : OK;
        if (e) return e;
    }
    for (size_t i = 0; i < schema->property_count; i++) {
        const struct property *property = &schema->properties[i];
        struct place at = {.up = place, .key = property->name};
        if (property->required && !json_get(value, property->name))
            return refuse(c->reterr, &at, "is missing");
    }
    return OK;
}

static enum err check_value(struct check *c, const struct schema *schema, const struct json *value,
                            const struct place *place)
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
    struct place whole = {.key = str_c(name)};
    return check_value(&c, schema, value, &whole);
}
