/* SPDX-License-Identifier: Apache-2.0
 *
 * The option table, the types of values, and how a value gets into its field.
 *
 * Invariants: 1. text that passed option_set is valid UTF-8 without NUL, and one printable line
 * unless its type takes prose; so every value survives config_print and yaml_parse unchanged; 2. a
 * refusal never repeats a secret.
 *
 * To add an option: a field in struct config and a row in options[]; then run scripts/gen-docs. To
 * add a type: its name in option.h, a row in types[], and a parser.
 */
#include "app/option.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "app/say.h"
#include "base/limits.h"
#include "store/blob.h"
#include "store/keys.h"

#define FIELD(member) offsetof(struct config, member)
#define KIB           1024ULL
#define GIB           (1024ULL * 1024 * 1024)

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
    {"script", PATH, FIELD(script), "",
     .help = {"file that the scripted model plays, see docs/SCRIPT.md",
              "脚本模型播放的文件，格式见 docs/SCRIPT.md"}},
    {"script_log", PATH, FIELD(script_log), "",
     .help = {"file to which the scripted model adds every request it gets, one JSON line each",
              "脚本模型把收到的每个请求追加到此文件，每个一行 JSON"}},
    {"agents.assistant.prompt", TEXT, FIELD(agent.prompt), "",
     .help = {"your own instructions, put before the built-in ones",
              "你自己的提示词，放在内置提示词之前"}},
    {"agents.assistant.tools", TOOLS, FIELD(agent.tools), "*",
     .help = {"tools that it may use, by name, by pack such as calendar, or by pattern",
              "允许使用的工具：工具名、工具包名（如 calendar）或通配名"}},
    {"agents.assistant.plan", PLAN, FIELD(agent.plan), "auto",
     .help = {"whether a plan comes before the work: when it helps, always, never",
              "先列计划再执行：按需、总是、从不"}},
    {"agents.assistant.ask_user", BOOL, FIELD(agent.ask_user), "true",
     .help = {"whether it may ask the person back", "是否可以向用户提问"}},
    {"agents.assistant.max_rounds", U32, FIELD(agent.max_rounds), "30",
     .min = 1, .max = AGENT_ROUNDS_SET_MAX,
     .help = {"model turns with tool calls in one run; then it reports and ends",
              "一次运行中带工具调用的模型轮数上限；用完即汇报并结束"}},
    {"agents.assistant.busy", BUSY, FIELD(agent.busy), "enqueue",
     .help = {"a message while a run is under way: wait, be refused, or stop that run",
              "运行期间收到新消息时：排队、拒绝，或中断当前运行"}},
    {"agents.assistant.on_disconnect", DISCONNECT, FIELD(agent.on_disconnect), "continue",
     .help = {"when the last one who reads along with a run has gone: go on, wait before the next "
              "model call until somebody says so, or stop it",
              "最后一个查看运行的人离开时：继续、在下次调用模型前暂停等待确认，或停止"}},
    {"agents.assistant.locale", LOCALE, FIELD(agent.locale), "",
     .help = {"language of its answers; default: that of the person's message",
              "回答使用的语言；默认与用户的消息相同"}},
    {"agents.assistant.starters", TEXTS, FIELD(agent.starters), "",
     .help = {"sentences that an empty conversation offers", "新对话中供选择的开场白"}},
    {"agents.assistant.policy", POLICY, FIELD(agent.policy), "",
     .help = {"which tools run at once, after an approval, or not at all; default: reads run, "
              "writes need an approval",
              "工具直接运行、需要批准或禁止；默认：只读直接运行，写操作需要批准"}},
    {"agents.assistant.approvers", APPROVERS, FIELD(agent.policy), "",
     .help = {"which role approves calls of a tool, instead of the person whose run it is",
              "由哪种角色批准某工具的调用，而不是由发起运行的用户"}},
    {"agents.assistant.budget.tokens", U64, FIELD(agent.tokens_max), "0",
     .min = 0, .max = 1000ULL * 1000 * 1000 * 1000,
     .help = {"tokens of one run, in and out; 0 = no limit", "一次运行的 token 总数；0 表示不限"}},
    {"agents.assistant.budget.minutes", U32, FIELD(agent.minutes_max), "0",
     .min = 0, .max = 365 * 24 * 60,
     .help = {"minutes of one run, waiting for people not counted; 0 = no limit",
              "一次运行的分钟数，不含等待用户的时间；0 表示不限"}},
    {"model.provider", PROVIDER, FIELD(model_provider), "demo",
     .help = {"where answers come from: the built-in demo model, or a script",
              "回答的来源：内置演示模型，或脚本"}},
    {"auth.cors", ORIGINS, FIELD(auth_cors), "",
     .help = {"origins of other sites whose pages may call the API",
              "允许跨域调用接口的网站来源"}},
    {"auth.hosts", HOSTS, FIELD(auth_hosts), "",
     .help = {"further host names that requests may be addressed to",
              "请求可以使用的其他主机名"}},
    {"limits.body", BYTES, FIELD(body_bytes_max), "16MiB", .min = KIB, .max = GIB,
     .help = {"largest request body", "请求正文的最大字节数"}},
    {"limits.upload", BYTES, FIELD(upload_bytes_max), "100MiB", .min = KIB, .max = 16 * GIB,
     .help = {"largest file that may be uploaded", "可上传文件的最大字节数"}},
    {"limits.connections", U32, FIELD(connections_max), "10000", .min = 1, .max = 1000 * 1000,
     .help = {"most connections at a time", "同时连接数上限"}},
    {"limits.rate", U32, FIELD(rate_max), "0", .min = 0, .max = 1000 * 1000,
     .help = {"requests per key and second; 0 = no limit", "每个密钥每秒的请求数；0 表示不限"}},
};
/* clang-format on */

const size_t option_count = COUNT(options);

const char *const plan_names[] = {
    [PLAN_AUTO] = "auto", [PLAN_ALWAYS] = "always", [PLAN_NEVER] = "never", NULL};
const char *const locale_names[] = {"zh-CN", "en", NULL};

/* One value on its way into its field. */
struct setting {
    const struct config *config;
    struct arena *arena;
    const struct option *option;
    struct config_value value;
    struct fault *reterr;
};

typedef enum err parse_fn(const struct setting *s, void *field);
static parse_fn parse_text, parse_texts, parse_secret, parse_listen, parse_url, parse_log,
    parse_provider, parse_busy, parse_disconnect, parse_plan, parse_locale, parse_bool, parse_bytes,
    parse_u32, parse_u64, parse_tools, parse_policy, parse_approvers, parse_cidrs, parse_origins,
    parse_hosts, parse_storage;

static const struct {
    struct option_form form;
    parse_fn *parse;
} types[TYPE_COUNT] = {
    [PATH] = {{"PATH", "a path", SHAPE_ONE, false}, parse_text},
    [SECRET] = {{"KEY", "up to 256 letters, digits and signs without spaces", SHAPE_ONE, false},
                parse_secret},
    [LISTEN] = {{"HOST:PORT", "HOST:PORT such as 127.0.0.1:8080 or [::1]:8080", SHAPE_ONE, false},
                parse_listen},
    [URL] = {{"URL", "a URL such as https://example.com/fermata", SHAPE_ONE, false}, parse_url},
    [LOG] = {{"LEVEL[,FORM]", "debug, info, warn or error, with ,json or ,text if you like",
              SHAPE_ONE, false},
             parse_log},
    [BUSY] = {{"POLICY", "enqueue, reject or interrupt", SHAPE_ONE, false}, parse_busy},
    [DISCONNECT] = {{"WHAT", "continue, pause or cancel", SHAPE_ONE, false}, parse_disconnect},
    [PROVIDER] = {{"PROVIDER", "demo or scripted", SHAPE_ONE, false}, parse_provider},
    [PLAN] = {{"WHEN", "auto, always or never", SHAPE_ONE, false}, parse_plan},
    [LOCALE] = {{"LOCALE", "zh-CN or en", SHAPE_ONE, false}, parse_locale},
    [BOOL] = {{"BOOL", "true or false", SHAPE_ONE, false}, parse_bool},
    [BYTES] = {{"SIZE", "a size such as 512, 64KiB or 16MiB", SHAPE_ONE, false}, parse_bytes},
    [U32] = {{"NUMBER", "a whole number", SHAPE_ONE, false}, parse_u32},
    [U64] = {{"COUNT", "a whole number", SHAPE_ONE, false}, parse_u64},
    [TEXT] = {{"TEXT", "any text, on several lines if you like", SHAPE_ONE, true}, parse_text},
    [TEXTS] = {{"TEXTS", "texts", SHAPE_LIST, true}, parse_texts},
    [TOOLS] = {{"TOOLS", "names of tools or packs such as calendar, or patterns such as calendar_*",
                SHAPE_LIST, false},
               parse_tools},
    [POLICY] = {{"TOOL=VERDICT",
                 "tools or patterns such as calendar_*, each with allow, confirm or deny",
                 SHAPE_MAP, false},
                parse_policy},
    [APPROVERS] = {{"TOOL=ROLE",
                    "tools or patterns such as calendar_*, each with user, approver or operator",
                    SHAPE_MAP, false},
                   parse_approvers},
    [CIDRS] = {{"ADDRESSES", "addresses or ranges such as 10.1.2.3 or 10.0.0.0/8", SHAPE_LIST,
                false},
               parse_cidrs},
    [ORIGINS] = {{"ORIGINS", "origins such as https://app.example.com", SHAPE_LIST, false},
                 parse_origins},
    [HOSTS] = {{"HOSTS", "lower-case host names such as app.example.com or app.example.com:8443",
                SHAPE_LIST, false},
               parse_hosts},
    [STORAGE] = {{"FOLDER", "a folder, or file: and a folder", SHAPE_ONE, false}, parse_storage},
};

const struct option_form *option_form(enum option_type type)
{
    return &types[type].form;
}

/* Names made from the row. */

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

/* Types. A parser sees items that are checked and not empty: one, or of a list any number, or of a
 * map any number of pairs with different names. */

static enum err refuse(const struct setting *s, str item, const char *why, ...) PRINTF(3, 4);

static enum err refuse(const struct setting *s, str item, const char *why, ...)
{
    char reason[128];
    va_list args;
    va_start(args, why);
    vsnprintf(reason, sizeof reason, why, args);
    va_end(args);
    bool hidden = s->option->type == SECRET;
    return fault_field(s->reterr, ERR_CONFIG, s->option->name, "%s: %s: \"%s\" %s; write %s",
                       option_place(s->config, s->option, &s->value).text, s->option->name,
                       hidden ? "(hidden)" : say(item).text, reason,
                       types[s->option->type].form.write);
}

static str only(const struct setting *s)
{
    return s->value.items.items[0];
}

static enum err parse_text(const struct setting *s, void *field)
{
    *(str *)field = only(s);
    return OK;
}

static enum err parse_storage(const struct setting *s, void *field)
{
    const char *refused = blob_url_check(only(s));
    if (refused) return refuse(s, only(s), "%s", refused);
    *(str *)field = only(s);
    return OK;
}

static enum err parse_texts(const struct setting *s, void *field)
{
    *(struct strs *)field = s->value.items;
    return OK;
}

const char *option_secret_check(str key)
{
    if (key.len == 0) return "is empty";
    if (key.len > CONFIG_SECRET_BYTES_MAX) return "is longer than 256 bytes";
    for (size_t i = 0; i < key.len; i++)
        if (key.p[i] <= ' ' || key.p[i] > '~')
            return "has spaces or characters that do not fit in a header";
    return NULL;
}

str option_line(str bytes)
{
    if (str_ends(bytes, STR("\n"))) bytes.len--;
    if (str_ends(bytes, STR("\r"))) bytes.len--;
    return bytes;
}

static enum err parse_secret(const struct setting *s, void *field)
{
    const char *refused = option_secret_check(only(s));
    if (refused) return refuse(s, only(s), "%s", refused);
    *(str *)field = only(s);
    return OK;
}

static enum err parse_listen(const struct setting *s, void *field)
{
    struct host_port address;
    const char *refused = host_port_parse(only(s), &address);
    if (!refused && !address.has_port) refused = "has no port";
    if (refused) return refuse(s, only(s), "%s", refused);
    address.host = arena_str(s->arena, address.host); /* ends in NUL, without its bracket */
    *(struct host_port *)field = address;
    return OK;
}

static enum err parse_url(const struct setting *s, void *field)
{
    struct url url;
    const char *refused = url_parse(only(s), &url);
    if (refused) return refuse(s, only(s), "%s", refused);
    *(struct url *)field = (struct url){.text = arena_str(s->arena, url.text),
                                        .origin = arena_str(s->arena, url.origin),
                                        .prefix = arena_str(s->arena, url.prefix)};
    return OK;
}

static enum err parse_log(const struct setting *s, void *field)
{
    struct config_log log;
    if (log_parse(only(s), &log.level, &log.json)) return refuse(s, only(s), "is no log level");
    *(struct config_log *)field = log;
    return OK;
}

/* The place of the text in a list of names that ends in NULL; ERR_CONFIG: `otherwise` it is. */
static enum err one_of(const struct setting *s, const char *const *names, const char *otherwise,
                       unsigned *ret_index)
{
    for (unsigned i = 0; names[i]; i++) {
        if (!str_eq(str_c(names[i]), only(s))) continue;
        *ret_index = i;
        return OK;
    }
    return refuse(s, only(s), "%s", otherwise);
}

static enum err parse_busy(const struct setting *s, void *field)
{
    static const char *const names[] = {
        [BUSY_ENQUEUE] = "enqueue", [BUSY_REJECT] = "reject", [BUSY_INTERRUPT] = "interrupt", NULL};
    unsigned i = 0;
    enum err e = one_of(s, names, "is no policy", &i);
    if (!e) *(enum busy *)field = (enum busy)i;
    return e;
}

static enum err parse_disconnect(const struct setting *s, void *field)
{
    static const char *const names[] = {[DISCONNECT_CONTINUE] = "continue",
                                        [DISCONNECT_PAUSE] = "pause",
                                        [DISCONNECT_CANCEL] = "cancel",
                                        NULL};
    unsigned i = 0;
    enum err e = one_of(s, names, "is none of them", &i);
    if (!e) *(enum on_disconnect *)field = (enum on_disconnect)i;
    return e;
}

static enum err parse_plan(const struct setting *s, void *field)
{
    unsigned i = 0;
    enum err e = one_of(s, plan_names, "is none of them", &i);
    if (!e) *(enum plan_mode *)field = (enum plan_mode)i;
    return e;
}

static enum err parse_locale(const struct setting *s, void *field)
{
    unsigned i = 0;
    enum err e = one_of(s, locale_names, "is a language it does not speak", &i);
    if (!e) *(str *)field = str_c(locale_names[i]);
    return e;
}

static enum err parse_bool(const struct setting *s, void *field)
{
    static const char *const names[] = {"false", "true", NULL};
    unsigned i = 0;
    enum err e = one_of(s, names, "is neither", &i);
    if (!e) *(bool *)field = i == 1;
    return e;
}

static enum err parse_provider(const struct setting *s, void *field)
{
    static const struct {
        str name;
        bool built;
        enum config_provider provider;
    } rows[] = {
        {STR("demo"), true, PROVIDER_DEMO},
        {STR("scripted"), true, PROVIDER_SCRIPTED},
        {STR("openai"), false, 0},
        {STR("anthropic"), false, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (!str_eq(rows[i].name, only(s))) continue;
        if (!rows[i].built) return refuse(s, only(s), "is not built yet");
        *(enum config_provider *)field = rows[i].provider;
        return OK;
    }
    return refuse(s, only(s), "is no provider");
}

static enum err in_range(const struct setting *s, enum err parsed, uint64_t value)
{
    const struct option *o = s->option;
    if (parsed == ERR_INVALID_FIELD) return refuse(s, only(s), "is not a number");
    if (parsed == OK && value >= o->min && value <= o->max) return OK;
    return refuse(s, only(s), "is not from %llu to %llu", (unsigned long long)o->min,
                  (unsigned long long)o->max);
}

static enum err parse_bytes(const struct setting *s, void *field)
{
    uint64_t value = 0;
    enum err e = str_to_bytes(only(s), &value);
    e = in_range(s, e, value);
    if (!e) *(uint64_t *)field = value;
    return e;
}

static enum err parse_u32(const struct setting *s, void *field)
{
    uint64_t value = 0;
    enum err e = str_to_u64(only(s), &value);
    e = in_range(s, e, value);
    if (!e) *(uint32_t *)field = (uint32_t)value;
    return e;
}

static enum err parse_u64(const struct setting *s, void *field)
{
    uint64_t value = 0;
    enum err e = str_to_u64(only(s), &value);
    e = in_range(s, e, value);
    if (!e) *(uint64_t *)field = value;
    return e;
}

/* Tools, and what may be said about them. */

const char *option_pattern_check(str pattern)
{
    if (pattern.len == 0) return "is empty";
    if (str_ends(pattern, STR("*"))) pattern.len--;
    if (pattern.len > TOOL_NAME_BYTES_MAX) return "is longer than 64 bytes";
    for (size_t i = 0; i < pattern.len; i++) {
        char c = char_lower(pattern.p[i]);
        if (c == '*') return "has a * that is not at its end";
        if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-')
            return "has characters other than letters, digits, _ . and -";
    }
    return NULL;
}

static enum err parse_policy(const struct setting *s, void *field)
{
    struct strs pairs = s->value.items;
    struct policy_row *rows = arena_array(s->arena, pairs.count / 2, sizeof *rows);
    for (size_t i = 0; i < pairs.count / 2; i++) {
        str name = pairs.items[2 * i], verdict = pairs.items[2 * i + 1];
        rows[i].pattern = name;
        const char *refused = option_pattern_check(name);
        if (refused) return refuse(s, name, "%s", refused);
        if (verdict_parse(verdict, &rows[i].verdict))
            return refuse(s, verdict, "is no verdict on %s", say(name).text);
    }
    struct policy *policy = field;
    policy->rows = rows;
    policy->count = pairs.count / 2;
    return OK;
}

static enum err parse_approvers(const struct setting *s, void *field)
{
    struct strs pairs = s->value.items;
    struct approver_row *rows = arena_array(s->arena, pairs.count / 2, sizeof *rows);
    for (size_t i = 0; i < pairs.count / 2; i++) {
        str name = pairs.items[2 * i];
        rows[i] = (struct approver_row){.pattern = name, .role = pairs.items[2 * i + 1]};
        const char *refused = option_pattern_check(name);
        if (refused) return refuse(s, name, "%s", refused);
        unsigned bit;
        if (role_parse(rows[i].role, &bit))
            return refuse(s, rows[i].role, "is no role to approve %s", say(name).text);
    }
    struct policy *policy = field;
    policy->approvers = rows;
    policy->approver_count = pairs.count / 2;
    return OK;
}

static enum err parse_cidrs(const struct setting *s, void *field)
{
    struct strs texts = s->value.items;
    struct cidr *ranges = arena_array(s->arena, texts.count, sizeof *ranges);
    for (size_t i = 0; i < texts.count; i++) {
        const char *refused = cidr_parse(texts.items[i], &ranges[i]);
        if (refused) return refuse(s, texts.items[i], "%s", refused);
    }
    *(struct cidrs *)field = (struct cidrs){ranges, texts.count};
    return OK;
}

static enum err parse_checked(const struct setting *s, const char *(*check)(str), void *field)
{
    struct strs texts = s->value.items;
    for (size_t i = 0; i < texts.count; i++) {
        const char *refused = check(texts.items[i]);
        if (refused) return refuse(s, texts.items[i], "%s", refused);
    }
    *(struct strs *)field = texts;
    return OK;
}

static enum err parse_origins(const struct setting *s, void *field)
{
    return parse_checked(s, origin_check, field);
}

static enum err parse_hosts(const struct setting *s, void *field)
{
    return parse_checked(s, host_check, field);
}

static enum err parse_tools(const struct setting *s, void *field)
{
    return parse_checked(s, option_pattern_check, field);
}

static enum err check_item(const struct setting *s, str item)
{
    const struct option_form *form = &types[s->option->type].form;
    if (item.len == 0) return refuse(s, item, "is an empty item");
    if (item.len > (form->prose ? CONFIG_PROSE_BYTES_MAX : CONFIG_TEXT_BYTES_MAX))
        return refuse(s, item, "is too long");
    if (form->prose && !utf8_valid(item)) return refuse(s, item, "is not valid UTF-8");
    if (!form->prose && !say_plain(item))
        return refuse(s, item, "has characters that cannot be printed");
    return OK;
}

/* The pair that begins at `at`: both parts there, and the name not given before. */
static enum err check_pair(const struct setting *s, size_t at)
{
    const str *pair = &s->value.items.items[at];
    if (pair[0].len == 0) return refuse(s, pair[1], "has no name in front of it");
    if (pair[1].len == 0) return refuse(s, pair[0], "has no value");
    for (size_t i = 0; i < at; i += 2)
        if (str_eq(s->value.items.items[i], pair[0])) return refuse(s, pair[0], "is given twice");
    return OK;
}

enum err option_set(struct config *config, struct arena *arena, const struct option *option,
                    struct config_value value, struct fault *reterr)
{
    const struct setting s = {config, arena, option, value, reterr};
    size_t step = types[option->type].form.shape == SHAPE_MAP ? 2 : 1;
    if (value.items.count / step > CONFIG_LIST_MAX)
        return refuse(&s, STR_EMPTY, "has more than %d items", CONFIG_LIST_MAX);
    for (size_t i = 0; i < value.items.count; i++) {
        enum err e = step == 2 && i % 2 == 0 ? check_pair(&s, i) : OK;
        if (!e) e = check_item(&s, value.items.items[i]);
        if (e) return e;
    }
    enum err e = types[option->type].parse(&s, (char *)config + option->offset);
    if (e) return e;
    config->values[option - options] = value;
    return OK;
}
