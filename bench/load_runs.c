/* SPDX-License-Identifier: Apache-2.0
 *
 * load runs: N clients, each with one run under way. A client does what a chat page does: it posts
 * a message on a connection kept alive, and reads the thread's events on another one until it sees
 * run.finished; then it posts the next message. After T runs (--turns) it leaves the thread, closes
 * the stream and begins a new thread with a new stream. With --turns 1 each run pays for a new
 * thread and a new connection; with more they share them.
 *
 *     post ──▶ 202 ──▶ (stream open? no: GET events?after=0) ──▶ run.finished ──▶ post ...
 *
 * A run counts when both its 202 and its run.finished have come. Facts must be numbered 1, 2, 3...
 * without a gap, from the thread's first to its last; any other answer, number or outcome fails the
 * whole run of the benchmark.
 */
#include "load.h"

#include <inttypes.h>
#include <unistd.h>

enum { PATH_BYTES = 600, SOURCES = 200 /* own addresses, because every stream takes a port */ };

struct bench {
    const struct options *options;
    struct net net;
    struct target target;
    struct client *clients;
    struct hist hist;
    uint64_t prefix;  /* of the thread ids, so that no two benchmarks share one */
    uint64_t threads; /* begun so far */
    uint64_t deltas;  /* text deltas seen */
    uint64_t failures;
    bool over; /* time is up: begin nothing more */
    char failure[200];
};

struct client {
    struct bench *bench;
    struct peer post, stream;
    struct answer post_answer, stream_answer;
    struct buf line; /* the beginning of a line whose end has not come yet */
    uint64_t thread; /* its number */
    uint64_t turn;   /* runs finished on it */
    uint64_t seq;    /* newest fact seen */
    nsec sent_at;
    bool streaming;          /* the stream is open or opening */
    bool accepted, finished; /* of the run under way */
};

static void run_post(struct client *client);

static void fail(struct client *client, const char *what, str more)
{
    struct bench *bench = client->bench;
    bench->failures++;
    bench->over = true;
    if (!bench->failure[0])
        snprintf(bench->failure, sizeof bench->failure,
                 "thread %" PRIu64 ", fact %" PRIu64 ": %s%.*s", client->thread, client->seq, what,
                 more.len > 80 ? 80 : (int)more.len, more.p);
}

/* ---- the stream ---- */

static void stream_close(struct client *client)
{
    peer_close(&client->stream);
    answer_done(&client->stream_answer);
    answer_init(&client->stream_answer);
    buf_clear(&client->line);
    client->streaming = false;
}

static void stream_open(struct client *client)
{
    struct bench *bench = client->bench;
    char head[PATH_BYTES];
    int len = snprintf(head, sizeof head,
                       "GET /api/v1/agent/runs/b%" PRIx64 "-%" PRIu64 "/events?after=0 HTTP/1.1\r\n"
                       "Host: %s\r\nAccept: text/event-stream\r\n\r\n",
                       bench->prefix, client->thread, bench->target.host);
    client->streaming = true;
    peer_dial(&bench->net, &client->stream, &bench->target,
              1 + (unsigned)(client->thread % SOURCES), 0);
    peer_send(&client->stream, (str){head, (size_t)len});
}

/* Both halves have come: count the run, begin the next. */
static void run_over(struct client *client)
{
    struct bench *bench = client->bench;
    if (!client->accepted || !client->finished) return;
    hist_add(&bench->hist, bench->net.now - client->sent_at);
    client->turn++;
    if (client->turn == bench->options->turns) {
        stream_close(client);
        client->thread = bench->threads++;
        client->turn = client->seq = 0;
    }
    if (!bench->over) run_post(client);
}

static void take_line(struct client *client, str line)
{
    static const str id = STR("id: "), event = STR("event: ");
    uint64_t number = 0;
    if (str_starts(line, id)) {
        if (str_to_u64(str_drop(line, id.len), &number) || number != client->seq + 1)
            fail(client, "the next fact is ", line);
        client->seq = number;
    } else if (str_starts(line, event)) {
        line = str_drop(line, event.len);
        client->bench->deltas += str_eq(line, STR("text.delta"));
        if (str_eq(line, STR("run.finished"))) client->finished = true;
        if (str_eq(line, STR("run.error")) || str_eq(line, STR("reset"))) fail(client, "", line);
    }
}

/* Lines are taken where they lie; only one cut by the end of a piece is copied. */
static void take_piece(struct client *client, str piece)
{
    while (piece.len) {
        ptrdiff_t at = str_find_char(piece, '\n');
        if (at < 0 || client->line.len)
            buf_append(&client->line, (str){piece.p, at < 0 ? piece.len : (size_t)at});
        if (at < 0) return;
        take_line(client, client->line.len ? buf_str(&client->line) : (str){piece.p, (size_t)at});
        buf_clear(&client->line);
        piece = str_drop(piece, (size_t)at + 1);
    }
}

static void on_stream_bytes(struct peer *peer, str bytes)
{
    struct client *client = CONTAINER(peer, struct client, stream);
    str piece;
    enum answer_event event;
    while ((event = answer_feed(&client->stream_answer, &bytes, &piece)) != ANSWER_MORE) {
        if (event == ANSWER_HEAD && client->stream_answer.status != 200)
            fail(client, "the stream was refused", STR_EMPTY);
        if (event == ANSWER_BODY) take_piece(client, piece);
        if (event == ANSWER_END || event == ANSWER_BAD) {
            fail(client, "the stream ended", STR_EMPTY);
            return;
        }
    }
    if (client->finished) run_over(client);
}

static void on_stream_end(struct peer *peer, int error)
{
    fail(CONTAINER(peer, struct client, stream), "the stream was cut",
         error ? str_c(strerror(error)) : STR_EMPTY);
}

/* ---- posting ---- */

static void run_post(struct client *client)
{
    struct bench *bench = client->bench;
    char body[256], head[PATH_BYTES];
    int body_len = snprintf(body, sizeof body,
                            "{\"threadId\":\"b%" PRIx64 "-%" PRIu64
                            "\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello there\"}]}",
                            bench->prefix, client->thread);
    int head_len = snprintf(head, sizeof head,
                            "POST /api/v1/agent/runs HTTP/1.1\r\nHost: %s\r\n"
                            "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                            bench->target.host, body_len, body);
    client->accepted = client->finished = false;
    client->sent_at = now_ns();
    peer_send(&client->post, (str){head, (size_t)head_len});
}

static void on_post_bytes(struct peer *peer, str bytes)
{
    struct client *client = CONTAINER(peer, struct client, post);
    str piece;
    enum answer_event event;
    while ((event = answer_feed(&client->post_answer, &bytes, &piece)) != ANSWER_MORE) {
        if (event == ANSWER_BAD || (event == ANSWER_HEAD && client->post_answer.status != 202)) {
            fail(client, "the message was refused ", bytes);
            return;
        }
        if (event != ANSWER_END) continue;
        client->accepted = true;
        if (!client->streaming) stream_open(client);
        run_over(client);
    }
}

static void on_post_end(struct peer *peer, int error)
{
    fail(CONTAINER(peer, struct client, post), "a connection was cut",
         error ? str_c(strerror(error)) : STR_EMPTY);
}

/* ---- all of it ---- */

static void clients_open(struct bench *bench)
{
    bench->clients = calloc(bench->options->conns, sizeof *bench->clients);
    if (!bench->clients) die("out of memory");
    for (uint64_t i = 0; i < bench->options->conns; i++) {
        struct client *client = &bench->clients[i];
        client->bench = bench;
        client->thread = bench->threads++;
        client->stream.fd = -1;
        client->post.on_bytes = on_post_bytes;
        client->post.on_end = on_post_end;
        client->stream.on_bytes = on_stream_bytes;
        client->stream.on_end = on_stream_end;
        answer_init(&client->post_answer);
        answer_init(&client->stream_answer);
        buf_init(&client->line, EVENT_BYTES_MAX);
        peer_dial(&bench->net, &client->post, &bench->target, 0, 0);
    }
}

static void clients_close(struct bench *bench)
{
    for (uint64_t i = 0; i < bench->options->conns; i++) {
        struct client *client = &bench->clients[i];
        peer_close(&client->post);
        peer_close(&client->stream);
        answer_done(&client->post_answer);
        answer_done(&client->stream_answer);
        buf_done(&client->line);
    }
    free(bench->clients);
}

int load_runs(const struct options *options)
{
    struct bench bench = {.options = options,
                          .prefix = (uint64_t)time(NULL) << 20 | ((uint64_t)getpid() & 0xfffff)};
    target_parse(options->url, &bench.target);
    net_init(&bench.net);
    clients_open(&bench);

    struct usage before, after;
    usage_read(options->pid, &before);
    double own_before = own_cpu_s();
    nsec start = now_ns(), end = start + options->seconds * NS_PER_S;
    for (uint64_t i = 0; i < options->conns; i++) run_post(&bench.clients[i]);
    while (!bench.over && now_ns() < end) net_turn(&bench.net, end);
    bench.over = true;
    double seconds = (double)(now_ns() - start) / 1e9, own = own_cpu_s() - own_before;
    usage_read(options->pid, &after);

    uint64_t runs = bench.hist.count;
    double per_run = runs ? 1 / (double)runs : 0;
    if (bench.failure[0]) fprintf(stderr, "load: %s\n", bench.failure);
    printf("{\"mode\":\"runs\",\"conns\":%" PRIu64 ",\"turns\":%" PRIu64
           ",\"seconds\":%.3f,\"runs\":%" PRIu64 ",\"errors\":%" PRIu64
           ",\"runs_per_s\":%.0f,\"deltas_per_run\":%.1f"
           ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f"
           ",\"server_cpu_us_per_run\":%.1f,\"server_cpu_s\":%.2f,\"load_cpu_s\":%.2f}\n",
           options->conns, options->turns, seconds, runs, bench.failures, (double)runs / seconds,
           (double)bench.deltas * per_run, hist_us(&bench.hist, 0.5), hist_us(&bench.hist, 0.99),
           (double)bench.hist.max / 1000, (after.cpu_s - before.cpu_s) * 1e6 * per_run,
           after.cpu_s - before.cpu_s, own);
    clients_close(&bench);
    net_done(&bench.net);
    return bench.failures || runs == 0;
}
