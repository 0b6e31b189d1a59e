/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches of object storage: which stored files were found whole, and the bytes of small ones, in
 * two tables under one lock.
 *
 * Whole files: a fixed table; the hash and the inode choose the slot, a newer entry takes it over.
 * Losing an entry costs reading a file once more.
 *
 * Small objects: by name, in the order of use; the least recently used go when BLOB_CACHE_BYTES_MAX
 * or BLOB_CACHE_OBJECTS_MAX is passed.
 *
 * Invariants:
 * 1. An entry was made from bytes that had the hash of their name, read after its stamp was taken.
 * 2. No entry has a young stamp: a change right after it might not show in the times of the file.
 */
#include "store/blob/blob_cache.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"

struct whole {
    unsigned char hash[HASH_BYTES];
    struct blob_stamp stamp; /* inode 0: an empty slot */
};

struct small {
    struct small *prev, *next; /* by use, newest first */
    struct blob_stamp stamp;
    size_t len;
    char key[BLOB_BUCKET_BYTES + BLOB_PATH_BYTES];
    char bytes[];
};

struct blob_cache {
    pthread_mutex_t lock;
    struct map by_name; /* struct small */
    struct small *newest, *oldest;
    size_t bytes; /* of all objects, with their heads */
    struct whole whole[BLOB_WHOLE_MAX];
};

struct blob_cache *blob_cache_new(void)
{
    struct blob_cache *cache = mem_new(sizeof *cache);
    if (pthread_mutex_init(&cache->lock, NULL)) abort();
    map_init(&cache->by_name, BLOB_CACHE_OBJECTS_MAX);
    return cache;
}

/* ---- whole files ---- */

static struct whole *slot(struct blob_cache *cache, const struct blob_id *id,
                          const struct blob_stamp *stamp)
{
    uint32_t mixed;
    memcpy(&mixed, id->hash, sizeof mixed);
    return &cache->whole[(mixed ^ stamp->inode) % BLOB_WHOLE_MAX];
}

bool blob_cache_whole(struct blob_cache *cache, const struct blob_id *id,
                      const struct blob_stamp *stamp)
{
    pthread_mutex_lock(&cache->lock);
    const struct whole *whole = slot(cache, id, stamp);
    bool known = whole->stamp.inode && memcmp(whole->hash, id->hash, HASH_BYTES) == 0 &&
                 blob_stamp_eq(&whole->stamp, stamp);
    pthread_mutex_unlock(&cache->lock);
    return known;
}

void blob_cache_set_whole(struct blob_cache *cache, const struct blob_id *id,
                          const struct blob_stamp *stamp)
{
    if (stamp->young) return;
    pthread_mutex_lock(&cache->lock);
    struct whole *whole = slot(cache, id, stamp);
    memcpy(whole->hash, id->hash, HASH_BYTES);
    whole->stamp = *stamp;
    pthread_mutex_unlock(&cache->lock);
}

/* ---- small objects ---- */

static void key_of(const struct blob_id *id, char out[static BLOB_BUCKET_BYTES + BLOB_PATH_BYTES])
{
    snprintf(out, BLOB_BUCKET_BYTES + BLOB_PATH_BYTES, "%s/%s", id->bucket, id->path);
}

static void unlist(struct blob_cache *cache, struct small *small)
{
    if (small->prev) small->prev->next = small->next;
    if (small->next) small->next->prev = small->prev;
    if (cache->newest == small) cache->newest = small->next;
    if (cache->oldest == small) cache->oldest = small->prev;
    small->prev = small->next = NULL;
}

static void list_newest(struct blob_cache *cache, struct small *small)
{
    small->next = cache->newest;
    if (small->next) small->next->prev = small;
    cache->newest = small;
    if (!cache->oldest) cache->oldest = small;
}

static size_t weight(const struct small *small)
{
    return sizeof *small + small->len;
}

static void drop(struct blob_cache *cache, struct small *small)
{
    void *removed = map_remove(&cache->by_name, str_c(small->key));
    assert(removed == small);
    unlist(cache, small);
    cache->bytes -= weight(small);
    free(small);
}

char *blob_cache_bytes(struct blob_cache *cache, const struct blob_id *id,
                       const struct blob_stamp *stamp)
{
    char key[BLOB_BUCKET_BYTES + BLOB_PATH_BYTES], *copy = NULL;
    key_of(id, key);
    pthread_mutex_lock(&cache->lock);
    struct small *small = map_get(&cache->by_name, str_c(key));
    if (small && blob_stamp_eq(&small->stamp, stamp)) {
        copy = malloc(small->len + 1);
        if (!copy) abort();
        memcpy(copy, small->bytes, small->len);
        copy[small->len] = '\0';
        unlist(cache, small);
        list_newest(cache, small);
    }
    pthread_mutex_unlock(&cache->lock);
    return copy;
}

void blob_cache_set_bytes(struct blob_cache *cache, const struct blob_id *id,
                          const struct blob_stamp *stamp, str bytes)
{
    if (stamp->young || bytes.len > BLOB_CACHED_BYTES_MAX) return;
    struct small *small = mem_new(sizeof *small + bytes.len);
    key_of(id, small->key);
    small->stamp = *stamp;
    small->len = bytes.len;
    if (bytes.len) memcpy(small->bytes, bytes.p, bytes.len);

    pthread_mutex_lock(&cache->lock);
    struct small *old = map_get(&cache->by_name, str_c(small->key));
    if (old) drop(cache, old);
    while (cache->oldest && (cache->bytes + weight(small) > BLOB_CACHE_BYTES_MAX ||
                             cache->by_name.count >= BLOB_CACHE_OBJECTS_MAX))
        drop(cache, cache->oldest);
    enum err e = map_put(&cache->by_name, str_c(small->key), small);
    assert(!e);
    list_newest(cache, small);
    cache->bytes += weight(small);
    pthread_mutex_unlock(&cache->lock);
}

void blob_cache_drop(struct blob_cache *cache, const struct blob_id *id)
{
    char key[BLOB_BUCKET_BYTES + BLOB_PATH_BYTES];
    key_of(id, key);
    pthread_mutex_lock(&cache->lock);
    struct small *small = map_get(&cache->by_name, str_c(key));
    if (small) drop(cache, small);
    pthread_mutex_unlock(&cache->lock);
}

void blob_cache_free(struct blob_cache *cache)
{
    if (!cache) return;
    while (cache->oldest) drop(cache, cache->oldest);
    map_done(&cache->by_name);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}
