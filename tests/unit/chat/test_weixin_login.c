/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "chat/weixin_kit.h"

#define BEGIN channel_weixin.login_begin
#define POLL  channel_weixin.login_poll
#define CODE                                                                                  \
    "{\"ret\":0,\"qrcode\":\"k/1\",\"qrcode_img_content\":\"https://liteapp.weixin.qq.com/q/" \
    "a?b\"}"

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

/* A login whose code is shown. */
static void begin(void)
{
    weixin_stage_again(&stage);
    weixin_walk(&stage, BEGIN, CODE);
    weixin_stage_again(&stage);
}

static void begins(void **state)
{
    (void)state;
    assert_true(weixin_step(&stage, BEGIN, NULL));
    assert_string_equal(stage.request.method, "POST");
    assert_str(stage.request.url,
               STR("https://ilinkai.weixin.qq.com/ilink/bot/get_bot_qrcode?bot_type=3"));
    assert_str(stage.request.body, STR("{\"local_token_list\":[\"tok\"]}"));
    assert_str(weixin_header(&stage, "Authorization"), STR_EMPTY);
    assert_str(weixin_header(&stage, "AuthorizationType"), STR("ilink_bot_token"));
    assert_str(weixin_header(&stage, "X-WECHAT-UIN"), STR("MzA1NDE5ODk2"));
    assert_false(weixin_step_json(&stage, BEGIN, CODE));
    assert_int_equal(stage.errand.verdict, VERDICT_DONE);
    assert_int_equal(stage.login.state, LOGIN_WAIT);
    assert_str(stage.login.key, STR("k/1"));
    assert_str(stage.login.content, STR("https://liteapp.weixin.qq.com/q/a?b"));

    stage.home.account = STR("{}");
    assert_true(weixin_step(&stage, BEGIN, NULL));
    assert_str(stage.request.body, STR("{\"local_token_list\":[]}"));
}

static void begins_badly(void **state)
{
    (void)state;
    static const char *const rows[] = {"{}", "{\"qrcode\":\"k\"}", "{\"qrcode_img_content\":\"c\"}",
                                       "{\"qrcode\":\"k\",\"qrcode_img_content\":\"a\\nb\"}"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        weixin_stage_again(&stage);
        stage.login = (struct login){0};
        weixin_walk(&stage, BEGIN, rows[i]);
        assert_int_equal(stage.errand.verdict, VERDICT_REFUSED);
        assert_int_equal(stage.login.state, LOGIN_FAILED);
        assert_string_equal(stage.login.detail, "WeChat gives no QR code");
    }
    weixin_stage_again(&stage);
    stage.login = (struct login){0};
    weixin_walk(&stage, BEGIN, "{\"ret\":-1,\"errmsg\":\"busy\"}");
    assert_int_equal(stage.errand.verdict, VERDICT_AGAIN);
    assert_int_equal(stage.login.state, LOGIN_WAIT);
}

static void statuses(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        enum login_state state;
    } rows[] = {
        {"{\"status\":\"wait\"}", LOGIN_WAIT},
        {"{\"status\":\"scaned\"}", LOGIN_SCANNED},
        {"{\"status\":\"scaned_but_redirect\"}", LOGIN_SCANNED},
        {"{\"status\":\"need_verifycode\"}", LOGIN_VERIFY},
        {"{\"status\":\"verify_code_blocked\"}", LOGIN_EXPIRED},
        {"{\"status\":\"expired\"}", LOGIN_EXPIRED},
        {"{\"status\":\"binded_redirect\"}", LOGIN_DONE},
        {"{\"status\":\"confirmed\"}", LOGIN_FAILED},
        {"{\"status\":\"confirmed\",\"bot_token\":\"t\"}", LOGIN_FAILED},
        {"{\"status\":\"confirmed\",\"ilink_bot_id\":\"b\"}", LOGIN_FAILED},
        {"{\"status\":\"confirmed\",\"bot_token\":\"a\\nb\",\"ilink_bot_id\":\"b\"}", LOGIN_FAILED},
        {"{\"status\":\"confirmed\",\"bot_token\":\"t\",\"ilink_bot_id\":\"b\"}", LOGIN_DONE},
        {"{\"status\":\"dancing\"}", LOGIN_WAIT},
        {"{}", LOGIN_WAIT},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        begin();
        weixin_walk(&stage, POLL, rows[i].json);
        assert_int_equal(stage.login.state, rows[i].state);
        assert_int_equal(stage.errand.verdict,
                         rows[i].state == LOGIN_FAILED ? VERDICT_REFUSED : VERDICT_DONE);
    }
    begin();
    stage.home.account = STR("{}");
    weixin_walk(&stage, POLL, "{\"status\":\"binded_redirect\"}");
    assert_int_equal(stage.login.state, LOGIN_FAILED);
}

static void polls(void **state)
{
    (void)state;
    begin();
    assert_true(weixin_step(&stage, POLL, NULL));
    assert_string_equal(stage.request.method, "GET");
    assert_str(stage.request.url,
               STR("https://ilinkai.weixin.qq.com/ilink/bot/get_qrcode_status?qrcode=k%2F1"));
    assert_int_equal(stage.request.header_count, 2);
    assert_str(weixin_header(&stage, "iLink-App-Id"), STR("bot"));
    struct channel_reply late = {.e = ERR_TIMEOUT, .sent = true};
    stage.login.state = LOGIN_SCANNED;
    assert_false(weixin_step(&stage, POLL, &late));
    assert_int_equal(stage.errand.verdict, VERDICT_DONE);
    assert_true(weixin_step(&stage, POLL, NULL));
    assert_false(weixin_step_json(&stage, POLL, "{\"status\":\"wait\"}"));
    assert_int_equal(stage.login.state, LOGIN_SCANNED);
    struct channel_reply gateway = {.sent = true, .status = 502};
    assert_true(weixin_step(&stage, POLL, NULL));
    assert_false(weixin_step(&stage, POLL, &gateway));
    assert_int_equal(stage.errand.verdict, VERDICT_AGAIN);
    assert_int_equal(stage.login.state, LOGIN_SCANNED);
}

/* A number is sent once; if it was wrong that is said. */
static void verifies(void **state)
{
    (void)state;
    begin();
    weixin_walk(&stage, POLL, "{\"status\":\"need_verifycode\"}");
    assert_string_equal(stage.login.detail, "");
    stage.login.verify_code = STR(" 48&1 ");
    weixin_stage_again(&stage);
    assert_true(weixin_step(&stage, POLL, NULL));
    assert_true(str_ends(stage.request.url, STR("?qrcode=k%2F1&verify_code=48%261")));
    assert_int_equal(stage.login.verify_code.len, 0);
    assert_false(weixin_step_json(&stage, POLL, "{\"status\":\"need_verifycode\"}"));
    assert_int_equal(stage.login.state, LOGIN_VERIFY);
    assert_string_equal(stage.login.detail, "that number was wrong");
    weixin_stage_again(&stage);
    assert_true(weixin_step(&stage, POLL, NULL));
    assert_true(str_ends(stage.request.url, STR("?qrcode=k%2F1")));
    assert_false(weixin_step_json(&stage, POLL, "{\"status\":\"scaned\"}"));
    assert_string_equal(stage.login.detail, "");
}

static void redirects(void **state)
{
    (void)state;
    static const struct {
        const char *base, *host, *url; /* NULL: refused */
    } rows[] = {
        {"https://ilinkai.weixin.qq.com", "sz.weixin.qq.com", "https://sz.weixin.qq.com"},
        {"https://ilinkai.weixin.qq.com", "", "https://ilinkai.weixin.qq.com"},
        {"https://ilinkai.weixin.qq.com", "evil.org", NULL},
        {"https://ilinkai.weixin.qq.com", "evilweixin.qq.com", NULL},
        {"https://ilinkai.weixin.qq.com", "evil.org/.weixin.qq.com", NULL},
        {"https://ilinkai.weixin.qq.com", "evil.org#.weixin.qq.com", NULL},
        {"https://ilinkai.weixin.qq.com", "evil.org\\\\.weixin.qq.com", NULL},
        {"https://ilinkai.weixin.qq.com", "u@a.weixin.qq.com", NULL},
        {"https://ilinkai.weixin.qq.com", "a\\u0000.weixin.qq.com", NULL},
        {"https://ilinkai.weixin.qq.com", "127.0.0.1:80", NULL},
        {"http://127.0.0.1:9", "127.0.0.1:8", "http://127.0.0.1:8"},
        {"http://127.0.0.1:9", "evil.org", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        stage.home.base_url = str_c(rows[i].base);
        begin();
        str json = arena_printf(&stage.arena,
                                "{\"status\":\"scaned_but_redirect\",\"redirect_host\":\"%s\"}",
                                rows[i].host);
        weixin_walk(&stage, POLL, arena_cstr(&stage.arena, json));
        assert_int_equal(stage.login.state, rows[i].url ? LOGIN_SCANNED : LOGIN_FAILED);
        if (!rows[i].url) continue;
        assert_str(stage.login.base_url, str_c(rows[i].url));
        assert_true(weixin_step(&stage, POLL, NULL));
        assert_true(str_starts(stage.request.url, str_c(rows[i].url)));
        if (rows[i].host[0]) assert_string_equal(stage.request.only_host, ".weixin.qq.com");
    }
}

/* The account is what weixin_account reads, and names who may write. */
static void confirms(void **state)
{
    (void)state;
    static const struct {
        const char *base, *baseurl, *kept;
    } rows[] = {
        {"https://ilinkai.weixin.qq.com", "https://sz.weixin.qq.com", "https://sz.weixin.qq.com"},
        {"https://ilinkai.weixin.qq.com", "", ""},
        {"https://ilinkai.weixin.qq.com", "https://evil.org", ""},
        {"https://ilinkai.weixin.qq.com", "http://sz.weixin.qq.com", ""},
        {"http://127.0.0.1:9", "http://127.0.0.1:8", "http://127.0.0.1:8"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        stage.home.base_url = str_c(rows[i].base);
        begin();
        str json =
            arena_printf(&stage.arena,
                         "{\"status\":\"confirmed\",\"bot_token\":\" new \",\"ilink_bot_id\":"
                         "\"b@im.bot\",\"ilink_user_id\":\"u@im.wechat\",\"baseurl\":\"%s\"}",
                         rows[i].baseurl);
        weixin_walk(&stage, POLL, arena_cstr(&stage.arena, json));
        assert_int_equal(stage.login.state, LOGIN_DONE);
        assert_str(stage.errand.new_account,
                   arena_printf(&stage.arena,
                                "{\"botToken\":\"new\",\"baseUrl\":\"%s\",\"botId\":\"b@im.bot\","
                                "\"userId\":\"u@im.wechat\"}",
                                rows[i].kept));
    }
    begin();
    weixin_walk(&stage, POLL, "{\"status\":\"binded_redirect\"}");
    assert_int_equal(stage.errand.new_account.len, 0);
}

int test_weixin_login(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(begins, setup, teardown),
        cmocka_unit_test_setup_teardown(begins_badly, setup, teardown),
        cmocka_unit_test_setup_teardown(statuses, setup, teardown),
        cmocka_unit_test_setup_teardown(polls, setup, teardown),
        cmocka_unit_test_setup_teardown(verifies, setup, teardown),
        cmocka_unit_test_setup_teardown(redirects, setup, teardown),
        cmocka_unit_test_setup_teardown(confirms, setup, teardown),
    };
    return cmocka_run_group_tests_name("channel/weixin_login", tests, NULL, NULL);
}
