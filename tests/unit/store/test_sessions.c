/* SPDX-License-Identifier: Apache-2.0 */
#include "store/table/sessions.h"

#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "store/fixture.h"
#include "store/table/keys.h"

static struct session session_for(unsigned char first, msec expires)
{
    return (struct session){.hash = {first},
                            .user = STR("alice"),
                            .roles = ROLE_USER | ROLE_APPROVER,
                            .created = 5,
                            .expires = expires};
}

static void life(void **state)
{
    struct db_fixture *t = *state;
    struct session session = session_for(1, 100), found = {0};
    assert_int_equal(sessions_add(t->db, &session), OK);
    assert_int_equal(sessions_add(t->db, &session), ERR_BUSY);

    assert_int_equal(sessions_find(t->db, session.hash, 99, &t->arena, &found), OK);
    assert_memory_equal(found.hash, session.hash, HASH_BYTES);
    assert_str(found.user, STR("alice"));
    assert_str(found.key_id, STR_EMPTY);
    assert_int_equal(found.roles, ROLE_USER | ROLE_APPROVER);
    assert_int_equal(found.created, 5);
    assert_int_equal(found.expires, 100);

    assert_int_equal(sessions_find(t->db, session.hash, 100, &t->arena, &found), ERR_NOT_FOUND);
    struct session other = session_for(2, 100);
    assert_int_equal(sessions_find(t->db, other.hash, 50, &t->arena, &found), ERR_NOT_FOUND);

    assert_int_equal(sessions_end(t->db, session.hash, 60), OK);
    assert_int_equal(sessions_find(t->db, session.hash, 70, &t->arena, &found), ERR_NOT_FOUND);
    assert_int_equal(sessions_end(t->db, session.hash, 80), OK);
    assert_int_equal(sessions_end(t->db, other.hash, 80), OK);
    int64_t ended = 0;
    assert_int_equal(db_number(db_prepare(t->db, "SELECT ended FROM sessions"), &ended), OK);
    assert_int_equal(ended, 60);
}

static void odd_ones(void **state)
{
    struct db_fixture *t = *state;
    struct session session = session_for(1, 100), found = {0};
    session.user = STR_EMPTY;
    assert_int_equal(sessions_add(t->db, &session), ERR_INVALID_FIELD);

    /* A key from the environment has no row, and its sessions are like any other. */
    session = session_for(1, 100);
    session.key_id = STR("environment");
    assert_int_equal(sessions_add(t->db, &session), OK);
    assert_int_equal(sessions_find(t->db, session.hash, 50, &t->arena, &found), OK);
    assert_str(found.key_id, STR("environment"));
    assert_int_equal(sessions_end_by_key(t->db, session.key_id, 60), OK);
    assert_int_equal(sessions_find(t->db, session.hash, 70, &t->arena, &found), ERR_NOT_FOUND);
}

static void expiring(void **state)
{
    struct db_fixture *t = *state;
    bool unknown = false;
    assert_int_equal(db_begin(t->db), OK);
    for (int i = 0; i < SESSIONS_EXPIRE_MAX + 10; i++) {
        struct session session = session_for(0, i < SESSIONS_EXPIRE_MAX + 3 ? 100 : 200);
        memcpy(session.hash, &i, sizeof i);
        assert_int_equal(sessions_add(t->db, &session), OK);
    }
    assert_int_equal(db_commit(t->db, &unknown), OK);
    static const struct {
        msec now;
        int64_t expected;
    } rows[] = {{99, 0}, {100, SESSIONS_EXPIRE_MAX}, {100, 3}, {100, 0}, {200, 7}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t count = -1;
        assert_int_equal(sessions_expire(t->db, rows[i].now, &count), OK);
        assert_int_equal(count, rows[i].expected);
    }
}

int test_sessions(void)
{
    const struct CMUnitTest tests[] = {WITH_DB(life), WITH_DB(odd_ones), WITH_DB(expiring)};
    return cmocka_run_group_tests_name("store/sessions", tests, NULL, NULL);
}
