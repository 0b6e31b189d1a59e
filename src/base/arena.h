/* SPDX-License-Identifier: Apache-2.0
 *
 * Arena: many small allocations with one end. One per HTTP request or agent turn; parsed JSON and
 * decoded input live in it and go with arena_reset or arena_done. Memory is zeroed and aligned for
 * any type. Running out of memory aborts; limits on input keep it from happening.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/str.h"

struct arena_block;

struct arena {
    struct arena_block *head; /* newest block first */
    size_t bytes;             /* asked of the system so far */
};

void arena_init(struct arena *arena);
void arena_reset(struct arena *arena); /* ends every allocation; keeps one small block for reuse */
void arena_done(struct arena *arena);  /* ends every allocation and frees; ready again */

void *arena_alloc(struct arena *arena, size_t size);
void *arena_space(struct arena *arena, size_t size); /* not zeroed, for who writes all of it */
void *arena_array(struct arena *arena, size_t count, size_t size); /* aborts on overflow */

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))

str arena_str(struct arena *arena, str s);    /* a copy */
char *arena_cstr(struct arena *arena, str s); /* a NUL-terminated copy */
str arena_printf(struct arena *arena, const char *format, ...) PRINTF(2, 3);

#endif
