/* SPDX-License-Identifier: Apache-2.0
 *
 * A schema on the first line, a value on the others. A refusal names its path and its reason, in
 * valid UTF-8, and is the same the second time. Whatever the schema, a value equals itself; and a
 * value fits a schema just as an item fits a list of it, and a member an object of it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "tool/schema.h"
#include "tool/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { AROUND_BYTES = 64 };

static void check_fault(enum err e, const struct fault *fault)
{
    if (e != ERR_INVALID_FIELD || fault->err != e || !fault->text[0]) abort();
    if (!utf8_valid(str_c(fault->text)) || !utf8_valid(str_c(fault->field))) abort();
    if (fault->field[0] && strncmp(fault->text, fault->field, strlen(fault->field)) != 0) abort();
}

static enum err check(const struct schema *schema, const struct json *value)
{
    struct fault first = {0}, second = {0};
    enum err e = schema_check(schema, value, "args", &first);
    if (e) check_fault(e, &first);
    if (schema_check(schema, value, "args", &second) != e) abort();
    if (strcmp(first.text, second.text) != 0 || schema_check(schema, value, "a", NULL) != e)
        abort();
    return e;
}

/* The texts between others, parsed: `before` inner `after`. */
static const struct json *around(struct arena *arena, const char *before, str inner,
                                 const char *after)
{
    AUTO(buf_done) struct buf text;
    struct json *json = NULL;
    buf_init(&text, inner.len + AROUND_BYTES);
    buf_append(&text, str_c(before));
    buf_append(&text, inner);
    buf_append(&text, str_c(after));
    if (text.full) abort();
    return json_parse(arena, arena_str(arena, buf_str(&text)), &json, NULL) ? NULL : json;
}

/* Around schema and value alike, the verdict stays. Too deep or too many then: nothing to compare. */
static void check_around(struct arena *arena, str schema, str value, enum err verdict)
{
    static const struct {
        const char *before, *after, *value_before, *value_after;
    } rows[] = {
        {"{\"items\":", "}", "[", "]"},
        {"{\"required\":[\"k\"],\"additionalProperties\":", "}", "{\"k\":", "}"},
        {"{\"properties\":{\"k\":", "},\"additionalProperties\":false}", "{\"k\":", "}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct json *outer = around(arena, rows[i].before, schema, rows[i].after);
        const struct json *inner = around(arena, rows[i].value_before, value, rows[i].value_after);
        struct schema *compiled = NULL;
        if (!outer || !inner || schema_parse(arena, outer, &compiled, NULL)) continue;
        if (check(compiled, inner) != verdict) abort();
    }
}

static void check_self(struct arena *arena, const struct json *value)
{
    size_t steps = SCHEMA_STEPS_MAX;
    struct schema *schema = NULL;
    const struct json *constant = around(arena, "{\"const\":", value->raw, "}");
    if (!value_same(value, value, &steps) && steps) abort();
    if (!constant || !steps) return;
    if (schema_parse(arena, constant, &schema, NULL) || check(schema, value)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str rest = {(const char *)data, size};
    str line = str_split(&rest, '\n');
    struct json *text = NULL, *value = NULL;
    if (!line.len || !rest.p || json_parse(&arena, line, &text, NULL) ||
        json_parse(&arena, rest, &value, NULL))
        return 0;
    check_self(&arena, value);
    struct schema *schema = NULL;
    struct fault why = {0};
    enum err e = schema_parse(&arena, text, &schema, &why);
    if (e) {
        check_fault(e, &why);
        return 0;
    }
    check_around(&arena, text->raw, value->raw, check(schema, value));
    return 0;
}
