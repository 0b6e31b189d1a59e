/* SPDX-License-Identifier: Apache-2.0
 *
 * Forms as lines of text, and lines of a reply as their values. A reply to one field is its value.
 * To several it is a line for each:
 *
 *     姓名：张三            by label, name or number of the field
 *     2. 2026年11月15日
 *     备注：第一行
 *     第二行                goes on with the text before it
 *
 * or, without any names, one line for each field in their order. Values are brought into the form
 * that agent/core/answer.c checks: full-width digits, dates as people write them, yes and no.
 *
 * To add a type of field: a row in `types` and its function.
 */
#include "chat/form.h"

#include <string.h>

#include "agent/core/texts.h"
#include "base/clock.h"
#include "base/limits.h"
#include "chat/chat_words.h"
#include "chat/draft.h"
#include "chat/pick.h"
#include "ui/out.h"
#include "ui/text.h"

static str in(enum ui_locale locale, str english, str chinese)
{
    return locale == UI_ZH ? chinese : english;
}

/* ---- types ---- */

/* Each takes a trimmed text that is not empty and writes its JSON, or refuses. */
typedef bool value_fn(struct out *out, const struct json *field, str text);

static bool take_text(struct out *out, const struct json *field, str text)
{
    (void)field;
    out_string(out, text);
    return true;
}

/* A number as JSON writes it, from one that is typed: "＋０１２" is 12. */
static bool take_number(struct out *out, const struct json *field, str text)
{
    enum { BYTES_MAX = 64 };
    char folded[BYTES_MAX];
    size_t len = 0, from = 0;
    unsigned small = 0;
    (void)field;
    str rest = text;
    if (text.len > 3 * BYTES_MAX) return false;
    if (numeral_take(&rest, &small) && is_tail(rest)) {
        out_u64(out, small);
        return true;
    }
    for (rest = text; rest.len;) {
        uint32_t code = fold_next(&rest);
        if (code == ',') continue; /* of thousands */
        if (code > 0x7f || len == sizeof folded) return false;
        folded[len++] = (char)code;
    }
    bool minus = len && folded[0] == '-';
    if (len && (folded[0] == '-' || folded[0] == '+')) from = 1;
    while (from + 1 < len && folded[from] == '0' && folded[from + 1] >= '0' &&
           folded[from + 1] <= '9')
        from++;
    str number = {folded + from, len - from};
    struct json *json = NULL;
    if (!number.len || number.p[0] == '-' || json_parse(out->arena, number, &json, NULL) ||
        json->type != JSON_NUMBER)
        return false;
    if (minus) out_char(out, '-');
    out_raw(out, number);
    return true;
}

static bool take_boolean(struct out *out, const struct json *field, str text)
{
    (void)field;
    bool yes = means(text, MEANS_TRUE);
    if (!yes && !means(text, MEANS_FALSE)) return false;
    out_raw(out, yes ? STR("true") : STR("false"));
    return true;
}

/* 2026-11-15, 2026/11/5, 2026.11.15, 2026年11月15日 */
static bool take_date(struct out *out, const struct json *field, str text)
{
    unsigned parts[3] = {0};
    msec at;
    (void)field;
    for (size_t i = 0; i < COUNT(parts); i++) {
        text = skip_spaces(text);
        if (!numeral_take(&text, &parts[i])) return false;
        text = skip_spaces(text);
        str day = text;
        if (i == 2 && fold_starts(&day, STR("日"))) text = day;
        if (i < 2 && text.len && !memchr("0123456789", text.p[0], 10)) ui_next_char(&text);
    }
    if (!is_tail(text) || parts[0] > 9999 || parts[1] > 99 || parts[2] > 99) return false;
    str date = arena_printf(out->arena, "%04u-%02u-%02u", parts[0], parts[1], parts[2]);
    if (clock_parse(date, &at)) return false;
    out_string(out, date);
    return true;
}

static bool take_choice(struct out *out, const struct json *field, str text)
{
    struct choices choices;
    struct picked picked;
    choices_of(&choices, json_get(field, STR("choices")));
    if (pick_read(&choices, text, false, &picked) != PICK_DONE) return false;
    out_string(out, choices.labels[picked.at[0]]);
    return true;
}

static const struct form_type {
    str name;
    value_fn *take;
    str hint[UI_LOCALES];
} types[] = {
    {STR("text"), take_text, {STR("text"), STR("文字")}},
    {STR("number"), take_number, {STR("number"), STR("数字")}},
    {STR("boolean"), take_boolean, {STR("yes or no"), STR("是或否")}},
    {STR("date"), take_date, {STR("date, e.g. 2026-11-15"), STR("日期，如 2026-11-15")}},
    {STR("choice"), take_choice, {STR("one of: "), STR("选一项：")}},
};

static const struct form_type *type_of(const struct json *field)
{
    str name = json_text(json_get(field, STR("type")));
    for (size_t i = 0; i < COUNT(types); i++)
        if (str_eq(name, types[i].name)) return &types[i];
    return &types[0];
}

static bool is_required(const struct json *field)
{
    const struct json *required = json_get(field, STR("required"));
    return required && required->type == JSON_TRUE;
}

static str label_of(const struct json *field)
{
    str label = json_text(json_get(field, STR("label")));
    return label.len ? label : json_text(json_get(field, STR("name")));
}

/* ---- what is asked ---- */

/* "1 红 / 2 蓝" */
static void put_choices(struct out *out, const struct json *field, size_t chars_max)
{
    struct choices choices;
    choices_of(&choices, json_get(field, STR("choices")));
    for (size_t i = 0; i < choices.count; i++) {
        if (i) out_raw(out, STR(" / "));
        out_u64(out, i + 1);
        out_char(out, ' ');
        out_raw(out, text_short(out->arena, choices.labels[i], chars_max));
    }
}

str form_line(struct arena *arena, enum ui_locale locale, const struct json *field,
              size_t chars_max)
{
    const struct form_type *type = type_of(field);
    str about = json_text(json_get(field, STR("description")));
    struct out out;
    out_init(&out, arena, 0, SIZE_MAX / 4);
    out_raw(&out, text_short(arena, label_of(field), chars_max));
    out_raw(&out, in(locale, STR(" ("), STR("（")));
    out_raw(&out, type->hint[locale]);
    if (type->take == take_choice) put_choices(&out, field, chars_max);
    if (is_required(field)) out_raw(&out, in(locale, STR(", required"), STR("，必填")));
    out_raw(&out, in(locale, STR(")"), STR("）")));
    if (about.len) {
        out_raw(&out, STR(" - "));
        out_raw(&out, text_short(arena, about, chars_max));
    }
    return out_str(&out);
}

str form_hint(enum ui_locale locale, size_t fields)
{
    if (fields == 1) return in(locale, STR("Type your answer"), STR("请直接输入你的回答"));
    return in(locale, STR("Reply line by line, `name: value`"),
              STR("请按行回复，每行一项，如“名称：内容”"));
}

/* ---- what is replied ---- */

/* "2. value", "2：value"; not "2.5" and not "10:30". */
static bool number_at(str line, unsigned *ret_number, str *ret_value)
{
    static const str marks[] = {STR("."), STR("、"), STR(")"), STR(":"), STR("=")};
    if (!numeral_take(&line, ret_number)) return false;
    line = skip_spaces(line);
    for (size_t i = 0; i < COUNT(marks); i++) {
        str rest = line, digit = line;
        unsigned number;
        if (!fold_starts(&rest, marks[i])) continue;
        digit = rest;
        if (numeral_take(&digit, &number)) return false;
        *ret_value = rest;
        return true;
    }
    return false;
}

static bool name_at(const struct json *field, str line, str *ret_value)
{
    const str names[] = {label_of(field), json_text(json_get(field, STR("name")))};
    for (size_t i = 0; i < COUNT(names); i++) {
        str at = line;
        if (!names[i].len || !fold_starts(&at, names[i])) continue;
        at = skip_spaces(at);
        if (!fold_starts(&at, STR(":")) && !fold_starts(&at, STR("="))) continue;
        *ret_value = at;
        return true;
    }
    return false;
}

/* The field that a line names, with what follows; NULL: none. The only one has no number. */
static const struct json *field_at(const struct json *fields, str line, str *ret_value)
{
    unsigned number = 0;
    for (const struct json *field = fields->child; field; field = field->next)
        if (name_at(field, line, ret_value)) return field;
    if (fields->count < 2 || !number_at(line, &number, ret_value) || !number) return NULL;
    return json_at(fields, number - 1);
}

bool form_names(const struct json *fields, str text)
{
    while (text.p) {
        str value, line = words_trim(str_split(&text, '\n'));
        if (line.len && field_at(fields, line, &value)) return true;
    }
    return false;
}

struct form {
    struct arena *arena;
    enum ui_locale locale;
    const struct json *fields;
    str values[ASK_FIELDS_MAX]; /* empty: none was given */
    size_t count;               /* fields */
    str say;
};

static str names_and(struct form *form, str names, str name)
{
    const str parts[] = {names, in(form->locale, STR(", "), STR("、")),
                         text_short(form->arena, name, 40)};
    return names.len ? text_join(form->arena, parts, COUNT(parts)) : parts[2];
}

static void form_say(struct form *form, str english, str chinese, str names)
{
    const str parts[] = {in(form->locale, english, chinese), names};
    if (!form->say.len) form->say = text_join(form->arena, parts, COUNT(parts));
}

static size_t index_of(const struct form *form, const struct json *field)
{
    size_t index = 0;
    for (const struct json *m = form->fields->child; m != field; m = m->next) index++;
    return index;
}

static str line_joined(struct form *form, str a, str b)
{
    const str parts[] = {a, STR("\n"), b};
    return text_join(form->arena, parts, COUNT(parts));
}

static void read_named(struct form *form, str text)
{
    const struct json *last = NULL;
    while (text.p) {
        str value = STR_EMPTY, line = words_trim(str_split(&text, '\n'));
        const struct json *field = line.len ? field_at(form->fields, line, &value) : NULL;
        if (!line.len) continue;
        if (field) {
            form->values[index_of(form, field)] = words_trim(value);
            last = field;
        } else if (last && type_of(last)->take == take_text) {
            str *of = &form->values[index_of(form, last)];
            *of = of->len ? line_joined(form, *of, line) : line;
        } else {
            form_say(form, STR("This line does not say which item it is: "),
                     STR("这一行没有写明是哪一项："), text_short(form->arena, line, 60));
        }
    }
}

/* Without names: as many lines as there are fields. */
static void read_in_order(struct form *form, str text)
{
    size_t lines = 0;
    for (str rest = text; rest.p;) lines += words_trim(str_split(&rest, '\n')).len > 0;
    if (lines != form->count) {
        form_say(form, STR("Reply line by line, `name: value`. Wanted: "),
                 STR("请按行回复，每行一项，如“名称：内容”。需要填写："), STR_EMPTY);
        str names = STR_EMPTY;
        for (const struct json *m = form->fields->child; m; m = m->next)
            names = names_and(form, names, label_of(m));
        const str parts[] = {form->say, names};
        form->say = text_join(form->arena, parts, COUNT(parts));
        return;
    }
    for (size_t i = 0; text.p;) {
        str line = words_trim(str_split(&text, '\n'));
        if (line.len) form->values[i++] = line;
    }
}

static void write_values(struct form *form, struct out *out)
{
    str missing = STR_EMPTY;
    size_t i = 0;
    bool comma = false;
    for (const struct json *field = form->fields->child; field; field = field->next, i++) {
        str value = form->values[i];
        if (!is_required(field) && means(value, MEANS_SKIP)) value = STR_EMPTY;
        if (!value.len) {
            if (is_required(field)) missing = names_and(form, missing, label_of(field));
            continue;
        }
        if (comma) out_char(out, ',');
        comma = true;
        out_string(out, json_text(json_get(field, STR("name"))));
        out_char(out, ':');
        if (!type_of(field)->take(out, field, value))
            form_say(form, STR("This does not fit: "), STR("这一项不对："),
                     form_line(form->arena, form->locale, field, 40));
    }
    if (missing.len) form_say(form, STR("Still missing: "), STR("还缺："), missing);
    if (!comma) form_say(form, STR("Nothing is filled in."), STR("还没有填写内容。"), STR_EMPTY);
}

str form_read(struct arena *arena, enum ui_locale locale, const struct json *fields, str text,
              str *ret_say)
{
    struct form form = {.arena = arena, .locale = locale, .fields = fields, .count = fields->count};
    struct out out;
    out_init(&out, arena, text.len, ANSWER_BYTES_MAX);
    text = words_trim(text);
    if (form.count > COUNT(form.values)) form.count = 0; /* not ours */
    if (!form.count || !text.len)
        form_say(&form, STR("Nothing is filled in."), STR("还没有填写内容。"), STR_EMPTY);
    else if (form_names(fields, text))
        read_named(&form, text);
    else if (form.count == 1)
        form.values[0] = text;
    else
        read_in_order(&form, text);
    out_raw(&out, STR("{\"fields\":{"));
    if (!form.say.len) write_values(&form, &out);
    out_raw(&out, STR("}}"));
    if (out.over) form_say(&form, STR("That is too long."), STR("内容太长了。"), STR_EMPTY);
    *ret_say = form.say;
    return form.say.len ? STR_EMPTY : out_str(&out);
}
