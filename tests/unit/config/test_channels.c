/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "agents/reload.h"
#include "base/limits.h"
#include "config/kit.h"

#define SECRET  "TOPSECRET-0123456789"
#define AES_KEY "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"

static void put_files(void)
{
    config_kit_put("hook-secret.txt", STR(SECRET "\n"));
    config_kit_put("token.txt", STR("123:abc\r\n"));
    config_kit_put("key.txt", STR(AES_KEY));
}

static void load_ok(struct config_kit *f, const char *yaml)
{
    config_kit_put("fermata.yaml", str_c(yaml));
    put_files();
    config_kit_ok(f, config_kit_load(f, NULL, NULL));
}

#define OA                                                                      \
    "{kind: wechat_oa, app_id: wx1, secret_file: hook-secret.txt, token_file: " \
    "token.txt, aes_key_file: key.txt}"

static void kinds(void **state)
{
    struct config_kit *f = *state;
    load_ok(f, "channels:\n"
               "  wx: {kind: weixin, token_file: other.yaml}\n" /* which is not there */
               "  oa: " OA "\n"
               "  tg-2_b: {kind: telegram, agent: b, token_file: token.txt, allow: ['1', x@y],\n"
               "    base_url: 'http://127.0.0.1:1/tg//'}\n"
               "  own: {kind: webhook, url: 'http://h/m?a=1', secret_file: hook-secret.txt}\n"
               "agents: {b: {}, c: {}}\n");
    const struct config_channel *c = f->config.channels.items;
    assert_int_equal(f->config.channels.count, 4);
    assert_int_equal(c[0].line, 2);
    assert_str(c[0].name, STR("wx"));
    assert_str(c[0].kind, STR("weixin"));
    assert_str(c[0].agent, STR("b")); /* the first */
    assert_str(c[0].base_url, STR("https://ilinkai.weixin.qq.com"));
    assert_str(c[0].token, STR(""));
    assert_false(c[0].allow_all);
    assert_int_equal(c[0].allow.count, 0);

    assert_str(c[1].base_url, STR("https://api.weixin.qq.com"));
    assert_str(c[1].app_id, STR("wx1"));
    assert_str(c[1].secret, STR(SECRET));
    assert_str(c[1].token, STR("123:abc"));
    assert_str(c[1].aes_key, STR(AES_KEY));
    assert_true(c[1].allow_all);

    assert_str(c[2].base_url, STR("http://127.0.0.1:1/tg"));
    assert_str(c[2].agent, STR("b"));
    assert_false(c[2].allow_all);
    assert_int_equal(c[2].allow.count, 2);
    assert_str(c[2].allow.items[1], STR("x@y"));

    assert_str(c[3].base_url, STR(""));
    assert_str(c[3].url, STR("http://h/m?a=1"));
    assert_str(c[3].secret, STR(SECRET));
    assert_true(c[3].allow_all);
}

static void open_and_closed(void **state)
{
    struct config_kit *f = *state;
    load_ok(f, "channels:\n  wx: {kind: weixin, token_file: token.txt, allow: ['*']}\n"
               "  tg: {kind: telegram, token_file: token.txt}\n");
    const struct config_channel *c = f->config.channels.items;
    assert_str(c[0].token, STR("123:abc"));
    assert_str(c[0].agent, STR("assistant"));
    assert_true(c[0].allow_all);
    assert_str(c[1].base_url, STR("https://api.telegram.org"));
    assert_true(c[1].allow_all);
}

static void refused(void **state)
{
    static const struct {
        const char *channel, *field, *part;
    } rows[] = {
        {"wx: {}", "channels.wx.kind", "is missing"},
        {"wx: {kind: wechat}", "channels.wx.kind", "weixin, wechat_oa, telegram or webhook"},
        {"Wx: {kind: weixin}", "channels.Wx", "lower-case"},
        {"'w x': {kind: weixin}", "channels.w x", "is no name"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: {kind: weixin}", "", "is no name"},
        {"wx: {kind: weixin, agent: assistent}", "channels.wx.agent",
         "did you mean \"assistant\"?"},
        {"wx: {kind: weixin, tokenfile: a}", "channels.wx.tokenfile", "\"token_file\""},
        {"wx: {kind: weixin, url: 'http://a'}", "channels.wx.url", "kind weixin; leave it out"},
        {"wx: {kind: weixin, app_id: a}", "channels.wx.app_id", "leave it out"},
        {"wx: {kind: weixin, base_url: 'ftp://a'}", "channels.wx.base_url", "does not begin"},
        {"wx: {kind: weixin, base_url: 'http://a/?k=TOP'}", "channels.wx.base_url", "has a query"},
        {"wx: {kind: weixin, token_file: /}", "channels.wx.token_file", "cannot be read"},
        {"wx: {kind: weixin, allow: []}", "channels.wx.allow", "lets nobody in"},
        {"wx: {kind: weixin, allow: a}", "channels.wx.allow", "takes a list"},
        {"wx: {kind: weixin, allow: [a, a]}", "channels.wx.allow", "twice"},
        {"wx: {kind: weixin, allow: [a, '*']}", "channels.wx.allow", "beside others"},
        {"wx: {kind: weixin, allow: ['']}", "channels.wx.allow", "is an empty item"},
        {"tg: {kind: telegram}", "channels.tg.token_file", "is missing"},
        {"tg: {kind: telegram, token_file: ''}", "channels.tg.token_file", "is missing"},
        {"tg: {kind: telegram, token_file: nowhere}", "channels.tg.token_file", "cannot be read"},
        {"tg: {kind: telegram, token_file: fermata.yaml}", "channels.tg.token_file", "has spaces"},
        {"tg: {kind: telegram, token_file: token.txt, secret_file: key.txt}",
         "channels.tg.secret_file", "leave it out"},
        {"oa: {kind: wechat_oa, secret_file: key.txt, token_file: token.txt}", "channels.oa.app_id",
         "is missing"},
        {"oa: {kind: wechat_oa, app_id: a, token_file: token.txt}", "channels.oa.secret_file",
         "is missing"},
        {"oa: {kind: wechat_oa, app_id: a, secret_file: key.txt}", "channels.oa.token_file",
         "is missing"},
        {"oa: {kind: wechat_oa, app_id: a, secret_file: key.txt, token_file: token.txt,"
         " aes_key_file: hook-secret.txt}",
         "channels.oa.aes_key_file", "43 letters and digits"},
        {"own: {kind: webhook, secret_file: key.txt}", "channels.own.url", "is missing"},
        {"own: {kind: webhook, url: 'http://a'}", "channels.own.secret_file", "is missing"},
        {"own: {kind: webhook, url: 'http://a', secret_file: token.txt}",
         "channels.own.secret_file", "can be guessed"},
        {"own: {kind: webhook, url: 'http://a', secret_file: key.txt, base_url: 'http://b'}",
         "channels.own.base_url", "leave it out"},
        {"own: {kind: webhook, url: 'http://a', secret_file: key.txt, token_file: token.txt}",
         "channels.own.token_file", "leave it out"},
    };
    struct config_kit *f = *state;
    put_files();
    for (size_t i = 0; i < COUNT(rows); i++) {
        char yaml[400];
        snprintf(yaml, sizeof yaml, "channels:\n  %s\n", rows[i].channel);
        config_kit_put("fermata.yaml", str_c(yaml));
        if (config_kit_load(f, NULL, NULL) != ERR_CONFIG) fail_msg("taken: %s", rows[i].channel);
        assert_part(f->fault.text, rows[i].part);
        assert_part(f->fault.text, "fermata.yaml:2: ");
        if (rows[i].field[0]) assert_string_equal(f->fault.field, rows[i].field);
        if (strstr(f->fault.text, "TOP")) fail_msg("tells a secret: %s", f->fault.text);
    }
}

/* One account has one channel. */
static void accounts(void **state)
{
#define TG  "{kind: telegram, token_file: token.txt"
#define WX  "{kind: weixin, token_file: token.txt}"
#define WE  "{kind: wechat_oa, secret_file: key.txt, token_file: token.txt, app_id: "
#define OWN "{kind: webhook, url: 'http://a', secret_file: hook-secret.txt}"
    static const struct {
        const char *first, *second, *key; /* key NULL: both are taken */
    } rows[] = {
        {TG "}", TG "}", "token_file"},
        {TG "}", "{kind: telegram, token_file: other.yaml, allow: [a]}", "token_file"},
        {TG "}", TG ", base_url: 'http://a'}", "token_file"},
        {TG "}", "{kind: telegram, token_file: key.txt}", NULL},
        {WX, WX, "token_file"},
        {WX, TG "}", NULL},
        {"{kind: weixin}", "{kind: weixin}", NULL},
        {"{kind: weixin, token_file: nowhere}", "{kind: weixin, token_file: nowhere}", NULL},
        {WE "a}", WE "a}", "app_id"},
        {WE "a}", WE "b}", NULL},
        {OWN, OWN, NULL},
    };
    struct config_kit *f = *state;
    put_files();
    config_kit_put("other.yaml", STR("123:abc\n"));
    for (size_t i = 0; i < COUNT(rows); i++) {
        char yaml[500], field[64];
        snprintf(yaml, sizeof yaml, "channels:\n  one: %s\n  mid: {kind: weixin}\n  two: %s\n",
                 rows[i].first, rows[i].second);
        config_kit_put("fermata.yaml", str_c(yaml));
        enum err e = config_kit_load(f, NULL, NULL);
        if (e != (rows[i].key ? ERR_CONFIG : OK)) fail_msg("row %zu: %d %s", i, e, f->fault.text);
        if (!rows[i].key) continue;
        snprintf(field, sizeof field, "channels.two.%s", rows[i].key);
        assert_string_equal(f->fault.field, field);
        assert_part(f->fault.text, "fermata.yaml:4: ");
        assert_part(f->fault.text, "as the channel one");
        assert_null(strstr(f->fault.text, "123:abc"));
    }
#undef TG
#undef WX
#undef WE
#undef OWN
}

static void bounds(void **state)
{
    struct config_kit *f = *state;
    for (size_t over = 0; over < 2; over++) {
        AUTO(buf_done) struct buf yaml;
        buf_init(&yaml, 64 * 1024);
        buf_append(&yaml, STR("channels:\n"));
        for (size_t i = 0; i < CHANNELS_MAX + over; i++)
            buf_printf(&yaml, "  c%zu: {kind: weixin}\n", i);
        config_kit_put("fermata.yaml", buf_str(&yaml));
        enum err e = config_kit_load(f, NULL, NULL);
        assert_int_equal(e, over ? ERR_CONFIG : OK);
    }
    assert_string_equal(f->fault.field, "channels.c32");

    static const struct {
        size_t length;
        enum err e;
    } tokens[] = {{CHANNEL_TOKEN_BYTES_MAX, OK}, {CHANNEL_TOKEN_BYTES_MAX + 1, ERR_CONFIG}};
    config_kit_put("fermata.yaml",
                   STR("channels: {tg: {kind: telegram, token_file: token.txt}}\n"));
    for (size_t i = 0; i < COUNT(tokens); i++) {
        static char text[CHANNEL_TOKEN_BYTES_MAX + 1];
        memset(text, 't', sizeof text);
        config_kit_put("token.txt", (str){text, tokens[i].length});
        assert_int_equal(config_kit_load(f, NULL, NULL), tokens[i].e);
    }
}

static void printed(void **state)
{
    struct config_kit *f = *state;
    load_ok(f, "channels:\n  oa: " OA "\n  wx: {kind: weixin, allow: ['a b']}\n");
    AUTO(buf_done) struct buf out;
    config_kit_print(f, &out);
    assert_part(out.p, "channels:\n"
                       "  oa:\n"
                       "    kind: wechat_oa  # fermata.yaml:2\n"
                       "    agent: assistant  # default\n"
                       "    base_url: https://api.weixin.qq.com  # default\n"
                       "    token_file: token.txt  # fermata.yaml:2\n"
                       "    app_id: wx1  # fermata.yaml:2\n"
                       "    secret_file: hook-secret.txt  # fermata.yaml:2\n"
                       "    aes_key_file: key.txt  # fermata.yaml:2\n"
                       "  wx:\n"
                       "    kind: weixin  # fermata.yaml:3\n");
    assert_part(out.p, "    allow: [\"a b\"]  # fermata.yaml:3\n");
    static const char *const secrets[] = {SECRET, "123:abc", AES_KEY};
    for (size_t i = 0; i < COUNT(secrets); i++) assert_null(strstr(out.p, secrets[i]));
    config_kit_reads_back(f);
    assert_str(f->config.channels.items[0].aes_key, STR(AES_KEY));
}

/* Whatever is changed of a channel, a restart is asked for. */
static void restart(void **state)
{
    static const struct {
        const char *before, *after;
        bool same;
    } rows[] = {
        {"{}", "{}", true},
        {"{oa: " OA "}", "{oa: " OA "}", true},
        {"{}", "{wx: {kind: weixin}}", false},
        {"{wx: {kind: weixin}}", "{wy: {kind: weixin}}", false},
        {"{wx: {kind: weixin}}", "{wx: {kind: weixin, token_file: token.txt}}", false},
        {"{wx: {kind: weixin}}", "{wx: {kind: weixin, allow: [a]}}", false},
        {"{wx: {kind: weixin}}", "{wx: {kind: weixin, base_url: 'http://a'}}", false},
        {"{tg: {kind: telegram, token_file: token.txt}}",
         "{tg: {kind: telegram, token_file: key.txt}}", false},
        {"{w: {kind: webhook, url: 'http://a', secret_file: key.txt}}",
         "{w: {kind: webhook, url: 'http://b', secret_file: key.txt}}", false},
        {"{w: {kind: webhook, url: 'http://a', secret_file: key.txt}}",
         "{w: {kind: webhook, url: 'http://a', secret_file: hook-secret.txt}}", false},
    };
    struct config_kit *f = *state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        load_ok(f, arena_printf(&f->arena, "channels: %s\n", rows[i].before).p);
        struct config before = f->config;
        load_ok(f, arena_printf(&f->arena, "channels: %s\n", rows[i].after).p);
        str fixed = reload_fixed(&f->arena, &before, &f->config);
        assert_str(fixed, rows[i].same ? STR("") : STR("channels"));
    }
}

int test_config_channels(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, config_kit_setup, config_kit_teardown)
    const struct CMUnitTest tests[] = {
        CASE(kinds),   CASE(open_and_closed), CASE(refused),  CASE(bounds),
        CASE(printed), CASE(restart),         CASE(accounts),
    };
#undef CASE
    return cmocka_run_group_tests_name("app/config_channels", tests, NULL, NULL);
}
