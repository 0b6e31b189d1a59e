/* SPDX-License-Identifier: Apache-2.0 */
#include "store/fixture.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "net/loop.h"
#include "store/db/hot.h"
#include "store/db/migrate.h"

enum { WATCHDOG_MS = 60 * 1000 };

void folder_make(char out[static FOLDER_BYTES])
{
    const char *tmp = getenv("TMPDIR");
    snprintf(out, FOLDER_BYTES, "%s/fermata-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    assert_non_null(mkdtemp(out));
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

void folder_remove(const char *folder)
{
    assert_int_equal(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

const char *path_in(const char *folder, const char *name)
{
    static char path[FOLDER_BYTES + 256];
    int len = snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_in_range(len, 1, sizeof path - 1); /* a name cut short would be another file */
    return path;
}

/* The rows of a group's second time. */
enum { KEPT_BYTES = 64 * 1024 * 1024 };
static bool keeping;

int db_fixture_group(const char *name, const struct CMUnitTest *tests, size_t count)
{
    char kept[64];
    snprintf(kept, sizeof kept, "%s, rows kept", name);
    int failed = _cmocka_run_group_tests(name, tests, count, NULL, NULL);
    keeping = true;
    failed += _cmocka_run_group_tests(kept, tests, count, NULL, NULL);
    keeping = false;
    return failed;
}

enum err by_hand(struct db *db, const char *sql)
{
    hot_drop_all(db);
    return db_script(db, sql);
}

int db_fixture_setup(void **state)
{
    static struct db_fixture t;
    t = (struct db_fixture){0};
    folder_make(t.folder);
    arena_init(&t.arena);
    enum err e = db_open(path_in(t.folder, "fermata.db"), DB_WRITER, &t.db, NULL);
    if (!e) e = migrate(t.db, NULL);
    if (!e && keeping) db_keep(t.db, KEPT_BYTES);
    *state = &t;
    return e != OK;
}

int db_fixture_teardown(void **state)
{
    struct db_fixture *t = *state;
    db_close(t->db);
    arena_done(&t->arena);
    folder_remove(t->folder);
    return 0;
}

static void on_watchdog(void *arg)
{
    struct fixture *f = arg;
    fprintf(stderr, "watchdog: %zu jobs did not end\n", f->waiting);
    abort();
}

void fixture_open(struct fixture *f)
{
    struct fault fault = {0};
    f->loop = loop_new();
    f->watchdog = timer_new(f->loop, on_watchdog, f);
    timer_start(f->watchdog, WATCHDOG_MS);
    enum err e = store_open(f->folder, f->loop, &f->store, &fault);
    if (e) fail_msg("store_open: %s", fault.text);
}

void fixture_init(struct fixture *f)
{
    *f = (struct fixture){0};
    folder_make(f->folder);
    fixture_open(f);
}

struct settle {
    struct loop_task task;
    struct loop *loop;
    bool settled;
};

static void on_settled(struct loop_task *task)
{
    struct settle *settle = CONTAINER(task, struct settle, task);
    settle->settled = true;
    loop_stop(settle->loop);
}

/* A loop_stop from before may end the first loop_run at once. */
void loop_settle(struct loop *loop)
{
    struct settle settle = {.task = {.fn = on_settled}, .loop = loop};
    loop_post(loop, &settle.task);
    while (!settle.settled) loop_run(loop);
}

void fixture_close(struct fixture *f)
{
    store_close(f->store);
    f->store = NULL;
    timer_free(f->watchdog);
    loop_settle(f->loop);
    loop_free(f->loop);
}

void fixture_done(struct fixture *f)
{
    fixture_close(f);
    folder_remove(f->folder);
}

static enum err put_row(struct db *db, str scope, const struct put *put)
{
    char name[16];
    char *value = malloc(put->bytes + 1);
    assert_non_null(value);
    memset(value, 'v', put->bytes);
    snprintf(name, sizeof name, "%d", put->number);
    struct stmt *s =
        db_prepare(db, "INSERT INTO settings (scope, name, value) VALUES (?1, ?2, ?3)");
    stmt_bind_str(s, 1, scope);
    stmt_bind_str(s, 2, str_c(name));
    stmt_bind_str(s, 3, (str){value, put->bytes});
    enum err e = stmt_run(s);
    free(value);
    return e;
}

static enum err put_run(struct job *job, struct db *db)
{
    struct put *put = (struct put *)job;
    put->runs++;
    enum err e = put_row(db, STR("a"), put);
    if (!e) e = put_row(db, STR("b"), put);
    if (!e && put->break_statement) e = put_row(db, STR("a"), put);
    return e ? e : put->fail;
}

static void put_done(struct job *job, enum err e)
{
    struct put *put = (struct put *)job;
    struct fixture *f = put->f;
    put->result = e;
    put->done_order = ++f->done_count;
    if (!e && put->ack_fd) {
        ssize_t n = write(put->ack_fd, &put->number, sizeof put->number);
        if (n != sizeof put->number) abort();
    }
    if (--f->waiting == 0) loop_stop(f->loop);
}

struct put put_make(struct fixture *f, int number)
{
    return (struct put){
        .job = {.run = put_run, .done = put_done}, .f = f, .number = number, .bytes = 10};
}

void put_send(struct put *put)
{
    put->f->waiting++;
    store_write(put->f->store, &put->job);
}

void fixture_wait(struct fixture *f)
{
    while (f->waiting) loop_run(f->loop);
}

int put_rows(struct db *db, int number)
{
    char name[16];
    snprintf(name, sizeof name, "%d", number);
    struct stmt *s = db_prepare(db, "SELECT count(*) FROM settings"
                                    " WHERE scope IN ('a', 'b') AND name=?1");
    stmt_bind_str(s, 1, str_c(name));
    int64_t count = -1;
    enum err e = db_number(s, &count);
    return e ? -1 : (int)count;
}

enum err db_number(struct stmt *s, int64_t *ret_number)
{
    int64_t number = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_end(s);
    if (!e) *ret_number = number;
    return e;
}

bool db_sound(struct db *db)
{
    struct stmt *s = db_prepare(db, "PRAGMA integrity_check");
    bool sound = stmt_step(s) && str_eq(stmt_str(s, 0), STR("ok"));
    return stmt_end(s) == OK && sound;
}
