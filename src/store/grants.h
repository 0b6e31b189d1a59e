/* SPDX-License-Identifier: Apache-2.0
 *
 * Grants: "always" said by a person. A call that would need an approval runs without one if a grant
 * of its tool fits: the scope, and every argument that the grant names. Plain blocking code for use
 * inside a job.
 */
#ifndef STORE_GRANTS_H
#define STORE_GRANTS_H

#include "base/arena.h"

struct db;

struct grant {
    int64_t n;      /* order of making; given by grant_add */
    str id;         /* "grant_..." */
    str owner;      /* whose runs it serves */
    int64_t thread; /* 0: all threads of the owner */
    str thread_id;  /* of that thread; empty for all */
    str tool;
    str match;    /* JSON object {"arg": value}; "{}": whatever the arguments */
    str approver; /* role that gave it; empty: the owner did */
    str made_by, interaction_id;
    msec created;
};

struct grant_list {
    struct grant *rows;
    size_t count;
    bool more;
};

enum err grant_add(struct db *db, struct grant *grant) MUST_USE; /* sets n */
/* Newest first, before `before` (0: from the start). */
enum err grants_page(struct db *db, struct arena *arena, str owner, int64_t before, size_t limit,
                     struct grant_list *ret_list) MUST_USE;
/* Those that may serve a run of this thread: at most GRANTS_MAX, its own ones first. */
enum err grants_of_thread(struct db *db, struct arena *arena, str owner, int64_t thread,
                          struct grant_list *ret_list) MUST_USE;
enum err grant_find(struct db *db, struct arena *arena, str owner, str id, struct grant *ret_grant)
    MUST_USE; /* ERR_NOT_FOUND */
/* ERR_NOT_FOUND. Every running run of the owner has to look again: see snapshot_touch. */
enum err grant_delete(struct db *db, str owner, str id) MUST_USE;

#endif
