/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of WeChat's Official Account to us: checked, decrypted, understood, answered. Pure.
 */
#ifndef CHAT_PLATFORM_WECHAT_HOOK_H
#define CHAT_PLATFORM_WECHAT_HOOK_H

#include "chat/channel.h"

/* A call that is not signed with home->token is refused with 403, and so is a plain one where
 * home->aes_key is set; nothing comes in then. Every other call of theirs is answered "success":
 * what the agent says goes out by itself, later. */
void wechat_hook(const struct channel_home *home, struct arena *arena, const struct hook_call *call,
                 struct hook_answer *ret_answer);

#endif
