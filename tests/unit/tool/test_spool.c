/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/limits.h"
#include "check.h"
#include "net/loop.h"
#include "store/fixture.h"

enum { PATIENCE_MS = 20 * 1000 };

struct world {
    char folder[FOLDER_BYTES];
    struct loop *loop;
    struct timer *guard;
    struct spool *spool;
    int left; /* jobs that will tell their end */
    enum err err;
    char reason[sizeof((struct fault *)0)->text];
};

static void on_guard(void *arg)
{
    (void)arg;
    fail_msg("the loop waited too long");
}

static int setup(void **state)
{
    static struct world world;
    world = (struct world){.loop = loop_new()};
    folder_make(world.folder);
    world.guard = timer_new(world.loop, on_guard, NULL);
    struct fault fault = {0};
    if (spool_open(world.loop, world.folder, &world.spool, &fault))
        fail_msg("spool_open: %s", fault.text);
    *state = &world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    spool_close(world->spool);
    timer_free(world->guard);
    loop_free(world->loop);
    folder_remove(world->folder);
    return 0;
}

static void on_done(void *arg, enum err e, const struct fault *reason)
{
    struct world *world = arg;
    world->err = e;
    assert_int_equal(reason->err, e);
    snprintf(world->reason, sizeof world->reason, "%s", reason->text);
    if (--world->left == 0) loop_stop(world->loop);
}

static enum err wait_for(struct world *world)
{
    timer_start(world->guard, PATIENCE_MS);
    loop_run(world->loop);
    timer_stop(world->guard);
    assert_int_equal(world->left, 0);
    return world->err;
}

static enum err write_now(struct world *world, const char *name, str bytes)
{
    world->left = 1;
    spool_write(world->spool, str_c(name), bytes, on_done, world);
    assert_int_equal(world->left, 1); /* never from inside */
    return wait_for(world);
}

static enum err remove_now(struct world *world, const char *name)
{
    world->left = 1;
    spool_remove(world->spool, str_c(name), on_done, world);
    return wait_for(world);
}

static void expect_file(struct world *world, const char *name, str bytes)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str read = STR_EMPTY;
    assert_int_equal(spool_read(world->spool, &arena, str_c(name), &read, NULL), OK);
    assert_int_equal(read.len, bytes.len);
    assert_true(str_eq(read, bytes));
}

static void expect_none(struct world *world, const char *name)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str read = STR("untouched");
    assert_int_equal(spool_read(world->spool, &arena, str_c(name), &read, NULL), ERR_NOT_FOUND);
    assert_str(read, STR("untouched"));
}

/* Names in the spool folder, sorted: "a b ". */
static const char *listed(const struct world *world)
{
    static char names[400];
    struct dirent **entries = NULL;
    names[0] = '\0';
    int count = scandir(path_in(world->folder, "spool"), &entries, NULL, alphasort);
    assert_true(count >= 2);
    for (int i = 0; i < count; i++) {
        size_t len = strlen(names);
        if (strcmp(entries[i]->d_name, ".") && strcmp(entries[i]->d_name, ".."))
            snprintf(names + len, sizeof names - len, "%s ", entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return names;
}

static void there_and_back(void **state)
{
    struct world *world = *state;
    AUTO(buf_done) struct buf large;
    buf_init(&large, 16 << 20);
    while (large.len < 3 * CALL_INLINE_BYTES_MAX) buf_printf(&large, "%zu,会议 ", large.len);
    assert_int_equal(write_now(world, "call_1", buf_str(&large)), OK);
    assert_int_equal(write_now(world, "call_2", STR("a\0b")), OK);
    assert_int_equal(write_now(world, "call_3", STR_EMPTY), OK);
    expect_file(world, "call_1", buf_str(&large));
    expect_file(world, "call_2", STR("a\0b"));
    expect_file(world, "call_3", STR_EMPTY);
    assert_string_equal(listed(world), "call_1 call_2 call_3 ");

    struct stat st;
    assert_int_equal(stat(path_in(world->folder, "spool/call_1"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(stat(path_in(world->folder, "spool"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);

    assert_int_equal(write_now(world, "call_2", STR("new")), OK);
    expect_file(world, "call_2", STR("new"));
    assert_int_equal(remove_now(world, "call_2"), OK);
    assert_int_equal(remove_now(world, "call_2"), OK);
    expect_none(world, "call_2");
    assert_string_equal(listed(world), "call_1 call_3 ");
}

/* Many at a time, one of them without anybody waiting. */
static void at_the_same_time(void **state)
{
    struct world *world = *state;
    enum { FILES = 40 };
    char bytes[100];
    world->left = FILES;
    spool_write(world->spool, STR("alone"), STR("nobody waits"), NULL, NULL);
    for (int i = 0; i < FILES; i++) {
        char name[20];
        snprintf(name, sizeof name, "call_%d", i);
        snprintf(bytes, sizeof bytes, "what call %d brought", i);
        spool_write(world->spool, str_c(name), str_c(bytes), on_done, world);
        memset(bytes, 'x', sizeof bytes); /* copied */
    }
    assert_int_equal(wait_for(world), OK);
    for (int i = 0; i < FILES; i++) {
        char name[20];
        snprintf(name, sizeof name, "call_%d", i);
        snprintf(bytes, sizeof bytes, "what call %d brought", i);
        expect_file(world, name, str_c(bytes));
    }
    assert_int_equal(remove_now(world, "call_0"), OK);
    expect_file(world, "alone", STR("nobody waits"));
}

static void bad_names(void **state)
{
    struct world *world = *state;
    static const char *const names[] = {"", ".", "..", ".write-0", "a/b", "../a", "a b", "会"};
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_int_equal(write_now(world, names[i], STR("x")), ERR_INVALID_FIELD);
        assert_int_equal(remove_now(world, names[i]), ERR_INVALID_FIELD);
        expect_none(world, names[i]);
    }
    assert_string_equal(listed(world), "");
}

/* A limit on the size of files stands for a disk that is full: nothing is left behind, and what was
 * there stays. */
static void full_disk(void **state)
{
    struct world *world = *state;
    struct rlimit before, small;
    char *bytes = calloc(1, 100 * 1000);
    assert_non_null(bytes);
    assert_int_equal(write_now(world, "call_1", STR("old")), OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 50 * 1000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum err e = write_now(world, "call_1", (str){bytes, 100 * 1000});
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(e, ERR_STORAGE_FULL);
    assert_non_null(strstr(world->reason, "spool file call_1 cannot be written: "));
    assert_string_equal(listed(world), "call_1 ");
    expect_file(world, "call_1", STR("old"));
    assert_int_equal(write_now(world, "call_1", (str){bytes, 100 * 1000}), OK);
    free(bytes);
}

static void no_descriptors(void **state)
{
    struct world *world = *state;
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    world->left = 1;
    spool_write(world->spool, STR("call_1"), STR("x"), on_done, world);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(wait_for(world), ERR_IO);
    assert_non_null(strstr(world->reason, "spool file call_1 cannot be reached: "));
    expect_none(world, "call_1");
    assert_int_equal(write_now(world, "call_1", STR("x")), OK);
}

/* The folder is removed under our feet. */
static void no_folder(void **state)
{
    struct world *world = *state;
    assert_int_equal(rmdir(path_in(world->folder, "spool")), 0);
    assert_int_equal(write_now(world, "call_1", STR("x")), ERR_IO);
    assert_non_null(strstr(world->reason, "spool file call_1 cannot be made: "));
    expect_none(world, "call_1");
}

static void not_a_file(void **state)
{
    struct world *world = *state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str read;
    assert_int_equal(symlink("/etc/passwd", path_in(world->folder, "spool/link")), 0);
    assert_int_equal(spool_read(world->spool, &arena, STR("link"), &read, NULL), ERR_IO);
    assert_int_equal(write_now(world, "link", STR("ours")), OK); /* replaces the link itself */
    expect_file(world, "link", STR("ours"));

    assert_int_equal(write_now(world, "sparse", STR("x")), OK);
    assert_int_equal(truncate(path_in(world->folder, "spool/sparse"), TOOL_RESULT_BYTES_MAX), 0);
    assert_int_equal(spool_read(world->spool, &arena, STR("sparse"), &read, NULL), OK);
    assert_int_equal(truncate(path_in(world->folder, "spool/sparse"), TOOL_RESULT_BYTES_MAX + 1),
                     0);
    assert_int_equal(spool_read(world->spool, &arena, STR("sparse"), &read, NULL), ERR_TOO_LARGE);
    assert_int_equal(mkdir(path_in(world->folder, "spool/folder"), 0700), 0);
    assert_int_equal(write_now(world, "folder", STR("x")), ERR_IO);
    assert_int_equal(remove_now(world, "folder"), ERR_IO);
    assert_string_equal(listed(world), "folder link sparse ");
}

/* ---- forgetting ---- */

static void forgetting(void **state)
{
    struct world *world = *state;
    struct spool_job *jobs[3];
    static const char *const names[] = {"call_1", "call_2", "call_3"};
    for (size_t i = 0; i < COUNT(jobs); i++)
        jobs[i] = spool_write(world->spool, str_c(names[i]), STR("x"), on_done, NULL);
    spool_forget(jobs[1]);
    spool_forget(jobs[0]);
    spool_forget(jobs[2]);
    assert_int_equal(write_now(world, "call_4", STR("x")), OK);
}

/* What is under way is finished, and nobody is told. */
static void closing(void **state)
{
    struct world *world = *state;
    static const char *const names[] = {"call_1", "call_2", "call_3"};
    for (size_t i = 0; i < COUNT(names); i++)
        spool_write(world->spool, str_c(names[i]), STR("x"), on_done, NULL);
    spool_close(world->spool);
    timer_free(world->guard);
    loop_free(world->loop);
    assert_string_equal(listed(world), "call_1 call_2 call_3 ");
    world->loop = loop_new();
    world->guard = timer_new(world->loop, on_guard, NULL);
    assert_int_equal(spool_open(world->loop, world->folder, &world->spool, NULL), OK);
}

/* ---- the start ---- */

static bool is_needed(void *arg, str name)
{
    ++*(int *)arg;
    return str_eq(name, STR("call_1")) || str_eq(name, STR("call_3"));
}

static void sweeping(void **state)
{
    struct world *world = *state;
    int asked = 0;
    size_t removed = 77;
    assert_int_equal(spool_sweep(world->spool, is_needed, &asked, &removed, NULL), OK);
    assert_int_equal(removed, 0);
    static const char *const names[] = {"call_1", "call_2", "call_3"};
    for (size_t i = 0; i < COUNT(names); i++)
        assert_int_equal(write_now(world, names[i], STR("x")), OK);
    static const char *const strays[] = {"spool/.write-7", "spool/with space"};
    for (size_t i = 0; i < COUNT(strays); i++) {
        int fd = open(path_in(world->folder, strays[i]), O_WRONLY | O_CREAT, 0600);
        assert_return_code(fd, errno);
        close(fd);
    }
    assert_int_equal(spool_sweep(world->spool, is_needed, &asked, &removed, NULL), OK);
    assert_int_equal(removed, 3);
    assert_int_equal(asked, 3); /* only for names that a call could have */
    assert_string_equal(listed(world), "call_1 call_3 ");

    assert_int_equal(mkdir(path_in(world->folder, "spool/folder"), 0700), 0);
    struct fault fault;
    removed = 77;
    assert_int_equal(spool_sweep(world->spool, is_needed, &asked, &removed, &fault), ERR_IO);
    assert_non_null(strstr(fault.text, "folder cannot be removed"));
    assert_int_equal(removed, 77);
}

static void opening(void **state)
{
    struct world *world = *state;
    struct spool *again = NULL;
    struct fault fault;
    char too_long[5000];
    memset(too_long, 'x', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    assert_int_equal(spool_open(world->loop, world->folder, &again, NULL), OK);
    spool_close(again);
    again = NULL;
    assert_int_equal(chmod(path_in(world->folder, "spool"), 0755), 0);
    assert_int_equal(spool_open(world->loop, world->folder, &again, &fault), ERR_CONFIG);
    assert_non_null(strstr(fault.text, "chmod 700"));
    assert_int_equal(chmod(path_in(world->folder, "spool"), 0700), 0);
    assert_int_equal(spool_open(world->loop, "/nonexistent", &again, &fault), ERR_IO);
    assert_int_equal(spool_open(world->loop, too_long, &again, &fault), ERR_CONFIG);
    assert_null(again);
    spool_close(NULL);
}

#define WITH_SPOOL(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int test_spool(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SPOOL(there_and_back), WITH_SPOOL(at_the_same_time), WITH_SPOOL(bad_names),
        WITH_SPOOL(full_disk),      WITH_SPOOL(no_descriptors),   WITH_SPOOL(no_folder),
        WITH_SPOOL(not_a_file),     WITH_SPOOL(forgetting),       WITH_SPOOL(closing),
        WITH_SPOOL(sweeping),       WITH_SPOOL(opening),
    };
    return cmocka_run_group_tests_name("tool/spool", tests, NULL, NULL);
}
