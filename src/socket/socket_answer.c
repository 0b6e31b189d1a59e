/* SPDX-License-Identifier: Apache-2.0
 *
 * Which interaction the answer in a frame means: one look into the store, then give_answer:
 *
 *     requestId is an interaction's id         not visible   give_answer refuses it, and says so in
 *                                                            the audit trail
 *                                              visible       of this session, or no session named
 *     else a call's id, in this session        found         its newest interaction
 *     neither                                                404
 *
 * An interaction never changes its thread, so what is seen here is still so when the answer is
 * written. Whoever is not the owner has no session in which it could be: naming one is a 404, whichever it is,
 * or approvers could try out how others call their threads.
 */
#include "socket/socket_answer.h"

#include "agent/core/interaction.h"
#include "feed/interaction_json.h"
#include "server/server.h"
#include "store/db/store.h"
#include "store/table/conversation.h"

struct find_meant {
    struct job job;
    struct give_answer *give;
    str session_id, request_id;
    struct interaction interaction;
};

/* Is it in the session that was named? What they may not see at all is give_answer's affair. */
static bool fits(const struct find_meant *find)
{
    const struct interaction *interaction = &find->interaction;
    const struct identity *who = &find->give->tc.change.by.who;
    if (!find->session_id.len) return true;
    if (str_eq(interaction->owner, who->user))
        return str_eq(interaction->thread_id, find->session_id);
    struct decider decider = {.user = who->user};
    role_names(who->roles, decider.roles);
    return interaction_allows(interaction, &decider) == ADMITTED_NOT_SEEN;
}

static enum err find_run(struct job *job, struct db *db)
{
    struct find_meant *find = (struct find_meant *)(void *)job;
    const struct asker *by = &find->give->tc.change.by;
    struct thread thread;
    enum err e = interaction_find(db, by->arena, find->request_id, &find->interaction);
    if (!e) return fits(find) ? OK : ERR_NOT_FOUND;
    if (e != ERR_NOT_FOUND || !find->session_id.len) return e;
    e = thread_find(db, by->arena, by->who.user, find->session_id, &thread);
    return e ? e
             : interaction_of_call(db, by->arena, thread.id, find->request_id, &find->interaction);
}

static void find_done(struct job *job, enum err e)
{
    struct find_meant *find = (struct find_meant *)(void *)job;
    struct give_answer *give = find->give;
    give->id = find->interaction.id;
    if (e)
        change_fail(&give->tc.change, e);
    else
        give_answer(give);
}

void ws_answer(struct give_answer *give, str session_id, str request_id)
{
    const struct asker *by = &give->tc.change.by;
    struct find_meant *find = ARENA_NEW(by->arena, struct find_meant);
    find->job = (struct job){.run = find_run, .done = find_done};
    find->give = give;
    find->session_id = session_id;
    find->request_id = request_id;
    asker_read(by, &find->job, READ_PAGE);
}
