/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata migrate`: bring the database of the data folder up to date, without serving. A server does
 * the same when it starts; here an operator sees before that whether it can be done, and how far it
 * went.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/home.h"
#include "config/commands.h"
#include "store/db/lock.h"
#include "store/db/migrate.h"
#include "store/db/sqlite.h"
#include "store/db/store.h"

int migrate_main(const struct config *config, struct arena *arena, const struct args *args)
{
    (void)args;
    AUTO(lock_freep) struct lock *lock = NULL;
    struct fault why = {0};
    struct db *db = NULL;
    int64_t before = 0;
    int now = migrate_latest();
    str path = arena_printf(arena, "%s/" STORE_DATABASE_NAME, config->data.p);
    enum err e = lock_take(config->data.p, "migrate", &lock, &why);
    if (!e) e = db_open(path.p, DB_WRITER, &db, &why);
    if (!e) e = migrate_number(db, &before, &why);
    if (!e) e = migrate(db, &why);
    db_close(db);
    if (e) return home_failed(&why);
    if (before == now)
        printf("schema %d: nothing to do\n", now);
    else
        printf("schema %" PRId64 " -> %d\n", before, now);
    return EXIT_OK;
}
