/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock is flock(2) on `fermata.lock`; the process id inside is only for the message to whoever
 * comes second. The file is never removed: removing it would let two processes lock two files of
 * the same name.
 */
#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "store/private.h"

#define LOCK_NAME "fermata.lock"

enum { PID_TEXT_BYTES = 24 };

struct lock {
    int fd;
};

static enum err folder_make(const char *folder, struct fault *reterr)
{
    if (mkdir(folder, 0700) == 0 || errno == EEXIST) return OK;
    return fault(reterr, ERR_IO, "data folder %s cannot be created: %s", folder, strerror(errno));
}

/* The holder's process id, or 0 if it has not written it yet. */
static uint64_t holder_read(int fd)
{
    char text[PID_TEXT_BYTES];
    ssize_t n = pread(fd, text, sizeof text, 0);
    if (n <= 0) return 0;
    str rest = {text, (size_t)n};
    uint64_t pid = 0;
    return str_to_u64(str_split(&rest, '\n'), &pid) ? 0 : pid;
}

static enum err held(int fd, const char *folder, struct fault *reterr)
{
    char who[PID_TEXT_BYTES + 8] = "another process";
    uint64_t pid = holder_read(fd);
    if (pid) snprintf(who, sizeof who, "process %llu", (unsigned long long)pid);
    return fault(reterr, ERR_LOCKED,
                 "data folder %s is in use by %s: stop that one first, "
                 "or give this one another folder (FERMATA_DATA)",
                 folder, who);
}

/* Failing to note the id is no reason to refuse: the lock itself is held. */
static void holder_write(int fd)
{
    char text[PID_TEXT_BYTES];
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)len, 0) < 0) return;
}

enum err lock_take(const char *folder, struct lock **ret_lock, struct fault *reterr)
{
    enum err e = folder_make(folder, reterr);
    if (e) return e;
    AUTO(fd_closep) int folder_fd = -1;
    e = private_folder_open(folder, &folder_fd, reterr);
    if (e) return e;

    AUTO(fd_closep)
    int fd = openat(folder_fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fault(reterr, ERR_IO, "%s/" LOCK_NAME " cannot be opened: %s", folder,
                     strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno == EWOULDBLOCK) return held(fd, folder, reterr);
        return fault(reterr, ERR_IO, "%s/" LOCK_NAME " cannot be locked: %s", folder,
                     strerror(errno));
    }
    holder_write(fd);

    struct lock *lock = calloc(1, sizeof *lock);
    if (!lock) abort();
    lock->fd = fd;
    fd = -1;
    *ret_lock = lock;
    return OK;
}

void lock_free(struct lock *lock)
{
    if (!lock) return;
    close(lock->fd);
    free(lock);
}

void lock_freep(struct lock **lock)
{
    lock_free(*lock);
}
