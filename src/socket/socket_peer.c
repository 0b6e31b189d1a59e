/* SPDX-License-Identifier: Apache-2.0
 *
 * May the client of a WebSocket still ask? Its key or its session may have ended since the handshake.
 */
#include "socket/socket_peer.h"

#include <string.h>

#include "server/server.h"

/* A key is looked for among all of them: only if some have ended since. */
enum err socket_peer_still(struct server *server, struct socket_peer *peer)
{
    uint64_t endings = auth_endings(server->auth);
    if (peer->who.via == VIA_KEY && peer->endings == endings) return OK;
    enum err e = auth_still(server->auth, &peer->who, peer->here);
    if (!e) peer->endings = endings;
    return e;
}

static enum err ask_run(struct job *job, struct db *db)
{
    struct socket_peer_ask *ask = (struct socket_peer_ask *)(void *)job;
    return sessions_find(db, ask->hash, ask->now, &ask->arena, &ask->session);
}

static void ask_store(struct socket_peer_ask *ask)
{
    ask->endings = auth_endings(ask->server->auth);
    ask->now = clock_wall(&clock_system);
    store_read(ask->server->store, &ask->job);
}

static void ask_done(struct job *job, enum err e)
{
    struct socket_peer_ask *ask = (struct socket_peer_ask *)(void *)job;
    if (!e && ask->endings != auth_endings(ask->server->auth)) {
        ask_store(ask); /* it may be this one that ended meanwhile */
        return;
    }
    if (!e) e = auth_remember(ask->server->auth, &ask->session);
    arena_done(&ask->arena);
    ask->done(ask, e == ERR_NOT_FOUND ? ERR_UNAUTHENTICATED : e);
}

void socket_peer_ask(struct socket_peer_ask *ask, struct server *server,
                     const struct socket_peer *peer,
                     void (*done)(struct socket_peer_ask *ask, enum err e))
{
    ask->job = (struct job){.run = ask_run, .done = ask_done, .lane = READ_QUICK};
    ask->server = server;
    ask->done = done;
    arena_init(&ask->arena);
    memcpy(ask->hash, peer->who.session, HASH_BYTES);
    ask_store(ask);
}
