/* SPDX-License-Identifier: Apache-2.0
 *
 * Which form of a file a browser gets, by tables; what the policy says; and that the table inside the
 * binary is whole.
 */
#include "http/assets.h"

#include <string.h>

#include "check.h"

static const struct asset all = {.forms = {[ENCODING_BR] = {.etag = "\"b\""},
                                           [ENCODING_GZIP] = {.etag = "\"g\""},
                                           [ENCODING_IDENTITY] = {.etag = "\"i\""}}};
static const struct asset no_br = {
    .forms = {[ENCODING_GZIP] = {.etag = "\"g\""}, [ENCODING_IDENTITY] = {.etag = "\"i\""}}};
static const struct asset plain = {.forms = {[ENCODING_IDENTITY] = {.etag = "\"i\""}}};

static void best_form(void **state)
{
    static const struct {
        const char *accept;
        enum encoding of_all, of_no_br;
    } rows[] = {
        {"", ENCODING_IDENTITY, ENCODING_IDENTITY},
        {"gzip, deflate, br, zstd", ENCODING_BR, ENCODING_GZIP},
        {"gzip", ENCODING_GZIP, ENCODING_GZIP},
        {"GZip", ENCODING_GZIP, ENCODING_GZIP},
        {"br", ENCODING_BR, ENCODING_IDENTITY},
        {"deflate", ENCODING_IDENTITY, ENCODING_IDENTITY},
        {"brotli, gzipped", ENCODING_IDENTITY, ENCODING_IDENTITY},
        {"br;q=0, gzip", ENCODING_GZIP, ENCODING_GZIP},
        {"br;q=0.000, gzip;q=0.001", ENCODING_GZIP, ENCODING_GZIP},
        {"br;q=0.5, gzip;q=0.8", ENCODING_GZIP, ENCODING_GZIP},
        {"br ; Q=0.5 , gzip ; q=0.50", ENCODING_BR, ENCODING_GZIP},
        {"identity, gzip;q=0.9", ENCODING_IDENTITY, ENCODING_IDENTITY},
        {"identity;q=0.5, gzip;q=0.5", ENCODING_GZIP, ENCODING_GZIP},
        {"identity;q=0, gzip", ENCODING_GZIP, ENCODING_GZIP},
        {"*", ENCODING_BR, ENCODING_GZIP},
        {"*;q=0.3, br;q=0", ENCODING_GZIP, ENCODING_GZIP},
        {"*;q=0, gzip;q=1.000", ENCODING_GZIP, ENCODING_GZIP},
        {"gzip;q=0, *;q=0.1", ENCODING_BR, ENCODING_IDENTITY},
        {"*;q=0", ENCODING_IDENTITY, ENCODING_IDENTITY}, /* refusing all gets the file as it is */
        {"identity;q=0", ENCODING_IDENTITY, ENCODING_IDENTITY},
        {"br;level=3;q=0, gzip;x", ENCODING_GZIP, ENCODING_GZIP},
        {",, ,gzip,", ENCODING_GZIP, ENCODING_GZIP},
        /* what is malformed was not said */
        {"br;q=2, gzip;q=0.2", ENCODING_GZIP, ENCODING_GZIP},
        {"br;q=1.001", ENCODING_IDENTITY, ENCODING_IDENTITY},
        {"br;q=0.1234", ENCODING_IDENTITY, ENCODING_IDENTITY},
        {"br;q=, gzip;q=.5", ENCODING_IDENTITY, ENCODING_IDENTITY},
        {"br;q=-1", ENCODING_IDENTITY, ENCODING_IDENTITY},
        {"br;q=0.x, gzip;q", ENCODING_IDENTITY, ENCODING_IDENTITY},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        str accept = str_c(rows[i].accept);
        if (encoding_pick(&all, accept) != rows[i].of_all) fail_msg("all: %s", rows[i].accept);
        if (encoding_pick(&no_br, accept) != rows[i].of_no_br)
            fail_msg("no br: %s", rows[i].accept);
        assert_int_equal(encoding_pick(&plain, accept), ENCODING_IDENTITY);
    }
}

static void listed_tags(void **state)
{
    static const struct {
        const char *list;
        bool listed;
    } rows[] = {
        {"", false},      {"*", true},           {"\"a\"", true},           {"W/\"a\"", true},
        {"\"b\"", false}, {"\"b\",\"a\"", true}, {"\"b\" , W/\"a\"", true}, {"a", false},
        {"\"a", false},   {"\"A\"", false},      {"\"b\", *", false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (etag_listed(str_c(rows[i].list), STR("\"a\"")) != rows[i].listed)
            fail_msg("%s", rows[i].list);
}

static void policy_of_the_page(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    const str frames[] = {STR("https://a.example"), STR("http://b.example:8080")};
    str closed = page_policy(&arena, (struct strs){0});
    assert_true(str_find(closed, STR("; frame-ancestors 'none'; require-")) > 0);
    str one = page_policy(&arena, (struct strs){frames, 1});
    assert_true(str_find(one, STR("; frame-ancestors https://a.example; require-")) > 0);
    str both = page_policy(&arena, (struct strs){frames, 2});
    assert_true(
        str_find(both, STR("; frame-ancestors https://a.example http://b.example:8080; req")) > 0);
    arena_done(&arena);
}

static void table_is_whole(void **state)
{
    (void)state;
    assert_true(asset_count > 0);
    for (size_t i = 0; i < asset_count; i++) {
        const struct asset *asset = &asset_table[i];
        const struct asset_form *forms = asset->forms, *whole = &forms[ENCODING_IDENTITY];
        assert_ptr_equal(asset_find(str_c(asset->path)), asset);
        assert_non_null(whole->etag);
        for (enum encoding e = 0; e < ENCODING_IDENTITY; e++) {
            if (!forms[e].etag) continue;
            assert_true(forms[e].len < whole->len);
            assert_string_not_equal(forms[e].etag, whole->etag);
        }
    }
    assert_non_null(asset_find(STR("/")));
    assert_null(asset_find(STR("")));
    assert_null(asset_find(STR("/index.html")));
    assert_null(asset_find(STR("/../icon.svg")));
}

int test_assets(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_form),
        cmocka_unit_test(listed_tags),
        cmocka_unit_test(policy_of_the_page),
        cmocka_unit_test(table_is_whole),
    };
    return cmocka_run_group_tests_name("app/assets", tests, NULL, NULL);
}
