/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of chat channels, `channels` and `channel_*`: accounts, people (`peers`), what came in
 * (`inbox`) and what goes out (`outbox`), `codes` and `links`. What is done stays for a week and is
 * the most; so whoever looks for work walks an index that holds only what is not done, and names
 * it.
 *
 * A person's row outlives their conversation: when the thread goes, `thread` becomes NULL, which
 * reads as 0, and all else is kept.
 *
 * To add a column: a migration, a member of the struct, and its name in the list of the table.
 */
#include "store/table/channels.h"

#include "base/limits.h"
#include "base/rows.h"
#include "store/db/columns.h"
#include "store/db/sqlite.h"
#include "store/table/keys.h"

/* Databases hold these numbers, and the statements below have them in their text. */
_Static_assert(CHANNEL_STARTING == 0 && CHANNEL_ONLINE == 1 && CHANNEL_TROUBLE == 2 &&
                   CHANNEL_NEEDS_LOGIN == 3,
               "numbers that databases hold");
_Static_assert(INBOUND_NEW == 0 && INBOUND_DECIDED == 1 && INBOUND_DONE == 2,
               "numbers that databases hold, and those below 2 are not done");
_Static_assert(OUT_READY == 0 && OUT_SENDING == 1 && OUT_PARKED == 2 && OUT_SENT == 3 &&
                   OUT_DROPPED == 4,
               "numbers that databases hold, and those below 3 are not done");
_Static_assert(OUT_FINAL == 0 && OUT_QUESTION == 1 && OUT_ERROR == 2 && OUT_NOTICE == 3,
               "numbers that databases hold");

#define CHANNEL_ROW(value, name) name,
static const char *const states[CHANNEL_STATE_COUNT] = {CHANNEL_STATES(CHANNEL_ROW)};
static const char *const classes[OUT_CLASS_COUNT] = {OUT_CLASSES(CHANNEL_ROW)};
#undef CHANNEL_ROW

const char *channel_state_name(enum channel_state state)
{
    assert((unsigned)state < CHANNEL_STATE_COUNT);
    return states[state];
}

const char *out_class_name(enum out_class class)
{
    assert((unsigned)class < OUT_CLASS_COUNT);
    return classes[class];
}

/* A statement that must have changed a row. */
static enum err change_one(struct db *db, struct stmt *s)
{
    enum err e = stmt_run(s);
    return e || db_changes(db) ? e : ERR_NOT_FOUND;
}

/* An INSERT ... RETURNING its number. */
static enum err add_one(struct stmt *s, int64_t *ret_n)
{
    int64_t n = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_run(s);
    if (!e) *ret_n = n;
    return e;
}

/* The first column of the only row. */
static enum err read_number(struct stmt *s, int64_t *ret_number)
{
    int64_t number = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_end(s);
    if (!e) *ret_number = number;
    return e;
}

/* Is the first column of the only row more than 0? */
static enum err read_any(struct stmt *s, bool *ret_any)
{
    int64_t number = 0;
    enum err e = read_number(s, &number);
    if (!e) *ret_any = number > 0;
    return e;
}

/* The first column of the first row; ERR_NOT_FOUND. */
static enum err read_text(struct stmt *s, struct arena *arena, str *ret_text)
{
    bool found = stmt_step(s);
    str text = found ? arena_str(arena, stmt_str(s, 0)) : STR_EMPTY;
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    *ret_text = text;
    return OK;
}

/* The first column of every row. */
static enum err read_ids(struct stmt *s, struct arena *arena, int64_t **ret_ids, size_t *ret_count)
{
    int64_t *ids = NULL;
    size_t count = 0;
    while (stmt_step(s)) *ROWS_ADD(arena, ids, count) = stmt_i64(s, 0);
    enum err e = stmt_end(s);
    if (e) return e;
    *ret_ids = ids;
    *ret_count = count;
    return OK;
}

/* ---- the channel itself ---- */

enum err channel_find(struct db *db, struct arena *arena, str name, struct channel_row *ret_row)
{
    struct stmt *s = db_prepare(db, "SELECT name, kind, account, cursor, state, detail, changed"
                                    " FROM channels WHERE name=?1");
    stmt_bind_str(s, 1, name);
    struct channel_row row = {0};
    bool found = stmt_step(s);
    if (found)
        row = (struct channel_row){
            .name = arena_str(arena, stmt_str(s, 0)),
            .kind = arena_str(arena, stmt_str(s, 1)),
            .account = arena_str(arena, stmt_str(s, 2)),
            .cursor = arena_str(arena, stmt_str(s, 3)),
            .state = (enum channel_state)stmt_i64(s, 4),
            .detail = arena_str(arena, stmt_str(s, 5)),
            .changed = stmt_i64(s, 6),
        };
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    if ((unsigned)row.state >= CHANNEL_STATE_COUNT) return ERR_DAMAGED;
    *ret_row = row;
    return OK;
}

enum err channel_put(struct db *db, const struct channel_row *row)
{
    struct stmt *s =
        db_prepare(db,
                   "INSERT INTO channels (name, kind, account, cursor, state, detail, changed)"
                   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (name) DO UPDATE SET kind=?2,"
                   " account=?3, cursor=?4, state=?5, detail=?6, changed=?7");
    stmt_bind_str(s, 1, row->name);
    stmt_bind_str(s, 2, row->kind);
    stmt_bind_str(s, 3, row->account);
    stmt_bind_str(s, 4, row->cursor);
    stmt_bind_i64(s, 5, row->state);
    stmt_bind_str(s, 6, row->detail);
    stmt_bind_i64(s, 7, row->changed);
    return stmt_run(s);
}

enum err channel_set_cursor(struct db *db, str name, str cursor)
{
    struct stmt *s = db_prepare(db, "UPDATE channels SET cursor=?2 WHERE name=?1");
    stmt_bind_str(s, 1, name);
    stmt_bind_str(s, 2, cursor);
    return change_one(db, s);
}

/* ---- people ---- */

/* clang-format off */
#define PEER(X)                                                                             \
    X(roles) X(conversations) X(cursor) X(heard) X(window) X(allowance) X(used) X(created)  \
    X(channel) X(sender) X(name) X(locale) X(user) X(thread_id) X(reply_token) X(held)
#define PEER_NAMES "thread, is_group" PEER(COLUMN_NAME)
/* clang-format on */

#define COLUMN(name) COLUMN_OF(struct peer, name),
static const struct column peer_columns[] = {PEER(COLUMN)};
#undef COLUMN

static void read_peer(struct stmt *s, struct arena *arena, struct peer *peer)
{
    peer->id = stmt_i64(s, 0);
    peer->thread = stmt_i64(s, 1); /* NULL reads as 0 */
    peer->group = stmt_i64(s, 2) != 0;
    columns_read(s, 3, peer_columns, COUNT(peer_columns), arena, peer);
}

static enum err read_one_peer(struct stmt *s, struct arena *arena, struct peer *ret_peer)
{
    struct peer peer = {0};
    bool found = stmt_step(s);
    if (found) read_peer(s, arena, &peer);
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    *ret_peer = peer;
    return OK;
}

enum err peer_find(struct db *db, struct arena *arena, str channel, str sender,
                   struct peer *ret_peer)
{
    struct stmt *s = db_prepare(db, "SELECT id, " PEER_NAMES
                                    " FROM channel_peers WHERE channel=?1 AND sender=?2");
    stmt_bind_str(s, 1, channel);
    stmt_bind_str(s, 2, sender);
    return read_one_peer(s, arena, ret_peer);
}

enum err peer_by_id(struct db *db, struct arena *arena, int64_t id, struct peer *ret_peer)
{
    struct stmt *s = db_prepare(db, "SELECT id, " PEER_NAMES " FROM channel_peers WHERE id=?1");
    stmt_bind_i64(s, 1, id);
    return read_one_peer(s, arena, ret_peer);
}

enum err peer_by_thread(struct db *db, struct arena *arena, int64_t thread, struct peer *ret_peer)
{
    struct stmt *s = db_prepare(db, "SELECT id, " PEER_NAMES " FROM channel_peers"
                                    " INDEXED BY channel_peers_by_thread"
                                    " WHERE thread=?1 ORDER BY id LIMIT 1");
    stmt_bind_i64(s, 1, thread);
    return read_one_peer(s, arena, ret_peer);
}

/* From parameter 2 on. */
static void bind_peer(struct stmt *s, const struct peer *peer)
{
    if (peer->thread)
        stmt_bind_i64(s, 2, peer->thread);
    else
        stmt_bind_null(s, 2);
    stmt_bind_i64(s, 3, peer->group);
    columns_bind(s, 4, peer_columns, COUNT(peer_columns), peer);
}

enum err peer_add(struct db *db, struct peer *peer)
{
    struct stmt *s = db_prepare(db, "INSERT INTO channel_peers (id, " PEER_NAMES ")"
                                    " VALUES (?1, ?2, ?3" PEER(COLUMN_MARK) ") RETURNING id");
    stmt_bind_null(s, 1);
    bind_peer(s, peer);
    return add_one(s, &peer->id);
}

enum err peer_update(struct db *db, const struct peer *peer)
{
    struct stmt *s = db_prepare(db, "UPDATE channel_peers SET thread=?2, is_group=?3" PEER(
                                        COLUMN_SET) " WHERE id=?1");
    stmt_bind_i64(s, 1, peer->id);
    bind_peer(s, peer);
    return change_one(db, s);
}

enum err peer_set_used(struct db *db, int64_t id, uint32_t used)
{
    struct stmt *s = db_prepare(db, "UPDATE channel_peers SET used=?2 WHERE id=?1");
    stmt_bind_i64(s, 1, id);
    stmt_bind_i64(s, 2, used);
    return change_one(db, s);
}

enum err peers_forget_tokens(struct db *db, str channel)
{
    struct stmt *s = db_prepare(db, "UPDATE channel_peers SET reply_token='' WHERE channel=?1");
    stmt_bind_str(s, 1, channel);
    return stmt_run(s);
}

enum err peers_behind(struct db *db, struct arena *arena, int64_t after, size_t limit,
                      struct peer_list *ret_list)
{
    struct peer_list list = {0};
    struct stmt *s = db_prepare(db, "SELECT id, " PEER_NAMES " FROM channel_peers"
                                    " WHERE id>?1 AND thread IS NOT NULL AND cursor<(SELECT"
                                    "  last_seq FROM threads WHERE threads.id=thread)"
                                    " ORDER BY id LIMIT ?2");
    stmt_bind_i64(s, 1, after);
    stmt_bind_i64(s, 2, (int64_t)limit);
    while (stmt_step(s)) read_peer(s, arena, ROWS_ADD(arena, list.rows, list.count));
    enum err e = stmt_end(s);
    if (!e) *ret_list = list;
    return e;
}

enum err peers_count(struct db *db, str channel, int64_t *ret_count)
{
    struct stmt *s = db_prepare(db, "SELECT count(*) FROM channel_peers WHERE channel=?1");
    stmt_bind_str(s, 1, channel);
    return read_number(s, ret_count);
}

/* ---- what came in ---- */

#define INBOUND(X)   X(peer) X(state) X(attempts) X(created) X(channel) X(id) X(decision) X(body)
#define COLUMN(name) COLUMN_OF(struct inbound_row, name),
static const struct column inbound_columns[] = {INBOUND(COLUMN)};
#undef COLUMN

enum err inbound_add(struct db *db, struct inbound_row *row)
{
    /* clang-format off */
    struct stmt *s = db_prepare(db, "INSERT INTO channel_inbox (n" INBOUND(COLUMN_NAME) ")"
                                    " VALUES (NULL" INBOUND(COLUMN_MARK) ") RETURNING n");
    /* clang-format on */
    columns_bind(s, 1, inbound_columns, COUNT(inbound_columns), row);
    return add_one(s, &row->n);
}

enum err inbound_next(struct db *db, struct arena *arena, int64_t peer, struct inbound_row *ret_row)
{
    /* clang-format off */
    struct stmt *s = db_prepare(db, "SELECT n" INBOUND(COLUMN_NAME) " FROM channel_inbox"
                                    " INDEXED BY channel_inbox_open"
                                    " WHERE peer=?1 AND state<2 ORDER BY n LIMIT 1");
    /* clang-format on */
    stmt_bind_i64(s, 1, peer);
    struct inbound_row row = {0};
    bool found = stmt_step(s);
    if (found) {
        row.n = stmt_i64(s, 0);
        columns_read(s, 1, inbound_columns, COUNT(inbound_columns), arena, &row);
    }
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    if ((unsigned)row.state > INBOUND_DONE) return ERR_DAMAGED;
    *ret_row = row;
    return OK;
}

enum err inbound_update(struct db *db, const struct inbound_row *row)
{
    struct stmt *s =
        db_prepare(db, "UPDATE channel_inbox SET state=?2, decision=?3, attempts=?4 WHERE n=?1");
    stmt_bind_i64(s, 1, row->n);
    stmt_bind_i64(s, 2, row->state);
    stmt_bind_str(s, 3, row->decision);
    stmt_bind_i64(s, 4, row->attempts);
    return change_one(db, s);
}

enum err inbound_waiting(struct db *db, int64_t peer, size_t *ret_count)
{
    int64_t count = 0;
    struct stmt *s = db_prepare(db, "SELECT count(*) FROM channel_inbox WHERE peer=?1 AND state<2");
    stmt_bind_i64(s, 1, peer);
    enum err e = read_number(s, &count);
    if (!e) *ret_count = (size_t)count;
    return e;
}

enum err inbound_known(struct db *db, str channel, str id, bool *ret_known)
{
    struct stmt *s =
        db_prepare(db, "SELECT count(*) FROM channel_inbox WHERE channel=?1 AND id=?2");
    stmt_bind_str(s, 1, channel);
    stmt_bind_str(s, 2, id);
    return read_any(s, ret_known);
}

enum err inbound_peers(struct db *db, struct arena *arena, str channel, int64_t after, size_t limit,
                       int64_t **ret_peers, size_t *ret_count)
{
    struct stmt *s =
        db_prepare(db, "SELECT DISTINCT peer FROM channel_inbox INDEXED BY channel_inbox_people"
                       " WHERE channel=?1 AND peer>?2 AND state<2 ORDER BY peer LIMIT ?3");
    stmt_bind_str(s, 1, channel);
    stmt_bind_i64(s, 2, after);
    stmt_bind_i64(s, 3, (int64_t)limit);
    return read_ids(s, arena, ret_peers, ret_count);
}

/* ---- what goes out ---- */

/* clang-format off */
#define OUT_CHANGING(X)                                                                   \
    X(state) X(attempts) X(unknowns) X(again) X(since) X(next) X(client_id) X(server_id)
#define OUT(X) X(created) X(interaction) X(file) X(buttons) X(text) X(class) OUT_CHANGING(X)
#define OUT_SELECT "SELECT n, peer" OUT(COLUMN_NAME) " FROM channel_outbox"
#define OUT_INSERT                                                                        \
    "INSERT INTO channel_outbox (peer, channel" OUT(COLUMN_NAME) ") VALUES"               \
    " (?1, (SELECT channel FROM channel_peers WHERE id=?1)" OUT(COLUMN_MARK) ")"
#define OUT_UPDATE "UPDATE channel_outbox SET class=?2" OUT_CHANGING(COLUMN_SET) " WHERE n=?1"
/* clang-format on */

#define COLUMN(name) COLUMN_OF(struct out_row, name),
static const struct column out_columns[] = {OUT(COLUMN)};
static const struct column out_changing[] = {COLUMN(class) OUT_CHANGING(COLUMN)};
#undef COLUMN

static enum err read_out(struct stmt *s, struct arena *arena, struct out_row *ret_row)
{
    struct out_row row = {0};
    bool found = stmt_step(s);
    if (found) {
        row.n = stmt_i64(s, 0);
        row.peer = stmt_i64(s, 1);
        columns_read(s, 2, out_columns, COUNT(out_columns), arena, &row);
    }
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    if ((unsigned)row.class >= OUT_CLASS_COUNT || (unsigned)row.state > OUT_DROPPED)
        return ERR_DAMAGED;
    *ret_row = row;
    return OK;
}

enum err out_add(struct db *db, struct out_row *row)
{
    struct stmt *s = db_prepare(db, OUT_INSERT " RETURNING n");
    stmt_bind_i64(s, 1, row->peer);
    columns_bind(s, 2, out_columns, COUNT(out_columns), row);
    return add_one(s, &row->n);
}

enum err out_first(struct db *db, struct arena *arena, int64_t peer, struct out_row *ret_row)
{
    struct stmt *s =
        db_prepare(db, OUT_SELECT " INDEXED BY channel_outbox_open"
                                  " WHERE peer=?1 AND state<3 ORDER BY state<>1, n LIMIT 1");
    stmt_bind_i64(s, 1, peer);
    return read_out(s, arena, ret_row);
}

enum err out_by_n(struct db *db, struct arena *arena, int64_t n, struct out_row *ret_row)
{
    struct stmt *s = db_prepare(db, OUT_SELECT " WHERE n=?1");
    stmt_bind_i64(s, 1, n);
    return read_out(s, arena, ret_row);
}

enum err out_update(struct db *db, const struct out_row *row)
{
    struct stmt *s = db_prepare(db, OUT_UPDATE);
    stmt_bind_i64(s, 1, row->n);
    columns_bind(s, 2, out_changing, COUNT(out_changing), row);
    return change_one(db, s);
}

enum err out_unpark(struct db *db, int64_t peer, msec now)
{
    struct stmt *s = db_prepare(db, "UPDATE channel_outbox INDEXED BY channel_outbox_open"
                                    " SET state=0, attempts=0, unknowns=0, since=0, next=?2"
                                    " WHERE peer=?1 AND state<3 AND state=2");
    stmt_bind_i64(s, 1, peer);
    stmt_bind_i64(s, 2, now);
    return stmt_run(s);
}

/* They are a few: OUTBOX_WAITING_MAX and one. */
enum err out_drop_one(struct db *db, int64_t peer)
{
    struct stmt *s = db_prepare(db, "UPDATE channel_outbox SET state=4 WHERE n="
                                    "(SELECT n FROM channel_outbox INDEXED BY channel_outbox_open"
                                    "  WHERE peer=?1 AND state<3 AND state<>1"
                                    "  ORDER BY class<>3, class=1, n LIMIT 1)");
    stmt_bind_i64(s, 1, peer);
    return change_one(db, s);
}

enum err out_waiting(struct db *db, int64_t peer, size_t *ret_count)
{
    int64_t count = 0;
    struct stmt *s = db_prepare(db, "SELECT count(*) FROM channel_outbox"
                                    " INDEXED BY channel_outbox_open WHERE peer=?1 AND state<3");
    stmt_bind_i64(s, 1, peer);
    enum err e = read_number(s, &count);
    if (!e) *ret_count = (size_t)count;
    return e;
}

enum err out_peers(struct db *db, struct arena *arena, str channel, int64_t after, size_t limit,
                   int64_t **ret_peers, size_t *ret_count)
{
    struct stmt *s =
        db_prepare(db, "SELECT DISTINCT peer FROM channel_outbox INDEXED BY channel_outbox_going"
                       " WHERE channel=?1 AND peer>?2 AND state<2 ORDER BY peer LIMIT ?3");
    stmt_bind_str(s, 1, channel);
    stmt_bind_i64(s, 2, after);
    stmt_bind_i64(s, 3, (int64_t)limit);
    return read_ids(s, arena, ret_peers, ret_count);
}

enum err out_sending(struct db *db, struct arena *arena, str channel, int64_t **ret_peers,
                     size_t *ret_count)
{
    struct stmt *s =
        db_prepare(db, "SELECT DISTINCT peer FROM channel_outbox INDEXED BY channel_outbox_going"
                       " WHERE channel=?1 AND state<2 AND state=1 ORDER BY peer");
    stmt_bind_str(s, 1, channel);
    return read_ids(s, arena, ret_peers, ret_count);
}

enum err out_of_server_id(struct db *db, struct arena *arena, int64_t peer, str server_id,
                          str *ret_interaction)
{
    struct stmt *s = db_prepare(db, "SELECT interaction FROM channel_outbox"
                                    " INDEXED BY channel_outbox_by_server_id"
                                    " WHERE peer=?1 AND server_id=?2 AND server_id<>''"
                                    " ORDER BY n DESC LIMIT 1");
    stmt_bind_i64(s, 1, peer);
    stmt_bind_str(s, 2, server_id);
    return read_text(s, arena, ret_interaction);
}

enum err out_about(struct db *db, struct arena *arena, int64_t peer, enum out_class class,
                   str interaction, struct out_row *ret_row)
{
    struct stmt *s = db_prepare(db, OUT_SELECT " INDEXED BY channel_outbox_by_interaction"
                                               " WHERE interaction=?2 AND interaction<>''"
                                               " AND peer=?1 AND class=?3 AND state=3"
                                               " ORDER BY n DESC LIMIT 1");
    stmt_bind_i64(s, 1, peer);
    stmt_bind_str(s, 2, interaction);
    stmt_bind_i64(s, 3, class);
    return read_out(s, arena, ret_row);
}

enum err out_urgent(struct db *db, struct arena *arena, int64_t peer, struct out_row *ret_row)
{
    struct stmt *s = db_prepare(db, OUT_SELECT " INDEXED BY channel_outbox_open"
                                               " WHERE peer=?1 AND state<3 AND state<>1"
                                               " AND class IN (1, 2) ORDER BY n LIMIT 1");
    stmt_bind_i64(s, 1, peer);
    return read_out(s, arena, ret_row);
}

/* Questions leave in the order of their numbers. */
enum err out_newest_asked(struct db *db, int64_t peer, int64_t *ret_n)
{
    struct stmt *s = db_prepare(
        db, "SELECT max(coalesce((SELECT max(n) FROM channel_outbox INDEXED BY channel_outbox_asked"
            "  WHERE peer=?1 AND class=1 AND state=3), 0),"
            " coalesce((SELECT max(n) FROM channel_outbox INDEXED BY channel_outbox_open"
            "  WHERE peer=?1 AND state<3 AND class=1 AND (state=1 OR unknowns>0 OR again)), 0))");
    stmt_bind_i64(s, 1, peer);
    return read_number(s, ret_n);
}

enum err out_asked(struct db *db, int64_t peer, str interaction, int64_t newest, bool *ret_asked)
{
    struct stmt *s = db_prepare(db, "SELECT count(*) FROM channel_outbox"
                                    " INDEXED BY channel_outbox_by_interaction"
                                    " WHERE interaction=?2 AND interaction<>'' AND peer=?1"
                                    " AND class=1 AND (state IN (1, 3) OR unknowns>0 OR again)"
                                    " AND n<=?3");
    stmt_bind_i64(s, 1, peer);
    stmt_bind_str(s, 2, interaction);
    stmt_bind_i64(s, 3, newest);
    return read_any(s, ret_asked);
}

enum err out_says(struct db *db, int64_t peer, str interaction, str words, bool *ret_says)
{
    struct stmt *s = db_prepare(db, "SELECT count(*) FROM channel_outbox"
                                    " INDEXED BY channel_outbox_by_interaction"
                                    " WHERE interaction=?2 AND interaction<>'' AND peer=?1"
                                    " AND class=1 AND instr(text, ?3)>0");
    stmt_bind_i64(s, 1, peer);
    stmt_bind_str(s, 2, interaction);
    stmt_bind_str(s, 3, words);
    return read_any(s, ret_says);
}

enum err out_drop_all(struct db *db, int64_t peer)
{
    struct stmt *s = db_prepare(db, "UPDATE channel_outbox SET state=4"
                                    " WHERE peer=?1 AND state<3 AND state<>1");
    stmt_bind_i64(s, 1, peer);
    return stmt_run(s);
}

static enum err run_named(struct stmt *s, str name)
{
    stmt_bind_str(s, 1, name);
    return stmt_run(s);
}

enum err channel_clear(struct db *db, str name)
{
    enum err e = run_named(db_prepare(db, "DELETE FROM channel_codes WHERE peer IN"
                                          " (SELECT id FROM channel_peers WHERE channel=?1)"),
                           name);
    if (!e) e = run_named(db_prepare(db, "DELETE FROM channel_inbox WHERE channel=?1"), name);
    if (!e) e = run_named(db_prepare(db, "DELETE FROM channel_outbox WHERE channel=?1"), name);
    if (!e) e = run_named(db_prepare(db, "DELETE FROM channel_links WHERE channel=?1"), name);
    if (!e) e = run_named(db_prepare(db, "DELETE FROM channel_peers WHERE channel=?1"), name);
    return e;
}

/* The user of a key, if none of theirs is active. */
#define USER_WITHOUT_KEY                                 \
    "(SELECT user FROM api_keys AS mine WHERE id=?1"     \
    " AND NOT EXISTS (SELECT 1 FROM api_keys AS another" \
    " WHERE another.user=mine.user AND another.revoked IS NULL))"

/* What the key allowed, and no other of its user does, is not allowed in their chats. */
#define WITHOUT_ROLE                                              \
    " SET roles=roles&~?2 WHERE user<>'' AND user="               \
    "(SELECT user FROM api_keys AS mine WHERE id=?1 AND roles&?2" \
    " AND NOT EXISTS (SELECT 1 FROM api_keys AS another"          \
    " WHERE another.user=mine.user AND another.revoked IS NULL AND another.roles&?2))"

enum err links_end_by_key(struct db *db, str key)
{
    for (size_t i = 0; i < ROLE_COUNT; i++) {
        if (role_table[i].bit == ROLE_USER) continue;
        struct stmt *peers = db_prepare(db, "UPDATE channel_peers" WITHOUT_ROLE);
        stmt_bind_i64(peers, 2, role_table[i].bit);
        enum err e = run_named(peers, key);
        if (e) return e;
        struct stmt *links = db_prepare(db, "UPDATE channel_links" WITHOUT_ROLE);
        stmt_bind_i64(links, 2, role_table[i].bit);
        e = run_named(links, key);
        if (e) return e;
    }
    enum err e =
        run_named(db_prepare(db, "DELETE FROM channel_links WHERE user=" USER_WITHOUT_KEY), key);
    if (!e)
        e = run_named(db_prepare(db, "UPDATE channel_outbox SET state=4 WHERE state<3 AND state<>1"
                                     " AND peer IN (SELECT id FROM channel_peers"
                                     " WHERE user=" USER_WITHOUT_KEY ")"),
                      key);
    if (!e)
        e = run_named(db_prepare(db, "UPDATE channel_peers SET user='', roles=0, held='',"
                                     " thread_id='', thread=NULL, cursor=0"
                                     " WHERE user=" USER_WITHOUT_KEY),
                      key);
    return e;
}

enum err out_told(struct db *db, int64_t peer, str interaction, bool *ret_told)
{
    struct stmt *s = db_prepare(db, "SELECT count(*) FROM channel_outbox"
                                    " INDEXED BY channel_outbox_by_interaction"
                                    " WHERE interaction=?2 AND interaction<>''"
                                    " AND peer=?1 AND class=3 AND state IN (3, 4)");
    stmt_bind_i64(s, 1, peer);
    stmt_bind_str(s, 2, interaction);
    return read_any(s, ret_told);
}

enum err out_drop_about(struct db *db, int64_t peer, str interaction, bool *ret_dropped)
{
    struct stmt *s = db_prepare(db, "UPDATE channel_outbox SET state=4"
                                    " WHERE peer=?1 AND interaction=?2 AND interaction<>''"
                                    " AND class=1 AND state IN (0, 2)");
    stmt_bind_i64(s, 1, peer);
    stmt_bind_str(s, 2, interaction);
    enum err e = stmt_run(s);
    if (!e) *ret_dropped = db_changes(db) > 0;
    return e;
}

enum err out_last_question(struct db *db, struct arena *arena, int64_t peer, str *ret_interaction)
{
    struct stmt *s = db_prepare(db, "SELECT interaction FROM channel_outbox"
                                    " INDEXED BY channel_outbox_asked"
                                    " WHERE peer=?1 AND class=1 AND state=3"
                                    " ORDER BY n DESC LIMIT 1");
    stmt_bind_i64(s, 1, peer);
    return read_text(s, arena, ret_interaction);
}

enum err out_count(struct db *db, str channel, int64_t *ret_waiting, int64_t *ret_parked)
{
    int64_t waiting = 0, parked = 0;
    struct stmt *going = db_prepare(db, "SELECT count(*) FROM channel_outbox"
                                        " INDEXED BY channel_outbox_going"
                                        " WHERE channel=?1 AND state<2");
    stmt_bind_str(going, 1, channel);
    enum err e = read_number(going, &waiting);
    if (e) return e;
    struct stmt *later = db_prepare(db, "SELECT count(*) FROM channel_outbox"
                                        " INDEXED BY channel_outbox_parked"
                                        " WHERE channel=?1 AND state=2");
    stmt_bind_str(later, 1, channel);
    e = read_number(later, &parked);
    if (e) return e;
    *ret_waiting = waiting;
    *ret_parked = parked;
    return OK;
}

/* ---- forgetting ---- */

enum err channel_rows_expire(struct db *db, msec before, int64_t *ret_count)
{
    /* Parameters: `before`, which codes do not ask for, and the most. A question stays while it is
     * open: that it was asked is what makes a reply its answer, and people may take longer than a
     * week. Codes are looked at one by one: they are few, for hardly anybody types a wrong one. */
    static const char *const statements[] = {
        "DELETE FROM channel_inbox WHERE n IN"
        " (SELECT n FROM channel_inbox INDEXED BY channel_inbox_done"
        "  WHERE state=2 AND created<?1 ORDER BY created LIMIT ?2)",
        "DELETE FROM channel_outbox WHERE n IN"
        " (SELECT n FROM channel_outbox INDEXED BY channel_outbox_done"
        "  WHERE state>=3 AND created<?1 AND NOT (class=1 AND EXISTS"
        "   (SELECT 1 FROM interactions WHERE id=channel_outbox.interaction AND status=0))"
        "  ORDER BY created LIMIT ?2)",
        "DELETE FROM channel_links WHERE hash IN"
        " (SELECT hash FROM channel_links INDEXED BY channel_links_by_expiry"
        "  WHERE expires<?1 ORDER BY expires LIMIT ?2)",
        "DELETE FROM channel_codes WHERE (peer, interaction) IN"
        " (SELECT peer, interaction FROM channel_codes WHERE NOT EXISTS"
        "  (SELECT 1 FROM interactions WHERE id=channel_codes.interaction AND status=0) LIMIT ?2)",
    };
    int64_t count = 0;
    for (size_t i = 0; i < COUNT(statements); i++) {
        struct stmt *s = db_prepare_static(db, statements[i]);
        stmt_bind_i64(s, 1, before);
        stmt_bind_i64(s, 2, CHANNEL_EXPIRE_MAX);
        enum err e = stmt_run(s);
        if (e) return e;
        count += db_changes(db);
    }
    *ret_count = count;
    return OK;
}

/* ---- approval codes ---- */

enum err code_tries(struct db *db, int64_t peer, str interaction, uint32_t *ret_tries)
{
    int64_t tries = 0;
    struct stmt *s =
        db_prepare(db, "SELECT tries FROM channel_codes WHERE peer=?1 AND interaction=?2");
    stmt_bind_i64(s, 1, peer);
    stmt_bind_str(s, 2, interaction);
    enum err e = read_number(s, &tries);
    if (!e) *ret_tries = (uint32_t)tries;
    return e;
}

enum err code_wrong(struct db *db, int64_t peer, str interaction)
{
    struct stmt *s = db_prepare(db, "INSERT INTO channel_codes (peer, interaction, tries)"
                                    " VALUES (?1, ?2, 1) ON CONFLICT (peer, interaction)"
                                    " DO UPDATE SET tries=min(tries+1, 0x7fffffff)");
    stmt_bind_i64(s, 1, peer);
    stmt_bind_str(s, 2, interaction);
    return stmt_run(s);
}

/* ---- links ---- */

enum err link_add(struct db *db, const struct link_code *code)
{
    struct stmt *s =
        db_prepare(db, "INSERT INTO channel_links (hash, channel, user, roles, expires)"
                       " VALUES (?1, ?2, ?3, ?4, ?5)");
    stmt_bind_str(s, 1, code->hash);
    stmt_bind_str(s, 2, code->channel);
    stmt_bind_str(s, 3, code->user);
    stmt_bind_i64(s, 4, code->roles);
    stmt_bind_i64(s, 5, code->expires);
    return stmt_run(s);
}

enum err link_exists(struct db *db, str channel, msec now, bool *ret_exists)
{
    struct stmt *s = db_prepare(db, "SELECT count(*) FROM channel_links"
                                    " WHERE expires>?2 AND channel=?1");
    stmt_bind_str(s, 1, channel);
    stmt_bind_i64(s, 2, now);
    return read_any(s, ret_exists);
}

enum err link_known(struct db *db, str channel, str hash, msec now, bool *ret_known)
{
    struct stmt *s = db_prepare(db, "SELECT count(*) FROM channel_links"
                                    " WHERE hash=?1 AND channel=?2 AND expires>?3");
    stmt_bind_str(s, 1, hash);
    stmt_bind_str(s, 2, channel);
    stmt_bind_i64(s, 3, now);
    return read_any(s, ret_known);
}

/* Typed in another channel it stays where it is. */
enum err link_take(struct db *db, struct arena *arena, str channel, str hash, msec now,
                   struct link_code *ret_code)
{
    struct stmt *s =
        db_prepare(db, "DELETE FROM channel_links WHERE hash=?1 AND channel=?2"
                       " AND expires>?3 RETURNING hash, channel, user, roles, expires");
    stmt_bind_str(s, 1, hash);
    stmt_bind_str(s, 2, channel);
    stmt_bind_i64(s, 3, now);
    struct link_code code = {0};
    bool found = stmt_step(s);
    if (found)
        code = (struct link_code){
            .hash = arena_str(arena, stmt_str(s, 0)),
            .channel = arena_str(arena, stmt_str(s, 1)),
            .user = arena_str(arena, stmt_str(s, 2)),
            .roles = (unsigned)stmt_i64(s, 3),
            .expires = stmt_i64(s, 4),
        };
    enum err e = stmt_run(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    *ret_code = code;
    return OK;
}
