/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes as an answer of chat completions: a stream of events, read and decoded. Whatever they are, the
 * sink hears whole characters, calls in order and arguments of calls it knows, all within their limits;
 * an end has a reason unless the answer is whole; what is kept goes back into a request that is JSON;
 * and the same stream cut into bytes says the same.
 */
#include <stdlib.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "model/openai.h"
#include "net/sse_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct listener {
    struct openai_decoder decoder;
    enum codec_verdict verdict;
    struct fault why;
    struct buf heard;
    size_t calls, text_bytes, reasoning_bytes, args_bytes[CALLS_TURN_MAX];
};

static void check(bool holds)
{
    if (!holds) abort();
}

static void note(struct listener *l, char what, str delta, size_t *bytes, size_t bytes_max)
{
    check(delta.len > 0 && utf8_valid(delta));
    *bytes += delta.len;
    check(*bytes <= bytes_max);
    buf_printf(&l->heard, "%c%zu ", what, delta.len);
    buf_append(&l->heard, delta);
}

static void on_text(void *arg, str delta)
{
    struct listener *l = arg;
    note(l, 't', delta, &l->text_bytes, RUN_TEXT_BYTES_MAX);
}

static void on_reasoning(void *arg, str delta)
{
    struct listener *l = arg;
    note(l, 'r', delta, &l->reasoning_bytes, RUN_TEXT_BYTES_MAX);
}

static void on_call(void *arg, size_t index, str provider_id, str name)
{
    struct listener *l = arg;
    check(index == l->calls++ && index < CALLS_TURN_MAX);
    check(provider_id.len > 0 && provider_id.len <= MODEL_CALL_ID_BYTES_MAX);
    check(name.len > 0 && name.len <= MODEL_TOOL_NAME_BYTES_MAX);
    check(utf8_valid(provider_id) && utf8_valid(name));
    buf_printf(&l->heard, "c%.*s %.*s", STR_ARG(provider_id), STR_ARG(name));
}

static void on_args(void *arg, size_t index, str delta)
{
    struct listener *l = arg;
    check(index < l->calls);
    note(l, 'a', delta, &l->args_bytes[index], 4 * CALL_ARGS_BYTES_MAX);
}

static const struct model_sink sink = {
    .on_text = on_text, .on_reasoning = on_reasoning, .on_call = on_call, .on_args = on_args};

static bool on_event(void *arg, const struct sse_event *event)
{
    struct listener *l = arg;
    l->verdict = codec_openai.event(&l->decoder, event->name, event->data, &l->why);
    return l->verdict == CODEC_MORE;
}

/* What an answer left goes into the next request. */
static void give_back(str kept)
{
    struct arena arena;
    struct buf out;
    struct json *json = NULL;
    struct model_http_options options = {.base_url = STR("http://h"), .name = STR("m")};
    struct model_message message = {.role = STR("assistant"), .provider_data = kept};
    struct model_request request = {.messages = &message, .count = 1};
    arena_init(&arena);
    buf_init(&out, 2 * MODEL_KEPT_BYTES_MAX);
    check(!kept.len || json_parse(&arena, kept, &json, NULL) == OK);
    codec_openai.write(&out, &arena, &options, &request);
    check(!out.full && json_parse(&arena, buf_str(&out), &json, NULL) == OK);
    buf_done(&out);
    arena_done(&arena);
}

static void check_end(struct listener *l)
{
    if (l->verdict == CODEC_MORE) l->verdict = codec_openai.eof(&l->decoder, &l->why);
    check(l->verdict != CODEC_MORE && utf8_valid(str_c(l->why.text)));
    check((l->why.text[0] == '\0') == (l->verdict == CODEC_WHOLE));
    if (l->verdict != CODEC_WHOLE) return;
    struct model_usage usage;
    str kept;
    codec_openai.result(&l->decoder, &usage, &kept);
    for (size_t i = 0; i < l->calls; i++) check(l->args_bytes[i] > 0);
    give_back(kept);
}

static void decode(struct listener *l, str bytes, size_t piece)
{
    struct sse_reader reader;
    *l = (struct listener){.verdict = CODEC_MORE};
    buf_init(&l->heard, SIZE_MAX);
    sse_reader_init(&reader, 1024 * 1024);
    codec_openai.begin(&l->decoder, &(const struct codec_sink){&sink, l});
    while (bytes.len && l->verdict == CODEC_MORE) {
        size_t len = bytes.len < piece ? bytes.len : piece;
        check(sse_read(&reader, (str){bytes.p, len}, on_event, l) == OK);
        bytes = str_drop(bytes, len);
    }
    check_end(l);
    codec_openai.done(&l->decoder);
    sse_reader_done(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct listener whole, each;
    str bytes = {(const char *)data, size};
    if (size > 512 * 1024) return 0;
    decode(&whole, bytes, size + 1);
    decode(&each, bytes, 1);
    check(whole.verdict == each.verdict && str_eq(buf_str(&whole.heard), buf_str(&each.heard)));
    buf_done(&whole.heard);
    buf_done(&each.heard);
    return 0;
}
