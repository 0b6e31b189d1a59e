/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory for SQLite: small blocks of a thread, kept in lists by their size.
 *
 *     | bytes | what the caller has ...          |     in use
 *     | bytes | next | ...                       |     in a list
 *
 * SQLite has such lists itself (lookaside), but not in every build: Debian's goes to malloc for the
 * registers of each statement.
 */
#include "store/db/blocks.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

enum { STEP = 64, LISTS = STORE_BLOCK_BYTES_MAX / STEP };
_Static_assert(STORE_BLOCK_BYTES_MAX % STEP == 0, "whole steps");

struct block {
    uint64_t bytes;     /* what follows it */
    struct block *next; /* only in a list */
};
enum { HEAD = offsetof(struct block, next) };

enum life { NEW, NOTED, ENDED }; /* of the thread */

static _Thread_local struct {
    struct block *first[LISTS];
    size_t bytes; /* in all of them */
    enum life life;
} own;

static struct block *block_of(const void *p)
{
    return (struct block *)(void *)((char *)(uintptr_t)p - HEAD);
}

static void own_end(void *arg)
{
    (void)arg;
    own.life = ENDED; /* what comes after us goes to free() */
    for (size_t i = 0; i < LISTS; i++) {
        for (struct block *b; (b = own.first[i]);) {
            own.first[i] = b->next;
            free(b);
        }
    }
}

static pthread_key_t ends;

static void setup_process(void)
{
    if (pthread_key_create(&ends, own_end)) abort();
}

static bool own_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (own.life == ENDED) return false;
    pthread_once(&once, setup_process);
    if (pthread_setspecific(ends, &own)) return false;
    own.life = NOTED;
    return true;
}

size_t block_rounded(size_t bytes)
{
    return bytes ? (bytes + STEP - 1) / STEP * STEP : STEP;
}

size_t block_bytes(const void *p)
{
    return block_of(p)->bytes;
}

void *block_new(size_t bytes)
{
    size_t rounded = block_rounded(bytes), list = rounded / STEP - 1;
    struct block *b = list < LISTS ? own.first[list] : NULL;
    if (b) {
        own.first[list] = b->next;
        own.bytes -= rounded;
    } else {
        b = malloc(HEAD + rounded);
        if (!b) return NULL;
        b->bytes = rounded;
    }
    return (char *)b + HEAD;
}

void block_free(void *p)
{
    if (!p) return;
    struct block *b = block_of(p);
    size_t list = b->bytes / STEP - 1;
    bool keep = list < LISTS && own.bytes + b->bytes <= STORE_BLOCKS_KIB * 1024;
    if (!keep || (own.life != NOTED && !own_begin())) {
        free(b);
        return;
    }
    b->next = own.first[list];
    own.first[list] = b;
    own.bytes += b->bytes;
}

void *block_resize(void *p, size_t bytes)
{
    size_t rounded = block_rounded(bytes), before = block_bytes(p);
    if (rounded == before) return p;
    if (rounded > STORE_BLOCK_BYTES_MAX && before > STORE_BLOCK_BYTES_MAX) {
        struct block *b = realloc(block_of(p), HEAD + rounded);
        if (!b) return NULL;
        b->bytes = rounded;
        return (char *)b + HEAD;
    }
    void *moved = block_new(bytes);
    if (!moved) return NULL;
    memcpy(moved, p, before < rounded ? before : rounded);
    block_free(p);
    return moved;
}
