/* SPDX-License-Identifier: Apache-2.0 */
#include "store/table/named.h"

#include <dirent.h>
#include <string.h>

#include "base/buf.h"
#include "check.h"
#include "store/db/migrate.h"
#include "store/fixture.h"

#define HASH "aa00000000000000000000000000000000000000000000000000000000000000"
#define PATH "aa/" HASH ".call_"

enum { SEEN_BYTES_MAX = 4096 };

/* Thread 1 with a run 1, for rows that need one. */
static const char world[] =
    "INSERT INTO threads (id, owner, thread_id, title, agent, last_seq, created, updated)"
    "  VALUES (1, 'ann', 't1', '', 'assistant', 0, 1, 1);"
    "INSERT INTO runs (id, thread, run_id, status, legs, start_seq, input_tokens, output_tokens,"
    "  created, ended, agent, model, task_id, queued)"
    "  VALUES (1, 1, 'r1', 1, 1, 0, 0, 0, 1, 0, 'assistant', 'm', 'task', '');";

#define BLOB(bucket, path, waiting, spool)                                                 \
    "INSERT INTO blobs (thread, created, waiting, bucket, path, message_id, spool, bytes)" \
    "  VALUES (1, 1, " #waiting ", '" bucket "', '" path "', 'm', '" spool "', '');"
#define ATTACHMENT(id, path)                                                                    \
    "INSERT INTO attachments VALUES ('" id "', 'ann', 't1', 1, 1, 0, 0, 'text/plain', 'a', ''," \
    "  'attachments', '" path "');"
#define CALL(n, id, spool, hash)                                                                \
    "INSERT INTO tool_calls (run, round, n, thread, state, stage, write, idempotent, attempts," \
    "  created, started, ended, result_bytes, call_id, message_id, tool, provider_id, rule,"    \
    "  binding, result_id, spool, error, args, model_text, content, result, result_hash)"       \
    "  VALUES (1, 1, " #n ", 1, 3, 1, 0, 0, 1, 1, 1, 1, 1, '" id "', 'm', 'look', '', '', '',"  \
    "  '', '" spool "', '', '{}', '', '', '', '" hash "');"

static const struct {
    const char *what, *sql, *expected;
} rows[] = {
    {"nothing", "", ""},
    {"objects of both tables, in order",
     BLOB("payloads", "cc", 0, "") BLOB("payloads", "aa", 0, "") ATTACHMENT("1", "bb"),
     "[attachments bb ][payloads aa ][payloads cc ]"},
    {"an object that is not stored yet is in the database", BLOB("payloads", "aa", 1, ""), ""},
    {"an object that waits in a file", BLOB("payloads", PATH "1", 1, "call_1"),
     "[payloads " PATH "1 call_1]"},
    {"a result without an object", CALL(1, "call_1", "call_1", HASH) CALL(2, "call_2", "", ""),
     "[payloads " PATH "1 call_1]"},
    {"a result whose hash is not known", CALL(1, "call_1", "call_1", ""), "[payloads  call_1]"},
    {"both rows of one file",
     CALL(1, "call_1", "call_1", HASH) BLOB("payloads", PATH "1", 1, "call_1"),
     "[payloads " PATH "1 call_1]"},
    {"one row knows the path, the other does not",
     CALL(1, "call_1", "call_1", "") BLOB("payloads", PATH "1", 1, "call_1"),
     "[payloads " PATH "1 call_1]"},
    {"a file that is an object by now",
     CALL(1, "call_1", "call_1", HASH) BLOB("payloads", PATH "1", 0, ""), "[payloads " PATH "1 ]"},
    {"objects before files",
     CALL(1, "a", "a", "") CALL(2, "b", "b", "") BLOB("payloads", "zz", 0, ""),
     "[payloads zz ][payloads  a][payloads  b]"},
};

static enum err note(void *arg, const struct named_file *file, struct fault *reterr)
{
    struct buf *seen = arg;
    buf_printf(seen, "[%.*s %.*s %.*s]", STR_ARG(file->bucket), STR_ARG(file->path),
               STR_ARG(file->spool));
    return seen->full ? fault(reterr, ERR_TOO_LARGE, "enough") : OK;
}

static const char *entry_beside(const char *folder)
{
    static char name[256];
    DIR *dir = opendir(folder);
    name[0] = '\0';
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "copy.db") != 0)
            snprintf(name, sizeof name, "%s", entry->d_name);
    closedir(dir);
    return name;
}

static void copy_make(const char *path, const char *sql)
{
    struct db *db = NULL;
    assert_int_equal(db_open(path, DB_WRITER, &db, NULL), OK);
    assert_int_equal(db_use_wal(db), OK);
    assert_int_equal(migrate(db, NULL), OK);
    assert_int_equal(db_script(db, world), OK);
    assert_int_equal(db_script(db, sql), OK);
    db_close(db);
}

static void every_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char folder[FOLDER_BYTES], copy[FOLDER_BYTES + 16];
        struct fault why = {0};
        AUTO(buf_done) struct buf seen;
        folder_make(folder);
        snprintf(copy, sizeof copy, "%s/copy.db", folder);
        copy_make(copy, rows[i].sql);
        buf_init(&seen, SEEN_BYTES_MAX);
        enum err e = named_each(copy, migrate_latest(), note, &seen, &why);
        if (e) fail_msg("%s: %s", rows[i].what, why.text);
        if (!str_eq(buf_str(&seen), str_c(rows[i].expected)))
            fail_msg("%s: got %.*s, expected %s", rows[i].what, (int)seen.len, seen.p,
                     rows[i].expected);
        assert_string_equal(entry_beside(folder), "");
        folder_remove(folder);
    }
}

/* A refusal of the caller ends it; a schema without such tables has nothing to say. */
static void ends(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES], copy[FOLDER_BYTES + 16];
    struct fault why = {0};
    struct buf seen;
    folder_make(folder);
    snprintf(copy, sizeof copy, "%s/copy.db", folder);
    copy_make(copy, BLOB("payloads", "aa", 0, "") CALL(1, "a", "a", ""));
    buf_init(&seen, 4);
    assert_int_equal(named_each(copy, migrate_latest(), note, &seen, &why), ERR_TOO_LARGE);
    assert_string_equal(why.text, "enough");
    buf_done(&seen);
    buf_init(&seen, SEEN_BYTES_MAX);
    assert_int_equal(named_each(copy, 2, note, &seen, &why), OK);
    assert_int_equal(seen.len, 0);
    assert_int_equal(named_each(copy, 4, note, &seen, &why), OK);
    assert_str(buf_str(&seen), STR("[payloads  a]"));
    buf_done(&seen);
    assert_int_not_equal(named_each("/nowhere/copy.db", migrate_latest(), note, NULL, &why), OK);
    folder_remove(folder);
}

int test_named(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),
        cmocka_unit_test(ends),
    };
    return cmocka_run_group_tests_name("store/named", tests, NULL, NULL);
}
