/* SPDX-License-Identifier: Apache-2.0
 *
 * How WeChat's Official Account signs its calls and, in safe mode, encrypts them. Pure.
 */
#ifndef CHAT_PLATFORM_WECHAT_CRYPT_H
#define CHAT_PLATFORM_WECHAT_CRYPT_H

#include "base/arena.h"
#include "base/crypto.h"

enum { WECHAT_SIGNATURE_BYTES = 2 * SHA1_BYTES + 1, WECHAT_SIGNED_MAX = 4 };

/* Hex of SHA-1 over the texts, sorted bytewise and joined; a NUL behind it. */
void wechat_sign(const str *texts, size_t count, char out[static WECHAT_SIGNATURE_BYTES]);

/* Constant time. `encrypted` empty: a plain call. */
bool wechat_signed(str token, str timestamp, str nonce, str encrypted, str signature);

/* The 32 bytes that the 43 characters of an EncodingAESKey say. ERR_CONFIG. */
enum err wechat_key(str aes_key, unsigned char out[static AES256_KEY_BYTES]) MUST_USE;

/* The message inside `encrypted` (base64), in the arena. ERR_CONFIG: the key is none. ERR_DAMAGED:
 * not made with this key and for this app id. */
enum err wechat_decrypt(struct arena *arena, str aes_key, str app_id, str encrypted,
                        str *ret_message) MUST_USE;

#endif
