/* SPDX-License-Identifier: Apache-2.0
 *
 * The inbox, live: whoever follows it gets the list of what is open for them, then each interaction
 * that opens and each that is settled. The rule is that of GET /interactions: one's own, and those
 * that one's role answers. On the loop thread.
 *
 *     {"type":"inbox","data":{"interactions":[...],"next"?}}
 *     {"type":"interaction.request","sessionId"?,"runId"?,"ts","data":{...}}
 *     {"type":"interaction.resolved","sessionId"?,"runId"?,"ts","data":{...}}
 *
 * Whoever is not the owner does not see session, run and call.
 */
#ifndef FEED_INBOX_H
#define FEED_INBOX_H

#include "base/str.h"

struct inbox;
struct inbox_reader;
struct interaction;
struct server;

struct inbox *inbox_new(struct server *server);
void inbox_free(struct inbox *inbox); /* its readers have left */

/* Nothing of the inbox may be called from within a sink. */
struct inbox_sink {
    /* One text. False: no room; a new list comes after inbox_room, and stands for all before it. */
    bool (*on_text)(void *arg, str json);
    void (*on_over)(void *arg); /* the store failed. The reader is gone */
};

struct inbox_reader *inbox_join(struct inbox *inbox, str user, unsigned roles,
                                const struct inbox_sink *sink, void *arg);
void inbox_room(struct inbox_reader *reader);
void inbox_again(struct inbox_reader *reader); /* a new list; at most one is under way */
void inbox_leave(struct inbox_reader *reader); /* no callback comes any more; NULL is fine */

/* Interactions that were settled by the deletion of their thread: nobody finds their rows any more.
 * Those that are open still count as canceled. */
void inbox_deleted(struct inbox *inbox, const struct interaction *rows, size_t count, msec now);

#endif
