/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions of MCP servers as forms, and what people filled in; pure. A property of the schema is
 * one field, by its kind:
 *
 *     string                        text; date if its format says so
 *     string with enum or oneOf     choice; people see the titles, the server gets the constants
 *     number, integer               number
 *     boolean                       boolean
 *     array of such a choice        text: the titles, with ";" between them; an array is taken too
 *
 * kinds[] has a row for each, with the function that reads a value. Anything else is no form:
 * nested objects, lists of other things, references. Invariants:
 *
 * 1. A form of which one field cannot be shown is refused whole: an answer without it would say
 *    less than the person believes.
 * 2. What elicit_content writes fits the schema as far as the schema is a form: types, lengths,
 *    bounds, formats, choices.
 *
 * To add a kind: its row in kinds[], its words in kind_of.
 */
#include "tool/elicit.h"

#include <stdio.h>

#include "base/limits.h"
#include "tool/tools.h"
#include "tool/value.h"

enum { HASH_HEX_SHOWN = 16, LABEL_BYTES_MAX = 256, NORMAL_BYTES_MAX = LABEL_BYTES_MAX };

enum kind { KIND_TEXT, KIND_DATE, KIND_CHOICE, KIND_NUMBER, KIND_BOOLEAN, KIND_SEVERAL, KIND_NONE };

/* A property of the schema. */
struct prop {
    str name;
    const struct json *schema;
    enum kind kind;
    const struct json *choices; /* array: of enum, oneOf or anyOf */
    const struct json *titles;  /* array: enumNames beside an enum; NULL: none */
    bool required;
};

/* ---- what must not be asked ---- */

/* Words for what grants access or moves money. Small letters and digits of ASCII count, and
 * everything beyond it: "API_Key " is "apikey". */
static bool is_secret(str words)
{
    static const char *const inside[] = {
        "password",     "passwd",     "passphrase", "passcode",  "secretkey",
        "clientsecret", "apikey",     "privatekey", "accesskey", "cvv",
        "cvc",          "cardnumber", "creditcard", "pincode",   "密码",
        "口令",         "密钥",       "私钥",       "令牌",      "卡号",
    };
    char text[NORMAL_BYTES_MAX];
    str shown = {text, 0};
    for (size_t i = 0; i < words.len && shown.len < NORMAL_BYTES_MAX; i++) {
        char c = char_lower(words.p[i]);
        if (char_is_alnum(c) || (unsigned char)c >= 0x80) text[shown.len++] = c;
    }
    for (size_t i = 0; i < COUNT(inside); i++)
        if (str_find(shown, str_c(inside[i])) >= 0) return true;
    return str_ends(shown, STR("token")) || str_eq(shown, STR("secret")) ||
           str_eq(shown, STR("pin"));
}

/* ---- reading the schema ---- */

static str text_of(const struct json *object, const char *name)
{
    return json_text(json_get(object, str_c(name)));
}

static const struct json *list_of(const struct json *object, const char *name)
{
    const struct json *list = json_get(object, str_c(name));
    return list && list->type == JSON_ARRAY ? list : NULL;
}

/* The constant of a choice; empty: it is none. */
static str choice_value(const struct json *choice)
{
    return choice->type == JSON_STRING ? choice->text : text_of(choice, "const");
}

static str choice_title(const struct prop *prop, const struct json *choice, size_t index)
{
    str title = text_of(choice, "title");
    if (!title.len && prop->titles) title = json_text(json_at(prop->titles, index));
    return title.len ? title : choice_value(choice);
}

/* Two choices that look alike are told apart by their constants. */
static bool titles_differ(const struct prop *prop)
{
    size_t i = 0;
    for (const struct json *a = prop->choices->child; a; a = a->next, i++) {
        size_t k = 0;
        for (const struct json *b = prop->choices->child; b != a; b = b->next, k++)
            if (str_eq(choice_title(prop, a, i), choice_title(prop, b, k))) return false;
    }
    return true;
}

static str choice_label(const struct prop *prop, const struct json *choice, size_t index)
{
    return titles_differ(prop) ? choice_title(prop, choice, index) : choice_value(choice);
}

/* Of the choice with this constant; of none: the text itself. */
static str label_of(const struct prop *prop, str value)
{
    size_t index = 0;
    for (const struct json *choice = prop->choices->child; choice; choice = choice->next, index++)
        if (str_eq(choice_value(choice), value)) return choice_label(prop, choice, index);
    return value;
}

static const struct json *choices_of(const struct json *schema, const struct json **ret_titles)
{
    static const char *const names[] = {"enum", "oneOf", "anyOf"};
    *ret_titles = list_of(schema, "enumNames");
    for (size_t i = 0; i < COUNT(names); i++) {
        const struct json *list = list_of(schema, names[i]);
        if (list) return list;
    }
    return NULL;
}

static enum kind kind_of(struct prop *prop)
{
    str type = text_of(prop->schema, "type");
    if (str_eq(type, STR("boolean"))) return KIND_BOOLEAN;
    if (str_eq(type, STR("number")) || str_eq(type, STR("integer"))) return KIND_NUMBER;
    const struct json *from = prop->schema;
    bool several = str_eq(type, STR("array"));
    if (several) from = json_get(from, STR("items"));
    if (!several && !str_eq(type, STR("string"))) return KIND_NONE;
    prop->choices = choices_of(from, &prop->titles);
    if (several) return prop->choices ? KIND_SEVERAL : KIND_NONE;
    if (prop->choices) return KIND_CHOICE;
    return str_eq(text_of(from, "format"), STR("date")) ? KIND_DATE : KIND_TEXT;
}

static enum err elicit_refuse(struct fault *reterr, const struct prop *prop, const char *why)
{
    char field[ASK_NAME_BYTES_MAX + 16];
    str shown = tool_text_head(prop->name, ASK_NAME_BYTES_MAX);
    snprintf(field, sizeof field, "%.*s", STR_ARG(shown));
    return fault_field(reterr, ERR_INVALID_FIELD, field, "%s %s", field, why);
}

static enum err check_choices(const struct prop *prop, struct fault *reterr)
{
    if (!prop->choices->count || prop->choices->count > ASK_CHOICES_MAX)
        return elicit_refuse(reterr, prop, "must have 1 to 50 choices");
    for (const struct json *choice = prop->choices->child; choice; choice = choice->next) {
        str value = choice_value(choice);
        if (!value.len || value.len > LABEL_BYTES_MAX ||
            text_of(choice, "title").len > LABEL_BYTES_MAX)
            return elicit_refuse(reterr, prop, "has a choice that is no text of 1 to 256 bytes");
    }
    return OK;
}

static enum err check_name(const struct prop *prop, struct fault *reterr)
{
    str name = prop->name;
    bool fits = name.len > 0 && name.len <= ASK_NAME_BYTES_MAX && str_trim(name).len == name.len;
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.p[i] < ' ' || name.p[i] == 0x7f) fits = false;
    if (!fits)
        return elicit_refuse(reterr, prop,
                             "is no name for a field: 1 to 96 bytes, no control characters");
    return OK;
}

static enum err read_prop(const struct json *schema, const struct json *member,
                          struct prop *ret_prop, struct fault *reterr)
{
    struct prop prop = {.name = member->key, .schema = member};
    enum err e = check_name(&prop, reterr);
    if (e) return e;
    prop.kind = kind_of(&prop);
    const struct json *list = list_of(schema, "required");
    for (const struct json *item = list ? list->child : NULL; item; item = item->next)
        prop.required = prop.required || str_eq(json_text(item), prop.name);
    if (prop.kind == KIND_NONE)
        return elicit_refuse(
            reterr, &prop,
            "is no text, number, boolean or choice, so it cannot be asked in a form");
    bool typed = prop.kind == KIND_TEXT || prop.kind == KIND_NUMBER; /* a PIN is a number, too */
    if (typed && (is_secret(prop.name) || is_secret(text_of(member, "title"))))
        return elicit_refuse(
            reterr, &prop,
            "looks like a password or a key, which must not be asked in a form; use a URL");
    if (prop.choices) e = check_choices(&prop, reterr);
    if (!e) *ret_prop = prop;
    return e;
}

struct form {
    struct prop props[ASK_FIELDS_MAX];
    size_t count;
};

static enum err read_form(struct arena *arena, str schema, struct form *form, struct fault *reterr)
{
    struct json *json = NULL;
    if (json_parse(arena, schema, &json, NULL))
        return fault(reterr, ERR_INVALID_FIELD, "the schema of the question is no JSON");
    if (!str_eq(text_of(json, "type"), STR("object")))
        return fault(reterr, ERR_INVALID_FIELD,
                     "the schema of the question must have the type object");
    const struct json *properties = json_get(json, STR("properties"));
    if (properties && properties->type != JSON_OBJECT)
        return fault(reterr, ERR_INVALID_FIELD, "properties must be an object");
    if (properties && properties->count > ASK_FIELDS_MAX)
        return fault(reterr, ERR_INVALID_FIELD, "a form may have %d fields", ASK_FIELDS_MAX);
    form->count = 0;
    for (const struct json *m = properties ? properties->child : NULL; m; m = m->next) {
        enum err e = read_prop(json, m, &form->props[form->count], reterr);
        if (e) return e;
        form->count++;
    }
    return OK;
}

/* ---- fields ---- */

static const char *const field_types[] = {
    [KIND_TEXT] = "text",     [KIND_DATE] = "date",       [KIND_CHOICE] = "choice",
    [KIND_NUMBER] = "number", [KIND_BOOLEAN] = "boolean", [KIND_SEVERAL] = "text",
};

/* Choices by their labels, as people see them. */
static void write_default(struct buf *out, const struct prop *prop, const struct json *value)
{
    const struct json *item = value->type == JSON_ARRAY ? value->child : value;
    for (size_t i = 0; prop->choices && item && i < ASK_CHOICES_MAX; i++) {
        str label = label_of(prop, json_text(item));
        buf_printf(out, "%s%.*s", i ? "; " : "", STR_ARG(tool_text_head(label, LABEL_BYTES_MAX)));
        item = value->type == JSON_ARRAY ? item->next : NULL;
    }
    if (!prop->choices) buf_append(out, tool_text_head(value->raw, LABEL_BYTES_MAX));
}

/* What it says itself; of several choices also how to name them; and what leaving it out means. */
static str description_of(struct arena *arena, const struct prop *prop)
{
    str own = tool_text_head(text_of(prop->schema, "description"), ASK_TEXT_BYTES_MAX / 2);
    const struct json *absent = json_get(prop->schema, STR("default"));
    AUTO(buf_done) struct buf out = {0};
    buf_init(&out, SIZE_MAX / 2); /* all its parts are bounded */
    buf_append(&out, own);
    if (prop->kind == KIND_SEVERAL) {
        size_t index = 0;
        buf_printf(&out, "%s(可多选，用“;”分隔 / one or more, with \";\" between them: ",
                   out.len ? " " : "");
        for (const struct json *c = prop->choices->child; c; c = c->next, index++)
            buf_printf(&out, "%s%.*s", index ? "; " : "", STR_ARG(choice_label(prop, c, index)));
        buf_append(&out, STR(")"));
    }
    if (absent && absent->type != JSON_NULL) {
        buf_printf(&out, "%s(不填即为 / left out it is: ", out.len ? " " : "");
        write_default(&out, prop, absent);
        buf_append(&out, STR(")"));
    }
    return arena_str(arena, buf_str(&out));
}

static void write_field(struct json_writer *w, struct arena *arena, const struct prop *prop)
{
    str label = tool_text_head(text_of(prop->schema, "title"), LABEL_BYTES_MAX);
    str description = description_of(arena, prop);
    json_object(w);
    json_member(w, STR("name"), prop->name);
    if (label.len) json_member(w, STR("label"), label);
    json_member(w, STR("type"), str_c(field_types[prop->kind]));
    /* A default stands in for what is left out, so nothing has to be filled in there. */
    if (prop->required && !json_get(prop->schema, STR("default"))) {
        json_member_bool(w, STR("required"), true);
    }
    if (prop->kind == KIND_CHOICE) {
        size_t index = 0;
        json_key(w, STR("choices"));
        json_array(w);
        for (const struct json *c = prop->choices->child; c; c = c->next, index++)
            json_string(w, choice_label(prop, c, index));
        json_array_end(w);
    }
    if (description.len) json_member(w, STR("description"), description);
    json_object_end(w);
}

enum err elicit_fields(struct arena *arena, str schema, str *ret_fields, struct fault *reterr)
{
    struct form form = {.count = 0};
    AUTO(buf_done) struct buf out = {0};
    struct json_writer w;
    enum err e = read_form(arena, schema, &form, reterr);
    if (e) return e;
    buf_init(&out, 6 * schema.len + (size_t)ASK_FIELDS_MAX * (ASK_TEXT_BYTES_MAX + 256));
    json_write_begin(&w, &out);
    json_array(&w);
    for (size_t i = 0; i < form.count; i++) write_field(&w, arena, &form.props[i]);
    json_array_end(&w);
    if (out.full) return fault(reterr, ERR_INVALID_FIELD, "the form is too long to be shown");
    *ret_fields = arena_str(arena, buf_str(&out));
    return OK;
}

/* ---- content ---- */

struct filling {
    struct json_writer *w;
    struct fault *reterr;
};

static bool in_bounds(uint64_t count, const struct json *schema, const char *least,
                      const char *most)
{
    uint64_t bound = 0;
    if (json_u64(json_get(schema, str_c(least)), &bound) == OK && count < bound) return false;
    return json_u64(json_get(schema, str_c(most)), &bound) != OK || count <= bound;
}

static enum err fill_text(const struct filling *f, const struct prop *prop,
                          const struct json *value)
{
    if (value->type != JSON_STRING) return elicit_refuse(f->reterr, prop, "must be a text");
    if (!in_bounds(value_chars(value->text), prop->schema, "minLength", "maxLength"))
        return elicit_refuse(f->reterr, prop, "is too short or too long");
    const struct text_format *format = text_format_find(text_of(prop->schema, "format"));
    if (format && !format->fits(value->text)) {
        char why[160];
        snprintf(why, sizeof why, "must %s", format->must);
        return elicit_refuse(f->reterr, prop, why);
    }
    json_string(f->w, value->text);
    return OK;
}

static enum err fill_number(const struct filling *f, const struct prop *prop,
                            const struct json *value)
{
    double checked = 0;
    if (json_f64(value, &checked)) return elicit_refuse(f->reterr, prop, "must be a number");
    struct decimal number = decimal_read(value->text);
    if (str_eq(text_of(prop->schema, "type"), STR("integer")) && !decimal_whole(&number))
        return elicit_refuse(f->reterr, prop, "must be a whole number");
    const struct json *least = json_get(prop->schema, STR("minimum"));
    const struct json *most = json_get(prop->schema, STR("maximum"));
    struct decimal bound;
    if (least && least->type == JSON_NUMBER) {
        bound = decimal_read(least->text);
        if (decimal_cmp(&number, &bound) < 0) return elicit_refuse(f->reterr, prop, "is too small");
    }
    if (most && most->type == JSON_NUMBER) {
        bound = decimal_read(most->text);
        if (decimal_cmp(&number, &bound) > 0) return elicit_refuse(f->reterr, prop, "is too large");
    }
    json_raw(f->w, value->text);
    return OK;
}

static enum err fill_boolean(const struct filling *f, const struct prop *prop,
                             const struct json *value)
{
    if (value->type != JSON_TRUE && value->type != JSON_FALSE)
        return elicit_refuse(f->reterr, prop, "must be true or false");
    json_bool(f->w, value->type == JSON_TRUE);
    return OK;
}

/* The constant of what a person picked, by its label or by itself; NULL: there is none. */
static const struct json *picked(const struct prop *prop, str text)
{
    size_t index = 0;
    for (const struct json *choice = prop->choices->child; choice; choice = choice->next, index++)
        if (str_eq(choice_label(prop, choice, index), text)) return choice;
    for (const struct json *choice = prop->choices->child; choice; choice = choice->next)
        if (str_eq(choice_value(choice), text)) return choice;
    return NULL;
}

static enum err fill_choice(const struct filling *f, const struct prop *prop,
                            const struct json *value)
{
    const struct json *choice = value->type == JSON_STRING ? picked(prop, value->text) : NULL;
    if (!choice) return elicit_refuse(f->reterr, prop, "is none of its choices");
    json_string(f->w, choice_value(choice));
    return OK;
}

struct picks {
    const struct json *rows[ASK_CHOICES_MAX];
    size_t count;
};

static bool pick(struct picks *picks, const struct prop *prop, str text)
{
    const struct json *choice = picked(prop, text);
    if (!choice || picks->count == COUNT(picks->rows)) return false;
    for (size_t i = 0; i < picks->count; i++)
        if (picks->rows[i] == choice) return true;
    picks->rows[picks->count++] = choice;
    return true;
}

/* Where the next separator begins, and how long it is: "；" and "、" are ones too. */
static size_t separator(str text, size_t *ret_len)
{
    static const char *const marks[] = {";", "；", "、", "\n"};
    for (size_t at = 0; at < text.len; at++) {
        for (size_t i = 0; i < COUNT(marks); i++) {
            str mark = str_c(marks[i]);
            if (!str_starts(str_drop(text, at), mark)) continue;
            *ret_len = mark.len;
            return at;
        }
    }
    *ret_len = 0;
    return text.len;
}

/* One title alone may have a separator in it. */
static bool pick_words(struct picks *picks, const struct prop *prop, str text)
{
    if (pick(picks, prop, text)) return true;
    for (str rest = text; rest.len;) {
        size_t len = 0, at = separator(rest, &len);
        str word = str_trim((str){rest.p, at});
        if (word.len && !pick(picks, prop, word)) return false;
        rest = str_drop(rest, at + len);
    }
    return true;
}

static enum err fill_several(const struct filling *f, const struct prop *prop,
                             const struct json *value)
{
    struct picks picks = {.count = 0};
    bool fits = value->type == JSON_STRING ? pick_words(&picks, prop, str_trim(value->text))
                                           : value->type == JSON_ARRAY;
    for (const struct json *item = value->type == JSON_ARRAY ? value->child : NULL; item && fits;
         item = item->next)
        fits = item->type == JSON_STRING && pick(&picks, prop, item->text);
    if (!fits) return elicit_refuse(f->reterr, prop, "names something that is none of its choices");
    if (!in_bounds(picks.count, prop->schema, "minItems", "maxItems"))
        return elicit_refuse(f->reterr, prop, "names too few or too many choices");
    json_array(f->w);
    for (size_t i = 0; i < picks.count; i++) json_string(f->w, choice_value(picks.rows[i]));
    json_array_end(f->w);
    return OK;
}

static enum err (*const kinds[])(const struct filling *f, const struct prop *prop,
                                 const struct json *value) = {
    [KIND_TEXT] = fill_text,     [KIND_DATE] = fill_text,       [KIND_CHOICE] = fill_choice,
    [KIND_NUMBER] = fill_number, [KIND_BOOLEAN] = fill_boolean, [KIND_SEVERAL] = fill_several,
};

static enum err refuse_unknown(const struct form *form, const struct json *values,
                               struct fault *reterr)
{
    for (const struct json *m = values->child; m; m = m->next) {
        bool known = false;
        for (size_t i = 0; i < form->count; i++) known |= str_eq(form->props[i].name, m->key);
        if (!known)
            return elicit_refuse(reterr, &(struct prop){.name = m->key},
                                 "is no field of this question");
    }
    return OK;
}

enum err elicit_content(struct arena *arena, str schema, const struct json *values,
                        str *ret_content, struct fault *reterr)
{
    struct form form = {.count = 0};
    AUTO(buf_done) struct buf out = {0};
    struct json_writer w;
    enum err e = read_form(arena, schema, &form, reterr);
    if (!e && values->type != JSON_OBJECT)
        e = fault(reterr, ERR_INVALID_FIELD, "what is filled in must be an object");
    if (!e) e = refuse_unknown(&form, values, reterr);
    if (e) return e;
    buf_init(&out, ANSWER_BYTES_MAX + schema.len);
    json_write_begin(&w, &out);
    json_object(&w);
    struct filling filling = {&w, reterr};
    for (size_t i = 0; i < form.count; i++) {
        const struct prop *prop = &form.props[i];
        const struct json *value = json_get(values, prop->name);
        if (!value || value->type == JSON_NULL) value = json_get(prop->schema, STR("default"));
        bool missing = !value || value->type == JSON_NULL;
        if (missing && prop->required) return elicit_refuse(reterr, prop, "is missing");
        if (missing) continue;
        json_key(&w, prop->name);
        e = kinds[prop->kind](&filling, prop, value);
        if (e) return e;
    }
    json_object_end(&w);
    if (out.full) return fault(reterr, ERR_INVALID_FIELD, "the answer is too long");
    *ret_content = arena_str(arena, buf_str(&out));
    return OK;
}

/* ---- the hash ---- */

static void add_part(struct crypto_hash *hash, str part)
{
    unsigned char len[8];
    for (size_t i = 0; i < sizeof len; i++) len[i] = (unsigned char)(part.len >> (8 * i));
    crypto_hash_add(hash, (str){(const char *)len, sizeof len});
    crypto_hash_add(hash, part);
}

str elicit_hash(struct arena *arena, const struct tool_question *question)
{
    unsigned char sum[HASH_BYTES];
    struct crypto_hash *hash = crypto_hash_new();
    add_part(hash, question->message);
    add_part(hash, question->schema);
    add_part(hash, question->url);
    crypto_hash_take(hash, sum);
    crypto_hash_free(hash);
    char *hex = arena_alloc(arena, HASH_HEX_BYTES);
    crypto_hex((str){(const char *)sum, HASH_BYTES}, hex);
    return (str){hex, HASH_HEX_SHOWN};
}
