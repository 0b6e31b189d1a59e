/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes out to a person, in order and within what the platform allows. Blocking code for use
 * inside a write job; the sender (chat/sender.c) calls it around each send:
 *
 *   outbox_put ─► READY ─ outbox_take ─► SENDING ─ outbox_end ─► SENT
 *                   ▲          │ budget spent,        ├ surely not: READY again, later
 *                   │          ▼ or window over       ├ spent: PARKED
 *                   └─────── PARKED ◄─────────────────┤ unknown: READY once more, marked, if it is a
 *                    outbox_heard                     │   question or an answer; else DROPPED
 *                                                     └ refused: DROPPED
 *
 * Invariants:
 * 1. A person's messages leave in the order they were put, one at a time; but a question or an error
 *    passes answers that wait for the person to write again: some sends are kept for it.
 * 2. A send counts before it leaves, and is given back only if it surely did not: what the platform
 *    allows is never exceeded.
 * 3. An answer or a question stays until it was sent; it may wait for the person to write again. Only
 *    when more than OUTBOX_WAITING_MAX wait are notices dropped first, then the oldest.
 */
#ifndef CHAT_CHAT_OUTBOX_H
#define CHAT_CHAT_OUTBOX_H

#include "chat/channel.h"

/* The person has written: what they may be sent begins anew, unless more is left of what they gave
 * before and for longer; and what is parked comes first. Changes `peer` (heard, window, allowance,
 * used, reply_token) and the row. */
enum err outbox_heard(struct db *db, const struct channel_traits *traits,
                      const struct inbound *inbound, struct peer *peer, msec now) MUST_USE;

/* May one more of this class leave now? Pure. */
bool outbox_allows(const struct channel_traits *traits, const struct peer *peer,
                   enum out_class class, msec now);

/* Put a message; client_id and created are made here if they are empty. */
enum err outbox_put(struct db *db, struct arena *arena, struct out_row *row, msec now) MUST_USE;

/* The next message to send, marked as sending and counted; ERR_NOT_FOUND: nothing may leave now, and
 * *ret_at says when to look again (0: not before something changes). Rows may have been parked or
 * given up even so: the job has to end well, or that is undone. A notice that the budget has no room
 * for is given up; what else may not leave is parked, and nothing overtakes it. */
enum err outbox_take(struct db *db, struct arena *arena, const struct channel_traits *traits,
                     int64_t peer, msec now, struct out_row *ret_row, struct peer *ret_peer,
                     msec *ret_at) MUST_USE;

/* How a send ended; the row is then as it is stored. ERR_NOT_FOUND: it is not being sent. */
enum err outbox_end(struct db *db, struct arena *arena, const struct channel_traits *traits,
                    struct out_row *row, enum errand_verdict verdict, msec wait_ms, str server_id,
                    msec now) MUST_USE;

/* After a start: what was under way when the process ended is of unknown fate. */
enum err outbox_recover(struct db *db, struct arena *arena, const struct channel_traits *traits,
                        int64_t peer, msec now) MUST_USE;

#endif
