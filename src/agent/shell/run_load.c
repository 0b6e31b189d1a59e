/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of a run that is worked on, loaded; and if there is none, the next of the queue begins.
 */
#include <stdio.h>
#include <stdlib.h>

#include "agent/shell/begin.h"
#include "agent/shell/run_int.h"

struct run_loading {
    struct job job;
    struct live_run *live;
    struct loaded *loaded;
};

static enum err load_run(struct job *job, struct db *db)
{
    struct run_loading *load = (struct run_loading *)(void *)job;
    return loaded_read(db, load->live->thread, 0, load->loaded);
}

static void make_context(struct live_run *live)
{
    const struct runs_options *o = &live->runs->options;
    live->asked = live_run_agent(live);
    context_make(&live->now->arena,
                 &(struct context_source){.agent = live->asked,
                                          .state = &live->now->view.state,
                                          .node = graph_node(&live->now->view.state),
                                          .messages = &live->now->messages,
                                          .seen = &live->now->seen,
                                          .server = o->saver->tools,
                                          .front = &live->now->view.front,
                                          .told = live->now->view.context,
                                          .now = live->now->view.state.leg_since,
                                          .timezone = live->now->view.state.timezone},
                 &live->context);
}

static void start_next(struct live_run *live);

/* A call was started: it is in the air, or what became of it has to be found out. */
static bool under_way(const struct live_run *live)
{
    const struct call_list *calls = &live->now->view.calls;
    bool any = tool_runs_any(&live->tool_runs);
    for (size_t i = 0; i < calls->count; i++) any = any || calls->rows[i].state == CALL_STARTED;
    return any;
}

/* The store could not serve us just now. Whatever is stored decides when it can. */
void live_run_retry(struct live_run *live)
{
    live->state = ACTIVE_RETRY;
    timer_start(live->timer, RUN_COMMIT_RETRY_MS);
}

void live_run_take(struct live_run *live, struct loaded *loaded)
{
    struct runs *runs = live->runs;
    int64_t thread = live->thread;
    loaded_free(live->now);
    live->now = loaded;
    if (!loaded_whole(loaded)) {
        live_run_load(live);
    } else if (loaded->queued) {
        start_next(live);
    } else if (loaded->damaged) {
        const char *why = loaded->why.text;
        live_run_damaged(live, why[0] ? why : "the stored state is missing");
    } else if (live->working && live->working != loaded->run.id) {
        live_run_free(live); /* the run that this was about is over */
        runs_wake(runs, thread);
    } else if (runs->stopping ? !tool_runs_busy(&live->tool_runs)
                              : loaded->run.status == RUN_WAITING && !under_way(live)) {
        live_run_free(live); /* waits for a person, or for the next start */
    } else {
        live->working = loaded->run.id;
        live_run_count(live);
        snprintf(live->thread_name, sizeof live->thread_name, "%.*s",
                 STR_ARG(loaded->thread.thread_id));
        snprintf(live->run_name, sizeof live->run_name, "%.*s", STR_ARG(loaded->run.run_id));
        if (loaded->history) make_context(live);
        live_run_go_on(live);
    }
}

static void load_done(struct job *job, enum err e)
{
    struct run_loading *load = (struct run_loading *)(void *)job;
    struct live_run *live = load->live;
    AUTO(loaded_freep) struct loaded *loaded = load->loaded;
    struct runs *runs = live->runs;
    int64_t thread = live->thread;
    free(load);
    if (live->forgotten || e == ERR_NOT_FOUND || e == ERR_SHUTTING_DOWN) {
        bool again = live->again && !live->forgotten;
        live_run_free(live);
        if (again) runs_wake(runs, thread);
    } else if (e) {
        live_run_trouble(live, "cannot load", e);
        live_run_retry(live);
    } else if (live->again) {
        live_run_load(live);
    } else {
        live_run_take(live, TAKE(loaded));
    }
}

void live_run_load(struct live_run *live)
{
    pictures_forget(TAKE(live->pictures));
    struct run_loading *load = calloc(1, sizeof *load);
    if (!load) abort();
    *load = (struct run_loading){
        .job = {.run = load_run, .done = load_done}, .live = live, .loaded = loaded_new()};
    live->again = false;
    live->state = ACTIVE_LOADING;
    store_read(live->runs->options.store, &load->job);
}

/* While the model speaks nothing that a wake could be about concerns the run. */
void runs_wake(struct runs *runs, int64_t thread)
{
    struct live_run *known = live_run_find(runs, thread);
    if (runs->stopping) return;
    if (known && known->state == ACTIVE_WORKING)
        live_run_load(known);
    else if (known)
        known->again = true;
    if (known) return;
    if (runs->live.count >= RUNS_ACTIVE_MAX) {
        runs->missed = true;
        return;
    }
    live_run_load(live_run_new(runs, thread));
}

void runs_go_on(struct runs *runs, int64_t thread, struct loaded *loaded)
{
    struct live_run *live = live_run_find(runs, thread);
    bool room = live ? live->state == ACTIVE_WORKING : runs->live.count < RUNS_ACTIVE_MAX;
    if (!loaded || runs->stopping || !room) {
        loaded_free(loaded);
        runs_wake(runs, thread);
        return;
    }
    live_run_take(live ? live : live_run_new(runs, thread), loaded);
}

/* ---- the queue: a run whose turn has come ---- */

struct next {
    struct job job;
    struct live_run *live;
    struct arena arena;
    struct begun begun;
    bool late; /* somebody was faster: look again */
    struct begin begin;
};

static enum err next_run(struct job *job, struct db *db)
{
    struct next *next = (struct next *)(void *)job;
    const struct live_run *live = next->live;
    struct run current, run;
    arena_reset(&next->arena);
    enum err e = run_current(db, &next->arena, live->thread, &current);
    next->late = e == OK;
    if (e != ERR_NOT_FOUND) return e ? e : ERR_BUSY;
    e = run_next(db, &next->arena, live->thread, &run);
    if (e) return e;
    return run_begin_queued(db, &next->arena, &next->begin, &run, &next->begun);
}

static void next_done(struct job *job, enum err e)
{
    struct next *next = (struct next *)(void *)job;
    struct live_run *live = next->live;
    struct runs *runs = live->runs;
    int64_t thread = live->thread;
    bool gone = live->forgotten || runs->stopping;
    bool again = !gone && (!e || next->late);
    if (e && e != ERR_NOT_FOUND && !next->late)
        live_run_trouble(live, "cannot start the next run", e);
    if (!e && !gone)
        bus_facts(runs->options.bus, thread, next->begun.facts, next->begun.fact_count);
    bool failed = e && e != ERR_NOT_FOUND && !next->late;
    arena_done(&next->arena);
    free(next);
    if (failed && !gone) {
        live_run_retry(live);
        return;
    }
    live_run_free(live);
    if (again) runs_wake(runs, thread);
}

static void start_next(struct live_run *live)
{
    struct next *next = calloc(1, sizeof *next);
    if (!next) abort();
    arena_init(&next->arena);
    next->live = live;
    next->job = (struct job){.run = next_run, .done = next_done, .who = live->now->thread.owner};
    const struct runs_options *o = &live->runs->options;
    const struct agent *agent = live_run_agent(live);
    next->begin = (struct begin){.max_rounds = agent->max_rounds,
                                 .locale = agent->locale,
                                 .epoch = o->saver->epoch,
                                 .owner = live->now->thread.owner,
                                 .thread_id = live->now->thread.thread_id,
                                 .now = clock_wall(o->clock)};
    live->state = ACTIVE_COMMITTING;
    store_write(live->runs->options.store, &next->job);
}
