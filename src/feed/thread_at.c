/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread as it stood behind one of its facts, for the head and tail of an AG-UI answer.
 * Everything is found by the number of a fact: rows of history up to it, the last run.started
 * before it, the step left open, the end of the leg. Interactions are read as they are now; of what
 * an interrupt shows nothing changes when they are settled.
 */
#include "feed/thread_at.h"

#include <string.h>

#include "agent/core/facts.h"
#include "agent/shell/save.h"
#include "base/json.h"
#include "base/limits.h"

enum { THREAD_AT_ROWS_MAX = 100 * 1000 }; /* a page ends much earlier, by its bytes */

/* The data of a tool row's result, as everybody saw it. It may be gone; the row stays. */
static enum err read_fact(struct db *db, struct arena *arena, int64_t thread, struct agui_row *row)
{
    struct fact fact;
    if (!str_eq(row->message.role, STR("tool"))) return OK;
    enum err e = fact_at(db, arena, thread, row->message.seq, &fact);
    if (!e) row->fact = fact.data;
    return e == ERR_NOT_FOUND ? OK : e;
}

static enum err read_rows(struct db *db, struct arena *arena, const struct thread_at_want *want,
                          struct thread_at *thread_at)
{
    struct message_list list;
    enum err e = message_page(db, arena, want->thread, want->seq + 1, 0, THREAD_AT_ROWS_MAX, &list);
    if (e) return e;
    thread_at->rows = arena_array(arena, list.count, sizeof *thread_at->rows);
    thread_at->row_count = list.count;
    for (size_t i = 0; !e && i < list.count; i++) {
        thread_at->rows[i] = (struct agui_row){.message = list.messages[i]};
        e = read_fact(db, arena, want->thread, &thread_at->rows[i]);
    }
    return e;
}

/* The newest of two types behind a number: of the facts at hand, else of the store's. */
static enum err last_of(struct db *db, struct arena *arena, const struct thread_at_want *want,
                        str run_id, const char *type, const char *or_type, int64_t after,
                        struct fact *ret_fact)
{
    for (size_t i = want->fact_count; i > 0; i--) {
        const struct fact *fact = &want->facts[i - 1];
        if (fact->seq <= after) break;
        if (fact->seq > want->seq || (run_id.len && !str_eq(fact->run_id, run_id))) continue;
        if (strcmp(fact->type, type) != 0 && strcmp(fact->type, or_type) != 0) continue;
        *ret_fact = *fact;
        return OK;
    }
    int64_t upto =
        want->fact_count && want->facts[0].seq <= want->seq ? want->facts[0].seq - 1 : want->seq;
    if (upto <= after) return ERR_NOT_FOUND;
    return fact_last(db, arena, want->thread, run_id, type, or_type, after, upto, ret_fact);
}

static str state_of(struct arena *arena, str input)
{
    struct json *json = NULL;
    if (!input.len || json_parse(arena, input, &json, NULL)) return STR_EMPTY;
    const struct json *state = json_get(json, STR("state"));
    return state && state->type != JSON_NULL ? state->raw : STR_EMPTY;
}

static uint32_t leg_of(struct arena *arena, const struct fact *started)
{
    struct json *data = NULL;
    int64_t leg = 0;
    if (json_parse(arena, started->data, &data, NULL) ||
        json_i64(json_get(data, STR("leg")), &leg) || leg < 0 || leg > UINT32_MAX)
        return 0;
    return (uint32_t)leg;
}

/* The leg that began last: what its request called it, and brought. */
static enum err read_leg(struct db *db, struct arena *arena, const struct thread_at_want *want,
                         struct thread_at *thread_at)
{
    struct fact started;
    struct run run;
    str input = STR_EMPTY;
    bool named = want->run_id.len > 0; /* then its facts need not be looked for before it */
    enum err e = named ? run_find(db, arena, want->thread, want->run_id, &run) : OK;
    if (!e)
        e = last_of(db, arena, want, want->run_id, FACT_RUN_STARTED, FACT_RUN_STARTED,
                    named ? run.start_seq : 0, &started);
    if (e) return e;
    thread_at->run_id = thread_at->wire_id = started.run_id;
    thread_at->began = started.seq;
    if (!named) e = run_find(db, arena, want->thread, started.run_id, &run);
    if (e) return e;
    thread_at->model = run.model;
    if (want->wire_id.len)
        thread_at->wire_id = want->wire_id;
    else
        e = leg_wire_id(db, arena, &run, leg_of(arena, &started), &thread_at->wire_id);
    if (e == ERR_NOT_FOUND) e = OK; /* then as the run is called */
    if (!e && run.input_bytes) e = run_input(db, arena, run.id, &input);
    if (!e) thread_at->state = state_of(arena, input);
    return e;
}

static enum err read_step(struct db *db, struct arena *arena, const struct thread_at_want *want,
                          struct thread_at *thread_at)
{
    struct fact step;
    struct json *data = NULL;
    enum err e =
        last_of(db, arena, want, thread_at->run_id, FACT_STEP_START, FACT_STEP_FINISH, 0, &step);
    if (e) return e == ERR_NOT_FOUND ? OK : e;
    if (!str_eq(str_c(step.type), STR(FACT_STEP_START))) return OK;
    if (json_parse(arena, step.data, &data, NULL) == OK)
        thread_at->step = json_text(json_get(data, STR("stepName")));
    return OK;
}

/* What it waits for, in the order of the fact. */
static enum err read_open(struct db *db, struct arena *arena, struct thread_at *thread_at)
{
    struct json *data = NULL;
    if (json_parse(arena, thread_at->ended.data, &data, NULL)) return OK;
    const struct json *ids = json_get(data, STR("interactions"));
    if (!ids || ids->type != JSON_ARRAY) return OK;
    thread_at->open = arena_array(arena, ids->count, sizeof *thread_at->open);
    enum err e = OK;
    for (const struct json *id = ids->child; !e && id; id = id->next) {
        e = interaction_find(db, arena, json_text(id), &thread_at->open[thread_at->open_count]);
        if (!e) thread_at->open_count++;
        if (e == ERR_NOT_FOUND) e = OK;
    }
    return e;
}

static enum err read_end(struct db *db, struct arena *arena, const struct thread_at_want *want,
                         struct thread_at *thread_at)
{
    enum err e = last_of(db, arena, want, thread_at->run_id, FACT_RUN_FINISHED, FACT_RUN_ERROR,
                         thread_at->began, &thread_at->ended);
    if (e) return e == ERR_NOT_FOUND ? OK : e;
    e = facts_usage(db, want->thread, thread_at->run_id, thread_at->began, thread_at->ended.seq,
                    &thread_at->input_tokens, &thread_at->output_tokens);
    return e ? e : read_open(db, arena, thread_at);
}

enum err thread_at_read(struct db *db, struct arena *arena, const struct thread_at_want *want,
                        struct thread_at *ret_thread_at)
{
    struct thread_at thread_at = {0};
    struct thread thread;
    enum err e = thread_by_id(db, arena, want->thread, &thread);
    if (!e && want->messages) e = read_rows(db, arena, want, &thread_at);
    if (e) return e;
    e = read_leg(db, arena, want, &thread_at);
    bool never = e == ERR_NOT_FOUND;
    if (never) thread_at.run_id = want->run_id; /* it may have ended in the queue */
    if (e && !never) return e;
    e = never ? OK : read_step(db, arena, want, &thread_at);
    if (!e && want->end && thread_at.run_id.len) e = read_end(db, arena, want, &thread_at);
    if (e) return e;
    *ret_thread_at = thread_at;
    return OK;
}
