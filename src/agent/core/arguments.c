/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of a call as rows for a person, and what an edit changed in them.
 *
 *     {"title":" x","place":{"city":"Y"},"tags":[],"n":1}
 *
 *     title         ⟦U+0020⟧x
 *     place.city    Y
 *     tags          ⟦empty list⟧
 *     n             1
 *
 * 1. Every value has its row; an empty one says so. Words of ours stand in the brackets of
 *    ui/visible.h, which no argument can write, so no argument can pass for such a word.
 * 2. Names are unique: a key that could be read as a path is quoted, ["a.b"].
 * 3. A list or object that is long, deep or has long keys is one row of JSON, so the rows together
 *    stay in proportion to the arguments.
 * 4. A number keeps its digits: one that a reader could round is shown as text.
 *
 * To add a word: a value of enum arguments_word and its row.
 */
#include "agent/core/arguments.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/texts.h"
#include "base/limits.h"
#include "base/rows.h"
#include "ui/visible.h"

enum arguments_word {
    WORD_NONE, /* no mark */
    WORD_EMPTY_TEXT,
    WORD_EMPTY_LIST,
    WORD_EMPTY_OBJECT,
    WORD_NULL,
    WORD_JSON,
    WORD_WHOLE,
    WORD_DONE_WHEN,
    WORD_BEFORE,
    WORD_AFTER,
    WORD_ADDED,
    WORD_REMOVED,
};

static const str words[][UI_LOCALES] = {
    [WORD_EMPTY_TEXT] = {STR("⟦empty text⟧"), STR("⟦空文本⟧")},
    [WORD_EMPTY_LIST] = {STR("⟦empty list⟧"), STR("⟦空列表⟧")},
    [WORD_EMPTY_OBJECT] = {STR("⟦empty object⟧"), STR("⟦空对象⟧")},
    [WORD_NULL] = {STR("⟦null⟧"), STR("⟦null⟧")},
    [WORD_JSON] = {STR("⟦JSON⟧"), STR("⟦JSON⟧")},
    [WORD_WHOLE] = {STR("⟦arguments⟧"), STR("⟦参数⟧")},
    [WORD_DONE_WHEN] = {STR("⟦done when⟧"), STR("⟦完成标准⟧")},
    [WORD_BEFORE] = {STR("⟦before⟧"), STR("⟦修改前⟧")},
    [WORD_AFTER] = {STR("⟦after⟧"), STR("⟦修改后⟧")},
    [WORD_ADDED] = {STR("⟦added⟧"), STR("⟦新增⟧")},
    [WORD_REMOVED] = {STR("⟦removed⟧"), STR("⟦删除⟧")},
};

void arg_reader_init(struct arg_reader *reader, struct arena *arena, enum ui_locale locale,
                     bool flat, bool plan)
{
    *reader = (struct arg_reader){.arena = arena, .locale = locale, .flat = flat, .plan = plan};
    out_init(&reader->scratch, arena, 0, CARD_BYTES_MAX);
}

static str word_of(const struct arg_reader *r, enum arguments_word word)
{
    return words[word][r->locale];
}

/* ---- values ---- */

/* Digits that come out of a double as they went in: no exponent, no 0 at the end of a fraction, no
 * more of them than a double tells apart. */
static bool is_plain_number(str text)
{
    enum { DIGITS_MAX = 15 };
    size_t digits = 0;
    bool point = false;
    if (str_starts(text, STR("-"))) text = str_drop(text, 1);
    if (str_eq(text, STR("0"))) return true;
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == 'e' || text.p[i] == 'E') return false;
        point = point || text.p[i] == '.';
        digits += text.p[i] != '.';
    }
    bool small = str_starts(text, STR("0.00000")); /* printed with an exponent */
    return digits <= DIGITS_MAX && !small && !(point && text.p[text.len - 1] == '0');
}

static str json_shown(struct arg_reader *r, const struct json *value)
{
    out_clear(&r->scratch);
    out_json(&r->scratch, value);
    str json = r->scratch.over ? value->raw : out_str(&r->scratch);
    return ui_visible(r->arena, arena_str(r->arena, json), false);
}

/* A value as a row: all but its name. */
static struct arg_row row_of(struct arg_reader *r, const struct json *value)
{
    struct arg_row row = {.bytes = value->raw.len, .arg = r->args, .kind = ARG_TEXT};
    switch (value->type) {
    case JSON_NULL:
        row.value = word_of(r, WORD_NULL);
        break;
    case JSON_FALSE:
    case JSON_TRUE:
        row.value = value->raw;
        row.kind = ARG_NATIVE;
        break;
    case JSON_NUMBER:
        row.value = value->raw;
        row.kind =
            is_plain_number(value->raw) && !str_eq(value->raw, STR("-0")) ? ARG_NATIVE : ARG_DIGITS;
        break;
    case JSON_STRING:
        row.value =
            value->text.len ? ui_visible(r->arena, value->text, true) : word_of(r, WORD_EMPTY_TEXT);
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        if (!value->count) {
            row.value = word_of(r, value->type == JSON_ARRAY ? WORD_EMPTY_LIST : WORD_EMPTY_OBJECT);
            break;
        }
        row.value = json_shown(r, value);
        row.kind = ARG_JSON;
        break;
    }
    return row;
}

/* ---- names ---- */

static str marked(struct arg_reader *r, str name, enum arguments_word word)
{
    if (word == WORD_NONE) return name;
    const str parts[] = {name, STR(" "), word_of(r, word)};
    return text_join(r->arena, parts, COUNT(parts));
}

static bool is_simple(str key)
{
    for (size_t i = 0; i < key.len; i++)
        if (memchr(".[]\"", key.p[i], 4)) return false;
    return key.len > 0;
}

/* Behind the name of what it is in; that is empty for an argument. */
static str key_name(struct arg_reader *r, str within, str key)
{
    if (is_simple(key)) {
        str shown = ui_visible(r->arena, key, false);
        if (!within.len) return shown;
        const str parts[] = {within, STR("."), shown};
        return text_join(r->arena, parts, COUNT(parts));
    }
    out_clear(&r->scratch);
    out_string(&r->scratch, key);
    str quoted = ui_visible(r->arena, arena_str(r->arena, out_str(&r->scratch)), false);
    const str parts[] = {within, STR("["), quoted, STR("]")};
    return text_join(r->arena, parts, COUNT(parts));
}

static str index_name(struct arg_reader *r, str within, size_t index)
{
    const str parts[] = {within, arena_printf(r->arena, "[%zu]", index)};
    return text_join(r->arena, parts, COUNT(parts));
}

/* ---- rows ---- */

bool args_full(const struct arg_reader *r)
{
    return r->flat && (r->bytes > CARD_BYTES_MAX || r->spread > CARD_FLAT_ALL_MAX);
}

static bool holds_values(const struct json *value)
{
    return (value->type == JSON_ARRAY || value->type == JSON_OBJECT) && value->count;
}

/* May it become a row for each of its values? *rows are left for that. */
static bool fits_flat(const struct json *value, unsigned depth, size_t *rows)
{
    if (!holds_values(value)) {
        if (!*rows) return false;
        --*rows;
        return true;
    }
    if (depth == CARD_FLAT_DEPTH_MAX) return false;
    for (const struct json *m = value->child; m; m = m->next)
        if (m->key.len > CARD_FLAT_KEY_BYTES_MAX || !fits_flat(m, depth + 1, rows)) return false;
    return true;
}

static bool is_flat(const struct json *value)
{
    size_t rows = CARD_FLAT_ROWS_MAX;
    return !value || fits_flat(value, 0, &rows);
}

static void arguments_add(struct arg_reader *r, struct arg_rows *to, str name, struct arg_row row)
{
    row.name = name;
    r->bytes += row.name.len + row.value.len;
    *ROWS_ADD(r->arena, to->rows, to->count) = row;
}

static void gather_value(struct arg_reader *r, str name, const struct json *value, bool flat,
                         struct arg_rows *to)
{
    if (args_full(r)) return;
    if (!flat || !holds_values(value)) {
        arguments_add(r, to, name, row_of(r, value));
        return;
    }
    size_t index = 0;
    for (const struct json *m = value->child; m; m = m->next, index++) {
        str inner =
            value->type == JSON_OBJECT ? key_name(r, name, m->key) : index_name(r, name, index);
        r->spread++;
        gather_value(r, inner, m, flat, to);
    }
}

/* The steps as the graph takes them: one without words is none. */
static void gather_steps(struct arg_reader *r, const struct json *steps, struct arg_rows *to)
{
    size_t number = 0;
    for (const struct json *step = steps->child; step; step = step->next) {
        const struct json *content = json_get(step, STR("content"));
        const struct json *done_when = json_get(step, STR("done_when"));
        if (!str_trim(json_text(content)).len) continue;
        str name = arena_printf(r->arena, "%zu", ++number);
        arguments_add(r, to, name, row_of(r, content));
        if (str_trim(json_text(done_when)).len)
            arguments_add(r, to, marked(r, name, WORD_DONE_WHEN), row_of(r, done_when));
    }
}

/* The rows of one argument, without marks. */
static void gather(struct arg_reader *r, const struct json *member, bool flat, struct arg_rows *to)
{
    if (r->plan && str_eq(member->key, STR("steps")) && member->type == JSON_ARRAY)
        gather_steps(r, member, to);
    else
        gather_value(r, key_name(r, STR_EMPTY, member->key), member, flat, to);
}

static void mark(struct arg_reader *r, struct arg_row *row, enum arguments_word word)
{
    if (row->kind == ARG_JSON) row->name = marked(r, row->name, WORD_JSON);
    row->name = marked(r, row->name, word);
}

static void show(struct arg_reader *r, struct arg_row row, enum arguments_word word,
                 struct arg_rows *to)
{
    mark(r, &row, word);
    *ROWS_ADD(r->arena, to->rows, to->count) = row;
}

/* What is no object is damaged, and is shown all the same. */
static const struct json *parse(struct arg_reader *r, str args, enum arguments_word word,
                                struct arg_rows *to)
{
    struct json *object = NULL;
    if (args.len && !json_parse(r->arena, args, &object, NULL) && object->type == JSON_OBJECT)
        return object;
    if (args.len) {
        struct arg_row row = {.value = ui_visible(r->arena, args, true), .bytes = args.len};
        row.name = word_of(r, WORD_WHOLE);
        row.arg = r->args++;
        show(r, row, word, to);
    }
    return NULL;
}

void args_read(struct arg_reader *r, str args, struct arg_rows *rows)
{
    const struct json *object = parse(r, args, WORD_NONE, rows);
    for (const struct json *m = object ? object->child : NULL; m && !args_full(r); m = m->next) {
        size_t i = rows->count;
        gather(r, m, r->flat && is_flat(m), rows);
        for (; i < rows->count; i++) mark(r, &rows->rows[i], WORD_NONE);
        r->args++;
    }
}

/* ---- what changed ---- */

struct known {
    const struct json *member;
    bool met;
};

static int by_key(const void *a, const void *b)
{
    const struct known *left = a, *right = b;
    return str_cmp(left->member->key, right->member->key);
}

/* The members in order of their keys, to be found fast. */
static struct known *sorted(struct arg_reader *r, const struct json *object)
{
    size_t count = object ? object->count : 0, i = 0;
    struct known *known = arena_array(r->arena, count, sizeof *known);
    for (const struct json *m = object ? object->child : NULL; m; m = m->next)
        known[i++].member = m;
    if (count) qsort(known, count, sizeof *known, by_key);
    return known;
}

static struct known *find(struct known *known, size_t count, const struct json *member)
{
    struct known wanted = {.member = member};
    return count ? bsearch(&wanted, known, count, sizeof *known, by_key) : NULL;
}

static bool is_same(const struct arg_row *a, const struct arg_row *b)
{
    return a->kind == b->kind && str_eq(a->value, b->value);
}

/* Of one argument: a row of `after` with its twin, then what has none. */
static void compare_rows(struct arg_reader *r, const struct arg_rows *before,
                         const struct arg_rows *after, struct arg_rows *changed,
                         struct arg_rows *same)
{
    bool *met = arena_array(r->arena, before->count + 1, sizeof *met);
    for (size_t i = 0; i < after->count; i++) {
        const struct arg_row *row = &after->rows[i];
        size_t n = 0;
        while (n < before->count && !str_eq(before->rows[n].name, row->name)) n++;
        if (n == before->count) {
            show(r, *row, WORD_ADDED, changed);
            continue;
        }
        met[n] = true;
        if (is_same(&before->rows[n], row)) {
            show(r, *row, WORD_NONE, same);
            continue;
        }
        show(r, before->rows[n], WORD_BEFORE, changed);
        show(r, *row, WORD_AFTER, changed);
    }
    for (size_t n = 0; n < before->count; n++)
        if (!met[n]) show(r, before->rows[n], WORD_REMOVED, changed);
}

/* Either may be NULL. */
static void compare(struct arg_reader *r, const struct json *before, const struct json *after,
                    struct arg_rows *changed, struct arg_rows *same)
{
    struct arg_rows old = {0}, new = {0};
    bool flat = r->flat && is_flat(before) && is_flat(after);
    if (before) gather(r, before, flat, &old);
    if (after) gather(r, after, flat, &new);
    compare_rows(r, &old, &new, changed, same);
    r->args++;
}

void args_compare(struct arg_reader *r, str before, str after, struct arg_rows *changed,
                  struct arg_rows *same)
{
    const struct json *old = parse(r, before, WORD_BEFORE, changed);
    const struct json *new = parse(r, after, WORD_AFTER, changed);
    size_t count = old ? old->count : 0;
    struct known *known = sorted(r, old);
    for (const struct json *m = new ? new->child : NULL; m && !args_full(r); m = m->next) {
        struct known *found = find(known, count, m);
        if (found) found->met = true;
        compare(r, found ? found->member : NULL, m, changed, same);
    }
    for (const struct json *m = old ? old->child : NULL; m && !args_full(r); m = m->next)
        if (!find(known, count, m)->met) compare(r, m, NULL, changed, same);
}
