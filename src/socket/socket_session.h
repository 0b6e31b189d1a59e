/* SPDX-License-Identifier: Apache-2.0
 *
 * WebSockets of clients: GET /api/v1/agent/ws. On the loop thread.
 */
#ifndef SOCKET_SOCKET_SESSION_H
#define SOCKET_SOCKET_SESSION_H

#include "base/err.h"

struct http_request;
struct server;
struct socket_peer;
struct sockets;

struct sockets *sockets_new(struct server *server);
void sockets_free(struct sockets *sockets); /* their connections are gone already; NULL is fine */

/* A handshake: with OK the request is answered, and the socket lives by itself from then on. Texts of
 * the peer are copied. ERR_RATE_LIMITED: there is no room. */
enum err socket_open(struct sockets *sockets, const struct socket_peer *peer,
                     struct http_request *request, struct fault *reterr) MUST_USE;

#endif
