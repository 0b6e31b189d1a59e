/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of objects: a bucket, and a path that says the SHA-256 of the bytes and whose they are.
 */
#ifndef STORE_TABLE_BLOB_PATH_H
#define STORE_TABLE_BLOB_PATH_H

#include "base/crypto.h"
#include "base/str.h"

#define BUCKET_PAYLOADS    STR("payloads")    /* what tools returned */
#define BUCKET_ATTACHMENTS STR("attachments") /* what people sent */

enum {
    BLOB_BUCKET_BYTES = 16 + 1, /* each with its NUL */
    BLOB_WHOSE_BYTES_MAX = 128,
    BLOB_PATH_BYTES = 3 + 64 + 1 + BLOB_WHOSE_BYTES_MAX + 1,
};

/* `whose`: an id, 1 to 128 of [A-Za-z0-9_-]. */
void blob_path(const unsigned char hash[static HASH_BYTES], str whose,
               char ret_path[static BLOB_PATH_BYTES]);
/* Is this a path that blob_path made? Then its hash. */
bool blob_path_hash(str path, unsigned char ret_hash[static HASH_BYTES]);

#endif
