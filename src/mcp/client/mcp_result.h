/* SPDX-License-Identifier: Apache-2.0
 *
 * What the answer to tools/call means: a result, or questions. Pure; from any thread.
 */
#ifndef MCP_CLIENT_MCP_RESULT_H
#define MCP_CLIENT_MCP_RESULT_H

#include "base/json.h"
#include "tool/tool.h"

/* Ends in TOOL_DONE or TOOL_FAILED. The result borrows from the message and the arena. */
enum tool_end mcp_result_read(struct arena *arena, const struct json *result, str locale,
                              struct tool_result *ret_result);

/* A question: the params of elicitation/create. ERR_INVALID_FIELD says why we do not ask it, for the
 * server. `id` is left alone. */
enum err mcp_question_read(struct arena *arena, const struct json *params,
                           struct tool_question *ret_question, struct fault *reterr) MUST_USE;

/* 2026-07-28: a result of the type input_required. */
struct mcp_needs {
    struct tool_question *questions; /* `id` is the server's key */
    size_t count;
    str *declined; /* keys of those that we do not ask */
    size_t declined_count;
    str state; /* requestState; has_state false: none */
    bool has_state;
};
/* ERR_INVALID_FIELD: it asks for what we do not offer, or for too much. */
enum err mcp_needs_read(struct arena *arena, const struct json *result, struct mcp_needs *ret_needs,
                        struct fault *reterr) MUST_USE;

/* 2025-11-25: pages that have to be opened first, of an error's data. ERR_INVALID_FIELD: none. */
enum err mcp_pages_read(struct arena *arena, const struct json *data, struct mcp_needs *ret_needs,
                        struct fault *reterr) MUST_USE;

/* The reply as JSON: {"action":"accept","content":{}}. In the arena. */
str mcp_reply_write(struct arena *arena, const struct tool_reply *reply, const char *reason);

#endif
