/* SPDX-License-Identifier: Apache-2.0
 *
 * Loaded before libc (LD_PRELOAD), it stands in front of every call that changes something outside
 * the process: it counts them over all threads, notes who made them, and kills the process before
 * one of them, or makes one fail.
 *
 *     FAULT_LOG=file         a line for each call: number, thread, name, stack; up to the fatal one
 *     FAULT_KILL=[name:]N    SIGKILL instead of the N-th call (of that name). Between two such calls
 *                            a process leaves nothing behind: these are all the moments to die at
 *     FAULT_KIND=text        SIGKILL instead of the first call with this name and stack
 *     FAULT_FAIL=name:N:E    the N-th call of that name fails with errno E
 *
 * A stack is a list of MODULE+OFFSET, innermost first: the same in every process of a build.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FRAMES_MAX = 40, LINE_MAX_BYTES = 8192, FRAMES_OURS = 4 };

/* The N-th call, of a name if there is one. */
struct target {
    char name[32];
    long at; /* 0: none */
    int error;
    atomic_long calls;
};

static atomic_long calls;
static atomic_bool dying;
static struct target killing, failing;
static const char *kind; /* name and stack */
static int log_fd = -1;

static void target_parse(struct target *target, const char *text)
{
    if (!text) return;
    if (sscanf(text, "%31[a-z0-9]:%ld:%d", target->name, &target->at, &target->error) >= 2) return;
    target->name[0] = '\0';
    target->at = strtol(text, NULL, 10);
}

__attribute__((constructor)) static void setup(void)
{
    const char *path = getenv("FAULT_LOG");
    void *frame;
    backtrace(&frame, 1); /* its first use loads a library */
    kind = getenv("FAULT_KIND");
    target_parse(&killing, getenv("FAULT_KILL"));
    target_parse(&failing, getenv("FAULT_FAIL"));
    if (path)
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                              0600);
}

static bool reached(struct target *target, const char *name)
{
    if (!target->at || (target->name[0] && strcmp(name, target->name) != 0)) return false;
    return atomic_fetch_add(&target->calls, 1) + 1 == target->at;
}

/* MODULE+OFFSET of each caller. */
__attribute__((noinline)) static size_t put_stack(char *line, size_t used)
{
    void *frames[FRAMES_MAX];
    int count = backtrace(frames, FRAMES_MAX);
    for (int i = FRAMES_OURS; i < count && used < LINE_MAX_BYTES - 300; i++) {
        Dl_info info;
        if (!dladdr(frames[i], &info) || !info.dli_fname) continue;
        const char *slash = strrchr(info.dli_fname, '/');
        used += (size_t)snprintf(line + used, LINE_MAX_BYTES - used, " %.200s+0x%zx",
                                 slash ? slash + 1 : info.dli_fname,
                                 (size_t)((char *)frames[i] - (char *)info.dli_fbase));
    }
    return used;
}

static void note(long n, const char *thread_and_kind, bool fatal)
{
    char line[LINE_MAX_BYTES + 32];
    int len = snprintf(line, sizeof line, "%s%ld %s\n", fatal ? "!" : "", n, thread_and_kind);
    syscall(SYS_write, log_fd, line, (size_t)len);
}

/* THREAD NAME STACK; returns where NAME begins. */
__attribute__((noinline)) static size_t describe(char *text, const char *name)
{
    char thread[32] = "?";
    pthread_getname_np(pthread_self(), thread, sizeof thread);
    size_t begin = (size_t)snprintf(text, LINE_MAX_BYTES, "%s ", thread);
    size_t used = begin + (size_t)snprintf(text + begin, LINE_MAX_BYTES - begin, "%s", name);
    text[put_stack(text, used)] = '\0';
    return begin;
}

/* True: the call has to fail, and errno is set. */
__attribute__((noinline)) static bool before(const char *name)
{
    int saved = errno;
    while (atomic_load(&dying)) pause(); /* nothing happens after the fatal call either */
    char text[LINE_MAX_BYTES] = "";
    size_t thread = 0;
    if (kind || log_fd >= 0) thread = describe(text, name);
    bool fatal = reached(&killing, name) || (kind && strcmp(text + thread, kind) == 0);
    if (fatal) atomic_store(&dying, true);
    long n = atomic_fetch_add(&calls, 1) + 1;
    if (log_fd >= 0) note(n, text, fatal);
    if (fatal) kill(getpid(), SIGKILL);
    errno = saved;
    if (!reached(&failing, name)) return false;
    errno = failing.error;
    return true;
}

/* name, result, parameters, arguments */
#define CALLS(X)                                                                              \
    X(write, ssize_t, (int fd, const void *p, size_t n), (fd, p, n))                          \
    X(pwrite, ssize_t, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))           \
    X(pwrite64, ssize_t, (int fd, const void *p, size_t n, off64_t at), (fd, p, n, at))       \
    X(writev, ssize_t, (int fd, const struct iovec *p, int n), (fd, p, n))                    \
    X(send, ssize_t, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags))         \
    X(sendmsg, ssize_t, (int fd, const struct msghdr *m, int flags), (fd, m, flags))          \
    X(shutdown, int, (int fd, int how), (fd, how))                                            \
    X(fsync, int, (int fd), (fd))                                                             \
    X(fdatasync, int, (int fd), (fd))                                                         \
    X(ftruncate, int, (int fd, off_t size), (fd, size))                                       \
    X(ftruncate64, int, (int fd, off64_t size), (fd, size))                                   \
    X(fchmod, int, (int fd, mode_t mode), (fd, mode))                                         \
    X(fchown, int, (int fd, uid_t user, gid_t group), (fd, user, group))                      \
    X(chmod, int, (const char *path, mode_t mode), (path, mode))                              \
    X(mkdir, int, (const char *path, mode_t mode), (path, mode))                              \
    X(mkdirat, int, (int at, const char *path, mode_t mode), (at, path, mode))                \
    X(futimens, int, (int fd, const struct timespec times[2]), (fd, times))                   \
    X(rename, int, (const char *from, const char *to), (from, to))                            \
    X(link, int, (const char *from, const char *to), (from, to))                              \
    X(linkat, int, (int from_at, const char *from, int to_at, const char *to, int flags),     \
      (from_at, from, to_at, to, flags))                                                      \
    X(renameat, int, (int from_at, const char *from, int to_at, const char *to),              \
      (from_at, from, to_at, to))                                                             \
    X(sendto, ssize_t,                                                                        \
      (int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t len), \
      (fd, p, n, flags, to, len))                                                             \
    X(unlink, int, (const char *path), (path))                                                \
    X(unlinkat, int, (int at, const char *path, int flags), (at, path, flags))                \
    X(bind, int, (int fd, const struct sockaddr *address, socklen_t n), (fd, address, n))     \
    X(listen, int, (int fd, int backlog), (fd, backlog))                                      \
    X(accept4, int, (int fd, struct sockaddr *address, socklen_t *n, int flags),              \
      (fd, address, n, flags))

#define STAND_IN(name, type, parameters, arguments)                    \
    type name parameters                                               \
    {                                                                  \
        static type(*next) parameters;                                 \
        if (!next) next = (type(*) parameters)dlsym(RTLD_NEXT, #name); \
        return before(#name) ? -1 : next arguments;                    \
    }
CALLS(STAND_IN)
#undef STAND_IN

/* Opening changes something when it may create the file. */
#define STAND_IN_OPEN(name, parameters, arguments)                     \
    int name parameters                                                \
    {                                                                  \
        static int(*next) parameters;                                  \
        mode_t mode = 0;                                               \
        if (!next) next = (int(*) parameters)dlsym(RTLD_NEXT, #name);  \
        if (flags & O_CREAT) {                                         \
            va_list list;                                              \
            va_start(list, flags);                                     \
            mode = va_arg(list, mode_t);                               \
            va_end(list);                                              \
        }                                                              \
        return flags & O_CREAT && before(#name) ? -1 : next arguments; \
    }
STAND_IN_OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
STAND_IN_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
STAND_IN_OPEN(openat, (int at, const char *path, int flags, ...), (at, path, flags, mode))
STAND_IN_OPEN(openat64, (int at, const char *path, int flags, ...), (at, path, flags, mode))
