/* SPDX-License-Identifier: Apache-2.0
 *
 *     speech_start ─▶ speaking ── done ──▶ whole, kept until speech_forget
 *                      ▲   │
 *                      │   ├── gone or overloaded ──▶ rest, twice as long each time
 *                      └───┼─────────────────────────┘ │ no attempts left
 *                          └── refused, too long ──────┴──▶ down
 */
#include "agent/speech.h"

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

static void show(struct speech *speech, struct preview preview)
{
    speech->shown = true; /* a discard has to follow, should the attempt fail */
    if (!bus_followed(speech->bus, speech->thread)) return;
    preview.run_id = str_c(speech->run_id);
    preview.message_id = str_c(speech->message_id);
    preview.at = clock_wall(speech->clock);
    bus_preview(speech->bus, speech->thread, &preview);
}

void speech_discard(struct speech *speech, const char *reason)
{
    if (speech->shown)
        show(speech, (struct preview){.kind = PREVIEW_DISCARD, .delta = str_c(reason)});
    speech->shown = false;
}

static void on_text(void *arg, str delta)
{
    struct speech *speech = arg;
    if (!delta.len) return;
    if (speech->text.len == 0) show(speech, (struct preview){.kind = PREVIEW_MESSAGE_START});
    show(speech,
         (struct preview){.kind = PREVIEW_TEXT, .delta = delta, .offset = speech->text_units});
    buf_append(&speech->text, delta);
    speech->text_units += utf8_utf16_units(delta);
}

static void on_reasoning(void *arg, str delta)
{
    struct speech *speech = arg;
    if (!delta.len) return;
    show(speech, (struct preview){
                     .kind = PREVIEW_REASONING, .delta = delta, .offset = speech->reasoning_units});
    buf_append(&speech->reasoning, delta);
    speech->reasoning_units += utf8_utf16_units(delta);
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
    struct speech *speech = arg;
    if (speech->words_only) return;
    if (index != speech->call_count || index >= CALLS_TURN_MAX) {
        speech->overflow = true;
        return;
    }
    if (!speech->calls)
        speech->calls = arena_array(&speech->arena, CALLS_TURN_MAX, sizeof *speech->calls);
    struct growing_call *call = &speech->calls[speech->call_count++];
    memcpy(call->id, CALL_PREFIX, sizeof CALL_PREFIX);
    id_random(call->id + sizeof CALL_PREFIX - 1);
    call->provider_id = arena_str(&speech->arena, provider_id);
    call->name = arena_str(&speech->arena, name);
    buf_init(&call->args, 4 * CALL_ARGS_BYTES_MAX); /* too long is for the graph to say */
    call->silent = str_eq(call->name, tool_show_card.name);
    if (!call->silent) show(speech, call_start(call));
}

static void on_args(void *arg, size_t index, str delta)
{
    struct speech *speech = arg;
    if (index >= speech->call_count) return;
    struct growing_call *call = &speech->calls[index];
    struct preview args = {.kind = PREVIEW_CALL_ARGS, .call_id = str_c(call->id), .delta = delta};
    if (!call->silent) show(speech, args);
    buf_append(&call->args, delta);
    speech->overflow = speech->overflow || call->args.full;
}

/* ---- attempts ---- */

void speech_forget(struct speech *speech)
{
    for (size_t i = 0; i < speech->call_count; i++) buf_done(&speech->calls[i].args);
    arena_reset(&speech->arena);
    speech->calls = NULL;
    speech->call_count = 0;
    buf_clear(&speech->text);
    buf_clear(&speech->reasoning);
    speech->text_units = speech->reasoning_units = 0;
    speech->usage = (struct model_usage){0};
    speech->provider_data = speech->provider = speech->name = STR_EMPTY;
    speech->price = (struct model_price){0};
    speech->whole = speech->shown = speech->overflow = false;
}

static void down(struct speech *speech, enum err e, const struct fault *why)
{
    speech->on_down(speech->arg, e, why && why->text[0] ? why->text : err_title(e));
}

/* Twice as long each time, and never at the same moment as others that failed with us: also behind the
 * time for which the provider wants to be left alone, which it has told them all. */
static void rest(struct speech *speech, msec at_least)
{
    msec wait = speech->model->retry_ms << (speech->attempt - 1);
    uint16_t jitter;
    crypto_random(&jitter, sizeof jitter);
    wait = wait / 2 + wait * jitter / UINT16_MAX / 2;
    timer_start(speech->timer, at_least + wait);
}

/* A provider that wants to be left alone for long is away: nothing is held up for it. */
static void broke_off(struct speech *speech, const struct model_ending *ending)
{
    speech_discard(speech, "the model's answer broke off");
    speech_forget(speech);
    if (speech->attempt < RUN_ATTEMPTS_MAX && ending->retry_after_ms <= MODEL_RETRY_AFTER_MS_MAX)
        rest(speech, ending->retry_after_ms);
    else
        down(speech, ERR_MODEL_UNAVAILABLE, ending->why);
}

static void failed(struct speech *speech, const struct fault *why)
{
    speech_discard(speech, "the model failed");
    speech_forget(speech);
    down(speech, ERR_INTERNAL, why);
}

/* The turn may be saved after the agent has got another model. */
static void keep_model(struct speech *speech)
{
    speech->provider = arena_str(&speech->arena, str_c(speech->model->provider));
    speech->name = arena_str(&speech->arena, str_c(speech->model->name));
    speech->price = speech->model->price;
}

static void on_end(void *arg, const struct model_ending *ending)
{
    struct speech *speech = arg;
    speech->call = NULL;
    if (speech->overflow || speech->text.full || speech->reasoning.full) {
        struct fault too_long;
        fault(&too_long, ERR_TOO_LARGE, "the model's answer is too long");
        failed(speech, &too_long);
    } else if (ending->end == MODEL_DONE) {
        speech->usage = ending->usage;
        speech->provider_data = arena_str(&speech->arena, ending->provider_data);
        keep_model(speech);
        speech->whole = true;
        speech->on_whole(speech->arg);
    } else if (ending->end == MODEL_AGAIN) {
        broke_off(speech, ending);
    } else {
        failed(speech, ending->why);
    }
}

static void attempt(void *arg)
{
    static const struct model_sink sink = {.on_text = on_text,
                                           .on_reasoning = on_reasoning,
                                           .on_call = on_call,
                                           .on_args = on_args,
                                           .on_end = on_end};
    struct speech *speech = arg;
    speech_forget(speech);
    memcpy(speech->message_id, "msg_", 4);
    id_random(speech->message_id + 4);
    speech->attempt++;
    speech->call = model_start(speech->model, &speech->request, &sink, speech);
}

/* ---- for the shell ---- */

void speech_init(struct speech *speech)
{
    buf_init(&speech->text, RUN_TEXT_BYTES_MAX);
    buf_init(&speech->reasoning, RUN_TEXT_BYTES_MAX);
    arena_init(&speech->arena);
    speech->timer = timer_new(speech->loop, attempt, speech);
}

void speech_done(struct speech *speech)
{
    speech_stop(speech);
    speech_forget(speech);
    timer_free(speech->timer);
    buf_done(&speech->text);
    buf_done(&speech->reasoning);
    arena_done(&speech->arena);
}

void speech_start(struct speech *speech, const struct model *model, str run_id,
                  const struct model_request *request)
{
    speech->model = model;
    snprintf(speech->run_id, sizeof speech->run_id, "%.*s", STR_ARG(run_id));
    speech->request = *request;
    speech->attempt = 0;
    attempt(speech);
}

void speech_stop(struct speech *speech)
{
    if (speech->call) model_cancel(speech->model, TAKE(speech->call));
    timer_stop(speech->timer);
}

struct turn speech_turn(const struct speech *speech, struct arena *arena)
{
    struct turn_call *calls = arena_array(arena, speech->call_count, sizeof *calls);
    for (size_t i = 0; i < speech->call_count; i++)
        calls[i] = (struct turn_call){.call_id = str_c(speech->calls[i].id),
                                      .provider_id = speech->calls[i].provider_id,
                                      .name = speech->calls[i].name,
                                      .args = buf_str(&speech->calls[i].args)};
    return (struct turn){.message_id = str_c(speech->message_id),
                         .text = buf_str(&speech->text),
                         .reasoning = buf_str(&speech->reasoning),
                         .calls = calls,
                         .call_count = speech->call_count,
                         .usage = speech->usage,
                         .provider_data = speech->provider_data,
                         .provider = speech->provider,
                         .model = speech->name,
                         .price = speech->price};
}

bool speech_call(const struct speech *speech, size_t index, struct preview *ret_start,
                 str *ret_args)
{
    const struct growing_call *call = &speech->calls[index];
    if (call->silent) return false;
    *ret_start = call_start(call);
    ret_start->run_id = str_c(speech->run_id);
    ret_start->message_id = str_c(speech->message_id);
    *ret_args = buf_str(&call->args);
    return true;
}
