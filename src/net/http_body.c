/* SPDX-License-Identifier: Apache-2.0
 *
 * Bodies that the handler takes as they come.
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

/* Is the client slower than it may be over the whole body? */
bool conn_body_slow(struct http_conn *conn)
{
    conn->body_bytes += conn->parser.piece.len;
    msec spent = loop_now(conn->server->loop) - conn->began;
    msec allowed = conn->server->deadlines[SPAN_BODY].span +
                   (msec)(conn->body_bytes * 1000 / HTTP_BODY_RATE_MIN);
    return spent > allowed;
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
    conn->began = request->paused_at = loop_now(request->loop);
    conn->body_bytes = 0;
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
    conn->began += loop_now(request->loop) - request->paused_at;
    read_on(conn);
}
