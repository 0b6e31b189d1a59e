/* SPDX-License-Identifier: Apache-2.0
 *
 * All rows that name their owner, and how they become another's. The threads go first; what belongs
 * to a thread follows it if it moved, the rest goes where no row of the other is in the way.
 *
 * To add a table whose rows have an owner: a row in `moves`.
 */
#include "store/table/owners.h"

#include "base/rows.h"
#include "store/db/hot.h"
#include "store/db/sqlite.h"

/* ?1: from, ?2: to. In this order. */
static const char *const moves[] = {
    "UPDATE OR IGNORE threads SET owner=?2 WHERE owner=?1",
    "UPDATE interactions SET owner=?2 WHERE owner=?1"
    " AND thread IN (SELECT id FROM threads WHERE owner=?2)",
    "UPDATE grants SET owner=?2 WHERE owner=?1"
    " AND (thread IS NULL OR thread IN (SELECT id FROM threads WHERE owner=?2))",
    "UPDATE grants SET made_by=?2 WHERE made_by=?1",
    "UPDATE attachments SET owner=?2 WHERE owner=?1"
    " AND thread_id NOT IN (SELECT thread_id FROM threads WHERE owner=?1)",
    "UPDATE OR IGNORE idempotency SET owner=?2 WHERE owner=?1"
    " AND (thread IS NULL OR thread IN (SELECT id FROM threads WHERE owner=?2))",
    "UPDATE OR IGNORE calendar_events SET owner=?2 WHERE owner=?1",
    "UPDATE OR IGNORE calendar_shares SET target=?2 WHERE target=?1",
    "UPDATE OR IGNORE calendar_done SET owner=?2 WHERE owner=?1",
    "UPDATE channel_peers SET user=?2 WHERE user=?1 AND user<>''",
    "UPDATE channel_links SET user=?2 WHERE user=?1",
    "INSERT INTO storage (owner, bytes) SELECT ?2, bytes FROM storage WHERE owner=?1"
    " ON CONFLICT (owner) DO UPDATE SET bytes=bytes+excluded.bytes",
    "DELETE FROM storage WHERE owner=?1 AND owner<>?2",
    "UPDATE audit_chains SET owner=?2 WHERE owner=?1"
    " AND chain IN (SELECT id FROM threads WHERE owner=?2)",
};

enum err owner_move(struct db *db, str from, str to)
{
    enum err e = OK;
    for (size_t i = 0; !e && i < COUNT(moves); i++) {
        struct stmt *s = db_prepare_static(db, moves[i]);
        stmt_bind_str(s, 1, from);
        stmt_bind_str(s, 2, to);
        e = stmt_run(s);
    }
    hot_drop_all(db);
    return e;
}

enum err owner_runs(struct db *db, struct arena *arena, str owner, struct run_ids *ret_runs)
{
    struct run_ids runs = {0};
    struct stmt *s = db_prepare(db, "SELECT runs.id FROM runs INDEXED BY runs_open"
                                    " CROSS JOIN threads ON threads.id=runs.thread"
                                    " WHERE runs.status<4 AND runs.status>0 AND owner=?1");
    stmt_bind_str(s, 1, owner);
    while (stmt_step(s)) *ROWS_ADD(arena, runs.ids, runs.count) = stmt_i64(s, 0);
    enum err e = stmt_end(s);
    if (!e) *ret_runs = runs;
    return e;
}

enum err owner_threads(struct db *db, str owner, int64_t *ret_count)
{
    struct stmt *s = db_prepare(db, "SELECT count(*) FROM threads WHERE owner=?1");
    stmt_bind_str(s, 1, owner);
    int64_t count = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_end(s);
    if (!e) *ret_count = count;
    return e;
}
