/* SPDX-License-Identifier: Apache-2.0 */
#include "thread/resume.h"

#include "base/limits.h"
#include "check.h"

static enum err read(struct arena *arena, enum interaction_type type, str text,
                     struct resume_body *body, struct fault *why)
{
    struct json *payload = NULL;
    if (text.len) assert_int_equal(json_parse(arena, text, &payload, NULL), OK);
    return resume_read(arena, type, payload, body, why);
}

static void bodies(void **state)
{
    (void)state;
    static const struct {
        enum interaction_type type;
        const char *payload, *body;
    } rows[] = {
        {INTERACTION_ASK_USER, "\"an \\\"hour\\\"\"", "{\"answer\":\"an \\\"hour\\\"\"}"},
        {INTERACTION_ASK_USER, "\"\"", "{\"answer\":\"\"}"},
        {INTERACTION_ASK_USER, "{\"choices\":[\"c1\"]}", "{\"choices\":[\"c1\"]}"},
        {INTERACTION_ASK_USER, "{\"skip\":true}", "{\"skip\":true}"},
        {INTERACTION_CONFIRM, "{\"approved\":true}", "{\"decision\":\"approve\"}"},
        {INTERACTION_CONFIRM, "{\"approved\":true,\"editedArgs\":null,\"comment\":null}",
         "{\"decision\":\"approve\"}"},
        {INTERACTION_CONFIRM, "{\"comment\":\"ok\",\"approved\":true}",
         "{\"decision\":\"approve\",\"comment\":\"ok\"}"},
        {INTERACTION_CONFIRM, "{\"approved\":true,\"editedArgs\":{\"a\": 0.10}}",
         "{\"decision\":\"edit\",\"args\":{\"a\": 0.10}}"},
        {INTERACTION_CONFIRM, "{\"approved\":false,\"comment\":\"no\"}",
         "{\"decision\":\"reject\",\"comment\":\"no\"}"},
        {INTERACTION_CONFIRM, "{\"approved\":true,\"binding\":\"k1:x\",\"always\":true}",
         "{\"decision\":\"approve\",\"binding\":\"k1:x\",\"always\":true}"},
        {INTERACTION_CONFIRM, "{\"decision\":\"respond\",\"comment\":\"x\"}",
         "{\"decision\":\"respond\",\"comment\":\"x\"}"},
        {INTERACTION_UNCERTAIN, "{\"decision\":\"happened\"}", "{\"decision\":\"happened\"}"},
        {INTERACTION_CONNECTION_LOST, "{\"decision\":\"continue\"}", "{\"decision\":\"continue\"}"},
        /* The answer's own rules refuse these, by name. */
        {INTERACTION_UNCERTAIN, "{\"approved\":true}", "{\"approved\":true}"},
        {INTERACTION_CONFIRM, "{\"approved\":true,\"x\":1}", "{\"decision\":\"approve\",\"x\":1}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        struct resume_body body;
        arena_init(&arena);
        assert_int_equal(read(&arena, rows[i].type, str_c(rows[i].payload), &body, NULL), OK);
        assert_str(body.json->raw, str_c(rows[i].body));
    }
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        enum interaction_type type;
        const char *payload, *field;
    } rows[] = {
        {INTERACTION_ASK_USER, "", ""},
        {INTERACTION_ASK_USER, "7", ""},
        {INTERACTION_ASK_USER, "[\"c1\"]", ""},
        {INTERACTION_ASK_USER, "true", ""},
        {INTERACTION_CONFIRM, "", ""},
        {INTERACTION_CONFIRM, "\"approve\"", ""},
        {INTERACTION_CONFIRM, "true", ""},
        {INTERACTION_CONFIRM, "{}", "approved"},
        {INTERACTION_CONFIRM, "{\"comment\":\"x\"}", "approved"},
        {INTERACTION_CONFIRM, "{\"approved\":\"true\"}", "approved"},
        {INTERACTION_CONFIRM, "{\"approved\":null}", "approved"},
        {INTERACTION_CONFIRM, "{\"approved\":1}", "approved"},
        {INTERACTION_CONFIRM, "{\"approved\":false,\"decision\":\"approve\"}", "decision"},
        {INTERACTION_CONFIRM, "{\"approved\":true,\"args\":{}}", "args"},
        {INTERACTION_CONFIRM, "{\"approved\":false,\"editedArgs\":{}}", "editedArgs"},
        {INTERACTION_UNCERTAIN, "\"retry\"", ""},
        {INTERACTION_CONNECTION_LOST, "", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        struct resume_body body;
        struct fault why = {0};
        arena_init(&arena);
        assert_int_equal(read(&arena, rows[i].type, str_c(rows[i].payload), &body, &why),
                         ERR_INVALID_FIELD);
        assert_string_equal(why.field, rows[i].field);
        assert_true(why.text[0]);
    }
}

static void lengths(void **state)
{
    (void)state;
    for (size_t over = 0; over <= 1; over++) {
        AUTO(arena_done) struct arena arena;
        struct resume_body body;
        arena_init(&arena);
        size_t len = ANSWER_BYTES_MAX + over;
        char *text = arena_alloc(&arena, len);
        for (size_t i = 0; i < len; i++) text[i] = i == 0 || i + 1 == len ? '"' : 'x';
        assert_int_equal(read(&arena, INTERACTION_ASK_USER, (str){text, len}, &body, NULL),
                         over ? ERR_TOO_LARGE : OK);
    }
}

int test_resume(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bodies), cmocka_unit_test(refusals),
                                       cmocka_unit_test(lengths)};
    return cmocka_run_group_tests_name("app/resume", tests, NULL, NULL);
}
