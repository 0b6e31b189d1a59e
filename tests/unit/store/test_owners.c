/* SPDX-License-Identifier: Apache-2.0 */
#include "store/table/owners.h"

#include <string.h>

#include "check.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"

/* Every column that names a user. A new one stands here with what becomes of it when somebody's rows
 * become another's: moved by owners.c, or left as it was. */
static const struct {
    const char *column;
    bool moved;
} columns[] = {
    {"api_keys.user", false},
    {"attachments.owner", true},
    {"audit.who", false},
    {"audit_chains.owner", true},
    {"calendar_done.owner", true},
    {"calendar_events.owner", true},
    {"calendar_shares.target", true},
    {"channel_links.user", true},
    {"channel_peers.user", true},
    {"grants.made_by", true},
    {"grants.owner", true},
    {"idempotency.owner", true},
    {"interactions.answered_by", false},
    {"interactions.owner", true},
    {"sessions.user", false},
    {"storage.owner", true},
    {"threads.owner", true},
    {"users.name", false},
};

static void every_column_is_known(void **state)
{
    struct db_fixture *t = *state;
    struct stmt *s =
        db_prepare(t->db, "SELECT t.name||'.'||c.name FROM sqlite_schema AS t,"
                          " pragma_table_info(t.name) AS c WHERE t.type='table' AND"
                          " (c.name IN ('owner', 'user', 'target', 'made_by', 'who', 'answered_by')"
                          "  OR (t.name='users' AND c.name='name')) ORDER BY 1");
    size_t found = 0;
    while (stmt_step(s)) {
        str name = stmt_str(s, 0);
        bool known = false;
        for (size_t i = 0; i < COUNT(columns); i++)
            known = known || str_eq(name, str_c(columns[i].column));
        if (!known) fail_msg("nobody knows what becomes of %.*s", STR_ARG(name));
        found++;
    }
    assert_int_equal(stmt_end(s), OK);
    assert_int_equal(found, COUNT(columns));
}

static int64_t number(struct db *db, const char *sql)
{
    int64_t n = 0;
    assert_int_equal(db_number(db_prepare_static(db, sql), &n), OK);
    return n;
}

/* A row of local in each of them, one of ann, and a thread that both have. */
static void moves(void **state)
{
    struct db_fixture *t = *state;
    thread_made(t->db, "local", "t1", "x", 1);
    int64_t both = thread_made(t->db, "local", "t2", "x", 1);
    thread_made(t->db, "me", "t2", "x", 1);
    thread_made(t->db, "ann", "t1", "x", 1);
    assert_int_equal(both, 2);
    assert_int_equal(
        by_hand(t->db,
                "INSERT INTO attachments VALUES ('a1','local','t1',1,1,0,0,'','','','b','1'),"
                " ('a2','local','t2',1,1,0,0,'','','','b','2'),"
                " ('a3','ann','t1',1,1,0,0,'','','','b','3');"
                "INSERT INTO calendar_events VALUES ('e1','local','c1',1,2,1,'','','','','[]'),"
                " ('e2','ann','c1',1,2,1,'','','','','[]');"
                "INSERT INTO calendar_shares VALUES ('e2','local'), ('e1','ann');"
                "INSERT INTO calendar_done VALUES ('local','c1',1,''), ('me','c1',1,'');"
                "INSERT INTO channel_links VALUES ('h','tg','local',1,1);"
                "INSERT INTO idempotency (owner, key, thread, hash, status, created, body) VALUES"
                " ('local','k1',1,x'',200,1,''), ('local','k2',2,x'',200,1,''),"
                " ('local','k3',NULL,x'',200,1,''), ('ann','k1',NULL,x'',200,1,'');"
                "INSERT INTO audit_chains VALUES (1,1,x'',x'',0,0,'chn_1','local','t1');"),
        OK);
    int64_t threads = 0;
    assert_int_equal(owner_threads(t->db, STR("local"), &threads), OK);
    assert_int_equal(threads, 2);
    assert_int_equal(owner_move(t->db, STR("local"), STR("me")), OK);
    assert_int_equal(owner_threads(t->db, STR("local"), &threads), OK);
    assert_int_equal(threads, 1);
    static const struct {
        const char *sql;
        int64_t expected;
    } rows[] = {
        {"SELECT count(*) FROM threads WHERE owner='me'", 2},
        {"SELECT count(*) FROM threads WHERE owner='ann'", 1},
        {"SELECT count(*) FROM attachments WHERE owner='me'", 1},
        {"SELECT count(*) FROM attachments WHERE owner='local' AND thread_id='t2'", 1},
        {"SELECT count(*) FROM calendar_events WHERE owner='me'", 1},
        {"SELECT count(*) FROM calendar_events WHERE owner='ann'", 1},
        {"SELECT count(*) FROM calendar_shares WHERE target='me'", 1},
        {"SELECT count(*) FROM calendar_done WHERE owner='local'", 1},
        {"SELECT count(*) FROM channel_links WHERE user='me'", 1},
        {"SELECT count(*) FROM idempotency WHERE owner='me'", 2},
        {"SELECT count(*) FROM idempotency WHERE owner='local' AND key='k2'", 1},
        {"SELECT count(*) FROM audit_chains WHERE owner='me'", 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (number(t->db, rows[i].sql) != rows[i].expected)
            fail_msg("%s: expected %lld", rows[i].sql, (long long)rows[i].expected);
}

static void runs(void **state)
{
    struct db_fixture *t = *state;
    int64_t mine = thread_made(t->db, "me", "t1", "x", 1);
    int64_t other = thread_made(t->db, "ann", "t1", "x", 1);
    run_made(t->db, mine, "r0", RUN_COMPLETED);
    int64_t waiting = run_made(t->db, mine, "r1", RUN_WAITING);
    run_made(t->db, mine, "r2", RUN_QUEUED);
    run_made(t->db, other, "r1", RUN_RUNNING);
    struct run_ids ids = {0};
    assert_int_equal(owner_runs(t->db, &t->arena, STR("me"), &ids), OK);
    assert_int_equal(ids.count, 1);
    assert_int_equal(ids.ids[0], waiting);
}

int test_owners(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DB(every_column_is_known),
        WITH_DB(moves),
        WITH_DB(runs),
    };
    return db_fixture_group("store/owners", tests, COUNT(tests));
}
