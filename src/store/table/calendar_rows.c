/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables `calendar_events`, `calendar_shares` and `calendar_done`: events, who they are shared
 * with, and what calls that changed them returned; and people, from `users`.
 *
 * Two events overlap if each starts before the other ends; so does an event and a stretch of time.
 * An event without length has no inside of its own: it is in the way only strictly inside another,
 * and it is read where it starts.
 *
 * To add a column: a migration, a line in COLUMNS and in event_load, and its bind in calendar_add.
 */
#include "store/table/calendar_rows.h"

#include "base/limits.h"
#include "base/rows.h"
#include "store/db/sqlite.h"

#define COLUMNS                                                                              \
    "e.id, e.owner, e.title, e.start_time, e.end_time, e.start_utc, e.end_utc, e.location, " \
    "e.attendees, e.created"

/* Borrowed from the statement. */
static struct calendar_event event_load(struct stmt *s)
{
    return (struct calendar_event){
        .id = stmt_str(s, 0),
        .owner = stmt_str(s, 1),
        .title = stmt_str(s, 2),
        .start = stmt_str(s, 3),
        .end = stmt_str(s, 4),
        .start_utc = stmt_i64(s, 5),
        .end_utc = stmt_i64(s, 6),
        .location = stmt_str(s, 7),
        .attendees = stmt_str(s, 8),
        .created = stmt_i64(s, 9),
    };
}

static struct calendar_event event_copy(struct arena *arena, const struct calendar_event *event)
{
    struct calendar_event copy = *event;
    str *const texts[] = {&copy.id,  &copy.owner,    &copy.title,    &copy.start,
                          &copy.end, &copy.location, &copy.attendees};
    for (size_t i = 0; i < COUNT(texts); i++) *texts[i] = arena_str(arena, *texts[i]);
    return copy;
}

static size_t event_bytes(const struct calendar_event *event)
{
    return sizeof *event + event->title.len + event->location.len + event->attendees.len;
}

/* The statement asks for one row more than `limit`. */
static enum err list_load(struct stmt *s, struct arena *arena, size_t limit,
                          struct calendar_list *ret_list)
{
    struct calendar_list list = {0};
    size_t bytes = 0;
    while (!list.more && stmt_step(s)) {
        if (list.count == limit || bytes > CALENDAR_PAGE_BYTES_MAX) {
            list.more = true;
            continue;
        }
        struct calendar_event event = event_load(s);
        bytes += event_bytes(&event);
        *ROWS_ADD(arena, list.rows, list.count) = event_copy(arena, &event);
    }
    enum err e = stmt_end(s);
    if (!e) *ret_list = list;
    return e;
}

/* ---- events ---- */

static enum err room_check(struct db *db, str owner)
{
    struct stmt *s = db_prepare(db, "SELECT count(*) FROM calendar_events WHERE owner=?1");
    stmt_bind_str(s, 1, owner);
    bool room = stmt_step(s) && stmt_i64(s, 0) < CALENDAR_EVENTS_MAX;
    enum err e = stmt_end(s);
    return e || room ? e : ERR_TOO_LARGE;
}

enum err calendar_add(struct db *db, const struct calendar_event *event, str call_id)
{
    enum err e = room_check(db, event->owner);
    if (e) return e;
    struct stmt *s =
        db_prepare(db, "INSERT INTO calendar_events (id, owner, title, start_time, end_time,"
                       " start_utc, end_utc, location, attendees, created, call_id)"
                       " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)");
    stmt_bind_str(s, 1, event->id);
    stmt_bind_str(s, 2, event->owner);
    stmt_bind_str(s, 3, event->title);
    stmt_bind_str(s, 4, event->start);
    stmt_bind_str(s, 5, event->end);
    stmt_bind_i64(s, 6, event->start_utc);
    stmt_bind_i64(s, 7, event->end_utc);
    stmt_bind_str(s, 8, event->location);
    stmt_bind_str(s, 9, event->attendees);
    stmt_bind_i64(s, 10, event->created);
    stmt_bind_str(s, 11, call_id);
    return stmt_run(s);
}

enum err calendar_find(struct db *db, struct arena *arena, str who, str id,
                       struct calendar_event *ret_event)
{
    struct stmt *s = db_prepare(db, "SELECT " COLUMNS " FROM calendar_events e"
                                    " WHERE e.id=?2 AND (e.owner=?1 OR EXISTS"
                                    " (SELECT 1 FROM calendar_shares"
                                    "  WHERE event=?2 AND target=?1))");
    stmt_bind_str(s, 1, who);
    stmt_bind_str(s, 2, id);
    struct calendar_event found = {0};
    bool row = stmt_step(s);
    if (row) {
        struct calendar_event event = event_load(s);
        found = event_copy(arena, &event);
    }
    enum err e = stmt_end(s);
    if (e) return e;
    if (!row) return ERR_NOT_FOUND;
    *ret_event = found;
    return OK;
}

enum err calendar_remove(struct db *db, str owner, str id)
{
    struct stmt *s = db_prepare(db, "DELETE FROM calendar_events WHERE id=?1 AND owner=?2");
    stmt_bind_str(s, 1, id);
    stmt_bind_str(s, 2, owner);
    enum err e = stmt_run(s);
    return e || db_changes(db) ? e : ERR_NOT_FOUND;
}

enum err calendar_share(struct db *db, str id, str target)
{
    struct stmt *s = db_prepare(db, "INSERT INTO calendar_shares (event, target) VALUES (?1, ?2)"
                                    " ON CONFLICT DO NOTHING");
    stmt_bind_str(s, 1, id);
    stmt_bind_str(s, 2, target);
    return stmt_run(s);
}

/* The first condition follows from the third and is the one that the index knows. */
#define IN_RANGE "e.end_utc>=?2 AND e.start_utc<?3 AND (e.end_utc>?2 OR e.start_utc=?2)"
#define FITS_QUERY                                                                      \
    "(?4='' OR instr(lower(e.title), lower(?4)) OR instr(lower(e.location), lower(?4))" \
    " OR EXISTS (SELECT 1 FROM json_each(e.attendees) WHERE instr(lower(value), lower(?4))))"

/* Only ids are sorted and cut to the page; its rows are read afterwards. */
enum err calendar_page(struct db *db, struct arena *arena, const struct calendar_range *range,
                       struct calendar_list *ret_list)
{
    struct stmt *s = db_prepare(
        db, "SELECT " COLUMNS " FROM ("
            " SELECT e.id AS id, e.start_utc AS start, e.end_utc AS finish FROM calendar_events e"
            " WHERE e.owner=?1 AND " IN_RANGE " AND " FITS_QUERY " UNION ALL"
            " SELECT e.id, e.start_utc, e.end_utc FROM calendar_shares s"
            " JOIN calendar_events e ON e.id=s.event"
            " WHERE s.target=?1 AND " IN_RANGE " AND " FITS_QUERY
            " ORDER BY start, finish, id LIMIT ?5) found"
            " JOIN calendar_events e ON e.id=found.id"
            " ORDER BY found.start, found.finish, found.id");
    stmt_bind_str(s, 1, range->who);
    stmt_bind_i64(s, 2, range->from);
    stmt_bind_i64(s, 3, range->to);
    stmt_bind_str(s, 4, range->query);
    stmt_bind_i64(s, 5, (int64_t)range->limit + 1);
    return list_load(s, arena, range->limit, ret_list);
}

enum err calendar_conflicts(struct db *db, struct arena *arena, const struct calendar_event *event,
                            size_t limit, struct calendar_list *ret_list)
{
    struct stmt *s = db_prepare(db, "SELECT " COLUMNS " FROM calendar_events e"
                                    " WHERE e.owner=?1 AND e.end_utc>?2 AND e.start_utc<?3"
                                    " AND e.id<>?4 ORDER BY e.start_utc, e.end_utc, e.id LIMIT ?5");
    stmt_bind_str(s, 1, event->owner);
    stmt_bind_i64(s, 2, event->start_utc);
    stmt_bind_i64(s, 3, event->end_utc);
    stmt_bind_str(s, 4, event->id);
    stmt_bind_i64(s, 5, (int64_t)limit + 1);
    return list_load(s, arena, limit, ret_list);
}

/* In the order of the index, so that nothing is sorted: a whole calendar may be large. */
enum err calendar_each(struct db *db, str owner,
                       void (*on_event)(void *arg, const struct calendar_event *event), void *arg)
{
    struct stmt *s = db_prepare(db, "SELECT " COLUMNS " FROM calendar_events e"
                                    " WHERE e.owner=?1 ORDER BY e.end_utc, e.start_utc, e.id");
    stmt_bind_str(s, 1, owner);
    while (stmt_step(s)) {
        struct calendar_event event = event_load(s);
        on_event(arg, &event);
    }
    return stmt_end(s);
}

/* ---- what calls returned ---- */

enum err calendar_recall(struct db *db, struct arena *arena, str owner, str call_id,
                         str *ret_result)
{
    struct stmt *s =
        db_prepare(db, "SELECT result FROM calendar_done WHERE owner=?1 AND call_id=?2");
    stmt_bind_str(s, 1, owner);
    stmt_bind_str(s, 2, call_id);
    bool row = stmt_step(s);
    str result = row ? arena_str(arena, stmt_str(s, 0)) : STR_EMPTY;
    enum err e = stmt_end(s);
    if (e) return e;
    if (!row) return ERR_NOT_FOUND;
    *ret_result = result;
    return OK;
}

enum err calendar_remember(struct db *db, str owner, str call_id, str result, msec now)
{
    struct stmt *s = db_prepare(db, "INSERT INTO calendar_done (owner, call_id, created, result)"
                                    " VALUES (?1, ?2, ?3, ?4)");
    stmt_bind_str(s, 1, owner);
    stmt_bind_str(s, 2, call_id);
    stmt_bind_i64(s, 3, now);
    stmt_bind_str(s, 4, result);
    return stmt_run(s);
}

/* ---- people ---- */

enum err calendar_users(struct db *db, struct arena *arena, str who, str query, size_t limit,
                        struct calendar_user_list *ret_users)
{
    struct stmt *s = db_prepare(db, "SELECT name FROM (SELECT name FROM users UNION SELECT ?1)"
                                    " WHERE instr(lower(name), lower(?2))"
                                    " ORDER BY name<>?2, lower(name)<>lower(?2), name LIMIT ?3");
    stmt_bind_str(s, 1, who);
    stmt_bind_str(s, 2, query);
    stmt_bind_i64(s, 3, (int64_t)limit + 1);
    struct calendar_user_list users = {0};
    while (stmt_step(s)) {
        users.more = users.count == limit;
        if (!users.more)
            *ROWS_ADD(arena, users.names, users.count) = arena_str(arena, stmt_str(s, 0));
    }
    enum err e = stmt_end(s);
    if (!e) *ret_users = users;
    return e;
}

enum err calendar_user_known(struct db *db, str name, bool *ret_known)
{
    struct stmt *s = db_prepare(db, "SELECT 1 FROM users WHERE name=?1");
    stmt_bind_str(s, 1, name);
    bool known = stmt_step(s);
    enum err e = stmt_end(s);
    if (!e) *ret_known = known;
    return e;
}
