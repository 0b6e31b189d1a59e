/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of records in the configuration: their types, how a value is read and printed. For
 * record.c, which has the tables.
 */
#ifndef APP_CONFIG_FIELD_H
#define APP_CONFIG_FIELD_H

#include "app/config/config.h"
#include "app/config/option.h"

struct yaml_node;

/* type, what it fills */
enum field_type {
    NAME,     /* str: of a tool */
    ADDRESS,  /* str: a URL to call */
    PROSE,    /* str: any text */
    TEMPLATE, /* struct config_template */
    SCHEMA,   /* const struct json * */
    EFFECT,   /* bool: it writes */
    YES_NO,   /* bool */
    RISK,     /* enum tool_risk */
    SECONDS,  /* uint32_t */
    HEADERS,  /* struct config_headers */
    KEY_FILE, /* two str: the path, and the secret in the file */
    EVENTS,   /* unsigned: bits of enum config_event */
    COMMAND,  /* struct strs: a program and its arguments */
    PAIRS,    /* struct config_pairs: variables of a program */
    PATTERNS, /* struct strs: names of tools, or patterns */
    PLATFORM, /* str: a kind of channel */
    WORD,     /* str: one line */
    BASE,     /* str: a URL that paths are put behind; without / at its end */
    FILE_AT,  /* str: of a file that is read when the record is whole */
    SENDERS,  /* struct strs: ids of people on a chat platform, or "*" */
};

struct field {
    const char *name;
    enum field_type type;
    size_t offset; /* in the record */
    bool required;
    const char *help[LANG_COUNT];
};

const char *field_form(enum field_type type); /* completes "write ..." */
bool field_name_taken(str name);              /* a tool or pack that comes with us */

/* Words of values, for reading and printing. */
struct field_event {
    const char *name;
    unsigned bit;
};
extern const struct field_event field_events[];
extern const size_t field_event_count;
struct field_language {
    const char *name;
    size_t offset; /* of its text in struct config_template */
};
extern const struct field_language field_languages[];
extern const size_t field_language_count;
extern const char *const field_effects[], *const field_truths[]; /* by bool */

/* One value on its way into its field. */
struct field_value {
    const struct config *config;
    struct arena *arena;
    struct fault *reterr;
    const struct field *field;
    const struct yaml_node *node;
    str path; /* "tools[0].http.effect" */
};

/* Check the node and put it into its field. Blocks if the field names a file. */
enum err field_take(const struct field_value *v, void *record) MUST_USE;
enum err field_missing(const struct field_value *v) MUST_USE; /* the refusal */

/* Lines of YAML, each with the place behind it. */
struct field_printer {
    struct buf *out;
    struct option_place place;
    const char *lead;   /* what the next line begins with */
    const char *indent; /* and the ones after it */
};
void field_line(struct field_printer *p, str key); /* a key without a value */
void field_put(struct field_printer *p, const struct field *field, const void *record);

#endif
