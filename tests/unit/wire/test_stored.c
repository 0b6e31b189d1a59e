/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/stored.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

static void members(void **state)
{
    (void)state;
    static const struct {
        const char *object, *key, *value;
    } rows[] = {
        {"{}", "a", ""},
        {"", "a", ""},
        {"{\"a\":1}", "a", "1"},
        {"{\"a\":1,\"b\":2}", "b", "2"},
        {"{\"b\":{\"a\":1},\"a\":2}", "a", "2"},
        {"{\"b\":[{\"a\":1},\"]}\"],\"a\":[3]}", "a", "[3]"},
        {"{\"b\":\"\\\",\\\"a\\\":1\",\"a\":\"\\\\\"}", "a", "\"\\\\\""},
        {" { \"a\" : { \"x\" : 1 } , \"b\" : 2 } ", "a", "{ \"x\" : 1 }"},
        {" { \"a\" : { \"x\" : 1 } , \"b\" : 2 } ", "b", "2"},
        {"{\"a\":null,\"b\":0}", "a", ""},
        {"{\"ab\":1,\"a\":2}", "a", "2"},
        {"{\"a\":1,\"a\":2}", "a", "1"},
        {"{\"a\":1}", "b", ""},
        {"{\"\":1}", "", "1"},
        /* cut short: nothing is read behind the end */
        {"{\"a", "a", ""},
        {"{\"a\"", "a", ""},
        {"{\"a\":", "a", ""},
        {"{\"a\":\"x", "a", "\"x"},
        {"{\"a\":\"x\\", "a", "\"x\\"},
        {"[1]", "a", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *copy = strdup(rows[i].object); /* so that a sanitizer sees its end */
        assert_non_null(copy);
        str object = {copy, strlen(copy)};
        str got = stored_get(object, str_c(rows[i].key));
        if (!str_eq(got, str_c(rows[i].value))) print_message("%s\n", rows[i].object);
        assert_str(got, str_c(rows[i].value));
        free(copy);
    }
}

static void texts(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str object = STR("{\"a\":\"x\\n\\u4f60\",\"b\":1,\"c\":\"\"}");
    assert_str(stored_text(&arena, object, STR("a")), STR("x\n你"));
    assert_str(stored_text(&arena, object, STR("b")), STR_EMPTY);
    assert_str(stored_text(&arena, object, STR("c")), STR_EMPTY);
    assert_str(stored_text(&arena, object, STR("d")), STR_EMPTY);
    assert_str(stored_string(&arena, STR("\"\\\"\"")), STR("\""));
    assert_str(stored_string(&arena, STR("[\"a\"]")), STR_EMPTY);
    assert_str(stored_string(&arena, STR_EMPTY), STR_EMPTY);
}

int test_stored(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(members), cmocka_unit_test(texts)};
    return cmocka_run_group_tests_name("wire/stored", tests, NULL, NULL);
}
