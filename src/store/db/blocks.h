/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory for SQLite, which asks for a small block and gives it back a thousand times in a run: what a
 * thread gives back it gets again, without asking malloc. Blocks may be given back by another thread.
 * What a thread keeps is bounded, and goes when the thread ends.
 */
#ifndef STORE_DB_BLOCKS_H
#define STORE_DB_BLOCKS_H

#include <stddef.h>

/* Aligned to 8 bytes. Out of memory: NULL. */
void *block_new(size_t bytes);
void *block_resize(void *p, size_t bytes); /* NULL: out of memory, and the block is as it was */
void block_free(void *p);                  /* NULL is fine */

size_t block_bytes(const void *p);  /* at least as many as were asked for */
size_t block_rounded(size_t bytes); /* what block_bytes would say of a new one */

#endif
