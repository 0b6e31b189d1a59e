/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of stored JSON objects, found by a walk over the bytes without parsing the whole. A value
 * ends at the comma or bracket that stands on its own level, outside of strings; nothing else of it
 * is looked at. The bytes are ours: they were valid JSON when they were stored, so nothing is
 * checked, but no walk leaves them.
 */
#include "wire/stored.h"

#include <string.h>

#include "base/json.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t skip_blanks(str json, size_t at)
{
    while (at < json.len && is_blank(json.p[at])) at++;
    return at;
}

/* Is the quote at `at` escaped? An odd number of backslashes stands before it. */
static bool is_escaped(str json, size_t at, size_t start)
{
    size_t first = at;
    while (first > start && json.p[first - 1] == '\\') first--;
    return (at - first) % 2;
}

/* Behind the string whose opening quote is at `at`. */
static size_t skip_string(str json, size_t at)
{
    size_t start = at + 1;
    for (at = start; at < json.len; at++) {
        const char *quote = memchr(json.p + at, '"', json.len - at);
        if (!quote) break;
        at = (size_t)(quote - json.p);
        if (!is_escaped(json, at, start)) return at + 1;
    }
    return json.len;
}

static size_t skip_value(str json, size_t at)
{
    for (size_t depth = 0; at < json.len;) {
        switch (json.p[at]) {
        case '"':
            at = skip_string(json, at);
            continue;
        case '{':
        case '[':
            depth++;
            break;
        case '}':
        case ']':
            if (!depth--) return at;
            break;
        case ',':
            if (!depth) return at;
            break;
        default:
            break;
        }
        at++;
    }
    return at;
}

str stored_get(str object, str key)
{
    size_t at = skip_blanks(object, 0);
    while (at < object.len && object.p[at] != '}') { /* at the brace, or at a comma */
        size_t quote = skip_blanks(object, at + 1);
        if (quote >= object.len || object.p[quote] != '"') break;
        size_t colon = skip_string(object, quote);
        if (colon < quote + 2) break;
        bool found = str_eq((str){object.p + quote + 1, colon - quote - 2}, key);
        size_t value = skip_blanks(object, skip_blanks(object, colon) + 1);
        at = skip_value(object, value);
        if (!found || value >= at) continue;
        str raw = {object.p + value, at - value};
        while (raw.len && is_blank(raw.p[raw.len - 1])) raw.len--;
        return str_eq(raw, STR("null")) ? STR_EMPTY : raw;
    }
    return STR_EMPTY;
}

str stored_string(struct arena *arena, str json)
{
    struct json *value = NULL;
    if (!json.len || json.p[0] != '"') return STR_EMPTY;
    bool whole = json.len >= 2 && json.p[json.len - 1] == '"'; /* as it stands */
    if (whole && !memchr(json.p, '\\', json.len)) return (str){json.p + 1, json.len - 2};
    return json_parse(arena, json, &value, NULL) ? STR_EMPTY : json_text(value);
}

str stored_text(struct arena *arena, str object, str key)
{
    return stored_string(arena, stored_get(object, key));
}
