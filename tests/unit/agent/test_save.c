/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the graph and the rows, on a real database: what a run waits for, and how it is settled from
 * outside the shell.
 */
#include "agent/shell/save.h"

#include <string.h>

#include "agent/shell/begin.h"
#include "check.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"

#define PAINT "[{\"name\":\"paint\",\"description\":\"d\"}]"
#define TOLD  "[{\"description\":\"page\",\"value\":\"cart\"}]"

enum { NOW = 1000 };

static const struct tools no_tools;
static const struct saver saver = {.epoch = 1, .tools = &no_tools};
static const struct agent agent = {.name = STR("assistant"), .ask_user = true};

/* A run of alice's thread t that has just begun, with a tool of its client's. */
static int64_t begin(struct db_fixture *t)
{
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    struct run run = {.thread = thread,
                      .run_id = STR("r1"),
                      .agent = agent.name,
                      .model = STR("demo"),
                      .task_id = STR("task_1"),
                      .status = RUN_RUNNING,
                      .tools = STR(PAINT),
                      .context = STR(TOLD)};
    struct begun begun;
    const struct begin now = {
        .locale = STR("en"), .epoch = 1, .owner = STR("alice"), .thread_id = STR("t"), .now = NOW};
    assert_int_equal(run_add(t->db, &run), OK);
    assert_int_equal(run_begin(t->db, &t->arena, &now, &run, NULL, 0, &begun), OK);
    return thread;
}

static struct run current(struct db_fixture *t, int64_t thread)
{
    struct run run;
    assert_int_equal(run_current(t->db, &t->arena, thread, &run), OK);
    return run;
}

static struct view load(struct db_fixture *t, int64_t thread, int64_t *ret_version)
{
    struct run run = current(t, thread);
    struct view view;
    struct fault why = {0};
    if (view_load(t->db, &t->arena, &run, STR("alice"), &view, ret_version, &why))
        fail_msg("%s", why.text);
    return view;
}

/* The model calls these, one after the other named call_1, call_2, ... */
static void turn(struct db_fixture *t, int64_t thread, const char *const *tools, size_t count)
{
    int64_t version;
    struct run run = current(t, thread);
    struct view view = load(t, thread, &version);
    struct turn_call *calls = arena_array(&t->arena, count, sizeof *calls);
    for (size_t i = 0; i < count; i++)
        calls[i] = (struct turn_call){.call_id = arena_printf(&t->arena, "call_%zu", i + 1),
                                      .name = str_c(tools[i]),
                                      .args = STR("{\"question\":\"q\"}")};
    struct input input = {.kind = INPUT_TURN,
                          .now = NOW,
                          .agent = &agent,
                          .binder = &saver.binder,
                          .tools = saver.tools,
                          .turn = {.calls = calls, .call_count = count}};
    struct outcome o;
    graph_step(&t->arena, &view, &input, &o);
    assert_int_equal(outcome_save(t->db, &t->arena, &saver, &run, version, &o, NOW), OK);
}

static void expect_pending(struct db_fixture *t, int64_t thread, const char *ids)
{
    struct call_list calls = {.count = 99};
    struct buf got;
    buf_init(&got, 1024);
    assert_int_equal(front_pending(t->db, &t->arena, thread, &calls), OK);
    for (size_t i = 0; i < calls.count; i++)
        buf_printf(&got, "%s%.*s", i ? " " : "", STR_ARG(calls.rows[i].call_id));
    assert_str(buf_str(&got), str_c(ids));
    buf_done(&got);
}

static struct stepped resolve(struct db_fixture *t, struct resolve resolve)
{
    struct stepped stepped;
    resolve.now = NOW + 1;
    resolve.random[0] = 7;
    assert_int_equal(run_resolve(t->db, &t->arena, &saver, &resolve, &stepped), OK);
    assert_false(stepped.damaged);
    return stepped;
}

static void expect_wire_id(struct db_fixture *t, int64_t thread, uint32_t leg, const char *id)
{
    str got;
    struct run run = current(t, thread);
    assert_int_equal(leg_wire_id(t->db, &t->arena, &run, leg, &got), OK);
    assert_str(got, str_c(id));
}

/* ---- tests ---- */

static void a_run_knows_its_client(void **state)
{
    struct db_fixture *t = *state;
    int64_t version, thread = begin(t);
    struct view view = load(t, thread, &version);
    assert_int_equal(view.front.count, 1);
    assert_str(view.front.rows[0].name, STR("paint"));
    assert_str(view.context, STR(TOLD));
    expect_wire_id(t, thread, 1, "r1");
    expect_pending(t, thread, "");

    struct run run = current(t, thread);
    assert_int_equal(run_set_input(t->db, &run, &(struct leg_input){0}), OK);
    view = load(t, thread, &version);
    assert_int_equal(view.front.count + view.context.len, 0);
}

static void calls_wait_for_the_client(void **state)
{
    struct db_fixture *t = *state;
    int64_t version, thread = begin(t), idle = thread_made(t->db, "alice", "idle", "x", 1);
    turn(t, thread, (const char *const[]){"paint", "ask_user", "paint", "nobody"}, 4);
    expect_pending(t, thread, "call_1 call_3");
    expect_pending(t, idle, "");
    assert_int_equal(current(t, thread).status, RUN_WAITING);

    struct front_result first = {
        .call_id = STR("call_3"), .message_id = STR("client-3"), .text = STR("blue")};
#define DRAW "[{\"name\":\"draw\",\"description\":\"\"}]"
    struct leg_input other = {.input = STR("{\"state\":1,\"tools\":" DRAW "}"), .tools = STR(DRAW)};
    struct stepped stepped = resolve(t, (struct resolve){.thread = thread,
                                                         .fronts = &first,
                                                         .front_count = 1,
                                                         .wire_run_id = STR("r2"),
                                                         .input = &other});
    assert_false(stepped.wake);
    assert_string_equal(stepped.facts[stepped.fact_count - 1].type, "run.finished");
    expect_pending(t, thread, "call_1");
    expect_wire_id(t, thread, 2, "r2");
    struct message row;
    assert_int_equal(message_find(t->db, &t->arena, thread, STR("client-3"), &row), OK);
    assert_str(row.plain, STR("blue"));
    struct view view = load(t, thread, &version);
    assert_str(view.front.rows[0].name, STR("draw"));
    assert_str(view.context, STR(TOLD)); /* nothing was said of it */
    assert_int_equal(view.open.count, 1);
    struct run run = current(t, thread);
    str kept;
    assert_int_equal(run_input(t->db, &t->arena, run.id, &kept), OK);
    assert_true(str_starts(kept, STR("{\"state\":1,\"tools\":" DRAW)));
    assert_int_equal(run.input_bytes, kept.len + other.tools.len + strlen(TOLD));

    struct front_result second = {
        .call_id = STR("call_1"), .text = STR("not answered"), .failed = true};
    struct resolution answer = {
        .interaction_id = view.open.rows[0].id, .decision = DECISION_ANSWER, .text = STR("a")};
    stepped = resolve(t, (struct resolve){.thread = thread,
                                          .resolutions = &answer,
                                          .resolution_count = 1,
                                          .fronts = &second,
                                          .front_count = 1});
    assert_true(stepped.wake);
    expect_pending(t, thread, "");
    expect_wire_id(t, thread, 3, "r1-3");
    assert_int_equal(current(t, thread).status, RUN_RUNNING);
    view = load(t, thread, &version);
    assert_str(view.front.rows[0].name, STR("draw")); /* as it was */
    assert_int_equal(graph_effect(&view), EFFECT_MODEL);
    assert_str(view.calls.rows[0].error, STR("not answered"));
}

/* In a run that is being cancelled nobody is waited for. */
static void cancelled(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = begin(t);
    turn(t, thread, (const char *const[]){"paint"}, 1);
    struct run run = current(t, thread);
    const unsigned char random[ID_RANDOM_BYTES] = {1};
    struct stepped stepped;
    run.status = RUN_CANCELLING;
    assert_int_equal(run_update(t->db, &run), OK);
    expect_pending(t, thread, "");
    run.status = RUN_WAITING;
    assert_int_equal(run_update(t->db, &run), OK);
    assert_int_equal(run_cancel(t->db, &t->arena, &saver, thread, &run, NOW, random, &stepped), OK);
    assert_true(stepped.wake);
    assert_int_equal(run_current(t->db, &t->arena, thread, &run), ERR_NOT_FOUND);
    expect_pending(t, thread, "");
}

/* Tools that cannot be read back fail their own run, visibly, and its calls get their end. */
static void damaged_tools(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = begin(t);
    turn(t, thread, (const char *const[]){"paint"}, 1);
    assert_int_equal(by_hand(t->db, "UPDATE runs SET tools='{'"), OK);
    struct front_result front = {.call_id = STR("call_1"), .text = STR("red")};
    struct resolve resolve = {
        .thread = thread, .fronts = &front, .front_count = 1, .now = NOW, .random = {7}};
    struct stepped stepped;
    assert_int_equal(run_resolve(t->db, &t->arena, &saver, &resolve, &stepped), OK);
    assert_true(stepped.damaged);
    const struct fact *last = &stepped.facts[stepped.fact_count - 1];
    assert_string_equal(last->type, "run.error");
    assert_true(str_find(last->data, STR("the stored calls or tools are damaged")) >= 0);
    assert_string_equal(stepped.facts[0].type, "tool.call.result");
}

/* The shell and a person may both find it damaged: it fails once. */
static void damaged_twice(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = begin(t);
    struct run run = current(t, thread), again = run;
    const unsigned char random[ID_RANDOM_BYTES] = {1};
    struct stepped stepped;
    assert_int_equal(run_damaged(t->db, &t->arena, &saver, &run, "x", NOW, random, &stepped), OK);
    assert_int_equal(run.status, RUN_FAILED);
    assert_int_equal(run_damaged(t->db, &t->arena, &saver, &again, "x", NOW, random, &stepped),
                     ERR_BUSY);
}

int test_save(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DB(a_run_knows_its_client),
        WITH_DB(calls_wait_for_the_client),
        WITH_DB(cancelled),
        WITH_DB(damaged_tools),
        WITH_DB(damaged_twice),
    };
    return db_fixture_group("agent/save", tests, COUNT(tests));
}
