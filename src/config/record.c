/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps and lists of the file: their rows, and what is checked of an entry as a whole.
 *
 *     models: {main: {...}}      a map; each entry is named by its key. Its rows are options, too
 *     agents: {support: {...}}   likewise
 *     mcp:
 *       files: {command: ...}    a map with rows of its own, as `channels` is
 *     tools:                     a list; each item names its kind
 *       - http: {name: ...}      and holds its keys
 *     webhooks:
 *       - url: ...               there is one kind only, so it is not named
 *
 * An entry begins with the defaults of its rows; each key given is laid over them (config_file.c);
 * then the entry is checked here. Models, agents and channels are checked when every layer is laid
 * (config_agents.c, config_channels.c).
 *
 * To add a key: a member in config.h and a row here; then run scripts/gen-docs. To add a map or list:
 * its struct and its list in config.h, a value of enum option_of, its rows, and a row in
 * option_maps[].
 */
#include <string.h>

#include "base/limits.h"
#include "config/config_int.h"

#define TOOL(member) OF_TOOL, offsetof(struct config_http_tool, member)
#define HOOK(member) OF_WEBHOOK, offsetof(struct config_webhook, member)
#define MCP(member)  OF_MCP, offsetof(struct config_mcp, member)
#define CHAN(member) OF_CHANNEL, offsetof(struct config_channel, member)

_Static_assert(HTTP_TOOL_S == 60 && MCP_CALL_S == 300, "defaults of timeout_s");

/* clang-format off */
static const struct option tool_rows[] = {
    {"name", TOOL_NAME, TOOL(name), "", .needed = true,
     .help = {"what models and policies call it", "模型和策略中使用的名称"}},
    {"url", ADDRESS, TOOL(url), "", .needed = true,
     .help = {"gets the arguments of a call as a POST with a JSON body", "以 POST 加 JSON 正文接收调用参数"}},
    {"description", TEXT, TOOL(description), "",
     .help = {"tells the model what it does and when to use it", "告诉模型它的作用和使用时机"}},
    {"summary", TEMPLATE, TOOL(summary), "",
     .help = {"one line for people of what a call did; `{item}` is a member of the result or of the arguments",
              "一行文字，告诉用户这次调用做了什么；`{item}` 取自结果或参数"}},
    {"schema", SCHEMA, TOOL(schema), "", .needed = true,
     .help = {"the arguments it takes", "接受的参数"}},
    {"effect", EFFECT, TOOL(write), "", .needed = true,
     .help = {"whether it changes something; a write needs an approval unless the policy says otherwise",
              "是否会改动数据；写操作需要批准，除非策略另有规定"}},
    {"idempotent", BOOL, TOOL(idempotent), "false",
     .help = {"whether the same Idempotency-Key twice has one effect, so that it may be repeated",
              "相同的 Idempotency-Key 重复发送是否只生效一次，从而可以重试"}},
    {"risk", RISK, TOOL(risk), "write",
     .help = {"what people are told about a write", "向用户提示的写操作风险"}},
    {"timeout_s", U32, TOOL(timeout_s), "60", .min = 1, .max = HTTP_TOOL_S_MAX,
     .help = {"seconds to wait for its answer", "等待响应的秒数"}},
    {"headers", HEADERS, TOOL(headers), "",
     .help = {"to send along; Name_file reads the value of Name from a file",
              "随请求发送的头；Name_file 表示从文件读取 Name 的值"}},
    {0},
};

static const struct option webhook_rows[] = {
    {"url", ADDRESS, HOOK(url), "", .needed = true,
     .help = {"gets a signed POST for each event", "每个事件向它发送一个签名的 POST"}},
    {"secret_file", PATH, HOOK(secret_file), "", .needed = true,
     .help = {"file that holds the key of the signature", "存放签名密钥的文件"}},
    {"events", EVENTS, HOOK(events), "interaction.opened,interaction.resolved",
     .help = {"which events", "通知哪些事件"}},
    {0},
};

static const struct option mcp_rows[] = {
    {"command", COMMAND, MCP(command), "",
     .help = {"program to start, with its arguments; it speaks over its standard input and output",
              "要启动的程序及其参数；通过标准输入输出通信"}},
    {"env", VARIABLES, MCP(env), "",
     .help = {"variables of that program, beside PATH, HOME and the like; it sees no others",
              "该程序的环境变量；除此之外只有 PATH、HOME 等基本变量"}},
    {"url", ADDRESS, MCP(url), "",
     .help = {"address of a server that speaks streamable HTTP; instead of command",
              "使用 streamable HTTP 的服务器地址；用来代替 command"}},
    {"headers", HEADERS, MCP(headers), "",
     .help = {"to send to it; Name_file reads the value of Name from a file",
              "随请求发送的头；Name_file 表示从文件读取 Name 的值"}},
    {"trusted", BOOL, MCP(trusted), "false",
     .help = {"whether to believe what it says of its tools: which only read, which may be repeated",
              "是否相信它对自己工具的说明（哪些只读、哪些可以重试）"}},
    {"read", TOOLS, MCP(read), "",
     .help = {"its tools that only read; all others need an approval unless the policy says otherwise",
              "只读的工具；其他工具都需要批准，除非策略另有规定"}},
    {"idempotent", TOOLS, MCP(idempotent), "",
     .help = {"its tools that may be repeated when a call was lost", "调用中断后可以重试的工具"}},
    {"timeout_s", U32, MCP(timeout_s), "300", .min = 1, .max = HTTP_TOOL_S_MAX,
     .help = {"seconds to wait for the result of a call, waiting for people not counted",
              "等待调用结果的秒数，不含等待用户的时间"}},
    {0},
};

static const struct option channel_rows[] = {
    {"kind", PLATFORM, CHAN(kind), "", .needed = true,
     .help = {"which platform", "平台类型"}},
    {"agent", NAME, CHAN(agent), "",
     .help = {"who answers there; the first agent if absent", "由哪个智能体应答；默认第一个"}},
    {"base_url", ENDPOINT, CHAN(base_url), "",
     .help = {"where the platform is, if not at its usual address; not for `webhook`",
              "平台地址，默认为其官方地址；`webhook` 不用"}},
    {"token_file", PATH, CHAN(token_file), "",
     .help = {"file with the token: of the bot for `telegram`, of the signature for `wechat_oa`; for `weixin` "
              "instead of `fermata channel login`, and it may be absent",
              "存放令牌的文件：`telegram` 为机器人令牌，`wechat_oa` 为签名 Token；`weixin` 可用它代替 "
              "`fermata channel login`，文件可以还不存在"}},
    {"app_id", NAME, CHAN(app_id), "",
     .help = {"`wechat_oa`: AppID of the account", "`wechat_oa`：公众号的 AppID"}},
    {"secret_file", PATH, CHAN(secret_file), "",
     .help = {"file with the AppSecret for `wechat_oa`, or with the key of the signatures for `webhook`",
              "存放密钥的文件：`wechat_oa` 为 AppSecret，`webhook` 为签名密钥"}},
    {"aes_key_file", PATH, CHAN(aes_key_file), "",
     .help = {"`wechat_oa`: file with the EncodingAESKey, if messages are encrypted",
              "`wechat_oa`：存放 EncodingAESKey 的文件，消息加密时使用"}},
    {"url", ADDRESS, CHAN(url), "",
     .help = {"`webhook`: gets each message as a signed POST", "`webhook`：每条消息以签名的 POST 发到这里"}},
    {"allow", SENDERS, CHAN(allow), "",
     .help = {"ids of the people who may write; if absent everybody, on `weixin` after a QR code whoever "
              "signed in and who is linked",
              "允许发消息的用户 id；默认所有人，`weixin` 扫码登录后默认为登录者和已绑定的用户"}},
    {0},
};
/* clang-format on */

static enum err finish_tool(const struct option_target *target, void *entries, size_t index);
static enum err finish_webhook(const struct option_target *target, void *entries, size_t index);
static enum err finish_mcp(const struct option_target *target, void *entries, size_t index);
static enum err finish_name(const struct option_target *target, void *entries, size_t index);

#define ENTRIES(type, member) .size = sizeof(struct type), .offset = offsetof(struct config, member)

const struct option_map option_maps[OF_COUNT] = {
    [OF_MODEL] =
        {
            .name = "models",
            .table = options,
            .rows = "model.",
            .name_bytes_max = CONFIG_ENTRY_NAME_BYTES_MAX,
            ENTRIES(config_model, models),
            .help = {"Models that agents may name. An agent that names none has the options below "
                     "`model` if one of them is given, else the only entry "
                     "here; with several it must name one, and with none it has the demo model.",
                     "供智能体选用的模型。未指定模型的智能体使用 `model` 下的选"
                     "项（给出任意一项时），否则使用这里唯一的一项；有多项时必须指定，一项都没有时"
                     "使用演示模型。"},
            .example = "models:\n"
                       "  main:\n"
                       "    provider: openai\n"
                       "    base_url: http://127.0.0.1:11434/v1\n"
                       "    name: qwen3\n"
                       "    window: 32768\n"
                       "    price: {input: 0.5, output: 1.5, currency: USD}\n"
                       "  careful:\n"
                       "    provider: anthropic\n"
                       "    name: claude-sonnet-4-5\n"
                       "    api_key_file: key.txt\n",
        },
    [OF_AGENT] =
        {
            .name = "agents",
            .table = options,
            .rows = "agents.assistant.",
            .own = "assistant",
            .name_bytes_max = CONFIG_ENTRY_NAME_BYTES_MAX,
            ENTRIES(config_agent, agents),
            .help = {"Agents. `assistant` is there unless the file names only others; it alone has "
                     "variables and flags. A request that names no agent means `assistant`, or "
                     "else the first in the file.",
                     "智能体。除非文件只写了其他名称，否则总有 `assistant`；只有它可以用环境变量和"
                     "参数设置。请求未指定智能体时使用 `assistant`，没有它时使用文件中的第一个。"},
            .example = "agents:\n"
                       "  assistant: {model: main}\n"
                       "  support:\n"
                       "    model: careful\n"
                       "    prompt: You help customers of Example Ltd.\n"
                       "    tools: [calendar]\n"
                       "    policy: {calendar_delete: deny}\n"
                       "    budget: {cost: 1.0}\n",
        },
    [OF_MCP] =
        {
            .name = "mcp",
            .table = mcp_rows,
            .rows = "",
            .name_bytes_max = CONFIG_MCP_NAME_BYTES_MAX,
            ENTRIES(config_mcp, mcps),
            .finish = finish_mcp,
            .help =
                {"MCP servers that offer tools. Each has `command` or `url`. Its tools are called "
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
    [OF_TOOL] =
        {
            .name = "tools",
            .table = tool_rows,
            .rows = "",
            .list = true,
            .tag = "http",
            ENTRIES(config_http_tool, http_tools),
            .finish = finish_tool,
            .help =
                {"Services of your own that the agent may call. The answer is `{content?, result, "
                 "error?, ui_hints?}`; any other JSON is the result, and a status other than 2xx "
                 "an "
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
    [OF_WEBHOOK] =
        {
            .name = "webhooks",
            .table = webhook_rows,
            .rows = "",
            .list = true,
            ENTRIES(config_webhook, webhooks),
            .finish = finish_webhook,
            .help = {"Addresses that are told when somebody is asked something, and when it is "
                     "settled.",
                     "有待办事项出现或处理完时通知的地址。"},
            .example = "webhooks:\n"
                       "  - url: https://example.org/hook\n"
                       "    secret_file: hook-secret.txt\n"
                       "    events: [interaction.opened]\n",
        },
    [OF_CHANNEL] =
        {
            .name = "channels",
            .table = channel_rows,
            .rows = "",
            .name_bytes_max = CHANNEL_NAME_BYTES_MAX,
            ENTRIES(config_channel, channels),
            .finish = finish_name,
            .help =
                {"Chat platforms on which people reach an agent: WeChat (`weixin`), a WeChat "
                 "Official Account (`wechat_oa`), Telegram (`telegram`), or a service of your own "
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

#define BEGINS(type)                                                                         \
    _Static_assert(offsetof(struct type, values) == offsetof(struct config_entry, values) && \
                       offsetof(struct type, name) == offsetof(struct config_entry, name),   \
                   "an entry begins so")
BEGINS(config_model);
BEGINS(config_agent);
BEGINS(config_mcp);
BEGINS(config_http_tool);
BEGINS(config_webhook);
BEGINS(config_channel);

struct config_entries config_entries(const struct config *config, enum option_of of)
{
    struct config_entries entries;
    memcpy(&entries, (const char *)config + option_maps[of].offset, sizeof entries);
    return entries;
}

/* ---- what one row cannot say about another ---- */

/* A tool is known by its name alone, as the tools of a server together are by the server's; and a
 * read has no risk. */
static enum err finish_tool(const struct option_target *target, void *entries, size_t index)
{
    const struct config_http_tool *tools = entries, *tool = &tools[index];
    const struct config_mcps *mcps = &target->config->mcps;
    for (size_t i = 0; i < index; i++)
        if (str_eq(tools[i].name, tool->name))
            return option_refuse_row(target, tool->line, "name",
                                     "is the name of a tool above; give each its own");
    for (size_t i = 0; i < mcps->count; i++)
        if (str_eq(mcps->items[i].name, tool->name))
            return option_refuse_row(target, tool->line, "name",
                                     "is the name of an MCP server; give each its own");
    if (!tool->write && option_given(target, "risk"))
        return option_refuse_row(target, tool->line, "risk",
                                 "is said of a tool that only reads; leave it out");
    option_value(target, "risk")->silent = !tool->write;
    return OK;
}

/* The secret of a message that waits to be sent is found by its URL. */
static enum err finish_webhook(const struct option_target *target, void *entries, size_t index)
{
    struct config_webhook *hooks = entries, *hook = &hooks[index];
    for (size_t i = 0; i < index; i++)
        if (str_eq(hooks[i].url, hook->url))
            return option_refuse_row(target, hook->line, "url",
                                     "is the address of a webhook above; list all events there");
    static const struct config_key_form key = {.bytes_max = CONFIG_SECRET_FILE_BYTES_MAX,
                                               .safe_min = AUTH_KEY_BYTES_SAFE,
                                               .check = option_secret_check};
    return config_read_key(target, "secret_file", &key, &hook->secret);
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
static enum err finish_mcp(const struct option_target *target, void *entries, size_t index)
{
    const struct config_mcp *server = &((struct config_mcp *)entries)[index];
    const struct config_http_tools *tools = &target->config->http_tools;
    bool child = server->command.count, url = server->url.len;
    if (option_tool_taken(server->name))
        return option_refuse_row(target, server->line, "",
                                 "is the name of a built-in tool; choose another one");
    for (size_t i = 0; i < tools->count; i++)
        if (str_eq(tools->items[i].name, server->name))
            return option_refuse_row(target, server->line, "",
                                     "is the name of an HTTP tool; give each its own");
    if (child == url)
        return option_refuse_row(target, server->line, "",
                                 child ? "has both command and url; remove one"
                                       : "has neither command nor url; write one of them");
    if (child && server->headers.count)
        return option_refuse_row(target, server->line, "headers",
                                 "is said of a program, which gets none; use env");
    if (url && server->env.count)
        return option_refuse_row(target, server->line, "env",
                                 "is said of a server that is not started here; use headers");
    for (size_t i = 0; i < server->headers.count; i++)
        if (mcp_header(server->headers.items[i].name))
            return option_refuse_row(target, server->line, "headers",
                                     "has a header that Fermata sets itself; leave it out");
    option_value(target, "command")->silent = option_value(target, "env")->silent = url;
    option_value(target, "url")->silent = option_value(target, "headers")->silent = child;
    return OK;
}

/* Of a channel. */
static enum err finish_name(const struct option_target *target, void *entries, size_t index)
{
    const struct config_channel *channel = &((struct config_channel *)entries)[index];
    if (index == CHANNELS_MAX)
        return option_refuse_row(target, channel->line, "", "is one too many; 32 are enough");
    for (size_t i = 0; i < channel->name.len; i++)
        if (channel->name.p[i] != char_lower(channel->name.p[i]))
            return option_refuse_row(
                target, channel->line, "",
                "is no name; write up to 32 lower-case letters, digits, _ and -");
    return OK;
}
