/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `idempotency`: what a request with an Idempotency-Key was answered, so that its
 * repetition gets the same answer. A key belongs to its user.
 */
#include <string.h>

#include "base/limits.h"
#include "store/db/sqlite.h"
#include "store/table/conversation.h"
#include "store/table/storage.h"

/* The row is of a thread that was deleted, and counts as gone. */
#define DELETED(table) \
    "coalesce((SELECT threads.owner='' FROM threads WHERE threads.id=" table ".thread), 0)"

/* A run of its thread is open. */
#define OPEN(table)                                   \
    "EXISTS (SELECT 1 FROM runs INDEXED BY runs_open" \
    " WHERE runs.status<4 AND runs.status IN (0, 1, 2, 3) AND runs.thread=" table ".thread)"

enum err idempotency_find(struct db *db, struct arena *arena, str owner, str key,
                          struct remembered *ret_remembered)
{
    struct stmt *s =
        db_prepare(db,
                   "SELECT hash, status,"
                   "  coalesce((SELECT body FROM answers WHERE answers.id=answer), body), thread"
                   " FROM idempotency WHERE owner=?1 AND key=?2 AND NOT " DELETED("idempotency"));
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

/* A long answer is the same for many requests: an interaction with all of its arguments, for each that
 * came too late. Its row is found by its hash. */
static enum err answer_keep(struct db *db, str body, int64_t *ret_answer)
{
    unsigned char hash[HASH_BYTES];
    crypto_sha256(body, hash);
    struct stmt *s = db_prepare(db, "INSERT INTO answers (hash, body) VALUES (?1, ?2)"
                                    " ON CONFLICT (hash) DO UPDATE SET hash=excluded.hash"
                                    " RETURNING id");
    stmt_bind_blob(s, 1, (str){(const char *)hash, sizeof hash});
    stmt_bind_str(s, 2, body);
    int64_t id = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_run(s);
    if (!e) *ret_answer = id;
    return e;
}

static enum err answers_drop(struct db *db)
{
    return stmt_run(db_prepare(db, "DELETE FROM answers WHERE NOT EXISTS (SELECT 1 FROM idempotency"
                                   " INDEXED BY idempotency_by_answer WHERE answer IS NOT NULL"
                                   "  AND answer=answers.id)"));
}

enum err idempotency_add(struct db *db, str owner, str key, const struct remembered *remembered,
                         msec now)
{
    int64_t answer = 0;
    bool inside = remembered->body.len <= IDEMPOTENCY_INLINE_BYTES_MAX;
    enum err e = inside ? OK : answer_keep(db, remembered->body, &answer);
    if (e) return e;
    str body = inside ? remembered->body : STR_EMPTY;
    struct stmt *s = db_prepare(
        db, "INSERT INTO idempotency AS old"
            " (owner, key, thread, hash, status, created, body, answer)"
            " VALUES (?1, ?2, nullif(?3, 0), ?4, ?5, ?6, ?7, nullif(?8, 0))"
            " ON CONFLICT (owner, key) DO UPDATE SET thread=excluded.thread, hash=excluded.hash,"
            "  status=excluded.status, created=excluded.created, body=excluded.body,"
            "  answer=excluded.answer"
            " WHERE " DELETED("old"));
    stmt_bind_str(s, 1, owner);
    stmt_bind_str(s, 2, key);
    stmt_bind_i64(s, 3, remembered->thread);
    stmt_bind_blob(s, 4, (str){(const char *)remembered->hash, HASH_BYTES});
    stmt_bind_i64(s, 5, remembered->status);
    stmt_bind_i64(s, 6, now);
    stmt_bind_str(s, 7, body);
    stmt_bind_i64(s, 8, answer);
    e = stmt_run(s);
    if (!e && !db_changes(db)) e = ERR_BUSY;
    return e ? e : storage_add(db, owner, (int64_t)body.len);
}

/* Those of users who are counted give back what they had. */
static enum err uncount(struct db *db, msec before)
{
    if (!db_counting(db)) return OK;
    struct stmt *s =
        db_prepare(db,
                   "INSERT INTO storage AS old (owner, bytes) SELECT owner, -sum(length(CAST(body "
                   "AS BLOB))) FROM"
                   " (SELECT owner, body FROM idempotency AS gone WHERE created<?1 AND NOT " OPEN(
                       "gone") "  LIMIT ?2) WHERE true GROUP BY owner"
                               " ON CONFLICT (owner) DO UPDATE SET bytes=old.bytes+excluded.bytes");
    stmt_bind_i64(s, 1, before);
    stmt_bind_i64(s, 2, IDEMPOTENCY_EXPIRE_MAX);
    return stmt_run(s);
}

enum err idempotency_expire(struct db *db, msec before, int64_t *ret_count)
{
    enum err e = uncount(db, before);
    if (e) return e;
    struct stmt *s =
        db_prepare(db, "DELETE FROM idempotency WHERE (owner, key) IN ("
                       " SELECT owner, key FROM idempotency AS gone WHERE created<?1 AND NOT " OPEN(
                           "gone") " LIMIT ?2)");
    stmt_bind_i64(s, 1, before);
    stmt_bind_i64(s, 2, IDEMPOTENCY_EXPIRE_MAX);
    e = stmt_run(s);
    if (e) return e;
    *ret_count = db_changes(db);
    return answers_drop(db);
}
