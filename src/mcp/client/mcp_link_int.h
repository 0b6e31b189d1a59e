/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two kinds of links have in common; for mcp_link.c, mcp_stdio.c and mcp_http.c only.
 *
 * Callers' code may free the link from inside a callback. So it runs between mcp_link_enter and
 * mcp_link_leave, and the memory goes in the last leave.
 */
#ifndef MCP_CLIENT_MCP_LINK_INT_H
#define MCP_CLIENT_MCP_LINK_INT_H

#include "mcp/client/mcp_link.h"

struct mcp_link_ops {
    void (*send)(struct mcp_link *link, const struct mcp_post *post);
    void (*listen)(struct mcp_link *link, const struct mcp_header *headers, size_t header_count);
    void (*forget)(struct mcp_link *link, uint64_t request);
    void (*close)(struct mcp_link *link, const struct mcp_header *headers, size_t header_count);
    void (*stop)(struct mcp_link *link);    /* let go of everything; it was freed */
    void (*release)(struct mcp_link *link); /* its memory */
};

/* First member of both. */
struct mcp_link {
    const struct mcp_link_ops *ops;
    struct mcp_link_events events;
    void *arg;
    unsigned busy; /* callers' code runs */
    bool freed;
    bool down; /* on_down has come, or the link was freed: nothing is told any more */
};

void mcp_link_init(struct mcp_link *link, const struct mcp_link_ops *ops,
                   const struct mcp_link_events *events, void *arg);

void mcp_link_enter(struct mcp_link *link);
void mcp_link_leave(struct mcp_link *link); /* the link may be gone after this */

/* Callbacks, unless the link is down; between enter and leave. */
void mcp_link_tell_open(struct mcp_link *link);
void mcp_link_tell_message(struct mcp_link *link, str json);
void mcp_link_tell_session(struct mcp_link *link, str session);
void mcp_link_tell_lost(struct mcp_link *link, uint64_t request, enum mcp_loss loss,
                        int http_status, const struct fault *why);
void mcp_link_tell_down(struct mcp_link *link, const struct fault *why);
void mcp_link_tell_stderr(struct mcp_link *link, str line);

#endif
