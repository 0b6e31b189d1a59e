/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares: who holds how much of what all use together. One map from name to count; a count of 0 has
 * no entry.
 */
#include "base/shares.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

void shares_init(struct shares *shares, uint64_t all_max, uint64_t each_max, size_t people_max)
{
    *shares = (struct shares){.all_max = all_max, .each_max = each_max};
    map_init(&shares->by_name, people_max);
}

void shares_done(struct shares *shares)
{
    str name;
    void *count;
    for (size_t at = 0; map_next(&shares->by_name, &at, &name, &count);) free(count);
    map_done(&shares->by_name);
    shares->held = 0;
}

uint64_t shares_held(const struct shares *shares, str name)
{
    const uint64_t *count = map_get(&shares->by_name, name);
    return count ? *count : 0;
}

bool shares_add(struct shares *shares, str name, uint64_t n)
{
    if (n == 0) return true;
    uint64_t *count = map_get(&shares->by_name, name);
    if (!count) {
        count = mem_new(sizeof *count);
        if (map_put(&shares->by_name, name, count)) {
            free(count);
            return false;
        }
    }
    *count += n;
    shares->held += n;
    return true;
}

enum share shares_take(struct shares *shares, str name, uint64_t n)
{
    if (n == 0) return SHARE_GIVEN;
    uint64_t has = shares_held(shares, name), held = shares->held;
    if (has > shares->each_max || n > shares->each_max - has) return SHARE_OWN_USED_UP;
    if (held > shares->all_max || n > shares->all_max - held) return SHARE_ALL_USED_UP;
    return shares_add(shares, name, n) ? SHARE_GIVEN : SHARE_ALL_USED_UP;
}

void shares_give(struct shares *shares, str name, uint64_t n)
{
    if (n == 0) return;
    uint64_t *count = map_get(&shares->by_name, name);
    assert(count && *count >= n && shares->held >= n);
    *count -= n;
    shares->held -= n;
    if (*count == 0) free(map_remove(&shares->by_name, name));
}
