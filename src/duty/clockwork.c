/* SPDX-License-Identifier: Apache-2.0
 *
 * The clockwork: one timer for all expiries, over restarts.
 *
 *   clockwork_look ─► read: the next expiry ─ due ─► write: settle it ─► facts told, runs woken
 *        ▲                    │ later                                            │
 *        │          timer: then, or after CLOCKWORK_LOOK_MS                      │
 *        └────────────────────┴──────────────────────────────────────────────────┘
 *
 * The wall clock decides, because people set these times and restarts lie between; it may jump, so
 * nobody sleeps longer than CLOCKWORK_LOOK_MS while something is waiting to expire.
 *
 * Invariants:
 * 1. At most one job is with the store; a look meanwhile is remembered and made after it.
 * 2. Interactions of one run that are due together are settled in one step.
 * 3. A run that cannot be stepped is told and passed over for CLOCKWORK_LOOK_MS; it does not keep
 *    the others waiting.
 */
#include "duty/clockwork.h"

#include <string.h>

#include <stdlib.h>

#include "agent/shell/payload_retry.h"
#include "agent/shell/save.h"
#include "base/limits.h"
#include "base/log.h"
#include "duty/webhooks.h"
#include "net/loop.h"
#include "server/server.h"
#include "store/db/store.h"

struct clockwork {
    struct job job; /* one at a time */
    struct server *server;
    struct timer *timer;
    bool busy, again, stopping;
    int64_t failing[CLOCKWORK_FAILING_MAX]; /* runs that are passed over for a while */
    size_t failing_count;
    msec failing_since;

    /* of the job under way */
    struct arena arena;
    msec now;
    unsigned char random[CLOCKWORK_DUE_MAX][ID_RANDOM_BYTES]; /* one for each step */
    struct stepped steps[CLOCKWORK_DUE_MAX];
    size_t step_count;
    int64_t failed; /* run whose step failed; 0: none */
    bool more;      /* as many were due as one job may settle */
    msec next;      /* expiry that comes next; 0: none */
};

static void next_done(struct job *job, enum err e);
static void settle_done(struct job *job, enum err e);

static enum err next_run(struct job *job, struct db *db)
{
    struct clockwork *c = (struct clockwork *)(void *)job;
    return interactions_next_expiry(db, &c->next);
}

/* ---- settling ---- */

static bool is_failing(const struct clockwork *c, int64_t run)
{
    for (size_t i = 0; i < c->failing_count; i++)
        if (c->failing[i] == run) return true;
    return false;
}

/* All due ones of the run of rows[first]; marks them by run 0. */
static enum err settle_run(struct clockwork *c, struct db *db, struct interaction_list *due,
                           size_t first)
{
    struct interaction *rows = due->rows;
    int64_t run = rows[first].run, thread = rows[first].thread;
    struct resolution *resolutions =
        arena_array(&c->arena, due->count - first, sizeof *resolutions);
    size_t count = 0;
    for (size_t i = first; i < due->count; i++) {
        if (rows[i].run != run) continue;
        resolutions[count++] = (struct resolution){
            .interaction_id = rows[i].id, .decision = DECISION_EXPIRE, .via = STR("timer")};
        rows[i].run = 0;
    }
    c->failed = run;
    struct resolve resolve = {
        .thread = thread, .resolutions = resolutions, .resolution_count = count, .now = c->now};
    memcpy(resolve.random, c->random[c->step_count], sizeof resolve.random);
    enum err e = run_resolve(db, &c->arena, &c->server->saver, &resolve, &c->steps[c->step_count]);
    if (e) return e;
    c->failed = 0;
    c->step_count++;
    return OK;
}

/* The earliest ones, due or not: the first that is not says when to look again. */
static enum err settle_due(struct job *job, struct db *db)
{
    struct clockwork *c = (struct clockwork *)(void *)job;
    struct interaction_list list;
    size_t due = 0;
    arena_reset(&c->arena); /* it may run twice */
    c->step_count = 0;
    c->failed = 0;
    enum err e = interactions_due(db, &c->arena, INT64_MAX, CLOCKWORK_DUE_MAX, &list);
    if (e) return e;
    while (due < list.count && list.rows[due].expires <= c->now) due++;
    c->next = due < list.count ? list.rows[due].expires : 0;
    list.count = due;
    for (size_t i = 0; !e && i < due; i++)
        if (list.rows[i].run && !is_failing(c, list.rows[i].run)) e = settle_run(c, db, &list, i);
    c->more = due == CLOCKWORK_DUE_MAX && c->step_count;
    return e;
}

/* ---- the loop's side ---- */

void clockwork_look(struct clockwork *c)
{
    if (!c || c->stopping) return;
    c->again = c->busy;
    if (c->busy) return;
    c->busy = true;
    if (clock_steady(&clock_system) - c->failing_since >= CLOCKWORK_LOOK_MS) c->failing_count = 0;
    c->job = (struct job){.run = next_run, .done = next_done};
    store_read(c->server->store, &c->job);
}

static void wait(struct clockwork *c, msec in)
{
    timer_start(c->timer, in < CLOCKWORK_LOOK_MS ? in : CLOCKWORK_LOOK_MS);
    if (c->again) clockwork_look(c);
}

static void next_done(struct job *job, enum err e)
{
    struct clockwork *c = (struct clockwork *)(void *)job;
    c->busy = false;
    c->now = clock_wall(&clock_system);
    if (c->stopping) return;
    timer_stop(c->timer);
    if (e) {
        log_error("expiry.failed", LOG_CSTR("reason", err_title(e)));
        wait(c, CLOCKWORK_RETRY_MS);
    } else if (c->next > c->now) {
        wait(c, c->next - c->now);
    } else if (c->next) {
        c->busy = true;
        crypto_random(c->random, sizeof c->random);
        c->job = (struct job){.run = settle_due, .done = settle_done};
        store_write(c->server->store, &c->job);
    } else if (c->again) {
        clockwork_look(c);
    }
}

static void tell(struct clockwork *c)
{
    struct server *server = c->server;
    for (size_t i = 0; i < c->step_count; i++) {
        const struct stepped *step = &c->steps[i];
        bus_facts(server->bus, step->thread, step->facts, step->fact_count);
        if (step->wake) runs_wake(server->runs, step->thread);
    }
    if (!c->step_count) return;
    webhooks_look(server->webhooks);
    payload_retry_look(server->retry); /* results that were shown on the way are to be put */
}

/* A run that cannot be stepped is passed over from now on, and the rest is tried at once. */
static bool pass_over(struct clockwork *c, enum err e)
{
    bool ours = e == ERR_STORAGE_FULL || e == ERR_SHUTTING_DOWN || e == ERR_RATE_LIMITED;
    if (!c->failed || ours || c->failing_count == CLOCKWORK_FAILING_MAX) return false;
    if (!c->failing_count) c->failing_since = clock_steady(&clock_system);
    c->failing[c->failing_count++] = c->failed;
    return true;
}

static void settle_done(struct job *job, enum err e)
{
    struct clockwork *c = (struct clockwork *)(void *)job;
    c->busy = false;
    if (e && !c->stopping)
        log_error("expiry.failed", LOG_CSTR("reason", err_title(e)), LOG_I64("run", c->failed));
    if (!e) tell(c);
    arena_reset(&c->arena);
    if (c->stopping) return;
    if (e)
        wait(c, pass_over(c, e) ? 0 : CLOCKWORK_RETRY_MS);
    else if (c->more)
        clockwork_look(c);
    else if (c->next || c->failing_count)
        wait(c, c->next ? c->next - c->now : CLOCKWORK_LOOK_MS);
    else if (c->again)
        clockwork_look(c);
}

static void on_timer(void *arg)
{
    clockwork_look(arg);
}

struct clockwork *clockwork_new(struct server *server)
{
    struct clockwork *c = calloc(1, sizeof *c);
    if (!c) abort();
    c->server = server;
    c->timer = timer_new(server->loop, on_timer, c);
    arena_init(&c->arena);
    clockwork_look(c);
    return c;
}

void clockwork_stop(struct clockwork *c)
{
    if (!c) return;
    c->stopping = true;
    timer_stop(c->timer);
}

void clockwork_free(struct clockwork *c)
{
    if (!c) return;
    timer_free(c->timer);
    arena_done(&c->arena);
    free(c);
}
