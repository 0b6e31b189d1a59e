/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent from configuration, tools and settings; a store in a folder of its own.
 */
#include "app/agents.h"

#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "config_kit.h"
#include "store/settings.h"
#include "store/sqlite.h"
#include "store/store.h"

/* As the registry has them: a pack, and a tool that is its own pack. */
static const struct tool all_rows[] = {
    {.name = STR("calendar_write"), .pack = STR("calendar"), .write = true},
    {.name = STR("calendar_read"), .pack = STR("calendar")},
    {.name = STR("user_resolve"), .pack = STR("calendar")},
    {.name = STR("place_order"), .pack = STR("place_order"), .write = true},
};
static const struct tools all_tools = {all_rows, COUNT(all_rows)};

struct world {
    struct config_kit *kit;
    struct store *store;
    struct agent agent;
    struct agents *agents;
};

static int setup(void **state)
{
    static struct world w;
    w = (struct world){0};
    void *kit;
    if (config_kit_setup(&kit)) return -1;
    w.kit = kit;
    *state = &w;
    return store_open(".", NULL, &w.store, NULL) == OK ? 0 : -1;
}

static int teardown(void **state)
{
    struct world *w = *state;
    agents_free(w->agents);
    store_close(w->store);
    static const char *const files[] = {"fermata.db", "fermata.db-wal", "fermata.db-shm"};
    for (size_t i = 0; i < COUNT(files); i++) unlink(files[i]);
    void *kit = w->kit;
    return config_kit_teardown(&kit);
}

/* The agent of these flags. */
static enum err make(struct world *w, const char *flags)
{
    config_kit_ok(w->kit, config_kit_load(w->kit, NULL, flags));
    agents_free(TAKE(w->agents));
    return agents_open(&w->kit->config, &all_tools, w->store, &w->agent, &w->agents,
                       &w->kit->fault);
}

static void make_ok(struct world *w, const char *flags)
{
    config_kit_ok(w->kit, make(w, flags));
}

/* A job that does one thing with the database. */
struct task {
    struct job job;
    const struct json *body;
    struct arena *arena;
    const char *name, *value;
    struct agent_settings settings;
    struct fault *reterr;
};

static enum err save_run(struct job *job, struct db *db)
{
    struct task *task = (struct task *)(void *)job;
    enum err e = agents_settings_save(db, STR("assistant"), task->body);
    if (e) return e;
    return agents_settings_load(db, task->arena, STR("assistant"), &task->settings, task->reterr);
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
static enum err change(struct world *w, const char *body)
{
    struct task task = {.job.run = save_run,
                        .body = parse(w, body),
                        .arena = &w->kit->arena,
                        .reterr = &w->kit->fault};
    w->kit->fault = (struct fault){0};
    enum err e = agents_settings_check(w->agents, &w->kit->arena, task.body, &w->kit->fault);
    if (e) return e;
    assert_int_equal(store_run(w->store, &task.job), OK);
    agents_apply(w->agents, &task.settings);
    return OK;
}

static void assert_shown(struct world *w, const char *json)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, 64 * 1024);
    struct json_writer writer;
    json_write_begin(&writer, &out);
    agents_settings_write(&writer, &w->kit->config, agents_settings_now(w->agents));
    assert_str(buf_str(&out), str_c(json));
}

static void defaults(void **state)
{
    struct world *w = *state;
    static const struct model_ops ops;
    w->agent.model = (struct model){.ops = &ops, .self = w, .name = "demo", .images = true};
    make_ok(w, NULL);
    assert_str(w->agent.name, STR("assistant"));
    assert_ptr_equal(w->agent.model.ops, &ops); /* left alone */
    assert_int_equal(w->agent.busy, BUSY_ENQUEUE);
    assert_int_equal(w->agent.on_disconnect, DISCONNECT_CONTINUE);
    assert_int_equal(w->agent.plan, PLAN_AUTO);
    assert_true(w->agent.ask_user);
    assert_int_equal(w->agent.max_rounds, AGENT_ROUNDS_MAX);
    assert_str(w->agent.prompt, STR(""));
    assert_str(w->agent.locale, STR(""));
    assert_int_equal(w->agent.tokens_max, 0);
    assert_int_equal(w->agent.active_ms_max, 0);
    assert_int_equal(w->agent.policy.count, 0);
    assert_int_equal(w->agent.policy_settings.count, 0);
    assert_int_equal(w->agent.tool_count, COUNT(all_rows));
    for (size_t i = 0; i < COUNT(all_rows); i++) assert_ptr_equal(w->agent.tools[i], &all_rows[i]);
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
    assert_int_equal(w->agent.tokens_max, 5);
    assert_true(w->agent.active_ms_max == 525600LL * 60 * 1000);
    assert_str(w->agent.locale, STR("en"));
    assert_false(w->agent.ask_user);
    assert_int_equal(w->agent.plan, PLAN_ALWAYS);
    assert_str(w->agent.prompt, STR("Be brief."));
    assert_int_equal(w->agent.policy.count, 2);
    assert_int_equal(w->agent.policy.rows[0].verdict, VERDICT_ALLOW);
    assert_int_equal(w->agent.policy.approver_count, 1);
    assert_str(w->agent.policy.approvers[0].role, STR("approver"));
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
        for (size_t k = 0; k < w->agent.tool_count; k++)
            buf_printf(&chosen, "%.*s ", STR_ARG(w->agent.tools[k]->name));
        assert_str(buf_str(&chosen), str_c(rows[i].chosen));
    }
    config_kit_put("fermata.yaml", STR("agents: {assistant: {tools: []}}\n"));
    make_ok(w, NULL);
    assert_int_equal(w->agent.tool_count, 0);
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
    assert_false(w->agent.ask_user);
    assert_int_equal(w->agent.max_rounds, 1000);
    assert_str(w->agent.locale, STR("en"));
    assert_int_equal(w->agent.policy.count, 1); /* the file's stands below it */
    assert_int_equal(w->agent.policy_settings.count, 2);
    assert_str(w->agent.policy_settings.rows[0].pattern, STR("place_order"));
    assert_int_equal(w->agent.policy_settings.rows[0].verdict, VERDICT_DENY);

    make_ok(w, NULL); /* a new start finds them again */
    assert_shown(w, set);
    assert_int_equal(w->agent.policy_settings.count, 2);

    assert_int_equal(change(w, "{\"maxToolRounds\":1}"), OK); /* the others stay */
    assert_int_equal(w->agent.max_rounds, 1);
    assert_false(w->agent.ask_user);
    assert_int_equal(change(w, "{\"confirmPolicy\":{}}"), OK); /* set, and empty */
    assert_int_equal(w->agent.policy_settings.count, 0);
    assert_int_equal(change(w, "{\"enableAskUser\":null,\"maxToolRounds\":null,\"locale\":null,"
                               "\"confirmPolicy\":null}"),
                     OK);
    assert_shown(w, "{\"enableAskUser\":true,\"maxToolRounds\":30,\"confirmPolicy\":{}}");
    assert_true(w->agent.ask_user);
    assert_str(w->agent.locale, STR(""));
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
    assert_int_equal(w->agent.policy_settings.count, CONFIG_LIST_MAX);
}

/* A tool that has gone leaves its row behind; that is no reason not to start. */
static void stale_and_damaged(void **state)
{
    struct world *w = *state;
    struct task put = {
        .job.run = put_run, .name = "confirmPolicy", .value = "{\"gone_tool\":\"deny\"}"};
    assert_int_equal(store_run(w->store, &put.job), OK);
    make_ok(w, NULL);
    assert_int_equal(w->agent.policy_settings.count, 1);

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
                  agents_http_tools(arena, NULL, NULL, &w->kit->config, &made, &w->kit->fault));
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
    assert_int_equal(agents_http_tools(arena, NULL, NULL, &w->kit->config, &made, &w->kit->fault),
                     ERR_CONFIG);
    assert_part(w->kit->fault.text, "fermata.yaml:3: tools[1].http.schema.properties.x");
}

int test_agents(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(defaults),   CASE(from_the_file),   CASE(choice_of_tools), CASE(policies_of_nothing),
        CASE(changes),    CASE(refused_changes), CASE(long_policies),   CASE(stale_and_damaged),
        CASE(http_tools),
    };
#undef CASE
    return cmocka_run_group_tests_name("app/agents", tests, NULL, NULL);
}
