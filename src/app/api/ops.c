/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators ask: alive, ready, figures, the API document.
 */
#include <time.h>

#include "agent/keeper.h"
#include "app/api/handlers.h"
#include "app/api/openapi.h"
#include "app/feed/feed.h"
#include "app/http/exchange.h"
#include "app/server.h"
#include "app/socket/session.h"
#include "store/blob.h"
#include "store/store.h"

void handle_healthz(struct exchange *x)
{
    exchange_json(x, 200, STR("{\"status\":\"ok\"}"));
}

struct ready_job {
    struct job job;
    struct exchange *x;
};

static enum err ready_run(struct job *job, struct db *db)
{
    (void)job;
    (void)db; /* that the job runs inside a transaction is the answer */
    return OK;
}

static void ready_done(struct job *job, enum err e)
{
    struct exchange *x = ((struct ready_job *)(void *)job)->x;
    if (e)
        exchange_error(x, e, NULL);
    else
        handle_healthz(x);
}

void handle_readyz(struct exchange *x)
{
    if (x->server->stopping) {
        exchange_error(x, ERR_SHUTTING_DOWN, NULL);
        return;
    }
    struct ready_job *ask = ARENA_NEW(exchange_arena(x), struct ready_job);
    *ask = (struct ready_job){.job = {.run = ready_run, .done = ready_done}, .x = x};
    store_read(x->server->store, &ask->job);
}

void handle_metrics(struct exchange *x)
{
    struct server *server = x->server;
    struct store_stats store = store_stats(server->store);
    struct metrics *metrics = &server->metrics;
    metrics->connections = http_server_connections(server->http);
    metrics->runs_active = runs_active(server->runs);
    metrics->streams = feeds_streams(server->feeds);
    metrics->sockets = sockets_count(server->sockets);
    metrics->store_commits = store.commits;
    metrics->store_jobs = store.jobs;
    metrics->store_retries = store.retries;
    metrics->store_full = store.full;
    struct blob_stats blobs = blobs_stats(server->blobs);
    metrics->blob_puts_ok = blobs.puts - blobs.puts_failed;
    metrics->blob_puts_failed = blobs.puts_failed;
    metrics->blob_gets_ok = blobs.gets - blobs.gets_failed;
    metrics->blob_gets_failed = blobs.gets_failed;
    metrics->blobs_damaged = blobs.damaged;
    metrics->blobs_swept = blobs.swept;
    metrics->blobs_waiting = keeper_waiting(server->keeper);
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
