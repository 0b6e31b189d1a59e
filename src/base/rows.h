/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a result, gathered in an arena without knowing how many there will be. A page may hold
 * hundreds and mostly holds a few, and memory from an arena is zeroed: asking for the most a page
 * may hold would cost more than reading it.
 */
#ifndef BASE_ROWS_H
#define BASE_ROWS_H

#include "base/arena.h"

/* Where row number `count` goes: `rows` (NULL at first) with room for one more. It was copied to
 * another place if it was full, so its address is taken from here each time. */
void *rows_grow(struct arena *arena, void *rows, size_t count, size_t size);

#define ROWS_ADD(arena, rows, count) \
    ((rows) = rows_grow((arena), (rows), (count), sizeof *(rows)), &(rows)[(count)++])

#endif
