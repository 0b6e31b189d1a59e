/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash map from bytes to pointer, under a random key. Open addressing with linear probing, at
 * most three quarters full. Removal shifts the following entries back, so there are no tombstones
 * and a lookup ends at the first empty slot.
 */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/mem.h"

struct map_slot {
    char *key; /* NULL: empty */
    size_t key_len;
    uint64_t hash;
    void *value;
};

void map_init(struct map *map, size_t count_max)
{
    *map = (struct map){.count_max = count_max};
    crypto_nonce(map->seed, sizeof map->seed);
}

void map_done(struct map *map)
{
    for (size_t i = 0; i < map->capacity; i++) free(map->slots[i].key);
    free(map->slots);
    map->slots = NULL;
    map->capacity = map->count = 0;
}

static uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[static 4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

uint64_t map_hash(const uint64_t seed[static 2], str key)
{
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575, seed[1] ^ 0x646f72616e646f6d,
                     seed[0] ^ 0x6c7967656e657261, seed[1] ^ 0x7465646279746573};
    size_t whole = key.len & ~(size_t)7;
    uint64_t word;
    for (size_t i = 0; i < whole; i += 8) {
        memcpy(&word, key.p + i, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = (uint64_t)key.len << 56;
    for (size_t i = whole; i < key.len; i++)
        word |= (uint64_t)(unsigned char)key.p[i] << 8 * (i & 7);
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The slot that holds the key, or the empty one where it would go. Capacity is not 0. */
static struct map_slot *probe(const struct map *map, str key, uint64_t hash)
{
    size_t mask = map->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct map_slot *slot = &map->slots[i];
        if (!slot->key) return slot;
        if (slot->hash == hash && str_eq((str){slot->key, slot->key_len}, key)) return slot;
    }
}

static void grow(struct map *map)
{
    struct map old = *map;
    map->capacity = old.capacity ? old.capacity * 2 : 8;
    map->slots = mem_array(map->capacity, sizeof *map->slots);
    for (size_t i = 0; i < old.capacity; i++) {
        struct map_slot *slot = &old.slots[i];
        if (slot->key) *probe(map, (str){slot->key, slot->key_len}, slot->hash) = *slot;
    }
    free(old.slots);
}

void *map_get(const struct map *map, str key)
{
    if (!map->count) return NULL;
    return probe(map, key, map_hash(map->seed, key))->value;
}

enum err map_put(struct map *map, str key, void *value)
{
    assert(value);
    uint64_t hash = map_hash(map->seed, key);
    struct map_slot *slot = map->capacity ? probe(map, key, hash) : NULL;
    if (slot && slot->key) {
        slot->value = value;
        return OK;
    }
    if (map->count >= map->count_max) return ERR_TOO_LARGE;
    if ((map->count + 1) * 4 > map->capacity * 3) {
        grow(map);
        slot = probe(map, key, hash);
    }
    assert(slot); /* without capacity it has grown */
    char *copy = malloc(key.len + 1);
    if (!copy) abort();
    if (key.len) memcpy(copy, key.p, key.len);
    *slot = (struct map_slot){.key = copy, .key_len = key.len, .hash = hash, .value = value};
    map->count++;
    return OK;
}

void *map_remove(struct map *map, str key)
{
    if (!map->count) return NULL;
    struct map_slot *slot = probe(map, key, map_hash(map->seed, key));
    if (!slot->key) return NULL;

    void *value = slot->value;
    free(slot->key);
    size_t mask = map->capacity - 1, hole = (size_t)(slot - map->slots);
    for (size_t i = (hole + 1) & mask; map->slots[i].key; i = (i + 1) & mask) {
        size_t home = map->slots[i].hash & mask;
        if (((i - home) & mask) < ((i - hole) & mask)) continue; /* it would land before its home */
        map->slots[hole] = map->slots[i];
        hole = i;
    }
    map->slots[hole] = (struct map_slot){0};
    map->count--;
    return value;
}

bool map_next(const struct map *map, size_t *at, str *ret_key, void **ret_value)
{
    while (*at < map->capacity) {
        const struct map_slot *slot = &map->slots[(*at)++];
        if (!slot->key) continue;
        *ret_key = (str){slot->key, slot->key_len};
        *ret_value = slot->value;
        return true;
    }
    return false;
}
