/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of threads: facts gathered in the job, told on the loop after its commit.
 */
#include "app/input/thread_change.h"

#include "agent/facts.h"
#include "agent/keeper.h"
#include "agent/save.h"
#include "app/clockwork.h"
#include "app/feed/feed.h"
#include "app/server.h"
#include "app/webhooks.h"

void thread_change_reset(struct thread_change *tc)
{
    tc->facts = NULL;
    tc->fact_count = 0;
    tc->wake = tc->cancel = tc->created = false;
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
}

void interactions_changed(struct server *server)
{
    clockwork_look(server->clockwork);
    webhooks_look(server->webhooks);
}

static bool has(const struct thread_change *tc, str kind)
{
    for (size_t i = 0; i < tc->fact_count; i++)
        if (str_starts(str_c(tc->facts[i].type), kind)) return true;
    return false;
}

void thread_change_tell(struct change *change)
{
    struct thread_change *tc = (struct thread_change *)(void *)change;
    struct server *server = change->x->server;
    if (tc->created) feeds_created(server->feeds, &tc->thread);
    bus_facts(server->bus, tc->thread.id, tc->facts, tc->fact_count);
    if (has(tc, STR("interaction."))) interactions_changed(server);
    /* What a call left behind was made in the job: it is not in object storage yet. */
    if (has(tc, STR(FACT_TOOL_RESULT))) keeper_look(server->keeper);
    if (tc->cancel) runs_cancel(server->runs, tc->thread.id);
    if (tc->wake) runs_wake(server->runs, tc->thread.id);
}
