/* SPDX-License-Identifier: Apache-2.0
 *
 * A change of a thread: facts gathered in the job, told on the loop after its commit.
 */
#include "thread/thread_change.h"

#include "agent/core/facts.h"
#include "agent/shell/loaded.h"
#include "agent/shell/payload_retry.h"
#include "agent/shell/save.h"
#include "base/limits.h"
#include "duty/webhooks.h"
#include "feed/feed.h"
#include "server/server.h"

void thread_change_reset(struct thread_change *tc)
{
    tc->facts = NULL;
    tc->fact_count = 0;
    tc->wake = tc->waiting = tc->cancel = tc->created = false;
}

void thread_change_facts(struct thread_change *tc, const struct fact *facts, size_t count)
{
    size_t total = tc->fact_count + count;
    struct fact *all = arena_array(change_arena(&tc->change), total, sizeof *all);
    for (size_t i = 0; i < total; i++)
        all[i] = i < tc->fact_count ? tc->facts[i] : facts[i - tc->fact_count];
    tc->facts = all;
    tc->fact_count = total;
}

void thread_change_stepped(struct thread_change *tc, const struct stepped *stepped)
{
    if (stepped->thread) tc->thread.id = stepped->thread; /* 0: nothing was stepped */
    thread_change_facts(tc, stepped->facts, stepped->fact_count);
    tc->wake = tc->wake || stepped->wake;
    tc->waiting = tc->waiting || stepped->waiting;
}

/* A run that is cancelled may have a call under way, and is looked at by the shell. */
void thread_change_load(struct thread_change *tc, struct db *db)
{
    struct change *change = &tc->change;
    if (!tc->wake || tc->cancel) return;
    change->loaded = loaded_new();
    if (loaded_read(db, tc->thread.id, RUN_HISTORY_FACTS_MAX, change->loaded))
        loaded_free(TAKE(change->loaded)); /* it is read again by itself */
}

static bool thread_change_has(const struct thread_change *tc, str kind)
{
    for (size_t i = 0; i < tc->fact_count; i++)
        if (str_starts(str_c(tc->facts[i].type), kind)) return true;
    return false;
}

void thread_change_tell(struct change *change)
{
    struct thread_change *tc = (struct thread_change *)(void *)change;
    struct server *server = change->by.server;
    if (tc->created) feeds_created(server->feeds, &tc->thread);
    bus_facts(server->bus, tc->thread.id, tc->facts, tc->fact_count);
    if (thread_change_has(tc, STR("interaction."))) webhooks_look(server->webhooks);
    /* What a call left behind was made in the job: it is not in object storage yet. */
    if (tc->waiting) payload_retry_look(server->retry);
    if (tc->cancel) runs_cancel(server->runs, tc->thread.id);
    if (tc->wake) runs_go_on(server->runs, tc->thread.id, TAKE(change->loaded));
}
