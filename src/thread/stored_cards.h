/* SPDX-License-Identifier: Apache-2.0
 *
 * Cards of history rows. An assistant's and an interaction's stand in the row; a tool's is in the
 * payload that its metadata names, in object storage. What cannot be read leaves its row with the
 * summary alone.
 */
#ifndef THREAD_STORED_CARDS_H
#define THREAD_STORED_CARDS_H

#include "base/arena.h"
#include "base/err.h"
#include "store/table/conversation.h"

struct server;

/* Fill in message->ui of all tool rows at once; then on_done, perhaps at once. Cards that storage does
 * not give for CARDS_MS_MAX are left out. The arena holds the rows and arg until then.
 * ERR_SHUTTING_DOWN: the process ends. */
void cards_read(struct server *server, struct arena *arena, struct message *rows, size_t count,
                void (*on_done)(void *arg, enum err e), void *arg);

/* Where the payload of a tool row is; empty: it has none, or not in object storage yet. */
str card_path(struct arena *arena, const struct message *row);
bool card_waits(struct arena *arena, const struct message *row); /* it has one, to be put later */

/* For the log: the payload of this row is lost or damaged, or cannot be read now. */
void card_unreadable(const struct message *row, enum err e, const struct fault *reason);

#endif
