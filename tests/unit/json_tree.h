/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole JSON trees, for tests: written back by our own writer, compared, and checked against the
 * promises of base/json.h.
 */
#ifndef TESTS_JSON_TREE_H
#define TESTS_JSON_TREE_H

#include <stdlib.h>

#include "base/json.h"

/* Numbers as they were written, strings decoded and escaped again. */
static inline void json_tree_write(struct json_writer *w, const struct json *value)
{
    bool object = value->type == JSON_OBJECT;
    switch (value->type) {
    case JSON_NULL:
        json_null(w);
        return;
    case JSON_FALSE:
        json_bool(w, false);
        return;
    case JSON_TRUE:
        json_bool(w, true);
        return;
    case JSON_NUMBER:
        json_raw(w, value->text);
        return;
    case JSON_STRING:
        json_string(w, value->text);
        return;
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    object ? json_object(w) : json_array(w);
    for (const struct json *m = value->child; m; m = m->next) {
        if (object) json_key(w, m->key);
        json_tree_write(w, m);
    }
    object ? json_object_end(w) : json_array_end(w);
}

static inline bool json_tree_eq(const struct json *a, const struct json *b)
{
    if (a->type != b->type || a->count != b->count) return false;
    if (!str_eq(a->text, b->text) || !str_eq(a->key, b->key)) return false;
    const struct json *m = a->child, *n = b->child;
    for (; m && n; m = m->next, n = n->next)
        if (!json_tree_eq(m, n)) return false;
    return !m && !n;
}

/* Aborts unless every raw span lies inside `bounds` and, parsed alone, gives the same value; `deep`
 * false leaves out that second check, which costs depth times length. */
static inline void json_tree_check(const struct json *value, str bounds, bool deep)
{
    if (value->raw.len == 0 || value->raw.p < bounds.p) abort();
    if (value->raw.p + value->raw.len > bounds.p + bounds.len) abort();
    if (deep) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct json *alone;
        if (json_parse(&arena, value->raw, &alone, NULL)) abort();
        alone->key = value->key;
        if (!json_tree_eq(alone, value)) abort();
    }
    uint32_t count = 0;
    str rest = value->raw;
    for (const struct json *m = value->child; m; m = m->next, count++) {
        json_tree_check(m, rest, deep);
        rest =
            str_drop(rest, (size_t)(m->raw.p + m->raw.len - rest.p)); /* members do not overlap */
    }
    if (count != value->count) abort();
}

#endif
