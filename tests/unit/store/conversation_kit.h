/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of conversations: rows with one line each.
 */
#ifndef TESTS_STORE_CONVERSATION_KIT_H
#define TESTS_STORE_CONVERSATION_KIT_H

#include "store/table/conversation.h"

struct db;

/* Each must succeed, and gives the id. */
int64_t thread_made(struct db *db, const char *owner, const char *thread_id, const char *title,
                    msec updated);
int64_t run_made(struct db *db, int64_t thread, const char *run_id, enum run_status status);

/* A fact and the message it adds; gives the number. */
int64_t message_made(struct db *db, int64_t thread, const char *id, const char *plain, msec at);

/* The first facts of a thread, as they were stored before version 12 of the schema, a row each: "old"
 * of the run "r", and every third a "text.message.end" of "q" with 1 token in and 100 out. */
void old_facts_made(struct db *db, int64_t thread, int64_t count);

#endif
