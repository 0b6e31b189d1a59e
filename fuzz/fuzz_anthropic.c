/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes as an answer of Anthropic's Messages API: a stream of events, read and decoded. Whatever
 * they are, the sink hears only whole characters, calls in order and arguments of the newest call;
 * an end has a reason unless it is a whole answer; what is kept is a list that a request takes, and
 * the request stays JSON.
 */
#include <stdlib.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "model/anthropic.h"
#include "net/sse_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct ear {
    struct anthropic_decoder decoder;
    enum codec_verdict verdict;
    struct fault why;
    size_t calls, text_bytes, thought_bytes;
};

static void check(bool holds)
{
    if (!holds) abort();
}

static void on_text(void *arg, str delta)
{
    struct ear *ear = arg;
    check(delta.len > 0 && utf8_valid(delta));
    ear->text_bytes += delta.len;
    check(ear->text_bytes <= RUN_TEXT_BYTES_MAX);
}

static void on_reasoning(void *arg, str delta)
{
    struct ear *ear = arg;
    check(delta.len > 0 && utf8_valid(delta));
    ear->thought_bytes += delta.len;
    check(ear->thought_bytes <= RUN_TEXT_BYTES_MAX);
}

static void on_call(void *arg, size_t index, str provider_id, str name)
{
    struct ear *ear = arg;
    check(index == ear->calls++ && index < CALLS_TURN_MAX);
    check(provider_id.len > 0 && name.len > 0 && utf8_valid(provider_id) && utf8_valid(name));
}

static void on_args(void *arg, size_t index, str delta)
{
    const struct ear *ear = arg;
    check(index + 1 == ear->calls && delta.len > 0 && utf8_valid(delta));
}

static const struct model_sink sink = {
    .on_text = on_text, .on_reasoning = on_reasoning, .on_call = on_call, .on_args = on_args};

static bool on_event(void *arg, const struct sse_event *event)
{
    struct ear *ear = arg;
    ear->verdict = codec_anthropic.event(&ear->decoder, event->name, event->data, &ear->why);
    bool ended = ear->verdict == CODEC_AGAIN || ear->verdict == CODEC_FAILED;
    check((ear->why.text[0] != '\0') == ended && utf8_valid(str_c(ear->why.text)));
    return ear->verdict == CODEC_MORE;
}

/* What an answer left goes into the next request. */
static void give_back(str kept)
{
    struct arena arena;
    struct buf out;
    struct json *json = NULL;
    struct model_http_options options = {.name = STR("m")};
    struct model_message messages[] = {
        {.role = STR("user"), .text = STR("a")},
        {.role = STR("assistant"), .text = STR("b"), .provider_data = kept},
        {.role = STR("user"), .text = STR("c")},
    };
    struct model_request request = {.messages = messages, .count = COUNT(messages)};
    arena_init(&arena);
    buf_init(&out, 2 * MODEL_KEPT_BYTES_MAX);
    check(!kept.len || json_parse(&arena, kept, &json, NULL) == OK);
    check(!kept.len || (json->type == JSON_ARRAY && json->count > 0));
    codec_anthropic.write(&out, &arena, &options, &request);
    check(!out.full && json_parse(&arena, buf_str(&out), &json, NULL) == OK);
    if (kept.len) { /* byte for byte, without the brackets */
        str blocks = {kept.p + 1, kept.len - 2};
        check(str_find(buf_str(&out), blocks) >= 0);
    }
    buf_done(&out);
    arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ear ear = {.verdict = CODEC_MORE};
    struct sse_reader reader;
    sse_reader_init(&reader, 1024 * 1024);
    codec_anthropic.begin(&ear.decoder, &(struct codec_sink){&sink, &ear});
    enum err e = sse_read(&reader, (str){(const char *)data, size}, on_event, &ear);
    check(e == OK || e == ERR_TOO_LARGE);
    if (ear.verdict == CODEC_WHOLE) {
        struct model_usage usage;
        str kept;
        codec_anthropic.result(&ear.decoder, &usage, &kept);
        give_back(kept);
    } else if (ear.verdict == CODEC_MORE) {
        check(codec_anthropic.eof(&ear.decoder, &ear.why) == CODEC_AGAIN && ear.why.text[0]);
    }
    codec_anthropic.done(&ear.decoder);
    sse_reader_done(&reader);
    return 0;
}
