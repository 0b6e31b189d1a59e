/* SPDX-License-Identifier: Apache-2.0
 *
 * The channels of the configuration at work: what comes in becomes messages and answers, what the
 * agent says goes out. On the loop thread.
 */
#ifndef CHAT_CHATS_H
#define CHAT_CHATS_H

#include "chat/channel.h"

struct server;
struct channels; /* all of them */
struct channel;  /* one */

struct channels *channels_new(struct server *server);
void channels_start(struct channels *channels); /* when everything else runs */
void channels_stop(struct channels *channels);  /* nothing is polled or sent any more */
void channels_free(struct channels *channels);  /* NULL is fine */

struct channel *channel_named(struct channels *channels, str name); /* NULL: there is none */
const struct channel_home *channel_home(const struct channel *channel);
const struct channel_ops *channel_ops(const struct channel *channel);

/* Somebody has signed in: the account is stored, the cursor begins anew, and polling goes on. done
 * comes once, after the commit. */
void channel_signed_in(struct channel *channel, str account, void (*done)(void *arg, enum err e),
                       void *arg);

/* One entry of GET /channels: {"name","kind","agent","state","detail"?,"people","waiting","parked",
 * "login":bool,"webhookUrl"?}. Counts as of `stats`, which a store job has read. */
struct channel_stats {
    int64_t people, waiting, parked;
};
void channel_write(struct json_writer *w, const struct channel *channel,
                   const struct channel_stats *stats);
size_t channels_count(const struct channels *channels);
struct channel *channels_at(struct channels *channels, size_t index);

#endif
