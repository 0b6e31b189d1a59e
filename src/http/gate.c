/* SPDX-License-Identifier: Apache-2.0
 *
 * The gate: the questions that every request is asked on its way to a handler, in their order:
 *
 *   with the head   Host ours? passed on by a proxy nobody configured? which route, which method?
 *                   changed by a foreign page? who is it? too fast? may they? how large a body?
 *   with the body   a session the store has to be asked about; JSON where the route takes it
 *
 * A refusal with the head is answered before the body is read. The admin socket asks only for the
 * route: who can open it owns the data folder. The public API has the same questions there but those
 * about hosts and pages.
 */
#include "http/gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/limits.h"
#include "base/log.h"
#include "http/assets.h"
#include "http/body.h"
#include "http/exchange.h"
#include "http/guard.h"
#include "net/ip.h"
#include "net/multipart.h"
#include "server/server.h"
#include "store/db/secret.h"
#include "store/db/store.h"

/* ---- with the head ---- */

static void add_field(struct exchange *x, str name, str value)
{
    enum { FIELDS_MAX = 9 };
    struct http_request *request = x->request;
    struct http_field *fields = (struct http_field *)(uintptr_t)request->fields;
    if (!fields) fields = arena_array(&request->arena, FIELDS_MAX, sizeof *fields);
    assert(request->field_count < FIELDS_MAX);
    fields[request->field_count++] = (struct http_field){name, arena_str(&request->arena, value)};
    request->fields = fields;
}

/* What a browser needs to let the page of an allowed origin read our answers. */
static void add_cors(struct exchange *x)
{
    const struct http_head *head = x->head;
    if (x->server->config->auth_cors.count) add_field(x, STR("Vary"), STR("Origin"));
    str origin = guard_cors(x->server->config, head);
    if (!origin.len) return;
    add_field(x, STR("Access-Control-Allow-Origin"), origin);
    x->preflight = head->method == HTTP_OPTIONS &&
                   http_head_get(head, STR("Access-Control-Request-Method")).len;
    if (!x->preflight) return;
    add_field(x, STR("Access-Control-Allow-Methods"), STR("GET, POST, PUT, PATCH, DELETE"));
    add_field(x, STR("Access-Control-Allow-Headers"),
              STR("Authorization, Content-Type, Idempotency-Key, Last-Event-ID"));
    add_field(x, STR("Access-Control-Max-Age"), STR("600"));
}

const char *gate_cookie_name(bool https)
{
    return https ? "__Host-fermata_session" : "fermata_session";
}

/* Who is it? A session that is not remembered here is asked for in the store, once the body is
 * there. */
static enum err identify(struct exchange *x)
{
    struct auth *auth = x->server->auth;
    const struct http_head *head = x->head;
    struct arena *arena = exchange_arena(x);

    str sent = http_head_get(head, STR("Authorization"));
    if (auth_required(auth) && sent.p) {
        static const str scheme = STR("Bearer ");
        bool bearer = sent.len > scheme.len && str_eq_nocase((str){sent.p, scheme.len}, scheme);
        str key = bearer ? str_trim(str_drop(sent, scheme.len)) : (str){NULL, 0};
        enum err e = auth_by_key(auth, arena, key, x->address, &x->who);
        x->guessed = e;
        return e;
    }
    if (x->route && x->route->ticket) {
        char text[TICKET_BYTES];
        str ticket;
        if (http1_query(head->query, STR("ticket"), text, sizeof text, &ticket))
            return ERR_UNAUTHENTICATED;
        if (ticket.p) return auth_by_ticket(auth, arena, ticket, &x->who);
    }
    str cookie =
        http1_cookie(http_head_get(head, STR("Cookie")), str_c(gate_cookie_name(x->https)));
    if (cookie.len && auth_required(auth)) {
        /* A cookie is a token and our signature of it, so that a made-up one is refused with the
         * head, before the store is asked and a body is read for it. */
        str mac = cookie, token = str_split(&mac, '.');
        if (!mac.p || !secret_verify(x->server->secret, SECRET_SESSION, token, mac))
            return ERR_UNAUTHENTICATED;
        auth_session_hash(cookie, x->session);
        enum err e = auth_by_session(auth, arena, x->session, &x->who);
        x->ask_store = e == ERR_BUSY;
        return x->ask_store ? OK : e;
    }
    return auth_local(auth, x->here, &x->who);
}

/* Whose memory and connections it takes. Whoever is not known shares with all others of the address.
 * So does a session that the store has still to be asked about: it may have ended long ago. */
static void set_account(struct exchange *x)
{
    struct http_account *account = &x->request->account;
    struct arena *arena = exchange_arena(x);
    account->known = x->who.user.len > 0;
    account->alone = account->known && x->who.via == VIA_LOCAL;
    account->name =
        account->known ? arena_printf(arena, "user %.*s", STR_ARG(x->who.user)) : x->address;
}

static enum err nothing_here(struct fault *reterr)
{
    return fault(reterr, ERR_NOT_FOUND, "there is nothing at this address");
}

static enum err permit(const struct exchange *x, struct fault *reterr)
{
    if (!x->route) return nothing_here(reterr);
    if (x->by_signature)
        return OK; /* for whoever holds the address; nobody was asked who they are */
    enum route_access access = x->route->access;
    if (!(x->who.roles & ROLES_OF_PEOPLE) && !x->route->ask)
        return fault(reterr, ERR_FORBIDDEN, "a key with the role ask reaches /mcp alone");
    bool needed = access == ACCESS_OPERATOR || (access == ACCESS_METRICS && !x->here);
    if (!needed || (x->who.roles & ROLE_OPERATOR)) return OK;
    return fault(reterr, ERR_FORBIDDEN, "this needs the role operator");
}

static enum err count(struct exchange *x, struct fault *reterr)
{
    str by = x->who.key_id.len ? x->who.key_id : x->address;
    enum err e = auth_count(x->server->auth, by);
    if (!e) return OK;
    x->server->metrics.rate_limited++;
    return fault(reterr, e, "more than %u requests a second", x->server->config->rate_max);
}

/* Which route? Its parameters are decoded. */
static enum err find(struct exchange *x, const struct routes *routes, struct fault *reterr)
{
    const struct http_head *head = x->head;
    char allow[ROUTE_ALLOW_BYTES];
    enum err e = route_find(routes, head->method, x->path, &x->route, x->params, allow);
    if (e == ERR_METHOD_NOT_ALLOWED) {
        add_field(x, STR("Allow"), str_c(allow));
        if (head->method == HTTP_OPTIONS) return OK;
        return fault(reterr, e, "%s is not allowed here, only %s", http_method_name(head->method),
                     allow);
    }
    if (e) return e;
    for (size_t i = 0; i < ROUTE_PARAMS_MAX; i++) {
        str raw = x->params[i];
        char *text = arena_alloc(exchange_arena(x), raw.len + 1);
        x->params[i].p = text;
        e = http1_decode(raw, false, text, &x->params[i].len);
        if (e) return fault(reterr, e, "the address has a malformed %%-escape");
    }
    return OK;
}

/* The page's own files. */
static enum err find_asset(struct exchange *x, struct fault *reterr)
{
    enum http_method method = x->head->method;
    x->asset = asset_find(x->path);
    if (!x->asset) return ERR_NOT_FOUND;
    if (method == HTTP_GET || method == HTTP_HEAD) return OK;
    add_field(x, STR("Allow"), STR("GET, HEAD, OPTIONS"));
    if (method == HTTP_OPTIONS) return OK;
    return fault(reterr, ERR_METHOD_NOT_ALLOWED, "files can only be read");
}

static enum err check_type(const struct exchange *x, struct fault *reterr)
{
    const struct http_head *head = x->head;
    if (http_head_get(head, STR("Content-Encoding")).len)
        return fault(reterr, ERR_UNSUPPORTED_TYPE, "compressed bodies are not taken");
    bool body = head->chunked || head->length;
    str type = http_head_get(head, STR("Content-Type")), boundary;
    if (x->route->form) return multipart_boundary(type, &boundary, reterr);
    str media = str_trim(str_split(&type, ';'));
    bool json = str_eq_nocase(media, STR("application/json")) ||
                (str_starts(media, STR("application/")) && str_ends(media, STR("+json")));
    if (!x->route->body || !body || x->route->any_type || json) return OK;
    return fault(reterr, ERR_UNSUPPORTED_TYPE, "send the body with Content-Type: application/json");
}

/* Only whether there is one; its handler looks at it. */
static bool has_signature(const struct http_head *head)
{
    char room[1];
    str value = {NULL, 0};
    return http1_query(head->query, STR("sig"), room, sizeof room, &value) || value.p ||
           http1_query(head->query, STR("exp"), room, sizeof room, &value) || value.p;
}

static struct exchange *exchange_new(struct server *server, struct http_request *request)
{
    struct exchange *x = ARENA_NEW(&request->arena, struct exchange);
    x->server = server;
    x->request = request;
    x->head = http_head_copy(&request->arena, request->head);
    request->user = x;
    return x;
}

enum err gate_wrong_key(struct exchange *x, struct fault *reterr)
{
    msec wait;
    if (!auth_failed(x->server->auth, x->address, &wait)) return OK;
    char seconds[24];
    snprintf(seconds, sizeof seconds, "%lld", (long long)(wait + 999) / 1000);
    add_field(x, STR("Retry-After"), str_c(seconds));
    x->server->metrics.rate_limited++;
    return fault(reterr, ERR_RATE_LIMITED, "too many wrong keys from this address; wait %s s",
                 seconds);
}

/* Guesses are counted by address, or a weak key could be found by trying. */
static enum err unauthenticated(struct exchange *x, struct fault *reterr)
{
    enum err e = count(x, reterr);
    if (!e && x->guessed) e = gate_wrong_key(x, reterr);
    if (e) return e;
    x->server->metrics.unauthenticated++;
    add_field(x, STR("WWW-Authenticate"), STR("Bearer"));
    return fault(reterr, ERR_UNAUTHENTICATED,
                 "send a valid key as \"Authorization: Bearer KEY\", or sign in; "
                 "`fermata key add --user NAME` makes one");
}

/* How much of a body the route takes, and how. */
static void take_body(struct exchange *x, uint64_t *ret_body_max)
{
    const struct config *config = x->server->config;
    struct http_request *request = x->request;
    request->body_ignored = !x->route->body;
    if (x->route->body_bytes_max) *ret_body_max = x->route->body_bytes_max;
    if (*ret_body_max > config->body_bytes_max) *ret_body_max = config->body_bytes_max;
    request->body_streamed = x->route->form;
    if (x->route->form) *ret_body_max = config->upload_bytes_max + UPLOAD_FORM_BYTES_MAX;
}

/* Without a key whoever comes from this machine is the owner, and a proxy comes from here for
 * everybody. Said once in the log: the operator sees why nobody gets in. */
static enum err refuse_forwarded(struct server *server, const struct exchange *x,
                                 struct fault *reterr)
{
    if (!server->proxy_seen)
        log_warn("proxy.refused", LOG_STR("client", x->client),
                 LOG_CSTR("reason", "a proxy stands before this server and no key is set; add one "
                                    "with `fermata key add --user NAME`"));
    server->proxy_seen = true;
    return fault(reterr, ERR_FORBIDDEN,
                 "a proxy passed this on, but no key is set, so everybody behind it would be the "
                 "owner; add one with `fermata key add --user NAME`");
}

static enum err on_public_head(void *ctx, struct http_request *request, uint64_t *ret_body_max,
                               struct fault *reterr)
{
    struct server *server = ctx;
    const struct config *config = server->config;
    struct exchange *x = exchange_new(server, request);
    const struct http_head *head = x->head;
    str peer = str_c(request->peer);
    bool forwarded = guard_forwarded(head);
    char address[IP_SHARE_BYTES];
    x->client = arena_str(&request->arena, guard_client(config, head, peer));
    x->address = arena_str(&request->arena, ip_share(x->client, address));
    x->https = guard_https(config, head, peer);
    x->here = request->peer_loopback && !forwarded;
    set_account(x); /* nobody in particular, so far */
    *ret_body_max = HTTP_IGNORED_BODY_BYTES_MAX;
    request->body_ignored = true; /* unless a route wants it */

    enum err e = guard_host(config, head->host, reterr);
    if (e) return e;
    if (!auth_required(server->auth) && forwarded) return refuse_forwarded(server, x, reterr);
    add_cors(x);
    if (str_eq(head->path, STR("*"))) {
        add_field(x, STR("Allow"), STR("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
        return OK;
    }
    x->path = guard_path(config, head->path);
    x->no_slash = config->public_url.prefix.len && str_eq(head->path, config->public_url.prefix);
    if (x->no_slash) return OK;
    e = find(x, &public_routes, reterr);
    if (e == ERR_NOT_FOUND) e = find_asset(x, reterr);
    x->by_signature = x->route && x->route->access == ACCESS_SIGNED && has_signature(head);
    /* Which pages may have our answers as pictures or scripts, without asking as CORS does: our own.
     * The address of a file with a signature is for whoever holds it, and so is a page that may be
     * framed. */
    bool anybody = x->by_signature || (x->asset && config->web_frame_ancestors.count);
    add_field(x, STR("Cross-Origin-Resource-Policy"),
              anybody ? STR("cross-origin") : STR("same-origin"));
    if (e == ERR_NOT_FOUND) { /* a path nobody knows is told only to whom any path may be told */
        if (str_starts(x->path, STR("/api/")) && identify(x)) return unauthenticated(x, reterr);
        return x->ask_store ? OK : nothing_here(reterr);
    }
    if (e || !x->route || x->preflight) return e;

    e = x->route->socket ? guard_page(config, head, peer, reterr)
                         : guard_origin(config, head, peer, reterr);
    if (e) return e;
    if (x->route->access != ACCESS_OPEN && !x->by_signature && identify(x))
        return unauthenticated(x, reterr);
    set_account(x);
    /* A browser adds a cookie, and the place it runs at, to whatever a page makes it ask for. So who is
     * known by these is asked whose page it is even for what only reads; a key or a ticket is put there
     * by a program that has it. */
    bool by_itself = x->ask_store || x->who.via == VIA_LOCAL || x->who.via == VIA_SESSION;
    if (by_itself && x->route->access != ACCESS_OPEN && !x->by_signature)
        e = guard_page(config, head, peer, reterr);
    if (e) return e;
    bool probe = x->route->access == ACCESS_OPEN && x->route->method == HTTP_GET;
    e = probe ? OK
              : count(x, reterr); /* a flood from its address must not make a server look dead */
    if (!e && x->route->access != ACCESS_OPEN && !x->ask_store) e = permit(x, reterr);
    if (!e && x->route->admit) e = x->route->admit(x, reterr);
    if (!e) e = check_type(x, reterr);
    take_body(x, ret_body_max);
    return e;
}

/* ---- with the body ---- */

static void on_parsed(struct exchange *x, enum err e, const struct fault *why)
{
    if (e)
        exchange_error(x, e, why);
    else
        x->route->handle(x);
}

static void ask_session(struct exchange *x);

/* A body may come long behind its head: is whoever sent that still let in? */
static bool still_let_in(struct exchange *x)
{
    if (x->route->access == ACCESS_OPEN || x->by_signature) return true;
    enum err e = auth_still(x->server->auth, &x->who, x->here);
    if (!e) return true;
    if (e == ERR_BUSY) {
        memcpy(x->session, x->who.session, HASH_BYTES);
        ask_session(x);
    } else {
        struct fault why;
        fault(&why, ERR_UNAUTHENTICATED, "the key or session was ended meanwhile");
        exchange_error(x, ERR_UNAUTHENTICATED, &why);
    }
    return false;
}

static void hand_over(struct exchange *x)
{
    const struct route *route = x->route;
    if (!still_let_in(x)) return;
    bool json = route->body && !route->form && !route->raw;
    if (json && !(route->body_optional && !x->request->body.len))
        body_parse(x, on_parsed);
    else
        route->handle(x);
}

struct session_job {
    struct job job;
    struct exchange *x;
    struct session session;
    uint64_t endings; /* sessions ended so far, when the store was asked */
    msec now;
};

static enum err session_run(struct job *job, struct db *db)
{
    struct session_job *ask = (struct session_job *)(void *)job;
    return sessions_find(db, ask->x->session, ask->now, exchange_arena(ask->x), &ask->session);
}

static void session_done(struct job *job, enum err e)
{
    struct session_job *ask = (struct session_job *)(void *)job;
    struct exchange *x = ask->x;
    struct fault why = {0};
    if (!e && ask->endings != auth_endings(x->server->auth)) {
        ask_session(x); /* it may be this one that ended meanwhile */
        return;
    }
    if (!e) e = auth_remember(x->server->auth, &ask->session);
    if (!e) e = auth_by_session(x->server->auth, exchange_arena(x), x->session, &x->who);
    if (e == ERR_NOT_FOUND || e == ERR_UNAUTHENTICATED)
        e = fault(&why, ERR_UNAUTHENTICATED, "the session has ended; sign in again");
    if (!e) e = permit(x, &why);
    if (http_gone(x->request)) e = ERR_SHUTTING_DOWN; /* nobody listens, and nothing is begun */
    if (e)
        exchange_error(x, e, &why);
    else
        hand_over(x);
}

/* The arena belongs to the store's thread until the job is done; nothing else of the request is
 * touched. */
static void ask_session(struct exchange *x)
{
    struct session_job *ask = ARENA_NEW(exchange_arena(x), struct session_job);
    ask->job = (struct job){.run = session_run, .done = session_done};
    ask->x = x;
    ask->endings = auth_endings(x->server->auth);
    ask->now = clock_wall(&clock_system);
    exchange_read(x, &ask->job, READ_QUICK);
}

static void on_public_request(void *ctx, struct http_request *request)
{
    struct exchange *x = request->user;
    (void)ctx;
    if (x->preflight || x->head->method == HTTP_OPTIONS) {
        exchange_empty(x);
    } else if (x->no_slash) { /* the page's links are relative, and need it behind the prefix */
        str prefix = x->server->config->public_url.prefix;
        struct http_field location = {STR("Location"),
                                      arena_printf(&request->arena, "%.*s/", STR_ARG(prefix))};
        http_answer(request,
                    &(struct http_answer){.status = 308, .fields = &location, .field_count = 1});
    } else if (x->asset) {
        asset_answer(request, x->head, x->asset, x->server->page_policy);
    } else if (x->ask_store) {
        ask_session(x);
    } else {
        hand_over(x);
    }
}

static void on_answered(void *ctx, const struct http_request *request, int status)
{
    struct server *server = ctx;
    metrics_count_status(&server->metrics, status);
    if (!log_on(LOG_DEBUG)) return;
    const struct exchange *x = request ? request->user : NULL;
    log_debug("http.answered", LOG_I64("status", status),
              LOG_CSTR("method", x ? http_method_name(x->head->method) : ""),
              LOG_STR("path", x ? x->path : STR_EMPTY),
              LOG_STR("client", x ? x->client : STR_EMPTY),
              LOG_STR("user", x ? x->who.user : STR_EMPTY),
              LOG_CSTR("id", request ? request->id : ""));
}

static bool is_proxy(void *ctx, const char *peer)
{
    const struct server *server = ctx;
    return guard_trusted(server->config, str_c(peer));
}

const struct http_handler gate_public = {.on_head = on_public_head,
                                         .on_request = on_public_request,
                                         .on_answered = on_answered,
                                         .is_proxy = is_proxy};

/* ---- the admin socket ---- */

/* The public API for the commands of the terminal. Who opens the socket owns the folder, and is nobody
 * in particular: without a login that is `local`, with one a key says who asks. */
static enum err on_admin_api(struct exchange *x, uint64_t *ret_body_max, struct fault *reterr)
{
    struct http_request *request = x->request;
    x->here = true;
    *ret_body_max = HTTP_IGNORED_BODY_BYTES_MAX;
    request->body_ignored = true;
    enum err e = find(x, &public_routes, reterr);
    if (e || !x->route) return e ? e : nothing_here(reterr);
    if (identify(x)) return unauthenticated(x, reterr);
    e = count(x, reterr);
    if (!e && !x->ask_store) e = permit(x, reterr);
    if (!e) e = check_type(x, reterr);
    take_body(x, ret_body_max);
    return e;
}

static enum err on_admin_head(void *ctx, struct http_request *request, uint64_t *ret_body_max,
                              struct fault *reterr)
{
    struct exchange *x = exchange_new(ctx, request);
    x->path = x->head->path;
    x->who = (struct identity){.user = STR("local"), .via = VIA_LOCAL};
    x->client = x->address = STR("unix");
    request->account = (struct http_account){STR("admin"), .known = true, .alone = true};
    if (strcmp(request->peer, "child") == 0) { /* a tool has no business with keys and approvals */
        log_warn("admin.refused", LOG_CSTR("reason", "a program that this server started"));
        return fault(reterr, ERR_FORBIDDEN, "the admin socket is not for programs of this server");
    }
    if (str_starts(x->path, STR("/api/"))) return on_admin_api(x, ret_body_max, reterr);
    enum err e = route_find(&admin_routes, x->head->method, x->path, &x->route, x->params,
                            (char[ROUTE_ALLOW_BYTES]){0});
    if (e) return fault(reterr, e, "the admin socket has no such route");
    *ret_body_max = x->route->body_bytes_max;
    return OK;
}

static void on_admin_request(void *ctx, struct http_request *request)
{
    struct exchange *x = request->user;
    (void)ctx;
    if (x->ask_store)
        ask_session(x);
    else
        hand_over(x);
}

const struct http_handler gate_admin = {.on_head = on_admin_head, .on_request = on_admin_request};
