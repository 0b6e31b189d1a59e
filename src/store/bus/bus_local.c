/* SPDX-License-Identifier: Apache-2.0
 *
 * The bus inside one process: who follows a thread, and telling them; a call is a call.
 *
 * A map leads from a thread to the first of its followers, which are linked among themselves; a
 * thread without followers has no entry, so that telling nobody costs one lookup and following
 * allocates nothing but the entry.
 *
 * Whoever follows every thread is in one more list, which is told of facts behind the thread's own.
 *
 * Invariants:
 * 1. follower->thread is 0 exactly while it follows nothing (threads count from 1); EVERY stands
 *    for all of them.
 * 2. The first of a list has no prev and is what the map, or `every`, holds.
 */
#include "store/bus/bus.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/map.h"

enum { EVERY = -1 };

struct bus {
    struct map first;           /* thread, 8 bytes -> its first follower */
    struct bus_follower *every; /* the first follower of every thread */
    int64_t telling;            /* of which facts are told */
};

struct bus *bus_local_new(void)
{
    struct bus *bus = calloc(1, sizeof *bus);
    if (!bus) abort();
    map_init(&bus->first, BUS_THREADS_MAX);
    return bus;
}

void bus_free(struct bus *bus)
{
    if (!bus) return;
    assert(bus->first.count == 0 && !bus->every);
    map_done(&bus->first);
    free(bus);
}

static str key_of(const int64_t *thread)
{
    return (str){(const char *)thread, sizeof *thread};
}

static struct bus_follower *first_of(const struct bus *bus, int64_t thread)
{
    return thread == EVERY ? bus->every : map_get(&bus->first, key_of(&thread));
}

static void first_set(struct bus *bus, int64_t thread, struct bus_follower *follower)
{
    enum err e = OK;
    if (thread == EVERY)
        bus->every = follower;
    else if (follower)
        e = map_put(&bus->first, key_of(&thread), follower);
    else
        map_remove(&bus->first, key_of(&thread));
    assert(!e); /* there are no more feeds than this */
}

void bus_follow(struct bus *bus, int64_t thread, struct bus_follower *follower)
{
    assert(thread >= 0 && !follower->thread);
    if (!thread) thread = EVERY;
    struct bus_follower *next = first_of(bus, thread);
    follower->thread = thread;
    follower->prev = NULL;
    follower->next = next;
    if (next) next->prev = follower;
    first_set(bus, thread, follower);
}

void bus_unfollow(struct bus *bus, struct bus_follower *follower)
{
    if (!follower->thread) return;
    if (follower->next) follower->next->prev = follower->prev;
    if (follower->prev)
        follower->prev->next = follower->next;
    else
        first_set(bus, follower->thread, follower->next);
    follower->prev = follower->next = NULL;
    follower->thread = 0;
}

bool bus_followed(const struct bus *bus, int64_t thread)
{
    return first_of(bus, thread ? thread : EVERY) != NULL;
}

/* The next one is read before the call: a follower may be gone after it. */

static void tell(struct bus_follower *first, const struct fact *facts, size_t count)
{
    for (struct bus_follower *at = first, *next; at; at = next) {
        next = at->next;
        at->ops->on_facts(at->arg, facts, count);
    }
}

void bus_facts(struct bus *bus, int64_t thread, const struct fact *facts, size_t count)
{
    bus->telling = thread;
    tell(first_of(bus, thread), facts, count);
    tell(bus->every, facts, count);
}

int64_t bus_telling(const struct bus *bus)
{
    return bus->telling;
}

void bus_preview(struct bus *bus, int64_t thread, const struct preview *preview)
{
    for (struct bus_follower *at = first_of(bus, thread), *next; at; at = next) {
        next = at->next;
        at->ops->on_preview(at->arg, preview);
    }
}
