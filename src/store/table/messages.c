/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `messages`: a thread's history, kept in the order of the facts that added them, so that
 * a page is one stretch of it wherever it begins. A fact adds one message; its number is the
 * message's place and serves as the cursor between pages.
 */
#include "base/limits.h"
#include "base/rows.h"
#include "store/db/hot.h"
#include "store/db/sqlite.h"
#include "store/table/thread_row.h"

/* clang-format off */
#define COLUMN(name) COLUMN_OF(struct message, name),
static const struct column columns[] = {
    COLUMN(seq) COLUMN(id) COLUMN(role) COLUMN(run_id) COLUMN(content) COLUMN(metadata)
    COLUMN(tool_calls) COLUMN(tool) COLUMN(usage) COLUMN(provider_data) COLUMN(plain) COLUMN(ui)
    COLUMN(hints) COLUMN(attachments) COLUMN(created)};
#undef COLUMN
/* clang-format on */
static const struct hot_shape shape = HOT_SHAPE(struct message, columns);

size_t message_bytes(const struct message *message)
{
    return message->plain.len + message->content.len + message->metadata.len +
           message->tool_calls.len + message->ui.len + message->hints.len +
           message->provider_data.len;
}

/* ---- a short history, as it is kept in memory ---- */

static enum err read_all(struct db *db, struct arena *arena, int64_t thread,
                         struct hot_rows *ret_rows);

/* History is kept from the start of its thread on, and as long as it is short. */
static bool kept_history(struct db *db, struct arena *arena, int64_t thread,
                         struct message_list *ret_list)
{
    struct hot_rows rows;
    if (!hot_get(db, HOT_MESSAGES, thread, &shape, arena, read_all, &rows)) return false;
    *ret_list = (struct message_list){.messages = rows.rows, .count = rows.count};
    return true;
}

static bool card_elsewhere(const struct message *message)
{
    return str_eq(message->role, STR("clarify")) || str_eq(message->role, STR("interaction"));
}

static void keep_added(struct db *db, int64_t thread, const struct message *message)
{
    struct message row = *message;
    size_t count;
    if (!hot_has(db, HOT_MESSAGES, thread, &count)) return;
    if (card_elsewhere(message)) row.ui = STR_EMPTY; /* it comes with its interaction */
    if (count < HOT_MESSAGES_MAX)
        hot_append(db, HOT_MESSAGES, thread, &shape, &row);
    else
        hot_drop(db, HOT_MESSAGES, thread);
}

enum message_part { MESSAGE_METADATA, MESSAGE_UI };

static str *part_of(struct message *message, enum message_part part)
{
    if (part == MESSAGE_METADATA) return &message->metadata;
    return card_elsewhere(message) ? &message->ui : NULL;
}

/* Mostly it is not kept, or says that already: nothing is copied for that. */
static void keep_changed(struct db *db, int64_t thread, str id, enum message_part part, str text)
{
    AUTO(arena_done) struct arena arena;
    struct hot_rows rows;
    size_t at = 0;
    arena_init(&arena);
    if (!hot_look(db, HOT_MESSAGES, thread, &shape, NULL, &rows)) return;
    struct message *messages = rows.rows;
    while (at < rows.count && !str_eq(messages[at].id, id)) at++;
    const str *before = at < rows.count ? part_of(&messages[at], part) : NULL;
    if (!before || str_eq(*before, text)) return;
    if (!hot_get(db, HOT_MESSAGES, thread, &shape, &arena, NULL, &rows)) return;
    messages = rows.rows;
    *part_of(&messages[at], part) = text;
    hot_put(db, HOT_MESSAGES, thread, &shape, messages, rows.count);
}

void message_keep_ui(struct db *db, int64_t thread, str id, str ui)
{
    keep_changed(db, thread, id, MESSAGE_UI, ui);
}

/* ---- one ---- */

enum err message_add(struct db *db, int64_t thread, const struct message *message)
{
    struct stmt *s = db_prepare(
        db, "INSERT INTO messages (thread, seq, id, role, run_id, created, plain, metadata, usage,"
            " tool_calls, content, provider_data, tool, ui, hints, attachments)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, message->seq);
    stmt_bind_str(s, 3, message->id);
    stmt_bind_str(s, 4, message->role);
    stmt_bind_str(s, 5, message->run_id);
    stmt_bind_i64(s, 6, message->created);
    stmt_bind_str(s, 7, message->plain);
    stmt_bind_str(s, 8, message->metadata);
    stmt_bind_str(s, 9, message->usage);
    stmt_bind_str(s, 10, message->tool_calls);
    stmt_bind_str(s, 11, message->content);
    stmt_bind_str(s, 12, message->provider_data);
    stmt_bind_str(s, 13, message->tool);
    stmt_bind_str(s, 14, message->ui);
    stmt_bind_str(s, 15, message->hints);
    stmt_bind_str(s, 16, message->attachments);
    enum err e = stmt_run(s);
    if (!e) keep_added(db, thread, message);
    return e;
}

enum err message_exists(struct db *db, int64_t thread, str id, bool *ret_exists)
{
    struct stmt *s = db_prepare(db, "SELECT 1 FROM messages WHERE thread=?1 AND id=?2");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_str(s, 2, id);
    bool found = stmt_step(s);
    enum err e = stmt_end(s);
    if (!e) *ret_exists = found;
    return e;
}

enum err message_says(struct db *db, int64_t thread, str id, str plain, bool *ret_same)
{
    struct hot_rows rows;
    if (hot_look(db, HOT_MESSAGES, thread, &shape, read_all, &rows)) {
        const struct message *messages = rows.rows;
        for (size_t i = 0; i < rows.count; i++) {
            if (!str_eq(messages[i].id, id)) continue;
            *ret_same = str_eq(messages[i].plain, plain);
            return OK;
        }
        return ERR_NOT_FOUND;
    }
    struct stmt *s = db_prepare(db, "SELECT plain=?3 FROM messages WHERE thread=?1 AND id=?2");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_str(s, 2, id);
    stmt_bind_str(s, 3, plain);
    bool found = stmt_step(s), same = found && stmt_i64(s, 0);
    enum err e = stmt_end(s);
    if (e || !found) return e ? e : ERR_NOT_FOUND;
    *ret_same = same;
    return OK;
}

enum err message_set_metadata(struct db *db, int64_t thread, str id, str metadata)
{
    struct stmt *s = db_prepare(db, "UPDATE messages SET metadata=?3 WHERE thread=?1 AND id=?2");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_str(s, 2, id);
    stmt_bind_str(s, 3, metadata);
    enum err e = stmt_run(s);
    if (!e && !db_changes(db)) return ERR_NOT_FOUND;
    if (!e) keep_changed(db, thread, id, MESSAGE_METADATA, metadata);
    return e;
}

/* ---- pages ---- */

/* The card of an interaction's row is the interaction's. */
#define MESSAGE_COLUMNS                                                                     \
    "seq, id, role, run_id, created, plain, metadata, usage, tool_calls, content,"          \
    " provider_data, tool, iif(role IN ('clarify', 'interaction'),"                         \
    "  coalesce((SELECT ui FROM interactions WHERE interactions.id=messages.id), ''), ui)," \
    " hints, attachments"

static void message_read(struct stmt *s, struct arena *arena, struct message *message)
{
    *message = (struct message){
        .seq = stmt_i64(s, 0),
        .id = arena_str(arena, stmt_str(s, 1)),
        .role = arena_str(arena, stmt_str(s, 2)),
        .run_id = arena_str(arena, stmt_str(s, 3)),
        .created = stmt_i64(s, 4),
        .plain = arena_str(arena, stmt_str(s, 5)),
        .metadata = arena_str(arena, stmt_str(s, 6)),
        .usage = arena_str(arena, stmt_str(s, 7)),
        .tool_calls = arena_str(arena, stmt_str(s, 8)),
        .content = arena_str(arena, stmt_str(s, 9)),
        .provider_data = arena_str(arena, stmt_str(s, 10)),
        .tool = arena_str(arena, stmt_str(s, 11)),
        .ui = arena_str(arena, stmt_str(s, 12)),
        .hints = arena_str(arena, stmt_str(s, 13)),
        .attachments = arena_str(arena, stmt_str(s, 14)),
    };
}

enum err message_find(struct db *db, struct arena *arena, int64_t thread, str id,
                      struct message *ret_message)
{
    struct stmt *s =
        db_prepare(db, "SELECT " MESSAGE_COLUMNS " FROM messages WHERE thread=?1 AND id=?2");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_str(s, 2, id);
    struct message message;
    bool found = stmt_step(s);
    if (found) message_read(s, arena, &message);
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    *ret_message = message;
    return OK;
}

static void messages_reverse(struct message_list *list)
{
    for (size_t i = 0; i < list->count / 2; i++) {
        struct message *a = &list->messages[i], *b = &list->messages[list->count - 1 - i];
        struct message swapped = *a;
        *a = *b;
        *b = swapped;
    }
}

static enum err read_all(struct db *db, struct arena *arena, int64_t thread,
                         struct hot_rows *ret_rows)
{
    struct message_list list = {0};
    struct stmt *s = db_prepare(db, "SELECT " MESSAGE_COLUMNS " FROM messages"
                                    " WHERE thread=?1 ORDER BY seq, id LIMIT 1000");
    stmt_bind_i64(s, 1, thread);
    while (stmt_step(s)) message_read(s, arena, ROWS_ADD(arena, list.messages, list.count));
    enum err e = stmt_end(s);
    if (!e) *ret_rows = (struct hot_rows){.rows = list.messages, .count = list.count};
    return e;
}

/* The same page out of a history that is whole, and shorter than a page may be. */
static void page_of(const struct message_list *all, int64_t before, int64_t after, size_t limit,
                    struct message_list *ret_list)
{
    size_t first = 0, end = all->count;
    while (after && first < end && all->messages[first].seq <= after) first++;
    while (!after && before && end > first && all->messages[end - 1].seq >= before) end--;
    bool more = end - first > limit;
    if (more && after) end = first + limit;
    if (more && !after) first = end - limit;
    *ret_list = (struct message_list){
        .messages = all->messages + first, .count = end - first, .more = more};
}

static struct stmt *page_statement(struct db *db, int64_t before, int64_t after)
{
    struct stmt *s = after ? db_prepare(db, "SELECT " MESSAGE_COLUMNS " FROM messages"
                                            " WHERE thread=?1 AND seq>?2"
                                            " ORDER BY seq, id LIMIT ?3")
                           : db_prepare(db, "SELECT " MESSAGE_COLUMNS " FROM messages"
                                            " WHERE thread=?1 AND seq<?2"
                                            " ORDER BY seq DESC, id DESC LIMIT ?3");
    if (after)
        stmt_bind_i64(s, 2, after);
    else
        stmt_bind_i64(s, 2, before ? before : INT64_MAX);
    return s;
}

enum err message_page(struct db *db, struct arena *arena, int64_t thread, int64_t before,
                      int64_t after, size_t limit, struct message_list *ret_list)
{
    struct message_list list = {0};
    if (kept_history(db, arena, thread, &list)) {
        page_of(&list, before, after, limit, ret_list);
        return OK;
    }
    struct stmt *s = page_statement(db, before, after);
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 3, (int64_t)limit + 1);
    size_t bytes = 0;
    while (!list.more && stmt_step(s)) {
        list.more = list.count == limit || bytes > MESSAGE_PAGE_BYTES_MAX;
        if (list.more) break;
        struct message *message = ROWS_ADD(arena, list.messages, list.count);
        message_read(s, arena, message);
        bytes += message->content.len + message->plain.len + message->tool.len +
                 message->tool_calls.len + message->metadata.len + message->ui.len;
    }
    enum err e = stmt_end(s);
    if (e) return e;
    if (!after) messages_reverse(&list);
    *ret_list = list;
    return OK;
}

/* ---- places in time ---- */

/* The first message at or behind a place; seq 0 if there is none. */
static enum err message_at(struct db *db, int64_t thread, int64_t place, int64_t *ret_seq,
                           msec *ret_created)
{
    struct stmt *s = db_prepare(db, "SELECT seq, created FROM messages"
                                    " WHERE thread=?1 AND seq>=?2 ORDER BY seq LIMIT 1");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, place);
    bool found = stmt_step(s);
    int64_t seq = found ? stmt_i64(s, 0) : 0;
    msec created = found ? stmt_i64(s, 1) : 0;
    enum err e = stmt_end(s);
    if (e) return e;
    *ret_seq = seq;
    *ret_created = created;
    return OK;
}

static struct message tail_read(struct stmt *s, struct arena *arena)
{
    return (struct message){
        .seq = stmt_i64(s, 0),
        .id = arena_str(arena, stmt_str(s, 1)),
        .role = arena_str(arena, stmt_str(s, 2)),
        .run_id = arena_str(arena, stmt_str(s, 3)),
        .plain = arena_str(arena, stmt_str(s, 4)),
        .metadata = arena_str(arena, stmt_str(s, 5)),
        .tool_calls = arena_str(arena, stmt_str(s, 6)),
        .content = arena_str(arena, stmt_str(s, 7)),
        .provider_data = arena_str(arena, stmt_str(s, 8)),
        .hints = arena_str(arena, stmt_str(s, 9)),
        .attachments = arena_str(arena, stmt_str(s, 10)),
    };
}

/* The same of a history that is whole. */
static void tail_of(struct message_list *all, int64_t from, size_t limit,
                    struct message_list *ret_list)
{
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        const struct message *row = &all->messages[i];
        if (row->seq < from || str_eq(row->role, STR("reasoning")) || card_elsewhere(row)) continue;
        struct message told = *row;
        if (!str_eq(row->role, STR("user"))) told.content = STR_EMPTY;
        told.usage = told.tool = told.ui = STR_EMPTY;
        told.created = 0;
        all->messages[count++] = told;
    }
    size_t left_out = count > limit ? count - limit : 0;
    *ret_list = (struct message_list){
        .messages = all->messages + left_out, .count = count - left_out, .more = left_out > 0};
}

enum err message_tail(struct db *db, struct arena *arena, int64_t thread, int64_t from,
                      size_t limit, struct message_list *ret_list)
{
    struct message_list list = {0};
    if (kept_history(db, arena, thread, &list)) {
        tail_of(&list, from, limit, ret_list);
        return OK;
    }
    struct stmt *s =
        db_prepare(db, "SELECT seq, id, role, run_id, plain, metadata, tool_calls,"
                       " iif(role='user', content, ''), provider_data, hints, attachments"
                       " FROM messages WHERE thread=?1 AND seq>=?2"
                       " AND role NOT IN ('reasoning', 'clarify', 'interaction')"
                       " ORDER BY seq DESC, id DESC LIMIT ?3");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, from);
    stmt_bind_i64(s, 3, (int64_t)limit + 1);
    for (size_t bytes = 0; !list.more && stmt_step(s);) {
        list.more = list.count == limit || bytes > RUN_CONTEXT_READ_BYTES_MAX;
        if (list.more) break;
        struct message *row = ROWS_ADD(arena, list.messages, list.count);
        *row = tail_read(s, arena);
        bytes += row->plain.len + row->tool_calls.len + row->provider_data.len + row->content.len;
    }
    enum err e = stmt_end(s);
    if (e) return e;
    messages_reverse(&list);
    *ret_list = list;
    return OK;
}

/* The place behind the last message. */
static enum err message_end(struct db *db, int64_t thread, int64_t *ret_end)
{
    struct stmt *s = db_prepare(db, "SELECT seq FROM messages WHERE thread=?1"
                                    " ORDER BY seq DESC LIMIT 1");
    stmt_bind_i64(s, 1, thread);
    int64_t end = stmt_step(s) ? stmt_i64(s, 0) + 1 : 1;
    enum err e = stmt_end(s);
    if (!e) *ret_end = end;
    return e;
}

/* Halving the places, because time grows along them: a look at a handful of rows, and no index that
 * every message would pay for. Where the clock was set back the answer is a place near it.
 * Everything before `low` is older than the time; everything from `high` on is not. */
enum err message_place(struct db *db, int64_t thread, msec before, int64_t *ret_seq)
{
    int64_t low = 1, high = 1;
    enum err e = message_end(db, thread, &high);
    while (!e && low < high) {
        int64_t middle = low + (high - low) / 2, seq = 0;
        msec created = 0;
        e = message_at(db, thread, middle, &seq, &created);
        if (!e && seq && created < before)
            low = seq + 1;
        else
            high = middle;
    }
    if (!e) *ret_seq = low;
    return e;
}
