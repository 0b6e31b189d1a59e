/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "tool/value.h"

static struct json *parsed(struct arena *arena, const char *text)
{
    struct json *json = NULL;
    struct json_error why;
    if (json_parse(arena, str_c(text), &json, &why)) fail_msg("%s: %s", text, why.reason);
    return json;
}

/* Compile from a text that is gone before the schema is used. */
static enum err compiled(struct arena *arena, const char *text, struct schema **schema,
                         struct fault *fault)
{
    AUTO(arena_done) struct arena shorter;
    arena_init(&shorter);
    char *copy = strdup(text);
    enum err e = schema_parse(arena, parsed(&shorter, copy), schema, fault);
    memset(copy, 'x', strlen(copy));
    free(copy);
    return e;
}

/* ---- schemas ---- */

#define X(keywords) "{\"properties\":{\"x\":{" keywords "}}}"

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *field, *text; /* text: a part */
        /* clang-format off */
    } rows[] = {
        {"[]", "", "the schema must be an object of keywords"},
        {"false", "", "false takes nothing"},
        {"{\"$ref\":\"#/x\"}", "$ref", "$ref is not supported; docs/TOOLS.md lists"},
        {X("\"oneOf\":[]"), "properties.x.oneOf", "properties.x.oneOf is not supported"},
        {X("\"anyOf\":[]"), "properties.x.anyOf", "is not supported"},
        {X("\"allOf\":[]"), "properties.x.allOf", "is not supported"},
        {X("\"not\":{}"), "properties.x.not", "is not supported"},
        {X("\"if\":{}"), "properties.x.if", "is not supported"},
        {X("\"pattern\":\"a\""), "properties.x.pattern", "is not supported"},
        {X("\"multipleOf\":2"), "properties.x.multipleOf", "is not supported"},
        {X("\"patternProperties\":{}"), "properties.x.patternProperties", "is not supported"},
        {"{\"items\":{\"$defs\":{}}}", "items.$defs", "is not supported"},
        {"{\"additionalProperties\":{\"$id\":\"a\"}}", "additionalProperties.$id", "is not supported"},
        {"{\"requird\":[]}", "requird", "is not a keyword; did you mean required?"},
        {"{\"maxItem\":1}", "maxItem", "did you mean maxItems?"},
        {"{\"\":1}", "[\"\"]", "is not supported"},
        {"{\"properties\":{\"a.b\":{\"\\n\":1}}}", "properties[\"a.b\"][\"\\n\"]", "is not supported"},
        {"{\"properties\":{\"\xe6\x97\xb6\xe9\x97\xb4\":5}}", "properties.\xe6\x97\xb6\xe9\x97\xb4",
         "must be an object of keywords"},

        {"{\"type\":\"text\"}", "type", "type must be string, number, integer"},
        {"{\"type\":[]}", "type", "must be string"},
        {"{\"type\":[\"string\",5]}", "type", "must be string"},
        {"{\"type\":null}", "type", "must be string"},
        {"{\"properties\":[]}", "properties", "must be an object"},
        {"{\"required\":\"a\"}", "required", "must be a list of names"},
        {"{\"required\":[1]}", "required", "must be a list of names"},
        {"{\"additionalProperties\":1}", "additionalProperties", "must be an object of keywords"},
        {"{\"additionalProperties\":false,\"required\":[\"a\"]}", "additionalProperties",
         "\"a\" is required, but not in properties"},
        {"{\"items\":[{}]}", "items", "a list of schemas is not supported"},
        {"{\"items\":false}", "items", "false takes nothing"},
        {"{\"enum\":[]}", "enum", "at least one value"},
        {"{\"enum\":{}}", "enum", "at least one value"},
        {"{\"minimum\":\"1\"}", "minimum", "must be a number"},
        {"{\"exclusiveMinimum\":true}", "exclusiveMinimum", "must be a number"},
        {"{\"minLength\":-1}", "minLength", "must be a whole number, 0 or more"},
        {"{\"maxLength\":1.5}", "maxLength", "must be a whole number"},
        {"{\"minItems\":\"1\"}", "minItems", "must be a whole number"},
        {"{\"maxItems\":1e99}", "maxItems", "must be a whole number"},
        {"{\"uniqueItems\":1}", "uniqueItems", "must be true or false"},
        {X("\"format\":\"time\""), "properties.x.format",
         "properties.x.format \"time\" is not supported; use date-time, date, email or uri"},
        {"{\"format\":1}", "format", "is not supported"},
    };
    /* clang-format on */
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct schema *schema = NULL;
        struct fault fault = {0};
        enum err e = compiled(&arena, rows[i].schema, &schema, &fault);
        if (e != ERR_INVALID_FIELD || schema || strcmp(fault.field, rows[i].field) ||
            !strstr(fault.text, rows[i].text))
            fail_msg("%s: got %s at \"%s\": \"%s\", expected \"%s\": \"%s\"", rows[i].schema,
                     err_code(e), fault.field, fault.text, rows[i].field, rows[i].text);
        assert_int_equal(compiled(&arena, rows[i].schema, &schema, NULL), ERR_INVALID_FIELD);
    }
}

/* Schemas inside each other, `levels` of them. */
static void nested(struct buf *out, size_t levels)
{
    for (size_t i = 1; i < levels; i++) buf_append(out, STR("{\"items\":"));
    buf_append(out, STR("{}"));
    for (size_t i = 1; i < levels; i++) buf_char(out, '}');
}

static void many_properties(struct buf *out, size_t count)
{
    buf_append(out, STR("{\"properties\":{\"inner\":{\"properties\":{"));
    for (size_t i = 1; i < count - 1; i++) buf_printf(out, "%s\"p%zu\":{}", i > 1 ? "," : "", i);
    buf_append(out, STR("}}},\"required\":[\"inner\",\"other\"]}"));
}

static void many_values(struct buf *out, size_t count)
{
    buf_append(out, STR("{\"enum\":["));
    for (size_t i = 0; i < count; i++) buf_printf(out, "%s%zu", i ? "," : "", i);
    buf_append(out, STR("]}"));
}

static void limits(void **state)
{
    (void)state;
    static const struct {
        void (*make)(struct buf *out, size_t count);
        size_t max;
        const char *text;
    } rows[] = {
        {nested, SCHEMA_DEPTH_MAX, "is more than 16 levels deep"},
        {many_properties, SCHEMA_PROPERTIES_MAX, "makes more than 500 properties"},
        {many_values, SCHEMA_ENUM_MAX, "has more than 500 values"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t over = 0; over < 2; over++) {
            AUTO(arena_done) struct arena arena;
            AUTO(buf_done) struct buf text;
            arena_init(&arena);
            buf_init(&text, 1 << 20);
            rows[i].make(&text, rows[i].max + over);
            buf_char(&text, '\0');
            struct schema *schema = NULL;
            struct fault fault = {0};
            enum err e = compiled(&arena, text.p, &schema, &fault);
            if (e != (over ? ERR_INVALID_FIELD : OK) || (over && !strstr(fault.text, rows[i].text)))
                fail_msg("row %zu, %zu over: %s \"%s\"", i, over, err_code(e), fault.text);
        }
    }
}

/* ---- values ---- */

static void check_row(const char *schema_text, const char *value, const char *refusal)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct schema *schema = NULL;
    struct fault fault = {0};
    if (compiled(&arena, schema_text, &schema, &fault)) fail_msg("%s: %s", schema_text, fault.text);
    const struct json *json = parsed(&arena, value);
    enum err e = schema_check(schema, json, "args", &fault);
    if (e != (refusal ? ERR_INVALID_FIELD : OK) || (refusal && strcmp(fault.text, refusal)))
        fail_msg("%s of %s: got %s \"%s\", expected \"%s\"", value, schema_text, err_code(e),
                 e ? fault.text : "", refusal ? refusal : "OK");
    assert_int_equal(schema_check(schema, json, "args", NULL), e);
    size_t path = strlen(fault.field);
    if (e && (strncmp(fault.text, fault.field, path) != 0 || fault.text[path] != ' '))
        fail_msg("\"%s\" does not begin with the path \"%s\"", fault.text, fault.field);
}

struct row {
    const char *schema, *value;
    const char *refusal; /* NULL: it fits */
};

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) check_row(rows[i].schema, rows[i].value, rows[i].refusal);
}

#define TYPE(name) "{\"type\":\"" name "\"}"

static void type_rows(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{}", "{\"a\":[1,null]}", NULL},
        {"true", "5", NULL},
        {TYPE("string"), "\"\"", NULL},
        {TYPE("string"), "5", "args must be a string, not an integer"},
        {TYPE("number"), "1.5", NULL},
        {TYPE("number"), "5", NULL},
        {TYPE("number"), "\"5\"", "args must be a number, not a string"},
        {TYPE("integer"), "5", NULL},
        {TYPE("integer"), "-0", NULL},
        {TYPE("integer"), "1.0", NULL},
        {TYPE("integer"), "1e3", NULL},
        {TYPE("integer"), "120e-1", NULL},
        {TYPE("integer"), "9223372036854775807", NULL},
        {TYPE("integer"), "1.5", "args must be an integer, not 1.5"},
        {TYPE("integer"), "1e-3", "args must be an integer, not 1e-3"},
        {TYPE("integer"), "9007199254740993.5", "args must be an integer, not 9007199254740993.5"},
        {TYPE("integer"), "1.00000000000000000000000000000000000000001",
         "args must be an integer, not a number"},
        {TYPE("boolean"), "true", NULL},
        {TYPE("boolean"), "0", "args must be true or false, not an integer"},
        {TYPE("null"), "null", NULL},
        {TYPE("null"), "false", "args must be null, not true or false"},
        {TYPE("array"), "[]", NULL},
        {TYPE("array"), "{}", "args must be a list, not an object"},
        {TYPE("object"), "{}", NULL},
        {TYPE("object"), "[]", "args must be an object, not a list"},
        {"{\"type\":[\"string\",\"null\"]}", "null", NULL},
        {"{\"type\":[\"string\",\"null\"]}", "\"a\"", NULL},
        {"{\"type\":[\"string\",\"null\"]}", "[]", "args must be null or a string, not a list"},
        {"{\"type\":[\"integer\",\"number\"]}", "1.5", NULL},
    };
    check_rows(rows, COUNT(rows));
}

#define PERSON                                                                               \
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":" \
    "\"integer\"}},\"required\":[\"name\"],\"additionalProperties\":false}"

static void objects(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {PERSON, "{\"name\":\"a\"}", NULL},
        {PERSON, "{\"age\":1,\"name\":\"a\"}", NULL},
        {PERSON, "{}", "args.name is missing"},
        {PERSON, "{\"age\":1}", "args.name is missing"},
        {PERSON, "{\"name\":1}", "args.name must be a string, not an integer"},
        {PERSON, "{\"name\":null}", "args.name must be a string, not null"},
        {PERSON, "{\"nmae\":\"a\"}", "args.nmae is not known; known are name, age"},
        {PERSON, "{\"a b\":1}", "args[\"a b\"] is not known; known are name, age"},
        {PERSON, "{\"\\u0000\":1}", "args[\"\\u0000\"] is not known; known are name, age"},
        {"{\"additionalProperties\":false}", "{\"a\":1}",
         "args.a is not known; nothing may stand there"},
        {"{\"additionalProperties\":false}", "5", NULL},
        {"{\"additionalProperties\":true}", "{\"a\":1}", NULL},
        {"{\"additionalProperties\":{\"type\":\"string\"}}", "{\"a\":\"x\",\"b\":1}",
         "args.b must be a string, not an integer"},
        {"{\"additionalProperties\":{\"type\":\"string\"},\"properties\":{\"b\":{}}}", "{\"b\":1}",
         NULL},
        {"{\"required\":[\"a\",\"a\"]}", "{\"a\":null}", NULL},
        {"{\"required\":[\"a\"]}", "{}", "args.a is missing"},
        {"{\"required\":[\"a\"],\"additionalProperties\":{\"type\":\"null\"}}", "{\"a\":1}",
         "args.a must be null, not an integer"},
        {"{\"properties\":{\"a\":true}}", "{\"a\":1}", NULL},
        {"{\"properties\":{\"a\":{\"properties\":{\"b\":{\"items\":{\"type\":\"null\"}}}}}}",
         "{\"a\":{\"b\":[null,null,3]}}", "args.a.b[2] must be null, not an integer"},
    };
    check_rows(rows, COUNT(rows));
}

static void choices(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{\"enum\":[\"a\",1,null,{\"b\":[1,2],\"c\":3}]}", "1.0", NULL},
        {"{\"enum\":[\"a\",1,null,{\"b\":[1,2],\"c\":3}]}", "null", NULL},
        {"{\"enum\":[\"a\",1,null,{\"b\":[1,2],\"c\":3}]}", "{\"c\":3.0,\"b\":[1,2]}", NULL},
        {"{\"enum\":[\"a\",1,null,{\"b\":[1,2]}]}", "{\"b\":[2,1]}",
         "args must be one of \"a\", 1, null, {\"b\":[1,2]}"},
        {"{\"enum\":[0]}", "false", "args must be one of 0"},
        {"{\"enum\":[[\n1]]}", "1", "args must be one of [ 1]"},
        {"{\"const\":\"a\\u0062\"}", "\"ab\"", NULL},
        {"{\"const\":\"x\"}", "\"y\"", "args must be \"x\""},
        {"{\"const\":null}", "null", NULL},
        {"{\"const\":1,\"enum\":[1,2]}", "2", "args must be 1"},
        {"{\"const\":{\"a\":1,\"b\":2}}", "{\"a\":1,\"c\":2}", "args must be {\"a\":1,\"b\":2}"},
        {"{\"const\":9007199254740993}", "9007199254740992", "args must be 9007199254740993"},
    };
    check_rows(rows, COUNT(rows));
}

static void numbers(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{\"minimum\":1}", "1", NULL},
        {"{\"minimum\":1}", "1.0", NULL},
        {"{\"minimum\":1}", "0", "args must be at least 1"},
        {"{\"minimum\":1}", "\"0\"", NULL},
        {"{\"maximum\":1.5}", "1.5", NULL},
        {"{\"maximum\":1.5}", "15e-1", NULL},
        {"{\"maximum\":1.5}", "1.51", "args must be at most 1.5"},
        {"{\"exclusiveMinimum\":0}", "1e-400", NULL},
        {"{\"exclusiveMinimum\":0}", "0.00", "args must be more than 0"},
        {"{\"exclusiveMinimum\":0}", "-1", "args must be more than 0"},
        {"{\"exclusiveMaximum\":1}", "0.99999999999999999999", NULL},
        {"{\"exclusiveMaximum\":1}", "1", "args must be less than 1"},
        {"{\"exclusiveMaximum\":1}", "2", "args must be less than 1"},
        {"{\"maximum\":9007199254740992}", "9007199254740993",
         "args must be at most 9007199254740992"},
        {"{\"maximum\":9223372036854775807}", "9223372036854775808",
         "args must be at most 9223372036854775807"},
        {"{\"minimum\":-9223372036854775808}", "-9223372036854775808", NULL},
        {"{\"maximum\":1e400}", "1e401", "args must be at most 1e400"},
        {"{\"maximum\":-1}", "0", "args must be at most -1"},
    };
    check_rows(rows, COUNT(rows));
}

static void lengths(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{\"minLength\":1}", "\"\"", "args must not be empty"},
        {"{\"minLength\":2}", "\"\"", "args must have at least 2 characters, not 0"},
        {"{\"minLength\":2}", "\"会议\"", NULL},
        {"{\"minLength\":2}", "\"\\ud83d\\ude00\"", "args must have at least 2 characters, not 1"},
        {"{\"maxLength\":2}", "\"会议\"", NULL},
        {"{\"maxLength\":2.0}", "\"会议室\"", "args must have at most 2 characters, not 3"},
        {"{\"maxLength\":1}", "\"ab\"", "args must have at most 1 character, not 2"},
        {"{\"maxLength\":1}", "22", NULL},
        {"{\"minItems\":1}", "[]", "args must not be empty"},
        {"{\"minItems\":2}", "[1]", "args must have at least 2 items, not 1"},
        {"{\"minItems\":2}", "[1,2]", NULL},
        {"{\"maxItems\":1}", "[1]", NULL},
        {"{\"maxItems\":1}", "[1,2]", "args must have at most 1 item, not 2"},
        {"{\"maxItems\":0}", "[]", NULL},
        {"{\"uniqueItems\":true}", "[1,2,\"1\",[1],{\"a\":1},null,false]", NULL},
        {"{\"uniqueItems\":true}", "[1,2,1.0]",
         "args[2] is the same as item 0; each may stand there once"},
        {"{\"uniqueItems\":true}", "[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1}]",
         "args[1] is the same as item 0; each may stand there once"},
        {"{\"uniqueItems\":false}", "[1,1]", NULL},
        {"{\"items\":{\"type\":\"integer\"},\"uniqueItems\":true}", "[1,1,\"x\"]",
         "args[2] must be an integer, not a string"},
    };
    check_rows(rows, COUNT(rows));
}

/* Annotations say nothing about values. */
static void annotations(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"title\":\"t\","
         "\"description\":\"d\",\"default\":{\"oneOf\":1},\"examples\":[1]}",
         "\"x\"", NULL},
    };
    check_rows(rows, COUNT(rows));
}

static void formats(void **state)
{
    (void)state;
    static const struct {
        const char *format, *text;
        bool fits;
    } rows[] = {
        {"date-time", "2026-11-16T15:00:00+08:00", true},
        {"date-time", "2026-11-16T15:00:00Z", true},
        {"date-time", "2026-11-16T15:00:00.123456Z", true},
        {"date-time", "2026-11-16T15:00:00", false},
        {"date-time", "2026-11-16 15:00:00Z", false},
        {"date-time", "2026-11-16", false},
        {"date-time", "2026-02-30T15:00:00Z", false},
        {"date-time", "2026-11-16T24:00:00Z", false},
        {"date-time", "tomorrow", false},
        {"date-time", "", false},
        {"date", "2028-02-29", true},
        {"date", "2026-02-29", false},
        {"date", "2026-11-16T15:00:00Z", false},
        {"date", "16.11.2026", false},
        {"email", "name@example.org", true},
        {"email", "a.b+c_d@x-y.example.org", true},
        {"email", "name@localhost", true},
        {"email", "name", false},
        {"email", "@example.org", false},
        {"email", "name@", false},
        {"email", "a..b@example.org", false},
        {"email", ".a@example.org", false},
        {"email", "a b@example.org", false},
        {"email", "a@b@example.org", false},
        {"email", "a@-x.org", false},
        {"email", "a@x-.org", false},
        {"email", "a@example..org", false},
        {"email", "a@exa_mple.org", false},
        {"email", "名@example.org", false},
        {"uri", "https://example.org/a?b=c#d", true},
        {"uri", "http://user:pw@[::1]:8080/", true},
        {"uri", "mailto:name@example.org", true},
        {"uri", "urn:isbn:0451450523", true},
        {"uri", "https://example.org/%E4%BC%9A", true},
        {"uri", "https://example.org/会", false},
        {"uri", "https://example.org/%zz", false},
        {"uri", "https://example.org/%4", false},
        {"uri", "https://example.org/a b", false},
        {"uri", "https://example.org:port/", false},
        {"uri", "https://[::1/", false},
        {"uri", "https://[::1]x/", false},
        {"uri", "https://a[::1]/", false},
        {"uri", "https://example.org/#a#b", false},
        {"uri", "/path", false},
        {"uri", "example.org", false},
        {"uri", "1a://x", false},
        {"uri", ":", false},
        {"uri", "", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char schema[100], value[100], refusal[200];
        const struct text_format *format = text_format_find(str_c(rows[i].format));
        assert_non_null(format);
        snprintf(schema, sizeof schema, "{\"format\":\"%s\"}", rows[i].format);
        snprintf(value, sizeof value, "\"%s\"", rows[i].text);
        snprintf(refusal, sizeof refusal, "args must %s", format->must);
        check_row(schema, value, rows[i].fits ? NULL : refusal);
        check_row(schema, "5", NULL); /* only texts have a form */
    }
}

static void wording(void **state)
{
    (void)state;
    check_row("{\"properties\":{\"start_time\":{\"type\":\"string\",\"format\":\"date-time\"}}}",
              "{\"start_time\":\"tomorrow at three\"}",
              "args.start_time must be a date-time such as 2026-11-16T15:00:00+08:00");
}

/* Long names and lists are cut, between characters, and the fault stays valid UTF-8. */
static void long_refusals(void **state)
{
    (void)state;
    AUTO(buf_done) struct buf schema, value;
    buf_init(&schema, 1 << 20);
    buf_init(&value, 1 << 20);
    for (size_t len = 5; len < 60; len++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        buf_clear(&schema);
        buf_clear(&value);
        buf_append(&schema, STR("{\"additionalProperties\":false,\"properties\":{"));
        for (size_t i = 0; i < 20; i++) {
            buf_printf(&schema, "%s\"%zu", i ? "," : "", i);
            for (size_t k = 0; k < len; k++) buf_append(&schema, STR("会"));
            buf_append(&schema, STR("\":{}"));
        }
        buf_append(&schema, STR("}}"));
        buf_append(&value, STR("{\""));
        for (size_t k = 0; k < len; k++) buf_append(&value, STR("会"));
        buf_append(&value, STR("\":1}"));
        buf_char(&schema, '\0');
        buf_char(&value, '\0');
        struct schema *closed = NULL;
        struct fault fault = {0};
        assert_int_equal(compiled(&arena, schema.p, &closed, &fault), OK);
        assert_int_equal(schema_check(closed, parsed(&arena, value.p), "args", &fault),
                         ERR_INVALID_FIELD);
        assert_true(utf8_valid(str_c(fault.text)) && utf8_valid(str_c(fault.field)));
        assert_non_null(strstr(fault.text, " is not known; known are "));
        assert_non_null(strstr(fault.text, "..."));
        assert_true(strlen(fault.text) < sizeof fault.text - 1);
    }
}

/* No value takes long: comparing stops at a bound, and says so. */
static void hard_to_compare(void **state)
{
    (void)state;
    static const struct {
        size_t count;
        const char *refusal;
    } rows[] = {{1414, NULL}, {1415, "args is too large to be compared; make it shorter"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf value;
        buf_init(&value, 1 << 20);
        for (size_t k = 0; k < rows[i].count; k++) buf_printf(&value, "%c%zu", k ? ',' : '[', k);
        buf_char(&value, ']');
        buf_char(&value, '\0');
        check_row("{\"uniqueItems\":true}", value.p, rows[i].refusal);
    }
}

static void decimals(void **state)
{
    (void)state;
    static const char *const ascending[] = {"-1e401", "-1e400", "-10",     "-9.5", "-1",   "-1e-9",
                                            "0",      "1e-401", "0.00012", "0.1",  "0.11", "1",
                                            "1.0001", "9.99",   "10",      "10.5", "1e2",  "1e400"};
    static const char *const same[][3] = {
        {"0", "-0.00e5", "0e-999999999999999999999"},
        {"1", "1.000", "10e-1"},
        {"120", "1.2e2", "0.0012E+5"},
        {"-0.5", "-5e-1", "-0.50"},
    };
    for (size_t i = 0; i < COUNT(ascending); i++) {
        for (size_t k = 0; k < COUNT(ascending); k++) {
            struct decimal a = decimal_read(str_c(ascending[i]));
            struct decimal b = decimal_read(str_c(ascending[k]));
            int order = i < k ? -1 : i > k;
            if (decimal_cmp(&a, &b) != order)
                fail_msg("%s and %s: %d", ascending[i], ascending[k], decimal_cmp(&a, &b));
        }
    }
    for (size_t i = 0; i < COUNT(same); i++) {
        for (size_t k = 0; k < 9; k++) {
            struct decimal a = decimal_read(str_c(same[i][k / 3]));
            struct decimal b = decimal_read(str_c(same[i][k % 3]));
            if (decimal_cmp(&a, &b)) fail_msg("%s and %s differ", same[i][k / 3], same[i][k % 3]);
        }
    }
}

int test_schema(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused),       cmocka_unit_test(limits),
        cmocka_unit_test(type_rows),     cmocka_unit_test(objects),
        cmocka_unit_test(choices),       cmocka_unit_test(numbers),
        cmocka_unit_test(lengths),       cmocka_unit_test(annotations),
        cmocka_unit_test(formats),       cmocka_unit_test(wording),
        cmocka_unit_test(long_refusals), cmocka_unit_test(hard_to_compare),
        cmocka_unit_test(decimals),
    };
    return cmocka_run_group_tests_name("tool/schema", tests, NULL, NULL);
}
