/* SPDX-License-Identifier: Apache-2.0
 *
 * Store jobs behind keys: added, listed, revoked. Everything is made before the job runs: the store
 * thread only writes rows.
 */
#include "server/key_job.h"

#include <string.h>

#include "agent/shell/adopt.h"
#include "base/clock.h"
#include "base/say.h"
#include "store/table/channels.h"
#include "store/table/grants.h"
#include "store/table/owners.h"

/* From now on nobody is `local`: what they have would disappear without a word. */
static enum err adopt_local(struct key_add *add, struct db *db)
{
    bool in_use = add->local_used;
    enum err e = in_use ? OK : people_local(db, &in_use);
    if (e || in_use || str_eq(add->key.user, STR("local"))) return e;
    if (add->no_adopt || !(add->key.roles & ROLES_OF_PEOPLE))
        return owner_threads(db, STR("local"), &add->left);
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    const struct adoption adoption = {.from = STR("local"),
                                      .to = add->key.user,
                                      .audit_key = add->audit_key,
                                      .now = add->key.created};
    e = adopt_all(db, &arena, &adoption, &add->adopted);
    return e ? e : owner_threads(db, STR("local"), &add->left);
}

static enum err add_run(struct job *job, struct db *db)
{
    struct key_add *add = (struct key_add *)(void *)job;
    bool first = false;
    add->adopted = add->left = 0; /* it may run twice */
    enum err e = people_none(db, &first);
    if (!e) e = keys_add(db, &add->key);
    if (e || !first) return e;
    e = adopt_local(add, db);
    if (e || !add->audit_key) return e;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    return grants_end(db, &arena, add->audit_key, add->key.created); /* `local` was alone */
}

void key_add_init(struct key_add *add, str user, str name, unsigned roles)
{
    unsigned char random[KEY_RANDOM_BYTES];
    crypto_random(random, sizeof random);
    *add = (struct key_add){.job.run = add_run};
    key_make(random, add->text);
    crypto_wipe(random, sizeof random);
    add->key = (struct key){
        .user = user, .name = name, .roles = roles, .created = clock_wall(&clock_system)};
    enum err e = key_parse(str_c(add->text), &add->key.id);
    assert(e == OK);
    key_hash(str_c(add->text), add->key.hash);
}

static enum err list_run(struct job *job, struct db *db)
{
    struct key_list_job *list = (struct key_list_job *)(void *)job;
    return keys_list(db, list->arena, &list->list);
}

void key_list_init(struct key_list_job *list, struct arena *arena)
{
    *list = (struct key_list_job){.job.run = list_run, .arena = arena};
}

static enum err revoke_run(struct job *job, struct db *db)
{
    struct key_revoke *revoke = (struct key_revoke *)(void *)job;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    enum err e = keys_revoke(db, revoke->id, revoke->now);
    if (!e) e = links_end_by_key(db, revoke->id);
    if (!e && revoke->audit_key) e = grants_end(db, &arena, revoke->audit_key, revoke->now);
    return e;
}

void key_revoke_init(struct key_revoke *revoke, str id)
{
    *revoke =
        (struct key_revoke){.job.run = revoke_run, .id = id, .now = clock_wall(&clock_system)};
}

enum err key_roles(const struct json *names, unsigned *ret_roles, struct fault *reterr)
{
    unsigned roles = 0;
    if (names && names->type != JSON_ARRAY)
        return fault_field(reterr, ERR_INVALID_FIELD, "roles", "roles must be a list");
    for (const struct json *name = names ? names->child : NULL; name; name = name->next) {
        unsigned bit;
        if (role_parse(json_text(name), &bit))
            return fault_field(reterr, ERR_INVALID_FIELD, "roles", "there is no role \"%s\"",
                               say(json_text(name)).text);
        roles |= bit;
    }
    if (roles && !roles_valid(roles))
        return fault_field(reterr, ERR_INVALID_FIELD, "roles", "the role ask stands alone");
    *ret_roles = roles ? roles : ROLE_USER;
    return OK;
}

unsigned key_roles_of(const str *names, size_t count)
{
    unsigned roles = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned bit = 0;
        enum err e = role_parse(names[i], &bit);
        assert(e == OK); /* the command line allows only these names */
        roles |= bit;
    }
    return roles ? roles : ROLE_USER;
}

static void put_time(struct json_writer *w, str name, msec time)
{
    char text[RFC3339_BYTES];
    clock_rfc3339(time, text);
    json_member(w, name, str_c(text));
}

void key_list_json(struct buf *out, const struct key_list *list)
{
    struct json_writer w;
    json_write_begin(&w, out);
    json_object(&w);
    json_key(&w, STR("keys"));
    json_array(&w);
    for (size_t i = 0; i < list->count; i++) {
        const struct key *key = &list->keys[i];
        json_object(&w);
        json_member(&w, STR("id"), key->id);
        json_member(&w, STR("user"), key->user);
        json_member(&w, STR("name"), key->name);
        json_key(&w, STR("roles"));
        json_array(&w);
        for (size_t r = 0; r < ROLE_COUNT; r++)
            if (key->roles & role_table[r].bit) json_string(&w, str_c(role_table[r].name));
        json_array_end(&w);
        put_time(&w, STR("createdAt"), key->created);
        if (key->revoked) put_time(&w, STR("revokedAt"), key->revoked);
        json_object_end(&w);
    }
    json_array_end(&w);
    json_object_end(&w);
}

enum err key_fault(enum err e, str what, struct fault *reterr)
{
    switch (e) {
    case OK:
        return OK;
    case ERR_NOT_FOUND:
        return fault(reterr, e, "there is no key \"%s\"; `fermata key list` shows them all",
                     say(what).text);
    case ERR_INVALID_FIELD:
        if (user_valid(what))
            return fault_field(reterr, e, "name", "a key's name has at most %d bytes",
                               KEY_NAME_BYTES_MAX);
        return fault_field(reterr, e, "user", "\"%s\" cannot be a user's name", say(what).text);
    case ERR_TOO_LARGE:
        return fault(reterr, e, "there are %d keys already; revoke some first", KEYS_MAX);
    case ERR_STORAGE_FULL:
        return fault(reterr, e, "the disk is full; nothing was changed");
    default:
        return fault(reterr, e, "the store refused: %s", err_title(e));
    }
}
