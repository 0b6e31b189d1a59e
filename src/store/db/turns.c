/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns: a line of jobs in which everybody has a turn, as a ring of people, each with a line of
 * jobs. A person's line is one of the few, or the map finds it; people without jobs have none.
 */
#include "store/db/turns.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "store/db/store.h"

void turns_init(struct turns *turns, size_t each_max)
{
    *turns = (struct turns){.each_max = each_max};
    turns->last = &turns->first;
    map_init(&turns->by_name, STORE_QUEUE_JOBS_MAX);
}

void turns_done(struct turns *turns)
{
    assert(!turns->count);
    map_done(&turns->by_name);
}

static void ring_add(struct turns *turns, struct user_turns *turn)
{
    turn->next = NULL;
    *turns->last = turn;
    turns->last = &turn->next;
}

/* The line of this person; a new one is empty, and not in the ring yet. */
static struct user_turns *turn_of(struct turns *turns, str who)
{
    if (!who.len) return &turns->ours;
    struct user_turns *turn = NULL;
    for (size_t i = 0; i < TURNS_FEW; i++) {
        struct user_turns *one = &turns->few[i];
        if (one->count && str_eq(one->first->who, who)) return one;
        if (!one->count && !turn) turn = one;
    }
    struct user_turns *other = turns->by_name.count ? map_get(&turns->by_name, who) : NULL;
    if (other) return other;
    if (turn) return turn;
    turn = mem_new(sizeof *turn);
    turn->made = true;
    enum err e = map_put(&turns->by_name, who, turn);
    assert(!e); /* as many people as jobs at most */
    return turn;
}

bool turns_push(struct turns *turns, struct job *job)
{
    struct user_turns *turn = turn_of(turns, job->who);
    if (job->who.len && turn->count >= turns->each_max) return false;
    if (!turn->count) {
        turn->last = &turn->first;
        turns->people++;
        ring_add(turns, turn);
    }
    job->next = NULL;
    *turn->last = job;
    turn->last = &job->next;
    turn->count++;
    turns->count++;
    return true;
}

struct job *turns_pop(struct turns *turns)
{
    struct user_turns *turn = turns->first;
    if (!turn) return NULL;
    turns->first = turn->next;
    if (!turns->first) turns->last = &turns->first;

    struct job *job = turn->first;
    turn->first = job->next;
    turn->count--;
    turns->count--;
    if (turn->count) {
        ring_add(turns, turn);
        return job;
    }
    turns->people--;
    if (turn->made) free(map_remove(&turns->by_name, job->who));
    return job;
}
