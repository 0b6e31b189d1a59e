/* SPDX-License-Identifier: Apache-2.0
 *
 * Agents: which there are, in their order, and their settings. The first is the one that is meant
 * when a request names none.
 */
#include <string.h>

#include "agents/agents.h"
#include "base/limits.h"
#include "config/option.h"
#include "http/handlers.h"
#include "http/http_change.h"
#include "server/server.h"
#include "ui/locale.h"

/* ---- GET /agents ---- */

/* Starters as the file has them. Where it says nothing of them a script may have its own, as the demo's
 * has, in the agent's language or in that of whoever asks. */
static void put_starters(struct json_writer *w, const struct config_agent *config,
                         const struct agent *agent, enum ui_locale locale)
{
    const struct option *row = option_at(STR("agents.assistant.starters"));
    bool given = config->values[row - options].source != CONFIG_DEFAULT;
    if (agent->locale.len) locale = ui_locale_of(agent->locale);
    json_key(w, STR("starters"));
    json_array(w);
    for (size_t i = 0; i < config->starters.count; i++) json_string(w, config->starters.items[i]);
    for (size_t i = 0; !given; i++) {
        str starter = model_starter(&agent->model, i, locale == UI_ZH);
        if (!starter.len) break;
        json_string(w, starter);
    }
    json_array_end(w);
}

static void put_agent(struct json_writer *w, const struct server *server, const struct agent *agent,
                      enum ui_locale locale)
{
    json_object(w);
    json_member(w, STR("name"), agent->name);
    json_member(w, STR("model"), str_c(agent->model.name));
    json_member(w, STR("provider"), str_c(agent->model.provider));
    put_starters(w, agents_config(server->agents, agent->name), agent, locale);
    if (agent->locale.len) json_member(w, STR("locale"), agent->locale);
    json_member(w, STR("plan"), str_c(plan_names[agent->plan]));
    json_key(w, STR("limits"));
    json_object(w);
    json_member_u64(w, STR("upload"), server->config->upload_bytes_max);
    json_member_u64(w, STR("body"), server->config->body_bytes_max);
    json_member_u64(w, STR("maxToolRounds"), agent->max_rounds);
    json_object_end(w);
    json_key(w, STR("capabilities"));
    json_object(w);
    json_member_bool(w, STR("askUser"), agent->ask_user);
    json_key(w, STR("tools"));
    json_array(w);
    for (size_t i = 0; i < agent->tool_count; i++) {
        const struct tool *tool = agent->tools[i];
        json_object(w);
        json_member(w, STR("name"), tool->name);
        json_member(w, STR("effect"), tool->write ? STR("write") : STR("read"));
        if (tool->write) json_member(w, STR("risk"), str_c(tool_risk_name(tool->risk)));
        json_member(w, STR("description"), tool->description);
        json_object_end(w);
    }
    json_array_end(w);
    json_member_bool(w, STR("plan"), agent->plan != PLAN_NEVER);
    json_member_bool(w, STR("attachments"), true);
    json_object_end(w);
    json_object_end(w);
}

void handle_agents_list(struct exchange *x)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, HTTP_ANSWER_BYTES_MAX / 2);
    struct json_writer w;
    json_write_begin(&w, &out);
    json_object(&w);
    json_key(&w, STR("agents"));
    json_array(&w);
    const struct agents *agents = x->server->agents;
    str accepted = http_head_get(x->head, STR("Accept-Language"));
    for (size_t i = 0; i < agents_count(agents); i++)
        put_agent(&w, x->server, agents_at(agents, i), ui_locale_accepted(accepted));
    json_array_end(&w);
    json_object_end(&w);
    exchange_written(x, &out);
}

/* ---- GET, PATCH /agents/{name}/settings ---- */

static str settings_json(struct arena *arena, const struct config_agent *config,
                         const struct agent_settings *settings)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, SETTING_VALUE_BYTES_MAX);
    struct json_writer w;
    json_write_begin(&w, &out);
    agent_settings_write(&w, config, settings);
    assert(!out.full); /* CONFIG_LIST_MAX rows of a policy have a tenth of it */
    return arena_str(arena, buf_str(&out));
}

/* What the file says of the agent in the path; NULL, and answered, if there is none. */
static const struct config_agent *known_agent(struct exchange *x)
{
    const struct config_agent *config = agents_config(x->server->agents, x->params[0]);
    if (!config) exchange_error(x, ERR_NOT_FOUND, NULL);
    return config;
}

void handle_settings_get(struct exchange *x)
{
    const struct config_agent *config = known_agent(x);
    if (!config) return;
    exchange_json(x, 200,
                  settings_json(exchange_arena(x), config,
                                agents_settings(x->server->agents, config->name)));
}

struct patch_settings {
    struct change change;
    const struct config_agent *config;
    struct agent_settings now;
};

/* What is set now is read from the rows, not from the agent: another change may be on its way. */
static enum err patch_apply(struct change *change, struct db *db)
{
    struct patch_settings *patch = (struct patch_settings *)(void *)change;
    struct arena *arena = change_arena(change);
    str agent = patch->config->name;
    enum err e = agent_settings_save(db, agent, change_exchange(change)->body);
    if (!e) e = agent_settings_load(db, arena, agent, &patch->now, &change->why);
    if (e) return e;
    change->status = 200;
    change->body = settings_json(arena, patch->config, &patch->now);
    return OK;
}

static void patch_after(struct change *change)
{
    struct patch_settings *patch = (struct patch_settings *)(void *)change;
    agents_apply(change->by.server->agents, patch->config->name, &patch->now);
}

void handle_settings_patch(struct exchange *x)
{
    const struct config_agent *config = known_agent(x);
    if (!config) return;
    struct patch_settings *patch = ARENA_NEW(exchange_arena(x), struct patch_settings);
    const struct agent_tool_names names = agents_tool_names(x->server->agents);
    struct fault why = {0};
    enum err e = agent_settings_check(&names, exchange_arena(x), x->body, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    patch->config = config;
    patch->change.apply = patch_apply;
    patch->change.after = patch_after;
    change_start(&patch->change, x);
}
