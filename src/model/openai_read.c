/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers of OpenAI's chat completions, and of the many servers that speak it more or less: text,
 * reasoning, calls put together, why it ended.
 *
 *     {"choices": [{"delta": {"role": "assistant", "content": "Hel"}}]}
 *     {"choices": [{"delta": {"tool_calls": [{"index": 0, "id", "function": {"name", "arguments"}}]}}]}
 *     {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}
 *     {"choices": [], "usage": {"prompt_tokens", "completion_tokens"}}
 *     [DONE]
 *
 * A document that is not streamed has `message` where these have `delta`, and is read by the same
 * function.
 *
 * Invariants:
 * 1. Whole is only what has a finish_reason; text or a call without one was cut.
 * 2. The sink hears of calls in the order in which they first appeared, of each one when its id and
 *    name are known. Until then, and until those before it are told, its arguments are held. An id
 *    that never comes is made from the call's place at the end.
 * 3. Every call ends with arguments: "{}" where none were sent.
 *
 * Which call a piece belongs to is servers' weakest point. Most count with `index`; some leave it out,
 * or say 0 for every call; some repeat id and name with every piece. So the index is only a label: a
 * piece with a name begins another call if its id is another one than the label's last call has; where
 * there are no ids, if its name is another one.
 *
 * To add a stop reason: a row in `reasons`.
 */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "model/openai.h"
#include "model/status.h"

enum { ARGS_BYTES_MAX = 4 * CALL_ARGS_BYTES_MAX }; /* too long is for the graph to say */

struct openai_call {
    int64_t label; /* the server's index; -1: none */
    str id, name;  /* empty: not known yet */
    struct buf held;
    size_t args_bytes;
    struct codec_half half; /* of a character in them */
};

/* Why an answer ended. What is not here ended as it should. */
static const struct {
    str reason;
    enum codec_verdict verdict;
    const char *text;
} reasons[] = {
    {STR("stop"), CODEC_MORE, NULL},
    {STR("tool_calls"), CODEC_MORE, NULL},
    {STR("function_call"), CODEC_MORE, NULL},
    {STR("length"), CODEC_MORE, NULL}, /* see finish() */
    {STR("content_filter"), CODEC_FAILED, "the provider's content filter stopped the answer"},
    {STR("error"), CODEC_AGAIN, "the provider failed in the middle of its answer"},
    {STR("insufficient_system_resource"), CODEC_AGAIN, "the provider ran out of resources"},
};

static enum codec_verdict openai_read_say(struct fault *why, enum codec_verdict verdict,
                                          const char *text)
{
    fault(why, verdict == CODEC_AGAIN ? ERR_MODEL_UNAVAILABLE : ERR_INTERNAL, "%s", text);
    return verdict;
}

static enum codec_verdict too_long(struct fault *why)
{
    return openai_read_say(why, CODEC_FAILED, "the model's answer is too long");
}

/* ---- calls ---- */

/* NULL: one that is new. The last one with this label, or else this id; without both, the last that
 * there is, unless a name says that another begins. */
static struct openai_call *find_call(struct openai_decoder *d, int64_t label, str id, str name)
{
    struct openai_call *call = NULL;
    for (size_t i = d->call_count; i-- > 0 && !call;) {
        struct openai_call *one = &d->calls[i];
        bool same = label >= 0 ? one->label == label : id.len ? str_eq(one->id, id) : !name.len;
        if (same) call = one;
    }
    if (!call || !name.len) return call;
    bool another = id.len && call->id.len ? !str_eq(id, call->id)
                                          : call->name.len && !str_eq(name, call->name);
    return another ? NULL : call;
}

static struct openai_call *add_call(struct openai_decoder *d, int64_t label)
{
    if (d->call_count == CALLS_TURN_MAX) return NULL;
    if (!d->calls) d->calls = arena_array(&d->arena, CALLS_TURN_MAX, sizeof *d->calls);
    struct openai_call *call = &d->calls[d->call_count++];
    call->label = label;
    buf_init(&call->held, ARGS_BYTES_MAX);
    json_scan_init(&d->args, NULL, NULL);
    return call;
}

static void tell_args(struct openai_decoder *d, size_t index, str args)
{
    if (args.len) d->to.sink->on_args(d->to.arg, index, args);
}

static void tell_call(struct openai_decoder *d)
{
    size_t index = d->told++;
    struct openai_call *call = &d->calls[index];
    d->to.sink->on_call(d->to.arg, index, call->id, call->name);
    tell_args(d, index, buf_str(&call->held));
    buf_done(&call->held);
}

/* Whether arguments are whole is asked only of the newest call, if the answer was cut off. */
static void scan_args(struct openai_decoder *d, str args)
{
    while (args.len) {
        enum json_scan_mark mark = json_scan_next(&d->args, &args);
        if (mark == JSON_SCAN_MORE || mark == JSON_SCAN_REFUSED) return;
    }
}

static enum codec_verdict read_args(struct openai_decoder *d, struct openai_call *call, str args,
                                    struct fault *why)
{
    size_t index = (size_t)(call - d->calls);
    if (args.len > ARGS_BYTES_MAX - call->args_bytes) return too_long(why);
    call->args_bytes += args.len;
    if (index + 1 == d->call_count) scan_args(d, args);
    if (index < d->told)
        tell_args(d, index, args);
    else
        buf_append(&call->held, args);
    return CODEC_MORE;
}

/* One element of tool_calls. */
static enum codec_verdict read_call(struct openai_decoder *d, const struct json *piece,
                                    struct fault *why)
{
    const struct json *function = json_get(piece, STR("function"));
    const struct json *arguments = json_get(function, STR("arguments"));
    str id = codec_call_id(&d->event, json_text(json_get(piece, STR("id"))));
    str name = codec_call_name(json_text(json_get(function, STR("name"))));
    int64_t label;
    if (json_i64(json_get(piece, STR("index")), &label) || label < 0) label = -1;

    struct openai_call *call = find_call(d, label, id, name);
    if (!call) call = add_call(d, label);
    if (!call)
        return openai_read_say(why, CODEC_FAILED, "the model made too many tool calls at a time");
    if (!call->id.len) call->id = arena_str(&d->arena, id);
    if (!call->name.len) call->name = arena_str(&d->arena, name);
    while (d->told < d->call_count && d->calls[d->told].id.len && d->calls[d->told].name.len)
        tell_call(d);
    bool object = arguments && arguments->type == JSON_OBJECT;
    return read_args(
        d, call, object ? arguments->raw : codec_piece(&d->event, &d->said, arguments, &call->half),
        why);
}

/* Of arguments that were begun, those of the newest call can be cut; an older one's that are not whole
 * are no JSON. Of arguments that were not nobody knows. */
static bool call_cut_off(struct openai_decoder *d)
{
    for (size_t i = 0; i < d->call_count; i++)
        if (!d->calls[i].args_bytes) return true;
    return d->call_count && json_scan_finish(&d->args);
}

static enum codec_verdict cut_off(struct fault *why)
{
    return openai_read_say(
        why, CODEC_FAILED,
        "the model's answer reached its limit of tokens inside a tool call; a larger "
        "max_output of the model gives it room");
}

/* ---- text ---- */

static enum codec_verdict read_text(struct openai_decoder *d, str text, struct fault *why)
{
    if (text.len > RUN_TEXT_BYTES_MAX - d->text_bytes) return too_long(why);
    d->text_bytes += text.len;
    if (text.len) d->to.sink->on_text(d->to.arg, text);
    return CODEC_MORE;
}

static enum codec_verdict read_piece(struct openai_decoder *d, const struct json *string,
                                     struct fault *why)
{
    return read_text(d, codec_piece(&d->event, &d->said, string, &d->text_half), why);
}

/* A string, or a list of parts. */
static enum codec_verdict read_content(struct openai_decoder *d, const struct json *content,
                                       struct fault *why)
{
    if (!content || content->type != JSON_ARRAY) return read_piece(d, content, why);
    for (const struct json *part = content->child; part; part = part->next) {
        enum codec_verdict verdict = read_piece(d, json_get(part, STR("text")), why);
        if (verdict != CODEC_MORE) return verdict;
    }
    return CODEC_MORE;
}

static enum codec_verdict take_reasoning(struct openai_decoder *d, str text, struct fault *why)
{
    if (!text.len) return CODEC_MORE;
    if (text.len > RUN_TEXT_BYTES_MAX - d->reasoning_bytes) return too_long(why);
    d->reasoning_bytes += text.len;
    buf_append(&d->reasoning, text);
    d->to.sink->on_reasoning(d->to.arg, text);
    return CODEC_MORE;
}

/* Servers that send both names send the same text under both. */
static enum codec_verdict read_reasoning(struct openai_decoder *d, const struct json *delta,
                                         struct fault *why)
{
    const struct json *string = json_get(delta, STR("reasoning_content"));
    bool is_short = !json_text(string).len;
    if (is_short) string = json_get(delta, STR("reasoning"));
    if (!json_text(string).len) return CODEC_MORE;
    d->reasoning_short = is_short;
    return take_reasoning(d, codec_piece(&d->event, &d->said, string, &d->reasoning_half), why);
}

/* Halves of characters whose other one never came. */
static enum codec_verdict end_pieces(struct openai_decoder *d, struct fault *why)
{
    enum codec_verdict verdict = take_reasoning(d, codec_piece_end(&d->reasoning_half), why);
    if (verdict == CODEC_MORE) verdict = read_text(d, codec_piece_end(&d->text_half), why);
    for (size_t i = 0; verdict == CODEC_MORE && i < d->call_count; i++)
        verdict = read_args(d, &d->calls[i], codec_piece_end(&d->calls[i].half), why);
    return verdict;
}

static enum codec_verdict read_calls(struct openai_decoder *d, const struct json *calls,
                                     struct fault *why)
{
    for (const struct json *call = calls ? calls->child : NULL; call; call = call->next) {
        enum codec_verdict verdict = read_call(d, call, why);
        if (verdict != CODEC_MORE) return verdict;
    }
    return CODEC_MORE;
}

/* ---- one event ---- */

/* An answer that was cut at its limit is an answer, but a call that was cut is none. */
static enum codec_verdict finish(struct openai_decoder *d, str reason, struct fault *why)
{
    d->finished = true;
    d->limited = d->limited || str_eq(reason, STR("length"));
    if (d->limited && call_cut_off(d)) return cut_off(why);
    for (size_t i = 0; i < COUNT(reasons); i++)
        if (str_eq(reason, reasons[i].reason) && reasons[i].verdict != CODEC_MORE)
            return openai_read_say(why, reasons[i].verdict, reasons[i].text);
    return CODEC_MORE;
}

static enum codec_verdict read_choice(struct openai_decoder *d, const struct json *choice,
                                      struct fault *why)
{
    int64_t index;
    if (!json_i64(json_get(choice, STR("index")), &index) && index != 0) return CODEC_MORE;
    const struct json *delta = json_get(choice, STR("delta"));
    if (!delta) delta = json_get(choice, STR("message"));
    enum codec_verdict verdict = read_reasoning(d, delta, why);
    if (verdict == CODEC_MORE) verdict = read_content(d, json_get(delta, STR("content")), why);
    if (verdict == CODEC_MORE) verdict = read_piece(d, json_get(delta, STR("refusal")), why);
    if (verdict == CODEC_MORE) verdict = read_calls(d, json_get(delta, STR("tool_calls")), why);
    if (verdict != CODEC_MORE) return verdict;
    str reason = json_text(json_get(choice, STR("finish_reason")));
    return reason.len ? finish(d, reason, why) : CODEC_MORE;
}

static void read_usage(struct openai_decoder *d, const struct json *usage)
{
    const struct {
        const char *key;
        uint64_t *tokens;
    } figures[] = {
        {"prompt_tokens", &d->usage.input_tokens},
        {"completion_tokens", &d->usage.output_tokens},
    };
    for (size_t i = 0; i < COUNT(figures); i++) {
        uint64_t tokens;
        if (json_u64(json_get(usage, str_c(figures[i].key)), &tokens)) continue;
        *figures[i].tokens = tokens < UINT32_MAX ? tokens : UINT32_MAX; /* no sum overflows */
    }
}

str openai_error_words(const struct json *document)
{
    const struct json *error = json_get(document, STR("error"));
    const struct json *candidates[] = {json_get(error, STR("message")), error,
                                       json_get(document, STR("message")),
                                       json_get(document, STR("detail"))};
    for (size_t i = 0; i < COUNT(candidates); i++)
        if (json_text(candidates[i]).len) return json_text(candidates[i]);
    const struct json *detail = json_get(document, STR("detail"));
    return detail ? detail->raw : STR_EMPTY; /* a list of what is wrong with each field */
}

/* A status as number or text, if the error names one; else what its type says. */
static enum codec_verdict judge_error(const struct json *document)
{
    static const str types[] = {STR("invalid_request_error"), STR("authentication_error"),
                                STR("permission_error"), STR("not_found_error")};
    const struct json *error = json_get(document, STR("error"));
    if (!error || error->type != JSON_OBJECT) error = document;
    const struct json *code = json_get(error, STR("code"));
    uint64_t status;
    bool numeric = !json_u64(code, &status) || !str_to_u64(json_text(code), &status);
    if (numeric && status >= 300 && status < 1000)
        return status_end((int)status) == MODEL_AGAIN ? CODEC_AGAIN : CODEC_FAILED;
    for (size_t i = 0; i < COUNT(types); i++)
        if (str_eq(json_text(json_get(error, STR("type"))), types[i])) return CODEC_FAILED;
    return CODEC_AGAIN;
}

static bool is_error(str name, const struct json *document)
{
    const struct json *error = json_get(document, STR("error"));
    return (error && error->type != JSON_NULL) || str_eq(name, STR("error")) ||
           str_eq(json_text(json_get(document, STR("object"))), STR("error"));
}

static enum codec_verdict read_error(const struct json *document, struct fault *why)
{
    enum codec_verdict verdict = judge_error(document);
    str words = openai_error_words(document);
    fault(why, verdict == CODEC_AGAIN ? ERR_MODEL_UNAVAILABLE : ERR_INTERNAL,
          "the provider broke off its answer%s%.*s", words.len ? ": " : "", STR_ARG(words));
    return verdict;
}

/* ---- the end ---- */

/* Thoughts that led to calls are wanted back with them. */
static void keep_reasoning(struct openai_decoder *d)
{
    struct json_writer w;
    if (!d->call_count || !d->reasoning.len || d->reasoning.full) return;
    json_write_begin(&w, &d->kept);
    json_object(&w);
    json_member(&w, d->reasoning_short ? STR("reasoning") : STR("reasoning_content"),
                buf_str(&d->reasoning));
    json_object_end(&w);
    if (d->kept.full) buf_done(&d->kept);
}

static enum codec_verdict end(struct openai_decoder *d, struct fault *why)
{
    if (!d->finished)
        return openai_read_say(why, CODEC_AGAIN, "the provider ended its answer in the middle");
    enum codec_verdict verdict = end_pieces(d, why);
    if (verdict != CODEC_MORE) return verdict;
    if (d->limited && call_cut_off(d)) return cut_off(why); /* by what came behind the reason */
    for (size_t i = d->told; i < d->call_count; i++) {
        struct openai_call *call = &d->calls[i];
        if (!call->name.len)
            return openai_read_say(why, CODEC_AGAIN, "a tool call came without a name");
        if (!call->id.len) call->id = arena_printf(&d->arena, "call_%zu", i);
        tell_call(d);
    }
    for (size_t i = 0; i < d->call_count; i++)
        if (!d->calls[i].args_bytes) tell_args(d, i, STR("{}"));
    keep_reasoning(d);
    return CODEC_WHOLE;
}

enum codec_verdict openai_event(void *decoder, str name, str data, struct fault *why)
{
    struct openai_decoder *d = decoder;
    struct json *document;
    if (str_eq(str_trim(data), STR("[DONE]"))) return end(d, why);
    arena_reset(&d->event);
    if (codec_document(&d->event, data, &document, &d->said) || document->type != JSON_OBJECT)
        return openai_read_say(why, CODEC_AGAIN,
                               "the provider sent something that is no JSON object");
    if (is_error(name, document)) return read_error(document, why);
    read_usage(d, json_get(document, STR("usage")));
    const struct json *choices = json_get(document, STR("choices"));
    for (const struct json *choice = choices ? choices->child : NULL; choice;
         choice = choice->next) {
        enum codec_verdict verdict = read_choice(d, choice, why);
        if (verdict != CODEC_MORE) return verdict;
    }
    return CODEC_MORE;
}

enum codec_verdict openai_eof(void *decoder, struct fault *why)
{
    return end(decoder, why);
}

void openai_begin(void *decoder, const struct codec_sink *sink)
{
    struct openai_decoder *d = decoder;
    *d = (struct openai_decoder){.to = *sink};
    arena_init(&d->event);
    arena_init(&d->arena);
    buf_init(&d->reasoning, MODEL_KEPT_BYTES_MAX);
    buf_init(&d->kept, MODEL_KEPT_BYTES_MAX);
}

void openai_result(const void *decoder, struct model_usage *ret_usage, str *ret_provider_data)
{
    const struct openai_decoder *d = decoder;
    *ret_usage = d->usage;
    *ret_provider_data = d->kept.len ? buf_str(&d->kept) : STR_EMPTY;
}

void openai_done(void *decoder)
{
    struct openai_decoder *d = decoder;
    for (size_t i = 0; i < d->call_count; i++) buf_done(&d->calls[i].held);
    buf_done(&d->reasoning);
    buf_done(&d->kept);
    arena_done(&d->event);
    arena_done(&d->arena);
}
