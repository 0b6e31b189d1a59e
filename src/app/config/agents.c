/* SPDX-License-Identifier: Apache-2.0
 *
 * Models and agents as a whole, once every layer is laid: what one row cannot say about another.
 *
 *     agent                          its model
 *     names one                      that entry of `models`; an unknown name is refused
 *     names none, model.* is given   the options
 *     names none, one in `models`    that one
 *     names none, several            refused: which?
 *     names none, none there         the options, which are the demo model then
 *
 * Invariants of what is left behind: 1. a model of openai or anthropic has an address and a name; its
 * key is read; 2. a scripted one has a script; 3. there is an agent, `assistant` first if it is one
 * of them; 4. the model of every agent is there, and stands among its values, so that what
 * config_print shows is read back as the same.
 */
#include <stdio.h>
#include <string.h>

#include "app/config/int.h"
#include "app/say.h"

static bool given(const struct option_target *target, const char *row)
{
    return target->values[option_at(str_c(row)) - options].source != CONFIG_DEFAULT;
}

/* The source of the last layer that gave one of these rows. */
static enum config_source latest(const struct config_value *values, enum option_of of)
{
    enum config_source source = CONFIG_DEFAULT;
    for (size_t i = 0; i < option_count; i++)
        if (options[i].of == of && values[i].source > source) source = values[i].source;
    return source;
}

/* ---- models ---- */

static enum err refuse_row(const struct option_target *target, const char *place, const char *row,
                           const char *what)
{
    struct option_path path = option_path(target, str_c(row));
    return fault_field(target->reterr, ERR_CONFIG, path.text, "%s: %s %s", place, path.text, what);
}

/* Addresses of services; NULL: nothing is called. */
static const char *const services[] = {
    [PROVIDER_DEMO] = NULL,
    [PROVIDER_SCRIPTED] = NULL,
    [PROVIDER_OPENAI] = "https://api.openai.com/v1",
    [PROVIDER_ANTHROPIC] = "https://api.anthropic.com",
};

/* What is said of a service though none is called. */
static void warn_unused(struct config_load *load, const struct option_target *target)
{
    static const char *const rows[] = {"model.base_url", "model.api_key", "model.api_key_file"};
    for (size_t i = 0; i < COUNT(rows); i++)
        if (given(target, rows[i]))
            config_warn(load, arena_printf(load->arena,
                                           "%s is set and not used; set %s to openai or anthropic",
                                           option_path(target, str_c(rows[i])).text,
                                           option_path(target, STR("model.provider")).text));
}

static enum err finish_price(const struct option_target *target, struct config_model *model)
{
    static const char *const rows[] = {"model.price.input", "model.price.output"};
    bool has[] = {given(target, rows[0]), given(target, rows[1])};
    if (has[0] && has[1]) return OK;
    if (has[0] || has[1])
        return refuse_row(target, config_place(target, rows[has[0] ? 0 : 1]).text,
                          rows[has[0] ? 0 : 1], "is half a price; give both input and output");
    model->price = (struct model_price){0};
    return OK;
}

static enum err finish_model(struct config_load *load, const struct option_target *target,
                             struct config_model *model)
{
    const char *provider_row = "model.provider";
    struct option_place place = config_place(target, provider_row);
    const char *base_url = services[model->provider];
    enum err e = config_take_key(target, "model.api_key", &model->api_key);
    if (!e) e = finish_price(target, model);
    if (e) return e;
    if (model->provider == PROVIDER_SCRIPTED && !load->config.script.len)
        return fault_field(target->reterr, ERR_CONFIG, "script",
                           "%s: %s is scripted and there is no script; name its file with script "
                           "or FERMATA_SCRIPT",
                           place.text, option_path(target, str_c(provider_row)).text);
    if (base_url && !model->model.len)
        return refuse_row(target, place.text, "model.name",
                          "is missing; write what the service calls the model");
    if (model->window && model->window <= model->max_output)
        return refuse_row(target, config_place(target, "model.window").text, "model.window",
                          "leaves no room beside max_output; a window holds both request and "
                          "answer");
    if (!base_url) warn_unused(load, target);
    if (base_url && !model->base_url.len) model->base_url = str_c(base_url);
    return OK;
}

static enum err finish_models(struct config_load *load)
{
    struct config *c = &load->config;
    bool scripted = c->model.provider == PROVIDER_SCRIPTED;
    enum err e = finish_model(load, &load->options, &c->model);
    for (size_t i = 0; !e && i < load->model_count; i++) {
        struct config_model *model = &load->models[i];
        struct option_target target =
            config_target(load, OF_MODEL, model->name, model, model->values);
        if (!given(&target, option_maps[OF_MODEL].needed)) {
            char place[96];
            snprintf(place, sizeof place, "%s:%u", say(c->file).text, model->line);
            return refuse_row(&target, place, option_maps[OF_MODEL].needed,
                              "is missing; write demo, scripted, openai or anthropic");
        }
        scripted |= model->provider == PROVIDER_SCRIPTED;
        e = finish_model(load, &target, model);
    }
    if (e) return e;
    if (!scripted && c->script.len)
        config_warn(load,
                    STR("script is set and not used; set model.provider to scripted to play it"));
    if (!scripted && c->script_log.len)
        config_warn(load, STR("script_log is set and not used; only the scripted model writes it"));
    c->models = (struct config_models){load->models, load->model_count};
    return OK;
}

/* ---- agents ---- */

static enum err unknown_model(const struct option_target *target, const struct config_load *load,
                              str name)
{
    struct nearest n;
    nearest_init(&n, name);
    for (size_t i = 0; i < load->model_count; i++)
        nearest_offer(&n, load->models[i].name, arena_cstr(load->arena, load->models[i].name));
    struct option_path path = option_path(target, STR("agents.assistant.model"));
    return fault_field(target->reterr, ERR_CONFIG, path.text, "%s: %s: \"%s\" is no model%s",
                       config_place(target, "agents.assistant.model").text, path.text,
                       say(name).text,
                       say_nearest(&n, "write the name of an entry of models").text);
}

static enum err choose_model(const struct config_load *load, const struct option_target *target,
                             struct config_agent *agent)
{
    if (agent->model.len) {
        for (size_t i = 0; i < load->model_count; i++)
            if (str_eq(load->models[i].name, agent->model)) return OK;
        return unknown_model(target, load, agent->model);
    }
    if (!load->model_count || latest(load->config.values, OF_MODEL) != CONFIG_DEFAULT) return OK;
    if (load->model_count > 1) {
        char place[96];
        snprintf(place, sizeof place, "%s:%u", say(load->config.file).text,
                 agent->line ? agent->line : load->models[0].line);
        return refuse_row(target, place, "agents.assistant.model",
                          "is missing; models has several entries: write the name of one");
    }
    str *name = ARENA_NEW(load->arena, str);
    *name = agent->model = load->models[0].name;
    target->values[option_at(STR("agents.assistant.model")) - options] =
        (struct config_value){CONFIG_DEFAULT, 0, {name, 1}};
    return OK;
}

static enum err finish_agent(struct config_load *load, const struct option_target *target,
                             struct config_agent *agent)
{
    enum err e = choose_model(load, target, agent);
    if (e) return e;
    if (agent->cost_max && !config_model_of(&load->config, agent)->price.currency[0])
        config_warn(load,
                    arena_printf(load->arena,
                                 "%s is set, and the agent's model has no price: nothing is "
                                 "counted; give the model price.input and price.output",
                                 option_path(target, STR("agents.assistant.budget.cost")).text));
    return OK;
}

static enum err finish_agents(struct config_load *load)
{
    struct config_agent *agents = arena_array(load->arena, load->agent_count + 1, sizeof *agents);
    size_t count = 0;
    bool there = load->assistant.line || !load->agent_count ||
                 latest(load->config.values, OF_AGENT) > CONFIG_FILE;
    enum err e = OK;
    if (there) {
        e = finish_agent(load, &load->options, &load->assistant);
        agents[count++] = load->assistant;
    }
    for (size_t i = 0; !e && i < load->agent_count; i++) {
        struct config_agent *agent = &load->agents[i];
        struct option_target target =
            config_target(load, OF_AGENT, agent->name, agent, agent->values);
        e = finish_agent(load, &target, agent);
        agents[count++] = *agent;
    }
    if (e) return e;
    load->config.agents = (struct config_agents){agents, count};
    return OK;
}

enum err config_agents_finish(struct config_load *load)
{
    enum err e = finish_models(load);
    return e ? e : finish_agents(load);
}
