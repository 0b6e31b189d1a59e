/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of platforms. No key is asked for: each kind checks the signature of its platform.
 */
#ifndef CHAT_HOOK_H
#define CHAT_HOOK_H

#include "chat/chats.h"

/* The channel of this name that takes calls; NULL: there is none. */
struct channel *hook_channel(struct channels *channels, str name);

/* Take a call. done comes once, perhaps at once: with OK the answer is for the platform; else nothing
 * was stored, and the platform comes again. `from` is for the log. The call is in the arena, which
 * stays until then. */
void hook_take(struct channel *c, struct arena *arena, const struct hook_call *call, str from,
               void (*done)(void *arg, enum err e, const struct hook_answer *answer), void *arg);

#endif
