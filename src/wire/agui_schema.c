/* SPDX-License-Identifier: Apache-2.0
 *
 * The schema of an AG-UI interrupt's answer: what it has to look like, so that a client that knows
 * nothing of ours can show a form. The schema is as narrow as the question: labels only where free
 * words are not taken, one choice unless several may be picked, no changed arguments where none are
 * taken.
 *
 *     ask_user          a string, or an object as POST answer takes it
 *     confirm           {"approved", "editedArgs"?, "comment"?}
 *     others            {"decision"}
 *
 * The server checks answers by itself (agent/core/answer.c) and never against this. To add a type of
 * interaction: a row in `decisions`, or a function beside write_confirm. To add a type of field: a
 * row in `field_types`.
 */
#include "base/limits.h"
#include "wire/agui_int.h"
#include "wire/stored.h"

static void type_member(struct json_writer *w, const char *type)
{
    json_member(w, STR("type"), str_c(type));
}

/* An object, up to the first of its properties. */
static void properties_begin(struct json_writer *w)
{
    json_object(w);
    type_member(w, "object");
    json_key(w, STR("properties"));
    json_object(w);
}

/* "required":[name] */
static void requires(struct json_writer *w, const char *name)
{
    json_key(w, STR("required"));
    json_array(w);
    json_string(w, str_c(name));
    json_array_end(w);
}

/* ---- questions ---- */

static const struct json *list_of(struct arena *arena, str stored)
{
    struct json *list = NULL;
    if (!stored.len || json_parse(arena, stored, &list, NULL)) return NULL; /* it is ours */
    return list->type == JSON_ARRAY && list->count ? list : NULL;
}

/* Words: the labels, and others too if the question takes them. */
static void write_words(struct json_writer *w, const struct interaction *interaction,
                        const struct json *choices)
{
    json_object(w);
    type_member(w, "string");
    if (interaction->allow_freeform) agui_u64_member(w, "minLength", 1);
    if (choices) {
        json_key(w, interaction->allow_freeform ? STR("examples") : STR("enum"));
        json_array(w);
        for (const struct json *choice = choices->child; choice; choice = choice->next)
            json_string(w, json_text(json_get(choice, STR("label"))));
        json_array_end(w);
    }
    json_object_end(w);
}

static void write_picks(struct json_writer *w, const struct interaction *interaction,
                        const struct json *choices)
{
    json_key(w, STR("choices"));
    json_object(w);
    type_member(w, "array");
    json_key(w, STR("items"));
    json_object(w);
    type_member(w, "string");
    json_key(w, STR("oneOf"));
    json_array(w);
    for (const struct json *choice = choices->child; choice; choice = choice->next) {
        json_object(w);
        json_member(w, STR("const"), json_text(json_get(choice, STR("id"))));
        json_member(w, STR("title"), json_text(json_get(choice, STR("label"))));
        agui_text_member(w, "description", json_text(json_get(choice, STR("description"))));
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
    agui_u64_member(w, "minItems", 1);
    agui_u64_member(w, "maxItems", interaction->multi ? choices->count : 1);
    agui_bool_member(w, "uniqueItems", true);
    json_object_end(w);
}

/* type of a field, type and format of its value */
static const struct {
    const char *name, *type, *format;
} field_types[] = {
    {"text", "string", NULL},   {"number", "number", NULL}, {"boolean", "boolean", NULL},
    {"date", "string", "date"}, {"choice", "string", NULL},
};

static void write_field(struct json_writer *w, const struct json *field)
{
    str type = json_text(json_get(field, STR("type")));
    const struct json *choices = json_get(field, STR("choices"));
    json_key(w, json_text(json_get(field, STR("name"))));
    json_object(w);
    for (size_t i = 0; i < COUNT(field_types); i++) {
        if (!str_eq(type, str_c(field_types[i].name))) continue;
        type_member(w, field_types[i].type);
        if (field_types[i].format) json_member(w, STR("format"), str_c(field_types[i].format));
    }
    if (str_eq(type, STR("text"))) agui_u64_member(w, "minLength", 1);
    if (choices && str_eq(type, STR("choice"))) agui_raw_member(w, "enum", choices->raw);
    agui_text_member(w, "title", json_text(json_get(field, STR("label"))));
    agui_text_member(w, "description", json_text(json_get(field, STR("description"))));
    json_object_end(w);
}

static void write_fields(struct json_writer *w, const struct json *fields)
{
    json_key(w, STR("fields"));
    properties_begin(w);
    for (const struct json *field = fields->child; field; field = field->next)
        write_field(w, field);
    json_object_end(w);
    json_key(w, STR("required"));
    json_array(w);
    for (const struct json *field = fields->child; field; field = field->next) {
        const struct json *required = json_get(field, STR("required"));
        if (required && required->type == JSON_TRUE)
            json_string(w, json_text(json_get(field, STR("name"))));
    }
    json_array_end(w);
    agui_u64_member(w, "minProperties", 1);
    agui_bool_member(w, "additionalProperties", false);
    json_object_end(w);
}

static void write_ask(struct json_writer *w, const struct interaction *interaction)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    const struct json *choices = list_of(&arena, interaction->choices);
    const struct json *fields = list_of(&arena, interaction->fields);
    bool words = choices || interaction->allow_freeform;
    json_object(w);
    json_key(w, STR("anyOf"));
    json_array(w);
    if (words) write_words(w, interaction, choices);
    properties_begin(w);
    if (choices) write_picks(w, interaction, choices);
    if (choices && interaction->allow_freeform)
        json_member_raw(w, STR("text"), STR("{\"type\":\"string\",\"minLength\":1}"));
    if (words) {
        json_key(w, STR("answer"));
        write_words(w, interaction, choices);
    }
    if (fields) write_fields(w, fields);
    json_member_raw(w, STR("skip"), STR("{\"const\":true}"));
    json_object_end(w);
    agui_u64_member(w, "minProperties", 1);
    agui_bool_member(w, "additionalProperties", false);
    json_object_end(w);
    json_array_end(w);
    json_object_end(w);
}

/* ---- decisions ---- */

/* Changed arguments are offered exactly where they are taken: if the call came with a schema. That
 * goes for a plan too, which is the arguments of submit_plan. */
static void write_confirm(struct json_writer *w, const struct interaction *interaction)
{
    properties_begin(w);
    json_member_raw(w, STR("approved"), STR("{\"type\":\"boolean\"}"));
    agui_raw_member(w, "editedArgs", interaction->args_schema);
    json_member_raw(w, STR("comment"), STR("{\"type\":\"string\"}"));
    json_object_end(w);
    requires(w, "approved");
    json_object_end(w);
}

enum { DECISIONS_SHOWN_MAX = 4 };

static const char *const decisions[INTERACTION_TYPE_COUNT][DECISIONS_SHOWN_MAX] = {
    [INTERACTION_CONNECTION_LOST] = {"continue", "give_up"},
    [INTERACTION_UNCERTAIN] = {"retry", "happened", "give_up"},
};

static void write_decision(struct json_writer *w, enum interaction_type type)
{
    properties_begin(w);
    json_key(w, STR("decision"));
    json_object(w);
    type_member(w, "string");
    json_key(w, STR("enum"));
    json_array(w);
    for (size_t i = 0; i < DECISIONS_SHOWN_MAX && decisions[type][i]; i++)
        json_string(w, str_c(decisions[type][i]));
    json_array_end(w);
    json_object_end(w);
    json_object_end(w);
    requires(w, "decision");
    json_object_end(w);
}

void agui_response_schema(struct json_writer *w, const struct interaction *interaction)
{
    if (interaction->type == INTERACTION_ASK_USER)
        write_ask(w, interaction);
    else if (interaction->type == INTERACTION_CONFIRM)
        write_confirm(w, interaction);
    else
        write_decision(w, interaction->type);
}
