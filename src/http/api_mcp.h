/* SPDX-License-Identifier: Apache-2.0
 *
 * Other agents ask people through us: POST /mcp, streamable HTTP of the Model Context Protocol.
 *
 * No session is kept. What a call leaves behind is a question in the store (mcp/server/question.h), so a
 * client may go away, come back on another connection or after a restart, and find it again. On the
 * loop thread.
 */
#ifndef HTTP_API_MCP_H
#define HTTP_API_MCP_H

#include <stddef.h>

struct server;

/* The server stops: every call is answered now, as pending. */
void mcp_waits_stop(struct server *server);

#endif
