/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include <string.h>

#include "check.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"
#include "store/table/attachments.h"
#include "store/table/audit.h"
#include "store/table/blob_rows.h"
#include "store/table/calls.h"
#include "store/table/channels.h"
#include "store/table/doomed.h"
#include "store/table/grants.h"
#include "store/table/interactions.h"

/* A page of what alice, or somebody, has. */
static enum err page_of(struct db_fixture *t, str owner, str query, struct thread_place after,
                        size_t limit, struct thread_list *ret_list)
{
    struct thread_query ask = {.owner = owner, .query = query, .after = after, .limit = limit};
    return thread_page(t->db, &t->arena, &ask, ret_list);
}

static const struct thread_place start = {0};

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
        assert_int_equal(page_of(t, lists[i].owner, lists[i].query, start, 10, &list), OK);
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
        size_t seen = 0;
        for (size_t page = 0; list.more; page++) {
            assert_true(page < COUNT(ids));
            assert_int_equal(page_of(t, STR("alice"), STR_EMPTY, list.next, limit, &list), OK);
            for (size_t i = 0; i < list.count; i++)
                assert_str(list.threads[i].thread_id, str_c(ids[COUNT(ids) - 1 - seen++]));
            assert_true(list.count > 0);
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
    message_made(t->db, a, "m2", "äpfel und ÖL", 1);
    message_made(t->db, b, "m2", "ΓΕΙΑ ΣΑΣ, привет", 2);
    message_made(t->db, c, "m3", "ＡＢＣ, straẞe", 3);
    static const struct {
        str query;
        const char *expected; /* thread ids, newest first */
    } rows[] = {
        {STR("hello"), "ca"}, {STR("WORLD"), "a"},  {STR("%"), "a"},       {STR("100%"), "a"},
        {STR("100"), "ca"},   {STR("_"), "b"},      {STR("e_c"), "b"},     {STR("\\"), "b"},
        {STR("c:\\T"), "b"},  {STR("\\%"), ""},     {STR("会议"), "b"},    {STR("日程"), "c"},
        {STR("的"), "c"},     {STR("nothing"), ""}, {STR("' OR 1=1"), ""}, {STR("hello w"), "a"},
        {STR("a%"), ""},      {STR("h_llo"), ""},   {STR("SALES"), "a"},   {STR(""), "cba"},
        {STR("ÄPFEL"), "a"},  {STR("öl"), "a"},     {STR("σας"), "b"},     {STR("ПРИВЕТ"), "b"},
        {STR("ａｂｃ"), "c"}, {STR("straße"), "c"}, {STR("STRASSE"), ""},  {STR("Ŝ"), ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct thread_list list = {0};
        char got[8] = "";
        assert_int_equal(page_of(t, STR("alice"), rows[i].query, start, 5, &list), OK);
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
    assert_int_equal(page_of(t, STR("alice"), STR("red"), start, 1, &list), OK);
    assert_int_equal(list.count, 1);
    assert_str(list.threads[0].thread_id, STR("t3"));
    assert_true(list.more);
    assert_int_equal(page_of(t, STR("alice"), STR("red"), list.next, 1, &list), OK);
    assert_int_equal(list.count, 1);
    assert_str(list.threads[0].thread_id, STR("t1"));
    assert_false(list.more);
}

static void search_bounds(void **state)
{
    struct db_fixture *t = *state;
    char query[SEARCH_QUERY_BYTES_MAX + 1];
    for (size_t i = 0; i < sizeof query; i++) query[i] = i % 2 ? '%' : 'x';
    str longest = {query, sizeof query - 1}, longer = {query, sizeof query};
    struct thread_list list = {.count = 7};
    thread_made(t->db, "alice", "t1", "x%x%x", 1);
    assert_int_equal(page_of(t, STR("alice"), longer, start, 5, &list), ERR_INVALID_FIELD);
    assert_int_equal(list.count, 7);
    assert_int_equal(page_of(t, STR("alice"), longest, start, 5, &list), OK);
    assert_int_equal(list.count, 0);
}

static void search_file_names(void **state)
{
    struct db_fixture *t = *state;
    static const str files = STR("[{\"id\":\"att_1\",\"filename\":\"Übersicht \\u00c4.pdf\"}]");
    int64_t thread = thread_made(t->db, "alice", "a", "x", 1);
    struct message message = {
        .id = STR("m"), .seq = 1, .role = STR("user"), .metadata = STR("{}"), .attachments = files};
    assert_int_equal(message_add(t->db, thread, &message), OK);
    static const struct {
        str query;
        size_t expected;
    } rows[] = {{STR("übersicht"), 1}, {STR("ä.PDF"), 1}, {STR("att_1"), 0}, {STR("filename"), 0}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct thread_list list = {0};
        assert_int_equal(page_of(t, STR("alice"), rows[i].query, start, 5, &list), OK);
        assert_int_equal(list.count, rows[i].expected);
    }
}

/* However little a page may look at, all pages together find what one would, each thread once. */
static void search_goes_on(void **state)
{
    struct db_fixture *t = *state;
    for (int n = 0; n < 6; n++) {
        char id[] = {'t', (char)('0' + n), '\0'};
        int64_t thread = thread_made(t->db, "alice", id, n == 4 ? "a needle" : "x", n + 1);
        for (int m = 0; m < 7; m++) {
            char message[] = {'m', (char)('0' + m), '\0'};
            message_made(t->db, thread, message, m == n || n == 5 ? "Needle" : "hay", m + 1);
        }
    }
    for (uint64_t bytes = 1; bytes < 40 * SEARCH_ROW_BYTES; bytes += SEARCH_ROW_BYTES / 2)
        for (size_t limit = 1; limit < 8; limit++) {
            struct thread_query ask = {
                .owner = STR("alice"), .query = STR("needle"), .limit = limit, .bytes_max = bytes};
            struct thread_list list = {.more = true};
            char got[8] = "";
            size_t count = 0;
            for (int pages = 0; list.more; pages++) {
                assert_true(pages < 100);
                ask.after = list.next;
                assert_int_equal(thread_page(t->db, &t->arena, &ask, &list), OK);
                for (size_t i = 0; i < list.count; i++) {
                    assert_true(count < 6);
                    got[count++] = list.threads[i].thread_id.p[1];
                }
                arena_reset(&t->arena);
            }
            if (!str_eq(str_c(got), STR("543210")))
                fail_msg("%d bytes, limit %zu: found %s", (int)bytes, limit, got);
        }
}

/* The page ended inside a thread which is deleted, or moves to the front, before the next. */
static void search_goes_on_without_it(void **state)
{
    struct db_fixture *t = *state;
    int64_t older = thread_made(t->db, "alice", "t1", "x", 1);
    message_made(t->db, older, "m", "needle", 1);
    int64_t newer = thread_made(t->db, "alice", "t2", "x", 2);
    message_made(t->db, newer, "m1", "needle", 1);
    message_made(t->db, newer, "m2", "hay", 2);
    struct thread_query ask = {
        .owner = STR("alice"), .query = STR("needle"), .limit = 5, .bytes_max = 1};
    struct thread_list list = {0}, moved = {0}, gone = {0};
    assert_int_equal(thread_page(t->db, &t->arena, &ask, &list), OK);
    assert_int_equal(list.count, 0);
    assert_true(list.more && list.next.seq);

    ask.after = list.next;
    ask.bytes_max = 0;
    assert_int_equal(thread_rename(t->db, newer, STR("y"), 9), OK);
    assert_int_equal(thread_page(t->db, &t->arena, &ask, &moved), OK);
    assert_int_equal(moved.count, 2);
    assert_str(moved.threads[0].thread_id, STR("t2"));
    assert_str(moved.threads[1].thread_id, STR("t1"));

    ask.owner = STR("bob"); /* whoever has the cursor of another */
    assert_int_equal(thread_page(t->db, &t->arena, &ask, &gone), OK);
    assert_int_equal(gone.count, 0);
    ask.owner = STR("alice");
    assert_int_equal(thread_delete(t->db, newer), OK);
    assert_int_equal(thread_page(t->db, &t->arena, &ask, &gone), OK);
    assert_int_equal(gone.count, 1);
    assert_str(gone.threads[0].thread_id, STR("t1"));
}

/* Time is up before the first look at the clock: what was looked at until then counts. */
static void search_has_a_deadline(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t1", "x", 1);
    for (int m = 0; m < 3; m++) {
        char id[] = {'m', (char)('0' + m), '\0'};
        message_made(t->db, thread, id, m ? "hay" : "needle", m + 1);
    }
    struct thread_query ask = {
        .owner = STR("alice"), .query = STR("needle"), .limit = 5, .until = 1};
    struct thread_list list = {0};
    assert_int_equal(thread_page(t->db, &t->arena, &ask, &list), OK);
    assert_int_equal(list.count, 0);
    assert_true(list.more);
    ask.after = list.next;
    ask.until = 0;
    assert_int_equal(thread_page(t->db, &t->arena, &ask, &list), OK);
    assert_int_equal(list.count, 1);
    assert_false(list.more);
}

/* ---- deleting ---- */

static int64_t count_of(struct db *db, const char *what, str table, const char *where)
{
    /* A statement is found by the address of its text, so this one must stay. */
    static char texts[256][256];
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
    static char longer[RUN_INPUT_SHORT_MAX];
    memset(longer, 'x', sizeof longer);
    int64_t thread = thread_made(db, owner, "t", "x", 1);
    old_facts_made(db, thread, 100);
    message_made(db, thread, "m", "x", 1);
    struct run queued = {.thread = thread,
                         .run_id = STR("q"),
                         .input = STR("{\"state\":1}"),
                         .tools = {longer, sizeof longer}};
    assert_int_equal(run_add(db, &queued), OK);
    assert_int_equal(queued_id_add(db, &queued, STR("m2")), OK);
    int64_t run = run_made(db, thread, "r", RUN_RUNNING);
    unsigned char hash[HASH_BYTES] = {0};
    assert_int_equal(run_start_leg(db, &(struct run){.id = run, .legs = 2}, STR("w"), 1), OK);
    struct stmt *old = db_prepare(db, "INSERT INTO snapshots VALUES (?1, 1, 1, x'', x'')");
    stmt_bind_i64(old, 1, run);
    assert_int_equal(stmt_run(old), OK);
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

static struct thread doom(struct db_fixture *t, const char *owner, size_t spools)
{
    struct thread thread;
    str *names = NULL;
    size_t count = 0;
    assert_int_equal(thread_find(t->db, &t->arena, str_c(owner), STR("t"), &thread), OK);
    assert_int_equal(thread_doom(t->db, &t->arena, &thread, &names, &count), OK);
    assert_int_equal(count, spools);
    return thread;
}

/* A step of the removal: false when there is nothing left. */
static bool remove_a_little(struct db_fixture *t, msec span)
{
    struct doomed doomed = {0};
    assert_int_equal(doomed_next(t->db, &t->arena, &(struct doomed_place){0}, &doomed), OK);
    assert_true(doomed.count <= DOOMED_FILES_MAX);
    for (size_t i = 0; i < doomed.count; i++) doomed.files[i].gone = true;
    if (doomed.count)
        assert_int_equal(doomed_files_gone(t->db, &doomed), OK);
    else if (doomed.thread)
        assert_int_equal(doomed_rows_remove(t->db, doomed.thread, &clock_system, span), OK);
    return doomed.count || doomed.thread;
}

/* From the mark on nobody finds it, and its name is free. */
static void doomed_is_not_there(void **state)
{
    struct db_fixture *t = *state;
    full_thread(t->db, "alice");
    struct interaction settled = {.thread = 1,
                                  .id = STR("old"),
                                  .owner = STR("alice"),
                                  .approver = STR("boss"),
                                  .status = INTERACTION_RESOLVED};
    assert_int_equal(interaction_add(t->db, &settled), OK);
    struct thread gone = doom(t, "alice", 0), found;
    assert_int_equal(thread_find(t->db, &t->arena, STR("alice"), STR("t"), &found), ERR_NOT_FOUND);
    assert_int_equal(thread_by_id(t->db, &t->arena, gone.id, &found), ERR_NOT_FOUND);
    struct fact fact = {.type = "late", .data = STR("{}")};
    assert_int_equal(facts_append(t->db, gone.id, &fact, 1, 1), ERR_NOT_FOUND);
    struct thread_list list = {0};
    assert_int_equal(page_of(t, STR("alice"), STR("x"), start, 5, &list), OK);
    assert_int_equal(list.count, 0);
    struct interaction interaction;
    assert_int_equal(interaction_find(t->db, &t->arena, STR("old"), &interaction), ERR_NOT_FOUND);
    assert_int_equal(interaction_find(t->db, &t->arena, STR("alice"), &interaction), ERR_NOT_FOUND);
    struct interaction_filter filters[] = {
        {.owner = STR("alice"), .status = -1, .limit = 5},
        {.owner = STR("bob"), .status = -1, .limit = 5, .roles = {STR("boss")}}};
    for (size_t i = 0; i < COUNT(filters); i++) {
        struct interaction_list page = {0};
        assert_int_equal(interactions_page(t->db, &t->arena, &filters[i], &page), OK);
        assert_int_equal(page.count, 0);
    }
    struct run run;
    assert_int_equal(run_current(t->db, &t->arena, gone.id, &run), ERR_NOT_FOUND);
    assert_int_equal(run_next(t->db, &t->arena, gone.id, &run), ERR_NOT_FOUND);
    struct attachment attachment;
    assert_int_equal(attachment_find(t->db, &t->arena, STR("alice"), &attachment), ERR_NOT_FOUND);
    struct grant_list grants = {0};
    assert_int_equal(grants_page(t->db, &t->arena,
                                 &(struct grant_filter){.user = STR("alice"), .limit = 5}, &grants),
                     OK);
    assert_int_equal(grants.count, 0);
    struct remembered remembered = {.status = 200, .body = STR("new")};
    assert_int_equal(idempotency_find(t->db, &t->arena, STR("alice"), STR("k"), &remembered),
                     ERR_NOT_FOUND);
    assert_int_equal(idempotency_add(t->db, STR("alice"), STR("k"), &remembered, 2), OK);
    assert_int_equal(idempotency_add(t->db, STR("alice"), STR("k"), &remembered, 2), ERR_BUSY);
    int64_t again = thread_made(t->db, "alice", "t", "y", 1);
    while (remove_a_little(t, 1000)) continue;
    assert_int_equal(thread_find(t->db, &t->arena, STR("alice"), STR("t"), &found), OK);
    assert_int_equal(found.id, again);
    assert_int_equal(idempotency_find(t->db, &t->arena, STR("alice"), STR("k"), &remembered), OK);
}

/* However short the time: every step takes something, and at last nothing is left of it, in any table
 * that there is. */
static void doomed_goes_in_steps(void **state)
{
    struct db_fixture *t = *state;
    enum { ROWS = 200 };
    str tables[16];
    size_t count = tables_with(t, STR("thread"), tables, COUNT(tables));
    int64_t thread = full_thread(t->db, "alice");
    full_thread(t->db, "bob");
    for (int i = 0; i < ROWS; i++) {
        char id[16];
        snprintf(id, sizeof id, "m%d", i);
        message_made(t->db, thread, id, "x", 1);
        snprintf(id, sizeof id, "r%d", i);
        int64_t run = run_made(t->db, thread, id, RUN_COMPLETED);
        struct call call = {.run = run, .call_id = STR("c"), .spool = i ? STR_EMPTY : STR("file")};
        for (call.n = 0; call.n < 3; call.n++) assert_int_equal(call_add(t->db, &call), OK);
        struct blob_row blob = {
            .thread = thread, .bucket = STR("many"), .path = arena_str(&t->arena, str_c(id))};
        assert_int_equal(blob_row_add(t->db, &blob), OK);
    }
    doom(t, "alice", 3);
    bool needed = true;
    assert_int_equal(calls_spooled(t->db, STR("file"), &needed), OK);
    assert_false(needed);
    size_t steps = 0;
    while (remove_a_little(t, 0)) steps++;
    assert_true(steps > ROWS / 32 && steps < 10 * ROWS);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(count_of(t->db, "*", tables[i], " WHERE thread=1"), 0);
        assert_int_equal(count_of(t->db, "DISTINCT thread", tables[i], ""), 1);
    }
    assert_int_equal(count_of(t->db, "*", STR("attachments"), ""), 1);
    assert_int_equal(count_of(t->db, "*", STR("threads"), ""), 1);
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
        WITH_DB(life),
        WITH_DB(owners_do_not_meet),
        WITH_DB(pages_follow_each_other),
        WITH_DB(search),
        WITH_DB(search_in_pages),
        WITH_DB(search_bounds),
        WITH_DB(search_file_names),
        WITH_DB(search_goes_on),
        WITH_DB(search_goes_on_without_it),
        WITH_DB(search_has_a_deadline),
        WITH_DB(delete_takes_everything),
        WITH_DB(ids_are_not_used_again),
        WITH_DB(doomed_is_not_there),
        WITH_DB(doomed_goes_in_steps),
    };
    return db_fixture_group("store/threads", tests, COUNT(tests));
}
