/* SPDX-License-Identifier: Apache-2.0
 *
 * The option table, the types of values, and how a value gets into its field.
 *
 * Invariants: 1. text that passed option_set is say_plain, so every value survives config_print and
 * yaml_parse unchanged; 2. a refusal never repeats a secret.
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
    {"script", PATH, FIELD(script), "",
     .help = {"file that the scripted model plays, see docs/SCRIPT.md",
              "脚本模型播放的文件，格式见 docs/SCRIPT.md"}},
    {"agents.assistant.busy", BUSY, FIELD(busy), "enqueue",
     .help = {"a message while a run is under way: wait, be refused, or stop that run",
              "运行期间收到新消息时：排队、拒绝，或中断当前运行"}},
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
     .help = {"largest uploaded file; no route takes uploads yet", "上传文件的最大字节数；目前还没有接收上传的接口"}},
    {"limits.connections", U32, FIELD(connections_max), "10000", .min = 1, .max = 1000 * 1000,
     .help = {"most connections at a time", "同时连接数上限"}},
    {"limits.rate", U32, FIELD(rate_max), "0", .min = 0, .max = 1000 * 1000,
     .help = {"requests per key and second; 0 = no limit", "每个密钥每秒的请求数；0 表示不限"}},
};
/* clang-format on */

const size_t option_count = COUNT(options);

/* One value on its way into its field. */
struct setting {
    const struct config *config;
    struct arena *arena;
    const struct option *option;
    struct config_value value;
    struct fault *reterr;
};

typedef enum err parse_fn(const struct setting *s, void *field);
static parse_fn parse_path, parse_secret, parse_listen, parse_url, parse_log, parse_provider,
    parse_busy, parse_bytes, parse_u32, parse_cidrs, parse_origins, parse_hosts;

static const struct {
    struct option_form form;
    parse_fn *parse;
} types[TYPE_COUNT] = {
    [PATH] = {{"PATH", "a path", false}, parse_path},
    [SECRET] = {{"KEY", "up to 256 letters, digits and signs without spaces", false}, parse_secret},
    [LISTEN] = {{"HOST:PORT", "HOST:PORT such as 127.0.0.1:8080 or [::1]:8080", false},
                parse_listen},
    [URL] = {{"URL", "a URL such as https://example.com/fermata", false}, parse_url},
    [LOG] = {{"LEVEL[,FORM]", "debug, info, warn or error, with ,json or ,text if you like", false},
             parse_log},
    [BUSY] = {{"POLICY", "enqueue, reject or interrupt", false}, parse_busy},
    [PROVIDER] = {{"PROVIDER", "demo or scripted", false}, parse_provider},
    [BYTES] = {{"SIZE", "a size such as 512, 64KiB or 16MiB", false}, parse_bytes},
    [U32] = {{"NUMBER", "a whole number", false}, parse_u32},
    [CIDRS] = {{"ADDRESSES", "addresses or ranges such as 10.1.2.3 or 10.0.0.0/8", true},
               parse_cidrs},
    [ORIGINS] = {{"ORIGINS", "origins such as https://app.example.com", true}, parse_origins},
    [HOSTS] = {{"HOSTS", "lower-case host names such as app.example.com or app.example.com:8443",
                true},
               parse_hosts},
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

/* Types. A parser sees items that are say_plain and not empty: one, or of a list any number. */

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

static enum err parse_path(const struct setting *s, void *field)
{
    *(str *)field = only(s);
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

static enum err parse_busy(const struct setting *s, void *field)
{
    static const str names[] = {[BUSY_ENQUEUE] = STR("enqueue"),
                                [BUSY_REJECT] = STR("reject"),
                                [BUSY_INTERRUPT] = STR("interrupt")};
    for (size_t i = 0; i < COUNT(names); i++) {
        if (!str_eq(names[i], only(s))) continue;
        *(enum busy *)field = (enum busy)i;
        return OK;
    }
    return refuse(s, only(s), "is no policy");
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

enum err option_set(struct config *config, struct arena *arena, const struct option *option,
                    struct config_value value, struct fault *reterr)
{
    const struct setting s = {config, arena, option, value, reterr};
    if (value.items.count > CONFIG_LIST_MAX)
        return refuse(&s, STR_EMPTY, "has more than %d items", CONFIG_LIST_MAX);
    for (size_t i = 0; i < value.items.count; i++) {
        str item = value.items.items[i];
        if (item.len == 0) return refuse(&s, item, "is an empty item");
        if (item.len > CONFIG_TEXT_BYTES_MAX) return refuse(&s, item, "is too long");
        if (!say_plain(item)) return refuse(&s, item, "has characters that cannot be printed");
    }
    enum err e = types[option->type].parse(&s, (char *)config + option->offset);
    if (e) return e;
    config->values[option - options] = value;
    return OK;
}
