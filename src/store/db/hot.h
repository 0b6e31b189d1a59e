/* SPDX-License-Identifier: Apache-2.0
 *
 * Hot rows: what the writing connection was last asked for, kept in memory, so that a step reads
 * nothing back that the step before it has just written.
 *
 * Memory is never the truth. There is one writing connection, and every statement that changes rows
 * of a kind brings the kept ones forward (hot_put, hot_append) or lets go of them (hot_drop); a
 * rollback lets go of everything (db_rollback, db_savepoint_undo), and so does a change that another
 * process made (db_begin). A connection that only reads keeps nothing. In every build but the release,
 * what is kept is compared with the rows at each use, and a difference aborts: tests and the simulator
 * prove that no statement was forgotten.
 *
 *     static enum err read_rows(struct db *db, struct arena *arena, int64_t id, struct hot_rows *ret);
 *     enum err e = hot_rows(db, HOT_CALLS, run, &shape, arena, read_rows, &rows);
 *
 * Bounded by bytes; what was not used for longest goes first. To keep one more kind: a row in
 * HOT_KINDS, a shape, a reading function, and a line where its table is changed.
 */
#ifndef STORE_DB_HOT_H
#define STORE_DB_HOT_H

#include "store/db/columns.h"

struct db;
struct hot;

/* kind: what the number is, and what is kept under it */
#define HOT_KINDS(X)                                                               \
    X(HOT_THREAD)   /* of a thread: its row */                                     \
    X(HOT_CURRENT)  /* of a thread: its current run, or none */                    \
    X(HOT_QUEUED)   /* of a thread: the oldest run that waits its turn, or none */ \
    X(HOT_STATE)    /* of a run: its snapshot, or none */                          \
    X(HOT_INPUT)    /* of a run: what its newest request brought */                \
    X(HOT_CALLS)    /* of a run: all its calls, in their order */                  \
    X(HOT_OPEN)     /* of a thread: its open interactions */                       \
    X(HOT_GRANTS)   /* of a thread: grants that may count in it */                 \
    X(HOT_MESSAGES) /* of a thread: its history, while that is short */            \
    X(HOT_CHAIN)    /* of an audit chain: its end, if that is sound */

#define HOT_ENUM(kind) kind,
enum hot_kind { HOT_KINDS(HOT_ENUM) HOT_KIND_COUNT };
#undef HOT_ENUM

/* A struct whose texts lie behind its columns of the kind COLUMN_STR. */
struct hot_shape {
    size_t size;
    const struct column *columns;
    size_t count;
};

#define HOT_SHAPE(type, list)             \
    {                                     \
        sizeof(type), (list), COUNT(list) \
    }

struct hot_rows {
    void *rows;
    size_t count;
    bool unkept; /* said by a reading function: too many to be kept */
};

typedef enum err (*hot_reader)(struct db *db, struct arena *arena, int64_t id,
                               struct hot_rows *ret_rows);

/* The rows kept under a number, or those that `read` brings, which are kept from then on. Copies, in
 * the arena. */
enum err hot_rows(struct db *db, enum hot_kind kind, int64_t id, const struct hot_shape *shape,
                  struct arena *arena, hot_reader read, struct hot_rows *ret_rows) MUST_USE;

/* Are any kept? Then those; `read` is only there for the comparison, NULL: there is none. */
bool hot_get(struct db *db, enum hot_kind kind, int64_t id, const struct hot_shape *shape,
             struct arena *arena, hot_reader read, struct hot_rows *ret_rows);

/* The first of those that are kept, in its place, until the next of these calls; who asks compares it.
 * NULL: none. */
const void *hot_see(struct db *db, enum hot_kind kind, int64_t id);

/* The same without a copy: they are there until the next call that keeps or lets go of any. */
bool hot_look(struct db *db, enum hot_kind kind, int64_t id, const struct hot_shape *shape,
              hot_reader read, struct hot_rows *ret_rows);

bool hot_has(struct db *db, enum hot_kind kind, int64_t id, size_t *ret_count); /* how many */

/* What the store has from now on. */
void hot_put(struct db *db, enum hot_kind kind, int64_t id, const struct hot_shape *shape,
             const void *rows, size_t count);
/* One row more; nothing if the others are not kept. */
void hot_append(struct db *db, enum hot_kind kind, int64_t id, const struct hot_shape *shape,
                const void *row);
void hot_drop(struct db *db, enum hot_kind kind, int64_t id);
void hot_drop_kind(struct db *db, enum hot_kind kind);
void hot_drop_all(struct db *db);

/* For the connection itself. */
struct hot *hot_new(size_t bytes_max);
void hot_free(struct hot *hot);
void hot_clear(struct hot *hot);
size_t hot_bytes(const struct hot *hot);

#endif
