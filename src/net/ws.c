/* SPDX-License-Identifier: Apache-2.0
 *
 * WebSocket connections: the handshake, the life of a socket, its queue and its times. The frames
 * are made and read in ws_frames.c.
 *
 *          ws_close, stop                    their close frame, or WS_CLOSE_MS_MAX
 *    OPEN ────────────────▶ CLOSING ────────────────────────────────────────────▶ ENDING ──▶ gone
 *      │                                                                            ▲   all written
 *      └── their close frame, their fault, the end of their bytes ──────────────────┘
 *
 * 1. The owner hears nothing after OPEN but on_close, and that only if it did not close itself.
 * 2. What is to be sent is collected in `out` and leaves at the end of the turn in one write. What
 *    the kernel does not take moves to `sending`, which stays in place until it has gone.
 * 3. Bytes that come are read before the turn ends and never end a socket at once: that is left to
 *    `flush`, on_writable and on_quiet. So a callback may do anything to its socket.
 * 4. A client that does not read makes us keep one pong, the newest, and one close frame besides
 *    what ws_send takes.
 * 5. Between messages a socket owns this object and no buffer. A message that has begun counts as a
 *    body of its user, and so does what the owner keeps.
 */
#include "net/ws.h"

#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/mem.h"
#include "net/http_conn.h"
#include "net/http_int.h"
#include "net/ws_frames.h"

enum ws_state { WS_OPEN, WS_CLOSING, WS_ENDING };

struct ws {
    struct http_conn *conn;
    struct loop *loop;
    const struct ws_ops *ops;
    void *arg;
    enum ws_state state;
    bool waiting;    /* the socket has `sending` */
    bool owes_drain; /* a text waits, or was refused */
    bool pinged;     /* our ping of pinged_at has no answer yet */
    msec pinged_at;
    msec second; /* in which `pings` came */
    unsigned pings;
    struct buf out, sending;
    size_t pong_at, pong_len; /* in `out`; no length: none waits there */
    struct loop_defer flush;
    struct ws_frames frames;
    struct http_charge coming, kept; /* a message that is not complete; what the owner keeps */
};

static void ws_free(struct ws *ws)
{
    loop_defer_cancel(ws->loop, &ws->flush);
    ws_frames_done(&ws->frames);
    buf_done(&ws->out);
    buf_done(&ws->sending);
    charge_drop(&ws->coming);
    charge_drop(&ws->kept);
    free(ws);
}

/* ---- writing ---- */

static size_t queued(const struct ws *ws)
{
    return ws->out.len + ws->sending.len;
}

bool ws_drained(const struct ws *ws)
{
    return queued(ws) == 0;
}

/* Offer `out` to the socket. If that breaks the connection, on_closed follows. */
static void push(struct ws *ws)
{
    if (ws->waiting || !ws->out.len) return;
    str rest = buf_str(&ws->out);
    ptrdiff_t taken = http_stream_try(ws->conn, &rest, 1);
    if (taken < 0) return;
    rest = str_drop(rest, (size_t)taken);
    if (rest.len && !http_stream_wait(ws->conn, &rest, 1)) return; /* the 101 is on its way */
    ws->pong_len = 0;
    if (!rest.len) {
        buf_done(&ws->out);
        return;
    }
    ws->waiting = true;
    ws->sending = ws->out;
    buf_init(&ws->out, ws->sending.max);
    http_stream_hold(ws->conn, ws->sending.len);
}

/* All has been written, or not: what follows from that. May free the socket. */
static void settle(struct ws *ws)
{
    struct http_conn *conn = ws->conn;
    if (conn->state == CONN_CLOSED) return; /* broken; on_closed follows */
    if (!ws_drained(ws)) return;
    if (ws->state == WS_ENDING) {
        ws_free(ws);
        http_stream_end(conn);
    } else if (ws->state == WS_CLOSING) {
        http_stream_hurry(conn);
    } else if (ws->owes_drain) {
        ws->owes_drain = false;
        if (ws->ops->on_drain) ws->ops->on_drain(ws->arg);
    }
}

static void on_flush(struct loop_defer *defer)
{
    struct ws *ws = CONTAINER(defer, struct ws, flush);
    push(ws);
    settle(ws);
}

static void flush_soon(struct ws *ws)
{
    loop_defer(ws->loop, &ws->flush);
}

static void on_writable(void *arg)
{
    struct ws *ws = arg;
    ws->waiting = false;
    buf_done(&ws->sending);
    push(ws);
    settle(ws);
}

/* ---- the owner's side ---- */

bool ws_send(struct ws *ws, str text)
{
    assert(ws->state == WS_OPEN);
    size_t needed = text.len + WS_HEADER_BYTES_MAX;
    assert(needed <= ws->out.max);
    if (queued(ws) + needed > WS_QUEUE_BYTES_MAX) push(ws);
    ws->owes_drain = true;
    flush_soon(ws);
    if (!ws_drained(ws) && queued(ws) + needed > WS_QUEUE_BYTES_MAX) return false;
    ws_frames_text(&ws->out, text);
    return true;
}

static void close_with(struct ws *ws, unsigned code, const char *reason)
{
    ws_frames_close(&ws->frames, code, str_c(reason), &ws->out);
    ws->state = WS_CLOSING;
    flush_soon(ws);
}

void ws_close(struct ws *ws, enum ws_code code, const char *reason)
{
    assert(ws->state == WS_OPEN);
    close_with(ws, code, reason);
}

/* No more from them: write what waits, and go. */
static void ws_leave(struct ws *ws)
{
    bool told = ws->state != WS_OPEN;
    ws->state = WS_ENDING;
    flush_soon(ws);
    if (!told) ws->ops->on_close(ws->arg);
}

/* ---- reading ---- */

/* A pong was written behind `at`. To a client that does not read the newest is enough (RFC 6455,
 * 5.5.3). */
static void only_pong(struct ws *ws, size_t at)
{
    size_t len = ws->out.len - at;
    if (!len) return; /* not any more: we have said our last */
    if (ws->conn->writing && ws->pong_len) {
        char *old = ws->out.p + ws->pong_at;
        memmove(old, old + ws->pong_len, ws->out.len - ws->pong_at - ws->pong_len);
        ws->out.len -= ws->pong_len;
    }
    ws->pong_at = ws->out.len - len;
    ws->pong_len = len;
}

static void ws_take(struct ws *ws, enum ws_frames_event event)
{
    switch (event) {
    case WS_FRAMES_MORE:
        break;
    case WS_FRAMES_TEXT:
        if (ws->state == WS_OPEN) ws->ops->on_text(ws->arg, ws->frames.text);
        break;
    case WS_FRAMES_PING:
    case WS_FRAMES_PONG:
        if (event == WS_FRAMES_PONG) ws->pinged = false;
        msec second = loop_now(ws->loop) / 1000;
        if (second != ws->second) ws->pings = 0;
        ws->second = second;
        if (++ws->pings <= WS_PINGS_MAX) break; /* pongs that nobody asked for count, too */
        ws_frames_close(&ws->frames, WS_POLICY, STR("too many pings"), &ws->out);
        ws_leave(ws);
        break;
    case WS_FRAMES_OVER:
        ws_leave(ws);
        break;
    }
}

static bool charge(struct ws *ws, struct http_charge *charge, size_t bytes)
{
    return charge_take(charge, ws->conn->server->options.budget, POOL_BODIES, &ws->conn->account,
                       bytes);
}

static void on_bytes(void *arg, str bytes)
{
    struct ws *ws = arg;
    while (ws->state != WS_ENDING) {
        size_t before = ws->out.len;
        enum ws_frames_event event = ws_frames_feed(&ws->frames, &bytes, &ws->out);
        if (event == WS_FRAMES_TEXT) charge_drop(&ws->coming);
        if (event == WS_FRAMES_MORE) { /* is there room for what has come of a message? */
            size_t now = ws->frames.message.len;
            if (now <= ws->coming.bytes || charge(ws, &ws->coming, now - ws->coming.bytes)) break;
            ws_frames_close(&ws->frames, WS_LATER, STR("too much of what you send is under way"),
                            &ws->out);
            ws_leave(ws);
            break;
        }
        if (event == WS_FRAMES_PING) only_pong(ws, before);
        ws_take(ws, event);
    }
    if (ws->out.len) flush_soon(ws);
}

bool ws_keep(struct ws *ws, size_t bytes)
{
    return charge(ws, &ws->kept, bytes);
}

void ws_keep_none(struct ws *ws)
{
    charge_drop(&ws->kept);
}

static void on_end(void *arg)
{
    ws_leave(arg);
}

/* ---- times and ends ---- */

/* Nothing was written for a while: see whether they are there. Once closing: they had their time.
 */
static void on_quiet(void *arg)
{
    struct ws *ws = arg;
    msec now = loop_now(ws->loop);
    if (ws->state != WS_OPEN) {
        ws->state = WS_ENDING;
    } else if (ws->pinged && now - ws->pinged_at >= ws->conn->server->options.pong_ms) {
        conn_cut(ws->conn);
        return;
    } else {
        if (!ws->pinged) ws->pinged_at = now;
        ws->pinged = true;
        ws_frames_ping(&ws->out);
    }
    flush_soon(ws);
}

static void on_stop(void *arg)
{
    struct ws *ws = arg;
    if (ws->state == WS_OPEN && ws->ops->on_stop) ws->ops->on_stop(ws->arg);
    if (ws->state != WS_OPEN) return;
    close_with(ws, WS_RESTART, "the server stops");
    ws->ops->on_close(ws->arg);
}

static void on_closed(void *arg)
{
    struct ws *ws = arg;
    if (ws->state == WS_OPEN) ws->ops->on_close(ws->arg);
    ws_free(ws);
}

static const struct http_stream_ops stream_ops = {
    .on_writable = on_writable,
    .on_quiet = on_quiet,
    .on_stop = on_stop,
    .on_closed = on_closed,
    .on_bytes = on_bytes,
    .on_end = on_end,
};

/* ---- the handshake ---- */

/* The value of the one field of that name; {NULL, 0} if there is none, or more than one. */
static str field_once(const struct http_head *head, str name)
{
    str value = {NULL, 0};
    size_t count = 0;
    for (size_t i = 0; i < head->field_count; i++)
        if (str_eq_nocase(head->fields[i].name, name)) {
            value = head->fields[i].value;
            count++;
        }
    return count == 1 ? value : (str){NULL, 0};
}

/* 16 bytes as base64: 22 digits, the last of which has four bits to spare. */
static bool key_valid(str key)
{
    if (key.len != 24 || !str_ends(key, STR("=="))) return false;
    for (size_t i = 0; i < 22; i++) {
        char c = key.p[i];
        if (!char_is_alnum(c) && c != '+' && c != '/') return false;
    }
    return memchr("AQgw", key.p[21], 4);
}

static enum err check_handshake(const struct http_head *head, struct fault *reterr)
{
    bool upgrade = http_head_has_token(head, STR("Upgrade"), STR("websocket"));
    bool connection = http_head_has_token(head, STR("Connection"), STR("upgrade"));
    if (head->method != HTTP_GET || (!upgrade && !connection))
        return fault(reterr, ERR_UPGRADE_REQUIRED,
                     "this address speaks WebSocket: open it with a WebSocket client");
    if (!upgrade || !connection)
        return fault(reterr, ERR_BAD_REQUEST,
                     "a WebSocket handshake has Connection: Upgrade and Upgrade: websocket");
    if (head->minor == 0)
        return fault(reterr, ERR_BAD_REQUEST, "a WebSocket handshake needs HTTP/1.1");
    if (head->chunked || head->length)
        return fault(reterr, ERR_BAD_REQUEST, "a WebSocket handshake has no body");
    if (!str_eq(field_once(head, STR("Sec-WebSocket-Version")), STR("13")))
        return fault(reterr, ERR_UPGRADE_REQUIRED,
                     "Sec-WebSocket-Version must be 13, the version of RFC 6455");
    if (!key_valid(field_once(head, STR("Sec-WebSocket-Key"))))
        return fault(reterr, ERR_BAD_REQUEST,
                     "there must be one Sec-WebSocket-Key: 16 bytes in base64");
    return OK;
}

/* RFC 6455, 4.2.2: proof that the handshake was read by something that knows what it is. */
static void accept_key(str key, char out[static BASE64_BYTES(SHA1_BYTES)])
{
    struct buf both;
    unsigned char hash[SHA1_BYTES];
    buf_init(&both, 64);
    buf_append(&both, key);
    buf_append(&both, STR("258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
    crypto_sha1(buf_str(&both), hash);
    crypto_base64((str){(const char *)hash, sizeof hash}, out);
    buf_done(&both);
}

struct ws *ws_open(struct http_request *request, const struct ws_ops *ops, void *arg)
{
    struct http_conn *conn = conn_of(request);
    if (!conn) return NULL;
    const struct http_head *head = &conn->parser.head;
    struct fault why = {0};
    enum err e = conn->server->stopping ? ERR_SHUTTING_DOWN : check_handshake(head, &why);
    if (e) {
        static const struct http_field offer[] = {
            {STR("Upgrade"), STR("websocket")},
            {STR("Sec-WebSocket-Version"), STR("13")},
        };
        http_answer_error_with(request, e, &why, offer,
                               e == ERR_UPGRADE_REQUIRED ? COUNT(offer) : 0);
        return NULL;
    }
    char proof[BASE64_BYTES(SHA1_BYTES)];
    accept_key(field_once(head, STR("Sec-WebSocket-Key")), proof);
    const struct http_field fields[] = {
        {STR("Upgrade"), STR("websocket")},
        {STR("Sec-WebSocket-Accept"), str_c(proof)},
    };

    struct ws *ws = mem_new(sizeof *ws);
    *ws = (struct ws){.loop = conn->server->loop, .ops = ops, .arg = arg, .flush.fn = on_flush};
    buf_init(&ws->out, HTTP_ANSWER_BYTES_MAX);
    buf_init(&ws->sending, HTTP_ANSWER_BYTES_MAX);
    ws_frames_init(&ws->frames);
    ws->conn = http_upgrade(request, fields, COUNT(fields), &stream_ops, ws);
    return ws;
}
