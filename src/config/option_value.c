/* SPDX-License-Identifier: Apache-2.0
 *
 * Values on their way into fields: checked as their type says, parsed, remembered.
 *
 *     items     each a text that its type takes, one of its words, nothing that its check refuses
 *     parse     the whole value into its field, or why not
 *     values    what was written, for config_print
 *
 * Invariants: 1. an item is valid UTF-8 without NUL, and one printable line unless its type takes
 * more; so every value survives config_print and yaml_parse unchanged; 2. a refusal never repeats a
 * secret. Nobody can tell which headers of a request and which variables of a program are secret, so
 * the values of all are hidden.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/say.h"
#include "base/utf8.h"
#include "config/option.h"
#include "store/blob/blob.h"
#include "store/table/keys.h"

struct option_setting {
    const struct option_target *target;
    const struct option *option;
    const struct option_form *form;
    struct config_value value;
    bool map;
};

/* ---- words ---- */

const char *const plan_names[] = {
    [PLAN_AUTO] = "auto", [PLAN_ALWAYS] = "always", [PLAN_NEVER] = "never", NULL};
const char *const locale_names[] = {"zh-CN", "en", NULL};
const char *const provider_names[] = {[PROVIDER_DEMO] = "demo",
                                      [PROVIDER_SCRIPTED] = "scripted",
                                      [PROVIDER_OPENAI] = "openai",
                                      [PROVIDER_ANTHROPIC] = "anthropic",
                                      NULL};
static const char *const busy_names[] = {
    [BUSY_ENQUEUE] = "enqueue", [BUSY_REJECT] = "reject", [BUSY_INTERRUPT] = "interrupt", NULL};
static const char *const disconnect_names[] = {[DISCONNECT_CONTINUE] = "continue",
                                               [DISCONNECT_PAUSE] = "pause",
                                               [DISCONNECT_CANCEL] = "cancel",
                                               NULL};
static const char *const truth_names[] = {"false", "true", NULL};
static const char *const effect_names[] = {"read", "write", NULL};
#define RISK_NAME(risk, name) [risk] = (name),
static const char *const risk_names[] = {TOOL_RISKS(RISK_NAME) NULL};
#undef RISK_NAME
#define EVENT_NAME(event, bit, name) name,
static const char *const event_names[] = {CONFIG_EVENTS(EVENT_NAME) NULL};
#undef EVENT_NAME
static const char *const platform_names[] = {"weixin", "wechat_oa", "telegram", "webhook", NULL};

static int word_index(const char *const *words, str text)
{
    for (int i = 0; words[i]; i++)
        if (str_eq(str_c(words[i]), text)) return i;
    return -1;
}

/* ---- refusals ---- */

static struct option_place item_place(const struct option_setting *s, size_t i)
{
    struct config_value at = s->value;
    if (at.lines) at.line = at.lines[i];
    return option_place(s->target->config, s->option, &at);
}

/* The item at `i`, or of a map the name or value there. */
static enum err refuse_item(const struct option_setting *s, size_t i, const char *why, ...)
    PRINTF(3, 4);

static enum err refuse_item(const struct option_setting *s, size_t i, const char *why, ...)
{
    char reason[192];
    va_list args;
    va_start(args, why);
    vsnprintf(reason, sizeof reason, why, args);
    va_end(args);
    str item = s->value.items.items[i];
    bool login = str_find_char(item, '@') >= 0 || str_find_char(item, '?') >= 0;
    bool hidden = (s->form->hide == HIDE_TEXT && (!s->map || i % 2)) ||
                  (s->form->hide == HIDE_LOGIN && login);
    struct option_path path = option_path(s->target, str_c(s->option->name));
    return fault_field(s->target->reterr, ERR_CONFIG, path.text, "%s: %s: \"%s\" %s; write %s",
                       item_place(s, i).text, path.text, hidden ? "(hidden)" : say(item).text,
                       reason, s->form->write);
}

static enum err refuse_whole(const struct option_setting *s, const char *what)
{
    return option_refuse(s->target, option_place(s->target->config, s->option, &s->value).text,
                         option_path(s->target, str_c(s->option->name)).text, "%s; write %s", what,
                         s->form->write);
}

/* ---- parsers: items are checked, one unless the shape says otherwise ---- */

static str only(const struct option_setting *s)
{
    return s->value.items.items[0];
}

static enum err parse_text(const struct option_setting *s, void *field) /* str */
{
    *(str *)field = only(s);
    return OK;
}

static enum err parse_texts(const struct option_setting *s, void *field) /* struct strs */
{
    *(struct strs *)field = s->value.items;
    return OK;
}

static enum err parse_enum(const struct option_setting *s, void *field) /* by the words */
{
    *(unsigned *)field = (unsigned)word_index(s->form->words, only(s));
    return OK;
}
_Static_assert(sizeof(enum config_provider) == sizeof(unsigned), "enums are filled as unsigned");

static enum err parse_bool(const struct option_setting *s, void *field)
{
    *(bool *)field = word_index(s->form->words, only(s)) == 1;
    return OK;
}

static enum err parse_listen(const struct option_setting *s, void *field) /* struct host_port */
{
    struct host_port address;
    const char *refused = host_port_parse(only(s), &address);
    if (!refused && !address.has_port) refused = "has no port";
    if (refused) return refuse_item(s, 0, "%s", refused);
    address.host = arena_str(s->target->arena, address.host); /* ends in NUL, without its bracket */
    *(struct host_port *)field = address;
    return OK;
}

static enum err parse_url(const struct option_setting *s, void *field) /* struct url */
{
    struct url url;
    const char *refused = url_parse(only(s), &url);
    if (refused) return refuse_item(s, 0, "%s", refused);
    *(struct url *)field = (struct url){.text = arena_str(s->target->arena, url.text),
                                        .origin = arena_str(s->target->arena, url.origin),
                                        .prefix = arena_str(s->target->arena, url.prefix)};
    return OK;
}

static enum err parse_endpoint(const struct option_setting *s, void *field) /* str */
{
    str text = only(s);
    while (str_ends(text, STR("/"))) text.len--;
    *(str *)field = arena_str(s->target->arena, text);
    return OK;
}

static enum err parse_log(const struct option_setting *s, void *field) /* struct config_log */
{
    struct config_log log;
    if (log_parse(only(s), &log.level, &log.json)) return refuse_item(s, 0, "is no log level");
    *(struct config_log *)field = log;
    return OK;
}

static enum err parse_cidrs(const struct option_setting *s, void *field) /* struct cidrs */
{
    struct strs texts = s->value.items;
    struct cidr *ranges = arena_array(s->target->arena, texts.count, sizeof *ranges);
    for (size_t i = 0; i < texts.count; i++) {
        const char *refused = cidr_parse(texts.items[i], &ranges[i]);
        if (refused) return refuse_item(s, i, "%s", refused);
    }
    *(struct cidrs *)field = (struct cidrs){ranges, texts.count};
    return OK;
}

/* ---- numbers and money ---- */

static enum err in_range(const struct option_setting *s, enum err parsed, uint64_t value)
{
    const struct option *o = s->option;
    if (parsed == ERR_INVALID_FIELD) return refuse_item(s, 0, "is not a number");
    if (parsed == OK && value >= o->min && value <= o->max) return OK;
    return refuse_item(s, 0, "is not from %llu to %llu", (unsigned long long)o->min,
                       (unsigned long long)o->max);
}

static enum err parse_u64(const struct option_setting *s, void *field)
{
    uint64_t value = 0;
    enum err e =
        s->option->type == BYTES ? str_to_bytes(only(s), &value) : str_to_u64(only(s), &value);
    e = in_range(s, e, value);
    if (!e) *(uint64_t *)field = value;
    return e;
}

static enum err parse_u32(const struct option_setting *s, void *field)
{
    uint64_t value = 0;
    enum err e = parse_u64(s, &value);
    if (!e) *(uint32_t *)field = (uint32_t)value;
    return e;
}

/* "1.5" in millionths, uint64_t; digits on both sides of the point if there is one. */
static enum err parse_price(const struct option_setting *s, void *field)
{
    enum { DECIMALS = 6, MILLION = 1000 * 1000 };
    str decimals = only(s);
    str whole = str_split(&decimals, '.');
    if (!decimals.p) decimals = STR("0");
    uint64_t value = 0, part = 0;
    enum err e = str_to_u64(whole, &value);
    if (str_to_u64(decimals, &part)) e = ERR_INVALID_FIELD;
    if (!e && decimals.len > DECIMALS) return refuse_item(s, 0, "has more than 6 decimals");
    e = in_range(s, e, value);
    if (e) return e;
    for (size_t i = decimals.len; i < DECIMALS; i++) part *= 10;
    if (value == s->option->max && part) return in_range(s, OK, value + 1);
    *(uint64_t *)field = value * MILLION + part;
    return OK;
}

/* In pico units, as tokens times prices are. */
static enum err parse_cost(const struct option_setting *s, void *field)
{
    uint64_t millionths = 0;
    enum err e = parse_price(s, &millionths);
    if (!e) *(uint64_t *)field = millionths * 1000 * 1000;
    return e;
}

static enum err parse_currency(const struct option_setting *s, void *field) /* char[4] */
{
    enum { LETTERS = 3 };
    str text = only(s);
    bool fits = text.len == LETTERS;
    for (size_t i = 0; i < text.len; i++) fits &= text.p[i] >= 'A' && text.p[i] <= 'Z';
    if (!fits) return refuse_item(s, 0, "is no currency");
    memcpy(field, text.p, LETTERS);
    ((char *)field)[LETTERS] = '\0';
    return OK;
}

/* ---- tools, and what may be said about them ---- */

static enum err parse_policy(const struct option_setting *s, void *field) /* struct policy */
{
    struct strs pairs = s->value.items;
    struct policy_row *rows = arena_array(s->target->arena, pairs.count / 2, sizeof *rows);
    for (size_t i = 0; i < pairs.count; i += 2) {
        rows[i / 2].pattern = pairs.items[i];
        if (verdict_parse(pairs.items[i + 1], &rows[i / 2].verdict))
            return refuse_item(s, i + 1, "is no verdict on %s", say(pairs.items[i]).text);
    }
    struct policy *policy = field;
    policy->rows = rows;
    policy->count = pairs.count / 2;
    return OK;
}

static enum err parse_approvers(const struct option_setting *s, void *field) /* struct policy */
{
    struct strs pairs = s->value.items;
    struct approver_row *rows = arena_array(s->target->arena, pairs.count / 2, sizeof *rows);
    for (size_t i = 0; i < pairs.count; i += 2) {
        rows[i / 2] = (struct approver_row){.pattern = pairs.items[i], .role = pairs.items[i + 1]};
        unsigned bit;
        if (role_parse(pairs.items[i + 1], &bit) || !(bit & ROLES_OF_PEOPLE))
            return refuse_item(s, i + 1, "is no role to approve %s", say(pairs.items[i]).text);
    }
    struct policy *policy = field;
    policy->approvers = rows;
    policy->approver_count = pairs.count / 2;
    return OK;
}

/* One for both languages, or one for each; struct config_template. */
static enum err parse_template(const struct option_setting *s, void *field)
{
    struct config_template taken = {STR_EMPTY, STR_EMPTY};
    struct strs items = s->value.items;
    for (size_t i = 0; i < items.count; i += s->map ? 2 : 1) {
        bool zh = !s->map || str_eq(items.items[i], STR("zh"));
        bool en = !s->map || str_eq(items.items[i], STR("en"));
        str text = items.items[s->map ? i + 1 : i];
        const char *refused = zh || en ? option_template_check(text) : "is no language";
        if (refused) return refuse_item(s, i, "%s", refused);
        if (zh) taken.zh = text;
        if (en) taken.en = text;
    }
    *(struct config_template *)field = taken;
    return OK;
}

static enum err parse_schema(const struct option_setting *s, void *field) /* const struct json * */
{
    struct json *json;
    if (json_parse(s->target->arena, only(s), &json, NULL))
        return refuse_whole(s, "cannot be written as JSON");
    *(const struct json **)field = json;
    return OK;
}

/* ---- servers of tools, webhooks, channels ---- */

str option_line(str bytes)
{
    if (str_ends(bytes, STR("\n"))) bytes.len--;
    if (str_ends(bytes, STR("\r"))) bytes.len--;
    return bytes;
}

enum err option_read_line(const struct option_target *target, const char *place, const char *path,
                          str file, size_t bytes_max, bool *ret_absent, str *ret_line)
{
    struct fault found = {0};
    str bytes;
    enum err e = file_read(target->arena, file.p, bytes_max, &bytes, &found);
    if (e == ERR_NOT_FOUND && ret_absent) {
        *ret_absent = true;
        return OK;
    }
    if (e)
        return fault_field(target->reterr, ERR_CONFIG, path,
                           "%s: %s: %s; name a file that holds one line", place, path, found.text);
    *ret_line = arena_str(target->arena, option_line(bytes));
    return OK;
}

static const str file_suffix = STR("_file");

bool option_header_file(str name)
{
    return name.len > file_suffix.len && str_ends(name, file_suffix);
}

static enum err parse_header(const struct option_setting *s, size_t i, struct config_header *header)
{
    str name = s->value.items.items[i], text = s->value.items.items[i + 1];
    bool file = option_header_file(name);
    if (file) name.len -= file_suffix.len;
    const char *refused = option_header_check(name);
    if (!refused && text.len == 0) refused = "has no value";
    if (!refused && file && (text.len > CONFIG_TEXT_BYTES_MAX || !say_plain(text)))
        refused = "names a file with a path that is too long or cannot be printed";
    if (refused) return refuse_item(s, i, "%s", refused);
    *header = (struct config_header){.name = arena_str(s->target->arena, name), .value = text};
    if (file) {
        header->file = text;
        enum err e = option_read_line(s->target, item_place(s, i).text,
                                      option_path(s->target, str_c(s->option->name)).text, text,
                                      CONFIG_HEADER_BYTES_MAX + 2, NULL, &header->value);
        if (e) return e;
    }
    refused = option_header_value_check(header->value);
    return refused ? refuse_item(s, i, "%s", refused) : OK;
}

static enum err parse_headers(const struct option_setting *s, void *field) /* config_headers */
{
    size_t count = s->value.items.count / 2;
    struct config_header *headers = arena_array(s->target->arena, count, sizeof *headers);
    for (size_t i = 0; i < count; i++) {
        enum err e = parse_header(s, 2 * i, &headers[i]);
        if (e) return e;
        for (size_t k = 0; k < i; k++)
            if (str_eq_nocase(headers[k].name, headers[i].name))
                return refuse_item(s, 2 * i, "is given twice");
    }
    *(struct config_headers *)field = (struct config_headers){headers, count};
    return OK;
}

static enum err parse_variables(const struct option_setting *s, void *field) /* config_pairs */
{
    const str *items = s->value.items.items;
    size_t count = s->value.items.count / 2;
    struct config_pair *pairs = arena_array(s->target->arena, count, sizeof *pairs);
    for (size_t i = 0; i < count; i++)
        pairs[i] = (struct config_pair){items[2 * i], items[2 * i + 1]};
    *(struct config_pairs *)field = (struct config_pairs){pairs, count};
    return OK;
}

static enum err parse_command(const struct option_setting *s, void *field) /* struct strs */
{
    if (s->value.items.count == 0 || only(s).len == 0)
        return refuse_whole(s, "has no program in it");
    return parse_texts(s, field);
}

static enum err parse_events(const struct option_setting *s, void *field) /* bits of config_event */
{
#define EVENT_BIT(event, bit, name) event,
    static const unsigned bits[] = {CONFIG_EVENTS(EVENT_BIT)};
#undef EVENT_BIT
    unsigned all = 0;
    if (s->value.items.count == 0) return refuse_whole(s, "names none");
    for (size_t i = 0; i < s->value.items.count; i++) {
        unsigned bit = bits[word_index(event_names, s->value.items.items[i])];
        if (all & bit) return refuse_item(s, i, "is given twice");
        all |= bit;
    }
    *(unsigned *)field = all;
    return OK;
}

static enum err parse_senders(const struct option_setting *s, void *field) /* struct strs */
{
    struct strs ids = s->value.items;
    if (ids.count == 0) return refuse_whole(s, "lets nobody in");
    for (size_t i = 0; i < ids.count; i++) {
        str id = ids.items[i];
        if (id.len > CHANNEL_ID_BYTES_MAX) return refuse_item(s, i, "is no id of a sender");
        for (size_t k = 0; k < i; k++)
            if (str_eq(ids.items[k], id)) return refuse_item(s, i, "is given twice");
        if (ids.count > 1 && str_eq(id, STR("*")))
            return refuse_item(s, i, "lets everybody in and stands beside others");
    }
    return parse_texts(s, field);
}

#define TYPE_ROW(type, p, w, s, ...) \
    [type] = {.placeholder = p, .write = w, .shape = SHAPE_##s, .parse = __VA_ARGS__},
const struct option_form option_forms[TYPE_COUNT] = {OPTION_TYPES(TYPE_ROW)};
#undef TYPE_ROW

/* ---- setting ---- */

static const char *text_check(enum option_text kind, str text)
{
    static const struct {
        size_t bytes_max;
        bool line, empty;
    } kinds[] = {
        [TEXT_LINE] = {CONFIG_TEXT_BYTES_MAX, true, false},
        [TEXT_PROSE] = {CONFIG_PROSE_BYTES_MAX, false, false},
        [TEXT_ARGUMENT] = {CONFIG_TEXT_BYTES_MAX, false, true},
        [TEXT_VALUE] = {CONFIG_PROSE_BYTES_MAX, false, true},
    };
    if (text.len == 0 && !kinds[kind].empty) return "is an empty item";
    if (text.len > kinds[kind].bytes_max) return "is too long";
    if (kinds[kind].line) return say_plain(text) ? NULL : "has characters that cannot be printed";
    return utf8_valid(text) ? NULL : "is not valid UTF-8";
}

/* The pair that begins at `i`: both parts there, and the name not given before. */
static enum err check_pair(const struct option_setting *s, size_t i)
{
    const str *items = s->value.items.items, name = items[i], value = items[i + 1];
    if (name.len == 0) return refuse_item(s, i + 1, "has no name in front of it");
    const char *refused = text_check(TEXT_LINE, name);
    if (refused) return refuse_item(s, i, "%s", refused);
    refused = text_check(s->form->text, value);
    if (refused && value.len == 0) return refuse_item(s, i, "has no value");
    if (refused) return refuse_item(s, i, "has a value that %s", refused);
    for (size_t k = 0; k < i; k += 2)
        if (str_eq(items[k], name)) return refuse_item(s, i, "is given twice");
    return OK;
}

enum err option_set(const struct option_target *target, const struct option *option,
                    struct config_value value)
{
    const struct option_form *form = &option_forms[option->type];
    const size_t count = value.items.count;
    bool map = form->shape == SHAPE_MAP || (form->shape == SHAPE_EITHER && count != 1);
    const struct option_setting s = {target, option, form, value, map};
    if (count / (map ? 2 : 1) > CONFIG_LIST_MAX) return refuse_whole(&s, "has more than 100 items");
    for (size_t i = 0; i < count; i += map ? 2 : 1) {
        str item = value.items.items[i];
        enum err e = map ? check_pair(&s, i) : OK;
        if (e) return e;
        const char *refused = map ? NULL : text_check(form->text, item);
        if (!refused && form->words && word_index(form->words, item) < 0) refused = form->otherwise;
        if (!refused && form->check) refused = form->check(item);
        if (refused) return refuse_item(&s, i, "%s", refused);
    }
    char *entry = target->fills[option->of];
    enum err e = form->parse(&s, entry + option->offset);
    if (!e) target->values[option - target->table] = value;
    return e;
}
