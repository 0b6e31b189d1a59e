/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/elicit.h"

#include <string.h>

#include "base/limits.h"
#include "check.h"

#define OBJECT(properties) "{\"type\":\"object\",\"properties\":{" properties "}}"
#define NEEDS(properties, name) \
    "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[\"" name "\"]}"
#define COLORS                                                                                    \
    "{\"type\":\"string\",\"oneOf\":[{\"const\":\"#f00\",\"title\":\"Red\"},{\"const\":\"#0f0\"," \
    "\"title\":\"Green\"}]}"
#define SEVERAL                                                                                    \
    "{\"type\":\"array\",\"minItems\":1,\"maxItems\":2,\"items\":{\"anyOf\":[{\"const\":\"r\","    \
    "\"title\":\"Red\"},{\"const\":\"g\",\"title\":\"Green\"},{\"const\":\"b\",\"title\":\"Blue; " \
    "dark\"}]}}"

static const struct {
    const char *schema, *fields; /* NULL: refused */
} forms[] = {
    {OBJECT(""), "[]"},
    {"{\"type\":\"object\"}", "[]"},
    {OBJECT("\"a\":{\"type\":\"string\",\"title\":\"T\",\"description\":\"D\"}"),
     "[{\"name\":\"a\",\"label\":\"T\",\"type\":\"text\",\"description\":\"D\"}]"},
    {NEEDS("\"a\":{\"type\":\"integer\"}", "a"),
     "[{\"name\":\"a\",\"type\":\"number\",\"required\":true}]"},
    /* what is left out is the default, so it is not required; and that is said */
    {NEEDS("\"a\":{\"type\":\"boolean\",\"default\":true}", "a"),
     "[{\"name\":\"a\",\"type\":\"boolean\",\"description\":\"(不填即为 / left out it is: "
     "true)\"}]"},
    {OBJECT(
         "\"a\":{\"type\":\"string\",\"description\":\"D\",\"default\":\"1\",\"oneOf\":[{\"const\":"
         "\"1\",\"title\":\"One\"},{\"const\":\"2\",\"title\":\"Two\"}]}"),
     "[{\"name\":\"a\",\"type\":\"choice\",\"choices\":[\"One\",\"Two\"],\"description\":\"D "
     "(不填即为 / "
     "left out it is: One)\"}]"},
    {OBJECT("\"a\":{\"type\":\"array\",\"description\":\"D\",\"default\":[\"1\",\"2\"],\"items\":{"
            "\"anyOf\":"
            "[{\"const\":\"1\",\"title\":\"One\"},{\"const\":\"2\",\"title\":\"Two\"}]}}"),
     "[{\"name\":\"a\",\"type\":\"text\",\"description\":\"D (可多选，用“;”分隔 / one or more, "
     "with "
     "\\\";\\\" between them: One; Two) (不填即为 / left out it is: One; Two)\"}]"},
    {OBJECT("\"a\":{\"type\":\"string\",\"format\":\"date\"}"),
     "[{\"name\":\"a\",\"type\":\"date\"}]"},
    {OBJECT("\"a\":{\"type\":\"string\",\"format\":\"date-time\"}"),
     "[{\"name\":\"a\",\"type\":\"text\"}]"},
    {OBJECT("\"a\":{\"type\":\"string\",\"enum\":[\"x\",\"y\"]}"),
     "[{\"name\":\"a\",\"type\":\"choice\",\"choices\":[\"x\",\"y\"]}]"},
    {OBJECT("\"a\":{\"type\":\"string\",\"enum\":[\"x\",\"y\"],\"enumNames\":[\"X\",\"Y\"]}"),
     "[{\"name\":\"a\",\"type\":\"choice\",\"choices\":[\"X\",\"Y\"]}]"},
    {OBJECT("\"a\":" COLORS),
     "[{\"name\":\"a\",\"type\":\"choice\",\"choices\":[\"Red\",\"Green\"]}]"},
    /* titles that look alike */
    {OBJECT(
         "\"a\":{\"type\":\"string\",\"oneOf\":[{\"const\":\"1\",\"title\":\"T\"},{\"const\":\"2\","
         "\"title\":\"T\"}]}"),
     "[{\"name\":\"a\",\"type\":\"choice\",\"choices\":[\"1\",\"2\"]}]"},
    {OBJECT("\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"x\",\"y\"]}}"),
     "[{\"name\":\"a\",\"type\":\"text\",\"description\":\"(可多选，用“;”分隔 / one or more, with "
     "\\\";\\\" between them: x; y)\"}]"},
    {OBJECT("\"max_tokens\":{\"type\":\"integer\"}"),
     "[{\"name\":\"max_tokens\",\"type\":\"number\"}]"},
    {OBJECT("\"passenger\":{\"type\":\"string\"}"), "[{\"name\":\"passenger\",\"type\":\"text\"}]"},
    {OBJECT("\"password\":{\"type\":\"string\"}"), NULL},
    {OBJECT("\"a\":{\"type\":\"string\",\"title\":\"Your API key\"}"), NULL},
    {OBJECT("\"access_token\":{\"type\":\"string\"}"), NULL},
    {OBJECT("\"a\":{\"type\":\"string\",\"title\":\"登录密码\"}"), NULL},
    {OBJECT("\"a\":{\"type\":\"integer\",\"title\":\"PIN\"}"), NULL},
    {OBJECT("\"cvv\":{\"type\":\"number\"}"), NULL},
    {OBJECT("\"a\":{\"type\":\"object\"}"), NULL},
    {OBJECT("\"a\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"), NULL},
    {OBJECT("\"a\":{\"$ref\":\"#\"}"), NULL},
    {OBJECT("\"a\":7"), NULL},
    {OBJECT("\"a\":{\"type\":\"string\",\"enum\":[]}"), NULL},
    {OBJECT("\"a\":{\"type\":\"string\",\"enum\":[1]}"), NULL},
    {OBJECT("\"\":{\"type\":\"string\"}"), NULL},
    {OBJECT("\"a\\nb\":{\"type\":\"string\"}"), NULL},
    {"{\"type\":\"string\"}", NULL},
    {"{\"type\":\"object\",\"properties\":[]}", NULL},
    {"nonsense", NULL},
};

static void test_fields(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(forms); i++) {
        AUTO(arena_done) struct arena arena;
        str fields = STR("untouched");
        struct fault why = {0};
        arena_init(&arena);
        enum err e = elicit_fields(&arena, str_c(forms[i].schema), &fields, &why);
        if (!forms[i].fields) {
            assert_int_equal(e, ERR_INVALID_FIELD);
            assert_true(why.text[0] && utf8_valid(str_c(why.text)));
            assert_str(fields, STR("untouched"));
            continue;
        }
        if (e) fail_msg("row %zu: %s", i, why.text);
        assert_str(fields, str_c(forms[i].fields));
    }
}

static const struct {
    const char *schema, *values, *content; /* NULL: refused, and why says */
    const char *why;
} answers[] = {
    {OBJECT("\"a\":{\"type\":\"string\"}"), "{\"a\":\"x\"}", "{\"a\":\"x\"}", NULL},
    {OBJECT("\"a\":{\"type\":\"string\"}"), "{}", "{}", NULL},
    {NEEDS("\"a\":{\"type\":\"string\"}", "a"), "{}", NULL, "a is missing"},
    {NEEDS("\"a\":{\"type\":\"string\",\"default\":\"d\"}", "a"), "{\"a\":null}", "{\"a\":\"d\"}",
     NULL},
    {OBJECT("\"a\":{\"type\":\"string\"}"), "{\"b\":1}", NULL, "b is no field"},
    {OBJECT("\"a\":{\"type\":\"string\"}"), "{\"a\":1}", NULL, "a must be a text"},
    {OBJECT("\"a\":{\"type\":\"string\"}"), "[]", NULL, "object"},
    {OBJECT("\"a\":{\"type\":\"string\",\"minLength\":2}"), "{\"a\":\"读\"}", NULL, "too short"},
    {OBJECT("\"a\":{\"type\":\"string\",\"maxLength\":2}"), "{\"a\":\"读书\"}", "{\"a\":\"读书\"}",
     NULL},
    {OBJECT("\"a\":{\"type\":\"string\",\"format\":\"email\"}"), "{\"a\":\"x\"}", NULL, "a must"},
    {OBJECT("\"a\":{\"type\":\"string\",\"format\":\"date\"}"), "{\"a\":\"2026-11-15\"}",
     "{\"a\":\"2026-11-15\"}", NULL},
    {OBJECT("\"a\":{\"type\":\"integer\"}"), "{\"a\":1.5}", NULL, "whole"},
    {OBJECT("\"a\":{\"type\":\"integer\"}"), "{\"a\":12345678901234567890}",
     "{\"a\":12345678901234567890}", NULL},
    {OBJECT("\"a\":{\"type\":\"number\",\"minimum\":0,\"maximum\":1}"), "{\"a\":0.10}",
     "{\"a\":0.10}", NULL},
    {OBJECT("\"a\":{\"type\":\"number\",\"minimum\":0}"), "{\"a\":-1}", NULL, "too small"},
    {OBJECT("\"a\":{\"type\":\"number\",\"maximum\":0}"), "{\"a\":1}", NULL, "too large"},
    {OBJECT("\"a\":{\"type\":\"number\"}"), "{\"a\":\"1\"}", NULL, "number"},
    {OBJECT("\"a\":{\"type\":\"boolean\"}"), "{\"a\":false}", "{\"a\":false}", NULL},
    {OBJECT("\"a\":{\"type\":\"boolean\"}"), "{\"a\":\"yes\"}", NULL, "true or false"},
    {OBJECT("\"a\":" COLORS), "{\"a\":\"Red\"}", "{\"a\":\"#f00\"}", NULL},
    {OBJECT("\"a\":" COLORS), "{\"a\":\"#0f0\"}", "{\"a\":\"#0f0\"}", NULL},
    {OBJECT("\"a\":" COLORS), "{\"a\":\"red\"}", NULL, "choices"},
    {OBJECT("\"a\":" SEVERAL), "{\"a\":\"Red；Green\"}", "{\"a\":[\"r\",\"g\"]}", NULL},
    {OBJECT("\"a\":" SEVERAL), "{\"a\":\" Green ; Green;\"}", "{\"a\":[\"g\"]}", NULL},
    {OBJECT("\"a\":" SEVERAL), "{\"a\":\"Blue; dark\"}", "{\"a\":[\"b\"]}", NULL},
    {OBJECT("\"a\":" SEVERAL), "{\"a\":[\"Red\",\"b\"]}", "{\"a\":[\"r\",\"b\"]}", NULL},
    {OBJECT("\"a\":" SEVERAL), "{\"a\":[\"r\",\"g\",\"b\"]}", NULL, "too many"},
    {OBJECT("\"a\":" SEVERAL), "{\"a\":[]}", NULL, "too few"},
    {OBJECT("\"a\":" SEVERAL), "{\"a\":\"Pink\"}", NULL, "none of its choices"},
    {OBJECT("\"a\":" SEVERAL), "{\"a\":7}", NULL, "none of its choices"},
};

static void test_content(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(answers); i++) {
        AUTO(arena_done) struct arena arena;
        struct json *values = NULL;
        str content = STR("untouched");
        struct fault why = {0};
        arena_init(&arena);
        assert_int_equal(json_parse(&arena, str_c(answers[i].values), &values, NULL), OK);
        enum err e = elicit_content(&arena, str_c(answers[i].schema), values, &content, &why);
        if (!answers[i].content) {
            if (e != ERR_INVALID_FIELD || !strstr(why.text, answers[i].why))
                fail_msg("row %zu: %d \"%s\"", i, e, why.text);
            assert_str(content, STR("untouched"));
            continue;
        }
        if (e) fail_msg("row %zu: %s", i, why.text);
        assert_str(content, str_c(answers[i].content));
    }
}

static void test_hash(void **state)
{
    static const struct tool_question questions[] = {
        {.message = STR("a"), .schema = STR("{}")},
        {.message = STR("b"), .schema = STR("{}")},
        {.message = STR("a"), .schema = STR("{ }")},
        {.message = STR("a"), .url = STR("{}")},
        {.message = STR("a{}")},
    };
    AUTO(arena_done) struct arena arena;
    str hashes[COUNT(questions)];
    (void)state;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(questions); i++) {
        struct tool_question other = questions[i];
        other.id = STR("another name");
        hashes[i] = elicit_hash(&arena, &questions[i]);
        assert_int_equal(hashes[i].len, 16);
        assert_str(elicit_hash(&arena, &other), hashes[i]);
        for (size_t k = 0; k < i; k++) assert_false(str_eq(hashes[i], hashes[k]));
    }
}

int test_elicit(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fields),
                                       cmocka_unit_test(test_content), cmocka_unit_test(test_hash)};
    return cmocka_run_group_tests_name("elicit", tests, NULL, NULL);
}
