/* SPDX-License-Identifier: Apache-2.0
 *
 * Configuration and settings into struct agent.
 *
 *     config ------> make_agent --------> struct agent <------ agents_apply <------ agents_settings_load
 *     all tools ---^ (once, at start)     (loop thread)        (start, PATCH)        (database)
 *
 * A setting is stored as the JSON that was sent. So one function reads it, from a request and from
 * the database; only whether the tools of a policy exist is asked of requests alone, because a tool
 * may go while its row stays.
 *
 * Invariant: policy_settings points into settings_arena of the same struct agents and is replaced
 * together with it.
 *
 * To add a setting: a member in struct agent_settings, a row in rows[] with its two functions, and
 * its place in agents_apply.
 */
#include "app/agents.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/option.h"
#include "app/say.h"
#include "base/limits.h"
#include "store/settings.h"
#include "store/store.h"
#include "tool/http_tool.h"
#include "tool/tools.h"

struct agents {
    const struct config *config;
    const struct tools *tools;
    struct agent *agent;
    struct arena arena;          /* what lives as long as the agent */
    struct arena settings_arena; /* what lives until the next change */
    struct agent_settings settings;
};

/* ---- tools ---- */

/* Does an item of the list `tools` mean this one? */
static bool means(str item, const struct tool *tool)
{
    return str_eq(item, tool->pack) || pattern_fits(item, tool->name);
}

static bool is_pattern(str name)
{
    return str_ends(name, STR("*"));
}

static void offer_tools(struct nearest *n, struct arena *arena, const struct tools *tools,
                        bool packs)
{
    for (size_t i = 0; i < tools->count; i++) {
        const struct tool *tool = &tools->rows[i];
        nearest_offer(n, tool->name, arena_cstr(arena, tool->name));
        if (packs && tool->pack.len) nearest_offer(n, tool->pack, arena_cstr(arena, tool->pack));
    }
}

static enum err unknown_tool(struct agents *agents, const char *option, str name, bool packs,
                             struct fault *reterr)
{
    struct nearest n;
    nearest_init(&n, name);
    offer_tools(&n, &agents->arena, agents->tools, packs);
    char field[64];
    snprintf(field, sizeof field, "agents.assistant.%s", option);
    return fault_field(reterr, ERR_CONFIG, field, "%s: there is no tool \"%s\"%s", field,
                       say(name).text, say_nearest(&n, "`fermata check` shows yours").text);
}

static enum err choose_tools(struct agents *agents, struct fault *reterr)
{
    const struct tools *all = agents->tools;
    const struct strs *wanted = &agents->config->agent.tools;
    for (size_t i = 0; i < wanted->count; i++) {
        bool found = is_pattern(wanted->items[i]);
        for (size_t k = 0; k < all->count && !found; k++)
            found = means(wanted->items[i], &all->rows[k]);
        if (!found) return unknown_tool(agents, "tools", wanted->items[i], true, reterr);
    }
    const struct tool **chosen = arena_array(&agents->arena, all->count, sizeof *chosen);
    size_t count = 0;
    for (size_t k = 0; k < all->count; k++) {
        bool in = false;
        for (size_t i = 0; i < wanted->count && !in; i++)
            in = means(wanted->items[i], &all->rows[k]);
        if (in) chosen[count++] = &all->rows[k];
    }
    agents->agent->tools = chosen;
    agents->agent->tool_count = count;
    return OK;
}

/* A policy about a tool that does not exist protects nothing: a slip of the pen. */
static enum err check_policy(struct agents *agents, struct fault *reterr)
{
    const struct policy *policy = &agents->config->agent.policy;
    for (size_t i = 0; i < policy->count; i++)
        if (!is_pattern(policy->rows[i].pattern) &&
            !tools_find(agents->tools, policy->rows[i].pattern))
            return unknown_tool(agents, "policy", policy->rows[i].pattern, false, reterr);
    for (size_t i = 0; i < policy->approver_count; i++)
        if (!is_pattern(policy->approvers[i].pattern) &&
            !tools_find(agents->tools, policy->approvers[i].pattern))
            return unknown_tool(agents, "approvers", policy->approvers[i].pattern, false, reterr);
    return OK;
}

static enum err make_agent(struct agents *agents, struct fault *reterr)
{
    const struct config_agent *c = &agents->config->agent;
    struct agent *agent = agents->agent;
    *agent = (struct agent){.name = STR("assistant"),
                            .model = agent->model,
                            .busy = c->busy,
                            .on_disconnect = c->on_disconnect,
                            .plan = c->plan,
                            .prompt = c->prompt,
                            .tokens_max = c->tokens_max,
                            .active_ms_max = (msec)c->minutes_max * 60 * 1000,
                            .policy = c->policy};
    enum err e = choose_tools(agents, reterr);
    return e ? e : check_policy(agents, reterr);
}

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

enum err agents_http_tools(struct arena *arena, struct client *client, struct spool *spool,
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

/* ---- settings, one by one ---- */

static enum err refuse(struct fault *reterr, const char *name, const char *what)
{
    return fault_field(reterr, ERR_INVALID_FIELD, name, "%s must be %s", name, what);
}

static enum err take_ask_user(struct arena *arena, const struct json *json,
                              struct agent_settings *settings, struct fault *reterr)
{
    (void)arena;
    if (json->type != JSON_TRUE && json->type != JSON_FALSE)
        return refuse(reterr, "enableAskUser", "true or false");
    settings->ask_user_set = true;
    settings->ask_user = json->type == JSON_TRUE;
    return OK;
}

static enum err take_max_rounds(struct arena *arena, const struct json *json,
                                struct agent_settings *settings, struct fault *reterr)
{
    (void)arena;
    uint64_t rounds;
    if (json_u64(json, &rounds) || rounds < 1 || rounds > AGENT_ROUNDS_SET_MAX)
        return refuse(reterr, "maxToolRounds", "a whole number from 1 to 1000");
    settings->max_rounds = (uint32_t)rounds;
    return OK;
}

static enum err take_locale(struct arena *arena, const struct json *json,
                            struct agent_settings *settings, struct fault *reterr)
{
    (void)arena;
    for (size_t i = 0; json->type == JSON_STRING && locale_names[i]; i++) {
        if (!str_eq(str_c(locale_names[i]), json->text)) continue;
        settings->locale = str_c(locale_names[i]);
        return OK;
    }
    return refuse(reterr, "locale", "zh-CN or en");
}

static enum err refuse_row(struct fault *reterr, str name, const char *why)
{
    char field[128];
    snprintf(field, sizeof field, "confirmPolicy.%s", say(name).text);
    return fault_field(reterr, ERR_INVALID_FIELD, field, "%s %s", field, why);
}

static enum err take_policy(struct arena *arena, const struct json *json,
                            struct agent_settings *settings, struct fault *reterr)
{
    if (json->type != JSON_OBJECT)
        return refuse(reterr, "confirmPolicy", "an object of tools with allow, confirm or deny");
    if (json->count > CONFIG_LIST_MAX)
        return refuse(reterr, "confirmPolicy", "an object of at most 100 members");
    struct policy_row *rows = arena_array(arena, json->count, sizeof *rows);
    size_t count = 0;
    for (const struct json *n = json->child; n; n = n->next, count++) {
        const char *refused = option_pattern_check(n->key);
        if (!n->key.len) refused = "is empty";
        if (refused) return refuse_row(reterr, n->key, refused);
        rows[count].pattern = n->key;
        if (n->type != JSON_STRING || verdict_parse(n->text, &rows[count].verdict))
            return refuse_row(reterr, n->key, "must be allow, confirm or deny");
    }
    settings->policy_set = true;
    settings->policy = (struct policy){.rows = rows, .count = count};
    return OK;
}

static void put_ask_user(struct json_writer *w, const struct config *config,
                         const struct agent_settings *settings)
{
    json_bool(w, settings->ask_user_set ? settings->ask_user : config->agent.ask_user);
}

static void put_max_rounds(struct json_writer *w, const struct config *config,
                           const struct agent_settings *settings)
{
    json_number_u64(w, settings->max_rounds ? settings->max_rounds : config->agent.max_rounds);
}

static void put_policy(struct json_writer *w, const struct config *config,
                       const struct agent_settings *settings)
{
    const struct policy *policy = settings->policy_set ? &settings->policy : &config->agent.policy;
    json_object(w);
    for (size_t i = 0; i < policy->count; i++)
        json_member(w, policy->rows[i].pattern, str_c(verdict_name(policy->rows[i].verdict)));
    json_object_end(w);
}

static const struct {
    const char *name; /* in the API and in the database */
    enum err (*take)(struct arena *arena, const struct json *json, struct agent_settings *settings,
                     struct fault *reterr);
    /* NULL: it is left out when it is nowhere set */
    void (*put)(struct json_writer *w, const struct config *config,
                const struct agent_settings *settings);
} rows[] = {
    {"enableAskUser", take_ask_user, put_ask_user},
    {"maxToolRounds", take_max_rounds, put_max_rounds},
    {"confirmPolicy", take_policy, put_policy},
    {"locale", take_locale, NULL},
};

/* ---- settings, all of them ---- */

static enum err check_known(const struct json *body, struct fault *reterr)
{
    if (!body || body->type != JSON_OBJECT)
        return fault(reterr, ERR_INVALID_FIELD, "the body must be a JSON object");
    for (const struct json *n = body->child; n; n = n->next) {
        struct nearest nearest;
        nearest_init(&nearest, n->key);
        size_t i = 0;
        for (; i < COUNT(rows) && !str_eq(str_c(rows[i].name), n->key); i++)
            nearest_offer(&nearest, str_c(rows[i].name), rows[i].name);
        if (i == COUNT(rows))
            return fault_field(reterr, ERR_INVALID_FIELD, say(n->key).text,
                               "unknown field \"%s\"%s", say(n->key).text,
                               say_nearest(&nearest, "this is no setting of an agent").text);
    }
    return OK;
}

enum err agents_settings_check(const struct agents *agents, struct arena *arena,
                               const struct json *body, struct fault *reterr)
{
    struct agent_settings given = {0};
    enum err e = check_known(body, reterr);
    for (size_t i = 0; !e && i < COUNT(rows); i++) {
        const struct json *member = json_get(body, str_c(rows[i].name));
        if (member && member->type != JSON_NULL) e = rows[i].take(arena, member, &given, reterr);
    }
    for (size_t i = 0; !e && i < given.policy.count; i++) {
        str name = given.policy.rows[i].pattern;
        if (is_pattern(name) || tools_find(agents->tools, name)) continue;
        struct nearest n;
        nearest_init(&n, name);
        offer_tools(&n, arena, agents->tools, false);
        char why[192];
        snprintf(why, sizeof why, "names no tool%s", say_nearest(&n, "GET agents lists them").text);
        e = refuse_row(reterr, name, why);
    }
    return e;
}

static str scope_of(struct buf *out, str agent)
{
    buf_init(out, SETTING_NAME_BYTES_MAX + 1); /* one too many is refused by the store */
    buf_append(out, STR("agent/"));
    buf_append(out, agent);
    return buf_str(out);
}

enum err agents_settings_save(struct db *db, str agent, const struct json *body)
{
    AUTO(buf_done) struct buf text;
    str scope = scope_of(&text, agent);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct json *member = json_get(body, str_c(rows[i].name));
        if (!member) continue;
        enum err e = member->type == JSON_NULL
                         ? settings_delete(db, scope, str_c(rows[i].name))
                         : settings_set(db, scope, str_c(rows[i].name), member->raw);
        if (e) return e;
    }
    return OK;
}

enum err agents_settings_load(struct db *db, struct arena *arena, str agent,
                              struct agent_settings *ret_settings, struct fault *reterr)
{
    AUTO(buf_done) struct buf text;
    str scope = scope_of(&text, agent);
    struct agent_settings settings = {.locale = STR_EMPTY};
    for (size_t i = 0; i < COUNT(rows); i++) {
        str value;
        enum err e = settings_get(db, scope, str_c(rows[i].name), arena, &value);
        if (e == ERR_NOT_FOUND) continue;
        if (e) return fault(reterr, e, "cannot read the settings: %s", err_title(e));
        struct json *json;
        if (json_parse(arena, value, &json, NULL) || rows[i].take(arena, json, &settings, NULL))
            return fault(reterr, ERR_DAMAGED,
                         "the setting %s of %.*s in the database is damaged; restore a backup",
                         rows[i].name, STR_ARG(scope));
    }
    *ret_settings = settings;
    return OK;
}

void agents_settings_write(struct json_writer *w, const struct config *config,
                           const struct agent_settings *settings)
{
    str locale = settings->locale.len ? settings->locale : config->agent.locale;
    json_object(w);
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (!rows[i].put) continue;
        json_key(w, str_c(rows[i].name));
        rows[i].put(w, config, settings);
    }
    if (locale.len) json_member(w, STR("locale"), locale);
    json_object_end(w);
}

/* ---- the agent with its settings ---- */

static struct policy copy_policy(struct arena *arena, const struct policy *policy)
{
    struct policy_row *copies = arena_array(arena, policy->count, sizeof *copies);
    for (size_t i = 0; i < policy->count; i++)
        copies[i] =
            (struct policy_row){arena_str(arena, policy->rows[i].pattern), policy->rows[i].verdict};
    return (struct policy){.rows = copies, .count = policy->count};
}

void agents_apply(struct agents *agents, const struct agent_settings *settings)
{
    const struct config_agent *c = &agents->config->agent;
    struct arena fresh;
    arena_init(&fresh);
    struct agent_settings taken = *settings;
    taken.policy = copy_policy(&fresh, &settings->policy);

    struct agent *agent = agents->agent;
    agent->ask_user = taken.ask_user_set ? taken.ask_user : c->ask_user;
    agent->max_rounds = taken.max_rounds ? taken.max_rounds : c->max_rounds;
    agent->locale = taken.locale.len ? taken.locale : c->locale;
    agent->policy_settings = taken.policy;
    arena_done(&agents->settings_arena);
    agents->settings_arena = fresh;
    agents->settings = taken;
}

const struct agent_settings *agents_settings_now(const struct agents *agents)
{
    return &agents->settings;
}

struct load {
    struct job job;
    struct arena *arena;
    str agent;
    struct agent_settings settings;
    struct fault why;
};

static enum err load_run(struct job *job, struct db *db)
{
    struct load *load = (struct load *)(void *)job;
    return agents_settings_load(db, load->arena, load->agent, &load->settings, &load->why);
}

static void agents_freep(struct agents **agents)
{
    agents_free(*agents);
}

enum err agents_open(const struct config *config, const struct tools *tools, struct store *store,
                     struct agent *agent, struct agents **ret_agents, struct fault *reterr)
{
    AUTO(agents_freep) struct agents *agents = calloc(1, sizeof *agents);
    if (!agents) abort();
    agents->config = config;
    agents->tools = tools;
    agents->agent = agent;
    arena_init(&agents->arena);
    arena_init(&agents->settings_arena);
    enum err e = make_agent(agents, reterr);
    if (e) return e;

    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct load load = {.job.run = load_run, .arena = &arena, .agent = agent->name};
    e = store_run(store, &load.job);
    if (e) return fault(reterr, e, "%s", load.why.text[0] ? load.why.text : err_title(e));
    agents_apply(agents, &load.settings);
    *ret_agents = TAKE(agents);
    return OK;
}

void agents_free(struct agents *agents)
{
    if (!agents) return;
    arena_done(&agents->arena);
    arena_done(&agents->settings_arena);
    free(agents);
}
