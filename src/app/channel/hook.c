/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of platforms: GET and POST /channels/{name}/webhook. No key is asked for: each kind checks the
 * signature of its platform. What came in is on disk before the platform is told so, and nobody waits
 * for an agent: the answer takes one commit. A call that was taken before, by its name, is answered as
 * it was and does nothing; one that was not stored comes again.
 */
#include <string.h>

#include "app/api/handlers.h"
#include "app/channel/int.h"
#include "base/crypto.h"
#include "base/limits.h"
#include "base/log.h"
#include "net/http1.h"
#include "net/http_server.h"

struct hook_request {
    struct receive receive;
    uint64_t call; /* hash of its name; 0: none */
    struct exchange *x;
    struct hook_answer answer;
};

static void give(struct hook_request *hook)
{
    const struct hook_answer *answer = &hook->answer;
    http_answer(hook->x->request, &(struct http_answer){.status = answer->status,
                                                        .content_type = answer->type,
                                                        .body = answer->body});
}

static uint64_t call_hash(str name)
{
    unsigned char hash[HASH_BYTES];
    uint64_t call = 0;
    if (!name.len) return 0;
    crypto_sha256(name, hash);
    memcpy(&call, hash, sizeof call);
    return call;
}

static bool was_taken(const struct channel *c, uint64_t call)
{
    for (size_t i = 0; i < COUNT(c->calls) && i < c->call_count; i++)
        if (c->calls[i] == call) return true;
    return false;
}

static void on_stored(struct receive *receive, enum err e)
{
    struct hook_request *hook = receive->arg;
    struct exchange *x = hook->x;
    arena_done(&receive->arena);
    if (!e && receive->left) e = ERR_RATE_LIMITED;
    if (e)
        exchange_error(x, e, NULL); /* the platform comes again */
    else {
        struct channel *c = receive->channel;
        if (hook->call) c->calls[c->call_count++ % COUNT(c->calls)] = hook->call;
        give(hook);
    }
}

static void handle(struct exchange *x, bool get)
{
    struct channel *c = channel_named(x->server->channels, x->params[0]);
    struct arena *arena = exchange_arena(x);
    const struct http_head *head = x->request->head;
    if (!c || !c->ops->hook) {
        exchange_error(x, ERR_NOT_FOUND, NULL);
        return;
    }
    struct hook_request *hook = ARENA_NEW(arena, struct hook_request);
    struct hook_call call = {
        .get = get,
        .query = arena_str(arena, head->query),
        .body = x->request->body,
        .timestamp = arena_str(arena, http_head_get(head, STR("Fermata-Timestamp"))),
        .signature = arena_str(arena, http_head_get(head, STR("Fermata-Signature"))),
        .now = clock_wall(&clock_system)};
    hook->x = x;
    c->ops->hook(&c->home, arena, &call, &hook->answer);
    if (hook->answer.status >= 400)
        log_warn("channel.refused", LOG_STR("channel", c->config->name), LOG_STR("from", x->client),
                 LOG_CSTR("reason", hook->answer.detail));
    hook->call = call_hash(hook->answer.once);
    if (!hook->answer.inbound_count || (hook->call && was_taken(c, hook->call))) {
        give(hook);
        return;
    }
    arena_init(&hook->receive.arena);
    hook->receive.inbounds = hook->answer.inbounds;
    hook->receive.count = hook->answer.inbound_count;
    hook->receive.done = on_stored;
    hook->receive.arg = hook;
    receive_start(&hook->receive, c);
}

void handle_channel_hook_get(struct exchange *x)
{
    handle(x, true);
}

void handle_channel_hook_post(struct exchange *x)
{
    handle(x, false);
}
