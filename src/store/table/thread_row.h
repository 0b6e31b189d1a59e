/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside store/ only: a row of `threads`, for threads.c, which finds one, and search.c, which finds
 * many.
 */
#ifndef STORE_TABLE_THREAD_ROW_H
#define STORE_TABLE_THREAD_ROW_H

#include "store/table/conversation.h"

struct stmt;

#define THREAD_COLUMNS "id, owner, thread_id, title, agent, last_seq, created, updated, bytes"

/* The row at hand of a statement whose first columns are those. */
void thread_read(struct stmt *s, struct arena *arena, struct thread *thread);

#endif
