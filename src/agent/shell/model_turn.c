/* SPDX-License-Identifier: Apache-2.0
 *
 * The model speaking: attempts, previews, the turn that grows.
 *
 *     model_turn_start ─▶ speaking ── done ──▶ whole, kept until model_turn_forget
 *                      ▲   │
 *                      │   ├── gone or overloaded ──▶ rest, twice as long each time
 *                      └───┼─────────────────────────┘ │ no attempts left
 *                          └── refused, too long ──────┴──▶ down
 */
#include "agent/shell/model_turn.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "net/loop.h"

#define CALL_PREFIX "call_"

/* One tool call that the model is writing. */
struct growing_call {
    char id[sizeof CALL_PREFIX + ID_BYTES];
    str provider_id, name;
    struct buf args;
    bool silent; /* a card: it goes with the words, and is no call to see */
};

/* ---- what is shown ---- */

static void model_turn_show(struct model_turn *model_turn, struct preview preview)
{
    model_turn->shown = true; /* a discard has to follow, should the attempt fail */
    if (!bus_followed(model_turn->bus, model_turn->thread)) return;
    preview.run_id = str_c(model_turn->run_id);
    preview.message_id = str_c(model_turn->message_id);
    preview.at = clock_wall(model_turn->clock);
    bus_preview(model_turn->bus, model_turn->thread, &preview);
}

void model_turn_discard(struct model_turn *model_turn, const char *reason)
{
    if (model_turn->shown)
        model_turn_show(model_turn,
                        (struct preview){.kind = PREVIEW_DISCARD, .delta = str_c(reason)});
    model_turn->shown = false;
}

static void on_text(void *arg, str delta)
{
    struct model_turn *model_turn = arg;
    if (!delta.len) return;
    if (model_turn->text.len == 0)
        model_turn_show(model_turn, (struct preview){.kind = PREVIEW_MESSAGE_START});
    model_turn_show(model_turn, (struct preview){.kind = PREVIEW_TEXT,
                                                 .delta = delta,
                                                 .offset = model_turn->text_units});
    buf_append(&model_turn->text, delta);
    model_turn->text_units += utf8_utf16_units(delta);
}

static void on_reasoning(void *arg, str delta)
{
    struct model_turn *model_turn = arg;
    if (!delta.len) return;
    model_turn_show(model_turn, (struct preview){.kind = PREVIEW_REASONING,
                                                 .delta = delta,
                                                 .offset = model_turn->reasoning_units});
    buf_append(&model_turn->reasoning, delta);
    model_turn->reasoning_units += utf8_utf16_units(delta);
}

static struct preview call_start(const struct growing_call *call)
{
    bool ours = graph_tool_is(call->name);
    return (struct preview){.kind = PREVIEW_CALL_START,
                            .call_id = str_c(call->id),
                            .tool = call->name,
                            .stage = str_c(stage_name(ours ? STAGE_INTENT : STAGE_EXECUTION))};
}

static void on_call(void *arg, size_t index, str provider_id, str name)
{
    struct model_turn *model_turn = arg;
    if (model_turn->words_only) return;
    if (index != model_turn->call_count || index >= CALLS_TURN_MAX) {
        model_turn->overflow = true;
        return;
    }
    if (!model_turn->calls)
        model_turn->calls =
            arena_array(&model_turn->arena, CALLS_TURN_MAX, sizeof *model_turn->calls);
    struct growing_call *call = &model_turn->calls[model_turn->call_count++];
    memcpy(call->id, CALL_PREFIX, sizeof CALL_PREFIX);
    id_random(call->id + sizeof CALL_PREFIX - 1);
    call->provider_id = arena_str(&model_turn->arena, provider_id);
    call->name = arena_str(&model_turn->arena, name);
    buf_init(&call->args, 4 * CALL_ARGS_BYTES_MAX); /* too long is for the graph to say */
    call->silent = str_eq(call->name, tool_show_card.name);
    if (!call->silent) model_turn_show(model_turn, call_start(call));
}

static void on_args(void *arg, size_t index, str delta)
{
    struct model_turn *model_turn = arg;
    if (index >= model_turn->call_count) return;
    struct growing_call *call = &model_turn->calls[index];
    struct preview args = {.kind = PREVIEW_CALL_ARGS, .call_id = str_c(call->id), .delta = delta};
    if (!call->silent) model_turn_show(model_turn, args);
    buf_append(&call->args, delta);
    model_turn->overflow = model_turn->overflow || call->args.full;
}

/* ---- attempts ---- */

void model_turn_forget(struct model_turn *model_turn)
{
    for (size_t i = 0; i < model_turn->call_count; i++) buf_done(&model_turn->calls[i].args);
    arena_reset(&model_turn->arena);
    model_turn->calls = NULL;
    model_turn->call_count = 0;
    buf_clear(&model_turn->text);
    buf_clear(&model_turn->reasoning);
    model_turn->text_units = model_turn->reasoning_units = 0;
    model_turn->usage = (struct model_usage){0};
    model_turn->provider_data = model_turn->provider = model_turn->name = STR_EMPTY;
    model_turn->price = (struct model_price){0};
    model_turn->whole = model_turn->shown = model_turn->overflow = false;
}

static void down(struct model_turn *model_turn, enum err e, const struct fault *why)
{
    model_turn->on_down(model_turn->arg, e, why && why->text[0] ? why->text : err_title(e));
}

/* Twice as long each time, and never at the same moment as others that failed with us: also behind the
 * time for which the provider wants to be left alone, which it has told them all. */
static void model_turn_rest(struct model_turn *model_turn, msec at_least)
{
    msec wait = model_turn->model->retry_ms << (model_turn->attempt - 1);
    uint16_t jitter;
    crypto_random(&jitter, sizeof jitter);
    wait = wait / 2 + wait * jitter / UINT16_MAX / 2;
    timer_start(model_turn->timer, at_least + wait);
}

/* A provider that wants to be left alone for long is away: nothing is held up for it. */
static void broke_off(struct model_turn *model_turn, const struct model_ending *ending)
{
    model_turn_discard(model_turn, "the model's answer broke off");
    model_turn_forget(model_turn);
    if (model_turn->attempt < RUN_ATTEMPTS_MAX &&
        ending->retry_after_ms <= MODEL_RETRY_AFTER_MS_MAX)
        model_turn_rest(model_turn, ending->retry_after_ms);
    else
        down(model_turn, ERR_MODEL_UNAVAILABLE, ending->why);
}

static void failed(struct model_turn *model_turn, const struct fault *why)
{
    model_turn_discard(model_turn, "the model failed");
    model_turn_forget(model_turn);
    down(model_turn, ERR_INTERNAL, why);
}

/* The turn may be saved after the agent has got another model. */
static void keep_model(struct model_turn *model_turn)
{
    model_turn->provider = arena_str(&model_turn->arena, str_c(model_turn->model->provider));
    model_turn->name = arena_str(&model_turn->arena, str_c(model_turn->model->name));
    model_turn->price = model_turn->model->price;
}

static void on_end(void *arg, const struct model_ending *ending)
{
    struct model_turn *model_turn = arg;
    model_turn->call = NULL;
    if (model_turn->overflow || model_turn->text.full || model_turn->reasoning.full) {
        struct fault too_long;
        fault(&too_long, ERR_TOO_LARGE, "the model's answer is too long");
        failed(model_turn, &too_long);
    } else if (ending->end == MODEL_DONE) {
        model_turn->usage = ending->usage;
        model_turn->provider_data = arena_str(&model_turn->arena, ending->provider_data);
        keep_model(model_turn);
        model_turn->whole = true;
        model_turn->on_whole(model_turn->arg);
    } else if (ending->end == MODEL_AGAIN) {
        broke_off(model_turn, ending);
    } else {
        failed(model_turn, ending->why);
    }
}

static void model_turn_attempt(void *arg)
{
    static const struct model_sink sink = {.on_text = on_text,
                                           .on_reasoning = on_reasoning,
                                           .on_call = on_call,
                                           .on_args = on_args,
                                           .on_end = on_end};
    struct model_turn *model_turn = arg;
    model_turn_forget(model_turn);
    memcpy(model_turn->message_id, "msg_", 4);
    id_random(model_turn->message_id + 4);
    model_turn->attempt++;
    model_turn->call = model_start(model_turn->model, &model_turn->request, &sink, model_turn);
}

/* ---- for the shell ---- */

void model_turn_init(struct model_turn *model_turn)
{
    buf_init(&model_turn->text, RUN_TEXT_BYTES_MAX);
    buf_init(&model_turn->reasoning, RUN_TEXT_BYTES_MAX);
    arena_init(&model_turn->arena);
    model_turn->timer = timer_new(model_turn->loop, model_turn_attempt, model_turn);
}

void model_turn_done(struct model_turn *model_turn)
{
    model_turn_stop(model_turn);
    model_turn_forget(model_turn);
    timer_free(model_turn->timer);
    buf_done(&model_turn->text);
    buf_done(&model_turn->reasoning);
    arena_done(&model_turn->arena);
}

void model_turn_start(struct model_turn *model_turn, const struct model *model, str run_id,
                      const struct model_request *request)
{
    model_turn->model = model;
    snprintf(model_turn->run_id, sizeof model_turn->run_id, "%.*s", STR_ARG(run_id));
    model_turn->request = *request;
    model_turn->attempt = 0;
    model_turn_attempt(model_turn);
}

void model_turn_stop(struct model_turn *model_turn)
{
    if (model_turn->call) model_cancel(model_turn->model, TAKE(model_turn->call));
    timer_stop(model_turn->timer);
}

struct turn model_turn_turn(const struct model_turn *model_turn, struct arena *arena)
{
    struct turn_call *calls = arena_array(arena, model_turn->call_count, sizeof *calls);
    for (size_t i = 0; i < model_turn->call_count; i++)
        calls[i] = (struct turn_call){.call_id = str_c(model_turn->calls[i].id),
                                      .provider_id = model_turn->calls[i].provider_id,
                                      .name = model_turn->calls[i].name,
                                      .args = buf_str(&model_turn->calls[i].args)};
    return (struct turn){.message_id = str_c(model_turn->message_id),
                         .text = buf_str(&model_turn->text),
                         .reasoning = buf_str(&model_turn->reasoning),
                         .calls = calls,
                         .call_count = model_turn->call_count,
                         .usage = model_turn->usage,
                         .provider_data = model_turn->provider_data,
                         .provider = model_turn->provider,
                         .model = model_turn->name,
                         .price = model_turn->price};
}

bool model_turn_call(const struct model_turn *model_turn, size_t index, struct preview *ret_start,
                     str *ret_args)
{
    const struct growing_call *call = &model_turn->calls[index];
    if (call->silent) return false;
    *ret_start = call_start(call);
    ret_start->run_id = str_c(model_turn->run_id);
    ret_start->message_id = str_c(model_turn->message_id);
    *ret_args = buf_str(&call->args);
    return true;
}
