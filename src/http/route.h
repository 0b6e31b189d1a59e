/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes: one row says where a request goes, who may send it, how large its body may be, and how
 * the API document describes it. The table is in routes.c; the gate (gate.c) reads it for every
 * request.
 */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include "net/http_server.h"

struct exchange;

enum route_access {
    ACCESS_OPEN,     /* anybody */
    ACCESS_USER,     /* anybody with a key, a session or, without keys, on this machine */
    ACCESS_SIGNED,   /* likewise; or whoever's address has a signature, which the handler checks */
    ACCESS_METRICS,  /* likewise; from another machine only an operator */
    ACCESS_OPERATOR, /* role operator */
};

enum { ROUTE_PARAMS_MAX = 4, ROUTE_CARRIES_MAX = 8, ROUTE_ANSWERS_MAX = 12 };

/* One possible answer: its status and the schema (openapi.c) of its body, NULL if it has none. A
 * status that has bodies of two types has two rows. */
struct route_answer {
    int status;
    const char *schema;
};

struct route {
    enum http_method method; /* a GET route answers HEAD, too */
    const char *path;        /* "/api/v1/things/{id}" */
    enum route_access access;
    bool ask;    /* reached with the role ask, too, which reaches nothing else */
    bool ticket; /* takes ?ticket= instead of a key */
    bool socket; /* what follows may change anything: pages of other sites may not ask */
    uint32_t body_bytes_max; /* 0: a body is read up to a little and ignored */
    /* Asked with the head, before a body is taken, by what the address alone tells; NULL: nothing
     * is. */
    enum err (*admit)(struct exchange *exchange, struct fault *reterr);
    void (*handle)(struct exchange *exchange);
    const char *name;    /* operationId */
    const char *summary; /* one line */
    const char *body;    /* schema of the JSON body; NULL: none is read */
    bool body_optional;  /* an empty one is fine */
    bool any_type; /* whatever its Content-Type says; only for what has no effect, or is signed */
    bool raw;      /* its handler parses the body, which is whole */
    bool form;     /* the body is a form with a file, which the handler takes as it comes */
    /* What its handler reads of the query and the head, by name (openapi.c). */
    const char *carries[ROUTE_CARRIES_MAX];
    struct route_answer answers[ROUTE_ANSWERS_MAX];
};

struct routes {
    const struct route *rows;
    size_t count;
};

extern const struct routes public_routes; /* routes.c */
extern const struct routes admin_routes;  /* api_admin.c */

/* Find the route of a path. OK; ERR_NOT_FOUND; or ERR_METHOD_NOT_ALLOWED, and then *ret_allow (at
 * least ROUTE_ALLOW_BYTES) holds the methods that are. Parameters borrow from the path, still
 * encoded. */
enum { ROUTE_ALLOW_BYTES = 64 };
enum err route_find(const struct routes *routes, enum http_method method, str path,
                    const struct route **ret_route, str params[static ROUTE_PARAMS_MAX],
                    char allow[static ROUTE_ALLOW_BYTES]) MUST_USE;

#endif
