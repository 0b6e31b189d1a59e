/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/graph.h"

#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "check.h"

enum { PRINTED_BYTES_MAX = 64 * 1024 * 1024 };

static const msec now = 1794722770123; /* 2026-11-15T06:06:10.123Z */

static const struct start fresh = {
    .run_id = {"r1", 2},
    .task_id = {"task_a", 6},
    .owner = {"local", 5},
    .thread_id = {"t1", 2},
    .agent = {"assistant", 9},
    .model = {"demo", 4},
    .leg = 1,
    .now = 1794722770000,
};

/* An outcome as lines: status, facts, history rows. Everything that would be stored is in it. */
static void print_outcome(struct buf *out, const struct outcome *o)
{
    buf_printf(out, "%d%s\n", (int)o->status, o->ended ? " ended" : "");
    for (size_t i = 0; i < o->fact_count; i++) {
        const struct fact *fact = &o->facts[i];
        buf_printf(out, "%s %lld ", fact->type, (long long)fact->at);
        buf_append(out, fact->run_id);
        buf_char(out, ' ');
        buf_append(out, fact->data);
        buf_char(out, '\n');
    }
    for (size_t i = 0; i < o->message_count; i++) {
        buf_printf(out, "%lld ", (long long)o->messages[i].seq);
        message_write(out, &o->messages[i]);
        buf_char(out, '\n');
    }
    state_write(out, &o->state);
    assert_false(out->full);
}

static str types_of(struct arena *arena, const struct outcome *o)
{
    AUTO(buf_done) struct buf types;
    buf_init(&types, 1024);
    for (size_t i = 0; i < o->fact_count; i++)
        buf_printf(&types, "%s%s", i ? " " : "", o->facts[i].type);
    return arena_str(arena, buf_str(&types));
}

static struct state started(struct arena *arena)
{
    struct outcome o;
    graph_start(arena, &fresh, &o);
    return o.state;
}

static struct input turn_of(str text)
{
    return (struct input){
        .kind = INPUT_TURN,
        .now = now,
        .turn = {.message_id = STR("m1"), .text = text, .usage = {412, 31}},
    };
}

static void start(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct outcome o;
    graph_start(&arena, &fresh, &o);
    assert_int_equal(o.fact_count, 2);
    assert_int_equal(o.message_count, 0);
    assert_int_equal(o.status, RUN_RUNNING);
    assert_false(o.ended);
    assert_str(types_of(&arena, &o), STR("run.started step.start"));
    assert_str(o.facts[0].data, STR("{\"taskId\":\"task_a\",\"leg\":1,\"resumed\":false,"
                                    "\"agent\":\"assistant\",\"model\":\"demo\"}"));
    assert_str(o.facts[1].data, STR("{\"stepName\":\"intent\",\"index\":0,\"total\":3}"));
    assert_str(o.facts[1].run_id, STR("r1"));
    assert_int_equal(o.facts[1].at, fresh.now);
    assert_int_equal(o.state.phase, PHASE_CHATTING);
    assert_int_equal(o.state.stage, STAGE_INTENT);
    assert_int_equal(o.state.max_rounds, 30);
    assert_str(o.state.trace_id, STR("r1"));
    assert_str(o.state.user_id, STR("local"));
    assert_str(o.state.conversation_id, STR("t1"));
    assert_int_equal(graph_effect(&o.state), EFFECT_MODEL);

    struct start resumed = fresh;
    resumed.leg = 2;
    resumed.resumed = true;
    resumed.max_rounds = 7;
    graph_start(&arena, &resumed, &o);
    assert_str(o.facts[0].data, STR("{\"taskId\":\"task_a\",\"leg\":2,\"resumed\":true,"
                                    "\"agent\":\"assistant\",\"model\":\"demo\"}"));
    assert_int_equal(o.state.max_rounds, 7);
}

#define ANSWERED  "step.finish step.start text.message.end step.finish run.finished"
#define REASONED  "step.finish step.start reasoning.end text.message.end step.finish run.finished"
#define FAILED    "step.finish run.error"
#define CANCELLED "step.finish run.finished"

/* Every input: which facts, in which order, how many rows, what the run is then. */
static void inputs(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct input input;
        const char *types;
        size_t messages;
        enum run_status status;
        const char *last; /* part of the last fact */
    } rows[] = {
        {"text", {.turn = {.text = {"hi", 2}}}, ANSWERED, 1, RUN_COMPLETED, "\"completed\""},
        {"no text", {.turn = {.text = {"", 0}}}, ANSWERED, 1, RUN_COMPLETED, "\"completed\""},
        {"reasoning",
         {.turn = {.text = {"hi", 2}, .reasoning = {"so", 2}}},
         REASONED,
         2,
         RUN_COMPLETED,
         "\"completed\""},
        {"only reasoning",
         {.turn = {.reasoning = {"so", 2}}},
         REASONED,
         2,
         RUN_COMPLETED,
         "\"completed\""},
        {"a call",
         {.turn = {.text = {"hi", 2}, .call_count = 1}},
         FAILED,
         0,
         RUN_FAILED,
         "{\"code\":\"model_error\","},
        {"text that is none",
         {.turn = {.text = {"\xff", 1}}},
         FAILED,
         0,
         RUN_FAILED,
         "{\"code\":\"model_error\","},
        {"reasoning that is no text",
         {.turn = {.text = {"hi", 2}, .reasoning = {"\xc3", 1}}},
         FAILED,
         0,
         RUN_FAILED,
         "{\"code\":\"model_error\","},
        {"model away",
         {.kind = INPUT_DOWN, .why = ERR_MODEL_UNAVAILABLE, .why_text = {"gone", 4}},
         FAILED,
         0,
         RUN_FAILED,
         "{\"code\":\"model_unavailable\",\"message\":\"gone\",\"retryable\":true}"},
        {"model away, no reason",
         {.kind = INPUT_DOWN, .why = ERR_MODEL_UNAVAILABLE},
         FAILED,
         0,
         RUN_FAILED,
         "{\"code\":\"model_unavailable\",\"message\":\"Model unavailable\",\"retryable\":true}"},
        {"model away, reason that is no text",
         {.kind = INPUT_DOWN, .why = ERR_MODEL_UNAVAILABLE, .why_text = {"\xff", 1}},
         FAILED,
         0,
         RUN_FAILED,
         "\"message\":\"Model unavailable\""},
        {"model refuses",
         {.kind = INPUT_DOWN, .why = ERR_INTERNAL, .why_text = {"bad key", 7}},
         FAILED,
         0,
         RUN_FAILED,
         "{\"code\":\"model_error\",\"message\":\"bad key\",\"retryable\":false}"},
        {"model away in mid-answer",
         {.kind = INPUT_DOWN, .why = ERR_MODEL_UNAVAILABLE, .turn = {.text = {"par", 3}}},
         FAILED,
         0,
         RUN_FAILED,
         "\"model_unavailable\""},
        {"cancel before text",
         {.kind = INPUT_CANCEL},
         CANCELLED,
         0,
         RUN_CANCELLED,
         "{\"outcome\":\"cancelled\","},
        {"cancel in mid-answer",
         {.kind = INPUT_CANCEL, .turn = {.text = {"par", 3}}},
         "text.message.end " CANCELLED,
         1,
         RUN_CANCELLED,
         "{\"outcome\":\"cancelled\","},
        {"cancel while reasoning",
         {.kind = INPUT_CANCEL, .turn = {.reasoning = {"so", 2}}},
         CANCELLED,
         0,
         RUN_CANCELLED,
         "{\"outcome\":\"cancelled\","},
        {"cancel behind reasoning",
         {.kind = INPUT_CANCEL, .turn = {.text = {"par", 3}, .reasoning = {"so", 2}}},
         "reasoning.end text.message.end " CANCELLED,
         2,
         RUN_CANCELLED,
         "{\"outcome\":\"cancelled\","},
        {"cancel within a call",
         {.kind = INPUT_CANCEL, .turn = {.text = {"par", 3}, .call_count = 1}},
         "text.message.end " CANCELLED,
         1,
         RUN_CANCELLED,
         "{\"outcome\":\"cancelled\","},
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct state before = started(&arena);
        struct outcome o;
        graph_step(&arena, &before, &rows[i].input, &o);
        str types = types_of(&arena, &o);
        if (!str_eq(types, str_c(rows[i].types)))
            fail_msg("%s: got \"%.*s\", expected \"%s\"", rows[i].name, STR_ARG(types),
                     rows[i].types);
        assert_int_equal(o.message_count, rows[i].messages);
        assert_int_equal(o.status, rows[i].status);
        assert_true(o.ended);
        assert_int_equal(o.state.phase, PHASE_DONE);
        assert_int_equal(graph_effect(&o.state), EFFECT_NONE);
        str last = o.facts[o.fact_count - 1].data;
        if (str_find(last, str_c(rows[i].last)) < 0)
            fail_msg("%s: no %s in %.*s", rows[i].name, rows[i].last, STR_ARG(last));
        /* A row stands where its own fact stands. */
        for (size_t m = 0; m < o.message_count; m++) {
            const char *type = o.facts[o.messages[m].seq - 1].type;
            bool reasoning = str_eq(o.messages[m].role, STR("reasoning"));
            assert_string_equal(type, reasoning ? "reasoning.end" : "text.message.end");
        }
    }
}

/* What is stored for the main paths, byte for byte. */
static void bytes(void **state)
{
    (void)state;
    static const struct {
        struct input input;
        const char *expected;
    } rows[] = {
        {{.turn = {.text = {"好的 \"x\"", 10}, .message_id = {"m1", 2}, .usage = {412, 31}}},
         "4 ended\n"
         "step.finish 1794722770123 r1 {\"stepName\":\"intent\",\"index\":0,\"total\":3}\n"
         "step.start 1794722770123 r1 {\"stepName\":\"report\",\"index\":2,\"total\":3}\n"
         "text.message.end 1794722770123 r1 {\"messageId\":\"m1\",\"content\":\"好的 \\\"x\\\"\","
         "\"workerAgentOutput\":{\"answer\":\"好的 \\\"x\\\"\"},\"inputTokens\":412,"
         "\"outputTokens\":31,\"cost\":0,\"currency\":\"USD\"}\n"
         "step.finish 1794722770123 r1 {\"stepName\":\"report\",\"index\":2,\"total\":3}\n"
         "run.finished 1794722770123 r1 {\"outcome\":\"completed\",\"usage\":{\"inputTokens\":412,"
         "\"outputTokens\":31,\"cost\":0,\"currency\":\"USD\"}}\n"
         "3 {\"id\":\"m1\",\"role\":\"assistant\",\"content\":\"好的 \\\"x\\\"\",\"metadata\":"
         "{\"run_id\":\"r1\",\"stage\":\"report\",\"task_id\":\"task_a\"},"
         "\"createdAt\":\"2026-11-15T06:06:10.123Z\",\"usage\":{\"inputTokens\":412,"
         "\"outputTokens\":31,\"cost\":0,\"currency\":\"USD\"}}\n"
         "{\"version\":1,\"common_state\":{\"trace_id\":\"r1\",\"user_id\":\"local\","
         "\"conversation_id\":\"t1\",\"task_id\":\"task_a\",\"phase\":\"done\","
         "\"stage\":\"report\",\"plan_steps\":[],\"current_step\":0,\"max_rounds\":30,"
         "\"round_used\":0,\"consecutive_corrections\":0,\"input_tokens\":412,"
         "\"output_tokens\":31},\"interaction_ids\":[],\"call_ids\":[],"
         "\"context\":{\"from_message\":0}}"},
        {{.kind = INPUT_CANCEL,
          .random = {[15] = 1},
          .turn = {.text = {"par", 3}, .reasoning = {"so", 2}}},
         "5 ended\n"
         "reasoning.end 1794722770123 r1 {\"messageId\":\"00000000000000000000000001\","
         "\"content\":\"so\"}\n"
         "text.message.end 1794722770123 r1 {\"messageId\":\"00000000000000000000000001\","
         "\"content\":\"par\",\"workerAgentOutput\":{\"answer\":\"par\"},\"inputTokens\":0,"
         "\"outputTokens\":0,\"cost\":0,\"currency\":\"USD\",\"stopped\":true}\n"
         "step.finish 1794722770123 r1 {\"stepName\":\"intent\",\"index\":0,\"total\":3}\n"
         "run.finished 1794722770123 r1 {\"outcome\":\"cancelled\",\"usage\":{\"inputTokens\":0,"
         "\"outputTokens\":0,\"cost\":0,\"currency\":\"USD\"}}\n"
         "1 {\"id\":\"00000000000000000000000001-reasoning\",\"role\":\"reasoning\","
         "\"content\":\"so\",\"metadata\":{\"run_id\":\"r1\",\"stage\":\"intent\","
         "\"task_id\":\"task_a\",\"stopped\":true},\"createdAt\":\"2026-11-15T06:06:10.123Z\"}\n"
         "2 {\"id\":\"00000000000000000000000001\",\"role\":\"assistant\",\"content\":\"par\","
         "\"metadata\":{\"run_id\":\"r1\",\"stage\":\"intent\",\"task_id\":\"task_a\","
         "\"stopped\":true},\"createdAt\":\"2026-11-15T06:06:10.123Z\",\"usage\":"
         "{\"inputTokens\":0,\"outputTokens\":0,\"cost\":0,\"currency\":\"USD\"}}\n"
         "{\"version\":1,\"common_state\":{\"trace_id\":\"r1\",\"user_id\":\"local\","
         "\"conversation_id\":\"t1\",\"task_id\":\"task_a\",\"phase\":\"done\","
         "\"stage\":\"intent\",\"plan_steps\":[],\"current_step\":0,\"max_rounds\":30,"
         "\"round_used\":0,\"consecutive_corrections\":0,\"input_tokens\":0,"
         "\"output_tokens\":0},\"interaction_ids\":[],\"call_ids\":[],"
         "\"context\":{\"from_message\":0}}"},
    };
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf printed;
    arena_init(&arena);
    buf_init(&printed, PRINTED_BYTES_MAX);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct input input = rows[i].input;
        input.now = now;
        struct state before = started(&arena);
        struct outcome o;
        graph_step(&arena, &before, &input, &o);
        buf_clear(&printed);
        print_outcome(&printed, &o);
        assert_str(buf_str(&printed), str_c(rows[i].expected));
    }
}

/* The same state and input give the same bytes, in another arena and at another place in memory,
 * and with the state read back from its snapshot. */
static void deterministic(void **state)
{
    (void)state;
    AUTO(buf_done) struct buf first, second, snapshot;
    buf_init(&first, PRINTED_BYTES_MAX);
    buf_init(&second, PRINTED_BYTES_MAX);
    buf_init(&snapshot, STATE_BYTES_MAX);
    for (unsigned kind = INPUT_TURN; kind <= INPUT_CANCEL; kind++) {
        AUTO(arena_done) struct arena a, b;
        arena_init(&a);
        arena_init(&b);
        buf_clear(&first);
        buf_clear(&second);
        buf_clear(&snapshot);
        struct input input = turn_of(STR("hello"));
        input.kind = (enum input_kind)kind;
        input.turn.message_id = STR_EMPTY;
        input.turn.reasoning = STR("so");
        input.why = ERR_MODEL_UNAVAILABLE;
        memset(input.random, 0xa5, sizeof input.random);

        struct state before = started(&a), loaded;
        state_write(&snapshot, &before);
        assert_int_equal(state_parse(&b, buf_str(&snapshot), &loaded, NULL), OK);
        struct outcome o;
        graph_step(&a, &before, &input, &o);
        print_outcome(&first, &o);
        graph_step(&b, &loaded, &input, &o);
        print_outcome(&second, &o);
        assert_str(buf_str(&second), buf_str(&first));
    }
}

/* A message without an id of its own gets one from the random bytes, another for other bytes. */
static void ids_from_random(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct state before = started(&arena);
    struct input input = turn_of(STR("hello"));
    input.turn.message_id = STR_EMPTY;
    input.random[15] = 31;
    struct outcome o;
    graph_step(&arena, &before, &input, &o);
    assert_str(o.messages[0].id, STR("0000000000000000000000000z"));
    input.random[15] = 30;
    graph_step(&arena, &before, &input, &o);
    assert_str(o.messages[0].id, STR("0000000000000000000000000y"));
    input.turn.message_id = STR("m9");
    graph_step(&arena, &before, &input, &o);
    assert_str(o.messages[0].id, STR("m9"));
}

static void usage_adds_up(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct state before = started(&arena);
    before.input_tokens = 1000;
    before.output_tokens = STATE_TOKENS_MAX - 1;
    struct input input = turn_of(STR("hello"));
    struct outcome o;
    graph_step(&arena, &before, &input, &o);
    assert_str(o.facts[4].data, STR("{\"outcome\":\"completed\",\"usage\":{\"inputTokens\":1412,"
                                    "\"outputTokens\":9007199254740991,\"cost\":0,"
                                    "\"currency\":\"USD\"}}"));
    /* The message has its own. */
    assert_str(o.messages[0].usage, STR("{\"inputTokens\":412,\"outputTokens\":31,\"cost\":0,"
                                        "\"currency\":\"USD\"}"));
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
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct state before = started(&arena);
        struct input input = turn_of(rows[i]);
        input.turn.reasoning = rows[i];
        struct outcome o;
        graph_step(&arena, &before, &input, &o);
        check_text(&arena, &o, rows[i]);
    }
}

/* Names that a client or an operator chose. */
static void hostile_names(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    static char longest[CONFIG_TEXT_BYTES_MAX];
    memset(longest, 2, sizeof longest);
    struct start start = fresh;
    start.agent = (str){longest, sizeof longest};
    start.model = (str){longest, sizeof longest};
    struct outcome o;
    graph_start(&arena, &start, &o);
    struct json *fact;
    assert_int_equal(json_parse(&arena, o.facts[0].data, &fact, NULL), OK);
    assert_true(str_eq(json_text(json_get(fact, STR("model"))), start.model));

    static char reason[RUN_ERROR_BYTES_MAX + 1];
    memset(reason, 3, sizeof reason);
    struct input input = {.kind = INPUT_DOWN, .why = ERR_INTERNAL};
    for (size_t over = 0; over < 2; over++) {
        input.why_text = (str){reason, RUN_ERROR_BYTES_MAX + over};
        struct outcome down;
        graph_step(&arena, &o.state, &input, &down);
        assert_int_equal(json_parse(&arena, down.facts[1].data, &fact, NULL), OK);
        str expected = over ? STR("Internal error") : input.why_text;
        assert_str(json_text(json_get(fact, STR("message"))), expected);
    }
}

/* Phases that work have an effect, those that wait for a person have none. */
static void effects(void **state)
{
    (void)state;
    static const struct {
        enum phase phase;
        enum effect effect;
    } rows[PHASE_COUNT] = {
        {PHASE_CHATTING, EFFECT_MODEL},       {PHASE_PLANNING, EFFECT_MODEL},
        {PHASE_WAITING_CONFIRM, EFFECT_NONE}, {PHASE_EXECUTING, EFFECT_MODEL},
        {PHASE_INTERRUPTED, EFFECT_NONE},     {PHASE_DONE, EFFECT_NONE},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(graph_effect(&(struct state){.phase = rows[i].phase}), rows[i].effect);
}

/* From every phase and stage that a snapshot can bring, a run ends well-formed. */
static void ends_from_anywhere(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (unsigned phase = 0; phase < PHASE_DONE; phase++) {
        for (unsigned stage = 0; stage < STAGE_COUNT; stage++) {
            struct state before = started(&arena);
            before.phase = (enum phase)phase;
            before.stage = (enum stage)stage;
            struct input input = turn_of(STR("hello"));
            struct outcome o;
            graph_step(&arena, &before, &input, &o);
            assert_str(types_of(&arena, &o), stage == STAGE_REPORT
                                                 ? STR("text.message.end step.finish run.finished")
                                                 : STR(ANSWERED));
            assert_true(o.ended);
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
        .created = now,
    };
    assert_str(fact_message_added(&arena, &message),
               STR("{\"message\":{\"id\":\"u1\",\"role\":\"user\","
                   "\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],\"metadata\":{},"
                   "\"createdAt\":\"2026-11-15T06:06:10.123Z\"}}"));
    message.tool_calls = STR("[{}]");
    message.usage = STR("{\"inputTokens\":1}");
    assert_str(fact_message_added(&arena, &message),
               STR("{\"message\":{\"id\":\"u1\",\"role\":\"user\","
                   "\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],\"toolCalls\":[{}],"
                   "\"metadata\":{},\"createdAt\":\"2026-11-15T06:06:10.123Z\","
                   "\"usage\":{\"inputTokens\":1}}}"));
}

int test_graph(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start),           cmocka_unit_test(inputs),
        cmocka_unit_test(bytes),           cmocka_unit_test(deterministic),
        cmocka_unit_test(ids_from_random), cmocka_unit_test(usage_adds_up),
        cmocka_unit_test(hostile_text),    cmocka_unit_test(hostile_names),
        cmocka_unit_test(effects),         cmocka_unit_test(ends_from_anywhere),
        cmocka_unit_test(history_rows),
    };
    return cmocka_run_group_tests_name("agent/graph", tests, NULL, NULL);
}
