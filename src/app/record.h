/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of records in the configuration file: `tools` and `webhooks`. They have no variable and no
 * flag. For config.c and config_print.c; everybody else finds them in struct config.
 */
#ifndef APP_RECORD_H
#define APP_RECORD_H

#include "app/config.h"

struct nearest;
struct yaml_node;

bool record_is(str key); /* is there a list of this name? */
void record_offer(struct nearest *n);

/* Read the list that the node is (its key is the name) into the config. On failure config is as it
 * was and the fault says what is wrong, where (`tools[0].http.effect`), and what to write. Blocks:
 * reads files that hold secrets. */
enum err record_load(struct config *config, struct arena *arena, const struct yaml_node *list,
                     struct fault *reterr) MUST_USE;

void record_print(const struct config *config, struct buf *out); /* as config_print */
void record_markdown(struct buf *out);

#endif
