/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings changed at run time: a text for each (scope, name), such as ("agent/assistant",
 * "locale"). They stand over the configuration file.
 *
 * Plain blocking code for use inside a job.
 */
#ifndef STORE_TABLE_SETTINGS_H
#define STORE_TABLE_SETTINGS_H

#include "base/arena.h"

struct db;

/* ERR_NOT_FOUND if it is not set. The arena holds the value. */
enum err settings_get(struct db *db, str scope, str name, struct arena *arena, str *ret_value)
    MUST_USE;

/* ERR_TOO_LARGE past SETTING_NAME_BYTES_MAX or SETTING_VALUE_BYTES_MAX. */
enum err settings_set(struct db *db, str scope, str name, str value) MUST_USE;

enum err settings_delete(struct db *db, str scope, str name) MUST_USE; /* fine if not set */

#endif
