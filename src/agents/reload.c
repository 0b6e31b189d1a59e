/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration again, on SIGHUP: its generations.
 *
 *     SIGHUP -> load_run (a reading job: files, settings) -> build -> take -> config.reloaded
 *                  |                                          |
 *                  +----------- config.reload_failed ---------+   and everything is as before
 *
 * build makes what can fail, in this order: models, HTTP tools, agents (their names are checked), MCP
 * servers. take swaps, and cannot fail.
 *
 * Invariants:
 * 1. A generation lives until reload_free: its texts are the names, prompts and policies of agents,
 *    its models may have calls under way, and jobs in tool run read both. RELOADS_MAX bounds them.
 * 2. server->config is the one of the start: what only a start reads is never taken from another.
 *
 * To make an option reloadable: read it from an agent, a model or a tool, and take its name off the
 * rows that reload_fixed compares.
 */
#include "agents/reload.h"

#include <stdlib.h>

#include "agents/agents.h"
#include "agents/models.h"
#include "agents/toolbox.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/option.h"
#include "duty/caution.h"
#include "server/server.h"
#include "store/db/store.h"

struct generation {
    struct generation *next;
    struct arena arena;
    struct config config; /* its own, or a copy of the one of the start */
    struct agent_settings *settings;
    struct models *models;
};

struct reload_load {
    struct job job;
    struct reload *reload;
    struct generation *made;
    bool read; /* the configuration, too */
    struct fault why;
};

struct reload {
    struct reload_options options;
    struct generation *generations; /* newest first */
    size_t count;
    bool busy, again;
};

/* ---- generations ---- */

static struct generation *generation_new(void)
{
    struct generation *g = mem_new(sizeof *g);
    arena_init(&g->arena);
    return g;
}

static void generation_free(struct generation *g)
{
    models_free(g->models);
    arena_done(&g->arena);
    free(g);
}

/* On failure the generation is the caller's to free, and nothing else has changed. */
static enum err build(struct reload *reload, struct generation *g,
                      struct toolbox_change *ret_change, struct fault *reterr)
{
    struct server *server = reload->options.server;
    struct tools own = {0};
    struct agent_set *set = NULL;
    enum err e = models_new(server->loop, server->client, &g->config, &g->models, reterr);
    if (!e) e = toolbox_own(server->toolbox, &g->arena, &g->config, &own, reterr);
    if (!e) e = agent_set_new(&g->config, g->models, &own, g->settings, &set, reterr);
    if (!e) e = toolbox_take(server->toolbox, &g->config, &own, ret_change, reterr);
    if (e) {
        agent_set_free(set);
        toolbox_drop(&own);
        return e;
    }
    agents_take(server->agents, set, toolbox_tools(server->toolbox));
    g->next = reload->generations;
    reload->generations = g;
    reload->count++;
    return OK;
}

/* ---- reading ---- */

/* On a reading thread, or at the start on this one. */
static enum err load_run(struct job *job, struct db *db)
{
    struct reload_load *load = (struct reload_load *)(void *)job;
    const struct reload_options *o = &load->reload->options;
    struct generation *g = load->made;
    enum err e = OK;
    if (load->read)
        e = config_load(&g->arena, o->args, o->arg_count, o->environment, &g->config, &load->why);
    if (!e) e = agent_settings_load_all(db, &g->arena, &g->config.agents, &g->settings, &load->why);
    return e;
}

enum err reload_first(struct reload *reload, const struct config *config, struct fault *reterr)
{
    struct generation *g = generation_new();
    g->config = *config;
    struct reload_load load = {.job.run = load_run, .reload = reload, .made = g};
    struct toolbox_change change;
    enum err e = store_run(reload->options.server->store, &load.job);
    if (e)
        fault(reterr, e, "%s", load.why.text[0] ? load.why.text : err_title(e));
    else
        e = build(reload, g, &change, reterr);
    if (e) generation_free(g);
    return e;
}

/* ---- what only a start reads ---- */

/* How the names of options begin that a reload takes. */
static const char *const reloadable[] = {"agents.", "model.", "script", NULL};

static bool is_fixed(str name)
{
    for (size_t i = 0; reloadable[i]; i++)
        if (str_starts(name, str_c(reloadable[i]))) return false;
    return true;
}

static bool strs_same(const struct strs *a, const struct strs *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++) same = str_eq(a->items[i], b->items[i]);
    return same;
}

static bool webhooks_same(const struct config_webhooks *a, const struct config_webhooks *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = str_eq(a->items[i].url, b->items[i].url) &&
               str_eq_secret(a->items[i].secret, b->items[i].secret) &&
               a->items[i].events == b->items[i].events;
    return same;
}

static bool channel_same(const struct config_channel *a, const struct config_channel *b)
{
    return str_eq(a->name, b->name) && str_eq(a->kind, b->kind) && str_eq(a->agent, b->agent) &&
           str_eq(a->base_url, b->base_url) && str_eq(a->app_id, b->app_id) &&
           str_eq(a->url, b->url) && str_eq_secret(a->token, b->token) &&
           str_eq_secret(a->secret, b->secret) && str_eq_secret(a->aes_key, b->aes_key) &&
           strs_same(&a->allow, &b->allow);
}

static bool channels_same(const struct config_channels *a, const struct config_channels *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++) same = channel_same(&a->items[i], &b->items[i]);
    return same;
}

static void name_add(struct buf *out, const char *name)
{
    if (out->len) buf_append(out, STR(", "));
    buf_append(out, str_c(name));
}

str reload_fixed(struct arena *arena, const struct config *now, const struct config *next)
{
    AUTO(buf_done) struct buf names;
    buf_init(&names, LOG_LINE_BYTES_MAX);
    bool key_named = false;
    for (size_t i = 0; i < option_count; i++) {
        str name = str_c(options[i].name);
        if (!is_fixed(name) || strs_same(&now->values[i].items, &next->values[i].items)) continue;
        key_named = key_named || str_starts(name, STR("api_key"));
        name_add(&names, options[i].name);
    }
    /* the file may be the same, and what stands in it another */
    if (!key_named && !str_eq_secret(now->api_key, next->api_key)) name_add(&names, "api_key_file");
    if (!webhooks_same(&now->webhooks, &next->webhooks)) name_add(&names, "webhooks");
    if (!channels_same(&now->channels, &next->channels)) name_add(&names, "channels");
    return arena_str(arena, buf_str(&names));
}

/* ---- again ---- */

static void taken(const struct reload *reload, const struct generation *g,
                  const struct toolbox_change *change)
{
    const struct server *server = reload->options.server;
    log_info("config.reloaded", LOG_U64("agents", agents_count(server->agents)),
             LOG_U64("models", models_count(g->models)),
             LOG_U64("tools", toolbox_tools(server->toolbox)->count),
             LOG_U64("mcp_kept", change->kept), LOG_U64("mcp_started", change->started),
             LOG_U64("mcp_stopped", change->stopped));
    for (size_t i = 0; i < g->config.warnings.count; i++)
        log_warn("config.warning", LOG_STR("text", g->config.warnings.items[i]));
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str fixed = reload_fixed(&arena, server->config, &g->config);
    if (fixed.len)
        log_warn("config.restart_needed", LOG_STR("keys", fixed),
                 LOG_CSTR("reason", "these are read at the start alone and are as they were"));
    if (change->started) cautions_log(&g->config, server->wall, auth_required(server->auth));
}

static void load_done(struct job *job, enum err e)
{
    struct reload_load *load = (struct reload_load *)(void *)job;
    struct reload *reload = load->reload;
    struct toolbox_change change;
    bool stopping = reload->options.server->stopping;
    reload->busy = false;
    if (stopping || e == ERR_SHUTTING_DOWN) {
        generation_free(load->made);
    } else if (e || (e = build(reload, load->made, &change, &load->why))) {
        const char *why = load->why.text[0] ? load->why.text : err_title(e);
        log_error("config.reload_failed", LOG_CSTR("reason", why),
                  LOG_CSTR("then", "everything is as before"));
        generation_free(load->made);
    } else {
        taken(reload, load->made, &change);
    }
    free(load);
    bool again = reload->again && !stopping;
    reload->again = false;
    if (again) reload_again(reload);
}

void reload_again(struct reload *reload)
{
    reload->again = reload->busy;
    if (reload->busy) return;
    if (reload->count >= RELOADS_MAX) {
        log_error("config.reload_failed",
                  LOG_CSTR("reason", "it was reloaded too often; restart the server"),
                  LOG_U64("reloads", reload->count));
        return;
    }
    struct reload_load *load = mem_new(sizeof *load);
    *load = (struct reload_load){.job = {.run = load_run, .done = load_done},
                                 .reload = reload,
                                 .made = generation_new(),
                                 .read = true};
    reload->busy = true;
    store_read(reload->options.server->store, &load->job);
}

struct reload *reload_new(const struct reload_options *given)
{
    struct reload *reload = mem_new(sizeof *reload);
    reload->options = *given;
    return reload;
}

void reload_free(struct reload *reload)
{
    if (!reload) return;
    while (reload->generations) {
        struct generation *g = reload->generations;
        reload->generations = g->next;
        generation_free(g);
    }
    free(reload);
}
