/* SPDX-License-Identifier: Apache-2.0
 *
 * Escapes of URIs, for the parser and for the readers of what it has parsed.
 */
#ifndef NET_HTTP1_INT_H
#define NET_HTTP1_INT_H

#include "base/str.h"

/* Take one byte, or one escape, off the front of *s, which is not empty. -1 if it is malformed or a
 * NUL. `plus` makes '+' a space. */
static inline int http1_decode_char(str *s, bool plus)
{
    char c = s->p[0];
    size_t size = 1;
    if (c == '%') {
        if (s->len < 3) return -1;
        int high = char_hex(s->p[1]), low = char_hex(s->p[2]);
        if (high < 0 || low < 0) return -1;
        c = (char)(high << 4 | low);
        size = 3;
    } else if (c == '+' && plus) {
        c = ' ';
    }
    *s = str_drop(*s, size);
    return c ? (unsigned char)c : -1;
}

#endif
