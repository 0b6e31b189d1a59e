/* SPDX-License-Identifier: Apache-2.0
 *
 * Node execute: calls start, end or are lost, and are shown; the last look at policy and binding.
 *
 *   proposed --+-- policy says confirm --> waiting -- approve, edit --> approved --+
 *              |                              |  reject, respond --> rejected      |
 *              |                              '- cancel, expiry ---> cancelled     |
 *              +-- policy allows ------------------------------------------------->+ on_start
 *                                                                                  v
 *   approved <-- retry -- uncertain <-- nobody knows, a write -- started -- on_result --> done, failed
 *
 * Between started and done the outcome is in doubt, nowhere else. A result is first in the journal
 * (on_result), then a fact (show_results): what has happened is never forgotten on the way.
 */
#include "agent/core/node.h"
#include "base/limits.h"
#include "base/plant.h"
#include "base/rows.h"
#include "store/table/blob_path.h"
#include "tool/schema.h"
#include "tool/tools.h"
#include "ui/summary.h"
#include "ui/text.h"

bool call_ready(const struct call *call)
{
    return call->state == CALL_PROPOSED || call->state == CALL_APPROVED;
}

bool has_state(const struct step *step, enum call_state state)
{
    for (size_t i = 0; i < step->call_count; i++)
        if (step->calls[i].call.state == state) return true;
    return false;
}

/* ---- ends that no tool has a part in ---- */

/* `error` NULL: the text is the result, as the person gave it. */
void end_call(struct step *step, struct work_call *work, enum call_state state, const char *error,
              str text)
{
    struct call *call = &work->call;
    work->touched = true;
    call->state = state;
    call->error = error ? str_c(error) : STR_EMPTY;
    call->content = text;
    call->model_text = tool_text_cut(step->arena, text, CALL_MODEL_BYTES_MAX, step->state->locale);
    call->result = error ? STR_EMPTY : text_json(step->arena, text);
    call->result_bytes = call->result.len;
    call->ended = step->now;
}

void end_unstarted(struct step *step, enum text text)
{
    for (size_t i = 0; i < step->call_count; i++) {
        struct work_call *work = &step->calls[i];
        if (!call_ready(&work->call) && work->call.state != CALL_WAITING) continue;
        if (PLANT(CANCEL_FORGETS) && work->call.state == CALL_APPROVED) continue;
        end_call(step, work, CALL_CANCELLED, "cancelled", step_say(step, text, STR_EMPTY));
    }
}

void end_started(struct step *step)
{
    for (size_t i = 0; i < step->call_count; i++) {
        struct work_call *work = &step->calls[i];
        bool started = work->call.state == CALL_STARTED;
        if (!started && work->call.state != CALL_UNCERTAIN) continue;
        end_call(step, work, CALL_FAILED, "unknown_outcome",
                 step_say(step, TEXT_UNKNOWN, STR_EMPTY));
        if (started && work->call.rule.len)
            add_audit(step, AUDIT_ENDED, NULL, &work->call, STR("uncertain"), work->call.args);
    }
}

/* ---- start ---- */

/* The approval lapsed with the schema it was given for: the call is asked for again. */
static bool schema_changed(struct step *step, const struct call *call, const struct tool *tool)
{
    str shown = call->rule, now = confirm_rule(step->arena, &(struct judgement){0}, tool);
    while (shown.len && shown.p[0] != '#') shown = str_drop(shown, 1);
    return call->rule.len && !str_eq(shown, now) && !PLANT(SCHEMA_UNCHECKED);
}

static void start_call(struct step *step, struct work_call *work, str grant_id)
{
    move_to_stage(step, STAGE_EXECUTION);
    work->touched = work->started = true;
    work->call.state = CALL_STARTED;
    work->call.attempts++;
    work->call.started = step->now;
    if (work->call.write)
        add_audit(step, AUDIT_STARTED, NULL, &work->call, grant_id.len ? grant_id : work->call.tool,
                  work->call.args);
}

static void ask_again(struct step *step, struct work_call *work, const struct tool *tool,
                      const struct judgement *judged, const struct json *args)
{
    struct outcome *out = step->out;
    if (work->call.rule.len) {
        *ROWS_ADD(step->arena, out->superseded, out->superseded_count) = work->call.call_id;
        add_audit(step, AUDIT_RESOLVED, NULL, &work->call, STR("supersede"), work->call.args);
    }
    open_confirm(step, work, tool, judged, args);
}

/* The last look before it leaves: tool, arguments, binding, policy. */
static void try_start(struct step *step, struct work_call *work)
{
    const struct agent *agent = step->input->agent;
    struct call *call = &work->call;
    const struct tool *tool = step_tool(step, call->tool);
    struct json *args = NULL;
    struct fault why = {0};
    if (!tool) {
        end_call(step, work, CALL_FAILED, "tool_unavailable",
                 step_say(step, TEXT_NO_TOOL, call->tool));
        return;
    }
    bool intact = json_parse(step->arena, call->args, &args, NULL) == OK;
    if (!intact || (call->rule.len && !call_intact(step, call))) {
        refuse_binding(step, work);
        return;
    }
    if (schema_check(tool->args, args, "args", &why)) { /* the tool is another since */
        end_call(step, work, CALL_FAILED, "invalid_arguments",
                 step_say(step, TEXT_BAD_ARGS, str_c(why.text)));
        return;
    }
    struct judgement judged = policy_judge(step->arena, &agent->policy, &agent->policy_settings,
                                           tool, args, &step->view->grants);
    /* A call that ran under `allow` and is to be repeated has no approval to show. */
    bool approved = call->state == CALL_APPROVED && call->rule.len;
    if (judged.verdict == VERDICT_DENY) {
        end_call(step, work, CALL_FAILED, "policy_changed",
                 step_say(step, TEXT_POLICY_CHANGED, call->tool));
        add_audit(step, AUDIT_REFUSED, NULL, call, STR("policy_changed"), call->args);
    } else if (schema_changed(step, call, tool) ||
               (judged.verdict == VERDICT_CONFIRM && !approved)) {
        ask_again(step, work, tool, &judged, args);
    } else {
        start_call(step, work, judged.grant_id);
    }
}

void on_start(struct step *step)
{
    unsigned started = 0;
    for (size_t i = 0; i < step->call_count; i++)
        started += step->calls[i].call.state == CALL_STARTED;
    for (size_t i = 0; i < step->call_count && started < CALLS_STARTED_MAX; i++) {
        if (!call_ready(&step->calls[i].call)) continue;
        try_start(step, &step->calls[i]);
        started += step->calls[i].call.state == CALL_STARTED;
    }
    settle(step);
}

/* ---- end ---- */

/* Behind what the model has to know beside the result: that a person changed the call. */
static str with_note(struct step *step, str note, str text)
{
    const str parts[] = {note, STR("\n"), text};
    return note.len ? text_join(step->arena, parts, COUNT(parts)) : text;
}

/* They are the person's as those that people send. */
static void add_files(struct step *step, struct call *call, const struct call_end *end)
{
    struct outcome *out = step->out;
    call->attachments = attachments_store(step->arena, end->files, end->file_count);
    for (size_t i = 0; i < end->file_count; i++) {
        struct attachment *row = ROWS_ADD(step->arena, out->files, out->file_count);
        *row = end->files[i];
        row->owner = step->state->user_id;
        row->thread_id = step->state->conversation_id;
    }
}

void on_result(struct step *step)
{
    struct work_call *work = find_call(step, step->input->call_id);
    if (!work || work->call.state != CALL_STARTED) return;
    const struct call_end *end = &step->input->result;
    struct call *call = &work->call;
    work->touched = true;
    begin_leg(step); /* it may have waited for a person, and does not any more */
    drop_questions(step, work);
    call->state = end->failed ? CALL_FAILED : CALL_DONE;
    call->error = end->error;
    call->content = end->content;
    call->model_text = with_note(step, call->model_text, end->model_text);
    call->result = end->result;
    call->spool = end->spool;
    call->result_hash = end->result_hash;
    call->result_bytes = end->result_bytes;
    call->ui_hints = end->ui_hints;
    add_files(step, call, end);
    call->ended = step->now;
    if (call->write)
        add_audit(step, AUDIT_ENDED, NULL, call, str_c(call_state_name(call->state)),
                  call->model_text);
}

/* In a run that is being cancelled nobody is asked, and about a read nobody has to be: it cannot be
 * repeated because its tool is gone. */
void on_lost(struct step *step)
{
    struct work_call *work = find_call(step, step->input->call_id);
    if (!work || work->call.state != CALL_STARTED) return;
    begin_leg(step);
    str question = drop_questions(step, work);
    if (!work->call.write) {
        bool stopped = step->view->cancelling;
        end_call(step, work, stopped ? CALL_CANCELLED : CALL_FAILED,
                 stopped ? "cancelled" : "tool_unavailable",
                 step_say(step, stopped ? TEXT_CANCELLED : TEXT_NO_TOOL, work->call.tool));
        show_results(step);
    } else if (step->view->cancelling) {
        end_call(step, work, CALL_FAILED, "unknown_outcome",
                 step_say(step, TEXT_UNKNOWN, STR_EMPTY));
        show_results(step);
    } else {
        work->touched = true;
        work->call.state = CALL_UNCERTAIN;
        open_uncertain(step, work, question);
    }
    if (work->call.write)
        add_audit(step, AUDIT_ENDED, NULL, &work->call, STR("uncertain"), work->call.args);
    settle(step);
}

/* ---- show ---- */

/* {"tool_call_id", "tool_name", "run_id", "stage", "task_id"?, "storage_bucket"?, "storage_path"?,
 * "summary_version", "storage_missing"?}; the last one stays last (store/table/blob_rows.c) */
static str row_metadata(struct step *step, const struct call *call, const struct payload *payload)
{
    const struct state *state = step->state;
    AUTO(buf_done) struct buf buf;
    buf_init(&buf, FACT_FRAME_BYTES_MAX);
    struct json_writer w;
    json_write_begin(&w, &buf);
    json_object(&w);
    json_member(&w, STR("tool_call_id"), call->call_id);
    json_member(&w, STR("tool_name"), call->tool);
    json_member(&w, STR("run_id"), state->trace_id);
    json_member(&w, STR("stage"), str_c(stage_name((enum stage)call->stage)));
    if (state->task_id.len) json_member(&w, STR("task_id"), state->task_id);
    if (payload) {
        json_member(&w, STR("storage_bucket"), BUCKET_PAYLOADS);
        json_member(&w, STR("storage_path"), payload->path);
    }
    json_member_u64(&w, STR("summary_version"), SUMMARY_VERSION);
    if (payload && !payload->stored) {
        json_member_bool(&w, STR("storage_missing"), true);
    }
    json_object_end(&w);
    assert(!buf.full);
    return arena_str(step->arena, buf_str(&buf));
}

/* {"toolCallId", "toolName", "args", "error"?} */
static str row_tool(struct step *step, const struct call *call)
{
    AUTO(buf_done) struct buf buf;
    buf_init(&buf, FACT_FRAME_BYTES_MAX + call->args.len + 6 * call->error.len);
    struct json_writer w;
    json_write_begin(&w, &buf);
    json_object(&w);
    json_member(&w, STR("toolCallId"), call->call_id);
    json_member(&w, STR("toolName"), call->tool);
    json_member_raw(&w, STR("args"), call->args);
    if (call->error.len) json_member(&w, STR("error"), call->error);
    json_object_end(&w);
    assert(!buf.full);
    return arena_str(step->arena, buf_str(&buf));
}

/* What the call left behind: as whoever put it has made it, or made here and still to be put. One
 * that never ran left nothing but what was said about it. */
static const struct payload *payload_of(struct step *step, const struct call *call)
{
    const struct input *input = step->input;
    if (!call->started) return NULL;
    for (size_t i = 0; i < input->payload_count; i++)
        if (str_eq(input->payloads[i].call_id, call->call_id)) return &input->payloads[i];
    struct payload *payload = ARENA_NEW(step->arena, struct payload);
    payload_make(step->arena,
                 &(struct payload_source){.call = call,
                                          .locale = step->state->locale,
                                          .run_id = step->state->trace_id,
                                          .user_id = step->state->user_id,
                                          .tools = input->tools},
                 payload);
    return payload;
}

/* The rows of its objects. Once they are stored the call's row keeps nothing of them. */
static void add_blobs(struct step *step, struct call *call, const struct payload *payload)
{
    struct outcome *out = step->out;
    struct blob_row row = {.bucket = BUCKET_PAYLOADS,
                           .path = payload->path,
                           .message_id = call->result_id,
                           .waiting = !payload->stored,
                           .bytes = payload->bytes,
                           .size = payload->bytes.len};
    *ROWS_ADD(step->arena, out->blobs, out->blob_count) = row;
    if (payload->result_path.len) {
        row.path = payload->result_path;
        row.bytes = STR_EMPTY;
        row.size = call->result_bytes;
        row.spool = call->spool;
        *ROWS_ADD(step->arena, out->blobs, out->blob_count) = row;
    }
    call->stored = payload->stored;
    if (payload->stored && payload->result_path.len) call->spool = STR_EMPTY;
}

static str message_ref(struct step *step, const struct call *call, const char *what)
{
    return arena_printf(step->arena, "/api/v1/agent/threads/%.*s/messages/%.*s/%s",
                        STR_ARG(step->state->conversation_id), STR_ARG(call->result_id), what);
}

/* One line about what never ran. An answer is a result, and stays whole. */
static str said_about(struct step *step, const struct call *call)
{
    bool answer = str_eq(call->tool, tool_ask_user.name);
    return answer ? call->content : ui_line(step->arena, call->content, SUMMARY_CHARS_MAX);
}

static void show_result(struct step *step, struct work_call *work)
{
    struct call *call = &work->call;
    const struct payload *payload = payload_of(step, call);
    work->touched = true;
    call->result_id = work->shown_as.len ? work->shown_as : step_id(step, "msg_");
    struct tool_result_fact fact = {.call = call,
                                    .args = call->args,
                                    .content = payload ? payload->content : said_about(step, call)};
    if (call->spool.len || call->result.len > CALL_FACT_BYTES_MAX)
        fact.ref = message_ref(step, call, "result");
    if (payload && payload->ui.len > CARD_FACT_BYTES_MAX) {
        fact.ui_ref = message_ref(step, call, "ui");
    } else if (payload) {
        fact.ui = payload->ui;
        if (payload->ui_hints.len <= CARD_FACT_BYTES_MAX) fact.ui_hints = payload->ui_hints;
    }
    add_fact(step, FACT_TOOL_RESULT, fact_tool_result(step->arena, &fact));
    add_message(step, (struct message){
                          .id = call->result_id,
                          .role = STR("tool"),
                          .content = text_json(step->arena, fact.content),
                          .metadata = row_metadata(step, call, payload),
                          .tool = row_tool(step, call),
                          .attachments = call->attachments,
                          .plain = fact.content,
                      });
    if (payload) add_blobs(step, call, payload);
}

void show_results(struct step *step)
{
    for (size_t i = 0; i < step->call_count; i++) {
        struct work_call *work = &step->calls[i];
        bool shown = work->call.result_id.len;
        if (PLANT(RESULT_TWICE) && work->call.state == CALL_REJECTED) shown = false;
        if (call_state_settled(work->call.state) && !shown) show_result(step, work);
    }
}
