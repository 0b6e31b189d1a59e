/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "config/kit.h"
#include "config/option.h"

#define TOOL_YAML                                  \
    "tools:\n"                                     \
    "  - http:\n"                                  \
    "      name: place_order\n"                    \
    "      url: http://127.0.0.1:9000/order?a=1\n" \
    "      schema: {type: object}\n"               \
    "      effect: write\n"
#define HOOK_YAML   "webhooks:\n  - url: https://example.org/hook\n    secret_file: hook-secret.txt\n"
#define SECRET_TEXT "TOPSECRET-0123456789"

static void load_ok(struct config_kit *f, str yaml)
{
    config_kit_put("fermata.yaml", yaml);
    config_kit_put("hook-secret.txt", STR(SECRET_TEXT "\n"));
    config_kit_put("token.txt", STR("Bearer " SECRET_TEXT "\r\n"));
    config_kit_ok(f, config_kit_load(f, NULL, NULL));
}

static void tools(void **state)
{
    struct config_kit *f = *state;
    load_ok(f, STR(TOOL_YAML));
    assert_int_equal(f->config.http_tools.count, 1);
    const struct config_http_tool *t = &f->config.http_tools.items[0];
    assert_int_equal(t->line, 2);
    assert_str(t->name, STR("place_order"));
    assert_str(t->url, STR("http://127.0.0.1:9000/order?a=1"));
    assert_str(t->description, STR(""));
    assert_int_equal(t->summary.zh.len + t->summary.en.len, 0);
    assert_str(t->schema->raw, STR("{\"type\":\"object\"}"));
    assert_true(t->write);
    assert_false(t->idempotent);
    assert_int_equal(t->risk, RISK_WRITE);
    assert_int_equal(t->timeout_s, HTTP_TOOL_S);
    assert_int_equal(t->headers.count, 0);

    load_ok(f,
            STR("tools:\n"
                "- http: {name: look-up_1, url: 'https://[::1]:8443', schema: {}, effect: read,\n"
                "         idempotent: true, timeout_s: 3600, description: \"two\\nlines\",\n"
                "         headers: {X-Tenant: a b, Authorization_file: token.txt}}\n"
                "- http: {name: b, url: 'http://b', schema: {}, effect: write,\n"
                "         risk: destructive, timeout_s: 1, headers: {}, idempotent: }\n"));
    assert_int_equal(f->config.http_tools.count, 2);
    t = &f->config.http_tools.items[0];
    assert_str(t->description, STR("two\nlines"));
    assert_false(t->write);
    assert_true(t->idempotent);
    assert_int_equal(t->timeout_s, 3600);
    assert_int_equal(t->headers.count, 2);
    assert_str(t->headers.items[0].name, STR("X-Tenant"));
    assert_str(t->headers.items[0].value, STR("a b"));
    assert_str(t->headers.items[1].name, STR("Authorization"));
    assert_str(t->headers.items[1].value, STR("Bearer " SECRET_TEXT));
    assert_str(t->headers.items[1].file, STR("token.txt"));
    assert_int_equal(t[1].risk, RISK_DESTRUCTIVE);
    assert_int_equal(t[1].timeout_s, 1);
}

/* What a call did, in words of the tool's own. */
static void summaries(void **state)
{
    struct config_kit *f = *state;
    static const struct {
        const char *yaml, *zh, *en;
    } rows[] = {
        {"'Ordered: {item} ({order_or_id})'", "Ordered: {item} ({order_or_id})",
         "Ordered: {item} ({order_or_id})"},
        {"{zh: 已下单：{item}, en: 'Ordered: {item}'}", NULL, NULL}, /* a map begins at its { */
        {"{zh: '已下单：{item}', en: \"Ordered: \\\"{item}\\\"\"}", "已下单：{item}",
         "Ordered: \"{item}\""},
        {"{en: Ordered}", "", "Ordered"},
        {"{zh: 已下单}", "已下单", ""},
        {"{}", "", ""},
        {"~", "", ""},
        {"7", "7", "7"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        str yaml = arena_printf(&f->arena, TOOL_YAML "      summary: %s\n", rows[i].yaml);
        config_kit_put("fermata.yaml", yaml);
        if (!rows[i].zh) {
            assert_int_equal(config_kit_load(f, NULL, NULL), ERR_CONFIG);
            continue;
        }
        for (int again = 0; again < 2; again++) {
            if (again)
                config_kit_reads_back(f);
            else
                config_kit_ok(f, config_kit_load(f, NULL, NULL));
            const struct config_template *summary = &f->config.http_tools.items[0].summary;
            assert_str(summary->zh, str_c(rows[i].zh));
            assert_str(summary->en, str_c(rows[i].en));
        }
    }
}

static void webhooks(void **state)
{
    struct config_kit *f = *state;
    load_ok(f, STR(HOOK_YAML "  - {url: 'http://b/c', secret_file: hook-secret.txt,\n"
                             "     events: [interaction.resolved]}\n"));
    assert_int_equal(f->config.webhooks.count, 2);
    const struct config_webhook *h = f->config.webhooks.items;
    assert_int_equal(h[0].line, 2);
    assert_str(h[0].url, STR("https://example.org/hook"));
    assert_str(h[0].secret, STR(SECRET_TEXT));
    assert_int_equal(h[0].events, EVENT_OPENED | EVENT_RESOLVED);
    assert_int_equal(h[1].events, EVENT_RESOLVED);
}

static void servers(void **state)
{
    struct config_kit *f = *state;
    load_ok(f, STR("mcp:\n"
                   "  files:\n"
                   "    command: [\"npx\", -y, '', \"a\\nb\", 'null', \"~\", 1]\n"
                   "    env: {TOKEN: " SECRET_TEXT ", _e9: , LONG: \"x\\ny\"}\n"
                   "    read: [read_file, 'list_*']\n"
                   "    idempotent: ['*']\n"
                   "    timeout_s: 3600\n"
                   "  web:\n"
                   "    url: https://example.org/mcp?a=b\n"
                   "    headers: {X-Tenant: a, Authorization_file: token.txt}\n"
                   "    trusted: true\n"));
    assert_int_equal(f->config.mcps.count, 2);
    const struct config_mcp *m = f->config.mcps.items;
    assert_int_equal(m[0].line, 2);
    assert_str(m[0].name, STR("files"));
    assert_int_equal(m[0].command.count, 7);
    assert_str(m[0].command.items[0], STR("npx"));
    assert_str(m[0].command.items[2], STR(""));
    assert_str(m[0].command.items[3], STR("a\nb"));
    assert_str(m[0].command.items[4], STR("null"));
    assert_str(m[0].command.items[5], STR("~"));
    assert_int_equal(m[0].env.count, 3);
    assert_str(m[0].env.items[0].name, STR("TOKEN"));
    assert_str(m[0].env.items[0].value, STR(SECRET_TEXT));
    assert_str(m[0].env.items[1].value, STR(""));
    assert_str(m[0].env.items[2].value, STR("x\ny"));
    assert_str(m[0].url, STR(""));
    assert_false(m[0].trusted);
    assert_str(m[0].read.items[1], STR("list_*"));
    assert_int_equal(m[0].idempotent.count, 1);
    assert_int_equal(m[0].timeout_s, 3600);

    assert_str(m[1].name, STR("web"));
    assert_int_equal(m[1].command.count, 0);
    assert_str(m[1].url, STR("https://example.org/mcp?a=b"));
    assert_int_equal(m[1].headers.count, 2);
    assert_str(m[1].headers.items[1].value, STR("Bearer " SECRET_TEXT));
    assert_true(m[1].trusted);
    assert_int_equal(m[1].read.count, 0);
    assert_int_equal(m[1].timeout_s, MCP_CALL_S);

    AUTO(buf_done) struct buf out;
    config_kit_print(f, &out);
    assert_null(strstr(out.p, "TOPSECRET"));
    assert_part(out.p, "mcp:\n"
                       "  files:\n"
                       "    command: [npx, \"-y\", \"\", \"a\\nb\", \"null\", \"~\", 1]  # "
                       "fermata.yaml:3\n"
                       "    env:  # fermata.yaml:4\n"
                       "      # TOKEN: (hidden)  # fermata.yaml:4\n"
                       "      # \"_e9\": (hidden)  # fermata.yaml:4\n"
                       "      # LONG: (hidden)  # fermata.yaml:4\n"
                       "    trusted: false  # default\n"
                       "    read: [read_file, \"list_*\"]  # fermata.yaml:5\n"
                       "    idempotent: [\"*\"]  # fermata.yaml:6\n"
                       "    timeout_s: 3600  # fermata.yaml:7\n"
                       "  web:\n"
                       "    url: \"https://example.org/mcp?a=b\"  # fermata.yaml:9\n"
                       "    headers:  # fermata.yaml:10\n"
                       "      # X-Tenant: (hidden)  # fermata.yaml:10\n"
                       "      Authorization_file: token.txt  # fermata.yaml:10\n"
                       "    trusted: true  # fermata.yaml:11\n"
                       "    read: []  # default\n");
    config_kit_put("printed.yaml", (str){out.p, out.len - 1});
    config_kit_ok(f, config_kit_load(f, NULL, "config=printed.yaml"));
    m = f->config.mcps.items;
    assert_int_equal(f->config.mcps.count, 2);
    assert_int_equal(m[0].command.count, 7);
    assert_str(m[0].command.items[3], STR("a\nb"));
    assert_int_equal(m[0].env.count, 0);
    assert_int_equal(m[1].headers.count, 1);

    load_ok(f, STR("mcp: {'null': {command: [a], env: }, -: {url: 'http://a', command: }}\n"));
    assert_str(f->config.mcps.items[0].name, STR("null"));
    assert_str(f->config.mcps.items[1].name, STR("-"));
    config_kit_reads_back(f);
    assert_str(f->config.mcps.items[1].name, STR("-"));
}

/* The fields of one server. */
static void refused_servers(void **state)
{
    struct config_kit *f = *state;
    static const struct {
        const char *yaml, *refused;
    } rows[] = {
        {"mcp:\n  a: {}\n", "fermata.yaml:2: \"mcp.a\" has neither command nor url; write one"},
        {"mcp: {a: }\n", "\"mcp.a\" has neither command nor url"},
        {"mcp: {a: x}\n", "\"mcp.a\" has keys of its own"},
        {"mcp: {a: {command: [x], url: 'http://a'}}\n",
         "\"mcp.a\" has both command and url; remove one"},
        {"mcp: {a: {command: []}}\n",
         "\"mcp.a.command\" has no program in it; write a list such as [npx, -y, some-server]"},
        {"mcp: {a: {command: ['', b]}}\n", "has no program in it"},
        {"mcp: {a: {command: x}}\n", "\"mcp.a.command\" takes a list"},
        {"mcp: {a: {command: [x, [y]]}}\n", "takes a list of plain values"},
        {"mcp: {a: {command: [x, ~]}}\n", "takes a list of plain values"},
        {"mcp: {a: {comand: [x]}}\n",
         "\"mcp.a.comand\" is an unknown key; did you mean \"command\"?"},
        {"mcp: {a: {url: 'ftp://a'}}\n", "mcp.a.url: \"ftp://a\" does not begin with http://"},
        {"mcp: {a: {command: [x], headers: {A: TOPSECRET}}}\n",
         "\"mcp.a.headers\" is said of a program, which gets none; use env"},
        {"mcp: {a: {url: 'http://a', env: {A: TOPSECRET}}}\n",
         "\"mcp.a.env\" is said of a server that is not started here; use headers"},
        {"mcp: {a: {url: 'http://a', headers: {accept: x}}}\n",
         "\"mcp.a.headers\" has a header that Fermata sets itself"},
        {"mcp: {a: {url: 'http://a', headers: {MCP-Session-Id: x}}}\n", "Fermata sets itself"},
        {"mcp: {a: {url: 'http://a', headers: {Content-Type: x}}}\n", "Fermata sets itself"},
        {"mcp:\n  a:\n    url: http://a\n    headers:\n      X-A: b\n      X-B_file: none.txt\n",
         "fermata.yaml:6: mcp.a.headers: none.txt: cannot be read"},
        {"mcp: {a: {command: [x], env: [A]}}\n", "\"mcp.a.env\" takes a map"},
        {"mcp: {a: {command: [x], env: {'': TOPSECRET}}}\n",
         "mcp.a.env: \"(hidden)\" has no name in front of it; write a map such as {TOKEN: abc}"},
        {"mcp: {a: {command: [x], env: {9A: TOPSECRET}}}\n", "\"9A\" is no name of a variable"},
        {"mcp: {a: {command: [x], env: {A=B: TOPSECRET}}}\n", "is no name of a variable"},
        {"mcp: {a: {command: [x], env: {A: [TOPSECRET]}}}\n", "takes a map of plain values"},
        {"mcp: {a: {command: [x], trusted: yes}}\n",
         "mcp.a.trusted: \"yes\" is neither; write true or false"},
        {"mcp: {a: {command: [x], read: read_file}}\n", "\"mcp.a.read\" takes a list"},
        {"mcp: {a: {command: [x], read: ['a*b']}}\n",
         "mcp.a.read: \"a*b\" has a * that is not at its end"},
        {"mcp: {a: {command: [x], idempotent: ['']}}\n", "mcp.a.idempotent: \"\" is an empty item"},
        {"mcp: {a: {command: [x], timeout_s: 0}}\n",
         "mcp.a.timeout_s: \"0\" is not from 1 to 3600"},
        {"mcp: {a: {command: [x], timeout_s: 3601}}\n", "is not from 1 to 3600"},
        {"mcp: {calendar: {command: [x]}}\n",
         "\"mcp.calendar\" is the name of a built-in tool; choose another one"},
        {"mcp: {place_order: {command: [x]}}\n" TOOL_YAML,
         "\"tools[0].http.name\" is the name of an MCP server; give each its own"},
        {TOOL_YAML "mcp: {place_order: {command: [x]}}\n",
         "\"mcp.place_order\" is the name of an HTTP tool; give each its own"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        config_kit_put("fermata.yaml", str_c(rows[i].yaml));
        if (config_kit_load(f, NULL, NULL) != ERR_CONFIG) fail_msg("taken: %s", rows[i].yaml);
        assert_part(f->fault.text, rows[i].refused);
        assert_null(strstr(f->fault.text, "TOPSECRET"));
    }
}

static void empty_lists(void **state)
{
    struct config_kit *f = *state;
    static const char *const rows[] = {"tools: []\nwebhooks: []\n", "tools:\nwebhooks: ~\n"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        load_ok(f, str_c(rows[i]));
        assert_int_equal(f->config.http_tools.count, 0);
        assert_int_equal(f->config.webhooks.count, 0);
    }
}

/* YAML on the left, JSON on the right. */
static void schemas(void **state)
{
    struct config_kit *f = *state;
    static const struct {
        const char *yaml, *json;
    } rows[] = {
        {"{}", "{}"},
        {"{type: object, required: [a, \"b\"]}",
         "{\"type\":\"object\",\"required\":[\"a\",\"b\"]}"},
        {"{a: true, b: false, c: null, d: ~, e: }",
         "{\"a\":true,\"b\":false,\"c\":null,\"d\":null,\"e\":null}"},
        {"{a: 'true', b: \"null\", c: '', d: \"1\", e: !!str 1}",
         "{\"a\":\"true\",\"b\":\"null\",\"c\":\"\",\"d\":\"1\",\"e\":\"1\"}"},
        {"{a: 1, b: -0.50, c: 1e+3, d: 12345678901234567890123}",
         "{\"a\":1,\"b\":-0.50,\"c\":1e+3,\"d\":12345678901234567890123}"},
        {"{a: True, b: 01, c: 0x1F, d: .5, e: +1, f: yes, g: 1_000, h: -, i: 1 2}",
         "{\"a\":\"True\",\"b\":\"01\",\"c\":\"0x1F\",\"d\":\".5\",\"e\":\"+1\",\"f\":\"yes\","
         "\"g\":\"1_000\",\"h\":\"-\",\"i\":\"1 2\"}"},
        {"{\"1\": a, true: b, null: c, '': d}",
         "{\"1\":\"a\",\"true\":\"b\",\"null\":\"c\",\"\":\"d\"}"},
        {"{a: \"\\x01\\t\\n\\\"\\\\\\u2028\\x7F 数\"}",
         "{\"a\":\"\\u0001\\t\\n\\\"\\\\\\u2028\x7F 数\"}"},
        {"{a: [[], {}, [1, [2]]]}", "{\"a\":[[],{},[1,[2]]]}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        str yaml = arena_printf(&f->arena,
                                "tools: [{http: {name: a, url: 'http://a', effect: read, schema: "
                                "%s}}]\n",
                                rows[i].yaml);
        load_ok(f, yaml);
        assert_str(f->config.http_tools.items[0].schema->raw, str_c(rows[i].json));
        config_kit_reads_back(f);
        assert_str(f->config.http_tools.items[0].schema->raw, str_c(rows[i].json));
    }
}

/* One field of a tool that is otherwise right; NULL = taken. */
static void values(void **state)
{
    struct config_kit *f = *state;
    static const struct {
        const char *name, *url, *schema, *effect, *more, *refused;
    } rows[] = {
        {"a", "http://a", "{}", "read", "", NULL},
        {"A-b_9", "https://a.b:1/c/d?e=f%20g", "{}", "write", "", NULL},
        {"", "http://a", "{}", "read", "",
         "fermata.yaml:1: \"tools[0].http.name\" is missing; write up to 64 letters"},
        {"a b", "http://a", "{}", "read", "",
         "fermata.yaml:1: tools[0].http.name: \"a b\" is no name for a tool; write up to 64 "
         "letters, digits, _ and -"},
        {"a.b", "http://a", "{}", "read", "", "is no name for a tool"},
        {"数", "http://a", "{}", "read", "", "is no name for a tool"},
        {"ask_user", "http://a", "{}", "read", "", "\"ask_user\" is the name of a built-in tool"},
        {"submit_plan", "http://a", "{}", "read", "", "is the name of a built-in tool"},
        {"show_card", "http://a", "{}", "read", "", "is the name of a built-in tool"},
        {"calendar_share", "http://a", "{}", "read", "", "is the name of a built-in tool"},
        {"user_resolve", "http://a", "{}", "read", "", "is the name of a built-in tool"},
        {"calendar", "http://a", "{}", "read", "", "is the name of a built-in tool"},
        {"[a]", "http://a", "{}", "read", "", "\"tools[0].http.name\" takes one value"},
        {"\"\\x01\"", "http://a", "{}", "read", "", "cannot be printed"},
        {"a", "", "{}", "read", "", "\"tools[0].http.url\" is missing; write a URL such as"},
        {"a", "ftp://a", "{}", "read", "",
         "tools[0].http.url: \"ftp://a\" does not begin with http:// or https://; write"},
        {"a", "http://", "{}", "read", "", "has no host"},
        {"a", "http://a b", "{}", "read", "", "has characters that must be escaped"},
        {"a", "http://数", "{}", "read", "", "has characters that must be escaped"},
        {"a", "'http://a#b'", "{}", "read", "", "has a fragment"},
        {"a", "http://a:0/", "{}", "read", "", "has port 0"},
        {"a", "http://a:65536", "{}", "read", "", "port"},
        {"a", "http://u:TOPSECRET@a/", "{}", "read", "", "\"(hidden)\" has a user name in it"},
        {"a", "http://a", "", "read", "",
         "\"tools[0].http.schema\" is missing; write a JSON Schema"},
        {"a", "http://a", "[]", "read", "",
         "\"tools[0].http.schema\" takes a map; write a JSON Schema"},
        {"a", "http://a", "x", "read", "", "takes a map"},
        {"a", "http://a", "{}", "", "", "\"tools[0].http.effect\" is missing; write read or write"},
        {"a", "http://a", "{}", "delete", "",
         "tools[0].http.effect: \"delete\" is no effect; write read or write"},
        {"a", "http://a", "{}", "{}", "",
         "\"tools[0].http.effect\" takes one value; write read or write"},
        {"a", "http://a", "{}", "read", "idempotent: yes",
         "tools[0].http.idempotent: \"yes\" is neither; write true or false"},
        {"a", "http://a", "{}", "write", "risk: high",
         "tools[0].http.risk: \"high\" is no risk; write write, external or destructive"},
        {"a", "http://a", "{}", "write", "risk: external", NULL},
        {"a", "http://a", "{}", "read", "risk: external",
         "\"tools[0].http.risk\" is said of a tool that only reads; leave it out"},
        {"a", "http://a", "{}", "read", "risk: write", "is said of a tool that only reads"},
        {"a", "http://a", "{}", "read", "timeout_s: 0",
         "tools[0].http.timeout_s: \"0\" is not from 1 to 3600; write a whole number"},
        {"a", "http://a", "{}", "read", "timeout_s: 3601", "is not from 1 to 3600"},
        {"a", "http://a", "{}", "read", "timeout_s: 1.5", "is not a number"},
        {"a", "http://a", "{}", "read", "description: [a]",
         "\"tools[0].http.description\" takes one value"},
        {"a", "http://a", "{}", "read", "summary: [a]",
         "\"tools[0].http.summary\" takes a text or a map; write a text such as"},
        {"a", "http://a", "{}", "read", "summary: ' '",
         "tools[0].http.summary: \" \" is empty; write a text such as \"Ordered: {item}\", or "
         "{zh:"},
        {"a", "http://a", "{}", "read", "summary: 'x {item'",
         "\"x {item\" has a { that begins no placeholder"},
        {"a", "http://a", "{}", "read", "summary: 'x {}'", "has a { that begins no placeholder"},
        {"a", "http://a", "{}", "read", "summary: '{a{b}}'", "has a { that begins no placeholder"},
        {"a", "http://a", "{}", "read", "summary: '{a b}'", "has a { that begins no placeholder"},
        {"a", "http://a", "{}", "read", "summary: 'x} {item}'", "has a } that ends no placeholder"},
        {"a", "http://a", "{}", "read", "summary: \"a\\nb\"", "cannot be printed"},
        {"a", "http://a", "{}", "read", "summary: {fr: a}",
         "tools[0].http.summary: \"fr\" is no language"},
        {"a", "http://a", "{}", "read", "summary: {en: [a]}", "takes a map of plain values"},
        {"a", "http://a", "{}", "read", "summary: {zh: '{'}",
         "\"zh\" has a { that begins no placeholder"},
        {"a", "http://a", "{}", "read", "summary: {zh: }", "\"zh\" has no value"},
        {"a", "http://a", "{}", "read", "summary: {}", NULL},
        {"a", "http://a", "{}", "read", "summary: ", NULL},
        {"a", "http://a", "{}", "read", "efect: write",
         "fermata.yaml:1: \"tools[0].http.efect\" is an unknown key; did you mean \"effect\"?"},
        {"a", "http://a", "{}", "read", "nothing_like_it: 1",
         "`fermata help` lists the known ones"},
        {"a", "http://a", "{}", "read", "headers: [a]",
         "\"tools[0].http.headers\" takes a map such as {a: b}; write a map such as"},
        {"a", "http://a", "{}", "read", "headers: {a b: c}",
         "tools[0].http.headers: \"a b\" is no name of a header"},
        {"a", "http://a", "{}", "read", "headers: {'': c}",
         "\"(hidden)\" has no name in front of it"},
        {"a", "http://a", "{}", "read", "headers: {'X:': c}", "is no name of a header"},
        {"a", "http://a", "{}", "read", "headers: {content-length: 5}",
         "\"content-length\" is a header that Fermata sets itself"},
        {"a", "http://a", "{}", "read", "headers: {Idempotency-Key_file: token.txt}",
         "is a header that Fermata sets itself"},
        {"a", "http://a", "{}", "read", "headers: {A: }", "\"A\" has no value"},
        {"a", "http://a", "{}", "read", "headers: {A: [b]}", "takes a map of plain values"},
        {"a", "http://a", "{}", "read", "headers: {A: 'TOPSECRET '}",
         "\"A\" has a value with spaces around it"},
        {"a", "http://a", "{}", "read", "headers: {A: \"TOPSECRET\\nB: c\"}",
         "\"A\" has a value with characters that do not fit"},
        {"a", "http://a", "{}", "read", "headers: {A: TOPSECRÉT}",
         "characters that do not fit in a header"},
        {"a", "http://a", "{}", "read", "headers: {A: b, a: c}", "\"a\" is given twice"},
        {"a", "http://a", "{}", "read", "headers: {A: b, A_file: token.txt}",
         "\"A_file\" is given twice"},
        {"a", "http://a", "{}", "read", "headers: {A_file: none.txt}",
         "tools[0].http.headers: none.txt: cannot be read"},
        {"a", "http://a", "{}", "read", "headers: {A_file: \"a\\tb\"}",
         "\"A_file\" names a file with a path that"},
        {"a", "http://a", "{}", "read", "headers: {_file: b}", NULL},
    };
    config_kit_put("token.txt", STR("Bearer " SECRET_TEXT));
    for (size_t i = 0; i < COUNT(rows); i++) {
        str yaml =
            arena_printf(&f->arena,
                         "tools: [{http: {name: %s, url: %s, schema: %s, effect: %s, %s}}]\n",
                         rows[i].name, rows[i].url, rows[i].schema, rows[i].effect, rows[i].more);
        config_kit_put("fermata.yaml", yaml);
        enum err e = config_kit_load(f, NULL, NULL);
        if (!rows[i].refused) {
            config_kit_ok(f, e);
            continue;
        }
        if (e != ERR_CONFIG) fail_msg("taken: %s", yaml.p);
        assert_part(f->fault.text, rows[i].refused);
        assert_true(strncmp(f->fault.field, "tools[0].http.", 14) == 0);
        assert_null(strstr(f->fault.text, "TOPSECR"));
    }
}

static void refused_lists(void **state)
{
    struct config_kit *f = *state;
    static const struct {
        const char *yaml, *refused;
    } rows[] = {
        {"tools: {http: {}}\n", "fermata.yaml:1: \"tools\" takes a list; begin each item with -"},
        {"webhooks: x\n", "\"webhooks\" takes a list"},
        {"tools:\n  - place_order\n",
         "fermata.yaml:2: \"tools[0]\" takes one key; write http: {...}"},
        {"tools:\n  - htp: {}\n", "\"tools[0]\" takes one key; write http: {...}"},
        {"tools:\n  - {http: {}, x: 1}\n", "\"tools[0]\" takes one key"},
        {"tools:\n  - {}\n", "\"tools[0]\" takes one key"},
        {"tools:\n  - http: x\n", "\"tools[0].http\" has keys of its own"},
        {"tools:\n  - http:\n", "\"tools[0].http.name\" is missing"},
        {TOOL_YAML "  - http: {name: place_order, url: 'http://b', schema: {}, effect: read}\n",
         "fermata.yaml:7: \"tools[1].http.name\" is the name of a tool above"},
        {TOOL_YAML "  - http: {name: b, url: 'http://b', schema: {}}\n",
         "fermata.yaml:7: \"tools[1].http.effect\" is missing"},
        {"webhooks:\n  - x\n", "\"webhooks[0]\" has keys of its own"},
        {"webhooks:\n  - {}\n", "\"webhooks[0].url\" is missing"},
        {"webhooks:\n  - url: https://a\n",
         "fermata.yaml:2: \"webhooks[0].secret_file\" is missing; write a path"},
        {"webhooks:\n  - {url: 'https://a', secret_fil: x}\n",
         "\"webhooks[0].secret_fil\" is an unknown key; did you mean \"secret_file\"?"},
        {HOOK_YAML "    events: [interaction.opend]\n",
         "fermata.yaml:4: webhooks[0].events: \"interaction.opend\" is no event; write "
         "interaction.opened"},
        {HOOK_YAML "    events: [interaction.opened, interaction.opened]\n", "is given twice"},
        {HOOK_YAML "    events: []\n", "\"webhooks[0].events\" names none"},
        {HOOK_YAML "    events: interaction.opened\n", "\"webhooks[0].events\" takes a list"},
        {HOOK_YAML "    events: [[a]]\n", "takes a list of plain values"},
        {HOOK_YAML "  - {url: 'https://example.org/hook', secret_file: hook-secret.txt}\n",
         "fermata.yaml:4: \"webhooks[1].url\" is the address of a webhook above"},
        {"webhooks:\n  - {url: 'https://a', secret_file: none.txt}\n",
         "fermata.yaml:2: webhooks[0].secret_file: none.txt: cannot be read"},
        {"webhooks:\n  - {url: 'https://a', secret_file: key}\n",
         "webhooks[0].secret_file: the key in key is shorter than 16 characters"},
        {"webhooks:\n  - {url: 'https://a', secret_file: token.txt}\n",
         "the key in token.txt has spaces"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        config_kit_put("hook-secret.txt", STR(SECRET_TEXT));
        config_kit_put("token.txt", STR("Bearer " SECRET_TEXT));
        config_kit_put("key", STR("0123456789abcde"));
        config_kit_put("fermata.yaml", str_c(rows[i].yaml));
        f->config.http_tools.count = 77;
        if (config_kit_load(f, NULL, NULL) != ERR_CONFIG) fail_msg("taken: %s", rows[i].yaml);
        assert_part(f->fault.text, rows[i].refused);
        assert_null(strstr(f->fault.text, "TOPSECRET"));
        assert_int_equal(f->config.http_tools.count, 77);
    }
}

/* Each of these is taken at its edge and refused one further. */

static void many_tools(struct buf *out, size_t count)
{
    buf_append(out, STR("tools:\n"));
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "- http: {name: t%zu, url: 'http://a', schema: {}, effect: read}\n", i);
}

static void with_name(struct buf *out, size_t len)
{
    buf_append(out, STR("tools: [{http: {url: 'http://a', schema: {}, effect: read, name: "));
    while (len--) buf_char(out, 'n');
    buf_append(out, STR("}}]\n"));
}

static void with_key(struct buf *out, size_t len)
{
    buf_append(out, STR("tools: [{http: {url: 'http://a', name: a, effect: read, schema: {\""));
    while (len--) buf_append(out, STR("\\x01"));
    buf_append(out, STR("\": 1}}}]\n"));
}

static void with_schema(struct buf *out, size_t len)
{
    buf_append(out, STR("tools: [{http: {url: 'http://a', name: a, effect: read, schema: {a: "));
    for (size_t i = strlen("{\"a\":\"\"}"); i < len; i++) buf_char(out, 's');
    buf_append(out, STR("}}}]\n"));
}

static void with_description(struct buf *out, size_t len)
{
    buf_append(out, STR("tools: [{http: {url: 'http://a', name: a, effect: read, schema: {}, "
                        "description: "));
    while (len--) buf_char(out, 'd');
    buf_append(out, STR("}}]\n"));
}

static void with_header(struct buf *out, size_t len)
{
    buf_append(out, STR("tools: [{http: {url: 'http://a', name: a, effect: read, schema: {}, "
                        "headers: {A: "));
    while (len--) buf_char(out, 'h');
    buf_append(out, STR("}}}]\n"));
}

static void with_header_name(struct buf *out, size_t len)
{
    buf_append(out, STR("tools: [{http: {url: 'http://a', name: a, effect: read, schema: {}, "
                        "headers: {"));
    while (len--) buf_char(out, 'h');
    buf_append(out, STR(": x}}}]\n"));
}

static void with_url(struct buf *out, size_t len)
{
    buf_append(out, STR("webhooks: [{secret_file: hook-secret.txt, url: 'http://a/"));
    for (size_t i = strlen("http://a/"); i < len; i++) buf_char(out, 'u');
    buf_append(out, STR("'}]\n"));
}

static void with_summary(struct buf *out, size_t len)
{
    buf_append(out, STR("tools: [{http: {url: 'http://a', name: a, effect: read, schema: {}, "
                        "summary: "));
    while (len--) buf_char(out, 's');
    buf_append(out, STR("}}]\n"));
}

static void many_headers(struct buf *out, size_t count)
{
    buf_append(out, STR("tools: [{http: {url: 'http://a', name: a, effect: read, schema: {}, "
                        "headers: {"));
    for (size_t i = 0; i < count; i++) buf_printf(out, "H%zu: x, ", i);
    buf_append(out, STR("}}}]\n"));
}

static void with_arguments(struct buf *out, size_t count)
{
    buf_append(out, STR("mcp: {a: {command: ["));
    while (count--) buf_append(out, STR("x, "));
    buf_append(out, STR("]}}\n"));
}

static void with_argument(struct buf *out, size_t len)
{
    buf_append(out, STR("mcp: {a: {command: [x, "));
    while (len--) buf_char(out, 'y');
    buf_append(out, STR("]}}\n"));
}

static void with_variables(struct buf *out, size_t count)
{
    buf_append(out, STR("mcp: {a: {command: [x], env: {"));
    for (size_t i = 0; i < count; i++) buf_printf(out, "V%zu: x, ", i);
    buf_append(out, STR("}}}\n"));
}

static void with_variable(struct buf *out, size_t len)
{
    buf_append(out, STR("mcp: {a: {command: [x], env: {"));
    while (len--) buf_char(out, 'V');
    buf_append(out, STR(": x}}}\n"));
}

static void with_variable_value(struct buf *out, size_t len)
{
    buf_append(out, STR("mcp: {a: {command: [x], env: {A: "));
    while (len--) buf_char(out, 'v');
    buf_append(out, STR("}}}\n"));
}

static void with_patterns(struct buf *out, size_t count)
{
    buf_append(out, STR("mcp: {a: {command: [x], read: ["));
    while (count--) buf_append(out, STR("r, "));
    buf_append(out, STR("]}}\n"));
}

static void edges(void **state)
{
    struct config_kit *f = *state;
    static const struct {
        void (*make)(struct buf *, size_t);
        size_t allowed;
        const char *refused;
    } rows[] = {
        {many_tools, CONFIG_LIST_MAX, "\"tools\" has more than 100 items"},
        {many_headers, CONFIG_LIST_MAX, "has more than 100 items"},
        {with_name, TOOL_NAME_BYTES_MAX, "is no name for a tool"},
        {with_key, CONFIG_SCHEMA_KEY_BYTES_MAX, "has a name longer than 128 bytes"},
        {with_schema, CONFIG_SCHEMA_BYTES_MAX, "is larger than 64 KiB as JSON"},
        {with_description, CONFIG_PROSE_BYTES_MAX, "is too long"},
        {with_summary, CONFIG_TEXT_BYTES_MAX, "is too long"},
        {with_header, CONFIG_HEADER_BYTES_MAX, "has a value longer than 8 KiB"},
        {with_header_name, CONFIG_HEADER_NAME_BYTES_MAX, "is longer than 64 bytes"},
        {with_url, CONFIG_TEXT_BYTES_MAX, "is too long"},
        {with_arguments, CONFIG_LIST_MAX, "\"mcp.a.command\" has more than 100 items"},
        {with_argument, CONFIG_TEXT_BYTES_MAX, "mcp.a.command: \"y"},
        {with_variables, CONFIG_LIST_MAX, "\"mcp.a.env\" has more than 100 items"},
        {with_variable, CONFIG_ENV_NAME_BYTES_MAX, "is longer than 128 bytes"},
        {with_variable_value, CONFIG_PROSE_BYTES_MAX, "\"A\" has a value that is too long"},
        {with_patterns, CONFIG_LIST_MAX, "\"mcp.a.read\" has more than 100 items"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t over = 0; over < 2; over++) {
            AUTO(buf_done) struct buf yaml;
            buf_init(&yaml, YAML_BYTES_MAX);
            rows[i].make(&yaml, rows[i].allowed + over);
            if (!over) {
                load_ok(f, buf_str(&yaml));
                const struct config_http_tools *made = &f->config.http_tools;
                const struct config_mcps *servers_made = &f->config.mcps;
                bool hidden = (made->count && made->items[0].headers.count) ||
                              (servers_made->count && servers_made->items[0].env.count);
                if (!hidden) config_kit_reads_back(f);
                continue;
            }
            config_kit_put("fermata.yaml", buf_str(&yaml));
            if (config_kit_load(f, NULL, NULL) != ERR_CONFIG) fail_msg("row %zu was taken", i);
            assert_part(f->fault.text, rows[i].refused);
        }
    char token[CONFIG_HEADER_BYTES_MAX + 3];
    memset(token, 't', sizeof token);
    memcpy(token + CONFIG_HEADER_BYTES_MAX, "\r\n", 2);
    config_kit_put("token.txt", (str){token, CONFIG_HEADER_BYTES_MAX + 2});
    config_kit_put("fermata.yaml", STR(TOOL_YAML "      headers: {A_file: token.txt}\n"));
    config_kit_ok(f, config_kit_load(f, NULL, NULL));
    config_kit_put("token.txt", (str){token, sizeof token});
    assert_int_equal(config_kit_load(f, NULL, NULL), ERR_CONFIG);
    assert_part(f->fault.text, "token.txt: larger than 8194 bytes");
}

/* What `fermata check` shows: everything but secrets, and it can be read back. */
static void printed(void **state)
{
    struct config_kit *f = *state;
    load_ok(f,
            STR(TOOL_YAML "      description: \"a\\nb\"\n"
                          "      summary: {en: 'Ordered {item}', zh: '已下单：{item}'}\n"
                          "      headers: {X-Key: " SECRET_TEXT ", Authorization_file: token.txt}\n"
                          "  - http: {name: look, url: 'http://b', schema: {a: [1, '1']},"
                          " effect: read}\n" HOOK_YAML));
    AUTO(buf_done) struct buf out;
    config_kit_print(f, &out);
    assert_null(strstr(out.p, "TOPSECRET"));
    assert_part(
        out.p, "tools:\n"
               "  - http:\n"
               "      name: place_order  # fermata.yaml:3\n"
               "      url: \"http://127.0.0.1:9000/order?a=1\"  # fermata.yaml:4\n"
               "      description: \"a\\nb\"  # fermata.yaml:7\n"
               "      summary: {en: \"Ordered {item}\", zh: \"已下单：{item}\"}  # fermata.yaml:8\n"
               "      schema: {\"type\": \"object\"}  # fermata.yaml:5\n"
               "      effect: write  # fermata.yaml:6\n"
               "      idempotent: false  # default\n"
               "      risk: write  # default\n"
               "      timeout_s: 60  # default\n"
               "      headers:  # fermata.yaml:9\n"
               "        # X-Key: (hidden)  # fermata.yaml:9\n"
               "        Authorization_file: token.txt  # fermata.yaml:9\n"
               "  - http:\n"
               "      name: look  # fermata.yaml:10\n"
               "      url: http://b  # fermata.yaml:10\n"
               "      description: \"\"  # default\n"
               "      summary: {}  # default\n"
               "      schema: {\"a\": [1, \"1\"]}  # fermata.yaml:10\n"
               "      effect: read  # fermata.yaml:10\n"
               "      idempotent: false  # default\n"
               "      timeout_s: 60  # default\n"
               "      headers: {}  # default\n"
               "webhooks:\n"
               "  - url: https://example.org/hook  # fermata.yaml:12\n"
               "    secret_file: hook-secret.txt  # fermata.yaml:13\n"
               "    events: [interaction.opened, interaction.resolved]  # default\n");
    config_kit_reads_back(f);
    const struct config_http_tool *t = f->config.http_tools.items;
    assert_int_equal(t[0].headers.count, 1); /* the hidden one is gone, the file was read again */
    assert_str(t[0].headers.items[0].value, STR("Bearer " SECRET_TEXT));
    assert_str(t[1].schema->raw, STR("{\"a\":[1,\"1\"]}"));
}

/* The examples of docs/CONFIGURATION.md work. */
static void examples(void **state)
{
    struct config_kit *f = *state;
    AUTO(buf_done) struct buf yaml;
    buf_init(&yaml, 64 * 1024);
    for (enum option_of of = OF_MCP; of < OF_COUNT; of++)
        buf_append(&yaml, str_c(option_maps[of].example));
    static const struct {
        const char *path;
        str text;
    } files[] = {
        {"oa-secret.txt", STR(SECRET_TEXT)},
        {"oa-token.txt", STR("token")},
        {"oa-aes-key.txt", STR("abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG")},
        {"tg-token.txt", STR("1:a")},
        {"own-secret.txt", STR(SECRET_TEXT)},
    };
    for (size_t i = 0; i < COUNT(files); i++) config_kit_put(files[i].path, files[i].text);
    load_ok(f, buf_str(&yaml));
    assert_int_equal(f->config.http_tools.count, 1);
    assert_int_equal(f->config.http_tools.items[0].risk, RISK_EXTERNAL);
    assert_int_equal(f->config.webhooks.count, 1);
    assert_int_equal(f->config.webhooks.items[0].events, EVENT_OPENED);
    assert_int_equal(f->config.mcps.count, 2);
    assert_int_equal(f->config.channels.count, 4);
    for (size_t i = 0; i < COUNT(files); i++) assert_int_equal(unlink(files[i].path), 0);
}

int test_record(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, config_kit_setup, config_kit_teardown)
    const struct CMUnitTest tests[] = {
        CASE(tools),           CASE(summaries),   CASE(webhooks), CASE(servers),
        CASE(refused_servers), CASE(empty_lists), CASE(schemas),  CASE(values),
        CASE(refused_lists),   CASE(edges),       CASE(printed),  CASE(examples),
    };
#undef CASE
    return cmocka_run_group_tests_name("app/record", tests, NULL, NULL);
}
