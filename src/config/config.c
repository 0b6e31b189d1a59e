/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration, loaded as four layers over each other: defaults, file, environment, flags.
 *
 *     default < file < environment < flag
 *
 * Each value goes through option_set, which parses it into its field and remembers what was written
 * and where. So a wrong value is refused even if a later layer replaces it, and config_print shows
 * what a person wrote rather than what we made of it. The rows are in option.c and record.c;
 * config_file.c reads the file; when all is laid, config_agents.c completes models and agents, and
 * config_channels.c channels.
 */
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/say.h"
#include "config/config_int.h"
#include "config/yaml.h"

void config_warn(struct config_load *load, str text)
{
    if (load->config.warnings.count == CONFIG_WARNINGS_MAX) return;
    load->warnings[load->config.warnings.count++] = text;
}

/* Text from a place that has no lists or maps of its own: commas separate items, and = a name from
 * its value. Empty counts as not given. */
static enum err set_text(const struct option_target *target, const struct option *option,
                         enum config_source source, str text)
{
    if (text.len == 0) return OK;
    enum option_shape shape = option_forms[option->type].shape;
    size_t count = 1;
    for (size_t i = 0; shape != SHAPE_ONE && i < text.len; i++) count += text.p[i] == ',';

    str *items = arena_array(target->arena, 2 * count, sizeof *items);
    str rest = text;
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        str item = shape == SHAPE_ONE ? text : str_trim(str_split(&rest, ','));
        if (shape == SHAPE_MAP)
            items[used++] = arena_str(target->arena, str_trim(str_split(&item, '=')));
        items[used++] = arena_str(target->arena, shape == SHAPE_MAP ? str_trim(item) : item);
    }
    return option_set(target, option,
                      (struct config_value){.source = source, .items = {items, used}});
}

enum err config_set_defaults(const struct option_target *target)
{
    for (const struct option *o = target->table; o->name; o++) {
        if (!target->fills[o->of]) continue;
        enum err e = set_text(target, o, CONFIG_DEFAULT, str_c(o->fallback));
        if (e) return e;
    }
    return OK;
}

struct option_target config_target(struct config_load *load, enum option_of of, size_t index,
                                   void *entry)
{
    const struct option_map *map = &option_maps[of];
    const struct config_entry *e = entry;
    struct option_target target = {
        .config = &load->config,
        .arena = load->arena,
        .reterr = load->reterr,
        .table = map->table,
        .values = e->values,
        .rows = map->rows,
    };
    target.path = map->list ? arena_printf(load->arena, "%s[%zu]%s%s.", map->name, index,
                                           map->tag ? "." : "", map->tag ? map->tag : "")
                                  .p
                            : arena_printf(load->arena, "%s.%.*s.", map->name, STR_ARG(e->name)).p;
    target.fills[of] = entry;
    return target;
}

/* `load` stays where it is from here on. */
static enum err load_begin(struct config_load *load)
{
    struct config *c = &load->config;
    c->values = arena_array(load->arena, option_count, sizeof *c->values);
    c->model.values = load->assistant.values = c->values;
    load->assistant.name = str_c(option_maps[OF_AGENT].own);
    load->options = (struct option_target){
        .config = c,
        .arena = load->arena,
        .reterr = load->reterr,
        .table = options,
        .fills = {[OF_CONFIG] = c, [OF_MODEL] = &c->model, [OF_AGENT] = &load->assistant},
        .values = c->values,
        .path = "",
        .rows = "",
    };
    return config_set_defaults(&load->options);
}

/* The file. */

static enum err load_file(struct config_load *load)
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
    return config_file_load(load, root);
}

/* The environment and the command line. */

static const str env_prefix = STR("FERMATA_");

static str env_get(char *const *environment, str name)
{
    for (; *environment; environment++) {
        str value = str_c(*environment);
        if (str_starts(value, name) && value.len > name.len && value.p[name.len] == '=')
            return str_drop(value, name.len + 1);
    }
    return STR_EMPTY;
}

static void warn_unknown(struct config_load *load, char *const *environment)
{
    for (; *environment; environment++) {
        str value = str_c(*environment);
        str name = str_split(&value, '=');
        bool known = str_eq(name, STR("FERMATA_URL")); /* of `fermata mcp`, no option of a server */
        struct nearest n;
        if (!str_starts(name, env_prefix) || !value.len) continue;
        nearest_init(&n, str_drop(name, env_prefix.len));
        for (const struct option *o = options; o->name; o++) {
            struct option_name env = option_env(o);
            known |= str_eq(str_c(env.text), name);
            nearest_offer(&n, str_drop(str_c(env.text), env_prefix.len), env.text);
        }
        if (!known)
            config_warn(load,
                        arena_printf(load->arena,
                                     "the environment variable %s is unknown and ignored%s",
                                     say(name).text,
                                     say_nearest(&n, "`fermata help` lists the known ones").text));
    }
}

/* Environment and flags are laid twice: once for the options that are not in the file, because they
 * say which file it is, and once over it for the rest. */
static enum err load_environment(struct config_load *load, char *const *environment,
                                 bool not_in_file)
{
    for (const struct option *o = options; o->name; o++) {
        if (o->not_in_file != not_in_file) continue;
        str value = env_get(environment, str_c(option_env(o).text));
        enum err e = set_text(&load->options, o, CONFIG_ENVIRONMENT, value);
        if (e) return e;
    }
    return OK;
}

static enum err load_flags(struct config_load *load, const struct config_arg *args, size_t count,
                           bool not_in_file)
{
    for (size_t i = 0; i < count; i++) {
        const struct option *option = &options[args[i].option];
        if (option->not_in_file != not_in_file) continue;
        if (args[i].value.len == 0)
            return fault_field(load->reterr, ERR_CONFIG, option->name, "--%s is empty; write %s",
                               option_flag(option).text, option_forms[option->type].write);
        enum err e = set_text(&load->options, option, CONFIG_FLAG, args[i].value);
        if (e) return e;
    }
    return OK;
}

/* Keys. */

struct option_place config_place(const struct option_target *target, const char *row)
{
    const struct config_value *value = option_value(target, row);
    return option_place(target->config, &target->table[value - target->values], value);
}

enum err config_read_key(const struct option_target *target, const char *row,
                         const struct config_key_form *form, str *key)
{
    struct option_path path = option_path(target, str_c(row));
    struct option_place place = config_place(target, row);
    struct strs file = option_value(target, row)->items;
    bool absent = false;
    str line;
    if (!file.count) return OK;
    enum err e = option_read_line(target, place.text, path.text, file.items[0], form->bytes_max,
                                  form->may_follow ? &absent : NULL, &line);
    if (e || absent) return e;
    const char *refused = form->check(line);
    if (!refused && line.len < form->safe_min)
        refused = "is shorter than 16 characters and can be guessed; make one with: openssl rand "
                  "-hex 32";
    if (refused)
        return fault_field(target->reterr, ERR_CONFIG, path.text, "%s: %s: the key in %s %s",
                           place.text, path.text, say(file.items[0]).text, refused);
    *key = line;
    return OK;
}

enum err config_take_key(const struct option_target *target, const char *row, str *key)
{
    static const struct config_key_form form = {.bytes_max = CONFIG_SECRET_FILE_BYTES_MAX,
                                                .check = option_secret_check};
    const char *file_row = arena_printf(target->arena, "%s_file", row).p;
    if (key->len && option_value(target, file_row)->items.count)
        return fault_field(target->reterr, ERR_CONFIG, option_path(target, str_c(row)).text,
                           "%s (%s) and %s (%s) are both set; remove one",
                           option_path(target, str_c(row)).text, config_place(target, row).text,
                           option_path(target, str_c(file_row)).text,
                           config_place(target, file_row).text);
    return config_read_key(target, file_row, &form, key);
}

static enum err load_key(struct config_load *load)
{
    struct config *c = &load->config;
    enum err e = config_take_key(&load->options, "api_key", &c->api_key);
    if (e) return e;
    if (c->api_key.len && c->api_key.len < AUTH_KEY_BYTES_MIN)
        return fault(load->reterr, ERR_CONFIG,
                     "the API key has fewer than %d characters: it would be found by trying; make "
                     "one with: openssl rand -hex 32",
                     AUTH_KEY_BYTES_MIN);
    if (c->api_key.len && c->api_key.len < AUTH_KEY_BYTES_SAFE)
        config_warn(load, STR("the API key is shorter than 16 characters and can be guessed; make "
                              "one with: openssl rand -hex 32"));
    return OK;
}

enum err config_load(struct arena *arena, const struct config_arg *args, size_t arg_count,
                     char *const *environment, struct config *ret_config, struct fault *reterr)
{
    struct config_load load = {.arena = arena, .reterr = reterr};
    enum err e = load_begin(&load);
    if (!e) e = load_environment(&load, environment, true);
    if (!e) e = load_flags(&load, args, arg_count, true);
    if (!e) e = load_file(&load);
    if (!e) e = load_environment(&load, environment, false);
    if (!e) e = load_flags(&load, args, arg_count, false);
    if (!e) e = load_key(&load);
    if (!e) e = config_agents_finish(&load);
    if (!e) e = config_channels_finish(&load);
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
    for (const struct option *o = options; o->name; o++)
        if (str_eq(str_c(option_flag(o).text), flag)) return (int)(o - options);
    return -1;
}

enum err config_flag_check(int number, struct fault *reterr)
{
    const struct option *option = &options[number];
    if (option->type != SECRET) return OK;
    return fault_field(reterr, ERR_CONFIG, option->name,
                       "--%s would show the key to everybody in the list of processes; set %s, or "
                       "write it to a file and name that with --%s-file",
                       option_flag(option).text, option_env(option).text, option_flag(option).text);
}

void config_offer_flags(struct nearest *n)
{
    for (const struct option *o = options; o->name; o++) {
        if (o->type == SECRET) continue;
        struct option_name flag = option_flag(o);
        nearest_offer(n, str_c(flag.text), flag.text);
    }
}

void config_defaults(struct arena *arena, struct config *ret_config)
{
    struct config_load load = {.arena = arena};
    if (load_begin(&load)) abort(); /* a default that its own row refuses */
    load.config.file = STR_EMPTY;
    if (config_agents_finish(&load)) abort();
    *ret_config = load.config;
}

const struct config_model *config_model_of(const struct config *config,
                                           const struct config_agent *agent)
{
    for (size_t i = 0; i < config->models.count; i++)
        if (str_eq(config->models.items[i].name, agent->model)) return &config->models.items[i];
    return &config->model;
}

const char *config_blobs(const struct config *config, struct arena *arena)
{
    if (config->blobs.len) return config->blobs.p;
    return arena_printf(arena, "%s/blobs", config->data.p).p;
}
