/* SPDX-License-Identifier: Apache-2.0
 *
 * One object for each run that is worked on:
 *
 *     runs_wake ─▶ LOADING ─▶ (nothing to do: gone)
 *                   ▲ │ └── the store could not ──▶ RETRY ──▶ LOADING
 *                   │ │ view
 *                   │ ▼
 *                   │ go_on ── model ──▶ (FETCHING ─▶) SPEAKING
 *                   │   │ │                │ turn, down, overdue
 *                   │   │ └─ calls under way, nothing else to do ──▶ WORKING
 *                   │   ▼                  ▼                          │ one has ended
 *                   └─ COMMITTING ◀────────┴──────────────────────────┘
 *                          │ ended, or waits for a person
 *                          ▼ gone; the next of the queue is woken
 *
 * FETCHING is left out when the model needs no file; pictures.h reads them.
 *
 * The model's turn is a speech (speech.h), tool calls are flights (flight.h); both outlive the steps
 * that happen between their start and the commit of their end.
 *
 * Invariants:
 * 1. Facts reach the bus after their commit, in its order; previews only while SPEAKING.
 * 2. At most one commit of a run is under way, and nothing else of the run is decided meanwhile.
 * 3. Every step is taken from rows just loaded, and its commit is refused if they have changed since
 *    (a person answered or cancelled): then it is taken again from the new rows, with the same
 *    input, which is kept until it is saved.
 * 4. A flight takes off after the commit that says `started`, or, if it may be repeated, when it is
 *    found in that state without a flight: after a restart. What may not be repeated is lost then.
 * 5. A commit that the disk has no room for, or that another process keeps out, is tried again until
 *    it fits; what the model said is kept meanwhile. One that names objects is taken again from the
 *    start: the objects that it names must not grow old before it.
 */
#include "agent/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/begin.h"
#include "agent/context.h"
#include "agent/flight.h"
#include "agent/pictures.h"
#include "agent/shelf.h"
#include "agent/speech.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/utf8.h"
#include "net/loop.h"
#include "store/store.h"
#include "tool/spool.h"

enum { STALE_MAX = 1000 }; /* people do not answer that often between two commits */

struct runs {
    struct runs_options options;
    struct map active;   /* thread id, 8 bytes -> struct active */
    bool missed;         /* a run found no room; look for it again when there is some */
    struct timer *again; /* to look after a store that could not */
    bool stopping;
    void (*on_drained)(void *arg); /* of runs_stop; NULL once told */
    void *drained_arg;
};

enum active_state {
    ACTIVE_LOADING,
    ACTIVE_RETRY,
    ACTIVE_FETCHING,
    ACTIVE_SPEAKING,
    ACTIVE_WORKING,
    ACTIVE_COMMITTING
};

struct active {
    struct runs *runs;
    int64_t thread;
    enum active_state state;
    bool again;         /* woken while something was under way: look at the rows again */
    bool forgotten;     /* gone as soon as the job under way is done */
    bool alone;         /* those who read along have all gone */
    struct arena arena; /* of everything loaded */
    struct run run;
    int64_t working;                           /* the run's row, once it is known */
    char thread_name[ID_CLIENT_BYTES_MAX + 1]; /* for the log; they outlive the arena */
    char run_name[ID_CLIENT_BYTES_MAX + 1];
    str thread_id, owner;
    struct view view;
    int64_t version; /* of the snapshot */
    struct context context;
    const struct agent *asked; /* whom the context is made for; only to be compared */
    struct pictures *pictures; /* on their way into the context */
    struct flights flights;
    struct shelf shelf; /* what calls returned, on its way to object storage */

    struct speech speech; /* of the model; a turn that is whole is kept in it until saved */
    struct timer *timer, *deadline;
    unsigned stale; /* commits in a row that came too late */
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
static void on_deadline(void *arg);
static void load_start(struct active *active);
static void on_flight_over(void *arg);
static void on_whole(void *arg);
static void on_down(void *arg, enum err e, const char *why);

static void trouble(const struct active *active, const char *what, enum err e)
{
    const struct runs_options *o = &active->runs->options;
    if (o->on_trouble)
        o->on_trouble(o->arg, str_c(active->thread_name), str_c(active->run_name), what, e);
}

static void on_flight_trouble(void *arg, const char *what, enum err e)
{
    trouble(arg, what, e);
}

static void on_progress(void *arg, str call_id, const struct tool_progress *progress)
{
    const struct active *active = arg;
    const struct runs_options *o = &active->runs->options;
    if (!bus_followed(o->bus, active->thread)) return;
    bus_preview(o->bus, active->thread,
                &(struct preview){.kind = PREVIEW_PROGRESS,
                                  .run_id = str_c(active->run_name),
                                  .call_id = call_id,
                                  .progress = progress->progress,
                                  .total = progress->total,
                                  .delta = progress->message,
                                  .at = clock_wall(o->clock)});
}

static struct active *active_new(struct runs *runs, int64_t thread)
{
    struct active *active = calloc(1, sizeof *active);
    if (!active) abort();
    active->runs = runs;
    active->thread = thread;
    arena_init(&active->arena);
    active->timer = timer_new(runs->options.loop, on_timer, active);
    const struct runs_options *o = &runs->options;
    active->flights = (struct flights){.loop = o->loop,
                                       .spool = o->spool,
                                       .blobs = o->blobs,
                                       .look = o->look,
                                       .retry_ms = o->retry_ms ? o->retry_ms : RUN_RETRY_MS,
                                       .on_over = on_flight_over,
                                       .on_progress = on_progress,
                                       .on_trouble = on_flight_trouble,
                                       .arg = active};
    active->shelf = (struct shelf){.loop = o->loop,
                                   .blobs = o->blobs,
                                   .spool = o->spool,
                                   .on_over = on_flight_over,
                                   .on_trouble = on_flight_trouble,
                                   .arg = active};
    active->speech = (struct speech){.loop = o->loop,
                                     .bus = o->bus,
                                     .clock = o->clock,
                                     .thread = thread,
                                     .on_whole = on_whole,
                                     .on_down = on_down,
                                     .arg = active};
    speech_init(&active->speech);
    if (map_put(&runs->active, thread_key(&thread), active))
        abort(); /* RUNS_ACTIVE_MAX is checked before */
    return active;
}

static void drain(struct runs *runs);

static void active_free(struct active *active)
{
    struct runs *runs = active->runs;
    map_remove(&runs->active, thread_key(&active->thread));
    pictures_forget(active->pictures);
    speech_done(&active->speech);
    flights_done(&active->flights);
    shelf_clear(&active->shelf);
    timer_free(active->timer);
    timer_free(active->deadline);
    arena_done(&active->arena);
    free(active);
    if (runs->stopping) drain(runs);
    if (runs->missed && !runs->stopping && runs->active.count < RUNS_ACTIVE_MAX / 2) {
        runs->missed = false;
        runs_recover(runs);
    }
}

/* ---- commits ---- */

struct commit {
    struct job job;
    struct active *active;
    struct arena arena;
    struct outcome outcome;
    struct run run; /* as it will be */
    int64_t version;
    msec now;
    const char *damaged; /* instead of an outcome: the state cannot be read, and why */
    unsigned char random[ID_RANDOM_BYTES]; /* for what is told then */
    struct stepped stepped;
    str call_id; /* of the flight whose end, or question, this saves; empty: none */
    enum input_kind kind;
    const struct tools *tools; /* that the step was taken with: what it starts is one of them */
    bool turn;                 /* it saves the model's turn */
    bool shown;                /* it saves what is on the shelf */
    bool next;                 /* the queue has another */
};

static void commit_free(struct commit *commit)
{
    arena_done(&commit->arena);
    free(commit);
}

/* Runs again from the start if its batch is rolled back. */
static enum err commit_run(struct job *job, struct db *db)
{
    struct commit *commit = (struct commit *)(void *)job;
    const struct active *active = commit->active;
    const struct saver *saver = active->runs->options.saver;
    enum err e;
    commit->run = active->run;
    if (commit->damaged)
        e = run_damaged(db, &commit->arena, saver, &commit->run, commit->damaged, commit->now,
                        commit->random, &commit->stepped);
    else
        e = outcome_save(db, &commit->arena, saver, &commit->run, commit->version, &commit->outcome,
                         commit->now);
    if (e || (!commit->damaged && !commit->outcome.ended)) return e;

    struct run next;
    e = run_next(db, &commit->arena, active->thread, &next);
    commit->next = e == OK;
    return e == ERR_NOT_FOUND ? OK : e;
}

static void go_on(struct active *active);
static void retry_later(struct active *active);

/* What it saved needs to be kept no longer. */
static void forget_inputs(struct active *active, const struct commit *commit)
{
    if (commit->turn) speech_forget(&active->speech);
    if (commit->call_id.len) flights_saved(&active->flights, commit->kind, commit->call_id);
    if (commit->shown) shelf_clear(&active->shelf);
}

/* Spool files whose object is stored go; what waits for that is somebody else's business. */
static void tell_stored(struct active *active, const struct outcome *o)
{
    const struct runs_options *options = &active->runs->options;
    bool waits = false;
    for (size_t i = 0; i < o->blob_count; i++) waits = waits || o->blobs[i].waiting;
    for (size_t i = 0; i < o->call_count; i++) {
        const struct call *call = &o->calls[i].call;
        if (call->stored && call->result_hash.len)
            spool_remove(options->spool, call->call_id, NULL, NULL);
    }
    if (waits) options->on_waiting(options->arg);
}

/* The row says started: now it may leave, by the tool that was looked at before. */
static void take_off(struct active *active, const struct call *call, const struct tools *tools)
{
    active->flights.tools = tools;
    flights_start(&active->flights, call,
                  &(struct passenger){.owner = active->owner,
                                      .thread_id = active->thread_id,
                                      .run_id = active->run.run_id,
                                      .locale = active->view.state.locale,
                                      .timezone = active->view.state.timezone});
}

static void committed(struct active *active, struct commit *commit)
{
    struct runs *runs = active->runs;
    int64_t thread = active->thread;
    const struct outcome *o = &commit->outcome;
    bool ended = o->ended || commit->damaged, next = commit->next;
    if (commit->damaged) {
        bus_facts(runs->options.bus, thread, commit->stepped.facts, commit->stepped.fact_count);
        runs->options.on_waiting(runs->options.arg); /* results that were shown are to be put */
    } else {
        bus_facts(runs->options.bus, thread, o->facts, o->fact_count);
    }
    if (o->opened_count || o->settled_count || commit->damaged)
        runs->options.on_news(runs->options.arg);
    for (size_t i = 0; i < o->call_count; i++)
        if (o->calls[i].started) take_off(active, &o->calls[i].call, commit->tools);
    tell_stored(active, o);
    forget_inputs(active, commit); /* last: the outcome borrows from them */
    bool waits = o->status == RUN_WAITING && !active->again && !flights_any(&active->flights);
    bool stops = runs->stopping && !flights_busy(&active->flights);
    commit_free(commit);
    if (ended || waits || stops) {
        active_free(active);
        if (ended && next) runs_wake(runs, thread);
        return;
    }
    load_start(active);
}

static void commit_done(struct job *job, enum err e)
{
    struct commit *commit = (struct commit *)(void *)job;
    struct active *active = commit->active;
    if (active->forgotten || e == ERR_SHUTTING_DOWN) {
        commit_free(commit);
        active_free(active);
        return;
    }
    if (e == ERR_STORAGE_FULL || e == ERR_RATE_LIMITED || e == ERR_LOCKED) {
        trouble(active, "commit postponed", e);
        if (commit->shown) shelf_clear(&active->shelf);
        if (commit->shown || commit->outcome.file_count) {
            /* nothing names its objects yet: they are put again, or swept */
            commit_free(commit);
            retry_later(active);
            return;
        }
        active->commit = commit;
        timer_start(active->timer, RUN_COMMIT_RETRY_MS);
        return;
    }
    bool late = e == ERR_BUSY || e == ERR_NOT_FOUND;
    if (late && ++active->stale < STALE_MAX) { /* the rows have changed: the step was too old */
        commit_free(commit);
        load_start(active);
        return;
    }
    if (e) { /* the store failed: what is stored decides after the next start */
        trouble(active, "commit refused", e);
        commit_free(commit);
        active_free(active);
        return;
    }
    active->stale = 0;
    committed(active, commit);
}

static struct commit *commit_new(struct active *active)
{
    struct commit *commit = calloc(1, sizeof *commit);
    if (!commit) abort();
    arena_init(&commit->arena);
    commit->job = (struct job){.run = commit_run, .done = commit_done};
    commit->active = active;
    commit->version = active->version;
    commit->now = clock_wall(active->runs->options.clock);
    return commit;
}

/* Save what a step returns. The active run keeps still until it is saved. */
static void commit_start(struct active *active, struct commit *commit)
{
    active->state = ACTIVE_COMMITTING;
    timer_stop(active->timer);
    if (active->deadline) timer_stop(active->deadline);
    store_write(active->runs->options.store, &commit->job);
}

/* As it is at this moment; it may be another after the loop has gone on. */
static const struct agent *agent_of(const struct active *active)
{
    const struct runs_options *o = &active->runs->options;
    return o->agent(o->arg, active->run.agent);
}

static void step(struct active *active, struct input *input)
{
    const struct runs_options *o = &active->runs->options;
    struct commit *commit = commit_new(active);
    input->now = commit->now;
    input->agent = agent_of(active);
    input->binder = &o->saver->binder;
    input->tools = o->saver->tools;
    crypto_random(input->random, sizeof input->random);
    commit->turn = input->kind == INPUT_TURN || input->kind == INPUT_CANCEL;
    commit->shown = input->kind == INPUT_SHOW;
    commit->call_id = arena_str(&commit->arena, input->call_id);
    commit->kind = input->kind;
    commit->tools = input->tools;
    graph_step(&commit->arena, &active->view, input, &commit->outcome);
    commit_start(active, commit);
}

/* A state that cannot be read fails its own run, visibly. */
static void fail_damaged(struct active *active, const char *why)
{
    struct commit *commit = commit_new(active);
    commit->damaged = arena_cstr(&commit->arena, str_c(why));
    crypto_random(commit->random, sizeof commit->random);
    trouble(active, "state damaged", ERR_DAMAGED);
    commit_start(active, commit);
}

/* ---- the model ---- */

static void step_turn(struct active *active)
{
    struct input input = {.kind = INPUT_TURN,
                          .turn = speech_turn(&active->speech, &active->arena),
                          .from_message = active->context.from_message};
    bool only_calls = input.turn.call_count && !input.turn.text.len;
    if (only_calls && graph_node(&active->view.state) == NODE_DELIVER)
        speech_discard(&active->speech, "no tools were offered"); /* only words count there */
    step(active, &input);
}

static void on_whole(void *arg)
{
    step_turn(arg);
}

static void on_down(void *arg, enum err e, const char *why)
{
    struct input input = {.kind = INPUT_DOWN, .why = e, .why_text = str_c(why)};
    step(arg, &input);
}

static void step_overdue(struct active *active)
{
    struct input input = {.kind = INPUT_OVERDUE};
    step(active, &input);
}

/* The time of the run is used up in the middle of a model call. */
static void on_deadline(void *arg)
{
    struct active *active = arg;
    if (active->state != ACTIVE_SPEAKING) return;
    speech_stop(&active->speech);
    speech_discard(&active->speech, "the time of this run is used up");
    speech_forget(&active->speech);
    step_overdue(active);
}

static void call_model(struct active *active)
{
    const struct runs_options *o = &active->runs->options;
    const struct state *state = &active->view.state;
    const struct agent *agent = agent_of(active);
    msec now = clock_wall(o->clock), deadline = graph_deadline(state, agent);
    if (graph_overdue(state, agent, now)) {
        step_overdue(active);
        return;
    }
    if (deadline && !active->deadline) active->deadline = timer_new(o->loop, on_deadline, active);
    if (deadline) timer_start(active->deadline, deadline - now);
    active->state = ACTIVE_SPEAKING;
    active->speech.words_only = graph_node(state) == NODE_DELIVER;
    speech_start(&active->speech, &agent->model, active->run.run_id,
                 &(struct model_request){.system = active->context.system,
                                         .messages = active->context.messages,
                                         .count = active->context.count,
                                         .tools = active->context.tools,
                                         .locale = state->locale,
                                         .round = state->turns + 1});
}

static void on_fetched(void *arg, enum err e)
{
    struct active *active = arg;
    active->pictures = NULL;
    bool other = agent_of(active) != active->asked;
    if (!active->runs->stopping && !e && other) { /* a reload: what was made is for another model */
        load_start(active);
        return;
    }
    if (!e || active->runs->stopping) {
        go_on(active);
        return;
    }
    trouble(active, "cannot load files", e);
    retry_later(active);
}

/* The bytes that belong into the context come first. */
static void fetch(struct active *active)
{
    const struct runs_options *o = &active->runs->options;
    active->state = ACTIVE_FETCHING;
    active->pictures = pictures_load(&(struct pictures_source){.loop = o->loop,
                                                               .store = o->store,
                                                               .blobs = o->blobs,
                                                               .owner = active->owner,
                                                               .arena = &active->arena,
                                                               .context = &active->context},
                                     on_fetched, active);
}

/* ---- what is next ---- */

/* A started call without a flight: the process that had it is gone. True: a step was taken. */
static bool look_for_lost(struct active *active)
{
    for (size_t i = 0; i < active->view.calls.count; i++) {
        const struct call *call = &active->view.calls.rows[i];
        if (call->state != CALL_STARTED || flights_has(&active->flights, call->call_id)) continue;
        const struct tools *tools = active->runs->options.saver->tools;
        bool there = tools_find(tools, call->tool);
        if (call_repeatable(call) && there && !active->view.cancelling) {
            take_off(active, call, tools);
            continue;
        }
        struct input input = {.kind = INPUT_LOST, .call_id = call->call_id};
        step(active, &input);
        return true;
    }
    return false;
}

static bool save_flight(struct active *active)
{
    struct input input;
    if (!flights_news(&active->flights, &input)) return false;
    step(active, &input);
    return true;
}

static void on_flight_over(void *arg)
{
    struct active *active = arg;
    if (active->state == ACTIVE_WORKING) go_on(active);
}

static void step_cancel(struct active *active)
{
    struct input input = {.kind = INPUT_CANCEL,
                          .turn = speech_turn(&active->speech, &active->arena)};
    if (!input.turn.text.len)
        speech_discard(&active->speech, "cancelled"); /* no words: nothing is kept */
    step(active, &input);
}

/* What has come back is put into object storage, and then shown in any case. */
static void show(struct active *active)
{
    struct input input = {.kind = INPUT_SHOW};
    const struct state *state = &active->view.state;
    for (size_t i = 0; i < active->view.calls.count; i++) {
        const struct call *call = &active->view.calls.rows[i];
        if (!call_state_settled(call->state) || call->result_id.len || !call->started) continue;
        shelf_put(&active->shelf,
                  &(struct payload_source){.call = call,
                                           .locale = state->locale,
                                           .run_id = state->trace_id,
                                           .user_id = state->user_id,
                                           .tools = active->runs->options.saver->tools});
    }
    if (shelf_busy(&active->shelf)) return;
    struct payload *payloads;
    input.payload_count = shelf_over(&active->shelf, &active->arena, &payloads);
    input.payloads = payloads;
    step(active, &input);
}

/* The turn that a button stands for. */
static void press(struct active *active)
{
    const struct state *state = &active->view.state;
    struct turn_call *call = ARENA_NEW(&active->arena, struct turn_call);
    *call = (struct turn_call){.name = state->press_tool, .args = state->press_args};
    struct input input = {.kind = INPUT_TURN, .turn = {.calls = call, .call_count = 1}};
    step(active, &input);
}

/* Nobody is there, and the agent does not go on without. What ends the run in any case needs nobody. */
static bool waits_for_readers(const struct active *active)
{
    const struct agent *agent = agent_of(active);
    if (!active->alone || agent->on_disconnect != DISCONNECT_PAUSE) return false;
    return !graph_overdue(&active->view.state, agent, clock_wall(active->runs->options.clock));
}

/* Do what the rows just loaded ask for. When the server stops, only what has happened is saved. */
static void go_on(struct active *active)
{
    active->state = ACTIVE_WORKING;
    for (size_t i = 0; i < active->view.calls.count; i++)
        flights_reply(&active->flights, &active->view.calls.rows[i]);
    if (active->view.cancelling) flights_let_go(&active->flights, active->view.state.locale);
    if (save_flight(active) || active->runs->stopping || look_for_lost(active)) return;
    if (active->speech.whole && !active->view.cancelling) {
        step_turn(active);
        return;
    }
    struct input input = {0};
    switch (graph_effect(&active->view)) {
    case EFFECT_CANCEL:
        step_cancel(active);
        break;
    case EFFECT_SHOW:
        show(active);
        break;
    case EFFECT_START:
        input.kind = INPUT_START;
        step(active, &input);
        break;
    case EFFECT_PRESS:
        press(active);
        break;
    case EFFECT_MODEL:
        if (waits_for_readers(active)) {
            input.kind = INPUT_ALONE;
            step(active, &input);
        } else if (pictures_needed(&active->context)) {
            fetch(active);
        } else {
            call_model(active);
        }
        break;
    case EFFECT_NONE:
        if (!flights_any(&active->flights)) active_free(active);
        break;
    }
}

static void on_timer(void *arg)
{
    struct active *active = arg;
    if (active->state == ACTIVE_COMMITTING)
        store_write(active->runs->options.store, &TAKE(active->commit)->job);
    else
        load_start(active);
}

/* The row says so already; what the model has said so far is kept for the step. */
void runs_cancel(struct runs *runs, int64_t thread)
{
    struct active *active = active_find(runs, thread);
    if (!active) {
        runs_wake(runs, thread);
        return;
    }
    active->again = true;
    speech_stop(&active->speech);
    if (active->state == ACTIVE_SPEAKING || active->state == ACTIVE_WORKING ||
        active->state == ACTIVE_FETCHING)
        load_start(active);
}

/* Looked at before the next model call; what is under way goes on. */
void runs_alone(struct runs *runs, int64_t thread, bool alone)
{
    struct active *active = active_find(runs, thread);
    if (active) active->alone = alone;
}

/* ---- loading ---- */

struct load {
    struct job job;
    struct active *active;
    struct message_list messages;
    struct call_list seen;
    struct fault why;
    bool damaged, queued;
};

/* The person's own words of this run, should the newest rows begin behind them. */
static enum err load_request(struct load *load, struct db *db)
{
    struct active *active = load->active;
    struct message_list *page = &load->messages, first = {0};
    if (!page->more || !page->count || page->messages[0].seq <= active->run.start_seq + 1)
        return OK;
    enum err e = message_page(db, &active->arena, active->thread, 0,
                              active->run.start_seq ? active->run.start_seq : -1,
                              RUN_CONTEXT_REQUEST_MAX, &first);
    if (e) return e;
    struct message *all =
        arena_array(&active->arena, first.count + page->count, sizeof *page->messages);
    size_t count = 0;
    for (size_t i = 0; i < first.count; i++)
        if (str_eq(first.messages[i].role, STR("user")) &&
            first.messages[i].seq < page->messages[0].seq)
            all[count++] = first.messages[i];
    for (size_t i = 0; i < page->count; i++) all[count++] = page->messages[i];
    page->messages = all;
    page->count = count;
    return OK;
}

static enum err load_context(struct load *load, struct db *db)
{
    struct active *active = load->active;
    struct arena *arena = &active->arena;
    enum err e = message_tail(db, arena, active->thread, active->view.state.from_message,
                              RUN_CONTEXT_MESSAGES_MAX, &load->messages);
    if (!e) e = load_request(load, db);
    if (!e && active->view.state.round_used) e = calls_seen(db, arena, active->run.id, &load->seen);
    return e;
}

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
    e = view_load(db, arena, &active->run, thread.owner, &active->view, &active->version,
                  &load->why);
    load->damaged = e == ERR_DAMAGED || e == ERR_NOT_FOUND;
    if (load->damaged) return OK;
    if (e || graph_effect(&active->view) != EFFECT_MODEL) return e;
    return load_context(load, db);
}

static void make_context(struct active *active, const struct load *load)
{
    const struct runs_options *o = &active->runs->options;
    active->asked = agent_of(active);
    context_make(&active->arena,
                 &(struct context_source){.agent = active->asked,
                                          .state = &active->view.state,
                                          .node = graph_node(&active->view.state),
                                          .messages = &load->messages,
                                          .seen = &load->seen,
                                          .server = o->saver->tools,
                                          .front = &active->view.front,
                                          .told = active->view.context,
                                          .now = active->view.state.leg_since,
                                          .timezone = active->view.state.timezone},
                 &active->context);
}

static void start_next(struct active *active);

/* A call was started: it is in the air, or what became of it has to be found out. */
static bool under_way(const struct active *active)
{
    const struct call_list *calls = &active->view.calls;
    bool any = flights_any(&active->flights);
    for (size_t i = 0; i < calls->count; i++) any = any || calls->rows[i].state == CALL_STARTED;
    return any;
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
    if (active->forgotten || e == ERR_NOT_FOUND || e == ERR_SHUTTING_DOWN) {
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
    if (active->again) {
        load_start(active);
    } else if (load->queued) {
        start_next(active);
    } else if (load->damaged) {
        fail_damaged(active, load->why.text[0] ? load->why.text : "the stored state is missing");
    } else if (active->working && active->working != active->run.id) {
        active_free(active); /* the run that this was about is over */
        runs_wake(runs, thread);
    } else if (runs->stopping ? !flights_busy(&active->flights)
                              : active->run.status == RUN_WAITING && !under_way(active)) {
        active_free(active); /* waits for a person, or for the next start */
    } else {
        active->working = active->run.id;
        snprintf(active->thread_name, sizeof active->thread_name, "%.*s",
                 STR_ARG(active->thread_id));
        snprintf(active->run_name, sizeof active->run_name, "%.*s", STR_ARG(active->run.run_id));
        if (graph_effect(&active->view) == EFFECT_MODEL) make_context(active, load);
        go_on(active);
    }
}

static void load_start(struct active *active)
{
    pictures_forget(TAKE(active->pictures));
    arena_reset(&active->arena);
    struct load *load = ARENA_NEW(&active->arena, struct load);
    *load = (struct load){.job = {.run = load_run, .done = load_done}, .active = active};
    active->again = false;
    active->state = ACTIVE_LOADING;
    store_read(active->runs->options.store, &load->job);
}

/* While the model speaks nothing that a wake could be about concerns the run. */
void runs_wake(struct runs *runs, int64_t thread)
{
    struct active *known = active_find(runs, thread);
    if (runs->stopping) return;
    if (known && known->state == ACTIVE_WORKING)
        load_start(known);
    else if (known)
        known->again = true;
    if (known) return;
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
    struct begin begin;
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
    return run_begin_queued(db, &next->arena, &next->begin, &run, &next->begun);
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
    const struct runs_options *o = &active->runs->options;
    const struct agent *agent = agent_of(active);
    next->begin = (struct begin){.max_rounds = agent->max_rounds,
                                 .locale = agent->locale,
                                 .epoch = o->saver->epoch,
                                 .owner = active->owner,
                                 .thread_id = active->thread_id,
                                 .now = clock_wall(o->clock)};
    active->state = ACTIVE_COMMITTING;
    store_write(active->runs->options.store, &next->job);
}

/* ---- all of them ---- */

static void on_again(void *arg)
{
    struct runs *runs = arg;
    runs->missed = false;
    if (!runs->stopping) runs_recover(runs);
}

struct runs *runs_new(const struct runs_options *options)
{
    struct runs *runs = calloc(1, sizeof *runs);
    if (!runs) abort();
    runs->options = *options;
    runs->again = timer_new(options->loop, on_again, runs);
    map_init(&runs->active, RUNS_ACTIVE_MAX);
    return runs;
}

/* A run with a call under way stays until the call has ended and is saved; the rest goes on after
 * the next start. */
static void drain(struct runs *runs)
{
    size_t at = 0;
    str key;
    void *value;
    bool flying = false;
    while (map_next(&runs->active, &at, &key, &value)) {
        const struct active *active = value;
        flying = flying || flights_busy(&active->flights) || active->state == ACTIVE_COMMITTING;
    }
    if (!flying && runs->on_drained) TAKE(runs->on_drained)(runs->drained_arg);
}

static void on_drain_late(void *arg)
{
    struct runs *runs = arg;
    if (runs->on_drained) TAKE(runs->on_drained)(runs->drained_arg);
}

void runs_stop(struct runs *runs, void (*on_drained)(void *arg), void *arg)
{
    runs->stopping = true;
    runs->on_drained = on_drained;
    runs->drained_arg = arg;
    timer_free(runs->again);
    runs->again = timer_new(runs->options.loop, on_drain_late, runs);
    timer_start(runs->again, SHUTDOWN_MS_MAX);
    drain(runs);
}

void runs_free(struct runs *runs)
{
    if (!runs) return;
    runs->stopping = true;
    runs->on_drained = NULL;
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
    timer_free(runs->again);
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

/* Also while the rows are looked at again: what was shown stays shown until it is a fact. */
const struct speech *runs_speech(const struct runs *runs, int64_t thread)
{
    const struct active *active = active_find(runs, thread);
    return active && active->speech.shown ? &active->speech : NULL;
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
    if (e && !runs->stopping) { /* the store could not just now; nobody may be left behind */
        runs->missed = true;
        timer_start(runs->again, RUN_COMMIT_RETRY_MS);
    }
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
