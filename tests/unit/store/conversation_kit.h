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

#endif
