/* SPDX-License-Identifier: Apache-2.0
 *
 * Models and agents as a whole, once every layer is laid: keys, addresses, which agent has which
 * model; what one row cannot say about another.
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
#include <string.h>

#include "base/say.h"
#include "config/config_int.h"

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
    return option_refuse(target, place, option_path(target, str_c(row)).text, "%s", what);
}

/* Addresses of services; NULL: nothing is called. */
static const char *const services[] = {
    [PROVIDER_DEMO] = NULL,
    [PROVIDER_SCRIPTED] = NULL,
    [PROVIDER_OPENAI] = "https://api.openai.com/v1",
    [PROVIDER_ANTHROPIC] = "https://api.anthropic.com",
};

static enum err finish_model(struct config_load *load, const struct option_target *target,
                             struct config_model *model)
{
    static const char *const prices[] = {"model.price.output", "model.price.input"};
    static const char *const of_service[] = {"model.base_url", "model.api_key",
                                             "model.api_key_file"};
    const char *base_url = services[model->provider];
    struct option_place place = config_place(target, "model.provider");
    struct option_path provider = option_path(target, STR("model.provider"));
    enum err e = config_take_key(target, "model.api_key", &model->api_key);
    if (e) return e;
    bool input = option_given(target, prices[1]), output = option_given(target, prices[0]);
    if (input != output)
        return refuse_row(target, config_place(target, prices[input]).text, prices[input],
                          "is half a price; give both input and output");
    if (!input) model->price = (struct model_price){0};
    if (model->provider == PROVIDER_SCRIPTED && !load->config.script.len)
        return fault_field(target->reterr, ERR_CONFIG, "script",
                           "%s: %s is scripted and there is no script; name its file with script "
                           "or FERMATA_SCRIPT",
                           place.text, provider.text);
    if (base_url && !model->model.len)
        return refuse_row(target, place.text, "model.name",
                          "is missing; write what the service calls the model");
    if (model->window && model->window <= model->max_output)
        return refuse_row(target, config_place(target, "model.window").text, "model.window",
                          "leaves no room beside max_output; a window holds both request and "
                          "answer");
    if (base_url && !model->base_url.len) model->base_url = str_c(base_url);
    for (size_t i = 0; !base_url && i < COUNT(of_service); i++)
        if (option_given(target, of_service[i]))
            config_warn(load, arena_printf(load->arena,
                                           "%s is set and not used; set %s to openai or anthropic",
                                           option_path(target, str_c(of_service[i])).text,
                                           provider.text));
    return OK;
}

static enum err finish_models(struct config_load *load)
{
    struct config *c = &load->config;
    struct config_model *models = arena_array(load->arena, c->models.count, sizeof *models);
    bool scripted = c->model.provider == PROVIDER_SCRIPTED;
    enum err e = finish_model(load, &load->options, &c->model);
    for (size_t i = 0; !e && i < c->models.count; i++) {
        models[i] = c->models.items[i];
        scripted |= models[i].provider == PROVIDER_SCRIPTED;
        struct option_target target = config_target(load, OF_MODEL, i, &models[i]);
        e = finish_model(load, &target, &models[i]);
    }
    if (e) return e;
    if (!scripted && c->script.len)
        config_warn(load,
                    STR("script is set and not used; set model.provider to scripted to play it"));
    if (!scripted && c->script_log.len)
        config_warn(load, STR("script_log is set and not used; only the scripted model writes it"));
    c->models.items = models;
    return OK;
}

/* ---- agents ---- */

/* Which model does it have? */
static enum err choose_model(const struct config_load *load, const struct option_target *target,
                             struct config_agent *agent)
{
    const char *row = "agents.assistant.model";
    const struct config_models *models = &load->config.models;
    if (agent->model.len) {
        struct nearest n;
        nearest_init(&n, agent->model);
        for (size_t i = 0; i < models->count; i++) {
            if (str_eq(models->items[i].name, agent->model)) return OK;
            nearest_offer(&n, models->items[i].name,
                          arena_cstr(load->arena, models->items[i].name));
        }
        struct option_path path = option_path(target, str_c(row));
        return fault_field(target->reterr, ERR_CONFIG, path.text, "%s: %s: \"%s\" is no model%s",
                           config_place(target, row).text, path.text, say(agent->model).text,
                           say_nearest(&n, "write the name of an entry of models").text);
    }
    if (!models->count || latest(load->config.values, OF_MODEL) != CONFIG_DEFAULT) return OK;
    if (models->count > 1)
        return option_refuse_row(target, agent->line ? agent->line : models->items[0].line, row,
                                 "is missing; models has several entries: write the name of one");
    str *name = ARENA_NEW(load->arena, str);
    *name = agent->model = models->items[0].name;
    *option_value(target, row) = (struct config_value){.items = {name, 1}};
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
    struct config_agents *given = &load->config.agents;
    struct config_agent *agents = arena_array(load->arena, given->count + 1, sizeof *agents);
    size_t count = 0;
    bool there = load->assistant.line || !given->count ||
                 latest(load->config.values, OF_AGENT) > CONFIG_FILE;
    enum err e = OK;
    if (there) {
        e = finish_agent(load, &load->options, &load->assistant);
        agents[count++] = load->assistant;
    }
    for (size_t i = 0; !e && i < given->count; i++) {
        struct config_agent *agent = &agents[count++];
        *agent = given->items[i];
        struct option_target target = config_target(load, OF_AGENT, i, agent);
        e = finish_agent(load, &target, agent);
    }
    if (!e) *given = (struct config_agents){agents, count};
    return e;
}

enum err config_agents_finish(struct config_load *load)
{
    enum err e = finish_models(load);
    return e ? e : finish_agents(load);
}
