/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `storage`, and threads.bytes (NULL: not known yet): how much each user has stored.
 *
 * The row without an owner is the count's own: all threads up to that number are counted, and it is
 * there exactly while somebody counts. A commit adds what it brings only for threads up to it: the
 * others are counted whole when their turn comes. So nothing is counted twice, whatever happens
 * between two steps.
 */
#include "store/table/storage.h"

#include "base/limits.h"
#include "store/db/hot.h"
#include "store/db/sqlite.h"

static enum err add(struct db *db, str owner, int64_t bytes)
{
    struct stmt *s = db_prepare(db, "INSERT INTO storage AS old (owner, bytes) VALUES (?1, ?2)"
                                    " ON CONFLICT (owner) DO UPDATE SET bytes=old.bytes+?2");
    stmt_bind_str(s, 1, owner);
    stmt_bind_i64(s, 2, bytes);
    return stmt_run(s);
}

enum err storage_add(struct db *db, str owner, int64_t bytes)
{
    if (!db_counting(db) || !bytes || !owner.len) return OK;
    return add(db, owner, bytes);
}

static enum err counted_to(struct db *db, int64_t *ret_thread, bool *ret_begun)
{
    struct stmt *s = db_prepare(db, "SELECT bytes FROM storage WHERE owner=''");
    bool begun = stmt_step(s);
    int64_t thread = begun ? stmt_i64(s, 0) : 0;
    enum err e = stmt_end(s);
    if (e) return e;
    *ret_thread = thread;
    *ret_begun = begun;
    return OK;
}

enum err storage_add_thread(struct db *db, str owner, int64_t thread, int64_t bytes)
{
    bool begun;
    int64_t upto;
    if (!db_counting(db) || !bytes || !owner.len) return OK;
    enum err e = counted_to(db, &upto, &begun);
    return e || thread > upto ? e : add(db, owner, bytes);
}

enum err storage_forget_thread(struct db *db, int64_t thread)
{
    if (!db_counting(db)) return OK;
    struct stmt *s = db_prepare(
        db, "UPDATE storage SET bytes=bytes-(SELECT coalesce(bytes, 0) FROM threads WHERE id=?1)"
            " WHERE owner=(SELECT owner FROM threads WHERE id=?1) AND owner<>''"
            "  AND ?1<=(SELECT bytes FROM storage AS upto WHERE upto.owner='')");
    stmt_bind_i64(s, 1, thread);
    return stmt_run(s);
}

/* ---- counting ---- */

/* What is no thread's: in one statement each, for these are few beside messages. */
static enum err count_rest(struct db *db)
{
    return db_script(db, "INSERT INTO storage (owner, bytes) VALUES ('', 0);"
                         "INSERT INTO storage (owner, bytes) SELECT owner, sum(bytes) FROM ("
                         " SELECT owner, bytes FROM attachments WHERE owner<>''"
                         " UNION ALL SELECT owner, length(CAST(body AS BLOB)) FROM idempotency)"
                         " GROUP BY owner;");
}

enum err storage_count_start(struct db *db, bool on)
{
    bool begun;
    int64_t upto;
    db_count(db, on);
    enum err e = counted_to(db, &upto, &begun);
    if (e || begun == on) return e;
    return on ? count_rest(db) : db_script(db, "DELETE FROM storage;");
}

/* Facts and messages of a thread that was there before there were numbers. */
static enum err thread_bytes(struct db *db, int64_t thread)
{
    struct stmt *s = db_prepare(
        db, "UPDATE threads SET bytes="
            " (SELECT coalesce(sum(length(data)), 0) FROM events WHERE thread=?1)"
            " +(SELECT coalesce(sum(length(bytes)), 0) FROM facts WHERE thread=?1)"
            " +(SELECT coalesce(sum(length(plain)+length(content)+length(ui)), 0) FROM messages"
            "  WHERE thread=?1)"
            " WHERE id=?1 AND bytes IS NULL");
    stmt_bind_i64(s, 1, thread);
    hot_drop(db, HOT_THREAD, thread);
    return stmt_run(s);
}

enum err storage_count_step(struct db *db, bool *ret_more)
{
    bool begun;
    int64_t upto, last = 0, ids[STORAGE_COUNT_PAGE];
    size_t count = 0, unknown = 0;
    *ret_more = false;
    enum err e = counted_to(db, &upto, &begun);
    if (e || !begun) return e;
    struct stmt *s =
        db_prepare(db, "SELECT id, bytes FROM threads WHERE id>?1 ORDER BY id LIMIT ?2");
    stmt_bind_i64(s, 1, upto);
    stmt_bind_i64(s, 2, STORAGE_COUNT_PAGE);
    /* One thread without a number may be long: it ends the page. */
    while (!unknown && stmt_step(s)) {
        last = stmt_i64(s, 0);
        if (stmt_is_null(s, 1)) ids[unknown++] = last;
        count++;
    }
    e = stmt_end(s);
    for (size_t i = 0; !e && i < unknown; i++) e = thread_bytes(db, ids[i]);
    if (e) return e;
    *ret_more = count > 0;
    s = db_prepare(db, "INSERT INTO storage AS old (owner, bytes) SELECT owner, sum(bytes)"
                       " FROM threads WHERE id>?1 AND id<=?2 AND owner<>'' GROUP BY owner"
                       " ON CONFLICT (owner) DO UPDATE SET bytes=old.bytes+excluded.bytes");
    stmt_bind_i64(s, 1, upto);
    stmt_bind_i64(s, 2, last);
    if (count) e = stmt_run(s);
    if (e) return e;
    /* At the end all that come are counted from their first fact on. */
    s = db_prepare(db, "UPDATE storage SET bytes=?1 WHERE owner=''");
    stmt_bind_i64(s, 1, count ? last : INT64_MAX);
    return upto == INT64_MAX ? stmt_end(s) : stmt_run(s);
}

/* ---- asking ---- */

enum err storage_check(struct db *db, str owner, uint64_t more, uint64_t allowed,
                       uint64_t *ret_used)
{
    if (!allowed) return OK;
    struct stmt *s = db_prepare(db, "SELECT bytes FROM storage WHERE owner=?1");
    stmt_bind_str(s, 1, owner);
    int64_t bytes = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_end(s);
    if (e) return e;
    *ret_used = bytes > 0 ? (uint64_t)bytes : 0;
    return *ret_used >= allowed || more > allowed - *ret_used ? ERR_QUOTA : OK;
}
