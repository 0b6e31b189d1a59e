/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request says about where it comes from, judged before anything else: Host (against DNS
 * rebinding), Origin (against other sites acting through a browser), forwarding headers (against a
 * proxy nobody configured). Pure: head and configuration in, verdict out.
 */
#ifndef HTTP_GUARD_H
#define HTTP_GUARD_H

#include "config/config.h"
#include "net/http1.h"

/* Is this address, as listened on, reachable from this machine only? */
bool guard_loopback(str host);

/* The refusal to listen beyond loopback without a key: ERR_CONFIG, and what to do. */
enum err guard_refuse_open(const struct config *config, struct fault *reterr) MUST_USE;

/* ERR_FORBIDDEN_HOST unless Host is one of ours: names of this machine's loopback, the public
 * URL's, those of auth.hosts, and, when listening beyond loopback, any address written in digits.
 */
enum err guard_host(const struct config *config, str host, struct fault *reterr) MUST_USE;

/* The origin of a cross-origin request that the CORS list allows, "" for every other request. */
str guard_cors(const struct config *config, const struct http_head *head);

/* ERR_FORBIDDEN for a request that comes from a page of another origin; the second looks only at
 * those that change something. `peer` is the address of the socket's other end. */
enum err guard_page(const struct config *config, const struct http_head *head, str peer,
                    struct fault *reterr) MUST_USE;
enum err guard_origin(const struct config *config, const struct http_head *head, str peer,
                      struct fault *reterr) MUST_USE;

/* Did a proxy pass this on? One that says nothing of itself cannot be known. */
bool guard_forwarded(const struct http_head *head);

/* Is this the address of a proxy that the configuration trusts? */
bool guard_trusted(const struct config *config, str address);

/* The client's address: the peer, or what a trusted proxy says in X-Forwarded-For. Borrows from
 * either. */
str guard_client(const struct config *config, const struct http_head *head, str peer);

/* Does the browser speak https, by the public URL or by a trusted proxy's word? */
bool guard_https(const struct config *config, const struct http_head *head, str peer);

/* The path without the prefix of the public URL, if it has it. */
str guard_path(const struct config *config, str path);

#endif
