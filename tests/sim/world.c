/* SPDX-License-Identifier: Apache-2.0
 *
 * What survives: the rows of a thread, as the store has them, and commits.
 *
 * Loading and saving do what agent/save.c does: the state goes through its snapshot's bytes every
 * time, an outcome is stored only if the snapshot still has the version that its view was loaded
 * with, and a row that is not as the step thinks is a broken promise. A commit is whole or not at
 * all; the process may die right before it or right behind it.
 */
#include <string.h>

#include "base/limits.h"
#include "sim.h"
#include "store/rows.h"

str keep(struct sim *sim, str text)
{
    return text.len ? arena_str(&sim->life, text) : STR_EMPTY;
}

bool world_open(const struct sim *sim)
{
    return sim->world.run.id && run_status_open(sim->world.run.status);
}

/* run_unfinished of store/runs.c. */
bool world_unfinished(const struct sim *sim)
{
    enum run_status status = sim->world.run.status;
    bool waits = status == RUN_WAITING, flying = false;
    for (size_t i = 0; waits && i < sim->world.call_count; i++) {
        const struct call *call = &sim->world.calls[i];
        flying = flying || (call->run == sim->world.run.id && call->state == CALL_STARTED);
    }
    return status == RUN_RUNNING || status == RUN_CANCELLING || flying;
}

void world_rest(const struct sim *sim, struct input *input)
{
    input->agent = &sim->house.agent;
    input->binder = &sim->house.binder;
    input->tools = &sim->house.tools;
}

struct call *world_call(struct sim *sim, str call_id)
{
    for (size_t i = sim->world.call_count; i > 0; i--)
        if (str_eq(sim->world.calls[i - 1].call_id, call_id)) return &sim->world.calls[i - 1];
    return NULL;
}

struct interaction *world_interaction(struct sim *sim, str id)
{
    for (size_t i = sim->world.interaction_count; i > 0; i--)
        if (str_eq(sim->world.interactions[i - 1].id, id)) return &sim->world.interactions[i - 1];
    return NULL;
}

/* ---- loading ---- */

static bool named(const struct id_list *ids, str id)
{
    for (size_t i = 0; i < ids->count; i++)
        if (str_eq(ids->ids[i], id)) return true;
    return false;
}

static void load_rows(struct sim *sim, struct arena *arena, struct view *view)
{
    const struct world *world = &sim->world;
    for (size_t i = 0; i < world->call_count; i++) {
        const struct call *call = &world->calls[i];
        if (call->run != view->run || call->round != view->state.round_used) continue;
        struct call *row = ROWS_ADD(arena, view->calls.rows, view->calls.count);
        *row = *call;
        if (row->result_id.len) row->result = STR_EMPTY;
    }
    for (size_t i = 0; i < world->interaction_count; i++)
        if (world->interactions[i].status == INTERACTION_OPEN)
            *ROWS_ADD(arena, view->open.rows, view->open.count) = world->interactions[i];
    for (size_t i = 0; i < world->grant_count; i++)
        if (world->grants[i].id.len)
            *ROWS_ADD(arena, view->grants.rows, view->grants.count) = world->grants[i];
}

bool world_load(struct sim *sim, struct arena *arena, struct view *ret_view, int64_t *ret_version)
{
    const struct run *run = &sim->world.run;
    struct view view = {.thread = run->thread,
                        .run = run->id,
                        .agent = run->agent,
                        .model = run->model,
                        .legs = run->legs,
                        .leg_open = run->status != RUN_WAITING,
                        .cancelling = run->status == RUN_CANCELLING};
    struct fault why = {0};
    if (state_parse(arena, sim->world.snapshot, &view.state, &why)) {
        broken(sim, "the snapshot does not load: %s %s", why.field, why.text);
        return false;
    }
    load_rows(sim, arena, &view);
    client_load(sim, arena, &view);
    bool agree = view.state.interaction_ids.count == view.open.count;
    for (size_t i = 0; i < view.open.count; i++)
        agree = agree && named(&view.state.interaction_ids, view.open.rows[i].id);
    if (!agree) broken(sim, "the state and the rows disagree about what is open");
    *ret_view = view;
    *ret_version = sim->world.version;
    return agree;
}

void world_context(struct sim *sim, struct arena *arena, const struct state *state,
                   const struct front_tools *front, struct context *ret_context)
{
    struct message_list messages = {sim->world.messages, sim->world.message_count, false};
    struct call_list seen = {0};
    for (size_t i = 0; i < sim->world.call_count; i++) {
        const struct call *call = &sim->world.calls[i];
        if (call->run == sim->world.run.id && call_state_settled(call->state))
            *ROWS_ADD(arena, seen.rows, seen.count) = *call;
    }
    context_make(arena,
                 &(struct context_source){.agent = &sim->house.agent,
                                          .state = state,
                                          .node = graph_node(state),
                                          .messages = &messages,
                                          .seen = &seen,
                                          .server = &sim->house.tools,
                                          .front = front,
                                          .now = sim->now},
                 ret_context);
}

/* ---- rows of an outcome ---- */

static void keep_texts(struct sim *sim, str *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) *texts[i] = keep(sim, *texts[i]);
}

static int64_t store_facts(struct sim *sim, const struct outcome *o)
{
    struct world *world = &sim->world;
    int64_t base = (int64_t)world->fact_count;
    for (size_t i = 0; i < o->fact_count; i++) {
        struct fact fact = o->facts[i];
        fact.run_id = keep(sim, fact.run_id);
        fact.data = keep(sim, fact.data);
        fact.seq = base + (int64_t)i + 1;
        *ROWS_ADD(&sim->life, world->facts, world->fact_count) = fact;
        trace(sim, "  %lld %s %.*s", (long long)fact.seq, fact.type,
              (int)(fact.data.len > 150 ? 150 : fact.data.len), fact.data.p);
    }
    return base;
}

static void store_message(struct sim *sim, struct message m, int64_t base, size_t facts)
{
    struct world *world = &sim->world;
    str *const texts[] = {&m.id,       &m.role,          &m.run_id, &m.content,
                          &m.metadata, &m.tool_calls,    &m.tool,   &m.usage,
                          &m.plain,    &m.provider_data, &m.ui,     &m.hints};
    if (m.seq < 1 || m.seq > (int64_t)facts) broken(sim, "a row belongs to no fact");
    for (size_t i = 0; i < world->message_count; i++)
        if (str_eq(world->messages[i].id, m.id)) broken(sim, "two rows have one id");
    keep_texts(sim, texts, COUNT(texts));
    m.seq += base;
    *ROWS_ADD(&sim->life, world->messages, world->message_count) = m;
}

static void store_call(struct sim *sim, const struct call_change *change)
{
    struct call c = change->call;
    struct call *row = world_call(sim, c.call_id);
    if (change->added == !!row) {
        broken(sim, "a call is %s", row ? "there already" : "not there");
        return;
    }
    str *const texts[] = {&c.call_id,   &c.message_id, &c.tool,  &c.provider_id, &c.rule,
                          &c.binding,   &c.args,       &c.error, &c.content,     &c.model_text,
                          &c.result_id, &c.result,     &c.spool, &c.asked,       &c.attachments};
    keep_texts(sim, texts, COUNT(texts));
    if (!row) row = ROWS_ADD(&sim->life, sim->world.calls, sim->world.call_count);
    if (!c.result.len) c.result = row->result;
    *row = c;
}

static void keep_interaction(struct sim *sim, struct interaction *i)
{
    str *const texts[] = {&i->id,           &i->owner,   &i->agent,    &i->thread_id,
                          &i->run_id,       &i->call_id, &i->approver, &i->display_text,
                          &i->question,     &i->choices, &i->fields,   &i->resume_node,
                          &i->resume_phase, &i->tool,    &i->args,     &i->summary,
                          &i->args_schema,  &i->risk,    &i->binding,  &i->locale,
                          &i->metadata,     &i->answer,  &i->text,     &i->answered_by,
                          &i->via};
    keep_texts(sim, texts, COUNT(texts));
}

static void store_interactions(struct sim *sim, const struct outcome *o, int64_t base)
{
    struct world *world = &sim->world;
    for (size_t i = 0; i < o->settled_count; i++) {
        struct interaction *row = world_interaction(sim, o->settled[i].id);
        if (!row || row->status != INTERACTION_OPEN) {
            broken(sim, "%.*s is settled and was not open", STR_ARG(o->settled[i].id));
            continue;
        }
        msec expires = row->expires;
        *row = o->settled[i];
        row->expires = expires;
        keep_interaction(sim, row);
    }
    for (size_t i = 0; i < o->opened_count; i++) {
        struct interaction opened = o->opened[i];
        if (world_interaction(sim, opened.id)) broken(sim, "two interactions have one id");
        opened.seq += base;
        opened.n = (int64_t)world->interaction_count + 1;
        keep_interaction(sim, &opened);
        *ROWS_ADD(&sim->life, world->interactions, world->interaction_count) = opened;
    }
}

/* The newest resolved confirm of the call. */
static void store_superseded(struct sim *sim, str call_id)
{
    for (size_t i = sim->world.interaction_count; i > 0; i--) {
        struct interaction *row = &sim->world.interactions[i - 1];
        bool confirm = row->type == INTERACTION_CONFIRM && row->status == INTERACTION_RESOLVED;
        if (!confirm || !str_eq(row->call_id, call_id)) continue;
        row->status = INTERACTION_SUPERSEDED;
        return;
    }
    broken(sim, "%.*s has no approval that could lapse", STR_ARG(call_id));
}

static void store_grants(struct sim *sim, const struct outcome *o)
{
    for (size_t i = 0; i < o->grant_count; i++) {
        struct grant g = o->grants[i];
        str *const texts[] = {&g.id,    &g.owner,   &g.thread_id,     &g.tool,
                              &g.match, &g.made_by, &g.interaction_id};
        keep_texts(sim, texts, COUNT(texts));
        g.n = (int64_t)sim->world.grant_count + 1;
        *ROWS_ADD(&sim->life, sim->world.grants, sim->world.grant_count) = g;
    }
}

static void store_snapshot(struct sim *sim, const struct outcome *o)
{
    AUTO(buf_done) struct buf bytes;
    buf_init(&bytes, STATE_BYTES_MAX);
    if (!o->ended) state_write(&bytes, &o->state);
    if (bytes.full) broken(sim, "the state is too long for a snapshot");
    sim->world.snapshot = keep(sim, buf_str(&bytes));
    sim->world.version = o->ended ? 0 : sim->world.version + 1;
    sim->world.damaged = false;
}

static void store_run(struct sim *sim, const struct outcome *o)
{
    struct run *run = &sim->world.run;
    run->status = o->status;
    run->input_tokens = o->state.input_tokens;
    run->output_tokens = o->state.output_tokens;
    run->cost = o->state.cost;
    run->currency = keep(sim, o->state.currency);
    run->ended = o->ended ? sim->now : 0;
    if (!o->leg_begins) return;
    run->legs++;
    run->task_id = keep(sim, o->state.task_id);
}

static void store_outcome(struct sim *sim, const struct outcome *o)
{
    int64_t base = store_facts(sim, o);
    store_snapshot(sim, o);
    for (size_t i = 0; i < o->message_count; i++)
        store_message(sim, o->messages[i], base, o->fact_count);
    for (size_t i = 0; i < o->call_count; i++) store_call(sim, &o->calls[i]);
    store_interactions(sim, o, base);
    for (size_t i = 0; i < o->superseded_count; i++) store_superseded(sim, o->superseded[i]);
    store_grants(sim, o);
    store_run(sim, o);
}

/* ---- commits ---- */

static bool planned(struct sim *sim, enum side side)
{
    return sim->commits == sim->scenario.crash_at && side == sim->scenario.side;
}

static const char *const kinds[] = {
    [INPUT_TURN] = "turn",       [INPUT_DOWN] = "down",       [INPUT_CANCEL] = "cancel",
    [INPUT_RESOLVE] = "resolve", [INPUT_START] = "start",     [INPUT_RESULT] = "result",
    [INPUT_LOST] = "lost",       [INPUT_SHOW] = "show",       [INPUT_OVERDUE] = "overdue",
    [INPUT_ALONE] = "alone",     [INPUT_DAMAGED] = "damaged", [INPUT_ASKED] = "asked",
    [INPUT_AWAY] = "away",
};

enum fate world_commit(struct sim *sim, const struct view *view, int64_t version,
                       const struct input *input, struct outcome *o, const int *settings)
{
    if (version != sim->world.version) return FATE_STALE;
    sim->commits++;
    sim->coverage->steps++;
    trace(sim, "commit %u: %s, %s", sim->commits, kinds[input->kind], run_status_name(o->status));
    arena_reset(&sim->scratch);
    if (planned(sim, BEFORE)) {
        trail_lost(sim, input, o);
        shell_die(sim);
        return FATE_DIED;
    }
    check_outcome(sim, view, input, o, settings);
    store_outcome(sim, o);
    trail_stored(sim, input, o);
    check_stored(sim, input, o);
    if (!planned(sim, BEHIND)) return FATE_DONE;
    trail_died(sim);
    shell_die(sim);
    return FATE_DIED;
}

/* A commit of something else that a run depends on. */
enum fate world_change(struct sim *sim, void (*change)(struct sim *sim, void *arg), void *arg)
{
    sim->commits++;
    if (planned(sim, BEFORE)) {
        trail_died(sim);
        shell_die(sim);
        return FATE_DIED;
    }
    change(sim, arg);
    if (!planned(sim, BEHIND)) return FATE_DONE;
    trail_died(sim);
    shell_die(sim);
    return FATE_DIED;
}

/* run_damaged of agent/save.c: nothing is known but the rows. */
void world_fail(struct sim *sim)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    const struct run *run = &sim->world.run;
    struct view view = {.thread = run->thread,
                        .run = run->id,
                        .agent = run->agent,
                        .model = run->model,
                        .legs = run->legs,
                        .leg_open = run->status != RUN_WAITING,
                        .state = {.phase = PHASE_EXECUTING,
                                  .trace_id = run->run_id,
                                  .user_id = STR("local"),
                                  .conversation_id = STR("t1"),
                                  .task_id = run->task_id,
                                  .locale = STR("en"),
                                  .input_tokens = run->input_tokens,
                                  .output_tokens = run->output_tokens,
                                  .cost = run->cost,
                                  .currency = run->currency}};
    for (size_t i = 0; i < sim->world.call_count; i++)
        if (sim->world.calls[i].run == run->id && !sim->world.calls[i].result_id.len)
            *ROWS_ADD(&arena, view.calls.rows, view.calls.count) = sim->world.calls[i];
    for (size_t i = 0; i < sim->world.interaction_count; i++)
        if (sim->world.interactions[i].status == INTERACTION_OPEN)
            *ROWS_ADD(&arena, view.open.rows, view.open.count) = sim->world.interactions[i];
    struct input input = {
        .kind = INPUT_DAMAGED, .now = sim->now, .why_text = STR("the stored state is damaged")};
    struct outcome o;
    world_rest(sim, &input);
    random_bytes(&sim->chance, input.random);
    graph_step(&arena, &view, &input, &o);
    world_commit(sim, &view, sim->world.version, &input, &o, sim->house.settings);
}

/* ---- the start of a run ---- */

/* Some runs are buttons that were pressed: any tool, also one that is denied or gone by now, and
 * arguments that do not fit it any more. */
static void pick_press(struct sim *sim)
{
    enum { STREAM = 1000 * 1000 }; /* of chance: the rest of the life stays as it is */
    struct chance chance = chance_from(sim->scenario.seed, sim->run_number, STREAM);
    sim->press_tool = sim->press_args = STR_EMPTY;
    if (sim->drill.on || !one_in(&chance, 6)) return;
    enum fake fake = (enum fake)below(&chance, FAKE_COUNT);
    sim->press_args = keep(sim, fake_args(sim, &chance, fake, one_in(&chance, 6)));
    sim->press_tool = one_in(&chance, 12) ? STR("nobody") : str_c(fake_name(fake));
}

/* agent/begin.c: message.added, run.started, step.start. */
static void begin_outcome(struct sim *sim, struct outcome *o)
{
    struct arena *arena = &sim->life;
    struct run *run = &sim->world.run;
    struct message *message = ARENA_NEW(arena, struct message);
    *message = (struct message){.seq = 1,
                                .id = arena_printf(arena, "u%u", sim->run_number),
                                .role = STR("user"),
                                .run_id = run->run_id,
                                .content = STR("\"?\""),
                                .metadata = STR("{}"),
                                .plain = STR("?"),
                                .created = sim->now};
    struct outcome start;
    graph_start(arena,
                &(struct start){.run_id = run->run_id,
                                .task_id = arena_printf(arena, "task_%u", sim->run_number),
                                .owner = STR("local"),
                                .thread_id = STR("t1"),
                                .agent = run->agent,
                                .model = run->model,
                                .leg = 1,
                                .max_rounds = sim->house.agent.max_rounds,
                                .locale = sim->house.agent.locale,
                                .press_tool = sim->press_tool,
                                .press_args = sim->press_args,
                                .now = sim->now},
                &start);
    *o = start;
    o->fact_count = start.fact_count + 1;
    o->facts = arena_array(arena, o->fact_count, sizeof *o->facts);
    o->facts[0] = (struct fact){.type = FACT_MESSAGE_ADDED,
                                .run_id = run->run_id,
                                .at = sim->now,
                                .data = fact_message_added(arena, message)};
    memcpy(o->facts + 1, start.facts, start.fact_count * sizeof *o->facts);
    o->messages = message;
    o->message_count = 1;
}

enum fate world_begin(struct sim *sim)
{
    struct outcome o;
    struct run before = sim->world.run;
    sim->world.run = (struct run){.id = (int64_t)sim->run_number,
                                  .thread = 1,
                                  .run_id = arena_printf(&sim->life, "r%u", sim->run_number),
                                  .agent = STR("assistant"),
                                  .model = STR("fake")};
    struct offer offer = client_request(sim);
    sim->world.tools = offer.tools;
    sim->world.offers = offer.offers;
    pick_press(sim);
    begin_outcome(sim, &o);
    sim->commits++;
    if (planned(sim, BEFORE)) {
        sim->world.run = before;
        shell_die(sim);
        return FATE_DIED;
    }
    trace(sim, "commit %u: the run begins", sim->commits);
    arena_reset(&sim->scratch);
    sim->log = (struct log){.step = -1};
    trail_begin(sim);
    sim->world.version = 0;
    check_outcome(sim, NULL, NULL, &o, sim->house.settings);
    store_outcome(sim, &o);
    check_stored(sim, NULL, &o);
    if (!planned(sim, BEHIND)) return FATE_DONE;
    shell_die(sim);
    return FATE_DIED;
}
