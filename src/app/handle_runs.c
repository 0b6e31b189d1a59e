/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs: start, look, cancel, and the queue of a busy thread.
 */
#include <stdio.h>
#include <string.h>

#include "agent/begin.h"
#include "app/handlers.h"
#include "app/plain_message.h"
#include "app/query.h"
#include "app/run_input.h"
#include "app/say.h"
#include "app/server.h"
#include "app/thread_change.h"
#include "base/limits.h"
#include "base/map.h"

static str new_id(struct arena *arena, const char *prefix)
{
    char id[ID_BYTES];
    id_random(id);
    return arena_printf(arena, "%s%s", prefix, id);
}

/* ---- POST /runs ---- */

struct post_run {
    struct thread_change tc;
    struct run_input input;
    bool own_run_id; /* the client gave none: nothing to repeat */
    str run_id, task_id, thread_id;
    unsigned char hash[HASH_BYTES];
    struct plain_message plain; /* its new messages */
    uint32_t max_rounds;        /* of the agent, when the request came; its settings may change */
    str locale;                 /* likewise */
    str timezone;               /* of the person */
    bool queue_full;
};

/* What the 202 says of it. */
struct told {
    str run_id, task_id;
    int64_t seq;
    str answered; /* JSON list; empty: it was no answer */
    bool queued;  /* behind something that a person decides, or a model that is tried again */
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

/* May one more wait on the thread? Nothing that waits is read for that. */
static enum err look_at_queue(struct post_run *post, struct db *db)
{
    size_t count = 0, bytes = 0;
    enum err e = post->tc.created ? OK : run_queue_size(db, post->tc.thread.id, &count, &bytes);
    post->queue_full = count >= RUN_QUEUE_MAX || bytes > RUN_QUEUE_BYTES_MAX;
    return e;
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
    enum err e = look_at_queue(post, db);
    for (size_t i = 0; !e && i < input->message_count; i++) {
        struct message message = input->messages[i];
        bool known;
        e = is_known(post, db, &seen, message.id, &known);
        if (e || known) continue;
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

static str answer_json(struct post_run *post, const struct told *told)
{
    struct change *change = &post->tc.change;
    struct arena *arena = change_arena(change);
    str prefix = change->x->server->config->public_url.prefix;
    str more = STR_EMPTY;
    if (told->answered.len)
        more = arena_printf(arena, ",\"answered\":%.*s", STR_ARG(told->answered));
    return arena_printf(
        arena,
        "{\"taskId\":\"%.*s\",\"threadId\":\"%.*s\",\"runId\":\"%.*s\",\"created\":%s,\"seq\":%lld,"
        "\"eventsUrl\":\"%.*s/api/v1/agent/runs/%.*s/events?after=%lld\"%.*s%s}",
        STR_ARG(told->task_id), STR_ARG(post->thread_id), STR_ARG(told->run_id),
        post->tc.created ? "true" : "false", (long long)told->seq, STR_ARG(prefix),
        STR_ARG(post->thread_id), (long long)told->seq, STR_ARG(more),
        told->queued ? ",\"queued\":true" : "");
}

/* The thread is busy: the message waits its turn, as fact run.queued. */
static enum err enqueue(struct post_run *post, struct db *db, struct run *run,
                        const struct message *messages, size_t count)
{
    struct change *change = &post->tc.change;
    struct arena *arena = change_arena(change);
    struct buf queued;
    buf_init(&queued, 4 * RUN_INPUT_BYTES_MAX);
    queued_write(&queued, messages, count);
    bool too_large = queued.full;
    run->queued = arena_str(arena, buf_str(&queued));
    buf_done(&queued);
    if (too_large) return ERR_TOO_LARGE;
    run->status = RUN_QUEUED;
    enum err e = run_add(db, run);
    for (size_t i = 0; !e && i < count; i++) e = queued_id_add(db, run, messages[i].id);
    if (e) return e;

    struct fact *fact = ARENA_NEW(arena, struct fact);
    struct buf data;
    struct json_writer w;
    buf_init(&data, 4 * RUN_INPUT_BYTES_MAX);
    json_write_begin(&w, &data);
    json_object(&w);
    json_member(&w, STR("taskId"), run->task_id);
    json_key(&w, STR("n"));
    json_number_i64(&w, run->start_seq + 1);
    json_key(&w, STR("message"));
    struct buf row;
    buf_init(&row, 4 * RUN_INPUT_BYTES_MAX);
    message_write(&row, &messages[count - 1]);
    json_raw(&w, buf_str(&row));
    json_object_end(&w);
    *fact = (struct fact){.type = "run.queued",
                          .run_id = run->run_id,
                          .at = change->now,
                          .data = arena_str(arena, buf_str(&data))};
    buf_done(&row);
    buf_done(&data);
    e = facts_append(db, run->thread, fact, 1, change->now);
    if (!e) thread_change_facts(&post->tc, fact, 1);
    return e;
}

static enum err begin_now(struct post_run *post, struct db *db, struct run *run,
                          const struct message *messages, size_t count)
{
    struct change *change = &post->tc.change;
    struct begun begun;
    struct begin begin = {.max_rounds = post->max_rounds,
                          .locale = post->locale,
                          .timezone = post->timezone,
                          .epoch = change->x->server->saver.epoch,
                          .owner = change->x->who.user,
                          .thread_id = post->thread_id,
                          .now = change->now};
    run->status = RUN_RUNNING;
    enum err e = run_add(db, run);
    if (!e) e = run_begin(db, change_arena(change), &begin, run, messages, count, &begun);
    if (e) return e;
    thread_change_facts(&post->tc, begun.facts, begun.fact_count);
    post->tc.wake = true;
    return OK;
}

static enum err queue_full(struct change *change)
{
    return fault(&change->why, ERR_RATE_LIMITED, "too many messages wait on this thread");
}

/* Somebody is at work on the thread: what the agent's policy says. */
static enum err begin_busy(struct post_run *post, struct db *db, struct run *current,
                           struct run *run, const struct message *messages, size_t count)
{
    struct change *change = &post->tc.change;
    enum busy policy = change->x->server->agent.busy;
    if (policy == BUSY_REJECT && current->status != RUN_QUEUED)
        return fault(&change->why, ERR_BUSY, "a run is under way on this thread");
    if (post->queue_full) return queue_full(change);
    enum err e = enqueue(post, db, run, messages, count);
    if (e || policy != BUSY_INTERRUPT || current->status != RUN_RUNNING) return e;
    struct stepped stepped;
    post->tc.cancel = true;
    return run_cancel(db, change_arena(change), &change->x->server->saver, current->thread, current,
                      change->now, post->plain.settle.random, &stepped);
}

/* The message is a run of its own: now, or when its turn comes. */
static enum err begin(struct post_run *post, struct db *db, struct plain_message *plain,
                      bool follows, int64_t seq)
{
    struct change *change = &post->tc.change;
    struct server *server = change->x->server;
    struct message *messages = plain->messages;
    struct run current, run = {.thread = post->tc.thread.id,
                               .run_id = post->run_id,
                               .agent = server->agent.name,
                               .model = str_c(server->agent.model.name),
                               .task_id = post->task_id,
                               .input = post->input.leg,
                               .start_seq = seq,
                               .created = change->now};
    for (size_t i = 0; i < plain->count; i++)
        messages[i].metadata = metadata_with_run(change_arena(change), messages[i].metadata,
                                                 post->run_id, post->task_id, STR_EMPTY);
    if (follows && post->queue_full) return queue_full(change);
    if (follows) return enqueue(post, db, &run, messages, plain->count);
    enum err e = run_current(db, change_arena(change), run.thread, &current);
    bool idle = e == ERR_NOT_FOUND;
    if (idle)
        e = run_next(db, change_arena(change), run.thread, &current); /* others wait already */
    if (e == ERR_NOT_FOUND)
        e = begin_now(post, db, &run, messages, plain->count);
    else if (!e)
        e = begin_busy(post, db, &current, &run, messages, plain->count);
    if (idle) post->tc.wake = true; /* also if those who wait were left behind by a failure */
    return e;
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
    bool follows = taken.fate == PLAIN_FOLLOWS, answer = taken.fate == PLAIN_ANSWER;
    if (!answer) e = begin(post, db, &post->plain, follows, seq);
    if (e) return e;

    struct told told = {.run_id = answer ? taken.run_id : post->run_id,
                        .task_id = answer ? taken.task_id : post->task_id,
                        .seq = seq,
                        .answered = taken.answered,
                        .queued = follows};
    change->status = 202;
    change->body = answer_json(post, &told);
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

void handle_run_post(struct exchange *x)
{
    struct post_run *post = ARENA_NEW(exchange_arena(x), struct post_run);
    struct arena *arena = exchange_arena(x);
    struct fault why = {0};
    enum err e = run_input_parse(arena, x->body, &post->input, &why);
    if (!e && wants_stream(x))
        e = fault(&why, ERR_NOT_ACCEPTABLE,
                  "this form is not built yet; follow the eventsUrl of the answer");
    if (!e && post->input.agent.len && !str_eq(post->input.agent, x->server->agent.name))
        e = fault_field(&why, ERR_INVALID_FIELD, "agent", "there is no agent \"%s\"",
                        say(post->input.agent).text);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    post->own_run_id = !post->input.run_id.len;
    post->thread_id = post->input.thread_id.len ? post->input.thread_id : new_id(arena, "thr_");
    post->run_id = post->own_run_id ? new_id(arena, "run_") : post->input.run_id;
    post->task_id = new_id(arena, "task_");
    post->max_rounds = x->server->agent.max_rounds;
    post->locale = x->server->agent.locale;
    post->timezone = timezone_of(json_get(x->body, STR("forwardedProps")));
    crypto_sha256(x->request->body, post->hash);
    prepare_plain(post, x);
    post->tc.change.apply = post_apply;
    post->tc.change.after = thread_change_tell;
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
