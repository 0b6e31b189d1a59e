/* SPDX-License-Identifier: Apache-2.0
 *
 * Loaded before libc (LD_PRELOAD), it makes storage hang: while the file that HANG_WHILE names is
 * there, reading, writing at a place and syncing of anything whose path has HANG_BELOW in it waits,
 * as it does on a network file system whose server is away.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_while(int fd)
{
    enum { LOOK_US = 10 * 1000 };
    const char *file = getenv("HANG_WHILE"), *below = getenv("HANG_BELOW");
    char name[64], path[4096];
    if (!file || !below) return;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(name, path, sizeof path - 1);
    if (len <= 0) return;
    path[len] = '\0';
    if (!strstr(path, below)) return;
    while (access(file, F_OK) == 0) usleep(LOOK_US);
}

int fsync(int fd)
{
    wait_while(fd);
    return (int)syscall(SYS_fsync, fd);
}

ssize_t pread(int fd, void *bytes, size_t count, off_t at)
{
    wait_while(fd);
    return syscall(SYS_pread64, fd, bytes, count, at);
}

ssize_t pread64(int fd, void *bytes, size_t count, off64_t at)
{
    wait_while(fd);
    return syscall(SYS_pread64, fd, bytes, count, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    wait_while(fd);
    return syscall(SYS_pwrite64, fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at)
{
    wait_while(fd);
    return syscall(SYS_pwrite64, fd, bytes, count, at);
}

int fdatasync(int fd)
{
    wait_while(fd);
    return (int)syscall(SYS_fdatasync, fd);
}
