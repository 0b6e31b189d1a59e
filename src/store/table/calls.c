/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `tool_calls`: the journal of tool calls. A call is found by its run, the model turn it
 * was proposed in and its place in that turn; its result also by the history row that shows it.
 *
 * A result may be long and stays in the row: it stands last in it, and is read only by who asks for
 * it, so that looking at the other columns does not read it.
 *
 * To add a column: a migration, a member of struct call, and its name in CHANGING, or in KEYS if it
 * never changes.
 */
#include "store/table/calls.h"

#include "base/limits.h"
#include "base/rows.h"
#include "store/db/columns.h"
#include "store/db/hot.h"
#include "store/db/sqlite.h"

/* The statements below have these numbers in their text. */
_Static_assert(CALL_PROPOSED == 0 && CALL_WAITING == 1 && CALL_APPROVED == 2 && CALL_STARTED == 3 &&
                   CALL_UNCERTAIN == 8,
               "numbers that databases hold");
_Static_assert(CALL_DONE == 4 && CALL_FAILED == 5 && CALL_REJECTED == 6 && CALL_CANCELLED == 7,
               "numbers that databases hold, and all that are settled");

#define CALL_ROW(state, name, settled) {name, settled},
static const struct {
    const char *name;
    bool settled;
} states[CALL_STATE_COUNT] = {CALL_STATES(CALL_ROW)};
#undef CALL_ROW

const char *call_state_name(enum call_state state)
{
    assert((unsigned)state < CALL_STATE_COUNT);
    return states[state].name;
}

bool call_state_settled(enum call_state state)
{
    assert((unsigned)state < CALL_STATE_COUNT);
    return states[state].settled;
}

/* ---- writing ---- */

/* clang-format off */
#define KEYS(X) X(round) X(n) X(call_id)
#define CHANGING(X)                                                                         \
    X(state) X(stage) X(write) X(idempotent) X(attempts) X(created) X(started) X(ended)     \
    X(result_bytes) X(message_id) X(tool) X(provider_id) X(rule) X(binding) X(result_id)    \
    X(spool) X(result_hash) X(error) X(args) X(model_text) X(content) X(ui_hints) X(asked)    \
    X(attachments)
/* clang-format on */

#define COLUMN(name) COLUMN_OF(struct call, name),
static const struct column keys[] = {KEYS(COLUMN)};
static const struct column changing[] = {CHANGING(COLUMN)};
#undef COLUMN

/* clang-format off */
#define INSERT                                                                             \
    "INSERT INTO tool_calls (run, thread, result" KEYS(COLUMN_NAME) CHANGING(COLUMN_NAME) ")" \
    " VALUES (?1, (SELECT thread FROM runs WHERE id=?1), ?2" KEYS(COLUMN_MARK)             \
    CHANGING(COLUMN_MARK) ")"
#define UPDATE                                                                             \
    "UPDATE tool_calls SET result=CASE WHEN ?6 THEN '' WHEN ?5='' THEN result ELSE ?5 END" \
    CHANGING(COLUMN_SET)                                                                   \
    " WHERE run=?1 AND round=?2 AND n=?3 AND call_id=?4"
#define SELECT                                                                             \
    "SELECT run, iif(result_id='', result, '')" KEYS(COLUMN_NAME) CHANGING(COLUMN_NAME)    \
    " FROM tool_calls"
/* clang-format on */

#define COLUMN(name) COLUMN_OF(struct call, name),
static const struct column kept[] = {COLUMN(run) COLUMN(result) KEYS(COLUMN) CHANGING(COLUMN)};
#undef COLUMN
static const struct hot_shape shape = HOT_SHAPE(struct call, kept);

static enum err read_all(struct db *db, struct arena *arena, int64_t run,
                         struct hot_rows *ret_rows);

/* As it would be read. */
static struct call call_shown(const struct call *call, str result)
{
    struct call row = *call;
    row.stored = false;
    row.result = call->result_id.len ? STR_EMPTY : result;
    return row;
}

static bool call_before(const struct call *a, const struct call *b)
{
    return a->round < b->round || (a->round == b->round && a->n < b->n);
}

/* Kept in their order: one that does not come last is for who reads them anew. */
static void keep_added(struct db *db, const struct call *call)
{
    struct hot_rows rows;
    if (!hot_look(db, HOT_CALLS, call->run, &shape, NULL, &rows)) return;
    const struct call *all = rows.rows;
    struct call row = call_shown(call, call->result);
    if (!rows.count || call_before(&all[rows.count - 1], call))
        hot_append(db, HOT_CALLS, call->run, &shape, &row);
    else
        hot_drop(db, HOT_CALLS, call->run);
}

enum err call_add(struct db *db, const struct call *call)
{
    struct stmt *s = db_prepare(db, INSERT);
    stmt_bind_i64(s, 1, call->run);
    stmt_bind_str(s, 2, call->result);
    columns_bind(s, 3, keys, COUNT(keys), call);
    columns_bind(s, 3 + (int)COUNT(keys), changing, COUNT(changing), call);
    enum err e = stmt_run(s);
    if (!e) keep_added(db, call);
    return e;
}

static bool call_same(const struct call *a, const struct call *b)
{
    return a->round == b->round && a->n == b->n && str_eq(a->call_id, b->call_id);
}

/* A result that was shown is not read back with its row: what is kept may not have it, and an update
 * that shows another thing of the call takes nothing of it. */
static void keep_updated(struct db *db, const struct call *call)
{
    AUTO(arena_done) struct arena arena;
    struct hot_rows rows;
    arena_init(&arena);
    if (!hot_get(db, HOT_CALLS, call->run, &shape, &arena, NULL, &rows)) return;
    struct call *all = rows.rows, *row = all;
    while (row < all + rows.count && !call_same(row, call)) row++;
    if (row == all + rows.count) return;
    bool hidden = row->result_id.len && !call->result_id.len;
    *row = call_shown(call, call->stored       ? STR_EMPTY
                            : call->result.len ? call->result
                                               : row->result);
    if (hidden)
        hot_drop(db, HOT_CALLS, call->run);
    else
        hot_put(db, HOT_CALLS, call->run, &shape, all, rows.count);
}

enum err call_update(struct db *db, const struct call *call)
{
    struct stmt *s = db_prepare(db, UPDATE);
    stmt_bind_i64(s, 1, call->run);
    columns_bind(s, 2, keys, COUNT(keys), call);
    stmt_bind_str(s, 5, call->result);
    stmt_bind_i64(s, 6, call->stored);
    columns_bind(s, 7, changing, COUNT(changing), call);
    enum err e = stmt_run(s);
    if (!e && !db_changes(db)) return ERR_NOT_FOUND;
    if (!e) keep_updated(db, call);
    return e;
}

/* ---- reading ---- */

/* A state nobody knows comes from a damaged file. */
static enum err read_row(struct stmt *s, struct arena *arena, struct call *call)
{
    call->run = stmt_i64(s, 0);
    call->result = arena_str(arena, stmt_str(s, 1));
    columns_read(s, 2, keys, COUNT(keys), arena, call);
    columns_read(s, 2 + (int)COUNT(keys), changing, COUNT(changing), arena, call);
    return (unsigned)call->state < CALL_STATE_COUNT ? OK : ERR_DAMAGED;
}

/* At most STATE_IDS_MAX, which no turn has more of. */
static enum err read_rows(struct stmt *s, struct arena *arena, struct call_list *ret_list)
{
    struct call_list list = {0};
    enum err e = OK;
    while (!e && list.count < STATE_IDS_MAX && stmt_step(s))
        e = read_row(s, arena, ROWS_ADD(arena, list.rows, list.count));
    enum err ended = stmt_end(s);
    if (ended || e) return ended ? ended : e;
    *ret_list = list;
    return OK;
}

/* More than are kept of one run say nothing. */
static enum err read_all(struct db *db, struct arena *arena, int64_t run, struct hot_rows *ret_rows)
{
    struct call_list list;
    struct stmt *s = db_prepare(db, SELECT " WHERE run=?1 ORDER BY round, n");
    stmt_bind_i64(s, 1, run);
    enum err e = read_rows(s, arena, &list);
    if (!e) *ret_rows = (struct hot_rows){.rows = list.rows, .count = list.count};
    return e;
}

/* Calls are kept from the start of their run on, and as long as they are few. */
static bool kept_calls(struct db *db, struct arena *arena, int64_t run, struct call_list *ret_list)
{
    struct hot_rows rows;
    if (!hot_get(db, HOT_CALLS, run, &shape, arena, read_all, &rows)) return false;
    *ret_list = (struct call_list){.rows = rows.rows, .count = rows.count};
    return true;
}

enum err calls_of_round(struct db *db, struct arena *arena, int64_t run, uint32_t round,
                        struct call_list *ret_list)
{
    struct call_list list;
    if (kept_calls(db, arena, run, &list)) {
        size_t count = 0;
        for (size_t i = 0; i < list.count; i++)
            if (list.rows[i].round == round) list.rows[count++] = list.rows[i];
        *ret_list = (struct call_list){.rows = list.rows, .count = count};
        return OK;
    }
    struct stmt *s = db_prepare(db, SELECT " WHERE run=?1 AND round=?2 ORDER BY n");
    stmt_bind_i64(s, 1, run);
    stmt_bind_i64(s, 2, round);
    return read_rows(s, arena, ret_list);
}

enum err calls_unshown(struct db *db, struct arena *arena, int64_t run, struct call_list *ret_list)
{
    struct call_list list;
    if (kept_calls(db, arena, run, &list)) {
        size_t count = 0;
        for (size_t i = 0; i < list.count; i++)
            if (!list.rows[i].result_id.len) list.rows[count++] = list.rows[i];
        *ret_list = (struct call_list){.rows = list.rows, .count = count};
        return OK;
    }
    struct stmt *s = db_prepare(db, SELECT " WHERE run=?1 AND result_id='' ORDER BY round, n");
    stmt_bind_i64(s, 1, run);
    return read_rows(s, arena, ret_list);
}

static void calls_reverse(struct call_list *list)
{
    for (size_t i = 0; i < list->count / 2; i++) {
        struct call *a = &list->rows[i], *b = &list->rows[list->count - 1 - i];
        struct call swapped = *a;
        *a = *b;
        *b = swapped;
    }
}

/* From the newest back: what the model can still be shown is at the end. */
enum err calls_seen(struct db *db, struct arena *arena, int64_t run, struct call_list *ret_list)
{
    struct call_list list = {0}, all;
    if (kept_calls(db, arena, run, &all)) {
        for (size_t i = 0; i < all.count; i++) {
            const struct call *row = &all.rows[i];
            bool seen =
                (row->state >= CALL_DONE && row->state <= CALL_CANCELLED) || row->result_id.len;
            if (seen)
                all.rows[list.count++] = (struct call){.run = run,
                                                       .call_id = row->call_id,
                                                       .tool = row->tool,
                                                       .model_text = row->model_text};
        }
        *ret_list = (struct call_list){.rows = all.rows, .count = list.count};
        return OK;
    }
    struct stmt *s = db_prepare(db, "SELECT call_id, tool, model_text FROM tool_calls"
                                    " WHERE run=?1 AND (state BETWEEN 4 AND 7 OR result_id<>'')"
                                    " ORDER BY round DESC, n DESC");
    stmt_bind_i64(s, 1, run);
    for (size_t bytes = 0; bytes <= CALLS_SEEN_BYTES_MAX && stmt_step(s);) {
        struct call *call = ROWS_ADD(arena, list.rows, list.count);
        *call = (struct call){.run = run,
                              .call_id = arena_str(arena, stmt_str(s, 0)),
                              .tool = arena_str(arena, stmt_str(s, 1)),
                              .model_text = arena_str(arena, stmt_str(s, 2))};
        bytes += sizeof *call + call->model_text.len;
    }
    enum err e = stmt_end(s);
    if (e) return e;
    calls_reverse(&list);
    *ret_list = list;
    return OK;
}

_Static_assert(CALLS_LATE_RUNS == 16 && CALLS_LATE_MAX == 1024, "as the statement below says");

enum err calls_late(struct db *db, struct arena *arena, int64_t thread, struct call_list *ret_list)
{
    struct call_list list = {0};
    struct stmt *s =
        db_prepare(db, "SELECT state, call_id FROM tool_calls WHERE run IN"
                       " (SELECT id FROM runs WHERE thread=?1 ORDER BY id DESC LIMIT 16)"
                       " ORDER BY run DESC, round DESC, n DESC LIMIT 1024");
    stmt_bind_i64(s, 1, thread);
    bool known = true;
    while (stmt_step(s)) {
        struct call *call = ROWS_ADD(arena, list.rows, list.count);
        *call = (struct call){.state = (enum call_state)stmt_i64(s, 0),
                              .call_id = arena_str(arena, stmt_str(s, 1))};
        known = known && (unsigned)call->state < CALL_STATE_COUNT;
    }
    enum err e = stmt_end(s);
    if (e || !known) return e ? e : ERR_DAMAGED;
    *ret_list = list;
    return OK;
}

enum err call_result(struct db *db, struct arena *arena, int64_t thread, str result_id,
                     struct call *ret_call)
{
    struct stmt *s = db_prepare(db, "SELECT run, result_bytes, call_id, tool, spool, result"
                                    " FROM tool_calls INDEXED BY tool_calls_by_result"
                                    " WHERE thread=?1 AND result_id=?2 AND result_id<>''");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_str(s, 2, result_id);
    struct call call = {0};
    bool found = stmt_step(s);
    if (found)
        call = (struct call){.run = stmt_i64(s, 0),
                             .result_bytes = (uint64_t)stmt_i64(s, 1),
                             .call_id = arena_str(arena, stmt_str(s, 2)),
                             .tool = arena_str(arena, stmt_str(s, 3)),
                             .spool = arena_str(arena, stmt_str(s, 4)),
                             .result = arena_str(arena, stmt_str(s, 5)),
                             .result_id = arena_str(arena, result_id)};
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    *ret_call = call;
    return OK;
}

/* A run that has ended waits for nothing, whatever its rows say. */
enum err calls_started(struct db *db, int64_t thread, bool *ret_started)
{
    struct stmt *s =
        db_prepare(db, "SELECT 1 FROM runs INDEXED BY runs_open CROSS JOIN tool_calls"
                       " WHERE runs.status<4 AND runs.status IN (1, 2, 3) AND runs.thread=?1"
                       "  AND tool_calls.run=runs.id AND tool_calls.state=3 LIMIT 1");
    stmt_bind_i64(s, 1, thread);
    bool found = stmt_step(s);
    enum err e = stmt_end(s);
    if (!e) *ret_started = found;
    return e;
}

/* Asked at the start for each file that is there. A deleted thread needs none. */
enum err calls_spooled(struct db *db, str name, bool *ret_needed)
{
    struct stmt *s = db_prepare(db, "SELECT 1 FROM tool_calls INDEXED BY tool_calls_by_spool"
                                    " CROSS JOIN threads ON threads.id=thread"
                                    " WHERE spool<>'' AND spool=?1 AND owner<>'' LIMIT 1");
    stmt_bind_str(s, 1, name);
    bool needed = stmt_step(s);
    enum err e = stmt_end(s);
    if (!e) *ret_needed = needed;
    return e;
}

/* A name for each file of more than CALL_INLINE_BYTES_MAX: the disk bounds how many. */
enum err calls_spools(struct db *db, struct arena *arena, int64_t thread, str **ret_names,
                      size_t *ret_count)
{
    str *names = NULL;
    size_t count = 0;
    struct stmt *s = db_prepare(db, "SELECT spool FROM tool_calls INDEXED BY tool_calls_spooled"
                                    " WHERE thread=?1 AND spool<>''");
    stmt_bind_i64(s, 1, thread);
    while (stmt_step(s)) *ROWS_ADD(arena, names, count) = arena_str(arena, stmt_str(s, 0));
    enum err e = stmt_end(s);
    if (e) return e;
    *ret_names = names;
    *ret_count = count;
    return OK;
}
