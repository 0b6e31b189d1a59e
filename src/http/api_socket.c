/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /ws: the handshake of a WebSocket. What comes over it is socket/'s affair.
 */
#include "http/exchange.h"
#include "http/handlers.h"
#include "server/server.h"
#include "socket/socket_peer.h"
#include "socket/socket_session.h"

void handle_socket(struct exchange *x)
{
    struct fault why;
    struct socket_peer peer = {
        .who = x->who, .client = x->client, .host = x->head->host, .here = x->here};
    enum err e = socket_open(x->server->sockets, &peer, x->request, &why);
    if (e) exchange_error(x, e, &why);
}
