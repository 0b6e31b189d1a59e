/* SPDX-License-Identifier: Apache-2.0
 *
 * Types of fields: each knows how to read a node. How it is printed is in field_print.c.
 *
 * Invariants: 1. what is printed is read back as the same, secrets apart; 2. the value of a header
 * or of a program's variable and the text of a secret are never printed, nor repeated in a refusal:
 * nobody can tell which of them are secret, so all are hidden.
 *
 * To add a type: its name in field.h, a row in types[] with its function, and the same in
 * field_print.c.
 */
#include "app/config/field.h"

#include <stdio.h>
#include <string.h>

#include "app/config/option.h"
#include "app/config/yaml.h"
#include "app/file.h"
#include "app/say.h"
#include "base/limits.h"
#include "tool/tools.h"

const struct field_event field_events[] = {
#define EVENT_ROW(event, bit, name) {name, bit},
    CONFIG_EVENTS(EVENT_ROW)
#undef EVENT_ROW
};
const size_t field_event_count = COUNT(field_events);

const struct field_language field_languages[] = {
    {"zh", offsetof(struct config_template, zh)},
    {"en", offsetof(struct config_template, en)},
};
const size_t field_language_count = COUNT(field_languages);

const char *const field_effects[] = {"read", "write"};
const char *const field_truths[] = {"false", "true"};

static enum err refuse(const struct field_value *v, const struct yaml_node *node, str text,
                       const char *why)
{
    return fault_field(v->reterr, ERR_CONFIG, say(v->path).text, "%s:%u: %s: \"%s\" %s; write %s",
                       say(v->config->file).text, node->line, say(v->path).text, say(text).text,
                       why, field_form(v->field->type));
}

static enum err refuse_form(const struct field_value *v, const char *what)
{
    return fault_field(v->reterr, ERR_CONFIG, say(v->path).text, "%s:%u: \"%s\" %s; write %s",
                       say(v->config->file).text, v->node->line, say(v->path).text, what,
                       field_form(v->field->type));
}

/* ---- reading ---- */

/* A scalar that is one printable line of some length. */
static enum err scalar(const struct field_value *v, str *ret_text)
{
    if (v->node->type != YAML_SCALAR) return refuse_form(v, "takes one value");
    str text = v->node->text;
    if (text.len > CONFIG_TEXT_BYTES_MAX) return refuse(v, v->node, text, "is too long");
    if (!say_plain(text)) return refuse(v, v->node, text, "has characters that cannot be printed");
    *ret_text = text;
    return OK;
}

bool field_name_taken(str name)
{
    /* What the graph handles itself, and what comes with us. */
    static const char *const taken[] = {
        "ask_user",      "submit_plan",     "show_card",      "calendar",     "calendar_write",
        "calendar_read", "calendar_delete", "calendar_share", "user_resolve",
    };
    for (size_t i = 0; i < COUNT(taken); i++)
        if (str_eq(str_c(taken[i]), name)) return true;
    return false;
}

static enum err take_name(const struct field_value *v, void *at)
{
    str text;
    enum err e = scalar(v, &text);
    if (e) return e;
    const char *refused = tool_name_valid(text) ? NULL : "is no name for a tool";
    if (field_name_taken(text)) refused = "is the name of a built-in tool";
    if (refused) return refuse(v, v->node, text, refused);
    *(str *)at = text;
    return OK;
}

static enum err take_address(const struct field_value *v, void *at)
{
    str text;
    enum err e = scalar(v, &text);
    if (e) return e;
    const char *refused = option_address_check(text);
    /* A password may stand where we did not look for one: not repeated. */
    if (refused)
        return refuse(v, v->node, str_find_char(text, '@') < 0 ? text : STR("(hidden)"), refused);
    *(str *)at = text;
    return OK;
}

static enum err take_prose(const struct field_value *v, void *at)
{
    if (v->node->type != YAML_SCALAR) return refuse_form(v, "takes one value");
    if (v->node->text.len > CONFIG_PROSE_BYTES_MAX)
        return refuse(v, v->node, v->node->text, "is too long");
    *(str *)at = v->node->text;
    return OK;
}

/* ---- templates ---- */

/* Every { begins the name of a placeholder, and } ends it. */
static const char *template_check(str text)
{
    if (str_trim(text).len == 0) return "is empty";
    if (text.len > CONFIG_TEXT_BYTES_MAX) return "is too long";
    if (!say_plain(text)) return "has characters that cannot be printed";
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '}') return "has a } that ends no placeholder";
        if (text.p[i] != '{') continue;
        size_t begin = ++i;
        while (i < text.len && text.p[i] != '{' && text.p[i] != '}' && text.p[i] != ' ') i++;
        if (i == begin || i == text.len || text.p[i] != '}')
            return "has a { that begins no placeholder";
    }
    return NULL;
}

/* One for both languages, or a map with one for each. */
static enum err take_template(const struct field_value *v, void *at)
{
    struct config_template taken = {STR_EMPTY, STR_EMPTY};
    bool map = v->node->type == YAML_MAP;
    if (!map && v->node->type != YAML_SCALAR) return refuse_form(v, "takes a text or a map");
    for (const struct yaml_node *n = map ? v->node->child : v->node; n; n = map ? n->next : NULL) {
        const char *refused = n->type == YAML_SCALAR ? template_check(n->text) : "takes one value";
        bool known = !map;
        for (size_t i = 0; i < field_language_count; i++) {
            if (map && !str_eq(n->key, str_c(field_languages[i].name))) continue;
            *(str *)((char *)&taken + field_languages[i].offset) = n->text;
            known = true;
        }
        if (!known) refused = "is no language";
        if (refused) return refuse(v, n, map ? n->key : n->text, refused);
    }
    *(struct config_template *)at = taken;
    return OK;
}

/* ---- schemas ---- */

/* A plain scalar is what JSON would take it for; everything else is a string. */
static void write_scalar(struct json_writer *w, struct arena *arena, const struct yaml_node *node)
{
    struct json *json;
    if (node->plain && node->null)
        json_null(w);
    else if (node->plain && json_parse(arena, node->text, &json, NULL) == OK)
        json_raw(w, node->text);
    else
        json_string(w, node->text);
}

/* Recursion ends at YAML_DEPTH_MAX. */
static enum err write_tree(const struct field_value *v, struct json_writer *w,
                           const struct yaml_node *node)
{
    if (node->type == YAML_SCALAR) {
        write_scalar(w, v->arena, node);
        return OK;
    }
    bool map = node->type == YAML_MAP;
    map ? json_object(w) : json_array(w);
    for (const struct yaml_node *n = node->child; n; n = n->next) {
        if (map && n->key.len > CONFIG_SCHEMA_KEY_BYTES_MAX)
            return refuse(v, n, n->key, "is a name longer than 128 bytes");
        if (map) json_key(w, n->key);
        enum err e = write_tree(v, w, n);
        if (e) return e;
    }
    map ? json_object_end(w) : json_array_end(w);
    return OK;
}

static enum err take_schema(const struct field_value *v, void *at)
{
    if (v->node->type != YAML_MAP) return refuse_form(v, "takes a map");
    AUTO(buf_done) struct buf text;
    buf_init(&text, CONFIG_SCHEMA_BYTES_MAX);
    struct json_writer w;
    json_write_begin(&w, &text);
    enum err e = write_tree(v, &w, v->node);
    if (e) return e;
    if (text.full) return refuse_form(v, "is larger than 64 KiB as JSON");
    struct json *json;
    if (json_parse(v->arena, arena_str(v->arena, buf_str(&text)), &json, NULL))
        return refuse_form(v, "cannot be written as JSON");
    *(const struct json **)at = json;
    return OK;
}

/* The place of the scalar in a list of names. */
static enum err take_one_of(const struct field_value *v, const char *const *names, size_t count,
                            const char *otherwise, size_t *ret_index)
{
    str text;
    enum err e = scalar(v, &text);
    if (e) return e;
    for (size_t i = 0; i < count; i++) {
        if (!str_eq(str_c(names[i]), text)) continue;
        *ret_index = i;
        return OK;
    }
    return refuse(v, v->node, text, otherwise);
}

static enum err take_effect(const struct field_value *v, void *at)
{
    size_t i = 0;
    enum err e = take_one_of(v, field_effects, COUNT(field_effects), "is no effect", &i);
    if (!e) *(bool *)at = i == 1;
    return e;
}

static enum err take_yes_no(const struct field_value *v, void *at)
{
    size_t i = 0;
    enum err e = take_one_of(v, field_truths, COUNT(field_truths), "is neither", &i);
    if (!e) *(bool *)at = i == 1;
    return e;
}

static enum err take_risk(const struct field_value *v, void *at)
{
    str text;
    enum err e = scalar(v, &text);
    if (e) return e;
    return tool_risk_parse(text, at) ? refuse(v, v->node, text, "is no risk") : OK;
}

static enum err take_seconds(const struct field_value *v, void *at)
{
    str text;
    uint64_t seconds;
    enum err e = scalar(v, &text);
    if (e) return e;
    if (str_to_u64(text, &seconds) || seconds < 1 || seconds > HTTP_TOOL_S_MAX)
        return refuse(v, v->node, text, "is not from 1 to 3600");
    *(uint32_t *)at = (uint32_t)seconds;
    return OK;
}

/* ---- headers ---- */

static bool token_char(char c)
{
    char l = char_lower(c);
    return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static const char *header_name_check(str name)
{
    static const char *const ours[] = {"Content-Type",      "Content-Length", "Idempotency-Key",
                                       "Transfer-Encoding", "Connection",     "Expect"};
    if (name.len == 0) return "is no name of a header";
    if (name.len > CONFIG_HEADER_NAME_BYTES_MAX) return "is longer than 64 bytes";
    for (size_t i = 0; i < name.len; i++)
        if (!token_char(name.p[i])) return "is no name of a header";
    for (size_t i = 0; i < COUNT(ours); i++)
        if (str_eq_nocase(str_c(ours[i]), name)) return "is a header that Fermata sets itself";
    return NULL;
}

/* Visible ASCII with single spaces or tabs inside; never repeated to a person. */
static const char *header_value_check(str value)
{
    if (value.len == 0) return "has no value";
    if (value.len > CONFIG_HEADER_BYTES_MAX) return "has a value longer than 8 KiB";
    if (str_trim(value).len != value.len) return "has a value with spaces around it";
    for (size_t i = 0; i < value.len; i++)
        if ((value.p[i] < ' ' && value.p[i] != '\t') || value.p[i] > '~')
            return "has a value with characters that do not fit in a header";
    return NULL;
}

/* The one line of a file. */
static enum err read_line(const struct field_value *v, const struct yaml_node *node, str path,
                          size_t bytes_max, str *ret_line)
{
    struct fault found = {0};
    str bytes;
    enum err e = file_read(v->arena, path.p, bytes_max, &bytes, &found);
    if (e)
        return fault_field(v->reterr, ERR_CONFIG, say(v->path).text,
                           "%s:%u: %s: %s; name a file that holds one line",
                           say(v->config->file).text, node->line, say(v->path).text, found.text);
    *ret_line = arena_str(v->arena, option_line(bytes));
    return OK;
}

static enum err take_header(const struct field_value *v, const struct yaml_node *node,
                            struct config_header *header)
{
    static const str suffix = STR("_file");
    bool file = node->key.len > suffix.len && str_ends(node->key, suffix);
    header->name = arena_str(v->arena, (str){node->key.p, node->key.len - (file ? suffix.len : 0)});
    const char *refused = header_name_check(header->name);
    if (!refused && node->type != YAML_SCALAR) refused = "takes one value";
    if (!refused && node->text.len == 0) refused = "has no value";
    if (!refused && file && (node->text.len > CONFIG_TEXT_BYTES_MAX || !say_plain(node->text)))
        refused = "names a file with a path that is too long or cannot be printed";
    if (refused) return refuse(v, node, node->key, refused);
    header->value = node->text;
    if (file) {
        header->file = node->text;
        enum err e = read_line(v, node, node->text, CONFIG_HEADER_BYTES_MAX + 2, &header->value);
        if (e) return e;
    }
    refused = header_value_check(header->value);
    return refused ? refuse(v, node, node->key, refused) : OK;
}

static enum err take_headers(const struct field_value *v, void *at)
{
    if (v->node->type != YAML_MAP) return refuse_form(v, "takes a map");
    if (v->node->count > CONFIG_LIST_MAX) return refuse_form(v, "has more than 100 items");
    struct config_header *headers = arena_array(v->arena, v->node->count, sizeof *headers);
    size_t count = 0;
    for (const struct yaml_node *n = v->node->child; n; n = n->next) {
        enum err e = take_header(v, n, &headers[count]);
        if (e) return e;
        for (size_t i = 0; i < count; i++)
            if (str_eq_nocase(headers[i].name, headers[count].name))
                return refuse(v, n, headers[count].name, "is given twice");
        count++;
    }
    *(struct config_headers *)at = (struct config_headers){headers, count};
    return OK;
}

/* ---- webhooks ---- */

/* The path goes to its field, the text behind the path's field. */
static enum err take_key_file(const struct field_value *v, void *at)
{
    enum { KEY_BYTES_SAFE = 16 };
    str path, key;
    enum err e = scalar(v, &path);
    if (!e) e = read_line(v, v->node, path, CONFIG_SECRET_FILE_BYTES_MAX, &key);
    if (e) return e;
    const char *refused = option_secret_check(key);
    if (!refused && key.len < KEY_BYTES_SAFE)
        refused = "is shorter than 16 characters and can be guessed; make one with: openssl rand "
                  "-hex 32";
    if (refused)
        return fault_field(v->reterr, ERR_CONFIG, say(v->path).text, "%s:%u: %s: the key in %s %s",
                           say(v->config->file).text, v->node->line, say(v->path).text,
                           say(path).text, refused);
    str *fields = at;
    fields[0] = path;
    fields[1] = key;
    return OK;
}

static enum err take_events(const struct field_value *v, void *at)
{
    if (v->node->type != YAML_SEQUENCE || !v->node->count) return refuse_form(v, "takes a list");
    unsigned bits = 0;
    for (const struct yaml_node *n = v->node->child; n; n = n->next) {
        size_t i = 0;
        while (i < field_event_count &&
               (n->type != YAML_SCALAR || !str_eq(str_c(field_events[i].name), n->text)))
            i++;
        if (i == field_event_count)
            return refuse(v, n, n->type == YAML_SCALAR ? n->text : STR_EMPTY, "is no event");
        if (bits & field_events[i].bit) return refuse(v, n, n->text, "is given twice");
        bits |= field_events[i].bit;
    }
    *(unsigned *)at = bits;
    return OK;
}

/* ---- servers of tools ---- */

/* A list whose items are text; null would be read as a word. */
static enum err texts(const struct field_value *v, struct strs *ret_texts)
{
    if (v->node->type != YAML_SEQUENCE) return refuse_form(v, "takes a list");
    if (v->node->count > CONFIG_LIST_MAX) return refuse_form(v, "has more than 100 items");
    str *items = arena_array(v->arena, v->node->count, sizeof *items);
    size_t count = 0;
    for (const struct yaml_node *n = v->node->child; n; n = n->next) {
        if (n->type != YAML_SCALAR || (n->plain && n->null))
            return refuse_form(v, "has an item that is no text");
        if (n->text.len > CONFIG_TEXT_BYTES_MAX)
            return refuse_form(v, "has an item that is too long");
        items[count++] = n->text;
    }
    *ret_texts = (struct strs){items, count};
    return OK;
}

static enum err take_command(const struct field_value *v, void *at)
{
    struct strs command;
    enum err e = texts(v, &command);
    if (e) return e;
    if (command.count == 0 || command.items[0].len == 0)
        return refuse_form(v, "has no program in it");
    *(struct strs *)at = command;
    return OK;
}

static enum err take_patterns(const struct field_value *v, void *at)
{
    struct strs patterns;
    enum err e = texts(v, &patterns);
    if (e) return e;
    for (size_t i = 0; i < patterns.count; i++) {
        const char *refused = option_pattern_check(patterns.items[i]);
        if (refused) return refuse(v, v->node, patterns.items[i], refused);
    }
    *(struct strs *)at = patterns;
    return OK;
}

static const char *variable_check(str name)
{
    if (name.len == 0) return "is no name of a variable";
    if (name.len > CONFIG_ENV_NAME_BYTES_MAX) return "is longer than 128 bytes";
    for (size_t i = 0; i < name.len; i++) {
        char c = char_lower(name.p[i]);
        bool digit = c >= '0' && c <= '9';
        if ((c < 'a' || c > 'z') && c != '_' && (i == 0 || !digit))
            return "is no name of a variable";
    }
    return NULL;
}

static enum err take_pairs(const struct field_value *v, void *at)
{
    if (v->node->type != YAML_MAP) return refuse_form(v, "takes a map");
    if (v->node->count > CONFIG_LIST_MAX) return refuse_form(v, "has more than 100 items");
    struct config_pair *pairs = arena_array(v->arena, v->node->count, sizeof *pairs);
    size_t count = 0;
    for (const struct yaml_node *n = v->node->child; n; n = n->next) {
        const char *refused = variable_check(n->key);
        if (!refused && n->type != YAML_SCALAR) refused = "takes one value";
        if (!refused && n->text.len > CONFIG_PROSE_BYTES_MAX)
            refused = "has a value that is too long";
        if (refused) return refuse(v, n, n->key, refused);
        str value = n->plain && n->null ? STR_EMPTY : n->text;
        pairs[count++] = (struct config_pair){n->key, value};
    }
    *(struct config_pairs *)at = (struct config_pairs){pairs, count};
    return OK;
}

/* ---- channels ---- */

static enum err take_platform(const struct field_value *v, void *at)
{
    static const char *const names[] = {"weixin", "wechat_oa", "telegram", "webhook"};
    size_t i = 0;
    enum err e = take_one_of(v, names, COUNT(names), "is no kind of channel", &i);
    if (!e) *(str *)at = str_c(names[i]);
    return e;
}

static enum err take_word(const struct field_value *v, void *at)
{
    str text;
    enum err e = scalar(v, &text);
    if (!e && text.len == 0) return refuse_form(v, "is empty");
    if (!e) *(str *)at = text;
    return e;
}

static enum err take_base(const struct field_value *v, void *at)
{
    str text;
    enum err e = take_address(v, &text);
    if (e) return e;
    /* what stands in a query may be secret: not repeated */
    if (str_find_char(text, '?') >= 0) return refuse_form(v, "has a query");
    while (str_ends(text, STR("/"))) text.len--;
    *(str *)at = arena_str(v->arena, text);
    return OK;
}

static enum err take_senders(const struct field_value *v, void *at)
{
    struct strs ids;
    enum err e = texts(v, &ids);
    if (e) return e;
    if (ids.count == 0) return refuse_form(v, "lets nobody in");
    for (size_t i = 0; i < ids.count; i++) {
        str id = ids.items[i];
        if (id.len == 0 || id.len > CHANNEL_ID_BYTES_MAX || !say_plain(id))
            return refuse(v, v->node, id, "is no id of a sender");
        for (size_t k = 0; k < i; k++)
            if (str_eq(ids.items[k], id)) return refuse(v, v->node, id, "is given twice");
        if (ids.count > 1 && str_eq(id, STR("*")))
            return refuse(v, v->node, id, "lets everybody in and stands beside others");
    }
    *(struct strs *)at = ids;
    return OK;
}

static const struct {
    const char *form; /* completes "write ..." */
    enum err (*take)(const struct field_value *v, void *at);
} types[] = {
    [NAME] = {"up to 64 letters, digits, _ and -", take_name},
    [ADDRESS] = {"a URL such as https://example.org/order", take_address},
    [PROSE] = {"a text of up to 64 KiB", take_prose},
    [TEMPLATE] = {"a text such as \"Ordered: {item}\", or {zh: ..., en: ...}", take_template},
    [SCHEMA] = {"a JSON Schema, as YAML, such as {type: object}", take_schema},
    [EFFECT] = {"read or write", take_effect},
    [YES_NO] = {"true or false", take_yes_no},
    [RISK] = {"write, external or destructive", take_risk},
    [SECONDS] = {"a whole number of seconds", take_seconds},
    [HEADERS] = {"a map such as {X-Tenant: a, Authorization_file: token.txt}", take_headers},
    [KEY_FILE] = {"a path", take_key_file},
    [EVENTS] = {"interaction.opened, interaction.resolved, or both, in a list", take_events},
    [COMMAND] = {"a list such as [npx, -y, some-server]", take_command},
    [PAIRS] = {"a map such as {TOKEN: abc}", take_pairs},
    [PATTERNS] = {"a list of tools or patterns such as [read_file, \"list_*\"]", take_patterns},
    [PLATFORM] = {"weixin, wechat_oa, telegram or webhook", take_platform},
    [WORD] = {"one line of text", take_word},
    [BASE] = {"a URL such as https://example.org", take_base},
    [FILE_AT] = {"a path", take_word},
    [SENDERS] = {"a list of ids such as [\"12345\"], or [\"*\"] for everybody", take_senders},
};

const char *field_form(enum field_type type)
{
    return types[type].form;
}

enum err field_take(const struct field_value *v, void *record)
{
    return types[v->field->type].take(v, (char *)record + v->field->offset);
}

enum err field_missing(const struct field_value *v)
{
    return refuse_form(v, "is missing");
}
