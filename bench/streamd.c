/* SPDX-License-Identifier: Apache-2.0
 *
 * streamd: the smallest server on src/net, for measuring and for fault tests: no store, no agent,
 * one log.
 *
 *     GET  /hello     200 "hello"
 *     GET  /healthz   200 "ok"
 *     GET  /big       200 with 8 MiB
 *     GET  /stream    an event stream: every event published from now on
 *     POST /publish   each line of the body becomes one event; 204
 *
 * A reader so slow that its place has left the log is ended, since nothing is stored to catch it up
 * from. SIGTERM or SIGINT: open streams end, answers under way are finished, exit 0.
 */
#include <signal.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/limits.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/sse.h"

enum { BIG_BYTES = 8 << 20, PUBLISH_BYTES_MAX = 16 << 20 };

struct streamd {
    struct loop *loop;
    struct listener *listener;
    struct http_server *server;
    struct sse_log *log;
    struct buf frame; /* reused from event to event */
    char *big;
};

/* ---- event streams ---- */

struct reader {
    struct sse_stream *stream;
};

static void on_lag(void *arg)
{
    struct reader *reader = arg;
    sse_close(reader->stream);
    free(reader);
}

static const struct sse_ops reader_ops = {.on_lag = on_lag, .on_close = free};

static void get_stream(struct streamd *d, struct http_request *request)
{
    struct reader *reader = malloc(sizeof *reader);
    if (!reader) abort();
    reader->stream = sse_open(request, NULL, 0, &reader_ops, reader);
    if (reader->stream)
        sse_follow(reader->stream, d->log, sse_log_end(d->log));
    else
        free(reader);
}

static void post_publish(struct streamd *d, struct http_request *request)
{
    for (str rest = request->body; rest.p;) {
        str text = str_split(&rest, '\n');
        if (text.len == 0) continue;
        buf_clear(&d->frame);
        buf_append(&d->frame, STR("data: "));
        buf_append(&d->frame, text);
        buf_append(&d->frame, STR("\n\n"));
        sse_log_append(d->log, buf_str(&d->frame));
    }
    http_answer(request, &(struct http_answer){.status = 204});
}

/* ---- plain answers ---- */

static void answer_text(struct http_request *request, str text)
{
    http_answer(request, &(struct http_answer){.status = 200,
                                               .content_type = "text/plain",
                                               .body = text,
                                               .body_static = true});
}

static void get_hello(struct streamd *d, struct http_request *request)
{
    (void)d;
    answer_text(request, STR("hello"));
}

static void get_healthz(struct streamd *d, struct http_request *request)
{
    (void)d;
    answer_text(request, STR("ok"));
}

static void get_big(struct streamd *d, struct http_request *request)
{
    answer_text(request, (str){d->big, BIG_BYTES});
}

/* ---- routes ---- */

static const struct route {
    enum http_method method;
    const char *path;
    uint64_t body_bytes_max;
    void (*fn)(struct streamd *d, struct http_request *request);
} routes[] = {
    {HTTP_GET, "/stream", 0, get_stream}, {HTTP_POST, "/publish", PUBLISH_BYTES_MAX, post_publish},
    {HTTP_GET, "/hello", 0, get_hello},   {HTTP_GET, "/healthz", 0, get_healthz},
    {HTTP_GET, "/big", 0, get_big},
};

static enum err on_head(void *ctx, struct http_request *request, uint64_t *ret_body_max,
                        struct fault *reterr)
{
    (void)ctx;
    enum err e = ERR_NOT_FOUND;
    for (size_t i = 0; i < COUNT(routes); i++) {
        if (!str_eq(request->head->path, str_c(routes[i].path))) continue;
        e = ERR_METHOD_NOT_ALLOWED;
        if (request->head->method != routes[i].method) continue;
        request->user = (void *)(uintptr_t)&routes[i];
        *ret_body_max = routes[i].body_bytes_max;
        return OK;
    }
    return fault(reterr, e, "%s", err_title(e));
}

static void on_request(void *ctx, struct http_request *request)
{
    const struct route *route = request->user;
    route->fn(ctx, request);
}

static const struct http_handler handler = {.on_head = on_head, .on_request = on_request};

/* ---- start and stop ---- */

static void on_stopped(void *arg)
{
    struct streamd *d = arg;
    loop_stop(d->loop);
}

static void on_signal(void *arg, int signal)
{
    (void)signal;
    struct streamd *d = arg;
    if (!d->listener) return; /* stopping already */
    listener_close(TAKE(d->listener));
    http_server_stop(d->server, on_stopped, d);
}

static void refuse(const char *what)
{
    fprintf(stderr, "streamd: %s\n", what);
    exit(2);
}

struct settings {
    const char *listen;
    uint64_t head_ms, body_ms, idle_ms, stall_ms, connections, log_bytes;
};

static const struct option {
    const char *name;
    size_t field; /* of a number in struct settings */
} number_options[] = {
    {"--head-ms", offsetof(struct settings, head_ms)},
    {"--body-ms", offsetof(struct settings, body_ms)},
    {"--idle-ms", offsetof(struct settings, idle_ms)},
    {"--stall-ms", offsetof(struct settings, stall_ms)},
    {"--connections", offsetof(struct settings, connections)},
    {"--log-bytes", offsetof(struct settings, log_bytes)},
};

static void set_option(struct settings *settings, const char *name, const char *value)
{
    if (str_eq(str_c(name), STR("--listen"))) {
        settings->listen = value;
        return;
    }
    for (size_t i = 0; i < COUNT(number_options); i++) {
        if (!str_eq(str_c(name), str_c(number_options[i].name))) continue;
        uint64_t *field = (uint64_t *)(void *)((char *)settings + number_options[i].field);
        if (str_to_u64(str_c(value), field) || *field > UINT32_MAX) refuse("a number is wrong");
        return;
    }
    refuse("options: --listen host:port, --head-ms, --body-ms, --idle-ms, --stall-ms, "
           "--connections, --log-bytes");
}

/* A descriptor for each connection; the usual soft limit is lower than the hard one. */
static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit)) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void start_listening(struct streamd *d, const char *address)
{
    str port_text = str_c(address);
    str host = str_split(&port_text, ':');
    uint64_t port = 0;
    struct fault why = {0};
    if (str_to_u64(port_text, &port) || port > UINT16_MAX) refuse("--listen takes host:port");
    if (listener_tcp(d->loop, host, (uint16_t)port, http_server_accept, d->server, &d->listener,
                     &why))
        refuse(why.text);
    printf("listening on %.*s:%u\n", STR_ARG(host), listener_port(d->listener));
    fflush(stdout);
}

static void serve(struct streamd *d, const struct settings *settings)
{
    const struct http_server_options options = {
        .handler = &handler,
        .ctx = d,
        .connections_max = (uint32_t)settings->connections,
        .head_ms = (msec)settings->head_ms,
        .body_idle_ms = (msec)settings->body_ms,
        .idle_ms = (msec)settings->idle_ms,
        .stall_ms = (msec)settings->stall_ms,
    };
    d->loop = loop_new();
    d->server = http_server_new(d->loop, &options);
    d->log = sse_log_new(d->loop, settings->log_bytes);
    if (loop_signal(d->loop, SIGTERM, on_signal, d) || loop_signal(d->loop, SIGINT, on_signal, d))
        refuse("cannot watch signals");
    start_listening(d, settings->listen);
    loop_run(d->loop);

    sse_log_free(d->log);
    http_server_free(d->server);
    loop_free(d->loop);
}

int main(int argc, char **argv)
{
    struct settings settings = {
        .listen = "127.0.0.1:0", .connections = 10000, .log_bytes = SSE_LOG_BYTES_MAX};
    if (argc % 2 == 0) refuse("every option needs a value");
    for (int i = 1; i < argc; i += 2) set_option(&settings, argv[i], argv[i + 1]);

    signal(SIGPIPE, SIG_IGN);
    raise_descriptors();
    struct streamd d = {.big = malloc(BIG_BYTES)};
    if (!d.big) abort();
    memset(d.big, 'b', BIG_BYTES);
    buf_init(&d.frame, PUBLISH_BYTES_MAX + 16);
    serve(&d, &settings);
    buf_done(&d.frame);
    free(d.big);
    return 0;
}
