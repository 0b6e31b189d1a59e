/* SPDX-License-Identifier: Apache-2.0
 *
 * Definitions of an MCP server's tools into rows; pure.
 *
 *     tools/list ──▶ mcp_define: text on one line ──▶ kept, hashed, remembered
 *                                                       │
 *                       configuration (mcp_rules) ──────┴──▶ mcp_rows: struct tool
 *
 * So what is remembered is the server's word, and what it counts for is decided anew at each start.
 *
 * Invariants:
 * 1. Unless the server is trusted its annotations change nothing. The lists of the configuration
 *    win over them in any case.
 * 2. A row's name is "server.tool", of [A-Za-z0-9_.-], at most TOOL_NAME_BYTES_MAX bytes. A longer
 *    one is cut and ends in a hash of the whole; so does the second of two that would be the same.
 * 3. The schema offered is the server's own text; the arguments are checked by what we can read of
 *    it.
 *
 * To add an annotation: its row in hints[], and what it means in set_effect.
 */
#include "mcp/client/mcp_tools.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "mcp/client/mcp_rpc.h"
#include "tool/schema.h"
#include "tool/tools.h"
#include "tool/value.h"

enum { NAME_HASH_DIGITS = 8 };

/* ---- definitions ---- */

static const char *const hints[] = {"readOnlyHint", "destructiveHint", "idempotentHint"};

static enum err check(const struct json *tool, struct fault *reterr)
{
    str name = mcp_text(tool, "name");
    const struct json *schema = json_get(tool, STR("inputSchema"));
    if (!name.len || name.len > MCP_TOOL_NAME_BYTES_MAX)
        return fault(reterr, ERR_INVALID_FIELD, "its name must be a text of 1 to %d bytes",
                     MCP_TOOL_NAME_BYTES_MAX);
    if (!schema || schema->type != JSON_OBJECT || !str_eq(mcp_text(schema, "type"), STR("object")))
        return fault(reterr, ERR_INVALID_FIELD,
                     "its inputSchema must be an object whose type is \"object\"");
    return OK;
}

enum err mcp_define(struct arena *arena, const struct json *tool, str *ret_text,
                    struct fault *reterr)
{
    AUTO(buf_done) struct buf out = {0};
    struct json_writer w;
    enum err e = check(tool, reterr);
    if (e) return e;
    if (str_eq(mcp_text(json_get(tool, STR("execution")), "taskSupport"), STR("required")))
        return fault(reterr, ERR_INVALID_FIELD,
                     "it can be called only as a task, and Fermata has none");
    str words = mcp_text(tool, "description");
    if (!words.len) words = mcp_text(tool, "title");
    const struct json *annotations = json_get(tool, STR("annotations"));
    buf_init(&out, MCP_TOOL_BYTES_MAX);
    json_write_begin(&w, &out);
    json_object(&w);
    json_member(&w, STR("name"), mcp_text(tool, "name"));
    json_member(&w, STR("description"), tool_text_head(words, MCP_DESCRIPTION_BYTES_MAX));
    json_member_raw(&w, STR("inputSchema"), json_get(tool, STR("inputSchema"))->raw);
    if (annotations) {
        json_key(&w, STR("annotations"));
        json_object(&w);
    }
    for (size_t i = 0; i < COUNT(hints); i++) {
        const struct json *hint = json_get(annotations, str_c(hints[i]));
        if (!hint || (hint->type != JSON_TRUE && hint->type != JSON_FALSE)) continue;
        json_member_bool(&w, str_c(hints[i]), hint->type == JSON_TRUE);
    }
    if (annotations) json_object_end(&w);
    json_object_end(&w);
    if (out.full)
        return fault(reterr, ERR_TOO_LARGE,
                     "its name, description and schema have more than %d bytes",
                     MCP_TOOL_BYTES_MAX);
    value_one_line(out.p, out.len);
    *ret_text = arena_str(arena, buf_str(&out));
    return OK;
}

/* ---- names ---- */

static bool is_plain(char c)
{
    char lower = char_lower(c);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
}

static str row_name(struct arena *arena, str server, str name, const struct tool *rows,
                    size_t count)
{
    str whole = arena_printf(arena, "%.*s.%.*s", STR_ARG(server), STR_ARG(name));
    char *plain = arena_cstr(arena, whole);
    for (size_t i = 0; i < whole.len; i++)
        if (!is_plain(plain[i])) plain[i] = '_';
    str shown = {plain, whole.len};
    bool fits = shown.len <= TOOL_NAME_BYTES_MAX;
    for (size_t i = 0; i < count; i++) fits = fits && !str_eq(rows[i].name, shown);
    if (fits) return shown;

    unsigned char sum[HASH_BYTES];
    char hex[HASH_HEX_BYTES];
    size_t room = TOOL_NAME_BYTES_MAX - NAME_HASH_DIGITS - 1;
    crypto_sha256(whole, sum);
    crypto_hex((str){(const char *)sum, HASH_BYTES}, hex);
    if (shown.len > room) shown.len = room;
    return arena_printf(arena, "%.*s-%.*s", STR_ARG(shown), NAME_HASH_DIGITS, hex);
}

/* ---- effects ---- */

/* A name, or its beginning and a star. */
static bool listed(const str *patterns, size_t count, str name)
{
    for (size_t i = 0; i < count; i++) {
        str pattern = patterns[i];
        if (str_eq(pattern, name)) return true;
        if (str_ends(pattern, STR("*")) && str_starts(name, (str){pattern.p, pattern.len - 1}))
            return true;
    }
    return false;
}

static bool hint(const struct json *definition, const char *name, bool absent)
{
    const struct json *value = json_get(json_get(definition, STR("annotations")), str_c(name));
    return value ? value->type == JSON_TRUE : absent;
}

static void set_effect(struct tool *tool, const struct mcp_rules *rules,
                       const struct json *definition, str name)
{
    bool trusted = rules->trusted;
    bool reads = listed(rules->read, rules->read_count, name);
    bool idempotent = listed(rules->idempotent, rules->idempotent_count, name);
    tool->write = !reads && !(trusted && hint(definition, "readOnlyHint", false));
    tool->idempotent = idempotent || (trusted && hint(definition, "idempotentHint", false));
    tool->risk = RISK_EXTERNAL;
    if (trusted && tool->write && hint(definition, "destructiveHint", true))
        tool->risk = RISK_DESTRUCTIVE;
}

/* ---- arguments that are headers too ---- */

#define MARK "x-mcp-header"

struct walk {
    struct arena *arena;
    struct mcp_tool *tool;
    str path[MCP_PARAM_DEPTH_MAX];
    struct fault *reterr;
};

static bool is_token(str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = char_lower(text.p[i]);
        bool fits =
            (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("!#$%&'*+-.^_`|~", c));
        if (!fits) return false;
    }
    return text.len > 0 && text.len <= 128;
}

static enum err add_param(struct walk *walk, const struct json *schema, const struct json *mark,
                          size_t depth)
{
    struct mcp_tool *tool = walk->tool;
    str type = mcp_text(schema, "type"), name = json_text(mark);
    bool simple =
        str_eq(type, STR("string")) || str_eq(type, STR("integer")) || str_eq(type, STR("boolean"));
    if (!depth || !simple || !is_token(name))
        return fault(walk->reterr, ERR_INVALID_FIELD,
                     MARK " must be the name of a header, on a text, an integer or a boolean");
    for (size_t i = 0; i < tool->param_count; i++)
        if (str_eq_nocase(tool->params[i].name, name))
            return fault(walk->reterr, ERR_INVALID_FIELD, MARK " %.*s stands there twice",
                         STR_ARG(name));
    if (tool->param_count == MCP_PARAMS_MAX)
        return fault(walk->reterr, ERR_INVALID_FIELD, "there are more than %d " MARK,
                     MCP_PARAMS_MAX);
    struct mcp_param *param = &tool->params[tool->param_count++];
    param->name = arena_str(walk->arena, name);
    param->path = arena_array(walk->arena, depth, sizeof *param->path);
    param->depth = depth;
    for (size_t i = 0; i < depth; i++) param->path[i] = arena_str(walk->arena, walk->path[i]);
    return OK;
}

static bool is_one_of(str name, const char *const *names)
{
    for (; *names; names++)
        if (str_eq(name, str_c(*names))) return true;
    return false;
}

/* `depth` objects deep by properties alone; SIZE_MAX: by something else on the way. */
static enum err walk_schema(struct walk *walk, const struct json *schema, size_t depth);

static enum err walk_inside(struct walk *walk, const struct json *m)
{
    static const char *const data[] = {"const", "enum", "default", "examples", "required", NULL};
    static const char *const maps[] = {"patternProperties", "$defs", "definitions",
                                       "dependentSchemas", NULL};
    enum err e = OK;
    if (is_one_of(m->key, data)) return OK;
    bool several = m->type == JSON_ARRAY || is_one_of(m->key, maps);
    if (!several) return walk_schema(walk, m, SIZE_MAX);
    for (const struct json *item = m->child; item && !e; item = item->next)
        e = walk_schema(walk, item, SIZE_MAX);
    return e;
}

static enum err walk_properties(struct walk *walk, const struct json *properties, size_t depth)
{
    enum err e = OK;
    for (const struct json *p = properties->child; p && !e; p = p->next) {
        bool reached = depth < MCP_PARAM_DEPTH_MAX;
        if (reached) walk->path[depth] = p->key;
        e = walk_schema(walk, p, reached ? depth + 1 : SIZE_MAX);
    }
    return e;
}

static enum err walk_schema(struct walk *walk, const struct json *schema, size_t depth)
{
    enum err e = OK;
    if (schema->type != JSON_OBJECT) return OK;
    for (const struct json *m = schema->child; m && !e; m = m->next) {
        if (str_eq(m->key, STR(MARK)))
            e = depth == SIZE_MAX
                    ? fault(walk->reterr, ERR_INVALID_FIELD,
                            MARK " may stand only on arguments reached by properties alone")
                    : add_param(walk, schema, m, depth);
        else if (str_eq(m->key, STR("properties")) && m->type == JSON_OBJECT)
            e = walk_properties(walk, m, depth);
        else
            e = walk_inside(walk, m);
    }
    return e;
}

str mcp_header_text(struct arena *arena, str text)
{
    bool plain = text.len && text.len == str_trim(text).len &&
                 !(str_starts(text, STR("=?base64?")) && str_ends(text, STR("?=")));
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if ((c < ' ' && c != '\t') || c > '~') plain = false;
    }
    if (plain) return text;
    char *out = arena_alloc(arena, BASE64_BYTES(text.len));
    crypto_base64(text, out);
    return arena_printf(arena, "=?base64?%s?=", out);
}

str mcp_param_value(struct arena *arena, const struct mcp_param *param, const struct json *args)
{
    const struct json *value = args;
    for (size_t i = 0; i < param->depth; i++) value = json_get(value, param->path[i]);
    if (!value) return STR_EMPTY;
    switch (value->type) {
    case JSON_TRUE:
    case JSON_FALSE:
        return value->raw;
    case JSON_NUMBER:
        return value->text.len <= 32 ? value->text : STR_EMPTY;
    case JSON_STRING:
        if (value->text.len > MCP_PARAM_BYTES_MAX) return STR_EMPTY;
        return mcp_header_text(arena, value->text);
    case JSON_NULL:
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    return STR_EMPTY;
}

/* ---- rows ---- */

/* `definition` was made by mcp_define, perhaps at an earlier start. */
static enum err make_row(struct arena *arena, const struct mcp_rules *rules,
                         const struct json *definition, struct tool *ret_row, struct fault *reterr)
{
    struct schema *args = NULL;
    const struct json *schema = json_get(definition, STR("inputSchema"));
    struct mcp_tool *self = ARENA_NEW(arena, struct mcp_tool);
    enum err e = check(definition, reterr);
    if (!e) e = schema_parse_lenient(arena, schema, &args, reterr);
    if (!e && rules->http) {
        struct walk walk = {.arena = arena, .tool = self, .reterr = reterr};
        self->params = arena_array(arena, MCP_PARAMS_MAX, sizeof *self->params);
        e = walk_schema(&walk, schema, 0);
    }
    if (e) return e;
    self->server = rules->server;
    self->name = arena_str(arena, mcp_text(definition, "name"));
    *ret_row = (struct tool){
        .pack = rules->server_name,
        .description = arena_str(arena, mcp_text(definition, "description")),
        .schema = arena_str(arena, schema->raw),
        .args = args,
        .holds = true,
        .ops = rules->ops,
        .self = self,
    };
    set_effect(ret_row, rules, definition, self->name);
    return OK;
}

static bool has_tool(const struct tool *rows, size_t count, str name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(((const struct mcp_tool *)rows[i].self)->name, name)) return true;
    return false;
}

struct tools mcp_rows(struct arena *arena, const struct mcp_rules *rules, const str *definitions,
                      size_t count, void (*on_left_out)(void *arg, str name, const char *why),
                      void *arg)
{
    AUTO(arena_done) struct arena scratch;
    struct tool *rows = arena_array(arena, count, sizeof *rows);
    struct tools tools = {.rows = rows};
    arena_init(&scratch);
    for (size_t i = 0; i < count; i++) {
        struct json *definition = NULL;
        struct fault why = {0};
        enum err e = json_parse(&scratch, definitions[i], &definition, NULL);
        if (e) e = fault(&why, e, "its definition is no JSON");
        str name = e ? STR_EMPTY : mcp_text(definition, "name");
        if (!e && has_tool(rows, tools.count, name))
            e = fault(&why, ERR_INVALID_FIELD, "another tool has the same name");
        if (!e) e = make_row(arena, rules, definition, &rows[tools.count], &why);
        if (e) {
            on_left_out(arg, name, why.text);
        } else {
            str shown = row_name(arena, rules->server_name, name, rows, tools.count);
            rows[tools.count++].name = shown;
        }
        arena_reset(&scratch);
    }
    return tools;
}
