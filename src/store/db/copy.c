/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy of the database, made while it is in use. The schema's number and the pages come from the
 * same transaction, so the one is that of the other.
 */
#include "store/db/copy.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/db/migrate.h"
#include "store/db/sqlite.h"

static enum err copy_now(struct db *db, const char *path, bool (*stop)(void *arg), void *arg,
                         int64_t *ret_schema, struct fault *reterr)
{
    int64_t schema = 0;
    enum err e = migrate_number(db, &schema, reterr);
    if (!e) e = db_copy(db, path, stop, arg, reterr);
    if (!e) *ret_schema = schema;
    return e;
}

static bool stopping(void *store)
{
    return store_stopping(store);
}

static enum err copy_run(struct job *job, struct db *db)
{
    struct copy *copy = (struct copy *)(void *)job;
    return copy_now(db, copy->path, stopping, copy->store, &copy->schema, &copy->why);
}

void copy_init(struct copy *copy, struct store *store, const char *path)
{
    *copy =
        (struct copy){.job = {.run = copy_run, .lane = READ_COPY}, .store = store, .path = path};
}

enum err copy_folder(const char *folder, const char *path, int64_t *ret_schema,
                     struct fault *reterr)
{
    char database[PATH_MAX];
    int len = snprintf(database, sizeof database, "%s/" STORE_DATABASE_NAME, folder);
    if (len >= (int)sizeof database)
        return fault(reterr, ERR_CONFIG, "the path of the data folder is too long");
    if (access(database, F_OK))
        return fault(reterr, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s: %s", database,
                     strerror(errno));
    AUTO(db_closep) struct db *db = NULL;
    enum err e = db_open(database, DB_READER, &db, reterr);
    if (!e) e = db_begin(db);
    if (e) return e;
    e = copy_now(db, path, NULL, NULL, ret_schema, reterr);
    db_settle(db);
    enum err ended = db_rollback(db);
    return e ? e : ended;
}
