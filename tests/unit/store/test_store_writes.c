/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing, as those see it who share it: turns, batches that several people are in, and the order of
 * results. A gate keeps the writing thread busy until it is opened.
 */
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

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

struct write {
    struct put put; /* first */
    int ran;        /* 1, 2, ... in the order of run(), of the last time */
    sem_t entered, open;
};

static int ran; /* by the writing thread; read when nothing is under way */

static enum err (*put_run)(struct job *job, struct db *db);

static enum err write_run(struct job *job, struct db *db)
{
    ((struct write *)job)->ran = ++ran;
    return put_run(job, db);
}

static enum err empty_run(struct job *job, struct db *db)
{
    (void)db;
    ((struct write *)job)->ran = ++ran;
    return OK;
}

static enum err gate_run(struct job *job, struct db *db)
{
    struct write *gate = (struct write *)job;
    sem_post(&gate->entered);
    while (sem_wait(&gate->open)) continue;
    return empty_run(job, db);
}

static void write_make(struct write *write, struct fixture *f, int number, str who)
{
    *write = (struct write){.put = put_make(f, number)};
    put_run = write->put.job.run;
    write->put.job.run = write_run;
    write->put.job.who = who;
}

static void gate_make(struct write *gate, struct fixture *f, str who)
{
    write_make(gate, f, -1, who);
    gate->put.job.run = gate_run;
    sem_init(&gate->entered, 0, 0);
    sem_init(&gate->open, 0, 0);
}

/* The writing thread is inside the gate when this returns. */
static void gate_enter(struct write *gate, struct fixture *f)
{
    loop_settle(f->loop); /* the store is told at the end of a turn */
    while (sem_wait(&gate->entered)) continue;
}

/* Give them while the writing thread is busy, so that they all wait; then wait for all. The gate, our
 * own, is done before any. */
static void give_together(struct fixture *f, struct write *writes, size_t count)
{
    struct write gate;
    gate_make(&gate, f, STR_EMPTY);
    put_send(&gate.put);
    gate_enter(&gate, f);
    ran = f->done_count = -1; /* the gate is none of them */
    for (size_t i = 0; i < count; i++) put_send(&writes[i].put);
    sem_post(&gate.open);
    fixture_wait(f);
    struct write **order = calloc(count, sizeof(struct write *));
    assert_non_null(order);
    for (size_t i = 0; i < count; i++) order[writes[i].put.done_order - 1] = &writes[i];
    for (size_t i = 1; i < count; i++) assert_true(order[i]->ran > order[i - 1]->ran);
    free(order);
}

/* Jobs are given as letters: one of "a", one of "b", '.' one of ours; in what order do they run? */
static void people_take_turns(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"aaaa", "aaaa"},
        {"aaaab", "abaaa"},
        {"aaabb.", "ab.aba"},
        {"....a", ".a..."}, /* our own do not go first: they too may be many */
        {"aabbccdd..eeffgghhiijjkk", "abcd.efghijkabcd.efghijk"},
    };
    int number = 0;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct write writes[32];
        char got[32] = "";
        size_t count = strlen(rows[i].in);
        for (size_t k = 0; k < count; k++) {
            bool ours = rows[i].in[k] == '.';
            write_make(&writes[k], f, number++, (str){rows[i].in + k, ours ? 0 : 1});
        }
        give_together(f, writes, count);
        int before[256] = {0};
        for (size_t k = 0; k < count; k++) {
            unsigned char name = (unsigned char)rows[i].in[k];
            int order = writes[k].put.done_order;
            assert_int_equal(writes[k].put.result, OK);
            assert_true(order > before[name]); /* one's own stay in order */
            before[name] = order;
            got[order - 1] = rows[i].in[k];
        }
        assert_string_equal(got, rows[i].out);
    }
}

/* Whoever has one job does not wait for a batch full of another's: the batch that they share is short.
 * The other has full ones behind it. */
static void a_shared_batch_is_short(void **state)
{
    struct fixture *f = *state;
    enum { N = 2 * STORE_BATCH_JOBS_MAX, SHARED = STORE_BATCH_SHARED_JOBS };
    static struct write writes[N];
    uint64_t before = store_stats(f->store).commits;
    for (int i = 0; i < N; i++) write_make(&writes[i], f, i, i == N - 1 ? STR("b") : STR("a"));
    give_together(f, writes, N);
    assert_int_equal(writes[N - 1].put.done_order, 2);
    /* The gate, SHARED and a last turn, and two full ones: the second has what is left. */
    assert_true(N - (SHARED + 1) <= 2 * STORE_BATCH_JOBS_MAX);
    assert_int_equal(store_stats(f->store).commits - before, 4);
}

/* Everybody who waits has a turn in a batch before it ends, and all who always have something waiting
 * share it evenly. */
static void nobody_starves(void **state)
{
    struct fixture *f = *state;
    enum { PEOPLE = 100, EACH = 3, MANY = 1000, N = MANY + PEOPLE * EACH };
    static struct write writes[N];
    static char names[PEOPLE][4];
    for (int i = 0; i < MANY; i++) {
        write_make(&writes[i], f, i, STR("ann"));
        writes[i].put.job.run = empty_run;
    }
    for (int i = 0; i < PEOPLE * EACH; i++) {
        struct write *write = &writes[MANY + i];
        snprintf(names[i % PEOPLE], sizeof names[0], "%d", i % PEOPLE);
        write_make(write, f, MANY + i, str_c(names[i % PEOPLE]));
        write->put.job.run = empty_run;
    }
    give_together(f, writes, N);
    for (int i = 0; i < PEOPLE * EACH; i++) {
        int turn = i / PEOPLE, person = i % PEOPLE;
        assert_int_equal(writes[MANY + i].put.done_order, turn * (PEOPLE + 1) + person + 2);
    }
}

/* A batch of one person is under way, and somebody else comes: they are in it, behind the few jobs that
 * it has taken already, and it ends with them. */
static void a_late_one_gets_in(void **state)
{
    struct fixture *f = *state;
    enum { N = STORE_BATCH_JOBS_MAX, AT = 2 * STORE_BATCH_SHARED_JOBS + 1 };
    static struct write writes[N];
    struct write late, behind;
    struct write *gate = &writes[AT];
    for (int i = 0; i < N; i++) write_make(&writes[i], f, i, STR("a"));
    gate_make(gate, f, STR("a"));
    write_make(&late, f, N, STR("b"));
    write_make(&behind, f, N + 1, STR("b"));
    uint64_t before = store_stats(f->store).commits;
    ran = f->done_count = 0;
    for (int i = 0; i < N; i++) put_send(&writes[i].put);
    gate_enter(gate, f);
    put_send(&late.put);
    put_send(&behind.put);
    sem_post(&gate->open);
    fixture_wait(f);
    assert_int_equal(late.put.result, OK);
    assert_int_equal(late.put.done_order, late.ran);
    /* Those that were taken with the gate, and one turn of the other. */
    assert_true(late.ran > AT && late.ran <= AT + STORE_BATCH_TAKE_JOBS + 1);
    assert_int_equal(behind.ran, late.ran + 2);
    assert_int_equal(store_stats(f->store).commits - before, 3); /* to them; shared; and the rest */
    for (int i = 1; i < N; i++)
        assert_true(writes[i].put.done_order > writes[i - 1].put.done_order);
}

/* One of many fails after it has written, another does not fit its neighbours: the batch runs again
 * with all that it has taken and goes on taking; nobody changes places. */
static void a_failing_one_in_a_shared_batch(void **state)
{
    struct fixture *f = *state;
    enum { N = 3 * STORE_BATCH_TAKE_JOBS };
    static struct write writes[N];
    for (int i = 0; i < N; i++) write_make(&writes[i], f, i, i % 3 ? STR("a") : STR("b"));
    writes[N / 2].put.fail = ERR_ALREADY_RESOLVED;
    writes[N - 2].put.break_statement = true;
    uint64_t before = store_stats(f->store).commits;
    give_together(f, writes, N);
    assert_int_equal(store_stats(f->store).commits - before, 2); /* the gate's and theirs */
    int last[2] = {0};
    for (int i = 0; i < N; i++) {
        struct put *put = &writes[i].put;
        assert_int_equal(put->result, i == N / 2   ? ERR_ALREADY_RESOLVED
                                      : i == N - 2 ? ERR_BUSY
                                                   : OK);
        assert_true(put->done_order > last[i % 3 > 0]);
        last[i % 3 > 0] = put->done_order;
    }
}

/* The line is as long as before, whoever stands in it. */
static void the_line_is_bounded(void **state)
{
    struct fixture *f = *state;
    enum { N = STORE_QUEUE_JOBS_MAX + 2 };
    struct write *writes = calloc(N, sizeof *writes);
    assert_non_null(writes);
    for (int i = 0; i < N; i++) {
        write_make(&writes[i], f, i, i % 4 ? STR("a") : STR("b"));
        writes[i].put.job.run = empty_run;
    }
    struct write gate;
    gate_make(&gate, f, STR_EMPTY);
    put_send(&gate.put);
    gate_enter(&gate, f);
    for (int i = 0; i < N; i++) put_send(&writes[i].put);
    sem_post(&gate.open);
    fixture_wait(f);
    for (int i = 0; i < N; i++)
        assert_int_equal(writes[i].put.result, i < STORE_QUEUE_JOBS_MAX ? OK : ERR_RATE_LIMITED);
    free(writes);
}

static void closing_finishes_everybodys(void **state)
{
    struct fixture *f = *state;
    enum { N = 300 };
    static struct write writes[N];
    static const str names[] = {STR("a"), STR("b"), STR_EMPTY};
    for (int i = 0; i < N; i++) {
        write_make(&writes[i], f, i, names[i % 7 % 3]);
        put_send(&writes[i].put);
    }
    store_close(f->store);
    f->store = NULL;
    assert_int_equal(f->waiting, 0);
    for (int i = 0; i < N; i++) assert_int_equal(writes[i].put.result, OK);
}

int test_store_writes(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_STORE(people_take_turns),
        WITH_STORE(a_shared_batch_is_short),
        WITH_STORE(nobody_starves),
        WITH_STORE(a_late_one_gets_in),
        WITH_STORE(a_failing_one_in_a_shared_batch),
        WITH_STORE(the_line_is_bounded),
        WITH_STORE(closing_finishes_everybodys),
    };
    return cmocka_run_group_tests_name("store/store_writes", tests, NULL, NULL);
}
