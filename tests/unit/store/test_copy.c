/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db/copy.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "check.h"
#include "net/loop.h"
#include "store/db/migrate.h"
#include "store/fixture.h"

enum { ROWS = 800, ROW_BYTES = 4000 }; /* more pages than one step copies */

struct test_copy {
    struct copy copy;
    struct fixture *f;
    enum err result;
};

static void on_copied(struct job *job, enum err e)
{
    struct test_copy *test = (struct test_copy *)(void *)job;
    test->result = e;
    if (--test->f->waiting == 0) loop_stop(test->f->loop);
}

static void copy_send(struct test_copy *test, struct fixture *f, const char *path)
{
    copy_init(&test->copy, f->store, path);
    test->copy.job.done = on_copied;
    test->f = f;
    test->result = ERR_COUNT;
    f->waiting++;
    store_read(f->store, &test->copy.job);
}

static void put_many(struct fixture *f, struct put *puts, int first)
{
    for (int i = 0; i < ROWS; i++) {
        puts[i] = put_make(f, first + i);
        puts[i].bytes = ROW_BYTES;
        put_send(&puts[i]);
    }
}

static int rows_in(const char *path, int first)
{
    struct db *db = NULL;
    int rows = 0;
    assert_int_equal(db_open(path, DB_WRITER, &db, NULL), OK);
    assert_true(db_sound(db));
    for (int i = 0; i < ROWS; i++) rows += put_rows(db, first + i);
    db_close(db);
    return rows;
}

/* Writes go on around it: what was done before is in the copy, and each later job whole or not. */
static void while_in_use(void **state)
{
    (void)state;
    static struct put before[ROWS], after[ROWS];
    struct fixture f;
    struct test_copy test = {0};
    fixture_init(&f);
    char path[FOLDER_BYTES + 16];
    snprintf(path, sizeof path, "%s/copy", f.folder);
    put_many(&f, before, 0);
    fixture_wait(&f);
    copy_send(&test, &f, path);
    put_many(&f, after, ROWS);
    fixture_wait(&f);
    if (test.result) fail_msg("%s", test.copy.why.text);
    assert_int_equal(test.copy.schema, migrate_latest());
    assert_int_equal(rows_in(path, 0), 2 * ROWS);
    assert_int_equal(rows_in(path, ROWS) % 2, 0);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_true(st.st_size > (off_t)BACKUP_PAGES_STEP * 4096);
    fixture_done(&f);
}

static void refusals(void **state)
{
    (void)state;
    static struct put after[ROWS];
    struct fixture f;
    struct test_copy test = {0};
    fixture_init(&f);
    char path[FOLDER_BYTES + 16];
    snprintf(path, sizeof path, "%s/fermata.db", f.folder);
    copy_send(&test, &f, path); /* over itself, of all things */
    fixture_wait(&f);
    assert_int_equal(test.result, ERR_IO);
    assert_non_null(strstr(test.copy.why.text, "File exists"));

    snprintf(path, sizeof path, "%s/no/copy", f.folder);
    copy_send(&test, &f, path);
    fixture_wait(&f);
    assert_int_equal(test.result, ERR_IO);

    put_many(&f, after, 0); /* the store is as good as before */
    fixture_wait(&f);
    for (int i = 0; i < ROWS; i++) assert_int_equal(after[i].result, OK);
    fixture_done(&f);
}

static bool at_once(void *arg)
{
    ++*(int *)arg;
    return true;
}

static void stopped(void **state)
{
    (void)state;
    static struct put many[ROWS];
    struct fixture f;
    fixture_init(&f);
    put_many(&f, many, 0);
    fixture_wait(&f);
    fixture_close(&f);

    struct db *db = NULL;
    struct fault why = {0};
    int asked = 0;
    char path[FOLDER_BYTES + 16];
    snprintf(path, sizeof path, "%s/copy", f.folder);
    assert_int_equal(db_open(path_in(f.folder, "fermata.db"), DB_READER, &db, NULL), OK);
    assert_int_equal(db_begin(db), OK);
    assert_int_equal(db_copy(db, path, at_once, &asked, &why), ERR_SHUTTING_DOWN);
    assert_int_equal(asked, 1);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(db_copy(db, path, NULL, NULL, &why), OK);
    assert_int_equal(db_rollback(db), OK);
    db_close(db);
    assert_int_equal(rows_in(path, 0), 2 * ROWS);
    folder_remove(f.folder);
}

static void of_a_folder(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES], path[FOLDER_BYTES + 16];
    folder_make(folder);
    struct fault why = {0};
    int64_t schema = -1;
    snprintf(path, sizeof path, "%s/copy", folder);
    assert_int_equal(copy_folder(folder, path, &schema, &why), ERR_NOT_FOUND);
    struct store *store = NULL;
    assert_int_equal(store_open(folder, NULL, &store, &why), OK);
    store_close(store);
    assert_int_equal(copy_folder(folder, path, &schema, &why), OK);
    assert_int_equal(schema, migrate_latest());
    folder_remove(folder);
}

int test_copy(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(while_in_use),
        cmocka_unit_test(refusals),
        cmocka_unit_test(stopped),
        cmocka_unit_test(of_a_folder),
    };
    return cmocka_run_group_tests_name("store/copy", tests, NULL, NULL);
}
