/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the output of an MCP server. The first byte says how they are cut; however that is, the
 * same lines must come as from the bytes in one piece. And a message must be one: an object on one line,
 * whose answer is known by the same number that json_parse finds.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "mcp/client/mcp_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINE_BYTES_MAX = 512, TOLD_BYTES_MAX = 1 << 22 };

static void must(bool true_for_us)
{
    if (!true_for_us) abort();
}

static void compare_with_tree(const struct mcp_message *message)
{
    struct arena arena;
    struct json *json = NULL;
    arena_init(&arena);
    if (!json_parse(&arena, message->json, &json, NULL)) {
        uint64_t number = 0;
        bool answer = json_get(json, STR("result")) || json_get(json, STR("error"));
        if (!answer || json_u64(json_get(json, STR("id")), &number)) number = 0;
        must(json->type == JSON_OBJECT);
        must(message->answer == answer);
        must(message->answers == number);
    }
    arena_done(&arena);
}

static bool on_message(void *arg, const struct mcp_message *message)
{
    must(utf8_valid(message->json));
    must(!memchr(message->json.p, '\n', message->json.len));
    must(!memchr(message->json.p, '\r', message->json.len));
    compare_with_tree(message);
    buf_append(arg, STR("message "));
    buf_u64(arg, message->answers);
    buf_append(arg, message->json);
    buf_char(arg, '\n');
    return true;
}

static bool on_noise(void *arg, str beginning)
{
    buf_append(arg, STR("noise "));
    buf_append(arg, beginning);
    buf_char(arg, '\n');
    return true;
}

static enum err read_all(str bytes, size_t step, struct buf *told)
{
    static const struct mcp_lines_ops ops = {on_message, on_noise};
    struct mcp_lines lines;
    enum err e = OK;
    mcp_lines_init(&lines, LINE_BYTES_MAX);
    while (bytes.len && !e) {
        str piece = {bytes.p, step < bytes.len ? step : bytes.len};
        bytes = str_drop(bytes, piece.len);
        e = mcp_lines_read(&lines, piece, &ops, told);
    }
    mcp_lines_done(&lines);
    return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    str bytes = {(const char *)data + 1, size - 1};
    struct buf whole, cut;
    buf_init(&whole, TOLD_BYTES_MAX);
    buf_init(&cut, TOLD_BYTES_MAX);
    enum err first = read_all(bytes, SIZE_MAX, &whole);
    enum err second = read_all(bytes, 1 + data[0], &cut);
    must(first == second);
    must(str_eq(buf_str(&whole), buf_str(&cut)));
    buf_done(&whole);
    buf_done(&cut);
    return 0;
}
