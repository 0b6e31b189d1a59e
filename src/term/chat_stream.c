/* SPDX-License-Identifier: Apache-2.0
 *
 * The event stream of a conversation, over all cuts.
 *
 *     open ──200── reading ──cut── waiting ──time── open
 *       └──network─────────────────┘      └──4xx── refused, the end
 *
 * The server sends a comment at least every 15 seconds, so silence for longer than the client allows is a
 * cut, too. Waiting grows with each failure in a row, up to STREAM_WAIT_MS_MAX.
 */
#include "term/chat_stream.h"

#include <stdlib.h>

#include "base/limits.h"
#include "net/loop.h"
#include "net/sse_read.h"

enum { STREAM_WAIT_MS_MIN = 200, STREAM_WAIT_MS_MAX = 5000 };

struct stream {
    const struct link *link;
    struct client *client;
    const struct stream_ops *ops;
    void *arg;
    struct timer *again;
    struct client_request *request;
    struct sse_reader reader;
    int status;
    bool lost;   /* told so, and not back yet */
    bool closed; /* freed inside a callback */
    unsigned depth;
    msec wait;
    char *thread_id;
};

static void stream_open(struct stream *stream);

static void on_again(void *arg)
{
    stream_open(arg);
}

/* Callbacks may free us: the memory goes when the last of them has returned. */
static void leave(struct stream *stream)
{
    if (--stream->depth || !stream->closed) return;
    sse_reader_done(&stream->reader);
    free(stream->thread_id);
    free(stream);
}

static void retry(struct stream *stream)
{
    if (!stream->lost && !stream->closed) stream->ops->on_lost(stream->arg);
    stream->lost = true;
    if (stream->closed) return;
    timer_start(stream->again, stream->wait);
    stream->wait = stream->wait * 2 < STREAM_WAIT_MS_MAX ? stream->wait * 2 : STREAM_WAIT_MS_MAX;
}

static void on_head(void *arg, struct client_request *request, int status)
{
    struct stream *stream = arg;
    (void)request;
    stream->status = status;
    if (status != 200) return;
    stream->depth++;
    stream->lost = false;
    stream->wait = STREAM_WAIT_MS_MIN;
    stream->ops->on_open(stream->arg);
    leave(stream);
}

static bool on_event(void *arg, const struct sse_event *event)
{
    struct stream *stream = arg;
    stream->ops->on_event(stream->arg, event->data);
    return !stream->closed;
}

static void on_body(void *arg, str bytes)
{
    struct stream *stream = arg;
    if (stream->status != 200) return;
    stream->depth++;
    if (sse_read(&stream->reader, bytes, on_event, stream) && !stream->closed) {
        client_cancel(stream->request); /* an event larger than any of ours */
        stream->request = NULL;
        retry(stream);
    }
    leave(stream);
}

static void on_done(void *arg, enum err e, const struct fault *reason)
{
    struct stream *stream = arg;
    (void)reason;
    stream->request = NULL;
    if (e == ERR_CANCELLED) return;
    stream->depth++;
    int status = stream->status;
    bool refused = !e && status >= 400 && status < 500 && status != 429;
    if (refused)
        stream->ops->on_refused(stream->arg, status);
    else
        retry(stream);
    leave(stream);
}

static void stream_open(struct stream *stream)
{
    static const struct client_ops ops = {on_head, on_body, on_done};
    AUTO(arena_done) struct arena arena;
    struct client_header fields[LINK_FIELDS_MAX];
    arena_init(&arena);
    size_t count = link_fields(stream->link, fields);
    fields[count++] = (struct client_header){"Accept", "text/event-stream"};
    str path = arena_printf(&arena, "/api/v1/agent/runs/%s/events?after=%llu", stream->thread_id,
                            (unsigned long long)stream->ops->seq(stream->arg));
    stream->status = 0;
    sse_reader_done(&stream->reader);
    sse_reader_init(&stream->reader, TERM_EVENT_BYTES_MAX);
    stream->request =
        client_send(stream->client,
                    &(struct client_options){.url = link_url(stream->link, &arena, path),
                                             .unix_path = stream->link->socket,
                                             .headers = fields,
                                             .header_count = count,
                                             .body_bytes_max = UINT64_MAX},
                    &ops, stream);
}

struct stream *stream_new(const struct link *link, struct client *client, str thread_id,
                          const struct stream_ops *ops, void *arg)
{
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream) abort();
    stream->link = link;
    stream->client = client;
    stream->ops = ops;
    stream->arg = arg;
    stream->wait = STREAM_WAIT_MS_MIN;
    stream->again = timer_new(client_loop(client), on_again, stream);
    size_t size = 0;
    struct buf id;
    buf_init(&id, thread_id.len + 1);
    buf_append(&id, thread_id);
    buf_char(&id, 0);
    stream->thread_id = buf_take(&id, &size);
    sse_reader_init(&stream->reader, TERM_EVENT_BYTES_MAX);
    stream_open(stream);
    return stream;
}

void stream_free(struct stream *stream)
{
    if (!stream) return;
    stream->depth++;
    stream->closed = true;
    if (stream->request) client_cancel(stream->request);
    stream->request = NULL;
    timer_free(stream->again);
    leave(stream);
}
