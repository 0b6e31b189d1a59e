/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step of a run returns, saved in one commit, and what follows when it is, or when the store
 * cannot.
 */
#include <stdlib.h>

#include "agent/shell/run_int.h"
#include "base/plant.h"
#include "tool/spool.h"

enum { STALE_MAX = 1000 }; /* people do not answer that often between two commits */

struct commit {
    struct job job;
    struct live_run *live;
    struct arena arena;
    struct outcome outcome;
    struct run run; /* as it will be */
    int64_t version;
    msec now;
    const char *damaged; /* instead of an outcome: the state cannot be read, and why */
    unsigned char random[ID_RANDOM_BYTES]; /* for what is told then */
    struct stepped stepped;
    str call_id; /* of the tool run whose end, or question, this saves; empty: none */
    enum input_kind kind;
    const struct tools *tools; /* that the step was taken with: what it starts is one of them */
    bool turn;                 /* it saves the model's turn */
    bool shown;                /* it saves payloads that are over */
    bool next;                 /* the queue has another */
    bool flying;               /* calls are under way, whatever the run waits for */
    struct loaded *loaded;     /* the rows behind it, if the run goes on; NULL: not read */
};

static void commit_free(struct commit *commit)
{
    arena_done(&commit->arena);
    loaded_free(commit->loaded);
    free(commit);
}

/* What cannot be read now is read again by itself; the commit stands. */
static void rows_read(struct commit *commit, struct db *db)
{
    const struct live_run *live = commit->live;
    commit->loaded = loaded_new();
    if (loaded_read(db, live->thread, live->runs->options.history_facts, commit->loaded))
        loaded_free(TAKE(commit->loaded));
}

/* Runs again from the start if its batch is rolled back. */
static enum err commit_run(struct job *job, struct db *db)
{
    struct commit *commit = (struct commit *)(void *)job;
    const struct live_run *live = commit->live;
    const struct saver *saver = live->runs->options.saver;
    enum err e;
    commit->run = live->now->run;
    loaded_free(TAKE(commit->loaded));
    if (commit->damaged)
        e = run_damaged(db, &commit->arena, saver, &commit->run, commit->damaged, commit->now,
                        commit->random, &commit->stepped);
    else
        e = outcome_save(db, &commit->arena, saver, &commit->run, commit->version, &commit->outcome,
                         commit->now);
    if (e) return e;
    if (!commit->damaged && !commit->outcome.ended) {
        bool goes_on = commit->outcome.status != RUN_WAITING || commit->flying;
        if (goes_on) rows_read(commit, db);
        return OK;
    }

    struct run next;
    e = run_next(db, &commit->arena, live->thread, &next);
    commit->next = e == OK;
    return e == ERR_NOT_FOUND ? OK : e;
}

/* What it saved needs to be kept no longer. */
static void forget_inputs(struct live_run *live, const struct commit *commit)
{
    if (commit->turn) model_turn_forget(&live->model_turn);
    if (commit->call_id.len) tool_runs_saved(&live->tool_runs, commit->kind, commit->call_id);
    if (commit->shown) payload_put_clear(&live->puts);
}

/* Spool files whose object is stored go; what waits for that is somebody else's business. */
static void tell_stored(struct live_run *live, const struct outcome *o)
{
    const struct runs_options *options = &live->runs->options;
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
void live_run_take_off(struct live_run *live, const struct call *call, const struct tools *tools)
{
    live->tool_runs.tools = tools;
    tool_runs_start(&live->tool_runs, call,
                    &(struct passenger){.owner = live->now->thread.owner,
                                        .thread_id = live->now->thread.thread_id,
                                        .run_id = live->now->run.run_id,
                                        .locale = live->now->view.state.locale,
                                        .timezone = live->now->view.state.timezone});
}

static void take_off_all(struct live_run *live, const struct commit *commit)
{
    const struct outcome *o = &commit->outcome;
    for (size_t i = 0; i < o->call_count; i++)
        if (o->calls[i].started) live_run_take_off(live, &o->calls[i].call, commit->tools);
}

static void committed(struct live_run *live, struct commit *commit)
{
    struct runs *runs = live->runs;
    int64_t thread = live->thread;
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
    if (!PLANT(LEAVES_EARLY)) take_off_all(live, commit);
    tell_stored(live, o);
    forget_inputs(live, commit); /* last: the outcome borrows from them */
    bool waits = o->status == RUN_WAITING && !live->again && !tool_runs_any(&live->tool_runs);
    bool stops = runs->stopping && !tool_runs_busy(&live->tool_runs);
    struct loaded *loaded = TAKE(commit->loaded);
    commit_free(commit);
    if (ended || waits || stops) {
        loaded_free(loaded);
        live_run_free(live);
        if (ended && next && !PLANT(WAKE_LOST)) runs_wake(runs, thread);
    } else if (loaded && !live->again) {
        live_run_take(live, loaded);
    } else { /* somebody has changed the rows since, or they were not read */
        loaded_free(loaded);
        live_run_load(live);
    }
}

static void commit_done(struct job *job, enum err e)
{
    struct commit *commit = (struct commit *)(void *)job;
    struct live_run *live = commit->live;
    if (live->forgotten || e == ERR_SHUTTING_DOWN) {
        commit_free(commit);
        live_run_free(live);
        return;
    }
    if (e == ERR_STORAGE_FULL || e == ERR_RATE_LIMITED || e == ERR_LOCKED) {
        live_run_trouble(live, "commit postponed", e);
        if (commit->shown) payload_put_clear(&live->puts);
        if (commit->shown || commit->outcome.file_count) {
            /* nothing names its objects yet: they are put again, or swept */
            commit_free(commit);
            live_run_retry(live);
            return;
        }
        live->commit = commit;
        timer_start(live->timer, RUN_COMMIT_RETRY_MS);
        return;
    }
    bool late = e == ERR_BUSY || e == ERR_NOT_FOUND;
    if (PLANT(SHOWN_TWICE) && late && commit->shown)
        bus_facts(live->runs->options.bus, live->thread, commit->outcome.facts,
                  commit->outcome.fact_count);
    if (late && ++live->stale < STALE_MAX) { /* the rows have changed: the step was too old */
        commit_free(commit);
        live_run_load(live);
        return;
    }
    if (e) { /* the store failed: what is stored decides after the next start */
        live_run_trouble(live, "commit refused", e);
        commit_free(commit);
        live_run_free(live);
        return;
    }
    live->stale = 0;
    committed(live, commit);
}

static struct commit *commit_new(struct live_run *live)
{
    struct commit *commit = calloc(1, sizeof *commit);
    if (!commit) abort();
    arena_init(&commit->arena);
    commit->live = live;
    commit->job =
        (struct job){.run = commit_run, .done = commit_done, .who = live->now->thread.owner};
    commit->version = live->now->version;
    commit->now = clock_wall(live->runs->options.clock);
    return commit;
}

/* Save what a step returns. The active run keeps still until it is saved. */
static void commit_start(struct live_run *live, struct commit *commit)
{
    live->state = ACTIVE_COMMITTING;
    commit->flying = tool_runs_any(&live->tool_runs);
    timer_stop(live->timer);
    if (live->deadline) timer_stop(live->deadline);
    store_write(live->runs->options.store, &commit->job);
}

void live_run_step(struct live_run *live, struct input *input)
{
    const struct runs_options *o = &live->runs->options;
    struct commit *commit = commit_new(live);
    input->now = commit->now;
    input->agent = live_run_agent(live);
    input->binder = &o->saver->binder;
    input->tools = o->saver->tools;
    crypto_nonce(input->random, sizeof input->random);
    commit->turn = input->kind == INPUT_TURN || input->kind == INPUT_CANCEL;
    commit->shown = input->kind == INPUT_SHOW;
    commit->call_id = arena_str(&commit->arena, input->call_id);
    commit->kind = input->kind;
    commit->tools = input->tools;
    graph_step(&commit->arena, &live->now->view, input, &commit->outcome);
    if (PLANT(LEAVES_EARLY)) take_off_all(live, commit);
    commit_start(live, commit);
}

/* A state that cannot be read fails its own run, visibly. */
void live_run_damaged(struct live_run *live, const char *why)
{
    struct commit *commit = commit_new(live);
    commit->damaged = arena_cstr(&commit->arena, str_c(why));
    crypto_random(commit->random, sizeof commit->random);
    commit_start(live, commit);
}

void live_run_commit_again(struct live_run *live)
{
    store_write(live->runs->options.store, &TAKE(live->commit)->job);
}

void live_run_commit_drop(struct live_run *live)
{
    if (live->commit) commit_free(TAKE(live->commit));
}
