/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/graph.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "check.h"
#include "graph_kit.h"

enum { PRINTED_BYTES_MAX = 64 * 1024 * 1024 };

#define ENDED   "step.finish step.start text.message.end step.finish run.finished"
#define ASKED   "text.message.end tool.call interaction.request run.finished"
#define REFUSED "text.message.end tool.call tool.call.result"

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
    expect(desk, "the answer", SETTLED,
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
               {"plan.updated", "{\"steps\":[{\"content\":\"one\",\"doneWhen\":\"d\",\"status\":"
                                "\"running\"},{\"content\":\"two\",\"doneWhen\":\"\",\"status\":"
                                "\"pending\"}],\"current\":0}"},
           });
    assert_int_equal(graph_node(&desk.view.state), NODE_EXECUTE);
    desk_turn(&desk, "one is done", NULL, 0);
    expect(&desk, "step one", "text.message.end plan.updated",
           (struct part[PARTS_MAX]){{"plan.updated", "\"status\":\"done\",\"by\":\"model\"},"},
                                    {"plan.updated", "\"current\":1}"}});
    desk_turn(&desk, "two is done", NULL, 0);
    assert_int_equal(graph_node(&desk.view.state), NODE_DELIVER);
    desk_turn(&desk, "all is done", NULL, 0);
    expect(&desk, "the report", ENDED,
           (struct part[PARTS_MAX]){{"run.finished", "{\"outcome\":\"completed\","}});
}

#define COMPLETED "{\"outcome\":\"completed\",\"usage\""
#define EXHAUSTED "{\"outcome\":\"exhausted\",\"code\":\"budget_exhausted\","
#define STEPS     "What was planned and done:\\n- [x] one\\n- [ ] two (rejected)\""
#define BUDGET    "The budget of this run is used up."

/* How deliver ends, by what the model does there. */
static void deliver(void **state)
{
    (void)state;
    static const struct {
        enum input_kind kind;
        const char *said;
        enum err why;
        bool plan; /* its steps are done; else the rounds are used up */
        const char *text, *end;
    } rows[] = {
        {INPUT_TURN, "report", OK, true, "\"content\":\"report\"", COMPLETED},
        {INPUT_TURN, "report", OK, false, "\"content\":\"report\"", EXHAUSTED},
        {INPUT_TURN, "", OK, true, STEPS, COMPLETED},
        {INPUT_TURN, "", OK, false, BUDGET, EXHAUSTED},
        {INPUT_DOWN, "", ERR_MODEL_UNAVAILABLE, true, STEPS, COMPLETED},
        {INPUT_DOWN, "", ERR_INTERNAL, false, BUDGET, EXHAUSTED},
        {INPUT_OVERDUE, "", OK, true, BUDGET, EXHAUSTED},
    };
    static struct plan_step steps[] = {{{"one", 3}, {"", 0}, STEP_DONE, false},
                                       {{"two", 3}, {"", 0}, STEP_REJECTED, false}};
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
        desk_step(&desk, (struct input){.kind = rows[i].kind,
                                        .why = rows[i].why,
                                        .turn.text = str_c(rows[i].said)});
        expect(&desk, rows[i].text, ENDED,
               (struct part[PARTS_MAX]){{"text.message.end", rows[i].text},
                                        {"run.finished", rows[i].end}});
        assert_true(desk.last.ended);
    }
}

/* ---- what becomes of steps ---- */

static const struct call_end fine = {.result = {"{}", 2}, .model_text = {"ok", 2}};
static const struct call_end bad = {
    .failed = true, .error = {"policy_denied", 13}, .model_text = {"no", 2}}; /* its own words */

/* The calls of one turn, and how each ends: '+' runs and is done, '-' runs and fails, or a decision of
 * the person who is asked. */
struct part_call {
    const char *tool, *args;
    char end;
};
enum { STEP_TURNS_MAX = 3, STEP_CALLS_MAX = 3 };

static void make_calls(struct desk *desk, const struct part_call *calls)
{
    struct said said[STEP_CALLS_MAX] = {0};
    size_t count = 0;
    for (; count < STEP_CALLS_MAX && calls[count].tool; count++)
        said[count] = (struct said){calls[count].tool, calls[count].args};
    desk_turn(desk, "", said, count);
    for (size_t i = count;
         i-- > 0;) { /* the last is settled first: their order in the turn counts */
        char id[16];
        snprintf(id, sizeof id, "call_%zu", i + 1);
        static const struct {
            char end;
            enum decision decision;
        } decisions[] = {{'a', DECISION_APPROVE}, {'r', DECISION_REJECT}, {'s', DECISION_RESPOND},
                         {'c', DECISION_CANCEL},  {'e', DECISION_EXPIRE}, {'q', DECISION_ANSWER}};
        for (size_t n = 0; n < COUNT(decisions); n++)
            if (calls[i].end == decisions[n].end)
                desk_settle(desk, desk->view.open.count - 1,
                            (struct resolution){.decision = decisions[n].decision,
                                                .text = STR("x"),
                                                .answer = STR("{}")});
        if (desk_row(desk, id)->state == CALL_APPROVED)
            desk_step(desk, (struct input){.kind = INPUT_START});
        if (calls[i].end == '+' || calls[i].end == 'a') desk_result(desk, id, fine);
        if (calls[i].end == '-') desk_result(desk, id, bad);
    }
    desk_step(desk, (struct input){.kind = INPUT_SHOW});
}

#define READ   "calendar_read", "{}"
#define WRITE  "calendar_write", TITLE
#define ORDER  "place_order", TITLE
#define LAUNCH "launch", TITLE
#define ASK    "ask_user", "{\"question\":\"a\"}"

static const struct {
    const char *what;
    struct part_call turns[STEP_TURNS_MAX][STEP_CALLS_MAX];
    const char *moved,
        *ended; /* the step's word when the model moves on, when the run is cancelled */
} steps_cases[] = {
    {"nothing", {{{0}}}, "\"done\",\"by\":\"model\"", "\"skipped\""},
    {"a question", {{{ASK, 'q'}}}, "\"done\",\"by\":\"model\"", "\"skipped\""},
    {"a question that nobody answers", {{{ASK, 'c'}}}, "\"done\",\"by\":\"model\"", "\"skipped\""},
    {"a call", {{{ORDER, '+'}}}, "\"done\"}", "\"done\"}"},
    {"an approved one", {{{WRITE, 'a'}}}, "\"done\"}", "\"done\"}"},
    {"a rejected one", {{{WRITE, 'r'}}}, "\"rejected\"", "\"rejected\""},
    {"words instead", {{{WRITE, 's'}}}, "\"rejected\"", "\"rejected\""},
    {"a cancelled one", {{{WRITE, 'c'}}}, "\"rejected\"", "\"rejected\""},
    {"an expired one", {{{WRITE, 'e'}}}, "\"rejected\"", "\"rejected\""},
    {"a denied one", {{{LAUNCH, ' '}}}, "\"rejected\"", "\"rejected\""},
    {"a failed one", {{{ORDER, '-'}}}, "\"failed\"", "\"failed\""},
    {"one that is no tool", {{{"made_up", "{}", ' '}}}, "\"failed\"", "\"failed\""},
    {"wrong arguments", {{{"place_order", "{", ' '}}}, "\"failed\"", "\"failed\""},
    {"rejected, then done", {{{WRITE, 'r'}}, {{WRITE, 'a'}}}, "\"done\"}", "\"done\"}"},
    {"done, then rejected", {{{WRITE, 'a'}}, {{WRITE, 'r'}}}, "\"rejected\"", "\"rejected\""},
    {"rejected, then another tool",
     {{{WRITE, 'r'}}, {{ORDER, '+'}}},
     "\"rejected\"",
     "\"rejected\""},
    {"failed, then another tool", {{{ORDER, '-'}}, {{WRITE, 'a'}}}, "\"failed\"", "\"failed\""},
    {"failed and rejected", {{{ORDER, '-'}, {WRITE, 'r'}}}, "\"rejected\"", "\"rejected\""},
    {"two of one turn, the second done", {{{WRITE, 'r'}, {WRITE, 'a'}}}, "\"done\"}", "\"done\"}"},
    {"two of one turn, the second rejected",
     {{{WRITE, 'a'}, {WRITE, 'r'}}},
     "\"rejected\"",
     "\"rejected\""},
    {"failed, then mended", {{{ORDER, '-'}}, {{ORDER, '+'}}}, "\"done\"}", "\"done\"}"},
};

/* The step that was left keeps its word, and nothing of it counts for the next. */
static void step_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * COUNT(steps_cases); i++) {
        bool moves = i % 2;
        AUTO(desk_done) struct desk desk;
        desk_init(&desk);
        desk_call(&desk, "submit_plan", PLAN);
        desk_answer(&desk, "{\"decision\":\"approve\"}");
        for (size_t n = 0; n < STEP_TURNS_MAX && steps_cases[i / 2].turns[n][0].tool; n++)
            make_calls(&desk, steps_cases[i / 2].turns[n]);
        AUTO(buf_done) struct buf first;
        buf_init(&first, 1024);
        buf_printf(&first, "{\"steps\":[{\"content\":\"one\",\"doneWhen\":\"d\",\"status\":%s",
                   moves ? steps_cases[i / 2].moved : steps_cases[i / 2].ended);
        buf_char(&first, '\0');
        const char *second = moves ? "\"two\",\"doneWhen\":\"\",\"status\":\"running\"}"
                                   : "\"two\",\"doneWhen\":\"\",\"status\":\"skipped\"}";
        if (moves)
            desk_turn(&desk, "that is it", NULL, 0);
        else
            desk_step(&desk, (struct input){.kind = INPUT_CANCEL});
        struct part parts[PARTS_MAX] = {{"plan.updated", first.p}, {"plan.updated", second}};
        expect(&desk, steps_cases[i / 2].what,
               moves ? "text.message.end plan.updated" : "plan.updated step.finish run.finished",
               parts);
        if (!moves) continue;
        desk_step(&desk, (struct input){.kind = INPUT_DOWN, .why = ERR_INTERNAL});
        struct part last[PARTS_MAX] = {{"plan.updated", first.p},
                                       {"plan.updated", "\"status\":\"skipped\"}],\"current\":1}"}};
        expect(&desk, steps_cases[i / 2].what, "plan.updated step.finish run.error", last);
    }
}

/* The rounds are used up in the middle of a plan: the report says what every step came to. */
static void steps_left(void **state)
{
    (void)state;
    static const struct {
        str locale;
        const char *text;
    } rows[] = {
        {STR("en"),
         BUDGET "\\n- [x] one (by model)\\n- [ ] two (rejected)\\n- [ ] three (skipped)\""},
        {STR("zh-CN"), "本次运行的预算已用完。\\n- [x] one（模型自述）\\n- [ ] "
                       "two（已拒绝）\\n- [ ] three（已跳过）\""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(desk_done) struct desk desk;
        desk_init(&desk);
        desk.view.state.locale = rows[i].locale;
        desk_call(
            &desk, "submit_plan",
            "{\"steps\":[{\"content\":\"one\"},{\"content\":\"two\"},{\"content\":\"three\"}]}");
        desk_answer(&desk, "{\"decision\":\"approve\"}");
        desk_turn(&desk, "did it", NULL, 0);
        make_calls(&desk, (struct part_call[STEP_CALLS_MAX]){{WRITE, 'r'}});
        desk_step(&desk, (struct input){.kind = INPUT_OVERDUE});
        struct part parts[PARTS_MAX] = {
            {"text.message.end", rows[i].text},
            {"plan.updated", "\"two\",\"doneWhen\":\"\",\"status\":\"rejected\""},
            {"plan.updated", "\"three\",\"doneWhen\":\"\",\"status\":\"skipped\""}};
        expect(&desk, "the budget",
               "plan.updated step.finish step.start text.message.end step.finish run.finished",
               parts);
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
        cmocka_unit_test(plan_to_its_end),
        cmocka_unit_test(deliver),
        cmocka_unit_test(step_words),
        cmocka_unit_test(steps_left),
        cmocka_unit_test(model_away),
        cmocka_unit_test(model_refuses),
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
