/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is at the other end of a WebSocket, as the handshake told; and whether they may still ask.
 */
#ifndef SOCKET_SOCKET_PEER_H
#define SOCKET_SOCKET_PEER_H

#include "server/auth.h"
#include "store/db/store.h"
#include "store/table/sessions.h"

struct server;

struct socket_peer {
    struct identity who;
    str client, host;
    bool here;
    uint64_t endings; /* of keys and sessions, when this one was found good */
};

/* May they still ask? OK, ERR_UNAUTHENTICATED, or ERR_BUSY: the store knows. */
enum err socket_peer_still(struct server *server, struct socket_peer *peer) MUST_USE;

/* Ask it: OK, ERR_UNAUTHENTICATED, or it failed. Embedded; it stays until done is called. */
struct socket_peer_ask {
    struct job job;
    struct server *server;
    struct arena arena;
    struct session session;
    unsigned char hash[HASH_BYTES];
    uint64_t endings;
    msec now;
    void (*done)(struct socket_peer_ask *ask, enum err e);
};
void socket_peer_ask(struct socket_peer_ask *ask, struct server *server,
                     const struct socket_peer *peer,
                     void (*done)(struct socket_peer_ask *ask, enum err e));

#endif
