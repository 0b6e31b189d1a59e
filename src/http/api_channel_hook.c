/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of platforms: GET and POST /channels/{name}/webhook. A call to a channel that takes none is
 * refused with its head: nobody's body is read for it.
 */
#include "chat/hook.h"
#include "http/exchange.h"
#include "http/handlers.h"
#include "net/http1.h"
#include "server/server.h"

enum err admit_channel_hook(struct exchange *x, struct fault *reterr)
{
    (void)reterr; /* the error's own words: nothing of ours is told to strangers */
    return hook_channel(x->server->channels, x->params[0]) ? OK : ERR_NOT_FOUND;
}

static void on_hook_taken(void *arg, enum err e, const struct hook_answer *answer)
{
    struct exchange *x = arg;
    if (e)
        exchange_error(x, e, NULL); /* the platform comes again */
    else
        http_answer(x->request, &(struct http_answer){.status = answer->status,
                                                      .content_type = answer->type,
                                                      .body = answer->body});
}

static void handle_hook(struct exchange *x, bool get)
{
    struct channel *c = hook_channel(x->server->channels, x->params[0]); /* as with the head */
    const struct http_head *head = x->head;
    if (!c) {
        exchange_error(x, ERR_NOT_FOUND, NULL);
        return;
    }
    struct hook_call call = {.get = get,
                             .query = head->query,
                             .body = x->request->body,
                             .timestamp = http_head_get(head, STR("Fermata-Timestamp")),
                             .signature = http_head_get(head, STR("Fermata-Signature")),
                             .now = clock_wall(&clock_system)};
    hook_take(c, exchange_arena(x), &call, x->client, on_hook_taken, x);
}

void handle_channel_hook_get(struct exchange *x)
{
    handle_hook(x, true);
}

void handle_channel_hook_post(struct exchange *x)
{
    handle_hook(x, false);
}
