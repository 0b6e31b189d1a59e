/* SPDX-License-Identifier: Apache-2.0
 *
 * Both directions of a WebSocket as bytes, the server's side, without a socket: a client's bytes
 * become messages, and what has to be said to it is written to a buffer. The one place that knows
 * wslay.
 *
 * What a client does wrong, and its close frame, are answered here: then the close frame that it
 * deserves is in the buffer, and the conversation is over. The order of things is kept: a pong
 * stands behind what was written before its ping was fed.
 */
#ifndef NET_WS_FRAMES_H
#define NET_WS_FRAMES_H

#include "base/buf.h"
#include "net/ws_scan.h"

struct wslay_event_context;

enum ws_frames_event {
    WS_FRAMES_MORE, /* all bytes taken; feed more */
    WS_FRAMES_TEXT, /* a message: frames->text */
    WS_FRAMES_PING, /* answered */
    WS_FRAMES_PONG,
    WS_FRAMES_OVER, /* their close frame came, or their fault; ours is written, if it was not
                       before. Final */
};

enum { WS_HEADER_BYTES_MAX = 10 }; /* in front of a text of ours */

struct ws_frames {
    str text; /* UTF-8, whole; until the next call */

    /* State. */
    struct ws_scan scan;
    struct wslay_event_context *wslay; /* NULL while no message is under way */
    struct buf message;
    bool closed; /* our close frame is written */
    bool over;

    /* During a call. */
    str piece; /* what wslay has not taken yet */
    bool control;
    enum ws_frames_event event;
    struct buf *out;
};

void ws_frames_init(struct ws_frames *frames);
void ws_frames_done(struct ws_frames *frames);

/* Take bytes from the front of *input until something happened; go on until WS_FRAMES_MORE, which
 * also gives memory back. */
enum ws_frames_event ws_frames_feed(struct ws_frames *frames, str *input, struct buf *out);

/* Write a close frame, unless there was one. Nothing else of ours may follow it; feed on for
 * theirs. `why` has at most 123 bytes. */
void ws_frames_close(struct ws_frames *frames, unsigned code, str why, struct buf *out);

/* Frames of ours. */
void ws_frames_text(struct buf *out, str text);
void ws_frames_ping(struct buf *out);

#endif
