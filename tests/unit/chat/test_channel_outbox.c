/* SPDX-License-Identifier: Apache-2.0
 *
 * The edges of chat/chat_outbox.c; test_outbox_model.c has whole conversations.
 */
#include "chat/chat_outbox.h"

#include <stdio.h>

#include "base/limits.h"
#include "check.h"
#include "store/fixture.h"

#define SECOND ((msec)1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define NOW    (1000 * DAY)

static const struct channel_traits tight = {
    .kind = "tight", .sends_max = 4, .sends_kept = 2, .window_ms = DAY};
static const struct channel_traits loose = {.kind = "loose"};
static const struct channel_traits deduping = {.kind = "deduping", .dedups = true};

static struct peer peer_made(struct db *db, const struct channel_traits *traits)
{
    struct inbound hello = {.id = STR("1"), .sender = STR("u")};
    struct peer peer = {.channel = STR("wx"), .sender = STR("u")};
    assert_int_equal(peer_add(db, &peer), OK);
    assert_int_equal(outbox_heard(db, traits, &hello, &peer, NOW), OK);
    return peer;
}

static int64_t put(struct db_fixture *t, int64_t peer, enum out_class class)
{
    struct out_row row = {.peer = peer, .class = class, .text = STR("x")};
    assert_int_equal(outbox_put(t->db, &t->arena, &row, NOW), OK);
    return row.n;
}

static struct out_row row_of(struct db_fixture *t, int64_t n)
{
    struct out_row row = {0};
    assert_int_equal(out_by_n(t->db, &t->arena, n, &row), OK);
    return row;
}

static struct peer peer_of(struct db_fixture *t, int64_t id)
{
    struct peer peer = {0};
    assert_int_equal(peer_by_id(t->db, &t->arena, id, &peer), OK);
    return peer;
}

/* Takes number `n`, which is counted and marked. */
static struct out_row take(struct db_fixture *t, const struct channel_traits *traits, int64_t peer,
                           int64_t n, msec now)
{
    struct out_row row = {0};
    struct peer before = peer_of(t, peer), got = {0};
    msec at = 77;
    assert_int_equal(outbox_take(t->db, &t->arena, traits, peer, now, &row, &got, &at), OK);
    assert_int_equal(row.n, n);
    assert_int_equal(got.id, peer);
    assert_int_equal(got.used, before.used + 1);
    assert_int_equal(peer_of(t, peer).used, before.used + 1);
    assert_int_equal(row_of(t, n).state, OUT_SENDING);
    assert_int_equal(row.state, OUT_SENDING);
    return row;
}

static void take_none(struct db_fixture *t, const struct channel_traits *traits, int64_t peer,
                      msec now, msec expected_at)
{
    struct out_row row = {0};
    struct peer got = {0};
    msec at = 77;
    assert_int_equal(outbox_take(t->db, &t->arena, traits, peer, now, &row, &got, &at),
                     ERR_NOT_FOUND);
    assert_int_equal(at, expected_at);
}

static void end(struct db_fixture *t, const struct channel_traits *traits, struct out_row *row,
                enum errand_verdict verdict, msec wait_ms, msec now)
{
    assert_int_equal(outbox_end(t->db, &t->arena, traits, row, verdict, wait_ms, STR("s"), now),
                     OK);
    assert_int_equal(row_of(t, row->n).state, row->state);
}

/* ---- what may leave ---- */

static void allowed(void **state)
{
    (void)state;
    static const struct {
        uint32_t allowance, used;
        msec window;
        enum out_class class;
        bool expected;
    } rows[] = {
        {0, 0, 0, OUT_NOTICE, true},   {0, 999, 0, OUT_NOTICE, true},
        {4, 0, 0, OUT_NOTICE, true},   {4, 1, 0, OUT_NOTICE, false},
        {4, 2, 0, OUT_FINAL, false},   {4, 1, 0, OUT_FINAL, true},
        {4, 3, 0, OUT_QUESTION, true}, {4, 3, 0, OUT_ERROR, true},
        {4, 4, 0, OUT_FINAL, false},   {4, 5, 0, OUT_FINAL, false},
        {2, 0, 0, OUT_NOTICE, false},  {1, 0, 0, OUT_NOTICE, false},
        {1, 0, 0, OUT_FINAL, true},    {4, 0, NOW + 1, OUT_FINAL, true},
        {4, 0, NOW, OUT_FINAL, false}, {0, 0, NOW - 1, OUT_FINAL, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct peer peer = {
            .allowance = rows[i].allowance, .used = rows[i].used, .window = rows[i].window};
        if (outbox_allows(&tight, &peer, rows[i].class, NOW) != rows[i].expected)
            fail_msg("row %zu", i);
    }
}

static void heard(void **state)
{
    struct db_fixture *t = *state;
    struct peer peer = peer_made(t->db, &tight);
    static const struct {
        struct inbound inbound;
        uint32_t used, used_then, allowance;
        msec window;
        const char *token;
    } rows[] = {
        {{.reply_token = STR("a")}, 4, 0, 4, NOW + DAY, "a"},
        {{.at = NOW - HOUR}, 4, 0, 4, NOW + 23 * HOUR, "a"},                    /* we were away */
        {{.at = NOW + HOUR, .reply_token = STR("b")}, 4, 0, 4, NOW + DAY, "b"}, /* a clock ahead */
        {{.window_ms = INT64_MAX}, 1, 0, 4, INT64_MAX, "b"},
        {{.at = 1}, 4, 0, 4, NOW + DAY, "b"}, /* not believed */
        {{.at = NOW - DAY}, 4, 0, 4, NOW + DAY, "b"},
        {{.at = NOW - DAY + 1}, 4, 0, 4, NOW + 1, "b"},
        {{.reply_token = STR("c")}, 1, 0, 4, NOW + DAY, "c"},
        {{.allowance = 9, .window_ms = MINUTE},
         3,
         3,
         4,
         NOW + DAY,
         "c"}, /* a short one beside it */
        {{.allowance = 9, .window_ms = MINUTE}, 4, 0, 9, NOW + MINUTE, "c"},
        {{.allowance = 9, .window_ms = MINUTE}, 4, 0, 9, NOW + MINUTE, "c"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        peer.used = rows[i].used;
        assert_int_equal(peer_update(t->db, &peer), OK);
        assert_int_equal(outbox_heard(t->db, &tight, &rows[i].inbound, &peer, NOW), OK);
        struct peer got = peer_of(t, peer.id);
        if (got.window != rows[i].window || got.allowance != rows[i].allowance ||
            got.used != rows[i].used_then)
            fail_msg("row %zu: window %lld, allowance %u, used %u", i, (long long)got.window,
                     got.allowance, got.used);
        assert_int_equal(got.heard, NOW);
        assert_str(got.reply_token, str_c(rows[i].token));
        assert_int_equal(peer.window, got.window);
        assert_int_equal(peer.used, got.used);
    }
    struct inbound inbound = {.at = 0};
    assert_int_equal(outbox_heard(t->db, &loose, &inbound, &peer, NOW), OK);
    assert_int_equal(peer.window, 0);
    assert_int_equal(peer.allowance, 0);
    assert_int_equal(outbox_heard(t->db, &tight, &inbound, &peer, NOW), OK); /* limits are news */
    assert_int_equal(peer.window, NOW + DAY);
    assert_int_equal(peer.allowance, 4);
}

/* ---- putting ---- */

static void putting(void **state)
{
    struct db_fixture *t = *state;
    struct peer peer = peer_made(t->db, &loose);
    struct out_row first = {.peer = peer.id, .state = OUT_SENT, .text = STR("x")};
    struct out_row second = {
        .peer = peer.id, .file = STR("{}"), .client_id = STR("mine"), .created = 5};
    assert_int_equal(outbox_put(t->db, &t->arena, &first, NOW), OK);
    assert_int_equal(outbox_put(t->db, &t->arena, &second, NOW), OK);
    struct out_row got = row_of(t, first.n);
    assert_int_equal(got.state, OUT_READY);
    assert_int_equal(got.created, NOW);
    assert_int_equal(got.client_id.len, 26);
    got = row_of(t, second.n);
    assert_int_equal(got.created, 5);
    assert_str(got.client_id, STR("mine"));
    take_none(t, &loose, 99, NOW, 0);
}

/* The one on its way stays, notices go first, then the oldest; never more than there may be. */
static void too_many_wait(void **state)
{
    struct db_fixture *t = *state;
    struct peer peer = peer_made(t->db, &loose);
    int64_t sending = put(t, peer.id, OUT_NOTICE), oldest = put(t, peer.id, OUT_FINAL);
    int64_t notice = put(t, peer.id, OUT_NOTICE);
    take(t, &loose, peer.id, sending, NOW);
    for (int i = 3; i < OUTBOX_WAITING_MAX; i++) put(t, peer.id, OUT_QUESTION);
    size_t waiting = 0;
    assert_int_equal(out_waiting(t->db, peer.id, &waiting), OK);
    assert_int_equal(waiting, OUTBOX_WAITING_MAX);
    assert_int_equal(row_of(t, notice).state, OUT_READY);
    put(t, peer.id, OUT_ERROR);
    assert_int_equal(row_of(t, notice).state, OUT_DROPPED);
    assert_int_equal(row_of(t, oldest).state, OUT_READY);
    assert_int_equal(row_of(t, put(t, peer.id, OUT_NOTICE)).state, OUT_DROPPED);
    assert_int_equal(row_of(t, oldest).state, OUT_READY);
    put(t, peer.id, OUT_FINAL);
    assert_int_equal(row_of(t, oldest).state, OUT_DROPPED);
    assert_int_equal(row_of(t, sending).state, OUT_SENDING);
    assert_int_equal(out_waiting(t->db, peer.id, &waiting), OK);
    assert_int_equal(waiting, OUTBOX_WAITING_MAX);
}

/* ---- taking ---- */

static void one_at_a_time(void **state)
{
    struct db_fixture *t = *state;
    struct peer peer = peer_made(t->db, &loose);
    take_none(t, &loose, peer.id, NOW, 0);
    int64_t first = put(t, peer.id, OUT_FINAL), second = put(t, peer.id, OUT_FINAL);
    struct out_row row = take(t, &loose, peer.id, first, NOW);
    take_none(t, &loose, peer.id, NOW, 0);
    end(t, &loose, &row, VERDICT_DONE, 0, NOW);
    assert_int_equal(row.state, OUT_SENT);
    assert_str(row_of(t, first).server_id, STR("s"));
    assert_int_equal(outbox_end(t->db, &t->arena, &loose, &row, VERDICT_DONE, 0, STR(""), NOW),
                     ERR_NOT_FOUND);
    row = take(t, &loose, peer.id, second, NOW);
    end(t, &loose, &row, VERDICT_AGAIN, 0, NOW); /* blocks what follows until its time */
    put(t, peer.id, OUT_FINAL);
    take_none(t, &loose, peer.id, NOW + SECOND - 1, NOW + SECOND);
    take(t, &loose, peer.id, second, NOW + SECOND);
}

static void budget(void **state)
{
    struct db_fixture *t = *state;
    struct peer peer = peer_made(t->db, &tight);
    static const enum out_class classes[] = {OUT_NOTICE, OUT_FINAL,    OUT_NOTICE, OUT_NOTICE,
                                             OUT_ERROR,  OUT_QUESTION, OUT_NOTICE, OUT_FINAL};
    int64_t ns[COUNT(classes)];
    for (size_t i = 0; i < COUNT(classes); i++) ns[i] = put(t, peer.id, classes[i]);
    static const size_t leave[] = {0, 1, 4, 5}; /* 2, 3 and 6 are hints that came too late */
    for (size_t i = 0; i < COUNT(leave); i++) {
        struct out_row row = take(t, &tight, peer.id, ns[leave[i]], NOW);
        end(t, &tight, &row, VERDICT_DONE, 0, NOW);
    }
    take_none(t, &tight, peer.id, NOW, 0);
    static const enum out_state expected[] = {OUT_SENT, OUT_SENT, OUT_DROPPED, OUT_DROPPED,
                                              OUT_SENT, OUT_SENT, OUT_DROPPED, OUT_PARKED};
    for (size_t i = 0; i < COUNT(classes); i++)
        assert_int_equal(row_of(t, ns[i]).state, expected[i]);
    int64_t behind = put(t, peer.id, OUT_NOTICE); /* nothing overtakes what is parked */
    take_none(t, &tight, peer.id, NOW, 0);
    assert_int_equal(row_of(t, behind).state, OUT_READY);
    struct inbound inbound = {.at = 0};
    assert_int_equal(outbox_heard(t->db, &tight, &inbound, &peer, NOW), OK);
    struct out_row row = take(t, &tight, peer.id, ns[7], NOW);
    end(t, &tight, &row, VERDICT_DONE, 0, NOW);
    take_none(t, &tight, peer.id, NOW, 0); /* it would take the last send of an answer */
    assert_int_equal(row_of(t, behind).state, OUT_DROPPED);
}

static void window(void **state)
{
    struct db_fixture *t = *state;
    struct peer peer = peer_made(t->db, &tight);
    int64_t notice = put(t, peer.id, OUT_NOTICE), final = put(t, peer.id, OUT_FINAL);
    take_none(t, &tight, peer.id, NOW + DAY, 0);
    assert_int_equal(row_of(t, notice).state, OUT_PARKED);
    assert_int_equal(row_of(t, final).state, OUT_READY);
    struct inbound inbound = {.at = 0};
    assert_int_equal(outbox_heard(t->db, &tight, &inbound, &peer, NOW + 2 * DAY), OK);
    take(t, &tight, peer.id, notice, NOW + 3 * DAY - 1);
}

/* ---- how it ended ---- */

static void verdicts(void **state)
{
    struct db_fixture *t = *state;
    const struct channel_traits *traits[] = {&tight, &deduping};
    static const struct {
        enum errand_verdict verdict;
        msec wait_ms;
        int traits; /* 0: tight; 1: deduping */
        enum out_class class;
        enum out_state state;
        uint32_t used;
        msec wait; /* of a ready one */
        bool again;
    } rows[] = {
        {VERDICT_DONE, 0, 0, OUT_FINAL, OUT_SENT, 1, 0, false},
        {VERDICT_AGAIN, 0, 0, OUT_FINAL, OUT_READY, 0, SECOND, false},
        {VERDICT_AGAIN, 0, 0, OUT_NOTICE, OUT_READY, 0, SECOND, false},
        {VERDICT_AGAIN, 7000, 0, OUT_ERROR, OUT_READY, 0, 7 * SECOND, false},
        {VERDICT_AGAIN, INT64_MAX, 0, OUT_ERROR, OUT_READY, 0, DAY, false},
        {VERDICT_AGAIN, -1, 0, OUT_ERROR, OUT_READY, 0, SECOND, false},
        {VERDICT_OFTEN, 12000, 0, OUT_FINAL, OUT_READY, 0, 12 * SECOND, false},
        {VERDICT_OFTEN, 7000, 0, OUT_FINAL, OUT_READY, 0, 10 * SECOND, false},
        {VERDICT_OFTEN, 0, 0, OUT_NOTICE, OUT_READY, 0, 10 * SECOND, false},
        {VERDICT_UNKNOWN, 0, 0, OUT_FINAL, OUT_READY, 1, SECOND, true},
        {VERDICT_UNKNOWN, 9000, 0, OUT_QUESTION, OUT_READY, 1, 9 * SECOND, true},
        {VERDICT_UNKNOWN, 0, 0, OUT_ERROR, OUT_DROPPED, 1, 0, false},
        {VERDICT_UNKNOWN, 0, 0, OUT_NOTICE, OUT_DROPPED, 1, 0, false},
        {VERDICT_UNKNOWN, 0, 1, OUT_FINAL, OUT_READY, 1, SECOND, false},
        {VERDICT_UNKNOWN, 0, 1, OUT_NOTICE, OUT_READY, 1, SECOND, false},
        {VERDICT_SPENT, 0, 0, OUT_FINAL, OUT_PARKED, 4, 0, false},
        {VERDICT_SPENT, 0, 0, OUT_NOTICE, OUT_PARKED, 4, 0, false},
        {VERDICT_SPENT, 0, 1, OUT_FINAL, OUT_PARKED, 0, 0, false},
        {VERDICT_REFUSED, 0, 0, OUT_FINAL, OUT_DROPPED, 1, 0, false},
        {VERDICT_LOGIN, 0, 0, OUT_FINAL, OUT_READY, 0, 5 * SECOND, false},
        {VERDICT_LOGIN, 0, 0, OUT_NOTICE, OUT_READY, 0, 5 * SECOND, false},
    };
    struct peer peer = peer_made(t->db, &tight);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct inbound inbound = {.at = 0};
        const struct channel_traits *which = traits[rows[i].traits];
        assert_int_equal(outbox_heard(t->db, which, &inbound, &peer, NOW), OK);
        int64_t n = put(t, peer.id, rows[i].class);
        struct out_row row = take(t, which, peer.id, n, NOW + 1), taken = row;
        end(t, which, &row, rows[i].verdict, rows[i].wait_ms, NOW + 2);
        struct out_row got = row_of(t, n);
        if (got.state != rows[i].state || got.again != rows[i].again)
            fail_msg("row %zu: state %u, again %d", i, got.state, got.again);
        if (got.state == OUT_READY) assert_int_equal(got.next, NOW + 2 + rows[i].wait);
        assert_int_equal(str_eq(got.client_id, taken.client_id), !rows[i].again);
        assert_int_equal(peer_of(t, peer.id).used, rows[i].used);
        assert_str(got.server_id, rows[i].verdict == VERDICT_DONE ? STR("s") : STR(""));
        got.state = OUT_DROPPED; /* out of the way of the next */
        assert_int_equal(out_update(t->db, &got), OK);
    }
}

static void patience(void **state)
{
    struct db_fixture *t = *state;
    struct peer peer = peer_made(t->db, &loose);
    static const msec waits[] = {SECOND, 5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, HOUR};
    static const struct {
        enum out_class class;
        enum out_state expected;
    } rows[] = {{OUT_NOTICE, OUT_DROPPED}, {OUT_ERROR, OUT_PARKED}};
    msec now = NOW;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t n = put(t, peer.id, rows[i].class);
        struct out_row row = take(t, &loose, peer.id, n, now);
        msec begun = now;
        for (size_t k = 0;; k++) {
            end(t, &loose, &row, VERDICT_AGAIN, 0, now);
            if (row.state != OUT_READY) break;
            assert_true(now - begun < DAY);
            msec wait = waits[k < COUNT(waits) ? k : COUNT(waits) - 1];
            take_none(t, &loose, peer.id, now, now + wait);
            now += wait;
            row = take(t, &loose, peer.id, n, now);
        }
        assert_true(now - begun >= DAY && now - begun < DAY + HOUR);
        assert_int_equal(row.state, rows[i].expected);
    }
    struct inbound inbound = {.at = 0}; /* and all begins anew */
    now += DAY;
    assert_int_equal(outbox_heard(t->db, &loose, &inbound, &peer, now), OK);
    struct out_row row = {0};
    msec at = 0;
    assert_int_equal(outbox_take(t->db, &t->arena, &loose, peer.id, now, &row, &peer, &at), OK);
    end(t, &loose, &row, VERDICT_AGAIN, 0, now);
    take_none(t, &loose, peer.id, now, now + SECOND);
}

/* Told that it were too often, it waits longer each time, and then for the person. */
static void too_often(void **state)
{
    struct db_fixture *t = *state;
    struct peer peer = peer_made(t->db, &loose);
    static const msec waits[] = {10 * SECOND, 30 * SECOND, MINUTE, MINUTE};
    static const struct {
        enum out_class class;
        enum out_state expected;
    } rows[] = {{OUT_NOTICE, OUT_DROPPED}, {OUT_FINAL, OUT_PARKED}};
    msec now = NOW;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t n = put(t, peer.id, rows[i].class);
        for (size_t k = 0; k <= COUNT(waits); k++) {
            struct out_row row = take(t, &loose, peer.id, n, now);
            end(t, &loose, &row, VERDICT_OFTEN, 10 * SECOND, now);
            assert_int_equal(row.state, k < COUNT(waits) ? OUT_READY : rows[i].expected);
            if (k == COUNT(waits)) break;
            take_none(t, &loose, peer.id, now, now + waits[k]);
            now += waits[k];
        }
    }
}

/* Where a token names a part of the chat, none names the main one. */
static void topics(void **state)
{
    struct db_fixture *t = *state;
    static const struct channel_traits forum = {.kind = "forum", .topics = true};
    struct peer peer = peer_made(t->db, &forum);
    const struct inbound there = {.reply_token = STR("8")}, here = {.at = 0};
    assert_int_equal(outbox_heard(t->db, &forum, &there, &peer, NOW), OK);
    assert_str(peer_of(t, peer.id).reply_token, STR("8"));
    assert_int_equal(outbox_heard(t->db, &forum, &here, &peer, NOW), OK);
    assert_str(peer_of(t, peer.id).reply_token, STR(""));
}

/* The time that nobody was signed in is not held against a message. */
static void login_takes_long(void **state)
{
    struct db_fixture *t = *state;
    struct peer peer = peer_made(t->db, &loose);
    int64_t n = put(t, peer.id, OUT_NOTICE);
    msec now = NOW;
    for (; now < NOW + 2 * DAY; now += 12 * HOUR) {
        struct out_row row = take(t, &loose, peer.id, n, now);
        end(t, &loose, &row, VERDICT_LOGIN, 0, now);
        take_none(t, &loose, peer.id, now + 5 * SECOND - 1, now + 5 * SECOND);
    }
    struct out_row row = take(t, &loose, peer.id, n, now);
    end(t, &loose, &row, VERDICT_AGAIN, 0, now);
    assert_int_equal(row.state, OUT_READY);
}

static void three_of_unknown_fate(void **state)
{
    struct db_fixture *t = *state;
    struct peer peer = peer_made(t->db, &loose);
    int64_t n = put(t, peer.id, OUT_FINAL);
    msec now = NOW;
    str ids[4] = {row_of(t, n).client_id};
    for (int i = 1; i <= 3; i++, now += MINUTE) {
        struct out_row row = take(t, &loose, peer.id, n, now);
        assert_str(row.client_id, ids[i - 1]);
        assert_int_equal(row.again, i > 1);
        end(t, &loose, &row, VERDICT_UNKNOWN, 0, now);
        assert_int_equal(row.state, i < 3 ? OUT_READY : OUT_PARKED);
        ids[i] = row_of(t, n).client_id;
        for (int k = 0; k < i; k++) assert_false(str_eq(ids[i], ids[k]));
    }
    take_none(t, &loose, peer.id, now, 0);
    struct inbound inbound = {.at = 0};
    assert_int_equal(outbox_heard(t->db, &loose, &inbound, &peer, now), OK);
    struct out_row row = take(t, &loose, peer.id, n, now);
    assert_true(row.again);
    assert_int_equal(row.unknowns, 0);
}

/* A message came in while one was on its way out. */
static void heard_meanwhile(void **state)
{
    struct db_fixture *t = *state;
    static const struct {
        enum errand_verdict verdict;
        enum out_state state;
        uint32_t used;
    } rows[] = {
        {VERDICT_DONE, OUT_SENT, 1},       {VERDICT_AGAIN, OUT_READY, 0},
        {VERDICT_UNKNOWN, OUT_READY, 1},   {VERDICT_SPENT, OUT_READY, 0}, /* of the old allowance */
        {VERDICT_REFUSED, OUT_DROPPED, 1}, {VERDICT_LOGIN, OUT_READY, 0},
    };
    struct peer peer = peer_made(t->db, &tight);
    msec now = NOW;
    for (size_t i = 0; i < COUNT(rows); i++, now += HOUR) {
        struct inbound inbound = {.at = 0};
        peer = peer_of(t, peer.id);
        assert_int_equal(outbox_heard(t->db, &tight, &inbound, &peer, now), OK);
        int64_t n = put(t, peer.id, OUT_FINAL);
        struct out_row row = take(t, &tight, peer.id, n, now + 10);
        peer = peer_of(t, peer.id);
        assert_int_equal(outbox_heard(t->db, &tight, &inbound, &peer, now + 20), OK);
        assert_int_equal(peer_of(t, peer.id).used, 1);
        assert_int_equal(row_of(t, n).state, OUT_SENDING);
        end(t, &tight, &row, rows[i].verdict, 0, now + 30);
        if (row.state != rows[i].state || peer_of(t, peer.id).used != rows[i].used)
            fail_msg("row %zu: state %u, used %u", i, row.state, peer_of(t, peer.id).used);
        if (rows[i].verdict == VERDICT_SPENT) { /* of the new one too */
            row = take(t, &tight, peer.id, n, now + MINUTE);
            end(t, &tight, &row, VERDICT_SPENT, 0, now + MINUTE);
            assert_int_equal(row.state, OUT_PARKED);
            assert_int_equal(peer_of(t, peer.id).used, 4);
        }
        row.state = OUT_DROPPED;
        assert_int_equal(out_update(t->db, &row), OK);
    }
}

/* Then what the platform gave before is in doubt, and what a press gives counts alone. */
static void pressed_while_in_doubt(void **state)
{
    struct db_fixture *t = *state;
    static const struct {
        enum errand_verdict verdict; /* VERDICT_COUNT: none yet */
        uint32_t allowance, used;
    } rows[] = {
        {VERDICT_DONE, 4, 1},  {VERDICT_COUNT, 2, 1},   {VERDICT_AGAIN, 2, 0},
        {VERDICT_SPENT, 2, 0}, {VERDICT_REFUSED, 4, 1},
    };
    struct peer peer = peer_made(t->db, &tight);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct inbound words = {.at = 0}, press = {.allowance = 2, .window_ms = MINUTE};
        assert_int_equal(outbox_heard(t->db, &tight, &words, &peer, NOW), OK);
        int64_t n = put(t, peer.id, OUT_FINAL);
        struct out_row row = take(t, &tight, peer.id, n, NOW + 1);
        if (rows[i].verdict != VERDICT_COUNT) end(t, &tight, &row, rows[i].verdict, 0, NOW + 2);
        peer = peer_of(t, peer.id);
        assert_int_equal(outbox_heard(t->db, &tight, &press, &peer, NOW + 3), OK);
        if (peer.allowance != rows[i].allowance || peer.used != rows[i].used)
            fail_msg("row %zu: allowance %u, used %u", i, peer.allowance, peer.used);
        row = row_of(t, n);
        row.state = OUT_DROPPED;
        assert_int_equal(out_update(t->db, &row), OK);
    }
}

static void recovery(void **state)
{
    struct db_fixture *t = *state;
    static const struct {
        const struct channel_traits *traits;
        enum out_class class;
        enum out_state expected;
        bool again;
    } rows[] = {
        {&tight, OUT_FINAL, OUT_READY, true},     {&tight, OUT_QUESTION, OUT_READY, true},
        {&tight, OUT_ERROR, OUT_DROPPED, false},  {&tight, OUT_NOTICE, OUT_DROPPED, false},
        {&deduping, OUT_FINAL, OUT_READY, false}, {&deduping, OUT_NOTICE, OUT_READY, false},
    };
    struct peer peer = peer_made(t->db, &tight);
    assert_int_equal(outbox_recover(t->db, &t->arena, &tight, peer.id, NOW), OK);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct inbound inbound = {.at = 0};
        assert_int_equal(outbox_heard(t->db, rows[i].traits, &inbound, &peer, NOW), OK);
        int64_t n = put(t, peer.id, rows[i].class);
        assert_int_equal(outbox_recover(t->db, &t->arena, rows[i].traits, peer.id, NOW), OK);
        assert_int_equal(row_of(t, n).state, OUT_READY);
        assert_false(row_of(t, n).again);
        take(t, rows[i].traits, peer.id, n, NOW);
        for (int k = 0; k < 2; k++) { /* the second time there is nothing to do */
            assert_int_equal(outbox_recover(t->db, &t->arena, rows[i].traits, peer.id, NOW), OK);
            struct out_row row = row_of(t, n);
            assert_int_equal(row.state, rows[i].expected);
            assert_int_equal(row.again, rows[i].again);
            assert_int_equal(row.unknowns, 1);
            assert_int_equal(peer_of(t, peer.id).used, 1);
        }
        struct out_row row = row_of(t, n);
        row.state = OUT_DROPPED;
        assert_int_equal(out_update(t->db, &row), OK);
    }
}

int test_channel_outbox(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allowed),
        WITH_DB(heard),
        WITH_DB(putting),
        WITH_DB(too_many_wait),
        WITH_DB(one_at_a_time),
        WITH_DB(budget),
        WITH_DB(too_often),
        WITH_DB(topics),
        WITH_DB(window),
        WITH_DB(verdicts),
        WITH_DB(patience),
        WITH_DB(login_takes_long),
        WITH_DB(three_of_unknown_fate),
        WITH_DB(heard_meanwhile),
        WITH_DB(pressed_while_in_doubt),
        WITH_DB(recovery),
    };
    return cmocka_run_group_tests_name("channel/outbox", tests, NULL, NULL);
}
