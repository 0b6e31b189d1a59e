/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client brings for the model, its own tools and its context, checked once when the request
 * comes in. It is then stored in a short form of our own, which every model call of the run reads.
 *
 * Invariants:
 * 1. What is stored has names that every model provider takes, none of them twice, and at most
 *    FRONT_TOOLS_MAX tools of FRONT_TOOLS_BYTES_MAX.
 * 2. A tool of the server is never hidden by one of the client: neither when the request comes in nor
 *    when the model calls, should the server have got a tool of that name in between.
 * 3. A context entry is two texts on one line each, so that it cannot pass for a part of the prompt.
 */
#include "agent/core/front.h"

#include <stdlib.h>

#include "agent/core/texts.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/rows.h"
#include "tool/tools.h"

/* ---- tools ---- */

static void front_refuse(struct arena *arena, struct front_refusals *refused, str name,
                         const char *why)
{
    if (refused->count == FRONT_TOOLS_MAX) {
        refused->more++;
        return;
    }
    *ROWS_ADD(arena, refused->rows, refused->count) =
        (struct front_refusal){.name = tool_text_head(name, TOOL_NAME_BYTES_MAX), .why = why};
}

static bool is_absent(const struct json *member)
{
    return !member || member->type == JSON_NULL;
}

/* Why it is not offered; NULL: it may be. */
static const char *front_wrong(const struct json *tool, const struct tools *server,
                               const struct map *seen)
{
    str name = json_text(json_get(tool, STR("name")));
    const struct json *description = json_get(tool, STR("description"));
    const struct json *parameters = json_get(tool, STR("parameters"));
    if (tool->type != JSON_OBJECT) return "it is no object";
    if (!tool_name_valid(name)) return "its name is not 1 to 64 of [A-Za-z0-9_-]";
    if (graph_tool_is(name) || tools_find(server, name))
        return "a tool of the server has this name";
    if (map_get(seen, name)) return "another tool of the request has this name";
    if (!is_absent(description) && description->type != JSON_STRING)
        return "its description is no string";
    if (!is_absent(parameters) && parameters->type != JSON_OBJECT)
        return "its parameters are no object";
    return NULL;
}

static void write_tool(struct buf *out, struct arena *arena, const struct json *tool)
{
    const struct json *parameters = json_get(tool, STR("parameters"));
    struct json_writer w;
    json_write_begin(&w, out);
    json_object(&w);
    json_member(&w, STR("name"), json_text(json_get(tool, STR("name"))));
    json_member(&w, STR("description"), json_text(json_get(tool, STR("description"))));
    if (!is_absent(parameters)) {
        json_member_raw(&w, STR("parameters"), json_one_line(arena, parameters->raw));
    }
    json_object_end(&w);
}

/* The list on its way. */
struct offer {
    struct arena *arena;
    const struct tools *server;
    struct map seen; /* names */
    struct buf out, one;
};

/* Adds it to the list, or says why not. */
static const char *offer_tool(struct offer *offer, const struct json *tool)
{
    const char *why = front_wrong(tool, offer->server, &offer->seen);
    if (why) return why;
    if (offer->seen.count == FRONT_TOOLS_MAX) return "the request has too many tools";
    buf_clear(&offer->one);
    write_tool(&offer->one, offer->arena, tool);
    if (offer->one.full || offer->out.len + offer->one.len + 2 > FRONT_TOOLS_BYTES_MAX)
        return "the tools of the request are too long";
    if (map_put(&offer->seen, json_text(json_get(tool, STR("name"))), offer)) abort();
    buf_char(&offer->out, offer->out.len ? ',' : '[');
    buf_append(&offer->out, buf_str(&offer->one));
    return NULL;
}

str front_tools_parse(struct arena *arena, const struct json *list, const struct tools *server,
                      struct front_refusals *ret_refused)
{
    struct front_refusals refused = {0};
    struct offer offer = {.arena = arena, .server = server};
    map_init(&offer.seen, FRONT_TOOLS_MAX);
    buf_init(&offer.out, FRONT_TOOLS_BYTES_MAX);
    buf_init(&offer.one, FRONT_TOOLS_BYTES_MAX);
    const struct json *tool = list && list->type == JSON_ARRAY ? list->child : NULL;
    for (; tool; tool = tool->next) {
        const char *why = offer_tool(&offer, tool);
        if (why) front_refuse(arena, &refused, json_text(json_get(tool, STR("name"))), why);
    }
    if (offer.out.len) buf_char(&offer.out, ']');
    assert(!offer.out.full);
    str tools = arena_str(arena, buf_str(&offer.out));
    map_done(&offer.seen);
    buf_done(&offer.out);
    buf_done(&offer.one);
    *ret_refused = refused;
    return tools;
}

enum err front_tools_load(struct arena *arena, str json, struct front_tools *ret_tools)
{
    struct json *list = NULL;
    struct front_tools tools = {0};
    if (!json.len) {
        *ret_tools = tools;
        return OK;
    }
    if (json_parse(arena, json, &list, NULL) || list->type != JSON_ARRAY) return ERR_DAMAGED;
    tools.rows = arena_array(arena, list->count, sizeof *tools.rows);
    for (const struct json *tool = list->child; tool; tool = tool->next) {
        const struct json *parameters = json_get(tool, STR("parameters"));
        struct front_tool *row = &tools.rows[tools.count++];
        *row = (struct front_tool){.name = json_text(json_get(tool, STR("name"))),
                                   .description = json_text(json_get(tool, STR("description"))),
                                   .schema = parameters ? parameters->raw : STR_EMPTY};
        if (!tool_name_valid(row->name)) return ERR_DAMAGED;
    }
    *ret_tools = tools;
    return OK;
}

const struct front_tool *front_find(const struct front_tools *front, const struct tools *server,
                                    str name)
{
    if (graph_tool_is(name) || tools_find(server, name)) return NULL;
    for (size_t i = 0; i < front->count; i++)
        if (str_eq(front->rows[i].name, name)) return &front->rows[i];
    return NULL;
}

/* A question is a call of ours, an approval has its rule, and what was started is a tool of ours whose
 * server is away or asks something. */
bool front_waits(const struct call *call)
{
    return call->state == CALL_WAITING && !call->rule.len && !call->started &&
           !graph_tool_is(call->tool);
}

/* ---- context ---- */

/* A value should be a text; what is none stands there as it was written. */
static str value_text(const struct json *value)
{
    return value->type == JSON_STRING ? value->text : value->raw;
}

static str short_line(struct arena *arena, str text, size_t max)
{
    text = str_trim(text);
    str head = tool_text_head(text, max);
    str line = text_one_line(arena, head);
    return head.len < text.len ? arena_printf(arena, "%.*s …", STR_ARG(line)) : line;
}

str front_context_parse(struct arena *arena, const struct json *list)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, 8 * FRONT_CONTEXT_BYTES_MAX);
    struct json_writer w;
    size_t left = FRONT_CONTEXT_BYTES_MAX;
    const struct json *entry = list && list->type == JSON_ARRAY ? list->child : NULL;
    json_write_begin(&w, &out);
    json_array(&w);
    for (; entry && left > FRONT_CONTEXT_ENTRY_BYTES; entry = entry->next) {
        const struct json *value = json_get(entry, STR("value"));
        if (is_absent(value)) continue;
        left -= FRONT_CONTEXT_ENTRY_BYTES;
        str description = short_line(arena, json_text(json_get(entry, STR("description"))), left);
        left -= description.len < left ? description.len : left;
        str text = short_line(arena, value_text(value), left);
        left -= text.len < left ? text.len : left;
        if (!text.len) continue;
        json_object(&w);
        json_member(&w, STR("description"), description);
        json_member(&w, STR("value"), text);
        json_object_end(&w);
    }
    json_array_end(&w);
    assert(!out.full);
    return out.len > 2 ? arena_str(arena, buf_str(&out)) : STR_EMPTY;
}

void front_read(struct arena *arena, const struct json *body, const struct tools *server,
                struct leg_input *input, struct front_refusals *ret_refused)
{
    input->tools = front_tools_parse(arena, json_get(body, STR("tools")), server, ret_refused);
    input->context = front_context_parse(arena, json_get(body, STR("context")));
}
