/* SPDX-License-Identifier: Apache-2.0 */
#include "store/table/channels.h"

#include <stdio.h>

#include "base/limits.h"
#include "check.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"
#include "store/table/interactions.h"
#include "store/table/keys.h"

static int64_t peer_made(struct db *db, const char *channel, const char *sender)
{
    struct peer peer = {.channel = str_c(channel), .sender = str_c(sender)};
    assert_int_equal(peer_add(db, &peer), OK);
    return peer.id;
}

static int64_t out_made(struct db *db, int64_t peer, enum out_class class, enum out_state state)
{
    struct out_row row = {.peer = peer, .class = class, .state = state, .text = STR("x")};
    assert_int_equal(out_add(db, &row), OK);
    return row.n;
}

/* Two rows by one digit each. */
static void assert_ids(const int64_t *ids, size_t count, const char *expected)
{
    char got[32] = "";
    assert_true(count < sizeof got);
    for (size_t i = 0; i < count; i++) got[i] = (char)('0' + ids[i]);
    assert_string_equal(got, expected);
}

/* ---- the channel itself ---- */

static void channel_life(void **state)
{
    struct db_fixture *t = *state;
    struct channel_row row = {.name = STR("wx"),
                              .kind = STR("weixin"),
                              .account = STR("{\"token\":\"密\"}"),
                              .cursor = STR("c\0d"),
                              .state = CHANNEL_NEEDS_LOGIN,
                              .detail = STR("signed out"),
                              .changed = 7};
    struct channel_row got = {0};
    assert_int_equal(channel_find(t->db, &t->arena, STR("wx"), &got), ERR_NOT_FOUND);
    assert_int_equal(channel_set_cursor(t->db, STR("wx"), STR("x")), ERR_NOT_FOUND);
    for (int i = 0; i < 2; i++) { /* new, then replaced */
        assert_int_equal(channel_put(t->db, &row), OK);
        assert_int_equal(channel_find(t->db, &t->arena, STR("wx"), &got), OK);
        assert_str(got.name, row.name);
        assert_str(got.kind, row.kind);
        assert_str(got.account, row.account);
        assert_str(got.cursor, row.cursor);
        assert_str(got.detail, row.detail);
        assert_int_equal(got.state, row.state);
        assert_int_equal(got.changed, row.changed);
        row = (struct channel_row){.name = STR("wx"),
                                   .kind = STR("telegram"),
                                   .account = STR("{}"),
                                   .state = CHANNEL_ONLINE,
                                   .changed = 8};
    }
    assert_int_equal(channel_set_cursor(t->db, STR("wx"), STR("e")), OK);
    assert_int_equal(channel_find(t->db, &t->arena, STR("wx"), &got), OK);
    assert_str(got.cursor, STR("e"));
    assert_int_equal(got.state, CHANNEL_ONLINE);
    assert_string_equal(channel_state_name(CHANNEL_NEEDS_LOGIN), "needs_login");
    assert_string_equal(out_class_name(OUT_NOTICE), "notice");
}

/* Numbers that nobody wrote come from a damaged file. */
static void numbers_nobody_knows(void **state)
{
    struct db_fixture *t = *state;
    struct channel_row channel = {.name = STR("wx")};
    int64_t peer = peer_made(t->db, "wx", "u");
    struct inbound_row in = {.channel = STR("wx"), .id = STR("1"), .peer = peer};
    assert_int_equal(channel_put(t->db, &channel), OK);
    assert_int_equal(inbound_add(t->db, &in), OK);
    int64_t n = out_made(t->db, peer, OUT_FINAL, OUT_READY);
    assert_int_equal(db_script(t->db, "UPDATE channels SET state=4;"
                                      "UPDATE channel_inbox SET state=-1;"
                                      "UPDATE channel_outbox SET class=4;"),
                     OK);
    struct out_row out = {0};
    assert_int_equal(channel_find(t->db, &t->arena, STR("wx"), &channel), ERR_DAMAGED);
    assert_int_equal(inbound_next(t->db, &t->arena, peer, &in), ERR_DAMAGED);
    assert_int_equal(out_by_n(t->db, &t->arena, n, &out), ERR_DAMAGED);
    assert_int_equal(db_script(t->db, "UPDATE channel_outbox SET class=0, state=5"), OK);
    assert_int_equal(out_by_n(t->db, &t->arena, n, &out), ERR_DAMAGED);
}

/* ---- people ---- */

static void assert_peer(const struct peer *got, const struct peer *expected)
{
    assert_int_equal(got->id, expected->id);
    assert_str(got->channel, expected->channel);
    assert_str(got->sender, expected->sender);
    assert_str(got->name, expected->name);
    assert_str(got->locale, expected->locale);
    assert_int_equal(got->group, expected->group);
    assert_str(got->user, expected->user);
    assert_int_equal(got->roles, expected->roles);
    assert_int_equal(got->conversations, expected->conversations);
    assert_str(got->thread_id, expected->thread_id);
    assert_int_equal(got->thread, expected->thread);
    assert_int_equal(got->cursor, expected->cursor);
    assert_str(got->reply_token, expected->reply_token);
    assert_int_equal(got->heard, expected->heard);
    assert_int_equal(got->window, expected->window);
    assert_int_equal(got->allowance, expected->allowance);
    assert_int_equal(got->used, expected->used);
    assert_str(got->held, expected->held);
    assert_int_equal(got->created, expected->created);
}

static void every_field_of_a_person(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "ann", "t1", "x", 1);
    struct peer peers[] = {
        {.channel = STR("wx"), .sender = STR("u1")},
        {.channel = STR("wx"),
         .sender = STR("u2"),
         .name = STR("小王"),
         .locale = STR("zh-CN"),
         .group = true,
         .user = STR("ann"),
         .roles = 5,
         .conversations = 3,
         .thread_id = STR("wx:u2:3"),
         .thread = thread,
         .cursor = 9,
         .reply_token = STR("tok\0en"),
         .heard = 10,
         .window = 11,
         .allowance = UINT32_MAX,
         .used = 12,
         .held = STR("{}"),
         .created = 13},
    };
    struct peer got = {0};
    assert_int_equal(peer_find(t->db, &t->arena, STR("wx"), STR("u1"), &got), ERR_NOT_FOUND);
    for (size_t i = 0; i < COUNT(peers); i++) {
        assert_int_equal(peer_add(t->db, &peers[i]), OK);
        assert_int_equal(peers[i].id, i + 1);
        assert_int_equal(peer_find(t->db, &t->arena, peers[i].channel, peers[i].sender, &got), OK);
        assert_peer(&got, &peers[i]);
    }
    struct peer twice = peers[0];
    assert_int_equal(peer_add(t->db, &twice), ERR_BUSY);
    assert_int_equal(peer_by_thread(t->db, &t->arena, thread, &got), OK);
    assert_peer(&got, &peers[1]);
    assert_int_equal(peer_by_thread(t->db, &t->arena, thread + 1, &got), ERR_NOT_FOUND);
    assert_int_equal(peer_by_thread(t->db, &t->arena, 0, &got), ERR_NOT_FOUND);

    struct peer changed = peers[1];
    changed.id = peers[0].id;
    changed.sender = STR("u3");
    assert_int_equal(peer_update(t->db, &changed), OK);
    assert_int_equal(peer_by_id(t->db, &t->arena, changed.id, &got), OK);
    assert_peer(&got, &changed);
    assert_int_equal(peer_set_used(t->db, changed.id, 77), OK);
    changed.used = 77;
    assert_int_equal(peer_by_id(t->db, &t->arena, changed.id, &got), OK);
    assert_peer(&got, &changed);
    assert_int_equal(peer_by_id(t->db, &t->arena, 3, &got), ERR_NOT_FOUND);
    assert_int_equal(peer_set_used(t->db, 3, 1), ERR_NOT_FOUND);
    changed.id = 3;
    changed.sender = STR("u4");
    assert_int_equal(peer_update(t->db, &changed), ERR_NOT_FOUND);

    int64_t count = 0;
    assert_int_equal(peers_count(t->db, STR("wx"), &count), OK);
    assert_int_equal(count, 2);
    assert_int_equal(peers_count(t->db, STR("w"), &count), OK);
    assert_int_equal(count, 0);
}

static void a_person_outlives_the_thread(void **state)
{
    struct db_fixture *t = *state;
    struct peer peer = {.channel = STR("wx"), .sender = STR("u"), .thread_id = STR("t")};
    peer.thread = thread_made(t->db, "ann", "t", "x", 1);
    assert_int_equal(peer_add(t->db, &peer), OK);
    assert_int_equal(thread_delete(t->db, peer.thread), OK);
    peer.thread = 0;
    struct peer got = {0};
    assert_int_equal(peer_by_id(t->db, &t->arena, peer.id, &got), OK);
    assert_peer(&got, &peer);
}

static void those_behind(void **state)
{
    struct db_fixture *t = *state;
    static const struct {
        int facts;
        int64_t cursor;
        bool gone;
    } rows[] = {{2, 0, false}, {2, 2, false}, {0, 0, false}, {3, 2, false}, {2, 0, true}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char id[] = {(char)('a' + i), 0};
        struct peer peer = {.channel = STR("wx"), .sender = str_c(id), .cursor = rows[i].cursor};
        peer.thread = thread_made(t->db, "ann", id, "x", 1);
        for (int k = 0; k < rows[i].facts; k++) {
            char message[] = {(char)('a' + k), 0};
            message_made(t->db, peer.thread, message, "x", 1);
        }
        assert_int_equal(peer_add(t->db, &peer), OK);
        if (rows[i].gone) assert_int_equal(thread_delete(t->db, peer.thread), OK);
    }
    peer_made(t->db, "wx", "no thread");
    static const struct {
        int64_t after;
        size_t limit;
        const char *expected;
    } pages[] = {{0, 9, "14"}, {0, 1, "1"}, {1, 9, "4"}, {3, 1, "4"}, {4, 9, ""}};
    for (size_t i = 0; i < COUNT(pages); i++) {
        struct peer_list list = {0};
        int64_t ids[8] = {0};
        assert_int_equal(peers_behind(t->db, &t->arena, pages[i].after, pages[i].limit, &list), OK);
        for (size_t k = 0; k < list.count && k < COUNT(ids); k++) ids[k] = list.rows[k].id;
        assert_ids(ids, list.count, pages[i].expected);
    }
}

/* ---- what came in ---- */

static void inbox(void **state)
{
    struct db_fixture *t = *state;
    int64_t ann = peer_made(t->db, "wx", "ann"), bob = peer_made(t->db, "wx", "bob");
    struct inbound_row first = {.channel = STR("wx"),
                                .id = STR("7448678501208393000"),
                                .peer = ann,
                                .body = STR("{\"text\":\"你好\"}"),
                                .created = 5};
    struct inbound_row got = {0};
    assert_int_equal(inbound_next(t->db, &t->arena, ann, &got), ERR_NOT_FOUND);
    assert_int_equal(inbound_add(t->db, &first), OK);
    struct inbound_row again = first;
    again.n = 0;
    assert_int_equal(inbound_add(t->db, &again), ERR_BUSY);
    assert_int_equal(again.n, 0);
    struct inbound_row second = {.channel = STR("wx"), .id = STR("2"), .peer = ann};
    struct inbound_row his = {.channel = STR("tg"), .id = STR("2"), .peer = bob};
    assert_int_equal(inbound_add(t->db, &second), OK);
    assert_int_equal(inbound_add(t->db, &his), OK);
    assert_true(second.n > first.n);

    assert_int_equal(inbound_next(t->db, &t->arena, ann, &got), OK);
    assert_int_equal(got.n, first.n);
    assert_str(got.channel, first.channel);
    assert_str(got.id, first.id);
    assert_int_equal(got.peer, ann);
    assert_int_equal(got.state, INBOUND_NEW);
    assert_str(got.body, first.body);
    assert_str(got.decision, STR(""));
    assert_int_equal(got.created, 5);
    got.state = INBOUND_DECIDED;
    got.decision = STR("{\"do\":1}");
    got.attempts = 2;
    assert_int_equal(inbound_update(t->db, &got), OK);
    struct inbound_row decided = {0};
    assert_int_equal(inbound_next(t->db, &t->arena, ann, &decided), OK);
    assert_int_equal(decided.n, first.n);
    assert_int_equal(decided.state, INBOUND_DECIDED);
    assert_str(decided.decision, got.decision);
    assert_str(decided.body, first.body);
    assert_int_equal(decided.attempts, 2);
    decided.state = INBOUND_DONE;
    assert_int_equal(inbound_update(t->db, &decided), OK);
    assert_int_equal(inbound_next(t->db, &t->arena, ann, &got), OK);
    assert_int_equal(got.n, second.n);
    assert_int_equal(inbound_add(t->db, &again), ERR_BUSY); /* done, and known */
    got.n = 99;
    assert_int_equal(inbound_update(t->db, &got), ERR_NOT_FOUND);
    struct inbound_row nobodys = {.channel = STR("wx"), .id = STR("3"), .peer = 99};
    assert_int_equal(inbound_add(t->db, &nobodys), ERR_INTERNAL);
}

static void people_with_work(void **state)
{
    struct db_fixture *t = *state;
    static const enum out_state states[] = {OUT_READY, OUT_SENT,   OUT_SENDING,
                                            OUT_READY, OUT_PARKED, OUT_READY};
    for (int i = 1; i <= 6; i++) {
        char id[] = {(char)('0' + i), 0};
        int64_t peer = peer_made(t->db, i == 4 ? "tg" : "wx", id);
        assert_int_equal(peer, i);
        for (int k = 0; k < 3; k++) {
            char message[] = {(char)('0' + i), (char)('0' + k), 0};
            struct inbound_row in = {.channel = i == 4 ? STR("tg") : STR("wx"),
                                     .id = str_c(message),
                                     .peer = peer,
                                     .state = i == 2 ? INBOUND_DONE : (enum inbound_state)(k % 2)};
            assert_int_equal(inbound_add(t->db, &in), OK);
            out_made(t->db, peer, OUT_FINAL, states[i - 1]);
        }
    }
    static const struct {
        const char *channel;
        int64_t after;
        size_t limit;
        const char *in, *out;
    } rows[] = {
        {"wx", 0, 9, "1356", "136"}, {"wx", 0, 2, "13", "13"}, {"wx", 3, 9, "56", "6"},
        {"wx", 6, 9, "", ""},        {"tg", 0, 9, "4", "4"},   {"x", 0, 9, "", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t *peers = NULL;
        size_t count = 0;
        str channel = str_c(rows[i].channel);
        assert_int_equal(inbound_peers(t->db, &t->arena, channel, rows[i].after, rows[i].limit,
                                       &peers, &count),
                         OK);
        assert_ids(peers, count, rows[i].in);
        assert_int_equal(
            out_peers(t->db, &t->arena, channel, rows[i].after, rows[i].limit, &peers, &count), OK);
        assert_ids(peers, count, rows[i].out);
    }
    int64_t waiting = 0, parked = 0;
    assert_int_equal(out_count(t->db, STR("wx"), &waiting, &parked), OK);
    assert_int_equal(waiting, 9);
    assert_int_equal(parked, 3);
}

/* ---- what goes out ---- */

static void assert_out(const struct out_row *got, const struct out_row *expected)
{
    assert_int_equal(got->n, expected->n);
    assert_int_equal(got->peer, expected->peer);
    assert_int_equal(got->class, expected->class);
    assert_int_equal(got->state, expected->state);
    assert_str(got->text, expected->text);
    assert_str(got->file, expected->file);
    assert_str(got->buttons, expected->buttons);
    assert_str(got->interaction, expected->interaction);
    assert_str(got->client_id, expected->client_id);
    assert_str(got->server_id, expected->server_id);
    assert_int_equal(got->attempts, expected->attempts);
    assert_int_equal(got->unknowns, expected->unknowns);
    assert_int_equal(got->again, expected->again);
    assert_int_equal(got->created, expected->created);
    assert_int_equal(got->since, expected->since);
    assert_int_equal(got->next, expected->next);
}

static void outbox_rows(void **state)
{
    struct db_fixture *t = *state;
    int64_t peer = peer_made(t->db, "wx", "ann");
    struct out_row got = {0}, row = {.peer = peer,
                                     .class = OUT_QUESTION,
                                     .text = STR("one\0two"),
                                     .file = STR("{}"),
                                     .buttons = STR("[]"),
                                     .interaction = STR("int_1"),
                                     .client_id = STR("c1"),
                                     .created = 5,
                                     .next = 6};
    assert_int_equal(out_first(t->db, &t->arena, peer, &got), ERR_NOT_FOUND);
    assert_int_equal(out_add(t->db, &row), OK);
    int64_t later = out_made(t->db, peer, OUT_FINAL, OUT_READY);
    assert_true(later > row.n);
    assert_int_equal(out_first(t->db, &t->arena, peer, &got), OK);
    assert_out(&got, &row);
    row.class = OUT_ERROR;
    row.state = OUT_SENDING;
    row.client_id = STR("c2");
    row.server_id = STR("s1");
    row.attempts = 2;
    row.unknowns = 1;
    row.again = true;
    row.since = 7;
    row.next = 8;
    assert_int_equal(out_update(t->db, &row), OK);
    assert_int_equal(out_by_n(t->db, &t->arena, row.n, &got), OK);
    assert_out(&got, &row);
    size_t waiting = 0;
    assert_int_equal(out_waiting(t->db, peer, &waiting), OK);
    assert_int_equal(waiting, 2);
    row.state = OUT_SENT;
    assert_int_equal(out_update(t->db, &row), OK);
    assert_int_equal(out_first(t->db, &t->arena, peer, &got), OK);
    assert_int_equal(got.n, later);
    assert_int_equal(out_waiting(t->db, peer, &waiting), OK);
    assert_int_equal(waiting, 1);
    assert_int_equal(out_by_n(t->db, &t->arena, 99, &got), ERR_NOT_FOUND);
    row.n = 99;
    assert_int_equal(out_update(t->db, &row), ERR_NOT_FOUND);
    struct out_row nobodys = {.peer = 99, .text = STR("x")};
    assert_int_equal(out_add(t->db, &nobodys), ERR_INTERNAL);
}

static void unparking(void **state)
{
    struct db_fixture *t = *state;
    int64_t ann = peer_made(t->db, "wx", "ann"), bob = peer_made(t->db, "wx", "bob");
    int64_t ns[6];
    for (int i = OUT_READY; i <= OUT_DROPPED; i++) ns[i] = out_made(t->db, ann, OUT_FINAL, i);
    ns[5] = out_made(t->db, bob, OUT_FINAL, OUT_PARKED);
    struct out_row row = {0};
    assert_int_equal(out_by_n(t->db, &t->arena, ns[OUT_PARKED], &row), OK);
    row.attempts = row.unknowns = 3;
    row.since = row.next = 5;
    row.again = true;
    assert_int_equal(out_update(t->db, &row), OK);
    assert_int_equal(out_unpark(t->db, ann, 50), OK);
    for (int i = OUT_READY; i <= OUT_DROPPED; i++) {
        assert_int_equal(out_by_n(t->db, &t->arena, ns[i], &row), OK);
        assert_int_equal(row.state, i == OUT_PARKED ? OUT_READY : i);
        assert_int_equal(row.next, i == OUT_PARKED ? 50 : 0);
        assert_int_equal(row.again, i == OUT_PARKED);
        assert_int_equal(row.attempts + row.unknowns + row.since, 0);
    }
    assert_int_equal(out_by_n(t->db, &t->arena, ns[5], &row), OK);
    assert_int_equal(row.state, OUT_PARKED);
}

static void dropping(void **state)
{
    struct db_fixture *t = *state;
    int64_t ann = peer_made(t->db, "wx", "ann"), bob = peer_made(t->db, "wx", "bob");
    static const struct {
        enum out_class class;
        enum out_state state;
        int order; /* in which it is dropped; 0: never */
    } rows[] = {
        {OUT_FINAL, OUT_SENT, 0},     {OUT_NOTICE, OUT_SENDING, 0}, {OUT_FINAL, OUT_PARKED, 3},
        {OUT_NOTICE, OUT_PARKED, 1},  {OUT_ERROR, OUT_READY, 4},    {OUT_NOTICE, OUT_READY, 2},
        {OUT_QUESTION, OUT_READY, 5},
    };
    int64_t ns[COUNT(rows)];
    for (size_t i = 0; i < COUNT(rows); i++)
        ns[i] = out_made(t->db, ann, rows[i].class, rows[i].state);
    out_made(t->db, bob, OUT_NOTICE, OUT_READY);
    for (int order = 1; order <= 5; order++) {
        assert_int_equal(out_drop_one(t->db, ann), OK);
        for (size_t i = 0; i < COUNT(rows); i++) {
            struct out_row row = {0};
            bool dropped = rows[i].order && rows[i].order <= order;
            assert_int_equal(out_by_n(t->db, &t->arena, ns[i], &row), OK);
            assert_int_equal(row.state, dropped ? OUT_DROPPED : rows[i].state);
        }
    }
    assert_int_equal(out_drop_one(t->db, ann), ERR_NOT_FOUND);
}

static void what_a_message_was_about(void **state)
{
    struct db_fixture *t = *state;
    int64_t ann = peer_made(t->db, "wx", "ann"), bob = peer_made(t->db, "wx", "bob");
    struct out_row rows[] = {
        {.peer = ann, .class = OUT_QUESTION, .state = OUT_SENT, .interaction = STR("int_1")},
        {.peer = ann, .class = OUT_QUESTION, .state = OUT_SENT, .interaction = STR("int_1")},
        {.peer = ann, .class = OUT_QUESTION, .state = OUT_READY, .interaction = STR("int_1")},
        {.peer = ann, .class = OUT_NOTICE, .state = OUT_SENT, .interaction = STR("int_1")},
        {.peer = bob, .class = OUT_QUESTION, .state = OUT_SENT, .interaction = STR("int_2")},
        {.peer = ann, .class = OUT_FINAL, .state = OUT_SENT},
    };
    static const char *const server_ids[] = {"1", "2", "", "4", "1", "6"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        rows[i].server_id = str_c(server_ids[i]);
        assert_int_equal(out_add(t->db, &rows[i]), OK);
    }
    str interaction = STR_EMPTY;
    assert_int_equal(out_of_server_id(t->db, &t->arena, ann, STR("1"), &interaction), OK);
    assert_str(interaction, STR("int_1"));
    assert_int_equal(out_of_server_id(t->db, &t->arena, bob, STR("1"), &interaction), OK);
    assert_str(interaction, STR("int_2"));
    assert_int_equal(out_of_server_id(t->db, &t->arena, ann, STR("6"), &interaction), OK);
    assert_str(interaction, STR(""));
    assert_int_equal(out_of_server_id(t->db, &t->arena, bob, STR("2"), &interaction),
                     ERR_NOT_FOUND);
    assert_int_equal(out_of_server_id(t->db, &t->arena, ann, STR(""), &interaction), ERR_NOT_FOUND);
    struct out_row got = {0};
    assert_int_equal(out_about(t->db, &t->arena, ann, OUT_QUESTION, STR("int_1"), &got), OK);
    assert_int_equal(got.n, rows[1].n);
    assert_int_equal(out_about(t->db, &t->arena, ann, OUT_NOTICE, STR("int_1"), &got), OK);
    assert_int_equal(got.n, rows[3].n);
    assert_int_equal(out_about(t->db, &t->arena, bob, OUT_QUESTION, STR("int_1"), &got),
                     ERR_NOT_FOUND);
    assert_int_equal(out_about(t->db, &t->arena, ann, OUT_FINAL, STR(""), &got), ERR_NOT_FOUND);
}

/* A notice that waits is still to be told; one that was given up never will be. */
static void told_when_sent_or_given_up(void **state)
{
    struct db_fixture *t = *state;
    static const bool is_told[] = {[OUT_READY] = false,
                                   [OUT_SENDING] = false,
                                   [OUT_PARKED] = false,
                                   [OUT_SENT] = true,
                                   [OUT_DROPPED] = true};
    int64_t ann = peer_made(t->db, "wx", "ann"), bob = peer_made(t->db, "wx", "bob");
    struct out_row row = {.peer = ann, .class = OUT_NOTICE, .interaction = STR("int_1")};
    struct out_row asked = {
        .peer = ann, .class = OUT_QUESTION, .state = OUT_SENT, .interaction = STR("int_1")};
    bool told = true;
    assert_int_equal(out_add(t->db, &asked), OK);
    assert_int_equal(out_add(t->db, &row), OK);
    for (size_t i = 0; i < COUNT(is_told); i++) {
        row.state = (enum out_state)i;
        assert_int_equal(out_update(t->db, &row), OK);
        assert_int_equal(out_told(t->db, ann, STR("int_1"), &told), OK);
        assert_int_equal(told, is_told[i]);
    }
    assert_int_equal(out_told(t->db, bob, STR("int_1"), &told), OK);
    assert_false(told);
    assert_int_equal(out_told(t->db, ann, STR("int_2"), &told), OK);
    assert_false(told);
}

/* ---- forgetting ---- */

static int64_t rows_of(struct db *db, struct stmt *s)
{
    (void)db;
    int64_t count = -1;
    assert_int_equal(db_number(s, &count), OK);
    return count;
}

/* Whoever wrote before a question left had not been asked it, whatever came of it since. */
static void asked_when_it_left(void **state)
{
    struct db_fixture *t = *state;
    int64_t ann = peer_made(t->db, "wx", "ann"), bob = peer_made(t->db, "wx", "bob");
    const struct {
        struct out_row row;
        bool asked;
    } rows[] = {
        {{.peer = ann, .class = OUT_QUESTION, .state = OUT_SENT}, true},
        {{.peer = ann, .class = OUT_QUESTION, .state = OUT_READY}, false},
        {{.peer = ann, .class = OUT_QUESTION, .state = OUT_PARKED}, false},
        {{.peer = ann, .class = OUT_QUESTION, .state = OUT_READY, .again = true}, true},
        {{.peer = ann, .class = OUT_QUESTION, .state = OUT_READY, .unknowns = 1}, true},
        {{.peer = ann, .class = OUT_QUESTION, .state = OUT_DROPPED}, false},
        {{.peer = ann, .class = OUT_QUESTION, .state = OUT_SENDING}, true},
        {{.peer = ann, .class = OUT_NOTICE, .state = OUT_SENT}, false},
        {{.peer = bob, .class = OUT_QUESTION, .state = OUT_SENT}, true},
    };
    int64_t newest = -1, before;
    assert_int_equal(out_newest_asked(t->db, ann, &newest), OK);
    assert_int_equal(newest, 0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct out_row row = rows[i].row;
        bool asked = true;
        row.text = STR("x");
        row.interaction = arena_printf(&t->arena, "int_%zu", i);
        assert_int_equal(out_newest_asked(t->db, row.peer, &before), OK);
        assert_int_equal(out_add(t->db, &row), OK);
        assert_int_equal(out_newest_asked(t->db, row.peer, &newest), OK);
        assert_int_equal(newest, rows[i].asked ? row.n : before);
        assert_int_equal(out_asked(t->db, row.peer, row.interaction, before, &asked), OK);
        assert_false(asked);
        assert_int_equal(out_asked(t->db, row.peer, row.interaction, newest, &asked), OK);
        assert_int_equal(asked, rows[i].asked);
        assert_int_equal(out_asked(t->db, row.peer, row.interaction, INT64_MAX, &asked), OK);
        assert_int_equal(asked, rows[i].asked);
    }
}

static void expiry(void **state)
{
    struct db_fixture *t = *state;
    int64_t peer = peer_made(t->db, "wx", "ann"), count = 0;
    for (int i = 0; i < 6; i++) { /* 0..2 old, 3..5 at the limit */
        char id[] = {(char)('0' + i), 0};
        struct inbound_row in = {.channel = STR("wx"),
                                 .id = str_c(id),
                                 .peer = peer,
                                 .state = (enum inbound_state)(i % 3),
                                 .created = i < 3 ? 99 : 100};
        assert_int_equal(inbound_add(t->db, &in), OK);
    }
    for (int i = 0; i < 10; i++) { /* 0..4 old */
        struct out_row out = {.peer = peer,
                              .state = (enum out_state)(i % 5),
                              .text = STR("x"),
                              .created = i < 5 ? 99 : 100};
        assert_int_equal(out_add(t->db, &out), OK);
    }
    for (int i = 0; i < 2; i++) {
        struct link_code code = {.hash = i ? STR("h1") : STR("h0"), .expires = 99 + i};
        assert_int_equal(link_add(t->db, &code), OK);
    }
    int64_t thread = thread_made(t->db, "ann", "t", "x", 1);
    struct interaction open = {.thread = thread, .id = STR("int_1")};
    struct interaction settled = {.thread = thread, .id = STR("int_2")};
    assert_int_equal(interaction_add(t->db, &open), OK);
    assert_int_equal(interaction_add(t->db, &settled), OK);
    settled.status = INTERACTION_RESOLVED;
    assert_int_equal(interaction_settle(t->db, &settled), OK);
    const str asked[] = {open.id, settled.id};
    for (size_t i = 0; i < COUNT(asked); i++) {
        struct out_row out = {.peer = peer,
                              .class = OUT_QUESTION,
                              .state = OUT_SENT,
                              .text = STR("x"),
                              .interaction = asked[i],
                              .created = 1};
        assert_int_equal(out_add(t->db, &out), OK);
    }
    assert_int_equal(code_wrong(t->db, peer, open.id), OK);
    assert_int_equal(code_wrong(t->db, peer, settled.id), OK);
    assert_int_equal(code_wrong(t->db, peer, STR("int_gone")), OK);

    assert_int_equal(channel_rows_expire(t->db, 100, &count), OK);
    assert_int_equal(count, 1 + 3 + 1 + 2);
    bool kept = false;
    assert_int_equal(out_asked(t->db, peer, open.id, INT64_MAX, &kept), OK);
    assert_true(kept);
    assert_int_equal(rows_of(t->db, db_prepare(t->db, "SELECT count(*) FROM channel_inbox")), 5);
    assert_int_equal(rows_of(t->db, db_prepare(t->db, "SELECT count(*) FROM channel_outbox")), 9);
    assert_int_equal(rows_of(t->db, db_prepare(t->db, "SELECT count(*) FROM channel_links")), 1);
    assert_int_equal(rows_of(t->db, db_prepare(t->db, "SELECT count(*) FROM channel_codes")), 1);
    assert_int_equal(channel_rows_expire(t->db, 100, &count), OK);
    assert_int_equal(count, 0);
}

static void expiry_is_bounded(void **state)
{
    struct db_fixture *t = *state;
    int64_t peer = peer_made(t->db, "wx", "ann"), count = 0;
    bool unknown = false;
    assert_int_equal(db_begin(t->db), OK);
    for (int i = 0; i <= CHANNEL_EXPIRE_MAX; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        struct inbound_row in = {
            .channel = STR("wx"), .id = str_c(id), .peer = peer, .state = INBOUND_DONE};
        assert_int_equal(inbound_add(t->db, &in), OK);
        out_made(t->db, peer, OUT_FINAL, OUT_DROPPED);
    }
    assert_int_equal(db_commit(t->db, &unknown), OK);
    static const int64_t expected[] = {2 * CHANNEL_EXPIRE_MAX, 2, 0};
    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_int_equal(channel_rows_expire(t->db, 1, &count), OK);
        assert_int_equal(count, expected[i]);
    }
    /* Numbers are not used again, whatever has left. */
    assert_true(out_made(t->db, peer, OUT_FINAL, OUT_READY) > CHANNEL_EXPIRE_MAX + 1);
}

/* ---- codes and links ---- */

static void wrong_codes(void **state)
{
    struct db_fixture *t = *state;
    int64_t ann = peer_made(t->db, "wx", "ann"), bob = peer_made(t->db, "wx", "bob");
    uint32_t tries = 9;
    assert_int_equal(code_tries(t->db, ann, STR("int_1"), &tries), OK);
    assert_int_equal(tries, 0);
    for (uint32_t i = 1; i <= 6; i++) {
        assert_int_equal(code_wrong(t->db, ann, STR("int_1")), OK);
        assert_int_equal(code_tries(t->db, ann, STR("int_1"), &tries), OK);
        assert_int_equal(tries, i);
    }
    assert_int_equal(code_tries(t->db, bob, STR("int_1"), &tries), OK);
    assert_int_equal(tries, 0);
    assert_int_equal(code_tries(t->db, ann, STR("int_2"), &tries), OK);
    assert_int_equal(tries, 0);
}

static void links(void **state)
{
    struct db_fixture *t = *state;
    struct link_code got = {0}, code = {.hash = STR("h"),
                                        .channel = STR("wx"),
                                        .user = STR("ann"),
                                        .roles = 3,
                                        .expires = 100};
    assert_int_equal(link_add(t->db, &code), OK);
    assert_int_equal(link_add(t->db, &code), ERR_BUSY);
    static const struct {
        const char *channel, *hash;
        msec now;
        enum err expected;
    } rows[] = {
        {"tg", "h", 1, ERR_NOT_FOUND},   {"wx", "g", 1, ERR_NOT_FOUND},
        {"wx", "h", 100, ERR_NOT_FOUND}, {"wx", "h", 99, OK},
        {"wx", "h", 99, ERR_NOT_FOUND},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(link_take(t->db, &t->arena, str_c(rows[i].channel), str_c(rows[i].hash),
                                   rows[i].now, &got),
                         rows[i].expected);
    assert_str(got.hash, code.hash);
    assert_str(got.channel, code.channel);
    assert_str(got.user, code.user);
    assert_int_equal(got.roles, 3);
    assert_int_equal(got.expires, 100);
}

/* What a key allowed ends in the chats of its user when no key of theirs allows it any more; what was
 * given to the chat alone stays. With the last key the links go. */
static void roles_end_with_keys(void **state)
{
    struct db_fixture *t = *state;
    static const struct {
        const char *id, *user;
        unsigned roles;
    } keys[] = {{"k1", "eve", ROLE_APPROVER},
                {"k2", "eve", ROLE_APPROVER | ROLE_OPERATOR},
                {"k3", "eve", ROLE_USER},
                {"k4", "ann", ROLE_APPROVER}};
    for (size_t i = 0; i < COUNT(keys); i++) {
        struct key key = {.id = str_c(keys[i].id), .user = str_c(keys[i].user), .created = 1};
        key.roles = keys[i].roles;
        key_hash(key.id, key.hash);
        assert_int_equal(keys_add(t->db, &key), OK);
    }
    struct peer eve = {.channel = STR("tg"),
                       .sender = STR("1"),
                       .user = STR("eve"),
                       .roles = ROLE_USER | ROLE_APPROVER | ROLE_OPERATOR};
    struct peer ann = {.channel = STR("tg"),
                       .sender = STR("2"),
                       .user = STR("ann"),
                       .roles = ROLE_APPROVER | ROLE_OPERATOR};
    assert_int_equal(peer_add(t->db, &eve), OK);
    assert_int_equal(peer_add(t->db, &ann), OK);
    static const struct {
        const char *revoked;
        unsigned roles;
        const char *user;
    } rows[] = {{"k1", ROLE_USER | ROLE_APPROVER | ROLE_OPERATOR, "eve"},
                {"k2", ROLE_USER, "eve"},
                {"k3", 0, ""}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct peer got;
        assert_int_equal(keys_revoke(t->db, str_c(rows[i].revoked), 5), OK);
        assert_int_equal(links_end_by_key(t->db, str_c(rows[i].revoked)), OK);
        assert_int_equal(peer_find(t->db, &t->arena, STR("tg"), STR("1"), &got), OK);
        assert_int_equal(got.roles, rows[i].roles);
        assert_str(got.user, str_c(rows[i].user));
        assert_int_equal(peer_find(t->db, &t->arena, STR("tg"), STR("2"), &got), OK);
        assert_int_equal(got.roles, ROLE_APPROVER | ROLE_OPERATOR);
    }
}

int test_channels(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DB(channel_life),
        WITH_DB(numbers_nobody_knows),
        WITH_DB(every_field_of_a_person),
        WITH_DB(a_person_outlives_the_thread),
        WITH_DB(those_behind),
        WITH_DB(inbox),
        WITH_DB(people_with_work),
        WITH_DB(outbox_rows),
        WITH_DB(unparking),
        WITH_DB(dropping),
        WITH_DB(what_a_message_was_about),
        WITH_DB(told_when_sent_or_given_up),
        WITH_DB(asked_when_it_left),
        WITH_DB(expiry),
        WITH_DB(expiry_is_bounded),
        WITH_DB(wrong_codes),
        WITH_DB(links),
        WITH_DB(roles_end_with_keys),
    };
    return cmocka_run_group_tests_name("store/channels", tests, NULL, NULL);
}
