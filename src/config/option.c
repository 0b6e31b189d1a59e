/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of options (name, type, default, help), and what is made from rows: names, places,
 * refusals.
 *
 *     row                      as an option                 in an entry of a map
 *     model.price.input        model: {price: {input}}      models: {main: {price: {input}}}
 *     agents.assistant.plan    agents: {assistant: {plan}}  agents: {support: {plan}}
 *
 * Rows of one map stand together, and rows of one section, too. A row says what struct its field is
 * in; whose struct that is comes from the target (option.h), which has the types of values, too. Rows
 * of what stands in the file alone are in record.c.
 *
 * To add an option: a field in config.h and a row in options[]; then run scripts/gen-docs.
 */
#include "config/option.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/say.h"

#define FIELD(member) OF_CONFIG, offsetof(struct config, member)
#define AGENT(member) OF_AGENT, offsetof(struct config_agent, member)
#define LLM(member)   OF_MODEL, offsetof(struct config_model, member)
#define KIB           1024ULL
#define GIB           (1024ULL * 1024 * 1024)

enum { HOUR_S = 60 * 60, TOKENS_MAX = 1000 * 1000 * 1000, MONEY_MAX = 1000 * 1000 };

/* clang-format off */
const struct option options[] = {
    {"config", PATH, FIELD(file), "fermata.yaml",
     .help = {"configuration file; the default one may be missing",
              "配置文件；默认文件可以不存在"}, .not_in_file = true},
    {"listen", LISTEN, FIELD(listen), "127.0.0.1:8080",
     .help = {"address to serve on; port 0 takes any free one",
              "监听地址；端口 0 表示任选空闲端口"}},
    {"data", PATH, FIELD(data), "./data",
     .help = {"folder for the database, files and keys; made if missing",
              "存放数据库、文件和密钥的目录；不存在时自动创建"}},
    {"api_key", SECRET, FIELD(api_key), "",
     .help = {"a first API key, so that login is required from the start",
              "第一个 API 密钥，使服务从启动起就要求登录"}},
    {"api_key_file", PATH, FIELD(api_key_file), "",
     .help = {"file that holds the first API key; instead of api_key",
              "存放第一个 API 密钥的文件；用来代替 api_key"}},
    {"public_url", URL, FIELD(public_url), "",
     .help = {"address that browsers use, with the path prefix of a proxy if there is one",
              "浏览器访问的地址；若经代理则包含路径前缀"}},
    {"trusted_proxies", CIDRS, FIELD(trusted_proxies), "",
     .help = {"proxies whose forwarded headers are believed",
              "可信代理：采信其转发头"}},
    {"log", LOG, FIELD(log), "info",
     .help = {"lowest level to log, and the form of a line",
              "日志的最低级别和行格式"}},
    {"secret_file", PATH, FIELD(secret_file), "",
     .help = {"file that holds the server's secret; default: secret.key in the data folder",
              "存放服务器主密钥的文件；默认为数据目录中的 secret.key"}},
    {"storage.blobs", STORAGE, FIELD(blobs), "", .env = "FERMATA_BLOB_URL",
     .help = {"folder for files that people send and large results; default: blobs in the data folder",
              "存放用户文件和大型结果的目录；默认为数据目录中的 blobs"}},
    {"storage.grace", U32, FIELD(grace_s), "86400", .min = 0, .max = 365 * 24 * 60 * 60,
     .help = {"seconds that a stored file stays when nothing names it; 0 may take one that is "
              "being sent",
              "无人引用的文件保留的秒数；为 0 时可能删除正在上传的文件"}},
    {"storage.hot_bytes", BYTES, FIELD(hot_bytes), "64MiB", .min = 0, .max = 64 * GIB,
     .help = {"memory for rows of conversations that are under way; 0 = none, each step reads them anew",
              "为进行中的会话在内存中保留数据行的字节数；0 表示不保留，每一步都重新读取"}},
    {"script", PATH, FIELD(script), "",
     .help = {"file that the scripted model plays, see docs/SCRIPT.md",
              "脚本模型播放的文件，格式见 docs/SCRIPT.md"}},
    {"script_log", PATH, FIELD(script_log), "",
     .help = {"file to which the scripted model adds every request it gets, one JSON line each",
              "脚本模型把收到的每个请求追加到此文件，每个一行 JSON"}},
    {"agents.assistant.model", NAME, AGENT(model), "",
     .help = {"its model, an entry of models; default: the options below model, or the only entry",
              "使用的模型，即 models 中的一项；默认为 model 下的选项，或唯一的一项"}},
    {"agents.assistant.prompt", TEXT, AGENT(prompt), "",
     .help = {"your own instructions, put before the built-in ones",
              "你自己的提示词，放在内置提示词之前"}},
    {"agents.assistant.tools", TOOLS, AGENT(tools), "*",
     .help = {"tools that it may use, by name, by pack such as calendar, by MCP server, or by "
              "pattern",
              "允许使用的工具：工具名、工具包名（如 calendar）、MCP 服务器名或通配名"}},
    {"agents.assistant.plan", PLAN, AGENT(plan), "auto",
     .help = {"whether a plan comes before the work: when it helps, always, never",
              "先列计划再执行：按需、总是、从不"}},
    {"agents.assistant.ask_user", BOOL, AGENT(ask_user), "true",
     .help = {"whether it may ask the person back", "是否可以向用户提问"}},
    {"agents.assistant.max_rounds", U32, AGENT(max_rounds), "30",
     .min = 1, .max = AGENT_ROUNDS_SET_MAX,
     .help = {"model turns with tool calls in one run; then it reports and ends",
              "一次运行中带工具调用的模型轮数上限；用完即汇报并结束"}},
    {"agents.assistant.busy", BUSY, AGENT(busy), "enqueue",
     .help = {"a message while a run is under way: wait, be refused, or stop that run",
              "运行期间收到新消息时：排队、拒绝，或中断当前运行"}},
    {"agents.assistant.on_disconnect", DISCONNECT, AGENT(on_disconnect), "continue",
     .help = {"when the last one who reads along with a run has gone: go on, wait before the next "
              "model call until somebody says so, or stop it",
              "最后一个查看运行的人离开时：继续、在下次调用模型前暂停等待确认，或停止"}},
    {"agents.assistant.locale", LOCALE, AGENT(locale), "",
     .help = {"language of its answers; default: that of the person's message",
              "回答使用的语言；默认与用户的消息相同"}},
    {"agents.assistant.starters", TEXTS, AGENT(starters), "",
     .help = {"sentences that an empty conversation offers", "新对话中供选择的开场白"}},
    {"agents.assistant.policy", POLICY, AGENT(policy), "",
     .help = {"which tools run at once, after an approval, or not at all; default: reads run, "
              "writes need an approval",
              "工具直接运行、需要批准或禁止；默认：只读直接运行，写操作需要批准"}},
    {"agents.assistant.approvers", APPROVERS, AGENT(policy), "",
     .help = {"which role approves calls of a tool, instead of the person whose run it is",
              "由哪种角色批准某工具的调用，而不是由发起运行的用户"}},
    {"agents.assistant.budget.tokens", U64, AGENT(tokens_max), "0",
     .min = 0, .max = 1000ULL * 1000 * 1000 * 1000,
     .help = {"tokens of one run, in and out; 0 = no limit", "一次运行的 token 总数；0 表示不限"}},
    {"agents.assistant.budget.cost", COST, AGENT(cost_max), "0", .min = 0, .max = MONEY_MAX,
     .help = {"what one run may cost, in the currency of its model's prices; 0 = no limit",
              "一次运行的费用上限，货币与模型价格相同；0 表示不限"}},
    {"agents.assistant.budget.minutes", U32, AGENT(minutes_max), "0",
     .min = 0, .max = 365 * 24 * 60,
     .help = {"minutes of one run, waiting for people not counted; 0 = no limit",
              "一次运行的分钟数，不含等待用户的时间；0 表示不限"}},
    {"model.provider", PROVIDER, LLM(provider), "demo", .needed = true,
     .help = {"where answers come from: the built-in demo model, a script, or a service that speaks "
              "the protocol of OpenAI or of Anthropic",
              "回答的来源：内置演示模型、脚本，或使用 OpenAI 或 Anthropic 协议的服务"}},
    {"model.base_url", ENDPOINT, LLM(base_url), "",
     .help = {"address of the service, of openai with /v1 and of anthropic without it; default: "
              "https://api.openai.com/v1 or https://api.anthropic.com",
              "服务地址，openai 带 /v1，anthropic 不带；默认为 https://api.openai.com/v1 或 "
              "https://api.anthropic.com"}},
    {"model.name", NAME, LLM(model), "",
     .help = {"what the service calls the model; needed for openai and anthropic",
              "服务中的模型名称；openai 和 anthropic 必填"}},
    {"model.api_key", SECRET, LLM(api_key), "",
     .help = {"key of the service", "服务的密钥"}},
    {"model.api_key_file", PATH, LLM(api_key_file), "",
     .help = {"file that holds the key of the service; instead of api_key",
              "存放服务密钥的文件；用来代替 api_key"}},
    {"model.window", U32, LLM(window), "0", .min = 0, .max = TOKENS_MAX,
     .help = {"tokens of a request and its answer together; 0 = not known",
              "一次请求及其回答的 token 总数上限；0 表示未知"}},
    {"model.max_output", U32, LLM(max_output), "0", .min = 0, .max = TOKENS_MAX,
     .help = {"tokens of one answer to ask for at most; 0 = the service decides",
              "一次回答最多请求的 token 数；0 表示由服务决定"}},
    {"model.images", BOOL, LLM(images), "true",
     .help = {"whether it can be shown pictures", "是否可以接收图片"}},
    {"model.retry_ms", U32, LLM(retry_ms), "500", .min = 0, .max = 60 * 1000,
     .help = {"milliseconds before a failed call is tried again; doubles each time",
              "调用失败后重试前等待的毫秒数；每次加倍"}},
    {"model.connect_s", U32, LLM(connect_s), "10", .min = 1, .max = HOUR_S,
     .help = {"seconds to wait for a connection", "等待连接的秒数"}},
    {"model.first_byte_s", U32, LLM(first_byte_s), "60", .min = 1, .max = HOUR_S,
     .help = {"seconds to wait for the beginning of an answer", "等待回答开始的秒数"}},
    {"model.idle_s", U32, LLM(idle_s), "60", .min = 1, .max = HOUR_S,
     .help = {"seconds to wait for more of it", "等待后续内容的秒数"}},
    {"model.price.input", PRICE, LLM(price.input), "", .min = 0, .max = MONEY_MAX,
     .help = {"price of a million tokens that it reads", "每百万输入 token 的价格"}},
    {"model.price.output", PRICE, LLM(price.output), "", .min = 0, .max = MONEY_MAX,
     .help = {"price of a million tokens that it writes", "每百万输出 token 的价格"}},
    {"model.price.currency", CURRENCY, LLM(price.currency), "USD",
     .help = {"currency of its prices", "价格的货币"}},
    {"auth.cors", ORIGINS, FIELD(auth_cors), "",
     .help = {"origins of other sites whose pages may call the API",
              "允许跨域调用接口的网站来源"}},
    {"auth.hosts", HOSTS, FIELD(auth_hosts), "",
     .help = {"further host names that requests may be addressed to",
              "请求可以使用的其他主机名"}},
    {"web.frame_ancestors", ORIGINS, FIELD(web_frame_ancestors), "",
     .help = {"origins of other sites that may show the page in a frame",
              "允许在框架中显示本页面的网站来源"}},
    {"limits.body", BYTES, FIELD(body_bytes_max), "16MiB", .min = KIB, .max = RUN_INPUT_BYTES_MAX,
     .help = {"largest request body", "请求正文的最大字节数"}},
    {"limits.upload", BYTES, FIELD(upload_bytes_max), "100MiB", .min = KIB, .max = 16 * GIB,
     .help = {"largest file that may be uploaded", "可上传文件的最大字节数"}},
    {"limits.storage", BYTES, FIELD(storage_bytes_max), "0", .min = 0, .max = 1024 * 1024 * GIB,
     .help = {"most that each user may store; 0 = no limit", "每个用户最多可存储的字节数；0 表示不限"}},
    {"limits.connections", U32, FIELD(connections_max), "10000", .min = 1, .max = 1000 * 1000,
     .help = {"most connections at a time", "同时连接数上限"}},
    {"limits.rate", U32, FIELD(rate_max), "0", .min = 0, .max = 1000 * 1000,
     .help = {"requests per key and second; 0 = no limit", "每个密钥每秒的请求数；0 表示不限"}},
    {0},
};
/* clang-format on */

const size_t option_count = COUNT(options) - 1;

size_t option_rows(const struct option *table)
{
    size_t count = 0;
    while (table[count].name) count++;
    return count;
}

/* Names made from the row. */

static const struct option *row_at(const struct option *table, str name)
{
    while (table->name && (table->not_in_file || !str_eq(str_c(table->name), name))) table++;
    return table->name ? table : NULL;
}

const struct option *option_at(str name)
{
    return row_at(options, name);
}

struct config_value *option_value(const struct option_target *target, const char *row)
{
    return &target->values[row_at(target->table, str_c(row)) - target->table];
}

bool option_given(const struct option_target *target, const char *row)
{
    return option_value(target, row)->source != CONFIG_DEFAULT;
}

struct option_name option_flag(const struct option *option)
{
    struct option_name flag = {0};
    snprintf(flag.text, sizeof flag.text, "%s", option->name);
    for (char *c = flag.text; *c; c++)
        if (*c == '.' || *c == '_') *c = '-';
    return flag;
}

struct option_name option_env(const struct option *option)
{
    struct option_name env = {0};
    if (option->env) {
        snprintf(env.text, sizeof env.text, "%s", option->env);
        return env;
    }
    snprintf(env.text, sizeof env.text, "FERMATA_%s", option->name);
    for (char *c = env.text; *c; c++) {
        if (*c == '.') *c = '_';
        if (*c >= 'a' && *c <= 'z') *c = (char)(*c - ('a' - 'A'));
    }
    return env;
}

str option_leaf(str name)
{
    ptrdiff_t dot;
    while ((dot = str_find_char(name, '.')) >= 0) name = str_drop(name, (size_t)dot + 1);
    return name;
}

struct option_place option_place(const struct config *config, const struct option *option,
                                 const struct config_value *value)
{
    struct option_place p;
    switch (value->source) {
    case CONFIG_DEFAULT:
        snprintf(p.text, sizeof p.text, "default");
        break;
    case CONFIG_FILE:
        snprintf(p.text, sizeof p.text, "%s:%u", say(config->file).text, value->line);
        break;
    case CONFIG_ENVIRONMENT:
        snprintf(p.text, sizeof p.text, "%s", option_env(option).text);
        break;
    case CONFIG_FLAG:
        snprintf(p.text, sizeof p.text, "--%s", option_flag(option).text);
        break;
    }
    return p;
}

struct option_place option_place_line(const struct config *config, uint32_t line)
{
    return option_place(config, NULL, &(struct config_value){.source = CONFIG_FILE, .line = line});
}

struct option_path option_path(const struct option_target *target, str name)
{
    struct option_path path;
    str below = str_drop(name, strlen(target->rows));
    snprintf(path.text, sizeof path.text, "%s%.*s", target->path, STR_ARG(below));
    return path;
}

enum err option_refuse(const struct option_target *target, const char *place, const char *path,
                       const char *what, ...)
{
    char text[sizeof target->reterr->text];
    va_list args;
    va_start(args, what);
    vsnprintf(text, sizeof text, what, args);
    va_end(args);
    return fault_field(target->reterr, ERR_CONFIG, path, "%s: \"%s\" %s", place, path, text);
}

enum err option_refuse_row(const struct option_target *target, uint32_t line, const char *row,
                           const char *what, ...)
{
    char text[sizeof target->reterr->text];
    va_list args;
    va_start(args, what);
    vsnprintf(text, sizeof text, what, args);
    va_end(args);
    struct option_path path = option_path(target, str_c(row));
    if (!*row) path.text[strlen(path.text) - 1] = '\0'; /* without the dot */
    return option_refuse(target, option_place_line(target->config, line).text, path.text, "%s",
                         text);
}
