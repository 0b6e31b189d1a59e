/* SPDX-License-Identifier: Apache-2.0
 *
 * What can be said about the configuration: the effective one as YAML, the options part of --help,
 * and docs/CONFIGURATION.md. Everything comes from the option table and the tables of records.
 *
 * Invariant: a secret's text is never printed.
 */
#include "app/config/config.h"

#include <stdio.h>
#include <string.h>

#include "app/config/option.h"
#include "app/config/record.h"
#include "app/config/yaml.h"

static void print_value(struct buf *out, const struct option *option, struct strs items)
{
    static const str marks[][2] = {
        [SHAPE_ONE] = {STR(""), STR("")},
        [SHAPE_LIST] = {STR("["), STR("]")},
        [SHAPE_MAP] = {STR("{"), STR("}")},
    };
    enum option_shape shape = option_form(option->type)->shape;
    if (option->type == SECRET && items.count) {
        buf_append(out, STR("(hidden)"));
        return;
    }
    if (shape == SHAPE_ONE && items.count == 0) buf_append(out, STR("\"\""));
    buf_append(out, marks[shape][0]);
    for (size_t i = 0; i < items.count; i++) {
        bool value = shape == SHAPE_MAP && i % 2;
        if (i) buf_append(out, value ? STR(": ") : STR(", "));
        yaml_write(out, items.items[i]);
    }
    buf_append(out, marks[shape][1]);
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
    char open[sizeof(struct option_path)]; /* sections whose lines are there */
};

/* One row of a target, in its sections. */
static void print_row(struct printer *p, const struct option_target *target,
                      const struct option *option)
{
    const struct config_value *value = &target->values[option - options];
    struct option_path path = option_path(target, str_c(option->name));
    str name = str_c(path.text), leaf = option_leaf(name);
    str head = {name.p, name.len - leaf.len};
    int depth = print_sections(p->out, head, str_c(p->open));
    snprintf(p->open, sizeof p->open, "%.*s", STR_ARG(head));
    bool comment = option->not_in_file || (option->type == SECRET && value->items.count);
    buf_printf(p->out, "%*s%s%s: ", 2 * depth, "", comment ? "# " : "", leaf.p);
    print_value(p->out, option, value->items);
    buf_printf(p->out, "  # %s\n", option_place(p->config, option, value).text);
}

static void print_entry(struct printer *p, enum option_of of, str name, struct config_value *values)
{
    char path[sizeof(struct option_path)];
    snprintf(path, sizeof path, "%s.%.*s.", option_maps[of].name, STR_ARG(name));
    const struct option_target target = {
        .config = p->config, .values = values, .path = path, .rows = option_maps[of].rows};
    for (size_t i = 0; i < option_count; i++)
        if (options[i].of == of) print_row(p, &target, &options[i]);
}

/* Options of one section stand together in the table, and an entry is printed where the first row
 * of its map stands. */
void config_print(const struct config *config, struct buf *out)
{
    struct printer p = {.config = config, .out = out};
    const struct option_target all = {
        .config = config, .values = config->values, .path = "", .rows = ""};
    for (size_t i = 0; i < option_count; i++) {
        bool first = i == 0 || options[i - 1].of != options[i].of;
        if (options[i].of != OF_AGENT) print_row(&p, &all, &options[i]);
        for (size_t k = 0; first && options[i].of == OF_AGENT && k < config->agents.count; k++)
            print_entry(&p, OF_AGENT, config->agents.items[k].name, config->agents.items[k].values);
    }
    if (config->models.count == 0) buf_append(out, STR("models: {}  # default\n"));
    for (size_t k = 0; k < config->models.count; k++)
        print_entry(&p, OF_MODEL, config->models.items[k].name, config->models.items[k].values);
    record_print(config, out);
}

/* The rows of a map are told as options already. */
static void help_maps(struct buf *out, enum lang lang)
{
    static const char *const as[LANG_COUNT] = {"as", "同"};
    for (enum option_of of = 0; of < OF_COUNT; of++) {
        const struct option_map *map = &option_maps[of];
        if (!map->name) continue;
        const struct option rows = {.name = map->rows};
        char left[64];
        snprintf(left, sizeof left, "%s.NAME", map->name);
        buf_printf(out, "  %-34s %s --%s*:", left, as[lang], option_flag(&rows).text);
        const char *before = " ";
        for (size_t i = 0; i < option_count; i++) {
            if (options[i].of != of) continue;
            buf_printf(out, "%s%s", before, options[i].name + strlen(map->rows));
            before = ", ";
        }
        buf_char(out, '\n');
    }
}

void config_help(struct buf *out, enum lang lang)
{
    for (size_t i = 0; i < option_count; i++) {
        const struct option *option = &options[i];
        char left[64];
        snprintf(left, sizeof left, "--%s %s", option_flag(option).text,
                 option_form(option->type)->placeholder);
        buf_printf(out, "  %-34s %s", left, option->help[lang]);
        if (*option->fallback) buf_printf(out, " [%s]", option->fallback);
        buf_char(out, '\n');
    }
    static const char *const alone[LANG_COUNT] = {"In the file alone (docs/CONFIGURATION.md)",
                                                  "只能写在配置文件中（docs/CONFIGURATION.md）"};
    buf_printf(out, "\n%s:\n", alone[lang]);
    help_maps(out, lang);
    record_help(out, lang);
}

/* The page about configuration. */

static void markdown_options(struct buf *out)
{
    buf_append(out, STR("| key | environment | flag | value | default | meaning | 说明 |\n"
                        "|---|---|---|---|---|---|---|\n"));
    for (size_t i = 0; i < option_count; i++) {
        const struct option *option = &options[i];
        const char *tick = *option->fallback ? "`" : "";
        buf_printf(out, "| %s%s%s | `%s` | `--%s` | `%s` | %s%s%s | %s | %s |\n",
                   option->not_in_file ? "" : "`", option->not_in_file ? "-" : option->name,
                   option->not_in_file ? "" : "`", option_env(option).text,
                   option_flag(option).text, option_form(option->type)->placeholder, tick,
                   option->fallback, tick, option->help[LANG_EN], option->help[LANG_ZH]);
    }
}

static void markdown_maps(struct buf *out)
{
    for (enum option_of of = 0; of < OF_COUNT; of++) {
        const struct option_map *map = &option_maps[of];
        if (!map->name) continue;
        buf_printf(out, "\n### `%s`\n\n%s\n\n%s\n\n```yaml\n%s```\n\n", map->name,
                   map->help[LANG_EN], map->help[LANG_ZH], map->example);
        buf_append(out, STR("| field | needed | write | default | meaning | 说明 |\n"
                            "|---|---|---|---|---|---|\n"));
        for (size_t i = 0; i < option_count; i++) {
            const struct option *option = &options[i];
            if (option->of != of) continue;
            bool needed = map->needed && str_eq(str_c(map->needed), str_c(option->name));
            const char *fallback = needed ? "" : option->fallback, *tick = *fallback ? "`" : "";
            buf_printf(out, "| `%s` | %s | %s | %s%s%s | %s | %s |\n",
                       option->name + strlen(map->rows), needed ? "yes" : "",
                       option_form(option->type)->write, tick, fallback, tick,
                       option->help[LANG_EN], option->help[LANG_ZH]);
        }
    }
}

static void markdown_types(struct buf *out)
{
    buf_append(out, STR("| value | write |\n|---|---|\n"));
    for (enum option_type type = 0; type < TYPE_COUNT; type++)
        buf_printf(out, "| `%s` | %s |\n", option_form(type)->placeholder,
                   option_form(type)->write);
}

static void markdown_ranges(struct buf *out)
{
    for (size_t i = 0; i < option_count; i++)
        if (options[i].max)
            buf_printf(out, "- `%s`: %llu to %llu\n", options[i].name,
                       (unsigned long long)options[i].min, (unsigned long long)options[i].max);
}

/* What config_print says when nothing is set. */
static void markdown_defaults(struct buf *out)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct config config;
    config_defaults(&arena, &config);
    config_print(&config, out);
}

void config_markdown(struct buf *out)
{
    buf_append(
        out,
        STR("# Configuration\n\n"
            "<!-- Made by scripts/gen-docs from the tables in src/app/config/option.c and "
            "record.c. "
            "-->\n\n"
            "Everything has a default; Fermata runs without any of this. A value comes from, the\n"
            "later one winning:\n\n"
            "1. the default;\n"
            "2. the file `fermata.yaml` in the working directory, or the one that `--config` or\n"
            "   `FERMATA_CONFIG` names, which then must exist;\n"
            "3. the environment; an empty variable counts as not set;\n"
            "4. a flag, which every command takes.\n\n"
            "Dots in a key are levels in the file: `limits.body` is `body` below `limits`. A list\n"
            "is a YAML sequence in the file, and separated by commas elsewhere. A map is a YAML\n"
            "map in the file, and written `a=b,c=d` elsewhere. Paths are relative to the working\n"
            "directory. An unknown key or flag is an error; an unknown `FERMATA_` variable is a\n"
            "warning. `fermata check` shows every value and where it came from.\n\n"
            "## Options\n\n"));
    markdown_options(out);
    buf_append(out, STR("\n## Values\n\n"));
    markdown_types(out);
    buf_append(out, STR("\nRanges, in bytes where the value is a size:\n\n"));
    markdown_ranges(out);
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
    markdown_maps(out);
    record_markdown(out);
    buf_append(out, STR("\nA schema is any YAML; a plain `true`, `false`, `null` or number is that "
                        "in JSON, and all else a string.\n"
                        "Values of headers, variables of programs and secrets are never shown.\n"
                        "\n## The file\n\nAll keys with their defaults:\n\n```yaml\n"));
    markdown_defaults(out);
    buf_append(out, STR("```\n"));
}
