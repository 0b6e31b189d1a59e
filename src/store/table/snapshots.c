/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables `snapshots` and `leases`: how far a run has come, and who may work on it.
 *
 * A lease says who may work, until when; each taking has a higher epoch. A snapshot remembers the
 * epoch it was written under, and refuses a lower one: whoever lost the lease and does not know it
 * yet cannot write over the work of the next holder. Its version also grows when somebody else has
 * changed what the run depends on, which makes the holder load it anew before it goes on.
 */
#include <string.h>

#include "store/db/sqlite.h"
#include "store/table/conversation.h"

/* ---- snapshots ---- */

static bool intact(str bytes, str hash)
{
    unsigned char actual[HASH_BYTES];
    crypto_sha256(bytes, actual);
    return hash.len == HASH_BYTES && memcmp(hash.p, actual, HASH_BYTES) == 0;
}

enum err snapshot_load(struct db *db, struct arena *arena, int64_t run, int64_t *ret_version,
                       str *ret_bytes)
{
    struct stmt *s = db_prepare(db, "SELECT version, bytes, hash FROM snapshots WHERE run=?1");
    stmt_bind_i64(s, 1, run);
    bool found = stmt_step(s), good = false;
    int64_t version = 0;
    str bytes = STR_EMPTY;
    if (found) {
        version = stmt_i64(s, 0);
        bytes = arena_str(arena, stmt_str(s, 1));
        good = intact(bytes, stmt_str(s, 2));
    }
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    if (!good) return ERR_DAMAGED;
    *ret_version = version;
    *ret_bytes = bytes;
    return OK;
}

static enum err snapshot_run(struct stmt *s, int64_t run, int64_t epoch, str bytes,
                             const unsigned char *hash)
{
    stmt_bind_i64(s, 1, run);
    stmt_bind_i64(s, 2, epoch);
    stmt_bind_blob(s, 3, (str){(const char *)hash, HASH_BYTES});
    stmt_bind_blob(s, 4, bytes);
    return stmt_run(s);
}

enum err snapshot_save(struct db *db, int64_t run, int64_t version, int64_t epoch, str bytes,
                       const unsigned char hash[static HASH_BYTES])
{
    if (!version)
        return snapshot_run(db_prepare(db,
                                       "INSERT INTO snapshots (run, version, epoch, hash, bytes)"
                                       " VALUES (?1, 1, ?2, ?3, ?4)"),
                            run, epoch, bytes, hash);
    struct stmt *s =
        db_prepare(db, "UPDATE snapshots SET version=version+1, epoch=?2, hash=?3, bytes=?4"
                       " WHERE run=?1 AND version=?5 AND epoch<=?2");
    stmt_bind_i64(s, 5, version);
    enum err e = snapshot_run(s, run, epoch, bytes, hash);
    return e || db_changes(db) ? e : ERR_BUSY;
}

enum err snapshot_replace(struct db *db, int64_t run, str bytes,
                          const unsigned char hash[static HASH_BYTES])
{
    struct stmt *s =
        db_prepare(db, "UPDATE snapshots SET version=version+1, hash=?2, bytes=?3 WHERE run=?1");
    stmt_bind_i64(s, 1, run);
    stmt_bind_blob(s, 2, (str){(const char *)hash, HASH_BYTES});
    stmt_bind_blob(s, 3, bytes);
    return stmt_run(s);
}

enum err snapshot_touch(struct db *db, int64_t run)
{
    struct stmt *s = db_prepare(db, "UPDATE snapshots SET version=version+1 WHERE run=?1");
    stmt_bind_i64(s, 1, run);
    return stmt_run(s);
}

/* From the running runs, which are RUNS_ACTIVE_MAX at most, and not from the owner's threads, which
 * may be any number. */
enum err snapshots_touch_owner(struct db *db, str owner)
{
    struct stmt *s = db_prepare(db, "UPDATE snapshots SET version=version+1 WHERE run IN ("
                                    " SELECT runs.id FROM runs INDEXED BY runs_open"
                                    "  CROSS JOIN threads ON threads.id=runs.thread"
                                    "  WHERE runs.status<4 AND runs.status=1 AND owner=?1)");
    stmt_bind_str(s, 1, owner);
    return stmt_run(s);
}

static enum err snapshot_exists(struct db *db, int64_t run, bool *ret_exists)
{
    struct stmt *s = db_prepare(db, "SELECT 1 FROM snapshots WHERE run=?1");
    stmt_bind_i64(s, 1, run);
    bool found = stmt_step(s);
    enum err e = stmt_end(s);
    if (!e) *ret_exists = found;
    return e;
}

enum err snapshot_delete(struct db *db, int64_t run, int64_t version, int64_t epoch)
{
    struct stmt *s = db_prepare(db, "DELETE FROM snapshots"
                                    " WHERE run=?1 AND (version=?2 OR ?2=-1) AND epoch<=?3");
    stmt_bind_i64(s, 1, run);
    stmt_bind_i64(s, 2, version);
    stmt_bind_i64(s, 3, epoch);
    enum err e = stmt_run(s);
    if (e || db_changes(db)) return e;
    bool exists = false;
    e = snapshot_exists(db, run, &exists);
    return e || (!exists && version <= 0) ? e : ERR_BUSY; /* none was expected, and there is none */
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
