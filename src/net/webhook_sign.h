/* SPDX-License-Identifier: Apache-2.0
 *
 * How messages between us and a program of the operator's are signed, in both directions: outgoing
 * webhooks (docs/WEBHOOKS.md) and the channel kind `webhook`. Pure.
 *
 *     Fermata-Timestamp: 1700000000
 *     Fermata-Signature: v1=49f24e53...
 */
#ifndef NET_WEBHOOK_SIGN_H
#define NET_WEBHOOK_SIGN_H

#include "base/crypto.h"

/* "v1=" and the HMAC-SHA-256, in hex, of "<seconds>.<body>". */
enum { WEBHOOK_SIGNATURE_BYTES = 3 + HASH_HEX_BYTES };
void webhook_sign(str secret, int64_t seconds, str body, char out[static WEBHOOK_SIGNATURE_BYTES]);

#endif
