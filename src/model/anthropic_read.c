/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers of Anthropic's Messages API: events whose data are JSON objects with a `type`.
 *
 *    message_start ─▶ (block_start ─▶ delta ... ─▶ block_stop) ... ─▶ message_delta ─▶ message_stop
 *                                                         stop_reason, usage     the end mark
 *
 * `ping` and types that we do not know may come anywhere and say nothing. `error` ends the answer.
 * A server that does not stream sends one `message` with everything in it. Any other order is
 * nonsense, and worth another attempt.
 *
 * Invariants:
 * 1. Only message_stop, or a message in one, makes an answer whole, and only with no block open.
 * 2. A call whose arguments were cut off by the limit of tokens never gets out of here as a call:
 *    the answer has failed. For a call without arguments the missing object is told at the end,
 *    when it is known that nothing was cut off.
 * 3. Thoughts are kept as the provider signed them. Those without a signature cannot be given back.
 *
 * To add an event: a row in `events`. To add a kind of block: a row in `blocks`, and one in
 * `deltas` for each way it grows.
 */
#include "model/anthropic.h"

#include "base/json.h"
#include "base/limits.h"

static str member(const struct json *json, const char *key)
{
    return json_text(json_get(json, str_c(key)));
}

/* The next piece of the open block. */
static str piece(struct anthropic_decoder *d, const struct json *json, const char *key)
{
    return codec_piece(&d->arena, &d->said, json_get(json, str_c(key)), &d->half);
}

/* ---- verdicts that end it ---- */

static enum codec_verdict nonsense(struct fault *why, const char *what)
{
    fault(why, ERR_MODEL_UNAVAILABLE, "the model's answer makes no sense: %s", what);
    return CODEC_AGAIN;
}

static enum codec_verdict too_long(struct fault *why)
{
    fault(why, ERR_TOO_LARGE, "the model's answer is too long");
    return CODEC_FAILED;
}

/* ---- words and thoughts ---- */

static enum codec_verdict take_text(struct anthropic_decoder *d, str text, struct fault *why)
{
    if (!text.len) return CODEC_MORE;
    if (text.len > RUN_TEXT_BYTES_MAX - d->text_bytes) return too_long(why);
    d->text_bytes += text.len;
    d->sink.sink->on_text(d->sink.arg, text);
    return CODEC_MORE;
}

static enum codec_verdict take_thought(struct anthropic_decoder *d, str text, struct fault *why)
{
    if (!text.len) return CODEC_MORE;
    if (text.len > RUN_TEXT_BYTES_MAX - d->thought_bytes) return too_long(why);
    d->thought_bytes += text.len;
    buf_append(&d->thinking, text);
    d->sink.sink->on_reasoning(d->sink.arg, text);
    return CODEC_MORE;
}

static enum codec_verdict take_signature(struct anthropic_decoder *d, str text, struct fault *why)
{
    if (!text.len) return CODEC_MORE;
    buf_clear(&d->signature);
    buf_append(&d->signature, text);
    return d->signature.full ? too_long(why) : CODEC_MORE;
}

/* One more block among those that are kept: two members beside its type. */
static enum codec_verdict keep(struct anthropic_decoder *d, str type, const str members[2][2],
                               struct fault *why)
{
    struct json_writer w;
    buf_char(&d->kept, d->kept.len ? ',' : '[');
    json_write_begin(&w, &d->kept);
    json_object(&w);
    json_member(&w, STR("type"), type);
    for (int i = 0; i < 2; i++)
        if (members[i][0].len) json_member(&w, members[i][0], members[i][1]);
    json_object_end(&w);
    return d->kept.full ? too_long(why) : CODEC_MORE;
}

/* ---- calls ---- */

/* Arguments pass by on their way; whether they are whole is asked only if the answer was cut. */
static enum codec_verdict take_args(struct anthropic_decoder *d, str text, struct fault *why)
{
    enum { ARGS_BYTES_MAX = 4 * CALL_ARGS_BYTES_MAX };
    if (!text.len) return CODEC_MORE;
    if (text.len > ARGS_BYTES_MAX - d->args_bytes) return too_long(why);
    d->args_bytes += text.len;
    d->sink.sink->on_args(d->sink.arg, d->calls - 1, text);
    for (str rest = text; rest.len;) {
        enum json_scan_mark mark = json_scan_next(&d->args, &rest);
        if (mark == JSON_SCAN_MORE || mark == JSON_SCAN_REFUSED) break;
    }
    return CODEC_MORE;
}

/* Those that came with the call's start, or none at all: told when nothing else has come. */
static enum codec_verdict settle_args(struct anthropic_decoder *d, struct fault *why)
{
    if (d->calls == 0 || d->args_bytes > 0) return CODEC_MORE;
    return take_args(d, d->input.len ? buf_str(&d->input) : STR("{}"), why);
}

static bool args_cut_off(struct anthropic_decoder *d)
{
    if (d->last != BLOCK_CALL) return false;
    return d->args_bytes == 0 || json_scan_finish(&d->args) != OK;
}

/* ---- blocks ---- */

static enum codec_verdict start_text(struct anthropic_decoder *d, const struct json *block,
                                     struct fault *why)
{
    return take_text(d, piece(d, block, "text"), why);
}

static enum codec_verdict start_thinking(struct anthropic_decoder *d, const struct json *block,
                                         struct fault *why)
{
    buf_clear(&d->thinking);
    buf_clear(&d->signature);
    enum codec_verdict verdict = take_thought(d, piece(d, block, "thinking"), why);
    return verdict == CODEC_MORE ? take_signature(d, member(block, "signature"), why) : verdict;
}

static enum codec_verdict start_redacted(struct anthropic_decoder *d, const struct json *block,
                                         struct fault *why)
{
    const str members[2][2] = {{STR("data"), member(block, "data")}};
    return keep(d, STR("redacted_thinking"), members, why);
}

static enum codec_verdict start_call(struct anthropic_decoder *d, const struct json *block,
                                     struct fault *why)
{
    str id = codec_call_id(&d->arena, member(block, "id"));
    str name = codec_call_name(member(block, "name"));
    const struct json *input = json_get(block, STR("input"));
    if (!id.len || !name.len) return nonsense(why, "a tool call has no id or no name");
    if (d->calls == CALLS_TURN_MAX) return too_long(why);
    enum codec_verdict verdict = settle_args(d, why);
    if (verdict != CODEC_MORE) return verdict;
    buf_clear(&d->input);
    if (input && input->type == JSON_OBJECT && input->count) buf_append(&d->input, input->raw);
    if (d->input.full) return too_long(why);
    d->args_bytes = 0;
    json_scan_init(&d->args, NULL, NULL);
    d->sink.sink->on_call(d->sink.arg, d->calls++, id, name);
    return CODEC_MORE;
}

static const struct {
    const char *type;
    enum anthropic_block block;
    enum codec_verdict (*start)(struct anthropic_decoder *d, const struct json *block,
                                struct fault *why);
} blocks[] = {
    {"text", BLOCK_TEXT, start_text},
    {"thinking", BLOCK_THINKING, start_thinking},
    {"redacted_thinking", BLOCK_REDACTED, start_redacted},
    {"tool_use", BLOCK_CALL, start_call},
};

static const struct {
    const char *type, *member;
    enum anthropic_block block;
    bool whole; /* no piece of a longer text */
    enum codec_verdict (*take)(struct anthropic_decoder *d, str text, struct fault *why);
} deltas[] = {
    {"text_delta", "text", BLOCK_TEXT, false, take_text},
    {"thinking_delta", "thinking", BLOCK_THINKING, false, take_thought},
    {"signature_delta", "signature", BLOCK_THINKING, true, take_signature},
    {"input_json_delta", "partial_json", BLOCK_CALL, false, take_args},
};

static enum codec_verdict open_block(struct anthropic_decoder *d, const struct json *block,
                                     struct fault *why)
{
    str type = member(block, "type");
    if (!type.len) return nonsense(why, "a block has no type");
    d->block = d->last = BLOCK_OTHER;
    for (size_t i = 0; i < COUNT(blocks); i++) {
        if (!str_eq(type, str_c(blocks[i].type))) continue;
        d->block = d->last = blocks[i].block;
        return blocks[i].start(d, block, why);
    }
    return CODEC_MORE;
}

/* Half of a character whose other one never came. */
static enum codec_verdict end_piece(struct anthropic_decoder *d, struct fault *why)
{
    str text = codec_piece_end(&d->half);
    if (d->block == BLOCK_TEXT) return take_text(d, text, why);
    if (d->block == BLOCK_THINKING) return take_thought(d, text, why);
    return d->block == BLOCK_CALL ? take_args(d, text, why) : CODEC_MORE;
}

static enum codec_verdict close_block(struct anthropic_decoder *d, struct fault *why)
{
    enum codec_verdict verdict = end_piece(d, why);
    if (verdict != CODEC_MORE) return verdict;
    bool signed_thought = d->block == BLOCK_THINKING && d->signature.len;
    d->block = BLOCK_NONE;
    if (!signed_thought) return CODEC_MORE;
    const str members[2][2] = {{STR("thinking"), buf_str(&d->thinking)},
                               {STR("signature"), buf_str(&d->signature)}};
    return keep(d, STR("thinking"), members, why);
}

static enum codec_verdict block_start(struct anthropic_decoder *d, const struct json *json,
                                      struct fault *why)
{
    if (d->block != BLOCK_NONE) return nonsense(why, "a block begins inside another");
    if (json_u64(json_get(json, STR("index")), &d->index))
        return nonsense(why, "a block has no index");
    return open_block(d, json_get(json, STR("content_block")), why);
}

/* Of the block that is open? */
static bool index_fits(const struct anthropic_decoder *d, const struct json *json)
{
    uint64_t index;
    bool known = json_u64(json_get(json, STR("index")), &index) == OK;
    return known && d->block != BLOCK_NONE && index == d->index;
}

static enum codec_verdict block_delta(struct anthropic_decoder *d, const struct json *json,
                                      struct fault *why)
{
    const struct json *delta = json_get(json, STR("delta"));
    str type = member(delta, "type");
    if (!index_fits(d, json)) return nonsense(why, "a piece belongs to no open block");
    if (d->block == BLOCK_OTHER) return CODEC_MORE;
    for (size_t i = 0; i < COUNT(deltas); i++) {
        if (!str_eq(type, str_c(deltas[i].type))) continue;
        if (deltas[i].block != d->block) return nonsense(why, "a piece does not fit its block");
        return deltas[i].take(d,
                              deltas[i].whole ? member(delta, deltas[i].member)
                                              : piece(d, delta, deltas[i].member),
                              why);
    }
    return CODEC_MORE;
}

static enum codec_verdict block_stop(struct anthropic_decoder *d, const struct json *json,
                                     struct fault *why)
{
    if (!index_fits(d, json)) return nonsense(why, "a block ends that is not open");
    return close_block(d, why);
}

/* ---- the message around them ---- */

/* Figures that are there; each says how much it is by now. */
static void take_usage(struct anthropic_decoder *d, const struct json *usage)
{
    const struct {
        const char *key;
        uint64_t *tokens;
    } figures[] = {
        {"input_tokens", &d->input_tokens},
        {"cache_creation_input_tokens", &d->cache_written_tokens},
        {"cache_read_input_tokens", &d->cache_read_tokens},
        {"output_tokens", &d->output_tokens},
    };
    for (size_t i = 0; i < COUNT(figures); i++) {
        uint64_t tokens;
        if (json_u64(json_get(usage, str_c(figures[i].key)), &tokens)) continue;
        *figures[i].tokens = tokens < UINT32_MAX ? tokens : UINT32_MAX; /* no sum overflows */
    }
}

static enum codec_verdict message_start(struct anthropic_decoder *d, const struct json *json,
                                        struct fault *why)
{
    if (d->begun) return nonsense(why, "it begins twice");
    d->begun = true;
    take_usage(d, json_get(json_get(json, STR("message")), STR("usage")));
    return CODEC_MORE;
}

/* end_turn, tool_use, stop_sequence and pause_turn are as good as any end. */
static void take_stop(struct anthropic_decoder *d, str reason)
{
    if (str_eq(reason, STR("refusal"))) d->stop = STOP_REFUSED;
    if (str_eq(reason, STR("max_tokens")) || str_eq(reason, STR("model_context_window_exceeded")))
        d->stop = STOP_LENGTH;
}

static enum codec_verdict message_delta(struct anthropic_decoder *d, const struct json *json,
                                        struct fault *why)
{
    (void)why;
    take_stop(d, member(json_get(json, STR("delta")), "stop_reason"));
    take_usage(d, json_get(json, STR("usage")));
    return CODEC_MORE;
}

static enum codec_verdict message_stop(struct anthropic_decoder *d, const struct json *json,
                                       struct fault *why)
{
    (void)json;
    if (d->block != BLOCK_NONE) return nonsense(why, "it ends inside a block");
    if (d->stop == STOP_REFUSED && (d->calls || !d->text_bytes)) {
        fault(why, ERR_INTERNAL, "the provider's safety filter stopped the model's answer");
        return CODEC_FAILED;
    }
    if (d->stop == STOP_LENGTH && args_cut_off(d)) {
        fault(why, ERR_INTERNAL,
              "the model's answer reached its limit of tokens inside a tool call; a larger "
              "max_output of the model gives it room");
        return CODEC_FAILED;
    }
    enum codec_verdict verdict = settle_args(d, why);
    if (verdict != CODEC_MORE) return verdict;
    if (d->kept.len) buf_char(&d->kept, ']');
    if (d->kept.full) return too_long(why);
    d->whole = true;
    return CODEC_WHOLE;
}

/* All in one: of a server that does not stream. */
static enum codec_verdict message(struct anthropic_decoder *d, const struct json *json,
                                  struct fault *why)
{
    const struct json *content = json_get(json, STR("content"));
    if (d->begun) return nonsense(why, "it begins twice");
    if (!content || content->type != JSON_ARRAY) return nonsense(why, "it has no content");
    d->begun = true;
    for (const struct json *block = content->child; block; block = block->next) {
        enum codec_verdict verdict = open_block(d, block, why);
        if (verdict == CODEC_MORE) verdict = close_block(d, why);
        if (verdict != CODEC_MORE) return verdict;
    }
    take_stop(d, member(json, "stop_reason"));
    take_usage(d, json_get(json, STR("usage")));
    return message_stop(d, json, why);
}

/* Words for an error that tells none. */
static enum codec_verdict error_event(struct anthropic_decoder *d, const struct json *json,
                                      struct fault *why)
{
    static const char *const passing[] = {"overloaded_error", "api_error", "rate_limit_error",
                                          "timeout_error"};
    const struct json *error = json_get(json, STR("error"));
    str type = member(error, "type"), text = member(error, "message");
    (void)d;
    if (!text.len) text = type.len ? type : STR("it does not say why");
    bool passes = !type.len;
    for (size_t i = 0; i < COUNT(passing); i++) passes = passes || str_eq(type, str_c(passing[i]));
    fault(why, passes ? ERR_MODEL_UNAVAILABLE : ERR_INTERNAL,
          passes ? "the provider broke off the model's answer: %.*s"
                 : "the provider refused to go on: %.*s",
          STR_ARG(text));
    return passes ? CODEC_AGAIN : CODEC_FAILED;
}

/* ---- the codec's functions ---- */

static const struct {
    const char *type;
    bool first; /* may come before message_start */
    enum codec_verdict (*take)(struct anthropic_decoder *d, const struct json *json,
                               struct fault *why);
} events[] = {
    {"message_start", true, message_start},
    {"content_block_start", false, block_start},
    {"content_block_delta", false, block_delta},
    {"content_block_stop", false, block_stop},
    {"message_delta", false, message_delta},
    {"message_stop", false, message_stop},
    {"message", true, message},
    {"error", true, error_event},
};

void anthropic_begin(void *decoder, const struct codec_sink *sink)
{
    struct anthropic_decoder *d = decoder;
    *d = (struct anthropic_decoder){.sink = *sink};
    arena_init(&d->arena);
    json_scan_init(&d->args, NULL, NULL);
    buf_init(&d->input, CALL_ARGS_BYTES_MAX);
    buf_init(&d->thinking, RUN_TEXT_BYTES_MAX);
    buf_init(&d->signature, MODEL_KEPT_BYTES_MAX);
    buf_init(&d->kept, MODEL_KEPT_BYTES_MAX);
}

enum codec_verdict anthropic_event(void *decoder, str name, str data, struct fault *why)
{
    struct anthropic_decoder *d = decoder;
    struct json *json = NULL;
    assert(!d->whole);
    arena_reset(&d->arena);
    if (codec_document(&d->arena, data, &json, &d->said) || json->type != JSON_OBJECT)
        return nonsense(why, "an event is no JSON object");
    str type = member(json, "type");
    if (!type.len && !str_eq(name, STR("message"))) type = name; /* that is what no name reads as */
    for (size_t i = 0; i < COUNT(events); i++) {
        if (!str_eq(type, str_c(events[i].type))) continue;
        if (!d->begun && !events[i].first) return nonsense(why, "it has no beginning");
        return events[i].take(d, json, why);
    }
    return CODEC_MORE;
}

enum codec_verdict anthropic_eof(void *decoder, struct fault *why)
{
    (void)decoder;
    fault(why, ERR_MODEL_UNAVAILABLE, "the model's answer ended before it was whole");
    return CODEC_AGAIN;
}

void anthropic_result(const void *decoder, struct model_usage *ret_usage, str *ret_provider_data)
{
    const struct anthropic_decoder *d = decoder;
    assert(d->whole);
    *ret_usage = (struct model_usage){
        .input_tokens = d->input_tokens + d->cache_written_tokens + d->cache_read_tokens,
        .output_tokens = d->output_tokens,
    };
    bool said = d->text_bytes || d->calls;
    *ret_provider_data = said ? buf_str(&d->kept) : STR_EMPTY;
}

void anthropic_done(void *decoder)
{
    struct anthropic_decoder *d = decoder;
    arena_done(&d->arena);
    buf_done(&d->input);
    buf_done(&d->thinking);
    buf_done(&d->signature);
    buf_done(&d->kept);
}
