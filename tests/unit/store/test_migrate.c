/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db/migrate.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "check.h"
#include "store/fixture.h"

struct base {
    char folder[FOLDER_BYTES];
    char path[FOLDER_BYTES + 16];
};

static int setup(void **state)
{
    static struct base base;
    folder_make(base.folder);
    snprintf(base.path, sizeof base.path, "%s/fermata.db", base.folder);
    *state = &base;
    return 0;
}

static int teardown(void **state)
{
    struct base *base = *state;
    folder_remove(base->folder);
    return 0;
}

/* A database that somebody left behind: made by `sql`, without our migrations. */
static void made_by(const struct base *base, const char *sql)
{
    struct db *db = NULL;
    assert_int_equal(db_open(base->path, DB_WRITER, &db, NULL), OK);
    assert_int_equal(db_script(db, sql), OK);
    db_close(db);
}

static void file_hash(const char *path, unsigned char out[static HASH_BYTES])
{
    static char bytes[1024 * 1024];
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    ssize_t n = read(fd, bytes, sizeof bytes);
    assert_true(n >= 0 && (size_t)n < sizeof bytes);
    close(fd);
    crypto_sha256((str){bytes, (size_t)n}, out);
}

/* Refused with a text that has these words, and not a byte of the file changed. */
static void refused(const struct base *base, const char *words)
{
    unsigned char before[HASH_BYTES], after[HASH_BYTES];
    file_hash(base->path, before);
    struct store *store = NULL;
    struct fault fault = {0};
    enum err e = store_open(base->folder, NULL, &store, &fault);
    file_hash(base->path, after);
    assert_null(store);
    assert_int_not_equal(e, OK);
    if (!strstr(fault.text, words)) fail_msg("got \"%s\", expected \"%s\"", fault.text, words);
    assert_memory_equal(before, after, HASH_BYTES);
}

static void fresh_and_again(void **state)
{
    struct base *base = *state;
    for (int i = 0; i < 2; i++) {
        struct store *store = NULL;
        assert_int_equal(store_open(base->folder, NULL, &store, NULL), OK);
        store_close(store);
    }
    struct db *db = NULL;
    int64_t version = 0, application = 0;
    assert_int_equal(db_open(base->path, DB_WRITER, &db, NULL), OK);
    assert_int_equal(db_number(db_prepare(db, "PRAGMA user_version"), &version), OK);
    assert_int_equal(version, migrate_latest());
    assert_int_equal(db_number(db_prepare(db, "PRAGMA application_id"), &application), OK);
    assert_int_equal(application, 0x4665726d);
    assert_true(db_sound(db));
    db_close(db);
}

/* One line for each table, column, reference and index, in an order of its own. Sorted: the tables are
 * not made in the same order. Indexes by name and text; those of UNIQUE and keys by their columns. */
static void describe(struct db *db, struct buf *out)
{
    struct stmt *s = db_prepare(
        db,
        "WITH t AS MATERIALIZED (SELECT * FROM pragma_table_list"
        "  WHERE schema='main' AND name NOT LIKE 'sqlite%')"
        " SELECT t.name||' '||t.strict||t.wr FROM t"
        " UNION ALL SELECT t.name||'.'||c.cid||' '||c.name||' '||c.type||' '||c.\"notnull\"||c.pk"
        "  ||coalesce(' '||c.dflt_value, '') FROM t, pragma_table_xinfo(t.name) AS c"
        " UNION ALL SELECT t.name||'.'||f.\"from\"||'>'||f.\"table\"||'.'||coalesce(f.\"to\", '')"
        "  ||' '||f.on_delete FROM t, pragma_foreign_key_list(t.name) AS f"
        " UNION ALL SELECT t.name||' index '||i.\"unique\"||i.origin||i.partial||' '||"
        "  (SELECT group_concat(coalesce(c.name, '-')||c.\"desc\"||c.key, ' ') FROM"
        "    (SELECT * FROM pragma_index_xinfo(i.name) ORDER BY seqno) AS c)"
        "  FROM t, pragma_index_list(t.name) AS i"
        " UNION ALL SELECT replace(sql, '  ', ' ') FROM sqlite_schema WHERE type='index' AND "
        "sql<>''"
        " ORDER BY 1");
    while (stmt_step(s)) {
        buf_append(out, stmt_str(s, 0));
        buf_char(out, '\n');
    }
    assert_int_equal(stmt_end(s), OK);
    assert_false(out->full);
    buf_char(out, '\0');
}

/* A fresh database and one that came all the way have the same tables. */
static void tables_are_what_the_steps_come_to(void **state)
{
    struct base *base = *state;
    struct buf said[2];
    for (int i = 0; i < 2; i++) {
        snprintf(base->path, sizeof base->path, "%s/%d.db", base->folder, i);
        struct db *db = NULL;
        assert_int_equal(db_open(base->path, DB_WRITER, &db, NULL), OK);
        assert_int_equal(db_use_wal(db), OK);
        assert_int_equal(i ? migrate_steps(db, 0, NULL) : migrate(db, NULL), OK);
        buf_init(&said[i], 256 * 1024);
        describe(db, &said[i]);
        int64_t version = 0;
        assert_int_equal(migrate_number(db, &version, NULL), OK);
        assert_int_equal(version, migrate_latest());
        db_close(db);
    }
    assert_true(said[0].len > 10 * 1000);
    if (strcmp(said[0].p, said[1].p)) {
        size_t at = 0, line = 0;
        for (; said[0].p[at] == said[1].p[at]; at++)
            if (said[0].p[at] == '\n') line = at + 1;
        fail_msg("tables.c has:  %.100s\nthe steps have: %.100s", said[0].p + line,
                 said[1].p + line);
    }
    for (int i = 0; i < 2; i++) buf_done(&said[i]);
}

/* Whatever goes with a thread is found by an index, or its deletion would read whole tables. */
static void cascades_have_an_index(void **state)
{
    struct base *base = *state;
    struct store *store = NULL;
    struct db *db = NULL;
    assert_int_equal(store_open(base->folder, NULL, &store, NULL), OK);
    store_close(store);
    assert_int_equal(db_open(base->path, DB_READER, &db, NULL), OK);
    struct stmt *s = db_prepare(
        db,
        "SELECT t.name, f.\"from\", EXISTS ("
        "  SELECT 1 FROM pragma_table_info(t.name) AS c WHERE c.name=f.\"from\" AND c.pk=1)"
        " OR EXISTS (SELECT 1 FROM pragma_index_list(t.name) AS i, pragma_index_info(i.name) AS c"
        "  WHERE c.seqno=0 AND c.name=f.\"from\")"
        " FROM sqlite_schema AS t, pragma_foreign_key_list(t.name) AS f"
        " WHERE t.type='table' AND f.on_delete='CASCADE'");
    size_t count = 0;
    for (; stmt_step(s); count++)
        if (!stmt_i64(s, 2))
            fail_msg("%.*s.%.*s has no index", STR_ARG(stmt_str(s, 0)), STR_ARG(stmt_str(s, 1)));
    assert_int_equal(stmt_end(s), OK);
    assert_true(count >= 12);
    db_close(db);
}

static void newer_is_refused(void **state)
{
    struct base *base = *state;
    struct store *store = NULL;
    assert_int_equal(store_open(base->folder, NULL, &store, NULL), OK);
    store_close(store);
    made_by(base, "PRAGMA user_version=999");
    char words[80];
    snprintf(words, sizeof words, "schema 999 and this version knows up to %d", migrate_latest());
    refused(base, words);
}

/* The same when the newer version was killed and left its changes in the log. */
static void newer_in_the_log_is_refused(void **state)
{
    struct base *base = *state;
    struct store *store = NULL;
    assert_int_equal(store_open(base->folder, NULL, &store, NULL), OK);
    store_close(store);
    made_by(base, "PRAGMA user_version=999"); /* closes without a checkpoint */
    struct stat st;
    assert_int_equal(stat(path_in(base->folder, "fermata.db-wal"), &st), 0);
    assert_true(st.st_size > 0);
    refused(base, "schema 999");
    refused(base, "schema 999");
}

static void foreign_is_refused(void **state)
{
    static const char *const makers[] = {
        "CREATE TABLE bookmarks (x)",
        "PRAGMA application_id=252006674; CREATE TABLE x (y)",
        "PRAGMA journal_mode=WAL; CREATE TABLE bookmarks (x)",
        "PRAGMA user_version=1; VACUUM",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(makers); i++) {
        void *base = NULL;
        setup(&base);
        made_by(base, makers[i]);
        refused(base, "belongs to another program");
        teardown(&base);
    }
}

static void no_database_is_refused(void **state)
{
    struct base *base = *state;
    int fd = open(base->path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    for (int i = 0; i < 100; i++) assert_int_equal(write(fd, "These are notes. ", 17), 17);
    close(fd);
    refused(base, "file is not a database");
}

int test_migrate(void)
{
#define WITH_BASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_BASE(fresh_and_again),
        WITH_BASE(cascades_have_an_index),
        WITH_BASE(newer_is_refused),
        WITH_BASE(newer_in_the_log_is_refused),
        cmocka_unit_test(foreign_is_refused),
        WITH_BASE(no_database_is_refused),
        WITH_BASE(tables_are_what_the_steps_come_to),
    };
    return cmocka_run_group_tests_name("store/migrate", tests, NULL, NULL);
}
