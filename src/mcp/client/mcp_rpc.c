/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON-RPC as MCP uses it, written and read; pure.
 *
 *     {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{...}}   request
 *     {"jsonrpc":"2.0","method":"notifications/progress","params":{}} notification: no id
 *     {"jsonrpc":"2.0","id":7,"result":{...}}                         answer
 *     {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":""}}   the other answer
 *
 * A message that is written here is on one line: whatever JSON is put into it may have line ends
 * only between its tokens, and whoever sends it replaces them (value_one_line).
 *
 * To add a version: its row in legacy[], or MCP_MODERN and what differs in mcp_session.c.
 */
#include "mcp/client/mcp_rpc.h"

#include "base/limits.h"

static const char *const legacy[] = {MCP_LEGACY, "2025-06-18", "2025-03-26"};

bool mcp_version_legacy(str version)
{
    for (size_t i = 0; i < COUNT(legacy); i++)
        if (str_eq(version, str_c(legacy[i]))) return true;
    return false;
}

/* ---- reading ---- */

static enum err mcp_rpc_refuse(struct fault *reterr, const char *why)
{
    return fault(reterr, ERR_BAD_REQUEST, "%s", why);
}

static enum err read_asked(const struct json *json, const struct json *id,
                           struct rpc_message *message, struct fault *reterr)
{
    const struct json *params = json_get(json, STR("params"));
    message->method = json_text(json_get(json, STR("method")));
    message->kind = id ? RPC_REQUEST : RPC_NOTIFICATION;
    if (!message->method.len) return mcp_rpc_refuse(reterr, "its method is no text");
    if (id && id->type != JSON_STRING && id->type != JSON_NUMBER)
        return mcp_rpc_refuse(reterr, "its id is no text and no number");
    if (id && id->raw.len > MCP_ID_BYTES_MAX) return mcp_rpc_refuse(reterr, "its id is too long");
    if (params && params->type != JSON_OBJECT && params->type != JSON_NULL)
        return mcp_rpc_refuse(reterr, "its params are no object");
    message->id = id ? id->raw : STR_EMPTY;
    message->params = params && params->type == JSON_OBJECT ? params : NULL;
    return OK;
}

static enum err read_answer(const struct json *json, const struct json *id,
                            struct rpc_message *message, struct fault *reterr)
{
    const struct json *result = json_get(json, STR("result"));
    const struct json *error = json_get(json, STR("error"));
    if (id && json_u64(id, &message->number)) message->number = 0; /* none of ours */
    if (result && !error) {
        if (result->type != JSON_OBJECT) return mcp_rpc_refuse(reterr, "its result is no object");
        message->kind = RPC_RESULT;
        message->result = result;
        return OK;
    }
    if (!error || error->type != JSON_OBJECT)
        return mcp_rpc_refuse(reterr, "it is no request, no notification and no answer");
    message->kind = RPC_ERROR;
    if (json_i64(json_get(error, STR("code")), &message->code)) message->code = 0;
    message->text = json_text(json_get(error, STR("message")));
    message->data = json_get(error, STR("data"));
    return OK;
}

enum err rpc_parse(struct arena *arena, str text, struct rpc_message *ret_message,
                   struct fault *reterr)
{
    struct json *json = NULL;
    struct json_error why = {0};
    struct rpc_message message = {0};
    if (json_parse(arena, text, &json, &why))
        return fault(reterr, ERR_BAD_REQUEST, "no JSON at byte %zu: %s", why.offset, why.reason);
    if (!str_eq(json_text(json_get(json, STR("jsonrpc"))), STR("2.0")))
        return mcp_rpc_refuse(reterr, "it is not of JSON-RPC 2.0");
    const struct json *id = json_get(json, STR("id"));
    enum err e = json_get(json, STR("method")) ? read_asked(json, id, &message, reterr)
                                               : read_answer(json, id, &message, reterr);
    if (!e) *ret_message = message;
    return e;
}

/* ---- writing ---- */

static void begin(struct json_writer *w, struct buf *out)
{
    json_write_begin(w, out);
    json_object(w);
    json_member(w, STR("jsonrpc"), STR("2.0"));
}

void rpc_begin(struct json_writer *w, struct buf *out, uint64_t number, const char *method)
{
    begin(w, out);
    if (number) json_member_u64(w, STR("id"), number);
    json_member(w, STR("method"), str_c(method));
    json_key(w, STR("params"));
    json_object(w);
}

void rpc_end(struct json_writer *w)
{
    while (w->depth) json_object_end(w);
}

void rpc_capabilities(struct json_writer *w)
{
    json_raw(w, STR("{\"elicitation\":{\"form\":{},\"url\":{}}}"));
}

void rpc_client(struct json_writer *w)
{
    json_raw(w, STR("{\"name\":\"fermata\",\"title\":\"Fermata\",\"version\":\"" FERMATA_VERSION
                    "\"}"));
}

void rpc_meta(struct json_writer *w, bool modern)
{
    json_key(w, STR("_meta"));
    json_object(w);
    if (!modern) return;
    json_member(w, STR("io.modelcontextprotocol/protocolVersion"), STR(MCP_MODERN));
    json_key(w, STR("io.modelcontextprotocol/clientInfo"));
    rpc_client(w);
    json_key(w, STR("io.modelcontextprotocol/clientCapabilities"));
    rpc_capabilities(w);
}

void rpc_answer(struct buf *out, str id, str result)
{
    struct json_writer w;
    begin(&w, out);
    json_member_raw(&w, STR("id"), id);
    json_member_raw(&w, STR("result"), result);
    json_object_end(&w);
}

void rpc_refuse(struct buf *out, str id, int code, const char *text)
{
    struct json_writer w;
    begin(&w, out);
    json_member_raw(&w, STR("id"), id);
    json_key(&w, STR("error"));
    json_object(&w);
    json_member_i64(&w, STR("code"), code);
    json_member(&w, STR("message"), str_c(text));
    json_object_end(&w);
    json_object_end(&w);
}
