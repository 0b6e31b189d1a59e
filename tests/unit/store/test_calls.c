/* SPDX-License-Identifier: Apache-2.0 */
#include "store/table/calls.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"

static void names(void **state)
{
    (void)state;
    static const struct {
        enum call_state state;
        const char *name;
        bool settled;
    } rows[] = {
        {CALL_PROPOSED, "proposed", false},
        {CALL_WAITING, "waiting", false},
        {CALL_APPROVED, "approved", false},
        {CALL_STARTED, "started", false},
        {CALL_DONE, "done", true},
        {CALL_FAILED, "failed", true},
        {CALL_REJECTED, "rejected", true},
        {CALL_CANCELLED, "cancelled", true},
        {CALL_UNCERTAIN, "uncertain", false},
    };
    assert_int_equal(COUNT(rows), CALL_STATE_COUNT);
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_string_equal(call_state_name(rows[i].state), rows[i].name);
        assert_int_equal(call_state_settled(rows[i].state), rows[i].settled);
    }
}

static void same(const struct call *got, const struct call *expected)
{
    assert_int_equal(got->run, expected->run);
    assert_str(got->call_id, expected->call_id);
    assert_str(got->message_id, expected->message_id);
    assert_int_equal(got->round, expected->round);
    assert_int_equal(got->n, expected->n);
    assert_int_equal(got->state, expected->state);
    assert_int_equal(got->stage, expected->stage);
    assert_int_equal(got->write, expected->write);
    assert_int_equal(got->idempotent, expected->idempotent);
    assert_int_equal(got->attempts, expected->attempts);
    assert_str(got->tool, expected->tool);
    assert_str(got->provider_id, expected->provider_id);
    assert_str(got->rule, expected->rule);
    assert_str(got->binding, expected->binding);
    assert_str(got->args, expected->args);
    assert_str(got->error, expected->error);
    assert_str(got->content, expected->content);
    assert_str(got->model_text, expected->model_text);
    assert_str(got->result_id, expected->result_id);
    assert_str(got->result, expected->result);
    assert_str(got->spool, expected->spool);
    assert_int_equal(got->result_bytes, expected->result_bytes);
    assert_int_equal(got->created, expected->created);
    assert_int_equal(got->started, expected->started);
    assert_int_equal(got->ended, expected->ended);
}

static struct call one(struct db *db, struct arena *arena, int64_t run, uint32_t round)
{
    struct call_list list = {0};
    assert_int_equal(calls_of_round(db, arena, run, round, &list), OK);
    assert_int_equal(list.count, 1);
    return list.rows[0];
}

static struct call proposed(int64_t run)
{
    return (struct call){.run = run,
                         .call_id = STR("call_1"),
                         .message_id = STR("m1"),
                         .round = 1,
                         .stage = 1,
                         .write = true,
                         .tool = STR("calendar_write"),
                         .provider_id = STR("toolu_1"),
                         .args = STR("{\"title\":\"评审会\"}"),
                         .created = 10};
}

/* A call from its proposal to its place in history. */
static void life(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "ann", "t", "x", 1);
    int64_t run = run_made(t->db, thread, "r", RUN_RUNNING);
    struct call call = proposed(run), found = {0};
    assert_int_equal(call_update(t->db, &call), ERR_NOT_FOUND);
    assert_int_equal(call_add(t->db, &call), OK);
    assert_int_equal(call_add(t->db, &call), ERR_BUSY);
    found = one(t->db, &t->arena, run, 1);
    same(&found, &call);

    call.state = CALL_WAITING;
    call.rule = STR("write");
    call.binding = STR("k1:a");
    assert_int_equal(call_update(t->db, &call), OK);
    call.args = STR("{\"title\":\"edited\"}");
    call.binding = STR("k1:b");
    call.state = CALL_STARTED;
    call.attempts = 1;
    call.started = 20;
    assert_int_equal(call_update(t->db, &call), OK);
    found = one(t->db, &t->arena, run, 1);
    same(&found, &call);

    call.state = CALL_DONE;
    call.error = STR("late");
    call.content = STR("已创建");
    call.model_text = STR("created");
    call.result = STR("{\"id\":7}");
    call.result_bytes = 8;
    call.idempotent = true;
    call.write = false;
    call.stage = 2;
    call.ended = 30;
    call.message_id = STR("m2");
    call.provider_id = STR("toolu_2");
    call.tool = STR("calendar_read");
    assert_int_equal(call_update(t->db, &call), OK);
    found = one(t->db, &t->arena, run, 1);
    same(&found, &call);

    /* Shown: the result stays, and is not read with the rest any more. */
    struct call shown = call;
    shown.result_id = STR("t_1");
    shown.result = STR_EMPTY;
    assert_int_equal(call_update(t->db, &shown), OK);
    found = one(t->db, &t->arena, run, 1);
    same(&found, &shown);
    assert_int_equal(call_result(t->db, &t->arena, thread, STR("t_1"), &found), OK);
    assert_str(found.result, STR("{\"id\":7}"));
    assert_str(found.call_id, STR("call_1"));
    assert_str(found.tool, STR("calendar_read"));
    assert_int_equal(found.run, run);
    assert_int_equal(found.result_bytes, 8);

    static const struct {
        uint32_t round, n;
        str call_id;
    } others[] = {
        {2, 0, STR("call_1")}, {1, 1, STR("call_1")}, {1, 0, STR("call_2")}, {1, 0, STR("")}};
    for (size_t i = 0; i < COUNT(others); i++) {
        struct call other = call;
        other.round = others[i].round;
        other.n = others[i].n;
        other.call_id = others[i].call_id;
        other.tool = STR("nobody");
        assert_int_equal(call_update(t->db, &other), ERR_NOT_FOUND);
    }
    found = one(t->db, &t->arena, run, 1);
    same(&found, &shown);
}

static struct call call_made(struct db *db, int64_t run, uint32_t round, uint32_t n,
                             const char *call_id, enum call_state state)
{
    struct call call = {.run = run,
                        .round = round,
                        .n = n,
                        .call_id = str_c(call_id),
                        .tool = STR("tool"),
                        .model_text = str_c(call_id),
                        .args = STR("{}"),
                        .state = state};
    assert_int_equal(call_add(db, &call), OK);
    return call;
}

/* Ids are one letter each here. */
static void assert_ids(const struct call_list *list, const char *expected)
{
    char got[16] = "";
    assert_true(list->count < sizeof got);
    for (size_t i = 0; i < list->count; i++) got[i] = list->rows[i].call_id.p[0];
    assert_string_equal(got, expected);
}

static void rounds(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "ann", "t", "x", 1);
    int64_t run = run_made(t->db, thread, "r", RUN_RUNNING);
    int64_t other = run_made(t->db, thread, "r2", RUN_QUEUED);
    static const struct {
        bool other;
        uint32_t round, n;
        const char *id;
    } rows[] = {{false, 2, 1, "d"}, {false, 1, 2, "c"}, {true, 1, 0, "x"},
                {false, 1, 0, "a"}, {false, 2, 0, "e"}, {false, 1, 1, "b"}};
    for (size_t i = 0; i < COUNT(rows); i++)
        call_made(t->db, rows[i].other ? other : run, rows[i].round, rows[i].n, rows[i].id,
                  CALL_PROPOSED);
    const struct {
        int64_t run;
        uint32_t round;
        const char *expected;
    } asked[] = {{run, 1, "abc"}, {run, 2, "ed"}, {run, 3, ""}, {other, 1, "x"}, {99, 1, ""}};
    for (size_t i = 0; i < COUNT(asked); i++) {
        struct call_list list = {0};
        assert_int_equal(calls_of_round(t->db, &t->arena, asked[i].run, asked[i].round, &list), OK);
        assert_ids(&list, asked[i].expected);
    }
}

/* The same id may come again in a later turn, whoever makes ids. */
static void same_id_again(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "ann", "t", "x", 1);
    int64_t run = run_made(t->db, thread, "r", RUN_RUNNING);
    struct call first = call_made(t->db, run, 1, 0, "a", CALL_DONE);
    struct call again = call_made(t->db, run, 2, 0, "a", CALL_PROPOSED);
    again.state = CALL_STARTED;
    again.tool = STR("other");
    assert_int_equal(call_update(t->db, &again), OK);
    struct call found = one(t->db, &t->arena, run, 1);
    same(&found, &first);
    found = one(t->db, &t->arena, run, 2);
    same(&found, &again);
}

static void seen(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "ann", "t", "x", 1);
    int64_t run = run_made(t->db, thread, "r", RUN_RUNNING);
    int64_t other = run_made(t->db, thread, "r2", RUN_QUEUED);
    static const struct {
        uint32_t round, n;
        const char *id;
        enum call_state state;
    } rows[] = {
        {2, 0, "e", CALL_CANCELLED}, {1, 3, "d", CALL_REJECTED}, {1, 0, "a", CALL_DONE},
        {1, 1, "b", CALL_STARTED},   {1, 2, "c", CALL_FAILED},   {2, 1, "f", CALL_PROPOSED},
        {2, 2, "g", CALL_WAITING},   {2, 3, "h", CALL_APPROVED}, {2, 4, "i", CALL_UNCERTAIN},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        call_made(t->db, run, rows[i].round, rows[i].n, rows[i].id, rows[i].state);
    call_made(t->db, other, 1, 0, "x", CALL_DONE);
    struct call_list list = {0};
    assert_int_equal(calls_seen(t->db, &t->arena, run, &list), OK);
    assert_ids(&list, "acde");
    for (size_t i = 0; i < list.count; i++) {
        assert_str(list.rows[i].model_text, list.rows[i].call_id);
        assert_str(list.rows[i].tool, STR("tool"));
    }

    /* One whose end nobody knows, in history all the same. */
    struct call known = call_made(t->db, run, 3, 0, "z", CALL_UNCERTAIN);
    known.result_id = STR("t_z");
    assert_int_equal(call_update(t->db, &known), OK);
    assert_int_equal(calls_seen(t->db, &t->arena, run, &list), OK);
    assert_ids(&list, "acdez");
}

static void unshown(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "ann", "t", "x", 1);
    int64_t run = run_made(t->db, thread, "r", RUN_RUNNING);
    int64_t other = run_made(t->db, thread, "r2", RUN_QUEUED);
    struct call shown = call_made(t->db, run, 1, 0, "a", CALL_DONE);
    call_made(t->db, run, 2, 1, "c", CALL_DONE);
    call_made(t->db, run, 1, 1, "b", CALL_STARTED);
    call_made(t->db, other, 1, 0, "x", CALL_STARTED);
    shown.result_id = STR("t_a");
    assert_int_equal(call_update(t->db, &shown), OK);
    struct call_list list = {0};
    assert_int_equal(calls_unshown(t->db, &t->arena, run, &list), OK);
    assert_ids(&list, "bc");
    assert_int_equal(calls_unshown(t->db, &t->arena, 99, &list), OK);
    assert_ids(&list, "");
}

static void seen_is_bounded(void **state)
{
    struct db_fixture *t = *state;
    enum { BYTES = 1024 * 1024, ROWS = CALLS_SEEN_BYTES_MAX / BYTES + 2 };
    int64_t thread = thread_made(t->db, "ann", "t", "x", 1);
    int64_t run = run_made(t->db, thread, "r", RUN_RUNNING);
    char *text = test_malloc(BYTES);
    memset(text, 'x', BYTES);
    for (uint32_t i = 0; i < ROWS; i++) {
        char id[] = {(char)('a' + i), 0};
        struct call call = {.run = run,
                            .round = i + 1,
                            .call_id = str_c(id),
                            .state = CALL_DONE,
                            .model_text = {text, BYTES}};
        assert_int_equal(call_add(t->db, &call), OK);
    }
    test_free(text);
    struct call_list list = {0};
    assert_int_equal(calls_seen(t->db, &t->arena, run, &list), OK);
    assert_true(list.count > 1 && list.count < ROWS);
    assert_int_equal(list.rows[list.count - 1].call_id.p[0], 'a' + ROWS - 1); /* the newest */
    for (size_t i = 1; i < list.count; i++)
        assert_int_equal(list.rows[i].call_id.p[0], list.rows[i - 1].call_id.p[0] + 1);
}

static void results(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "ann", "t", "x", 1);
    int64_t other = thread_made(t->db, "bob", "t", "x", 1);
    int64_t run = run_made(t->db, thread, "r", RUN_RUNNING);
    int64_t his = run_made(t->db, other, "r", RUN_RUNNING);
    struct call inside = call_made(t->db, run, 1, 0, "a", CALL_DONE);
    struct call spooled = call_made(t->db, run, 1, 1, "b", CALL_DONE);
    struct call same_id = call_made(t->db, his, 1, 0, "c", CALL_DONE);
    call_made(t->db, run, 1, 2, "d", CALL_STARTED); /* has no row in history */
    inside.result_id = same_id.result_id = STR("t_1");
    inside.result = STR("\"hers\"");
    same_id.result = STR("\"his\"");
    spooled.result_id = STR("t_2");
    spooled.spool = STR("b.json");
    spooled.result_bytes = 5000000000;
    assert_int_equal(call_update(t->db, &inside), OK);
    assert_int_equal(call_update(t->db, &spooled), OK);
    assert_int_equal(call_update(t->db, &same_id), OK);
    const struct {
        int64_t thread;
        str id;
        enum err expected;
        str result, spool;
    } rows[] = {
        {thread, STR("t_1"), OK, STR("\"hers\""), STR("")},
        {other, STR("t_1"), OK, STR("\"his\""), STR("")},
        {thread, STR("t_2"), OK, STR(""), STR("b.json")},
        {other, STR("t_2"), ERR_NOT_FOUND, STR(""), STR("")},
        {thread, STR("t_3"), ERR_NOT_FOUND, STR(""), STR("")},
        {thread, STR(""), ERR_NOT_FOUND, STR(""), STR("")},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct call call = {.round = 42};
        assert_int_equal(call_result(t->db, &t->arena, rows[i].thread, rows[i].id, &call),
                         rows[i].expected);
        if (rows[i].expected) assert_int_equal(call.round, 42);
        if (rows[i].expected) continue;
        assert_str(call.result, rows[i].result);
        assert_str(call.spool, rows[i].spool);
        if (rows[i].spool.len) assert_int_equal(call.result_bytes, 5000000000);
    }
    struct call taken = spooled; /* one row of history belongs to one call */
    taken.result_id = STR("t_1");
    assert_int_equal(call_update(t->db, &taken), ERR_BUSY);
}

static void under_way(void **state)
{
    struct db_fixture *t = *state;
    static const struct {
        enum run_status run;
        enum call_state call;
        bool expected;
    } rows[] = {
        {RUN_RUNNING, CALL_STARTED, true},    {RUN_WAITING, CALL_STARTED, true},
        {RUN_CANCELLING, CALL_STARTED, true}, {RUN_FAILED, CALL_STARTED, false},
        {RUN_COMPLETED, CALL_STARTED, false}, {RUN_RUNNING, CALL_DONE, false},
        {RUN_RUNNING, CALL_APPROVED, false},  {RUN_WAITING, CALL_UNCERTAIN, false},
        {RUN_RUNNING, CALL_FAILED, false},    {RUN_WAITING, CALL_WAITING, false},
    };
    bool started = true;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char name[] = {(char)('a' + i), 0};
        int64_t thread = thread_made(t->db, "ann", name, "x", 1);
        assert_int_equal(calls_started(t->db, thread, &started), OK);
        assert_false(started);
        int64_t run = run_made(t->db, thread, "r", rows[i].run);
        call_made(t->db, run, 1, 0, "done", CALL_DONE);
        call_made(t->db, run, 1, 1, "call", rows[i].call);
        assert_int_equal(calls_started(t->db, thread, &started), OK);
        assert_int_equal(started, rows[i].expected);
        started = true;
    }
}

static void deletion(void **state)
{
    struct db_fixture *t = *state;
    int64_t threads[2], count = -1;
    for (size_t i = 0; i < COUNT(threads); i++) {
        threads[i] = thread_made(t->db, i ? "bob" : "ann", "t", "x", 1);
        int64_t run = run_made(t->db, threads[i], "r", RUN_RUNNING);
        for (uint32_t k = 0; k < 3; k++) {
            struct call call = {.run = run, .round = 1, .n = k, .call_id = STR("c")};
            if (k != 1) call.spool = k ? STR("two") : STR("none");
            assert_int_equal(call_add(t->db, &call), OK);
        }
    }
    str *names = NULL;
    size_t name_count = 0;
    assert_int_equal(calls_spools(t->db, &t->arena, threads[0], &names, &name_count), OK);
    assert_int_equal(name_count, 2);
    assert_str(names[0], STR("none"));
    assert_str(names[1], STR("two"));
    assert_int_equal(thread_delete(t->db, threads[0]), OK);
    assert_int_equal(db_number(db_prepare(t->db, "SELECT count(*) FROM tool_calls"), &count), OK);
    assert_int_equal(count, 3);
    assert_int_equal(calls_spools(t->db, &t->arena, threads[0], &names, &name_count), OK);
    assert_int_equal(name_count, 0);
    assert_int_equal(calls_spools(t->db, &t->arena, threads[1], &names, &name_count), OK);
    assert_int_equal(name_count, 2);
}

/* By its name alone, so that a start with many files asks as many short questions: the index over
 * threads is not looked at. */
static void spooled_by_name(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "ann", "t", "x", 1);
    int64_t run = run_made(t->db, thread, "r", RUN_RUNNING);
    struct call call = {.run = run, .round = 1, .call_id = STR("c"), .spool = STR("one")};
    struct call none = {.run = run, .round = 2, .call_id = STR("d")};
    assert_int_equal(call_add(t->db, &call), OK);
    assert_int_equal(call_add(t->db, &none), OK);
    assert_int_equal(by_hand(t->db, "DROP INDEX tool_calls_spooled"), OK);
    static const struct {
        const char *name;
        bool needed;
    } rows[] = {{"one", true}, {"two", false}, {"", false}, {"on", false}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        bool needed = !rows[i].needed;
        assert_int_equal(calls_spooled(t->db, str_c(rows[i].name), &needed), OK);
        assert_int_equal(needed, rows[i].needed);
    }
}

static void unknown_state_is_damage(void **state)
{
    struct db_fixture *t = *state;
    static const char *const damages[] = {"UPDATE tool_calls SET state=9",
                                          "UPDATE tool_calls SET state=-1"};
    int64_t thread = thread_made(t->db, "ann", "t", "x", 1);
    int64_t run = run_made(t->db, thread, "r", RUN_RUNNING);
    call_made(t->db, run, 1, 0, "a", CALL_DONE);
    for (size_t i = 0; i < COUNT(damages); i++) {
        struct call_list list = {.count = 42};
        assert_int_equal(by_hand(t->db, damages[i]), OK);
        assert_int_equal(calls_of_round(t->db, &t->arena, run, 1, &list), ERR_DAMAGED);
        assert_int_equal(calls_unshown(t->db, &t->arena, run, &list), ERR_DAMAGED);
        assert_int_equal(list.count, 42);
    }
}

/* The newest runs of the thread, and no other thread. */
static void late(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "ann", "t", "x", 1);
    int64_t other = thread_made(t->db, "ann", "u", "x", 1);
    struct call_list list = {.count = 42};
    assert_int_equal(calls_late(t->db, &t->arena, thread, &list), OK);
    assert_int_equal(list.count, 0);
    for (int i = 0; i <= CALLS_LATE_RUNS; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%d", i);
        int64_t run = run_made(t->db, thread, name, RUN_COMPLETED);
        snprintf(name, sizeof name, "a%d", i);
        call_made(t->db, run, 1, 0, name, CALL_DONE);
        snprintf(name, sizeof name, "b%d", i);
        call_made(t->db, run, 1, 1, name, CALL_WAITING);
    }
    call_made(t->db, run_made(t->db, other, "r", RUN_RUNNING), 1, 0, "elsewhere", CALL_DONE);
    assert_int_equal(calls_late(t->db, &t->arena, thread, &list), OK);
    assert_int_equal(list.count, 2 * CALLS_LATE_RUNS);
    assert_str(list.rows[0].call_id, STR("b16"));
    assert_int_equal(list.rows[0].state, CALL_WAITING);
    assert_str(list.rows[1].call_id, STR("a16"));
    assert_int_equal(list.rows[1].state, CALL_DONE);
    assert_str(list.rows[list.count - 1].call_id, STR("a1"));
    assert_int_equal(by_hand(t->db, "UPDATE tool_calls SET state=99"), OK);
    assert_int_equal(calls_late(t->db, &t->arena, thread, &list), ERR_DAMAGED);
}

static void late_is_bounded(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "ann", "t", "x", 1);
    int64_t run = run_made(t->db, thread, "r", RUN_RUNNING);
    struct call_list list;
    for (uint32_t i = 0; i <= CALLS_LATE_MAX; i++) call_made(t->db, run, 1, i, "c", CALL_DONE);
    assert_int_equal(calls_late(t->db, &t->arena, thread, &list), OK);
    assert_int_equal(list.count, CALLS_LATE_MAX);
}

int test_calls(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names), WITH_DB(life),
        WITH_DB(rounds),         WITH_DB(same_id_again),
        WITH_DB(seen),           WITH_DB(seen_is_bounded),
        WITH_DB(late),           WITH_DB(late_is_bounded),
        WITH_DB(results),        WITH_DB(under_way),
        WITH_DB(deletion),       WITH_DB(unknown_state_is_damage),
        WITH_DB(unshown),        WITH_DB(spooled_by_name),
    };
    return db_fixture_group("store/calls", tests, COUNT(tests));
}
