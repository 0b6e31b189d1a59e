/* SPDX-License-Identifier: Apache-2.0
 *
 * Deleted threads: marked in one commit, removed in pages. `owner=''` is the mark, and the unique
 * index of owner and thread_id is the list of those that have it: no user is called so.
 *
 * A table that refers to threads needs a row in `removals` if a thread may have many of its rows. What
 * has none goes with the row of the thread (ON DELETE CASCADE), in one statement.
 */
#include "store/table/doomed.h"

#include "base/limits.h"
#include "base/rows.h"
#include "store/db/sqlite.h"
#include "store/table/attachments.h"
#include "store/table/calls.h"
#include "store/table/storage.h"
#include "store/table/thread_row.h"

/* ---- the mark ---- */

/* What would still be found or worked on without the owner's name. All of it is bounded: a run has
 * STATE_IDS_MAX open interactions, a thread GRANTS_MAX grants that count. */
static struct stmt *at_once(struct db *db, size_t at)
{
    switch (at) {
    case 0:
        return db_prepare(db, "DELETE FROM interactions WHERE thread=?1 AND status=0");
    case 1:
        return db_prepare(db, "DELETE FROM runs INDEXED BY runs_open"
                              " WHERE status<4 AND status IN (0, 1, 2, 3) AND thread=?1");
    case 2:
        return db_prepare(db, "DELETE FROM grants WHERE thread=?1 AND thread IS NOT NULL");
    case 3:
        return db_prepare(db, "DELETE FROM attachment_uses WHERE thread=?1");
    case 4:
        return db_prepare(db, "UPDATE channel_peers SET thread=NULL"
                              " WHERE thread=?1 AND thread IS NOT NULL");
    case 5:
        return db_prepare(db, "UPDATE threads SET owner='', thread_id=CAST(id AS TEXT), title=''"
                              " WHERE id=?1");
    default:
        return NULL;
    }
}

enum err thread_doom(struct db *db, struct arena *arena, const struct thread *thread,
                     str **ret_spools, size_t *ret_count)
{
    enum err e = calls_spools(db, arena, thread->id, ret_spools, ret_count);
    if (!e) e = attachments_leave(db, arena, thread);
    if (!e) e = storage_forget_thread(db, thread->id);
    struct stmt *s;
    for (size_t i = 0; !e && (s = at_once(db, i)); i++) {
        stmt_bind_i64(s, 1, thread->id);
        e = stmt_run(s);
    }
    thread_cool(db, thread->id);
    return e || db_changes(db) ? e : ERR_NOT_FOUND;
}

/* ---- files ---- */

static enum err blobs_of(struct db *db, struct arena *arena, struct doomed *doomed)
{
    struct stmt *s =
        db_prepare(db, "SELECT n, bucket, path FROM blobs WHERE thread=?1 ORDER BY n LIMIT ?2");
    stmt_bind_i64(s, 1, doomed->thread);
    stmt_bind_i64(s, 2, DOOMED_FILES_MAX - (int64_t)doomed->count);
    while (stmt_step(s))
        *ROWS_ADD(arena, doomed->files, doomed->count) =
            (struct doomed_file){.blob = stmt_i64(s, 0),
                                 .bucket = arena_str(arena, stmt_str(s, 1)),
                                 .path = arena_str(arena, stmt_str(s, 2))};
    return stmt_end(s);
}

static enum err attachments_without_owner(struct db *db, struct arena *arena, size_t behind,
                                          struct doomed *doomed)
{
    struct stmt *s = db_prepare(db, "SELECT id, bucket, path FROM attachments WHERE owner=''"
                                    " ORDER BY thread_id, id LIMIT ?1 OFFSET ?2");
    stmt_bind_i64(s, 1, DOOMED_FILES_MAX);
    stmt_bind_i64(s, 2, (int64_t)behind);
    while (stmt_step(s))
        *ROWS_ADD(arena, doomed->files, doomed->count) =
            (struct doomed_file){.attachment = arena_str(arena, stmt_str(s, 0)),
                                 .bucket = arena_str(arena, stmt_str(s, 1)),
                                 .path = arena_str(arena, stmt_str(s, 2))};
    return stmt_end(s);
}

enum err doomed_next(struct db *db, struct arena *arena, const struct doomed_place *from,
                     struct doomed *ret_doomed)
{
    struct doomed doomed = {0};
    struct stmt *s = db_prepare(db, "SELECT id FROM threads WHERE owner=''"
                                    " AND thread_id>CAST(?1 AS TEXT) ORDER BY thread_id LIMIT 1");
    stmt_bind_i64(s, 1, from->thread);
    if (stmt_step(s)) doomed.thread = stmt_i64(s, 0);
    enum err e = stmt_end(s);
    if (!e) e = attachments_without_owner(db, arena, from->attachments, &doomed);
    if (!e && doomed.thread && doomed.count < DOOMED_FILES_MAX) e = blobs_of(db, arena, &doomed);
    if (!e) *ret_doomed = doomed;
    return e;
}

enum err doomed_files_gone(struct db *db, const struct doomed *doomed)
{
    enum err e = OK;
    for (size_t i = 0; !e && i < doomed->count; i++) {
        const struct doomed_file *file = &doomed->files[i];
        if (!file->gone) continue;
        if (!file->blob) {
            e = attachment_delete(db, file->attachment);
            continue;
        }
        struct stmt *s = db_prepare(db, "DELETE FROM blobs WHERE n=?1");
        stmt_bind_i64(s, 1, file->blob);
        e = stmt_run(s);
    }
    return e;
}

/* ---- rows ---- */

/* Each takes a few rows of thread ?1, found by an index. The calls of a run go before it. */
static struct stmt *removal(struct db *db, size_t at)
{
    switch (at) {
    case 0:
        return db_prepare(db, "DELETE FROM facts WHERE rowid IN"
                              " (SELECT rowid FROM facts WHERE thread=?1 LIMIT 32)");
    case 1:
        return db_prepare(db, "DELETE FROM events WHERE thread=?1 AND seq<=(SELECT max(seq) FROM"
                              " (SELECT seq FROM events WHERE thread=?1 ORDER BY seq LIMIT 32))");
    case 2:
        return db_prepare(db, "DELETE FROM messages WHERE thread=?1 AND seq<=(SELECT max(seq) FROM"
                              " (SELECT seq FROM messages WHERE thread=?1 ORDER BY seq LIMIT 32))");
    case 3:
        return db_prepare(db, "DELETE FROM interactions WHERE n IN"
                              " (SELECT n FROM interactions WHERE thread=?1 LIMIT 32)");
    case 4:
        return db_prepare(db, "DELETE FROM accepted WHERE thread=?1 AND run_id<=(SELECT max(run_id)"
                              " FROM (SELECT run_id FROM accepted WHERE thread=?1"
                              "  ORDER BY run_id LIMIT 32))");
    case 5:
        return db_prepare(db, "DELETE FROM idempotency WHERE (owner, key) IN (SELECT owner, key"
                              " FROM idempotency WHERE thread=?1 AND thread IS NOT NULL LIMIT 32)");
    case 6:
        return db_prepare(db, "DELETE FROM tool_calls WHERE id IN (SELECT id FROM tool_calls"
                              " WHERE run=(SELECT id FROM runs WHERE thread=?1"
                              "  ORDER BY run_id LIMIT 1) LIMIT 32)");
    case 7:
        return db_prepare(db, "DELETE FROM runs WHERE id=(SELECT id FROM runs WHERE thread=?1"
                              "  ORDER BY run_id LIMIT 1)");
    case 8:
        return db_prepare(db, "DELETE FROM threads WHERE id=?1");
    default:
        return NULL;
    }
}

/* The first that finds something. */
static enum err remove_some(struct db *db, int64_t thread, bool *ret_found)
{
    struct stmt *s;
    *ret_found = false;
    for (size_t i = 0; !*ret_found && (s = removal(db, i)); i++) {
        stmt_bind_i64(s, 1, thread);
        enum err e = stmt_run(s);
        if (e) return e;
        *ret_found = db_changes(db) > 0;
    }
    return OK;
}

/* A row may have megabytes, so the clock says when it is enough, and not a number of rows. */
enum err doomed_rows_remove(struct db *db, int64_t thread, const struct clock *clock, msec span)
{
    thread_cool(db, thread);
    msec until = clock_steady(clock) + span;
    bool found = true;
    enum err e = OK;
    while (!e && found) {
        e = remove_some(db, thread, &found);
        if (clock_steady(clock) >= until) break;
    }
    return e;
}
