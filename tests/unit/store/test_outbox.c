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
    assert_int_equal(outbox_due(t->db, &t->arena, sent.url, 20, 5, &list), OK);
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
static void assert_due(struct db_fixture *t, const char *url, msec until, size_t limit,
                       const char *expected)
{
    char ids[16] = "";
    struct outgoing_list list = {0};
    assert_int_equal(outbox_due(t->db, &t->arena, str_c(url), until, limit, &list), OK);
    assert_true(list.count < sizeof ids);
    for (size_t i = 0; i < list.count; i++) ids[i] = list.rows[i].id.p[0];
    assert_string_equal(ids, expected);
}

/* Addresses that have rows, each a letter. */
static void assert_urls(struct db_fixture *t, const char *expected)
{
    char urls[16] = "";
    str url = STR_EMPTY;
    for (size_t i = 0; i + 1 < sizeof urls; i++) {
        enum err e = outbox_next_url(t->db, &t->arena, url, &url);
        if (e) assert_int_equal(e, ERR_NOT_FOUND);
        if (e) break;
        urls[i] = url.p[0];
    }
    assert_string_equal(urls, expected);
}

static void order(void **state)
{
    struct db_fixture *t = *state;
    static const struct {
        const char *id, *url;
        msec next;
    } rows[] = {{"a", "u", 30}, {"b", "u", 10}, {"c", "u", 20}, {"d", "u", 10}, {"e", "v", 15}};
    assert_urls(t, "");
    assert_due(t, "u", 1000, 5, "");
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct outgoing row = {
            .id = str_c(rows[i].id), .url = str_c(rows[i].url), .next = rows[i].next};
        assert_int_equal(outbox_add(t->db, &row), OK);
        assert_int_equal(row.n, i + 1);
    }
    assert_urls(t, "uv");
    assert_due(t, "u", 9, 5, "");
    assert_due(t, "u", 10, 5, "bd");
    assert_due(t, "u", 10, 1, "b");
    assert_due(t, "u", 29, 5, "bdc");
    assert_due(t, "u", 30, 5, "bdca");
    assert_due(t, "v", 30, 5, "e");
    assert_due(t, "w", 30, 5, "");

    assert_int_equal(outbox_later(t->db, 2, 1, 25), OK); /* b failed, and waits */
    assert_due(t, "u", 30, 5, "dcba");
    assert_int_equal(outbox_done(t->db, 4), OK); /* d arrived */
    assert_due(t, "u", 30, 5, "cba");
    assert_int_equal(outbox_done(t->db, 4), ERR_NOT_FOUND);
    assert_int_equal(outbox_later(t->db, 4, 1, 25), ERR_NOT_FOUND);
    assert_int_equal(outbox_done(t->db, 5), OK);
    assert_urls(t, "u");

    struct outgoing_list list = {0};
    assert_int_equal(outbox_due(t->db, &t->arena, STR("u"), 30, 5, &list), OK);
    assert_int_equal(list.rows[1].attempts, 1);
    assert_int_equal(list.rows[1].next, 25);
    assert_int_equal(list.rows[0].attempts, 0);
    assert_int_equal(outbox_due(t->db, &t->arena, STR("u"), 20, 5, &list), OK);
    assert_int_equal(list.count, 4); /* behind those that are there */
    assert_str(list.rows[3].id, STR("c"));
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
    assert_urls(t, "");
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
