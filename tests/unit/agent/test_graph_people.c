/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph and people: what they decide, what is looked at again before a call leaves, and what a
 * cancelled run leaves behind.
 */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "graph_kit.h"

/* ---- decisions ---- */

#define ORDER "place_order"

#define ASK       "{\"question\":\"q\"}"
#define SAID      "The user rejected this call and said: "
#define CANCELLED "The user did not answer; cancelled"
#define EXPIRED   "The time to answer has passed; not done"
#define UNKNOWN   "Outcome unknown; it may have happened"
#define EDITED    "{\"steps\":[{\"content\":\"z\"}]}"

/* Each decision: what becomes of the call, and what the model reads. A place_order is lost first. */
static const struct decision_row {
    const char *tool, *args;
    enum decision decision;
    const char *said; /* text, or the arguments of an edit */
    enum call_state state;
    const char *error, *model_text;
} decision_rows[] = {
    {"ask_user", ASK, DECISION_ANSWER, "yes", CALL_DONE, "", "yes"},
    {"ask_user", ASK, DECISION_SKIP, "no", CALL_DONE, "", "no"},
    {"ask_user", ASK, DECISION_CANCEL, "", CALL_CANCELLED, "cancelled", CANCELLED},
    {"ask_user", ASK, DECISION_EXPIRE, "", CALL_CANCELLED, "expired", EXPIRED},
    {"calendar_write", TITLE, DECISION_APPROVE, "", CALL_APPROVED, "", ""},
    {"calendar_write", TITLE, DECISION_EDIT, "{\"title\":\"y\"}", CALL_APPROVED, "",
     "The user changed the arguments to: {\"title\":\"y\"}"}, /* and then the result */
    {"calendar_write", TITLE, DECISION_REJECT, "", CALL_REJECTED, "rejected",
     "The user rejected this call"},
    {"calendar_write", TITLE, DECISION_REJECT, "late", CALL_REJECTED, "rejected", SAID "late"},
    {"calendar_write", TITLE, DECISION_RESPOND, "by hand", CALL_REJECTED, "", "by hand"},
    {"calendar_write", TITLE, DECISION_CANCEL, "", CALL_CANCELLED, "cancelled", CANCELLED},
    {"calendar_write", TITLE, DECISION_EXPIRE, "", CALL_CANCELLED, "expired", EXPIRED},
    {"calendar_write", TITLE, DECISION_SUPERSEDE, "", CALL_WAITING, "", ""},
    {"submit_plan", PLAN, DECISION_APPROVE, "", CALL_DONE, "", "The user approved the plan"},
    {"submit_plan", PLAN, DECISION_EDIT, EDITED, CALL_DONE, "",
     "The user changed the plan. It is now: " EDITED},
    {"submit_plan", PLAN, DECISION_REJECT, "no", CALL_REJECTED, "rejected", SAID "no"},
    {"submit_plan", PLAN, DECISION_RESPOND, "shorter", CALL_REJECTED, "", "shorter"},
    {"submit_plan", PLAN, DECISION_CANCEL, "", CALL_CANCELLED, "cancelled", CANCELLED},
    {"submit_plan", PLAN, DECISION_EXPIRE, "", CALL_CANCELLED, "expired", EXPIRED},
    {ORDER, TITLE, DECISION_RETRY, "", CALL_APPROVED, "", ""},
    {ORDER, TITLE, DECISION_HAPPENED, "", CALL_DONE, "",
     "The user confirms that it happened; its result is not known"},
    {ORDER, TITLE, DECISION_GIVE_UP, "", CALL_FAILED, "unknown_outcome", UNKNOWN},
    {ORDER, TITLE, DECISION_CANCEL, "", CALL_FAILED, "unknown_outcome", UNKNOWN},
    {ORDER, TITLE, DECISION_EXPIRE, "", CALL_FAILED, "unknown_outcome", UNKNOWN},
};

/* What follows a call that is in this state. */
static void check_what_follows(struct desk *desk, const struct decision_row *row, const char *what)
{
    bool plan = !strcmp(row->tool, "submit_plan"), adopted = plan && row->state == CALL_DONE;
    const char *types = row->state == CALL_APPROVED  ? "interaction.resolved run.started"
                        : row->state == CALL_WAITING ? "interaction.resolved run.started "
                                                       "interaction.request run.finished"
                        : adopted                    ? SETTLED " plan.updated"
                                                     : SETTLED;
    enum effect effect = row->state == CALL_APPROVED  ? EFFECT_START
                         : row->state == CALL_WAITING ? EFFECT_NONE
                                                      : EFFECT_MODEL;
    enum phase phase = row->state == CALL_WAITING ? PHASE_INTERRUPTED
                       : plan && !adopted         ? PHASE_PLANNING
                                                  : PHASE_EXECUTING;
    expect(desk, what, types, (struct part[PARTS_MAX]){{0}});
    assert_int_equal(graph_effect(&desk->view), effect);
    assert_int_equal(desk->view.state.phase, phase);
}

static void decisions(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(decision_rows); i++) {
        const struct decision_row *row = &decision_rows[i];
        AUTO(desk_done) struct desk desk;
        desk_init(&desk);
        desk_call(&desk, row->tool, row->args);
        if (!strcmp(row->tool, ORDER)) {
            desk_step(&desk, (struct input){.kind = INPUT_LOST, .call_id = STR("call_1")});
            expect(&desk, "lost", "interaction.request run.finished",
                   (struct part[PARTS_MAX]){{"interaction.request", "\"type\":\"uncertain\""}});
        }
        assert_int_equal(desk.view.state.phase, PHASE_INTERRUPTED);
        struct resolution resolution = {.decision = row->decision};
        bool edit = row->decision == DECISION_EDIT;
        *(edit ? &resolution.args : &resolution.text) = str_c(row->said);
        desk_settle(&desk, 0, resolution);
        char what[64];
        snprintf(what, sizeof what, "%s, decision %d", row->tool, row->decision);
        check_what_follows(&desk, row, what);
        expect_call(&desk, what, "call_1", row->state, row->error);
        assert_str(desk_row(&desk, "call_1")->model_text, str_c(row->model_text));
        if (edit) assert_str(desk_row(&desk, "call_1")->args, str_c(row->said));
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

/* "Retry" says that it may be sent again, not that it is approved. */
static void retry_is_no_approval(void **state)
{
    (void)state;
    static const struct policy_row confirm[] = {{{ORDER, sizeof ORDER - 1}, VERDICT_CONFIRM}};
    AUTO(desk_done) struct desk desk;
    desk_init(&desk);
    desk_call(&desk, ORDER, TITLE); /* allowed */
    desk_step(&desk, (struct input){.kind = INPUT_LOST, .call_id = STR("call_1")});
    desk_answer(&desk, "{\"decision\":\"retry\"}");
    desk.agent.policy_settings = (struct policy){.rows = confirm, .count = 1};
    desk_step(&desk, (struct input){.kind = INPUT_START});
    expect_call(&desk, "asked", "call_1", CALL_WAITING, "");
    assert_int_equal(desk.last.superseded_count, 0);
    desk_answer(&desk, "{\"decision\":\"approve\"}");
    desk_step(&desk, (struct input){.kind = INPUT_START});
    expect_call(&desk, "approved", "call_1", CALL_STARTED, "");
    assert_int_equal(desk_row(&desk, "call_1")->attempts, 2);
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

int test_graph_people(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decisions),
        cmocka_unit_test(sets),
        cmocka_unit_test(settled_twice),
        cmocka_unit_test(always),
        cmocka_unit_test(last_look),
        cmocka_unit_test(look_at_answer),
        cmocka_unit_test(both_superseded),
        cmocka_unit_test(retry_is_no_approval),
        cmocka_unit_test(lost_calls),
        cmocka_unit_test(cancel_while_waiting),
        cmocka_unit_test(cancel_while_working),
        cmocka_unit_test(cancel_in_other_moments),
    };
    return cmocka_run_group_tests_name("agent/graph and people", tests, NULL, NULL);
}
