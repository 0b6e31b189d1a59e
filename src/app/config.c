/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading the configuration: four layers over each other.
 *
 *     default < file < environment < flag
 *
 * Each value goes through option_set, which parses it into its field and remembers what was written
 * and where. So a wrong value is refused even if a later layer replaces it, and config_print shows
 * what a person wrote rather than what we made of it. The rows are in option.c. Lists of records
 * are in the file alone; record.c reads them.
 */
#include "app/config.h"

#include <stdlib.h>
#include <string.h>

#include "app/file.h"
#include "app/option.h"
#include "app/record.h"
#include "app/say.h"
#include "app/yaml.h"
#include "base/limits.h"

struct load {
    struct arena *arena;
    struct config config;
    struct fault *reterr;
    str warnings[CONFIG_WARNINGS_MAX];
};

static void warn(struct load *load, str text)
{
    if (load->config.warnings.count == CONFIG_WARNINGS_MAX) return;
    load->warnings[load->config.warnings.count++] = text;
}

static enum err set(struct load *load, const struct option *option, struct config_value value)
{
    return option_set(&load->config, load->arena, option, value, load->reterr);
}

/* Text from a place that has no lists or maps of its own: commas separate items, and = a name from
 * its value. Empty counts as not given. */
static enum err set_text(struct load *load, const struct option *option, enum config_source source,
                         str text)
{
    if (text.len == 0) return OK;
    enum option_shape shape = option_form(option->type)->shape;
    size_t count = 1;
    for (size_t i = 0; shape != SHAPE_ONE && i < text.len; i++) count += text.p[i] == ',';

    str *items = arena_array(load->arena, 2 * count, sizeof *items);
    str rest = text;
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        str item = shape == SHAPE_ONE ? text : str_trim(str_split(&rest, ','));
        if (shape == SHAPE_MAP)
            items[used++] = arena_str(load->arena, str_trim(str_split(&item, '=')));
        items[used++] = arena_str(load->arena, shape == SHAPE_MAP ? str_trim(item) : item);
    }
    return set(load, option, (struct config_value){source, 0, {items, used}});
}

static enum err load_defaults(struct load *load)
{
    load->config.values = arena_array(load->arena, option_count, sizeof *load->config.values);
    for (size_t i = 0; i < option_count; i++) {
        enum err e = set_text(load, &options[i], CONFIG_DEFAULT, str_c(options[i].fallback));
        if (e) return e;
    }
    return OK;
}

/* The file. */

static enum err refuse_node(const struct load *load, const struct yaml_node *node, str path,
                            const char *what, const char *suggestion)
{
    return fault_field(load->reterr, ERR_CONFIG, say(path).text, "%s:%u: \"%s\" %s%s",
                       say(load->config.file).text, node->line, say(path).text, what, suggestion);
}

static enum err unknown_key(const struct load *load, const struct yaml_node *node, str path)
{
    if (str_find_char(node->key, '.') >= 0)
        return refuse_node(load, node, path, "has a dot",
                           "; put the part behind it on a line of its own, indented");
    struct nearest n;
    nearest_init(&n, path);
    for (size_t i = 0; i < option_count; i++)
        if (!options[i].not_in_file) nearest_offer(&n, str_c(options[i].name), options[i].name);

    /* A key may also be right and stand at the wrong level. */
    struct nearest by_last;
    nearest_init(&by_last, option_leaf(path));
    for (size_t i = 0; i < option_count; i++)
        if (!options[i].not_in_file)
            nearest_offer(&by_last, option_leaf(str_c(options[i].name)), options[i].name);
    record_offer(&n);
    record_offer(&by_last);
    if (by_last.distance < n.distance) n = by_last;
    return refuse_node(load, node, path, "is an unknown key",
                       say_nearest(&n, "`fermata help` lists the known ones").text);
}

static enum err set_node(struct load *load, const struct option *option,
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
    str path = str_c(option->name);
    if (node->type == YAML_SCALAR && node->null) return OK;
    if (node->type != shapes[shape].type)
        return refuse_node(load, node, path, shapes[shape].wrong, shapes[shape].write);

    size_t count = shape == SHAPE_ONE ? 1 : node->count, used = 0;
    str *items = arena_array(load->arena, 2 * count, sizeof *items);
    const struct yaml_node *item = shape == SHAPE_ONE ? node : node->child;
    for (size_t i = 0; i < count; i++, item = item->next) {
        if (item->type != YAML_SCALAR)
            return refuse_node(load, item, path, shapes[shape].wrong_item, shapes[shape].write);
        if (shape == SHAPE_MAP) items[used++] = item->key;
        items[used++] = item->text;
    }
    return set(load, option, (struct config_value){CONFIG_FILE, node->line, {items, used}});
}

static const struct option *option_at(str path)
{
    for (size_t i = 0; i < option_count; i++)
        if (!options[i].not_in_file && str_eq(str_c(options[i].name), path)) return &options[i];
    return NULL;
}

/* Is there an option below "limits."? */
static bool section(str prefix)
{
    for (size_t i = 0; i < option_count; i++)
        if (str_starts(str_c(options[i].name), prefix)) return true;
    return false;
}

/* Recursion ends at the deepest section of the table. */
static enum err load_map(struct load *load, const struct yaml_node *map, str prefix)
{
    for (const struct yaml_node *node = map->child; node; node = node->next) {
        str path = arena_printf(load->arena, "%.*s%.*s", STR_ARG(prefix), STR_ARG(node->key));
        str below = arena_printf(load->arena, "%.*s.", STR_ARG(path));
        const struct option *option = option_at(path);
        enum err e = OK;
        if (prefix.len == 0 && record_is(node->key))
            e = record_load(&load->config, load->arena, node, load->reterr);
        else if (str_find_char(node->key, '.') >= 0 || (!option && !section(below)))
            e = unknown_key(load, node, path);
        else if (option)
            e = set_node(load, option, node);
        else if (node->type == YAML_MAP)
            e = load_map(load, node, below);
        else if (!node->null)
            e = refuse_node(load, node, path, "has keys of its own",
                            "; write them below it, indented");
        if (e) return e;
    }
    return OK;
}

static enum err load_file(struct load *load)
{
    /* A file that somebody named must be there. */
    bool named = load->config.values[config_flag(STR("config"))].source != CONFIG_DEFAULT;
    struct fault found = {0};
    str text;
    enum err e = file_read(load->arena, load->config.file.p, YAML_BYTES_MAX, &text, &found);
    if (e == ERR_NOT_FOUND && !named) {
        load->config.file = STR_EMPTY;
        return OK;
    }
    if (e)
        return fault_field(load->reterr, ERR_CONFIG, "config", "%s%s", found.text,
                           named ? "; check --config or FERMATA_CONFIG" : "");
    struct yaml_node *root;
    e = yaml_parse(load->arena, load->config.file.p, text, &root, load->reterr);
    if (e) return e;
    if (root->null) return OK;
    if (root->type != YAML_MAP)
        return fault(load->reterr, ERR_CONFIG,
                     "%s:%u: holds no keys; write lines such as data: ./data",
                     say(load->config.file).text, root->line);
    return load_map(load, root, STR_EMPTY);
}

/* The environment and the command line. */

static const str env_prefix = STR("FERMATA_");

static void unknown_env(struct load *load, str name)
{
    struct nearest n;
    nearest_init(&n, str_drop(name, env_prefix.len));
    for (size_t i = 0; i < option_count; i++) {
        struct option_name known = option_env(&options[i]);
        nearest_offer(&n, str_drop(str_c(known.text), env_prefix.len), known.text);
    }
    warn(load,
         arena_printf(load->arena, "the environment variable %s is unknown and ignored%s",
                      say(name).text, say_nearest(&n, "`fermata help` lists the known ones").text));
}

static str env_get(char *const *environment, str name)
{
    for (; *environment; environment++) {
        str value = str_c(*environment);
        if (str_starts(value, name) && value.len > name.len && value.p[name.len] == '=')
            return str_drop(value, name.len + 1);
    }
    return STR_EMPTY;
}

static bool env_known(str name)
{
    for (size_t i = 0; i < option_count; i++)
        if (str_eq(str_c(option_env(&options[i]).text), name)) return true;
    return false;
}

static void warn_unknown(struct load *load, char *const *environment)
{
    for (; *environment; environment++) {
        str value = str_c(*environment);
        str name = str_split(&value, '=');
        if (str_starts(name, env_prefix) && value.len && !env_known(name)) unknown_env(load, name);
    }
}

/* Environment and flags are laid twice: once for the options that are not in the file, because they
 * say which file it is, and once over it for the rest. */
static enum err load_environment(struct load *load, char *const *environment, bool not_in_file)
{
    for (size_t i = 0; i < option_count; i++) {
        if (options[i].not_in_file != not_in_file) continue;
        str value = env_get(environment, str_c(option_env(&options[i]).text));
        enum err e = set_text(load, &options[i], CONFIG_ENVIRONMENT, value);
        if (e) return e;
    }
    return OK;
}

static enum err load_flags(struct load *load, const struct config_arg *args, size_t count,
                           bool not_in_file)
{
    for (size_t i = 0; i < count; i++) {
        const struct option *option = &options[args[i].option];
        if (option->not_in_file != not_in_file) continue;
        if (args[i].value.len == 0)
            return fault_field(load->reterr, ERR_CONFIG, option->name, "--%s is empty; write %s",
                               option_flag(option).text, option_form(option->type)->write);
        enum err e = set_text(load, option, CONFIG_FLAG, args[i].value);
        if (e) return e;
    }
    return OK;
}

/* The first key. */

static enum err load_key_file(struct load *load)
{
    struct config *c = &load->config;
    struct fault found = {0};
    str key;
    enum err e =
        file_read(load->arena, c->api_key_file.p, CONFIG_SECRET_FILE_BYTES_MAX, &key, &found);
    if (e)
        return fault_field(load->reterr, ERR_CONFIG, "api_key_file",
                           "api_key_file: %s; name a file that holds one key", found.text);
    key = option_line(key);
    const char *refused = option_secret_check(key);
    if (refused)
        return fault_field(load->reterr, ERR_CONFIG, "api_key_file",
                           "api_key_file: the key in %s %s; write %s", say(c->api_key_file).text,
                           refused, option_form(SECRET)->write);
    c->api_key = arena_str(load->arena, key);
    return OK;
}

static struct option_place place_named(const struct config *config, str name)
{
    const struct option *option = option_at(name);
    return option_place(config, option, &config->values[option - options]);
}

static enum err load_key(struct load *load)
{
    enum { KEY_BYTES_SAFE = 16 };
    struct config *c = &load->config;
    if (c->api_key.len && c->api_key_file.len)
        return fault_field(load->reterr, ERR_CONFIG, "api_key",
                           "api_key (%s) and api_key_file (%s) are both set; remove one",
                           place_named(c, STR("api_key")).text,
                           place_named(c, STR("api_key_file")).text);
    enum err e = c->api_key_file.len ? load_key_file(load) : OK;
    if (e) return e;
    if (c->api_key.len && c->api_key.len < KEY_BYTES_SAFE)
        warn(load, STR("the API key is shorter than 16 characters and can be guessed; make one "
                       "with: openssl rand -hex 32"));
    return OK;
}

/* The model and its script. */

static enum err load_model(struct load *load)
{
    const struct config *c = &load->config;
    bool scripted = c->model_provider == PROVIDER_SCRIPTED;
    if (scripted && !c->script.len)
        return fault_field(load->reterr, ERR_CONFIG, "script",
                           "%s: model.provider is scripted and there is no script; name its file "
                           "with script or FERMATA_SCRIPT",
                           place_named(c, STR("model.provider")).text);
    if (!scripted && c->script.len)
        warn(load, STR("script is set and not used; set model.provider to scripted to play it"));
    if (!scripted && c->script_log.len)
        warn(load, STR("script_log is set and not used; only the scripted model writes it"));
    return OK;
}

enum err config_load(struct arena *arena, const struct config_arg *args, size_t arg_count,
                     char *const *environment, struct config *ret_config, struct fault *reterr)
{
    struct load load = {.arena = arena, .reterr = reterr};
    enum err e = load_defaults(&load);
    if (!e) e = load_environment(&load, environment, true);
    if (!e) e = load_flags(&load, args, arg_count, true);
    if (!e) e = load_file(&load);
    if (!e) e = load_environment(&load, environment, false);
    if (!e) e = load_flags(&load, args, arg_count, false);
    if (!e) e = load_key(&load);
    if (!e) e = load_model(&load);
    if (e) return e;
    warn_unknown(&load, environment);

    str *warnings = arena_array(arena, load.config.warnings.count, sizeof *warnings);
    memcpy(warnings, load.warnings, load.config.warnings.count * sizeof *warnings);
    load.config.warnings.items = warnings;
    *ret_config = load.config;
    return OK;
}

int config_flag(str flag)
{
    for (size_t i = 0; i < option_count; i++)
        if (str_eq(str_c(option_flag(&options[i]).text), flag)) return (int)i;
    return -1;
}

void config_offer_flags(struct nearest *n)
{
    for (size_t i = 0; i < option_count; i++) {
        struct option_name flag = option_flag(&options[i]);
        nearest_offer(n, str_c(flag.text), flag.text);
    }
}

void config_defaults(struct arena *arena, struct config *ret_config)
{
    struct load load = {.arena = arena};
    if (load_defaults(&load)) abort(); /* a default that its own row refuses */
    load.config.file = STR_EMPTY;
    *ret_config = load.config;
}

const char *config_blobs(const struct config *config, struct arena *arena)
{
    if (config->blobs.len) return config->blobs.p;
    return arena_printf(arena, "%s/blobs", config->data.p).p;
}
