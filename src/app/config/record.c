/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists and maps of records.
 *
 *     tools:                     a list; each item names its kind
 *       - http: {name: ...}      and holds its fields
 *     webhooks:
 *       - url: ...               there is one kind only, so it is not named
 *     mcp:                       a map; each record is named by its key
 *       files: {command: ...}
 *
 * A kind is a row of kinds[] with a table of its fields; what a field takes is in field.c. A record
 * begins as a copy of its defaults; each field given is read over it; then the record as a whole is
 * checked.
 *
 * To add a field: a member in config.h and a row here; then run scripts/gen-docs. To add a kind: a
 * struct and a list in config.h, and a row in kinds[].
 */
#include "app/config/record.h"

#include <stdio.h>
#include <string.h>

#include "app/config/field.h"
#include "app/config/yaml.h"
#include "app/say.h"
#include "base/limits.h"

/* How a record in a map begins. */
struct named {
    uint32_t line;
    str name;
};
_Static_assert(offsetof(struct config_mcp, name) == offsetof(struct named, name), "begins so");
_Static_assert(offsetof(struct config_channel, name) == offsetof(struct named, name), "begins so");

struct reader;
struct kind {
    const char *list; /* "tools" */
    const char *tag;  /* "http"; NULL if an item holds its fields at once */
    bool map;         /* records are struct named, by their keys */
    size_t name_bytes_max;
    const struct field *fields;
    size_t field_count;
    const void *defaults;
    size_t size; /* of a record, which begins with its line */
    enum err (*finish)(const struct reader *r, void *records, size_t index); /* or NULL */
    bool (*silent)(const void *record, const struct field *field); /* not to be printed; or NULL */
    void (*keep)(struct config *config, const void *records, size_t count);
    const void *(*kept)(const struct config *config, size_t *ret_count);
    const char *help[LANG_COUNT], *example;
};

/* ---- the tables ---- */

#define TOOL(member) offsetof(struct config_http_tool, member)
#define HOOK(member) offsetof(struct config_webhook, member)
#define MCP(member)  offsetof(struct config_mcp, member)
#define CHAN(member) offsetof(struct config_channel, member)

/* clang-format off */
static const struct field tool_fields[] = {
    {"name", NAME, TOOL(name), true, {"what models and policies call it", "模型和策略中使用的名称"}},
    {"url", ADDRESS, TOOL(url), true,
     {"gets the arguments of a call as a POST with a JSON body", "以 POST 加 JSON 正文接收调用参数"}},
    {"description", PROSE, TOOL(description), false,
     {"tells the model what it does and when to use it", "告诉模型它的作用和使用时机"}},
    {"summary", TEMPLATE, TOOL(summary), false,
     {"one line for people of what a call did; `{item}` is a member of the result or of the arguments",
      "一行文字，告诉用户这次调用做了什么；`{item}` 取自结果或参数"}},
    {"schema", SCHEMA, TOOL(schema), true, {"the arguments it takes", "接受的参数"}},
    {"effect", EFFECT, TOOL(write), true,
     {"whether it changes something; a write needs an approval unless the policy says otherwise",
      "是否会改动数据；写操作需要批准，除非策略另有规定"}},
    {"idempotent", YES_NO, TOOL(idempotent), false,
     {"whether the same Idempotency-Key twice has one effect, so that it may be repeated; "
      "false if absent",
      "相同的 Idempotency-Key 重复发送是否只生效一次，从而可以重试；默认 false"}},
    {"risk", RISK, TOOL(risk), false,
     {"what people are told about a write; write if absent", "向用户提示的写操作风险；默认 write"}},
    {"timeout_s", SECONDS, TOOL(timeout_s), false,
     {"seconds to wait for its answer; 60 if absent", "等待响应的秒数；默认 60"}},
    {"headers", HEADERS, TOOL(headers), false,
     {"to send along; Name_file reads the value of Name from a file",
      "随请求发送的头；Name_file 表示从文件读取 Name 的值"}},
};

static const struct field webhook_fields[] = {
    {"url", ADDRESS, HOOK(url), true, {"gets a signed POST for each event", "每个事件向它发送一个签名的 POST"}},
    {"secret_file", KEY_FILE, HOOK(secret_file), true,
     {"file that holds the key of the signature", "存放签名密钥的文件"}},
    {"events", EVENTS, HOOK(events), false,
     {"which events; both if absent", "通知哪些事件；默认两种都通知"}},
};

static const struct field mcp_fields[] = {
    {"command", COMMAND, MCP(command), false,
     {"program to start, with its arguments; it speaks over its standard input and output",
      "要启动的程序及其参数；通过标准输入输出通信"}},
    {"env", PAIRS, MCP(env), false,
     {"variables of that program, beside PATH, HOME and the like; it sees no others",
      "该程序的环境变量；除此之外只有 PATH、HOME 等基本变量"}},
    {"url", ADDRESS, MCP(url), false,
     {"address of a server that speaks streamable HTTP; instead of command",
      "使用 streamable HTTP 的服务器地址；用来代替 command"}},
    {"headers", HEADERS, MCP(headers), false,
     {"to send to it; Name_file reads the value of Name from a file",
      "随请求发送的头；Name_file 表示从文件读取 Name 的值"}},
    {"trusted", YES_NO, MCP(trusted), false,
     {"whether to believe what it says of its tools: which only read, which may be repeated; "
      "false if absent",
      "是否相信它对自己工具的说明（哪些只读、哪些可以重试）；默认 false"}},
    {"read", PATTERNS, MCP(read), false,
     {"its tools that only read; all others need an approval unless the policy says otherwise",
      "只读的工具；其他工具都需要批准，除非策略另有规定"}},
    {"idempotent", PATTERNS, MCP(idempotent), false,
     {"its tools that may be repeated when a call was lost", "调用中断后可以重试的工具"}},
    {"timeout_s", SECONDS, MCP(timeout_s), false,
     {"seconds to wait for the result of a call, waiting for people not counted; 300 if absent",
      "等待调用结果的秒数，不含等待用户的时间；默认 300"}},
};

static const struct field channel_fields[] = {
    {"kind", PLATFORM, CHAN(kind), true, {"which platform", "平台类型"}},
    {"agent", WORD, CHAN(agent), false,
     {"who answers there; the first agent if absent", "由哪个智能体应答；默认第一个"}},
    {"base_url", BASE, CHAN(base_url), false,
     {"where the platform is, if not at its usual address; not for `webhook`",
      "平台地址，默认为其官方地址；`webhook` 不用"}},
    {"token_file", FILE_AT, CHAN(token_file), false,
     {"file with the token: of the bot for `telegram`, of the signature for `wechat_oa`; for `weixin` "
      "instead of `fermata channel login`, and it may be absent",
      "存放令牌的文件：`telegram` 为机器人令牌，`wechat_oa` 为签名 Token；`weixin` 可用它代替 "
      "`fermata channel login`，文件可以还不存在"}},
    {"app_id", WORD, CHAN(app_id), false, {"`wechat_oa`: AppID of the account", "`wechat_oa`：公众号的 AppID"}},
    {"secret_file", FILE_AT, CHAN(secret_file), false,
     {"file with the AppSecret for `wechat_oa`, or with the key of the signatures for `webhook`",
      "存放密钥的文件：`wechat_oa` 为 AppSecret，`webhook` 为签名密钥"}},
    {"aes_key_file", FILE_AT, CHAN(aes_key_file), false,
     {"`wechat_oa`: file with the EncodingAESKey, if messages are encrypted",
      "`wechat_oa`：存放 EncodingAESKey 的文件，消息加密时使用"}},
    {"url", ADDRESS, CHAN(url), false,
     {"`webhook`: gets each message as a signed POST", "`webhook`：每条消息以签名的 POST 发到这里"}},
    {"allow", SENDERS, CHAN(allow), false,
     {"ids of the people who may write; if absent everybody, on `weixin` after a QR code whoever "
      "signed in and who is linked",
      "允许发消息的用户 id；默认所有人，`weixin` 扫码登录后默认为登录者和已绑定的用户"}},
};
/* clang-format on */

static enum err finish_tool(const struct reader *r, void *records, size_t index);
static enum err finish_webhook(const struct reader *r, void *records, size_t index);
static enum err finish_mcp(const struct reader *r, void *records, size_t index);
static bool silent_tool(const void *record, const struct field *field);
static bool silent_mcp(const void *record, const struct field *field);
static enum err finish_channel(const struct reader *r, void *records, size_t index);
static bool silent_channel(const void *record, const struct field *field);

static void keep_tools(struct config *config, const void *records, size_t count)
{
    config->http_tools = (struct config_http_tools){records, count};
}

static const void *kept_tools(const struct config *config, size_t *ret_count)
{
    *ret_count = config->http_tools.count;
    return config->http_tools.items;
}

static void keep_webhooks(struct config *config, const void *records, size_t count)
{
    config->webhooks = (struct config_webhooks){records, count};
}

static const void *kept_webhooks(const struct config *config, size_t *ret_count)
{
    *ret_count = config->webhooks.count;
    return config->webhooks.items;
}

static void keep_mcps(struct config *config, const void *records, size_t count)
{
    config->mcps = (struct config_mcps){records, count};
}

static const void *kept_mcps(const struct config *config, size_t *ret_count)
{
    *ret_count = config->mcps.count;
    return config->mcps.items;
}

static void keep_channels(struct config *config, const void *records, size_t count)
{
    config->channels = (struct config_channels){records, count};
}

static const void *kept_channels(const struct config *config, size_t *ret_count)
{
    *ret_count = config->channels.count;
    return config->channels.items;
}

static const struct config_http_tool tool_defaults = {.timeout_s = HTTP_TOOL_S,
                                                      .risk = TOOL_RISK_COUNT};
static const struct config_webhook webhook_defaults = {.events = EVENT_OPENED | EVENT_RESOLVED};

static const struct config_mcp mcp_defaults = {.timeout_s = MCP_CALL_S};

static const struct config_channel channel_defaults = {0};

static const struct kind kinds[] = {
    {
        .list = "mcp",
        .map = true,
        .name_bytes_max = CONFIG_MCP_NAME_BYTES_MAX,
        .fields = mcp_fields,
        .field_count = COUNT(mcp_fields),
        .defaults = &mcp_defaults,
        .size = sizeof mcp_defaults,
        .finish = finish_mcp,
        .silent = silent_mcp,
        .keep = keep_mcps,
        .kept = kept_mcps,
        .help = {"MCP servers that offer tools. Each has `command` or `url`. Its tools are called "
                 "`files.read_file`; an agent's `tools` may name the server for all of them.",
                 "提供工具的 MCP 服务器。每个写 `command` 或 `url` 之一。它的工具名形如 "
                 "`files.read_file`；智能体的 `tools` 写服务器名即表示它的全部工具。"},
        .example = "mcp:\n"
                   "  files:\n"
                   "    command: [npx, -y, some-server, ./docs]\n"
                   "    env: {LOG_LEVEL: warn}\n"
                   "    read: [read_file, \"list_*\"]\n"
                   "  web:\n"
                   "    url: https://example.org/mcp\n"
                   "    headers: {Authorization_file: token.txt}\n"
                   "    trusted: true\n",
    },
    {
        .list = "tools",
        .tag = "http",
        .fields = tool_fields,
        .field_count = COUNT(tool_fields),
        .defaults = &tool_defaults,
        .size = sizeof tool_defaults,
        .finish = finish_tool,
        .silent = silent_tool,
        .keep = keep_tools,
        .kept = kept_tools,
        .help =
            {"Services of your own that the agent may call. The answer is `{content?, result, "
             "error?, ui_hints?}`; any other JSON is the result, and a status other than 2xx an "
             "error.",
             "智能体可以调用的你自己的服务。应答为 `{content?, result, error?, ui_hints?}`；"
             "其他 JSON 整体作为结果，非 2xx 状态视为错误。"},
        .example = "tools:\n"
                   "  - http:\n"
                   "      name: place_order\n"
                   "      url: http://127.0.0.1:9000/order\n"
                   "      description: Places an order and returns its number.\n"
                   "      summary: {zh: \"已下单：{item}（{order}）\", en: \"Ordered: {item} "
                   "({order})\"}\n"
                   "      schema:\n"
                   "        type: object\n"
                   "        required: [item]\n"
                   "        properties:\n"
                   "          item: {type: string}\n"
                   "          count: {type: integer, minimum: 1}\n"
                   "      effect: write\n"
                   "      idempotent: true\n"
                   "      risk: external\n"
                   "      headers:\n"
                   "        Authorization_file: token.txt\n",
    },
    {
        .list = "webhooks",
        .fields = webhook_fields,
        .field_count = COUNT(webhook_fields),
        .defaults = &webhook_defaults,
        .size = sizeof webhook_defaults,
        .finish = finish_webhook,
        .keep = keep_webhooks,
        .kept = kept_webhooks,
        .help =
            {"Addresses that are told when somebody is asked something, and when it is settled.",
             "有待办事项出现或处理完时通知的地址。"},
        .example = "webhooks:\n"
                   "  - url: https://example.org/hook\n"
                   "    secret_file: hook-secret.txt\n"
                   "    events: [interaction.opened]\n",
    },
    {
        .list = "channels",
        .map = true,
        .name_bytes_max = CHANNEL_NAME_BYTES_MAX,
        .fields = channel_fields,
        .field_count = COUNT(channel_fields),
        .defaults = &channel_defaults,
        .size = sizeof channel_defaults,
        .finish = finish_channel,
        .silent = silent_channel,
        .keep = keep_channels,
        .kept = kept_channels,
        .help =
            {"Chat platforms on which people reach an agent: WeChat (`weixin`), a WeChat Official "
             "Account (`wechat_oa`), Telegram (`telegram`), or a service of your own "
             "(`webhook`). A name has lower-case letters, digits, _ and -.",
             "用户与智能体对话的聊天平台：微信（`weixin`）、公众号（`wechat_oa`）、Telegram"
             "（`telegram`）或你自己的服务（`webhook`）。名称由小写字母、数字、_ 和 - 组成。"},
        .example = "channels:\n"
                   "  wx: {kind: weixin} # then: fermata channel login wx\n"
                   "  oa:\n"
                   "    kind: wechat_oa\n"
                   "    app_id: wx0123456789abcdef\n"
                   "    secret_file: oa-secret.txt\n"
                   "    token_file: oa-token.txt\n"
                   "    aes_key_file: oa-aes-key.txt\n"
                   "  tg:\n"
                   "    kind: telegram\n"
                   "    agent: assistant\n"
                   "    token_file: tg-token.txt\n"
                   "    allow: [\"123456789\"]\n"
                   "  own:\n"
                   "    kind: webhook\n"
                   "    url: https://example.org/messages\n"
                   "    secret_file: own-secret.txt\n",
    },
};

/* ---- refusals ---- */

struct reader {
    const struct config *config;
    struct arena *arena;
    const struct kind *kind;
    struct fault *reterr;
    const struct yaml_node *list;
};

static enum err refuse_node(const struct reader *r, uint32_t line, str path, const char *what)
{
    return fault_field(r->reterr, ERR_CONFIG, say(path).text, "%s:%u: \"%s\" %s",
                       say(r->config->file).text, line, say(path).text, what);
}

/* ---- records ---- */

static enum err unknown_field(const struct reader *r, const struct yaml_node *node, str path)
{
    struct nearest n;
    nearest_init(&n, node->key);
    for (size_t i = 0; i < r->kind->field_count; i++)
        nearest_offer(&n, str_c(r->kind->fields[i].name), r->kind->fields[i].name);
    struct said_nearest hint = say_nearest(&n, "docs/CONFIGURATION.md lists the known ones");
    return fault_field(r->reterr, ERR_CONFIG, say(path).text, "%s:%u: \"%s\" is an unknown key%s",
                       say(r->config->file).text, node->line, say(path).text, hint.text);
}

static const struct yaml_node *child_of(const struct yaml_node *map, const char *key)
{
    const struct yaml_node *n = map->child;
    while (n && !str_eq(n->key, str_c(key))) n = n->next;
    return n;
}

static const struct field *field_of(const struct kind *kind, str name)
{
    for (size_t i = 0; i < kind->field_count; i++)
        if (str_eq(str_c(kind->fields[i].name), name)) return &kind->fields[i];
    return NULL;
}

/* "tools[0].http.effect", "mcp.files.url". */
static str path_of(const struct reader *r, size_t index, const char *field)
{
    if (r->kind->map) {
        const struct yaml_node *item = r->list->child;
        for (size_t i = 0; i < index; i++) item = item->next;
        return arena_printf(r->arena, "%s.%.*s%s%s", r->kind->list, STR_ARG(item->key),
                            *field ? "." : "", field);
    }
    return arena_printf(r->arena, "%s[%zu]%s%s%s%s", r->kind->list, index, r->kind->tag ? "." : "",
                        r->kind->tag ? r->kind->tag : "", *field ? "." : "", field);
}

/* A tool is known by its name alone, as the tools of a server together are by the server's; and a
 * read has no risk. */
static enum err finish_tool(const struct reader *r, void *records, size_t index)
{
    struct config_http_tool *tools = records, *tool = &tools[index];
    for (size_t i = 0; i < index; i++)
        if (str_eq(tools[i].name, tool->name))
            return refuse_node(r, tool->line, path_of(r, index, "name"),
                               "is the name of a tool above; give each its own");
    for (size_t i = 0; i < r->config->mcps.count; i++)
        if (str_eq(r->config->mcps.items[i].name, tool->name))
            return refuse_node(r, tool->line, path_of(r, index, "name"),
                               "is the name of an MCP server; give each its own");
    if (!tool->write && tool->risk != TOOL_RISK_COUNT)
        return refuse_node(r, tool->line, path_of(r, index, "risk"),
                           "is said of a tool that only reads; leave it out");
    if (tool->risk == TOOL_RISK_COUNT) tool->risk = RISK_WRITE;
    return OK;
}

/* The secret of a message that waits to be sent is found by its URL. */
static enum err finish_webhook(const struct reader *r, void *records, size_t index)
{
    const struct config_webhook *hooks = records;
    for (size_t i = 0; i < index; i++)
        if (str_eq(hooks[i].url, hooks[index].url))
            return refuse_node(r, hooks[index].line, path_of(r, index, "url"),
                               "is the address of a webhook above; list all events there");
    return OK;
}

static bool silent_tool(const void *record, const struct field *field)
{
    /* The risk of a read would be refused. */
    return field->type == RISK && !((const struct config_http_tool *)record)->write;
}

/* Names of ours in the requests of the protocol. */
static bool mcp_header(str name)
{
    static const char *const ours[] = {"Accept", "Host", "Last-Event-ID"};
    static const str prefix = STR("Mcp-");
    for (size_t i = 0; i < COUNT(ours); i++)
        if (str_eq_nocase(str_c(ours[i]), name)) return true;
    return name.len >= prefix.len && str_eq_nocase((str){name.p, prefix.len}, prefix);
}

/* One way to reach it, and nothing said of the other one. */
static enum err finish_mcp(const struct reader *r, void *records, size_t index)
{
    const struct config_mcp *server = &((struct config_mcp *)records)[index];
    bool child = server->command.count, url = server->url.len;
    if (field_name_taken(server->name))
        return refuse_node(r, server->line, path_of(r, index, ""),
                           "is the name of a built-in tool; choose another one");
    for (size_t i = 0; i < r->config->http_tools.count; i++)
        if (str_eq(r->config->http_tools.items[i].name, server->name))
            return refuse_node(r, server->line, path_of(r, index, ""),
                               "is the name of an HTTP tool; give each its own");
    if (child == url)
        return refuse_node(r, server->line, path_of(r, index, ""),
                           child ? "has both command and url; remove one"
                                 : "has neither command nor url; write one of them");
    if (child && server->headers.count)
        return refuse_node(r, server->line, path_of(r, index, "headers"),
                           "is said of a program, which gets none; use env");
    if (url && server->env.count)
        return refuse_node(r, server->line, path_of(r, index, "env"),
                           "is said of a server that is not started here; use headers");
    for (size_t i = 0; i < server->headers.count; i++)
        if (mcp_header(server->headers.items[i].name))
            return refuse_node(r, server->line, path_of(r, index, "headers"),
                               "has a header that Fermata sets itself; leave it out");
    return OK;
}

static bool silent_mcp(const void *record, const struct field *field)
{
    const struct config_mcp *server = record;
    bool of_child = field->type == COMMAND || field->type == PAIRS;
    bool of_url = field->type == ADDRESS || field->type == HEADERS;
    return server->url.len ? of_child : of_url;
}

/* What has to be known of the others is checked by channels.c, when they are there. */
static enum err finish_channel(const struct reader *r, void *records, size_t index)
{
    const struct config_channel *channel = &((struct config_channel *)records)[index];
    if (index == CHANNELS_MAX)
        return refuse_node(r, channel->line, path_of(r, index, ""),
                           "is one too many; 32 are enough");
    for (size_t i = 0; i < channel->name.len; i++)
        if (channel->name.p[i] != char_lower(channel->name.p[i]))
            return refuse_node(r, channel->line, path_of(r, index, ""),
                               "is no name; write up to 32 lower-case letters, digits, _ and -");
    return OK;
}

/* What is not set. */
static bool silent_channel(const void *record, const struct field *field)
{
    const void *at = (const char *)record + field->offset;
    if (field->type == SENDERS) return ((const struct strs *)at)->count == 0;
    return ((const str *)at)->len == 0;
}

/* The map of an item's fields: the item itself, or what stands below its tag. */
static enum err find_fields(const struct reader *r, const struct yaml_node *item, size_t index,
                            const struct yaml_node **ret_map)
{
    const struct yaml_node *map = item;
    str path = path_of(r, index, "");
    const char *refused =
        r->kind->map ? record_name_check(item->key, r->kind->name_bytes_max) : NULL;
    if (refused) return refuse_node(r, item->line, path, refused);
    if (r->kind->tag) {
        path = arena_printf(r->arena, "%s[%zu]", r->kind->list, index);
        char what[64];
        snprintf(what, sizeof what, "takes one key; write %s: {...}", r->kind->tag);
        if (item->type != YAML_MAP || item->count != 1 ||
            !str_eq(item->child->key, str_c(r->kind->tag)))
            return refuse_node(r, item->line, path, what);
        map = item->child;
        path = path_of(r, index, "");
    }
    if (map->type != YAML_MAP)
        return refuse_node(r, map->line, path,
                           "has keys of its own; write them below it, indented");
    *ret_map = map;
    return OK;
}

static enum err load_record(const struct reader *r, const struct yaml_node *item, size_t index,
                            void *record)
{
    const struct yaml_node *map = NULL;
    enum err e = find_fields(r, item, index, &map);
    if (e) return e;
    memcpy(record, r->kind->defaults, r->kind->size);
    *(uint32_t *)record = item->line;
    if (r->kind->map) ((struct named *)record)->name = item->key;
    for (const struct yaml_node *n = map->child; n; n = n->next) {
        const struct field *field = field_of(r->kind, n->key);
        str path = path_of(r, index, arena_cstr(r->arena, n->key));
        if (!field) return unknown_field(r, n, path);
        if (n->type == YAML_SCALAR && n->null) continue; /* counts as not given */
        const struct field_value v = {r->config, r->arena, r->reterr, field, n, path};
        e = field_take(&v, record);
        if (e) return e;
    }
    for (size_t i = 0; i < r->kind->field_count; i++) {
        const struct field *field = &r->kind->fields[i];
        const struct yaml_node *given = child_of(map, field->name);
        if (!field->required || (given && !given->null)) continue;
        const struct field_value v = {r->config,           r->arena,
                                      r->reterr,           field,
                                      given ? given : map, path_of(r, index, field->name)};
        return field_missing(&v);
    }
    return OK;
}

static const struct kind *kind_of(str list)
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (str_eq(str_c(kinds[i].list), list)) return &kinds[i];
    return NULL;
}

bool record_is(str key)
{
    return kind_of(key) != NULL;
}

void record_offer(struct nearest *n)
{
    for (size_t i = 0; i < COUNT(kinds); i++) nearest_offer(n, str_c(kinds[i].list), kinds[i].list);
}

const char *record_name_check(str name, size_t bytes_max)
{
    bool fits = name.len > 0 && name.len <= bytes_max;
    for (size_t i = 0; i < name.len; i++) {
        char c = char_lower(name.p[i]);
        if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-') fits = false;
    }
    if (fits) return NULL;
    return bytes_max == CONFIG_MCP_NAME_BYTES_MAX
               ? "is no name; write up to 32 letters, digits, _ and -"
               : "is no name; write up to 64 letters, digits, _ and -";
}

enum err record_load(struct config *config, struct arena *arena, const struct yaml_node *list,
                     struct fault *reterr)
{
    const struct reader r = {config, arena, kind_of(list->key), reterr, list};
    if (list->type == YAML_SCALAR && list->null) return OK;
    if (r.kind->map && list->type != YAML_MAP)
        return refuse_node(&r, list->line, list->key, "takes a map; write {name: {...}}");
    if (!r.kind->map && list->type != YAML_SEQUENCE)
        return refuse_node(&r, list->line, list->key, "takes a list; begin each item with -");
    if (list->count > CONFIG_LIST_MAX)
        return refuse_node(&r, list->line, list->key, "has more than 100 items");
    char *records = arena_array(arena, list->count, r.kind->size);
    size_t index = 0;
    for (const struct yaml_node *item = list->child; item; item = item->next, index++) {
        enum err e = load_record(&r, item, index, records + index * r.kind->size);
        if (!e && r.kind->finish) e = r.kind->finish(&r, records, index);
        if (e) return e;
    }
    r.kind->keep(config, records, index);
    return OK;
}

/* ---- printing ---- */

static void print_record(struct field_printer *p, const struct kind *kind, const void *record)
{
    for (size_t i = 0; i < kind->field_count; i++) {
        const struct field *field = &kind->fields[i];
        if (!kind->silent || !kind->silent(record, field)) field_put(p, field, record);
    }
}

void record_print(const struct config *config, struct buf *out)
{
    for (size_t i = 0; i < COUNT(kinds); i++) {
        const struct kind *kind = &kinds[i];
        size_t count;
        const char *records = kind->kept(config, &count);
        if (count == 0) {
            buf_printf(out, "%s: %s  # default\n", kind->list, kind->map ? "{}" : "[]");
            continue;
        }
        buf_printf(out, "%s:\n", kind->list);
        for (size_t k = 0; k < count; k++) {
            const void *record = records + k * kind->size;
            struct field_printer p = {
                .out = out, .lead = kind->map ? "  " : "  - ", .indent = "    "};
            snprintf(p.place.text, sizeof p.place.text, "%s:%u", say(config->file).text,
                     *(const uint32_t *)record);
            if (kind->map) field_line(&p, ((const struct named *)record)->name);
            if (kind->tag) {
                field_line(&p, str_c(kind->tag));
                p.lead = p.indent = "      ";
            }
            print_record(&p, kind, record);
        }
    }
}

void record_help(struct buf *out, enum lang lang)
{
    for (size_t i = 0; i < COUNT(kinds); i++) {
        const struct kind *kind = &kinds[i];
        for (size_t k = 0; k < kind->field_count; k++) {
            const struct field *field = &kind->fields[k];
            char left[64];
            snprintf(left, sizeof left, "%s%s%s%s.%s", kind->list, kind->map ? ".NAME" : "[]",
                     kind->tag ? "." : "", kind->tag ? kind->tag : "", field->name);
            buf_printf(out, "  %-34s %s\n", left, field->help[lang]);
        }
    }
}

void record_markdown(struct buf *out)
{
    for (size_t i = 0; i < COUNT(kinds); i++) {
        const struct kind *kind = &kinds[i];
        buf_printf(out, "\n### `%s`\n\n%s\n\n%s\n\n```yaml\n%s```\n\n", kind->list,
                   kind->help[LANG_EN], kind->help[LANG_ZH], kind->example);
        buf_append(out,
                   STR("| field | needed | write | meaning | 说明 |\n|---|---|---|---|---|\n"));
        for (size_t k = 0; k < kind->field_count; k++) {
            const struct field *field = &kind->fields[k];
            buf_printf(out, "| `%s` | %s | %s | %s | %s |\n", field->name,
                       field->required ? "yes" : "", field_form(field->type), field->help[LANG_EN],
                       field->help[LANG_ZH]);
        }
    }
}
