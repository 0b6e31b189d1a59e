/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client brings for the model: which of its tools are offered, and what is told of its context.
 */
#include <stdio.h>

#include "agent/core/front.h"
#include "base/limits.h"
#include "check.h"

#define TAKEN "a tool of the server has this name"

static const struct tool server_rows[] = {{.name = STR("calendar_read")}, {.name = STR("launch")}};
static const struct tools server = {server_rows, COUNT(server_rows)};

static struct json *parsed(struct arena *arena, str text)
{
    struct json *json = NULL;
    if (json_parse(arena, text, &json, NULL)) fail_msg("%.*s is no JSON", STR_ARG(text));
    return json;
}

static void which_tools(void **state)
{
    (void)state;
    static const struct {
        const char *given, *offered, *why; /* why: of the last one that is not offered */
        size_t refused;
    } rows[] = {
        {"[]", "", NULL, 0},
        {"null", "", NULL, 0},
        {"{\"name\":\"a\"}", "", NULL, 0},
        {"[{\"name\":\"paint\",\"description\":\"Paints\",\"parameters\":{\"type\":\"object\"}}]",
         "[{\"name\":\"paint\",\"description\":\"Paints\",\"parameters\":{\"type\":\"object\"}}]",
         NULL, 0},
        {"[{\"name\":\"a\"},{\"name\":\"B-2_\",\"description\":null,\"parameters\":null,\"x\":1}]",
         "[{\"name\":\"a\",\"description\":\"\"},{\"name\":\"B-2_\",\"description\":\"\"}]", NULL,
         0},
        {"[{\"name\":\"a\",\"parameters\":{\n\"x\": \"a\\nb\"\r\n}}]",
         "[{\"name\":\"a\",\"description\":\"\",\"parameters\":{ \"x\": \"a\\nb\"  }}]", NULL, 0},
        {"[{\"name\":\"launch\"},{\"name\":\"b\"}]", "[{\"name\":\"b\",\"description\":\"\"}]",
         TAKEN, 1},
        {"[{\"name\":\"ask_user\"},{\"name\":\"submit_plan\"},{\"name\":\"show_card\"}]", "", TAKEN,
         3},
        {"[{\"name\":\"\"},{\"name\":\"a b\"},{\"name\":7},{}]", "",
         "its name is not 1 to 64 of [A-Za-z0-9_-]", 4},
        {"[{\"name\":\"图\"}]", "", "its name is not 1 to 64 of [A-Za-z0-9_-]", 1},
        {"[\"a\",1,null,[]]", "", "it is no object", 4},
        {"[{\"name\":\"a\",\"description\":\"1\"},{\"name\":\"a\",\"description\":\"2\"}]",
         "[{\"name\":\"a\",\"description\":\"1\"}]", "another tool of the request has this name",
         1},
        {"[{\"name\":\"a\",\"description\":1}]", "", "its description is no string", 1},
        {"[{\"name\":\"a\",\"parameters\":[]}]", "", "its parameters are no object", 1},
        {"[{\"name\":\"a\",\"parameters\":true}]", "", "its parameters are no object", 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct front_refusals refused = {.more = 9};
        struct front_tools loaded;
        str tools =
            front_tools_parse(&arena, parsed(&arena, str_c(rows[i].given)), &server, &refused);
        assert_str(tools, str_c(rows[i].offered));
        assert_int_equal(refused.count, rows[i].refused);
        assert_int_equal(refused.more, 0);
        if (refused.count) assert_string_equal(refused.rows[refused.count - 1].why, rows[i].why);
        assert_int_equal(front_tools_load(&arena, tools, &loaded), OK);
    }
}

/* A list of `count` tools, each with a description of `bytes` bytes. */
static str many(struct arena *arena, size_t count, size_t bytes)
{
    struct buf out;
    buf_init(&out, 64 * 1024 * 1024);
    buf_char(&out, '[');
    for (size_t i = 0; i < count; i++) {
        buf_printf(&out, "%s{\"name\":\"t%zu\",\"description\":\"", i ? "," : "", i);
        for (size_t j = 0; j < bytes; j++) buf_char(&out, 'x');
        buf_append(&out, STR("\"}"));
    }
    buf_char(&out, ']');
    assert_false(out.full);
    str text = arena_str(arena, buf_str(&out));
    buf_done(&out);
    return text;
}

static void bounds(void **state)
{
    (void)state;
    enum { FRAME = sizeof "{\"name\":\"t0\",\"description\":\"\"}" - 1 };
    static const struct {
        size_t count, bytes, offered;
    } rows[] = {
        {FRONT_TOOLS_MAX, 0, FRONT_TOOLS_MAX},         {FRONT_TOOLS_MAX + 1, 0, FRONT_TOOLS_MAX},
        {3 * FRONT_TOOLS_MAX + 1, 0, FRONT_TOOLS_MAX}, {1, FRONT_TOOLS_BYTES_MAX - 2 - FRAME, 1},
        {1, FRONT_TOOLS_BYTES_MAX - 1 - FRAME, 0},     {2, FRONT_TOOLS_BYTES_MAX / 2, 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct front_refusals refused;
        struct front_tools loaded;
        str given = many(&arena, rows[i].count, rows[i].bytes);
        str tools = front_tools_parse(&arena, parsed(&arena, given), &server, &refused);
        assert_true(tools.len <= FRONT_TOOLS_BYTES_MAX);
        assert_int_equal(front_tools_load(&arena, tools, &loaded), OK);
        assert_int_equal(loaded.count, rows[i].offered);
        assert_true(refused.count <= FRONT_TOOLS_MAX);
        assert_int_equal(loaded.count + refused.count + refused.more, rows[i].count);
    }
}

/* A name that is no name is not logged whole. */
static void long_names(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct front_refusals refused;
    str given = arena_printf(&arena, "[{\"name\":\"%065d\"},{\"name\":\"%064d\"}]", 0, 0);
    str tools = front_tools_parse(&arena, parsed(&arena, given), &server, &refused);
    assert_true(str_find(tools, STR("\"name\":\"0000")) >= 0);
    assert_int_equal(refused.count, 1);
    assert_int_equal(refused.rows[0].name.len, TOOL_NAME_BYTES_MAX);
}

static void stored_tools(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct front_tools tools = {.count = 7};
    static const char *const damaged[] = {"{}", "[", "1", "[1]", "[{\"name\":\"a b\"}]"};
    for (size_t i = 0; i < COUNT(damaged); i++) {
        assert_int_equal(front_tools_load(&arena, str_c(damaged[i]), &tools), ERR_DAMAGED);
        assert_int_equal(tools.count, 7);
    }
    assert_int_equal(front_tools_load(&arena,
                                      STR("[{\"name\":\"launch\",\"description\":\"\"},"
                                          "{\"name\":\"paint\",\"description\":\"d\","
                                          "\"parameters\":{\"a\":1}}]"),
                                      &tools),
                     OK);
    assert_int_equal(tools.count, 2);
    const struct front_tool *paint = front_find(&tools, &server, STR("paint"));
    assert_non_null(paint);
    assert_str(paint->description, STR("d"));
    assert_str(paint->schema, STR("{\"a\":1}"));
    assert_null(front_find(&tools, &server, STR("launch"))); /* the server has got one since */
    assert_null(front_find(&tools, &server, STR("ask_user")));
    assert_null(front_find(&tools, &server, STR("other")));
    assert_int_equal(front_tools_load(&arena, STR_EMPTY, &tools), OK);
    assert_int_equal(tools.count, 0);
}

static void which_context(void **state)
{
    (void)state;
    static const struct {
        const char *given, *told;
    } rows[] = {
        {"null", ""},
        {"[]", ""},
        {"\"words\"", ""},
        {"[{\"description\":\"page\",\"value\":\"cart\"}]",
         "[{\"description\":\"page\",\"value\":\"cart\"}]"},
        {"[{\"value\":\"  a\\n# b\\u0000 \"},{\"description\":\"d\"},7,{\"value\":null}]",
         "[{\"description\":\"\",\"value\":\"a # b \"}]"},
        {"[{\"description\":\"n\",\"value\":{\"a\":[1,\n2]}},{\"value\":\" \"}]",
         "[{\"description\":\"n\",\"value\":\"{\\\"a\\\":[1, 2]}\"}]"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        assert_str(front_context_parse(&arena, parsed(&arena, str_c(rows[i].given))),
                   str_c(rows[i].told));
    }
}

static void long_context(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct buf out;
    buf_init(&out, 64 * 1024 * 1024);
    for (int i = 0; i < 5000; i++)
        buf_printf(&out, "%s{\"description\":\"%d\",\"value\":\"x\"}", i ? "," : "[", i);
    buf_char(&out, ']');
    str told = front_context_parse(&arena, parsed(&arena, buf_str(&out)));
    assert_true(parsed(&arena, told)->count < FRONT_CONTEXT_BYTES_MAX / FRONT_CONTEXT_ENTRY_BYTES);
    buf_clear(&out);
    buf_append(&out, STR("[{\"description\":\"d\",\"value\":\""));
    for (int i = 0; i < FRONT_CONTEXT_BYTES_MAX; i++) buf_append(&out, STR("图"));
    buf_append(&out, STR("\"},{\"description\":\"behind\",\"value\":\"v\"}]"));
    told = front_context_parse(&arena, parsed(&arena, buf_str(&out)));
    const struct json *list = parsed(&arena, told);
    assert_int_equal(list->count, 1);
    str value = json_text(json_get(json_at(list, 0), STR("value")));
    assert_true(value.len < FRONT_CONTEXT_BYTES_MAX + 8 && str_ends(value, STR("图 …")));
    buf_done(&out);
}

static void one_request(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct leg_input input = {.input = STR("kept")};
    struct front_refusals refused;
    front_read(&arena,
               parsed(&arena, STR("{\"tools\":[{\"name\":\"a\"},{\"name\":\"launch\"}],"
                                  "\"context\":[{\"description\":\"d\",\"value\":\"v\"}]}")),
               &server, &input, &refused);
    assert_str(input.input, STR("kept"));
    assert_str(input.tools, STR("[{\"name\":\"a\",\"description\":\"\"}]"));
    assert_str(input.context, STR("[{\"description\":\"d\",\"value\":\"v\"}]"));
    assert_int_equal(refused.count, 1);
    assert_str(refused.rows[0].name, STR("launch"));
    front_read(&arena, parsed(&arena, STR("{}")), &server, &input, &refused);
    assert_int_equal(input.tools.len + input.context.len + refused.count, 0);
}

int test_front(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_tools),   cmocka_unit_test(bounds),
        cmocka_unit_test(long_names),    cmocka_unit_test(stored_tools),
        cmocka_unit_test(which_context), cmocka_unit_test(long_context),
        cmocka_unit_test(one_request),
    };
    return cmocka_run_group_tests_name("agent/front", tests, NULL, NULL);
}
