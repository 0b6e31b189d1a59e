/* SPDX-License-Identifier: Apache-2.0 */
#include "store/table/grants.h"

#include <stdio.h>

#include "base/limits.h"
#include "check.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"
#include "store/table/keys.h"

static enum err page(struct db_fixture *t, const char *user, int64_t before, size_t limit,
                     struct grant_list *ret_list)
{
    const struct grant_filter filter = {.user = str_c(user), .before = before, .limit = limit};
    return grants_page(t->db, &t->arena, &filter, ret_list);
}

static void every_field(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "ann", "t1", "x", 1);
    struct grant grants[] = {
        {.id = STR("grant_1"),
         .owner = STR("ann"),
         .thread = thread,
         .thread_id = STR("t1"),
         .tool = STR("calendar_write"),
         .match = STR("{\"location\":\"三楼\"}"),
         .rule = STR("file:calendar_*"),
         .made_by = STR("bob"),
         .interaction_id = STR("int_1"),
         .created = 5},
        {.id = STR("grant_2"),
         .owner = STR("ann"),
         .tool = STR("calendar_delete"),
         .match = STR("{}"),
         .made_by = STR("ann"),
         .interaction_id = STR("int_2"),
         .created = 6},
    };
    for (size_t i = 0; i < COUNT(grants); i++) {
        assert_int_equal(grant_add(t->db, &grants[i]), OK);
        assert_int_equal(grants[i].n, i + 1);
    }
    struct grant again = grants[0];
    again.n = 0;
    assert_int_equal(grant_add(t->db, &again), ERR_BUSY);
    assert_int_equal(again.n, 0);
    struct grant_list list = {0};
    assert_int_equal(page(t, "ann", 0, 5, &list), OK);
    assert_int_equal(list.count, COUNT(grants));
    for (size_t i = 0; i < list.count; i++) {
        const struct grant *got = &list.rows[i], *expected = &grants[COUNT(grants) - 1 - i];
        assert_int_equal(got->n, expected->n);
        assert_str(got->id, expected->id);
        assert_str(got->owner, expected->owner);
        assert_int_equal(got->thread, expected->thread);
        assert_str(got->thread_id, expected->thread_id);
        assert_str(got->tool, expected->tool);
        assert_str(got->match, expected->match);
        assert_str(got->rule, expected->rule);
        assert_str(got->made_by, expected->made_by);
        assert_str(got->interaction_id, expected->interaction_id);
        assert_int_equal(got->created, expected->created);
    }
}

/* Ids are one letter each here. */
static void grant_made(struct db *db, const char *owner, int64_t thread, const char *id)
{
    struct grant grant = {.id = str_c(id),
                          .owner = str_c(owner),
                          .thread = thread,
                          .thread_id = thread ? STR("t") : STR(""),
                          .tool = STR("tool"),
                          .match = STR("{}")};
    assert_int_equal(grant_add(db, &grant), OK);
}

static void assert_ids(const struct grant_list *list, const char *expected)
{
    char got[16] = "";
    assert_true(list->count < sizeof got);
    for (size_t i = 0; i < list->count; i++) got[i] = list->rows[i].id.p[0];
    assert_string_equal(got, expected);
}

static void lists(void **state)
{
    struct db_fixture *t = *state;
    int64_t one = thread_made(t->db, "ann", "t", "x", 1);
    int64_t two = thread_made(t->db, "ann", "u", "x", 1);
    int64_t his = thread_made(t->db, "bob", "t", "x", 1);
    grant_made(t->db, "ann", 0, "a");
    grant_made(t->db, "ann", one, "b");
    grant_made(t->db, "bob", 0, "c");
    grant_made(t->db, "ann", two, "d");
    grant_made(t->db, "bob", his, "e");
    grant_made(t->db, "ann", one, "f");
    grant_made(t->db, "ann", 0, "g");
    static const struct {
        const char *owner;
        int64_t before;
        size_t limit;
        const char *expected;
        bool more;
    } pages[] = {
        {"ann", 0, 9, "gfdba", false}, {"ann", 0, 5, "gfdba", false}, {"ann", 0, 4, "gfdb", true},
        {"ann", 4, 1, "b", true},      {"ann", 4, 2, "ba", false},    {"ann", 1, 2, "", false},
        {"bob", 0, 9, "ec", false},    {"cid", 0, 9, "", false},      {"Ann", 0, 9, "", false},
    };
    struct grant_list list = {0};
    for (size_t i = 0; i < COUNT(pages); i++) {
        assert_int_equal(page(t, pages[i].owner, pages[i].before, pages[i].limit, &list), OK);
        assert_ids(&list, pages[i].expected);
        assert_int_equal(list.more, pages[i].more);
    }
    const struct {
        const char *owner;
        int64_t thread;
        const char *expected;
    } served[] = {
        {"ann", one, "fbga"}, {"ann", two, "dga"}, {"ann", 99, "ga"},
        {"bob", his, "ec"},   {"bob", one, "c"}, /* not hers, though the thread is named */
        {"cid", one, ""},
    };
    for (size_t i = 0; i < COUNT(served); i++) {
        assert_int_equal(grants_of_thread(t->db, &t->arena, str_c(served[i].owner),
                                          served[i].thread, &list),
                         OK);
        assert_ids(&list, served[i].expected);
        assert_false(list.more);
    }
}

static void those_of_a_thread_are_bounded(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "ann", "t", "x", 1);
    bool unknown = false;
    assert_int_equal(db_begin(t->db), OK);
    for (int i = 0; i <= GRANTS_MAX; i++) {
        char id[24];
        snprintf(id, sizeof id, "grant_%d", i);
        grant_made(t->db, "ann", i % 2 ? thread : 0, id);
        if (i < GRANTS_MAX - 1) continue;
        struct grant_list list = {0};
        assert_int_equal(grants_of_thread(t->db, &t->arena, STR("ann"), thread, &list), OK);
        assert_int_equal(list.count, GRANTS_MAX);
        assert_int_equal(list.more, i == GRANTS_MAX);
    }
    assert_int_equal(db_commit(t->db, &unknown), OK);
}

static const unsigned char audit_key[HASH_BYTES] = "a key for the tests, 32 bytes...";

static void deletion(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "ann", "t", "x", 1);
    grant_made(t->db, "ann", thread, "a");
    grant_made(t->db, "ann", 0, "b");
    grant_made(t->db, "ann", 0, "c");
    struct grant grant;
    const struct grant_end end = {
        .audit_key = audit_key, .who = STR("ann"), .via = STR("api"), .why = STR("revoked")};
    assert_int_equal(grant_find(t->db, &t->arena, STR("x"), &grant), ERR_NOT_FOUND);
    assert_int_equal(grant_find(t->db, &t->arena, STR("b"), &grant), OK);
    assert_int_equal(grant_revoke(t->db, &t->arena, &grant, &end), OK);
    assert_int_equal(grant_revoke(t->db, &t->arena, &grant, &end), ERR_NOT_FOUND);
    struct grant_list list = {0};
    assert_int_equal(page(t, "ann", 0, 9, &list), OK);
    assert_ids(&list, "ca");
    assert_int_equal(thread_delete(t->db, thread), OK); /* the thread's own goes with it */
    assert_int_equal(page(t, "ann", 0, 9, &list), OK);
    assert_ids(&list, "c");
}

static void key_made(struct db *db, const char *id, const char *user, unsigned roles)
{
    struct key key = {.id = str_c(id), .user = str_c(user), .roles = roles, .created = 1};
    crypto_sha256(key.id, key.hash);
    assert_int_equal(keys_add(db, &key), OK);
}

static int64_t number(struct db *db, const char *sql)
{
    int64_t n = 0;
    assert_int_equal(db_number(db_prepare_static(db, sql), &n), OK);
    return n;
}

/* Of three that roles gave, and one that its owner gave: whom they concern, and whose makers stand for
 * them. */
static void makers(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "ann", "t", "x", 1);
    key_made(t->db, "k1", "eve", ROLE_APPROVER);
    key_made(t->db, "k2", "eve", ROLE_APPROVER);
    key_made(t->db, "k3", "oscar", ROLE_OPERATOR);
    key_made(t->db, "k4", "ann", ROLE_APPROVER);
    static const struct {
        const char *id, *maker, *role;
    } rows[] = {{"a", "eve", "approver"},
                {"b", "oscar", "operator"},
                {"c", "ann", ""},
                {"d", "mallory", "approver"},
                {"e", "ann", "approver"}}; /* for herself, where somebody else has to look */
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct grant grant = {.id = str_c(rows[i].id),
                              .owner = STR("ann"),
                              .thread = i % 2 ? thread : 0,
                              .tool = STR("tool"),
                              .match = STR("{}"),
                              .made_by = str_c(rows[i].maker),
                              .approver = str_c(rows[i].role)};
        assert_int_equal(grant_add(t->db, &grant), OK);
    }
    static const struct {
        const char *user, *role;
        bool all;
        const char *expected;
    } seen[] = {{"ann", "", false, "cba"},       {"eve", "", false, "a"},
                {"eve", "approver", false, "a"}, {"bob", "operator", false, "b"},
                {"bob", "user", false, ""},      {"bob", "", true, "cba"}};
    struct grant_list list = {0};
    for (size_t i = 0; i < COUNT(seen); i++) {
        const struct grant_filter filter = {.user = str_c(seen[i].user),
                                            .roles = {str_c(seen[i].role)},
                                            .all = seen[i].all,
                                            .limit = 9};
        assert_int_equal(grants_page(t->db, &t->arena, &filter, &list), OK);
        assert_ids(&list, seen[i].expected);
    }
    struct grant grant;
    assert_int_equal(grant_find(t->db, &t->arena, STR("d"), &grant), ERR_NOT_FOUND);
    assert_int_equal(grants_of_thread(t->db, &t->arena, STR("ann"), thread, &list), OK);
    assert_ids(&list, "bca");

    assert_int_equal(keys_revoke(t->db, STR("k1"), 5), OK); /* she has another */
    assert_int_equal(grants_of_thread(t->db, &t->arena, STR("ann"), thread, &list), OK);
    assert_ids(&list, "bca");
    assert_int_equal(keys_revoke(t->db, STR("k2"), 5), OK);
    assert_int_equal(grants_of_thread(t->db, &t->arena, STR("ann"), thread, &list), OK);
    assert_ids(&list, "bc");
    assert_int_equal(grants_end(t->db, &t->arena, audit_key, 6), OK);
    assert_int_equal(number(t->db, "SELECT count(*) FROM grants"), 2);
    assert_int_equal(number(t->db, "SELECT count(*) FROM audit WHERE action=6 AND why='role'"), 3);
}

int test_grants(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DB(every_field), WITH_DB(lists),  WITH_DB(those_of_a_thread_are_bounded),
        WITH_DB(deletion),    WITH_DB(makers),
    };
    return db_fixture_group("store/grants", tests, COUNT(tests));
}
