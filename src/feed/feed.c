/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds: threads that are read, by whom, and who goes when; what is told is handed to each dialect.
 *
 *     bus ──▶ feed ──┬─▶ native frames ─▶ a log, its readers are cursors     reader.c
 *                    ├─▶ WebSocket texts ─▶ each sink                        reader.c
 *                    └─▶ AG-UI frames ─▶ a log for each profile              feed_agui_log.c
 *
 * A dialect that nobody reads is not encoded. There are two lists of readers: all of them, for those
 * who end some, and those of each feed. A reader that goes while its feed's list is walked stays in
 * it, marked as gone, until the walk is over; one that a job of the store still holds is freed when
 * the job is.
 */
#include "feed/feed.h"

#include <stdlib.h>
#include <string.h>

#include "agent/shell/run.h"
#include "agents/agents.h"
#include "base/limits.h"
#include "base/log.h"
#include "feed/feed_int.h"
#include "server/server.h"

char *feed_copy(str s)
{
    char *text = malloc(s.len + 1);
    if (!text) abort();
    if (s.len) memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    return text;
}

/* ---- feeds ---- */

static str thread_key(const int64_t *thread)
{
    return (str){(const char *)thread, sizeof *thread};
}

struct feed *feed_find(struct feeds *feeds, int64_t thread)
{
    return map_get(&feeds->feeds, thread_key(&thread));
}

static void on_facts(void *arg, const struct fact *facts, size_t count)
{
    struct feed *feed = arg;
    feed->walking++;
    feed_native_facts(feed, facts, count);
    for (size_t i = 0; i < AGUI_PROFILE_COUNT; i++)
        if (feed->agui[i]) agui_log_facts(feed->agui[i], facts, count);
    feed_walk_end(feed);
}

static void on_preview(void *arg, const struct preview *preview)
{
    struct feed *feed = arg;
    feed->walking++;
    feed_native_preview(feed, preview);
    for (size_t i = 0; i < AGUI_PROFILE_COUNT; i++)
        if (feed->agui[i]) agui_log_preview(feed->agui[i], preview);
    feed_walk_end(feed);
}

static const struct bus_ops follower_ops = {.on_facts = on_facts, .on_preview = on_preview};

static struct feed *feed_get(struct feeds *feeds, int64_t thread, str thread_id)
{
    struct feed *feed = feed_find(feeds, thread);
    if (feed) return feed;
    feed = calloc(1, sizeof *feed);
    if (!feed) abort();
    feed->feeds = feeds;
    feed->thread = thread;
    feed->thread_id = feed_copy(thread_id);
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
    assert(!feed->readers);
    loop_defer_cancel(feed->feeds->server->loop, &feed->reap);
    bus_unfollow(feed->feeds->server->bus, &feed->follower);
    map_remove(&feed->feeds->feeds, thread_key(&feed->thread));
    for (size_t i = 0; i < AGUI_PROFILE_COUNT; i++) agui_log_free(feed->agui[i]);
    sse_log_free(feed->log);
    buf_done(&feed->frame);
    buf_done(&feed->calling);
    free(feed->marks);
    free(feed->thread_id);
    free(feed);
}

static size_t feed_readers(const struct feed *feed)
{
    size_t count = 0;
    for (size_t i = 0; i < READER_KIND_COUNT; i++) count += feed->count[i];
    return count;
}

/* At the end of the turn: the last reader may have left while the log was being delivered. */
static void reap(struct loop_defer *defer)
{
    struct feed *feed = CONTAINER(defer, struct feed, reap);
    if (!feed_readers(feed)) feed_free(feed);
}

/* ---- nobody is left ---- */

struct stop_run {
    struct job job;
    struct server *server;
    struct arena arena;
    int64_t thread;
    unsigned char random[ID_RANDOM_BYTES];
    struct strs agents; /* whose runs do not go on alone */
    struct arena names; /* of them */
    struct stepped stepped;
    bool marked;
};

static bool stops_alone(const struct stop_run *stop, str agent)
{
    for (size_t i = 0; i < stop->agents.count; i++)
        if (str_eq(stop->agents.items[i], agent)) return true;
    return false;
}

/* A run that waits is not at work: it stays. */
static enum err stop_run(struct job *job, struct db *db)
{
    struct stop_run *stop = (struct stop_run *)(void *)job;
    struct run run;
    stop->marked = false;
    arena_reset(&stop->arena);
    enum err e = run_current(db, &stop->arena, stop->thread, &run);
    if (e == ERR_NOT_FOUND || (!e && run.status != RUN_RUNNING)) return OK;
    if (!e && !stops_alone(stop, run.agent)) return OK;
    if (!e)
        e = run_cancel(db, &stop->arena, &stop->server->saver, stop->thread, &run,
                       clock_wall(&clock_system), stop->random, &stop->stepped);
    stop->marked = e == OK;
    return e;
}

static void stop_done(struct job *job, enum err e)
{
    struct stop_run *stop = (struct stop_run *)(void *)job;
    if (e && e != ERR_SHUTTING_DOWN) log_warn("feed.stop", LOG_CSTR("reason", err_title(e)));
    if (!e && stop->marked) runs_cancel(stop->server->runs, stop->thread);
    arena_done(&stop->arena);
    arena_done(&stop->names);
    free(stop);
}

/* Names of agents whose policy is to cancel, into `names` unless that is NULL. */
static size_t find_stoppers(const struct agents *agents, str *names)
{
    size_t count = 0;
    for (size_t i = 0; i < agents_count(agents); i++) {
        const struct agent *agent = agents_at(agents, i);
        if (agent->on_disconnect != DISCONNECT_CANCEL) continue;
        if (names) names[count] = agent->name; /* stays, also after a reload */
        count++;
    }
    return count;
}

/* The policy of the run's agent says what becomes of it when its last reader has left. */
static void left_alone(struct feed *feed, str owner, bool left)
{
    struct server *server = feed->feeds->server;
    runs_alone(server->runs, feed->thread, true);
    size_t stoppers = find_stoppers(server->agents, NULL);
    if (!left || server->stopping || !stoppers) return;
    struct stop_run *stop = calloc(1, sizeof *stop);
    if (!stop) abort();
    arena_init(&stop->arena);
    arena_init(&stop->names);
    str *names = arena_array(&stop->names, stoppers, sizeof *names);
    stop->agents = (struct strs){names, find_stoppers(server->agents, names)};
    /* In the owner's name: what they asked for before, and does not run yet, is stopped too. */
    stop->job =
        (struct job){.run = stop_run, .done = stop_done, .who = arena_str(&stop->names, owner)};
    stop->server = server;
    stop->thread = feed->thread;
    crypto_random(stop->random, sizeof stop->random);
    store_write(server->store, &stop->job);
}

/* ---- readers ---- */

struct reader *reader_new(struct feeds *feeds, enum reader_kind kind, str owner, str thread_id)
{
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader) abort();
    reader->feeds = feeds;
    reader->kind = kind;
    reader->owner = feed_copy(owner);
    reader->thread_id = feed_copy(thread_id);
    reader->next = feeds->readers;
    if (reader->next) reader->next->prev = reader;
    feeds->readers = reader;
    feeds->count++;
    /* Whoever opens a stream has asked pool_room before there was a reader. */
    reader->counted =
        kind != READER_SOCKET && pool_take(feeds->server, POOL_STREAMS, owner, NULL) == OK;
    return reader;
}

void reader_enter(struct reader *reader, int64_t thread)
{
    struct feed *feed = feed_get(reader->feeds, thread, str_c(reader->thread_id));
    reader->feed = feed;
    reader->feed_next = feed->readers;
    if (reader->feed_next) reader->feed_next->feed_prev = reader;
    feed->readers = reader;
    feed->count[reader->kind]++;
    runs_alone(reader->feeds->server->runs, thread, false);
}

static void unlink_feed(struct reader *reader)
{
    if (!reader->feed) return;
    *(reader->feed_prev ? &reader->feed_prev->feed_next : &reader->feed->readers) =
        reader->feed_next;
    if (reader->feed_next) reader->feed_next->feed_prev = reader->feed_prev;
    reader->feed = NULL;
}

static void reader_free(struct reader *reader)
{
    struct feeds *feeds = reader->feeds;
    *(reader->prev ? &reader->prev->next : &feeds->readers) = reader->next;
    if (reader->next) reader->next->prev = reader->prev;
    feeds->count--;
    if (reader->counted) pool_give(feeds->server, POOL_STREAMS, str_c(reader->owner));
    if (reader->kind == READER_AGUI) agui_reader_free(reader);
    free(reader->owner);
    free(reader->thread_id);
    free(reader->key_id);
    free((char *)(uintptr_t)reader->start.run_id.p);
    free(reader);
}

static void free_unheld(struct reader *reader)
{
    if (!reader->reading && !reader->held) reader_free(reader);
}

void reader_gone(struct reader *reader, bool left)
{
    struct feed *feed = reader->feed;
    assert(!reader->gone);
    reader->gone = true;
    reader->stream = NULL;
    reader->sink = NULL;
    if (feed) {
        feed->count[reader->kind]--;
        if (reader->log) reader->log->readers--;
        reader->log = NULL;
        feed->reap.fn = reap;
        if (!feed_readers(feed) && reader->replaced) {
            loop_defer(feed->feeds->server->loop, &feed->reap);
        } else if (!feed_readers(feed)) {
            bool read = reader->kind != READER_AGUI || reader->at != AGUI_PENDING;
            /* one that waits in the queue has read nothing */
            left_alone(feed, str_c(reader->owner), left && read);
            loop_defer(feed->feeds->server->loop, &feed->reap);
        }
        if (feed->walking) return;
        unlink_feed(reader);
    }
    free_unheld(reader);
}

void reader_hold(struct reader *reader)
{
    reader->held++;
}

void reader_release(struct reader *reader)
{
    reader->held--;
    if (reader->gone && !reader->feed) free_unheld(reader);
}

void feed_walk_end(struct feed *feed)
{
    if (--feed->walking) return;
    for (struct reader *reader = feed->readers, *next; reader; reader = next) {
        next = reader->feed_next;
        if (!reader->gone) continue;
        unlink_feed(reader);
        free_unheld(reader);
    }
}

/* ---- what others call ---- */

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

static bool waits_for_thread(const struct reader *reader)
{
    if (reader->gone || reader->reading) return false;
    return reader->kind == READER_AGUI ? reader->at == AGUI_NO_THREAD
                                       : reader->state == READER_WAITING;
}

void feeds_created(struct feeds *feeds, const struct thread *thread)
{
    for (struct reader *reader = feeds->readers; reader; reader = reader->next) {
        if (!waits_for_thread(reader) || !str_eq(str_c(reader->owner), thread->owner) ||
            !str_eq(str_c(reader->thread_id), thread->thread_id))
            continue;
        if (reader->kind == READER_AGUI)
            agui_reader_join(reader);
        else
            reader_read(reader, false);
    }
}

/* End those that match; what AG-UI readers are told. */
static void end_where(struct feeds *feeds, bool (*match)(const struct reader *, const void *),
                      const void *arg, const char *code, const char *message)
{
    for (struct reader *reader = feeds->readers, *next; reader; reader = next) {
        next = reader->next;
        if (reader->gone || !match(reader, arg)) continue;
        if (reader->kind == READER_AGUI)
            agui_reader_end(reader, code, message);
        else
            reader_end(reader);
    }
}

static bool of_thread(const struct reader *reader, const void *thread)
{
    return reader->feed && reader->feed->thread == *(const int64_t *)thread;
}

/* Those on a WebSocket go with their connection. */
static bool of_key(const struct reader *reader, const void *key_id)
{
    return reader->key_id && str_eq(str_c(reader->key_id), *(const str *)key_id);
}

static bool of_session(const struct reader *reader, const void *hash)
{
    return reader->key_id && memcmp(reader->session, hash, HASH_BYTES) == 0;
}

void feeds_deleted(struct feeds *feeds, int64_t thread)
{
    end_where(feeds, of_thread, &thread, "not_found", "this thread has been deleted");
}

static void on_key_end(struct ending *ending, str key_id)
{
    struct feeds *feeds = CONTAINER(ending, struct feeds, ending);
    end_where(feeds, of_key, &key_id, "unauthenticated", "the key has been revoked");
}

static void on_session_end(struct ending *ending, const unsigned char hash[static HASH_BYTES])
{
    struct feeds *feeds = CONTAINER(ending, struct feeds, ending);
    end_where(feeds, of_session, hash, "unauthenticated", "the session has ended");
}

struct feeds *feeds_new(struct server *server)
{
    struct feeds *feeds = calloc(1, sizeof *feeds);
    if (!feeds) abort();
    feeds->server = server;
    map_init(&feeds->feeds, FEEDS_MAX);
    feeds->ending = (struct ending){.on_key = on_key_end, .on_session = on_session_end};
    endings_follow(server, &feeds->ending);
    return feeds;
}

size_t feeds_streams(const struct feeds *feeds)
{
    return feeds->count;
}
