/* SPDX-License-Identifier: Apache-2.0 */
#include "store/conversation_kit.h"

#include "check.h"
#include "store/db/hot.h"
#include "store/db/sqlite.h"

int64_t thread_made(struct db *db, const char *owner, const char *thread_id, const char *title,
                    msec updated)
{
    struct thread thread = {
        .owner = str_c(owner),
        .thread_id = str_c(thread_id),
        .title = str_c(title),
        .agent = STR("assistant"),
        .created = 1,
        .updated = updated,
    };
    assert_int_equal(thread_add(db, &thread), OK);
    assert_true(thread.id > 0);
    return thread.id;
}

int64_t run_made(struct db *db, int64_t thread, const char *run_id, enum run_status status)
{
    struct run run = {
        .thread = thread, .run_id = str_c(run_id), .status = status, .task_id = STR("task")};
    if (!run_status_open(status)) run.ended = 1;
    if (status != RUN_QUEUED) run.legs = 1;
    assert_int_equal(run_add(db, &run), OK);
    if (run.legs) assert_int_equal(facts_append_leg(db, thread, NULL, 0, 1, run.id), OK);
    return run.id;
}

int64_t message_made(struct db *db, int64_t thread, const char *id, const char *plain, msec at)
{
    struct fact fact = {.type = "message.added", .at = at, .data = STR("{}")};
    assert_int_equal(facts_append(db, thread, &fact, 1, at), OK);
    struct message message = {
        .seq = fact.seq,
        .id = str_c(id),
        .role = STR("user"),
        .content = STR("\"text\""),
        .metadata = STR("{}"),
        .plain = str_c(plain),
        .created = at,
    };
    assert_int_equal(message_add(db, thread, &message), OK);
    return fact.seq;
}

void old_facts_made(struct db *db, int64_t thread, int64_t count)
{
    struct stmt *s =
        db_prepare(db, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<?2)"
                       " INSERT INTO events (thread, seq, type, run_id, at, data) SELECT ?1, i,"
                       "  iif(i%3, 'old', 'text.message.end'), iif(i%3, 'r', 'q'), i,"
                       "  iif(i%3, '{}', '{\"inputTokens\":1,\"outputTokens\":100}') FROM n");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, count);
    assert_int_equal(stmt_run(s), OK);
    s = db_prepare(db, "UPDATE threads SET last_seq=?2 WHERE id=?1");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, count);
    assert_int_equal(stmt_run(s), OK);
    hot_drop_all(db); /* it was written past them */
}
