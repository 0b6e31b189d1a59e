/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests from inside: a frame of a WebSocket does what a route does, by that route's own handler,
 * so that both have the same rules. The handler gets an exchange like any other; only nobody waits
 * for its bytes, and its answer comes to a function.
 */
#ifndef APP_HTTP_INSIDE_H
#define APP_HTTP_INSIDE_H

#include "app/http/exchange.h"
#include "store/store.h"

/* Who asks: what the handshake has told. */
struct insider {
    struct identity who;
    str client, host;
    bool here, https;
    uint64_t endings; /* of keys and sessions, when this one was found good */
};

/* May they still ask? OK, ERR_UNAUTHENTICATED, or ERR_BUSY: the store knows. */
enum err inside_still(struct server *server, struct insider *insider) MUST_USE;

/* Ask it: OK, ERR_UNAUTHENTICATED, or it failed. Embedded; it stays until done is called. */
struct inside_ask {
    struct job job;
    struct server *server;
    struct arena arena;
    struct session session;
    unsigned char hash[HASH_BYTES];
    uint64_t endings;
    msec now;
    void (*done)(struct inside_ask *ask, enum err e);
};
void inside_ask(struct inside_ask *ask, struct server *server, const struct insider *insider,
                void (*done)(struct inside_ask *ask, enum err e));

/* An exchange for the route of this name (operationId), with the parameter of its path, if it has
 * one, and its JSON body, which may be empty. Everything is copied. on_reply comes once, with the
 * answer; perhaps from within inside_go. */
struct exchange *inside_new(struct server *server, const struct insider *insider, const char *route,
                            str param, str body,
                            void (*on_reply)(void *arg, const struct http_answer *answer),
                            void *arg);

/* Hand it to the route's handler. Or answer it otherwise. */
void inside_go(struct exchange *x);

#endif
