/* SPDX-License-Identifier: Apache-2.0
 *
 * MCP as a server speaks it: one JSON-RPC message in, what it asks for out; and the bytes of the
 * answers. Pure. Both eras are spoken at once, and nothing is remembered between two messages:
 *
 *     legacy   2025-06-18, 2025-11-25   opens with `initialize`; no session is given out
 *     modern   2026-07-28               every request says its version in params._meta, and the
 *                                       headers of its POST say the same again
 */
#ifndef MCP_SERVER_MCP_PROTOCOL_H
#define MCP_SERVER_MCP_PROTOCOL_H

#include "base/json.h"

/* method, its name on the wire, in which era it is known */
#define DESK_METHODS(X)                                         \
    X(DESK_INITIALIZE, "initialize", DESK_LEGACY)               \
    X(DESK_PING, "ping", DESK_LEGACY)                           \
    X(DESK_DISCOVER, "server/discover", DESK_MODERN)            \
    X(DESK_TOOLS_LIST, "tools/list", DESK_LEGACY | DESK_MODERN) \
    X(DESK_TOOLS_CALL, "tools/call", DESK_LEGACY | DESK_MODERN)

enum { DESK_LEGACY = 1, DESK_MODERN = 2 };

#define DESK_ENUM(value, name, eras) value,
enum desk_method {
    DESK_METHODS(DESK_ENUM) DESK_METHOD_COUNT,
    DESK_NOTIFICATION, /* of any name, or an answer to nothing we asked: taken, not answered */
};
#undef DESK_ENUM

/* Codes of errors. */
enum {
    DESK_PARSE_ERROR = -32700,
    DESK_INVALID_REQUEST = -32600,
    DESK_METHOD_NOT_FOUND = -32601,
    DESK_INVALID_PARAMS = -32602,
    DESK_INTERNAL_ERROR = -32603,
    DESK_AWAY = -32000, /* of `fermata mcp`: its server is not there */
    DESK_HEADER_MISMATCH = -32020,
    DESK_UNSUPPORTED_VERSION = -32022,
};

/* What the POST says beside its body; p is NULL where it says nothing. */
struct desk_headers {
    str version; /* MCP-Protocol-Version */
    str method;  /* Mcp-Method */
    str name;    /* Mcp-Name */
};

struct desk_message {
    enum desk_method method;
    str id; /* JSON, a string or a number; empty for a notification */
    bool modern;
    str version;                  /* that is spoken, or, for initialize, that is offered */
    str client;                   /* its own name for itself; may be empty */
    str tool;                     /* of tools/call */
    const struct json *arguments; /* likewise: an object, or NULL */
};

/* Why a message is not taken. */
struct desk_refusal {
    int status; /* of HTTP */
    int code;
    str id; /* JSON; empty if none could be read */
    char text[256];
    str requested; /* version, of DESK_UNSUPPORTED_VERSION */
};

/* Read one message. ERR_BAD_REQUEST: it is refused, and *ret_refusal says how. Both borrow from the
 * arena and from what is given. */
enum err desk_read(struct arena *arena, str body, const struct desk_headers *headers,
                   struct desk_message *ret_message, struct desk_refusal *ret_refusal) MUST_USE;

/* {"jsonrpc":"2.0","id":...,"error":{...}} in the arena. */
str desk_refuse(struct arena *arena, const struct desk_refusal *refusal);
str desk_error(struct arena *arena, str id, int code, str text);

/* {"jsonrpc":"2.0","id":...,"result":{...}}: between these two the members of the result are
 * written. `keep`: it is the same for everybody, and may be kept for a while. */
void desk_reply(struct json_writer *w, struct buf *out, const struct desk_message *message);
void desk_reply_end(struct json_writer *w, const struct desk_message *message, bool keep);

/* Results that need nothing else: of initialize, server/discover and ping. */
str desk_hello(struct arena *arena, const struct desk_message *message);

#endif
