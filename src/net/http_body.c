/* SPDX-License-Identifier: Apache-2.0
 *
 * Bodies of requests: how fast they must come, whose they are counted as, and those that a handler
 * takes as they come (uploads), up to their end or the client's.
 *
 * A body that is kept until its request is answered is counted when the head is there, by the length
 * that it says; one of unknown length as it grows.
 *
 * The handler has the request before its body. http_body_take lets the connection read on: pieces
 * go to the handler straight from the socket's bytes and are kept nowhere. A handler that cannot
 * take more pauses: the socket is not read until it resumes, so the client's own window fills, and
 * what stays with us is the rest of one read.
 *
 * 1. on_piece and on_end(OK) come from parsing. That a body broke off is told at the end of the
 *    turn, or when the server is freed. So no callback runs inside http_body_take, a pause, a
 *    resume or an answer.
 * 2. A body breaks off once: it leaves CONN_TAKING, the only state in which it can.
 * 3. Nothing is told after the answer: freeing the request takes back what was to be told.
 * 4. The time-out and the slowest rate count only the time in which we were ready to read.
 */
#include "net/http_conn.h"

/* Has the client been slower than it may be of late? */
bool conn_body_slow(struct http_conn *conn)
{
    struct pace *pace = &conn->request->pace;
    msec span = conn->server->deadlines[SPAN_BODY].span;
    pace_count(pace, loop_now(conn->server->loop), span, conn->parser.piece.len);
    return pace_slow(pace, span, HTTP_BODY_RATE_MIN);
}

/* ---- whose bodies ---- */

static bool charged(const struct request *request)
{
    return !request->public.body_ignored && !request->public.body_streamed;
}

static bool http_body_take_it(struct request *request, struct http_server *server, uint64_t bytes)
{
    return charge_take(&request->charge, server->options.budget, POOL_BODIES,
                       &request->public.account, bytes);
}

/* With the head, before a byte of the body is taken. One that is too long is refused as that. */
enum err conn_body_charge(struct http_conn *conn, struct fault *reterr)
{
    struct request *request = conn->request;
    const struct http_head *head = &conn->parser.head;
    uint64_t bytes = head->chunked ? HTTP_BODY_STEP_BYTES : head->length;
    if (head->chunked && bytes > request->body.max) bytes = request->body.max;
    if (!charged(request) || bytes > request->body.max) return OK;
    if (http_body_take_it(request, conn->server, bytes)) return OK;
    return fault(reterr, ERR_RATE_LIMITED,
                 "too much is on its way here already for this %s; wait for an answer first",
                 request->public.account.known ? "user" : "address");
}

bool conn_body_room(struct http_conn *conn)
{
    struct request *request = conn->request;
    uint64_t needed = request->body.len + conn->parser.piece.len;
    if (!conn->server->options.budget || !charged(request) || needed <= request->charge.bytes)
        return true;
    uint64_t more = needed - request->charge.bytes;
    return http_body_take_it(request, conn->server,
                             more > HTTP_BODY_STEP_BYTES ? more : HTTP_BODY_STEP_BYTES);
}

/* Only if it waits for this word, and if its body is not refused for its length. */
void conn_continue(struct http_conn *conn)
{
    const struct http_head *head = &conn->parser.head;
    bool wanted = head->chunked || (head->length > 0 && head->length <= conn->parser.room);
    if (!head->expect_continue || !wanted) return;
    conn_borrow_out(conn);
    buf_append(&conn->out, STR("HTTP/1.1 100 Continue\r\n\r\n"));
    conn_flush(conn);
}

/* ---- pieces and the end ---- */

void conn_body_piece(struct http_conn *conn)
{
    struct request *request = conn->request;
    if (conn_body_slow(conn)) {
        conn_body_break(conn, ERR_TIMEOUT);
        return;
    }
    conn_wait(conn, SPAN_BODY);
    request->ops->on_piece(request->ops_arg, conn->parser.piece); /* may answer: request is gone */
}

void conn_body_end(struct http_conn *conn)
{
    struct request *request = conn->request;
    conn_wait_not(conn);
    conn->state = CONN_HANDLING;
    request->open = false;
    request->ops->on_end(request->ops_arg, OK);
}

static void tell(struct loop_defer *defer)
{
    struct request *request = CONTAINER(defer, struct request, tell);
    request->ops->on_end(request->ops_arg, request->broke);
}

/* No more will come. The handler hears it at the end of the turn, unless it answers before. */
void body_break(struct request *request, enum err e)
{
    request->broke = e;
    request->tell.fn = tell;
    loop_defer(request->loop, &request->tell);
}

/* The connection stays for the answer. */
void conn_body_break(struct http_conn *conn, enum err e)
{
    conn_wait_not(conn);
    conn->state = CONN_HANDLING;
    sock_read_stop(conn->sock);
    buf_done(&conn->ahead);
    body_break(conn->request, e);
}

/* Tell now what was to be told at the end of the turn, if anything was. */
void body_tell(struct request *request)
{
    if (!request->tell.queued) return;
    loop_defer_cancel(request->loop, &request->tell);
    tell(&request->tell);
}

/* ---- the handler's side ---- */

static void read_on(struct http_conn *conn)
{
    conn_wait(conn, SPAN_BODY);
    if (conn->processing)
        sock_read_start(conn->sock); /* conn_parse goes on by itself */
    else
        conn_resume(conn);
}

void http_body_take(struct http_request *public, const struct http_body_ops *ops, void *arg)
{
    struct request *request = CONTAINER(public, struct request, public);
    struct http_conn *conn = public->conn;
    assert(public->body_streamed && !request->ops);
    request->ops = ops;
    request->ops_arg = arg;
    if (!conn) {
        body_break(request, ERR_NETWORK);
        return;
    }
    assert(conn->state == CONN_HANDLING);
    conn->state = CONN_TAKING;
    request->paused_at = loop_now(request->loop);
    pace_begin(&request->pace, request->paused_at);
    if (conn->server->stopping) {
        conn_body_break(conn, ERR_SHUTTING_DOWN);
        return;
    }
    conn_continue(conn);
    if (conn->state == CONN_TAKING && !request->paused) read_on(conn);
}

void http_body_pause(struct http_request *public)
{
    struct request *request = CONTAINER(public, struct request, public);
    struct http_conn *conn = public->conn;
    if (request->paused) return;
    request->paused = true;
    request->paused_at = loop_now(request->loop);
    if (!conn || conn->state != CONN_TAKING) return;
    sock_read_stop(conn->sock);
    conn_wait_not(conn);
}

void http_body_resume(struct http_request *public)
{
    struct request *request = CONTAINER(public, struct request, public);
    struct http_conn *conn = public->conn;
    if (!request->paused) return;
    request->paused = false;
    if (!conn || conn->state != CONN_TAKING) return;
    pace_skip(&request->pace, loop_now(request->loop) - request->paused_at);
    read_on(conn);
}
