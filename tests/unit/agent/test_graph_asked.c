/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that need somebody on the way: questions of tools, and servers that stay away.
 */
#include "agent/core/asked.h"
#include "agent/core/front.h"
#include "base/limits.h"
#include "check.h"
#include "graph_kit.h"

#define FORM                                                                                       \
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]" \
    "}"
#define ASKED_FACTS "interaction.request run.finished"

static const struct tool_question form = {
    .id = STR("q"), .message = STR("Your name?"), .schema = STR(FORM)};
static const struct tool_question page = {
    .id = STR("u"), .message = STR("Sign in"), .url = STR("https://example.org/login")};

static void start(struct desk *desk, const char *tool)
{
    desk_init(desk);
    desk_call(desk, tool, TITLE);
    expect_call(desk, "started", "call_1", CALL_STARTED, "");
}

static const struct outcome *ask(struct desk *desk, const struct tool_question *question,
                                 size_t first, bool ended)
{
    struct tool_asked *asked = ARENA_NEW(&desk->arena, struct tool_asked);
    *asked = (struct tool_asked){
        .questions = question, .count = 1, .first = first, .ended = ended, .state = STR("s1")};
    if (!ended) asked->state = STR_EMPTY;
    return desk_step(desk,
                     (struct input){.kind = INPUT_ASKED, .call_id = STR("call_1"), .asked = asked});
}

static struct asked asked_now(struct desk *desk)
{
    struct asked asked;
    assert_int_equal(asked_parse(&desk->arena, desk_row(desk, "call_1")->asked, &asked), OK);
    return asked;
}

/* On the line: the call stays started while the run waits, and its reply is in the row. */
static void on_the_line(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    start(&desk, "place_order");
    ask(&desk, &form, 0, false);
    expect(&desk, "asked", ASKED_FACTS,
           (struct part[PARTS_MAX]){{"interaction.request", "\"type\":\"ask_user\""},
                                    {"run.finished", "\"outcome\":\"interrupted\""}});
    assert_int_equal(desk.last.status, RUN_WAITING);
    expect_call(&desk, "on the line", "call_1", CALL_STARTED, "");
    assert_int_equal(graph_effect(&desk.view), EFFECT_NONE);

    desk_answer(&desk, "{\"fields\":{\"name\":\"Ada\"}}");
    assert_int_equal(desk.last.status, RUN_RUNNING);
    expect_call(&desk, "answered", "call_1", CALL_STARTED, "");
    struct asked asked = asked_now(&desk);
    assert_int_equal(asked.count, 1);
    assert_str(asked.rows[0].said.reply.action, STR("accept"));
    assert_str(asked.rows[0].said.reply.content, STR("{\"name\":\"Ada\"}"));

    desk_result(&desk, "call_1", (struct call_end){.result = STR("1"), .model_text = STR("1")});
    desk_step(&desk, (struct input){.kind = INPUT_SHOW});
    expect_call(&desk, "done", "call_1", CALL_DONE, "");
    assert_int_equal(graph_effect(&desk.view), EFFECT_MODEL);
}

/* What is asked again in the same place after a restart is the same question. */
static void asked_again(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    start(&desk, "place_order");
    ask(&desk, &form, 0, false);
    str id = desk.view.open.rows[0].id;
    ask(&desk, &form, 0, false);
    assert_int_equal(desk.last.fact_count, 0);
    assert_int_equal(desk.last.status, RUN_WAITING);
    assert_str(desk.view.open.rows[0].id, id);
    /* Something else in its place: the first one lapses. */
    ask(&desk, &page, 0, false);
    expect(&desk, "another", "run.started interaction.resolved " ASKED_FACTS,
           (struct part[PARTS_MAX]){{"interaction.resolved", "\"status\":\"superseded\""},
                                    {"interaction.request", "https://example.org/login"}});
    assert_int_equal(desk.view.open.count, 1);
    assert_int_equal(asked_now(&desk).count, 1);
}

/* The call ends with its question, and starts again with the replies. */
static void ended_with_it(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    start(&desk, "place_order");
    ask(&desk, &page, 0, true);
    expect(&desk, "asked", ASKED_FACTS, (struct part[PARTS_MAX]){{0}});
    expect_call(&desk, "waits", "call_1", CALL_WAITING, "");
    assert_false(front_waits(desk_row(&desk, "call_1")));
    assert_int_equal(graph_effect(&desk.view), EFFECT_NONE);
    desk_answer(&desk, "{\"choices\":[\"c1\"]}");
    expect_call(&desk, "may start", "call_1", CALL_APPROVED, "");
    assert_int_equal(graph_effect(&desk.view), EFFECT_START);
    desk_step(&desk, (struct input){.kind = INPUT_START});
    expect_call(&desk, "again", "call_1", CALL_STARTED, "");
    struct asked asked = asked_now(&desk);
    assert_str(asked.state, STR("s1"));
    assert_str(asked.rows[0].said.reply.action, STR("accept"));
    assert_int_equal(asked.rows[0].said.reply.content.len, 0);
    /* The next round takes the place of the first. */
    ask(&desk, &form, 0, true);
    asked = asked_now(&desk);
    assert_int_equal(asked.count, 1);
    assert_str(asked.rows[0].said.question.id, STR("q"));
}

/* What it asks on the line after that begins a new list: a later start must not be given the old state. */
static void line_after_end(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    start(&desk, "place_order");
    ask(&desk, &page, 0, true);
    desk_answer(&desk, "{\"choices\":[\"c1\"]}");
    desk_step(&desk, (struct input){.kind = INPUT_START});
    ask(&desk, &form, 0, false);
    expect_call(&desk, "on the line", "call_1", CALL_STARTED, "");
    struct asked asked = asked_now(&desk);
    assert_int_equal(asked.state.len, 0);
    assert_int_equal(asked.count, 1);
    assert_str(asked.rows[0].said.question.id, STR("q"));
    assert_int_equal(asked.rows[0].said.reply.action.len, 0);
}

static void other_replies(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const struct tool_question *question;
        enum decision decision;
        const char *text, *answer, *action;
    } rows[] = {
        {"declined page", &page, DECISION_ANSWER, "Do not", "{\"choices\":[\"c2\"]}", "decline"},
        {"page by its label", &page, DECISION_ANSWER, "Done", "{\"answer\":\"Done\"}", "accept"},
        {"skipped form", &form, DECISION_SKIP, "skipped", "{\"skip\":true}", "decline"},
        {"cancelled", &form, DECISION_CANCEL, "", "", "cancel"},
        {"expired", &form, DECISION_EXPIRE, "", "", "cancel"},
        {"no JSON", &form, DECISION_ANSWER, "", "x", "decline"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(desk_done) struct desk desk;
        start(&desk, "place_order");
        ask(&desk, rows[i].question, 0, false);
        desk_settle(&desk, 0,
                    (struct resolution){.decision = rows[i].decision,
                                        .text = str_c(rows[i].text),
                                        .answer = str_c(rows[i].answer)});
        struct asked asked = asked_now(&desk);
        if (!str_eq(asked.rows[0].said.reply.action, str_c(rows[i].action)))
            fail_msg("%s: %.*s", rows[i].name, STR_ARG(asked.rows[0].said.reply.action));
        expect_call(&desk, rows[i].name, "call_1", CALL_STARTED, "");
    }
}

/* A write that is lost while it asks: nobody knows, and the question goes along. */
static void lost_while_asking(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    start(&desk, "place_order");
    desk_row(&desk, "call_1")->write = true;
    ask(&desk, &form, 0, false);
    desk_step(&desk, (struct input){.kind = INPUT_LOST, .call_id = STR("call_1")});
    expect(&desk, "lost", "run.started interaction.resolved interaction.request run.finished",
           (struct part[PARTS_MAX]){{"interaction.resolved", "superseded"},
                                    {"interaction.request", "\"type\":\"uncertain\""},
                                    {"interaction.request", "It was asking: Your name?"},
                                    {"interaction.request", "\"question\":\"Your name?\""}});
    expect_call(&desk, "uncertain", "call_1", CALL_UNCERTAIN, "");
    assert_int_equal(desk.view.open.count, 1);
}

/* A question that was closed without an answer is asked anew when the call is started again. */
static void asked_anew(void **state)
{
    (void)state;
    static const struct {
        enum input_kind end;
        const char *decision;
    } rows[] = {
        {INPUT_LOST, "{\"decision\":\"retry\"}"},
        {INPUT_AWAY, "{\"decision\":\"continue\"}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(desk_done) struct desk desk;
        start(&desk, "place_order");
        desk_row(&desk, "call_1")->write = true;
        ask(&desk, &form, 0, false);
        desk_step(&desk, (struct input){.kind = rows[i].end, .call_id = STR("call_1")});
        desk_answer(&desk, rows[i].decision);
        desk_step(&desk, (struct input){.kind = INPUT_START});
        expect_call(&desk, "again", "call_1", CALL_STARTED, "");
        assert_int_equal(desk.view.open.count, 0);
        ask(&desk, &form, 0, false);
        assert_int_equal(desk.view.open.count, 1);
        assert_int_equal(desk.last.status, RUN_WAITING);
        desk_answer(&desk, "{\"fields\":{\"name\":\"Ada\"}}");
        assert_int_equal(asked_now(&desk).count, 1);
        assert_str(asked_now(&desk).rows[0].said.reply.action, STR("accept"));
    }
}

/* A place that nothing was kept for leaves the next question no less asked. */
static void place_left_out(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    start(&desk, "place_order");
    ask(&desk, &form, 0, false);
    ask(&desk, &page, 2, false);
    assert_int_equal(desk.view.open.count, 2);
    struct asked asked = asked_now(&desk);
    assert_int_equal(asked.count, 3);
    assert_str(asked.rows[1].said.reply.action, STR("decline"));
    assert_int_equal(asked.rows[2].said.reply.action.len, 0);
    assert_true(asked.rows[2].interaction_id.len > 0);
}

/* Sent back again and again with questions that nobody can be asked: it comes to an end. */
static void endless(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    start(&desk, "place_order");
    static const struct tool_question hidden = {
        .id = STR("h"), .message = STR("?"), .schema = STR("{\"type\":\"string\"}")};
    unsigned rounds = 0;
    while (desk_row(&desk, "call_1")->state == CALL_STARTED && rounds <= QUESTIONS_CALL_MAX) {
        ask(&desk, &hidden, 0, true);
        rounds++;
        if (desk_row(&desk, "call_1")->state == CALL_APPROVED)
            desk_step(&desk, (struct input){.kind = INPUT_START});
    }
    assert_int_equal(rounds, QUESTIONS_CALL_MAX);
    expect_call(&desk, "stopped", "call_1", CALL_FAILED, "too_many_questions");
    assert_int_equal(graph_effect(&desk.view), EFFECT_MODEL);
}

/* The tool loses patience: its question lapses, the result counts. */
static void ends_while_asking(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    start(&desk, "place_order");
    ask(&desk, &form, 0, false);
    desk_result(&desk, "call_1",
                (struct call_end){.failed = true, .error = STR("x"), .model_text = STR("x")});
    expect(&desk, "ended", "run.started interaction.resolved", (struct part[PARTS_MAX]){{0}});
    assert_int_equal(desk.view.open.count, 0);
    desk_step(&desk, (struct input){.kind = INPUT_SHOW});
    expect_call(&desk, "failed", "call_1", CALL_FAILED, "x");
    assert_int_equal(graph_effect(&desk.view), EFFECT_MODEL);
}

/* The run is cancelled while the call is on the line: it hears of it, and its end is waited for. */
static void cancelled_while_asking(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    start(&desk, "place_order");
    ask(&desk, &form, 0, false);
    desk_step(&desk, (struct input){.kind = INPUT_CANCEL});
    assert_int_equal(desk.last.status, RUN_CANCELLING);
    assert_false(desk.last.ended);
    assert_str(asked_now(&desk).rows[0].said.reply.action, STR("cancel"));
    desk.view.cancelling = true;
    ask(&desk, &page, 1, false); /* nobody is asked any more, and it hears of that too */
    assert_int_equal(desk.view.open.count, 0);
    assert_str(asked_now(&desk).rows[1].said.reply.action, STR("cancel"));
    desk_result(&desk, "call_1", (struct call_end){.model_text = STR("x")});
    desk_step(&desk, (struct input){.kind = INPUT_SHOW});
    assert_true(desk.last.ended);
    assert_int_equal(desk.last.status, RUN_CANCELLED);
}

static void away(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        enum call_state state;
        const char *error;
        enum effect effect;
    } rows[] = {
        {"{\"decision\":\"continue\"}", CALL_APPROVED, "", EFFECT_START},
        {"{\"decision\":\"give_up\"}", CALL_FAILED, "tool_unavailable", EFFECT_MODEL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(desk_done) struct desk desk;
        start(&desk, "place_order");
        desk_step(&desk, (struct input){.kind = INPUT_AWAY,
                                        .call_id = STR("call_1"),
                                        .why_text = STR("no such\xe2\x80\xae program")});
        expect(&desk, "away", ASKED_FACTS,
               (struct part[PARTS_MAX]){
                   {"interaction.request", "\"type\":\"connection_lost\""},
                   {"interaction.request", "\"toolCallId\":\"call_1\""},
                   {"interaction.request", "no such⟦U+202E⟧ program"},
               });
        expect_call(&desk, "waits", "call_1", CALL_WAITING, "");
        assert_false(front_waits(desk_row(&desk, "call_1")));
        desk_answer(&desk, rows[i].body);
        expect_call(&desk, rows[i].body, "call_1", rows[i].state, rows[i].error);
        assert_false(desk.last.ended);
        assert_int_equal(graph_effect(&desk.view), rows[i].effect);
    }
}

/* More than a run may have open are told no, and a row that cannot be read is as none. */
static void limits(void **state)
{
    (void)state;
    AUTO(desk_done) struct desk desk;
    start(&desk, "place_order");
    for (size_t i = 0; i < QUESTIONS_OPEN_MAX + 1; i++) {
        struct tool_question question = form;
        question.message = arena_printf(&desk.arena, "number %zu", i);
        struct tool_question *kept = ARENA_NEW(&desk.arena, struct tool_question);
        *kept = question;
        ask(&desk, kept, i, false);
    }
    struct asked asked = asked_now(&desk);
    assert_int_equal(asked.count, QUESTIONS_OPEN_MAX + 1);
    assert_int_equal(asked.rows[QUESTIONS_OPEN_MAX - 1].said.reply.action.len, 0);
    assert_str(asked.rows[QUESTIONS_OPEN_MAX].said.reply.action, STR("decline"));
    assert_int_equal(desk.view.open.count, QUESTIONS_OPEN_MAX);
    static const char *const damaged[] = {"x", "{}", "[]", "{\"questions\":{}}",
                                          "{\"questions\":[1]}"};
    for (size_t i = 0; i < COUNT(damaged); i++)
        assert_int_equal(asked_parse(&desk.arena, str_c(damaged[i]), &asked), ERR_DAMAGED);
}

int test_graph_asked(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_the_line),
        cmocka_unit_test(asked_again),
        cmocka_unit_test(ended_with_it),
        cmocka_unit_test(line_after_end),
        cmocka_unit_test(other_replies),
        cmocka_unit_test(lost_while_asking),
        cmocka_unit_test(asked_anew),
        cmocka_unit_test(place_left_out),
        cmocka_unit_test(endless),
        cmocka_unit_test(ends_while_asking),
        cmocka_unit_test(cancelled_while_asking),
        cmocka_unit_test(away),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests_name("agent/graph and questions of tools", tests, NULL, NULL);
}
