/* SPDX-License-Identifier: Apache-2.0
 *
 * Grants: "always" said by a person. A call that would need an approval runs without one if a grant
 * of its tool fits: the scope, the rule, and every argument that the grant names. One that a role gave
 * holds as long as its maker has the role: without it, it is not listed and lets nothing run, and
 * grants_end takes it away. Plain blocking code for use inside a job.
 */
#ifndef STORE_TABLE_GRANTS_H
#define STORE_TABLE_GRANTS_H

#include "base/arena.h"
#include "base/crypto.h"

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
    str rule; /* it was made under, as in struct judgement; empty: made before rules were kept */
    str made_by, interaction_id;
    msec created;
};

struct grant_list {
    struct grant *rows;
    size_t count;
    bool more;
};

enum err grant_add(struct db *db, struct grant *grant) MUST_USE; /* sets n */
/* Newest first, before `before` (0: from the start): for the runs of `user`, made by them, and given
 * by a role they have (names, may be empty strs); or all there are. */
enum { GRANT_ROLES_MAX = 4 };
struct grant_filter {
    str user;
    str roles[GRANT_ROLES_MAX];
    bool all;
    int64_t before;
    size_t limit;
};
enum err grants_page(struct db *db, struct arena *arena, const struct grant_filter *filter,
                     struct grant_list *ret_list) MUST_USE;
/* Those that may serve a run of this thread: at most GRANTS_MAX, its own ones first. */
enum err grants_of_thread(struct db *db, struct arena *arena, str owner, int64_t thread,
                          struct grant_list *ret_list) MUST_USE;
/* Whoever's it is. ERR_NOT_FOUND, also if its maker may approve no more. */
enum err grant_find(struct db *db, struct arena *arena, str id, struct grant *ret_grant) MUST_USE;
/* Take it away, note who did and why, and let every run under way look again. */
struct grant_end {
    const unsigned char *audit_key;
    str who, via, why; /* who empty: the server */
    msec now;
};
enum err grant_revoke(struct db *db, struct arena *arena, const struct grant *grant,
                      const struct grant_end *end) MUST_USE;
/* All those whose makers may approve no more, at most GRANTS_MAX in one go. */
enum err grants_end(struct db *db, struct arena *arena, const unsigned char key[static HASH_BYTES],
                    msec now) MUST_USE;

#endif
