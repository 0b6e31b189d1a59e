/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of today, for a reader and for a fresh database.
 */
#ifndef STORE_DB_TABLES_H
#define STORE_DB_TABLES_H

/* What the steps of migrate.c come to. */
extern const char tables_sql[];

#endif
