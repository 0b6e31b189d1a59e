/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes that grow, up to a maximum given at birth. Capacity doubles from 256, so n appends cost
 * O(n).
 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_done(struct buf *b)
{
    free(b->p);
    buf_init(b, b->max);
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->full = false;
}

char *buf_grow(struct buf *b, size_t size)
{
    if (b->full || size > b->max - b->len) {
        b->full = true;
        return NULL;
    }
    if (b->cap - b->len < size) {
        size_t cap = b->cap ? b->cap : 256;
        while (cap < b->len + size) cap = cap > b->max / 2 ? b->max : cap * 2;
        if (cap > b->max) cap = b->max;
        char *p = realloc(b->p, cap);
        if (!p) abort();
        b->p = p;
        b->cap = cap;
    }
    return b->p + b->len;
}

void buf_u64(struct buf *b, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    buf_append(b, (str){digits + at, sizeof digits - at});
}

void buf_printf(struct buf *b, const char *format, ...)
{
    char small[256];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (len < 0) abort();
    if ((size_t)len < sizeof small) {
        buf_append(b, (str){small, (size_t)len});
        return;
    }
    char *large = malloc((size_t)len + 1);
    if (!large) abort();
    va_start(args, format);
    vsnprintf(large, (size_t)len + 1, format, args);
    va_end(args);
    buf_append(b, (str){large, (size_t)len});
    free(large);
}

void buf_drop(struct buf *b, size_t count)
{
    assert(count <= b->len);
    b->len -= count;
    if (b->len) memmove(b->p, b->p + count, b->len);
}

char *buf_take(struct buf *b, size_t *ret_len)
{
    if (b->len == 0) buf_done(b);
    char *p = b->p;
    *ret_len = b->len;
    buf_init(b, b->max);
    return p;
}
