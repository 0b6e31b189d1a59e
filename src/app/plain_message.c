/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain messages and open interactions. A message that is an answer becomes a user row of its own,
 * in front of what it settles and in the same commit; the model sees it only as the answer.
 *
 * Invariants:
 * 1. Nothing is approved here: questions are answered, confirms rejected, a lost connection tried
 *    again. An uncertain write stays for a person to decide.
 * 2. What has run out of time is settled as expired first, so that no message answers it.
 */
#include "app/plain_message.h"

#include <string.h>

#include "agent/facts.h"
#include "agent/files.h"
#include "agent/interaction.h"
#include "base/limits.h"
#include "ui/text.h"

str metadata_with_run(struct arena *arena, str metadata, str run_id, str task_id, str answer_to)
{
    str own = (str){metadata.p + 1, metadata.len - 2}; /* without its braces */
    return arena_printf(arena, "{\"run_id\":\"%.*s\",\"task_id\":\"%.*s\"%s%.*s%s%.*s}",
                        STR_ARG(run_id), STR_ARG(task_id), own.len ? "," : "", STR_ARG(own),
                        answer_to.len ? ",\"answer_to\":" : "", STR_ARG(answer_to));
}

/* What was open until now and is not in time any more. */
static enum err expire_due(struct thread_change *tc, struct db *db,
                           const struct plain_message *plain, struct interaction_list *open)
{
    struct arena *arena = change_arena(&tc->change);
    struct resolution *due = arena_array(arena, open->count + 1, sizeof *due);
    struct stepped stepped;
    size_t count = 0;
    for (size_t i = 0; i < open->count; i++) {
        const struct interaction *interaction = &open->rows[i];
        if (!interaction->expires || interaction->expires > plain->settle.now) continue;
        due[count++] = (struct resolution){
            .interaction_id = interaction->id, .decision = DECISION_EXPIRE, .via = STR("timer")};
    }
    if (!count) return OK;
    struct resolve resolve = {.thread = tc->thread.id,
                              .resolutions = due,
                              .resolution_count = count,
                              .now = plain->settle.now};
    memcpy(resolve.random, plain->expire_random, sizeof resolve.random);
    enum err e = run_resolve(db, arena, plain->settle.saver, &resolve, &stepped);
    if (e) return e;
    thread_change_stepped(tc, &stepped);
    return interactions_of_thread(db, arena, tc->thread.id, open);
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

/* Ids as a JSON list. */
static str ids_json(struct arena *arena, const struct resolution *resolutions, size_t count)
{
    struct buf out;
    struct json_writer w;
    buf_init(&out, STATE_BYTES_MAX);
    json_write_begin(&w, &out);
    json_array(&w);
    for (size_t i = 0; i < count; i++) json_string(&w, resolutions[i].interaction_id);
    json_array_end(&w);
    str copy = arena_str(arena, buf_str(&out));
    buf_done(&out);
    return copy;
}

/* The message as a row of the run that waits, in front of what it settles. */
static enum err store_answer(struct thread_change *tc, struct db *db,
                             const struct plain_message *plain, const struct run *run,
                             str answer_to)
{
    struct arena *arena = change_arena(&tc->change);
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
                                 .data = fact_message_added(arena, &rows[i])};
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

static size_t count_of(const struct interaction_list *open, enum interaction_type type)
{
    size_t count = 0;
    for (size_t i = 0; i < open->count; i++) count += open->rows[i].type == type;
    return count;
}

/* Everything but uncertain writes is settled by the message. */
static size_t resolutions_of(struct arena *arena, const struct interaction_list *open,
                             const struct plain_message *plain, str text, struct resolution *out)
{
    size_t count = 0;
    for (size_t i = 0; i < open->count; i++) {
        if (open->rows[i].type == INTERACTION_UNCERTAIN) continue;
        struct resolution *resolution = &out[count++];
        answer_plain(arena, &open->rows[i], text, resolution);
        resolution->interaction_id = open->rows[i].id;
        resolution->by = plain->settle.user;
        resolution->via = plain->settle.via;
    }
    return count;
}

/* One id as itself, several as a list. */
static str answer_to_json(struct arena *arena, const struct resolution *resolutions, size_t count,
                          str answered)
{
    return count == 1 ? arena_printf(arena, "\"%.*s\"", STR_ARG(resolutions[0].interaction_id))
                      : answered;
}

static enum err settle_all(struct thread_change *tc, struct db *db,
                           const struct plain_message *plain, const struct interaction_list *open,
                           str text, struct run *run, struct plain_taken *taken)
{
    struct arena *arena = change_arena(&tc->change);
    struct resolution *resolutions = arena_array(arena, open->count, sizeof *resolutions);
    size_t count = resolutions_of(arena, open, plain, text, resolutions);
    if (!count) return OK;
    struct stepped stepped;
    enum err e = OK;
    taken->answered = ids_json(arena, resolutions, count);
    if (taken->fate == PLAIN_ANSWER)
        e = store_answer(tc, db, plain, run,
                         answer_to_json(arena, resolutions, count, taken->answered));
    struct resolve resolve = {.thread = tc->thread.id,
                              .resolutions = resolutions,
                              .resolution_count = count,
                              .now = plain->settle.now};
    memcpy(resolve.random, plain->settle.random, sizeof resolve.random);
    if (!e) e = run_resolve(db, arena, plain->settle.saver, &resolve, &stepped);
    if (e) return e;
    if (stepped.damaged) taken->answered = STR("[]"); /* the run has failed instead */
    thread_change_stepped(tc, &stepped);
    return run_find(db, arena, tc->thread.id, run->run_id, run); /* its leg may be a new one */
}

enum err plain_message(struct thread_change *tc, struct db *db, const struct plain_message *plain,
                       struct plain_taken *ret_taken)
{
    struct arena *arena = change_arena(&tc->change);
    struct plain_taken taken = {.fate = PLAIN_FREE};
    struct interaction_list open;
    struct run run;
    *ret_taken = taken;
    enum err e = run_current(db, arena, tc->thread.id, &run);
    if (e == ERR_NOT_FOUND || (!e && run.status == RUN_CANCELLING)) return OK;
    if (!e) e = interactions_of_thread(db, arena, tc->thread.id, &open);
    if (!e && open.count) e = expire_due(tc, db, plain, &open);
    if (e || !open.count) return e;

    size_t questions = count_of(&open, INTERACTION_ASK_USER);
    size_t confirms = count_of(&open, INTERACTION_CONFIRM);
    if (questions > 1) {
        ret_taken->fate = PLAIN_REFUSED;
        return refuse_ambiguous(tc, db, plain, &open);
    }
    taken.fate = questions + confirms ? PLAIN_ANSWER : PLAIN_FOLLOWS;
    str text = STR_EMPTY; /* what follows as a message of its own may be as long as any */
    if (taken.fate == PLAIN_ANSWER && join_texts(arena, plain, &text)) {
        ret_taken->fate = PLAIN_REFUSED;
        return refuse_large(tc, db, plain);
    }
    e = settle_all(tc, db, plain, &open, text, &run, &taken);
    if (e) return e;
    taken.run_id = run.run_id;
    taken.task_id = run.task_id;
    *ret_taken = taken;
    return OK;
}

/* A word that is not ours: unknown to the thread, or the end of a call that is still waiting. */
static enum err is_foreign(struct db *db, int64_t thread, const struct claim *claim,
                           const struct interaction_list *open, bool *ret_foreign)
{
    bool known = false;
    enum err e = claim->id.len ? message_exists(db, thread, claim->id, &known) : OK;
    bool waiting = false;
    for (size_t i = 0; claim->call_id.len && i < open->count; i++)
        waiting |= str_eq(claim->call_id, open->rows[i].call_id);
    *ret_foreign = !known || waiting;
    return e;
}

enum err plain_claims(struct thread_change *tc, struct db *db, const struct plain_message *plain,
                      const struct claim *claims, size_t count, bool *ret_noted)
{
    struct interaction_list open;
    *ret_noted = false;
    enum err e = interactions_of_thread(db, change_arena(&tc->change), tc->thread.id, &open);
    for (size_t i = 0; !e && open.count && !*ret_noted && i < count; i++)
        e = is_foreign(db, tc->thread.id, &claims[i], &open, ret_noted);
    if (e || !*ret_noted) return e;
    return settle_refused(db, &plain->settle, tc->thread.id, NULL, REFUSAL_CLIENT_HISTORY);
}
