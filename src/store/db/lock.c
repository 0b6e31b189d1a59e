/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock of a data folder: one process at a time. The lock is flock(2) on `fermata.lock`; the
 * process id and the command inside are for whoever comes second: for its message, and for a server
 * to know whether the other ends by itself. The file is never removed: removing it would let two
 * processes lock two files of the same name.
 */
#include "store/db/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/db/private.h"

#define LOCK_NAME "fermata.lock"

enum { COMMAND_BYTES = 16, HOLDER_TEXT_BYTES = 24 + COMMAND_BYTES };

struct lock {
    int fd;
};

/* Who holds it, as its file says: its number and, on a line of its own, the command; older ones have
 * the number alone. */
struct holder {
    uint64_t pid; /* 0: not known */
    char command[COMMAND_BYTES];
};

static struct holder holder_read(int fd)
{
    struct holder holder = {0};
    char text[HOLDER_TEXT_BYTES];
    ssize_t n = pread(fd, text, sizeof text, 0);
    if (n <= 0) return holder;
    str rest = {text, (size_t)n};
    if (str_to_u64(str_split(&rest, '\n'), &holder.pid)) holder.pid = 0;
    str command = str_split(&rest, '\n');
    if (command.len && command.len < sizeof holder.command)
        memcpy(holder.command, command.p, command.len);
    return holder;
}

/* "process 12 (fermata serve)" */
static enum err held(const struct holder *holder, const char *folder, struct fault *reterr)
{
    char who[HOLDER_TEXT_BYTES + 32] = "another process";
    if (holder->pid && holder->command[0])
        snprintf(who, sizeof who, "process %llu (fermata %s)", (unsigned long long)holder->pid,
                 holder->command);
    else if (holder->pid)
        snprintf(who, sizeof who, "process %llu", (unsigned long long)holder->pid);
    return fault(reterr, ERR_LOCKED,
                 "data folder %s is in use by %s: stop that one first, "
                 "or give this one another folder (FERMATA_DATA)",
                 folder, who);
}

/* Failing to note it is no reason to refuse: the lock itself is held. */
static void holder_write(int fd, const char *command)
{
    char text[HOLDER_TEXT_BYTES];
    int len = snprintf(text, sizeof text, "%ld\n%s\n", (long)getpid(), command);
    if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)len, 0) < 0) return;
}

static enum err lock_take_it(const char *folder, const char *command, struct lock **ret_lock,
                             struct holder *ret_holder, struct fault *reterr)
{
    if (mkdir(folder, 0700) && errno != EEXIST)
        return fault(reterr, ERR_IO, "data folder %s cannot be created: %s", folder,
                     strerror(errno));
    AUTO(fd_closep) int folder_fd = -1;
    enum err e = private_folder_open(folder, &folder_fd, reterr);
    if (e) return e;

    AUTO(fd_closep)
    int fd = openat(folder_fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fault(reterr, ERR_IO, "%s/" LOCK_NAME " cannot be opened: %s", folder,
                     strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno == EWOULDBLOCK) {
            *ret_holder = holder_read(fd);
            return held(ret_holder, folder, reterr);
        }
        return fault(reterr, ERR_IO, "%s/" LOCK_NAME " cannot be locked: %s", folder,
                     strerror(errno));
    }
    holder_write(fd, command);

    struct lock *lock = mem_new(sizeof *lock);
    lock->fd = fd;
    fd = -1;
    *ret_lock = lock;
    return OK;
}

enum err lock_take(const char *folder, const char *command, struct lock **ret_lock,
                   struct fault *reterr)
{
    struct holder holder;
    return lock_take_it(folder, command, ret_lock, &holder, reterr);
}

/* A server that runs. A name without its process is left from one that is gone: whoever holds the lock
 * now has not written its own yet. */
static bool is_server(const struct holder *holder)
{
    bool alive = holder->pid && (kill((pid_t)holder->pid, 0) == 0 || errno == EPERM);
    return alive && (!holder->command[0] || strcmp(holder->command, "serve") == 0);
}

enum err lock_take_for_server(const char *folder, int64_t wait_ms,
                              void (*on_wait)(const char *command, uint64_t pid),
                              struct lock **ret_lock, struct fault *reterr)
{
    const struct timespec pause = {.tv_nsec = LOCK_LOOK_MS * 1000L * 1000L};
    bool told = false;
    for (int64_t waited = 0;; waited += LOCK_LOOK_MS) {
        struct holder holder = {0};
        enum err e = lock_take_it(folder, "serve", ret_lock, &holder, reterr);
        if (e != ERR_LOCKED || is_server(&holder) || waited >= wait_ms) return e;
        if (!told && holder.command[0] && strcmp(holder.command, "serve") != 0) {
            on_wait(holder.command, holder.pid);
            told = true;
        }
        nanosleep(&pause, NULL);
    }
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
