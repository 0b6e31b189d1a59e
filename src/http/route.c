/* SPDX-License-Identifier: Apache-2.0
 *
 * Matching a path against the route table: segment by segment, a `{name}` takes any one segment
 * that is not empty. The table is small and a match is a few comparisons, so it is walked in order.
 */
#include "http/route.h"

#include <stdio.h>
#include <string.h>

static bool path_matches(str pattern, str path, str params[static ROUTE_PARAMS_MAX])
{
    size_t count = 0;
    while (pattern.p && path.p) {
        str want = str_split(&pattern, '/'), have = str_split(&path, '/');
        if (want.len && want.p[0] == '{') {
            if (have.len == 0) return false;
            assert(count < ROUTE_PARAMS_MAX);
            params[count++] = have;
        } else if (!str_eq(want, have)) {
            return false;
        }
    }
    return !pattern.p && !path.p;
}

static void allow_add(char allow[static ROUTE_ALLOW_BYTES], enum http_method method)
{
    const char *name = http_method_name(method);
    if (strstr(allow, name)) return;
    size_t len = strlen(allow);
    snprintf(allow + len, ROUTE_ALLOW_BYTES - len, "%s%s", len ? ", " : "", name);
}

enum err route_find(const struct routes *routes, enum http_method method, str path,
                    const struct route **ret_route, str params[static ROUTE_PARAMS_MAX],
                    char allow[static ROUTE_ALLOW_BYTES])
{
    allow[0] = '\0';
    for (size_t i = 0; i < routes->count; i++) {
        const struct route *row = &routes->rows[i];
        if (!path_matches(str_c(row->path), path, params)) continue;
        if (row->method == method || (row->method == HTTP_GET && method == HTTP_HEAD)) {
            *ret_route = row;
            return OK;
        }
        allow_add(allow, row->method);
        if (row->method == HTTP_GET) allow_add(allow, HTTP_HEAD);
    }
    if (!allow[0]) return ERR_NOT_FOUND;
    allow_add(allow, HTTP_OPTIONS);
    return ERR_METHOD_NOT_ALLOWED;
}
