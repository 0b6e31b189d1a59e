/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP client on libcurl's multi interface, driven by our loop: the only file that knows libcurl.
 *
 * A request streams: on_head once, on_body any number of times, on_done exactly once, all on the
 * loop thread, never from inside client_send. Connections are kept and shared. TLS is always
 * verified, 1.2 or later. Redirects are not followed, cookies not kept, bodies not decompressed.
 * Only http and https. The process must ignore SIGPIPE.
 */
#ifndef NET_HTTP_CLIENT_H
#define NET_HTTP_CLIENT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct loop;
struct client;
struct client_request;

struct client *client_new(struct loop *loop);

/* Open requests end with on_done(ERR_CANCELLED) first; it must not send again then. Not from
 * inside a callback of this client's requests. NULL is fine. */
void client_free(struct client *client);

struct loop *client_loop(const struct client *client); /* the one it was made on */

struct client_header {
    const char *name, *value;
};

struct client_ops {
    /* The final status (not 1xx). Header values are reached with client_header_get. May be NULL. */
    void (*on_head)(void *arg, struct client_request *request, int status);
    /* A piece of the body, borrowed until it returns. May be NULL. */
    void (*on_body)(void *arg, str bytes);
    /* e == OK: the answer is complete, byte for byte as the server announced it; where it announced
     * no length and no chunks (HTTP/1.0), up to the end of the connection, which a server that dies
     * ends too: a protocol with an end mark of its own must look for it. Otherwise reason
     * says what happened, for a person, without credentials: ERR_INVALID_FIELD (the options cannot
     * be sent), ERR_TIMEOUT, ERR_TOO_LARGE, ERR_NETWORK, ERR_FORBIDDEN_HOST, ERR_CONFIG (ca_file),
     * ERR_BUSY (too many open), ERR_CANCELLED (client_free). The request is gone after this
     * returns. */
    void (*on_done)(void *arg, enum err e, const struct fault *reason);
};

struct client_options {
    const char *method; /* "GET" when NULL */
    const char *url;
    const struct client_header *headers;
    size_t header_count;
    str body;                /* copied */
    const char *proxy;       /* NULL: from the environment (https_proxy, no_proxy), "" : none */
    const char *ca_file;     /* NULL: the system's */
    const char *unix_path;   /* talk to this Unix socket instead of the URL's host; no proxy */
    bool once;               /* never send it twice: not even when a kept connection turns out to be
                                closed by the server, which otherwise is tried again on a new one */
    bool public_only;        /* for URLs chosen by a model or a user: connect to public addresses
                                only, checked after the name is resolved; proxies are not used */
    bool trickles;           /* the answer comes in small pieces over a long time, and many do at
                                once: a small buffer is enough */
    msec connect_ms;         /* name, connection, TLS and proxy tunnel together; 0 = 10 s */
    msec first_byte_ms;      /* request sent to first byte of the answer; 0 = 60 s */
    msec idle_ms;            /* without a byte of the answer; 0 = 60 s */
    msec total_ms;           /* 0 = none */
    uint64_t body_bytes_max; /* of the answer; 0 = 64 MiB */
};

/* Start a request. Everything in options is copied; ops must outlive the request. Never fails
 * here: failure is an on_done. May be called from any callback. */
struct client_request *client_send(struct client *client, const struct client_options *options,
                                   const struct client_ops *ops, void *arg);

/* Value of an answer's first header of that name, "" when absent; valid from on_head to on_done. */
str client_header_get(const struct client_request *request, str name);

/* May the server have seen any of it? False as long as no connection was ready for the request (name,
 * connection, TLS, proxy tunnel): then it has surely not been sent. From client_send to the end of
 * on_done. */
bool client_request_sent(const struct client_request *request);

/* Hold the answer back: no on_body comes until client_resume, and at most some tens of KiB are taken
 * from the server meanwhile; it waits. idle_ms does not run while it is held back, total_ms does. An
 * answer of which nothing is left may still end. Both may be called from any callback, also from
 * on_head and on_body of the same request, and again without effect; no callback comes from inside
 * them. */
void client_pause(struct client_request *request);
void client_resume(struct client_request *request);

/* Stop: no callback of this request comes any more, on_done neither, and the pointer is gone; arg
 * may be freed at once. The connection closes at the end of this turn of the loop. May be called
 * from any callback, also from the request's own on_head and on_body; inside its own on_done it
 * does nothing. */
void client_cancel(struct client_request *request);

/* For the command line: send, and wait on a loop of its own until the answer is complete. Its body
 * is appended to `body`, whose maximum bounds it (or options->body_bytes_max, if smaller). On
 * failure *ret_status and body are as before. */
enum err client_call(const struct client_options *options, int *ret_status, struct buf *body,
                     struct fault *reterr) MUST_USE;

#endif
