/* SPDX-License-Identifier: Apache-2.0
 *
 * What a copy of the database names outside of itself: objects, and spool files whose object does
 * not exist yet. For backups. Plain blocking code.
 */
#ifndef STORE_TABLE_NAMED_H
#define STORE_TABLE_NAMED_H

#include "base/err.h"
#include "base/str.h"

struct named_file {
    str bucket, path; /* the object */
    str spool;        /* empty: none. Else the object's bytes are in this spool file; and the object
                         is there only if it was stored after the copy. path may be empty then. */
};

/* Every one, in the order of their names: objects, then spool files; each once. What is borrowed
 * lives until on_file returns; an error of it ends this and is returned. `schema` is the number of
 * the copy's last schema step. Leaves nothing beside the copy. */
enum err named_each(const char *copy, int64_t schema,
                    enum err (*on_file)(void *arg, const struct named_file *file,
                                        struct fault *reterr),
                    void *arg, struct fault *reterr) MUST_USE;

#endif
