/* SPDX-License-Identifier: Apache-2.0
 *
 * The shell of the agent: load a run, perform its effect, commit, go on; and the runs that a
 * process before this one left at work. One object for each run that is worked on:
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
 * The model's turn is a model turn (model turn.h), tool calls are tool runs (tool run.h); both outlive the steps
 * that happen between their start and the commit of their end.
 *
 * Invariants:
 * 1. Facts reach the bus after their commit, in its order; previews only while SPEAKING.
 * 2. At most one commit of a run is under way, and nothing else of the run is decided meanwhile.
 * 3. Every step is taken from rows just loaded, and its commit is refused if they have changed since
 *    (a person answered or cancelled): then it is taken again from the new rows, with the same
 *    input, which is kept until it is saved.
 * 4. A tool run takes off after the commit that says `started`, or, if it may be repeated, when it is
 *    found in that state without a tool run: after a restart. What may not be repeated is lost then.
 * 5. A commit that the disk has no room for, or that another process keeps out, is tried again until
 *    it fits; what the model said is kept meanwhile. One that names objects is taken again from the
 *    start: the objects that it names must not grow old before it.
 */
#include "agent/shell/run.h"

#include <stdlib.h>
#include <string.h>

#include "agent/shell/run_int.h"

/* ---- the set of active runs ---- */

static str thread_key(const int64_t *thread)
{
    return (str){(const char *)thread, sizeof *thread};
}

struct live_run *live_run_find(const struct runs *runs, int64_t thread)
{
    return map_get(&runs->live, thread_key(&thread));
}

void live_run_trouble(const struct live_run *live, const char *what, enum err e)
{
    const struct runs_options *o = &live->runs->options;
    if (o->on_trouble)
        o->on_trouble(o->arg, str_c(live->thread_name), str_c(live->run_name), what, e);
}

static void on_tool_run_trouble(void *arg, const char *what, enum err e)
{
    live_run_trouble(arg, what, e);
}

static void on_progress(void *arg, str call_id, const struct tool_progress *progress)
{
    const struct live_run *live = arg;
    const struct runs_options *o = &live->runs->options;
    if (!bus_followed(o->bus, live->thread)) return;
    bus_preview(o->bus, live->thread,
                &(struct preview){.kind = PREVIEW_PROGRESS,
                                  .run_id = str_c(live->run_name),
                                  .call_id = call_id,
                                  .progress = progress->progress,
                                  .total = progress->total,
                                  .delta = progress->message,
                                  .at = clock_wall(o->clock)});
}

struct live_run *live_run_new(struct runs *runs, int64_t thread)
{
    struct live_run *live = calloc(1, sizeof *live);
    if (!live) abort();
    live->runs = runs;
    live->thread = thread;
    live->timer = timer_new(runs->options.loop, live_run_timer, live);
    const struct runs_options *o = &runs->options;
    live->tool_runs = (struct tool_runs){.loop = o->loop,
                                         .spool = o->spool,
                                         .blobs = o->blobs,
                                         .look = o->look,
                                         .retry_ms = o->retry_ms ? o->retry_ms : RUN_RETRY_MS,
                                         .on_over = live_run_tool_run_over,
                                         .on_progress = on_progress,
                                         .on_trouble = on_tool_run_trouble,
                                         .arg = live};
    live->puts = (struct payload_put){.loop = o->loop,
                                      .blobs = o->blobs,
                                      .spool = o->spool,
                                      .on_over = live_run_tool_run_over,
                                      .on_trouble = on_tool_run_trouble,
                                      .arg = live};
    live->model_turn = (struct model_turn){.loop = o->loop,
                                           .bus = o->bus,
                                           .clock = o->clock,
                                           .thread = thread,
                                           .on_whole = live_run_whole,
                                           .on_down = live_run_down,
                                           .arg = live};
    model_turn_init(&live->model_turn);
    if (map_put(&runs->live, thread_key(&thread), live))
        abort(); /* RUNS_ACTIVE_MAX is checked before */
    return live;
}

/* As it is at this moment; it may be another after the loop has gone on. */
const struct agent *live_run_agent(const struct live_run *live)
{
    const struct runs_options *o = &live->runs->options;
    return o->agent(o->arg, live->now->run.agent);
}

static void drain(struct runs *runs);

void live_run_count(struct live_run *live)
{
    str owner = live->now->thread.owner;
    if (live->counted_len || !owner.len || owner.len > sizeof live->counted) return;
    if (shares_take(&live->runs->owners, owner, 1) != SHARE_GIVEN) return;
    memcpy(live->counted, owner.p, owner.len);
    live->counted_len = owner.len;
}

size_t runs_of(const struct runs *runs, str owner)
{
    return (size_t)shares_held(&runs->owners, owner);
}

void live_run_free(struct live_run *live)
{
    struct runs *runs = live->runs;
    map_remove(&runs->live, thread_key(&live->thread));
    shares_give(&runs->owners, (str){live->counted, live->counted_len}, live->counted_len ? 1 : 0);
    pictures_forget(live->pictures);
    model_turn_done(&live->model_turn);
    tool_runs_done(&live->tool_runs);
    payload_put_clear(&live->puts);
    timer_free(live->timer);
    timer_free(live->deadline);
    loaded_free(live->now);
    free(live);
    if (runs->stopping) drain(runs);
    if (runs->missed && !runs->stopping && runs->live.count < RUNS_ACTIVE_MAX / 2) {
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
    if (!runs->options.history_facts) runs->options.history_facts = RUN_HISTORY_FACTS_MAX;
    runs->again = timer_new(options->loop, on_again, runs);
    map_init(&runs->live, RUNS_ACTIVE_MAX);
    shares_init(&runs->owners, RUNS_ACTIVE_MAX, RUNS_ACTIVE_MAX, RUNS_ACTIVE_MAX);
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
    while (map_next(&runs->live, &at, &key, &value)) {
        const struct live_run *live = value;
        flying = flying || tool_runs_busy(&live->tool_runs) || live->state == ACTIVE_COMMITTING;
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
    while (map_next(&runs->live, &at, &key, &value)) {
        struct live_run *live = value;
        if (live->state == ACTIVE_LOADING || (live->state == ACTIVE_COMMITTING && !live->commit))
            continue; /* its job is with the store, which is closed before us */
        live_run_commit_drop(live);
        live_run_free(live);
        at--;
    }
    assert(runs->live.count == 0);
    map_done(&runs->live);
    shares_done(&runs->owners);
    timer_free(runs->again);
    free(runs);
}

void runs_forget(struct runs *runs, int64_t thread)
{
    struct live_run *live = live_run_find(runs, thread);
    if (!live) return;
    bool job_under_way =
        live->state == ACTIVE_LOADING || (live->state == ACTIVE_COMMITTING && !live->commit);
    live->forgotten = true;
    if (job_under_way) return;
    live_run_commit_drop(live);
    live_run_free(live);
}

size_t runs_active(const struct runs *runs)
{
    return runs->live.count;
}

/* Also while the rows are looked at again: what was shown stays shown until it is a fact. */
const struct model_turn *runs_model_turn(const struct runs *runs, int64_t thread)
{
    const struct live_run *live = live_run_find(runs, thread);
    return live && live->model_turn.shown ? &live->model_turn : NULL;
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
