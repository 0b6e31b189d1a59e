/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of platforms, taken. What came in is on disk before the platform is told so, and nobody waits
 * for an agent: the answer takes one commit. A call that was taken before, by its name, is answered as
 * it was and does nothing; one that was not stored comes again.
 */
#include "chat/hook.h"

#include <string.h>

#include "base/crypto.h"
#include "base/log.h"
#include "chat/chats_int.h"

struct hook_visit {
    struct receive receive;
    uint64_t call; /* hash of its name; 0: none */
    struct hook_answer answer;
    void (*done)(void *arg, enum err e, const struct hook_answer *answer);
    void *arg;
};

static void on_stored(struct receive *receive, enum err e)
{
    struct hook_visit *visit = receive->arg;
    struct channel *c = receive->channel;
    arena_done(&receive->arena);
    if (!e && receive->left) e = ERR_RATE_LIMITED;
    if (!e && visit->call) c->calls[c->call_count++ % COUNT(c->calls)] = visit->call;
    visit->done(visit->arg, e, &visit->answer);
}

struct channel *hook_channel(struct channels *channels, str name)
{
    struct channel *c = channel_named(channels, name);
    return c && c->ops->hook ? c : NULL;
}

void hook_take(struct channel *c, struct arena *arena, const struct hook_call *call, str from,
               void (*done)(void *arg, enum err e, const struct hook_answer *answer), void *arg)
{
    struct hook_visit *visit = ARENA_NEW(arena, struct hook_visit);
    struct hook_answer *answer = &visit->answer;
    visit->done = done;
    visit->arg = arg;
    c->ops->hook(&c->home, arena, call, answer);
    if (answer->status >= 400)
        log_warn("channel.refused", LOG_STR("channel", c->config->name), LOG_STR("from", from),
                 LOG_CSTR("reason", answer->detail));
    bool before = false;
    if (answer->once.len) {
        unsigned char hash[HASH_BYTES];
        crypto_sha256(answer->once, hash);
        memcpy(&visit->call, hash, sizeof visit->call);
    }
    for (size_t i = 0; visit->call && i < COUNT(c->calls) && i < c->call_count; i++)
        before |= c->calls[i] == visit->call;
    if (!answer->inbound_count || before) {
        done(arg, OK, answer);
        return;
    }
    arena_init(&visit->receive.arena);
    visit->receive.inbounds = answer->inbounds;
    visit->receive.count = answer->inbound_count;
    visit->receive.done = on_stored;
    visit->receive.arg = visit;
    receive_start(&visit->receive, c);
}
