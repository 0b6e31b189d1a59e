/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading the configuration, between its files: config.c lays the layers, file.c reads the
 * file, agents.c completes models and agents, channels.c channels. Nobody else includes this.
 */
#ifndef APP_CONFIG_INT_H
#define APP_CONFIG_INT_H

#include "app/config/config.h"
#include "app/config/option.h"
#include "base/limits.h"

struct yaml_node;

struct config_load {
    struct arena *arena;
    struct config config;
    struct fault *reterr;
    struct option_target options;  /* all rows of the table */
    struct config_agent assistant; /* what the options agents.assistant.* say of it */
    struct config_model *models;   /* of the file */
    size_t model_count;
    struct config_agent *agents; /* of the file, without `assistant` */
    size_t agent_count;
    str warnings[CONFIG_WARNINGS_MAX];
};

void config_warn(struct config_load *load, str text); /* kept as it is; dropped if too many */

/* An entry of a map as a target; `entry` is what its rows fill. */
struct option_target config_target(struct config_load *load, enum option_of of, str name,
                                   void *entry, struct config_value *values);

/* Give every row of the target its default. */
enum err config_set_defaults(const struct option_target *target) MUST_USE;

/* A secret may stand in the option `row` or in the file that `row`_file names: now it is in `key`. */
enum err config_take_key(const struct option_target *target, const char *row, str *key) MUST_USE;

/* Where the value of a row came from. */
struct option_place config_place(const struct option_target *target, const char *row);

/* Lay the file over what is there. */
enum err config_file_load(struct config_load *load, const struct yaml_node *root) MUST_USE;

/* When all layers are laid: fill config.model, models and agents, and check them as a whole. */
enum err config_agents_finish(struct config_load *load) MUST_USE;

/* After that: every channel as its kind needs it, with its secrets read and its agent there. */
enum err config_channels_finish(struct config_load *load) MUST_USE;

#endif
