/* SPDX-License-Identifier: Apache-2.0
 *
 * Budgets of what clients may make us hold, by user and by address. Two pools, each in two parts:
 * for users, by name, and for strangers, by address. A budget lives as long as somebody holds a
 * part of it.
 */
#include "net/http_budget.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"

struct http_budget {
    unsigned refs;
    struct shares users[POOL_COUNT], strangers[POOL_COUNT];
};

static const struct {
    uint64_t all, user, strangers, address;
} sizes[POOL_COUNT] = {
    [POOL_BODIES] = {HTTP_BODIES_BYTES_MAX, HTTP_BODIES_USER_BYTES_MAX,
                     HTTP_BODIES_STRANGERS_BYTES_MAX, HTTP_BODIES_ADDRESS_BYTES_MAX},
    [POOL_UNSENT] = {HTTP_UNSENT_BYTES_MAX, HTTP_UNSENT_USER_BYTES_MAX,
                     HTTP_UNSENT_STRANGERS_BYTES_MAX, HTTP_UNSENT_ADDRESS_BYTES_MAX},
};

struct http_budget *http_budget_new(void)
{
    struct http_budget *budget = mem_new(sizeof *budget);
    budget->refs = 1;
    for (int i = 0; i < POOL_COUNT; i++) {
        shares_init(&budget->users[i], sizes[i].all, sizes[i].user, HTTP_HOLDERS_MAX);
        shares_init(&budget->strangers[i], sizes[i].strangers, sizes[i].address, HTTP_HOLDERS_MAX);
    }
    return budget;
}

struct http_budget *http_budget_ref(struct http_budget *budget)
{
    if (budget) budget->refs++;
    return budget;
}

void http_budget_unref(struct http_budget *budget)
{
    if (!budget || --budget->refs) return;
    for (int i = 0; i < POOL_COUNT; i++) {
        shares_done(&budget->users[i]);
        shares_done(&budget->strangers[i]);
    }
    free(budget);
}

static struct shares *shares_of(struct http_budget *budget, enum http_pool pool, bool known)
{
    return known ? &budget->users[pool] : &budget->strangers[pool];
}

bool budget_has(struct http_budget *budget, enum http_pool pool, const struct http_account *account,
                uint64_t bytes)
{
    if (!budget) return true;
    const struct shares *shares = shares_of(budget, pool, account->known);
    uint64_t own = shares_held(shares, account->name);
    uint64_t own_max = account->alone ? shares->all_max : shares->each_max;
    if (own > own_max || bytes > own_max - own) return false;
    return shares->held <= shares->all_max && bytes <= shares->all_max - shares->held;
}

bool budget_owes(struct http_budget *budget, enum http_pool pool,
                 const struct http_account *account)
{
    if (!budget) return false;
    const struct shares *shares = shares_of(budget, pool, account->known);
    return shares_held(shares, account->name) >=
           (account->alone ? shares->all_max : shares->each_max);
}

bool charge_add(struct http_charge *charge, struct http_budget *budget, enum http_pool pool,
                const struct http_account *account, uint64_t bytes)
{
    if (!budget || !bytes) return true;
    struct shares *shares = shares_of(budget, pool, account->known);
    if (!shares_add(shares, account->name, bytes)) return false;
    if (!charge->budget) {
        charge->budget = http_budget_ref(budget);
        charge->pool = pool;
        charge->known = account->known;
        charge->name = mem_str(account->name);
    }
    assert(charge->pool == pool && charge->known == account->known &&
           str_eq(str_c(charge->name), account->name));
    charge->bytes += bytes;
    return true;
}

bool charge_take(struct http_charge *charge, struct http_budget *budget, enum http_pool pool,
                 const struct http_account *account, uint64_t bytes)
{
    return budget_has(budget, pool, account, bytes) &&
           charge_add(charge, budget, pool, account, bytes);
}

void charge_drop(struct http_charge *charge)
{
    if (!charge->budget) return;
    shares_give(shares_of(charge->budget, charge->pool, charge->known), str_c(charge->name),
                charge->bytes);
    free(charge->name);
    http_budget_unref(charge->budget);
    *charge = (struct http_charge){0};
}
