/* SPDX-License-Identifier: Apache-2.0
 *
 * Types of values: how one is written, checked, and put into its field.
 *
 * Invariants: 1. text that passed option_set is valid UTF-8 without NUL, and one printable line
 * unless its type takes prose; so every value survives config_print and yaml_parse unchanged; 2. a
 * refusal never repeats a secret.
 *
 * To add a type: its name in option.h, a row in types[], and a parser.
 */
#include "app/config/option.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "app/say.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "store/blob.h"
#include "store/keys.h"

/* One value on its way into its field. */
struct setting {
    const struct option_target *target;
    const struct option *option;
    struct config_value value;
};

typedef enum err parse_fn(const struct setting *s, void *field);
static parse_fn parse_text, parse_texts, parse_secret, parse_listen, parse_url, parse_log,
    parse_provider, parse_busy, parse_disconnect, parse_plan, parse_locale, parse_bool, parse_bytes,
    parse_u32, parse_u64, parse_tools, parse_policy, parse_approvers, parse_cidrs, parse_origins,
    parse_hosts, parse_storage, parse_endpoint, parse_price, parse_cost, parse_currency;

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
    [PROVIDER] = {{"PROVIDER", "demo, scripted, openai or anthropic", SHAPE_ONE, false},
                  parse_provider},
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
    [ENDPOINT] = {{"ADDRESS", "a URL such as http://127.0.0.1:11434/v1", SHAPE_ONE, false},
                  parse_endpoint},
    [MODEL] = {{"MODEL", "the name of a model, such as qwen3", SHAPE_ONE, false}, parse_text},
    [ENTRY] = {{"NAME", "the name of an entry", SHAPE_ONE, false}, parse_text},
    [PRICE] = {{"PRICE", "a number such as 0.5, with up to 6 decimals", SHAPE_ONE, false},
               parse_price},
    [COST] = {{"AMOUNT", "a number such as 1.5, with up to 6 decimals", SHAPE_ONE, false},
              parse_cost},
    [CURRENCY] = {{"CURRENCY", "3 capital letters such as USD", SHAPE_ONE, false}, parse_currency},
};

const struct option_form *option_form(enum option_type type)
{
    return &types[type].form;
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
    struct option_path path = option_path(s->target, str_c(s->option->name));
    return fault_field(s->target->reterr, ERR_CONFIG, path.text, "%s: %s: \"%s\" %s; write %s",
                       option_place(s->target->config, s->option, &s->value).text, path.text,
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
    address.host = arena_str(s->target->arena, address.host); /* ends in NUL, without its bracket */
    *(struct host_port *)field = address;
    return OK;
}

static enum err parse_url(const struct setting *s, void *field)
{
    struct url url;
    const char *refused = url_parse(only(s), &url);
    if (refused) return refuse(s, only(s), "%s", refused);
    *(struct url *)field = (struct url){.text = arena_str(s->target->arena, url.text),
                                        .origin = arena_str(s->target->arena, url.origin),
                                        .prefix = arena_str(s->target->arena, url.prefix)};
    return OK;
}

/* http or https, a host, an optional port, path and query. */
const char *option_address_check(str text)
{
    static const str schemes[] = {STR("http://"), STR("https://")};
    size_t i = 0;
    while (i < COUNT(schemes) && !str_starts(text, schemes[i])) i++;
    if (i == COUNT(schemes)) return "does not begin with http:// or https://";
    for (size_t k = 0; k < text.len; k++)
        if (text.p[k] <= ' ' || text.p[k] > '~') return "has characters that must be escaped";
    if (str_find_char(text, '#') >= 0) return "has a fragment";
    str authority = str_drop(text, schemes[i].len);
    size_t len = 0;
    while (len < authority.len && !memchr("/?", authority.p[len], 2)) len++;
    authority.len = len;
    if (str_find_char(authority, '@') >= 0)
        return "has a user name in it, which logs would show; use a header";
    struct host_port address;
    const char *refused = host_port_parse(authority, &address);
    if (refused) return refused;
    return address.has_port && address.port == 0 ? "has port 0" : NULL;
}

/* Paths are put behind it. */
static enum err parse_endpoint(const struct setting *s, void *field)
{
    str text = only(s);
    const char *refused = option_address_check(text);
    if (!refused && str_find_char(text, '?') >= 0) refused = "has a query";
    /* A password may stand in it, in a user's part or in a query: not repeated. */
    bool hidden = str_find_char(text, '@') >= 0 || str_find_char(text, '?') >= 0;
    if (refused) return refuse(s, hidden ? STR("(hidden)") : text, "%s", refused);
    while (str_ends(text, STR("/"))) text.len--;
    *(str *)field = arena_str(s->target->arena, text);
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
    unsigned i = 0;
    enum err e = one_of(s, provider_names, "is no provider", &i);
    if (!e) *(enum config_provider *)field = (enum config_provider)i;
    return e;
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

/* Money. */

/* "1.5" in millionths; digits on both sides of the point if there is one. */
static enum err parse_decimal(const struct setting *s, uint64_t *ret_millionths)
{
    enum { DECIMALS = 6, MILLION = 1000 * 1000 };
    str decimals = only(s);
    str whole = str_split(&decimals, '.');
    if (!decimals.p) decimals = STR("0");
    uint64_t value = 0, part = 0;
    enum err e = str_to_u64(whole, &value);
    if (str_to_u64(decimals, &part)) e = ERR_INVALID_FIELD;
    if (!e && decimals.len > DECIMALS) return refuse(s, only(s), "has more than 6 decimals");
    e = in_range(s, e, value);
    if (e) return e;
    for (size_t i = decimals.len; i < DECIMALS; i++) part *= 10;
    if (value == s->option->max && part) return in_range(s, OK, value + 1);
    *ret_millionths = value * MILLION + part;
    return OK;
}

static enum err parse_price(const struct setting *s, void *field)
{
    return parse_decimal(s, field);
}

/* In pico units, as tokens times prices are. */
static enum err parse_cost(const struct setting *s, void *field)
{
    uint64_t millionths = 0;
    enum err e = parse_decimal(s, &millionths);
    if (!e) *(uint64_t *)field = millionths * 1000 * 1000;
    return e;
}

static enum err parse_currency(const struct setting *s, void *field)
{
    enum { LETTERS = 3 };
    str text = only(s);
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] < 'A' || text.p[i] > 'Z') return refuse(s, text, "is no currency");
    if (text.len != LETTERS) return refuse(s, text, "is no currency");
    memcpy(field, text.p, LETTERS);
    ((char *)field)[LETTERS] = '\0';
    return OK;
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
    struct policy_row *rows = arena_array(s->target->arena, pairs.count / 2, sizeof *rows);
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
    struct approver_row *rows = arena_array(s->target->arena, pairs.count / 2, sizeof *rows);
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
    struct cidr *ranges = arena_array(s->target->arena, texts.count, sizeof *ranges);
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

enum err option_set(const struct option_target *target, const struct option *option,
                    struct config_value value)
{
    const struct setting s = {target, option, value};
    size_t step = types[option->type].form.shape == SHAPE_MAP ? 2 : 1;
    if (value.items.count / step > CONFIG_LIST_MAX)
        return refuse(&s, STR_EMPTY, "has more than %d items", CONFIG_LIST_MAX);
    for (size_t i = 0; i < value.items.count; i++) {
        enum err e = step == 2 && i % 2 == 0 ? check_pair(&s, i) : OK;
        if (!e) e = check_item(&s, value.items.items[i]);
        if (e) return e;
    }
    char *record = target->fills[option->of];
    enum err e = types[option->type].parse(&s, record + option->offset);
    if (e) return e;
    target->values[option - options] = value;
    return OK;
}
