/* SPDX-License-Identifier: Apache-2.0
 *
 * To change the schema, add a row at the end. A row that was released is never edited: databases
 * in the field have run it.
 *
 * Times are milliseconds since 1970; NULL is "not yet". Tables are STRICT, so a column holds what
 * it says.
 */
#include "store/migrate.h"

#include "store/sqlite.h"

struct migration {
    int number;
    const char *name;
    const char *sql;
};

/* The number is set inside the step's own transaction. */
#define MIGRATION(number, name, sql)                         \
    {                                                        \
        number, name, sql "PRAGMA user_version=" #number ";" \
    }

enum { APPLICATION_ID = 0x4665726d }; /* "Ferm" */

static const struct migration migrations[] = {
    /* clang-format off */
    MIGRATION(1, "users and settings",
        "PRAGMA application_id=0x4665726d;"
        "CREATE TABLE users ("
        "  name TEXT PRIMARY KEY,"
        "  created INTEGER NOT NULL"
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE api_keys ("
        "  id TEXT PRIMARY KEY,"
        "  user TEXT NOT NULL REFERENCES users(name),"
        "  roles INTEGER NOT NULL,"            /* bits of enum role */
        "  name TEXT NOT NULL,"
        "  hash BLOB NOT NULL UNIQUE,"         /* SHA-256 of the key's text */
        "  created INTEGER NOT NULL,"
        "  revoked INTEGER"
        ") STRICT;"
        "CREATE TABLE sessions ("
        "  hash BLOB PRIMARY KEY,"             /* SHA-256 of the token */
        "  key_id TEXT,"                       /* the key it was opened with, if any */
        "  user TEXT NOT NULL,"
        "  roles INTEGER NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  expires INTEGER NOT NULL,"
        "  ended INTEGER"
        ") STRICT, WITHOUT ROWID;"
        "CREATE INDEX sessions_by_key ON sessions(key_id);"
        "CREATE INDEX sessions_by_expiry ON sessions(expires);"
        "CREATE TABLE settings ("
        "  scope TEXT NOT NULL,"
        "  name TEXT NOT NULL,"
        "  value TEXT NOT NULL,"
        "  PRIMARY KEY (scope, name)"
        ") STRICT, WITHOUT ROWID;"),

    /* Whatever belongs to a thread goes with it: ON DELETE CASCADE, over keys that begin with it.
     * Ids of threads and runs are never used again (AUTOINCREMENT), so that who still holds the id
     * of a deleted one finds nothing instead of somebody else's. Rows with long texts have the
     * short columns first, so that looking at those does not read the others. */
    MIGRATION(2, "conversations",
        "CREATE TABLE threads ("
        "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
        "  owner TEXT NOT NULL,"
        "  thread_id TEXT NOT NULL,"           /* the client's; unique for its owner only */
        "  title TEXT NOT NULL,"
        "  agent TEXT NOT NULL,"
        "  last_seq INTEGER NOT NULL,"         /* number of the newest fact */
        "  newest_run INTEGER NOT NULL DEFAULT 0," /* whose leg was the last to start */
        "  created INTEGER NOT NULL,"
        "  updated INTEGER NOT NULL,"
        "  UNIQUE (owner, thread_id)"
        ") STRICT;"
        "CREATE INDEX threads_by_update ON threads(owner, updated);"
        "CREATE TABLE events ("                /* the facts */
        "  thread INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE,"
        "  seq INTEGER NOT NULL,"
        "  type TEXT NOT NULL,"
        "  run_id TEXT NOT NULL,"
        "  at INTEGER NOT NULL,"
        "  data TEXT NOT NULL,"
        "  PRIMARY KEY (thread, seq)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE messages ("
        "  thread INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE,"
        "  seq INTEGER NOT NULL,"              /* of the fact that added it */
        "  id TEXT NOT NULL,"
        "  role TEXT NOT NULL,"
        "  run_id TEXT NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  plain TEXT NOT NULL,"
        "  metadata TEXT NOT NULL,"
        "  usage TEXT NOT NULL,"               /* from here on '' is "none" */
        "  tool_calls TEXT NOT NULL,"
        "  content TEXT NOT NULL,"
        "  provider_data TEXT NOT NULL,"
        "  PRIMARY KEY (thread, seq, id)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE UNIQUE INDEX messages_by_id ON messages(thread, id);"
        "CREATE TABLE runs ("
        "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
        "  thread INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE,"
        "  run_id TEXT NOT NULL,"
        "  status INTEGER NOT NULL,"           /* enum run_status: below 4 is open */
        "  legs INTEGER NOT NULL,"
        "  start_seq INTEGER NOT NULL,"
        "  input_tokens INTEGER NOT NULL,"
        "  output_tokens INTEGER NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  ended INTEGER NOT NULL,"            /* 0: open */
        "  agent TEXT NOT NULL,"
        "  model TEXT NOT NULL,"
        "  task_id TEXT NOT NULL,"             /* of the newest leg, as is input */
        "  input TEXT NOT NULL,"
        "  queued TEXT NOT NULL,"              /* the message that waits */
        "  UNIQUE (thread, run_id)"
        ") STRICT;"
        "CREATE INDEX runs_open ON runs(status, thread) WHERE status<4;"
        "CREATE TABLE legs ("
        "  run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
        "  n INTEGER NOT NULL,"                /* 1, 2, ... */
        "  task_id TEXT NOT NULL,"
        "  wire_run_id TEXT NOT NULL,"         /* what the request that began it calls the run */
        "  started INTEGER NOT NULL,"
        "  PRIMARY KEY (run, n)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE snapshots ("
        "  run INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,"
        "  version INTEGER NOT NULL,"
        "  epoch INTEGER NOT NULL,"            /* of the lease it was written under */
        "  hash BLOB NOT NULL,"                /* SHA-256 of the bytes */
        "  bytes BLOB NOT NULL"
        ") STRICT;"
        "CREATE TABLE accepted ("              /* what POST /runs answered */
        "  thread INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE,"
        "  run_id TEXT NOT NULL,"
        "  hash BLOB NOT NULL,"                /* SHA-256 of the request */
        "  created INTEGER NOT NULL,"
        "  answer TEXT NOT NULL,"
        "  PRIMARY KEY (thread, run_id)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE leases ("
        "  name TEXT PRIMARY KEY,"
        "  holder TEXT NOT NULL,"
        "  epoch INTEGER NOT NULL,"            /* grows with every taking */
        "  until INTEGER NOT NULL"
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE idempotency ("
        "  owner TEXT NOT NULL,"
        "  key TEXT NOT NULL,"
        "  thread INTEGER REFERENCES threads(id) ON DELETE CASCADE,"
        "  hash BLOB NOT NULL,"                /* SHA-256 of the request */
        "  status INTEGER NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  body TEXT NOT NULL,"
        "  PRIMARY KEY (owner, key)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE INDEX idempotency_by_age ON idempotency(created);"
        "CREATE INDEX idempotency_by_thread ON idempotency(thread) WHERE thread IS NOT NULL;"),
    /* clang-format on */
};

int migrate_latest(void)
{
    return migrations[COUNT(migrations) - 1].number;
}

static enum err number_read(struct stmt *s, int64_t *ret_number)
{
    int64_t number = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_end(s);
    if (!e) *ret_number = number;
    return e;
}

/* A fresh file has no tables, no number and no owner. */
enum err migrate_number(struct db *db, int64_t *ret_number, struct fault *reterr)
{
    int64_t application = 0, version = 0, tables = 0;
    enum err e = number_read(db_prepare(db, "PRAGMA application_id"), &application);
    if (!e) e = number_read(db_prepare(db, "PRAGMA user_version"), &version);
    if (!e) e = number_read(db_prepare(db, "SELECT count(*) FROM sqlite_schema"), &tables);
    if (e) return fault(reterr, e, "the database cannot be read: %s", db_message(db));
    bool fresh = application == 0 && version == 0 && tables == 0;
    if (!fresh && application != APPLICATION_ID)
        return fault(reterr, ERR_CONFIG,
                     "the database belongs to another program: give Fermata a folder of its own");
    if (version > migrate_latest())
        return fault(reterr, ERR_CONFIG,
                     "the database has schema %lld and this version knows up to %d: "
                     "install the newer version again, or restore an older backup",
                     (long long)version, migrate_latest());
    *ret_number = version;
    return OK;
}

static enum err apply(struct db *db, const struct migration *m)
{
    bool unknown = false; /* the caller gives up after any error, so it makes no difference */
    enum err e = db_begin(db);
    if (!e) e = db_script(db, m->sql);
    if (!e) e = db_commit(db, &unknown);
    return e;
}

enum err migrate(struct db *db, struct fault *reterr)
{
    int64_t version = 0;
    enum err e = migrate_number(db, &version, reterr);
    if (e) return e;
    e = db_use_wal(db);
    if (e) return fault(reterr, e, "the database cannot use a write-ahead log: %s", db_message(db));
    for (size_t i = 0; i < COUNT(migrations); i++) {
        if (migrations[i].number <= version) continue;
        e = apply(db, &migrations[i]);
        if (e)
            return fault(reterr, e, "schema step %d (%s) failed: %s", migrations[i].number,
                         migrations[i].name, db_message(db));
    }
    return OK;
}
