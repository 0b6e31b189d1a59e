/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"

static void every_field(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    struct message message = {
        .seq = 4,
        .id = STR("m1"),
        .role = STR("assistant"),
        .run_id = STR("r1"),
        .content = STR("\"明天 sunny\""),
        .metadata = STR("{\"stage\":\"intent\"}"),
        .tool_calls = STR("[1]"),
        .usage = STR("{\"inputTokens\":3}"),
        .provider_data = STR("{\"signature\":\"s\"}"),
        .tool = STR("{\"toolCallId\":\"c\"}"),
        .plain = STR("明天 sunny"),
        .created = 77,
    };
    assert_int_equal(message_add(t->db, thread, &message), OK);
    struct message_list list = {0};
    assert_int_equal(message_page(t->db, &t->arena, thread, 0, 0, 5, &list), OK);
    assert_int_equal(list.count, 1);
    const struct message *got = &list.messages[0];
    assert_int_equal(got->seq, 4);
    assert_str(got->id, message.id);
    assert_str(got->role, message.role);
    assert_str(got->run_id, message.run_id);
    assert_str(got->content, message.content);
    assert_str(got->metadata, message.metadata);
    assert_str(got->tool_calls, message.tool_calls);
    assert_str(got->usage, message.usage);
    assert_str(got->provider_data, message.provider_data);
    assert_str(got->tool, message.tool);
    assert_str(got->plain, message.plain);
    assert_int_equal(got->created, 77);
}

static void ids_are_unique_in_a_thread(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    int64_t other = thread_made(t->db, "bob", "t", "x", 1);
    message_made(t->db, thread, "m1", "x", 1);
    message_made(t->db, other, "m2", "x", 1);
    struct message again = {
        .seq = 9, .id = STR("m1"), .role = STR("user"), .metadata = STR("{}"), .created = 1};
    assert_int_equal(message_add(t->db, thread, &again), ERR_BUSY);
    const struct {
        int64_t thread;
        str id;
        bool expected;
    } rows[] = {
        {thread, STR("m1"), true}, {thread, STR("m2"), false}, {other, STR("m2"), true},
        {other, STR("m1"), false}, {99, STR("m1"), false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        bool exists = !rows[i].expected;
        assert_int_equal(message_exists(t->db, rows[i].thread, rows[i].id, &exists), OK);
        assert_int_equal(exists, rows[i].expected);
    }
    assert_int_equal(message_add(t->db, other, &again), OK);
    bool same = false;
    assert_int_equal(message_says(t->db, other, STR("m1"), STR_EMPTY, &same), OK);
    assert_true(same);
    assert_int_equal(message_says(t->db, other, STR("m1"), STR("x"), &same), OK);
    assert_false(same);
    assert_int_equal(message_says(t->db, 99, STR("m1"), STR("x"), &same), ERR_NOT_FOUND);
}

static void metadata_changes(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    int64_t other = thread_made(t->db, "bob", "t", "x", 1);
    message_made(t->db, thread, "m1", "one", 1);
    message_made(t->db, thread, "m2", "two", 1);
    message_made(t->db, other, "m1", "his", 1);
    str answered = STR("{\"status\":\"answered\"}");
    assert_int_equal(message_set_metadata(t->db, thread, STR("m1"), answered), OK);
    assert_int_equal(message_set_metadata(t->db, thread, STR("m3"), answered), ERR_NOT_FOUND);
    assert_int_equal(message_set_metadata(t->db, 99, STR("m1"), answered), ERR_NOT_FOUND);
    const struct {
        int64_t thread;
        size_t at;
        str metadata, plain;
    } rows[] = {{thread, 0, answered, STR("one")},
                {thread, 1, STR("{}"), STR("two")},
                {other, 0, STR("{}"), STR("his")}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct message_list list = {0};
        assert_int_equal(message_page(t->db, &t->arena, rows[i].thread, 0, 0, 9, &list), OK);
        assert_str(list.messages[rows[i].at].metadata, rows[i].metadata);
        assert_str(list.messages[rows[i].at].plain, rows[i].plain);
    }
}

/* Five messages with the numbers 2, 4, 6, 8, 10, created at 20, 40, ... 100. */
static int64_t five(struct db *db)
{
    int64_t thread = thread_made(db, "alice", "t", "x", 1);
    for (int i = 1; i <= 5; i++) {
        char id[8];
        struct fact other = {.type = "run.started", .data = STR("{}")};
        snprintf(id, sizeof id, "m%d", i);
        assert_int_equal(facts_append(db, thread, &other, 1, 1), OK);
        assert_int_equal(message_made(db, thread, id, "x", 20 * i), 2 * i);
    }
    return thread;
}

static void pages(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = five(t->db);
    static const struct {
        int64_t before, after;
        size_t limit, count;
        int64_t first; /* number of the first one */
        bool more;
    } rows[] = {
        {0, 0, 2, 2, 8, true},   {0, 0, 4, 4, 4, true},   {0, 0, 5, 5, 2, false},
        {0, 0, 9, 5, 2, false},  {8, 0, 2, 2, 4, true},   {8, 0, 3, 3, 2, false},
        {7, 0, 1, 1, 6, true},   {4, 0, 1, 1, 2, false},  {2, 0, 1, 0, 0, false},
        {1, 0, 1, 0, 0, false},  {99, 0, 1, 1, 10, true}, {0, 1, 2, 2, 2, true},
        {0, 2, 2, 2, 4, true},   {0, 2, 4, 4, 4, false},  {0, 3, 1, 1, 4, true},
        {0, 8, 1, 1, 10, false}, {0, 10, 1, 0, 0, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct message_list list = {0};
        assert_int_equal(message_page(t->db, &t->arena, thread, rows[i].before, rows[i].after,
                                      rows[i].limit, &list),
                         OK);
        if (list.count != rows[i].count || list.more != rows[i].more)
            fail_msg("row %zu: %zu messages, more %d", i, list.count, list.more);
        for (size_t k = 0; k < list.count; k++)
            assert_int_equal(list.messages[k].seq, rows[i].first + 2 * (int64_t)k);
    }
}

static void tails(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = five(t->db);
    static const struct {
        int64_t from;
        size_t limit, count;
        int64_t first;
        bool more;
    } rows[] = {
        {0, 9, 5, 2, false}, {0, 5, 5, 2, false}, {0, 4, 4, 4, true},  {6, 9, 3, 6, false},
        {6, 3, 3, 6, false}, {6, 2, 2, 8, true},  {5, 9, 3, 6, false}, {99, 9, 0, 0, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct message_list list = {0};
        assert_int_equal(message_tail(t->db, &t->arena, thread, rows[i].from, rows[i].limit, &list),
                         OK);
        if (list.count != rows[i].count || list.more != rows[i].more)
            fail_msg("row %zu: %zu messages, more %d", i, list.count, list.more);
        for (size_t k = 0; k < list.count; k++)
            assert_int_equal(list.messages[k].seq, rows[i].first + 2 * (int64_t)k);
    }
}

/* Which rows, and what of them. */
static void tail_rows(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    static const char *const roles[] = {"user",        "reasoning", "assistant", "clarify",
                                        "interaction", "tool",      "system"};
    for (size_t i = 0; i < COUNT(roles); i++) {
        struct message row = {.seq = (int64_t)i + 1,
                              .id = str_c(roles[i]),
                              .role = str_c(roles[i]),
                              .run_id = STR("r1"),
                              .content = STR("\"c\""),
                              .metadata = STR("{\"m\":1}"),
                              .tool_calls = STR("[1]"),
                              .provider_data = STR("{\"p\":1}"),
                              .hints = STR("{\"h\":1}"),
                              .attachments = STR("[2]"),
                              .plain = STR("plain"),
                              .created = 1};
        assert_int_equal(message_add(t->db, thread, &row), OK);
    }
    struct message_list list = {0};
    assert_int_equal(message_tail(t->db, &t->arena, thread, 0, 9, &list), OK);
    assert_int_equal(list.count, 4);
    static const char *const kept[] = {"user", "assistant", "tool", "system"};
    for (size_t i = 0; i < list.count; i++) {
        const struct message *got = &list.messages[i];
        assert_str(got->role, str_c(kept[i]));
        assert_str(got->id, str_c(kept[i]));
        assert_str(got->run_id, STR("r1"));
        assert_str(got->plain, STR("plain"));
        assert_str(got->metadata, STR("{\"m\":1}"));
        assert_str(got->tool_calls, STR("[1]"));
        assert_str(got->provider_data, STR("{\"p\":1}"));
        assert_str(got->hints, STR("{\"h\":1}"));
        assert_str(got->attachments, STR("[2]"));
        assert_str(got->content, i ? STR_EMPTY : STR("\"c\""));
    }
}

/* Long rows: no more are read than are needed to pass the bound. */
static void tail_bytes(void **state)
{
    struct db_fixture *t = *state;
    enum { ROW_BYTES = RUN_CONTEXT_READ_BYTES_MAX / 4 };
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    char *text = arena_alloc(&t->arena, ROW_BYTES);
    memset(text, 'x', ROW_BYTES);
    for (int64_t i = 1; i <= 8; i++) {
        struct message row = {.seq = i,
                              .id = arena_printf(&t->arena, "m%d", (int)i),
                              .role = STR("assistant"),
                              .metadata = STR("{}"),
                              .plain = {text, ROW_BYTES}};
        assert_int_equal(message_add(t->db, thread, &row), OK);
    }
    struct message_list list = {0};
    assert_int_equal(message_tail(t->db, &t->arena, thread, 0, 9, &list), OK);
    assert_int_equal(list.count, 5);
    assert_true(list.more);
    assert_int_equal(list.messages[0].seq, 4);
}

static void places_in_time(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = five(t->db);
    static const struct {
        msec before;
        size_t older; /* messages created before it */
    } rows[] = {{0, 0},  {20, 0}, {21, 1},  {40, 1},  {41, 2},       {59, 2},
                {60, 2}, {80, 3}, {100, 4}, {101, 5}, {INT64_MAX, 5}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t place = 0;
        struct message_list list = {0};
        assert_int_equal(message_place(t->db, thread, rows[i].before, &place), OK);
        assert_true(place > 0);
        assert_int_equal(message_page(t->db, &t->arena, thread, place, 0, 9, &list), OK);
        if (list.count != rows[i].older)
            fail_msg("before %lld: %zu, expected %zu", (long long)rows[i].before, list.count,
                     rows[i].older);
    }
    int64_t place = 0;
    assert_int_equal(message_place(t->db, 99, 50, &place), OK);
    assert_int_equal(place, 1);
}

int test_messages(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DB(every_field),      WITH_DB(ids_are_unique_in_a_thread),
        WITH_DB(metadata_changes), WITH_DB(pages),
        WITH_DB(places_in_time),   WITH_DB(tails),
        WITH_DB(tail_rows),        WITH_DB(tail_bytes),
    };
    return db_fixture_group("store/messages", tests, COUNT(tests));
}
