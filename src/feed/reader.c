/* SPDX-License-Identifier: Apache-2.0
 *
 * Native and WebSocket readers of a feed: caught up from the store, then following. One goes
 * through three places:
 *
 *     WAITING     its thread does not exist; it is open and empty
 *     CATCHING    facts from the store, page by page, in their cold form
 *     FOLLOWING   what the feed tells everybody: a shared log, or each text
 *
 * From CATCHING to FOLLOWING nothing may be missed or doubled. A reading thread sees a commit some
 * time before its facts are on the bus, so what it reads has no place in the feed. What the writing
 * thread reads has one: its jobs come back in their order, so when such a page comes, the facts up
 * to its end, and no others, have been on the bus. So pages are read by the reading threads, and
 * one more, mostly empty, by the writing thread. That one puts the reader behind what was told: it
 * gets what is growing at the moment (start, one delta) and follows. WAITING is entered the same way.
 *
 * All who follow have seen the start of what grows. So a fact that ends a message or a call is told
 * warm if that is one that grows, and cold (made-up previews first) if it is not, which is right for
 * everybody.
 *
 * `marks` remembers where facts end in the log, so that a reader that fell behind the log can be
 * caught up from the last fact it has whole. A sink that has no room is caught up likewise; of a
 * fact that is several texts `skip` are out already. Sinks are also told where a leg ends; so `in_leg`
 * says whose is under way, in the reader while it is caught up, in the feed for all that follow.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/core/facts.h"
#include "agent/shell/model_turn.h"
#include "agent/shell/run.h"
#include "base/limits.h"
#include "base/log.h"
#include "feed/feed_int.h"
#include "server/server.h"
#include "wire/native.h"
#include "wire/stored.h"

/* A cold message has its text three times, each byte of it escaped in six at worst. */
_Static_assert(18 * RUN_TEXT_BYTES_MAX + 2 * FACT_FRAME_BYTES_MAX < FEED_FRAME_BYTES_MAX &&
                   SSE_SEGMENT_BYTES + FEED_FRAME_BYTES_MAX + 1024 < HTTP_ANSWER_BYTES_MAX,
               "every frame fits");

/* ---- what everybody has seen growing ---- */

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

static void note(char out[static ID_CLIENT_BYTES_MAX + 1], str id)
{
    str_note(out, ID_CLIENT_BYTES_MAX + 1, id);
}

static void note_preview(struct feed *feed, const struct preview *preview)
{
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
}

/* ---- whose leg it is ---- */

static bool is_end(const struct fact *fact)
{
    return strcmp(fact->type, FACT_RUN_FINISHED) == 0 || strcmp(fact->type, FACT_RUN_ERROR) == 0;
}

static void note_leg(char leg[static ID_CLIENT_BYTES_MAX + 1], const struct fact *fact)
{
    if (strcmp(fact->type, FACT_RUN_STARTED) == 0)
        note(leg, fact->run_id);
    else if (is_end(fact) && str_eq(fact->run_id, str_c(leg)))
        leg[0] = '\0';
}

/* The run whose leg is under way behind a fact. Ends in it are of runs dropped from the queue. */
static enum err find_leg(struct db *db, struct arena *arena, int64_t thread, int64_t seq,
                         str *ret_leg)
{
    struct fact started = {0}, ended = {.seq = seq + 1};
    enum err e = fact_last(db, arena, thread, STR_EMPTY, FACT_RUN_STARTED, FACT_RUN_STARTED, 0, seq,
                           &started);
    bool none = e == ERR_NOT_FOUND, over = false;
    while (!e && !over) {
        e = fact_last(db, arena, thread, STR_EMPTY, FACT_RUN_FINISHED, FACT_RUN_ERROR, started.seq,
                      ended.seq - 1, &ended);
        over = !e && str_eq(ended.run_id, started.run_id);
    }
    if (e && e != ERR_NOT_FOUND) return e;
    *ret_leg = none || over ? STR_EMPTY : started.run_id;
    return OK;
}

/* ---- telling everybody ---- */

static void feed_frame(struct feed *feed)
{
    if (feed->frame.len && !feed->frame.full) sse_log_append(feed->log, buf_str(&feed->frame));
    buf_clear(&feed->frame);
}

/* Most threads are read for a few facts: the ring is made as large as it may be only for others. */
static void make_room(struct feed *feed)
{
    if (feed->mark_count < feed->mark_room || feed->mark_room == FEED_MARKS_MAX) return;
    feed->mark_room = feed->mark_room ? feed->mark_room * 2 : FEED_MARKS_MIN;
    feed->marks = realloc(feed->marks, feed->mark_room * sizeof *feed->marks);
    if (!feed->marks) abort();
}

static void put_mark(struct feed *feed, int64_t seq)
{
    _Static_assert(FEED_MARKS_MAX % FEED_MARKS_MIN == 0 &&
                       (FEED_MARKS_MAX & (FEED_MARKS_MAX - 1)) == 0,
                   "doubled until it is that");
    make_room(feed);
    feed->marks[feed->mark_count++ % FEED_MARKS_MAX] = (struct mark){sse_log_end(feed->log), seq};
}

/* One text for every sink that follows. One without room has to be caught up. */
struct spread {
    struct feed *feed;
    int64_t seq;
};

static void put_text(void *arg, enum socket_kind kind, str json)
{
    const struct spread *spread = arg;
    struct reader *next;
    spread->feed->feeds->server->metrics.encoded_socket++;
    for (struct reader *reader = spread->feed->readers; reader; reader = next) {
        next = reader->feed_next;
        bool follows = reader->kind == READER_SOCKET && !reader->gone &&
                       reader->state == READER_FOLLOWING && !reader->refused;
        if (!follows) continue;
        bool taken = reader->sink->on_text(reader->sink_arg, kind, json, spread->seq);
        if (!reader->gone && !taken) reader->refused = true;
    }
}

/* After a whole fact: who has it, and who fell behind. */
static void spread_end(struct feed *feed, int64_t seq)
{
    for (struct reader *reader = feed->readers; reader; reader = reader->feed_next) {
        if (reader->kind != READER_SOCKET || reader->gone || reader->state != READER_FOLLOWING)
            continue;
        if (reader->refused) {
            reader->state = READER_CATCHING;
            reader->draining = reader->lagged = true;
            note(reader->in_leg, str_c(feed->in_leg));
        } else if (seq) {
            reader->seq = seq;
        }
    }
}

static void tell_fact(struct feed *feed, const struct fact *fact)
{
    str thread_id = str_c(feed->thread_id);
    bool warm = seen_growing(feed, fact);
    if (feed->count[READER_NATIVE]) {
        if (warm)
            native_warm(&feed->frame, thread_id, fact);
        else
            native_cold(&feed->frame, thread_id, fact);
        feed->feeds->server->metrics.encoded_native++;
        feed_frame(feed);
        put_mark(feed, fact->seq);
    }
    if (feed->count[READER_SOCKET]) {
        struct spread spread = {feed, fact->seq};
        if (warm)
            socket_warm(thread_id, str_c(feed->in_leg), fact, put_text, &spread);
        else
            socket_cold(thread_id, str_c(feed->in_leg), fact, put_text, &spread);
        spread_end(feed, fact->seq);
    }
    note_leg(feed->in_leg, fact);
}

void feed_native_facts(struct feed *feed, const struct fact *facts, size_t count)
{
    for (size_t i = 0; i < count; i++) tell_fact(feed, &facts[i]);
}

void feed_native_preview(struct feed *feed, const struct preview *preview)
{
    note_preview(feed, preview);
    if (feed->count[READER_NATIVE]) {
        native_preview(&feed->frame, str_c(feed->thread_id), preview);
        feed->feeds->server->metrics.encoded_native++;
        feed_frame(feed);
    }
    if (feed->count[READER_SOCKET]) {
        struct spread spread = {feed, 0};
        socket_preview(str_c(feed->thread_id), preview, put_text, &spread);
        spread_end(feed, 0);
    }
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

/* ---- ends ---- */

static void on_close(void *arg)
{
    reader_gone(arg, true);
}

void reader_end(struct reader *reader)
{
    const struct feed_sink *sink = reader->sink;
    void *arg = reader->sink_arg;
    if (reader->stream) sse_close(reader->stream);
    reader_gone(reader, false);
    if (sink) sink->on_over(arg);
}

/* ---- one reader ---- */

/* Texts of one fact for one sink, from `skip` on. */
struct portion {
    struct reader *reader;
    int64_t seq;
    size_t at;
};

static void give_text(void *arg, enum socket_kind kind, str json)
{
    struct portion *portion = arg;
    struct reader *reader = portion->reader;
    size_t at = portion->at++;
    if (reader->gone || reader->refused || at < reader->skip) return;
    bool taken = reader->sink->on_text(reader->sink_arg, kind, json, portion->seq);
    if (reader->gone || taken) return;
    reader->refused = true;
    reader->skip = at;
}

/* True: it has the whole fact. */
static bool give_fact(struct reader *reader, const struct fact *fact)
{
    struct portion portion = {reader, fact->seq, 0};
    socket_cold(str_c(reader->thread_id), str_c(reader->in_leg), fact, give_text, &portion);
    if (reader->gone || reader->refused) return false;
    reader->skip = 0;
    reader->seq = fact->seq;
    note_leg(reader->in_leg, fact);
    return true;
}

static void give_reset(struct reader *reader, const char *reason, int64_t seq)
{
    struct portion portion = {reader, 0, 0};
    socket_reset(str_c(reader->thread_id), reason, seq, clock_wall(&clock_system), give_text,
                 &portion);
}

static void send_reset(struct reader *reader, struct buf *frame, const char *reason, int64_t seq)
{
    native_reset(frame, str_c(reader->thread_id), reason, seq, clock_wall(&clock_system));
    (void)sse_send(reader->stream, buf_str(frame)); /* nothing waits before it: it is taken */
    buf_clear(frame);
}

/* Too slow for the log: go on from the store, behind the last fact it has whole. It saw previews
 * whose end, or discard, has left the log: a reset makes it forget them. */
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
    send_reset(reader, &reader->feed->frame, "lagging", seq);
    reader_read(reader, false);
}

static void on_drain(void *arg)
{
    struct reader *reader = arg;
    if (reader->state == READER_CATCHING && reader->draining) reader_read(reader, false);
}

static const struct sse_ops reader_ops = {
    .on_lag = on_lag, .on_drain = on_drain, .on_close = on_close};

/* ---- what is growing now: a client resets a message on start, so this may come again ---- */

/* A preview for one reader: as a frame behind others, or as a text. */
static void show_one(struct reader *reader, const struct preview *preview)
{
    struct portion portion = {reader, 0, 0};
    str thread_id = str_c(reader->thread_id);
    if (reader->kind == READER_NATIVE)
        native_preview(&reader->feed->frame, thread_id, preview);
    else
        socket_preview(thread_id, preview, give_text, &portion);
}

static void show_call(struct reader *reader, const struct model_turn *model_turn, size_t index)
{
    struct feed *feed = reader->feed;
    struct preview preview;
    str args;
    if (!model_turn_call(model_turn, index, &preview, &args)) return;
    preview.at = clock_wall(&clock_system);
    show_one(reader, &preview);
    note(feed->caller, preview.message_id);
    note_call(feed, preview.call_id);
    preview.kind = PREVIEW_CALL_ARGS;
    preview.delta = args;
    if (args.len) show_one(reader, &preview);
}

static void show_words(struct reader *reader, const struct model_turn *model_turn)
{
    struct feed *feed = reader->feed;
    str message_id = str_c(model_turn->message_id);
    struct preview preview = {.run_id = str_c(model_turn->run_id),
                              .message_id = message_id,
                              .at = clock_wall(&clock_system)};
    if (model_turn->reasoning.len) {
        preview.kind = PREVIEW_REASONING;
        preview.delta = buf_str(&model_turn->reasoning);
        show_one(reader, &preview);
        note(feed->thinking, message_id);
    }
    if (model_turn->text.len) {
        preview.kind = PREVIEW_MESSAGE_START;
        show_one(reader, &preview);
        preview.kind = PREVIEW_TEXT;
        preview.delta = buf_str(&model_turn->text);
        show_one(reader, &preview);
#ifdef FERMATA_PLANT_DOUBLE_DELTA /* a bug that tests/fault/cuts.test.mjs has to find */
        show_one(reader, &preview);
#endif
        note(feed->growing, message_id);
    }
}

static void show_growing(struct reader *reader)
{
    struct feed *feed = reader->feed;
    const struct model_turn *model_turn = runs_model_turn(feed->feeds->server->runs, feed->thread);
    if (!model_turn) return;
    show_words(reader, model_turn);
    for (size_t i = 0; !reader->gone && i < model_turn->call_count; i++)
        show_call(reader, model_turn, i);
    if (feed->frame.len && !feed->frame.full) (void)sse_send(reader->stream, buf_str(&feed->frame));
    buf_clear(&feed->frame);
}

static void reader_follow(struct reader *reader)
{
    struct feed *feed = reader->feed;
    if (reader->kind == READER_NATIVE && feed->mark_count == 0)
        put_mark(feed, reader->seq); /* the first fact that everybody here has */
    reader->state = READER_FOLLOWING;
    if (reader->kind == READER_SOCKET) note(feed->in_leg, str_c(reader->in_leg));
    show_growing(reader);
    if (reader->stream) sse_follow(reader->stream, feed->log, sse_log_end(feed->log));
    if (reader->gone || !reader->refused) return;
    reader->state = READER_CATCHING; /* not even that fits */
    reader->draining = reader->lagged = true;
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
    str leg; /* under way behind `after`, if it was placed now */
    struct fact_list facts;
};

/* Where a run begins: behind the seq of its 202. Its row says where its first leg began, which is
 * later if it waited in the queue; one that no request began has that alone. */
static enum err place_at_run(struct page *page, struct db *db, const struct run *run)
{
    struct accepted accepted;
    uint64_t seq;
    page->after = run->start_seq;
    enum err e = accepted_find(db, &page->arena, run->thread, run->run_id, &accepted);
    if (e) return e == ERR_NOT_FOUND ? OK : e;
    bool told = str_to_u64(stored_get(accepted.answer, STR("seq")), &seq) == OK;
    if (told && seq < (uint64_t)run->start_seq) page->after = (int64_t)seq;
    return OK;
}

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
        if (!e) return place_at_run(page, db, &run);
        page->after = start->run_id.len ? 0 : last;
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
    if (!e && !reader->placed && reader->kind == READER_SOCKET)
        e = find_leg(db, &page->arena, page->thread.id, page->after, &page->leg);
    if (e) return e;
    return facts_after(db, &page->arena, page->thread.id, page->after, FEED_PAGE_FACTS,
                       &page->facts);
}

static void send_facts(struct reader *reader, const struct page *page)
{
    struct buf out;
    buf_init(&out, SSE_SEGMENT_BYTES + FEED_FRAME_BYTES_MAX);
    if (page->reset) send_reset(reader, &out, page->reset, page->after);
    for (size_t i = 0; i < page->facts.count && reader->stream; i++) {
        native_cold(&out, str_c(reader->thread_id), &page->facts.facts[i]);
        bool last = i + 1 == page->facts.count;
        if (!last && !out.full && out.len < SSE_SEGMENT_BYTES) continue; /* one write for many */
        if (out.full || !sse_send(reader->stream, buf_str(&out)))
            break; /* goes on after on_drain */
        reader->seq = page->facts.facts[i].seq;
        buf_clear(&out);
    }
    buf_done(&out);
    if (reader->stream) reader->draining = !sse_drained(reader->stream);
}

static void give_facts(struct reader *reader, const struct page *page)
{
    if (page->reset) give_reset(reader, page->reset, page->after);
    if (page->reset && reader->refused) reader->placed = false; /* it has to come again */
    if (page->reset) reader->skip = 0;
    for (size_t i = 0; i < page->facts.count && !reader->gone && !reader->refused; i++)
        (void)give_fact(reader, &page->facts.facts[i]);
    reader->draining = reader->refused;
}

/* A page has come: send it, then follow, read on, or wait until the reader has taken it. */
static void take_page(struct reader *reader, const struct page *page)
{
    if (reader->feed && reader->feed->thread != page->thread.id) {
        reader_end(reader); /* deleted and made anew meanwhile: the client begins again */
        return;
    }
    if (!reader->feed) reader_enter(reader, page->thread.id);
    if (!reader->placed) note(reader->in_leg, page->leg);
    reader->placed = true;
    reader->seq = page->after;
    reader->draining = false;
    if (reader->kind == READER_NATIVE)
        send_facts(reader, page);
    else
        give_facts(reader, page);
    if (reader->gone || reader->draining) return; /* on_drain, or feeds_room, reads on */
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
    reader_hold(reader);
    reader->reading = false;
    if (!reader->gone && e) {
        if (e != ERR_SHUTTING_DOWN) log_warn("feed.read", LOG_CSTR("reason", err_title(e)));
        reader_end(reader);
    } else if (!reader->gone && !page->found) {
        take_nothing(reader, page);
    } else if (!reader->gone) {
        take_page(reader, page);
    }
    bool first = reader->kind == READER_SOCKET && !reader->gone && !reader->begun_told;
    reader->begun_told = true;
    if (first) reader->sink->on_begun(reader->sink_arg);
    reader_release(reader);
    arena_done(&page->arena);
    free(page);
}

void reader_read(struct reader *reader, bool exact)
{
    if (reader->reading) return;
    struct page *page = calloc(1, sizeof *page);
    if (!page) abort();
    arena_init(&page->arena);
    page->job = (struct job){.run = page_run, .done = page_done, .who = str_c(reader->owner)};
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

void feeds_open(struct feeds *feeds, struct http_request *request, const struct identity *who,
                str thread_id, const struct feed_start *start)
{
    struct reader *reader = reader_new(feeds, READER_NATIVE, who->user, thread_id);
    reader->key_id = feed_copy(who->key_id);
    memcpy(reader->session, who->session, HASH_BYTES);
    reader->start = *start;
    reader->start.run_id = (str){feed_copy(start->run_id), start->run_id.len};
    bool stopping = feeds->server->stopping;
    reader->stream = sse_open(request, NULL, 0, &reader_ops, reader);
    if (reader->stream && !stopping)
        reader_read(reader, false);
    else if (reader->stream)
        reader_end(reader); /* whoever stops has told the streams that there were */
    else
        reader_gone(reader, false);
}

struct reader *feeds_join(struct feeds *feeds, str owner, str thread_id,
                          const struct feed_start *start, const struct feed_sink *sink, void *arg)
{
    struct reader *reader = reader_new(feeds, READER_SOCKET, owner, thread_id);
    reader->start = *start;
    reader->start.run_id = (str){feed_copy(start->run_id), start->run_id.len};
    reader->sink = sink;
    reader->sink_arg = arg;
    reader_read(reader, false);
    return reader;
}

void feeds_room(struct reader *reader)
{
    if (reader->gone || reader->state != READER_CATCHING || !reader->draining) return;
    reader_hold(reader);
    reader->draining = reader->refused = false;
    if (reader->lagged) { /* it saw previews whose end it missed */
        reader->skip = 0;
        give_reset(reader, "lagging", reader->seq);
        reader->lagged = reader->draining = reader->refused;
        reader->skip = 0;
    }
    if (!reader->gone && !reader->draining) reader_read(reader, false);
    reader_release(reader);
}

void feeds_leave(struct reader *reader)
{
    reader_gone(reader, true);
}

void feeds_replace(struct reader *reader)
{
    reader->replaced = true;
    reader_gone(reader, false);
}

bool feeds_following(const struct reader *reader)
{
    return reader->state == READER_FOLLOWING;
}
