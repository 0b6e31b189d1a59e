/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step returns, saved, and what follows from that it is.
 */
#include <stdlib.h>

#include "agent/run_int.h"
#include "tool/spool.h"

enum { STALE_MAX = 1000 }; /* people do not answer that often between two commits */

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
void active_take_off(struct active *active, const struct call *call, const struct tools *tools)
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
        if (o->calls[i].started) active_take_off(active, &o->calls[i].call, commit->tools);
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
    active_load(active);
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
        active_trouble(active, "commit postponed", e);
        if (commit->shown) shelf_clear(&active->shelf);
        if (commit->shown || commit->outcome.file_count) {
            /* nothing names its objects yet: they are put again, or swept */
            commit_free(commit);
            active_retry(active);
            return;
        }
        active->commit = commit;
        timer_start(active->timer, RUN_COMMIT_RETRY_MS);
        return;
    }
    bool late = e == ERR_BUSY || e == ERR_NOT_FOUND;
    if (late && ++active->stale < STALE_MAX) { /* the rows have changed: the step was too old */
        commit_free(commit);
        active_load(active);
        return;
    }
    if (e) { /* the store failed: what is stored decides after the next start */
        active_trouble(active, "commit refused", e);
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

void active_step(struct active *active, struct input *input)
{
    const struct runs_options *o = &active->runs->options;
    struct commit *commit = commit_new(active);
    input->now = commit->now;
    input->agent = active_agent(active);
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
void active_damaged(struct active *active, const char *why)
{
    struct commit *commit = commit_new(active);
    commit->damaged = arena_cstr(&commit->arena, str_c(why));
    crypto_random(commit->random, sizeof commit->random);
    active_trouble(active, "state damaged", ERR_DAMAGED);
    commit_start(active, commit);
}

void active_commit_again(struct active *active)
{
    store_write(active->runs->options.store, &TAKE(active->commit)->job);
}

void active_commit_drop(struct active *active)
{
    if (active->commit) commit_free(TAKE(active->commit));
}
