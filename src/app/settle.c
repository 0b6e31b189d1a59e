/* SPDX-License-Identifier: Apache-2.0
 *
 * Settling interactions on a person's word.
 *
 *   find ─► may they? ─► open? ─► in time? ─► same tool? ─► does it fit? ─► run_resolve
 *             │404,403     │409,410  │410        │409           │400,412
 *             └────────────┴─────────┴───────────┴──────────────┴──► an entry in the audit trail
 *
 * Invariants:
 * 1. At most one run_resolve in one call, so that one piece of randomness is enough.
 * 2. An interaction whose time has run out is settled as expired by whoever comes first: the clock,
 *    or the answer that is too late.
 * 3. Somebody who may not see it gets REFUSAL_NOT_VISIBLE and nothing else, whatever they sent. The
 *    entry about it is in the owner's trail: ids have 128 random bits, so a stranger who names one
 *    was given it, and that is worth knowing.
 */
#include "app/settle.h"

#include <string.h>

#include "agent/interaction.h"
#include "base/limits.h"

void role_names(unsigned roles, str out[static INTERACTION_ROLES_MAX])
{
    static_assert((int)ROLE_COUNT <= (int)INTERACTION_ROLES_MAX, "every role has a place");
    for (size_t i = 0; i < INTERACTION_ROLES_MAX; i++)
        out[i] =
            i < ROLE_COUNT && (roles & role_table[i].bit) ? str_c(role_table[i].name) : STR_EMPTY;
}

str settle_via(const struct identity *who)
{
    return who->via == VIA_SESSION ? STR("page") : STR("api");
}

str interactions_json(struct arena *arena, const struct interaction *rows, size_t count, str user)
{
    struct buf out;
    struct json_writer w;
    buf_init(&out, HTTP_ANSWER_BYTES_MAX / 2);
    json_write_begin(&w, &out);
    json_array(&w);
    for (size_t i = 0; i < count; i++) interaction_write(&w, &rows[i], str_eq(rows[i].owner, user));
    json_array_end(&w);
    str copy = arena_str(arena, buf_str(&out));
    buf_done(&out);
    return copy;
}

str interaction_json(struct arena *arena, const struct interaction *interaction, str user)
{
    struct buf out;
    struct json_writer w;
    buf_init(&out, HTTP_ANSWER_BYTES_MAX / 2);
    json_write_begin(&w, &out);
    interaction_write(&w, interaction, str_eq(interaction->owner, user));
    str copy = arena_str(arena, buf_str(&out));
    buf_done(&out);
    return copy;
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

/* The answer is not taken, and that is written down. */
static enum err refuse(struct db *db, const struct settle *settle, struct settlement *s,
                       enum refusal refusal)
{
    s->refusal = refusal;
    if (refusal_says(refusal)) fault(&s->why, refusal_err(refusal), "%s", refusal_says(refusal));
    return settle_refused(db, settle, s->interaction.thread, &s->interaction, refusal);
}

/* Whoever is told that it is over finds it settled: one that stays open belongs to no run that waits
 * for it, which only damaged rows do. */
static enum err resolve(struct db *db, struct arena *arena, const struct settle *settle,
                        const struct resolution *resolution, struct settlement *s)
{
    struct resolve one = {.thread = s->interaction.thread,
                          .resolutions = resolution,
                          .resolution_count = 1,
                          .now = settle->now};
    memcpy(one.random, settle->random, sizeof one.random);
    enum err e = run_resolve(db, arena, settle->saver, &one, &s->stepped);
    if (!e) e = interaction_find(db, arena, s->interaction.id, &s->interaction);
    return !e && s->interaction.status == INTERACTION_OPEN ? ERR_DAMAGED : e;
}

/* A good answer, to a run that may turn out to be beyond reading: then it has failed, and what it
 * waited for is canceled. */
static enum err take(struct db *db, struct arena *arena, const struct settle *settle,
                     const struct resolution *resolution, struct settlement *s)
{
    enum err e = resolve(db, arena, settle, resolution, s);
    bool taken = s->interaction.status == INTERACTION_RESOLVED;
    return e || taken ? e : refuse(db, settle, s, refusal_of_status(s->interaction.status));
}

/* Settled by us, because its time or its tool is over; the answer came too late. */
static enum err overtake(struct db *db, struct arena *arena, const struct settle *settle,
                         enum decision decision, enum refusal refusal, struct settlement *s)
{
    struct resolution resolution = {
        .interaction_id = s->interaction.id, .decision = decision, .via = STR("timer")};
    if (decision == DECISION_SUPERSEDE) resolution.via = STR("run");
    enum err e = resolve(db, arena, settle, &resolution, s);
    return e ? e : refuse(db, settle, s, refusal);
}

/* *ret_go_on: it is theirs to settle. Else the settlement says why not. */
static enum err admit(struct db *db, struct arena *arena, const struct settle *settle, str id,
                      struct settlement *s, bool *ret_go_on)
{
    str roles[INTERACTION_ROLES_MAX];
    *ret_go_on = false;
    enum err e = interaction_find(db, arena, id, &s->interaction);
    if (e) return e;
    role_names(settle->roles, roles);
    e = interaction_allows(&s->interaction, settle->user, roles, INTERACTION_ROLES_MAX);
    if (e == ERR_NOT_FOUND) return refuse(db, settle, s, REFUSAL_NOT_VISIBLE);
    if (e) return refuse(db, settle, s, REFUSAL_WRONG_ROLE);
    enum refusal over = refusal_of_status(s->interaction.status);
    if (over) return refuse(db, settle, s, over);
    if (s->interaction.expires && s->interaction.expires <= settle->now)
        return overtake(db, arena, settle, DECISION_EXPIRE, REFUSAL_EXPIRED, s);
    *ret_go_on = true;
    return OK;
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

enum err settle_answer(struct db *db, struct arena *arena, const struct settle *settle, str id,
                       const struct json *body, struct settlement *ret_settlement)
{
    struct settlement s = {0};
    struct resolution resolution = {0};
    bool go_on;
    enum err e = admit(db, arena, settle, id, &s, &go_on);
    if (e) return e;
    if (go_on && s.interaction.type == INTERACTION_CONFIRM && lets_run(body) &&
        !same_tool(settle->saver, &s.interaction)) {
        e = overtake(db, arena, settle, DECISION_SUPERSEDE, REFUSAL_SUPERSEDED, &s);
        go_on = false;
    }
    if (!e && go_on) {
        enum err fits = answer_parse(arena, &s.interaction, body, &resolution, &s.why);
        resolution.interaction_id = s.interaction.id;
        resolution.by = settle->user;
        resolution.via = settle->via;
        if (!fits)
            e = take(db, arena, settle, &resolution, &s);
        else if (fits == ERR_BINDING_MISMATCH)
            e = refuse(db, settle, &s, REFUSAL_BINDING_MISMATCH);
        else if (fits == ERR_INVALID_FIELD)
            e = refuse(db, settle, &s,
                       refusal_of_body(arena, &s.interaction, body, str_c(s.why.field)));
        else
            e = fits;
    }
    if (e) return e;
    *ret_settlement = s;
    return OK;
}

enum err settle_cancel(struct db *db, struct arena *arena, const struct settle *settle, str id,
                       struct settlement *ret_settlement)
{
    struct settlement s = {0};
    bool go_on;
    enum err e = admit(db, arena, settle, id, &s, &go_on);
    if (!e && go_on) {
        struct resolution resolution = {.interaction_id = s.interaction.id,
                                        .decision = DECISION_CANCEL,
                                        .by = settle->user,
                                        .via = settle->via};
        e = resolve(db, arena, settle, &resolution, &s);
    }
    if (e) return e;
    *ret_settlement = s;
    return OK;
}
