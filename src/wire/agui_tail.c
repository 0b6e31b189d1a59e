/* SPDX-License-Identifier: Apache-2.0
 *
 * The tail of an AG-UI answer: how a leg ended, with its interrupts.
 *
 *     ours                                       RUN_FINISHED.outcome
 *     completed                                  success
 *     interrupted, somebody is asked             interrupt
 *     interrupted, front-end calls only          success, with pendingToolCallIds from 1.0 on
 *     cancelled                                  cancelled; before 1.0 RUN_ERROR "cancelled"
 *     exhausted                                  success, result {"outcome":"exhausted"}
 *     run.error                                  RUN_ERROR
 *     nothing has ever ended here                success
 *
 * Every interrupt is named, however many there are; but those far behind have neither schema nor
 * metadata, since a frame that is too long would end the client's run.
 */
#include <string.h>

#include "agent/core/facts.h"
#include "agent/core/interaction.h"
#include "base/clock.h"
#include "base/limits.h"
#include "wire/agui_int.h"
#include "wire/stored.h"

/* ---- interrupts ---- */

/* type, reason */
static const char *const reasons[INTERACTION_TYPE_COUNT] = {
    [INTERACTION_ASK_USER] = "input_required",
    [INTERACTION_CONFIRM] = "tool_call",
    [INTERACTION_CONNECTION_LOST] = "fermata:connection_lost",
    [INTERACTION_UNCERTAIN] = "fermata:uncertain",
};

/* A client before 1.0 could not even cancel one that has expired, and would be stuck. */
static void write_interrupt(struct json_writer *w, enum agui_profile profile,
                            const struct interaction *interaction, bool bare)
{
    char expires[RFC3339_BYTES];
    json_object(w);
    json_member(w, STR("id"), interaction->id);
    json_member(w, STR("reason"), str_c(reasons[interaction->type]));
    json_member(w, STR("message"), interaction->display_text);
    agui_text_member(w, "toolCallId", interaction->call_id);
    if (!bare) {
        json_key(w, STR("responseSchema"));
        agui_response_schema(w, interaction);
    }
    if (interaction->expires && profile != AGUI_OLD) {
        clock_rfc3339(interaction->expires, expires);
        json_member(w, STR("expiresAt"), str_c(expires));
    }
    if (!bare) { /* the interaction as everybody saw it; a large card only by its address */
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        json_key(w, STR("metadata"));
        json_object(w);
        agui_raw_member(w, "fermata.interaction", fact_interaction_request(&arena, interaction));
        json_object_end(w);
    }
    json_object_end(w);
}

static void write_interrupts(struct agui_frame *frame, enum agui_profile profile,
                             const struct agui_tail *tail)
{
    json_member(&frame->w, STR("type"), STR("interrupt"));
    json_key(&frame->w, STR("interrupts"));
    json_array(&frame->w);
    for (size_t i = 0; i < tail->open_count; i++) {
        bool bare = frame->out->len - frame->start > AGUI_SNAPSHOT_BYTES_MAX / 2;
        write_interrupt(&frame->w, profile, &tail->open[i], bare);
    }
    json_array_end(&frame->w);
}

/* ---- ends ---- */

/* Counts that are not known are left out. */
static void write_usage(struct json_writer *w, const struct agui_tail *tail)
{
    if (!tail->input_tokens && !tail->output_tokens) return;
    json_key(w, STR("usage"));
    json_array(w);
    json_object(w);
    agui_text_member(w, "model", tail->model);
    agui_u64_member(w, "inputTokens", tail->input_tokens);
    agui_u64_member(w, "outputTokens", tail->output_tokens);
    if (tail->input_tokens && tail->output_tokens)
        agui_u64_member(w, "totalTokens", tail->input_tokens + tail->output_tokens);
    json_object_end(w);
    json_array_end(w);
}

static void put_error(struct buf *out, const struct agui_tail *tail, str code, str message)
{
    struct agui_frame frame;
    agui_begin(&frame, out, "RUN_ERROR", 0);
    json_member(&frame.w, STR("message"), message);
    agui_text_member(&frame.w, "code", code);
    if (tail) write_usage(&frame.w, tail);
    agui_end(&frame);
}

static void put_finished(struct buf *out, enum agui_profile profile, const struct agui_tail *tail,
                         str outcome)
{
    struct agui_frame frame;
    bool waits = str_eq(outcome, STR("interrupted"));
    agui_begin(&frame, out, "RUN_FINISHED", 0);
    json_member(&frame.w, STR("threadId"), tail->thread_id);
    json_member(&frame.w, STR("runId"), tail->run_id);
    if (str_eq(outcome, STR("exhausted")))
        agui_raw_member(&frame.w, "result", STR("{\"outcome\":\"exhausted\"}"));
    json_key(&frame.w, STR("outcome"));
    json_object(&frame.w);
    if (str_eq(outcome, STR("cancelled"))) {
        json_member(&frame.w, STR("type"), STR("cancelled"));
    } else if (waits && tail->open_count) {
        write_interrupts(&frame, profile, tail);
    } else {
        str pending = waits ? stored_get(tail->data, STR("pendingToolCallIds")) : STR_EMPTY;
        json_member(&frame.w, STR("type"), STR("success"));
        if (profile != AGUI_OLD && !str_eq(pending, STR("[]")))
            agui_raw_member(&frame.w, "pendingToolCallIds", pending);
    }
    json_object_end(&frame.w);
    write_usage(&frame.w, tail);
    agui_end(&frame);
}

void agui_tail(struct buf *out, enum agui_profile profile, const struct agui_tail *tail)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    if (tail->step.len) agui_step(out, false, 0, tail->step);
    str outcome = stored_text(&arena, tail->data, STR("outcome"));
    if (tail->type && strcmp(tail->type, FACT_RUN_ERROR) == 0)
        put_error(out, tail, stored_text(&arena, tail->data, STR("code")),
                  stored_text(&arena, tail->data, STR("message")));
    else if (profile == AGUI_OLD && str_eq(outcome, STR("cancelled")))
        put_error(out, tail, outcome, STR("The run was cancelled"));
    else
        put_finished(out, profile, tail, outcome);
}

void agui_error(struct buf *out, const char *code, const char *message)
{
    put_error(out, NULL, str_c(code), str_c(message));
}
