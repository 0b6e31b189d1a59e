/* SPDX-License-Identifier: Apache-2.0
 *
 * load http: N connections kept alive, each with K requests under way; the next one goes out when
 * an answer has come in whole. Anything but a 200, and any connection that ends, is an error: a
 * server that answers fewer requests by dropping them must not look faster.
 */
#include "load.h"

#include <inttypes.h>

struct run {
    const struct options *options;
    struct net net;
    struct target target;
    struct buf requests; /* `pipeline` copies of the request, one behind the other */
    size_t request_bytes;
    struct hist hist;
    uint64_t errors;
    uint64_t alive;
};

struct client {
    struct peer peer;
    struct run *run;
    struct answer answer;
    nsec sent_at[PIPELINE_MAX]; /* a ring: answers come in the order of requests */
    uint64_t sent, answered;
};

static void send_requests(struct client *client, uint64_t count)
{
    struct run *run = client->run;
    nsec now = now_ns();
    for (uint64_t i = 0; i < count; i++) client->sent_at[client->sent++ % PIPELINE_MAX] = now;
    peer_send(&client->peer, (str){run->requests.p, run->request_bytes * count});
}

static void answered(struct client *client)
{
    struct run *run = client->run;
    nsec sent = client->sent_at[client->answered++ % PIPELINE_MAX];
    hist_add(&run->hist, run->net.now - sent);
    if (client->answer.status != 200) run->errors++;
}

static void client_lost(struct client *client)
{
    peer_close(&client->peer);
    client->run->errors++;
    client->run->alive--;
}

static void on_bytes(struct peer *peer, str bytes)
{
    struct client *client = CONTAINER(peer, struct client, peer);
    uint64_t before = client->answered;
    for (;;) {
        str piece;
        enum answer_event event = answer_feed(&client->answer, &bytes, &piece);
        if (event == ANSWER_END) answered(client);
        if (event == ANSWER_MORE) break;
        if (event == ANSWER_BAD || client->answered > client->sent) {
            client_lost(client);
            return;
        }
    }
    if (client->answered > before) send_requests(client, client->answered - before);
}

static void on_end(struct peer *peer, int error)
{
    (void)error;
    client_lost(CONTAINER(peer, struct client, peer));
}

static void open_clients(struct run *run, struct client *clients)
{
    for (uint64_t i = 0; i < run->options->conns; i++) {
        struct client *client = &clients[i];
        client->run = run;
        client->peer.on_bytes = on_bytes;
        client->peer.on_end = on_end;
        answer_init(&client->answer);
        peer_dial(&run->net, &client->peer, &run->target, 0, 0);
        run->alive++;
    }
}

int load_http(const struct options *options)
{
    struct run run = {.options = options};
    target_parse(options->url, &run.target);
    net_init(&run.net);
    buf_init(&run.requests, OUT_BYTES_MAX);
    for (uint64_t i = 0; i < options->pipeline; i++)
        request_write(&run.requests, "GET", &run.target, STR_EMPTY);
    run.request_bytes = run.requests.len / options->pipeline;

    struct client *clients = calloc(options->conns, sizeof *clients);
    if (!clients) die("out of memory");
    open_clients(&run, clients);

    struct usage before, after;
    usage_read(options->pid, &before);
    double own_before = own_cpu_s();
    nsec start = now_ns();
    nsec end = start + options->seconds * NS_PER_S;
    for (uint64_t i = 0; i < options->conns; i++) send_requests(&clients[i], options->pipeline);
    while (run.alive && now_ns() < end) net_turn(&run.net, end);
    double seconds = (double)(now_ns() - start) / 1e9;
    double own = own_cpu_s() - own_before;
    usage_read(options->pid, &after);

    printf("{\"mode\":\"http\",\"conns\":%" PRIu64 ",\"pipeline\":%" PRIu64
           ",\"seconds\":%.3f,\"requests\":%" PRIu64 ",\"errors\":%" PRIu64
           ",\"rps\":%.0f,\"p50_us\":%.1f,\"p95_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f"
           ",\"server_cpu_s\":%.2f,\"load_cpu_s\":%.2f}\n",
           options->conns, options->pipeline, seconds, run.hist.count, run.errors,
           (double)run.hist.count / seconds, hist_us(&run.hist, 0.5), hist_us(&run.hist, 0.95),
           hist_us(&run.hist, 0.99), (double)run.hist.max / 1000, after.cpu_s - before.cpu_s, own);

    for (uint64_t i = 0; i < options->conns; i++) {
        peer_close(&clients[i].peer);
        answer_done(&clients[i].answer);
    }
    free(clients);
    buf_done(&run.requests);
    net_done(&run.net);
    return run.errors || run.hist.count == 0;
}
