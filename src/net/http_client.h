/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP client on libcurl's multi interface, driven by our loop: the only file that knows libcurl.
 *
 * A request streams: on_head once, on_body any number of times, on_done exactly once, all on the
 * loop thread, never from inside client_send. Connections are kept and shared. TLS is always
 * verified. Redirects are not followed. Only http and https.
 */
#ifndef NET_HTTP_CLIENT_H
#define NET_HTTP_CLIENT_H

#include "base/err.h"
#include "base/str.h"

struct loop;
struct client;
struct client_request;

struct client *client_new(struct loop *loop);
void client_free(struct client *client); /* open requests end with ERR_CANCELLED first */

struct client_header {
    const char *name, *value;
};

struct client_ops {
    /* The final status (not 1xx). Header values are reached with client_header_get. */
    void (*on_head)(void *arg, struct client_request *request, int status);
    void (*on_body)(void *arg, str bytes);
    /* e == OK: the answer is complete, byte for byte as the server announced it. Otherwise reason
     * says what happened, for a person, without credentials. The request is gone after this
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
    const char *unix_path;   /* talk to this Unix socket instead of the URL's host */
    msec connect_ms;         /* 0 = 10 s */
    msec first_byte_ms;      /* request sent to first byte of the answer; 0 = 60 s */
    msec idle_ms;            /* without a byte of the answer; 0 = 60 s */
    msec total_ms;           /* 0 = none */
    uint64_t body_bytes_max; /* of the answer; 0 = 64 MiB */
};

/* Start a request. Everything in options is copied. Never fails here: failure is an on_done. */
struct client_request *client_send(struct client *client, const struct client_options *options,
                                   const struct client_ops *ops, void *arg);

/* Value of an answer's header by name, "" when absent; valid from on_head to on_done. */
str client_header_get(const struct client_request *request, str name);

/* Stop: on_done is not called, the request is gone. Not from inside its own callbacks' client_free.
 */
void client_cancel(struct client_request *request);

#endif
