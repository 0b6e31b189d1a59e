/* SPDX-License-Identifier: Apache-2.0
 *
 * What is open, and what is taken out of it. Each interaction and each call is in one of the two
 * lists, so that nothing is settled twice by one request, whoever names it.
 */
#include "app/input/waits.h"

#include <string.h>

#include "agent/interaction.h"

enum err waits_load(struct db *db, struct arena *arena, int64_t thread, struct waits *ret_waits)
{
    struct waits waits = {0};
    enum err e = run_current(db, arena, thread, &waits.run);
    bool idle = e == ERR_NOT_FOUND;
    if (!e) e = interactions_of_thread(db, arena, thread, &waits.open);
    if (!e) e = front_pending(db, arena, thread, &waits.pending);
    if (e && !idle) return e;
    size_t open = waits.open.count, pending = waits.pending.count;
    waits.asked = open || pending;
    waits.resolutions = arena_array(arena, open + 1, sizeof *waits.resolutions);
    waits.answered.ids = arena_array(arena, open + 1, sizeof *waits.answered.ids);
    waits.fronts = arena_array(arena, pending + 1, sizeof *waits.fronts);
    *ret_waits = waits;
    return OK;
}

void waits_settle(struct waits *waits, const struct resolution *resolution, bool by_person)
{
    struct interaction_list *open = &waits->open;
    size_t at = 0;
    while (at < open->count && !str_eq(open->rows[at].id, resolution->interaction_id)) at++;
    if (at == open->count) return;
    open->count--;
    memmove(&open->rows[at], &open->rows[at + 1], (open->count - at) * sizeof *open->rows);
    waits->resolutions[waits->resolution_count++] = *resolution;
    if (by_person) waits->answered.ids[waits->answered.count++] = resolution->interaction_id;
}

void waits_front(struct waits *waits, const struct front_result *front)
{
    struct call_list *pending = &waits->pending;
    size_t at = 0;
    while (at < pending->count && !str_eq(pending->rows[at].call_id, front->call_id)) at++;
    if (at == pending->count) return;
    pending->count--;
    memmove(&pending->rows[at], &pending->rows[at + 1],
            (pending->count - at) * sizeof *pending->rows);
    waits->fronts[waits->front_count++] = *front;
}

void waits_expire(struct waits *waits, msec now)
{
    for (size_t i = 0; i < waits->open.count;) {
        const struct interaction *interaction = &waits->open.rows[i];
        if (interaction->expires && interaction->expires <= now)
            waits_settle(waits,
                         &(struct resolution){.interaction_id = interaction->id,
                                              .decision = DECISION_EXPIRE,
                                              .via = STR("timer")},
                         false);
        else
            i++;
    }
}

enum err waits_apply(struct thread_change *tc, struct db *db, const struct settle *settle,
                     struct waits *waits)
{
    struct arena *arena = change_arena(&tc->change);
    struct stepped stepped;
    struct resolve resolve = {.thread = tc->thread.id,
                              .resolutions = waits->resolutions,
                              .resolution_count = waits->resolution_count,
                              .fronts = waits->fronts,
                              .front_count = waits->front_count,
                              .wire_run_id = settle->wire_run_id,
                              .input = settle->leg,
                              .now = settle->now};
    if (!resolve.resolution_count && !resolve.front_count) return OK;
    memcpy(resolve.random, settle->random, sizeof resolve.random);
    enum err e = run_resolve(db, arena, settle->saver, &resolve, &stepped);
    if (e) return e;
    if (stepped.damaged) waits->answered.count = 0;
    thread_change_stepped(tc, &stepped);
    return run_find(db, arena, tc->thread.id, waits->run.run_id, &waits->run);
}
