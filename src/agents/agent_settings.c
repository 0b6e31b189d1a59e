/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings of an agent that an operator changed at run time, one row each.
 *
 *     PATCH body --> agent_settings_check --> agent_settings_save --> agent_settings_load --> struct
 *                    (loop thread)            (one job)
 *
 * A setting is stored as the JSON that was sent. So one function reads it, from a request and from
 * the database; only whether the tools of a policy exist is asked of requests alone, because a tool
 * may go while its row stays. A tool of an MCP server may come later: what begins with the name of a
 * server and a dot is taken.
 *
 * To add a setting: a member in struct agent_settings, a row in rows[] with its two functions, and
 * its place in agents_apply.
 */
#include "agents/agent_settings.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/say.h"
#include "config/option.h"
#include "store/table/settings.h"
#include "tool/tools.h"

/* ---- names of tools ---- */

/* "files.read_file" is of the server "files", whatever that offers now. */
bool agent_tool_known(const struct agent_tool_names *names, str name)
{
    for (size_t i = 0; i < names->servers->count; i++) {
        str server = names->servers->items[i].name;
        if (name.len > server.len + 1 && str_starts(name, server) && name.p[server.len] == '.')
            return true;
    }
    return tools_find(names->tools, name);
}

void agent_tool_offer(const struct agent_tool_names *names, bool packs, struct arena *arena,
                      struct nearest *n)
{
    for (size_t i = 0; i < names->tools->count; i++) {
        const struct tool *tool = &names->tools->rows[i];
        nearest_offer(n, tool->name, arena_cstr(arena, tool->name));
        if (packs && tool->pack.len) nearest_offer(n, tool->pack, arena_cstr(arena, tool->pack));
    }
    for (size_t i = 0; packs && i < names->servers->count; i++)
        nearest_offer(n, names->servers->items[i].name, names->servers->items[i].name.p);
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

static void put_ask_user(struct json_writer *w, const struct config_agent *config,
                         const struct agent_settings *settings)
{
    json_bool(w, settings->ask_user_set ? settings->ask_user : config->ask_user);
}

static void put_max_rounds(struct json_writer *w, const struct config_agent *config,
                           const struct agent_settings *settings)
{
    json_number_u64(w, settings->max_rounds ? settings->max_rounds : config->max_rounds);
}

static void put_policy(struct json_writer *w, const struct config_agent *config,
                       const struct agent_settings *settings)
{
    const struct policy *policy = settings->policy_set ? &settings->policy : &config->policy;
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
    void (*put)(struct json_writer *w, const struct config_agent *config,
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

enum err agent_settings_check(const struct agent_tool_names *names, struct arena *arena,
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
        if (str_ends(name, STR("*")) || agent_tool_known(names, name)) continue;
        struct nearest n;
        nearest_init(&n, name);
        agent_tool_offer(names, false, arena, &n);
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

enum err agent_settings_save(struct db *db, str agent, const struct json *body)
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

enum err agent_settings_load(struct db *db, struct arena *arena, str agent,
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

void agent_settings_write(struct json_writer *w, const struct config_agent *config,
                          const struct agent_settings *settings)
{
    str locale = settings->locale.len ? settings->locale : config->locale;
    json_object(w);
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (!rows[i].put) continue;
        json_key(w, str_c(rows[i].name));
        rows[i].put(w, config, settings);
    }
    if (locale.len) json_member(w, STR("locale"), locale);
    json_object_end(w);
}

enum err agent_settings_load_all(struct db *db, struct arena *arena,
                                 const struct config_agents *agents,
                                 struct agent_settings **ret_settings, struct fault *reterr)
{
    struct agent_settings *all = arena_array(arena, agents->count, sizeof *all);
    enum err e = OK;
    for (size_t i = 0; !e && i < agents->count; i++)
        e = agent_settings_load(db, arena, agents->items[i].name, &all[i], reterr);
    if (!e) *ret_settings = all;
    return e;
}
