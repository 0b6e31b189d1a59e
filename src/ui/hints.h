/* SPDX-License-Identifier: Apache-2.0
 *
 * UiHints 2.1, read: what a tool or a model says about a card, checked and with nothing empty left
 * in it. docs/schema/ui-hints-2.1.json says the same as JSON Schema.
 *
 * Texts are trimmed. List entries that would show nothing are gone, so whoever lays the card out
 * never meets an empty part. Everything borrows from the JSON or lies in the arena.
 */
#ifndef UI_HINTS_H
#define UI_HINTS_H

#include "base/json.h"

/* A word of a fixed list. The value 0 is "not given"; value n is words[n - 1]. */
struct words {
    const str *words;
    size_t count;
};
str words_at(const struct words *words, unsigned value); /* value > 0 */

enum { INTENT_MESSAGE = 1, INTENT_DATA, INTENT_LIST, INTENT_STATUS, INTENT_FORM, INTENT_MIXED };
enum { STATUS_INFO = 1, STATUS_SUCCESS, STATUS_WARNING, STATUS_ERROR, STATUS_PENDING };
enum { FORMAT_PLAIN = 1, FORMAT_MARKDOWN };
enum { STYLE_PRIMARY = 1, STYLE_SECONDARY, STYLE_GHOST, STYLE_DANGER };

extern const struct words words_status, words_style, words_size;

struct hint_icon {
    str name; /* empty: none */
    unsigned size, status;
};

struct hint_badge {
    str label; /* empty: none */
    unsigned status;
};

struct hint_list {
    void *items;
    size_t count;
};

struct hint_kv {
    str key, label;
    const struct json *value;
    bool copyable;
};

/* What a button does: the fields that its kind has, the others empty. */
struct hint_act {
    unsigned kind; /* of hint_act_fields */
    str path, url, event, tool_id, content, success_message, submit_to;
    unsigned target;
    const struct json *params, *payload;
};

struct hint_action {
    str label;
    unsigned style;
    bool disabled;
    struct hint_icon icon;
    struct hint_act act;
};

struct hint_item { /* of a list */
    str title, subtitle, description;
    struct hint_icon icon;
    struct hint_badge badge;
    struct hint_list items;   /* struct hint_kv */
    struct hint_list actions; /* struct hint_action */
};

struct hint_part { /* a section, or the card itself */
    str title, description, body;
    unsigned body_format, status;
    bool code;                   /* the body is one code fence; its marks are gone */
    struct hint_list items;      /* struct hint_kv */
    struct hint_list list_items; /* struct hint_item */
    struct hint_list sections;   /* struct hint_part; of the card only */
    struct hint_list actions;    /* struct hint_action */
    struct hint_icon icon;
};

struct hints {
    unsigned version, intent;
    struct hint_part card;
    const struct json *meta; /* checked, and otherwise nobody's business here */
};

/* ERR_INVALID_HINTS for anything that is not UiHints; fault.field is then the JSON Pointer. */
enum err hints_read(struct arena *arena, const struct json *json, struct hints *ret_hints,
                    struct fault *reterr) MUST_USE;

/* The fields of an action, for whoever writes it: in the order of the format. */
enum field_type {
    FIELD_TEXT,   /* trimmed */
    FIELD_EXACT,  /* as it is */
    FIELD_NAME,   /* trimmed, and not empty */
    FIELD_LINK,   /* where link_is_safe says so */
    FIELD_PATH,   /* where link_is_path says so */
    FIELD_WORD,   /* one of a list */
    FIELD_FLAG,   /* true or false */
    FIELD_ANY,    /* any JSON */
    FIELD_OBJECT, /* any JSON object */
    FIELD_ICON,   /* a name, or an object */
    FIELD_SHAPE,  /* an object with fields of its own */
    FIELD_LIST,   /* of such objects */
    FIELD_ACT,    /* an object whose fields depend on its type */
};

struct shape;
struct field {
    str name;
    enum field_type type;
    bool required;
    size_t offset;
    const struct words *words; /* FIELD_WORD */
    const struct shape *shape; /* FIELD_SHAPE, FIELD_LIST */
};

struct shape {
    const struct field *fields;
    size_t count;
    size_t size;            /* of the struct that it fills */
    bool (*settle)(void *); /* after all fields: false if it would show nothing; or NULL */
};

str hint_act_name(unsigned kind);
const struct shape *hint_act_shape(unsigned kind);

#endif
