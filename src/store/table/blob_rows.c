/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `blobs`: which objects of object storage a thread has, and what still waits to be put
 * there. What waits is found by an index of its own, so looking for it costs nothing while nothing
 * does.
 */
#include "store/table/blob_rows.h"

#include "base/rows.h"
#include "store/db/hot.h"
#include "store/db/sqlite.h"

enum err blob_row_add(struct db *db, const struct blob_row *row)
{
    struct stmt *s =
        db_prepare(db, "INSERT INTO blobs (thread, created, waiting, bucket, path, message_id,"
                       " spool, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
                       " ON CONFLICT (bucket, path) DO NOTHING");
    stmt_bind_i64(s, 1, row->thread);
    stmt_bind_i64(s, 2, row->created);
    stmt_bind_i64(s, 3, row->waiting);
    stmt_bind_str(s, 4, row->bucket);
    stmt_bind_str(s, 5, row->path);
    stmt_bind_str(s, 6, row->message_id);
    stmt_bind_str(s, 7, row->waiting ? row->spool : STR_EMPTY);
    stmt_bind_str(s, 8, row->waiting ? row->bytes : STR_EMPTY);
    return stmt_run(s);
}

enum err blob_rows_waiting(struct db *db, struct arena *arena, int64_t after, size_t limit,
                           struct blob_rows *ret_rows)
{
    struct blob_rows list = {0};
    struct stmt *s = db_prepare(db, "SELECT n, thread, created, bucket, path, message_id, spool,"
                                    " bytes FROM blobs INDEXED BY blobs_waiting"
                                    " WHERE waiting=1 AND n>?1 AND EXISTS (SELECT 1 FROM threads"
                                    "  WHERE threads.id=blobs.thread AND owner<>'')"
                                    " ORDER BY n LIMIT ?2");
    stmt_bind_i64(s, 1, after);
    stmt_bind_i64(s, 2, (int64_t)limit);
    while (stmt_step(s)) {
        struct blob_row *row = ROWS_ADD(arena, list.rows, list.count);
        *row = (struct blob_row){.n = stmt_i64(s, 0),
                                 .thread = stmt_i64(s, 1),
                                 .created = stmt_i64(s, 2),
                                 .waiting = true,
                                 .bucket = arena_str(arena, stmt_str(s, 3)),
                                 .path = arena_str(arena, stmt_str(s, 4)),
                                 .message_id = arena_str(arena, stmt_str(s, 5)),
                                 .spool = arena_str(arena, stmt_str(s, 6)),
                                 .bytes = arena_str(arena, stmt_str(s, 7))};
    }
    enum err e = stmt_end(s);
    if (!e) *ret_rows = list;
    return e;
}

enum err blob_rows_waiting_count(struct db *db, int64_t *ret_count)
{
    struct stmt *s =
        db_prepare(db, "SELECT count(*) FROM blobs INDEXED BY blobs_waiting WHERE waiting=1");
    int64_t count = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_end(s);
    if (!e) *ret_count = count;
    return e;
}

/* The mark is the last member of the metadata, whose bytes are ours. The call's row forgets its file
 * along with it: nothing reads it from there any more. */
static enum err clear_mark(struct db *db, int64_t thread, str message_id)
{
    struct stmt *s =
        db_prepare(db, "UPDATE messages SET metadata=substr(metadata, 1, length(metadata)-"
                       " length(',\"storage_missing\":true}')) || '}'"
                       " WHERE thread=?1 AND id=?2 AND metadata LIKE '%,\"storage_missing\":true}'"
                       "  AND NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.thread=?1"
                       "   AND blobs.message_id=?2 AND blobs.waiting=1)");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_str(s, 2, message_id);
    enum err e = stmt_run(s);
    if (e || !db_changes(db)) return e;
    hot_drop(db, HOT_MESSAGES, thread);
    s = db_prepare(db, "UPDATE tool_calls SET spool='', result='' WHERE thread=?1 AND result_id=?2"
                       " AND result_id<>'' RETURNING run");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_str(s, 2, message_id);
    while (stmt_step(s)) hot_drop(db, HOT_CALLS, stmt_i64(s, 0));
    return stmt_end(s);
}

enum err blob_row_stored(struct db *db, int64_t n)
{
    struct arena arena;
    arena_init(&arena);
    struct stmt *s = db_prepare(db, "UPDATE blobs SET waiting=0, spool='', bytes='' WHERE n=?1"
                                    " RETURNING thread, message_id");
    stmt_bind_i64(s, 1, n);
    int64_t thread = 0;
    str message_id = STR_EMPTY;
    if (stmt_step(s)) {
        thread = stmt_i64(s, 0);
        message_id = arena_str(&arena, stmt_str(s, 1));
    }
    enum err e = stmt_run(s);
    if (!e && thread) e = clear_mark(db, thread, message_id);
    arena_done(&arena);
    return e;
}

enum err blob_needed(struct db *db, str bucket, str path, bool *ret_needed)
{
    struct stmt *s =
        db_prepare(db, "SELECT EXISTS (SELECT 1 FROM blobs WHERE bucket=?1 AND path=?2)"
                       " OR EXISTS (SELECT 1 FROM attachments WHERE bucket=?1"
                       "  AND path=?2)");
    stmt_bind_str(s, 1, bucket);
    stmt_bind_str(s, 2, path);
    bool needed = stmt_step(s) && stmt_i64(s, 0);
    enum err e = stmt_end(s);
    if (!e) *ret_needed = needed;
    return e;
}
