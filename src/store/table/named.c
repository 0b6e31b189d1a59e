/* SPDX-License-Identifier: Apache-2.0
 *
 * Which objects and spool files a copy of the database names, for a backup. Two questions to a
 * copied database, in the words of its own schema: the copy is never brought up to date first.
 * Schema 3 brought spool files, schema 5 objects.
 *
 * A spool file is passed over when its object is stored already, as another row says: then only its
 * name is left.
 */
#include "store/table/named.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "store/db/sqlite.h"

enum { SCHEMA_SPOOL = 3, SCHEMA_OBJECTS = 5 };

struct each {
    enum err (*on_file)(void *arg, const struct named_file *file, struct fault *reterr);
    void *arg;
    struct fault *reterr;
};

/* Columns: bucket, path, spool. */
static enum err each_row(struct db *db, struct stmt *s, const struct each *each)
{
    enum err e = OK;
    while (!e && stmt_step(s)) {
        struct named_file file = {
            .bucket = stmt_str(s, 0), .path = stmt_str(s, 1), .spool = stmt_str(s, 2)};
        e = each->on_file(each->arg, &file, each->reterr);
    }
    enum err ended = stmt_end(s);
    if (e || !ended) return e;
    return fault(each->reterr, ended, "the copy of the database cannot be read: %s",
                 db_message(db));
}

/* What a deleted thread has left is being removed. */
#define LIVE " AND EXISTS (SELECT 1 FROM threads WHERE threads.id=thread AND threads.owner<>'')"

static enum err objects(struct db *db, const struct each *each)
{
    return each_row(db,
                    db_prepare(db, "SELECT bucket, path, '' FROM blobs WHERE waiting=0" LIVE
                                   " UNION SELECT bucket, path, '' FROM attachments"
                                   "  WHERE owner<>''"
                                   " ORDER BY 1, 2"),
                    each);
}

static enum err spool_files(struct db *db, const struct each *each)
{
    return each_row(
        db,
        db_prepare(db, "SELECT 'payloads', max(path), name FROM ("
                       " SELECT spool AS name, path FROM blobs WHERE waiting=1 AND spool<>''" LIVE
                       " UNION ALL"
                       " SELECT spool, iif(result_hash='', '',"
                       "  substr(result_hash, 1, 2) || '/' || result_hash || '.' || call_id)"
                       "  FROM tool_calls WHERE spool<>''" LIVE
                       ") AS files WHERE NOT EXISTS (SELECT 1 FROM blobs WHERE waiting=0"
                       "  AND bucket='payloads' AND blobs.path=files.path)"
                       " GROUP BY name ORDER BY name"),
        each);
}

static enum err old_spool_files(struct db *db, const struct each *each)
{
    return each_row(db,
                    db_prepare(db, "SELECT DISTINCT 'payloads', '', spool FROM tool_calls"
                                   " WHERE spool<>'' ORDER BY spool"),
                    each);
}

/* Reading a database that was written with a log makes an empty log. */
static void remove_log(const char *copy)
{
    static const char *const endings[] = {"-wal", "-shm"};
    for (size_t i = 0; i < COUNT(endings); i++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s%s", copy, endings[i]) < PATH_MAX) unlink(path);
    }
}

enum err named_each(const char *copy, int64_t schema,
                    enum err (*on_file)(void *arg, const struct named_file *file,
                                        struct fault *reterr),
                    void *arg, struct fault *reterr)
{
    if (schema < SCHEMA_SPOOL) return OK;
    struct each each = {on_file, arg, reterr};
    struct db *db = NULL;
    enum err e = db_open(copy, DB_READER, &db, reterr);
    if (e) return e;
    if (schema >= SCHEMA_OBJECTS) e = objects(db, &each);
    if (!e) e = schema >= SCHEMA_OBJECTS ? spool_files(db, &each) : old_spool_files(db, &each);
    db_close(db);
    remove_log(copy);
    return e;
}
