/* SPDX-License-Identifier: Apache-2.0
 *
 * Tools behind a URL: their calls, how those end, and what was surely not sent.
 *
 *     start ──▶ SENT ──on_done──▶ ended                    short answer, or none
 *                │        └─────▶ READING ──▶ ended        longer: read on the thread pool
 *                │                   │
 *                └── cancel: freed   └── cancel: LEFT, freed when it has been read
 *
 * Past CALL_INLINE_BYTES_MAX an answer is given to http_long.c piece by piece, and READING is its end
 * there. While that is full the client holds the server back.
 *
 * Invariants:
 * 1. on_end is called once, on the loop, and not after cancel.
 * 2. While an answer is read on another thread the call touches neither tool nor loop: a cancelled
 *    call may outlive both its tool and whoever started it.
 * 3. What a server says about a failure passes hide_secrets before anybody sees it.
 *
 * The client is told `once`, so it never sends a second time by itself; client_request_sent tells
 * what surely has not happened from what may have.
 */
#include "tool/http_tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "tool/http_long.h"
#include "tool/http_result.h"
#include "tool/schema.h"
#include "tool/tools.h"
#include "tool/value.h"

enum {
    OWN_HEADERS = 3,           /* Content-Type, Idempotency-Key, Accept-Language */
    KEY_BYTES_MAX = 128,       /* of an id */
    LOCALE_BYTES_MAX = 35,     /* of a language tag */
    SECRET_BYTES_MIN = 6,      /* shorter ones would hide ordinary words */
    REFUSAL_BYTES = 64 * 1024, /* of an answer that is an error, for its reason */
};

struct http_tool {
    struct client *client;
    struct spool *spool;
    const char *url, *proxy, *ca_file;
    const struct client_header *headers;
    size_t header_count;
    const str *secrets;
    size_t secret_count;
    msec timeout_ms;
    size_t open; /* calls that are SENT or READING */
};

enum http_tool_call_state { SENT, READING, LEFT, ENDING };

struct tool_call {
    enum http_tool_call_state state;
    struct http_tool *tool;
    void (*on_end)(void *arg, enum tool_end end, const struct tool_result *result);
    void *arg;
    struct client_request *request;
    int status; /* 0: no head yet */
    struct buf body;
    struct http_long *answer; /* a long one, instead of the body */
    char key[KEY_BYTES_MAX + 1];
    char locale[LOCALE_BYTES_MAX + 1];

    struct loop_work work;
    struct arena arena; /* of the result */
    enum tool_end end;
    struct tool_result result;
};

/* ---- the end of a call ---- */

static void free_call(struct tool_call *call)
{
    arena_done(&call->arena);
    buf_done(&call->body);
    free(call);
}

/* Secrets become stars, as many as they had bytes, so that what is cut later cuts none of them. */
static void hide_secrets(const struct http_tool *tool, char *text, size_t len)
{
    for (size_t i = 0; i < tool->secret_count; i++) {
        str secret = tool->secrets[i];
        for (str rest = {text, len}; rest.len;) {
            ptrdiff_t at = str_find(rest, secret);
            if (at < 0) break;
            rest = str_drop(rest, (size_t)at);
            memset(text + (rest.p - text), '*', secret.len);
            rest = str_drop(rest, secret.len);
        }
    }
}

static void end_call(struct tool_call *call, enum tool_end end, const struct tool_result *result)
{
    call->state = ENDING;
    call->tool->open--;
    call->on_end(call->arg, end, result);
    free_call(call);
}

/* A failure in the server's words, or in the client's. */
static void end_failed(struct tool_call *call, enum tool_end end, struct tool_result *result,
                       int status, str words)
{
    char *text = arena_cstr(&call->arena, words);
    hide_secrets(call->tool, text, words.len);
    result->error = http_result_error(&call->arena, status, (str){text, words.len});
    end_call(call, end, result);
}

static void end_read(struct tool_call *call)
{
    if (call->end == TOOL_FAILED)
        end_failed(call, TOOL_FAILED, &call->result, call->status, call->result.error);
    else
        end_call(call, call->end, &call->result);
}

/* On any thread. */
static void read_reply(struct loop_work *work)
{
    struct tool_call *call = CONTAINER(work, struct tool_call, work);
    struct http_reply reply = {call->status, call->body.p, call->body.len, str_c(call->locale)};
    call->end = http_result_read(&call->arena, &reply, &call->result);
}

static void on_read(struct loop_work *work)
{
    struct tool_call *call = CONTAINER(work, struct tool_call, work);
    if (call->state == LEFT)
        free_call(call);
    else
        end_read(call);
}

/* ---- a long answer ---- */

static void on_drained(void *arg)
{
    struct tool_call *call = arg;
    if (call->request) client_resume(call->request);
}

static void on_long_end(void *arg, enum tool_end end, const struct tool_result *result)
{
    struct tool_call *call = arg;
    call->answer = NULL;
    call->end = end;
    call->result = *result;
    end_read(call);
}

static void add_long(struct tool_call *call, str bytes)
{
    http_long_add(call->answer, bytes);
    if (http_long_full(call->answer)) client_pause(call->request);
}

/* What has come so far goes first. */
static void begin_long(struct tool_call *call)
{
    static const struct http_long_ops ops = {on_drained, on_long_end};
    struct http_tool *tool = call->tool;
    assert(tool->spool);
    call->answer = http_long_new(client_loop(tool->client), tool->spool, str_c(call->key),
                                 str_c(call->locale), &ops, call);
    add_long(call, buf_str(&call->body));
    buf_done(&call->body);
}

/* ---- the answer ---- */

static bool answered_badly(const struct tool_call *call)
{
    return call->status && call->status / 100 != 2;
}

static void on_head(void *arg, struct client_request *request, int status)
{
    (void)request;
    struct tool_call *call = arg;
    call->status = status;
    if (answered_badly(call)) buf_init(&call->body, REFUSAL_BYTES);
}

static void on_body(void *arg, str bytes)
{
    struct tool_call *call = arg;
    size_t room = call->body.max - call->body.len;
    if (bytes.len > room && !call->answer && !answered_badly(call)) begin_long(call);
    if (call->answer) {
        add_long(call, bytes);
        return;
    }
    if (bytes.len > room) bytes.len = room; /* of a refusal */
    buf_append(&call->body, bytes);
}

static void on_done(void *arg, enum err e, const struct fault *reason)
{
    struct tool_call *call = arg;
    bool sent = client_request_sent(call->request);
    call->request = NULL;
    if (e && !answered_badly(call)) {
        struct tool_result result = {0};
        if (call->answer) http_long_abort(TAKE(call->answer));
        end_failed(call, sent ? TOOL_LOST : TOOL_AWAY, &result, 200, str_c(reason->text));
        return;
    }
    call->state = READING;
    if (call->answer) {
        http_long_end(call->answer);
        return;
    }
    call->work = (struct loop_work){read_reply, on_read};
    if (call->body.len > HTTP_TOOL_LOOP_BYTES_MAX) {
        loop_work(client_loop(call->tool->client), &call->work);
        return;
    }
    read_reply(&call->work);
    end_read(call);
}

/* ---- starting and cancelling ---- */

static bool is_language(str locale)
{
    for (size_t i = 0; i < locale.len; i++) {
        char c = char_lower(locale.p[i]);
        if (!char_is_alnum(c) && c != '-') return false;
    }
    return locale.len > 0 && locale.len <= LOCALE_BYTES_MAX;
}

static void send_call(struct tool_call *call, const struct tool_request *request)
{
    static const struct client_ops ops = {on_head, on_body, on_done};
    const struct http_tool *tool = call->tool;
    struct client_header headers[CLIENT_FIELDS_MAX];
    size_t count = tool->header_count;
    if (count) memcpy(headers, tool->headers, count * sizeof *headers);
    headers[count++] = (struct client_header){"Content-Type", "application/json"};
    headers[count++] = (struct client_header){"Idempotency-Key", call->key};
    bool language = call->locale[0];
    for (size_t i = 0; i < tool->header_count && language; i++)
        language = !str_eq_nocase(str_c(tool->headers[i].name), STR("Accept-Language"));
    if (language) headers[count++] = (struct client_header){"Accept-Language", call->locale};

    struct client_options options = {
        .method = "POST",
        .url = tool->url,
        .headers = headers,
        .header_count = count,
        .body = request->args,
        .proxy = tool->proxy,
        .ca_file = tool->ca_file,
        .once = true,
        .first_byte_ms = tool->timeout_ms,
        .idle_ms = tool->timeout_ms,
        .total_ms = tool->timeout_ms,
        .body_bytes_max = TOOL_RESULT_BYTES_MAX,
    };
    call->request = client_send(tool->client, &options, &ops, call);
}

static struct tool_call *http_start(void *self, const struct tool_request *request,
                                    void (*on_end)(void *arg, enum tool_end end,
                                                   const struct tool_result *result),
                                    void *arg)
{
    struct http_tool *tool = self;
    struct tool_call *call = mem_new(sizeof *call);
    call->state = SENT;
    call->tool = tool;
    call->on_end = on_end;
    call->arg = arg;
    arena_init(&call->arena);
    buf_init(&call->body, CALL_INLINE_BYTES_MAX);
    assert(request->call_id.len > 0 && request->call_id.len <= KEY_BYTES_MAX);
    snprintf(call->key, sizeof call->key, "%.*s", STR_ARG(request->call_id));
    if (is_language(request->locale))
        snprintf(call->locale, sizeof call->locale, "%.*s", STR_ARG(request->locale));
    tool->open++;
    send_call(call, request);
    return call;
}

static void http_cancel(struct tool_call *call)
{
    if (call->state == ENDING) return; /* from inside its own on_end */
    assert(call->state != LEFT);
    call->tool->open--;
    if (call->state == READING && !call->answer) {
        call->state = LEFT;
        return;
    }
    if (call->answer) http_long_abort(TAKE(call->answer));
    if (call->state == SENT) client_cancel(call->request);
    free_call(call);
}

static void http_free(void *self)
{
    const struct http_tool *tool = self;
    assert(tool->open == 0); /* the arena has the rest */
}

static const struct tool_ops ops = {.start = http_start, .cancel = http_cancel, .free = http_free};

void http_tool_free(struct tool *tool)
{
    tool->ops->free(tool->self);
}

/* ---- making a tool ---- */

static enum err check_header(const struct http_tool_header *header, struct fault *reterr)
{
    static const char *const ours[] = {"Content-Type",      "Content-Length", "Idempotency-Key",
                                       "Transfer-Encoding", "Connection",     "Expect"};
    char field[sizeof reterr->field];
    str shown = tool_text_head(header->name, 80);
    if (!str_is_token(header->name))
        return fault_field(reterr, ERR_INVALID_FIELD, "headers",
                           "\"%.*s\" is not the name of an HTTP header", STR_ARG(shown));
    snprintf(field, sizeof field, "headers.%.*s", STR_ARG(shown));
    if (!str_is_field_value(header->value))
        return fault_field(reterr, ERR_INVALID_FIELD, field,
                           "its value holds a line end or another control character");
    for (size_t i = 0; i < COUNT(ours); i++)
        if (str_eq_nocase(header->name, str_c(ours[i])))
            return fault_field(reterr, ERR_INVALID_FIELD, field,
                               "this header is set by Fermata itself; leave it out");
    return OK;
}

static enum err check_options(const struct http_tool_options *options, struct fault *reterr)
{
    str url = options->url;
    bool http = str_starts(url, STR("http://")) || str_starts(url, STR("https://"));
    if (!tool_name_valid(options->name))
        return fault_field(reterr, ERR_INVALID_FIELD, "name",
                           "a tool's name has 1 to %d letters, digits, _ and -",
                           TOOL_NAME_BYTES_MAX);
    if (!http || !text_is_uri(url) || url.len > CLIENT_URL_BYTES_MAX)
        return fault_field(reterr, ERR_INVALID_FIELD, "url",
                           "the URL must be written as http://host/path or https://host/path, in "
                           "ASCII");
    if (options->timeout_s > HTTP_TOOL_S_MAX)
        return fault_field(reterr, ERR_INVALID_FIELD, "timeout_s",
                           "a call may take at most %d seconds", HTTP_TOOL_S_MAX);
    if (options->header_count > CLIENT_FIELDS_MAX - OWN_HEADERS)
        return fault_field(reterr, ERR_INVALID_FIELD, "headers", "there are more than %d headers",
                           CLIENT_FIELDS_MAX - OWN_HEADERS);
    for (size_t i = 0; i < options->header_count; i++) {
        enum err e = check_header(&options->headers[i], reterr);
        if (e) return e;
    }
    return OK;
}

static enum err compile_schema(struct arena *arena, const struct json *text,
                               struct schema **ret_schema, struct fault *reterr)
{
    struct fault why = {0};
    if (!text || !str_eq(json_text(json_get(text, STR("type"))), STR("object")))
        return fault_field(reterr, ERR_INVALID_FIELD, "schema.type",
                           "the schema of a tool's arguments must have the type object");
    if (schema_parse(arena, text, ret_schema, &why) == OK) return OK;
    char field[sizeof why.field + sizeof "schema."];
    snprintf(field, sizeof field, "schema%s%s", why.field[0] ? "." : "", why.field);
    return fault_field(reterr, ERR_INVALID_FIELD, field, "%s", why.text);
}

static void add_secret(struct http_tool *tool, str *rows, str secret)
{
    if (secret.len >= SECRET_BYTES_MIN) rows[tool->secret_count++] = secret;
}

/* Header values, what stands behind "Bearer " in them, and of the URL its query and whoever is
 * named before the host. Whole values first: their parts are then gone already. */
static void list_secrets(struct arena *arena, struct http_tool *tool)
{
    str *rows = arena_array(arena, 2 * tool->header_count + 2, sizeof *rows);
    for (size_t i = 0; i < tool->header_count; i++) {
        str value = str_c(tool->headers[i].value);
        ptrdiff_t space = str_find_char(value, ' ');
        add_secret(tool, rows, value);
        if (space >= 0) add_secret(tool, rows, str_trim(str_drop(value, (size_t)space)));
    }
    str rest = str_c(tool->url);
    rest = str_drop(rest, (size_t)str_find(rest, STR("://")) + 3);
    str before_query = str_split(&rest, '?');
    if (rest.p) add_secret(tool, rows, rest);
    str authority = str_split(&before_query, '/');
    ptrdiff_t at = str_find_char(authority, '@');
    if (at >= 0) {
        str user = {authority.p, (size_t)at};
        str name = str_split(&user, ':');
        add_secret(tool, rows, user.p ? user : name);
    }
    tool->secrets = rows;
}

enum err http_tool_new(struct arena *arena, struct client *client,
                       const struct http_tool_options *options, struct tool *ret_tool,
                       struct fault *reterr)
{
    struct schema *schema = NULL;
    enum err e = check_options(options, reterr);
    if (!e) e = compile_schema(arena, options->schema, &schema, reterr);
    if (e) return e;

    struct http_tool *self = ARENA_NEW(arena, struct http_tool);
    self->client = client;
    self->spool = options->spool;
    self->url = arena_cstr(arena, options->url);
    self->proxy = options->proxy ? arena_cstr(arena, str_c(options->proxy)) : NULL;
    self->ca_file = options->ca_file ? arena_cstr(arena, str_c(options->ca_file)) : NULL;
    struct client_header *headers = arena_array(arena, options->header_count, sizeof *headers);
    for (size_t i = 0; i < options->header_count; i++) {
        headers[i].name = arena_cstr(arena, options->headers[i].name);
        headers[i].value = arena_cstr(arena, options->headers[i].value);
    }
    self->headers = headers;
    self->header_count = options->header_count;
    self->timeout_ms = (msec)(options->timeout_s ? options->timeout_s : HTTP_TOOL_S) * 1000;
    list_secrets(arena, self);

    str name = arena_str(arena, options->name);
    char *text = arena_cstr(arena, options->schema->raw);
    value_one_line(text, options->schema->raw.len);
    *ret_tool = (struct tool){
        .name = name,
        .pack = name,
        .description = arena_str(arena, options->description),
        .schema = {text, options->schema->raw.len},
        .args = schema,
        .write = options->write,
        .idempotent = options->idempotent,
        .risk = options->risk,
        .ops = &ops,
        .self = self,
    };
    return OK;
}
