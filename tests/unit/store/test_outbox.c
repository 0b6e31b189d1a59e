/* SPDX-License-Identifier: Apache-2.0 */
#include "store/table/outbox.h"

#include <string.h>

#include "check.h"
#include "store/fixture.h"

static const int64_t nobody[WEBHOOK_SENDS_HOOK_MAX];

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
    struct outgoing row, *got = &row;
    assert_int_equal(outbox_add(t->db, &sent), OK);
    assert_int_equal(sent.n, 1);
    assert_int_equal(outbox_first(t->db, &t->arena, sent.url, nobody, got), OK);
    assert_int_equal(got->n, sent.n);
    assert_str(got->id, sent.id);
    assert_str(got->event, sent.event);
    assert_str(got->url, sent.url);
    assert_str(got->body, sent.body);
    assert_int_equal(got->attempts, sent.attempts);
    assert_int_equal(got->created, sent.created);
    assert_int_equal(got->next, sent.next);
}

/* Rows for an address in their order, as workers that pass over each other's would take them. Ids are
 * one letter each here. */
static void assert_order(struct db_fixture *t, const char *url, const char *expected)
{
    char ids[WEBHOOK_SENDS_HOOK_MAX + 1] = "";
    int64_t passed[WEBHOOK_SENDS_HOOK_MAX] = {0};
    struct outgoing row;
    for (size_t i = 0; i < WEBHOOK_SENDS_HOOK_MAX; i++) {
        enum err e = outbox_first(t->db, &t->arena, str_c(url), passed, &row);
        if (e) assert_int_equal(e, ERR_NOT_FOUND);
        if (e) break;
        ids[i] = row.id.p[0];
        passed[i] = row.n;
    }
    assert_string_equal(ids, expected);
    if (strlen(expected) == WEBHOOK_SENDS_HOOK_MAX)
        assert_int_equal(outbox_first(t->db, &t->arena, str_c(url), passed, &row), ERR_NOT_FOUND);
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
    assert_order(t, "u", "");
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct outgoing row = {
            .id = str_c(rows[i].id), .url = str_c(rows[i].url), .next = rows[i].next};
        assert_int_equal(outbox_add(t->db, &row), OK);
        assert_int_equal(row.n, i + 1);
    }
    assert_urls(t, "uv");
    assert_order(t, "u", "bdca");
    assert_order(t, "v", "e");
    assert_order(t, "w", "");

    assert_int_equal(outbox_later(t->db, 2, 1, 25), OK); /* b failed, and waits */
    assert_order(t, "u", "dcba");
    assert_int_equal(outbox_done(t->db, 4), OK); /* d arrived */
    assert_order(t, "u", "cba");
    assert_int_equal(outbox_done(t->db, 4), ERR_NOT_FOUND);
    assert_int_equal(outbox_later(t->db, 4, 1, 25), ERR_NOT_FOUND);
    assert_int_equal(outbox_done(t->db, 5), OK);
    assert_urls(t, "u");

    struct outgoing row;
    assert_int_equal(outbox_first(t->db, &t->arena, STR("u"), nobody, &row), OK);
    assert_int_equal(row.attempts, 0);
    int64_t passed[WEBHOOK_SENDS_HOOK_MAX] = {[1] = row.n};
    assert_int_equal(outbox_first(t->db, &t->arena, STR("u"), passed, &row), OK);
    assert_int_equal(row.attempts, 1);
    assert_int_equal(row.next, 25);
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
