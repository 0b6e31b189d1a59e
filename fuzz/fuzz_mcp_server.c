/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a message of an MCP client, behind three headers: it is refused with an answer that is JSON, or what it
 * asks for can be served: an id that is JSON, a tool call whose arguments make a question or say what is wrong.
 *
 *     version \n method \n name \n body
 */
#include <stdlib.h>

#include "base/limits.h"
#include "mcp/server/mcp_protocol.h"
#include "mcp/server/mcp_server_tools.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* An empty line is a header that is not there. */
static str header(str *rest)
{
    str line = rest->p ? str_split(rest, '\n') : STR_EMPTY;
    return line.len ? line : (str){NULL, 0};
}

static void check_call(struct arena *arena, const struct desk_message *message)
{
    enum desk_tool tool;
    struct desk_call call;
    struct fault why = {0};
    struct json *args = NULL;
    if (desk_find(message->tool, &tool)) return;
    if (desk_parse(arena, tool, message->arguments, &call, &why)) {
        if (!why.text[0]) abort();
        return;
    }
    if (call.wait_ms < 0 || call.wait_ms > DESK_WAIT_S_MAX * 1000) abort();
    if (tool == DESK_GET_ANSWER) return;
    if (json_parse(arena, call.press_args, &args, NULL) || args->type != JSON_OBJECT) abort();
    if (!call.words.len || str_find_char(call.press_args, '\n') >= 0) abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena arena;
    struct desk_message message;
    struct desk_refusal refusal;
    struct json *json = NULL;
    str rest = {(const char *)data, size};
    struct desk_headers headers;
    headers.version = header(&rest);
    headers.method = header(&rest);
    headers.name = header(&rest);
    arena_init(&arena);
    if (desk_read(&arena, rest.p ? rest : STR_EMPTY, &headers, &message, &refusal)) {
        if (refusal.status < 200 || refusal.code > -32000) abort();
        if (json_parse(&arena, desk_refuse(&arena, &refusal), &json, NULL)) abort();
    } else if (message.method == DESK_TOOLS_CALL) {
        check_call(&arena, &message);
    } else if (message.method < DESK_METHOD_COUNT) {
        if (json_parse(&arena, desk_hello(&arena, &message), &json, NULL)) abort();
    }
    arena_done(&arena);
    return 0;
}
