/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables `facts` and `events`: a thread's facts, numbered without gaps. threads.last_seq is the
 * number of the newest one and moves in the same transaction, so numbers have no gaps and none is
 * given twice; a job that fails takes its numbers back with it.
 *
 * The facts of a commit are one row of `facts`, or several if they are long (store/table/fact_frames.h).
 * Before version 12 of the schema each was a row of `events`, and those are still read: they are older
 * than all rows of `facts` that the thread has. Whoever reads asks `facts` first, and `events` only if
 * what is wanted may lie before the first row there. So threads that began since then, whose first row
 * begins with 1, never ask it.
 */
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/rows.h"
#include "store/db/sqlite.h"
#include "store/table/fact_frames.h"
#include "store/table/thread_row.h"

/* ---- writing ---- */

static enum err row_put(struct db *db, int64_t thread, const struct fact *facts, size_t count,
                        size_t size)
{
    AUTO(buf_done) struct buf bytes;
    buf_init(&bytes, size);
    (void)buf_room(&bytes, size); /* all at once */
    fact_frames_write(&bytes, facts, count);
    struct stmt *s = db_prepare(db, "INSERT INTO facts (thread, first_seq, last_seq, bytes)"
                                    " VALUES (?1, ?2, ?3, ?4)");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, facts[0].seq);
    stmt_bind_i64(s, 3, facts[count - 1].seq);
    stmt_bind_blob(s, 4, buf_str(&bytes));
    return stmt_run(s);
}

enum err facts_append(struct db *db, int64_t thread, struct fact *facts, size_t count, msec now)
{
    return facts_append_leg(db, thread, facts, count, now, 0);
}

enum err facts_append_leg(struct db *db, int64_t thread, struct fact *facts, size_t count, msec now,
                          int64_t run)
{
    int64_t last = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += facts[i].data.len + facts[i].more;
    enum err e = thread_number(db, thread, count, bytes, now, run, &last);
    for (size_t i = 0; i < count && !e; i++) facts[i].seq = last - (int64_t)(count - 1 - i);
    for (size_t from = 0, fit = 0; from < count && !e; from += fit) {
        size_t size = 0;
        fit = fact_frames_fit(facts + from, count - from, &size);
        e = row_put(db, thread, facts + from, fit, size);
    }
    return e;
}

/* ---- reading a row ---- */

/* The columns are first_seq, last_seq, bytes. */
static int64_t row_first(struct stmt *s)
{
    return stmt_i64(s, 0);
}

static int64_t row_last(struct stmt *s)
{
    return stmt_i64(s, 1);
}

/* Rows of a thread, oldest first, from the one on that has the fact `seq`, or could have. */
static struct stmt *rows_from(struct db *db, int64_t thread, int64_t seq)
{
    struct stmt *s = db_prepare(
        db, "SELECT first_seq, last_seq, bytes FROM facts WHERE thread=?1 AND first_seq>="
            " coalesce((SELECT max(first_seq) FROM facts WHERE thread=?1 AND first_seq<=?2), 0)"
            " ORDER BY first_seq");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, seq);
    return s;
}

/* The same, newest first. */
static struct stmt *rows_back_from(struct db *db, int64_t thread, int64_t seq)
{
    struct stmt *s = db_prepare(db, "SELECT first_seq, last_seq, bytes FROM facts"
                                    " WHERE thread=?1 AND first_seq<=?2 ORDER BY first_seq DESC");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, seq);
    return s;
}

static int64_t behind(int64_t seq)
{
    return seq < INT64_MAX ? seq + 1 : seq;
}

/* Facts are borrowed until the next step. */
static void row_begin(struct stmt *s, struct fact_frames *frames)
{
    fact_frames_begin(frames, stmt_str(s, 2), row_first(s), row_last(s));
}

/* The columns are seq, type, run_id, at, data. */
static void old_read(struct stmt *s, struct arena *arena, struct fact *fact)
{
    *fact = (struct fact){
        .seq = stmt_i64(s, 0),
        .type = arena_cstr(arena, stmt_str(s, 1)),
        .run_id = arena_str(arena, stmt_str(s, 2)),
        .at = stmt_i64(s, 3),
        .data = arena_str(arena, stmt_str(s, 4)),
    };
}

static struct fact fact_copy(struct arena *arena, const struct fact *fact)
{
    return (struct fact){
        .seq = fact->seq,
        .type = arena_cstr(arena, str_c(fact->type)),
        .run_id = arena_str(arena, fact->run_id),
        .at = fact->at,
        .data = arena_str(arena, fact->data),
    };
}

/* ---- pages ---- */

struct fact_page {
    struct arena *arena;
    int64_t after;
    size_t limit, bytes;
    struct fact_list list;
};

/* Room for one more? If not, there is more. */
static bool page_room(struct fact_page *page)
{
    page->list.more = page->list.count == page->limit || page->bytes >= FACT_PAGE_BYTES_MAX;
    return !page->list.more;
}

static struct fact *page_add(struct fact_page *page, size_t bytes)
{
    page->bytes += bytes;
    return ROWS_ADD(page->arena, page->list.facts, page->list.count);
}

static enum err page_old(struct fact_page *page, struct db *db, int64_t thread)
{
    struct stmt *s = db_prepare(db, "SELECT seq, type, run_id, at, data FROM events"
                                    " WHERE thread=?1 AND seq>?2 ORDER BY seq LIMIT ?3");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, page->after);
    stmt_bind_i64(s, 3, (int64_t)page->limit + 1);
    while (stmt_step(s) && page_room(page))
        old_read(s, page->arena, page_add(page, stmt_str(s, 4).len));
    return stmt_end(s);
}

/* The row is copied once, and its facts point into the copy: what the page does not take of it is
 * little, for a row of more than FACT_ROW_BYTES_MAX has one fact. */
static enum err page_row(struct fact_page *page, struct stmt *s)
{
    struct fact_frames frames;
    struct fact fact;
    if (row_last(s) <= page->after || !page_room(page)) return OK;
    row_begin(s, &frames);
    frames.rest = arena_str(page->arena, frames.rest);
    while (!page->list.more && fact_frames_next(&frames, &fact))
        if (fact.seq > page->after && page_room(page)) *page_add(page, fact.data.len) = fact;
    return fact_frames_end(&frames);
}

enum err facts_after(struct db *db, struct arena *arena, int64_t thread, int64_t after,
                     size_t limit, struct fact_list *ret_list)
{
    struct fact_page page = {.arena = arena, .after = after, .limit = limit};
    struct stmt *s = rows_from(db, thread, behind(after));
    bool found = stmt_step(s);
    enum err e = OK;
    if (!found || row_first(s) > behind(after)) e = page_old(&page, db, thread);
    for (; found && !e && !page.list.more; found = stmt_step(s)) e = page_row(&page, s);
    enum err ended = stmt_end(s);
    if (!e) e = ended;
    if (!e) *ret_list = page.list;
    return e;
}

/* ---- one ---- */

enum err facts_first(struct db *db, int64_t thread, int64_t *ret_seq)
{
    struct stmt *s =
        db_prepare(db,
                   "SELECT coalesce((SELECT min(first_seq) FROM facts WHERE thread=?1), last_seq+1)"
                   " FROM threads WHERE id=?1 AND owner<>''");
    stmt_bind_i64(s, 1, thread);
    bool found = stmt_step(s);
    int64_t seq = found ? stmt_i64(s, 0) : 0;
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    if (seq > 1) {
        s = db_prepare(db, "SELECT min(seq) FROM events WHERE thread=?1");
        stmt_bind_i64(s, 1, thread);
        if (stmt_step(s) && !stmt_is_null(s, 0)) seq = stmt_i64(s, 0);
        e = stmt_end(s);
    }
    if (!e) *ret_seq = seq;
    return e;
}

static enum err old_at(struct db *db, struct arena *arena, int64_t thread, int64_t seq,
                       struct fact *ret_fact)
{
    struct stmt *s = db_prepare(db, "SELECT seq, type, run_id, at, data FROM events"
                                    " WHERE thread=?1 AND seq=?2");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, seq);
    bool found = stmt_step(s);
    if (found) old_read(s, arena, ret_fact);
    enum err e = stmt_end(s);
    return e || found ? e : ERR_NOT_FOUND;
}

enum err fact_at(struct db *db, struct arena *arena, int64_t thread, int64_t seq,
                 struct fact *ret_fact)
{
    struct fact_frames frames;
    struct fact fact = {0};
    struct stmt *s = rows_back_from(db, thread, seq);
    bool row = stmt_step(s), found = false;
    enum err e = OK;
    if (row && row_last(s) >= seq) {
        row_begin(s, &frames);
        while (!found && fact_frames_next(&frames, &fact)) found = fact.seq == seq;
        e = fact_frames_end(&frames);
        if (found && !e) *ret_fact = fact_copy(arena, &fact);
    }
    enum err ended = stmt_end(s);
    if (e || ended) return e ? e : ended;
    if (!row) return old_at(db, arena, thread, seq, ret_fact);
    return found ? OK : ERR_NOT_FOUND;
}

/* ---- the newest ---- */

struct wanted {
    str run_id; /* empty: of any */
    const char *type, *or_type;
    int64_t after, upto;
};

static bool is_wanted(const struct wanted *wanted, const struct fact *fact)
{
    return fact->seq > wanted->after && fact->seq <= wanted->upto &&
           (!wanted->run_id.len || str_eq(fact->run_id, wanted->run_id)) &&
           (strcmp(fact->type, wanted->type) == 0 || strcmp(fact->type, wanted->or_type) == 0);
}

/* The last one in a row. */
static enum err row_find(struct stmt *s, struct arena *arena, const struct wanted *wanted,
                         bool *ret_found, struct fact *ret_fact)
{
    struct fact_frames frames;
    struct fact fact, last = {0};
    row_begin(s, &frames);
    while (fact_frames_next(&frames, &fact))
        if (is_wanted(wanted, &fact)) last = fact;
    enum err e = fact_frames_end(&frames);
    *ret_found = !e && last.type;
    if (*ret_found) *ret_fact = fact_copy(arena, &last);
    return e;
}

static enum err old_find(struct db *db, struct arena *arena, int64_t thread,
                         const struct wanted *wanted, int64_t upto, struct fact *ret_fact)
{
    struct stmt *s = db_prepare(db, "SELECT seq, type, run_id, at, data FROM events"
                                    " WHERE thread=?1 AND seq>?2 AND seq<=?3 AND type IN (?4, ?5)"
                                    " AND (?6='' OR run_id=?6) ORDER BY seq DESC LIMIT 1");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, wanted->after);
    stmt_bind_i64(s, 3, upto);
    stmt_bind_str(s, 4, str_c(wanted->type));
    stmt_bind_str(s, 5, str_c(wanted->or_type));
    stmt_bind_str(s, 6, wanted->run_id);
    bool found = stmt_step(s);
    if (found) old_read(s, arena, ret_fact);
    enum err e = stmt_end(s);
    return e || found ? e : ERR_NOT_FOUND;
}

enum err fact_last(struct db *db, struct arena *arena, int64_t thread, str run_id, const char *type,
                   const char *or_type, int64_t after, int64_t upto, struct fact *ret_fact)
{
    const struct wanted wanted = {run_id, type, or_type, after, upto};
    int64_t rest = upto; /* not looked at, up to here */
    bool found = false;
    enum err e = OK;
    struct stmt *s = rows_back_from(db, thread, upto);
    while (!e && !found && rest > after && stmt_step(s)) {
        rest = row_first(s) - 1;
        if (row_last(s) > after) e = row_find(s, arena, &wanted, &found, ret_fact);
    }
    enum err ended = stmt_end(s);
    if (e || ended) return e ? e : ended;
    if (found) return OK;
    return rest > after ? old_find(db, arena, thread, &wanted, rest, ret_fact) : ERR_NOT_FOUND;
}

/* ---- sums ---- */

struct used {
    uint64_t input, output;
};

static uint64_t tokens(const struct json *data, str key)
{
    int64_t count = 0;
    return json_i64(json_get(data, key), &count) == OK && count > 0 ? (uint64_t)count : 0;
}

static void used_add(struct used *used, str data)
{
    AUTO(arena_done) struct arena arena;
    struct json *json = NULL;
    arena_init(&arena);
    if (json_parse(&arena, data, &json, NULL)) return;
    used->input += tokens(json, STR("inputTokens"));
    used->output += tokens(json, STR("outputTokens"));
}

static enum err used_row(struct used *used, struct stmt *s, str run_id, int64_t after, int64_t upto)
{
    struct fact_frames frames;
    struct fact fact;
    row_begin(s, &frames);
    while (fact_frames_next(&frames, &fact))
        if (fact.seq > after && fact.seq <= upto && str_eq(fact.run_id, run_id) &&
            strcmp(fact.type, "text.message.end") == 0)
            used_add(used, fact.data);
    return fact_frames_end(&frames);
}

static enum err used_old(struct used *used, struct db *db, int64_t thread, str run_id,
                         int64_t after, int64_t upto)
{
    struct stmt *s = db_prepare(db, "SELECT coalesce(sum(data->>'inputTokens'), 0),"
                                    " coalesce(sum(data->>'outputTokens'), 0) FROM events"
                                    " WHERE thread=?1 AND seq>?2 AND seq<=?3 AND run_id=?4"
                                    " AND type='text.message.end'");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, after);
    stmt_bind_i64(s, 3, upto);
    stmt_bind_str(s, 4, run_id);
    bool found = stmt_step(s);
    int64_t input = found ? stmt_i64(s, 0) : 0, output = found ? stmt_i64(s, 1) : 0;
    used->input += input > 0 ? (uint64_t)input : 0;
    used->output += output > 0 ? (uint64_t)output : 0;
    return stmt_end(s);
}

enum err facts_usage(struct db *db, int64_t thread, str run_id, int64_t after, int64_t upto,
                     uint64_t *ret_input, uint64_t *ret_output)
{
    struct used used = {0};
    struct stmt *s = rows_from(db, thread, behind(after));
    bool found = stmt_step(s);
    enum err e = OK;
    if (!found || row_first(s) > behind(after))
        e = used_old(&used, db, thread, run_id, after, upto);
    for (; found && !e && row_first(s) <= upto; found = row_last(s) < upto && stmt_step(s))
        e = used_row(&used, s, run_id, after, upto);
    enum err ended = stmt_end(s);
    if (e || ended) return e ? e : ended;
    *ret_input = used.input;
    *ret_output = used.output;
    return OK;
}
