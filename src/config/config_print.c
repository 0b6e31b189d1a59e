/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration printed: the effective one as YAML, the options part of --help, and
 * docs/CONFIGURATION.md. Everything comes from the tables of rows.
 *
 * Invariant: a secret's text is never printed.
 */
#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/option.h"
#include "config/yaml.h"

/* JSON as YAML takes it: strings in our quotes, with our escapes. Recursion ends at the depth that
 * the YAML had. */
static void print_json(struct buf *out, const struct json *json)
{
    bool object = json->type == JSON_OBJECT;
    if (json->type == JSON_STRING) {
        yaml_write_quoted(out, json->text);
        return;
    }
    if (!object && json->type != JSON_ARRAY) {
        buf_append(out, json->raw);
        return;
    }
    buf_char(out, object ? '{' : '[');
    for (const struct json *n = json->child; n; n = n->next) {
        if (object) {
            yaml_write_quoted(out, n->key);
            buf_append(out, STR(": "));
        }
        print_json(out, n);
        if (n->next) buf_append(out, STR(", "));
    }
    buf_char(out, object ? '}' : ']');
}

static void print_tree(struct buf *out, str text)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct json *json;
    if (json_parse(&arena, text, &json, NULL)) abort(); /* it was parsed when it was read */
    print_json(out, json);
}

static void print_value(struct buf *out, const struct option_form *form, struct strs items)
{
    bool map = form->shape == SHAPE_MAP || (form->shape == SHAPE_EITHER && items.count != 1);
    bool list = form->shape == SHAPE_LIST;
    if (form->shape == SHAPE_ONE && items.count == 0) buf_append(out, STR("\"\""));
    if (map || list) buf_char(out, map ? '{' : '[');
    for (size_t i = 0; i < items.count; i++) {
        if (i) buf_append(out, map && i % 2 ? STR(": ") : STR(", "));
        if (form->shape == SHAPE_TREE)
            print_tree(out, items.items[i]);
        else if (form->hide == HIDE_TEXT)
            buf_append(out, STR("(hidden)"));
        else
            yaml_write(out, items.items[i]);
    }
    if (map || list) buf_char(out, map ? '}' : ']');
}

/* The lines of the sections that `head` ("agents.assistant." or empty) is in and `open` was not;
 * returns how deep that is. */
static int print_sections(struct buf *out, str head, str open)
{
    int depth = 0;
    for (str rest = head; rest.len; depth++) {
        str name = str_split(&rest, '.');
        str upto = {head.p, (size_t)(name.p - head.p) + name.len + 1};
        if (str_starts(open, upto)) continue;
        buf_printf(out, "%*s", 2 * depth, "");
        yaml_write(out, name);
        buf_append(out, STR(":\n"));
    }
    return depth;
}

struct printer {
    const struct config *config;
    struct buf *out;
    const char *lead, *indent;             /* what the next line begins with, and those after it */
    char open[sizeof(struct option_path)]; /* sections whose lines are there */
};

static void begin_line(struct printer *p, int depth, bool comment)
{
    buf_printf(p->out, "%s%*s%s", p->lead, 2 * depth, "", comment ? "# " : "");
    p->lead = p->indent;
}

/* One row of a target, in its sections. A map whose values are hidden has a line for each name. */
static void print_row(struct printer *p, const struct option_target *target,
                      const struct option *option)
{
    const struct option_form *form = &option_forms[option->type];
    const struct config_value *value = &target->values[option - target->table];
    const struct strs items = value->items;
    if (value->silent) return;
    struct option_path path = option_path(target, str_c(option->name));
    struct option_place place = option_place(p->config, option, value);
    str name = str_c(path.text), leaf = option_leaf(name);
    str head = {name.p, name.len - leaf.len};
    int depth = print_sections(p->out, head, str_c(p->open));
    snprintf(p->open, sizeof p->open, "%.*s", STR_ARG(head));
    bool hidden = form->hide == HIDE_TEXT && items.count;
    bool lines = hidden && form->shape == SHAPE_MAP;
    begin_line(p, depth, option->not_in_file || (hidden && !lines));
    buf_printf(p->out, "%s:%s", leaf.p, lines ? "" : " ");
    if (!lines) print_value(p->out, form, items);
    buf_printf(p->out, "  # %s\n", place.text);
    for (size_t i = 0; lines && i < items.count; i += 2) {
        bool file = option->type == HEADERS && option_header_file(items.items[i]);
        begin_line(p, depth + 1, !file);
        yaml_write(p->out, items.items[i]);
        buf_append(p->out, STR(": "));
        file ? yaml_write(p->out, items.items[i + 1]) : buf_append(p->out, STR("(hidden)"));
        buf_printf(p->out, "  # %s\n", place.text);
    }
}

/* All entries of a map or list. */
static void print_entries(struct printer *p, enum option_of of)
{
    const struct option_map *map = &option_maps[of];
    struct config_entries entries = config_entries(p->config, of);
    if (entries.count == 0)
        buf_printf(p->out, "%s: %s  # default\n", map->name, map->list ? "[]" : "{}");
    else if (map->list)
        buf_printf(p->out, "%s:\n", map->name);
    for (size_t i = 0; i < entries.count; i++) {
        const struct config_entry *entry =
            (const void *)((const char *)entries.items + i * map->size);
        char path[sizeof(struct option_path)] = "";
        p->lead = p->indent = "";
        if (map->list) {
            p->lead = "  - ";
            p->indent = "    ";
        } else {
            snprintf(path, sizeof path, "%s.%.*s.", map->name, STR_ARG(entry->name));
        }
        if (map->tag) {
            buf_printf(p->out, "%s%s:\n", p->lead, map->tag);
            p->lead = p->indent = "      ";
        }
        const struct option_target target = {.config = p->config,
                                             .table = map->table,
                                             .values = entry->values,
                                             .path = path,
                                             .rows = map->rows};
        for (const struct option *o = map->table; o->name; o++)
            if (o->of == of) print_row(p, &target, o);
    }
}

/* Options of one section stand together in the table, and agents are printed where their first row
 * stands. */
void config_print(const struct config *config, struct buf *out)
{
    struct printer p = {.config = config, .out = out, .lead = "", .indent = ""};
    const struct option_target all = {
        .config = config, .table = options, .values = config->values, .path = "", .rows = ""};
    for (const struct option *o = options; o->name; o++) {
        if (o->of != OF_AGENT)
            print_row(&p, &all, o);
        else if (o[-1].of != OF_AGENT)
            print_entries(&p, OF_AGENT);
    }
    for (enum option_of of = OF_CONFIG + 1; of < OF_COUNT; of++)
        if (of != OF_AGENT) print_entries(&p, of);
}

/* What stands in the file alone. The rows of a map that are options, too, are told already. */
static void help_map(struct buf *out, enum option_of of, enum lang lang)
{
    static const char *const as[LANG_COUNT] = {"as", "同"};
    const struct option_map *map = &option_maps[of];
    const char *before = " ";
    char left[64];
    bool told = map->table == options;
    if (told) {
        const struct option rows = {.name = map->rows};
        snprintf(left, sizeof left, "%s.NAME", map->name);
        buf_printf(out, "  %-34s %s --%s*:", left, as[lang], option_flag(&rows).text);
    }
    for (const struct option *o = map->table; o->name; o++) {
        if (o->of != of) continue;
        if (told) {
            buf_printf(out, "%s%s", before, o->name + strlen(map->rows));
            before = ", ";
            continue;
        }
        snprintf(left, sizeof left, "%s%s%s%s.%s", map->name, map->list ? "[]" : ".NAME",
                 map->tag ? "." : "", map->tag ? map->tag : "", o->name);
        buf_printf(out, "  %-34s %s", left, o->help[lang]);
        buf_printf(out, *o->fallback ? " [%s]\n" : "%s\n", o->fallback);
    }
    if (told) buf_char(out, '\n');
}

void config_help(struct buf *out, enum lang lang)
{
    for (const struct option *o = options; o->name; o++) {
        char left[64];
        const char *value = option_forms[o->type].placeholder;
        if (o->type == SECRET) /* no flag: it would stand in the list of processes */
            snprintf(left, sizeof left, "%s=%s", option_env(o).text, value);
        else
            snprintf(left, sizeof left, "--%s %s", option_flag(o).text, value);
        buf_printf(out, "  %-34s %s", left, o->help[lang]);
        buf_printf(out, *o->fallback ? " [%s]\n" : "%s\n", o->fallback);
    }
    static const char *const alone[LANG_COUNT] = {"In the file alone (docs/CONFIGURATION.md)",
                                                  "只能写在配置文件中（docs/CONFIGURATION.md）"};
    buf_printf(out, "\n%s:\n", alone[lang]);
    for (enum option_of of = OF_CONFIG + 1; of < OF_COUNT; of++) help_map(out, of, lang);
}

/* The page about configuration. */

static void markdown_options(struct buf *out)
{
    buf_append(out, STR("| key | environment | flag | value | default | meaning | 说明 |\n"
                        "|---|---|---|---|---|---|---|\n"));
    for (const struct option *o = options; o->name; o++) {
        const char *tick = *o->fallback ? "`" : "";
        bool secret = o->type == SECRET;
        buf_printf(out, "| %s%s%s | `%s` | %s%s%s | `%s` | %s%s%s | %s | %s |\n",
                   o->not_in_file ? "" : "`", o->not_in_file ? "-" : o->name,
                   o->not_in_file ? "" : "`", option_env(o).text, secret ? "" : "`--",
                   secret ? "-" : option_flag(o).text, secret ? "" : "`",
                   option_forms[o->type].placeholder, tick, o->fallback, tick, o->help[LANG_EN],
                   o->help[LANG_ZH]);
    }
}

static void markdown_map(struct buf *out, enum option_of of)
{
    const struct option_map *map = &option_maps[of];
    buf_printf(out, "\n### `%s`\n\n%s\n\n%s\n\n```yaml\n%s```\n\n", map->name, map->help[LANG_EN],
               map->help[LANG_ZH], map->example);
    buf_append(out, STR("| field | needed | write | default | meaning | 说明 |\n"
                        "|---|---|---|---|---|---|\n"));
    for (const struct option *o = map->table; o->name; o++) {
        if (o->of != of) continue;
        const char *fallback = o->needed ? "" : o->fallback, *tick = *fallback ? "`" : "";
        buf_printf(out, "| `%s` | %s | %s | %s%s%s | %s | %s |\n", o->name + strlen(map->rows),
                   o->needed ? "yes" : "", option_forms[o->type].write, tick, fallback, tick,
                   o->help[LANG_EN], o->help[LANG_ZH]);
    }
}

void config_markdown(struct buf *out)
{
    buf_append(
        out,
        STR("# Configuration\n\n"
            "<!-- Made by scripts/gen-docs from the tables in src/config/option.c and "
            "record.c. "
            "-->\n\n"
            "Everything has a default; Fermata runs without any of this. A value comes from, the\n"
            "later one winning:\n\n"
            "1. the default;\n"
            "2. the file `fermata.yaml` in the working directory, or the one that `--config` or\n"
            "   `FERMATA_CONFIG` names, which then must exist;\n"
            "3. the environment; an empty variable counts as not set;\n"
            "4. a flag, which every command takes. A key has none: it would stand in the list of\n"
            "   processes for everybody to read.\n\n"
            "Dots in a key are levels in the file: `limits.body` is `body` below `limits`. A list\n"
            "is a YAML sequence in the file, and separated by commas elsewhere. A map is a YAML\n"
            "map in the file, and written `a=b,c=d` elsewhere. Paths are relative to the working\n"
            "directory. An unknown key or flag is an error; an unknown `FERMATA_` variable is a\n"
            "warning. `fermata check` shows every value and where it came from.\n\n"
            "## Options\n\n"));
    markdown_options(out);
    buf_append(out, STR("\n## Values\n\n"));
    buf_append(out, STR("| value | write |\n|---|---|\n"));
    for (enum option_type type = 0; type < TYPE_COUNT; type++)
        if (option_forms[type].placeholder)
            buf_printf(out, "| `%s` | %s |\n", option_forms[type].placeholder,
                       option_forms[type].write);
    buf_append(out, STR("\nRanges, in bytes where the value is a size:\n\n"));
    for (const struct option *o = options; o->name; o++)
        if (o->max)
            buf_printf(out, "- `%s`: %llu to %llu\n", o->name, (unsigned long long)o->min,
                       (unsigned long long)o->max);
    buf_append(
        out,
        STR("\n`api_key` and `api_key_file` are two ways to give one thing; setting both "
            "is an error. So it is for a model,\nwhere a price of `input` needs one of "
            "`output`, too.\n"
            "A policy names tools; a `*` at the end of a name stands for anything. An exact "
            "name counts before a\n"
            "pattern, a longer pattern before a shorter one, and what an operator sets at "
            "run time before the file.\n"
            "\n## Maps and lists in the file\n\nThese stand in the file alone. Names of "
            "entries have up to 64 letters, digits, `_` and `-`,\nof MCP servers up to 32.\n"));
    for (enum option_of of = OF_CONFIG + 1; of < OF_COUNT; of++) markdown_map(out, of);
    buf_append(out, STR("\nA schema is any YAML; a plain `true`, `false`, `null` or number is that "
                        "in JSON, and all else a string.\n"
                        "Values of headers, variables of programs and secrets are never shown.\n"
                        "\n## The file\n\nAll keys with their defaults:\n\n```yaml\n"));
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct config config;
    config_defaults(&arena, &config);
    config_print(&config, out);
    buf_append(out, STR("```\n"));
}
