/* SPDX-License-Identifier: Apache-2.0
 *
 * One object for each run that is worked on:
 *
 *     runs_wake ─▶ LOADING ─▶ (nothing to do: gone)
 *                   │   ▲ └── the store could not ──▶ RETRY ─┐
 *                   │   └────────────────────────────────────┘
 *                   │ state
 *                     ▼
 *          ┌────▶ EFFECT ── model ──▶ CALLING ── again ──▶ RESTING ─┐
 *          │                            │  ▲                        │
 *          │                            │  └────────────────────────┘
 *          │                            │ turn, down, cancel
 *          └──── not ended ◀─ COMMITTING ◀┘
 *                                 │ ended
 *                                 ▼ gone; the next of the queue is woken
 *
 * Invariants:
 * 1. Facts reach the bus after their commit, in its order; previews only while CALLING.
 * 2. At most one commit of a run is under way, and nothing of the run happens meanwhile: a cancel
 *    waits for it.
 * 3. An attempt that fails leaves nothing but a discard; each attempt has a message id of its own.
 * 4. A commit that the disk has no room for, or that another process keeps out, is tried again until
 *    it fits; what the model said is kept meanwhile.
 */
#include "agent/run.h"

#include <stdlib.h>
#include <string.h>

#include "agent/begin.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/utf8.h"
#include "net/loop.h"
#include "store/store.h"

struct runs {
    struct runs_options options;
    struct map active; /* thread id, 8 bytes -> struct active */
    bool missed;       /* a run found no room; look for it again when there is some */
    bool stopping;
};

enum active_state {
    ACTIVE_LOADING,
    ACTIVE_RETRY,
    ACTIVE_CALLING,
    ACTIVE_RESTING,
    ACTIVE_COMMITTING
};

struct active {
    struct runs *runs;
    int64_t thread;
    enum active_state state;
    bool cancel;    /* asked for while something was under way */
    bool again;     /* woken while loading: what was not there then may be there now */
    bool forgotten; /* gone as soon as the job under way is done */
    struct arena arena;
    struct run run;
    str thread_id, owner;
    struct arena graph_arena; /* of the state */
    struct state graph;
    int64_t version; /* of the snapshot */
    struct model_message *context;
    size_t context_count;

    struct timer *timer;
    struct model_call *call;
    unsigned attempt;
    char message_id[4 + ID_BYTES];
    bool shown; /* previews of this attempt went out */
    struct buf text, reasoning;
    uint64_t text_units, reasoning_units;
    size_t call_count;
    struct commit *commit;
};

/* ---- the set of active runs ---- */

static str thread_key(const int64_t *thread)
{
    return (str){(const char *)thread, sizeof *thread};
}

static struct active *active_find(const struct runs *runs, int64_t thread)
{
    return map_get(&runs->active, thread_key(&thread));
}

static void on_timer(void *arg);
static void load_start(struct active *active);

static struct active *active_new(struct runs *runs, int64_t thread)
{
    struct active *active = calloc(1, sizeof *active);
    if (!active) abort();
    active->runs = runs;
    active->thread = thread;
    arena_init(&active->arena);
    arena_init(&active->graph_arena);
    buf_init(&active->text, RUN_TEXT_BYTES_MAX);
    buf_init(&active->reasoning, RUN_TEXT_BYTES_MAX);
    active->timer = timer_new(runs->options.loop, on_timer, active);
    if (map_put(&runs->active, thread_key(&thread), active))
        abort(); /* RUNS_ACTIVE_MAX is checked before */
    return active;
}

static void active_free(struct active *active)
{
    struct runs *runs = active->runs;
    map_remove(&runs->active, thread_key(&active->thread));
    if (active->call) model_cancel(&runs->options.agent->model, active->call);
    timer_free(active->timer);
    buf_done(&active->text);
    buf_done(&active->reasoning);
    arena_done(&active->graph_arena);
    arena_done(&active->arena);
    free(active);
    if (runs->missed && !runs->stopping && runs->active.count < RUNS_ACTIVE_MAX / 2) {
        runs->missed = false;
        runs_recover(runs);
    }
}

static void trouble(const struct active *active, const char *what, enum err e)
{
    const struct runs_options *o = &active->runs->options;
    if (o->on_trouble) o->on_trouble(o->arg, active->thread_id, active->run.run_id, what, e);
}

/* ---- previews ---- */

static void show(struct active *active, enum preview_kind kind, str delta, uint64_t offset)
{
    const struct runs_options *o = &active->runs->options;
    if (!bus_followed(o->bus, active->thread)) return;
    bus_preview(o->bus, active->thread,
                &(struct preview){.kind = kind,
                                  .run_id = active->run.run_id,
                                  .message_id = str_c(active->message_id),
                                  .delta = delta,
                                  .offset = offset,
                                  .at = clock_wall(o->clock)});
}

/* ---- commits ---- */

struct commit {
    struct job job;
    struct active *active;
    struct arena arena;
    struct outcome outcome;
    struct run run; /* as it will be */
    struct buf snapshot;
    unsigned char hash[HASH_BYTES];
    msec now;
    bool next; /* the queue has another */
};

static void commit_free(struct commit *commit)
{
    buf_done(&commit->snapshot);
    arena_done(&commit->arena);
    free(commit);
}

static enum err add_messages(struct commit *commit, struct db *db, int64_t thread)
{
    const struct outcome *o = &commit->outcome;
    for (size_t i = 0; i < o->message_count; i++) {
        struct message message = o->messages[i];
        message.seq =
            o->facts[message.seq - 1].seq; /* the fact that it belongs to has its number now */
        enum err e = message_add(db, thread, &message);
        if (e) return e;
    }
    return OK;
}

/* A terminal step removes the snapshot; any other replaces it. Both only as the holder of the
 * lease. */
static enum err snapshot_settle(struct commit *commit, struct db *db)
{
    const struct active *active = commit->active;
    if (commit->outcome.ended)
        return snapshot_delete(db, commit->run.id, active->version, active->runs->options.epoch);
    return snapshot_save(db, commit->run.id, active->version, active->runs->options.epoch,
                         buf_str(&commit->snapshot), commit->hash);
}

static enum err commit_run(struct job *job, struct db *db)
{
    struct commit *commit = (struct commit *)(void *)job;
    const struct active *active = commit->active;
    struct outcome *o = &commit->outcome;
    enum err e = snapshot_settle(commit, db);
    if (!e) e = facts_append(db, active->thread, o->facts, o->fact_count, commit->now);
    if (!e) e = add_messages(commit, db, active->thread);
    if (!e) e = run_update(db, &commit->run);
    if (e || !o->ended) return e;

    struct run next;
    e = run_next(db, &commit->arena, active->thread, &next);
    commit->next = e == OK;
    return e == ERR_NOT_FOUND ? OK : e;
}

static void go_on(struct active *active);
static void step(struct active *active, struct input *input);
static void cancel_now(struct active *active);

/* Go on from the very bytes that were saved, as a restart would. */
static void keep_state(struct active *active, str snapshot)
{
    arena_reset(&active->graph_arena);
    str bytes = arena_str(&active->graph_arena, snapshot);
    enum err e = state_parse(&active->graph_arena, bytes, &active->graph, NULL);
    assert(e == OK);
}

static void commit_done(struct job *job, enum err e)
{
    struct commit *commit = (struct commit *)(void *)job;
    struct active *active = commit->active;
    struct runs *runs = active->runs;
    if (active->forgotten || runs->stopping) {
        commit_free(commit);
        active_free(active);
        return;
    }
    if (e == ERR_STORAGE_FULL || e == ERR_RATE_LIMITED || e == ERR_LOCKED) {
        trouble(active, "commit postponed", e);
        active->commit = commit;
        timer_start(active->timer, RUN_COMMIT_RETRY_MS);
        return;
    }
    if (e) { /* somebody else works on it, or the store failed: what is stored decides after the
                next start */
        trouble(active, "commit refused", e);
        commit_free(commit);
        active_free(active);
        return;
    }
    int64_t thread = active->thread;
    bool ended = commit->outcome.ended, next = commit->next;
    bus_facts(runs->options.bus, thread, commit->outcome.facts, commit->outcome.fact_count);
    if (ended) {
        commit_free(commit);
        active_free(active);
        if (next) runs_wake(runs, thread);
        return;
    }
    active->version++;
    active->run.status = commit->run.status;
    keep_state(active, buf_str(&commit->snapshot));
    commit_free(commit);
    go_on(active);
}

/* Save what a step returned. The active run keeps still until it is saved. */
static void commit_start(struct active *active, struct commit *commit)
{
    const struct outcome *o = &commit->outcome;
    commit->job = (struct job){.run = commit_run, .done = commit_done};
    commit->active = active;
    commit->run = active->run;
    commit->run.status = o->status;
    commit->run.input_tokens = o->state.input_tokens;
    commit->run.output_tokens = o->state.output_tokens;
    commit->run.ended = o->ended ? commit->now : 0;
    buf_init(&commit->snapshot, STATE_BYTES_MAX);
    if (!o->ended) {
        state_write(&commit->snapshot, &o->state);
        crypto_sha256(buf_str(&commit->snapshot), commit->hash);
    }
    active->state = ACTIVE_COMMITTING;
    store_write(active->runs->options.store, &commit->job);
}

static struct commit *commit_new(struct active *active)
{
    struct commit *commit = calloc(1, sizeof *commit);
    if (!commit) abort();
    arena_init(&commit->arena);
    commit->now = clock_wall(active->runs->options.clock);
    return commit;
}

static void step(struct active *active, struct input *input)
{
    struct commit *commit = commit_new(active);
    input->now = commit->now;
    crypto_random(input->random, sizeof input->random);
    graph_step(&commit->arena, &active->graph, input, &commit->outcome);
    commit_start(active, commit);
}

/* ---- the model ---- */

static void on_text(void *arg, str delta)
{
    struct active *active = arg;
    if (active->text.len == 0) show(active, PREVIEW_MESSAGE_START, STR_EMPTY, 0);
    active->shown = true; /* not the sign of the start: reasoning may have come before */
    show(active, PREVIEW_TEXT, delta, active->text_units);
    buf_append(&active->text, delta);
    active->text_units += utf8_utf16_units(delta);
}

static void on_reasoning(void *arg, str delta)
{
    struct active *active = arg;
    active->shown = true; /* a discard has to follow, should the attempt fail */
    show(active, PREVIEW_REASONING, delta, active->reasoning_units);
    buf_append(&active->reasoning, delta);
    active->reasoning_units += utf8_utf16_units(delta);
}

static void on_call(void *arg, size_t index, str provider_id, str name)
{
    struct active *active = arg;
    (void)index;
    (void)provider_id;
    (void)name;
    active->call_count++;
}

static void on_args(void *arg, size_t index, str delta)
{
    (void)arg;
    (void)index;
    (void)delta;
}

/* Nothing of what was shown becomes a fact. */
static void discard(struct active *active, str reason)
{
    if (active->shown) show(active, PREVIEW_DISCARD, reason, 0);
    active->shown = false;
}

static struct turn turn_so_far(const struct active *active)
{
    return (struct turn){.message_id = str_c(active->message_id),
                         .text = buf_str(&active->text),
                         .reasoning = buf_str(&active->reasoning),
                         .call_count = active->call_count};
}

static void model_down(struct active *active, enum err e, const struct fault *why)
{
    struct input input = {.kind = INPUT_DOWN, .why = e};
    input.why_text = str_c(why && why->text[0] ? why->text : err_title(e));
    step(active, &input);
}

static void attempt_failed(struct active *active, const struct fault *why)
{
    discard(active, STR("the model's answer broke off"));
    buf_clear(&active->text); /* a cancel before the next attempt must not keep it */
    buf_clear(&active->reasoning);
    if (active->attempt >= RUN_ATTEMPTS_MAX) {
        model_down(active, ERR_MODEL_UNAVAILABLE, why);
        return;
    }
    /* Twice as long each time, and never at the same moment as others that failed with us. */
    const struct runs_options *o = &active->runs->options;
    msec wait = (o->retry_ms ? o->retry_ms : RUN_RETRY_MS) << (active->attempt - 1);
    uint16_t jitter;
    crypto_random(&jitter, sizeof jitter);
    active->state = ACTIVE_RESTING;
    timer_start(active->timer, wait / 2 + wait * jitter / UINT16_MAX / 2);
}

static void on_end(void *arg, enum model_end end, const struct model_usage *usage,
                   const struct fault *why)
{
    struct active *active = arg;
    active->call = NULL;
    bool overflow = active->text.full || active->reasoning.full;
    if (end == MODEL_DONE && !overflow) {
        struct input input = {.kind = INPUT_TURN, .turn = turn_so_far(active)};
        if (usage) input.turn.usage = *usage;
        if (active->call_count)
            discard(active, STR("the model called a tool")); /* there are none */
        step(active, &input);
    } else if (end == MODEL_AGAIN && !overflow) {
        attempt_failed(active, why);
    } else {
        discard(active, STR("the model failed"));
        struct fault too_long;
        if (overflow) fault(&too_long, ERR_TOO_LARGE, "the model's answer is too long");
        model_down(active, ERR_INTERNAL, overflow ? &too_long : why);
    }
}

static const struct model_sink sink = {.on_text = on_text,
                                       .on_reasoning = on_reasoning,
                                       .on_call = on_call,
                                       .on_args = on_args,
                                       .on_end = on_end};

static void call_model(struct active *active)
{
    const struct agent *agent = active->runs->options.agent;
    memcpy(active->message_id, "msg_", 4);
    id_random(active->message_id + 4);
    active->attempt++;
    active->shown = false;
    active->call_count = 0;
    active->text_units = active->reasoning_units = 0;
    buf_clear(&active->text);
    buf_clear(&active->reasoning);
    active->state = ACTIVE_CALLING;
    active->call = model_start(&agent->model,
                               &(struct model_request){.system = agent->prompt,
                                                       .messages = active->context,
                                                       .count = active->context_count,
                                                       .locale = agent->locale,
                                                       .round = active->graph.round_used + 1},
                               &sink, active);
}

/* Perform the effect of the state. */
static void go_on(struct active *active)
{
    if (active->cancel) {
        cancel_now(active);
        return;
    }
    switch (graph_effect(&active->graph)) {
    case EFFECT_MODEL:
        active->attempt = 0;
        call_model(active);
        break;
    case EFFECT_NONE:
        active_free(active);
        break;
    }
}

static void on_timer(void *arg)
{
    struct active *active = arg;
    if (active->state == ACTIVE_COMMITTING)
        store_write(active->runs->options.store, &TAKE(active->commit)->job);
    else if (active->state == ACTIVE_RETRY)
        load_start(active);
    else
        call_model(active);
}

static void cancel_now(struct active *active)
{
    if (active->call) model_cancel(&active->runs->options.agent->model, TAKE(active->call));
    timer_stop(active->timer);
    struct input input = {.kind = INPUT_CANCEL, .turn = turn_so_far(active)};
    if (!active->text.len)
        discard(active, STR("cancelled")); /* only reasoning was shown: nothing is kept */
    step(active, &input);
}

void runs_cancel(struct runs *runs, int64_t thread)
{
    struct active *active = active_find(runs, thread);
    if (!active) {
        runs_wake(runs, thread);
        return;
    }
    active->cancel = true;
    if (active->state == ACTIVE_CALLING || active->state == ACTIVE_RESTING) cancel_now(active);
}

/* ---- loading ---- */

struct load {
    struct job job;
    struct active *active;
    int64_t version;
    str snapshot;
    struct message_list messages;
    bool damaged, queued;
};

static enum err load_run(struct job *job, struct db *db)
{
    struct load *load = (struct load *)(void *)job;
    struct active *active = load->active;
    struct arena *arena = &active->arena;
    struct thread thread;
    enum err e = thread_by_id(db, arena, active->thread, &thread);
    if (e) return e;
    active->thread_id = thread.thread_id;
    active->owner = thread.owner;
    e = run_current(db, arena, active->thread, &active->run);
    if (e == ERR_NOT_FOUND) {
        load->queued = true;
        return run_next(db, arena, active->thread, &active->run);
    }
    if (e) return e;
    e = snapshot_load(db, arena, active->run.id, &load->version, &load->snapshot);
    load->damaged = e == ERR_IO || e == ERR_NOT_FOUND;
    if (load->damaged) return OK;
    if (e) return e;
    return message_page(db, arena, active->thread, 0, 0, RUN_CONTEXT_MESSAGES_MAX, &load->messages);
}

/* What the model sees: people's and its own words; the oldest go when they do not fit. */
static void make_context(struct active *active, const struct message_list *list)
{
    size_t first = list->count, bytes = 0;
    while (first > 0 && bytes < RUN_CONTEXT_BYTES_MAX) bytes += list->messages[--first].plain.len;
    active->context = arena_array(&active->arena, list->count - first + 1, sizeof *active->context);
    for (size_t i = first; i < list->count; i++) {
        const struct message *m = &list->messages[i];
        bool spoken = str_eq(m->role, STR("user")) || str_eq(m->role, STR("assistant"));
        if (!spoken || m->plain.len == 0) continue;
        active->context[active->context_count++] =
            (struct model_message){.role = m->role, .text = m->plain};
    }
}

static void start_next(struct active *active);

static void damaged(struct arena *arena, const struct active *active, const char *why, msec now,
                    struct outcome *ret_outcome)
{
    struct fact *fact = ARENA_NEW(arena, struct fact);
    struct buf data;
    struct json_writer w;
    buf_init(&data, 4096);
    json_write_begin(&w, &data);
    json_object(&w);
    json_member(&w, STR("code"), STR("snapshot_damaged"));
    json_member(&w, STR("message"), str_c(why));
    json_key(&w, STR("retryable"));
    json_bool(&w, false);
    json_object_end(&w);
    *fact = (struct fact){.type = "run.error",
                          .run_id = active->run.run_id,
                          .at = now,
                          .data = arena_str(arena, buf_str(&data))};
    buf_done(&data);
    *ret_outcome =
        (struct outcome){.facts = fact, .fact_count = 1, .status = RUN_FAILED, .ended = true};
}

/* A snapshot that cannot be read fails its own run, visibly. */
static void fail_damaged(struct active *active, const char *why)
{
    struct commit *commit = commit_new(active);
    damaged(&commit->arena, active, why, commit->now, &commit->outcome);
    trouble(active, "snapshot damaged", ERR_IO);
    commit_start(active, commit);
}

/* The store could not serve us just now. Whatever is stored decides when it can. */
static void retry_later(struct active *active)
{
    active->state = ACTIVE_RETRY;
    timer_start(active->timer, RUN_COMMIT_RETRY_MS);
}

static void load_done(struct job *job, enum err e)
{
    struct load *load = (struct load *)(void *)job;
    struct active *active = load->active;
    struct runs *runs = active->runs;
    int64_t thread = active->thread;
    if (active->forgotten || runs->stopping || e == ERR_NOT_FOUND) {
        bool again = active->again && !active->forgotten;
        active_free(active);
        if (again) runs_wake(runs, thread);
        return;
    }
    if (e) {
        trouble(active, "cannot load", e);
        retry_later(active);
        return;
    }
    if (load->queued) {
        start_next(active);
        return;
    }
    active->version = load->damaged ? -1 : load->version;
    struct fault why = {0};
    if (load->damaged || state_parse(&active->graph_arena, load->snapshot, &active->graph, &why)) {
        fail_damaged(active, load->damaged ? "the stored state is damaged" : why.text);
        return;
    }
    make_context(active, &load->messages);
    if (active->run.status == RUN_CANCELLING) active->cancel = true;
    go_on(active);
}

static void load_start(struct active *active)
{
    arena_reset(&active->arena);
    arena_reset(&active->graph_arena);
    struct load *load = ARENA_NEW(&active->arena, struct load);
    load->job = (struct job){.run = load_run, .done = load_done};
    load->active = active;
    active->again = false;
    active->context_count = 0;
    active->state = ACTIVE_LOADING;
    store_read(active->runs->options.store, &load->job);
}

void runs_wake(struct runs *runs, int64_t thread)
{
    struct active *known = active_find(runs, thread);
    if (known) known->again = true;
    if (known || runs->stopping) return;
    if (runs->active.count >= RUNS_ACTIVE_MAX) {
        runs->missed = true;
        return;
    }
    load_start(active_new(runs, thread));
}

/* ---- the queue: a run whose turn has come ---- */

struct next {
    struct job job;
    struct active *active;
    struct arena arena;
    struct begun begun;
    bool late; /* somebody was faster: look again */
    msec now;
};

static enum err next_run(struct job *job, struct db *db)
{
    struct next *next = (struct next *)(void *)job;
    const struct active *active = next->active;
    struct run current, run;
    arena_reset(&next->arena);
    enum err e = run_current(db, &next->arena, active->thread, &current);
    next->late = e == OK;
    if (e != ERR_NOT_FOUND) return e ? e : ERR_BUSY;
    e = run_next(db, &next->arena, active->thread, &run);
    if (e) return e;
    const struct runs_options *o = &active->runs->options;
    struct begin begin = {o->agent, o->epoch, active->owner, active->thread_id, next->now};
    return run_begin_queued(db, &next->arena, &begin, &run, &next->begun);
}

static void next_done(struct job *job, enum err e)
{
    struct next *next = (struct next *)(void *)job;
    struct active *active = next->active;
    struct runs *runs = active->runs;
    int64_t thread = active->thread;
    bool gone = active->forgotten || runs->stopping;
    bool again = !gone && (!e || next->late);
    if (e && e != ERR_NOT_FOUND && !next->late) trouble(active, "cannot start the next run", e);
    if (!e && !gone)
        bus_facts(runs->options.bus, thread, next->begun.facts, next->begun.fact_count);
    bool failed = e && e != ERR_NOT_FOUND && !next->late;
    arena_done(&next->arena);
    free(next);
    if (failed && !gone) {
        retry_later(active);
        return;
    }
    active_free(active);
    if (again) runs_wake(runs, thread);
}

static void start_next(struct active *active)
{
    struct next *next = calloc(1, sizeof *next);
    if (!next) abort();
    arena_init(&next->arena);
    next->job = (struct job){.run = next_run, .done = next_done};
    next->active = active;
    next->now = clock_wall(active->runs->options.clock);
    active->state = ACTIVE_COMMITTING;
    store_write(active->runs->options.store, &next->job);
}

/* ---- all of them ---- */

struct runs *runs_new(const struct runs_options *options)
{
    struct runs *runs = calloc(1, sizeof *runs);
    if (!runs) abort();
    runs->options = *options;
    map_init(&runs->active, RUNS_ACTIVE_MAX);
    return runs;
}

void runs_stop(struct runs *runs)
{
    runs->stopping = true;
}

void runs_free(struct runs *runs)
{
    if (!runs) return;
    runs_stop(runs);
    size_t at = 0;
    str key;
    void *value;
    while (map_next(&runs->active, &at, &key, &value)) {
        struct active *active = value;
        if (active->state == ACTIVE_LOADING ||
            (active->state == ACTIVE_COMMITTING && !active->commit))
            continue; /* its job is with the store, which is closed before us */
        if (active->commit) commit_free(TAKE(active->commit));
        active_free(active);
        at--;
    }
    assert(runs->active.count == 0);
    map_done(&runs->active);
    free(runs);
}

void runs_forget(struct runs *runs, int64_t thread)
{
    struct active *active = active_find(runs, thread);
    if (!active) return;
    bool job_under_way =
        active->state == ACTIVE_LOADING || (active->state == ACTIVE_COMMITTING && !active->commit);
    active->forgotten = true;
    if (job_under_way) return;
    if (active->commit) commit_free(TAKE(active->commit));
    active_free(active);
}

size_t runs_active(const struct runs *runs)
{
    return runs->active.count;
}

bool runs_partial(const struct runs *runs, int64_t thread, struct partial *ret_partial)
{
    const struct active *active = active_find(runs, thread);
    if (!active || active->state == ACTIVE_RESTING || !active->shown ||
        active->state == ACTIVE_LOADING)
        return false;
    *ret_partial = (struct partial){.run_id = active->run.run_id,
                                    .message_id = str_c(active->message_id),
                                    .text = buf_str(&active->text),
                                    .reasoning = buf_str(&active->reasoning)};
    return true;
}

struct recover {
    struct job job;
    struct runs *runs;
    int64_t after;
    struct arena arena;
    struct run_list list;
};

static enum err recover_run(struct job *job, struct db *db)
{
    struct recover *recover = (struct recover *)(void *)job;
    return run_unfinished(db, &recover->arena, recover->after, RUN_RECOVER_PAGE, &recover->list);
}

static void recover_done(struct job *job, enum err e)
{
    struct recover *recover = (struct recover *)(void *)job;
    struct runs *runs = recover->runs;
    size_t count = e ? 0 : recover->list.count;
    for (size_t i = 0; i < count; i++) {
        runs_wake(runs, recover->list.runs[i].thread);
        recover->after = recover->list.runs[i].id;
    }
    arena_reset(&recover->arena);
    if (count == RUN_RECOVER_PAGE && !runs->stopping) {
        store_read(runs->options.store, &recover->job);
        return;
    }
    arena_done(&recover->arena);
    free(recover);
}

void runs_recover(struct runs *runs)
{
    struct recover *recover = calloc(1, sizeof *recover);
    if (!recover) abort();
    recover->job = (struct job){.run = recover_run, .done = recover_done};
    recover->runs = runs;
    arena_init(&recover->arena);
    store_read(runs->options.store, &recover->job);
}
