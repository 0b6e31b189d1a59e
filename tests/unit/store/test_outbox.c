/* SPDX-License-Identifier: Apache-2.0 */
#include "store/outbox.h"

#include "check.h"
#include "store/fixture.h"

static void every_field(void **state)
{
    struct db_fixture *t = *state;
    struct outgoing sent = {.id = STR("evt_1"),
                            .event = STR("interaction.opened"),
                            .url = STR("https://example.org/hook"),
                            .body = STR("{\"问\":1}"),
                            .attempts = 2,
                            .created = 10,
                            .next = 20};
    struct outgoing_list list = {0};
    assert_int_equal(outbox_add(t->db, &sent), OK);
    assert_int_equal(sent.n, 1);
    assert_int_equal(outbox_due(t->db, &t->arena, 20, 5, &list), OK);
    assert_int_equal(list.count, 1);
    const struct outgoing *got = &list.rows[0];
    assert_int_equal(got->n, sent.n);
    assert_str(got->id, sent.id);
    assert_str(got->event, sent.event);
    assert_str(got->url, sent.url);
    assert_str(got->body, sent.body);
    assert_int_equal(got->attempts, sent.attempts);
    assert_int_equal(got->created, sent.created);
    assert_int_equal(got->next, sent.next);
}

/* Ids are one letter each here. */
static void assert_due(struct db_fixture *t, msec now, size_t limit, const char *expected)
{
    char ids[16] = "";
    struct outgoing_list list = {0};
    assert_int_equal(outbox_due(t->db, &t->arena, now, limit, &list), OK);
    assert_true(list.count < sizeof ids);
    for (size_t i = 0; i < list.count; i++) ids[i] = list.rows[i].id.p[0];
    assert_string_equal(ids, expected);
}

static void assert_next(struct db_fixture *t, msec expected)
{
    msec at = -1;
    assert_int_equal(outbox_next(t->db, &at), OK);
    assert_int_equal(at, expected);
}

static void order(void **state)
{
    struct db_fixture *t = *state;
    static const struct {
        const char *id;
        msec next;
    } rows[] = {{"a", 30}, {"b", 10}, {"c", 20}, {"d", 10}};
    assert_next(t, 0);
    assert_due(t, 1000, 5, "");
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct outgoing row = {.id = str_c(rows[i].id), .next = rows[i].next};
        assert_int_equal(outbox_add(t->db, &row), OK);
        assert_int_equal(row.n, i + 1);
    }
    assert_next(t, 10);
    assert_due(t, 9, 5, "");
    assert_due(t, 10, 5, "bd");
    assert_due(t, 10, 1, "b");
    assert_due(t, 29, 5, "bdc");
    assert_due(t, 30, 5, "bdca");

    assert_int_equal(outbox_later(t->db, 2, 1, 25), OK); /* b failed, and waits */
    assert_next(t, 10);
    assert_due(t, 30, 5, "dcba");
    assert_int_equal(outbox_done(t->db, 4), OK); /* d arrived */
    assert_next(t, 20);
    assert_due(t, 30, 5, "cba");
    assert_int_equal(outbox_done(t->db, 4), ERR_NOT_FOUND);
    assert_int_equal(outbox_later(t->db, 4, 1, 25), ERR_NOT_FOUND);

    struct outgoing_list list = {0};
    assert_int_equal(outbox_due(t->db, &t->arena, 30, 5, &list), OK);
    assert_int_equal(list.rows[1].attempts, 1);
    assert_int_equal(list.rows[1].next, 25);
    assert_int_equal(list.rows[0].attempts, 0);
}

/* A number that is gone is nobody's again, also not that of the newest. */
static void numbers_are_not_used_again(void **state)
{
    struct db_fixture *t = *state;
    struct outgoing row = {.id = STR("a"), .next = 1};
    for (int64_t n = 1; n <= 3; n++) {
        assert_int_equal(outbox_add(t->db, &row), OK);
        assert_int_equal(row.n, n);
        assert_int_equal(outbox_done(t->db, row.n), OK);
    }
    assert_next(t, 0);
}

int test_outbox(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DB(every_field),
        WITH_DB(order),
        WITH_DB(numbers_are_not_used_again),
    };
    return cmocka_run_group_tests_name("store/outbox", tests, NULL, NULL);
}
