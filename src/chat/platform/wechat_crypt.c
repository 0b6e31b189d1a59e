/* SPDX-License-Identifier: Apache-2.0
 *
 * Signatures and safe mode of WeChat's Official Account.
 *
 *     plaintext   16 random bytes | length of the message, 4 bytes, big-endian | message | app id
 *                 | padding: 1 to 32 bytes, each of them says how many
 *     encrypted   base64 of AES-256-CBC, its IV the first half of the key
 *
 * The padding goes to multiples of 32, not of a block, so it is taken off here. Nothing tells a
 * caller which check has failed.
 */
#include "chat/platform/wechat_crypt.h"

#include <string.h>

#include "base/buf.h"

enum { RANDOM_BYTES = 16, LENGTH_BYTES = 4, PAD_BYTES_MAX = 32, AES_KEY_CHARS = 43 };

void wechat_sign(const str *texts, size_t count, char out[static WECHAT_SIGNATURE_BYTES])
{
    str sorted[WECHAT_SIGNED_MAX];
    size_t bytes = 0;
    assert(count <= WECHAT_SIGNED_MAX);
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (; at && str_cmp(sorted[at - 1], texts[i]) > 0; at--) sorted[at] = sorted[at - 1];
        sorted[at] = texts[i];
        bytes += texts[i].len;
    }
    AUTO(buf_done) struct buf joined;
    unsigned char hash[SHA1_BYTES];
    buf_init(&joined, bytes);
    for (size_t i = 0; i < count; i++) buf_append(&joined, sorted[i]);
    crypto_sha1(buf_str(&joined), hash);
    crypto_hex((str){(const char *)hash, SHA1_BYTES}, out);
}

bool wechat_signed(str token, str timestamp, str nonce, str encrypted, str signature)
{
    const str texts[WECHAT_SIGNED_MAX] = {token, timestamp, nonce, encrypted};
    char expected[WECHAT_SIGNATURE_BYTES];
    wechat_sign(texts, encrypted.len ? 4 : 3, expected);
    return str_eq_secret(str_c(expected), signature);
}

enum err wechat_key(str aes_key, unsigned char out[static AES256_KEY_BYTES])
{
    unsigned char bytes[AES_KEY_CHARS];
    size_t len = 0;
    if (aes_key.len != AES_KEY_CHARS || crypto_base64_parse(aes_key, bytes, &len) ||
        len != AES256_KEY_BYTES)
        return ERR_CONFIG;
    memcpy(out, bytes, AES256_KEY_BYTES);
    crypto_wipe(bytes, sizeof bytes);
    return OK;
}

static enum err unpack(str plain, str app_id, str *ret_message)
{
    unsigned char pad = plain.len ? (unsigned char)plain.p[plain.len - 1] : 0;
    if (!pad || pad > PAD_BYTES_MAX || pad > plain.len) return ERR_DAMAGED;
    for (size_t i = plain.len - pad; i < plain.len; i++)
        if ((unsigned char)plain.p[i] != pad) return ERR_DAMAGED;
    plain.len -= pad;
    if (plain.len < RANDOM_BYTES + LENGTH_BYTES) return ERR_DAMAGED;
    const unsigned char *head = (const unsigned char *)plain.p + RANDOM_BYTES;
    size_t len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    str rest = str_drop(plain, RANDOM_BYTES + LENGTH_BYTES);
    if (len > rest.len || !str_eq(str_drop(rest, len), app_id)) return ERR_DAMAGED;
    *ret_message = (str){rest.p, len};
    return OK;
}

enum err wechat_decrypt(struct arena *arena, str aes_key, str app_id, str encrypted,
                        str *ret_message)
{
    unsigned char key[AES256_KEY_BYTES];
    enum err e = wechat_key(aes_key, key);
    if (e) return e;
    unsigned char *bytes = arena_alloc(arena, encrypted.len + 1);
    size_t len = 0;
    e = ERR_DAMAGED;
    if (crypto_base64_parse(encrypted, bytes, &len) == OK && len) {
        unsigned char *plain = arena_alloc(arena, len);
        e = crypto_aes_cbc(false, key, key, (str){(const char *)bytes, len}, plain);
        if (e == OK) e = unpack((str){(const char *)plain, len}, app_id, ret_message);
    }
    crypto_wipe(key, sizeof key);
    return e;
}
