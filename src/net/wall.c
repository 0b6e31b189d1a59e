/* SPDX-License-Identifier: Apache-2.0
 *
 * Walls around child processes: what they cannot see of the machine, and which of them came from
 * us. Means are tried from the best down, each by a process that raises the wall and looks whether
 * what should be hidden is. A wall that stood in the trial and cannot be raised later is a failure:
 * nothing is started without it then.
 *
 * What holds the wall:
 * 1. A mount namespace belongs to a user namespace; whoever has CAP_SYS_ADMIN there may take the cover
 *    away. Root gives that up, also for what it executes (the bounding set); others lose it with the
 *    exec, because they are not root in their user namespace. In a namespace made inside of this one the
 *    cover is locked.
 * 2. /proc/PID/root, cwd, fd, mem and environ of ours lead around it, and ask for the rights of a
 *    debugger: refused to who has fewer capabilities than we, is in a user namespace below ours, or in
 *    a Landlock domain that we are not in.
 * 3. The working folder is entered again by its name.
 *
 * Landlock has only permissions: those of all folders beside the way to what is hidden.
 *
 * From the fork on there are system calls and the stack, nothing else: other threads of ours may have
 * held any lock.
 */
#include "net/wall.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "net/loop.h"

const char *const wall_names[WALL_KINDS] = {"none", "Landlock", "mount namespace"};

struct wall {
    char **hidden; /* real paths */
    size_t count;
    enum wall_kind kind, most;
    bool tried;
    char uid_map[64], gid_map[64];
    pid_t *children; /* that others wait for */
    size_t child_count, child_room;
    bool adopting;
};

/* ---- what must not reach around it ---- */

/* Each of them sees or changes what lies outside of a process's own files: mounts, memory of others,
 * modules, disks, files without their path. */
static const int forbidden_caps[] = {CAP_SYS_ADMIN,       CAP_SYS_PTRACE,
                                     CAP_SYS_MODULE,      CAP_SYS_RAWIO,
                                     CAP_SYS_BOOT,        CAP_MKNOD,
                                     CAP_SETFCAP,         CAP_SYSLOG,
                                     CAP_MAC_ADMIN,       CAP_MAC_OVERRIDE,
                                     CAP_DAC_READ_SEARCH, 38 /* CAP_PERFMON */,
                                     39 /* CAP_BPF */,    40 /* CAP_CHECKPOINT_RESTORE */};

static int drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    if (syscall(SYS_capget, &head, sets)) return errno;
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); /* a kernel without has none */
    for (size_t i = 0; i < COUNT(forbidden_caps); i++) {
        int cap = forbidden_caps[i];
        unsigned word = (unsigned)cap / 32, bit = 1U << ((unsigned)cap % 32);
        bool held = sets[word].permitted & bit;
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) && errno != EINVAL && held) return errno;
        sets[word].effective &= ~bit;
        sets[word].permitted &= ~bit;
        sets[word].inheritable &= ~bit;
    }
    return syscall(SYS_capset, &head, sets) ? errno : 0;
}

/* ---- a mount namespace ---- */

static int write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return errno;
    ssize_t count = write(fd, text, strlen(text));
    int error = count < 0 ? errno : 0;
    close(fd);
    return error;
}

/* We are the same user inside, and no other one is known there. Our files of /proc belong to root while
 * we are not to be debugged; what is outside has no debugger's rights in the new namespace. */
static int enter_user_namespace(const struct wall *wall)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) return errno;
    prctl(PR_SET_DUMPABLE, 1);
    int error = write_file("/proc/self/uid_map", wall->uid_map);
    if (!error) error = write_file("/proc/self/setgroups", "deny");
    if (error == ENOENT) error = 0; /* a kernel before 3.19 */
    return error ? error : write_file("/proc/self/gid_map", wall->gid_map);
}

static int cover(const char *path)
{
    struct stat found;
    if (stat(path, &found)) return errno == ENOENT ? 0 : errno;
    if (!S_ISDIR(found.st_mode)) return mount("/dev/null", path, NULL, MS_BIND, NULL) ? errno : 0;
    unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY;
    return mount("none", path, "tmpfs", flags, "size=4k,nr_inodes=2,mode=555") ? errno : 0;
}

static int raise_mount(const struct wall *wall, const char *cwd)
{
    if (unshare(CLONE_NEWNS)) {
        int error = enter_user_namespace(wall);
        if (error) return error;
    }
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL)) return errno; /* ours stays as it is */
    for (size_t i = 0; i < wall->count; i++) {
        int error = cover(wall->hidden[i]);
        if (error) return error;
    }
    return cwd && chdir(cwd) == 0 ? 0 : chdir("/") ? errno : 0;
}

/* ---- Landlock ---- */

/* <linux/landlock.h> of the oldest system we build on does not know all of it. */
enum {
    LL_VERSION = 1,
    LL_PATH_BENEATH = 1,
    LL_WRITE_FILE = 1 << 1,
    LL_READ_FILE = 1 << 2,
    LL_OF_FOLDERS = 0x1ff8, /* listing, removing, making */
    LL_REFER = 1 << 13,     /* renaming into another folder; refused to all if not asked for */
    LL_TRUNCATE = 1 << 14,
};

struct ll_ruleset {
    uint64_t files;
};

struct __attribute__((packed)) ll_beneath {
    uint64_t allowed;
    int32_t parent;
};

struct folder_entry { /* struct linux_dirent64 */
    uint64_t inode;
    int64_t next;
    unsigned short length;
    unsigned char type;
    char name[];
};

static int allow(int ruleset, uint64_t rights, const char *path)
{
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat found;
    if (fd < 0) return 0; /* what we cannot see, it cannot */
    int error = fstat(fd, &found) ? errno : 0;
    bool link = !error && S_ISLNK(found.st_mode); /* where it leads to is asked for there */
    if (!error && !S_ISDIR(found.st_mode)) rights &= LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE;
    struct ll_beneath rule = {.allowed = rights, .parent = fd};
    if (!error && !link && syscall(SYS_landlock_add_rule, ruleset, LL_PATH_BENEATH, &rule, 0))
        error = errno == EBADFD ? 0 : errno; /* no file of a disk: nothing to be asked for */
    close(fd);
    return error;
}

enum wall_place { ELSEWHERE, ON_THE_WAY, HIDDEN };

static enum wall_place place_of(const struct wall *wall, const char *path)
{
    size_t len = strlen(path);
    enum wall_place place = ELSEWHERE;
    for (size_t i = 0; i < wall->count; i++) {
        if (strcmp(wall->hidden[i], path) == 0) return HIDDEN;
        if (strncmp(wall->hidden[i], path, len) == 0 && wall->hidden[i][len] == '/')
            place = ON_THE_WAY;
    }
    return place;
}

/* All that stands in a folder on the way, but what is hidden. `path` has room for PATH_MAX; its first
 * `len` bytes name the folder, "" for the root. */
static int allow_beside(const struct wall *wall, int ruleset, uint64_t rights, char *path,
                        size_t len)
{
    char entries[4096] __attribute__((aligned(8)));
    int folder = open(len ? path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = 0;
    if (folder < 0) return errno == EACCES ? 0 : errno;
    while (!error) {
        long bytes = syscall(SYS_getdents64, folder, entries, sizeof entries);
        if (bytes < 0) error = errno;
        if (bytes <= 0) break;
        for (long at = 0; at < bytes && !error;) {
            const struct folder_entry *entry = (const void *)(entries + at);
            at += entry->length;
            size_t size = strlen(entry->name);
            bool self = strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0;
            if (self || len + 1 + size >= PATH_MAX) continue;
            path[len] = '/';
            memcpy(path + len + 1, entry->name, size + 1);
            enum wall_place place = place_of(wall, path);
            if (place == ELSEWHERE) error = allow(ruleset, rights, path);
            if (place == ON_THE_WAY)
                error = allow_beside(wall, ruleset, rights, path, len + 1 + size);
            path[len] = '\0';
        }
    }
    close(folder);
    return error;
}

static int raise_landlock(const struct wall *wall)
{
    char path[PATH_MAX] = "";
    long version = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LL_VERSION);
    if (version < 1) return ENOSYS;
    uint64_t rights = LL_WRITE_FILE | LL_READ_FILE | LL_OF_FOLDERS;
    if (version >= 2) rights |= LL_REFER;
    if (version >= 3) rights |= LL_TRUNCATE;
    struct ll_ruleset rules = {rights};
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
    if (ruleset < 0) return errno;
    int error = allow_beside(wall, ruleset, rights, path, 0);
    if (!error && syscall(SYS_landlock_restrict_self, ruleset, 0)) error = errno;
    close(ruleset);
    return error;
}

/* ---- raising it ---- */

static int raise_kind(const struct wall *wall, enum wall_kind kind, const char *cwd)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return errno;
    int error = kind == WALL_MOUNT      ? raise_mount(wall, cwd)
                : kind == WALL_LANDLOCK ? raise_landlock(wall)
                                        : 0;
    return error ? error : drop_capabilities();
}

int wall_raise(const struct wall *wall, const char *cwd)
{
    return raise_kind(wall, wall->kind, cwd);
}

/* Before and behind the wall the same name must not lead to the same thing. */
static bool still_there(const char *path, const struct stat *before)
{
    struct stat now;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    bool same = fstat(fd, &now) || (now.st_dev == before->st_dev && now.st_ino == before->st_ino);
    close(fd);
    return same;
}

static _Noreturn void try_inside(const struct wall *wall, enum wall_kind kind)
{
    struct stat before[WALL_HIDDEN_MAX];
    for (size_t i = 0; i < wall->count; i++)
        if (stat(wall->hidden[i], &before[i])) _exit(1);
    bool open = raise_kind(wall, kind, "/") != 0;
    for (size_t i = 0; !open && i < wall->count; i++)
        open = still_there(wall->hidden[i], &before[i]);
    _exit(open);
}

static bool stands(const struct wall *wall, enum wall_kind kind)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) try_inside(wall, kind);
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return false;
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

enum wall_kind wall_kind(struct wall *wall)
{
    if (wall->tried) return wall->kind;
    wall->tried = true;
    wall->kind = wall->most;
    while (wall->kind != WALL_NONE && !stands(wall, wall->kind)) wall->kind--;
    return wall->kind;
}

void wall_limit(struct wall *wall, enum wall_kind most)
{
    wall->most = most;
    wall->tried = false;
}

struct wall *wall_new(const str *hidden, size_t count)
{
    struct wall *wall = mem_new(sizeof *wall);
    wall->hidden = mem_array(count + 1, sizeof *wall->hidden);
    wall->most = WALL_MOUNT;
    unsigned uid = geteuid(), gid = getegid();
    snprintf(wall->uid_map, sizeof wall->uid_map, "%u %u 1", uid, uid);
    snprintf(wall->gid_map, sizeof wall->gid_map, "%u %u 1", gid, gid);
    for (size_t i = 0; i < count; i++) {
        char name[PATH_MAX];
        assert(wall->count < WALL_HIDDEN_MAX);
        if (!hidden[i].len || hidden[i].len >= sizeof name) continue;
        snprintf(name, sizeof name, "%.*s", STR_ARG(hidden[i]));
        char *real = realpath(name, NULL);
        if (real) wall->hidden[wall->count++] = real;
    }
    return wall;
}

void wall_free(struct wall *wall)
{
    if (!wall) return;
    for (size_t i = 0; i < wall->count; i++) free(wall->hidden[i]);
    free(wall->hidden);
    free(wall->children);
    free(wall);
}

void wall_freep(struct wall **wall)
{
    wall_free(*wall);
}

/* ---- who has come from us ---- */

/* Processes that were given to us are reaped. A child that somebody waits for ends the look: it is reaped there, and
 * that looks again. */
static void wall_reap(struct wall *wall)
{
    while (wall->adopting) {
        siginfo_t ended = {0};
        if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) || !ended.si_pid) return;
        for (size_t i = 0; i < wall->child_count; i++)
            if (wall->children[i] == ended.si_pid) return;
        waitpid(ended.si_pid, NULL, WNOHANG);
    }
}

static void on_ended(void *arg, int signal)
{
    (void)signal;
    wall_reap(arg);
}

enum err wall_adopt(struct wall *wall, struct loop *loop, struct fault *reterr)
{
    if (wall->adopting) return OK;
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) || loop_signal(loop, SIGCHLD, on_ended, wall))
        return fault(reterr, ERR_IO, "cannot take on processes without parents: %s",
                     strerror(errno));
    wall->adopting = true;
    return OK;
}

void wall_child_add(struct wall *wall, pid_t pid)
{
    if (wall->child_count == wall->child_room) {
        wall->child_room = wall->child_room ? 2 * wall->child_room : 8;
        wall->children = reallocarray(wall->children, wall->child_room, sizeof wall->children[0]);
        if (!wall->children) abort();
    }
    wall->children[wall->child_count++] = pid;
}

void wall_child_remove(struct wall *wall, pid_t pid)
{
    for (size_t i = 0; i < wall->child_count; i++) {
        if (wall->children[i] != pid) continue;
        wall->children[i] = wall->children[--wall->child_count];
        break;
    }
    wall_reap(wall);
}

/* From "PID (name) S PPID ...": the name may hold anything, so the last parenthesis counts. Returns -1
 * if the process is gone. */
static pid_t parent_of(pid_t pid)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t count = read(fd, text, sizeof text - 1);
    close(fd);
    if (count <= 0) return -1;
    text[count] = '\0';
    const char *end = strrchr(text, ')');
    int parent = -1;
    return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : -1;
}

/* A process on the way up may end while we look; then its child has another parent: again from below. */
bool wall_below_us(pid_t pid)
{
    pid_t us = getpid(), at = pid;
    for (int steps = 0; steps < WALL_STEPS_MAX; steps++) {
        pid_t parent = parent_of(at);
        if (parent < 0 && at == pid) return true;
        if (parent == us) return true;
        if (parent == 0 || parent == 1 || at == us) return false;
        at = parent < 0 ? pid : parent;
    }
    return true; /* nobody has so many */
}

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* The number is that of who connected, and may be another's when that one is gone: a pidfd, where the
 * kernel has it, tells. Somebody with another user than ours is none of our children, which cannot
 * become anybody else, unless we are root. */
bool wall_peer_below_us(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len)) return true;
    if (peer.pid == 0 || peer.pid == getpid()) return false; /* 0: outside of our namespace */
    if (peer.uid != geteuid() && geteuid() != 0) return false;
    struct pollfd alive = {.fd = -1, .events = POLLIN};
    len = sizeof alive.fd;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &alive.fd, &len)) alive.fd = -1;
    bool below = wall_below_us(peer.pid);
    if (alive.fd < 0) return below;
    if (poll(&alive, 1, 0) != 0) below = true;
    close(alive.fd);
    return below;
}
