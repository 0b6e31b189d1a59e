/* SPDX-License-Identifier: Apache-2.0
 *
 * SQLite, reached only through here: a connection (db) and its prepared statements (stmt).
 *
 * A connection is used by one thread at a time. Statements are prepared once per connection and
 * kept, found again by the address of their SQL, which therefore must be a literal: SQL is never
 * built at run time, values are always bound. Errors stick to the statement, so a job binds and
 * steps freely and asks once at the end:
 *
 *     struct stmt *s = db_prepare(db, "SELECT value FROM settings WHERE scope=?1 AND name=?2");
 *     stmt_bind_str(s, 1, scope);
 *     stmt_bind_str(s, 2, name);
 *     if (stmt_step(s)) value = arena_str(arena, stmt_str(s, 0));
 *     return stmt_end(s);
 *
 * What SQLite's codes become: a broken UNIQUE or PRIMARY KEY is ERR_BUSY, a full disk
 * ERR_STORAGE_FULL, a failing or damaged file ERR_IO, another process in the file ERR_LOCKED, a
 * value too long ERR_TOO_LARGE; a mistake of ours (bad SQL, a broken CHECK or NOT NULL)
 * ERR_INTERNAL. db_message has SQLite's own words.
 */
#ifndef STORE_DB_SQLITE_H
#define STORE_DB_SQLITE_H

#include "base/err.h"
#include "base/str.h"

struct db;
struct hot;
struct stmt;

/* DB_WRITER creates the file (0600) if it is missing; only one such connection may exist, because
 * it also does all checkpoints (SQLite before 3.51.3 can damage a WAL database with two). */
enum db_mode {
    DB_WRITER,
    DB_READER,
    DB_MEMORY, /* a database of this connection alone, which ends with it; its path is not used */
};

/* Opening and closing change nothing in an existing file, until db_use_wal. */
enum err db_open(const char *path, enum db_mode mode, struct db **ret_db, struct fault *reterr)
    MUST_USE;
void db_close(struct db *db); /* the writer empties the WAL if it is the last; NULL is fine */
void db_closep(struct db **db);

/* Give back the pages that nobody is looking at: what making or changing a database took. */
void db_shrink(struct db *db);

/* Steps of the schema may change what the schema says of a table, which nothing else may. */
enum err db_schema_changes(struct db *db, bool may) MUST_USE;

/* Put the file into WAL mode; the writer, before anything is written. */
enum err db_use_wal(struct db *db) MUST_USE;

/* Several statements without results, from a table of ours (migrations). */
enum err db_script(struct db *db, const char *sql) MUST_USE;

/* A statement, reset and without values. Never NULL: failure shows in stmt_end. Preparing the same
 * literal again begins it anew, so one literal cannot be used inside its own rows. */
#define db_prepare(db, sql) db_prepare_static((db), "" sql "")
struct stmt *db_prepare_static(struct db *db, const char *sql);

/* Parameters count from 1. Bytes are borrowed until stmt_end. A str is never NULL in SQL. */
void stmt_bind_str(struct stmt *stmt, int at, str text);
void stmt_bind_blob(struct stmt *stmt, int at, str bytes);
void stmt_bind_i64(struct stmt *stmt, int at, int64_t value);
void stmt_bind_null(struct stmt *stmt, int at);

/* True: there is a row. False: no more, or an error that stmt_end will tell. */
bool stmt_step(struct stmt *stmt);

/* Columns count from 0. Text or bytes are borrowed until the next step or the end. */
str stmt_str(struct stmt *stmt, int column); /* empty for NULL */
int64_t stmt_i64(struct stmt *stmt, int column);
bool stmt_is_null(struct stmt *stmt, int column);

/* Done with it; the first error since db_prepare. */
enum err stmt_end(struct stmt *stmt) MUST_USE;

/* Step through to the end, for statements without rows. */
enum err stmt_run(struct stmt *stmt) MUST_USE;

int64_t db_changes(const struct db *db);       /* rows changed by the last INSERT, UPDATE, DELETE */
int64_t db_total_changes(const struct db *db); /* by all statements so far */
const char *db_message(const struct db *db);   /* SQLite's words for the last failure */
int64_t db_last_id(const struct db *db);       /* of the row that the last INSERT added */
uint64_t db_statements_take(struct db *db);    /* run since the last call, transactions too */
void db_statements_add(struct db *db, uint64_t count);

/* Transactions; for the store and the migrations, not for jobs. */

enum err db_begin(struct db *db) MUST_USE; /* the writer takes the write lock at once */

/* On failure nothing was committed and db_rollback is due, unless *ret_unknown: then it may have
 * been, and only opening the file again tells. */
enum err db_commit(struct db *db, bool *ret_unknown) MUST_USE;
enum err db_rollback(struct db *db) MUST_USE; /* fine if there is no transaction any more */

enum err db_savepoint(struct db *db) MUST_USE;
enum err db_savepoint_undo(struct db *db) MUST_USE; /* back to it; then release it */
enum err db_savepoint_release(struct db *db) MUST_USE;

/* Some errors make SQLite roll back the whole transaction by itself. From then on every statement
 * fails with that error, instead of running outside the transaction, until db_rollback. */
enum err db_lost(const struct db *db);

/* End every statement that a job left in the middle. */
void db_settle(struct db *db);

/* Does somebody want to know how much each user stores (store/table/storage.h)? Of the writer. */
void db_count(struct db *db, bool on);
bool db_counting(const struct db *db);

/* Keep rows in memory, so many bytes of them (store/db/hot.h); 0: none. Only a connection whose
 * transactions go through db_begin and the others above, and nothing else. */
void db_keep(struct db *db, size_t bytes_max);
struct hot *db_hot(const struct db *db); /* NULL: none are kept */

/* While a statement runs, `stop` is asked now and then; an error that it gives ends the statement
 * with that error. NULL: nobody is asked any more. */
void db_watch(struct db *db, enum err (*stop)(void *arg), void *arg);

/* Copy the database as this connection's transaction sees it into a new file (0600), which must not
 * be there yet. Others may write meanwhile. stop (may be NULL) is asked now and then; when it says
 * yes the result is ERR_SHUTTING_DOWN. On failure the file is gone again. */
enum err db_copy(struct db *db, const char *path, bool (*stop)(void *arg), void *arg,
                 struct fault *reterr) MUST_USE;

/* Pages in the WAL after the last commit, and copying them into the database. `restart` waits for
 * the readers, so that the WAL can begin anew; ERR_LOCKED if they did not end in time. */
int db_wal_pages(const struct db *db);
enum err db_checkpoint(struct db *db, bool restart) MUST_USE;

#endif
