/* SPDX-License-Identifier: Apache-2.0
 *
 * A person settles an interaction: may they, in time, does it fit.
 *
 *   find ─► may they? ─► open? ─► in time? ─► same tool? ─► does it fit? ─► run_resolve
 *    │404     │403         │409,410  │410        │409           │400,412
 *             └────────────┴─────────┴───────────┴──────────────┴──► an entry in the audit trail
 *
 * Invariants:
 * 1. At most one run_resolve in one call, so that one piece of randomness is enough.
 * 2. An interaction whose time has run out is settled as expired by whoever comes first: the clock,
 *    or the answer that is too late.
 * 3. For somebody who may not see it there is none (settle_find), whatever they sent, and for the work
 *    of an unknown id: the short columns of one row are looked at, nothing is written, and the job
 *    ends as it does without one. One entry about it comes into the owner's trail later (trail.h): ids
 *    have 128 random bits, so a stranger who names one was given it, and that is worth knowing.
 */
#include "thread/settle.h"

#include <string.h>

#include "agent/core/interaction.h"
#include "base/limits.h"
#include "duty/trail.h"
#include "feed/interaction_json.h"
#include "server/server.h"

struct settle settle_by(const struct asker *by, str via)
{
    struct settle settle = {.saver = &by->server->saver,
                            .trail = by->server->trail,
                            .user = by->who.user,
                            .roles = by->who.roles,
                            .key_id = by->who.key_id,
                            .alone = by->alone,
                            .via = via};
    crypto_nonce(settle.random, sizeof settle.random);
    return settle;
}

enum err settle_refused(struct db *db, const struct settle *settle, int64_t thread,
                        const struct interaction *interaction, enum refusal refusal)
{
    struct audit_entry entry = {
        .action = AUDIT_REFUSED,
        .interaction_id = interaction ? interaction->id : STR_EMPTY,
        .call_id = interaction ? interaction->call_id : STR_EMPTY,
        .who = settle->user,
        .via = settle->via,
        .why = refusal_word(refusal),
        .at = settle->now,
    };
    memcpy(entry.hash, settle->hash, HASH_BYTES);
    return audit_add(db, settle->saver->audit_key, thread, &entry);
}

/* ---- judging ---- */

static void judge(struct judged *judged, enum refusal refusal)
{
    judged->refusal = refusal;
    if (refusal_says(refusal))
        fault(&judged->why, refusal_err(refusal), "%s", refusal_says(refusal));
}

/* The answer comes too late: whoever judges settles it so. */
static void overtake(struct judged *judged, enum decision decision, const char *via,
                     enum refusal refusal)
{
    judge(judged, refusal);
    judged->overtaken = true;
    judged->resolution = (struct resolution){
        .interaction_id = judged->interaction.id, .decision = decision, .via = str_c(via)};
}

bool settle_own_key(const struct settle *settle, const struct interaction *interaction)
{
    return interaction->asked_key.len && str_eq(interaction->asked_key, settle->key_id);
}

/* Why they may not. What was asked through /mcp is not answered with the key that asked, whatever
 * its roles. The owner may always take it back. */
static enum refusal may(const struct settle *settle, enum settle_wish wish,
                        const struct interaction *interaction)
{
    static const enum refusal refusals[] = {[ADMITTED] = REFUSAL_NONE,
                                            [ADMITTED_NOT_SEEN] = REFUSAL_NOT_VISIBLE,
                                            [ADMITTED_WRONG_ROLE] = REFUSAL_WRONG_ROLE,
                                            [ADMITTED_OWN_REQUEST] = REFUSAL_OWN_REQUEST};
    struct decider decider = {.user = settle->user, .alone = settle->alone};
    role_names(settle->roles, decider.roles);
    enum refusal refusal = refusals[interaction_allows(interaction, &decider)];
    bool owner = str_eq(interaction->owner, settle->user);
    if (wish == WISH_CANCEL && owner) return REFUSAL_NONE;
    return !refusal && settle_own_key(settle, interaction) ? REFUSAL_OWN_KEY : refusal;
}

bool settle_admit(const struct settle *settle, enum settle_wish wish, struct judged *judged)
{
    const struct interaction *interaction = &judged->interaction;
    enum refusal refused = may(settle, wish, interaction);
    enum refusal over = refusal_of_status(interaction->status);
    if (refused)
        judge(judged, refused);
    else if (over)
        judge(judged, over);
    else if (interaction->expires && interaction->expires <= settle->now)
        overtake(judged, DECISION_EXPIRE, "timer", REFUSAL_EXPIRED);
    else
        return true;
    return false;
}

/* The tool, as it was shown to whoever approves. A plan is shown by the graph itself. */
static bool same_tool(const struct saver *saver, const struct interaction *interaction)
{
    if (str_eq(interaction->tool, tool_submit_plan.name)) return true;
    const struct tool *tool = tools_find(saver->tools, interaction->tool);
    return tool && str_eq(tool->schema, interaction->args_schema);
}

/* A word that lets the tool run. Any other may be said about a tool that is gone. */
static bool lets_run(const struct json *body)
{
    str decision = json_text(json_get(body, STR("decision")));
    return str_eq(decision, STR("approve")) || str_eq(decision, STR("edit"));
}

enum err settle_fit(struct arena *arena, const struct settle *settle, const struct json *body,
                    struct judged *judged)
{
    const struct interaction *interaction = &judged->interaction;
    if (interaction->type == INTERACTION_CONFIRM && lets_run(body) &&
        !same_tool(settle->saver, interaction)) {
        overtake(judged, DECISION_SUPERSEDE, "run", REFUSAL_SUPERSEDED);
        return OK;
    }
    enum err fits = answer_parse(arena, interaction, body, &judged->resolution, &judged->why);
    judged->resolution.interaction_id = interaction->id;
    judged->resolution.by = settle->user;
    judged->resolution.via = settle->via;
    if (fits == ERR_BINDING_MISMATCH)
        judge(judged, REFUSAL_BINDING_MISMATCH);
    else if (fits == ERR_INVALID_FIELD)
        judge(judged, refusal_of_body(arena, interaction, body, str_c(judged->why.field)));
    else
        return fits;
    return OK;
}

void settle_drop(const struct settle *settle, struct judged *judged)
{
    judged->resolution = (struct resolution){.interaction_id = judged->interaction.id,
                                             .decision = DECISION_CANCEL,
                                             .by = settle->user,
                                             .via = settle->via};
}

/* ---- settling ---- */

/* Whoever is told that it is over finds it settled: one that stays open belongs to no run that waits
 * for it, which only damaged rows do. */
static enum err resolve(struct db *db, struct arena *arena, const struct settle *settle,
                        const struct resolution *resolution, struct settlement *s)
{
    struct resolve one = {.thread = s->interaction.thread,
                          .resolutions = resolution,
                          .resolution_count = 1,
                          .wire_run_id = settle->wire_run_id,
                          .input = settle->leg,
                          .now = settle->now};
    memcpy(one.random, settle->random, sizeof one.random);
    enum err e = run_resolve(db, arena, settle->saver, &one, &s->stepped);
    if (!e) e = interaction_find(db, arena, s->interaction.id, &s->interaction);
    return !e && s->interaction.status == INTERACTION_OPEN ? ERR_DAMAGED : e;
}

/* What was judged, done: settled, or refused and written down. A good answer may come to a run that
 * turns out to be beyond reading: then it has failed, and what it waited for is canceled. */
static enum err settle_judged(struct db *db, struct arena *arena, const struct settle *settle,
                              const struct judged *judged, struct settlement *ret_settlement)
{
    struct settlement s = {.refusal = judged->refusal, .interaction = judged->interaction};
    enum interaction_status wanted = judged->resolution.decision == DECISION_CANCEL
                                         ? INTERACTION_CANCELED
                                         : INTERACTION_RESOLVED;
    enum err e = OK;
    s.why = judged->why;
    if (!judged->refusal || judged->overtaken)
        e = resolve(db, arena, settle, &judged->resolution, &s);
    if (!e && !judged->refusal && s.interaction.status != wanted) {
        s.refusal = refusal_of_status(s.interaction.status);
        fault(&s.why, refusal_err(s.refusal), "%s", refusal_says(s.refusal));
    }
    if (!e && s.refusal)
        e = settle_refused(db, settle, s.interaction.thread, &s.interaction, s.refusal);
    if (!e) *ret_settlement = s;
    return e;
}

/* A stranger's is written later, and once. */
static void note_stranger(const struct settle *settle, const struct interaction *interaction)
{
    struct stranger stranger = {.thread = interaction->thread,
                                .interaction_id = interaction->id,
                                .call_id = interaction->call_id,
                                .user = settle->user,
                                .via = settle->via,
                                .at = settle->now};
    memcpy(stranger.hash, settle->hash, HASH_BYTES);
    trail_stranger(settle->trail, &stranger);
}

enum err settle_find(struct db *db, struct arena *arena, const struct settle *settle, str id,
                     struct interaction *ret_interaction)
{
    struct decider decider = {.user = settle->user};
    struct interaction brief;
    role_names(settle->roles, decider.roles);
    enum err e = interaction_brief(db, arena, id, &brief);
    if (e) return e;
    if (interaction_allows(&brief, &decider) != ADMITTED_NOT_SEEN)
        return interaction_find(db, arena, id, ret_interaction);
    note_stranger(settle, &brief);
    return ERR_NOT_FOUND;
}

enum err settle_answer(struct db *db, struct arena *arena, const struct settle *settle, str id,
                       const struct json *body, struct settlement *ret_settlement)
{
    struct judged judged = {0};
    enum err e = settle_find(db, arena, settle, id, &judged.interaction);
    if (!e && settle_admit(settle, WISH_ANSWER, &judged))
        e = settle_fit(arena, settle, body, &judged);
    return e ? e : settle_judged(db, arena, settle, &judged, ret_settlement);
}

enum err settle_cancel(struct db *db, struct arena *arena, const struct settle *settle, str id,
                       struct settlement *ret_settlement)
{
    struct judged judged = {0};
    enum err e = settle_find(db, arena, settle, id, &judged.interaction);
    if (e) return e;
    if (settle_admit(settle, WISH_CANCEL, &judged)) settle_drop(settle, &judged);
    return settle_judged(db, arena, settle, &judged, ret_settlement);
}
