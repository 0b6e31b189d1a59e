/* SPDX-License-Identifier: Apache-2.0
 *
 * Identities against a clock that stands still until a test moves it. The loop is real but never
 * runs: it only holds the timer that takes old tickets away.
 */
#include "server/auth.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "net/loop.h"

enum { ALL_ROLES = ROLE_USER | ROLE_APPROVER | ROLE_OPERATOR, RATE = 3 };

struct fixture {
    struct loop *loop;
    struct auth *auth;
    struct arena arena;
    msec wall, steady;
    struct clock clock;
};

static msec read_wall(void *ctx)
{
    return ((struct fixture *)ctx)->wall;
}

static msec read_steady(void *ctx)
{
    return ((struct fixture *)ctx)->steady;
}

/* Begin anew with these options. */
static void start(struct fixture *f, struct auth_options options)
{
    auth_free(f->auth);
    options.clock = &f->clock;
    f->auth = auth_new(f->loop, &options);
}

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){.wall = 1700000000000, .steady = 5000, .loop = loop_new()};
    f.clock = (struct clock){read_wall, read_steady, &f};
    arena_init(&f.arena);
    start(&f, (struct auth_options){0});
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    auth_free(f->auth);
    arena_done(&f->arena);
    loop_free(f->loop);
    return 0;
}

static void add_key(struct fixture *f, const char *id, const char *text, unsigned roles)
{
    struct key key = {.id = str_c(id), .user = STR("ann"), .roles = roles};
    key_hash(str_c(text), key.hash);
    auth_add_key(f->auth, &key);
}

static enum err by_key(struct fixture *f, const char *text, struct identity *ret_who)
{
    return auth_by_key(f->auth, &f->arena, str_c(text), STR("10.0.0.1"), ret_who);
}

static struct session session_of(const char *token, const char *key_id, msec expires)
{
    struct session session = {
        .key_id = str_c(key_id), .user = STR("ann"), .roles = ROLE_USER, .expires = expires};
    auth_session_hash(str_c(token), session.hash);
    return session;
}

static enum err by_session(struct fixture *f, const char *token, struct identity *ret_who)
{
    unsigned char hash[HASH_BYTES];
    auth_session_hash(str_c(token), hash);
    return auth_by_session(f->auth, &f->arena, hash, ret_who);
}

/* ---- keys ---- */

static void local_until_the_first_key(void **state)
{
    struct fixture *f = *state;
    struct identity who = {0};
    assert_false(auth_required(f->auth));
    assert_int_equal(auth_local(f->auth, true, &who), OK);
    assert_str(who.user, STR("local"));
    assert_int_equal(who.roles, ALL_ROLES);
    assert_int_equal(who.via, VIA_LOCAL);
    assert_int_equal(who.key_id.len, 0);
    assert_int_equal(auth_local(f->auth, false, &who), ERR_UNAUTHENTICATED);

    add_key(f, "k1", "one", ROLE_USER);
    assert_true(auth_required(f->auth));
    assert_int_equal(auth_local(f->auth, true, &who), ERR_UNAUTHENTICATED);

    auth_remove_key(f->auth, STR("k1"));
    assert_true(auth_required(f->auth));
    assert_int_equal(auth_local(f->auth, true, &who), ERR_UNAUTHENTICATED);
}

static void never_local_beyond_loopback(void **state)
{
    struct fixture *f = *state;
    struct identity who;
    start(f, (struct auth_options){.beyond_loopback = true});
    assert_int_equal(auth_local(f->auth, true, &who), ERR_UNAUTHENTICATED);
    assert_int_equal(auth_local(f->auth, false, &who), ERR_UNAUTHENTICATED);
}

static void required_though_all_keys_are_revoked(void **state)
{
    struct fixture *f = *state;
    struct identity who;
    auth_require(f->auth); /* as at a start with nothing but revoked keys */
    assert_true(auth_required(f->auth));
    assert_int_equal(auth_local(f->auth, true, &who), ERR_UNAUTHENTICATED);
}

static void keys(void **state)
{
    struct fixture *f = *state;
    struct identity who = {0};
    add_key(f, "k1", "one", ROLE_USER);
    add_key(f, "k2", "two", ROLE_USER | ROLE_OPERATOR);

    assert_int_equal(by_key(f, "two", &who), OK);
    assert_str(who.user, STR("ann"));
    assert_str(who.key_id, STR("k2"));
    assert_int_equal(who.roles, ROLE_USER | ROLE_OPERATOR);
    assert_int_equal(who.via, VIA_KEY);

    static const char *const wrong[] = {"", "on", "onee", "One", " one", "k1"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(by_key(f, wrong[i], &who), ERR_UNAUTHENTICATED);
    assert_int_equal(auth_by_key(f->auth, &f->arena, (str){NULL, 0}, STR("10.0.0.1"), &who),
                     ERR_UNAUTHENTICATED);
    assert_str(who.key_id, STR("k2")); /* untouched by failures */

    auth_remove_key(f->auth, STR("k2"));
    assert_int_equal(by_key(f, "two", &who), ERR_UNAUTHENTICATED);
    assert_int_equal(by_key(f, "one", &who), OK);
    auth_remove_key(f->auth, STR("no such key"));
    assert_int_equal(by_key(f, "one", &who), OK);
}

static void first_key_from_the_configuration(void **state)
{
    struct fixture *f = *state;
    struct identity one, two;
    start(f, (struct auth_options){.first_key = STR("sesame"), .first_key_id = STR("first-1")});
    assert_true(auth_required(f->auth));
    assert_int_equal(by_key(f, "sesame", &one), OK);
    assert_str(one.user, STR("local"));
    assert_int_equal(one.roles, ALL_ROLES);
    assert_str(one.key_id, STR("first-1"));
    assert_int_equal(by_key(f, "sesame2", &two), ERR_UNAUTHENTICATED);

    /* Another text is another key, so sessions of the old one are over. */
    start(f, (struct auth_options){.first_key = STR("sesame2"), .first_key_id = STR("first-2")});
    assert_int_equal(by_key(f, "sesame2", &two), OK);
    assert_false(str_eq(one.key_id, two.key_id));
    struct session old = {.key_id = one.key_id, .user = STR("local"), .expires = f->wall + 1};
    assert_int_equal(auth_remember(f->auth, &old), ERR_UNAUTHENTICATED);
}

/* ---- sessions ---- */

static void sessions(void **state)
{
    struct fixture *f = *state;
    struct identity who = {0};
    add_key(f, "k1", "one", ROLE_USER);
    assert_int_equal(by_session(f, "token", &who), ERR_BUSY); /* ask the store */

    struct session session = session_of("token", "k1", f->wall + 1000);
    assert_int_equal(auth_remember(f->auth, &session), OK);
    assert_int_equal(auth_remember(f->auth, &session), OK); /* two requests asked at once */
    assert_int_equal(by_session(f, "token", &who), OK);
    assert_str(who.user, STR("ann"));
    assert_str(who.key_id, STR("k1"));
    assert_int_equal(who.via, VIA_SESSION);
    assert_memory_equal(who.session, session.hash, HASH_BYTES);

    f->wall += 999;
    assert_int_equal(by_session(f, "token", &who), OK);
    f->wall += 1;
    assert_int_equal(by_session(f, "token", &who), ERR_UNAUTHENTICATED);

    auth_forget(f->auth, session.hash);
    assert_int_equal(by_session(f, "token", &who), ERR_BUSY);
    auth_forget(f->auth, session.hash);
}

static void a_session_needs_its_key(void **state)
{
    struct fixture *f = *state;
    struct identity who;
    add_key(f, "k1", "one", ROLE_USER);
    struct session session = session_of("token", "gone", f->wall + 1000);
    assert_int_equal(auth_remember(f->auth, &session), ERR_UNAUTHENTICATED);
    assert_int_equal(by_session(f, "token", &who), ERR_BUSY);
}

static void session_cache_full(void **state)
{
    struct fixture *f = *state;
    struct identity who;
    char token[32];
    add_key(f, "k1", "one", ROLE_USER);
    for (int i = 0; i <= AUTH_SESSIONS_CACHED_MAX; i++) {
        snprintf(token, sizeof token, "token %d", i);
        struct session session = session_of(token, "k1", f->wall + 1000);
        assert_int_equal(auth_remember(f->auth, &session), OK);
        assert_int_equal(by_session(f, token, &who), OK);
    }
    /* The others are asked for in the store again. */
    assert_int_equal(by_session(f, "token 0", &who), ERR_BUSY);
}

/* ---- tickets ---- */

static void new_ticket(struct fixture *f, const char *key_text, char out[static TICKET_BYTES])
{
    struct identity who;
    assert_int_equal(by_key(f, key_text, &who), OK);
    assert_int_equal(auth_ticket_new(f->auth, &who, out), OK);
}

static enum err by_ticket(struct fixture *f, const char *ticket, struct identity *ret_who)
{
    return auth_by_ticket(f->auth, &f->arena, str_c(ticket), ret_who);
}

static void a_ticket_is_used_once(void **state)
{
    struct fixture *f = *state;
    struct identity who = {0};
    char one[TICKET_BYTES], two[TICKET_BYTES];
    add_key(f, "k1", "one", ROLE_USER | ROLE_APPROVER);
    new_ticket(f, "one", one);
    new_ticket(f, "one", two);
    assert_int_equal(strlen(one), TICKET_BYTES - 1);
    assert_string_not_equal(one, two);

    assert_int_equal(by_ticket(f, "", &who), ERR_UNAUTHENTICATED);
    assert_int_equal(by_ticket(f, "one", &who), ERR_UNAUTHENTICATED); /* a key is no ticket */
    assert_int_equal(by_key(f, one, &who), ERR_UNAUTHENTICATED);      /* nor the other way */
    assert_int_equal(by_ticket(f, one, &who), OK);
    assert_str(who.user, STR("ann"));
    assert_str(who.key_id, STR("k1"));
    assert_int_equal(who.roles, ROLE_USER | ROLE_APPROVER);
    assert_int_equal(who.via, VIA_TICKET);
    assert_int_equal(by_ticket(f, one, &who), ERR_UNAUTHENTICATED);
    assert_int_equal(by_ticket(f, two, &who), OK);
}

static void a_ticket_expires(void **state)
{
    struct fixture *f = *state;
    struct identity who;
    char in_time[TICKET_BYTES], late[TICKET_BYTES];
    add_key(f, "k1", "one", ROLE_USER);
    new_ticket(f, "one", in_time);
    new_ticket(f, "one", late);
    f->steady += TICKET_MS_MAX - 1;
    assert_int_equal(by_ticket(f, in_time, &who), OK);
    f->steady += 1;
    assert_int_equal(by_ticket(f, late, &who), ERR_UNAUTHENTICATED);
    f->steady -= 1; /* also not again: it is gone */
    assert_int_equal(by_ticket(f, late, &who), ERR_UNAUTHENTICATED);
}

static void a_ticket_remembers_its_session(void **state)
{
    struct fixture *f = *state;
    struct identity asked, who;
    char ticket[TICKET_BYTES];
    add_key(f, "k1", "one", ROLE_USER);
    struct session session = session_of("token", "k1", f->wall + 1000);
    assert_int_equal(auth_remember(f->auth, &session), OK);
    assert_int_equal(by_session(f, "token", &asked), OK);
    assert_int_equal(auth_ticket_new(f->auth, &asked, ticket), OK);
    assert_int_equal(by_ticket(f, ticket, &who), OK);
    assert_memory_equal(who.session, session.hash, HASH_BYTES);
}

static void tickets_end_with_their_session(void **state)
{
    struct fixture *f = *state;
    struct identity asked, who;
    char ticket[TICKET_BYTES], other[TICKET_BYTES];
    add_key(f, "k1", "one", ROLE_USER);
    struct session session = session_of("token", "k1", f->wall + 1000);
    assert_int_equal(auth_remember(f->auth, &session), OK);
    assert_int_equal(by_session(f, "token", &asked), OK);
    assert_int_equal(auth_ticket_new(f->auth, &asked, ticket), OK);
    new_ticket(f, "one", other);
    auth_forget(f->auth, session.hash);
    assert_int_equal(by_ticket(f, ticket, &who), ERR_UNAUTHENTICATED);
    assert_int_equal(by_ticket(f, other, &who), OK);
}

static void tickets_without_a_key_end_with_the_first_one(void **state)
{
    struct fixture *f = *state;
    struct identity local, who;
    char ticket[TICKET_BYTES], other[TICKET_BYTES];
    assert_int_equal(auth_local(f->auth, true, &local), OK);
    assert_int_equal(auth_ticket_new(f->auth, &local, ticket), OK);
    assert_int_equal(auth_ticket_new(f->auth, &local, other), OK);
    assert_int_equal(by_ticket(f, ticket, &who), OK);
    add_key(f, "k1", "one", ROLE_USER);
    assert_int_equal(by_ticket(f, other, &who), ERR_UNAUTHENTICATED);

    new_ticket(f, "one", ticket);
    add_key(f, "k2", "two", ROLE_USER); /* a second key changes nothing */
    assert_int_equal(by_ticket(f, ticket, &who), OK);
}

static void tickets_full(void **state)
{
    struct fixture *f = *state;
    struct identity who;
    char ticket[TICKET_BYTES], more[TICKET_BYTES];
    struct identity other = {.user = STR("bob"), .key_id = STR("k1"), .via = VIA_KEY};
    add_key(f, "k1", "one", ROLE_USER);
    assert_int_equal(by_key(f, "one", &who), OK);
    for (int i = 0; i < AUTH_TICKETS_USER_MAX; i++)
        assert_int_equal(auth_ticket_new(f->auth, &who, ticket), OK);
    assert_int_equal(auth_ticket_new(f->auth, &who, more), ERR_RATE_LIMITED);
    assert_int_equal(auth_ticket_new(f->auth, &other, more), OK); /* others have their own */
    assert_int_equal(by_ticket(f, ticket, &who), OK);             /* those that are out stay good */
    assert_int_equal(auth_ticket_new(f->auth, &who, more), OK);
    int made = AUTH_TICKETS_USER_MAX + 1;
    char name[16];
    for (int i = 0; made < AUTH_TICKETS_MAX; made++) {
        if (auth_ticket_new(f->auth, &other, more) == OK) continue;
        snprintf(name, sizeof name, "u%d", i++);
        other.user = str_c(name);
        assert_int_equal(auth_ticket_new(f->auth, &other, more), OK);
    }
    other.user = STR("late");
    assert_int_equal(auth_ticket_new(f->auth, &other, more), ERR_RATE_LIMITED);
}

static void revoking_ends_sessions_and_tickets(void **state)
{
    struct fixture *f = *state;
    struct identity who;
    char token[32], ticket[TICKET_BYTES], other[TICKET_BYTES];
    add_key(f, "k1", "one", ROLE_USER);
    add_key(f, "k2", "two", ROLE_USER);
    enum { SESSIONS = 500 }; /* enough that removals move entries of the map */
    char tickets[SESSIONS][TICKET_BYTES];
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(token, sizeof token, "token %d", i);
        struct session session = session_of(token, i % 2 ? "k1" : "k2", f->wall + 1000);
        assert_int_equal(auth_remember(f->auth, &session), OK);
        new_ticket(f, i % 2 ? "one" : "two", tickets[i]);
    }
    new_ticket(f, "one", ticket);
    new_ticket(f, "two", other);

    auth_remove_key(f->auth, STR("k1"));
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(token, sizeof token, "token %d", i);
        assert_int_equal(by_session(f, token, &who), i % 2 ? ERR_BUSY : OK);
        assert_int_equal(by_ticket(f, tickets[i], &who), i % 2 ? ERR_UNAUTHENTICATED : OK);
    }
    assert_int_equal(by_ticket(f, ticket, &who), ERR_UNAUTHENTICATED);
    assert_int_equal(by_ticket(f, other, &who), OK);

    /* A session that the store still had on its way is not taken either. */
    struct session session = session_of("token 1", "k1", f->wall + 1000);
    assert_int_equal(auth_remember(f->auth, &session), ERR_UNAUTHENTICATED);
}

/* ---- wrong keys ---- */

static enum err wrong(struct fixture *f, const char *address, msec *ret_wait_ms)
{
    return auth_failed(f->auth, str_c(address), ret_wait_ms);
}

/* So many are told that they are wrong; then one waits until the minute is over. */
static void wrong_keys_at_their_edge(void **state)
{
    struct fixture *f = *state;
    msec wait = -1;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < AUTH_FAILURES_MAX; i++)
            assert_int_equal(wrong(f, "10.0.0.1", &wait), OK);
        assert_int_equal(wait, round ? 1 : -1);
        assert_int_equal(wrong(f, "10.0.0.1", &wait), ERR_RATE_LIMITED);
        assert_int_equal(wait, AUTH_FAILURES_MS);
        assert_int_equal(wrong(f, "10.0.0.2", &wait), OK);
        f->steady += AUTH_FAILURES_MS - 1;
        assert_int_equal(wrong(f, "10.0.0.1", &wait), ERR_RATE_LIMITED);
        assert_int_equal(wait, 1);
        f->steady += 1;
    }
}

/* A key that could be found by trying is not looked at meanwhile; others are. */
static void short_keys_wait(void **state)
{
    struct fixture *f = *state;
    struct identity who;
    msec wait;
    add_key(f, "short", "0123456789abcde", 0);
    add_key(f, "long", "0123456789abcdef", 0);
    for (int i = 0; i < AUTH_FAILURES_MAX; i++) assert_int_equal(wrong(f, "10.0.0.1", &wait), OK);
    assert_int_equal(by_key(f, "0123456789abcde", &who), OK);
    assert_int_equal(wrong(f, "10.0.0.1", &wait), ERR_RATE_LIMITED);
    assert_int_equal(by_key(f, "0123456789abcde", &who), ERR_UNAUTHENTICATED);
    assert_int_equal(by_key(f, "0123456789abcdef", &who), OK);
    assert_int_equal(auth_by_key(f->auth, &f->arena, STR("0123456789abcde"), STR("10.0.0.2"), &who),
                     OK);
    f->steady += AUTH_FAILURES_MS;
    assert_int_equal(by_key(f, "0123456789abcde", &who), OK);
}

/* More addresses than are counted: it goes on. */
static void wrong_keys_of_many(void **state)
{
    struct fixture *f = *state;
    msec wait;
    for (int i = 0; i < AUTH_COUNTERS_MAX + 10; i++) {
        char address[32];
        snprintf(address, sizeof address, "10.%d.%d.%d", i >> 16, i >> 8 & 255, i & 255);
        assert_int_equal(wrong(f, address, &wait), OK);
    }
}

/* ---- rate ---- */

static enum err count(struct fixture *f, const char *who)
{
    return auth_count(f->auth, str_c(who));
}

static void no_rate_limit_unless_set(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 1000; i++) assert_int_equal(count(f, "k1"), OK);
}

static void rate_at_its_edge(void **state)
{
    struct fixture *f = *state;
    start(f, (struct auth_options){.rate_max = RATE});
    for (int i = 0; i < RATE; i++) assert_int_equal(count(f, "k1"), OK);
    assert_int_equal(count(f, "k1"), ERR_RATE_LIMITED);
    assert_int_equal(count(f, "k2"), OK); /* one's flood is not another's */

    f->steady += 999;
    assert_int_equal(count(f, "k1"), ERR_RATE_LIMITED);
    f->steady += 1;
    for (int i = 0; i < RATE; i++) assert_int_equal(count(f, "k1"), OK);
    assert_int_equal(count(f, "k1"), ERR_RATE_LIMITED);
}

static void refused_requests_do_not_prolong_the_wait(void **state)
{
    struct fixture *f = *state;
    start(f, (struct auth_options){.rate_max = 1});
    assert_int_equal(count(f, "k1"), OK);
    for (int i = 0; i < 9; i++) {
        f->steady += 100;
        assert_int_equal(count(f, "k1"), ERR_RATE_LIMITED);
    }
    f->steady += 100;
    assert_int_equal(count(f, "k1"), OK);
}

static void counters_full(void **state)
{
    struct fixture *f = *state;
    char address[32];
    start(f, (struct auth_options){.rate_max = 1});
    for (int i = 0; i <= AUTH_COUNTERS_MAX; i++) {
        snprintf(address, sizeof address, "10.0.%d.%d", i / 256, i % 256);
        assert_int_equal(count(f, address), OK);
        assert_int_equal(count(f, address), ERR_RATE_LIMITED);
    }
}

/* ---- still? ---- */

/* Somebody who came in long ago, by each way there is. */
static void still_good_until_it_ends(void **state)
{
    struct fixture *f = *state;
    struct identity local, key, session, ticket, session_ticket;
    char text[TICKET_BYTES];
    assert_int_equal(auth_local(f->auth, true, &local), OK);
    assert_int_equal(auth_still(f->auth, &local, true), OK);
    assert_int_equal(auth_still(f->auth, &local, false), ERR_UNAUTHENTICATED);

    add_key(f, "k1", "one", ROLE_USER);
    add_key(f, "k2", "two", ROLE_USER);
    assert_int_equal(auth_still(f->auth, &local, true), ERR_UNAUTHENTICATED);
    struct session row = session_of("token", "k1", f->wall + 1000);
    assert_int_equal(auth_remember(f->auth, &row), OK);
    assert_int_equal(by_key(f, "one", &key), OK);
    assert_int_equal(by_session(f, "token", &session), OK);
    assert_int_equal(auth_ticket_new(f->auth, &key, text), OK);
    assert_int_equal(auth_by_ticket(f->auth, &f->arena, str_c(text), &ticket), OK);
    assert_int_equal(auth_ticket_new(f->auth, &session, text), OK);
    assert_int_equal(auth_by_ticket(f->auth, &f->arena, str_c(text), &session_ticket), OK);
    const struct identity *all[] = {&key, &session, &ticket, &session_ticket};
    for (size_t i = 0; i < COUNT(all); i++)
        assert_int_equal(auth_still(f->auth, all[i], false), OK);

    f->wall += 1000; /* the session is over, and what came of it */
    assert_int_equal(auth_still(f->auth, &session, false), ERR_UNAUTHENTICATED);
    assert_int_equal(auth_still(f->auth, &session_ticket, false), ERR_UNAUTHENTICATED);
    assert_int_equal(auth_still(f->auth, &ticket, false), OK);
    auth_forget(f->auth, row.hash); /* not known here: the store is asked */
    assert_int_equal(auth_still(f->auth, &session, false), ERR_BUSY);
    assert_int_equal(auth_still(f->auth, &session_ticket, false), ERR_BUSY);

    auth_remove_key(f->auth, STR("k2")); /* somebody else's */
    assert_int_equal(auth_still(f->auth, &key, false), OK);
    auth_remove_key(f->auth, STR("k1"));
    assert_int_equal(auth_still(f->auth, &key, false), ERR_UNAUTHENTICATED);
    assert_int_equal(auth_still(f->auth, &ticket, false), ERR_UNAUTHENTICATED);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int test_auth(void)
{
    const struct CMUnitTest tests[] = {
        TEST(local_until_the_first_key),
        TEST(never_local_beyond_loopback),
        TEST(required_though_all_keys_are_revoked),
        TEST(keys),
        TEST(first_key_from_the_configuration),
        TEST(sessions),
        TEST(a_session_needs_its_key),
        TEST(session_cache_full),
        TEST(a_ticket_is_used_once),
        TEST(a_ticket_expires),
        TEST(a_ticket_remembers_its_session),
        TEST(tickets_end_with_their_session),
        TEST(tickets_without_a_key_end_with_the_first_one),
        TEST(tickets_full),
        TEST(revoking_ends_sessions_and_tickets),
        TEST(still_good_until_it_ends),
        TEST(wrong_keys_at_their_edge),
        TEST(short_keys_wait),
        TEST(wrong_keys_of_many),
        TEST(no_rate_limit_unless_set),
        TEST(rate_at_its_edge),
        TEST(refused_requests_do_not_prolong_the_wait),
        TEST(counters_full),
    };
    return cmocka_run_group_tests_name("app/auth", tests, NULL, NULL);
}
