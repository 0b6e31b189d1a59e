/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading the configuration, between its files: config.c lays the layers, config_file.c reads the
 * file, record.c checks its entries, config_agents.c completes models and agents, config_channels.c
 * channels. Nobody else includes this.
 */
#ifndef CONFIG_CONFIG_INT_H
#define CONFIG_CONFIG_INT_H

#include "base/limits.h"
#include "config/config.h"
#include "config/option.h"

struct yaml_node;

struct config_load {
    struct arena *arena;
    struct config config; /* models and agents are those of the file until they are finished */
    struct fault *reterr;
    struct option_target options;  /* all rows of the table of options */
    struct config_agent assistant; /* what the options agents.assistant.* say of it */
    str warnings[CONFIG_WARNINGS_MAX];
};

void config_warn(struct config_load *load, str text); /* kept as it is; dropped if too many */

/* An entry as a target; its line, name and values are there. `index` counts in a list. */
struct option_target config_target(struct config_load *load, enum option_of of, size_t index,
                                   void *entry);

/* Give every row of the target its default. */
enum err config_set_defaults(const struct option_target *target) MUST_USE;

/* A secret in the file that a row names, if it names one. Blocks. */
struct config_key_form {
    size_t bytes_max, safe_min; /* of the file; of the secret, if it can be guessed */
    const char *(*check)(str);
    bool may_follow; /* the file need not be there */
};
enum err config_read_key(const struct option_target *target, const char *row,
                         const struct config_key_form *form, str *key) MUST_USE;

/* A secret may stand in the option `row` or in the file that `row`_file names: now it is in `key`. */
enum err config_take_key(const struct option_target *target, const char *row, str *key) MUST_USE;

/* Where the value of a row came from. */
struct option_place config_place(const struct option_target *target, const char *row);

/* Lay the file over what is there. */
enum err config_file_load(struct config_load *load, const struct yaml_node *root) MUST_USE;

/* When all layers are laid: complete config.model, models and agents, and check them as a whole. */
enum err config_agents_finish(struct config_load *load) MUST_USE;

/* After that: every channel as its kind needs it, with its secrets read and its agent there. */
enum err config_channels_finish(struct config_load *load) MUST_USE;

#endif
