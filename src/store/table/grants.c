/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `grants`: "always", said by a person. A grant of one thread goes with it; one for all
 * threads of its owner has no thread. The two kinds have an index each, so that a run finds those
 * it may use without looking at the grants of other threads.
 *
 * Whether a maker still has the role is asked of the person when a grant is read: there is no moment
 * in which it lets something run that nobody stands for any more.
 */
#include "store/table/grants.h"

#include <string.h>

#include "base/limits.h"
#include "base/rows.h"
#include "store/db/hot.h"
#include "store/db/sqlite.h"
#include "store/table/audit.h"
#include "store/table/conversation.h"
#include "store/table/interactions.h"
#include "store/table/keys.h"

#define GRANT_COLUMNS                                                                           \
    "n, thread, created, id, owner, thread_id, tool, approver, made_by, interaction_id, match," \
    " rule"

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
        .rule = arena_str(arena, stmt_str(s, 11)),
    };
}

/* Does its maker stand for it? The owner's own needs no role. Where a role approves, nobody lets
 * themselves loose, but for who is alone. */
static enum err holds(struct db *db, const struct grant *grant, bool *ret_yes)
{
    *ret_yes = true;
    if (!grant->approver.len) return OK;
    if (str_eq(grant->made_by, grant->owner)) return people_none(db, ret_yes);
    return person_has_role(db, grant->made_by, grant->approver, ret_yes);
}

/* Add rows to the list that hold, as long as it has room. */
static enum err read_more(struct db *db, struct stmt *s, struct arena *arena, size_t limit,
                          struct grant_list *list)
{
    enum err e = OK;
    while (!e && !list->more && stmt_step(s)) {
        struct grant grant;
        bool yes = false;
        read_row(s, arena, &grant);
        e = holds(db, &grant, &yes);
        if (e || !yes) continue;
        list->more = list->count == limit;
        if (!list->more) *ROWS_ADD(arena, list->rows, list->count) = grant;
    }
    enum err ended = stmt_end(s);
    return e ? e : ended;
}

enum err grant_add(struct db *db, struct grant *grant)
{
    struct stmt *s =
        db_prepare(db,
                   "INSERT INTO grants"
                   " (thread, created, id, owner, thread_id, tool, made_by, interaction_id, match,"
                   " approver, rule)"
                   " VALUES (nullif(?1, 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)");
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
    stmt_bind_str(s, 11, grant->rule);
    enum err e = stmt_run(s);
    if (e) return e;
    grant->n = db_last_id(db);
    if (grant->thread)
        hot_drop(db, HOT_GRANTS, grant->thread);
    else
        hot_drop_kind(db, HOT_GRANTS); /* it may count in every thread of its owner */
    return OK;
}

static enum err page_all(struct db *db, struct arena *arena, const struct grant_filter *filter,
                         struct grant_list *list)
{
    struct stmt *s =
        db_prepare(db, "SELECT " GRANT_COLUMNS " FROM grants WHERE n<?1 ORDER BY n DESC");
    stmt_bind_i64(s, 1, filter->before ? filter->before : INT64_MAX);
    return read_more(db, s, arena, filter->limit, list);
}

/* A person's: each stretch of an index is short, for a person has few. */
static enum err page_of(struct db *db, struct arena *arena, const struct grant_filter *filter,
                        struct grant_list *list)
{
    struct stmt *s = db_prepare(
        db, "SELECT " GRANT_COLUMNS " FROM grants WHERE n IN ("
            " SELECT n FROM grants INDEXED BY grants_by_owner WHERE owner=?1 AND n<?2"
            " UNION SELECT n FROM grants INDEXED BY grants_by_maker WHERE made_by=?1 AND n<?2"
            " UNION SELECT n FROM grants INDEXED BY grants_by_approver"
            "  WHERE approver<>'' AND approver IN (?3, ?4, ?5, ?6) AND n<?2)"
            " ORDER BY n DESC");
    stmt_bind_str(s, 1, filter->user);
    stmt_bind_i64(s, 2, filter->before ? filter->before : INT64_MAX);
    static_assert(GRANT_ROLES_MAX == 4, "as many parameters");
    for (int i = 0; i < GRANT_ROLES_MAX; i++) stmt_bind_str(s, 3 + i, filter->roles[i]);
    return read_more(db, s, arena, filter->limit, list);
}

enum err grants_page(struct db *db, struct arena *arena, const struct grant_filter *filter,
                     struct grant_list *ret_list)
{
    struct grant_list list = {0};
    enum err e =
        filter->all ? page_all(db, arena, filter, &list) : page_of(db, arena, filter, &list);
    if (!e) *ret_list = list;
    return e;
}

#define COLUMN(name) COLUMN_OF(struct grant, name),
static const struct column columns[] = {COLUMN(n) COLUMN(id)};
#undef COLUMN
static const struct hot_shape shape = HOT_SHAPE(struct grant, columns);

/* That there are none, which is so for most, is kept, and one that goes does not change it; others are
 * read each time. Of a thread that is gone nothing is kept. */
static enum err read_none(struct db *db, struct arena *arena, int64_t thread,
                          struct hot_rows *ret_rows)
{
    (void)arena;
    struct stmt *s = db_prepare(
        db, "SELECT EXISTS (SELECT 1 FROM grants INDEXED BY grants_by_thread"
            "  WHERE thread=?1 AND thread IS NOT NULL) OR EXISTS (SELECT 1 FROM grants"
            "  INDEXED BY grants_for_all WHERE thread IS NULL AND grants.owner=threads.owner)"
            " FROM threads WHERE id=?1");
    stmt_bind_i64(s, 1, thread);
    bool any = !stmt_step(s) || stmt_i64(s, 0);
    enum err e = stmt_end(s);
    if (!e) *ret_rows = (struct hot_rows){.unkept = any};
    return e;
}

enum err grants_of_thread(struct db *db, struct arena *arena, str owner, int64_t thread,
                          struct grant_list *ret_list)
{
    struct grant_list list = {0};
    struct hot_rows rows = {.unkept = true};
    if (db_hot(db)) {
        enum err e = hot_rows(db, HOT_GRANTS, thread, &shape, arena, read_none, &rows);
        if (e || !rows.unkept) {
            if (!e) *ret_list = list;
            return e;
        }
    }
    struct stmt *own =
        db_prepare(db, "SELECT " GRANT_COLUMNS " FROM grants INDEXED BY grants_by_thread"
                       " WHERE thread=?1 AND owner=?2 ORDER BY n DESC");
    stmt_bind_i64(own, 1, thread);
    stmt_bind_str(own, 2, owner);
    enum err e = read_more(db, own, arena, GRANTS_MAX, &list);
    if (e) return e;
    struct stmt *all =
        db_prepare(db, "SELECT " GRANT_COLUMNS " FROM grants INDEXED BY grants_for_all"
                       " WHERE owner=?1 AND thread IS NULL ORDER BY n DESC");
    stmt_bind_str(all, 1, owner);
    e = read_more(db, all, arena, GRANTS_MAX, &list);
    if (!e) *ret_list = list;
    return e;
}

enum err grant_find(struct db *db, struct arena *arena, str id, struct grant *ret_grant)
{
    struct grant_list list = {0};
    struct stmt *s = db_prepare(db, "SELECT " GRANT_COLUMNS " FROM grants WHERE id=?1");
    stmt_bind_str(s, 1, id);
    enum err e = read_more(db, s, arena, 1, &list);
    if (e) return e;
    if (!list.count) return ERR_NOT_FOUND;
    *ret_grant = list.rows[0];
    return OK;
}

/* ---- ends ---- */

static enum err row_delete(struct db *db, str id)
{
    struct stmt *s = db_prepare(db, "DELETE FROM grants WHERE id=?1");
    stmt_bind_str(s, 1, id);
    enum err e = stmt_run(s);
    return e || db_changes(db) ? e : ERR_NOT_FOUND;
}

/* In the chain of the thread that the grant was for, or that it was given in; in the chain `server` if
 * that one has been deleted. */
static enum err note(struct db *db, struct arena *arena, const struct grant *grant,
                     const struct grant_end *end)
{
    struct audit_entry entry = {.action = AUDIT_REVOKED,
                                .interaction_id = grant->interaction_id,
                                .who = end->who,
                                .via = end->via,
                                .why = end->why,
                                .at = end->now};
    struct interaction given;
    int64_t thread = grant->thread;
    crypto_sha256(grant->match, entry.hash);
    enum err e = thread ? OK : interaction_find(db, arena, grant->interaction_id, &given);
    if (!thread && !e) thread = given.thread;
    if (e && e != ERR_NOT_FOUND) return e;
    if (thread) e = audit_add(db, end->audit_key, thread, &entry);
    return e == ERR_NOT_FOUND ? audit_note(db, end->audit_key, &entry) : e;
}

enum err grant_revoke(struct db *db, struct arena *arena, const struct grant *grant,
                      const struct grant_end *end)
{
    enum err e = row_delete(db, grant->id);
    if (!e) e = snapshots_touch_owner(db, grant->owner);
    return e ? e : note(db, arena, grant, end);
}

static enum err read_lost(struct db *db, struct arena *arena, struct grant_list *list)
{
    struct stmt *s = db_prepare(db, "SELECT " GRANT_COLUMNS " FROM grants"
                                    " INDEXED BY grants_by_approver"
                                    " WHERE approver<>'' ORDER BY approver, n");
    enum err e = OK;
    while (!e && list->count < GRANTS_MAX && stmt_step(s)) {
        struct grant grant;
        bool yes = true;
        read_row(s, arena, &grant);
        e = holds(db, &grant, &yes);
        if (!e && !yes) *ROWS_ADD(arena, list->rows, list->count) = grant;
    }
    enum err ended = stmt_end(s);
    return e ? e : ended;
}

enum err grants_end(struct db *db, struct arena *arena, const unsigned char key[static HASH_BYTES],
                    msec now)
{
    struct grant_list lost;
    const struct grant_end end = {
        .audit_key = key, .via = STR("run"), .why = STR("role"), .now = now};
    enum err e;
    do {
        lost = (struct grant_list){0};
        e = read_lost(db, arena, &lost);
        for (size_t i = 0; !e && i < lost.count; i++)
            e = grant_revoke(db, arena, &lost.rows[i], &end);
    } while (!e && lost.count == GRANTS_MAX);
    return e;
}
