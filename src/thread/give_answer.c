/* SPDX-License-Identifier: Apache-2.0
 *
 * An answer to an interaction, from whichever way: one change.
 *
 * A refused answer is committed like a good one, because it leaves an entry in the audit trail; its
 * refusal has the interaction, as it stands now, as a member. For somebody who may not see the
 * interaction there is none.
 */
#include "thread/give_answer.h"

#include "base/limits.h"
#include "base/members.h"
#include "feed/interaction_json.h"

/* What became of it, as whoever answered is told. */
static void give_outcome(struct give_answer *give, struct db *db, const struct settlement *s)
{
    struct change *change = &give->tc.change;
    thread_change_stepped(&give->tc, &s->stepped);
    thread_change_load(&give->tc, db);
    str json = interaction_json(change_arena(change), &s->interaction, give->settle.user);
    change->thread = s->interaction.thread;
    if (s->refusal) {
        change_refuse(change, refusal_err(s->refusal), &s->why, STR("interaction"), json);
        return;
    }
    change->status = 200;
    change->body = json;
}

static enum err answer_apply(struct change *change, struct db *db)
{
    struct give_answer *give = (struct give_answer *)(void *)change;
    struct settlement s;
    thread_change_reset(&give->tc);
    give->settle.now = change->now;
    enum err e = settle_answer(db, change_arena(change), &give->settle, give->id, give->body, &s);
    if (!e) give_outcome(give, db, &s);
    return e;
}

static enum err give_up_apply(struct change *change, struct db *db)
{
    struct give_answer *give = (struct give_answer *)(void *)change;
    struct settlement s;
    thread_change_reset(&give->tc);
    give->settle.now = change->now;
    enum err e = settle_cancel(db, change_arena(change), &give->settle, give->id, &s);
    if (!e) give_outcome(give, db, &s);
    return e;
}

/* ---- whatever is open ---- */

/* The open questions of a thread, at the front of the list. */
static size_t questions_of(struct interaction_list *open)
{
    size_t count = 0;
    for (size_t i = 0; i < open->count; i++)
        if (open->rows[i].type == INTERACTION_ASK_USER) open->rows[count++] = open->rows[i];
    return count;
}

static enum err refuse_thread(struct give_answer *give, struct db *db, enum refusal refusal,
                              str member, str json)
{
    struct fault why = {0};
    if (refusal_says(refusal)) fault(&why, refusal_err(refusal), "%s", refusal_says(refusal));
    change_refuse(&give->tc.change, refusal_err(refusal), &why, member, json);
    return settle_refused(db, &give->settle, give->tc.thread.id, NULL, refusal);
}

static enum err thread_apply(struct change *change, struct db *db)
{
    struct give_answer *give = (struct give_answer *)(void *)change;
    struct arena *arena = change_arena(change);
    str user = change->by.who.user;
    struct interaction_list open;
    struct settlement s;
    thread_change_reset(&give->tc);
    give->settle.now = change->now;
    enum err e = thread_find(db, arena, user, give->thread_id, &give->tc.thread);
    if (!e) e = interactions_of_thread(db, arena, give->tc.thread.id, &open);
    if (e) return e;
    change->thread = give->tc.thread.id;
    size_t count = questions_of(&open);
    if (!count) return refuse_thread(give, db, REFUSAL_NO_QUESTION, STR_EMPTY, STR_EMPTY);
    if (count > 1)
        return refuse_thread(give, db, REFUSAL_AMBIGUOUS, STR("interactions"),
                             interactions_json(arena, open.rows, count, user));
    e = settle_answer(db, arena, &give->settle, open.rows[0].id, give->body, &s);
    if (!e) give_outcome(give, db, &s);
    return e;
}

/* ---- to begin ---- */

static void give_start(struct give_answer *give,
                       enum err (*apply)(struct change *change, struct db *db))
{
    struct change *change = &give->tc.change;
    give->settle = settle_by(&change->by, change->by.via);
    crypto_sha256(give->sent, give->settle.hash);
    change->apply = apply;
    change->after = thread_change_tell;
    change_go(change);
}

void give_answer(struct give_answer *give)
{
    give_start(give, answer_apply);
}

void give_answer_to_thread(struct give_answer *give)
{
    struct change *change = &give->tc.change;
    str words;
    enum err e = member_string(give->body, "answer", ANSWER_BYTES_MAX, &words, &change->why);
    if (e)
        change_fail(change, e);
    else
        give_start(give, thread_apply);
}

void give_up_answer(struct give_answer *give)
{
    give_start(give, give_up_apply);
}
