/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's own sentences in both languages (the table is in texts.h), and what a call is about
 * on one line.
 */
#include "agent/core/texts.h"

#include <string.h>

#include "base/utf8.h"
#include "tool/value.h"

enum {
    EN,
    ZH,
    LANGUAGES,
    SUMMARY_CHARS_MAX = 200,
    SUMMARY_VALUE_CHARS_MAX = 60, /* of one argument, so that it cannot push the others out */
};

#define TEXT_ROW(name, en, zh) [name] = {en, zh},
static const char *const texts[TEXT_COUNT][LANGUAGES] = {TEXTS(TEXT_ROW)};

bool locale_is_chinese(str locale)
{
    return str_starts(locale, STR("zh"));
}

str text_join(struct arena *arena, const str *parts, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++) len += parts[i].len;
    char *text = arena_alloc(arena, len + 1), *at = text;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].len) memcpy(at, parts[i].p, parts[i].len);
        at += parts[i].len;
    }
    return (str){text, len};
}

str text_one_line(struct arena *arena, str text)
{
    char *copy = arena_cstr(arena, text);
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)copy[i] < ' ' || copy[i] == 0x7f) copy[i] = ' ';
    return (str){copy, text.len};
}

str text_say(struct arena *arena, enum text text, str locale, str argument)
{
    const char *form = texts[text][locale_is_chinese(locale) ? ZH : EN];
    const char *hole = strstr(form, "%s");
    if (!hole) return str_c(form);
    const str parts[] = {{form, (size_t)(hole - form)}, argument, str_c(hole + 2)};
    return text_join(arena, parts, COUNT(parts));
}

/* Three-byte UTF-8 from U+3400 to U+9FFF: the ideographs that people write. */
str locale_of(str text)
{
    for (size_t i = 0; i + 2 < text.len; i++) {
        unsigned char lead = (unsigned char)text.p[i], next = (unsigned char)text.p[i + 1];
        bool three = lead == 0xe3 ? next >= 0x90 : lead >= 0xe4 && lead <= 0xe9;
        if (three && (next & 0xc0) == 0x80) return LOCALE_ZH;
    }
    return LOCALE_EN;
}

str json_one_line(struct arena *arena, str json)
{
    char *copy = arena_cstr(arena, json);
    value_one_line(copy, json.len);
    return (str){copy, json.len};
}

/* ---- what a call is about ---- */

/* A text that is cut after SUMMARY_CHARS_MAX characters. */
struct texts_line {
    struct buf buf;
    size_t chars;
    bool space; /* the last character was one */
};

static void put_char(struct texts_line *line, str character)
{
    bool blank = character.len == 1 && (unsigned char)character.p[0] <= ' ';
    if (blank && (line->space || !line->chars)) return;
    if (line->chars == SUMMARY_CHARS_MAX) return;
    line->space = blank;
    if (++line->chars == SUMMARY_CHARS_MAX) character = STR("…");
    buf_append(&line->buf, blank ? STR(" ") : character);
}

static size_t char_bytes(str text)
{
    size_t len = 1;
    while (len < text.len && ((unsigned char)text.p[len] & 0xc0) == 0x80) len++;
    return len;
}

static void put_text(struct texts_line *line, str text)
{
    while (text.len) {
        size_t len = char_bytes(text);
        put_char(line, (str){text.p, len});
        text = str_drop(text, len);
    }
}

/* As much of it as a value may take; true: all of it. */
static bool put_some(struct texts_line *line, str text)
{
    str some = text;
    some.len = 0;
    for (size_t chars = 0; chars < SUMMARY_VALUE_CHARS_MAX && some.len < text.len; chars++)
        some.len += char_bytes(str_drop(text, some.len));
    put_text(line, some);
    if (some.len == text.len) return true;
    put_text(line, STR("…"));
    return false;
}

static void put_value(struct texts_line *line, const struct json *value)
{
    if (!value) return;
    bool plain = value->type == JSON_STRING || value->type == JSON_NUMBER;
    put_some(line, plain ? value->text : value->raw);
}

/* Could its text be read as another argument, or as the end of this one? */
static bool is_ambiguous(const struct json *value)
{
    if (value->type != JSON_STRING) return false;
    for (size_t i = 0; i < value->text.len; i++)
        if (strchr(",=\"", value->text.p[i])) return true; /* NUL as well */
    return false;
}

static void put_argument(struct texts_line *line, const struct json *value)
{
    if (!is_ambiguous(value))
        put_value(line, value);
    else if (!put_some(line, value->raw)) /* with its quotes */
        put_text(line, STR("\""));
}

static void fill_template(struct texts_line *line, str form, const struct json *args)
{
    while (form.len) {
        ptrdiff_t open = str_find_char(form, '{');
        if (open < 0) break;
        put_text(line, (str){form.p, (size_t)open});
        form = str_drop(form, (size_t)open + 1);
        put_value(line, json_get(args, str_split(&form, '}')));
    }
    put_text(line, form);
}

static void name_arguments(struct texts_line *line, str name, const struct json *args)
{
    put_text(line, name);
    const char *before = ": ";
    for (const struct json *arg = args ? args->child : NULL; arg; arg = arg->next) {
        put_text(line, str_c(before));
        put_text(line, arg->key);
        put_text(line, STR("="));
        put_argument(line, arg);
        before = ", ";
    }
}

str call_summary(struct arena *arena, const struct tool *tool, str name, const struct json *args)
{
    struct texts_line line = {0};
    buf_init(&line.buf, 8 * SUMMARY_CHARS_MAX);
    if (tool && tool->summary.len)
        fill_template(&line, tool->summary, args);
    else
        name_arguments(&line, name, args);
    str text = arena_str(arena, buf_str(&line.buf));
    buf_done(&line.buf);
    return text;
}
