/* SPDX-License-Identifier: Apache-2.0
 *
 * Behind blob.h: the seam to a kind of storage, and what blob.c lends it.
 *
 * A storage knows names and bytes, not hashes: blob.c checks what comes out and decides whether
 * anything has to be written. Its functions block, and run on several pool threads at a time. Names
 * that reach it are valid. To add a kind: a struct blob_ops, its opening in the table of blob.c.
 */
#ifndef STORE_BLOB_BLOB_INT_H
#define STORE_BLOB_BLOB_INT_H

#include <time.h>

#include "store/blob/blob.h"

/* Which file this is and when it last changed: equal stamps, equal bytes, provided that the stamp
 * was not young when it was taken: clocks of file systems tick slowly. */
struct blob_stamp {
    uint64_t device, inode, size;
    struct timespec modified, changed;
    bool young;
};

bool blob_stamp_eq(const struct blob_stamp *a, const struct blob_stamp *b);

struct blob_id {
    char bucket[BLOB_BUCKET_BYTES];
    char path[BLOB_PATH_BYTES];
    unsigned char hash[HASH_BYTES]; /* that the path says */
};

struct blob_names {
    struct blob_name *rows; /* room for as many as were asked for */
    size_t count;
    bool more;
};

struct blob_ops {
    /* A descriptor at the beginning of the object, and its stamp. ERR_NOT_FOUND, ERR_DAMAGED (it is
     * no plain file), ERR_IO. */
    enum err (*open)(void *self, const struct blob_id *id, int *ret_fd,
                     struct blob_stamp *ret_stamp, struct fault *reterr);
    /* Make what was opened last as if written now: on disk, and young for `remove`. ERR_NOT_FOUND:
     * it is gone, or is another one by now. */
    enum err (*keep)(void *self, const struct blob_id *id, int fd, struct fault *reterr);
    /* Replaces what is there. On disk when it ends. */
    enum err (*put)(void *self, const struct blob_id *id, str bytes, struct fault *reterr);
    enum err (*put_file)(void *self, const struct blob_id *id, const char *file,
                         struct fault *reterr); /* ERR_DAMAGED: another hash */
    /* Only if it was last written before `before`; INT64_MAX: always. OK if it is not there. */
    enum err (*remove)(void *self, const struct blob_id *id, msec before, bool *ret_removed,
                       struct fault *reterr);
    enum err (*list)(void *self, struct blob_name after, msec before, size_t limit,
                     struct arena *arena, struct blob_names *ret_names, struct fault *reterr);
    void (*free)(void *self);
};

struct blob_storage {
    const struct blob_ops *ops;
    void *self;
};

/* Files below a folder: blob_file.c. */
enum err blob_file_open(const char *folder, struct blob_storage *ret_storage, struct fault *reterr)
    MUST_USE;

/* 1 to BLOB_BUCKET_BYTES - 1 of [a-z]. */
bool blob_bucket_valid(str bucket);

/* SHA-256 of the next `len` bytes at the beginning of a file; its position stays. ERR_DAMAGED: it
 * has fewer. */
enum err blob_hash(int fd, uint64_t len, unsigned char ret_hash[static HASH_BYTES],
                   struct fault *reterr) MUST_USE;

#endif
