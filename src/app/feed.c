/* SPDX-License-Identifier: Apache-2.0
 *
 * A reader goes through three places:
 *
 *     WAITING     its thread does not exist; the stream is open and empty
 *     CATCHING    facts from the store, page by page, in their cold form
 *     FOLLOWING   the feed's shared log
 *
 * From CATCHING to FOLLOWING nothing may be missed or doubled. A reading thread sees a commit some
 * time before its facts are on the bus, so what it reads has no place in the log. What the writing
 * thread reads has one: its jobs come back in their order, so when such a page comes, the facts up
 * to its end, and no others, have been on the bus. So pages are read by the reading threads, and
 * one more, mostly empty, by the writing thread. That one puts the reader at the log's end: it gets
 * what is growing at the moment (start, one delta) and follows. WAITING is entered the same way.
 *
 * All who follow have seen the start of what grows. So a fact that ends a message or a call is
 * appended warm if that is one that grows, and cold (made-up previews first) if it is not, which is
 * right for everybody.
 *
 * `marks` remembers where facts end in the log, so that a reader that fell behind the log can be
 * caught up from the last fact it has whole.
 */
#include "app/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/run.h"
#include "agent/speech.h"
#include "app/server.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/map.h"
#include "net/loop.h"
#include "net/sse.h"
#include "store/store.h"
#include "wire/native.h"

/* A cold message has its text three times, each byte of it escaped in six at worst. */
_Static_assert(18 * RUN_TEXT_BYTES_MAX + 2 * FACT_FRAME_BYTES_MAX < FEED_FRAME_BYTES_MAX &&
                   SSE_SEGMENT_BYTES + FEED_FRAME_BYTES_MAX + 1024 < HTTP_ANSWER_BYTES_MAX,
               "every frame fits");

struct mark {
    uint64_t place; /* the log's end behind the fact */
    int64_t seq;
};

struct feed {
    struct feeds *feeds;
    int64_t thread;
    struct bus_follower follower;
    struct sse_log *log;
    char *thread_id;                        /* on the wire */
    char growing[ID_CLIENT_BYTES_MAX + 1];  /* message whose start everybody here has seen */
    char thinking[ID_CLIENT_BYTES_MAX + 1]; /* message whose reasoning everybody has seen */
    char caller[ID_CLIENT_BYTES_MAX + 1];   /* message that makes the calls below */
    struct buf calling; /* ids of calls whose start everybody has seen, a line end behind each */
    size_t readers;
    struct mark marks[FEED_MARKS_MAX]; /* a ring */
    size_t mark_count;
    struct buf frame; /* reused */
    struct loop_defer reap;
};

enum reader_state { READER_WAITING, READER_CATCHING, READER_FOLLOWING };

struct reader {
    struct feeds *feeds;
    struct reader *prev, *next;
    enum reader_state state;
    struct sse_stream *stream; /* NULL: gone, and only a job still knows it */
    struct feed *feed;
    char *owner, *thread_id, *key_id;
    unsigned char session[HASH_BYTES];
    struct feed_start start;
    bool placed;   /* the start has been looked up */
    int64_t seq;   /* newest fact it has */
    bool reading;  /* a job is under way */
    bool draining; /* wait until the reader has taken what it was sent */
};

struct feeds {
    struct server *server;
    struct map feeds; /* thread id, 8 bytes -> struct feed */
    struct reader *readers;
    size_t count;
};

/* ---- feeds ---- */

static str thread_key(const int64_t *thread)
{
    return (str){(const char *)thread, sizeof *thread};
}

static void feed_frame(struct feed *feed)
{
    if (!feed->frame.full) sse_log_append(feed->log, buf_str(&feed->frame));
    buf_clear(&feed->frame);
}

static bool is_calling(const struct feed *feed, str call_id)
{
    str rest = buf_str(&feed->calling);
    while (rest.len)
        if (str_eq(str_split(&rest, '\n'), call_id)) return true;
    return false;
}

static void note_call(struct feed *feed, str call_id)
{
    if (is_calling(feed, call_id)) return;
    buf_append(&feed->calling, call_id);
    buf_append(&feed->calling, STR("\n"));
}

/* Does this fact end what everybody here has seen growing? Then it does so no longer. */
static bool seen_growing(struct feed *feed, const struct fact *fact)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str ends = native_ends(&arena, fact);
    if (!ends.len) return false;
    if (strcmp(fact->type, "tool.call") == 0) return is_calling(feed, ends);
    bool text = strcmp(fact->type, "text.message.end") == 0;
    char *growing = text ? feed->growing : feed->thinking;
    bool seen = str_eq(ends, str_c(growing));
    if (seen) growing[0] = '\0';
    return seen;
}

static void on_facts(void *arg, const struct fact *facts, size_t count)
{
    struct feed *feed = arg;
    str thread_id = str_c(feed->thread_id);
    for (size_t i = 0; i < count; i++) {
        if (seen_growing(feed, &facts[i]))
            native_warm(&feed->frame, thread_id, &facts[i]);
        else
            native_cold(&feed->frame, thread_id, &facts[i]);
        feed_frame(feed);
        feed->marks[feed->mark_count++ % FEED_MARKS_MAX] =
            (struct mark){sse_log_end(feed->log), facts[i].seq};
    }
}

static void note(char out[static ID_CLIENT_BYTES_MAX + 1], str id)
{
    snprintf(out, ID_CLIENT_BYTES_MAX + 1, "%.*s", STR_ARG(id));
}

static void on_preview(void *arg, const struct preview *preview)
{
    struct feed *feed = arg;
    if (preview->kind == PREVIEW_MESSAGE_START) note(feed->growing, preview->message_id);
    if (preview->kind == PREVIEW_REASONING) note(feed->thinking, preview->message_id);
    if (preview->kind == PREVIEW_CALL_START) {
        if (!str_eq(preview->message_id, str_c(feed->caller))) buf_clear(&feed->calling);
        note(feed->caller, preview->message_id);
        note_call(feed, preview->call_id);
    }
    if (preview->kind == PREVIEW_DISCARD) {
        feed->growing[0] = feed->thinking[0] = '\0';
        buf_clear(&feed->calling);
    }
    native_preview(&feed->frame, str_c(feed->thread_id), preview);
    feed_frame(feed);
}

static const struct bus_ops follower_ops = {.on_facts = on_facts, .on_preview = on_preview};

static char *copy(str s)
{
    char *text = strndup(s.p ? s.p : "", s.len);
    if (!text) abort();
    return text;
}

static struct feed *feed_get(struct feeds *feeds, int64_t thread, str thread_id)
{
    struct feed *feed = map_get(&feeds->feeds, thread_key(&thread));
    if (feed) return feed;
    feed = calloc(1, sizeof *feed);
    if (!feed) abort();
    feed->feeds = feeds;
    feed->thread = thread;
    feed->thread_id = copy(thread_id);
    feed->log = sse_log_new(feeds->server->loop, SSE_LOG_BYTES_MAX);
    buf_init(&feed->frame, FEED_FRAME_BYTES_MAX);
    buf_init(&feed->calling, CALLS_TURN_MAX * (ID_CLIENT_BYTES_MAX + 1));
    feed->follower.ops = &follower_ops;
    feed->follower.arg = feed;
    if (map_put(&feeds->feeds, thread_key(&thread), feed)) abort(); /* bounded by connections */
    bus_follow(feeds->server->bus, thread, &feed->follower);
    return feed;
}

static void feed_free(struct feed *feed)
{
    loop_defer_cancel(feed->feeds->server->loop, &feed->reap);
    bus_unfollow(feed->feeds->server->bus, &feed->follower);
    map_remove(&feed->feeds->feeds, thread_key(&feed->thread));
    sse_log_free(feed->log);
    buf_done(&feed->frame);
    buf_done(&feed->calling);
    free(feed->thread_id);
    free(feed);
}

/* At the end of the turn: the last reader may have left while the log was being delivered. */
static void reap(struct loop_defer *defer)
{
    struct feed *feed = CONTAINER(defer, struct feed, reap);
    if (feed->readers == 0) feed_free(feed);
}

static void feed_leave(struct feed *feed)
{
    feed->reap.fn = reap;
    if (--feed->readers == 0) loop_defer(feed->feeds->server->loop, &feed->reap);
}

/* The last fact that ends at or before a place; -1 if it is no longer known. */
static int64_t seq_at(const struct feed *feed, uint64_t place)
{
    size_t kept = feed->mark_count < FEED_MARKS_MAX ? feed->mark_count : FEED_MARKS_MAX;
    for (size_t i = 1; i <= kept; i++) {
        const struct mark *mark = &feed->marks[(feed->mark_count - i) % FEED_MARKS_MAX];
        if (mark->place <= place) return mark->seq;
    }
    return -1;
}

/* ---- readers ---- */

static void reader_free(struct reader *reader)
{
    struct feeds *feeds = reader->feeds;
    *(reader->prev ? &reader->prev->next : &feeds->readers) = reader->next;
    if (reader->next) reader->next->prev = reader->prev;
    feeds->count--;
    free(reader->owner);
    free(reader->thread_id);
    free(reader->key_id);
    free((char *)(uintptr_t)reader->start.run_id.p);
    free(reader);
}

/* The stream is gone; so is the reader, unless a job still holds it. */
static void reader_gone(struct reader *reader)
{
    reader->stream = NULL;
    if (reader->feed) feed_leave(TAKE(reader->feed));
    if (!reader->reading) reader_free(reader);
}

static void on_close(void *arg)
{
    reader_gone(arg);
}

static void reader_end(struct reader *reader)
{
    if (reader->stream) sse_close(reader->stream);
    reader_gone(reader);
}

static void reader_read(struct reader *reader, bool exact);

/* It saw previews whose end, or discard, has left the log: a reset makes it forget them. */
static void send_lag(struct reader *reader)
{
    struct buf *frame = &reader->feed->frame;
    native_reset(frame, str_c(reader->thread_id), "lagging", reader->seq,
                 clock_wall(&clock_system));
    (void)sse_send(reader->stream, buf_str(frame)); /* nothing waits before it: it is taken */
    buf_clear(frame);
}

/* Too slow for the log: go on from the store, behind the last fact it has whole. */
static void on_lag(void *arg)
{
    struct reader *reader = arg;
    int64_t seq = seq_at(reader->feed, sse_place(reader->stream));
    if (seq < 0) {
        reader_end(reader);
        return;
    }
    reader->seq = seq;
    reader->state = READER_CATCHING;
    reader->draining = false;
    send_lag(reader);
    reader_read(reader, false);
}

static void on_drain(void *arg)
{
    struct reader *reader = arg;
    if (reader->state == READER_CATCHING && reader->draining) reader_read(reader, false);
}

static const struct sse_ops reader_ops = {
    .on_lag = on_lag, .on_drain = on_drain, .on_close = on_close};

static void put_growing_call(struct feed *feed, const struct speech *speech, size_t index)
{
    struct preview preview;
    str args, thread_id = str_c(feed->thread_id);
    if (!speech_call(speech, index, &preview, &args)) return;
    preview.at = clock_wall(&clock_system);
    native_preview(&feed->frame, thread_id, &preview);
    preview.kind = PREVIEW_CALL_ARGS;
    preview.delta = args;
    if (args.len) native_preview(&feed->frame, thread_id, &preview);
    note(feed->caller, preview.message_id);
    note_call(feed, preview.call_id);
}

static void put_growing_text(struct feed *feed, const struct speech *speech)
{
    str thread_id = str_c(feed->thread_id), message_id = str_c(speech->message_id);
    struct preview preview = {
        .run_id = str_c(speech->run_id), .message_id = message_id, .at = clock_wall(&clock_system)};
    if (speech->reasoning.len) {
        preview.kind = PREVIEW_REASONING;
        preview.delta = buf_str(&speech->reasoning);
        native_preview(&feed->frame, thread_id, &preview);
        note(feed->thinking, message_id);
    }
    if (speech->text.len) {
        preview.kind = PREVIEW_MESSAGE_START;
        native_preview(&feed->frame, thread_id, &preview);
        preview.kind = PREVIEW_TEXT;
        preview.delta = buf_str(&speech->text);
        native_preview(&feed->frame, thread_id, &preview);
#ifdef FERMATA_PLANT_DOUBLE_DELTA /* a bug that tests/fault/cuts.test.mjs has to find */
        native_preview(&feed->frame, thread_id, &preview);
#endif
        note(feed->growing, message_id);
    }
}

/* What is growing now: a client resets a message on start, so this may come again. */
static void send_growing(struct reader *reader)
{
    struct feed *feed = reader->feed;
    const struct speech *speech = runs_speech(feed->feeds->server->runs, feed->thread);
    if (!speech) return;
    put_growing_text(feed, speech);
    for (size_t i = 0; i < speech->call_count; i++) put_growing_call(feed, speech, i);
    if (feed->frame.len && !feed->frame.full) (void)sse_send(reader->stream, buf_str(&feed->frame));
    buf_clear(&feed->frame);
}

static void reader_follow(struct reader *reader)
{
    struct feed *feed = reader->feed;
    reader->state = READER_FOLLOWING;
    if (feed->mark_count == 0) /* the first fact that everybody here has */
        feed->marks[feed->mark_count++] = (struct mark){sse_log_end(feed->log), reader->seq};
    send_growing(reader);
    if (reader->stream) sse_follow(reader->stream, feed->log, sse_log_end(feed->log));
}

/* ---- catching up ---- */

struct page {
    struct job job;
    struct reader *reader;
    struct arena arena;
    struct thread thread;
    bool exact; /* read by the writing thread */
    bool found;
    const char *reset; /* why the cursor was no good */
    int64_t after;
    struct fact_list facts;
};

static enum err place_cursor(struct page *page, struct db *db)
{
    const struct feed_start *start = &page->reader->start;
    int64_t last = page->thread.last_seq, first = 1;
    struct run run;
    if (start->bad_cursor)
        page->reset = "unknown";
    else if (start->has_cursor && start->after > (uint64_t)last)
        page->reset = "future";
    if (page->reset) {
        page->after = last;
        return OK;
    }
    if (!start->has_cursor) {
        enum err e = start->run_id.len
                         ? run_find(db, &page->arena, page->thread.id, start->run_id, &run)
                         : run_newest(db, &page->arena, page->thread.id, &run);
        page->after = e ? (start->run_id.len ? 0 : last) : run.start_seq;
        return e == ERR_NOT_FOUND ? OK : e;
    }
    enum err e = facts_first(db, page->thread.id, &first);
    if (e) return e;
    page->after = (int64_t)start->after;
    if (page->after + 1 < first) {
        page->reset = "trimmed";
        page->after = last;
    }
    return OK;
}

static enum err page_run(struct job *job, struct db *db)
{
    struct page *page = (struct page *)(void *)job;
    struct reader *reader = page->reader;
    enum err e = thread_find(db, &page->arena, str_c(reader->owner), str_c(reader->thread_id),
                             &page->thread);
    page->found = e == OK;
    page->reset = NULL;
    if (e) return e == ERR_NOT_FOUND ? OK : e;
    page->after = reader->seq;
    if (!reader->placed) e = place_cursor(page, db);
    if (e) return e;
    return facts_after(db, &page->arena, page->thread.id, page->after, FEED_PAGE_FACTS,
                       &page->facts);
}

static void send_page(struct reader *reader, const struct page *page)
{
    struct buf out;
    str thread_id = str_c(reader->thread_id);
    buf_init(&out, SSE_SEGMENT_BYTES + FEED_FRAME_BYTES_MAX);
    if (page->reset) {
        native_reset(&out, thread_id, page->reset, page->after, clock_wall(&clock_system));
        (void)sse_send(reader->stream, buf_str(&out));
        buf_clear(&out);
    }
    for (size_t i = 0; i < page->facts.count && reader->stream; i++) {
        native_cold(&out, thread_id, &page->facts.facts[i]);
        bool last = i + 1 == page->facts.count;
        if (!last && !out.full && out.len < SSE_SEGMENT_BYTES) continue; /* one write for many */
        if (out.full || !sse_send(reader->stream, buf_str(&out)))
            break; /* goes on after on_drain */
        reader->seq = page->facts.facts[i].seq;
        buf_clear(&out);
    }
    buf_done(&out);
}

/* A page has come: send it, then follow, read on, or wait until the reader has taken it. */
static void take_page(struct reader *reader, const struct page *page)
{
    if (reader->feed && reader->feed->thread != page->thread.id) {
        reader_end(reader); /* deleted and made anew meanwhile: the client begins again */
        return;
    }
    if (!reader->feed) {
        reader->feed = feed_get(reader->feeds, page->thread.id, str_c(reader->thread_id));
        reader->feed->readers++;
    }
    reader->placed = true;
    reader->seq = page->after;
    reader->draining = false;
    send_page(reader, page);
    if (!reader->stream) return; /* broke while writing */
    reader->draining = !sse_drained(reader->stream);
    if (reader->draining) return; /* on_drain reads on */
    const struct fact_list *facts = &page->facts;
    bool sent = facts->count == 0 || reader->seq == facts->facts[facts->count - 1].seq;
    bool last = sent && !facts->more;
    if (last && page->exact)
        reader_follow(reader);
    else
        reader_read(reader, last);
}

/* There is no such thread: it was deleted under the reader, or the reader waits for it. */
static void take_nothing(struct reader *reader, const struct page *page)
{
    if (reader->feed)
        reader_end(reader);
    else if (page->exact)
        reader->state = READER_WAITING;
    else
        reader_read(reader, true);
}

static void page_done(struct job *job, enum err e)
{
    struct page *page = (struct page *)(void *)job;
    struct reader *reader = page->reader;
    reader->reading = false;
    if (!reader->stream) {
        reader_free(reader);
    } else if (e) {
        log_warn("feed.read", LOG_CSTR("reason", err_title(e)));
        reader_end(reader);
    } else if (!page->found) {
        take_nothing(reader, page);
    } else {
        take_page(reader, page);
    }
    arena_done(&page->arena);
    free(page);
}

static void reader_read(struct reader *reader, bool exact)
{
    if (reader->reading) return;
    struct page *page = calloc(1, sizeof *page);
    if (!page) abort();
    arena_init(&page->arena);
    page->job = (struct job){.run = page_run, .done = page_done};
    page->reader = reader;
    page->exact = exact;
    reader->reading = true;
    reader->state = READER_CATCHING;
    struct store *store = reader->feeds->server->store;
    if (exact)
        store_write(store, &page->job);
    else
        store_read(store, &page->job);
}

/* ---- what others call ---- */

struct feeds *feeds_new(struct server *server)
{
    struct feeds *feeds = calloc(1, sizeof *feeds);
    if (!feeds) abort();
    feeds->server = server;
    map_init(&feeds->feeds, FEEDS_MAX);
    return feeds;
}

void feeds_free(struct feeds *feeds)
{
    if (!feeds) return;
    assert(!feeds->readers);
    size_t at = 0;
    str key;
    void *feed;
    while (map_next(&feeds->feeds, &at, &key, &feed)) {
        feed_free(feed);
        at--;
    }
    map_done(&feeds->feeds);
    free(feeds);
}

void feeds_open(struct feeds *feeds, struct exchange *x, str thread_id,
                const struct feed_start *start)
{
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader) abort();
    reader->feeds = feeds;
    reader->owner = copy(x->who.user);
    reader->thread_id = copy(thread_id);
    reader->key_id = copy(x->who.key_id);
    memcpy(reader->session, x->who.session, HASH_BYTES);
    reader->start = *start;
    reader->start.run_id = (str){copy(start->run_id), start->run_id.len};
    reader->next = feeds->readers;
    if (reader->next) reader->next->prev = reader;
    feeds->readers = reader;
    feeds->count++;
    reader->stream = sse_open(x->request, NULL, 0, &reader_ops, reader);
    if (reader->stream)
        reader_read(reader, false);
    else
        reader_free(reader);
}

void feeds_created(struct feeds *feeds, const struct thread *thread)
{
    for (struct reader *reader = feeds->readers; reader; reader = reader->next)
        if (reader->state == READER_WAITING && str_eq(str_c(reader->owner), thread->owner) &&
            str_eq(str_c(reader->thread_id), thread->thread_id))
            reader_read(reader, false);
}

/* End those that match. */
static void end_where(struct feeds *feeds, bool (*match)(const struct reader *, const void *),
                      const void *arg)
{
    for (struct reader *reader = feeds->readers, *next; reader; reader = next) {
        next = reader->next;
        if (reader->stream && match(reader, arg)) reader_end(reader);
    }
}

static bool of_thread(const struct reader *reader, const void *thread)
{
    return reader->feed && reader->feed->thread == *(const int64_t *)thread;
}

static bool of_key(const struct reader *reader, const void *key_id)
{
    return str_eq(str_c(reader->key_id), *(const str *)key_id);
}

static bool of_session(const struct reader *reader, const void *hash)
{
    return memcmp(reader->session, hash, HASH_BYTES) == 0;
}

void feeds_deleted(struct feeds *feeds, int64_t thread)
{
    end_where(feeds, of_thread, &thread);
}

void feeds_end_key(struct feeds *feeds, str key_id)
{
    end_where(feeds, of_key, &key_id);
}

void feeds_end_session(struct feeds *feeds, const unsigned char hash[static HASH_BYTES])
{
    end_where(feeds, of_session, hash);
}

size_t feeds_streams(const struct feeds *feeds)
{
    return feeds->count;
}
