/* SPDX-License-Identifier: Apache-2.0
 *
 * load slow: N clients that hold a connection without using it, and M healthy ones beside them.
 *
 *   head   a request's head at one byte every two seconds
 *   body   a large announced body at one byte every two seconds
 *   read   asks for --slow-url and never reads a byte of the answer
 *
 * The figure is what the healthy clients see: each asks, waits for the answer, and asks again. Run
 * it with --kind none for the floor without slow clients. When a slow client was cut is counted
 * too: a 408 or an end of the connection for the first two kinds, a reset for the third, whose
 * reader would not see anything gentler.
 */
#include "load.h"

#include <inttypes.h>

enum {
    DRIP_MS = 2000,
    READ_WINDOW_BYTES = 4096, /* small, so that the server's writes stop soon */
    BODY_BYTES = 1000000,
};

enum slow_kind { SLOW_NONE, SLOW_HEAD, SLOW_BODY, SLOW_READ, SLOW_KINDS };
static const char *const slow_kinds[SLOW_KINDS] = {"none", "head", "body", "read"};

struct run {
    const struct options *options;
    enum slow_kind kind;
    struct net net;
    struct target target, slow_target;
    nsec start;

    struct slow *slow;
    uint64_t slow_count, cut, timed_out; /* timed_out: cut with a 408 */
    nsec first_cut, last_cut;

    struct healthy *healthy;
    struct buf request;
    struct hist hist;
    uint64_t errors;
    bool measuring;
};

struct slow {
    struct peer peer;
    struct run *run;
    struct answer answer;
};

struct healthy {
    struct peer peer;
    struct run *run;
    struct answer answer;
    nsec sent_at;
};

/* ---- slow ones ---- */

static void on_slow_bytes(struct peer *peer, str bytes)
{
    struct slow *slow = CONTAINER(peer, struct slow, peer);
    str piece;
    for (int i = 0; i < 4 && bytes.len; i++)
        if (answer_feed(&slow->answer, &bytes, &piece) == ANSWER_HEAD)
            slow->run->timed_out += slow->answer.status == 408;
}

static void on_slow_end(struct peer *peer, int error)
{
    (void)error;
    struct run *run = CONTAINER(peer, struct slow, peer)->run;
    nsec after = run->net.now - run->start;
    if (!run->cut++) run->first_cut = after;
    run->last_cut = after;
}

static void slow_begin(struct slow *slow)
{
    struct run *run = slow->run;
    const struct target *target = &run->slow_target;
    AUTO(buf_done) struct buf bytes;
    buf_init(&bytes, OUT_BYTES_MAX);
    switch (run->kind) {
    case SLOW_HEAD:
        buf_printf(&bytes, "GET %s HTTP/1.1\r\nHost: %s\r\nX-Slow: ", target->path, target->host);
        break;
    case SLOW_BODY:
        buf_printf(&bytes,
                   "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: text/plain\r\n"
                   "Content-Length: %d\r\n\r\n",
                   target->path, target->host, BODY_BYTES);
        break;
    default:
        request_write(&bytes, "GET", target, STR_EMPTY);
        break;
    }
    int window = run->kind == SLOW_READ ? READ_WINDOW_BYTES : 0;
    peer_dial(&run->net, &slow->peer, target, 0, window);
    peer_send(&slow->peer, buf_str(&bytes));
    if (run->kind == SLOW_READ) peer_hold(&slow->peer);
}

/* Every slow client that is still there gets its byte. */
static void drip(struct run *run)
{
    for (uint64_t i = 0; i < run->slow_count; i++)
        if (run->slow[i].peer.fd >= 0) peer_send(&run->slow[i].peer, STR("x"));
}

static void open_slow(struct run *run)
{
    for (uint64_t i = 0; i < run->slow_count; i++) {
        struct slow *slow = &run->slow[i];
        slow->run = run;
        slow->peer.on_bytes = on_slow_bytes;
        slow->peer.on_end = on_slow_end;
        answer_init(&slow->answer);
        slow_begin(slow);
        if (i % OPENING_MAX == 0) net_turn(&run->net, now_ns() + NS_PER_MS);
    }
}

/* ---- healthy ones ---- */

static void ask(struct healthy *client)
{
    client->sent_at = now_ns();
    peer_send(&client->peer, buf_str(&client->run->request));
}

static void on_healthy_bytes(struct peer *peer, str bytes)
{
    struct healthy *client = CONTAINER(peer, struct healthy, peer);
    struct run *run = client->run;
    str piece;
    for (;;) {
        enum answer_event event = answer_feed(&client->answer, &bytes, &piece);
        if (event == ANSWER_MORE) return;
        if (event == ANSWER_BAD) {
            run->errors++;
            peer_close(peer);
            return;
        }
        if (event != ANSWER_END) continue;
        run->errors += client->answer.status != 200;
        if (run->measuring) hist_add(&run->hist, run->net.now - client->sent_at);
        ask(client);
    }
}

static void on_healthy_end(struct peer *peer, int error)
{
    (void)error;
    CONTAINER(peer, struct healthy, peer)->run->errors++;
}

static void open_healthy(struct run *run)
{
    for (uint64_t i = 0; i < run->options->healthy; i++) {
        struct healthy *client = &run->healthy[i];
        client->run = run;
        client->peer.on_bytes = on_healthy_bytes;
        client->peer.on_end = on_healthy_end;
        answer_init(&client->answer);
        peer_dial(&run->net, &client->peer, &run->target, 0, 0);
        ask(client);
    }
}

/* ---- the run ---- */

static enum slow_kind kind_parse(const char *name)
{
    for (int i = 0; i < SLOW_KINDS; i++)
        if (str_eq(str_c(name), str_c(slow_kinds[i]))) return (enum slow_kind)i;
    die("--kind is none, head, body or read");
}

static void run_init(struct run *run, const struct options *options)
{
    *run = (struct run){.options = options, .kind = kind_parse(options->kind)};
    target_parse(options->url, &run->target);
    target_parse(options->slow_url ? options->slow_url : options->url, &run->slow_target);
    net_init(&run->net);
    run->slow_count = run->kind == SLOW_NONE ? 0 : options->conns;
    run->slow = calloc(options->conns, sizeof *run->slow);
    run->healthy = calloc(options->healthy, sizeof *run->healthy);
    if (!run->slow || !run->healthy) die("out of memory");
    buf_init(&run->request, OUT_BYTES_MAX);
    request_write(&run->request, "GET", &run->target, STR_EMPTY);
}

static void run_done(struct run *run)
{
    for (uint64_t i = 0; i < run->slow_count; i++) {
        if (run->slow[i].peer.fd >= 0) peer_reset(&run->slow[i].peer);
        answer_done(&run->slow[i].answer);
    }
    for (uint64_t i = 0; i < run->options->healthy; i++) {
        peer_close(&run->healthy[i].peer);
        answer_done(&run->healthy[i].answer);
    }
    free(run->slow);
    free(run->healthy);
    buf_done(&run->request);
    net_done(&run->net);
}

static void serve(struct run *run)
{
    bool dripping = run->kind == SLOW_HEAD || run->kind == SLOW_BODY;
    nsec end = run->start + run->options->seconds * NS_PER_S;
    nsec next_drip = run->start + DRIP_MS * NS_PER_MS;
    run->measuring = true;
    while (now_ns() < end) {
        net_turn(&run->net, next_drip < end ? next_drip : end);
        if (now_ns() < next_drip) continue;
        next_drip += DRIP_MS * NS_PER_MS;
        if (dripping) drip(run);
    }
}

int load_slow(const struct options *options)
{
    static struct run run; /* its histogram is large for a stack */
    struct usage before, after;
    run_init(&run, options);
    usage_read(options->pid, &before);
    run.start = now_ns();
    open_slow(&run);
    open_healthy(&run);
    serve(&run);
    usage_read(options->pid, &after);

    printf("{\"mode\":\"slow\",\"kind\":\"%s\",\"slow\":%" PRIu64 ",\"healthy\":%" PRIu64
           ",\"requests\":%" PRIu64 ",\"errors\":%" PRIu64
           ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f,\"cut\":%" PRIu64
           ",\"cut_408\":%" PRIu64 ",\"first_cut_s\":%.2f,\"last_cut_s\":%.2f"
           ",\"rss_kib_before\":%" PRIu64 ",\"rss_kib_after\":%" PRIu64 ",\"fds_before\":%" PRIu64
           ",\"fds_after\":%" PRIu64 ",\"server_cpu_s\":%.2f}\n",
           slow_kinds[run.kind], run.slow_count, options->healthy, run.hist.count, run.errors,
           hist_us(&run.hist, 0.5), hist_us(&run.hist, 0.99), (double)run.hist.max / 1000, run.cut,
           run.timed_out, (double)run.first_cut / 1e9, (double)run.last_cut / 1e9, before.rss_kib,
           after.rss_kib, before.fds, after.fds, after.cpu_s - before.cpu_s);

    int status = run.errors || run.hist.count == 0;
    run_done(&run);
    return status;
}
