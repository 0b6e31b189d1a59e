/* SPDX-License-Identifier: Apache-2.0
 *
 * What is used and what that costs: counted, added up, written.
 */
#include "agent/core/facts.h"

#include "base/json.h"
#include "check.h"
#include "graph_kit.h"

#define USD(input, output)       \
    {                            \
        (input), (output), "USD" \
    }

static void costs(void **unused)
{
    (void)unused;
    static const struct {
        struct model_usage tokens;
        struct model_price price;
        const char *json;
    } rows[] = {
        {{412, 31},
         {0},
         "{\"inputTokens\":412,\"outputTokens\":31,\"cost\":0,\"currency\":\"USD\"}"},
        {{412, 31},
         {500000, 1500000, ""},
         "{\"inputTokens\":412,\"outputTokens\":31,\"cost\":0,\"currency\":\"USD\"}"},
        {{500, 100},
         USD(500000, 1500000),
         "{\"inputTokens\":500,\"outputTokens\":100,\"cost\":0.0004,\"currency\":\"USD\"}"},
        {{1, 0},
         USD(1, 0),
         "{\"inputTokens\":1,\"outputTokens\":0,\"cost\":0.000000000001,\"currency\":\"USD\"}"},
        {{1000000, 1000000},
         {2000000, 8000000, "CNY"},
         "{\"inputTokens\":1000000,\"outputTokens\":1000000,\"cost\":10,\"currency\":\"CNY\"}"},
        {{3000000, 0},
         USD(333333, 0),
         "{\"inputTokens\":3000000,\"outputTokens\":0,\"cost\":0.999999,\"currency\":\"USD\"}"},
        {{0, 0},
         {5, 5, "EUR"},
         "{\"inputTokens\":0,\"outputTokens\":0,\"cost\":0,\"currency\":\"EUR\"}"},
        {{2, 2},
         USD(UINT64_MAX, 1),
         "{\"inputTokens\":2,\"outputTokens\":2,\"cost\":9223372.036854775807,\"currency\":"
         "\"USD\"}"},
        {{1, 1},
         USD(INT64_MAX, INT64_MAX),
         "{\"inputTokens\":1,\"outputTokens\":1,\"cost\":9223372.036854775807,\"currency\":"
         "\"USD\"}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct usage usage = usage_of(&arena, &rows[i].tokens, &rows[i].price);
        assert_str(usage_json(&arena, &usage), str_c(rows[i].json));
    }
}

/* A run has the currency of its first turn that had a price. */
static void added(void **unused)
{
    (void)unused;
    static const struct {
        struct usage turns[3];
        struct usage sum;
    } rows[] = {
        {{{1, 2, 3, STR("USD")}, {10, 20, 30, STR("USD")}}, {11, 22, 33, STR("USD")}},
        {{{1, 2, 0, STR_EMPTY}, {10, 20, 30, STR("USD")}}, {11, 22, 30, STR("USD")}},
        {{{1, 2, 3, STR("USD")}, {10, 20, 0, STR_EMPTY}}, {11, 22, 3, STR("USD")}},
        {{{1, 2, 3, STR("USD")}, {10, 20, 30, STR("CNY")}, {1, 1, 1, STR("USD")}},
         {12, 23, 4, STR("USD")}},
        {{{1, 2, STATE_COST_MAX, STR("USD")}, {0, 0, 1, STR("USD")}},
         {1, 2, STATE_COST_MAX, STR("USD")}},
        {{{STATE_TOKENS_MAX, 0, 0, STR_EMPTY}, {1, UINT64_MAX, 0, STR_EMPTY}},
         {STATE_TOKENS_MAX, STATE_TOKENS_MAX, 0, STR_EMPTY}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct state state = {0};
        for (size_t j = 0; j < COUNT(rows[i].turns); j++)
            state_add_usage(&state, &rows[i].turns[j]);
        struct usage sum = state_usage(&state);
        assert_int_equal(sum.input_tokens, rows[i].sum.input_tokens);
        assert_int_equal(sum.output_tokens, rows[i].sum.output_tokens);
        assert_int_equal(sum.cost, rows[i].sum.cost);
        assert_str(sum.currency, rows[i].sum.currency);
    }
}

static void in_facts(void **unused)
{
    (void)unused;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct usage usage = {500, 100, 400000000, STR("EUR")};
    str end = fact_text_end(&arena, &(struct text_end){.message_id = STR("m1"),
                                                       .content = STR("\"x\""),
                                                       .usage = usage});
    assert_str(end, STR("{\"messageId\":\"m1\",\"content\":\"x\",\"workerAgentOutput\":"
                        "{\"answer\":\"x\"},\"inputTokens\":500,\"outputTokens\":100,"
                        "\"cost\":0.0004,\"currency\":\"EUR\"}"));
    str finished =
        fact_run_finished(&arena, &(struct run_finished){.outcome = "completed", .usage = usage});
    assert_str(finished, STR("{\"outcome\":\"completed\",\"usage\":{\"inputTokens\":500,"
                             "\"outputTokens\":100,\"cost\":0.0004,\"currency\":\"EUR\"}}"));
}

/* ---- in a run ---- */

static struct input priced_turn(uint64_t input_tokens)
{
    return (struct input){.kind = INPUT_TURN,
                          .turn = {.message_id = STR("m1"),
                                   .text = STR("hi"),
                                   .usage = {input_tokens, 0},
                                   .price = {.input = 7, .currency = "CNY"},
                                   .provider = STR("p"),
                                   .model = STR("m"),
                                   .provider_data = STR("[1]")}};
}

static void in_a_run(void **unused)
{
    (void)unused;
    struct desk desk;
    desk_init(&desk);
    const struct outcome *o = desk_step(&desk, priced_turn(3));
    assert_int_equal(o->state.cost, 21);
    assert_str(o->state.currency, STR("CNY"));
    assert_str(o->messages[0].usage, STR("{\"inputTokens\":3,\"outputTokens\":0,"
                                         "\"cost\":0.000000000021,\"currency\":\"CNY\"}"));
    assert_str(o->messages[0].provider_data,
               STR("{\"provider\":\"p\",\"model\":\"m\",\"data\":[1]}"));
    for (size_t i = 0; i < o->fact_count; i++)
        assert_true(str_find(o->facts[i].data, STR("[1]")) < 0); /* never on the wire */
    desk_done(&desk);
}

/* What was cut off keeps its words, and nothing that speaks of its calls. */
static void stopped(void **unused)
{
    (void)unused;
    struct desk desk;
    desk_init(&desk);
    struct input input = priced_turn(3);
    input.kind = INPUT_CANCEL;
    const struct outcome *o = desk_step(&desk, input);
    assert_int_equal(o->message_count, 1);
    assert_int_equal(o->messages[0].provider_data.len, 0);
    assert_int_equal(o->state.cost, 21);
    desk_done(&desk);
}

/* A history row on the wire does not have it either. */
static void not_in_history(void **unused)
{
    (void)unused;
    AUTO(buf_done) struct buf out;
    buf_init(&out, 4096);
    message_write(&out, &(struct message){.id = STR("m1"),
                                          .role = STR("assistant"),
                                          .content = STR("\"x\""),
                                          .metadata = STR("{}"),
                                          .provider_data = STR("{\"data\":\"signed\"}")});
    assert_true(out.len > 0 && str_find(buf_str(&out), STR("signed")) < 0);
}

static void begins_only_later(void **unused)
{
    (void)unused;
    static const struct {
        int64_t stored, told, then;
    } rows[] = {{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {5, 3, 5}, {5, 9, 9}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct desk desk;
        desk_init(&desk);
        desk.view.state.from_message = rows[i].stored;
        struct input input = priced_turn(1);
        input.from_message = rows[i].told;
        assert_int_equal(desk_step(&desk, input)->state.from_message, rows[i].then);
        desk_done(&desk);
    }
}

static void overdue(void **unused)
{
    (void)unused;
    static const struct {
        uint64_t cost, max;
        const char *currency;
        bool over;
    } rows[] = {
        {99, 100, "CNY", false}, {100, 100, "CNY", true},
        {101, 100, "CNY", true}, {101, 0, "CNY", false},
        {0, 100, "CNY", false},  {101, 100, "USD", false}, /* not the money that the budget is in */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct agent agent = {.cost_max = rows[i].max, .model.price.currency = "CNY"};
        struct state state = {.cost = rows[i].cost, .currency = str_c(rows[i].currency)};
        assert_int_equal(graph_overdue(&state, &agent, 0), rows[i].over);
    }
}

int test_usage(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs),
        cmocka_unit_test(added),
        cmocka_unit_test(in_facts),
        cmocka_unit_test(in_a_run),
        cmocka_unit_test(stopped),
        cmocka_unit_test(not_in_history),
        cmocka_unit_test(begins_only_later),
        cmocka_unit_test(overdue),
    };
    return cmocka_run_group_tests_name("agent/facts", tests, NULL, NULL);
}
