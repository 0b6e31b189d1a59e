/* SPDX-License-Identifier: Apache-2.0
 *
 * How far a run has come (in its row), and who may work on it (the table `leases`).
 *
 * A lease says who may work, until when; each taking has a higher epoch. A snapshot remembers the
 * epoch it was written under, and refuses a lower one: whoever lost the lease and does not know it
 * yet cannot write over the work of the next holder. Its version also grows when somebody else has
 * changed what the run depends on, which makes the holder load it anew before it goes on.
 */
#include <string.h>

#include "store/db/hot.h"
#include "store/db/sqlite.h"
#include "store/table/thread_row.h"

/* ---- snapshots ---- */

struct state_row {
    int64_t version, epoch;
    str hash, bytes;
};

#define COLUMN(name) COLUMN_OF(struct state_row, name),
static const struct column columns[] = {COLUMN(version) COLUMN(epoch) COLUMN(hash) COLUMN(bytes)};
#undef COLUMN
static const struct hot_shape shape = HOT_SHAPE(struct state_row, columns);

void snapshot_keep(struct db *db, int64_t run, const struct snapshot *snapshot)
{
    struct state_row row = {0};
    bool none = !snapshot || !snapshot->version;
    if (!none)
        row = (struct state_row){.version = snapshot->version,
                                 .epoch = snapshot->epoch,
                                 .hash = {(const char *)snapshot->hash, HASH_BYTES},
                                 .bytes = snapshot->bytes};
    hot_put(db, HOT_STATE, run, &shape, &row, none ? 0 : 1);
}

static bool intact(str bytes, str hash)
{
    unsigned char actual[HASH_BYTES];
    crypto_sha256(bytes, actual);
    return hash.len == HASH_BYTES && memcmp(hash.p, actual, HASH_BYTES) == 0;
}

static enum err read_row(struct stmt *s, int64_t run, struct arena *arena, struct state_row *row)
{
    stmt_bind_i64(s, 1, run);
    if (stmt_step(s))
        *row = (struct state_row){.version = stmt_i64(s, 0),
                                  .epoch = stmt_i64(s, 1),
                                  .hash = arena_str(arena, stmt_str(s, 2)),
                                  .bytes = arena_str(arena, stmt_str(s, 3))};
    return stmt_end(s);
}

/* A run that waited when snapshots came into its row has it still where it was. */
static enum err read_state(struct db *db, struct arena *arena, int64_t run,
                           struct hot_rows *ret_rows)
{
    struct state_row *row = ARENA_NEW(arena, struct state_row);
    enum err e =
        read_row(db_prepare(db, "SELECT version, epoch, hash, snapshot FROM runs WHERE id=?1"), run,
                 arena, row);
    if (!e && !row->version)
        e = read_row(db_prepare(db,
                                "SELECT version, epoch, hash, bytes FROM snapshots WHERE run=?1"),
                     run, arena, row);
    if (e) return e;
    if (row->version && !intact(row->bytes, row->hash)) return ERR_DAMAGED;
    *ret_rows = (struct hot_rows){.rows = row, .count = row->version ? 1 : 0};
    return OK;
}

enum err snapshot_load(struct db *db, struct arena *arena, int64_t run, int64_t *ret_version,
                       str *ret_bytes)
{
    struct hot_rows rows;
    enum err e = hot_rows(db, HOT_STATE, run, &shape, arena, read_state, &rows);
    if (e) return e;
    if (!rows.count) return ERR_NOT_FOUND;
    const struct state_row *row = rows.rows;
    *ret_version = row->version;
    *ret_bytes = row->bytes;
    return OK;
}

enum err snapshot_move(struct db *db, int64_t run, bool *ret_moved)
{
    struct stmt *s =
        db_prepare(db, "UPDATE runs SET version=old.version, epoch=old.epoch, hash=old.hash,"
                       " snapshot=old.bytes FROM snapshots AS old"
                       " WHERE runs.id=?1 AND old.run=?1 AND runs.version=0");
    stmt_bind_i64(s, 1, run);
    enum err e = stmt_run(s);
    *ret_moved = !e && db_changes(db);
    if (e || !*ret_moved) return e;
    hot_drop(db, HOT_STATE, run);
    s = db_prepare(db, "DELETE FROM snapshots WHERE run=?1");
    stmt_bind_i64(s, 1, run);
    return stmt_run(s);
}

/* One statement on the row of the run, with its number as ?1; once more if the snapshot was not there
 * yet. ERR_NOT_FOUND: it fits no row. */
static enum err change(struct db *db, int64_t run, struct stmt *(*make)(struct db *db, void *arg),
                       void *arg)
{
    bool moved = true;
    enum err e = OK;
    for (int i = 0; !e && moved && i < 2; i++) {
        struct stmt *s = make(db, arg);
        stmt_bind_i64(s, 1, run);
        e = stmt_run(s);
        if (e) return e;
        hot_drop(db, HOT_STATE, run);
        if (db_changes(db)) return OK;
        e = snapshot_move(db, run, &moved);
    }
    return e ? e : ERR_NOT_FOUND;
}

struct state_change {
    int64_t version, epoch;
    str bytes, hash;
};

static struct stmt *save_statement(struct db *db, void *arg)
{
    const struct state_change *change = arg;
    struct stmt *s =
        db_prepare(db, "UPDATE runs SET version=version+1, epoch=?2, hash=?3, snapshot=?4"
                       " WHERE id=?1 AND version=?5 AND epoch<=?2");
    stmt_bind_i64(s, 2, change->epoch);
    stmt_bind_blob(s, 3, change->hash);
    stmt_bind_blob(s, 4, change->bytes);
    stmt_bind_i64(s, 5, change->version);
    return s;
}

enum err snapshot_save(struct db *db, int64_t run, int64_t version, int64_t epoch, str bytes,
                       const unsigned char hash[static HASH_BYTES])
{
    struct state_change next = {version, epoch, bytes, {(const char *)hash, HASH_BYTES}};
    bool moved;
    enum err e = version ? OK : snapshot_move(db, run, &moved); /* 0 fits a row without one, too */
    if (!e) e = change(db, run, save_statement, &next);
    return e == ERR_NOT_FOUND ? ERR_BUSY : e;
}

static struct stmt *replace_statement(struct db *db, void *arg)
{
    const struct state_change *change = arg;
    struct stmt *s = db_prepare(db, "UPDATE runs SET version=version+1, hash=?2, snapshot=?3"
                                    " WHERE id=?1 AND version>0");
    stmt_bind_blob(s, 2, change->hash);
    stmt_bind_blob(s, 3, change->bytes);
    return s;
}

enum err snapshot_replace(struct db *db, int64_t run, str bytes,
                          const unsigned char hash[static HASH_BYTES])
{
    struct state_change next = {.bytes = bytes, .hash = {(const char *)hash, HASH_BYTES}};
    enum err e = change(db, run, replace_statement, &next);
    return e == ERR_NOT_FOUND ? OK : e;
}

static struct stmt *touch_statement(struct db *db, void *arg)
{
    (void)arg;
    return db_prepare(db, "UPDATE runs SET version=version+1 WHERE id=?1 AND version>0");
}

enum err snapshot_touch(struct db *db, int64_t run)
{
    enum err e = change(db, run, touch_statement, NULL);
    return e == ERR_NOT_FOUND ? OK : e;
}

/* From the running runs, which are RUNS_ACTIVE_MAX at most, and not from the owner's threads, which
 * may be any number. One that runs has its snapshot in its row, or will have when it is saved next. */
enum err snapshots_touch_owner(struct db *db, str owner)
{
    static const char *const statements[] = {
        "UPDATE runs SET version=version+1 WHERE version>0 AND id IN ("
        " SELECT runs.id FROM runs INDEXED BY runs_open"
        "  CROSS JOIN threads ON threads.id=runs.thread"
        "  WHERE runs.status<4 AND runs.status=1 AND owner=?1) RETURNING id",
        "UPDATE snapshots SET version=version+1 WHERE run IN ("
        " SELECT runs.id FROM runs INDEXED BY runs_open"
        "  CROSS JOIN threads ON threads.id=runs.thread"
        "  WHERE runs.status<4 AND runs.status=1 AND owner=?1) RETURNING run",
    };
    enum err e = OK;
    for (size_t i = 0; !e && i < COUNT(statements); i++) {
        struct stmt *s = db_prepare_static(db, statements[i]);
        stmt_bind_str(s, 1, owner);
        while (stmt_step(s)) hot_drop(db, HOT_STATE, stmt_i64(s, 0));
        e = stmt_end(s);
    }
    return e;
}

/* ---- leases ---- */

/* Who holds it already may take it again: the same name after a restart. */
enum err lease_take(struct db *db, str name, str holder, msec now, msec until, int64_t *ret_epoch)
{
    struct stmt *s =
        db_prepare(db, "INSERT INTO leases AS held (name, holder, epoch, until)"
                       " VALUES (?1, ?2, 1, ?3) ON CONFLICT (name) DO UPDATE"
                       " SET holder=excluded.holder, epoch=held.epoch+1, until=excluded.until"
                       " WHERE held.holder=excluded.holder OR held.until<=?4 RETURNING epoch");
    stmt_bind_str(s, 1, name);
    stmt_bind_str(s, 2, holder);
    stmt_bind_i64(s, 3, until);
    stmt_bind_i64(s, 4, now);
    int64_t epoch = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_run(s);
    if (e) return e;
    if (!epoch) return ERR_BUSY;
    *ret_epoch = epoch;
    return OK;
}

enum err lease_renew(struct db *db, str name, str holder, int64_t epoch, msec until)
{
    struct stmt *s = db_prepare(db, "UPDATE leases SET until=?4"
                                    " WHERE name=?1 AND holder=?2 AND epoch=?3");
    stmt_bind_str(s, 1, name);
    stmt_bind_str(s, 2, holder);
    stmt_bind_i64(s, 3, epoch);
    stmt_bind_i64(s, 4, until);
    enum err e = stmt_run(s);
    return e || db_changes(db) ? e : ERR_BUSY;
}
