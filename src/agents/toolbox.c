/* SPDX-License-Identifier: Apache-2.0
 *
 * The toolbox: all tools there are, one list from three sources (ours, HTTP tools, MCP servers),
 * and the start and stop of those.
 *
 *     calendar pack, HTTP tools ---- toolbox_own ---+
 *                                                   +--> publish --> *published, on_change
 *     MCP servers ---- on_tools --------------------+
 *
 * Invariants:
 * 1. A list, once published, never changes and stays until toolbox_free, as does everything that its
 *    rows point to. Store threads read it without asking anybody.
 * 2. A server is in `all` from the moment it is made until toolbox_free; it is in `current` as long as
 *    the configuration has it. One that a failed reload has made is never current, and talks on while it
 *    stops.
 * 3. The same options mean the same server: it is never restarted for a reload that does not touch it.
 *
 * To add a source: its tools in toolbox_own, or another list beside those of the servers in publish.
 */
#include "agents/toolbox.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/say.h"
#include "mcp/client/consent.h"
#include "net/loop.h"
#include "tool/calendar.h"
#include "tool/http_tool.h"
#include "tool/tools.h"

struct served {
    struct served *next;
    struct toolbox *toolbox;
    const struct config_mcp *config; /* of a current one; that of a failed reload is gone */
    str name;                        /* in the toolbox's arena */
    struct mcp_server *server;
    bool stopping, stopped;
};

/* Our own tools of one configuration. */
struct own {
    struct own *next;
    struct tools tools;
};

/* A list, and what it was joined from. */
struct list {
    struct list *next;
    struct tools tools;
    const struct own *own;
    const struct tools *offered;
    size_t offered_count;
};

struct toolbox {
    struct toolbox_options options;
    struct arena arena; /* of the lists */
    struct list *lists; /* newest first */
    struct own *own;    /* newest first */
    const struct tools *tools;
    struct served *all;
    struct served *current[MCP_SERVERS_MAX]; /* in the order of the configuration */
    size_t current_count;
    void (*on_stopped)(void *arg);
    void *on_stopped_arg;
    struct timer *stop_timer;
    bool closing;
};

/* ---- the list ---- */

struct tools toolbox_join(struct arena *arena, const struct tools *own, const struct tools *others,
                          size_t count, void (*left_out)(const struct tool *tool, const char *why))
{
    size_t total = own->count;
    for (size_t i = 0; i < count; i++) total += others[i].count;
    struct tool *rows = arena_array(arena, total, sizeof *rows);
    struct tools joined = {.rows = rows};
    for (size_t i = 0; i < own->count; i++) rows[joined.count++] = own->rows[i];
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < others[i].count; k++) {
            const struct tool *tool = &others[i].rows[k];
            const char *why = NULL;
            if (joined.count >= TOOLS_MAX) why = "there are too many tools";
            if (tools_find(&joined, tool->name)) why = "another tool has this name";
            if (why)
                left_out(tool, why);
            else
                rows[joined.count++] = *tool;
        }
    }
    return joined;
}

static void log_left_out(const struct tool *tool, const char *why)
{
    log_warn("tools.left_out", LOG_STR("tool", tool->name), LOG_STR("server", tool->pack),
             LOG_CSTR("reason", why));
}

static bool joined_from(const struct list *list, const struct own *own, const struct tools *offered,
                        size_t count)
{
    bool same = list->own == own && list->offered_count == count;
    for (size_t i = 0; same && i < count; i++)
        same =
            list->offered[i].rows == offered[i].rows && list->offered[i].count == offered[i].count;
    return same;
}

/* The list of this moment, for everybody. Lists are kept, so one that was there before is the same again:
 * a server that goes back and forth between two of its own takes no memory with it. */
static void publish(struct toolbox *toolbox)
{
    struct tools offered[MCP_SERVERS_MAX];
    size_t count = toolbox->current_count;
    for (size_t i = 0; i < count; i++) offered[i] = mcp_tools(toolbox->current[i]->server);
    struct list *list = toolbox->lists;
    while (list && !joined_from(list, toolbox->own, offered, count)) list = list->next;
    if (!list) {
        struct tools *kept = arena_array(&toolbox->arena, count, sizeof *kept);
        for (size_t i = 0; i < count; i++) kept[i] = offered[i];
        list = ARENA_NEW(&toolbox->arena, struct list);
        *list = (struct list){.next = toolbox->lists,
                              .tools = toolbox_join(&toolbox->arena, &toolbox->own->tools, offered,
                                                    count, log_left_out),
                              .own = toolbox->own,
                              .offered = kept,
                              .offered_count = count};
        toolbox->lists = list;
    }
    toolbox->tools = &list->tools;
    *toolbox->options.published = &list->tools;
}

const struct tools *toolbox_tools(const struct toolbox *toolbox)
{
    return toolbox->tools;
}

/* ---- our own tools ---- */

static enum err make_http_tool(struct arena *arena, struct client *client, struct spool *spool,
                               const struct config *config, size_t index, struct tool *ret_tool,
                               struct fault *reterr)
{
    const struct config_http_tool *c = &config->http_tools.items[index];
    struct http_tool_header *headers = arena_array(arena, c->headers.count, sizeof *headers);
    for (size_t i = 0; i < c->headers.count; i++)
        headers[i] = (struct http_tool_header){c->headers.items[i].name, c->headers.items[i].value};
    struct fault why = {0};
    if (http_tool_new(arena, client,
                      &(struct http_tool_options){.name = c->name,
                                                  .url = c->url,
                                                  .description = c->description,
                                                  .schema = c->schema,
                                                  .write = c->write,
                                                  .idempotent = c->idempotent,
                                                  .risk = c->risk,
                                                  .timeout_s = c->timeout_s,
                                                  .headers = headers,
                                                  .header_count = c->headers.count,
                                                  .spool = spool},
                      ret_tool, &why) == OK) {
        ret_tool->done_zh = arena_str(arena, c->summary.zh);
        ret_tool->done_en = arena_str(arena, c->summary.en);
        return OK;
    }
    char path[sizeof why.field + 48];
    snprintf(path, sizeof path, "tools[%zu].http%s%s", index, why.field[0] ? "." : "", why.field);
    return fault_field(reterr, ERR_CONFIG, path, "%s:%u: %s: %s", say(config->file).text, c->line,
                       path, why.text);
}

enum err toolbox_http_tools(struct arena *arena, struct client *client, struct spool *spool,
                            const struct config *config, struct tools *ret_tools,
                            struct fault *reterr)
{
    size_t count = config->http_tools.count;
    struct tool *made = arena_array(arena, count, sizeof *made);
    for (size_t i = 0; i < count; i++) {
        enum err e = make_http_tool(arena, client, spool, config, i, &made[i], reterr);
        if (!e) continue;
        tools_free(&(struct tools){made, i});
        return e;
    }
    *ret_tools = (struct tools){made, count};
    return OK;
}

enum err toolbox_own(struct toolbox *toolbox, struct arena *arena, const struct config *config,
                     struct tools *ret_own, struct fault *reterr)
{
    const struct toolbox_options *o = &toolbox->options;
    struct tools packs[3] = {0};
    calendar_tools(arena, o->store, &packs[0].rows, &packs[0].count);
    packs[2] = consent_tools(arena, o->loop);
    enum err e = toolbox_http_tools(arena, o->client, o->spool, config, &packs[1], reterr);
    if (e) return e;
    e = tools_join(arena, packs, COUNT(packs), ret_own, reterr);
    if (e) tools_free(&packs[1]);
    return e;
}

void toolbox_drop(const struct tools *own)
{
    tools_free(own);
}

/* ---- servers ---- */

static bool strs_same(const struct strs *a, const struct strs *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++) same = str_eq(a->items[i], b->items[i]);
    return same;
}

static bool pairs_same(const struct config_pairs *a, const struct config_pairs *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = str_eq(a->items[i].name, b->items[i].name) &&
               str_eq(a->items[i].value, b->items[i].value);
    return same;
}

static bool headers_same(const struct config_headers *a, const struct config_headers *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = str_eq(a->items[i].name, b->items[i].name) &&
               str_eq(a->items[i].value, b->items[i].value);
    return same;
}

/* Where it stands in the file makes no difference. */
static bool server_same(const struct config_mcp *a, const struct config_mcp *b)
{
    return str_eq(a->name, b->name) && str_eq(a->url, b->url) && a->trusted == b->trusted &&
           a->timeout_s == b->timeout_s && strs_same(&a->command, &b->command) &&
           strs_same(&a->read, &b->read) && strs_same(&a->idempotent, &b->idempotent) &&
           pairs_same(&a->env, &b->env) && headers_same(&a->headers, &b->headers);
}

struct mcp_options toolbox_mcp_options(struct arena *arena, const struct config_mcp *config)
{
    struct mcp_pair *env = arena_array(arena, config->env.count, sizeof *env);
    struct mcp_pair *headers = arena_array(arena, config->headers.count, sizeof *headers);
    for (size_t i = 0; i < config->env.count; i++)
        env[i] = (struct mcp_pair){config->env.items[i].name, config->env.items[i].value};
    for (size_t i = 0; i < config->headers.count; i++)
        headers[i] =
            (struct mcp_pair){config->headers.items[i].name, config->headers.items[i].value};
    return (struct mcp_options){.name = config->name,
                                .command = config->command.items,
                                .command_count = config->command.count,
                                .env = env,
                                .env_count = config->env.count,
                                .url = config->url,
                                .headers = headers,
                                .header_count = config->headers.count,
                                .trusted = config->trusted,
                                .read = config->read.items,
                                .read_count = config->read.count,
                                .idempotent = config->idempotent.items,
                                .idempotent_count = config->idempotent.count,
                                .timeout_s = config->timeout_s};
}

static bool is_current(const struct served *served)
{
    const struct toolbox *toolbox = served->toolbox;
    for (size_t i = 0; i < toolbox->current_count; i++)
        if (toolbox->current[i] == served) return true;
    return false;
}

static void on_tools(void *arg, struct mcp_server *server)
{
    struct served *served = arg;
    struct toolbox *toolbox = served->toolbox;
    if (toolbox->closing || !is_current(served)) return;
    publish(toolbox);
    log_info("mcp.tools", LOG_STR("server", served->name),
             LOG_U64("tools", mcp_tools(server).count));
    toolbox->options.on_change(toolbox->options.arg);
}

static void on_state(void *arg, struct mcp_server *server, const char *why)
{
    const struct served *served = arg;
    (void)server;
    if (!why[0])
        log_info("mcp.connected", LOG_STR("server", served->name));
    else if (!served->stopping)
        log_warn("mcp.away", LOG_STR("server", served->name), LOG_CSTR("reason", why));
}

static void on_stderr(void *arg, struct mcp_server *server, str line)
{
    const struct served *served = arg;
    (void)server;
    log_info("mcp.stderr", LOG_STR("server", served->name), LOG_STR("text", line));
}

static void on_note(void *arg, struct mcp_server *server, const char *what, str text)
{
    const struct served *served = arg;
    (void)server;
    log_info("mcp.note", LOG_STR("server", served->name), LOG_CSTR("what", what),
             LOG_STR("text", text));
}

static enum err server_start(struct toolbox *toolbox, const struct config *config,
                             const struct config_mcp *c, struct served **ret_served,
                             struct fault *reterr)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct served *served = mem_new(sizeof *served);
    *served = (struct served){.toolbox = toolbox, .config = c};
    served->name = arena_str(&toolbox->arena, c->name);
    struct mcp_options options = toolbox_mcp_options(&arena, c);
    options.loop = toolbox->options.loop;
    options.wall = toolbox->options.wall;
    options.client = toolbox->options.client;
    options.spool = toolbox->options.spool;
    options.store = toolbox->options.store;
    options.on_tools = on_tools;
    options.on_state = on_state;
    options.on_stderr = on_stderr;
    options.on_note = on_note;
    options.arg = served;
    struct fault why = {0};
    if (mcp_server_new(&options, &served->server, &why)) {
        free(served);
        char path[sizeof why.field + 80];
        snprintf(path, sizeof path, "mcp.%s%s%s", say(c->name).text, why.field[0] ? "." : "",
                 why.field);
        return fault_field(reterr, ERR_CONFIG, path, "%s:%u: %s: %s", say(config->file).text,
                           c->line, path, why.text);
    }
    served->next = toolbox->all;
    toolbox->all = served;
    *ret_served = served;
    return OK;
}

/* ---- stopping ---- */

static void look_stopped(struct toolbox *toolbox)
{
    if (!toolbox->on_stopped) return;
    for (const struct served *s = toolbox->all; s; s = s->next)
        if (!s->stopped) return;
    timer_stop(toolbox->stop_timer);
    TAKE(toolbox->on_stopped)(toolbox->on_stopped_arg);
}

static void server_stopped(void *arg)
{
    struct served *served = arg;
    served->stopped = true;
    look_stopped(served->toolbox);
}

static void server_stop(struct served *served)
{
    if (served->stopping) return;
    served->stopping = true;
    mcp_server_stop(served->server, server_stopped, served);
}

/* A child that does not go is killed by toolbox_free. */
static void on_stop_late(void *arg)
{
    struct toolbox *toolbox = arg;
    if (toolbox->on_stopped) TAKE(toolbox->on_stopped)(toolbox->on_stopped_arg);
}

void toolbox_stop(struct toolbox *toolbox, void (*on_stopped)(void *arg), void *arg)
{
    toolbox->closing = true;
    for (struct served *s = toolbox->all; s; s = s->next) server_stop(s);
    toolbox->on_stopped = on_stopped;
    toolbox->on_stopped_arg = arg;
    timer_start(toolbox->stop_timer, SHUTDOWN_MS_MAX);
    look_stopped(toolbox);
}

/* ---- one configuration after the other ---- */

enum err toolbox_take(struct toolbox *toolbox, const struct config *config, const struct tools *own,
                      struct toolbox_change *ret_change, struct fault *reterr)
{
    struct served *next[MCP_SERVERS_MAX];
    struct toolbox_change change = {0};
    size_t count = 0;
    if (config->mcps.count > MCP_SERVERS_MAX)
        return fault_field(reterr, ERR_CONFIG, "mcp", "mcp: at most %d servers can be configured",
                           MCP_SERVERS_MAX);
    for (; count < config->mcps.count; count++) {
        const struct config_mcp *c = &config->mcps.items[count];
        size_t same = 0;
        while (same < toolbox->current_count && !server_same(toolbox->current[same]->config, c))
            same++;
        if (same < toolbox->current_count) {
            next[count] = toolbox->current[same];
            change.kept++;
            continue;
        }
        enum err e = server_start(toolbox, config, c, &next[count], reterr);
        for (size_t i = 0; e && i < count; i++)
            if (!is_current(next[i])) server_stop(next[i]); /* it was made just now */
        if (e) return e;
        change.started++;
    }
    for (size_t i = 0; i < toolbox->current_count; i++) {
        size_t at = 0;
        while (at < count && next[at] != toolbox->current[i]) at++;
        if (at < count) continue;
        change.stopped++;
        server_stop(toolbox->current[i]);
    }
    for (size_t i = 0; i < count; i++) toolbox->current[i] = next[i];
    toolbox->current_count = count;
    struct own *kept = ARENA_NEW(&toolbox->arena, struct own);
    *kept = (struct own){.next = toolbox->own, .tools = *own};
    toolbox->own = kept;
    publish(toolbox);
    *ret_change = change;
    return OK;
}

struct toolbox *toolbox_new(const struct toolbox_options *options)
{
    struct toolbox *toolbox = mem_new(sizeof *toolbox);
    toolbox->options = *options;
    arena_init(&toolbox->arena);
    toolbox->stop_timer = timer_new(options->loop, on_stop_late, toolbox);
    return toolbox;
}

void toolbox_free(struct toolbox *toolbox)
{
    if (!toolbox) return;
    while (toolbox->all) {
        struct served *served = toolbox->all;
        toolbox->all = served->next;
        mcp_server_free(served->server);
        free(served);
    }
    for (const struct own *own = toolbox->own; own; own = own->next) tools_free(&own->tools);
    timer_free(toolbox->stop_timer);
    arena_done(&toolbox->arena);
    free(toolbox);
}
