/* SPDX-License-Identifier: Apache-2.0
 *
 * What agents there are, in their order, and their settings. The first is the one that is meant when a
 * request names none.
 */
#include "app/agents/agents.h"
#include "app/api/handlers.h"
#include "app/config/option.h"
#include "app/http/change.h"
#include "app/server.h"
#include "base/limits.h"

/* ---- GET /agents ---- */

static void put_tool(struct json_writer *w, const struct tool *tool)
{
    json_object(w);
    json_member(w, STR("name"), tool->name);
    json_member(w, STR("effect"), tool->write ? STR("write") : STR("read"));
    if (tool->write) json_member(w, STR("risk"), str_c(tool_risk_name(tool->risk)));
    json_member(w, STR("description"), tool->description);
    json_object_end(w);
}

static void put_limits(struct json_writer *w, const struct server *server,
                       const struct agent *agent)
{
    json_key(w, STR("limits"));
    json_object(w);
    json_key(w, STR("upload"));
    json_number_u64(w, server->config->upload_bytes_max);
    json_key(w, STR("body"));
    json_number_u64(w, server->config->body_bytes_max);
    json_key(w, STR("maxToolRounds"));
    json_number_u64(w, agent->max_rounds);
    json_object_end(w);
}

static void put_capabilities(struct json_writer *w, const struct agent *agent)
{
    json_key(w, STR("capabilities"));
    json_object(w);
    json_key(w, STR("askUser"));
    json_bool(w, agent->ask_user);
    json_key(w, STR("tools"));
    json_array(w);
    for (size_t i = 0; i < agent->tool_count; i++) put_tool(w, agent->tools[i]);
    json_array_end(w);
    json_key(w, STR("plan"));
    json_bool(w, agent->plan != PLAN_NEVER);
    json_key(w, STR("attachments"));
    json_bool(w, true);
    json_object_end(w);
}

static void put_agent(struct json_writer *w, const struct server *server, const struct agent *agent)
{
    const struct strs *starters = &agents_config(server->agents, agent->name)->starters;
    json_object(w);
    json_member(w, STR("name"), agent->name);
    json_member(w, STR("model"), str_c(agent->model.name));
    json_member(w, STR("provider"), str_c(agent->model.provider));
    json_key(w, STR("starters"));
    json_array(w);
    for (size_t i = 0; i < starters->count; i++) json_string(w, starters->items[i]);
    json_array_end(w);
    if (agent->locale.len) json_member(w, STR("locale"), agent->locale);
    json_member(w, STR("plan"), str_c(plan_names[agent->plan]));
    put_limits(w, server, agent);
    put_capabilities(w, agent);
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
    for (size_t i = 0; i < agents_count(agents); i++)
        put_agent(&w, x->server, agents_at(agents, i));
    json_array_end(&w);
    json_object_end(&w);
    if (out.full)
        exchange_error(x, ERR_TOO_LARGE, NULL);
    else
        exchange_json(x, 200, buf_str(&out));
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
    enum err e = agent_settings_save(db, agent, change->x->body);
    if (!e) e = agent_settings_load(db, arena, agent, &patch->now, &change->why);
    if (e) return e;
    change->status = 200;
    change->body = settings_json(arena, patch->config, &patch->now);
    return OK;
}

static void patch_after(struct change *change)
{
    struct patch_settings *patch = (struct patch_settings *)(void *)change;
    agents_apply(change->x->server->agents, patch->config->name, &patch->now);
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
