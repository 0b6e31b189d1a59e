/* SPDX-License-Identifier: Apache-2.0
 *
 * One request on its way through a handler: who asks, for what, and the ways to answer.
 *
 * It lives in the request's arena until answered, with everything that it points to. A handler
 * answers exactly once, at once or after a store job, also when its client has gone meanwhile.
 */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include "base/json.h"
#include "http/route.h"
#include "server/auth.h"
#include "store/db/store.h"
#include "thread/asker.h"

struct asset;
struct server;

struct exchange {
    struct server *server;
    struct http_request *request;
    const struct http_head
        *head;                 /* its own copy: that of the request goes before a handler is done */
    const struct route *route; /* or else: */
    const struct asset *asset; /* one of the page's own files */
    str path;                  /* without the public URL's prefix */
    str params[ROUTE_PARAMS_MAX];
    struct identity who;
    str client;                        /* address, for the log */
    str address;                       /* the name under which it has its shares (net/ip.h) */
    unsigned char session[HASH_BYTES]; /* of a cookie that the store still has to be asked about */
    bool ask_store;
    bool guessed;      /* the key that came along is wrong */
    bool by_signature; /* the address has a signature, and nobody was asked who they are */
    bool preflight;
    bool https;
    bool no_slash; /* the bare prefix of the public URL */
    bool here;     /* from this machine, and not through a proxy */
    struct json *body;
};

struct arena *exchange_arena(struct exchange *x);

/* Who asks, for the use cases; its arena is the request's. */
struct asker exchange_asker(struct exchange *x);

void exchange_json(struct exchange *x, int status, str body);
void exchange_written(struct exchange *x, const struct buf *body); /* 200, unless it became full */
void exchange_json_with(struct exchange *x, int status, str body, const struct http_field *fields,
                        size_t field_count);
void exchange_empty(struct exchange *x);                         /* 204 */
void exchange_problem(struct exchange *x, int status, str body); /* a document that is written */
void exchange_error(struct exchange *x, enum err e, const struct fault *why);

/* Read from the store for whoever asks: among their own jobs, and only for as long as they are
 * there. job->run and job->done are set; the job lives in the exchange's arena. When the client has
 * gone, done() gets ERR_CANCELLED, and answers as it answers any error. */
void exchange_read(struct exchange *x, struct job *job, enum read_lane lane);

/* A required text of the body that is shown on one line, a name or a title: as member_string
 * (base/members.h), trimmed; refused if nothing of it can be seen, or if it has control characters or
 * line ends. */
enum err exchange_line(const struct json *object, const char *name, size_t len_max, str *ret_text,
                       struct fault *reterr) MUST_USE;

#endif
