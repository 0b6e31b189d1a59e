/* SPDX-License-Identifier: Apache-2.0
 *
 * Spool files that come in pieces, hashed as they come.
 *
 *     loop:  _write ──▶ waiting ─┐ swapped when the thread is free      on_drained / on_done
 *     pool:                      └▶ writing ──write, hash──▶ ".stream-7"      ▲
 *                                                 last one: cut, fsync, rename ┘
 *
 * Two buffers: one fills while the other is written. The hash runs along; only when a stretch of
 * the bytes is wanted is the file read again, and the stretch moved to its beginning in place.
 *
 * Invariants:
 * 1. At most one work is under way. While it is, `writing`, `fd`, `hash`, `fault`, `file` and
 *    `inode` are its own; `aborted` alone is read by both.
 * 2. After the first failure nothing more is written; the rest is dropped and the end tells it.
 * 3. A stream is freed only at the end of a work, so every function of it may be called from its
 *    callbacks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "net/loop.h"
#include "tool/spool_int.h"

struct bytes {
    char *p;
    size_t len, room;
};

struct spool_stream {
    struct loop_work work;
    struct loop *loop;
    struct spool *spool; /* NULL: closed, nobody is told */
    struct spool_stream *prev, *next;
    void (*on_drained)(void *arg);
    void (*on_done)(void *arg, enum err e, const struct spool_file *file,
                    const struct fault *reason);
    void *drained_arg, *done_arg;
    struct bytes waiting;
    uint64_t given; /* bytes, in all */
    bool working, full, ending;
    atomic_bool aborted;

    /* of the work under way */
    struct bytes writing;
    bool last;          /* it makes the file */
    uint64_t from, len; /* the stretch that becomes the file */
    int folder, fd;     /* fd -1: not made yet, or closed */
    ino_t inode;        /* of the file under its name; 0: it has none */
    uint64_t size;      /* written so far */
    struct crypto_hash *hash;
    struct spool_file file;
    struct fault fault; /* err OK: it worked so far */
    char name[ID_CLIENT_BYTES_MAX + 1], unfinished[32];
};

/* ---- on the thread pool ---- */

static enum err write_piece(struct spool_stream *stream)
{
    if (stream->fd < 0)
        stream->fd = openat(stream->folder, stream->unfinished,
                            O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (stream->fd < 0) return spool_failed(&stream->fault, "made", stream->name);
    str piece = {stream->writing.p, stream->writing.len};
    if (!piece.len) return OK;
    if (!file_write_all(stream->fd, piece))
        return spool_failed(&stream->fault, "written", stream->name);
    crypto_hash_add(stream->hash, piece);
    stream->size += piece.len;
    return OK;
}

static bool write_at(int fd, const char *bytes, size_t len, uint64_t at)
{
    while (len) {
        ssize_t count = pwrite(fd, bytes, len, (off_t)at);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return false;
        bytes += count;
        at += (uint64_t)count;
        len -= (size_t)count;
    }
    return true;
}

/* Move the stretch to the beginning, a piece at a time from the front: what is read has not been
 * written over yet. Hashes it anew. */
static enum err cut_out(struct spool_stream *stream)
{
    if (stream->from == 0 && stream->len == stream->size) return OK;
    unsigned char all[HASH_BYTES];
    crypto_hash_take(stream->hash, all); /* of bytes that are not wanted */
    char *piece = mem_new(SPOOL_PIECE_BYTES);
    enum err e = OK;
    for (uint64_t at = 0; !e && at < stream->len;) {
        uint64_t left = stream->len - at;
        size_t len = left < SPOOL_PIECE_BYTES ? (size_t)left : SPOOL_PIECE_BYTES;
        size_t got = file_read_at(stream->fd, piece, len, stream->from + at);
        if (got < len && !errno) errno = EIO; /* somebody made it shorter */
        if (got < len)
            e = spool_failed(&stream->fault, "read", stream->name);
        else if (stream->from && !write_at(stream->fd, piece, len, at))
            e = spool_failed(&stream->fault, "written", stream->name);
        crypto_hash_add(stream->hash, (str){piece, len});
        at += len;
    }
    free(piece);
    if (!e && ftruncate(stream->fd, (off_t)stream->len))
        e = spool_failed(&stream->fault, "cut", stream->name);
    return e;
}

static enum err finish(struct spool_stream *stream)
{
    struct stat st;
    if (stream->len == UINT64_MAX) stream->len = stream->size - stream->from;
    enum err e = cut_out(stream);
    if (e) return e;
    if (fsync(stream->fd) || fstat(stream->fd, &st))
        return spool_failed(&stream->fault, "brought to disk", stream->name);
    int fd = stream->fd;
    stream->fd = -1;
    if (close(fd)) return spool_failed(&stream->fault, "closed", stream->name);
    if (atomic_load(&stream->aborted)) return fault(&stream->fault, ERR_CANCELLED, "not wanted");
    e = spool_rename(stream->folder, stream->unfinished, stream->name, &stream->fault);
    if (e) return e;
    stream->inode = st.st_ino;
    stream->file.bytes = stream->len;
    crypto_hash_take(stream->hash, stream->file.hash);
    return OK;
}

static void on_write(struct loop_work *work)
{
    struct spool_stream *stream = CONTAINER(work, struct spool_stream, work);
    if (!stream->fault.err && !atomic_load(&stream->aborted)) {
        enum err e = write_piece(stream);
        if (!e && stream->last) e = finish(stream);
        assert(e == stream->fault.err);
    }
    if (!stream->fault.err) return;
    if (stream->fd >= 0) close(stream->fd); /* nothing of it is wanted: no error matters */
    stream->fd = -1;
    if (stream->folder >= 0) unlinkat(stream->folder, stream->unfinished, 0);
}

/* Leave nothing: neither the unfinished file nor the finished one, unless somebody else has taken
 * its name since. */
static void on_clean(struct loop_work *work)
{
    struct spool_stream *stream = CONTAINER(work, struct spool_stream, work);
    struct stat st;
    if (stream->fd >= 0) close(stream->fd);
    stream->fd = -1;
    if (stream->folder < 0) return;
    unlinkat(stream->folder, stream->unfinished, 0); /* a sweep finds what is left */
    if (stream->inode && fstatat(stream->folder, stream->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        st.st_ino == stream->inode)
        unlinkat(stream->folder, stream->name, 0);
}

/* ---- on the loop ---- */

static void spool_stream_leave(struct spool_stream *stream)
{
    struct spool *spool = stream->spool;
    if (!spool) return;
    if (stream->prev) stream->prev->next = stream->next;
    if (stream->next) stream->next->prev = stream->prev;
    if (spool->streams == stream) spool->streams = stream->next;
    stream->spool = NULL;
}

static void free_stream(struct spool_stream *stream)
{
    spool_stream_leave(stream);
    fd_closep(&stream->fd);
    fd_closep(&stream->folder);
    crypto_hash_free(stream->hash);
    free(stream->waiting.p);
    free(stream->writing.p);
    free(stream);
}

static void on_cleaned(struct loop_work *work)
{
    free_stream(CONTAINER(work, struct spool_stream, work));
}

static void clean(struct spool_stream *stream)
{
    stream->working = true;
    stream->work = (struct loop_work){on_clean, on_cleaned};
    loop_work(stream->loop, &stream->work);
}

static void go_on(struct spool_stream *stream)
{
    if (stream->working || (!stream->waiting.len && !stream->ending)) return;
    struct bytes empty = stream->writing; /* its memory is used again */
    stream->writing = stream->waiting;
    stream->waiting = empty;
    stream->waiting.len = 0;
    stream->last = stream->ending;
    stream->working = true;
    loop_work(stream->loop, &stream->work);
}

static void on_written(struct loop_work *work)
{
    struct spool_stream *stream = CONTAINER(work, struct spool_stream, work);
    stream->working = false;
    stream->writing.len = 0;
    if (atomic_load(&stream->aborted)) {
        clean(stream);
        return;
    }
    if (stream->last) {
        stream->working = true; /* an abort inside on_done is left to us */
        if (stream->spool && stream->on_done)
            stream->on_done(stream->done_arg, stream->fault.err, &stream->file, &stream->fault);
        if (atomic_load(&stream->aborted))
            clean(stream);
        else
            free_stream(stream);
        return;
    }
    bool drained = stream->full && stream->waiting.len <= SPOOL_STREAM_BYTES_MAX;
    if (drained) stream->full = false;
    go_on(stream);
    if (drained && stream->spool && stream->on_drained) stream->on_drained(stream->drained_arg);
}

struct spool_stream *spool_stream_new(struct spool *spool, str name, void (*on_drained)(void *arg),
                                      void *arg)
{
    struct spool_stream *stream = mem_new(sizeof *stream);
    *stream = (struct spool_stream){.work = {on_write, on_written},
                                    .loop = spool->loop,
                                    .spool = spool,
                                    .on_drained = on_drained,
                                    .drained_arg = arg,
                                    .hash = crypto_hash_new(),
                                    .fd = -1};
    stream->next = spool->streams;
    if (stream->next) stream->next->prev = stream;
    spool->streams = stream;
    snprintf(stream->unfinished, sizeof stream->unfinished, ".stream-%llu",
             (unsigned long long)spool->next++);
    stream->folder = fcntl(spool->folder, F_DUPFD_CLOEXEC, 0);
    int why = errno;
    if (!spool_name_valid(name)) {
        fault_field(&stream->fault, ERR_INVALID_FIELD, "name", "a spool file needs an id");
        return stream;
    }
    snprintf(stream->name, sizeof stream->name, "%.*s", STR_ARG(name));
    errno = why;
    if (stream->folder < 0) spool_failed(&stream->fault, "reached", stream->name);
    return stream;
}

void spool_stream_write(struct spool_stream *stream, str bytes)
{
    struct bytes *waiting = &stream->waiting;
    assert(!stream->ending);
    stream->given += bytes.len;
    if (!bytes.len) return;
    if (bytes.len > waiting->room - waiting->len) {
        size_t room = waiting->len + bytes.len;
        if (room < waiting->room * 2) room = waiting->room * 2;
        waiting->p = realloc(waiting->p, room);
        if (!waiting->p) abort();
        waiting->room = room;
    }
    memcpy(waiting->p + waiting->len, bytes.p, bytes.len);
    waiting->len += bytes.len;
    go_on(stream);
    if (waiting->len + (stream->working ? stream->writing.len : 0) > SPOOL_STREAM_BYTES_MAX)
        stream->full = true;
}

bool spool_stream_full(const struct spool_stream *stream)
{
    return stream->full;
}

void spool_stream_end(struct spool_stream *stream, uint64_t from, uint64_t len,
                      void (*on_done)(void *arg, enum err e, const struct spool_file *file,
                                      const struct fault *reason),
                      void *arg)
{
    assert(!stream->ending && from <= stream->given);
    assert(len == UINT64_MAX || len <= stream->given - from);
    stream->ending = true;
    stream->from = from;
    stream->len = len;
    stream->on_done = on_done;
    stream->done_arg = arg;
    go_on(stream);
}

void spool_stream_abort(struct spool_stream *stream)
{
    spool_stream_leave(stream);
    if (atomic_exchange(&stream->aborted, true) || stream->working) return;
    clean(stream);
}

void spool_streams_leave(struct spool *spool)
{
    while (spool->streams) spool_stream_leave(spool->streams);
}
