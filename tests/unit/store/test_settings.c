/* SPDX-License-Identifier: Apache-2.0 */
#include "store/table/settings.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "store/fixture.h"

static void life(void **state)
{
    struct db_fixture *t = *state;
    str scope = STR("agent/assistant"), name = STR("locale"), value = STR("untouched");
    assert_int_equal(settings_get(t->db, scope, name, &t->arena, &value), ERR_NOT_FOUND);
    assert_str(value, STR("untouched"));

    static const char *const values[] = {"zh-CN", "", "it's \"quoted\"; DROP TABLE settings"};
    for (size_t i = 0; i < COUNT(values); i++) {
        assert_int_equal(settings_set(t->db, scope, name, str_c(values[i])), OK);
        assert_int_equal(settings_get(t->db, scope, name, &t->arena, &value), OK);
        assert_str(value, str_c(values[i]));
    }
    assert_int_equal(settings_get(t->db, STR("agent/other"), name, &t->arena, &value),
                     ERR_NOT_FOUND);
    assert_int_equal(settings_delete(t->db, scope, name), OK);
    assert_int_equal(settings_delete(t->db, scope, name), OK);
    assert_int_equal(settings_get(t->db, scope, name, &t->arena, &value), ERR_NOT_FOUND);
}

static void limits(void **state)
{
    struct db_fixture *t = *state;
    static char bytes[SETTING_VALUE_BYTES_MAX + 1];
    memset(bytes, 'x', sizeof bytes);
    static const struct {
        size_t scope, name, value;
        enum err expected;
    } rows[] = {
        {SETTING_NAME_BYTES_MAX, SETTING_NAME_BYTES_MAX, SETTING_VALUE_BYTES_MAX, OK},
        {SETTING_NAME_BYTES_MAX + 1, 1, 1, ERR_TOO_LARGE},
        {1, SETTING_NAME_BYTES_MAX + 1, 1, ERR_TOO_LARGE},
        {1, 1, SETTING_VALUE_BYTES_MAX + 1, ERR_TOO_LARGE},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(settings_set(t->db, (str){bytes, rows[i].scope},
                                      (str){bytes, rows[i].name}, (str){bytes, rows[i].value}),
                         rows[i].expected);
}

int test_settings(void)
{
    const struct CMUnitTest tests[] = {WITH_DB(life), WITH_DB(limits)};
    return cmocka_run_group_tests_name("store/settings", tests, NULL, NULL);
}
