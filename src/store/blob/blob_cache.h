/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known about objects that were looked at: which files were found whole, and the bytes of
 * small ones. Both hold for one stamp of the file: a file that was changed, replaced or removed
 * since has another, and is read again. Bounded; any thread.
 */
#ifndef STORE_BLOB_BLOB_CACHE_H
#define STORE_BLOB_BLOB_CACHE_H

#include "store/blob/blob_int.h"

struct blob_cache;

struct blob_cache *blob_cache_new(void);
void blob_cache_free(struct blob_cache *cache); /* NULL is fine */

bool blob_cache_whole(struct blob_cache *cache, const struct blob_id *id,
                      const struct blob_stamp *stamp);
void blob_cache_set_whole(struct blob_cache *cache, const struct blob_id *id,
                          const struct blob_stamp *stamp);

/* A copy of the bytes, to be freed; NULL: not known. */
char *blob_cache_bytes(struct blob_cache *cache, const struct blob_id *id,
                       const struct blob_stamp *stamp);
/* Only bytes with the right hash. More than BLOB_CACHED_BYTES_MAX, or of a young file: does nothing. */
void blob_cache_set_bytes(struct blob_cache *cache, const struct blob_id *id,
                          const struct blob_stamp *stamp, str bytes);
void blob_cache_drop(struct blob_cache *cache, const struct blob_id *id);

#endif
