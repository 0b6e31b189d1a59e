/* SPDX-License-Identifier: Apache-2.0
 *
 * Linking a person of a chat platform to a user of this server: the store jobs behind `fermata
 * channel link` and `unlink`, used by the running server (through its admin socket) and by the
 * command line when no server runs.
 */
#ifndef CHAT_LINK_JOB_H
#define CHAT_LINK_JOB_H

#include "base/crypto.h"
#include "store/db/store.h"
#include "store/table/channels.h"

enum { LINK_CODE_BYTES = 9 }; /* eight digits and a NUL */

struct channel_link {
    struct job job;
    struct link_code link;
    char code[LINK_CODE_BYTES]; /* shown once */
    char hash[HASH_HEX_BYTES];  /* what is stored of it */
};

/* A code that makes whoever types it in the channel this user. Texts live until the job is done. */
void channel_link_init(struct channel_link *link, str channel, str user, unsigned roles);

struct channel_unlink {
    struct job job;
    struct arena *arena;
    str channel, sender;
    const unsigned char *audit_key; /* the caller's; NULL: grants end at the next start */
    msec now;
};
/* They are nobody of ours from now on. ERR_NOT_FOUND: the channel has no such sender, or they are not
 * linked. */
void channel_unlink_init(struct channel_unlink *unlink, struct arena *arena, str channel,
                         str sender);

/* Why either failed, for a person; `what` is the user or the sender. */
enum err channel_job_fault(enum err e, str what, struct fault *reterr) MUST_USE;

#endif
