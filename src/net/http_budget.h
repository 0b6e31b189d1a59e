/* SPDX-License-Identifier: Apache-2.0
 *
 * What clients may make us hold in memory: bodies that are read but not answered, and answers that
 * are made but not read. There is one budget for all connections. Users (whoever has shown who they
 * are) have most of it, and each of them a share; everybody else has a small part, and each address
 * a share of that. So who holds all it can takes nothing from the others.
 *
 * A charge belongs to whoever holds the bytes, and outlives the server if that does.
 */
#ifndef NET_HTTP_BUDGET_H
#define NET_HTTP_BUDGET_H

#include "base/shares.h"
#include "net/http_server.h"

enum http_pool { POOL_BODIES, POOL_UNSENT, POOL_COUNT };

/* What somebody holds of a pool. Zeroed: nothing. */
struct http_charge {
    struct http_budget *budget; /* NULL: nothing */
    char *name;
    uint64_t bytes;
    enum http_pool pool;
    bool known;
};

/* Without a budget everything is given. More may be taken on a charge by the same account. */
bool charge_take(struct http_charge *charge, struct http_budget *budget, enum http_pool pool,
                 const struct http_account *account, uint64_t bytes) MUST_USE;

/* The bytes are there already: they count, and keep others of the account out. False: there are too
 * many accounts, and they do not count. */
bool charge_add(struct http_charge *charge, struct http_budget *budget, enum http_pool pool,
                const struct http_account *account, uint64_t bytes);

void charge_drop(struct http_charge *charge); /* all of it */

/* Would so many be given? */
bool budget_has(struct http_budget *budget, enum http_pool pool, const struct http_account *account,
                uint64_t bytes);

/* Has it all of its own share? What others hold does not count: a probe is answered all the same. */
bool budget_owes(struct http_budget *budget, enum http_pool pool,
                 const struct http_account *account);

struct http_budget *http_budget_ref(struct http_budget *budget); /* NULL is fine */

#endif
