/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests and fuzzers: calls as WeChat's Official Account makes them.
 */
#ifndef TESTS_WECHAT_KIT_H
#define TESTS_WECHAT_KIT_H

#include "chat/channel.h"

#define KIT_AES_KEY "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
#define KIT_APP_ID  "wx0123456789abcdef"
#define KIT_TOKEN   "AAAAA"

/* base64 of what safe mode makes of a message. */
str wechat_kit_encrypt(struct arena *arena, str random, str message, str app_id);

/* The same of any plaintext, a multiple of 16 bytes. */
str wechat_kit_seal(struct arena *arena, str plain);

/* A POST with this body, signed at call->now; `safe`: the body is encrypted. */
void wechat_kit_post(struct arena *arena, str body, bool safe, msec now,
                     struct hook_call *ret_call);

/* A POST of <xml> with this Encrypt, signed. */
void wechat_kit_sealed(struct arena *arena, str encrypted, msec now, struct hook_call *ret_call);

#endif
