/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `interactions`: what runs wait for; the inbox and the clocks. Open rows may be a
 * million, so nothing here looks at all of them: every question is a stretch of an index.
 *
 * A list for somebody is made of walks, each down one index: one for what they own, one for each
 * role they have, and these for each status if any will do.
 *
 *     owner "ann", open        9   7   4   2
 *     role "approver", open    8   7   5   3   1        7 is hers, and waits for her role
 *     list                     9 8 7 5 4 ...            newest first, each once
 *
 * A walk reads the index alone and stops when it has enough, or has looked at its share of
 * INBOX_LOOK_MAX rows that the filter does not want. Below the row where a walk stopped nothing is
 * known about it: the highest such row is the floor of the page, and what lies below is left to
 * the next page.
 *
 * To add a column: a migration, a member of struct interaction, and its name in COLUMNS, or in
 * OUTCOME if it is known only at the end.
 */
#include "store/table/interactions.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/rows.h"
#include "store/db/columns.h"
#include "store/db/hot.h"
#include "store/db/sqlite.h"
#include "store/table/thread_row.h"

/* The statements below have these numbers in their text. */
_Static_assert(INTERACTION_OPEN == 0 && INTERACTION_RESOLVED == 1 && INTERACTION_CANCELED == 2 &&
                   INTERACTION_EXPIRED == 3 && INTERACTION_SUPERSEDED == 4,
               "numbers that databases hold");
_Static_assert(INTERACTION_ASK_USER == 0 && INTERACTION_CONFIRM == 1 &&
                   INTERACTION_CONNECTION_LOST == 2 && INTERACTION_UNCERTAIN == 3,
               "numbers that databases hold");

#define INTERACTION_ROW(value, name) name,
static const char *const types[INTERACTION_TYPE_COUNT] = {INTERACTION_TYPES(INTERACTION_ROW)};
static const char *const statuses[INTERACTION_STATUS_COUNT] = {
    INTERACTION_STATUSES(INTERACTION_ROW)};
#undef INTERACTION_ROW

const char *interaction_type_name(enum interaction_type type)
{
    assert((unsigned)type < INTERACTION_TYPE_COUNT);
    return types[type];
}

const char *interaction_status_name(enum interaction_status status)
{
    assert((unsigned)status < INTERACTION_STATUS_COUNT);
    return statuses[status];
}

/* ---- columns ---- */

/* clang-format off */
#define OUTCOME(X) X(settled) X(answered_by) X(via) X(text) X(answer) X(ui)
#define COLUMNS(X)                                                                           \
    X(thread) X(run) X(type) X(seq) X(opened) X(expires) X(resume_step) X(allow_freeform)    \
    X(multi) X(id) X(owner) X(agent) X(thread_id) X(run_id) X(call_id) X(approver) X(locale) \
    X(resume_node) X(resume_phase) X(tool) X(risk) X(binding) X(display_text) X(question)    \
    X(summary) X(choices) X(fields) X(metadata) X(args_schema) X(args) X(asked_key)   \
    X(status) OUTCOME(X)
/* clang-format on */

#define COLUMN(name) COLUMN_OF(struct interaction, name),
static const struct column columns[] = {COLUMNS(COLUMN)};
static const struct column outcome[] = {COLUMN(status) OUTCOME(COLUMN)};
#undef COLUMN

/* clang-format off */
#define SELECT "SELECT n" COLUMNS(COLUMN_NAME) " FROM interactions"
#define INSERT \
    "INSERT INTO interactions (n" COLUMNS(COLUMN_NAME) ") VALUES (NULL" COLUMNS(COLUMN_MARK) ")"
#define SETTLE \
    "UPDATE interactions SET status=?2" OUTCOME(COLUMN_SET) " WHERE id=?1 AND status=0"
/* clang-format on */

void interaction_copy(struct arena *arena, const struct interaction *interaction,
                      struct interaction *ret_copy)
{
    struct interaction copy = *interaction;
    for (size_t i = 0; i < COUNT(columns); i++) {
        str *text = (str *)(void *)((char *)&copy + columns[i].offset);
        if (columns[i].kind == COLUMN_STR) *text = arena_str(arena, *text);
    }
    *ret_copy = copy;
}

/* A number nobody knows comes from a damaged file. */
static enum err read_row(struct stmt *s, struct arena *arena, struct interaction *interaction)
{
    interaction->n = stmt_i64(s, 0);
    columns_read(s, 1, columns, COUNT(columns), arena, interaction);
    bool known = (unsigned)interaction->type < INTERACTION_TYPE_COUNT &&
                 (unsigned)interaction->status < INTERACTION_STATUS_COUNT;
    return known ? OK : ERR_DAMAGED;
}

static enum err read_one(struct stmt *s, struct arena *arena, struct interaction *ret_interaction)
{
    struct interaction interaction = {0};
    bool found = stmt_step(s);
    enum err e = found ? read_row(s, arena, &interaction) : OK;
    enum err ended = stmt_end(s);
    if (ended || e) return ended ? ended : e;
    if (!found) return ERR_NOT_FOUND;
    *ret_interaction = interaction;
    return OK;
}

static enum err read_list(struct stmt *s, struct arena *arena, size_t limit,
                          struct interaction_list *ret_list)
{
    struct interaction_list list = {0};
    enum err e = OK;
    while (!e && stmt_step(s)) {
        list.more = list.count == limit;
        if (list.more) break;
        e = read_row(s, arena, ROWS_ADD(arena, list.rows, list.count));
    }
    enum err ended = stmt_end(s);
    if (ended || e) return ended ? ended : e;
    *ret_list = list;
    return OK;
}

/* ---- one ---- */

/* A deleted thread's rows are still there for a while, and not to be found. */
#define LIVE " AND EXISTS (SELECT 1 FROM threads WHERE threads.id=thread AND threads.owner<>'')"

static const struct hot_shape shape = HOT_SHAPE(struct interaction, columns);

enum err interaction_add(struct db *db, struct interaction *interaction)
{
    struct stmt *s = db_prepare(db, INSERT);
    columns_bind(s, 1, columns, COUNT(columns), interaction);
    enum err e = stmt_run(s);
    if (e) return e;
    interaction->n = db_last_id(db);
    if (interaction->status == INTERACTION_OPEN)
        hot_append(db, HOT_OPEN, interaction->thread, &shape, interaction);
    message_keep_ui(db, interaction->thread, interaction->id, interaction->ui);
    return OK;
}

enum err interaction_find(struct db *db, struct arena *arena, str id,
                          struct interaction *ret_interaction)
{
    struct stmt *s = db_prepare(db, SELECT " WHERE id=?1" LIVE);
    stmt_bind_str(s, 1, id);
    return read_one(s, arena, ret_interaction);
}

enum err interaction_brief(struct db *db, struct arena *arena, str id,
                           struct interaction *ret_interaction)
{
    struct stmt *s = db_prepare(db, "SELECT n, thread, owner, approver, call_id"
                                    " FROM interactions WHERE id=?1" LIVE);
    stmt_bind_str(s, 1, id);
    struct interaction brief = {.metadata = STR("{}")};
    bool found = stmt_step(s);
    if (found) {
        brief.n = stmt_i64(s, 0);
        brief.thread = stmt_i64(s, 1);
        brief.id = arena_str(arena, id);
        brief.owner = arena_str(arena, stmt_str(s, 2));
        brief.approver = arena_str(arena, stmt_str(s, 3));
        brief.call_id = arena_str(arena, stmt_str(s, 4));
    }
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    *ret_interaction = brief;
    return OK;
}

enum err interaction_of_call(struct db *db, struct arena *arena, int64_t thread, str call_id,
                             struct interaction *ret_interaction)
{
    struct stmt *s = db_prepare(db, SELECT " INDEXED BY interactions_by_thread"
                                           " WHERE thread=?1 AND call_id=?2"
                                           " ORDER BY n DESC LIMIT 1");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_str(s, 2, call_id);
    return read_one(s, arena, ret_interaction);
}

/* One open interaction fewer. */
static void keep_settled(struct db *db, const struct interaction *settled)
{
    AUTO(arena_done) struct arena arena;
    struct hot_rows rows;
    size_t count = 0;
    arena_init(&arena);
    message_keep_ui(db, settled->thread, settled->id, settled->ui);
    if (!hot_get(db, HOT_OPEN, settled->thread, &shape, &arena, NULL, &rows)) return;
    struct interaction *open = rows.rows;
    for (size_t i = 0; i < rows.count; i++)
        if (!str_eq(open[i].id, settled->id)) open[count++] = open[i];
    hot_put(db, HOT_OPEN, settled->thread, &shape, open, count);
}

enum err interaction_settle(struct db *db, const struct interaction *interaction)
{
    assert(interaction->status != INTERACTION_OPEN);
    struct stmt *s = db_prepare(db, SETTLE);
    stmt_bind_str(s, 1, interaction->id);
    columns_bind(s, 2, outcome, COUNT(outcome), interaction);
    enum err e = stmt_run(s);
    if (!e && !db_changes(db)) return ERR_BUSY;
    if (!e) keep_settled(db, interaction);
    return e;
}

enum err interaction_supersede(struct db *db, struct arena *arena, int64_t thread, str call_id,
                               struct interaction *ret_interaction)
{
    struct stmt *s =
        db_prepare(db, "UPDATE interactions SET status=4"
                       " WHERE thread=?1 AND status=1 AND type=1 AND call_id=?2 RETURNING id");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_str(s, 2, call_id);
    str id = stmt_step(s) ? arena_str(arena, stmt_str(s, 0)) : STR_EMPTY;
    enum err e = stmt_run(s);
    if (e) return e;
    return id.len ? interaction_find(db, arena, id, ret_interaction) : ERR_BUSY;
}

enum err interaction_set_expiry(struct db *db, str id, msec expires)
{
    struct stmt *s = db_prepare(db, "UPDATE interactions SET expires=?2"
                                    " WHERE id=?1 AND status=0 RETURNING thread");
    stmt_bind_str(s, 1, id);
    stmt_bind_i64(s, 2, expires);
    int64_t thread = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_run(s);
    if (e || !thread) return e ? e : ERR_BUSY;
    hot_drop(db, HOT_OPEN, thread);
    return OK;
}

/* ---- the open ones of a run or a thread ---- */

static enum err read_open(struct db *db, struct arena *arena, int64_t thread,
                          struct hot_rows *ret_rows)
{
    struct interaction_list list;
    struct stmt *s = db_prepare(db, SELECT " INDEXED BY interactions_by_thread"
                                           " WHERE thread=?1 AND status=0 ORDER BY n");
    stmt_bind_i64(s, 1, thread);
    enum err e = read_list(s, arena, STATE_IDS_MAX, &list);
    if (!e)
        *ret_rows = (struct hot_rows){.rows = list.rows, .count = list.count, .unkept = list.more};
    return e;
}

enum err interactions_of_thread(struct db *db, struct arena *arena, int64_t thread,
                                struct interaction_list *ret_list)
{
    struct hot_rows rows;
    enum err e = hot_rows(db, HOT_OPEN, thread, &shape, arena, read_open, &rows);
    if (!e)
        *ret_list =
            (struct interaction_list){.rows = rows.rows, .count = rows.count, .more = rows.unkept};
    return e;
}

/* The others of the run's thread are settled, or its own: a thread has one run at a time. */
enum err interactions_of_run(struct db *db, struct arena *arena, int64_t thread, int64_t run,
                             struct interaction_list *ret_list)
{
    struct interaction_list list;
    enum err e = interactions_of_thread(db, arena, thread, &list);
    if (e) return e;
    size_t count = 0;
    for (size_t i = 0; i < list.count; i++)
        if (list.rows[i].run == run) list.rows[count++] = list.rows[i];
    *ret_list = (struct interaction_list){.rows = list.rows, .count = count};
    return OK;
}

/* ---- pages ---- */

struct page {
    const struct interaction_filter *filter;
    struct arena *arena;
    size_t look;   /* rows that each walk may look at */
    int64_t floor; /* everything from here up has been seen; 0: everything */
    int64_t *found;
    size_t count;
};

static void walk_rows(struct page *page, struct stmt *s)
{
    const struct interaction_filter *filter = page->filter;
    size_t looked = 0, wanted = 0;
    int64_t n = 0;
    while (stmt_step(s)) {
        bool enough = looked == page->look || wanted > filter->limit;
        if (enough && page->floor < n) page->floor = n;
        if (enough) return;
        n = stmt_i64(s, 0);
        looked++;
        if (filter->agent.len && !str_eq(stmt_str(s, 1), filter->agent)) continue;
        *ROWS_ADD(page->arena, page->found, page->count) = n;
        wanted++;
    }
}

/* Down one index, below the page before. Parameter 1 is the key's and bound already. */
static enum err walk(struct page *page, struct stmt *s, int status)
{
    int64_t before = page->filter->before;
    stmt_bind_i64(s, 2, status);
    stmt_bind_i64(s, 3, before ? before : INT64_MAX);
    walk_rows(page, s);
    return stmt_end(s);
}

static enum err walk_owner(struct page *page, struct db *db, int status)
{
    struct stmt *s = db_prepare(db, "SELECT n, agent FROM interactions"
                                    " INDEXED BY interactions_by_owner"
                                    " WHERE owner=?1 AND status=?2 AND n<?3 ORDER BY n DESC");
    stmt_bind_str(s, 1, page->filter->owner);
    return walk(page, s, status);
}

static enum err walk_role(struct page *page, struct db *db, str role, int status)
{
    struct stmt *s = db_prepare(db, "SELECT n, agent FROM interactions"
                                    " INDEXED BY interactions_by_approver"
                                    " WHERE approver<>'' AND approver=?1 AND status=?2 AND n<?3"
                                    " ORDER BY n DESC");
    stmt_bind_str(s, 1, role);
    return walk(page, s, status);
}

static enum err walk_thread(struct page *page, struct db *db, int64_t thread, int status)
{
    struct stmt *s = db_prepare(db, "SELECT n, agent FROM interactions"
                                    " INDEXED BY interactions_by_thread"
                                    " WHERE thread=?1 AND status=?2 AND n<?3 ORDER BY n DESC");
    stmt_bind_i64(s, 1, thread);
    return walk(page, s, status);
}

/* The owner's thread of that name; 0: there is none. */
static enum err thread_named(struct db *db, const struct interaction_filter *filter,
                             int64_t *ret_thread)
{
    struct stmt *s = db_prepare(db, "SELECT id FROM threads WHERE owner=?1 AND thread_id=?2");
    stmt_bind_str(s, 1, filter->owner);
    stmt_bind_str(s, 2, filter->thread_id);
    int64_t thread = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_end(s);
    if (!e) *ret_thread = thread;
    return e;
}

static enum err walk_all(struct page *page, struct db *db)
{
    const struct interaction_filter *filter = page->filter;
    bool any = filter->status < 0;
    int first = any ? 0 : filter->status, last = any ? INTERACTION_STATUS_COUNT - 1 : first;
    int64_t thread = 0;
    enum err e = filter->thread_id.len ? thread_named(db, filter, &thread) : OK;
    for (int status = first; !e && status <= last; status++) {
        if (filter->thread_id.len) {
            e = thread ? walk_thread(page, db, thread, status) : OK;
            continue;
        }
        e = walk_owner(page, db, status);
        for (size_t i = 0; !e && i < COUNT(filter->roles); i++)
            if (filter->roles[i].len) e = walk_role(page, db, filter->roles[i], status);
    }
    return e;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* Sorted, each once, and none that lies below the floor. */
static void merge(struct page *page)
{
    size_t count = 0;
    if (page->count) qsort(page->found, page->count, sizeof *page->found, newest_first);
    for (size_t i = 0; i < page->count && page->found[i] >= page->floor; i++)
        if (!count || page->found[count - 1] != page->found[i])
            page->found[count++] = page->found[i];
    page->count = count;
}

static enum err read_page(struct page *page, struct db *db, struct interaction_list *ret_list)
{
    struct interaction_list list = {.more = page->floor > 0, .next = page->floor};
    size_t bytes = 0;
    for (size_t i = 0; i < page->count; i++) {
        bool full = list.count == page->filter->limit || bytes > INBOX_PAGE_BYTES_MAX;
        if (full) {
            list.more = true;
            list.next = page->found[i - 1];
            break;
        }
        struct interaction found;
        struct stmt *s = db_prepare(db, SELECT " WHERE n=?1" LIVE);
        stmt_bind_i64(s, 1, page->found[i]);
        enum err e = read_one(s, page->arena, &found);
        if (e == ERR_NOT_FOUND) continue;
        if (e) return e;
        struct interaction *row = ROWS_ADD(page->arena, list.rows, list.count);
        *row = found;
        bytes += row->args.len + row->args_schema.len + row->answer.len + row->text.len +
                 row->metadata.len + row->fields.len + row->choices.len + row->ui.len;
    }
    *ret_list = list;
    return OK;
}

enum err interactions_page(struct db *db, struct arena *arena,
                           const struct interaction_filter *filter,
                           struct interaction_list *ret_list)
{
    assert(filter->limit > 0 && filter->status < INTERACTION_STATUS_COUNT);
    size_t walks = (1 + COUNT(filter->roles)) * (filter->status < 0 ? INTERACTION_STATUS_COUNT : 1);
    struct page page = {.filter = filter, .arena = arena, .look = INBOX_LOOK_MAX / walks};
    enum err e = walk_all(&page, db);
    if (e) return e;
    merge(&page);
    return read_page(&page, db, ret_list);
}

/* ---- expiry ---- */

enum err interactions_due(struct db *db, struct arena *arena, msec now, size_t limit,
                          struct interaction_list *ret_list)
{
    struct stmt *s = db_prepare(db, SELECT " INDEXED BY interactions_by_expiry"
                                           " WHERE status=0 AND expires>0 AND expires<=?1"
                                           " ORDER BY expires, n");
    stmt_bind_i64(s, 1, now);
    return read_list(s, arena, limit, ret_list);
}

enum err interactions_next_expiry(struct db *db, msec *ret_at)
{
    struct stmt *s = db_prepare(db, "SELECT min(expires) FROM interactions"
                                    " INDEXED BY interactions_by_expiry"
                                    " WHERE status=0 AND expires>0");
    msec at = stmt_step(s) ? stmt_i64(s, 0) : 0; /* NULL reads as 0 */
    enum err e = stmt_end(s);
    if (!e) *ret_at = at;
    return e;
}
