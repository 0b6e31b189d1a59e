/* SPDX-License-Identifier: Apache-2.0
 *
 * Store jobs behind links of people in chats. A code is made before its job runs; the store gets
 * its hash alone.
 */
#include "chat/link_job.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/say.h"
#include "store/table/grants.h"
#include "store/table/keys.h"

/* Eight digits, every one as likely as another. */
static void make_code(char out[static LINK_CODE_BYTES])
{
    enum { CODES = 100 * 1000 * 1000 };
    uint32_t n;
    do crypto_random(&n, sizeof n);
    while (n >= UINT32_MAX / CODES * CODES);
    snprintf(out, LINK_CODE_BYTES, "%08u", n % CODES);
}

static enum err link_run(struct job *job, struct db *db)
{
    struct channel_link *link = (struct channel_link *)(void *)job;
    if (!user_valid(link->link.user)) return ERR_INVALID_FIELD;
    return link_add(db, &link->link);
}

void channel_link_init(struct channel_link *link, str channel, str user, unsigned roles)
{
    unsigned char hash[HASH_BYTES];
    *link = (struct channel_link){.job.run = link_run};
    make_code(link->code);
    crypto_sha256(str_c(link->code), hash);
    crypto_hex((str){(const char *)hash, sizeof hash}, link->hash);
    link->link = (struct link_code){.hash = str_c(link->hash),
                                    .channel = channel,
                                    .user = user,
                                    .roles = roles,
                                    .expires = clock_wall(&clock_system) + CHANNEL_LINK_MS};
}

static enum err unlink_run(struct job *job, struct db *db)
{
    struct channel_unlink *unlink = (struct channel_unlink *)(void *)job;
    struct peer peer;
    enum err e = peer_find(db, unlink->arena, unlink->channel, unlink->sender, &peer);
    if (e) return e;
    if (!peer.user.len) return ERR_NOT_FOUND;
    /* The conversations they had as that user are not theirs any more. */
    peer.user = peer.thread_id = peer.held = STR_EMPTY;
    peer.roles = 0;
    peer.thread = peer.cursor = 0;
    e = out_drop_all(db, peer.id);
    if (!e) e = peer_update(db, &peer);
    if (e || !unlink->audit_key) return e;
    return grants_end(db, unlink->arena, unlink->audit_key, unlink->now);
}

void channel_unlink_init(struct channel_unlink *unlink, struct arena *arena, str channel,
                         str sender)
{
    *unlink = (struct channel_unlink){.job.run = unlink_run,
                                      .arena = arena,
                                      .channel = channel,
                                      .sender = sender,
                                      .now = clock_wall(&clock_system)};
}

enum err channel_job_fault(enum err e, str what, struct fault *reterr)
{
    switch (e) {
    case OK:
        return OK;
    case ERR_NOT_FOUND:
        return fault(reterr, e, "nobody with the id \"%s\" is linked in this channel",
                     say(what).text);
    case ERR_INVALID_FIELD:
        return fault_field(reterr, e, "user", "\"%s\" cannot be a user's name", say(what).text);
    case ERR_STORAGE_FULL:
        return fault(reterr, e, "the disk is full; nothing was changed");
    default:
        return fault(reterr, e, "the store refused: %s", err_title(e));
    }
}
