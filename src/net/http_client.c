/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP client: libcurl's multi interface on our loop, for requests to models, tools and
 * platforms.
 *
 * libcurl names the sockets it wants watched and one moment at which it wants to be called; we
 * answer with watches and a timer. Inside its callbacks it must not be entered again, and callers'
 * code runs inside them (on_head, on_body). So whatever changes the set of requests only writes it
 * down, and work() does it at the end of the turn:
 *
 *     client_send --> WAITING --work: curl_multi_add_handle--> ACTIVE
 *                        |                                       |
 *                        | cannot be sent                        | complete, broken, too late
 *                        +------------------> ENDED <------------+
 *                                               |
 *     client_cancel: any of these         work: on_done
 *                        |                      |
 *                        v                      v
 *                    CANCELLED                DONE
 *                        +--- freed by work ----+
 *
 * Pausing is libcurl's own: a piece that comes while a request is paused is refused with
 * CURL_WRITEFUNC_PAUSE, and libcurl keeps it and stops reading from the socket. Resuming hands that
 * piece out again from inside curl_easy_pause, so work() does that too.
 *
 * Invariants:
 * 1. curl_multi_* and curl_easy_pause are called only from work, on_socket_ready, on_multi_timer
 *    and client_free: from the loop, never from a callback of libcurl.
 * 2. A request is in exactly one list: `active` if ACTIVE, else `todo`; work is queued while todo
 *    has one.
 * 3. Callers hear of a request only while it is ACTIVE (on_head, on_body), and then once (on_done).
 * 4. Once connected, the first reason recorded in request->fault stays: later failures are its
 *    consequences.
 *
 * Time-outs are ours, one timer per request: each phase below may stay quiet for its span, and
 * total_ms bounds them all. The timer is not moved for every byte; when it fires too early it is
 * set again for what is left.
 *
 * Reasons are built from the host, our own texts, and libcurl's words for rows marked so: those
 * name hosts, ports and system errors, never the URL, a header, or bytes of the answer.
 */
#include "net/http_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "net/ip.h"
#include "net/loop.h"

enum http_client_state { WAITING, ACTIVE, ENDED, CANCELLED, DONE };

/* What the peer is doing while we wait. */
enum http_client_phase { CONNECTING, ANSWERING, STREAMING, PHASE_COUNT };

struct http_client_link {
    struct http_client_link *prev, *next;
};

struct client {
    struct loop *loop;
    CURLM *multi;        /* NULL until the first request */
    struct timer *timer; /* the moment libcurl wants to be called */
    struct loop_defer work;
    struct http_client_link active, todo;
    size_t count;
    size_t resumed; /* requests that work has to set going again */
    bool busy;      /* inside libcurl, or calling on_done */
    bool closing;   /* in client_free */
};

/* A socket of libcurl's that we watch for it. */
struct client_socket {
    struct client *client;
    struct watch *watch;
    curl_socket_t fd;
};

struct client_request {
    struct http_client_link link;
    struct client *client;
    const struct client_ops *ops;
    void *arg;
    CURL *easy;
    struct curl_slist *headers;
    enum http_client_state state;

    enum http_client_phase phase;
    struct timer *timer;
    msec span[PHASE_COUNT], total_ms;
    msec started, quiet_since;

    char *body;
    size_t body_len, body_sent;
    bool sent; /* a connection was ready: from here on it may have reached the server */
    bool public_only;
    int folder_fd; /* of a long Unix path, or -1 */

    struct buf head; /* "Name: value\r\n"... of the last head */
    size_t head_bytes, field_count;
    bool head_done;
    bool paused;  /* by the caller */
    bool stopped; /* by libcurl: it holds a piece for us */
    bool resumed; /* counted in the client's */
    uint64_t received, body_bytes_max;

    char peer[300]; /* for people: "host", "host:port" or the Unix path */
    struct fault fault;
    char detail[CURL_ERROR_SIZE];
};

/* libcurl calls that fail only when we misuse them or memory is gone. */
static void http_client_must(int code)
{
    if (code == 0) return;
    fprintf(stderr, "client: libcurl failed with code %d\n", code);
    abort();
}

static void link_remove(struct http_client_link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
}

static void link_append(struct http_client_link *list, struct http_client_link *link)
{
    link->prev = list->prev;
    link->next = list;
    list->prev->next = link;
    list->prev = link;
}

static struct client_request *next_request(struct http_client_link *list)
{
    return list->next == list ? NULL : CONTAINER(list->next, struct client_request, link);
}

/* The only writer of a state after birth. */
static void set_state(struct client_request *request, enum http_client_state state)
{
    static const unsigned from[] = {
        [ACTIVE] = 1 << WAITING,
        [ENDED] = 1 << WAITING | 1 << ACTIVE,
        [CANCELLED] = 1 << WAITING | 1 << ACTIVE | 1 << ENDED,
        [DONE] = 1 << ENDED,
    };
    assert(from[state] & 1U << request->state);
    struct client *client = request->client;
    request->state = state;
    link_remove(&request->link);
    link_append(state == ACTIVE ? &client->active : &client->todo, &request->link);
    if (state != ACTIVE) loop_defer(client->loop, &client->work);
}

/* ---- time ---- */

#define NEVER (INT64_MAX / 2)

/* A peer that is held back owes us nothing. */
static msec due(const struct client_request *request)
{
    msec quiet = request->paused ? NEVER : request->quiet_since + request->span[request->phase];
    msec total = request->started + request->total_ms;
    return request->total_ms && total < quiet ? total : quiet;
}

static void fault_late(struct client_request *request)
{
    struct fault *reterr = &request->fault;
    long long ms = request->span[request->phase];
    switch (request->phase) {
    case CONNECTING:
        fault(reterr, ERR_TIMEOUT,
              "no connection to %s within %lld ms; check the address, and whether a firewall is in "
              "between",
              request->peer, ms);
        return;
    case ANSWERING:
        fault(reterr, ERR_TIMEOUT, "%s did not begin to answer within %lld ms", request->peer, ms);
        return;
    case STREAMING:
        fault(reterr, ERR_TIMEOUT, "%s stopped in the middle of its answer: no byte for %lld ms",
              request->peer, ms);
        return;
    case PHASE_COUNT:
        break;
    }
    assert(false);
}

static void on_request_timer(void *arg)
{
    struct client_request *request = arg;
    if (request->state != ACTIVE) return;
    msec now = loop_now(request->client->loop);
    if (now < due(request)) {
        timer_start(request->timer, due(request) - now);
        return;
    }
    if (request->total_ms && now >= request->started + request->total_ms)
        fault(&request->fault, ERR_TIMEOUT, "%s did not finish its answer within %lld ms",
              request->peer, (long long)request->total_ms);
    else
        fault_late(request);
    set_state(request, ENDED);
}

/* The peer did something: its time starts anew. A shorter span must move the timer itself. */
static void enter_phase(struct client_request *request, enum http_client_phase phase)
{
    msec before = due(request);
    request->quiet_since = loop_now(request->client->loop);
    request->phase = phase;
    if (due(request) < before) timer_start(request->timer, due(request) - request->quiet_since);
}

/* ---- libcurl asks and tells: one request ---- */

/* Connected, about to send the request. */
static int on_connected(void *arg, char *ip, char *local_ip, int port, int local_port)
{
    (void)ip, (void)local_ip, (void)port, (void)local_port;
    struct client_request *request = arg;
    request->sent = true;
    request->fault = (struct fault){0}; /* another address of the host may have been refused */
    enter_phase(request, ANSWERING);
    return CURL_PREREQFUNC_OK;
}

static size_t on_send(char *out, size_t size, size_t count, void *arg)
{
    struct client_request *request = arg;
    size_t len = request->body_len - request->body_sent;
    if (len > size * count) len = size * count;
    memcpy(out, request->body + request->body_sent, len);
    request->body_sent += len;
    enter_phase(request, ANSWERING);
    return len;
}

/* A kept connection was closed under us: the body is sent again on a new one. */
static int on_send_again(void *arg, curl_off_t offset, int origin)
{
    struct client_request *request = arg;
    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > request->body_len || !request->body)
        return CURL_SEEKFUNC_FAIL;
    request->body_sent = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* The answer has begun: nothing is sent again after that, and a long one need not keep what was asked.
 * A server may also answer before it has heard all. */
static void drop_body(struct client_request *request)
{
    if (request->body_sent < request->body_len) return;
    free(request->body);
    request->body = NULL;
}

/* libcurl's own sockets would stay open in child processes. */
static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    struct client_request *request = arg;
    if (request->public_only && !ip_public(&address->addr)) {
        fault(&request->fault, ERR_FORBIDDEN_HOST,
              "%s is an address of this machine or a private network, which is not allowed here",
              request->peer);
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* One line of a head, or of the trailer behind the body (counted, not kept). A server may send
 * interim heads (1xx) first; each head begins with a status line and ends with an empty one. */
static size_t on_header(char *bytes, size_t size, size_t count, void *arg)
{
    struct client_request *request = arg;
    str line = {bytes, size * count};
    enter_phase(request, STREAMING);
    if (request->state != ACTIVE) return 0;
    if (str_starts(line, STR("HTTP/")) && !request->head_done) {
        buf_clear(&request->head);
        request->field_count = 0; /* head_bytes goes on: interim heads are bounded too */
        return line.len;
    }
    if (!str_eq(line, STR("\r\n")) && !str_eq(line, STR("\n"))) {
        request->head_bytes += line.len;
        request->field_count++;
        if (request->head_bytes > CLIENT_HEAD_BYTES_MAX ||
            request->field_count > CLIENT_FIELDS_MAX) {
            fault(&request->fault, ERR_TOO_LARGE,
                  "the header section of %s is larger than %d KiB or %d fields", request->peer,
                  CLIENT_HEAD_BYTES_MAX / 1024, CLIENT_FIELDS_MAX);
            return 0;
        }
        if (!request->head_done) buf_append(&request->head, line);
        return line.len;
    }
    long status = 0;
    curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200 || request->head_done) return line.len;
    request->head_done = true;
    drop_body(request);
    if (request->ops->on_head) request->ops->on_head(request->arg, request, (int)status);
    return line.len;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct client_request *request = arg;
    size_t len = size * count;
    enter_phase(request, STREAMING);
    if (request->state != ACTIVE) return CURL_WRITEFUNC_ERROR;
    request->stopped = request->paused;
    if (request->paused) return CURL_WRITEFUNC_PAUSE;
    request->received += len;
    if (request->received > request->body_bytes_max) {
        fault(&request->fault, ERR_TOO_LARGE, "the answer of %s is larger than %llu bytes",
              request->peer, (unsigned long long)request->body_bytes_max);
        return CURL_WRITEFUNC_ERROR;
    }
    if (request->ops->on_body) request->ops->on_body(request->arg, (str){bytes, len});
    return len;
}

/* ---- the end of a request ---- */

/* What a CURLcode means for a person: text, host, text, and libcurl's own words if `detail`. */
static const struct {
    CURLcode code;
    enum err err;
    bool detail;
    const char *before, *after;
} failures[] = {
    {CURLE_COULDNT_RESOLVE_HOST, ERR_NETWORK, false, "cannot find the host ",
     "; check its name and this machine's DNS"},
    {CURLE_COULDNT_RESOLVE_PROXY, ERR_NETWORK, false, "cannot find the proxy on the way to ",
     "; check the proxy setting (https_proxy, http_proxy)"},
    {CURLE_COULDNT_CONNECT, ERR_NETWORK, true, "cannot connect to ",
     "; check that it is running and the port is right"},
    {CURLE_PEER_FAILED_VERIFICATION, ERR_NETWORK, true, "the certificate of ",
     " is not accepted; check the host name, its dates and the file of authorities"},
    {CURLE_SSL_CONNECT_ERROR, ERR_NETWORK, true, "no TLS connection to ",
     "; check that the port speaks TLS 1.2 or later"},
    {CURLE_SSL_CACERT_BADFILE, ERR_CONFIG, false, "cannot read the file of authorities for ",
     "; check its path and content"},
    {CURLE_UNSUPPORTED_PROTOCOL, ERR_NETWORK, false, "",
     " answered with something that is not HTTP; check the port, and http or https"},
    {CURLE_WEIRD_SERVER_REPLY, ERR_NETWORK, false, "",
     " answered with something that is not HTTP; check the port, and http or https"},
    {CURLE_GOT_NOTHING, ERR_NETWORK, false, "", " closed the connection without an answer"},
    {CURLE_PARTIAL_FILE, ERR_NETWORK, false, "",
     " closed the connection before its answer was complete"},
    {CURLE_SEND_ERROR, ERR_NETWORK, true, "the connection to ", " broke while sending"},
    {CURLE_RECV_ERROR, ERR_NETWORK, true, "the connection to ", " broke"},
    {CURLE_HTTP2, ERR_NETWORK, false, "", " broke the HTTP/2 connection"},
    {CURLE_HTTP2_STREAM, ERR_NETWORK, false, "", " broke off its answer (HTTP/2)"},
    {CURLE_PROXY, ERR_NETWORK, true, "the proxy on the way to ", " failed"},
};

/* Why libcurl ended the request, unless it was our doing and is recorded already. */
static void explain(struct client_request *request, CURLcode code)
{
    long tunnel = 0;
    curl_easy_getinfo(request->easy, CURLINFO_HTTP_CONNECTCODE, &tunnel);
    if (request->fault.err) return;
    if (code == CURLE_OK && request->head_done) return;
    size_t i = 0;
    while (i < COUNT(failures) && failures[i].code != code) i++;
    if (code == CURLE_OK) {
        fault(&request->fault, ERR_NETWORK, "%s closed the connection in the middle of its head",
              request->peer);
    } else if (code == CURLE_OPERATION_TIMEDOUT) {
        fault_late(request);
    } else if (tunnel && tunnel / 100 != 2) {
        fault(&request->fault, ERR_NETWORK, "the proxy refused a tunnel to %s with status %ld",
              request->peer, tunnel);
    } else if (i < COUNT(failures)) {
        bool detail = failures[i].detail && request->detail[0];
        fault(&request->fault, failures[i].err, "%s%s%s%s%s%s", failures[i].before, request->peer,
              failures[i].after, detail ? " (" : "", detail ? request->detail : "",
              detail ? ")" : "");
    } else {
        fault(&request->fault, ERR_NETWORK, "%s: %s", request->peer, curl_easy_strerror(code));
    }
}

static void free_request(struct client_request *request)
{
    link_remove(&request->link);
    request->client->count--;
    request->client->resumed -= request->resumed;
    curl_easy_cleanup(request->easy);
    curl_slist_free_all(request->headers);
    timer_free(request->timer);
    if (request->folder_fd >= 0) close(request->folder_fd);
    buf_done(&request->head);
    free(request->body);
#ifndef __clang_analyzer__ /* does not see that no list leads to it any more */
    free(request);
#endif
}

static void end_request(struct client_request *request)
{
    struct client *client = request->client;
    http_client_must(
        curl_multi_remove_handle(client->multi, request->easy)); /* fine if it never was added */
    if (request->state == ENDED) {
        set_state(request, DONE);
        request->ops->on_done(request->arg, request->fault.err, &request->fault);
    }
    free_request(request);
}

/* Requests that were let go on, each searched anew: callers may have cancelled any of them
 * meanwhile. */
static void resume_requests(struct client *client)
{
    for (size_t left = client->resumed; left > 0; left--) {
        struct http_client_link *at = client->active.next;
        while (at != &client->active && !CONTAINER(at, struct client_request, link)->resumed)
            at = at->next;
        if (at == &client->active) return; /* the rest has ended since */
        struct client_request *request = CONTAINER(at, struct client_request, link);
        request->resumed = false;
        client->resumed--;
        if (request->paused || !request->stopped || request->state != ACTIVE) continue;
        request->stopped = false;
        /* libcurl hands out what it holds, in here; the caller may pause again, or cancel. */
        CURLcode code = curl_easy_pause(request->easy, CURLPAUSE_CONT);
        if (!code || request->state != ACTIVE) continue;
        explain(request, code);
        set_state(request, ENDED);
    }
}

/* Everything that was written down in this turn: what goes on, what libcurl has ended, what begins
 * and what is over. */
static void work(struct loop_defer *defer)
{
    struct client *client = CONTAINER(defer, struct client, work);
    client->busy = true;
    resume_requests(client);
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(client->multi, &left));) {
        CURLcode code = message->data.result;
        struct client_request *request = NULL;
        http_client_must(
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&request));
        if (request->state != ACTIVE) continue; /* ended or cancelled meanwhile; in todo */
        explain(request, code);
        set_state(request, ENDED);
    }
    for (struct client_request *request; (request = next_request(&client->todo));) {
        if (request->state != WAITING) {
            end_request(request);
            continue;
        }
        set_state(request, ACTIVE);
        request->started = request->quiet_since = loop_now(client->loop);
        timer_start(request->timer, due(request) - request->started);
        http_client_must(curl_multi_add_handle(client->multi, request->easy));
    }
    client->busy = false;
}

/* ---- libcurl asks: sockets and time ---- */

static void drive(struct client *client, curl_socket_t fd, int events)
{
    int running;
    client->busy = true;
    http_client_must(curl_multi_socket_action(client->multi, fd, events, &running));
    client->busy = false;
    loop_defer(client->loop, &client->work);
}

static void on_socket_ready(void *arg, int events)
{
    struct client_socket *socket = arg; /* may be gone after drive */
    drive(socket->client, socket->fd,
          (events & 1 ? CURL_CSELECT_IN : 0) | (events & 2 ? CURL_CSELECT_OUT : 0));
}

static int on_watch(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
    (void)easy;
    struct client *client = arg;
    struct client_socket *socket = known;
    if (what == CURL_POLL_REMOVE) {
        if (socket) watch_free(socket->watch);
        free(socket);
        return 0;
    }
    if (!socket) {
        socket = mem_new(sizeof *socket);
        *socket = (struct client_socket){.client = client, .fd = fd};
        socket->watch = watch_new(client->loop, fd, on_socket_ready, socket);
        http_client_must(curl_multi_assign(client->multi, fd, socket));
    }
    watch_set(socket->watch, (what & CURL_POLL_IN ? 1 : 0) | (what & CURL_POLL_OUT ? 2 : 0));
    return 0;
}

static int on_set_timer(CURLM *multi, long after_ms, void *arg)
{
    (void)multi;
    struct client *client = arg;
    if (after_ms < 0)
        timer_stop(client->timer);
    else
        timer_start(client->timer, after_ms);
    return 0;
}

static void on_multi_timer(void *arg)
{
    drive(arg, CURL_SOCKET_TIMEOUT, 0);
}

/* libcurl with what it needs of TLS takes half a megabyte, so it begins with the first request. */
static void begin_multi(struct client *client)
{
    if (client->multi) return;
    http_client_must(
        curl_global_init(CURL_GLOBAL_DEFAULT)); /* counted by libcurl, from any thread */
    client->multi = curl_multi_init();
    if (!client->multi) abort();
    http_client_must(curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_watch));
    http_client_must(curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client));
    http_client_must(curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_set_timer));
    http_client_must(curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client));
    http_client_must(
        curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)CLIENT_IDLE_CONNECTIONS_MAX));
}

static void end_multi(struct client *client)
{
    if (!client->multi) return;
    http_client_must(curl_multi_cleanup(client->multi));
    curl_global_cleanup();
}

struct client *client_new(struct loop *loop)
{
    struct client *client = mem_new(sizeof *client);
    client->loop = loop;
    client->work.fn = work;
    client->active.prev = client->active.next = &client->active;
    client->todo.prev = client->todo.next = &client->todo;
    client->timer = timer_new(loop, on_multi_timer, client);
    return client;
}

struct loop *client_loop(const struct client *client)
{
    return client->loop;
}

void client_free(struct client *client)
{
    if (!client) return;
    assert(!client->busy && !client->closing);
    client->closing = true;
    for (struct client_request *request; (request = next_request(&client->active));) {
        fault(&request->fault, ERR_CANCELLED, "stopped before %s had answered", request->peer);
        set_state(request, ENDED);
    }
    for (struct client_request *request; (request = next_request(&client->todo));) {
        if (request->state == WAITING) {
            fault(&request->fault, ERR_CANCELLED, "stopped before %s was asked", request->peer);
            set_state(request, ENDED);
        } else {
            end_request(request);
        }
    }
    loop_defer_cancel(client->loop, &client->work);
    end_multi(client);
    timer_free(client->timer);
    free(client);
}

/* ---- the beginning of a request: options to libcurl ---- */

#define SET(option, value) http_client_must(curl_easy_setopt(request->easy, option, value))

static void free_url(CURLU **url)
{
    curl_url_cleanup(*url);
}

static enum err set_url(struct client_request *request, const char *text)
{
    struct fault *reterr = &request->fault;
    AUTO(free_url) CURLU *url = curl_url();
    char *scheme = NULL;
    if (!text || strlen(text) > CLIENT_URL_BYTES_MAX)
        return fault_field(reterr, ERR_INVALID_FIELD, "url", "the URL is missing or too long");
    if (curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) ||
        curl_url_get(url, CURLUPART_SCHEME, &scheme, 0))
        return fault_field(reterr, ERR_INVALID_FIELD, "url",
                           "the URL is not valid; write it as http://host/path or "
                           "https://host/path");
    bool known = strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0;
    curl_free(scheme);
    if (!known)
        return fault_field(reterr, ERR_INVALID_FIELD, "url", "the URL must be http or https");
    /* The peer is "host" or "host:port"; libcurl's parser leaves user and password out of both. */
    char *host = NULL, *port = NULL;
    if (!curl_url_get(url, CURLUPART_HOST, &host, 0)) {
        bool given = !curl_url_get(url, CURLUPART_PORT, &port, 0);
        snprintf(request->peer, sizeof request->peer, "%s%s%s", host, given ? ":" : "",
                 given ? port : "");
        curl_free(host);
        curl_free(port);
    }
    SET(CURLOPT_URL, text);
    return OK;
}

static enum err set_method(struct client_request *request, const struct client_options *options)
{
    const char *method = options->method ? options->method : "GET";
    bool head = strcmp(method, "HEAD") == 0;
    if (!str_is_token(str_c(method)) || (head && options->body.len))
        return fault_field(&request->fault, ERR_INVALID_FIELD, "method",
                           "the method cannot be sent");
    if (head) {
        SET(CURLOPT_NOBODY, 1L);
        return OK;
    }
    bool carries =
        strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0;
    if (carries || options->body.len) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)options->body.len);
        request->body = mem_new(options->body.len + 1);
        request->body_len = options->body.len;
        if (options->body.len) memcpy(request->body, options->body.p, options->body.len);
    }
    if (request->body_len && request->body_len <= CLIENT_WHOLE_BYTES_MAX) {
        SET(CURLOPT_POSTFIELDS, request->body);
        request->body_sent = request->body_len;
    }
    SET(CURLOPT_CUSTOMREQUEST, method);
    return OK;
}

static void add_header(struct client_request *request, const char *line)
{
    struct curl_slist *longer = curl_slist_append(request->headers, line);
    if (!longer) abort();
    request->headers = longer;
}

/* "Name: value"; an empty value is written "Name;", because "Name:" means to libcurl: leave out. */
static enum err set_header(struct client_request *request, const struct client_header *header)
{
    struct fault *reterr = &request->fault;
    if (!str_is_token(str_c(header->name)))
        return fault(reterr, ERR_INVALID_FIELD, "a header name cannot be sent");
    if (!str_is_field_value(str_c(header->value)))
        return fault_field(reterr, ERR_INVALID_FIELD, header->name,
                           "the value of a header holds a control character");
    str name = str_c(header->name);
    if (str_eq_nocase(name, STR("content-length")) || str_eq_nocase(name, STR("transfer-encoding")))
        return fault_field(reterr, ERR_INVALID_FIELD, header->name,
                           "this header is made by the client itself");
    struct buf line;
    buf_init(&line, CLIENT_HEAD_BYTES_MAX);
    buf_printf(&line, header->value[0] ? "%s: %s" : "%s;", header->name, header->value);
    buf_char(&line, '\0');
    bool fits = !line.full;
    if (fits) add_header(request, line.p);
    buf_done(&line);
    return fits ? OK
                : fault_field(reterr, ERR_INVALID_FIELD, header->name, "the header is too long");
}

static enum err set_headers(struct client_request *request, const struct client_options *options)
{
    if (options->header_count > CLIENT_FIELDS_MAX)
        return fault(&request->fault, ERR_INVALID_FIELD, "more than %d headers", CLIENT_FIELDS_MAX);
    bool typed = false;
    for (size_t i = 0; i < options->header_count; i++) {
        enum err e = set_header(request, &options->headers[i]);
        if (e) return e;
        typed |= str_eq_nocase(str_c(options->headers[i].name), STR("content-type"));
    }
    if (!typed) add_header(request, "Content-Type:"); /* not the form type libcurl would invent */
    add_header(request, "Expect:");                   /* no waiting for "100 Continue" */
    SET(CURLOPT_HTTPHEADER, request->headers);
    return OK;
}

/* Through the folder's descriptor any path fits into an address. Such a name means another socket
 * once the descriptor is reused, so its connection is not kept. */
static enum err set_unix_path(struct client_request *request, const char *path)
{
    enum { FIT = sizeof((struct sockaddr_un *)0)->sun_path - 1 };
    char place[PATH_MAX];
    snprintf(request->peer, sizeof request->peer, "%s", path);
    SET(CURLOPT_PROXY, "");
    if (strlen(path) <= FIT) {
        SET(CURLOPT_UNIX_SOCKET_PATH, path);
        return OK;
    }
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    snprintf(place, sizeof place, "%.*s", slash ? (int)(slash - path) + 1 : 2, slash ? path : "./");
    request->folder_fd = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (request->folder_fd < 0)
        return fault(&request->fault, ERR_NETWORK, "cannot open the folder of %s: %s", path,
                     strerror(errno));
    int len = snprintf(place, sizeof place, "/proc/self/fd/%d/%s", request->folder_fd, name);
    if (len > FIT)
        return fault_field(&request->fault, ERR_INVALID_FIELD, "unix_path",
                           "the socket's file name is too long");
    SET(CURLOPT_UNIX_SOCKET_PATH, place);
    SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_FORBID_REUSE, 1L);
    return OK;
}

/* Where to connect, and what must hold there. */
static enum err set_route(struct client_request *request, const struct client_options *options)
{
    if (options->proxy || options->public_only) {
        SET(CURLOPT_PROXY, options->public_only ? "" : options->proxy);
        SET(CURLOPT_NOPROXY, ""); /* a given proxy is for every host, whatever no_proxy says */
    }
    if (options->ca_file) {
        SET(CURLOPT_CAINFO, options->ca_file);
        SET(CURLOPT_PROXY_CAINFO, options->ca_file);
    }
    /* libcurl sends again only what it sent on a kept connection; and a kept one may lead to an
     * address that another request was allowed to use. */
    if (options->once || options->public_only) SET(CURLOPT_FRESH_CONNECT, 1L);
    if (options->trickles) SET(CURLOPT_BUFFERSIZE, (long)CLIENT_TRICKLE_BYTES);
    return options->unix_path ? set_unix_path(request, options->unix_path) : OK;
}

/* The same for every request. */
static void set_fixed(struct client_request *request)
{
    SET(CURLOPT_PRIVATE, (char *)request);
    SET(CURLOPT_ERRORBUFFER, request->detail);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* cancelling must not wait for the resolver's thread */
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_USERAGENT, "fermata/" FERMATA_VERSION);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(CURLOPT_HTTP09_ALLOWED, 0L);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_PROXY_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_PROXY_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_PROXY_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)request->span[CONNECTING]); /* split over addresses */
    SET(CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    SET(CURLOPT_OPENSOCKETDATA, request);
    SET(CURLOPT_PREREQFUNCTION, on_connected);
    SET(CURLOPT_PREREQDATA, request);
    SET(CURLOPT_UPLOAD_BUFFERSIZE, (long)CLIENT_SEND_BYTES);
    SET(CURLOPT_READFUNCTION, on_send);
    SET(CURLOPT_READDATA, request);
    SET(CURLOPT_SEEKFUNCTION, on_send_again);
    SET(CURLOPT_SEEKDATA, request);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, request);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, request);
}

static enum err set_options(struct client_request *request, const struct client_options *options)
{
    if (request->client->count > CLIENT_REQUESTS_MAX)
        return fault(&request->fault, ERR_BUSY, "more than %d requests are open",
                     CLIENT_REQUESTS_MAX);
    set_fixed(request);
    enum err e = set_url(request, options->url);
    if (!e) e = set_method(request, options);
    if (!e) e = set_headers(request, options);
    if (!e) e = set_route(request, options);
    return e;
}

static msec or_default(msec given, msec fallback)
{
    return given > 0 ? given : fallback;
}

struct client_request *client_send(struct client *client, const struct client_options *options,
                                   const struct client_ops *ops, void *arg)
{
    assert(!client->closing);
    begin_multi(client);
    struct client_request *request = mem_new(sizeof *request);
    *request = (struct client_request){
        .client = client,
        .ops = ops,
        .arg = arg,
        .folder_fd = -1,
        .public_only = options->public_only,
        .total_ms = options->total_ms,
        .span = {[CONNECTING] = or_default(options->connect_ms, CLIENT_CONNECT_MS_MAX),
                 [ANSWERING] = or_default(options->first_byte_ms, CLIENT_FIRST_BYTE_MS_MAX),
                 [STREAMING] = or_default(options->idle_ms, CLIENT_IDLE_MS_MAX)},
        .body_bytes_max = options->body_bytes_max ? options->body_bytes_max : CLIENT_BODY_BYTES_MAX,
        .peer = "the server",
    };
    buf_init(&request->head, CLIENT_HEAD_BYTES_MAX);
    request->timer = timer_new(client->loop, on_request_timer, request);
    request->easy = curl_easy_init();
    if (!request->easy) abort();
    client->count++;
    link_append(&client->todo, &request->link);
    loop_defer(client->loop, &client->work);
    if (set_options(request, options)) set_state(request, ENDED);
    return request;
}

str client_header_get(const struct client_request *request, str name)
{
    str rest = buf_str(&request->head);
    while (rest.p && rest.len) {
        str line = str_split(&rest, '\n');
        ptrdiff_t colon = str_find_char(line, ':');
        if (colon < 0 || !str_eq_nocase((str){line.p, (size_t)colon}, name)) continue;
        str value = str_drop(line, (size_t)colon + 1);
        if (str_ends(value, STR("\r"))) value.len--;
        return str_trim(value);
    }
    return STR_EMPTY;
}

bool client_request_sent(const struct client_request *request)
{
    return request->sent;
}

void client_pause(struct client_request *request)
{
    request->paused = true;
}

void client_resume(struct client_request *request)
{
    struct client *client = request->client;
    if (!request->paused) return;
    request->paused = false;
    request->quiet_since = loop_now(client->loop);
    if (request->state == ACTIVE) timer_start(request->timer, due(request) - request->quiet_since);
    if (!request->stopped || request->resumed) return;
    request->resumed = true;
    client->resumed++;
    loop_defer(client->loop, &client->work);
}

void client_cancel(struct client_request *request)
{
    if (request->state != DONE) set_state(request, CANCELLED);
}

/* ---- one request, waited for ---- */

struct http_client_call {
    struct loop *loop;
    struct buf *body;
    int status;
    enum err err;
    struct fault fault;
};

static void on_call_head(void *arg, struct client_request *request, int status)
{
    (void)request;
    ((struct http_client_call *)arg)->status = status;
}

static void on_call_body(void *arg, str bytes)
{
    buf_append(((struct http_client_call *)arg)->body, bytes);
}

static void on_call_done(void *arg, enum err e, const struct fault *reason)
{
    struct http_client_call *call = arg;
    call->err = e;
    call->fault = *reason;
    loop_stop(call->loop);
}

enum err client_call(const struct client_options *options, int *ret_status, struct buf *body,
                     struct fault *reterr)
{
    static const struct client_ops ops = {on_call_head, on_call_body, on_call_done};
    size_t before = body->len;
    struct client_options bounded = *options;
    uint64_t room = body->max - before;
    if (!bounded.body_bytes_max || bounded.body_bytes_max > room) bounded.body_bytes_max = room;

    struct http_client_call call = {.loop = loop_new(), .body = body};
    struct client *client = client_new(call.loop);
    client_send(client, &bounded, &ops, &call);
    loop_run(call.loop);
    client_free(client);
    loop_free(call.loop);
    if (!call.err && body->full)
        call.err = fault(&call.fault, ERR_TOO_LARGE, "the answer is too large");
    if (call.err) {
        body->len = before;
        if (reterr) *reterr = call.fault;
        return call.err;
    }
    *ret_status = call.status;
    return OK;
}
