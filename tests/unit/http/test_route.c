/* SPDX-License-Identifier: Apache-2.0
 *
 * Matching, against a small table; and every row of the real table, for what the compiler cannot
 * see.
 */
#include "http/route.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "check.h"
#include "http/openapi.h"

static const struct route sample_rows[] = {
    {.method = HTTP_GET, .path = "/", .name = "root"},
    {.method = HTTP_GET, .path = "/things", .name = "list"},
    {.method = HTTP_POST, .path = "/things", .name = "add"},
    {.method = HTTP_GET, .path = "/things/special", .name = "special"},
    {.method = HTTP_GET, .path = "/things/{id}", .name = "get"},
    {.method = HTTP_DELETE, .path = "/things/{id}", .name = "remove"},
    {.method = HTTP_POST, .path = "/things/{id}/parts/{part}", .name = "part"},
};
static const struct routes sample = {sample_rows, COUNT(sample_rows)};

struct match {
    enum err err;
    const struct route *route;
    str params[ROUTE_PARAMS_MAX];
    char allow[ROUTE_ALLOW_BYTES];
};

static struct match find(const struct routes *routes, enum http_method method, const char *path)
{
    struct match m = {0};
    m.err = route_find(routes, method, str_c(path), &m.route, m.params, m.allow);
    return m;
}

static void found(void **state)
{
    (void)state;
    static const struct {
        enum http_method method;
        const char *path, *name, *first, *second;
    } rows[] = {
        {HTTP_GET, "/", "root", "", ""},
        {HTTP_GET, "/things", "list", "", ""},
        {HTTP_HEAD, "/things", "list", "", ""},
        {HTTP_POST, "/things", "add", "", ""},
        {HTTP_GET, "/things/a", "get", "a", ""},
        {HTTP_DELETE, "/things/a", "remove", "a", ""},
        {HTTP_GET, "/things/special", "special", "", ""},
        {HTTP_GET, "/things/%2F", "get", "%2F", ""}, /* an encoded slash is no slash */
        {HTTP_GET, "/things/{id}", "get", "{id}", ""},
        {HTTP_GET, "/things/..", "get", "..", ""},
        {HTTP_POST, "/things/a/parts/b", "part", "a", "b"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct match m = find(&sample, rows[i].method, rows[i].path);
        assert_int_equal(m.err, OK);
        assert_string_equal(m.route->name, rows[i].name);
        if (rows[i].first[0]) assert_str(m.params[0], str_c(rows[i].first));
        if (rows[i].second[0]) assert_str(m.params[1], str_c(rows[i].second));
    }
}

static void not_found(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "",
        "//",
        "/thing",
        "/thingss",
        "/Things",
        "/things/",
        "//things",
        "/things//",
        "/things//parts/b",
        "/things/a/",
        "/things/a/parts/",
        "/things/a/parts/b/",
        "/things/a/parts/b/c",
        "things",
        "/things?x",
    };
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct match m = find(&sample, HTTP_GET, paths[i]);
        if (m.err != ERR_NOT_FOUND) print_message("[  ROW     ] %s\n", paths[i]);
        assert_int_equal(m.err, ERR_NOT_FOUND);
        assert_null(m.route);
        assert_string_equal(m.allow, "");
    }
}

static void not_allowed(void **state)
{
    (void)state;
    static const struct {
        enum http_method method;
        const char *path, *allow;
    } rows[] = {
        {HTTP_POST, "/", "GET, HEAD, OPTIONS"},
        {HTTP_DELETE, "/things", "GET, HEAD, POST, OPTIONS"},
        {HTTP_OPTIONS, "/things", "GET, HEAD, POST, OPTIONS"},
        {HTTP_PATCH, "/things/a", "GET, HEAD, DELETE, OPTIONS"},
        {HTTP_GET, "/things/a/parts/b", "POST, OPTIONS"},
        {HTTP_HEAD, "/things/a/parts/b", "POST, OPTIONS"},
        {HTTP_PUT, "/things/special", "GET, HEAD, DELETE, OPTIONS"}, /* it is also a {id} */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct match m = find(&sample, rows[i].method, rows[i].path);
        assert_int_equal(m.err, ERR_METHOD_NOT_ALLOWED);
        assert_null(m.route);
        assert_string_equal(m.allow, rows[i].allow);
    }
}

static void every_method_fits_into_allow(void **state)
{
    (void)state;
    struct route rows[HTTP_METHOD_COUNT];
    size_t count = 0;
    for (enum http_method method = 0; method < HTTP_METHOD_COUNT; method++)
        if (method != HTTP_HEAD && method != HTTP_OPTIONS)
            rows[count++] = (struct route){.method = method, .path = "/x"};
    struct match m = find(&(struct routes){rows, count}, HTTP_OPTIONS, "/x");
    assert_int_equal(m.err, ERR_METHOD_NOT_ALLOWED);
    assert_string_equal(m.allow, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
}

/* ---- the table itself ---- */

static size_t param_count(const char *path)
{
    size_t count = 0;
    for (; *path; path++) count += *path == '{';
    return count;
}

static void check_schemas(const struct route *row)
{
    if (row->body) assert_true(openapi_has_schema(row->body));
    assert_true(row->answers[0].status > 0); /* every route says how it answers */
    for (size_t i = 0; i < ROUTE_ANSWERS_MAX && row->answers[i].status; i++) {
        const struct route_answer *answer = &row->answers[i], *before = i ? answer - 1 : NULL;
        /* in order, so that what is the same stands together */
        if (before) assert_true(answer->status >= before->status);
        if (before && answer->status == before->status)
            assert_string_not_equal(answer->schema, before->schema);
        if (answer->schema) assert_true(openapi_has_schema(answer->schema));
        bool bare = answer->status == 101 || answer->status == 204 || answer->status == 304;
        bool either = answer->status == 202; /* taken: with a receipt, or without */
        if (!either) assert_int_equal(answer->schema == NULL, bare);
    }
}

static bool answers_with(const struct route *row, int status)
{
    for (size_t i = 0; i < ROUTE_ANSWERS_MAX; i++)
        if (row->answers[i].status == status) return true;
    return false;
}

/* A key that was used for another request is refused on every row that takes one. */
static void check_carries(const struct route *row)
{
    for (size_t i = 0; i < ROUTE_CARRIES_MAX && row->carries[i]; i++) {
        assert_true(openapi_has_parameter(row->carries[i]));
        for (size_t j = 0; j < i; j++) assert_string_not_equal(row->carries[i], row->carries[j]);
        if (strcmp(row->carries[i], "IdempotencyKey") == 0)
            assert_true(answers_with(row, 400) && answers_with(row, 422));
    }
}

static void public_rows(void **state)
{
    (void)state;
    assert_true(public_routes.count > 0);
    for (size_t i = 0; i < public_routes.count; i++) {
        const struct route *row = &public_routes.rows[i];
        assert_non_null(row->handle);
        assert_true(row->name && row->name[0]);
        assert_true(row->summary && row->summary[0]);
        assert_true(row->path[0] == '/');
        assert_true(param_count(row->path) <= ROUTE_PARAMS_MAX);
        assert_true(row->method != HTTP_HEAD && row->method != HTTP_OPTIONS); /* made for it */
        if (row->body) assert_true(row->form || row->body_bytes_max > 0);
        if (row->access != ACCESS_OPEN) assert_true(answers_with(row, 401));
        check_schemas(row);
        check_carries(row);
    }
}

static void public_rows_are_unique_and_adjacent(void **state)
{
    (void)state;
    const struct route *rows = public_routes.rows;
    for (size_t i = 0; i < public_routes.count; i++) {
        bool apart = false; /* another path since row i */
        for (size_t j = i + 1; j < public_routes.count; j++) {
            bool same = strcmp(rows[i].path, rows[j].path) == 0;
            assert_string_not_equal(rows[i].name, rows[j].name);
            assert_false(same && rows[i].method == rows[j].method);
            assert_false(same && apart);
            apart = apart || !same;
        }
    }
}

/* No row hides another: each is what its own path leads to. */
static void public_rows_are_reachable(void **state)
{
    (void)state;
    for (size_t i = 0; i < public_routes.count; i++) {
        const struct route *row = &public_routes.rows[i];
        struct match m = find(&public_routes, row->method, row->path);
        assert_int_equal(m.err, OK);
        assert_ptr_equal(m.route, row);
    }
}

static void document_is_json(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    AUTO(buf_done) struct buf out;
    buf_init(&out, 1024 * 1024);
    openapi_write(&out, &public_routes);
    assert_false(out.full);
    struct json *json = NULL;
    assert_int_equal(json_parse(&arena, buf_str(&out), &json, NULL), OK);
    const struct json *paths = json_get(json, STR("paths"));
    for (size_t i = 0; i < public_routes.count; i++)
        assert_non_null(json_get(paths, str_c(public_routes.rows[i].path)));
}

static void schema_names(void **state)
{
    (void)state;
    assert_true(openapi_has_schema("Problem"));
    assert_false(openapi_has_schema("problem"));
    assert_false(openapi_has_schema(""));
    assert_true(openapi_has_parameter("Limit"));
    assert_false(openapi_has_parameter("limit"));
}

static void admin_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < admin_routes.count; i++) {
        const struct route *row = &admin_routes.rows[i];
        struct match m = find(&admin_routes, row->method, row->path);
        assert_non_null(row->handle);
        assert_ptr_equal(m.route, row);
        /* What only the folder's owner may do has no public address. */
        assert_int_equal(find(&public_routes, row->method, row->path).err, ERR_NOT_FOUND);
    }
}

int test_route(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found),
        cmocka_unit_test(not_found),
        cmocka_unit_test(not_allowed),
        cmocka_unit_test(every_method_fits_into_allow),
        cmocka_unit_test(public_rows),
        cmocka_unit_test(public_rows_are_unique_and_adjacent),
        cmocka_unit_test(public_rows_are_reachable),
        cmocka_unit_test(document_is_json),
        cmocka_unit_test(schema_names),
        cmocka_unit_test(admin_rows),
    };
    return cmocka_run_group_tests_name("app/route", tests, NULL, NULL);
}
