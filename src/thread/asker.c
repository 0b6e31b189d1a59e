/* SPDX-License-Identifier: Apache-2.0
 *
 * Who asks, made from what the way in knows of them.
 */
#include "thread/asker.h"

#include "server/server.h"

struct asker asker_of(struct server *server, struct arena *arena, const struct identity *who,
                      str via)
{
    struct asker by = {.server = server, .arena = arena, .who = *who, .via = via};
    by.who.user = arena_str(arena, who->user);
    by.who.key_id = arena_str(arena, who->key_id);
    by.alone = !auth_required(server->auth) && str_eq(by.who.user, STR("local"));
    return by;
}

void asker_read(const struct asker *by, struct job *job, enum read_lane lane)
{
    job->who = by->who.user;
    job->lane = lane;
    atomic_init(&job->gone, false);
    if (by->gone) *by->gone = &job->gone;
    store_read(by->server->store, job);
}
