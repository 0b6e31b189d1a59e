/* SPDX-License-Identifier: Apache-2.0
 *
 * Spool files: large results as files, until they are objects.
 *
 *     ".write-7"  ──write, fsync, close──▶  rename to "call_..."  ──fsync of the folder──▶  told
 *
 * A file in the making begins with a dot, which no call's id does; what a crash leaves of it is swept
 * at the next start. One process has the data folder, so numbers are enough to keep two of them
 * apart.
 *
 * A job owns a copy of its bytes and a descriptor of the folder, so it needs neither the spool nor
 * whoever began it.
 */
#include "tool/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
#include "store/db/private.h"
#include "tool/spool_int.h"

struct spool_job {
    struct loop_work work;
    struct spool *spool; /* NULL: closed, or nobody waits */
    struct spool_job *prev, *next;
    void (*on_done)(void *arg, enum err e, const struct fault *reason);
    void *arg;
    bool remove;
    int folder;
    char name[ID_CLIENT_BYTES_MAX + 1];
    char unfinished[32];
    char *bytes;
    size_t len;
    struct fault fault; /* err OK: it worked */
};

enum err spool_failed(struct fault *reterr, const char *what, const char *name)
{
    bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
    return fault(reterr, full ? ERR_STORAGE_FULL : ERR_IO, "spool file %s cannot be %s: %s", name,
                 what, strerror(errno));
}

bool spool_name_valid(str name)
{
    return id_valid(name) && name.p[0] != '.';
}

/* ---- jobs, on the thread pool ---- */

static enum err write_unfinished(struct spool_job *job)
{
    AUTO(fd_closep)
    int fd = openat(job->folder, job->unfinished,
                    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return spool_failed(&job->fault, "made", job->name);
    if (!file_write_all(fd, (str){job->bytes, job->len}))
        return spool_failed(&job->fault, "written", job->name);
    if (fsync(fd)) return spool_failed(&job->fault, "brought to disk", job->name);
    int open_fd = fd;
    fd = -1;
    return close(open_fd) ? spool_failed(&job->fault, "closed", job->name) : OK;
}

enum err spool_rename(int folder, const char *unfinished, const char *name, struct fault *reterr)
{
    if (renameat(folder, unfinished, folder, name)) {
        enum err e = spool_failed(reterr, "named", name);
        unlinkat(folder, unfinished, 0); /* a sweep finds it otherwise */
        return e;
    }
    if (fsync(folder) == 0) return OK;
    enum err e = spool_failed(reterr, "kept", name);
    unlinkat(folder, name, 0); /* likewise: no row will name it */
    return e;
}

static void on_work(struct loop_work *work)
{
    struct spool_job *job = CONTAINER(work, struct spool_job, work);
    if (job->fault.err) return; /* refused already */
    enum err e = OK;
    if (job->remove) {
        if (unlinkat(job->folder, job->name, 0) && errno != ENOENT)
            e = spool_failed(&job->fault, "removed", job->name);
    } else {
        e = write_unfinished(job);
        if (e)
            unlinkat(job->folder, job->unfinished, 0);
        else
            e = spool_rename(job->folder, job->unfinished, job->name, &job->fault);
    }
    assert(e == job->fault.err);
}

/* ---- jobs, on the loop ---- */

static void spool_leave(struct spool_job *job)
{
    struct spool *spool = job->spool;
    if (!spool) return;
    if (job->prev) job->prev->next = job->next;
    if (job->next) job->next->prev = job->prev;
    if (spool->jobs == job) spool->jobs = job->next;
    job->spool = NULL;
}

static void on_worked(struct loop_work *work)
{
    struct spool_job *job = CONTAINER(work, struct spool_job, work);
    bool told = job->spool && job->on_done;
    spool_leave(job);
    if (told) job->on_done(job->arg, job->fault.err, &job->fault);
    fd_closep(&job->folder);
    free(job->bytes);
    free(job);
}

static struct spool_job *begin(struct spool *spool, str name,
                               void (*on_done)(void *arg, enum err e, const struct fault *reason),
                               void *arg)
{
    struct spool_job *job = mem_new(sizeof *job);
    *job = (struct spool_job){
        .work = {on_work, on_worked}, .spool = spool, .on_done = on_done, .arg = arg};
    job->next = spool->jobs;
    if (job->next) job->next->prev = job;
    spool->jobs = job;
    job->folder = fcntl(spool->folder, F_DUPFD_CLOEXEC, 0);
    int why = errno;
    if (!spool_name_valid(name)) {
        fault_field(&job->fault, ERR_INVALID_FIELD, "name", "a spool file needs the id of a call");
        return job;
    }
    snprintf(job->name, sizeof job->name, "%.*s", STR_ARG(name));
    errno = why;
    if (job->folder < 0) spool_failed(&job->fault, "reached", job->name);
    return job;
}

struct spool_job *spool_write(struct spool *spool, str name, str bytes,
                              void (*on_done)(void *arg, enum err e, const struct fault *reason),
                              void *arg)
{
    struct spool_job *job = begin(spool, name, on_done, arg);
    snprintf(job->unfinished, sizeof job->unfinished, ".write-%llu",
             (unsigned long long)spool->next++);
    job->bytes = mem_new(bytes.len + 1);
    if (bytes.len) memcpy(job->bytes, bytes.p, bytes.len);
    job->len = bytes.len;
    loop_work(spool->loop, &job->work);
    return job;
}

struct spool_job *spool_remove(struct spool *spool, str name,
                               void (*on_done)(void *arg, enum err e, const struct fault *reason),
                               void *arg)
{
    struct spool_job *job = begin(spool, name, on_done, arg);
    job->remove = true;
    loop_work(spool->loop, &job->work);
    return job;
}

void spool_forget(struct spool_job *job)
{
    spool_leave(job);
}

/* ---- opening and closing ---- */

enum err spool_open(struct loop *loop, const char *data_folder, struct spool **ret_spool,
                    struct fault *reterr)
{
    char path[4096];
    int folder = -1, len = snprintf(path, sizeof path, "%s/spool", data_folder);
    if (len >= (int)sizeof path)
        return fault(reterr, ERR_CONFIG, "the path of the data folder is too long");
    if (mkdir(path, 0700) && errno != EEXIST)
        return fault(reterr, errno == ENOSPC || errno == EDQUOT ? ERR_STORAGE_FULL : ERR_IO,
                     "%s cannot be made: %s", path, strerror(errno));
    enum err e = private_folder_open(path, &folder, reterr);
    if (e) return e;
    struct spool *spool = mem_new(sizeof *spool);
    *spool = (struct spool){.loop = loop, .folder = folder, .path = mem_str(str_c(path))};
    *ret_spool = spool;
    return OK;
}

void spool_close(struct spool *spool)
{
    if (!spool) return;
    while (spool->jobs) spool_leave(spool->jobs);
    spool_streams_leave(spool);
    close(spool->folder);
    free(spool->path);
    free(spool);
}

/* ---- reading and sweeping, on any thread ---- */

/* Not every file system has files without a name: then it is taken away at once. */
enum err spool_unnamed(const struct spool *spool, int *ret_fd, struct fault *reterr)
{
    char name[16 + ID_BYTES] = ".unnamed-";
    int fd = openat(spool->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        id_random(name + strlen(name));
        fd = openat(spool->folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 && unlinkat(spool->folder, name, 0)) fd_closep(&fd);
    }
    if (fd < 0) return spool_failed(reterr, "made", "without a name");
    *ret_fd = fd;
    return OK;
}

const char *spool_path(const struct spool *spool, struct arena *arena, str name)
{
    return arena_printf(arena, "%s/%.*s", spool->path, STR_ARG(name)).p;
}

static enum err open_file(const struct spool *spool, str name, int *ret_fd, uint64_t *ret_len,
                          struct fault *reterr)
{
    struct stat st;
    if (!spool_name_valid(name)) return fault(reterr, ERR_NOT_FOUND, "there is no such spool file");
    char file[ID_CLIENT_BYTES_MAX + 1];
    snprintf(file, sizeof file, "%.*s", STR_ARG(name));
    AUTO(fd_closep) int fd = openat(spool->folder, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return fault(reterr, ERR_NOT_FOUND, "there is no spool file %s", file);
    if (fd < 0 || fstat(fd, &st)) return spool_failed(reterr, "opened", file);
    if (!S_ISREG(st.st_mode))
        return fault(reterr, ERR_TOO_LARGE, "spool file %s is none of ours", file);
    *ret_fd = fd;
    *ret_len = (uint64_t)st.st_size;
    fd = -1;
    return OK;
}

static enum err read_part(struct arena *arena, int fd, uint64_t from, size_t len, str name,
                          str *ret_bytes, struct fault *reterr)
{
    char *bytes = arena_alloc(arena, len + 1);
    if (file_read_at(fd, bytes, len, from) < len) {
        if (errno) return spool_failed(reterr, "read", arena_cstr(arena, name));
        return fault(reterr, ERR_IO, "spool file %.*s became shorter", STR_ARG(name));
    }
    *ret_bytes = (str){bytes, len};
    return OK;
}

enum err spool_read(const struct spool *spool, struct arena *arena, str name, str *ret_bytes,
                    struct fault *reterr)
{
    uint64_t len = 0;
    AUTO(fd_closep) int fd = -1;
    enum err e = open_file(spool, name, &fd, &len, reterr);
    if (e) return e;
    if (len > TOOL_RESULT_BYTES_MAX)
        return fault(reterr, ERR_TOO_LARGE, "spool file %.*s is none of ours", STR_ARG(name));
    return read_part(arena, fd, 0, (size_t)len, name, ret_bytes, reterr);
}

enum err spool_ends(const struct spool *spool, struct arena *arena, str name, size_t max,
                    str *ret_head, str *ret_tail, struct fault *reterr)
{
    uint64_t len = 0;
    str head = STR_EMPTY, tail = STR_EMPTY;
    AUTO(fd_closep) int fd = -1;
    enum err e = open_file(spool, name, &fd, &len, reterr);
    if (e) return e;
    bool whole = len / 2 < max || (len / 2 == max && len % 2 == 0); /* len <= 2 * max */
    e = read_part(arena, fd, 0, whole ? (size_t)len : max, name, &head, reterr);
    if (!e && !whole) e = read_part(arena, fd, len - max, max, name, &tail, reterr);
    if (e) return e;
    *ret_head = head;
    *ret_tail = tail;
    return OK;
}

static void close_list(DIR **list)
{
    if (*list) closedir(*list);
}

enum err spool_sweep(const struct spool *spool, bool (*needed)(void *arg, str name), void *arg,
                     size_t *ret_removed, struct fault *reterr)
{
    size_t removed = 0;
    AUTO(fd_closep) int fd = openat(spool->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(close_list) DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list) return fault(reterr, ERR_IO, "the spool folder cannot be read: %s", strerror(errno));
    fd = -1; /* the list's now */
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(list);
        if (!entry && errno)
            return fault(reterr, ERR_IO, "the spool folder cannot be read: %s", strerror(errno));
        if (!entry) break;
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        if (spool_name_valid(str_c(name)) && needed(arg, str_c(name))) continue;
        if (unlinkat(spool->folder, name, 0)) return spool_failed(reterr, "removed", name);
        removed++;
    }
    *ret_removed = removed;
    return OK;
}
