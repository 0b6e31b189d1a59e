/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages out of lines: each row whole, byte by byte, and cut in two at every byte; the limit at its
 * edge.
 */
#include "mcp/client/mcp_frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"

enum { LINE_MAX_BYTES = 64, TOLD_MAX = 64 * 1024 };

struct told {
    struct buf text;
    size_t stop_after; /* 0: never */
};

static bool enough(struct told *told)
{
    return told->stop_after && --told->stop_after == 0;
}

static bool on_message(void *arg, const struct mcp_message *message)
{
    struct told *told = arg;
    assert_true(utf8_valid(message->json));
    buf_printf(&told->text, "%s %llu <%.*s>\n", message->answer ? "answer" : "message",
               (unsigned long long)message->answers, STR_ARG(message->json));
    return !enough(told);
}

static bool on_noise(void *arg, str beginning)
{
    struct told *told = arg;
    buf_printf(&told->text, "noise <%.*s>\n", STR_ARG(beginning));
    return !enough(told);
}

static const struct mcp_lines_ops ops = {on_message, on_noise};

/* Read in pieces: the first of `cut` bytes, the others of `step`. */
static enum err read_cut(str bytes, size_t cut, size_t step, struct told *told)
{
    struct mcp_lines lines;
    enum err e = OK;
    mcp_lines_init(&lines, LINE_MAX_BYTES);
    for (size_t at = 0, len = cut; at < bytes.len && !e; at += len, len = step) {
        if (len > bytes.len - at) len = bytes.len - at;
        char *exact = malloc(len ? len : 1); /* so that a byte too far is seen */
        memcpy(exact, bytes.p + at, len);
        e = mcp_lines_read(&lines, (str){exact, len}, &ops, told);
        free(exact);
        if (!len) len = 0;
    }
    mcp_lines_done(&lines);
    return e;
}

static const struct {
    const char *bytes, *told;
    enum err err;
} rows[] = {
    {"", "", OK},
    {"{}\n", "message 0 <{}>\n", OK},
    {"{}", "", OK}, /* unfinished */
    {"{\"id\":7,\"result\":{}}\n", "answer 7 <{\"id\":7,\"result\":{}}>\n", OK},
    {"{\"result\":{\"id\":9},\"id\":7}\r\n", "answer 7 <{\"result\":{\"id\":9},\"id\":7} >\n", OK},
    {" {\"error\":1, \"id\" : 18 }\n", "answer 18 < {\"error\":1, \"id\" : 18 }>\n", OK},
    {"{\"id\":7,\"method\":\"m\"}\n", "message 0 <{\"id\":7,\"method\":\"m\"}>\n", OK},
    {"{\"id\":\"7\",\"result\":1}\n", "answer 0 <{\"id\":\"7\",\"result\":1}>\n", OK},
    {"{\"id\":null,\"error\":1}\n", "answer 0 <{\"id\":null,\"error\":1}>\n", OK},
    {"{\"id\":-7,\"result\":1}\n", "answer 0 <{\"id\":-7,\"result\":1}>\n", OK},
    {"{\"id\":7.0,\"result\":1}\n", "answer 0 <{\"id\":7.0,\"result\":1}>\n", OK},
    {"{\"id\":18446744073709551616,\"result\":1}\n",
     "answer 0 <{\"id\":18446744073709551616,\"result\":1}>\n", OK},
    {"{\"i\\u0064\":7,\"result\":1}\n", "answer 7 <{\"i\\u0064\":7,\"result\":1}>\n", OK},
    {"{\"id\":1,\"id\":2,\"result\":1}\n", "noise <{\"id\":1,\"id\":2,\"result\":1}>\n", OK},
    {"\n\r\n  \n{}\n", "message 0 <{}>\n", OK},
    {"hello\n{}\nbye\n", "noise <hello>\nmessage 0 <{}>\nnoise <bye>\n", OK},
    {"[{\"id\":1,\"result\":1}]\n", "noise <[{\"id\":1,\"result\":1}]>\n", OK},
    {"3\n\"x\"\nnull\n", "noise <3>\nnoise <\"x\">\nnoise <null>\n", OK},
    {"{\"a\":1\n}\n", "noise <{\"a\":1>\nnoise <}>\n", OK},
    {"{} {}\n", "noise <{} {}>\n", OK},
    {"{\"a\":\"\xff\"}\n", "noise <{\"a\":\"\xff\"}>\n", OK},
    {"{\"a\":\"\xe4\xbd\xa0\"}\n", "message 0 <{\"a\":\"\xe4\xbd\xa0\"}>\n", OK},
    {"\xef\xbb\xbf{}\n", "noise <\xef\xbb\xbf{}>\n", OK},
    /* 64 bytes, then 65; as JSON and as noise */
    {"{\"a\":\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\"}\n",
     "message 0 <{\"a\":\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\"}>\n", OK},
    {"{}\n{\"a\":\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\"}\n",
     "message 0 <{}>\n", ERR_TOO_LARGE},
    {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "", ERR_TOO_LARGE},
};

static void lines_become_messages(void **state)
{
    (void)state;
    struct told told = {0};
    buf_init(&told.text, TOLD_MAX);
    for (size_t i = 0; i < COUNT(rows); i++) {
        str bytes = str_c(rows[i].bytes);
        for (size_t cut = 0; cut <= bytes.len; cut++) {
            for (int fine = 0; fine < 2; fine++) {
                buf_clear(&told.text);
                enum err e = read_cut(bytes, cut ? cut : 1, fine ? 1 : bytes.len + 1, &told);
                if (e != rows[i].err || !str_eq(buf_str(&told.text), str_c(rows[i].told)))
                    fail_msg("row %zu cut at %zu: %s, told:\n%.*s", i, cut, err_code(e),
                             STR_ARG(buf_str(&told.text)));
            }
        }
    }
    buf_done(&told.text);
}

static void reading_stops_when_told_so(void **state)
{
    (void)state;
    struct told told = {.stop_after = 2};
    struct mcp_lines lines;
    buf_init(&told.text, TOLD_MAX);
    mcp_lines_init(&lines, LINE_MAX_BYTES);
    assert_int_equal(mcp_lines_read(&lines, STR("{}\nnoise\n{}\n{}\n"), &ops, &told), OK);
    assert_str(buf_str(&told.text), STR("message 0 <{}>\nnoise <noise>\n"));
    mcp_lines_done(&lines);
    buf_done(&told.text);
}

/* Of noise only the beginning is kept, and a long message gives its memory back. */
static void memory_is_given_back(void **state)
{
    (void)state;
    enum { BYTES = 1024 * 1024 };
    char *text = malloc(BYTES);
    struct mcp_frame frame;
    struct mcp_message message;
    memset(text, 'x', BYTES);
    mcp_frame_init(&frame, 4 * BYTES);
    assert_int_equal(mcp_frame_add(&frame, (str){text, BYTES}), OK);
    assert_int_equal(mcp_frame_add(&frame, (str){text, BYTES}), OK);
    assert_int_equal(frame.bytes.len, MCP_STDERR_LINE_BYTES_MAX);
    assert_int_equal(mcp_frame_end(&frame, &message), ERR_BAD_REQUEST);
    assert_int_equal(mcp_frame_beginning(&frame).len, MCP_STDERR_LINE_BYTES_MAX);
    mcp_frame_clear(&frame);
    assert_int_equal(mcp_frame_add(&frame, STR("{\"id\":4,\"result\":\"")), OK);
    assert_int_equal(mcp_frame_add(&frame, (str){text, BYTES}), OK);
    assert_int_equal(mcp_frame_add(&frame, STR("\"\n}")), OK);
    assert_int_equal(mcp_frame_end(&frame, &message), OK);
    assert_int_equal(message.answers, 4);
    assert_int_equal(message.json.len, BYTES + 21);
    assert_null(memchr(message.json.p, '\n', message.json.len));
    mcp_frame_clear(&frame);
    assert_int_equal(frame.bytes.cap, 0);
    mcp_frame_done(&frame);
    free(text);
}

int test_mcp_frame(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_become_messages),
        cmocka_unit_test(reading_stops_when_told_so),
        cmocka_unit_test(memory_is_given_back),
    };
    return cmocka_run_group_tests_name("mcp_frame", tests, NULL, NULL);
}
