/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crypto.h"

#include <string.h>

#include "check.h"

static void assert_hash(const unsigned char hash[static HASH_BYTES], const char *expected)
{
    char hex[HASH_HEX_BYTES];
    crypto_hex((str){(const char *)hash, HASH_BYTES}, hex);
    assert_string_equal(hex, expected);
}

/* FIPS 180: the example messages for SHA-256. */
static void sha256(void **state)
{
    (void)state;
    static char million[1000 * 1000];
    memset(million, 'a', sizeof million);
    const struct {
        str data;
        const char *hash;
    } rows[] = {
        {STR(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {{NULL, 0}, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {STR("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {{million, sizeof million},
         "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned char hash[HASH_BYTES];
        crypto_sha256(rows[i].data, hash);
        assert_hash(hash, rows[i].hash);
    }
}

/* RFC 4231, cases 1, 2 and 6 (a key longer than a block); and nothing at all. */
static void hmac(void **state)
{
    (void)state;
    static char key1[20], key6[131];
    memset(key1, 0x0b, sizeof key1);
    memset(key6, 0xaa, sizeof key6);
    const struct {
        str key, data;
        const char *mac;
    } rows[] = {
        {{key1, sizeof key1},
         STR("Hi There"),
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {STR("Jefe"), STR("what do ya want for nothing?"),
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {{key6, sizeof key6},
         STR("Test Using Larger Than Block-Size Key - Hash Key First"),
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {{NULL, 0}, {NULL, 0}, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned char mac[HASH_BYTES];
        crypto_hmac(rows[i].key, rows[i].data, mac);
        assert_hash(mac, rows[i].mac);
    }
}

/* RFC 5869, case 3 (no salt, no info), of which a subkey is the first 32 bytes. */
static void subkeys(void **state)
{
    (void)state;
    char secret[22];
    memset(secret, 0x0b, sizeof secret);
    unsigned char key[HASH_BYTES];
    crypto_subkey((str){secret, sizeof secret}, STR_EMPTY, key);
    assert_hash(key, "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d");
    crypto_subkey((str){secret, sizeof secret}, (str){NULL, 0}, key);
    assert_hash(key, "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d");
    crypto_subkey((str){secret, sizeof secret}, STR("sessions"), key);
    assert_hash(key, "f67692d530f9dd7aa8c13ebc9b40b1cd9fb4b8a95ab251eea4d7600893230a77");
}

static void randomness(void **state)
{
    (void)state;
    /* Sizes around what one call to the kernel gives; the byte behind stays as it was. */
    static const size_t sizes[] = {0, 1, 255, 256, 257, 1000};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        unsigned char bytes[1001];
        bool changed = false;
        for (int attempt = 0; attempt < 16 && !changed; attempt++) {
            memset(bytes, 7, sizeof bytes);
            crypto_random(bytes, sizes[i]);
            changed = sizes[i] == 0 || bytes[sizes[i] - 1] != 7;
        }
        assert_true(changed);
        assert_int_equal(bytes[sizes[i]], 7);
    }
}

static void wiping(void **state)
{
    (void)state;
    char secret[] = "secret!";
    crypto_wipe(secret, 6);
    assert_memory_equal(secret, "\0\0\0\0\0\0!", 8);
}

static void hex(void **state)
{
    (void)state;
    char out[11];
    crypto_hex(STR("\x00\x0f\xa0\xff\x7f"), out);
    assert_string_equal(out, "000fa0ff7f");
    crypto_hex(STR_EMPTY, out);
    assert_string_equal(out, "");
}

/* RFC 3174, RFC 6455 section 1.3. */
static void sha1(void **state)
{
    (void)state;
    static const struct {
        str data;
        const char *hash;
    } rows[] = {
        {STR(""), "2jmj7l5rSw0yVb/vlWAYkK/YBwk="},
        {STR("abc"), "qZk+NkcGgWq6PiVxeFDCbJzQ2J0="},
        {STR("dGhlIHNhbXBsZSBub25jZQ==258EAFA5-E914-47DA-95CA-C5AB0DC85B11"),
         "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned char hash[SHA1_BYTES];
        char text[BASE64_BYTES(SHA1_BYTES)];
        crypto_sha1(rows[i].data, hash);
        crypto_base64((str){(char *)hash, sizeof hash}, text);
        assert_string_equal(text, rows[i].hash);
    }
}

/* RFC 4648, section 10, and the last two digits. */
static void base64(void **state)
{
    (void)state;
    static const struct {
        str data;
        const char *text;
    } rows[] = {
        {STR(""), ""},
        {STR("f"), "Zg=="},
        {STR("fo"), "Zm8="},
        {STR("foo"), "Zm9v"},
        {STR("foob"), "Zm9vYg=="},
        {STR("fooba"), "Zm9vYmE="},
        {STR("foobar"), "Zm9vYmFy"},
        {STR("\xfb\xff\xbf"), "+/+/"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[BASE64_BYTES(6)];
        memset(text, '!', sizeof text);
        crypto_base64(rows[i].data, text);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(strlen(text) + 1, BASE64_BYTES(rows[i].data.len));
    }
}

/* The texts of RFC 4648 section 10 without padding, and the two letters that differ. */
static void base64url(void **state)
{
    (void)state;
    static const struct {
        str data;
        const char *text;
    } rows[] = {
        {STR(""), ""},
        {STR("f"), "Zg"},
        {STR("fo"), "Zm8"},
        {STR("foo"), "Zm9v"},
        {STR("foob"), "Zm9vYg"},
        {STR("fooba"), "Zm9vYmE"},
        {STR("foobar"), "Zm9vYmFy"},
        {STR("\xfb\xff\xfe"), "-__-"},
        {STR("\0\0\0\0"), "AAAAAA"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[BASE64URL_BYTES(6)];
        crypto_base64url(rows[i].data, text);
        assert_string_equal(text, rows[i].text);
        assert_true(strlen(text) + 1 == BASE64URL_BYTES(rows[i].data.len));

        unsigned char data[6];
        size_t len = 99;
        assert_int_equal(crypto_base64url_parse(str_c(text), data, &len), OK);
        assert_str(((str){(char *)data, len}), rows[i].data);
    }
}

static void base64url_refused(void **state)
{
    (void)state;
    static const str rows[] = {
        STR("A"),       STR("AAAAA"), /* a single letter holds no byte */
        STR("Zg=="),    STR("Zm8="),  /* padding */
        STR("+//+"),    STR("Zm 9"),  STR("Zm9v\n"), STR("Zm\0v"),
        STR("Zm9\x80"), STR("Zh"),    STR("Zv"), /* unused bits */
        STR("Zm9"),     STR("Zm-"),   STR("AAB"),
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned char data[8];
        size_t len = 99;
        assert_int_equal(crypto_base64url_parse(rows[i], data, &len), ERR_INVALID_FIELD);
        assert_int_equal(len, 99);
    }
}

/* Of all texts of three letters, as many are taken as there are pairs of bytes, and each is the one
 * text of its pair. */
static void base64url_one_text(void **state)
{
    (void)state;
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t taken = 0;
    for (unsigned i = 0; i < 64 * 64 * 64; i++) {
        char text[] = {letters[i >> 12], letters[i >> 6 & 63], letters[i & 63], '\0'}, again[4];
        unsigned char pair[2];
        size_t len;
        if (crypto_base64url_parse(str_c(text), pair, &len)) continue;
        assert_int_equal(len, 2);
        crypto_base64url((str){(char *)pair, 2}, again);
        assert_string_equal(again, text);
        taken++;
    }
    assert_int_equal(taken, 65536);
}

/* In pieces of every size, and again with what is left of it. */
static void in_pieces(void **state)
{
    (void)state;
    str data =
        STR("the quick brown fox jumps over the lazy dog, and over what lies behind the dog");
    unsigned char whole[HASH_BYTES], pieces[HASH_BYTES];
    crypto_sha256(data, whole);
    struct crypto_hash *hash = crypto_hash_new();
    for (size_t size = 1; size <= data.len; size++) {
        for (size_t at = 0; at < data.len; at += size) {
            size_t left = data.len - at;
            crypto_hash_add(hash, (str){data.p + at, left < size ? left : size});
        }
        crypto_hash_take(hash, pieces);
        assert_memory_equal(pieces, whole, HASH_BYTES);
    }
    crypto_sha256(STR_EMPTY, whole);
    crypto_hash_take(hash, pieces);
    assert_memory_equal(pieces, whole, HASH_BYTES);
    crypto_hash_free(hash);
}

int test_crypto(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256),
        cmocka_unit_test(in_pieces),
        cmocka_unit_test(hmac),
        cmocka_unit_test(subkeys),
        cmocka_unit_test(randomness),
        cmocka_unit_test(wiping),
        cmocka_unit_test(hex),
        cmocka_unit_test(sha1),
        cmocka_unit_test(base64),
        cmocka_unit_test(base64url),
        cmocka_unit_test(base64url_refused),
        cmocka_unit_test(base64url_one_text),
    };
    return cmocka_run_group_tests_name("base/crypto", tests, NULL, NULL);
}
