/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is asking: keys, sessions, tickets and rates in memory, as three maps by hash, and two of
 * counters, of requests and of wrong keys.
 *
 * Secrets are looked up by their SHA-256, so neither the maps nor the time of a lookup tells
 * anything about a secret. Each map has a bound; sessions and rate counters are caches and are
 * simply emptied when full.
 */
#include "server/auth.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/shares.h"
#include "net/loop.h"

/* What an identity is made of, with its texts behind it. */
struct holder {
    struct deadline deadline; /* of a ticket */
    struct auth *auth;
    unsigned char hash[HASH_BYTES];
    unsigned roles;
    msec expires; /* of a session, wall time; of a ticket, steady time */
    enum auth_via via;
    unsigned char session[HASH_BYTES]; /* of a ticket that a session asked for */
    size_t user_len, key_id_len;
    char texts[]; /* user, key id */
};

struct counter {
    msec since;
    uint32_t count;
};

struct auth {
    const struct clock *clock;
    struct auth_options options;
    struct map keys, sessions, tickets; /* hash -> holder */
    struct map counters;                /* key id or address -> counter */
    struct map failures;                /* address -> counter, of wrong keys */
    struct shares ticket_shares;        /* by user */
    struct deadlines ticket_ends;
    uint64_t endings;
    _Atomic bool required; /* there is, or was, a key; asked for by other threads, too */
};

static str hash_str(const unsigned char hash[static HASH_BYTES])
{
    return (str){(const char *)hash, HASH_BYTES};
}

static struct holder *holder_new(struct auth *auth, const unsigned char hash[static HASH_BYTES],
                                 str user, str key_id, unsigned roles)
{
    struct holder *holder = mem_new(sizeof *holder + user.len + key_id.len + 1);
    holder->auth = auth;
    holder->roles = roles;
    holder->user_len = user.len;
    holder->key_id_len = key_id.len;
    memcpy(holder->hash, hash, HASH_BYTES);
    if (user.len) memcpy(holder->texts, user.p, user.len);
    if (key_id.len) memcpy(holder->texts + user.len, key_id.p, key_id.len);
    return holder;
}

static str holder_key_id(const struct holder *holder)
{
    return (str){holder->texts + holder->user_len, holder->key_id_len};
}

static struct identity holder_identity(const struct holder *holder, struct arena *arena)
{
    return (struct identity){
        .user = arena_str(arena, (str){holder->texts, holder->user_len}),
        .key_id = arena_str(arena, holder_key_id(holder)),
        .roles = holder->roles,
        .via = holder->via,
    };
}

static void empty(struct map *map)
{
    size_t count_max = map->count_max, at = 0;
    str key;
    void *value;
    while (map_next(map, &at, &key, &value)) free(value);
    map_done(map);
    map_init(map, count_max);
}

/* Put into a cache: when it is full, start anew. */
static void cache_put(struct map *map, str key, void *value)
{
    if (map_put(map, key, value) == OK) return;
    empty(map);
    enum err e = map_put(map, key, value);
    assert(e == OK);
}

/* Gone from the table already. */
static void ticket_free(struct holder *holder)
{
    deadline_clear(&holder->deadline);
    shares_give(&holder->auth->ticket_shares, (str){holder->texts, holder->user_len}, 1);
    free(holder);
}

static void ticket_ended(struct deadline *deadline)
{
    struct holder *holder = CONTAINER(deadline, struct holder, deadline);
    ticket_free(map_remove(&holder->auth->tickets, hash_str(holder->hash)));
}

struct auth *auth_new(struct loop *loop, const struct auth_options *options)
{
    struct auth *auth = mem_new(sizeof *auth);
    auth->options = *options;
    auth->clock = options->clock;
    map_init(&auth->keys, KEYS_MAX + 1);
    map_init(&auth->sessions, AUTH_SESSIONS_CACHED_MAX);
    map_init(&auth->tickets, AUTH_TICKETS_MAX);
    shares_init(&auth->ticket_shares, AUTH_TICKETS_MAX, AUTH_TICKETS_USER_MAX, AUTH_TICKETS_MAX);
    map_init(&auth->counters, AUTH_COUNTERS_MAX);
    map_init(&auth->failures, AUTH_COUNTERS_MAX);
    deadlines_init(&auth->ticket_ends, loop, TICKET_MS_MAX, ticket_ended);
    if (options->first_key.len) {
        struct key first = {
            .id = options->first_key_id, .user = STR("local"), .roles = ROLES_OF_PEOPLE};
        key_hash(options->first_key, first.hash);
        auth_add_key(auth, &first);
    }
    return auth;
}

/* Remove every entry made with this key and by this session; NULL stands for any. */
static void remove_made_by(struct map *map, const str *key_id, const unsigned char *session)
{
    size_t at = 0;
    str hash;
    void *value;
    while (map_next(map, &at, &hash, &value)) {
        struct holder *holder = value;
        if (key_id && !str_eq(holder_key_id(holder), *key_id)) continue;
        if (session && !str_eq(hash_str(holder->session), hash_str(session))) continue;
        map_remove(map, hash_str(holder->hash));
        if (map == &holder->auth->tickets)
            ticket_free(holder);
        else
            free(holder);
        at--; /* removal may have moved another entry here */
    }
}

void auth_free(struct auth *auth)
{
    if (!auth) return;
    remove_made_by(&auth->tickets, NULL, NULL);
    deadlines_done(&auth->ticket_ends);
    empty(&auth->keys);
    empty(&auth->sessions);
    empty(&auth->counters);
    empty(&auth->failures);
    map_done(&auth->keys);
    map_done(&auth->sessions);
    map_done(&auth->tickets);
    shares_done(&auth->ticket_shares);
    map_done(&auth->counters);
    map_done(&auth->failures);
    free(auth);
}

bool auth_required(const struct auth *auth)
{
    return auth->required;
}

void auth_require(struct auth *auth)
{
    if (!auth->required) remove_made_by(&auth->tickets, NULL, NULL); /* they were anybody's */
    auth->required = true;
}

/* ---- keys ---- */

void auth_add_key(struct auth *auth, const struct key *key)
{
    struct holder *holder = holder_new(auth, key->hash, key->user, key->id, key->roles);
    holder->via = VIA_KEY;
    auth_require(auth);
    free(map_remove(&auth->keys, hash_str(key->hash)));
    enum err e = map_put(&auth->keys, hash_str(key->hash), holder);
    assert(e == OK); /* the store keeps to KEYS_MAX */
}

void auth_remove_key(struct auth *auth, str id)
{
    auth->endings++;
    remove_made_by(&auth->keys, &id, NULL);
    remove_made_by(&auth->sessions, &id, NULL);
    remove_made_by(&auth->tickets, &id, NULL);
}

/* Has this address had the wrong keys that it may have? */
static bool guessing(const struct auth *auth, str address)
{
    const struct counter *failures = map_get(&auth->failures, address);
    return failures && failures->count > AUTH_FAILURES_MAX &&
           clock_steady(auth->clock) - failures->since < AUTH_FAILURES_MS;
}

/* A count that began less than `span` ago; else it begins now. */
static struct counter *counter_of(struct map *counters, str key, msec now, msec span)
{
    struct counter *counter = map_get(counters, key);
    if (!counter) {
        counter = mem_new(sizeof *counter);
        counter->since = now;
        cache_put(counters, key, counter);
    }
    if (now - counter->since >= span) *counter = (struct counter){.since = now};
    return counter;
}

enum err auth_failed(struct auth *auth, str address, msec *ret_wait_ms)
{
    msec now = clock_steady(auth->clock);
    struct counter *failures = counter_of(&auth->failures, address, now, AUTH_FAILURES_MS);
    if (failures->count <= AUTH_FAILURES_MAX) failures->count++;
    if (failures->count <= AUTH_FAILURES_MAX) return OK;
    *ret_wait_ms = failures->since + AUTH_FAILURES_MS - now;
    return ERR_RATE_LIMITED;
}

enum err auth_by_key(const struct auth *auth, struct arena *arena, str key, str address,
                     struct identity *ret_who)
{
    if (key.len < AUTH_KEY_BYTES_SAFE && guessing(auth, address)) return ERR_UNAUTHENTICATED;
    unsigned char hash[HASH_BYTES];
    key_hash(key, hash);
    const struct holder *holder = map_get(&auth->keys, hash_str(hash));
    if (!holder) return ERR_UNAUTHENTICATED;
    *ret_who = holder_identity(holder, arena);
    return OK;
}

enum err auth_local(const struct auth *auth, bool on_this_machine, struct identity *ret_who)
{
    if (auth_required(auth) || auth->options.beyond_loopback || !on_this_machine)
        return ERR_UNAUTHENTICATED;
    *ret_who = (struct identity){.user = STR("local"), .roles = ROLES_OF_PEOPLE, .via = VIA_LOCAL};
    return OK;
}

/* ---- sessions ---- */

static void random_text(char out[static BASE64URL_BYTES(32)])
{
    unsigned char random[32];
    crypto_random(random, sizeof random);
    crypto_base64url((str){(const char *)random, sizeof random}, out);
    crypto_wipe(random, sizeof random);
}

void auth_session_token(char out[static SESSION_TOKEN_BYTES])
{
    random_text(out);
}

void auth_session_hash(str token, unsigned char out[static HASH_BYTES])
{
    crypto_sha256(token, out);
}

enum err auth_by_session(struct auth *auth, struct arena *arena,
                         const unsigned char hash[static HASH_BYTES], struct identity *ret_who)
{
    const struct holder *holder = map_get(&auth->sessions, hash_str(hash));
    if (!holder) return ERR_BUSY;
    if (holder->expires <= clock_wall(auth->clock)) return ERR_UNAUTHENTICATED;
    *ret_who = holder_identity(holder, arena);
    memcpy(ret_who->session, hash, HASH_BYTES);
    return OK;
}

static bool key_is_active(const struct auth *auth, str id)
{
    size_t at = 0;
    str hash;
    void *value;
    while (map_next(&auth->keys, &at, &hash, &value))
        if (str_eq(holder_key_id(value), id)) return true;
    return false;
}

enum err auth_remember(struct auth *auth, const struct session *session)
{
    if (!key_is_active(auth, session->key_id)) return ERR_UNAUTHENTICATED;
    struct holder *holder =
        holder_new(auth, session->hash, session->user, session->key_id, session->roles);
    holder->via = VIA_SESSION;
    holder->expires = session->expires;
    free(map_remove(&auth->sessions, hash_str(session->hash)));
    cache_put(&auth->sessions, hash_str(session->hash), holder);
    return OK;
}

void auth_forget(struct auth *auth, const unsigned char hash[static HASH_BYTES])
{
    auth->endings++;
    free(map_remove(&auth->sessions, hash_str(hash)));
    remove_made_by(&auth->tickets, NULL, hash);
}

uint64_t auth_endings(const struct auth *auth)
{
    return auth->endings;
}

enum err auth_still(const struct auth *auth, const struct identity *who, bool on_this_machine)
{
    static const unsigned char none[HASH_BYTES];
    struct identity local;
    if (!who->key_id.len) return auth_local(auth, on_this_machine, &local);
    if (memcmp(who->session, none, HASH_BYTES) != 0) {
        const struct holder *holder = map_get(&auth->sessions, hash_str(who->session));
        if (!holder) return ERR_BUSY;
        return holder->expires <= clock_wall(auth->clock) ? ERR_UNAUTHENTICATED : OK;
    }
    return key_is_active(auth, who->key_id) ? OK : ERR_UNAUTHENTICATED;
}

/* ---- tickets ---- */

enum err auth_ticket_new(struct auth *auth, const struct identity *who,
                         char out[static TICKET_BYTES])
{
    auth->ticket_shares.each_max = auth->required ? AUTH_TICKETS_USER_MAX : AUTH_TICKETS_MAX;
    if (shares_take(&auth->ticket_shares, who->user, 1) != SHARE_GIVEN) return ERR_RATE_LIMITED;
    random_text(out);
    unsigned char hash[HASH_BYTES];
    crypto_sha256(str_c(out), hash);
    struct holder *holder = holder_new(auth, hash, who->user, who->key_id, who->roles);
    holder->via = VIA_TICKET;
    holder->expires = clock_steady(auth->clock) + TICKET_MS_MAX;
    memcpy(holder->session, who->session, HASH_BYTES);
    enum err e = map_put(&auth->tickets, hash_str(hash), holder);
    assert(e == OK);
    deadline_set(&auth->ticket_ends, &holder->deadline);
    return OK;
}

enum err auth_by_ticket(struct auth *auth, struct arena *arena, str ticket,
                        struct identity *ret_who)
{
    unsigned char hash[HASH_BYTES];
    crypto_sha256(ticket, hash);
    struct holder *holder = map_remove(&auth->tickets, hash_str(hash));
    if (!holder) return ERR_UNAUTHENTICATED;
    /* The deadline takes old tickets away; a busy loop may be late with that. */
    bool fresh = clock_steady(auth->clock) < holder->expires;
    if (fresh) {
        *ret_who = holder_identity(holder, arena);
        memcpy(ret_who->session, holder->session, HASH_BYTES);
    }
    ticket_free(holder);
    return fresh ? OK : ERR_UNAUTHENTICATED;
}

/* ---- rate ---- */

enum err auth_count(struct auth *auth, str key_or_address)
{
    if (!auth->options.rate_max) return OK;
    struct counter *counter =
        counter_of(&auth->counters, key_or_address, clock_steady(auth->clock), 1000);
    if (counter->count >= auth->options.rate_max) return ERR_RATE_LIMITED;
    counter->count++;
    return OK;
}
