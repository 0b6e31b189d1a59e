/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams of a link by HTTP: one message there and its answer, resumed when it is cut, or refused.
 * The answer to a message is one message (application/json), a stream of messages up to the answer
 * (text/event-stream), or 202 for what needs none.
 *
 *     POST --> head --+-- 2xx, JSON ---------> one message, which must be the answer ----> end
 *                     +-- 2xx, event stream -> messages ... the answer ------------------> end
 *                     |       ^    | ends without it
 *                     |       |    +-- no event id, no more tries ----------> MCP_LOST --> end
 *                     |       +------- GET with Last-Event-ID after a rest
 *                     +-- 3xx, 4xx, 5xx -----> a message with our id: the answer, else a loss
 *
 * The standing stream is an event stream that is got again whenever it ends, until the server says
 * that it has none.
 *
 * A message is sent once and on a connection of its own: on a kept one that the server closes meanwhile
 * nobody knows whether it was done.
 *
 * Of what a server says, texts for people hold the status and the message of a JSON-RPC error, cut;
 * never a header. Redirects are not followed: the configured headers are for the configured server.
 *
 * Invariants:
 * 1. A stream is in its link's list until drop; after that no callback of HTTP or of its timer comes.
 * 2. Exactly one of on_message with its id, on_lost and forget ends a request's stream.
 * 3. An event is looked at only when it is complete: a cut stream never gives half a message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "mcp/client/mcp_http_int.h"
#include "net/http_client.h"

static const msec FOREVER_MS = (msec)1 << 40;

/* ---- streams come and go ---- */

static void free_stream(struct mcp_stream *stream)
{
    arena_done(&stream->arena);
    mcp_frame_done(&stream->frame);
    sse_reader_done(&stream->events);
    buf_done(&stream->refusal);
    buf_done(&stream->last_id);
#ifndef __clang_analyzer__ /* does not see that one under a callback is only marked */
    free(stream);
#endif
}

void mcp_stream_drop(struct mcp_stream *stream)
{
    if (stream->dropped) return;
    stream->dropped = true;
    stream->prev->next = stream->next;
    stream->next->prev = stream->prev;
    if (stream->kind == STREAM_POST) stream->owner->open_count--;
    if (stream->http) client_cancel(stream->http);
    timer_free(stream->rest);
    if (!stream->busy) free_stream(stream);
}

static struct mcp_link *enter(struct mcp_stream *stream)
{
    stream->busy++;
    mcp_link_enter(&stream->owner->link);
    return &stream->owner->link;
}

/* Stream and link may be gone after this. */
static void leave(struct mcp_stream *stream, struct mcp_link *link)
{
    if (--stream->busy == 0 && stream->dropped) free_stream(stream);
    mcp_link_leave(link);
}

static void on_rested(void *arg);

struct mcp_stream *mcp_stream_new(struct http_link *h, enum mcp_stream_kind kind,
                                  const struct mcp_header *headers, size_t header_count)
{
    struct mcp_stream *stream = calloc(1, sizeof *stream);
    if (!stream) abort();
    stream->owner = h;
    stream->kind = kind;
    arena_init(&stream->arena);
    stream->headers = arena_array(&stream->arena, header_count + 1, sizeof *stream->headers);
    stream->header_count = header_count;
    for (size_t i = 0; i < header_count; i++)
        stream->headers[i] = (struct mcp_header){arena_str(&stream->arena, headers[i].name),
                                                 arena_str(&stream->arena, headers[i].value)};
    mcp_frame_init(&stream->frame, MCP_MESSAGE_BYTES_MAX);
    sse_reader_init(&stream->events, MCP_MESSAGE_BYTES_MAX);
    buf_init(&stream->refusal, MCP_REFUSAL_BYTES_MAX);
    buf_init(&stream->last_id, MCP_EVENT_ID_BYTES_MAX);
    stream->rest = timer_new(h->loop, on_rested, stream);
    stream->prev = h->streams.prev;
    stream->next = &h->streams;
    stream->prev->next = stream->next->prev = stream;
    if (kind == STREAM_POST) h->open_count++;
    return stream;
}

static str header_value(const struct mcp_stream *stream, str name)
{
    for (size_t i = 0; i < stream->header_count; i++)
        if (str_eq_nocase(stream->headers[i].name, name)) return stream->headers[i].value;
    return STR_EMPTY;
}

bool mcp_stream_has_session(const struct mcp_stream *stream)
{
    return header_value(stream, STR("Mcp-Session-Id")).len > 0;
}

/* ---- sending ---- */

static const struct client_ops client_ops;

/* The protocol's own, which the configuration cannot change. */
static bool is_ours(str name)
{
    static const char *const names[] = {"Accept", "Content-Type", "Mcp-Session-Id", "Last-Event-ID",
                                        "MCP-Protocol-Version"};
    for (size_t i = 0; i < COUNT(names); i++)
        if (str_eq_nocase(name, str_c(names[i]))) return true;
    return false;
}

struct header_list {
    struct arena *arena;
    struct client_header *list;
    size_t count;
};

static void add_header(struct header_list *headers, str name, str value)
{
    headers->list[headers->count++] =
        (struct client_header){arena_cstr(headers->arena, name), arena_cstr(headers->arena, value)};
}

void mcp_stream_start(struct mcp_stream *stream, const char *method, str json)
{
    struct http_link *h = stream->owner;
    struct arena arena;
    arena_init(&arena);
    enum { OURS = 3 };
    struct header_list headers = {.arena = &arena,
                                  .list = arena_array(&arena,
                                                      h->header_count + stream->header_count + OURS,
                                                      sizeof(struct client_header))};
    for (size_t i = 0; i < h->header_count; i++)
        if (!is_ours(h->headers[i].name))
            add_header(&headers, h->headers[i].name, h->headers[i].value);
    bool get = strcmp(method, "GET") == 0;
    if (json.len) add_header(&headers, STR("Content-Type"), STR("application/json"));
    add_header(&headers, STR("Accept"),
               get ? STR("text/event-stream") : STR("application/json, text/event-stream"));
    for (size_t i = 0; i < stream->header_count; i++)
        add_header(&headers, stream->headers[i].name, stream->headers[i].value);
    if (get && stream->last_id.len)
        add_header(&headers, STR("Last-Event-ID"), buf_str(&stream->last_id));

    msec quiet = stream->quiet_ms > 0 ? stream->quiet_ms : FOREVER_MS;
    struct client_options options = {
        .method = method,
        .url = h->url,
        .headers = headers.list,
        .header_count = headers.count,
        .body = json,
        .once = true,
        .first_byte_ms = quiet,
        .idle_ms = quiet,
        .total_ms = stream->kind == STREAM_DELETE ? MCP_STOP_MS : 0,
        .body_bytes_max = stream->kind == STREAM_LISTEN ? UINT64_MAX : MCP_STREAM_BYTES_MAX,
    };
    stream->status = 0;
    stream->body = BODY_NONE;
    stream->began = loop_now(h->loop);
    stream->http = client_send(h->client, &options, &client_ops, stream);
    arena_done(&arena);
}

/* ---- how a request ends ---- */

static void lose(struct mcp_stream *stream, enum mcp_loss loss, int status, const struct fault *why)
{
    struct mcp_link *link = &stream->owner->link;
    uint64_t request = stream->request;
    bool post = stream->kind == STREAM_POST;
    struct fault copy = *why; /* may be the stream's own */
    mcp_stream_drop(stream);
    if (post) mcp_link_tell_lost(link, request, loss, status, &copy);
}

void mcp_stream_lose(struct mcp_stream *stream, const struct fault *why)
{
    bool sent = stream->resuming || (stream->http && client_request_sent(stream->http));
    lose(stream, sent ? MCP_LOST : MCP_AWAY, stream->status, why);
}

/* The message of a JSON-RPC error on one line, cut between characters; "" if it is none. */
static void error_text(str body, char out[static MCP_REASON_BYTES_MAX + 1])
{
    AUTO(arena_done) struct arena arena;
    struct json *json = NULL;
    str text = STR_EMPTY;
    arena_init(&arena);
    if (body.len && !json_parse(&arena, body, &json, NULL))
        text = json_text(json_get(json_get(json, STR("error")), STR("message")));
    size_t len = text.len < MCP_REASON_BYTES_MAX ? text.len : MCP_REASON_BYTES_MAX;
    while (len < text.len && len && ((unsigned char)text.p[len] & 0xc0) == 0x80) len--;
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)text.p[i];
        out[i] = byte < 0x20 || byte == 0x7f ? ' ' : (char)byte;
    }
    out[len] = '\0';
}

/* An answer that ends the request. */
static void deliver_answer(struct mcp_stream *stream, str json)
{
    struct mcp_link *link = &stream->owner->link;
    mcp_link_tell_message(link, json);
    if (!stream->dropped) mcp_stream_drop(stream);
}

/* A body in which the server says no, perhaps to exactly our request. */
static bool is_our_answer(struct mcp_stream *stream, struct mcp_message *ret_message)
{
    mcp_frame_clear(&stream->frame);
    struct mcp_message message;
    if (stream->refusal.full || !stream->request ||
        mcp_frame_add(&stream->frame, buf_str(&stream->refusal)) ||
        mcp_frame_end(&stream->frame, &message) || message.answers != stream->request)
        return false;
    *ret_message = message;
    return true;
}

/* A session that the server does not know is 404, but many servers say 400 to nobody in particular. */
static void end_refused(struct mcp_stream *stream)
{
    int status = stream->status;
    struct fault why;
    struct mcp_message message;
    char text[MCP_REASON_BYTES_MAX + 1];
    error_text(stream->refusal.full ? STR_EMPTY : buf_str(&stream->refusal), text);
    bool had_session = mcp_stream_has_session(stream);
    bool no_session = had_session && status == 404;
    if (!no_session && status >= 400 && is_our_answer(stream, &message)) {
        deliver_answer(stream, message.json);
        return;
    }
    no_session = no_session || (had_session && status == 400);
    const char *advice = text[0]         ? text
                         : status == 401 ? "it wants credentials; check its headers"
                         : status == 403 ? "it does not let us in; check its headers"
                         : status == 404 ? "check its URL"
                         : status < 400  ? "it is elsewhere; give its new URL"
                                         : "it says no more";
    fault(&why, ERR_NETWORK, "the server answered with status %d: %s", status, advice);
    lose(stream, no_session ? MCP_NO_SESSION : status >= 500 ? MCP_LOST : MCP_AWAY, status, &why);
}

/* ---- streams that are got again ---- */

static void rest_then_again(struct mcp_stream *stream, msec first, msec most)
{
    msec rest = first;
    for (unsigned i = 0; i < stream->tries && rest < most; i++) rest *= 2;
    if (rest > most) rest = most;
    uint64_t wish = stream->events.retry_ms;
    if (wish) rest = wish < MCP_RESUME_REST_MS_MAX ? (msec)wish : MCP_RESUME_REST_MS_MAX;
    stream->tries++;
    sse_reader_done(&stream->events);
    sse_reader_init(&stream->events, MCP_MESSAGE_BYTES_MAX);
    stream->events.retry_ms = wish; /* it holds until the server says another */
    timer_start(stream->rest, rest);
}

/* The stream of a request has ended without its answer. */
static void end_unanswered(struct mcp_stream *stream, const struct fault *why)
{
    /* 2026-07-28 knows no resuming: there a closed stream is a cancelled request. */
    str version = header_value(stream, STR("MCP-Protocol-Version"));
    bool resumes = !version.len || str_cmp(version, STR("2026")) < 0;
    if (resumes && stream->last_id.len && stream->tries < MCP_RESUME_TRIES_MAX &&
        why->err != ERR_CANCELLED) {
        stream->resuming = true;
        rest_then_again(stream, MCP_RESUME_REST_MS, MCP_RESUME_REST_MS_MAX);
        return;
    }
    lose(stream, MCP_LOST, stream->status, why);
}

/* A server without a standing stream says 405, or another no; one that is busy may think better of
 * it. */
static void end_listening(struct mcp_stream *stream, enum err e)
{
    int status = stream->status;
    bool later = status == 408 || status == 409 || status == 425 || status == 429;
    if (e == ERR_CANCELLED || e == ERR_INVALID_FIELD || (status >= 300 && status < 500 && !later) ||
        (status >= 200 && status < 300 && stream->body != BODY_EVENTS)) {
        mcp_stream_drop(stream);
        return;
    }
    bool lasted = loop_now(stream->owner->loop) - stream->began >= MCP_LISTEN_REST_MS_MAX;
    if (lasted) stream->tries = 0;
    rest_then_again(stream, MCP_LISTEN_REST_MS, MCP_LISTEN_REST_MS_MAX);
}

static void on_rested(void *arg)
{
    mcp_stream_start(arg, "GET", STR_EMPTY);
}

/* ---- answers as they come ---- */

static bool is_type(str value, str type)
{
    return str_eq_nocase(str_trim(str_split(&value, ';')), type);
}

/* The first answer may name the session; the rest of its stream is asked for with it. */
static void take_session(struct mcp_stream *stream, str session)
{
    if (!session.len || session.len > MCP_SESSION_BYTES_MAX) return;
    for (size_t i = 0; i < session.len; i++)
        if (session.p[i] < 0x21 || session.p[i] > 0x7e) return;
    if (!mcp_stream_has_session(stream)) {
        size_t count = stream->header_count;
        struct mcp_header *more = arena_array(&stream->arena, count + 1, sizeof *more);
        for (size_t i = 0; i < count; i++) more[i] = stream->headers[i];
        more[count] =
            (struct mcp_header){STR("Mcp-Session-Id"), arena_str(&stream->arena, session)};
        stream->headers = more;
        stream->header_count = count + 1;
    }
    mcp_link_tell_session(&stream->owner->link, session);
}

static void on_head(void *arg, struct client_request *request, int status)
{
    struct mcp_stream *stream = arg;
    struct mcp_link *link = enter(stream);
    str type = client_header_get(request, STR("Content-Type"));
    bool good = status >= 200 && status < 300;
    bool wanted = stream->kind == STREAM_LISTEN || (stream->kind == STREAM_POST && stream->request);
    stream->status = status;
    if (!good)
        stream->body = BODY_REFUSAL;
    else if (wanted && is_type(type, STR("text/event-stream")))
        stream->body = BODY_EVENTS;
    else if (wanted && is_type(type, STR("application/json")) && !stream->resuming)
        stream->body = BODY_MESSAGE;
    if (good && stream->kind == STREAM_POST)
        take_session(stream, client_header_get(request, STR("Mcp-Session-Id")));
    leave(stream, link);
}

static void not_a_message(struct mcp_stream *stream, enum err e)
{
    struct fault why;
    if (e == ERR_TOO_LARGE)
        fault(&why, e, "the server sent a message of more than %d MiB",
              MCP_MESSAGE_BYTES_MAX / 1024 / 1024);
    else
        fault(&why, ERR_NETWORK, "the server sent something that is no JSON-RPC message");
    if (stream->kind == STREAM_POST) {
        lose(stream, MCP_LOST, stream->status, &why);
        return;
    }
    client_cancel(stream->http);
    stream->http = NULL;
    buf_clear(&stream->last_id); /* not the same again */
    rest_then_again(stream, MCP_LISTEN_REST_MS, MCP_LISTEN_REST_MS_MAX);
}

static bool on_event(void *arg, const struct sse_event *event)
{
    struct mcp_stream *stream = arg;
    struct mcp_link *link = &stream->owner->link;
    struct mcp_message message;
    if (event->id.len && !str_eq(event->id, buf_str(&stream->last_id))) {
        stream->tries = 0; /* it moves on */
        buf_clear(&stream->last_id);
        buf_append(&stream->last_id, event->id); /* a longer one than allowed: none */
    }
    if (!event->data.len || !str_eq(event->name, STR("message"))) return true;
    mcp_frame_clear(&stream->frame);
    enum err e = mcp_frame_add(&stream->frame, event->data);
    if (!e) e = mcp_frame_end(&stream->frame, &message);
    if (e) {
        not_a_message(stream, e);
        return false;
    }
    if (stream->kind == STREAM_LISTEN) stream->tries = 0;
    if (stream->request && message.answers == stream->request)
        deliver_answer(stream, message.json);
    else
        mcp_link_tell_message(link, message.json);
    return !stream->dropped;
}

static void on_body(void *arg, str bytes)
{
    struct mcp_stream *stream = arg;
    struct mcp_link *link = enter(stream);
    enum err e = OK;
    switch (stream->body) {
    case BODY_NONE:
        break;
    case BODY_MESSAGE:
        e = mcp_frame_add(&stream->frame, bytes);
        break;
    case BODY_EVENTS:
        e = sse_read(&stream->events, bytes, on_event, stream);
        break;
    case BODY_REFUSAL:
        buf_append(&stream->refusal, bytes); /* one that is too long is full, and not looked at */
        break;
    }
    if (e && !stream->dropped) not_a_message(stream, e);
    leave(stream, link);
}

/* ---- ends of answers ---- */

static void end_message(struct mcp_stream *stream)
{
    struct mcp_message message;
    struct fault why;
    enum err e = mcp_frame_end(&stream->frame, &message);
    if (e) {
        not_a_message(stream, e);
        return;
    }
    if (message.answers == stream->request) {
        deliver_answer(stream, message.json);
        return;
    }
    char text[MCP_REASON_BYTES_MAX + 1];
    error_text(message.json, text);
    fault(&why, ERR_NETWORK, "the server answered with a message that is not the answer%s%s",
          text[0] ? ": " : "", text);
    lose(stream, MCP_LOST, stream->status, &why);
}

static void end_post(struct mcp_stream *stream, enum err e, const struct fault *reason, bool sent)
{
    struct fault why = *reason;
    if (stream->resuming && (e || stream->body != BODY_EVENTS)) {
        if (!e)
            fault(&why, ERR_NETWORK,
                  "the answer broke off, and the server has no rest of it: status %d",
                  stream->status);
        if (!e && stream->status < 500) stream->tries = MCP_RESUME_TRIES_MAX; /* it said no */
        end_unanswered(stream, &why);
    } else if (stream->body == BODY_REFUSAL) {
        end_refused(stream);
    } else if (stream->body == BODY_EVENTS) {
        if (!e) fault(&why, ERR_NETWORK, "the server ended its stream without an answer");
        end_unanswered(stream, &why);
    } else if (e) {
        lose(stream, sent ? MCP_LOST : MCP_AWAY, stream->status, &why);
    } else if (!stream->request) {
        mcp_stream_drop(stream); /* 202, as it should be */
    } else if (stream->body == BODY_MESSAGE) {
        end_message(stream);
    } else {
        fault(&why, ERR_NETWORK,
              "the server answered with status %d, but with no message; check its URL",
              stream->status);
        lose(stream, MCP_LOST, stream->status, &why);
    }
}

static void on_done(void *arg, enum err e, const struct fault *reason)
{
    struct mcp_stream *stream = arg;
    struct http_link *h = stream->owner;
    struct mcp_link *link = enter(stream);
    bool sent = client_request_sent(stream->http);
    stream->http = NULL;
    switch (stream->kind) {
    case STREAM_POST:
        end_post(stream, e, reason, sent);
        break;
    case STREAM_LISTEN:
        end_listening(stream, e);
        break;
    case STREAM_DELETE: /* whatever it said: it is over for us */
        mcp_stream_drop(stream);
        mcp_http_down(h);
        break;
    }
    leave(stream, link);
}

static const struct client_ops client_ops = {on_head, on_body, on_done};
