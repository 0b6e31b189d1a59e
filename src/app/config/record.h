/* SPDX-License-Identifier: Apache-2.0
 *
 * Records in the configuration file: the lists `tools` and `webhooks`, the map `mcp`. They have no
 * variable and no flag. For file.c and print.c; everybody else finds them in struct
 * config.
 */
#ifndef APP_CONFIG_RECORD_H
#define APP_CONFIG_RECORD_H

#include "app/config/config.h"

struct nearest;
struct yaml_node;

bool record_is(str key); /* is there a list or map of this name? */
void record_offer(struct nearest *n);

/* May an entry of a map be called so? NULL, or why not and what to write. */
const char *record_name_check(str name, size_t bytes_max) MUST_USE;

/* Read the list or map that the node is (its key is the name) into the config. On failure config is as it
 * was and the fault says what is wrong, where (`tools[0].http.effect`), and what to write. Blocks:
 * reads files that hold secrets. */
enum err record_load(struct config *config, struct arena *arena, const struct yaml_node *list,
                     struct fault *reterr) MUST_USE;

void record_print(const struct config *config, struct buf *out); /* as config_print */
void record_help(struct buf *out, enum lang lang);               /* lines of --help */
void record_markdown(struct buf *out);

#endif
