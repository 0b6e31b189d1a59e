/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON bytes that grow in an arena, up to a limit that moves. Capacity grows fourfold, because what
 * it grew out of stays behind until the arena's end. The escapes are those of base/json.c, U+2028
 * and U+2029 among them.
 *
 * Invariants: 1. len <= cap; 2. an append is whole or not at all, so what is there never ends inside
 * a character.
 */
#include "ui/out.h"

#include <string.h>

enum { CAP_MIN = 512 };

void out_init(struct out *out, struct arena *arena, size_t expected, size_t limit)
{
    *out = (struct out){.arena = arena, .limit = limit};
    out->cap = expected < CAP_MIN ? CAP_MIN : expected > limit ? limit : expected;
    out->p = arena_alloc(arena, out->cap);
}

void out_clear(struct out *out)
{
    out_back(out, 0);
}

void out_back(struct out *out, size_t len)
{
    assert(len <= out->len);
    out->len = len;
    out->over = false;
}

static void grow(struct out *out, size_t need)
{
    size_t cap = out->cap * 4;
    while (cap < need) cap *= 2;
    char *p = arena_alloc(out->arena, cap);
    if (out->len) memcpy(p, out->p, out->len);
    out->p = p;
    out->cap = cap;
}

static char *room(struct out *out, size_t size)
{
    if (out->over || out->len > out->limit || size > out->limit - out->len) {
        out->over = true;
        return NULL;
    }
    if (out->cap - out->len < size) grow(out, out->len + size);
    char *at = out->p + out->len;
    out->len += size;
    return at;
}

void out_raw(struct out *out, str bytes)
{
    char *at = bytes.len ? room(out, bytes.len) : NULL;
    if (at) memcpy(at, bytes.p, bytes.len);
}

void out_char(struct out *out, char c)
{
    char *at = room(out, 1);
    if (at) *at = c;
}

void out_u64(struct out *out, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    out_raw(out, (str){digits + at, sizeof digits - at});
}

char out_last(const struct out *out)
{
    return out->len ? out->p[out->len - 1] : '\0';
}

/* ---- escapes ---- */

/* Beyond ASCII, U+2028 and U+2029 are: E2 80 A8 and A9. */
static inline bool is_special(const char *at, const char *end)
{
    unsigned char c = (unsigned char)*at;
    return c < 0x20 || c == '"' || c == '\\' ||
           (c == 0xe2 && end - at >= 3 && (unsigned char)at[1] == 0x80 && (at[2] & 0xfe) == 0xa8);
}

/* The first byte that must be escaped, or the end. */
static inline const char *skip_plain(const char *at, const char *end)
{
    while (at < end && !is_special(at, end)) at++;
    return at;
}

struct escape {
    unsigned char len, taken; /* bytes of the escape, and of what it stands for */
};

enum { ESCAPE_BYTES_MAX = 6 };

static inline struct escape put_escape(const char *at, char *to)
{
    static const char letters[0x80] = {['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
                                       ['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't'};
    static const char digits[] = "0123456789abcdef";
    unsigned char c = (unsigned char)*at;
    if (c < 0x80 && letters[c]) {
        to[0] = '\\';
        to[1] = letters[c];
        return (struct escape){2, 1};
    }
    memcpy(to, c < 0x80 ? "\\u00" : "\\u202", c < 0x80 ? 4 : 5);
    if (c >= 0x80) {
        to[5] = (at[2] & 1) ? '9' : '8';
        return (struct escape){6, 3};
    }
    to[4] = digits[c >> 4];
    to[5] = digits[c & 15];
    return (struct escape){6, 1};
}

void out_escaped(struct out *out, str text)
{
    const char *at = text.p, *end = text.len ? text.p + text.len : text.p;
    while (at < end && !out->over) {
        const char *stop = skip_plain(at, end);
        out_raw(out, (str){at, (size_t)(stop - at)});
        char row[16 * ESCAPE_BYTES_MAX]; /* escapes often stand in a row */
        size_t len = 0;
        for (at = stop; at < end && len + ESCAPE_BYTES_MAX <= sizeof row && is_special(at, end);) {
            struct escape escape = put_escape(at, row + len);
            len += escape.len;
            at += escape.taken;
        }
        out_raw(out, (str){row, len});
    }
}

size_t out_fitting(str text, size_t room_bytes)
{
    const char *at = text.p, *end = text.p + text.len;
    while (at < end) {
        const char *stop = skip_plain(at, end);
        size_t run = (size_t)(stop - at);
        if (run > room_bytes) {
            at += room_bytes;
            while (((unsigned char)*at & 0xc0) == 0x80) at--;
            break;
        }
        room_bytes -= run;
        at = stop;
        if (at == end) break;
        struct escape escape = put_escape(at, (char[ESCAPE_BYTES_MAX]){0});
        if (escape.len > room_bytes) break;
        room_bytes -= escape.len;
        at += escape.taken;
    }
    return (size_t)(at - text.p);
}

void out_string(struct out *out, str text)
{
    out_char(out, '"');
    out_escaped(out, text);
    out_char(out, '"');
}

void out_member(struct out *out, str key, str text)
{
    out_raw(out, STR(",\""));
    out_raw(out, key);
    out_raw(out, STR("\":"));
    out_string(out, text);
}

/* ---- values ---- */

void out_json(struct out *out, const struct json *value)
{
    if (out->over) return;
    if (value->type == JSON_STRING) {
        out_string(out, value->text);
        return;
    }
    if (value->type != JSON_ARRAY && value->type != JSON_OBJECT) {
        out_raw(out, value->raw);
        return;
    }
    bool object = value->type == JSON_OBJECT;
    out_char(out, object ? '{' : '[');
    for (const struct json *m = value->child; m && !out->over; m = m->next) {
        if (m != value->child) out_char(out, ',');
        if (object) {
            out_string(out, m->key);
            out_char(out, ':');
        }
        out_json(out, m);
    }
    out_char(out, object ? '}' : ']');
}
