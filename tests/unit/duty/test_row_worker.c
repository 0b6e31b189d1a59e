/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker on numbers that wait in the table of settings: taken, done, ended; and a store that cannot.
 */
#include "duty/row_worker.h"

#include "check.h"
#include "net/loop.h"
#include "store/fixture.h"

enum { TIME = 1700000000 };

struct numbers {
    struct row_worker worker;
    struct fixture store;
    struct timer *tick;
    msec now;
    struct clock clock;
    int left;               /* rows that wait */
    msec at;                /* when the first of them is due */
    enum err take_e, end_e; /* the next job fails so */
    msec leave_in;          /* instead of an end; -1: not */
    int takes, works, ends, rests, ended, dues;
};

static enum err number_take(struct row_worker *worker, struct db *db)
{
    (void)db;
    struct numbers *s = CONTAINER(worker, struct numbers, worker);
    s->takes++;
    worker->none = !s->left || s->at > worker->now;
    if (s->left && worker->none) worker->at = s->at;
    return s->take_e;
}

static void number_work(struct row_worker *worker)
{
    struct numbers *s = CONTAINER(worker, struct numbers, worker);
    s->works++;
    if (s->leave_in >= 0)
        row_worker_leave(worker, s->leave_in);
    else
        row_worker_end(worker);
}

static enum err number_end(struct row_worker *worker, struct db *db)
{
    (void)db;
    struct numbers *s = CONTAINER(worker, struct numbers, worker);
    s->ends++;
    if (!s->end_e) s->left--;
    return s->end_e;
}

static void number_rest(struct row_worker *worker, bool ended)
{
    struct numbers *s = CONTAINER(worker, struct numbers, worker);
    s->rests++;
    s->ended += ended;
}

static void number_due(struct row_worker *worker)
{
    CONTAINER(worker, struct numbers, worker)->dues++;
}

/* As somebody has it who needs nothing else. */
static const struct row_worker_ops plain = {.take = number_take,
                                            .take_reads = true,
                                            .work = number_work,
                                            .end = number_end,
                                            .untaken = "test.untaken",
                                            .unended = "test.unended"};
/* Who says by themselves when it goes on. */
static const struct row_worker_ops steered = {.take = number_take,
                                              .work = number_work,
                                              .end = number_end,
                                              .rest = number_rest,
                                              .due = number_due,
                                              .untaken = "test.untaken",
                                              .unended = "test.unended"};

static void on_tick(void *arg)
{
    struct numbers *s = arg;
    timer_start(s->tick, 1);
    loop_stop(s->store.loop);
}

/* The fixture's watchdog ends a wait that does not. */
#define WAIT_FOR(condition) \
    while (!(condition)) loop_run(s->store.loop)

static msec numbers_now(void *ctx)
{
    return ((struct numbers *)ctx)->now;
}

static void numbers_init(struct numbers *s, const struct row_worker_ops *ops)
{
    *s = (struct numbers){.now = (msec)TIME * 1000, .leave_in = -1};
    fixture_init(&s->store);
    s->clock = (struct clock){.wall = numbers_now, .steady = numbers_now, .ctx = s};
    s->tick = timer_new(s->store.loop, on_tick, s);
    timer_start(s->tick, 1);
    s->worker = (struct row_worker){.ops = ops,
                                    .loop = s->store.loop,
                                    .store = s->store.store,
                                    .clock = &s->clock,
                                    .about = LOG_STR("rows", STR("numbers"))};
}

static void numbers_done(struct numbers *s)
{
    row_worker_stop(&s->worker);
    timer_free(s->tick);
    fixture_done(&s->store);
}

static void waits(void **state)
{
    (void)state;
    static const msec seconds[] = {1, 5, 30, 120, 600, 3600, 3600, 3600};
    static const msec brief[] = {1, 2, 5, 10, 30, 60, 60};
    for (uint32_t i = 0; i < COUNT(seconds); i++)
        assert_int_equal(backoff_ms(i + 1), seconds[i] * 1000);
    assert_int_equal(backoff_ms(0), 1000);
    assert_int_equal(backoff_ms(UINT32_MAX), 3600 * 1000);
    for (uint32_t i = 0; i < COUNT(brief); i++) {
        assert_int_equal(backoff_short_ms(i + 1, INT64_MAX), brief[i] * 1000);
        assert_int_equal(backoff_short_ms(i + 1, 10000), (brief[i] < 10 ? brief[i] : 10) * 1000);
    }
    assert_int_equal(backoff_short_ms(0, INT64_MAX), 1000);
    assert_int_equal(backoff_short_ms(UINT32_MAX, INT64_MAX), 60 * 1000);
}

/* One after the other until nothing is left; then it sleeps until somebody asks. */
static void all_of_them(void **state)
{
    (void)state;
    struct numbers scene, *s = &scene;
    numbers_init(s, &plain);
    s->left = 3;
    row_worker_go(&s->worker);
    WAIT_FOR(s->worker.state == ROW_IDLE);
    assert_int_equal(s->left, 0);
    assert_int_equal(s->works, 3);
    assert_int_equal(s->takes, 4);
    assert_null(s->worker.timer);
    numbers_done(s);
}

/* What is due later is taken then, without anybody asking. */
static void at_its_time(void **state)
{
    (void)state;
    struct numbers scene, *s = &scene;
    numbers_init(s, &plain);
    s->left = 1;
    s->at = s->now + 5;
    row_worker_go(&s->worker);
    WAIT_FOR(s->worker.state == ROW_IDLE);
    assert_int_equal(s->works, 0);
    assert_non_null(s->worker.timer);
    s->now += 5;
    WAIT_FOR(s->works == 1 && s->worker.state == ROW_IDLE);
    assert_int_equal(s->left, 0);
    numbers_done(s);
}

/* A take that fails is made again; an end that fails is, and nothing else is done before it. */
static void store_cannot(void **state)
{
    (void)state;
    struct numbers scene, *s = &scene;
    numbers_init(s, &steered);
    s->left = 2;
    s->take_e = ERR_STORAGE_FULL;
    row_worker_go(&s->worker);
    WAIT_FOR(s->rests == 1);
    assert_int_equal(s->ended, 0);
    assert_int_equal(s->works, 0);
    WAIT_FOR(s->dues == 1);
    s->take_e = OK;
    s->end_e = ERR_STORAGE_FULL;
    row_worker_go(&s->worker);
    WAIT_FOR(s->worker.state == ROW_ENDING && s->worker.timer);
    assert_int_equal(s->rests, 1);
    s->end_e = OK;
    WAIT_FOR(s->ended == 1);
    assert_int_equal(s->works, 1);
    assert_int_equal(s->left, 1);
    assert_int_equal(s->dues, 1);
    numbers_done(s);
}

/* What is left alone stays, and comes back after a while, or not by itself. */
static void left_alone(void **state)
{
    (void)state;
    struct numbers scene, *s = &scene;
    numbers_init(s, &steered);
    s->left = 1;
    s->leave_in = 0;
    row_worker_go(&s->worker);
    WAIT_FOR(s->rests == 1);
    assert_null(s->worker.timer);
    s->leave_in = 1;
    row_worker_go(&s->worker);
    WAIT_FOR(s->rests == 2);
    WAIT_FOR(s->dues == 1);
    assert_int_equal(s->ends, 0);
    assert_int_equal(s->ended, 0);
    assert_int_equal(s->left, 1);
    numbers_done(s);
}

/* A stop while a job is with the store: it ends there, and nobody is told. */
static void stopped(void **state)
{
    (void)state;
    struct numbers scene, *s = &scene;
    numbers_init(s, &steered);
    s->left = 1;
    row_worker_go(&s->worker);
    row_worker_stop(&s->worker);
    numbers_done(s);
    assert_int_equal(s->takes, 1);
    assert_int_equal(s->works + s->rests, 0);
}

int test_row_worker(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits),       cmocka_unit_test(all_of_them),
        cmocka_unit_test(at_its_time), cmocka_unit_test(store_cannot),
        cmocka_unit_test(left_alone),  cmocka_unit_test(stopped),
    };
    log_setup(LOG_ERROR, false); /* failing is what some of them do */
    int failed = cmocka_run_group_tests_name("row_worker", tests, NULL, NULL);
    log_setup(LOG_INFO, false);
    return failed;
}
