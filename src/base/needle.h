/* SPDX-License-Identifier: Apache-2.0
 *
 * A text to be found in others, whatever the case of its letters (base/fold.h).
 *
 * Looking takes one step for each byte of the other text, whatever both of them are: nobody can
 * write a pair that takes longer. Pure.
 */
#ifndef BASE_NEEDLE_H
#define BASE_NEEDLE_H

#include "base/arena.h"

struct needle {
    size_t len;     /* folded */
    uint16_t *next; /* len rows of 256: the state behind a byte; state len is "found" */
};

/* At most NEEDLE_BYTES_MAX bytes of valid UTF-8; the table takes 512 bytes for each. */
void needle_make(struct needle *needle, struct arena *arena, str text);

/* Is it in there? An empty one is in everything. */
bool needle_in(const struct needle *needle, str text);

#endif
