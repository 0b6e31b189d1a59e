/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole result of a tool call, for which a fact that is too large has only a reference. It
 * stands in the call's row, or in a file of the spool folder.
 */
#include "app/exchange.h"
#include "app/handlers.h"
#include "app/server.h"
#include "store/calls.h"
#include "store/conversation.h"
#include "store/store.h"
#include "tool/spool.h"

struct get_result {
    struct job job;
    struct exchange *x;
    struct call call;
};

static enum err result_run(struct job *job, struct db *db)
{
    struct get_result *get = (struct get_result *)(void *)job;
    struct exchange *x = get->x;
    struct arena *arena = exchange_arena(x);
    struct thread thread;
    enum err e = thread_find(db, arena, x->who.user, x->params[0], &thread);
    if (!e) e = call_result(db, arena, thread.id, x->params[1], &get->call);
    if (!e && get->call.spool.len)
        e = spool_read(x->server->spool, arena, get->call.spool, &get->call.result, NULL);
    if (!e && !get->call.result.len) e = ERR_NOT_FOUND;
    return e;
}

static void result_done(struct job *job, enum err e)
{
    struct get_result *get = (struct get_result *)(void *)job;
    if (e)
        exchange_error(get->x, e, NULL);
    else
        exchange_json(get->x, 200, get->call.result);
}

void handle_message_result(struct exchange *x)
{
    struct get_result *get = ARENA_NEW(exchange_arena(x), struct get_result);
    get->job = (struct job){.run = result_run, .done = result_done};
    get->x = x;
    store_read(x->server->store, &get->job);
}
