/* SPDX-License-Identifier: Apache-2.0
 *
 * load sse: N readers of one stream, and one publisher that posts E events on one connection kept
 * alive, one event per POST. load idle: the same readers, and nothing is published.
 *
 * An event's text is its number in ten digits and padding: "0000000017 ------". Every reader must
 * get every number once, in order, at full length; a reader that does not is a failure, never a
 * slower figure. When an event was sent is kept here by its number, so a delivery's latency is one
 * subtraction. Lines other than `data:` (ids, comments) are the server's own and are skipped.
 */
#include "load.h"

#include <inttypes.h>

enum { NUMBER_DIGITS = 10 };

struct fanout {
    const struct options *options;
    struct net net;
    struct target target;
    nsec deadline;

    struct reader *readers;
    uint64_t open;    /* readers whose 200 has come */
    uint64_t failed;  /* readers that got something wrong or ended */
    uint64_t arrived; /* events, over all readers */
    char failure[160];

    struct peer publisher;
    struct target publish_target;
    struct answer publish_answer;
    nsec *sent_at; /* by event */
    uint64_t sent, accepted, refused;
    struct hist latency;
};

struct reader {
    struct peer peer;
    struct fanout *fanout;
    struct answer answer;
    struct buf line; /* the beginning of a line whose end has not come yet */
    uint32_t next;   /* the event that must come next */
    bool is_open;
};

/* ---- readers ---- */

static void reader_fail(struct reader *reader, const char *what)
{
    struct fanout *fanout = reader->fanout;
    fanout->failed++;
    peer_close(&reader->peer);
    if (!fanout->failure[0])
        snprintf(fanout->failure, sizeof fanout->failure, "reader %zu, waiting for event %u: %s",
                 (size_t)(reader - fanout->readers), reader->next, what);
}

static void take_event(struct reader *reader, str text)
{
    struct fanout *fanout = reader->fanout;
    uint64_t number = 0;
    if (text.len != fanout->options->size || str_to_u64((str){text.p, NUMBER_DIGITS}, &number)) {
        reader_fail(reader, "not the text that was published");
    } else if (number != reader->next) {
        reader_fail(reader, number < reader->next ? "repeated or out of order" : "one was lost");
    } else {
        reader->next++;
        fanout->arrived++;
        hist_add(&fanout->latency, fanout->net.now - fanout->sent_at[number]);
    }
}

static void take_line(struct reader *reader, str line)
{
    static const str data = STR("data:");
    if (!str_starts(line, data)) return;
    line = str_drop(line, data.len);
    if (line.len && *line.p == ' ') line = str_drop(line, 1);
    take_event(reader, line);
}

/* Lines are taken where they lie; only one cut by the end of a piece is copied. */
static void take_piece(struct reader *reader, str piece)
{
    while (piece.len && reader->peer.fd >= 0) {
        ptrdiff_t at = str_find_char(piece, '\n');
        if (at < 0 || reader->line.len) {
            buf_append(&reader->line, (str){piece.p, at < 0 ? piece.len : (size_t)at});
            if (reader->line.full) reader_fail(reader, "a line without end");
        }
        if (at < 0) return;
        take_line(reader, reader->line.len ? buf_str(&reader->line) : (str){piece.p, (size_t)at});
        if (reader->line.len) buf_done(&reader->line);
        piece = str_drop(piece, (size_t)at + 1);
    }
}

static void reader_head(struct reader *reader)
{
    if (reader->answer.status != 200) {
        reader_fail(reader, "the stream was refused");
        return;
    }
    buf_done(&reader->answer.head);
    reader->is_open = true;
    reader->fanout->open++;
}

static void on_reader_bytes(struct peer *peer, str bytes)
{
    struct reader *reader = CONTAINER(peer, struct reader, peer);
    while (peer->fd >= 0) {
        str piece;
        switch (answer_feed(&reader->answer, &bytes, &piece)) {
        case ANSWER_MORE:
            return;
        case ANSWER_HEAD:
            reader_head(reader);
            break;
        case ANSWER_BODY:
            take_piece(reader, piece);
            break;
        case ANSWER_END:
            reader_fail(reader, "the stream was ended");
            break;
        case ANSWER_BAD:
            reader_fail(reader, "not HTTP");
            break;
        }
    }
}

static void on_reader_end(struct peer *peer, int error)
{
    reader_fail(CONTAINER(peer, struct reader, peer), error ? strerror(error) : "cut");
}

static bool in_time(const struct fanout *fanout)
{
    return fanout->net.now < fanout->deadline && !fanout->failed;
}

/* Open them a few at a time: a full listen backlog would cost a second per lost SYN. */
static void open_readers(struct fanout *fanout)
{
    AUTO(buf_done) struct buf request;
    buf_init(&request, OUT_BYTES_MAX);
    request_write(&request, "GET", &fanout->target, STR_EMPTY);

    uint64_t dialled = 0;
    while (fanout->open < fanout->options->subs && in_time(fanout)) {
        while (dialled < fanout->options->subs && dialled - fanout->open < OPENING_MAX) {
            struct reader *reader = &fanout->readers[dialled++];
            reader->fanout = fanout;
            reader->peer.on_bytes = on_reader_bytes;
            reader->peer.on_end = on_reader_end;
            answer_init(&reader->answer);
            buf_init(&reader->line, EVENT_BYTES_MAX + 64);
            peer_dial(&fanout->net, &reader->peer, &fanout->target, 0, 0);
            peer_send(&reader->peer, buf_str(&request));
        }
        net_turn(&fanout->net, fanout->deadline);
    }
}

/* ---- the publisher ---- */

static void on_publisher_bytes(struct peer *peer, str bytes)
{
    struct fanout *fanout = CONTAINER(peer, struct fanout, publisher);
    for (;;) {
        str piece;
        enum answer_event event = answer_feed(&fanout->publish_answer, &bytes, &piece);
        if (event == ANSWER_MORE) return;
        if (event == ANSWER_BAD) die("the publisher's answer is not HTTP");
        if (event != ANSWER_END) continue;
        bool taken = fanout->publish_answer.status / 100 == 2;
        fanout->accepted += taken;
        fanout->refused += !taken;
    }
}

static void on_publisher_end(struct peer *peer, int error)
{
    (void)peer;
    die("the publisher was cut: %s", error ? strerror(error) : "ended by the server");
}

static void open_publisher(struct fanout *fanout)
{
    fanout->publisher.on_bytes = on_publisher_bytes;
    fanout->publisher.on_end = on_publisher_end;
    answer_init(&fanout->publish_answer);
    peer_dial(&fanout->net, &fanout->publisher, &fanout->publish_target, 0, 0);
}

static void publish(struct fanout *fanout, struct buf *requests, uint64_t number)
{
    char text[EVENT_BYTES_MAX];
    size_t size = fanout->options->size;
    memset(text, '-', size);
    char digits[NUMBER_DIGITS + 1];
    snprintf(digits, sizeof digits, "%0*" PRIu64, NUMBER_DIGITS, number);
    memcpy(text, digits, NUMBER_DIGITS);
    if (size > NUMBER_DIGITS) text[NUMBER_DIGITS] = ' ';
    request_write(requests, "POST", &fanout->publish_target, (str){text, size});
}

/* Post every event that is due and has a place in the pipeline, in one write. Returns when to look
 * again. */
static nsec publish_due(struct fanout *fanout, nsec start)
{
    const struct options *options = fanout->options;
    AUTO(buf_done) struct buf requests;
    buf_init(&requests, OUT_BYTES_MAX);
    nsec now = now_ns(), due = fanout->deadline;
    uint64_t answered = fanout->accepted + fanout->refused;

    while (fanout->sent < options->events && fanout->sent - answered < options->pipeline) {
        due = options->rate ? start + fanout->sent * NS_PER_S / options->rate : now;
        if (due > now) break;
        fanout->sent_at[fanout->sent] = now;
        publish(fanout, &requests, fanout->sent++);
        due = fanout->deadline;
    }
    if (requests.full) die("pipeline times size is over %d bytes", OUT_BYTES_MAX);
    if (requests.len) peer_send(&fanout->publisher, buf_str(&requests));
    return due;
}

/* ---- the runs ---- */

static void fanout_init(struct fanout *fanout, const struct options *options)
{
    *fanout = (struct fanout){.options = options};
    target_parse(options->url, &fanout->target);
    net_init(&fanout->net);
    fanout->deadline = now_ns() + options->timeout * NS_PER_S;
    fanout->readers = calloc(options->subs, sizeof *fanout->readers);
    fanout->sent_at = calloc(options->events, sizeof *fanout->sent_at);
    if (!fanout->readers || !fanout->sent_at) die("out of memory");
    fanout->publisher.fd = -1;
}

static void fanout_done(struct fanout *fanout)
{
    for (uint64_t i = 0; i < fanout->options->subs; i++) {
        struct reader *reader = &fanout->readers[i];
        if (!reader->fanout) continue;
        peer_close(&reader->peer);
        answer_done(&reader->answer);
        buf_done(&reader->line);
    }
    peer_close(&fanout->publisher);
    answer_done(&fanout->publish_answer);
    free(fanout->readers);
    free(fanout->sent_at);
    net_done(&fanout->net);
}

/* Say what went wrong, if anything did; the exit status. */
static int verdict(const struct fanout *fanout, uint64_t wanted)
{
    if (fanout->failure[0]) fprintf(stderr, "load: %s\n", fanout->failure);
    if (fanout->refused) fprintf(stderr, "load: %" PRIu64 " events refused\n", fanout->refused);
    if (fanout->arrived < wanted)
        fprintf(stderr, "load: %" PRIu64 " of %" PRIu64 " deliveries\n", fanout->arrived, wanted);
    return fanout->failed || fanout->refused || fanout->arrived != wanted ||
           fanout->open != fanout->options->subs;
}

int load_sse(const struct options *options)
{
    static struct fanout fanout; /* its histogram is large for a stack */
    fanout_init(&fanout, options);
    target_parse(options->publish_url, &fanout.publish_target);
    open_readers(&fanout);
    open_publisher(&fanout);

    struct usage before, after;
    uint64_t wanted = options->subs * options->events;
    usage_read(options->pid, &before);
    double own_before = own_cpu_s();
    nsec start = now_ns();
    while (fanout.open == options->subs && in_time(&fanout) &&
           (fanout.arrived < wanted || fanout.accepted + fanout.refused < options->events))
        net_turn(&fanout.net, publish_due(&fanout, start));
    double seconds = (double)(now_ns() - start) / 1e9;
    double own = own_cpu_s() - own_before;
    usage_read(options->pid, &after);
    double cpu = after.cpu_s - before.cpu_s;
    double arrived = (double)fanout.arrived;

    printf("{\"mode\":\"sse\",\"subs\":%" PRIu64 ",\"events\":%" PRIu64 ",\"rate\":%" PRIu64
           ",\"size\":%" PRIu64 ",\"pipeline\":%" PRIu64 ",\"deliveries\":%" PRIu64
           ",\"missing\":%" PRIu64 ",\"failed\":%" PRIu64
           ",\"seconds\":%.4f,\"deliveries_per_s\":%.0f,\"p50_us\":%.1f,\"p99_us\":%.1f"
           ",\"max_us\":%.1f,\"server_cpu_s\":%.2f,\"server_cpu_us_per_delivery\":%.4f"
           ",\"load_cpu_s\":%.2f,\"rss_kib\":%" PRIu64 "}\n",
           options->subs, options->events, options->rate, options->size, options->pipeline,
           fanout.arrived, wanted - fanout.arrived, fanout.failed, seconds, arrived / seconds,
           hist_us(&fanout.latency, 0.5), hist_us(&fanout.latency, 0.99),
           (double)fanout.latency.max / 1000, cpu, arrived > 0 ? cpu * 1e6 / arrived : 0, own,
           after.rss_kib);

    int status = verdict(&fanout, wanted);
    fanout_done(&fanout);
    return status;
}

int load_idle(const struct options *options)
{
    static struct fanout fanout;
    struct usage before, after;
    fanout_init(&fanout, options);
    usage_read(options->pid, &before);
    open_readers(&fanout);
    usage_read(options->pid, &after);

    double subs = (double)options->subs;
    printf("{\"mode\":\"idle\",\"subs\":%" PRIu64 ",\"open\":%" PRIu64
           ",\"rss_kib_before\":%" PRIu64 ",\"rss_kib_after\":%" PRIu64
           ",\"anon_kib_before\":%" PRIu64 ",\"anon_kib_after\":%" PRIu64
           ",\"rss_bytes_per_conn\":%.0f,\"anon_bytes_per_conn\":%.0f}\n",
           options->subs, fanout.open, before.rss_kib, after.rss_kib, before.anon_kib,
           after.anon_kib, ((double)after.rss_kib - (double)before.rss_kib) * 1024 / subs,
           ((double)after.anon_kib - (double)before.anon_kib) * 1024 / subs);

    int status = verdict(&fanout, 0);
    fanout_done(&fanout);
    return status;
}
