/* SPDX-License-Identifier: Apache-2.0
 *
 * The wall around the programs we start: what they cannot see of this machine. Raised in the new process
 * between fork and exec, by the best of the means that the kernel gives us:
 *
 * - WALL_MOUNT: a mount namespace of their own, in which something empty lies over what is hidden. If we
 *   are not root, in a user namespace of their own, too. Everything else is as it was.
 * - WALL_LANDLOCK: every file may be used but those that are hidden. Folders on the way to them cannot be
 *   listed, and what is made in those folders later cannot be opened.
 * - WALL_NONE: neither. The program sees what we see.
 *
 * With any of them a program gains no rights by executing another (no_new_privs), and has none of the
 * capabilities that reach around a wall, also below root. With the first two it cannot read our memory,
 * nor that of anybody outside.
 *
 * Also here: who has come from us. A process whose parents are gone is given to us, not to init, so that
 * one that wants to be a stranger stays below us; we reap it.
 */
#ifndef NET_WALL_H
#define NET_WALL_H

#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

struct loop;
struct wall;

enum wall_kind { WALL_NONE, WALL_LANDLOCK, WALL_MOUNT, WALL_KINDS };
extern const char *const wall_names[WALL_KINDS]; /* for people */

/* Folders and files that are hidden; those that do not exist are left out. */
struct wall *wall_new(const str *hidden, size_t count);
void wall_free(struct wall *wall); /* after the last child; NULL is fine */
void wall_freep(struct wall **wall);

/* Which means there are: tried once, with the first question, by a process that raises it. */
enum wall_kind wall_kind(struct wall *wall);
void wall_limit(struct wall *wall, enum wall_kind most); /* none better than this: for tests */

/* In the new process. Returns 0 or an errno: then nothing may be executed. Safe after fork. `cwd` is the
 * working folder by name: as an open folder it might lie behind the wall. wall_kind was asked before. */
int wall_raise(const struct wall *wall, const char *cwd);

/* ---- who has come from us ---- */

/* Be the parent of those whose parents have gone, and reap them when they end. */
enum err wall_adopt(struct wall *wall, struct loop *loop, struct fault *reterr) MUST_USE;

/* A child that somebody else waits for, from its fork until it is reaped or given up. */
void wall_child_add(struct wall *wall, pid_t pid);
void wall_child_remove(struct wall *wall, pid_t pid);

/* Does this process stand below us? One that is gone does. */
bool wall_below_us(pid_t pid);

/* Was this Unix socket connected by a process below us? */
bool wall_peer_below_us(int fd);

#endif
