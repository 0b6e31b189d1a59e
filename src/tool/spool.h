/* SPDX-License-Identifier: Apache-2.0
 *
 * Results too large for a row: one file each in the folder `spool` of the data folder, named after
 * its call. A file is there whole or not at all, also after a crash: it is written under another
 * name, brought to disk, renamed, and the folder brought to disk, before anybody hears of it.
 *
 * Writing and removing happen on the thread pool, with their end on the loop. Reading and sweeping
 * block, for use inside a job; they may run on any thread.
 */
#ifndef TOOL_SPOOL_H
#define TOOL_SPOOL_H

#include "base/arena.h"
#include "base/crypto.h"
#include "base/err.h"
#include "base/str.h"

struct loop;
struct spool;
struct spool_job;

/* Make the folder if it is missing, 0700, and open it. */
enum err spool_open(struct loop *loop, const char *data_folder, struct spool **ret_spool,
                    struct fault *reterr) MUST_USE;

/* Jobs under way still end, on the loop or in loop_free, but nobody is told any more. NULL is fine. */
void spool_close(struct spool *spool);

/* Both copy what they get, never fail here, and end with one on_done, which comes from the loop and
 * not from inside them: ERR_STORAGE_FULL, ERR_INVALID_FIELD (the name), ERR_IO. After a failure
 * nothing of the new file is left. Two jobs for one name must follow each other. on_done may be
 * NULL. */
struct spool_job *spool_write(struct spool *spool, str name, str bytes,
                              void (*on_done)(void *arg, enum err e, const struct fault *reason),
                              void *arg);
struct spool_job *spool_remove(struct spool *spool, str name, /* OK too if it is not there */
                               void (*on_done)(void *arg, enum err e, const struct fault *reason),
                               void *arg);

/* A file that comes in pieces. Pieces are copied and written beside the loop, in order. While
 * spool_stream_full says so, more than SPOOL_STREAM_BYTES_MAX wait: hold back until on_drained, which
 * comes once for each time that it became full, and not from inside a function of the stream. A
 * stream ends with spool_stream_end or spool_stream_abort, also after spool_close. */
struct spool_stream;
struct spool_stream *spool_stream_new(struct spool *spool, str name, void (*on_drained)(void *arg),
                                      void *arg);
void spool_stream_write(struct spool_stream *stream, str bytes);
bool spool_stream_full(const struct spool_stream *stream);

/* Finish: the `len` bytes from `from` on become the file, whole and on disk; the rest is dropped.
 * Both lie within what was written; len UINT64_MAX: all behind `from`. The stream is gone after
 * on_done. Errors as above; the first one of any write is told here. */
struct spool_file {
    uint64_t bytes;
    unsigned char hash[HASH_BYTES]; /* SHA-256 */
};
void spool_stream_end(struct spool_stream *stream, uint64_t from, uint64_t len,
                      void (*on_done)(void *arg, enum err e, const struct spool_file *file,
                                      const struct fault *reason),
                      void *arg);
/* Leaves nothing. Also after _end, then on_done does not come; and from inside on_done. */
void spool_stream_abort(struct spool_stream *stream);

/* Where a file of this name is, for reading it; in the arena. */
const char *spool_path(const struct spool *spool, struct arena *arena, str name);

/* The first and the last bytes of a file, up to `max` each, without those between: at most 2 * max
 * in memory. *ret_head has all of a file that is no longer than that. */
enum err spool_ends(const struct spool *spool, struct arena *arena, str name, size_t max,
                    str *ret_head, str *ret_tail, struct fault *reterr) MUST_USE;

/* A file without a name, to be written and read back through *ret_fd alone; the caller closes it, and it
 * is gone. Blocks, as reading does. */
enum err spool_unnamed(const struct spool *spool, int *ret_fd, struct fault *reterr) MUST_USE;

/* on_done does not come any more; what was begun is still done. Not after on_done. */
void spool_forget(struct spool_job *job);

/* The whole file. ERR_NOT_FOUND, ERR_TOO_LARGE (not ours), ERR_IO. */
enum err spool_read(const struct spool *spool, struct arena *arena, str name, str *ret_bytes,
                    struct fault *reterr) MUST_USE;

/* Remove what a crash left behind: unfinished files, and those whose name nobody needs. For the
 * start, before anything is written. */
enum err spool_sweep(const struct spool *spool, bool (*needed)(void *arg, str name), void *arg,
                     size_t *ret_removed, struct fault *reterr) MUST_USE;

#endif
