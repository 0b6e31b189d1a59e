/* SPDX-License-Identifier: Apache-2.0
 *
 * A line of jobs in which everybody has a turn: the first job of each person, then the second of
 * each who has one, and so on; those of one person stay in order. So whoever brings a thousand jobs
 * waits for their own, and others for one of them. Jobs without a name are our own and take turns as
 * one person. Not thread-safe.
 */
#ifndef STORE_DB_TURNS_H
#define STORE_DB_TURNS_H

#include "base/map.h"

struct job;

/* The jobs of one person, linked through job->next. */
struct user_turns {
    struct user_turns *next;
    struct job *first, **last;
    size_t count;
    bool made; /* for the map, and freed with its last job */
};

/* Lines that need not be made: so many people at once cost no memory, and no lookup in the map. */
enum { TURNS_FEW = 8 };

struct turns {
    struct user_turns *first, **last; /* those who have jobs */
    struct user_turns ours;           /* without a name; never made anew */
    struct user_turns few[TURNS_FEW]; /* those who come first; a name is that of its first job */
    struct map by_name;               /* everybody else's */
    size_t count;                     /* of all */
    size_t people;                    /* who have any, we among them */
    size_t each_max;                  /* of one person */
};

void turns_init(struct turns *turns, size_t each_max);
void turns_done(struct turns *turns); /* it is empty */

/* job->who says whose. False: they have each_max already. */
bool turns_push(struct turns *turns, struct job *job) MUST_USE;
struct job *turns_pop(struct turns *turns); /* NULL: nobody has any */

#endif
