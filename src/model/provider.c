/* SPDX-License-Identifier: Apache-2.0
 *
 * A model behind HTTP: one POST for each call, its stream read through a codec into the sink. What
 * differs between providers is in their codecs (codec.h).
 *
 *     start ──▶ ASKED ──2xx, event stream──▶ STREAM ──▶ events ──▶ decoder ──▶ sink
 *                 │──── 2xx, JSON ─────────▶ DOCUMENT, one event at its end
 *                 │──── 2xx, other ────────▶ ended: again
 *                 └──── no 2xx ────────────▶ REFUSED, read for its reason
 *
 *     ended: the sink has heard on_end. The rest of a whole answer is drained, so that the connection
 *     can be used again; of any other the request is cancelled.
 *
 * Invariants:
 * 1. Sink callbacks come only from the client's on_body and on_done, and from a deferred end; never from
 *    inside start, and none once `over` is set, which cancel and on_end do.
 * 2. A call is freed when none of its functions is on the stack: provider_leave() does it, and cancel where
 *    nothing is `inside`.
 * 3. A call that is over does not touch its provider: the model may be gone while it drains.
 * 4. A text of a server passes status_clean before anybody sees it. The client's reasons hold no
 *    credentials by its own promise.
 *
 * Nothing is tried again here; a kept connection that turns out to be closed is the client's affair.
 *
 * To add a provider: a codec, and its function beside model_openai.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "model/codec.h"
#include "model/status.h"
#include "model/tool_names.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "net/sse_read.h"

enum { OWN_HEADERS = 2, CODEC_HEADERS_MAX = 4, HOST_BYTES_MAX = 100 };

struct provider {
    const struct codec *codec;
    struct client *client;
    struct model_http_options options; /* its texts in the arena */
    const char *url, *name;
    char host[HOST_BYTES_MAX + 1]; /* for people */
    struct arena arena;
    size_t open; /* calls that are not over */
};

enum answer { ASKED, STREAM, DOCUMENT, REFUSED };

struct model_call {
    struct provider *provider;
    struct client *client;
    const struct codec *codec;
    struct client_request *request; /* NULL: never sent, or done */
    struct model_sink sink;
    void *arg;

    enum answer answer;
    int status;
    msec retry_after_ms;
    struct sse_reader events;
    struct buf body; /* of a document or a refusal */
    void *decoder;
    struct arena arena; /* names, and what on_end borrows */
    struct tool_names names;
    struct fault why;

    struct loop_defer early; /* the end of a call that could not be sent */
    struct timer *drain;
    bool inside, over, whole;
};

/* ---- life ---- */

static void free_call(struct model_call *call)
{
    timer_free(call->drain);
    sse_reader_done(&call->events);
    buf_done(&call->body);
    if (call->decoder) call->codec->done(call->decoder);
    free(call->decoder);
    arena_done(&call->arena);
    free(call);
}

static void on_drain(void *arg)
{
    struct model_call *call = arg;
    client_cancel(call->request);
    free_call(call);
}

/* What led here is off the stack. */
static void provider_leave(struct model_call *call)
{
    call->inside = false;
    if (!call->over || call->drain) return;
    if (call->request && call->whole) {
        call->drain = timer_new(client_loop(call->client), on_drain, call);
        timer_start(call->drain, MODEL_DRAIN_MS);
        return;
    }
    if (call->request) client_cancel(call->request);
    free_call(call);
}

static void close_call(struct model_call *call)
{
    call->over = true;
    call->provider->open--;
}

static void cancel(struct model_call *call)
{
    if (call->over) return; /* inside its own on_end */
    close_call(call);
    loop_defer_cancel(client_loop(call->client), &call->early);
    if (!call->inside) provider_leave(call);
}

/* ---- the end ---- */

/* Once for each call that is not cancelled. `why` is in the call. */
static void end_call(struct model_call *call, enum model_end end)
{
    struct model_ending ending = {.end = end};
    call->whole = end == MODEL_DONE;
    if (call->whole)
        call->codec->result(call->decoder, &ending.usage, &ending.provider_data);
    else
        ending.why = &call->why;
    if (end == MODEL_AGAIN) ending.retry_after_ms = call->retry_after_ms;
    close_call(call);
    call->sink.on_end(call->arg, &ending);
}

static str clean(struct model_call *call, str words)
{
    return status_clean(&call->arena, words, call->provider->options.api_key);
}

static void end_too_large(struct model_call *call, const char *what, size_t bytes)
{
    fault(&call->why, ERR_TOO_LARGE, "%s: %s is larger than %zu bytes", call->provider->host, what,
          bytes);
    end_call(call, MODEL_FAILED);
}

/* The decoder's words may be the server's. */
static void end_verdict(struct model_call *call, enum codec_verdict verdict)
{
    if (verdict == CODEC_WHOLE) {
        end_call(call, MODEL_DONE);
        return;
    }
    struct fault said = call->why;
    str words = clean(call, str_c(said.text));
    fault(&call->why, said.err, "%s: %.*s", call->provider->host, STR_ARG(words));
    end_call(call, verdict == CODEC_AGAIN ? MODEL_AGAIN : MODEL_FAILED);
}

static void end_refused(struct model_call *call)
{
    str words = call->codec->error_text(&call->arena, buf_str(&call->body));
    status_explain(&call->why, call->provider->host, call->status, clean(call, words));
    end_call(call, status_end(call->status));
}

/* No answer, or not all of it. */
static void end_broken(struct model_call *call, enum err e, const struct fault *reason)
{
    bool again =
        e == ERR_TIMEOUT || e == ERR_NETWORK || e == ERR_BUSY || e == ERR_CANCELLED || e == ERR_IO;
    call->why = *reason;
    end_call(call, again ? MODEL_AGAIN : MODEL_FAILED);
}

/* ---- what the decoder says ---- */

static void on_text(void *arg, str delta)
{
    struct model_call *call = arg;
    if (!call->over) call->sink.on_text(call->arg, delta);
}

static void on_reasoning(void *arg, str delta)
{
    struct model_call *call = arg;
    if (!call->over) call->sink.on_reasoning(call->arg, delta);
}

static void on_call(void *arg, size_t index, str provider_id, str name)
{
    struct model_call *call = arg;
    if (call->over) return;
    call->sink.on_call(call->arg, index, provider_id, tool_names_back(&call->names, name));
}

static void on_args(void *arg, size_t index, str delta)
{
    struct model_call *call = arg;
    if (!call->over) call->sink.on_args(call->arg, index, delta);
}

static void begin_decoder(struct model_call *call)
{
    static const struct model_sink sink = {
        .on_text = on_text, .on_reasoning = on_reasoning, .on_call = on_call, .on_args = on_args};
    call->decoder = calloc(1, call->codec->decoder_bytes);
    if (!call->decoder) abort();
    call->codec->begin(call->decoder, &(const struct codec_sink){&sink, call});
}

/* False: it is over. */
static bool on_event(void *arg, const struct sse_event *event)
{
    struct model_call *call = arg;
    enum codec_verdict verdict =
        call->codec->event(call->decoder, event->name, event->data, &call->why);
    if (verdict != CODEC_MORE && !call->over) end_verdict(call, verdict);
    return !call->over;
}

/* All of the answer is here, and it has not said that it is whole. */
static void at_eof(struct model_call *call)
{
    if (call->answer == DOCUMENT) {
        if (call->body.full) {
            end_too_large(call, "its answer", MODEL_EVENT_BYTES_MAX);
            return;
        }
        struct sse_event document = {.name = STR("message"), .data = buf_str(&call->body)};
        if (!on_event(call, &document)) return;
    }
    enum codec_verdict verdict = call->codec->eof(call->decoder, &call->why);
    if (!call->over) end_verdict(call, verdict);
}

/* ---- what the client says ---- */

static bool has_type(str value, str type)
{
    str name = str_trim(str_split(&value, ';'));
    return str_eq_nocase(name, type);
}

/* A server that does not say is taken at its word that it streams. */
static void judge_type(struct model_call *call, str type)
{
    if (!type.len || has_type(type, STR("text/event-stream"))) {
        call->answer = STREAM;
        begin_decoder(call);
    } else if (has_type(type, STR("application/json"))) {
        call->answer = DOCUMENT;
        buf_init(&call->body, MODEL_EVENT_BYTES_MAX);
        begin_decoder(call);
    } else {
        str got = clean(call, type);
        fault(&call->why, ERR_MODEL_UNAVAILABLE,
              "%s did not answer with an event stream; check base_url of the model. Got %.*s",
              call->provider->host, STR_ARG(got));
        end_call(call, MODEL_AGAIN);
    }
}

static void on_head(void *arg, struct client_request *request, int status)
{
    struct model_call *call = arg;
    if (call->over) return;
    call->inside = true;
    call->status = status;
    if (status / 100 == 2) {
        judge_type(call, client_header_get(request, STR("Content-Type")));
    } else {
        call->answer = REFUSED;
        buf_init(&call->body, MODEL_REFUSAL_BYTES_MAX);
        call->retry_after_ms =
            status_retry_after(client_header_get(request, STR("retry-after-ms")),
                               client_header_get(request, STR("Retry-After")),
                               client_header_get(request, STR("Date")), clock_wall(&clock_system));
    }
    provider_leave(call);
}

static void on_body(void *arg, str bytes)
{
    struct model_call *call = arg;
    if (call->over) return; /* draining */
    call->inside = true;
    if (call->answer == STREAM) {
        enum err e = sse_read(&call->events, bytes, on_event, call);
        if (e && !call->over) end_too_large(call, "an event of its answer", MODEL_EVENT_BYTES_MAX);
    } else if (call->answer == DOCUMENT) {
        buf_append(&call->body, bytes);
    } else {
        size_t room = call->body.max - call->body.len;
        buf_append(&call->body, (str){bytes.p, bytes.len < room ? bytes.len : room});
    }
    provider_leave(call);
}

static void on_done(void *arg, enum err e, const struct fault *reason)
{
    struct model_call *call = arg;
    call->request = NULL;
    call->inside = true;
    if (!call->over) {
        if (call->answer == REFUSED)
            end_refused(call); /* all of it or not, the status counts */
        else if (e)
            end_broken(call, e, reason);
        else
            at_eof(call);
    }
    call->inside = false;
    free_call(call);
}

/* ---- the beginning ---- */

static void on_early(struct loop_defer *defer)
{
    struct model_call *call = CONTAINER(defer, struct model_call, early);
    call->inside = true;
    end_too_large(call, "the request", MODEL_REQUEST_BYTES_MAX);
    provider_leave(call);
}

static void send_call(struct model_call *call, struct arena *arena, str body)
{
    static const struct client_ops ops = {on_head, on_body, on_done};
    const struct provider *provider = call->provider;
    struct client_header headers[OWN_HEADERS + CODEC_HEADERS_MAX] = {
        {"Content-Type", "application/json"}, {"Accept", "text/event-stream"}};
    size_t count = OWN_HEADERS + call->codec->headers(arena, &provider->options,
                                                      headers + OWN_HEADERS, CODEC_HEADERS_MAX);
    const struct client_options options = {
        .method = "POST",
        .url = provider->url,
        .headers = headers,
        .header_count = count,
        .body = body,
        .connect_ms = provider->options.connect_ms,
        .first_byte_ms = provider->options.first_byte_ms,
        .idle_ms = provider->options.idle_ms,
        .body_bytes_max = MODEL_ANSWER_BYTES_MAX,
        .trickles = true,
    };
    call->request = client_send(call->client, &options, &ops, call);
}

static struct model_call *start(void *model, const struct model_request *request,
                                const struct model_sink *sink, void *arg)
{
    struct provider *provider = model;
    struct model_call *call = calloc(1, sizeof *call);
    if (!call) abort();
    call->provider = provider;
    call->client = provider->client;
    call->codec = provider->codec;
    call->sink = *sink;
    call->arg = arg;
    call->early.fn = on_early;
    sse_reader_init(&call->events, MODEL_EVENT_BYTES_MAX);
    arena_init(&call->arena);
    provider->open++;

    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf body;
    struct model_request named = *request;
    arena_init(&arena);
    buf_init(&body, MODEL_REQUEST_BYTES_MAX);
    call->names = tool_names_give(&arena, &call->arena, &named);
    call->codec->write(&body, &arena, &provider->options, &named);
    if (body.full)
        loop_defer(client_loop(call->client), &call->early);
    else
        send_call(call, &arena, buf_str(&body));
    return call;
}

/* ---- the model ---- */

static void free_model(void *model)
{
    struct provider *provider = model;
    assert(!provider->open);
    arena_done(&provider->arena);
    free(provider);
}

/* Visible ASCII only: it goes into a URL or a header. */
static bool is_plain(str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] <= ' ' || text.p[i] > '~') return false;
    return true;
}

static enum err check_options(const struct model_http_options *options, struct fault *reterr)
{
    str url = options->base_url;
    bool http = str_starts(url, STR("http://")) || str_starts(url, STR("https://"));
    if (!http || !is_plain(url) || url.len > CLIENT_URL_BYTES_MAX / 2)
        return fault_field(reterr, ERR_INVALID_FIELD, "base_url",
                           "base_url must be an address like https://host/v1");
    if (!options->name.len || options->name.len > MODEL_NAME_BYTES_MAX ||
        !utf8_valid(options->name) || memchr(options->name.p, '\0', options->name.len))
        return fault_field(reterr, ERR_INVALID_FIELD, "name",
                           "name must be the model's, as its provider writes it");
    if (!is_plain(options->api_key) || options->api_key.len > MODEL_KEY_BYTES_MAX)
        return fault_field(
            reterr, ERR_INVALID_FIELD, "api_key",
            "the key holds a space, a line end or another character that no key has, "
            "or is too long");
    return OK;
}

/* base_url and path, the query of base_url behind them. */
static const char *make_url(struct arena *arena, str base_url, const char *path)
{
    str query = base_url, base = str_split(&query, '?');
    while (str_ends(base, STR("/"))) base.len--;
    str url = arena_printf(arena, "%.*s%s%s%.*s", STR_ARG(base), path, query.p ? "?" : "",
                           query.p ? (int)query.len : 0, query.p ? query.p : "");
    return arena_cstr(arena, url);
}

/* "host" or "host:port", without user and password. */
static void name_host(struct provider *provider, str base_url)
{
    str rest = str_drop(base_url, (size_t)str_find(base_url, STR("://")) + 3);
    for (size_t i = 0; i < rest.len; i++)
        if (strchr("/?#", rest.p[i])) rest.len = i;
    for (ptrdiff_t at; (at = str_find_char(rest, '@')) >= 0;) rest = str_drop(rest, (size_t)at + 1);
    if (rest.len > HOST_BYTES_MAX) rest.len = HOST_BYTES_MAX;
    memcpy(provider->host, rest.p, rest.len);
}

enum err model_http(struct client *client, const struct codec *codec,
                    const struct model_http_options *options, struct model *ret_model,
                    struct fault *reterr)
{
    static const struct model_ops ops = {start, cancel, free_model};
    enum err e = check_options(options, reterr);
    if (e) return e;
    struct provider *provider = calloc(1, sizeof *provider);
    if (!provider) abort();
    arena_init(&provider->arena);
    provider->codec = codec;
    provider->client = client;
    provider->options = *options;
    provider->options.base_url = arena_str(&provider->arena, options->base_url);
    provider->options.api_key = arena_str(&provider->arena, options->api_key);
    provider->name = arena_cstr(&provider->arena, options->name);
    provider->options.name = str_c(provider->name);
    provider->url = make_url(&provider->arena, options->base_url, codec->path);
    name_host(provider, options->base_url);

    ret_model->ops = &ops;
    ret_model->self = provider;
    ret_model->provider = codec->provider;
    ret_model->name = provider->name;
    ret_model->images = options->images;
    ret_model->max_output = options->max_output;
    return OK;
}

enum err model_openai(struct client *client, const struct model_http_options *options,
                      struct model *ret_model, struct fault *reterr)
{
    return model_http(client, &codec_openai, options, ret_model, reterr);
}

enum err model_anthropic(struct client *client, const struct model_http_options *options,
                         struct model *ret_model, struct fault *reterr)
{
    return model_http(client, &codec_anthropic, options, ret_model, reterr);
}
