/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables `users` and `api_keys`: API keys and roles. The auth module loads all active keys at
 * start and after each change, and looks a presented key up by its hash in memory.
 */
#include "store/table/keys.h"

#include <string.h>

#include "base/utf8.h"
#include "store/db/sqlite.h"
#include "store/table/sessions.h"
#include "store/table/settings.h"

#define ROLE_ROW(role, bit, name) {bit, name},
const struct role_row role_table[ROLE_COUNT] = {ROLES(ROLE_ROW)};
#undef ROLE_ROW

enum err role_parse(str name, unsigned *ret_bit)
{
    for (size_t i = 0; i < ROLE_COUNT; i++) {
        if (!str_eq(name, str_c(role_table[i].name))) continue;
        *ret_bit = role_table[i].bit;
        return OK;
    }
    return ERR_INVALID_FIELD;
}

/* ---- text ---- */

/* Where the parts stand: "fk_", id, "_", secret. */
enum { ID_AT = 3, ID_LEN = ID_BYTES - 1, SECRET_AT = ID_AT + ID_LEN + 1 };

void key_make(const unsigned char random[static KEY_RANDOM_BYTES], char out[static KEY_TEXT_BYTES])
{
    memcpy(out, "fk_", ID_AT);
    id_make(random, out + ID_AT);
    out[SECRET_AT - 1] = '_';
    crypto_base64url((str){(const char *)random + ID_RANDOM_BYTES, 32}, out + SECRET_AT);
}

enum err key_parse(str text, str *ret_id)
{
    unsigned char secret[32];
    size_t len = 0;
    if (text.len != KEY_TEXT_BYTES - 1 || !str_starts(text, STR("fk_"))) return ERR_INVALID_FIELD;
    if (text.p[SECRET_AT - 1] != '_') return ERR_INVALID_FIELD;
    str id = {text.p + ID_AT, ID_LEN};
    for (size_t i = 0; i < id.len; i++)
        if (!strchr("0123456789abcdefghjkmnpqrstvwxyz", id.p[i]) || !id.p[i])
            return ERR_INVALID_FIELD;
    enum err e = crypto_base64url_parse(str_drop(text, SECRET_AT), secret, &len);
    crypto_wipe(secret, sizeof secret);
    if (e) return e;
    *ret_id = id;
    return OK;
}

void key_hash(str text, unsigned char out[static HASH_BYTES])
{
    crypto_sha256(text, out);
}

/* ---- rows ---- */

static bool plain(str text, size_t bytes_max)
{
    if (text.len > bytes_max || !utf8_valid(text)) return false;
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f) return false;
    return true;
}

bool user_valid(str user)
{
    return user.len > 0 && plain(user, USER_BYTES_MAX);
}

bool roles_valid(unsigned roles)
{
    return roles == ROLE_ASK || (roles && !(roles & ~(unsigned)ROLES_OF_PEOPLE));
}

static bool key_valid(const struct key *key)
{
    return id_valid(key->id) && user_valid(key->user) && plain(key->name, KEY_NAME_BYTES_MAX) &&
           roles_valid(key->roles);
}

static enum err room_check(struct db *db)
{
    struct stmt *s = db_prepare(db, "SELECT count(*) FROM api_keys WHERE revoked IS NULL");
    bool room = stmt_step(s) && stmt_i64(s, 0) < KEYS_MAX;
    enum err e = stmt_end(s);
    return e || room ? e : ERR_TOO_LARGE;
}

static enum err user_ensure(struct db *db, str user, msec now)
{
    struct stmt *s = db_prepare(db, "INSERT INTO users (name, created) VALUES (?1, ?2)"
                                    " ON CONFLICT DO NOTHING");
    stmt_bind_str(s, 1, user);
    stmt_bind_i64(s, 2, now);
    return stmt_run(s);
}

enum err keys_add(struct db *db, const struct key *key)
{
    if (!key_valid(key)) return ERR_INVALID_FIELD;
    enum err e = room_check(db);
    if (!e) e = user_ensure(db, key->user, key->created);
    if (e) return e;
    struct stmt *s = db_prepare(db, "INSERT INTO api_keys (id, user, roles, name, hash, created)"
                                    " VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
    stmt_bind_str(s, 1, key->id);
    stmt_bind_str(s, 2, key->user);
    stmt_bind_i64(s, 3, key->roles);
    stmt_bind_str(s, 4, key->name);
    stmt_bind_blob(s, 5, (str){(const char *)key->hash, HASH_BYTES});
    stmt_bind_i64(s, 6, key->created);
    return stmt_run(s);
}

enum err keys_revoke(struct db *db, str id, msec now)
{
    struct stmt *s =
        db_prepare(db, "UPDATE api_keys SET revoked=coalesce(revoked, ?2) WHERE id=?1");
    stmt_bind_str(s, 1, id);
    stmt_bind_i64(s, 2, now);
    enum err e = stmt_run(s);
    if (e) return e;
    if (db_changes(db) == 0) return ERR_NOT_FOUND;
    return sessions_end_by_key(db, id, now);
}

static enum err rows_load(struct stmt *s, struct arena *arena, struct key_list *ret_list)
{
    stmt_bind_i64(s, 1, KEYS_MAX);
    struct key_list list = {0};
    for (size_t room = 0; stmt_step(s); list.count++) {
        if (list.count == room) {
            room = room ? room * 2 : 16;
            struct key *more = arena_array(arena, room, sizeof *more);
            if (list.count) memcpy(more, list.keys, list.count * sizeof *more);
            list.keys = more;
        }
        struct key *key = &list.keys[list.count];
        key->id = arena_str(arena, stmt_str(s, 0));
        key->user = arena_str(arena, stmt_str(s, 1));
        key->roles = (unsigned)stmt_i64(s, 2);
        key->name = arena_str(arena, stmt_str(s, 3));
        str hash = stmt_str(s, 4);
        if (hash.len == HASH_BYTES) memcpy(key->hash, hash.p, HASH_BYTES);
        key->created = stmt_i64(s, 5);
        key->revoked = stmt_i64(s, 6);
    }
    enum err e = stmt_end(s);
    if (!e) *ret_list = list;
    return e;
}

#define KEY_COLUMNS "id, user, roles, name, hash, created, coalesce(revoked, 0)"

enum err keys_list(struct db *db, struct arena *arena, struct key_list *ret_list)
{
    return rows_load(db_prepare(db, "SELECT " KEY_COLUMNS " FROM api_keys"
                                    " ORDER BY revoked IS NOT NULL, created DESC, id LIMIT ?1"),
                     arena, ret_list);
}

enum err keys_load_all(struct db *db, struct arena *arena, struct key_list *ret_list)
{
    return rows_load(db_prepare(db, "SELECT " KEY_COLUMNS " FROM api_keys WHERE revoked IS NULL"
                                    " ORDER BY created DESC, id LIMIT ?1"),
                     arena, ret_list);
}

/* ---- people ---- */

static enum err yes_or_no(struct stmt *s, bool *ret_yes)
{
    bool yes = stmt_step(s);
    enum err e = stmt_end(s);
    if (!e) *ret_yes = yes;
    return e;
}

/* Nobody has ever had a key, or one of the environment stands for `local`. */
static enum err local_in_use(struct db *db, bool *ret_yes)
{
    return yes_or_no(db_prepare(db, "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM api_keys)"
                                    " OR EXISTS (SELECT 1 FROM settings"
                                    "  WHERE scope='server' AND name='local')"),
                     ret_yes);
}

enum err person_has_role(struct db *db, str user, str role, bool *ret_yes)
{
    unsigned bit = 0;
    *ret_yes = false;
    if (role_parse(role, &bit)) return OK; /* a role that nobody can have */
    if (str_eq(user, STR("local"))) {
        enum err e = local_in_use(db, ret_yes);
        if (e || *ret_yes) return e;
    }
    struct stmt *s =
        db_prepare(db, "SELECT 1 FROM api_keys WHERE user=?1 AND revoked IS NULL AND roles&?2"
                       " UNION ALL SELECT 1 FROM channel_peers WHERE user=?1 AND user<>''"
                       "  AND roles&?2 LIMIT 1");
    stmt_bind_str(s, 1, user);
    stmt_bind_i64(s, 2, bit);
    return yes_or_no(s, ret_yes);
}

enum err person_gone(struct db *db, str user, bool *ret_gone)
{
    bool local = false;
    enum err e = str_eq(user, STR("local")) ? local_in_use(db, &local) : OK;
    *ret_gone = false;
    if (e || local) return e;
    struct stmt *s = db_prepare(db, "SELECT 1 WHERE EXISTS (SELECT 1 FROM api_keys WHERE user=?1)"
                                    " AND NOT EXISTS"
                                    "  (SELECT 1 FROM api_keys WHERE user=?1 AND revoked IS NULL)"
                                    " AND NOT EXISTS"
                                    "  (SELECT 1 FROM channel_peers WHERE user=?1 AND user<>'')");
    stmt_bind_str(s, 1, user);
    return yes_or_no(s, ret_gone);
}

enum err people_local_set(struct db *db, bool in_use)
{
    return in_use ? settings_set(db, STR("server"), STR("local"), STR("1"))
                  : settings_delete(db, STR("server"), STR("local"));
}

enum err people_local(struct db *db, bool *ret_in_use)
{
    return yes_or_no(db_prepare(db, "SELECT 1 FROM settings WHERE scope='server' AND name='local'"),
                     ret_in_use);
}

enum err people_none(struct db *db, bool *ret_none)
{
    struct stmt *s = db_prepare(db, "SELECT 1 FROM api_keys WHERE roles&?1 LIMIT 1");
    stmt_bind_i64(s, 1, ROLES_OF_PEOPLE);
    bool some = false;
    enum err e = yes_or_no(s, &some);
    if (!e) *ret_none = !some;
    return e;
}
