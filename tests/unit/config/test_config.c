/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/say.h"
#include "config/kit.h"
#include "config/option.h"

static void defaults(void **state)
{
    struct config_kit *f = *state;
    config_kit_ok(f, config_kit_load(f, NULL, NULL));
    const struct config *c = &f->config;
    assert_str(c->file, STR(""));
    assert_str(c->listen.host, STR("127.0.0.1"));
    assert_int_equal(c->listen.port, 8080);
    assert_str(c->data, STR("./data"));
    assert_str(c->api_key, STR(""));
    assert_str(c->public_url.text, STR(""));
    assert_int_equal(c->trusted_proxies.count, 0);
    assert_int_equal(c->log.level, LOG_INFO);
    assert_str(c->secret_file, STR(""));
    assert_str(c->script, STR(""));
    assert_int_equal(c->model.provider, PROVIDER_DEMO);
    assert_int_equal(c->auth_cors.count, 0);
    assert_int_equal(c->auth_hosts.count, 0);
    assert_int_equal(c->body_bytes_max, 16 << 20);
    assert_int_equal(c->upload_bytes_max, 100 << 20);
    assert_int_equal(c->connections_max, 10000);
    assert_int_equal(c->rate_max, 0);
    assert_str(c->script_log, STR(""));
    const struct config_agent *a = &c->agents.items[0];
    assert_str(a->prompt, STR(""));
    assert_int_equal(a->tools.count, 1);
    assert_str(a->tools.items[0], STR("*"));
    assert_int_equal(a->plan, PLAN_AUTO);
    assert_int_equal(a->busy, BUSY_ENQUEUE);
    assert_int_equal(a->on_disconnect, DISCONNECT_CONTINUE);
    assert_true(a->ask_user);
    assert_int_equal(a->max_rounds, AGENT_ROUNDS_MAX);
    assert_str(a->locale, STR(""));
    assert_int_equal(a->starters.count, 0);
    assert_int_equal(a->tokens_max, 0);
    assert_int_equal(a->minutes_max, 0);
    assert_int_equal(a->policy.count, 0);
    assert_int_equal(a->policy.approver_count, 0);
    assert_int_equal(c->http_tools.count, 0);
    assert_int_equal(c->webhooks.count, 0);
    assert_int_equal(c->warnings.count, 0);
}

static void every_option_in_the_file(void **state)
{
    struct config_kit *f = *state;
    config_kit_put("key", STR("0123456789abcdef\n"));
    config_kit_put("fermata.yaml",
                   STR("listen: \"[::1]:0\"\n"
                       "data: /var/lib/fermata\n"
                       "api_key_file: key\n"
                       "public_url: https://example.com/fermata/\n"
                       "trusted_proxies: [10.0.0.0/8, \"::1\"]\n"
                       "log: debug,json\n"
                       "secret_file: /run/secret\n"
                       "script: answers.jsonl\n"
                       "model: {provider: scripted}\n"
                       "auth:\n"
                       "  cors: [https://a.example, \"http://b.example:81\"]\n"
                       "  hosts:\n"
                       "    - a.example\n"
                       "limits: {body: 1MiB, upload: 2GiB, connections: 5, rate: 7}\n"));
    config_kit_ok(f, config_kit_load(f, NULL, NULL));
    const struct config *c = &f->config;
    assert_str(c->file, STR("fermata.yaml"));
    assert_str(c->listen.host, STR("::1"));
    assert_int_equal(c->listen.host.p[c->listen.host.len], 0);
    assert_int_equal(c->listen.port, 0);
    assert_str(c->data, STR("/var/lib/fermata"));
    assert_str(c->api_key, STR("0123456789abcdef"));
    assert_str(c->public_url.text, STR("https://example.com/fermata"));
    assert_str(c->public_url.origin, STR("https://example.com"));
    assert_str(c->public_url.prefix, STR("/fermata"));
    assert_int_equal(c->trusted_proxies.count, 2);
    assert_true(cidr_contains(&c->trusted_proxies.items[0], STR("10.9.9.9")));
    assert_int_equal(c->log.level, LOG_DEBUG);
    assert_true(c->log.json);
    assert_str(c->secret_file, STR("/run/secret"));
    assert_str(c->script, STR("answers.jsonl"));
    assert_int_equal(c->model.provider, PROVIDER_SCRIPTED);
    assert_int_equal(c->auth_cors.count, 2);
    assert_str(c->auth_cors.items[1], STR("http://b.example:81"));
    assert_int_equal(c->auth_hosts.count, 1);
    assert_str(c->auth_hosts.items[0], STR("a.example"));
    assert_int_equal(c->body_bytes_max, 1 << 20);
    assert_true(c->upload_bytes_max == 2ULL << 30);
    assert_int_equal(c->connections_max, 5);
    assert_int_equal(c->rate_max, 7);
}

static void the_agent_in_the_file(void **state)
{
    struct config_kit *f = *state;
    config_kit_put("fermata.yaml",
                   STR("script_log: log.jsonl\n"
                       "agents:\n"
                       "  assistant:\n"
                       "    prompt: |\n"
                       "      You are \"Fermata\".\n"
                       "\n"
                       "      休止符：等一等。\n"
                       "    tools: [calendar, \"files.*\", place_order]\n"
                       "    plan: never\n"
                       "    ask_user: false\n"
                       "    max_rounds: 1000\n"
                       "    busy: reject\n"
                       "    on_disconnect: pause\n"
                       "    locale: zh-CN\n"
                       "    starters: [\"帮我约个会\", \"What's next, please?\"]\n"
                       "    budget: {tokens: 200000, minutes: 30}\n"
                       "    policy: {calendar_write: confirm, \"files.*\": deny, '*': allow}\n"
                       "    approvers: {calendar_delete: approver, x: user, 'y*': operator}\n"));
    config_kit_ok(f, config_kit_load(f, NULL, NULL));
    const struct config_agent *a = &f->config.agents.items[0];
    assert_str(f->config.script_log, STR("log.jsonl"));
    assert_str(a->prompt, STR("You are \"Fermata\".\n\n休止符：等一等。\n"));
    assert_int_equal(a->tools.count, 3);
    assert_str(a->tools.items[1], STR("files.*"));
    assert_int_equal(a->plan, PLAN_NEVER);
    assert_false(a->ask_user);
    assert_int_equal(a->max_rounds, 1000);
    assert_int_equal(a->busy, BUSY_REJECT);
    assert_int_equal(a->on_disconnect, DISCONNECT_PAUSE);
    assert_str(a->locale, STR("zh-CN"));
    assert_int_equal(a->starters.count, 2);
    assert_str(a->starters.items[1], STR("What's next, please?"));
    assert_int_equal(a->tokens_max, 200000);
    assert_int_equal(a->minutes_max, 30);
    assert_int_equal(a->policy.count, 3);
    assert_str(a->policy.rows[0].pattern, STR("calendar_write"));
    assert_int_equal(a->policy.rows[0].verdict, VERDICT_CONFIRM);
    assert_str(a->policy.rows[1].pattern, STR("files.*"));
    assert_int_equal(a->policy.rows[1].verdict, VERDICT_DENY);
    assert_int_equal(a->policy.rows[2].verdict, VERDICT_ALLOW);
    assert_int_equal(a->policy.approver_count, 3);
    assert_str(a->policy.approvers[0].pattern, STR("calendar_delete"));
    assert_str(a->policy.approvers[0].role, STR("approver"));
    assert_str(a->policy.approvers[2].role, STR("operator"));
    assert_int_equal(f->config.warnings.count, 1);
    assert_part(f->config.warnings.items[0].p, "script_log is set and not used");

    AUTO(buf_done) struct buf out;
    config_kit_print(f, &out);
    assert_part(
        out.p,
        "    prompt: \"You are \\\"Fermata\\\".\\n\\n休止符：等一等。\\n\"  # fermata.yaml:4\n");
    assert_part(out.p,
                "    policy: {calendar_write: confirm, \"files.*\": deny, \"*\": allow}  # ");
    assert_part(out.p, "    budget:\n      tokens: 200000  # fermata.yaml:16\n");
    config_kit_reads_back(f);
    assert_str(f->config.agents.items[0].prompt, STR("You are \"Fermata\".\n\n休止符：等一等。\n"));
}

/* Whatever text a person writes is what they find again. */
static void any_text(void **state)
{
    struct config_kit *f = *state;
    static const str rows[] = {
        STR(" \n\t\r\n "),
        STR("\x01\x1B[2J\x7F"),
        STR("\xC2\x85\xC2\xA0\xE2\x80\xA8\xE2\x80\xA9\xEF\xBB\xBF\xEF\xBF\xBE\xEF\xBF\xBF"),
        STR("\"\\\" \\n # : {a: b} [c]  # d"),
        STR("😀 数据 \xF4\x8F\xBF\xBF"),
        STR("~"),
        STR("null"),
        STR("true"),
        STR("--- !!str &a *b"),
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        /* Newlines separate the flags of the kit, so this goes without it. */
        struct config_arg arg = {config_flag(STR("agents-assistant-prompt")), rows[i]};
        char *const none[] = {NULL};
        config_kit_ok(f, config_load(&f->arena, &arg, 1, none, &f->config, &f->fault));
        assert_str(f->config.agents.items[0].prompt, rows[i]);
        config_kit_reads_back(f);
        assert_str(f->config.agents.items[0].prompt, rows[i]);
    }
    config_kit_put("fermata.yaml",
                   STR("agents: {assistant: {starters: [\"a\\nb\", \"\\e\", \"  # c\"]}}\n"));
    config_kit_ok(f, config_kit_load(f, NULL, NULL));
    config_kit_reads_back(f);
    assert_int_equal(f->config.agents.items[0].starters.count, 3);
    assert_str(f->config.agents.items[0].starters.items[0], STR("a\nb"));
    assert_str(f->config.agents.items[0].starters.items[1], STR("\x1B"));
    assert_str(f->config.agents.items[0].starters.items[2], STR("  # c"));
}

static void maps(void **state)
{
    struct config_kit *f = *state;
    config_kit_put("fermata.yaml", STR("agents: {assistant: {policy: {a: deny, b: deny}}}\n"));
    config_kit_ok(f, config_kit_load(f, "FERMATA_AGENTS_ASSISTANT_POLICY=c = allow , d*=confirm",
                                     NULL));
    const struct policy *policy = &f->config.agents.items[0].policy;
    assert_int_equal(policy->count, 2); /* replaced, not joined */
    assert_str(policy->rows[0].pattern, STR("c"));
    assert_int_equal(policy->rows[0].verdict, VERDICT_ALLOW);
    assert_str(policy->rows[1].pattern, STR("d*"));

    config_kit_put("fermata.yaml",
                   STR("agents: {assistant: {policy: {}, approvers: , tools: []}}\n"));
    config_kit_ok(f, config_kit_load(f, NULL, NULL));
    assert_int_equal(f->config.agents.items[0].policy.count, 0);
    assert_int_equal(f->config.agents.items[0].tools.count, 0); /* none, unlike absent */
    config_kit_reads_back(f);
    assert_int_equal(f->config.agents.items[0].tools.count, 0);
}

/* Later wins, and each place is named behind the value. */
static void precedence(void **state)
{
    struct config_kit *f = *state;
    static const struct {
        const char *yaml, *env, *flags, *data, *printed;
    } rows[] = {
        {"", NULL, NULL, "./data", "data: ./data  # default\n"},
        {"\ndata: f\n", NULL, NULL, "f", "data: f  # fermata.yaml:2\n"},
        {"data: f\n", "FERMATA_DATA=e", NULL, "e", "data: e  # FERMATA_DATA\n"},
        {"data: f\n", "FERMATA_DATA=", NULL, "f", "data: f  # fermata.yaml:1\n"},
        {"data: f\n", "FERMATA_DATA=e", "data=g", "g", "data: g  # --data\n"},
        {"", NULL, "data=g", "g", "data: g  # --data\n"},
        {"data:\n", NULL, NULL, "./data", "data: ./data  # default\n"},
        {"data: ''\n", "FERMATA_DATA=e", NULL, "e", "data: e  # FERMATA_DATA\n"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        config_kit_put("fermata.yaml", str_c(rows[i].yaml));
        config_kit_ok(f, config_kit_load(f, rows[i].env, rows[i].flags));
        assert_str(f->config.data, str_c(rows[i].data));
        AUTO(buf_done) struct buf out;
        config_kit_print(f, &out);
        assert_part(out.p, rows[i].printed);
    }
}

/* Its name in the environment is another one than its key's. */
static void storage(void **state)
{
    struct config_kit *f = *state;
    config_kit_put("fermata.yaml", STR("data: d\n"));
    config_kit_ok(f, config_kit_load(f, NULL, NULL));
    assert_string_equal(config_blobs(&f->config, &f->arena), "d/blobs");
    assert_int_equal(f->config.grace_s, 24 * 60 * 60);
    config_kit_put("fermata.yaml", STR("data: d\nstorage: {blobs: elsewhere, grace: 60}\n"));
    config_kit_ok(f, config_kit_load(f, NULL, NULL));
    assert_string_equal(config_blobs(&f->config, &f->arena), "elsewhere");
    assert_int_equal(f->config.grace_s, 60);
    config_kit_ok(f, config_kit_load(f, "FERMATA_BLOB_URL=file:/x", NULL));
    assert_string_equal(config_blobs(&f->config, &f->arena), "file:/x");
    AUTO(buf_done) struct buf out;
    config_kit_print(f, &out);
    assert_part(out.p, "  blobs: file:/x  # FERMATA_BLOB_URL\n");
    assert_int_equal(config_kit_load(f, "FERMATA_BLOB_URL=s3://b/x", NULL), ERR_CONFIG);
    assert_part(f->fault.text, "FERMATA_BLOB_URL: storage.blobs: \"s3://b/x\" is no storage that "
                               "this version knows: it keeps objects in a folder; write a folder, "
                               "or file: and a folder");
}

static void lists(void **state)
{
    struct config_kit *f = *state;
    config_kit_put("fermata.yaml", STR("auth: {hosts: [a, b, c]}\n"));
    config_kit_ok(f, config_kit_load(f, "FERMATA_AUTH_HOSTS=d , e", NULL));
    assert_int_equal(f->config.auth_hosts.count, 2); /* replaced, not joined */
    assert_str(f->config.auth_hosts.items[0], STR("d"));
    assert_str(f->config.auth_hosts.items[1], STR("e"));

    config_kit_ok(f, config_kit_load(f, NULL, "auth-hosts=x"));
    assert_int_equal(f->config.auth_hosts.count, 1);

    config_kit_put("fermata.yaml", STR("auth: {hosts: [], cors: }\ntrusted_proxies: []\n"));
    config_kit_ok(f, config_kit_load(f, NULL, NULL));
    assert_int_equal(f->config.auth_hosts.count, 0);
    assert_int_equal(f->config.trusted_proxies.count, 0);
}

static void file_choice(void **state)
{
    struct config_kit *f = *state;
    config_kit_put("fermata.yaml", STR("data: default\n"));
    config_kit_put("other.yaml", STR("data: other\n"));
    config_kit_ok(f, config_kit_load(f, NULL, NULL));
    assert_str(f->config.data, STR("default"));
    config_kit_ok(f, config_kit_load(f, NULL, "config=other.yaml"));
    assert_str(f->config.data, STR("other"));
    assert_str(f->config.file, STR("other.yaml"));
    config_kit_ok(f, config_kit_load(f, "FERMATA_CONFIG=other.yaml", NULL));
    assert_str(f->config.data, STR("other"));
    config_kit_ok(f, config_kit_load(f, "FERMATA_CONFIG=missing.yaml", "config=other.yaml"));
    assert_str(f->config.file, STR("other.yaml"));

    assert_int_equal(config_kit_load(f, NULL, "config=missing.yaml"), ERR_CONFIG);
    assert_part(f->fault.text, "missing.yaml: cannot be read: No such file");
    assert_int_equal(config_kit_load(f, "FERMATA_CONFIG=missing.yaml", NULL), ERR_CONFIG);
    assert_int_equal(config_kit_load(f, NULL, "config=."), ERR_CONFIG);
    assert_part(f->fault.text, "directory");

    config_kit_put("other.yaml", STR("config: x\n"));
    assert_int_equal(config_kit_load(f, NULL, "config=other.yaml"), ERR_CONFIG);
    assert_part(f->fault.text, "other.yaml:1: \"config\" is an unknown key");
}

static void file_sizes(void **state)
{
    struct config_kit *f = *state;
    AUTO(buf_done) struct buf text;
    buf_init(&text, YAML_BYTES_MAX + 1);
    buf_append(&text, STR("#"));
    while (text.len < YAML_BYTES_MAX) buf_char(&text, text.len % 64 ? '#' : '\n');
    for (size_t at = 64; at + 1 < text.len; at += 64) text.p[at + 1] = '#';
    config_kit_put("fermata.yaml", buf_str(&text));
    config_kit_ok(f, config_kit_load(f, NULL, NULL));
    buf_char(&text, '#');
    config_kit_put("fermata.yaml", buf_str(&text));
    assert_int_equal(config_kit_load(f, NULL, NULL), ERR_CONFIG);
    assert_part(f->fault.text, "fermata.yaml: larger than 1048576 bytes");
}

static void refused_files(void **state)
{
    struct config_kit *f = *state;
    static const struct {
        const char *yaml, *text;
    } rows[] = {
        {"lisen: x\n", "fermata.yaml:1: \"lisen\" is an unknown key; did you mean \"listen\"?"},
        {"\nlimit:\n  body: 1\n", "fermata.yaml:2: \"limit\" is an unknown key"},
        {"limits:\n  bdy: 1\n", "fermata.yaml:2: \"limits.bdy\" is an unknown key; did you mean "
                                "\"limits.body\"?"},
        {"body: 1\n", "did you mean \"limits.body\"?"},
        {"crs: []\n", "did you mean \"auth.cors\"?"},
        {"auth: {trusted_proxies: []}\n", "did you mean \"trusted_proxies\"?"},
        {"limits.body: 1MiB\n", "\"limits.body\" has a dot; put the part behind it"},
        {"'': 1\n", "\"\" is an unknown key"},
        {"store_url: x\n", "\"store_url\" is an unknown key"},
        {"something_else_altogether: 1\n", "`fermata help` lists the known ones"},
        {"\"\\e[2J\": 1\n", "\"?[2J\" is an unknown key"},
        {"limits: 5\n", "\"limits\" has keys of its own; write them below it"},
        {"limits: [body]\n", "\"limits\" has keys of its own"},
        {"data: [a]\n", "\"data\" takes one value"},
        {"data: {a: b}\n", "\"data\" takes one value"},
        {"auth:\n  cors: https://a\n",
         "fermata.yaml:2: \"auth.cors\" takes a list such as [a, b]; write origins"},
        {"auth: {cors: [[a]]}\n", "takes a list of plain values"},
        {"auth: {cors: [~]}\n", "takes a list of plain values"},
        {"auth:\n  cors:\n    - https://a\n    - b\n",
         "fermata.yaml:4: auth.cors: \"b\" does not begin with"},
        {"agents:\n  assistant: {policy: [a]}\n",
         "fermata.yaml:2: \"agents.assistant.policy\" takes a map such as {a: b}; write tools"},
        {"agents: {assistant: {policy: deny}}\n", "takes a map such as {a: b}; write tools"},
        {"agents: {assistant: {policy: {a: [deny]}}}\n", "takes a map of plain values"},
        {"agents: {assistant: {policy: {a: }}}\n", "fermata.yaml:1: agents.assistant.policy: \"a\" "
                                                   "has no value; write tools or patterns such"},
        {"agents: {assistant: {policy: {'': deny}}}\n", "\"deny\" has no name in front of it"},
        {"agents: {assistant: {prompt: [a]}}\n", "takes one value"},
        {"agents: {assistant: {prompts: a}}\n", "did you mean \"agents.assistant.prompt\"?"},
        {"agents: {assistant: {budget: 5}}\n", "\"agents.assistant.budget\" has keys of its own"},
        {"agents: {assistant: {budget: {costs: 1}}}\n",
         "\"agents.assistant.budget.costs\" is an unknown key; did you mean "
         "\"agents.assistant.budget.cost\"?"},
        {"agent: {}\n", "did you mean \"agents\"?"},
        {"limit: {body: 1}\n", "\"limit\" is an unknown key; did you mean \"limits\"?"},
        {"limts: {body: 1}\n", "did you mean \"limits\"?"},
        {"auht: {cors: []}\n", "did you mean \"auth\"?"},
        {"strage: {}\n", "did you mean \"storage\"?"},
        {"model: {body: 1}\n", "\"model.body\" is an unknown key; `fermata help`"},
        {"model: {nme: x}\n", "did you mean \"model.name\"?"},
        {"model: {prise: {input: 1}}\n", "did you mean \"model.price\"?"},
        {"model: {input: 1}\n", "did you mean \"model.price.input\"?"},
        {"limits: {cors: []}\n", "\"limits.cors\" is an unknown key; `fermata help`"},
        {"zebra: 1\n", "\"zebra\" is an unknown key; `fermata help`"},
        {"modles: {}\n", "did you mean \"models\"?"},
        {"mpc: {}\n", "did you mean \"mcp\"?"},
        {"tool: []\n", "did you mean \"tools\"?"},
        {"webhook: []\n", "did you mean \"webhooks\"?"},
        {"auth: {webhooks: []}\n", "did you mean \"webhooks\"?"},
        {"- data\n", "fermata.yaml:1: holds no keys"},
        {"words\n", "fermata.yaml:1: holds no keys"},
        {"data: 1\ndata: 2\n", "fermata.yaml:2: the key \"data\" was already given in line 1"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        config_kit_put("fermata.yaml", str_c(rows[i].yaml));
        f->config.data = STR("untouched");
        if (config_kit_load(f, NULL, NULL) != ERR_CONFIG) fail_msg("taken: %s", rows[i].yaml);
        assert_part(f->fault.text, rows[i].text);
        assert_str(f->config.data, STR("untouched"));
    }
}

static void empty_files(void **state)
{
    struct config_kit *f = *state;
    static const char *const rows[] = {"", "# nothing\n", "---\n", "~\n", "{}\n", "limits:\n"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        config_kit_put("fermata.yaml", str_c(rows[i]));
        config_kit_ok(f, config_kit_load(f, NULL, NULL));
        assert_str(f->config.file, STR("fermata.yaml"));
    }
}

/* Every check of every option, given as a flag; NULL = taken. */
static void values(void **state)
{
    struct config_kit *f = *state;
    static const struct {
        const char *flag, *refused;
    } rows[] = {
        {"listen=0.0.0.0:0", NULL},
        {"listen=[::]:65535", NULL},
        {"listen=8080", "\"8080\" has a host that is no IPv4 address; write HOST:PORT such as"},
        {"listen=localhost", "has no port; write HOST:PORT"},
        {"listen=:8080", "has no host"},
        {"listen=a:65536", "port"},
        {"data=a b", NULL},
        {"data=", "--data is empty; write a path"},
        {"data=a\tb", "\"a?b\" has characters that cannot be printed"},
        {"data=\xFF", "cannot be printed"},
        {"api-key=~!0123~!", NULL},
        {"api-key=a b", "\"(hidden)\" has spaces"},
        {"api-key=caf\xC3\xA9", "\"(hidden)\" has spaces or characters that do not fit"},
        {"public-url=http://a/b", NULL},
        {"public-url=a", "\"a\" does not begin with http:// or https://; write a URL such as"},
        {"public-url=https://a?b", "has a query"},
        {"trusted-proxies=10.0.0.1, fd00::/8", NULL},
        {"trusted-proxies=10.0.0.1,", "\"\" is an empty item; write addresses"},
        {"trusted-proxies=10.0.0.1,x", "\"x\" is no address"},
        {"trusted-proxies=10.0.0.1/8", "not its first one"},
        {"log=error", NULL},
        {"log=warn,json", NULL},
        {"log=warn,text", NULL},
        {"log=loud", "\"loud\" is no log level; write debug, info, warn or error"},
        {"log=info,xml", "is no log level"},
        {"secret-file=x", NULL},
        {"script=a b.jsonl", NULL},
        {"model-provider=demo", NULL},
        {"model-provider=scripted\nscript=x", NULL},
        {"model-provider=openai\nmodel-name=gpt-5.1", NULL},
        {"model-provider=anthropic\nmodel-name=claude-sonnet-4-5", NULL},
        {"model-provider=openai",
         "--model-provider: \"model.name\" is missing; write what the service"},
        {"model-provider=anthropic", "\"model.name\" is missing"},
        {"model-provider=Demo",
         "\"Demo\" is no provider; write demo, scripted, openai or anthropic"},
        {"model-provider=demoo", "\"demoo\" is no provider"},
        {"model-name=a b/c:d", NULL},
        {"model-base-url=http://127.0.0.1:1/v1/", NULL},
        {"model-base-url=127.0.0.1:1",
         "\"127.0.0.1:1\" does not begin with http:// or https://; write a URL such as"},
        {"model-base-url=http://a?b=TOPSECRET", "\"(hidden)\" has a query"},
        {"model-base-url=http://a#b", "has a fragment"},
        {"model-base-url=http://a:0", "has port 0"},
        {"model-base-url=http://u:TOPSECRET@a", "\"(hidden)\" has a user name in it"},
        {"model-api-key=a b", "\"(hidden)\" has spaces"},
        {"model-window=0", NULL},
        {"model-window=1000000000", NULL},
        {"model-window=1000000001", "is not from 0 to 1000000000"},
        {"model-window=2\nmodel-max-output=1", NULL},
        {"model-window=2\nmodel-max-output=2",
         "--model-window: \"model.window\" leaves no room beside max_output"},
        {"model-max-output=1000000000", NULL},
        {"model-max-output=1000000001", "is not from"},
        {"model-images=false", NULL},
        {"model-images=no", "\"no\" is neither; write true or false"},
        {"model-retry-ms=0", NULL},
        {"model-retry-ms=60000", NULL},
        {"model-retry-ms=60001", "is not from 0 to 60000"},
        {"model-connect-s=1", NULL},
        {"model-connect-s=0", "is not from 1 to 3600"},
        {"model-first-byte-s=3600", NULL},
        {"model-first-byte-s=3601", "is not from 1 to 3600"},
        {"model-idle-s=0", "is not from 1 to 3600"},
        {"model-price-input=0\nmodel-price-output=1000000", NULL},
        {"model-price-input=0\nmodel-price-output=1000000.000000", NULL},
        {"model-price-input=0\nmodel-price-output=1000000.000001", "is not from 0 to 1000000"},
        {"model-price-input=1000001", "is not from 0 to 1000000; write a number such as 0.5"},
        {"model-price-input=99999999999999999999", "is not from 0 to 1000000"},
        {"model-price-input=0.000001\nmodel-price-output=00.5", NULL},
        {"model-price-input=0.0000001", "has more than 6 decimals"},
        {"model-price-input=.5", "is not a number"},
        {"model-price-input=5.", "is not a number"},
        {"model-price-input=1.2.3", "is not a number"},
        {"model-price-input=-1", "is not a number"},
        {"model-price-input=1e3", "is not a number"},
        {"model-price-input=1,5", "is not a number"},
        {"model-price-input=1",
         "--model-price-input: \"model.price.input\" is half a price; give both"},
        {"model-price-output=1", "--model-price-output: \"model.price.output\" is half a price"},
        {"model-price-currency=CNY", NULL},
        {"model-price-currency=usd", "\"usd\" is no currency; write 3 capital letters"},
        {"model-price-currency=US", "is no currency"},
        {"model-price-currency=USDT", "is no currency"},
        {"agents-assistant-budget-cost=0.5", NULL},
        {"agents-assistant-budget-cost=1000000", NULL},
        {"agents-assistant-budget-cost=1000000.5", "is not from 0 to 1000000"},
        {"agents-assistant-budget-cost=x", "is not a number"},
        {"auth-cors=https://a,http://b:1", NULL},
        {"auth-cors=*", "\"*\" does not begin with http://"},
        {"auth-cors=https://a/", "goes on behind the host; write origins such as"},
        {"auth-cors=https://A", "upper-case"},
        {"auth-hosts=a,b:1,[::1]:2", NULL},
        {"auth-hosts=A", "upper-case"},
        {"auth-hosts=http://a", "write lower-case host names"},
        {"limits-body=1024", NULL},
        {"limits-body=1023", "--limits-body: limits.body: \"1023\" is not from 1024 to 16777216"},
        {"limits-body=16MiB", NULL},
        {"limits-body=16777217", "is not from"},
        {"limits-body=16MB", "\"16MB\" is not a number; write a size such as 512, 64KiB or 16MiB"},
        {"limits-body=99999999999999999999", "is not from"},
        {"limits-body=-1", "is not a number"},
        {"limits-upload=16GiB", NULL},
        {"limits-upload=17GiB", "is not from"},
        {"limits-upload=1KiB", NULL},
        {"limits-connections=1", NULL},
        {"limits-connections=0", "is not from 1 to 1000000; write a whole number"},
        {"limits-connections=1000000", NULL},
        {"limits-connections=1000001", "is not from"},
        {"limits-connections=1.5", "is not a number"},
        {"limits-rate=0", NULL},
        {"limits-rate=1000000", NULL},
        {"limits-rate=1000001", "is not from 0 to 1000000"},
        {"storage-grace=0", NULL},
        {"storage-grace=31536001", "is not from 0 to 31536000"},
        {"storage-blobs=elsewhere", NULL},
        {"storage-blobs=file:/var/blobs", NULL},
        {"storage-blobs=file:", "names no folder"},
        {"storage-blobs=s3://bucket/objects", "is no storage that this version knows"},
        {"script-log=x\nmodel-provider=scripted\nscript=y", NULL},
        {"agents-assistant-plan=auto", NULL},
        {"agents-assistant-plan=always", NULL},
        {"agents-assistant-plan=Auto", "\"Auto\" is none of them; write auto, always or never"},
        {"agents-assistant-on-disconnect=continue", NULL},
        {"agents-assistant-on-disconnect=cancel", NULL},
        {"agents-assistant-on-disconnect=stop",
         "\"stop\" is none of them; write continue, pause or cancel"},
        {"agents-assistant-ask-user=false", NULL},
        {"agents-assistant-ask-user=no", "\"no\" is neither; write true or false"},
        {"agents-assistant-max-rounds=1", NULL},
        {"agents-assistant-max-rounds=1000", NULL},
        {"agents-assistant-max-rounds=0", "is not from 1 to 1000; write a whole number"},
        {"agents-assistant-max-rounds=1001", "is not from 1 to 1000"},
        {"agents-assistant-locale=en", NULL},
        {"agents-assistant-locale=zh-CN", NULL},
        {"agents-assistant-locale=zh", "\"zh\" is a language it does not speak; write zh-CN or en"},
        {"agents-assistant-budget-tokens=1000000000000", NULL},
        {"agents-assistant-budget-tokens=1000000000001", "is not from 0 to 1000000000000"},
        {"agents-assistant-budget-tokens=1.5", "is not a number"},
        {"agents-assistant-budget-minutes=525600", NULL},
        {"agents-assistant-budget-minutes=525601", "is not from 0 to 525600"},
        {"agents-assistant-prompt=\xFF", "is not valid UTF-8; write any text"},
        {"agents-assistant-starters=a,,b", "\"\" is an empty item; write texts"},
        {"agents-assistant-tools=a,b_c,d.e-*,*", NULL},
        {"agents-assistant-tools=a b",
         "\"a b\" has characters other than letters, digits, _ . and -"},
        {"agents-assistant-tools=*a",
         "\"*a\" has a * that is not at its end; write names of tools"},
        {"agents-assistant-tools=a**", "has a * that is not at its end"},
        {"agents-assistant-policy=a=allow,b=confirm,c=deny", NULL},
        {"agents-assistant-policy=a", "\"a\" has no value; write tools or patterns"},
        {"agents-assistant-policy=a=", "\"a\" has no value"},
        {"agents-assistant-policy==deny", "\"deny\" has no name in front of it"},
        {"agents-assistant-policy=a=deny,a=allow", "\"a\" is given twice"},
        {"agents-assistant-policy=a=maybe", "\"maybe\" is no verdict on a; write tools or"},
        {"agents-assistant-policy=a*b=deny", "\"a*b\" has a * that is not at its end"},
        {"agents-assistant-policy=a\tb=deny", "cannot be printed"},
        {"agents-assistant-approvers=a=user,b=approver,c=operator", NULL},
        {"agents-assistant-approvers=a=boss",
         "--agents-assistant-approvers: agents.assistant.approvers: \"boss\" is no role to approve "
         "a; "
         "write tools or patterns such as calendar_*, each with user, approver or operator"},
        {"agents-assistant-approvers=a b=user", "\"a b\" has characters other than"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        enum err e = config_kit_load(f, NULL, rows[i].flag);
        if (!rows[i].refused) {
            config_kit_ok(f, e);
            continue;
        }
        if (e != ERR_CONFIG) fail_msg("taken: %s", rows[i].flag);
        assert_part(f->fault.text, rows[i].refused);
    }
}

static void long_values(void **state)
{
    struct config_kit *f = *state;
    static const struct {
        const char *flag;
        char fill;
        size_t allowed;
    } rows[] = {
        {"data=", 'x', CONFIG_TEXT_BYTES_MAX},
        {"api-key=", 'x', CONFIG_SECRET_BYTES_MAX},
        {"agents-assistant-prompt=", 'x', CONFIG_PROSE_BYTES_MAX},
        {"agents-assistant-starters=", 'x', CONFIG_PROSE_BYTES_MAX},
        {"agents-assistant-tools=", 'x', TOOL_NAME_BYTES_MAX},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[CONFIG_PROSE_BYTES_MAX + 64];
        size_t start = strlen(rows[i].flag);
        snprintf(text, sizeof text, "%s", rows[i].flag);
        memset(text + start, rows[i].fill, rows[i].allowed + 1);
        text[start + rows[i].allowed] = '\0';
        config_kit_ok(f, config_kit_load(f, NULL, text));
        text[start + rows[i].allowed] = rows[i].fill;
        text[start + rows[i].allowed + 1] = '\0';
        assert_int_equal(config_kit_load(f, NULL, text), ERR_CONFIG);
    }
}

static void long_lists(void **state)
{
    struct config_kit *f = *state;
    AUTO(buf_done) struct buf text;
    buf_init(&text, 64 * 1024);
    buf_append(&text, STR("auth-hosts=a"));
    for (int i = 1; i < CONFIG_LIST_MAX; i++) buf_append(&text, STR(",a"));
    buf_char(&text, '\0');
    config_kit_ok(f, config_kit_load(f, NULL, text.p));
    assert_int_equal(f->config.auth_hosts.count, CONFIG_LIST_MAX);
    text.len--;
    buf_append(&text, STR(",a\0"));
    assert_int_equal(config_kit_load(f, NULL, text.p), ERR_CONFIG);
    assert_part(f->fault.text, "more than 100 items");

    buf_clear(&text);
    buf_append(&text, STR("agents-assistant-policy=a=deny"));
    for (int i = 1; i < CONFIG_LIST_MAX; i++) buf_printf(&text, ",a%d=deny", i);
    buf_char(&text, '\0');
    config_kit_ok(f, config_kit_load(f, NULL, text.p));
    assert_int_equal(f->config.agents.items[0].policy.count, CONFIG_LIST_MAX);
    text.len--;
    buf_append(&text, STR(",b=deny\0"));
    assert_int_equal(config_kit_load(f, NULL, text.p), ERR_CONFIG);
    assert_part(f->fault.text, "more than 100 items");
}

/* The place of a wrong value is said, and a wrong value is refused though a later one wins. */
static void places(void **state)
{
    struct config_kit *f = *state;
    assert_int_equal(config_kit_load(f, "FERMATA_LIMITS_RATE=x", NULL), ERR_CONFIG);
    assert_string_equal(f->fault.field, "limits.rate");
    assert_part(f->fault.text, "FERMATA_LIMITS_RATE: limits.rate: \"x\" is not a number");
    assert_int_equal(config_kit_load(f, "FERMATA_LIMITS_RATE=x", "limits-rate=1"), ERR_CONFIG);
    config_kit_put("fermata.yaml", STR("limits:\n  body: 1\n  rate: x\n"));
    assert_int_equal(config_kit_load(f, NULL, "limits-body=1MiB"), ERR_CONFIG);
    assert_part(f->fault.text, "fermata.yaml:2: limits.body: \"1\" is not from");
}

/* A script belongs to the scripted model, wherever each of the two is set. */
static void scripts(void **state)
{
    struct config_kit *f = *state;
    config_kit_ok(f, config_kit_load(f, "FERMATA_MODEL_PROVIDER=scripted\nFERMATA_SCRIPT=a.jsonl",
                                     NULL));
    assert_int_equal(f->config.model.provider, PROVIDER_SCRIPTED);
    assert_str(f->config.script, STR("a.jsonl"));
    assert_int_equal(f->config.warnings.count, 0);

    assert_int_equal(config_kit_load(f, "FERMATA_MODEL_PROVIDER=scripted", NULL), ERR_CONFIG);
    assert_string_equal(f->fault.field, "script");
    assert_string_equal(f->fault.text,
                        "FERMATA_MODEL_PROVIDER: model.provider is scripted and there is no "
                        "script; name its file with script or FERMATA_SCRIPT");
    config_kit_put("fermata.yaml", STR("model:\n  provider: scripted\n"));
    assert_int_equal(config_kit_load(f, NULL, NULL), ERR_CONFIG);
    assert_part(f->fault.text, "fermata.yaml:2: model.provider is scripted");
    config_kit_ok(f, config_kit_load(f, NULL, "script=a.jsonl"));

    config_kit_ok(f, config_kit_load(f, "FERMATA_MODEL_PROVIDER=demo", "script=a.jsonl"));
    assert_int_equal(f->config.warnings.count, 1);
    assert_part(f->config.warnings.items[0].p, "script is set and not used");
}

static void unknown_variables(void **state)
{
    struct config_kit *f = *state;
    config_kit_ok(
        f, config_kit_load(f,
                           "FERMATA_LISTN=secret-looking\nHOME=/root\nFERMATA_EMPTY=\nFERMATA\n"
                           "FERMATA_DATA=d\nFERMATA_LIMITS_BDY=1\nFERMATA_ZZZZZZZZZZZZ=1",
                           NULL));
    const struct strs *w = &f->config.warnings;
    assert_int_equal(w->count, 3);
    assert_str(w->items[0],
               STR("the environment variable FERMATA_LISTN is unknown and ignored; did "
                   "you mean \"FERMATA_LISTEN\"?"));
    assert_part(w->items[1].p, "\"FERMATA_LIMITS_BODY\"");
    assert_part(w->items[2].p, "`fermata help`");

    AUTO(buf_done) struct buf many;
    buf_init(&many, 4096);
    for (int i = 0; i < CONFIG_WARNINGS_MAX + 5; i++) buf_printf(&many, "\nFERMATA_X%d=1", i);
    buf_char(&many, '\0');
    config_kit_ok(f, config_kit_load(f, many.p, NULL));
    assert_int_equal(f->config.warnings.count, CONFIG_WARNINGS_MAX);
}

static void key_files(void **state)
{
    struct config_kit *f = *state;
    static const struct {
        str bytes;
        const char *key, *refused;
    } rows[] = {
        {STR("0123456789abcdef"), "0123456789abcdef", NULL},
        {STR("0123456789abcdef\n"), "0123456789abcdef", NULL},
        {STR("0123456789abcdef\r\n"), "0123456789abcdef", NULL},
        {STR("0123456789abcdef\n\n"), NULL, "the key in key has spaces"},
        {STR("abc def"), NULL, "has spaces"},
        {STR("abc\0def"), NULL, "has spaces"},
        {STR("\n"), NULL, "is empty"},
        {STR(""), NULL, "is empty"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        config_kit_put("key", rows[i].bytes);
        enum err e = config_kit_load(f, "FERMATA_API_KEY_FILE=key", NULL);
        if (rows[i].refused) {
            assert_int_equal(e, ERR_CONFIG);
            assert_part(f->fault.text, rows[i].refused);
            continue;
        }
        config_kit_ok(f, e);
        assert_str(f->config.api_key, str_c(rows[i].key));
        assert_int_equal(f->config.warnings.count, 0);
    }
    char large[CONFIG_SECRET_FILE_BYTES_MAX + 1];
    memset(large, 'x', sizeof large);
    config_kit_put("key", (str){large, sizeof large});
    assert_int_equal(config_kit_load(f, "FERMATA_API_KEY_FILE=key", NULL), ERR_CONFIG);
    assert_part(f->fault.text, "larger than 1024 bytes");
    config_kit_put("key", (str){large, CONFIG_SECRET_BYTES_MAX + 1});
    assert_int_equal(config_kit_load(f, "FERMATA_API_KEY_FILE=key", NULL), ERR_CONFIG);
    assert_part(f->fault.text, "longer than 256 bytes");
    assert_int_equal(config_kit_load(f, "FERMATA_API_KEY_FILE=none", NULL), ERR_CONFIG);
    assert_part(f->fault.text, "none: cannot be read");

    config_kit_put("fermata.yaml", STR("api_key: 0123456789abcdef\n"));
    assert_int_equal(config_kit_load(f, "FERMATA_API_KEY_FILE=key", NULL), ERR_CONFIG);
    assert_part(f->fault.text, "api_key (fermata.yaml:1) and api_key_file (FERMATA_API_KEY_FILE) "
                               "are both set; remove one");
}

static void short_key(void **state)
{
    struct config_kit *f = *state;
    config_kit_ok(f, config_kit_load(f, "FERMATA_API_KEY=0123456789abcde", NULL));
    assert_int_equal(f->config.warnings.count, 1);
    assert_part(f->config.warnings.items[0].p, "shorter than 16 characters");
    assert_null(strstr(f->config.warnings.items[0].p, "0123456789abcde"));
    config_kit_ok(f, config_kit_load(f, "FERMATA_API_KEY=01234567", NULL));
    assert_int_equal(f->config.warnings.count, 1);
    assert_int_equal(config_kit_load(f, "FERMATA_API_KEY=Zx3!qRt", NULL), ERR_CONFIG);
    assert_part(f->fault.text, "fewer than 8 characters");
    assert_null(strstr(f->fault.text, "Zx3"));
    config_kit_ok(f, config_kit_load(f, "FERMATA_API_KEY=0123456789abcdef", NULL));
    assert_int_equal(f->config.warnings.count, 0);
}

/* No way of giving or mistyping a secret makes us repeat it. */
static void secrets_stay_hidden(void **state)
{
    struct config_kit *f = *state;
    config_kit_put("key", STR("TOPSECRET-0123456789"));
    static const char *const taken[] = {"FERMATA_API_KEY=TOPSECRET-0123456789",
                                        "FERMATA_API_KEY_FILE=key"};
    for (size_t i = 0; i < COUNT(taken); i++) {
        config_kit_ok(f, config_kit_load(f, taken[i], NULL));
        assert_str(f->config.api_key, STR("TOPSECRET-0123456789"));
        AUTO(buf_done) struct buf out;
        config_kit_print(f, &out);
        assert_null(strstr(out.p, "TOPSECRET"));
    }
    AUTO(buf_done) struct buf out;
    config_kit_ok(f, config_kit_load(f, taken[0], NULL));
    config_kit_print(f, &out);
    assert_part(out.p, "# api_key: (hidden)  # FERMATA_API_KEY\n");

    config_kit_put("key", STR("TOPSECRET 0123456789"));
    static const char *const refused[] = {
        "FERMATA_API_KEY=TOPSECRET x", "FERMATA_API_KEY=TOPSECRET\x01", "FERMATA_API_KEY_FILE=key"};
    for (size_t i = 0; i < COUNT(refused); i++) {
        assert_int_equal(config_kit_load(f, refused[i], NULL), ERR_CONFIG);
        assert_null(strstr(f->fault.text, "TOPSECRET"));
    }
}

static void print_reads_back(void **state)
{
    struct config_kit *f = *state;
    static const char *const rows[] = {
        NULL,
        "data=数据/a \"b\" \\c\npublic-url=https://a/b\nauth-hosts=[::1]:1,b",
        "data=null",
        "data=~",
        "data=- x",
        "data=x:",
        "data=x: y # z",
        "data=-",
        "data='x'\nlog=info,json",
        "data=...\nlisten=[::]:1\ntrusted-proxies=10.0.0.0/8,::/0",
        "data=---",
        "limits-body=2 MiB",
        "data= x ",
        "data=&x\nsecret-file=*x",
        "data=!x\nsecret-file=%x",
        "data=@x\nsecret-file=`x`",
        "trusted-proxies=fd00::/8,fe80::\nauth-cors=https://a:1,https://b",
        "agents-assistant-policy=*=deny,a.b-*=allow,null=confirm\n"
        "agents-assistant-approvers=calendar_*=operator",
        "agents-assistant-starters=a: b  # c,true,\"q\",你好，世界,- x,http://a:1/",
        "agents-assistant-tools=calendar,a.*,-x",
        "agents-assistant-prompt=null\nagents-assistant-locale=en",
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        config_kit_ok(f, config_kit_load(f, NULL, rows[i]));
        str data = f->config.data;
        config_kit_reads_back(f);
        assert_str(f->config.data, data);
    }
}

static void flags(void **state)
{
    (void)state;
    assert_true(config_flag(STR("limits-body")) >= 0);
    assert_true(config_flag(STR("api-key-file")) >= 0);
    assert_int_equal(config_flag(STR("limits.body")), -1);
    assert_int_equal(config_flag(STR("api_key_file")), -1);
    assert_int_equal(config_flag(STR("")), -1);
    struct nearest n;
    nearest_init(&n, STR("limit-body"));
    config_offer_flags(&n);
    assert_string_equal(nearest_name(&n), "limits-body");
}

static void help(void **state)
{
    (void)state;
    static const char *const parts[LANG_COUNT] = {"address to serve on", "监听地址"};
    for (enum lang lang = 0; lang < LANG_COUNT; lang++) {
        AUTO(buf_done) struct buf out;
        buf_init(&out, 64 * 1024);
        config_help(&out, lang);
        buf_char(&out, '\0');
        assert_part(out.p, parts[lang]);
        assert_part(out.p, "--limits-body SIZE");
        assert_part(out.p, "[127.0.0.1:8080]");
        assert_part(out.p, " --model-*: provider, base_url, name, ");
        assert_part(out.p, " --agents-assistant-*: model, prompt, ");
        assert_part(out.p, "  mcp.NAME.command  ");
        assert_part(out.p, "  tools[].http.name  ");
    }
}

/* scripts/gen-docs mends it. */
static void page_is_current(void **state)
{
    struct config_kit *f = *state;
    AUTO(buf_done) struct buf out;
    buf_init(&out, 256 * 1024);
    config_markdown(&out);
    assert_false(out.full);
    str page;
    enum err e =
        file_read(&f->arena, SOURCE_ROOT "/docs/CONFIGURATION.md", 256 * 1024, &page, &f->fault);
    config_kit_ok(f, e);
    if (!str_eq(page, buf_str(&out))) fail_msg("docs/CONFIGURATION.md: run scripts/gen-docs");
}

int test_config(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, config_kit_setup, config_kit_teardown)
    const struct CMUnitTest tests[] = {
        CASE(defaults),
        CASE(every_option_in_the_file),
        CASE(the_agent_in_the_file),
        CASE(any_text),
        CASE(maps),
        CASE(precedence),
        CASE(lists),
        CASE(storage),
        CASE(file_choice),
        CASE(file_sizes),
        CASE(refused_files),
        CASE(empty_files),
        CASE(values),
        CASE(long_values),
        CASE(long_lists),
        CASE(places),
        CASE(key_files),
        CASE(unknown_variables),
        CASE(scripts),
        CASE(short_key),
        CASE(secrets_stay_hidden),
        CASE(flags),
        CASE(print_reads_back),
        CASE(help),
        CASE(page_is_current),
    };
#undef CASE
    return cmocka_run_group_tests_name("app/config", tests, NULL, NULL);
}
