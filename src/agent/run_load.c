/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of a run that is worked on; and if there is none, the next of the queue begins.
 */
#include <stdio.h>
#include <stdlib.h>

#include "agent/begin.h"
#include "agent/run_int.h"

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
    active->asked = active_agent(active);
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
void active_retry(struct active *active)
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
        active_trouble(active, "cannot load", e);
        active_retry(active);
        return;
    }
    if (active->again) {
        active_load(active);
    } else if (load->queued) {
        start_next(active);
    } else if (load->damaged) {
        active_damaged(active, load->why.text[0] ? load->why.text : "the stored state is missing");
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
        active_go_on(active);
    }
}

void active_load(struct active *active)
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
        active_load(known);
    else if (known)
        known->again = true;
    if (known) return;
    if (runs->active.count >= RUNS_ACTIVE_MAX) {
        runs->missed = true;
        return;
    }
    active_load(active_new(runs, thread));
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
    if (e && e != ERR_NOT_FOUND && !next->late)
        active_trouble(active, "cannot start the next run", e);
    if (!e && !gone)
        bus_facts(runs->options.bus, thread, next->begun.facts, next->begun.fact_count);
    bool failed = e && e != ERR_NOT_FOUND && !next->late;
    arena_done(&next->arena);
    free(next);
    if (failed && !gone) {
        active_retry(active);
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
    const struct agent *agent = active_agent(active);
    next->begin = (struct begin){.max_rounds = agent->max_rounds,
                                 .locale = agent->locale,
                                 .epoch = o->saver->epoch,
                                 .owner = active->owner,
                                 .thread_id = active->thread_id,
                                 .now = clock_wall(o->clock)};
    active->state = ACTIVE_COMMITTING;
    store_write(active->runs->options.store, &next->job);
}
