/* SPDX-License-Identifier: Apache-2.0
 *
 * The log that the AG-UI readers of a thread share, one for each profile: the middle of every leg
 * (wire/agui.h). Where a snapshot of the messages belongs between two frames, it is read from the
 * store as of the fact before it; meanwhile what comes behind waits as operations:
 *
 *     FRAMES     go into the log
 *     SNAPSHOT   is read, then goes into the log
 *     BEGIN      a leg begins here: readers that wait for it open
 *     END        a leg ends here: its readers leave the log at this place
 *
 * Without a snapshot on its way they are carried out at once.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/core/facts.h"
#include "agent/shell/model_turn.h"
#include "agent/shell/run.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "feed/feed_int.h"
#include "server/server.h"
#include "wire/stored.h"

enum op_kind { OP_FRAMES, OP_SNAPSHOT, OP_BEGIN, OP_END };

struct agui_op {
    struct agui_op *next;
    enum op_kind kind;
    int64_t seq;
    size_t len;
    char bytes[]; /* FRAMES: them; BEGIN: the run's id; SNAPSHOT: a thought that was taken back */
};

/* ---- loads ---- */

struct load *load_new(struct agui_log *log, const struct thread_at_want *want)
{
    struct load *load = calloc(1, sizeof *load);
    if (!load) abort();
    load->feeds = log->feed->feeds;
    load->thread = log->feed->thread;
    load->profile = log->fold.profile;
    load->log = log->id;
    load->id = ++load->feeds->loads;
    arena_init(&load->arena);
    load->want = *want;
    load->want.thread = load->thread;
    load->want.run_id = arena_str(&load->arena, want->run_id);
    return load;
}

void load_free(struct load *load)
{
    if (!load) return;
    arena_done(&load->arena);
    free(load);
}

static enum err load_run(struct job *job, struct db *db)
{
    struct load *load = (struct load *)(void *)job;
    return thread_at_read(db, &load->arena, &load->want, &load->thread_at);
}

static void load_done(struct job *job, enum err e)
{
    struct load *load = (struct load *)(void *)job;
    struct feed *feed = feed_find(load->feeds, load->thread);
    struct agui_log *log = feed ? feed->agui[load->profile] : NULL;
    if (!log || log->id != load->log || !log->readers) { /* nobody waits for it any more */
        load_free(load);
        return;
    }
    if (e && e != ERR_SHUTTING_DOWN) log_warn("feed.scene", LOG_CSTR("reason", err_title(e)));
    feed->walking++;
    load->then(log, load, e);
    feed_walk_end(feed);
}

void load_start(struct load *load)
{
    load->job = (struct job){.run = load_run, .done = load_done};
    store_read(load->feeds->server->store, &load->job);
}

/* ---- logs ---- */

static void ops_clear(struct agui_log *log)
{
    for (struct agui_op *op = log->ops, *next; op; op = next) {
        next = op->next;
        free(op);
    }
    log->ops = NULL;
    log->ops_end = &log->ops;
    log->op_bytes = 0;
}

void agui_log_free(struct agui_log *log)
{
    if (!log) return;
    assert(!log->readers);
    ops_clear(log);
    load_free(log->tail);
    arena_done(&log->told.arena);
    agui_done(&log->fold);
    sse_log_free(log->log);
    buf_done(&log->frame);
    free(log);
}

struct agui_log *agui_log_get(struct feed *feed, enum agui_profile profile)
{
    struct agui_log **slot = &feed->agui[profile];
    if (*slot && (*slot)->readers) return *slot;
    agui_log_free(*slot); /* it has missed what nobody read */
    struct agui_log *log = calloc(1, sizeof *log);
    if (!log) abort();
    log->id = ++feed->feeds->agui_logs;
    log->feed = feed;
    log->log = sse_log_new(feed->feeds->server->loop, SSE_LOG_BYTES_MAX);
    log->ops_end = &log->ops;
    log->tail_loading = SIZE_MAX;
    arena_init(&log->told.arena);
    buf_init(&log->frame, FEED_FRAME_BYTES_MAX);
    agui_init(&log->fold, profile);
    *slot = log;
    return log;
}

bool agui_log_held(const struct agui_log *log)
{
    return log->ops != NULL;
}

struct agui_leg *agui_log_leg(struct agui_log *log, size_t leg)
{
    bool kept = leg < log->leg_count && log->leg_count - leg <= AGUI_LEGS_KEPT;
    return kept ? &log->legs[leg % AGUI_LEGS_KEPT] : NULL;
}

static struct agui_leg *add_leg(struct agui_log *log, str run_id, int64_t began)
{
    struct agui_leg *leg = &log->legs[log->leg_count++ % AGUI_LEGS_KEPT];
    *leg = (struct agui_leg){.began = began, .begin_place = sse_log_end(log->log)};
    str_note(leg->run_id, sizeof leg->run_id, run_id);
    return leg;
}

void agui_log_join(struct agui_log *log, str run_id, int64_t seq, const struct grown *grown)
{
    log->seq = seq;
    if (log->fold.leg || !run_id.len) return;
    agui_join(&log->fold, true, grown_get(grown));
    str_note(log->run_id, sizeof log->run_id, run_id);
    add_leg(log, run_id, 0);
}

/* ---- operations ---- */

static void do_begin(struct agui_log *log, str run_id, int64_t seq)
{
    size_t number = log->leg_count;
    add_leg(log, run_id, seq);
    struct load *load =
        load_new(log, &(struct thread_at_want){.seq = seq, .run_id = run_id, .messages = true});
    bool any = false;
    for (struct reader *reader = log->feed->readers; reader; reader = reader->feed_next) {
        bool waits = !reader->gone && reader->log == log && reader->at == AGUI_PENDING &&
                     (!reader->wait_run[0] || str_eq(str_c(reader->wait_run), run_id));
        if (waits) agui_reader_begins(reader, number, load->id);
        any = any || (waits && !reader->head);
    }
    if (!any) {
        load_free(load);
        return;
    }
    load->leg = number;
    load->then = agui_reader_heads;
    load_start(load);
}

static void do_end(struct agui_log *log, int64_t seq)
{
    size_t number = log->leg_count - 1;
    struct agui_leg *leg = log->leg_count ? agui_log_leg(log, number) : NULL;
    if (!leg || leg->ended) return;
    leg->ended = seq;
    leg->end_place = sse_log_end(log->log);
    for (struct reader *reader = log->feed->readers; reader; reader = reader->feed_next)
        if (!reader->gone && reader->log == log && reader->leg == number) agui_reader_ends(reader);
}

static void snapshot_made(struct agui_log *log, struct load *load, enum err e);

static void do_op(struct agui_log *log, enum op_kind kind, int64_t seq, str bytes)
{
    if (kind == OP_FRAMES)
        sse_log_append(log->log, bytes);
    else if (kind == OP_BEGIN)
        do_begin(log, bytes, seq);
    else if (kind == OP_END)
        do_end(log, seq);
}

static void make_snapshot(struct agui_log *log, int64_t seq)
{
    struct load *load = load_new(
        log, &(struct thread_at_want){.seq = seq, .run_id = str_c(log->run_id), .messages = true});
    load->then = snapshot_made;
    load_start(load);
}

/* Everybody is sent away: what waits has grown too large, or cannot be read. */
static void give_up(struct agui_log *log, const char *code, const char *message)
{
    ops_clear(log);
    log->dead = true;
    for (struct reader *reader = log->feed->readers, *next; reader; reader = next) {
        next = reader->feed_next;
        if (!reader->gone && reader->log == log) agui_reader_end(reader, code, message);
    }
}

static void add_op(struct agui_log *log, enum op_kind kind, int64_t seq, str bytes)
{
    if (!log->ops && kind != OP_SNAPSHOT) {
        do_op(log, kind, seq, bytes);
        return;
    }
    struct agui_op *op = calloc(1, sizeof *op + bytes.len);
    if (!op) abort();
    op->kind = kind;
    op->seq = seq;
    op->len = bytes.len;
    if (bytes.len) memcpy(op->bytes, bytes.p, bytes.len);
    bool first = !log->ops;
    *log->ops_end = op;
    log->ops_end = &op->next;
    log->op_bytes += sizeof *op + op->len;
    if (first) make_snapshot(log, seq);
    if (log->op_bytes > AGUI_HELD_BYTES_MAX)
        give_up(log, "lagging", "too much came at once; ask again and go on from there");
}

/* The first op is the snapshot; behind it all that goes at once, up to the next one. */
static void snapshot_made(struct agui_log *log, struct load *load, enum err e)
{
    if (e || !log->ops) {
        load_free(load);
        if (e) give_up(log, "storage_full", "the conversation cannot be read now; ask again");
        return;
    }
    agui_snapshot_without(&log->frame, log->fold.profile, load->thread_at.rows,
                          load->thread_at.row_count, (str){log->ops->bytes, log->ops->len});
    load_free(load);
    if (log->frame.len && !log->frame.full) sse_log_append(log->log, buf_str(&log->frame));
    buf_clear(&log->frame);
    bool made = true;
    while (log->ops && (made || log->ops->kind != OP_SNAPSHOT)) {
        struct agui_op *op = log->ops;
        log->ops = op->next;
        if (!log->ops) log->ops_end = &log->ops;
        log->op_bytes -= sizeof *op + op->len;
        do_op(log, op->kind, op->seq, (str){op->bytes, op->len});
        free(op);
        made = false;
    }
    if (log->ops) {
        make_snapshot(log, log->ops->seq);
        return;
    }
    for (struct reader *reader = log->feed->readers; reader; reader = reader->feed_next)
        if (!reader->gone && reader->log == log && reader->at == AGUI_JOINING)
            agui_reader_join(reader);
}

/* ---- what is told ---- */

static void put_frames(struct agui_log *log, bool snapshot)
{
    log->feed->feeds->server->metrics.encoded_agui++;
    if (log->frame.len && !log->frame.full) add_op(log, OP_FRAMES, log->seq, buf_str(&log->frame));
    buf_clear(&log->frame);
    if (snapshot) add_op(log, OP_SNAPSHOT, log->seq, str_c(log->fold.stray));
}

static bool is(const struct fact *fact, const char *type)
{
    return strcmp(fact->type, type) == 0;
}

/* A run that was dropped from the queue ends without a leg, perhaps in the middle of another's. */
static bool ends_elsewhere(struct agui_log *log, const struct fact *fact)
{
    if (log->fold.leg && str_eq(fact->run_id, str_c(log->run_id))) return false;
    for (struct reader *reader = log->feed->readers; reader; reader = reader->feed_next)
        if (!reader->gone && reader->log == log && reader->at == AGUI_PENDING &&
            str_eq(str_c(reader->wait_run), fact->run_id))
            agui_reader_dropped(reader, fact);
    return true;
}

/* ---- the tail, from what was told ---- */

static uint64_t count_of(str data, str key)
{
    uint64_t count = 0;
    return str_to_u64(stored_get(data, key), &count) ? 0 : count;
}

static str told_text(struct leg_told *told, const struct fact *fact, str key)
{
    return arena_str(&told->arena, stored_text(&told->arena, fact->data, key));
}

static void note_told(struct agui_log *log, const struct fact *fact)
{
    struct leg_told *told = &log->told;
    if (is(fact, FACT_RUN_STARTED)) {
        struct arena arena = told->arena;
        arena_reset(&arena);
        *told = (struct leg_told){.arena = arena, .whole = true};
        told->model = told_text(told, fact, STR("model"));
    } else if (!str_eq(fact->run_id, str_c(log->run_id))) {
        return; /* of another run: dropped, or put into the queue */
    } else if (is(fact, FACT_STEP_START)) {
        told->step = told_text(told, fact, STR("stepName"));
        told->step_known = true;
    } else if (is(fact, FACT_STEP_FINISH)) {
        told->step = STR_EMPTY;
        told->step_known = true;
    } else if (is(fact, FACT_TEXT_END)) {
        told->input_tokens += count_of(fact->data, STR("inputTokens"));
        told->output_tokens += count_of(fact->data, STR("outputTokens"));
    }
}

void agui_log_step(struct agui_log *log, size_t leg, str step)
{
    struct leg_told *told = &log->told;
    if (told->step_known || leg != log->leg_count - 1) return;
    told->step = arena_str(&told->arena, step);
    told->step_known = true;
}

/* The interactions that the end of a leg names, all opened in the commit that is being told. False:
 * one was opened before it. */
static bool open_told(struct load *load, const struct fact *facts, size_t last)
{
    struct thread_at *at = &load->thread_at;
    struct json *ids = NULL;
    str list = stored_get(facts[last].data, STR("interactions"));
    if (!list.len) return true;
    if (json_parse(&load->arena, list, &ids, NULL) || ids->type != JSON_ARRAY) return false;
    at->open = arena_array(&load->arena, ids->count, sizeof *at->open);
    for (const struct json *id = ids->child; id; id = id->next) {
        const struct interaction *found = NULL;
        for (size_t i = 0; i < last && !found; i++) {
            const struct interaction *opened = facts[i].interaction;
            if (opened && str_eq(opened->id, json_text(id))) found = opened;
        }
        if (!found) return false;
        interaction_copy(&load->arena, found, &at->open[at->open_count++]);
    }
    return true;
}

/* What read_end of thread_at.c would read. Nothing may wait for a snapshot: then it is read. */
static void keep_tail(struct agui_log *log, const struct fact *facts, size_t last)
{
    const struct leg_told *told = &log->told;
    if (!told->whole || !told->step_known || log->ops || !log->leg_count) return;
    struct load *load = load_new(log, &(struct thread_at_want){.run_id = facts[last].run_id});
    load->leg = log->leg_count - 1;
    load->thread_at = (struct thread_at){.run_id = load->want.run_id,
                                         .model = arena_str(&load->arena, told->model),
                                         .step = arena_str(&load->arena, told->step),
                                         .ended = facts[last],
                                         .input_tokens = told->input_tokens,
                                         .output_tokens = told->output_tokens};
    struct fact *ended = &load->thread_at.ended;
    ended->type = arena_cstr(&load->arena, str_c(ended->type));
    ended->data = arena_str(&load->arena, ended->data);
    ended->run_id = load->want.run_id;
    if (!open_told(load, facts, last)) {
        load_free(load);
        return;
    }
    load_free(log->tail);
    log->tail = load;
}

static void tell_fact(struct agui_log *log, const struct fact *facts, size_t at)
{
    const struct fact *fact = &facts[at];
    bool begins = is(fact, FACT_RUN_STARTED);
    bool ends = is(fact, FACT_RUN_FINISHED) || is(fact, FACT_RUN_ERROR);
    if (!log->readers || log->dead) return;
    log->seq = fact->seq;
    if (ends && ends_elsewhere(log, fact)) return;
    if (begins) str_note(log->run_id, sizeof log->run_id, fact->run_id);
    note_told(log, fact);
    put_frames(log, agui_fact(&log->fold, &log->frame, fact));
    if (log->dead) return;
    if (ends) keep_tail(log, facts, at);
    if (begins) add_op(log, OP_BEGIN, fact->seq, fact->run_id);
    if (ends) add_op(log, OP_END, fact->seq, STR_EMPTY);
}

void agui_log_facts(struct agui_log *log, const struct fact *facts, size_t count)
{
    for (size_t i = 0; i < count; i++) tell_fact(log, facts, i);
}

void agui_log_preview(struct agui_log *log, const struct preview *preview)
{
    if (log->readers && !log->dead) put_frames(log, agui_preview(&log->fold, &log->frame, preview));
}

/* ---- what is growing ---- */

struct grown {
    struct arena arena;
    struct agui_growing growing;
};

const struct agui_growing *grown_get(const struct grown *grown)
{
    return grown ? &grown->growing : NULL;
}

void grown_free(struct grown *grown)
{
    if (!grown) return;
    arena_done(&grown->arena);
    free(grown);
}

struct grown *grown_copy(struct feed *feed)
{
    const struct model_turn *model_turn = runs_model_turn(feed->feeds->server->runs, feed->thread);
    if (!model_turn) return NULL;
    struct grown *grown = calloc(1, sizeof *grown);
    if (!grown) abort();
    arena_init(&grown->arena);
    struct agui_call *calls = arena_array(&grown->arena, model_turn->call_count + 1, sizeof *calls);
    struct agui_growing *growing = &grown->growing;
    growing->message_id = arena_str(&grown->arena, str_c(model_turn->message_id));
    growing->text = arena_str(&grown->arena, buf_str(&model_turn->text));
    growing->reasoning = arena_str(&grown->arena, buf_str(&model_turn->reasoning));
    growing->calls = calls;
    for (size_t i = 0; i < model_turn->call_count; i++) {
        struct preview start;
        str args;
        if (!model_turn_call(model_turn, i, &start, &args)) continue;
        calls[growing->call_count++] =
            (struct agui_call){.id = arena_str(&grown->arena, start.call_id),
                               .name = arena_str(&grown->arena, start.tool),
                               .args = arena_str(&grown->arena, args)};
    }
    return grown;
}
