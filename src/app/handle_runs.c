/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs: start, look, cancel, and the queue of a busy thread.
 */
#include <stdio.h>
#include <string.h>

#include "agent/begin.h"
#include "agent/files.h"
#include "app/handlers.h"
#include "app/inline_files.h"
#include "app/plain_message.h"
#include "app/query.h"
#include "app/run_input.h"
#include "app/say.h"
#include "app/server.h"
#include "app/start_run.h"
#include "app/thread_change.h"
#include "base/limits.h"
#include "base/map.h"

/* ---- POST /runs ---- */

struct post_run {
    struct thread_change tc;
    struct run_input input;
    struct inline_files files; /* whose bytes came along */
    bool own_run_id;           /* the client gave none: nothing to repeat */
    str run_id, thread_id;
    unsigned char hash[HASH_BYTES];
    struct plain_message plain; /* its new messages */
    struct start_run start;     /* if they are no answer */
};

/* The same runId: the same answer, or a refusal. ERR_NOT_FOUND: it is new. */
static enum err repeated(struct post_run *post, struct db *db)
{
    struct change *change = &post->tc.change;
    struct accepted known;
    if (post->own_run_id) return ERR_NOT_FOUND;
    enum err e = accepted_find(db, change_arena(change), post->tc.thread.id, post->run_id, &known);
    if (e) return e;
    if (memcmp(known.hash, post->hash, HASH_BYTES) != 0)
        return fault_field(&change->why, ERR_IDEMPOTENCY_MISMATCH, "runId",
                           "this runId was used for another request on this thread");
    change->repeated = true;
    change->status = 202;
    change->body = known.answer;
    return OK;
}

/* Does the thread have a message of this id, said or waiting? */
static enum err is_known(struct post_run *post, struct db *db, const struct map *seen, str id,
                         bool *ret_known)
{
    *ret_known = id.len && map_get(seen, id);
    if (!id.len || *ret_known || post->tc.created) return OK;
    enum err e = queued_id_exists(db, post->tc.thread.id, id, ret_known);
    return e || *ret_known ? e : message_exists(db, post->tc.thread.id, id, ret_known);
}

static enum err no_message(struct change *change)
{
    return fault_field(&change->why, ERR_INVALID_FIELD, "messages", "there is no new user message");
}

/* Messages that the thread does not have yet, said or waiting, each with an id. The same id twice
 * in one request is one message. */
static enum err new_messages(struct post_run *post, struct db *db, struct message **ret_messages,
                             size_t *ret_count)
{
    struct change *change = &post->tc.change;
    struct arena *arena = change_arena(change);
    const struct run_input *input = &post->input;
    struct message *messages = arena_array(arena, input->message_count + 1, sizeof *messages);
    size_t count = 0;
    AUTO(map_done) struct map seen;
    map_init(&seen, RUN_MESSAGES_MAX);
    enum err e = OK;
    for (size_t i = 0; !e && i < input->message_count; i++) {
        struct message message = input->messages[i];
        bool known;
        e = is_known(post, db, &seen, message.id, &known);
        if (e || known) continue;
        if (input->parts[i].count)
            e = parts_take(db, arena, &input->parts[i], &post->tc.thread, &message, &change->why);
        if (e) continue;
        if (!message.id.len) message.id = new_id(arena, "msg_");
        message.run_id = post->run_id;
        message.created = change->now;
        messages[count++] = message;
        e = map_put(&seen, message.id, post);
    }
    if (e) return e;
    if (!count) return no_message(change);
    *ret_messages = messages;
    *ret_count = count;
    return OK;
}

/* The rows of the files that came along with the new messages. */
static enum err add_files(struct post_run *post, struct db *db)
{
    const struct plain_message *plain = &post->plain;
    enum err e = OK;
    for (size_t i = 0; !e && i < post->files.count; i++) {
        struct inline_file *file = &post->files.files[i];
        for (size_t j = 0; !file->used && j < plain->count; j++)
            file->used = str_find(plain->messages[j].attachments, file->row.id) >= 0;
        if (file->used) e = attachment_add(db, &file->row);
    }
    return e;
}

/* A thread that begins with files alone is called after them. */
static enum err name_after_files(struct post_run *post, struct db *db)
{
    struct thread *thread = &post->tc.thread;
    struct arena *arena = change_arena(&post->tc.change);
    if (!post->tc.created || thread->title.len) return OK;
    thread->title = title_from(arena, files_named(arena, &post->plain.messages[0]));
    return thread_rename(db, thread->id, thread->title, post->tc.change.now);
}

static enum err find_or_add_thread(struct post_run *post, struct db *db)
{
    struct change *change = &post->tc.change;
    struct arena *arena = change_arena(change);
    struct thread *thread = &post->tc.thread;
    const struct run_input *input = &post->input;
    post->tc.created = false;
    enum err e = thread_find(db, arena, change->x->who.user, post->thread_id, thread);
    if (e != ERR_NOT_FOUND) return e;
    if (!input->message_count) return no_message(change); /* before anything is changed */
    str first = input->messages[0].plain;
    post->tc.created = true;
    *thread = (struct thread){.owner = change->x->who.user,
                              .thread_id = post->thread_id,
                              .title = title_from(arena, first),
                              .agent = change->x->server->agent.name,
                              .created = change->now,
                              .updated = change->now};
    return thread_add(db, thread);
}

/* New messages of the request; without one the change is a refusal, which is committed if it left a
 * note. */
static enum err find_messages(struct post_run *post, struct db *db, bool *ret_refused)
{
    struct change *change = &post->tc.change;
    struct plain_message *plain = &post->plain;
    bool noted = false;
    *ret_refused = false;
    enum err e = OK;
    if (!post->tc.created && post->input.claim_count)
        e = plain_claims(&post->tc, db, plain, post->input.claims, post->input.claim_count, &noted);
    if (e) return e;
    e = new_messages(post, db, &plain->messages, &plain->count);
    if (e != ERR_INVALID_FIELD || !noted) return e;
    change_refuse(change, e, &change->why, STR_EMPTY, STR_EMPTY);
    *ret_refused = true;
    return OK;
}

static enum err post_apply(struct change *change, struct db *db)
{
    struct post_run *post = (struct post_run *)(void *)change;
    struct plain_taken taken;
    bool refused;
    thread_change_reset(&post->tc);
    for (size_t i = 0; i < post->files.count; i++) post->files.files[i].used = false;
    post->plain.settle.now = change->now;
    enum err e = find_or_add_thread(post, db);
    if (e) return e;
    change->thread = post->tc.thread.id;
    e = repeated(post, db);
    if (e != ERR_NOT_FOUND) return e;
    e = find_messages(post, db, &refused);
    if (e || refused) return e;

    int64_t seq = post->tc.thread.last_seq;
    e = plain_message(&post->tc, db, &post->plain, &taken);
    if (e || taken.fate == PLAIN_REFUSED) return e;
    e = add_files(post, db);
    if (!e) e = name_after_files(post, db);
    if (e) return e;
    bool follows = taken.fate == PLAIN_FOLLOWS, answer = taken.fate == PLAIN_ANSWER;
    if (!answer)
        e = start_run(&post->tc, db, &post->start, post->plain.messages, post->plain.count, follows,
                      seq);
    if (e) return e;

    struct told told = {.run_id = answer ? taken.run_id : post->run_id,
                        .task_id = answer ? taken.task_id : post->start.task_id,
                        .seq = seq,
                        .answered = taken.answered,
                        .queued = follows};
    change->status = 202;
    change->body = accepted_json(&post->tc, &told);
    struct accepted accepted = {.answer = change->body};
    memcpy(accepted.hash, post->hash, HASH_BYTES);
    return accepted_add(db, post->tc.thread.id, post->run_id, &accepted, change->now);
}

static bool wants_stream(const struct exchange *x)
{
    static const char *const types[] = {"text/event-stream", NULL};
    return query_accepts(x, types);
}

static void prepare_plain(struct post_run *post, const struct exchange *x)
{
    struct settle *settle = &post->plain.settle;
    *settle = (struct settle){.saver = &x->server->saver,
                              .user = x->who.user,
                              .roles = x->who.roles,
                              .via = STR("message")};
    memcpy(settle->hash, post->hash, HASH_BYTES);
    crypto_random(settle->random, sizeof settle->random);
    crypto_random(post->plain.expire_random, sizeof post->plain.expire_random);
}

static void post_after(struct change *change)
{
    struct post_run *post = (struct post_run *)(void *)change;
    thread_change_tell(change);
    inline_files_drop(&post->files, change->x->server->blobs); /* of messages that were known */
}

/* After ERR_IO nobody knows what the store has; the next start does, and the sweeper looks. */
static void post_undone(struct change *change, enum err e)
{
    struct post_run *post = (struct post_run *)(void *)change;
    for (size_t i = 0; i < post->files.count; i++) post->files.files[i].used = e == ERR_IO;
    inline_files_drop(&post->files, change->x->server->blobs);
}

/* The files are put: now the messages. */
static void on_files(void *arg, enum err e, const struct fault *why)
{
    struct post_run *post = arg;
    struct exchange *x = post->tc.change.x;
    if (e)
        exchange_error(x, e, why && why->field[0] ? why : NULL); /* paths of ours stay here */
    else
        change_start(&post->tc.change, x);
}

/* A slot for each part whose bytes came along; the part is told where its row will be. */
static void collect_files(struct post_run *post, struct exchange *x)
{
    struct inline_files *files = &post->files;
    files->bytes_max = x->server->config->upload_bytes_max;
    files->files = arena_array(exchange_arena(x), post->input.data_count + 1, sizeof *files->files);
    for (size_t i = 0; i < post->input.message_count; i++) {
        const struct parts *parts = &post->input.parts[i];
        for (size_t j = 0; j < parts->count; j++) {
            struct part *part = &parts->rows[j];
            if (part->kind != PART_DATA) continue;
            struct inline_file *file = &files->files[files->count++];
            part_path(parts, j, file->field);
            file->base64 = part->data;
            file->row = (struct attachment){.owner = x->who.user,
                                            .thread_id = post->thread_id,
                                            .filename = part->filename,
                                            .created = clock_wall(&clock_system)};
            part->stored = &file->row;
        }
    }
}

static enum err parse_post(struct post_run *post, struct exchange *x, struct fault *reterr)
{
    const struct url *public_url = &x->server->config->public_url;
    const struct parts_home home = {
        .origin = public_url->origin, .prefix = public_url->prefix, .host = x->request->head->host};
    enum err e = run_input_parse(exchange_arena(x), x->body, &home, &post->input, reterr);
    if (!e && wants_stream(x))
        e = fault(reterr, ERR_NOT_ACCEPTABLE,
                  "this form is not built yet; follow the eventsUrl of the answer");
    if (!e && post->input.agent.len && !str_eq(post->input.agent, x->server->agent.name))
        e = fault_field(reterr, ERR_INVALID_FIELD, "agent", "there is no agent \"%s\"",
                        say(post->input.agent).text);
    return e;
}

void handle_run_post(struct exchange *x)
{
    struct post_run *post = ARENA_NEW(exchange_arena(x), struct post_run);
    struct arena *arena = exchange_arena(x);
    struct fault why = {0};
    enum err e = parse_post(post, x, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    post->own_run_id = !post->input.run_id.len;
    post->thread_id = post->input.thread_id.len ? post->input.thread_id : new_id(arena, "thr_");
    post->run_id = post->own_run_id ? new_id(arena, "run_") : post->input.run_id;
    start_run_init(&post->start, x);
    post->start.run_id = post->run_id;
    post->start.input = post->input.leg;
    post->start.timezone = timezone_of(json_get(x->body, STR("forwardedProps")));
    crypto_sha256(x->request->body, post->hash);
    prepare_plain(post, x);
    post->tc.change.x = x;
    post->tc.change.apply = post_apply;
    post->tc.change.after = post_after;
    post->tc.change.undone = post_undone;
    collect_files(post, x);
    if (post->files.count)
        inline_files_put(&post->files,
                         &(struct inline_target){.loop = x->server->loop,
                                                 .blobs = x->server->blobs,
                                                 .transfers = &x->server->transfers,
                                                 .arena = arena},
                         on_files, post);
    else
        change_start(&post->tc.change, x);
}

/* ---- POST /runs/{threadId}/cancel ---- */

struct cancel_run {
    struct thread_change tc;
    str run_id;
    bool queue;
    unsigned char random[ID_RANDOM_BYTES];
};

/* A queued run that will never start. */
static enum err drop_queued(struct thread_change *tc, struct db *db, struct run *run)
{
    struct arena *arena = change_arena(&tc->change);
    run->status = RUN_CANCELLED;
    run->ended = tc->change.now;
    run->queued = STR_EMPTY;
    enum err e = run_update(db, run);
    if (e) return e;
    struct fact fact = {
        .type = FACT_RUN_FINISHED,
        .run_id = run->run_id,
        .at = tc->change.now,
        .data = fact_run_finished(arena, &(struct run_finished){.outcome = "cancelled"}),
    };
    e = facts_append(db, run->thread, &fact, 1, tc->change.now);
    if (!e) thread_change_facts(tc, &fact, 1);
    return e;
}

/* A run that waits ends here and now; one that is worked on is told. */
static enum err cancel_current(struct cancel_run *cancel, struct db *db, struct run *current)
{
    struct thread_change *tc = &cancel->tc;
    struct change *change = &tc->change;
    struct stepped stepped;
    if (current->status == RUN_CANCELLING) { /* asked again: look after it again */
        tc->cancel = true;
        return OK;
    }
    enum err e = run_cancel(db, change_arena(change), &change->x->server->saver, tc->thread.id,
                            current, change->now, cancel->random, &stepped);
    if (e) return e;
    tc->cancel = current->status == RUN_CANCELLING;
    thread_change_stepped(tc, &stepped);
    return OK;
}

static enum err cancel_apply(struct change *change, struct db *db)
{
    struct cancel_run *cancel = (struct cancel_run *)(void *)change;
    struct thread_change *tc = &cancel->tc;
    struct arena *arena = change_arena(change);
    thread_change_reset(tc);
    enum err e = thread_find(db, arena, change->x->who.user, change->x->params[0], &tc->thread);
    if (e) return e;
    struct run current = {0};
    struct run_list queue = {0};
    e = run_current(db, arena, tc->thread.id, &current);
    bool none = e == ERR_NOT_FOUND;
    if (e && !none) return e;
    e = cancel->queue ? run_queue(db, arena, tc->thread.id, &queue) : OK;
    if (e) return e;
    bool other = cancel->run_id.len && !str_eq(cancel->run_id, current.run_id);
    if ((none && !queue.count) || other)
        return fault(&change->why, ERR_NOT_CURRENT,
                     "this run is not the current one of the thread");
    for (size_t i = 0; i < queue.count; i++) {
        e = drop_queued(tc, db, &queue.runs[i]);
        if (e) return e;
    }
    change->status = 202;
    change->body =
        arena_printf(arena, "{\"threadId\":\"%.*s\",\"runId\":\"%.*s\",\"status\":\"%s\"}",
                     STR_ARG(tc->thread.thread_id), STR_ARG(current.run_id),
                     none ? "cancelled" : "cancelling");
    return none ? OK : cancel_current(cancel, db, &current);
}

void handle_run_cancel(struct exchange *x)
{
    static const char *const known[] = {"runId", "queue", NULL};
    struct cancel_run *cancel = ARENA_NEW(exchange_arena(x), struct cancel_run);
    const struct json *run_id = json_get(x->body, STR("runId")),
                      *queue = json_get(x->body, STR("queue"));
    struct fault why = {0};
    enum err e = x->body ? exchange_known(x->body, known, &why) : OK;
    if (!e && run_id && run_id->type != JSON_STRING)
        e = fault_field(&why, ERR_INVALID_FIELD, "runId", "runId must be a string");
    if (!e && queue && queue->type != JSON_TRUE && queue->type != JSON_FALSE)
        e = fault_field(&why, ERR_INVALID_FIELD, "queue", "queue must be true or false");
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    cancel->run_id = json_text(run_id);
    cancel->queue = queue && queue->type == JSON_TRUE;
    crypto_random(cancel->random, sizeof cancel->random);
    cancel->tc.change.apply = cancel_apply;
    cancel->tc.change.after = thread_change_tell;
    change_start(&cancel->tc.change, x);
}

/* ---- DELETE /runs/{threadId}/queue/{n} ---- */

struct drop {
    struct thread_change tc;
    uint64_t n;
};

static enum err drop_apply(struct change *change, struct db *db)
{
    struct drop *drop = (struct drop *)(void *)change;
    struct arena *arena = change_arena(change);
    thread_change_reset(&drop->tc);
    enum err e =
        thread_find(db, arena, change->x->who.user, change->x->params[0], &drop->tc.thread);
    if (e) return e;
    struct run_list queue;
    e = run_queue(db, arena, drop->tc.thread.id, &queue);
    if (e) return e;
    change->status = 204;
    for (size_t i = 0; i < queue.count; i++)
        if ((uint64_t)queue.runs[i].start_seq + 1 == drop->n)
            return drop_queued(&drop->tc, db, &queue.runs[i]);
    return ERR_NOT_FOUND;
}

void handle_queue_delete(struct exchange *x)
{
    struct drop *drop = ARENA_NEW(exchange_arena(x), struct drop);
    if (str_to_u64(x->params[1], &drop->n)) {
        exchange_error(x, ERR_NOT_FOUND, NULL);
        return;
    }
    drop->tc.change.apply = drop_apply;
    drop->tc.change.after = thread_change_tell;
    change_start(&drop->tc.change, x);
}

/* ---- GET /runs/{threadId} ---- */

struct get_run {
    struct job job;
    struct exchange *x;
    struct thread thread;
    struct run run;
    struct run_list queue;
    struct interaction_list open;
    str phase, step;
    struct buf out;
};

static enum err read_run(struct get_run *get, struct db *db)
{
    struct exchange *x = get->x;
    struct arena *arena = exchange_arena(x);
    enum err e = thread_find(db, arena, x->who.user, x->params[0], &get->thread);
    if (e) return e;
    e = run_current(db, arena, get->thread.id, &get->run);
    if (e == ERR_NOT_FOUND) e = run_newest(db, arena, get->thread.id, &get->run);
    if (!e) e = run_queue(db, arena, get->thread.id, &get->queue);
    if (!e) e = interactions_of_thread(db, arena, get->thread.id, &get->open);
    if (e) return e;
    int64_t version;
    str bytes;
    struct state state;
    if (snapshot_load(db, arena, get->run.id, &version, &bytes) == OK &&
        state_parse(arena, bytes, &state, NULL) == OK) {
        get->phase = str_c(phase_name(state.phase));
        get->step = str_c(stage_name(state.stage));
    }
    return OK;
}

/* The messages of a queued run, as its run.queued shows them. */
static void put_waiting(struct json_writer *w, struct arena *arena, const struct run *run)
{
    struct message *messages;
    size_t count;
    struct buf row;
    json_array(w);
    if (queued_parse(arena, run->queued, &messages, &count)) count = 0;
    buf_init(&row, FEED_FRAME_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        messages[i].created = run->created;
        buf_clear(&row);
        message_write(&row, &messages[i]);
        json_raw(w, buf_str(&row));
    }
    buf_done(&row);
    json_array_end(w);
}

static void put_queue(struct json_writer *w, struct arena *arena, const struct run_list *queue)
{
    json_key(w, STR("queue"));
    json_array(w);
    for (size_t i = 0; i < queue->count; i++) {
        const struct run *run = &queue->runs[i];
        json_object(w);
        json_key(w, STR("n"));
        json_number_i64(w, run->start_seq + 1);
        json_member(w, STR("runId"), run->run_id);
        json_member(w, STR("taskId"), run->task_id);
        json_key(w, STR("messages"));
        put_waiting(w, arena, run);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_usage(struct json_writer *w, const struct run *run)
{
    json_key(w, STR("usage"));
    json_object(w);
    json_key(w, STR("inputTokens"));
    json_number_u64(w, run->input_tokens);
    json_key(w, STR("outputTokens"));
    json_number_u64(w, run->output_tokens);
    json_key(w, STR("cost"));
    json_number_u64(w, 0);
    json_member(w, STR("currency"), STR("USD"));
    json_object_end(w);
}

/* On a reading thread, which may take the time to write out what waits. */
static enum err get_run_run(struct job *job, struct db *db)
{
    struct get_run *get = (struct get_run *)(void *)job;
    struct arena *arena = exchange_arena(get->x);
    struct json_writer w;
    enum err e = read_run(get, db);
    if (e) return e;
    json_write_begin(&w, &get->out);
    json_object(&w);
    json_member(&w, STR("threadId"), get->thread.thread_id);
    json_member(&w, STR("runId"), get->run.run_id);
    json_member(&w, STR("taskId"), get->run.task_id);
    json_member(&w, STR("status"), str_c(run_status_name(get->run.status)));
    if (get->phase.len) json_member(&w, STR("phase"), get->phase);
    if (get->step.len) json_member(&w, STR("step"), get->step);
    json_member(&w, STR("agent"), get->run.agent);
    json_member(&w, STR("model"), get->run.model);
    json_key(&w, STR("interactions"));
    json_raw(&w, interactions_json(arena, get->open.rows, get->open.count, get->x->who.user));
    put_queue(&w, arena, &get->queue);
    put_usage(&w, &get->run);
    json_object_end(&w);
    return get->out.full ? ERR_TOO_LARGE : OK;
}

static void get_run_done(struct job *job, enum err e)
{
    struct get_run *get = (struct get_run *)(void *)job;
    struct buf out = get->out; /* the rest goes with the answer */
    if (e)
        exchange_error(get->x, e, NULL);
    else
        exchange_json(get->x, 200, buf_str(&out));
    buf_done(&out);
}

void handle_run_get(struct exchange *x)
{
    struct get_run *get = ARENA_NEW(exchange_arena(x), struct get_run);
    buf_init(&get->out, HTTP_ANSWER_BYTES_MAX / 2);
    get->job = (struct job){.run = get_run_run, .done = get_run_done};
    get->x = x;
    store_read(x->server->store, &get->job);
}
