/* SPDX-License-Identifier: Apache-2.0
 *
 * MCP as a server speaks it, both eras: one JSON-RPC message, from bytes to what it asks for; pure:
 *
 *     JSON? ── one object? ── id, method ── era ── headers (modern) ── method known? ── params
 *      │-32700  │-32600        │-32600       │      │-32020             │-32601          │-32602
 *                                            └ version known? -32022
 *
 * The era is told by the message itself: one whose params._meta names a version is modern, and so is
 * one whose header names a modern version (its _meta is then missing, which is refused). All others
 * are legacy. `initialize` is legacy whatever else it brings.
 *
 * Invariants:
 * 1. The same bytes and headers always give the same message: there is no session.
 * 2. A modern request is taken only if its headers say what its body says, so that whoever stands
 *    between us and the client has judged the right thing.
 * 3. An answer is one line.
 *
 * To speak one more version: a row in `versions`. To know one more method: a row in DESK_METHODS and
 * a branch where messages are served (http/api_mcp.c).
 */
#include "mcp/server/mcp_protocol.h"

#include <stdio.h>
#include <string.h>

#include "base/crypto.h"
#include "base/limits.h"

#define META_VERSION      STR("io.modelcontextprotocol/protocolVersion")
#define META_CLIENT       STR("io.modelcontextprotocol/clientInfo")
#define META_CAPABILITIES STR("io.modelcontextprotocol/clientCapabilities")
#define META_SERVER       STR("io.modelcontextprotocol/serverInfo")

/* The newest first. */
static const struct {
    str name;
    bool modern;
} versions[] = {
    {STR("2026-07-28"), true},
    {STR("2025-11-25"), false},
    {STR("2025-06-18"), false},
};

#define DESK_ROW(value, name, eras) [value] = {STR(name), eras},
static const struct {
    str name;
    int eras;
} methods[DESK_METHOD_COUNT] = {DESK_METHODS(DESK_ROW)};
#undef DESK_ROW

#define INSTRUCTIONS                                                                              \
    "Through this server you reach the person you work for. Use ask_user when only they can say " \
    "how to go on, and confirm before something that cannot be undone. They may take hours: a "   \
    "question that is not answered within wait_s comes back as pending with an id, stays open, "  \
    "and get_answer tells later what they said. Give a key of your own to ask the same thing "    \
    "only once."

/* ---- refusing ---- */

struct reading {
    struct arena *arena;
    const struct desk_headers *headers;
    const struct json *root, *params, *meta;
    struct desk_message message;
    struct desk_refusal *refusal;
};

static enum err refuse(struct reading *r, int status, int code, const char *text)
{
    *r->refusal = (struct desk_refusal){.status = status, .code = code, .id = r->message.id};
    snprintf(r->refusal->text, sizeof r->refusal->text, "%s", text);
    return ERR_BAD_REQUEST;
}

static enum err refuse_version(struct reading *r, str requested)
{
    enum err e = refuse(r, 400, DESK_UNSUPPORTED_VERSION, "Unsupported protocol version");
    r->refusal->requested = requested;
    return e;
}

/* ---- versions ---- */

static int version_find(str name)
{
    for (size_t i = 0; i < COUNT(versions); i++)
        if (str_eq(versions[i].name, name)) return (int)i;
    return -1;
}

/* What is offered to somebody who initializes with a version that is none of ours. */
static str newest_legacy(void)
{
    size_t i = 0;
    while (versions[i].modern) i++;
    return versions[i].name;
}

/* ---- headers ---- */

/* A value that a header cannot carry comes as =?base64?...?= */
static bool header_value(struct arena *arena, str header, str *ret_value)
{
    static const str before = STR("=?base64?"), after = STR("?=");
    bool encoded = header.len >= before.len + after.len && str_starts(header, before) &&
                   str_ends(header, after);
    if (!encoded) {
        *ret_value = header;
        return true;
    }
    str inner = {header.p + before.len, header.len - before.len - after.len};
    unsigned char *bytes = arena_alloc(arena, inner.len + 1);
    size_t len = 0;
    if (inner.len % 4 || crypto_base64_parse(inner, bytes, &len))
        return false; /* padding is needed */
    *ret_value = (str){(const char *)bytes, len};
    return true;
}

static enum err check_header(struct reading *r, const char *name, str header, str body,
                             bool encoded)
{
    char text[96];
    str value = header;
    if (!header.p) {
        snprintf(text, sizeof text, "Header mismatch: %s is missing", name);
        return refuse(r, 400, DESK_HEADER_MISMATCH, text);
    }
    if ((!encoded || header_value(r->arena, header, &value)) && str_eq(value, body)) return OK;
    snprintf(text, sizeof text, "Header mismatch: %s does not say what the body says", name);
    return refuse(r, 400, DESK_HEADER_MISMATCH, text);
}

/* ---- the era ---- */

/* A modern request says everything about itself. */
static enum err read_modern(struct reading *r, str version)
{
    struct desk_message *message = &r->message;
    const struct json *client = json_get(r->meta, META_CLIENT);
    message->modern = true;
    message->version = version;
    message->client = json_text(json_get(client, STR("name")));
    if (!json_get(r->meta, META_VERSION))
        return refuse(r, 400, DESK_INVALID_PARAMS,
                      "params._meta must name io.modelcontextprotocol/protocolVersion");
    enum err e = check_header(r, "MCP-Protocol-Version", r->headers->version, version, false);
    if (e) return e;
    int known = version_find(version);
    if (known < 0 || !versions[known].modern) return refuse_version(r, version);
    const struct json *capabilities = json_get(r->meta, META_CAPABILITIES);
    if (!capabilities || capabilities->type != JSON_OBJECT)
        return refuse(r, 400, DESK_INVALID_PARAMS,
                      "params._meta must have io.modelcontextprotocol/clientCapabilities");
    str method = json_text(json_get(r->root, STR("method")));
    e = check_header(r, "Mcp-Method", r->headers->method, method, false);
    if (e || !str_eq(method, methods[DESK_TOOLS_CALL].name)) return e;
    return check_header(r, "Mcp-Name", r->headers->name,
                        json_text(json_get(r->params, STR("name"))), true);
}

static enum err read_era(struct reading *r, str method)
{
    const struct json *named = json_get(r->meta, META_VERSION);
    str header = r->headers->version;
    int known = header.p ? version_find(header) : -1;
    bool hello = str_eq(method, methods[DESK_INITIALIZE].name);
    if (hello) return OK;
    if (named) return read_modern(r, json_text(named));
    if (known >= 0 && versions[known].modern) return read_modern(r, header);
    if (header.p && known < 0) return refuse_version(r, header);
    r->message.version = header.p ? header : newest_legacy();
    return OK;
}

/* ---- requests ---- */

static enum err read_initialize(struct reading *r)
{
    str wanted = json_text(json_get(r->params, STR("protocolVersion")));
    const struct json *client = json_get(r->params, STR("clientInfo"));
    int known = version_find(wanted);
    if (!wanted.len)
        return refuse(r, 200, DESK_INVALID_PARAMS, "params.protocolVersion must be a version");
    bool fits = known >= 0 && !versions[known].modern;
    r->message.version = fits ? wanted : newest_legacy();
    r->message.client = json_text(json_get(client, STR("name")));
    return OK;
}

static enum err read_call(struct reading *r)
{
    const struct json *name = json_get(r->params, STR("name"));
    const struct json *arguments = json_get(r->params, STR("arguments"));
    if (!name || name->type != JSON_STRING)
        return refuse(r, 200, DESK_INVALID_PARAMS, "params.name must be the name of a tool");
    if (arguments && arguments->type != JSON_OBJECT)
        return refuse(r, 200, DESK_INVALID_PARAMS, "params.arguments must be an object");
    r->message.tool = name->text;
    r->message.arguments = arguments;
    return OK;
}

static enum err read_method(struct reading *r, str method)
{
    int era = r->message.modern ? DESK_MODERN : DESK_LEGACY;
    int found = -1;
    for (int i = 0; i < DESK_METHOD_COUNT; i++)
        if (str_eq(methods[i].name, method) && (methods[i].eras & era)) found = i;
    if (found < 0)
        return refuse(r, r->message.modern ? 404 : 200, DESK_METHOD_NOT_FOUND,
                      "This server has no such method");
    r->message.method = (enum desk_method)found;
    if (found == DESK_INITIALIZE) return read_initialize(r);
    return found == DESK_TOOLS_CALL ? read_call(r) : OK;
}

static enum err read_request(struct reading *r)
{
    const struct json *root = r->root, *method = json_get(root, STR("method")),
                      *id = json_get(root, STR("id"));
    if (id && id->type != JSON_STRING && id->type != JSON_NUMBER)
        return refuse(r, 400, DESK_INVALID_REQUEST, "id must be a string or a number");
    if (id && id->raw.len > DESK_RPC_ID_BYTES_MAX)
        return refuse(r, 400, DESK_INVALID_REQUEST, "id is too long");
    if (id) r->message.id = id->raw;
    if (!str_eq(json_text(json_get(root, STR("jsonrpc"))), STR("2.0")))
        return refuse(r, 400, DESK_INVALID_REQUEST, "jsonrpc must be \"2.0\"");
    bool answer = !method && (json_get(root, STR("result")) || json_get(root, STR("error")));
    r->message.method = DESK_NOTIFICATION;
    if (answer && r->message.id.len) return OK; /* we never asked; nobody is hurt */
    if (!method || method->type != JSON_STRING)
        return refuse(r, 400, DESK_INVALID_REQUEST, "method must be a string");
    if (r->params && r->params->type != JSON_OBJECT)
        return refuse(r, 400, DESK_INVALID_REQUEST, "params must be an object");
    if (!r->message.id.len) return OK;
    enum err e = read_era(r, method->text);
    return e ? e : read_method(r, method->text);
}

enum err desk_read(struct arena *arena, str body, const struct desk_headers *headers,
                   struct desk_message *ret_message, struct desk_refusal *ret_refusal)
{
    struct reading r = {.arena = arena, .headers = headers, .refusal = ret_refusal};
    struct json *root = NULL;
    struct json_error where;
    if (json_parse_sent(arena, body, &root, &where)) {
        char text[128];
        snprintf(text, sizeof text, "The body is not JSON: %s at byte %zu", where.reason,
                 where.offset);
        return refuse(&r, 400, DESK_PARSE_ERROR, text);
    }
    if (root->type != JSON_OBJECT)
        return refuse(&r, 400, DESK_INVALID_REQUEST, "Send one JSON-RPC message, an object");
    r.root = root;
    r.params = json_get(root, STR("params"));
    r.meta = json_get(r.params, STR("_meta"));
    enum err e = read_request(&r);
    if (!e) *ret_message = r.message;
    return e;
}

/* ---- answers ---- */

static void write_head(struct json_writer *w, struct buf *out, str id)
{
    json_write_begin(w, out);
    json_object(w);
    json_member(w, STR("jsonrpc"), STR("2.0"));
    json_member_raw(w, STR("id"), id.len ? id : STR("null"));
}

static void write_versions(struct json_writer *w, const char *name)
{
    json_key(w, str_c(name));
    json_array(w);
    for (size_t i = 0; i < COUNT(versions); i++) json_string(w, versions[i].name);
    json_array_end(w);
}

str desk_refuse(struct arena *arena, const struct desk_refusal *refusal)
{
    AUTO(buf_done) struct buf out;
    struct json_writer w;
    buf_init(&out, DESK_SMALL_BYTES_MAX + refusal->id.len + 6 * refusal->requested.len);
    write_head(&w, &out, refusal->id);
    json_key(&w, STR("error"));
    json_object(&w);
    json_member_i64(&w, STR("code"), refusal->code);
    json_member(&w, STR("message"), str_c(refusal->text));
    if (refusal->code == DESK_UNSUPPORTED_VERSION) {
        json_key(&w, STR("data"));
        json_object(&w);
        write_versions(&w, "supported");
        json_member(&w, STR("requested"),
                    utf8_valid(refusal->requested) ? refusal->requested : STR("?"));
        json_object_end(&w);
    }
    json_object_end(&w);
    json_object_end(&w);
    assert(!out.full);
    return arena_str(arena, buf_str(&out));
}

str desk_error(struct arena *arena, str id, int code, str text)
{
    struct desk_refusal refusal = {.code = code, .id = id};
    snprintf(refusal.text, sizeof refusal.text, "%.*s", STR_ARG(text));
    return desk_refuse(arena, &refusal);
}

void desk_reply(struct json_writer *w, struct buf *out, const struct desk_message *message)
{
    write_head(w, out, message->id);
    json_key(w, STR("result"));
    json_object(w);
    if (message->modern) json_member(w, STR("resultType"), STR("complete"));
}

static void write_server(struct json_writer *w)
{
    json_object(w);
    json_member(w, STR("name"), STR("fermata"));
    json_member(w, STR("title"), STR("Fermata"));
    json_member(w, STR("version"), STR(FERMATA_VERSION));
    json_object_end(w);
}

void desk_reply_end(struct json_writer *w, const struct desk_message *message, bool keep)
{
    if (message->modern && keep) {
        json_member_u64(w, STR("ttlMs"), DESK_KEEP_MS);
        json_member(w, STR("cacheScope"), STR("public"));
    }
    if (message->modern) {
        json_key(w, STR("_meta"));
        json_object(w);
        json_key(w, META_SERVER);
        write_server(w);
        json_object_end(w);
    }
    json_object_end(w);
    json_object_end(w);
}

static void write_introduction(struct json_writer *w)
{
    json_key(w, STR("capabilities"));
    json_object(w);
    json_key(w, STR("tools"));
    json_object(w);
    json_object_end(w);
    json_object_end(w);
    json_member(w, STR("instructions"), STR(INSTRUCTIONS));
}

str desk_hello(struct arena *arena, const struct desk_message *message)
{
    AUTO(buf_done) struct buf out;
    struct json_writer w;
    buf_init(&out, DESK_SMALL_BYTES_MAX + message->id.len);
    desk_reply(&w, &out, message);
    if (message->method == DESK_INITIALIZE) {
        json_member(&w, STR("protocolVersion"), message->version);
        write_introduction(&w);
        json_key(&w, STR("serverInfo"));
        write_server(&w);
    } else if (message->method == DESK_DISCOVER) {
        write_versions(&w, "supportedVersions");
        write_introduction(&w);
    }
    desk_reply_end(&w, message, message->method == DESK_DISCOVER);
    assert(!out.full);
    return arena_str(arena, buf_str(&out));
}
