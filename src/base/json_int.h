/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two readers of JSON share: base/json builds a tree, base/json_scan looks at bytes as they
 * pass by.
 */
#ifndef BASE_JSON_INT_H
#define BASE_JSON_INT_H

#include <endian.h>
#include <string.h>

#include "base/json.h"

/* The first byte of a value tells its type; 0 where no value starts. */
static const unsigned char json_type_plus_1[256] = {
    ['{'] = 1 + JSON_OBJECT, ['['] = 1 + JSON_ARRAY,          ['"'] = 1 + JSON_STRING,
    ['t'] = 1 + JSON_TRUE,   ['f'] = 1 + JSON_FALSE,          ['n'] = 1 + JSON_NULL,
    ['-'] = 1 + JSON_NUMBER, ['0' ... '9'] = 1 + JSON_NUMBER,
};

/* What stands for a letter behind a backslash; 0: no such escape, or \u. */
static const char json_escapes[256] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                                       ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};

static inline bool json_is_space(int c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline bool json_is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Eight bytes that are not all plain text: a quote, a backslash, a control byte, a byte of 80 or
 * more. In each lane the high bit becomes set when the byte is one of those. A subtraction borrows
 * only from lanes above one that is set already, so the lowest set lane is exact, and only that one
 * is used; 0: all are plain. */
static inline uint64_t json_specials(const char *at)
{
    const uint64_t ones = 0x0101010101010101;
    uint64_t word;
    memcpy(&word, at, sizeof word);
    word = le64toh(word);
    uint64_t quote = (word ^ ones * '"') - ones, backslash = (word ^ ones * '\\') - ones;
    return (quote | backslash | (word - ones * 0x20) | word) & ones * 0x80;
}

/* The first byte that is not plain text, or the end. */
static inline const char *json_skip_plain(const char *at, const char *end)
{
    for (; end - at >= 8; at += 8) {
        uint64_t special = json_specials(at);
        if (special) return at + __builtin_ctzll(special) / 8;
    }
    while (at < end && json_is_plain((unsigned char)*at)) at++;
    return at;
}

#endif
