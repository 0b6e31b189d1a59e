/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON-RPC 2.0 as MCP uses it: one message from text, and messages into a buf. Pure.
 *
 * Our requests have numbers from 1; a server's requests have ids of its own, which are given back as
 * they came.
 */
#ifndef MCP_CLIENT_MCP_RPC_H
#define MCP_CLIENT_MCP_RPC_H

#include "base/json.h"

/* What the protocol gives meanings to. */
enum {
    RPC_NO_METHOD = -32601,
    RPC_BAD_PARAMS = -32602,
    RPC_HEADER_MISMATCH = -32020, /* the codes of 2026-07-28 and later */
    RPC_NO_CAPABILITY = -32021,
    RPC_NO_VERSION = -32022,
    RPC_URL_NEEDED = -32042, /* of 2025-11-25 */
};

#define MCP_MODERN "2026-07-28" /* every request says who we are; no session */
#define MCP_LEGACY "2025-11-25" /* what we ask for with initialize */

bool mcp_version_legacy(str version); /* one that begins with initialize, and that we know */

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESULT, RPC_ERROR };

struct rpc_message {
    enum rpc_kind kind;
    str id;                    /* of a request, as it was written */
    uint64_t number;           /* of an answer: our request; 0: none */
    str method;                /* of requests and notifications */
    const struct json *params; /* likewise; an object, or NULL */
    const struct json *result; /* an object */
    int64_t code;              /* of an error */
    str text;
    const struct json *data; /* may be NULL */
};

/* A member that is a text; STR_EMPTY: there is none. */
static inline str mcp_text(const struct json *object, const char *name)
{
    return json_text(json_get(object, str_c(name)));
}

/* The message borrows from text and arena. ERR_BAD_REQUEST says why it is none. */
enum err rpc_parse(struct arena *arena, str text, struct rpc_message *ret_message,
                   struct fault *reterr) MUST_USE;

/* A request, or with number 0 a notification, up to the opening of its params:
 *
 *     rpc_begin(&w, out, 7, "tools/list");
 *     json_member(&w, STR("cursor"), cursor);
 *     rpc_meta(&w, modern);  and members of _meta
 *     rpc_end(&w);           closes _meta if it is open, and the message
 */
void rpc_begin(struct json_writer *w, struct buf *out, uint64_t number, const char *method);
void rpc_meta(struct json_writer *w, bool modern); /* opens _meta, with who we are if modern */
void rpc_end(struct json_writer *w);

void rpc_capabilities(struct json_writer *w); /* the value: what we can do */
void rpc_client(struct json_writer *w);       /* the value: who we are */

void rpc_answer(struct buf *out, str id, str result); /* JSON */
void rpc_refuse(struct buf *out, str id, int code, const char *text);

#endif
