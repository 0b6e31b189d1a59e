/* SPDX-License-Identifier: Apache-2.0
 *
 * A text found in others, in one step for each byte, without regard to case. The automaton of
 * Knuth, Morris and Pratt, written out for every byte. State n: the last n bytes seen are the first
 * n of the needle, and no longer end of them is a beginning of it. Upper case letters of ASCII have
 * the columns of lower case ones; any other character with two cases is folded before its bytes are
 * looked up.
 */
#include "base/needle.h"

#include <assert.h>
#include <string.h>

#include "base/fold.h"
#include "base/limits.h"
#include "base/utf8.h"

enum { COLUMNS = 256 };

void needle_make(struct needle *needle, struct arena *arena, str text)
{
    assert(text.len <= NEEDLE_BYTES_MAX);
    _Static_assert(FOLD_GROWTH * NEEDLE_BYTES_MAX < UINT16_MAX, "a state fits");
    char folded[FOLD_GROWTH * NEEDLE_BYTES_MAX];
    size_t len = fold_write(text, folded);
    uint16_t *next = arena_array(arena, len * COLUMNS, sizeof *next);
    memset(next, 0, len * COLUMNS * sizeof *next);
    size_t fallback = 0; /* the state after all bytes but the first */
    for (size_t state = 0; state < len; state++) {
        uint16_t *row = next + state * COLUMNS;
        unsigned char byte = (unsigned char)folded[state];
        if (state) memcpy(row, next + fallback * COLUMNS, COLUMNS * sizeof *row);
        if (state) fallback = row[byte];
        row[byte] = (uint16_t)(state + 1);
        if (byte >= 'a' && byte <= 'z') row[byte - 'a' + 'A'] = row[byte];
    }
    *needle = (struct needle){.len = len, .next = next};
}

bool needle_in(const struct needle *needle, str text)
{
    const uint16_t *next = needle->next;
    const char *at = text.p, *end = text.p + text.len;
    size_t state = 0;
    while (at < end && state < needle->len) {
        size_t bytes = 0;
        uint32_t code = 0;
        if (fold_leads[(unsigned char)*at]) code = fold_decode(at, end, &bytes);
        if (!bytes) {
            state = next[state * COLUMNS + (unsigned char)*at++];
            continue;
        }
        char folded[4];
        size_t count = utf8_write(fold_char(code), folded);
        at += bytes;
        for (size_t i = 0; i < count && state < needle->len; i++)
            state = next[state * COLUMNS + (unsigned char)folded[i]];
    }
    return state == needle->len;
}
