/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of a struct as columns of a table: for tables with so many that binding and reading them
 * one by one would be two more lists to keep alike.
 *
 * One list of the members in the order of the columns makes the names in the SQL, its parameters
 * and the table of struct column:
 *
 *     #define COLUMNS(X) X(thread) X(run) X(id)
 *     #define COLUMN(name) COLUMN_OF(struct interaction, name),
 *     static const struct column columns[] = {COLUMNS(COLUMN)};
 *     "INSERT INTO interactions (n" COLUMNS(COLUMN_NAME) ") VALUES (NULL" COLUMNS(COLUMN_MARK) ")"
 */
#ifndef STORE_DB_COLUMNS_H
#define STORE_DB_COLUMNS_H

#include "base/arena.h"

struct stmt;

enum column_kind { COLUMN_STR, COLUMN_I64, COLUMN_U64, COLUMN_U32, COLUMN_BOOL };

struct column {
    size_t offset;
    enum column_kind kind;
};

/* An enum is an unsigned int to the compilers we use; whoever reads one checks its range. */
#define COLUMN_OF(type, member)                                      \
    {                                                                \
        offsetof(type, member), _Generic(((type *)NULL)->member, str \
                                         : COLUMN_STR, int64_t       \
                                         : COLUMN_I64, uint64_t      \
                                         : COLUMN_U64, uint32_t      \
                                         : COLUMN_U32, bool          \
                                         : COLUMN_BOOL)              \
    }

#define COLUMN_NAME(name) ", " #name
#define COLUMN_MARK(name) ", ?"
#define COLUMN_SET(name)  ", " #name "=?"

/* Bind the members to the parameters from `first` on, which count from 1. */
void columns_bind(struct stmt *s, int first, const struct column *columns, size_t count,
                  const void *row);

/* Read the members from the columns from `first` on, which count from 0. Texts are copied into the
 * arena. */
void columns_read(struct stmt *s, int first, const struct column *columns, size_t count,
                  struct arena *arena, void *ret_row);

#endif
