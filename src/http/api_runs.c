/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs: look, cancel, and the queue of a busy thread. How they start is in api_post_run.c.
 */
#include "agent/shell/begin.h"
#include "base/limits.h"
#include "base/members.h"
#include "feed/interaction_json.h"
#include "http/handlers.h"
#include "http/http_change.h"
#include "http/query.h"
#include "server/server.h"
#include "thread/cancel_run.h"

/* ---- POST /runs/{threadId}/cancel ---- */

void handle_run_cancel(struct exchange *x)
{
    static const char *const known[] = {"runId", "queue", NULL};
    struct cancel_run *cancel = ARENA_NEW(exchange_arena(x), struct cancel_run);
    const struct json *run_id = json_get(x->body, STR("runId")),
                      *queue = json_get(x->body, STR("queue"));
    struct fault why = {0};
    enum err e = x->body ? members_known(x->body, known, &why) : OK;
    if (!e && run_id && run_id->type != JSON_STRING)
        e = fault_field(&why, ERR_INVALID_FIELD, "runId", "runId must be a string");
    if (!e && queue && queue->type != JSON_TRUE && queue->type != JSON_FALSE)
        e = fault_field(&why, ERR_INVALID_FIELD, "queue", "queue must be true or false");
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    change_for(&cancel->tc.change, x);
    cancel->thread_id = x->params[0];
    cancel->run_id = json_text(run_id);
    cancel->queue = queue && queue->type == JSON_TRUE;
    cancel_run(cancel);
}

/* ---- DELETE /runs/{threadId}/queue/{n} ---- */

void handle_queue_delete(struct exchange *x)
{
    struct drop_run *drop = ARENA_NEW(exchange_arena(x), struct drop_run);
    if (str_to_u64(x->params[1], &drop->n)) {
        exchange_error(x, ERR_NOT_FOUND, NULL);
        return;
    }
    change_for(&drop->tc.change, x);
    drop->thread_id = x->params[0];
    drop_run(drop);
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
        json_member_i64(w, STR("n"), run->start_seq + 1);
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
    json_member_raw(&w, STR("interactions"),
                    interactions_json(arena, get->open.rows, get->open.count, get->x->who.user));
    put_queue(&w, arena, get);
    const struct run *run = &get->run;
    json_key(&w, STR("usage"));
    usage_write(&w,
                &(struct usage){run->input_tokens, run->output_tokens, run->cost, run->currency});
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
    exchange_read(x, &get->job, READ_PAGE);
}
