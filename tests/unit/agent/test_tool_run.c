/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls under way, with a tool whose every word the test says.
 */
#include "agent/shell/tool_run.h"

#include <stdlib.h>

#include "agent/core/asked.h"
#include "base/limits.h"
#include "check.h"
#include "net/loop.h"
#include "tool/elicit.h"

#define CALL STR("call_1")

struct tool_call {
    struct world *world;
};

struct world {
    struct loop *loop;
    struct arena arena;
    struct tool_runs tool_runs;
    struct tool tool;
    struct tools tools;
    struct call row;
    struct tool_call call;
    const struct tool_request *request;
    void (*on_end)(void *arg, enum tool_end end, const struct tool_result *result);
    void *arg;
    unsigned starts, cancels, news, replies;
    str actions[QUESTIONS_CALL_MAX]; /* by position */
};

static struct tool_call *
start(void *self, const struct tool_request *request,
      void (*on_end)(void *arg, enum tool_end end, const struct tool_result *result), void *arg)
{
    struct world *w = self;
    w->starts++;
    w->request = request;
    w->on_end = on_end;
    w->arg = arg;
    w->call.world = w;
    return &w->call;
}

static void cancel(struct tool_call *call)
{
    call->world->cancels++;
}

static void reply(struct tool_call *call, size_t n, const struct tool_reply *reply)
{
    struct world *w = call->world;
    w->replies++;
    w->actions[n] = arena_str(&w->arena, reply->action);
}

static const struct tool_ops ops = {.start = start, .cancel = cancel, .reply = reply};

static void on_over(void *arg)
{
    ((struct world *)arg)->news++;
}

static void on_trouble(void *arg, const char *what, enum err e)
{
    (void)arg;
    fail_msg("%s: %s", what, err_title(e));
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    if (!w) return -1;
    w->loop = loop_new();
    arena_init(&w->arena);
    w->tool = (struct tool){.name = STR("t"), .holds = true, .ops = &ops, .self = w};
    w->tools = (struct tools){&w->tool, 1};
    w->row = (struct call){.call_id = CALL, .tool = STR("t"), .args = STR("{}")};
    w->tool_runs = (struct tool_runs){.loop = w->loop,
                                      .tools = &w->tools,
                                      .retry_ms = 1,
                                      .on_over = on_over,
                                      .on_trouble = on_trouble,
                                      .arg = w};
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    tool_runs_done(&w->tool_runs);
    loop_free(w->loop);
    arena_done(&w->arena);
    free(w);
    return 0;
}

static void take_off(struct world *w)
{
    tool_runs_start(&w->tool_runs, &w->row, &(struct passenger){.owner = STR("ann")});
    assert_int_equal(w->starts, 1);
}

static struct tool_question question(struct world *w, unsigned n)
{
    return (struct tool_question){.message = arena_printf(&w->arena, "number %u", n)};
}

static void ask(struct world *w, unsigned n, bool ended)
{
    struct tool_question q = question(w, n);
    w->request->on_ask(
        w->arg,
        &(struct tool_asked){.questions = &q, .count = 1, .first = ended ? 0 : n, .ended = ended});
}

/* The row as the graph would keep it, with the same reply to all that have one. */
static void answer(struct world *w, unsigned count, unsigned answered)
{
    struct asked asked = {.rows = arena_array(&w->arena, count, sizeof *asked.rows),
                          .count = count};
    for (unsigned i = 0; i < count; i++) {
        struct tool_question q = question(w, i);
        asked.rows[i].said.question = q;
        asked.rows[i].hash = elicit_hash(&w->arena, &q);
        if (i < answered) asked.rows[i].said.reply.action = STR("accept");
    }
    w->row.asked = asked_write(&w->arena, &asked);
    tool_runs_reply(&w->tool_runs, &w->row);
}

static void expect_news(struct world *w, enum input_kind kind, const char *message)
{
    struct input input = {0};
    assert_true(tool_runs_news(&w->tool_runs, &input));
    assert_int_equal(input.kind, kind);
    if (message) assert_str(input.asked->questions[0].message, str_c(message));
}

/* Asked while another waits to be saved, each has its turn, and its reply. */
static void one_after_the_other(void **state)
{
    struct world *w = *state;
    struct input input;
    take_off(w);
    for (unsigned n = 0; n < 3; n++) ask(w, n, false);
    assert_int_equal(w->replies, 0);
    expect_news(w, INPUT_ASKED, "number 0");
    tool_runs_saved(&w->tool_runs, INPUT_ASKED, CALL);
    expect_news(w, INPUT_ASKED, "number 1");
    tool_runs_saved(&w->tool_runs, INPUT_ASKED, CALL);
    expect_news(w, INPUT_ASKED, "number 2");
    tool_runs_saved(&w->tool_runs, INPUT_ASKED, CALL);
    assert_false(tool_runs_news(&w->tool_runs, &input));
    assert_false(tool_runs_busy(&w->tool_runs));
    answer(w, 3, 2);
    assert_int_equal(w->replies, 2);
    answer(w, 3, 3);
    answer(w, 3, 3);
    assert_int_equal(w->replies, 3);
    assert_true(tool_runs_busy(&w->tool_runs));
}

/* What has ended while its questions wait to be saved ends behind them. */
static void ends_behind(void **state)
{
    struct world *w = *state;
    take_off(w);
    ask(w, 0, false);
    expect_news(w, INPUT_ASKED, "number 0");
    w->on_end(w->arg, TOOL_DONE, &(struct tool_result){.result = STR("1")});
    expect_news(w, INPUT_ASKED, "number 0");
    tool_runs_saved(&w->tool_runs, INPUT_ASKED, CALL);
    expect_news(w, INPUT_RESULT, NULL);
    tool_runs_saved(&w->tool_runs, INPUT_RESULT, CALL);
    assert_false(tool_runs_any(&w->tool_runs));
    assert_int_equal(w->cancels, 0);
}

static void ends_with_one(void **state)
{
    struct world *w = *state;
    take_off(w);
    ask(w, 0, false);
    ask(w, 7, true);
    expect_news(w, INPUT_ASKED, "number 0");
    tool_runs_saved(&w->tool_runs, INPUT_ASKED, CALL);
    assert_true(tool_runs_any(&w->tool_runs));
    expect_news(w, INPUT_ASKED, "number 7");
    tool_runs_saved(&w->tool_runs, INPUT_ASKED, CALL);
    assert_false(tool_runs_any(&w->tool_runs));
}

/* More than a call may ask, or in a run that is being cancelled: no, at once. */
static void too_much(void **state)
{
    struct world *w = *state;
    take_off(w);
    ask(w, QUESTIONS_CALL_MAX - 1, false);
    struct tool_question q = question(w, 0);
    w->row.write = w->tool.write = true;
    tool_runs_let_go(&w->tool_runs, STR("en"));
    w->request->on_ask(w->arg, &(struct tool_asked){.questions = &q, .count = 1, .first = 1});
    assert_int_equal(w->replies, 1);
    assert_str(w->actions[1], STR("decline"));
}

int test_tool_run(void)
{
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_WORLD(one_after_the_other),
        WITH_WORLD(ends_behind),
        WITH_WORLD(ends_with_one),
        WITH_WORLD(too_much),
    };
#undef WITH_WORLD
    return cmocka_run_group_tests_name("agent/tool_run", tests, NULL, NULL);
}
