/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs that failed, in the log.
 *
 *     error run.failed thread=... run=... agent=assistant code=model_error cause="..."
 *     warn  run.exhausted thread=... run=... agent=assistant code=budget_exhausted
 *
 * 1. The end of a run is told on the bus once, whichever way it ended: by its own step, by an answer,
 *    by the clock, or because its state cannot be read. So it is logged once.
 * 2. The cause is what a provider, a store or the program says. What the model wrote, or people did, is
 *    left out: of a code whose words quote them only the code is told.
 *
 * Names of thread and agent are in rows: they are read before the line is written.
 */
#include "duty/failures.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/facts.h"
#include "base/json.h"
#include "base/log.h"
#include "server/server.h"
#include "store/bus/bus.h"
#include "store/db/store.h"
#include "ui/text.h"

enum { CAUSE_CHARS_MAX = 400 }; /* a line of the log, not a page */

struct failures {
    struct server *server;
    struct bus_follower follower;
};

struct failure {
    struct job job;
    struct arena arena;
    int64_t thread;
    bool exhausted;
    str run_id, code, cause;
    str thread_id, agent; /* empty: their rows are gone */
};

static enum err failure_run(struct job *job, struct db *db)
{
    struct failure *failure = (struct failure *)(void *)job;
    struct thread thread;
    struct run run;
    enum err e = thread_by_id(db, &failure->arena, failure->thread, &thread);
    if (!e) failure->thread_id = thread.thread_id;
    if (!e) e = run_find(db, &failure->arena, failure->thread, failure->run_id, &run);
    if (!e) failure->agent = run.agent;
    return e;
}

/* Whether the rows could be read or not: the line is what counts. */
static void failure_done(struct job *job, enum err e)
{
    struct failure *failure = (struct failure *)(void *)job;
    (void)e;
    if (failure->exhausted)
        log_warn("run.exhausted", LOG_STR("thread", failure->thread_id),
                 LOG_STR("run", failure->run_id), LOG_STR("agent", failure->agent),
                 LOG_STR("code", failure->code));
    else
        log_error("run.failed", LOG_STR("thread", failure->thread_id),
                  LOG_STR("run", failure->run_id), LOG_STR("agent", failure->agent),
                  LOG_STR("code", failure->code), LOG_STR("cause", failure->cause));
    arena_done(&failure->arena);
    free(failure);
}

static void note(struct failures *failures, const struct fact *fact, bool exhausted)
{
    struct failure *failure = calloc(1, sizeof *failure);
    if (!failure) abort();
    struct json *data = NULL;
    arena_init(&failure->arena);
    failure->job = (struct job){.run = failure_run, .done = failure_done};
    failure->thread = bus_telling(failures->server->bus);
    failure->exhausted = exhausted;
    failure->run_id = arena_str(&failure->arena, fact->run_id);
    str bytes = arena_str(&failure->arena, fact->data);
    enum err e = json_parse(&failure->arena, bytes, &data, NULL);
    assert(!e); /* ours */
    failure->code = json_text(json_get(data, STR("code")));
    if (!str_eq(failure->code, STR("aborted"))) /* its words may quote the conversation */
        failure->cause =
            ui_line(&failure->arena, json_text(json_get(data, STR("message"))), CAUSE_CHARS_MAX);
    store_read(failures->server->store, &failure->job);
}

static void on_facts(void *arg, const struct fact *facts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool exhausted = !strcmp(facts[i].type, FACT_RUN_FINISHED) &&
                         str_starts(facts[i].data, STR("{\"outcome\":\"exhausted\""));
        if (exhausted || !strcmp(facts[i].type, FACT_RUN_ERROR)) note(arg, &facts[i], exhausted);
    }
}

static const struct bus_ops ops = {.on_facts = on_facts};

struct failures *failures_new(struct server *server)
{
    struct failures *failures = calloc(1, sizeof *failures);
    if (!failures) abort();
    failures->server = server;
    failures->follower = (struct bus_follower){.ops = &ops, .arg = failures};
    bus_follow(server->bus, 0, &failures->follower);
    return failures;
}

void failures_free(struct failures *failures)
{
    if (!failures) return;
    bus_unfollow(failures->server->bus, &failures->follower);
    free(failures);
}
