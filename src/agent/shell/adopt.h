/* SPDX-License-Identifier: Apache-2.0
 *
 * All that one user has becomes another's: conversations with their runs under way and what they wait
 * for, grants, calendar, files, linked chats, answers kept for repeated requests. Blocking code for
 * use inside a write job.
 *
 * An open approval stays the one that was shown: its binding names whoever it was made for, and the
 * run remembers that (bound_owner). What was written about the past, in facts and in the audit trail,
 * stays as it was.
 */
#ifndef AGENT_SHELL_ADOPT_H
#define AGENT_SHELL_ADOPT_H

#include "base/arena.h"
#include "base/crypto.h"

struct db;

struct adoption {
    str from, to;
    const unsigned char *audit_key;
    msec now;
};

/* *ret_threads: how many conversations. One that both have under the same name stays where it is, with
 * all that belongs to it. */
enum err adopt_all(struct db *db, struct arena *arena, const struct adoption *adoption,
                   int64_t *ret_threads) MUST_USE;

#endif
