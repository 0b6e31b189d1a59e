/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a result, gathered in an arena. The array is full exactly when its count is 8, 16, 32...:
 * its capacity need not be kept. Each row is zeroed when its turn comes.
 */
#include "base/rows.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROWS = 8 };

void *rows_grow(struct arena *arena, void *rows, size_t count, size_t size)
{
    bool full = count >= FIRST_ROWS && (count & (count - 1)) == 0;
    size_t total;
    if (full || count == 0) {
        if (__builtin_mul_overflow(count ? 2 * count : FIRST_ROWS, size, &total)) abort();
        void *larger = arena_space(arena, total);
        if (count) memcpy(larger, rows, count * size);
        rows = larger;
    }
    memset((char *)rows + count * size, 0, size);
    return rows;
}
