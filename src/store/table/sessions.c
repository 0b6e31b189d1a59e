/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `sessions`: browser sessions. An ended session keeps its row until it would have
 * expired.
 */
#include "store/table/sessions.h"

#include <string.h>

#include "base/limits.h"
#include "store/db/sqlite.h"
#include "store/table/keys.h"

static str hash_str(const unsigned char *hash)
{
    return (str){(const char *)hash, HASH_BYTES};
}

enum err sessions_add(struct db *db, const struct session *session)
{
    if (!user_valid(session->user)) return ERR_INVALID_FIELD;
    struct stmt *s = db_prepare(db, "INSERT INTO sessions"
                                    " (hash, key_id, user, roles, created, expires)"
                                    " VALUES (?1, nullif(?2, ''), ?3, ?4, ?5, ?6)");
    stmt_bind_blob(s, 1, hash_str(session->hash));
    stmt_bind_str(s, 2, session->key_id);
    stmt_bind_str(s, 3, session->user);
    stmt_bind_i64(s, 4, session->roles);
    stmt_bind_i64(s, 5, session->created);
    stmt_bind_i64(s, 6, session->expires);
    return stmt_run(s);
}

/* Rows of those that ended go too: a person who signs in and out all day leaves SESSIONS_KEY_MAX. */
enum err sessions_trim(struct db *db, str key_id,
                       unsigned char ret_hashes[static SESSIONS_TRIM_MAX][HASH_BYTES],
                       size_t *ret_count)
{
    struct stmt *s =
        db_prepare(db, "DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions"
                       " INDEXED BY sessions_by_age WHERE key_id=?1 ORDER BY created DESC"
                       " LIMIT ?2 OFFSET ?3) RETURNING hash");
    size_t count = 0;
    stmt_bind_str(s, 1, key_id);
    stmt_bind_i64(s, 2, SESSIONS_TRIM_MAX);
    stmt_bind_i64(s, 3, SESSIONS_KEY_MAX);
    while (stmt_step(s)) {
        str hash = stmt_str(s, 0);
        if (hash.len == HASH_BYTES && count < SESSIONS_TRIM_MAX)
            memcpy(ret_hashes[count++], hash.p, HASH_BYTES);
    }
    enum err e = stmt_end(s);
    if (!e) *ret_count = count;
    return e;
}

enum err sessions_find(struct db *db, const unsigned char hash[static HASH_BYTES], msec now,
                       struct arena *arena, struct session *ret_session)
{
    struct stmt *s = db_prepare(db, "SELECT key_id, user, roles, created, expires FROM sessions"
                                    " WHERE hash=?1 AND ended IS NULL AND expires>?2");
    stmt_bind_blob(s, 1, hash_str(hash));
    stmt_bind_i64(s, 2, now);
    struct session found = {0};
    bool row = stmt_step(s);
    if (row) {
        memcpy(found.hash, hash, HASH_BYTES);
        found.key_id = arena_str(arena, stmt_str(s, 0));
        found.user = arena_str(arena, stmt_str(s, 1));
        found.roles = (unsigned)stmt_i64(s, 2);
        found.created = stmt_i64(s, 3);
        found.expires = stmt_i64(s, 4);
    }
    enum err e = stmt_end(s);
    if (e) return e;
    if (!row) return ERR_NOT_FOUND;
    *ret_session = found;
    return OK;
}

enum err sessions_end(struct db *db, const unsigned char hash[static HASH_BYTES], msec now)
{
    struct stmt *s = db_prepare(db, "UPDATE sessions SET ended=?2 WHERE hash=?1 AND ended IS NULL");
    stmt_bind_blob(s, 1, hash_str(hash));
    stmt_bind_i64(s, 2, now);
    return stmt_run(s);
}

enum err sessions_end_by_key(struct db *db, str key_id, msec now)
{
    struct stmt *s =
        db_prepare(db, "UPDATE sessions SET ended=?2 WHERE key_id=?1 AND ended IS NULL");
    stmt_bind_str(s, 1, key_id);
    stmt_bind_i64(s, 2, now);
    return stmt_run(s);
}

enum err sessions_expire(struct db *db, msec now, int64_t *ret_count)
{
    struct stmt *s = db_prepare(db, "DELETE FROM sessions WHERE hash IN"
                                    " (SELECT hash FROM sessions WHERE expires<=?1 LIMIT ?2)");
    stmt_bind_i64(s, 1, now);
    stmt_bind_i64(s, 2, SESSIONS_EXPIRE_MAX);
    enum err e = stmt_run(s);
    if (!e) *ret_count = db_changes(db);
    return e;
}
