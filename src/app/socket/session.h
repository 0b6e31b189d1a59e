/* SPDX-License-Identifier: Apache-2.0
 *
 * WebSockets of clients: GET /api/v1/agent/ws. On the loop thread.
 */
#ifndef APP_SOCKET_SESSION_H
#define APP_SOCKET_SESSION_H

#include "base/crypto.h"
#include "base/str.h"

struct server;
struct sockets;

struct sockets *sockets_new(struct server *server);
void sockets_free(struct sockets *sockets); /* their connections are gone already; NULL is fine */

/* Sockets of this key, or of this browser session, close now, with 1008. */
void sockets_end_key(struct sockets *sockets, str key_id);
void sockets_end_session(struct sockets *sockets, const unsigned char hash[static HASH_BYTES]);

size_t sockets_count(const struct sockets *sockets);

#endif
