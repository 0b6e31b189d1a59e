/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the calendar pack: events, with whom they are shared, and what calls with an effect
 * returned.
 *
 * An event takes the time from its start up to its end, without the end: of two that touch, neither
 * is in the other's way. Times are compared in UTC and kept as they were written.
 *
 * A call with an effect first asks calendar_recall; what it returned is written by
 * calendar_remember in the transaction of the effect. So the same call twice has one effect and one
 * result, also when the event is long gone. These rows are never removed: nobody knows how late an
 * uncertain call is repeated.
 *
 * Plain blocking code for use inside a job; texts that come back live in the arena given.
 */
#ifndef STORE_TABLE_CALENDAR_ROWS_H
#define STORE_TABLE_CALENDAR_ROWS_H

#include "base/arena.h"

struct db;

struct calendar_event {
    str id; /* "evt_..." */
    str owner;
    str title;
    str start, end;          /* RFC 3339 with the offset they were written with */
    msec start_utc, end_utc; /* the same moments */
    str location;            /* may be empty */
    str attendees;           /* JSON list of strings, "[]" if there are none */
    msec created;
};

struct calendar_list {
    struct calendar_event *rows;
    size_t count;
    bool more;
};

/* ERR_BUSY if the id or the owner's call has an event already; ERR_TOO_LARGE beyond
 * CALENDAR_EVENTS_MAX of the owner. */
enum err calendar_add(struct db *db, const struct calendar_event *event, str call_id) MUST_USE;

/* An event of one's own, or one that was shared with `who`; else ERR_NOT_FOUND, as if it did not
 * exist. */
enum err calendar_find(struct db *db, struct arena *arena, str who, str id,
                       struct calendar_event *ret_event) MUST_USE;

/* With its shares. ERR_NOT_FOUND unless it is the owner's. */
enum err calendar_remove(struct db *db, str owner, str id) MUST_USE;

/* Let `target` see it; again is fine. */
enum err calendar_share(struct db *db, str id, str target) MUST_USE;

/* What `who` has between two moments, shared events too, by start. A query (may be empty) is looked
 * for in title, location and attendees, whatever the case of its ASCII letters. The list ends after
 * `limit` rows, or behind the row that passes CALENDAR_PAGE_BYTES_MAX. */
struct calendar_range {
    str who;
    msec from, to;
    str query;
    size_t limit;
};
enum err calendar_page(struct db *db, struct arena *arena, const struct calendar_range *range,
                       struct calendar_list *ret_list) MUST_USE;

/* The owner's other events in the time of this one, by start. */
enum err calendar_conflicts(struct db *db, struct arena *arena, const struct calendar_event *event,
                            size_t limit, struct calendar_list *ret_list) MUST_USE;

/* Every event of an owner, the one that ends first first. The event is borrowed for the call. */
enum err calendar_each(struct db *db, str owner,
                       void (*on_event)(void *arg, const struct calendar_event *event), void *arg)
    MUST_USE;

/* ERR_NOT_FOUND: the owner's call has had no effect so far. */
enum err calendar_recall(struct db *db, struct arena *arena, str owner, str call_id,
                         str *ret_result) MUST_USE;
enum err calendar_remember(struct db *db, str owner, str call_id, str result, msec now) MUST_USE;

/* Users whose name contains the query, whatever the case of its ASCII letters, the best match
 * first. `who` counts as a user, with a row or without. */
struct calendar_user_list {
    str *names;
    size_t count;
    bool more;
};
enum err calendar_users(struct db *db, struct arena *arena, str who, str query, size_t limit,
                        struct calendar_user_list *ret_users) MUST_USE;

enum err calendar_user_known(struct db *db, str name, bool *ret_known) MUST_USE;

#endif
