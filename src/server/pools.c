/* SPDX-License-Identifier: Apache-2.0
 *
 * The pools that all users share, each a count by user, and how much of one a user may have.
 */
#include "server/pools.h"

#include "base/limits.h"
#include "server/server.h"

static const struct {
    uint64_t all, each;
    const char *what;
} table[POOLS_COUNT] = {
#define POOL_ROW(name, all, each, what) {all, each, what},
    POOLS(POOL_ROW)
#undef POOL_ROW
};

void pools_init(struct pools *pools)
{
    for (size_t i = 0; i < POOLS_COUNT; i++)
        shares_init(&pools->shares[i], table[i].all, table[i].each, table[i].all);
}

void pools_done(struct pools *pools)
{
    for (size_t i = 0; i < POOLS_COUNT; i++) shares_done(&pools->shares[i]);
}

enum err pool_take(struct server *server, enum pool pool, str user, struct fault *reterr)
{
    struct shares *shares = &server->pools.shares[pool];
    shares->each_max = auth_required(server->auth) ? table[pool].each : table[pool].all;
    enum share given = shares_take(shares, user, 1);
    if (given == SHARE_GIVEN) return OK;
    if (given == SHARE_OWN_USED_UP)
        return fault(reterr, ERR_RATE_LIMITED,
                     "you have %llu %s, as many as one user may; try later",
                     (unsigned long long)shares->each_max, table[pool].what);
    return fault(reterr, ERR_RATE_LIMITED, "there are %llu %s, as many as there may be; try later",
                 (unsigned long long)table[pool].all, table[pool].what);
}

void pool_give(struct server *server, enum pool pool, str user)
{
    shares_give(&server->pools.shares[pool], user, 1);
}

enum err pool_room(struct server *server, enum pool pool, str user, struct fault *reterr)
{
    enum err e = pool_take(server, pool, user, reterr);
    if (!e) pool_give(server, pool, user);
    return e;
}
