/* SPDX-License-Identifier: Apache-2.0
 *
 * The agents, made from configuration, models, tools and settings.
 *
 *     config, models ---> agent_set_new ---> agents_take ---> struct agents ---> agents_for(name)
 *     settings ---------^  (checked)       ^  (by name)        ^   ^              |
 *                                          |                   |   |              +-> a stand-in
 *                    tools of everybody ---+--- agents_choose -+   +-- agents_apply (PATCH)
 *
 * Invariants:
 * 1. policy_settings of an agent points into settings_arena beside it and is replaced with it; its
 *    tools point into tools_arena likewise.
 * 2. A set that was replaced is kept until the end: calls of its models may be under way, and jobs
 *    read its names. RELOADS_MAX bounds how many there are.
 * 3. A name is checked once, against the configuration, and never against what an MCP server happens
 *    to offer at that moment.
 *
 * To add an option: a member in struct config_agent, and its line in make_agent.
 */
#include "agents/agents.h"

#include <stdio.h>
#include <stdlib.h>

#include "agents/missing_agent.h"
#include "agents/models.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/say.h"

struct row {
    struct agent agent;
    const struct config_agent *config;
    struct agent_settings settings;
    struct arena settings_arena; /* what lives until the next change of them */
    struct arena tools_arena;    /* what lives until there are other tools */
};

struct agent_set {
    struct agent_set *before; /* that it replaced */
    const struct config *config;
    struct row *rows;
    size_t count;
    struct arena arena;
};

struct agents {
    struct loop *loop;
    struct agent_set *set;     /* NULL until the first is taken */
    const struct tools *tools; /* all there are */
    const struct agent *gone[AGENTS_GONE_MAX];
    size_t gone_count;
    const struct agent *nameless; /* for whoever has no room there; NULL until then */
};

/* ---- names ---- */

/* Does an item of the list `tools` mean this one? What a person has to decide in any case is for other
 * agents (mcp/client/consent.h), and none of ours has it. */
static bool means(str item, const struct tool *tool)
{
    if (tool->person) return false;
    return str_eq(item, tool->pack) || pattern_fits(item, tool->name);
}

static bool is_pattern(str name)
{
    return str_ends(name, STR("*"));
}

static enum err unknown_tool(const struct agent_tool_names *names, struct arena *arena,
                             const struct config_agent *c, const char *option, str name, bool packs,
                             struct fault *reterr)
{
    struct nearest n;
    nearest_init(&n, name);
    agent_tool_offer(names, packs, arena, &n);
    char field[128];
    snprintf(field, sizeof field, "agents.%s.%s", say(c->name).text, option);
    return fault_field(reterr, ERR_CONFIG, field, "%s: there is no tool \"%s\"%s", field,
                       say(name).text, say_nearest(&n, "`fermata check` shows yours").text);
}

static enum err check_tools(const struct agent_tool_names *names, struct arena *arena,
                            const struct config_agent *c, struct fault *reterr)
{
    for (size_t i = 0; i < c->tools.count; i++) {
        str item = c->tools.items[i];
        bool found = is_pattern(item) || agent_tool_known(names, item);
        for (size_t k = 0; k < names->servers->count && !found; k++)
            found = str_eq(names->servers->items[k].name, item);
        for (size_t k = 0; k < names->tools->count && !found; k++)
            found = means(item, &names->tools->rows[k]);
        if (!found) return unknown_tool(names, arena, c, "tools", item, true, reterr);
    }
    return OK;
}

/* A policy about a tool that does not exist protects nothing: a slip of the pen. */
static enum err check_policy(const struct agent_tool_names *names, struct arena *arena,
                             const struct config_agent *c, struct fault *reterr)
{
    const struct policy *policy = &c->policy;
    for (size_t i = 0; i < policy->count; i++) {
        str name = policy->rows[i].pattern;
        if (!is_pattern(name) && !agent_tool_known(names, name))
            return unknown_tool(names, arena, c, "policy", name, false, reterr);
    }
    for (size_t i = 0; i < policy->approver_count; i++) {
        str name = policy->approvers[i].pattern;
        if (!is_pattern(name) && !agent_tool_known(names, name))
            return unknown_tool(names, arena, c, "approvers", name, false, reterr);
    }
    return OK;
}

/* ---- an agent ---- */

static enum err make_agent(const struct config_agent *c, const struct models *models,
                           struct agent *ret_agent, struct fault *reterr)
{
    const struct model *model = models_find(models, c->model);
    if (!model) {
        char field[128];
        snprintf(field, sizeof field, "agents.%s.model", say(c->name).text);
        return fault_field(reterr, ERR_CONFIG, field, "%s: there is no model \"%s\"", field,
                           say(c->model).text);
    }
    *ret_agent = (struct agent){.name = c->name,
                                .model = *model,
                                .busy = c->busy,
                                .on_disconnect = c->on_disconnect,
                                .plan = c->plan,
                                .prompt = c->prompt,
                                .tokens_max = c->tokens_max,
                                .cost_max = c->cost_max,
                                .active_ms_max = (msec)c->minutes_max * 60 * 1000,
                                .policy = c->policy};
    return OK;
}

static struct policy copy_policy(struct arena *arena, const struct policy *policy)
{
    struct policy_row *copies = arena_array(arena, policy->count, sizeof *copies);
    for (size_t i = 0; i < policy->count; i++)
        copies[i] =
            (struct policy_row){arena_str(arena, policy->rows[i].pattern), policy->rows[i].verdict};
    return (struct policy){.rows = copies, .count = policy->count};
}

static void apply(struct row *row, const struct agent_settings *settings)
{
    const struct config_agent *c = row->config;
    struct arena fresh;
    arena_init(&fresh);
    struct agent_settings taken = *settings;
    taken.policy = copy_policy(&fresh, &settings->policy);

    struct agent *agent = &row->agent;
    agent->ask_user = taken.ask_user_set ? taken.ask_user : c->ask_user;
    agent->max_rounds = taken.max_rounds ? taken.max_rounds : c->max_rounds;
    agent->locale = taken.locale.len ? taken.locale : c->locale;
    agent->policy_settings = taken.policy;
    arena_done(&row->settings_arena);
    row->settings_arena = fresh;
    row->settings = taken;
}

/* The tools that an agent's list means, in the order of all. */
static void choose(struct row *row, const struct tools *all)
{
    const struct strs *wanted = &row->config->tools;
    struct arena fresh;
    arena_init(&fresh);
    const struct tool **chosen = arena_array(&fresh, all->count, sizeof *chosen);
    size_t count = 0;
    for (size_t k = 0; k < all->count; k++) {
        bool in = false;
        for (size_t i = 0; i < wanted->count && !in; i++)
            in = means(wanted->items[i], &all->rows[k]);
        if (in) chosen[count++] = &all->rows[k];
    }
    row->agent.tools = chosen;
    row->agent.tool_count = count;
    arena_done(&row->tools_arena);
    row->tools_arena = fresh;
}

/* ---- a set of them ---- */

static void set_freep(struct agent_set **set)
{
    agent_set_free(*set);
}

enum err agent_set_new(const struct config *config, const struct models *models,
                       const struct tools *own, const struct agent_settings *settings,
                       struct agent_set **ret_set, struct fault *reterr)
{
    AUTO(set_freep) struct agent_set *set = mem_new(sizeof *set);
    arena_init(&set->arena);
    set->config = config;
    set->rows = arena_array(&set->arena, config->agents.count, sizeof *set->rows);
    const struct agent_tool_names names = {own, &config->mcps};
    for (size_t i = 0; i < config->agents.count; i++) {
        const struct config_agent *c = &config->agents.items[i];
        struct row *row = &set->rows[i];
        row->config = c;
        arena_init(&row->settings_arena);
        arena_init(&row->tools_arena);
        set->count++;
        enum err e = make_agent(c, models, &row->agent, reterr);
        if (!e) e = check_tools(&names, &set->arena, c, reterr);
        if (!e) e = check_policy(&names, &set->arena, c, reterr);
        if (e) return e;
        apply(row, settings ? &settings[i] : &(struct agent_settings){.max_rounds = 0});
    }
    *ret_set = TAKE(set);
    return OK;
}

void agent_set_free(struct agent_set *set)
{
    if (!set) return;
    for (size_t i = 0; i < set->count; i++) {
        arena_done(&set->rows[i].settings_arena);
        arena_done(&set->rows[i].tools_arena);
    }
    arena_done(&set->arena);
    free(set);
}

/* ---- all of them ---- */

struct agents *agents_new(struct loop *loop)
{
    struct agents *agents = mem_new(sizeof *agents);
    agents->loop = loop;
    return agents;
}

void agents_free(struct agents *agents)
{
    if (!agents) return;
    for (size_t i = 0; i < agents->gone_count; i++) missing_agent_free(agents->gone[i]);
    missing_agent_free(agents->nameless);
    while (agents->set) {
        struct agent_set *set = agents->set;
        agents->set = set->before;
        agent_set_free(set);
    }
    free(agents);
}

static struct row *find(const struct agents *agents, str name)
{
    for (size_t i = 0; agents->set && i < agents->set->count; i++)
        if (str_eq(agents->set->rows[i].agent.name, name)) return &agents->set->rows[i];
    return NULL;
}

void agents_take(struct agents *agents, struct agent_set *set, const struct tools *all)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct row *known = find(agents, set->rows[i].agent.name);
        if (known) apply(&set->rows[i], &known->settings);
    }
    set->before = agents->set;
    agents->set = set;
    agents_choose(agents, all);
}

void agents_choose(struct agents *agents, const struct tools *all)
{
    agents->tools = all;
    for (size_t i = 0; i < agents->set->count; i++) choose(&agents->set->rows[i], all);
}

size_t agents_count(const struct agents *agents)
{
    return agents->set->count;
}

const struct agent *agents_at(const struct agents *agents, size_t index)
{
    assert(index < agents->set->count);
    return &agents->set->rows[index].agent;
}

const struct agent *agents_find(const struct agents *agents, str name)
{
    const struct row *row = find(agents, name);
    return row ? &row->agent : NULL;
}

const struct agent *agents_for(struct agents *agents, str name)
{
    const struct agent *agent = agents_find(agents, name);
    if (agent) return agent;
    for (size_t i = 0; i < agents->gone_count; i++)
        if (str_eq(agents->gone[i]->name, name)) return agents->gone[i];
    if (agents->gone_count < AGENTS_GONE_MAX && name.len)
        return agents->gone[agents->gone_count++] = missing_agent_new(agents->loop, name);
    if (!agents->nameless) agents->nameless = missing_agent_new(agents->loop, STR_EMPTY);
    return agents->nameless;
}

const struct config_agent *agents_config(const struct agents *agents, str name)
{
    const struct row *row = find(agents, name);
    return row ? row->config : NULL;
}

/* ---- briefs ---- */

struct agent_brief agent_brief(const struct agent *agent)
{
    return (struct agent_brief){.name = agent->name,
                                .model = str_c(agent->model.name),
                                .max_rounds = agent->max_rounds,
                                .locale = agent->locale,
                                .busy = agent->busy};
}

struct agent_briefs agents_briefs(const struct agents *agents, struct arena *arena)
{
    size_t count = agents_count(agents);
    struct agent_brief *rows = arena_array(arena, count, sizeof *rows);
    for (size_t i = 0; i < count; i++) rows[i] = agent_brief(agents_at(agents, i));
    return (struct agent_briefs){rows, count};
}

const struct agent_brief *agent_briefs_pick(const struct agent_briefs *briefs, str name)
{
    for (size_t i = 0; i < briefs->count; i++)
        if (str_eq(briefs->rows[i].name, name)) return &briefs->rows[i];
    return &briefs->rows[0];
}

/* ---- settings ---- */

struct agent_tool_names agents_tool_names(const struct agents *agents)
{
    return (struct agent_tool_names){agents->tools, &agents->set->config->mcps};
}

void agents_apply(struct agents *agents, str name, const struct agent_settings *settings)
{
    struct row *row = find(agents, name);
    if (row) apply(row, settings);
}

const struct agent_settings *agents_settings(const struct agents *agents, str name)
{
    const struct row *row = find(agents, name);
    return row ? &row->settings : NULL;
}
