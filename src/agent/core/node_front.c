/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that the client executes: the model calls a front-end tool, and the run waits.
 *
 *   proposed -- on_turn --> waiting -- the client's result --> done, failed
 *                              '------ the run ends ---------> cancelled
 *
 * Such a call waits without an interaction: there is nothing to ask a person, and no policy, approval
 * or schema of ours counts for what happens elsewhere. It joins the set of what the run waits for: the
 * first of the set records the way back, and the run goes on when nothing of the set is left (settle
 * in graph.c). Nothing of it runs on the server, so it is never started, never in doubt, and leaves
 * nothing in object storage. What comes back is the client's word: data, cut like any other result.
 */
#include "agent/core/front.h"
#include "agent/core/node.h"
#include "base/limits.h"
#include "tool/tools.h"
#include "ui/summary.h"

/* ---- waiting ---- */

void open_front(struct step *step, struct work_call *work)
{
    work->touched = true;
    work->call.state = CALL_WAITING;
    interrupt(step, current_node(step), step->state->phase);
}

size_t fronts_open(const struct step *step)
{
    size_t count = 0;
    for (size_t i = 0; i < step->call_count; i++) count += front_waits(&step->calls[i].call);
    return count;
}

/* ---- the result ---- */

/* The text if it is JSON, else a JSON string of it. */
static str result_json(struct step *step, str text, struct json **ret_json)
{
    if (text.len && json_parse(step->arena, text, ret_json, NULL) == OK)
        return json_one_line(step->arena, (*ret_json)->raw);
    return text_json(step->arena, text);
}

/* One line for people, as for any tool: of words the words, of an object its members. */
static str summary_of(struct step *step, const struct call *call, str text,
                      const struct json *result, bool failed)
{
    struct json *args = NULL;
    bool structured = result && (result->type == JSON_OBJECT || result->type == JSON_ARRAY);
    bool quoted = result && result->type == JSON_STRING;
    if (json_parse(step->arena, call->args, &args, NULL)) args = NULL;
    struct summary_source source = {
        .tool = call->tool, .args = args, .locale = step->state->locale};
    if (failed)
        source.error = text.len ? text : STR("");
    else if (structured)
        source.result = result;
    else
        source.content = quoted ? result->text : text;
    return build_tool_content_summary(step->arena, &source);
}

/* A row of the client's own id, unless another of the same request has it. */
static str row_id(const struct step *step, str wanted)
{
    for (size_t i = 0; i < step->call_count; i++)
        if (str_eq(step->calls[i].shown_as, wanted)) return STR_EMPTY;
    return wanted;
}

static void end_front(struct step *step, struct work_call *work, const struct front_result *given)
{
    struct call *call = &work->call;
    struct json *json = NULL;
    str locale = step->state->locale;
    str text = tool_text_cut(step->arena, given->text, CALL_INLINE_BYTES_MAX, locale);
    work->touched = true;
    work->shown_as = row_id(step, given->message_id);
    call->state = given->failed ? CALL_FAILED : CALL_DONE;
    call->ended = step->now;
    if (given->failed) {
        call->error = text.len ? tool_text_head(text, TOOL_ERROR_BYTES_MAX) : STR("failed");
        call->model_text =
            tool_model_text(step->arena,
                            &(struct tool_result){.error = text.len ? text : call->error}, locale);
    } else {
        call->result = result_json(step, text, &json);
        call->result_bytes = call->result.len;
        call->model_text =
            tool_model_text(step->arena, &(struct tool_result){.content = text}, locale);
    }
    call->content = summary_of(step, call, text, json, given->failed);
}

/* A result of a call that does not wait, or of none, is skipped. */
bool front_due(struct step *step)
{
    const struct input *input = step->input;
    for (size_t i = 0; i < input->front_count; i++) {
        const struct work_call *work = find_call(step, input->fronts[i].call_id);
        if (work && front_waits(&work->call)) return true;
    }
    return false;
}

void end_fronts(struct step *step)
{
    const struct input *input = step->input;
    for (size_t i = 0; i < input->front_count; i++) {
        struct work_call *work = find_call(step, input->fronts[i].call_id);
        if (work && front_waits(&work->call)) end_front(step, work, &input->fronts[i]);
    }
}
