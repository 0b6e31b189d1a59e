/* SPDX-License-Identifier: Apache-2.0
 *
 * Query parameters: names, numbers, limits.
 */
#include "http/query.h"

#include "base/limits.h"

enum err query_text(struct exchange *x, const char *name, str *ret_text, struct fault *reterr)
{
    str query = x->head->query;
    char *text = arena_alloc(exchange_arena(x), query.len + 1);
    if (http1_query(query, str_c(name), text, query.len + 1, ret_text) == OK &&
        utf8_valid(*ret_text))
        return OK;
    return fault_field(reterr, ERR_INVALID_FIELD, name, "%s is not readable", name);
}

enum err query_number(struct exchange *x, const char *name, uint64_t *number, struct fault *reterr)
{
    str text;
    enum err e = query_text(x, name, &text, reterr);
    if (e || !text.p) return e;
    if (str_to_u64(text, number) == OK && *number <= INT64_MAX) return OK;
    return fault_field(reterr, ERR_INVALID_FIELD, name, "%s must be a number", name);
}

enum err query_limit(struct exchange *x, size_t *ret_limit, struct fault *reterr)
{
    uint64_t limit = LIST_LIMIT;
    enum err e = query_number(x, "limit", &limit, reterr);
    if (e) return e;
    if (limit < 1 || limit > LIST_LIMIT_MAX)
        return fault_field(reterr, ERR_INVALID_FIELD, "limit", "limit must be 1 to %d",
                           LIST_LIMIT_MAX);
    *ret_limit = (size_t)limit;
    return OK;
}

/* ";q=0", ";q=0.000": the caller does not want it. */
static bool refuses(str parameters)
{
    while (parameters.p) {
        str parameter = str_trim(str_split(&parameters, ';'));
        if (!str_starts(parameter, STR("q=0")) && !str_starts(parameter, STR("Q=0"))) continue;
        str digits = str_drop(parameter, 3);
        while (digits.len && (digits.p[0] == '0' || digits.p[0] == '.'))
            digits = str_drop(digits, 1);
        return digits.len == 0;
    }
    return false;
}

bool query_accepts(const struct exchange *x, const char *const types[])
{
    str rest = http_head_get(x->head, STR("Accept"));
    while (rest.p) {
        str parameters = str_split(&rest, ',');
        str type = str_trim(str_split(&parameters, ';'));
        for (size_t i = 0; types[i]; i++)
            if (str_eq_nocase(type, str_c(types[i])) && !refuses(parameters)) return true;
    }
    return false;
}
