/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `idempotency`: what a request with an Idempotency-Key was answered, so that its
 * repetition gets the same answer. A key belongs to its user.
 */
#include <string.h>

#include "base/limits.h"
#include "store/conversation.h"
#include "store/sqlite.h"

enum err idempotency_find(struct db *db, struct arena *arena, str owner, str key,
                          struct remembered *ret_remembered)
{
    struct stmt *s = db_prepare(db, "SELECT hash, status, body, thread FROM idempotency"
                                    " WHERE owner=?1 AND key=?2");
    stmt_bind_str(s, 1, owner);
    stmt_bind_str(s, 2, key);
    struct remembered remembered = {0};
    bool found = stmt_step(s);
    if (found) {
        str hash = stmt_str(s, 0);
        if (hash.len == HASH_BYTES) memcpy(remembered.hash, hash.p, HASH_BYTES);
        remembered.status = (int)stmt_i64(s, 1);
        remembered.body = arena_str(arena, stmt_str(s, 2));
        remembered.thread = stmt_i64(s, 3);
    }
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    *ret_remembered = remembered;
    return OK;
}

enum err idempotency_add(struct db *db, str owner, str key, const struct remembered *remembered,
                         msec now)
{
    struct stmt *s = db_prepare(db, "INSERT INTO idempotency"
                                    " (owner, key, thread, hash, status, created, body)"
                                    " VALUES (?1, ?2, nullif(?3, 0), ?4, ?5, ?6, ?7)");
    stmt_bind_str(s, 1, owner);
    stmt_bind_str(s, 2, key);
    stmt_bind_i64(s, 3, remembered->thread);
    stmt_bind_blob(s, 4, (str){(const char *)remembered->hash, HASH_BYTES});
    stmt_bind_i64(s, 5, remembered->status);
    stmt_bind_i64(s, 6, now);
    stmt_bind_str(s, 7, remembered->body);
    return stmt_run(s);
}

enum err idempotency_expire(struct db *db, msec before, int64_t *ret_count)
{
    struct stmt *s = db_prepare(
        db, "DELETE FROM idempotency WHERE (owner, key) IN ("
            " SELECT owner, key FROM idempotency AS old WHERE created<?1 AND NOT EXISTS ("
            "  SELECT 1 FROM runs INDEXED BY runs_open"
            "  WHERE runs.status<4 AND runs.status IN (0, 1, 2, 3) AND runs.thread=old.thread)"
            " LIMIT ?2)");
    stmt_bind_i64(s, 1, before);
    stmt_bind_i64(s, 2, IDEMPOTENCY_EXPIRE_MAX);
    enum err e = stmt_run(s);
    if (!e) *ret_count = db_changes(db);
    return e;
}
