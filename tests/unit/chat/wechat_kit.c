/* SPDX-License-Identifier: Apache-2.0 */
#include "chat/wechat_kit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chat/platform/wechat_crypt.h"

static const str nonce = STR("486452656");

str wechat_kit_seal(struct arena *arena, str plain)
{
    unsigned char key[AES256_KEY_BYTES];
    unsigned char *sealed = arena_alloc(arena, plain.len + 1);
    char *text = arena_alloc(arena, BASE64_BYTES(plain.len));
    if (wechat_key(STR(KIT_AES_KEY), key)) abort();
    if (crypto_aes_cbc(true, key, key, plain, sealed)) abort();
    crypto_base64((str){(const char *)sealed, plain.len}, text);
    return str_c(text);
}

str wechat_kit_encrypt(struct arena *arena, str random, str message, str app_id)
{
    size_t len = 16 + 4 + message.len + app_id.len, pad = 32 - len % 32;
    char *plain = arena_alloc(arena, len + pad);
    if (random.len != 16) abort();
    memcpy(plain, random.p, 16);
    for (int i = 0; i < 4; i++) plain[16 + i] = (char)(message.len >> (24 - 8 * i));
    if (message.len) memcpy(plain + 20, message.p, message.len);
    memcpy(plain + 20 + message.len, app_id.p, app_id.len);
    memset(plain + len, (int)pad, pad);
    return wechat_kit_seal(arena, (str){plain, len + pad});
}

void wechat_kit_sealed(struct arena *arena, str encrypted, msec now, struct hook_call *ret_call)
{
    str timestamp = arena_printf(arena, "%" PRId64, now / 1000);
    const str texts[] = {STR(KIT_TOKEN), timestamp, nonce, encrypted};
    char plain[41], signature[41];
    wechat_sign(texts, 3, plain);
    wechat_sign(texts, 4, signature);
    *ret_call = (struct hook_call){
        .now = now,
        .query = arena_printf(arena,
                              "signature=%s&timestamp=%.*s&nonce=%.*s&openid=o1&encrypt_type=aes"
                              "&msg_signature=%s",
                              plain, STR_ARG(timestamp), STR_ARG(nonce), signature),
        .body = arena_printf(arena,
                             "<xml><ToUserName><![CDATA[gh_1]]></ToUserName>"
                             "<Encrypt><![CDATA[%.*s]]></Encrypt></xml>",
                             STR_ARG(encrypted))};
}

void wechat_kit_post(struct arena *arena, str body, bool safe, msec now, struct hook_call *ret_call)
{
    if (safe) {
        str sealed = wechat_kit_encrypt(arena, STR("aaaabbbbccccdddd"), body, STR(KIT_APP_ID));
        wechat_kit_sealed(arena, sealed, now, ret_call);
        return;
    }
    str timestamp = arena_printf(arena, "%" PRId64, now / 1000);
    const str texts[] = {STR(KIT_TOKEN), timestamp, nonce};
    char signature[41];
    wechat_sign(texts, 3, signature);
    *ret_call = (struct hook_call){
        .now = now,
        .query = arena_printf(arena, "signature=%s&timestamp=%.*s&nonce=%.*s&openid=o1", signature,
                              STR_ARG(timestamp), STR_ARG(nonce)),
        .body = body};
}
