/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of an adapter on their way to its platform, and the replies back.
 *
 * Invariants:
 * 1. A request is sent once: a message that a platform got twice is a message that a person sees
 *    twice. What is to be done about a failure is the errand's to say.
 * 2. A reply is bounded; one that is longer ends as ERR_TOO_LARGE.
 * 3. A request that may only go to certain hosts goes nowhere else; a platform on this machine, as in
 *    tests, may name others on this machine.
 */
#include "chat/platform_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/limits.h"
#include "net/http_client.h"
#include "net/loop.h"

struct trip {
    struct client *client;
    const struct clock *clock;
    const struct channel_home *home;
    errand_fn *step;
    struct errand *errand;
    void (*on_done)(void *arg, struct errand *errand);
    void *arg;
    struct timer *soon; /* the first step, and an end, never come from inside a call of others */
    struct client_request *request;
    struct buf body;
    const char *want;
    str wanted;
    int status;
};

/* ---- hosts ---- */

/* "example.org" of "https://name@example.org:8443/path". */
static str host_of(str url)
{
    ptrdiff_t at = str_find(url, STR("://"));
    str rest = at < 0 ? STR_EMPTY : str_drop(url, (size_t)at + 3);
    size_t end = 0;
    while (end < rest.len && rest.p[end] != '/' && rest.p[end] != '?' && rest.p[end] != '#') end++;
    str host = {rest.p, end};
    for (ptrdiff_t mark; (mark = str_find_char(host, '@')) >= 0;)
        host = str_drop(host, (size_t)mark + 1);
    if (host.len && host.p[0] == '[') {
        ptrdiff_t close = str_find_char(host, ']');
        return close < 0 ? STR_EMPTY : (str){host.p, (size_t)close + 1};
    }
    return str_split(&host, ':');
}

static bool is_here(str host)
{
    return str_eq(host, STR("127.0.0.1")) || str_eq(host, STR("localhost")) ||
           str_eq(host, STR("[::1]"));
}

bool platform_request_may(str base_url, str url, const char *only_host)
{
    str host = host_of(url), end = str_c(only_host ? only_host : "");
    if (!only_host) return true;
    if (is_here(host_of(base_url))) return is_here(host);
    if (!str_starts(url, STR("https://")) || host.len < end.len) return false;
    return str_eq_nocase(str_drop(host, host.len - end.len), end);
}

/* ---- a request ---- */

static void on_head(void *arg, struct client_request *request, int status)
{
    struct trip *trip = arg;
    trip->status = status;
    if (trip->want)
        trip->wanted =
            arena_str(trip->errand->arena, client_header_get(request, str_c(trip->want)));
}

static void on_body(void *arg, str bytes)
{
    struct trip *trip = arg;
    buf_append(&trip->body, bytes);
}

static void go(struct trip *trip, const struct channel_reply *reply);

static void on_reply(void *arg, enum err e, const struct fault *reason)
{
    struct trip *trip = arg;
    bool sent = client_request_sent(trip->request);
    trip->request = NULL;
    struct channel_reply reply = {.e = e,
                                  .sent = sent,
                                  .status = trip->status,
                                  .body = buf_str(&trip->body),
                                  .wanted = trip->wanted,
                                  .reason = e && reason ? reason->text : ""};
    go(trip, &reply);
}

static const struct client_ops ops = {.on_head = on_head, .on_body = on_body, .on_done = on_reply};

static void send_request(struct trip *trip, const struct channel_request *request)
{
    struct arena *arena = trip->errand->arena;
    struct client_header headers[CHANNEL_HEADERS_MAX];
    size_t bytes_max = request->bytes_max ? request->bytes_max : CHANNEL_REPLY_BYTES_MAX;
    for (size_t i = 0; i < request->header_count; i++)
        headers[i] = (struct client_header){request->headers[i].name,
                                            arena_cstr(arena, request->headers[i].value)};
    buf_done(&trip->body);
    buf_init(&trip->body, bytes_max);
    trip->status = 0;
    trip->want = request->want;
    trip->wanted = STR_EMPTY;
    trip->request = client_send(trip->client,
                                &(struct client_options){.method = request->method,
                                                         .url = arena_cstr(arena, request->url),
                                                         .headers = headers,
                                                         .header_count = request->header_count,
                                                         .body = request->body,
                                                         .once = true,
                                                         .first_byte_ms = request->timeout_ms,
                                                         .idle_ms = request->timeout_ms,
                                                         .total_ms = request->timeout_ms,
                                                         .body_bytes_max = bytes_max},
                                &ops, trip);
}

/* ---- the trip ---- */

static void platform_request_end(struct trip *trip)
{
    void (*on_done)(void *, struct errand *) = trip->on_done;
    void *arg = trip->arg;
    struct errand *errand = trip->errand;
    timer_free(trip->soon);
    buf_done(&trip->body);
    free(trip);
    on_done(arg, errand);
}

static void go(struct trip *trip, const struct channel_reply *given)
{
    struct errand *errand = trip->errand;
    struct channel_request request = {.method = "GET"};
    struct channel_reply reply = {0};
    if (given) {
        reply = *given;
        reply.body =
            arena_str(errand->arena, given->body); /* the next request has its own buffer */
    }
    errand->now = clock_wall(trip->clock);
    crypto_random(errand->random, sizeof errand->random);
    if (!trip->step(trip->home, errand, given ? &reply : NULL, &request)) {
        platform_request_end(trip);
        return;
    }
    if (!platform_request_may(trip->home->base_url, request.url, request.only_host)) {
        str host = host_of(request.url);
        errand->verdict = VERDICT_REFUSED;
        snprintf(errand->detail, sizeof errand->detail,
                 "the platform named a host that is not its own: %.*s",
                 (int)(host.len < 80 ? host.len : 80), host.p ? host.p : "");
        platform_request_end(trip);
        return;
    }
    send_request(trip, &request);
}

static void on_soon(void *arg)
{
    go(arg, NULL);
}

struct trip *platform_request_go(struct client *client, const struct clock *clock,
                                 const struct channel_home *home, errand_fn *step,
                                 struct errand *errand,
                                 void (*on_done)(void *arg, struct errand *errand), void *arg)
{
    struct trip *trip = calloc(1, sizeof *trip);
    if (!trip) abort();
    *trip = (struct trip){.client = client,
                          .clock = clock,
                          .home = home,
                          .step = step,
                          .errand = errand,
                          .on_done = on_done,
                          .arg = arg};
    buf_init(&trip->body, 1);
    trip->soon = timer_new(client_loop(client), on_soon, trip);
    timer_start(trip->soon, 0);
    return trip;
}

void trip_cancel(struct trip *trip)
{
    if (!trip) return;
    if (trip->request) client_cancel(trip->request);
    timer_free(trip->soon);
    buf_done(&trip->body);
    free(trip);
}
