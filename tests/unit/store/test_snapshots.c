/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "check.h"
#include "store/conversation_kit.h"
#include "store/db/hot.h"
#include "store/fixture.h"

static enum err save(struct db *db, int64_t run, int64_t version, int64_t epoch, str bytes)
{
    unsigned char hash[HASH_BYTES];
    crypto_sha256(bytes, hash);
    return snapshot_save(db, run, version, epoch, bytes, hash);
}

static int64_t run_for(struct db *db)
{
    return run_made(db, thread_made(db, "alice", "t", "x", 1), "r", RUN_RUNNING);
}

/* Where it stood before there was one in the row of its run. */
static void put_back(struct db *db)
{
    assert_int_equal(
        by_hand(db, "INSERT INTO snapshots SELECT id, version, epoch, hash, snapshot FROM runs"
                    " WHERE version>0;"
                    "UPDATE runs SET version=0, epoch=0, hash=x'', snapshot=x''"),
        OK);
}

static int64_t stored(struct db *db)
{
    int64_t count = -1;
    assert_int_equal(db_number(db_prepare(db,
                                          "SELECT (SELECT count(*) FROM snapshots)+(SELECT"
                                          " count(*) FROM runs WHERE version>0 OR snapshot<>x'')"),
                               &count),
                     OK);
    return count;
}

/* Version and epoch are compared: each step on what the steps before it left. */
static void versions(struct db_fixture *t, bool old)
{
    int64_t run = run_for(t->db);
    static const struct {
        int64_t version, epoch;
        enum err expected;
        int64_t stored; /* version afterwards */
    } steps[] = {
        {1, 1, ERR_BUSY, 0}, /* there is none to replace */
        {0, 2, OK, 1},       {0, 2, ERR_BUSY, 1}, {2, 2, ERR_BUSY, 1},
        {1, 2, OK, 2},       {1, 2, ERR_BUSY, 2}, /* written already */
        {2, 1, ERR_BUSY, 2},                      /* a holder that lost its lease */
        {2, 3, OK, 3},                            /* the next holder */
        {3, 2, ERR_BUSY, 3}, {3, 3, OK, 4},
    };
    for (size_t i = 0; i < COUNT(steps); i++) {
        int64_t version = 0;
        char text[] = {(char)('a' + i), 0, 'z'};
        if (old) put_back(t->db);
        enum err e = save(t->db, run, steps[i].version, steps[i].epoch, (str){text, sizeof text});
        if (e != steps[i].expected) fail_msg("step %zu: %s", i, err_code(e));
        assert_int_equal(stored(t->db), steps[i].stored ? 1 : 0);
        str bytes = STR_EMPTY;
        e = snapshot_load(t->db, &t->arena, run, &version, &bytes);
        assert_int_equal(e, steps[i].stored ? OK : ERR_NOT_FOUND);
        assert_int_equal(version, steps[i].stored);
        if (steps[i].expected == OK) assert_str(bytes, ((str){text, sizeof text}));
    }
}

static void versions_and_epochs(void **state)
{
    versions(*state, false);
}

static void versions_and_epochs_from_before(void **state)
{
    versions(*state, true);
}

/* A run that ends has none any more. */
static enum err end(struct db *db, int64_t run, int64_t version, int64_t epoch)
{
    struct run row = {.id = run, .run_id = STR("r"), .status = RUN_COMPLETED, .ended = 1};
    return run_save(db, &row, version, &(struct snapshot){.epoch = epoch});
}

static void deletes(struct db_fixture *t, bool old)
{
    int64_t run = run_for(t->db);
    static const struct {
        bool stored; /* version 2 under epoch 5, before the call */
        int64_t version, epoch;
        enum err expected;
    } rows[] = {
        {true, 2, 5, OK},       {true, 2, 6, OK},        {true, -1, 5, OK},
        {true, 1, 5, ERR_BUSY}, {true, 3, 5, ERR_BUSY},  {true, 0, 5, ERR_BUSY},
        {true, 2, 4, ERR_BUSY}, {true, -1, 4, ERR_BUSY}, {false, 0, 5, OK},
        {false, -1, 5, OK},     {false, 2, 5, ERR_BUSY},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(by_hand(t->db, "UPDATE runs SET version=0, epoch=0, snapshot=x'';"
                                        "DELETE FROM snapshots"),
                         OK);
        if (rows[i].stored) {
            assert_int_equal(save(t->db, run, 0, 5, STR("a")), OK);
            assert_int_equal(save(t->db, run, 1, 5, STR("b")), OK);
        }
        if (old) put_back(t->db);
        enum err e = end(t->db, run, rows[i].version, rows[i].epoch);
        if (e != rows[i].expected) fail_msg("row %zu: %s", i, err_code(e));
        assert_int_equal(stored(t->db), rows[i].stored && e ? 1 : 0);
    }
}

static void deleting(void **state)
{
    deletes(*state, false);
}

/* Also of a run whose state could not be read, by whichever version: nothing of it is left behind, and
 * who has lost the lease is refused. */
static void deleting_from_before(void **state)
{
    deletes(*state, true);
}

static void put_raw(struct db *db, str bytes, str hash)
{
    struct stmt *s = db_prepare(db, "UPDATE runs SET snapshot=?1, hash=?2");
    stmt_bind_blob(s, 1, bytes);
    stmt_bind_blob(s, 2, hash);
    assert_int_equal(stmt_run(s), OK);
    hot_drop_all(db);
}

/* Every byte of both, flipped; and lengths that are not right. */
static void damage(void **state)
{
    struct db_fixture *t = *state;
    int64_t run = run_for(t->db), version = 42;
    char bytes[] = "{\"version\":1,\"phase\":\"chatting\"}";
    char hash[HASH_BYTES];
    str b = {bytes, sizeof bytes - 1}, h = {hash, sizeof hash}, got = STR("untouched");
    crypto_sha256(b, (unsigned char *)hash);
    assert_int_equal(save(t->db, run, 0, 1, b), OK);
    for (size_t i = 0; i < b.len + h.len; i++) {
        char *at = i < b.len ? &bytes[i] : &hash[i - b.len];
        *at ^= 0x20;
        put_raw(t->db, b, h);
        *at ^= 0x20;
        assert_int_equal(snapshot_load(t->db, &t->arena, run, &version, &got), ERR_DAMAGED);
    }
    const struct {
        str bytes, hash;
        enum err expected;
    } rows[] = {
        {{bytes, b.len - 1}, h, ERR_DAMAGED},
        {STR_EMPTY, h, ERR_DAMAGED},
        {b, STR_EMPTY, ERR_DAMAGED},
        {b, {hash, h.len - 1}, ERR_DAMAGED},
        {b, h, OK},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(version, 42);
        assert_str(got, STR("untouched"));
        put_raw(t->db, rows[i].bytes, rows[i].hash);
        assert_int_equal(snapshot_load(t->db, &t->arena, run, &version, &got), rows[i].expected);
    }
    assert_str(got, b);
}

static int64_t version_of(struct db_fixture *t, int64_t run)
{
    int64_t version = 0;
    str bytes = STR_EMPTY;
    enum err e = snapshot_load(t->db, &t->arena, run, &version, &bytes);
    assert_true(e == OK || e == ERR_NOT_FOUND);
    return version;
}

/* Whoever holds the version of before is refused, and the bytes are as they were. */
static void touched(void **state)
{
    struct db_fixture *t = *state;
    int64_t run = run_for(t->db), version = 0;
    str bytes = STR_EMPTY;
    assert_int_equal(snapshot_touch(t->db, run), OK); /* there is none */
    assert_int_equal(version_of(t, run), 0);
    assert_int_equal(save(t->db, run, 0, 3, STR("state")), OK);
    assert_int_equal(snapshot_touch(t->db, run), OK);
    assert_int_equal(snapshot_load(t->db, &t->arena, run, &version, &bytes), OK);
    assert_int_equal(version, 2);
    assert_str(bytes, STR("state"));
    assert_int_equal(save(t->db, run, 1, 3, STR("late")), ERR_BUSY);
    assert_int_equal(end(t->db, run, 1, 3), ERR_BUSY);
    assert_int_equal(save(t->db, run, 2, 2, STR("lost the lease")), ERR_BUSY);
    assert_int_equal(save(t->db, run, 2, 3, STR("next")), OK);
    assert_int_equal(snapshot_touch(t->db, 99), OK);
    put_back(t->db); /* one from before */
    assert_int_equal(snapshot_touch(t->db, run), OK);
    assert_int_equal(version_of(t, run), 4);
    assert_int_equal(save(t->db, run, 3, 3, STR("late")), ERR_BUSY);
    assert_int_equal(stored(t->db), 1);
}

static void touched_by_owner(void **state)
{
    struct db_fixture *t = *state;
    static const struct {
        const char *owner, *thread_id;
        enum run_status status;
        bool expected; /* for alice */
    } rows[] = {
        {"alice", "a", RUN_RUNNING, true},    {"alice", "b", RUN_WAITING, false},
        {"alice", "c", RUN_RUNNING, true},    {"alice", "d", RUN_CANCELLING, false},
        {"alice", "e", RUN_COMPLETED, false}, {"bob", "a", RUN_RUNNING, false},
    };
    int64_t runs[COUNT(rows)];
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t thread = thread_made(t->db, rows[i].owner, rows[i].thread_id, "x", 1);
        runs[i] = run_made(t->db, thread, "r", rows[i].status);
        assert_int_equal(save(t->db, runs[i], 0, 1, STR("state")), OK);
    }
    run_made(t->db, thread_made(t->db, "alice", "none", "x", 1), "r", RUN_RUNNING);
    assert_int_equal(snapshots_touch_owner(t->db, STR("carol")), OK);
    for (size_t i = 0; i < COUNT(rows); i++) assert_int_equal(version_of(t, runs[i]), 1);
    for (int64_t times = 1; times <= 2; times++) {
        assert_int_equal(snapshots_touch_owner(t->db, STR("alice")), OK);
        for (size_t i = 0; i < COUNT(rows); i++)
            assert_int_equal(version_of(t, runs[i]), rows[i].expected ? 1 + times : 1);
        put_back(t->db); /* then those from before */
    }
}

/* Other bytes, in the row and from before; where there are none nothing comes. */
static void replaced(void **state)
{
    struct db_fixture *t = *state;
    int64_t run = run_for(t->db), version = 0;
    unsigned char hash[HASH_BYTES];
    str bytes = STR_EMPTY;
    crypto_sha256(STR("other"), hash);
    assert_int_equal(snapshot_replace(t->db, run, STR("other"), hash), OK);
    assert_int_equal(version_of(t, run), 0);
    assert_int_equal(save(t->db, run, 0, 3, STR("state")), OK);
    for (int64_t times = 1; times <= 2; times++) {
        assert_int_equal(snapshot_replace(t->db, run, STR("other"), hash), OK);
        assert_int_equal(snapshot_load(t->db, &t->arena, run, &version, &bytes), OK);
        assert_int_equal(version, 1 + times);
        assert_str(bytes, STR("other"));
        assert_int_equal(save(t->db, run, version, 2, STR("lost the lease")), ERR_BUSY);
        assert_int_equal(stored(t->db), 1);
        put_back(t->db);
    }
}

/* Damaged where it stood before: told as such, and it stays as it is for who looks at it. */
static void damage_from_before(void **state)
{
    struct db_fixture *t = *state;
    int64_t run = run_for(t->db), version = 42;
    str bytes = STR("untouched");
    assert_int_equal(save(t->db, run, 0, 3, STR("state")), OK);
    put_back(t->db);
    assert_int_equal(by_hand(t->db, "UPDATE snapshots SET bytes=x'00'"), OK);
    assert_int_equal(snapshot_load(t->db, &t->arena, run, &version, &bytes), ERR_DAMAGED);
    assert_int_equal(version, 42);
    assert_str(bytes, STR("untouched"));
    assert_int_equal(snapshot_touch(t->db, run), OK);
    assert_int_equal(snapshot_load(t->db, &t->arena, run, &version, &bytes), ERR_DAMAGED);
    assert_int_equal(end(t->db, run, -1, 2), ERR_BUSY);
    assert_int_equal(end(t->db, run, -1, 3), OK);
    assert_int_equal(stored(t->db), 0);
}

static void leases(void **state)
{
    struct db_fixture *t = *state;
    static const struct {
        enum { TAKE_IT, RENEW } what;
        str name, holder;
        msec now, until;
        int64_t epoch; /* of RENEW; expected of TAKE_IT */
        enum err expected;
    } steps[] = {
        {TAKE_IT, STR("run:1"), STR("a"), 0, 100, 1, OK},
        {TAKE_IT, STR("run:1"), STR("b"), 50, 150, 0, ERR_BUSY},
        {TAKE_IT, STR("run:2"), STR("b"), 50, 150, 1, OK}, /* another name */
        {TAKE_IT, STR("run:1"), STR("b"), 99, 199, 0, ERR_BUSY},
        {RENEW, STR("run:1"), STR("a"), 0, 200, 1, OK},
        {RENEW, STR("run:1"), STR("b"), 0, 300, 1, ERR_BUSY},
        {RENEW, STR("run:1"), STR("a"), 0, 300, 2, ERR_BUSY},
        {TAKE_IT, STR("run:1"), STR("b"), 199, 299, 0, ERR_BUSY},
        {TAKE_IT, STR("run:1"), STR("b"), 200, 300, 2, OK}, /* expired: taken over */
        {RENEW, STR("run:1"), STR("a"), 0, 400, 1, ERR_BUSY},
        {TAKE_IT, STR("run:1"), STR("b"), 210, 310, 3, OK}, /* the same holder after a restart */
        {RENEW, STR("run:1"), STR("b"), 0, 320, 2, ERR_BUSY},
        {RENEW, STR("run:1"), STR("b"), 0, 320, 3, OK},
        {TAKE_IT, STR("run:1"), STR("a"), 319, 400, 0, ERR_BUSY},
        {TAKE_IT, STR("run:1"), STR("a"), 320, 420, 4, OK},
        {RENEW, STR("run:3"), STR("a"), 0, 400, 1, ERR_BUSY}, /* never taken */
    };
    for (size_t i = 0; i < COUNT(steps); i++) {
        int64_t epoch = 0;
        enum err e = steps[i].what == TAKE_IT ? lease_take(t->db, steps[i].name, steps[i].holder,
                                                           steps[i].now, steps[i].until, &epoch)
                                              : lease_renew(t->db, steps[i].name, steps[i].holder,
                                                            steps[i].epoch, steps[i].until);
        if (e != steps[i].expected) fail_msg("step %zu: %s", i, err_code(e));
        if (steps[i].what == TAKE_IT) assert_int_equal(epoch, steps[i].epoch);
    }
}

int test_snapshots(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DB(versions_and_epochs),
        WITH_DB(versions_and_epochs_from_before),
        WITH_DB(deleting),
        WITH_DB(deleting_from_before),
        WITH_DB(damage),
        WITH_DB(damage_from_before),
        WITH_DB(touched),
        WITH_DB(touched_by_owner),
        WITH_DB(replaced),
        WITH_DB(leases),
    };
    return db_fixture_group("store/snapshots", tests, COUNT(tests));
}
