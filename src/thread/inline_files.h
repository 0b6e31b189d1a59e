/* SPDX-License-Identifier: Apache-2.0
 *
 * Files whose bytes came inside a request, as base64, or with a message of a chat: each becomes an object in storage, before the
 * commit that adds its row. On the loop thread; decoding and disk are beside it.
 */
#ifndef THREAD_INLINE_FILES_H
#define THREAD_INLINE_FILES_H

#include "thread/parts.h"

struct blobs;
struct loop;
struct transfers;

struct inline_file {
    str data;
    bool decoded;                /* data are the bytes; else base64 */
    char field[PART_PATH_BYTES]; /* of the request, for refusals */
    struct attachment row; /* given: owner, thread_id, filename, created; the rest is made here */
    bool put;              /* it is in storage */
    bool used;             /* its row was added: set by the job that adds it */
};

struct inline_files {
    struct inline_file *files;
    size_t count;
    uint64_t bytes_max; /* of one of them */
};

struct inline_target {
    struct loop *loop;
    struct blobs *blobs;
    struct transfers *transfers; /* where it can be stopped */
    struct arena *arena;         /* of the request, for texts of the rows */
};

/* Find out what the files are, and put them. Arena and files stay until on_done, which comes once,
 * from the loop. ERR_INVALID_FIELD and ERR_TOO_LARGE name the field; ERR_STORAGE_FULL, ERR_IO,
 * ERR_SHUTTING_DOWN. After an error nothing is left in storage that anybody keeps. */
void inline_files_put(struct inline_files *files, const struct inline_target *target,
                      void (*on_done)(void *arg, enum err e, const struct fault *why), void *arg);

/* Take those that are not used out of storage again. */
void inline_files_drop(struct inline_files *files, struct blobs *blobs);

#endif
