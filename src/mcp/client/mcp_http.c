/* SPDX-License-Identifier: Apache-2.0
 *
 * A link to an MCP server by streamable HTTP: each message is a POST of its own, a standing stream (GET)
 * brings what belongs to no request, a DELETE is the farewell. The three are streams of one list; how
 * they go on and end is in mcp_stream.c.
 *
 * Invariants:
 * 1. Nothing is told from inside a function of the link: what is refused or lost at once has its `why`
 *    set, and waits for `later`.
 * 2. After close nothing is begun but the DELETE; on_down comes when that is over, or in `later`.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "mcp/client/mcp.h"
#include "mcp/client/mcp_http_int.h"
#include "net/http_client.h"

void mcp_http_down(struct http_link *h)
{
    struct fault why;
    fault(&why, ERR_CANCELLED, "the connection was closed by us");
    mcp_link_tell_down(&h->link, &why);
}

/* ---- what the owner asks ---- */

/* What could not be told from inside a function of the link. */
static void on_later(struct loop_defer *defer)
{
    struct http_link *h = CONTAINER(defer, struct http_link, later);
    mcp_link_enter(&h->link);
    if (!h->opened) {
        h->opened = true;
        mcp_link_tell_open(&h->link);
    }
    for (struct mcp_stream *at = h->streams.next; at != &h->streams && !h->link.down;) {
        if (at->why.err && at->kind == STREAM_POST) {
            mcp_stream_lose(at, &at->why);
            at = h->streams.next; /* the owner may have done anything */
        } else {
            at = at->next;
        }
    }
    if (h->down_due) mcp_http_down(h);
    mcp_link_leave(&h->link);
}

static void http_send(struct mcp_link *link, const struct mcp_post *post)
{
    struct http_link *h = CONTAINER(link, struct http_link, link);
    const char *refused = NULL;
    if (h->closing) refused = "the connection to the server is being closed";
    if (h->open_count >= MCP_OPEN_MAX) refused = "too many calls wait for the server";
    if (post->json.len > MCP_MESSAGE_BYTES_MAX) refused = "the message is too long for a server";
    struct mcp_stream *stream = mcp_stream_new(h, STREAM_POST, post->headers, post->header_count);
    stream->request = post->request;
    stream->quiet_ms = post->quiet_ms;
    if (refused) {
        fault(&stream->why, ERR_BUSY, "%s", refused);
        loop_defer(h->loop, &h->later);
        return;
    }
    mcp_stream_start(stream, "POST", post->json);
}

static void drop_kind(struct http_link *h, enum mcp_stream_kind kind)
{
    for (struct mcp_stream *at = h->streams.next, *next; at != &h->streams; at = next) {
        next = at->next;
        if (at->kind == kind) mcp_stream_drop(at);
    }
}

static void http_listen(struct mcp_link *link, const struct mcp_header *headers,
                        size_t header_count)
{
    struct http_link *h = CONTAINER(link, struct http_link, link);
    drop_kind(h, STREAM_LISTEN);
    if (h->closing) return;
    struct mcp_stream *stream = mcp_stream_new(h, STREAM_LISTEN, headers, header_count);
    stream->quiet_ms = MCP_LISTEN_QUIET_MS;
    mcp_stream_start(stream, "GET", STR_EMPTY);
}

static void http_forget(struct mcp_link *link, uint64_t request)
{
    struct http_link *h = CONTAINER(link, struct http_link, link);
    for (struct mcp_stream *at = h->streams.next; request && at != &h->streams; at = at->next) {
        if (at->kind != STREAM_POST || at->request != request) continue;
        mcp_stream_drop(at);
        return;
    }
}

/* Requests under way are told as lost by `later`; a STREAM_DELETE tells the end, else `later` does. */
static void http_close(struct mcp_link *link, const struct mcp_header *headers, size_t header_count)
{
    struct http_link *h = CONTAINER(link, struct http_link, link);
    if (h->closing) return;
    h->closing = true;
    drop_kind(h, STREAM_LISTEN);
    for (struct mcp_stream *at = h->streams.next; at != &h->streams; at = at->next)
        if (at->kind == STREAM_POST)
            fault(&at->why, ERR_CANCELLED, "the connection was closed by us");
    loop_defer(h->loop, &h->later);
    struct mcp_stream *stream = mcp_stream_new(h, STREAM_DELETE, headers, header_count);
    if (mcp_stream_has_session(stream)) {
        mcp_stream_start(stream, "DELETE", STR_EMPTY);
    } else {
        h->down_due = true;
        mcp_stream_drop(stream);
    }
}

static void http_stop(struct mcp_link *link)
{
    struct http_link *h = CONTAINER(link, struct http_link, link);
    loop_defer_cancel(h->loop, &h->later);
    while (h->streams.next != &h->streams) mcp_stream_drop(h->streams.next);
}

static void http_release(struct mcp_link *link)
{
    struct http_link *h = CONTAINER(link, struct http_link, link);
    arena_done(&h->arena);
    free(h);
}

static const struct mcp_link_ops http_ops = {.send = http_send,
                                             .listen = http_listen,
                                             .forget = http_forget,
                                             .close = http_close,
                                             .stop = http_stop,
                                             .release = http_release};

struct mcp_link *mcp_http_new(struct client *client, str url, const struct mcp_pair *headers,
                              size_t header_count, const struct mcp_link_events *events, void *arg)
{
    struct http_link *h = calloc(1, sizeof *h);
    if (!h) abort();
    mcp_link_init(&h->link, &http_ops, events, arg);
    h->client = client;
    h->loop = client_loop(client);
    h->later.fn = on_later;
    h->streams.prev = h->streams.next = &h->streams;
    arena_init(&h->arena);
    h->url = arena_cstr(&h->arena, url);
    h->headers = arena_array(&h->arena, header_count + 1, sizeof *h->headers);
    h->header_count = header_count;
    for (size_t i = 0; i < header_count; i++)
        h->headers[i] = (struct mcp_header){arena_str(&h->arena, headers[i].name),
                                            arena_str(&h->arena, headers[i].value)};
    loop_defer(h->loop, &h->later);
    return &h->link;
}
