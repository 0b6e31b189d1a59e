/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain message while something is open: what it settles (an approval is rejected by it), and
 * what becomes of it. A message that is an answer becomes a user row of its own, in front of what
 * it settles and in the same commit; the model sees it only as the answer.
 *
 * Invariants:
 * 1. Nothing is approved here: questions are answered, confirms rejected, a lost connection tried
 *    again. An uncertain write stays for a person to decide.
 * 2. What has run out of time is taken out before (pending_expire), so that no message answers it.
 */
#include "thread/plain_message.h"

#include <string.h>

#include "agent/core/facts.h"
#include "agent/core/files.h"
#include "agent/core/interaction.h"
#include "base/limits.h"
#include "feed/interaction_json.h"
#include "thread/start_run.h"
#include "ui/text.h"

str metadata_with_run(struct arena *arena, str metadata, str run_id, str task_id, str answer_to)
{
    str own = (str){metadata.p + 1, metadata.len - 2}; /* without its braces */
    return arena_printf(arena, "{\"run_id\":\"%.*s\",\"task_id\":\"%.*s\"%s%.*s%s%.*s}",
                        STR_ARG(run_id), STR_ARG(task_id), own.len ? "," : "", STR_ARG(own),
                        answer_to.len ? ",\"answer_to\":" : "", STR_ARG(answer_to));
}

/* All texts of the request, a line each; where there are none, the names of the files. ERR_TOO_LARGE: longer than an answer may be. */
static enum err join_texts(struct arena *arena, const struct plain_message *plain, str *ret_text)
{
    struct buf out;
    buf_init(&out, ANSWER_BYTES_MAX);
    for (size_t i = 0; i < plain->count; i++) {
        const struct message *message = &plain->messages[i];
        str text = ui_trim(message->plain).len ? message->plain : files_named(arena, message);
        if (i) buf_char(&out, '\n');
        buf_append(&out, text);
    }
    enum err e = out.full ? ERR_TOO_LARGE : OK;
    if (!e) *ret_text = arena_str(arena, buf_str(&out));
    buf_done(&out);
    return e;
}

/* One id as itself, several as a list. */
static str answer_to_json(struct arena *arena, const struct id_list *ids)
{
    return ids->count == 1 ? arena_printf(arena, "\"%.*s\"", STR_ARG(ids->ids[0]))
                           : ids_json(arena, ids);
}

enum err plain_store(struct thread_change *tc, struct db *db, const struct plain_message *plain,
                     const struct pending *pending)
{
    struct arena *arena = change_arena(&tc->change);
    const struct run *run = &pending->run;
    str answer_to = answer_to_json(arena, &plain->answer_to);
    struct fact *facts = arena_array(arena, plain->count, sizeof *facts);
    struct message *rows = arena_array(arena, plain->count, sizeof *rows);
    for (size_t i = 0; i < plain->count; i++) {
        rows[i] = plain->messages[i];
        rows[i].run_id = run->run_id;
        rows[i].metadata =
            metadata_with_run(arena, rows[i].metadata, run->run_id, run->task_id, answer_to);
        facts[i] = (struct fact){.type = FACT_MESSAGE_ADDED,
                                 .run_id = run->run_id,
                                 .at = plain->settle.now,
                                 .data = fact_message_added(arena, &rows[i]),
                                 .more = message_bytes(&rows[i])};
    }
    enum err e = facts_append(db, tc->thread.id, facts, plain->count, plain->settle.now);
    for (size_t i = 0; !e && i < plain->count; i++) {
        rows[i].seq = facts[i].seq;
        e = message_add(db, tc->thread.id, &rows[i]);
    }
    if (!e) thread_change_facts(tc, facts, plain->count);
    return e;
}

static enum err refuse_ambiguous(struct thread_change *tc, struct db *db,
                                 const struct plain_message *plain, struct interaction_list *open)
{
    struct fault why = {0};
    size_t count = 0;
    assert(open->rows); /* there are two at least */
    for (size_t i = 0; i < open->count; i++)
        if (open->rows[i].type == INTERACTION_ASK_USER) open->rows[count++] = open->rows[i];
    fault(&why, ERR_AMBIGUOUS, "%s", refusal_says(REFUSAL_AMBIGUOUS));
    change_refuse(&tc->change, ERR_AMBIGUOUS, &why, STR("interactions"),
                  interactions_json(change_arena(&tc->change), open->rows, count,
                                    plain->settle.user));
    return settle_refused(db, &plain->settle, tc->thread.id, NULL, REFUSAL_AMBIGUOUS);
}

static enum err refuse_large(struct thread_change *tc, struct db *db,
                             const struct plain_message *plain)
{
    struct fault why = {0};
    fault_field(&why, ERR_TOO_LARGE, "messages",
                "a question is open, and its answer may have %d bytes", ANSWER_BYTES_MAX);
    change_refuse(&tc->change, ERR_TOO_LARGE, &why, STR_EMPTY, STR_EMPTY);
    return settle_refused(db, &plain->settle, tc->thread.id, NULL, REFUSAL_INVALID_ANSWER);
}

/* It would answer what was asked through /mcp with the same key. */
static enum err refuse_own_key(struct thread_change *tc, struct db *db,
                               const struct plain_message *plain,
                               const struct interaction *interaction)
{
    struct fault why = {0};
    fault(&why, ERR_FORBIDDEN, "%s", refusal_says(REFUSAL_OWN_KEY));
    change_refuse(&tc->change, ERR_FORBIDDEN, &why, STR("interaction"),
                  interaction_json(change_arena(&tc->change), interaction, plain->settle.user));
    return settle_refused(db, &plain->settle, tc->thread.id, interaction, REFUSAL_OWN_KEY);
}

static const struct interaction *own_key(const struct plain_message *plain,
                                         const struct interaction_list *open)
{
    for (size_t i = 0; i < open->count; i++)
        if (settle_own_key(&plain->settle, &open->rows[i])) return &open->rows[i];
    return NULL;
}

static size_t count_of(const struct interaction_list *open, enum interaction_type type)
{
    size_t count = 0;
    for (size_t i = 0; i < open->count; i++) count += open->rows[i].type == type;
    return count;
}

/* Everything but uncertain writes is settled by the message. */
static void settle_open(struct arena *arena, struct plain_message *plain, str text,
                        struct pending *pending)
{
    size_t before = pending->answered.count;
    for (size_t i = 0; i < pending->open.count;) {
        const struct interaction *interaction = &pending->open.rows[i];
        struct resolution resolution;
        if (interaction->type == INTERACTION_UNCERTAIN) {
            i++;
            continue;
        }
        answer_plain(arena, interaction, text, &resolution);
        resolution.interaction_id = interaction->id;
        resolution.by = plain->settle.user;
        resolution.via = plain->settle.via;
        pending_settle(pending, &resolution, true);
    }
    plain->answer_to =
        (struct id_list){pending->answered.ids + before, pending->answered.count - before};
}

/* Calls that wait for the client, which says something else instead. */
static void end_pending(struct pending *pending)
{
    while (pending->calls.count)
        pending_front(pending, &(struct front_result){.call_id = pending->calls.rows[0].call_id,
                                                      .text = STR("not answered"),
                                                      .failed = true});
}

/* The reply to one interaction. Too late, or not theirs: refused, and that is committed. */
static enum err take_reply(struct thread_change *tc, struct db *db, struct plain_message *plain,
                           struct pending *pending, enum plain_fate *ret_fate)
{
    struct arena *arena = change_arena(&tc->change);
    struct judged judged = {0};
    struct json *body = NULL;
    enum err e = json_parse(arena, plain->reply, &body, NULL);
    if (!e) e = interaction_find(db, arena, plain->reply_to, &judged.interaction);
    if (!e && judged.interaction.thread != tc->thread.id) e = ERR_NOT_FOUND;
    if (e) return e;
    if (settle_admit(&plain->settle, WISH_ANSWER, &judged))
        e = settle_fit(arena, &plain->settle, body, &judged);
    if (e) return e;
    if (judged.refusal) {
        *ret_fate = PLAIN_REFUSED;
        change_refuse(&tc->change, refusal_err(judged.refusal), &judged.why, STR("interaction"),
                      interaction_json(arena, &judged.interaction, plain->settle.user));
        return settle_refused(db, &plain->settle, tc->thread.id, &judged.interaction,
                              judged.refusal);
    }
    size_t before = pending->answered.count;
    pending_settle(pending, &judged.resolution, true);
    plain->answer_to =
        (struct id_list){pending->answered.ids + before, pending->answered.count - before};
    *ret_fate = PLAIN_ANSWER;
    return plain->answer_to.count ? OK : ERR_NOT_FOUND; /* of a run that is over */
}

enum err plain_message(struct thread_change *tc, struct db *db, struct plain_message *plain,
                       struct pending *pending, enum plain_fate *ret_fate)
{
    struct arena *arena = change_arena(&tc->change);
    bool nothing = !pending->open.count && !pending->calls.count;
    if (plain->reply_to.len) return take_reply(tc, db, plain, pending, ret_fate);
    *ret_fate = PLAIN_FREE;
    if (nothing || !pending->run.id || pending->run.status == RUN_CANCELLING) return OK;
    if (plain->behind) {
        *ret_fate = PLAIN_FOLLOWS;
        return OK;
    }
    size_t questions = count_of(&pending->open, INTERACTION_ASK_USER);
    size_t confirms = count_of(&pending->open, INTERACTION_CONFIRM);
    *ret_fate = PLAIN_REFUSED;
    const struct interaction *own = own_key(plain, &pending->open);
    if (own) return refuse_own_key(tc, db, plain, own);
    if (questions > 1) return refuse_ambiguous(tc, db, plain, &pending->open);
    bool answer = questions + confirms > 0;
    str text = STR_EMPTY; /* what follows as a message of its own may be as long as any */
    if (answer && join_texts(arena, plain, &text)) return refuse_large(tc, db, plain);
    settle_open(arena, plain, text, pending);
    end_pending(pending);
    *ret_fate = answer ? PLAIN_ANSWER : PLAIN_FOLLOWS;
    return OK;
}
