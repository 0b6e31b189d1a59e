/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes chat, plan and execute: the model's turn, whose words become facts and whose calls are
 * sorted. The three meet here, for the same things may come of all of them.
 *
 * A turn without calls ends a step of the plan, or the run. Calls are sorted all in one step: those
 * that the model got wrong or may not make get their result at once, questions and approvals open
 * together, those that the client executes wait for it, the rest may start.
 */
#include "agent/core/node.h"

#include "agent/core/front.h"
#include "base/limits.h"
#include "tool/schema.h"
#include "ui/compile.h"

/* ---- words ---- */

/* Previews have shown the message under the id of its attempt, if there were any. */
static str turn_message_id(struct step *step)
{
    str id = step->input->turn.message_id;
    return id.len ? id : step_id(step, "msg_");
}

/* The reasoning's fact has the id of the message it belongs to; its row needs one of its own. */
static void add_reasoning(struct step *step, str message_id, str metadata)
{
    str reasoning = step->input->turn.reasoning;
    if (!reasoning.len) return;
    str content = text_json(step->arena, reasoning);
    add_fact(step, FACT_REASONING_END, fact_reasoning_end(step->arena, message_id, content));
    add_message(step, (struct message){
                          .id = arena_printf(step->arena, "%.*s-reasoning", STR_ARG(message_id)),
                          .role = STR("reasoning"),
                          .content = content,
                          .metadata = metadata,
                          .plain = reasoning,
                      });
}

static str card_ref(struct step *step, str message_id)
{
    return arena_printf(step->arena, "/api/v1/agent/threads/%.*s/messages/%.*s/ui",
                        STR_ARG(step->state->conversation_id), STR_ARG(message_id));
}

/* {"provider","model","data"}, or empty. What was stopped has lost its calls, of which the data may
 * speak. */
static str provider_data(struct step *step)
{
    const struct turn *turn = &step->input->turn;
    if (!turn->provider_data.len) return STR_EMPTY;
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, turn->provider_data.len + FACT_FRAME_BYTES_MAX);
    json_object(&doc.w);
    json_member(&doc.w, STR("provider"), turn->provider);
    json_member(&doc.w, STR("model"), turn->model);
    json_member_raw(&doc.w, STR("data"), turn->provider_data);
    json_object_end(&doc.w);
    assert(!doc.buf.full);
    return json_doc_copy(&doc, step->arena);
}

static str add_turn_named(struct step *step, bool stopped, str tool_calls, str message_id)
{
    const struct turn *turn = &step->input->turn;
    str content = text_json(step->arena, turn->text);
    str metadata = message_metadata(step, stopped);
    add_reasoning(step, message_id, metadata);
    bool large = step->card.len > CARD_FACT_BYTES_MAX;
    bool many_hints = step->card_hints.len > CARD_FACT_BYTES_MAX; /* of a small card, even */
    struct text_end end = {
        .message_id = message_id,
        .content = content,
        .usage = step->usage,
        .stopped = stopped,
        .ui = large ? STR_EMPTY : step->card,
        .ui_ref = large ? card_ref(step, message_id) : STR_EMPTY,
        .ui_hints = large || many_hints ? STR_EMPTY : step->card_hints,
    };
    add_fact(step, FACT_TEXT_END, fact_text_end(step->arena, &end));
    add_message(step, (struct message){
                          .id = message_id,
                          .role = STR("assistant"),
                          .content = content,
                          .metadata = metadata,
                          .tool_calls = tool_calls,
                          .usage = usage_json(step->arena, &step->usage),
                          .provider_data = stopped ? STR_EMPTY : provider_data(step),
                          .plain = turn->text,
                          .ui = step->card,
                          .hints = step->card_hints,
                      });
    return message_id;
}

void add_turn(struct step *step, bool stopped, str tool_calls)
{
    add_turn_named(step, stopped, tool_calls, turn_message_id(step));
}

/* ---- a turn without calls ---- */

static void end_plan_step(struct step *step)
{
    add_turn(step, false, STR_EMPTY);
    count_calls(step);
    plan_move_on(step->arena, step->state);
    add_fact(step, FACT_PLAN,
             fact_plan(step->arena, &step->state->plan, step->state->current_step));
}

static void text_turn(struct step *step, enum node node)
{
    if (node == NODE_DELIVER) {
        deliver_text(step);
    } else if (plan_active(step->state)) {
        end_plan_step(step);
    } else {
        move_to_stage(step, STAGE_REPORT);
        add_turn(step, false, STR_EMPTY);
        finish_run(step, RUN_COMPLETED, NULL);
    }
}

/* ---- calls: what each of them is ---- */

enum sort {
    SORT_WRONG,  /* the model has to correct it */
    SORT_FAILED, /* it may not make it: `error`, `text` */
    SORT_ASK,
    SORT_PLAN,
    SORT_CONFIRM,
    SORT_FRONT, /* the client executes it */
    SORT_RUN,
};

struct sorted {
    enum sort sort;
    const char *error;
    str text;
    struct interaction asked;
    const struct tool *tool;
    struct judgement judged;
    struct json *args;
};

static struct sorted failed(const char *error, str text)
{
    return (struct sorted){.sort = SORT_FAILED, .error = error, .text = text};
}

static struct sorted node_turn_wrong(struct step *step, const char *why)
{
    str text = text_say(step->arena, TEXT_BAD_ARGS, step->state->locale, str_c(why));
    return (struct sorted){.sort = SORT_WRONG, .error = "invalid_arguments", .text = text};
}

static struct sorted sort_ask(struct step *step, const struct call *call)
{
    struct sorted s = {.sort = SORT_ASK};
    struct fault why = {0};
    bool pressed = step->state->press_tool.len; /* another agent asks, not this one's model */
    if (!step->input->agent->ask_user && !pressed)
        return failed("not_offered", step_say(step, TEXT_ASK_OFF, STR_EMPTY));
    if (ask_parse(step->arena, call->args, &s.asked, &why)) return node_turn_wrong(step, why.text);
    return s;
}

static bool plan_offered(const struct step *step)
{
    return step->input->agent->plan != PLAN_NEVER && !step->state->plan.count;
}

static enum err check_schema(struct step *step, str schema_text, const struct json *args,
                             struct fault *why)
{
    struct json *text = NULL;
    struct schema *schema = NULL;
    enum err e = json_parse(step->arena, schema_text, &text, NULL);
    if (!e) e = schema_parse(step->arena, text, &schema, why);
    assert(e == OK); /* ours */
    return schema_check(schema, args, "args", why);
}

static struct sorted sort_plan(struct step *step, const struct json *args)
{
    struct fault why = {0};
    if (!plan_offered(step)) return failed("not_offered", step_say(step, TEXT_PLAN_OFF, STR_EMPTY));
    if (check_schema(step, tool_submit_plan.schema, args, &why))
        return node_turn_wrong(step, why.text);
    return (struct sorted){.sort = SORT_PLAN};
}

static struct sorted sort_tool(struct step *step, const struct call *call, struct json *args)
{
    const struct agent *agent = step->input->agent;
    struct sorted s = {.sort = SORT_RUN, .args = args, .tool = step_tool(step, call->tool)};
    struct fault why = {0};
    if (!s.tool && front_find(&step->view->front, step->input->tools, call->tool))
        return (struct sorted){.sort = SORT_FRONT};
    if (!s.tool) return failed("tool_unavailable", step_say(step, TEXT_NO_TOOL, call->tool));
    if (schema_check(s.tool->args, args, "args", &why)) return node_turn_wrong(step, why.text);
    bool pressed = step->state->press_tool.len;
    if (s.tool->write && agent->plan == PLAN_ALWAYS && !step->state->plan.count && !pressed)
        return failed("plan_first", step_say(step, TEXT_PLAN_FIRST, STR_EMPTY));
    s.judged = policy_judge(step->arena, &agent->policy, &agent->policy_settings, s.tool, args,
                            &step->view->grants);
    if (s.judged.verdict == VERDICT_DENY)
        return failed("policy_denied", step_say(step, TEXT_DENIED, call->tool));
    if (s.judged.verdict == VERDICT_CONFIRM) s.sort = SORT_CONFIRM;
    return s;
}

static enum err compile_card(struct step *step, const struct json *hints, str *ret_ui,
                             struct fault *why)
{
    struct ui_context context = {.locale = step->state->locale,
                                 .request_id = step->input->turn.message_id,
                                 .tool_id = tool_show_card.name,
                                 .trace_id = step->state->trace_id,
                                 .user_id = step->state->user_id};
    return ui_compile(step->arena, hints, &context, ret_ui, why);
}

/* One that is still among the calls has hints that are wrong. */
static struct sorted sort_card(struct step *step, const struct json *args)
{
    struct fault why = {0};
    str ui;
    enum err e = compile_card(step, args, &ui, &why);
    assert(e != OK); /* take_cards has the others */
    return node_turn_wrong(step, arena_printf(step->arena, "%s: %s", why.field, why.text).p);
}

/* Arguments are looked at before anything else. */
static struct sorted sort_call(struct step *step, const struct call *call, str written)
{
    struct json *args = NULL;
    struct json_error why = {0};
    if (written.len > CALL_ARGS_BYTES_MAX)
        return node_turn_wrong(step, "the arguments are too long");
    if (json_parse(step->arena, call->args, &args, &why) || args->type != JSON_OBJECT)
        return node_turn_wrong(step, "the arguments must be a JSON object");
    if (str_eq(call->tool, tool_ask_user.name)) return sort_ask(step, call);
    if (str_eq(call->tool, tool_submit_plan.name)) return sort_plan(step, args);
    if (str_eq(call->tool, tool_show_card.name)) return sort_card(step, args);
    return sort_tool(step, call, args);
}

/* A second plan in one turn would have to be approved beside the first. */
static void refuse_further_plans(struct step *step, struct sorted *sorted)
{
    bool planned = false;
    for (size_t i = 0; i < step->call_count; i++) {
        if (sorted[i].sort != SORT_PLAN) continue;
        if (planned) sorted[i] = failed("not_offered", step_say(step, TEXT_PLAN_OFF, STR_EMPTY));
        planned = true;
    }
}

/* ---- calls: as rows and facts ---- */

/* What the model wrote if it is an object, else that text as a JSON string, so that the fact is
 * JSON in any case. No arguments at all are none. */
static str stored_args(struct step *step, str written)
{
    struct json *json = NULL;
    if (!str_trim(written).len) return STR("{}");
    bool fits = written.len <= CALL_ARGS_BYTES_MAX && utf8_valid(written);
    if (fits && json_parse(step->arena, written, &json, NULL) == OK)
        return json_one_line(step->arena, json->raw);
    return fits ? text_json(step->arena, written) : STR("\"\"");
}

static struct call make_call(struct step *step, const struct turn_call *made, size_t n,
                             str message_id)
{
    const struct tool *tool = step_tool(step, made->name);
    return (struct call){
        .run = step->view->run,
        .call_id = made->call_id.len ? made->call_id : step_id(step, "call_"),
        .message_id = message_id,
        .round = step->state->round_used,
        .n = (uint32_t)n,
        .state = CALL_PROPOSED,
        .stage = graph_tool_is(made->name) ? STAGE_INTENT : STAGE_EXECUTION,
        .write = tool ? tool->write : false,
        .idempotent = tool ? tool->idempotent : false,
        .tool = made->name,
        .provider_id = made->provider_id,
        .args = stored_args(step, made->args),
        .created = step->now,
    };
}

/* [{"id","type":"function","function":{"name","arguments"}}] */
static str calls_json(struct step *step)
{
    size_t bytes = 1024;
    for (size_t i = 0; i < step->call_count; i++)
        bytes += 2 * step->calls[i].call.args.len + step->calls[i].call.tool.len + 1024;
    AUTO(buf_done) struct buf buf;
    buf_init(&buf, 4 * bytes);
    struct json_writer w;
    json_write_begin(&w, &buf);
    json_array(&w);
    for (size_t i = 0; i < step->call_count; i++) {
        const struct call *call = &step->calls[i].call;
        json_object(&w);
        json_member(&w, STR("id"), call->call_id);
        json_member(&w, STR("type"), STR("function"));
        json_key(&w, STR("function"));
        json_object(&w);
        json_member(&w, STR("name"), call->tool);
        json_member(&w, STR("arguments"), call->args);
        json_object_end(&w);
        json_object_end(&w);
    }
    json_array_end(&w);
    assert(!buf.full);
    return arena_str(step->arena, buf_str(&buf));
}

static void take_calls(struct step *step, str message_id)
{
    const struct turn *turn = &step->input->turn;
    step->call_count = turn->call_count;
    step->calls = arena_array(step->arena, turn->call_count, sizeof *step->calls);
    for (size_t i = 0; i < turn->call_count; i++)
        step->calls[i] = (struct work_call){.call = make_call(step, &turn->calls[i], i, message_id),
                                            .added = true};
}

static void act(struct step *step, struct work_call *work, const struct sorted *s)
{
    switch (s->sort) {
    case SORT_WRONG:
    case SORT_FAILED:
        end_call(step, work, CALL_FAILED, s->error, s->text);
        break;
    case SORT_ASK:
        open_ask(step, work, &s->asked);
        break;
    case SORT_PLAN:
        open_plan(step, work);
        break;
    case SORT_CONFIRM:
        open_confirm(step, work, s->tool, &s->judged, s->args);
        break;
    case SORT_FRONT:
        open_front(step, work);
        break;
    case SORT_RUN:
        break; /* proposed: on_start takes it */
    }
}

static void enter_phase(struct step *step)
{
    struct state *state = step->state;
    bool plans = false;
    for (size_t i = 0; i < step->call_count; i++)
        plans = plans || str_eq(step->calls[i].call.tool, tool_submit_plan.name);
    if (state->phase != PHASE_CHATTING) return;
    state_set_phase(state, plans && plan_offered(step) ? PHASE_PLANNING : PHASE_EXECUTING);
}

/* Counts turns with a call that has to be corrected, in a row. True: that was one too many. */
static bool too_many_corrections(struct step *step, const struct sorted *sorted, str *ret_why)
{
    bool any = false;
    for (size_t i = 0; i < step->call_count; i++) {
        if (sorted[i].sort != SORT_WRONG || any) continue;
        any = true;
        *ret_why = sorted[i].text;
    }
    if (!any) step->state->consecutive_corrections = 0;
    return any && ++step->state->consecutive_corrections > CORRECTIONS_MAX;
}

static void call_turn(struct step *step)
{
    struct state *state = step->state;
    str message_id = turn_message_id(step), why = STR_EMPTY;
    state->round_used++;
    take_calls(step, message_id);
    enter_phase(step);
    add_turn_named(step, false, calls_json(step), message_id);
    for (size_t i = 0; i < step->call_count; i++) {
        const struct call *call = &step->calls[i].call;
        add_fact(step, FACT_TOOL_CALL,
                 fact_tool_call(step->arena, call, stage_name((enum stage)call->stage)));
    }

    struct sorted *sorted = arena_array(step->arena, step->call_count, sizeof *sorted);
    for (size_t i = 0; i < step->call_count; i++)
        sorted[i] = sort_call(step, &step->calls[i].call, step->input->turn.calls[i].args);
    refuse_further_plans(step, sorted);
    bool abort = too_many_corrections(step, sorted, &why);
    for (size_t i = 0; i < step->call_count && !abort; i++) act(step, &step->calls[i], &sorted[i]);
    if (abort) {
        end_unstarted(step, TEXT_DROPPED);
        show_results(step);
        fail_run(step, "aborted", step_say(step, TEXT_ABORTED, why), false);
        return;
    }
    show_results(step);
    if (fronts_open(step)) move_to_stage(step, STAGE_EXECUTION); /* they leave with this commit */
    on_start(step);
}

/* ---- the turn ---- */

static bool turn_is_text(const struct turn *turn)
{
    bool text = utf8_valid(turn->text) && utf8_valid(turn->reasoning);
    for (size_t i = 0; i < turn->call_count; i++)
        text = text && utf8_valid(turn->calls[i].name) && utf8_valid(turn->calls[i].provider_id);
    return text;
}

/* The card of a call, if it can be shown. */
static bool is_card(struct step *step, const struct turn_call *call, str *ret_ui, str *ret_hints)
{
    struct json *hints = NULL;
    if (!str_eq(call->name, tool_show_card.name) || call->args.len > CALL_ARGS_BYTES_MAX)
        return false;
    if (json_parse(step->arena, call->args, &hints, NULL) || hints->type != JSON_OBJECT)
        return false;
    if (compile_card(step, hints, ret_ui, NULL)) return false;
    *ret_hints = json_one_line(step->arena, hints->raw);
    return true;
}

/* The first card that can be shown goes with the words of the turn; neither it nor a further one is a
 * call any more. */
static void take_cards(struct step *step)
{
    const struct turn *turn = &step->input->turn;
    struct turn_call *rest = arena_array(step->arena, turn->call_count, sizeof *rest);
    size_t count = 0;
    for (size_t i = 0; i < turn->call_count; i++) {
        str ui, hints;
        if (!is_card(step, &turn->calls[i], &ui, &hints)) {
            rest[count++] = turn->calls[i];
        } else if (!step->card.len) {
            step->card = ui;
            step->card_hints = hints;
        }
    }
    if (count == turn->call_count) return;
    struct input *input = ARENA_NEW(step->arena, struct input);
    *input = *step->input;
    input->turn.calls = rest;
    input->turn.call_count = count;
    step->input = input;
}

void on_turn(struct step *step)
{
    if (graph_node(step->state) != NODE_DELIVER) take_cards(step);
    const struct turn *turn = &step->input->turn;
    enum node node = graph_node(step->state);
    if (!turn_is_text(turn)) {
        fail_run(step, "model_error", STR("The model's answer is not UTF-8"), false);
        return;
    }
    step->state->turns++;
    if (turn->call_count && node != NODE_DELIVER) /* in deliver none were offered */
        call_turn(step);
    else
        text_turn(step, node);
}
