/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators ask: healthz, readyz, metrics, the API document.
 */
#include <time.h>

#include "agent/shell/payload_retry.h"
#include "feed/feed.h"
#include "http/exchange.h"
#include "http/handlers.h"
#include "http/openapi.h"
#include "server/server.h"
#include "store/blob/blob.h"
#include "store/db/store.h"

void handle_healthz(struct exchange *x)
{
    exchange_json(x, 200, STR("{\"status\":\"ok\"}"));
}

/* Asked without a queue: what the store knows of itself. */
void handle_readyz(struct exchange *x)
{
    struct fault why = {0};
    enum err e = x->server->stopping ? ERR_SHUTTING_DOWN : OK;
    enum err store = e ? OK : store_ready(x->server->store);
    if (store == ERR_STORAGE_FULL)
        e = fault(&why, ERR_STORE_UNAVAILABLE, "the disk is full: nothing can be written");
    else if (store)
        e = fault(&why, ERR_STORE_UNAVAILABLE, "the disk does not answer: a write takes too long");
    if (e)
        exchange_error(x, e, &why);
    else
        handle_healthz(x);
}

void handle_metrics(struct exchange *x)
{
    struct server *server = x->server;
    struct store_stats store = store_stats(server->store);
    struct metrics *metrics = &server->metrics;
    metrics->connections = http_server_connections(server->http);
    metrics->runs_active = runs_active(server->runs);
    metrics->streams = feeds_streams(server->feeds);
    metrics->store_commits = store.commits;
    metrics->store_jobs = store.jobs;
    metrics->store_reads = store.reads;
    metrics->statements_write = store.statements_write;
    metrics->statements_read = store.statements_read;
    metrics->store_retries = store.retries;
    metrics->store_full = store.full;
    struct blob_stats blobs = blobs_stats(server->blobs);
    metrics->blob_puts_ok = blobs.puts - blobs.puts_failed;
    metrics->blob_puts_failed = blobs.puts_failed;
    metrics->blob_gets_ok = blobs.gets - blobs.gets_failed;
    metrics->blob_gets_failed = blobs.gets_failed;
    metrics->blobs_damaged = blobs.damaged;
    metrics->blobs_swept = blobs.swept;
    metrics->blobs_waiting = payload_retry_waiting(server->retry);
    metrics->resident_bytes = metrics_resident_bytes();

    struct buf body;
    buf_init(&body, 64 * 1024);
    metrics_write(metrics, &body);
    http_answer(x->request,
                &(struct http_answer){.status = 200,
                                      .content_type = "text/plain; version=0.0.4; charset=utf-8",
                                      .body = buf_str(&body)});
    buf_done(&body);
}

void handle_openapi(struct exchange *x)
{
    struct buf body;
    buf_init(&body, 1024 * 1024);
    openapi_write(&body, &public_routes);
    exchange_json(x, 200, buf_str(&body));
    buf_done(&body);
}
