/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crypto.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
    for (size_t i = 0; i < 4 * COUNT(rows); i++) { /* a key again, and one that others replaced */
        unsigned char mac[HASH_BYTES], other[HASH_BYTES];
        size_t row = i * i % 7 % COUNT(rows);
        crypto_hmac(rows[row].key, rows[row].data, mac);
        assert_hash(mac, rows[row].mac);
        const char key[] = {(char)i};
        if (i % 3) crypto_hmac((str){key, sizeof key}, rows[row].data, other);
        if (i % 3) assert_memory_not_equal(mac, other, HASH_BYTES);
    }
}

static void *hash_alone(void *arg)
{
    for (int i = 0; i < 300; i++) {
        unsigned char hash[2 * HASH_BYTES];
        char key[] = {(char)('a' + i % 6)};
        crypto_sha256(str_c(arg), hash);
        crypto_hmac((str){key, sizeof key}, str_c(arg), hash + HASH_BYTES);
        crypto_sha256((str){(char *)hash, sizeof hash}, hash);
        crypto_hex((str){(char *)hash, HASH_BYTES}, arg);
    }
    return NULL;
}

/* Threads have nothing in common: each gets what one alone gets. */
static void threads(void **state)
{
    (void)state;
    pthread_t threads[3];
    char texts[1 + COUNT(threads)][HASH_HEX_BYTES] = {0};
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hash_alone, texts[1 + i]), 0);
    hash_alone(texts[0]);
    for (size_t i = 0; i < COUNT(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_string_equal(texts[1 + i], texts[0]);
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

/* None comes twice, from one stock or the next; the byte behind stays as it was. */
static void nonces(void **state)
{
    (void)state;
    static unsigned char seen[1000][17];
    for (size_t i = 0; i < COUNT(seen); i++) {
        seen[i][16] = 7;
        crypto_nonce(seen[i], 16);
        assert_int_equal(seen[i][16], 7);
        for (size_t j = 0; j < i; j++) assert_memory_not_equal(seen[j], seen[i], 16);
    }
    unsigned char most[512] = {0}, none[512] = {0};
    crypto_nonce(most, sizeof most);
    assert_memory_not_equal(most, none, sizeof most);
    crypto_nonce(none, 0);
}

/* A child does not give out what its parent has in stock. */
static void nonces_of_a_child(void **state)
{
    (void)state;
    unsigned char ours[16], theirs[16];
    int ends[2];
    crypto_nonce(ours, sizeof ours);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        crypto_nonce(theirs, sizeof theirs);
        _exit(write(ends[1], theirs, sizeof theirs) != sizeof theirs);
    }
    assert_int_equal(read(ends[0], theirs, sizeof theirs), sizeof theirs);
    assert_int_equal(waitpid(child, NULL, 0), child);
    crypto_nonce(ours, sizeof ours);
    assert_memory_not_equal(ours, theirs, sizeof ours);
    close(ends[0]);
    close(ends[1]);
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

/* RFC 1321, appendix A.5. */
static void md5(void **state)
{
    (void)state;
    static const struct {
        str data;
        const char *hash;
    } rows[] = {
        {STR(""), "d41d8cd98f00b204e9800998ecf8427e"},
        {{NULL, 0}, "d41d8cd98f00b204e9800998ecf8427e"},
        {STR("a"), "0cc175b9c0f1b6a831c399e269772661"},
        {STR("abc"), "900150983cd24fb0d6963f7d28e17f72"},
        {STR("message digest"), "f96b697d7cb7938d525a2f31aaf161d0"},
        {STR("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
         "57edf4a22be3c955ac49da2e2107b67a"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned char hash[MD5_BYTES];
        char text[2 * MD5_BYTES + 1];
        crypto_md5(rows[i].data, hash);
        crypto_hex((str){(char *)hash, sizeof hash}, text);
        assert_string_equal(text, rows[i].hash);
    }
}

#define WEIXIN_KEY "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
/* of NIST SP 800-38A: the key of F.1.1, and the first two blocks of its plaintext */
#define NIST_KEY "\x2b\x7e\x15\x16\x28\xae\xd2\xa6\xab\xf7\x15\x88\x09\xcf\x4f\x3c"
#define NIST_PLAIN                                                     \
    "\x6b\xc1\xbe\xe2\x2e\x40\x9f\x96\xe9\x3d\x7e\x11\x73\x93\x17\x2a" \
    "\xae\x2d\x8a\x57\x1e\x03\xac\x9c\x9e\xb7\x6f\xac\x45\xaf\x8e\x51"

/* Vectors of WeChat's files, and F.1.1, behind which the padding follows. */
static void aes_ecb(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        str data;
        const char *sealed; /* as far as it is known */
        size_t bytes;
    } rows[] = {
        {WEIXIN_KEY, STR("hello"), "5d8749e2af7531b2bf6661e9e5daf012", 16},
        {WEIXIN_KEY, STR("AAAAAAAAAAAAAAAA"),
         "dd4b1a0b47daa7067d0b59d95d58a6ae954f64f2e4e86e9eee82d20216684899", 32},
        {WEIXIN_KEY, STR(""), "954f64f2e4e86e9eee82d20216684899", 16},
        {WEIXIN_KEY, {NULL, 0}, "954f64f2e4e86e9eee82d20216684899", 16},
        {NIST_KEY, STR(NIST_PLAIN),
         "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf", 48},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const unsigned char *key = (const unsigned char *)rows[i].key;
        unsigned char sealed[48], plain[48];
        char text[97];
        size_t len = 99;
        assert_int_equal(AES_ECB_BYTES(rows[i].data.len), rows[i].bytes);
        crypto_aes_ecb_encrypt(key, rows[i].data, sealed);
        crypto_hex((str){(char *)sealed, rows[i].bytes}, text);
        assert_true(str_starts(str_c(text), str_c(rows[i].sealed)));
        assert_int_equal(
            crypto_aes_ecb_decrypt(key, (str){(char *)sealed, rows[i].bytes}, plain, &len), OK);
        assert_str(((str){(char *)plain, len}), rows[i].data);
    }
    assert_int_equal(AES_ECB_BYTES(15), 16);
    assert_int_equal(AES_ECB_BYTES(16), 32);
    assert_int_equal(AES_ECB_BYTES(24563), 24576);
}

/* Every padding that is one, and a few that are none. */
static void aes_ecb_padding(void **state)
{
    (void)state;
    static const struct {
        unsigned char last, others; /* of the last block: its last byte, and the rest */
        bool good;
    } rows[] = {
        {0, 0, false},  {1, 9, true},    {2, 2, true},    {2, 1, false},
        {16, 16, true}, {16, 15, false}, {17, 17, false}, {255, 255, false},
    };
    const unsigned char *key = (const unsigned char *)WEIXIN_KEY;
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned char block[16], sealed[32], plain[32];
        size_t len = 99;
        memset(block, rows[i].others, sizeof block);
        block[15] = rows[i].last;
        /* Of what this gives, the first block is ours; the second is that of the padding. */
        crypto_aes_ecb_encrypt(key, (str){(char *)block, sizeof block}, sealed);
        enum err e = crypto_aes_ecb_decrypt(key, (str){(char *)sealed, 16}, plain, &len);
        assert_int_equal(e, rows[i].good ? OK : ERR_DAMAGED);
        assert_int_equal(len, rows[i].good ? 16U - rows[i].last : 99);
    }
    unsigned char plain[32];
    size_t len = 99;
    assert_int_equal(crypto_aes_ecb_decrypt(key, STR(""), plain, &len), ERR_DAMAGED);
    assert_int_equal(crypto_aes_ecb_decrypt(key, STR("0123456789abcde"), plain, &len), ERR_DAMAGED);
    assert_int_equal(crypto_aes_ecb_decrypt(key, STR("0123456789abcdef0"), plain, &len),
                     ERR_DAMAGED);
    assert_int_equal(len, 99);
}

/* NIST SP 800-38A, F.2.5 and F.2.6. */
static void aes_cbc(void **state)
{
    (void)state;
    unsigned char key[AES256_KEY_BYTES], out[32], back[32];
    const unsigned char *iv = (const unsigned char *)WEIXIN_KEY;
    char text[65];
    assert_true(crypto_unhex(
        STR("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"), key, sizeof key));
    assert_int_equal(crypto_aes_cbc(true, key, iv, STR(NIST_PLAIN), out), OK);
    crypto_hex((str){(char *)out, sizeof out}, text);
    assert_string_equal(text, "f58c4c04d6e5f1ba779eabfb5f7bfbd6"
                              "9cfc4e967edb808d679f777bc6702c7d");
    assert_int_equal(crypto_aes_cbc(false, key, iv, (str){(char *)out, sizeof out}, back), OK);
    assert_memory_equal(back, NIST_PLAIN, sizeof back);
    assert_int_equal(crypto_aes_cbc(true, key, iv, STR(""), out), OK);
    assert_int_equal(crypto_aes_cbc(true, key, iv, STR("short"), out), ERR_DAMAGED);
    assert_int_equal(crypto_aes_cbc(false, key, iv, STR("0123456789abcdef0"), out), ERR_DAMAGED);
}

/* What WeChat's Official Account calls: its key has spare bits, and its message unpacks. */
static void aes_cbc_wechat(void **state)
{
    (void)state;
    str sealed = STR("jn1L23DB+6ELqJ+6bruv23oF+0kQ6whaYewHWsCpUtmmT3Qdpv0JStZgu+Nf6xrcpK2KkTc5C7bf"
                     "PQS0TvlwtKmlw3+uRe4RBpOqboUNENJFDKRaRb9yttGy6SsjdnXd");
    unsigned char key[AES256_KEY_BYTES + 1], bytes[128], plain[128];
    size_t len = 0;
    assert_int_equal(
        crypto_base64_parse(STR("abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"), key, &len), OK);
    assert_int_equal(len, AES256_KEY_BYTES);
    assert_int_equal(crypto_base64_parse(sealed, bytes, &len), OK);
    assert_int_equal(len, 96);
    assert_int_equal(crypto_aes_cbc(false, key, key, (str){(char *)bytes, len}, plain), OK);
    assert_str(((str){(char *)plain, 81}),
               STR("aaaabbbbccccdddd\0\0\0\x2b<xml><Content><![CDATA[2]]></Content></xml>"
                   "wx0123456789abcdef"));
    for (size_t i = 81; i < 96; i++) assert_int_equal(plain[i], 15);
}

/* As others write it. */
static void base64_lenient(void **state)
{
    (void)state;
    static const struct {
        str text, data;
    } rows[] = {
        {STR(""), STR("")},
        {STR("Zg=="), STR("f")},
        {STR("Zg="), STR("f")},
        {STR("Zg"), STR("f")},
        {STR("Zh"), STR("f")},
        {STR("Zm8="), STR("fo")},
        {STR("Zm8"), STR("fo")},
        {STR("Zm9v"), STR("foo")},
        {STR("Zm9vYmFy"), STR("foobar")},
        {STR("+/+/"), STR("\xfb\xff\xbf")},
    };
    static const str refused[] = {STR("A"),      STR("Zg==="), STR("Z==="), STR("Zm 9"),
                                  STR("Zm9v\n"), STR("Zm\0v"), STR("-_-_"), STR("Zg==Zg==")};
    unsigned char data[8];
    size_t len = 99;
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(crypto_base64_parse(rows[i].text, data, &len), OK);
        assert_str(((str){(char *)data, len}), rows[i].data);
    }
    len = 99;
    for (size_t i = 0; i < COUNT(refused); i++)
        assert_int_equal(crypto_base64_parse(refused[i], data, &len), ERR_INVALID_FIELD);
    assert_int_equal(len, 99);
}

static void unhex(void **state)
{
    (void)state;
    unsigned char out[4] = {7, 7, 7, 7};
    assert_true(crypto_unhex(STR("000fa0"), out, 3));
    assert_memory_equal(out, "\x00\x0f\xa0\x07", 4);
    assert_true(crypto_unhex(STR(""), out, 0));
    assert_false(crypto_unhex(STR("000fa"), out, 3));
    assert_false(crypto_unhex(STR("000fa0f"), out, 3));
    assert_false(crypto_unhex(STR("000fA0"), out, 3));
    assert_false(crypto_unhex(STR("000fg0"), out, 3));
}

int test_crypto(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256),
        cmocka_unit_test(in_pieces),
        cmocka_unit_test(hmac),
        cmocka_unit_test(threads),
        cmocka_unit_test(subkeys),
        cmocka_unit_test(randomness),
        cmocka_unit_test(nonces),
        cmocka_unit_test(nonces_of_a_child),
        cmocka_unit_test(wiping),
        cmocka_unit_test(hex),
        cmocka_unit_test(sha1),
        cmocka_unit_test(base64),
        cmocka_unit_test(base64url),
        cmocka_unit_test(base64url_refused),
        cmocka_unit_test(base64url_one_text),
        cmocka_unit_test(md5),
        cmocka_unit_test(aes_ecb),
        cmocka_unit_test(aes_ecb_padding),
        cmocka_unit_test(aes_cbc),
        cmocka_unit_test(aes_cbc_wechat),
        cmocka_unit_test(base64_lenient),
        cmocka_unit_test(unhex),
    };
    return cmocka_run_group_tests_name("base/crypto", tests, NULL, NULL);
}
