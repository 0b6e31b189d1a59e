/* SPDX-License-Identifier: Apache-2.0
 *
 * Event streams (server-sent events) as cursors into a shared log of frames.
 *
 * A log is a list of segments; a frame lies whole in one segment, already framed as an HTTP chunk:
 *
 *     SIZE IN HEX CR LF   frame   CR LF
 *
 * Places are byte positions counted from the birth of the log. A stream holds its place and nothing
 * else; it writes the contiguous rest of a segment in one call, so a burst of events costs each
 * reader one system call, not one per event. What is its own (the head of the answer, catch-up
 * bytes) and what ends it are gathered around them, so that a turn of the loop costs a reader one
 * call as long as it is short. When the socket is full, the rest of that segment is
 * lent to it and the segment referenced until it has gone. Appending never moves bytes that
 * somebody reads.
 *
 * Invariants:
 * 1. A stream that is not lending stands at the start of a frame, so a comment can be put there.
 *    (Without framing, HTTP/1.0, it stands at the start of a frame's chunk header.)
 * 2. Segments are dropped oldest first, when what is behind them holds bytes_max, and only after they
 *    were offered to everybody; a stream whose place has gone is told by on_lag and follows nothing.
 */
#include "net/sse.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "net/http_int.h"
#include "net/loop.h"

enum { FRAMING_BYTES_MAX = 20 }; /* 16 digits and two line ends */

struct segment {
    struct segment *next;
    uint64_t start; /* place of its first byte */
    size_t len, cap;
    unsigned refs; /* the log's, and one for each stream that lends from it */
    char bytes[];
};

struct sse_log {
    struct loop *loop;
    struct segment *oldest, *newest;
    size_t bytes, bytes_max; /* held in segments */
    uint64_t end;
    struct sse_stream *streams;
    struct loop_defer deliver;
    struct timer *rest; /* runs after a long delivery; NULL until the first one */
    bool resting, due;  /* due: something was appended meanwhile */
};

struct sse_stream {
    struct http_conn *conn;
    const struct sse_ops *ops;
    void *arg;
    struct sse_log *log; /* followed, or NULL */
    struct sse_stream *prev, *next;
    uint64_t place;
    uint64_t until;       /* where it leaves the log; UINT64_MAX: nowhere */
    uint64_t end_at;      /* where an ending stream ends */
    struct segment *lent; /* holds the bytes the socket is writing, if they are shared */
    struct buf private;   /* catch-up bytes; those before `private_sent` have gone or are lent */
    size_t private_sent;
    bool framed;
    bool waiting; /* the socket is full and has bytes of ours; on_writable follows */
    bool private_waiting;
    bool busy;   /* stream_write is on the stack */
    bool ending; /* the owner has let go; finish and end */
};

/* ---- the log ---- */

static void stream_write(struct sse_stream *stream);
static void drop_old(struct sse_log *log);

/* The size of a chunk, with its line end; returns its length. */
static size_t put_size(char out[static FRAMING_BYTES_MAX], size_t size)
{
    size_t len = 1;
    while (len < 2 * sizeof size && size >> 4 * len) len++;
    for (size_t i = 0; i < len; i++) out[i] = "0123456789abcdef"[size >> 4 * (len - 1 - i) & 15];
    out[len] = '\r';
    out[len + 1] = '\n';
    return len + 2;
}

static void deliver_soon(struct sse_log *log)
{
    if (log->resting)
        log->due = true;
    else
        loop_defer(log->loop, &log->deliver);
}

static void on_rested(void *arg)
{
    struct sse_log *log = arg;
    log->resting = false;
    if (log->due) deliver_soon(log);
}

/* After a long delivery others have the loop for a quarter of that time, and what is appended meanwhile goes out
 * together: a large audience leaves the loop to others now and then, and a burst costs few system calls per
 * reader. */
static void rest(struct sse_log *log, msec took)
{
    if (took < SSE_REST_MS_MIN) return;
    if (!log->rest) log->rest = timer_new(log->loop, on_rested, log);
    msec pause = (took + 3) / 4;
    timer_start(log->rest, pause < SSE_REST_MS_MAX ? pause : SSE_REST_MS_MAX);
    log->resting = true;
}

/* Serve every follower. A stream may leave the list while we walk it: the next one is known before.
 */
static void deliver(struct loop_defer *defer)
{
    struct sse_log *log = CONTAINER(defer, struct sse_log, deliver);
    msec before = clock_steady(&clock_system);
    log->due = false;
    for (struct sse_stream *stream = log->streams, *next; stream; stream = next) {
        next = stream->next;
        stream_write(stream);
    }
    drop_old(log);
    rest(log, clock_steady(&clock_system) - before);
}

struct sse_log *sse_log_new(struct loop *loop, size_t bytes_max)
{
    struct sse_log *log = mem_new(sizeof *log);
    log->loop = loop;
    log->bytes_max = bytes_max;
    log->deliver.fn = deliver;
    return log;
}

static void segment_unref(struct segment *segment)
{
    if (--segment->refs == 0) free(segment);
}

static void stream_detach(struct sse_stream *stream)
{
    struct sse_log *log = stream->log;
    if (!log) return;
    *(stream->prev ? &stream->prev->next : &log->streams) = stream->next;
    if (stream->next) stream->next->prev = stream->prev;
    stream->prev = stream->next = NULL;
    stream->log = NULL;
}

void sse_log_free(struct sse_log *log)
{
    if (!log) return;
    while (log->streams) {
        struct sse_stream *stream = log->streams;
        stream_detach(stream);
        if (stream->ending) stream_write(stream);
    }
    loop_defer_cancel(log->loop, &log->deliver);
    timer_free(log->rest);
    for (struct segment *s = log->oldest, *next; s; s = next) {
        next = s->next;
        segment_unref(s);
    }
    free(log);
}

/* Segments start small, so that a quiet log costs little, and double up to their full size. */
static struct segment *segment_new(struct sse_log *log, size_t needed)
{
    size_t cap = log->newest ? log->newest->cap * 2 : SSE_SEGMENT_BYTES_MIN;
    if (cap > SSE_SEGMENT_BYTES) cap = SSE_SEGMENT_BYTES;
    if (cap < needed) cap = needed;
    struct segment *segment = malloc(sizeof *segment + cap);
    if (!segment) abort();
    *segment = (struct segment){.start = log->end, .cap = cap, .refs = 1};
    if (log->newest)
        log->newest->next = segment;
    else
        log->oldest = segment;
    log->newest = segment;
    return segment;
}

static void drop_old(struct sse_log *log)
{
    while (log->oldest != log->newest && log->bytes - log->oldest->len >= log->bytes_max) {
        struct segment *oldest = log->oldest;
        log->oldest = oldest->next;
        log->bytes -= oldest->len;
        segment_unref(oldest);
    }
}

void sse_log_append(struct sse_log *log, str frame)
{
    assert(frame.len > 0); /* an empty chunk would end the answer */
    size_t room = frame.len + FRAMING_BYTES_MAX;
    struct segment *segment = log->newest;
    if (!segment || segment->cap - segment->len < room) segment = segment_new(log, room);

    char *at = segment->bytes + segment->len;
    size_t head = put_size(at, frame.len);
    memcpy(at + head, frame.p, frame.len);
    memcpy(at + head + frame.len, "\r\n", 2);
    size_t total = head + frame.len + 2;
    segment->len += total;
    log->bytes += total;
    log->end += total;
    if (log->streams)
        deliver_soon(log); /* and drops then: what nobody was offered yet is not old */
    else
        drop_old(log);
}

uint64_t sse_log_end(const struct sse_log *log)
{
    return log->end;
}

/* The segment that holds this place; the newest is by far the likeliest. NULL if it has gone. */
static struct segment *segment_at(const struct sse_log *log, uint64_t place)
{
    if (log->newest && place >= log->newest->start) return log->newest;
    for (struct segment *s = log->oldest; s; s = s->next)
        if (place >= s->start && place < s->start + s->len) return s;
    return NULL;
}

/* ---- streams ---- */

static void stream_free(struct sse_stream *stream)
{
    stream_detach(stream);
    if (stream->lent) segment_unref(stream->lent);
    buf_done(&stream->private);
    free(stream);
}

static void on_closed(void *arg)
{
    struct sse_stream *stream = arg;
    if (!stream->ending) stream->ops->on_close(stream->arg);
    stream_free(stream);
}

/* Write one piece. False when the reader can take no more: either the rest is lent to the socket,
 * and the piece counts as written, or (*ret_lent false) nothing was taken. */
static bool write_piece(struct sse_stream *stream, str piece, bool *ret_lent)
{
    *ret_lent = false;
    ptrdiff_t taken = http_stream_try(stream->conn, &piece, 1);
    if (taken < 0) return false;
    str rest = str_drop(piece, (size_t)taken);
    if (rest.len == 0) return true;
    stream->waiting = *ret_lent = http_stream_wait(stream->conn, &rest, 1);
    return false;
}

/* Catch-up bytes. True when none are left. */
static bool write_private(struct sse_stream *stream)
{
    str rest = str_drop(buf_str(&stream->private), stream->private_sent);
    if (rest.len == 0) return true;
    bool lent = false;
    bool done = http_stream_gather(stream->conn, rest) || write_piece(stream, rest, &lent);
    if (done || lent) stream->private_sent = stream->private.len;
    stream->private_waiting = lent;
    if (lent) http_stream_hold(stream->conn, stream->private.len);
    return done;
}

/* The bytes to write next from a segment, and the framing to skip on either side of them. */
struct sse_range {
    str bytes;
    size_t before, after;
};

static struct sse_range next_range(const struct sse_stream *stream, const struct segment *segment)
{
    size_t offset = (size_t)(stream->place - segment->start);
    str rest = {segment->bytes + offset, segment->len - offset};
    uint64_t room = stream->until - stream->place; /* a frame's border, too */
    if (rest.len > room) rest.len = (size_t)room;
    if (stream->framed) return (struct sse_range){.bytes = rest};

    size_t size = 0, digits = 0;
    for (; rest.p[digits] != '\r'; digits++) {
        char c = rest.p[digits];
        size = size * 16 + (size_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return (
        struct sse_range){.bytes = {rest.p + digits + 2, size}, .before = digits + 2, .after = 2};
}

/* Shared bytes, until the reader has everything or can take no more. True when the owner was asked
 * what to do instead, and may have sent something. */
static bool write_shared(struct sse_stream *stream)
{
    while (stream->log && stream->place < stream->log->end && stream->place < stream->until) {
        struct segment *segment = segment_at(stream->log, stream->place);
        if (!segment) {
            stream_detach(stream);
            if (stream->ending) return false;
            stream->ops->on_lag(stream->arg);
            return true;
        }
        struct sse_range range = next_range(stream, segment);
        uint64_t behind = stream->place + range.before + range.bytes.len + range.after;
        bool more = behind == (stream->ending ? stream->end_at : stream->until); /* its end */
        bool lent = false;
        bool done = (more && http_stream_gather(stream->conn, range.bytes)) ||
                    write_piece(stream, range.bytes, &lent);
        if (!done && !lent) return false;
        stream->place = behind;
        if (!lent) continue;
        segment->refs++;
        stream->lent = segment;
        return false;
    }
    if (!stream->log || stream->ending || stream->place < stream->until) return false;
    stream_detach(stream);
    stream->ops->on_until(stream->arg);
    return true;
}

/* Write what there is. Never re-entered: callbacks made from here that send or close are carried
 * out by the loop below. */
static void stream_write(struct sse_stream *stream)
{
    if (stream->busy || stream->waiting) return;
    stream->busy = true;
    bool caught_up;
    do {
        while (write_private(stream) && stream->private.cap) {
            buf_done(&stream->private);
            stream->private_sent = 0;
            if (stream->ops->on_drain && !stream->ending) stream->ops->on_drain(stream->arg);
        }
        caught_up = stream->private.cap == 0;
    } while (caught_up && write_shared(stream));
    stream->busy = false;

    /* An ending stream has sent what it can: end it in order, or cut it short if its place was
     * lost, so that the client can tell. What is left of its log: the reader could take no more, the
     * connection has broken. */
    bool whole = stream->place >= stream->end_at;
    bool over = stream->ending && caught_up && !stream->waiting && (whole || !stream->log);
    struct http_conn *conn = stream->conn;
    if ((!over || !whole) && http_stream_flush(conn)) stream->waiting = true;
    if (!over || stream->waiting) return;
    stream_free(stream);
    if (whole)
        http_stream_end(conn);
    else
        http_stream_cut(conn);
}

static void on_writable(void *arg)
{
    struct sse_stream *stream = arg;
    stream->waiting = false;
    if (stream->lent) segment_unref(TAKE(stream->lent));
    stream->private_waiting = false;
    stream_write(stream);
}

/* A comment keeps proxies from taking silence for death. It stands between frames (invariant 1). */
static void on_quiet(void *arg)
{
    struct sse_stream *stream = arg;
    bool lent;
    if (stream->waiting) return;
    (void)write_piece(stream, stream->framed ? STR("3\r\n:\n\n\r\n") : STR(":\n\n"), &lent);
}

static void on_turn(void *arg)
{
    stream_write(arg);
}

static void on_stop(void *arg)
{
    struct sse_stream *stream = arg;
    if (stream->ending) return;
    if (stream->ops->on_stop) {
        stream->ops->on_stop(stream->arg);
        return;
    }
    stream->ops->on_close(stream->arg);
    sse_close(stream);
}

static const struct http_stream_ops stream_ops = {.on_writable = on_writable,
                                                  .on_quiet = on_quiet,
                                                  .on_stop = on_stop,
                                                  .on_closed = on_closed,
                                                  .on_turn = on_turn};

struct sse_stream *sse_open(struct http_request *request, const struct http_field *fields,
                            size_t field_count, const struct sse_ops *ops, void *arg)
{
    enum { OWN_FIELDS = 2, EXTRA_FIELDS_MAX = 8 };
    struct http_field all[OWN_FIELDS + EXTRA_FIELDS_MAX] = {
        {STR("Content-Type"), STR("text/event-stream; charset=utf-8")},
        {STR("X-Accel-Buffering"), STR("no")},
    };
    assert(field_count <= EXTRA_FIELDS_MAX);
    for (size_t i = 0; i < field_count; i++) all[OWN_FIELDS + i] = fields[i];

    struct sse_stream *stream = mem_new(sizeof *stream);
    stream->ops = ops;
    stream->arg = arg;
    buf_init(&stream->private, HTTP_ANSWER_BYTES_MAX);
    stream->conn =
        http_stream(request, all, OWN_FIELDS + field_count, &stream_ops, stream, &stream->framed);
    if (stream->conn) return stream;
    free(stream);
    return NULL;
}

static bool add_private(struct sse_stream *stream, str frame)
{
    struct buf *private = &stream->private;
    size_t needed = frame.len + FRAMING_BYTES_MAX;
    assert(frame.len > 0 && needed <= private->max); /* an empty chunk would end the answer */
    if (private->len && private->len + needed > SSE_PRIVATE_BYTES_MAX) return false;
    /* Bytes lent to the socket must not move: then only what fits in place is taken. */
    if (stream->private_waiting && needed > private->cap - private->len) return false;
    char head[FRAMING_BYTES_MAX];
    if (stream->framed) buf_append(private, (str){head, put_size(head, frame.len)});
    buf_append(private, frame);
    if (stream->framed) buf_append(private, STR("\r\n"));
    return true;
}

bool sse_send(struct sse_stream *stream, str frame)
{
    if (!add_private(stream, frame)) return false;
    stream_write(stream);
    return true;
}

bool sse_send_soon(struct sse_stream *stream, str frame)
{
    if (!add_private(stream, frame)) return false;
    http_stream_soon(stream->conn);
    return true;
}

void sse_follow(struct sse_stream *stream, struct sse_log *log, uint64_t place)
{
    stream_detach(stream);
    assert(place <= log->end); /* it came from sse_log_end */
    stream->log = log;
    stream->place = place;
    stream->until = UINT64_MAX;
    stream->next = log->streams;
    if (stream->next) stream->next->prev = stream;
    log->streams = stream;
    if (place < log->end) deliver_soon(log);
}

void sse_until(struct sse_stream *stream, uint64_t place)
{
    assert(stream->log && place >= stream->place && stream->ops->on_until);
    stream->until = place;
    deliver_soon(stream->log);
}

uint64_t sse_place(const struct sse_stream *stream)
{
    return stream->place;
}

bool sse_drained(const struct sse_stream *stream)
{
    return stream->private.len == 0;
}

void sse_close(struct sse_stream *stream)
{
    stream->ending = true;
    stream->end_at = stream->place;
    if (stream->log)
        stream->end_at = stream->log->end < stream->until ? stream->log->end : stream->until;
    stream_write(stream);
}

void sse_cut(struct sse_stream *stream)
{
    stream_detach(stream);
    stream->ending = true;
    stream->end_at = UINT64_MAX; /* which it never reaches */
    stream_write(stream);
}
