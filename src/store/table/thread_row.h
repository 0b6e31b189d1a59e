/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside store/table only: rows of threads and runs, and what is kept of them in memory
 * (store/db/hot.h), for the files that write them.
 */
#ifndef STORE_TABLE_THREAD_ROW_H
#define STORE_TABLE_THREAD_ROW_H

#include "store/table/conversation.h"

struct stmt;

#define THREAD_COLUMNS                                                       \
    "id, owner, thread_id, title, agent, last_seq, created, updated, bytes," \
    " newest_run, bytes IS NULL"

/* The row at hand of a statement whose first columns are those. */
void thread_read(struct stmt *s, struct arena *arena, struct thread *thread);

/* Facts were numbered: the row as it is kept moves along. `run`: whose leg begins; 0: none does. */
enum err thread_number(struct db *db, int64_t id, size_t facts, size_t bytes, msec now, int64_t run,
                       int64_t *ret_last) MUST_USE;

/* Whatever is kept of a thread in memory is let go of; of its current run alone. */
void thread_cool(struct db *db, int64_t id);
void run_cool(struct db *db, int64_t thread);

/* The card of a question or an approval, which its row of history shows. */
void message_keep_ui(struct db *db, int64_t thread, str id, str ui);

/* What a run is from now on, as it is kept; NULL: without a snapshot. */
void snapshot_keep(struct db *db, int64_t run, const struct snapshot *snapshot);
/* A snapshot in the table that had them before there was one in the row of the run: into the row. */
enum err snapshot_move(struct db *db, int64_t run, bool *ret_moved) MUST_USE;

#endif
