/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of a WebSocket by wslay: a client's bytes become messages, what is said to it becomes
 * bytes; wslay stands between two buffers, with ws_scan.c in front of it.
 *
 *     bytes ─▶ ws_scan ─▶ wslay: unmasks, joins, checks UTF-8 ─▶ text
 *                │ fault        │ pongs, the answer to a close frame
 *                ▼              ▼
 *              close frame ───▶ out
 *
 * 1. wslay gets pieces that ws_scan found good: one header, one whole control frame, or bytes of
 *    one payload. So one piece ends at most one message, and wslay's own checks of headers, which
 *    come late and without a code, never answer.
 * 2. Its context, 9 KiB, exists while a message is under way and from our close frame on: then it
 *    remembers that ours was sent and answers nothing any more. In between it has nothing to
 *    remember.
 * 3. What wslay queues is written to `out` before a call returns.
 * 4. A message is kept in `message`, which grows with what has come and not with what a header
 *    promises (wslay's "no buffering").
 *
 * A frame of ours is its payload behind 2 to 10 bytes, so texts do not go through wslay, which
 * would copy them twice.
 */
#include "net/ws_frames.h"

#include <stdlib.h>
#include <string.h>
#include <wslay/wslay.h>

#include "base/limits.h"

/* ---- callbacks of wslay, each for one frames object ---- */

static ssize_t on_recv(wslay_event_context_ptr wslay, uint8_t *to, size_t room, int flags,
                       void *arg)
{
    (void)flags;
    struct ws_frames *frames = arg;
    size_t count = frames->piece.len < room ? frames->piece.len : room;
    if (!count) {
        wslay_event_set_error(wslay, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(to, frames->piece.p, count);
    frames->piece = str_drop(frames->piece, count);
    return (ssize_t)count;
}

static ssize_t on_send(wslay_event_context_ptr wslay, const uint8_t *bytes, size_t len, int flags,
                       void *arg)
{
    (void)wslay;
    (void)flags;
    struct ws_frames *frames = arg;
    buf_append(frames->out, (str){(const char *)bytes, len});
    return (ssize_t)len;
}

static void on_chunk(wslay_event_context_ptr wslay,
                     const struct wslay_event_on_frame_recv_chunk_arg *chunk, void *arg)
{
    (void)wslay;
    struct ws_frames *frames = arg;
    if (frames->control) return;
    buf_append(&frames->message, (str){(const char *)chunk->data, chunk->data_length});
}

static void on_message(wslay_event_context_ptr wslay,
                       const struct wslay_event_on_msg_recv_arg *message, void *arg)
{
    (void)wslay;
    struct ws_frames *frames = arg;
    switch (message->opcode) {
    case WSLAY_TEXT_FRAME:
        frames->event = WS_FRAMES_TEXT;
        break;
    case WSLAY_PING:
        frames->event = WS_FRAMES_PING;
        break;
    case WSLAY_PONG:
        frames->event = WS_FRAMES_PONG;
        break;
    default: /* a close frame: wslay stops reading */
        break;
    }
}

static wslay_event_context_ptr context(struct ws_frames *frames)
{
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = on_recv,
        .send_callback = on_send,
        .on_frame_recv_chunk_callback = on_chunk,
        .on_msg_recv_callback = on_message,
    };
    if (frames->wslay) return frames->wslay;
    if (wslay_event_context_server_init(&frames->wslay, &callbacks, frames)) abort();
    wslay_event_config_set_no_buffering(frames->wslay, 1);
    wslay_event_config_set_max_recv_msg_length(frames->wslay, WS_MESSAGE_BYTES_MAX);
    return frames->wslay;
}

static void context_drop(struct ws_frames *frames)
{
    wslay_event_context_free(frames->wslay);
    frames->wslay = NULL;
}

/* ---- reading ---- */

void ws_frames_init(struct ws_frames *frames)
{
    *frames = (struct ws_frames){0};
    ws_scan_init(&frames->scan);
    buf_init(&frames->message, WS_MESSAGE_BYTES_MAX);
}

void ws_frames_done(struct ws_frames *frames)
{
    context_drop(frames);
    buf_done(&frames->message);
}

/* One good piece through wslay. */
static enum ws_frames_event pass(struct ws_frames *frames, struct buf *out)
{
    wslay_event_context_ptr wslay = context(frames);
    frames->piece = frames->scan.piece;
    frames->event = WS_FRAMES_MORE;
    frames->out = out;
    int status = wslay_event_recv(wslay);
    if (status == WSLAY_ERR_NOMEM) abort();
    bool sent = wslay_event_send(wslay) == 0;
    frames->out = NULL;
    if (status == 0 && sent && wslay_event_get_read_enabled(wslay)) return frames->event;
    frames->closed = frames->over = true;
    return WS_FRAMES_OVER;
}

static str reason(enum ws_fault fault)
{
    switch (fault) {
    case WS_FAULT_FRAMING:
        return STR("malformed frame");
    case WS_FAULT_BINARY:
        return STR("binary message: send text");
    case WS_FAULT_TOO_MUCH:
        return STR("too many fragments");
    case WS_FAULT_TOO_LONG:
        return STR("message too long");
    }
    return STR_EMPTY;
}

enum ws_frames_event ws_frames_feed(struct ws_frames *frames, str *input, struct buf *out)
{
    if (frames->text.p) buf_done(&frames->message);
    frames->text = (str){NULL, 0};
    enum ws_frames_event event = frames->over ? WS_FRAMES_OVER : WS_FRAMES_MORE;
    while (event == WS_FRAMES_MORE) {
        enum ws_scan_event seen = ws_scan_feed(&frames->scan, input);
        if (seen == WS_SCAN_MORE) break;
        frames->control = seen == WS_SCAN_CONTROL;
        if (seen == WS_SCAN_BAD) {
            ws_frames_close(frames, frames->scan.fault, reason(frames->scan.fault), out);
            frames->over = true;
        }
        event = seen == WS_SCAN_BAD ? WS_FRAMES_OVER : pass(frames, out);
    }
    if (event == WS_FRAMES_MORE && ws_scan_rests(&frames->scan) && !frames->closed)
        context_drop(frames);
    if (event == WS_FRAMES_TEXT)
        frames->text = frames->message.len ? buf_str(&frames->message) : STR_EMPTY;
    return event;
}

/* ---- writing ---- */

void ws_frames_close(struct ws_frames *frames, unsigned code, str why, struct buf *out)
{
    if (frames->closed) return;
    wslay_event_context_ptr wslay = context(frames);
    frames->closed = true;
    frames->out = out;
    int status = wslay_event_queue_close(wslay, (uint16_t)code, (const uint8_t *)why.p, why.len);
    if (status == WSLAY_ERR_NOMEM) abort();
    assert(status == 0);
    status = wslay_event_send(wslay);
    assert(status == 0);
    frames->out = NULL;
}

void ws_frames_text(struct buf *out, str text)
{
    unsigned char head[WS_HEADER_BYTES_MAX] = {0x80 | WS_OP_TEXT};
    unsigned more = text.len < 126 ? 0 : text.len <= UINT16_MAX ? 2 : 8;
    head[1] = (unsigned char)(more == 0 ? text.len : more == 2 ? 126 : 127);
    for (unsigned i = 0; i < more; i++)
        head[2 + i] = (unsigned char)((uint64_t)text.len >> 8 * (more - 1 - i));
    buf_append(out, (str){(const char *)head, 2 + more});
    buf_append(out, text);
}

void ws_frames_ping(struct buf *out)
{
    static const char ping[] = {(char)(0x80 | WS_OP_PING), 0};
    buf_append(out, (str){ping, sizeof ping});
}
