/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `threads`: conversations found, added, renamed, deleted. Everything else of a thread
 * refers to its row and goes with it. One without an owner was deleted (store/table/doomed.h).
 */
#include "store/table/thread_row.h"

#include "store/db/sqlite.h"

void thread_read(struct stmt *s, struct arena *arena, struct thread *thread)
{
    *thread = (struct thread){
        .id = stmt_i64(s, 0),
        .owner = arena_str(arena, stmt_str(s, 1)),
        .thread_id = arena_str(arena, stmt_str(s, 2)),
        .title = arena_str(arena, stmt_str(s, 3)),
        .agent = arena_str(arena, stmt_str(s, 4)),
        .last_seq = stmt_i64(s, 5),
        .created = stmt_i64(s, 6),
        .updated = stmt_i64(s, 7),
        .bytes = (uint64_t)stmt_i64(s, 8),
    };
}

static enum err thread_one(struct stmt *s, struct arena *arena, struct thread *ret_thread)
{
    struct thread thread;
    bool found = stmt_step(s);
    if (found) thread_read(s, arena, &thread);
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    *ret_thread = thread;
    return OK;
}

enum err thread_find(struct db *db, struct arena *arena, str owner, str thread_id,
                     struct thread *ret_thread)
{
    struct stmt *s = db_prepare(db, "SELECT " THREAD_COLUMNS " FROM threads"
                                    " WHERE owner=?1 AND thread_id=?2");
    stmt_bind_str(s, 1, owner);
    stmt_bind_str(s, 2, thread_id);
    return thread_one(s, arena, ret_thread);
}

enum err thread_by_id(struct db *db, struct arena *arena, int64_t id, struct thread *ret_thread)
{
    struct stmt *s = db_prepare(db, "SELECT " THREAD_COLUMNS " FROM threads"
                                    " WHERE id=?1 AND owner<>''");
    stmt_bind_i64(s, 1, id);
    return thread_one(s, arena, ret_thread);
}

enum err thread_add(struct db *db, struct thread *thread)
{
    struct stmt *s =
        db_prepare(db, "INSERT INTO threads"
                       "(owner, thread_id, title, agent, last_seq, created, updated, bytes)"
                       " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0) RETURNING id");
    stmt_bind_str(s, 1, thread->owner);
    stmt_bind_str(s, 2, thread->thread_id);
    stmt_bind_str(s, 3, thread->title);
    stmt_bind_str(s, 4, thread->agent);
    stmt_bind_i64(s, 5, thread->last_seq);
    stmt_bind_i64(s, 6, thread->created);
    stmt_bind_i64(s, 7, thread->updated);
    int64_t id = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_run(s);
    if (!e) thread->id = id;
    return e;
}

enum err thread_rename(struct db *db, int64_t id, str title, msec now)
{
    struct stmt *s = db_prepare(db, "UPDATE threads SET title=?2, updated=?3 WHERE id=?1");
    stmt_bind_i64(s, 1, id);
    stmt_bind_str(s, 2, title);
    stmt_bind_i64(s, 3, now);
    enum err e = stmt_run(s);
    return e || db_changes(db) ? e : ERR_NOT_FOUND;
}

enum err thread_delete(struct db *db, int64_t id)
{
    struct stmt *s = db_prepare(db, "DELETE FROM threads WHERE id=?1");
    stmt_bind_i64(s, 1, id);
    enum err e = stmt_run(s);
    return e || db_changes(db) ? e : ERR_NOT_FOUND;
}
