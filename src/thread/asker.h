/* SPDX-License-Identifier: Apache-2.0
 *
 * Who asks for something, and by which way: all that a use case knows of a request, a frame or a
 * chat.
 */
#ifndef THREAD_ASKER_H
#define THREAD_ASKER_H

#include "base/arena.h"
#include "server/auth.h"
#include "store/db/store.h"

struct server;

struct asker {
    struct server *server;
    struct arena *arena; /* of what is made for them; it stays until they are answered */
    struct identity who;
    bool alone; /* nobody logs in here, and this is who there is */
    str via;    /* where they say it, for the record: "api", "page", "websocket", a chat's kind */
    atomic_bool **gone; /* where to leave what becomes true when they leave; NULL: they stay */
};

/* Their texts are copied into the arena; via is not. */
struct asker asker_of(struct server *server, struct arena *arena, const struct identity *who,
                      str via);

/* Read from the store for them: among their own jobs, and only for as long as they are there. job->run
 * and job->done are set; the job lives in the arena. When they have gone, done() gets ERR_CANCELLED. */
void asker_read(const struct asker *by, struct job *job, enum read_lane lane);

#endif
