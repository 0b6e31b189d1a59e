/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `grants`. A grant of one thread goes with it; one for all threads of its owner has no
 * thread. The two kinds have an index each, so that a run finds those it may use without looking at
 * the grants of other threads.
 */
#include "store/grants.h"

#include "base/limits.h"
#include "store/rows.h"
#include "store/sqlite.h"

#define GRANT_COLUMNS \
    "n, thread, created, id, owner, thread_id, tool, approver, made_by, interaction_id, match"

static void read_row(struct stmt *s, struct arena *arena, struct grant *grant)
{
    *grant = (struct grant){
        .n = stmt_i64(s, 0),
        .thread = stmt_i64(s, 1), /* NULL reads as 0 */
        .created = stmt_i64(s, 2),
        .id = arena_str(arena, stmt_str(s, 3)),
        .owner = arena_str(arena, stmt_str(s, 4)),
        .thread_id = arena_str(arena, stmt_str(s, 5)),
        .tool = arena_str(arena, stmt_str(s, 6)),
        .approver = arena_str(arena, stmt_str(s, 7)),
        .made_by = arena_str(arena, stmt_str(s, 8)),
        .interaction_id = arena_str(arena, stmt_str(s, 9)),
        .match = arena_str(arena, stmt_str(s, 10)),
    };
}

/* Add rows to the list, as long as it has room. */
static enum err read_more(struct stmt *s, struct arena *arena, size_t limit,
                          struct grant_list *list)
{
    while (!list->more && stmt_step(s)) {
        list->more = list->count == limit;
        if (!list->more) read_row(s, arena, ROWS_ADD(arena, list->rows, list->count));
    }
    return stmt_end(s);
}

enum err grant_add(struct db *db, struct grant *grant)
{
    struct stmt *s =
        db_prepare(db,
                   "INSERT INTO grants"
                   " (thread, created, id, owner, thread_id, tool, made_by, interaction_id, match,"
                   " approver)"
                   " VALUES (nullif(?1, 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) RETURNING n");
    stmt_bind_i64(s, 1, grant->thread);
    stmt_bind_i64(s, 2, grant->created);
    stmt_bind_str(s, 3, grant->id);
    stmt_bind_str(s, 4, grant->owner);
    stmt_bind_str(s, 5, grant->thread_id);
    stmt_bind_str(s, 6, grant->tool);
    stmt_bind_str(s, 7, grant->made_by);
    stmt_bind_str(s, 8, grant->interaction_id);
    stmt_bind_str(s, 9, grant->match);
    stmt_bind_str(s, 10, grant->approver);
    int64_t n = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_run(s);
    if (!e) grant->n = n;
    return e;
}

enum err grants_page(struct db *db, struct arena *arena, str owner, int64_t before, size_t limit,
                     struct grant_list *ret_list)
{
    struct grant_list list = {0};
    struct stmt *s =
        db_prepare(db, "SELECT " GRANT_COLUMNS " FROM grants INDEXED BY grants_by_owner"
                       " WHERE owner=?1 AND n<?2 ORDER BY n DESC");
    stmt_bind_str(s, 1, owner);
    stmt_bind_i64(s, 2, before ? before : INT64_MAX);
    enum err e = read_more(s, arena, limit, &list);
    if (!e) *ret_list = list;
    return e;
}

enum err grants_of_thread(struct db *db, struct arena *arena, str owner, int64_t thread,
                          struct grant_list *ret_list)
{
    struct grant_list list = {0};
    struct stmt *own =
        db_prepare(db, "SELECT " GRANT_COLUMNS " FROM grants INDEXED BY grants_by_thread"
                       " WHERE thread=?1 AND owner=?2 ORDER BY n DESC");
    stmt_bind_i64(own, 1, thread);
    stmt_bind_str(own, 2, owner);
    enum err e = read_more(own, arena, GRANTS_MAX, &list);
    if (e) return e;
    struct stmt *all =
        db_prepare(db, "SELECT " GRANT_COLUMNS " FROM grants INDEXED BY grants_for_all"
                       " WHERE owner=?1 AND thread IS NULL ORDER BY n DESC");
    stmt_bind_str(all, 1, owner);
    e = read_more(all, arena, GRANTS_MAX, &list);
    if (!e) *ret_list = list;
    return e;
}

enum err grant_find(struct db *db, struct arena *arena, str owner, str id, struct grant *ret_grant)
{
    struct grant_list list = {0};
    struct stmt *s =
        db_prepare(db, "SELECT " GRANT_COLUMNS " FROM grants WHERE id=?1 AND owner=?2");
    stmt_bind_str(s, 1, id);
    stmt_bind_str(s, 2, owner);
    enum err e = read_more(s, arena, 1, &list);
    if (e) return e;
    if (!list.count) return ERR_NOT_FOUND;
    *ret_grant = list.rows[0];
    return OK;
}

enum err grant_delete(struct db *db, str owner, str id)
{
    struct stmt *s = db_prepare(db, "DELETE FROM grants WHERE id=?1 AND owner=?2");
    stmt_bind_str(s, 1, id);
    stmt_bind_str(s, 2, owner);
    enum err e = stmt_run(s);
    return e || db_changes(db) ? e : ERR_NOT_FOUND;
}
