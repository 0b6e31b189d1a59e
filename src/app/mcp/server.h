/* SPDX-License-Identifier: Apache-2.0
 *
 * Other agents ask people through us: POST /mcp, streamable HTTP of the Model Context Protocol.
 *
 * No session is kept. What a call leaves behind is a question in the store (question.h), so a
 * client may go away, come back on another connection or after a restart, and find it again. On the
 * loop thread.
 */
#ifndef APP_MCP_SERVER_H
#define APP_MCP_SERVER_H

#include <stddef.h>

struct server;

/* Calls that wait for a person; part of struct server, all zero at the start. */
struct mcp_waits {
    struct mcp_wait *first;
    size_t count;
};

/* The server stops: every call is answered now, as pending. */
void mcp_waits_stop(struct server *server);

#endif
