/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person may answer: the bodies of POST answer, and plain messages, which answer a question
 * or reject an approval.
 *
 *     question         {"choices":["c1"],"text"?} | {"answer"} | {"fields":{}} | {"skip":true}
 *     confirm          {"decision":"approve|edit|reject|respond",
 *                       "args"?,"comment"?,"always"?,"binding"?}
 *     connection_lost  {"decision":"continue|give_up"}
 *     uncertain        {"decision":"retry|happened|give_up"}
 *
 * 1. Every member of a body is used or refused by name; nothing is passed over. So what is kept of
 *    an accepted body is accepted again and means the same.
 * 2. Only a body with the word `approve` or `edit` lets a call run. A plain message never does.
 * 3. A binding is looked at before the rest of an answer: who saw another call is told that first.
 * 4. What the model gets is made here, once, and stored with the answer.
 *
 * To add a decision: a row of DECISIONS and its bit in `shapes`. To add a way to answer a question:
 * its name in `shapes` and a row in `ways`. To add a type of field: a row in `field_types`, and its
 * word in the schema of ask_user.
 */
#include <stdio.h>
#include <string.h>

#include "agent/core/facts.h"
#include "agent/core/interaction_int.h"
#include "agent/core/policy.h"
#include "base/clock.h"
#include "base/limits.h"
#include "tool/elicit.h"
#include "tool/schema.h"

/* ---- shapes ---- */

#define DECISION_NAME(decision, name) [decision] = name,
static const char *const decision_names[] = {DECISIONS(DECISION_NAME)};

#define CAN(decision) (1u << (decision))

/* By type: the decisions that it takes, and the members of a body. */
static const struct {
    unsigned decisions;
    const char *members[6];
} shapes[INTERACTION_TYPE_COUNT] = {
    [INTERACTION_ASK_USER] = {0, {"choices", "text", "answer", "fields", "skip", NULL}},
    [INTERACTION_CONFIRM] = {CAN(DECISION_APPROVE) | CAN(DECISION_EDIT) | CAN(DECISION_REJECT) |
                                 CAN(DECISION_RESPOND),
                             {"decision", "args", "comment", "always", "binding", NULL}},
    [INTERACTION_CONNECTION_LOST] = {CAN(DECISION_CONTINUE) | CAN(DECISION_GIVE_UP),
                                     {"decision", NULL}},
    [INTERACTION_UNCERTAIN] = {CAN(DECISION_RETRY) | CAN(DECISION_HAPPENED) | CAN(DECISION_GIVE_UP),
                               {"decision", NULL}},
};

/* One answer on its way through the checks. */
struct reading {
    struct arena *arena;
    const struct interaction *interaction;
    const struct json *body;
    struct fault *reterr;
};

static const struct json *member(const struct reading *r, const char *name)
{
    return json_get(r->body, str_c(name));
}

static enum err answer_refuse(const struct reading *r, const char *field, const char *why)
{
    return fault_field(r->reterr, ERR_INVALID_FIELD, field, "%s %s", field, why);
}

/* Our own JSON, out of the row; *ret_value is NULL where the row has none. */
static enum err stored(const struct reading *r, str json, enum json_type type,
                       const struct json **ret_value)
{
    struct json *value = NULL;
    if (json.len && (json_parse(r->arena, json, &value, NULL) || value->type != type))
        return fault(r->reterr, ERR_DAMAGED, "the stored interaction cannot be read");
    *ret_value = value;
    return OK;
}

/* ---- texts for the model ---- */

static str joined(struct arena *arena, str a, str b, str c)
{
    char *text = arena_alloc(arena, a.len + b.len + c.len + 1), *at = text;
    if (a.len) at = mempcpy(at, a.p, a.len);
    if (b.len) at = mempcpy(at, b.p, b.len);
    if (c.len) memcpy(at, c.p, c.len);
    return (str){text, a.len + b.len + c.len};
}

static str in_words(const struct interaction *interaction, str english, str chinese)
{
    return locale_is_chinese(interaction->locale) ? chinese : english;
}

static str skipped(const struct interaction *interaction)
{
    return in_words(interaction, STR("The user skipped this question"), STR("用户跳过了这个问题"));
}

/* The label; of several, a JSON array. */
static str labels_text(struct arena *arena, const str *labels, size_t count)
{
    if (count == 1) return labels[0];
    AUTO(json_doc_done) struct json_doc doc;
    size_t bytes = 2;
    for (size_t i = 0; i < count; i++) bytes += ESCAPE_BYTES_MAX * labels[i].len + 3;
    json_doc_open(&doc, bytes);
    json_array(&doc.w);
    for (size_t i = 0; i < count; i++) json_string(&doc.w, labels[i]);
    json_array_end(&doc.w);
    assert(!doc.buf.full);
    return json_doc_copy(&doc, arena);
}

/* ---- choices ---- */

static const struct json *choice_with(const struct json *choices, str key, str value)
{
    for (const struct json *choice = choices ? choices->child : NULL; choice; choice = choice->next)
        if (str_eq(json_text(json_get(choice, key)), value)) return choice;
    return NULL;
}

static enum err take_choice(const struct reading *r, const struct json *choices,
                            const struct json *item, str *labels, size_t index)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "choices[%zu]", index);
    if (item->type != JSON_STRING) return answer_refuse(r, path, "must be the id of a choice");
    const struct json *choice = choice_with(choices, STR("id"), item->text);
    if (!choice) return answer_refuse(r, path, "is none of the choices");
    labels[index] = json_text(json_get(choice, STR("label")));
    for (size_t i = 0; i < index; i++)
        if (str_eq(labels[i], labels[index])) return answer_refuse(r, path, "was picked before");
    return OK;
}

static enum err take_note(const struct reading *r, str *ret_note)
{
    const struct json *text = member(r, "text");
    *ret_note = STR_EMPTY;
    if (!text) return OK;
    if (text->type != JSON_STRING) return answer_refuse(r, "text", "must be a string");
    if (!r->interaction->allow_freeform)
        return answer_refuse(r, "text", "is not taken: this question has choices only");
    *ret_note = text_trim(text->text);
    return ret_note->len ? OK
                         : answer_refuse(r, "text", "is blank: leave it out, or say something");
}

static enum err take_choices(const struct reading *r, const struct json *value,
                             struct resolution *resolution)
{
    const struct json *choices = NULL;
    str labels[ASK_CHOICES_MAX], note = STR_EMPTY;
    size_t count = 0;
    enum err e = stored(r, r->interaction->choices, JSON_ARRAY, &choices);
    if (e) return e;
    if (value->type != JSON_ARRAY) return answer_refuse(r, "choices", "must be a list of ids");
    if (!value->count) return answer_refuse(r, "choices", "must name at least one choice");
    if (!choices) return answer_refuse(r, "choices", "is not taken: this question has none");
    if (value->count > 1 && !r->interaction->multi)
        return answer_refuse(r, "choices", "may name one choice only");
    if (value->count > COUNT(labels))
        return answer_refuse(r, "choices", "names more than there are");
    for (const struct json *item = value->child; item; item = item->next, count++) {
        e = take_choice(r, choices, item, labels, count);
        if (e) return e;
    }
    e = take_note(r, &note);
    if (e) return e;
    resolution->text = labels_text(r->arena, labels, count);
    if (note.len) resolution->text = joined(r->arena, resolution->text, STR(": "), note);
    return OK;
}

/* ---- words ---- */

static enum err take_answer(const struct reading *r, const struct json *value,
                            struct resolution *resolution)
{
    const struct json *choices = NULL;
    enum err e = stored(r, r->interaction->choices, JSON_ARRAY, &choices);
    if (e) return e;
    if (value->type != JSON_STRING) return answer_refuse(r, "answer", "must be a string");
    str text = text_trim(value->text);
    if (!text.len)
        return answer_refuse(r, "answer", "is blank: say something, or skip the question");
    if (!choice_with(choices, STR("label"), text) && !r->interaction->allow_freeform)
        return answer_refuse(r, "answer", "is none of the choices, and nothing else is taken");
    resolution->text = text; /* a label is what it says */
    return OK;
}

static enum err take_skip(const struct reading *r, const struct json *value,
                          struct resolution *resolution)
{
    if (value->type != JSON_TRUE) return answer_refuse(r, "skip", "must be true");
    resolution->decision = DECISION_SKIP;
    resolution->text = skipped(r->interaction);
    return OK;
}

/* ---- fields ---- */

static bool fits_text(const struct json *field, const struct json *value)
{
    (void)field;
    return value->type == JSON_STRING && text_trim(value->text).len > 0;
}

static bool fits_number(const struct json *field, const struct json *value)
{
    double number;
    (void)field;
    return json_f64(value, &number) == OK;
}

static bool fits_boolean(const struct json *field, const struct json *value)
{
    (void)field;
    return value->type == JSON_TRUE || value->type == JSON_FALSE;
}

static bool fits_date(const struct json *field, const struct json *value)
{
    msec at;
    (void)field;
    return value->type == JSON_STRING && value->text.len == strlen("2026-11-15") &&
           clock_parse(value->text, &at) == OK;
}

static bool fits_choice(const struct json *field, const struct json *value)
{
    const struct json *choices = json_get(field, STR("choices"));
    if (value->type != JSON_STRING) return false;
    for (const struct json *item = choices ? choices->child : NULL; item; item = item->next)
        if (str_eq(json_text(item), value->text)) return true;
    return false;
}

static const struct answer_field_type {
    const char *name;
    bool (*fits)(const struct json *field, const struct json *value);
    const char *otherwise;
} field_types[] = {
    {"text", fits_text, "must be a text that is not blank"},
    {"number", fits_number, "must be a number"},
    {"boolean", fits_boolean, "must be true or false"},
    {"date", fits_date, "must be a date as 2026-11-15"},
    {"choice", fits_choice, "is none of its choices"},
};

static const struct answer_field_type *field_type(str name)
{
    for (size_t i = 0; i < COUNT(field_types); i++)
        if (str_eq(name, str_c(field_types[i].name))) return &field_types[i];
    return NULL;
}

bool field_type_known(str name)
{
    return field_type(name) != NULL;
}

static const struct json *field_named(const struct json *fields, str name)
{
    for (const struct json *field = fields->child; field; field = field->next)
        if (str_eq(json_text(json_get(field, STR("name"))), name)) return field;
    return NULL;
}

static enum err refuse_value(const struct reading *r, str name, const char *why)
{
    char path[PATH_BYTES];
    path_join("fields", name, path);
    return answer_refuse(r, path, why);
}

static enum err check_values(const struct reading *r, const struct json *fields,
                             const struct json *values)
{
    for (const struct json *value = values->child; value; value = value->next) {
        const struct json *field = field_named(fields, value->key);
        if (!field) return refuse_value(r, value->key, "is no field of this question");
        const struct answer_field_type *type = field_type(json_text(json_get(field, STR("type"))));
        if (!type) return fault(r->reterr, ERR_DAMAGED, "the stored interaction cannot be read");
        if (!type->fits(field, value)) return refuse_value(r, value->key, type->otherwise);
    }
    for (const struct json *field = fields->child; field; field = field->next) {
        str name = json_text(json_get(field, STR("name")));
        const struct json *required = json_get(field, STR("required"));
        if (required && required->type == JSON_TRUE && !json_get(values, name))
            return refuse_value(r, name, "is missing");
    }
    return OK;
}

/* A form of a tool has a schema of its own, which knows more than our types of fields. */
static enum err check_form(const struct reading *r, const struct json *values)
{
    str content;
    struct fault why = {0};
    char path[PATH_BYTES];
    if (!r->interaction->args_schema.len) return OK;
    enum err e = elicit_content(r->arena, r->interaction->args_schema, values, &content, &why);
    if (!e) return OK;
    if (!why.field[0]) return fault_field(r->reterr, e, "fields", "%s", why.text);
    path_join("fields", str_c(why.field), path);
    return fault_field(r->reterr, e, path, "fields.%s", why.text);
}

static enum err take_fields(const struct reading *r, const struct json *value,
                            struct resolution *resolution)
{
    const struct json *fields = NULL;
    enum err e = stored(r, r->interaction->fields, JSON_ARRAY, &fields);
    if (e) return e;
    if (value->type != JSON_OBJECT) return answer_refuse(r, "fields", "must be an object");
    if (!fields) return answer_refuse(r, "fields", "is not taken: this question has none");
    e = check_values(r, fields, value);
    if (!e) e = check_form(r, value);
    if (e) return e;
    if (!value->count && !r->interaction->args_schema.len)
        return answer_refuse(r, "fields", "is empty: fill one in, or skip the question");
    resolution->text = json_one_line(r->arena, value->raw);
    return OK;
}

/* ---- a question ---- */

static const struct way {
    const char *name;
    enum err (*take)(const struct reading *r, const struct json *value,
                     struct resolution *resolution);
} ways[] = {
    {"choices", take_choices},
    {"answer", take_answer},
    {"fields", take_fields},
    {"skip", take_skip},
};

static enum err read_question(const struct reading *r, struct resolution *resolution)
{
    const struct way *way = NULL;
    for (size_t i = 0; i < COUNT(ways); i++) {
        if (!member(r, ways[i].name)) continue;
        if (way) return answer_refuse(r, ways[i].name, "does not go with another way to answer");
        way = &ways[i];
    }
    if (member(r, "text") && (!way || way->take != take_choices))
        return answer_refuse(r, "text", "goes with choices; words alone are the `answer`");
    if (!way)
        return fault(r->reterr, ERR_INVALID_FIELD,
                     "nothing is answered: send choices, answer, fields or skip");
    resolution->decision = DECISION_ANSWER;
    return way->take(r, member(r, way->name), resolution);
}

/* ---- decisions ---- */

static enum err refuse_decision(const struct reading *r)
{
    char list[128] = "";
    size_t len = 0;
    for (unsigned i = 0; i < DECISION_COUNT; i++)
        if (shapes[r->interaction->type].decisions & CAN(i))
            len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", len ? ", " : "",
                                    decision_names[i]);
    return fault_field(r->reterr, ERR_INVALID_FIELD, "decision", "decision must be one of %s",
                       list);
}

static enum err take_decision(const struct reading *r, enum decision *ret_decision)
{
    const struct json *value = member(r, "decision");
    for (unsigned i = 0; i < DECISION_COUNT; i++) {
        if (!(shapes[r->interaction->type].decisions & CAN(i))) continue;
        if (!value || !str_eq(json_text(value), str_c(decision_names[i]))) continue;
        *ret_decision = (enum decision)i;
        return OK;
    }
    return refuse_decision(r);
}

static enum err check_binding(const struct reading *r)
{
    const struct json *binding = member(r, "binding");
    if (!binding) return OK;
    if (binding->type != JSON_STRING) return answer_refuse(r, "binding", "must be a string");
    if (str_eq_secret(binding->text, r->interaction->binding)) return OK;
    return fault_field(r->reterr, ERR_BINDING_MISMATCH, "binding",
                       "this answers another call than the one that waits; load it again");
}

/* The model gets the comment where nothing runs; beside an approval it is a note for people, kept
 * with the answer. Only `respond` has to say something. */
static enum err take_comment(const struct reading *r, struct resolution *resolution)
{
    const struct json *comment = member(r, "comment");
    if (comment && comment->type != JSON_STRING)
        return answer_refuse(r, "comment", "must be a string");
    bool responds = resolution->decision == DECISION_RESPOND;
    if (!responds && resolution->decision != DECISION_REJECT) return OK;
    resolution->text = text_trim(json_text(comment));
    if (responds && !resolution->text.len)
        return answer_refuse(r, "comment",
                             "is what the model gets instead of a result; say something");
    return OK;
}

static enum err check_args(const struct reading *r, const struct json *args)
{
    const struct json *text = NULL;
    struct schema *schema = NULL;
    enum err e = stored(r, r->interaction->args_schema, JSON_OBJECT, &text);
    if (e) return e;
    if (!text)
        return answer_refuse(r, "args", "cannot be changed: this call came without a schema");
    if (schema_parse_lenient(r->arena, text, &schema, NULL))
        return fault(r->reterr, ERR_DAMAGED, "the stored schema cannot be read");
    return schema_check(schema, args, "args", r->reterr);
}

static enum err take_args(const struct reading *r, struct resolution *resolution)
{
    const struct json *args = member(r, "args");
    if (resolution->decision != DECISION_EDIT)
        return args ? answer_refuse(r, "args", "goes with edit only") : OK;
    if (!args || args->type != JSON_OBJECT)
        return answer_refuse(r, "args", "must be an object with all arguments");
    enum err e = check_args(r, args);
    if (e) return e;
    resolution->args = json_one_line(r->arena, args->raw);
    return OK;
}

/* ---- always ---- */

static enum err take_match(const struct reading *r, const struct json *match,
                           struct resolution *resolution)
{
    const struct json *args = NULL;
    if (match->type != JSON_OBJECT) return answer_refuse(r, "always.match", "must be an object");
    if (match->count > GRANT_MATCH_ARGS_MAX || match->raw.len > GRANT_MATCH_BYTES_MAX)
        return answer_refuse(r, "always.match", "is too long: nobody could tell what it allows");
    enum err e = stored(r, r->interaction->args, JSON_OBJECT, &args);
    if (e) return e;
    for (const struct json *wanted = match->child; wanted; wanted = wanted->next) {
        const struct json *arg = json_get(args, wanted->key);
        if (arg && value_identical(wanted, arg)) continue;
        char path[PATH_BYTES];
        path_join("always.match", wanted->key, path);
        return answer_refuse(
            r, path, arg ? "has another value in this call" : "is no argument of this call");
    }
    resolution->match = json_one_line(r->arena, match->raw);
    return OK;
}

static enum err take_scope(const struct reading *r, const struct json *always,
                           struct resolution *resolution)
{
    static const char *const members[] = {"scope", "match", NULL};
    enum err e = refuse_unknown(always, "always", members, r->reterr);
    if (e) return e;
    str scope = json_text(json_get(always, STR("scope")));
    const struct json *match = json_get(always, STR("match"));
    resolution->always_user = str_eq(scope, STR("user"));
    if (!resolution->always_user && !str_eq(scope, STR("thread")))
        return answer_refuse(r, "always.scope", "must be thread or user");
    return match ? take_match(r, match, resolution) : OK;
}

static enum err take_always(const struct reading *r, struct resolution *resolution)
{
    const struct json *always = member(r, "always");
    if (!always || always->type == JSON_FALSE) return OK;
    if (resolution->decision != DECISION_APPROVE)
        return answer_refuse(r, "always", "goes with approve only");
    if (str_eq(r->interaction->tool, tool_submit_plan.name))
        return answer_refuse(r, "always", "is not for plans: each is approved by itself");
    if (always->type != JSON_TRUE && always->type != JSON_OBJECT)
        return answer_refuse(r, "always", "must be true, or an object with a scope");
    resolution->always = true;
    return always->type == JSON_OBJECT ? take_scope(r, always, resolution) : OK;
}

static enum err read_decision(const struct reading *r, struct resolution *resolution)
{
    enum err e = take_decision(r, &resolution->decision);
    if (!e) e = check_binding(r);
    if (!e) e = take_comment(r, resolution);
    if (!e) e = take_args(r, resolution);
    if (!e) e = take_always(r, resolution);
    return e;
}

/* ---- bodies ---- */

/* The members in their order, each with its bytes, but for the binding. */
static str kept_body(const struct reading *r)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, r->body->raw.len + 2);
    json_object(&doc.w);
    for (const struct json *value = r->body->child; value; value = value->next) {
        if (str_eq(value->key, STR("binding"))) continue;
        json_member_raw(&doc.w, value->key, value->raw);
    }
    json_object_end(&doc.w);
    assert(!doc.buf.full);
    return json_one_line(r->arena, buf_str(&doc.buf));
}

enum err answer_parse(struct arena *arena, const struct interaction *interaction,
                      const struct json *body, struct resolution *ret_resolution,
                      struct fault *reterr)
{
    struct reading r = {arena, interaction, body, reterr};
    struct resolution resolution = {.interaction_id = interaction->id, .match = STR("{}")};
    assert(interaction->type < INTERACTION_TYPE_COUNT);
    if (!body || body->type != JSON_OBJECT)
        return fault(reterr, ERR_INVALID_FIELD, "the answer must be a JSON object");
    if (body->raw.len > ANSWER_BYTES_MAX)
        return fault(reterr, ERR_TOO_LARGE, "an answer may have %d bytes", ANSWER_BYTES_MAX);
    enum err e = refuse_unknown(body, "", shapes[interaction->type].members, reterr);
    if (e) return e;
    e = interaction->type == INTERACTION_ASK_USER ? read_question(&r, &resolution)
                                                  : read_decision(&r, &resolution);
    if (e) return e;
    resolution.answer = kept_body(&r);
    *ret_resolution = resolution;
    return OK;
}

/* ---- plain messages ---- */

static str quoted_in(struct arena *arena, str before, str text, str after)
{
    return joined(arena, before, text_json(arena, text), after);
}

/* The choice of this label; else the one of this number. */
static str picked_label(struct arena *arena, const struct interaction *interaction, str text)
{
    struct json *choices = NULL;
    uint64_t number = 0;
    if (!interaction->choices.len || json_parse(arena, interaction->choices, &choices, NULL))
        return STR_EMPTY;
    const struct json *choice = choice_with(choices, STR("label"), text);
    if (!choice && str_to_u64(text, &number) == OK && number > 0)
        choice = json_at(choices, number - 1);
    return json_text(json_get(choice, STR("label")));
}

static void plain_to_question(struct arena *arena, const struct interaction *interaction, str text,
                              struct resolution *resolution)
{
    str label = picked_label(arena, interaction, text);
    bool answers = label.len || (interaction->allow_freeform && text.len);
    resolution->decision = answers ? DECISION_ANSWER : DECISION_SKIP;
    resolution->answer = quoted_in(arena, STR("{\"answer\":"), text, STR("}"));
    if (label.len)
        resolution->text = label;
    else if (answers)
        resolution->text = text;
    else if (text.len)
        resolution->text = joined(arena,
                                  in_words(interaction, STR("The user did not choose and said: "),
                                           STR("用户没有选择，而是说：")),
                                  text, STR_EMPTY);
    else
        resolution->text = skipped(interaction);
}

void answer_plain(struct arena *arena, const struct interaction *interaction, str text,
                  struct resolution *ret_resolution)
{
    struct resolution resolution = {.interaction_id = interaction->id, .match = STR("{}")};
    assert(interaction->type < INTERACTION_TYPE_COUNT &&
           interaction->type != INTERACTION_UNCERTAIN);
    text = text_trim(text);
    if (interaction->type == INTERACTION_ASK_USER) {
        plain_to_question(arena, interaction, text, &resolution);
    } else if (interaction->type == INTERACTION_CONFIRM) {
        resolution.decision = DECISION_REJECT;
        resolution.text = text;
        resolution.answer =
            quoted_in(arena, STR("{\"decision\":\"reject\",\"comment\":"), text, STR("}"));
    } else {
        resolution.decision = DECISION_CONTINUE;
        resolution.answer = STR("{\"decision\":\"continue\"}");
    }
    *ret_resolution = resolution;
}
