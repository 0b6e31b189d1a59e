/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks in a list, the newest first; allocation bumps an offset. A request larger than a block
 * gets a block of its own, placed behind the head so that the head's free space stays in use.
 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 4096 - 32, ALIGN = 16 };

struct arena_block {
    struct arena_block *next;
    size_t used;
    size_t size;
    _Alignas(ALIGN) char bytes[];
};

void arena_init(struct arena *arena)
{
    *arena = (struct arena){0};
}

void arena_reset(struct arena *arena)
{
    struct arena_block *block = arena->head;
    while (block) {
        struct arena_block *next = block->next;
        free(block);
        block = next;
    }
    arena_init(arena);
}

void arena_done(struct arena *arena)
{
    arena_reset(arena);
}

static struct arena_block *block_new(struct arena *arena, size_t size)
{
    struct arena_block *block = calloc(1, sizeof *block + size);
    if (!block) abort();
    block->size = size;
    arena->bytes += sizeof *block + size;
    return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2) abort();
    size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);

    struct arena_block *head = arena->head;
    if (!head || head->size - head->used < size) {
        struct arena_block *block = block_new(arena, size > BLOCK_BYTES ? size : BLOCK_BYTES);
        if (head && size > BLOCK_BYTES) {
            block->next = head->next;
            head->next = block;
        } else {
            block->next = head;
            arena->head = block;
        }
        block->used = size;
        return block->bytes;
    }
    void *p = head->bytes + head->used;
    head->used += size;
    return p;
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) abort();
    return arena_alloc(arena, total);
}

char *arena_cstr(struct arena *arena, str s)
{
    char *copy = arena_alloc(arena, s.len + 1);
    if (s.len) memcpy(copy, s.p, s.len);
    return copy;
}

str arena_str(struct arena *arena, str s)
{
    return (str){arena_cstr(arena, s), s.len};
}

str arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0) abort();

    char *text = arena_alloc(arena, (size_t)len + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)len + 1, format, args);
    va_end(args);
    return (str){text, (size_t)len};
}
