/* SPDX-License-Identifier: Apache-2.0
 *
 * The schema, as numbered steps. The database remembers the number of its last step
 * (PRAGMA user_version) and that it is ours (PRAGMA application_id).
 */
#ifndef STORE_DB_MIGRATE_H
#define STORE_DB_MIGRATE_H

#include "base/err.h"

struct db;

/* Make the tables of a fresh database, or bring an older one up to date; each step is one transaction,
 * so a crash leaves the state before or after it. ERR_CONFIG, with the file as it was, if it is somebody else's or was
 * written by a newer version. */
enum err migrate(struct db *db, struct fault *reterr) MUST_USE;

/* The steps behind `version`, in a database that uses a write-ahead log. For migrate, and to compare
 * what they come to from nothing with the tables of today. */
enum err migrate_steps(struct db *db, int64_t version, struct fault *reterr) MUST_USE;

/* Reads only: the number of the database's last step, 0 for a fresh one. Refuses what migrate would
 * refuse. */
enum err migrate_number(struct db *db, int64_t *ret_number, struct fault *reterr) MUST_USE;

/* The number of the last step this program knows. */
int migrate_latest(void);

#endif
