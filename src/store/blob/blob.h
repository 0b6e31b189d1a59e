/* SPDX-License-Identifier: Apache-2.0
 *
 * Object storage: the seam for large payloads. An object has a bucket and a path and never changes;
 * its path says the SHA-256 of its bytes, and whoever reads one is given bytes with that hash or an
 * error:
 *
 *     "3f/3fa9...e1.call_01h..."      two digits, 64 hex digits, and whose it is
 *
 * The last part keeps equal bytes of two owners apart: nothing is shared, so deleting is deleting. A
 * put of the same bytes under the same name twice is one object.
 *
 * Everything works beside the loop; each job ends with one on_done, from the loop and never from
 * inside the function that began it. To add a kind of storage: a struct blob_ops.
 */
#ifndef STORE_BLOB_BLOB_H
#define STORE_BLOB_BLOB_H

#include "base/arena.h"
#include "base/crypto.h"
#include "base/err.h"
#include "base/str.h"
#include "store/table/blob_path.h"

struct blobs;
struct blob_job;
struct loop;

/* May objects be kept at this address? NULL, or why not, as the end of a sentence. */
const char *blob_url_check(str url) MUST_USE;

/* The folder that the address names, where objects are files <bucket>/<path>; NULL if it is not one.
 * Borrows from the address. */
const char *blob_folder(const char *url);

/* Open the storage at `url`: a folder, or "file:" and a folder; it is made if it is missing, 0700.
 * What is only half written there from before is removed. */
enum err blobs_open(struct loop *loop, const char *url, struct blobs **ret_blobs,
                    struct fault *reterr) MUST_USE;
/* Jobs under way still end, but nobody is told any more. NULL is fine. */
void blobs_close(struct blobs *blobs);

typedef void blob_done(void *arg, enum err e, const struct fault *reason);
typedef void blob_got(void *arg, enum err e, str bytes, const struct fault *reason);
typedef void blob_opened(void *arg, enum err e, int fd, uint64_t len, const struct fault *reason);

/* Durable when it ends with OK: whole, or not there at all. The bytes are copied; the file stays
 * where it is, is read as it is then, and nobody may write into it any more: the object may be a
 * second name for it. Both must have the hash of the path (ERR_DAMAGED). on_done may be NULL.
 * ERR_STORAGE_FULL, ERR_IO, ERR_INVALID_FIELD (bucket or path), ERR_NOT_FOUND (no such file).
 * Any job: ERR_RATE_LIMITED when BLOB_JOBS_MAX are under way. */
struct blob_job *blob_put(struct blobs *blobs, str bucket, str path, str bytes, blob_done *on_done,
                          void *arg);
struct blob_job *blob_put_file(struct blobs *blobs, str bucket, str path, const char *file,
                               blob_done *on_done, void *arg);

/* The whole object, borrowed until on_got returns. ERR_NOT_FOUND, ERR_DAMAGED (another hash than its
 * name says), ERR_TOO_LARGE (more than bytes_max), ERR_IO. */
struct blob_job *blob_get(struct blobs *blobs, str bucket, str path, size_t bytes_max,
                          blob_got *on_got, void *arg);

/* A descriptor to read the object from, at its beginning; the receiver closes it. Its bytes were
 * found to have the right hash; a file that has not changed since it was last looked at is not read
 * again for that. */
struct blob_job *blob_open(struct blobs *blobs, str bucket, str path, blob_opened *on_opened,
                           void *arg);

struct blob_job *blob_remove(struct blobs *blobs, str bucket, str path, /* OK if it is not there */
                             blob_done *on_done, void *arg);

/* The same, but only if it was last put before `before`. A put that ended, or found the object there,
 * in the meantime is safe from it. */
struct blob_job *blob_sweep(struct blobs *blobs, str bucket, str path, msec before,
                            blob_done *on_done, void *arg);

/* While it is held, up to `until` (of the loop's time), nothing is removed: both of these end with OK
 * and leave the object to a later sweep. For whoever copies objects that the rows of a moment name.
 * Holds count; one that is not released ends by itself. */
void blobs_hold(struct blobs *blobs, msec until);
void blobs_release(struct blobs *blobs);
bool blobs_held(const struct blobs *blobs);

/* Objects last put before `before` (INT64_MAX: all), in the order of their names, behind `after`
 * (empty: from the start); at most `limit`, and BLOB_LIST_MAX. Borrowed until on_listed returns. */
struct blob_name {
    str bucket, path;
};
typedef void blob_listed(void *arg, enum err e, const struct blob_name *names, size_t count,
                         bool more, const struct fault *reason);
struct blob_job *blob_list(struct blobs *blobs, struct blob_name after, msec before, size_t limit,
                           blob_listed *on_listed, void *arg);

/* on_done does not come any more; what was begun is still done. Not after on_done. */
void blob_forget(struct blob_job *job);

struct blob_stats {
    uint64_t puts, puts_failed, gets, gets_failed; /* since the start; a get is an open too */
    uint64_t damaged;                              /* found when reading, or replaced by a put */
    uint64_t swept;                                /* removed by blob_sweep */
};
struct blob_stats blobs_stats(const struct blobs *blobs);

#endif
