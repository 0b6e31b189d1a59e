/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of many allocations with one end, as a request or a turn has it. Blocks in a list, the
 * newest first; allocation bumps an offset. Blocks double from 4 KiB to 64 KiB, so a large tree
 * costs few calls to malloc and a small one little memory. A request larger than the next block
 * gets a block of its own, placed behind the head so that the head's free space stays in use.
 *
 * What is handed out is made zero then, and only there: most blocks end half empty, and copies of
 * texts need it not. Invariant: under AddressSanitizer exactly the bytes handed out may be touched,
 * also of the block that arena_reset keeps, so that a loop that parses and resets calls malloc once.
 */
#include "base/arena.h"

#include <sanitizer/asan_interface.h> /* empty macros unless the build is sanitized */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES_MIN = 4 * 1024 - 64, BLOCK_BYTES_MAX = 64 * 1024 - 64, ALIGN = 16 };

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

static void block_free(struct arena_block *block)
{
    ASAN_UNPOISON_MEMORY_REGION(block->bytes, block->size);
    free(block);
}

void arena_reset(struct arena *arena)
{
    struct arena_block *kept = NULL;
    for (struct arena_block *block = arena->head, *next; block; block = next) {
        next = block->next;
        if (block->size == BLOCK_BYTES_MIN)
            kept = block; /* only a first block has this size */
        else
            block_free(block);
    }
    arena_init(arena);
    if (!kept) return;
    ASAN_POISON_MEMORY_REGION(kept->bytes, kept->size);
    kept->used = 0;
    kept->next = NULL;
    arena->head = kept;
    arena->bytes = sizeof *kept + kept->size;
}

void arena_done(struct arena *arena)
{
    arena_reset(arena);
    if (arena->head) block_free(arena->head);
    arena_init(arena);
}

/* A block with room for `size`, in the list. Each is twice as large as the one before. */
static struct arena_block *block_add(struct arena *arena, size_t size)
{
    struct arena_block *head = arena->head;
    size_t usual = head ? head->size * 2 : BLOCK_BYTES_MIN;
    if (usual > BLOCK_BYTES_MAX) usual = BLOCK_BYTES_MAX;
    size_t room = size > usual ? size : usual;
    struct arena_block *block = malloc(sizeof *block + room);
    if (!block) abort();
    *block = (struct arena_block){.size = room};
    arena->bytes += sizeof *block + room;
    ASAN_POISON_MEMORY_REGION(block->bytes, room);
    if (head && size > usual) {
        block->next = head->next;
        head->next = block;
    } else {
        block->next = head;
        arena->head = block;
    }
    return block;
}

void *arena_space(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2) abort();
    size_t aligned = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);

    struct arena_block *block = arena->head;
    if (!block || block->size - block->used < aligned) block = block_add(arena, aligned);
    void *p = block->bytes + block->used;
    block->used += aligned;
    ASAN_UNPOISON_MEMORY_REGION(p, size);
    return p;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    return memset(arena_space(arena, size), 0, size);
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) abort();
    return arena_alloc(arena, total);
}

char *arena_cstr(struct arena *arena, str s)
{
    char *copy = arena_space(arena, s.len + 1);
    if (s.len) memcpy(copy, s.p, s.len);
    copy[s.len] = '\0';
    return copy;
}

str arena_str(struct arena *arena, str s)
{
    return (str){arena_cstr(arena, s), s.len};
}

str arena_printf(struct arena *arena, const char *format, ...)
{
    char small[256]; /* mostly it fits, and is written once */
    va_list args;
    va_start(args, format);
    int len = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (len < 0) abort();
    if ((size_t)len < sizeof small) return arena_str(arena, (str){small, (size_t)len});

    char *text = arena_space(arena, (size_t)len + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)len + 1, format, args);
    va_end(args);
    return (str){text, (size_t)len};
}
