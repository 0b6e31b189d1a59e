/* SPDX-License-Identifier: Apache-2.0
 *
 * load runs: N clients, each with one run under way. A client does what a chat page does: it posts
 * a message on a connection kept alive, and reads the thread's events on another one until it sees
 * run.finished; then it posts the next message. After T runs (--turns) it leaves the thread, closes
 * the stream and begins a new thread with a new stream. With --turns 1 each run pays for a new
 * thread and a new connection; with more they share them.
 *
 *     post ──▶ 202 ──▶ (stream open? no: GET events?after=0) ──▶ run.finished ──▶ post ...
 *                                                             │ interrupted   ▲
 *                                                             ▼               │
 *                                                     POST answer ──▶ 200 ────┘
 *
 * A run that asks something is answered as soon as it waits, --pauses times; the time from sending
 * the answer to the first event after it is a figure of its own.
 *
 * A run counts when both its 202 and its last run.finished have come. Facts must be numbered 1, 2,
 * 3... without a gap, from the thread's first to its last; any other answer, number, outcome or
 * count of pauses fails the whole run of the benchmark.
 */
#include "load.h"

#include <inttypes.h>
#include <unistd.h>

enum {
    PATH_BYTES = 600,
    ID_BYTES_MAX = 64, /* of an interaction; ours have 30 */
    SOURCES = 200,     /* own addresses, because every stream takes a port */
};

struct bench {
    const struct options *options;
    struct net net;
    struct target target;
    struct client *clients;
    struct hist hist;    /* of whole runs */
    struct hist answers; /* from sending an answer to the first event after it */
    uint64_t prefix;     /* of the thread ids, so that no two benchmarks share one */
    uint64_t threads;    /* begun so far */
    uint64_t deltas;     /* text deltas seen */
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
    enum { LINE_OTHER, LINE_ASKED, LINE_FINISHED } event; /* whose data comes next */
    char asked[ID_BYTES_MAX];                             /* the interaction it waits for */
    uint64_t pauses;                                      /* of the run under way */
    nsec sent_at;
    nsec answered_at; /* 0: the first event after it has come */
    bool streaming;   /* the stream is open or opening */
    bool posting;     /* a request is under way */
    bool waiting;     /* the run is, for an answer */
    bool finished;    /* it is, for good */
};

static void run_post(struct client *client);
static void answer_post(struct client *client);

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

/* The last leg and the last answer to a request have come: count the run, begin the next. */
static void run_over(struct client *client)
{
    struct bench *bench = client->bench;
    if (client->pauses != bench->options->pauses)
        fail(client, "another number of pauses", STR_EMPTY);
    hist_add(&bench->hist, bench->net.now - client->sent_at);
    client->turn++;
    if (client->turn == bench->options->turns) {
        stream_close(client);
        client->thread = bench->threads++;
        client->turn = client->seq = 0;
    }
    if (!bench->over) run_post(client);
}

/* Whatever the run is waiting for, once nothing is under way. */
static void go_on(struct client *client)
{
    if (client->posting) return;
    if (client->finished)
        run_over(client);
    else if (client->waiting)
        answer_post(client);
}

static void take_event(struct client *client, str name)
{
    struct bench *bench = client->bench;
    client->event = LINE_OTHER;
    if (client->answered_at) hist_add(&bench->answers, bench->net.now - client->answered_at);
    client->answered_at = 0;
    bench->deltas += str_eq(name, STR("text.delta"));
    if (str_eq(name, STR("interaction.request"))) client->event = LINE_ASKED;
    if (str_eq(name, STR("run.finished"))) client->event = LINE_FINISHED;
    if (str_eq(name, STR("run.error")) || str_eq(name, STR("reset"))) fail(client, "", name);
}

static void take_data(struct client *client, str data)
{
    if (client->event == LINE_ASKED)
        snprintf(client->asked, sizeof client->asked, "%.*s",
                 STR_ARG(member_text(data, STR("\"interactionId\":\""))));
    if (client->event != LINE_FINISHED) return;
    str outcome = member_text(data, STR("\"outcome\":\""));
    client->finished = str_eq(outcome, STR("completed"));
    client->waiting = str_eq(outcome, STR("interrupted"));
    if (!client->finished && !client->waiting) fail(client, "the outcome is ", outcome);
}

static void take_line(struct client *client, str line)
{
    static const str id = STR("id: "), event = STR("event: "), data = STR("data: ");
    uint64_t number = 0;
    if (str_starts(line, id)) {
        if (str_to_u64(str_drop(line, id.len), &number) || number != client->seq + 1)
            fail(client, "the next fact is ", line);
        client->seq = number;
    } else if (str_starts(line, event)) {
        take_event(client, str_drop(line, event.len));
    } else if (str_starts(line, data)) {
        take_data(client, line);
    }
}

static void take_piece(struct client *client, str piece)
{
    str line;
    while (line_next(&client->line, &piece, &line)) take_line(client, line);
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
    go_on(client);
}

static void on_stream_end(struct peer *peer, int error)
{
    fail(CONTAINER(peer, struct client, stream), "the stream was cut",
         error ? str_c(strerror(error)) : STR_EMPTY);
}

/* ---- posting ---- */

static void post(struct client *client, const char *path, const char *body)
{
    char text[2 * PATH_BYTES];
    int len = snprintf(text, sizeof text,
                       "POST /api/v1/agent/%s HTTP/1.1\r\nHost: %s\r\n"
                       "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                       path, client->bench->target.host, strlen(body), body);
    client->posting = true;
    peer_send(&client->post, (str){text, (size_t)len});
}

static void run_post(struct client *client)
{
    char body[256];
    snprintf(body, sizeof body,
             "{\"threadId\":\"b%" PRIx64 "-%" PRIu64
             "\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello there\"}]}",
             client->bench->prefix, client->thread);
    client->finished = client->waiting = false;
    client->pauses = 0;
    client->sent_at = now_ns();
    post(client, "runs", body);
}

static void answer_post(struct client *client)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "interactions/%s/answer", client->asked);
    client->waiting = false;
    client->pauses++;
    client->answered_at = now_ns();
    post(client, path, "{\"answer\":\"Blue\"}");
}

static void on_post_bytes(struct peer *peer, str bytes)
{
    struct client *client = CONTAINER(peer, struct client, post);
    str piece;
    enum answer_event event;
    while ((event = answer_feed(&client->post_answer, &bytes, &piece)) != ANSWER_MORE) {
        int good = client->pauses ? 200 : 202;
        if (event == ANSWER_BAD || (event == ANSWER_HEAD && client->post_answer.status != good)) {
            fail(client, "a request was refused ", bytes);
            return;
        }
        if (event != ANSWER_END) continue;
        client->posting = false;
        if (!client->streaming) stream_open(client);
        go_on(client);
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
           ",\"answers\":%" PRIu64 ",\"answer_p50_us\":%.1f,\"answer_p99_us\":%.1f"
           ",\"answer_max_us\":%.1f"
           ",\"server_cpu_us_per_run\":%.1f,\"server_cpu_s\":%.2f,\"load_cpu_s\":%.2f}\n",
           options->conns, options->turns, seconds, runs, bench.failures, (double)runs / seconds,
           (double)bench.deltas * per_run, hist_us(&bench.hist, 0.5), hist_us(&bench.hist, 0.99),
           (double)bench.hist.max / 1000, bench.answers.count, hist_us(&bench.answers, 0.5),
           hist_us(&bench.answers, 0.99), (double)bench.answers.max / 1000,
           (after.cpu_s - before.cpu_s) * 1e6 * per_run, after.cpu_s - before.cpu_s, own);
    clients_close(&bench);
    net_done(&bench.net);
    return bench.failures || runs == 0;
}
