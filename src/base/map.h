/* SPDX-License-Identifier: Apache-2.0
 *
 * Map from bytes to a pointer. Keys are copied; values stay the caller's. The hash is SipHash-1-3
 * under a random key, so a client that chooses the keys cannot choose the collisions. Bounded at
 * birth.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/str.h"

struct map_slot;

struct map {
    struct map_slot *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
    size_t count_max;
    uint64_t seed[2];
};

void map_init(struct map *map, size_t count_max);
void map_done(struct map *map);

void *map_get(const struct map *map, str key); /* NULL if absent */

/* Store a value (not NULL), replacing what was there. ERR_TOO_LARGE when the map is full. */
enum err map_put(struct map *map, str key, void *value) MUST_USE;

void *map_remove(struct map *map, str key); /* what was there, or NULL */

/* Walk: start with *at = 0; false at the end. The only change allowed on the way is to remove the
 * current entry; then (*at)-- before going on, for another may have moved into its slot. Such a
 * walk still sees every entry, but one that moved from the first slots to the last ones twice. */
bool map_next(const struct map *map, size_t *at, str *ret_key, void **ret_value);

uint64_t map_hash(const uint64_t seed[static 2], str key);

#endif
