/* SPDX-License-Identifier: Apache-2.0
 *
 * Borrowed strings, pointer and length. Everything here is pure and allocates nothing.
 */
#include "base/str.h"

#include <string.h>

str str_c(const char *c)
{
    return c ? (str){c, strlen(c)} : STR_EMPTY;
}

void str_note(char *out, size_t size, str s)
{
    size_t len = s.len < size ? s.len : size - 1;
    if (len) memcpy(out, s.p, len);
    out[len] = '\0';
}

bool str_eq_nocase(str a, str b)
{
    if (a.len != b.len) return false;
    for (size_t i = 0; i < a.len; i++)
        if (char_lower(a.p[i]) != char_lower(b.p[i])) return false;
    return true;
}

int str_cmp(str a, str b)
{
    size_t shared = a.len < b.len ? a.len : b.len;
    int order = shared ? memcmp(a.p, b.p, shared) : 0;
    if (order) return order;
    return a.len == b.len ? 0 : a.len < b.len ? -1 : 1;
}

bool str_starts(str s, str prefix)
{
    return s.len >= prefix.len && str_eq((str){s.p, prefix.len}, prefix);
}

bool str_ends(str s, str suffix)
{
    return s.len >= suffix.len && str_eq(str_drop(s, s.len - suffix.len), suffix);
}

str str_drop(str s, size_t count)
{
    if (count > s.len) count = s.len;
    return (str){count ? s.p + count : s.p, s.len - count};
}

str str_trim(str s)
{
    while (s.len && (s.p[0] == ' ' || s.p[0] == '\t')) s = str_drop(s, 1);
    while (s.len && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t')) s.len--;
    return s;
}

ptrdiff_t str_find_char(str s, char c)
{
    const char *at = s.len ? memchr(s.p, c, s.len) : NULL;
    return at ? at - s.p : -1;
}

ptrdiff_t str_find(str s, str needle)
{
    if (needle.len == 0) return 0;
    const char *at = s.len ? memmem(s.p, s.len, needle.p, needle.len) : NULL;
    return at ? at - s.p : -1;
}

str str_split(str *rest, char separator)
{
    ptrdiff_t at = str_find_char(*rest, separator);
    str piece = *rest;
    if (at < 0) {
        *rest = (str){NULL, 0};
        return piece;
    }
    piece.len = (size_t)at;
    *rest = str_drop(*rest, (size_t)at + 1);
    return piece;
}

enum err str_to_u64(str s, uint64_t *ret_value)
{
    if (s.len == 0) return ERR_INVALID_FIELD;
    uint64_t value = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] < '0' || s.p[i] > '9') return ERR_INVALID_FIELD;
        if (__builtin_mul_overflow(value, 10U, &value) ||
            __builtin_add_overflow(value, (uint64_t)(s.p[i] - '0'), &value))
            return ERR_TOO_LARGE;
    }
    *ret_value = value;
    return OK;
}

enum err str_to_bytes(str s, uint64_t *ret_bytes)
{
    static const struct {
        str name;
        unsigned shift;
    } units[] = {
        {STR("KiB"), 10}, {STR("MiB"), 20}, {STR("GiB"), 30}, {STR("TiB"), 40}, {STR("B"), 0},
    };

    unsigned shift = 0;
    for (size_t i = 0; i < COUNT(units); i++) {
        if (!str_ends(s, units[i].name)) continue;
        s.len -= units[i].name.len;
        shift = units[i].shift;
        break;
    }
    uint64_t value;
    enum err e = str_to_u64(str_trim(s), &value);
    if (e) return e;
    if (value > UINT64_MAX >> shift) return ERR_TOO_LARGE;
    *ret_bytes = value << shift;
    return OK;
}

bool str_eq_secret(str a, str b)
{
    if (a.len != b.len) return false;
    unsigned char different = 0;
    for (size_t i = 0; i < a.len; i++) {
        different |= (unsigned char)(a.p[i] ^ b.p[i]);
        __asm__ volatile("" : "+r"(different)); /* keeps the compiler from leaving the loop early */
    }
    return different == 0;
}

bool char_is_token(char c)
{
    return char_is_alnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

bool str_is_token(str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!char_is_token(s.p[i])) return false;
    return s.len > 0;
}

bool str_is_field_value(str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) return false;
    }
    return true;
}

unsigned str_distance(str a, str b)
{
    enum { LEN_MAX = 64 };
    if (a.len > LEN_MAX) a.len = LEN_MAX;
    if (b.len > LEN_MAX) b.len = LEN_MAX;

    unsigned row[LEN_MAX + 1];
    for (unsigned j = 0; j <= b.len; j++) row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b.len; j++) {
            unsigned replace = diagonal + (a.p[i - 1] != b.p[j - 1]);
            unsigned other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replace < other ? replace : other;
        }
    }
    return row[b.len];
}
