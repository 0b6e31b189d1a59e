/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `attachments`. A row names the owner's thread by its id on the wire, because a file may
 * be sent before the first message. A thread that is not there when the row has grown old was never
 * made, or is gone: the file is not used.
 */
#include "store/attachments.h"

#include "store/columns.h"
#include "store/rows.h"
#include "store/sqlite.h"

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
    return stmt_run(s);
}

enum err attachment_find(struct db *db, struct arena *arena, str id,
                         struct attachment *ret_attachment)
{
    struct stmt *s = db_prepare(db, SELECT " WHERE id=?1");
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

enum err attachments_of_thread(struct db *db, struct arena *arena, str owner, str thread_id,
                               struct attachment_list *ret_list)
{
    struct stmt *s = db_prepare(db, SELECT " INDEXED BY attachments_by_thread"
                                           " WHERE owner=?1 AND thread_id=?2 ORDER BY created, id");
    stmt_bind_str(s, 1, owner);
    stmt_bind_str(s, 2, thread_id);
    return read_list(s, arena, ret_list);
}

enum err attachments_delete(struct db *db, str owner, str thread_id)
{
    struct stmt *s = db_prepare(db, "DELETE FROM attachments WHERE owner=?1 AND thread_id=?2");
    stmt_bind_str(s, 1, owner);
    stmt_bind_str(s, 2, thread_id);
    return stmt_run(s);
}

enum err attachments_unused(struct db *db, struct arena *arena, msec before, size_t limit,
                            struct attachment_list *ret_list)
{
    struct stmt *s = db_prepare(db, SELECT " INDEXED BY attachments_by_age"
                                           " WHERE created<?1 AND NOT EXISTS (SELECT 1 FROM threads"
                                           "  WHERE threads.owner=attachments.owner"
                                           "  AND threads.thread_id=attachments.thread_id)"
                                           " ORDER BY created, id LIMIT ?2");
    stmt_bind_i64(s, 1, before);
    stmt_bind_i64(s, 2, (int64_t)limit);
    return read_list(s, arena, ret_list);
}

enum err attachment_delete(struct db *db, str id)
{
    struct stmt *s = db_prepare(db, "DELETE FROM attachments WHERE id=?1");
    stmt_bind_str(s, 1, id);
    return stmt_run(s);
}
