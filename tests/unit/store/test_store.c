/* SPDX-License-Identifier: Apache-2.0
 *
 * The store as its callers see it. A gate is a job that keeps a store thread busy until it is
 * opened, so that the jobs behind it surely meet in one batch.
 */
#include "store/db/store.h"

#include <dirent.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "check.h"
#include "net/loop.h"
#include "store/fixture.h"

static int setup(void **state)
{
    static struct fixture f;
    fixture_init(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture_done(*state);
    return 0;
}

struct gate {
    struct job job;
    struct fixture *f;
    sem_t entered, open;
};

static enum err gate_run(struct job *job, struct db *db)
{
    struct gate *gate = (struct gate *)job;
    (void)db;
    sem_post(&gate->entered);
    while (sem_wait(&gate->open)) continue;
    return OK;
}

static void gate_done(struct job *job, enum err e)
{
    struct gate *gate = (struct gate *)job;
    assert_int_equal(e, OK);
    if (--gate->f->waiting == 0) loop_stop(gate->f->loop);
}

static void gate_make(struct gate *gate, struct fixture *f)
{
    *gate = (struct gate){.job = {.run = gate_run, .done = gate_done}, .f = f};
    sem_init(&gate->entered, 0, 0);
    sem_init(&gate->open, 0, 0);
    f->waiting++;
}

/* The writing thread is inside the gate when this returns. */
static void gate_write(struct gate *gate, struct fixture *f)
{
    gate_make(gate, f);
    store_write(f->store, &gate->job);
    loop_settle(f->loop); /* the store is told at the end of a turn */
    while (sem_wait(&gate->entered)) continue;
}

/* Send the jobs so that they are one batch, and wait for all. */
static void as_one_batch(struct fixture *f, struct put *puts, size_t count)
{
    struct gate gate;
    gate_write(&gate, f);
    for (size_t i = 0; i < count; i++) put_send(&puts[i]);
    sem_post(&gate.open);
    fixture_wait(f);
}

/* A job of one SQL script, for store_run. */
struct script {
    struct job job;
    const char *sql;
};

static enum err script_run(struct job *job, struct db *db)
{
    return db_script(db, ((struct script *)job)->sql);
}

static void run_script(struct fixture *f, const char *sql)
{
    struct script script = {{.run = script_run}, sql};
    assert_int_equal(store_run(f->store, &script.job), OK);
}

/* How many rows the puts have together, seen by the command line's way in. */
struct count {
    struct job job;
    int numbers;
    int rows[16];
};

static enum err count_run(struct job *job, struct db *db)
{
    struct count *count = (struct count *)job;
    for (int i = 0; i < count->numbers; i++) count->rows[i] = put_rows(db, i);
    return OK;
}

static void assert_rows(struct fixture *f, const int *expected, int numbers)
{
    struct count count = {{.run = count_run}, .numbers = numbers};
    assert_int_equal(store_run(f->store, &count.job), OK);
    for (int i = 0; i < numbers; i++)
        if (count.rows[i] != expected[i])
            fail_msg("put %d has %d rows, expected %d", i, count.rows[i], expected[i]);
}

static void group_commit(void **state)
{
    struct fixture *f = *state;
    enum { N = 200 };
    static struct put puts[N];
    for (int i = 0; i < N; i++) puts[i] = put_make(f, i);
    struct store_stats before = store_stats(f->store);
    as_one_batch(f, puts, N);
    struct store_stats after = store_stats(f->store);
    assert_int_equal(after.commits - before.commits, 2); /* the gate's and theirs */
    assert_int_equal(after.jobs - before.jobs, N + 1);
    for (int i = 0; i < N; i++) {
        assert_int_equal(puts[i].result, OK);
        assert_int_equal(puts[i].runs, 1);
        assert_int_equal(puts[i].done_order, i + 1);
    }
}

static void batch_is_bounded(void **state)
{
    struct fixture *f = *state;
    enum { N = STORE_BATCH_JOBS_MAX + 1 };
    static struct put puts[N];
    for (int i = 0; i < N; i++) puts[i] = put_make(f, i);
    as_one_batch(f, puts, N);
    assert_int_equal(store_stats(f->store).commits, 3);
}

/* Four jobs in one batch; the second refuses after it has written, a statement of the third fails.
 * The batch is taken back at the second, and all run again, each in its savepoint. */
static void failing_neighbours(void **state)
{
    struct fixture *f = *state;
    struct put puts[4];
    for (int i = 0; i < 4; i++) puts[i] = put_make(f, i);
    puts[1].fail = ERR_ALREADY_RESOLVED;
    puts[2].break_statement = true;
    as_one_batch(f, puts, 4);
    static const enum err results[] = {OK, ERR_ALREADY_RESOLVED, ERR_BUSY, OK};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(puts[i].result, results[i]);
        assert_int_equal(puts[i].runs, i < 2 ? 2 : 1);
        assert_int_equal(puts[i].done_order, i + 1);
    }
    assert_rows(f, (int[]){2, 0, 0, 2}, 4);
    assert_int_equal(store_stats(f->store).commits, 3); /* gate, batch, assert_rows */
    assert_int_equal(store_stats(f->store).retries, 4);
}

/* A job that refuses before it has changed anything costs its neighbours nothing. */
static enum err refusing_run(struct job *job, struct db *db)
{
    struct put *put = (struct put *)job;
    put->runs++;
    enum err e = stmt_run(db_prepare(db, "UPDATE settings SET value='x' WHERE scope='nobody'"));
    return e ? e : ERR_NOT_FOUND;
}

static void refusing_neighbour(void **state)
{
    struct fixture *f = *state;
    struct put puts[3];
    for (int i = 0; i < 3; i++) puts[i] = put_make(f, i);
    puts[1].job.run = refusing_run;
    as_one_batch(f, puts, 3);
    static const enum err results[] = {OK, ERR_NOT_FOUND, OK};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(puts[i].result, results[i]);
        assert_int_equal(puts[i].runs, 1);
    }
    assert_rows(f, (int[]){2, 0, 2}, 3);
    assert_int_equal(store_stats(f->store).retries, 0);
}

/* One job does not fit: SQLite drops the whole batch, and the others get in nevertheless. */
static void full_in_a_batch(void **state)
{
    struct fixture *f = *state;
    run_script(f, "PRAGMA max_page_count=30");
    struct put puts[3];
    for (int i = 0; i < 3; i++) puts[i] = put_make(f, i);
    puts[1].bytes = 200 * 1000;
    as_one_batch(f, puts, 3);
    assert_int_equal(puts[0].result, OK);
    assert_int_equal(puts[1].result, ERR_STORAGE_FULL);
    assert_int_equal(puts[2].result, OK);
    assert_int_equal(puts[0].runs, 2);
    for (int i = 0; i < 3; i++) assert_int_equal(puts[i].done_order, i + 1);
    assert_rows(f, (int[]){2, 0, 2}, 3);
    assert_int_equal(store_stats(f->store).full, 1);
    assert_int_equal(store_stats(f->store).retries, 3);

    /* There is room again: no restart is needed. */
    run_script(f, "PRAGMA max_page_count=1000000");
    struct put again = put_make(f, 1);
    again.bytes = 200 * 1000;
    put_send(&again);
    fixture_wait(f);
    assert_int_equal(again.result, OK);
    assert_rows(f, (int[]){2, 2, 2}, 3);
}

/* A job that does not look at its errors: it must not slip out of its transaction. */
static enum err careless_run(struct job *job, struct db *db)
{
    struct put *put = (struct put *)job;
    put->runs++;
    enum err e = stmt_run(db_prepare(db, "INSERT INTO settings VALUES"
                                         " ('a', '0', CAST(zeroblob(200000) AS TEXT))"));
    if (!e) return ERR_INTERNAL; /* it should not have fitted */
    e = stmt_run(db_prepare(db, "INSERT INTO settings VALUES ('b', '0', 'x')"));
    return e ? OK : ERR_INTERNAL; /* the careless part */
}

static void careless_job(void **state)
{
    struct fixture *f = *state;
    run_script(f, "PRAGMA max_page_count=30");
    struct put puts[2] = {put_make(f, 0), put_make(f, 1)};
    puts[0].job.run = careless_run;
    as_one_batch(f, puts, 2);
    assert_int_equal(puts[0].result, ERR_STORAGE_FULL);
    assert_int_equal(puts[1].result, OK);
    assert_rows(f, (int[]){0, 2}, 2);
}

/* A check that SQLite makes at COMMIT: only the job that breaks it fails. */
static enum err orphan_run(struct job *job, struct db *db)
{
    ((struct put *)job)->runs++;
    return stmt_run(db_prepare(db, "INSERT INTO child VALUES ('nobody')"));
}

static void deferred_check(void **state)
{
    struct fixture *f = *state;
    run_script(f, "CREATE TABLE child (user TEXT REFERENCES users(name)"
                  " DEFERRABLE INITIALLY DEFERRED) STRICT");
    struct put puts[3];
    for (int i = 0; i < 3; i++) puts[i] = put_make(f, i);
    puts[1].job.run = orphan_run;
    as_one_batch(f, puts, 3);
    assert_int_equal(puts[0].result, OK);
    assert_int_equal(puts[1].result, ERR_INTERNAL);
    assert_int_equal(puts[2].result, OK);
    assert_rows(f, (int[]){2, 0, 2}, 3);
}

/* A job that returns in the middle of its rows. */
static enum err abandoned_run(struct job *job, struct db *db)
{
    ((struct put *)job)->runs++;
    struct stmt *s = db_prepare(db, "SELECT name FROM sqlite_schema");
    return stmt_step(s) ? ERR_NOT_FOUND : OK;
}

static void abandoned_statement(void **state)
{
    struct fixture *f = *state;
    struct put puts[3];
    for (int i = 0; i < 3; i++) puts[i] = put_make(f, i);
    puts[1].job.run = abandoned_run;
    as_one_batch(f, puts, 3);
    assert_int_equal(puts[1].result, ERR_NOT_FOUND);
    assert_rows(f, (int[]){2, 0, 2}, 3);
    assert_int_equal(store_stats(f->store).retries, 0);
}

struct look {
    struct job job;
    struct fixture *f;
    int rows;
    enum err result;
};

static enum err look_run(struct job *job, struct db *db)
{
    struct look *look = (struct look *)job;
    look->rows = put_rows(db, 0);
    return stmt_run(db_prepare(db, "INSERT INTO settings VALUES ('a', 'x', '')"));
}

static void look_done(struct job *job, enum err e)
{
    struct look *look = (struct look *)job;
    look->result = e;
    if (--look->f->waiting == 0) loop_stop(look->f->loop);
}

static void reads_see_what_is_done(void **state)
{
    struct fixture *f = *state;
    struct put put = put_make(f, 0);
    put_send(&put);
    fixture_wait(f);
    for (int i = 0; i < 20; i++) {
        struct look look = {.job = {.run = look_run, .done = look_done}, .f = f};
        f->waiting++;
        store_read(f->store, &look.job);
        fixture_wait(f);
        assert_int_equal(look.rows, 2);
        assert_int_not_equal(look.result, OK); /* a read cannot write */
    }
    assert_rows(f, (int[]){2}, 1);
}

/* Both readers and the writer are inside a job at the same moment. */
static void three_at_once(void **state)
{
    struct fixture *f = *state;
    struct gate gates[3];
    gate_write(&gates[0], f);
    for (int i = 1; i < 3; i++) {
        gate_make(&gates[i], f);
        store_read(f->store, &gates[i].job);
    }
    for (int i = 1; i < 3; i++)
        while (sem_wait(&gates[i].entered)) continue;
    for (int i = 0; i < 3; i++) sem_post(&gates[i].open);
    fixture_wait(f);
}

static size_t thread_count(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    while (readdir(dir)) count++;
    closedir(dir);
    return count;
}

static void command_line(void **state)
{
    (void)state;
    struct fixture f = {0};
    folder_make(f.folder);
    size_t threads = thread_count();
    assert_int_equal(store_open(f.folder, NULL, &f.store, NULL), OK);
    assert_int_equal(thread_count(), threads);
    struct put good = put_make(&f, 0), bad = put_make(&f, 1);
    bad.fail = ERR_NOT_FOUND;
    assert_int_equal(store_run(f.store, &good.job), OK);
    assert_int_equal(store_run(f.store, &bad.job), ERR_NOT_FOUND);
    assert_rows(&f, (int[]){2, 0}, 2);
    store_close(f.store);
    folder_remove(f.folder);
}

static void close_finishes(void **state)
{
    struct fixture *f = *state;
    enum { N = 300 };
    static struct put puts[N];
    for (int i = 0; i < N; i++) {
        puts[i] = put_make(f, i);
        put_send(&puts[i]);
    }
    struct look look = {.job = {.run = look_run, .done = look_done}, .f = f};
    f->waiting++;
    store_read(f->store, &look.job);
    store_close(f->store);
    assert_int_equal(f->waiting, 0);
    for (int i = 0; i < N; i++) {
        assert_int_equal(puts[i].result, OK);
        assert_int_equal(puts[i].done_order, i + 1);
    }
    assert_int_equal(store_open(f->folder, NULL, &f->store, NULL), OK);
    assert_rows(f, (int[]){2, 2, 2}, 3);
}

/* done() that asks for more while the store closes. */
struct insistent {
    struct put put;
    struct put more;
};

static void insistent_done(struct job *job, enum err e)
{
    struct insistent *insistent = (struct insistent *)job;
    assert_int_equal(e, OK);
    put_send(&insistent->more);
    insistent->put.f->waiting--;
}

static void close_refuses_more(void **state)
{
    struct fixture *f = *state;
    struct insistent insistent = {put_make(f, 0), put_make(f, 1)};
    insistent.put.job.done = insistent_done;
    put_send(&insistent.put);
    store_close(f->store);
    assert_int_equal(insistent.more.result, ERR_SHUTTING_DOWN);
    assert_int_equal(insistent.more.runs, 0);
    assert_int_equal(f->waiting, 0);
    f->store = NULL;
}

static enum err nothing_run(struct job *job, struct db *db)
{
    (void)job, (void)db;
    return OK;
}

static void queue_is_bounded(void **state)
{
    struct fixture *f = *state;
    enum { N = STORE_QUEUE_JOBS_MAX + 2 };
    struct put *puts = calloc(N, sizeof *puts);
    assert_non_null(puts);
    for (int i = 0; i < N; i++) {
        puts[i] = put_make(f, i);
        puts[i].job.run = nothing_run;
    }
    as_one_batch(f, puts, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(puts[i].result, i < STORE_QUEUE_JOBS_MAX ? OK : ERR_RATE_LIMITED);
    free(puts);
}

/* The log is copied into the database as it grows, so it stays small; also after jobs that left a
 * statement open, which would keep it from starting anew. */
static void log_stays_small(void **state)
{
    struct fixture *f = *state;
    struct put abandoned[2] = {put_make(f, 0), put_make(f, 0)};
    abandoned[0].job.run = abandoned[1].job.run = abandoned_run;
    as_one_batch(f, abandoned, 2);
    enum { N = 600, BYTES = 60 * 1000 };
    static struct put puts[N];
    for (int i = 0; i < N; i++) {
        puts[i] = put_make(f, i);
        puts[i].bytes = BYTES;
        put_send(&puts[i]);
        if (i % 10 == 9) fixture_wait(f);
    }
    FILE *file = fopen(path_in(f->folder, "fermata.db-wal"), "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    fclose(file);
    assert_true(size < 2 * STORE_WAL_PAGES * 4096L); /* they wrote 72 MB */
}

/* A gate that has read something, and so holds one state of the database. */
static enum err held_read(struct job *job, struct db *db)
{
    enum err e = put_rows(db, 0) < 0 ? ERR_IO : OK;
    enum err passed = gate_run(job, db);
    return e ? e : passed;
}

/* One long read keeps the log from starting anew. Whoever writes waits for it once, not with every
 * batch. */
static void long_read(void **state)
{
    struct fixture *f = *state;
    enum { LARGE = 16, BYTES = 3 * 1000 * 1000, SMALL = 40 };
    static struct put puts[LARGE + SMALL];
    struct gate gate;
    gate_make(&gate, f);
    gate.job.run = held_read;
    store_read(f->store, &gate.job);
    while (sem_wait(&gate.entered)) continue;
    f->waiting--;             /* the puts alone are waited for, until the gate is opened */
    msec fastest = INT64_MAX; /* once the log is past its high mark */
    for (int i = 0; i < LARGE + SMALL; i++) {
        msec began = clock_steady(&clock_system);
        puts[i] = put_make(f, i);
        if (i < LARGE) puts[i].bytes = BYTES;
        put_send(&puts[i]);
        fixture_wait(f);
        msec took = clock_steady(&clock_system) - began;
        if (i >= LARGE && took < fastest) fastest = took;
    }
    f->waiting++;
    sem_post(&gate.open);
    fixture_wait(f);
    for (int i = 0; i < LARGE + SMALL; i++) assert_int_equal(puts[i].result, OK);
    assert_true(fastest < STORE_BUSY_MS_MAX); /* a slow disk slows some, a wait slows all */
}

int test_store(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_STORE(group_commit),           WITH_STORE(batch_is_bounded),
        WITH_STORE(failing_neighbours),     WITH_STORE(refusing_neighbour),
        WITH_STORE(full_in_a_batch),        WITH_STORE(careless_job),
        WITH_STORE(deferred_check),         WITH_STORE(abandoned_statement),
        WITH_STORE(reads_see_what_is_done), WITH_STORE(three_at_once),
        cmocka_unit_test(command_line),     WITH_STORE(close_finishes),
        WITH_STORE(close_refuses_more),     WITH_STORE(queue_is_bounded),
        WITH_STORE(log_stays_small),        WITH_STORE(long_read),
    };
    return cmocka_run_group_tests_name("store/store", tests, NULL, NULL);
}
