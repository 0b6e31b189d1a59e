/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `threads`: conversations found, added, renamed, deleted. Everything else of a thread
 * refers to its row and goes with it. One without an owner was deleted (store/table/doomed.h).
 */
#include "store/table/thread_row.h"

#include "store/db/hot.h"
#include "store/db/sqlite.h"
#include "store/table/storage.h"

#define COLUMN(name) COLUMN_OF(struct thread, name),
static const struct column columns[] = {
    COLUMN(id) COLUMN(owner) COLUMN(thread_id) COLUMN(title) COLUMN(agent) COLUMN(last_seq)
        COLUMN(newest_run) COLUMN(created) COLUMN(updated) COLUMN(bytes) COLUMN(uncounted)};
#undef COLUMN
static const struct hot_shape shape = HOT_SHAPE(struct thread, columns);

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
        .newest_run = stmt_i64(s, 9),
        .uncounted = stmt_i64(s, 10) != 0,
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
    enum err e = thread_one(s, arena, ret_thread);
    if (!e) hot_put(db, HOT_THREAD, ret_thread->id, &shape, ret_thread, 1);
    return e;
}

static enum err read_one(struct db *db, struct arena *arena, int64_t id, struct hot_rows *ret_rows)
{
    struct stmt *s = db_prepare(db, "SELECT " THREAD_COLUMNS " FROM threads"
                                    " WHERE id=?1 AND owner<>''");
    stmt_bind_i64(s, 1, id);
    struct thread *thread = ARENA_NEW(arena, struct thread);
    enum err e = thread_one(s, arena, thread);
    if (!e) *ret_rows = (struct hot_rows){.rows = thread, .count = 1};
    return e;
}

enum err thread_by_id(struct db *db, struct arena *arena, int64_t id, struct thread *ret_thread)
{
    struct hot_rows rows;
    enum err e = hot_rows(db, HOT_THREAD, id, &shape, arena, read_one, &rows);
    if (!e) *ret_thread = *(struct thread *)rows.rows;
    return e;
}

/* Of a new one everything is known: it has nothing. */
static void keep_new(struct db *db, const struct thread *thread)
{
    static const enum hot_kind none[] = {HOT_CURRENT, HOT_QUEUED, HOT_OPEN, HOT_MESSAGES};
    hot_put(db, HOT_THREAD, thread->id, &shape, thread, 1);
    for (size_t i = 0; i < COUNT(none); i++) hot_put(db, none[i], thread->id, &shape, NULL, 0);
}

enum err thread_add(struct db *db, struct thread *thread)
{
    struct stmt *s =
        db_prepare(db, "INSERT INTO threads"
                       "(owner, thread_id, title, agent, last_seq, created, updated, bytes)"
                       " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)");
    stmt_bind_str(s, 1, thread->owner);
    stmt_bind_str(s, 2, thread->thread_id);
    stmt_bind_str(s, 3, thread->title);
    stmt_bind_str(s, 4, thread->agent);
    stmt_bind_i64(s, 5, thread->last_seq);
    stmt_bind_i64(s, 6, thread->created);
    stmt_bind_i64(s, 7, thread->updated);
    enum err e = stmt_run(s);
    if (e) return e;
    thread->id = db_last_id(db);
    struct thread row = *thread;
    row.bytes = 0;
    row.newest_run = 0;
    row.uncounted = false;
    keep_new(db, &row);
    return OK;
}

enum err thread_number(struct db *db, int64_t id, size_t facts, size_t bytes, msec now, int64_t run,
                       int64_t *ret_last)
{
    AUTO(arena_done) struct arena arena;
    struct thread thread;
    arena_init(&arena);
    enum err e = thread_by_id(db, &arena, id, &thread);
    if (e) return e;
    thread.last_seq += (int64_t)facts;
    thread.updated = now;
    if (!thread.uncounted) thread.bytes += bytes;
    if (run) thread.newest_run = run;
    struct stmt *s =
        db_prepare(db, "UPDATE threads SET last_seq=?2, updated=?3, bytes=bytes+?4, newest_run=?5"
                       " WHERE id=?1 AND owner<>''");
    stmt_bind_i64(s, 1, id);
    stmt_bind_i64(s, 2, thread.last_seq);
    stmt_bind_i64(s, 3, now);
    stmt_bind_i64(s, 4, (int64_t)bytes);
    stmt_bind_i64(s, 5, thread.newest_run);
    e = stmt_run(s);
    if (e) return e;
    if (!db_changes(db)) return ERR_NOT_FOUND;
    hot_put(db, HOT_THREAD, id, &shape, &thread, 1);
    *ret_last = thread.last_seq;
    return db_counting(db) ? storage_add_thread(db, thread.owner, id, (int64_t)bytes) : OK;
}

void thread_cool(struct db *db, int64_t id)
{
    static const enum hot_kind kinds[] = {HOT_THREAD, HOT_CURRENT, HOT_QUEUED,
                                          HOT_OPEN,   HOT_GRANTS,  HOT_MESSAGES};
    run_cool(db, id);
    for (size_t i = 0; i < COUNT(kinds); i++) hot_drop(db, kinds[i], id);
}

enum err thread_rename(struct db *db, int64_t id, str title, msec now)
{
    struct stmt *s = db_prepare(db, "UPDATE threads SET title=?2, updated=?3 WHERE id=?1");
    stmt_bind_i64(s, 1, id);
    stmt_bind_str(s, 2, title);
    stmt_bind_i64(s, 3, now);
    enum err e = stmt_run(s);
    hot_drop(db, HOT_THREAD, id);
    return e || db_changes(db) ? e : ERR_NOT_FOUND;
}

enum err thread_delete(struct db *db, int64_t id)
{
    struct stmt *s = db_prepare(db, "DELETE FROM threads WHERE id=?1");
    stmt_bind_i64(s, 1, id);
    enum err e = stmt_run(s);
    thread_cool(db, id);
    return e || db_changes(db) ? e : ERR_NOT_FOUND;
}
