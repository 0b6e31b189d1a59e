/* SPDX-License-Identifier: Apache-2.0
 *
 * Attachments: files that people sent, a row each; the bytes are in object storage. A row belongs to
 * an owner and to one of the owner's threads by its name, which may not exist yet. Other threads of
 * the owner may use it. It goes with the last thread that has it.
 *
 * Plain blocking code for use inside a job; texts that come back live in the arena given.
 */
#ifndef STORE_TABLE_ATTACHMENTS_H
#define STORE_TABLE_ATTACHMENTS_H

#include "base/arena.h"

struct db;

struct attachment {
    str id; /* "att_..." */
    str owner, thread_id;
    str mime;     /* from its content, never from what the client said */
    str filename; /* as the client called it, without a path; may be empty */
    str sha256;   /* 64 hex digits */
    str bucket, path;
    uint64_t bytes;
    uint32_t width, height; /* of a picture; 0: none, or not known */
    msec created;
};

struct attachment_list {
    struct attachment *rows;
    size_t count;
};

enum err attachment_add(struct db *db, const struct attachment *attachment) MUST_USE;
/* By its id alone: the caller looks at the owner. ERR_NOT_FOUND. */
enum err attachment_find(struct db *db, struct arena *arena, str id,
                         struct attachment *ret_attachment) MUST_USE;

/* A message of the thread has it. */
struct thread;
enum err attachment_use(struct db *db, const struct attachment *attachment,
                        const struct thread *thread) MUST_USE;

/* The thread is about to be deleted: what no other thread has loses its owner, and is not found any
 * more (store/table/doomed.h removes it); the rest is another's from now on. */
enum err attachments_leave(struct db *db, struct arena *arena, const struct thread *thread)
    MUST_USE;

/* Those older than `before` that no thread has: at most `limit`; and their removal. */
enum err attachments_unused(struct db *db, struct arena *arena, msec before, size_t limit,
                            struct attachment_list *ret_list) MUST_USE;
enum err attachment_delete(struct db *db, str id) MUST_USE;

#endif
