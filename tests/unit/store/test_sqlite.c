/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db/sqlite.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "store/fixture.h"

struct two {
    char folder[FOLDER_BYTES];
    struct db *writer, *reader;
};

static int setup(void **state)
{
    static struct two two;
    two = (struct two){0};
    folder_make(two.folder);
    const char *path = path_in(two.folder, "test.db");
    enum err e = db_open(path, DB_WRITER, &two.writer, NULL);
    if (!e) e = db_use_wal(two.writer);
    if (!e)
        e = db_script(two.writer, "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT UNIQUE,"
                                  " b BLOB, c INTEGER CHECK (c < 100)) STRICT");
    if (!e) e = db_open(path, DB_READER, &two.reader, NULL);
    *state = &two;
    return e != OK;
}

static int teardown(void **state)
{
    struct two *two = *state;
    db_close(two->reader);
    db_close(two->writer);
    folder_remove(two->folder);
    return 0;
}

static void settings(void **state)
{
    struct two *two = *state;
#define BOTH(pragma, writer_value, reader_value)                         \
    {                                                                    \
        pragma, db_prepare(two->writer, "PRAGMA " pragma), writer_value, \
            db_prepare(two->reader, "PRAGMA " pragma), reader_value      \
    }
    const struct {
        const char *name;
        struct stmt *writer;
        int64_t writer_value;
        struct stmt *reader;
        int64_t reader_value;
    } rows[] = {
        BOTH("synchronous", 2, 2),     BOTH("foreign_keys", 1, 1), BOTH("trusted_schema", 0, 0),
        BOTH("cell_size_check", 1, 1), BOTH("mmap_size", 0, 0),    BOTH("wal_autocheckpoint", 0, 0),
        BOTH("query_only", 0, 1),      BOTH("temp_store", 2, 2),
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t writer = -1, reader = -1;
        assert_int_equal(db_number(rows[i].writer, &writer), OK);
        assert_int_equal(db_number(rows[i].reader, &reader), OK);
        if (writer != rows[i].writer_value || reader != rows[i].reader_value)
            fail_msg("%s: writer %lld, reader %lld", rows[i].name, (long long)writer,
                     (long long)reader);
    }
    struct stmt *s = db_prepare(two->reader, "PRAGMA journal_mode");
    assert_true(stmt_step(s));
    assert_str(stmt_str(s, 0), STR("wal"));
    assert_int_equal(stmt_end(s), OK);
}

static void file_modes(void **state)
{
    struct two *two = *state;
    assert_int_equal(db_script(two->writer, "INSERT INTO t (c) VALUES (1)"), OK);
    static const char *const names[] = {"test.db", "test.db-wal", "test.db-shm"};
    for (size_t i = 0; i < COUNT(names); i++) {
        struct stat st;
        assert_int_equal(stat(path_in(two->folder, names[i]), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
}

static void refused_files(void **state)
{
    struct two *two = *state;
    struct db *db = NULL;
    struct fault fault;
    assert_int_equal(symlink("test.db", path_in(two->folder, "link.db")), 0);
    assert_int_equal(db_open(path_in(two->folder, "link.db"), DB_WRITER, &db, &fault), ERR_IO);
    assert_int_equal(mkdir(path_in(two->folder, "dir.db"), 0700), 0);
    assert_int_not_equal(db_open(path_in(two->folder, "dir.db"), DB_WRITER, &db, &fault), OK);

    const char *open_to_all = path_in(two->folder, "open.db");
    FILE *file = fopen(open_to_all, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(chmod(open_to_all, 0644), 0);
    assert_int_equal(db_open(open_to_all, DB_WRITER, &db, &fault), ERR_CONFIG);
    assert_non_null(strstr(fault.text, "chmod 600"));
    assert_null(db);
}

static void values(void **state)
{
    struct two *two = *state;
    struct stmt *s = db_prepare(two->writer, "INSERT INTO t (id, a, b, c) VALUES (?1, ?2, ?3, ?4)");
    stmt_bind_i64(s, 1, INT64_MAX);
    stmt_bind_str(s, 2, (str){NULL, 0});
    stmt_bind_blob(s, 3, (str){"\0\1", 2});
    stmt_bind_null(s, 4);
    assert_int_equal(stmt_run(s), OK);
    assert_int_equal(db_changes(two->writer), 1);

    s = db_prepare(two->reader, "SELECT id, a, b, c FROM t");
    assert_true(stmt_step(s));
    assert_true(stmt_i64(s, 0) == INT64_MAX);
    assert_false(stmt_is_null(s, 1));
    assert_str(stmt_str(s, 1), STR_EMPTY);
    assert_int_equal(stmt_str(s, 2).len, 2);
    assert_memory_equal(stmt_str(s, 2).p, "\0\1", 2);
    assert_true(stmt_is_null(s, 3));
    assert_str(stmt_str(s, 3), STR_EMPTY);
    assert_false(stmt_step(s));
    assert_false(stmt_step(s)); /* stepping past the end does not run it again */
    assert_int_equal(stmt_end(s), OK);
}

static struct stmt *insert(struct db *db, str a, int64_t c)
{
    struct stmt *s = db_prepare(db, "INSERT INTO t (a, c) VALUES (?1, ?2)");
    stmt_bind_str(s, 1, a);
    stmt_bind_i64(s, 2, c);
    return s;
}

static void errors(void **state)
{
    struct two *two = *state;
    assert_int_equal(stmt_run(insert(two->writer, STR("x"), 1)), OK);
    assert_int_equal(stmt_run(insert(two->writer, STR("x"), 2)), ERR_BUSY);       /* UNIQUE */
    assert_int_equal(stmt_run(insert(two->writer, STR("y"), 100)), ERR_INTERNAL); /* CHECK */
    assert_int_equal(stmt_run(insert(two->writer, STR("y"), 2)), OK);             /* usable again */
    assert_int_equal(stmt_run(db_prepare(two->writer, "SELECT nothing FROM t")), ERR_INTERNAL);
    assert_non_null(strstr(db_message(two->writer), "nothing"));
    assert_int_equal(stmt_run(db_prepare(two->writer, "SELECT \"text\" FROM t")), ERR_INTERNAL);
}

static void readers_cannot_write(void **state)
{
    struct two *two = *state;
    assert_int_not_equal(stmt_run(insert(two->reader, STR("x"), 1)), OK);
    int64_t count = -1;
    assert_int_equal(db_number(db_prepare(two->writer, "SELECT count(*) FROM t"), &count), OK);
    assert_int_equal(count, 0);
}

static void schema_is_defended(void **state)
{
    struct two *two = *state;
    assert_int_not_equal(
        db_script(two->writer, "PRAGMA writable_schema=1; UPDATE sqlite_schema SET sql='x'"), OK);
    assert_int_not_equal(db_script(two->writer, "SELECT load_extension('x')"), OK);
}

/* The cache finds a statement again; a statement left in the middle begins anew. */
static void cache(void **state)
{
    struct two *two = *state;
    struct stmt *first = insert(two->writer, STR("x"), 1);
    assert_int_equal(stmt_run(first), OK);
    assert_ptr_equal(insert(two->writer, STR("y"), 2), first);
    assert_int_equal(stmt_run(first), OK);
    for (int i = 0; i < 2; i++) {
        struct stmt *s = db_prepare(two->writer, "SELECT a FROM t ORDER BY a");
        assert_true(stmt_step(s));
        assert_str(stmt_str(s, 0), STR("x"));
    }
    db_settle(two->writer);
}

/* When SQLite has rolled back the transaction by itself, nothing runs outside of it. */
static void lost_transaction(void **state)
{
    struct two *two = *state;
    assert_int_equal(stmt_run(insert(two->writer, STR("before"), 1)), OK);
    assert_int_equal(db_begin(two->writer), OK);
    assert_int_equal(stmt_run(insert(two->writer, STR("inside"), 1)), OK);
    assert_int_equal(db_script(two->writer, "PRAGMA max_page_count=1"), OK);
    struct stmt *s = db_prepare(two->writer, "INSERT INTO t (b) VALUES (zeroblob(100000))");
    assert_int_equal(stmt_run(s), ERR_STORAGE_FULL);
    assert_int_equal(db_lost(two->writer), ERR_STORAGE_FULL);
    assert_int_equal(stmt_run(insert(two->writer, STR("after"), 1)), ERR_STORAGE_FULL);
    bool unknown = false;
    assert_int_equal(db_commit(two->writer, &unknown), ERR_STORAGE_FULL);
    assert_false(unknown);
    assert_int_equal(db_rollback(two->writer), OK);
    assert_int_equal(db_lost(two->writer), OK);

    int64_t count = -1;
    assert_int_equal(db_number(db_prepare(two->writer, "SELECT count(*) FROM t"), &count), OK);
    assert_int_equal(count, 1);
    assert_int_equal(db_script(two->writer, "PRAGMA max_page_count=1000000"), OK);
    assert_int_equal(stmt_run(insert(two->writer, STR("after"), 1)), OK);
}

static void savepoints(void **state)
{
    struct two *two = *state;
    bool unknown = false;
    assert_int_equal(db_begin(two->writer), OK);
    assert_int_equal(db_savepoint(two->writer), OK);
    assert_int_equal(stmt_run(insert(two->writer, STR("kept"), 1)), OK);
    assert_int_equal(db_savepoint_release(two->writer), OK);
    assert_int_equal(db_savepoint(two->writer), OK);
    assert_int_equal(stmt_run(insert(two->writer, STR("undone"), 1)), OK);
    assert_int_equal(db_savepoint_undo(two->writer), OK);
    assert_int_equal(db_savepoint_release(two->writer), OK);
    assert_int_equal(db_commit(two->writer, &unknown), OK);
    struct stmt *s = db_prepare(two->writer, "SELECT group_concat(a) FROM t");
    assert_true(stmt_step(s));
    assert_str(stmt_str(s, 0), STR("kept"));
    assert_int_equal(stmt_end(s), OK);
}

/* A check put off to COMMIT: nothing committed, and that is certain. */
static void deferred_check(void **state)
{
    struct two *two = *state;
    assert_int_equal(db_script(two->writer, "CREATE TABLE child (t INTEGER REFERENCES t(id)"
                                            " DEFERRABLE INITIALLY DEFERRED) STRICT"),
                     OK);
    bool unknown = false;
    assert_int_equal(db_begin(two->writer), OK);
    assert_int_equal(db_script(two->writer, "INSERT INTO child VALUES (77)"), OK);
    assert_int_equal(db_commit(two->writer, &unknown), ERR_INTERNAL);
    assert_false(unknown);
    assert_int_equal(db_rollback(two->writer), OK);
}

static void checkpoints(void **state)
{
    struct two *two = *state;
    assert_int_equal(stmt_run(insert(two->writer, STR("x"), 1)), OK);
    assert_true(db_wal_pages(two->writer) > 0);
    assert_int_equal(db_checkpoint(two->writer, false), OK);

    /* A reader in the middle of its transaction keeps the log from starting anew. */
    assert_int_equal(stmt_run(insert(two->writer, STR("y"), 1)), OK);
    bool unknown = false;
    int64_t count = -1;
    assert_int_equal(db_begin(two->reader), OK);
    assert_int_equal(db_number(db_prepare(two->reader, "SELECT count(*) FROM t"), &count), OK);
    assert_int_equal(stmt_run(insert(two->writer, STR("z"), 1)), OK);
    assert_int_equal(db_checkpoint(two->writer, true), ERR_LOCKED);
    assert_int_equal(db_commit(two->reader, &unknown), OK);
    assert_int_equal(db_checkpoint(two->writer, true), OK);
    assert_int_equal(stmt_run(insert(two->writer, STR("w"), 1)), OK);
    assert_true(db_wal_pages(two->writer) < 4);
}

int test_sqlite(void)
{
#define WITH_TWO(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_TWO(settings),
        WITH_TWO(file_modes),
        WITH_TWO(refused_files),
        WITH_TWO(values),
        WITH_TWO(errors),
        WITH_TWO(readers_cannot_write),
        WITH_TWO(schema_is_defended),
        WITH_TWO(cache),
        WITH_TWO(lost_transaction),
        WITH_TWO(savepoints),
        WITH_TWO(deferred_check),
        WITH_TWO(checkpoints),
    };
    return cmocka_run_group_tests_name("store/sqlite", tests, NULL, NULL);
}
