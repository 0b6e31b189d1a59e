/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy of the database at one moment, made while it is in use.
 *
 * It is a read like any other: one of the reading threads holds one state of the database and
 * copies its pages. Writers go on all the while; the log cannot start anew until the copy is
 * complete, so for that time it grows by what is written.
 */
#ifndef STORE_DB_COPY_H
#define STORE_DB_COPY_H

#include "store/db/store.h"

struct copy {
    struct job job;
    struct store *store;
    const char *path;
    int64_t schema; /* out: number of the database's last schema step */
    struct fault why;
};

/* For store_read. Set job.done. `path` must not exist; it is gone again if the job fails. */
void copy_init(struct copy *copy, struct store *store, const char *path);

/* The same without a server; the caller holds the folder's lock. The database is not brought up to
 * date first. ERR_NOT_FOUND if the folder has none. */
enum err copy_folder(const char *folder, const char *path, int64_t *ret_schema,
                     struct fault *reterr) MUST_USE;

#endif
