/* SPDX-License-Identifier: Apache-2.0
 *
 * Object storage, for everybody else: names, jobs, hashes checked, caches; the seam to kinds of
 * storage (blob_int.h), which only keep files.
 *
 *     loop:  blob_get ──▶ job ─┐                                      ┌─▶ on_done, the job is gone
 *     pool:                    └▶ open ──▶ known? ──▶ read, hash ──▶ ┘
 *
 * A put looks first: the right bytes under that name are kept as they are, anything else is
 * replaced. A get gives bytes with the hash of their name, or an error.
 *
 * Invariants:
 * 1. A job owns all it needs but the storage and the caches; `struct blobs` stays until its last job
 *    has ended, also after blobs_close.
 * 2. Each job ends with one callback from the loop, unless it was forgotten or the storage closed;
 *    a descriptor that nobody takes is closed.
 * 3. At most BLOB_JOBS_MAX jobs are under way, and puts with BLOB_PUT_BYTES_MAX; further ones end with
 *    ERR_RATE_LIMITED.
 * 4. At most BLOB_AT_ONCE_MAX jobs are on the pool; the others wait in a row, in their order. A
 *    storage that hangs holds these threads of the pool, and leaves the rest to everybody else.
 *
 * To add a kind of storage: its row in `kinds`.
 */
#include "store/blob/blob.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "net/loop.h"
#include "store/blob/blob_cache.h"
#include "store/blob/blob_int.h"

struct blobs {
    struct loop *loop;
    struct blob_storage storage;
    struct blob_cache *cache;
    struct blob_stats stats;
    size_t jobs, at_once;
    struct blob_job *next, *last; /* that wait for the pool */
    size_t put_bytes;             /* of all jobs */
    bool closed;
    unsigned holds;
    msec held_until;
};

enum job_kind { JOB_PUT, JOB_PUT_FILE, JOB_GET, JOB_OPEN, JOB_REMOVE, JOB_LIST };

struct blob_job {
    struct loop_work work;
    struct blobs *blobs;
    struct blob_job *next; /* behind it in the row */
    enum job_kind kind;
    bool forgotten, on_pool;
    union {
        blob_done *done;
        blob_got *got;
        blob_opened *opened;
        blob_listed *listed;
    } on;
    void *arg;

    /* of the work */
    struct blob_id id;
    char *bytes;         /* to be put, or found */
    size_t len, put_len; /* put_len: counted in put_bytes */
    char *file;
    size_t bytes_max;
    msec before;
    int fd;
    uint64_t file_len;
    bool damaged, removed; /* an object was found damaged; was removed */
    size_t limit;
    struct blob_name after;
    struct arena arena;
    struct blob_names names;
    struct fault fault; /* err OK: it worked */
};

/* ---- names ---- */

bool blob_bucket_valid(str bucket)
{
    if (bucket.len < 1 || bucket.len >= BLOB_BUCKET_BYTES) return false;
    for (size_t i = 0; i < bucket.len; i++)
        if (bucket.p[i] < 'a' || bucket.p[i] > 'z') return false;
    return true;
}

bool blob_stamp_eq(const struct blob_stamp *a, const struct blob_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->modified.tv_sec == b->modified.tv_sec && a->modified.tv_nsec == b->modified.tv_nsec &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* ---- reading and checking, on the thread pool ---- */

static enum err read_piece(int fd, char *bytes, size_t len, uint64_t at, struct fault *reterr)
{
    if (file_read_at(fd, bytes, len, at) == len) return OK;
    if (!errno) return fault(reterr, ERR_DAMAGED, "an object became shorter");
    return fault(reterr, ERR_IO, "an object cannot be read: %s", strerror(errno));
}

enum err blob_hash(int fd, uint64_t len, unsigned char ret_hash[static HASH_BYTES],
                   struct fault *reterr)
{
    size_t room = len < BLOB_PIECE_BYTES ? (size_t)len + 1 : BLOB_PIECE_BYTES;
    struct crypto_hash *sum = crypto_hash_new();
    char *piece = mem_new(room);
    enum err e = OK;
    for (uint64_t at = 0; !e && at < len;) {
        size_t now = len - at < room ? (size_t)(len - at) : room;
        e = read_piece(fd, piece, now, at, reterr);
        if (!e) crypto_hash_add(sum, (str){piece, now});
        at += now;
    }
    if (!e) crypto_hash_take(sum, ret_hash);
    crypto_hash_free(sum);
    free(piece);
    return e;
}

static enum err other_hash(struct blob_job *job)
{
    return fault(&job->fault, ERR_DAMAGED, "object %s/%s is damaged: its bytes changed",
                 job->id.bucket, job->id.path);
}

/* Open the object, and see that its bytes have the right hash. */
static enum err open_whole(struct blob_job *job, int *ret_fd, uint64_t *ret_len)
{
    const struct blob_storage *storage = &job->blobs->storage;
    struct blob_stamp stamp;
    unsigned char hash[HASH_BYTES];
    AUTO(fd_closep) int fd = -1;
    enum err e = storage->ops->open(storage->self, &job->id, &fd, &stamp, &job->fault);
    if (e) return e;
    if (!blob_cache_whole(job->blobs->cache, &job->id, &stamp)) {
        e = blob_hash(fd, stamp.size, hash, &job->fault);
        if (e) return e;
        if (memcmp(hash, job->id.hash, HASH_BYTES) != 0) return other_hash(job);
        blob_cache_set_whole(job->blobs->cache, &job->id, &stamp);
    }
    *ret_len = stamp.size;
    *ret_fd = fd;
    fd = -1;
    return OK;
}

static enum err get_bytes(struct blob_job *job)
{
    const struct blob_storage *storage = &job->blobs->storage;
    struct blob_cache *cache = job->blobs->cache;
    struct blob_stamp stamp;
    unsigned char hash[HASH_BYTES];
    AUTO(fd_closep) int fd = -1;
    enum err e = storage->ops->open(storage->self, &job->id, &fd, &stamp, &job->fault);
    if (e) return e;
    if (stamp.size > job->bytes_max)
        return fault(&job->fault, ERR_TOO_LARGE, "object %s/%s has %llu bytes, more than %zu",
                     job->id.bucket, job->id.path, (unsigned long long)stamp.size, job->bytes_max);
    job->len = (size_t)stamp.size;
    job->bytes = blob_cache_bytes(cache, &job->id, &stamp);
    if (job->bytes) return OK;
    job->bytes = malloc(job->len + 1);
    if (!job->bytes) abort();
    job->bytes[job->len] = '\0';
    e = read_piece(fd, job->bytes, job->len, 0, &job->fault);
    if (e) return e;
    crypto_sha256((str){job->bytes, job->len}, hash);
    if (memcmp(hash, job->id.hash, HASH_BYTES) != 0) return other_hash(job);
    blob_cache_set_bytes(cache, &job->id, &stamp, (str){job->bytes, job->len});
    return OK;
}

/* ---- putting ---- */

/* Is it there already, as it should be? Then it is as good as put. Whatever keeps us from knowing
 * is no error: it is written again. */
static bool already_there(struct blob_job *job)
{
    const struct blob_storage *storage = &job->blobs->storage;
    uint64_t len;
    AUTO(fd_closep) int fd = -1;
    enum err e = open_whole(job, &fd, &len);
    if (e == ERR_DAMAGED) job->damaged = true;
    if (!e) e = storage->ops->keep(storage->self, &job->id, fd, &job->fault);
    job->fault = (struct fault){0};
    return !e;
}

static enum err put_bytes(struct blob_job *job)
{
    const struct blob_storage *storage = &job->blobs->storage;
    unsigned char hash[HASH_BYTES];
    crypto_sha256((str){job->bytes, job->len}, hash);
    if (memcmp(hash, job->id.hash, HASH_BYTES) != 0)
        return fault(&job->fault, ERR_DAMAGED,
                     "these are not the bytes that object %s/%s must have", job->id.bucket,
                     job->id.path);
    if (already_there(job)) return OK;
    return storage->ops->put(storage->self, &job->id, (str){job->bytes, job->len}, &job->fault);
}

static enum err put_from_file(struct blob_job *job)
{
    const struct blob_storage *storage = &job->blobs->storage;
    if (already_there(job)) return OK;
    return storage->ops->put_file(storage->self, &job->id, job->file, &job->fault);
}

/* ---- jobs ---- */

static enum err remove_object(struct blob_job *job)
{
    const struct blob_storage *storage = &job->blobs->storage;
    enum err e =
        storage->ops->remove(storage->self, &job->id, job->before, &job->removed, &job->fault);
    if (!e && job->removed) blob_cache_drop(job->blobs->cache, &job->id);
    return e;
}

static enum err list_objects(struct blob_job *job)
{
    const struct blob_storage *storage = &job->blobs->storage;
    return storage->ops->list(storage->self, job->after, job->before, job->limit, &job->arena,
                              &job->names, &job->fault);
}

static enum err open_object(struct blob_job *job)
{
    return open_whole(job, &job->fd, &job->file_len);
}

static enum err (*const works[])(struct blob_job *job) = {
    [JOB_PUT] = put_bytes,    [JOB_PUT_FILE] = put_from_file, [JOB_GET] = get_bytes,
    [JOB_OPEN] = open_object, [JOB_REMOVE] = remove_object,   [JOB_LIST] = list_objects,
};

static void on_work(struct loop_work *work)
{
    struct blob_job *job = CONTAINER(work, struct blob_job, work);
    if (job->fault.err) return; /* refused already */
    enum err e = works[job->kind](job);
    assert(e == job->fault.err);
}

static void count_job(struct blob_stats *stats, const struct blob_job *job)
{
    bool failed = job->fault.err != OK;
    if (job->kind == JOB_PUT || job->kind == JOB_PUT_FILE) {
        stats->puts++;
        stats->puts_failed += failed;
        stats->damaged += job->damaged;
    } else if (job->kind == JOB_GET || job->kind == JOB_OPEN) {
        stats->gets++;
        stats->gets_failed += failed;
        stats->damaged += job->fault.err == ERR_DAMAGED;
    } else if (job->kind == JOB_REMOVE && job->before != INT64_MAX) {
        stats->swept += job->removed;
    }
}

static void tell(struct blob_job *job)
{
    enum err e = job->fault.err;
    switch (job->kind) {
    case JOB_PUT:
    case JOB_PUT_FILE:
    case JOB_REMOVE:
        job->on.done(job->arg, e, &job->fault);
        break;
    case JOB_GET:
        job->on.got(job->arg, e, e ? STR_EMPTY : (str){job->bytes, job->len}, &job->fault);
        break;
    case JOB_OPEN:
        job->on.opened(job->arg, e, e ? -1 : job->fd, e ? 0 : job->file_len, &job->fault);
        job->fd = -1; /* the receiver's now */
        break;
    case JOB_LIST:
        job->on.listed(job->arg, e, job->names.rows, job->names.count, job->names.more,
                       &job->fault);
        break;
    }
}

static void blobs_free(struct blobs *blobs)
{
    if (blobs->storage.ops) blobs->storage.ops->free(blobs->storage.self);
    blob_cache_free(blobs->cache);
    free(blobs);
}

/* As many of those that wait as may be on the pool. */
static void work_on(struct blobs *blobs)
{
    while (blobs->next && blobs->at_once < BLOB_AT_ONCE_MAX) {
        struct blob_job *job = blobs->next;
        blobs->next = job->next;
        job->on_pool = true;
        blobs->at_once++;
        loop_work(blobs->loop, &job->work);
    }
}

static void on_worked(struct loop_work *work)
{
    struct blob_job *job = CONTAINER(work, struct blob_job, work);
    struct blobs *blobs = job->blobs;
    if (job->on_pool) blobs->at_once--;
    blobs->put_bytes -= job->put_len;
    work_on(blobs);
    count_job(&blobs->stats, job);
    if (!job->forgotten && !blobs->closed && job->on.done) tell(job);
    fd_closep(&job->fd);
    arena_done(&job->arena);
    free(job->bytes);
    free(job->file);
    free(job);
    blobs->jobs--;
    if (blobs->closed && !blobs->jobs) blobs_free(blobs);
}

static void too_much(struct blob_job *job)
{
    enum err e =
        fault(&job->fault, ERR_RATE_LIMITED, "too much waits for object storage: try again later");
    assert(e == job->fault.err);
}

static struct blob_job *begin(struct blobs *blobs, enum job_kind kind, void *arg)
{
    struct blob_job *job = mem_new(sizeof *job);
    *job = (struct blob_job){
        .work = {on_work, on_worked}, .blobs = blobs, .kind = kind, .arg = arg, .fd = -1};
    arena_init(&job->arena);
    if (blobs->jobs >= BLOB_JOBS_MAX) too_much(job);
    blobs->jobs++;
    return job;
}

static struct blob_job *begin_object(struct blobs *blobs, enum job_kind kind, str bucket, str path,
                                     void *arg)
{
    struct blob_job *job = begin(blobs, kind, arg);
    if (job->fault.err) return job;
    if (!blob_bucket_valid(bucket)) {
        fault_field(&job->fault, ERR_INVALID_FIELD, "bucket", "a bucket is named by a-z");
    } else if (!blob_path_hash(path, job->id.hash)) {
        fault_field(&job->fault, ERR_INVALID_FIELD, "path", "this is not the path of an object");
    } else {
        snprintf(job->id.bucket, sizeof job->id.bucket, "%.*s", STR_ARG(bucket));
        snprintf(job->id.path, sizeof job->id.path, "%.*s", STR_ARG(path));
    }
    return job;
}

static struct blob_job *start(struct blob_job *job)
{
    struct blobs *blobs = job->blobs;
    if (job->fault.err) { /* to be told, and nothing else */
        loop_work(blobs->loop, &job->work);
        return job;
    }
    if (blobs->next)
        blobs->last->next = job;
    else
        blobs->next = job;
    blobs->last = job;
    work_on(blobs);
    return job;
}

struct blob_job *blob_put(struct blobs *blobs, str bucket, str path, str bytes, blob_done *on_done,
                          void *arg)
{
    struct blob_job *job = begin_object(blobs, JOB_PUT, bucket, path, arg);
    job->on.done = on_done;
    if (!job->fault.err && bytes.len > BLOB_PUT_BYTES_MAX - blobs->put_bytes) too_much(job);
    if (!job->fault.err) {
        job->bytes = mem_new(bytes.len + 1);
        if (bytes.len) memcpy(job->bytes, bytes.p, bytes.len);
        job->len = job->put_len = bytes.len;
        blobs->put_bytes += bytes.len;
    }
    return start(job);
}

struct blob_job *blob_put_file(struct blobs *blobs, str bucket, str path, const char *file,
                               blob_done *on_done, void *arg)
{
    struct blob_job *job = begin_object(blobs, JOB_PUT_FILE, bucket, path, arg);
    job->on.done = on_done;
    job->file = mem_str(str_c(file));
    return start(job);
}

struct blob_job *blob_get(struct blobs *blobs, str bucket, str path, size_t bytes_max,
                          blob_got *on_got, void *arg)
{
    struct blob_job *job = begin_object(blobs, JOB_GET, bucket, path, arg);
    job->on.got = on_got;
    job->bytes_max = bytes_max;
    return start(job);
}

struct blob_job *blob_open(struct blobs *blobs, str bucket, str path, blob_opened *on_opened,
                           void *arg)
{
    struct blob_job *job = begin_object(blobs, JOB_OPEN, bucket, path, arg);
    job->on.opened = on_opened;
    return start(job);
}

struct blob_job *blob_remove(struct blobs *blobs, str bucket, str path, blob_done *on_done,
                             void *arg)
{
    return blob_sweep(blobs, bucket, path, INT64_MAX, on_done, arg);
}

struct blob_job *blob_sweep(struct blobs *blobs, str bucket, str path, msec before,
                            blob_done *on_done, void *arg)
{
    struct blob_job *job = begin_object(blobs, JOB_REMOVE, bucket, path, arg);
    job->on.done = on_done;
    job->before = blobs_held(blobs) ? INT64_MIN : before;
    return start(job);
}

void blobs_hold(struct blobs *blobs, msec until)
{
    if (loop_now(blobs->loop) >= blobs->held_until) blobs->holds = 0; /* nobody released these */
    blobs->holds++;
    if (until > blobs->held_until) blobs->held_until = until;
}

bool blobs_held(const struct blobs *blobs)
{
    return blobs->holds && loop_now(blobs->loop) < blobs->held_until;
}

void blobs_release(struct blobs *blobs)
{
    if (blobs->holds) blobs->holds--;
}

struct blob_job *blob_list(struct blobs *blobs, struct blob_name after, msec before, size_t limit,
                           blob_listed *on_listed, void *arg)
{
    struct blob_job *job = begin(blobs, JOB_LIST, arg);
    job->on.listed = on_listed;
    job->after = (struct blob_name){arena_str(&job->arena, after.bucket),
                                    arena_str(&job->arena, after.path)};
    job->before = before;
    job->limit = limit < BLOB_LIST_MAX ? limit : BLOB_LIST_MAX;
    return start(job);
}

void blob_forget(struct blob_job *job)
{
    job->forgotten = true;
}

struct blob_stats blobs_stats(const struct blobs *blobs)
{
    return blobs->stats;
}

/* ---- opening and closing ---- */

static const struct {
    str scheme;
    enum err (*open)(const char *rest, struct blob_storage *ret_storage, struct fault *reterr);
} kinds[] = {
    {{"file", 4}, blob_file_open}, /* also without a scheme */
};

/* "s3" of "s3://host/bucket"; empty: a folder. */
static str scheme_of(str url)
{
    ptrdiff_t end = str_find_char(url, ':');
    for (ptrdiff_t i = 0; i < end; i++) {
        char c = char_lower(url.p[i]);
        bool letter = c >= 'a' && c <= 'z';
        if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.')))
            return STR_EMPTY;
    }
    return end > 0 ? (str){url.p, (size_t)end} : STR_EMPTY;
}

/* Which kind it is, and its part behind the scheme. NULL, or why there is none. */
static const char *kind_of(str url, size_t *ret_kind, str *ret_rest)
{
    str scheme = scheme_of(url);
    str rest = scheme.len ? str_drop(url, scheme.len + 1) : url;
    if (!rest.len) return "names no folder";
    if (scheme.len && str_starts(rest, STR("//")) && !str_starts(rest, STR("///")) &&
        str_eq_nocase(scheme, STR("file")))
        return "names a host";
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (!scheme.len || str_eq_nocase(scheme, kinds[i].scheme)) {
            *ret_kind = i;
            *ret_rest = rest;
            return NULL;
        }
    return "is no storage that this version knows: it keeps objects in a folder";
}

const char *blob_url_check(str url)
{
    size_t kind;
    str rest;
    return kind_of(url, &kind, &rest);
}

const char *blob_folder(const char *url)
{
    size_t kind;
    str rest;
    if (kind_of(str_c(url), &kind, &rest)) return NULL;
    return kinds[kind].open == blob_file_open ? rest.p : NULL;
}

enum err blobs_open(struct loop *loop, const char *url, struct blobs **ret_blobs,
                    struct fault *reterr)
{
    struct blob_storage storage;
    size_t kind;
    str rest;
    const char *refused = kind_of(str_c(url), &kind, &rest);
    if (refused) return fault(reterr, ERR_CONFIG, "object storage: \"%s\" %s", url, refused);
    enum err e = kinds[kind].open(rest.p, &storage, reterr);
    if (e) return e;
    struct blobs *blobs = mem_new(sizeof *blobs);
    *blobs = (struct blobs){.loop = loop, .storage = storage, .cache = blob_cache_new()};
    *ret_blobs = blobs;
    return OK;
}

void blobs_close(struct blobs *blobs)
{
    if (!blobs) return;
    blobs->closed = true;
    if (!blobs->jobs) blobs_free(blobs);
}
