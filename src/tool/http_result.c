/* SPDX-License-Identifier: Apache-2.0
 *
 * What the answer of an HTTP tool means: an HTTP answer read as the result of a call; pure.
 *
 *     2xx  {"content"?, "result"?, "error"?, "ui_hints"?}   those; `error` makes it a failure
 *          any other JSON                                   the result, whole
 *          text                                             content; if long, the result as a string
 *          bytes                                            content says how many there were
 *          nothing                                          nothing
 *     else the server's words for it, or ours
 *
 * An object with other members besides those four is not ours to take apart: {"id": 7, "content":
 * "..."} is somebody's record, and would lose its id; in {"deployed": true, "error": "none of it"} the
 * model reads for itself what `error` means there. Numbers are no errors: {"error": 0} is a result.
 */
#include "tool/http_result.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "tool/tools.h"
#include "tool/value.h"

/* ---- words for a failure ---- */

static const struct {
    int status;
    const char *words;
} statuses[] = {
    {400, "the request was refused"},
    {401, "the credentials were refused; check the tool's headers"},
    {403, "not allowed"},
    {404, "nothing is at this address; check the tool's URL"},
    {405, "this address takes no POST; check the tool's URL"},
    {408, "the server waited too long for the request"},
    {409, "conflict"},
    {410, "gone"},
    {413, "the arguments are too large"},
    {415, "the server does not take JSON"},
    {422, "the arguments were refused"},
    {429, "too many requests; try again later"},
    {500, "internal error of the server"},
    {501, "not implemented"},
    {502, "bad gateway"},
    {503, "service unavailable"},
    {504, "gateway time-out"},
};

static str status_words(int status)
{
    if (status / 100 == 3)
        return STR("the server points to another address, which is not followed; give the tool its "
                   "final URL");
    if (status / 100 == 2) return STR("the tool reported an error without saying which");
    for (size_t i = 0; i < COUNT(statuses); i++)
        if (statuses[i].status == status) return str_c(statuses[i].words);
    return STR("no reason was given");
}

/* What an error in JSON says: a text, or the member of an object that people put it in. Empty: no
 * words in it. */
static str words_of(const struct json *error)
{
    static const char *const members[] = {"error", "detail", "message", "msg", "reason", "title"};
    if (!error) return STR_EMPTY;
    if (error->type == JSON_STRING) return error->text;
    for (size_t i = 0; i < COUNT(members) && error->type == JSON_OBJECT; i++) {
        const struct json *member = json_get(error, str_c(members[i]));
        if (!member || (member->type == JSON_OBJECT && i > 0)) continue;
        str words = words_of(member); /* {"error": {"message": ...}} */
        if (words.len) return words;
    }
    bool inside = error->type == JSON_OBJECT || error->type == JSON_ARRAY;
    return inside && error->count ? error->raw : STR_EMPTY;
}

/* A copy, for its secrets to be hidden in place. */
static str keep_words(struct arena *arena, str words)
{
    return arena_str(arena, tool_text_head(str_trim(words), HTTP_WORDS_BYTES_MAX));
}

str http_result_error(struct arena *arena, int status, str words)
{
    char *text = arena_cstr(arena, words);
    bool blank = true;
    for (size_t i = 0; i < words.len; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f) text[i] = ' ';
        blank &= text[i] == ' ';
    }
    str shown = blank ? status_words(status) : str_trim((str){text, words.len});
    str head = tool_text_head(shown, TOOL_ERROR_BYTES_MAX - sizeof "HTTP 503: ...");
    const char *end = head.len < shown.len ? "..." : "";
    if (status / 100 == 2) return arena_printf(arena, "%.*s%s", STR_ARG(head), end);
    return arena_printf(arena, "HTTP %d: %.*s%s", status, STR_ARG(head), end);
}

/* ---- bodies ---- */

static bool is_text(str body)
{
    return !body.len || (utf8_valid(body) && !memchr(body.p, '\0', body.len));
}

/* Without space around it, and without the byte order mark that some servers put in front. */
static str trimmed(const struct http_reply *reply)
{
    str body = {reply->body, reply->body_len};
    if (str_starts(body, STR("\xef\xbb\xbf"))) body = str_drop(body, 3);
    while (body.len && strchr(" \t\r\n", body.p[0]) && body.p[0]) body = str_drop(body, 1);
    while (body.len && strchr(" \t\r\n", body.p[body.len - 1]) && body.p[body.len - 1]) body.len--;
    return body;
}

/* ---- the rule for members ---- */

#define TYPE(type) (1U << (type))

/* {"content"?, "result"?, "error"?, "ui_hints"?}: nothing else, one of those that are enough, and of
 * the kinds they should be. */
static const struct {
    const char *name;
    unsigned types;
    bool enough;
} parts[PART_OTHER] = {
    [PART_CONTENT] = {"content", TYPE(JSON_NULL) | TYPE(JSON_STRING), true},
    [PART_RESULT] = {"result", ~0U, true},
    [PART_ERROR] = {"error", ~TYPE(JSON_NUMBER), true},
    [PART_HINTS] = {"ui_hints", TYPE(JSON_NULL) | TYPE(JSON_OBJECT), false},
};

enum http_part http_part_of(str key)
{
    for (unsigned part = 0; part < PART_OTHER; part++)
        if (str_eq(key, str_c(parts[part].name))) return (enum http_part)part;
    return PART_OTHER;
}

void http_shape_add(struct http_shape *shape, enum http_part part, enum json_type type)
{
    if (part == PART_OTHER || !(parts[part].types & TYPE(type)))
        shape->other = true;
    else
        shape->parts |= 1U << part;
}

bool http_shape_fits(const struct http_shape *shape)
{
    bool enough = false;
    for (unsigned part = 0; part < PART_OTHER; part++)
        enough |= parts[part].enough && (shape->parts >> part & 1);
    return enough && !shape->other;
}

static bool is_envelope(const struct json *answer)
{
    struct http_shape shape = {.other = answer->type != JSON_OBJECT};
    for (const struct json *m = answer->child; m && !shape.other; m = m->next)
        http_shape_add(&shape, http_part_of(m->key), m->type);
    return http_shape_fits(&shape);
}

bool http_error_words(struct arena *arena, const struct json *error, str *ret_words)
{
    if (!error || error->type == JSON_NUMBER) return false;
    if (error->type != JSON_TRUE && !words_of(error).len) return false;
    *ret_words = keep_words(arena, words_of(error));
    return true;
}

/* ---- answers ---- */

/* Words for people are short. Longer ones become the result, unless there is another; then, and if
 * they are too long even for that, head and tail are kept. */
static void take_content(struct arena *arena, str text, str locale, struct tool_result *result)
{
    if (text.len <= TOOL_CONTENT_BYTES_MAX) {
        result->content = text;
        return;
    }
    if (!result->result.len) {
        AUTO(json_doc_done) struct json_doc doc;
        json_doc_open(&doc, TOOL_RESULT_BYTES_MAX);
        json_string(&doc.w, text);
        if (!doc.buf.full) {
            result->result = json_doc_copy(&doc, arena);
            return;
        }
    }
    result->content = tool_text_cut(arena, text, TOOL_CONTENT_BYTES_MAX, locale);
}

static enum tool_end take_json(struct arena *arena, const struct json *answer, str locale,
                               struct tool_result *result)
{
    if (!is_envelope(answer)) {
        result->result = answer->raw;
        return TOOL_DONE;
    }
    const struct json *error = json_get(answer, STR("error")),
                      *hints = json_get(answer, STR("ui_hints")),
                      *value = json_get(answer, STR("result"));
    if (value) result->result = value->raw;
    if (hints && hints->type == JSON_OBJECT && hints->raw.len <= TOOL_HINTS_BYTES_MAX)
        result->ui_hints = hints->raw;
    take_content(arena, json_text(json_get(answer, STR("content"))), locale, result);
    return http_error_words(arena, error, &result->error) ? TOOL_FAILED : TOOL_DONE;
}

str http_bytes_notice(struct arena *arena, uint64_t count, str locale)
{
    return arena_printf(
        arena,
        tool_locale_zh(locale)
            ? "工具返回了 %llu 字节，既不是 JSON，也不是 UTF-8 文本，因此没有保留。"
            : "The tool answered with %llu bytes that are neither JSON nor UTF-8 text; they were "
              "not kept.",
        (unsigned long long)count);
}

enum tool_end http_result_read(struct arena *arena, const struct http_reply *reply,
                               struct tool_result *ret_result)
{
    struct tool_result result = {0};
    enum tool_end end = TOOL_DONE;
    str body = trimmed(reply);
    struct json *answer = NULL;
    if (body.len && json_parse(arena, body, &answer, NULL) == OK)
        value_one_line(reply->body, reply->body_len); /* what the tree borrows stays as it is */
    if (reply->status / 100 != 2) {
        bool page = str_starts(body, STR("<"));
        str words = answer ? words_of(answer) : !page && is_text(body) ? body : STR_EMPTY;
        if (reply->status / 100 == 3) words = STR_EMPTY;
        result.error = keep_words(arena, words);
        end = TOOL_FAILED;
    } else if (answer) {
        end = take_json(arena, answer, reply->locale, &result);
    } else if (body.len && is_text(body)) {
        take_content(arena, body, reply->locale, &result);
    } else if (body.len) {
        result.content = http_bytes_notice(arena, body.len, reply->locale);
    }
    *ret_result = result;
    return end;
}
