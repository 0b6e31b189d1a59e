/* SPDX-License-Identifier: Apache-2.0
 *
 * What a thread waits for, and what one request settles of it in one step. Each interaction and
 * each call is in one of the two lists, so that nothing is settled twice by one request, whoever
 * names it.
 */
#include "thread/pending.h"

#include <string.h>

#include "agent/core/interaction.h"

enum err pending_load(struct db *db, struct arena *arena, int64_t thread,
                      struct pending *ret_pending)
{
    struct pending pending = {0};
    enum err e = run_current(db, arena, thread, &pending.run);
    bool idle = e == ERR_NOT_FOUND;
    if (!e) e = interactions_of_thread(db, arena, thread, &pending.open);
    if (!e) e = front_pending(db, arena, thread, &pending.calls);
    if (e && !idle) return e;
    size_t open = pending.open.count, calls = pending.calls.count;
    pending.asked = open || calls;
    pending.resolutions = arena_array(arena, open + 1, sizeof *pending.resolutions);
    pending.answered.ids = arena_array(arena, open + 1, sizeof *pending.answered.ids);
    pending.fronts = arena_array(arena, calls + 1, sizeof *pending.fronts);
    *ret_pending = pending;
    return OK;
}

const struct interaction *pending_named(const struct pending *pending, str id)
{
    const struct interaction_list *open = &pending->open;
    for (size_t i = 0; i < open->count; i++)
        if (str_eq(open->rows[i].id, id)) return &open->rows[i];
    return NULL;
}

void pending_settle(struct pending *pending, const struct resolution *resolution, bool by_person)
{
    struct interaction_list *open = &pending->open;
    size_t at = 0;
    while (at < open->count && !str_eq(open->rows[at].id, resolution->interaction_id)) at++;
    if (at == open->count) return;
    open->count--;
    memmove(&open->rows[at], &open->rows[at + 1], (open->count - at) * sizeof *open->rows);
    pending->resolutions[pending->resolution_count++] = *resolution;
    if (by_person) pending->answered.ids[pending->answered.count++] = resolution->interaction_id;
}

void pending_front(struct pending *pending, const struct front_result *front)
{
    struct call_list *calls = &pending->calls;
    size_t at = 0;
    while (at < calls->count && !str_eq(calls->rows[at].call_id, front->call_id)) at++;
    if (at == calls->count) return;
    calls->count--;
    memmove(&calls->rows[at], &calls->rows[at + 1], (calls->count - at) * sizeof *calls->rows);
    pending->fronts[pending->front_count++] = *front;
}

void pending_expire(struct pending *pending, msec now)
{
    for (size_t i = 0; i < pending->open.count;) {
        const struct interaction *interaction = &pending->open.rows[i];
        if (interaction->expires && interaction->expires <= now)
            pending_settle(pending,
                           &(struct resolution){.interaction_id = interaction->id,
                                                .decision = DECISION_EXPIRE,
                                                .via = STR("timer")},
                           false);
        else
            i++;
    }
}

enum err pending_apply(struct thread_change *tc, struct db *db, const struct settle *settle,
                       struct pending *pending)
{
    struct arena *arena = change_arena(&tc->change);
    struct stepped stepped;
    struct resolve resolve = {.thread = tc->thread.id,
                              .resolutions = pending->resolutions,
                              .resolution_count = pending->resolution_count,
                              .fronts = pending->fronts,
                              .front_count = pending->front_count,
                              .wire_run_id = settle->wire_run_id,
                              .input = settle->leg,
                              .now = settle->now};
    if (!resolve.resolution_count && !resolve.front_count) return OK;
    memcpy(resolve.random, settle->random, sizeof resolve.random);
    enum err e = run_resolve(db, arena, settle->saver, &resolve, &stepped);
    if (e) return e;
    if (stepped.damaged) pending->answered.count = 0;
    thread_change_stepped(tc, &stepped);
    return run_find(db, arena, tc->thread.id, pending->run.run_id, &pending->run);
}
