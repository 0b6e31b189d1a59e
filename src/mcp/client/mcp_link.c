/* SPDX-License-Identifier: Apache-2.0
 *
 * Links of both kinds: what is asked of one goes to its kind, what a kind tells goes to the owner
 * unless there is nothing more to tell.
 *
 * Invariants:
 * 1. Nothing is told after on_down, nor after mcp_link_free.
 * 2. A link's memory goes when it was freed and no code of its owner runs on its account.
 *
 * To add a kind: a struct with a mcp_link first, the functions of mcp_link_int.h, and a _new in
 * mcp_link.h.
 */
#include "mcp/client/mcp_link_int.h"

void mcp_link_init(struct mcp_link *link, const struct mcp_link_ops *ops,
                   const struct mcp_link_events *events, void *arg)
{
    *link = (struct mcp_link){.ops = ops, .events = *events, .arg = arg};
}

void mcp_link_enter(struct mcp_link *link)
{
    link->busy++;
}

void mcp_link_leave(struct mcp_link *link)
{
    assert(link->busy > 0);
    if (--link->busy == 0 && link->freed) link->ops->release(link);
}

void mcp_link_tell_open(struct mcp_link *link)
{
    if (!link->down && link->events.on_open) link->events.on_open(link->arg);
}

void mcp_link_tell_message(struct mcp_link *link, str json)
{
    if (!link->down && link->events.on_message) link->events.on_message(link->arg, json);
}

void mcp_link_tell_session(struct mcp_link *link, str session)
{
    if (!link->down && link->events.on_session) link->events.on_session(link->arg, session);
}

void mcp_link_tell_lost(struct mcp_link *link, uint64_t request, enum mcp_loss loss,
                        int http_status, const struct fault *why)
{
    if (!link->down && link->events.on_lost)
        link->events.on_lost(link->arg, request, loss, http_status, why);
}

void mcp_link_tell_down(struct mcp_link *link, const struct fault *why)
{
    if (link->down) return;
    link->down = true;
    if (link->events.on_down) link->events.on_down(link->arg, why);
}

void mcp_link_tell_stderr(struct mcp_link *link, str line)
{
    if (!link->down && link->events.on_stderr) link->events.on_stderr(link->arg, line);
}

void mcp_link_send(struct mcp_link *link, const struct mcp_post *post)
{
    link->ops->send(link, post);
}

void mcp_link_listen(struct mcp_link *link, const struct mcp_header *headers, size_t header_count)
{
    link->ops->listen(link, headers, header_count);
}

void mcp_link_forget(struct mcp_link *link, uint64_t request)
{
    link->ops->forget(link, request);
}

void mcp_link_close(struct mcp_link *link, const struct mcp_header *headers, size_t header_count)
{
    link->ops->close(link, headers, header_count);
}

void mcp_link_free(struct mcp_link *link)
{
    if (!link) return;
    assert(!link->freed);
    link->freed = link->down = true;
    link->ops->stop(link);
    if (!link->busy) link->ops->release(link);
}
