/* SPDX-License-Identifier: Apache-2.0
 *
 * A WebSocket (RFC 6455, version 13, no extensions) on a connection of the HTTP server; the frames
 * are wslay's work. Text messages only. On the loop thread.
 *
 * What a peer does wrong is answered here with the right close code and never reaches the owner:
 * framing (1002), binary (1003), broken UTF-8 (1007), too many fragments or pings (1008), too long
 * (1009). Pings are answered here, too; a peer that does not answer ours is dropped.
 */
#ifndef NET_WS_H
#define NET_WS_H

#include "net/http_server.h"

struct ws;

/* A callback may do anything to its own socket. */
struct ws_ops {
    void (*on_text)(void *arg, str text); /* one whole message, UTF-8; borrowed */
    void (*on_drain)(void *arg);          /* all that ws_send took has been written; may be NULL */
    void (*on_stop)(void *arg);  /* the server stops: the socket closes with 1012 by itself;
                                             on_close follows; may be NULL */
    void (*on_close)(void *arg); /* gone: the last call */
};

enum ws_code {
    WS_NORMAL = 1000,
    WS_POLICY = 1008,  /* not allowed (any more), or too much nonsense */
    WS_RESTART = 1012, /* the server stops */
    WS_LATER = 1013, /* too slow, or too much at once: connect again, go on behind the last event */
};

/* Answer a GET with the handshake, or with the refusal that it deserves (400, 426): then NULL, and
 * the request is gone either way. Bytes that came behind the head are the first frames. */
struct ws *ws_open(struct http_request *request, const struct ws_ops *ops, void *arg);

/* One text message, copied. False, and nothing is taken: WS_QUEUE_BYTES_MAX wait already. One is
 * always taken when none waits. */
bool ws_send(struct ws *ws, str text);

/* The owner keeps so many bytes more of what came. False: its user has no room for them. */
bool ws_keep(struct ws *ws, size_t bytes) MUST_USE;

/* The owner keeps nothing any more. */
void ws_keep_none(struct ws *ws);

/* Have all messages been written? */
bool ws_drained(const struct ws *ws);

/* Send what waits and a close frame, wait for the peer's a little, and go. No callback comes after
 * this. The reason is ASCII, at most 123 bytes. */
void ws_close(struct ws *ws, enum ws_code code, const char *reason);

#endif
