/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"

/* The least that loads, and a document around other members of common_state. */
#define IDS         "\"trace_id\":\"r1\",\"user_id\":\"local\",\"conversation_id\":\"t1\""
#define COMMON(...) "{\"version\":1,\"common_state\":{" IDS "," __VA_ARGS__ "}}"
#define MORE(...)   "{\"version\":1,\"common_state\":{" IDS "}," __VA_ARGS__ "}"
#define LEAST       "{\"version\":1,\"common_state\":{" IDS "}}"

static struct state full_state(void)
{
    static struct plan_step steps[] = {
        {{"find a room", 11}, {"a room is booked", 16}, STEP_DONE, true},
        {{"写邀请 \"x\"", 13}, {"", 0}, STEP_RUNNING, false},
    };
    static struct step_call ends[] = {{{"mail", 4}, STEP_REJECTED}, {{"", 0}, STEP_DONE}};
    static str interactions[] = {{"int_1", 5}, {"int_2", 5}}, calls[] = {{"call_1", 6}};
    return (struct state){
        .trace_id = STR("r1"),
        .user_id = STR("王 <w@example.org>"),
        .conversation_id = STR("t1"),
        .task_id = STR("task_a"),
        .phase = PHASE_INTERRUPTED,
        .stage = STAGE_EXECUTION,
        .plan = {steps, COUNT(steps)},
        .current_step = 1,
        .step_calls = {ends, COUNT(ends)},
        .calls_counted = 2,
        .max_rounds = UINT32_MAX,
        .round_used = 3,
        .consecutive_corrections = 2,
        .input_tokens = STATE_TOKENS_MAX,
        .output_tokens = 31,
        .cost = STATE_COST_MAX,
        .currency = STR("CNY"),
        .turns = 4,
        .active_ms = 1500,
        .leg_since = 1794722770000,
        .locale = STR("zh-CN"),
        .interaction_ids = {interactions, COUNT(interactions)},
        .call_ids = {calls, COUNT(calls)},
        .resume = {STR("execute"), PHASE_EXECUTING, 1},
        .from_message = INT64_MAX,
    };
}

#define FULL                                                                                    \
    "{\"version\":1,\"common_state\":{\"trace_id\":\"r1\",\"user_id\":\"王 <w@example.org>\"," \
    "\"conversation_id\":\"t1\",\"task_id\":\"task_a\",\"phase\":\"interrupted\","              \
    "\"stage\":\"execution\",\"plan_steps\":[{\"content\":\"find a room\","                     \
    "\"done_when\":\"a room is booked\",\"status\":\"done\",\"by\":\"model\"},"                 \
    "{\"content\":\"写邀请 \\\"x\\\"\",\"done_when\":\"\",\"status\":\"running\"}],"         \
    "\"current_step\":1,\"step_calls\":[{\"tool\":\"mail\",\"end\":\"rejected\"},"              \
    "{\"tool\":\"\",\"end\":\"done\"}],\"calls_counted\":2,\"max_rounds\":4294967295,\"round_"  \
    "used\":3,"                                                                                 \
    "\"consecutive_corrections\":2,\"input_tokens\":9007199254740991,\"output_tokens\":31,"     \
    "\"cost\":9223372036854775807,\"currency\":\"CNY\","                                        \
    "\"turns\":4,\"active_ms\":1500,\"leg_since\":1794722770000,\"locale\":\"zh-CN\"},"         \
    "\"interaction_ids\":[\"int_1\",\"int_2\"],\"call_ids\":[\"call_1\"],"                      \
    "\"resume\":{\"node\":\"execute\",\"phase\":\"executing\",\"step\":1},"                     \
    "\"context\":{\"from_message\":9223372036854775807}}"

static void written(void **state)
{
    (void)state;
    AUTO(buf_done) struct buf out;
    buf_init(&out, STATE_BYTES_MAX);
    struct state full = full_state();
    state_write(&out, &full);
    assert_str(buf_str(&out), STR(FULL));
}

/* Read and written again it is the same, also when the bytes read are gone by then. */
static void round_trip(void **state)
{
    (void)state;
    static const char *const rows[] = {FULL, LEAST, COMMON("\"phase\":\"executing\"")};
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        AUTO(buf_done) struct buf once, twice;
        arena_init(&arena);
        buf_init(&once, STATE_BYTES_MAX);
        buf_init(&twice, STATE_BYTES_MAX);
        struct state first, second;
        char *bytes = strdup(rows[i]);
        assert_int_equal(state_parse(&arena, str_c(bytes), &first, NULL), OK);
        free(bytes);
        state_write(&once, &first);
        assert_int_equal(state_parse(&arena, buf_str(&once), &second, NULL), OK);
        state_write(&twice, &second);
        assert_str(buf_str(&twice), buf_str(&once));
    }
}

static void defaults(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct state least;
    assert_int_equal(state_parse(&arena, STR(LEAST), &least, NULL), OK);
    assert_str(least.trace_id, STR("r1"));
    assert_str(least.user_id, STR("local"));
    assert_str(least.conversation_id, STR("t1"));
    assert_int_equal(least.task_id.len, 0);
    assert_int_equal(least.phase, PHASE_PLANNING);
    assert_int_equal(least.stage, STAGE_INTENT);
    assert_int_equal(least.max_rounds, 30);
    assert_int_equal(least.current_step, 0);
    assert_int_equal(least.plan.count, 0);
    assert_int_equal(least.interaction_ids.count, 0);
    assert_int_equal(least.call_ids.count, 0);
    assert_int_equal(least.resume.node.len, 0);
    assert_int_equal(least.from_message, 0);
    assert_int_equal(least.cost, 0);
    assert_int_equal(least.currency.len, 0);
}

static void rounds(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        uint32_t rounds;
    } rows[] = {
        {COMMON("\"max_rounds\":0"), 30},
        {COMMON("\"max_rounds\":-1"), 30},
        {COMMON("\"max_rounds\":-9223372036854775808"), 30},
        {COMMON("\"max_rounds\":1"), 1},
        {COMMON("\"max_rounds\":4294967295"), UINT32_MAX},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct state parsed;
        assert_int_equal(state_parse(&arena, str_c(rows[i].bytes), &parsed, NULL), OK);
        assert_int_equal(parsed.max_rounds, rows[i].rounds);
    }
}

static void trimmed(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct state parsed;
    static const char bytes[] =
        "{\"version\":1,\"common_state\":{\"trace_id\":\" r1\",\"user_id\":\"\\tlocal \","
        "\"conversation_id\":\"t1 \",\"phase\":\" interrupted \",\"stage\":\"report \","
        "\"plan_steps\":[{\"content\":\" a \"}]},\"call_ids\":[\" c1 \"],"
        "\"resume\":{\"node\":\" chat \",\"phase\":\"chatting \",\"step\":1}}";
    assert_int_equal(state_parse(&arena, str_c(bytes), &parsed, NULL), OK);
    assert_str(parsed.trace_id, STR("r1"));
    assert_str(parsed.user_id, STR("local"));
    assert_str(parsed.conversation_id, STR("t1"));
    assert_int_equal(parsed.phase, PHASE_INTERRUPTED);
    assert_int_equal(parsed.stage, STAGE_REPORT);
    assert_str(parsed.plan.steps[0].content, STR("a"));
    assert_str(parsed.call_ids.ids[0], STR("c1"));
    assert_str(parsed.resume.node, STR("chat"));
    assert_int_equal(parsed.resume.phase, PHASE_CHATTING);
}

/* A snapshot from before steps had a status: what is past is done, and calls that were not shown belong
 * to the step that runs. */
static void old_plans(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        enum step_status steps[3];
        uint32_t counted;
    } rows[] = {
        {"\"current_step\":0,\"round_used\":1}}", {STEP_RUNNING, STEP_PENDING, STEP_PENDING}, 1},
        {"\"current_step\":1,\"round_used\":4},\"call_ids\":[\"c\"]}",
         {STEP_DONE, STEP_RUNNING, STEP_PENDING},
         3},
        {"\"current_step\":3,\"round_used\":4}}", {STEP_DONE, STEP_DONE, STEP_DONE}, 4},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct state parsed;
        str bytes = arena_printf(&arena,
                                 "{\"version\":1,\"common_state\":{" IDS ",\"plan_steps\":["
                                 "{\"content\":\"a\"},{\"content\":\"b\"},{\"content\":\"c\"}],%s",
                                 rows[i].bytes);
        assert_int_equal(state_parse(&arena, bytes, &parsed, NULL), OK);
        for (size_t n = 0; n < 3; n++)
            assert_int_equal(parsed.plan.steps[n].status, rows[i].steps[n]);
        assert_int_equal(parsed.calls_counted, rows[i].counted);
    }
}

#define A43 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" /* three of them pass 128 */

/* What is wrong is named, and nothing is changed. */
static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *field, *text;
    } rows[] = {
        {"", "", "the snapshot is not JSON: "},
        {"nul", "", "the snapshot is not JSON: "},
        {LEAST " x", "", "the snapshot is not JSON: "},
        {"[]", "", "must be an object"},
        {"{}", "version", "is missing"},
        {"{\"version\":2}", "version", "2 is not known to this program, which knows 1"},
        {"{\"version\":0,\"other\":1}", "version", "0 is not known to this program"},
        {"{\"version\":18446744073709551615}", "version", "18446744073709551615 is not known"},
        {"{\"version\":\"1\"}", "version", "must be a whole number"},
        {"{\"version\":1.0}", "version", "must be a whole number"},
        {"{\"version\":-1}", "version", "must be a whole number"},
        {"{\"version\":1}", "common_state", "is missing"},
        {"{\"version\":1,\"common_state\":[]}", "common_state", "must be an object"},
        {"{\"version\":1,\"common_state\":{}}", "common_state.trace_id", "is missing"},
        {"{\"version\":1,\"common_state\":{\"trace_id\":\"r 1\"}}", "common_state.trace_id",
         "must be an id"},
        {"{\"version\":1,\"common_state\":{\"trace_id\":\" \"}}", "common_state.trace_id",
         "must be an id"},
        {"{\"version\":1,\"common_state\":{\"trace_id\":\"" A43 A43 A43 "\"}}",
         "common_state.trace_id", "must be an id"},
        {"{\"version\":1,\"common_state\":{\"trace_id\":1}}", "common_state.trace_id",
         "must be a string"},
        {"{\"version\":1,\"common_state\":{\"trace_id\":\"r1\"}}", "common_state.user_id",
         "is missing"},
        {"{\"version\":1,\"common_state\":{\"trace_id\":\"r1\",\"user_id\":\"\"}}",
         "common_state.user_id", "must have 1 to 128 bytes"},
        {"{\"version\":1,\"common_state\":{\"trace_id\":\"r1\",\"user_id\":\"" A43 A43 A43 "\"}}",
         "common_state.user_id", "must have 1 to 128 bytes"},
        {"{\"version\":1,\"common_state\":{\"trace_id\":\"r1\",\"user_id\":null}}",
         "common_state.user_id", "must be a string"},
        {"{\"version\":1,\"common_state\":{\"trace_id\":\"r1\",\"user_id\":\"u\"}}",
         "common_state.conversation_id", "is missing"},
        {COMMON("\"task_id\":\"\""), "common_state.task_id", "must be an id"},
        {COMMON("\"phase\":\"resting\""), "common_state.phase", "is none of the words"},
        {COMMON("\"phase\":\"\""), "common_state.phase", "is none of the words"},
        {COMMON("\"phase\":3"), "common_state.phase", "is none of the words"},
        {COMMON("\"phase\":\"done\""), "common_state.phase", "is done"},
        {COMMON("\"stage\":\"deliver\""), "common_state.stage", "is none of the words"},
        {COMMON("\"plan_steps\":{}"), "common_state.plan_steps", "must be an array"},
        {COMMON("\"plan_steps\":[1]"), "common_state.plan_steps", "must be an object"},
        {COMMON("\"plan_steps\":[{}]"), "common_state.plan_steps.content", "is missing"},
        {COMMON("\"plan_steps\":[{\"content\":\" \"}]"), "common_state.plan_steps.content",
         "must not be empty"},
        {COMMON("\"plan_steps\":[{\"content\":\"a\",\"done_when\":1}]"),
         "common_state.plan_steps.done_when", "must be a string"},
        {COMMON("\"plan_steps\":[{\"content\":\"a\",\"owner\":1}]"), "common_state.plan_steps",
         "has a member that is not known"},
        {COMMON("\"plan_steps\":[{\"content\":\"a\",\"by\":1}]"), "common_state.plan_steps.by",
         "is none of the words"},
        {COMMON("\"plan_steps\":[{\"content\":\"a\",\"status\":\"in_progress\"}]"),
         "common_state.plan_steps.status", "is none of the words"},
        {COMMON("\"plan_steps\":[{\"content\":\"a\",\"status\":\"done\"}]"),
         "common_state.plan_steps.status", "is not one that this step can have"},
        {COMMON("\"plan_steps\":[{\"content\":\"a\",\"status\":\"skipped\"}]"),
         "common_state.plan_steps.status", "is not one that this step can have"},
        {COMMON("\"plan_steps\":[{\"content\":\"a\",\"status\":\"running\",\"by\":\"model\"}]"),
         "common_state.plan_steps.by", "belongs to a step that is done"},
        {COMMON("\"step_calls\":[{\"tool\":\"a\",\"end\":\"pending\"}]"),
         "common_state.step_calls.end", "is not how a call ends"},
        {COMMON("\"step_calls\":[{\"tool\":\"a\"}]"), "common_state.step_calls.end", "is missing"},
        {COMMON("\"current_step\":1"), "common_state.current_step", "is behind the end"},
        {COMMON("\"current_step\":-1"), "common_state.current_step", "must be an integer from 0"},
        {COMMON("\"max_rounds\":4294967296"), "common_state.max_rounds", "must be an integer"},
        {COMMON("\"max_rounds\":1.5"), "common_state.max_rounds", "must be an integer"},
        {COMMON("\"round_used\":4294967296"), "common_state.round_used",
         "must be an integer from 0 to 4294967295"},
        {COMMON("\"consecutive_corrections\":\"1\""), "common_state.consecutive_corrections",
         "must be an integer"},
        {COMMON("\"input_tokens\":9007199254740992"), "common_state.input_tokens",
         "must be an integer from 0 to 9007199254740991"},
        {COMMON("\"output_tokens\":-1"), "common_state.output_tokens", "must be an integer"},
        {COMMON("\"mood\":1"), "common_state", "has a member that is not known"},
        {COMMON("\"phase\":\"chatting\",\"phase\":\"chatting\""), "",
         "the snapshot is not JSON: duplicate key"},
        {COMMON("\"phase\":\"interrupted\""), "resume", "is missing"},
        {MORE("\"mood\":1"), "", "has a member that is not known"},
        {MORE("\"interaction_ids\":{}"), "interaction_ids", "must be an array"},
        {MORE("\"interaction_ids\":[\"\"]"), "interaction_ids", "must be an id"},
        {MORE("\"call_ids\":[1]"), "call_ids", "must be a string"},
        {MORE("\"resume\":null"), "resume", "must be an object"},
        {MORE("\"resume\":{}"), "resume.node", "is missing"},
        {MORE("\"resume\":{\"node\":\" \"}"), "resume.node", "must not be empty"},
        {MORE("\"resume\":{\"node\":\"a\"}"), "resume.phase", "is missing"},
        {MORE("\"resume\":{\"node\":\"a\",\"phase\":\"chatting\"}"), "resume.step", "is missing"},
        {MORE("\"resume\":{\"node\":\"a\",\"phase\":\"chatting\",\"step\":1}"), "resume.step",
         "is behind the end"},
        {MORE("\"resume\":{\"node\":\"a\",\"phase\":\"interrupted\",\"step\":0}"), "resume.phase",
         "is not one to go on in"},
        {MORE("\"context\":[]"), "context", "must be an object"},
        {MORE("\"context\":{\"from_message\":-1}"), "context.from_message", "must be an integer"},
        {MORE("\"context\":{\"from_message\":9223372036854775808}"), "context.from_message",
         "must be an integer from 0 to 9223372036854775807"},
        {MORE("\"context\":{\"to\":1}"), "context", "has a member that is not known"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct state parsed = {.round_used = 77};
        struct fault why = {0};
        if (state_parse(&arena, str_c(rows[i].bytes), &parsed, &why) != ERR_INVALID_FIELD)
            fail_msg("taken: %s", rows[i].bytes);
        assert_int_equal(why.err, ERR_INVALID_FIELD);
        assert_string_equal(why.field, rows[i].field);
        if (!str_starts(str_c(why.text), str_c(rows[i].text)))
            fail_msg("%s: got \"%s\", expected \"%s\"", rows[i].bytes, why.text, rows[i].text);
        assert_int_equal(parsed.round_used, 77);
        assert_int_equal(parsed.trace_id.len, 0);
        assert_int_equal(state_parse(&arena, str_c(rows[i].bytes), &parsed, NULL),
                         ERR_INVALID_FIELD);
    }
}

/* Lists and the whole, on both sides of their bounds. */
static void bounds(void **state)
{
    (void)state;
    static const struct {
        const char *head, *item, *tail;
        size_t max;
    } rows[] = {
        {"{\"version\":1,\"common_state\":{" IDS "},\"call_ids\":[", "\"c\"", "]}", STATE_IDS_MAX},
        {"{\"version\":1,\"common_state\":{" IDS "},\"interaction_ids\":[", "\"c\"", "]}",
         STATE_IDS_MAX},
        {"{\"version\":1,\"common_state\":{" IDS ",\"plan_steps\":[", "{\"content\":\"a\"}", "]}}",
         PLAN_STEPS_MAX},
        {"{\"version\":1,\"common_state\":{" IDS ",\"step_calls\":[",
         "{\"tool\":\"a\",\"end\":\"done\"}", "]}}", STEP_TOOLS_MAX},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t over = 0; over < 2; over++) {
            AUTO(arena_done) struct arena arena;
            AUTO(buf_done) struct buf bytes;
            arena_init(&arena);
            buf_init(&bytes, STATE_BYTES_MAX);
            buf_append(&bytes, str_c(rows[i].head));
            for (size_t n = 0; n < rows[i].max + over; n++)
                buf_printf(&bytes, "%s%s", n ? "," : "", rows[i].item);
            buf_append(&bytes, str_c(rows[i].tail));
            struct state parsed;
            assert_int_equal(state_parse(&arena, buf_str(&bytes), &parsed, NULL),
                             over ? ERR_INVALID_FIELD : OK);
        }
    }
    static char padded[STATE_BYTES_MAX + 1];
    memset(padded, ' ', sizeof padded);
    memcpy(padded, LEAST, sizeof LEAST - 1);
    for (size_t over = 0; over < 2; over++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct state parsed;
        assert_int_equal(state_parse(&arena, (str){padded, STATE_BYTES_MAX + over}, &parsed, NULL),
                         over ? ERR_INVALID_FIELD : OK);
    }
}

/* Cut anywhere it is refused. */
static void truncated(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t len = 0; len < sizeof FULL - 1; len++) {
        struct state parsed;
        char *bytes = malloc(len ? len : 1);
        memcpy(bytes, FULL, len);
        enum err e = state_parse(&arena, (str){bytes, len}, &parsed, NULL);
        free(bytes);
        assert_int_equal(e, ERR_INVALID_FIELD);
        arena_reset(&arena);
    }
}

/* One byte damaged, any byte, any way: refused, or a state that can be written and read. */
static void damaged(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf out;
    arena_init(&arena);
    buf_init(&out, STATE_BYTES_MAX);
    size_t taken = 0;
    for (size_t at = 0; at < sizeof FULL - 1; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            char bytes[sizeof FULL];
            memcpy(bytes, FULL, sizeof FULL);
            bytes[at] = (char)(bytes[at] ^ (1 << bit));
            struct state parsed;
            arena_reset(&arena);
            if (state_parse(&arena, (str){bytes, sizeof FULL - 1}, &parsed, NULL)) continue;
            taken++;
            buf_clear(&out);
            state_write(&out, &parsed);
            assert_int_equal(state_parse(&arena, buf_str(&out), &parsed, NULL), OK);
        }
    }
    assert_true(taken > 100); /* letters inside texts, digits: the checksum is for those */
}

/* The arrows, written down once more. */
static void arrows(void **state)
{
    (void)state;
    static const char *const expected[PHASE_COUNT] = {
        [PHASE_CHATTING] = "planning executing interrupted done ",
        [PHASE_PLANNING] = "waiting_confirm executing interrupted done ",
        [PHASE_WAITING_CONFIRM] = "planning executing interrupted done ",
        [PHASE_EXECUTING] = "interrupted done ",
        [PHASE_INTERRUPTED] = "chatting planning waiting_confirm executing done ",
        [PHASE_DONE] = "",
    };
    for (unsigned from = 0; from < PHASE_COUNT; from++) {
        AUTO(buf_done) struct buf to;
        buf_init(&to, 256);
        for (unsigned next = 0; next < PHASE_COUNT; next++) {
            if (!phase_leads_to((enum phase)from, (enum phase)next)) continue;
            buf_printf(&to, "%s ", phase_name((enum phase)next));
            struct state moving = {.phase = (enum phase)from};
            state_set_phase(&moving, (enum phase)next);
            assert_int_equal(moving.phase, next);
        }
        assert_str(buf_str(&to), str_c(expected[from]));
    }
}

static void tokens(void **state)
{
    (void)state;
    struct state counting = {0};
    state_add_usage(&counting, &(struct usage){5, 7, 0, STR_EMPTY});
    state_add_usage(&counting, &(struct usage){1, STATE_TOKENS_MAX - 7, 0, STR_EMPTY});
    assert_int_equal(counting.input_tokens, 6);
    assert_int_equal(counting.output_tokens, STATE_TOKENS_MAX);
    state_add_usage(&counting, &(struct usage){UINT64_MAX, 1, 0, STR_EMPTY});
    assert_int_equal(counting.input_tokens, STATE_TOKENS_MAX);
    assert_int_equal(counting.output_tokens, STATE_TOKENS_MAX);
}

int test_state(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_plans), cmocka_unit_test(written), cmocka_unit_test(round_trip),
        cmocka_unit_test(defaults),  cmocka_unit_test(rounds),  cmocka_unit_test(trimmed),
        cmocka_unit_test(refusals),  cmocka_unit_test(bounds),  cmocka_unit_test(truncated),
        cmocka_unit_test(damaged),   cmocka_unit_test(arrows),  cmocka_unit_test(tokens),
    };
    return cmocka_run_group_tests_name("agent/state", tests, NULL, NULL);
}
