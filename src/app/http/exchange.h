/* SPDX-License-Identifier: Apache-2.0
 *
 * One request on its way through a handler: who asks, for what, and the ways to answer.
 *
 * It lives in the request's arena until answered. A handler answers exactly once, at once or after
 * a store job; strings that it needs later are copied into exchange->request->arena.
 */
#ifndef APP_HTTP_EXCHANGE_H
#define APP_HTTP_EXCHANGE_H

#include "app/http/auth.h"
#include "app/http/route.h"
#include "base/json.h"

struct asset;
struct server;

struct exchange {
    struct server *server;
    struct http_request *request;
    const struct route *route; /* or else: */
    const struct asset *asset; /* one of the page's own files */
    str path;                  /* without the public URL's prefix */
    str params[ROUTE_PARAMS_MAX];
    struct identity who;
    str client;                        /* address, for the log */
    unsigned char session[HASH_BYTES]; /* of a cookie that the store still has to be asked about */
    bool ask_store;
    bool by_signature; /* the address has a signature, and nobody was asked who they are */
    bool preflight;
    bool https;
    bool no_slash; /* the bare prefix of the public URL */
    bool here;     /* from this machine, and not through a proxy */
    bool inside;   /* a frame of a WebSocket or a chat asks; there was no request (inside.h) */
    str via;       /* of who asks from inside, for the record: "weixin"; empty: as usual */
    str key;       /* likewise: what would be its Idempotency-Key; empty: none */
    bool behind;   /* its message settles nothing that is open: it waits behind it */
    str reply_to;  /* of a message from inside that answers this interaction and no other, */
    str reply;     /* with this body, JSON; both empty: a plain message */
    struct json *body;
};

struct arena *exchange_arena(struct exchange *x);

void exchange_json(struct exchange *x, int status, str body);
void exchange_json_with(struct exchange *x, int status, str body, const struct http_field *fields,
                        size_t field_count);
void exchange_empty(struct exchange *x);                         /* 204 */
void exchange_problem(struct exchange *x, int status, str body); /* a document that is written */
void exchange_error(struct exchange *x, enum err e, const struct fault *why);

/* The text of a required string member of the body, of 1 to len_max bytes. */
enum err exchange_string(const struct json *object, const char *name, size_t len_max, str *ret_text,
                         struct fault *reterr) MUST_USE;

/* ERR_INVALID_FIELD, naming it, for a member that is not in the list (which ends in NULL), and for
 * a body that is no object. */
enum err exchange_known(const struct json *object, const char *const *names, struct fault *reterr)
    MUST_USE;

#endif
