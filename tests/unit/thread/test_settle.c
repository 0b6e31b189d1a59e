/* SPDX-License-Identifier: Apache-2.0 */
#include "thread/settle.h"

#include "agent/core/interaction.h"
#include "check.h"

#define SCHEMA "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}"

static const struct tool order = {.name = STR("order"), .schema = STR(SCHEMA)};

static struct judged asked(enum interaction_type type)
{
    return (struct judged){.interaction = {.id = STR("int_1"),
                                           .type = type,
                                           .owner = STR("ann"),
                                           .question = STR("?"),
                                           .allow_freeform = true,
                                           .tool = STR("order"),
                                           .args = STR("{\"n\":1}"),
                                           .args_schema = STR(SCHEMA),
                                           .binding = STR("k1:a"),
                                           .metadata = STR("{}")}};
}

/* Who may, what is open, what is in time. */
static void admission(void **state)
{
    (void)state;
    static const struct {
        const char *user;
        unsigned roles;
        const char *approver;
        enum interaction_status status;
        msec expires;
        enum refusal refusal;
        bool overtaken;
        enum settle_wish wish;
        const char *key, *asked_key;
        bool alone;
    } rows[] = {
        /* four eyes, and taking it back */
        {"ann", ROLE_USER | ROLE_APPROVER, "approver", .refusal = REFUSAL_OWN_REQUEST},
        {"ann", ROLE_APPROVER, "approver", .refusal = REFUSAL_OWN_REQUEST, .expires = 99},
        {"ann", ROLE_APPROVER, "approver", .refusal = REFUSAL_NONE, .alone = true},
        {"ann", ROLE_APPROVER, "approver", .refusal = REFUSAL_NONE, .wish = WISH_CANCEL},
        {"ann", ROLE_USER, "approver", .refusal = REFUSAL_NONE, .wish = WISH_CANCEL},
        {"eve", ROLE_USER, "approver", .refusal = REFUSAL_NOT_VISIBLE, .wish = WISH_CANCEL},
        {"eve", ROLE_APPROVER, "approver", .refusal = REFUSAL_NONE, .wish = WISH_CANCEL},
        /* asked through /mcp */
        {"ann", ROLE_USER, "", .refusal = REFUSAL_OWN_KEY, .key = "k1", .asked_key = "k1"},
        {"ann", ROLE_USER, "", .refusal = REFUSAL_NONE, .key = "k2", .asked_key = "k1"},
        {"ann", ROLE_USER, "", .refusal = REFUSAL_NONE, .key = "", .asked_key = "k1"},
        {"ann", ROLE_USER, "", .refusal = REFUSAL_NONE, .key = "k1", .asked_key = ""},
        {"ann", ROLE_USER, "", .refusal = REFUSAL_NONE, .key = "", .asked_key = ""},
        {"ann", ROLE_USER, "", .refusal = REFUSAL_NONE, .key = "k1", .asked_key = "k1",
         .wish = WISH_CANCEL},
        {"eve", ROLE_APPROVER, "approver", .refusal = REFUSAL_OWN_KEY, .key = "k1",
         .asked_key = "k1"},
        {"ann", ROLE_USER, "", INTERACTION_OPEN, 0, REFUSAL_NONE, .overtaken = false},
        {"ann", ROLE_USER, "", INTERACTION_OPEN, 101, REFUSAL_NONE, .overtaken = false},
        {"ann", ROLE_USER, "", INTERACTION_OPEN, 100, REFUSAL_EXPIRED, .overtaken = true},
        {"ann", ROLE_USER, "", INTERACTION_OPEN, 99, REFUSAL_EXPIRED, .overtaken = true},
        {"ann", ROLE_USER, "", INTERACTION_RESOLVED, 99, REFUSAL_ALREADY_RESOLVED,
         .overtaken = false},
        {"ann", ROLE_USER, "", INTERACTION_CANCELED, 0, REFUSAL_ALREADY_RESOLVED,
         .overtaken = false},
        {"ann", ROLE_USER, "", INTERACTION_EXPIRED, 99, REFUSAL_EXPIRED, .overtaken = false},
        {"ann", ROLE_USER, "", INTERACTION_SUPERSEDED, 0, REFUSAL_SUPERSEDED, .overtaken = false},
        {"ann", ROLE_USER, "approver", INTERACTION_OPEN, 0, REFUSAL_WRONG_ROLE, .overtaken = false},
        {"eve", ROLE_APPROVER, "approver", INTERACTION_OPEN, 0, REFUSAL_NONE, .overtaken = false},
        {"eve", ROLE_APPROVER, "", INTERACTION_OPEN, 0, REFUSAL_NOT_VISIBLE, .overtaken = false},
        {"eve", ROLE_USER, "approver", INTERACTION_OPEN, 0, REFUSAL_NOT_VISIBLE,
         .overtaken = false},
        {"eve", ROLE_USER, "", INTERACTION_RESOLVED, 0, REFUSAL_NOT_VISIBLE, .overtaken = false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct judged judged = asked(INTERACTION_CONFIRM);
        struct settle settle = {
            .user = str_c(rows[i].user), .roles = rows[i].roles, .via = STR("api"), .now = 100};
        judged.interaction.approver = str_c(rows[i].approver);
        judged.interaction.status = rows[i].status;
        judged.interaction.expires = rows[i].expires;
        settle.alone = rows[i].alone;
        settle.key_id = str_c(rows[i].key ? rows[i].key : "");
        judged.interaction.asked_key = str_c(rows[i].asked_key ? rows[i].asked_key : "");
        assert_int_equal(settle_admit(&settle, rows[i].wish, &judged),
                         rows[i].refusal == REFUSAL_NONE);
        assert_int_equal(judged.refusal, rows[i].refusal);
        assert_int_equal(judged.overtaken, rows[i].overtaken);
        if (!judged.overtaken) continue;
        assert_int_equal(judged.resolution.decision, DECISION_EXPIRE);
        assert_str(judged.resolution.interaction_id, STR("int_1"));
        assert_str(judged.resolution.via, STR("timer"));
    }
}

/* What is said: about the tool that was shown, and in a form that fits. */
static void fitting(void **state)
{
    (void)state;
    static const struct {
        enum interaction_type type;
        const char *schema, *body;
        enum refusal refusal;
        bool overtaken;
        enum decision decision;
    } rows[] = {
        {INTERACTION_CONFIRM, SCHEMA, "{\"decision\":\"approve\"}", REFUSAL_NONE, false,
         DECISION_APPROVE},
        {INTERACTION_CONFIRM, "{}", "{\"decision\":\"approve\"}", REFUSAL_SUPERSEDED, true,
         DECISION_SUPERSEDE},
        {INTERACTION_CONFIRM, "{}", "{\"decision\":\"edit\",\"args\":{\"n\":2}}",
         REFUSAL_SUPERSEDED, true, DECISION_SUPERSEDE},
        {INTERACTION_CONFIRM, "{}", "{\"decision\":\"reject\"}", REFUSAL_NONE, false,
         DECISION_REJECT},
        {INTERACTION_CONFIRM, SCHEMA, "{\"decision\":\"approve\",\"binding\":\"k1:b\"}",
         REFUSAL_BINDING_MISMATCH, false, DECISION_ANSWER},
        {INTERACTION_CONFIRM, SCHEMA, "{\"decision\":\"edit\",\"args\":{\"n\":\"x\"}}",
         REFUSAL_EDIT_INVALID, false, DECISION_ANSWER},
        {INTERACTION_CONFIRM, SCHEMA, "{\"answer\":\"yes\"}", REFUSAL_WRONG_TYPE, false,
         DECISION_ANSWER},
        {INTERACTION_ASK_USER, "", "{\"answer\":\"yes\"}", REFUSAL_NONE, false, DECISION_ANSWER},
        {INTERACTION_ASK_USER, "", "{\"answer\":\" \"}", REFUSAL_INVALID_ANSWER, false,
         DECISION_ANSWER},
        {INTERACTION_UNCERTAIN, "", "{\"decision\":\"retry\"}", REFUSAL_NONE, false,
         DECISION_RETRY},
    };
    struct tools tools = {.rows = &order, .count = 1};
    struct saver saver = {.tools = &tools};
    struct settle settle = {.saver = &saver, .user = STR("ann"), .via = STR("ag-ui"), .now = 100};
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        struct json *body = NULL;
        struct judged judged = asked(rows[i].type);
        arena_init(&arena);
        if (rows[i].schema[0]) judged.interaction.args_schema = str_c(rows[i].schema);
        assert_int_equal(json_parse(&arena, str_c(rows[i].body), &body, NULL), OK);
        assert_int_equal(settle_fit(&arena, &settle, body, &judged), OK);
        assert_int_equal(judged.refusal, rows[i].refusal);
        assert_int_equal(judged.overtaken, rows[i].overtaken);
        if (judged.refusal) assert_int_equal(judged.why.err, refusal_err(judged.refusal));
        if (judged.refusal && !judged.overtaken) continue;
        assert_int_equal(judged.resolution.decision, rows[i].decision);
        assert_str(judged.resolution.interaction_id, STR("int_1"));
        assert_str(judged.resolution.via, judged.overtaken ? STR("run") : STR("ag-ui"));
        assert_str(judged.resolution.by, judged.overtaken ? STR_EMPTY : STR("ann"));
    }
}

int test_settle(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(admission), cmocka_unit_test(fitting)};
    return cmocka_run_group_tests_name("app/settle", tests, NULL, NULL);
}
