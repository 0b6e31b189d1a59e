/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"

static void life(void **state)
{
    struct db_fixture *t = *state;
    struct remembered kept = {.hash = {7}, .status = 202, .body = STR("{\"a\":1}")};
    struct remembered found = {0};
    assert_int_equal(idempotency_add(t->db, STR("alice"), STR("k"), &kept, 5), OK);
    assert_int_equal(idempotency_find(t->db, &t->arena, STR("alice"), STR("k"), &found), OK);
    assert_memory_equal(found.hash, kept.hash, HASH_BYTES);
    assert_int_equal(found.status, 202);
    assert_str(found.body, kept.body);
    assert_int_equal(found.thread, 0);
    assert_int_equal(idempotency_add(t->db, STR("alice"), STR("k"), &kept, 6), ERR_BUSY);
    assert_int_equal(idempotency_find(t->db, &t->arena, STR("bob"), STR("k"), &found),
                     ERR_NOT_FOUND);
    assert_int_equal(idempotency_find(t->db, &t->arena, STR("alice"), STR("K"), &found),
                     ERR_NOT_FOUND);
    assert_int_equal(idempotency_add(t->db, STR("bob"), STR("k"), &kept, 6), OK);
    kept.thread = 99; /* there is no such thread */
    assert_int_equal(idempotency_add(t->db, STR("bob"), STR("k2"), &kept, 6), ERR_INTERNAL);
}

static void expiring(void **state)
{
    struct db_fixture *t = *state;
    bool unknown = false;
    assert_int_equal(db_begin(t->db), OK);
    for (int i = 0; i < IDEMPOTENCY_EXPIRE_MAX + 10; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        struct remembered kept = {.status = 200};
        msec created = i < IDEMPOTENCY_EXPIRE_MAX + 3 ? 99 : 199;
        assert_int_equal(idempotency_add(t->db, STR("alice"), str_c(key), &kept, created), OK);
    }
    assert_int_equal(db_commit(t->db, &unknown), OK);
    static const struct {
        msec before;
        int64_t expected;
    } rows[] = {{99, 0}, {100, IDEMPOTENCY_EXPIRE_MAX}, {100, 3}, {100, 0}, {200, 7}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t count = -1;
        assert_int_equal(idempotency_expire(t->db, rows[i].before, &count), OK);
        assert_int_equal(count, rows[i].expected);
    }
}

/* However many were given it, a long answer is there once, and goes with the last of them. */
static void long_answers(void **state)
{
    struct db_fixture *t = *state;
    enum { LONG = 1000 * 1000, TIMES = 50 };
    char *text = arena_alloc(&t->arena, LONG);
    memset(text, 'x', LONG);
    int64_t count = 0;
    for (int i = 0; i < TIMES; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        struct remembered kept = {.status = 409, .body = {text, LONG}}, found = {0};
        assert_int_equal(
            idempotency_add(t->db, i % 2 ? STR("ann") : STR("bob"), str_c(key), &kept, i + 1), OK);
        assert_int_equal(idempotency_find(t->db, &t->arena, i % 2 ? STR("ann") : STR("bob"),
                                          str_c(key), &found),
                         OK);
        assert_int_equal(found.status, 409);
        assert_str(found.body, kept.body);
    }
    assert_int_equal(db_number(db_prepare(t->db, "SELECT count(*) FROM answers"), &count), OK);
    assert_int_equal(count, 1);
    assert_int_equal(
        db_number(db_prepare(t->db, "SELECT sum(length(body)) FROM idempotency"), &count), OK);
    assert_int_equal(count, 0);
    static const struct {
        msec before;
        int64_t left;
    } rows[] = {{TIMES, 1}, {TIMES + 1, 0}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(idempotency_expire(t->db, rows[i].before, &count), OK);
        assert_int_equal(db_number(db_prepare(t->db, "SELECT count(*) FROM answers"), &count), OK);
        assert_int_equal(count, rows[i].left);
    }
}

/* Kept as long as the thread has something to do, whatever that is. */
static void open_runs_keep_theirs(void **state)
{
    struct db_fixture *t = *state;
    for (enum run_status status = 0; status < RUN_STATUS_COUNT; status++) {
        const char *name = run_status_name(status);
        int64_t thread = thread_made(t->db, "alice", name, "x", 1);
        struct remembered kept = {.status = 202, .thread = thread}, found = {0};
        run_made(t->db, thread, "r", status);
        assert_int_equal(idempotency_add(t->db, STR("alice"), str_c(name), &kept, 1), OK);
        assert_int_equal(idempotency_find(t->db, &t->arena, STR("alice"), str_c(name), &found), OK);
        assert_int_equal(found.thread, thread);
    }
    int64_t count = 0;
    assert_int_equal(idempotency_expire(t->db, 100, &count), OK);
    assert_int_equal(count, 4);
    for (enum run_status status = 0; status < RUN_STATUS_COUNT; status++) {
        struct remembered found = {0};
        assert_int_equal(idempotency_find(t->db, &t->arena, STR("alice"),
                                          str_c(run_status_name(status)), &found),
                         run_status_open(status) ? OK : ERR_NOT_FOUND);
    }
}

int test_idempotency(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DB(long_answers),
        WITH_DB(life),
        WITH_DB(expiring),
        WITH_DB(open_runs_keep_theirs),
    };
    return db_fixture_group("store/idempotency", tests, COUNT(tests));
}
