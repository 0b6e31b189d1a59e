/* SPDX-License-Identifier: Apache-2.0
 *
 * Event streams over real sockets. "/events" opens a stream and follows the test's log from where
 * it ends; "/silent" opens one and leaves the rest to the test. A reader (`struct reader`) is the
 * handler's side of a stream; readers are found by the order in which they were opened.
 */
#include "net/sse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http_kit.h"

#define ASK(path)     "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"
#define ASK_OLD(path) "GET " path " HTTP/1.0\r\n\r\n"
#define LAST_CHUNK    "0\r\n\r\n"

enum { READERS_MAX = 256, SMALL_LOG_BYTES = 64 * 1024 };

struct reader {
    struct stage *stage;
    struct sse_stream *stream; /* NULL once it has gone or was closed */
    unsigned lags, drains, closes, untils, stops;
};

struct stage {
    struct kit kit;
    struct sse_log *log;
    struct reader readers[READERS_MAX];
    size_t reader_count;
    struct buf sent; /* every frame that was appended to the log */
    unsigned frames;
    void (*on_lag)(struct reader *reader);
    void (*on_drain)(struct reader *reader);
    void (*on_until)(struct reader *reader);
};

static void reader_lag(void *arg)
{
    struct reader *reader = arg;
    reader->lags++;
    if (reader->stage->on_lag) reader->stage->on_lag(reader);
}

static void reader_drain(void *arg)
{
    struct reader *reader = arg;
    reader->drains++;
    if (reader->stage->on_drain) reader->stage->on_drain(reader);
}

static void reader_close(void *arg)
{
    struct reader *reader = arg;
    assert_non_null(reader->stream);
    reader->closes++;
    reader->stream = NULL;
}

static void reader_until(void *arg)
{
    struct reader *reader = arg;
    reader->untils++;
    if (reader->stage->on_until) reader->stage->on_until(reader);
}

static void reader_stop(void *arg)
{
    struct reader *reader = arg;
    reader->stops++;
    sse_until(reader->stream, sse_log_end(reader->stage->log));
}

static const struct sse_ops reader_ops = {.on_lag = reader_lag,
                                          .on_drain = reader_drain,
                                          .on_until = reader_until,
                                          .on_close = reader_close};

/* One that says something before it goes. */
static const struct sse_ops polite_ops = {.on_lag = reader_lag,
                                          .on_until = reader_until,
                                          .on_stop = reader_stop,
                                          .on_close = reader_close};

static void handle(struct kit *kit, struct http_request *request)
{
    struct stage *stage = kit->arg;
    if (str_eq(request->head->path, STR("/hello"))) {
        http_answer(request, &(struct http_answer){.status = 200, .body = STR("hello")});
        return;
    }
    if (str_eq(request->head->path, STR("/page"))) {
        kit_answer_page(kit, request);
        return;
    }
    assert_true(stage->reader_count < READERS_MAX);
    struct reader *reader = &stage->readers[stage->reader_count++];
    *reader = (struct reader){.stage = stage};
    static const struct http_field fields[] = {{STR("X-Extra"), STR("e")}};
    bool polite = str_eq(request->head->path, STR("/polite"));
    bool follow = polite || str_eq(request->head->path, STR("/events"));
    reader->stream =
        sse_open(request, fields, COUNT(fields), polite ? &polite_ops : &reader_ops, reader);
    if (reader->stream && follow) sse_follow(reader->stream, stage->log, sse_log_end(stage->log));
}

static void stage_init(struct stage *stage, size_t log_bytes,
                       const struct http_server_options *options)
{
    *stage = (struct stage){0};
    kit_init(&stage->kit, options);
    stage->kit.handle = handle;
    stage->kit.arg = stage;
    stage->log = sse_log_new(stage->kit.loop, log_bytes);
    buf_init(&stage->sent, 64 << 20);
}

static void stage_done(struct stage *stage)
{
    sse_log_free(stage->log);
    kit_done(&stage->kit);
    buf_done(&stage->sent);
}

/* Append a frame of about `size` bytes that no other frame is equal to. */
static void publish(struct stage *stage, size_t size)
{
    struct buf frame;
    buf_init(&frame, 1 << 20);
    buf_printf(&frame, "id: %u\ndata: ", ++stage->frames);
    while (frame.len + 2 < size) buf_char(&frame, (char)('a' + (frame.len + stage->frames) % 26));
    buf_append(&frame, STR("\n\n"));
    sse_log_append(stage->log, buf_str(&frame));
    buf_append(&stage->sent, buf_str(&frame));
    buf_done(&frame);
}

/* Open a stream and take its head. */
static struct reader *subscribe(struct stage *stage, struct caller *caller, const char *request,
                                bool small_window)
{
    size_t before = stage->reader_count;
    caller_open(caller, &stage->kit, small_window);
    caller_send(caller, str_c(request));
    WAIT_FOR(&stage->kit, stage->reader_count > before);
    WAIT_FOR(&stage->kit, str_find(buf_str(&caller->got), STR("\r\n\r\n")) >= 0);
    buf_drop(&caller->got, (size_t)str_find(buf_str(&caller->got), STR("\r\n\r\n")) + 4);
    return &stage->readers[before];
}

/* Wait until a framed reader has exactly these bytes, in whole chunks, and whether it has ended. */
static void expect_chunks(struct caller *caller, str bytes, bool ended)
{
    struct buf data;
    buf_init(&data, 64 << 20);
    size_t used = 0;
    bool last = false;
    for (kit_wait_begin(caller->kit);; kit_turn(caller->kit, "bytes of the stream")) {
        size_t chunks, more;
        last = unchunk(str_drop(buf_str(&caller->got), used), &data, &chunks, &more);
        used += more;
        if (last || caller->ended || (data.len >= bytes.len && !ended)) break;
    }
    assert_int_equal(data.len, bytes.len);
    assert_memory_equal(data.p, bytes.p, bytes.len);
    assert_int_equal(last, ended);
    assert_int_equal(used, caller->got.len);
    buf_drop(&caller->got, used);
    buf_done(&data);
}

/* The same for a reader that speaks HTTP/1.0: bare bytes. */
static void expect_bytes(struct caller *caller, str bytes, bool ended)
{
    WAIT_FOR(caller->kit, caller->ended || (caller->got.len >= bytes.len && !ended));
    assert_int_equal(caller->got.len, bytes.len);
    assert_memory_equal(caller->got.p, bytes.p, bytes.len);
    assert_int_equal(caller->ended, ended);
    buf_clear(&caller->got);
}

/* Publish until the socket of this reader is full: what is appended then stays in the log. */
static void fill(struct stage *stage, struct caller *caller)
{
    caller_pause(caller);
    for (int i = 0; i < 256; i++) {
        publish(stage, 16 * 1024);
        if (i % 3 == 0) kit_turns(&stage->kit, 1); /* a reader that reads keeps up */
    }
    kit_turns(&stage->kit, 5);
}

/* ---- opening and ending ---- */

static void head_of_a_stream(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        const char *coding, *connection;
    } rows[] = {
        {ASK("/events"), "chunked", NULL},
        {ASK_OLD("/events"), NULL, "close"},
        {"GET /events HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", NULL, "close"},
        {"GET /events HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "chunked", "close"},
    };
    struct stage stage;
    stage_init(&stage, SMALL_LOG_BYTES, NULL);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct caller caller;
        caller_open(&caller, &stage.kit, false);
        caller_send(&caller, str_c(rows[i].request));
        WAIT_FOR(&stage.kit, str_ends(buf_str(&caller.got), STR("\r\n\r\n")));
        struct response head = {.head = buf_str(&caller.got)};
        assert_true(str_starts(head.head, STR("HTTP/1.1 200 OK\r\n")));
        assert_str(response_field(&head, STR("Content-Type")),
                   STR("text/event-stream; charset=utf-8"));
        assert_str(response_field(&head, STR("Cache-Control")), STR("no-store"));
        assert_str(response_field(&head, STR("X-Accel-Buffering")), STR("no"));
        assert_str(response_field(&head, STR("X-Extra")), STR("e"));
        assert_str(response_field(&head, STR("Transfer-Encoding")), str_c(rows[i].coding));
        assert_str(response_field(&head, STR("Connection")), str_c(rows[i].connection));
        assert_null(response_field(&head, STR("Content-Length")).p);
        caller_close(&caller);
        WAIT_FOR(&stage.kit, stage.readers[i].closes == 1);
    }
    stage_done(&stage);
}

/* A HEAD request gets the head of the stream and nothing else; the connection goes on. */
static void head_only(void **state)
{
    (void)state;
    struct stage stage;
    struct caller caller;
    stage_init(&stage, SMALL_LOG_BYTES, NULL);
    caller_open(&caller, &stage.kit, false);
    caller_send(&caller, STR("HEAD /events HTTP/1.1\r\nHost: h\r\n\r\n" ASK("/hello")));
    struct response response = caller_take(&caller, true);
    assert_true(response.chunked);
    caller_drop(&caller, &response);
    publish(&stage, 100);
    response = caller_take(&caller, false);
    assert_str(response.body, STR("hello"));
    assert_null(stage.readers[0].stream);
    caller_close(&caller);
    stage_done(&stage);
}

/* After the last chunk the connection takes the next request, also one that was sent before. */
static void reuse(void **state)
{
    (void)state;
    struct stage stage;
    struct caller caller;
    stage_init(&stage, SMALL_LOG_BYTES, NULL);
    struct reader *reader = subscribe(&stage, &caller, ASK("/events"), false);
    publish(&stage, 100);
    expect_chunks(&caller, buf_str(&stage.sent), false);
    sse_close(TAKE(reader->stream));
    expect_chunks(&caller, STR_EMPTY, true);
    for (int i = 0; i < 2; i++) {
        caller_send(&caller, STR(ASK("/hello")));
        struct response response = caller_take(&caller, false);
        assert_str(response.body, STR("hello"));
        caller_drop(&caller, &response);
    }
    caller_send(&caller, STR(ASK("/silent") ASK("/hello")));
    WAIT_FOR(&stage.kit, stage.reader_count == 2);
    sse_close(TAKE(stage.readers[1].stream));
    WAIT_FOR(&stage.kit, str_ends(buf_str(&caller.got), STR("hello")));
    assert_true(str_find(buf_str(&caller.got), STR("\r\n\r\n" LAST_CHUNK "HTTP/1.1 200")) > 0);
    caller_close(&caller);
    assert_int_equal(reader->closes, 0);
    stage_done(&stage);
}

/* The head of a stream may have to wait for the answers before it; then it goes by itself. */
static void head_behind_answers(void **state)
{
    (void)state;
    enum { PAGES_MAX = 2000 };
    struct stage stage;
    struct caller caller;
    /* Not by the first sign of life. */
    stage_init(&stage, SMALL_LOG_BYTES, &(struct http_server_options){.quiet_ms = 60 * 1000});
    caller_open(&caller, &stage.kit, true);
    int pages = caller_ask_pages(&caller, PAGES_MAX);
    assert_in_range(pages, 4, PAGES_MAX - 1);
    caller_close(&caller);
    for (int fewer = 0; fewer < 4; fewer++) { /* one of them meets the full socket */
        caller_open(&caller, &stage.kit, true);
        caller_ask_pages(&caller, pages - fewer);
        caller_send(&caller, STR(ASK("/silent")));
        kit_turns(&stage.kit, 5);
        caller_resume(&caller, 64 * 1024);
        WAIT_FOR(&stage.kit, str_find(buf_str(&caller.got), STR("text/event-stream")) > 0);
        caller_close(&caller);
    }
    stage_done(&stage);
}

/* ---- fan-out ---- */

/* Readers of both kinds, fast ones and some that take a few bytes at a time: all get every frame,
 * whole and in order. The frames' sizes lie around those of a segment. */
static void many_readers(void **state)
{
    (void)state;
    enum { READERS = 40, FRAMES = 400 };
    static const size_t sizes[] = {20, 100, 1000, 4000, 4090, 30000, 70000};
    struct stage stage;
    stage_init(&stage, SSE_LOG_BYTES_MAX, NULL);
    struct caller callers[READERS];
    for (int i = 0; i < READERS; i++) {
        subscribe(&stage, &callers[i], i % 2 ? ASK_OLD("/events") : ASK("/events"), i % 4 > 1);
        if (i % 4 > 1) caller_resume(&callers[i], 1000 + (size_t)i);
    }
    size_t small = 0;
    for (int i = 0; i < FRAMES; i++) {
        size_t size = sizes[(size_t)i % COUNT(sizes)];
        if (size > 5000 && ++small % 8) size = 50; /* large ones are rare */
        publish(&stage, size);
        if (i % 3 == 0) kit_turns(&stage.kit, 1);
    }
    for (int i = 0; i < READERS; i++) sse_close(TAKE(stage.readers[i].stream));
    for (int i = 0; i < READERS; i++) {
        if (i % 2)
            expect_bytes(&callers[i], buf_str(&stage.sent), true);
        else
            expect_chunks(&callers[i], buf_str(&stage.sent), true);
        assert_int_equal(stage.readers[i].lags, 0);
        assert_int_equal(stage.readers[i].closes, 0);
        caller_close(&callers[i]);
    }
    stage_done(&stage);
}

/* Each chunk is one frame, so a client that works chunk by chunk sees whole events. */
static void a_chunk_is_a_frame(void **state)
{
    (void)state;
    struct stage stage;
    struct caller caller;
    stage_init(&stage, SMALL_LOG_BYTES, NULL);
    struct reader *reader = subscribe(&stage, &caller, ASK("/events"), false);
    sse_send(reader->stream, STR("data: private\n\n"));
    sse_log_append(stage.log, STR("data: x\n\n"));
    sse_log_append(stage.log, STR("data: 0123456789abcdef\n\n"));
    static const str expected = STR("f\r\ndata: private\n\n\r\n"
                                    "9\r\ndata: x\n\n\r\n"
                                    "18\r\ndata: 0123456789abcdef\n\n\r\n");
    WAIT_FOR(&stage.kit, caller.got.len >= expected.len);
    assert_str(buf_str(&caller.got), expected);
    caller_close(&caller);
    stage_done(&stage);
}

/* A large audience makes a delivery long, and what is appended while the log rests goes out too. */
static void resting(void **state)
{
    (void)state;
    enum { READERS = 200, ROUNDS = 30 };
    struct stage stage;
    stage_init(&stage, SSE_LOG_BYTES_MAX, NULL);
    static struct caller callers[READERS];
    for (int i = 0; i < READERS; i++) subscribe(&stage, &callers[i], ASK("/events"), false);
    for (int i = 0; i < ROUNDS; i++) {
        publish(&stage, 2000);
        kit_turns(&stage.kit, 1);
        publish(&stage, 30);
    }
    for (int i = 0; i < READERS; i++) {
        expect_chunks(&callers[i], buf_str(&stage.sent), false);
        caller_close(&callers[i]);
    }
    WAIT_FOR(&stage.kit, http_server_connections(stage.kit.server) == 0);
    stage_done(&stage);
}

/* ---- slow readers ---- */

/* Everything is still in the log: the reader gets it when it comes back. */
static void lagging_inside_the_log(void **state)
{
    (void)state;
    static const char *const requests[] = {ASK("/events"), ASK_OLD("/events")};
    for (size_t i = 0; i < COUNT(requests); i++) {
        struct stage stage;
        struct caller slow, fast;
        stage_init(&stage, 16 << 20, NULL);
        struct reader *reader = subscribe(&stage, &slow, requests[i], true);
        subscribe(&stage, &fast, requests[0], false);
        fill(&stage, &slow);
        expect_chunks(&fast, buf_str(&stage.sent), false);
        assert_true(slow.got.len < stage.sent.len / 2);
        caller_resume(&slow, 64 * 1024);
        publish(&stage, 50);
        if (i)
            expect_bytes(&slow, buf_str(&stage.sent), false);
        else
            expect_chunks(&slow, buf_str(&stage.sent), false);
        assert_int_equal(reader->lags, 0);
        caller_close(&slow);
        caller_close(&fast);
        stage_done(&stage);
    }
}

static void lag_resume(struct reader *reader)
{
    assert_true(sse_send(reader->stream, STR("data: missed\n\n")));
    sse_follow(reader->stream, reader->stage->log, sse_log_end(reader->stage->log));
}

static void lag_end(struct reader *reader)
{
    assert_true(sse_send(reader->stream, STR("data: missed\n\n")));
    sse_close(TAKE(reader->stream));
}

static void lag_close(struct reader *reader)
{
    sse_close(TAKE(reader->stream));
}

/* Its place has gone: on_lag, once, and what the owner then does is done. */
static void lagging_behind_the_log(void **state)
{
    (void)state;
    static const struct {
        void (*on_lag)(struct reader *reader);
        const char *last; /* what comes behind the frames that were in the socket */
        bool ended;
    } rows[] = {
        {lag_resume, "e\r\ndata: missed\n\n\r\n", false},
        {lag_end, "e\r\ndata: missed\n\n\r\n" LAST_CHUNK, true},
        {lag_close, "\n\n\r\n" LAST_CHUNK, true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct stage stage;
        struct caller slow;
        stage_init(&stage, SMALL_LOG_BYTES, NULL);
        stage.on_lag = rows[i].on_lag;
        struct reader *reader = subscribe(&stage, &slow, ASK("/events"), true);
        fill(&stage, &slow);
        caller_resume(&slow, 64 * 1024);
        WAIT_FOR(&stage.kit, str_ends(buf_str(&slow.got), str_c(rows[i].last)));
        assert_int_equal(reader->lags, 1);

        struct buf data; /* a beginning of all frames, and whole ones only */
        size_t chunks, used;
        buf_init(&data, 64 << 20);
        assert_int_equal(unchunk(buf_str(&slow.got), &data, &chunks, &used), rows[i].ended);
        assert_int_equal(used, slow.got.len);
        size_t shared = data.len - (rows[i].on_lag == lag_close ? 0 : strlen("data: missed\n\n"));
        assert_true(shared < stage.sent.len);
        assert_memory_equal(data.p, stage.sent.p, shared);
        buf_done(&data);

        buf_clear(&slow.got);
        buf_clear(&stage.sent);
        publish(&stage, 50);
        if (!rows[i].ended) expect_chunks(&slow, buf_str(&stage.sent), false);
        caller_close(&slow);
        stage_done(&stage);
    }
}

/* Following a place that has gone is told in the same way, and not inside sse_follow. */
static void following_a_lost_place(void **state)
{
    (void)state;
    struct stage stage;
    struct caller caller;
    stage_init(&stage, SMALL_LOG_BYTES, NULL);
    struct reader *reader = subscribe(&stage, &caller, ASK("/silent"), false);
    for (int i = 0; i < 100; i++) publish(&stage, 4000);
    sse_follow(reader->stream, stage.log, 0);
    assert_int_equal(reader->lags, 0);
    WAIT_FOR(&stage.kit, reader->lags == 1);
    publish(&stage, 50);
    sse_close(TAKE(reader->stream)); /* it follows nothing */
    expect_chunks(&caller, STR_EMPTY, true);
    caller_close(&caller);
    stage_done(&stage);
}

/* A reader that takes nothing is cut; its owner is told once. */
static void stalled(void **state)
{
    (void)state;
    static const char *const paths[] = {ASK("/events"), ASK("/silent")};
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct stage stage;
        struct caller slow;
        stage_init(&stage, 16 << 20, &(struct http_server_options){.stall_ms = 60});
        struct reader *reader = subscribe(&stage, &slow, paths[i], true);
        caller_pause(&slow);
        struct buf frame;
        buf_init(&frame, 128 * 1024);
        while (frame.len < 100 * 1024) buf_char(&frame, 'p');
        for (int n = 0; i == 1 && n < 1000 && reader->stream; n++) {
            sse_send(reader->stream, buf_str(&frame)); /* false when it is full */
            kit_turns(&stage.kit, 1);
        }
        if (i == 0) fill(&stage, &slow);
        WAIT_FOR(&stage.kit, reader->closes == 1);
        WAIT_FOR(&stage.kit, http_server_connections(stage.kit.server) == 0);
        caller_resume(&slow, 64 * 1024);
        WAIT_FOR(&stage.kit, slow.ended);
        assert_true(slow.reset);
        publish(&stage, 50);
        kit_turns(&stage.kit, 2);
        assert_int_equal(reader->closes, 1);
        caller_close(&slow);
        buf_done(&frame);
        stage_done(&stage);
    }
}

/* ---- catching up ---- */

/* What was sent to the reader alone comes before the log's, however slowly it reads. */
static void catch_up_comes_first(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        bool slow;
    } rows[] = {
        {ASK("/silent"), false},
        {ASK("/silent"), true},
        {ASK_OLD("/silent"), false},
        {ASK_OLD("/silent"), true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct stage stage;
        struct caller caller;
        stage_init(&stage, 16 << 20, NULL);
        struct reader *reader = subscribe(&stage, &caller, rows[i].request, rows[i].slow);
        if (rows[i].slow) caller_pause(&caller);
        struct buf expected;
        buf_init(&expected, 64 << 20);
        for (int n = 0; n < 500; n++) {
            char frame[600];
            int len = snprintf(frame, sizeof frame, "data: private %d %0400d\n\n", n, n);
            if (!sse_send(reader->stream, (str){frame, (size_t)len})) break;
            buf_append(&expected, (str){frame, (size_t)len});
        }
        assert_true(expected.len > 10 * 1024);
        sse_follow(reader->stream, stage.log, 0);
        for (int n = 0; n < 300; n++) publish(&stage, 1000);
        kit_turns(&stage.kit, 5);
        buf_append(&expected, buf_str(&stage.sent));
        caller_resume(&caller, 5000);
        if (i < 2)
            expect_chunks(&caller, buf_str(&expected), false);
        else
            expect_bytes(&caller, buf_str(&expected), false);
        assert_int_equal(reader->lags, 0);
        assert_true(reader->drains > 0);
        buf_done(&expected);
        caller_close(&caller);
        stage_done(&stage);
    }
}

/* Send pieces of many sizes to one slow reader as fast as sse_send takes them, the rest from
 * on_drain: none is lost, torn or swapped, also when it is taken while others are on their way. */
enum { PIECES = 6000 };
static struct {
    int next;
    struct buf expected;
} feed;

static void feed_more(struct reader *reader)
{
    while (feed.next < PIECES && reader->stream) {
        char frame[2000];
        size_t width = feed.next % 7 == 0 ? 1500 : feed.next % 5 == 0 ? 300 : 3;
        int len = snprintf(frame, sizeof frame, "data: %0*d\n\n", (int)width, feed.next);
        str bytes = {frame, (size_t)len};
        /* sse_send may drain, and that feeds more: count this one first. */
        feed.next++;
        size_t at = feed.expected.len;
        buf_append(&feed.expected, bytes);
        if (sse_send(reader->stream, bytes)) continue;
        assert_int_equal(feed.expected.len, at + bytes.len);
        feed.expected.len = at;
        feed.next--;
        return;
    }
}

static void feeding(void **state)
{
    (void)state;
    struct stage stage;
    struct caller caller;
    stage_init(&stage, SMALL_LOG_BYTES, NULL);
    struct reader *reader = subscribe(&stage, &caller, ASK("/silent"), true);
    feed.next = 0;
    buf_init(&feed.expected, 64 << 20);
    caller_pause(&caller);
    while (sse_send(reader->stream, STR("data: first\n\n"))) /* until its socket is full */
        buf_append(&feed.expected, STR("data: first\n\n"));
    stage.on_drain = feed_more;
    caller_resume(&caller, 64 * 1024);
    for (kit_wait_begin(&stage.kit); feed.next < PIECES;) {
        feed_more(reader);
        kit_turn(&stage.kit, "pieces");
    }
    sse_close(TAKE(reader->stream));
    expect_chunks(&caller, buf_str(&feed.expected), true);
    buf_done(&feed.expected);
    caller_close(&caller);
    stage_done(&stage);
}

/* A frame above the bound is taken when nothing else waits, so that on_drain has always a sequel.
 */
static void large_frame(void **state)
{
    (void)state;
    struct stage stage;
    struct caller caller;
    stage_init(&stage, SMALL_LOG_BYTES, NULL);
    struct reader *reader = subscribe(&stage, &caller, ASK("/silent"), true);
    caller_pause(&caller);
    struct buf frame;
    buf_init(&frame, KIT_LARGE_BYTES);
    for (size_t i = 0; i < KIT_LARGE_BYTES / 2; i++) buf_char(&frame, (char)('a' + i % 23));
    assert_true(sse_send(reader->stream, buf_str(&frame)));
    assert_false(sse_send(reader->stream, buf_str(&frame)));
    caller_resume(&caller, 64 * 1024);
    WAIT_FOR(&stage.kit, reader->drains == 1);
    sse_close(TAKE(reader->stream));
    expect_chunks(&caller, buf_str(&frame), true);
    buf_done(&frame);
    caller_close(&caller);
    stage_done(&stage);
}

/* ---- closing ---- */

/* Closing sends what is there first: the reader's own bytes, then the log's, then the end. */
static void closing_with_unsent_bytes(void **state)
{
    (void)state;
    static const char *const requests[] = {ASK("/events"), ASK_OLD("/events")};
    for (size_t i = 0; i < COUNT(requests); i++) {
        struct stage stage;
        struct caller caller;
        stage_init(&stage, 16 << 20, NULL);
        struct reader *reader = subscribe(&stage, &caller, requests[i], true);
        fill(&stage, &caller);
        sse_close(TAKE(reader->stream));
        struct buf expected;
        buf_init(&expected, 64 << 20);
        buf_append(&expected, buf_str(&stage.sent));
        publish(&stage, 50); /* after the close: not for this reader, unless it left in one write */
        kit_turns(&stage.kit, 3);
        caller_resume(&caller, 64 * 1024);
        WAIT_FOR(&stage.kit, i ? caller.ended : str_ends(buf_str(&caller.got), STR(LAST_CHUNK)));
        struct buf data;
        size_t chunks, used;
        buf_init(&data, 64 << 20);
        if (i)
            buf_append(&data, buf_str(&caller.got));
        else
            assert_true(unchunk(buf_str(&caller.got), &data, &chunks, &used));
        assert_in_range(data.len, expected.len, stage.sent.len);
        assert_memory_equal(data.p, stage.sent.p, data.len);
        assert_int_equal(reader->closes, 0);
        assert_int_equal(reader->lags, 0);
        buf_done(&data);
        buf_done(&expected);
        caller_close(&caller);
        stage_done(&stage);
    }
}

static void closing_with_private_bytes(void **state)
{
    (void)state;
    struct stage stage;
    struct caller caller;
    stage_init(&stage, SMALL_LOG_BYTES, NULL);
    struct reader *reader = subscribe(&stage, &caller, ASK("/silent"), true);
    caller_pause(&caller);
    struct buf expected;
    buf_init(&expected, 64 << 20);
    char frame[4000];
    memset(frame, 'x', sizeof frame);
    while (sse_send(reader->stream, (str){frame, sizeof frame}))
        buf_append(&expected, (str){frame, sizeof frame});
    sse_close(TAKE(reader->stream));
    unsigned drains = reader->drains;
    caller_resume(&caller, 64 * 1024);
    expect_chunks(&caller, buf_str(&expected), true);
    assert_int_equal(reader->drains, drains); /* no callback after the close */
    buf_done(&expected);
    caller_close(&caller);
    stage_done(&stage);
}

/* The reader lost its place after its owner had let go of it: it must see that the stream is not
 * whole, with framing by the missing last chunk, without it by a reset. */
static void losing_the_place_while_closing(void **state)
{
    (void)state;
    static const char *const requests[] = {ASK("/events"), ASK_OLD("/events")};
    for (size_t i = 0; i < COUNT(requests); i++) {
        struct stage stage;
        struct caller caller;
        stage_init(&stage, 16 << 20, NULL);
        struct reader *reader = subscribe(&stage, &caller, requests[i], true);
        fill(&stage, &caller);
        sse_close(TAKE(reader->stream));
        sse_log_free(stage.log);
        stage.log = sse_log_new(stage.kit.loop, SMALL_LOG_BYTES);
        caller_resume(&caller, 64 * 1024);
        WAIT_FOR(&stage.kit, caller.ended);
        assert_false(str_ends(buf_str(&caller.got), STR(LAST_CHUNK)));
        if (i) assert_true(caller.reset);
        assert_int_equal(reader->closes, 0);
        WAIT_FOR(&stage.kit, http_server_connections(stage.kit.server) == 0);
        caller_close(&caller);
        stage_done(&stage);
    }
}

/* The log goes, its streams stay: bytes on their way arrive, and the owner still ends them. */
static void freeing_a_log(void **state)
{
    (void)state;
    struct stage stage;
    struct caller idle, slow, leaves;
    stage_init(&stage, 16 << 20, NULL);
    struct reader *first = subscribe(&stage, &idle, ASK("/events"), false);
    struct reader *second = subscribe(&stage, &slow, ASK("/events"), true);
    struct reader *third = subscribe(&stage, &leaves, ASK("/events"), false);
    fill(&stage, &slow);
    expect_chunks(&idle, buf_str(&stage.sent), false);
    publish(&stage, 50); /* appended and not yet delivered */
    sse_log_free(stage.log);
    stage.log = NULL;
    sse_log_free(NULL);
    caller_reset(&leaves);
    WAIT_FOR(&stage.kit, third->closes == 1);
    assert_true(sse_send(first->stream, STR("data: more\n\n")));
    sse_close(TAKE(first->stream));
    expect_chunks(&idle, STR("data: more\n\n"), true);
    sse_close(TAKE(second->stream));
    caller_resume(&slow, 64 * 1024);
    WAIT_FOR(&stage.kit, str_ends(buf_str(&slow.got), STR(LAST_CHUNK)));
    caller_close(&idle);
    caller_close(&slow);
    stage_done(&stage);
}

static void clients_that_leave(void **state)
{
    (void)state;
    struct stage stage;
    stage_init(&stage, SSE_LOG_BYTES_MAX, NULL);
    struct caller callers[8];
    for (size_t i = 0; i < COUNT(callers); i++)
        subscribe(&stage, &callers[i], i % 2 ? ASK_OLD("/events") : ASK("/events"), i % 4 > 1);
    fill(&stage, &callers[3]);
    for (size_t i = 0; i < COUNT(callers); i++) {
        if (i < 4)
            caller_close(&callers[i]);
        else if (i < 6)
            caller_reset(&callers[i]);
        else
            caller_half_close(&callers[i]);
        publish(&stage, 500);
        WAIT_FOR(&stage.kit, stage.readers[i].closes == 1);
    }
    WAIT_FOR(&stage.kit, http_server_connections(stage.kit.server) == 0);
    for (size_t i = 6; i < COUNT(callers); i++) caller_close(&callers[i]);
    stage_done(&stage);
}

/* ---- signs of life, and stopping ---- */

static void quiet(void **state)
{
    (void)state;
    struct stage stage;
    struct caller framed, bare;
    stage_init(&stage, SMALL_LOG_BYTES, &(struct http_server_options){.quiet_ms = 20});
    subscribe(&stage, &framed, ASK("/events"), false);
    subscribe(&stage, &bare, ASK_OLD("/events"), false);
    WAIT_FOR(&stage.kit, framed.got.len >= 16 && bare.got.len >= 6);
    assert_memory_equal(framed.got.p, "3\r\n:\n\n\r\n3\r\n:\n\n\r\n", 16);
    assert_memory_equal(bare.got.p, ":\n\n:\n\n", 6);
    sse_log_append(stage.log, STR("data: x\n\n"));
    WAIT_FOR(&stage.kit, str_find(buf_str(&framed.got), STR("9\r\ndata: x\n\n\r\n3\r\n:\n\n")) > 0);
    WAIT_FOR(&stage.kit, str_find(buf_str(&bare.got), STR("\n\ndata: x\n\n:\n\n")) > 0);
    caller_close(&framed);
    caller_close(&bare);
    stage_done(&stage);
}

/* Without the comments before or between the frames; one behind the last stays. */
static void drop_comments(struct buf *got, str sent)
{
    size_t len = 0;
    for (size_t i = 0; i < got->len; i++) {
        if (len < sent.len && got->p[i] == ':' && sent.p[len] != ':')
            i += 2;
        else
            got->p[len++] = got->p[i];
    }
    got->len = len;
}

/* No comment while frames wait: it would stand behind them. Before, when a frame was late, it may. */
static void quiet_beside_frames(void **state)
{
    (void)state;
    struct stage stage;
    struct caller slow;
    stage_init(&stage, 16 << 20, &(struct http_server_options){.quiet_ms = 20});
    subscribe(&stage, &slow, ASK_OLD("/silent"), true);
    sse_follow(stage.readers[0].stream, stage.log, 0);
    buf_clear(&slow.got);
    fill(&stage, &slow);
    kit_turns(&stage.kit, 60);
    sse_close(TAKE(stage.readers[0].stream));
    caller_resume(&slow, 64 * 1024);
    WAIT_FOR(&stage.kit, slow.ended);
    drop_comments(&slow.got, buf_str(&stage.sent));
    assert_int_equal(slow.got.len, stage.sent.len);
    assert_memory_equal(slow.got.p, stage.sent.p, stage.sent.len);
    caller_close(&slow);
    stage_done(&stage);
}

/* Every reader sees an end in good order, behind all that was published, and its owner is told. */
static void stopping(void **state)
{
    (void)state;
    struct stage stage;
    struct caller callers[4];
    stage_init(&stage, 16 << 20, NULL);
    for (size_t i = 0; i < COUNT(callers); i++)
        subscribe(&stage, &callers[i], i % 2 ? ASK_OLD("/events") : ASK("/events"), false);
    caller_pause(&callers[2]);
    fill(&stage, &callers[3]);
    publish(&stage, 50);
    kit_stop(&stage.kit);
    for (size_t i = 0; i < COUNT(callers); i++) {
        assert_int_equal(stage.readers[i].closes, 1);
        caller_resume(&callers[i], 64 * 1024);
        if (i % 2)
            expect_bytes(&callers[i], buf_str(&stage.sent), true);
        else
            expect_chunks(&callers[i], buf_str(&stage.sent), true);
        WAIT_FOR(&stage.kit, callers[i].ended);
        assert_false(callers[i].reset);
        caller_close(&callers[i]);
    }
    WAIT_FOR(&stage.kit, stage.kit.stopped);
    stage_done(&stage);
}

static void say_goodbye(struct reader *reader)
{
    assert_true(sse_send(reader->stream, STR("data: bye\n\n")));
    sse_close(TAKE(reader->stream));
}

/* It leaves the log where it was told to, however slowly it came there, and says its last words. */
static void leaving_the_log(void **state)
{
    (void)state;
    static const char *const requests[] = {ASK("/events"), ASK_OLD("/events")};
    for (size_t i = 0; i < 2 * COUNT(requests); i++) {
        struct stage stage;
        struct caller caller;
        bool slow = i >= COUNT(requests), old = i % 2;
        stage_init(&stage, 16 << 20, NULL);
        stage.on_until = say_goodbye;
        struct reader *reader = subscribe(&stage, &caller, requests[i % 2], slow);
        if (slow) fill(&stage, &caller);
        publish(&stage, 50);
        sse_until(reader->stream, sse_log_end(stage.log));
        assert_int_equal(reader->untils, 0); /* never from within */
        size_t until = stage.sent.len;
        publish(&stage, 5000); /* not for this one */
        stage.sent.len = until;
        buf_append(&stage.sent, STR("data: bye\n\n"));
        if (slow) caller_resume(&caller, 64 * 1024);
        if (old)
            expect_bytes(&caller, buf_str(&stage.sent), true);
        else
            expect_chunks(&caller, buf_str(&stage.sent), true);
        assert_int_equal(reader->untils, 1);
        assert_int_equal(reader->lags + reader->closes, 0);
        caller_close(&caller);
        stage_done(&stage);
    }
}

/* Behind a place that it has reached already there is still a call, and after it the log is as
 * before for whoever follows again. */
static void leaving_at_once(void **state)
{
    (void)state;
    struct stage stage;
    struct caller caller;
    stage_init(&stage, 16 << 20, NULL);
    struct reader *reader = subscribe(&stage, &caller, ASK("/events"), false);
    publish(&stage, 50);
    expect_chunks(&caller, buf_str(&stage.sent), false);
    buf_clear(&caller.got);
    buf_clear(&stage.sent);
    sse_until(reader->stream, sse_log_end(stage.log));
    WAIT_FOR(&stage.kit, reader->untils == 1);
    publish(&stage, 50); /* nobody follows */
    buf_clear(&stage.sent);
    sse_follow(reader->stream, stage.log, sse_log_end(stage.log));
    publish(&stage, 50);
    expect_chunks(&caller, buf_str(&stage.sent), false);
    caller_close(&caller);
    stage_done(&stage);
}

/* The server stops: an owner that wants to gets its last words behind all that was published. */
static void last_words(void **state)
{
    (void)state;
    struct stage stage;
    struct caller callers[2];
    stage_init(&stage, 16 << 20, NULL);
    stage.on_until = say_goodbye;
    subscribe(&stage, &callers[0], ASK("/polite"), false);
    subscribe(&stage, &callers[1], ASK("/polite"), true);
    fill(&stage, &callers[1]);
    publish(&stage, 50);
    kit_stop(&stage.kit);
    buf_append(&stage.sent, STR("data: bye\n\n"));
    for (size_t i = 0; i < COUNT(callers); i++) /* side by side: a stop does not wait for long */
        caller_resume(&callers[i], 64 * 1024);
    for (size_t i = 0; i < COUNT(callers); i++) {
        expect_chunks(&callers[i], buf_str(&stage.sent), true);
        assert_int_equal(stage.readers[i].stops, 1);
        caller_close(&callers[i]);
    }
    WAIT_FOR(&stage.kit, stage.kit.stopped);
    stage_done(&stage);
}

/* Open streams when the server is freed: their owners are told. */
static void freeing_the_server(void **state)
{
    (void)state;
    struct stage stage;
    struct caller idle, slow;
    stage_init(&stage, 16 << 20, NULL);
    subscribe(&stage, &idle, ASK("/events"), false);
    subscribe(&stage, &slow, ASK("/events"), true);
    fill(&stage, &slow);
    caller_close(&idle);
    caller_close(&slow);
    stage_done(&stage);
    for (int i = 0; i < 2; i++) assert_int_equal(stage.readers[i].closes, 1);
}

int test_sse(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(head_of_a_stream),
        cmocka_unit_test(head_only),
        cmocka_unit_test(reuse),
        cmocka_unit_test(head_behind_answers),
        cmocka_unit_test(many_readers),
        cmocka_unit_test(a_chunk_is_a_frame),
        cmocka_unit_test(resting),
        cmocka_unit_test(lagging_inside_the_log),
        cmocka_unit_test(lagging_behind_the_log),
        cmocka_unit_test(following_a_lost_place),
        cmocka_unit_test(stalled),
        cmocka_unit_test(catch_up_comes_first),
        cmocka_unit_test(feeding),
        cmocka_unit_test(large_frame),
        cmocka_unit_test(closing_with_unsent_bytes),
        cmocka_unit_test(closing_with_private_bytes),
        cmocka_unit_test(losing_the_place_while_closing),
        cmocka_unit_test(freeing_a_log),
        cmocka_unit_test(clients_that_leave),
        cmocka_unit_test(quiet),
        cmocka_unit_test(quiet_beside_frames),
        cmocka_unit_test(leaving_the_log),
        cmocka_unit_test(leaving_at_once),
        cmocka_unit_test(stopping),
        cmocka_unit_test(last_words),
        cmocka_unit_test(freeing_the_server),
    };
    return cmocka_run_group_tests_name("sse", tests, NULL, NULL);
}
