/* SPDX-License-Identifier: Apache-2.0
 *
 * A tool behind a URL: the arguments are POSTed as JSON, with the call's id as Idempotency-Key, and
 * the answer is the result (docs/TOOLS.md). Nothing is sent twice by itself.
 *
 *     2xx                             TOOL_DONE, or TOOL_FAILED if the answer says `error`
 *     any other status                TOOL_FAILED, "HTTP 503: ..."
 *     surely not sent                 TOOL_AWAY: name, connection, TLS, too many open requests
 *     sent, and no whole answer       TOOL_LOST: time-out, cut, too large, client_free
 *
 * Header values and what is secret in a URL never stand in an error, also when the server repeats
 * them.
 */
#ifndef TOOL_HTTP_TOOL_H
#define TOOL_HTTP_TOOL_H

#include "base/json.h"
#include "tool/tool.h"

struct client;
struct spool;

struct http_tool_header {
    str name, value;
};

struct http_tool_options {
    str name, url, description;
    const struct json *schema; /* of the arguments: an object whose type is "object" */
    bool write, idempotent;
    enum tool_risk risk;
    uint32_t timeout_s; /* the whole call; 0 = HTTP_TOOL_S */
    const struct http_tool_header *headers;
    size_t header_count;
    const char *proxy;   /* as in client_options */
    const char *ca_file; /* likewise */
    struct spool *spool; /* for answers over CALL_INLINE_BYTES_MAX; NULL: no call is made */
};

/* Everything is copied into the arena, which must outlive the tool and its calls. ERR_INVALID_FIELD
 * names the key ("schema.properties.start.format", "headers.X-Key", "url") and says why. */
enum err http_tool_new(struct arena *arena, struct client *client,
                       const struct http_tool_options *options, struct tool *ret_tool,
                       struct fault *reterr) MUST_USE;

/* As tool->ops->free does. No call may be open; cancelled ones are not. */
void http_tool_free(struct tool *tool);

#endif
