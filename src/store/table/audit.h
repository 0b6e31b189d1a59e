/* SPDX-License-Identifier: Apache-2.0
 *
 * The audit trail: who decided what, when and where, and what was refused. Ids and hashes only.
 *
 * The entries of a thread form a chain: each carries an HMAC over the one before it and its own
 * fields, and the chain's head says how many there are. Whoever changes, removes or reorders an entry
 * without the key is found by audit_check.
 *
 * A chain outlives its thread: deleting that closes it with a last entry. The chain `server` knows
 * every other one, when it was opened and when it was closed, so that one which was taken away with
 * all its rows is missed. Not found is an older copy of the whole database put in place of the newer:
 * that is what restoring does. Plain blocking code for use inside a job.
 */
#ifndef STORE_TABLE_AUDIT_H
#define STORE_TABLE_AUDIT_H

#include "base/arena.h"
#include "base/crypto.h"

struct db;

/* action, name */
#define AUDIT_ACTIONS(X)                                                                    \
    X(AUDIT_OPENED, "opened")     /* an interaction */                                      \
    X(AUDIT_RESOLVED, "resolved") /* answered, cancelled or expired: see why */             \
    X(AUDIT_REFUSED, "refused")   /* an answer that was not taken: see why */               \
    X(AUDIT_STARTED, "started")   /* a call that needed an approval left */                 \
    X(AUDIT_ENDED, "ended")       /* its end, as far as it is known */                      \
    X(AUDIT_GRANTED, "granted")                                                             \
    X(AUDIT_REVOKED, "revoked")                                                             \
    X(AUDIT_MOVED, "moved")               /* the expiry of an interaction */                \
    X(AUDIT_CLOSED, "closed")             /* its thread was deleted: the last of a chain */ \
    X(AUDIT_CHAIN_OPENED, "chain.opened") /* in the chain `server`, as what follows */      \
    X(AUDIT_CHAIN_CLOSED, "chain.closed")                                                   \
    X(AUDIT_ADOPTED, "adopted") /* who took over what somebody else had: see why */

#define AUDIT_ENUM(value, name) value,
enum audit_action { AUDIT_ACTIONS(AUDIT_ENUM) AUDIT_ACTION_COUNT };
#undef AUDIT_ENUM

const char *audit_action_name(enum audit_action action);

struct audit_entry {
    enum audit_action action;
    str interaction_id, call_id;    /* empty: none */
    str who, via;                   /* user; "api", "page", "message", "timer", "run" ... */
    str why;                        /* a word: approve, reject, expired, wrong_role ... */
    unsigned char hash[HASH_BYTES]; /* SHA-256 of the bytes it is about (arguments, answer) */
    msec at;
};

enum {
    AUDIT_KEY_ID_BYTES = 4,
    AUDIT_SEAL_BYTES = AUDIT_KEY_ID_BYTES + HASH_BYTES, /* which key, and its HMAC */
};

/* Append to the thread's chain under the key (SECRET_AUDIT's subkey), which the first entry opens. A
 * chain that is broken is continued, and stays broken. ERR_TOO_LARGE: more than
 * AUDIT_ENTRY_BYTES_MAX. ERR_NOT_FOUND: there is no such thread, or its chain is closed. */
enum err audit_add(struct db *db, const unsigned char key[static HASH_BYTES], int64_t thread,
                   const struct audit_entry *entry) MUST_USE;

/* Several at once, in this order: the chain's head moves once. */
enum err audit_add_all(struct db *db, const unsigned char key[static HASH_BYTES], int64_t thread,
                       const struct audit_entry *entries, size_t count) MUST_USE;

/* Its thread is being deleted, by `who`: the chain gets its last entry. A thread about which nothing
 * was noted has none. Closing again is fine. */
enum err audit_close(struct db *db, const unsigned char key[static HASH_BYTES], int64_t thread,
                     str who, str via, msec now) MUST_USE;

/* Append to the chain `server`: what belongs to no thread, or to one that is gone. */
enum err audit_note(struct db *db, const unsigned char key[static HASH_BYTES],
                    const struct audit_entry *entry) MUST_USE;

/* Chains from before there was the chain `server` are made known to it, at most `limit`. *ret_end:
 * there are no more. */
enum err audit_take_over(struct db *db, const unsigned char key[static HASH_BYTES], size_t limit,
                         msec now, bool *ret_end) MUST_USE;

/* Is there an entry already about somebody who named an interaction that they may not see? */
enum err audit_refused_before(struct db *db, str interaction_id, str who, bool *ret_yes) MUST_USE;

/* How far a check has come; all zero at the start. A chain may grow, and a thread go, between two
 * steps. */
struct audit_place {
    int64_t thread; /* 0: the chain `server`, which is the first */
    bool begun;
    bool inside; /* the chain of this thread, behind entry n with this seal */
    bool closed; /* entry n is its last */
    int64_t n;
    unsigned char seal[AUDIT_SEAL_BYTES];
};
struct audit_tally {
    uint64_t chains, closed, entries; /* of threads, found intact so far */
};

/* Check on from the place, at most `limit` entries and chains together; *ret_end: that was all. A
 * broken chain is a fault, ERR_DAMAGED, that names chain and entry. */
enum err audit_check(struct db *db, const unsigned char key[static HASH_BYTES],
                     struct audit_place *place, size_t limit, struct audit_tally *tally,
                     bool *ret_end, struct fault *reterr) MUST_USE;

/* All chains of a data folder, with or without a server at work in it: only reads. A database from
 * before there was an audit trail has none;
 * ERR_CONFIG: it has to be brought up to date first. ERR_NOT_FOUND if the folder has no database. */
enum err audit_check_folder(const char *folder, const unsigned char key[static HASH_BYTES],
                            struct audit_tally *ret_tally, struct fault *reterr) MUST_USE;

#endif
