/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db/hot.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "check.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"

struct row {
    int64_t n;
    str name;
    bool yes;
    str text;
    uint32_t small;
};

#define COLUMN(name) COLUMN_OF(struct row, name),
static const struct column columns[] = {COLUMN(n) COLUMN(name) COLUMN(yes) COLUMN(text)
                                            COLUMN(small)};
#undef COLUMN
static const struct hot_shape shape = HOT_SHAPE(struct row, columns);

static const struct row rows[] = {
    {1, STR("one"), true, STR("a\0b"), 7},
    {2, STR(""), false, STR("二"), UINT32_MAX},
    {-3, STR("three"), true, STR(""), 0},
};

static void same(const void *got, const struct row *expected, size_t count)
{
    const struct row *at = got;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(at[i].n, expected[i].n);
        assert_str(at[i].name, expected[i].name);
        assert_int_equal(at[i].yes, expected[i].yes);
        assert_str(at[i].text, expected[i].text);
        assert_int_equal(at[i].small, expected[i].small);
    }
}

static bool has(struct db *db, enum hot_kind kind, int64_t id)
{
    size_t count;
    return hot_has(db, kind, id, &count);
}

static void one(struct db *db, enum hot_kind kind, int64_t id)
{
    hot_put(db, kind, id, &shape, rows, 1);
}

/* Copies, of what was given and of what is kept: nothing shows through. */
static void copies(void **state)
{
    struct db_fixture *t = *state;
    char name[] = "one";
    struct row given[COUNT(rows)];
    struct hot_rows got;
    db_keep(t->db, 1024 * 1024);
    for (size_t count = 0; count <= COUNT(rows); count++) {
        memcpy(given, rows, sizeof given);
        given[0].name = (str){name, 3};
        hot_put(t->db, HOT_CALLS, 5, &shape, count ? given : NULL, count);
        name[0] = 'X';
        assert_true(hot_get(t->db, HOT_CALLS, 5, &shape, &t->arena, NULL, &got));
        name[0] = 'o';
        assert_int_equal(got.count, count);
        same(got.rows, rows, count);
        if (count) ((char *)(uintptr_t)((struct row *)got.rows)[0].name.p)[0] = 'Y';
        assert_true(hot_look(t->db, HOT_CALLS, 5, &shape, NULL, &got));
        same(got.rows, rows, count);
        hot_put(t->db, HOT_CALLS, 5, &shape, got.rows, got.count); /* out of itself */
        assert_true(hot_get(t->db, HOT_CALLS, 5, &shape, &t->arena, NULL, &got));
        same(got.rows, rows, count);
    }
    assert_false(hot_get(t->db, HOT_CALLS, 6, &shape, &t->arena, NULL, &got));
    assert_false(hot_get(t->db, HOT_OPEN, 5, &shape, &t->arena, NULL, &got));
}

static void appended(void **state)
{
    struct db_fixture *t = *state;
    struct hot_rows got;
    db_keep(t->db, 1024 * 1024);
    hot_append(t->db, HOT_OPEN, 1, &shape, &rows[0]); /* the others are not known */
    assert_false(has(t->db, HOT_OPEN, 1));
    hot_put(t->db, HOT_OPEN, 1, &shape, NULL, 0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        hot_append(t->db, HOT_OPEN, 1, &shape, &rows[i]);
        assert_true(hot_get(t->db, HOT_OPEN, 1, &shape, &t->arena, NULL, &got));
        assert_int_equal(got.count, i + 1);
        same(got.rows, rows, i + 1);
    }
}

static int reads;
static enum err answer;
static bool many;

static enum err read_rows(struct db *db, struct arena *arena, int64_t id, struct hot_rows *ret_rows)
{
    (void)db, (void)arena, (void)id;
    reads++;
    if (!answer)
        *ret_rows = (struct hot_rows){.rows = (void *)(uintptr_t)rows, .count = 2, .unkept = many};
    return answer;
}

/* Read once and kept; but for what is too many, and what could not be read. */
static void asked(void **state)
{
    struct db_fixture *t = *state;
    static const struct {
        size_t bytes;
        enum err answer;
        bool many, kept;
    } cases[] = {{1024, OK, false, true},      {1024, OK, true, false},
                 {1024, ERR_IO, false, false}, {1024, ERR_NOT_FOUND, false, false},
                 {1, OK, false, false},        {0, OK, false, false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hot_rows got = {.count = 42};
        db_keep(t->db, cases[i].bytes);
        answer = cases[i].answer;
        many = cases[i].many;
        assert_int_equal(hot_rows(t->db, HOT_INPUT, 1, &shape, &t->arena, read_rows, &got), answer);
        assert_int_equal(got.count, answer ? 42 : 2);
        if (!answer) same(got.rows, rows, 2);
        assert_int_equal(has(t->db, HOT_INPUT, 1), cases[i].kept);
    }
}

/* Whatever comes, no more bytes than were allowed; what was used last is there, the rest is not. */
static void bounded(void **state)
{
    struct db_fixture *t = *state;
    static const size_t allowed[] = {1, 64, 200, 4096, 1024 * 1024};
    static char text[3000];
    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < COUNT(allowed); i++) {
        db_keep(t->db, allowed[i]);
        one(t->db, HOT_THREAD, 0);
        for (int64_t id = 1; id <= 10000; id++) {
            struct row row = {.n = id, .text = {text, (size_t)(id * 7919) % sizeof text}};
            for (int kind = 0; kind < HOT_KIND_COUNT; kind++)
                hot_put(t->db, (enum hot_kind)kind, id, &shape, &row, (size_t)(id % 2));
            hot_append(t->db, HOT_CALLS, id, &shape, &row);
            struct hot_rows got;
            hot_look(t->db, HOT_THREAD, 0, &shape, NULL, &got); /* in use all the time */
            assert_true(hot_bytes(db_hot(t->db)) <= allowed[i]);
            if (id == 5000) hot_drop_kind(t->db, HOT_CALLS); /* their room comes back */
            if (id == 6000) hot_drop_all(t->db);
            if (id == 6000) one(t->db, HOT_THREAD, 0);
        }
        assert_false(has(t->db, HOT_THREAD, 1));
        assert_int_equal(has(t->db, HOT_THREAD, 0), allowed[i] == 1024 * 1024);
        assert_int_equal(has(t->db, (enum hot_kind)(HOT_KIND_COUNT - 1), 10000), allowed[i] >= 64);
    }
}

/* One that would be longer is not kept, and neither is what it takes the place of. */
static void too_long(void **state)
{
    struct db_fixture *t = *state;
    static char text[HOT_ENTRY_BYTES_MAX];
    size_t room = sizeof text - sizeof(struct row);
    db_keep(t->db, 1024 * 1024);
    const struct {
        size_t len;
        bool kept;
    } cases[] = {{room, true}, {room + 1, false}, {10, true}, {sizeof text, false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        hot_put(t->db, HOT_STATE, 1, &shape, &(struct row){.text = {text, cases[i].len}}, 1);
        assert_int_equal(has(t->db, HOT_STATE, 1), cases[i].kept);
    }
    one(t->db, HOT_STATE, 1);
    hot_append(t->db, HOT_STATE, 1, &shape, &(struct row){.text = {text, room}});
    assert_false(has(t->db, HOT_STATE, 1));
    assert_int_equal(hot_bytes(db_hot(t->db)), 0);
}

static void let_go_of(void **state)
{
    struct db_fixture *t = *state;
    db_keep(t->db, 1024 * 1024);
    for (int64_t id = 1; id <= 3; id++)
        for (int kind = 0; kind < HOT_KIND_COUNT; kind++) one(t->db, (enum hot_kind)kind, id);
    hot_drop(t->db, HOT_OPEN, 2);
    hot_drop(t->db, HOT_OPEN, 9);
    hot_drop_kind(t->db, HOT_GRANTS);
    one(t->db, HOT_GRANTS, 3); /* from now on */
    for (int64_t id = 1; id <= 3; id++)
        for (int kind = 0; kind < HOT_KIND_COUNT; kind++)
            assert_int_equal(has(t->db, (enum hot_kind)kind, id),
                             kind == HOT_OPEN ? id != 2 : kind != HOT_GRANTS || id == 3);
    struct hot_rows got;
    hot_drop_kind(t->db, HOT_GRANTS);
    hot_append(t->db, HOT_GRANTS, 3, &shape, &rows[0]);
    assert_false(hot_look(t->db, HOT_GRANTS, 3, &shape, NULL, &got));
    assert_false(hot_get(t->db, HOT_GRANTS, 3, &shape, &t->arena, NULL, &got));
    hot_drop(t->db, HOT_GRANTS, 3);
    hot_drop_all(t->db);
    for (int kind = 0; kind < HOT_KIND_COUNT; kind++)
        assert_false(has(t->db, (enum hot_kind)kind, 1));
    one(t->db, HOT_THREAD, 1);
    assert_true(has(t->db, HOT_THREAD, 1));
}

/* Numbers that lie far apart, or that fall together in the table. */
static void numbers(void **state)
{
    struct db_fixture *t = *state;
    db_keep(t->db, 8 * 1024 * 1024);
    static const int64_t edges[] = {0, -1, 1, INT64_MAX, INT64_MIN};
    struct hot_rows got;
    for (size_t i = 0; i < COUNT(edges); i++)
        hot_put(t->db, HOT_THREAD, edges[i], &shape, &(struct row){.n = edges[i]}, 1);
    for (int64_t i = 1; i <= 2000; i++)
        hot_put(t->db, HOT_CURRENT, i << 32, &shape, &(struct row){.n = i}, 1);
    for (size_t i = 0; i < COUNT(edges); i++) {
        assert_true(hot_look(t->db, HOT_THREAD, edges[i], &shape, NULL, &got));
        assert_int_equal(((struct row *)got.rows)->n, edges[i]);
    }
    for (int64_t i = 1; i <= 2000; i++) {
        assert_true(hot_look(t->db, HOT_CURRENT, i << 32, &shape, NULL, &got));
        assert_int_equal(((struct row *)got.rows)->n, i);
        hot_drop(t->db, HOT_CURRENT, i << 32);
    }
    assert_false(has(t->db, HOT_CURRENT, 1LL << 32));
}

/* ---- with a database ---- */

enum way { COMMITTED, ROLLED_BACK, UNDONE, REFUSED };

static void end(struct db *db, enum way way)
{
    bool unknown = false;
    if (way == REFUSED) { /* a check that waits for the end, and fails then */
        assert_int_equal(db_script(db, "PRAGMA defer_foreign_keys=ON;"
                                       "INSERT INTO snapshots VALUES (99, 1, 1, x'', x'')"),
                         OK);
        assert_int_not_equal(db_commit(db, &unknown), OK);
        assert_false(unknown);
    }
    if (way == ROLLED_BACK || way == REFUSED) {
        assert_int_equal(db_rollback(db), OK);
        return;
    }
    if (way == UNDONE) assert_int_equal(db_savepoint_undo(db), OK);
    if (way == UNDONE) assert_int_equal(db_savepoint_release(db), OK);
    assert_int_equal(db_commit(db, &unknown), OK);
}

/* What a transaction kept goes with it. */
static void undone(void **state)
{
    struct db_fixture *t = *state;
    db_keep(t->db, 1024 * 1024);
    int64_t thread = thread_made(t->db, "ann", "t", "before", 1);
    for (enum way way = COMMITTED; way <= REFUSED; way++) {
        struct thread found;
        assert_int_equal(db_begin(t->db), OK);
        if (way == UNDONE) assert_int_equal(db_savepoint(t->db), OK);
        assert_int_equal(thread_rename(t->db, thread, STR("after"), 2), OK);
        assert_int_equal(thread_by_id(t->db, &t->arena, thread, &found), OK);
        assert_true(has(t->db, HOT_THREAD, thread));
        end(t->db, way);
        assert_int_equal(has(t->db, HOT_THREAD, thread), way == COMMITTED);
        assert_int_equal(thread_by_id(t->db, &t->arena, thread, &found), OK);
        assert_str(found.title, way == COMMITTED ? STR("after") : STR("before"));
        assert_int_equal(thread_rename(t->db, thread, STR("before"), 1), OK);
    }
}

static bool kept_by_next(struct db *db, int64_t thread)
{
    bool unknown = false;
    assert_int_equal(db_begin(db), OK);
    bool kept = has(db, HOT_THREAD, thread);
    assert_int_equal(db_commit(db, &unknown), OK);
    return kept;
}

/* Somebody else writes into the file, or only reads it. */
static void others(void **state)
{
    struct db_fixture *t = *state;
    AUTO(db_closep) struct db *other = NULL;
    assert_int_equal(db_open(path_in(t->folder, "fermata.db"), DB_WRITER, &other, NULL), OK);
    db_keep(t->db, 1024 * 1024);
    int64_t thread = thread_made(t->db, "ann", "t", "before", 1);
    struct thread found;
    kept_by_next(t->db, thread); /* the first time nothing is known of others */
    assert_int_equal(thread_by_id(t->db, &t->arena, thread, &found), OK);
    assert_true(kept_by_next(t->db, thread));
    assert_int_equal(thread_find(other, &t->arena, STR("ann"), STR("t"), &found), OK);
    assert_true(kept_by_next(t->db, thread));
    assert_int_equal(thread_rename(other, thread, STR("by hand"), 2), OK);
    assert_false(kept_by_next(t->db, thread));
    assert_int_equal(thread_by_id(t->db, &t->arena, thread, &found), OK);
    assert_str(found.title, STR("by hand"));
    assert_int_equal(facts_append(t->db, thread, NULL, 0, 3), OK);
    assert_true(kept_by_next(t->db, thread));
}

#ifdef FERMATA_CHECKED
static bool aborts(struct db_fixture *t, int64_t thread, const char *sql)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        struct thread found;
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr) || db_script(t->db, sql)) _exit(1);
        enum err e = thread_by_id(t->db, &t->arena, thread, &found);
        _exit(e ? 2 : 0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* A statement that forgets what is kept is found at the next use: rows that differ, and rows that are
 * gone. */
static void forgotten(void **state)
{
    struct db_fixture *t = *state;
    static const char *const changes[] = {"SAVEPOINT a; UPDATE threads SET title='y'",
                                          "SAVEPOINT a; UPDATE threads SET bytes=NULL",
                                          "SAVEPOINT a; UPDATE threads SET owner=''",
                                          "SAVEPOINT a; DELETE FROM threads"};
    db_keep(t->db, 1024 * 1024);
    int64_t thread = thread_made(t->db, "ann", "t", "x", 1);
    assert_false(aborts(t, thread, "SELECT 1"));
    for (size_t i = 0; i < COUNT(changes); i++)
        if (!aborts(t, thread, changes[i])) fail_msg("not found: %s", changes[i]);
}
#endif

int test_hot(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DB(copies),    WITH_DB(appended), WITH_DB(asked),  WITH_DB(bounded), WITH_DB(too_long),
        WITH_DB(let_go_of), WITH_DB(numbers),  WITH_DB(undone), WITH_DB(others),
#ifdef FERMATA_CHECKED
        WITH_DB(forgotten),
#endif
    };
    return cmocka_run_group_tests_name("store/hot", tests, NULL, NULL);
}
