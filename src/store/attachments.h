/* SPDX-License-Identifier: Apache-2.0
 *
 * Attachments: files that people sent, a row each; the bytes are in object storage. A row belongs to
 * an owner and to one of the owner's threads by its name, which may not exist yet, and goes when that
 * thread is deleted.
 *
 * Plain blocking code for use inside a job; texts that come back live in the arena given.
 */
#ifndef STORE_ATTACHMENTS_H
#define STORE_ATTACHMENTS_H

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
enum err attachments_of_thread(struct db *db, struct arena *arena, str owner, str thread_id,
                               struct attachment_list *ret_list) MUST_USE;
enum err attachments_delete(struct db *db, str owner, str thread_id) MUST_USE; /* all of a thread */

/* Those older than `before` whose thread does not exist: at most `limit`; and their removal. */
enum err attachments_unused(struct db *db, struct arena *arena, msec before, size_t limit,
                            struct attachment_list *ret_list) MUST_USE;
enum err attachment_delete(struct db *db, str id) MUST_USE;

#endif
