/* SPDX-License-Identifier: Apache-2.0
 *
 * Browser sessions. The cookie holds a random token, the database its SHA-256. A session has the
 * user and roles it was opened with and ends by itself at `expires`, by logout, or with its key.
 *
 * Plain blocking code for use inside a job.
 */
#ifndef STORE_TABLE_SESSIONS_H
#define STORE_TABLE_SESSIONS_H

#include "base/arena.h"
#include "base/crypto.h"

struct db;

struct session {
    unsigned char hash[HASH_BYTES]; /* of the token */
    str key_id;                     /* empty: not opened with a key */
    str user;
    unsigned roles;
    msec created;
    msec expires;
};

/* ERR_BUSY if the hash is taken, ERR_INVALID_FIELD for a bad user. */
enum err sessions_add(struct db *db, const struct session *session) MUST_USE;

/* Of one key no more than SESSIONS_KEY_MAX stay: the oldest go, some at a time. */
enum { SESSIONS_TRIM_MAX = 8 };
enum err sessions_trim(struct db *db, str key_id,
                       unsigned char ret_hashes[static SESSIONS_TRIM_MAX][HASH_BYTES],
                       size_t *ret_count) MUST_USE;

/* ERR_NOT_FOUND if there is none, or it has ended or expired. The arena holds the texts. */
enum err sessions_find(struct db *db, const unsigned char hash[static HASH_BYTES], msec now,
                       struct arena *arena, struct session *ret_session) MUST_USE;

/* Ending what has ended, or is not there, is fine. */
enum err sessions_end(struct db *db, const unsigned char hash[static HASH_BYTES], msec now)
    MUST_USE;
enum err sessions_end_by_key(struct db *db, str key_id, msec now) MUST_USE;

/* Remove up to SESSIONS_EXPIRE_MAX rows that expired before `now`; how many were removed. */
enum err sessions_expire(struct db *db, msec now, int64_t *ret_count) MUST_USE;

#endif
