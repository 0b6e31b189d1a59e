/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/crypto.h"
#include "base/limits.h"
#include "chat/platform/weixin_int.h"
#include "chat/weixin_kit.h"

#define SEND  channel_weixin.send
#define FETCH channel_weixin.fetch

static struct weixin_stage stage;

static int setup(void **state)
{
    (void)state;
    weixin_stage_init(&stage);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    weixin_stage_done(&stage);
    return 0;
}

/* ---- items ---- */

#define REF_KEY ",\"key\":\"" WEIXIN_KEY "\"}"

static void refs(void **state)
{
    (void)state;
    static const struct {
        const char *item;
        const char *name, *mime, *ref; /* name NULL: no file */
        uint64_t size;
    } rows[] = {
        {"{\"type\":2,\"image_item\":{\"aeskey\":\"000102030405060708090A0B0C0D0E0F\",\"media\":{"
         "\"full_url\":\"u\",\"aes_key\":\"AAAA\"},\"mid_size\":32}}",
         "image", "", "{\"url\":\"u\"" REF_KEY, 0},
        {"{\"type\":2,\"image_item\":{\"media\":{\"encrypt_query_param\":\"p\",\"aes_key\":"
         "\"AAECAwQFBgcICQoLDA0ODw==\"}}}",
         "image", "", "{\"param\":\"p\"" REF_KEY, 0},
        {"{\"type\":2,\"image_item\":{\"media\":{\"encrypt_query_param\":\"p\"}}}", "image", "",
         "{\"param\":\"p\",\"plain\":true}", 0},
        {"{\"type\":2,\"image_item\":{\"media\":{\"encrypt_query_param\":\"p\",\"aes_key\":\"!\"}}"
         "}",
         "image", "", "{\"param\":\"p\"}", 0},
        {"{\"type\":4,\"file_item\":{\"media\":{\"full_url\":\"u\",\"encrypt_query_param\":\"p\","
         "\"aes_key\":\"MDAwMTAyMDMwNDA1MDYwNzA4MDkwYTBiMGMwZDBlMGY=\"},\"file_name\":\"a.pdf\","
         "\"len\":\"24563\"}}",
         "a.pdf", "", "{\"url\":\"u\",\"param\":\"p\"" REF_KEY, 24563},
        {"{\"type\":4,\"file_item\":{\"media\":{},\"len\":\"-1\"}}", "file", "", "{}", 0},
        {"{\"type\":5,\"video_item\":{\"media\":{}}}", "video.mp4", "video/mp4", "{}", 0},
        {"{\"type\":3,\"voice_item\":{\"media\":{},\"encode_type\":6}}", "voice.silk", "audio/silk",
         "{}", 0},
        {"{\"type\":3,\"voice_item\":{\"media\":{},\"encode_type\":99}}", "voice", "", "{}", 0},
        {"{\"type\":3,\"voice_item\":{\"media\":{},\"encode_type\":-1}}", "voice", "", "{}", 0},
        {"{\"type\":4,\"image_item\":{\"media\":{}}}", NULL, NULL, NULL, 0},
        {"{\"type\":11,\"tool_call_start_item\":{\"media\":{}}}", NULL, NULL, NULL, 0},
        {"{}", NULL, NULL, NULL, 0},
        {"null", NULL, NULL, NULL, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct json *item = NULL;
        struct inbound_file file = {0};
        assert_int_equal(json_parse(&stage.arena, str_c(rows[i].item), &item, NULL), OK);
        assert_int_equal(weixin_file_read(&stage.arena, item, &file), rows[i].name != NULL);
        if (!rows[i].name) continue;
        assert_str(file.name, str_c(rows[i].name));
        assert_str(file.mime, str_c(rows[i].mime));
        assert_str(file.ref, str_c(rows[i].ref));
        assert_int_equal(file.size, rows[i].size);
    }
}

/* ---- fetching ---- */

static void fetch_urls(void **state)
{
    (void)state;
    static const struct {
        const char *base, *ref, *url; /* NULL: refused */
    } rows[] = {
        {"https://ilinkai.weixin.qq.com",
         "{\"url\":\"https://x.cdn.weixin.qq.com/c2c/download?a\"}",
         "https://x.cdn.weixin.qq.com/c2c/download?a"},
        {"https://ilinkai.weixin.qq.com", "{\"param\":\"a+/=\"}",
         "https://novac2c.cdn.weixin.qq.com/c2c/download?encrypted_query_param=a%2B%2F%3D"},
        {"https://ilinkai.weixin.qq.com", "{\"url\":\"https://evil.org/\",\"param\":\"p\"}",
         "https://novac2c.cdn.weixin.qq.com/c2c/download?encrypted_query_param=p"},
        {"https://ilinkai.weixin.qq.com", "{\"url\":\"https://evil.org/\"}", NULL},
        {"https://ilinkai.weixin.qq.com", "{\"url\":\"http://x.weixin.qq.com/\"}", NULL},
        {"https://ilinkai.weixin.qq.com", "{\"url\":\"http://127.0.0.1/\"}", NULL},
        {"https://ilinkai.weixin.qq.com", "{\"url\":\"https://a.weixin.qq.com/a b\"}", NULL},
        {"https://ilinkai.weixin.qq.com", "{}", NULL},
        {"https://ilinkai.weixin.qq.com", "not JSON", NULL},
        {"http://127.0.0.1:9", "{\"param\":\"p\"}",
         "http://127.0.0.1:9/c2c/download?encrypted_query_param=p"},
        {"http://127.0.0.1:9", "{\"url\":\"http://127.0.0.1:8/x\"}", "http://127.0.0.1:8/x"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct inbound_file file = {.ref = str_c(rows[i].ref)};
        weixin_stage_again(&stage);
        stage.home.base_url = str_c(rows[i].base);
        stage.errand.file = &file;
        assert_int_equal(weixin_step(&stage, FETCH, NULL), rows[i].url != NULL);
        if (!rows[i].url) {
            assert_int_equal(stage.errand.verdict, VERDICT_REFUSED);
            continue;
        }
        assert_str(stage.request.url, str_c(rows[i].url));
        assert_string_equal(stage.request.only_host, ".weixin.qq.com");
        assert_int_equal(stage.request.header_count, 0);
        assert_int_equal(stage.request.bytes_max, CHANNEL_FILE_BYTES_MAX + 16);
    }
}

#define HELLO "\x5d\x87\x49\xe2\xaf\x75\x31\xb2\xbf\x66\x61\xe9\xe5\xda\xf0\x12"

static void fetches(void **state)
{
    (void)state;
    static const struct {
        const char *ref;
        enum err e;
        int status;
        str body;
        enum errand_verdict verdict;
        str bytes;
    } rows[] = {
        {"{\"param\":\"p\"" REF_KEY, OK, 200, STR(HELLO), VERDICT_DONE, STR("hello")},
        {"{\"param\":\"p\",\"plain\":true}", OK, 200, STR("a\0b"), VERDICT_DONE, STR("a\0b")},
        {"{\"param\":\"p\"}", OK, 200, STR(HELLO), VERDICT_REFUSED, STR("")},
        {"{\"param\":\"p\"" REF_KEY, OK, 200, STR("hello"), VERDICT_REFUSED, STR("")},
        {"{\"param\":\"p\"" REF_KEY, OK, 200, STR(""), VERDICT_REFUSED, STR("")},
        {"{\"param\":\"p\"" REF_KEY, OK, 200, STR("0123456789abcdef"), VERDICT_REFUSED, STR("")},
        {"{\"param\":\"p\"" REF_KEY, OK, 404, STR(""), VERDICT_REFUSED, STR("")},
        {"{\"param\":\"p\"" REF_KEY, OK, 206, STR(HELLO), VERDICT_REFUSED, STR("")},
        {"{\"param\":\"p\"" REF_KEY, OK, 503, STR(""), VERDICT_AGAIN, STR("")},
        {"{\"param\":\"p\"" REF_KEY, OK, 429, STR(""), VERDICT_AGAIN, STR("")},
        {"{\"param\":\"p\"" REF_KEY, ERR_TIMEOUT, 0, STR(""), VERDICT_AGAIN, STR("")},
        {"{\"param\":\"p\"" REF_KEY, ERR_TOO_LARGE, 200, STR(""), VERDICT_REFUSED, STR("")},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct inbound_file file = {.ref = str_c(rows[i].ref)};
        struct channel_reply reply = {
            .e = rows[i].e, .sent = true, .status = rows[i].status, .body = rows[i].body};
        weixin_stage_again(&stage);
        stage.errand.file = &file;
        assert_true(weixin_step(&stage, FETCH, NULL));
        assert_false(weixin_step(&stage, FETCH, &reply));
        assert_int_equal(stage.errand.verdict, rows[i].verdict);
        assert_str(stage.errand.bytes, rows[i].bytes);
    }
}

/* ---- sending ---- */

static struct outbound message;

static void begin_send(const char *mime, str name, str bytes)
{
    message = (struct outbound){.to = STR("u@im.wechat"),
                                .client_id = STR("out-1"),
                                .reply_token = STR("ctx"),
                                .file_name = name,
                                .file_mime = str_c(mime),
                                .file_bytes = bytes};
    weixin_stage_again(&stage);
    stage.errand.message = &message;
}

/* A member of the newest request without its quotes, kept. */
static str quoted(const char *path)
{
    str raw = weixin_sent(&stage, path);
    assert_true(raw.len >= 2);
    return arena_str(&stage.arena, (str){raw.p + 1, raw.len - 2});
}

static struct channel_reply uploaded(int status, const char *param)
{
    return (struct channel_reply){.sent = true, .status = status, .wanted = str_c(param)};
}

static void sends_file(void **state)
{
    (void)state;
    begin_send("application/pdf", STR("报告.pdf"), STR("hello"));
    assert_true(weixin_step(&stage, SEND, NULL));
    assert_true(str_ends(stage.request.url, STR("/ilink/bot/getuploadurl")));
    assert_str(weixin_sent(&stage, "media_type"), STR("3"));
    assert_str(weixin_sent(&stage, "rawsize"), STR("5"));
    assert_str(weixin_sent(&stage, "filesize"), STR("16"));
    assert_str(weixin_sent(&stage, "rawfilemd5"), STR("\"5d41402abc4b2a76b9719d911017c592\""));
    assert_str(weixin_sent(&stage, "to_user_id"), STR("\"u@im.wechat\""));
    assert_str(weixin_sent(&stage, "no_need_thumb"), STR("true"));
    str key_hex = quoted("aeskey"), name = quoted("filekey");
    assert_int_equal(name.len, 32);
    assert_false(str_eq(key_hex, name));

    assert_true(weixin_step_json(&stage, SEND, "{\"upload_param\":\"p+1\"}"));
    assert_str(stage.request.url,
               arena_printf(&stage.arena,
                            "https://novac2c.cdn.weixin.qq.com/c2c/upload?encrypted_query_param="
                            "p%%2B1&filekey=%.*s",
                            STR_ARG(name)));
    assert_string_equal(stage.request.method, "POST");
    assert_string_equal(stage.request.want, "x-encrypted-param");
    assert_string_equal(stage.request.only_host, ".weixin.qq.com");
    assert_int_equal(stage.request.header_count, 1);
    assert_str(weixin_header(&stage, "Content-Type"), STR("application/octet-stream"));
    unsigned char key[AES128_KEY_BYTES], plain[16];
    size_t len = 0;
    assert_true(crypto_unhex(key_hex, key, sizeof key));
    assert_int_equal(crypto_aes_ecb_decrypt(key, stage.request.body, plain, &len), OK);
    assert_str(((str){(char *)plain, len}), STR("hello"));

    struct channel_reply reply = uploaded(200, "enc");
    assert_true(weixin_step(&stage, SEND, &reply));
    assert_true(str_ends(stage.request.url, STR("/ilink/bot/sendmessage")));
    char base64[BASE64_BYTES(32)];
    crypto_base64(key_hex, base64);
    assert_str(
        weixin_sent(&stage, "msg.item_list"),
        arena_printf(&stage.arena,
                     "[{\"type\":4,\"file_item\":{\"media\":{\"encrypt_query_param\":\"enc\","
                     "\"aes_key\":\"%s\",\"encrypt_type\":1},\"file_name\":\"报告.pdf\","
                     "\"len\":\"5\"}}]",
                     base64));
    assert_str(weixin_sent(&stage, "msg.context_token"), STR("\"ctx\""));
    assert_false(weixin_step_json(&stage, SEND, "{\"message_id\":\"9\"}"));
    assert_int_equal(stage.errand.verdict, VERDICT_DONE);
    assert_str(stage.errand.server_id, STR("9"));
}

static void sends_image(void **state)
{
    (void)state;
    begin_send("image/png", STR("a.png"), STR("0123456789abcdef"));
    assert_true(weixin_step(&stage, SEND, NULL));
    assert_str(weixin_sent(&stage, "media_type"), STR("1"));
    assert_str(weixin_sent(&stage, "filesize"), STR("32"));
    assert_true(weixin_step_json(&stage, SEND,
                                 "{\"upload_full_url\":\"https://a.cdn.weixin.qq.com/up?x=1\"}"));
    assert_str(stage.request.url, STR("https://a.cdn.weixin.qq.com/up?x=1"));
    struct channel_reply reply = uploaded(200, "enc");
    assert_true(weixin_step(&stage, SEND, &reply));
    assert_str(weixin_sent(&stage, "msg.item_list.0.type"), STR("2"));
    assert_str(weixin_sent(&stage, "msg.item_list.0.image_item.mid_size"), STR("32"));
    assert_str(weixin_sent(&stage, "msg.item_list.0.image_item.file_name"), STR_EMPTY);
}

/* Before the message itself nobody has seen anything: what fails there is never of unknown fate. */
static void uploads_fail(void **state)
{
    (void)state;
    static const struct {
        enum err e;
        int status;
        const char *param;
        int attempts;
        enum errand_verdict verdict;
    } rows[] = {
        {OK, 400, "", 1, VERDICT_REFUSED},      {OK, 500, "", 3, VERDICT_AGAIN},
        {OK, 200, "", 3, VERDICT_AGAIN},        {OK, 200, "a b", 3, VERDICT_AGAIN},
        {ERR_TIMEOUT, 0, "", 3, VERDICT_AGAIN}, {ERR_NETWORK, 200, "e", 3, VERDICT_AGAIN},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        begin_send("text/plain", STR("a.txt"), STR(""));
        assert_true(weixin_step(&stage, SEND, NULL));
        assert_true(weixin_step_json(&stage, SEND, "{\"upload_param\":\"p\"}"));
        struct channel_reply reply = uploaded(rows[i].status, rows[i].param);
        reply.e = rows[i].e;
        int attempts = 1;
        while (weixin_step(&stage, SEND, &reply)) {
            attempts++;
            assert_int_equal(stage.request.body.len, 16);
        }
        assert_int_equal(attempts, rows[i].attempts);
        assert_int_equal(stage.errand.verdict, rows[i].verdict);
    }
}

static void slots_fail(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        enum errand_verdict verdict;
    } rows[] = {
        {"{\"ret\":-1,\"errmsg\":\"invalid to_user_id\"}", VERDICT_REFUSED},
        {"{\"errcode\":-14}", VERDICT_LOGIN},
        {"{\"ret\":-2}", VERDICT_SPENT},
        {"{\"ret\":-2,\"errmsg\":\"freq limit\"}", VERDICT_OFTEN},
        {"{}", VERDICT_AGAIN},
        {"{\"upload_full_url\":\"https://evil.org/\"}", VERDICT_AGAIN},
        {"nothing", VERDICT_AGAIN},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        begin_send("text/plain", STR("a.txt"), STR("a"));
        weixin_walk(&stage, SEND, rows[i].json);
        assert_int_equal(stage.errand.verdict, rows[i].verdict);
    }
    begin_send("text/plain", STR("a.txt"), STR("a"));
    struct channel_reply reply = {.e = ERR_TIMEOUT, .sent = true};
    assert_true(weixin_step(&stage, SEND, NULL));
    assert_false(weixin_step(&stage, SEND, &reply));
    assert_int_equal(stage.errand.verdict, VERDICT_AGAIN);

    size_t len = CHANNEL_FILE_BYTES_MAX + 1;
    begin_send("text/plain", STR("a.txt"), (str){arena_alloc(&stage.arena, len), len});
    assert_false(weixin_step(&stage, SEND, NULL));
    assert_int_equal(stage.errand.verdict, VERDICT_REFUSED);
}

int test_weixin_media(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(refs, setup, teardown),
        cmocka_unit_test_setup_teardown(fetch_urls, setup, teardown),
        cmocka_unit_test_setup_teardown(fetches, setup, teardown),
        cmocka_unit_test_setup_teardown(sends_file, setup, teardown),
        cmocka_unit_test_setup_teardown(sends_image, setup, teardown),
        cmocka_unit_test_setup_teardown(uploads_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(slots_fail, setup, teardown),
    };
    return cmocka_run_group_tests_name("channel/weixin_media", tests, NULL, NULL);
}
