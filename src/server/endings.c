/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys and sessions that end: the list of those who keep something open for one, and are told.
 */
#include "server/endings.h"

#include "server/server.h"

void endings_follow(struct server *server, struct ending *ending)
{
    ending->next = server->endings;
    server->endings = ending;
}

void endings_key(struct server *server, str key_id)
{
    for (struct ending *e = server->endings; e; e = e->next) e->on_key(e, key_id);
}

void endings_session(struct server *server, const unsigned char hash[static HASH_BYTES])
{
    for (struct ending *e = server->endings; e; e = e->next) e->on_session(e, hash);
}
