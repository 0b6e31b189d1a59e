/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/graph.h"

#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "check.h"
#include "graph_kit.h"

enum { PRINTED_BYTES_MAX = 64 * 1024 * 1024, PARTS_MAX = 8 };

#define TITLE   "{\"title\":\"x\"}"
#define PLAN    "{\"steps\":[{\"content\":\"one\",\"done_when\":\"d\"},{\"content\":\"two\"}]}"
#define ENDED   "step.finish step.start text.message.end step.finish run.finished"
#define ASKED   "text.message.end tool.call interaction.request run.finished"
#define REFUSED "text.message.end tool.call tool.call.result"
#define PAUSED  "run.finished"

/* The last outcome has these facts; and parts of them stand where they should. */
struct part {
    const char *type, *text;
};

static void expect(struct desk *desk, const char *what, const char *types, const struct part *parts)
{
    str got = desk_types(desk);
    if (!str_eq(got, str_c(types)))
        fail_msg("%s: got \"%.*s\", expected \"%s\"", what, STR_ARG(got), types);
    for (size_t i = 0; i < PARTS_MAX && parts[i].type; i++) {
        str data = desk_fact(desk, parts[i].type, 0);
        if (str_find(data, str_c(parts[i].text)) < 0)
            fail_msg("%s: no %s in %.*s", what, parts[i].text, STR_ARG(data));
    }
}

static void expect_call(struct desk *desk, const char *what, const char *call_id,
                        enum call_state state, const char *error)
{
    const struct call *call = desk_row(desk, call_id);
    if (call->state != state || !str_eq(call->error, str_c(error)))
        fail_msg("%s: %s is %s (%.*s), expected %s (%s)", what, call_id,
                 call_state_name(call->state), STR_ARG(call->error), call_state_name(state), error);
}

/* ---- the conversation of the specification ---- */

#define QUESTION "{\"question\":\"会议多长？\",\"choices\":[\"30 分钟\",\"1 小时\"]}"
#define MEETING  "{\"title\":\"评审会\",\"start_time\":\"2026-11-16T15:00:00+08:00\"}"

static void example_asks(struct desk *desk)
{
    expect(desk, "start", "run.started step.start",
           (struct part[PARTS_MAX]){
               {"run.started", "{\"taskId\":\"task_a\",\"leg\":1,\"resumed\":false,"
                               "\"agent\":\"assistant\",\"model\":\"demo\"}"},
               {"step.start", "{\"stepName\":\"intent\",\"index\":0,\"total\":3}"},
           });
    assert_int_equal(graph_effect(&desk->view), EFFECT_MODEL);
    assert_int_equal(graph_node(&desk->view.state), NODE_CHAT);

    desk_call(desk, "ask_user", QUESTION);
    expect(desk, "the question", ASKED,
           (struct part[PARTS_MAX]){
               {"text.message.end", "{\"messageId\":\"m1\",\"content\":\"\",\"workerAgentOutput\":"
                                    "{\"answer\":\"\"},\"inputTokens\":10,\"outputTokens\":1,"},
               {"tool.call",
                "{\"toolCallId\":\"call_1\",\"toolName\":\"ask_user\",\"args\":" QUESTION
                ",\"parentMessageId\":\"m1\",\"stage\":\"intent\"}"},
               {"interaction.request", "\"type\":\"ask_user\",\"status\":\"open\","},
               {"interaction.request", "\"toolCallId\":\"call_1\""},
               {"interaction.request", "\"question\":\"会议多长？\",\"choices\":[{\"id\":\"c1\","
                                       "\"label\":\"30 分钟\"},{\"id\":\"c2\",\"label\":\"1 "
                                       "小时\"}],\"allowFreeform\":true,"},
               {"interaction.request", "\"resumeNode\":\"execute\",\"resumePhase\":\"executing\","
                                       "\"resumeStep\":0,"},
               {"run.finished", "{\"outcome\":\"interrupted\",\"interactions\":[\"int_"},
           });
    assert_int_equal(desk->last.status, RUN_WAITING);
    assert_int_equal(graph_effect(&desk->view), EFFECT_NONE);
}

static void example_answers(struct desk *desk)
{
    desk_answer(desk, "{\"choices\":[\"c2\"]}");
    expect(desk, "the answer", "interaction.resolved run.started tool.call.result",
           (struct part[PARTS_MAX]){
               {"interaction.resolved", "\"status\":\"resolved\",\"answer\":{\"choices\":[\"c2\"]},"
                                        "\"text\":\"1 小时\",\"answeredBy\":\"local\","
                                        "\"via\":\"api\",\"at\":\"2026-11-15T"},
               {"run.started", "\"leg\":2,\"resumed\":true,"},
               {"tool.call.result", "\"toolCallId\":\"call_1\",\"callId\":\"call_1\","
                                    "\"toolName\":\"ask_user\",\"args\":" QUESTION ",\"result\":"
                                    "\"1 小时\",\"content\":\"1 小时\",\"toolAgentOutput\":"
                                    "{\"result_summary\":\"1 小时\"}}"},
           });
    assert_int_equal(graph_effect(&desk->view), EFFECT_MODEL);
    assert_int_equal(graph_node(&desk->view.state), NODE_EXECUTE);

    desk_turn(desk, "好的，我来创建日程。", &(struct said){"calendar_write", MEETING}, 1);
    expect(desk, "the write", ASKED,
           (struct part[PARTS_MAX]){
               {"text.message.end", "\"content\":\"好的，我来创建日程。\""},
               {"tool.call", "\"toolName\":\"calendar_write\",\"args\":" MEETING ","},
               {"tool.call", "\"stage\":\"execution\"}"},
               {"interaction.request", "\"type\":\"confirm\""},
               {"interaction.request", "\"pendingTool\":{\"toolName\":\"calendar_write\","
                                       "\"argsJson\":\"{\\\"title\\\":\\\"评审会\\\","},
               {"interaction.request", "\"summary\":\"评审会\",\"argsSchema\":{"},
               {"interaction.request", "\"binding\":\"k1."},
           });
}

static void example_reports(struct desk *desk)
{
    desk_answer(desk, "{\"decision\":\"approve\"}");
    expect(desk, "the approval", "interaction.resolved run.started",
           (struct part[PARTS_MAX]){
               {"interaction.resolved", "\"answer\":{\"decision\":\"approve\"}"},
               {"run.started", "\"leg\":3,\"resumed\":true,"},
           });
    assert_int_equal(graph_effect(&desk->view), EFFECT_START);

    desk_step(desk, (struct input){.kind = INPUT_START});
    expect(desk, "started", "step.finish step.start",
           (struct part[PARTS_MAX]){
               {"step.finish", "{\"stepName\":\"intent\","},
               {"step.start", "{\"stepName\":\"execution\",\"index\":1,\"total\":3}"},
           });
    assert_true(desk->last.calls[0].started);
    assert_int_equal(graph_effect(&desk->view), EFFECT_NONE);

    desk_result(desk, "call_1",
                (struct call_end){.result = STR("{\"id\":7}"), .model_text = STR("{\"id\":7}")});
    expect(desk, "done", "", (struct part[PARTS_MAX]){{0}});
    assert_int_equal(graph_effect(&desk->view), EFFECT_SHOW);
    desk_step(desk, (struct input){.kind = INPUT_SHOW});
    expect(desk, "shown", "tool.call.result",
           (struct part[PARTS_MAX]){{"tool.call.result", "\"result\":{\"id\":7},"}});
    assert_int_equal(graph_effect(&desk->view), EFFECT_MODEL);

    desk_turn(desk, "已为你约好。", NULL, 0);
    expect(desk, "the report", ENDED,
           (struct part[PARTS_MAX]){
               {"step.start", "{\"stepName\":\"report\",\"index\":2,\"total\":3}"},
               {"text.message.end", "\"content\":\"已为你约好。\""},
               {"run.finished", "{\"outcome\":\"completed\",\"usage\":{\"inputTokens\":30,"
                                "\"outputTokens\":3,"},
           });
    assert_true(desk->last.ended);
    assert_int_equal(desk->last.status, RUN_COMPLETED);
}

static void example(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_init(&desk);
    example_asks(&desk);
    example_answers(&desk);
    example_reports(&desk);
}

/* ---- the model's turn ---- */

/* One call in a first turn: what becomes of it. */
static void sorting(void **state)
{
    (void)state;
    static const struct {
        const char *tool, *args, *types;
        enum call_state state;
        const char *error;
        enum plan_mode plan;
        bool no_questions;
    } rows[] = {
        {"calendar_read", "{}", "text.message.end tool.call step.finish step.start", CALL_STARTED,
         "", PLAN_AUTO, 0},
        {"calendar_read", "", "text.message.end tool.call step.finish step.start", CALL_STARTED, "",
         PLAN_AUTO, 0},
        {"place_order", TITLE, "text.message.end tool.call step.finish step.start", CALL_STARTED,
         "", PLAN_AUTO, 0},
        {"calendar_write", TITLE, ASKED, CALL_WAITING, "", PLAN_AUTO, 0},
        {"calendar_write", "{\"title\":1}", REFUSED, CALL_FAILED, "invalid_arguments", PLAN_AUTO,
         0},
        {"calendar_write", "{\"title\"", REFUSED, CALL_FAILED, "invalid_arguments", PLAN_AUTO, 0},
        {"calendar_write", "[]", REFUSED, CALL_FAILED, "invalid_arguments", PLAN_AUTO, 0},
        {"calendar_write", "\xff", REFUSED, CALL_FAILED, "invalid_arguments", PLAN_AUTO, 0},
        {"launch", TITLE, REFUSED, CALL_FAILED, "policy_denied", PLAN_AUTO, 0},
        {"nobody", "{}", REFUSED, CALL_FAILED, "tool_unavailable", PLAN_AUTO, 0},
        {"ask_user", "{\"question\":\"q\"}", ASKED, CALL_WAITING, "", PLAN_AUTO, 0},
        {"ask_user", "{\"question\":\" \"}", REFUSED, CALL_FAILED, "invalid_arguments", PLAN_AUTO,
         0},
        {"ask_user", "{\"question\":\"q\"}", REFUSED, CALL_FAILED, "not_offered", PLAN_AUTO, true},
        {"submit_plan", PLAN, ASKED, CALL_WAITING, "", PLAN_AUTO, 0},
        {"submit_plan", "{\"steps\":[]}", REFUSED, CALL_FAILED, "invalid_arguments", PLAN_AUTO, 0},
        {"submit_plan", PLAN, REFUSED, CALL_FAILED, "not_offered", PLAN_NEVER, 0},
        {"calendar_write", TITLE, REFUSED, CALL_FAILED, "plan_first", PLAN_ALWAYS, 0},
        {"calendar_read", "{}", "text.message.end tool.call step.finish step.start", CALL_STARTED,
         "", PLAN_ALWAYS, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(desk_done) struct desk desk;
        desk_init(&desk);
        desk.agent.plan = rows[i].plan;
        desk.agent.ask_user = !rows[i].no_questions;
        desk_call(&desk, rows[i].tool, rows[i].args);
        expect(&desk, rows[i].args, rows[i].types, (struct part[PARTS_MAX]){{0}});
        expect_call(&desk, rows[i].args, "call_1", rows[i].state, rows[i].error);
        assert_int_equal(desk.view.state.round_used, 1);
        assert_int_equal(desk.view.state.turns, 1);
    }
}

/* All calls of a turn are sorted in one step; what does not fit waits or is refused. */
static void many_calls(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_init(&desk);
    struct said calls[13];
    for (size_t i = 0; i < 13; i++)
        calls[i] = (struct said){i < 6 ? "place_order" : "calendar_write", TITLE};
    calls[12] = (struct said){"submit_plan", PLAN};
    desk_turn(&desk, "many", calls, COUNT(calls));
    for (size_t i = 0; i < COUNT(calls); i++) {
        char id[16];
        snprintf(id, sizeof id, "call_%zu", i + 1);
        enum call_state expected = i < CALLS_STARTED_MAX ? CALL_STARTED
                                   : i < 6               ? CALL_PROPOSED
                                   : i < 11              ? CALL_WAITING
                                                         : CALL_FAILED;
        expect_call(&desk, "many", id, expected, i >= 11 ? "too_many_confirms" : "");
    }
    assert_int_equal(desk.view.open.count, CONFIRMS_OPEN_MAX);
    assert_int_equal(desk.last.status, RUN_RUNNING); /* calls are under way */
    assert_int_equal(graph_effect(&desk.view), EFFECT_NONE);
    /* One lands: there is room, and its result is shown first. */
    desk_result(&desk, "call_2", (struct call_end){.model_text = STR("x")});
    assert_int_equal(graph_effect(&desk.view), EFFECT_SHOW);
    desk_step(&desk, (struct input){.kind = INPUT_SHOW});
    assert_int_equal(graph_effect(&desk.view), EFFECT_START);
    desk_step(&desk, (struct input){.kind = INPUT_START});
    expect_call(&desk, "room", "call_5", CALL_STARTED, "");
    expect_call(&desk, "no room", "call_6", CALL_PROPOSED, "");
}

static void one_plan_for_a_turn(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_init(&desk);
    desk_turn(&desk, "", (struct said[]){{"submit_plan", PLAN}, {"submit_plan", PLAN}}, 2);
    expect_call(&desk, "first", "call_1", CALL_WAITING, "");
    expect_call(&desk, "second", "call_2", CALL_FAILED, "not_offered");
    assert_int_equal(desk.view.open.count, 1);
}

/* Three turns may be wrong in a row, and the count begins anew behind a right one. */
static void corrections(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_init(&desk);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 1; i <= CORRECTIONS_MAX; i++) {
            desk_call(&desk, "calendar_write", "{");
            assert_int_equal(desk.view.state.consecutive_corrections, i);
        }
        if (round) break;
        desk_call(&desk, "launch", TITLE); /* not allowed, but well-formed */
        assert_int_equal(desk.view.state.consecutive_corrections, 0);
    }
    desk_turn(&desk, "", (struct said[]){{"calendar_write", "{"}, {"place_order", TITLE}}, 2);
    expect(&desk, "one too many",
           "text.message.end tool.call tool.call tool.call.result tool.call.result step.finish "
           "run.error",
           (struct part[PARTS_MAX]){{"run.error", "{\"code\":\"aborted\","}});
    assert_int_equal(desk.last.status, RUN_FAILED);
    assert_true(desk.last.ended);
}

/* ---- decisions ---- */

#define ORDER       "place_order"
#define SETTLED     "interaction.resolved run.started tool.call.result"
#define WAS_STARTED "interaction.resolved run.started"

/* Each decision: what becomes of the call, what the model reads, what is done next. */
static void decisions(void **state)
{
    (void)state;
    static const struct {
        const char *tool, *args;
        bool lost;
        struct resolution resolution;
        const char *types;
        enum call_state state;
        const char *error, *model_text;
        enum effect effect;
        enum phase phase;
    } rows[] = {
        {"ask_user",
         "{\"question\":\"q\"}",
         0,
         {.decision = DECISION_ANSWER, .text = {"yes", 3}, .answer = {"{}", 2}},
         SETTLED,
         CALL_DONE,
         "",
         "yes",
         EFFECT_MODEL,
         PHASE_EXECUTING},
        {"ask_user",
         "{\"question\":\"q\"}",
         0,
         {.decision = DECISION_SKIP, .text = {"no", 2}},
         SETTLED,
         CALL_DONE,
         "",
         "no",
         EFFECT_MODEL,
         PHASE_EXECUTING},
        {"ask_user",
         "{\"question\":\"q\"}",
         0,
         {.decision = DECISION_CANCEL},
         SETTLED,
         CALL_CANCELLED,
         "cancelled",
         "The user did not answer; cancelled",
         EFFECT_MODEL,
         PHASE_EXECUTING},
        {"ask_user",
         "{\"question\":\"q\"}",
         0,
         {.decision = DECISION_EXPIRE},
         SETTLED,
         CALL_CANCELLED,
         "expired",
         "The time to answer has passed; not done",
         EFFECT_MODEL,
         PHASE_EXECUTING},
        {"calendar_write",
         TITLE,
         0,
         {.decision = DECISION_APPROVE},
         WAS_STARTED,
         CALL_APPROVED,
         "",
         "",
         EFFECT_START,
         PHASE_EXECUTING},
        {"calendar_write",
         TITLE,
         0,
         {.decision = DECISION_EDIT, .args = {"{\"title\":\"y\"}", 13}},
         WAS_STARTED,
         CALL_APPROVED,
         "",
         "",
         EFFECT_START,
         PHASE_EXECUTING},
        {"calendar_write",
         TITLE,
         0,
         {.decision = DECISION_REJECT},
         SETTLED,
         CALL_REJECTED,
         "rejected",
         "The user rejected this call",
         EFFECT_MODEL,
         PHASE_EXECUTING},
        {"calendar_write",
         TITLE,
         0,
         {.decision = DECISION_REJECT, .text = {"late", 4}},
         SETTLED,
         CALL_REJECTED,
         "rejected",
         "The user rejected this call and said: late",
         EFFECT_MODEL,
         PHASE_EXECUTING},
        {"calendar_write",
         TITLE,
         0,
         {.decision = DECISION_RESPOND, .text = {"by hand", 7}},
         SETTLED,
         CALL_REJECTED,
         "",
         "by hand",
         EFFECT_MODEL,
         PHASE_EXECUTING},
        {"calendar_write",
         TITLE,
         0,
         {.decision = DECISION_CANCEL},
         SETTLED,
         CALL_CANCELLED,
         "cancelled",
         "The user did not answer; cancelled",
         EFFECT_MODEL,
         PHASE_EXECUTING},
        {"calendar_write",
         TITLE,
         0,
         {.decision = DECISION_EXPIRE},
         SETTLED,
         CALL_CANCELLED,
         "expired",
         "The time to answer has passed; not done",
         EFFECT_MODEL,
         PHASE_EXECUTING},
        {"calendar_write",
         TITLE,
         0,
         {.decision = DECISION_SUPERSEDE},
         "interaction.resolved run.started interaction.request run.finished",
         CALL_WAITING,
         "",
         "",
         EFFECT_NONE,
         PHASE_INTERRUPTED},
        {"submit_plan",
         PLAN,
         0,
         {.decision = DECISION_APPROVE},
         SETTLED " plan.updated",
         CALL_DONE,
         "",
         "The user approved the plan",
         EFFECT_MODEL,
         PHASE_EXECUTING},
        {"submit_plan",
         PLAN,
         0,
         {.decision = DECISION_EDIT, .args = {"{\"steps\":[{\"content\":\"z\"}]}", 29}},
         SETTLED " plan.updated",
         CALL_DONE,
         "",
         "The user changed the plan. It is now: {\"steps\":[{\"content\":\"z\"}]}",
         EFFECT_MODEL,
         PHASE_EXECUTING},
        {"submit_plan",
         PLAN,
         0,
         {.decision = DECISION_REJECT, .text = {"no", 2}},
         SETTLED,
         CALL_REJECTED,
         "rejected",
         "The user rejected this call and said: no",
         EFFECT_MODEL,
         PHASE_PLANNING},
        {"submit_plan",
         PLAN,
         0,
         {.decision = DECISION_RESPOND, .text = {"shorter", 7}},
         SETTLED,
         CALL_REJECTED,
         "",
         "shorter",
         EFFECT_MODEL,
         PHASE_PLANNING},
        {"submit_plan",
         PLAN,
         0,
         {.decision = DECISION_CANCEL},
         SETTLED,
         CALL_CANCELLED,
         "cancelled",
         "The user did not answer; cancelled",
         EFFECT_MODEL,
         PHASE_PLANNING},
        {"submit_plan",
         PLAN,
         0,
         {.decision = DECISION_EXPIRE},
         SETTLED,
         CALL_CANCELLED,
         "expired",
         "The time to answer has passed; not done",
         EFFECT_MODEL,
         PHASE_PLANNING},
        {ORDER,
         TITLE,
         true,
         {.decision = DECISION_RETRY},
         WAS_STARTED,
         CALL_APPROVED,
         "",
         "",
         EFFECT_START,
         PHASE_EXECUTING},
        {ORDER,
         TITLE,
         true,
         {.decision = DECISION_HAPPENED},
         SETTLED,
         CALL_DONE,
         "",
         "The user confirms that it happened; its result is not known",
         EFFECT_MODEL,
         PHASE_EXECUTING},
        {ORDER,
         TITLE,
         true,
         {.decision = DECISION_GIVE_UP},
         SETTLED,
         CALL_FAILED,
         "unknown_outcome",
         "Outcome unknown; it may have happened",
         EFFECT_MODEL,
         PHASE_EXECUTING},
        {ORDER,
         TITLE,
         true,
         {.decision = DECISION_EXPIRE},
         SETTLED,
         CALL_FAILED,
         "unknown_outcome",
         "Outcome unknown; it may have happened",
         EFFECT_MODEL,
         PHASE_EXECUTING},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(desk_done) struct desk desk;
        desk_init(&desk);
        desk_call(&desk, rows[i].tool, rows[i].args);
        if (rows[i].lost) {
            desk_step(&desk, (struct input){.kind = INPUT_LOST, .call_id = STR("call_1")});
            expect(&desk, "lost", "interaction.request run.finished",
                   (struct part[PARTS_MAX]){{"interaction.request", "\"type\":\"uncertain\""}});
        }
        assert_int_equal(desk.view.state.phase, PHASE_INTERRUPTED);
        desk_settle(&desk, 0, rows[i].resolution);
        char what[64];
        snprintf(what, sizeof what, "%s, decision %d", rows[i].tool, rows[i].resolution.decision);
        expect(&desk, what, rows[i].types, (struct part[PARTS_MAX]){{0}});
        expect_call(&desk, what, "call_1", rows[i].state, rows[i].error);
        assert_str(desk_row(&desk, "call_1")->model_text, str_c(rows[i].model_text));
        assert_int_equal(graph_effect(&desk.view), rows[i].effect);
        assert_int_equal(desk.view.state.phase, rows[i].phase);
    }
}

/* The run goes on when the last of a set is settled, in whatever order. */
static void sets(void **state)
{
    (void)state;
    for (size_t first = 0; first < 3; first++) {
        AUTO(desk_done) struct desk desk;
        desk_init(&desk);
        desk_turn(&desk, "",
                  (struct said[]){{"ask_user", "{\"question\":\"a\"}"},
                                  {"calendar_write", TITLE},
                                  {"ask_user", "{\"question\":\"b\"}"}},
                  3);
        expect(&desk, "a set",
               "text.message.end tool.call tool.call tool.call interaction.request "
               "interaction.request interaction.request run.finished",
               (struct part[PARTS_MAX]){{0}});
        for (size_t left = 3; left > 1; left--) {
            desk_settle(&desk, first % left, (struct resolution){.decision = DECISION_CANCEL});
            expect(&desk, "some are open",
                   "interaction.resolved run.started tool.call.result run.finished",
                   (struct part[PARTS_MAX]){{"run.finished", "\"outcome\":\"interrupted\""}});
            assert_int_equal(desk.view.state.phase, PHASE_INTERRUPTED);
            assert_int_equal(desk.last.status, RUN_WAITING);
        }
        desk_settle(&desk, 0, (struct resolution){.decision = DECISION_CANCEL});
        expect(&desk, "none is open", SETTLED, (struct part[PARTS_MAX]){{0}});
        assert_int_equal(desk.view.state.phase, PHASE_EXECUTING);
        assert_int_equal(desk.view.state.resume.node.len, 0);
    }
}

/* What is settled a second time, or does not exist, changes nothing. */
static void settled_twice(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_init(&desk);
    desk_call(&desk, "ask_user", "{\"question\":\"a\"}");
    struct resolution twice[3] = {{.interaction_id = desk.open[0].id, .text = STR("one")},
                                  {.interaction_id = desk.open[0].id, .text = STR("two")},
                                  {.interaction_id = STR("int_x")}};
    desk_step(&desk,
              (struct input){.kind = INPUT_RESOLVE, .resolutions = twice, .resolution_count = 3});
    expect(&desk, "twice at once", SETTLED, (struct part[PARTS_MAX]){{0}});
    assert_str(desk_row(&desk, "call_1")->model_text, STR("one"));
    desk_step(&desk,
              (struct input){.kind = INPUT_RESOLVE, .resolutions = twice, .resolution_count = 3});
    assert_int_equal(desk.last.fact_count, 0);
    assert_int_equal(desk.last.call_count, 0);
}

/* ---- a grant ---- */

static void always(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_init(&desk);
    desk_call(&desk, "calendar_write", TITLE);
    desk_answer(&desk, "{\"decision\":\"approve\",\"always\":{\"scope\":\"thread\",\"match\":"
                       "{\"title\":\"x\"}}}");
    assert_int_equal(desk.last.grant_count, 1);
    assert_str(desk.grants[0].match, STR(TITLE));
    assert_int_equal(desk.grants[0].thread, 1);
    desk_step(&desk, (struct input){.kind = INPUT_START});
    desk_result(&desk, "call_1", (struct call_end){.model_text = STR("x")});
    desk_step(&desk, (struct input){.kind = INPUT_SHOW});
    /* The same arguments run at once, others are asked for. */
    desk_turn(&desk, "",
              (struct said[]){{"calendar_write", TITLE}, {"calendar_write", "{\"title\":\"y\"}"}},
              2);
    expect_call(&desk, "granted", "call_1", CALL_STARTED, "");
    expect_call(&desk, "not granted", "call_2", CALL_WAITING, "");
}

/* ---- the last look before a call leaves ---- */

#define OTHER_SCHEMA "{\"type\":\"object\",\"properties\":{\"title\":{\"type\":\"integer\"}}}"
#define SAME_BUT_NEW "{\"type\":\"object\",\"properties\":{\"title\":{\"type\":\"string\"}}}"

static void change_args(struct desk *desk)
{
    desk_row(desk, "call_1")->args = STR("{\"title\":\"other\"}");
}

static void change_tool(struct desk *desk)
{
    desk_row(desk, "call_1")->tool = STR(ORDER);
}

static void change_binding(struct desk *desk)
{
    desk_row(desk, "call_1")->binding = STR("k1.x");
}

static void change_policy(struct desk *desk)
{
    static const struct policy_row deny[] = {{{"calendar_*", 10}, VERDICT_DENY}};
    desk->agent.policy_settings = (struct policy){.rows = deny, .count = 1};
}

static void change_schema(struct desk *desk)
{
    desk_restyle(desk, "calendar_write", SAME_BUT_NEW);
}

static void change_arguments_taken(struct desk *desk)
{
    desk_restyle(desk, "calendar_write", OTHER_SCHEMA);
}

static void remove_tools(struct desk *desk)
{
    desk->agent.tool_count = desk->tools.count = 1;
}

static void change_nothing(struct desk *desk)
{
    (void)desk;
}

static void last_look(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*change)(struct desk *desk);
        enum call_state state;
        const char *error;
        size_t superseded;
    } rows[] = {
        {"nothing", change_nothing, CALL_STARTED, "", 0},
        {"arguments", change_args, CALL_FAILED, "binding_mismatch", 0},
        {"tool", change_tool, CALL_FAILED, "binding_mismatch", 0},
        {"binding", change_binding, CALL_FAILED, "binding_mismatch", 0},
        {"policy", change_policy, CALL_FAILED, "policy_changed", 0},
        {"schema", change_schema, CALL_WAITING, "", 1},
        {"what the tool takes", change_arguments_taken, CALL_FAILED, "invalid_arguments", 0},
        {"tool gone", remove_tools, CALL_FAILED, "tool_unavailable", 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(desk_done) struct desk desk;
        desk_init(&desk);
        desk_call(&desk, "calendar_write", TITLE);
        desk_answer(&desk, "{\"decision\":\"approve\"}");
        rows[i].change(&desk);
        desk_step(&desk, (struct input){.kind = INPUT_START});
        expect_call(&desk, rows[i].name, "call_1", rows[i].state, rows[i].error);
        assert_int_equal(desk.last.superseded_count, rows[i].superseded);
        bool starts = rows[i].state == CALL_STARTED;
        assert_int_equal(desk.last.calls[0].started, starts);
        assert_int_equal(desk_row(&desk, "call_1")->attempts, starts);
    }
}

/* What was changed while it waited is found at the answer, an edit included. */
static void look_at_answer(void **state)
{
    (void)state;
    static void (*const changes[])(struct desk *) = {change_args, change_tool, change_binding};
    static const char *const bodies[] = {"{\"decision\":\"approve\"}",
                                         "{\"decision\":\"edit\",\"args\":{\"title\":\"y\"}}"};
    for (size_t i = 0; i < COUNT(changes) * COUNT(bodies); i++) {
        AUTO(desk_done) struct desk desk;
        desk_init(&desk);
        desk_call(&desk, "calendar_write", TITLE);
        changes[i / 2](&desk);
        desk_answer(&desk, bodies[i % 2]);
        expect(&desk, bodies[i % 2], SETTLED, (struct part[PARTS_MAX]){{0}});
        expect_call(&desk, bodies[i % 2], "call_1", CALL_FAILED, "binding_mismatch");
    }
}

/* Two approvals lapse in one step. */
static void both_superseded(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_init(&desk);
    desk_turn(&desk, "", (struct said[]){{"calendar_write", TITLE}, {"calendar_write", TITLE}}, 2);
    desk_settle(&desk, 0, (struct resolution){.decision = DECISION_APPROVE});
    desk_settle(&desk, 0, (struct resolution){.decision = DECISION_APPROVE});
    change_schema(&desk);
    desk_step(&desk, (struct input){.kind = INPUT_START});
    expect(&desk, "both", "interaction.request interaction.request run.finished",
           (struct part[PARTS_MAX]){{0}});
    assert_int_equal(desk.last.superseded_count, 2);
}

/* ---- lost ---- */

static void lost_calls(void **state)
{
    (void)state;
    static const struct {
        const char *tool;
        bool cancelling;
        enum call_state state;
        const char *error;
        size_t open;
    } rows[] = {
        {ORDER, false, CALL_UNCERTAIN, "", 1},
        {ORDER, true, CALL_FAILED, "unknown_outcome", 0},
        {"calendar_read", false, CALL_FAILED, "tool_unavailable", 0},
        {"calendar_read", true, CALL_CANCELLED, "cancelled", 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(desk_done) struct desk desk;
        desk_init(&desk);
        desk_call(&desk, rows[i].tool, TITLE);
        desk.view.cancelling = rows[i].cancelling;
        desk_step(&desk, (struct input){.kind = INPUT_LOST, .call_id = STR("call_1")});
        const struct call *call = &desk.last.calls[0].call;
        assert_int_equal(call->state, rows[i].state);
        assert_str(call->error, str_c(rows[i].error));
        assert_int_equal(desk.last.opened_count, rows[i].open);
        assert_int_equal(desk.last.ended, rows[i].cancelling);
    }
}

/* ---- plan and deliver ---- */

static void plan_to_its_end(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_init(&desk);
    desk_call(&desk, "submit_plan", PLAN);
    expect(&desk, "the plan", ASKED,
           (struct part[PARTS_MAX]){
               {"interaction.request", "\"resumeNode\":\"confirm\",\"resumePhase\":"
                                       "\"waiting_confirm\","},
               {"interaction.request", "\"pendingTool\":{\"toolName\":\"submit_plan\","},
           });
    desk_answer(&desk, "{\"decision\":\"approve\"}");
    expect(&desk, "approved", SETTLED " plan.updated",
           (struct part[PARTS_MAX]){
               {"plan.updated",
                "{\"steps\":[{\"content\":\"one\",\"doneWhen\":\"d\",\"status\":"
                "\"in_progress\"},{\"content\":\"two\",\"doneWhen\":\"\",\"status\":"
                "\"pending\"}],\"current\":0}"},
           });
    assert_int_equal(graph_node(&desk.view.state), NODE_EXECUTE);
    desk_turn(&desk, "one is done", NULL, 0);
    expect(&desk, "step one", "text.message.end plan.updated",
           (struct part[PARTS_MAX]){{"plan.updated", "\"current\":1}"}});
    desk_turn(&desk, "two is done", NULL, 0);
    assert_int_equal(graph_node(&desk.view.state), NODE_DELIVER);
    desk_turn(&desk, "all is done", NULL, 0);
    expect(&desk, "the report", ENDED,
           (struct part[PARTS_MAX]){{"run.finished", "{\"outcome\":\"completed\","}});
}

/* How deliver ends, by what the model does there. */
static void deliver(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct input input;
        bool plan; /* its steps are done; else the rounds are used up */
        const char *text, *end;
    } rows[] = {
        {"words",
         {.turn = {.text = {"report", 6}}},
         true,
         "\"content\":\"report\"",
         "{\"outcome\":\"completed\",\"usage\""},
        {"rounds",
         {.turn = {.text = {"report", 6}}},
         false,
         "\"content\":\"report\"",
         "{\"outcome\":\"exhausted\",\"code\":\"budget_exhausted\","},
        {"nothing",
         {.turn = {.text = {"", 0}}},
         true,
         "What was planned and done:\\n- [x] one\\n- [x] two\"",
         "{\"outcome\":\"completed\","},
        {"nothing, rounds",
         {.turn = {.text = {"", 0}}},
         false,
         "The budget of this run is used up.",
         "\"code\":\"budget_exhausted\""},
        {"model away",
         {.kind = INPUT_DOWN, .why = ERR_MODEL_UNAVAILABLE},
         true,
         "- [x] one\\n- [x] two\"",
         "{\"outcome\":\"completed\","},
        {"model refuses",
         {.kind = INPUT_DOWN, .why = ERR_INTERNAL},
         false,
         "The budget of this run is used up.",
         "{\"outcome\":\"exhausted\","},
        {"overdue",
         {.kind = INPUT_OVERDUE},
         true,
         "The budget of this run is used up.",
         "{\"outcome\":\"exhausted\",\"code\":\"budget_exhausted\","},
    };
    static struct plan_step steps[] = {{{"one", 3}, {"", 0}}, {{"two", 3}, {"", 0}}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(desk_done) struct desk desk;
        desk_init(&desk);
        struct state *s = &desk.view.state;
        s->phase = PHASE_EXECUTING;
        s->stage = STAGE_EXECUTION;
        if (rows[i].plan) {
            s->plan = (struct plan){steps, 2};
            s->current_step = 2;
        } else {
            s->round_used = s->max_rounds;
        }
        assert_int_equal(graph_node(s), NODE_DELIVER);
        desk_step(&desk, rows[i].input);
        expect(&desk, rows[i].name, ENDED,
               (struct part[PARTS_MAX]){{"text.message.end", rows[i].text},
                                        {"run.finished", rows[i].end}});
        assert_true(desk.last.ended);
    }
}

/* ---- the model stays away ---- */

static void model_away(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_init(&desk);
    desk_step(&desk, (struct input){.kind = INPUT_DOWN,
                                    .why = ERR_MODEL_UNAVAILABLE,
                                    .why_text = STR("gone")});
    expect(&desk, "away", "interaction.request run.finished",
           (struct part[PARTS_MAX]){{"interaction.request", "\"type\":\"connection_lost\""},
                                    {"interaction.request", "\"resumeNode\":\"chat\""}});
    desk_answer(&desk, "{\"decision\":\"continue\"}");
    expect(&desk, "continue", "interaction.resolved run.started", (struct part[PARTS_MAX]){{0}});
    assert_int_equal(graph_effect(&desk.view), EFFECT_MODEL);
    assert_int_equal(desk.view.state.phase, PHASE_CHATTING);

    desk_step(&desk, (struct input){.kind = INPUT_DOWN, .why = ERR_MODEL_UNAVAILABLE});
    desk_answer(&desk, "{\"decision\":\"give_up\"}");
    expect(&desk, "give up", "interaction.resolved run.started step.finish run.error",
           (struct part[PARTS_MAX]){{"run.error", "{\"code\":\"model_unavailable\","},
                                    {"run.error", "\"retryable\":true}"}});
    assert_true(desk.last.ended);
}

static void model_refuses(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_init(&desk);
    desk_step(&desk,
              (struct input){.kind = INPUT_DOWN, .why = ERR_INTERNAL, .why_text = STR("bad key")});
    expect(&desk, "refused", "step.finish run.error",
           (struct part[PARTS_MAX]){{"run.error", "{\"code\":\"model_error\",\"message\":\"bad "
                                                  "key\",\"retryable\":false}"}});
    assert_int_equal(desk.last.status, RUN_FAILED);
}

/* ---- the run is cancelled ---- */

static void cancel_while_waiting(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_init(&desk);
    desk_turn(&desk, "",
              (struct said[]){{"ask_user", "{\"question\":\"a\"}"}, {"calendar_write", TITLE}}, 2);
    desk_step(&desk, (struct input){.kind = INPUT_CANCEL});
    expect(&desk, "without a leg",
           "interaction.resolved interaction.resolved tool.call.result tool.call.result "
           "step.finish run.finished",
           (struct part[PARTS_MAX]){
               {"interaction.resolved", "\"status\":\"canceled\""},
               {"tool.call.result", "\"error\":\"cancelled\",\"content\":\"The user did not "
                                    "answer; cancelled\""},
               {"run.finished", "{\"outcome\":\"cancelled\","},
           });
    assert_false(desk.last.leg_begins);
    assert_true(desk.last.ended);
}

/* A call under way is waited for, and told as it was. */
static void cancel_while_working(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_init(&desk);
    desk_turn(&desk, "", (struct said[]){{ORDER, TITLE}, {"calendar_write", TITLE}}, 2);
    desk.view.cancelling = true;
    assert_int_equal(graph_effect(&desk.view), EFFECT_CANCEL);
    desk_step(&desk, (struct input){.kind = INPUT_CANCEL});
    expect(&desk, "first", "interaction.resolved tool.call.result", (struct part[PARTS_MAX]){{0}});
    assert_int_equal(desk.last.status, RUN_CANCELLING);
    assert_int_equal(graph_effect(&desk.view), EFFECT_NONE);
    desk_result(&desk, "call_1", (struct call_end){.result = STR("1"), .model_text = STR("1")});
    assert_int_equal(graph_effect(&desk.view), EFFECT_SHOW);
    desk_step(&desk, (struct input){.kind = INPUT_SHOW});
    expect(&desk, "then", "tool.call.result step.finish run.finished",
           (struct part[PARTS_MAX]){{"tool.call.result", "\"result\":1,"},
                                    {"run.finished", "{\"outcome\":\"cancelled\","}});
}

/* What was read of the answer stays; an approval that came too late does not run. */
static void cancel_in_other_moments(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_init(&desk);
    desk.view.cancelling = true;
    desk_step(&desk, (struct input){.kind = INPUT_CANCEL,
                                    .turn = {.text = STR("par"), .reasoning = STR("so")}});
    expect(&desk, "while it speaks", "reasoning.end text.message.end step.finish run.finished",
           (struct part[PARTS_MAX]){{"text.message.end", "\"content\":\"par\""},
                                    {"text.message.end", "\"stopped\":true}"}});
    desk_done(&desk);

    desk_init(&desk);
    desk_call(&desk, "calendar_write", TITLE);
    desk_answer(&desk, "{\"decision\":\"approve\"}");
    desk.view.cancelling = true;
    assert_int_equal(graph_effect(&desk.view), EFFECT_CANCEL);
    desk_step(&desk, (struct input){.kind = INPUT_CANCEL});
    expect(&desk, "approved", "tool.call.result step.finish run.finished",
           (struct part[PARTS_MAX]){{"tool.call.result", "\"error\":\"cancelled\""}});
}

/* ---- budgets ---- */

static void budgets(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_init(&desk);
    const struct state *s = &desk.view.state;
    assert_int_equal(graph_deadline(s, &desk.agent), 0);
    assert_false(graph_overdue(s, &desk.agent, desk.now + 1000 * 1000));
    desk.agent.active_ms_max = 500;
    assert_int_equal(graph_deadline(s, &desk.agent), desk.now + 500);
    desk_call(&desk, "ask_user", "{\"question\":\"a\"}"); /* 100 ms later */
    assert_int_equal(s->active_ms, 100);
    desk.now += 24 * 60 * 60 * 1000; /* nobody answers for a day, and nobody counts it */
    desk_answer(&desk, "{\"answer\":\"x\"}");
    assert_int_equal(s->active_ms, 100);
    assert_int_equal(graph_deadline(s, &desk.agent), desk.now + 400);
    assert_false(graph_overdue(s, &desk.agent, desk.now + 399));
    assert_true(graph_overdue(s, &desk.agent, desk.now + 400));
    desk.agent.tokens_max = 11;
    assert_true(graph_overdue(s, &desk.agent, desk.now));
    desk.agent.tokens_max = 12;
    assert_false(graph_overdue(s, &desk.agent, desk.now));
}

static void usage_adds_up(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    desk_init(&desk);
    desk.view.state.input_tokens = 1000;
    desk.view.state.output_tokens = STATE_TOKENS_MAX - 1;
    desk_step(&desk, (struct input){.turn = {.text = STR("hello"), .usage = {412, 31}}});
    assert_str(desk_fact(&desk, "run.finished", 0),
               STR("{\"outcome\":\"completed\",\"usage\":{\"inputTokens\":1412,"
                   "\"outputTokens\":9007199254740991,\"cost\":0,\"currency\":\"USD\"}}"));
    /* The message has its own. */
    assert_str(desk.last.messages[0].usage, STR("{\"inputTokens\":412,\"outputTokens\":31,"
                                                "\"cost\":0,\"currency\":\"USD\"}"));
}

/* ---- bytes ---- */

/* The same view and input give the same bytes, in another arena and with the state read back. */
static void deterministic(void **state)
{
    (void)state;
    AUTO(buf_done) struct buf first, second, snapshot;
    buf_init(&first, PRINTED_BYTES_MAX);
    buf_init(&second, PRINTED_BYTES_MAX);
    buf_init(&snapshot, STATE_BYTES_MAX);
    for (unsigned kind = INPUT_TURN; kind <= INPUT_OVERDUE; kind++) {
        AUTO(desk_done) struct desk desk;
        AUTO(arena_done) struct arena other;
        arena_init(&other);
        desk_init(&desk);
        buf_clear(&first);
        buf_clear(&second);
        buf_clear(&snapshot);
        bool asks = kind == INPUT_RESOLVE || kind == INPUT_CANCEL;
        if (asks) desk_call(&desk, "calendar_write", TITLE);
        struct resolution all = {.interaction_id = asks ? desk.open[0].id : STR_EMPTY,
                                 .decision = DECISION_REJECT};
        struct input input = {.kind = (enum input_kind)kind,
                              .now = desk.now,
                              .random = {[3] = 0xa5},
                              .agent = &desk.agent,
                              .binder = &desk.binder,
                              .tools = &desk.tools,
                              .turn = {.text = STR("hello"), .reasoning = STR("so")},
                              .why = ERR_MODEL_UNAVAILABLE,
                              .resolutions = &all,
                              .resolution_count = 1};
        struct view loaded = desk.view;
        struct outcome o;
        state_write(&snapshot, &desk.view.state);
        assert_int_equal(state_parse(&other, buf_str(&snapshot), &loaded.state, NULL), OK);
        graph_step(&desk.arena, &desk.view, &input, &o);
        print_outcome(&first, &o);
        graph_step(&other, &loaded, &input, &o);
        print_outcome(&second, &o);
        assert_str(buf_str(&second), buf_str(&first));
    }
}

/* A message without an id of its own gets one from the random bytes, another for other bytes. */
static void ids_from_random(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    AUTO(desk_done) struct desk desk;
    arena_init(&arena);
    desk_init(&desk);
    struct input input = {.turn = {.text = STR("hello")}, .agent = &desk.agent};
    struct outcome a, b, c;
    graph_step(&arena, &desk.view, &input, &a);
    graph_step(&arena, &desk.view, &input, &b);
    input.random[15] = 1;
    graph_step(&arena, &desk.view, &input, &c);
    assert_true(str_starts(a.messages[0].id, STR("msg_")));
    assert_str(b.messages[0].id, a.messages[0].id);
    assert_false(str_eq(c.messages[0].id, a.messages[0].id));
    input.turn.message_id = STR("m9");
    graph_step(&arena, &desk.view, &input, &a);
    assert_str(a.messages[0].id, STR("m9"));
}

/* The text comes out of every place as it went in. */
static void check_text(struct arena *arena, const struct outcome *o, str text)
{
    struct json *fact, *row;
    assert_int_equal(json_parse(arena, o->facts[3].data, &fact, NULL), OK);
    assert_true(str_eq(json_text(json_get(fact, STR("content"))), text));
    const struct json *output = json_get(fact, STR("workerAgentOutput"));
    assert_true(str_eq(json_text(json_get(output, STR("answer"))), text));
    assert_int_equal(json_parse(arena, o->facts[2].data, &fact, NULL), OK);
    assert_true(str_eq(json_text(json_get(fact, STR("content"))), text));
    for (size_t i = 0; i < o->message_count; i++) {
        AUTO(buf_done) struct buf written;
        buf_init(&written, PRINTED_BYTES_MAX);
        message_write(&written, &o->messages[i]);
        assert_false(written.full);
        assert_int_equal(json_parse(arena, buf_str(&written), &row, NULL), OK);
        assert_true(str_eq(json_text(json_get(row, STR("content"))), text));
        assert_true(str_eq(o->messages[i].plain, text));
    }
}

static void hostile_text(void **state)
{
    (void)state;
    static char controls[1024 * 1024], plain[1024 * 1024];
    memset(controls, 1, sizeof controls);
    memset(plain, 'x', sizeof plain);
    const str rows[] = {
        STR("\"}],\"x\":\\"),
        STR("\x01\x02\x1f\x7f\r\n\t\b\f"),
        {"a\0b", 3},
        STR("\xe2\x80\xa8 \xe2\x80\xa9"),
        STR("data: x\n\nid: 7\n\n</script>"),
        STR("\xf0\x9f\x98\x80 \xef\xbf\xbf \xef\xbb\xbf"),
        {controls, sizeof controls},
        {plain, sizeof plain},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(desk_done) struct desk desk;
        desk_init(&desk);
        desk_step(&desk, (struct input){.turn = {.text = rows[i], .reasoning = rows[i]}});
        check_text(&desk.arena, &desk.last, rows[i]);
    }
}

/* What is not text at all fails the run instead of entering it. */
static void not_text(void **state)
{
    (void)state;
    static const struct turn_call named = {.call_id = {"call_1", 6}, .name = {"\xff", 1}};
    const struct turn rows[] = {
        {.text = {"\xff", 1}},
        {.text = {"hi", 2}, .reasoning = {"\xc3", 1}},
        {.calls = &named, .call_count = 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(desk_done) struct desk desk;
        desk_init(&desk);
        desk_step(&desk, (struct input){.turn = rows[i]});
        expect(&desk, "not text", "step.finish run.error",
               (struct part[PARTS_MAX]){{"run.error", "{\"code\":\"model_error\","}});
    }
}

/* Names that a client or an operator chose, and reasons of any length. */
static void hostile_names(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    static char longest[CONFIG_TEXT_BYTES_MAX];
    memset(longest, 2, sizeof longest);
    struct start start = {.run_id = STR("r1"),
                          .owner = STR("local"),
                          .thread_id = STR("t1"),
                          .agent = {longest, sizeof longest},
                          .model = {longest, sizeof longest},
                          .leg = 1};
    struct outcome o;
    graph_start(&arena, &start, &o);
    assert_int_equal(o.state.max_rounds, AGENT_ROUNDS_MAX);
    struct json *fact;
    assert_int_equal(json_parse(&arena, o.facts[0].data, &fact, NULL), OK);
    assert_true(str_eq(json_text(json_get(fact, STR("model"))), start.model));

    static char reason[RUN_ERROR_BYTES_MAX + 1];
    memset(reason, 3, sizeof reason);
    for (size_t over = 0; over < 2; over++) {
        AUTO(desk_done) struct desk desk;
        desk_init(&desk);
        str why = {reason, RUN_ERROR_BYTES_MAX + over};
        desk_step(&desk, (struct input){.kind = INPUT_DOWN, .why = ERR_INTERNAL, .why_text = why});
        assert_int_equal(json_parse(&arena, desk_fact(&desk, "run.error", 0), &fact, NULL), OK);
        assert_str(json_text(json_get(fact, STR("message"))), over ? STR("Internal error") : why);
    }
}

/* From every phase and stage that a snapshot can bring, a run ends well-formed. */
static void ends_from_anywhere(void **state)
{
    (void)state;
    for (unsigned phase = 0; phase < PHASE_DONE; phase++) {
        for (unsigned stage = 0; stage < STAGE_COUNT; stage++) {
            AUTO(desk_done) struct desk desk;
            desk_init(&desk);
            desk.view.state.phase = (enum phase)phase;
            desk.view.state.stage = (enum stage)stage;
            desk_turn(&desk, "hello", NULL, 0);
            expect(&desk, "hello",
                   stage == STAGE_REPORT ? "text.message.end step.finish run.finished" : ENDED,
                   (struct part[PARTS_MAX]){{0}});
            assert_true(desk.last.ended);
        }
    }
}

static void history_rows(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct message message = {
        .seq = 9,
        .id = STR("u1"),
        .role = STR("user"),
        .run_id = STR("r1"),
        .content = STR("[{\"type\":\"text\",\"text\":\"hi\"}]"),
        .metadata = STR("{}"),
        .plain = STR("hi"),
        .created = 1794722770123,
    };
    assert_str(fact_message_added(&arena, &message),
               STR("{\"message\":{\"id\":\"u1\",\"role\":\"user\","
                   "\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],\"metadata\":{},"
                   "\"createdAt\":\"2026-11-15T06:06:10.123Z\"}}"));
    message.tool_calls = STR("[{}]");
    message.tool = STR("{\"toolCallId\":\"c\"}");
    message.usage = STR("{\"inputTokens\":1}");
    assert_str(fact_message_added(&arena, &message),
               STR("{\"message\":{\"id\":\"u1\",\"role\":\"user\","
                   "\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],\"toolCalls\":[{}],"
                   "\"toolCallId\":\"c\",\"metadata\":{},"
                   "\"createdAt\":\"2026-11-15T06:06:10.123Z\","
                   "\"usage\":{\"inputTokens\":1}}}"));
}

int test_graph(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(example),
        cmocka_unit_test(sorting),
        cmocka_unit_test(many_calls),
        cmocka_unit_test(one_plan_for_a_turn),
        cmocka_unit_test(corrections),
        cmocka_unit_test(decisions),
        cmocka_unit_test(sets),
        cmocka_unit_test(settled_twice),
        cmocka_unit_test(always),
        cmocka_unit_test(last_look),
        cmocka_unit_test(look_at_answer),
        cmocka_unit_test(both_superseded),
        cmocka_unit_test(lost_calls),
        cmocka_unit_test(plan_to_its_end),
        cmocka_unit_test(deliver),
        cmocka_unit_test(model_away),
        cmocka_unit_test(model_refuses),
        cmocka_unit_test(cancel_while_waiting),
        cmocka_unit_test(cancel_while_working),
        cmocka_unit_test(cancel_in_other_moments),
        cmocka_unit_test(budgets),
        cmocka_unit_test(usage_adds_up),
        cmocka_unit_test(deterministic),
        cmocka_unit_test(ids_from_random),
        cmocka_unit_test(hostile_text),
        cmocka_unit_test(not_text),
        cmocka_unit_test(hostile_names),
        cmocka_unit_test(ends_from_anywhere),
        cmocka_unit_test(history_rows),
    };
    return cmocka_run_group_tests_name("agent/graph", tests, NULL, NULL);
}
