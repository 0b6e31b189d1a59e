/* SPDX-License-Identifier: Apache-2.0
 *
 * The writing half of an HTTP connection: answers, their heads, and the long answers of streams.
 *
 * An answer is built in `out` and offered to the socket at once; only what it does not take is
 * kept. Answers to pipelined requests are collected while conn_process runs and leave in one write.
 */
#include <stdlib.h>
#include <string.h>

#include "net/http_conn.h"
#include "net/http_int.h"
#include "net/problem.h"

void conn_return_buf(struct http_server *server, struct buf *b)
{
    buf_clear(b);
    if (server->spare.cap == 0 && b->cap <= HTTP_CORK_BYTES_MAX) {
        server->spare = *b;
        buf_init(b, HTTP_ANSWER_BYTES_MAX);
    } else {
        buf_done(b);
    }
}

void conn_borrow_out(struct http_conn *conn)
{
    if (conn->out.cap) return;
    conn->out = conn->server->spare;
    buf_init(&conn->server->spare, HTTP_ANSWER_BYTES_MAX);
}

/* ---- writing ---- */

/* All of the answer is with the kernel. */
static void conn_flushed(struct http_conn *conn)
{
    if (conn->peer_ended && conn_reads(conn)) conn_close(conn);
    if (conn->state != CONN_FLUSHING)
        return; /* a 100 Continue, a stream's head, collected answers */
    if (!conn->keep_alive || conn->peer_ended || conn->server->stopping) {
        conn_linger(conn);
        return;
    }
    conn->state = CONN_IDLE;
    conn_wait(conn, SPAN_IDLE);
    conn_idle(conn);
    if (conn->processing) return;
    sock_read_start(conn->sock);
    if (conn->ahead.len) conn_resume(conn);
}

/* The loop writes these when the reader makes room; it is watched from now on. */
static void conn_write(struct http_conn *conn, const str *pieces, size_t count)
{
    conn->writing = true;
    sock_write(conn->sock, pieces, count);
    conn->pending = sock_pending(conn->sock);
    pace_begin(&conn->pace, loop_now(conn->server->loop));
    conn_wait(conn, SPAN_STALL);
}

/* Write `out` and `tail`; what the socket does not take now, it takes when it can. */
void conn_flush(struct http_conn *conn)
{
    if (conn->writing) return; /* on_writable comes back here */
    str pieces[2] = {buf_str(&conn->out), conn->tail};
    size_t total = pieces[0].len + pieces[1].len;
    ptrdiff_t taken = sock_try(conn->sock, pieces, 2);
    if (taken < 0) {
        conn_close(conn);
        return;
    }
    conn->tail = STR_EMPTY;
    if ((size_t)taken == total) {
        conn_return_buf(conn->server, &conn->out);
        conn_flushed(conn);
        return;
    }
    size_t of_out = (size_t)taken < pieces[0].len ? (size_t)taken : pieces[0].len;
    pieces[0] = str_drop(pieces[0], of_out);
    pieces[1] = str_drop(pieces[1], (size_t)taken - of_out);
    /* Many changes may have been begun before the first answer: what is told of them, too, ends with
     * the share. Whoever sends them again with the same key is told again. */
    if (conn->out.len > HTTP_CORK_BYTES_MAX &&
        budget_owes(conn->server->options.budget, POOL_UNSENT, &conn->account)) {
        conn_close(conn);
        return;
    }
    conn->sending = conn->out;
    buf_init(&conn->out, HTTP_ANSWER_BYTES_MAX);
    conn_hold(conn, conn->sending.len);
    conn_write(conn, pieces, 2);
}

void conn_on_writable(void *arg, bool failed)
{
    struct http_conn *conn = arg;
    if (failed) {
        conn_close(conn);
        return;
    }
    conn->writing = false;
    charge_drop(&conn->unsent);
    conn_return_buf(conn->server, &conn->sending);
    deadline_clear(&conn->deadline);
    if (conn->state == CONN_STREAM) {
        if (conn->out.len) conn_flush(conn); /* its head had to wait for the answers before it */
        if (conn->state != CONN_STREAM || conn->writing) return;
        conn_wait(conn, SPAN_QUIET);
        conn->stream->on_writable(conn->stream_arg);
        return;
    }
    if (conn->state == CONN_IDLE) conn_wait(conn, SPAN_IDLE);
    if (conn->state == CONN_HEAD) conn_wait(conn, SPAN_HEAD);
    if (conn->state == CONN_BODY) conn_wait(conn, SPAN_BODY);
    if (conn->state == CONN_TAKING && !conn->request->paused) conn_wait(conn, SPAN_BODY);
    conn_flush(conn);
}

static const char *phrase(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } rows[] = {
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {304, "Not Modified"},
        {308, "Permanent Redirect"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].status == status) return rows[i].phrase;
    for (int e = 0; e < ERR_COUNT; e++)
        if (err_status((enum err)e) == status) return err_title((enum err)e);
    return "Status";
}

static void put(struct buf *out, const char *name, str value)
{
    buf_append(out, str_c(name));
    buf_append(out, value);
    buf_append(out, STR("\r\n"));
}

/* Returns whether the fields say how the answer may be cached. */
static bool put_fields(struct buf *out, const struct http_field *fields, size_t count)
{
    bool cached = false;
    for (size_t i = 0; i < count; i++) {
        cached = cached || str_eq_nocase(fields[i].name, STR("Cache-Control"));
        buf_append(out, fields[i].name);
        put(out, ": ", fields[i].value);
    }
    return cached;
}

/* Head of an answer, up to but without the empty line. The version is always ours (RFC 9110, 6.2).
 */
static void put_head(struct http_conn *conn, int status, const char *content_type,
                     const struct http_field *fields, size_t field_count)
{
    struct http_server *server = conn->server;
    struct buf *out = &conn->out;
    buf_append(out, STR("HTTP/1.1 "));
    buf_u64(out, (uint64_t)status);
    buf_char(out, ' ');
    put(out, phrase(status), STR_EMPTY);
    msec second = loop_now(server->loop) / 1000;
    if (second != server->date_at) clock_http_date(clock_wall(&clock_system), server->date);
    server->date_at = second;
    put(out, "Date: ", str_c(server->date));
    if (content_type) put(out, "Content-Type: ", str_c(content_type));
    if (conn->request) put(out, "X-Request-Id: ", str_c(conn->request->public.id));
    bool cached = put_fields(out, fields, field_count);
    if (conn->request)
        cached |= put_fields(out, conn->request->public.fields, conn->request->public.field_count);
    if (!cached) buf_append(out, STR("Cache-Control: no-store\r\n"));
    if (server->options.common_fields) buf_append(out, str_c(server->options.common_fields));
    bool upgrade = false; /* such a field is named in the Connection field, RFC 9110, 7.8 */
    for (size_t i = 0; i < field_count && !upgrade; i++)
        upgrade = str_eq_nocase(fields[i].name, STR("Upgrade"));
    if (upgrade)
        put(out, "Connection: Upgrade", conn->keep_alive ? STR_EMPTY : STR(", close"));
    else if (!conn->keep_alive)
        buf_append(out, STR("Connection: close\r\n"));
    else if (conn->parser.head.minor == 0)
        buf_append(out, STR("Connection: keep-alive\r\n"));
}

/* Bytes of the answer are complete in `out` and `tail`: send them, or collect a few pipelined
 * answers. */
void conn_answered(struct http_conn *conn, int status)
{
    struct http_server *server = conn->server;
    if (server->options.handler->on_answered)
        server->options.handler->on_answered(server->options.ctx,
                                             conn->request ? &conn->request->public : NULL, status);
    request_free(TAKE(conn->request));
    if (conn->keep_alive) http1_next(&conn->parser);
    conn->state = CONN_FLUSHING;
    conn_wait_not(conn);

    bool more = conn->processing && conn->keep_alive && conn->tail.len == 0 &&
                conn->out.len < HTTP_CORK_BYTES_MAX && !conn->peer_ended && !server->stopping;
    if (!more) {
        conn_flush(conn);
        return;
    }
    conn->state = CONN_IDLE; /* conn_process flushes */
    conn_wait(conn, SPAN_IDLE);
    conn_idle(conn);
}

static bool has_content(int status)
{
    return status >= 200 && status != 204 && status != 304;
}

bool conn_answer_has_body(const struct http_conn *conn, int status)
{
    return has_content(status) && !conn->head_only;
}

/* Can another request come behind this answer? Not behind a body that was not read to its end. */
static bool conn_goes_on(const struct http_conn *conn)
{
    return conn->keep_alive && !conn->server->stopping && !(conn->request && conn->request->open);
}

/* The whole head of an answer with a body of `len` bytes. */
void conn_answer_head(struct http_conn *conn, const struct http_answer *answer, uint64_t len)
{
    conn->keep_alive = conn_goes_on(conn) && !answer->close;
    conn_borrow_out(conn);
    put_head(conn, answer->status, answer->content_type, answer->fields, answer->field_count);
    if (has_content(answer->status)) {
        buf_append(&conn->out, STR("Content-Length: "));
        buf_u64(&conn->out, len);
        buf_append(&conn->out, STR("\r\n"));
    }
    buf_append(&conn->out, STR("\r\n"));
}

/* Is there room for this answer, if nobody reads it soon? What was changed is told, if need be with
 * the last of the share and more than that (conn_flush). */
static bool conn_may_hold(const struct http_conn *conn, const struct http_answer *answer)
{
    enum http_method method = conn->parser.head.method;
    if (answer->body_static || answer->body.len <= HTTP_CORK_BYTES_MAX || !conn->request)
        return true;
    if (method != HTTP_GET || !conn_answer_has_body(conn, answer->status)) return true;
    return budget_has(conn->server->options.budget, POOL_UNSENT, &conn->account, answer->body.len);
}

static void conn_answer(struct http_conn *conn, const struct http_answer *answer)
{
    if (!conn_may_hold(conn, answer)) {
        struct fault why;
        enum err e = fault(&why, ERR_RATE_LIMITED,
                           "too much of earlier answers has not been read yet; read it first");
        conn_refuse(conn, e, &why, false);
        return;
    }
    conn_answer_head(conn, answer, answer->body.len);
    bool body = conn_answer_has_body(conn, answer->status);
    if (body && answer->body_static && answer->body.len > 4096)
        conn->tail = answer->body;
    else if (body)
        buf_append(&conn->out, answer->body);
    if (conn->out.full) { /* larger than any answer may be: the handler's mistake, seen as a cut
                             answer */
        request_free(TAKE(conn->request));
        conn_close(conn);
        return;
    }
    conn_answered(conn, answer->status);
}

bool http_has_field(const struct http_request *request, str name)
{
    for (size_t i = 0; i < request->field_count; i++)
        if (str_eq_nocase(request->fields[i].name, name)) return true;
    return false;
}

/* A refusal is the end of the connection unless the request was read to its end. */
void conn_refuse(struct http_conn *conn, enum err e, const struct fault *why, bool close)
{
    if (!conn->request) conn->head_only = false; /* of the request before */
    struct buf body;
    buf_init(&body, 4096);
    problem_write(&body, e, why);
    struct http_field retry = {STR("Retry-After"), STR("1")};
    bool said = conn->request && http_has_field(&conn->request->public, STR("Retry-After"));
    bool wait = !said && (e == ERR_RATE_LIMITED || e == ERR_SHUTTING_DOWN);
    conn_answer(conn, &(struct http_answer){
                          .status = err_status(e),
                          .content_type = PROBLEM_TYPE,
                          .fields = &retry,
                          .field_count = wait,
                          .body = buf_str(&body),
                          .close = close,
                      });
    buf_done(&body);
}

/* ---- the handler's side ---- */

/* The request's connection, ready to be answered; NULL, and the request freed, if the client has
 * gone. */
struct http_conn *conn_of(struct http_request *public)
{
    struct request *request = CONTAINER(public, struct request, public);
    struct http_conn *conn = public->conn;
    if (conn) {
        assert(conn->state == CONN_HANDLING || conn->state == CONN_TAKING);
        assert(conn->request == request);
        return conn;
    }
    request_free(request);
    return NULL;
}

void http_answer(struct http_request *request, const struct http_answer *answer)
{
    struct http_conn *conn = conn_of(request);
    if (conn) conn_answer(conn, answer);
}

void http_answer_error_with(struct http_request *request, enum err e, const struct fault *why,
                            const struct http_field *fields, size_t field_count)
{
    struct buf body;
    buf_init(&body, 4096);
    problem_write(&body, e, why);
    http_answer(request, &(struct http_answer){
                             .status = err_status(e),
                             .content_type = PROBLEM_TYPE,
                             .fields = fields,
                             .field_count = field_count,
                             .body = buf_str(&body),
                         });
    buf_done(&body);
}

void http_answer_error(struct http_request *request, enum err e, const struct fault *why)
{
    http_answer_error_with(request, e, why, NULL, 0);
}

bool http_gone(const struct http_request *request)
{
    return !request->conn;
}

/* ---- streams ---- */

static void on_turn(struct loop_defer *defer)
{
    struct http_conn *conn = CONTAINER(defer, struct http_conn, turn);
    conn->stream->on_turn(conn->stream_arg);
}

void http_stream_soon(struct http_conn *conn)
{
    if (conn->state != CONN_STREAM) return;
    conn->turn.fn = on_turn;
    loop_defer(conn->server->loop, &conn->turn);
}

/* The head of a long answer is complete in `out`: send it, and let `ops` write the rest. */
void conn_stream(struct http_conn *conn, int status, const struct http_stream_ops *ops, void *arg)
{
    const struct http_server_options *options = &conn->server->options;
    if (options->handler->on_answered)
        options->handler->on_answered(options->ctx, &conn->request->public, status);
    if (conn->request->open)
        http1_done(&conn->parser); /* nothing on this connection is parsed any more */
    else
        http1_next(&conn->parser);
    request_free(TAKE(conn->request));
    conn->state = CONN_STREAM;
    conn->stream = ops;
    conn->stream_arg = arg;
    conn_wait(conn, SPAN_QUIET);
    if (ops->on_turn)
        http_stream_soon(conn);
    else if (!conn->processing)
        conn_flush(conn);
}

struct http_conn *http_stream(struct http_request *request, const struct http_field *fields,
                              size_t field_count, const struct http_stream_ops *ops, void *arg,
                              bool *ret_framed)
{
    struct http_conn *conn = conn_of(request);
    if (!conn) return NULL;

    conn->framed = conn->parser.head.minor > 0;
    conn->keep_alive = conn_goes_on(conn) && conn->framed;
    conn_borrow_out(conn);
    put_head(conn, 200, NULL, fields, field_count);
    if (conn->framed) buf_append(&conn->out, STR("Transfer-Encoding: chunked\r\n"));
    buf_append(&conn->out, STR("\r\n"));
    if (conn->head_only) {
        conn_answered(conn, 200);
        return NULL;
    }

    *ret_framed = conn->framed;
    conn_stream(conn, 200, ops, arg);
    return conn;
}

struct http_conn *http_upgrade(struct http_request *request, const struct http_field *fields,
                               size_t field_count, const struct http_stream_ops *ops, void *arg)
{
    struct http_conn *conn = conn_of(request);
    if (!conn) return NULL;

    conn->keep_alive = true; /* while the head is written */
    conn_borrow_out(conn);
    put_head(conn, 101, NULL, fields, field_count);
    buf_append(&conn->out, STR("\r\n"));
    conn->keep_alive = conn->framed = false;
    conn_resume(conn);
    conn_stream(conn, 101, ops, arg);
    return conn;
}

void http_stream_hurry(struct http_conn *conn)
{
    if (conn->state == CONN_STREAM) conn_wait(conn, SPAN_CLOSE);
}

ptrdiff_t http_stream_try(struct http_conn *conn, const str *pieces, size_t count)
{
    if (conn->state == CONN_CLOSED) return -1;
    if (conn->writing) return 0;
    str all[SOCK_PIECES_MAX];
    size_t before = conn->out.len;
    assert(count < SOCK_PIECES_MAX);
    all[0] = buf_str(&conn->out); /* the head, and what was gathered, go first */
    for (size_t i = 0; i < count; i++) all[i + 1] = pieces[i];
    ptrdiff_t taken = sock_try(conn->sock, all, count + 1);
    if (taken > 0) conn_wait(conn, SPAN_QUIET);
    if (taken < 0) conn_close(conn);
    if (taken < 0 || !before) return taken;
    if ((size_t)taken < before) {
        buf_drop(&conn->out, (size_t)taken);
        conn_flush(conn);
        return conn->state == CONN_CLOSED ? -1 : 0;
    }
    conn_return_buf(conn->server, &conn->out);
    return taken - (ptrdiff_t)before;
}

bool http_stream_gather(struct http_conn *conn, str piece)
{
    if (conn->state != CONN_STREAM || conn->writing) return false;
    if (conn->out.len + piece.len > HTTP_GATHER_BYTES_MAX) return false;
    conn_borrow_out(conn);
    buf_append(&conn->out, piece);
    return true;
}

bool http_stream_flush(struct http_conn *conn)
{
    if (conn->state != CONN_STREAM) return false;
    if (conn->out.len && !conn->writing) {
        conn_wait(conn, SPAN_QUIET);
        conn_flush(conn);
    }
    return conn->writing;
}

bool http_stream_wait(struct http_conn *conn, const str *pieces, size_t count)
{
    if (conn->state == CONN_CLOSED || conn->writing) return false;
    conn_write(conn, pieces, count);
    return true;
}

void http_stream_hold(struct http_conn *conn, size_t bytes)
{
    if (conn->state == CONN_CLOSED) return;
    if (!charge_take(&conn->unsent, conn->server->options.budget, POOL_UNSENT, &conn->account,
                     bytes))
        conn_cut(conn);
}

void http_stream_end(struct http_conn *conn)
{
    conn->stream = NULL;
    if (conn->state == CONN_CLOSED) return;
    loop_defer_cancel(conn->server->loop, &conn->turn);
    conn_borrow_out(conn);
    if (conn->framed) buf_append(&conn->out, STR("0\r\n\r\n"));
    conn->state = CONN_FLUSHING;
    conn_wait_not(conn);
    conn_flush(conn);
}

void http_stream_cut(struct http_conn *conn)
{
    conn->stream = NULL;
    if (conn->framed)
        conn_close(conn);
    else
        conn_cut(conn); /* without framing, an end in order looks like the end of the stream */
}
