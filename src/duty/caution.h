/* SPDX-License-Identifier: Apache-2.0
 *
 * What works, and should be known before it is trusted: told by a start in its log, and by `fermata
 * check`. And the wall between us and the programs under `command:`.
 */
#ifndef DUTY_CAUTION_H
#define DUTY_CAUTION_H

#include "config/config.h"

struct wall;

/* The data folder, the objects and the secret are behind it. For wall_free. */
struct wall *caution_wall(const struct config *config, struct arena *arena);

struct caution {
    const char *event, *text; /* constant */
};
enum { CAUTIONS_MAX = 3 };

/* Those that hold now, in *ret_list; how many. login: a key is needed. */
size_t cautions(const struct config *config, struct wall *wall, bool login,
                struct caution ret_list[static CAUTIONS_MAX]);

/* Into the log. */
void cautions_log(const struct config *config, struct wall *wall, bool login);

#endif
