/* SPDX-License-Identifier: Apache-2.0
 *
 * The audit trail: who decided what, when and where, and what was refused. Ids and hashes only.
 *
 * The entries of a thread form a chain: each carries an HMAC over the one before it and its own
 * fields, and the thread's head says how many there are. Whoever changes, removes or reorders an
 * entry without the key is found by audit_check. Plain blocking code for use inside a job.
 */
#ifndef STORE_AUDIT_H
#define STORE_AUDIT_H

#include "base/arena.h"
#include "base/crypto.h"

struct db;

/* action, name */
#define AUDIT_ACTIONS(X)                                                        \
    X(AUDIT_OPENED, "opened")     /* an interaction */                          \
    X(AUDIT_RESOLVED, "resolved") /* answered, cancelled or expired: see why */ \
    X(AUDIT_REFUSED, "refused")   /* an answer that was not taken: see why */   \
    X(AUDIT_STARTED, "started")   /* a call that needed an approval left */     \
    X(AUDIT_ENDED, "ended")       /* its end, as far as it is known */          \
    X(AUDIT_GRANTED, "granted")                                                 \
    X(AUDIT_REVOKED, "revoked")

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

/* Append to the thread's chain under the key (SECRET_AUDIT's subkey). */
enum err audit_add(struct db *db, const unsigned char key[static HASH_BYTES], int64_t thread,
                   const struct audit_entry *entry) MUST_USE;

/* Walk the chains of threads behind `after_thread`, at most `limit` entries of work; *ret_next is
 * the thread to go on after, 0 at the end. A broken chain is a fault (ERR_IO) that names thread and
 * entry. */
struct audit_tally {
    uint64_t threads, entries;
};
enum err audit_check(struct db *db, const unsigned char key[static HASH_BYTES],
                     int64_t after_thread, size_t limit, int64_t *ret_next,
                     struct audit_tally *tally, struct fault *reterr) MUST_USE;

#endif
