/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables `runs`, `run_inputs`, `run_offers`, `queued_ids`, `legs` and `accepted`: runs, their
 * legs and the queue; what was answered to whom. Runs of a thread are queued and started in the
 * order of their ids. What lives and dies with a run stands in its row: how far it has come (the
 * snapshot) and what its newest request brought, if that is short. A long input may have megabytes
 * and is read once: it has a row beside it, so that the run's, which every step writes, stays short,
 * and what each model call needs of it has another one.
 *
 * A message that waits may have megabytes too, and stands in the row of its run. Who adds another
 * looks at none of them: their lengths are in the index runs_queued, their ids in `queued_ids`.
 *
 * The open runs have an index of their own, runs_open(status, thread): the queue of a thread, its
 * current run and the work left after a restart are each a short stretch of it, and those that wait
 * for a person are never looked at. A query uses it if it says status<4 in the words of the index.
 */
#include <string.h>

#include "base/limits.h"
#include "base/rows.h"
#include "store/db/hot.h"
#include "store/db/sqlite.h"
#include "store/table/thread_row.h"

/* The statements below have the numbers of the statuses in their text. */
_Static_assert(RUN_QUEUED == 0 && RUN_RUNNING == 1 && RUN_WAITING == 2 && RUN_CANCELLING == 3,
               "numbers that databases hold");
_Static_assert(RUN_COMPLETED == 4 && RUN_CANCELLED == 5 && RUN_EXHAUSTED == 6 && RUN_FAILED == 7,
               "numbers that databases hold");

#define RUN_STATUS_ROW(status, name, open) {name, open},
static const struct {
    const char *name;
    bool open;
} statuses[RUN_STATUS_COUNT] = {RUN_STATUSES(RUN_STATUS_ROW)};
#undef RUN_STATUS_ROW

const char *run_status_name(enum run_status status)
{
    assert((unsigned)status < RUN_STATUS_COUNT);
    return statuses[status].name;
}

bool run_status_open(enum run_status status)
{
    assert((unsigned)status < RUN_STATUS_COUNT);
    return statuses[status].open;
}

/* ---- the row, as it is kept in memory ---- */

#define COLUMN(name) COLUMN_OF(struct run, name),
static const struct column columns[] = {
    COLUMN(id) COLUMN(thread) COLUMN(run_id) COLUMN(agent) COLUMN(model) COLUMN(status) COLUMN(legs)
        COLUMN(task_id) COLUMN(queued) COLUMN(input_bytes) COLUMN(start_seq) COLUMN(input_tokens)
            COLUMN(output_tokens) COLUMN(cost) COLUMN(currency) COLUMN(from_message) COLUMN(created)
                COLUMN(ended) COLUMN(asked_key)};
#undef COLUMN
static const struct hot_shape shape = HOT_SHAPE(struct run, columns);

#define COLUMN(name) COLUMN_OF(struct leg_input, name),
static const struct column input_columns[] = {COLUMN(input) COLUMN(tools) COLUMN(context)};
#undef COLUMN
static const struct hot_shape input_shape = HOT_SHAPE(struct leg_input, input_columns);

/* A run is its thread's current one, or is not any more. */
static void keep_run(struct db *db, const struct run *run)
{
    struct run row = *run;
    row.input = row.tools = row.context = STR_EMPTY; /* not read back with the row */
    bool current = run_status_open(run->status) && run->status != RUN_QUEUED;
    struct hot_rows kept;
    if (!current && hot_look(db, HOT_CURRENT, run->thread, &shape, NULL, &kept) && kept.count &&
        ((struct run *)kept.rows)->id != run->id)
        return; /* another is */
    hot_put(db, HOT_CURRENT, run->thread, &shape, &row, current ? 1 : 0);
}

/* It has ended: nobody asks for what it was worked on with. */
static void run_cold(struct db *db, int64_t run)
{
    hot_drop(db, HOT_STATE, run);
    hot_drop(db, HOT_INPUT, run);
    hot_drop(db, HOT_CALLS, run);
}

/* The row may be gone by now: nothing to compare with. */
void run_cool(struct db *db, int64_t thread)
{
    struct hot_rows rows;
    if (hot_look(db, HOT_CURRENT, thread, &shape, NULL, &rows) && rows.count)
        run_cold(db, ((struct run *)rows.rows)->id);
}

/* ---- writing ---- */

/* Parameters 1 to 13: what may change in the life of a run. */
static void run_bind(struct stmt *s, const struct run *run)
{
    stmt_bind_i64(s, 1, run->status);
    stmt_bind_i64(s, 2, run->legs);
    stmt_bind_i64(s, 3, run->start_seq);
    stmt_bind_i64(s, 4, (int64_t)run->input_tokens);
    stmt_bind_i64(s, 5, (int64_t)run->output_tokens);
    stmt_bind_i64(s, 6, run->ended);
    stmt_bind_str(s, 7, run->agent);
    stmt_bind_str(s, 8, run->model);
    stmt_bind_str(s, 9, run->task_id);
    stmt_bind_str(s, 10, run->queued);
    stmt_bind_i64(s, 11, (int64_t)run->cost);
    stmt_bind_str(s, 12, run->currency);
    stmt_bind_i64(s, 13, run->from_message);
}

/* Parameters from `at` on: the snapshot, or none. */
static void snapshot_bind(struct stmt *s, int at, const struct snapshot *snapshot)
{
    bool none = !snapshot || !snapshot->version;
    stmt_bind_i64(s, at, none ? 0 : snapshot->version);
    stmt_bind_i64(s, at + 1, snapshot ? snapshot->epoch : 0);
    stmt_bind_blob(s, at + 2, none ? STR_EMPTY : (str){(const char *)snapshot->hash, HASH_BYTES});
    stmt_bind_blob(s, at + 3, none ? STR_EMPTY : snapshot->bytes);
}

/* Most runs bring nothing: no row for them. */
static struct leg_input input_kept(const struct leg_input *given)
{
    struct leg_input kept = *given;
    if (str_eq(kept.input, STR("{}"))) kept.input = STR_EMPTY;
    if (str_eq(kept.tools, STR("[]"))) kept.tools = STR_EMPTY;
    if (str_eq(kept.context, STR("[]"))) kept.context = STR_EMPTY;
    return kept;
}

static size_t input_bytes(const struct leg_input *kept)
{
    return kept->input.len + kept->tools.len + kept->context.len;
}

static bool input_short(size_t bytes)
{
    return bytes <= RUN_INPUT_SHORT_MAX;
}

static enum err input_add(struct db *db, int64_t run, str input)
{
    struct stmt *s = db_prepare(db, "INSERT INTO run_inputs (run, input) VALUES (?1, ?2)");
    stmt_bind_i64(s, 1, run);
    stmt_bind_str(s, 2, input);
    return stmt_run(s);
}

static enum err offer_add(struct db *db, int64_t run, const struct leg_input *offer)
{
    struct stmt *s =
        db_prepare(db, "INSERT INTO run_offers (run, tools, context) VALUES (?1, ?2, ?3)");
    stmt_bind_i64(s, 1, run);
    stmt_bind_str(s, 2, offer->tools);
    stmt_bind_str(s, 3, offer->context);
    return stmt_run(s);
}

/* Rows beside the run's, for what is long. */
static enum err inputs_add(struct db *db, int64_t run, const struct leg_input *kept)
{
    enum err e = kept->input.len ? input_add(db, run, kept->input) : OK;
    if (!e && (kept->tools.len || kept->context.len)) e = offer_add(db, run, kept);
    return e;
}

enum err run_add(struct db *db, struct run *run)
{
    return run_add_begun(db, run, NULL);
}

enum err run_add_begun(struct db *db, struct run *run, const struct snapshot *first)
{
    struct leg_input kept = input_kept(&(struct leg_input){run->input, run->tools, run->context});
    size_t bytes = input_bytes(&kept);
    const struct leg_input here = input_short(bytes) ? kept : (struct leg_input){0};
    struct stmt *s = db_prepare(
        db, "INSERT INTO runs (status, legs, start_seq, input_tokens, output_tokens, ended, agent,"
            " model, task_id, queued, cost, currency, from_message, thread, run_id, created,"
            " input_bytes, queued_bytes, asked_key, version, epoch, hash, snapshot, input, tools,"
            " context) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"
            " ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26)");
    run_bind(s, run);
    stmt_bind_i64(s, 14, run->thread);
    stmt_bind_str(s, 15, run->run_id);
    stmt_bind_i64(s, 16, run->created);
    stmt_bind_i64(s, 17, (int64_t)bytes);
    stmt_bind_i64(s, 18, run->status == RUN_QUEUED ? (int64_t)(run->queued.len + bytes) : 0);
    stmt_bind_str(s, 19, run->asked_key);
    snapshot_bind(s, 20, first);
    stmt_bind_str(s, 24, here.input);
    stmt_bind_str(s, 25, here.tools);
    stmt_bind_str(s, 26, here.context);
    enum err e = stmt_run(s);
    int64_t id = db_last_id(db);
    if (!e && !input_short(bytes)) e = inputs_add(db, id, &kept);
    if (e) return e;
    run->id = id;
    run->input_bytes = bytes;
    if (run->status == RUN_QUEUED) {
        hot_drop(db, HOT_QUEUED, run->thread);
        return OK;
    }
    keep_run(db, run);
    hot_put(db, HOT_INPUT, id, &input_shape, &kept, 1);
    hot_put(db, HOT_CALLS, id, &input_shape, NULL, 0);
    snapshot_keep(db, id, first);
    return OK;
}

static enum err inputs_forget(struct db *db, int64_t run)
{
    struct stmt *s = db_prepare(db, "DELETE FROM run_inputs WHERE run=?1");
    stmt_bind_i64(s, 1, run);
    enum err e = stmt_run(s);
    return e ? e : run_offer_forget(db, run);
}

/* It has begun: queued_bytes says nothing any more. */
enum err run_offer_forget(struct db *db, int64_t run)
{
    struct stmt *s = db_prepare(db, "DELETE FROM run_offers WHERE run=?1");
    stmt_bind_i64(s, 1, run);
    return stmt_run(s);
}

enum err run_set_input(struct db *db, struct run *run, const struct leg_input *input)
{
    assert(run->status != RUN_QUEUED);
    struct leg_input kept = input_kept(input);
    size_t bytes = input_bytes(&kept);
    const struct leg_input here = input_short(bytes) ? kept : (struct leg_input){0};
    enum err e = run->input_bytes ? inputs_forget(db, run->id) : OK;
    if (!e && !input_short(bytes)) e = inputs_add(db, run->id, &kept);
    if (e) return e;
    struct stmt *s = db_prepare(db, "UPDATE runs SET input_bytes=?2, input=?3, tools=?4, context=?5"
                                    " WHERE id=?1");
    stmt_bind_i64(s, 1, run->id);
    stmt_bind_i64(s, 2, (int64_t)bytes);
    stmt_bind_str(s, 3, here.input);
    stmt_bind_str(s, 4, here.tools);
    stmt_bind_str(s, 5, here.context);
    e = stmt_run(s);
    if (!e && !db_changes(db)) e = ERR_NOT_FOUND;
    if (e) return e;
    run->input_bytes = bytes;
    hot_drop(db, HOT_CURRENT, run->thread);
    hot_put(db, HOT_INPUT, run->id, &input_shape, &kept, 1);
    return OK;
}

enum err queued_id_add(struct db *db, const struct run *run, str id)
{
    struct stmt *s = db_prepare(db, "INSERT INTO queued_ids (thread, id, run) VALUES (?1, ?2, ?3)");
    stmt_bind_i64(s, 1, run->thread);
    stmt_bind_str(s, 2, id);
    stmt_bind_i64(s, 3, run->id);
    return stmt_run(s);
}

static enum err queued_ids_forget(struct db *db, int64_t run)
{
    struct stmt *s = db_prepare(db, "DELETE FROM queued_ids WHERE run=?1");
    stmt_bind_i64(s, 1, run);
    return stmt_run(s);
}

enum err run_update(struct db *db, const struct run *run)
{
    struct stmt *s = db_prepare(
        db, "UPDATE runs SET status=?1, legs=?2, start_seq=?3, input_tokens=?4, output_tokens=?5,"
            " ended=?6, agent=?7, model=?8, task_id=?9, queued=?10, cost=?11, currency=?12,"
            " from_message=?13 WHERE id=?14");
    run_bind(s, run);
    stmt_bind_i64(s, 14, run->id);
    enum err e = stmt_run(s);
    if (!e && !db_changes(db)) return ERR_NOT_FOUND;
    hot_drop(db, HOT_CURRENT, run->thread);
    hot_drop(db, HOT_QUEUED, run->thread);
    return e || run->status == RUN_QUEUED ? e : queued_ids_forget(db, run->id);
}

static enum err run_replace(struct db *db, const struct run *run, int64_t version,
                            const struct snapshot *next, bool *ret_done)
{
    struct stmt *s = db_prepare(
        db, "UPDATE runs SET status=?1, legs=?2, start_seq=?3, input_tokens=?4, output_tokens=?5,"
            " ended=?6, agent=?7, model=?8, task_id=?9, queued=?10, cost=?11, currency=?12,"
            " from_message=?13, version=?15, epoch=?16, hash=?17, snapshot=?18,"
            " tools=iif(?6, '', tools), context=iif(?6, '', context)"
            " WHERE id=?14 AND (version=?19 OR ?19=-1) AND epoch<=?16");
    run_bind(s, run);
    stmt_bind_i64(s, 14, run->id);
    snapshot_bind(s, 15, next);
    stmt_bind_i64(s, 19, version);
    enum err e = stmt_run(s);
    if (!e) *ret_done = db_changes(db) > 0;
    return e;
}

enum err run_save(struct db *db, const struct run *run, int64_t version,
                  const struct snapshot *next)
{
    bool done = false, moved = false;
    enum err e = OK;
    if (version <= 0) e = snapshot_move(db, run->id, &moved); /* these fit a row without one, too */
    if (!e) e = run_replace(db, run, version, next, &done);
    if (!e && !done) e = snapshot_move(db, run->id, &moved);
    if (!e && moved) e = run_replace(db, run, version, next, &done);
    if (e || !done) return e ? e : ERR_BUSY;
    if (run->ended && !input_short(run->input_bytes)) e = run_offer_forget(db, run->id);
    keep_run(db, run);
    if (run->ended)
        run_cold(db, run->id);
    else
        snapshot_keep(db, run->id, next);
    return e;
}

enum err run_start_leg(struct db *db, const struct run *run, str wire_run_id, msec now)
{
    struct stmt *s = db_prepare(db, "INSERT INTO legs (run, n, task_id, wire_run_id, started)"
                                    " VALUES (?1, ?2, ?3, ?4, ?5)");
    stmt_bind_i64(s, 1, run->id);
    stmt_bind_i64(s, 2, run->legs);
    stmt_bind_str(s, 3, run->task_id);
    stmt_bind_str(s, 4, wire_run_id);
    stmt_bind_i64(s, 5, now);
    return stmt_run(s);
}

/* ---- reading ---- */

#define RUN_COLUMNS                                                                      \
    "id, thread, run_id, status, legs, start_seq, input_tokens, output_tokens, created," \
    " ended, agent, model, task_id, queued, input_bytes, cost, currency, from_message,"  \
    " asked_key"

/* A status nobody knows comes from a damaged file. */
static enum err run_read(struct stmt *s, struct arena *arena, struct run *run)
{
    int64_t status = stmt_i64(s, 3);
    if (status < 0 || status >= RUN_STATUS_COUNT) return ERR_IO;
    *run = (struct run){
        .id = stmt_i64(s, 0),
        .thread = stmt_i64(s, 1),
        .run_id = arena_str(arena, stmt_str(s, 2)),
        .status = (enum run_status)status,
        .legs = (uint32_t)stmt_i64(s, 4),
        .start_seq = stmt_i64(s, 5),
        .input_tokens = (uint64_t)stmt_i64(s, 6),
        .output_tokens = (uint64_t)stmt_i64(s, 7),
        .created = stmt_i64(s, 8),
        .ended = stmt_i64(s, 9),
        .agent = arena_str(arena, stmt_str(s, 10)),
        .model = arena_str(arena, stmt_str(s, 11)),
        .task_id = arena_str(arena, stmt_str(s, 12)),
        .queued = arena_str(arena, stmt_str(s, 13)),
        .input_bytes = (size_t)stmt_i64(s, 14),
        .cost = stmt_i64(s, 15) > 0 ? (uint64_t)stmt_i64(s, 15) : 0,
        .currency = arena_str(arena, stmt_str(s, 16)),
        .from_message = stmt_i64(s, 17),
        .asked_key = arena_str(arena, stmt_str(s, 18)),
    };
    return OK;
}

static enum err run_list(struct stmt *s, struct arena *arena, size_t limit,
                         struct run_list *ret_list)
{
    struct run_list list = {0};
    enum err e = OK;
    while (!e && list.count < limit && stmt_step(s))
        e = run_read(s, arena, ROWS_ADD(arena, list.runs, list.count));
    enum err ended = stmt_end(s);
    if (e || ended) return e ? e : ended;
    *ret_list = list;
    return OK;
}

static enum err run_one(struct stmt *s, struct arena *arena, struct run *ret_run)
{
    struct run_list list = {0};
    enum err e = run_list(s, arena, 1, &list);
    if (e) return e;
    if (!list.count) return ERR_NOT_FOUND;
    *ret_run = list.runs[0];
    return OK;
}

/* Of none or one. */
static enum err run_of(const struct hot_rows *rows, struct run *ret_run)
{
    if (!rows->count) return ERR_NOT_FOUND;
    *ret_run = *(struct run *)rows->rows;
    return OK;
}

static enum err read_current(struct db *db, struct arena *arena, int64_t thread,
                             struct hot_rows *ret_rows)
{
    struct run_list list;
    struct stmt *s = db_prepare(db, "SELECT " RUN_COLUMNS " FROM runs INDEXED BY runs_open"
                                    " WHERE status<4 AND status IN (1, 2, 3) AND thread=?1"
                                    " LIMIT 1");
    stmt_bind_i64(s, 1, thread);
    enum err e = run_list(s, arena, 1, &list);
    if (!e) *ret_rows = (struct hot_rows){.rows = list.runs, .count = list.count};
    return e;
}

enum err run_find(struct db *db, struct arena *arena, int64_t thread, str run_id,
                  struct run *ret_run)
{
    struct hot_rows rows;
    if (hot_get(db, HOT_CURRENT, thread, &shape, arena, read_current, &rows) && rows.count &&
        str_eq(((struct run *)rows.rows)->run_id, run_id))
        return run_of(&rows, ret_run);
    struct stmt *s = db_prepare(db, "SELECT " RUN_COLUMNS " FROM runs"
                                    " WHERE thread=?1 AND run_id=?2");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_str(s, 2, run_id);
    return run_one(s, arena, ret_run);
}

/* The rows beside the run's. */
static enum err read_long(struct db *db, struct arena *arena, int64_t run, struct leg_input *input)
{
    struct stmt *s = db_prepare(db, "SELECT input FROM run_inputs WHERE run=?1");
    stmt_bind_i64(s, 1, run);
    if (stmt_step(s)) input->input = arena_str(arena, stmt_str(s, 0));
    enum err e = stmt_end(s);
    if (e) return e;
    s = db_prepare(db, "SELECT tools, context FROM run_offers WHERE run=?1");
    stmt_bind_i64(s, 1, run);
    if (stmt_step(s)) {
        input->tools = arena_str(arena, stmt_str(s, 0));
        input->context = arena_str(arena, stmt_str(s, 1));
    }
    return stmt_end(s);
}

static enum err read_input(struct db *db, struct arena *arena, int64_t run,
                           struct hot_rows *ret_rows)
{
    struct leg_input *input = ARENA_NEW(arena, struct leg_input);
    struct stmt *s =
        db_prepare(db, "SELECT input_bytes, input, tools, context FROM runs WHERE id=?1");
    stmt_bind_i64(s, 1, run);
    bool found = stmt_step(s), brought = found && stmt_i64(s, 0);
    if (brought)
        *input = (struct leg_input){.input = arena_str(arena, stmt_str(s, 1)),
                                    .tools = arena_str(arena, stmt_str(s, 2)),
                                    .context = arena_str(arena, stmt_str(s, 3))};
    enum err e = stmt_end(s);
    if (!e && brought && !input_bytes(input)) e = read_long(db, arena, run, input);
    if (!e) *ret_rows = (struct hot_rows){.rows = input, .count = 1};
    return e;
}

static enum err run_brought(struct db *db, struct arena *arena, int64_t run,
                            struct leg_input *ret_input)
{
    struct hot_rows rows;
    enum err e = hot_rows(db, HOT_INPUT, run, &input_shape, arena, read_input, &rows);
    if (!e) *ret_input = *(struct leg_input *)rows.rows;
    return e;
}

enum err run_input(struct db *db, struct arena *arena, int64_t run, str *ret_input)
{
    struct leg_input brought;
    enum err e = run_brought(db, arena, run, &brought);
    if (!e) *ret_input = brought.input.len ? brought.input : STR("{}");
    return e;
}

enum err run_offer(struct db *db, struct arena *arena, int64_t run, struct leg_input *ret_offer)
{
    struct leg_input brought;
    enum err e = run_brought(db, arena, run, &brought);
    if (!e) *ret_offer = (struct leg_input){.tools = brought.tools, .context = brought.context};
    return e;
}

/* The first leg is called as the run, and one that nobody named as the run with its number. */
enum err leg_wire_id(struct db *db, struct arena *arena, const struct run *run, uint32_t leg,
                     str *ret_id)
{
    if (!leg || leg > run->legs) return ERR_NOT_FOUND;
    *ret_id = run->run_id;
    if (leg == 1) return OK;
    struct stmt *s = db_prepare(db, "SELECT wire_run_id FROM legs WHERE run=?1 AND n=?2");
    stmt_bind_i64(s, 1, run->id);
    stmt_bind_i64(s, 2, leg);
    *ret_id = stmt_step(s) ? arena_str(arena, stmt_str(s, 0))
                           : arena_printf(arena, "%.*s-%u", STR_ARG(run->run_id), leg);
    return stmt_end(s);
}

enum err run_current(struct db *db, struct arena *arena, int64_t thread, struct run *ret_run)
{
    struct hot_rows rows;
    enum err e = hot_rows(db, HOT_CURRENT, thread, &shape, arena, read_current, &rows);
    return e ? e : run_of(&rows, ret_run);
}

enum err run_newest(struct db *db, struct arena *arena, int64_t thread, struct run *ret_run)
{
    struct stmt *s = db_prepare(db, "SELECT " RUN_COLUMNS " FROM runs"
                                    " WHERE id=(SELECT newest_run FROM threads WHERE id=?1)");
    stmt_bind_i64(s, 1, thread);
    return run_one(s, arena, ret_run);
}

enum err run_context_start(struct db *db, const struct thread *thread, int64_t *ret_from)
{
    *ret_from = 0;
    if (!thread->newest_run) return OK;
    struct stmt *s = db_prepare(db, "SELECT from_message FROM runs WHERE id=?1");
    stmt_bind_i64(s, 1, thread->newest_run);
    int64_t from = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_end(s);
    if (!e) *ret_from = from;
    return e;
}

static void add_up(uint64_t *sum, int64_t more)
{
    uint64_t left = (uint64_t)INT64_MAX - *sum;
    if (more > 0) *sum += (uint64_t)more < left ? (uint64_t)more : left;
}

/* Added up here and not by SQLite, whose sums fail when they overflow. */
enum err runs_spent(struct db *db, struct arena *arena, int64_t thread, str unpriced,
                    struct spent_list *ret_list)
{
    struct spent_list list = {0};
    struct stmt *s = db_prepare(db, "SELECT currency, input_tokens, output_tokens, cost FROM runs"
                                    " WHERE thread=?1 AND legs>0 ORDER BY id");
    stmt_bind_i64(s, 1, thread);
    while (stmt_step(s)) {
        str currency = stmt_str(s, 0).len ? stmt_str(s, 0) : unpriced;
        size_t at = 0;
        while (at < list.count && !str_eq(list.rows[at].currency, currency)) at++;
        if (at == list.count)
            *ROWS_ADD(arena, list.rows, list.count) =
                (struct spent){.currency = arena_str(arena, currency)};
        add_up(&list.rows[at].input_tokens, stmt_i64(s, 1));
        add_up(&list.rows[at].output_tokens, stmt_i64(s, 2));
        add_up(&list.rows[at].cost, stmt_i64(s, 3));
    }
    enum err e = stmt_end(s);
    if (!e) *ret_list = list;
    return e;
}

static struct stmt *queue_statement(struct db *db, int64_t thread, int64_t from_seq, size_t limit)
{
    struct stmt *s = db_prepare(db, "SELECT " RUN_COLUMNS " FROM runs INDEXED BY runs_open"
                                    " WHERE status<4 AND status=0 AND thread=?1 AND start_seq>=?2"
                                    " ORDER BY id LIMIT ?3");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, from_seq);
    stmt_bind_i64(s, 3, (int64_t)limit);
    return s;
}

static enum err read_next(struct db *db, struct arena *arena, int64_t thread,
                          struct hot_rows *ret_rows)
{
    struct run_list list;
    enum err e = run_list(queue_statement(db, thread, 0, 1), arena, 1, &list);
    if (!e) *ret_rows = (struct hot_rows){.rows = list.runs, .count = list.count};
    return e;
}

enum err run_next(struct db *db, struct arena *arena, int64_t thread, struct run *ret_run)
{
    struct hot_rows rows;
    enum err e = hot_rows(db, HOT_QUEUED, thread, &shape, arena, read_next, &rows);
    return e ? e : run_of(&rows, ret_run);
}

enum err run_queue(struct db *db, struct arena *arena, int64_t thread, struct run_list *ret_list)
{
    return run_queue_page(db, arena, thread, 0, RUN_QUEUE_MAX, ret_list);
}

enum err run_queue_page(struct db *db, struct arena *arena, int64_t thread, int64_t from_seq,
                        size_t limit, struct run_list *ret_list)
{
    return run_list(queue_statement(db, thread, from_seq, limit), arena, limit, ret_list);
}

/* From the index alone: rows whose message is long are not touched. */
enum err run_queue_size(struct db *db, int64_t thread, size_t *ret_count, size_t *ret_bytes)
{
    struct stmt *s = db_prepare(db, "SELECT count(*), sum(queued_bytes) FROM runs"
                                    " INDEXED BY runs_queued WHERE status=0 AND thread=?1");
    stmt_bind_i64(s, 1, thread);
    bool found = stmt_step(s);
    size_t count = found ? (size_t)stmt_i64(s, 0) : 0;
    size_t bytes = found ? (size_t)stmt_i64(s, 1) : 0; /* NULL reads as 0 */
    enum err e = stmt_end(s);
    if (e) return e;
    *ret_count = count;
    *ret_bytes = bytes;
    return OK;
}

enum err queued_id_exists(struct db *db, int64_t thread, str id, bool *ret_exists)
{
    struct stmt *s = db_prepare(db, "SELECT 1 FROM queued_ids WHERE thread=?1 AND id=?2");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_str(s, 2, id);
    bool found = stmt_step(s);
    enum err e = stmt_end(s);
    if (!e) *ret_exists = found;
    return e;
}

/* The ids come from the index alone; rows are read for those of the page. */
enum err run_unfinished(struct db *db, struct arena *arena, int64_t after_id, size_t limit,
                        struct run_list *ret_list)
{
    struct stmt *s = db_prepare(
        db, "SELECT " RUN_COLUMNS " FROM runs WHERE id IN ("
            " SELECT id FROM runs INDEXED BY runs_open"
            "  WHERE status<4 AND status IN (1, 3) AND id>?1"
            " UNION"
            " SELECT run FROM tool_calls INDEXED BY tool_calls_under_way"
            "  CROSS JOIN runs ON runs.id=run WHERE state=3 AND run>?1 AND runs.status=2"
            " UNION ALL"
            " SELECT min(id) FROM runs AS head INDEXED BY runs_open"
            "  WHERE status<4 AND status=0 AND NOT EXISTS ("
            "   SELECT 1 FROM runs AS busy INDEXED BY runs_open"
            "   WHERE busy.status<4 AND busy.status IN (1, 2, 3) AND busy.thread=head.thread)"
            "  GROUP BY thread HAVING min(id)>?1"
            " ORDER BY 1 LIMIT ?2) ORDER BY id");
    stmt_bind_i64(s, 1, after_id);
    stmt_bind_i64(s, 2, (int64_t)limit);
    return run_list(s, arena, limit, ret_list);
}

/* ---- what was answered ---- */

enum err accepted_find(struct db *db, struct arena *arena, int64_t thread, str run_id,
                       struct accepted *ret_accepted)
{
    struct stmt *s = db_prepare(db, "SELECT hash, answer FROM accepted"
                                    " WHERE thread=?1 AND run_id=?2");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_str(s, 2, run_id);
    struct accepted accepted = {0};
    bool found = stmt_step(s);
    if (found) {
        str hash = stmt_str(s, 0);
        if (hash.len == HASH_BYTES) memcpy(accepted.hash, hash.p, HASH_BYTES);
        accepted.answer = arena_str(arena, stmt_str(s, 1));
    }
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    *ret_accepted = accepted;
    return OK;
}

enum err accepted_add(struct db *db, int64_t thread, str run_id, const struct accepted *accepted,
                      msec now)
{
    struct stmt *s = db_prepare(db, "INSERT INTO accepted (thread, run_id, hash, created, answer)"
                                    " VALUES (?1, ?2, ?3, ?4, ?5)");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_str(s, 2, run_id);
    stmt_bind_blob(s, 3, (str){(const char *)accepted->hash, HASH_BYTES});
    stmt_bind_i64(s, 4, now);
    stmt_bind_str(s, 5, accepted->answer);
    return stmt_run(s);
}
