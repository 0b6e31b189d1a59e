/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step should come to, said a second time in other words: which state each call is in behind
 * a turn of the model, behind an answer, behind a start. It knows what the model meant, what people
 * were shown and what the installation is like, and nothing of how the graph decides. On the way it
 * writes down people's words in the deeds, for the counter outside.
 */
#include "base/limits.h"
#include "sim.h"
#include "tool/tools.h"

struct fate_of_call {
    enum call_state state;
    const char *error; /* NULL: none */
    bool wrong;        /* the model has to correct it */
    bool front;        /* the client executes it */
};

static const struct fate_of_call waiting = {.state = CALL_WAITING};
static const struct fate_of_call with_client = {.state = CALL_WAITING, .front = true};

static struct fate_of_call failed(const char *error)
{
    return (struct fate_of_call){.state = CALL_FAILED, .error = error};
}

static const struct call *changed(const struct outcome *o, str call_id)
{
    for (size_t i = 0; i < o->call_count; i++)
        if (str_eq(o->calls[i].call.call_id, call_id)) return &o->calls[i].call;
    return NULL;
}

static void compare(struct sim *sim, const char *when, const struct call *call,
                    const struct fate_of_call *expected)
{
    if (!call) {
        broken(sim, "behind %s a call is not touched", when);
        return;
    }
    str error = expected->error ? str_c(expected->error) : STR_EMPTY;
    if (call->state != expected->state || !str_eq(call->error, error))
        broken(sim, "behind %s a call of %.*s is %s (%.*s) instead of %s (%.*s)", when,
               STR_ARG(call->tool), call_state_name(call->state), STR_ARG(call->error),
               call_state_name(expected->state), STR_ARG(error));
}

static const struct json *parse(struct sim *sim, str text)
{
    struct json *json = NULL;
    return json_parse(&sim->scratch, text, &json, NULL) ? NULL : json;
}

/* ---- a turn ---- */

struct sorting {
    struct sim *sim;
    const struct view *view;
    const int *settings;
    unsigned confirms, started;
    bool plan;
};

static struct fate_of_call sort_tool(struct sorting *s, int fake, str args_text)
{
    struct sim *sim = s->sim;
    bool pressed = sim->press_tool.len; /* a person wants it: no plan comes first */
    const struct json *args = parse(sim, args_text);
    enum form form = sim->house.forms[fake];
    if (form == FORM_GONE)
        return client_offers(sim, str_c(fake_name((enum fake)fake))) ? with_client
                                                                     : failed("tool_unavailable");
    if (!form_takes(form, args)) {
        struct fate_of_call wrong = failed("invalid_arguments");
        wrong.wrong = true;
        return wrong;
    }
    if (sim->house.agent.plan == PLAN_ALWAYS && fake_write((enum fake)fake) &&
        !s->view->state.plan.count && !pressed)
        return failed("plan_first");
    enum verdict verdict = verdict_of(sim, s->settings, (enum fake)fake, args);
    if (verdict == VERDICT_DENY) return failed("policy_denied");
    if (verdict == VERDICT_CONFIRM)
        return s->confirms++ < CONFIRMS_OPEN_MAX ? waiting : failed("too_many_confirms");
    bool room = s->started++ < CALLS_STARTED_MAX;
    return (struct fate_of_call){.state = room ? CALL_STARTED : CALL_PROPOSED};
}

static struct fate_of_call sort_one(struct sorting *s, size_t at)
{
    struct sim *sim = s->sim;
    const struct speech *speech = &sim->process.speech;
    const struct agent *agent = &sim->house.agent;
    enum call_kind kind = speech->kinds[at];
    struct fate_of_call wrong = failed("invalid_arguments");
    wrong.wrong = true;
    if (kind == KIND_NO_JSON) return wrong;
    if (kind == KIND_NO_TOOL) return failed("tool_unavailable");
    if (kind == KIND_ASK && !agent->ask_user) return failed("not_offered");
    if (kind == KIND_PLAN && (agent->plan == PLAN_NEVER || s->view->state.plan.count))
        return failed("not_offered");
    int fake = fake_of(speech->calls[at].name);
    if (kind == KIND_TOOL || kind == KIND_BAD || (kind == KIND_FRONT && fake >= 0))
        return sort_tool(s, fake, speech->calls[at].args);
    if (kind == KIND_FRONT)
        return client_offers(sim, speech->calls[at].name) ? with_client
                                                          : failed("tool_unavailable");
    if (speech->bad[at]) return wrong;
    if (kind == KIND_ASK) return waiting;
    if (s->plan) return failed("not_offered"); /* the second of one turn */
    s->plan = true;
    return s->confirms++ < CONFIRMS_OPEN_MAX ? waiting : failed("too_many_confirms");
}

/* A button: one call, with words of nobody, and no correction to wait for. */
static void press_turn(struct sim *sim, const struct view *view, const struct outcome *o,
                       const int *settings)
{
    struct sorting s = {.sim = sim, .view = view, .settings = settings};
    int fake = fake_of(sim->press_tool);
    struct fate_of_call fate =
        fake < 0 ? failed("tool_unavailable") : sort_tool(&s, fake, sim->press_args);
    if (o->call_count != 1) {
        broken(sim, "a button makes %zu calls", o->call_count);
        return;
    }
    compare(sim, "a press", &o->calls[0].call, &fate);
    struct deed *deed = deed_of(sim, o->calls[0].call.call_id);
    if (deed) deed->front = fate.front;
    if (!str_eq(o->calls[0].call.tool, sim->press_tool)) broken(sim, "a button calls another tool");
    bool over = fate.state == CALL_FAILED;
    if (over != (o->status == RUN_COMPLETED)) broken(sim, "a press that failed goes on");
    sim->log.wrong = fate.wrong;
}

bool oracle_is_card(const struct sim *sim, const struct view *view, size_t at)
{
    const struct speech *speech = &sim->process.speech;
    if (sim->press_tool.len || graph_node(&view->state) == NODE_DELIVER) return false;
    return speech->kinds[at] == KIND_CARD && !speech->bad[at];
}

/* The message of the turn has the card, or none. */
static void check_card(struct sim *sim, const struct outcome *o, str hints)
{
    for (size_t i = 0; i < o->message_count; i++) {
        const struct message *row = &o->messages[i];
        if (!str_eq(row->role, STR("assistant"))) continue;
        if (!str_eq(row->hints, hints) || !row->ui.len != !hints.len)
            broken(sim, "a message has another card than the model shows");
        str data = o->facts[row->seq - 1].data;
        if ((str_find(data, STR(",\"ui\":{")) >= 0) != (hints.len > 0))
            broken(sim, "a card stands in the row or in the fact alone");
    }
}

void oracle_turn(struct sim *sim, const struct view *view, const struct input *input,
                 const struct outcome *o, const int *settings)
{
    struct sorting s = {.sim = sim, .view = view, .settings = settings};
    struct fate_of_call fates[TURN_CALLS_MAX];
    size_t count = input->turn.call_count, cards = 0;
    str shown = STR_EMPTY; /* the hints of the first card */
    bool wrong = false;
    for (size_t i = 0; i < count; i++)
        if (oracle_is_card(sim, view, i) && !cards++) shown = input->turn.calls[i].args;
    if (sim->press_tool.len) {
        press_turn(sim, view, o, settings);
        return;
    }
    check_card(sim, o, shown);
    if (count == cards || graph_node(&view->state) == NODE_DELIVER) {
        if (o->call_count) broken(sim, "words changed a call");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (oracle_is_card(sim, view, i)) continue;
        fates[i] = sort_one(&s, i);
        wrong = wrong || fates[i].wrong;
    }
    sim->log.wrong = wrong ? sim->log.wrong + 1 : 0;
    bool abort = sim->log.wrong > CORRECTIONS_MAX;
    static const struct fate_of_call dropped = {.state = CALL_CANCELLED, .error = "cancelled"};
    for (size_t i = 0; i < count; i++) {
        if (oracle_is_card(sim, view, i)) continue;
        str id = input->turn.calls[i].call_id;
        compare(sim, "a turn", changed(o, id), abort ? &dropped : &fates[i]);
        struct deed *deed = deed_of(sim, id);
        if (deed) deed->front = fates[i].front && !abort;
    }
    if (o->call_count != count - cards) broken(sim, "%zu calls are rows", o->call_count);
    if (abort != (o->status == RUN_FAILED)) broken(sim, "%u turns to correct", sim->log.wrong);
    if (!abort && o->state.consecutive_corrections != sim->log.wrong)
        broken(sim, "%u corrections are counted, there were %u", o->state.consecutive_corrections,
               sim->log.wrong);
}

/* ---- a start ---- */

/* The row is what the person was shown. */
static bool intact(const struct deed *deed, const struct call *call)
{
    return str_eq(call->tool, deed->asked.tool) && str_eq(call->args, deed->asked.args) &&
           str_eq(call->rule, deed->asked.rule) && str_eq(call->binding, deed->asked.binding);
}

static struct fate_of_call start_one(struct sim *sim, const struct call *call, unsigned *confirms,
                                     const int *settings)
{
    const struct deed *deed = deed_of(sim, call->call_id);
    const struct tool *tool = tools_find(&sim->house.tools, call->tool);
    bool asked = deed->asked.tool.len;
    if (!tool) return failed("tool_unavailable");
    if (asked && !intact(deed, call)) return failed("binding_mismatch");
    int fake = fake_of(call->tool);
    const struct json *args = parse(sim, call->args);
    if (!form_takes(sim->house.forms[fake], args)) return failed("invalid_arguments");
    enum verdict verdict = verdict_of(sim, settings, (enum fake)fake, args);
    if (verdict == VERDICT_DENY) return failed("policy_changed");
    bool lapsed = asked && !str_eq(tool->schema, deed->asked.schema);
    bool approved = asked && deed->approved; /* "retry" alone approves nothing */
    if (lapsed || (verdict == VERDICT_CONFIRM && !approved))
        return (*confirms)++ < CONFIRMS_OPEN_MAX ? waiting : failed("too_many_confirms");
    return (struct fate_of_call){.state = CALL_STARTED};
}

void oracle_start(struct sim *sim, const struct view *view, const struct outcome *o,
                  const int *settings)
{
    unsigned started = 0, confirms = 0, lapsed = 0;
    for (size_t i = 0; i < view->calls.count; i++)
        started += view->calls.rows[i].state == CALL_STARTED;
    for (size_t i = 0; i < view->open.count; i++)
        confirms += view->open.rows[i].type == INTERACTION_CONFIRM;
    for (size_t i = 0; i < view->calls.count; i++) {
        const struct call *call = &view->calls.rows[i];
        bool ready = call->state == CALL_PROPOSED || call->state == CALL_APPROVED;
        if (!ready || started >= CALLS_STARTED_MAX) continue;
        struct fate_of_call fate = start_one(sim, call, &confirms, settings);
        lapsed += fate.state == CALL_WAITING && deed_of(sim, call->call_id)->asked.tool.len;
        compare(sim, "a start", changed(o, call->call_id), &fate);
        started += fate.state == CALL_STARTED;
    }
    if (lapsed > o->superseded_count) broken(sim, "an approval lapsed and is not superseded");
}

/* ---- an answer ---- */

static const struct call *loaded(const struct view *view, str call_id)
{
    for (size_t i = 0; i < view->calls.count; i++)
        if (str_eq(view->calls.rows[i].call_id, call_id)) return &view->calls.rows[i];
    return NULL;
}

/* Both rows are what was shown first. */
static bool unharmed(const struct deed *deed, const struct interaction *row,
                     const struct call *call)
{
    return intact(deed, call) && str_eq(row->args, deed->asked.args) &&
           str_eq(row->binding, deed->asked.binding);
}

static struct fate_of_call answer_ask(enum decision decision)
{
    if (decision == DECISION_CANCEL)
        return (struct fate_of_call){.state = CALL_CANCELLED, .error = "cancelled"};
    if (decision == DECISION_EXPIRE)
        return (struct fate_of_call){.state = CALL_CANCELLED, .error = "expired"};
    return (struct fate_of_call){.state = CALL_DONE};
}

/* Asked again, if the tool as it is now takes the arguments. */
static struct fate_of_call answer_superseded(struct sim *sim, const struct call *call)
{
    int fake = fake_of(call->tool);
    if (fake < 0 || sim->house.forms[fake] == FORM_GONE) return failed("tool_unavailable");
    if (!form_takes(sim->house.forms[fake], parse(sim, call->args)))
        return failed("invalid_arguments");
    return waiting;
}

static struct fate_of_call answer_confirm(struct sim *sim, const struct interaction *row,
                                          const struct call *call, enum decision decision)
{
    const struct deed *deed = deed_of(sim, call->call_id);
    bool plan = str_eq(row->tool, tool_submit_plan.name);
    switch (decision) {
    case DECISION_APPROVE:
    case DECISION_EDIT:
        if (!unharmed(deed, row, call)) return failed("binding_mismatch");
        return (struct fate_of_call){.state = plan ? CALL_DONE : CALL_APPROVED};
    case DECISION_REJECT:
        return (struct fate_of_call){.state = CALL_REJECTED, .error = "rejected"};
    case DECISION_RESPOND:
        return (struct fate_of_call){.state = CALL_REJECTED};
    case DECISION_SUPERSEDE:
        return answer_superseded(sim, call);
    default:
        return answer_ask(decision);
    }
}

static struct fate_of_call answer_uncertain(enum decision decision)
{
    if (decision == DECISION_RETRY) return (struct fate_of_call){.state = CALL_APPROVED};
    if (decision == DECISION_HAPPENED) return (struct fate_of_call){.state = CALL_DONE};
    return failed("unknown_outcome");
}

/* A tool hears every answer, and goes on or starts again; a server that is away is tried or not. */
static struct fate_of_call answer_tool(struct sim *sim, const struct interaction *row,
                                       const struct call *before, enum decision decision)
{
    if (row->type == INTERACTION_ASK_USER)
        return (struct fate_of_call){.state = asking_state(sim, before)};
    if (decision == DECISION_CONTINUE) return (struct fate_of_call){.state = CALL_APPROVED};
    return failed("tool_unavailable");
}

/* People's last word on a call. */
static void write_down(struct sim *sim, const struct interaction *row, const struct call *call,
                       const struct resolution *r)
{
    struct deed *deed = deed_of(sim, call->call_id);
    bool refuses = r->decision == DECISION_REJECT || r->decision == DECISION_RESPOND ||
                   r->decision == DECISION_CANCEL || r->decision == DECISION_EXPIRE;
    if (row->type == INTERACTION_UNCERTAIN) {
        deed->approved = r->decision == DECISION_RETRY;
        deed->retries += r->decision == DECISION_RETRY;
    } else if (row->type == INTERACTION_CONFIRM) {
        deed->refused = refuses;
        deed->approved = call->state == CALL_APPROVED;
    }
    if (r->decision == DECISION_EDIT && deed->approved) {
        deed->asked.args = keep(sim, r->args);
        deed->asked.binding = keep(sim, call->binding);
    }
}

static void check_settled(struct sim *sim, const struct outcome *o, str id, enum decision decision)
{
    enum interaction_status expected = decision == DECISION_CANCEL      ? INTERACTION_CANCELED
                                       : decision == DECISION_EXPIRE    ? INTERACTION_EXPIRED
                                       : decision == DECISION_SUPERSEDE ? INTERACTION_SUPERSEDED
                                                                        : INTERACTION_RESOLVED;
    for (size_t i = 0; i < o->settled_count; i++)
        if (str_eq(o->settled[i].id, id) && o->settled[i].status == expected) return;
    broken(sim, "%.*s is not %s", STR_ARG(id), interaction_status_name(expected));
}

static void settled_one(struct sim *sim, const struct view *view, const struct outcome *o,
                        const struct interaction *row, const struct resolution *r)
{
    if (row->type == INTERACTION_CONNECTION_LOST && !row->call_id.len) {
        bool goes_on = r->decision == DECISION_CONTINUE;
        if (goes_on == o->ended) broken(sim, "a model that was gone, and a run that does not fit");
        return;
    }
    const struct call *before = loaded(view, row->call_id), *call = changed(o, row->call_id);
    if (!before || !call) {
        broken(sim, "%.*s is settled and its call is not touched", STR_ARG(row->id));
        return;
    }
    struct fate_of_call fate = asking_of_tool(row) ? answer_tool(sim, row, before, r->decision)
                               : row->type == INTERACTION_ASK_USER ? answer_ask(r->decision)
                               : row->type == INTERACTION_UNCERTAIN
                                   ? answer_uncertain(r->decision)
                                   : answer_confirm(sim, row, before, r->decision);
    compare(sim, "an answer", call, &fate);
    write_down(sim, row, call, r);
    check_settled(sim, o, row->id, r->decision);
    bool told = (row->type == INTERACTION_ASK_USER && !asking_of_tool(row)) ||
                r->decision == DECISION_RESPOND;
    if (told && r->text.len && !str_eq(call->model_text, r->text))
        broken(sim, "the model is told something else than the person said");
}

/* A button whose call was refused with words: they are for the model, and the run is one of a
 * message from here on. */
static void hear_words(struct sim *sim, const struct outcome *o, const struct resolution *r)
{
    bool instead = r->decision == DECISION_REJECT || r->decision == DECISION_RESPOND;
    if (!sim->press_tool.len || !instead) return;
    if (o->ended == (r->text.len > 0)) broken(sim, "a button, and words that nobody hears");
    if (r->text.len) sim->press_tool = sim->press_args = STR_EMPTY;
}

/* ---- a result of the client's ---- */

static void count_front(struct sim *sim, const struct view *view, const struct outcome *o,
                        const struct front_result *given, const struct deed *deed)
{
    uint64_t *fronts = sim->coverage->fronts;
    bool declined = str_eq(given->text, STR("not answered"));
    fronts[declined ? FRONT_DECLINED : given->failed ? FRONT_FAILED : FRONT_DONE]++;
    fronts[FRONT_JOINED] += view->leg_open;
    fronts[FRONT_LEFT] += o->status == RUN_WAITING;
    fronts[FRONT_RESTARTED] += deed->crashes != sim->coverage->crashes;
}

/* What the model is told has the text in it, or says that there was none. */
static void check_told(struct sim *sim, const struct call *call, const struct front_result *given)
{
    bool same = str_eq(call->model_text, given->text);
    bool within = given->text.len && str_find(call->model_text, given->text) > 0;
    if (given->failed ? !within && given->text.len : !same && given->text.len)
        broken(sim, "the model is told something else than the client said");
    if (!call->model_text.len) broken(sim, "the model is told nothing");
}

static bool named_before(const struct input *input, size_t at, str message_id)
{
    for (size_t i = 0; i < at; i++)
        if (str_eq(input->fronts[i].message_id, message_id)) return true;
    return false;
}

static bool given_before(const struct input *input, size_t at, str call_id)
{
    for (size_t i = 0; i < at; i++)
        if (str_eq(input->fronts[i].call_id, call_id)) return true;
    return false;
}

/* How many of them were waited for; the others leave no trace. */
static size_t settled_fronts(struct sim *sim, const struct view *view, const struct input *input,
                             const struct outcome *o)
{
    size_t settled = 0;
    for (size_t i = 0; i < input->front_count; i++) {
        const struct front_result *given = &input->fronts[i];
        const struct call *before = world_call(sim, given->call_id);
        const struct call *call = changed(o, given->call_id);
        bool waited =
            before && client_waited_for(sim, before) && !given_before(input, i, given->call_id);
        if (!waited) {
            sim->coverage->fronts[FRONT_FORGED]++;
            if (call && str_eq(call->model_text, given->text) && str_eq(given->text, STR("forged")))
                broken(sim, "a forged result was taken");
            continue;
        }
        settled++;
        struct fate_of_call fate = {.state = given->failed ? CALL_FAILED : CALL_DONE};
        if (given->failed) fate.error = given->text.len ? given->text.p : "failed";
        compare(sim, "a result", call, &fate);
        if (!call) continue;
        check_told(sim, call, given);
        bool own = given->message_id.len && !named_before(input, i, given->message_id);
        if (own && !str_eq(call->result_id, given->message_id))
            broken(sim, "a result does not have the id of the client's message");
        if (!call->result_id.len) broken(sim, "a result of the client's is not shown");
        count_front(sim, view, o, given, deed_of(sim, given->call_id));
    }
    return settled;
}

void oracle_resolve(struct sim *sim, const struct view *view, const struct input *input,
                    const struct outcome *o)
{
    size_t settled = 0, granted = 0;
    for (size_t i = 0; i < input->resolution_count; i++) {
        const struct resolution *r = &input->resolutions[i];
        const struct interaction *row = world_interaction(sim, r->interaction_id);
        if (!row || row->status != INTERACTION_OPEN) continue;
        settled++;
        settled_one(sim, view, o, row, r);
        hear_words(sim, o, r);
        const struct call *call = changed(o, row->call_id);
        granted +=
            r->decision == DECISION_APPROVE && r->always && call && call->state == CALL_APPROVED;
    }
    size_t results = settled_fronts(sim, view, input, o);
    if (!settled && !results && (o->fact_count || o->call_count))
        broken(sim, "an answer to nothing did something");
    if (granted != o->grant_count) broken(sim, "%zu grants were made", o->grant_count);
    if (settled != o->settled_count)
        broken(sim, "%zu are settled, %zu were answered", o->settled_count, settled);
}
