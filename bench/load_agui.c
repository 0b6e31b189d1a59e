/* SPDX-License-Identifier: Apache-2.0
 *
 * load agui: N clients that talk as AG-UI front ends do. A client posts a RunAgentInput on a
 * connection kept alive, and the answer to that POST is the stream of the run, read to its end;
 * then it begins the next thread.
 *
 *     POST {message} ──▶ RUN_STARTED ... RUN_FINISHED {success}, the body ends ──▶ next thread
 *                                           │ {interrupt}
 *                                           ▼
 *     POST {message, the call, resume} ──▶ RUN_STARTED ... RUN_FINISHED {success}
 *
 * A run that asks is answered by a second POST, --pauses times. Like the stock client it names what
 * it has seen: its own message and the assistant's, with the call and its arguments.
 *
 * A cycle counts when the last body has ended. Every stream must begin with RUN_STARTED and end
 * with RUN_FINISHED, both with the ids of its request, nothing behind it but the end of the body;
 * with the outcome that is due, and in the last one all of the words. Anything else fails the whole
 * run of the benchmark.
 */
#include "load.h"

#include <inttypes.h>
#include <unistd.h>

enum {
    ID_BYTES = 64,      /* of a message, a call, an interrupt: ours have 31 */
    ARGS_BYTES = 512,   /* of the question, as JSON inside of JSON */
    BODY_BYTES = 2048,  /* of a request */
    LINE_BYTES = 65536, /* of an event */
};

struct bench {
    const struct options *options;
    struct net net;
    struct target target;
    struct client *clients;
    struct hist hist; /* of whole cycles */
    uint64_t prefix;  /* of the thread ids, so that no two benchmarks share one */
    uint64_t threads; /* begun so far */
    uint64_t events, deltas, bytes;
    uint64_t failures;
    bool over; /* time is up: begin nothing more */
    char failure[200];
};

struct client {
    struct bench *bench;
    struct peer peer;
    struct answer answer;
    struct buf cut;  /* the beginning of a line whose end has not come yet */
    uint64_t thread; /* its number */
    uint64_t pauses; /* of the run under way: answers sent */
    uint64_t text;   /* bytes of words in this leg */
    enum { LEG_POSTED, LEG_STARTED, LEG_WAITING, LEG_FINISHED } leg;
    char thread_id[ID_BYTES], run_id[ID_BYTES];
    char asked[ID_BYTES]; /* the interrupt */
    char message[ID_BYTES], call[ID_BYTES];
    char args[ARGS_BYTES]; /* as they stand in JSON */
    nsec sent_at;
};

static void fail(struct client *client, const char *what, str more)
{
    struct bench *bench = client->bench;
    bench->failures++;
    bench->over = true;
    if (!bench->failure[0])
        snprintf(bench->failure, sizeof bench->failure, "run %s: %s%.*s", client->run_id, what,
                 more.len > 80 ? 80 : (int)more.len, more.p);
}

/* ---- requests ---- */

static void post(struct client *client, const char *body)
{
    char head[BODY_BYTES + 512];
    int len = snprintf(head, sizeof head,
                       "POST /api/v1/agent/ag-ui/assistant HTTP/1.1\r\nHost: %s\r\n"
                       "Content-Type: application/json\r\nAccept: text/event-stream\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       client->bench->target.host, strlen(body), body);
    client->leg = LEG_POSTED;
    client->text = 0;
    peer_send(&client->peer, (str){head, (size_t)len});
}

/* The members of RunAgentInput that a stock client always sends, around those that differ. */
static void run_post(struct client *client)
{
    char body[BODY_BYTES], more[BODY_BYTES / 2] = "", resume[BODY_BYTES / 4] = "";
    if (client->pauses) {
        snprintf(more, sizeof more,
                 ",{\"id\":\"%s\",\"role\":\"assistant\",\"toolCalls\":[{\"id\":\"%s\",\"type\":"
                 "\"function\",\"function\":{\"name\":\"ask_user\",\"arguments\":\"%s\"}}]}",
                 client->message, client->call, client->args);
        snprintf(resume, sizeof resume,
                 ",\"resume\":[{\"interruptId\":\"%s\",\"status\":\"resolved\","
                 "\"payload\":\"Blue\"}]",
                 client->asked);
    }
    snprintf(client->run_id, sizeof client->run_id, "%s-%" PRIu64, client->thread_id,
             client->pauses);
    int len = snprintf(body, sizeof body,
                       "{\"threadId\":\"%s\",\"runId\":\"%s\",\"protocolVersion\":\"1.0\","
                       "\"state\":{},\"messages\":[{\"id\":\"m-%s\",\"role\":\"user\","
                       "\"content\":\"Hello there\"}%s],\"tools\":[],\"context\":[],"
                       "\"forwardedProps\":{}%s}",
                       client->thread_id, client->run_id, client->thread_id, more, resume);
    if ((size_t)len >= sizeof body) die("a request is longer than %d bytes", BODY_BYTES);
    post(client, body);
}

static void cycle_begin(struct client *client)
{
    struct bench *bench = client->bench;
    client->thread = bench->threads++;
    client->pauses = 0;
    snprintf(client->thread_id, sizeof client->thread_id, "a%" PRIx64 "-%" PRIu64, bench->prefix,
             client->thread);
    client->sent_at = now_ns();
    run_post(client);
}

/* The body has ended: count the cycle and begin the next one, or answer. */
static void leg_over(struct client *client)
{
    struct bench *bench = client->bench;
    if (client->leg == LEG_WAITING) {
        client->pauses++;
        run_post(client);
        return;
    }
    if (client->leg != LEG_FINISHED) {
        fail(client, "no RUN_FINISHED before the end", STR_EMPTY);
        return;
    }
    hist_add(&bench->hist, bench->net.now - client->sent_at);
    if (!bench->over) cycle_begin(client);
}

/* ---- events ---- */

static void keep(struct client *client, char *out, size_t size, str text)
{
    if (text.len == 0 || text.len >= size) fail(client, "an id is missing or long: ", text);
    snprintf(out, size, "%.*s", STR_ARG(text));
}

static bool is_ours(const struct client *client, str json)
{
    return str_eq(member_text(json, STR("\"threadId\":\"")), str_c(client->thread_id)) &&
           str_eq(member_text(json, STR("\"runId\":\"")), str_c(client->run_id));
}

static void take_finished(struct client *client, str json)
{
    bool asks = client->pauses < client->bench->options->pauses;
    str outcome = member_text(json, STR("\"outcome\":{\"type\":\""));
    if (!is_ours(client, json)) fail(client, "another run ends: ", json);
    if (!str_eq(outcome, asks ? STR("interrupt") : STR("success")))
        fail(client, "the outcome is ", outcome);
    if (asks)
        keep(client, client->asked, sizeof client->asked,
             member_text(json, STR("\"interrupts\":[{\"id\":\"")));
    else if (client->text != client->bench->options->text)
        fail(client, "words are missing", STR_EMPTY);
    client->leg = asks ? LEG_WAITING : LEG_FINISHED;
}

static void take_call(struct client *client, str json)
{
    keep(client, client->call, sizeof client->call, member_text(json, STR("\"toolCallId\":\"")));
    keep(client, client->message, sizeof client->message,
         member_text(json, STR("\"parentMessageId\":\"")));
    client->args[0] = '\0';
}

static void take_args(struct client *client, str json)
{
    size_t len = strlen(client->args);
    str delta = member_text(json, STR("\"delta\":\""));
    keep(client, client->args + len, sizeof client->args - len, delta);
}

static void take_event(struct client *client, str json)
{
    struct bench *bench = client->bench;
    str type = member_text(json, STR("{\"type\":\""));
    bench->events++;
    if (client->leg == LEG_POSTED) {
        if (!str_eq(type, STR("RUN_STARTED")) || !is_ours(client, json))
            fail(client, "it begins with ", json);
        client->leg = LEG_STARTED;
    } else if (client->leg != LEG_STARTED) {
        fail(client, "something follows RUN_FINISHED: ", json);
    } else if (str_eq(type, STR("TEXT_MESSAGE_CONTENT"))) {
        bench->deltas++;
        client->text += member_text(json, STR("\"delta\":\"")).len;
    } else if (str_eq(type, STR("TOOL_CALL_START"))) {
        take_call(client, json);
    } else if (str_eq(type, STR("TOOL_CALL_ARGS"))) {
        take_args(client, json);
    } else if (str_eq(type, STR("RUN_FINISHED"))) {
        take_finished(client, json);
    } else if (str_eq(type, STR("RUN_STARTED")) || str_eq(type, STR("RUN_ERROR"))) {
        fail(client, "", json);
    }
}

static void on_bytes(struct peer *peer, str bytes)
{
    static const str data = STR("data: ");
    struct client *client = CONTAINER(peer, struct client, peer);
    str piece, line;
    enum answer_event event;
    client->bench->bytes += bytes.len;
    while ((event = answer_feed(&client->answer, &bytes, &piece)) != ANSWER_MORE) {
        if (event == ANSWER_BAD || (event == ANSWER_HEAD && client->answer.status != 200)) {
            fail(client, "a request was refused ", bytes);
            return;
        }
        while (event == ANSWER_BODY && line_next(&client->cut, &piece, &line))
            if (str_starts(line, data)) take_event(client, str_drop(line, data.len));
        if (event == ANSWER_END) leg_over(client);
    }
}

static void on_end(struct peer *peer, int error)
{
    fail(CONTAINER(peer, struct client, peer), "the connection was cut",
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
        client->peer.on_bytes = on_bytes;
        client->peer.on_end = on_end;
        answer_init(&client->answer);
        buf_init(&client->cut, LINE_BYTES);
        peer_dial(&bench->net, &client->peer, &bench->target, 0, 0);
    }
}

static void clients_close(struct bench *bench)
{
    for (uint64_t i = 0; i < bench->options->conns; i++) {
        struct client *client = &bench->clients[i];
        peer_close(&client->peer);
        answer_done(&client->answer);
        buf_done(&client->cut);
    }
    free(bench->clients);
}

/* Time is up; but a slow server is given more, until there is a cycle for each client, and as many
 * as were asked for. */
static bool is_over(const struct bench *bench, nsec start, nsec now)
{
    const struct options *options = bench->options;
    bool enough = bench->hist.count >= options->conns && bench->hist.count >= options->least;
    bool late = now >= start + options->timeout * NS_PER_S;
    return bench->over || late || (enough && now >= start + options->seconds * NS_PER_S);
}

int load_agui(const struct options *options)
{
    struct bench bench = {.options = options,
                          .prefix = (uint64_t)time(NULL) << 20 | ((uint64_t)getpid() & 0xfffff)};
    target_parse(options->url, &bench.target);
    net_init(&bench.net);
    clients_open(&bench);

    struct usage before, after;
    usage_read(options->pid, &before);
    double own_before = own_cpu_s();
    nsec start = now_ns(), now = start, end = start + options->seconds * NS_PER_S;
    for (uint64_t i = 0; i < options->conns; i++) cycle_begin(&bench.clients[i]);
    for (; !is_over(&bench, start, now); now = now_ns())
        net_turn(&bench.net, now < end ? end : now + 100 * NS_PER_MS);
    bench.over = true;
    double seconds = (double)(now_ns() - start) / 1e9, own = own_cpu_s() - own_before;
    usage_read(options->pid, &after);

    uint64_t runs = bench.hist.count;
    double per_run = runs ? 1 / (double)runs : 0;
    if (bench.failure[0]) fprintf(stderr, "load: %s\n", bench.failure);
    printf("{\"mode\":\"agui\",\"conns\":%" PRIu64 ",\"seconds\":%.3f,\"runs\":%" PRIu64
           ",\"errors\":%" PRIu64 ",\"runs_per_s\":%.0f,\"events_per_run\":%.1f"
           ",\"deltas_per_run\":%.1f,\"bytes_per_run\":%.0f"
           ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f"
           ",\"server_cpu_us_per_run\":%.1f,\"server_cpu_s\":%.2f,\"load_cpu_s\":%.2f}\n",
           options->conns, seconds, runs, bench.failures, (double)runs / seconds,
           (double)bench.events * per_run, (double)bench.deltas * per_run,
           (double)bench.bytes * per_run, hist_us(&bench.hist, 0.5), hist_us(&bench.hist, 0.99),
           (double)bench.hist.max / 1000, (after.cpu_s - before.cpu_s) * 1e6 * per_run,
           after.cpu_s - before.cpu_s, own);
    clients_close(&bench);
    net_done(&bench.net);
    return bench.failures || runs == 0;
}
