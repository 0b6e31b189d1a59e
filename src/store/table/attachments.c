/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `attachments`: files that people sent, a row each. A row names the owner's thread by
 * its id on the wire, because a file may be sent before the first message. Which other threads have
 * it stands in `attachment_uses`. One that no thread has when it has grown old was never used. One
 * that had only a thread that was deleted has no owner, and waits for the removal of its object
 * (store/table/doomed.h).
 */
#include "store/table/attachments.h"

#include <string.h>

#include "base/limits.h"
#include "base/rows.h"
#include "store/db/columns.h"
#include "store/db/sqlite.h"
#include "store/table/conversation.h"
#include "store/table/storage.h"

#define COLUMNS(X) \
    X(owner)       \
    X(thread_id)   \
    X(created)     \
    X(bytes)       \
    X(width)       \
    X(height)      \
    X(mime)        \
    X(filename)    \
    X(sha256)      \
    X(bucket)      \
    X(path)

#define COLUMN(name) COLUMN_OF(struct attachment, name),
static const struct column columns[] = {COLUMN(id) COLUMNS(COLUMN)};
#undef COLUMN

#define SELECT "SELECT id" COLUMNS(COLUMN_NAME) " FROM attachments"

enum err attachment_add(struct db *db, const struct attachment *attachment)
{
    struct stmt *s = db_prepare(db, "INSERT INTO attachments (id" COLUMNS(
                                        COLUMN_NAME) ") VALUES (?" COLUMNS(COLUMN_MARK) ")");
    columns_bind(s, 1, columns, COUNT(columns), attachment);
    enum err e = stmt_run(s);
    return e ? e : storage_add(db, attachment->owner, (int64_t)attachment->bytes);
}

enum err attachment_find(struct db *db, struct arena *arena, str id,
                         struct attachment *ret_attachment)
{
    struct stmt *s = db_prepare(db, SELECT " WHERE id=?1 AND owner<>''");
    stmt_bind_str(s, 1, id);
    struct attachment row;
    bool found = stmt_step(s);
    if (found) columns_read(s, 0, columns, COUNT(columns), arena, &row);
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    *ret_attachment = row;
    return OK;
}

static enum err read_list(struct stmt *s, struct arena *arena, struct attachment_list *ret_list)
{
    struct attachment_list list = {0};
    while (stmt_step(s)) {
        struct attachment *row = ROWS_ADD(arena, list.rows, list.count);
        columns_read(s, 0, columns, COUNT(columns), arena, row);
    }
    enum err e = stmt_end(s);
    if (!e) *ret_list = list;
    return e;
}

/* Its own thread needs no row. */
enum err attachment_use(struct db *db, const struct attachment *attachment,
                        const struct thread *thread)
{
    if (str_eq(attachment->thread_id, thread->thread_id)) return OK;
    struct stmt *s = db_prepare(db, "INSERT INTO attachment_uses (id, thread) VALUES (?1, ?2)"
                                    " ON CONFLICT DO NOTHING");
    stmt_bind_str(s, 1, attachment->id);
    stmt_bind_i64(s, 2, thread->id);
    return stmt_run(s);
}

/* The name of a thread that has it beside `thread`: its own one, or one that uses it. Empty: none. */
static enum err find_heir(struct db *db, struct arena *arena, const struct attachment *attachment,
                          const struct thread *thread, str *ret_thread_id)
{
    struct stmt *s =
        db_prepare(db,
                   "SELECT thread_id FROM threads WHERE id<>?1 AND"
                   " ((owner=?2 AND thread_id=?3)"
                   "  OR id IN (SELECT thread FROM attachment_uses WHERE attachment_uses.id=?4))"
                   " ORDER BY thread_id<>?3 LIMIT 1");
    stmt_bind_i64(s, 1, thread->id);
    stmt_bind_str(s, 2, attachment->owner);
    stmt_bind_str(s, 3, attachment->thread_id);
    stmt_bind_str(s, 4, attachment->id);
    str heir = stmt_step(s) ? arena_str(arena, stmt_str(s, 0)) : STR_EMPTY;
    enum err e = stmt_end(s);
    if (!e) *ret_thread_id = heir;
    return e;
}

static enum err hand_over(struct db *db, str id, str thread_id)
{
    struct stmt *s = db_prepare(db, "UPDATE attachments SET thread_id=?2 WHERE id=?1");
    stmt_bind_str(s, 1, id);
    stmt_bind_str(s, 2, thread_id);
    return stmt_run(s);
}

/* The row stays until its object is gone. */
static enum err give_up(struct db *db, const struct attachment *attachment)
{
    struct stmt *s = db_prepare(db, "UPDATE attachments SET owner='' WHERE id=?1");
    stmt_bind_str(s, 1, attachment->id);
    enum err e = stmt_run(s);
    return e ? e : storage_add(db, attachment->owner, -(int64_t)attachment->bytes);
}

enum err attachments_leave(struct db *db, struct arena *arena, const struct thread *thread)
{
    struct attachment_list had = {0};
    struct stmt *s = db_prepare(db, SELECT " WHERE (owner=?1 AND thread_id=?2) OR id IN"
                                           " (SELECT attachment_uses.id FROM attachment_uses"
                                           "  WHERE thread=?3) ORDER BY created, id");
    stmt_bind_str(s, 1, thread->owner);
    stmt_bind_str(s, 2, thread->thread_id);
    stmt_bind_i64(s, 3, thread->id);
    enum err e = read_list(s, arena, &had);
    for (size_t i = 0; !e && i < had.count; i++) {
        str heir = STR_EMPTY;
        e = find_heir(db, arena, &had.rows[i], thread, &heir);
        if (!e) e = heir.len ? hand_over(db, had.rows[i].id, heir) : give_up(db, &had.rows[i]);
    }
    return e;
}

enum err attachments_unused(struct db *db, struct arena *arena, msec before, size_t limit,
                            struct attachment_list *ret_list)
{
    struct stmt *s = db_prepare(db, SELECT " INDEXED BY attachments_by_age"
                                           " WHERE created<?1 AND NOT EXISTS (SELECT 1 FROM threads"
                                           "  WHERE threads.owner=attachments.owner"
                                           "  AND threads.thread_id=attachments.thread_id)"
                                           " AND NOT EXISTS (SELECT 1 FROM attachment_uses"
                                           "  WHERE attachment_uses.id=attachments.id)"
                                           " ORDER BY created, id LIMIT ?2");
    stmt_bind_i64(s, 1, before);
    stmt_bind_i64(s, 2, (int64_t)limit);
    return read_list(s, arena, ret_list);
}

enum err attachment_delete(struct db *db, str id)
{
    struct stmt *s = db_prepare(db, "DELETE FROM attachments WHERE id=?1 RETURNING owner, bytes");
    char owner[USER_BYTES_MAX];
    size_t len = 0;
    int64_t bytes = 0;
    stmt_bind_str(s, 1, id);
    if (stmt_step(s)) {
        str name = stmt_str(s, 0);
        len = name.len < sizeof owner ? name.len : sizeof owner;
        if (len) memcpy(owner, name.p, len);
        bytes = stmt_i64(s, 1);
    }
    enum err e = stmt_run(s);
    return e ? e : storage_add(db, (str){owner, len}, -bytes);
}
