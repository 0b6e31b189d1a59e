/* SPDX-License-Identifier: Apache-2.0
 *
 * Child processes by fork and exec: their pipes and their end as watched descriptors, and that they
 * end with us.
 *
 *     child_new --fork--> STARTING --status pipe closed by exec--> RUNNING
 *         |                   |                                      |
 *         | no pipes,         | errno in the status pipe             | pidfd readable: reaped
 *         | no fork           v                                      v
 *         +-------------> ENDING <-----------------------------------+
 *                             | output read to its end, or DRAIN_MS over
 *                             v
 *                           ENDED: on_end
 *
 * Not libuv's spawn, because of what has to happen between fork and exec:
 *
 * - Its death with ours, and that of what it started in turn. The life pipe: we hold its writing end and
 *   never write; the reading end (descriptor 3 of the child) is set to send SIGKILL to the child's group
 *   when something happens to it, and the only thing that can happen is that we are gone. So no watchman
 *   process is needed. We keep the reading end open as well, so that a child that closes descriptor 3, or
 *   dies before us, does not untie the others. PR_SET_PDEATHSIG is only for kernels that refuse this: it
 *   kills the child alone, and while threads of ours still hold the pipe, so its own would live on.
 * - The wall (wall.c): it sees neither our data nor our memory. What fails there comes back as a negative
 *   errno, and nothing is executed.
 * - Signals are as a program expects them: we ignore SIGPIPE, which it would inherit.
 * - The limit of open files is the usual one: we raise ours to what the system allows, and programs
 *   that use select or close all descriptors one by one suffer from that.
 *
 * Between fork and exec only calls are made that are safe after fork in a process with threads; what
 * they need is made before.
 *
 * Invariants:
 * 1. `pid` is set from fork until waitpid, and only then signals are sent: the number is ours.
 * 2. A descriptor and its watch live and go together (struct end).
 * 3. Callers' code runs only between enter and leave; memory goes in leave or in child_free outside
 *    of them, once the process is reaped or was given up.
 */
#include "net/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "net/loop.h"
#include "net/wall.h"

enum { READ_BYTES = 64 * 1024, LIFE_FD = 3, STATUS_FD = 4, FREE_FD = 16 };

enum child_state { STARTING, RUNNING, ENDING, ENDED };

/* Our end of a pipe, or the pidfd. */
struct end {
    int fd; /* -1: closed */
    struct watch *watch;
};

struct child {
    struct loop *loop;
    const struct child_ops *ops;
    void *arg;
    enum child_state state;
    pid_t pid;
    struct wall *wall; /* NULL: none */
    struct end process, status, in, out[CHILD_STREAMS];
    int life; /* its number is the higher of the two, so it is closed first when we are gone */
    int life_read;
    struct buf input; /* the first input_done bytes have been written */
    size_t input_done;
    uint64_t taken;
    bool input_ends;  /* close it when nothing waits any more */
    bool hung_up;     /* on_hangup is due */
    bool told_hangup; /* or is not wanted: we end it ourselves */
    struct loop_defer later;
    struct timer *timer; /* the next step of ending it */
    msec patience;
    int next_signal; /* 0: none */
    unsigned busy;   /* callers' code runs */
    bool freed, given_up;
    char program[128]; /* for people */
    struct fault why;
    char bytes[READ_BYTES];
};

/* What the new process needs, made before the fork. */
struct child_plan {
    char **argv, **env;
    char **paths; /* to be tried in order; NULL at the end */
    int in, out, err, life, status;
    pid_t parent;
    struct rlimit files;
    const struct wall *wall;
    char *cwd; /* NULL: it has no name */
};

/* ---- descriptors ---- */

static void end_open(struct child *child, struct end *end, int fd,
                     void (*fn)(void *arg, int events), int events)
{
    end->fd = fd;
    end->watch = watch_new(child->loop, fd, fn, child);
    watch_set(end->watch, events);
}

static void end_close(struct end *end)
{
    if (end->fd < 0) return;
    watch_free(end->watch);
    close(end->fd);
    *end = (struct end){.fd = -1};
}

static void close_fd(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* ---- callers' code, and the end of the memory ---- */

static void release(struct child *child)
{
    if (!child->freed || child->busy || (child->pid && !child->given_up)) return;
    if (child->pid && child->wall) wall_child_remove(child->wall, child->pid);
    end_close(&child->process);
    loop_defer_cancel(child->loop, &child->later);
    timer_free(child->timer);
    buf_done(&child->input);
    free(child);
}

static void child_enter(struct child *child)
{
    child->busy++;
}

/* The child may be gone after this. */
static void child_leave(struct child *child)
{
    child->busy--;
    release(child);
}

/* ---- the end ---- */

static void send_signal(struct child *child, int signal)
{
    if (child->pid) kill(-child->pid, signal);
}

static void end_if_drained(struct child *child)
{
    if (child->state != ENDING || child->out[CHILD_OUT].fd >= 0 || child->out[CHILD_ERR].fd >= 0)
        return;
    child->state = ENDED;
    timer_stop(child->timer);
    if (!child->freed) child->ops->on_end(child->arg, &child->why);
}

static void close_pipes(struct child *child)
{
    end_close(&child->status);
    end_close(&child->in);
    end_close(&child->out[CHILD_OUT]);
    end_close(&child->out[CHILD_ERR]);
    close_fd(&child->life);
    close_fd(&child->life_read);
}

/* A step of child_stop, or the output of a dead child does not end because somebody outside of its
 * group holds the pipe. */
static void on_timer(void *arg)
{
    struct child *child = arg;
    child_enter(child);
    if (child->freed) {
        child->given_up = true; /* not even SIGKILL: it hangs in the kernel */
    } else if (child->state == ENDING) {
        close_pipes(child);
        end_if_drained(child);
    } else if (child->next_signal) {
        send_signal(child, child->next_signal);
        bool first = child->next_signal == SIGTERM;
        child->next_signal = first ? SIGKILL : 0;
        if (first) timer_start(child->timer, child->patience);
    }
    child_leave(child);
}

static void look_at_status(struct child *child);

static void on_process(void *arg, int events)
{
    (void)events;
    struct child *child = arg;
    child_enter(child);
    look_at_status(child);
    int status = 0;
    send_signal(child, SIGKILL); /* the rest of the group; the child itself is past it */
    pid_t ended = waitpid(child->pid, &status, WNOHANG);
    if (ended == child->pid || (ended < 0 && errno == ECHILD)) {
        if (child->wall) wall_child_remove(child->wall, child->pid);
        child->pid = 0;
        child->next_signal = 0;
        end_close(&child->process);
        end_close(&child->in);
        close_fd(&child->life);
        close_fd(&child->life_read);
        bool killed = WIFSIGNALED(status);
        if (!child->why.err) /* set if exec failed */
            fault(&child->why, ERR_IO, "%s %s %d", child->program,
                  killed ? "was killed by signal" : "ended with status",
                  killed ? WTERMSIG(status) : WEXITSTATUS(status));
        child->state = ENDING;
        if (!child->freed) timer_start(child->timer, CHILD_DRAIN_MS);
        end_if_drained(child);
    }
    child_leave(child);
}

/* ---- the beginning ---- */

static void explain_start(struct child *child, int error)
{
    if (error < 0) {
        fault(&child->why, ERR_IO, "%s cannot be started: no wall between it and our data: %s",
              child->program, strerror(-error));
        return;
    }
    const char *what = error == ENOENT    ? "no such program"
                       : error == EACCES  ? "it may not be executed"
                       : error == ENOEXEC ? "it is no program, and names no interpreter"
                                          : strerror(error);
    fault(&child->why, ERR_IO, "%s cannot be started: %s", child->program, what);
}

/* The status pipe closes when the program begins; before that it may bring an errno. */
static void look_at_status(struct child *child)
{
    int error = 0;
    if (child->status.fd < 0) return;
    ssize_t count = read(child->status.fd, &error, sizeof error);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    end_close(&child->status);
    if (count == sizeof error) {
        explain_start(child, error);
        return;
    }
    child->state = RUNNING;
    if (!child->freed) child->ops->on_start(child->arg);
}

static void on_status(void *arg, int events)
{
    (void)events;
    struct child *child = arg;
    child_enter(child);
    look_at_status(child);
    child_leave(child);
}

/* What could not be told from inside a function of ours. */
static void on_later(struct loop_defer *defer)
{
    struct child *child = CONTAINER(defer, struct child, later);
    child_enter(child);
    end_if_drained(child);
    if (child->hung_up && !child->told_hangup && child->state == RUNNING && !child->freed) {
        child->told_hangup = true;
        child->ops->on_hangup(child->arg);
    }
    child_leave(child);
}

static void hang_up(struct child *child)
{
    child->hung_up = true;
    loop_defer(child->loop, &child->later);
}

/* ---- output ---- */

static void read_some(struct child *child, enum child_stream stream)
{
    struct end *end = &child->out[stream];
    if (end->fd < 0) return;
    ssize_t count = read(end->fd, child->bytes, READ_BYTES);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count > 0) {
        look_at_status(child); /* it speaks, so it runs */
        if (!child->freed)
            child->ops->on_output(child->arg, stream, (str){child->bytes, (size_t)count});
        return;
    }
    end_close(end);
    if (stream == CHILD_OUT) hang_up(child);
    end_if_drained(child);
}

static void on_out(void *arg, int events)
{
    (void)events;
    struct child *child = arg;
    child_enter(child);
    read_some(child, CHILD_OUT);
    child_leave(child);
}

static void on_err(void *arg, int events)
{
    (void)events;
    struct child *child = arg;
    child_enter(child);
    read_some(child, CHILD_ERR);
    child_leave(child);
}

/* ---- input ---- */

/* Returns how much of it the pipe took; closes the input if it is broken. */
static size_t write_some(struct child *child, str bytes)
{
    if (!bytes.len || child->in.fd < 0) return 0;
    ssize_t count = write(child->in.fd, bytes.p, bytes.len);
    if (count >= 0) {
        child->taken += (uint64_t)count;
        return (size_t)count;
    }
    if (errno != EAGAIN && errno != EINTR) {
        end_close(&child->in);
        buf_done(&child->input);
        child->input_done = 0;
        hang_up(child);
    }
    return 0;
}

static void on_in(void *arg, int events)
{
    (void)events;
    struct child *child = arg;
    child_enter(child);
    child->input_done += write_some(child, str_drop(buf_str(&child->input), child->input_done));
    bool open = child->in.fd >= 0;
    if (open && child->input_done < child->input.len) {
        watch_set(child->in.watch, 2);
    } else if (open) {
        buf_done(&child->input); /* a long message is not kept in memory */
        child->input_done = 0;
        watch_set(child->in.watch, 0);
        if (child->input_ends) end_close(&child->in);
    }
    child_leave(child);
}

enum err child_write(struct child *child, str bytes)
{
    if (child->in.fd < 0 || child->input_ends) return ERR_CANCELLED;
    size_t waiting = child->input.len - child->input_done;
    if (bytes.len > child->input.max - waiting) return ERR_TOO_LARGE;
    if (!waiting) {
        bytes = str_drop(bytes, write_some(child, bytes));
        if (child->in.fd < 0) return OK; /* broken: on_hangup tells */
    }
    if (!bytes.len) return OK;
    if (child->input_done > waiting || child->input.len + bytes.len > child->input.max) {
        buf_drop(&child->input, child->input_done);
        child->input_done = 0;
    }
    buf_append(&child->input, bytes);
    watch_set(child->in.watch, 2);
    return OK;
}

uint64_t child_taken(const struct child *child)
{
    return child->taken;
}

int child_pid(const struct child *child)
{
    return child->pid;
}

/* ---- fork and exec ---- */

static char **c_strings(struct arena *arena, const str *texts, size_t count)
{
    char **list = arena_array(arena, count + 1, sizeof *list);
    for (size_t i = 0; i < count; i++) list[i] = arena_cstr(arena, texts[i]);
    return list;
}

/* Where the program may be: the name itself if it has a slash, else one place for each folder of the
 * child's PATH. An empty folder means the current one, and is left out: nobody means it. */
static char **program_paths(struct arena *arena, str name, char *const *env)
{
    str path = STR("/usr/local/bin:/usr/bin:/bin");
    for (size_t i = 0; env[i]; i++)
        if (strncmp(env[i], "PATH=", 5) == 0) path = str_c(env[i] + 5);
    size_t count = 2;
    for (size_t i = 0; i < path.len; i++) count += path.p[i] == ':';
    char **paths = arena_array(arena, count, sizeof *paths);
    if (str_find_char(name, '/') >= 0) {
        paths[0] = arena_cstr(arena, name);
        return paths;
    }
    size_t used = 0;
    while (path.p && name.len) {
        str folder = str_split(&path, ':');
        if (!folder.len) continue;
        str place = arena_printf(arena, "%.*s/%.*s", STR_ARG(folder), STR_ARG(name));
        paths[used++] = arena_cstr(arena, place);
    }
    return paths;
}

/* Tie the group to us: see the top. We may be gone already. */
static void tie_to_parent(const struct child_plan *plan)
{
    struct pollfd life = {.fd = LIFE_FD, .events = POLLIN};
    int flags = fcntl(LIFE_FD, F_GETFL);
    bool tied = fcntl(LIFE_FD, F_SETOWN, -getpid()) == 0 &&
                fcntl(LIFE_FD, F_SETSIG, SIGKILL) == 0 &&
                fcntl(LIFE_FD, F_SETFL, flags | O_ASYNC) == 0;
    if (!tied) prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (poll(&life, 1, 0) != 0 || getppid() != plan->parent) _exit(127);
}

static int exec_program(const struct child_plan *plan)
{
    int error = ENOENT;
    for (char **path = plan->paths; *path; path++) {
        execve(*path, plan->argv, plan->env);
        if (errno != ENOENT && errno != ENOTDIR && error != EACCES) error = errno;
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) break;
    }
    return error;
}

/* The new process. First out of the way of the numbers that are wanted, which are free if we were
 * started without them. */
static _Noreturn void become(const struct child_plan *plan)
{
    int from[] = {plan->in, plan->out, plan->err, plan->life, plan->status};
    setpgid(0, 0);
    for (int i = 0; i < (int)COUNT(from); i++) from[i] = fcntl(from[i], F_DUPFD, FREE_FD);
    for (int i = 0; i < (int)COUNT(from); i++)
        if (dup2(from[i], i) < 0) _exit(127);
    fcntl(STATUS_FD, F_SETFD, FD_CLOEXEC);
    syscall(SYS_close_range, STATUS_FD + 1, ~0U, 0); /* all of ours close by themselves as well */
    tie_to_parent(plan);

    for (int i = 1; i < NSIG; i++) signal(i, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setrlimit(RLIMIT_NOFILE, &plan->files);

    int error = plan->wall ? -wall_raise(plan->wall, plan->cwd) : 0;
    if (!error) error = exec_program(plan);
    ssize_t told = write(STATUS_FD, &error, sizeof error);
    _exit(told == sizeof error ? 127 : 126);
}

/* All signals wait meanwhile: a handler of ours must not run in the child. */
static pid_t fork_into(const struct child_plan *plan)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) become(plan);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return pid;
}

enum { PIPES = 5 }; /* in, out, err, life, status */

static void not_blocking(int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* The system has no room for it. */
static void fail_start(struct child *child, int pipes[PIPES][2], int error)
{
    for (int i = 0; i < PIPES; i++) {
        close_fd(&pipes[i][0]);
        close_fd(&pipes[i][1]);
    }
    explain_start(child, error);
    child->state = ENDING;
    loop_defer(child->loop, &child->later);
}

static void start(struct child *child, struct child_plan *plan)
{
    int pipes[PIPES][2];
    for (int i = 0; i < PIPES; i++) pipes[i][0] = pipes[i][1] = -1;
    for (int i = 0; i < PIPES; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) == 0) continue;
        fail_start(child, pipes, errno);
        return;
    }
    plan->in = pipes[0][0];
    plan->out = pipes[1][1];
    plan->err = pipes[2][1];
    plan->life = pipes[3][0];
    plan->status = pipes[4][1];
    plan->parent = getpid();
    getrlimit(RLIMIT_NOFILE, &plan->files);
    if (plan->files.rlim_cur > CHILD_FILES) plan->files.rlim_cur = CHILD_FILES;

    pid_t pid = fork_into(plan);
    if (pid < 0) {
        fail_start(child, pipes, errno);
        return;
    }
    setpgid(pid, pid); /* whoever comes first */
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) { /* a kernel before 5.3: we would never hear of its end */
        int error = errno;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        fail_start(child, pipes, error);
        return;
    }
    child->pid = pid;
    if (child->wall) wall_child_add(child->wall, pid);
    child->life_read = pipes[3][0];
    child->life = pipes[3][1];
    close(plan->in), close(plan->out), close(plan->err), close(plan->status);
    not_blocking(pipes[0][1]), not_blocking(pipes[1][0]), not_blocking(pipes[2][0]);
    not_blocking(pipes[4][0]);
    end_open(child, &child->process, pidfd, on_process, 1);
    end_open(child, &child->status, pipes[4][0], on_status, 1);
    end_open(child, &child->in, pipes[0][1], on_in, 0);
    end_open(child, &child->out[CHILD_OUT], pipes[1][0], on_out, 1);
    end_open(child, &child->out[CHILD_ERR], pipes[2][0], on_err, 1);
}

struct child *child_new(struct loop *loop, const struct child_options *options,
                        const struct child_ops *ops, void *arg)
{
    assert(options->command_count > 0);
    struct child *child = mem_new(sizeof *child);
    child->loop = loop;
    child->ops = ops;
    child->arg = arg;
    child->wall = options->wall;
    child->later.fn = on_later;
    child->timer = timer_new(loop, on_timer, child);
    child->process.fd = child->status.fd = child->in.fd = -1;
    child->life = child->life_read = -1;
    child->out[CHILD_OUT].fd = child->out[CHILD_ERR].fd = -1;
    buf_init(&child->input, options->input_bytes_max);
    str name = options->command[0];
    snprintf(child->program, sizeof child->program, "%.*s", STR_ARG(name));

    struct arena arena;
    arena_init(&arena);
    struct child_plan plan = {.argv = c_strings(&arena, options->command, options->command_count),
                              .env = c_strings(&arena, options->env, options->env_count)};
    plan.paths = program_paths(&arena, name, plan.env);
    plan.wall = child->wall;
    plan.cwd = child->wall ? getcwd(NULL, 0) : NULL;
    if (child->wall) wall_kind(child->wall); /* which one: found out before the fork */
    start(child, &plan);
    free(plan.cwd);
    arena_done(&arena);
    return child;
}

/* ---- ending it ---- */

void child_stop(struct child *child, msec patience)
{
    if (patience <= 0) send_signal(child, SIGKILL); /* before it can notice anything */
    child->told_hangup = true;
    child->input_ends = true;
    if (child->in.fd >= 0 && child->input_done == child->input.len) end_close(&child->in);
    if (!child->pid || patience <= 0) return;
    child->patience = patience;
    child->next_signal = SIGTERM;
    timer_start(child->timer, patience);
}

/* The process has to be reaped yet; until then the child stays, without its owner. */
void child_free(struct child *child)
{
    if (!child) return;
    assert(!child->freed);
    child->freed = true;
    send_signal(child, SIGKILL);
    close_pipes(child);
    if (child->pid) timer_start(child->timer, CHILD_REAP_MS);
    release(child);
}
