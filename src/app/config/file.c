/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration file: a tree of keys laid over rows of the option table.
 *
 *     limits: {body: 1MiB}           an option: its path is its name
 *     tools: [...]                   records: record.c
 *     models: {main: {...}}          a map whose entries are described by rows: each is a target
 *     agents: {support: {...}}       likewise; `assistant` there is the options themselves
 *
 * Invariant: every key is known or refused, with the nearest known one; and a key that says nothing
 * counts as not given, unless it is the name of an entry, which is there then with its defaults.
 */
#include <string.h>

#include "app/config/int.h"
#include "app/config/record.h"
#include "app/config/yaml.h"
#include "app/say.h"

static enum err refuse_node(const struct option_target *target, const struct yaml_node *node,
                            str path, const char *what, const char *suggestion)
{
    return fault_field(target->reterr, ERR_CONFIG, say(path).text, "%s:%u: \"%s\" %s%s",
                       say(target->config->file).text, node->line, say(path).text, what,
                       suggestion);
}

static enum option_of map_of(str key)
{
    enum option_of of = OF_CONFIG;
    for (enum option_of i = 0; i < OF_COUNT; i++)
        if (option_maps[i].name && str_eq(str_c(option_maps[i].name), key)) of = i;
    return of;
}

static bool has_row(const struct option_target *target, const struct option *option)
{
    return !option->not_in_file && target->fills[option->of];
}

/* Rows by their whole names, and by their last parts: a key may also be right and stand at the
 * wrong level. In an entry names begin behind the entry's. */
static enum err unknown_key(const struct option_target *target, const struct yaml_node *node,
                            str row, str path)
{
    if (str_find_char(node->key, '.') >= 0)
        return refuse_node(target, node, path, "has a dot",
                           "; put the part behind it on a line of its own, indented");
    struct nearest n, by_last;
    size_t skip = strlen(target->rows);
    nearest_init(&n, str_drop(row, skip));
    nearest_init(&by_last, option_leaf(row));
    for (size_t i = 0; i < option_count; i++) {
        if (!has_row(target, &options[i])) continue;
        const char *name = options[i].name + skip;
        nearest_offer(&n, str_c(name), name);
        nearest_offer(&by_last, option_leaf(str_c(name)), name);
    }
    if (skip == 0) {
        record_offer(&n);
        record_offer(&by_last);
        for (enum option_of i = 0; i < OF_COUNT; i++)
            if (option_maps[i].name)
                nearest_offer(&n, str_c(option_maps[i].name), option_maps[i].name);
    }
    if (by_last.distance < n.distance) n = by_last;
    return refuse_node(target, node, path, "is an unknown key",
                       say_nearest(&n, "`fermata help` lists the known ones").text);
}

static enum err set_node(const struct option_target *target, const struct option *option,
                         const struct yaml_node *node)
{
    static const struct {
        enum yaml_type type;
        const char *wrong, *wrong_item, *write;
    } shapes[] = {
        [SHAPE_ONE] = {YAML_SCALAR, "takes one value", "", "; write it on the same line"},
        [SHAPE_LIST] = {YAML_SEQUENCE, "takes a list", "takes a list of plain values",
                        "; write [a, b]"},
        [SHAPE_MAP] = {YAML_MAP, "takes a map", "takes a map of plain values", "; write {a: b}"},
    };
    enum option_shape shape = option_form(option->type)->shape;
    struct option_path name = option_path(target, str_c(option->name));
    str path = str_c(name.text);
    if (node->type == YAML_SCALAR && node->null) return OK;
    if (node->type != shapes[shape].type)
        return refuse_node(target, node, path, shapes[shape].wrong, shapes[shape].write);

    size_t count = shape == SHAPE_ONE ? 1 : node->count, used = 0;
    str *items = arena_array(target->arena, 2 * count, sizeof *items);
    const struct yaml_node *item = shape == SHAPE_ONE ? node : node->child;
    for (size_t i = 0; i < count; i++, item = item->next) {
        if (item->type != YAML_SCALAR)
            return refuse_node(target, item, path, shapes[shape].wrong_item, shapes[shape].write);
        if (shape == SHAPE_MAP) items[used++] = item->key;
        items[used++] = item->text;
    }
    return option_set(target, option,
                      (struct config_value){CONFIG_FILE, node->line, {items, used}});
}

/* Is there a row below "limits."? */
static bool section(const struct option_target *target, str prefix)
{
    for (size_t i = 0; i < option_count; i++)
        if (has_row(target, &options[i]) && str_starts(str_c(options[i].name), prefix)) return true;
    return false;
}

/* The keys below `prefix`, which is how rows begin. Recursion ends at the deepest section of the
 * table. */
static enum err load_map(const struct option_target *target, const struct yaml_node *map,
                         str prefix);

static enum err load_key(const struct option_target *target, const struct yaml_node *node,
                         str prefix)
{
    str row = arena_printf(target->arena, "%.*s%.*s", STR_ARG(prefix), STR_ARG(node->key));
    str below = arena_printf(target->arena, "%.*s.", STR_ARG(row));
    str path = arena_printf(target->arena, "%s%.*s", target->path,
                            STR_ARG(str_drop(row, strlen(target->rows))));
    const struct option *option = option_at(row);
    if (option && !has_row(target, option)) option = NULL;
    if (str_find_char(node->key, '.') >= 0 || (!option && !section(target, below)))
        return unknown_key(target, node, row, path);
    if (option) return set_node(target, option, node);
    if (node->type == YAML_MAP) return load_map(target, node, below);
    if (node->null) return OK;
    return refuse_node(target, node, path, "has keys of its own",
                       "; write them below it, indented");
}

static enum err load_map(const struct option_target *target, const struct yaml_node *map,
                         str prefix)
{
    for (const struct yaml_node *node = map->child; node; node = node->next) {
        enum err e = load_key(target, node, prefix);
        if (e) return e;
    }
    return OK;
}

/* ---- maps of entries ---- */

/* The entry's own struct begins with its line and its name. */
static void *add_entry(struct config_load *load, enum option_of of, const struct yaml_node *node,
                       struct config_value *values)
{
    if (of == OF_MODEL) {
        struct config_model *model = &load->models[load->model_count++];
        *model = (struct config_model){.line = node->line, .name = node->key, .values = values};
        return model;
    }
    struct config_agent *agent = &load->agents[load->agent_count++];
    *agent = (struct config_agent){.line = node->line, .name = node->key, .values = values};
    return agent;
}

static enum err load_entry(struct config_load *load, enum option_of of,
                           const struct yaml_node *node)
{
    const struct option_map *map = &option_maps[of];
    str path = arena_printf(load->arena, "%s.%.*s", map->name, STR_ARG(node->key));
    const char *refused = record_name_check(node->key, CONFIG_ENTRY_NAME_BYTES_MAX);
    if (refused) return refuse_node(&load->options, node, path, refused, "");
    if (node->type != YAML_MAP && !(node->type == YAML_SCALAR && node->null))
        return refuse_node(&load->options, node, path, "has keys of its own",
                           "; write them below it, indented");
    if (map->own && str_eq(str_c(map->own), node->key)) {
        load->assistant.line = node->line;
        return load_map(&load->options, node, str_c(map->rows));
    }
    struct config_value *values = arena_array(load->arena, option_count, sizeof *values);
    void *entry = add_entry(load, of, node, values);
    struct option_target target = config_target(load, of, node->key, entry, values);
    enum err e = config_set_defaults(&target);
    return e ? e : load_map(&target, node, str_c(map->rows));
}

static enum err load_entries(struct config_load *load, enum option_of of,
                             const struct yaml_node *map)
{
    if (map->type == YAML_SCALAR && map->null) return OK;
    if (map->type != YAML_MAP)
        return refuse_node(&load->options, map, map->key, "takes a map", "; write {name: {...}}");
    if (map->count > CONFIG_LIST_MAX)
        return refuse_node(&load->options, map, map->key, "has more than 100 entries",
                           "; remove some");
    if (of == OF_MODEL)
        load->models = arena_array(load->arena, map->count, sizeof *load->models);
    else
        load->agents = arena_array(load->arena, map->count, sizeof *load->agents);
    for (const struct yaml_node *node = map->child; node; node = node->next) {
        enum err e = load_entry(load, of, node);
        if (e) return e;
    }
    return OK;
}

enum err config_file_load(struct config_load *load, const struct yaml_node *root)
{
    for (const struct yaml_node *node = root->child; node; node = node->next) {
        enum option_of of = map_of(node->key);
        enum err e;
        if (record_is(node->key))
            e = record_load(&load->config, load->arena, node, load->reterr);
        else if (of != OF_CONFIG)
            e = load_entries(load, of, node);
        else
            e = load_key(&load->options, node, STR_EMPTY);
        if (e) return e;
    }
    return OK;
}
