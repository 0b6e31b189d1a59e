/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a result, gathered in an arena. The array is full exactly when its count is 8, 16, 32...:
 * its capacity need not be kept.
 */
#include "base/rows.h"

#include <string.h>

enum { FIRST_ROWS = 8 };

void *rows_grow(struct arena *arena, void *rows, size_t count, size_t size)
{
    if (count == 0) return arena_array(arena, FIRST_ROWS, size);
    bool full = count >= FIRST_ROWS && (count & (count - 1)) == 0;
    if (!full) return rows;
    void *larger = arena_array(arena, 2 * count, size);
    memcpy(larger, rows, count * size);
    return larger;
}
