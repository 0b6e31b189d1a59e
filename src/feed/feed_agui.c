/* SPDX-License-Identifier: Apache-2.0
 *
 * AG-UI readers of a feed: one leg for a request, or leg after leg. A request is answered with one
 * leg; GET goes on, leg after leg:
 *
 *     JOINING ──▶ (NO_THREAD) ──▶ OPENING          what there is now: messages, what grows, outcome
 *     PENDING ── its leg begins ──▶ OPENING        the head is read from the store
 *     OPENING ──▶ FOLLOWING                        the shared log, from where the leg began or it joined
 *     FOLLOWING ── the leg's end ──▶ CLOSING       the tail is read from the store
 *     CLOSING ──▶ the end, or RESTING ──▶ PENDING  once the tail has been taken
 *
 * A request that answers a run and brings a message besides is answered with two: the run that goes
 * on, and, when that is over, the message's own.
 *
 * Head and tail are read as of the fact that the reader stands behind, so it does not matter what
 * has happened meanwhile: the log has it.
 *
 * Where a join stands is known as for native readers: by a job of the writing thread, whose
 * callback comes when the facts up to what it read, and no others, have been told.
 *
 * The protocol has no cursor. A reader that the log has dropped, or that is sent away, gets
 * RUN_ERROR and a clean end; the client asks again and joins.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/core/facts.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "feed/feed_int.h"
#include "server/server.h"

#define TOO_SLOW "you read too slowly; ask again and go on from there"

static void close_stream(struct reader *reader)
{
    sse_close(reader->stream);
    reader_gone(reader, false);
}

/* Its end cannot be told: a body that ended in good order would look like success. */
static void cut_stream(struct reader *reader)
{
    sse_cut(reader->stream);
    reader_gone(reader, false);
}

/* ---- sending away ---- */

static bool send_error(struct reader *reader, const char *code, const char *message)
{
    struct buf out;
    buf_init(&out, FACT_FRAME_BYTES_MAX);
    agui_error(&out, code, message);
    bool sent = sse_send_soon(reader->stream, buf_str(&out));
    buf_done(&out);
    reader->begun = false;
    reader->told = true;
    return sent;
}

/* What the log holds for it comes first. */
void agui_reader_end(struct reader *reader, const char *code, const char *message)
{
    reader->end_code = code;
    reader->end_message = message;
    if (!reader->stream) return; /* feeds_agui_answer follows, and says it */
    if (reader->at == AGUI_FOLLOWING) {
        if (!reader->limited) sse_until(reader->stream, sse_log_end(reader->log->log));
        reader->limited = true;
        return;
    }
    bool owed = reader->begun || (!reader->told && !reader->all_legs);
    if (owed && !send_error(reader, code, message))
        cut_stream(reader);
    else
        close_stream(reader);
}

/* ---- tails ---- */

static void rest(struct reader *reader);

/* A run that waits for somebody keeps the ones behind it waiting, too. */
static bool is_over(const struct thread_at *thread_at)
{
    AUTO(arena_done) struct arena arena;
    struct json *data = NULL;
    arena_init(&arena);
    if (!thread_at->ended.type || json_parse(&arena, thread_at->ended.data, &data, NULL))
        return false;
    return !str_eq(json_text(json_get(data, STR("outcome"))), STR("interrupted"));
}

static void put_tail(struct buf *out, const struct reader *reader,
                     const struct thread_at *thread_at)
{
    agui_tail(out, reader->profile,
              &(struct agui_tail){.thread_id = str_c(reader->thread_id),
                                  .run_id = str_c(reader->run_id),
                                  .step = thread_at->step,
                                  .type = thread_at->ended.type,
                                  .data = thread_at->ended.data,
                                  .open = thread_at->open,
                                  .open_count = thread_at->open_count,
                                  .model = thread_at->model,
                                  .input_tokens = thread_at->input_tokens,
                                  .output_tokens = thread_at->output_tokens});
}

/* The tail is with the stream, or could not be. */
static void end_run(struct reader *reader, const struct thread_at *thread_at, bool sent)
{
    bool more = reader->all_legs || (reader->then_run[0] && is_over(thread_at));
    reader->begun = false;
    reader->told = true;
    if (!sent)
        cut_stream(reader);
    else if (more)
        rest(reader);
    else
        close_stream(reader);
}

static void send_tail(struct reader *reader, const struct thread_at *thread_at)
{
    struct buf out;
    buf_init(&out, FEED_FRAME_BYTES_MAX);
    put_tail(&out, reader, thread_at);
    bool sent = !out.full && sse_send_soon(reader->stream, buf_str(&out));
    buf_done(&out);
    end_run(reader, thread_at, sent);
}

/* The end of a leg has been read: for all who wait for it, and for those who come to it later. */
static void tail_read(struct agui_log *log, struct load *load, enum err e)
{
    if (log->tail_loading == load->leg) log->tail_loading = SIZE_MAX;
    for (struct reader *reader = log->feed->readers, *next; reader; reader = next) {
        next = reader->feed_next;
        bool waits = !reader->gone && reader->log == log && reader->at == AGUI_CLOSING &&
                     reader->leg == load->leg;
        if (waits && e)
            agui_reader_end(reader, "storage_full", "the outcome cannot be read now; ask again");
        else if (waits)
            send_tail(reader, &load->thread_at);
    }
    if (e || !log->readers) {
        load_free(load);
        return;
    }
    load_free(log->tail);
    log->tail = load;
}

/* It has everything of its leg but the end. */
static void on_until(void *arg)
{
    struct reader *reader = arg;
    struct agui_log *log = reader->log;
    reader->at = AGUI_CLOSING;
    if (reader->end_code) {
        agui_reader_end(reader, reader->end_code, reader->end_message);
        return;
    }
    if (log->tail && log->tail->leg == reader->leg) {
        send_tail(reader, &log->tail->thread_at);
        return;
    }
    if (log->tail_loading == reader->leg) return;
    struct load *load = load_new(log, &(struct thread_at_want){.seq = reader->leg_ended,
                                                               .run_id = str_c(reader->leg_run),
                                                               .end = true});
    load->leg = log->tail_loading = reader->leg;
    load->then = tail_read;
    load_start(load);
}

/* Its run ended in the queue: it never began. */
void agui_reader_dropped(struct reader *reader, const struct fact *finished)
{
    struct thread_at thread_at = {.ended = *finished};
    struct buf out;
    if (!reader->stream) return;
    buf_init(&out, FACT_FRAME_BYTES_MAX);
    agui_started(&out, reader->profile, str_c(reader->thread_id), str_c(reader->run_id));
    put_tail(&out, reader, &thread_at);
    bool sent = !out.full && sse_send_soon(reader->stream, buf_str(&out));
    buf_done(&out);
    end_run(reader, &thread_at, sent);
}

/* ---- heads ---- */

/* Does the client lack a message, or have one that we do not? */
static bool needs_messages(struct reader *reader, const struct thread_at *thread_at)
{
    if (reader->joined) return true;
    if (reader->all_legs) { /* it has all up to the end of the leg before */
        bool more = false;
        for (size_t i = 0; i < thread_at->row_count; i++)
            more = more || thread_at->rows[i].message.seq > reader->seq;
        return more;
    }
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    return !agui_same_ids(&arena, thread_at->rows, thread_at->row_count, reader->ids,
                          reader->id_count);
}

/* Its leg is over: it leaves the log there, and needs to know which it was. */
static void limit(struct reader *reader, const struct agui_leg *leg)
{
    reader->limited = true;
    reader->leg_ended = leg->ended;
    memcpy(reader->leg_run, leg->run_id, sizeof reader->leg_run);
    sse_until(reader->stream, leg->end_place);
}

static void on_lag(void *arg);

static void follow(struct reader *reader)
{
    const struct agui_leg *leg = agui_log_leg(reader->log, reader->leg);
    if (!leg) { /* forgotten, while the head was on its way */
        on_lag(reader);
        return;
    }
    reader->at = AGUI_FOLLOWING;
    reader->limited = false;
    sse_follow(reader->stream, reader->log->log, reader->place);
    if (leg->ended) limit(reader, leg);
}

static void write_head(struct reader *reader, const struct thread_at *thread_at, struct buf *out)
{
    if (reader->all_legs) {
        free(reader->run_id);
        reader->run_id = feed_copy(thread_at->wire_id);
    }
    struct agui_head head = {.thread_id = str_c(reader->thread_id),
                             .run_id = str_c(reader->run_id),
                             .state = thread_at->state,
                             .step = thread_at->step,
                             .messages = needs_messages(reader, thread_at),
                             .ids = reader->ids,
                             .id_count = reader->id_count,
                             .rows = thread_at->rows,
                             .row_count = thread_at->row_count,
                             .growing = grown_get(reader->grown)};
    if (!reader->idle) agui_log_step(reader->log, reader->leg, thread_at->step);
    agui_head(out, reader->profile, &head);
    if (reader->idle) put_tail(out, reader, thread_at); /* behind a long head there is no room */
}

/* `thread_at`: of one that joined no leg, for what comes next. */
static void put_head(struct reader *reader, const struct buf *out,
                     const struct thread_at *thread_at)
{
    assert(!reader->idle || thread_at);
    bool sent = !out->full && sse_send_soon(reader->stream, buf_str(out));
    grown_free(TAKE(reader->grown));
    reader->id_count = 0; /* from here on it has what we tell it */
    reader->joined = false;
    reader->begun = reader->told = true;
    if (!sent)
        cut_stream(reader);
    else if (reader->idle)
        end_run(reader, thread_at, true);
    else
        follow(reader);
}

static void send_head(struct reader *reader, const struct thread_at *thread_at)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, FEED_FRAME_BYTES_MAX);
    write_head(reader, thread_at, &out);
    put_head(reader, &out, thread_at);
}

void agui_reader_heads(struct agui_log *log, struct load *load, enum err e)
{
    for (struct reader *reader = log->feed->readers, *next; reader; reader = next) {
        next = reader->feed_next;
        if (reader->gone || !reader->stream || reader->at != AGUI_OPENING ||
            reader->load != load->id)
            continue;
        if (e)
            agui_reader_end(reader, "storage_full", "the conversation cannot be read; ask again");
        else
            send_head(reader, &load->thread_at);
    }
    load_free(load);
}

void agui_reader_begins(struct reader *reader, size_t leg, uint64_t load)
{
    reader->at = AGUI_OPENING;
    reader->leg = leg;
    reader->place = agui_log_leg(reader->log, leg)->begin_place;
    reader->load = load;
    reader->idle = false;
}

void agui_reader_ends(struct reader *reader)
{
    if (reader->at != AGUI_FOLLOWING || reader->limited) return; /* follow() sees it */
    limit(reader, agui_log_leg(reader->log, reader->leg));
}

static void open_by_itself(struct reader *reader, const struct thread_at_want *want)
{
    struct load *load = load_new(reader->log, want);
    reader->at = AGUI_OPENING;
    reader->load = load->id;
    load->then = agui_reader_heads;
    load_start(load);
}

/* ---- from leg to leg ---- */

/* The next leg may have begun while the reader took the end of this one. */
static void look_for_leg(struct reader *reader)
{
    struct agui_log *log = reader->log;
    if (!reader->all_legs) { /* the other run of its request: in the queue, at work, or over */
        free(reader->of_run);
        reader->of_run = TAKE(reader->then_run);
        reader->then_run = feed_copy(STR_EMPTY);
        agui_reader_join(reader);
        return;
    }
    size_t next = reader->leg + 1;
    const struct agui_leg *leg = agui_log_leg(log, next);
    bool lost = reader->lost || (next < log->leg_count && !leg); /* its place, or several legs */
    reader->at = AGUI_PENDING;
    reader->lost = false;
    if (lost) {
        agui_reader_join(reader);
        return;
    }
    if (next >= log->leg_count) return;
    agui_reader_begins(reader, next, 0);
    open_by_itself(reader, &(struct thread_at_want){
                               .seq = leg->began, .run_id = str_c(leg->run_id), .messages = true});
}

static void rest(struct reader *reader)
{
    if (!reader->idle) reader->seq = reader->leg_ended;
    reader->at = AGUI_RESTING;
    if (sse_drained(reader->stream)) look_for_leg(reader);
}

static void on_drain(void *arg)
{
    struct reader *reader = arg;
    if (reader->at == AGUI_RESTING) look_for_leg(reader);
}

static void on_lag(void *arg)
{
    struct reader *reader = arg;
    reader->at = AGUI_CLOSING;
    if (reader->end_code || !reader->all_legs) {
        agui_reader_end(reader, reader->end_code ? reader->end_code : "lagging",
                        reader->end_code ? reader->end_message : TOO_SLOW);
        return;
    }
    if (!send_error(reader, "lagging", "you read too slowly; the run goes on below")) {
        cut_stream(reader);
        return;
    }
    reader->lost = true;
    reader->at = AGUI_RESTING;
    if (sse_drained(reader->stream)) look_for_leg(reader);
}

static void on_close(void *arg)
{
    reader_gone(arg, true);
}

static void on_stop(void *arg)
{
    agui_reader_end(arg, "shutting_down", "the server stops; ask again in a moment");
}

static const struct sse_ops agui_ops = {.on_lag = on_lag,
                                        .on_drain = on_drain,
                                        .on_until = on_until,
                                        .on_stop = on_stop,
                                        .on_close = on_close};

/* ---- joining ---- */

struct join {
    struct job job;
    struct reader *reader;
    struct arena arena;
    int64_t thread_row; /* 0: by owner and id */
    struct thread thread;
    bool found, queued, live;
    struct run current;
};

/* Is a leg under way, of the run that is meant? */
static enum err look_at_runs(struct join *join, struct db *db)
{
    str of_run = str_c(join->reader->of_run);
    struct run run;
    enum err e = run_current(db, &join->arena, join->thread.id, &join->current);
    if (e && e != ERR_NOT_FOUND) return e;
    join->live = !e && join->current.status != RUN_WAITING;
    if (!of_run.len) return OK;
    e = run_find(db, &join->arena, join->thread.id, of_run, &run);
    if (e) return e == ERR_NOT_FOUND ? OK : e;
    join->queued = run.status == RUN_QUEUED;
    join->live = join->live && run.id == join->current.id;
    return OK;
}

static enum err join_run(struct job *job, struct db *db)
{
    struct join *join = (struct join *)(void *)job;
    const struct reader *reader = join->reader;
    arena_reset(&join->arena);
    join->found = join->queued = join->live = false;
    enum err e = join->thread_row ? thread_by_id(db, &join->arena, join->thread_row, &join->thread)
                                  : thread_find(db, &join->arena, str_c(reader->owner),
                                                str_c(reader->thread_id), &join->thread);
    if (e) return e == ERR_NOT_FOUND ? OK : e;
    join->found = true;
    return look_at_runs(join, db);
}

static void enter(struct reader *reader, int64_t thread)
{
    reader_enter(reader, thread);
    reader->log = agui_log_get(reader->feed, reader->profile);
    reader->log->readers++;
}

static void joined(struct reader *reader, const struct join *join)
{
    struct agui_log *log = reader->log;
    if (log->dead) { /* until those who read it have gone */
        agui_reader_end(reader, "lagging", TOO_SLOW);
        return;
    }
    if (agui_log_held(log)) return; /* asked again when its place is known */
    reader->joined = true;
    reader->idle = !join->live;
    reader->seq = join->thread.last_seq;
    reader->leg = log->leg_count - 1; /* SIZE_MAX: none yet */
    if (join->queued) {
        free(reader->wait_run);
        reader->wait_run = feed_copy(str_c(reader->of_run));
        reader->at = AGUI_PENDING;
        return;
    }
    struct thread_at_want want = {.seq = join->thread.last_seq,
                                  .run_id = str_c(reader->of_run),
                                  .messages = true,
                                  .end = !join->live};
    if (join->live) {
        reader->grown = grown_copy(reader->feed);
        agui_log_join(log, join->current.run_id, join->thread.last_seq, reader->grown);
        reader->leg = log->leg_count - 1;
        reader->place = sse_log_end(log->log);
        want.run_id = join->current.run_id;
    }
    open_by_itself(reader, &want);
}

static void join_done(struct job *job, enum err e)
{
    struct join *join = (struct join *)(void *)job;
    struct reader *reader = join->reader;
    reader_hold(reader);
    reader->reading = false;
    if (reader->gone) {
        /* nobody listens any more */
    } else if (e) {
        if (e != ERR_SHUTTING_DOWN) log_warn("feed.join", LOG_CSTR("reason", err_title(e)));
        agui_reader_end(reader, err_code(e), err_title(e));
    } else if (!join->found && !reader->feed && reader->all_legs) {
        reader->at = AGUI_NO_THREAD;
    } else if (!join->found) {
        agui_reader_end(reader, "not_found", "there is no such thread");
    } else {
        if (!reader->feed) enter(reader, join->thread.id);
        joined(reader, join);
    }
    reader_release(reader);
    arena_done(&join->arena);
    free(join);
}

void agui_reader_join(struct reader *reader)
{
    reader->at = AGUI_JOINING;
    if (reader->reading) return;
    struct join *join = calloc(1, sizeof *join);
    if (!join) abort();
    arena_init(&join->arena);
    join->job = (struct job){.run = join_run, .done = join_done, .who = str_c(reader->owner)};
    join->reader = reader;
    join->thread_row = reader->feed ? reader->feed->thread : 0;
    reader->reading = true;
    store_write(reader->feeds->server->store, &join->job);
}

/* ---- what others call ---- */

void agui_reader_free(struct reader *reader)
{
    free(reader->run_id);
    free(reader->wait_run);
    free(reader->of_run);
    free(reader->then_run);
    free(reader->ids);
    grown_free(reader->grown);
}

static void copy_ids(struct reader *reader, const struct agui_open *open)
{
    size_t bytes = open->id_count * sizeof *reader->ids;
    for (size_t i = 0; i < open->id_count; i++) bytes += open->ids[i].len;
    reader->ids = malloc(bytes + 1);
    if (!reader->ids) abort();
    char *text = (char *)(reader->ids + open->id_count);
    for (size_t i = 0; i < open->id_count; i++) {
        str id = open->ids[i];
        if (id.len) memcpy(text, id.p, id.len);
        reader->ids[i] = (str){text, id.len};
        text += id.len;
    }
    reader->id_count = open->id_count;
}

struct reader *feeds_agui(struct feeds *feeds, int64_t thread, str owner,
                          const struct agui_open *open)
{
    struct reader *reader = reader_new(feeds, READER_AGUI, owner, open->thread_id);
    reader->profile = open->profile;
    reader->run_id = feed_copy(open->run_id);
    reader->wait_run = feed_copy(open->wait_run);
    reader->of_run = feed_copy(open->of_run);
    reader->then_run = feed_copy(open->then_run);
    reader->all_legs = open->all_legs;
    reader->head = open->head;
    copy_ids(reader, open);
    if (thread) enter(reader, thread);
    reader->at = open->wait_run.len ? AGUI_PENDING : AGUI_JOINING;
    if (reader->log && reader->log->dead) agui_reader_end(reader, "lagging", TOO_SLOW);
    return reader;
}

void feeds_agui_answer(struct reader *reader, struct http_request *request,
                       const struct identity *who)
{
    bool stopping = reader->feeds->server->stopping;
    const struct thread_at *head = TAKE(reader->head);
    bool opens = reader->at == AGUI_OPENING && head;
    AUTO(buf_done) struct buf first;
    buf_init(&first, FEED_FRAME_BYTES_MAX);
    if (opens) write_head(reader, head, &first); /* it goes with the request */
    reader->key_id = feed_copy(who->key_id);
    memcpy(reader->session, who->session, HASH_BYTES);
    reader->stream = sse_open(request, NULL, 0, &agui_ops, reader);
    if (!reader->stream)
        reader_gone(reader, false);
    else if (reader->end_code) /* sent away before it could be told */
        agui_reader_end(reader, reader->end_code, reader->end_message);
    else if (stopping) /* whoever stops has told the streams that there were */
        on_stop(reader);
    else if (reader->at == AGUI_JOINING)
        agui_reader_join(reader);
    else if (opens)
        put_head(reader, &first, NULL);
}
