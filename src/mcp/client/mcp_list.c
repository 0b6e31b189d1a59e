/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking an MCP server for its tools: page by page, once when it is reached, and again when it says
 * that they are others.
 *
 *     begin, again ──▶ tools/list ──▶ page ── nextCursor ──▶ tools/list ──▶ page ──▶ mcp_offer
 *
 * Invariants:
 * 1. One list is gathered at a time. News that come meanwhile make it stale: it is asked for anew.
 * 2. Two lists are at least relist_ms apart, however often the server says that they changed.
 * 3. A tool that does not fit is left out and noted; the others are offered.
 */
#include <stdio.h>

#include "base/limits.h"
#include "mcp/client/mcp_int.h"
#include "tool/tools.h"

static void gathering_clear(struct mcp_gathering *g)
{
    arena_done(&g->arena);
    *g = (struct mcp_gathering){0};
    arena_init(&g->arena);
}

static void send_list(struct mcp_server *server)
{
    struct mcp_gathering *g = &server->gathering;
    gathering_clear(g);
    g->texts = arena_array(&g->arena, MCP_TOOLS_MAX, sizeof *g->texts);
    g->request = mcp_session_ask(server, "tools/list", (str){0});
}

void mcp_list_again(struct mcp_server *server)
{
    struct mcp_session *s = &server->session;
    s->stale = true;
    if (s->state != SESSION_UP || server->gathering.request || !s->offers_tools) return;
    msec due = s->listed_at + server->ways.pace.relist_ms - loop_now(server->options.loop);
    timer_start(s->list_timer, due > 0 ? due : 0);
}

void mcp_list_due(void *arg)
{
    struct mcp_server *server = arg;
    struct mcp_session *s = &server->session;
    if (s->state != SESSION_UP || server->gathering.request) return;
    s->stale = false;
    send_list(server);
}

static void add_definitions(struct mcp_server *server, const struct json *list)
{
    struct mcp_gathering *g = &server->gathering;
    for (const struct json *tool = list->child; tool; tool = tool->next) {
        struct fault why = {0};
        str text = STR_EMPTY;
        enum err e = mcp_define(&g->arena, tool, &text, &why);
        if (!e && (g->count == MCP_TOOLS_MAX || g->bytes + text.len > MCP_LIST_BYTES_MAX))
            e = fault(&why, ERR_TOO_LARGE, "a server may offer %d tools, of %d bytes together",
                      MCP_TOOLS_MAX, MCP_LIST_BYTES_MAX);
        if (e) {
            char note[480];
            str name = tool_text_head(json_text(json_get(tool, STR("name"))), 80);
            snprintf(note, sizeof note, "%.*s: %s", STR_ARG(name), why.text);
            mcp_note(server, "tool left out", str_c(note));
            continue;
        }
        g->texts[g->count++] = text;
        g->bytes += text.len;
    }
}

static void list_ended(struct mcp_server *server)
{
    struct mcp_session *s = &server->session;
    struct mcp_gathering *g = &server->gathering;
    g->request = 0;
    s->listed_at = loop_now(server->options.loop);
    if (s->state == SESSION_LISTING) mcp_session_up(server);
    mcp_offer(server, g->texts, g->count);
    gathering_clear(g);
    if (s->stale) mcp_list_again(server);
}

void mcp_list_begin(struct mcp_server *server)
{
    struct mcp_session *s = &server->session;
    s->state = SESSION_LISTING;
    if (!s->offers_tools) {
        gathering_clear(&server->gathering);
        list_ended(server);
        return;
    }
    timer_start(s->timer, server->ways.pace.start_ms);
    send_list(server);
}

void mcp_list_take(struct mcp_server *server, const struct rpc_message *message)
{
    struct mcp_session *s = &server->session;
    struct mcp_gathering *g = &server->gathering;
    g->request = 0;
    if (message->kind == RPC_ERROR) {
        if (s->state == SESSION_LISTING)
            mcp_session_refused(server, "it did not tell its tools", message);
        else
            mcp_note(server, "no list", message->text);
        return;
    }
    const struct json *list = json_get(message->result, STR("tools"));
    const struct json *cursor = json_get(message->result, STR("nextCursor"));
    bool more = cursor && cursor->type == JSON_STRING && cursor->text.len <= MCP_CURSOR_BYTES_MAX;
    if (list && list->type == JSON_ARRAY) add_definitions(server, list);
    if (more && ++g->pages < MCP_PAGES_MAX) {
        if (s->state == SESSION_LISTING) timer_start(s->timer, server->ways.pace.start_ms);
        g->request = mcp_session_ask(server, "tools/list", arena_str(&g->arena, cursor->text));
        return;
    }
    list_ended(server);
}
