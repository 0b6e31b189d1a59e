/* SPDX-License-Identifier: Apache-2.0
 *
 * Exchanges without a client. What the gate asks of a request has been asked of the WebSocket: Host,
 * Origin and who it is with the handshake, and who it is and how fast again with every frame. Left
 * are the size of the body, and that it is JSON.
 *
 * The head has nothing but Host, by which a client's own attachments are known.
 */
#include "app/http/inside.h"

#include <string.h>

#include "app/server.h"

/* ---- may they still? ---- */

/* A key is looked for among all of them: only if some have ended since. */
enum err inside_still(struct server *server, struct insider *insider)
{
    uint64_t endings = auth_endings(server->auth);
    if (insider->who.via == VIA_KEY && insider->endings == endings) return OK;
    enum err e = auth_still(server->auth, &insider->who, insider->here);
    if (!e) insider->endings = endings;
    return e;
}

static enum err ask_run(struct job *job, struct db *db)
{
    struct inside_ask *ask = (struct inside_ask *)(void *)job;
    return sessions_find(db, ask->hash, ask->now, &ask->arena, &ask->session);
}

static void ask_store(struct inside_ask *ask)
{
    ask->endings = auth_endings(ask->server->auth);
    ask->now = clock_wall(&clock_system);
    store_read(ask->server->store, &ask->job);
}

static void ask_done(struct job *job, enum err e)
{
    struct inside_ask *ask = (struct inside_ask *)(void *)job;
    if (!e && ask->endings != auth_endings(ask->server->auth)) {
        ask_store(ask); /* it may be this one that ended meanwhile */
        return;
    }
    if (!e) e = auth_remember(ask->server->auth, &ask->session);
    arena_done(&ask->arena);
    ask->done(ask, e == ERR_NOT_FOUND ? ERR_UNAUTHENTICATED : e);
}

void inside_ask(struct inside_ask *ask, struct server *server, const struct insider *insider,
                void (*done)(struct inside_ask *ask, enum err e))
{
    ask->job = (struct job){.run = ask_run, .done = ask_done};
    ask->server = server;
    ask->done = done;
    arena_init(&ask->arena);
    memcpy(ask->hash, insider->who.session, HASH_BYTES);
    ask_store(ask);
}

/* ---- the request ---- */

static const struct route *route_named(const char *name)
{
    for (size_t i = 0; i < public_routes.count; i++)
        if (strcmp(public_routes.rows[i].name, name) == 0) return &public_routes.rows[i];
    return NULL;
}

static struct identity copy_identity(struct arena *arena, const struct identity *who)
{
    struct identity copy = *who;
    copy.user = arena_str(arena, who->user);
    copy.key_id = arena_str(arena, who->key_id);
    return copy;
}

struct exchange *inside_new(struct server *server, const struct insider *insider, const char *route,
                            str param, str body,
                            void (*on_reply)(void *arg, const struct http_answer *answer),
                            void *arg)
{
    struct http_request *request = http_request_inside(server->loop, body, on_reply, arg);
    struct arena *arena = &request->arena;
    struct exchange *x = ARENA_NEW(arena, struct exchange);
    struct http_head *head = ARENA_NEW(arena, struct http_head);
    *head = *request->head;
    head->host = arena_str(arena, insider->host);
    request->head = head;
    request->user = x;
    x->server = server;
    x->request = request;
    x->route = route_named(route);
    assert(x->route && x->route->access == ACCESS_USER && !x->route->form);
    x->path = str_c(x->route->path);
    x->params[0] = arena_str(arena, param);
    x->who = copy_identity(arena, &insider->who);
    x->client = arena_str(arena, insider->client);
    x->here = insider->here;
    x->https = insider->https;
    x->inside = true;
    return x;
}

void inside_go(struct exchange *x)
{
    struct fault why = {0};
    struct json_error where;
    str body = x->request->body;
    enum err e = OK;
    if (body.len > x->route->body_bytes_max)
        e = fault(&why, ERR_TOO_LARGE, "this has %zu bytes; %u are taken", body.len,
                  x->route->body_bytes_max);
    else if (body.len && json_parse(exchange_arena(x), body, &x->body, &where))
        e = fault(&why, ERR_INVALID_FIELD, "this is not JSON: %s at byte %zu", where.reason,
                  where.offset);
    if (e)
        exchange_error(x, e, &why);
    else
        x->route->handle(x);
}
