/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator changed of an agent at run time: rows of the database under scope "agent/<name>"
 * that stand over the file. Read, checked, stored, shown; who applies them is agents.c.
 */
#ifndef AGENTS_AGENT_SETTINGS_H
#define AGENTS_AGENT_SETTINGS_H

#include "config/config.h"

struct db;

/* What is set in the database; the rest is the file's. */
struct agent_settings {
    bool ask_user_set, ask_user;
    uint32_t max_rounds; /* 0: not set */
    str locale;          /* "zh-CN", "en"; empty: not set; lives for ever */
    bool policy_set;
    struct policy policy; /* rows only */
};

/* What a policy may be about: a tool that there is, or one of a configured server. */
struct agent_tool_names {
    const struct tools *tools;
    const struct config_mcps *servers;
};
bool agent_tool_known(const struct agent_tool_names *names, str name); /* a pattern is none */

struct nearest;
/* The names of tools, and with `packs` those of packs and servers. The arena holds copies. */
void agent_tool_offer(const struct agent_tool_names *names, bool packs, struct arena *arena,
                      struct nearest *n);

/* May this body change them? An object with any of enableAskUser, maxToolRounds, confirmPolicy and
 * locale; null clears. ERR_INVALID_FIELD names the field. */
enum err agent_settings_check(const struct agent_tool_names *names, struct arena *arena,
                              const struct json *body, struct fault *reterr) MUST_USE;

/* In a job: store what the checked body says; read what is set. The arena holds the result. */
enum err agent_settings_save(struct db *db, str agent, const struct json *body) MUST_USE;
enum err agent_settings_load(struct db *db, struct arena *arena, str agent,
                             struct agent_settings *ret_settings, struct fault *reterr) MUST_USE;

/* The same for each of the agents, in their order. */
enum err agent_settings_load_all(struct db *db, struct arena *arena,
                                 const struct config_agents *agents,
                                 struct agent_settings **ret_settings, struct fault *reterr)
    MUST_USE;

/* The values that count, as the API shows them: what is set, else what the file says. */
void agent_settings_write(struct json_writer *w, const struct config_agent *config,
                          const struct agent_settings *settings);

#endif
