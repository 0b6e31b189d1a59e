/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph and its client: calls of front-end tools, their results, and a run that nobody reads.
 */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "graph_kit.h"

#define SHADE  "{\"shade\":\"red\"}"
#define ASK    "{\"question\":\"q\"}"
#define PAUSED "step.finish step.start run.finished"
#define TURN   "text.message.end tool.call "

/* A client that has two tools of its own, and two that it may not have. */
static void desk_open(struct desk *desk)
{
    static struct front_tool rows[] = {
        {.name = STR("paint")},
        {.name = STR("locate")},
        {.name = STR("calendar_read")}, /* names of the server's tools stay the server's */
        {.name = STR("launch")},
    };
    desk_init(desk);
    desk->view.front = (struct front_tools){rows, COUNT(rows)};
}

static const struct outcome *results(struct desk *desk, const struct front_result *rows,
                                     size_t count)
{
    return desk_step(desk,
                     (struct input){.kind = INPUT_RESOLVE, .fronts = rows, .front_count = count});
}

static const struct outcome *result(struct desk *desk, struct front_result row)
{
    struct front_result *copy = ARENA_NEW(&desk->arena, struct front_result);
    *copy = row;
    return results(desk, copy, 1);
}

static const struct outcome *result_of(struct desk *desk, const char *call_id, const char *text)
{
    return result(desk, (struct front_result){.call_id = str_c(call_id), .text = str_c(text)});
}

static const struct part no_parts[PARTS_MAX];

/* ---- a call waits ---- */

static void one_call(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_open(&desk);
    const struct outcome *o = desk_call(&desk, "paint", SHADE);
    expect(&desk, "paint", TURN PAUSED,
           (struct part[PARTS_MAX]){{"tool.call", "\"args\":" SHADE},
                                    {"tool.call", "\"stage\":\"execution\""},
                                    {"step.start", "\"execution\""},
                                    {"run.finished", "{\"outcome\":\"interrupted\","
                                                     "\"pendingToolCallIds\":[\"call_1\"],"
                                                     "\"usage\""}});
    assert_int_equal(o->status, RUN_WAITING);
    assert_int_equal(o->opened_count, 0);
    assert_false(o->ended);
    expect_call(&desk, "paint", "call_1", CALL_WAITING, "");
    assert_int_equal(desk_row(&desk, "call_1")->attempts, 0);
    assert_int_equal(desk.view.state.phase, PHASE_INTERRUPTED);
    assert_int_equal(desk.view.state.call_ids.count, 1);
    assert_int_equal(graph_effect(&desk.view), EFFECT_NONE);

    result_of(&desk, "call_1", "done");
    expect(
        &desk, "its result", "run.started tool.call.result",
        (struct part[PARTS_MAX]){{"run.started", "\"leg\":2,\"resumed\":true"},
                                 {"tool.call.result", "\"toolName\":\"paint\""},
                                 {"tool.call.result", "\"result\":\"done\",\"content\":\"done\""}});
    expect_call(&desk, "its result", "call_1", CALL_DONE, "");
    assert_str(desk_row(&desk, "call_1")->model_text, STR("done"));
    assert_int_equal(desk.view.state.phase, PHASE_EXECUTING);
    assert_int_equal(graph_effect(&desk.view), EFFECT_MODEL);
}

/* What becomes of a call by its name and arguments. */
static void which_calls(void **state)
{
    (void)state;
    static const struct {
        const char *tool, *args;
        enum call_state state;
        const char *error;
    } rows[] = {
        {"paint", SHADE, CALL_WAITING, ""},
        {"paint", "", CALL_WAITING, ""},
        {"locate", "{\"anything\":[1,{}]}", CALL_WAITING, ""},
        {"paint", "[]", CALL_FAILED, "invalid_arguments"},
        {"paint", "{", CALL_FAILED, "invalid_arguments"},
        {"calendar_read", "{}", CALL_STARTED, ""},
        {"launch", TITLE, CALL_FAILED, "policy_denied"},
        {"nobody", "{}", CALL_FAILED, "tool_unavailable"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(desk_done) struct desk desk;
        desk_open(&desk);
        desk.agent.plan = i == 1 ? PLAN_ALWAYS : PLAN_AUTO; /* nobody's plan comes before it */
        desk_call(&desk, rows[i].tool, rows[i].args);
        expect_call(&desk, rows[i].tool, "call_1", rows[i].state, rows[i].error);
    }
}

/* A tool that the server has, and this agent does not, is nobody's. */
static void tools_of_others(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_open(&desk);
    desk.agent.tool_count = 3; /* launch is not its */
    desk_call(&desk, "launch", TITLE);
    expect_call(&desk, "launch", "call_1", CALL_FAILED, "tool_unavailable");
}

/* ---- results ---- */

static void which_results(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool failed;
        const char *parts[3];
        const char *model_text;
    } rows[] = {
        {"red", false, {"\"result\":\"red\",", "\"content\":\"red\""}, "red"},
        {"",
         false,
         {"\"result\":\"\"", "\"content\":\"paint completed\""},
         "(nothing was returned)"},
        {" {\"id\":7,\n\"b\":[]} ",
         false,
         {"\"result\":{\"id\":7, \"b\":[]}", "\"content\":\"id: 7\""},
         " {\"id\":7,\n\"b\":[]} "},
        {"42", false, {"\"result\":42,", "\"content\":\"42\""}, "42"},
        {"\"a\\nb\"", false, {"\"result\":\"a\\nb\"", "\"content\":\"a b\""}, "\"a\\nb\""},
        {"{", false, {"\"result\":\"{\"", ""}, "{"},
        {"no canvas",
         true,
         {"\"error\":\"no canvas\"", "\"content\":\"paint failed: no canvas\""},
         "Error: no canvas"},
        {"", true, {"\"error\":\"failed\"", "\"content\":\"paint failed\""}, "Error: failed"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(desk_done) struct desk desk;
        desk_open(&desk);
        desk_call(&desk, "paint", SHADE);
        const struct outcome *o = result(&desk, (struct front_result){.call_id = STR("call_1"),
                                                                      .text = str_c(rows[i].text),
                                                                      .failed = rows[i].failed});
        struct part parts[PARTS_MAX] = {{"tool.call.result", rows[i].parts[0]},
                                        {"tool.call.result", rows[i].parts[1]}};
        expect(&desk, rows[i].text, "run.started tool.call.result", parts);
        enum call_state ended = rows[i].failed ? CALL_FAILED : CALL_DONE;
        assert_int_equal(desk_row(&desk, "call_1")->state, ended);
        assert_str(desk_row(&desk, "call_1")->model_text, str_c(rows[i].model_text));
        assert_int_equal(o->blob_count, 0);
        assert_int_equal(o->message_count, 1);
        assert_str(o->messages[0].id, desk_row(&desk, "call_1")->result_id);
    }
}

/* The row has the id of the client's message, and two rows never have the same. */
static void row_ids(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_open(&desk);
    desk_turn(&desk, "", (struct said[]){{"paint", SHADE}, {"locate", "{}"}, {"paint", "{}"}}, 3);
    const struct outcome *o =
        results(&desk,
                (struct front_result[]){
                    {.call_id = STR("call_2"), .message_id = STR("c-2"), .text = STR("2")},
                    {.call_id = STR("call_1"), .message_id = STR("c-1"), .text = STR("1")},
                    {.call_id = STR("call_3"), .message_id = STR("c-1"), .text = STR("3")}},
                3);
    assert_int_equal(o->message_count, 3);
    assert_str(o->messages[0].id, STR("c-1")); /* in the order of the calls */
    assert_str(o->messages[1].id, STR("c-2"));
    assert_true(str_starts(o->messages[2].id, STR("msg_")));
    assert_true(str_find(desk_fact(&desk, "tool.call.result", 1), STR("\"messageId\":\"c-2\"")) >=
                0);
}

static void long_results(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_open(&desk);
    enum { BYTES = 2 * CALL_INLINE_BYTES_MAX };
    char *text = arena_alloc(&desk.arena, BYTES);
    memset(text, 'x', BYTES);
    desk_call(&desk, "paint", SHADE);
    result(&desk, (struct front_result){.call_id = STR("call_1"), .text = {text, BYTES}});
    const struct call *call = desk_row(&desk, "call_1");
    assert_true(call->result.len <= CALL_INLINE_BYTES_MAX + 2);
    assert_true(call->model_text.len <= CALL_MODEL_BYTES_MAX);
    assert_true(call->content.len <= 4 * SUMMARY_CHARS_MAX);
    assert_true(str_find(desk_fact(&desk, "tool.call.result", 0), STR("\"result\":{\"ref\":")) >=
                0);

    desk_call(&desk, "paint", SHADE);
    result(&desk,
           (struct front_result){.call_id = STR("call_1"), .text = {text, BYTES}, .failed = true});
    call = desk_row(&desk, "call_1");
    assert_true(call->error.len <= TOOL_ERROR_BYTES_MAX);
    assert_true(call->model_text.len <= CALL_MODEL_BYTES_MAX);
}

/* A result that nobody waits for changes nothing: no leg, no fact, no row. */
static void results_of_nothing(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_open(&desk);
    desk_turn(&desk, "",
              (struct said[]){{"paint", SHADE}, {"ask_user", ASK}, {"calendar_write", TITLE}}, 3);
    static const char *const ids[] = {"call_9", "call_2", "call_3", ""};
    for (size_t i = 0; i < COUNT(ids); i++) {
        const struct outcome *o = result_of(&desk, ids[i], "forged");
        assert_int_equal(o->fact_count + o->call_count, 0);
        assert_int_equal(o->status, RUN_WAITING);
        assert_false(o->leg_begins);
    }
    result_of(&desk, "call_1", "once");
    const struct outcome *o = result_of(&desk, "call_1", "twice");
    assert_int_equal(o->fact_count, 0);
    assert_str(desk_row(&desk, "call_1")->model_text, STR("once"));
}

/* ---- a turn of several kinds ---- */

/* Server tools run, questions open, front-end calls wait; whatever comes first, the run goes on when
 * nothing of it is left. */
static void mixed(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_open(&desk);
    desk_turn(&desk, "",
              (struct said[]){
                  {"paint", SHADE}, {"calendar_read", "{}"}, {"ask_user", ASK}, {"locate", "{}"}},
              4);
    expect(
        &desk, "mixed",
        "text.message.end tool.call tool.call tool.call tool.call interaction.request step.finish "
        "step.start",
        no_parts);
    assert_int_equal(desk.last.status, RUN_RUNNING);

    result_of(&desk, "call_4", "here"); /* joins the leg */
    expect(&desk, "joins", "tool.call.result", no_parts);
    assert_int_equal(desk.last.status, RUN_RUNNING);

    desk_result(&desk, "call_2", (struct call_end){.result = STR("[]"), .model_text = STR("[]")});
    desk_step(&desk, (struct input){.kind = INPUT_SHOW});
    expect(&desk, "no call is under way", "tool.call.result run.finished",
           (struct part[PARTS_MAX]){{"run.finished", "\"interactions\":[\"int_"},
                                    {"run.finished", "\"pendingToolCallIds\":[\"call_1\"]"}});

    desk_settle(&desk, 0, (struct resolution){.decision = DECISION_ANSWER, .text = STR("a")});
    expect(
        &desk, "the question", SETTLED " run.finished",
        (struct part[PARTS_MAX]){
            {"run.finished", "{\"outcome\":\"interrupted\",\"pendingToolCallIds\":[\"call_1\"]"}});
    assert_int_equal(desk.view.state.phase, PHASE_INTERRUPTED);
    assert_int_equal(graph_effect(&desk.view), EFFECT_NONE);

    result_of(&desk, "call_1", "red");
    expect(&desk, "the last", "run.started tool.call.result", no_parts);
    assert_int_equal(desk.view.state.phase, PHASE_EXECUTING);
    assert_int_equal(graph_effect(&desk.view), EFFECT_MODEL);
}

/* Results and answers of one request are one step: first what was resolved, then the leg. */
static void together(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_open(&desk);
    desk_turn(&desk, "", (struct said[]){{"ask_user", ASK}, {"paint", SHADE}}, 2);
    struct resolution answer = {
        .interaction_id = desk.open[0].id, .decision = DECISION_ANSWER, .text = STR("a")};
    struct front_result front = {.call_id = STR("call_2"), .text = STR("b")};
    desk_step(&desk, (struct input){.kind = INPUT_RESOLVE,
                                    .resolutions = &answer,
                                    .resolution_count = 1,
                                    .fronts = &front,
                                    .front_count = 1});
    expect(&desk, "together", SETTLED " tool.call.result", no_parts);
    assert_int_equal(desk.last.status, RUN_RUNNING);
    assert_int_equal(graph_effect(&desk.view), EFFECT_MODEL);
}

/* An approved write starts while the client still works. */
static void approved_beside(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_open(&desk);
    desk_turn(&desk, "", (struct said[]){{"calendar_write", TITLE}, {"paint", SHADE}}, 2);
    desk_settle(&desk, 0, (struct resolution){.decision = DECISION_APPROVE});
    assert_int_equal(desk.view.state.phase, PHASE_INTERRUPTED);
    assert_int_equal(graph_effect(&desk.view), EFFECT_START);
    desk_step(&desk, (struct input){.kind = INPUT_START});
    expect_call(&desk, "approved", "call_1", CALL_STARTED, "");
    assert_int_equal(graph_effect(&desk.view), EFFECT_NONE);
    desk_result(&desk, "call_1", (struct call_end){.model_text = STR("ok")});
    desk_step(&desk, (struct input){.kind = INPUT_SHOW});
    expect(&desk, "shown", "tool.call.result run.finished", no_parts);
    assert_int_equal(desk.last.status, RUN_WAITING);
}

/* ---- ends ---- */

static void cancelled(void **state)
{
    (void)state;
    for (int started = 0; started < 2; started++) {
        AUTO(desk_done) struct desk desk;
        desk_open(&desk);
        const struct said calls[] = {{"paint", SHADE}, {"calendar_read", "{}"}};
        desk_turn(&desk, "", calls, started ? 2 : 1);
        desk.view.cancelling = started;
        if (started) assert_int_equal(graph_effect(&desk.view), EFFECT_CANCEL);
        const struct outcome *o = desk_step(&desk, (struct input){.kind = INPUT_CANCEL});
        const struct call *call = &o->calls[0].call;
        assert_int_equal(call->state, CALL_CANCELLED);
        assert_str(call->error, STR("cancelled"));
        assert_str(call->model_text, STR("The user did not answer; cancelled"));
        assert_int_equal(o->ended, !started);
        expect(&desk, "cancelled",
               started ? "tool.call.result" : "tool.call.result step.finish run.finished",
               no_parts);
    }
}

static void damaged(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_open(&desk);
    desk_call(&desk, "paint", SHADE);
    const struct outcome *o =
        desk_step(&desk, (struct input){.kind = INPUT_DAMAGED, .why_text = STR("why")});
    expect(&desk, "damaged", "tool.call.result run.error", no_parts);
    assert_int_equal(o->calls[0].call.state, CALL_CANCELLED);
    assert_true(o->ended);
}

/* ---- nobody reads along ---- */

static void alone(void **state)
{
    (void)state;
    static const struct {
        enum decision decision;
        const char *types, *part;
        enum run_status status;
    } rows[] = {
        {DECISION_CONTINUE, "interaction.resolved run.started", "", RUN_RUNNING},
        {DECISION_GIVE_UP, "interaction.resolved run.started step.finish run.error",
         "\"code\":\"aborted\"", RUN_FAILED},
        {DECISION_EXPIRE, "interaction.resolved run.started step.finish run.error",
         "\"code\":\"aborted\"", RUN_FAILED},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(desk_done) struct desk desk;
        desk_open(&desk);
        desk_step(&desk, (struct input){.kind = INPUT_ALONE});
        expect(&desk, "alone", "interaction.request run.finished",
               (struct part[PARTS_MAX]){{"interaction.request", "\"type\":\"connection_lost\""},
                                        {"interaction.request", "Nobody is reading along any more"},
                                        {"interaction.request",
                                         "\"metadata\":{\"cause\":\"disconnect\"}"}});
        assert_int_equal(desk.last.status, RUN_WAITING);
        desk_settle(&desk, 0, (struct resolution){.decision = rows[i].decision});
        expect(&desk, "settled", rows[i].types,
               (struct part[PARTS_MAX]){{rows[i].part[0] ? "run.error" : NULL, rows[i].part}});
        assert_int_equal(desk.last.status, rows[i].status);
        if (rows[i].status == RUN_RUNNING) {
            assert_int_equal(desk.view.state.phase, PHASE_CHATTING);
            assert_int_equal(graph_effect(&desk.view), EFFECT_MODEL);
        }
    }
}

int test_graph_front(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_call),
        cmocka_unit_test(which_calls),
        cmocka_unit_test(tools_of_others),
        cmocka_unit_test(which_results),
        cmocka_unit_test(row_ids),
        cmocka_unit_test(long_results),
        cmocka_unit_test(results_of_nothing),
        cmocka_unit_test(mixed),
        cmocka_unit_test(together),
        cmocka_unit_test(approved_beside),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(damaged),
        cmocka_unit_test(alone),
    };
    return cmocka_run_group_tests_name("agent/graph and front ends", tests, NULL, NULL);
}
