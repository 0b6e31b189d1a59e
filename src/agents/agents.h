/* SPDX-License-Identifier: Apache-2.0
 *
 * The agents, made from the configuration, the models and the tools there are, with the settings that
 * an operator changed at run time (agent_settings.h) over the file. A reload makes another set of them
 * and puts it in the place of the one before, by name.
 *
 * On the loop thread, which alone changes agents. Name, model, busy, on_disconnect, plan, prompt and
 * budgets of one never change; tools do with agents_choose, and ask_user, max_rounds, locale and
 * policy_settings with agents_apply. So a store job gets copies (struct agent_brief), and nobody keeps
 * an agent past the turn of the loop in which it was asked for. Its model, its name and what briefs
 * point to stay until agents_free: a set that was replaced is kept.
 */
#ifndef AGENTS_AGENTS_H
#define AGENTS_AGENTS_H

#include "agent/core/agent.h"
#include "agents/agent_settings.h"
#include "config/config.h"

struct agent_set;
struct agents;
struct loop;
struct models;

/* ---- making them ---- */

/* All agents of the configuration; the names in their lists of tools and policies are checked.
 * `own` are the tools but those of MCP servers, whose names are taken as they are. `settings`: one for
 * each agent, copied; NULL: none is set. ERR_CONFIG names what does not exist, and the nearest that
 * does. Configuration and models outlive the set. */
enum err agent_set_new(const struct config *config, const struct models *models,
                       const struct tools *own, const struct agent_settings *settings,
                       struct agent_set **ret_set, struct fault *reterr) MUST_USE;
void agent_set_free(struct agent_set *set); /* one that was not taken; NULL is fine */

struct agents *agents_new(struct loop *loop);
void agents_free(struct agents *agents); /* after the last run; NULL is fine */

/* From now on these are the agents, with `all` tools to choose from. One whose name was there before
 * keeps the settings that it has now. */
void agents_take(struct agents *agents, struct agent_set *set, const struct tools *all);

/* There are other tools now: every agent chooses anew. */
void agents_choose(struct agents *agents, const struct tools *all);

/* ---- asking for them ---- */

size_t agents_count(const struct agents *agents);
const struct agent *agents_at(const struct agents *agents, size_t index); /* 0: the default */
const struct agent *agents_find(const struct agents *agents, str name);   /* NULL: none */

/* Never NULL: in the place of one that is not configured any more there is a stand-in. */
const struct agent *agents_for(struct agents *agents, str name);

/* What the file says of it; NULL: none. Immutable, readable from any thread. */
const struct config_agent *agents_config(const struct agents *agents, str name);

/* What a job needs of an agent, as it is at this moment. */
struct agent_brief {
    str name, model; /* of the model: what facts call it */
    uint32_t max_rounds;
    str locale;
    enum busy busy;
};
struct agent_briefs {
    const struct agent_brief *rows; /* at least one; the first is the default */
    size_t count;
};
struct agent_brief agent_brief(const struct agent *agent);
struct agent_briefs agents_briefs(const struct agents *agents, struct arena *arena);

/* The one of this name, else the first. */
const struct agent_brief *agent_briefs_pick(const struct agent_briefs *briefs, str name);

/* ---- settings ---- */

/* What policies may be about now. */
struct agent_tool_names agents_tool_names(const struct agents *agents);

/* Take them after their commit. Copies. An agent that is gone is left alone. */
void agents_apply(struct agents *agents, str name, const struct agent_settings *settings);
const struct agent_settings *agents_settings(const struct agents *agents,
                                             str name); /* NULL: none */

#endif
