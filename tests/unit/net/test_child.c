/* SPDX-License-Identifier: Apache-2.0
 *
 * Real children: how they end and are told, what they inherit, what reaches them, and that nothing of
 * them stays. Every wait is bounded by a guard timer.
 */
#include "net/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/limits.h"
#include "check.h"
#include "net/loop.h"

enum { GUARD_MS = 60 * 1000, OUTPUT_MAX = 8 * 1024 * 1024, ARGS_MAX = 4 };

enum moment { NEVER, AT_START, AT_OUTPUT, AT_HANGUP, AT_END };

struct world {
    struct loop *loop;
    struct timer *guard;
    struct child *child;
    struct buf out[CHILD_STREAMS];
    int starts, hangups, ends;
    bool late;
    enum moment stop_at, free_at, write_at;
    size_t lines; /* of output, then the loop stops */
    msec patience;
    char why[384];
};

static void pass(struct world *w, enum moment moment)
{
    if (w->stop_at == moment) child_stop(w->child, w->patience);
    if (w->write_at == moment && moment)
        assert_int_equal(child_write(w->child, STR("anybody there?\n")), OK);
    if (w->free_at != moment) return;
    child_free(w->child);
    w->child = NULL;
    loop_stop(w->loop);
}

static void on_start(void *arg)
{
    struct world *w = arg;
    w->starts++;
    assert_int_equal(w->out[CHILD_OUT].len + w->out[CHILD_ERR].len, 0);
    pass(w, AT_START);
}

static void on_output(void *arg, enum child_stream stream, str bytes)
{
    struct world *w = arg;
    assert_int_equal(w->starts, 1);
    assert_int_equal(w->ends, 0);
    assert_non_null(w->child);
    buf_append(&w->out[stream], bytes);
    for (size_t i = 0; i < bytes.len && w->lines; i++)
        if (bytes.p[i] == '\n' && --w->lines == 0) loop_stop(w->loop);
    pass(w, AT_OUTPUT);
}

static void on_hangup(void *arg)
{
    struct world *w = arg;
    w->hangups++;
    pass(w, AT_HANGUP);
}

static void on_end(void *arg, const struct fault *why)
{
    struct world *w = arg;
    w->ends++;
    assert_int_not_equal(why->err, OK);
    snprintf(w->why, sizeof w->why, "%s", why->text);
    pass(w, AT_END);
    loop_stop(w->loop);
}

static const struct child_ops ops = {on_start, on_output, on_hangup, on_end};

static void on_guard(void *arg)
{
    struct world *w = arg;
    w->late = true;
    loop_stop(w->loop);
}

static void world_init(struct world *w)
{
    *w = (struct world){.loop = loop_new(), .patience = 50};
    w->guard = timer_new(w->loop, on_guard, w);
    buf_init(&w->out[CHILD_OUT], OUTPUT_MAX);
    buf_init(&w->out[CHILD_ERR], OUTPUT_MAX);
}

static void spawn(struct world *w, const char *const args[ARGS_MAX], size_t input_bytes_max)
{
    static const str env[] = {{"PATH=/nowhere::/usr/bin:/bin", 28}, {"GREETING=good day", 17}};
    str command[ARGS_MAX];
    size_t count = 0;
    for (; count < ARGS_MAX && args[count]; count++) command[count] = str_c(args[count]);
    w->child = child_new(w->loop,
                         &(struct child_options){.command = command,
                                                 .command_count = count,
                                                 .env = env,
                                                 .env_count = COUNT(env),
                                                 .input_bytes_max = input_bytes_max},
                         &ops, w);
}

static void run(struct world *w)
{
    timer_start(w->guard, GUARD_MS);
    loop_run(w->loop);
    if (w->late) fail_msg("nothing happened for %d ms", GUARD_MS);
}

static void world_done(struct world *w)
{
    child_free(w->child);
    timer_free(w->guard);
    loop_free(w->loop);
    buf_done(&w->out[CHILD_OUT]);
    buf_done(&w->out[CHILD_ERR]);
}

static void sh(struct world *w, const char *script)
{
    spawn(w, (const char *const[ARGS_MAX]){"sh", "-c", script}, 1024);
}

/* Gone, or a zombie that its new parent has not looked at yet. */
static bool is_gone(int pid)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return true;
    ssize_t count = read(fd, line, sizeof line - 1);
    close(fd);
    const char *state = count > 0 ? strrchr(line, ')') : NULL;
    return !state || state[2] == 'Z' || state[2] == 'X';
}

static void await_gone(int pid)
{
    assert_true(pid > 1);
    for (int i = 0; i < GUARD_MS && !is_gone(pid); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
    if (!is_gone(pid)) fail_msg("process %d is still there", pid);
}

/* ---- how they end ---- */

static void ends_are_told_in_words(void **state)
{
    (void)state;
    char folder[] = "/tmp/fermata-child-XXXXXX", plain[64], script[64];
    assert_non_null(mkdtemp(folder));
    snprintf(plain, sizeof plain, "%s/plain", folder);
    snprintf(script, sizeof script, "%s/script", folder);
    for (int i = 0; i < 2; i++) {
        int fd = open(i ? script : plain, O_WRONLY | O_CREAT | O_CLOEXEC, i ? 0700 : 0600);
        assert_int_equal(write(fd, "not a program\n", 14), 14);
        close(fd);
    }
    const struct {
        const char *args[ARGS_MAX];
        int starts;
        const char *out, *err, *why;
    } rows[] = {
        {{"sh", "-c", "echo hi; echo oops >&2; exit 3"},
         1,
         "hi\n",
         "oops\n",
         "sh ended with status 3"},
        {{"true"}, 1, "", "", "true ended with status 0"},
        {{"/bin/sh", "-c", "printf half; kill -9 $$"},
         1,
         "half",
         "",
         "/bin/sh was killed by signal 9"},
        {{"sh", "-c", "kill -TERM $$"}, 1, "", "", "sh was killed by signal 15"},
        {{"sh", "-c", "printf %s \"$GREETING\""}, 1, "good day", "", "sh ended with status 0"},
        {{"no-such-program-here"},
         0,
         "",
         "",
         "no-such-program-here cannot be started: no such program"},
        {{"/nowhere/at/all"}, 0, "", "", "/nowhere/at/all cannot be started: no such program"},
        {{""}, 0, "", "", " cannot be started: no such program"},
        {{plain}, 0, "", "", "cannot be started: it may not be executed"},
        {{script}, 0, "", "", "cannot be started: it is no program"},
        {{folder}, 0, "", "", "cannot be started: it may not be executed"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world w;
        world_init(&w);
        spawn(&w, rows[i].args, 1024);
        run(&w);
        assert_int_equal(w.starts, rows[i].starts);
        assert_int_equal(w.ends, 1);
        assert_int_equal(child_pid(w.child), 0);
        assert_str(buf_str(&w.out[CHILD_OUT]), str_c(rows[i].out));
        assert_str(buf_str(&w.out[CHILD_ERR]), str_c(rows[i].err));
        if (!strstr(w.why, rows[i].why)) fail_msg("\"%s\" says not: %s", w.why, rows[i].why);
        world_done(&w);
    }
    unlink(plain), unlink(script), rmdir(folder);
}

static void output_of_a_dead_child_comes_whole(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    sh(&w, "head -c 1000000 /dev/zero; exit 7");
    run(&w);
    assert_int_equal(w.out[CHILD_OUT].len, 1000000);
    assert_string_equal(w.why, "sh ended with status 7");
    world_done(&w);
}

/* The number-th line of its output, as a process. */
static int pid_in(const struct world *w, int number)
{
    str rest = buf_str(&w->out[CHILD_OUT]), line = STR_EMPTY;
    for (int i = 0; i <= number; i++) line = str_split(&rest, '\n');
    uint64_t pid = 0;
    assert_int_equal(str_to_u64(line, &pid), OK);
    return (int)pid;
}

/* Somebody who left the group holds the pipe: its end is not waited for. */
static void a_pipe_that_others_hold_is_given_up(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    sh(&w, "setsid sh -c 'echo $$; exec sleep 60' & read x; exit 4");
    w.stop_at = AT_OUTPUT; /* closes its input, so read ends */
    w.patience = GUARD_MS;
    run(&w);
    assert_string_equal(w.why, "sh ended with status 4");
    kill(pid_in(&w, 0), SIGKILL);
    world_done(&w);
}

/* ---- what they inherit ---- */

static void run_sh(const char *script, struct buf *out)
{
    struct world w;
    world_init(&w);
    sh(&w, script);
    run(&w);
    assert_string_equal(w.why, "sh ended with status 0");
    buf_append(out, buf_str(&w.out[CHILD_OUT]));
    world_done(&w);
}

static void nothing_of_ours_is_inherited(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, OUTPUT_MAX);
    int open_fd = open("/dev/null", O_RDONLY); /* without O_CLOEXEC, on purpose */
    int high = fcntl(open_fd, F_DUPFD, 200);
    run_sh(
        "for f in /proc/self/fd/*; do f=${f##*/}; [ $f -lt 10 ] && echo $f; done;"
        "for f in 10 11 12 50 200; do [ -e /proc/$$/fd/$f ] && readlink /proc/$$/fd/$f; done; env",
        &out);
    close(open_fd), close(high);
    /* A shell keeps /proc/self/fd open while it lists it, at the first free number. */
    str text = buf_str(&out);
    assert_true(str_starts(text, STR("0\n1\n2\n3\n")));
    assert_true(str_find(text, STR("/dev/null")) < 0);
    assert_true(str_find(text, STR("GREETING=good day\n")) >= 0);
    assert_true(str_find(text, STR("HOME=")) < 0);
    buf_done(&out);
}

static void signals_and_limits_are_the_usual_ones(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, OUTPUT_MAX);
    sigset_t blocked, old;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, &old);
    run_sh(
        "grep -E '^Sig(Blk|Ign):' /proc/self/status | tr -d '\\t'; ulimit -Sn; ps -o pgid= -p $$ "
        "| tr -d ' '; echo $$",
        &out);
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, &old, &now);
    assert_true(sigismember(&now, SIGUSR1)); /* ours is as before */
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    str rest = buf_str(&out);
    assert_str(str_split(&rest, '\n'), STR("SigBlk:0000000000000000"));
    /* Signals 32 and 33 are the C library's own, and stay as whoever started us left them. */
    str ignored = str_drop(str_split(&rest, '\n'), strlen("SigIgn:"));
    assert_int_equal(strtoull(ignored.p, NULL, 16) & ~(3ULL << 31), 0);
    uint64_t soft = 0;
    assert_int_equal(str_to_u64(str_split(&rest, '\n'), &soft), OK);
    assert_int_equal(soft, files.rlim_cur < CHILD_FILES ? files.rlim_cur : CHILD_FILES);
    str group = str_split(&rest, '\n');
    assert_str(group, str_split(&rest, '\n'));
    buf_done(&out);
}

/* ---- input ---- */

static void input_comes_back_through_cat(void **state)
{
    (void)state;
    enum { BYTES = 3 * 1000 * 1000 };
    struct world w;
    world_init(&w);
    spawn(&w, (const char *const[ARGS_MAX]){"cat"}, BYTES);
    char *bytes = malloc(BYTES);
    for (int i = 0; i < BYTES; i++) bytes[i] = (char)('a' + i % 23);
    for (int i = 0; i < 3; i++)
        assert_int_equal(child_write(w.child, (str){bytes + i * (BYTES / 3), BYTES / 3}), OK);
    child_stop(w.child, GUARD_MS); /* closes behind what waits */
    assert_int_equal(child_write(w.child, STR("late")), ERR_CANCELLED);
    run(&w);
    assert_int_equal(child_taken(w.child), BYTES);
    assert_string_equal(w.why, "cat ended with status 0");
    assert_int_equal(w.out[CHILD_OUT].len, BYTES);
    assert_memory_equal(w.out[CHILD_OUT].p, bytes, BYTES);
    free(bytes);
    world_done(&w);
}

static void input_that_nobody_reads_is_bounded(void **state)
{
    (void)state;
    enum { ROOM = 10000 };
    struct world w;
    world_init(&w);
    spawn(&w, (const char *const[ARGS_MAX]){"sleep", "60"}, ROOM);
    char piece[1000] = "";
    uint64_t given = 0;
    while (!child_write(w.child, (str){piece, sizeof piece})) given += sizeof piece;
    assert_int_equal(child_write(w.child, (str){piece, sizeof piece}), ERR_TOO_LARGE);
    uint64_t waiting = given - child_taken(w.child);
    assert_true(waiting <= ROOM && waiting > ROOM - sizeof piece);
    size_t rest = ROOM - waiting;
    assert_int_equal(child_write(w.child, (str){piece, rest + 1}), ERR_TOO_LARGE);
    assert_int_equal(child_write(w.child, (str){piece, rest}), OK);
    w.stop_at = AT_START;
    run(&w);
    assert_string_equal(w.why, "sleep was killed by signal 15"); /* its input could not be closed */
    world_done(&w);
}

/* ---- ending them ---- */

static void each_is_ended_by_as_much_as_it_takes(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        msec patience;
        const char *why;
    } rows[] = {
        {"echo up; read x; exit 5", GUARD_MS, "sh ended with status 5"},
        {"trap 'exit 6' TERM; echo up; while :; do sleep 0.01; done", 2000,
         "sh ended with status 6"},
        {"echo up; exec sleep 60", 500, "sh was killed by signal 15"},
        {"trap '' TERM; echo up; exec sleep 60", 50, "sh was killed by signal 9"},
        {"echo up; read x", 0, "sh was killed by signal 9"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world w;
        world_init(&w);
        w.stop_at = AT_OUTPUT;
        w.patience = rows[i].patience;
        sh(&w, rows[i].script);
        run(&w);
        assert_string_equal(w.why, rows[i].why);
        assert_int_equal(w.hangups, 0);
        world_done(&w);
    }
}

/* As npx does: the server is a child of the child. */
static const char wrapper[] = "trap '' TERM; sh -c 'trap \"\" TERM HUP; echo $$; exec sleep 60' & "
                              "echo $$; wait; wait";

static void the_whole_group_ends(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "sh -c 'echo $$; exec sleep 60' & read x", /* ends at once, its child does not */
        wrapper,                                   /* takes SIGKILL */
    };
    for (size_t i = 0; i < COUNT(scripts); i++) {
        struct world w;
        world_init(&w);
        w.stop_at = AT_OUTPUT;
        sh(&w, scripts[i]);
        run(&w);
        await_gone(pid_in(&w, 0));
        world_done(&w);
    }
}

static void a_child_that_closes_its_output_is_told(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.stop_at = AT_HANGUP;
    sh(&w, "exec >&-; exec sleep 60");
    run(&w);
    assert_int_equal(w.hangups, 1);
    assert_string_equal(w.why, "sh was killed by signal 15");
    world_done(&w);
}

static void a_child_that_closes_its_input_is_told(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.stop_at = AT_HANGUP;
    w.write_at = AT_OUTPUT;
    sh(&w, "exec <&-; echo closed; exec sleep 60");
    run(&w);
    assert_int_equal(w.hangups, 1);
    assert_string_equal(w.why, "sh was killed by signal 15");
    world_done(&w);
}

static void it_may_be_freed_at_any_moment(void **state)
{
    (void)state;
    for (enum moment moment = NEVER; moment <= AT_END; moment++) {
        struct world w;
        world_init(&w);
        w.free_at = moment;
        sh(&w, "echo up; exec >&-; sleep 0.05");
        int pid = child_pid(w.child);
        if (moment == NEVER) {
            child_free(w.child); /* before it even runs */
            w.child = NULL;
        } else {
            run(&w);
        }
        assert_null(w.child);
        world_done(&w); /* waits until it is reaped: no zombie is left */
        errno = 0;
        assert_int_equal(kill(pid, 0), -1);
        assert_int_equal(errno, ESRCH);
    }
}

/* ---- and we? ---- */

/* In a process of its own: start the wrapper, tell its processes, then wait to be killed. */
static void live_and_tell(int told)
{
    struct world w;
    world_init(&w);
    w.lines = 2;
    sh(&w, wrapper);
    loop_run(w.loop);
    str out = buf_str(&w.out[CHILD_OUT]);
    if (write(told, out.p, out.len) != (ssize_t)out.len) _exit(1);
    for (;;) pause();
}

static void they_die_with_us(void **state)
{
    (void)state;
    int told[2];
    assert_int_equal(pipe2(told, O_CLOEXEC), 0);
    pid_t us = fork();
    if (us == 0) live_and_tell(told[1]);
    close(told[1]);
    char text[64] = "";
    size_t len = 0;
    while (strchr(text, '\n') == strrchr(text, '\n')) {
        ssize_t count = read(told[0], text + len, sizeof text - 1 - len);
        assert_true(count > 0);
        len += (size_t)count;
    }
    close(told[0]);
    kill(us, SIGKILL);
    assert_int_equal(waitpid(us, NULL, 0), us);
    str rest = {text, len};
    for (int i = 0; i < 2; i++) {
        uint64_t pid = 0;
        assert_int_equal(str_to_u64(str_split(&rest, '\n'), &pid), OK);
        await_gone((int)pid);
    }
}

static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void no_descriptor_is_left_open(void **state)
{
    (void)state;
    int before = open_descriptors();
    for (int i = 0; i < 20; i++) {
        struct world w;
        world_init(&w);
        spawn(&w, (const char *const[ARGS_MAX]){i % 2 ? "true" : "no-such-program"}, 10);
        run(&w);
        world_done(&w);
    }
    assert_int_equal(open_descriptors(), before);
}

int test_child(void)
{
    signal(SIGPIPE, SIG_IGN); /* as the server does */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_are_told_in_words),
        cmocka_unit_test(output_of_a_dead_child_comes_whole),
        cmocka_unit_test(a_pipe_that_others_hold_is_given_up),
        cmocka_unit_test(nothing_of_ours_is_inherited),
        cmocka_unit_test(signals_and_limits_are_the_usual_ones),
        cmocka_unit_test(input_comes_back_through_cat),
        cmocka_unit_test(input_that_nobody_reads_is_bounded),
        cmocka_unit_test(each_is_ended_by_as_much_as_it_takes),
        cmocka_unit_test(the_whole_group_ends),
        cmocka_unit_test(a_child_that_closes_its_output_is_told),
        cmocka_unit_test(a_child_that_closes_its_input_is_told),
        cmocka_unit_test(it_may_be_freed_at_any_moment),
        cmocka_unit_test(they_die_with_us),
        cmocka_unit_test(no_descriptor_is_left_open),
    };
    return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
