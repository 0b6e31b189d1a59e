/* SPDX-License-Identifier: Apache-2.0 */
#include "thread/refusal.h"

#include "check.h"

#define CHOICES "[{\"id\":\"c1\",\"label\":\"Red\"},{\"id\":\"c2\",\"label\":\"Blue\"}]"

static void words(void **state)
{
    (void)state;
    for (int i = 0; i < REFUSAL_COUNT; i++) {
        enum refusal refusal = (enum refusal)i;
        str word = refusal_word(refusal);
        assert_true((refusal == REFUSAL_NONE) == (word.len == 0));
        assert_true((refusal == REFUSAL_NONE) == (refusal_err(refusal) == OK));
        for (int j = 0; j < i; j++) { /* each is its own, but that two ways to ask share one */
            bool own = refusal == REFUSAL_OWN_KEY && j == REFUSAL_OWN_REQUEST;
            assert_int_equal(str_eq(word, refusal_word((enum refusal)j)), own);
        }
    }
}

static void of_status(void **state)
{
    (void)state;
    static const enum err errs[INTERACTION_STATUS_COUNT] = {
        [INTERACTION_OPEN] = OK,
        [INTERACTION_RESOLVED] = ERR_ALREADY_RESOLVED,
        [INTERACTION_CANCELED] = ERR_ALREADY_RESOLVED,
        [INTERACTION_EXPIRED] = ERR_EXPIRED,
        [INTERACTION_SUPERSEDED] = ERR_SUPERSEDED,
    };
    for (int i = 0; i < INTERACTION_STATUS_COUNT; i++)
        assert_int_equal(refusal_err(refusal_of_status((enum interaction_status)i)), errs[i]);
}

static void of_body(void **state)
{
    (void)state;
    static const struct {
        enum interaction_type type;
        const char *tool, *choices;
        bool allow_freeform;
        const char *body, *field, *word;
    } rows[] = {
        {INTERACTION_ASK_USER, "", CHOICES, true, "[]", "", "invalid_answer"},
        {INTERACTION_ASK_USER, "", CHOICES, true, "{}", "", "invalid_answer"},
        {INTERACTION_ASK_USER, "", CHOICES, true, "{\"decision\":\"approve\"}", "decision",
         "wrong_type"},
        {INTERACTION_ASK_USER, "", CHOICES, true, "{\"choices\":[\"c3\"]}", "choices[0]",
         "outside_choices"},
        {INTERACTION_ASK_USER, "", CHOICES, true, "{\"choices\":[\"c1\",\"c2\"]}", "choices",
         "invalid_answer"}, /* one too many */
        {INTERACTION_ASK_USER, "", CHOICES, true, "{\"choices\":[1]}", "choices[0]",
         "invalid_answer"},
        {INTERACTION_ASK_USER, "", "", true, "{\"choices\":[\"c1\"]}", "choices",
         "outside_choices"},
        {INTERACTION_ASK_USER, "", "broken", true, "{\"choices\":[\"c1\"]}", "choices",
         "invalid_answer"},
        {INTERACTION_ASK_USER, "", CHOICES, false, "{\"answer\":\"Green\"}", "answer",
         "outside_choices"},
        {INTERACTION_ASK_USER, "", CHOICES, false, "{\"answer\":\"  \"}", "answer",
         "invalid_answer"},
        {INTERACTION_ASK_USER, "", CHOICES, true, "{\"answer\":\"  \"}", "answer",
         "invalid_answer"},
        {INTERACTION_ASK_USER, "", CHOICES, false, "{\"answer\":7}", "answer", "invalid_answer"},
        {INTERACTION_CONFIRM, "pay", "", true, "{}", "decision", "invalid_answer"},
        {INTERACTION_CONFIRM, "pay", "", true, "{\"answer\":\"yes\"}", "answer", "wrong_type"},
        {INTERACTION_CONFIRM, "pay", "", true, "{\"skip\":true}", "skip", "wrong_type"},
        {INTERACTION_CONFIRM, "pay", "", true, "{\"decision\":\"retry\"}", "decision",
         "wrong_type"},
        {INTERACTION_CONFIRM, "pay", "", true, "{\"decision\":\"yes\"}", "decision",
         "unknown_decision"},
        {INTERACTION_CONFIRM, "pay", "", true, "{\"decision\":true}", "decision", "invalid_answer"},
        {INTERACTION_CONFIRM, "pay", "", true, "{\"decision\":\"edit\"}", "args", "edit_invalid"},
        {INTERACTION_CONFIRM, "pay", "", true, "{\"decision\":\"edit\",\"args\":{\"a\":1}}",
         "args.a", "edit_invalid"},
        {INTERACTION_CONFIRM, "pay", "", true, "{\"decision\":\"reject\",\"always\":{}}", "always",
         "always_not_allowed"},
        {INTERACTION_CONFIRM, "submit_plan", "", true, "{\"decision\":\"approve\",\"always\":{}}",
         "always", "always_not_allowed"},
        {INTERACTION_CONFIRM, "pay", "", true, "{\"decision\":\"approve\",\"always\":{}}",
         "always.scope", "invalid_answer"},
        {INTERACTION_CONFIRM, "pay", "", true, "{\"decision\":\"approve\",\"x\":1}", "x",
         "invalid_answer"},
        {INTERACTION_UNCERTAIN, "pay", "", true, "{\"decision\":\"approve\"}", "decision",
         "wrong_type"},
        {INTERACTION_CONNECTION_LOST, "", "", true, "{\"decision\":\"go\"}", "decision",
         "unknown_decision"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        struct json *body = NULL;
        struct interaction interaction = {.type = rows[i].type,
                                          .tool = str_c(rows[i].tool),
                                          .choices = str_c(rows[i].choices),
                                          .allow_freeform = rows[i].allow_freeform};
        arena_init(&arena);
        assert_int_equal(json_parse(&arena, str_c(rows[i].body), &body, NULL), OK);
        assert_str(refusal_word(refusal_of_body(&arena, &interaction, body, str_c(rows[i].field))),
                   str_c(rows[i].word));
        arena_done(&arena);
    }
}

int test_refusal(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),
        cmocka_unit_test(of_status),
        cmocka_unit_test(of_body),
    };
    return cmocka_run_group_tests_name("refusal", tests, NULL, NULL);
}
