/* SPDX-License-Identifier: Apache-2.0
 *
 * The sweeper on a real store and a real folder, under a clock that the test moves.
 */
#include "duty/sweeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "check.h"
#include "net/loop.h"
#include "store/blob/blob.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"
#include "store/table/attachments.h"
#include "store/table/blob_rows.h"

enum { HOUR_MS = 60 * 60 * 1000 };

struct thread_at {
    struct fixture store;
    struct blobs *blobs;
    struct sweeper *sweeper;
    struct clock clock;
    msec ahead; /* of the system's clock */
    msec grace_ms;
    size_t rounds, troubles;
    struct sweep_round round; /* the last one */
    char trouble[600];
    size_t puts_left;
};

static msec clock_ahead(void *ctx)
{
    return clock_wall(&clock_system) + ((struct thread_at *)ctx)->ahead;
}

static int setup(void **state)
{
    static struct thread_at s;
    struct fault fault = {0};
    s = (struct thread_at){.ahead = 10 * 1000};
    fixture_init(&s.store);
    s.clock = (struct clock){.wall = clock_ahead, .steady = clock_ahead, .ctx = &s};
    if (blobs_open(s.store.loop, path_in(s.store.folder, "blobs"), &s.blobs, &fault))
        fail_msg("blobs_open: %s", fault.text);
    *state = &s;
    return 0;
}

static int teardown(void **state)
{
    struct thread_at *s = *state;
    if (s->sweeper) sweeper_stop(s->sweeper);
    store_close(s->store.store);
    s->store.store = NULL;
    sweeper_free(s->sweeper);
    blobs_close(s->blobs);
    fixture_done(&s->store);
    return 0;
}

/* ---- objects and rows ---- */

static const char *path_of(int number, const char *whose)
{
    static char path[BLOB_PATH_BYTES];
    unsigned char hash[HASH_BYTES];
    char bytes[20];
    snprintf(bytes, sizeof bytes, "object %d", number);
    crypto_sha256(str_c(bytes), hash);
    blob_path(hash, str_c(whose), path);
    return path;
}

static void on_put(void *arg, enum err e, const struct fault *reason)
{
    struct thread_at *s = arg;
    if (e) fail_msg("put: %s", reason->text);
    if (--s->puts_left == 0) loop_stop(s->store.loop);
}

static void put_all(struct thread_at *s, str bucket, int count, const char *whose)
{
    s->puts_left = (size_t)count;
    for (int i = 0; i < count; i++) {
        char bytes[20];
        snprintf(bytes, sizeof bytes, "object %d", i);
        blob_put(s->blobs, bucket, str_c(path_of(i, whose)), str_c(bytes), on_put, s);
    }
    loop_run(s->store.loop);
    assert_int_equal(s->puts_left, 0);
}

static bool there(struct thread_at *s, str bucket, const char *path)
{
    char file[FOLDER_BYTES + 300];
    snprintf(file, sizeof file, "%s/blobs/%.*s/%s", s->store.folder, STR_ARG(bucket), path);
    return access(file, F_OK) == 0;
}

/* Rows that name objects: every third of `count` in payloads. */
struct name_job {
    struct job job;
    int count;
};

static enum err name_run(struct job *job, struct db *db)
{
    struct name_job *name = (struct name_job *)(void *)job;
    int64_t thread = thread_made(db, "local", "t1", "title", 1000);
    for (int i = 0; i < name->count; i += 3) {
        struct blob_row row = {.thread = thread,
                               .bucket = BUCKET_PAYLOADS,
                               .path = str_c(path_of(i, "call_1")),
                               .message_id = STR("m1"),
                               .created = 1};
        enum err e = blob_row_add(db, &row);
        if (e) return e;
    }
    return OK;
}

struct attach_job {
    struct job job;
    const char *thread_id, *id;
    int number;
    msec created;
};

static enum err attach_run(struct job *job, struct db *db)
{
    const struct attach_job *attach = (struct attach_job *)(void *)job;
    struct attachment row = {.id = str_c(attach->id),
                             .owner = STR("local"),
                             .thread_id = str_c(attach->thread_id),
                             .mime = STR("text/plain"),
                             .sha256 = STR(""),
                             .bucket = BUCKET_ATTACHMENTS,
                             .path = str_c(path_of(attach->number, attach->id)),
                             .bytes = 8,
                             .created = attach->created};
    return attachment_add(db, &row);
}

struct find_job {
    struct job job;
    const char *id;
};

static enum err find_run(struct job *job, struct db *db)
{
    struct attachment row;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    return attachment_find(db, &arena, str_c(((struct find_job *)(void *)job)->id), &row);
}

static bool attached(struct thread_at *s, const char *id)
{
    struct find_job find = {.job.run = find_run, .id = id};
    enum err e = store_run(s->store.store, &find.job);
    assert_true(e == OK || e == ERR_NOT_FOUND);
    return e == OK;
}

/* ---- rounds ---- */

static void on_round(void *arg, const struct sweep_round *round)
{
    struct thread_at *s = arg;
    s->rounds++;
    s->round = *round;
    loop_stop(s->store.loop);
}

static void on_trouble(void *arg, const char *what, size_t count, const struct fault *reason)
{
    struct thread_at *s = arg;
    s->troubles++;
    snprintf(s->trouble, sizeof s->trouble, "%s (%zu): %s", what, count, reason->text);
}

static void start(struct thread_at *s, msec every_ms)
{
    s->sweeper = sweeper_new(&(struct sweeper_options){.loop = s->store.loop,
                                                       .store = s->store.store,
                                                       .blobs = s->blobs,
                                                       .clock = &s->clock,
                                                       .grace_ms = s->grace_ms,
                                                       .every_ms = every_ms,
                                                       .on_round = on_round,
                                                       .on_trouble = on_trouble,
                                                       .arg = s});
}

static void wait_round(struct thread_at *s)
{
    size_t before = s->rounds;
    while (s->rounds == before) loop_run(s->store.loop);
}

static void nothing_names_them(void **state)
{
    struct thread_at *s = *state;
    enum { OBJECTS = 2 * SWEEP_PAGE + 7 };
    put_all(s, BUCKET_PAYLOADS, OBJECTS, "call_1");
    struct name_job name = {.job.run = name_run, .count = OBJECTS};
    assert_int_equal(store_run(s->store.store, &name.job), OK);
    start(s, 1);
    wait_round(s);
    int kept = 0;
    for (int i = 0; i < OBJECTS; i++) {
        bool is_there = there(s, BUCKET_PAYLOADS, path_of(i, "call_1"));
        assert_int_equal(is_there, i % 3 == 0);
        kept += is_there;
    }
    assert_int_equal(s->round.looked, OBJECTS);
    assert_int_equal(s->round.removed, OBJECTS - kept);
    assert_int_equal(blobs_stats(s->blobs).swept, OBJECTS - kept);
    wait_round(s); /* by its timer; finds nothing more */
    assert_int_equal(s->round.looked, kept);
    assert_int_equal(s->round.removed, 0);
    assert_int_equal(s->troubles, 0);
}

static void grace_time(void **state)
{
    struct thread_at *s = *state;
    s->grace_ms = HOUR_MS;
    put_all(s, BUCKET_PAYLOADS, 3, "call_1");
    start(s, 1);
    wait_round(s);
    assert_int_equal(s->round.looked, 0);
    assert_true(there(s, BUCKET_PAYLOADS, path_of(0, "call_1")));
    s->ahead += HOUR_MS;
    wait_round(s);
    assert_int_equal(s->round.removed, 3);
    assert_false(there(s, BUCKET_PAYLOADS, path_of(0, "call_1")));
}

/* Old enough, and their thread does not exist. */
static void unused_attachments(void **state)
{
    struct thread_at *s = *state;
    msec now = clock_ahead(s);
    struct name_job name = {.job.run = name_run};
    assert_int_equal(store_run(s->store.store, &name.job), OK); /* thread t1 */
    static const struct {
        const char *id, *thread;
        msec age;
        bool stays;
    } rows[] = {
        {"att_used", "t1", SWEEP_UNUSED_MS + HOUR_MS, true},
        {"att_young", "t2", SWEEP_UNUSED_MS - HOUR_MS, true},
        {"att_unused", "t2", SWEEP_UNUSED_MS + HOUR_MS, false},
    };
    s->grace_ms = HOUR_MS;
    for (size_t i = 0; i < COUNT(rows); i++) {
        put_all(s, BUCKET_ATTACHMENTS, 1, rows[i].id);
        struct attach_job attach = {.job.run = attach_run,
                                    .thread_id = rows[i].thread,
                                    .id = rows[i].id,
                                    .created = now - rows[i].age};
        assert_int_equal(store_run(s->store.store, &attach.job), OK);
    }
    start(s, HOUR_MS);
    wait_round(s);
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(attached(s, rows[i].id), rows[i].stays);
        assert_int_equal(there(s, BUCKET_ATTACHMENTS, path_of(0, rows[i].id)), rows[i].stays);
    }
    assert_int_equal(s->round.attachments, 1);
    assert_int_equal(s->troubles, 0);
}

static enum err attach_many(struct job *job, struct db *db)
{
    struct attach_job *all = (struct attach_job *)(void *)job;
    for (int i = 0; i < all->number; i++) {
        char id[16];
        snprintf(id, sizeof id, "att_%d", i);
        struct attach_job one = {.thread_id = all->thread_id, .id = id, .created = all->created};
        enum err e = attach_run(&one.job, db);
        if (e) return e;
    }
    return OK;
}

/* A page that is full is not the last one. */
static void many_unused(void **state)
{
    struct thread_at *s = *state;
    enum { FILES = SWEEP_PAGE + 3 };
    msec now = clock_ahead(s);
    struct attach_job attach = {.job.run = attach_many,
                                .thread_id = "t2",
                                .number = FILES,
                                .created = now - SWEEP_UNUSED_MS - HOUR_MS};
    assert_int_equal(store_run(s->store.store, &attach.job), OK);
    start(s, HOUR_MS);
    wait_round(s);
    assert_int_equal(s->round.attachments, FILES); /* their objects were gone before */
    assert_int_equal(s->troubles, 0);
    assert_false(attached(s, "att_0"));
    assert_false(attached(s, "att_202"));
}

/* One that cannot be removed is told, and does not keep the others. */
static void troubles(void **state)
{
    struct thread_at *s = *state;
    char bucket[FOLDER_BYTES + 32];
    put_all(s, BUCKET_PAYLOADS, 5, "call_1");
    snprintf(bucket, sizeof bucket, "%s/blobs/attachments", s->store.folder);
    int fd = open(bucket, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_return_code(fd, errno);
    close(fd);
    struct attach_job attach = {.job.run = attach_run, .thread_id = "t2", .id = "att_1"};
    assert_int_equal(store_run(s->store.store, &attach.job), OK);
    start(s, 1);
    wait_round(s);
    assert_int_equal(s->round.removed, 5);
    assert_int_equal(s->round.attachments, 1);
    assert_int_equal(s->troubles, 1);
    assert_non_null(strstr(s->trouble, "an object cannot be removed (1): object attachments/"));

    char root[FOLDER_BYTES + 32];
    snprintf(root, sizeof root, "%s/blobs/payloads", s->store.folder);
    for (int i = 0; i < 256; i++) {
        char folder[FOLDER_BYTES + 40];
        snprintf(folder, sizeof folder, "%s/%02x", root, (unsigned)i);
        rmdir(folder);
    }
    snprintf(bucket, sizeof bucket, "%s/blobs/payloads/00", s->store.folder);
    fd = open(bucket, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_return_code(fd, errno);
    close(fd);
    wait_round(s);
    assert_int_equal(s->troubles, 2);
    assert_non_null(strstr(s->trouble, "objects cannot be listed (1): "));
    assert_int_equal(unlink(bucket), 0);
    wait_round(s);
    assert_int_equal(s->troubles, 2);
}

static void on_settled(void *arg)
{
    loop_stop(((struct thread_at *)arg)->store.loop);
}

/* Held for a backup: nothing goes, and the next round after it takes them. */
static void holding(void **state)
{
    struct thread_at *s = *state;
    put_all(s, BUCKET_PAYLOADS, 5, "call_1");
    blobs_hold(s->blobs, loop_now(s->store.loop) + HOUR_MS);
    start(s, 1);
    wait_round(s);
    assert_int_equal(s->round.looked, 5);
    assert_int_equal(s->round.removed, 0);
    for (int i = 0; i < 5; i++) assert_true(there(s, BUCKET_PAYLOADS, path_of(i, "call_1")));
    blobs_release(s->blobs);
    while (!s->round.removed) wait_round(s);
    assert_int_equal(s->round.removed, 5);
    sweeper_free(NULL);
}

/* Stopped in the middle: what is being removed goes, and nothing after it. */
static void stopping(void **state)
{
    struct thread_at *s = *state;
    put_all(s, BUCKET_PAYLOADS, 100, "call_1");
    start(s, 1);
    struct timer *timer = timer_new(s->store.loop, on_settled, s);
    while (!blobs_stats(s->blobs).swept) {
        timer_start(timer, 1);
        loop_run(s->store.loop);
    }
    sweeper_stop(s->sweeper);
    uint64_t swept = blobs_stats(s->blobs).swept;
    timer_start(timer, 50);
    loop_run(s->store.loop);
    timer_free(timer);
    assert_in_range(blobs_stats(s->blobs).swept - swept, 0, 1);
}

#define WITH_SCENE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int test_sweeper(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCENE(nothing_names_them), WITH_SCENE(grace_time), WITH_SCENE(unused_attachments),
        WITH_SCENE(many_unused),        WITH_SCENE(troubles),   WITH_SCENE(holding),
        WITH_SCENE(stopping),
    };
    return cmocka_run_group_tests_name("app/sweeper", tests, NULL, NULL);
}
