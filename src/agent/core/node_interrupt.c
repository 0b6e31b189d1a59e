/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes confirm and interrupt: the run needs a person; what they are asked, and what an answer
 * does.
 *
 * Interactions form a set, and calls that wait for the client (node_front.c) belong to it. The first
 * to open records where the run stands and sets the phase to interrupted; later ones join. Each is
 * settled once, by its id, in any order, and settles its own call; when none is left the run goes on
 * from where the first one found it (settle in graph.c).
 *
 * What a person is asked to approve is made from the stored bytes of the call, never from the
 * model's words. The approval is bound to those bytes (policy.h).
 */
#include "agent/core/node.h"

#include "agent/core/cards.h"
#include "base/limits.h"
#include "base/plant.h"
#include "base/rows.h"
#include "tool/schema.h"
#include "ui/visible.h"

/* ---- opening ---- */

/* The first of a set records the way back. */
void interrupt(struct step *step, str node, enum phase phase)
{
    struct state *state = step->state;
    if (state->phase == PHASE_INTERRUPTED) return;
    if (phase != state->phase) state_set_phase(state, phase);
    state->resume = (struct resume){.node = node, .phase = phase, .step = state->current_step};
    state_set_phase(state, PHASE_INTERRUPTED);
}

str current_node(const struct step *step)
{
    return str_c(node_name(graph_node(step->state)));
}

/* Fill in what all types have, store, show. */
static void open_one(struct step *step, struct interaction interaction)
{
    struct outcome *out = step->out;
    const struct state *state = step->state;
    interaction.id = step_id(step, "int_");
    interaction.status = INTERACTION_OPEN;
    interaction.thread = step->view->thread;
    interaction.run = step->view->run;
    interaction.owner = state->user_id;
    interaction.agent = step->view->agent;
    interaction.thread_id = state->conversation_id;
    interaction.run_id = state->trace_id;
    interaction.resume_node = state->resume.node;
    interaction.resume_phase = str_c(phase_name(state->resume.phase));
    interaction.resume_step = state->resume.step;
    interaction.locale = state->locale;
    if (!interaction.metadata.len) interaction.metadata = STR("{}");
    interaction.opened = step->now;
    interaction.ui = interaction_card(step->arena, &interaction);

    add_fact(step, FACT_REQUEST, fact_interaction_request(step->arena, &interaction));
    interaction.seq = (int64_t)out->fact_count;
    add_message(step, (struct message){
                          .id = interaction.id,
                          .role = interaction_role(&interaction),
                          .content = text_json(step->arena, interaction.display_text),
                          .metadata = interaction_metadata(step->arena, &interaction),
                          .plain = interaction.display_text,
                      });
    add_audit(step, AUDIT_OPENED, &interaction, NULL,
              str_c(interaction_type_name(interaction.type)), interaction.args);
    *ROWS_ADD(step->arena, out->opened, out->opened_count) = interaction;
    step->open[step->open_count++] = interaction;
}

void open_ask(struct step *step, struct work_call *work, const struct interaction *asked)
{
    work->touched = true;
    work->call.state = CALL_WAITING;
    struct interaction interaction = *asked;
    interaction.type = INTERACTION_ASK_USER;
    interaction.call_id = work->call.call_id;
    interrupt(step, current_node(step), step->state->phase);
    open_one(step, interaction);
}

/* Of a tool that is under way, or that ends with it. */
void open_question(struct step *step, struct interaction asked)
{
    asked.type = INTERACTION_ASK_USER;
    interrupt(step, STR("execute"), step->state->phase);
    open_one(step, asked);
}

size_t confirms_open(const struct step *step)
{
    size_t count = 0;
    for (size_t i = 0; i < step->open_count; i++)
        count += step->open[i].type == INTERACTION_CONFIRM;
    return count;
}

/* "<rule>#<16 hex digits of the schema's hash>" */
str confirm_rule(struct arena *arena, const struct judgement *judged, const struct tool *tool)
{
    unsigned char hash[HASH_BYTES];
    crypto_sha256(tool->schema, hash);
    uint64_t head = 0;
    for (size_t i = 0; i < sizeof head; i++) head = head << 8 | hash[i];
    return arena_printf(arena, "%.*s#%016llx", STR_ARG(judged->rule), (unsigned long long)head);
}

static struct bound bound_to(const struct step *step, const struct call *call)
{
    const struct state *state = step->state;
    return (struct bound){.owner = state->bound_owner.len ? state->bound_owner : state->user_id,
                          .run_id = step->state->trace_id,
                          .call_id = call->call_id,
                          .tool = call->tool,
                          .args = call->args,
                          .agent = step->view->agent,
                          .rule = call->rule};
}

static str binding_of(struct step *step, const struct call *call)
{
    char binding[BINDING_BYTES];
    struct bound bound = bound_to(step, call);
    binding_make(step->input->binder, &bound, binding);
    return arena_str(step->arena, str_c(binding));
}

bool call_intact(const struct step *step, const struct call *call)
{
    struct bound bound = bound_to(step, call);
    return PLANT(BINDING_UNCHECKED) || binding_fits(step->input->binder, &bound, call->binding);
}

void refuse_binding(struct step *step, struct work_call *work)
{
    end_call(step, work, CALL_FAILED, "binding_mismatch", step_say(step, TEXT_BINDING, STR_EMPTY));
    add_audit(step, AUDIT_REFUSED, NULL, &work->call, STR("binding_mismatch"), work->call.args);
}

/* True: it may not be asked for, and has its result. */
static bool too_many_confirms(struct step *step, struct work_call *work)
{
    if (confirms_open(step) < CONFIRMS_OPEN_MAX) return false;
    end_call(step, work, CALL_FAILED, "too_many_confirms",
             step_say(step, TEXT_TOO_MANY, STR_EMPTY));
    return true;
}

/* {"model_text": what the model said along with the call}: whoever approves sees it, marked as such. */
static str model_words(struct step *step)
{
    str text = str_trim(step->input->turn.text);
    if (!text.len) return STR("{}");
    bool cut = text.len > CARD_WORDS_BYTES_MAX;
    if (cut) text.len = CARD_WORDS_BYTES_MAX;
    while (cut && text.len && ((unsigned char)text.p[text.len] & 0xc0) == 0x80) text.len--;
    const str words[] = {text, cut ? STR(" …") : STR_EMPTY};
    const str parts[] = {STR("{\"model_text\":"),
                         text_json(step->arena, text_join(step->arena, words, COUNT(words))),
                         STR("}")};
    return text_join(step->arena, parts, COUNT(parts));
}

void open_confirm(struct step *step, struct work_call *work, const struct tool *tool,
                  const struct judgement *judged, const struct json *args)
{
    struct call *call = &work->call;
    if (too_many_confirms(step, work)) return;
    work->touched = true;
    call->state = CALL_WAITING;
    call->rule = confirm_rule(step->arena, judged, tool);
    call->binding = binding_of(step, call);
    str summary = call_summary(step->arena, tool, call->tool, args);
    str shown = ui_visible(step->arena, summary, false);
    str question = step_say(step, TEXT_ASK_CONFIRM, call->tool);
    interrupt(step, current_node(step), step->state->phase);
    open_one(step, (struct interaction){
                       .type = INTERACTION_CONFIRM,
                       .call_id = call->call_id,
                       .approver = judged->approver,
                       .display_text = arena_printf(step->arena, "%.*s %.*s", STR_ARG(question),
                                                    STR_ARG(shown)),
                       .tool = call->tool,
                       .args = call->args,
                       .summary = summary,
                       .args_schema = tool->schema,
                       .risk = str_c(tool_risk_name(tool->risk)),
                       .binding = call->binding,
                       .metadata = model_words(step),
                   });
}

static struct plan plan_of(struct step *step, str args)
{
    struct json *json = NULL;
    struct plan plan = {0};
    if (json_parse(step->arena, args, &json, NULL)) return plan;
    const struct json *steps = json_get(json, STR("steps"));
    plan.steps = arena_array(step->arena, steps ? steps->count : 0, sizeof *plan.steps);
    for (const struct json *s = steps ? steps->child : NULL; s; s = s->next) {
        str content = str_trim(json_text(json_get(s, STR("content"))));
        if (!content.len) continue;
        plan.steps[plan.count++] =
            (struct plan_step){.content = content,
                               .done_when = str_trim(json_text(json_get(s, STR("done_when"))))};
    }
    return plan;
}

/* The question, and the steps below it: whoever reads only text sees what is to be approved. A step
 * is one line, so that none can look like several. */
static str plan_question(struct step *step, str args)
{
    struct plan plan = plan_of(step, args);
    AUTO(buf_done) struct buf text;
    buf_init(&text, args.len + 64 * (plan.count + 2));
    buf_append(&text, step_say(step, TEXT_ASK_PLAN, STR_EMPTY));
    for (size_t i = 0; i < plan.count; i++) {
        buf_printf(&text, "\n%zu. ", i + 1);
        buf_append(&text, text_one_line(step->arena, plan.steps[i].content));
    }
    assert(!text.full);
    return ui_visible(step->arena, arena_str(step->arena, buf_str(&text)), true);
}

/* Its rule has no schema to change with: submit_plan is ours. */
void open_plan(struct step *step, struct work_call *work)
{
    struct call *call = &work->call;
    if (too_many_confirms(step, work)) return;
    work->touched = true;
    call->state = CALL_WAITING;
    call->rule = STR("plan");
    call->binding = binding_of(step, call);
    str question = plan_question(step, call->args);
    bool first = step->state->phase == PHASE_PLANNING;
    interrupt(step, STR("confirm"), first ? PHASE_WAITING_CONFIRM : step->state->phase);
    open_one(step, (struct interaction){
                       .type = INTERACTION_CONFIRM,
                       .call_id = call->call_id,
                       .display_text = question,
                       .tool = call->tool,
                       .args = call->args,
                       .summary = step_say(step, TEXT_ASK_PLAN, STR_EMPTY),
                       .args_schema = tool_submit_plan.schema,
                       .risk = str_c(tool_risk_name(RISK_WRITE)),
                       .binding = call->binding,
                       .metadata = model_words(step),
                   });
}

/* Whoever had to approve it decides whether it may be sent again: "...@role#hash". */
static str rule_approver(str rule)
{
    str before = str_split(&rule, '@');
    (void)before;
    return rule.len ? str_split(&rule, '#') : STR_EMPTY;
}

/* {"question": what the tool was asking} */
static str question_metadata(struct step *step, str question)
{
    const str parts[] = {STR("{\"question\":"), text_json(step->arena, question), STR("}")};
    return question.len ? text_join(step->arena, parts, COUNT(parts)) : STR_EMPTY;
}

static str uncertain_text(struct step *step, str tool, str question)
{
    str text = step_say(step, TEXT_ASK_UNCERTAIN, tool);
    const str parts[] = {text, STR("\n"), step_say(step, TEXT_TOOL_ASKED, question)};
    if (!question.len) return text;
    return ui_visible(step->arena, text_join(step->arena, parts, COUNT(parts)), true);
}

void open_uncertain(struct step *step, struct work_call *work, str question)
{
    const struct call *call = &work->call;
    const struct tool *tool = tools_find(step->input->tools, call->tool);
    struct json *args = NULL;
    if (json_parse(step->arena, call->args, &args, NULL)) args = NULL;
    interrupt(step, STR("execute"), step->state->phase);
    open_one(step, (struct interaction){
                       .type = INTERACTION_UNCERTAIN,
                       .call_id = call->call_id,
                       .approver = rule_approver(call->rule),
                       .display_text = uncertain_text(step, call->tool, question),
                       .metadata = question_metadata(step, question),
                       .tool = call->tool,
                       .args = call->args,
                       .summary = call_summary(step->arena, tool, call->tool, args),
                       .args_schema = tool ? tool->schema : STR("{}"),
                       .risk = str_c(tool_risk_name(tool ? tool->risk : RISK_WRITE)),
                   });
}

void open_connection_lost(struct step *step, str reason)
{
    interrupt(step, current_node(step), step->state->phase);
    open_one(step, (struct interaction){
                       .type = INTERACTION_CONNECTION_LOST,
                       .display_text = step_say(step, TEXT_ASK_MODEL, reason),
                   });
}

/* The server of a tool stays away. */
void open_away(struct step *step, struct work_call *work, str reason)
{
    const struct call *call = &work->call;
    str question = step_say(step, TEXT_ASK_SERVER, call->tool);
    const str parts[] = {question, reason.len ? STR("\n") : STR_EMPTY, reason};
    str text = text_join(step->arena, parts, COUNT(parts)); /* the reason is perhaps the server's */
    interrupt(step, STR("execute"), step->state->phase);
    open_one(step, (struct interaction){
                       .type = INTERACTION_CONNECTION_LOST,
                       .call_id = call->call_id,
                       .display_text = ui_visible(step->arena, text, true),
                       .metadata = STR("{\"cause\":\"tool\"}"),
                   });
}

/* Whom the run is for has gone: before it costs more, somebody has to say that it is still wanted. */
#define ALONE_METADATA STR("{\"cause\":\"disconnect\"}")

void on_alone(struct step *step)
{
    interrupt(step, current_node(step), step->state->phase);
    open_one(step, (struct interaction){
                       .type = INTERACTION_CONNECTION_LOST,
                       .display_text = step_say(step, TEXT_ASK_ALONE, STR_EMPTY),
                       .metadata = ALONE_METADATA,
                   });
    settle(step);
}

/* ---- settling ---- */

static enum interaction_status status_of(enum decision decision)
{
    switch (decision) {
    case DECISION_CANCEL:
        return INTERACTION_CANCELED;
    case DECISION_EXPIRE:
        return INTERACTION_EXPIRED;
    case DECISION_SUPERSEDE:
        return INTERACTION_SUPERSEDED;
    default:
        return INTERACTION_RESOLVED;
    }
}

static const char *decision_word(enum decision decision)
{
    static const char *const words[DECISION_COUNT] = {
        [DECISION_ANSWER] = "answer",       [DECISION_SKIP] = "skip",
        [DECISION_APPROVE] = "approve",     [DECISION_EDIT] = "edit",
        [DECISION_REJECT] = "reject",       [DECISION_RESPOND] = "respond",
        [DECISION_CONTINUE] = "continue",   [DECISION_GIVE_UP] = "give_up",
        [DECISION_RETRY] = "retry",         [DECISION_HAPPENED] = "happened",
        [DECISION_CANCEL] = "cancel",       [DECISION_EXPIRE] = "expire",
        [DECISION_SUPERSEDE] = "supersede",
    };
    return words[decision];
}

/* What the model gets of a decision that is no approval. */
static str node_interrupt_told(struct step *step, const struct interaction *interaction,
                               const struct resolution *r)
{
    bool unsure = interaction->type == INTERACTION_UNCERTAIN;
    if (unsure && r->decision != DECISION_RETRY)
        return step_say(step, r->decision == DECISION_HAPPENED ? TEXT_HAPPENED : TEXT_UNKNOWN,
                        STR_EMPTY);
    switch (r->decision) {
    case DECISION_CANCEL:
        return step_say(step, TEXT_CANCELLED, STR_EMPTY);
    case DECISION_EXPIRE:
        return step_say(step, TEXT_EXPIRED, STR_EMPTY);
    case DECISION_REJECT:
        return r->text.len ? step_say(step, TEXT_REJECTED_SAYING, r->text)
                           : step_say(step, TEXT_REJECTED, STR_EMPTY);
    default:
        return r->text;
    }
}

/* Take it off the open ones; its row and fact say how it was settled. */
static struct interaction close_open(struct step *step, size_t at, const struct resolution *r)
{
    struct outcome *out = step->out;
    struct interaction interaction = step->open[at];
    for (size_t i = at + 1; i < step->open_count; i++) step->open[i - 1] = step->open[i];
    step->open_count--;

    interaction.status = status_of(r->decision);
    interaction.answer = r->answer;
    interaction.text = node_interrupt_told(step, &interaction, r);
    interaction.answered_by = r->by;
    interaction.via = r->via;
    interaction.settled = step->now;
    if (r->decision == DECISION_EDIT)
        interaction.ui = interaction_card_edited(step->arena, &interaction, r->args);
    *ROWS_ADD(step->arena, out->settled, out->settled_count) = interaction;
    add_fact(step, FACT_RESOLVED, fact_interaction_resolved(step->arena, &interaction));
    add_audit(step, AUDIT_RESOLVED, &interaction, NULL, str_c(decision_word(r->decision)),
              r->answer);
    return interaction;
}

/* Does the card name the people that the bound rule names: the owner, or a role behind its '@'? */
static bool asks_rightly(const struct step *step, const struct interaction *interaction, str rule)
{
    str named = str_split(&rule, '#'), role = STR_EMPTY;
    for (size_t i = 0; i < named.len; i++)
        if (named.p[i] == '@') role = str_drop(named, i + 1);
    return str_eq(interaction->owner, step->state->user_id) && str_eq(interaction->approver, role);
}

/* The word lets it run, and call and card are still what was shown first, to whom it was shown. */
static bool approves(struct step *step, struct work_call *work,
                     const struct interaction *interaction, const struct resolution *r)
{
    const struct call *call = &work->call;
    if (r->decision != DECISION_APPROVE && r->decision != DECISION_EDIT) return false;
    if (call_intact(step, call) && str_eq(interaction->args, call->args) &&
        str_eq(interaction->binding, call->binding) && asks_rightly(step, interaction, call->rule))
        return true;
    refuse_binding(step, work);
    return false;
}

static void settle_ask(struct step *step, struct work_call *work,
                       const struct interaction *interaction, const struct resolution *r)
{
    bool gone = r->decision == DECISION_CANCEL || r->decision == DECISION_EXPIRE;
    const char *error = r->decision == DECISION_EXPIRE ? "expired" : gone ? "cancelled" : NULL;
    end_call(step, work, gone ? CALL_CANCELLED : CALL_DONE, error,
             node_interrupt_told(step, interaction, r));
}

/* ---- a plan ---- */

static void adopt_plan(struct step *step, struct work_call *work, const struct resolution *r)
{
    struct state *state = step->state;
    bool edited = r->decision == DECISION_EDIT;
    if (edited) {
        work->call.args = r->args;
        work->call.binding = binding_of(step, &work->call);
    }
    struct plan plan = plan_of(step, work->call.args);
    if (!plan.count) { /* nothing but blanks */
        end_call(step, work, CALL_FAILED, "invalid_arguments",
                 step_say(step, TEXT_PLAN_OFF, STR_EMPTY));
        return;
    }
    plan_begin(state, plan);
    state->resume.phase = PHASE_EXECUTING;
    state->resume.step = 0;
    end_call(step, work, CALL_DONE, NULL,
             edited ? step_say(step, TEXT_PLAN_EDITED, r->args)
                    : step_say(step, TEXT_PLAN_APPROVED, STR_EMPTY));
    if (edited) work->call.content = step_say(step, TEXT_PLAN_CHANGED, STR_EMPTY); /* no JSON */
}

/* Where the run goes on is decided here; it goes there when nothing else of the set is open. */
static void settle_plan(struct step *step, struct work_call *work,
                        const struct interaction *interaction, const struct resolution *r)
{
    step->state->resume.phase = PHASE_PLANNING;
    switch (r->decision) {
    case DECISION_APPROVE:
    case DECISION_EDIT:
        if (approves(step, work, interaction, r)) adopt_plan(step, work, r);
        break;
    case DECISION_CANCEL:
    case DECISION_EXPIRE:
        settle_ask(step, work, interaction, r);
        break;
    default:
        end_call(step, work, CALL_REJECTED, r->decision == DECISION_RESPOND ? NULL : "rejected",
                 node_interrupt_told(step, interaction, r));
        break;
    }
}

/* ---- an approval ---- */

/* The rule is the one that asked, without the hash of the schema behind it. */
static void grant(struct step *step, const struct call *call, const struct interaction *interaction,
                  const struct resolution *r)
{
    str rule = call->rule, named = str_split(&rule, '#');
    struct outcome *out = step->out;
    struct grant *made = ROWS_ADD(step->arena, out->grants, out->grant_count);
    *made = (struct grant){
        .id = step_id(step, "grant_"),
        .owner = step->state->user_id,
        .thread = r->always_user ? 0 : step->view->thread,
        .thread_id = r->always_user ? STR_EMPTY : step->state->conversation_id,
        .tool = interaction->tool,
        .approver = interaction->approver,
        .rule = named,
        .match = r->match.len ? r->match : STR("{}"),
        .made_by = r->by,
        .interaction_id = interaction->id,
        .created = step->now,
    };
    add_audit(step, AUDIT_GRANTED, interaction, NULL, interaction->tool, made->match);
}

/* The tool or its schema is another than was shown: ask anew about the tool as it is. */
static void supersede(struct step *step, struct work_call *work, const struct interaction *old)
{
    const struct tool *tool = tools_find(step->input->tools, work->call.tool);
    struct json *args = NULL;
    struct fault why = {0};
    enum err e = json_parse(step->arena, work->call.args, &args, NULL);
    if (!tool) {
        end_call(step, work, CALL_FAILED, "tool_unavailable",
                 step_say(step, TEXT_NO_TOOL, work->call.tool));
        return;
    }
    if (!e) e = schema_check(tool->args, args, "args", &why);
    if (e) {
        end_call(step, work, CALL_FAILED, "invalid_arguments",
                 step_say(step, TEXT_BAD_ARGS, str_c(why.text)));
        return;
    }
    str rule = old->type == INTERACTION_CONFIRM ? work->call.rule : STR_EMPTY;
    str kept = str_split(&rule, '#');
    open_confirm(step, work, tool, &(struct judgement){.rule = kept, .approver = old->approver},
                 args);
}

static void settle_confirm(struct step *step, struct work_call *work,
                           const struct interaction *interaction, const struct resolution *r)
{
    struct call *call = &work->call;
    work->touched = true;
    switch (r->decision) {
    case DECISION_EDIT:
        if (!approves(step, work, interaction, r)) break;
        call->args = r->args;
        call->model_text =
            step_say(step, TEXT_EDITED, r->args); /* its result is told behind this */
        call->binding = binding_of(step, call);
        call->state = CALL_APPROVED;
        break;
    case DECISION_APPROVE:
        if (!approves(step, work, interaction, r)) break;
        call->state = CALL_APPROVED;
        if (r->always) grant(step, call, interaction, r);
        break;
    case DECISION_RESPOND:
        end_call(step, work, CALL_REJECTED, NULL, r->text);
        break;
    case DECISION_REJECT:
        end_call(step, work, CALL_REJECTED, "rejected", node_interrupt_told(step, interaction, r));
        break;
    case DECISION_SUPERSEDE:
        supersede(step, work, interaction);
        break;
    default:
        if (PLANT(EXPIRY_APPROVES) && r->decision == DECISION_EXPIRE) {
            call->state = CALL_APPROVED;
            break;
        }
        end_call(step, work, CALL_CANCELLED,
                 r->decision == DECISION_EXPIRE ? "expired" : "cancelled",
                 node_interrupt_told(step, interaction, r));
        break;
    }
}

/* The key stays the same, whatever is decided. */
static void settle_uncertain(struct step *step, struct work_call *work,
                             const struct interaction *interaction, const struct resolution *r)
{
    work->touched = true;
    if (r->decision == DECISION_RETRY)
        work->call.state = CALL_APPROVED;
    else if (r->decision == DECISION_HAPPENED)
        end_call(step, work, CALL_DONE, NULL, node_interrupt_told(step, interaction, r));
    else
        end_call(step, work, CALL_FAILED, "unknown_outcome",
                 node_interrupt_told(step, interaction, r));
}

static void give_up(struct step *step, const struct interaction *interaction)
{
    if (str_eq(interaction->metadata, ALONE_METADATA))
        fail_run(step, "aborted", step_say(step, TEXT_LEFT_ALONE, STR_EMPTY), true);
    else
        fail_run(step, "model_unavailable", step_say(step, TEXT_NO_MODEL, STR_EMPTY), true);
}

static void apply(struct step *step, const struct interaction *interaction,
                  const struct resolution *r)
{
    bool lost = interaction->type == INTERACTION_CONNECTION_LOST;
    if (lost && !interaction->call_id.len) {
        if (r->decision != DECISION_CONTINUE) give_up(step, interaction);
        return;
    }
    struct work_call *work = find_call(step, interaction->call_id);
    if (!work) return;
    if (lost)
        settle_away(step, work, interaction, r);
    else if (interaction->type == INTERACTION_ASK_USER) {
        if (!settle_asked(step, work, interaction, r)) settle_ask(step, work, interaction, r);
    } else if (interaction->type == INTERACTION_UNCERTAIN)
        settle_uncertain(step, work, interaction, r);
    else if (str_eq(interaction->tool, tool_submit_plan.name))
        settle_plan(step, work, interaction, r);
    else
        settle_confirm(step, work, interaction, r);
}

static ptrdiff_t find_open(const struct step *step, str id)
{
    for (size_t i = 0; i < step->open_count; i++)
        if (str_eq(step->open[i].id, id)) return (ptrdiff_t)i;
    return -1;
}

void close_question(struct step *step, str interaction_id)
{
    ptrdiff_t at = find_open(step, interaction_id);
    struct resolution r = {.decision = DECISION_SUPERSEDE, .via = STR("run")};
    if (at >= 0) close_open(step, (size_t)at, &r);
}

/* First all are resolved, then the leg begins, then each has its effect. What the client has done is
 * true in any case and comes first. */
void on_resolve(struct step *step)
{
    const struct input *input = step->input;
    size_t count = input->resolution_count, closed = 0;
    bool planned = step->state->plan.count;
    struct interaction *done = arena_array(step->arena, count, sizeof *done);
    const struct resolution **by = arena_array(step->arena, count, sizeof *by);
    for (size_t i = 0; i < count; i++) {
        ptrdiff_t at = find_open(step, input->resolutions[i].interaction_id);
        if (at < 0) continue;
        by[closed] = &input->resolutions[i];
        done[closed++] = close_open(step, (size_t)at, &input->resolutions[i]);
    }
    if (!closed && !front_due(step)) return;
    begin_leg(step);
    end_fronts(step);
    for (size_t i = 0; i < closed && !step->out->ended; i++) apply(step, &done[i], by[i]);
    if (step->out->ended) return;
    show_results(step);
    if (step->state->plan.count && !planned)
        add_fact(step, FACT_PLAN, fact_plan(step->arena, &step->state->plan, 0));
    settle(step);
}

/* ---- the run is cancelled ---- */

void cancel_open(struct step *step)
{
    bool person = step->input->kind != INPUT_DAMAGED;
    while (step->open_count) {
        struct resolution r = {.decision = DECISION_CANCEL,
                               .by = person ? step->state->user_id : STR_EMPTY,
                               .via = person ? STR("cancel") : STR("run")};
        struct interaction interaction = close_open(step, 0, &r);
        struct work_call *work = find_call(step, interaction.call_id);
        if (!work) continue;
        if (work->call.state == CALL_STARTED)
            settle_asked(step, work, &interaction, &r); /* it is under way, and hears of it */
        else if (interaction.type == INTERACTION_UNCERTAIN)
            end_call(step, work, CALL_FAILED, "unknown_outcome",
                     step_say(step, TEXT_UNKNOWN, STR_EMPTY));
        else
            end_call(step, work, CALL_CANCELLED, "cancelled",
                     step_say(step, TEXT_CANCELLED, STR_EMPTY));
    }
}
