/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of browsers: signing in and out, and tickets for streams.
 *
 * The cookie is a random token; only its hash is kept. It is set only after the session is on disk,
 * and a session ends only after its end is.
 */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/members.h"
#include "http/exchange.h"
#include "http/gate.h"
#include "http/handlers.h"
#include "server/endings.h"
#include "server/server.h"
#include "store/db/secret.h"
#include "store/db/store.h"

static const char *const via_names[] = {
    [VIA_LOCAL] = "local", [VIA_KEY] = "key", [VIA_SESSION] = "session", [VIA_TICKET] = "ticket"};

/* {"user", "roles", "via", "expiresAt"?} */
static str identity_json(struct arena *arena, const struct identity *who, msec expires)
{
    struct buf out;
    buf_init(&out, 4096);
    struct json_writer w;
    json_write_begin(&w, &out);
    json_object(&w);
    json_member(&w, STR("user"), who->user);
    json_key(&w, STR("roles"));
    json_array(&w);
    for (size_t i = 0; i < ROLE_COUNT; i++)
        if (who->roles & role_table[i].bit) json_string(&w, str_c(role_table[i].name));
    json_array_end(&w);
    json_member(&w, STR("via"), str_c(via_names[who->via]));
    if (expires) {
        char text[RFC3339_BYTES];
        clock_rfc3339(expires, text);
        json_member(&w, STR("expiresAt"), str_c(text));
    }
    json_object_end(&w);
    str copy = arena_str(arena, buf_str(&out));
    buf_done(&out);
    return copy;
}

void handle_session_get(struct exchange *x)
{
    exchange_json(x, 200, identity_json(exchange_arena(x), &x->who, 0));
}

/* Set-Cookie with a token that lasts, or with an empty one that ends it. */
static str cookie(struct exchange *x, const char *token, long seconds)
{
    return arena_printf(exchange_arena(x),
                        "%s=%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%ld%s",
                        gate_cookie_name(x->https), token, seconds, x->https ? "; Secure" : "");
}

struct session_add {
    struct job job;
    struct exchange *x;
    struct session session;
    unsigned char ended[SESSIONS_TRIM_MAX][HASH_BYTES]; /* of the same key, the oldest */
    size_t ended_count;
    char token[SESSION_TOKEN_BYTES];
    str cookie; /* token, '.', our signature */
};

static enum err add_run(struct job *job, struct db *db)
{
    struct session_add *add = (struct session_add *)(void *)job;
    enum err e = sessions_add(db, &add->session);
    return e ? e : sessions_trim(db, add->session.key_id, add->ended, &add->ended_count);
}

static void forget(struct server *server, const unsigned char hash[static HASH_BYTES])
{
    auth_forget(server->auth, hash);
    endings_session(server, hash);
}

static void add_done(struct job *job, enum err e)
{
    struct session_add *add = (struct session_add *)(void *)job;
    struct exchange *x = add->x;
    for (size_t i = 0; !e && i < add->ended_count; i++) forget(x->server, add->ended[i]);
    if (!e) e = auth_remember(x->server->auth, &add->session);
    if (e) {
        exchange_error(x, e, NULL);
        return;
    }
    log_info("session.opened", LOG_STR("user", x->who.user), LOG_STR("key", x->who.key_id),
             LOG_STR("client", x->client));
    x->who.via = VIA_SESSION;
    struct http_field set = {STR("Set-Cookie"),
                             cookie(x, add->cookie.p, SESSION_DAYS_MAX * 86400L)};
    str body = identity_json(exchange_arena(x), &x->who, add->session.expires);
    exchange_json_with(x, 200, body, &set, 1);
}

void handle_session_post(struct exchange *x)
{
    static const char *const known[] = {"key", NULL};
    struct fault why = {0};
    str key;
    enum err e = members_known(x->body, known, &why);
    if (!e) e = member_string(x->body, "key", CONFIG_SECRET_BYTES_MAX, &key, &why);
    if (!e && auth_by_key(x->server->auth, exchange_arena(x), key, x->address, &x->who)) {
        e = gate_wrong_key(x, &why);
        if (!e) {
            log_warn("session.refused", LOG_STR("client", x->client));
            e = fault(&why, ERR_UNAUTHENTICATED, "this key is not valid");
        }
    }
    if (!e && !(x->who.roles & ROLES_OF_PEOPLE))
        e = fault(&why, ERR_FORBIDDEN, "a key with the role ask reaches /mcp alone");
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    struct session_add *add = ARENA_NEW(exchange_arena(x), struct session_add);
    msec now = clock_wall(&clock_system);
    *add = (struct session_add){
        .job = {.run = add_run, .done = add_done, .who = x->who.user},
        .x = x,
        .session = {.key_id = x->who.key_id,
                    .user = x->who.user,
                    .roles = x->who.roles,
                    .created = now,
                    .expires = now + SESSION_DAYS_MAX * (msec)86400000},
    };
    auth_session_token(add->token);
    char mac[SECRET_MAC_BYTES];
    secret_mac(x->server->secret, SECRET_SESSION, str_c(add->token), mac);
    add->cookie = arena_printf(exchange_arena(x), "%s.%s", add->token, mac);
    auth_session_hash(add->cookie, add->session.hash);
    store_write(x->server->store, &add->job);
}

struct session_end {
    struct job job;
    struct exchange *x;
    msec now;
};

static enum err end_run(struct job *job, struct db *db)
{
    struct session_end *end = (struct session_end *)(void *)job;
    return sessions_end(db, end->x->who.session, end->now);
}

static void end_done(struct job *job, enum err e)
{
    struct exchange *x = ((struct session_end *)(void *)job)->x;
    if (e) {
        exchange_error(x, e, NULL);
        return;
    }
    forget(x->server, x->who.session);
    log_info("session.ended", LOG_STR("user", x->who.user));
    struct http_field clear = {STR("Set-Cookie"), cookie(x, "", 0)};
    http_answer(x->request,
                &(struct http_answer){.status = 204, .fields = &clear, .field_count = 1});
}

void handle_session_delete(struct exchange *x)
{
    if (x->who.via != VIA_SESSION) {
        exchange_empty(x); /* a key has no session to end */
        return;
    }
    struct session_end *end = ARENA_NEW(exchange_arena(x), struct session_end);
    *end = (struct session_end){.job = {.run = end_run, .done = end_done, .who = x->who.user},
                                .x = x,
                                .now = clock_wall(&clock_system)};
    store_write(x->server->store, &end->job);
}

void handle_ticket_post(struct exchange *x)
{
    char ticket[TICKET_BYTES], expires[RFC3339_BYTES];
    enum err e = auth_ticket_new(x->server->auth, &x->who, ticket);
    if (e) {
        exchange_error(x, e, NULL);
        return;
    }
    clock_rfc3339(clock_wall(&clock_system) + TICKET_MS_MAX, expires);
    exchange_json(x, 201,
                  arena_printf(exchange_arena(x), "{\"ticket\":\"%s\",\"expiresAt\":\"%s\"}",
                               ticket, expires));
}
