/* SPDX-License-Identifier: Apache-2.0
 *
 * The signature of webhooks, those we send and those we get. The time is signed with the body, so
 * that a receiver can refuse what was recorded and is sent again later.
 */
#include "net/webhook_sign.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"

void webhook_sign(str secret, int64_t seconds, str body, char out[static WEBHOOK_SIGNATURE_BYTES])
{
    unsigned char mac[HASH_BYTES];
    AUTO(buf_done) struct buf text;
    buf_init(&text, body.len + 32);
    buf_printf(&text, "%" PRId64 ".", seconds);
    buf_append(&text, body);
    crypto_hmac(secret, buf_str(&text), mac);
    memcpy(out, "v1=", 3);
    crypto_hex((str){(const char *)mac, HASH_BYTES}, out + 3);
}
