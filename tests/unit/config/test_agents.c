/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"

#include <string.h>

#include "base/limits.h"
#include "config/kit.h"
#include "config/option.h"

#define SECRET_TEXT "TOPSECRET-0123456789"

static void load_ok(struct config_kit *f, const char *yaml)
{
    config_kit_put("fermata.yaml", str_c(yaml));
    config_kit_ok(f, config_kit_load(f, NULL, NULL));
}

static const struct config_agent *agent_named(const struct config_kit *f, const char *name)
{
    for (size_t i = 0; i < f->config.agents.count; i++)
        if (str_eq(f->config.agents.items[i].name, str_c(name))) return &f->config.agents.items[i];
    fail_msg("no agent %s", name);
    return NULL;
}

/* The file of the design, with a schema; its channels are not read yet. */
static void the_whole_file(void **state)
{
    struct config_kit *f = *state;
    config_kit_put("key", STR(SECRET_TEXT "\n"));
    config_kit_put("hook-secret.txt", STR(SECRET_TEXT "\n"));
    config_kit_put("token.txt", STR("Bearer abc\n"));
    load_ok(f,
            "models:\n"
            "  main: {provider: openai, base_url: \"http://127.0.0.1:11434/v1\", name: qwen3, "
            "api_key_file: key, window: 32768,\n"
            "         price: {input: 0.5, output: 1.5, currency: USD}}\n"
            "agents:\n"
            "  assistant: {model: main, prompt: \"...\", tools: [calendar, files], plan: auto, "
            "ask_user: true, max_rounds: 30, busy: enqueue,\n"
            "              on_disconnect: continue, locale: zh-CN, starters: [\"...\"], budget: "
            "{tokens: 200000, cost: 1.0, minutes: 30},\n"
            "              policy: {calendar_write: confirm, \"files.*\": deny}, approvers: "
            "{calendar_delete: approver}}\n"
            "mcp:\n"
            "  files: {command: [\"npx\", \"-y\", \"some-server\", \"./docs\"], env: {}, trusted: "
            "false, read: [read_file], idempotent: []}\n"
            "  web: {url: \"https://example.org/mcp\", headers: {Authorization_file: token.txt}}\n"
            "tools:\n"
            "  - http: {name: place_order, url: \"http://127.0.0.1:9000/order\", schema: {type: "
            "object}, effect: write, idempotent: true, headers: {}}\n"
            "webhooks: [{url: \"https://example.org/hook\", secret_file: hook-secret.txt, events: "
            "[interaction.opened, interaction.resolved]}]\n"
            "auth: {cors: [], hosts: []}\n"
            "limits: {body: 16MiB, upload: 100MiB, connections: 10000, rate: 0}\n");
    const struct config *c = &f->config;
    assert_int_equal(c->warnings.count, 0);
    assert_int_equal(c->models.count, 1);
    const struct config_model *m = &c->models.items[0];
    assert_int_equal(m->line, 2);
    assert_str(m->name, STR("main"));
    assert_int_equal(m->provider, PROVIDER_OPENAI);
    assert_str(m->base_url, STR("http://127.0.0.1:11434/v1"));
    assert_str(m->model, STR("qwen3"));
    assert_str(m->api_key, STR(SECRET_TEXT));
    assert_str(m->api_key_file, STR("key"));
    assert_int_equal(m->window, 32768);
    assert_int_equal(m->max_output, 0);
    assert_true(m->images);
    assert_int_equal(m->price.input, 500 * 1000);
    assert_int_equal(m->price.output, 1500 * 1000);
    assert_string_equal(m->price.currency, "USD");

    assert_int_equal(c->agents.count, 1);
    const struct config_agent *a = &c->agents.items[0];
    assert_int_equal(a->line, 5);
    assert_str(a->name, STR("assistant"));
    assert_str(a->model, STR("main"));
    assert_true(a->cost_max == 1000ULL * 1000 * 1000 * 1000);
    assert_int_equal(a->tokens_max, 200000);
    assert_int_equal(a->minutes_max, 30);
    assert_ptr_equal(config_model_of(c, a), m);

    assert_int_equal(c->mcps.count, 2);
    assert_str(c->mcps.items[0].name, STR("files"));
    assert_int_equal(c->mcps.items[0].command.count, 4);
    assert_str(c->mcps.items[1].headers.items[0].value, STR("Bearer abc"));
    assert_int_equal(c->http_tools.count, 1);
    assert_int_equal(c->webhooks.count, 1);
    config_kit_reads_back(f);
    assert_str(f->config.models.items[0].api_key, STR(SECRET_TEXT));
}

static void defaults(void **state)
{
    struct config_kit *f = *state;
    static const char *const files[] = {"", "agents:\nmodels:\nmcp:\n",
                                        "agents: {}\nmodels: {}\nmcp: {}\n",
                                        "agents: {assistant: }\n"};
    for (size_t i = 0; i < COUNT(files); i++) {
        load_ok(f, files[i]);
        const struct config *c = &f->config;
        assert_int_equal(c->models.count, 0);
        assert_int_equal(c->mcps.count, 0);
        assert_int_equal(c->agents.count, 1);
        assert_str(c->agents.items[0].name, STR("assistant"));
        assert_str(c->agents.items[0].model, STR(""));
        assert_true(c->agents.items[0].cost_max == 0);
        const struct config_model *m = config_model_of(c, &c->agents.items[0]);
        assert_ptr_equal(m, &c->model);
        assert_int_equal(m->provider, PROVIDER_DEMO);
        assert_str(m->name, STR(""));
        assert_str(m->base_url, STR(""));
        assert_str(m->api_key, STR(""));
        assert_true(m->images);
        assert_int_equal(m->retry_ms, RUN_RETRY_MS);
        assert_int_equal(m->connect_s * 1000, CLIENT_CONNECT_MS_MAX);
        assert_int_equal(m->first_byte_s * 1000, CLIENT_FIRST_BYTE_MS_MAX);
        assert_int_equal(m->idle_s * 1000, CLIENT_IDLE_MS_MAX);
        assert_string_equal(m->price.currency, "");
        config_kit_reads_back(f);
    }
    struct config made;
    config_defaults(&f->arena, &made);
    assert_int_equal(made.agents.count, 1);
    assert_int_equal(made.agents.items[0].max_rounds, AGENT_ROUNDS_MAX);
}

/* Every field of an entry, and the same as options. */
static void every_field_of_a_model(void **state)
{
    struct config_kit *f = *state;
    config_kit_put("fermata.yaml",
                   STR("models:\n"
                       "  a:\n"
                       "    provider: anthropic\n"
                       "    base_url: https://example.org/x//\n"
                       "    name: m\n"
                       "    api_key: k\n"
                       "    window: 100\n"
                       "    max_output: 50\n"
                       "    images: false\n"
                       "    retry_ms: 0\n"
                       "    connect_s: 1\n"
                       "    first_byte_s: 2\n"
                       "    idle_s: 3\n"
                       "    price: {input: 0.000001, output: 1000000, currency: CNY}\n"
                       "agents: {assistant: {model: a}, other: }\n"));
    static const char *const env = "FERMATA_MODEL_PROVIDER=anthropic\n"
                                   "FERMATA_MODEL_BASE_URL=https://example.org/x/\n"
                                   "FERMATA_MODEL_NAME=m\n"
                                   "FERMATA_MODEL_API_KEY=k\n"
                                   "FERMATA_MODEL_WINDOW=100\n"
                                   "FERMATA_MODEL_MAX_OUTPUT=50\n"
                                   "FERMATA_MODEL_IMAGES=false\n"
                                   "FERMATA_MODEL_RETRY_MS=0\n"
                                   "FERMATA_MODEL_CONNECT_S=1\n"
                                   "FERMATA_MODEL_FIRST_BYTE_S=2\n"
                                   "FERMATA_MODEL_IDLE_S=3\n"
                                   "FERMATA_MODEL_PRICE_INPUT=0.000001\n"
                                   "FERMATA_MODEL_PRICE_OUTPUT=1000000.0\n"
                                   "FERMATA_MODEL_PRICE_CURRENCY=CNY";
    config_kit_ok(f, config_kit_load(f, env, NULL));
    assert_int_equal(f->config.warnings.count, 0);
    const struct config_model *both[] = {&f->config.model, &f->config.models.items[0]};
    for (size_t i = 0; i < COUNT(both); i++) {
        const struct config_model *m = both[i];
        assert_int_equal(m->provider, PROVIDER_ANTHROPIC);
        assert_str(m->base_url, STR("https://example.org/x"));
        assert_int_equal(m->base_url.p[m->base_url.len], 0);
        assert_str(m->model, STR("m"));
        assert_str(m->api_key, STR("k"));
        assert_int_equal(m->window, 100);
        assert_int_equal(m->max_output, 50);
        assert_false(m->images);
        assert_int_equal(m->retry_ms, 0);
        assert_int_equal(m->connect_s, 1);
        assert_int_equal(m->first_byte_s, 2);
        assert_int_equal(m->idle_s, 3);
        assert_int_equal(m->price.input, 1);
        assert_true(m->price.output == 1000ULL * 1000 * 1000 * 1000);
        assert_string_equal(m->price.currency, "CNY");
    }
    assert_str(agent_named(f, "assistant")->model, STR("a"));
    assert_str(agent_named(f, "other")->model, STR("")); /* the options */
}

static void addresses(void **state)
{
    struct config_kit *f = *state;
    load_ok(f, "models:\n"
               "  a: {provider: openai, name: x}\n"
               "  b: {provider: anthropic, name: x, base_url: ''}\n"
               "  c: {provider: demo}\n"
               "agents: {assistant: {model: c}}\n");
    assert_str(f->config.models.items[0].base_url, STR("https://api.openai.com/v1"));
    assert_str(f->config.models.items[1].base_url, STR("https://api.anthropic.com"));
    assert_str(f->config.models.items[2].base_url, STR(""));
    assert_int_equal(f->config.models.items[1].retry_ms, RUN_RETRY_MS);
    config_kit_reads_back(f);
}

/* Every field of an agent that stands in the file alone. */
static void other_agents(void **state)
{
    struct config_kit *f = *state;
    config_kit_put("fermata.yaml", STR("models: {m: {provider: demo}, n: {provider: demo}}\n"
                                       "agents:\n"
                                       "  support:\n"
                                       "    model: n\n"
                                       "    prompt: \"a\\nb\"\n"
                                       "    tools: []\n"
                                       "    plan: never\n"
                                       "    ask_user: false\n"
                                       "    max_rounds: 1000\n"
                                       "    busy: reject\n"
                                       "    on_disconnect: pause\n"
                                       "    locale: en\n"
                                       "    starters: [a, b]\n"
                                       "    budget: {tokens: 7, cost: 0.25, minutes: 8}\n"
                                       "    policy: {a: deny}\n"
                                       "    approvers: {b: operator}\n"
                                       "  assistant: {model: m, busy: reject}\n"
                                       "  plain: {model: m}\n"));
    config_kit_ok(f, config_kit_load(f, "FERMATA_AGENTS_ASSISTANT_BUSY=interrupt",
                                     "agents-assistant-model=n"));
    assert_int_equal(f->config.agents.count, 3);
    assert_str(f->config.agents.items[0].name, STR("assistant"));
    assert_str(f->config.agents.items[1].name, STR("support"));
    assert_str(f->config.agents.items[2].name, STR("plain"));
    const struct config_agent *a = agent_named(f, "support");
    assert_int_equal(a->line, 3);
    assert_str(a->model, STR("n"));
    assert_str(a->prompt, STR("a\nb"));
    assert_int_equal(a->tools.count, 0);
    assert_int_equal(a->plan, PLAN_NEVER);
    assert_false(a->ask_user);
    assert_int_equal(a->max_rounds, 1000);
    assert_int_equal(a->busy, BUSY_REJECT);
    assert_int_equal(a->on_disconnect, DISCONNECT_PAUSE);
    assert_str(a->locale, STR("en"));
    assert_int_equal(a->starters.count, 2);
    assert_int_equal(a->tokens_max, 7);
    assert_int_equal(a->minutes_max, 8);
    assert_true(a->cost_max == 250ULL * 1000 * 1000 * 1000);
    assert_int_equal(a->policy.count, 1);
    assert_str(a->policy.approvers[0].role, STR("operator"));
    assert_int_equal(f->config.warnings.count, 1);
    assert_part(f->config.warnings.items[0].p,
                "agents.support.budget.cost is set, and the agent's model has no price");

    a = agent_named(f, "plain"); /* what others say is not its business */
    assert_int_equal(a->busy, BUSY_ENQUEUE);
    assert_str(a->tools.items[0], STR("*"));
    assert_int_equal(a->max_rounds, AGENT_ROUNDS_MAX);
    assert_int_equal(a->policy.count, 0);
    a = agent_named(f, "assistant");
    assert_int_equal(a->busy, BUSY_INTERRUPT);
    assert_str(a->model, STR("n"));
    config_kit_reads_back(f);
    assert_str(agent_named(f, "support")->prompt, STR("a\nb"));
    assert_int_equal(f->config.agents.count, 3);
}

/* Which agents there are, in order. */
static void who_is_there(void **state)
{
    struct config_kit *f = *state;
    static const struct {
        const char *yaml, *env, *flags, *names;
    } rows[] = {
        {"", NULL, NULL, "assistant "},
        {"", "FERMATA_AGENTS_ASSISTANT_BUSY=reject", NULL, "assistant "},
        {"agents: {b: , a: }\n", NULL, NULL, "b a "},
        {"agents: {b: , a: {}}\n", "FERMATA_AGENTS_ASSISTANT_BUSY=reject", NULL, "assistant b a "},
        {"agents: {b: , a: {}}\n", "FERMATA_AGENTS_ASSISTANT_BUSY=", NULL, "b a "},
        {"agents: {b: , a: {}}\n", NULL, "agents-assistant-plan=never", "assistant b a "},
        {"agents: {b: , a: , assistant: }\n", NULL, NULL, "assistant b a "},
        {"agents: {b: , assistant: {plan: never}}\n", NULL, NULL, "assistant b "},
        {"agents: {null: , '-': , '1': , _x: , true: }\n", NULL, NULL, "null - 1 _x true "},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        config_kit_put("fermata.yaml", str_c(rows[i].yaml));
        config_kit_ok(f, config_kit_load(f, rows[i].env, rows[i].flags));
        for (int again = 0; again < 2; again++) {
            AUTO(buf_done) struct buf names;
            buf_init(&names, 1024);
            for (size_t k = 0; k < f->config.agents.count; k++)
                buf_printf(&names, "%.*s ", STR_ARG(f->config.agents.items[k].name));
            assert_str(buf_str(&names), str_c(rows[i].names));
            config_kit_reads_back(f);
        }
    }
}

/* Which model an agent has; NULL = refused. */
static void whose_model(void **state)
{
    struct config_kit *f = *state;
#define ONE "models: {a: {provider: demo}}\n"
#define TWO "models: {alpha: {provider: demo}, beta: {provider: demo}}\n"
    static const struct {
        const char *yaml, *env, *model, *refused;
    } rows[] = {
        {"", NULL, "", NULL},
        {ONE, NULL, "a", NULL},
        {ONE "agents: {assistant: {model: a}}\n", NULL, "a", NULL},
        {ONE "agents: {x: }\n", NULL, "a", NULL},
        {ONE "model: {provider: demo}\n", NULL, "", NULL},
        {ONE, "FERMATA_MODEL_PROVIDER=demo", "", NULL},
        {ONE, "FERMATA_MODEL_IMAGES=false", "", NULL},
        {ONE "model: {provider: }\n", NULL, "a", NULL},
        {ONE, "FERMATA_AGENTS_ASSISTANT_MODEL=a\nFERMATA_MODEL_PROVIDER=demo", "a", NULL},
        {TWO "agents: {x: {model: beta}}\n", NULL, "beta", NULL},
        {TWO, "FERMATA_AGENTS_ASSISTANT_MODEL=beta", "beta", NULL},
        {TWO, "FERMATA_MODEL_PROVIDER=demo", "", NULL},
        {TWO, NULL, NULL,
         "fermata.yaml:1: \"agents.assistant.model\" is missing; models has several entries: write "
         "the name of one"},
        {TWO "agents:\n  x: {model: beta}\n  y:\n", NULL, NULL,
         "fermata.yaml:4: \"agents.y.model\" is missing"},
        {TWO "agents: {x: {model: bta}}\n", NULL, NULL,
         "fermata.yaml:2: agents.x.model: \"bta\" is no model; did you mean \"beta\"?"},
        {TWO, "FERMATA_AGENTS_ASSISTANT_MODEL=somethingelse", NULL,
         "FERMATA_AGENTS_ASSISTANT_MODEL: agents.assistant.model: \"somethingelse\" is no model; "
         "write the name of an entry of models"},
        {"agents: {x: {model: a}}\n", NULL, NULL, "\"a\" is no model; write the name of an entry"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        config_kit_put("fermata.yaml", str_c(rows[i].yaml));
        enum err e = config_kit_load(f, rows[i].env, NULL);
        if (rows[i].refused) {
            if (e != ERR_CONFIG) fail_msg("row %zu was taken", i);
            assert_part(f->fault.text, rows[i].refused);
            continue;
        }
        config_kit_ok(f, e);
        assert_str(f->config.agents.items[0].model, str_c(rows[i].model));
        config_kit_reads_back(f);
        assert_str(f->config.agents.items[0].model, str_c(rows[i].model));
    }
}

static void refused(void **state)
{
    struct config_kit *f = *state;
    static const struct {
        const char *yaml, *text;
    } rows[] = {
        {"models: [a]\n", "fermata.yaml:1: \"models\" takes a map; write {name: {...}}"},
        {"agents: x\n", "\"agents\" takes a map"},
        {"mcp: []\n", "\"mcp\" takes a map; write {name: {...}}"},
        {"models:\n  a:\n",
         "fermata.yaml:2: \"models.a.provider\" is missing; write demo, scripted"},
        {"models: {a: {name: x}}\n", "\"models.a.provider\" is missing"},
        {"models: {a: demo}\n", "\"models.a\" has keys of its own"},
        {"agents: {a: [x]}\n", "\"agents.a\" has keys of its own"},
        {"mcp: {a: x}\n", "\"mcp.a\" has keys of its own"},
        {"models: {a.b: {provider: demo}}\n",
         "fermata.yaml:1: \"models.a.b\" is no name; write up to 64 letters, digits, _ and -"},
        {"agents: {'': {}}\n", "\"agents.\" is no name"},
        {"agents: {a b: {}}\n", "\"agents.a b\" is no name"},
        {"agents: {助手: {}}\n", "is no name"},
        {"mcp: {a/b: {url: 'http://a'}}\n", "\"mcp.a/b\" is no name; write up to 32 letters"},
        {"models: {a: {provder: demo}}\n",
         "fermata.yaml:1: \"models.a.provder\" is an unknown key; did you mean \"provider\"?"},
        {"models: {a: {provider: demo, price: {inptu: 1}}}\n",
         "\"models.a.price.inptu\" is an unknown key; did you mean \"price.input\"?"},
        {"models: {a: {provider: demo, input: 1}}\n", "did you mean \"price.input\"?"},
        {"models: {a: {provider: demo, price: 5}}\n", "\"models.a.price\" has keys of its own"},
        {"models: {a: {provider: demo, price.input: 5}}\n",
         "\"models.a.price.input\" has a dot; put the part behind it"},
        {"models: {a: {provider: demo, price: {input: 1}}}\n",
         "fermata.yaml:1: \"models.a.price.input\" is half a price"},
        {"models: {a: {provider: demo, busy: reject}}\n", "\"models.a.busy\" is an unknown key"},
        {"models: {a: {provider: demo, window: x}}\n",
         "fermata.yaml:1: models.a.window: \"x\" is not a number"},
        {"models: {a: {provider: [demo]}}\n", "\"models.a.provider\" takes one value"},
        {"models: {a: {provider: openai}}\n", "fermata.yaml:1: \"models.a.name\" is missing"},
        {"models: {a: {provider: scripted}}\n",
         "fermata.yaml:1: models.a.provider is scripted and there is no script"},
        {"models: {a: {provider: openai, name: x, api_key: TOPSECRET, api_key_file: key}}\n",
         "models.a.api_key (fermata.yaml:1) and models.a.api_key_file (fermata.yaml:1) are both "
         "set; remove one"},
        {"models: {a: {provider: openai, name: x, api_key: TOPSECRET x}}\n",
         "models.a.api_key: \"(hidden)\" has spaces"},
        {"models: {a: {provider: openai, name: x, api_key_file: none}}\n",
         "models.a.api_key_file: none: cannot be read"},
        {"models: {a: {provider: openai, name: x, api_key_file: token.txt}}\n",
         "models.a.api_key_file: the key in token.txt has spaces"},
        {"agents: {a: {promt: x}}\n", "\"agents.a.promt\" is an unknown key; did you mean "
                                      "\"prompt\"?"},
        {"agents: {a: {budget: {cst: 1}}}\n", "did you mean \"budget.cost\"?"},
        {"agents: {a: {busy: maybe}}\n",
         "fermata.yaml:1: agents.a.busy: \"maybe\" is no policy; write enqueue, reject or "
         "interrupt"},
        {"agents: {a: {policy: {b: maybe}}}\n", "agents.a.policy: \"maybe\" is no verdict on b"},
        {"agents: {a: {tools: x}}\n",
         "\"agents.a.tools\" takes a list such as [a, b]; write names"},
        {"agents: {a: }\nmodel: {prvider: demo}\n", "did you mean \"model.provider\"?"},
        {"agents: {a: , a: }\n", "the key \"a\" was already given"},
    };
    config_kit_put("key", STR(SECRET_TEXT));
    config_kit_put("token.txt", STR("TOPSECRET x"));
    for (size_t i = 0; i < COUNT(rows); i++) {
        config_kit_put("fermata.yaml", str_c(rows[i].yaml));
        f->config.data = STR("untouched");
        if (config_kit_load(f, NULL, NULL) != ERR_CONFIG) fail_msg("taken: %s", rows[i].yaml);
        assert_part(f->fault.text, rows[i].text);
        assert_null(strstr(f->fault.text, "TOPSECRET"));
        assert_str(f->config.data, STR("untouched"));
    }
}

static void warnings(void **state)
{
    struct config_kit *f = *state;
    load_ok(f, "models: {a: {provider: demo, base_url: 'http://a', api_key: x}}\nscript: s\n");
    assert_int_equal(f->config.warnings.count, 3);
    assert_part(f->config.warnings.items[0].p,
                "models.a.base_url is set and not used; set models.a.provider to openai or "
                "anthropic");
    assert_part(f->config.warnings.items[1].p, "models.a.api_key is set and not used");
    assert_part(f->config.warnings.items[2].p, "script is set and not used");
    load_ok(f, "models: {a: {provider: scripted}}\nscript: s\nscript_log: l\n");
    assert_int_equal(f->config.warnings.count, 0);
}

static void secrets_stay_hidden(void **state)
{
    struct config_kit *f = *state;
    config_kit_put("key", STR(SECRET_TEXT));
    config_kit_put("fermata.yaml",
                   STR("models:\n"
                       "  a: {provider: openai, name: x, api_key: " SECRET_TEXT "}\n"
                       "  b: {provider: openai, name: x, api_key_file: key}\n"));
    config_kit_ok(f, config_kit_load(f,
                                     "FERMATA_MODEL_API_KEY=" SECRET_TEXT
                                     "\nFERMATA_MODEL_PROVIDER=openai\nFERMATA_MODEL_NAME=x",
                                     NULL));
    assert_str(f->config.model.api_key, STR(SECRET_TEXT));
    assert_str(f->config.models.items[0].api_key, STR(SECRET_TEXT));
    assert_str(f->config.models.items[1].api_key, STR(SECRET_TEXT));
    AUTO(buf_done) struct buf out;
    config_kit_print(f, &out);
    assert_null(strstr(out.p, "TOPSECRET"));
    assert_part(out.p, "  # api_key: (hidden)  # FERMATA_MODEL_API_KEY\n");
    assert_part(out.p, "    # api_key: (hidden)  # fermata.yaml:2\n");
    assert_part(out.p, "    api_key_file: key  # fermata.yaml:3\n");

    config_kit_put("printed.yaml", (str){out.p, out.len - 1});
    config_kit_ok(f, config_kit_load(f, NULL, "config=printed.yaml"));
    assert_str(f->config.models.items[0].api_key, STR(""));
    assert_str(f->config.models.items[1].api_key, STR(SECRET_TEXT));
}

static void printed(void **state)
{
    struct config_kit *f = *state;
    load_ok(f, "models: {m: {provider: demo}}\nagents: {b: {busy: reject}, c: }\n");
    AUTO(buf_done) struct buf out;
    config_kit_print(f, &out);
    assert_part(out.p, "agents:\n"
                       "  b:\n"
                       "    model: m  # default\n"
                       "    prompt: \"\"  # default\n");
    assert_part(out.p, "    busy: reject  # fermata.yaml:2\n");
    assert_part(out.p, "      minutes: 0  # default\n  c:\n    model: m  # default\n");
    assert_part(out.p, "\nmodels:\n"
                       "  m:\n"
                       "    provider: demo  # fermata.yaml:1\n");
    assert_part(out.p, "    price:\n"
                       "      input: \"\"  # default\n"
                       "      output: \"\"  # default\n"
                       "      currency: USD  # default\n"
                       "mcp: {}  # default\n");
    assert_null(strstr(out.p, "assistant"));
}

/* Each of these is taken at its edge and refused one further. */

static void many(struct buf *out, const char *map, const char *fields, size_t count)
{
    buf_printf(out, "%s:\n", map);
    for (size_t i = 0; i < count; i++) buf_printf(out, "  n%zu: {%s}\n", i, fields);
}

static void named(struct buf *out, const char *map, const char *fields, size_t len)
{
    buf_printf(out, "%s: {", map);
    while (len--) buf_char(out, 'n');
    buf_printf(out, ": {%s}}\n", fields);
}

static void edges(void **state)
{
    struct config_kit *f = *state;
    static const struct {
        void (*make)(struct buf *, const char *, const char *, size_t);
        const char *map, *fields, *more;
        size_t allowed;
        const char *refused;
    } rows[] = {
        {many, "models", "provider: demo", "agents: {assistant: {model: n0}}\n", CONFIG_LIST_MAX,
         "\"models\" has more than 100 items"},
        {many, "agents", "", "", CONFIG_LIST_MAX, "\"agents\" has more than 100 items"},
        {many, "mcp", "url: 'http://a'", "", CONFIG_LIST_MAX, "\"mcp\" has more than 100 items"},
        {named, "models", "provider: demo", "", CONFIG_ENTRY_NAME_BYTES_MAX, "is no name"},
        {named, "agents", "", "", CONFIG_ENTRY_NAME_BYTES_MAX, "is no name"},
        {named, "mcp", "url: 'http://a'", "", CONFIG_MCP_NAME_BYTES_MAX, "is no name"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t over = 0; over < 2; over++) {
            AUTO(buf_done) struct buf yaml;
            buf_init(&yaml, YAML_BYTES_MAX);
            rows[i].make(&yaml, rows[i].map, rows[i].fields, rows[i].allowed + over);
            buf_append(&yaml, str_c(rows[i].more));
            config_kit_put("fermata.yaml", buf_str(&yaml));
            enum err e = config_kit_load(f, NULL, NULL);
            if (!over) {
                config_kit_ok(f, e);
                config_kit_reads_back(f);
                continue;
            }
            if (e != ERR_CONFIG) fail_msg("row %zu was taken", i);
            assert_part(f->fault.text, rows[i].refused);
        }
}

/* The examples of docs/CONFIGURATION.md work together. */
static void examples(void **state)
{
    struct config_kit *f = *state;
    AUTO(buf_done) struct buf yaml;
    buf_init(&yaml, 64 * 1024);
    for (enum option_of of = OF_MODEL; of <= OF_AGENT; of++)
        buf_append(&yaml, str_c(option_maps[of].example));
    config_kit_put("key.txt", STR(SECRET_TEXT "\n"));
    config_kit_put("fermata.yaml", buf_str(&yaml));
    config_kit_ok(f, config_kit_load(f, NULL, NULL));
    assert_int_equal(f->config.models.count, 2);
    assert_int_equal(f->config.agents.count, 2);
    assert_str(f->config.agents.items[1].model, STR("careful"));
    config_kit_reads_back(f);
}

int test_config_agents(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, config_kit_setup, config_kit_teardown)
    const struct CMUnitTest tests[] = {
        CASE(the_whole_file),
        CASE(defaults),
        CASE(every_field_of_a_model),
        CASE(addresses),
        CASE(other_agents),
        CASE(who_is_there),
        CASE(whose_model),
        CASE(refused),
        CASE(warnings),
        CASE(secrets_stay_hidden),
        CASE(printed),
        CASE(edges),
        CASE(examples),
    };
#undef CASE
    return cmocka_run_group_tests_name("app/config_agents", tests, NULL, NULL);
}
