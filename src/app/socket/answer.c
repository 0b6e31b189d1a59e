/* SPDX-License-Identifier: Apache-2.0
 *
 * One look into the store, then the route's handler:
 *
 *     requestId is an interaction's id         not visible   the handler refuses it, and says so in
 *                                                            the audit trail
 *                                              visible       of this session, or no session named
 *     else a call's id, in this session        found         its newest interaction
 *     neither                                                404
 *
 * An interaction never changes its thread, so what is seen here is still so when the handler writes.
 * Whoever is not the owner has no session in which it could be: naming one is a 404, whichever it is,
 * or approvers could try out how others call their threads.
 */
#include "app/socket/answer.h"

#include "agent/interaction.h"
#include "app/http/inside.h"
#include "app/input/settle.h"
#include "app/server.h"
#include "store/conversation.h"
#include "store/store.h"

struct find_meant {
    struct job job;
    struct exchange *x;
    str session_id, request_id;
    struct interaction interaction;
};

/* Is it in the session that was named? What they may not see at all is the handler's affair. */
static bool fits(const struct find_meant *find)
{
    const struct interaction *interaction = &find->interaction;
    const struct identity *who = &find->x->who;
    str roles[INTERACTION_ROLES_MAX];
    if (!find->session_id.len) return true;
    if (str_eq(interaction->owner, who->user))
        return str_eq(interaction->thread_id, find->session_id);
    role_names(who->roles, roles);
    return interaction_allows(interaction, who->user, roles, COUNT(roles)) == ERR_NOT_FOUND;
}

static enum err find_run(struct job *job, struct db *db)
{
    struct find_meant *find = (struct find_meant *)(void *)job;
    struct arena *arena = exchange_arena(find->x);
    struct thread thread;
    enum err e = interaction_find(db, arena, find->request_id, &find->interaction);
    if (!e) return fits(find) ? OK : ERR_NOT_FOUND;
    if (e != ERR_NOT_FOUND || !find->session_id.len) return e;
    e = thread_find(db, arena, find->x->who.user, find->session_id, &thread);
    return e ? e : interaction_of_call(db, arena, thread.id, find->request_id, &find->interaction);
}

static void find_done(struct job *job, enum err e)
{
    struct find_meant *find = (struct find_meant *)(void *)job;
    struct exchange *x = find->x;
    if (e) {
        exchange_error(x, e, NULL);
        return;
    }
    x->params[0] = find->interaction.id;
    inside_go(x);
}

void ws_answer(struct exchange *x, str session_id, str request_id)
{
    struct find_meant *find = ARENA_NEW(exchange_arena(x), struct find_meant);
    find->job = (struct job){.run = find_run, .done = find_done};
    find->x = x;
    find->session_id = arena_str(exchange_arena(x), session_id);
    find->request_id = arena_str(exchange_arena(x), request_id);
    store_read(x->server->store, &find->job);
}
