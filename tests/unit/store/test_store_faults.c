/* SPDX-License-Identifier: Apache-2.0
 *
 * The store on a disk that fails, and in a process that is killed.
 *
 * A child process runs a load and writes the number of each acknowledged job to a pipe. However it
 * ends, the parent then opens the database again and checks: it is sound, every acknowledged job
 * is there, and each job is there whole or not at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crypto.h"
#include "check.h"
#include "store/db/store.h"
#include "store/fault_vfs.h"
#include "store/fixture.h"

enum { JOBS_MAX = 20 * 1000, STEPS_MAX = 500 };

/* How a child ends that is not killed and does not give up: the load is through and the fault was
 * not reached; it was refused the store; the fault was reached and nobody minded. */
enum { CHILD_DONE = 0, CHILD_REFUSED = 3, CHILD_IGNORED = 4 };

struct load {
    int waves;
    int jobs; /* in each wave */
    size_t bytes;
    bool fresh; /* the fault is armed before the store is opened, on an empty folder */
};

struct plan {
    enum fault_kind kind;
    int calls;
    int at;
};

/* ---- the child ---- */

static enum err nothing_run(struct job *job, struct db *db)
{
    (void)job, (void)db;
    return OK;
}

/* The writing thread is done with its batch and what follows it (the checkpoint) when this
 * returns. */
static void writer_settle(struct store *store)
{
    struct job nothing = {.run = nothing_run};
    if (store_run(store, &nothing)) _exit(CHILD_IGNORED);
}

static _Noreturn void child_run(const char *folder, const struct load *load,
                                const struct plan *plan, int ack_fd)
{
    struct fixture f = {0};
    snprintf(f.folder, sizeof f.folder, "%s", folder);
    fault_vfs_install();
    if (load->fresh) {
        struct store *store = NULL;
        fault_vfs_arm(plan->kind, plan->calls, plan->at, true);
        if (store_open(folder, NULL, &store, NULL)) _exit(CHILD_REFUSED);
        store_close(store);
    }
    fixture_open(&f);
    if (!load->fresh) fault_vfs_arm(plan->kind, plan->calls, plan->at, true);
    struct put *puts = calloc((size_t)load->jobs, sizeof *puts);
    for (int wave = 0; wave < load->waves; wave++) {
        for (int i = 0; i < load->jobs; i++) {
            puts[i] = put_make(&f, wave * load->jobs + i);
            puts[i].bytes = load->bytes;
            puts[i].ack_fd = ack_fd;
            put_send(&puts[i]);
        }
        fixture_wait(&f);
    }
    writer_settle(f.store);
    bool reached = plan->kind != FAULT_NONE && fault_vfs_count() >= plan->at;
    _exit(reached ? CHILD_IGNORED : CHILD_DONE);
}

/* The line that the child says before it gives up is expected; keep it out of the test's output.
 */
static void quiet(void)
{
    int null = open("/dev/null", O_WRONLY);
    if (null >= 0) dup2(null, STDERR_FILENO);
}

/* ---- the parent ---- */

struct acks {
    int count;
    bool has[JOBS_MAX];
};

/* Read until the child's end is closed; after `kill_after` acknowledgements, kill it (0: never). */
static void acks_read(int fd, struct acks *acks, pid_t child, int kill_after)
{
    *acks = (struct acks){0};
    for (int number; acks->count < JOBS_MAX; acks->count++) {
        ssize_t n = read(fd, &number, sizeof number);
        if (n == 0) return;
        assert_int_equal(n, sizeof number);
        assert_true(number >= 0 && number < JOBS_MAX && !acks->has[number]);
        acks->has[number] = true;
        if (kill_after && acks->count + 1 == kill_after) assert_int_equal(kill(child, SIGKILL), 0);
    }
}

/* Start a child, follow it to its end; the status of waitpid. */
static int child_follow(const char *folder, const struct load *load, const struct plan *plan,
                        int kill_after, struct acks *acks)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(pipes[0]);
        quiet();
        child_run(folder, load, plan, pipes[1]);
    }
    close(pipes[1]);
    acks_read(pipes[0], acks, child, kill_after);
    close(pipes[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void database_check(const char *folder, const struct acks *acks, int jobs)
{
    struct store *store = NULL;
    struct fault fault = {0};
    enum err e = store_open(folder, NULL, &store, &fault); /* also migrates, if it came to that */
    if (e) fail_msg("reopening: %s", fault.text);
    store_close(store);

    struct db *db = NULL;
    assert_int_equal(db_open(path_in(folder, "fermata.db"), DB_WRITER, &db, NULL), OK);
    assert_true(db_sound(db));
    for (int i = 0; i < jobs; i++) {
        int rows = put_rows(db, i);
        if (rows != 2 && (rows != 0 || acks->has[i]))
            fail_msg("job %d: %d rows, acknowledged: %d", i, rows, acks->has[i]);
    }
    db_close(db);
}

static void folder_prepare(char folder[static FOLDER_BYTES], const struct load *load)
{
    folder_make(folder);
    if (load->fresh) return;
    struct store *store = NULL;
    assert_int_equal(store_open(folder, NULL, &store, NULL), OK);
    store_close(store);
}

/* One row: fail or kill at call 1, 2, 3, ... until the load gets through untouched. Of a long row
 * every `stride`-th call is taken, from a random one on; all of them where FERMATA_LONG is set. */
struct sweep {
    struct load load;
    enum fault_kind kind;
    int calls;
    int stride;
};

/* Killed, or out with code 70; only the start-up may refuse with an error instead. */
static bool ended_as_planned(const struct sweep *sweep, int status)
{
    if (sweep->kind == FAULT_KILL) return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (!WIFEXITED(status)) return false;
    int code = WEXITSTATUS(status);
    return code == STORE_EXIT_UNKNOWN || (sweep->load.fresh && code == CHILD_REFUSED);
}

static void sweep_run(const struct sweep *sweep)
{
    static struct acks acks;
    int stride = getenv("FERMATA_LONG") ? 1 : sweep->stride;
    unsigned char random;
    crypto_random(&random, sizeof random);
    int step = 1 + random % stride, jobs = sweep->load.waves * sweep->load.jobs;
    for (; step < STEPS_MAX; step += stride) {
        char folder[FOLDER_BYTES];
        folder_prepare(folder, &sweep->load);
        struct plan plan = {sweep->kind, sweep->calls, step};
        int status = child_follow(folder, &sweep->load, &plan, 0, &acks);
        database_check(folder, &acks, jobs);
        folder_remove(folder);
        if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_DONE) break;

        if (!ended_as_planned(sweep, status))
            fail_msg("step %d: the child ended with status %#x", step, status);
    }
    assert_int_equal(acks.count, jobs);
    assert_true(step > 3 && step < STEPS_MAX);
}

static const struct load small = {.waves = 5, .jobs = 4, .bytes = 100};
static const struct load large = {
    .waves = 3, .jobs = 40, .bytes = 20 * 1000}; /* ends in a checkpoint */
static const struct load fresh = {.waves = 1, .jobs = 2, .bytes = 100, .fresh = true};

static void io_error_on_write(void **state)
{
    (void)state;
    sweep_run(&(struct sweep){small, FAULT_IO, FAULT_WRITE, 1});
}

static void io_error_on_sync(void **state)
{
    (void)state;
    sweep_run(&(struct sweep){small, FAULT_IO, FAULT_SYNC, 1});
    sweep_run(&(struct sweep){large, FAULT_IO, FAULT_SYNC, 1});
}

static void killed_at_each_call(void **state)
{
    (void)state;
    sweep_run(&(struct sweep){small, FAULT_KILL, FAULT_WRITE | FAULT_SYNC | FAULT_CHANGE, 1});
    sweep_run(&(struct sweep){large, FAULT_KILL, FAULT_SYNC | FAULT_CHANGE, 3});
}

static void killed_while_created(void **state)
{
    (void)state;
    sweep_run(&(struct sweep){fresh, FAULT_KILL, FAULT_WRITE | FAULT_SYNC | FAULT_CHANGE, 13});
}

static void io_error_while_created(void **state)
{
    (void)state;
    sweep_run(&(struct sweep){fresh, FAULT_IO, FAULT_WRITE | FAULT_SYNC, 13});
}

/* kill -9 from outside, at whatever the child is doing after some acknowledgements. */
static void killed_at_random(void **state)
{
    (void)state;
    static struct acks acks;
    static const struct load endless = {.waves = 500, .jobs = 16, .bytes = 300};
    static const struct plan none = {FAULT_NONE, 0, 0};
    unsigned char random[12];
    crypto_random(random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++) {
        char folder[FOLDER_BYTES];
        folder_prepare(folder, &endless);
        int status = child_follow(folder, &endless, &none, 1 + random[i] * 4, &acks);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        database_check(folder, &acks, endless.waves * endless.jobs);
        folder_remove(folder);
    }
}

/* The disk is full from the N-th write on, for every N; then there is room again. The process goes
 * on through all of it. */
static void full_at_each_write(void **state)
{
    (void)state;
    fault_vfs_install();
    int step = 1;
    for (bool reached = true; reached && step < STEPS_MAX; step++) {
        struct fixture f;
        fixture_init(&f);
        struct put puts[12];
        fault_vfs_arm(FAULT_FULL, FAULT_WRITE, step, true);
        for (int i = 0; i < 12; i++) {
            puts[i] = put_make(&f, i);
            put_send(&puts[i]);
            if (i % 4 == 3) fixture_wait(&f);
        }
        reached = fault_vfs_count() >= step;
        fault_vfs_arm(FAULT_NONE, 0, 0, false);
        struct put after = put_make(&f, 100);
        put_send(&after);
        fixture_wait(&f);
        assert_int_equal(after.result, OK);
        fixture_close(&f);

        struct db *db = NULL;
        assert_int_equal(db_open(path_in(f.folder, "fermata.db"), DB_WRITER, &db, NULL), OK);
        assert_true(db_sound(db));
        for (int i = 0; i < 12; i++) {
            assert_true(puts[i].result == OK || puts[i].result == ERR_STORAGE_FULL);
            assert_int_equal(put_rows(db, i), puts[i].result ? 0 : 2);
        }
        assert_int_equal(puts[11].result, reached ? ERR_STORAGE_FULL : OK);
        db_close(db);
        folder_remove(f.folder);
    }
    assert_true(step > 5 && step < STEPS_MAX);
    fault_vfs_remove();
}

/* ---- a disk that is really full ---- */

enum { DISK_OK = 0, DISK_SKIP = 77 };

static void note(const char *folder, const char *name, size_t bytes)
{
    int fd = open(path_in(folder, name), O_WRONLY | O_CREAT, 0600);
    char *ballast = calloc(1, bytes);
    if (fd < 0 || write(fd, ballast, bytes) != (ssize_t)bytes) _exit(10);
    free(ballast);
    close(fd);
}

static bool can_mount(const char *folder)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", folder, "tmpfs", 0, "size=2m,mode=700") == 0;
}

/* In a child with a mount table of its own: fill 2 MiB, see 507 and reads that go on, make room,
 * and see it heal. The exit code tells which step failed. */
static _Noreturn void full_disk_child(const char *folder)
{
    if (!can_mount(folder)) _exit(DISK_SKIP);
    note(folder, "ballast", 512 * 1024);
    struct fixture f = {0};
    snprintf(f.folder, sizeof f.folder, "%s", folder);
    fixture_open(&f);
    struct put put = {0};
    int number = 0;
    for (; number < 1000 && !put.result; number++) {
        put = put_make(&f, number);
        put.bytes = 4000;
        put_send(&put);
        fixture_wait(&f);
    }
    if (put.result != ERR_STORAGE_FULL) _exit(11);
    int good = number - 1;

    struct db *reader = NULL;
    if (db_open(path_in(folder, "fermata.db"), DB_READER, &reader, NULL)) _exit(12);
    for (int i = 0; i < good; i++)
        if (put_rows(reader, i) != 2) _exit(13);
    db_close(reader);

    if (unlink(path_in(folder, "ballast"))) _exit(14);
    put = put_make(&f, number);
    put.bytes = 4000;
    put_send(&put);
    fixture_wait(&f);
    if (put.result) _exit(15);
    fixture_close(&f);

    struct db *db = NULL;
    if (db_open(path_in(folder, "fermata.db"), DB_WRITER, &db, NULL)) _exit(16);
    if (!db_sound(db) || put_rows(db, number) != 2 || put_rows(db, good) != 0) _exit(17);
    db_close(db);
    _exit(good > 10 ? DISK_OK : 18);
}

static void full_disk(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES];
    folder_make(folder);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) full_disk_child(folder);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    folder_remove(folder);
    if (WIFEXITED(status) && WEXITSTATUS(status) == DISK_SKIP) skip();
    assert_int_equal(status, 0);
}

int test_store_faults(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_at_each_write),     cmocka_unit_test(full_disk),
        cmocka_unit_test(io_error_on_write),      cmocka_unit_test(io_error_on_sync),
        cmocka_unit_test(io_error_while_created), cmocka_unit_test(killed_while_created),
        cmocka_unit_test(killed_at_each_call),    cmocka_unit_test(killed_at_random),
    };
    return cmocka_run_group_tests_name("store/faults", tests, NULL, NULL);
}
