/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose turn it is in chats: people for whom something is to be done, and the three that do it. A
 * person is in memory from the first wish to the last rest, so a million who say nothing cost
 * nothing.
 *
 * Invariants:
 * 1. For a person each of desk, mirror and sender is under way at most once. Whoever is wanted while
 *    at work goes on afterwards.
 * 2. Desks and senders of one channel are bounded in number; who finds no room waits for the end of
 *    another.
 */
#include <stdlib.h>

#include "base/crypto.h"
#include "base/limits.h"
#include "chat/chats_int.h"
#include "store/table/keys.h"

enum { PEOPLE_MAX = 100 * 1000 }; /* in memory at a time: what is left waits in the store */

/* ---- whose turn it is ---- */

static str key_of(const int64_t *peer)
{
    return (str){(const char *)peer, sizeof *peer};
}

static struct person *person_new(struct channel *c, int64_t peer)
{
    struct person *person = calloc(1, sizeof *person);
    if (!person) abort();
    person->channel = c;
    person->peer = peer;
    if (map_put(&c->people, key_of(&peer), person)) {
        free(person); /* PEOPLE_MAX: the store keeps it, and the next start finds it */
        return NULL;
    }
    const struct row_worker worker = {.loop = c->all->server->loop,
                                      .store = c->all->server->store,
                                      .clock = &clock_system,
                                      .about = LOG_STR("channel", c->config->name)};
    person->desk.worker = person->mirror.worker = person->sender.worker = worker;
    person->desk.worker.ops = &desk_ops;
    person->mirror.worker.ops = &mirror_ops;
    person->sender.worker.ops = &sender_ops;
    arena_init(&person->desk.arena);
    arena_init(&person->mirror.arena);
    arena_init(&person->sender.arena);
    arena_init(&person->typing.arena);
    return person;
}

/* Nothing is sent, fetched or waited for any more. */
static void person_stop(struct person *person)
{
    row_worker_stop(&person->desk.worker);
    row_worker_stop(&person->mirror.worker);
    row_worker_stop(&person->sender.worker);
    trip_cancel(TAKE(person->desk.trip));
    trip_cancel(TAKE(person->sender.trip));
    if (person->sender.blob) blob_forget(TAKE(person->sender.blob));
    trip_cancel(TAKE(person->typing.trip));
    timer_free(TAKE(person->typing.timer));
}

static void person_free(struct person *person)
{
    person_stop(person);
    arena_done(&person->desk.arena);
    arena_done(&person->mirror.arena);
    arena_done(&person->sender.arena);
    arena_done(&person->typing.arena);
    free(person);
}

static bool has_room(const struct channel *c, unsigned what)
{
    if (what == WANT_DESK) return c->desks < CHANNEL_HANDLES_MAX;
    if (what == WANT_SEND) return c->sends < CHANNEL_SENDS_MAX && !c->signed_out;
    return true;
}

static void person_go(struct person *person)
{
    struct channel *c = person->channel;
    const struct {
        unsigned what;
        struct row_worker *worker;
    } works[] = {{WANT_DESK, &person->desk.worker},
                 {WANT_MIRROR, &person->mirror.worker},
                 {WANT_SEND, &person->sender.worker}};
    for (size_t i = 0; i < COUNT(works); i++) {
        unsigned what = works[i].what;
        if (!(person->wants & what) || (person->busy & what) || !has_room(c, what)) continue;
        person->wants &= ~what;
        person->busy |= what;
        c->desks += what == WANT_DESK;
        c->sends += what == WANT_SEND;
        row_worker_go(works[i].worker);
    }
}

void person_want(struct channel *c, int64_t peer, unsigned what)
{
    if (c->all->stopping) return;
    struct person *person = map_get(&c->people, key_of(&peer));
    if (!person) person = person_new(c, peer);
    if (!person) return;
    person->wants |= what;
    person_go(person);
}

/* Somebody who waits for room, from where the last one was found on: everybody's turn comes. */
static void next_one(struct channel *c, unsigned what)
{
    str key;
    void *value;
    for (int pass = 0; pass < 2 && has_room(c, what); pass++) {
        while (map_next(&c->people, &c->turn, &key, &value)) {
            struct person *person = value;
            if (!(person->wants & what) || (person->busy & what)) continue;
            person_go(person);
            return;
        }
        c->turn = 0;
    }
}

void person_rest(struct person *person, unsigned what)
{
    struct channel *c = person->channel;
    person->busy &= ~what;
    c->desks -= what == WANT_DESK;
    c->sends -= what == WANT_SEND;
    if (c->all->stopping) return;
    if (what == WANT_DESK || what == WANT_SEND) next_one(c, what); /* others first */
    person_go(person);
    bool idle = !person->wants && !person->busy && !person->desk.worker.timer &&
                !person->mirror.worker.timer && !person->sender.worker.timer && !typing_on(person);
    if (idle) {
        map_remove(&c->people, key_of(&person->peer));
        person_free(person);
    }
}

void people_wake(struct channel *c)
{
    size_t at = 0;
    str key;
    void *value;
    while (map_next(&c->people, &at, &key, &value)) {
        struct person *person = value;
        person->wants |= WANT_SEND;
        person_go(person);
    }
}

/* ---- all of them ---- */

void people_init(struct channel *c)
{
    map_init(&c->people, PEOPLE_MAX);
}

void people_stop(struct channel *c)
{
    size_t at = 0;
    str key;
    void *value;
    while (map_next(&c->people, &at, &key, &value)) person_stop(value);
}

void people_free(struct channel *c)
{
    size_t at = 0;
    str key;
    void *value;
    while (map_next(&c->people, &at, &key, &value)) person_free(value);
    map_done(&c->people);
}

/* ---- who they are ---- */

/* "wx:ID", or "wx#HASH" for an id that is too long: a channel's name has no '#', so nobody can be called
 * like the hash of somebody else. */
str person_user(struct arena *arena, const struct channel *c, const struct peer *peer)
{
    if (peer->user.len) return peer->user;
    str name = c->config->name;
    if (name.len + 1 + peer->sender.len <= USER_BYTES_MAX)
        return arena_printf(arena, "%.*s:%.*s", STR_ARG(name), STR_ARG(peer->sender));
    unsigned char hash[HASH_BYTES];
    char hex[HASH_HEX_BYTES];
    crypto_sha256(peer->sender, hash);
    crypto_hex((str){(const char *)hash, HASH_BYTES}, hex);
    return arena_printf(arena, "%.*s#%s", STR_ARG(name), hex);
}

unsigned person_roles(const struct peer *peer)
{
    return peer->user.len && peer->roles ? peer->roles : ROLE_USER;
}

enum ui_locale peer_locale(const struct peer *peer)
{
    return ui_locale_of(peer->locale);
}
