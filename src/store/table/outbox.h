/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages on their way to webhooks: a row from the commit that made the news until the receiver
 * has taken it or it is given up. Plain blocking code for use inside a job.
 */
#ifndef STORE_TABLE_OUTBOX_H
#define STORE_TABLE_OUTBOX_H

#include "base/arena.h"
#include "base/limits.h"

struct db;

struct outgoing {
    int64_t n; /* order; given by outbox_add */
    str id;    /* "evt_...": the same at every attempt, so that a receiver can tell repeats */
    str event; /* "interaction.opened", "interaction.resolved" */
    str url;   /* of the hook; the secret is looked up by it */
    str body;  /* JSON */
    uint32_t attempts;
    msec created, next; /* next: not before */
};

enum err outbox_add(struct db *db, struct outgoing *outgoing) MUST_USE; /* sets n */
/* The one for an address that is to be sent first, at whatever time, but for those in `passed` (0:
 * none). It is found again until outbox_later or outbox_done. ERR_NOT_FOUND. */
enum err outbox_first(struct db *db, struct arena *arena, str url,
                      const int64_t passed[static WEBHOOK_SENDS_HOOK_MAX], struct outgoing *ret_row)
    MUST_USE;
/* The addresses that have rows, one by one: the next behind `after`. ERR_NOT_FOUND: no more. */
enum err outbox_next_url(struct db *db, struct arena *arena, str after, str *ret_url) MUST_USE;
/* ERR_NOT_FOUND: it has left. */
enum err outbox_later(struct db *db, int64_t n, uint32_t attempts, msec next) MUST_USE;
enum err outbox_done(struct db *db, int64_t n) MUST_USE;

#endif
