/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds: one shared log of native frames for each thread that somebody reads. A reader is caught up
 * from the store by itself and then follows the log. On the loop thread.
 */
#ifndef APP_FEED_H
#define APP_FEED_H

#include "app/exchange.h"
#include "store/conversation.h"

struct feeds;
struct server;

struct feeds *feeds_new(struct server *server);
void feeds_free(struct feeds *feeds); /* its streams are gone already */

/* Where a reader begins. */
struct feed_start {
    bool has_cursor; /* else at the newest started run, or at run_id */
    bool bad_cursor; /* unreadable: a reset follows */
    uint64_t after;
    str run_id;
};

/* Answer the exchange with the event stream of a thread, which need not exist yet. */
void feeds_open(struct feeds *feeds, struct exchange *x, str thread_id,
                const struct feed_start *start);

/* A thread has just been made: readers that wait for it may begin. */
void feeds_created(struct feeds *feeds, const struct thread *thread);

/* A thread has been deleted: its streams end. */
void feeds_deleted(struct feeds *feeds, int64_t thread);

/* Streams of this key, or of this session, end now. */
void feeds_end_key(struct feeds *feeds, str key_id);
void feeds_end_session(struct feeds *feeds, const unsigned char hash[static HASH_BYTES]);

size_t feeds_streams(const struct feeds *feeds);

#endif
