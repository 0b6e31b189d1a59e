/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration file: a tree of keys laid over rows, of the options and of the entries in its
 * maps and lists.
 *
 *     limits: {body: 1MiB}           an option: its path is its name
 *     models: {main: {...}}          a map whose entries are described by rows: each is a target
 *     agents: {support: {...}}       likewise; `assistant` there is the options themselves
 *     tools: [{http: {...}}]         a list of such entries
 *
 * Invariant: every key is known or refused, with the nearest known one; and a key that says nothing
 * counts as not given, unless it is the name of an entry, which is there then with its defaults.
 */
#include <string.h>

#include "base/say.h"
#include "config/config_int.h"
#include "config/yaml.h"

static enum err refuse_node(const struct option_target *target, const struct yaml_node *node,
                            str path, const char *what, const char *suggestion)
{
    return option_refuse(target, option_place_line(target->config, node->line).text, say(path).text,
                         "%s%s", what, suggestion);
}

static bool says_nothing(const struct yaml_node *node)
{
    return node->type == YAML_SCALAR && node->null;
}

static bool has_row(const struct option_target *target, const struct option *option)
{
    return !option->not_in_file && target->fills[option->of];
}

/* First the names that may stand here: options, groups of them, maps and lists at the top. A key may
 * also be right and stand at the wrong level, deeper or at the top, on a line that is indented too
 * little or too much: then it is all but right, for every word is a little like one of many. Groups
 * beside this one have nothing to do with it. In an entry names begin behind the entry's. */
static enum err unknown_key(const struct option_target *target, const struct yaml_node *node,
                            str row, str path)
{
    if (str_find_char(node->key, '.') >= 0)
        return refuse_node(target, node, path, "has a dot",
                           "; put the part behind it on a line of its own, indented");
    struct nearest n, elsewhere;
    size_t skip = strlen(target->rows);
    str prefix = {row.p, row.len - node->key.len};
    nearest_init(&n, node->key);
    nearest_init(&elsewhere, node->key);
    for (enum option_of of = OF_CONFIG + 1; of < OF_COUNT && !*target->path; of++)
        nearest_offer(prefix.len ? &elsewhere : &n, str_c(option_maps[of].name),
                      option_maps[of].name);
    for (const struct option *o = target->table; o->name; o++) {
        str name = str_c(o->name);
        bool below = str_starts(name, prefix);
        if (!has_row(target, o)) continue;
        if (below) { /* of "limits.body", "limits" at the top and "body" below `limits` */
            str rest = str_drop(name, prefix.len), level = str_split(&rest, '.');
            str shown = str_drop((str){name.p, prefix.len + level.len}, skip);
            nearest_offer(&n, level, arena_cstr(target->arena, shown));
        }
        if (below || str_find_char(str_drop(name, skip), '.') < 0)
            nearest_offer(&elsewhere, option_leaf(name), o->name + skip);
    }
    if (elsewhere.distance <= 1 && elsewhere.distance < n.distance) n = elsewhere;
    return refuse_node(target, node, path, "is an unknown key",
                       say_nearest(&n, "`fermata help` lists the known ones").text);
}

/* ---- values ---- */

/* JSON of a tree: a plain scalar is what JSON would take it for, everything else is a string.
 * Recursion ends at YAML_DEPTH_MAX. NULL, or a key that is too long. */
static const struct yaml_node *write_tree(struct json_writer *w, struct arena *arena,
                                          const struct yaml_node *node)
{
    struct json *json;
    if (node->type == YAML_SCALAR) {
        if (node->plain && node->null)
            json_null(w);
        else if (node->plain && json_parse(arena, node->text, &json, NULL) == OK)
            json_raw(w, node->text);
        else
            json_string(w, node->text);
        return NULL;
    }
    bool map = node->type == YAML_MAP;
    map ? json_object(w) : json_array(w);
    for (const struct yaml_node *n = node->child; n; n = n->next) {
        if (map && n->key.len > CONFIG_SCHEMA_KEY_BYTES_MAX) return n;
        if (map) json_key(w, n->key);
        const struct yaml_node *refused = write_tree(w, arena, n);
        if (refused) return refused;
    }
    map ? json_object_end(w) : json_array_end(w);
    return NULL;
}

static enum err tree_text(const struct option_target *target, const struct option *option,
                          const struct yaml_node *node, str *ret_json)
{
    AUTO(buf_done) struct buf text;
    buf_init(&text, CONFIG_SCHEMA_BYTES_MAX);
    struct json_writer w;
    json_write_begin(&w, &text);
    const struct yaml_node *refused = write_tree(&w, target->arena, node);
    if (refused)
        return option_refuse_row(target, refused->line, option->name,
                                 "has a name longer than 128 bytes; write a shorter one");
    if (text.full)
        return option_refuse_row(target, node->line, option->name,
                                 "is larger than 64 KiB as JSON; shorten it");
    *ret_json = arena_str(target->arena, buf_str(&text));
    return OK;
}

static enum err set_node(const struct option_target *target, const struct option *option,
                         const struct yaml_node *node)
{
    static const struct {
        enum yaml_type type;
        const char *wrong, *wrong_item;
    } shapes[] = {
        [SHAPE_ONE] = {YAML_SCALAR, "takes one value", ""},
        [SHAPE_LIST] = {YAML_SEQUENCE, "takes a list such as [a, b]",
                        "takes a list of plain values"},
        [SHAPE_MAP] = {YAML_MAP, "takes a map such as {a: b}", "takes a map of plain values"},
        [SHAPE_EITHER] = {YAML_MAP, "takes a text or a map", ""},
        [SHAPE_TREE] = {YAML_MAP, "takes a map", ""},
    };
    const struct option_form *form = &option_forms[option->type];
    enum option_shape shape = form->shape;
    if (shape == SHAPE_EITHER && node->type == YAML_SCALAR) shape = SHAPE_ONE;
    if (shape == SHAPE_EITHER && node->type == YAML_MAP) shape = SHAPE_MAP;
    if (says_nothing(node)) return OK;
    if (node->type != shapes[shape].type)
        return option_refuse_row(target, node->line, option->name, "%s; write %s",
                                 shapes[shape].wrong, form->write);

    bool one = shape == SHAPE_ONE || shape == SHAPE_TREE;
    size_t count = one ? 1 : node->count, used = 0;
    str *items = arena_array(target->arena, 2 * count, sizeof *items);
    uint32_t *lines = arena_array(target->arena, 2 * count, sizeof *lines);
    const struct yaml_node *item = one ? node : node->child;
    for (size_t i = 0; i < count; i++, item = item->next) {
        bool null = item->plain && item->null;
        if (shape != SHAPE_TREE && (item->type != YAML_SCALAR || (shape == SHAPE_LIST && null)))
            return option_refuse_row(target, item->line, option->name, "%s; write %s",
                                     shapes[shape].wrong_item, form->write);
        lines[used] = item->line;
        if (shape == SHAPE_MAP) items[used++] = item->key;
        lines[used] = item->line;
        items[used++] = null ? STR_EMPTY : item->text;
    }
    if (shape == SHAPE_TREE) {
        enum err e = tree_text(target, option, node, items);
        if (e) return e;
    }
    return option_set(target, option,
                      (struct config_value){.source = CONFIG_FILE,
                                            .line = node->line,
                                            .items = {items, used},
                                            .lines = lines});
}

/* ---- keys ---- */

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
    const struct option *option = NULL;
    bool section = false;
    for (const struct option *o = target->table; o->name; o++) {
        if (!has_row(target, o)) continue;
        if (str_eq(str_c(o->name), row)) option = o;
        section |= str_starts(str_c(o->name), below);
    }
    if (str_find_char(node->key, '.') >= 0 || (!option && !section))
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

/* ---- maps and lists of entries ---- */

/* May an entry be called so? */
static bool name_fits(str name, size_t bytes_max)
{
    bool fits = name.len > 0 && name.len <= bytes_max;
    for (size_t i = 0; i < name.len; i++) {
        char c = char_lower(name.p[i]);
        if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-') fits = false;
    }
    return fits;
}

/* Read the entry behind those that are there. */
static enum err load_entry(struct config_load *load, enum option_of of,
                           const struct yaml_node *node, char *entries, size_t *count)
{
    const struct option_map *map = &option_maps[of];
    struct config_entry *entry = (void *)(entries + *count * map->size);
    *entry = (struct config_entry){node->line, map->list ? STR_EMPTY : node->key, NULL};
    if (!map->list && !name_fits(node->key, map->name_bytes_max))
        return option_refuse(
            &load->options, option_place_line(&load->config, node->line).text,
            say(arena_printf(load->arena, "%s.%.*s", map->name, STR_ARG(node->key))).text,
            "is no name; write up to %zu letters, digits, _ and -", map->name_bytes_max);
    if (map->tag &&
        (node->type != YAML_MAP || node->count != 1 || !str_eq(node->child->key, str_c(map->tag))))
        return refuse_node(&load->options, node,
                           arena_printf(load->arena, "%s[%zu]", map->name, *count), "takes one key",
                           arena_printf(load->arena, "; write %s: {...}", map->tag).p);
    if (map->tag) node = node->child;

    struct option_target target = config_target(load, of, *count, entry);
    if (node->type != YAML_MAP && !says_nothing(node))
        return option_refuse_row(&target, node->line, "",
                                 "has keys of its own; write them below it, indented");
    if (map->own && str_eq(str_c(map->own), node->key)) {
        load->assistant.line = node->line;
        return load_map(&load->options, node, str_c(map->rows));
    }
    target.values = entry->values =
        arena_array(load->arena, option_rows(map->table), sizeof *entry->values);
    enum err e = config_set_defaults(&target);
    if (!e) e = load_map(&target, node, str_c(map->rows));
    for (const struct option *o = map->table; !e && o->name; o++)
        if (has_row(&target, o) && o->needed && !option_given(&target, o->name))
            e = option_refuse_row(&target, node->line, o->name, "is missing; write %s",
                                  option_forms[o->type].write);
    if (!e && map->finish) e = map->finish(&target, entries, *count);
    ++*count;
    return e;
}

static enum err load_entries(struct config_load *load, enum option_of of,
                             const struct yaml_node *node)
{
    const struct option_map *map = &option_maps[of];
    if (says_nothing(node)) return OK;
    if (map->list && node->type != YAML_SEQUENCE)
        return refuse_node(&load->options, node, node->key, "takes a list",
                           "; begin each item with -");
    if (!map->list && node->type != YAML_MAP)
        return refuse_node(&load->options, node, node->key, "takes a map", "; write {name: {...}}");
    if (node->count > CONFIG_LIST_MAX)
        return refuse_node(&load->options, node, node->key, "has more than 100 items",
                           "; remove some");
    char *entries = arena_array(load->arena, node->count, map->size);
    size_t count = 0;
    for (const struct yaml_node *n = node->child; n; n = n->next) {
        enum err e = load_entry(load, of, n, entries, &count);
        if (e) return e;
    }
    memcpy((char *)&load->config + map->offset, &(struct config_entries){entries, count},
           sizeof(struct config_entries));
    return OK;
}

enum err config_file_load(struct config_load *load, const struct yaml_node *root)
{
    for (const struct yaml_node *node = root->child; node; node = node->next) {
        enum option_of of = OF_COUNT - 1;
        while (of != OF_CONFIG && !str_eq(str_c(option_maps[of].name), node->key)) of--;
        enum err e = of == OF_CONFIG ? load_key(&load->options, node, STR_EMPTY)
                                     : load_entries(load, of, node);
        if (e) return e;
    }
    return OK;
}
