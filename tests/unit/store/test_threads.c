/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "check.h"
#include "store/attachments.h"
#include "store/audit.h"
#include "store/blob_rows.h"
#include "store/calls.h"
#include "store/channels.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"
#include "store/grants.h"
#include "store/interactions.h"

static void life(void **state)
{
    struct db_fixture *t = *state;
    struct thread thread = {.owner = STR("alice"),
                            .thread_id = STR("t1"),
                            .title = STR("Weather"),
                            .agent = STR("assistant"),
                            .created = 5,
                            .updated = 6};
    struct thread found = {0}, again = {0};
    assert_int_equal(thread_add(t->db, &thread), OK);
    assert_int_equal(thread_find(t->db, &t->arena, STR("alice"), STR("t1"), &found), OK);
    assert_int_equal(found.id, thread.id);
    assert_str(found.owner, STR("alice"));
    assert_str(found.thread_id, STR("t1"));
    assert_str(found.title, STR("Weather"));
    assert_str(found.agent, STR("assistant"));
    assert_int_equal(found.last_seq, 0);
    assert_int_equal(found.created, 5);
    assert_int_equal(found.updated, 6);

    assert_int_equal(thread_rename(t->db, thread.id, STR("天气"), 9), OK);
    assert_int_equal(thread_by_id(t->db, &t->arena, thread.id, &again), OK);
    assert_str(again.title, STR("天气"));
    assert_int_equal(again.updated, 9);

    thread.id = 0;
    assert_int_equal(thread_add(t->db, &thread), ERR_BUSY);
    assert_int_equal(thread.id, 0);
    assert_int_equal(thread_rename(t->db, 99, STR("x"), 9), ERR_NOT_FOUND);
    assert_int_equal(thread_by_id(t->db, &t->arena, 99, &again), ERR_NOT_FOUND);
    assert_int_equal(thread_delete(t->db, 99), ERR_NOT_FOUND);
}

static void owners_do_not_meet(void **state)
{
    struct db_fixture *t = *state;
    int64_t hers = thread_made(t->db, "alice", "same", "plans", 1);
    int64_t his = thread_made(t->db, "bob", "same", "plans", 2);
    thread_made(t->db, "bob", "only-bob", "plans", 3);
    message_made(t->db, his, "m1", "secret", 2);
    assert_int_not_equal(hers, his);
    static const struct {
        str owner, thread_id;
        enum err expected;
    } rows[] = {
        {STR("alice"), STR("same"), OK},
        {STR("bob"), STR("same"), OK},
        {STR("bob"), STR("only-bob"), OK},
        {STR("alice"), STR("only-bob"), ERR_NOT_FOUND},
        {STR("Alice"), STR("same"), ERR_NOT_FOUND},
        {STR(""), STR("same"), ERR_NOT_FOUND},
        {STR("alice"), STR(""), ERR_NOT_FOUND},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct thread found = {0};
        enum err e = thread_find(t->db, &t->arena, rows[i].owner, rows[i].thread_id, &found);
        assert_int_equal(e, rows[i].expected);
        if (!e) assert_str(found.owner, rows[i].owner);
    }
    static const struct {
        str owner, query;
        size_t expected;
    } lists[] = {
        {STR("alice"), STR(""), 1},       {STR("bob"), STR(""), 2},
        {STR("alice"), STR("plans"), 1},  {STR("bob"), STR("plans"), 2},
        {STR("alice"), STR("secret"), 0}, {STR("bob"), STR("secret"), 1},
        {STR("carol"), STR(""), 0},
    };
    for (size_t i = 0; i < COUNT(lists); i++) {
        struct thread_list list = {0};
        assert_int_equal(
            thread_page(t->db, &t->arena, lists[i].owner, lists[i].query, 0, 0, 10, &list), OK);
        assert_int_equal(list.count, lists[i].expected);
        for (size_t k = 0; k < list.count; k++) assert_str(list.threads[k].owner, lists[i].owner);
    }
}

/* All pages of this size, one behind the other, give t4 t3 t2 t1 t0, though three of them were
 * updated in the same millisecond. */
static void pages_follow_each_other(void **state)
{
    struct db_fixture *t = *state;
    static const msec updated[] = {10, 20, 20, 20, 30};
    static const char *const ids[] = {"t0", "t1", "t2", "t3", "t4"};
    for (size_t i = 0; i < COUNT(ids); i++) thread_made(t->db, "alice", ids[i], "x", updated[i]);
    for (size_t limit = 1; limit <= 6; limit++) {
        struct thread_list list = {.more = true};
        msec after_updated = 0;
        int64_t after_id = 0;
        size_t seen = 0;
        for (size_t page = 0; list.more; page++) {
            assert_true(page < COUNT(ids));
            assert_int_equal(thread_page(t->db, &t->arena, STR("alice"), STR_EMPTY, after_updated,
                                         after_id, limit, &list),
                             OK);
            for (size_t i = 0; i < list.count; i++)
                assert_str(list.threads[i].thread_id, str_c(ids[COUNT(ids) - 1 - seen++]));
            assert_true(list.count > 0);
            after_updated = list.threads[list.count - 1].updated;
            after_id = list.threads[list.count - 1].id;
        }
        assert_int_equal(seen, COUNT(ids));
    }
}

static void search(void **state)
{
    struct db_fixture *t = *state;
    int64_t a = thread_made(t->db, "alice", "a", "Sales 100% up", 1);
    int64_t b = thread_made(t->db, "alice", "b", "snake_case and C:\\temp", 2);
    int64_t c = thread_made(t->db, "alice", "c", "明天的日程", 3);
    message_made(t->db, a, "m1", "Hello World", 1);
    message_made(t->db, b, "m1", "预订会议室", 2);
    message_made(t->db, c, "m1", "1000 things", 3);
    message_made(t->db, c, "m2", "HELLO again", 3);
    static const struct {
        str query;
        const char *expected; /* thread ids, newest first */
    } rows[] = {
        {STR("hello"), "ca"}, {STR("WORLD"), "a"},  {STR("%"), "a"},       {STR("100%"), "a"},
        {STR("100"), "ca"},   {STR("_"), "b"},      {STR("e_c"), "b"},     {STR("\\"), "b"},
        {STR("c:\\T"), "b"},  {STR("\\%"), ""},     {STR("会议"), "b"},    {STR("日程"), "c"},
        {STR("的"), "c"},     {STR("nothing"), ""}, {STR("' OR 1=1"), ""}, {STR("hello w"), "a"},
        {STR("a%"), ""},      {STR("h_llo"), ""},   {STR("SALES"), "a"},   {STR(""), "cba"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct thread_list list = {0};
        char got[8] = "";
        assert_int_equal(thread_page(t->db, &t->arena, STR("alice"), rows[i].query, 0, 0, 5, &list),
                         OK);
        for (size_t k = 0; k < list.count; k++) got[k] = list.threads[k].thread_id.p[0];
        if (!str_eq(str_c(got), str_c(rows[i].expected)))
            fail_msg("\"%.*s\" found \"%s\", expected \"%s\"", STR_ARG(rows[i].query), got,
                     rows[i].expected);
        assert_false(list.more);
    }
}

static void search_in_pages(void **state)
{
    struct db_fixture *t = *state;
    thread_made(t->db, "alice", "t1", "red one", 1);
    thread_made(t->db, "alice", "t2", "blue", 2);
    thread_made(t->db, "alice", "t3", "red three", 3);
    struct thread_list list = {0};
    assert_int_equal(thread_page(t->db, &t->arena, STR("alice"), STR("red"), 0, 0, 1, &list), OK);
    assert_int_equal(list.count, 1);
    assert_str(list.threads[0].thread_id, STR("t3"));
    assert_true(list.more);
    assert_int_equal(thread_page(t->db, &t->arena, STR("alice"), STR("red"), 3, list.threads[0].id,
                                 1, &list),
                     OK);
    assert_int_equal(list.count, 1);
    assert_str(list.threads[0].thread_id, STR("t1"));
    assert_false(list.more);
}

static void search_bounds(void **state)
{
    struct db_fixture *t = *state;
    char query[SEARCH_QUERY_BYTES_MAX + 1];
    for (size_t i = 0; i < sizeof query; i++) query[i] = i % 2 ? '%' : 'x';
    struct thread_list list = {.count = 7};
    thread_made(t->db, "alice", "t1", "x%x%x", 1);
    assert_int_equal(thread_page(t->db, &t->arena, STR("alice"), (str){query, sizeof query}, 0, 0,
                                 5, &list),
                     ERR_INVALID_FIELD);
    assert_int_equal(list.count, 7);
    assert_int_equal(thread_page(t->db, &t->arena, STR("alice"), (str){query, sizeof query - 1}, 0,
                                 0, 5, &list),
                     OK);
    assert_int_equal(list.count, 0);
}

/* The newer thread uses up what may be looked at; one message less, and the older one is found. */
static void search_ends(void **state)
{
    struct db_fixture *t = *state;
    int64_t older = thread_made(t->db, "alice", "t1", "x", 1);
    message_made(t->db, older, "m", "needle", 1);
    int64_t newer = thread_made(t->db, "alice", "t2", "x", 2);
    struct stmt *s = db_prepare(
        t->db,
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<?2)"
        " INSERT INTO messages (thread, seq, id, role, run_id, created, plain, metadata, usage,"
        "  tool_calls, content, provider_data)"
        " SELECT ?1, i, i, '', '', 0, 'hay', '', '', '', '', '' FROM n");
    stmt_bind_i64(s, 1, newer);
    stmt_bind_i64(s, 2, SEARCH_MESSAGES_MAX);
    assert_int_equal(stmt_run(s), OK);
    struct thread_list list = {0};
    assert_int_equal(thread_page(t->db, &t->arena, STR("alice"), STR("needle"), 0, 0, 5, &list),
                     OK);
    assert_int_equal(list.count, 0);
    assert_false(list.more);
    assert_int_equal(db_script(t->db, "DELETE FROM messages WHERE id='1'"), OK);
    assert_int_equal(thread_page(t->db, &t->arena, STR("alice"), STR("needle"), 0, 0, 5, &list),
                     OK);
    assert_int_equal(list.count, 1);
    assert_str(list.threads[0].thread_id, STR("t1"));
}

/* ---- deleting ---- */

static int64_t count_of(struct db *db, const char *what, str table, const char *where)
{
    /* A statement is found by the address of its text, so this one must stay. */
    static char texts[64][256];
    static size_t used;
    assert_true(used < COUNT(texts));
    char *text = texts[used++];
    snprintf(text, sizeof texts[0], "SELECT count(%s) FROM %.*s%s", what, STR_ARG(table), where);
    int64_t count = -1;
    assert_int_equal(db_number(db_prepare_static(db, text), &count), OK);
    return count;
}

/* The tables that have a column of this name, from the database itself. */
static size_t tables_with(struct db_fixture *t, str column, str *tables, size_t room)
{
    struct stmt *s = db_prepare(t->db, "SELECT t.name FROM sqlite_schema AS t,"
                                       " pragma_table_info(t.name) AS c"
                                       " WHERE t.type='table' AND c.name=?1 ORDER BY 1");
    size_t count = 0;
    stmt_bind_str(s, 1, column);
    while (stmt_step(s)) {
        assert_true(count < room);
        tables[count++] = arena_str(&t->arena, stmt_str(s, 0));
    }
    assert_int_equal(stmt_end(s), OK);
    return count;
}

/* One row in every table that has rows of threads or runs. */
static int64_t full_thread(struct db *db, const char *owner)
{
    int64_t thread = thread_made(db, owner, "t", "x", 1);
    message_made(db, thread, "m", "x", 1);
    struct run queued = {.thread = thread,
                         .run_id = STR("q"),
                         .input = STR("{\"state\":1}"),
                         .tools = STR("[{\"name\":\"paint\",\"description\":\"\"}]")};
    assert_int_equal(run_add(db, &queued), OK);
    assert_int_equal(queued_id_add(db, &queued, STR("m2")), OK);
    int64_t run = run_made(db, thread, "r", RUN_RUNNING);
    unsigned char hash[HASH_BYTES] = {0};
    assert_int_equal(snapshot_save(db, run, 0, 1, STR("bytes"), hash), OK);
    struct accepted accepted = {.answer = STR("{}")};
    assert_int_equal(accepted_add(db, thread, STR("r"), &accepted, 1), OK);
    struct remembered remembered = {.status = 202, .body = STR("{}"), .thread = thread};
    assert_int_equal(idempotency_add(db, str_c(owner), STR("k"), &remembered, 1), OK);
    struct interaction interaction = {.thread = thread, .run = run, .id = str_c(owner)};
    assert_int_equal(interaction_add(db, &interaction), OK);
    struct call call = {.run = run, .call_id = STR("c")};
    assert_int_equal(call_add(db, &call), OK);
    struct grant grant = {.thread = thread, .id = str_c(owner), .owner = str_c(owner)};
    assert_int_equal(grant_add(db, &grant), OK);
    struct audit_entry entry = {.who = str_c(owner)};
    assert_int_equal(audit_add(db, hash, thread, &entry), OK);
    struct blob_row blob = {.thread = thread, .bucket = STR("b"), .path = str_c(owner)};
    assert_int_equal(blob_row_add(db, &blob), OK);
    struct attachment attachment = {
        .id = str_c(owner), .owner = str_c(owner), .path = str_c(owner)};
    struct thread row = {.id = thread, .thread_id = STR("t")};
    assert_int_equal(attachment_add(db, &attachment), OK);
    assert_int_equal(attachment_use(db, &attachment, &row), OK);
    struct peer peer = {.thread = thread, .sender = str_c(owner)};
    assert_int_equal(peer_add(db, &peer), OK);
    return thread;
}

static void delete_takes_everything(void **state)
{
    struct db_fixture *t = *state;
    str by_thread[16], by_run[16];
    size_t threads = tables_with(t, STR("thread"), by_thread, COUNT(by_thread));
    size_t runs = tables_with(t, STR("run"), by_run, COUNT(by_run));
    assert_true(threads >= 5 && runs >= 2);

    int64_t gone = full_thread(t->db, "alice");
    assert_int_equal(gone, 1);
    full_thread(t->db, "bob");
    for (size_t i = 0; i < threads; i++)
        if (count_of(t->db, "DISTINCT thread", by_thread[i], "") != 2)
            fail_msg("the test puts nothing into %.*s", STR_ARG(by_thread[i]));
    for (size_t i = 0; i < runs; i++)
        if (count_of(t->db, "DISTINCT run", by_run[i], "") != 2)
            fail_msg("the test puts nothing into %.*s", STR_ARG(by_run[i]));

    assert_int_equal(thread_delete(t->db, gone), OK);
    for (size_t i = 0; i < threads; i++) {
        assert_int_equal(count_of(t->db, "*", by_thread[i], " WHERE thread=1"), 0);
        assert_int_equal(count_of(t->db, "DISTINCT thread", by_thread[i], ""), 1);
    }
    for (size_t i = 0; i < runs; i++)
        assert_int_equal(count_of(t->db, "DISTINCT run", by_run[i], ""), 1);
    struct thread found = {0};
    assert_int_equal(thread_find(t->db, &t->arena, STR("alice"), STR("t"), &found), ERR_NOT_FOUND);
    assert_int_equal(thread_find(t->db, &t->arena, STR("bob"), STR("t"), &found), OK);
    assert_true(db_sound(t->db));
}

/* Who still holds the id of a deleted thread must not find another in its place. */
static void ids_are_not_used_again(void **state)
{
    struct db_fixture *t = *state;
    int64_t first = thread_made(t->db, "alice", "t", "x", 1);
    int64_t run = run_made(t->db, first, "r", RUN_RUNNING);
    assert_int_equal(thread_delete(t->db, first), OK);
    int64_t second = thread_made(t->db, "bob", "t", "x", 1);
    assert_true(second > first);
    assert_true(run_made(t->db, second, "r", RUN_RUNNING) > run);
    struct fact fact = {.type = "late", .data = STR("{}")};
    assert_int_equal(facts_append(t->db, first, &fact, 1, 1), ERR_NOT_FOUND);
}

int test_threads(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DB(life),        WITH_DB(owners_do_not_meet),      WITH_DB(pages_follow_each_other),
        WITH_DB(search),      WITH_DB(search_in_pages),         WITH_DB(search_bounds),
        WITH_DB(search_ends), WITH_DB(delete_takes_everything), WITH_DB(ids_are_not_used_again),
    };
    return cmocka_run_group_tests_name("store/threads", tests, NULL, NULL);
}
