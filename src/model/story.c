/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions of stories, and texts and arguments that are filled in, as docs/SCRIPT.md has them. A
 * script's JSON is kept as it was read and walked here, once for each answer:
 *
 *     text   "words with {places}"   [text, text, ...]   {"en": text, "zh": text}
 *            {"when": condition, "text": text, "else": text}   {"each": path, "text": text}
 *     when   {path: test, ...}, all of which hold
 *     test   true, false   "equal to this"   [test, ...]: one of them
 *            {"has": words, "starts": text, "chars_max": number, "not": test}, all of which hold
 *
 * The shape was checked when the script was read. What an answer may cost is counted here: a script
 * of a few lines can ask for any amount by using parts in parts.
 */
#include "model/story.h"

#include "base/limits.h"
#include "model/player.h"

const struct story_part *story_part(const struct story_part *parts, str name)
{
    while (parts && !str_eq(parts->name, name)) parts = parts->next;
    return parts;
}

bool story_by_language(const struct json *value)
{
    return value->type == JSON_OBJECT && value->count == LANGUAGES && json_get(value, STR("en")) &&
           json_get(value, STR("zh"));
}

const struct json *story_pick(const struct teller *t, const struct json *value)
{
    if (!value || !story_by_language(value)) return value;
    return json_get(value, t->view->language == CHINESE ? STR("zh") : STR("en"));
}

/* ---- texts ---- */

bool story_place(str *rest, str *ret_before, str *ret_path)
{
    for (size_t open = 0; open < rest->len; open++) {
        if (rest->p[open] != '{') continue;
        size_t end = open + 1;
        for (; end < rest->len; end++) {
            char c = rest->p[end];
            if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_' && c != '.') break;
        }
        if (end == open + 1 || end == rest->len || rest->p[end] != '}') continue;
        *ret_before = (str){rest->p, open};
        *ret_path = (str){rest->p + open + 1, end - open - 1};
        *rest = str_drop(*rest, end + 1);
        return true;
    }
    return false;
}

static void put_text(struct teller *t, const struct json *node, struct buf *out);

/* What others wrote becomes a short line: it stands in a sentence or a table of ours. */
static void put_value(struct teller *t, const struct json *value, struct buf *out)
{
    bool theirs = value->type == JSON_STRING && value->raw.len;
    buf_append(out, theirs ? story_line(t->view->arena, value->text, STORY_QUOTE_CHARS_MAX)
                           : value->text);
}

static void put_filled(struct teller *t, str text, struct buf *out)
{
    str before, path;
    while (story_place(&text, &before, &path)) {
        buf_append(out, before);
        const struct json *value = story_get(t->view, t->it, path);
        const struct story_part *part = value ? NULL : story_part(t->parts, path);
        if (value) put_value(t, value, out);
        if (part) put_text(t, part->text, out);
    }
    buf_append(out, text);
}

static void put_each(struct teller *t, const struct json *list, const struct json *text,
                     struct buf *out)
{
    const struct json *outer = t->it;
    t->it = list;
    if (list->type != JSON_ARRAY) {
        put_text(t, text, out);
    } else {
        size_t count = 0;
        for (t->it = list->child; t->it && count < STORY_EACH_MAX; t->it = t->it->next, count++)
            put_text(t, text, out);
    }
    t->it = outer;
}

static void put_text(struct teller *t, const struct json *node, struct buf *out)
{
    node = story_pick(t, node);
    if (!node) return;
    if (t->depth == STORY_DEPTH_MAX || t->steps == STORY_STEPS_MAX) t->broken = true;
    if (t->broken) return;
    t->steps++;
    t->depth++;
    if (node->type == JSON_STRING) put_filled(t, node->text, out);
    if (node->type == JSON_ARRAY)
        for (const struct json *child = node->child; child; child = child->next)
            put_text(t, child, out);
    if (node->type == JSON_OBJECT) {
        const struct json *each = json_get(node, STR("each")), *text = json_get(node, STR("text"));
        const struct json *list = each ? story_get(t->view, t->it, each->text) : NULL;
        if (!story_holds(t, json_get(node, STR("when"))) || (each && !list))
            put_text(t, json_get(node, STR("else")), out);
        else if (list)
            put_each(t, list, text, out);
        else
            put_text(t, text, out);
    }
    t->depth--;
}

/* The buffer's bytes in the arena; the buffer ends. */
static str kept(struct teller *t, struct buf *out)
{
    if (out->full) t->broken = true;
    str text = t->broken ? STR_EMPTY : arena_str(t->view->arena, buf_str(out));
    buf_done(out);
    return text;
}

str story_text(struct teller *t, const struct json *text)
{
    struct buf out;
    buf_init(&out, STORY_BYTES_MAX);
    put_text(t, text, &out);
    return kept(t, &out);
}

/* ---- arguments ---- */

/* A string that is nothing but the place of a number is a number. */
static const struct json *number_at(const struct teller *t, str text)
{
    str before, path;
    if (!story_place(&text, &before, &path) || before.len || text.len) return NULL;
    const struct json *value = story_get(t->view, t->it, path);
    return value && value->type == JSON_NUMBER ? value : NULL;
}

static void put_args(struct teller *t, const struct json *node, struct json_writer *w)
{
    node = story_pick(t, node);
    if (node->type == JSON_STRING) {
        const struct json *number = number_at(t, node->text);
        if (number)
            json_raw(w, number->text);
        else
            json_string(w, story_text(t, node));
    } else if (node->type == JSON_ARRAY) {
        json_array(w);
        for (const struct json *child = node->child; child; child = child->next)
            if (story_holds(t, json_get(child, STR("when")))) put_args(t, child, w);
        json_array_end(w);
    } else if (node->type == JSON_OBJECT) {
        json_object(w);
        for (const struct json *child = node->child; child; child = child->next) {
            if (str_eq(child->key, STR("when"))) continue;
            json_key(w, child->key);
            put_args(t, child, w);
        }
        json_object_end(w);
    } else {
        json_raw(w, node->raw);
    }
}

str story_args(struct teller *t, str args)
{
    struct json *template;
    if (json_parse(t->view->arena, args, &template, NULL)) return args;
    struct buf out;
    struct json_writer w;
    buf_init(&out, STORY_BYTES_MAX);
    json_write_begin(&w, &out);
    put_args(t, template, &w);
    return kept(t, &out);
}

/* ---- conditions ---- */

/* One of the words; of a list of such lists, one of each. */
static bool has(const struct teller *t, str text, const struct json *words)
{
    bool one = false, lists = false;
    words = story_pick(t, words);
    for (const struct json *word = words->child; word; word = word->next) {
        if (word->type == JSON_STRING) one = one || story_has_word(text, word->text);
        if (word->type != JSON_ARRAY) continue;
        if (!has(t, text, word)) return false;
        lists = true;
    }
    return one || lists;
}

static bool passes(struct teller *t, const struct json *value, const struct json *test)
{
    test = story_pick(t, test);
    if (test->type == JSON_TRUE || test->type == JSON_FALSE)
        return (value != NULL) == (test->type == JSON_TRUE);
    str text = value ? value->text : STR_EMPTY;
    if (test->type == JSON_STRING) return value && str_eq(text, story_text(t, test));
    if (test->type == JSON_ARRAY) {
        const struct json *child = test->child;
        while (child && !passes(t, value, child)) child = child->next;
        return child != NULL;
    }
    const struct json *words = json_get(test, STR("has")), *not = json_get(test, STR("not"));
    const struct json *starts = json_get(test, STR("starts"));
    uint64_t chars_max;
    if (words && !has(t, text, words)) return false;
    if (starts && !str_starts(text, story_text(t, starts))) return false;
    if (json_u64(json_get(test, STR("chars_max")), &chars_max) == OK &&
        player_chars(text, chars_max).len < text.len)
        return false;
    return !not || !passes(t, value, not );
}

bool story_holds(struct teller *t, const struct json *when)
{
    for (const struct json *test = when ? when->child : NULL; test; test = test->next)
        if (!passes(t, story_get(t->view, t->it, test->key), test)) return false;
    return true;
}

/* ---- shapes ---- */

/* Of a member with this name. */
static enum story_kind kind_of(enum story_kind of, str name)
{
    static const struct {
        enum story_kind of;
        const char *name;
        enum story_kind kind;
    } rows[] = {
        {STORY_TEXT, "when", STORY_WHEN},        {STORY_TEXT, "each", STORY_PATH},
        {STORY_TEXT, "text", STORY_TEXT},        {STORY_TEXT, "else", STORY_TEXT},
        {STORY_TEST, "has", STORY_WORDS},        {STORY_TEST, "starts", STORY_TEXT},
        {STORY_TEST, "chars_max", STORY_NUMBER}, {STORY_TEST, "not", STORY_TEST},
        {STORY_ARGS, "when", STORY_WHEN},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (of == rows[i].of && str_eq(name, str_c(rows[i].name))) return rows[i].kind;
    if (of == STORY_WHEN && story_knows(name)) return STORY_TEST;
    return of == STORY_ARGS ? STORY_ARGS : STORY_NOTHING;
}

enum err story_check(const struct story_part *parts, const struct json *value, enum story_kind kind,
                     struct fault *reterr)
{
    uint64_t number;
    str rest = json_text(value), before, path;
    bool list = value->type == JSON_ARRAY, object = value->type == JSON_OBJECT;
    bool text = value->type == JSON_STRING,
         truth = value->type <= JSON_TRUE && value->type > JSON_NULL;
    bool fits[] = {
        [STORY_TEXT] = text || list || object,
        [STORY_WHEN] = object,
        [STORY_TEST] = text || list || object || truth,
        [STORY_WORDS] = rest.len || list || object,
        [STORY_ARGS] = true,
        [STORY_PATH] = story_knows(rest),
        [STORY_NUMBER] = json_u64(value, &number) == OK,
        [STORY_NOTHING] = false,
    };
    static const char *const wanted[] = {
        [STORY_TEXT] = "a text must be a string, a list or an object",
        [STORY_WHEN] = "\"when\" must be an object",
        [STORY_TEST] = "a test must be true, false, a string, a list or an object",
        [STORY_WORDS] = "words must be strings in a list",
        [STORY_PATH] = "\"each\" names no value of a story",
        [STORY_NUMBER] = "\"chars_max\" must be a number",
        [STORY_NOTHING] = "has a member that no story has there",
    };
    if (!fits[kind]) return fault(reterr, ERR_CONFIG, "%s", wanted[kind]);
    while (kind != STORY_WORDS && story_place(&rest, &before, &path))
        if (!story_knows(path) && !story_part(parts, path))
            return fault(reterr, ERR_CONFIG, "{%.*s} is no value of a story and no part above",
                         path.len < 64 ? (int)path.len : 64, path.p);
    for (const struct json *child = value->child; child; child = child->next) {
        enum story_kind inner = list || story_by_language(value) ? kind : kind_of(kind, child->key);
        enum err e = story_check(parts, child, inner, reterr);
        if (e) return e;
    }
    return OK;
}
