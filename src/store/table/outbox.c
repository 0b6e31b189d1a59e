/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `outbox`: messages on their way to webhooks, for each address in the order of when they
 * are to be sent next, so that what waits for one address is never read on behalf of another. A row
 * leaves it when it is done, sent or given up; numbers are not used again, so whoever still holds
 * one of a row that has left finds nothing.
 */
#include "store/table/outbox.h"

#include "store/db/sqlite.h"

enum err outbox_add(struct db *db, struct outgoing *outgoing)
{
    struct stmt *s =
        db_prepare(db, "INSERT INTO outbox (next, attempts, created, id, event, url, body)"
                       " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING n");
    stmt_bind_i64(s, 1, outgoing->next);
    stmt_bind_i64(s, 2, outgoing->attempts);
    stmt_bind_i64(s, 3, outgoing->created);
    stmt_bind_str(s, 4, outgoing->id);
    stmt_bind_str(s, 5, outgoing->event);
    stmt_bind_str(s, 6, outgoing->url);
    stmt_bind_str(s, 7, outgoing->body);
    int64_t n = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_run(s);
    if (!e) outgoing->n = n;
    return e;
}

enum err outbox_first(struct db *db, struct arena *arena, str url,
                      const int64_t passed[static WEBHOOK_SENDS_HOOK_MAX], struct outgoing *ret_row)
{
    static_assert(WEBHOOK_SENDS_HOOK_MAX == 4, "as the statement has them");
    struct stmt *s =
        db_prepare(db, "SELECT n, next, attempts, created, id, event, url, body FROM outbox"
                       " INDEXED BY outbox_by_url WHERE url=?1 AND n NOT IN (?2, ?3, ?4, ?5)"
                       " ORDER BY next, n LIMIT 1");
    stmt_bind_str(s, 1, url);
    for (int i = 0; i < WEBHOOK_SENDS_HOOK_MAX; i++) stmt_bind_i64(s, 2 + i, passed[i]);
    struct outgoing row = {0};
    bool found = stmt_step(s);
    if (found)
        row = (struct outgoing){
            .n = stmt_i64(s, 0),
            .next = stmt_i64(s, 1),
            .attempts = (uint32_t)stmt_i64(s, 2),
            .created = stmt_i64(s, 3),
            .id = arena_str(arena, stmt_str(s, 4)),
            .event = arena_str(arena, stmt_str(s, 5)),
            .url = arena_str(arena, stmt_str(s, 6)),
            .body = arena_str(arena, stmt_str(s, 7)),
        };
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    *ret_row = row;
    return OK;
}

enum err outbox_next_url(struct db *db, struct arena *arena, str after, str *ret_url)
{
    struct stmt *s = db_prepare(db, "SELECT url FROM outbox INDEXED BY outbox_by_url"
                                    " WHERE url>?1 ORDER BY url LIMIT 1");
    stmt_bind_str(s, 1, after);
    bool found = stmt_step(s);
    str url = found ? arena_str(arena, stmt_str(s, 0)) : STR_EMPTY;
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    *ret_url = url;
    return OK;
}

enum err outbox_later(struct db *db, int64_t n, uint32_t attempts, msec next)
{
    struct stmt *s = db_prepare(db, "UPDATE outbox SET attempts=?2, next=?3 WHERE n=?1");
    stmt_bind_i64(s, 1, n);
    stmt_bind_i64(s, 2, attempts);
    stmt_bind_i64(s, 3, next);
    enum err e = stmt_run(s);
    return e || db_changes(db) ? e : ERR_NOT_FOUND;
}

enum err outbox_done(struct db *db, int64_t n)
{
    struct stmt *s = db_prepare(db, "DELETE FROM outbox WHERE n=?1");
    stmt_bind_i64(s, 1, n);
    enum err e = stmt_run(s);
    return e || db_changes(db) ? e : ERR_NOT_FOUND;
}
