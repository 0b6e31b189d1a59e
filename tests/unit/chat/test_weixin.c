/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/limits.h"
#include "chat/platform/weixin_int.h"
#include "chat/weixin_kit.h"

#define POLL   channel_weixin.poll
#define SEND   channel_weixin.send
#define TYPING channel_weixin.typing

/* A message whose only item is a text; `more` are members of the message. */
#define TEXT_MESSAGE(more, text)                                                               \
    "{\"from_user_id\":\"u@im.wechat\",\"message_type\":1," more "\"item_list\":[{\"type\":1," \
    "\"text_item\":{\"text\":\"" text "\"}}]}"
#define UPDATES(messages) "{\"ret\":0,\"msgs\":[" messages "],\"get_updates_buf\":\"next\"}"

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

/* ---- requests ---- */

static void headers(void **state)
{
    (void)state;
    stage.errand.cursor = STR("cur\"sor");
    assert_true(weixin_step(&stage, POLL, NULL));
    assert_string_equal(stage.request.method, "POST");
    assert_str(stage.request.url, STR("https://ilinkai.weixin.qq.com/ilink/bot/getupdates"));
    assert_str(weixin_header(&stage, "iLink-App-Id"), STR("bot"));
    assert_str(weixin_header(&stage, "iLink-App-ClientVersion"), STR("132105"));
    assert_str(weixin_header(&stage, "Content-Type"), STR("application/json"));
    assert_str(weixin_header(&stage, "AuthorizationType"), STR("ilink_bot_token"));
    assert_str(weixin_header(&stage, "X-WECHAT-UIN"), STR("MzA1NDE5ODk2"));
    assert_str(weixin_header(&stage, "Authorization"), STR("Bearer tok"));
    assert_str(stage.request.body,
               STR("{\"get_updates_buf\":\"cur\\\"sor\",\"base_info\":{\"channel_version\":"
                   "\"2.4.9\",\"bot_agent\":\"Fermata/2.4.9\"}}"));
    assert_int_equal(stage.request.timeout_ms, 43000);
    stage.home.version = STR("1.0.11");
    assert_true(weixin_step(&stage, POLL, NULL));
    assert_str(weixin_header(&stage, "iLink-App-ClientVersion"), STR("65547"));
}

static void uins(void **state)
{
    (void)state;
    assert_str(weixin_uin(&stage.arena, 0), STR("MA=="));
    assert_str(weixin_uin(&stage.arena, 305419896), STR("MzA1NDE5ODk2"));
    assert_str(weixin_uin(&stage.arena, UINT32_MAX), STR("NDI5NDk2NzI5NQ=="));
}

/* Which token goes to which address. */
static void accounts(void **state)
{
    (void)state;
    static const struct {
        const char *base_url, *token, *account;
        const char *bearer, *url; /* NULL: somebody has to sign in */
    } rows[] = {
        {"https://a.weixin.qq.com", "", "{}", NULL, NULL},
        {"https://a.weixin.qq.com", "", "", NULL, NULL},
        {"https://a.weixin.qq.com", "", "{\"botToken\":\"\"}", NULL, NULL},
        {"https://a.weixin.qq.com", " file\r\n", "{}", "Bearer file", "https://a.weixin.qq.com"},
        {"https://a.weixin.qq.com", "a b", "{}", NULL, NULL},
        {"https://a.weixin.qq.com", "file", "{\"botToken\":\"a\\nX: y\"}", NULL, NULL},
        {"https://a.weixin.qq.com", "file", "{\"botToken\":\"own\"}", "Bearer own",
         "https://a.weixin.qq.com"},
        {"https://a.weixin.qq.com", "t", "{\"baseUrl\":\"https://b.weixin.qq.com/x/\"}", "Bearer t",
         "https://b.weixin.qq.com/x"},
        {"https://a.weixin.qq.com", "t", "{\"baseUrl\":\"http://b.weixin.qq.com\"}", "Bearer t",
         "https://a.weixin.qq.com"},
        {"https://a.weixin.qq.com", "t", "{\"baseUrl\":\"https://evil.org\"}", "Bearer t",
         "https://a.weixin.qq.com"},
        {"https://a.weixin.qq.com", "t", "{\"baseUrl\":\"https://evil.org/.weixin.qq.com\"}",
         "Bearer t", "https://a.weixin.qq.com"},
        {"https://a.weixin.qq.com", "t", "{\"baseUrl\":\"http://127.0.0.1:1\"}", "Bearer t",
         "https://a.weixin.qq.com"},
        {"http://127.0.0.1:9", "t", "{\"baseUrl\":\"http://127.0.0.1:1\"}", "Bearer t",
         "http://127.0.0.1:1"},
        {"http://127.0.0.1:9", "t", "{\"baseUrl\":\"https://evil.org\"}", "Bearer t",
         "http://127.0.0.1:9"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        weixin_stage_again(&stage);
        stage.home.base_url = str_c(rows[i].base_url);
        stage.home.token = str_c(rows[i].token);
        stage.home.account = str_c(rows[i].account);
        bool asks = weixin_step(&stage, POLL, NULL);
        assert_int_equal(asks, rows[i].bearer != NULL);
        if (!asks) {
            assert_int_equal(stage.errand.verdict, VERDICT_LOGIN);
            assert_string_equal(stage.errand.detail,
                                "not signed in to WeChat: run `fermata channel login wx` or use "
                                "the settings page");
            continue;
        }
        assert_str(weixin_header(&stage, "Authorization"), str_c(rows[i].bearer));
        assert_str(stage.request.url,
                   arena_printf(&stage.arena, "%s/ilink/bot/getupdates", rows[i].url));
    }
}

/* ---- polling ---- */

static void hints(void **state)
{
    (void)state;
    static const struct {
        const char *hint;
        uint32_t remembered;
        msec timeout;
    } rows[] = {
        {"20000", 20000, 28000},         {"0", 0, 43000},     {"-5", 0, 43000},
        {"99999999999", 120000, 128000}, {"\"x\"", 0, 43000}, {"null", 0, 43000},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        weixin_stage_again(&stage);
        str json = arena_printf(&stage.arena, "{\"longpolling_timeout_ms\":%s}", rows[i].hint);
        weixin_walk(&stage, POLL, arena_cstr(&stage.arena, json));
        assert_int_equal(stage.errand.verdict, VERDICT_DONE);
        assert_int_equal(stage.errand.wait_hint_ms, rows[i].remembered);
        assert_true(weixin_step(&stage, POLL, NULL));
        assert_int_equal(stage.request.timeout_ms, rows[i].timeout);
    }
}

static void a_message(void **state)
{
    (void)state;
    weixin_walk(&stage, POLL,
                UPDATES(TEXT_MESSAGE("\"message_id\":7448678501208393001,\"create_time_ms\":"
                                     "1700000000123,\"context_token\":\"ctx\",",
                                     "  2\\n")));
    assert_int_equal(stage.errand.verdict, VERDICT_DONE);
    assert_int_equal(stage.errand.inbound_count, 1);
    assert_str(stage.errand.new_cursor, STR("next"));
    const struct inbound *in = stage.errand.inbounds;
    assert_str(in->id, STR("7448678501208393001"));
    assert_str(in->sender, STR("u@im.wechat"));
    assert_str(in->text, STR("2"));
    assert_str(in->reply_token, STR("ctx"));
    assert_int_equal(in->at, 1700000000123);
    assert_false(in->group);
    assert_int_equal(in->file_count, 0);
    assert_int_equal(in->quoted.len, 0);
}

/* Ids keep every digit, whichever way they are written; without one there is another. */
static void ids(void **state)
{
    (void)state;
    static const struct {
        const char *members, *id;
    } rows[] = {
        {"\"message_id\":18446744073709551615,", "18446744073709551615"},
        {"\"message_id\":\"7448678501208393000\",", "7448678501208393000"},
        {"\"message_id\":0,\"client_id\":\"c-1\",", "client:c-1"},
        {"\"message_id\":-1,\"client_id\":\"c-1\",", "client:c-1"},
        {"\"message_id\":1e3,\"client_id\":\"c-1\",", "client:c-1"},
        {"\"message_id\":\"a b\",\"client_id\":\"c-1\",", "client:c-1"},
        {"\"client_id\":\"c-1\",\"seq\":3,", "client:c-1"},
        {"\"client_id\":\"\",\"seq\":3,", "seq:3:u@im.wechat"},
        {"\"client_id\":\"a\\u0000b\",\"seq\":3,", "seq:3:u@im.wechat"},
        {"", "hash:"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        weixin_stage_again(&stage);
        str json =
            arena_printf(&stage.arena,
                         "{\"msgs\":[{%s\"from_user_id\":\"u@im.wechat\",\"item_list\":[]}]}",
                         rows[i].members);
        weixin_walk(&stage, POLL, arena_cstr(&stage.arena, json));
        assert_int_equal(stage.errand.inbound_count, 1);
        str id = stage.errand.inbounds[0].id;
        if (strcmp(rows[i].id, "hash:") == 0)
            assert_true(str_starts(id, STR("hash:")));
        else
            assert_str(id, str_c(rows[i].id));
        assert_true(id.len <= CHANNEL_ID_BYTES_MAX);
    }
}

/* Groups are not offered; should one come, others listen there. */
static void groups(void **state)
{
    (void)state;
    static const struct {
        const char *members;
        bool group;
    } rows[] = {
        {"", false},
        {"\"group_id\":\"\",", false},
        {"\"group_id\":null,", false},
        {"\"group_id\":0,", false},
        {"\"session_id\":\"s-1\",", false},
        {"\"group_id\":\"g@chatroom\",", true},
        {"\"group_id\":\"组\",", true},
        {"\"group_id\":7448678501208393000,", true},
        {"\"group_id\":{},", true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        weixin_stage_again(&stage);
        str json =
            arena_printf(&stage.arena, "{\"msgs\":[{%s\"from_user_id\":\"u\",\"message_id\":1}]}",
                         rows[i].members);
        weixin_walk(&stage, POLL, arena_cstr(&stage.arena, json));
        assert_int_equal(stage.errand.inbound_count, 1);
        if (stage.errand.inbounds[0].group != rows[i].group) fail_msg("row %zu", i);
    }
}

static void not_messages(void **state)
{
    (void)state;
    weixin_walk(&stage, POLL,
                UPDATES("{\"message_type\":2,\"from_user_id\":\"b@im.bot\",\"message_id\":1},"
                        "{\"message_type\":1,\"from_user_id\":\"\",\"message_id\":2},"
                        "{\"message_id\":3},{\"from_user_id\":\"a\\nb\"},null,7,[],"
                        "{\"from_user_id\":\"u\",\"message_id\":4}"));
    assert_int_equal(stage.errand.inbound_count, 1);
    assert_str(stage.errand.inbounds[0].id, STR("4"));
    assert_int_equal(stage.errand.inbounds[0].text.len, 0);
}

static void items(void **state)
{
    (void)state;
    weixin_walk(&stage, POLL,
                UPDATES(
                    "{\"from_user_id\":\"u\",\"message_id\":1,\"item_list\":["
                    "{\"type\":1,\"text_item\":{\"text\":\"one\"},\"ref_msg\":{\"svr_id\":"
                    "7448678501208393002,\"title\":\"old\"}},"
                    "{\"type\":3,\"voice_item\":{\"text\":\"two\",\"media\":{\"full_url\":\"x\"}}},"
                    "{\"type\":99,\"new_item\":{}},"
                    "{\"type\":4,\"file_item\":{\"media\":{\"encrypt_query_param\":\"p\"},"
                    "\"file_name\":\"a.txt\",\"len\":\"12\"}},"
                    "{\"type\":4,\"file_item\":{\"file_name\":\"gone.txt\"}},"
                    "{\"type\":2}]}"));
    const struct inbound *in = stage.errand.inbounds;
    assert_str(in->text, STR("one\ntwo"));
    assert_str(in->quoted, STR("7448678501208393002"));
    assert_int_equal(in->file_count, 1);
    assert_str(in->files[0].name, STR("a.txt"));
    assert_int_equal(in->files[0].size, 12);
}

/* More files than one message may have, and a text longer than one may be. */
static void too_much(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1024 * 1024);
    buf_append(&b, STR("{\"msgs\":[{\"from_user_id\":\"u\",\"message_id\":1,\"item_list\":["
                       "{\"type\":1,\"text_item\":{\"text\":\"a"));
    for (int i = 0; i < CHANNEL_TEXT_BYTES_MAX / 3 + 1; i++) buf_append(&b, STR("汉"));
    buf_append(&b, STR("\"}}"));
    for (int i = 0; i < CHANNEL_INBOUND_FILES_MAX + 1; i++)
        buf_append(&b, STR(",{\"type\":2,\"image_item\":{\"media\":{}}}"));
    buf_append(&b, STR("]}]}"));
    weixin_walk(&stage, POLL, arena_cstr(&stage.arena, buf_str(&b)));
    buf_done(&b);
    assert_int_equal(stage.errand.inbounds[0].file_count, CHANNEL_INBOUND_FILES_MAX);
    struct inbound kept;
    str json = inbound_json(&stage.arena, stage.errand.inbounds);
    assert_int_equal(inbound_parse(&stage.arena, json, &kept), OK);
    assert_int_equal(kept.file_count, CHANNEL_INBOUND_FILES_MAX);
    assert_true(kept.text.len > CHANNEL_TEXT_BYTES_MAX - 3);
}

/* Half an emoji in one message does not hold up the others. */
static void broken_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        str read;
    } rows[] = {
        {"a\\ud83db", STR("a\xef\xbf\xbd"
                          "b")},
        {"\\ude00", STR("\xef\xbf\xbd")},
        {"\\ud83d\\ud83d\\ude00", STR("\xef\xbf\xbd\xf0\x9f\x98\x80")},
        {"\\\\ud83d \\ud83d", STR("\\ud83d \xef\xbf\xbd")},
        {"a\xff\xe6\xb1\x89\xe6\xb1", STR("a\xef\xbf\xbd\xe6\xb1\x89\xef\xbf\xbd\xef\xbf\xbd")},
        {"a\nb", STR("a b")},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        weixin_stage_again(&stage);
        str json = arena_printf(
            &stage.arena,
            "{\"msgs\":[{\"from_user_id\":\"u\",\"message_id\":1,\"item_list\":[{\"type\":1,"
            "\"text_item\":{\"text\":\"%s\"}}]},{\"from_user_id\":\"u\",\"message_id\":2}],"
            "\"get_updates_buf\":\"n\"}",
            rows[i].text);
        weixin_walk(&stage, POLL, arena_cstr(&stage.arena, json));
        assert_int_equal(stage.errand.verdict, VERDICT_DONE);
        assert_int_equal(stage.errand.inbound_count, 2);
        assert_str(stage.errand.inbounds[0].text, rows[i].read);
    }
}

/* ---- what answers mean ---- */

enum { NO_STATUS = 0 };

static const struct {
    enum err e;
    bool sent;
    int status;
    const char *body;
    enum errand_verdict poll, send;
    msec wait_ms; /* of a send */
} answers[] = {
    {ERR_NETWORK, false, NO_STATUS, "", VERDICT_AGAIN, VERDICT_AGAIN, 0},
    {ERR_TIMEOUT, false, NO_STATUS, "", VERDICT_AGAIN, VERDICT_AGAIN, 0},
    {ERR_TIMEOUT, true, NO_STATUS, "", VERDICT_DONE, VERDICT_UNKNOWN, 0},
    {ERR_TIMEOUT, true, 200, "{", VERDICT_AGAIN, VERDICT_UNKNOWN, 0},
    {ERR_NETWORK, true, 200, "{\"mess", VERDICT_AGAIN, VERDICT_UNKNOWN, 0},
    {ERR_TOO_LARGE, true, 200, "{", VERDICT_AGAIN, VERDICT_UNKNOWN, 0},
    {OK, true, 200, "{}", VERDICT_DONE, VERDICT_DONE, 0},
    {OK, true, 200, "{\"ret\":0,\"errcode\":0}", VERDICT_DONE, VERDICT_DONE, 0},
    {OK, true, 200, "{\"ret\":\"0\",\"errcode\":null}", VERDICT_DONE, VERDICT_DONE, 0},
    {OK, true, 200, "", VERDICT_AGAIN, VERDICT_UNKNOWN, 0},
    {OK, true, 200, "[]", VERDICT_AGAIN, VERDICT_UNKNOWN, 0},
    {OK, true, 200, "<html>", VERDICT_AGAIN, VERDICT_UNKNOWN, 0},
    {OK, true, 401, "Invalid token", VERDICT_LOGIN, VERDICT_LOGIN, 0},
    {OK, true, 400, "", VERDICT_AGAIN, VERDICT_REFUSED, 0},
    {OK, true, 403, "", VERDICT_AGAIN, VERDICT_AGAIN, 0},
    {OK, true, 429, "", VERDICT_AGAIN, VERDICT_OFTEN, 10000},
    {OK, true, 302, "", VERDICT_AGAIN, VERDICT_AGAIN, 0},
    {OK, true, 502, "{}", VERDICT_AGAIN, VERDICT_UNKNOWN, 0},
    {OK, true, 200, "{\"ret\":-14}", VERDICT_LOGIN, VERDICT_LOGIN, 0},
    {OK, true, 200, "{\"errcode\":-14,\"errmsg\":\"session timeout\"}", VERDICT_LOGIN,
     VERDICT_LOGIN, 0},
    {OK, true, 200, "{\"ret\":-1,\"errcode\":-14}", VERDICT_LOGIN, VERDICT_LOGIN, 0},
    {OK, true, 200, "{\"ret\":0,\"errcode\":-2}", VERDICT_AGAIN, VERDICT_SPENT, 0},
    {OK, true, 200, "{\"ret\":-2,\"errmsg\":\"prepare failed\"}", VERDICT_AGAIN, VERDICT_SPENT, 0},
    {OK, true, 200, "{\"ret\":-2,\"errmsg\":\"failed to generate\"}", VERDICT_AGAIN, VERDICT_SPENT,
     0},
    {OK, true, 200, "{\"ret\":-2,\"errmsg\":\"Rate limited\"}", VERDICT_AGAIN, VERDICT_OFTEN,
     10000},
    {OK, true, 200, "{\"ret\":-2,\"errmsg\":\"freq limit\"}", VERDICT_AGAIN, VERDICT_OFTEN, 10000},
    {OK, true, 200, "{\"errcode\":-12}", VERDICT_AGAIN, VERDICT_OFTEN, 10000},
    {OK, true, 200, "{\"ret\":-1}", VERDICT_AGAIN, VERDICT_REFUSED, 0},
    {OK, true, 200, "{\"ret\":true}", VERDICT_AGAIN, VERDICT_REFUSED, 0},
    {OK, true, 200, "{\"ret\":0.5}", VERDICT_AGAIN, VERDICT_REFUSED, 0},
};

static void meanings(void **state)
{
    (void)state;
    struct outbound message = {.to = STR("u"), .client_id = STR("c"), .text = STR("t")};
    for (size_t i = 0; i < COUNT(answers); i++) {
        struct channel_reply reply = {.e = answers[i].e,
                                      .sent = answers[i].sent,
                                      .status = answers[i].status,
                                      .body = str_c(answers[i].body),
                                      .reason = "it broke"};
        for (int sends = 0; sends < 2; sends++) {
            weixin_stage_again(&stage);
            stage.errand.message = &message;
            enum errand_verdict expected = sends ? answers[i].send : answers[i].poll;
            assert_true(weixin_step(&stage, sends ? SEND : POLL, NULL));
            assert_false(weixin_step(&stage, sends ? SEND : POLL, &reply));
            if (stage.errand.verdict != expected)
                fail_msg("row %zu: verdict %d, expected %d (%s)", i, stage.errand.verdict, expected,
                         stage.errand.detail);
            if (sends) assert_int_equal(stage.errand.wait_ms, answers[i].wait_ms);
            assert_int_equal(stage.errand.detail[0] != '\0', expected != VERDICT_DONE);
            assert_int_equal(stage.errand.new_cursor.len, 0);
        }
    }
}

/* The same answer would come again for ever: the operator is told the way out, with a poll alone. */
static void unreadable(void **state)
{
    (void)state;
    static const struct {
        enum err e;
        int status;
        const char *body;
        bool told;
    } rows[] = {
        {ERR_TOO_LARGE, 200, "{", true}, {OK, 200, "", true},
        {OK, 200, "<html>", true},       {OK, 200, "[]", true},
        {OK, 200, "{\"a\"", true},       {ERR_NETWORK, 200, "{", false},
        {OK, 502, "<html>", false},      {OK, 200, "{\"ret\":-1}", false},
    };
    struct outbound message = {.to = STR("u"), .client_id = STR("c"), .text = STR("t")};
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int sends = 0; sends < 2; sends++) {
            struct channel_reply reply = {.e = rows[i].e,
                                          .sent = true,
                                          .status = rows[i].status,
                                          .body = str_c(rows[i].body),
                                          .reason = "it broke"};
            weixin_stage_again(&stage);
            stage.home.name = STR("a-name-as-long-as-one-may-be-123");
            assert_int_equal(stage.home.name.len, CHANNEL_NAME_BYTES_MAX);
            stage.errand.message = &message;
            assert_true(weixin_step(&stage, sends ? SEND : POLL, NULL));
            assert_false(weixin_step(&stage, sends ? SEND : POLL, &reply));
            str advice =
                STR("sign in again: fermata channel login a-name-as-long-as-one-may-be-123");
            if (str_ends(str_c(stage.errand.detail), advice) != (rows[i].told && !sends))
                fail_msg("row %zu: %s", i, stage.errand.detail);
            if (!sends) assert_int_equal(stage.errand.verdict, VERDICT_AGAIN);
        }

    AUTO(buf_done) struct buf b;
    buf_init(&b, SIZE_MAX);
    buf_append(&b, STR("{\"get_updates_buf\":\""));
    for (int i = 0; i <= CHANNEL_CURSOR_BYTES_MAX; i++) buf_char(&b, 'a');
    buf_append(&b, STR("\"}"));
    weixin_stage_again(&stage);
    weixin_walk(&stage, POLL, arena_cstr(&stage.arena, buf_str(&b)));
    assert_int_equal(stage.errand.verdict, VERDICT_AGAIN);
    assert_true(str_find(str_c(stage.errand.detail), STR("sign in again")) >= 0);
}

/* What the platform says is one line, short, and whole characters. */
static void details(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 10000);
    buf_append(&b, STR("{\"ret\":-1,\"errmsg\":\"a\\n\\u0000"));
    for (int i = 0; i < 200; i++) buf_append(&b, STR("汉"));
    buf_append(&b, STR("\"}"));
    weixin_walk(&stage, POLL, arena_cstr(&stage.arena, buf_str(&b)));
    buf_done(&b);
    str detail = str_c(stage.errand.detail);
    assert_true(utf8_valid(detail));
    assert_true(str_starts(detail, STR("WeChat refuses: code -1, a 汉")));
    assert_int_equal(str_find_char(detail, '\n'), -1);

    static const char *const secrets[] = {"bad tok", "bad ctx", "see https://a.org/?b=c"};
    struct outbound message = {
        .to = STR("u"), .client_id = STR("c"), .reply_token = STR("ctx"), .text = STR("t")};
    for (size_t i = 0; i < COUNT(secrets); i++) {
        weixin_stage_again(&stage);
        stage.errand.message = &message;
        str json = arena_printf(&stage.arena, "{\"ret\":-1,\"errmsg\":\"%s\"}", secrets[i]);
        weixin_walk(&stage, SEND, arena_cstr(&stage.arena, json));
        assert_string_equal(stage.errand.detail, "WeChat refuses: code -1");
    }
}

/* ---- sending ---- */

static void sends_text(void **state)
{
    (void)state;
    struct outbound message = {.to = STR("u@im.wechat"),
                               .client_id = STR("out-1"),
                               .reply_token = STR("ctx"),
                               .text = STR("a\0\"汉\n")};
    stage.errand.message = &message;
    assert_true(weixin_step(&stage, SEND, NULL));
    assert_str(stage.request.url, STR("https://ilinkai.weixin.qq.com/ilink/bot/sendmessage"));
    assert_int_equal(stage.request.timeout_ms, 15000);
    assert_str(weixin_sent(&stage, "msg"),
               STR("{\"from_user_id\":\"\",\"to_user_id\":\"u@im.wechat\",\"client_id\":\"out-1\","
                   "\"message_type\":2,\"message_state\":2,\"item_list\":[{\"type\":1,"
                   "\"text_item\":{\"text\":\"a\\u0000\\\"汉\\n\"}}],\"context_token\":\"ctx\"}"));
    assert_str(weixin_sent(&stage, "base_info.channel_version"), STR("\"2.4.9\""));
    assert_false(weixin_step_json(&stage, SEND, "{\"message_id\":7448678501208393003}"));
    assert_int_equal(stage.errand.verdict, VERDICT_DONE);
    assert_str(stage.errand.server_id, STR("7448678501208393003"));

    weixin_stage_again(&stage);
    message.reply_token = STR_EMPTY;
    stage.errand.message = &message;
    assert_true(weixin_step(&stage, SEND, NULL));
    assert_str(weixin_sent(&stage, "msg.context_token"), STR_EMPTY);
}

static void too_long(void **state)
{
    (void)state;
    size_t len = WEIXIN_BODY_BYTES_MAX;
    char *text = arena_alloc(&stage.arena, len);
    memset(text, 'a', len);
    struct outbound message = {.to = STR("u"), .client_id = STR("c"), .text = {text, len}};
    stage.errand.message = &message;
    assert_false(weixin_step(&stage, SEND, NULL));
    assert_int_equal(stage.errand.verdict, VERDICT_REFUSED);
}

/* ---- typing ---- */

static void shows_typing(void **state)
{
    (void)state;
    for (int stop = 0; stop < 2; stop++) {
        weixin_stage_again(&stage);
        stage.errand.peer = STR("u@im.wechat");
        stage.errand.reply_token = STR("ctx");
        stage.errand.stop = stop;
        assert_true(weixin_step(&stage, TYPING, NULL));
        assert_true(str_ends(stage.request.url, STR("/ilink/bot/getconfig")));
        assert_str(weixin_sent(&stage, "ilink_user_id"), STR("\"u@im.wechat\""));
        assert_str(weixin_sent(&stage, "context_token"), STR("\"ctx\""));
        assert_true(weixin_step_json(&stage, TYPING, "{\"ret\":0,\"typing_ticket\":\"dGljaw==\"}"));
        assert_true(str_ends(stage.request.url, STR("/ilink/bot/sendtyping")));
        assert_str(weixin_sent(&stage, "typing_ticket"), STR("\"dGljaw==\""));
        assert_str(weixin_sent(&stage, "status"), stop ? STR("2") : STR("1"));
        assert_false(weixin_step_json(&stage, TYPING, "{}"));
        assert_int_equal(stage.errand.verdict, VERDICT_DONE);
    }
    weixin_stage_again(&stage);
    weixin_walk(&stage, TYPING, "{\"ret\":0}");
    assert_int_equal(stage.errand.verdict, VERDICT_REFUSED);
}

static void traits(void **state)
{
    (void)state;
    const struct channel_traits *t = &channel_weixin.traits;
    assert_ptr_equal(channel_kind(STR("weixin")), &channel_weixin);
    assert_int_equal(t->chars_max, 3800);
    assert_int_equal(t->bytes_max, 12288);
    assert_int_equal(t->sends_max, 10);
    assert_int_equal(t->sends_kept, 2);
    assert_int_equal(t->window_ms, 86400000);
    assert_int_equal(t->buttons_max, 0);
    assert_true(t->polls && t->logs_in && t->typing && t->files && !t->dedups);
}

int test_weixin(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(headers, setup, teardown),
        cmocka_unit_test_setup_teardown(uins, setup, teardown),
        cmocka_unit_test_setup_teardown(accounts, setup, teardown),
        cmocka_unit_test_setup_teardown(hints, setup, teardown),
        cmocka_unit_test_setup_teardown(a_message, setup, teardown),
        cmocka_unit_test_setup_teardown(ids, setup, teardown),
        cmocka_unit_test_setup_teardown(groups, setup, teardown),
        cmocka_unit_test_setup_teardown(not_messages, setup, teardown),
        cmocka_unit_test_setup_teardown(items, setup, teardown),
        cmocka_unit_test_setup_teardown(too_much, setup, teardown),
        cmocka_unit_test_setup_teardown(broken_text, setup, teardown),
        cmocka_unit_test_setup_teardown(meanings, setup, teardown),
        cmocka_unit_test_setup_teardown(unreadable, setup, teardown),
        cmocka_unit_test_setup_teardown(details, setup, teardown),
        cmocka_unit_test_setup_teardown(sends_text, setup, teardown),
        cmocka_unit_test_setup_teardown(too_long, setup, teardown),
        cmocka_unit_test_setup_teardown(shows_typing, setup, teardown),
        cmocka_unit_test_setup_teardown(traits, setup, teardown),
    };
    return cmocka_run_group_tests_name("channel/weixin", tests, NULL, NULL);
}
