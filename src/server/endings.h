/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys and sessions that end: whoever keeps something open for one is told, and ends it.
 */
#ifndef SERVER_ENDINGS_H
#define SERVER_ENDINGS_H

#include "base/crypto.h"
#include "base/str.h"

struct server;

/* Embedded in whoever is told, for as long as the server is there. */
struct ending {
    struct ending *next;
    void (*on_key)(struct ending *ending, str key_id); /* empty: what was there without a key */
    void (*on_session)(struct ending *ending, const unsigned char hash[static HASH_BYTES]);
};

void endings_follow(struct server *server, struct ending *ending);

void endings_key(struct server *server, str key_id);
void endings_session(struct server *server, const unsigned char hash[static HASH_BYTES]);

#endif
