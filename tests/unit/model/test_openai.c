/* SPDX-License-Identifier: Apache-2.0
 *
 * The codec of OpenAI's chat completions, without a network: requests as JSON, and streams from files.
 *
 * streams/openai/NAME.sse is an answer as it comes, NAME.trace what is heard of it: the line of
 * model_kit.h, then what a whole answer leaves (tokens, and what is kept with the message), or why it
 * is not whole. UPDATE=1 writes the traces anew.
 */
#include "model/openai.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "net/http_client.h"
#include "net/sse_read.h"

enum { STREAM_BYTES_MAX = 64 * 1024 };

/* ---- listening ---- */

struct listener {
    struct buf heard;
    size_t line_bytes; /* of what was heard, without what follows the end */
    size_t calls;
    struct openai_decoder decoder;
    struct sse_reader reader;
    enum codec_verdict verdict;
    struct fault why;
};

static void note(struct listener *l, const char *what, str delta)
{
    assert_true(delta.len > 0);
    assert_true(utf8_valid(delta));
    buf_printf(&l->heard, "%s<%.*s>", what, STR_ARG(delta));
}

static void on_text(void *arg, str delta)
{
    note(arg, "t", delta);
}

static void on_reasoning(void *arg, str delta)
{
    note(arg, "r", delta);
}

static void on_call(void *arg, size_t index, str provider_id, str name)
{
    struct listener *l = arg;
    assert_int_equal(index, l->calls++);
    assert_true(provider_id.len > 0 && name.len > 0);
    buf_printf(&l->heard, "c%zu<%.*s %.*s>", index, STR_ARG(provider_id), STR_ARG(name));
}

static void on_args(void *arg, size_t index, str delta)
{
    struct listener *l = arg;
    char what[16];
    assert_true(index < l->calls);
    snprintf(what, sizeof what, "a%zu", index);
    note(l, what, delta);
}

static const struct model_sink sink = {
    .on_text = on_text, .on_reasoning = on_reasoning, .on_call = on_call, .on_args = on_args};

static void listen(struct listener *l)
{
    *l = (struct listener){.verdict = CODEC_MORE};
    buf_init(&l->heard, 64 * STREAM_BYTES_MAX);
    sse_reader_init(&l->reader, STREAM_BYTES_MAX);
    codec_openai.begin(&l->decoder, &(const struct codec_sink){&sink, l});
}

static void unlisten(struct listener *l)
{
    codec_openai.done(&l->decoder);
    sse_reader_done(&l->reader);
    buf_done(&l->heard);
}

static bool on_event(void *arg, const struct sse_event *event)
{
    struct listener *l = arg;
    l->verdict = codec_openai.event(&l->decoder, event->name, event->data, &l->why);
    bool bad = l->verdict == CODEC_AGAIN || l->verdict == CODEC_FAILED;
    assert_int_equal(l->why.text[0] != '\0', bad);
    return l->verdict == CODEC_MORE;
}

static void feed(struct listener *l, str bytes)
{
    if (l->verdict == CODEC_MORE) assert_int_equal(sse_read(&l->reader, bytes, on_event, l), OK);
}

static void note_end(struct listener *l)
{
    static const char *const ends[] = {
        [CODEC_WHOLE] = "done", [CODEC_AGAIN] = "again", [CODEC_FAILED] = "failed"};
    struct model_usage usage;
    str kept;
    if (l->verdict == CODEC_MORE) l->verdict = codec_openai.eof(&l->decoder, &l->why);
    buf_printf(&l->heard, "%s\n", ends[l->verdict]);
    l->line_bytes = l->heard.len;
    if (l->verdict != CODEC_WHOLE) {
        buf_printf(&l->heard, "%s: %s\n", err_code(l->why.err), l->why.text);
        return;
    }
    codec_openai.result(&l->decoder, &usage, &kept);
    buf_printf(&l->heard, "%llu in, %llu out\n", (unsigned long long)usage.input_tokens,
               (unsigned long long)usage.output_tokens);
    if (kept.len) buf_printf(&l->heard, "%.*s\n", STR_ARG(kept));
}

/* ---- streams ---- */

static void load(const char *path, struct buf *out)
{
    buf_init(out, STREAM_BYTES_MAX);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s cannot be read", path);
    buf_added(out, fread(buf_room(out, STREAM_BYTES_MAX), 1, STREAM_BYTES_MAX, file));
    fclose(file);
}

static void save(const char *path, str text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text.p, 1, text.len, file), text.len);
    assert_int_equal(fclose(file), 0);
}

/* Pieces of their own, so that reading past one is seen. */
static void feed_pieces(struct listener *l, str stream, size_t size)
{
    while (stream.len) {
        size_t len = stream.len < size ? stream.len : size;
        char *piece = malloc(len);
        memcpy(piece, stream.p, len);
        feed(l, (str){piece, len});
        free(piece);
        stream = str_drop(stream, len);
    }
}

static void expect_pieces(const char *path, str stream, size_t size, str trace)
{
    struct listener l;
    listen(&l);
    feed_pieces(&l, stream, size);
    note_end(&l);
    if (!str_eq(buf_str(&l.heard), trace))
        fail_msg("%s in pieces of %zu: got \"%.*s\", expected \"%.*s\"", path, size,
                 STR_ARG(buf_str(&l.heard)), STR_ARG(trace));
    unlisten(&l);
}

/* Cut short, nothing else is heard than what the whole stream tells; and if it passes for whole, then
 * nothing is missing but tokens. */
static void expect_cut(const char *path, str stream, size_t at, str trace)
{
    struct listener l;
    listen(&l);
    feed_pieces(&l, (str){stream.p, at}, at);
    if (!str_starts(trace, buf_str(&l.heard)))
        fail_msg("%s cut at %zu: heard \"%.*s\"", path, at, STR_ARG(buf_str(&l.heard)));
    bool ended = l.verdict != CODEC_MORE;
    note_end(&l);
    if (ended && !str_eq(buf_str(&l.heard), trace))
        fail_msg("%s cut at %zu ends as \"%.*s\"", path, at, STR_ARG(buf_str(&l.heard)));
    bool same = str_starts(trace, (str){l.heard.p, l.line_bytes});
    if (l.verdict == CODEC_WHOLE && !same)
        fail_msg("%s cut at %zu passes for whole: \"%.*s\"", path, at, STR_ARG(buf_str(&l.heard)));
    if (!ended && l.verdict == CODEC_FAILED) fail_msg("%s cut at %zu is not tried again", path, at);
    unlisten(&l);
}

static void update(const char *trace_path, str stream)
{
    struct listener l;
    if (!getenv("UPDATE")) return;
    listen(&l);
    feed(&l, stream);
    note_end(&l);
    save(trace_path, buf_str(&l.heard));
    unlisten(&l);
}

static void check_stream(const char *path)
{
    static const size_t sizes[] = {STREAM_BYTES_MAX, 1, 2, 5, 100};
    char trace_path[4096];
    AUTO(buf_done) struct buf stream, trace;
    snprintf(trace_path, sizeof trace_path, "%.*strace", (int)(strlen(path) - 3), path);
    load(path, &stream);
    update(trace_path, buf_str(&stream));
    load(trace_path, &trace);
    for (size_t i = 0; i < COUNT(sizes); i++)
        expect_pieces(path, buf_str(&stream), sizes[i], buf_str(&trace));
    for (size_t at = 1; at < stream.len; at++)
        expect_cut(path, buf_str(&stream), at, buf_str(&trace));
}

static void streams(void **state)
{
    (void)state;
    glob_t files;
    assert_int_equal(glob(SOURCE_ROOT "/tests/unit/model/streams/openai/*.sse", 0, NULL, &files),
                     0);
    assert_true(files.gl_pathc >= 12);
    for (size_t i = 0; i < files.gl_pathc; i++) check_stream(files.gl_pathv[i]);
    globfree(&files);
}

/* ---- limits ---- */

/* The verdict for `count` times this event. */
static enum codec_verdict repeat(struct listener *l, const char *event, size_t count)
{
    enum codec_verdict verdict = CODEC_MORE;
    for (size_t i = 0; i < count && verdict == CODEC_MORE; i++) {
        buf_clear(&l->heard);
        verdict = codec_openai.event(&l->decoder, STR("message"), str_c(event), &l->why);
    }
    return verdict;
}

#define CALL_PIECE(members, args)                         \
    "{\"choices\":[{\"delta\":{\"tool_calls\":[{" members \
    "\"function\":{\"name\":\"f\",\"arguments\":\"" args "\"}}]}}]}"

static void many_calls(void **state)
{
    (void)state;
    struct listener l;
    listen(&l);
    assert_int_equal(repeat(&l, CALL_PIECE("", "{}"), CALLS_TURN_MAX), CODEC_MORE);
    assert_int_equal(repeat(&l, CALL_PIECE("", "{}"), 1), CODEC_FAILED);
    unlisten(&l);
}

/* Text, reasoning, arguments told and arguments held: each ends at its limit. */
static void long_answers(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
        size_t bytes_max;
    } kinds[] = {
        {"{\"choices\":[{\"delta\":{\"content\":\"", "\"}}]}", RUN_TEXT_BYTES_MAX},
        {"{\"choices\":[{\"delta\":{\"reasoning\":\"", "\"}}]}", RUN_TEXT_BYTES_MAX},
        {"{\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"f\","
         "\"arguments\":\"",
         "\"}}]}}]}", 4 * CALL_ARGS_BYTES_MAX},
        {"{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\","
         "\"arguments\":\"",
         "\"}}]}}]}", 4 * CALL_ARGS_BYTES_MAX},
    };
    enum { PIECE = 64 * 1024 };
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct listener l;
        AUTO(buf_done) struct buf event;
        listen(&l);
        buf_init(&event, 2 * PIECE);
        buf_append(&event, str_c(kinds[i].before));
        for (size_t n = 0; n < PIECE; n++) buf_char(&event, 'x');
        buf_append(&event, str_c(kinds[i].after));
        buf_char(&event, '\0');
        assert_int_equal(repeat(&l, event.p, kinds[i].bytes_max / PIECE), CODEC_MORE);
        assert_int_equal(repeat(&l, event.p, 1), CODEC_FAILED);
        assert_string_equal(l.why.text, "the model's answer is too long");
        unlisten(&l);
    }
}

/* Ids and names of any length: bounded, and still the same call. */
static void long_ids(void **state)
{
    (void)state;
    struct listener l;
    AUTO(buf_done) struct buf event;
    buf_init(&event, 4096);
    buf_append(&event, STR("{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\""));
    for (size_t i = 0; i < 1000; i++) buf_char(&event, 'i');
    buf_append(&event, STR("\",\"function\":{\"name\":\""));
    for (size_t i = 0; i < 300; i++) buf_append(&event, STR("\xe5\xa5\xbd"));
    buf_append(&event, STR("\",\"arguments\":\"1\"}}]}}]}"));
    buf_char(&event, '\0');
    listen(&l);
    assert_int_equal(repeat(&l, event.p, 2), CODEC_MORE);
    assert_int_equal(l.calls, 1);
    assert_true(l.decoder.calls != NULL);
    assert_str(buf_str(&l.heard), STR("a0<1>"));
    unlisten(&l);
}

#define FINISH(reason) "{\"choices\":[{\"delta\":{},\"finish_reason\":\"" reason "\"}]}"
#define NAMED(index, args)                                                                  \
    "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":" index ",\"id\":\"i" index "\"," \
    "\"function\":{\"name\":\"f\",\"arguments\":\"" args "\"}}]}}]}"

/* Where the limit of tokens was reached, a call that may miss something is none; whichever call it is,
 * and wherever the reason stands. */
static void limited_calls(void **state)
{
    (void)state;
    enum { EVENTS_MAX = 5 };
    static const struct {
        const char *events[EVENTS_MAX];
        enum codec_verdict verdict;
    } rows[] = {
        {{NAMED("0", "{}"), FINISH("length"), "[DONE]"}, CODEC_WHOLE},
        {{NAMED("0", "{}"), NAMED("1", "{}"), FINISH("length"), "[DONE]"}, CODEC_WHOLE},
        {{NAMED("0", ""), FINISH("tool_calls"), "[DONE]"}, CODEC_WHOLE},
        {{NAMED("0", ""), FINISH("length")}, CODEC_FAILED},
        {{NAMED("0", "{"), FINISH("length")}, CODEC_FAILED},
        {{NAMED("0", ""), NAMED("1", ""), NAMED("1", "{}"), FINISH("length")}, CODEC_FAILED},
        {{FINISH("length"), NAMED("0", ""), "[DONE]"}, CODEC_FAILED},
        {{NAMED("0", "{}"), FINISH("length"), NAMED("1", ""), FINISH("stop")}, CODEC_FAILED},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct listener l;
        enum codec_verdict verdict = CODEC_MORE;
        listen(&l);
        for (size_t k = 0; k < EVENTS_MAX && rows[i].events[k]; k++) {
            if (verdict != CODEC_MORE) fail_msg("row %zu ends before event %zu", i, k);
            verdict =
                codec_openai.event(&l.decoder, STR("message"), str_c(rows[i].events[k]), &l.why);
        }
        if (verdict != rows[i].verdict)
            fail_msg("row %zu: got %d, expected %d", i, (int)verdict, (int)rows[i].verdict);
        unlisten(&l);
    }
}

/* Figures that nobody can mean: sums of them have to fit. */
static void large_figures(void **state)
{
    (void)state;
    static const struct {
        const char *event;
        uint64_t input, output;
    } rows[] = {
        {"{\"usage\":{\"prompt_tokens\":18446744073709551615,\"completion_tokens\":4294967296}}",
         UINT32_MAX, UINT32_MAX},
        {"{\"usage\":{\"prompt_tokens\":1e308,\"completion_tokens\":-1}}", 0, 0},
        {"{\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":8}}", 7, 8},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct listener l;
        struct model_usage usage;
        str kept;
        listen(&l);
        assert_int_equal(repeat(&l, rows[i].event, 1), CODEC_MORE);
        assert_int_equal(repeat(&l, FINISH("stop"), 1), CODEC_MORE);
        assert_int_equal(repeat(&l, "[DONE]", 1), CODEC_WHOLE);
        codec_openai.result(&l.decoder, &usage, &kept);
        assert_int_equal(usage.input_tokens, rows[i].input);
        assert_int_equal(usage.output_tokens, rows[i].output);
        unlisten(&l);
    }
}

/* ---- requests ---- */

#define TEXT(r, t)                     \
    {                                  \
        .role = STR(r), .text = STR(t) \
    }
#define CALLS                                                                                      \
    "[{\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}" \
    "]"

static const struct model_message plain[] = {TEXT("user", "Hi \"you\""), TEXT("assistant", "Yes?"),
                                             TEXT("user", "a"), TEXT("user", "b")};
static const struct model_message tools[] = {
    TEXT("user", "Go"),
    {.role = STR("assistant"), .tool_calls = STR(CALLS)},
    {.role = STR("tool"), .text = STR("done"), .tool_call_id = STR("call_1")},
    {.role = STR("assistant"),
     .text = STR("And"),
     .tool_calls = STR(CALLS),
     .provider_data = STR("{\"reasoning_content\":\"Hm \\\"so\\\"\"}")},
    {.role = STR("tool"), .text = STR(""), .tool_call_id = STR("call_1")},
    {.role = STR("assistant"), .text = STR(""), .provider_data = STR("{\"reasoning\":\"x\"}")},
    {.role = STR("assistant"), .text = STR("y"), .provider_data = STR("[1,{}]")},
};
static const struct model_image images[] = {
    {.mime = STR("image/png"), .filename = STR("a.png"), .bytes = STR("\x89PNG")},
    {.mime = STR("image/webp"), .filename = STR("b.webp"), .bytes = STR("ab")},
};
static const struct model_message pictures[] = {
    {.role = STR("user"), .text = STR("What is this?"), .images = images, .image_count = 2},
    {.role = STR("user"), .images = images, .image_count = 1, .along = true},
};

#define HEAD      "{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":true},"
#define CALLS_OUT "\"tool_calls\":" CALLS "}"

static const struct {
    struct model_request request;
    struct model_http_options options;
    const char *body;
} requests[] = {
    {{.system = STR("Be kind."), .messages = plain, .count = COUNT(plain)},
     {.base_url = STR("http://127.0.0.1:11434/v1"), .max_output = 99},
     HEAD "\"max_tokens\":99,\"messages\":[{\"role\":\"system\",\"content\":\"Be kind.\"},"
          "{\"role\":\"user\",\"content\":\"Hi \\\"you\\\"\"},"
          "{\"role\":\"assistant\",\"content\":\"Yes?\"},{\"role\":\"user\",\"content\":\"a\"},"
          "{\"role\":\"user\",\"content\":\"b\"}]}"},
    {{.messages = plain, .count = 1},
     {.base_url = STR("https://API.openai.com/v1"), .max_output = 99},
     HEAD "\"max_completion_tokens\":99,"
          "\"messages\":[{\"role\":\"user\",\"content\":\"Hi \\\"you\\\"\"}]}"},
    {{.messages = plain, .count = 1},
     {.base_url = STR("https://eu.api.openai.com:443/v1"), .max_output = 9},
     HEAD "\"max_completion_tokens\":9,"
          "\"messages\":[{\"role\":\"user\",\"content\":\"Hi \\\"you\\\"\"}]}"},
    {{.messages = plain, .count = 1},
     {.base_url = STR("https://example.org/api.openai.com"), .max_output = 9},
     HEAD "\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"Hi \\\"you\\\"\"}]}"},
    {{.messages = tools, .count = COUNT(tools)},
     {.base_url = STR("http://h")},
     HEAD "\"messages\":[{\"role\":\"user\",\"content\":\"Go\"},"
          "{\"role\":\"assistant\",\"content\":null," CALLS_OUT
          ",{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":\"done\"},"
          "{\"role\":\"assistant\",\"content\":\"And\","
          "\"reasoning_content\":\"Hm \\\"so\\\"\"," CALLS_OUT
          ",{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":\"\"},"
          "{\"role\":\"assistant\",\"content\":\"\",\"reasoning\":\"x\"},"
          "{\"role\":\"assistant\",\"content\":\"y\"}]}"},
    {{.messages = pictures, .count = COUNT(pictures)},
     {.base_url = STR("http://h")},
     HEAD
     "\"messages\":[{\"role\":\"user\",\"content\":["
     "{\"type\":\"text\",\"text\":\"What is this?\"},"
     "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,iVBORw==\"}},"
     "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/webp;base64,YWI=\"}}]},"
     "{\"role\":\"user\",\"content\":["
     "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,iVBORw==\"}}]}]}"},
    {{.messages = plain,
      .count = 1,
      .tools = STR("[{\"name\":\"f\",\"description\":\"d\",\"parameters\":{\"type\":\"object\"}},"
                   "{\"name\":\"g\",\"description\":\"\",\"parameters\":{}}]")},
     {.base_url = STR("http://h")},
     HEAD "\"messages\":[{\"role\":\"user\",\"content\":\"Hi \\\"you\\\"\"}],\"tools\":["
          "{\"type\":\"function\",\"function\":"
          "{\"name\":\"f\",\"description\":\"d\",\"parameters\":{\"type\":\"object\"}}},"
          "{\"type\":\"function\",\"function\":"
          "{\"name\":\"g\",\"description\":\"\",\"parameters\":{}}}]}"},
    {{.messages = plain, .count = 1, .tools = STR("[]")},
     {.base_url = STR("http://h")},
     HEAD "\"messages\":[{\"role\":\"user\",\"content\":\"Hi \\\"you\\\"\"}]}"},
};

static void writes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(requests); i++) {
        AUTO(arena_done) struct arena arena;
        AUTO(buf_done) struct buf out;
        struct model_http_options options = requests[i].options;
        struct json *json;
        arena_init(&arena);
        buf_init(&out, 1 << 16);
        options.name = STR("m");
        codec_openai.write(&out, &arena, &options, &requests[i].request);
        assert_str(buf_str(&out), str_c(requests[i].body));
        assert_int_equal(json_parse(&arena, buf_str(&out), &json, NULL), OK);
    }
}

/* However small the buffer, it is full and nothing else happens. */
static void writes_little(void **state)
{
    (void)state;
    struct model_http_options options = {.base_url = STR("http://h"), .name = STR("m")};
    struct model_request request = {.messages = pictures, .count = COUNT(pictures)};
    for (size_t max = 1; max < 300; max++) {
        AUTO(arena_done) struct arena arena;
        AUTO(buf_done) struct buf out;
        arena_init(&arena);
        buf_init(&out, max);
        codec_openai.write(&out, &arena, &options, &request);
        assert_true(out.full && out.len <= max);
    }
}

static void sends_key(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    struct client_header headers[4];
    arena_init(&arena);
    struct model_http_options options = {.api_key = STR("sk-1")};
    assert_int_equal(codec_openai.headers(&arena, &options, headers, COUNT(headers)), 1);
    assert_string_equal(headers[0].name, "Authorization");
    assert_string_equal(headers[0].value, "Bearer sk-1");
    options.api_key = STR_EMPTY;
    assert_int_equal(codec_openai.headers(&arena, &options, headers, COUNT(headers)), 0);
}

static const struct {
    const char *body, *text;
} refusals[] = {
    {"{\"error\":{\"message\":\"Incorrect key\",\"type\":\"t\",\"code\":null}}", "Incorrect key"},
    {"{\"error\":\"model 'x' not found\"}", "model 'x' not found"},
    {"{\"object\":\"error\",\"message\":\"too long\",\"code\":400}", "too long"},
    {"{\"detail\":\"Not Found\"}", "Not Found"},
    {"{\"detail\":[{\"loc\":[\"body\"],\"msg\":\"m\"}]}", "[{\"loc\":[\"body\"],\"msg\":\"m\"}]"},
    {"{\"error\":{\"message\":\"half \\ud83d\"}}", "half \xef\xbf\xbd"},
    {"{}", ""},
    {"[]", ""},
    {"{\"error\":{}}", ""},
    {"{\"error\":", ""},
    {"<html>no</html>", ""},
    {" upstream connect error ", "upstream connect error"},
    {"", ""},
};

static void error_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        assert_str(codec_openai.error_text(&arena, str_c(refusals[i].body)),
                   str_c(refusals[i].text));
    }
}

int test_openai(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams),       cmocka_unit_test(many_calls),
        cmocka_unit_test(long_answers),  cmocka_unit_test(long_ids),
        cmocka_unit_test(limited_calls), cmocka_unit_test(large_figures),
        cmocka_unit_test(writes),        cmocka_unit_test(writes_little),
        cmocka_unit_test(sends_key),     cmocka_unit_test(error_texts),
    };
    return cmocka_run_group_tests_name("openai", tests, NULL, NULL);
}
