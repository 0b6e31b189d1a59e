/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers to tools/call: results, and files and questions in them; pure.
 *
 *     {"content":[{"type":"text"},{"type":"image"}, ...], "structuredContent"?, "isError"?}
 *
 *     text, resource links, embedded texts   one text, with empty lines between them: `content`, or
 *                                            if it is long the result, as a JSON string
 *     structuredContent                      the result; a text that says the same JSON is dropped
 *     images, audio, embedded bytes          files; what does not fit is named in the text
 *     isError                                a failure; the text is its reason
 *
 * items[] has a row for each type. To add one: its row and its function.
 *
 * Questions are checked here too: only forms that can be shown, only pages of http and https.
 */
#include "mcp/client/mcp_result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "mcp/client/mcp_rpc.h"
#include "tool/elicit.h"
#include "tool/http_result.h"
#include "tool/tools.h"
#include "tool/value.h"

enum { FILENAME_BYTES_MAX = 100, MIME_BYTES_MAX = 100 };

/* ---- base64 ---- */

static int digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == '+' || c == '-') return 62;
    return c == '/' || c == '_' ? 63 : -1;
}

/* Both alphabets, with or without padding. False: it is none. */
static bool decode(struct arena *arena, str text, str *ret_bytes)
{
    while (text.len && text.p[text.len - 1] == '=') text.len--;
    if (text.len % 4 == 1) return false;
    char *out = arena_alloc(arena, text.len / 4 * 3 + 3);
    size_t len = 0;
    uint32_t bits = 0;
    for (size_t i = 0; i < text.len; i++) {
        int value = digit(text.p[i]);
        if (value < 0) return false;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4 == 0) continue;
        out[len++] = (char)(bits >> (6 - 2 * (i % 4)) & 0xff);
    }
    *ret_bytes = (str){out, len};
    return true;
}

/* ---- content ---- */

struct reading {
    struct arena *arena;
    bool zh;
    struct buf text;
    struct tool_file *files;
    size_t file_count, file_bytes;
};

static void add_text(struct reading *r, str text)
{
    if (!text.len) return;
    if (r->text.len) buf_append(&r->text, STR("\n\n"));
    buf_append(&r->text, text);
}

static const char *ending_of(str mime)
{
    static const struct {
        const char *mime, *ending;
    } rows[] = {
        {"image/png", "png"},       {"image/jpeg", "jpg"},        {"image/gif", "gif"},
        {"image/webp", "webp"},     {"audio/wav", "wav"},         {"audio/mpeg", "mp3"},
        {"audio/ogg", "ogg"},       {"text/plain", "txt"},        {"text/csv", "csv"},
        {"application/pdf", "pdf"}, {"application/json", "json"}, {"application/zip", "zip"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (str_eq(mime, str_c(rows[i].mime))) return rows[i].ending;
    return "bin";
}

/* The last part of a path, without what a file's name should not have. */
static str last_part(struct arena *arena, str uri)
{
    str rest = uri, path = str_split(&rest, '?'), name = path;
    for (rest = path; rest.p;) name = str_split(&rest, '/');
    name = tool_text_head(name, FILENAME_BYTES_MAX);
    char *copy = arena_cstr(arena, name);
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)copy[i] < ' ' || copy[i] == 0x7f || strchr("\\:\"<>|*", copy[i]))
            copy[i] = '_';
    return (str){copy, name.len};
}

static bool is_mime(str mime)
{
    for (size_t i = 0; i < mime.len; i++)
        if (mime.p[i] <= ' ' || mime.p[i] > '~') return false;
    return mime.len > 2 && mime.len <= MIME_BYTES_MAX && str_find_char(mime, '/') > 0;
}

static void add_file(struct reading *r, const char *what, str base64, str mime, str uri)
{
    str bytes = STR_EMPTY;
    const char *why = NULL;
    if (!is_mime(mime)) mime = STR("application/octet-stream");
    if (r->file_count == CALL_FILES_MAX)
        why = r->zh ? "文件太多" : "there are too many files";
    else if (base64.len / 4 * 3 > CALL_FILES_BYTES_MAX - r->file_bytes)
        why = r->zh ? "文件太大" : "it is too large";
    else if (!decode(r->arena, base64, &bytes))
        why = r->zh ? "不是 base64" : "it is no base64";
    if (why) {
        add_text(r, arena_printf(r->arena,
                                 r->zh ? "[没有保留一个文件（%.*s）：%s]"
                                       : "[a file (%.*s) was not kept: %s]",
                                 STR_ARG(mime), why));
        return;
    }
    str name = last_part(r->arena, uri);
    if (!name.len)
        name = arena_printf(r->arena, "%s-%zu.%s", what, r->file_count + 1, ending_of(mime));
    r->files[r->file_count++] = (struct tool_file){mime, name, bytes};
    r->file_bytes += bytes.len;
}

static void take_text(struct reading *r, const struct json *item)
{
    add_text(r, mcp_text(item, "text"));
}

static void take_image(struct reading *r, const struct json *item)
{
    add_file(r, "image", mcp_text(item, "data"), mcp_text(item, "mimeType"), STR_EMPTY);
}

static void take_audio(struct reading *r, const struct json *item)
{
    add_file(r, "audio", mcp_text(item, "data"), mcp_text(item, "mimeType"), STR_EMPTY);
}

static void take_link(struct reading *r, const struct json *item)
{
    str name = mcp_text(item, "title"), words = mcp_text(item, "description");
    if (!name.len) name = mcp_text(item, "name");
    add_text(r,
             arena_printf(r->arena, "%.*s%s%.*s%s%.*s", STR_ARG(name), name.len ? ": " : "",
                          STR_ARG(mcp_text(item, "uri")), words.len ? "\n" : "", STR_ARG(words)));
}

static void take_resource(struct reading *r, const struct json *item)
{
    const struct json *resource = json_get(item, STR("resource"));
    const struct json *blob = json_get(resource, STR("blob"));
    str uri = mcp_text(resource, "uri");
    if (blob) {
        add_file(r, "file", json_text(blob), mcp_text(resource, "mimeType"), uri);
        return;
    }
    add_text(r, arena_printf(r->arena, "%.*s%s", STR_ARG(uri), uri.len ? ":" : ""));
    if (uri.len) buf_char(&r->text, '\n');
    buf_append(&r->text, mcp_text(resource, "text"));
}

static const struct {
    const char *type;
    void (*take)(struct reading *r, const struct json *item);
} items[] = {
    {"text", take_text},          {"image", take_image},       {"audio", take_audio},
    {"resource_link", take_link}, {"resource", take_resource},
};

static void take_item(struct reading *r, const struct json *item)
{
    str type = mcp_text(item, "type");
    for (size_t i = 0; i < COUNT(items); i++) {
        if (!str_eq(type, str_c(items[i].type))) continue;
        items[i].take(r, item);
        return;
    }
    str shown = tool_text_head(type, 40);
    add_text(r, arena_printf(r->arena,
                             r->zh ? "[没有显示未知类型的内容：%.*s]"
                                   : "[content of the unknown type %.*s]",
                             STR_ARG(shown)));
}

/* ---- results ---- */

static void set_text(struct reading *r, str text, str locale, struct tool_result *result)
{
    if (text.len > TOOL_CONTENT_BYTES_MAX && !result->result.len) {
        AUTO(json_doc_done) struct json_doc doc;
        json_doc_open(&doc, TOOL_RESULT_BYTES_MAX);
        json_string(&doc.w, text);
        if (!doc.buf.full) {
            result->result = json_doc_copy(&doc, r->arena);
            return;
        }
    }
    result->content = tool_text_cut(r->arena, text, TOOL_CONTENT_BYTES_MAX, locale);
}

enum tool_end mcp_result_read(struct arena *arena, const struct json *answer, str locale,
                              struct tool_result *ret_result)
{
    struct reading r = {.arena = arena, .zh = tool_locale_zh(locale)};
    struct tool_result result = {0};
    const struct json *content = json_get(answer, STR("content"));
    const struct json *value = json_get(answer, STR("structuredContent"));
    const struct json *wrong = json_get(answer, STR("isError"));
    bool failed = wrong && wrong->type == JSON_TRUE;
    buf_init(&r.text, 2 * (size_t)MCP_MESSAGE_BYTES_MAX);
    r.files = arena_array(arena, CALL_FILES_MAX, sizeof *r.files);
    bool listed = content && content->type == JSON_ARRAY;
    for (const struct json *item = listed ? content->child : NULL; item; item = item->next)
        take_item(&r, item);
    str text = arena_str(arena, buf_str(&r.text));
    buf_done(&r.text);
    if (value && value->type != JSON_NULL) {
        /* Servers are told to say structured results as a text too. */
        struct json *said = NULL;
        size_t steps = SCHEMA_STEPS_MAX;
        result.result = value->raw;
        if (json_parse(arena, text, &said, NULL) == OK && value_same(said, value, &steps))
            text = STR_EMPTY;
    }
    if (failed) {
        result.error = http_result_error(arena, 200, text);
        if (text.len <= TOOL_ERROR_BYTES_MAX - 16) text = STR_EMPTY; /* all of it is there */
    }
    set_text(&r, text, locale, &result);
    result.files = r.files;
    result.file_count = r.file_count;
    *ret_result = result;
    return failed ? TOOL_FAILED : TOOL_DONE;
}

/* ---- questions ---- */

static enum err read_page(struct arena *arena, const struct json *params,
                          struct tool_question *question, struct fault *reterr)
{
    str url = mcp_text(params, "url");
    bool http = str_starts(url, STR("https://")) || str_starts(url, STR("http://"));
    if (!http || url.len > MCP_URL_BYTES_MAX || !text_is_uri(url))
        return fault(reterr, ERR_INVALID_FIELD, "url must be an address of http or https");
    str host = str_drop(url, (size_t)str_find(url, STR("://")) + 3);
    size_t len = 0;
    while (len < host.len && !strchr("/?#", host.p[len])) len++;
    host.len = len;
    if (!host.len || str_find_char(host, '@') >= 0)
        return fault(reterr, ERR_INVALID_FIELD, "url must name a host, and nobody before it");
    question->url = arena_str(arena, url);
    question->message =
        arena_printf(arena, "%.*s (%.*s)", STR_ARG(question->message), STR_ARG(host));
    return OK;
}

static enum err read_schema(struct arena *arena, const struct json *params,
                            struct tool_question *question, struct fault *reterr)
{
    const struct json *schema = json_get(params, STR("requestedSchema"));
    str fields = STR_EMPTY;
    if (!schema || schema->raw.len > MCP_SCHEMA_BYTES_MAX)
        return fault(reterr, ERR_INVALID_FIELD, "requestedSchema is missing, or too long");
    char *text = arena_cstr(arena, schema->raw);
    value_one_line(text, schema->raw.len);
    question->schema = (str){text, schema->raw.len};
    return elicit_fields(arena, question->schema, &fields, reterr);
}

enum err mcp_question_read(struct arena *arena, const struct json *params,
                           struct tool_question *ret_question, struct fault *reterr)
{
    str mode = mcp_text(params, "mode");
    str words = tool_text_head(mcp_text(params, "message"), ASK_TEXT_BYTES_MAX / 2);
    struct tool_question question = {.message = arena_str(arena, words)};
    enum err e = OK;
    if (!words.len)
        e = fault(reterr, ERR_INVALID_FIELD, "message must say what is asked");
    else if (!mode.len || str_eq(mode, STR("form")))
        e = read_schema(arena, params, &question, reterr);
    else if (str_eq(mode, STR("url")))
        e = read_page(arena, params, &question, reterr);
    else
        e = fault(reterr, ERR_INVALID_FIELD, "mode must be form or url");
    if (e) return e;
    ret_question->message = question.message;
    ret_question->schema = question.schema;
    ret_question->url = question.url;
    return OK;
}

static void needs_init(struct arena *arena, struct mcp_needs *needs, const struct json *list)
{
    size_t count = list ? list->count : 0;
    *needs = (struct mcp_needs){0};
    needs->questions = arena_array(arena, count, sizeof *needs->questions);
    needs->declined = arena_array(arena, count, sizeof *needs->declined);
}

static enum err add_need(struct arena *arena, struct mcp_needs *needs, const struct json *request,
                         struct fault *reterr)
{
    str method = mcp_text(request, "method"), key = arena_str(arena, request->key);
    if (!str_eq(method, STR("elicitation/create")))
        return fault(reterr, ERR_INVALID_FIELD,
                     "the server asks for %.*s, which Fermata does not offer to servers",
                     STR_ARG(tool_text_head(method, 80)));
    if (key.len > MCP_ID_BYTES_MAX)
        return fault(reterr, ERR_INVALID_FIELD,
                     "the server asks under a name of more than %d bytes", MCP_ID_BYTES_MAX);
    struct tool_question *question = &needs->questions[needs->count];
    question->id = key;
    if (mcp_question_read(arena, json_get(request, STR("params")), question, NULL))
        needs->declined[needs->declined_count++] = key;
    else
        needs->count++;
    return OK;
}

enum err mcp_needs_read(struct arena *arena, const struct json *result, struct mcp_needs *ret_needs,
                        struct fault *reterr)
{
    struct mcp_needs needs;
    const struct json *requests = json_get(result, STR("inputRequests"));
    const struct json *state = json_get(result, STR("requestState"));
    if (requests && requests->type != JSON_OBJECT) requests = NULL;
    if (requests && requests->count > QUESTIONS_OPEN_MAX)
        return fault(reterr, ERR_INVALID_FIELD, "the server asks more than %d things at once",
                     QUESTIONS_OPEN_MAX);
    needs_init(arena, &needs, requests);
    for (const struct json *m = requests ? requests->child : NULL; m; m = m->next) {
        enum err e = add_need(arena, &needs, m, reterr);
        if (e) return e;
    }
    needs.has_state = state && state->type == JSON_STRING;
    needs.state = arena_str(arena, json_text(state));
    if (needs.state.len > MCP_STATE_BYTES_MAX)
        return fault(reterr, ERR_INVALID_FIELD, "the server's requestState has more than %d bytes",
                     MCP_STATE_BYTES_MAX);
    if (!needs.has_state && !(requests && requests->count))
        return fault(reterr, ERR_INVALID_FIELD, "the server needs input, and does not say which");
    *ret_needs = needs;
    return OK;
}

enum err mcp_pages_read(struct arena *arena, const struct json *data, struct mcp_needs *ret_needs,
                        struct fault *reterr)
{
    struct mcp_needs needs;
    const struct json *list = json_get(data, STR("elicitations"));
    if (!list || list->type != JSON_ARRAY || !list->count || list->count > QUESTIONS_OPEN_MAX)
        return fault(reterr, ERR_INVALID_FIELD, "the server wants pages opened, and names none");
    needs_init(arena, &needs, list);
    for (const struct json *item = list->child; item; item = item->next) {
        struct tool_question *question = &needs.questions[needs.count++];
        enum err e = mcp_question_read(arena, item, question, reterr);
        if (e) return e;
        question->id = arena_str(arena, tool_text_head(mcp_text(item, "elicitationId"), 128));
    }
    *ret_needs = needs;
    return OK;
}

str mcp_reply_write(struct arena *arena, const struct tool_reply *reply, const char *reason)
{
    AUTO(buf_done) struct buf out = {0};
    struct json_writer w;
    buf_init(&out, reply->content.len + 4096);
    json_write_begin(&w, &out);
    json_object(&w);
    json_member(&w, STR("action"), reply->action.len ? reply->action : STR("cancel"));
    if (reply->content.len) json_member_raw(&w, STR("content"), reply->content);
    if (reason) {
        json_key(&w, STR("_meta"));
        json_object(&w);
        json_member(&w, STR("fermata/reason"), str_c(reason));
        json_object_end(&w);
    }
    json_object_end(&w);
    return arena_str(arena, buf_str(&out));
}
