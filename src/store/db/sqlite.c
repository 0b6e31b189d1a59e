/* SPDX-License-Identifier: Apache-2.0
 *
 * SQLite, behind the one file that talks to it: a connection and its statements.
 *
 * Invariants:
 * 1. A statement runs inside a transaction that SQLite has silently rolled back: never. After each
 *    failure sqlite3_get_autocommit() is asked; `lost` then stops everything until db_rollback.
 * 2. Readers cannot write, checkpoint, or empty the WAL when they close.
 * 3. Running out of memory aborts, as everywhere.
 *
 * To add a setting of a connection, add a row to pragmas[] or switches[].
 */
#include "store/db/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/plant.h"
#include "store/db/blocks.h"
#include "store/db/hot.h"
#include "store/db/private.h"

enum { SQLITE_OLDEST = 3040000 }; /* STRICT tables, and what we test with */

struct stmt {
    const char *sql; /* the key; NULL: free slot */
    sqlite3_stmt *handle;
    struct db *db;
    enum err error; /* the first one since db_prepare */
    bool busy;      /* stepped and not reset */
    bool over;      /* no more rows: another sqlite3_step would run it again */
};

struct db {
    sqlite3 *handle;
    enum db_mode mode;
    enum err lost;
    bool in_transaction; /* by our own account; SQLite's may differ after an error */
    bool counting;
    int wal_pages;
    struct hot *hot;             /* NULL: no rows are kept */
    int64_t others;              /* counts the commits of other connections */
    uint64_t statements;         /* begun since somebody asked */
    enum err (*stop)(void *arg); /* see db_watch */
    void *stop_arg;
    enum err stopped; /* what it said when it ended a statement */
    size_t stmt_count, busy_count;
    struct stmt stmts[STORE_STMTS_MAX]; /* open addressing; never moved, never removed */
};

/* ---- errors ---- */

static const struct {
    int code;
    enum err err;
} codes[] = {
    {SQLITE_OK, OK},
    {SQLITE_CONSTRAINT_UNIQUE, ERR_BUSY},
    {SQLITE_CONSTRAINT_PRIMARYKEY, ERR_BUSY},
    {SQLITE_CONSTRAINT_ROWID, ERR_BUSY},
    {SQLITE_FULL, ERR_STORAGE_FULL},
    {SQLITE_IOERR, ERR_IO},
    {SQLITE_CORRUPT, ERR_IO},
    {SQLITE_NOTADB, ERR_IO},
    {SQLITE_CANTOPEN, ERR_IO},
    {SQLITE_READONLY, ERR_IO},
    {SQLITE_PERM, ERR_IO},
    {SQLITE_BUSY, ERR_LOCKED},
    {SQLITE_LOCKED, ERR_LOCKED},
    {SQLITE_TOOBIG, ERR_TOO_LARGE},
};

/* The row of the extended code, else of its family. */
static enum err err_of(int code)
{
    int family = code & 0xff;
    if (family == SQLITE_NOMEM) abort();
    for (size_t i = 0; i < COUNT(codes); i++)
        if (codes[i].code == code || codes[i].code == family) return codes[i].err;
    return ERR_INTERNAL;
}

/* Invariant 1. */
static enum err failed(struct db *db, int code)
{
    enum err e = code == SQLITE_INTERRUPT && db->stopped ? db->stopped : err_of(code);
    if (db->in_transaction && sqlite3_get_autocommit(db->handle) && !db->lost) db->lost = e;
    return e;
}

const char *db_message(const struct db *db)
{
    return sqlite3_errmsg(db->handle);
}

enum err db_lost(const struct db *db)
{
    return db->lost;
}

/* ---- opening ---- */

enum { WRITER = 1 << DB_WRITER, READER = 1 << DB_READER, ALL = WRITER | READER | 1 << DB_MEMORY };

static const struct {
    int modes;
    const char *name;
    int value;
} pragmas[] = {
    {ALL, "trusted_schema", 0}, /* the file cannot call functions with side effects */
    {ALL, "cell_size_check", 1},
    {ALL, "mmap_size", 0}, /* an I/O error stays an error code and is no SIGBUS */
    {ALL, "foreign_keys", 1},
    {ALL, "temp_store", 2}, /* in memory: nothing outside the data folder */
    {ALL, "cache_size", -STORE_CACHE_KIB},
    {ALL, "wal_autocheckpoint", 0}, /* the store does it, after it has answered */
    {WRITER, "synchronous", 2},     /* FULL: what was committed is on disk */
    {WRITER, "journal_size_limit", STORE_WAL_BYTES_KEPT},
    {READER, "query_only", 1},
};

static const struct {
    int modes;
    int option;
    int value;
} switches[] = {
    {ALL, SQLITE_DBCONFIG_DEFENSIVE, 1},
    {ALL, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
    {ALL, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, /* we have none, so a trigger is not ours */
    {ALL, SQLITE_DBCONFIG_ENABLE_VIEW, 0},
    {ALL, SQLITE_DBCONFIG_DQS_DML, 0}, /* a misspelt "name" is an error and no string */
    {ALL, SQLITE_DBCONFIG_DQS_DDL, 0},
    {ALL, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1}, /* the writer may from db_use_wal on */
};

static void *memory_new(int bytes)
{
    return block_new((size_t)bytes);
}

static void *memory_resize(void *p, int bytes)
{
    return block_resize(p, (size_t)bytes);
}

static int memory_bytes(void *p)
{
    return (int)block_bytes(p);
}

static int memory_rounded(int bytes)
{
    return (int)block_rounded((size_t)bytes);
}

static int memory_begin(void *arg)
{
    (void)arg;
    return SQLITE_OK;
}

static void memory_end(void *arg)
{
    (void)arg;
}

static const sqlite3_mem_methods memory = {.xMalloc = memory_new,
                                           .xFree = block_free,
                                           .xRealloc = memory_resize,
                                           .xSize = memory_bytes,
                                           .xRoundup = memory_rounded,
                                           .xInit = memory_begin,
                                           .xShutdown = memory_end};

/* Sanitizers watch malloc, and would not see who uses a block of ours after its end. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { OWN_MEMORY = false };
#else
enum { OWN_MEMORY = true };
#endif

/* The count of all memory costs a process-wide mutex in every allocation. Pages come one by one: 20 at
 * once would be made for every table that lives as long as a statement, and has one page. This works
 * only before SQLite's first use in the process; too late is harmless. */
static void setup_process(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
    if (OWN_MEMORY) sqlite3_config(SQLITE_CONFIG_MALLOC, &memory);
}

static enum err library_check(struct fault *reterr)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, setup_process);
    if (sqlite3_libversion_number() < SQLITE_OLDEST)
        return fault(reterr, ERR_CONFIG, "SQLite %s is too old: 3.40 or newer is needed",
                     sqlite3_libversion());
    if (!sqlite3_threadsafe())
        return fault(reterr, ERR_CONFIG, "this SQLite library was built without thread safety");
    return OK;
}

/* SQLite would create the file readable to all (and its side files take the mode of the file).
 * Only before a connection is open: closing any descriptor of the file drops SQLite's locks. */
static enum err file_prepare(const char *path, struct fault *reterr)
{
    AUTO(fd_closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fault(reterr, ERR_IO, "database %s cannot be opened: %s", path, strerror(errno));
    return private_check(fd, PRIVATE_FILE, path, reterr);
}

static int on_wal(void *arg, sqlite3 *handle, const char *name, int pages)
{
    struct db *db = arg;
    (void)handle, (void)name;
    db->wal_pages = pages;
    return SQLITE_OK;
}

static int setup_connection(struct db *db)
{
    int bit = 1 << db->mode, code = sqlite3_busy_timeout(db->handle, STORE_BUSY_MS_MAX);
    for (size_t i = 0; i < COUNT(switches) && !code; i++)
        if (switches[i].modes & bit)
            code = sqlite3_db_config(db->handle, switches[i].option, switches[i].value, NULL);
    for (size_t i = 0; i < COUNT(pragmas) && !code; i++) {
        char text[64];
        snprintf(text, sizeof text, "PRAGMA %s=%d", pragmas[i].name, pragmas[i].value);
        if (pragmas[i].modes & bit) code = sqlite3_exec(db->handle, text, NULL, NULL, NULL);
    }
    sqlite3_wal_hook(db->handle, on_wal, db); /* last: wal_autocheckpoint would take it away */
    return code;
}

enum err db_open(const char *path, enum db_mode mode, struct db **ret_db, struct fault *reterr)
{
    enum err e = library_check(reterr);
    if (!e && mode == DB_WRITER) e = file_prepare(path, reterr);
    if (e) return e;

    AUTO(db_closep) struct db *db = mem_new(sizeof *db);
    db->mode = mode;
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW |
                (mode == DB_READER ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) |
                (mode == DB_MEMORY ? SQLITE_OPEN_MEMORY : 0);
    int code = sqlite3_open_v2(path, &db->handle, flags, NULL);
    if (!code) code = setup_connection(db);
    if (code)
        return fault(reterr, err_of(code), "database %s cannot be opened: %s", path,
                     sqlite3_errmsg(db->handle));
    *ret_db = TAKE(db);
    return OK;
}

void db_close(struct db *db)
{
    if (!db) return;
    for (size_t i = 0; i < COUNT(db->stmts); i++) sqlite3_finalize(db->stmts[i].handle);
    int code = sqlite3_close(db->handle);
    assert(code == SQLITE_OK); /* anything else is a statement that we lost */
    hot_free(db->hot);
    free(db);
}

void db_closep(struct db **db)
{
    db_close(*db);
}

void db_shrink(struct db *db)
{
    sqlite3_db_release_memory(db->handle);
}

enum err db_schema_changes(struct db *db, bool may)
{
    return err_of(sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, may ? 0 : 1, NULL));
}

enum err db_use_wal(struct db *db)
{
    struct stmt *s = db_prepare(db, "PRAGMA journal_mode=WAL");
    bool wal = stmt_step(s) && str_eq(stmt_str(s, 0), STR("wal"));
    enum err e = stmt_run(s); /* the answer comes first; the file is changed behind it */
    if (e || !wal) return e ? e : ERR_IO; /* a file system without shared memory cannot */
    return err_of(sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL));
}

enum err db_script(struct db *db, const char *sql)
{
    int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
    return code ? failed(db, code) : OK;
}

/* ---- statements ---- */

static struct stmt *slot_find(struct db *db, const char *sql)
{
    _Static_assert((STORE_STMTS_MAX & (STORE_STMTS_MAX - 1)) == 0, "a power of two");
    uint64_t hash = (uint64_t)(uintptr_t)sql * 0x9e3779b97f4a7c15U; /* 2^64 / golden ratio */
    for (size_t i = (size_t)(hash >> 32);; i++) {
        struct stmt *slot = &db->stmts[i % STORE_STMTS_MAX];
        if (!slot->sql || slot->sql == sql) return slot;
    }
}

static void stmt_reset(struct stmt *stmt)
{
    if (!stmt->busy) return;
    sqlite3_reset(stmt->handle); /* repeats the step's error, which we have */
    stmt->busy = false;
    stmt->db->busy_count--;
}

void db_count(struct db *db, bool on)
{
    db->counting = on;
}

bool db_counting(const struct db *db)
{
    return db->counting;
}

struct stmt *db_prepare_static(struct db *db, const char *sql)
{
    struct stmt *stmt = slot_find(db, sql);
    stmt_reset(stmt);
    stmt->error = OK;
    stmt->over = false;
    if (stmt->handle) {
        sqlite3_clear_bindings(stmt->handle);
    } else {
        db->stmt_count += !stmt->sql;
        assert(db->stmt_count < STORE_STMTS_MAX); /* one slot stays free, so that finding ends */
        stmt->sql = sql;
        stmt->db = db;
        int code =
            sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt->handle, NULL);
        if (code) stmt->error = failed(db, code);
    }
    if (!stmt->error) stmt->error = db->lost;
    return stmt;
}

static void bound(struct stmt *stmt, int code)
{
    assert(code != SQLITE_RANGE && code != SQLITE_MISUSE);
    if (code && !stmt->error) stmt->error = failed(stmt->db, code);
}

/* To SQLite a NULL pointer is NULL, to us an empty str. */
static const char *not_null(str s)
{
    return s.p ? s.p : "";
}

void stmt_bind_str(struct stmt *stmt, int at, str text)
{
    if (stmt->handle)
        bound(stmt, sqlite3_bind_text64(stmt->handle, at, not_null(text), text.len, SQLITE_STATIC,
                                        SQLITE_UTF8));
}

void stmt_bind_blob(struct stmt *stmt, int at, str bytes)
{
    if (stmt->handle)
        bound(stmt,
              sqlite3_bind_blob64(stmt->handle, at, not_null(bytes), bytes.len, SQLITE_STATIC));
}

void stmt_bind_i64(struct stmt *stmt, int at, int64_t value)
{
    if (stmt->handle) bound(stmt, sqlite3_bind_int64(stmt->handle, at, value));
}

void stmt_bind_null(struct stmt *stmt, int at)
{
    if (stmt->handle) bound(stmt, sqlite3_bind_null(stmt->handle, at));
}

bool stmt_step(struct stmt *stmt)
{
    if (!stmt->error) stmt->error = stmt->db->lost;
    if (stmt->error || stmt->over) return false;
    if (!stmt->busy) {
        stmt->db->busy_count++;
        stmt->db->statements++;
    }
    stmt->busy = true;
    int code = sqlite3_step(stmt->handle);
    if (code == SQLITE_ROW) return true;
    stmt->over = true;
    if (code != SQLITE_DONE) stmt->error = failed(stmt->db, code);
    return false;
}

str stmt_str(struct stmt *stmt, int column)
{
    const char *p = sqlite3_column_blob(stmt->handle, column);
    int len = sqlite3_column_bytes(stmt->handle, column);
    return p ? (str){p, (size_t)len} : STR_EMPTY;
}

int64_t stmt_i64(struct stmt *stmt, int column)
{
    return sqlite3_column_int64(stmt->handle, column);
}

bool stmt_is_null(struct stmt *stmt, int column)
{
    return sqlite3_column_type(stmt->handle, column) == SQLITE_NULL;
}

enum err stmt_end(struct stmt *stmt)
{
    stmt_reset(stmt);
    stmt->over = true;
    return stmt->error;
}

enum err stmt_run(struct stmt *stmt)
{
    while (stmt_step(stmt)) continue;
    return stmt_end(stmt);
}

int64_t db_changes(const struct db *db)
{
    return sqlite3_changes64(db->handle);
}

int64_t db_total_changes(const struct db *db)
{
    return sqlite3_total_changes64(db->handle);
}

int64_t db_last_id(const struct db *db)
{
    return sqlite3_last_insert_rowid(db->handle);
}

void db_statements_add(struct db *db, uint64_t count)
{
    db->statements += count;
}

uint64_t db_statements_take(struct db *db)
{
    uint64_t statements = db->statements;
    db->statements = 0;
    return statements;
}

void db_settle(struct db *db)
{
    for (size_t i = 0; i < COUNT(db->stmts) && db->busy_count; i++) stmt_reset(&db->stmts[i]);
}

/* ---- hot rows ---- */

void db_keep(struct db *db, size_t bytes_max)
{
    hot_free(db->hot);
    db->hot = bytes_max ? hot_new(bytes_max) : NULL;
}

struct hot *db_hot(const struct db *db)
{
    return db->hot;
}

/* Somebody with another connection has written, by hand perhaps: nothing that we kept counts. */
static enum err look_at_others(struct db *db)
{
    struct stmt *s = db_prepare(db, "PRAGMA data_version");
    int64_t others = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_end(s);
    if (e || others == db->others) return e;
    db->others = others;
    hot_clear(db->hot);
    return OK;
}

static void forget_undone(struct db *db)
{
    if (db->hot && !PLANT(ROWS_OUTLIVE)) hot_clear(db->hot);
}

/* ---- transactions ---- */

enum err db_begin(struct db *db)
{
    assert(!db->in_transaction && !db->lost);
    enum err e = stmt_run(db->mode == DB_WRITER ? db_prepare(db, "BEGIN IMMEDIATE")
                                                : db_prepare(db, "BEGIN"));
    if (!e) db->in_transaction = true;
    if (e || !db->hot) return e;
    e = look_at_others(db);
    if (e && db_rollback(db)) db->lost = e;
    return e;
}

/* SQLite keeps the transaction open when COMMIT failed before it tried to write (a broken foreign
 * key). When it is gone, only "full" is certain: the last frame of the commit could not be written
 * whole. After an I/O error that frame may be on disk, and the next opening would honour it. */
enum err db_commit(struct db *db, bool *ret_unknown)
{
    if (db->lost) return db->lost;
    enum err e = stmt_run(db_prepare(db, "COMMIT"));
    if (!e) db->in_transaction = false;
    *ret_unknown = db->lost && e != ERR_STORAGE_FULL;
    return e;
}

enum err db_rollback(struct db *db)
{
    db->lost = OK;
    db->in_transaction = false;
    forget_undone(db);
    if (sqlite3_get_autocommit(db->handle)) return OK;
    return stmt_run(db_prepare(db, "ROLLBACK"));
}

enum err db_savepoint(struct db *db)
{
    return stmt_run(db_prepare(db, "SAVEPOINT job"));
}

enum err db_savepoint_undo(struct db *db)
{
    forget_undone(db);
    return stmt_run(db_prepare(db, "ROLLBACK TO job"));
}

enum err db_savepoint_release(struct db *db)
{
    return stmt_run(db_prepare(db, "RELEASE job"));
}

/* ---- ending what takes too long ---- */

static int on_progress(void *arg)
{
    struct db *db = arg;
    db->stopped = db->stop(db->stop_arg);
    return db->stopped != OK;
}

void db_watch(struct db *db, enum err (*stop)(void *arg), void *arg)
{
    db->stop = stop;
    db->stop_arg = arg;
    db->stopped = OK;
    sqlite3_progress_handler(db->handle, stop ? STORE_WATCH_OPS : 0, stop ? on_progress : NULL, db);
}

/* ---- copying ---- */

static void handle_closep(sqlite3 **handle)
{
    sqlite3_close(*handle);
}

/* Our transaction holds the same state of the source from the first step to the last: the copying
 * never has to begin anew. */
static enum err copy_pages(struct db *db, sqlite3 *to, bool (*stop)(void *arg), void *arg)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", db->handle, "main");
    if (!backup) return err_of(sqlite3_extended_errcode(to));
    int code = SQLITE_OK;
    bool stopped = false;
    while (code == SQLITE_OK && !stopped) {
        code = sqlite3_backup_step(backup, BACKUP_PAGES_STEP);
        stopped = code == SQLITE_OK && stop && stop(arg);
    }
    int finished = sqlite3_backup_finish(backup);
    if (stopped) return ERR_SHUTTING_DOWN;
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED) return ERR_LOCKED; /* not in `finished` */
    return err_of(finished);
}

static enum err copy_into(struct db *db, const char *path, bool (*stop)(void *arg), void *arg,
                          struct fault *reterr)
{
    AUTO(handle_closep) sqlite3 *to = NULL;
    int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW;
    int code = sqlite3_open_v2(path, &to, flags, NULL);
    /* The copy is worth nothing before it is complete, so it needs no journal and no syncing. */
    if (!code)
        code =
            sqlite3_exec(to, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF", NULL, NULL, NULL);
    enum err e = err_of(code);
    if (!e) e = copy_pages(db, to, stop, arg);
    if (!e) return OK;
    return fault(reterr, e, "the database cannot be copied to %s: %s", path,
                 e == ERR_SHUTTING_DOWN ? err_title(e) : sqlite3_errmsg(to));
}

enum err db_copy(struct db *db, const char *path, bool (*stop)(void *arg), void *arg,
                 struct fault *reterr)
{
    assert(db->in_transaction);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fault(reterr, errno == ENOSPC ? ERR_STORAGE_FULL : ERR_IO,
                     "%s cannot be created: %s", path, strerror(errno));
    close(fd);
    enum err e = copy_into(db, path, stop, arg, reterr);
    if (e) unlink(path);
    return e;
}

/* ---- the write-ahead log ---- */

int db_wal_pages(const struct db *db)
{
    return db->wal_pages;
}

enum err db_checkpoint(struct db *db, bool restart)
{
    int mode = restart ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE;
    return err_of(sqlite3_wal_checkpoint_v2(db->handle, NULL, mode, NULL, NULL));
}
