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

#include <stdlib.h>

#include "agent/run_int.h"

/* ---- the set of active runs ---- */

static str thread_key(const int64_t *thread)
{
    return (str){(const char *)thread, sizeof *thread};
}

struct active *active_find(const struct runs *runs, int64_t thread)
{
    return map_get(&runs->active, thread_key(&thread));
}

void active_trouble(const struct active *active, const char *what, enum err e)
{
    const struct runs_options *o = &active->runs->options;
    if (o->on_trouble)
        o->on_trouble(o->arg, str_c(active->thread_name), str_c(active->run_name), what, e);
}

static void on_flight_trouble(void *arg, const char *what, enum err e)
{
    active_trouble(arg, what, e);
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

struct active *active_new(struct runs *runs, int64_t thread)
{
    struct active *active = calloc(1, sizeof *active);
    if (!active) abort();
    active->runs = runs;
    active->thread = thread;
    arena_init(&active->arena);
    active->timer = timer_new(runs->options.loop, active_timer, active);
    const struct runs_options *o = &runs->options;
    active->flights = (struct flights){.loop = o->loop,
                                       .spool = o->spool,
                                       .blobs = o->blobs,
                                       .look = o->look,
                                       .retry_ms = o->retry_ms ? o->retry_ms : RUN_RETRY_MS,
                                       .on_over = active_flight_over,
                                       .on_progress = on_progress,
                                       .on_trouble = on_flight_trouble,
                                       .arg = active};
    active->shelf = (struct shelf){.loop = o->loop,
                                   .blobs = o->blobs,
                                   .spool = o->spool,
                                   .on_over = active_flight_over,
                                   .on_trouble = on_flight_trouble,
                                   .arg = active};
    active->speech = (struct speech){.loop = o->loop,
                                     .bus = o->bus,
                                     .clock = o->clock,
                                     .thread = thread,
                                     .on_whole = active_whole,
                                     .on_down = active_down,
                                     .arg = active};
    speech_init(&active->speech);
    if (map_put(&runs->active, thread_key(&thread), active))
        abort(); /* RUNS_ACTIVE_MAX is checked before */
    return active;
}

/* As it is at this moment; it may be another after the loop has gone on. */
const struct agent *active_agent(const struct active *active)
{
    const struct runs_options *o = &active->runs->options;
    return o->agent(o->arg, active->run.agent);
}

static void drain(struct runs *runs);

void active_free(struct active *active)
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
        active_commit_drop(active);
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
    active_commit_drop(active);
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
