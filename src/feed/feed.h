/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds: what is told of a thread, encoded once for each dialect that somebody reads. A reader is
 * caught up from the store by itself and then follows along with the others. On the loop thread.
 */
#ifndef FEED_FEED_H
#define FEED_FEED_H

#include "net/http_server.h"
#include "server/auth.h"
#include "store/table/conversation.h"
#include "wire/agui.h"
#include "wire/socket.h"

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

/* Answer the request with the event stream of a thread, which need not exist yet. */
void feeds_open(struct feeds *feeds, struct http_request *request, const struct identity *who,
                str thread_id, const struct feed_start *start);

/* ---- WebSocket: a reader among others on one connection ---- */

struct reader;

struct feed_sink {
    /* One text. False: no room; it comes again after feeds_room, in its place. One that follows
     * (feeds_following) and has no room is caught up later, behind a reset; or it leaves, which is
     * fine in here. */
    bool (*on_text)(void *arg, enum socket_kind kind, str json, int64_t seq); /* seq 0: no fact */
    /* The store has been asked for the first time, whatever it had: a client that subscribes again
     * and again waits for this. Once. */
    void (*on_begun)(void *arg);
    /* The thread was deleted, or the store failed. The reader is gone. */
    void (*on_over)(void *arg);
};

/* Read a thread, which need not exist yet. Texts are of all kinds; the sink chooses. No callback
 * comes from within. */
struct reader *feeds_join(struct feeds *feeds, str owner, str thread_id,
                          const struct feed_start *start, const struct feed_sink *sink, void *arg);
void feeds_room(struct reader *reader);  /* there is room again */
void feeds_leave(struct reader *reader); /* no callback comes any more */
/* Likewise; another reader of the same client takes its place. */
void feeds_replace(struct reader *reader);
bool feeds_following(const struct reader *reader); /* it has caught up with the store */

/* ---- AG-UI ---- */

struct agui_open {
    str thread_id, run_id; /* as they are called on this wire */
    enum agui_profile profile;
    const str *ids; /* of the messages that the client has, in its order */
    size_t id_count;
    str wait_run; /* begin with the next run.started of this run (our id); empty: join
                                   what there is now */
    str of_run;   /* of a join: the run (our id) that is meant; empty: the newest */
    str then_run; /* a run of the same request that waits behind wait_run's: shown, too, once that one
                     is over; empty: none */
    bool all_legs; /* GET: goes on, leg after leg, under the ids that their requests
                                   gave them; run_id is not used */
    const struct thread_at
        *head; /* as wait_run's leg begins, borrowed until the request is answered;
                                     NULL: it is read from the store */
};

/* A reader that waits for a run has to be there before its facts are told, and the request that it
 * answers is needed until they are: so it is made first, and answers afterwards. `thread` is the row
 * of the thread; 0 (with all_legs only): it need not exist yet. */
struct reader *feeds_agui(struct feeds *feeds, int64_t thread, str owner,
                          const struct agui_open *open);
/* The request is gone behind this. */
void feeds_agui_answer(struct reader *reader, struct http_request *request,
                       const struct identity *who);

/* A thread has just been made: readers that wait for it may begin. */
void feeds_created(struct feeds *feeds, const struct thread *thread);

/* A thread has been deleted: its streams end. */
void feeds_deleted(struct feeds *feeds, int64_t thread);

size_t feeds_streams(const struct feeds *feeds);

#endif
