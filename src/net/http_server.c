/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/1.1 connections around the parser of http1.c: a connection's life and reading half, its
 * states and time limits.
 *
 *          first byte       head            end               answer
 *   IDLE ─────────────▶ HEAD ────▶ BODY ───────────▶ HANDLING ────────▶ FLUSHING
 *    ▲                   │ refused  │ refused          │ http_stream     │     │
 *    │                   ▼          ▼                  ▼                 │     │ close wanted
 *    │              FLUSHING, then close             STREAM ── end ──────┘     ▼
 *    └────────────────────── all written, kept alive ────────────────┘      LINGER ─▶ gone
 *
 * A streamed body is read while the handler has its request:
 *
 *              head                http_body_take            end, or it broke off
 *        HEAD ────────▶ HANDLING ──────────────────▶ TAKING ──────────────────────▶ HANDLING
 *
 * After http_upgrade it stays in STREAM until it ends: bytes go to the stream as they come, first
 * those that came behind the head.
 *
 * Invariants:
 * 1. One request of a connection is with the handler at a time; bytes behind it wait in `ahead`, at
 *    most what one read brought, and reading stops until they are used.
 * 2. Each connection is in at most one deadline list: that of its unwritten bytes, else of its
 *    state.
 * 3. Answers are built in `out`, borrowed from the server's spare buffer, so an idle connection
 *    owns no memory but itself. What the socket does not take at once moves to `sending` and stays
 *    in place there.
 * 4. A request with the handler knows its connection, and the connection its request; whichever
 *    goes first clears the other's pointer.
 * 5. After a refusal the connection is never parsed again: it is written out, shut down, and read
 *    on and thrown away for a while, so that no reset eats the answer.
 * 6. A connection is never freed while its own code is on the stack: conn_close marks and unlinks
 *    it, and it is freed, and its stream told, at the end of the turn.
 * 7. A handler is called from a read or from the end of a turn, never from inside another handler's
 *    answer or another stream's end.
 * 8. A streamed body is read from the socket in TAKING only, and not while it is paused. Until it
 *    was read to its end its request is `open`: the answer is the last on the connection, and
 *    leaves as a refusal does.
 */
#include "net/http_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/mem.h"
#include "net/http_conn.h"
#include "net/http_int.h"

/* Unwritten bytes have their own limit (invariant 2), whatever else happens on the connection. */
void conn_wait(struct http_conn *conn, enum span span)
{
    if (conn->writing && span != SPAN_STALL) return;
    deadline_set(&conn->server->deadlines[span], &conn->deadline);
}

void conn_wait_not(struct http_conn *conn)
{
    if (!conn->writing) deadline_clear(&conn->deadline);
}

/* Is part of a request being read? */
bool conn_reads(const struct http_conn *conn)
{
    return conn->state == CONN_IDLE || conn->state == CONN_HEAD || conn->state == CONN_BODY ||
           conn->state == CONN_TAKING;
}

/* And may more of it be parsed now? */
static bool conn_takes(const struct http_conn *conn)
{
    return conn_reads(conn) && !(conn->state == CONN_TAKING && conn->request->paused);
}

/* Does it carry another protocol? */
static bool conn_raw(const struct http_conn *conn)
{
    return conn->state == CONN_STREAM && conn->stream->on_bytes;
}

/* ---- birth and death ---- */

void request_free(struct request *request)
{
    if (!request) return;
    loop_defer_cancel(request->loop, &request->tell);
    charge_drop(&request->charge);
    arena_done(&request->public.arena);
    buf_done(&request->body);
    free(request);
}

/* The head and the peer are the connection's. They are taken away from every request whose handler
 * waits, and not only when its client goes: whoever reads them late finds out with the first request. */
static void head_end(struct request *request)
{
    request->public.head = NULL;
    request->public.peer = NULL;
}

/* The handler has it: it stays alive, without a connection. Otherwise it goes. */
static void request_leave(struct http_conn *conn)
{
    struct request *request = TAKE(conn->request);
    if (!request) return;
    request->public.conn = NULL;
    head_end(request);
    if (request->public.gone) atomic_store(request->public.gone, true);
    if (conn->state == CONN_TAKING)
        body_break(request, ERR_NETWORK);
    else if (conn->state != CONN_HANDLING)
        request_free(request);
}

static void http_server_reap(struct loop_defer *defer)
{
    struct http_server *server = CONTAINER(defer, struct http_server, reap);
    while (server->dead) {
        struct http_conn *conn = server->dead;
        server->dead = conn->next;
        const struct http_stream_ops *stream = conn->stream;
        void *arg = conn->stream_arg;
        free(conn);
        if (stream) stream->on_closed(arg);
    }
    if (!server->stopping || server->conn_count) return;
    timer_free(server->stop_timer);
    server->stop_timer = NULL;
    void (*on_stopped)(void *arg) = TAKE(server->on_stopped);
    if (on_stopped) on_stopped(server->on_stopped_arg);
}

/* Gone at once, whatever the state; the memory stays until the end of this turn. */
void conn_close(struct http_conn *conn)
{
    if (conn->state == CONN_CLOSED) return;
    struct http_server *server = conn->server;
    deadline_clear(&conn->deadline);
    loop_defer_cancel(server->loop, &conn->resume);
    loop_defer_cancel(server->loop, &conn->turn);
    request_leave(conn);
    conn_uncount(conn);
    charge_drop(&conn->unsent);
    conn->state = CONN_CLOSED;
    sock_close(conn->sock);
    http1_done(&conn->parser);
    buf_done(&conn->ahead);
    buf_done(&conn->sending);
    conn_return_buf(server, &conn->out);

    *(conn->prev ? &conn->prev->next : &server->conns) = conn->next;
    if (conn->next) conn->next->prev = conn->prev;
    server->conn_count--;
    conn->next = server->dead;
    server->dead = conn;
    loop_defer(server->loop, &server->reap);
}

/* A reader that does not read: drop what the kernel still holds for it, too. */
void conn_cut(struct http_conn *conn)
{
    if (conn->state != CONN_CLOSED) sock_reset(conn->sock);
    conn_close(conn);
}

/* Everything is written and nothing more will come from us: say so, then read on for a moment. */
void conn_linger(struct http_conn *conn)
{
    conn->state = CONN_LINGER;
    buf_done(&conn->ahead);
    if (conn->peer_ended) {
        conn_close(conn);
        return;
    }
    conn->began = loop_now(conn->server->loop);
    sock_shutdown(conn->sock);
    sock_read_start(conn->sock);
    conn_wait(conn, SPAN_LINGER);
}

/* Go on with requests that waited behind an answer, or with a body that is taken again; at the end
 * of the turn (invariant 7). A body may have come to its end without another byte. */
static void resume(struct loop_defer *defer)
{
    struct http_conn *conn = CONTAINER(defer, struct http_conn, resume);
    if (conn_raw(conn)) { /* what came behind the head of an upgraded connection, and its end */
        struct buf waited = conn->ahead;
        buf_init(&conn->ahead, waited.max);
        if (!conn->peer_ended) sock_read_start(conn->sock);
        if (waited.len) conn->stream->on_bytes(conn->stream_arg, buf_str(&waited));
        buf_done(&waited);
        if (conn->peer_ended && conn_raw(conn)) conn->stream->on_end(conn->stream_arg);
    }
    if (!conn_takes(conn)) return;
    if (conn->state == CONN_TAKING) sock_read_start(conn->sock);
    if (conn->state == CONN_TAKING || conn->ahead.len) conn_process(conn, STR_EMPTY);
}

void conn_resume(struct http_conn *conn)
{
    conn->resume.fn = resume;
    loop_defer(conn->server->loop, &conn->resume);
}

/* ---- reading ---- */

/* The body is there, or waits to be taken. */
static void on_request(struct http_conn *conn)
{
    struct http_server *server = conn->server;
    conn_wait_not(conn);
    conn->state = CONN_HANDLING;
    conn->request->public.body = buf_str(&conn->request->body);
    server->options.handler->on_request(server->options.ctx, &conn->request->public);
    if (conn->request) head_end(conn->request);
}

static void on_head(struct http_conn *conn)
{
    struct http_server *server = conn->server;
    const struct http_head *head = &conn->parser.head;
    conn_idle_over(conn);
    conn->keep_alive = head->keep_alive;
    conn->head_only = head->method == HTTP_HEAD;

    struct request *request = mem_new(sizeof *request);
    conn->request = request;
    request->loop = server->loop;
    request->public.head = head;
    request->public.peer = sock_peer(conn->sock);
    request->public.peer_loopback = sock_peer_loopback(conn->sock);
    request->public.conn = conn;
    arena_init(&request->public.arena);
    snprintf(request->public.id, sizeof request->public.id, "%s-%llx", server->id_prefix,
             (unsigned long long)++server->requests);

    uint64_t body_max = 0;
    struct fault why = {0};
    enum err e =
        server->options.handler->on_head(server->options.ctx, &request->public, &body_max, &why);
    bool body_comes = head->chunked || head->length > 0;
    if (!e) e = conn_count_for(conn, &request->public.account, &why);
    buf_init(&request->body, body_max < SIZE_MAX ? (size_t)body_max : SIZE_MAX);
    if (!e && body_comes) e = conn_body_charge(conn, &why);
    if (e) {
        conn_refuse(conn, e, &why, body_comes);
        return;
    }
    http1_body_max(&conn->parser, body_max);
    if (request->public.body_streamed) {
        request->open = body_comes;
        if (body_comes) sock_read_stop(conn->sock); /* until it is taken */
        on_request(conn);
        return;
    }
    conn->state = CONN_BODY;
    pace_begin(&request->pace, loop_now(server->loop));
    if (!body_comes) return;
    conn_wait(conn, SPAN_BODY);
    conn_continue(conn);
}

static void on_body(struct http_conn *conn)
{
    if (conn_body_slow(conn)) {
        conn_refuse(conn, ERR_TIMEOUT, NULL, true);
        return;
    }
    if (!conn_body_room(conn)) {
        conn_refuse(conn, ERR_RATE_LIMITED, NULL, true);
        return;
    }
    if (!conn->request->public.body_ignored) buf_append(&conn->request->body, conn->parser.piece);
    conn_wait(conn, SPAN_BODY);
}

static void on_refused(struct http_conn *conn)
{
    struct fault why;
    enum err e = fault(&why, conn->parser.error, "%s", conn->parser.reason);
    conn->keep_alive = false;
    conn_refuse(conn, e, &why, true);
}

/* Parse and answer until the bytes are used up or the connection waits for something. */
static void conn_parse(struct http_conn *conn, str *input)
{
    while (conn_takes(conn)) {
        bool taking = conn->state == CONN_TAKING;
        switch (http1_feed(&conn->parser, input)) {
        case HTTP1_MORE:
            if (conn->state == CONN_IDLE && http1_started(&conn->parser)) {
                conn->state = CONN_HEAD;
                conn_wait(conn, SPAN_HEAD);
            }
            return;
        case HTTP1_HEAD:
            on_head(conn);
            break;
        case HTTP1_BODY:
            (taking ? conn_body_piece : on_body)(conn);
            break;
        case HTTP1_END:
            (taking ? conn_body_end : on_request)(conn);
            break;
        case HTTP1_ERROR:
            if (taking)
                conn_body_break(conn, conn->parser.error);
            else
                on_refused(conn);
            break;
        }
    }
}

/* Go on with the bytes that waited, or with new ones. Answers made on the way leave in one write.
 */
void conn_process(struct http_conn *conn, str input)
{
    struct buf waited = conn->ahead;
    buf_init(&conn->ahead, waited.max);
    if (waited.len) input = buf_str(&waited);

    conn->processing = true;
    conn_parse(conn, &input);
    conn->processing = false;
    bool later = conn->state == CONN_CLOSED || conn->turn.queued; /* a stream's head waits for it */
    if (conn->out.len && !later) conn_flush(conn);

    bool keep = conn->state == CONN_HANDLING || conn->state == CONN_TAKING ||
                conn->state == CONN_FLUSHING || conn->state == CONN_STREAM;
    if (keep && input.len) {
        buf_append(&conn->ahead, input);
        sock_read_stop(conn->sock);
    }
    buf_done(&waited);
}

static void on_read(void *arg, str bytes)
{
    struct http_conn *conn = arg;
    if (conn_takes(conn)) {
        conn_process(conn, bytes);
    } else if (conn_raw(conn)) {
        conn->stream->on_bytes(conn->stream_arg, bytes);
    } else if (conn->state == CONN_LINGER) {
        bool patient = loop_now(conn->server->loop) - conn->began < HTTP_LINGER_TOTAL_MS_MAX;
        if (patient)
            conn_wait(conn, SPAN_LINGER);
        else
            conn_close(conn);
    } else {
        buf_append(&conn->ahead, bytes);
        sock_read_stop(conn->sock);
        if (conn->ahead.full) conn_close(conn); /* a broken stream that still sends */
    }
}

/* The peer sends no more. A request it sent whole is still answered, unless the connection broke.
 */
static void on_end(void *arg, bool clean)
{
    struct http_conn *conn = arg;
    conn->peer_ended = true;
    if (clean && conn_raw(conn)) {
        conn->stream->on_end(conn->stream_arg);
        return;
    }
    bool answering = conn->state == CONN_HANDLING || conn->state == CONN_FLUSHING ||
                     conn->out.len || conn->writing;
    if (conn->state == CONN_STREAM) answering = conn->stream->finite;
    if (!clean || !answering) conn_close(conn);
}

static void on_deadline(struct deadline *deadline)
{
    struct http_conn *conn = CONTAINER(deadline, struct http_conn, deadline);
    if (conn->writing) { /* bytes wait for the reader: has it taken enough of late? */
        const struct http_server *server = conn->server;
        size_t pending = sock_pending(conn->sock);
        size_t taken = pending < conn->pending ? conn->pending - pending : 0;
        pace_count(&conn->pace, loop_now(server->loop), server->stall_ms, taken);
        conn->pending = pending;
        if (pace_slow(&conn->pace, server->stall_ms, HTTP_READ_RATE_MIN))
            conn_cut(conn);
        else
            conn_wait(conn, SPAN_STALL);
        return;
    }
    switch (conn->state) {
    case CONN_HEAD:
    case CONN_BODY:
        conn->keep_alive = false;
        conn_refuse(conn, ERR_TIMEOUT, NULL, true);
        break;
    case CONN_TAKING:
        conn_body_break(conn, ERR_TIMEOUT);
        break;
    case CONN_STREAM:
        conn_wait(conn, SPAN_QUIET);
        conn->stream->on_quiet(conn->stream_arg);
        break;
    default:
        conn_close(conn);
    }
}

static const struct sock_ops conn_ops = {
    .on_read = on_read, .on_end = on_end, .on_writable = conn_on_writable};

void http_server_accept(void *arg, struct sock *sock)
{
    struct http_server *server = arg;
    struct http_conn *conn = mem_new(sizeof *conn);
    conn->server = server;
    conn->sock = sock;
    if (server->stopping || !conn_admit(server, sock, conn)) {
        static const str answer = STR("HTTP/1.1 429 Too many requests\r\nRetry-After: 1\r\n"
                                      "Content-Length: 0\r\nConnection: close\r\n\r\n");
        free(conn);
        (void)sock_try(sock, &answer, 1); /* one attempt to say so */
        sock_close(sock);
        return;
    }
    http1_init(&conn->parser);
    buf_init(&conn->out, HTTP_ANSWER_BYTES_MAX);
    buf_init(&conn->sending, HTTP_ANSWER_BYTES_MAX);
    buf_init(&conn->ahead, HTTP_AHEAD_BYTES_MAX);
    conn->next = server->conns;
    if (conn->next) conn->next->prev = conn;
    server->conns = conn;
    server->conn_count++;
    sock_setup(sock, &conn_ops, conn);
    conn_wait(conn, SPAN_HEAD); /* a caller who says nothing is not kept for long */
    conn_idle(conn);
    sock_read_start(sock);
}

/* ---- the server ---- */

static msec or_default(msec given, msec normal)
{
    return given ? given : normal;
}

struct http_server *http_server_new(struct loop *loop, const struct http_server_options *options)
{
    struct http_server *server = mem_new(sizeof *server);
    server->loop = loop;
    server->options = *options;
    server->options.pong_ms = or_default(options->pong_ms, WS_PONG_MS_MAX);
    http_budget_ref(options->budget);
    shares_init(&server->by_address, UINT64_MAX, options->connections_address_max,
                options->connections_max);
    shares_init(&server->by_user, UINT64_MAX,
                options->connections_user_max ? options->connections_user_max : UINT64_MAX,
                options->connections_max);
    server->room_idle_ms = HTTP_ROOM_IDLE_MS_MIN;
    server->date_at = -1;
    server->reap.fn = http_server_reap;
    buf_init(&server->spare, HTTP_ANSWER_BYTES_MAX);
    unsigned char random[4];
    crypto_random(random, sizeof random);
    crypto_hex((str){(char *)random, sizeof random}, server->id_prefix);

    server->stall_ms = or_default(options->stall_ms, HTTP_WRITE_STALL_MS_MAX);
    const msec spans[SPAN_COUNT] = {
        [SPAN_HEAD] = or_default(options->head_ms, HTTP_HEAD_MS_MAX),
        [SPAN_BODY] = or_default(options->body_idle_ms, HTTP_BODY_IDLE_MS_MAX),
        [SPAN_IDLE] = or_default(options->idle_ms, HTTP_IDLE_MS_MAX),
        [SPAN_STALL] = server->stall_ms >= PACE_PARTS ? server->stall_ms / PACE_PARTS : 1,
        [SPAN_LINGER] = HTTP_LINGER_MS_MAX,
        [SPAN_QUIET] = or_default(options->quiet_ms, SSE_KEEPALIVE_MS),
        [SPAN_CLOSE] = WS_CLOSE_MS_MAX,
    };
    for (int i = 0; i < SPAN_COUNT; i++)
        deadlines_init(&server->deadlines[i], loop, spans[i], on_deadline);
    return server;
}

static void on_stop_timeout(void *arg)
{
    struct http_server *server = arg;
    for (struct http_conn *conn = server->conns, *next; conn; conn = next) {
        next = conn->next;
        conn_close(conn);
    }
}

void http_server_stop(struct http_server *server, void (*on_stopped)(void *arg), void *arg)
{
    assert(!server->stopping);
    server->stopping = true;
    server->on_stopped = on_stopped;
    server->on_stopped_arg = arg;
    server->stop_timer = timer_new(server->loop, on_stop_timeout, server);
    timer_start(server->stop_timer, SHUTDOWN_MS_MAX);
    for (struct http_conn *conn = server->conns, *next; conn; conn = next) {
        next = conn->next; /* closing unlinks only this one */
        if (conn->state == CONN_STREAM) {
            conn->stream->on_stop(conn->stream_arg);
        } else if (conn->state == CONN_TAKING) {
            conn_body_break(conn, ERR_SHUTTING_DOWN);
        } else if (conn->state == CONN_IDLE || conn->state == CONN_HEAD) {
            conn->keep_alive = false; /* answers that are collected are still written */
            if (conn->writing)
                conn->state = CONN_FLUSHING;
            else
                conn_close(conn);
        }
    }
    loop_defer(server->loop, &server->reap);
}

void http_server_free(struct http_server *server)
{
    if (!server) return;
    /* The loop may never turn again: whoever takes a body hears now that it broke off. */
    for (struct http_conn *conn = server->conns, *next; conn; conn = next) {
        next = conn->next;
        if (conn->state == CONN_TAKING) conn_body_break(conn, ERR_SHUTTING_DOWN);
        if (conn->request) body_tell(conn->request);
    }
    on_stop_timeout(server);
    loop_defer_cancel(server->loop, &server->reap);
    server->stopping = false;
    http_server_reap(&server->reap);
    for (int i = 0; i < SPAN_COUNT; i++) deadlines_done(&server->deadlines[i]);
    timer_free(server->stop_timer);
    buf_done(&server->spare);
    shares_done(&server->by_address);
    shares_done(&server->by_user);
    http_budget_unref(server->options.budget);
    free(server);
}

size_t http_server_connections(const struct http_server *server)
{
    return server->conn_count;
}
