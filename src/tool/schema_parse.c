/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of JSON Schema that tools need, compiled into a tree.
 *
 * A schema is an object of keywords. keywords[] has a row for each we know, with the function that
 * reads it; a keyword without a row is refused by its name, so nothing is ever checked less strictly
 * than its author thinks. There are no references, so the tree is as deep as the text.
 *
 *     {"type":"object","properties":{"to":{"type":"array","items":{"format":"email"}}}}
 *
 *     schema ── properties[0] "to" ── schema ── items ── schema: format email
 *       types: object                   types: array
 *
 * A schema of somebody else (schema_parse_lenient) may use all of JSON Schema: a keyword that we do
 * not know, or not in this form, is left out, and with it what it would have refused. Of the limits
 * only the number of properties still counts; what is deeper than we go is not checked.
 *
 * A compiled schema points into its arena and constant tables only: the text may go.
 *
 * To add a keyword: a field of struct schema, a row in keywords[] with its function, its part in
 * schema.c, and a row in docs/TOOLS.md. To add an annotation that means nothing to us: a row with
 * skip.
 */
#include "tool/schema_int.h"

#include <string.h>

#include "base/limits.h"

#define COUNT_MAX 9007199254740992.0 /* what a double counts exactly */

struct compiler {
    struct arena *arena;
    struct fault *reterr;
    unsigned depth;
    size_t properties; /* of the whole schema */
    bool lenient;
    bool too_many; /* properties */
};

static enum err compile(struct compiler *c, const struct json *text,
                        const struct schema_place *place, const struct schema **ret_schema);

/* A copy that does not need the schema's text. */
static const struct json *schema_parse_keep(struct compiler *c, const struct json *value)
{
    char *raw = arena_cstr(c->arena, value->raw);
    struct json *copy = NULL;
    value_one_line(raw, value->raw.len); /* it may be shown */
    enum err e = json_parse(c->arena, (str){raw, value->raw.len}, &copy, NULL);
    assert(!e); /* it was parsed before */
    return copy;
}

/* What a row's function gets: where to write is `field`, a pointer into the schema. */
struct schema_parse_input {
    const struct json *value;
    const struct schema_place *place;
    struct schema *schema;
    void *field;
    bool exempt; /* lenient: patternProperties or prefixItems say more about its members */
};

static enum err skip(struct compiler *c, const struct schema_parse_input *in)
{
    (void)c, (void)in;
    return OK;
}

static enum err read_type_name(struct compiler *c, const struct schema_parse_input *in,
                               const struct json *name)
{
    for (unsigned type = 0; type < TYPE_COUNT; type++) {
        if (!str_eq(json_text(name), str_c(schema_types[type].name))) continue;
        in->schema->types |= 1U << type;
        return OK;
    }
    return schema_refuse(
        c->reterr, in->place,
        "must be string, number, integer, boolean, object, array or null, or a list of "
        "these");
}

static enum err read_type(struct compiler *c, const struct schema_parse_input *in)
{
    if (in->value->type != JSON_ARRAY || !in->value->count) return read_type_name(c, in, in->value);
    for (const struct json *name = in->value->child; name; name = name->next) {
        enum err e = read_type_name(c, in, name);
        if (e) return e;
    }
    return OK;
}

static enum err count_properties(struct compiler *c, const struct schema_parse_input *in,
                                 size_t more)
{
    c->properties += more;
    if (c->properties <= SCHEMA_PROPERTIES_MAX) return OK;
    c->too_many = true;
    return schema_refuse(c->reterr, in->place, "makes more than %d properties in the whole schema",
                         SCHEMA_PROPERTIES_MAX);
}

static enum err read_properties(struct compiler *c, const struct schema_parse_input *in)
{
    if (in->value->type != JSON_OBJECT)
        return schema_refuse(c->reterr, in->place, "must be an object");
    enum err e = count_properties(c, in, in->value->count);
    if (e) return e;
    struct schema *schema = in->schema;
    schema->properties = arena_array(c->arena, in->value->count, sizeof *schema->properties);
    for (const struct json *m = in->value->child; m; m = m->next) {
        struct schema_place place = {.up = in->place, .key = m->key};
        struct property *property = &schema->properties[schema->property_count++];
        property->name = arena_str(c->arena, m->key);
        e = compile(c, m, &place, &property->schema);
        if (e) return e;
    }
    return OK;
}

/* Runs after read_properties. A name that is not a property gets a row without a schema. */
static enum err read_required(struct compiler *c, const struct schema_parse_input *in)
{
    if (in->value->type != JSON_ARRAY)
        return schema_refuse(c->reterr, in->place, "must be a list of names");
    struct schema *schema = in->schema;
    size_t before = schema->property_count;
    struct property *rows = arena_array(c->arena, before + in->value->count, sizeof *rows);
    if (before) memcpy(rows, schema->properties, before * sizeof *rows);
    schema->properties = rows;
    for (const struct json *name = in->value->child; name; name = name->next) {
        if (name->type != JSON_STRING)
            return schema_refuse(c->reterr, in->place, "must be a list of names");
        struct property *property = schema_property(schema, name->text);
        if (!property) {
            property = &rows[schema->property_count++];
            property->name = arena_str(c->arena, name->text);
        }
        property->required = true;
    }
    return count_properties(c, in, schema->property_count - before);
}

/* Runs after read_required. */
static enum err read_additional(struct compiler *c, const struct schema_parse_input *in)
{
    struct schema *schema = in->schema;
    if (in->value->type == JSON_TRUE) return OK;
    if (in->exempt) return OK;
    if (in->value->type != JSON_FALSE) return compile(c, in->value, in->place, &schema->additional);
    schema->closed = true;
    for (size_t i = 0; i < schema->property_count; i++)
        if (!schema->properties[i].schema)
            return schema_refuse(
                c->reterr, in->place,
                "is false and \"%.*s\" is required, but not in properties: nothing could "
                "fit",
                STR_ARG(schema->properties[i].name));
    return OK;
}

static enum err read_items(struct compiler *c, const struct schema_parse_input *in)
{
    if (in->exempt) return OK;
    if (in->value->type == JSON_ARRAY)
        return schema_refuse(
            c->reterr, in->place,
            "must be one schema for all items; a list of schemas is not supported");
    return compile(c, in->value, in->place, &in->schema->items);
}

static enum err read_enum(struct compiler *c, const struct schema_parse_input *in)
{
    if (in->value->type != JSON_ARRAY || !in->value->count)
        return schema_refuse(c->reterr, in->place, "must be a list of at least one value");
    if (in->value->count > SCHEMA_ENUM_MAX)
        return schema_refuse(c->reterr, in->place, "has more than %d values", SCHEMA_ENUM_MAX);
    in->schema->choices = schema_parse_keep(c, in->value);
    return OK;
}

static enum err read_const(struct compiler *c, const struct schema_parse_input *in)
{
    in->schema->constant = schema_parse_keep(c, in->value);
    return OK;
}

static enum err read_bound(struct compiler *c, const struct schema_parse_input *in)
{
    if (in->value->type != JSON_NUMBER)
        return schema_refuse(c->reterr, in->place, "must be a number");
    struct schema_bound *bound = in->field;
    bound->given = true;
    bound->text = arena_str(c->arena, in->value->text);
    bound->value = decimal_read(bound->text);
    return OK;
}

static enum err read_count(struct compiler *c, const struct schema_parse_input *in)
{
    double value = -1;
    uint64_t *count = in->field;
    if (json_u64(in->value, count) == OK) return OK;
    if (json_f64(in->value, &value) == OK && schema_type_of(in->value) == TYPE_INTEGER &&
        value >= 0 && value < COUNT_MAX) {
        *count = (uint64_t)value; /* 2.0 */
        return OK;
    }
    return schema_refuse(c->reterr, in->place, "must be a whole number, 0 or more");
}

static enum err read_unique(struct compiler *c, const struct schema_parse_input *in)
{
    in->schema->unique = in->value->type == JSON_TRUE;
    if (in->value->type == JSON_TRUE || in->value->type == JSON_FALSE) return OK;
    return schema_refuse(c->reterr, in->place, "must be true or false");
}

static enum err read_format(struct compiler *c, const struct schema_parse_input *in)
{
    in->schema->format = text_format_find(json_text(in->value));
    if (in->schema->format) return OK;
    AUTO(buf_done) struct buf shown;
    schema_list_init(&shown);
    schema_list_add(&shown, in->value->raw);
    return schema_refuse(
        c->reterr, in->place,
        "%.*s is not supported; use date-time, date, email or uri, or leave it out",
        STR_ARG(buf_str(&shown)));
}

/* Read in this order: properties, then required, then additionalProperties. */
#define FIELD(name) offsetof(struct schema, name)
static const struct keyword {
    const char *name;
    enum err (*read)(struct compiler *c, const struct schema_parse_input *in);
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

/* A slip of the pen, or a keyword that we do not have. */
static enum err refuse_keyword(struct compiler *c, const struct schema_place *up, str name)
{
    struct schema_place place = {.up = up, .key = name};
    for (size_t i = 0; i < COUNT(keywords); i++)
        if (name.len > 2 && name.len <= 64 && str_distance(name, str_c(keywords[i].name)) == 1)
            return schema_refuse(c->reterr, &place, "is not a keyword; did you mean %s?",
                                 keywords[i].name);
    return schema_refuse(c->reterr, &place,
                         "is not supported; docs/TOOLS.md lists the keywords that are");
}

static enum err read_keyword(struct compiler *c, const struct keyword *keyword,
                             const struct json *text, const struct schema_place *place,
                             struct schema *schema)
{
    const struct json *value = json_get(text, str_c(keyword->name));
    if (!value || (c->lenient && keyword->read == read_format)) return OK; /* 2020-12: a remark */
    struct schema_place inner = {.up = place, .key = value->key};
    bool exempt = json_get(text, STR("patternProperties")) || json_get(text, STR("prefixItems"));
    struct schema_parse_input in = {value, &inner, schema, (char *)schema + keyword->field,
                                    c->lenient && exempt};
    struct schema before = *schema;
    enum err e = keyword->read(c, &in);
    if (!e || !c->lenient || c->too_many) return e;
    *schema = before;
    return OK;
}

static enum err read_keywords(struct compiler *c, const struct json *text,
                              const struct schema_place *place, struct schema *schema)
{
    for (const struct json *m = text->child; m && !c->lenient; m = m->next) {
        size_t i = 0;
        while (i < COUNT(keywords) && !str_eq(m->key, str_c(keywords[i].name))) i++;
        if (i == COUNT(keywords)) return refuse_keyword(c, place, m->key);
    }
    /* What a reference stands for we do not know, nor, by the older drafts, what stands beside it. */
    if (c->lenient && json_get(text, STR("$ref"))) return OK;
    for (size_t i = 0; i < COUNT(keywords); i++) {
        enum err e = read_keyword(c, &keywords[i], text, place, schema);
        if (e) return e;
    }
    return OK;
}

static enum err compile(struct compiler *c, const struct json *text,
                        const struct schema_place *place, const struct schema **ret_schema)
{
    struct schema *schema = ARENA_NEW(c->arena, struct schema);
    schema->length_max = schema->items_max = UINT64_MAX;
    bool known = text->type == JSON_OBJECT || text->type == JSON_TRUE;
    if (!known && !c->lenient)
        return schema_refuse(c->reterr, place, "must be an object of keywords%s",
                             text->type == JSON_FALSE ? "; false takes nothing: leave it out" : "");
    if (c->depth == SCHEMA_DEPTH_MAX && !c->lenient)
        return schema_refuse(c->reterr, place, "is more than %d levels deep", SCHEMA_DEPTH_MAX);
    enum err e = OK;
    if (text->type == JSON_OBJECT && c->depth < SCHEMA_DEPTH_MAX) { /* true has no keywords */
        c->depth++;
        e = read_keywords(c, text, place, schema);
        c->depth--;
    }
    if (!e) *ret_schema = schema;
    return e;
}

static enum err parse(struct compiler *c, const struct json *text, struct schema **ret_schema)
{
    struct schema_place whole = {.key = STR_EMPTY};
    const struct schema *schema = NULL;
    enum err e = compile(c, text, &whole, &schema);
    if (!e) *ret_schema = (struct schema *)(uintptr_t)schema;
    return e;
}

enum err schema_parse(struct arena *arena, const struct json *text, struct schema **ret_schema,
                      struct fault *reterr)
{
    struct compiler c = {.arena = arena, .reterr = reterr};
    return parse(&c, text, ret_schema);
}

enum err schema_parse_lenient(struct arena *arena, const struct json *text,
                              struct schema **ret_schema, struct fault *reterr)
{
    struct compiler c = {.arena = arena, .reterr = reterr, .lenient = true};
    return parse(&c, text, ret_schema);
}
