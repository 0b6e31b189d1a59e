/* SPDX-License-Identifier: Apache-2.0
 *
 * A configuration under test, in an empty folder of its own that is the working directory.
 */
#ifndef CONFIG_KIT_H
#define CONFIG_KIT_H

#include "check.h"
#include "config/config.h"

struct config_kit {
    struct arena arena;
    struct config config;
    struct fault fault;
    char dir[32];
    char before[512];
};

/* For cmocka: *state is a struct config_kit. */
int config_kit_setup(void **state);
int config_kit_teardown(void **state); /* removes the files that the tests may have made */

void config_kit_put(const char *path, str text); /* a file */

/* env: "NAME=value" and flags: "data=value", both separated by newlines; NULL = none. */
enum err config_kit_load(struct config_kit *kit, const char *env, const char *flags);

void config_kit_ok(const struct config_kit *kit, enum err e); /* fails with the refusal */
void assert_part(const char *text, const char *part);

/* What config_print says, with a NUL behind it; without the places. */
void config_kit_print(const struct config_kit *kit, struct buf *out);
void config_kit_strip(struct buf *out, const char *text);

/* Print, read that as the file, print again: the same. */
void config_kit_reads_back(struct config_kit *kit);

#endif
