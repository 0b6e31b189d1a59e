/* SPDX-License-Identifier: Apache-2.0
 *
 * A message of an MCP server: whatever it holds is read as a result, as questions, as a list of
 * tools and as a form. What comes out is valid UTF-8 and within its limits; a definition that was
 * taken is taken again as it is; what a form makes of its own defaults is JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "mcp/client/mcp_result.h"
#include "mcp/client/mcp_rpc.h"
#include "mcp/client/mcp_tools.h"
#include "tool/elicit.h"
#include "tool/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool fits)
{
    if (!fits) abort();
}

static bool is_line(str text)
{
    return utf8_valid(text) && str_find_char(text, '\n') < 0;
}

static const struct json *parsed(struct arena *arena, str text)
{
    struct json *json = NULL;
    must(json_parse(arena, text, &json, NULL) == OK);
    return json;
}

static void read_result(struct arena *arena, const struct json *result)
{
    struct tool_result read = {0};
    size_t bytes = 0;
    enum tool_end end = mcp_result_read(arena, result, STR("zh-CN"), &read);
    must((end == TOOL_FAILED) == (read.error.len > 0));
    must(is_line(read.error) && read.error.len <= TOOL_ERROR_BYTES_MAX);
    must(utf8_valid(read.content) && read.content.len <= TOOL_CONTENT_BYTES_MAX);
    if (read.result.len) (void)parsed(arena, read.result);
    must(read.file_count <= CALL_FILES_MAX);
    for (size_t i = 0; i < read.file_count; i++) {
        must(is_line(read.files[i].filename) && read.files[i].filename.len > 0);
        must(is_line(read.files[i].mime));
        bytes += read.files[i].bytes.len;
    }
    must(bytes <= CALL_FILES_BYTES_MAX);
}

static void fill_in(struct arena *arena, str schema)
{
    struct json *values = NULL;
    str content = STR_EMPTY, fields = STR_EMPTY;
    struct fault why = {0};
    must(json_parse(arena, STR("{}"), &values, NULL) == OK);
    must(elicit_fields(arena, schema, &fields, NULL) == OK);
    must(parsed(arena, fields)->type == JSON_ARRAY);
    if (elicit_content(arena, schema, values, &content, &why))
        must(why.text[0] && utf8_valid(str_c(why.text)));
    else
        must(parsed(arena, content)->type == JSON_OBJECT);
}

static void read_question(struct arena *arena, const struct json *params)
{
    struct tool_question question = {0};
    struct fault why = {0};
    if (mcp_question_read(arena, params, &question, &why)) {
        must(why.text[0] && utf8_valid(str_c(why.text)));
        return;
    }
    must(utf8_valid(question.message) && question.message.len <= ASK_TEXT_BYTES_MAX);
    must(!question.schema.len || !question.url.len);
    must(elicit_hash(arena, &question).len == 16);
    if (question.schema.len) fill_in(arena, question.schema);
}

static void read_needs(struct arena *arena, const struct json *result)
{
    struct mcp_needs needs;
    if (mcp_needs_read(arena, result, &needs, NULL)) return;
    must(needs.count + needs.declined_count <= QUESTIONS_OPEN_MAX);
    must(needs.count || needs.declined_count || needs.has_state);
}

static void left_out(void *arg, str name, const char *why)
{
    (void)arg, (void)name;
    must(why[0]);
}

static void read_tools(struct arena *arena, const struct json *list)
{
    static const struct mcp_rules rules = {.server_name = STR("s"), .http = true, .trusted = true};
    str texts[8];
    size_t count = 0;
    for (const struct json *tool = list ? list->child : NULL; tool && count < COUNT(texts);
         tool = tool->next) {
        str again = STR_EMPTY;
        if (mcp_define(arena, tool, &texts[count], NULL)) continue;
        must(is_line(texts[count]) && texts[count].len <= MCP_TOOL_BYTES_MAX);
        must(mcp_define(arena, parsed(arena, texts[count]), &again, NULL) == OK);
        must(str_eq(again, texts[count]));
        count++;
    }
    struct tools tools = mcp_rows(arena, &rules, texts, count, left_out, NULL);
    for (size_t i = 0; i < tools.count; i++) {
        const struct tool *row = &tools.rows[i];
        const struct mcp_tool *self = row->self;
        must(row->name.len > 2 && row->name.len <= TOOL_NAME_BYTES_MAX);
        for (size_t k = 0; k < i; k++) must(!str_eq(row->name, tools.rows[k].name));
        const struct json *schema = parsed(arena, row->schema);
        (void)schema_check(row->args, schema, "args", NULL);
        for (size_t k = 0; k < self->param_count; k++) {
            str value = mcp_param_value(arena, &self->params[k], schema);
            must(str_find_char(value, '\n') < 0 && str_find_char(value, '\r') < 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) struct arena arena;
    struct rpc_message message = {0};
    struct fault why = {0};
    arena_init(&arena);
    if (memchr(data, '\n', size)) return 0; /* links give one line */
    if (rpc_parse(&arena, (str){(const char *)data, size}, &message, &why)) {
        must(why.text[0] && utf8_valid(str_c(why.text)));
        return 0;
    }
    if (message.kind == RPC_RESULT) {
        read_result(&arena, message.result);
        read_needs(&arena, message.result);
        read_tools(&arena, json_get(message.result, STR("tools")));
    } else if (message.kind == RPC_ERROR) {
        struct mcp_needs needs;
        (void)mcp_pages_read(&arena, message.data, &needs, NULL);
    } else if (message.params) {
        read_question(&arena, message.params);
    }
    return 0;
}
