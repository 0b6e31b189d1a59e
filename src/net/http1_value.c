/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of a parsed head: fields by name, lists, escapes, query parameters, cookies. Pure, and
 * without memory of its own: results borrow from the head or stand where the caller says. A head
 * that has to outlive its parser is copied.
 */
#include "net/http1.h"

#include <string.h>

#include "base/arena.h"
#include "net/http1_int.h"

str http_head_get(const struct http_head *head, str name)
{
    for (size_t i = 0; i < head->field_count; i++)
        if (str_eq_nocase(head->fields[i].name, name)) return head->fields[i].value;
    return (str){NULL, 0};
}

static str move_in(char **at, str text)
{
    str copy = {*at, text.len};
    if (text.len) memcpy(*at, text.p, text.len);
    *at += text.len;
    return copy;
}

struct http_head *http_head_copy(struct arena *arena, const struct http_head *head)
{
    size_t len = head->target.len + head->path.len + head->query.len + head->host.len;
    for (size_t i = 0; i < head->field_count; i++)
        len += head->fields[i].name.len + head->fields[i].value.len;
    struct http_head *copy = ARENA_NEW(arena, struct http_head);
    char *at = arena_alloc(arena, len + 1);
    *copy = *head;
    copy->target = move_in(&at, head->target);
    copy->path = move_in(&at, head->path);
    copy->query = move_in(&at, head->query);
    copy->host = move_in(&at, head->host);
    copy->fields = arena_array(arena, head->field_count + 1, sizeof *copy->fields);
    for (size_t i = 0; i < head->field_count; i++)
        copy->fields[i] = (struct http_field){move_in(&at, head->fields[i].name),
                                              move_in(&at, head->fields[i].value)};
    return copy;
}

bool http_head_has_token(const struct http_head *head, str name, str token)
{
    for (size_t i = 0; i < head->field_count; i++) {
        if (!str_eq_nocase(head->fields[i].name, name)) continue;
        for (str list = head->fields[i].value; list.p;)
            if (str_eq_nocase(str_trim(str_split(&list, ',')), token)) return true;
    }
    return false;
}

static enum err decode(str s, bool plus, char *out, size_t size, size_t *ret_len)
{
    size_t len = 0;
    while (s.len) {
        int c = http1_decode_char(&s, plus);
        if (c < 0) return ERR_BAD_REQUEST;
        if (len == size) return ERR_INVALID_FIELD;
        out[len++] = (char)c;
    }
    *ret_len = len;
    return OK;
}

enum err http1_decode(str s, bool plus, char *out, size_t *ret_len)
{
    return decode(s, plus, out, s.len, ret_len);
}

/* Is `encoded` another way to write `name`? */
static bool decodes_to(str encoded, str name)
{
    while (encoded.len && name.len) {
        if (http1_decode_char(&encoded, true) != (unsigned char)name.p[0]) return false;
        name = str_drop(name, 1);
    }
    return encoded.len == 0 && name.len == 0;
}

enum err http1_query(str query, str name, char *out, size_t size, str *ret_value)
{
    while (query.p) {
        str value = str_split(&query, '&');
        str key = str_split(&value, '=');
        if (!decodes_to(key, name)) continue;
        size_t len;
        enum err e = decode(value, true, out, size, &len);
        if (!e) *ret_value = (str){out, len};
        return e;
    }
    *ret_value = (str){NULL, 0};
    return OK;
}

str http1_cookie(str cookies, str name)
{
    while (cookies.p) {
        str value = str_trim(str_split(&cookies, ';'));
        str key = str_split(&value, '=');
        if (value.p && str_eq(key, name)) return value;
    }
    return (str){NULL, 0};
}
