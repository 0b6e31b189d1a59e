/* SPDX-License-Identifier: Apache-2.0
 *
 * str: borrowed bytes, pointer and length, not NUL-terminated. It dies with the arena, buffer or
 * literal it points into; whoever keeps it copies it (arena_str, buf_append). An empty str may have
 * any pointer, NULL included.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <string.h>

#include "base/def.h"
#include "base/err.h"

typedef struct {
    const char *p;
    size_t len;
} str;

#define STR(literal) ((str){"" literal "", sizeof(literal) - 1})
#define STR_EMPTY    ((str){"", 0})

/* For printf: "%.*s" takes STR_ARG(s). */
#define STR_ARG(s) (int)(s).len, (s).p

str str_c(const char *c); /* NULL gives the empty str */

/* As much of it as fits into `size` bytes with the NUL behind it, as snprintf does. */
void str_note(char *out, size_t size, str s);

static inline bool str_eq(str a, str b)
{
    return a.len == b.len && (a.len == 0 || (a.p && b.p && memcmp(a.p, b.p, a.len) == 0));
}
bool str_eq_nocase(str a, str b); /* ASCII letters only */
int str_cmp(str a, str b);
bool str_starts(str s, str prefix);
bool str_ends(str s, str suffix);
str str_drop(str s, size_t count); /* without its first `count` bytes; at most all of them */
str str_trim(str s);               /* without spaces and tabs at both ends */

/* Position of the first match, or -1. */
ptrdiff_t str_find_char(str s, char c);
ptrdiff_t str_find(str s, str needle);

/* Cut *rest at the first `separator`: returns what stands before it and moves *rest behind it.
 * Without a separator all of it is returned and *rest becomes {NULL, 0}; so loop while (rest.p). */
str str_split(str *rest, char separator);

/* Decimal digits only: no sign, no space, no overflow. */
enum err str_to_u64(str s, uint64_t *ret_value) MUST_USE;

/* Size with an optional unit: "512", "64KiB", "16MiB", "2GiB". */
enum err str_to_bytes(str s, uint64_t *ret_bytes) MUST_USE;

/* Constant time over equal lengths: for tokens, signatures and MACs. */
bool str_eq_secret(str a, str b);

/* How many single-letter edits turn a into b; for "did you mean". Names up to 64 bytes. */
unsigned str_distance(str a, str b);

/* Tokens of HTTP and MIME (RFC 9110, 5.6.2): names of fields, methods, types. None is empty. */
bool char_is_token(char c);
bool str_is_token(str s);
bool str_is_field_value(str s); /* of a header: no control character but tabs */

static inline char char_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static inline bool char_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A letter or digit of ASCII. */
static inline bool char_is_alnum(char c)
{
    return char_is_digit(c) || (char_lower(c) >= 'a' && char_lower(c) <= 'z');
}

/* Value of a hexadecimal digit, or -1. */
static inline int char_hex(char c)
{
    if (char_is_digit(c)) return c - '0';
    c = char_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
