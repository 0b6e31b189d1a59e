/* SPDX-License-Identifier: Apache-2.0
 *
 * What compiling (schema_parse.c) and checking (schema.c) share. Inside this folder only.
 */
#ifndef TOOL_SCHEMA_INT_H
#define TOOL_SCHEMA_INT_H

#include "tool/schema.h"
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

struct schema_type {
    const char *name;
    const char *noun; /* for people */
};
extern const struct schema_type schema_types[TYPE_COUNT];

enum type schema_type_of(const struct json *value); /* TYPE_NUMBER only if it is not whole */

struct property {
    str name;
    const struct schema *schema; /* NULL: only required */
    bool required;
};

struct schema_bound {
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
    struct schema_bound minimum, maximum, above, below;
    uint64_t length_min, length_max; /* of a string, in characters */
    uint64_t items_min, items_max;
    bool unique;
    const struct text_format *format; /* NULL: any */
};

struct property *schema_property(const struct schema *schema, str name); /* NULL if there is none */

/* Where we are, from the innermost outwards. On the stack; it becomes text only in a refusal. */
struct schema_place {
    const struct schema_place *up; /* NULL: the whole */
    str key;                       /* of a member; of the whole its name */
    size_t index;                  /* of an item */
    bool item;
};

/* ERR_INVALID_FIELD at a place: its path is the field, and stands in front of the text. */
enum err schema_refuse(struct fault *reterr, const struct schema_place *place, const char *format,
                       ...) PRINTF(3, 4);

/* A list for a refusal, cut where it gets too long: "a, b, ...". buf_done ends it. */
void schema_list_init(struct buf *list);
bool schema_list_add(struct buf *list, str item); /* false: there is no room for more */

#endif
