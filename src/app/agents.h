/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent, made from the configuration, the tools there are, and the settings that an operator
 * changed at run time. The settings are rows of the database under scope "agent/<name>" and stand
 * over the file.
 *
 * On the loop thread, which alone changes the agent. Its name, model, busy, on_disconnect, plan,
 * prompt, tools and budgets never change; ask_user, max_rounds, locale and policy_settings do, with
 * agents_apply, so a store job gets copies of them, and nobody keeps a row of policy_settings past
 * the turn of the loop in which it was read. What locale points to lives for ever.
 */
#ifndef APP_AGENTS_H
#define APP_AGENTS_H

#include "agent/agent.h"
#include "app/config.h"

struct agents;
struct client;
struct spool;
struct db;
struct store;

/* Fill everything of *agent but its model, the settings of the database over it. `tools` are all
 * there are. ERR_CONFIG names a tool that does not exist, and the nearest that does. Blocks: reads
 * the store. What is given must outlive the result. */
enum err agents_open(const struct config *config, const struct tools *tools, struct store *store,
                     struct agent *agent, struct agents **ret_agents, struct fault *reterr)
    MUST_USE;
void agents_free(struct agents *agents); /* NULL is fine; the agent is not used after it */

/* The tools of config->http_tools, their schemas compiled, in the arena, which outlives them as
 * client and spool do. ERR_CONFIG says "fermata.yaml:3: tools[0].http.schema.properties.x: why".
 * Both may be NULL to see whether they can be made. */
enum err agents_http_tools(struct arena *arena, struct client *client, struct spool *spool,
                           const struct config *config, struct tools *ret_tools,
                           struct fault *reterr) MUST_USE;

/* ---- settings ---- */

/* What is set in the database; the rest is the file's. */
struct agent_settings {
    bool ask_user_set, ask_user;
    uint32_t max_rounds; /* 0: not set */
    str locale;          /* "zh-CN", "en"; empty: not set; lives for ever */
    bool policy_set;
    struct policy policy; /* rows only */
};

/* May this body change them? An object with any of enableAskUser, maxToolRounds, confirmPolicy and
 * locale; null clears. ERR_INVALID_FIELD names the field. On the loop thread. */
enum err agents_settings_check(const struct agents *agents, struct arena *arena,
                               const struct json *body, struct fault *reterr) MUST_USE;

/* In a job: store what the checked body says; read what is set. The arena holds the result. */
enum err agents_settings_save(struct db *db, str agent, const struct json *body) MUST_USE;
enum err agents_settings_load(struct db *db, struct arena *arena, str agent,
                              struct agent_settings *ret_settings, struct fault *reterr) MUST_USE;

/* The values that count, as the API shows them: what is set, else what the file says. */
void agents_settings_write(struct json_writer *w, const struct config *config,
                           const struct agent_settings *settings);

/* Take them, on the loop thread, after their commit. Copies. */
void agents_apply(struct agents *agents, const struct agent_settings *settings);
const struct agent_settings *agents_settings_now(const struct agents *agents);

#endif
