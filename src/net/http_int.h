/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside net/ only: what a long answer (an event stream), or another protocol after an upgrade,
 * needs of its connection.
 *
 * A stream writes with http_stream_try; when the socket took less than it was given,
 * http_stream_wait hands over the rest, which must stay in place until on_writable. The connection
 * watches the two times: waiting too long for a reader cuts it, and a quiet stream gets on_quiet
 * every SSE_KEEPALIVE_MS.
 */
#ifndef NET_HTTP_INT_H
#define NET_HTTP_INT_H

#include "net/http_server.h"

struct http_stream_ops {
    bool finite; /* it comes to an end by itself: a client that sends no more still gets it */
    void (*on_writable)(void *arg); /* what http_stream_wait got has gone */
    void (*on_quiet)(void *arg);    /* nothing written for a while: send a sign of life */
    void (*on_stop)(void *arg);     /* the server stops: end the stream */
    void (*on_closed)(void *arg);   /* the connection has gone; last call */
    /* The end of a turn, asked for with http_stream_soon. Who has it writes the head, too, then or
     * with http_stream_flush; may be NULL. */
    void (*on_turn)(void *arg);

    /* After an upgrade only. Neither comes from inside a function of this header. */
    void (*on_bytes)(void *arg, str bytes); /* borrowed until it returns */
    void (*on_end)(void *arg); /* the client sends no more, and may still read: end the stream */
};

/* Send the head of a streamed answer. NULL, and the request is gone, if its client has left or,
 * with HEAD, has all it wants. *ret_framed tells whether the bytes of the body need chunk framing
 * (HTTP/1.1) or none (1.0). */
struct http_conn *http_stream(struct http_request *request, const struct http_field *fields,
                              size_t field_count, const struct http_stream_ops *ops, void *arg,
                              bool *ret_framed);

/* Send the head of a 101: behind it the connection carries another protocol, both ways, and no time
 * limit of requests applies. `fields` has Connection and Upgrade. The head of the request must be
 * that of an HTTP/1.1 GET without a body. NULL, and the request is gone, if its client has left. */
struct http_conn *http_upgrade(struct http_request *request, const struct http_field *fields,
                               size_t field_count, const struct http_stream_ops *ops, void *arg);

/* on_quiet comes after WS_CLOSE_MS_MAX already, unless something is written before. */
void http_stream_hurry(struct http_conn *conn);

/* on_turn comes at the end of this turn; for the first time by itself, behind the head. */
void http_stream_soon(struct http_conn *conn);

/* Gather a short piece: it goes with the next write, which is http_stream_flush at the latest.
 * False: there is no room, write it. */
bool http_stream_gather(struct http_conn *conn, str piece);

/* Write what was gathered. True: some of it waits for the reader, and on_writable follows. */
bool http_stream_flush(struct http_conn *conn);

/* Bytes taken, or -1 when the connection broke: on_closed follows at the end of the turn. */
ptrdiff_t http_stream_try(struct http_conn *conn, const str *pieces, size_t count);

/* Hand over what http_stream_try did not take. False: not now, try again at on_writable (the head
 * of the answer is still on its way) or never (the connection broke). */
bool http_stream_wait(struct http_conn *conn, const str *pieces, size_t count);

/* What http_stream_wait got is this reader's alone, and counts as that. One beyond its share breaks
 * the connection. */
void http_stream_hold(struct http_conn *conn, size_t bytes);

/* End the answer: the last chunk, then the next request or the end of the connection; after an
 * upgrade always its end. No callbacks after. */
void http_stream_end(struct http_conn *conn);

/* Break the answer off, so that the client sees that it is not whole. No callbacks after. */
void http_stream_cut(struct http_conn *conn);

#endif
