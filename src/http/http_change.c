/* SPDX-License-Identifier: Apache-2.0
 *
 * A request that changes something, with Idempotency-Key: from the request to the change, and from
 * its outcome to the answer.
 */
#include "http/http_change.h"

struct exchange *change_exchange(const struct change *change)
{
    return change->waiter;
}

static void http_change_answer(struct change *change, enum err e)
{
    struct exchange *x = change_exchange(change);
    if (e)
        exchange_error(x, e, change->why.text[0] ? &change->why : NULL);
    else if (change->status < 400 && change->respond)
        change->respond(change);
    else if (change->status == 204)
        exchange_empty(x);
    else if (change->status >= 400)
        exchange_problem(x, change->status, change->body);
    else
        exchange_json(x, change->status, change->body);
}

void change_for(struct change *change, struct exchange *x)
{
    change->by = exchange_asker(x);
    change->waiter = x;
    change->answer = http_change_answer;
    change->key = http_head_get(x->head, STR("Idempotency-Key"));
    change_same(change, x->request->body);
}

void change_same(struct change *change, str request)
{
    struct exchange *x = change_exchange(change);
    const char *method = http_method_name(x->route->method);
    if (change->key.len)
        change->request = arena_printf(exchange_arena(x), "%s %.*s\n%.*s", method, STR_ARG(x->path),
                                       STR_ARG(request));
}

void change_start(struct change *change, struct exchange *x)
{
    change_for(change, x);
    change_go(change);
}
