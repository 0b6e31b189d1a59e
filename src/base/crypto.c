/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenSSL, behind the one file that talks to it: random bytes, SHA-256, HMAC, HKDF, AES, SHA-1 for
 * a handshake; hex and base64.
 *
 * To look up an algorithm and to make a context costs OpenSSL more than to hash a short text, and an
 * HMAC makes several. So SHA-256 is looked up once for the process, and each thread has its own
 * (struct own): a context, the states behind the keys that it used last, and random bytes in stock.
 * A thread takes them along when it ends.
 */
#include "base/crypto.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"

enum {
    BLOCK_BYTES = 64, /* of SHA-256: an HMAC's key is that long */
    KEYS_KEPT = 4,    /* the audit trail's, that of bindings, and two that come and go */
    STOCK_BYTES = 512,
};

struct mac_key {
    unsigned char bytes[BLOCK_BYTES]; /* with zeros behind it */
    EVP_MD_CTX *inner, *outer;        /* behind their first block; NULL: nothing is here yet */
};

static _Thread_local struct own {
    EVP_MD_CTX *context;
    struct mac_key keys[KEYS_KEPT];
    size_t next_key; /* to go */
    unsigned char stock[STOCK_BYTES];
    size_t stock_left; /* at its end */
} * own;

static EVP_MD *sha256;
static pthread_key_t own_ends;

static EVP_MD_CTX *context_new(void)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    if (!ctx || !EVP_DigestInit_ex(ctx, sha256, NULL)) abort();
    return ctx;
}

static void own_free(void *arg)
{
    struct own *ended = arg;
    for (size_t i = 0; i < KEYS_KEPT; i++) {
        EVP_MD_CTX_free(ended->keys[i].inner);
        EVP_MD_CTX_free(ended->keys[i].outer);
    }
    EVP_MD_CTX_free(ended->context);
    crypto_wipe(ended, sizeof *ended);
    free(ended);
    own = NULL; /* the end of something else may still hash */
}

/* In a child, which would give out what its parent gives out. */
static void stock_forget(void)
{
    if (!own) return;
    crypto_wipe(own->stock, sizeof own->stock);
    own->stock_left = 0;
}

static void setup_process(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (!sha256 || pthread_key_create(&own_ends, own_free) ||
        pthread_atfork(NULL, NULL, stock_forget))
        abort();
}

static const EVP_MD *sha256_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, setup_process);
    return sha256;
}

static struct own *own_get(void)
{
    if (own) return own;
    sha256_get();
    struct own *made = mem_new(sizeof *made);
    made->context = context_new();
    if (pthread_setspecific(own_ends, made)) abort();
    return own = made;
}

/* ---- random bytes ---- */

void crypto_random(void *out, size_t size)
{
    unsigned char *p = out;
    while (size) {
        ssize_t n = getrandom(p, size > 256 ? 256 : size, 0);
        if (n < 0 && errno == EINTR)
            continue; /* only while the machine gathers its first entropy */
        if (n <= 0) abort();
        p += n;
        size -= (size_t)n;
    }
}

void crypto_nonce(void *out, size_t size)
{
    struct own *mine = own_get();
    assert(size <= STOCK_BYTES);
    if (mine->stock_left < size) {
        crypto_random(mine->stock, STOCK_BYTES);
        mine->stock_left = STOCK_BYTES;
    }
    unsigned char *from = mine->stock + STOCK_BYTES - mine->stock_left;
    memcpy(out, from, size);
    crypto_wipe(from, size); /* what was given out is nowhere else */
    mine->stock_left -= size;
}

/* ---- hashes ---- */

/* The end of what the context has taken. */
static void hash_end(EVP_MD_CTX *ctx, unsigned char out[static HASH_BYTES])
{
    if (!EVP_DigestFinal_ex(ctx, out, NULL)) abort();
}

static void hash_add(EVP_MD_CTX *ctx, str data)
{
    if (data.len && !EVP_DigestUpdate(ctx, data.p, data.len)) abort();
}

void crypto_sha256(str data, unsigned char out[static HASH_BYTES])
{
    EVP_MD_CTX *ctx = own_get()->context;
    if (!EVP_DigestInit_ex(ctx, sha256, NULL)) abort();
    hash_add(ctx, data);
    hash_end(ctx, out);
}

void crypto_sha1(str data, unsigned char out[static SHA1_BYTES])
{
    if (!EVP_Digest(data.p, data.len, out, NULL, EVP_sha1(), NULL)) abort();
}

void crypto_md5(str data, unsigned char out[static MD5_BYTES])
{
    if (!EVP_Digest(data.p, data.len, out, NULL, EVP_md5(), NULL)) abort();
}

/* Whole blocks, none of them padded. In place is fine. */
static void aes(const EVP_CIPHER *cipher, bool encrypt, const unsigned char *key,
                const unsigned char *iv, const unsigned char *in, size_t len, unsigned char *out)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int done = 0;
    assert(len <= INT_MAX && len % AES_BLOCK_BYTES == 0);
    if (!ctx || !EVP_CipherInit_ex(ctx, cipher, NULL, key, iv, encrypt) ||
        !EVP_CIPHER_CTX_set_padding(ctx, 0) ||
        (len && !EVP_CipherUpdate(ctx, out, &done, in, (int)len)))
        abort();
    EVP_CIPHER_CTX_free(ctx);
}

void crypto_aes_ecb_encrypt(const unsigned char key[static AES128_KEY_BYTES], str data,
                            unsigned char *out)
{
    size_t len = AES_ECB_BYTES(data.len);
    if (data.len) memmove(out, data.p, data.len);
    memset(out + data.len, (int)(len - data.len), len - data.len);
    aes(EVP_aes_128_ecb(), true, key, NULL, out, len, out);
}

enum err crypto_aes_ecb_decrypt(const unsigned char key[static AES128_KEY_BYTES], str data,
                                unsigned char *out, size_t *ret_len)
{
    if (!data.len || data.len % AES_BLOCK_BYTES || data.len > INT_MAX) return ERR_DAMAGED;
    aes(EVP_aes_128_ecb(), false, key, NULL, (const unsigned char *)data.p, data.len, out);
    unsigned char pad = out[data.len - 1];
    if (!pad || pad > AES_BLOCK_BYTES) return ERR_DAMAGED;
    for (size_t i = data.len - pad; i < data.len; i++)
        if (out[i] != pad) return ERR_DAMAGED;
    *ret_len = data.len - pad;
    return OK;
}

enum err crypto_aes_cbc(bool encrypt, const unsigned char key[static AES256_KEY_BYTES],
                        const unsigned char iv[static AES_BLOCK_BYTES], str data,
                        unsigned char *out)
{
    if (data.len % AES_BLOCK_BYTES || data.len > INT_MAX) return ERR_DAMAGED;
    aes(EVP_aes_256_cbc(), encrypt, key, iv, (const unsigned char *)data.p, data.len, out);
    return OK;
}

/* OpenSSL's own context, under our name. */
static EVP_MD_CTX *context(struct crypto_hash *hash)
{
    return (EVP_MD_CTX *)(void *)hash;
}

struct crypto_hash *crypto_hash_new(void)
{
    sha256_get();
    return (struct crypto_hash *)(void *)context_new();
}

void crypto_hash_add(struct crypto_hash *hash, str data)
{
    hash_add(context(hash), data);
}

void crypto_hash_take(struct crypto_hash *hash, unsigned char out[static HASH_BYTES])
{
    hash_end(context(hash), out);
    if (!EVP_DigestInit_ex(context(hash), sha256, NULL)) abort();
}

void crypto_hash_free(struct crypto_hash *hash)
{
    EVP_MD_CTX_free(context(hash));
}

/* ---- HMAC ---- */

static void mac_begin(EVP_MD_CTX **ctx, const unsigned char *key, unsigned char pad)
{
    unsigned char block[BLOCK_BYTES];
    for (size_t i = 0; i < BLOCK_BYTES; i++) block[i] = key[i] ^ pad;
    if (!*ctx)
        *ctx = context_new();
    else if (!EVP_DigestInit_ex(*ctx, sha256, NULL))
        abort();
    hash_add(*ctx, (str){(const char *)block, sizeof block});
    crypto_wipe(block, sizeof block);
}

/* RFC 2104: a key that is longer than a block is its hash. */
static const struct mac_key *mac_key(struct own *mine, str key)
{
    unsigned char bytes[BLOCK_BYTES] = {0};
    if (key.len > BLOCK_BYTES)
        crypto_sha256(key, bytes);
    else if (key.len)
        memcpy(bytes, key.p, key.len);
    struct mac_key *found = NULL;
    for (size_t i = 0; i < KEYS_KEPT && !found; i++)
        if (mine->keys[i].inner && memcmp(mine->keys[i].bytes, bytes, BLOCK_BYTES) == 0)
            found = &mine->keys[i];
    if (!found) {
        found = &mine->keys[mine->next_key++ % KEYS_KEPT];
        memcpy(found->bytes, bytes, BLOCK_BYTES);
        mac_begin(&found->inner, bytes, 0x36);
        mac_begin(&found->outer, bytes, 0x5c);
    }
    crypto_wipe(bytes, sizeof bytes);
    return found;
}

void crypto_hmac(str key, str data, unsigned char out[static HASH_BYTES])
{
    struct own *mine = own_get();
    const struct mac_key *kept = mac_key(mine, key);
    unsigned char inner[HASH_BYTES];
    if (!EVP_MD_CTX_copy_ex(mine->context, kept->inner)) abort();
    hash_add(mine->context, data);
    hash_end(mine->context, inner);
    if (!EVP_MD_CTX_copy_ex(mine->context, kept->outer)) abort();
    hash_add(mine->context, (str){(const char *)inner, sizeof inner});
    hash_end(mine->context, out);
}

void crypto_subkey(str secret, str label, unsigned char out[static HASH_BYTES])
{
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
    if (!ctx) abort();
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)secret.p,
                                          secret.len),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)(uintptr_t)label.p,
                                          label.len),
        OSSL_PARAM_construct_end(),
    };
    if (EVP_KDF_derive(ctx, out, HASH_BYTES, params) <= 0) abort();
    EVP_KDF_CTX_free(ctx);
    EVP_KDF_free(kdf);
}

void crypto_wipe(void *p, size_t size)
{
    explicit_bzero(p, size);
}

void crypto_hex(str data, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < data.len; i++) {
        unsigned char byte = (unsigned char)data.p[i];
        *out++ = digits[byte >> 4];
        *out++ = digits[byte & 15];
    }
    *out = '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool crypto_unhex(str hex, unsigned char *out, size_t len)
{
    if (hex.len != 2 * len) return false;
    for (size_t i = 0; i < len; i++) {
        int high = hex_digit(hex.p[2 * i]), low = hex_digit(hex.p[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

#define DIGITS_62 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static const char alphabet[] = DIGITS_62 "-_";

/* The end of the digits. */
static char *digits64(str data, const char *digits, char *out)
{
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < data.len; i++) {
        bits = bits << 8 | (unsigned char)data.p[i];
        for (held += 8; held >= 6; held -= 6) *out++ = digits[bits >> (held - 6) & 63];
    }
    if (held) *out++ = digits[bits << (6 - held) & 63];
    return out;
}

void crypto_base64(str data, char *out)
{
    char *end = digits64(data, DIGITS_62 "+/", out);
    while ((end - out) % 4) *end++ = '=';
    *end = '\0';
}

void crypto_base64url(str data, char *out)
{
    *digits64(data, alphabet, out) = '\0';
}

/* Digits to bytes; *ret_spare: the bits of the last digit that make no byte. */
static enum err parse64(str text, const char *digits, unsigned char *out, size_t *ret_len,
                        uint32_t *ret_spare)
{
    if (text.len % 4 == 1) return ERR_INVALID_FIELD;
    uint32_t bits = 0;
    unsigned held = 0;
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char *at = text.p[i] ? strchr(digits, text.p[i]) : NULL;
        if (!at) return ERR_INVALID_FIELD;
        bits = bits << 6 | (uint32_t)(at - digits);
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[len++] = (unsigned char)(bits >> held);
        }
    }
    *ret_spare = bits & ((1U << held) - 1);
    *ret_len = len;
    return OK;
}

enum err crypto_base64url_parse(str text, unsigned char *out, size_t *ret_len)
{
    uint32_t spare;
    size_t len;
    enum err e = parse64(text, alphabet, out, &len, &spare);
    if (e || spare) return ERR_INVALID_FIELD;
    *ret_len = len;
    return OK;
}

enum err crypto_base64_parse(str text, unsigned char *out, size_t *ret_len)
{
    uint32_t spare;
    for (int i = 0; i < 2 && text.len && text.p[text.len - 1] == '='; i++) text.len--;
    return parse64(text, DIGITS_62 "+/", out, ret_len, &spare);
}
