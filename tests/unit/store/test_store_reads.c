/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading, as those see it who share it: lanes, turns, ends that come early, and the log meanwhile.
 * A gate keeps a reading thread busy until it is opened; an endless read would never end by itself.
 */
#include <semaphore.h>
#include <string.h>
#include <sys/stat.h>

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

struct read {
    struct job job;
    struct fixture *f;
    sem_t entered, open;
    int runs, done_order;
    enum err result;
};

static enum err quick_run(struct job *job, struct db *db)
{
    struct read *read = (struct read *)job;
    read->runs++;
    return put_rows(db, 0) < 0 ? ERR_IO : OK;
}

static enum err gate_run(struct job *job, struct db *db)
{
    struct read *read = (struct read *)job;
    enum err e = quick_run(job, db); /* from here on it holds one state of the database */
    sem_post(&read->entered);
    while (sem_wait(&read->open)) continue;
    return e;
}

static enum err endless_run(struct job *job, struct db *db)
{
    struct read *read = (struct read *)job;
    read->runs++;
    sem_post(&read->entered);
    return stmt_run(db_prepare(db, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n)"
                                   " SELECT count(*) FROM n"));
}

static void read_done(struct job *job, enum err e)
{
    struct read *read = (struct read *)job;
    read->result = e;
    read->done_order = ++read->f->done_count;
    if (--read->f->waiting == 0) loop_stop(read->f->loop);
}

static void read_send(struct read *read, struct fixture *f, enum read_lane lane, const char *who,
                      enum err (*run)(struct job *job, struct db *db))
{
    read->job = (struct job){.run = run,
                             .done = read_done,
                             .lane = lane,
                             .who = str_c(who),
                             .ms_max = read->job.ms_max,
                             .gone = read->job.gone};
    read->f = f;
    sem_init(&read->entered, 0, 0);
    sem_init(&read->open, 0, 0);
    f->waiting++;
    store_read(f->store, &read->job);
}

static void entered(struct read *read)
{
    while (sem_wait(&read->entered)) continue;
}

/* Run the loop until the others are done: so many still wait behind a gate. */
static void wait_but_for(struct fixture *f, size_t behind)
{
    f->waiting -= behind;
    fixture_wait(f);
    f->waiting += behind;
}

/* ---- ends that come early ---- */

static void a_deadline(void **state)
{
    struct fixture *f = *state;
    for (enum read_lane lane = 0; lane < READ_LANES; lane++) {
        struct read endless = {.job.ms_max = 20}, next = {0};
        read_send(&endless, f, lane, "a", endless_run);
        fixture_wait(f);
        assert_int_equal(endless.result, ERR_STORE_UNAVAILABLE);
        read_send(&next, f, lane, "a", quick_run);
        fixture_wait(f);
        assert_int_equal(next.result, OK);
    }
}

static void nobody_waits(void **state)
{
    struct fixture *f = *state;
    struct read endless = {0}, behind = {.job.gone = true}, next = {0};
    read_send(&endless, f, READ_WALK, "a", endless_run);
    entered(&endless);
    read_send(&behind, f, READ_WALK, "a", endless_run);
    read_send(&next, f, READ_WALK, "a", quick_run);
    atomic_store(&endless.job.gone, true);
    fixture_wait(f);
    assert_int_equal(endless.result, ERR_CANCELLED);
    assert_int_equal(behind.result, ERR_CANCELLED);
    assert_int_equal(behind.runs, 0);
    assert_int_equal(next.result, OK);
}

static size_t thread_count(void)
{
    struct stat task;
    assert_int_equal(stat("/proc/self/task", &task), 0);
    return task.st_nlink - 2; /* a folder for each */
}

/* A thread is started by the first job that needs it. */
static void threads_when_needed(void **state)
{
    struct fixture *f = *state;
    size_t before = thread_count();
    struct read quick[2] = {0}, pages[2] = {0}, walk = {0};
    for (size_t i = 0; i < COUNT(quick); i++) {
        read_send(&quick[i], f, READ_QUICK, "a", quick_run);
        fixture_wait(f);
        assert_int_equal(thread_count(), before + 1);
    }
    read_send(&pages[0], f, READ_PAGE, "a", gate_run);
    entered(&pages[0]);
    assert_int_equal(thread_count(), before + 2);
    read_send(&pages[1], f, READ_PAGE, "", gate_run); /* the thread of walks helps */
    entered(&pages[1]);
    assert_int_equal(thread_count(), before + 3);
    for (size_t i = 0; i < COUNT(pages); i++) sem_post(&pages[i].open);
    fixture_wait(f);
    read_send(&walk, f, READ_WALK, "a", quick_run);
    fixture_wait(f);
    assert_int_equal(walk.result, OK);
    assert_int_equal(thread_count(), before + 3);
}

static void closing(void **state)
{
    struct fixture *f = *state;
    struct read endless[READ_LANES] = {0}, behind = {0};
    /* Walks first: the thread of walks takes a page too while the other one is still starting. */
    static const enum read_lane order[READ_LANES] = {READ_WALK, READ_PAGE, READ_QUICK, READ_COPY};
    for (size_t i = 0; i < READ_LANES; i++) {
        enum read_lane lane = order[i];
        endless[lane].job.ms_max = 10 * 60 * 1000; /* only the end of the store ends it */
        read_send(&endless[lane], f, lane, "a", endless_run);
        entered(&endless[lane]);
    }
    read_send(&behind, f, READ_WALK, "b", quick_run);
    store_close(f->store);
    f->store = NULL;
    assert_int_equal(f->waiting, 0);
    for (enum read_lane lane = 0; lane < READ_LANES; lane++)
        assert_int_equal(endless[lane].result, ERR_SHUTTING_DOWN);
    assert_int_equal(behind.result, OK); /* what is short is finished */
}

/* ---- sharing ---- */

/* Whatever is held up, a faster lane goes on. */
static void no_lane_waits_for_a_slower_one(void **state)
{
    struct fixture *f = *state;
    static const enum read_lane slower[] = {READ_COPY, READ_WALK, READ_PAGE};
    struct read gates[COUNT(slower)] = {0};
    for (size_t i = 0; i < COUNT(slower); i++) {
        read_send(&gates[i], f, slower[i], "a", gate_run);
        entered(&gates[i]);
        struct read quick = {0}, page = {0};
        read_send(&quick, f, READ_QUICK, "", quick_run);
        if (slower[i] != READ_PAGE) read_send(&page, f, READ_PAGE, "a", quick_run);
        wait_but_for(f, i + 1);
        assert_int_equal(quick.result, OK);
        assert_int_equal(page.result, OK);
    }
    for (size_t i = 0; i < COUNT(slower); i++) sem_post(&gates[i].open);
    fixture_wait(f);
}

/* Six searches of one person: another's is the next, and pages of anybody do not wait at all. */
static void people_take_turns(void **state)
{
    struct fixture *f = *state;
    struct read gate = {0}, hers[6] = {0}, his = {0}, page = {0};
    read_send(&gate, f, READ_WALK, "a", gate_run);
    entered(&gate);
    for (size_t i = 0; i < COUNT(hers); i++) read_send(&hers[i], f, READ_WALK, "a", quick_run);
    read_send(&his, f, READ_WALK, "b", quick_run);
    read_send(&page, f, READ_PAGE, "b", quick_run);
    wait_but_for(f, 2 + COUNT(hers));
    assert_int_equal(page.done_order, 1);
    sem_post(&gate.open);
    fixture_wait(f);
    assert_int_equal(gate.done_order, 2);
    assert_int_equal(hers[0].done_order, 3);
    assert_int_equal(his.done_order, 4);
    for (size_t i = 1; i < COUNT(hers); i++) assert_int_equal(hers[i].done_order, 4 + (int)i);
}

/* Two pages are read at a time, also beside each other's people. */
static void two_pages_at_once(void **state)
{
    struct fixture *f = *state;
    struct read gates[2] = {0};
    for (size_t i = 0; i < COUNT(gates); i++) read_send(&gates[i], f, READ_PAGE, "a", gate_run);
    for (size_t i = 0; i < COUNT(gates); i++) entered(&gates[i]);
    for (size_t i = 0; i < COUNT(gates); i++) sem_post(&gates[i].open);
    fixture_wait(f);
}

static void a_share_of_the_line(void **state)
{
    struct fixture *f = *state;
    enum { N = STORE_READS_EACH_MAX + 1 };
    static struct read many[N];
    memset(many, 0, sizeof many);
    struct read gate = {0}, other = {0};
    read_send(&gate, f, READ_WALK, "a", gate_run);
    entered(&gate);
    for (size_t i = 0; i < N; i++) read_send(&many[i], f, READ_WALK, "a", quick_run);
    read_send(&other, f, READ_WALK, "b", quick_run);
    sem_post(&gate.open);
    fixture_wait(f);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(many[i].result, i < STORE_READS_EACH_MAX ? OK : ERR_RATE_LIMITED);
    assert_int_equal(other.result, OK);
}

/* ---- the log ---- */

static long log_bytes(struct fixture *f)
{
    struct stat file = {0};
    assert_int_equal(stat(path_in(f->folder, "fermata.db-wal"), &file), 0);
    return (long)file.st_size;
}

/* How often it has begun anew: the fourth number of its head. */
static uint32_t log_begins(struct fixture *f)
{
    unsigned char head[16];
    FILE *file = fopen(path_in(f->folder, "fermata.db-wal"), "r");
    assert_non_null(file);
    assert_int_equal(fread(head, 1, sizeof head, file), sizeof head);
    fclose(file);
    return (uint32_t)head[12] << 24 | (uint32_t)head[13] << 16 | (uint32_t)head[14] << 8 | head[15];
}

/* Walk follows walk, and much is written meanwhile: the log begins anew between two of them, though
 * nothing is written at that moment. */
static void walks_do_not_keep_the_log(void **state)
{
    struct fixture *f = *state;
    enum { N = 14, BYTES = 3 * 1000 * 1000 };
    struct read first = {0}, second = {0};
    static struct put puts[N + 1];
    read_send(&first, f, READ_WALK, "a", gate_run);
    entered(&first);
    read_send(&second, f, READ_WALK, "a", gate_run);
    for (int i = 0; i < N; i++) {
        puts[i] = put_make(f, i);
        puts[i].bytes = BYTES;
        put_send(&puts[i]);
        wait_but_for(f, 2);
        assert_int_equal(puts[i].result, OK);
    }
    assert_true(log_bytes(f) > STORE_WAL_PAGES_HIGH * 4096L);
    uint32_t before = log_begins(f);
    sem_post(&first.open);
    entered(&second);
    wait_but_for(f, 1);
    puts[N] = put_make(f, N);
    put_send(&puts[N]);
    wait_but_for(f, 1);
    assert_int_equal(puts[N].result, OK);
    assert_int_equal(log_begins(f), before + 1);
    sem_post(&second.open);
    fixture_wait(f);
    assert_int_equal(second.result, OK);
}

/* ---- readiness ---- */

struct limit {
    struct job job;
    const char *sql;
};

static enum err limit_run(struct job *job, struct db *db)
{
    return db_script(db, ((struct limit *)job)->sql);
}

static void limit_set(struct fixture *f, const char *sql)
{
    struct limit limit = {{.run = limit_run}, sql};
    assert_int_equal(store_run(f->store, &limit.job), OK);
}

static void on_look(void *arg)
{
    struct fixture *f = arg;
    loop_stop(f->loop);
}

/* A write finds no room; from then on the store is not ready, until it has found some by itself. */
static void full_until_there_is_room(void **state)
{
    struct fixture *f = *state;
    struct put put = put_make(f, 0);
    put.bytes = 200 * 1000;
    assert_int_equal(store_ready(f->store), OK);
    limit_set(f, "PRAGMA max_page_count=30");
    put_send(&put);
    fixture_wait(f);
    assert_int_equal(put.result, ERR_STORAGE_FULL);
    assert_int_equal(store_ready(f->store), ERR_STORAGE_FULL);
    limit_set(f, "PRAGMA max_page_count=1000000");
    struct timer *timer = timer_new(f->loop, on_look, f);
    while (store_ready(f->store)) { /* the loop's watchdog ends it otherwise */
        timer_start(timer, 10);
        loop_run(f->loop);
    }
    timer_free(timer);
}

int test_store_reads(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_STORE(a_deadline),
        WITH_STORE(nobody_waits),
        WITH_STORE(threads_when_needed),
        WITH_STORE(closing),
        WITH_STORE(no_lane_waits_for_a_slower_one),
        WITH_STORE(people_take_turns),
        WITH_STORE(two_pages_at_once),
        WITH_STORE(a_share_of_the_line),
        WITH_STORE(walks_do_not_keep_the_log),
        WITH_STORE(full_until_there_is_room),
    };
    return cmocka_run_group_tests_name("store/reads", tests, NULL, NULL);
}
