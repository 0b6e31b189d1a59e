/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata migrate`: bring the database of the data folder up to date, without serving. A server does
 * the same when it starts; here an operator sees before that whether it can be done, and how far it
 * went.
 */
#include <inttypes.h>
#include <stdio.h>

#include "app/commands.h"
#include "store/lock.h"
#include "store/migrate.h"
#include "store/sqlite.h"
#include "store/store.h"

static enum err run(const struct config *config, struct arena *arena, int64_t *ret_before,
                    struct fault *reterr)
{
    AUTO(lock_freep) struct lock *lock = NULL;
    enum err e = lock_take(config->data.p, &lock, reterr);
    if (e) return e;
    struct db *db = NULL;
    str path = arena_printf(arena, "%s/" STORE_DATABASE_NAME, config->data.p);
    e = db_open(path.p, DB_WRITER, &db, reterr);
    if (!e) e = migrate_number(db, ret_before, reterr);
    if (!e) e = migrate(db, reterr);
    db_close(db);
    return e;
}

int migrate_main(const struct config *config, struct arena *arena, const struct args *args)
{
    (void)args;
    struct fault why = {0};
    int64_t before = 0;
    int now = migrate_latest();
    if (run(config, arena, &before, &why)) {
        fprintf(stderr, "fermata: %s\n", why.text);
        return EXIT_FAILED;
    }
    if (before == now)
        printf("schema %d: nothing to do\n", now);
    else
        printf("schema %" PRId64 " -> %d\n", before, now);
    return EXIT_OK;
}
