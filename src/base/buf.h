/* SPDX-License-Identifier: Apache-2.0
 *
 * buf: bytes that grow, up to a maximum given at birth. An append that would pass the maximum adds
 * nothing and sets `full`, which stays set until buf_clear; so a writer appends freely and asks
 * once at the end. An empty buf owns no memory.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <string.h>

#include "base/str.h"

struct buf {
    char *p;
    size_t len;
    size_t cap;
    size_t max;
    bool full; /* an append was refused */
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);  /* frees; ready for use again with the same maximum */
void buf_clear(struct buf *b); /* empties, keeps the memory */

void buf_u64(struct buf *b, uint64_t value);
void buf_printf(struct buf *b, const char *format, ...) PRINTF(2, 3);

/* Room for `size` more bytes to be written at the returned place and then claimed with buf_added;
 * NULL (and `full`) if that would pass the maximum. */
char *buf_grow(struct buf *b, size_t size); /* what buf_room does where there is none yet */
static inline char *buf_room(struct buf *b, size_t size)
{
    return !b->full && size <= b->cap - b->len ? b->p + b->len : buf_grow(b, size);
}
static inline void buf_added(struct buf *b, size_t size)
{
    assert(size <= b->cap - b->len);
    b->len += size;
}

void buf_drop(struct buf *b, size_t count); /* remove the first `count` bytes */

static inline void buf_append(struct buf *b, str s)
{
    if (s.len == 0 || !s.p) return;
    char *room = buf_room(b, s.len);
    if (!room) return;
    memcpy(room, s.p, s.len);
    b->len += s.len;
}

static inline void buf_char(struct buf *b, char c)
{
    char *room = buf_room(b, 1);
    if (!room) return;
    *room = c;
    b->len++;
}

static inline str buf_str(const struct buf *b)
{
    return (str){b->p, b->len};
}

/* Move the bytes out; the caller frees the pointer. NULL if empty. */
char *buf_take(struct buf *b, size_t *ret_len);

#endif
