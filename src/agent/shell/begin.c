/* SPDX-License-Identifier: Apache-2.0
 *
 * The commit that begins a run, at once or from the queue. Everything in it is derived from rows
 * and arguments, so it may run twice when its batch is rolled back.
 */
#include "agent/shell/begin.h"

#include "agent/core/texts.h"
#include "base/id.h"
#include "base/json.h"
#include "base/limits.h"

/* The row of a run that begins at once, or that waited for its turn. */
static enum err save_begun(struct db *db, struct run *run, int64_t epoch, const struct state *state)
{
    AUTO(buf_done) struct buf bytes;
    struct snapshot first = {.version = 1, .epoch = epoch};
    buf_init(&bytes, STATE_BYTES_MAX);
    state_write(&bytes, state);
    if (bytes.full) return ERR_TOO_LARGE;
    first.bytes = buf_str(&bytes);
    crypto_sha256(first.bytes, first.hash);
    if (!run->id) return run_add_begun(db, run, &first);
    enum err e = run_update(db, run); /* the queue forgets it */
    return e ? e : run_save(db, run, 0, &first);
}

str timezone_of(const struct json *forwarded_props)
{
    str zone = str_trim(json_text(json_get(forwarded_props, STR("timezone"))));
    return zone.len <= TIMEZONE_BYTES_MAX ? zone : STR_EMPTY;
}

/* The language of the last words; of the names of files, if there are no words at all. */
static str spoken_in(const struct message *messages, size_t count)
{
    for (size_t i = count; i-- > 0;)
        if (messages[i].plain.len) return locale_of(messages[i].plain);
    return count ? locale_of(messages[count - 1].attachments) : LOCALE_EN;
}

enum err run_begin(struct db *db, struct arena *arena, const struct begin *begin, struct run *run,
                   const struct message *messages, size_t count, struct begun *ret_begun)
{
    struct outcome started;
    struct thread thread;
    str spoken = spoken_in(messages, count);
    enum err e = thread_by_id(db, arena, run->thread, &thread);
    if (!e) e = run_context_start(db, &thread, &run->from_message);
    if (e) return e;
    run->status = RUN_RUNNING;
    run->legs++;
    graph_start(arena,
                &(struct start){.run_id = run->run_id,
                                .task_id = run->task_id,
                                .owner = begin->owner,
                                .thread_id = begin->thread_id,
                                .agent = run->agent,
                                .model = run->model,
                                .leg = run->legs,
                                .max_rounds = begin->max_rounds,
                                .locale = begin->locale.len ? begin->locale : spoken,
                                .timezone = begin->timezone,
                                .press_tool = begin->press_tool,
                                .press_args = begin->press_args,
                                .from_message = run->from_message,
                                .now = begin->now},
                &started);

    size_t total = count + started.fact_count;
    struct fact *facts = arena_array(arena, total, sizeof *facts);
    for (size_t i = 0; i < count; i++)
        facts[i] = (struct fact){.type = "message.added",
                                 .run_id = run->run_id,
                                 .at = begin->now,
                                 .data = fact_message_added(arena, &messages[i]),
                                 .more = message_bytes(&messages[i])};
    for (size_t i = 0; i < started.fact_count; i++) facts[count + i] = started.facts[i];

    run->start_seq = thread.last_seq;
    e = save_begun(db, run, begin->epoch, &started.state);
    if (!e) e = facts_append_leg(db, run->thread, facts, total, begin->now, run->id);
    for (size_t i = 0; !e && i < count; i++) {
        struct message message = messages[i];
        message.seq = facts[i].seq;
        e = message_add(db, run->thread, &message);
    }
    if (!e) *ret_begun = (struct begun){facts, total};
    return e;
}

/* The id was free when the message was queued; an answer given since may have taken it. */
static enum err give_free_id(struct db *db, struct arena *arena, int64_t thread,
                             struct message *message)
{
    bool taken;
    enum err e = message_exists(db, thread, message->id, &taken);
    if (e || !taken) return e;
    char id[ID_BYTES];
    id_random(id);
    message->id = arena_printf(arena, "msg_%s", id);
    return OK;
}

enum err run_begin_queued(struct db *db, struct arena *arena, const struct begin *begin,
                          struct run *run, struct begun *ret_begun)
{
    struct message *messages;
    size_t count;
    enum err e = queued_parse(arena, run->queued, &messages, &count);
    if (e) return e;
    for (size_t i = 0; i < count; i++) {
        messages[i].run_id = run->run_id;
        messages[i].created = begin->now;
        e = give_free_id(db, arena, run->thread, &messages[i]);
        if (e) return e;
    }
    run->queued = STR_EMPTY;
    str input = STR_EMPTY;
    struct json *json = NULL;
    if (run->input_bytes) e = run_input(db, arena, run->id, &input);
    if (e) return e;
    struct begin then = *begin;
    if (input.len && json_parse(arena, input, &json, NULL) == OK) {
        const struct json *press = json_get(json, STR("press"));
        then.timezone = timezone_of(json_get(json, STR("forwardedProps")));
        then.press_tool = json_text(json_get(press, STR("tool")));
        then.press_args = json_text(json_get(press, STR("args")));
    }
    return run_begin(db, arena, &then, run, messages, count, ret_begun);
}

str press_input(struct arena *arena, str tool, str args)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, 6 * (tool.len + args.len) + 64);
    json_object(&doc.w);
    json_key(&doc.w, STR("press"));
    json_object(&doc.w);
    json_member(&doc.w, STR("tool"), tool);
    json_member(&doc.w, STR("args"), args);
    json_object_end(&doc.w);
    json_object_end(&doc.w);
    assert(!doc.buf.full);
    return json_doc_copy(&doc, arena);
}

void queued_write(struct buf *out, const struct message *messages, size_t count)
{
    struct json_writer w;
    json_write_begin(&w, out);
    json_array(&w);
    for (size_t i = 0; i < count; i++) {
        json_object(&w);
        json_member(&w, STR("id"), messages[i].id);
        json_member(&w, STR("role"), messages[i].role);
        json_member_raw(&w, STR("content"), messages[i].content);
        json_member_raw(&w, STR("metadata"), messages[i].metadata);
        json_member(&w, STR("plain"), messages[i].plain);
        if (messages[i].attachments.len) {
            json_member_raw(&w, STR("attachments"), messages[i].attachments);
        }
        json_object_end(&w);
    }
    json_array_end(&w);
}

enum err queued_parse(struct arena *arena, str json, struct message **ret_messages,
                      size_t *ret_count)
{
    struct json *list = NULL;
    if (json_parse(arena, json, &list, NULL) || list->type != JSON_ARRAY) return ERR_IO;
    struct message *messages = arena_array(arena, list->count + 1, sizeof *messages);
    size_t count = 0;
    for (const struct json *item = list->child; item; item = item->next) {
        const struct json *content = json_get(item, STR("content"));
        const struct json *metadata = json_get(item, STR("metadata"));
        const struct json *attachments = json_get(item, STR("attachments"));
        if (!content || !metadata) return ERR_IO;
        messages[count++] =
            (struct message){.id = json_text(json_get(item, STR("id"))),
                             .role = json_text(json_get(item, STR("role"))),
                             .content = content->raw,
                             .metadata = metadata->raw,
                             .plain = json_text(json_get(item, STR("plain"))),
                             .attachments = attachments ? attachments->raw : STR_EMPTY};
    }
    *ret_messages = messages;
    *ret_count = count;
    return OK;
}
