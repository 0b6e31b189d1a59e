/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `settings`: what was changed at run time, as text by scope and name.
 */
#include "store/table/settings.h"

#include "base/limits.h"
#include "store/db/sqlite.h"

enum err settings_get(struct db *db, str scope, str name, struct arena *arena, str *ret_value)
{
    struct stmt *s = db_prepare(db, "SELECT value FROM settings WHERE scope=?1 AND name=?2");
    stmt_bind_str(s, 1, scope);
    stmt_bind_str(s, 2, name);
    bool row = stmt_step(s);
    str value = row ? arena_str(arena, stmt_str(s, 0)) : STR_EMPTY;
    enum err e = stmt_end(s);
    if (e) return e;
    if (!row) return ERR_NOT_FOUND;
    *ret_value = value;
    return OK;
}

enum err settings_set(struct db *db, str scope, str name, str value)
{
    if (scope.len > SETTING_NAME_BYTES_MAX || name.len > SETTING_NAME_BYTES_MAX ||
        value.len > SETTING_VALUE_BYTES_MAX)
        return ERR_TOO_LARGE;
    struct stmt *s =
        db_prepare(db, "INSERT INTO settings (scope, name, value) VALUES (?1, ?2, ?3)"
                       " ON CONFLICT (scope, name) DO UPDATE SET value=excluded.value");
    stmt_bind_str(s, 1, scope);
    stmt_bind_str(s, 2, name);
    stmt_bind_str(s, 3, value);
    return stmt_run(s);
}

enum err settings_delete(struct db *db, str scope, str name)
{
    struct stmt *s = db_prepare(db, "DELETE FROM settings WHERE scope=?1 AND name=?2");
    stmt_bind_str(s, 1, scope);
    stmt_bind_str(s, 2, name);
    return stmt_run(s);
}
