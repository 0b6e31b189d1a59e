/* SPDX-License-Identifier: Apache-2.0
 *
 * Server-sent events: a log of shared bytes, and streams that are cursors into it.
 *
 * A frame is encoded once and appended to an sse_log; every stream that follows the log writes from
 * those same bytes, as many frames in one system call as the socket takes. Nothing is queued for a
 * slow reader: it holds its place, and if the log has meanwhile dropped that place, on_lag tells
 * the owner to catch it up. A reader that takes no byte for the stall time is cut.
 *
 * Frames are kept in the log with the chunk framing of HTTP/1.1 around them; for an HTTP/1.0 client
 * the framing is left out while writing.
 */
#ifndef NET_SSE_H
#define NET_SSE_H

#include "net/http_server.h"

struct sse_log;
struct sse_stream;

/* bytes_max: what the log keeps in memory at least; older segments are dropped. */
struct sse_log *sse_log_new(struct loop *loop, size_t bytes_max);
void sse_log_free(struct sse_log *log); /* its streams are detached and stay open */

/* Append one frame ("id: 1\nevent: x\ndata: {}\n\n"). Its readers are served at the end of this
 * turn. */
void sse_log_append(struct sse_log *log, str frame);

/* The place behind the last frame. */
uint64_t sse_log_end(const struct sse_log *log);

/* A callback may do anything to its own stream, nothing to others of the same log. */
struct sse_ops {
    void (*on_lag)(void *arg);   /* its place has left the log; it is detached now */
    void (*on_drain)(void *arg); /* what sse_send took has all been written; may be NULL */
    void (*on_until)(void *arg); /* it has the log up to where sse_until said; it is detached now */
    void (*on_stop)(void *arg);  /* the server stops: say the last words and sse_close, now or soon.
                                    NULL: it is ended at once, behind on_close */
    void (*on_close)(void *arg); /* the client has gone or was cut: the stream is gone after this */
};

/* Answer a request with an open event stream; NULL (and the request is gone) if its client has
 * left, or asked with HEAD and has its answer. */
struct sse_stream *sse_open(struct http_request *request, const struct http_field *fields,
                            size_t field_count, const struct sse_ops *ops, void *arg);

/* Bytes for this reader alone (the suffix it missed), copied; false when there is no room behind
 * those that wait, SSE_PRIVATE_BYTES_MAX at most: go on after on_drain. One frame is always taken
 * when none waits. on_drain may come before this returns. */
bool sse_send(struct sse_stream *stream, str frame);

/* The same, written at the end of this turn, together with what the log has for it then. */
bool sse_send_soon(struct sse_stream *stream, str frame);

/* Follow the log from `place` on, after what sse_send took has gone. on_lag if the place is not
 * there. */
void sse_follow(struct sse_stream *stream, struct sse_log *log, uint64_t place);

/* Follow the log no further than this place, which it has not passed: then on_until, once, at a
 * later time. For streams whose ops have it. */
void sse_until(struct sse_stream *stream, uint64_t place);

/* A stream's place in the log it follows, or followed until on_lag. */
uint64_t sse_place(const struct sse_stream *stream);

/* Has everything that sse_send took been written? */
bool sse_drained(const struct sse_stream *stream);

/* End the stream in good order, once its reader has what the log holds now. No callback comes after
 * this. */
void sse_close(struct sse_stream *stream);

/* Break the stream off behind what sse_send took, so that the client can tell. No callback comes
 * after this. */
void sse_cut(struct sse_stream *stream);

#endif
