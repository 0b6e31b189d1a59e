/* SPDX-License-Identifier: Apache-2.0
 *
 * Walls of every kind that this machine has, looked at from inside by processes that raise them; and who
 * has come from us.
 */
#include "net/wall.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "net/loop.h"

/* folder/data/secret and folder/key are hidden, folder/near/note is not. */
struct place {
    char folder[64], data[80], secret[96], key[80], near[80], note[96];
};

static void put(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "text", 4), 4);
    close(fd);
}

static int setup(void **state)
{
    static struct place place;
    struct place *p = &place;
    snprintf(p->folder, sizeof p->folder, "/tmp/fermata-wall-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    snprintf(p->data, sizeof p->data, "%s/data", p->folder);
    snprintf(p->secret, sizeof p->secret, "%s/secret", p->data);
    snprintf(p->key, sizeof p->key, "%s/key", p->folder);
    snprintf(p->near, sizeof p->near, "%s/data2", p->folder);
    snprintf(p->note, sizeof p->note, "%s/note", p->near);
    assert_int_equal(mkdir(p->data, 0700), 0);
    assert_int_equal(mkdir(p->near, 0700), 0);
    put(p->secret), put(p->key), put(p->note);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    unlink(p->secret), unlink(p->key), unlink(p->note);
    rmdir(p->data), rmdir(p->near), rmdir(p->folder);
    return 0;
}

/* Bytes that can be read; -1: none, and it cannot be opened. */
static int readable(const char *path)
{
    char bytes[8];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return -1;
    int count = (int)read(fd, bytes, sizeof bytes);
    close(fd);
    return count;
}

static bool listed(const char *folder, const char *name)
{
    DIR *dir = opendir(folder);
    bool found = false;
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        found = found || strcmp(entry->d_name, name) == 0;
    if (dir) closedir(dir);
    return found;
}

/* What is wrong behind the wall; NULL: nothing. */
static const char *look(const struct place *p, enum wall_kind kind)
{
    bool wall = kind != WALL_NONE;
    char made[128], cwd[PATH_MAX] = "", memory[64];
    snprintf(made, sizeof made, "%s/made", p->near);
    snprintf(memory, sizeof memory, "/proc/%d/mem", (int)getppid());
    if ((readable(p->secret) == 4) == wall) return "the secret";
    if ((readable(p->key) == 4) == wall) return "the key";
    if (listed(p->data, "secret") == wall) return "the list";
    if (readable(p->note) != 4 || !listed(p->near, "note")) return "what is not hidden";
    int fd = open(made, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "x", 1) != 1) return "a new file";
    close(fd), unlink(made);
    if (!getcwd(cwd, sizeof cwd)) return "the working folder";
    if (wall && readable("secret") == 4) return "the secret by the working folder";
    fd = wall ? open(memory, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) return "our memory";
    return umount2(p->data, MNT_DETACH) == 0 ? "the cover can be taken away" : NULL;
}

static void keeps(const struct place *p, enum wall_kind kind)
{
    const str hidden[] = {str_c(p->data), str_c(p->key), STR_EMPTY, STR("/no/such/file")};
    struct wall *wall = wall_new(hidden, COUNT(hidden));
    wall_limit(wall, kind);
    if (wall_kind(wall) != kind) { /* the machine has none of this kind */
        wall_free(wall);
        print_message("%s: not here\n", wall_names[kind]);
        return;
    }
    int pipe_ends[2], status = 0;
    assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) { /* the folder that is hidden is the one we stand in */
        const char *wrong = chdir(p->data) ? "chdir" : NULL;
        int error = wrong ? 0 : wall_raise(wall, p->data);
        if (error) wrong = strerror(error);
        if (!wrong) wrong = look(p, kind);
        if (wrong && write(pipe_ends[1], wrong, strlen(wrong)) < 0) _exit(2);
        _exit(wrong != NULL);
    }
    char said[256] = "";
    close(pipe_ends[1]);
    assert_true(read(pipe_ends[0], said, sizeof said - 1) >= 0);
    close(pipe_ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status) fail_msg("%s: %s", wall_names[kind], said);
    assert_int_equal(readable(p->secret), 4); /* for us all is as it was */
    assert_true(listed(p->data, "secret"));
    wall_free(wall);
}

static void mount_namespace(void **state)
{
    keeps(*state, WALL_MOUNT);
}

static void landlock(void **state)
{
    keeps(*state, WALL_LANDLOCK);
}

static void no_wall(void **state)
{
    keeps(*state, WALL_NONE);
}

/* ---- who has come from us ---- */

static pid_t idle_child(void)
{
    pid_t pid = fork();
    if (pid == 0)
        for (;;) pause();
    assert_true(pid > 0);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void below(void **state)
{
    (void)state;
    pid_t child = idle_child();
    assert_true(wall_below_us(child));
    end(child);
    assert_true(wall_below_us(child)); /* gone: nobody can tell */
    assert_false(wall_below_us(getppid()));
    assert_false(wall_below_us(1));
    assert_false(wall_below_us(getpid()));
}

static void peers(void **state)
{
    (void)state;
    int ends[2], more[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_false(wall_peer_below_us(ends[0])); /* we ourselves */
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, more), 0);
    pid_t pid = fork();
    if (pid == 0) { /* a pair made here has our number; its end goes to the parent */
        int own[2];
        char byte = 0, room[CMSG_SPACE(sizeof(int))] = {0};
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, own)) _exit(1);
        struct iovec piece = {&byte, 1};
        struct msghdr message = {
            .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        *head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(head), &own[0], sizeof(int));
        if (sendmsg(more[1], &message, 0) < 0) _exit(1);
        for (;;) pause();
    }
    char byte, room[CMSG_SPACE(sizeof(int))];
    struct iovec piece = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    assert_int_equal(recvmsg(more[0], &message, MSG_CMSG_CLOEXEC), 1);
    int theirs;
    memcpy(&theirs, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof theirs);
    assert_true(wall_peer_below_us(theirs));
    end(pid);
    assert_true(wall_peer_below_us(theirs)); /* it said so and has gone */
    close(theirs), close(ends[0]), close(ends[1]), close(more[0]), close(more[1]);
}

struct world {
    struct loop *loop;
    pid_t orphan;
    bool gone;
};

static void look_again(void *arg)
{
    struct world *w = arg;
    w->gone = kill(w->orphan, 0) != 0 && errno == ESRCH;
    loop_stop(w->loop);
}

/* A grandchild whose parent has gone comes to us, also in a session of its own, and is reaped; a child that
 * somebody else waits for is left to them. */
static void orphans(void **state)
{
    (void)state;
    struct world w = {.loop = loop_new()};
    struct wall *wall = wall_new(NULL, 0);
    struct fault why;
    assert_int_equal(wall_adopt(wall, w.loop, &why), OK);
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        pid_t orphan = fork();
        if (orphan == 0) {
            setsid();
            for (;;) pause();
        }
        _exit(write(ends[1], &orphan, sizeof orphan) != sizeof orphan);
    }
    wall_child_add(wall, child);
    assert_int_equal(read(ends[0], &w.orphan, sizeof w.orphan), sizeof w.orphan);
    siginfo_t ended;
    assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
    assert_true(wall_below_us(w.orphan));
    kill(w.orphan, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child); /* still there */
    wall_child_remove(wall, child);
    struct timer *timer = timer_new(w.loop, look_again, &w);
    for (int tries = 0; tries < 600 && !w.gone; tries++) {
        timer_start(timer, 100);
        loop_run(w.loop);
    }
    assert_true(w.gone);
    close(ends[0]), close(ends[1]);
    timer_free(timer);
    loop_free(w.loop);
    wall_free(wall);
}

int test_wall(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(mount_namespace, setup, teardown),
        cmocka_unit_test_setup_teardown(landlock, setup, teardown),
        cmocka_unit_test_setup_teardown(no_wall, setup, teardown),
        cmocka_unit_test(below),
        cmocka_unit_test(peers),
        cmocka_unit_test(orphans),
    };
    return cmocka_run_group_tests_name("wall", tests, NULL, NULL);
}
