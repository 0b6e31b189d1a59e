/* SPDX-License-Identifier: Apache-2.0
 *
 * What an MCP server says of its tools, made into rows of struct tool. Pure; everything is copied into
 * the arena given.
 */
#ifndef MCP_CLIENT_MCP_TOOLS_H
#define MCP_CLIENT_MCP_TOOLS_H

#include "base/json.h"
#include "tool/tool.h"

struct mcp_server;

/* One definition, checked and on one line, as it is remembered:
 * {"name","description","inputSchema","annotations"?{readOnlyHint,destructiveHint,idempotentHint}} */
enum err mcp_define(struct arena *arena, const struct json *tool, str *ret_text,
                    struct fault *reterr) MUST_USE;

/* An argument that HTTP servers want as a header too: Mcp-Param-<name>. */
struct mcp_param {
    str name;
    str *path; /* of the argument: member names from the outside in */
    size_t depth;
};

/* What a row's `self` is. */
struct mcp_tool {
    struct mcp_server *server;
    str name; /* as the server has it */
    struct mcp_param *params;
    size_t param_count;
};

/* How definitions become rows. */
struct mcp_rules {
    struct mcp_server *server;
    const struct tool_ops *ops;
    str server_name;
    bool http;    /* headers are made of arguments */
    bool trusted; /* its annotations count */
    const str *read, *idempotent;
    size_t read_count, idempotent_count;
};

/* One row for each definition that can be offered. The others, with why, go to on_left_out. */
struct tools mcp_rows(struct arena *arena, const struct mcp_rules *rules, const str *definitions,
                      size_t count, void (*on_left_out)(void *arg, str name, const char *why),
                      void *arg);

/* The value of a header; empty: it is not sent. In the arena. */
str mcp_param_value(struct arena *arena, const struct mcp_param *param, const struct json *args);

/* Text as the value of a header: as it is, or "=?base64?...?=" if HTTP could not carry it. */
str mcp_header_text(struct arena *arena, str text);

#endif
