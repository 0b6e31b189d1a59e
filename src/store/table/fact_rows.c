/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `events`: a thread's facts, numbered without gaps. threads.last_seq is the number of
 * the newest one and moves in the same transaction, so numbers have no gaps and none is given
 * twice; a job that fails takes its numbers back with it.
 */
#include <string.h>

#include "base/limits.h"
#include "base/rows.h"
#include "store/db/sqlite.h"
#include "store/table/thread_row.h"

static enum err fact_put(struct db *db, int64_t thread, const struct fact *fact)
{
    struct stmt *s = db_prepare(db, "INSERT INTO events (thread, seq, type, run_id, at, data)"
                                    " VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, fact->seq);
    stmt_bind_str(s, 3, str_c(fact->type));
    stmt_bind_str(s, 4, fact->run_id);
    stmt_bind_i64(s, 5, fact->at);
    stmt_bind_str(s, 6, fact->data);
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
    for (size_t i = 0; i < count && !e; i++) {
        facts[i].seq = last - (int64_t)(count - 1 - i);
        e = fact_put(db, thread, &facts[i]);
    }
    return e;
}

static void fact_read(struct stmt *s, struct arena *arena, struct fact *fact)
{
    *fact = (struct fact){
        .seq = stmt_i64(s, 0),
        .type = arena_cstr(arena, stmt_str(s, 1)),
        .run_id = arena_str(arena, stmt_str(s, 2)),
        .at = stmt_i64(s, 3),
        .data = arena_str(arena, stmt_str(s, 4)),
    };
}

enum err facts_after(struct db *db, struct arena *arena, int64_t thread, int64_t after,
                     size_t limit, struct fact_list *ret_list)
{
    struct fact_list list = {0};
    size_t bytes = 0;
    struct stmt *s = db_prepare(db, "SELECT seq, type, run_id, at, data FROM events"
                                    " WHERE thread=?1 AND seq>?2 ORDER BY seq LIMIT ?3");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, after);
    stmt_bind_i64(s, 3, (int64_t)limit + 1);
    while (!list.more && stmt_step(s)) {
        list.more = list.count == limit || bytes >= FACT_PAGE_BYTES_MAX;
        if (list.more) break;
        struct fact *fact = ROWS_ADD(arena, list.facts, list.count);
        fact_read(s, arena, fact);
        bytes += fact->data.len;
    }
    enum err e = stmt_end(s);
    if (!e) *ret_list = list;
    return e;
}

enum err facts_first(struct db *db, int64_t thread, int64_t *ret_seq)
{
    struct stmt *s =
        db_prepare(db, "SELECT coalesce((SELECT min(seq) FROM events WHERE thread=?1), last_seq+1)"
                       " FROM threads WHERE id=?1 AND owner<>''");
    stmt_bind_i64(s, 1, thread);
    bool found = stmt_step(s);
    int64_t seq = found ? stmt_i64(s, 0) : 0;
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    *ret_seq = seq;
    return OK;
}

enum err fact_at(struct db *db, struct arena *arena, int64_t thread, int64_t seq,
                 struct fact *ret_fact)
{
    struct stmt *s = db_prepare(db, "SELECT seq, type, run_id, at, data FROM events"
                                    " WHERE thread=?1 AND seq=?2");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, seq);
    bool found = stmt_step(s);
    if (found) fact_read(s, arena, ret_fact);
    enum err e = stmt_end(s);
    return e || found ? e : ERR_NOT_FOUND;
}

enum err fact_last(struct db *db, struct arena *arena, int64_t thread, str run_id, const char *type,
                   const char *or_type, int64_t upto, struct fact *ret_fact)
{
    struct stmt *s = db_prepare(db, "SELECT seq, type, run_id, at, data FROM events"
                                    " WHERE thread=?1 AND seq<=?2 AND type IN (?3, ?4)"
                                    " AND (?5='' OR run_id=?5) ORDER BY seq DESC LIMIT 1");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, upto);
    stmt_bind_str(s, 3, str_c(type));
    stmt_bind_str(s, 4, str_c(or_type));
    stmt_bind_str(s, 5, run_id);
    bool found = stmt_step(s);
    if (found) fact_read(s, arena, ret_fact);
    enum err e = stmt_end(s);
    return e || found ? e : ERR_NOT_FOUND;
}

enum err facts_usage(struct db *db, int64_t thread, str run_id, int64_t after, int64_t upto,
                     uint64_t *ret_input, uint64_t *ret_output)
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
    enum err e = stmt_end(s);
    if (e) return e;
    *ret_input = input > 0 ? (uint64_t)input : 0;
    *ret_output = output > 0 ? (uint64_t)output : 0;
    return OK;
}
