/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done for the audit trail beside requests: strangers are noted, chains from before the chain
 * `server` are made known to it, and grants end whose makers may approve no more.
 */
#ifndef DUTY_TRAIL_H
#define DUTY_TRAIL_H

#include "base/crypto.h"
#include "base/str.h"

struct server;
struct trail;

struct trail *trail_new(struct server *server); /* begins with what the process before left */
void trail_stop(struct trail *trail);           /* what is not noted yet is noted now */
void trail_free(struct trail *trail);

/* Somebody named an interaction that they may not see. */
struct stranger {
    int64_t thread;
    str interaction_id, call_id, user, via;
    unsigned char hash[HASH_BYTES]; /* of what they sent */
    msec at;
};

/* From any thread, and at once: nothing is written before they have their answer, so that its time
 * does not tell whether there is such an interaction. One entry for each of them and interaction,
 * however often they try. trail may be NULL. */
void trail_stranger(struct trail *trail, const struct stranger *stranger);

#endif
