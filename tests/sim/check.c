/* SPDX-License-Identifier: Apache-2.0
 *
 * What must hold at every commit, whatever led to it.
 *
 *  1. Facts follow the order of the wire: legs, steps, a turn's parts, results behind their calls,
 *     and outside a leg nothing but what may stand there.
 *  2. Every call gets exactly one result before the model speaks again or the run ends.
 *  3. A call moves along its arrows; it starts only if the policy, or the person, lets exactly these
 *     bytes run.
 *  4. A person is asked about a write in doubt exactly if it is in doubt.
 *  5. State, rows and facts tell the same: what is open, who is asked, which step, which budget; and
 *     the audit trail has what people decided.
 *  6. A step from the snapshot gives the bytes of the step from memory.
 *  7. A run that has ended leaves nothing behind.
 *  8. The steps of a plan say what their calls say (planned.c).
 */
#include <string.h>

#include "base/limits.h"
#include "base/rows.h"
#include "sim.h"
#include "store/db/sqlite.h"
#include "tool/tools.h"

static bool is(const struct fact *fact, const char *type)
{
    return !strcmp(fact->type, type);
}

/* ---- 1: facts ---- */

struct reading {
    const struct input *input; /* NULL: the start of a run */
    const struct outcome *o;
    int rank;     /* of the fact before, in its commit */
    size_t calls; /* tool.call facts so far */
    const struct view *view;
    size_t next;  /* call of the turn; cards are none */
    size_t texts; /* text.message.end facts so far */
    int asked;    /* place of the call whose request came last */
    bool unled;   /* resolved outside a leg, and no leg has begun since */
};

enum {
    IN_IDLE = 1 << LOG_IDLE,
    IN_ASKED = 1 << LOG_ASKED,
    IN_LEG = 1 << LOG_LEG,
    IN_PAUSE = 1 << LOG_PAUSED,
    IN_CANCEL = 1 << 8
};

/* type, where it may stand (IN_CANCEL: in a pause that a cancel ends), its rank in the commit of a
 * turn, of an answer, of a cancel; 0: not ranked, -1: not there at all */
static const struct fact_row {
    const char *type;
    unsigned where;
    int turn, resolve, cancel;
} fact_rows[] = {
    {FACT_MESSAGE_ADDED, IN_IDLE, -1, -1, -1},
    {FACT_RUN_STARTED, IN_ASKED | IN_PAUSE, -1, 2, 2},
    {FACT_STEP_START, IN_LEG, 0, -1, -1},
    {FACT_STEP_FINISH, IN_LEG | IN_CANCEL, 0, 5, 5},
    {FACT_REASONING_END, IN_LEG, 1, -1, 1},
    {FACT_TEXT_END, IN_LEG, 2, -1, 2},
    {FACT_TOOL_CALL, IN_LEG, 3, -1, -1},
    {FACT_REQUEST, IN_LEG, 4, 3, -1},
    {FACT_TOOL_RESULT, IN_LEG | IN_CANCEL, 5, 4, 4},
    {FACT_RESOLVED, IN_LEG | IN_PAUSE, -1, 1, 3},
    {FACT_PLAN, IN_LEG | IN_CANCEL, 0, 5, 5},
    {FACT_RUN_FINISHED, IN_LEG | IN_CANCEL, 6, 6, 6},
    {FACT_RUN_ERROR, IN_LEG, 6, 6, -1},
};

static void check_place(struct sim *sim, struct reading *r, const struct fact *fact)
{
    const struct fact_row *row = NULL;
    for (size_t i = 0; i < COUNT(fact_rows); i++)
        if (is(fact, fact_rows[i].type)) row = &fact_rows[i];
    if (!row) {
        broken(sim, "a fact of type %s", fact->type);
        return;
    }
    unsigned here = 1u << sim->log.place;
    bool cancel = r->input && r->input->kind == INPUT_CANCEL;
    bool damaged = r->input && r->input->kind == INPUT_DAMAGED;
    if (cancel && here == IN_PAUSE) here |= IN_CANCEL;
    if (damaged && here == IN_PAUSE) here |= IN_CANCEL | IN_LEG; /* it begins no leg to fail in */
    if (!(row->where & here)) broken(sim, "%s in place %u", fact->type, here);
    if (!r->input) return;
    int rank = r->input->kind == INPUT_TURN      ? row->turn
               : r->input->kind == INPUT_RESOLVE ? row->resolve
               : cancel                          ? row->cancel
                                                 : 0;
    if (rank < 0 || (rank && rank < r->rank)) broken(sim, "%s out of its order", fact->type);
    if (rank) r->rank = rank;
}

static void each_has_a_result(struct sim *sim, const char *when)
{
    for (size_t i = 0; i < sim->deed_count; i++)
        if (sim->deeds[i].run == sim->world.run.id && sim->deeds[i].results != 1)
            broken(sim, "%s: %.*s has %u results", when, STR_ARG(sim->deeds[i].call_id),
                   sim->deeds[i].results);
}

static void check_step_fact(struct sim *sim, const struct fact *fact, const struct json *data)
{
    struct log *log = &sim->log;
    uint64_t index = 9;
    if (json_u64(json_get(data, STR("index")), &index)) broken(sim, "a step without an index");
    if (is(fact, FACT_STEP_START)) {
        if (log->step_open || (int)index <= log->step) broken(sim, "a step starts in another");
        log->step = (int)index;
        log->step_open = true;
        return;
    }
    if (!log->step_open || (int)index != log->step) broken(sim, "a step ends that is not open");
    log->step_open = false;
}

static bool will_be_open(struct sim *sim, const struct outcome *o, str id)
{
    for (size_t i = 0; i < o->settled_count; i++)
        if (str_eq(o->settled[i].id, id)) return false;
    for (size_t i = 0; i < o->opened_count; i++)
        if (str_eq(o->opened[i].id, id)) return true;
    const struct interaction *row = world_interaction(sim, id);
    return row && row->status == INTERACTION_OPEN;
}

static bool asked_after(struct sim *sim, const struct outcome *o, str call_id)
{
    for (size_t i = 0; i < o->opened_count; i++)
        if (str_eq(o->opened[i].call_id, call_id)) return true;
    for (size_t i = 0; i < sim->world.interaction_count; i++) {
        const struct interaction *row = &sim->world.interactions[i];
        if (str_eq(row->call_id, call_id) && will_be_open(sim, o, row->id)) return true;
    }
    return false;
}

/* It waits, and nobody was asked: the client has it. */
static bool pending(struct sim *sim, const struct outcome *o, const struct call *call)
{
    return call->run == sim->world.run.id && call->state == CALL_WAITING &&
           !asked_after(sim, o, call->call_id);
}

static const struct call *change_of(const struct outcome *o, str call_id)
{
    for (size_t i = 0; i < o->call_count; i++)
        if (str_eq(o->calls[i].call.call_id, call_id)) return &o->calls[i].call;
    return NULL;
}

/* The list names exactly the calls that the client has, in their order. */
static size_t check_pending(struct sim *sim, const struct outcome *o, const struct json *ids)
{
    const struct json *next = ids ? ids->child : NULL;
    size_t count = 0;
    bool right = true;
    for (size_t i = 0; i < sim->world.call_count + o->call_count; i++) {
        const struct call *call = NULL;
        if (i < sim->world.call_count) {
            call = change_of(o, sim->world.calls[i].call_id);
            if (!call) call = &sim->world.calls[i];
        } else if (o->calls[i - sim->world.call_count].added) {
            call = &o->calls[i - sim->world.call_count].call;
        }
        if (!call || !pending(sim, o, call)) continue;
        right = right && next && str_eq(json_text(next), call->call_id);
        next = next ? next->next : NULL;
        count++;
    }
    if (!right || next) broken(sim, "a pause names other calls than the client has");
    return count;
}

static size_t open_after(const struct sim *sim, const struct outcome *o)
{
    size_t count = o->opened_count;
    for (size_t i = 0; i < sim->world.interaction_count; i++)
        count += sim->world.interactions[i].status == INTERACTION_OPEN;
    return count - o->settled_count;
}

static void check_pause(struct sim *sim, const struct outcome *o, const struct json *data)
{
    const struct json *ids = json_get(data, STR("interactions"));
    size_t count = ids ? ids->count : 0;
    size_t calls = check_pending(sim, o, json_get(data, STR("pendingToolCallIds")));
    if (!(count + calls) || count != open_after(sim, o)) broken(sim, "a pause lists %zu", count);
    for (const struct json *id = ids ? ids->child : NULL; id; id = id->next)
        if (!will_be_open(sim, o, json_text(id))) broken(sim, "a pause lists what is not open");
    if (!sim->log.step_open) broken(sim, "a pause without an open step");
    sim->log.place = LOG_PAUSED;
}

/* The last fact of its leg, and of its commit. */
static void check_leg_end(struct sim *sim, const struct reading *r, const struct fact *fact,
                          const struct json *data)
{
    struct log *log = &sim->log;
    const struct outcome *o = r->o;
    str outcome = json_text(json_get(data, STR("outcome")));
    if (fact != &o->facts[o->fact_count - 1]) broken(sim, "something follows %s", fact->type);
    if (log->place == LOG_LEG && fact->at > log->leg_since)
        log->active_ms += (uint64_t)(fact->at - log->leg_since);
    if (str_eq(outcome, STR("interrupted"))) {
        check_pause(sim, o, data);
        return;
    }
    const char *status = is(fact, FACT_RUN_ERROR) ? "failed" : run_status_name(o->status);
    if (is(fact, FACT_RUN_FINISHED) && !str_eq(outcome, str_c(status)))
        broken(sim, "the outcome is %.*s, the status %s", STR_ARG(outcome), status);
    bool damaged = r->input && r->input->kind == INPUT_DAMAGED; /* which step is not known */
    if (log->step_open && !damaged) broken(sim, "a run ends with an open step");
    if (!o->ended) broken(sim, "%s, and the run goes on", fact->type);
    each_has_a_result(sim, "at the end");
    planned_ended(sim, r->input);
    log->place = LOG_IDLE;
}

static void check_tool_call(struct sim *sim, struct reading *r, const struct json *data)
{
    const struct turn *turn = &r->input->turn;
    str id = json_text(json_get(data, STR("toolCallId")));
    while (r->next < turn->call_count && oracle_is_card(sim, r->view, r->next)) r->next++;
    size_t at = r->next++;
    bool pressed = sim->press_tool.len; /* its id is the graph's own */
    if (at >= turn->call_count || (!pressed && !str_eq(id, turn->calls[at].call_id))) {
        broken(sim, "tool.call number %zu is not the model's", r->calls + 1);
        return;
    }
    if (!str_eq(json_text(json_get(data, STR("toolName"))), turn->calls[at].name))
        broken(sim, "a call has another name");
    r->calls++;
    if (deed_of(sim, id)) broken(sim, "two calls have one id");
    *ROWS_ADD(&sim->life, sim->deeds, sim->deed_count) = (struct deed){
        .call_id = keep(sim, id), .run = sim->world.run.id, .crashes = sim->coverage->crashes};
}

static void check_result(struct sim *sim, const struct json *data)
{
    struct deed *deed = deed_of(sim, json_text(json_get(data, STR("toolCallId"))));
    if (!deed || deed->run != sim->world.run.id || ++deed->results != 1)
        broken(sim, "a result of no call, or the second of one");
}

static int place_of(const struct reading *r, str call_id)
{
    for (size_t i = 0; i < r->o->call_count; i++)
        if (str_eq(r->o->calls[i].call.call_id, call_id)) return (int)r->o->calls[i].call.n;
    return -1;
}

static void check_request(struct sim *sim, struct reading *r, const struct json *data)
{
    str id = json_text(json_get(data, STR("interactionId")));
    str call_id = json_text(json_get(data, STR("toolCallId")));
    if (!will_be_open(sim, r->o, id)) broken(sim, "a request of what is not open");
    if (!call_id.len) return;
    const struct deed *deed = deed_of(sim, call_id);
    if (!deed || deed->results) broken(sim, "a request about a call that has its result");
    int place = place_of(r, call_id);
    bool ordered = r->input->kind == INPUT_TURN || r->input->kind == INPUT_START;
    if (ordered && place <= r->asked) broken(sim, "requests are not in the order of their calls");
    r->asked = place;
}

static void check_resolved(struct sim *sim, struct reading *r, const struct json *data)
{
    const struct interaction *row =
        world_interaction(sim, json_text(json_get(data, STR("interactionId"))));
    if (!row || row->status != INTERACTION_OPEN) broken(sim, "resolved, and was not open");
    if (sim->log.place == LOG_PAUSED && r->input->kind == INPUT_RESOLVE) r->unled = true;
}

static void check_fact(struct sim *sim, struct reading *r, const struct fact *fact)
{
    struct log *log = &sim->log;
    struct json *data = NULL;
    if (json_parse(&sim->scratch, fact->data, &data, NULL)) {
        broken(sim, "%s is not JSON", fact->type);
        return;
    }
    check_place(sim, r, fact);
    if (is(fact, FACT_MESSAGE_ADDED)) log->place = LOG_ASKED;
    if (is(fact, FACT_RUN_STARTED)) {
        uint64_t leg = 0;
        if (json_u64(json_get(data, STR("leg")), &leg) || leg != ++log->legs)
            broken(sim, "leg %llu", (unsigned long long)leg);
        log->place = LOG_LEG;
        log->leg_since = fact->at;
        r->unled = false;
    }
    if (is(fact, FACT_STEP_START) || is(fact, FACT_STEP_FINISH)) check_step_fact(sim, fact, data);
    if (is(fact, FACT_TEXT_END)) {
        each_has_a_result(sim, "a message");
        r->texts++;
    }
    if (is(fact, FACT_TOOL_CALL)) check_tool_call(sim, r, data);
    if (is(fact, FACT_TOOL_RESULT)) check_result(sim, data);
    if (is(fact, FACT_REQUEST)) check_request(sim, r, data);
    if (is(fact, FACT_PLAN)) planned_check(sim, r->o, data);
    if (is(fact, FACT_RESOLVED)) check_resolved(sim, r, data);
    if (is(fact, FACT_RUN_FINISHED) || is(fact, FACT_RUN_ERROR)) check_leg_end(sim, r, fact, data);
}

static void check_facts(struct sim *sim, const struct view *view, const struct input *input,
                        const struct outcome *o)
{
    struct reading r = {.input = input, .o = o, .asked = -1};
    bool led = false, turn = input && input->kind == INPUT_TURN;
    r.view = view;
    for (size_t i = 0; i < o->fact_count && !sim->broken[0]; i++) {
        led = led || is(&o->facts[i], FACT_RUN_STARTED);
        check_fact(sim, &r, &o->facts[i]);
    }
    if (led != o->leg_begins) broken(sim, "a leg begins in facts or rows alone");
    if (r.unled) broken(sim, "an answer outside a leg began none");
    if (o->ended != (sim->log.place == LOG_IDLE)) broken(sim, "the run and its leg differ");
    if (!turn) return;
    bool offered = graph_node(&view->state) != NODE_DELIVER;
    size_t count = 0;
    for (size_t i = 0; i < input->turn.call_count; i++) count += !oracle_is_card(sim, view, i);
    if (r.texts != 1) broken(sim, "a turn with %zu messages", r.texts);
    if (r.calls != (offered ? count : 0)) broken(sim, "%zu calls", r.calls);
    sim->log.turns++;
}

/* The row that each fact leaves in history; NULL: none. */
static const char *role_of(const struct outcome *o, const struct fact *fact)
{
    if (is(fact, FACT_MESSAGE_ADDED)) return "user";
    if (is(fact, FACT_REASONING_END)) return "reasoning";
    if (is(fact, FACT_TEXT_END)) return "assistant";
    if (is(fact, FACT_TOOL_RESULT)) return "tool";
    if (!is(fact, FACT_REQUEST)) return NULL;
    for (size_t i = 0; i < o->opened_count; i++)
        if (&o->facts[o->opened[i].seq - 1] == fact)
            return o->opened[i].type == INTERACTION_ASK_USER ? "clarify" : "interaction";
    return "nothing, for it was not opened";
}

static void check_rows(struct sim *sim, const struct outcome *o)
{
    size_t row = 0;
    for (size_t i = 0; i < o->fact_count; i++) {
        const char *role = role_of(o, &o->facts[i]);
        if (!role) continue;
        bool there = row < o->message_count && o->messages[row].seq == (int64_t)i + 1 &&
                     str_eq(o->messages[row].role, str_c(role));
        if (!there) broken(sim, "%s without its row", o->facts[i].type);
        row++;
    }
    if (row != o->message_count) broken(sim, "a row without its fact");
}

static size_t audited(const struct outcome *o, enum audit_action action)
{
    size_t count = 0;
    for (size_t i = 0; i < o->audit_count; i++) count += o->audit[i].action == action;
    return count;
}

/* Who decided what is written down with it. */
static void check_audit(struct sim *sim, const struct outcome *o)
{
    size_t started = 0;
    for (size_t i = 0; i < o->call_count; i++)
        started += o->calls[i].started && o->calls[i].call.write;
    bool whole = audited(o, AUDIT_OPENED) == o->opened_count &&
                 audited(o, AUDIT_RESOLVED) == o->settled_count + o->superseded_count &&
                 audited(o, AUDIT_GRANTED) == o->grant_count &&
                 audited(o, AUDIT_STARTED) == started;
    if (!whole) broken(sim, "the audit trail leaves something out");
}

/* ---- 3: calls ---- */

#define TO(state) (1u << (state))
static const unsigned arrows[CALL_STATE_COUNT] = {
    [CALL_PROPOSED] = TO(CALL_WAITING) | TO(CALL_STARTED) | TO(CALL_FAILED) | TO(CALL_CANCELLED),
    [CALL_WAITING] = TO(CALL_WAITING) | TO(CALL_APPROVED) | TO(CALL_DONE) | TO(CALL_FAILED) |
                     TO(CALL_REJECTED) | TO(CALL_CANCELLED),
    [CALL_APPROVED] = TO(CALL_STARTED) | TO(CALL_WAITING) | TO(CALL_FAILED) | TO(CALL_CANCELLED),
    [CALL_STARTED] = TO(CALL_STARTED) | TO(CALL_WAITING) | TO(CALL_APPROVED) | TO(CALL_DONE) |
                     TO(CALL_FAILED) | TO(CALL_UNCERTAIN) | TO(CALL_CANCELLED),
    [CALL_UNCERTAIN] = TO(CALL_APPROVED) | TO(CALL_DONE) | TO(CALL_FAILED),
};

static void check_arrow(struct sim *sim, const struct call_change *change)
{
    const struct call *now = &change->call, *before = world_call(sim, now->call_id);
    if (change->added) return;
    if (!before) {
        broken(sim, "a call changed that is not there");
        return;
    }
    if (call_state_settled(before->state)) {
        bool same = now->state == before->state && str_eq(now->error, before->error) &&
                    str_eq(now->model_text, before->model_text);
        if (!same || before->result_id.len || !now->result_id.len)
            broken(sim, "a call that had ended changed");
    } else if (!(arrows[before->state] & TO(now->state))) {
        broken(sim, "a call went from %s to %s", call_state_name(before->state),
               call_state_name(now->state));
    }
}

/* The bytes that leave are those that a person approved, or that need no approval. */
static void check_start(struct sim *sim, const struct call *call, const int *settings)
{
    struct deed *deed = deed_of(sim, call->call_id);
    const struct tool *tool = tools_find(&sim->house.tools, call->tool);
    struct json *args = NULL;
    int fake = fake_of(call->tool);
    if (!deed || !tool || fake < 0 || json_parse(&sim->scratch, call->args, &args, NULL)) {
        broken(sim, "a call starts that cannot");
        return;
    }
    enum verdict verdict = verdict_of(sim, settings, (enum fake)fake, args);
    bool asked = deed->asked.tool.len;
    if (deed->front) broken(sim, "a call starts that the client executes");
    if (deed->refused) broken(sim, "a refused call starts");
    if (verdict == VERDICT_DENY) broken(sim, "a denied call starts");
    if (!form_takes(sim->house.forms[fake], args))
        broken(sim, "a call starts with wrong arguments");
    if (asked ? !deed->approved : verdict != VERDICT_ALLOW)
        broken(sim, "a call starts that nobody approved");
    if (asked && (!str_eq(call->args, deed->asked.args) || !str_eq(call->tool, deed->asked.tool) ||
                  !str_eq(call->binding, deed->asked.binding)))
        broken(sim, "a call starts that is another than the approved one");
    if (asked && !str_eq(tool->schema, deed->asked.schema))
        broken(sim, "a call starts under a schema that nobody was shown");
    if (!asked && !str_eq(call->args, deed->proposed))
        broken(sim, "a call starts with other arguments than were proposed");
    deed->starts++;
    deed->start_args = keep(sim, call->args);
    deed->doubt = deed->flown_lost = false;
}

static void check_calls(struct sim *sim, const struct outcome *o, const int *settings)
{
    for (size_t i = 0; i < o->call_count && !sim->broken[0]; i++) {
        const struct call_change *change = &o->calls[i];
        struct deed *deed = deed_of(sim, change->call.call_id);
        if (!deed) {
            broken(sim, "a call without a fact");
            return;
        }
        if (change->added) deed->proposed = keep(sim, change->call.args);
        check_arrow(sim, change);
        const struct call *before = world_call(sim, change->call.call_id);
        bool starts =
            change->call.state == CALL_STARTED && (!before || before->state != CALL_STARTED);
        if (starts != change->started) broken(sim, "a start that nobody sees");
        if (starts) check_start(sim, &change->call, settings);
    }
}

/* ---- 4: who is asked ---- */

static void check_uncertain(struct sim *sim, const struct call *call, const struct deed *deed)
{
    int fake = fake_of(call->tool);
    bool gone = fake < 0 || sim->house.forms[fake] == FORM_GONE;
    if (!call->write) broken(sim, "a person is asked about a read");
    if (!deed->doubt) broken(sim, "a person is asked about a write that is not in doubt");
    if (call_repeatable(call) && !deed->flown_lost && !gone)
        broken(sim, "a person is asked about a write that could be repeated");
}

static void check_opened(struct sim *sim, const struct outcome *o)
{
    for (size_t i = 0; i < o->opened_count; i++) {
        const struct interaction *opened = &o->opened[i];
        if (opened->type == INTERACTION_CONNECTION_LOST && !opened->call_id.len) continue;
        const struct call *call = change_of(o, opened->call_id);
        struct deed *deed = deed_of(sim, opened->call_id);
        if (!call || !deed) {
            broken(sim, "an interaction about a call that is not touched");
            return;
        }
        if (opened->type == INTERACTION_UNCERTAIN) check_uncertain(sim, call, deed);
        if (opened->type != INTERACTION_CONFIRM) continue;
        if (!str_eq(opened->args, call->args) || !str_eq(opened->binding, call->binding))
            broken(sim, "a person is shown something else than is stored");
        deed->asked.tool = keep(sim, call->tool);
        deed->asked.args = keep(sim, call->args);
        deed->asked.rule = keep(sim, call->rule);
        deed->asked.binding = keep(sim, call->binding);
        deed->asked.schema = keep(sim, opened->args_schema);
        deed->approved = false;
    }
}

/* ---- how a run may end, and what it may cost ---- */

static void check_budget(struct sim *sim, const struct view *view, const struct input *input,
                         const struct outcome *o)
{
    const struct agent *agent = &sim->house.agent;
    const struct log *log = &sim->log;
    sim->log.tokens += input->turn.usage.input_tokens + input->turn.usage.output_tokens;
    if (o->state.input_tokens + o->state.output_tokens != log->tokens)
        broken(sim, "the tokens do not add up");
    sim->log.cost += 3 * input->turn.usage.input_tokens + 7 * input->turn.usage.output_tokens;
    if (o->state.cost != log->cost) broken(sim, "the costs do not add up");
    if (o->state.round_used > o->state.max_rounds) broken(sim, "a round too many");
    bool overdue = input->kind == INPUT_OVERDUE;
    if (overdue) {
        uint64_t active = view->state.active_ms + (uint64_t)(input->now - view->state.leg_since);
        bool late = agent->active_ms_max && active >= (uint64_t)agent->active_ms_max;
        bool dear = (agent->tokens_max && log->tokens >= agent->tokens_max) ||
                    (agent->cost_max && log->cost >= agent->cost_max);
        if (!late && !dear) broken(sim, "a budget is used up that is not");
    }
    if (o->status == RUN_EXHAUSTED && !overdue && o->state.round_used < o->state.max_rounds)
        broken(sim, "exhausted, and there are rounds left");
    if (o->status == RUN_COMPLETED && o->state.plan.count != o->state.current_step)
        broken(sim, "completed, and %u of %zu steps are done", o->state.current_step,
               o->state.plan.count);
    if (view->cancelling && o->status != RUN_CANCELLING && !o->ended)
        broken(sim, "a run that is being cancelled goes on");
}

/* A call that ran has one object, which waits if nobody has put it, and its row says so. */
static void check_blobs(struct sim *sim, const struct outcome *o)
{
    size_t named = 0;
    for (size_t i = 0; i < o->message_count; i++) {
        const struct message *row = &o->messages[i];
        if (!str_eq(row->role, STR("tool"))) continue;
        bool names = str_find(row->metadata, STR("\"storage_path\"")) >= 0;
        bool missing = str_ends(row->metadata, STR(",\"storage_missing\":true}"));
        size_t found = 0;
        for (size_t j = 0; j < o->blob_count; j++) {
            if (!str_eq(o->blobs[j].message_id, row->id)) continue;
            found++;
            bool there = o->blobs[j].waiting || blobs_fake_has(sim->blobs, o->blobs[j].path);
            if (o->blobs[j].waiting != missing ||
                (missing && !o->blobs[j].bytes.len && !o->blobs[j].spool.len) || !there)
                broken(sim, "the object of a result is not where its row says");
        }
        if (!names != !found || found > 2) broken(sim, "a result has %zu objects", found);
        named += found; /* a long one has its file, too */
    }
    if (named != o->blob_count) broken(sim, "objects without a row");
}

void check_outcome(struct sim *sim, const struct view *view, const struct input *input,
                   const struct outcome *o, const int *settings)
{
    check_facts(sim, view, input, o);
    check_rows(sim, o);
    check_blobs(sim, o);
    if (!input || sim->broken[0]) return;
    check_audit(sim, o);
    asking_check(sim, view, input, o);
    if (input->kind == INPUT_TURN) oracle_turn(sim, view, input, o, settings);
    if (input->kind == INPUT_RESOLVE) oracle_resolve(sim, view, input, o);
    if (input->kind == INPUT_START) oracle_start(sim, view, o, settings);
    check_calls(sim, o, settings);
    check_opened(sim, o);
    check_budget(sim, view, input, o);
}

/* ---- 5: state, rows and facts ---- */

static size_t open_about(const struct sim *sim, str call_id, enum interaction_type *ret_type)
{
    size_t count = 0;
    for (size_t i = 0; i < sim->world.interaction_count; i++) {
        const struct interaction *row = &sim->world.interactions[i];
        if (row->status != INTERACTION_OPEN || !str_eq(row->call_id, call_id)) continue;
        *ret_type = row->type;
        count++;
    }
    return count;
}

/* Calls of the run that wait have one interaction, and no other has; but for those of the client, and
 * for tools that ask something themselves (asking.c). */
static void check_call_rows(struct sim *sim, const struct input *input, const struct outcome *o)
{
    bool shown =
        input->kind != INPUT_RESULT && input->kind != INPUT_START && input->kind != INPUT_TURN;
    unsigned started = 0;
    for (size_t i = 0; i < sim->world.call_count; i++) {
        const struct call *call = &sim->world.calls[i];
        if (call->run != sim->world.run.id) continue;
        enum interaction_type type = INTERACTION_TYPE_COUNT;
        size_t open = open_about(sim, call->call_id, &type);
        bool front = deed_of(sim, call->call_id)->front;
        bool waits = (call->state == CALL_WAITING && !front) || call->state == CALL_UNCERTAIN;
        bool asks = type == INTERACTION_ASK_USER && !graph_tool_is(call->tool);
        if (asks) asking_check_rows(sim, call, open);
        if (!asks && open != waits)
            broken(sim, "a call that is %s has %zu open interactions", call_state_name(call->state),
                   open);
        if (waits && !asks && (type == INTERACTION_UNCERTAIN) != (call->state == CALL_UNCERTAIN))
            broken(sim, "a call that is %s waits for a %s", call_state_name(call->state),
                   interaction_type_name(type));
        if (shown && call_state_settled(call->state) && !call->result_id.len &&
            input->kind == INPUT_RESOLVE && change_of(o, call->call_id))
            broken(sim, "what an answer settled is not shown");
        started += call->state == CALL_STARTED;
    }
    if (started > CALLS_STARTED_MAX) broken(sim, "%u calls are under way", started);
}

static void check_state(struct sim *sim, const struct outcome *o)
{
    const struct state *state = &o->state;
    const struct log *log = &sim->log;
    size_t open = 0, confirms = 0, waits = 0;
    for (size_t i = 0; i < sim->world.interaction_count; i++) {
        const struct interaction *row = &sim->world.interactions[i];
        open += row->status == INTERACTION_OPEN;
        confirms += row->status == INTERACTION_OPEN && row->type == INTERACTION_CONFIRM;
    }
    waits = open;
    bool shows = false; /* a result that a later step shows, and goes on then */
    for (size_t i = 0; i < sim->world.call_count; i++) {
        const struct call *call = &sim->world.calls[i];
        waits += client_waited_for(sim, call);
        shows = shows || (call_state_settled(call->state) && !call->result_id.len);
    }
    bool paused = log->place == LOG_PAUSED, cancelling = o->status == RUN_CANCELLING;
    if (confirms > CONFIRMS_OPEN_MAX) broken(sim, "%zu confirms are open", confirms);
    if (paused != (o->status == RUN_WAITING)) broken(sim, "the status and the leg differ");
    if (paused && !waits) broken(sim, "the run waits for nobody");
    if (waits && state->phase != PHASE_INTERRUPTED)
        broken(sim, "%zu are open and the phase is %s", waits, phase_name(state->phase));
    if (!waits && state->phase == PHASE_INTERRUPTED && !cancelling && !shows)
        broken(sim, "nothing is open and the phase is interrupted");
    if (state->interaction_ids.count != open) broken(sim, "the state names others than are open");
    if ((int)state->stage != log->step || !log->step_open) broken(sim, "the stage is another");
    if (state->turns != log->turns) broken(sim, "%u turns are counted", state->turns);
    if (state->active_ms != log->active_ms) broken(sim, "the time worked is counted wrongly");
    if (sim->world.run.legs != log->legs) broken(sim, "the legs are counted wrongly");
    if (!sim->world.version) broken(sim, "the run has no snapshot");
}

/* The facts, rows and state of a step stand in the database as it returned them. */
void check_saved(struct sim *sim, const struct outcome *o)
{
    const struct world *world = &sim->world;
    if (sim->broken[0]) return;
    for (size_t i = 0; i < o->fact_count; i++) {
        const struct fact *fact = &o->facts[i];
        bool there = fact->seq == (int64_t)(world->fact_count - o->fact_count + i + 1) &&
                     str_eq(fact->data, world->facts[fact->seq - 1].data) &&
                     !strcmp(fact->type, world->facts[fact->seq - 1].type);
        if (!there) broken(sim, "%s is not stored as it was made", fact->type);
    }
    for (size_t i = 0; i < o->call_count; i++) {
        const struct call *call = &o->calls[i].call, *row = world_call(sim, call->call_id);
        bool same = row && row->state == call->state && row->attempts == call->attempts &&
                    str_eq(row->args, call->args) && str_eq(row->binding, call->binding) &&
                    str_eq(row->rule, call->rule) && str_eq(row->error, call->error) &&
                    str_eq(row->model_text, call->model_text) && str_eq(row->asked, call->asked) &&
                    str_eq(row->result_id, call->result_id) && str_eq(row->spool, call->spool);
        if (!same) broken(sim, "the row of %.*s is another", STR_ARG(call->call_id));
    }
    for (size_t i = 0; i < o->settled_count; i++) {
        const struct interaction *row = world_interaction(sim, o->settled[i].id);
        if (!row || row->status != o->settled[i].status)
            broken(sim, "%.*s is not settled so", STR_ARG(o->settled[i].id));
    }
    for (size_t i = 0; i < o->opened_count; i++) {
        const struct interaction *row = world_interaction(sim, o->opened[i].id);
        if (!row || row->status != INTERACTION_OPEN || !str_eq(row->args, o->opened[i].args) ||
            !str_eq(row->binding, o->opened[i].binding))
            broken(sim, "%.*s is not asked so", STR_ARG(o->opened[i].id));
    }
    if (world->run.status != o->status) broken(sim, "the run has another status");
    if (o->ended == (world->version > 0)) broken(sim, "the run and its snapshot differ");
}

/* ---- 6: memory and snapshot ---- */

/* Everything that a step wants stored, as bytes. */
static void print_outcome(struct buf *out, const struct outcome *o)
{
    buf_printf(out, "%d %d %d\n", (int)o->status, o->ended, o->leg_begins);
    for (size_t i = 0; i < o->fact_count; i++) {
        buf_append(out, str_c(o->facts[i].type));
        buf_append(out, o->facts[i].data);
    }
    for (size_t i = 0; i < o->message_count; i++) message_write(out, &o->messages[i]);
    for (size_t i = 0; i < o->call_count; i++) {
        const struct call *call = &o->calls[i].call;
        buf_printf(out, "%d %u %u ", (int)call->state, call->attempts, call->n);
        buf_append(out, call->model_text);
        buf_append(out, call->args);
        buf_append(out, call->binding);
        buf_append(out, call->asked);
    }
    for (size_t i = 0; i < o->opened_count; i++) buf_append(out, o->opened[i].id);
    for (size_t i = 0; i < o->settled_count; i++) buf_append(out, o->settled[i].id);
    state_write(out, &o->state);
}

/* Some input that fits every view. */
static struct input probe(struct sim *sim, const struct view *view, struct arena *arena)
{
    static const enum input_kind any[] = {INPUT_CANCEL, INPUT_SHOW, INPUT_START, INPUT_RESOLVE,
                                          INPUT_TURN};
    struct resolution *all = arena_array(arena, view->open.count + 1, sizeof *all);
    for (size_t i = 0; i < view->open.count; i++)
        all[i] = (struct resolution){.interaction_id = view->open.rows[i].id,
                                     .decision = DECISION_CANCEL};
    struct front_result *fronts = arena_array(arena, view->calls.count, sizeof *fronts);
    for (size_t i = 0; i < view->calls.count; i++)
        fronts[i] =
            (struct front_result){.call_id = view->calls.rows[i].call_id, .text = STR("probed")};
    struct input input = {.kind = any[below(&sim->chance, view->open.count ? 4 : 5)],
                          .now = sim->now,
                          .turn = {.text = STR("words")},
                          .resolutions = all,
                          .resolution_count = view->open.count,
                          .fronts = fronts,
                          .front_count = view->calls.count};
    bool busy = graph_effect(view) != EFFECT_MODEL;
    if (input.kind == INPUT_TURN && busy) input.kind = INPUT_CANCEL;
    if (view->cancelling) input.kind = INPUT_CANCEL;
    world_rest(sim, &input);
    return input;
}

static void check_same(struct sim *sim, const struct outcome *o)
{
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf memory, disk;
    arena_init(&arena);
    buf_init(&memory, STATE_BYTES_MAX);
    buf_init(&disk, STATE_BYTES_MAX);
    struct view view;
    struct outcome from_disk, from_memory;
    struct fault why = {0};
    int64_t version;
    enum err e = db_begin(sim->db);
    if (!e) e = view_load(sim->db, &arena, &sim->world.run, STR("local"), &view, &version, &why);
    if (db_rollback(sim->db) || e) {
        broken(sim, "what was saved does not load: %s, %s", err_title(e), why.text);
        return;
    }
    struct input input = probe(sim, &view, &arena);
    sim->probing = true;
    graph_step(&arena, &view, &input, &from_disk);
    view.state = o->state;
    graph_step(&arena, &view, &input, &from_memory);
    sim->probing = false;
    print_outcome(&disk, &from_disk);
    print_outcome(&memory, &from_memory);
    if (memory.full || !str_eq(buf_str(&memory), buf_str(&disk)))
        broken(sim, "a step from the snapshot is another than from memory");
}

/* ---- 2: what the model is asked with ---- */

static void check_results_follow(struct sim *sim, const struct model_request *context, size_t at)
{
    struct json *calls = NULL;
    size_t next = at + 1;
    if (json_parse(&sim->scratch, context->messages[at].tool_calls, &calls, NULL)) {
        broken(sim, "the calls of a message are not JSON");
        return;
    }
    for (const struct json *call = calls->child; call; call = call->next, next++) {
        str id = json_text(json_get(call, STR("id")));
        const struct call *row = world_call(sim, id);
        bool there = next < context->count && str_eq(context->messages[next].role, STR("tool")) &&
                     str_eq(context->messages[next].tool_call_id, id);
        bool card = !row && str_starts(id, STR("card_"));
        if (there && card) {
            if (!str_eq(context->messages[next].text, STR("shown")))
                broken(sim, "a card has another result than that it was shown");
            continue;
        }
        if (!there || !row) {
            broken(sim, "a call stands in the context without its result");
            return;
        }
        bool own = row->run == sim->world.run.id;
        if (own && !str_eq(context->messages[next].text, row->model_text))
            broken(sim, "the model is shown another result than is stored for it");
    }
}

static size_t rows_of(const struct sim *sim, str id)
{
    size_t count = 0;
    for (size_t i = 0; i < sim->world.message_count; i++)
        count += str_eq(sim->world.messages[i].id, id) &&
                 str_eq(sim->world.messages[i].role, STR("tool"));
    return count;
}

/* No name is offered twice, and of the client's tools just those that may be called. */
static void check_offered(struct sim *sim, str tools)
{
    struct json *list = NULL;
    size_t found = 0;
    if (tools.len && json_parse(&sim->scratch, tools, &list, NULL))
        broken(sim, "the tools that are offered are no JSON");
    for (const struct json *tool = list ? list->child : NULL; tool; tool = tool->next) {
        str name = json_text(json_get(tool, STR("name")));
        found += client_offers(sim, name);
        for (const struct json *other = tool->next; other; other = other->next)
            if (str_eq(name, json_text(json_get(other, STR("name")))))
                broken(sim, "%.*s is offered twice", STR_ARG(name));
    }
    if (list && found != client_offer_count(sim))
        broken(sim, "%zu tools of the client are offered", found);
}

void check_request_of_model(struct sim *sim, const struct model_request *request)
{
    arena_reset(&sim->scratch);
    if (sim->press_tool.len) broken(sim, "a button asks the model");
    if (request->round != sim->log.turns + 1)
        broken(sim, "turn %u is asked for, and %u are facts", request->round, sim->log.turns);
    each_has_a_result(sim, "the model is asked");
    for (size_t i = 0; i < sim->world.call_count; i++)
        if (rows_of(sim, sim->world.calls[i].result_id) != 1)
            broken(sim, "%.*s does not stand in history once",
                   STR_ARG(sim->world.calls[i].call_id));
    check_offered(sim, request->tools);
    size_t results = 0, calls = 0;
    for (size_t i = 0; i < request->count && !sim->broken[0]; i++) {
        results += str_eq(request->messages[i].role, STR("tool"));
        if (request->messages[i].tool_calls.len) check_results_follow(sim, request, i);
    }
    calls = sim->world.call_count;
    for (size_t i = 0; i < sim->world.message_count; i++)
        calls +=
            sim->world.messages[i].hints.len > 0; /* cards: no rows, but the model called them */
    if (results != calls) broken(sim, "%zu calls and %zu results in the context", calls, results);
}

/* ---- 7: the end ---- */

static void check_ended(struct sim *sim)
{
    const struct world *world = &sim->world;
    if (run_status_open(world->run.status)) broken(sim, "the run ended and is still open");
    if (world->version || world->damaged) broken(sim, "the run ended and left a snapshot");
    for (size_t i = 0; i < world->interaction_count; i++)
        if (world->interactions[i].status == INTERACTION_OPEN)
            broken(sim, "the run ended and a question is open");
    for (size_t i = 0; i < world->call_count; i++) {
        const struct call *call = &world->calls[i];
        const struct deed *deed = deed_of(sim, call->call_id);
        if (!call_state_settled(call->state) || !call->result_id.len)
            broken(sim, "the run ended and a call is %s", call_state_name(call->state));
        bool own = call->run == world->run.id && deed && deed->front;
        sim->coverage->fronts[FRONT_DROPPED] += own && call->state == CALL_CANCELLED;
        if (own && (deed->starts || deed->executions)) broken(sim, "we executed the client's call");
    }
    size_t made = 0;
    for (size_t i = 0; i < sim->deed_count; i++) made += sim->deeds[i].run == world->run.id;
    bool done = world->run.status == RUN_COMPLETED;
    if (sim->press_tool.len && (made > 1 || (done && !made) || sim->log.turns > 1))
        broken(sim, "a button made %zu calls in %u turns", made, sim->log.turns);
    for (size_t i = 0; i < world->fact_count; i++)
        if (world->facts[i].seq != (int64_t)i + 1) broken(sim, "a gap before fact %zu", i + 1);
}

/* ---- behind a commit ---- */

void check_stored(struct sim *sim, const struct input *input, const struct outcome *o)
{
    if (sim->broken[0]) return;
    if (o->ended) {
        check_ended(sim);
        return;
    }
    if (input) check_call_rows(sim, input, o);
    check_state(sim, o);
    if (one_in(&sim->chance, 4)) check_same(sim, o);
}
