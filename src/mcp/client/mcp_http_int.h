/* SPDX-License-Identifier: Apache-2.0
 *
 * What a link by HTTP (mcp_http.c) and its streams (mcp_stream.c) know of each other; for these two
 * only. A stream is one message of ours until its end, the standing stream, or the farewell.
 */
#ifndef MCP_CLIENT_MCP_HTTP_INT_H
#define MCP_CLIENT_MCP_HTTP_INT_H

#include "base/arena.h"
#include "mcp/client/mcp_frame.h"
#include "mcp/client/mcp_link_int.h"
#include "net/loop.h"
#include "net/sse_read.h"

struct client_request;

enum mcp_stream_kind { STREAM_POST, STREAM_LISTEN, STREAM_DELETE };

/* What an answer's body is, by its head. */
enum mcp_stream_body { BODY_NONE, BODY_MESSAGE, BODY_EVENTS, BODY_REFUSAL };

struct mcp_stream {
    struct mcp_stream *prev, *next;
    struct http_link *owner;
    enum mcp_stream_kind kind;
    uint64_t request;
    struct arena arena; /* its headers */
    struct mcp_header *headers;
    size_t header_count;
    msec quiet_ms;

    struct client_request *http; /* NULL: resting */
    bool resuming;               /* a GET for the rest of a POST's stream */
    int status;                  /* of the answer; 0: none yet */
    enum mcp_stream_body body;
    struct mcp_frame frame;   /* a message, and the event that is looked at */
    struct buf refusal;       /* full: it is too long to be looked at */
    struct sse_reader events; /* of the standing stream, or of the way to an answer */
    struct buf last_id;       /* of them */
    unsigned tries;           /* in a row, to get the stream again */
    struct timer *rest;       /* before the next */
    msec began;               /* the last try */
    struct fault why;         /* it is to be told as lost, by the link's `later` */
    unsigned busy;
    bool dropped;
};

struct http_link {
    struct mcp_link link;
    struct client *client;
    struct loop *loop;
    struct arena arena;
    char *url;
    struct mcp_header *headers; /* the configured ones */
    size_t header_count;
    struct mcp_stream streams; /* head of the list */
    size_t open_count;         /* POSTs */
    struct loop_defer later;
    bool opened, closing, down_due;
};

struct mcp_stream *mcp_stream_new(struct http_link *link, enum mcp_stream_kind kind,
                                  const struct mcp_header *headers, size_t header_count);
void mcp_stream_start(struct mcp_stream *stream, const char *method, str json);
bool mcp_stream_has_session(const struct mcp_stream *stream); /* in its headers */

/* Nothing comes from it any more. Its memory stays while one of its handlers runs. */
void mcp_stream_drop(struct mcp_stream *stream);

/* Drop it and tell; `loss` as far as anybody knows: what was surely not sent is MCP_AWAY. */
void mcp_stream_lose(struct mcp_stream *stream, const struct fault *why);

void mcp_http_down(struct http_link *link); /* tell it: the farewell is over */

#endif
