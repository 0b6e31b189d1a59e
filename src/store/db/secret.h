/* SPDX-License-Identifier: Apache-2.0
 *
 * The secret of an installation, and what is signed with it. Each purpose has a subkey of its own
 * (HKDF), so a signature made for one is worthless for another. A signature names the secret it
 * was made with, so that after a change of the secret an old one is told from a forged one.
 */
#ifndef STORE_DB_SECRET_H
#define STORE_DB_SECRET_H

#include "base/crypto.h"

/* purpose, HKDF label. A label that was released never changes. */
#define SECRET_PURPOSES(X)                                                      \
    X(SECRET_BINDING, "fermata 1 binding") /* an answer and what it approves */ \
    X(SECRET_URL, "fermata 1 url")         /* signed attachment addresses */    \
    X(SECRET_SESSION, "fermata 1 session") /* browser sessions and tickets */   \
    X(SECRET_AUDIT, "fermata 1 audit")     /* heads of the audit chain */       \
    X(SECRET_CODE, "fermata 1 code")       /* codes that approve in a chat */

#define SECRET_ENUM(name, label) name,
enum secret_purpose { SECRET_PURPOSES(SECRET_ENUM) SECRET_PURPOSE_COUNT };
#undef SECRET_ENUM

enum {
    SECRET_ID_BYTES = 9,                                              /* 8 hex digits, NUL */
    SECRET_MAC_BYTES = SECRET_ID_BYTES + BASE64URL_BYTES(HASH_BYTES), /* "<id>.<43>", NUL */
};

struct secret;

#define SECRET_KEY_NAME "secret.key" /* in the data folder */

/* The secret of the data folder (`secret.key`, 32 random bytes, made if missing), or, if file is
 * not NULL or empty, all bytes of that file (at least 32). The caller holds the folder's lock.
 * A file that others may read is refused. */
enum err secret_open(const char *folder, const char *file, struct secret **ret_secret,
                     struct fault *reterr) MUST_USE;
/* The same for who may not hold the lock: it makes nothing. ERR_CONFIG if there is no key yet. */
enum err secret_look(const char *folder, const char *file, struct secret **ret_secret,
                     struct fault *reterr) MUST_USE;
void secret_free(struct secret *secret); /* wipes; NULL is fine */
void secret_freep(struct secret **secret);

const char *secret_id(const struct secret *secret);
void secret_subkey(const struct secret *secret, enum secret_purpose purpose,
                   unsigned char out[static HASH_BYTES]);

/* HMAC-SHA-256 of data as text. */
void secret_mac(const struct secret *secret, enum secret_purpose purpose, str data,
                char out[static SECRET_MAC_BYTES]);
bool secret_verify(const struct secret *secret, enum secret_purpose purpose, str data, str mac);

#endif
