/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: an owner of a link that writes down what it is told, a line for each.
 *
 *     open
 *     message {"jsonrpc":...}
 *     session abc
 *     lost 7 AWAY 0
 *     down
 *     stderr some words
 *
 * The reasons of losses and of going down are kept beside (whys), one a line.
 */
#ifndef TESTS_MCP_LINK_KIT_H
#define TESTS_MCP_LINK_KIT_H

#include "base/buf.h"
#include "mcp/client/mcp_link.h"
#include "net/loop.h"

struct owner {
    struct loop *loop;
    struct timer *guard;
    struct mcp_link *link;
    struct buf told, whys;
    const char *until;   /* the loop stops when a line begins with this ... */
    unsigned times;      /* ... for so many times */
    const char *free_at; /* the link is freed when a line begins with this */
    bool short_messages; /* only how long they are */
    bool late;
};

extern const struct mcp_link_events owner_events;

void owner_init(struct owner *owner);
void owner_done(struct owner *owner); /* frees the link; the loop stays */

/* Run until a line begins with `until`, `times` times from now on. */
void owner_run(struct owner *owner, const char *until, unsigned times);

/* Send a message of this number; 0: a notification. */
void owner_send(struct owner *owner, uint64_t request);

bool owner_heard(const struct owner *owner, const char *text); /* in `told` */

#endif
