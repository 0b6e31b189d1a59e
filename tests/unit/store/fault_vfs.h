/* SPDX-License-Identifier: Apache-2.0
 *
 * A file layer for SQLite that does what the system's does until told to fail: the N-th write or
 * sync (counted over all files) fails, once or from then on, or kills the process before it
 * happens.
 */
#ifndef TESTS_STORE_FAULT_VFS_H
#define TESTS_STORE_FAULT_VFS_H

#include <stdbool.h>

enum fault_kind { FAULT_NONE, FAULT_IO, FAULT_FULL, FAULT_KILL };
enum fault_call { FAULT_WRITE = 1, FAULT_SYNC = 2, FAULT_CHANGE = 4 /* truncate, delete */ };

void fault_vfs_install(void); /* all databases opened from now on go through it */
void fault_vfs_remove(void);

/* Count the calls in the set `calls` from now on and fail the one with number `at`, counted from
 * 1; with `on`, all after it too. */
void fault_vfs_arm(enum fault_kind kind, int calls, int at, bool on);
int fault_vfs_count(void);

#endif
