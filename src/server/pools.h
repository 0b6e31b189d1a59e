/* SPDX-License-Identifier: Apache-2.0
 *
 * What all users share: a row for each pool, with how much there is and how much of it one user may
 * have. Who has their share is refused while there is still room for the others. Without a login
 * there is one user, who may have all of it.
 *
 * To add a pool: a row of POOLS, pool_take where something begins and pool_give where it ends.
 */
#ifndef SERVER_POOLS_H
#define SERVER_POOLS_H

#include "base/shares.h"

struct server;

/* enum, of all, of one user, what it has, for whoever is refused */
#define POOLS(X)                                                                     \
    X(POOL_UPLOADS, UPLOADS_MAX, UPLOADS_USER_MAX, "files on their way in")          \
    X(POOL_EXPORTS, EXPORTS_MAX, EXPORTS_USER_MAX, "exports")                        \
    X(POOL_STREAMS, STREAMS_MAX, STREAMS_USER_MAX, "event streams")                  \
    X(POOL_SOCKETS, WS_SOCKETS_MAX, WS_SOCKETS_USER_MAX, "WebSockets")               \
    X(POOL_SUBSCRIPTIONS, WS_SUBSCRIPTIONS_ALL_MAX, WS_SUBSCRIPTIONS_USER_MAX,       \
      "sessions read by WebSockets")                                                 \
    X(POOL_WAITS, DESK_WAITS_MAX, DESK_WAITS_USER_MAX, "calls that wait for people") \
    X(POOL_CHANGES, CHANGES_MAX, CHANGES_USER_MAX, "changes that wait for the store")

#define POOL_ENUM(name, all, each, what) name,
enum pool { POOLS(POOL_ENUM) POOLS_COUNT };
#undef POOL_ENUM

struct pools {
    struct shares shares[POOLS_COUNT];
};

void pools_init(struct pools *pools);
void pools_done(struct pools *pools);

/* One unit for a user, until pool_give. ERR_RATE_LIMITED, with the reason. */
enum err pool_take(struct server *server, enum pool pool, str user, struct fault *reterr) MUST_USE;
void pool_give(struct server *server, enum pool pool, str user);

/* Would pool_take give one? For whoever begins something that takes it later. */
enum err pool_room(struct server *server, enum pool pool, str user, struct fault *reterr) MUST_USE;

#endif
