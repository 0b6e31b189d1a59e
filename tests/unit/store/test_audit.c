/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db/hot.h"
#include "store/table/audit.h"

#include <stdio.h>
#include <string.h>

#include "base/crypto.h"
#include "base/limits.h"
#include "check.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"

static const unsigned char key[HASH_BYTES] = "a key for the tests, 32 bytes...";
static const unsigned char other_key[HASH_BYTES] = "another key, of the same length.";

static void names(void **state)
{
    (void)state;
    static const char *const expected[] = {"opened", "resolved",     "refused",      "started",
                                           "ended",  "granted",      "revoked",      "moved",
                                           "closed", "chain.opened", "chain.closed", "adopted"};
    assert_int_equal(COUNT(expected), AUDIT_ACTION_COUNT);
    for (unsigned i = 0; i < COUNT(expected); i++)
        assert_string_equal(audit_action_name((enum audit_action)i), expected[i]);
}

/* ---- a trail ---- */

static struct audit_entry entry_of(int number)
{
    struct audit_entry entry = {.action = AUDIT_RESOLVED,
                                .interaction_id = STR("int_1"),
                                .call_id = STR("call_1"),
                                .who = STR("安娜"),
                                .via = STR("api"),
                                .why = STR("approve"),
                                .at = 1000 + number};
    memset(entry.hash, 'h', sizeof entry.hash);
    return entry;
}

static void add(struct db *db, int64_t thread, int count)
{
    for (int i = 0; i < count; i++) {
        struct audit_entry entry = entry_of(i);
        assert_int_equal(audit_add(db, key, thread, &entry), OK);
    }
}

/* Threads 1, 2 and 3 with 3, 1 and 2 entries; thread 4 with none. */
enum { THREADS = 3, ENTRIES = 6 };

static void trail_make(struct db *db)
{
    static const int counts[] = {3, 1, 2, 0};
    for (size_t i = 0; i < COUNT(counts); i++) {
        char name[] = {'t', (char)('1' + i), 0};
        int64_t thread = thread_made(db, "ann", name, "x", 1);
        assert_int_equal(thread, i + 1);
        add(db, thread, counts[i]);
    }
}

/* From the start to the end, in steps. */
static enum err check_in(struct db *db, const unsigned char *with, size_t limit,
                         struct audit_tally *tally, struct fault *fault)
{
    struct audit_place place = {0};
    *tally = (struct audit_tally){0};
    *fault = (struct fault){0};
    enum err e = OK;
    size_t steps = 0;
    for (bool end = false; !e && !end; steps++) {
        e = audit_check(db, with, &place, limit, tally, &end, fault);
        assert_true(steps < 100);
        if (!e) assert_true(tally->entries + tally->chains <= (steps + 1) * (limit + 1));
    }
    return e;
}

static void assert_intact(struct db *db, uint64_t threads, uint64_t entries)
{
    struct audit_tally tally;
    struct fault fault;
    for (size_t limit = 1; limit < 12; limit++) {
        if (check_in(db, key, limit, &tally, &fault)) fail_msg("broken: %s", fault.text);
        assert_int_equal(tally.chains, threads);
        assert_int_equal(tally.entries, entries);
    }
}

/* Found, at this place, however it is sliced. */
static void assert_broken(struct db *db, const char *place, const char *what)
{
    struct audit_tally tally;
    struct fault fault;
    for (size_t limit = 1; limit < 12; limit += 5) {
        enum err e = check_in(db, key, limit, &tally, &fault);
        if (e != ERR_DAMAGED) fail_msg("%s: %s", what, e ? fault.text : "not found");
        if (!strstr(fault.text, place))
            fail_msg("%s: got \"%s\", expected \"%s\"", what, fault.text, place);
    }
}

static void intact(void **state)
{
    struct db_fixture *t = *state;
    assert_intact(t->db, 0, 0);
    trail_make(t->db);
    assert_intact(t->db, THREADS, ENTRIES);
    add(t->db, 2, 5);
    add(t->db, 4, 1);
    assert_intact(t->db, THREADS + 1, ENTRIES + 6);

    struct audit_entry empty = {.action = AUDIT_OPENED};
    assert_int_equal(audit_add(t->db, key, 4, &empty), OK);
    assert_intact(t->db, THREADS + 1, ENTRIES + 7);
}

static void what_is_stored(void **state)
{
    struct db_fixture *t = *state;
    trail_make(t->db);
    struct stmt *s = db_prepare(t->db, "SELECT action, at, interaction_id, call_id, who, via, why,"
                                       " hash FROM audit WHERE chain=1 AND n=2");
    struct audit_entry entry = entry_of(1);
    assert_true(stmt_step(s));
    assert_int_equal(stmt_i64(s, 0), AUDIT_RESOLVED);
    assert_int_equal(stmt_i64(s, 1), 1001);
    assert_str(stmt_str(s, 2), entry.interaction_id);
    assert_str(stmt_str(s, 3), entry.call_id);
    assert_str(stmt_str(s, 4), entry.who);
    assert_str(stmt_str(s, 5), entry.via);
    assert_str(stmt_str(s, 6), entry.why);
    assert_str(stmt_str(s, 7), ((str){(const char *)entry.hash, HASH_BYTES}));
    assert_int_equal(stmt_end(s), OK);
}

static void another_key(void **state)
{
    struct db_fixture *t = *state;
    struct audit_tally tally;
    struct fault fault;
    trail_make(t->db);
    assert_int_equal(check_in(t->db, other_key, 100, &tally, &fault), ERR_DAMAGED);
    assert_non_null(strstr(fault.text, "chain server, entry 1"));
    assert_non_null(strstr(fault.text, "another secret"));
    assert_int_equal(tally.entries, 0);

    /* A chain that went on under another key is told from a forged one, too. */
    struct audit_entry entry = entry_of(9);
    assert_int_equal(audit_add(t->db, other_key, 2, &entry), OK);
    assert_broken(t->db, "(ann/t2), entry 2", "went on under another key");
    assert_broken(t->db, "another secret", "went on under another key");
}

/* ---- changes ---- */

static int64_t number_of(struct db *db, const char *sql)
{
    int64_t number = 0;
    assert_int_equal(db_number(db_prepare_static(db, sql), &number), OK);
    return number;
}

/* Every byte of every column of an entry, and of the head. */
static void every_byte(void **state)
{
    struct db_fixture *t = *state;
    enum { NUMBER, TEXT, BLOB };
    static const struct {
        int kind;
        const char *place, *read, *write;
    } rows[] = {
#define ENTRY(kind, column)                                             \
    {kind, "(ann/t1), entry 2: ",                                       \
     "SELECT " #column ", length(CAST(" #column " AS BLOB)) FROM audit" \
     " WHERE chain=1 AND n=2",                                          \
     "UPDATE audit SET " #column "=?1 WHERE chain=1 AND n=2"}
#define HEAD(kind, column)                                                            \
    {                                                                                 \
        kind, "(ann/t1), entry 3: ",                                                  \
            "SELECT " #column ", length(CAST(" #column " AS BLOB)) FROM audit_chains" \
            " WHERE chain=1",                                                         \
            "UPDATE audit_chains SET " #column "=?1 WHERE chain=1"                    \
    }
#define SERVER(kind, column)                                                   \
    {                                                                          \
        kind, "chain server, entry 1: ",                                       \
            "SELECT " #column ", length(CAST(" #column " AS BLOB)) FROM audit" \
            " WHERE chain=0 AND n=1",                                          \
            "UPDATE audit SET " #column "=?1 WHERE chain=0 AND n=1"            \
    }
        ENTRY(NUMBER, action), ENTRY(NUMBER, at),        ENTRY(TEXT, interaction_id),
        ENTRY(TEXT, call_id),  ENTRY(TEXT, who),         ENTRY(TEXT, via),
        ENTRY(TEXT, why),      ENTRY(BLOB, hash),        ENTRY(BLOB, seal),
        HEAD(NUMBER, count),   HEAD(BLOB, last),         HEAD(BLOB, seal),
        SERVER(TEXT, of),      SERVER(NUMBER, of_chain),
    };
    trail_make(t->db);
    for (size_t i = 0; i < COUNT(rows); i++) {
        char bytes[64];
        struct stmt *s = db_prepare_static(t->db, rows[i].read);
        assert_true(stmt_step(s));
        int64_t number = rows[i].kind == NUMBER ? stmt_i64(s, 0) : 0;
        str value = rows[i].kind == NUMBER ? STR_EMPTY : stmt_str(s, 0);
        assert_true(value.len <= sizeof bytes);
        memcpy(bytes, value.p, value.len);
        value.p = bytes;
        assert_int_equal(stmt_end(s), OK);
        size_t changes = rows[i].kind == NUMBER ? 63 : value.len;
        assert_true(changes > 0);
        for (size_t k = 0; k < changes; k++) {
            assert_int_equal(db_savepoint(t->db), OK);
            s = db_prepare_static(t->db, rows[i].write);
            if (rows[i].kind != NUMBER) bytes[k] ^= 1;
            if (rows[i].kind == NUMBER) stmt_bind_i64(s, 1, number ^ (int64_t)(1ULL << k));
            if (rows[i].kind == TEXT) stmt_bind_str(s, 1, value);
            if (rows[i].kind == BLOB) stmt_bind_blob(s, 1, value);
            assert_int_equal(stmt_run(s), OK);
            if (rows[i].kind != NUMBER) bytes[k] ^= 1;
            assert_broken(t->db, rows[i].place, rows[i].write);
            assert_int_equal(db_savepoint_undo(t->db), OK);
            assert_int_equal(db_savepoint_release(t->db), OK);
        }
    }
    assert_intact(t->db, THREADS, ENTRIES);
}

/* Rows that were removed, added, moved, made shorter or longer. After each of them the chain is
 * appended to, and the change must still be found. */
#define COLUMNS "chain, n, action, at, interaction_id, call_id, who, via, why, hash, seal"
static const struct {
    const char *place, *sql;
} changes[] = {
    {"(ann/t1), entry 1: it is missing", "DELETE FROM audit WHERE chain=1 AND n=1"},
    {"(ann/t1), entry 2: it is missing", "DELETE FROM audit WHERE chain=1 AND n=2"},
    {"(ann/t1), entry 2: entries behind it were removed",
     "DELETE FROM audit WHERE chain=1 AND n=3"},
    {": it is missing", "DELETE FROM audit WHERE chain=3"},
    {": it is missing", "DELETE FROM audit_chains WHERE chain=2"},
    {": it is missing", "DELETE FROM audit WHERE chain=2; DELETE FROM audit_chains WHERE chain=2"},
    {"chain server: it is missing",
     "DELETE FROM audit WHERE chain=0; DELETE FROM audit_chains WHERE chain=0"},
    {": it is missing", "UPDATE audit_chains SET name='chn_other' WHERE chain=2"},
    /* As if it had never been told of any. */
    {"(ann/t1), entry 3: the head of the chain",
     "DELETE FROM audit WHERE chain=0; DELETE FROM audit_chains WHERE chain=0;"
     " UPDATE audit_chains SET known=0"},
    /* The end cut off, and the head put back to where it was then. */
    {"(ann/t1), entry 2: the head of the chain was changed",
     "UPDATE audit_chains SET count=2, last=(SELECT seal FROM audit WHERE chain=1 AND n=2)"
     " WHERE chain=1; DELETE FROM audit WHERE chain=1 AND n=3"},
    {"(ann/t1), entry 2: the head of the chain",
     "UPDATE audit_chains SET count=2, last=(SELECT seal FROM audit WHERE chain=1 AND n=2),"
     " seal=(SELECT seal FROM audit WHERE chain=1 AND n=2)"
     " WHERE chain=1; DELETE FROM audit WHERE chain=1 AND n=3"},
    {": it is missing",
     "DELETE FROM audit_chains WHERE chain=1; DELETE FROM audit WHERE chain=1 AND n=3"},
    {": it is missing",
     "DELETE FROM audit_chains WHERE chain=1; DELETE FROM audit WHERE chain=1 AND n<3"},
    /* Two changed places. */
    {"(ann/t1), entry 1: its seal does not fit",
     "UPDATE audit SET n=9 WHERE chain=1 AND n=1; UPDATE audit SET n=1 WHERE chain=1 AND n=2;"
     " UPDATE audit SET n=2 WHERE chain=1 AND n=9"},
    /* The first of one thread stands for the first of another. */
    {"(ann/t1), entry 1: its seal does not fit", "DELETE FROM audit WHERE chain=1 AND n=1;"
                                                 " UPDATE audit SET chain=1 WHERE chain=3 AND n=1"},
    {": it is missing",
     "UPDATE audit SET chain=4 WHERE chain=2; UPDATE audit_chains SET chain=4 WHERE chain=2"},
    {"(ann/t2), entry 1: the head of the chain was changed",
     "UPDATE audit_chains SET (count, last, seal)=(SELECT count, last, seal FROM audit_chains"
     " WHERE chain=1) WHERE chain=2"},
    /* An entry more: at the end, as a copy; and before the first. */
    {"(ann/t1), entry 4: its seal does not fit",
     "INSERT INTO audit (" COLUMNS
     ") SELECT chain, 4, action, at, interaction_id, call_id, who, via, why, hash,"
     " seal FROM audit WHERE chain=1 AND n=3"},
    {"(ann/t1), entry 4: it is missing",
     "INSERT INTO audit (" COLUMNS
     ") SELECT chain, 6, action, at, interaction_id, call_id, who, via, why, hash,"
     " seal FROM audit WHERE chain=1 AND n=3"},
    /* A byte moved from one column to the next. */
    {"(ann/t3), entry 2: its seal does not fit",
     "UPDATE audit SET who=who||'a', via='pi' WHERE chain=3 AND n=2"},
    {"(ann/t3), entry 2: its seal does not fit", "UPDATE audit SET why='' WHERE chain=3 AND n=2"},
    {"(ann/t3), entry 2: its seal does not fit",
     "UPDATE audit SET why=why||char(0) WHERE chain=3 AND n=2"},
    {"(ann/t3), entry 2: its seal does not fit", "UPDATE audit SET hash=x'' WHERE chain=3 AND n=2"},
    {"(ann/t3), entry 1: it was sealed with another secret, or its seal was changed",
     "UPDATE audit SET seal=x'' WHERE chain=3 AND n=1"},
    {"(ann/t3), entry 2: it is longer than any of ours",
     "UPDATE audit SET why=printf('%.*c', 100000, 'x') WHERE chain=3 AND n=2"},
    {"(ann/t2), entry 1: the head of the chain", "UPDATE audit_chains SET last=x'' WHERE chain=2"},
    {"(ann/t2), entry 1: the head of the chain",
     "UPDATE audit_chains SET seal=zeroblob(100000), last=zeroblob(100000) WHERE chain=2"},
    {"(ann/t2), entry 1: the head of the chain",
     "UPDATE audit_chains SET count=9223372036854775807 WHERE chain=2"},
};

static void rows_changed(void **state)
{
    struct db_fixture *t = *state;
    trail_make(t->db);
    for (size_t i = 0; i < COUNT(changes); i++) {
        assert_int_equal(db_savepoint(t->db), OK);
        assert_int_equal(db_script(t->db, changes[i].sql), OK);
        assert_broken(t->db, changes[i].place, changes[i].sql);
        assert_int_equal(db_savepoint_undo(t->db), OK);
        assert_int_equal(db_savepoint_release(t->db), OK);
    }
    assert_intact(t->db, THREADS, ENTRIES);
}

/* Nobody can make use of the server to put a seal on what he changed. */
static void appending_mends_nothing(void **state)
{
    struct db_fixture *t = *state;
    trail_make(t->db);
    for (size_t i = 0; i < COUNT(changes); i++) {
        assert_int_equal(db_savepoint(t->db), OK);
        assert_int_equal(db_script(t->db, changes[i].sql), OK);
        for (int64_t thread = 1; thread <= 4; thread++) add(t->db, thread, 2);
        assert_broken(t->db, "chain ", changes[i].sql);
        assert_int_equal(db_savepoint_undo(t->db), OK);
        assert_int_equal(db_savepoint_release(t->db), OK);
    }
    for (int64_t thread = 1; thread <= 4; thread++) add(t->db, thread, 2);
    assert_intact(t->db, THREADS + 1, ENTRIES + 8);
}

static void names_that_are_no_text(void **state)
{
    struct db_fixture *t = *state;
    trail_make(t->db);
    assert_int_equal(db_script(t->db,
                               "UPDATE audit_chains SET owner='a'||char(27)||'[31m' WHERE chain=1;"
                               "UPDATE audit SET why='' WHERE chain=1 AND n=1"),
                     OK);
    assert_broken(t->db, "(a?[31m/t1), entry 1", "an escape");
    assert_int_equal(db_script(t->db, "UPDATE audit_chains SET owner='安娜' WHERE chain=1"), OK);
    assert_broken(t->db, "(安娜/t1), entry 1", "Chinese");
    assert_int_equal(
        db_script(t->db, "UPDATE audit_chains SET owner=CAST(x'e5ae' AS TEXT) WHERE chain=1"), OK);
    assert_broken(t->db, "(\?\?/t1), entry 1", "half a character");
}

/* ---- ends that are kept from one transaction to the next ---- */

enum { KEEP_BYTES = 100 * 1000 };

static void begin(struct db *db)
{
    assert_int_equal(db_begin(db), OK);
}

static void commit(struct db *db)
{
    bool unknown;
    assert_int_equal(db_commit(db, &unknown), OK);
}

static void in_transactions(void **state)
{
    struct db_fixture *t = *state;
    db_keep(t->db, KEEP_BYTES);
    trail_make(t->db);
    for (int i = 0; i < 3; i++) {
        begin(t->db);
        add(t->db, 1, 2);
        add(t->db, 4, 1); /* which opens it */
        commit(t->db);
        assert_intact(t->db, THREADS + 1, ENTRIES + 3 * (i + 1));
    }
    add(t->db, 1, 1); /* alone */
    begin(t->db);
    add(t->db, 1, 1);
    assert_int_equal(audit_close(t->db, key, 1, STR("ann"), STR("api"), 2000), OK);
    commit(t->db);
    begin(t->db);
    struct audit_entry entry = entry_of(9);
    assert_int_equal(audit_add(t->db, key, 1, &entry), ERR_NOT_FOUND);
    commit(t->db);
    assert_intact(t->db, THREADS + 1, ENTRIES + 9 + 3);
}

/* What was undone is not gone on from; nor what failed half way. */
static void undone(void **state)
{
    struct db_fixture *t = *state;
    db_keep(t->db, KEEP_BYTES);
    trail_make(t->db);
    begin(t->db);
    add(t->db, 1, 1);
    commit(t->db);
    begin(t->db);
    add(t->db, 1, 2);
    add(t->db, 4, 1);
    assert_int_equal(db_rollback(t->db), OK);
    begin(t->db);
    add(t->db, 1, 1);
    assert_int_equal(db_savepoint(t->db), OK);
    add(t->db, 1, 1);
    add(t->db, 4, 3);
    assert_int_equal(db_savepoint_undo(t->db), OK);
    assert_int_equal(db_savepoint_release(t->db), OK);
    add(t->db, 4, 1);
    commit(t->db);
    assert_intact(t->db, THREADS + 1, ENTRIES + 3);

    begin(t->db);
    struct audit_entry entries[] = {entry_of(1), entry_of(2)};
    char text[AUDIT_ENTRY_BYTES_MAX];
    memset(text, 'x', sizeof text);
    entries[1].why = (str){text, sizeof text};
    assert_int_equal(audit_add_all(t->db, key, 1, entries, 2), ERR_TOO_LARGE);
    assert_int_equal(db_rollback(t->db), OK);
    begin(t->db);
    add(t->db, 1, 1);
    commit(t->db);
    assert_intact(t->db, THREADS + 1, ENTRIES + 4);
}

/* As many chains as there is room for, and some more. */
static void many_kept(void **state)
{
    struct db_fixture *t = *state;
    enum { MANY = 30 };
    db_keep(t->db, 4000);
    begin(t->db);
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i + 1);
        assert_int_equal(thread_made(t->db, "ann", name, "x", 1), i + 1);
    }
    commit(t->db);
    for (int round = 0; round < 2; round++) {
        begin(t->db);
        for (int i = 0; i < MANY; i++) add(t->db, i + 1, 1);
        commit(t->db);
    }
    struct audit_tally tally;
    struct fault fault;
    struct audit_place place = {0};
    bool end = false;
    tally = (struct audit_tally){0};
    assert_int_equal(audit_check(t->db, key, &place, 10 * MANY, &tally, &end, &fault), OK);
    assert_true(end);
    assert_int_equal(tally.entries, 2 * MANY);
}

/* Somebody else at the file, while an end is kept: appending goes on from what is there, and mends
 * nothing. */
static void changed_by_others(void **state)
{
    struct db_fixture *t = *state;
    static const struct {
        const char *sql, *place;
    } rows[] = {
        {"UPDATE audit_chains SET count=2 WHERE chain=1", "(ann/t1), entry"},
        {"DELETE FROM audit_chains WHERE chain=1", "it is missing"},
        {"INSERT INTO audit SELECT chain, n+1, action, at, interaction_id, call_id, who, via, why,"
         " hash, seal, of, of_chain, total, last FROM audit WHERE chain=1 AND n=4",
         "(ann/t1), entry 5"},
        {"DELETE FROM audit WHERE chain=1 AND n=4", "(ann/t1), entry 4"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (i) {
            db_fixture_teardown(state);
            db_fixture_setup(state);
            t = *state;
        }
        db_keep(t->db, KEEP_BYTES);
        trail_make(t->db);
        begin(t->db);
        add(t->db, 1, 1);
        commit(t->db);
        struct db *other = NULL;
        assert_int_equal(db_open(path_in(t->folder, "fermata.db"), DB_WRITER, &other, NULL), OK);
        assert_int_equal(db_script(other, rows[i].sql), OK);
        db_close(other);
        begin(t->db);
        add(t->db, 1, 1);
        commit(t->db);
        assert_broken(t->db, rows[i].place, rows[i].sql);
    }
}

/* Several at once are as one after the other. */
static void all_at_once(void **state)
{
    struct db_fixture *t = *state;
    trail_make(t->db);
    const struct audit_entry entries[] = {entry_of(3), entry_of(4), entry_of(5)};
    assert_int_equal(audit_add_all(t->db, key, 1, entries, 0), OK);
    assert_int_equal(audit_add_all(t->db, key, 1, entries, 3), OK);
    assert_int_equal(audit_add_all(t->db, key, 4, entries, 3), OK);
    assert_int_equal(audit_add_all(t->db, key, 99, entries, 3), ERR_NOT_FOUND);
    assert_intact(t->db, THREADS + 1, ENTRIES + 6);
    assert_int_equal(number_of(t->db, "SELECT max(n) FROM audit WHERE chain=1 AND at=1005"), 6);
    assert_int_equal(number_of(t->db, "SELECT at FROM audit WHERE of_chain=4"), 1003);
}

/* ---- limits and life ---- */

static void too_large(void **state)
{
    struct db_fixture *t = *state;
    char text[AUDIT_ENTRY_BYTES_MAX];
    trail_make(t->db);
    memset(text, 'x', sizeof text);
    struct audit_entry entry = entry_of(0);
    entry.why = (str){text, sizeof text};
    assert_int_equal(audit_add(t->db, key, 1, &entry), ERR_TOO_LARGE);
    assert_intact(t->db, THREADS, ENTRIES);
    entry.why.len = sizeof text - 400;
    assert_int_equal(audit_add(t->db, key, 1, &entry), OK);
    assert_intact(t->db, THREADS, ENTRIES + 1);
    assert_int_not_equal(audit_add(t->db, key, 99, &entry), OK); /* there is no such thread */
    assert_int_equal(number_of(t->db, "SELECT count(*) FROM audit WHERE chain=99"), 0);
}

/* Deleting a thread closes its chain, which stays; whoever takes it away then is found, too. */
static void outlives_its_thread(void **state)
{
    struct db_fixture *t = *state;
    struct audit_entry entry = entry_of(9);
    trail_make(t->db);
    assert_int_equal(audit_close(t->db, key, 1, STR("ann"), STR("api"), 2000), OK);
    assert_int_equal(audit_close(t->db, key, 4, STR("ann"), STR("api"), 2000), OK); /* has none */
    assert_int_equal(thread_delete(t->db, 1), OK);
    assert_int_equal(audit_close(t->db, key, 1, STR("eve"), STR("api"), 2001), OK); /* is closed */
    assert_int_equal(audit_add(t->db, key, 1, &entry), ERR_NOT_FOUND);
    assert_intact(t->db, THREADS, ENTRIES + 1);
    struct audit_tally tally;
    struct fault fault;
    assert_int_equal(check_in(t->db, key, 100, &tally, &fault), OK);
    assert_int_equal(tally.closed, 1);
    struct stmt *s = db_prepare(t->db, "SELECT action, who, total, last=(SELECT seal FROM audit"
                                       " WHERE chain=1 AND n=3) FROM audit"
                                       " WHERE chain=1 AND n=4");
    assert_true(stmt_step(s));
    assert_int_equal(stmt_i64(s, 0), AUDIT_CLOSED);
    assert_str(stmt_str(s, 1), STR("ann"));
    assert_int_equal(stmt_i64(s, 2), 3);
    assert_int_equal(stmt_i64(s, 3), 1);
    assert_int_equal(stmt_end(s), OK);
    static const struct {
        const char *place, *sql;
    } rows[] = {
        {": it is missing",
         "DELETE FROM audit WHERE chain=1; DELETE FROM audit_chains WHERE chain=1"},
        {": it was closed with 4 entries",
         "DELETE FROM audit WHERE chain=1 AND n=4; UPDATE audit_chains SET count=3, closed=0,"
         " last=(SELECT seal FROM audit WHERE chain=1 AND n=3) WHERE chain=1"},
        {"(ann/t1), entry 4: its seal does not fit",
         "UPDATE audit SET who='eve' WHERE chain=1 AND n=4"},
        {"(ann/t1), entry 4: its seal does not fit",
         "UPDATE audit SET total=2 WHERE chain=1 AND n=4"},
        {"chain server, entry 4: its seal does not fit",
         "UPDATE audit SET total=3 WHERE chain=0 AND n=4"},
        {"chain server, entry 3: entries behind it were removed",
         "DELETE FROM audit WHERE chain=0 AND n=4"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(db_savepoint(t->db), OK);
        assert_int_equal(db_script(t->db, rows[i].sql), OK);
        assert_broken(t->db, rows[i].place, rows[i].sql);
        assert_int_equal(db_savepoint_undo(t->db), OK);
        assert_int_equal(db_savepoint_release(t->db), OK);
    }
}

/* Chains from before the chain `server` are made known to it, page by page; one that grows or is
 * closed meanwhile is then known already. */
/* The heads as they were before there was a chain of chains: their seals do not have that they are
 * known. The key's id, before each seal, stays. */
static void heads_from_before(struct db *db)
{
    assert_int_equal(db_script(db, "DELETE FROM audit WHERE chain=0;"
                                   "DELETE FROM audit_chains WHERE chain=0;"
                                   "UPDATE audit_chains SET known=0"),
                     OK);
    for (int64_t chain = 1; chain <= THREADS; chain++) {
        char bytes[256] = {0}, seal[AUDIT_SEAL_BYTES];
        size_t len = 7;
        bytes[len++] = 4; /* the length of "head", in 8 bytes, as every number */
        memcpy(bytes + len, "head", 4);
        len += 4;
        struct stmt *s =
            db_prepare(db, "SELECT count, last, seal FROM audit_chains WHERE chain=?1");
        stmt_bind_i64(s, 1, chain);
        assert_true(stmt_step(s));
        str last = stmt_str(s, 1);
        const int64_t numbers[] = {chain, stmt_i64(s, 0), (int64_t)last.len};
        for (size_t i = 0; i < COUNT(numbers); i++, len += 8) bytes[len + 7] = (char)numbers[i];
        memcpy(bytes + len, last.p, last.len);
        len += last.len;
        memcpy(seal, stmt_str(s, 2).p, AUDIT_SEAL_BYTES);
        assert_int_equal(stmt_end(s), OK);
        crypto_hmac((str){(const char *)key, HASH_BYTES}, (str){bytes, len},
                    (unsigned char *)seal + AUDIT_SEAL_BYTES - HASH_BYTES);
        s = db_prepare(db, "UPDATE audit_chains SET seal=?2 WHERE chain=?1");
        stmt_bind_i64(s, 1, chain);
        stmt_bind_blob(s, 2, (str){seal, sizeof seal});
        assert_int_equal(stmt_run(s), OK);
    }
}

static void taken_over(void **state)
{
    struct db_fixture *t = *state;
    bool end = false;
    trail_make(t->db);
    heads_from_before(t->db);
    hot_drop_all(t->db); /* as when another program has written */
    assert_intact(t->db, THREADS, ENTRIES);
    add(t->db, 2, 1);
    assert_int_equal(audit_take_over(t->db, key, 1, 5000, &end), OK);
    assert_false(end);
    assert_int_equal(audit_close(t->db, key, 3, STR("ann"), STR("api"), 5001), OK);
    assert_int_equal(audit_take_over(t->db, key, 1, 5000, &end), OK);
    assert_true(end);
    assert_int_equal(number_of(t->db, "SELECT count(*) FROM audit WHERE chain=0 AND action=9"), 3);
    assert_intact(t->db, THREADS, ENTRIES + 2);
    assert_int_equal(db_script(t->db, "DELETE FROM audit WHERE chain=1;"
                                      "DELETE FROM audit_chains WHERE chain=1"),
                     OK);
    assert_broken(t->db, ": it is missing", "one from before");
}

/* What belongs to no thread. */
static void notes(void **state)
{
    struct db_fixture *t = *state;
    struct audit_entry entry = entry_of(1);
    assert_int_equal(audit_note(t->db, key, &entry), OK);
    trail_make(t->db);
    assert_int_equal(audit_note(t->db, key, &entry), OK);
    assert_intact(t->db, THREADS, ENTRIES);
    assert_int_equal(db_script(t->db, "UPDATE audit SET who='eve' WHERE chain=0 AND n=5"), OK);
    assert_broken(t->db, "chain server, entry 5: its seal does not fit", "a note");
}

/* The trail is in use while it is checked in steps. */
static void changes_between_steps(void **state)
{
    struct db_fixture *t = *state;
    struct audit_place place = {0};
    struct audit_tally tally = {0};
    struct fault fault = {0};
    bool end = false;
    trail_make(t->db);
    assert_int_equal(audit_check(t->db, key, &place, 4, &tally, &end, &fault), OK);
    assert_int_equal(place.thread, 0); /* the chain `server`, of three entries */
    assert_false(place.inside);
    const struct audit_place first = place;
    assert_int_equal(audit_check(t->db, key, &place, 2, &tally, &end, &fault), OK);
    assert_int_equal(tally.entries, 2);
    assert_true(place.inside);
    add(t->db, 1, 2); /* it grows where we are, before us, and behind us */
    add(t->db, 3, 1);
    assert_int_equal(audit_check(t->db, key, &place, 4, &tally, &end, &fault), OK);
    assert_int_equal(place.thread, 1);
    assert_false(place.inside);
    add(t->db, 1, 1);
    assert_int_equal(audit_check(t->db, key, &place, 3, &tally, &end, &fault), OK);
    assert_int_equal(place.thread, 3);
    assert_true(place.inside);
    assert_int_equal(place.n, 1);
    assert_int_equal(audit_close(t->db, key, 3, STR("ann"), STR("api"), 9), OK); /* and ends */
    assert_int_equal(audit_check(t->db, key, &place, 9, &tally, &end, &fault), OK);
    assert_true(end);
    assert_int_equal(tally.entries, 5 + 1 + 4);

    /* Cut off where we are: found. */
    place = first;
    assert_int_equal(audit_check(t->db, key, &place, 2, &tally, &end, &fault), OK);
    assert_int_equal(db_script(t->db, "DELETE FROM audit WHERE chain=1 AND n>2"), OK);
    assert_int_equal(audit_check(t->db, key, &place, 9, &tally, &end, &fault), ERR_DAMAGED);
    assert_non_null(strstr(fault.text, "(ann/t1), entry 2: entries behind it"));
}

/* With the writer's connection open, as under a server; and once more without. */
static void folders(void **state)
{
    struct db_fixture *t = *state;
    char empty[FOLDER_BYTES];
    struct audit_tally tally = {42, 42, 42};
    struct fault fault = {0};
    folder_make(empty);
    assert_int_equal(audit_check_folder(empty, key, &tally, &fault), ERR_NOT_FOUND);
    folder_remove(empty);
    assert_int_equal(tally.chains, 42);

    trail_make(t->db);
    for (int i = 0; i < 2; i++) {
        if (audit_check_folder(t->folder, key, &tally, &fault)) fail_msg("%s", fault.text);
        assert_int_equal(tally.chains, THREADS);
        assert_int_equal(tally.entries, ENTRIES);
        db_close(t->db);
        t->db = NULL;
    }
    assert_int_equal(audit_check_folder(t->folder, other_key, &tally, &fault), ERR_DAMAGED);

    /* From before there was a trail: the tables are not asked for. */
    assert_int_equal(db_open(path_in(t->folder, "fermata.db"), DB_WRITER, &t->db, NULL), OK);
    assert_int_equal(db_script(t->db, "DROP TABLE audit; PRAGMA user_version=2"), OK);
    assert_int_equal(audit_check_folder(t->folder, key, &tally, &fault), OK);
    assert_int_equal(tally.chains + tally.entries, 0);
    assert_int_equal(db_script(t->db, "PRAGMA user_version=999"), OK);
    assert_int_equal(audit_check_folder(t->folder, key, &tally, &fault), ERR_CONFIG);
}

int test_audit(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        WITH_DB(intact),
        WITH_DB(what_is_stored),
        WITH_DB(another_key),
        WITH_DB(every_byte),
        WITH_DB(rows_changed),
        WITH_DB(appending_mends_nothing),
        WITH_DB(names_that_are_no_text),
        WITH_DB(in_transactions),
        WITH_DB(undone),
        WITH_DB(many_kept),
        WITH_DB(changed_by_others),
        WITH_DB(all_at_once),
        WITH_DB(too_large),
        WITH_DB(outlives_its_thread),
        WITH_DB(taken_over),
        WITH_DB(notes),
        WITH_DB(changes_between_steps),
        WITH_DB(folders),
    };
    return db_fixture_group("store/audit", tests, COUNT(tests));
}
