/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs: look, cancel, and the queue of a busy thread. How they start is in post_run.c.
 */
#include "agent/begin.h"
#include "agent/facts.h"
#include "app/api/handlers.h"
#include "app/http/query.h"
#include "app/input/settle.h"
#include "app/input/thread_change.h"
#include "app/server.h"
#include "base/limits.h"

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
    uint64_t after; /* the n before this page of the queue; 0: from its head */
    size_t limit;
    struct run_list queue; /* one more than `limit` if there are more */
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
    if (!e)
        e = run_queue_page(db, arena, get->thread.id, (int64_t)get->after, get->limit + 1,
                           &get->queue);
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

static void put_queue(struct json_writer *w, struct arena *arena, const struct get_run *get)
{
    const struct run_list *queue = &get->queue;
    bool more = queue->count > get->limit;
    size_t count = more ? get->limit : queue->count;
    json_key(w, STR("queue"));
    json_array(w);
    for (size_t i = 0; i < count; i++) {
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
    if (more)
        json_member(w, STR("next"),
                    arena_printf(arena, "%lld", (long long)queue->runs[count - 1].start_seq + 1));
}

static void put_usage(struct json_writer *w, const struct run *run)
{
    struct usage usage = {run->input_tokens, run->output_tokens, run->cost, run->currency};
    json_key(w, STR("usage"));
    usage_write(w, &usage);
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
    put_queue(&w, arena, get);
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
    struct fault why = {0};
    enum err e = query_number(x, "cursor", &get->after, &why);
    if (!e) e = query_limit(x, &get->limit, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    buf_init(&get->out, HTTP_ANSWER_BYTES_MAX / 2);
    get->job = (struct job){.run = get_run_run, .done = get_run_done};
    get->x = x;
    store_read(x->server->store, &get->job);
}
