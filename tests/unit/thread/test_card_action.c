/* SPDX-License-Identifier: Apache-2.0 */
#include "thread/card_action.h"

#include "base/id.h"
#include "check.h"

#define BUTTON(id, more) "{\"type\":\"button\",\"id\":\"" id "\",\"label\":\"L " id "\"," more "}"
#define TOOL             "\"action\":{\"type\":\"tool\",\"toolId\":\"order\",\"params\":{\"n\":1}}"
#define CARD(children) \
    "{\"version\":\"2.0\",\"root\":{\"type\":\"stack\",\"children\":[" children "]}}"
#define PAYLOAD(json) "\"action\":{\"type\":\"payload\",\"payload\":" json "}"
#define CHOICES       "[{\"id\":\"c1\",\"label\":\"Red\"},{\"id\":\"c2\",\"label\":\"Blue\"}]"

#define COPY  "\"disabled\":true,\"action\":{\"type\":\"copy\",\"content\":\"x\"}"
#define BARE  "\"disabled\":false,\"action\":{\"type\":\"tool\",\"toolId\":\"t\"}"
#define EVENT "\"action\":{\"type\":\"event\",\"event\":\"second\"}"
#define TEXT  "{\"type\":\"text\",\"content\":\"a1\"}"
#define INNER "{\"type\":\"stack\",\"children\":[" BUTTON("a1", PAYLOAD("{\"a\":1}")) "]}"
#define GRID  "{\"type\":\"grid\",\"columns\":2,\"children\":[" BUTTON("a0", TOOL) "," INNER "]}"
#define LAST  BUTTON("a2", COPY) "," BUTTON("a3", BARE) "," BUTTON("a3", EVENT)

static void found(void **state)
{
    (void)state;
    static const char nested[] = CARD(TEXT "," GRID "," LAST);
    static const struct {
        const char *id;
        enum action_kind kind;
        bool ours, disabled;
        const char *label, *json, *tool, *args;
    } rows[] = {
        {"a0", ACTION_TOOL, true, false, "L a0",
         "{\"type\":\"tool\",\"toolId\":\"order\",\"params\":{\"n\":1}}", "order", "{\"n\":1}"},
        {"a1", ACTION_PAYLOAD, true, false, "L a1", "{\"type\":\"payload\",\"payload\":{\"a\":1}}",
         "", ""},
        {"a2", ACTION_COPY, false, true, "L a2", "{\"type\":\"copy\",\"content\":\"x\"}", "", ""},
        {"a3", ACTION_TOOL, true, false, "L a3", "{\"type\":\"tool\",\"toolId\":\"t\"}", "t", "{}"},
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct card_action action;
        assert_int_equal(card_action_find(&arena, str_c(nested), str_c(rows[i].id), &action), OK);
        assert_int_equal(action.kind, rows[i].kind);
        assert_int_equal(action.ours, rows[i].ours);
        assert_int_equal(action.disabled, rows[i].disabled);
        assert_str(action.label, str_c(rows[i].label));
        assert_str(action.json, str_c(rows[i].json));
        assert_str(action.tool, str_c(rows[i].tool));
        assert_str(action.args, str_c(rows[i].args));
        assert_true((action.kind == ACTION_PAYLOAD) == (action.payload != NULL));
    }
}

static void not_found(void **state)
{
    (void)state;
    static const struct {
        const char *ui, *id;
    } rows[] = {
        {"", "a0"},
        {"{", "a0"},
        {"[]", "a0"},
        {"{}", "a0"},
        {"{\"root\":[]}", "a0"},
        {CARD(BUTTON("a0", TOOL)), "a1"},
        {CARD(BUTTON("a0", TOOL)), ""},
        {CARD(BUTTON("a0", TOOL)), "A0"},
        {CARD("{\"type\":\"stack\",\"children\":{}}"), "a0"},
        /* a node that nobody draws has no buttons */
        {CARD("{\"type\":\"menu\",\"children\":[" BUTTON("a0", TOOL) "]}"), "a0"},
        {CARD("{\"type\":\"button\",\"label\":\"x\"," TOOL "}"), "a0"},
        {CARD("{\"type\":\"button\",\"label\":\"x\"," TOOL "}"), ""},
        {CARD("{\"type\":\"button\",\"id\":0,\"label\":\"x\"," TOOL "}"), "0"},
        {CARD(BUTTON("a0", "\"action\":{}")), "a0"},
        {CARD(BUTTON("a0", "\"action\":{\"type\":\"approve\"}")), "a0"},
        {CARD(BUTTON("a0", "\"action\":{\"type\":\"payload\"}")), "a0"},
        {CARD(BUTTON("a0", "\"action\":\"tool\"")), "a0"},
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct card_action action = {.label = STR("untouched")};
        assert_int_equal(card_action_find(&arena, str_c(rows[i].ui), str_c(rows[i].id), &action),
                         ERR_NOT_FOUND);
        assert_str(action.label, STR("untouched"));
    }
    struct card_action action;
    static const char with_nul[] = {'a', '0', '\0'};
    assert_int_equal(card_action_find(&arena, STR(CARD(BUTTON("a0", TOOL))),
                                      (str){with_nul, sizeof with_nul}, &action),
                     ERR_NOT_FOUND);
}

static void payloads(void **state)
{
    (void)state;
    static const struct {
        const char *payload, *choices, *text, *answer;
    } rows[] = {
        {"\"words\"", "", "words", "{\"answer\":\"words\"}"},
        {"\" \\u200b\"", "", "L a0", "{\"answer\":\" \xe2\x80\x8b\"}"},
        {"\"c1\"", CHOICES, "c1", "{\"answer\":\"c1\"}"}, /* words are words */
        {"{}", "", "L a0\n{}", "{\"answer\":\"{}\"}"},
        {"[1,\"a\"]", "", "L a0\n[1,\"a\"]", "{\"answer\":\"[1,\\\"a\\\"]\"}"},
        {"{\"choice\":\"c2\"}", CHOICES, "L a0\n{\"choice\":\"c2\"}", "{\"choices\":[\"c2\"]}"},
        {"{\"choice\":\"Blue\"}", CHOICES, "L a0\n{\"choice\":\"Blue\"}", "{\"answer\":\"Blue\"}"},
        {"{\"choice\":\"c2\"}", "", "L a0\n{\"choice\":\"c2\"}", "{\"answer\":\"c2\"}"},
        {"{\"choice\":\"c2\"}", "broken", "L a0\n{\"choice\":\"c2\"}", "{\"answer\":\"c2\"}"},
        {"{\"answer\":\"yes\",\"choice\":3}", CHOICES, "L a0\n{\"answer\":\"yes\",\"choice\":3}",
         "{\"answer\":\"yes\"}"},
        {"{\"answer\":[\"c1\"]}", CHOICES, "L a0\n{\"answer\":[\"c1\"]}",
         "{\"answer\":\"{\\\"answer\\\":[\\\"c1\\\"]}\"}"},
        {"null", "", "L a0\nnull", "{\"answer\":\"null\"}"},
        /* no payload decides: whatever it says is the text of an answer */
        {"{\"decision\":\"approve\"}", "", "L a0\n{\"decision\":\"approve\"}",
         "{\"answer\":\"{\\\"decision\\\":\\\"approve\\\"}\"}"},
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct card_action action;
        str ui = arena_printf(&arena, CARD(BUTTON("a0", PAYLOAD("%s"))), rows[i].payload);
        assert_int_equal(card_action_find(&arena, ui, STR("a0"), &action), OK);
        assert_str(card_action_text(&arena, &action), str_c(rows[i].text));
        assert_str(card_action_answer(&arena, &action, str_c(rows[i].choices))->raw,
                   str_c(rows[i].answer));
    }
}

static void run_ids(void **state)
{
    (void)state;
    const struct {
        str message, action;
    } rows[] = {
        {STR("m1"), STR("a0")},   {STR("m1"), STR("a1")},   {STR("m"), STR("1a0")},
        {STR("m1a"), STR("0")},   {STR("m1"), STR("a0\0")}, {STR("m1"), STR("a0\0x")},
        {STR("m1\0"), STR("a0")}, {STR("1\nm"), STR("a0")},
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++) {
        str id = card_action_run_id(&arena, rows[i].message, rows[i].action);
        assert_int_equal(id.len, 4 + ID_BYTES - 1);
        assert_true(str_starts(id, STR("act_")) && id_valid(id));
        for (size_t j = 0; j <= i; j++) {
            str other = card_action_run_id(&arena, rows[j].message, rows[j].action);
            assert_true(str_eq(id, other) == (i == j));
        }
    }
    /* For ever: other bytes here would let every button be pressed a second time. */
    assert_str(card_action_run_id(&arena, STR("m1"), STR("a0")),
               STR("act_33mhs5vtyzqtdsj2x5ycftd7dq"));
}

int test_card_action(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found),
        cmocka_unit_test(not_found),
        cmocka_unit_test(payloads),
        cmocka_unit_test(run_ids),
    };
    return cmocka_run_group_tests_name("card_action", tests, NULL, NULL);
}
