/* SPDX-License-Identifier: Apache-2.0
 *
 * Agents from configuration, models, tools and settings; a store in a folder of its own.
 */
#include "agents/agents.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agents/models.h"
#include "agents/toolbox.h"
#include "base/limits.h"
#include "config/kit.h"
#include "net/loop.h"
#include "store/db/sqlite.h"
#include "store/db/store.h"
#include "store/table/settings.h"

/* As the registry has them: a pack, and a tool that is its own pack. */
static const struct tool all_rows[] = {
    {.name = STR("calendar_write"), .pack = STR("calendar"), .write = true},
    {.name = STR("calendar_read"), .pack = STR("calendar")},
    {.name = STR("user_resolve"), .pack = STR("calendar")},
    {.name = STR("place_order"), .pack = STR("place_order"), .write = true},
};
static const struct tools all_tools = {all_rows, COUNT(all_rows)};

enum { MADE_MAX = 16 };

struct world {
    struct config_kit *kit;
    struct store *store;
    struct loop *loop;
    struct config configs[MADE_MAX]; /* they stay while there are agents of theirs */
    struct models *models[MADE_MAX];
    size_t made;
    struct agents *agents;
};

static int setup(void **state)
{
    static struct world w;
    w = (struct world){0};
    void *kit;
    if (config_kit_setup(&kit)) return -1;
    w.kit = kit;
    w.loop = loop_new();
    *state = &w;
    return store_open(".", NULL, &w.store, NULL) == OK ? 0 : -1;
}

/* No agents, as before a start. */
static void forget(struct world *w)
{
    agents_free(TAKE(w->agents));
    while (w->made) models_free(w->models[--w->made]);
}

static int teardown(void **state)
{
    struct world *w = *state;
    forget(w);
    loop_free(w->loop);
    store_close(w->store);
    static const char *const files[] = {"fermata.db", "fermata.db-wal", "fermata.db-shm"};
    for (size_t i = 0; i < COUNT(files); i++) unlink(files[i]);
    void *kit = w->kit;
    return config_kit_teardown(&kit);
}

/* A job that does one thing with the database. */
struct task {
    struct job job;
    str agent;
    const struct config *config;
    const struct json *body;
    struct arena *arena;
    const char *name, *value;
    struct agent_settings settings, *all;
    struct fault *reterr;
};

static enum err load_run(struct job *job, struct db *db)
{
    struct task *task = (struct task *)(void *)job;
    return agent_settings_load_all(db, task->arena, &task->config->agents, &task->all,
                                   task->reterr);
}

/* The agents of these flags in the place of those that there are, as a reload does it. */
static enum err again(struct world *w, const char *flags)
{
    config_kit_ok(w->kit, config_kit_load(w->kit, NULL, flags));
    assert_true(w->made < MADE_MAX);
    struct config *config = &w->configs[w->made];
    *config = w->kit->config;
    struct fault *why = &w->kit->fault;
    struct task load = {
        .job.run = load_run, .config = config, .arena = &w->kit->arena, .reterr = why};
    enum err e = store_run(w->store, &load.job);
    if (e) return e;
    config_kit_ok(w->kit, models_new(w->loop, NULL, config, &w->models[w->made], why));
    w->made++;
    struct agent_set *set = NULL;
    e = agent_set_new(config, w->models[w->made - 1], &all_tools, load.all, &set, why);
    if (e) return e;
    if (!w->agents) w->agents = agents_new(w->loop);
    agents_take(w->agents, set, &all_tools);
    return OK;
}

/* The agents of these flags after a start. */
static enum err make(struct world *w, const char *flags)
{
    forget(w);
    return again(w, flags);
}

static const struct agent *first(const struct world *w)
{
    return agents_at(w->agents, 0);
}

static void make_ok(struct world *w, const char *flags)
{
    config_kit_ok(w->kit, make(w, flags));
}

static enum err save_run(struct job *job, struct db *db)
{
    struct task *task = (struct task *)(void *)job;
    enum err e = agent_settings_save(db, task->agent, task->body);
    if (e) return e;
    return agent_settings_load(db, task->arena, task->agent, &task->settings, task->reterr);
}

static enum err put_run(struct job *job, struct db *db)
{
    struct task *task = (struct task *)(void *)job;
    return settings_set(db, STR("agent/assistant"), str_c(task->name), str_c(task->value));
}

static struct json *parse(struct world *w, const char *text)
{
    struct json *json = NULL;
    assert_int_equal(json_parse(&w->kit->arena, str_c(text), &json, NULL), OK);
    return json;
}

/* As PATCH does it. */
static enum err change_of(struct world *w, const char *agent, const char *body)
{
    struct task task = {.job.run = save_run,
                        .agent = str_c(agent),
                        .body = parse(w, body),
                        .arena = &w->kit->arena,
                        .reterr = &w->kit->fault};
    w->kit->fault = (struct fault){0};
    const struct agent_tool_names names = agents_tool_names(w->agents);
    enum err e = agent_settings_check(&names, &w->kit->arena, task.body, &w->kit->fault);
    if (e) return e;
    assert_int_equal(store_run(w->store, &task.job), OK);
    agents_apply(w->agents, task.agent, &task.settings);
    return OK;
}

static enum err change(struct world *w, const char *body)
{
    return change_of(w, "assistant", body);
}

static void assert_shown(struct world *w, const char *json)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, 64 * 1024);
    struct json_writer writer;
    json_write_begin(&writer, &out);
    agent_settings_write(&writer, agents_config(w->agents, STR("assistant")),
                         agents_settings(w->agents, STR("assistant")));
    assert_str(buf_str(&out), str_c(json));
}

static void defaults(void **state)
{
    struct world *w = *state;
    make_ok(w, NULL);
    assert_int_equal(agents_count(w->agents), 1);
    assert_str(first(w)->name, STR("assistant"));
    assert_string_equal(first(w)->model.name, "demo");
    assert_string_equal(first(w)->model.provider, "demo");
    assert_int_equal(first(w)->model.retry_ms, w->configs[0].model.retry_ms);
    assert_int_equal(first(w)->busy, BUSY_ENQUEUE);
    assert_int_equal(first(w)->on_disconnect, DISCONNECT_CONTINUE);
    assert_int_equal(first(w)->plan, PLAN_AUTO);
    assert_true(first(w)->ask_user);
    assert_int_equal(first(w)->max_rounds, AGENT_ROUNDS_MAX);
    assert_str(first(w)->prompt, STR(""));
    assert_str(first(w)->locale, STR(""));
    assert_int_equal(first(w)->tokens_max, 0);
    assert_int_equal(first(w)->active_ms_max, 0);
    assert_int_equal(first(w)->policy.count, 0);
    assert_int_equal(first(w)->policy_settings.count, 0);
    assert_int_equal(first(w)->tool_count, COUNT(all_rows));
    for (size_t i = 0; i < COUNT(all_rows); i++) assert_ptr_equal(first(w)->tools[i], &all_rows[i]);
    assert_shown(w, "{\"enableAskUser\":true,\"maxToolRounds\":30,\"confirmPolicy\":{}}");
}

static void from_the_file(void **state)
{
    struct world *w = *state;
    make_ok(w, "agents-assistant-budget-tokens=5\nagents-assistant-budget-minutes=525600\n"
               "agents-assistant-locale=en\nagents-assistant-ask-user=false\n"
               "agents-assistant-plan=always\nagents-assistant-prompt=Be brief.\n"
               "agents-assistant-policy=calendar_write=allow,x*=deny\n"
               "agents-assistant-approvers=place_order=approver");
    assert_int_equal(first(w)->tokens_max, 5);
    assert_true(first(w)->active_ms_max == 525600LL * 60 * 1000);
    assert_str(first(w)->locale, STR("en"));
    assert_false(first(w)->ask_user);
    assert_int_equal(first(w)->plan, PLAN_ALWAYS);
    assert_str(first(w)->prompt, STR("Be brief."));
    assert_int_equal(first(w)->policy.count, 2);
    assert_int_equal(first(w)->policy.rows[0].verdict, VERDICT_ALLOW);
    assert_int_equal(first(w)->policy.approver_count, 1);
    assert_str(first(w)->policy.approvers[0].role, STR("approver"));
    assert_shown(w, "{\"enableAskUser\":false,\"maxToolRounds\":30,\"confirmPolicy\":{"
                    "\"calendar_write\":\"allow\",\"x*\":\"deny\"},\"locale\":\"en\"}");
}

static void choice_of_tools(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *list, *chosen, *refused;
    } rows[] = {
        {"*", "calendar_write calendar_read user_resolve place_order ", NULL},
        {"calendar", "calendar_write calendar_read user_resolve ", NULL},
        {"place_order,calendar_read", "calendar_read place_order ", NULL},
        {"calendar_*", "calendar_write calendar_read ", NULL},
        {"calendar,calendar_read,cal*", "calendar_write calendar_read user_resolve ", NULL},
        {"files.*", "", NULL}, /* of a server that is not there */
        {"calender", NULL,
         "agents.assistant.tools: there is no tool \"calender\"; did you mean \"calendar\"?"},
        {"calendar,place_oder", NULL, "did you mean \"place_order\"?"},
        {"something_else_entirely", NULL, "`fermata check` shows yours"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        str flags = arena_printf(&w->kit->arena, "agents-assistant-tools=%s", rows[i].list);
        enum err e = make(w, flags.p);
        if (rows[i].refused) {
            assert_int_equal(e, ERR_CONFIG);
            assert_string_equal(w->kit->fault.field, "agents.assistant.tools");
            assert_part(w->kit->fault.text, rows[i].refused);
            assert_null(w->agents);
            continue;
        }
        config_kit_ok(w->kit, e);
        AUTO(buf_done) struct buf chosen;
        buf_init(&chosen, 4096);
        for (size_t k = 0; k < first(w)->tool_count; k++)
            buf_printf(&chosen, "%.*s ", STR_ARG(first(w)->tools[k]->name));
        assert_str(buf_str(&chosen), str_c(rows[i].chosen));
    }
    config_kit_put("fermata.yaml", STR("agents: {assistant: {tools: []}}\n"));
    make_ok(w, NULL);
    assert_int_equal(first(w)->tool_count, 0);
}

/* A policy that protects nothing would be believed to protect something. */
static void policies_of_nothing(void **state)
{
    struct world *w = *state;
    assert_int_equal(make(w, "agents-assistant-policy=calendar_wirte=deny"), ERR_CONFIG);
    assert_string_equal(w->kit->fault.text, "agents.assistant.policy: there is no tool "
                                            "\"calendar_wirte\"; did you mean \"calendar_write\"?");
    assert_int_equal(make(w, "agents-assistant-approvers=place_orders=user"), ERR_CONFIG);
    assert_part(w->kit->fault.text, "agents.assistant.approvers: there is no tool");
    assert_int_equal(make(w, "agents-assistant-policy=calendar=deny"), ERR_CONFIG); /* a pack */
    make_ok(w, "agents-assistant-policy=files.*=deny\nagents-assistant-approvers=*=operator");
    /* It may be about a tool that this agent does not have. */
    make_ok(w, "agents-assistant-policy=place_order=deny\nagents-assistant-tools=calendar");
}

static void changes(void **state)
{
    struct world *w = *state;
    make_ok(w, "agents-assistant-policy=calendar_write=allow\nagents-assistant-max-rounds=7");
    assert_int_equal(change(w, "{}"), OK);
    assert_shown(w, "{\"enableAskUser\":true,\"maxToolRounds\":7,\"confirmPolicy\":{"
                    "\"calendar_write\":\"allow\"}}");
    assert_int_equal(change(w,
                            "{\"enableAskUser\":false,\"maxToolRounds\":1000,\"locale\":\"en\","
                            "\"confirmPolicy\":{\"place_order\" : \"deny\",\n\"x*\":\"confirm\"}}"),
                     OK);
    const char *set = "{\"enableAskUser\":false,\"maxToolRounds\":1000,\"confirmPolicy\":{"
                      "\"place_order\":\"deny\",\"x*\":\"confirm\"},\"locale\":\"en\"}";
    assert_shown(w, set);
    assert_false(first(w)->ask_user);
    assert_int_equal(first(w)->max_rounds, 1000);
    assert_str(first(w)->locale, STR("en"));
    assert_int_equal(first(w)->policy.count, 1); /* the file's stands below it */
    assert_int_equal(first(w)->policy_settings.count, 2);
    assert_str(first(w)->policy_settings.rows[0].pattern, STR("place_order"));
    assert_int_equal(first(w)->policy_settings.rows[0].verdict, VERDICT_DENY);

    make_ok(w, NULL); /* a new start finds them again */
    assert_shown(w, set);
    assert_int_equal(first(w)->policy_settings.count, 2);

    assert_int_equal(change(w, "{\"maxToolRounds\":1}"), OK); /* the others stay */
    assert_int_equal(first(w)->max_rounds, 1);
    assert_false(first(w)->ask_user);
    assert_int_equal(change(w, "{\"confirmPolicy\":{}}"), OK); /* set, and empty */
    assert_int_equal(first(w)->policy_settings.count, 0);
    assert_int_equal(change(w, "{\"enableAskUser\":null,\"maxToolRounds\":null,\"locale\":null,"
                               "\"confirmPolicy\":null}"),
                     OK);
    assert_shown(w, "{\"enableAskUser\":true,\"maxToolRounds\":30,\"confirmPolicy\":{}}");
    assert_true(first(w)->ask_user);
    assert_str(first(w)->locale, STR(""));
}

static void refused_changes(void **state)
{
    struct world *w = *state;
    make_ok(w, NULL);
    static const struct {
        const char *body, *field, *text;
    } rows[] = {
        {"[]", "", "the body must be a JSON object"},
        {"{\"x\":1}", "x", "unknown field \"x\"; this is no setting of an agent"},
        {"{\"maxToolRound\":1}", "maxToolRound", "did you mean \"maxToolRounds\"?"},
        {"{\"enableAskUser\":\"true\"}", "enableAskUser", "enableAskUser must be true or false"},
        {"{\"enableAskUser\":1}", "enableAskUser", "true or false"},
        {"{\"maxToolRounds\":0}", "maxToolRounds",
         "maxToolRounds must be a whole number from 1 to 1000"},
        {"{\"maxToolRounds\":1001}", "maxToolRounds", "from 1 to 1000"},
        {"{\"maxToolRounds\":1.0}", "maxToolRounds", "from 1 to 1000"},
        {"{\"maxToolRounds\":\"5\"}", "maxToolRounds", "from 1 to 1000"},
        {"{\"locale\":\"de\"}", "locale", "locale must be zh-CN or en"},
        {"{\"locale\":\"\"}", "locale", "zh-CN or en"},
        {"{\"locale\":[\"en\"]}", "locale", "zh-CN or en"},
        {"{\"confirmPolicy\":[]}", "confirmPolicy", "an object of tools with allow"},
        {"{\"confirmPolicy\":{\"place_order\":\"maybe\"}}", "confirmPolicy.place_order",
         "confirmPolicy.place_order must be allow, confirm or deny"},
        {"{\"confirmPolicy\":{\"place_order\":null}}", "confirmPolicy.place_order",
         "must be allow"},
        {"{\"confirmPolicy\":{\"place_oder\":\"deny\"}}", "confirmPolicy.place_oder",
         "names no tool; did you mean \"place_order\"?"},
        {"{\"confirmPolicy\":{\"calendar\":\"deny\"}}", "confirmPolicy.calendar", "names no tool"},
        {"{\"confirmPolicy\":{\"zzzzzzzzzzzzzzzzzzzz\":\"deny\"}}",
         "confirmPolicy.zzzzzzzzzzzzzzzzzzzz", "GET agents lists them"},
        {"{\"confirmPolicy\":{\"\":\"deny\"}}", "confirmPolicy.", "is empty"},
        {"{\"confirmPolicy\":{\"*x\":\"deny\"}}", "confirmPolicy.*x", "not at its end"},
        {"{\"confirmPolicy\":{\"a b\":\"deny\"}}", "confirmPolicy.a b", "characters other than"},
        /* One that is right does not save one that is wrong. */
        {"{\"maxToolRounds\":5,\"locale\":\"de\"}", "locale", "zh-CN or en"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (change(w, rows[i].body) != ERR_INVALID_FIELD) fail_msg("taken: %s", rows[i].body);
        assert_string_equal(w->kit->fault.field, rows[i].field);
        assert_part(w->kit->fault.text, rows[i].text);
    }
    assert_shown(w, "{\"enableAskUser\":true,\"maxToolRounds\":30,\"confirmPolicy\":{}}");
}

static void long_policies(void **state)
{
    struct world *w = *state;
    make_ok(w, NULL);
    for (size_t over = 0; over < 2; over++) {
        AUTO(buf_done) struct buf body;
        buf_init(&body, 64 * 1024);
        buf_append(&body, STR("{\"confirmPolicy\":{"));
        for (size_t i = 0; i < CONFIG_LIST_MAX + over; i++)
            buf_printf(&body, "%s\"%060zu*\":\"confirm\"", i ? "," : "", i);
        buf_append(&body, STR("}}"));
        buf_char(&body, '\0');
        assert_int_equal(change(w, body.p), over ? ERR_INVALID_FIELD : OK);
    }
    assert_part(w->kit->fault.text, "at most 100 members");
    assert_int_equal(first(w)->policy_settings.count, CONFIG_LIST_MAX);
}

/* A tool that has gone leaves its row behind; that is no reason not to start. */
static void stale_and_damaged(void **state)
{
    struct world *w = *state;
    struct task put = {
        .job.run = put_run, .name = "confirmPolicy", .value = "{\"gone_tool\":\"deny\"}"};
    assert_int_equal(store_run(w->store, &put.job), OK);
    make_ok(w, NULL);
    assert_int_equal(first(w)->policy_settings.count, 1);

    static const char *const damaged[][2] = {
        {"confirmPolicy", "{"},
        {"confirmPolicy", "{\"a\":\"b\"}"},
        {"maxToolRounds", "1001"},
        {"locale", "en"},
    };
    for (size_t i = 0; i < COUNT(damaged); i++) {
        put.name = damaged[i][0];
        put.value = damaged[i][1];
        assert_int_equal(store_run(w->store, &put.job), OK);
        assert_int_equal(make(w, NULL), ERR_DAMAGED);
        assert_part(w->kit->fault.text, damaged[i][0]);
        assert_part(w->kit->fault.text, "agent/assistant in the database is damaged");
        put.value = i < 2 ? "{}" : i == 2 ? "5" : "\"en\"";
        assert_int_equal(store_run(w->store, &put.job), OK);
    }
    make_ok(w, NULL);
}

static void http_tools(void **state)
{
    struct world *w = *state;
    config_kit_put("token.txt", STR("Bearer x"));
    config_kit_put(
        "fermata.yaml",
        STR("tools:\n"
            "  - http: {name: a, url: 'http://a', effect: read, schema: {type: object}}\n"
            "  - http: {name: b, url: 'http://b/c', effect: write, risk: destructive,\n"
            "           idempotent: true, description: B, timeout_s: 5,\n"
            "           summary: {zh: '完成 {x}', en: 'Did {x}'},\n"
            "           headers: {Authorization_file: token.txt},\n"
            "           schema: {type: object, properties: {x: {type: integer}}}}\n"));
    config_kit_ok(w->kit, config_kit_load(w->kit, NULL, NULL));
    struct tools made;
    struct arena *arena = &w->kit->arena;
    config_kit_ok(w->kit,
                  toolbox_http_tools(arena, NULL, NULL, &w->kit->config, &made, &w->kit->fault));
    assert_int_equal(made.count, 2);
    assert_str(made.rows[0].name, STR("a"));
    assert_false(made.rows[0].write);
    assert_non_null(made.rows[0].args);
    assert_str(made.rows[1].description, STR("B"));
    assert_int_equal(made.rows[0].done_zh.len + made.rows[0].done_en.len, 0);
    assert_str(made.rows[1].done_zh, STR("完成 {x}"));
    assert_str(made.rows[1].done_en, STR("Did {x}"));
    assert_true(made.rows[1].write && made.rows[1].idempotent);
    assert_int_equal(made.rows[1].risk, RISK_DESTRUCTIVE);
    assert_str(made.rows[1].schema,
               STR("{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"integer\"}}}"));
    for (size_t i = 0; i < made.count; i++)
        if (made.rows[i].ops->free) made.rows[i].ops->free(made.rows[i].self);

    config_kit_put(
        "fermata.yaml",
        STR("tools:\n"
            "  - http: {name: a, url: 'http://a', effect: read, schema: {type: object}}\n"
            "  - http: {name: b, url: 'http://a', effect: read,\n"
            "           schema: {type: object, properties: {x: {type: nothing}}}}\n"));
    config_kit_ok(w->kit, config_kit_load(w->kit, NULL, NULL));
    assert_int_equal(toolbox_http_tools(arena, NULL, NULL, &w->kit->config, &made, &w->kit->fault),
                     ERR_CONFIG);
    assert_part(w->kit->fault.text, "fermata.yaml:3: tools[1].http.schema.properties.x");
}

static const struct tool more_rows[] = {
    {.name = STR("calendar_read"), .pack = STR("calendar")},
    {.name = STR("files.read"), .pack = STR("files")},
    {.name = STR("files.write"), .pack = STR("files"), .write = true},
    {.name = STR("web.get"), .pack = STR("web")},
};
static const struct tools more_tools = {more_rows, COUNT(more_rows)};

static const char two_agents[] =
    "models:\n"
    "  second: {provider: demo, window: 1000, retry_ms: 7, price: {input: 0.5, output: 1.5,\n"
    "           currency: USD}}\n"
    "agents:\n"
    "  clerk: {model: second, tools: [files, calendar_read], policy: {files.write: deny},\n"
    "          approvers: {files.later: operator}, busy: reject, on_disconnect: cancel,\n"
    "          locale: en, max_rounds: 3}\n"
    "  assistant: {tools: [web.get]}\n"
    "mcp:\n"
    "  files: {command: [serve-files]}\n"
    "  web: {url: 'http://127.0.0.1:1/mcp'}\n";

static void assert_tools(const struct agent *agent, const char *names)
{
    AUTO(buf_done) struct buf chosen;
    buf_init(&chosen, 4096);
    for (size_t k = 0; k < agent->tool_count; k++)
        buf_printf(&chosen, "%.*s ", STR_ARG(agent->tools[k]->name));
    assert_str(buf_str(&chosen), str_c(names));
}

static void several(void **state)
{
    struct world *w = *state;
    config_kit_put("fermata.yaml", str_c(two_agents));
    make_ok(w, NULL);
    assert_int_equal(agents_count(w->agents), 2);
    assert_str(first(w)->name, STR("assistant")); /* it is the default wherever it stands */
    const struct agent *clerk = agents_find(w->agents, STR("clerk"));
    assert_ptr_equal(clerk, agents_at(w->agents, 1));
    assert_null(agents_find(w->agents, STR("cler")));
    assert_null(agents_config(w->agents, STR("nobody")));
    assert_null(agents_settings(w->agents, STR("nobody")));
    assert_int_equal(clerk->busy, BUSY_REJECT);
    assert_int_equal(clerk->on_disconnect, DISCONNECT_CANCEL);
    assert_int_equal(clerk->model.window, 1000);
    assert_int_equal(clerk->model.retry_ms, 7);
    assert_true(clerk->model.price.input == 500000 && clerk->model.price.output == 1500000);
    assert_string_equal(clerk->model.price.currency, "USD");
    assert_ptr_equal(first(w)->model.self, clerk->model.self); /* one model for both */
    assert_int_equal(models_count(w->models[0]), 1);

    /* What servers offer comes and goes; names of theirs are never refused. */
    assert_tools(clerk, "calendar_read ");
    assert_tools(first(w), "");
    agents_choose(w->agents, &more_tools);
    assert_tools(clerk, "calendar_read files.read files.write ");
    assert_tools(first(w), "web.get ");
    agents_choose(w->agents, &all_tools);
    assert_tools(clerk, "calendar_read ");

    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    const struct agent_briefs briefs = agents_briefs(w->agents, &arena);
    assert_int_equal(briefs.count, 2);
    const struct agent_brief *brief = agent_briefs_pick(&briefs, STR("clerk"));
    assert_str(brief->name, STR("clerk"));
    assert_str(brief->locale, STR("en"));
    assert_int_equal(brief->max_rounds, 3);
    assert_int_equal(brief->busy, BUSY_REJECT);
    assert_str(agent_briefs_pick(&briefs, STR("gone"))->name, STR("assistant"));
    assert_str(agent_briefs_pick(&briefs, STR_EMPTY)->name, STR("assistant"));
}

static void settings_of_each(void **state)
{
    struct world *w = *state;
    config_kit_put("fermata.yaml", str_c(two_agents));
    make_ok(w, NULL);
    assert_int_equal(change_of(w, "clerk", "{\"maxToolRounds\":9}"), OK);
    assert_int_equal(agents_find(w->agents, STR("clerk"))->max_rounds, 9);
    assert_int_equal(first(w)->max_rounds, AGENT_ROUNDS_MAX);
    assert_int_equal(change(w, "{\"confirmPolicy\":{\"web.post\":\"deny\"}}"),
                     OK); /* later, maybe */
    assert_int_equal(change(w, "{\"confirmPolicy\":{\"wob.post\":\"deny\"}}"), ERR_INVALID_FIELD);
    assert_int_equal(change(w, "{\"confirmPolicy\":{\"web.\":\"deny\"}}"), ERR_INVALID_FIELD);
    make_ok(w, NULL);
    assert_int_equal(agents_find(w->agents, STR("clerk"))->max_rounds, 9);
    assert_int_equal(first(w)->policy_settings.count, 1);
    /* Of an agent that went while its change was on its way. */
    agents_apply(w->agents, STR("gone"), agents_settings(w->agents, STR("clerk")));
}

static void refused_names(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *yaml, *text;
    } rows[] = {
        {"agents: {clerk: {tools: [fils]}}\nmcp: {files: {command: [x]}}\n",
         "agents.clerk.tools: there is no tool \"fils\"; did you mean \"files\"?"},
        {"agents: {clerk: {policy: {files: deny}}}\nmcp: {files: {command: [x]}}\n",
         "agents.clerk.policy: there is no tool \"files\""},
        {"agents: {a: {}, clerk: {approvers: {file.x: operator}}}\nmcp: {files: {command: [x]}}\n",
         "agents.clerk.approvers: there is no tool \"file.x\""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        config_kit_put("fermata.yaml", str_c(rows[i].yaml));
        assert_int_equal(make(w, NULL), ERR_CONFIG);
        assert_part(w->kit->fault.text, rows[i].text);
    }
}

/* A reload: by name, settings kept, those that are gone replaced by somebody who does nothing. */
static void taken_again(void **state)
{
    struct world *w = *state;
    config_kit_put("fermata.yaml", str_c(two_agents));
    make_ok(w, NULL);
    assert_int_equal(change_of(w, "clerk", "{\"maxToolRounds\":9}"), OK);
    const struct agent *before = agents_find(w->agents, STR("clerk"));
    str name = before->name;
    config_kit_put(
        "fermata.yaml",
        STR("agents: {clerk: {prompt: New., max_rounds: 4, locale: zh-CN}, boss: {}}\n"));
    config_kit_ok(w->kit, again(w, NULL));
    const struct agent *now = agents_find(w->agents, STR("clerk"));
    assert_ptr_not_equal(before, now);
    assert_str(now->prompt, STR("New."));
    assert_str(now->locale, STR("zh-CN"));
    assert_int_equal(now->max_rounds, 9); /* still set */
    assert_tools(now, "calendar_write calendar_read user_resolve place_order ");
    assert_ptr_equal(first(w), now);
    /* What was there before can still be read. */
    assert_str(name, STR("clerk"));
    assert_string_equal(before->model.name, "demo");

    const struct agent *gone = agents_for(w->agents, STR("assistant"));
    assert_non_null(gone);
    assert_null(agents_find(w->agents, STR("assistant")));
    assert_ptr_equal(gone, agents_for(w->agents, STR("assistant")));
    assert_str(gone->name, STR("assistant"));
    assert_int_equal(gone->tool_count, 0);
    assert_int_equal(gone->max_rounds, AGENT_ROUNDS_MAX); /* a queued run begins with it */
    assert_int_equal(gone->policy.count, 1);
    assert_int_equal(gone->policy.rows[0].verdict, VERDICT_DENY);
    assert_true(pattern_fits(gone->policy.rows[0].pattern, STR("calendar_read")));

    config_kit_put("fermata.yaml", str_c(two_agents));
    config_kit_ok(w->kit, again(w, NULL));
    assert_ptr_equal(agents_for(w->agents, STR("assistant")), first(w)); /* the real one */

    /* One that cannot be used changes nothing. */
    now = first(w);
    config_kit_put("fermata.yaml", STR("agents: {clerk: {tools: [nothing]}}\n"));
    assert_int_equal(again(w, NULL), ERR_CONFIG);
    assert_ptr_equal(first(w), now);
}

struct ended {
    struct loop *loop;
    enum model_end end;
    char why[384];
    bool inside;
    unsigned count;
};

static void on_end(void *arg, const struct model_ending *ending)
{
    struct ended *ended = arg;
    assert_false(ended->inside);
    ended->end = ending->end;
    snprintf(ended->why, sizeof ended->why, "%s", ending->why->text);
    ended->count++;
    loop_stop(ended->loop);
}

static void stand_ins(void **state)
{
    struct world *w = *state;
    make_ok(w, NULL);
    static const struct model_sink sink = {.on_end = on_end};
    struct ended ended = {.loop = w->loop, .end = MODEL_DONE, .inside = true};
    const struct model *model = &agents_for(w->agents, STR("clerk"))->model;
    const struct model_request request = {.round = 1};
    assert_non_null(model_start(model, &request, &sink, &ended));
    ended.inside = false;
    loop_run(w->loop);
    assert_int_equal(ended.count, 1);
    assert_int_equal(ended.end, MODEL_AGAIN);
    assert_part(ended.why, "the agent clerk is not configured any more");
    model_cancel(model, model_start(model, &request, &sink, &ended)); /* it says nothing any more */

    /* However many names there are, they are bounded. */
    const struct agent *last = NULL;
    for (size_t i = 0; i < AGENTS_GONE_MAX + 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "gone%zu", i);
        last = agents_for(w->agents, str_c(name));
    }
    assert_int_equal(last->name.len, 0);
    assert_ptr_equal(last, agents_for(w->agents, STR("one-more")));
    assert_non_null(model_start(&last->model, &request, &sink, &ended));
    loop_run(w->loop);
    assert_int_equal(ended.count, 2);
    assert_part(ended.why, "its agent is not configured any more");
}

static size_t out_count;

static void left_out(const struct tool *tool, const char *why)
{
    assert_part(why, "another tool has this name");
    assert_str(tool->name, STR("calendar_read"));
    out_count++;
}

static void one_list(void **state)
{
    struct world *w = *state;
    out_count = 0;
    const struct tools joined = toolbox_join(&w->kit->arena, &all_tools, &more_tools, 1, left_out);
    assert_int_equal(out_count, 1);
    assert_int_equal(joined.count, COUNT(all_rows) + COUNT(more_rows) - 1);
    assert_str(joined.rows[COUNT(all_rows)].name, STR("files.read"));
}

int test_agents(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(defaults),    CASE(from_the_file),   CASE(choice_of_tools),  CASE(policies_of_nothing),
        CASE(changes),     CASE(refused_changes), CASE(long_policies),    CASE(stale_and_damaged),
        CASE(http_tools),  CASE(several),         CASE(settings_of_each), CASE(refused_names),
        CASE(taken_again), CASE(stand_ins),       CASE(one_list),
    };
#undef CASE
    return cmocka_run_group_tests_name("app/agents", tests, NULL, NULL);
}
