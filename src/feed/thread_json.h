/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread as clients see it: {"threadId","title","agent","seq","createdAt","updatedAt","usage"?}.
 * Pure.
 */
#ifndef FEED_THREAD_JSON_H
#define FEED_THREAD_JSON_H

#include "base/json.h"
#include "store/table/conversation.h"

/* `spent` NULL: a row of a list, which does not say. */
void thread_write(struct json_writer *w, const struct thread *thread,
                  const struct spent_list *spent);
str thread_json(struct arena *arena, const struct thread *thread, const struct spent_list *spent);

#endif
