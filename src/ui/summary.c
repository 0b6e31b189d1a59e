/* SPDX-License-Identifier: Apache-2.0
 *
 * What a tool did, on one line. The rules, from the first that fits:
 *
 *     1. an error            {tool} failed: {reason}
 *     2. a template          the tool's own, or ours by its name
 *     3. result.content      or the result itself, if it is text
 *     4. common members      title, name, id, count, status, message
 *     5. the tool's name     and that it is done
 *
 * Each rule is a function that gives a line, or none; rules[] has their order. Whatever a line is
 * made from passes plain(): one line, and nothing of it JSON. The line itself is then cut.
 *
 * To add a template: a row in templates[]. To add a member: a row in members[].
 */
#include "ui/summary.h"

#include <string.h>

#include "base/limits.h"
#include "ui/locale.h"
#include "ui/text.h"

struct summary {
    struct arena *arena;
    const struct summary_source *source;
    enum ui_locale locale;
};

/* clang-format off */
static const struct {
    str tool;
    str text[UI_LOCALES];
} templates[] = {
    {STR("calendar_write"),  {STR("Event created: {title} ({start_time})"), STR("已创建日程：{title}（{start_time}）")}},
    {STR("calendar_read"),   {STR("{count} events found ({date_range})"),   STR("查询到 {count} 条日程（{date_range}）")}},
    {STR("calendar_delete"), {STR("Event deleted: {title_or_id}"),          STR("已删除日程：{title_or_id}")}},
    {STR("calendar_share"),  {STR("Event shared with {target}"),            STR("已分享日程给 {target}")}},
    {STR("user_resolve"),    {STR("User found: {name_or_id}"),              STR("已匹配用户：{name_or_id}")}},
};

static const struct {
    str key;
    str label[UI_LOCALES];
} members[] = {
    {STR("title"),   {STR("title"),   STR("标题")}},
    {STR("name"),    {STR("name"),    STR("名称")}},
    {STR("id"),      {STR("id"),      STR("编号")}},
    {STR("count"),   {STR("count"),   STR("数量")}},
    {STR("status"),  {STR("status"),  STR("状态")}},
    {STR("message"), {STR("message"), STR("消息")}},
};

static const struct {
    str failed_why, failed, done; /* behind the tool's name */
    str colon, semicolon;         /* between label and value, between two of them */
    str comma;                    /* between two names */
    str until;                    /* between two times */
} words[UI_LOCALES] = {
    [UI_EN] = {STR(" failed: "), STR(" failed"), STR(" completed"), STR(": "), STR("; "), STR(", "), STR(" to ")},
    [UI_ZH] = {STR(" 执行失败："), STR(" 执行失败"), STR(" 执行完成"), STR("："), STR("；"), STR("、"), STR(" 至 ")},
};
/* clang-format on */

/* ---- lines ---- */

/* Text that grows in the arena. Pieces are short lines, so copying them again costs little. */
static str join(struct summary *s, str a, str b, str c)
{
    size_t len = a.len + b.len + c.len;
    char *text = arena_alloc(s->arena, len);
    const str pieces[] = {a, b, c};
    char *at = text;
    for (size_t i = 0; i < COUNT(pieces); i++) {
        if (pieces[i].len) memcpy(at, pieces[i].p, pieces[i].len);
        at += pieces[i].len;
    }
    return (str){text, len};
}

/* Where JSON begins in a line: a bracket, and behind it what no sentence has there. */
static size_t json_at_byte(str line)
{
    for (size_t i = 0; i + 1 < line.len; i++) {
        char bracket = line.p[i];
        if (bracket != '{' && bracket != '[') continue;
        size_t next = line.p[i + 1] == ' ' ? i + 2 : i + 1;
        char c = next < line.len ? line.p[next] : '\0';
        if (c == '"' || (bracket == '{' && c == '}') || (bracket == '[' && c == '{')) return i;
    }
    return line.len;
}

/* Brackets all the way that say nothing in words: [1,2], [[]]. */
static bool is_json(struct arena *arena, str text)
{
    text = ui_trim(text);
    struct json *json = NULL;
    if (!text.len || (text.p[0] != '[' && text.p[0] != '{')) return false;
    return !json_parse(arena, text, &json, NULL);
}

/* At most SUMMARY_TEXT_BYTES_MAX bytes, whole characters. */
static str beginning(str text)
{
    if (text.len <= SUMMARY_TEXT_BYTES_MAX) return text;
    text.len = SUMMARY_TEXT_BYTES_MAX;
    while (((unsigned char)text.p[text.len] & 0xc0) == 0x80) text.len--;
    return text;
}

/* A text of somebody else's as part of a line; empty if there is nothing but JSON in it. */
static str plain(struct summary *s, str text)
{
    text = beginning(text);
    if (is_json(s->arena, text)) return STR_EMPTY;
    str line = ui_trim(ui_line(s->arena, text, SUMMARY_CHARS_MAX));
    size_t end = json_at_byte(line);
    if (end == line.len) return line;
    line.len = end;
    line = ui_trim(line);
    while (line.len && (str_ends(line, STR(":")) || str_ends(line, STR("：")) ||
                        str_ends(line, STR(",")) || str_ends(line, STR("="))))
        line = ui_trim((str){line.p, line.len - (str_ends(line, STR("：")) ? 3 : 1)});
    return line;
}

/* ---- values ---- */

static bool is_digits(str text, const char *pattern)
{
    if (text.len < strlen(pattern)) return false;
    for (size_t i = 0; pattern[i]; i++) {
        bool digit = text.p[i] >= '0' && text.p[i] <= '9';
        if (pattern[i] == '0' ? !digit : text.p[i] != pattern[i]) return false;
    }
    return true;
}

/* 2026-11-16T15:00, with or without seconds, their fraction and an offset. */
static bool is_time(str text)
{
    if (!is_digits(text, "0000-00-00T00:00") && !is_digits(text, "0000-00-00 00:00")) return false;
    text = str_drop(text, 16);
    if (is_digits(text, ":00")) text = str_drop(text, 3);
    if (text.len && text.p[0] == '.') do
            text = str_drop(text, 1);
        while (text.len && text.p[0] >= '0' && text.p[0] <= '9');
    if (!text.len || str_eq_nocase(text, STR("z"))) return true;
    return text.len == 6 && (is_digits(text, "+00:00") || is_digits(text, "-00:00"));
}

/* A number, a word, a time: what can stand in a line. Empty if it cannot. */
static str scalar(struct summary *s, const struct json *value)
{
    if (!value) return STR_EMPTY;
    if (value->type == JSON_NUMBER || value->type == JSON_TRUE || value->type == JSON_FALSE)
        return plain(s, value->raw);
    str text = json_text(value);
    if (!is_time(text)) return plain(s, text);
    return join(s, (str){text.p, 10}, STR(" "), (str){text.p + 11, 5});
}

/* The result's only list, or the result if it is one. */
static const struct json *only_list(const struct json *result)
{
    if (!result || result->type == JSON_ARRAY) return result;
    const struct json *found = NULL;
    for (const struct json *m = result->child; m; m = m->next) {
        if (m->type != JSON_ARRAY) continue;
        if (found) return NULL;
        found = m;
    }
    return found;
}

/* The same member of the first entries of a list: "Ann, Bob". */
static str named(struct summary *s, const struct json *list, str key)
{
    str line = STR_EMPTY;
    size_t taken = 0;
    for (const struct json *m = list ? list->child : NULL; m; m = m->next) {
        str text = scalar(s, json_get(m, key));
        if (!text.len) continue;
        bool more = taken++ == SUMMARY_LIST_NAMES_MAX;
        line =
            join(s, line, taken > 1 ? words[s->locale].comma : STR_EMPTY, more ? STR("…") : text);
        if (more) break;
    }
    return line;
}

static str member(struct summary *s, str key)
{
    const struct json *arg = json_get(s->source->args, key);
    if (is_time(json_text(arg))) return scalar(s, arg);
    const struct json *result = s->source->result;
    str text = scalar(s, json_get(result, key));
    if (text.len) return text;
    if (str_eq(key, STR("count")) && only_list(result))
        return arena_printf(s->arena, "%u", (unsigned)only_list(result)->count);
    text = scalar(s, arg);
    return text.len ? text : named(s, only_list(result), key);
}

/* ---- templates ---- */

static str placeholder(struct summary *s, str name)
{
    static const str or = STR("_or_");
    if (str_eq(name, STR("tool"))) return plain(s, s->source->tool);
    if (str_eq(name, STR("date_range"))) {
        str from = member(s, STR("from")), to = member(s, STR("to"));
        if (!from.len || !to.len || str_eq(from, to)) return from.len ? from : to;
        return join(s, from, words[s->locale].until, to);
    }
    str text = member(s, name);
    while (!text.len) {
        ptrdiff_t at = str_find(name, or);
        str first = at < 0 ? name : (str){name.p, (size_t)at};
        text = member(s, first);
        if (at < 0) break;
        name = str_drop(name, (size_t)at + or.len);
    }
    return text;
}

/* Fills in up to the end, or to `until`; *rest moves behind it. False if something is missing. */
static bool fill(struct summary *s, str *rest, str until, str *ret_line)
{
    str line = STR_EMPTY;
    bool whole = true;
    while (rest->len) {
        if (until.len && str_starts(*rest, until)) {
            line = join(s, line, until, STR_EMPTY);
            *rest = str_drop(*rest, until.len);
            break;
        }
        bool wide = str_starts(*rest, STR("（")), narrow = rest->p[0] == '(';
        if (!until.len && (wide || narrow)) {
            str open = wide ? STR("（") : STR("("), inner;
            *rest = str_drop(*rest, open.len);
            if (fill(s, rest, wide ? STR("）") : STR(")"), &inner))
                line = join(s, line, open, inner);
            else
                line = ui_trim(line);
            continue;
        }
        ptrdiff_t end = rest->p[0] == '{' ? str_find_char(*rest, '}') : -1;
        if (end < 0) {
            size_t run = 1; /* bytes that stand for themselves; a wide parenthesis begins with EF */
            while (run < rest->len && rest->p[run] != '{' && rest->p[run] != '(' &&
                   (unsigned char)rest->p[run] != 0xef &&
                   (!until.len || rest->p[run] != until.p[0]))
                run++;
            line = join(s, line, (str){rest->p, run}, STR_EMPTY);
            *rest = str_drop(*rest, run);
            continue;
        }
        str text = placeholder(s, (str){rest->p + 1, (size_t)end - 1});
        if (!text.len) whole = false;
        line = join(s, line, text, STR_EMPTY);
        *rest = str_drop(*rest, (size_t)end + 1);
    }
    *ret_line = line;
    return whole;
}

/* ---- the rules ---- */

static str by_error(struct summary *s)
{
    if (!s->source->error.p) return STR_EMPTY;
    str reason = plain(s, s->source->error), tool = plain(s, s->source->tool);
    struct json *json = NULL;
    if (!reason.len && !json_parse(s->arena, beginning(s->source->error), &json, NULL)) {
        static const str keys[] = {STR("message"), STR("detail"), STR("error"), STR("title")};
        for (size_t i = 0; i < COUNT(keys) && !reason.len; i++)
            reason = scalar(s, json_get(json, keys[i]));
    }
    if (!reason.len) return join(s, tool, words[s->locale].failed, STR_EMPTY);
    return join(s, tool, words[s->locale].failed_why, reason);
}

/* By the tool's own template, or by ours for a tool of that name. */
static str by_template(struct summary *s)
{
    str rest = s->locale == UI_ZH ? s->source->template_zh : s->source->template_en;
    for (size_t i = 0; i < COUNT(templates) && !rest.len; i++)
        if (str_eq(templates[i].tool, s->source->tool)) rest = templates[i].text[s->locale];
    str line = STR_EMPTY;
    return fill(s, &rest, STR_EMPTY, &line) ? line : STR_EMPTY;
}

static str by_content(struct summary *s)
{
    const struct json *result = s->source->result;
    const struct json *content = json_get(result, STR("content"));
    str own = plain(s, s->source->content);
    return own.len ? own : plain(s, json_text(content ? content : result));
}

static str by_members(struct summary *s)
{
    const struct json *result = s->source->result;
    if (!result || (result->type != JSON_OBJECT && result->type != JSON_ARRAY)) return STR_EMPTY;
    str line = STR_EMPTY;
    for (size_t i = 0; i < COUNT(members); i++) {
        str text = scalar(s, json_get(result, members[i].key));
        if (str_eq(members[i].key, STR("count")) && result->type == JSON_ARRAY)
            text = arena_printf(s->arena, "%u", (unsigned)result->count);
        if (!text.len) continue;
        str label = join(s, members[i].label[s->locale], words[s->locale].colon, text);
        line = join(s, line, line.len ? words[s->locale].semicolon : STR_EMPTY, label);
    }
    return line;
}

static str by_name(struct summary *s)
{
    return join(s, plain(s, s->source->tool), words[s->locale].done, STR_EMPTY);
}

str build_tool_content_summary(struct arena *arena, const struct summary_source *source)
{
    static str (*const rules[])(struct summary *) = {by_error, by_template, by_content, by_members,
                                                     by_name};
    struct summary s = {arena, source, ui_locale_of(source->locale)};
    str line = STR_EMPTY;
    for (size_t i = 0; i < COUNT(rules) && !line.len; i++)
        line = ui_trim(ui_line(arena, rules[i](&s), SUMMARY_CHARS_MAX));
    return line;
}
