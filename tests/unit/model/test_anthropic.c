/* SPDX-License-Identifier: Apache-2.0
 *
 * The codec of Anthropic's Messages API, without a network: requests as JSON, and streams from
 * files.
 *
 * streams/anthropic/NAME.sse is an answer as it comes, NAME.trace what is heard of it: the line of
 * model_kit.h, then what an answer that is whole leaves (tokens, and what is kept with the
 * message), or why it is not. UPDATE=1 writes the traces anew.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "check.h"
#include "model/anthropic.h"
#include "net/http_client.h"
#include "net/sse_read.h"

enum { FILE_BYTES_MAX = 1024 * 1024, EVENT_BYTES_MAX = 256 * 1024 };

/* ---- listening ---- */

struct ear {
    struct buf trace;
    size_t calls;
    struct anthropic_decoder decoder;
    struct sse_reader reader;
    enum codec_verdict verdict;
    struct fault why;
};

static void hear_delta(struct ear *ear, char kind, str delta)
{
    assert_true(delta.len > 0 && utf8_valid(delta));
    buf_printf(&ear->trace, "%c<%.*s>", kind, STR_ARG(delta));
}

static void on_text(void *arg, str delta)
{
    hear_delta(arg, 't', delta);
}

static void on_reasoning(void *arg, str delta)
{
    hear_delta(arg, 'r', delta);
}

static void on_call(void *arg, size_t index, str provider_id, str name)
{
    struct ear *ear = arg;
    assert_int_equal(index, ear->calls++);
    buf_printf(&ear->trace, "c%zu<%.*s %.*s>", index, STR_ARG(provider_id), STR_ARG(name));
}

static void on_args(void *arg, size_t index, str delta)
{
    struct ear *ear = arg;
    assert_int_equal(index, ear->calls - 1);
    assert_true(delta.len > 0 && utf8_valid(delta));
    buf_printf(&ear->trace, "a%zu<%.*s>", index, STR_ARG(delta));
}

static const struct model_sink sink = {
    .on_text = on_text, .on_reasoning = on_reasoning, .on_call = on_call, .on_args = on_args};

static void ear_open(struct ear *ear)
{
    *ear = (struct ear){0};
    buf_init(&ear->trace, 4 * FILE_BYTES_MAX);
    sse_reader_init(&ear->reader, EVENT_BYTES_MAX);
    codec_anthropic.begin(&ear->decoder, &(struct codec_sink){&sink, ear});
}

static void ear_close(struct ear *ear)
{
    codec_anthropic.done(&ear->decoder);
    sse_reader_done(&ear->reader);
    buf_done(&ear->trace);
}

static void hear_event(struct ear *ear, str name, str data)
{
    ear->verdict = codec_anthropic.event(&ear->decoder, name, data, &ear->why);
    assert_int_equal(ear->why.err != OK,
                     ear->verdict == CODEC_AGAIN || ear->verdict == CODEC_FAILED);
}

static bool on_event(void *arg, const struct sse_event *event)
{
    struct ear *ear = arg;
    hear_event(ear, event->name, event->data);
    return ear->verdict == CODEC_MORE;
}

static void feed(struct ear *ear, str bytes)
{
    if (ear->verdict != CODEC_MORE) return;
    assert_int_equal(sse_read(&ear->reader, bytes, on_event, ear), OK);
}

/* The stream is over: what was heard, and how it ended. */
static void hear_end(struct ear *ear)
{
    static const char *const names[] = {
        [CODEC_WHOLE] = "done", [CODEC_AGAIN] = "again", [CODEC_FAILED] = "failed"};
    if (ear->verdict == CODEC_MORE) {
        ear->verdict = codec_anthropic.eof(&ear->decoder, &ear->why);
        assert_int_equal(ear->verdict, CODEC_AGAIN);
    }
    buf_printf(&ear->trace, "%s\n", names[ear->verdict]);
    if (ear->verdict != CODEC_WHOLE) {
        buf_printf(&ear->trace, "%s: %s\n", err_code(ear->why.err), ear->why.text);
        return;
    }
    struct model_usage usage;
    str kept;
    codec_anthropic.result(&ear->decoder, &usage, &kept);
    buf_printf(&ear->trace, "%llu in, %llu out\n", (unsigned long long)usage.input_tokens,
               (unsigned long long)usage.output_tokens);
    if (kept.len) buf_printf(&ear->trace, "%.*s\n", STR_ARG(kept));
}

/* ---- streams ---- */

static void read_file(const char *path, struct buf *out)
{
    buf_init(out, FILE_BYTES_MAX);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s cannot be read", path);
    char *room = buf_room(out, FILE_BYTES_MAX);
    buf_added(out, fread(room, 1, FILE_BYTES_MAX, file));
    assert_int_equal(fclose(file), 0);
}

static void write_file(const char *path, str text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text.p, 1, text.len, file), text.len);
    assert_int_equal(fclose(file), 0);
}

/* In pieces of this many bytes. */
static void expect_pieces(str stream, size_t piece, str trace)
{
    struct ear ear;
    ear_open(&ear);
    for (str rest = stream; rest.len; rest = str_drop(rest, piece))
        feed(&ear, (str){rest.p, rest.len < piece ? rest.len : piece});
    hear_end(&ear);
    assert_str(buf_str(&ear.trace), trace);
    ear_close(&ear);
}

/* Cut short it is never whole, and nothing was heard that the whole stream does not tell. */
static void expect_cut(const char *name, str stream, size_t at, str trace)
{
    struct ear ear;
    ear_open(&ear);
    feed(&ear, (str){stream.p, at});
    if (!str_starts(trace, buf_str(&ear.trace)))
        fail_msg("%s cut at %zu tells another thing: %.*s", name, at, STR_ARG(buf_str(&ear.trace)));
    bool over = ear.verdict != CODEC_MORE;
    size_t heard = ear.trace.len;
    hear_end(&ear);
    bool same = str_eq(buf_str(&ear.trace), trace);
    if (over && !same) fail_msg("%s cut at %zu ends in another way", name, at);
    if (!over && !str_starts(str_drop(buf_str(&ear.trace), heard), STR("again\n")))
        fail_msg("%s cut at %zu passes for whole", name, at);
    ear_close(&ear);
}

static void check_stream(const char *path)
{
    AUTO(buf_done) struct buf stream, expected, trace_path;
    buf_init(&trace_path, 4096);
    buf_printf(&trace_path, "%.*strace", (int)strlen(path) - 3, path);
    buf_char(&trace_path, '\0');
    read_file(path, &stream);
    if (getenv("UPDATE")) {
        struct ear ear;
        ear_open(&ear);
        feed(&ear, buf_str(&stream));
        hear_end(&ear);
        write_file(trace_path.p, buf_str(&ear.trace));
        ear_close(&ear);
    }
    read_file(trace_path.p, &expected);
    str bytes = buf_str(&stream), trace = buf_str(&expected);
    static const size_t pieces[] = {FILE_BYTES_MAX, 1, 2, 3, 7, 64};
    for (size_t i = 0; i < COUNT(pieces); i++) expect_pieces(bytes, pieces[i], trace);
    for (size_t at = 0; at < bytes.len; at++) expect_cut(path, bytes, at, trace);
}

static void streams(void **state)
{
    (void)state;
    glob_t found;
    const char *pattern = SOURCE_ROOT "/tests/unit/model/streams/anthropic/*.sse";
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= 10);
    for (size_t i = 0; i < found.gl_pathc; i++) check_stream(found.gl_pathv[i]);
    globfree(&found);
}

/* ---- single events ---- */

#define BEGIN "{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}"
#define OPEN_TEXT \
    "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\"}}"
#define OPEN_CALL                                                                             \
    "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\"," \
    "\"id\":\"a\",\"name\":\"f\"}}"
#define CLOSE "{\"type\":\"content_block_stop\",\"index\":0}"
#define END   "{\"type\":\"message_stop\"}"
#define DELTA(type, member)                                                                    \
    "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"" type "\",\"" member \
    "\":\"x\"}}"
#define ERROR(type) "{\"type\":\"error\",\"error\":{\"type\":\"" type "\",\"message\":\"m\"}}"

enum { EVENTS_MAX = 6 };

/* Events, the verdict of the last, and the beginning of its reason. */
static void orders(void **state)
{
    (void)state;
    static const struct {
        const char *events[EVENTS_MAX];
        enum codec_verdict verdict;
        const char *why;
    } rows[] = {
        {{"{\"type\":\"ping\"}"}, CODEC_MORE, ""},
        {{BEGIN, END}, CODEC_WHOLE, ""},
        {{BEGIN, OPEN_TEXT, CLOSE, END}, CODEC_WHOLE, ""},
        {{BEGIN, "{\"type\":\"tomorrow\"}", END}, CODEC_WHOLE, ""},
        {{"{}"}, CODEC_MORE, ""}, /* no type, and no name */
        {{"{\"content\":[]}"}, CODEC_MORE, ""},
        {{"{\"type\":\"message\",\"content\":[]}"}, CODEC_WHOLE, ""},
        {{"{\"type\":\"message\"}"},
         CODEC_AGAIN,
         "the model's answer makes no sense: it has no co"},
        {{BEGIN, "{\"type\":\"message\",\"content\":[]}"},
         CODEC_AGAIN,
         "the model's answer makes no sense: it begins twice"},
        {{""}, CODEC_AGAIN, "the model's answer makes no sense: an event is no JSON object"},
        {{"[DONE]"}, CODEC_AGAIN, "the model's answer makes no sense: an event is no JSON"},
        {{"[]"}, CODEC_AGAIN, "the model's answer makes no sense: an event is no JSON object"},
        {{BEGIN, "{\"type\":\"message_stop\""}, CODEC_AGAIN, "the model's answer makes no sense"},
        {{END}, CODEC_AGAIN, "the model's answer makes no sense: it has no beginning"},
        {{OPEN_TEXT}, CODEC_AGAIN, "the model's answer makes no sense: it has no beginning"},
        {{BEGIN, BEGIN}, CODEC_AGAIN, "the model's answer makes no sense: it begins twice"},
        {{BEGIN, CLOSE}, CODEC_AGAIN, "the model's answer makes no sense: a block ends that"},
        {{BEGIN, OPEN_TEXT, END}, CODEC_AGAIN, "the model's answer makes no sense: it ends inside"},
        {{BEGIN, OPEN_TEXT, OPEN_CALL},
         CODEC_AGAIN,
         "the model's answer makes no sense: a block b"},
        {{BEGIN, DELTA("text_delta", "text")},
         CODEC_AGAIN,
         "the model's answer makes no sense: a p"},
        {{BEGIN, OPEN_TEXT, DELTA("input_json_delta", "partial_json")},
         CODEC_AGAIN,
         "the model's answer makes no sense: a piece does not fit its block"},
        {{BEGIN, OPEN_CALL, DELTA("text_delta", "text")},
         CODEC_AGAIN,
         "the model's answer makes no sense: a piece does not fit its block"},
        {{BEGIN, OPEN_TEXT, "{\"type\":\"content_block_stop\",\"index\":1}"},
         CODEC_AGAIN,
         "the model's answer makes no sense: a block ends that is not open"},
        {{BEGIN, "{\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\"}}"},
         CODEC_AGAIN,
         "the model's answer makes no sense: a block has no index"},
        {{BEGIN, "{\"type\":\"content_block_start\",\"index\":0}"},
         CODEC_AGAIN,
         "the model's answer makes no sense: a block has no type"},
        {{BEGIN, "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":"
                 "\"tool_use\",\"id\":\"a\",\"name\":\"\"}}"},
         CODEC_AGAIN,
         "the model's answer makes no sense: a tool call has no id or no name"},
        {{ERROR("overloaded_error")}, CODEC_AGAIN, "the provider broke off the model's answer: m"},
        {{ERROR("api_error")}, CODEC_AGAIN, "the provider broke off the model's answer: m"},
        {{ERROR("rate_limit_error")}, CODEC_AGAIN, "the provider broke off the model's answer: m"},
        {{ERROR("timeout_error")}, CODEC_AGAIN, "the provider broke off the model's answer: m"},
        {{ERROR("authentication_error")}, CODEC_FAILED, "the provider refused to go on: m"},
        {{"{\"type\":\"error\",\"error\":{\"type\":\"api_error\"}}"},
         CODEC_AGAIN,
         "the provider broke off the model's answer: api_error"},
        {{"{\"type\":\"error\"}"},
         CODEC_AGAIN,
         "the provider broke off the model's answer: it does not say why"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ear ear;
        ear_open(&ear);
        for (size_t j = 0; j < EVENTS_MAX && rows[i].events[j]; j++) {
            assert_int_equal(ear.verdict, CODEC_MORE);
            hear_event(&ear, STR("message"), str_c(rows[i].events[j]));
        }
        if (ear.verdict != rows[i].verdict ||
            !str_starts(str_c(ear.why.text), str_c(rows[i].why)) ||
            !rows[i].why[0] != !ear.why.text[0])
            fail_msg("row %zu: verdict %d, \"%s\"", i, (int)ear.verdict, ear.why.text);
        ear_close(&ear);
    }
}

/* An event without a type in its data has the type of its name. */
static void names(void **state)
{
    (void)state;
    struct ear ear;
    ear_open(&ear);
    hear_event(&ear, STR("message_start"), STR("{\"message\":{}}"));
    hear_event(&ear, STR("message_stop"), STR("{}"));
    assert_int_equal(ear.verdict, CODEC_WHOLE);
    ear_close(&ear);
}

/* ---- bounds ---- */

/* The same event until the verdict changes; `count` must still be fine. */
static void fill(struct ear *ear, const char *type, const char *member, size_t piece, size_t count)
{
    AUTO(buf_done) struct buf event;
    buf_init(&event, piece + 256);
    buf_printf(&event, "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"%s\",",
               type);
    buf_printf(&event, "\"%s\":\"", member);
    for (size_t i = 0; i < piece; i++) buf_char(&event, 'x');
    buf_append(&event, STR("\"}}"));
    for (size_t i = 0; i < count; i++) {
        hear_event(ear, STR_EMPTY, buf_str(&event));
        if (ear->verdict != CODEC_MORE) fail_msg("%s: too long after %zu", type, i * piece);
        buf_clear(&ear->trace);
    }
    hear_event(ear, STR_EMPTY, buf_str(&event));
    assert_int_equal(ear->verdict, CODEC_FAILED);
    assert_int_equal(ear->why.err, ERR_TOO_LARGE);
    assert_string_equal(ear->why.text, "the model's answer is too long");
}

static void bounds(void **state)
{
    (void)state;
    enum { PIECE = 64 * 1024 };
    static const struct {
        const char *block, *type, *member;
        size_t count;
    } rows[] = {
        {"{\"type\":\"text\"}", "text_delta", "text", RUN_TEXT_BYTES_MAX / PIECE},
        {"{\"type\":\"thinking\"}", "thinking_delta", "thinking", RUN_TEXT_BYTES_MAX / PIECE},
        {"{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\"}", "input_json_delta", "partial_json",
         4 * CALL_ARGS_BYTES_MAX / PIECE},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ear ear;
        ear_open(&ear);
        AUTO(buf_done) struct buf start;
        buf_init(&start, 1024);
        buf_printf(&start, "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":%s}",
                   rows[i].block);
        hear_event(&ear, STR_EMPTY, STR(BEGIN));
        hear_event(&ear, STR_EMPTY, buf_str(&start));
        fill(&ear, rows[i].type, rows[i].member, PIECE, rows[i].count);
        ear_close(&ear);
    }
}

static void calls_are_bounded(void **state)
{
    (void)state;
    struct ear ear;
    ear_open(&ear);
    hear_event(&ear, STR_EMPTY, STR(BEGIN));
    for (size_t i = 0; i < CALLS_TURN_MAX; i++) {
        hear_event(&ear, STR_EMPTY, STR(OPEN_CALL));
        hear_event(&ear, STR_EMPTY, STR(CLOSE));
        assert_int_equal(ear.verdict, CODEC_MORE);
    }
    hear_event(&ear, STR_EMPTY, STR(OPEN_CALL));
    assert_int_equal(ear.verdict, CODEC_FAILED);
    assert_int_equal(ear.calls, CALLS_TURN_MAX);
    ear_close(&ear);
}

/* Ids and names of any length: facts and rows have to hold them. */
static void ids_are_bounded(void **state)
{
    (void)state;
    enum { LONG = 100 * 1024 };
    struct ear ear;
    AUTO(buf_done) struct buf event;
    buf_init(&event, 3 * LONG);
    buf_append(&event, STR("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{"
                           "\"type\":\"tool_use\",\"id\":\""));
    for (size_t i = 0; i < LONG; i++) buf_char(&event, 'i');
    buf_append(&event, STR("\",\"name\":\""));
    for (size_t i = 0; i < LONG / 3; i++) buf_append(&event, STR("\xe5\xa5\xbd"));
    buf_append(&event, STR("\"}}"));
    ear_open(&ear);
    hear_event(&ear, STR_EMPTY, STR(BEGIN));
    hear_event(&ear, STR_EMPTY, buf_str(&event));
    assert_int_equal(ear.verdict, CODEC_MORE);
    assert_int_equal(ear.calls, 1);
    str heard = buf_str(&ear.trace);
    assert_true(utf8_valid(heard));
    assert_in_range(heard.len, MODEL_TOOL_NAME_BYTES_MAX,
                    MODEL_TOOL_NAME_BYTES_MAX + MODEL_CALL_ID_BYTES_MAX + 8);
    ear_close(&ear);
}

/* Signed thoughts that are too long to be kept fail the answer: it could not be gone on with. */
static void kept_is_bounded(void **state)
{
    (void)state;
    struct ear ear;
    AUTO(buf_done) struct buf event;
    buf_init(&event, MODEL_KEPT_BYTES_MAX);
    buf_append(&event, STR("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{"
                           "\"type\":\"redacted_thinking\",\"data\":\""));
    for (size_t i = 0; i < MODEL_KEPT_BYTES_MAX / 2; i++) buf_char(&event, 'x');
    buf_append(&event, STR("\"}}"));
    ear_open(&ear);
    hear_event(&ear, STR_EMPTY, STR(BEGIN));
    hear_event(&ear, STR_EMPTY, buf_str(&event));
    hear_event(&ear, STR_EMPTY, STR(CLOSE));
    assert_int_equal(ear.verdict, CODEC_MORE);
    hear_event(&ear, STR_EMPTY, buf_str(&event));
    assert_int_equal(ear.verdict, CODEC_FAILED);
    assert_int_equal(ear.why.err, ERR_TOO_LARGE);
    ear_close(&ear);
}

/* ---- requests ---- */

#define CALLS(id, name, arguments)                                             \
    "[{\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"" name \
    "\",\"arguments\":\"" arguments "\"}}]"
#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define USER(...)  "{\"role\":\"user\",\"content\":[" __VA_ARGS__ "]}"
#define MODEL(...) "{\"role\":\"assistant\",\"content\":[" __VA_ARGS__ "]}"
#define USE(id, name, input) \
    "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":" input "}"
#define RESULT(id, text) \
    "{\"type\":\"tool_result\",\"tool_use_id\":\"" id "\",\"content\":\"" text "\"}"
#define THOUGHT  "{\"type\":\"thinking\",\"thinking\":\"Hm,\\n\\u4f60\",\"signature\":\"c2ln\"}"
#define REDACTED "{\"type\": \"redacted_thinking\", \"data\":\"xyz\"}"
#define GO_ON    USER(TEXT("Go on."))

enum { MESSAGES_MAX = 8 };

static const struct model_image picture = {
    .mime = STR("image/png"), .filename = STR("p.png"), .bytes = STR("\x89PNG!")};
#define PICTURE                                                                                  \
    "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":" \
    "\"iVBORyE=\"}}"

static const struct {
    const char *what;
    struct model_message messages[MESSAGES_MAX]; /* up to one without a role */
    const char *written;                         /* the array */
} conversations[] = {
    {"one message", {{.role = STR("user"), .text = STR("hi \"你\"")}}, USER(TEXT("hi \\\"你\\\""))},
    {"nothing", {{.role = {0}}}, USER(TEXT("(The conversation goes on from here.)"))},
    {"sides that alternate",
     {{.role = STR("user"), .text = STR("a")},
      {.role = STR("assistant"), .text = STR("b")},
      {.role = STR("user"), .text = STR("c")}},
     USER(TEXT("a")) "," MODEL(TEXT("b")) "," USER(TEXT("c"))},
    {"neighbours of one side",
     {{.role = STR("system"), .text = STR("s")},
      {.role = STR("user"), .text = STR("a")},
      {.role = STR("user"), .text = STR("b")},
      {.role = STR("assistant"), .text = STR("c")},
      {.role = STR("assistant"), .text = STR("d")},
      {.role = STR("user"), .text = STR("e")}},
     USER(TEXT("s") "," TEXT("a") "," TEXT("b")) "," MODEL(TEXT("c") "," TEXT("d")) "," USER(
         TEXT("e"))},
    {"the model first and last",
     {{.role = STR("assistant"), .text = STR("a")}},
     USER(TEXT("(The conversation goes on from here.)")) "," MODEL(TEXT("a")) "," GO_ON},
    {"blank texts",
     {{.role = STR("user"), .text = STR("a")},
      {.role = STR("assistant"), .text = STR(" \n\t\r\v\f")},
      {.role = STR("user"), .text = STR("")},
      {.role = STR("user"), .text = STR("b")}},
     USER(TEXT("a") "," TEXT("b"))},
    {"a call and its result",
     {{.role = STR("user"), .text = STR("a")},
      {.role = STR("assistant"),
       .text = STR("b"),
       .tool_calls = STR(CALLS("c1", "f", "{\\\"x\\\": 1.0}"))},
      {.role = STR("tool"), .text = STR("r"), .tool_call_id = STR("c1")}},
     USER(TEXT("a")) "," MODEL(TEXT("b") "," USE("c1", "f", "{\"x\": 1.0}")) "," USER(
         RESULT("c1", "r"))},
    {"two results, and files that came with an answer",
     {{.role = STR("user"), .text = STR("a")},
      {.role = STR("assistant"),
       .tool_calls = STR("[{\"id\":\"c1\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},"
                         "{\"id\":\"c2\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}]")},
      {.role = STR("tool"), .text = STR("r1"), .tool_call_id = STR("c1")},
      {.role = STR("tool"), .text = STR(""), .tool_call_id = STR("c2")},
      {.role = STR("user"), .text = STR("b"), .images = &picture, .image_count = 1, .along = true}},
     USER(TEXT("a")) "," MODEL(USE("c1", "f", "{}") "," USE("c2", "g", "{}")) "," USER(RESULT(
         "c1", "r1") ",{\"type\":\"tool_result\",\"tool_use_id\":\"c2\"}," PICTURE "," TEXT("b"))},
    {"results stand first",
     {{.role = STR("assistant"), .tool_calls = STR(CALLS("c1", "f", "{}"))},
      {.role = STR("user"), .text = STR("b")},
      {.role = STR("tool"), .text = STR("r"), .tool_call_id = STR("c1")}},
     USER(TEXT("(The conversation goes on from here.)")) "," MODEL(USE("c1", "f", "{}")) "," USER(
         RESULT("c1", "r") "," TEXT("b"))},
    {"arguments that are no object",
     {{.role = STR("user"), .text = STR("a")},
      {.role = STR("assistant"), .tool_calls = STR(CALLS("c1", "f", "{\\\"x\\\":"))},
      {.role = STR("tool"), .text = STR("no"), .tool_call_id = STR("c1")},
      {.role = STR("assistant"), .tool_calls = STR(CALLS("c2", "f", "[1]"))},
      {.role = STR("tool"), .text = STR("no"), .tool_call_id = STR("c2")}},
     USER(TEXT("a")) "," MODEL(USE("c1", "f", "{}")) "," USER(RESULT("c1", "no")) "," MODEL(
         USE("c2", "f", "{}")) "," USER(RESULT("c2", "no"))},
    {"names and ids that the API would refuse",
     {{.role = STR("user"), .text = STR("a")},
      {.role = STR("assistant"), .tool_calls = STR(CALLS("card_m.1:x", "f", "{}"))},
      {.role = STR("tool"), .text = STR("r"), .tool_call_id = STR("card_m.1:x")}},
     USER(TEXT("a")) "," MODEL(USE("card_m_1_x", "f", "{}")) "," USER(RESULT("card_m_1_x", "r"))},
    {"a picture alone",
     {{.role = STR("user"), .images = &picture, .image_count = 1}},
     USER(PICTURE)},
    {"thoughts go back first, byte for byte",
     {{.role = STR("user"), .text = STR("a")},
      {.role = STR("assistant"),
       .text = STR("b"),
       .tool_calls = STR(CALLS("c1", "f", "{}")),
       .provider_data = STR("[" THOUGHT "," REDACTED "]")},
      {.role = STR("tool"), .text = STR("r"), .tool_call_id = STR("c1")}},
     USER(TEXT("a")) "," MODEL(
         THOUGHT "," REDACTED "," TEXT("b") "," USE("c1", "f", "{}")) "," USER(RESULT("c1", "r"))},
    {"thoughts without words",
     {{.role = STR("user"), .text = STR("a")},
      {.role = STR("assistant"), .text = STR(" "), .provider_data = STR("[" THOUGHT "]")}},
     USER(TEXT("a"))},
    {"what is kept that is no list",
     {{.role = STR("user"), .text = STR("a")},
      {.role = STR("assistant"), .text = STR("b"), .provider_data = STR("{\"x\":1}")},
      {.role = STR("user"), .text = STR("c")},
      {.role = STR("assistant"), .text = STR("d"), .provider_data = STR("[1,")},
      {.role = STR("user"), .text = STR("e")}},
     USER(TEXT("a")) "," MODEL(TEXT("b")) "," USER(TEXT("c")) "," MODEL(TEXT("d")) "," USER(
         TEXT("e"))},
};

static str write_request(struct arena *arena, struct buf *out, const struct model_request *request,
                         uint32_t max_output)
{
    struct model_http_options options = {.name = STR("claude-x"), .max_output = max_output};
    struct json *parsed = NULL;
    buf_init(out, FILE_BYTES_MAX);
    codec_anthropic.write(out, arena, &options, request);
    assert_false(out->full);
    assert_int_equal(json_parse(arena, arena_str(arena, buf_str(out)), &parsed, NULL), OK);
    return buf_str(out);
}

static void messages(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(conversations); i++) {
        AUTO(arena_done) struct arena arena;
        AUTO(buf_done) struct buf out, expected;
        struct model_request request = {.messages = conversations[i].messages, .locale = STR("en")};
        while (request.count < MESSAGES_MAX && request.messages[request.count].role.len)
            request.count++;
        arena_init(&arena);
        buf_init(&expected, 64 * 1024);
        buf_printf(&expected,
                   "{\"model\":\"claude-x\",\"max_tokens\":4096,\"stream\":true,\"messages\":[%s]}",
                   conversations[i].written);
        str written = write_request(&arena, &out, &request, 0);
        if (!str_eq(written, buf_str(&expected)))
            fail_msg("%s: got\n%.*s\nexpected\n%.*s", conversations[i].what, STR_ARG(written),
                     STR_ARG(buf_str(&expected)));
    }
}

static void beside_the_messages(void **state)
{
    (void)state;
    static const struct model_message message = {.role = STR("assistant"), .text = STR("a")};
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf out;
    struct model_request request = {
        .system = STR("Be kind."),
        .messages = &message,
        .count = 1,
        .locale = STR("zh-CN"),
        .tools = STR("[{\"name\":\"f\",\"description\":\"d\",\"parameters\":{\"type\":\"object\","
                     "\"properties\":{}}},{\"name\":\"g\",\"description\":\"\",\"parameters\":{"
                     "\"required\":[]}},{\"name\":\"h\"}]")};
    arena_init(&arena);
    assert_str(
        write_request(&arena, &out, &request, 123),
        STR("{\"model\":\"claude-x\",\"max_tokens\":123,\"stream\":true,\"system\":\"Be kind.\","
            "\"tools\":[{\"name\":\"f\",\"description\":\"d\",\"input_schema\":{\"type\":"
            "\"object\",\"properties\":{}}},{\"name\":\"g\",\"input_schema\":{\"type\":"
            "\"object\",\"required\":[]}},{\"name\":\"h\",\"input_schema\":{\"type\":"
            "\"object\"}}],\"messages\":[" USER(TEXT("（对话从这里继续。）")) "," MODEL(
                TEXT("a")) "," USER(TEXT("请继续。")) "]}"));
    buf_done(&out);
    request.tools = STR("[]");
    request.system = STR(" ");
    str written = write_request(&arena, &out, &request, 1);
    assert_true(str_find(written, STR("\"tools\"")) < 0 && str_find(written, STR("system")) < 0);
}

static void header_lines(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    struct client_header lines[4];
    struct model_http_options options = {0};
    arena_init(&arena);
    assert_int_equal(codec_anthropic.headers(&arena, &options, lines, COUNT(lines)), 1);
    options.api_key = STR("sk-1");
    assert_int_equal(codec_anthropic.headers(&arena, &options, lines, COUNT(lines)), 2);
    assert_string_equal(lines[0].name, "anthropic-version");
    assert_string_equal(lines[0].value, "2023-06-01");
    assert_string_equal(lines[1].name, "x-api-key");
    assert_string_equal(lines[1].value, "sk-1");
    assert_string_equal(codec_anthropic.path, "/v1/messages");
}

static void error_texts(void **state)
{
    (void)state;
    static const struct {
        const char *body, *text;
    } rows[] = {
        {"{\"type\":\"error\",\"error\":{\"type\":\"a\",\"message\":\"No.\"}}", "No."},
        {"{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\"}}", "not_found_error"},
        {"{\"error\":\"x\"}", ""},
        {"<html>", ""},
        {"", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        assert_str(codec_anthropic.error_text(&arena, str_c(rows[i].body)), str_c(rows[i].text));
    }
}

int test_anthropic(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams),
        cmocka_unit_test(orders),
        cmocka_unit_test(names),
        cmocka_unit_test(bounds),
        cmocka_unit_test(calls_are_bounded),
        cmocka_unit_test(ids_are_bounded),
        cmocka_unit_test(kept_is_bounded),
        cmocka_unit_test(messages),
        cmocka_unit_test(beside_the_messages),
        cmocka_unit_test(header_lines),
        cmocka_unit_test(error_texts),
    };
    return cmocka_run_group_tests_name("model/anthropic", tests, NULL, NULL);
}
