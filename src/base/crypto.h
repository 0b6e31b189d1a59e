/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenSSL, reached only through here: random bytes, SHA-256, HMAC, HKDF, and the text forms of
 * bytes. A failure inside OpenSSL or the kernel's random source leaves nothing safe to do, so it
 * aborts.
 */
#ifndef BASE_CRYPTO_H
#define BASE_CRYPTO_H

#include "base/str.h"

enum { HASH_BYTES = 32, HASH_HEX_BYTES = 65 };

void crypto_random(void *out, size_t size); /* from the kernel, for whatever is a secret */

/* Random bytes of which the thread has some in stock, for what is made all the time and is none: ids,
 * seeds of tables. At most 512. */
void crypto_nonce(void *out, size_t size);

void crypto_sha256(str data, unsigned char out[static HASH_BYTES]);

/* SHA-1, broken as a hash: only where a protocol asks for it: the handshake of RFC 6455, where it
 * protects nothing, and the signatures of WeChat's calls. */
enum { SHA1_BYTES = 20 };
void crypto_sha1(str data, unsigned char out[static SHA1_BYTES]);

/* SHA-256 of bytes that come in pieces. */
struct crypto_hash;
struct crypto_hash *crypto_hash_new(void);
void crypto_hash_add(struct crypto_hash *hash, str data);
void crypto_hash_take(struct crypto_hash *hash, unsigned char out[static HASH_BYTES]); /* anew */
void crypto_hash_free(struct crypto_hash *hash); /* NULL is fine */

void crypto_hmac(str key, str data, unsigned char out[static HASH_BYTES]);

/* HKDF-SHA-256 with an empty salt: the subkey of `secret` named `label`. */
void crypto_subkey(str secret, str label, unsigned char out[static HASH_BYTES]);

void crypto_wipe(void *p, size_t size);

/* MD5, broken as a hash: only where a platform asks for it. */
enum { MD5_BYTES = 16 };
void crypto_md5(str data, unsigned char out[static MD5_BYTES]);

/* AES-128-ECB with PKCS#7, as WeChat keeps files: it hides nothing from who knows the pattern. out
 * has AES_ECB_BYTES(data.len) bytes when encrypting, data.len when decrypting. ERR_DAMAGED: not a
 * whole number of blocks, or the padding is none. */
enum { AES128_KEY_BYTES = 16, AES256_KEY_BYTES = 32, AES_BLOCK_BYTES = 16 };
#define AES_ECB_BYTES(len) (((len) / AES_BLOCK_BYTES + 1) * AES_BLOCK_BYTES)
void crypto_aes_ecb_encrypt(const unsigned char key[static AES128_KEY_BYTES], str data,
                            unsigned char *out);
enum err crypto_aes_ecb_decrypt(const unsigned char key[static AES128_KEY_BYTES], str data,
                                unsigned char *out, size_t *ret_len) MUST_USE;

/* AES-256-CBC over whole blocks, without any padding: the caller's own. ERR_DAMAGED: not whole. */
enum err crypto_aes_cbc(bool encrypt, const unsigned char key[static AES256_KEY_BYTES],
                        const unsigned char iv[static AES_BLOCK_BYTES], str data,
                        unsigned char *out) MUST_USE;

/* base64 as others write it: with or without padding, unused bits of any value; no spaces. out has at
 * least text.len * 3 / 4 bytes. */
enum err crypto_base64_parse(str text, unsigned char *out, size_t *ret_len) MUST_USE;

/* Lower-case hex and a NUL: out has 2 * data.len + 1 bytes. */
void crypto_hex(str data, char *out);
/* The bytes that 2 * len hex digits say, lower case only. */
bool crypto_unhex(str hex, unsigned char *out, size_t len);

/* base64 with its padding and a NUL: out has BASE64_BYTES(data.len) bytes. */
#define BASE64_BYTES(len) (((len) + 2) / 3 * 4 + 1)
void crypto_base64(str data, char *out);

/* base64url without padding and a NUL: out has BASE64URL_BYTES(data.len) bytes. */
#define BASE64URL_BYTES(len) (((len)*4 + 2) / 3 + 1)
void crypto_base64url(str data, char *out);

/* Strict: alphabet, no padding, unused bits zero. out has at least text.len * 3 / 4 bytes. */
enum err crypto_base64url_parse(str text, unsigned char *out, size_t *ret_len) MUST_USE;

#endif
