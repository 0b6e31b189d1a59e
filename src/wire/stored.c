/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of stored JSON objects, found by a walk over the bytes without parsing the whole. A value
 * ends at the comma or bracket that stands on its own level, outside of strings; nothing else of it
 * is looked at. The bytes are ours: they were valid JSON when they were stored, so nothing is
 * checked, but no walk leaves them.
 */
#include "wire/stored.h"

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

/* Behind the string whose opening quote is at `at`. */
static size_t skip_string(str json, size_t at)
{
    for (at++; at < json.len && json.p[at] != '"'; at++)
        if (json.p[at] == '\\') at++;
    return at < json.len ? at + 1 : json.len;
}

static size_t skip_value(str json, size_t at)
{
    for (size_t depth = 0; at < json.len;) {
        char c = json.p[at];
        if (c == '"') {
            at = skip_string(json, at);
            continue;
        }
        if (!depth && (c == ',' || c == '}' || c == ']')) break;
        if (c == '{' || c == '[') depth++;
        if (c == '}' || c == ']') depth--;
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
    if (!json.len || json.p[0] != '"' || json_parse(arena, json, &value, NULL)) return STR_EMPTY;
    return json_text(value);
}

str stored_text(struct arena *arena, str object, str key)
{
    return stored_string(arena, stored_get(object, key));
}
