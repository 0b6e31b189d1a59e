/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose turn it is: people for whom something is to be done, and the three that do it. A person is in
 * memory from the first wish to the last rest, so a million who say nothing cost nothing.
 *
 * Invariants:
 * 1. For a person each of desk, mirror and sender is under way at most once. Whoever is wanted while
 *    at work goes on afterwards.
 * 2. Desks and senders of one channel are bounded in number; who finds no room waits for the end of
 *    another.
 */
#include <stdlib.h>

#include "app/channel/int.h"
#include "base/crypto.h"
#include "base/limits.h"
#include "store/keys.h"

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
    desk_open(person);
    mirror_open(person);
    sender_open(person);
    return person;
}

static void person_free(struct person *person)
{
    desk_close(person);
    mirror_close(person);
    sender_close(person);
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
    static const struct {
        unsigned what;
        void (*go)(struct person *);
    } works[] = {{WANT_DESK, desk_go}, {WANT_MIRROR, mirror_go}, {WANT_SEND, sender_go}};
    struct channel *c = person->channel;
    for (size_t i = 0; i < COUNT(works); i++) {
        unsigned what = works[i].what;
        if (!(person->wants & what) || (person->busy & what) || !has_room(c, what)) continue;
        person->wants &= ~what;
        person->busy |= what;
        c->desks += what == WANT_DESK;
        c->sends += what == WANT_SEND;
        works[i].go(person);
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
    bool idle = !person->wants && !person->busy && !person->desk.timer && !person->mirror.timer &&
                !person->sender.timer && !typing_on(person);
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
    while (map_next(&c->people, &at, &key, &value)) {
        struct person *person = value;
        trip_cancel(TAKE(person->desk.trip));
        trip_cancel(TAKE(person->sender.trip));
        trip_cancel(TAKE(person->typing.trip));
        timer_free(TAKE(person->desk.timer));
        timer_free(TAKE(person->mirror.timer));
        timer_free(TAKE(person->sender.timer));
        timer_free(TAKE(person->typing.timer));
        if (person->sender.blob) blob_forget(TAKE(person->sender.blob));
    }
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
    return arena_printf(arena, "%.*s:%s", STR_ARG(name), hex);
}

unsigned person_roles(const struct peer *peer)
{
    return peer->user.len && peer->roles ? peer->roles : ROLE_USER;
}

enum ui_locale peer_locale(const struct peer *peer)
{
    return ui_locale_of(peer->locale);
}
