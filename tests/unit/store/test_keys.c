/* SPDX-License-Identifier: Apache-2.0 */
#include "store/table/keys.h"

#include <string.h>

#include "check.h"
#include "store/fixture.h"
#include "store/table/sessions.h"

static void roles(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum err expected;
        unsigned bit;
    } rows[] = {
        {"user", OK, ROLE_USER},         {"approver", OK, ROLE_APPROVER},
        {"operator", OK, ROLE_OPERATOR}, {"User", ERR_INVALID_FIELD, 0},
        {"", ERR_INVALID_FIELD, 0},      {"use", ERR_INVALID_FIELD, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned bit = 0;
        assert_int_equal(role_parse(str_c(rows[i].name), &bit), rows[i].expected);
        assert_int_equal(bit, rows[i].bit);
    }
}

static void key_text(void **state)
{
    (void)state;
    unsigned char random[KEY_RANDOM_BYTES];
    for (size_t i = 0; i < sizeof random; i++) random[i] = (unsigned char)i;
    char text[KEY_TEXT_BYTES];
    key_make(random, text);
    assert_string_equal(text, "fk_00041061050r3gg28a1c60t3gf_"
                              "EBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCkqKywtLi8");
    str id;
    assert_int_equal(key_parse(str_c(text), &id), OK);
    assert_str(id, STR("00041061050r3gg28a1c60t3gf"));
    for (size_t len = 0; len + 1 < KEY_TEXT_BYTES; len++)
        assert_int_equal(key_parse((str){text, len}, &id), ERR_INVALID_FIELD);
    for (size_t i = 0; i + 1 < KEY_TEXT_BYTES; i++) {
        char kept = text[i];
        text[i] = '!';
        assert_int_equal(key_parse(str_c(text), &id), ERR_INVALID_FIELD);
        text[i] = '\0';
        assert_int_equal(key_parse((str){text, KEY_TEXT_BYTES - 1}, &id), ERR_INVALID_FIELD);
        text[i] = kept;
    }
}

static struct key key_for(const char *id, const char *user, msec now)
{
    struct key key = {
        .id = str_c(id), .user = str_c(user), .name = STR("laptop"), .roles = ROLE_USER};
    key.created = now;
    key_hash(key.id, key.hash);
    return key;
}

static void adding(void **state)
{
    struct db_fixture *t = *state;
    struct key first = key_for("k1", "alice", 10), second = key_for("k2", "alice", 20);
    second.roles = ROLE_APPROVER | ROLE_OPERATOR;
    second.name = STR_EMPTY;
    assert_int_equal(keys_add(t->db, &first), OK);
    assert_int_equal(keys_add(t->db, &second), OK);

    struct key_list list;
    assert_int_equal(keys_list(t->db, &t->arena, &list), OK);
    assert_int_equal(list.count, 2);
    assert_str(list.keys[0].id, STR("k2"));
    assert_str(list.keys[0].name, STR_EMPTY);
    assert_int_equal(list.keys[0].roles, ROLE_APPROVER | ROLE_OPERATOR);
    assert_str(list.keys[1].id, STR("k1"));
    assert_str(list.keys[1].user, STR("alice"));
    assert_str(list.keys[1].name, STR("laptop"));
    assert_int_equal(list.keys[1].created, 10);
    assert_int_equal(list.keys[1].revoked, 0);
    assert_memory_equal(list.keys[1].hash, first.hash, HASH_BYTES);

    int64_t users = 0;
    assert_int_equal(db_number(db_prepare(t->db, "SELECT count(*) FROM users"), &users), OK);
    assert_int_equal(users, 1);
}

static void refusing(void **state)
{
    struct db_fixture *t = *state;
    char long_text[USER_BYTES_MAX + 2];
    memset(long_text, 'u', sizeof long_text);
    str longest = {long_text, USER_BYTES_MAX}, too_long = {long_text, USER_BYTES_MAX + 1};

    struct key taken = key_for("taken", "bob", 1);
    assert_int_equal(keys_add(t->db, &taken), OK);
    struct {
        struct key key;
        enum err expected;
    } rows[] = {
        {key_for("taken", "bob", 1), ERR_BUSY},
        {key_for("h", "bob", 1), ERR_BUSY},
        {key_for("", "bob", 1), ERR_INVALID_FIELD},
        {key_for("k", "", 1), ERR_INVALID_FIELD},
        {key_for("k", "a\nb", 1), ERR_INVALID_FIELD},
        {key_for("k", "a\x7f", 1), ERR_INVALID_FIELD},
        {key_for("k", "a\xff", 1), ERR_INVALID_FIELD},
        {key_for("k1", "bob", 1), ERR_INVALID_FIELD},
        {key_for("k2", "bob", 1), ERR_INVALID_FIELD},
        {key_for("k3", "bob", 1), ERR_INVALID_FIELD},
        {key_for("k4", "bob", 1), ERR_INVALID_FIELD},
        {key_for("k5", "bob", 1), OK},
        {key_for("k6", "\xe5\xb0\x8f\xe7\x8e\x8b@example.org", 1), OK},
    };
    memcpy(rows[1].key.hash, taken.hash, HASH_BYTES);
    rows[7].key.user = too_long;
    rows[8].key.name = too_long;
    rows[9].key.roles = 0;
    rows[10].key.roles = ROLE_ASK | ROLE_USER; /* stands alone */
    rows[11].key.user = rows[11].key.name = longest;
    for (size_t i = 0; i < COUNT(rows); i++) {
        enum err e = keys_add(t->db, &rows[i].key);
        if (e != rows[i].expected)
            fail_msg("row %zu: %s, expected %s", i, err_code(e), err_code(rows[i].expected));
    }
}

static void many(void **state)
{
    struct db_fixture *t = *state;
    bool unknown = false;
    assert_int_equal(db_begin(t->db), OK);
    for (int i = 0; i < KEYS_MAX; i++) {
        struct stmt *s = db_prepare(t->db, "INSERT INTO users VALUES ('bob', 1)"
                                           " ON CONFLICT DO NOTHING");
        if (i == 0) assert_int_equal(stmt_run(s), OK);
        s = db_prepare(t->db,
                       "INSERT INTO api_keys VALUES"
                       " ('k'||?1, 'bob', 1, '', CAST(printf('%032d', ?1) AS BLOB), 1, NULL)");
        stmt_bind_i64(s, 1, i);
        assert_int_equal(stmt_run(s), OK);
    }
    assert_int_equal(db_commit(t->db, &unknown), OK);
    struct key more = key_for("more", "bob", 2);
    assert_int_equal(keys_add(t->db, &more), ERR_TOO_LARGE);
    struct key_list list;
    assert_int_equal(keys_load_all(t->db, &t->arena, &list), OK);
    assert_int_equal(list.count, KEYS_MAX);
    assert_int_equal(keys_revoke(t->db, STR("k7"), 3), OK);
    assert_int_equal(keys_add(t->db, &more), OK);
}

static void revoking(void **state)
{
    struct db_fixture *t = *state;
    struct key gone = key_for("gone", "alice", 1), kept = key_for("kept", "alice", 2);
    assert_int_equal(keys_add(t->db, &gone), OK);
    assert_int_equal(keys_add(t->db, &kept), OK);
    struct session by_gone = {.hash = {1}, .key_id = gone.id, .user = gone.user, .expires = 1000};
    struct session by_kept = {.hash = {2}, .key_id = kept.id, .user = kept.user, .expires = 1000};
    assert_int_equal(sessions_add(t->db, &by_gone), OK);
    assert_int_equal(sessions_add(t->db, &by_kept), OK);

    assert_int_equal(keys_revoke(t->db, STR("none"), 50), ERR_NOT_FOUND);
    assert_int_equal(keys_revoke(t->db, gone.id, 50), OK);
    assert_int_equal(keys_revoke(t->db, gone.id, 60), OK);

    struct key_list list;
    assert_int_equal(keys_load_all(t->db, &t->arena, &list), OK);
    assert_int_equal(list.count, 1);
    assert_str(list.keys[0].id, kept.id);
    assert_int_equal(keys_list(t->db, &t->arena, &list), OK);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.keys[1].revoked, 50); /* the first time counts */

    struct session found;
    assert_int_equal(sessions_find(t->db, by_gone.hash, 70, &t->arena, &found), ERR_NOT_FOUND);
    assert_int_equal(sessions_find(t->db, by_kept.hash, 70, &t->arena, &found), OK);
}

static void sets_of_roles(void **state)
{
    (void)state;
    static const struct {
        unsigned roles;
        bool valid;
    } rows[] = {{0, false},
                {ROLE_USER, true},
                {ROLES_OF_PEOPLE, true},
                {ROLE_ASK, true},
                {16, false},
                {ROLE_USER | 16, false},
                {ROLE_ASK | ROLE_USER, false},
                {ROLE_ASK | ROLE_OPERATOR, false}};
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(roles_valid(rows[i].roles), rows[i].valid);
}

/* What somebody did lasts as long as the person may; `local` while there has never been a key, or the
 * environment has one for them. */
static void people(void **state)
{
    struct db_fixture *t = *state;
    bool yes = false;
    assert_int_equal(person_has_role(t->db, STR("local"), STR("approver"), &yes), OK);
    assert_true(yes);
    assert_int_equal(people_none(t->db, &yes), OK);
    assert_true(yes);
    struct key ask = key_for("ask", "bot", 1), eve = key_for("eve", "eve", 2);
    ask.roles = ROLE_ASK;
    eve.roles = ROLE_APPROVER;
    assert_int_equal(keys_add(t->db, &ask), OK);
    assert_int_equal(people_none(t->db, &yes), OK);
    assert_true(yes);
    assert_int_equal(keys_add(t->db, &eve), OK);
    assert_int_equal(people_none(t->db, &yes), OK);
    assert_false(yes);
    static const struct {
        const char *user, *role;
        bool has;
    } rows[] = {{"local", "approver", false}, {"eve", "approver", true}, {"eve", "operator", false},
                {"eve", "none", false},       {"bot", "ask", true},      {"bot", "user", false},
                {"ann", "user", false},       {"", "user", false}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(person_has_role(t->db, str_c(rows[i].user), str_c(rows[i].role), &yes),
                         OK);
        assert_int_equal(yes, rows[i].has);
    }
    assert_int_equal(people_local_set(t->db, true), OK);
    assert_int_equal(person_has_role(t->db, STR("local"), STR("operator"), &yes), OK);
    assert_true(yes);
    assert_int_equal(people_local_set(t->db, false), OK);
    assert_int_equal(people_local(t->db, &yes), OK);
    assert_false(yes);
    assert_int_equal(person_gone(t->db, STR("eve"), &yes), OK);
    assert_false(yes);
    assert_int_equal(keys_revoke(t->db, eve.id, 5), OK);
    assert_int_equal(person_gone(t->db, STR("eve"), &yes), OK);
    assert_true(yes);
    assert_int_equal(person_gone(t->db, STR("tg:7"), &yes), OK); /* never had one */
    assert_false(yes);
    assert_int_equal(person_has_role(t->db, STR("eve"), STR("approver"), &yes), OK);
    assert_false(yes);
}

int test_keys(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles),
        cmocka_unit_test(key_text),
        WITH_DB(adding),
        WITH_DB(refusing),
        WITH_DB(many),
        WITH_DB(revoking),
        cmocka_unit_test(sets_of_roles),
        WITH_DB(people),
    };
    return cmocka_run_group_tests_name("store/keys", tests, NULL, NULL);
}
