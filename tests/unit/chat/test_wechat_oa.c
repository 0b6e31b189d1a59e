/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "chat/platform/wechat_crypt.h"
#include "chat/wechat_kit.h"
#include "check.h"

enum { NOW_S = 1714037059 };
static const msec NOW = (msec)NOW_S * 1000;

#define BASE   "https://api.example"
#define OPENID "oABC-123_x"
#define TEXT_XML                                                                               \
    "<xml><ToUserName><![CDATA[gh_1]]></ToUserName><FromUserName><![CDATA[" OPENID             \
    "]]></FromUserName><CreateTime>1714037050</CreateTime><MsgType><![CDATA[text]]></MsgType>" \
    "<Content><![CDATA[ 你好 ]]></Content><MsgId>23849274012345678901</MsgId></xml>"

static struct channel_home home_of(bool safe)
{
    return (struct channel_home){.name = STR("oa"),
                                 .base_url = STR(BASE),
                                 .token = STR(KIT_TOKEN),
                                 .app_id = STR(KIT_APP_ID),
                                 .secret = STR("s3cret"),
                                 .aes_key = safe ? STR(KIT_AES_KEY) : STR_EMPTY,
                                 .account = STR("{}")};
}

/* ---- signatures and safe mode ---- */

static void signatures(void **state)
{
    (void)state;
    static const struct {
        str timestamp, nonce, encrypted;
        const char *signature;
    } rows[] = {
        {STR("1714037059"), STR("486452656"), STR(""), "899cf89e464efb63f54ddac96b0a0a235f53aa78"},
        {STR("1714036504"), STR("1514711492"), STR(""), "f464b24fc39322e44b38aa78f5edd27bd1441696"},
        {STR("1714037059"), STR("486452656"),
         STR("jn1L23DB+6ELqJ+6bruv23oF+0kQ6whaYewHWsCpUtmmT3Qdpv0JStZgu+Nf6xrcpK2KkTc5C7bfPQS0Tvlw"
             "tKmlw3+uRe4RBpOqboUNENJFDKRaRb9yttGy6SsjdnXd"),
         "9a509af5364287c739cb998c809b30e2e2305b2a"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        str good = str_c(rows[i].signature), token = STR(KIT_TOKEN);
        char wrong[41];
        memcpy(wrong, good.p, 41);
        wrong[39] ^= 1;
        assert_true(
            wechat_signed(token, rows[i].timestamp, rows[i].nonce, rows[i].encrypted, good));
        assert_false(wechat_signed(token, rows[i].timestamp, rows[i].nonce, rows[i].encrypted,
                                   str_c(wrong)));
        assert_false(
            wechat_signed(token, rows[i].timestamp, rows[i].nonce, rows[i].encrypted, STR_EMPTY));
        assert_false(
            wechat_signed(STR("AAAAB"), rows[i].timestamp, rows[i].nonce, rows[i].encrypted, good));
    }
}

static void safe_mode(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    static const str vector =
        STR("jn1L23DB+6ELqJ+6bruv23oF+0kQ6whaYewHWsCpUtmmT3Qdpv0JStZgu+Nf6xrcpK2KkTc5C7bfPQS0Tvlw"
            "tKmlw3+uRe4RBpOqboUNENJFDKRaRb9yttGy6SsjdnXd");
    str key = STR(KIT_AES_KEY), id = STR(KIT_APP_ID), message = STR_EMPTY;
    str plain = STR("<xml><Content><![CDATA[2]]></Content></xml>");
    assert_str(wechat_kit_encrypt(&arena, STR("aaaabbbbccccdddd"), plain, id), vector);
    assert_int_equal(wechat_decrypt(&arena, key, id, vector, &message), OK);
    assert_str(message, plain);

    /* every length of padding, and a message of no bytes */
    for (size_t len = 0; len < 70; len++) {
        str some = arena_str(&arena, (str){TEXT_XML, len});
        str sealed = wechat_kit_encrypt(&arena, STR("0123456789abcdef"), some, id);
        assert_int_equal(wechat_decrypt(&arena, key, id, sealed, &message), OK);
        assert_str(message, some);
    }
    str other = wechat_kit_encrypt(&arena, STR("0123456789abcdef"), plain, STR("wx9"));
    assert_int_equal(wechat_decrypt(&arena, key, id, other, &message), ERR_DAMAGED);
    assert_int_equal(wechat_decrypt(&arena, key, id, STR("jn1L"), &message), ERR_DAMAGED);
    assert_int_equal(wechat_decrypt(&arena, key, id, STR(""), &message), ERR_DAMAGED);
    assert_int_equal(wechat_decrypt(&arena, key, id, STR("!!!!"), &message), ERR_DAMAGED);
    assert_int_equal(wechat_decrypt(&arena, STR("short"), id, vector, &message), ERR_CONFIG);
    str bad_key = STR("abcdefghijklmnopqrstuvwxyz0123456789ABCDEF*");
    assert_int_equal(wechat_decrypt(&arena, bad_key, id, vector, &message), ERR_CONFIG);
    str other_key = STR("bbcdefghijklmnopqrstuvwxyz0123456789ABCDEFG");
    assert_int_equal(wechat_decrypt(&arena, other_key, id, vector, &message), ERR_DAMAGED);
}

/* Plaintexts that are none. */
static void damaged_plaintexts(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    static const struct {
        size_t len;       /* of the whole */
        uint32_t message; /* as its length says */
        unsigned char pad;
        enum err e;
    } rows[] = {
        {64, 16, 10, OK},          /* 16 + 4 + 16 + app id 18 + 10 */
        {64, 17, 10, ERR_DAMAGED}, /* the app id begins too late */
        {64, 35, 10, ERR_DAMAGED}, /* beyond the end */
        {64, UINT32_MAX, 10, ERR_DAMAGED},
        {64, 16, 0, ERR_DAMAGED},  /* no padding */
        {64, 16, 33, ERR_DAMAGED}, /* too much */
        {64, 16, 11, ERR_DAMAGED}, /* not that many of them */
        {16, 0, 16, ERR_DAMAGED},  /* nothing but padding */
        {32, 0, 13, ERR_DAMAGED},  /* no room for the length */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char plain[64] = {0};
        for (int k = 0; k < 4; k++) plain[16 + k] = (char)(rows[i].message >> (24 - 8 * k));
        memcpy(plain + 36, KIT_APP_ID, 18);
        size_t pad = rows[i].pad == 16 || rows[i].pad == 13 ? rows[i].pad : 10;
        memset(plain + rows[i].len - pad, rows[i].pad, pad);
        str message = STR_EMPTY, sealed = wechat_kit_seal(&arena, (str){plain, rows[i].len});
        enum err e = wechat_decrypt(&arena, STR(KIT_AES_KEY), STR(KIT_APP_ID), sealed, &message);
        if (e != rows[i].e) fail_msg("row %zu: got %s", i, err_code(e));
    }
}

/* ---- calls ---- */

static struct hook_answer hook(struct arena *arena, const struct channel_home *home,
                               const struct hook_call *call)
{
    struct hook_answer answer = {0};
    channel_wechat_oa.hook(home, arena, call, &answer);
    return answer;
}

static struct hook_answer get(struct arena *arena, bool safe, const char *query, msec now)
{
    struct channel_home home = home_of(safe);
    return hook(arena, &home, &(struct hook_call){.get = true, .query = str_c(query), .now = now});
}

#define GOOD_QUERY \
    "signature=899cf89e464efb63f54ddac96b0a0a235f53aa78&timestamp=1714037059&nonce=486452656"

static void echo(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        msec late_s;
        int status;
        const char *body;
    } rows[] = {
        {GOOD_QUERY "&echostr=4375120948345356249", 0, 200, "4375120948345356249"},
        {"echostr=a%2Bb&" GOOD_QUERY, 0, 200, "a+b"},
        {GOOD_QUERY "&echostr=1", 80000000, 200, "1"}, /* of any time: it tells nothing */
        {GOOD_QUERY "&echostr=1", -80000000, 200, "1"},
        {GOOD_QUERY, 0, 400, ""},
        {"signature=899cf89e464efb63f54ddac96b0a0a235f53aa79&timestamp=1714037059&nonce=486452656"
         "&echostr=1",
         0, 403, ""},
        {"timestamp=1714037059&nonce=486452656&echostr=1", 0, 403, ""},
        {"", 0, 403, ""},
        {"signature=%zz&echostr=1", 0, 403, ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int safe = 0; safe < 2; safe++) {
            AUTO(arena_done) struct arena arena;
            arena_init(&arena);
            struct hook_answer answer =
                get(&arena, safe, rows[i].query, NOW + rows[i].late_s * 1000);
            if (answer.status != rows[i].status)
                fail_msg("row %zu: %d %s", i, answer.status, answer.detail);
            assert_str(answer.body, str_c(rows[i].body));
            assert_string_equal(answer.type, "text/plain");
            assert_int_equal(answer.inbound_count, 0);
            assert_int_equal(answer.detail[0] != 0, answer.status != 200);
        }
}

static void no_token_no_calls(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct channel_home home = home_of(false);
    struct hook_call call;
    home.token = STR_EMPTY;
    wechat_kit_post(&arena, STR(TEXT_XML), false, NOW, &call);
    assert_int_equal(hook(&arena, &home, &call).status, 403);
}

#define HEAD \
    "<xml><FromUserName>" OPENID "</FromUserName><CreateTime>1714037050</CreateTime><MsgType>"
#define MESSAGE(type, more) HEAD type "</MsgType><MsgId>7</MsgId>" more "</xml>"
#define EVENT(event, more)  HEAD "event</MsgType><Event>" event "</Event>" more "</xml>"
#define EVENT_ID(event)     OPENID ":1714037050:" event

static void messages(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        const char *id; /* NULL: nothing comes in */
        const char *text, *button, *label, *file, *ref;
        bool follow, event;
    } rows[] = {
        {TEXT_XML, "23849274012345678901", .text = "你好"},
        {MESSAGE("text", "<Content>周一</Content><bizmsgmenuid>c:q1:c1</bizmsgmenuid>"), "7",
         .text = NULL, .button = "c:q1:c1", .label = "周一", .event = true},
        {MESSAGE("text", "<Content>周一</Content><bizmsgmenuid>0</bizmsgmenuid>"), "7",
         .text = "周一", .event = true},
        {MESSAGE("text", "<Content>x</Content><bizmsgmenuid>101</bizmsgmenuid>"), "7", .text = "x",
         .event = true},
        {MESSAGE("text", "<Content> </Content>"), NULL, .text = NULL},
        {MESSAGE("image", "<PicUrl>http://x</PicUrl><MediaId>m-1_a</MediaId>"), "7",
         .file = "image.jpg", .ref = "{\"mediaId\":\"m-1_a\"}"},
        {MESSAGE("image", ""), NULL, .text = NULL},
        {MESSAGE("voice", "<MediaId>v1</MediaId><Format>amr</Format>"), "7", .file = "voice.amr",
         .ref = "{\"mediaId\":\"v1\"}"},
        {MESSAGE("voice", "<MediaId>v1</MediaId><Format>amr</Format><Recognition>"
                          "明天开会。</Recognition>"),
         "7", .text = "明天开会。"},
        {MESSAGE("shortvideo", "<MediaId>s1</MediaId>"), "7", .file = "video.mp4",
         .ref = "{\"mediaId\":\"s1\"}"},
        {MESSAGE("location", "<Location_X>23.1</Location_X><Location_Y>113.3</Location_Y>"
                             "<Scale>20</Scale><Label>广州塔</Label>"),
         "7", .text = "📍 23.1, 113.3\n广州塔"},
        {MESSAGE("link", "<Title>T</Title><Description></Description><Url>https://a.b/</Url>"), "7",
         .text = "T\nhttps://a.b/"},
        {MESSAGE("hologram", "<Content>x</Content>"), NULL, .text = NULL},
        {EVENT("subscribe", "<EventKey>qrscene_1</EventKey>"), EVENT_ID("subscribe"),
         .follow = true, .event = true},
        {EVENT("SCAN", "<EventKey>1</EventKey>"), EVENT_ID("SCAN"), .follow = true, .event = true},
        {EVENT("CLICK", "<EventKey>/new</EventKey>"), EVENT_ID("CLICK"), .text = "/new",
         .event = true},
        {EVENT("scancode_waitmsg", "<EventKey>k</EventKey><ScanCodeInfo><ScanType>qrcode</ScanType>"
                                   "<ScanResult>42</ScanResult></ScanCodeInfo>"),
         EVENT_ID("scancode_waitmsg"), .text = "42", .event = true},
        {EVENT("unsubscribe", ""), NULL, .text = NULL},
        {EVENT("VIEW", "<EventKey>https://a</EventKey>"), NULL, .text = NULL},
        {EVENT("LOCATION", "<Latitude>23</Latitude>"), NULL, .text = NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int safe = 0; safe < 2; safe++) {
            AUTO(arena_done) struct arena arena;
            struct channel_home home = home_of(safe);
            struct hook_call call;
            arena_init(&arena);
            wechat_kit_post(&arena, str_c(rows[i].body), safe, NOW, &call);
            struct hook_answer answer = hook(&arena, &home, &call);
            if (answer.status != 200) fail_msg("row %zu: %s", i, answer.detail);
            assert_str(answer.body, STR("success"));
            assert_int_equal(answer.inbound_count, rows[i].id ? 1 : 0);
            if (!rows[i].id) continue;
            const struct inbound *in = answer.inbounds;
            assert_str(in->id, str_c(rows[i].id));
            assert_str(in->sender, STR(OPENID));
            assert_str(in->text, str_c(rows[i].text));
            assert_str(in->button, str_c(rows[i].button));
            assert_str(in->label, str_c(rows[i].label));
            assert_int_equal(in->at, (msec)1714037050 * 1000);
            assert_int_equal(in->follow, rows[i].follow);
            assert_int_equal(in->allowance, rows[i].event ? 3 : 0);
            assert_int_equal(in->window_ms, rows[i].event ? 60000 : 0);
            assert_int_equal(in->file_count, rows[i].file ? 1 : 0);
            if (rows[i].file) assert_str(in->files[0].name, str_c(rows[i].file));
            if (rows[i].file) assert_str(in->files[0].ref, str_c(rows[i].ref));
            assert_true(inbound_json(&arena, in).len > 0); /* it can be kept */
        }
}

static void bad_messages(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int plain, safe; /* status */
    } rows[] = {
        {"", 400, 400},
        {"{\"MsgType\":\"text\"}", 400, 400},
        {"<!DOCTYPE xml><xml/>", 400, 400},
        {"<xml/>", 400, 400},
        {"<xml><FromUserName>a b</FromUserName><MsgId>1</MsgId></xml>", 400, 400},
        {"<xml><FromUserName>a</FromUserName><MsgId>1 2</MsgId></xml>", 400, 400},
        {"<xml><ToUserName>gh_1</ToUserName><Encrypt>abcd</Encrypt></xml>", 403, 400},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int safe = 0; safe < 2; safe++) {
            AUTO(arena_done) struct arena arena;
            struct channel_home home = home_of(safe);
            struct hook_call call;
            arena_init(&arena);
            wechat_kit_post(&arena, str_c(rows[i].body), safe, NOW, &call);
            struct hook_answer answer = hook(&arena, &home, &call);
            int status = safe ? rows[i].safe : rows[i].plain;
            if (answer.status != status)
                fail_msg("row %zu: %d %s", i, answer.status, answer.detail);
            assert_int_equal(answer.inbound_count, 0);
            assert_true(answer.detail[0]);
        }
}

static void long_texts(void **state)
{
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        AUTO(arena_done) struct arena arena;
        AUTO(buf_done) struct buf body;
        struct channel_home home = home_of(false);
        struct hook_call call;
        arena_init(&arena);
        buf_init(&body, CHANNEL_HOOK_BYTES_MAX);
        buf_append(&body, STR(HEAD "text</MsgType><MsgId>7</MsgId><Content>"));
        for (size_t i = 0; i < CHANNEL_TEXT_BYTES_MAX + more; i++) buf_char(&body, 'a');
        buf_append(&body, STR("</Content></xml>"));
        wechat_kit_post(&arena, buf_str(&body), false, NOW, &call);
        assert_int_equal(hook(&arena, &home, &call).status, more ? 400 : 200);
    }
}

/* Nothing that is not signed, or not as it should be, comes in. */
static void forgeries(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct channel_home plain = home_of(false), safe = home_of(true);
    struct hook_call call, other;

    wechat_kit_post(&arena, STR(TEXT_XML), false, NOW, &call);
    assert_int_equal(hook(&arena, &plain, &call).inbound_count, 1);
    assert_int_equal(hook(&arena, &safe, &call).status, 403); /* not encrypted */
    call.now = NOW + 300 * 1000;
    assert_int_equal(hook(&arena, &plain, &call).status, 200);
    call.now = NOW + 301 * 1000;
    assert_int_equal(hook(&arena, &plain, &call).status, 403);
    call.now = NOW - 301 * 1000;
    assert_int_equal(hook(&arena, &plain, &call).status, 403);
    call.now = NOW;
    plain.token = STR("AAAAB");
    assert_int_equal(hook(&arena, &plain, &call).status, 403);

    wechat_kit_post(&arena, STR(TEXT_XML), true, NOW, &call);
    assert_int_equal(hook(&arena, &safe, &call).inbound_count, 1);
    wechat_kit_post(&arena, STR(MESSAGE("text", "<Content>x</Content>")), true, NOW, &other);
    other.query = call.query; /* the signature of another message */
    assert_int_equal(hook(&arena, &safe, &other).status, 403);
    other = call;
    other.query.len -= 1; /* of msg_signature */
    assert_int_equal(hook(&arena, &safe, &other).status, 403);
    other = call; /* a plain message with the signatures of an encrypted one */
    other.body = STR(TEXT_XML);
    assert_int_equal(hook(&arena, &safe, &other).status, 403);
    other.body = STR("<xml><MsgType>text</MsgType><Encrypt></Encrypt></xml>");
    assert_int_equal(hook(&arena, &safe, &other).status, 403);
    other.body = STR("no XML");
    assert_int_equal(hook(&arena, &safe, &other).status, 403);
    safe.app_id = STR("wx9");
    assert_int_equal(hook(&arena, &safe, &call).status, 403);
    safe = home_of(true);
    safe.aes_key = STR("short");
    assert_int_equal(hook(&arena, &safe, &call).status, 403);
}

/* Both forms in one body, as in compatible mode: without a key the plain one is read. */
static void compatible_mode(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct channel_home plain = home_of(false);
    struct hook_call call;
    wechat_kit_post(&arena, STR(TEXT_XML), true, NOW, &call);
    call.body = STR(MESSAGE("text", "<Content>x</Content><Encrypt>abcd</Encrypt>"));
    struct hook_answer answer = hook(&arena, &plain, &call);
    assert_int_equal(answer.inbound_count, 1);
    assert_str(answer.inbounds->text, STR("x"));
}

/* ---- errands ---- */

struct exchange_row {
    const char *path, *body; /* expected of the request; body NULL: a GET */
    enum err e;              /* of the reply */
    bool sent;
    int status; /* 0: 200 unless e */
    const char *reply, *type;
};

#define TOKEN_PATH "/cgi-bin/stable_token"
#define TOKEN_BODY                                                  \
    "{\"grant_type\":\"client_credential\",\"appid\":\"" KIT_APP_ID \
    "\",\"secret\":\"s3cret\",\"force_refresh\":false}"
#define SEND_PATH(token) "/cgi-bin/message/custom/send?access_token=" token
#define TEXT_BODY        "{\"touser\":\"u1\",\"msgtype\":\"text\",\"text\":{\"content\":\"hi\"}}"
#define MENU_BODY                                                                               \
    "{\"touser\":\"u1\",\"msgtype\":\"msgmenu\",\"msgmenu\":{\"head_content\":\"hi\",\"list\":" \
    "[{\"id\":\"c:q:c1\",\"content\":\"周一\"},{\"id\":\"c:q:c2\",\"content\":\"周二\"}],"  \
    "\"tail_content\":\"\"}}"
#define BUTTONS \
    "[{\"data\":\"c:q:c1\",\"label\":\"周一\"},{\"data\":\"c:q:c2\",\"label\":\"周二\"}]"
#define TOKEN_T2       "{\"access_token\":\"T2\",\"expires_in\":7200}"
#define DONE           "{\"errcode\":0,\"errmsg\":\"ok\"}"
#define ERRCODE(code)  "{\"errcode\":" code ",\"errmsg\":\"why rid: 1\"}"
#define ACCOUNT(token) "{\"accessToken\":\"" token "\",\"expiresAt\":1714044259000}"
#define ACCOUNT_T1     ACCOUNT("T1")
#define ACCOUNT_T2     ACCOUNT("T2")
#define MENU_T1        "{\"accessToken\":\"T1\",\"expiresAt\":1714044259000,\"noMenu\":true}"

static void run(errand_fn *step, const struct channel_home *home, struct errand *errand,
                const struct exchange_row *rows, size_t count)
{
    struct channel_request request = {0};
    errand->now = NOW;
    bool more = step(home, errand, NULL, &request);
    for (size_t i = 0; i < count; i++) {
        if (!more) fail_msg("step %zu: no request, %s", i, errand->detail);
        str base = STR(BASE);
        assert_true(str_starts(request.url, base));
        assert_str(str_drop(request.url, base.len), str_c(rows[i].path));
        assert_string_equal(request.method, rows[i].body ? "POST" : "GET");
        assert_str(request.body, str_c(rows[i].body));
        assert_true(request.timeout_ms > 0 && request.bytes_max > 0);
        struct channel_reply reply = {.e = rows[i].e,
                                      .sent = rows[i].sent || !rows[i].e,
                                      .status = rows[i].status ? rows[i].status
                                                : rows[i].e    ? 0
                                                               : 200,
                                      .body = str_c(rows[i].reply),
                                      .wanted = str_c(rows[i].type),
                                      .reason = rows[i].e ? "the line is dead" : ""};
        request = (struct channel_request){0};
        more = step(home, errand, &reply, &request);
    }
    assert_false(more);
    assert_true(utf8_valid(str_c(errand->detail)));
    assert_int_equal(errand->detail[0] != 0, errand->verdict != VERDICT_DONE);
    assert_true(str_find(str_c(errand->detail), STR("s3cret")) < 0);
}

static void sends(void **state)
{
    (void)state;
    static const struct {
        const char *account, *buttons;
        struct exchange_row steps[4];
        enum errand_verdict verdict;
        msec wait_ms;
        const char *new_account;
    } rows[] = {
        /* the token: known, not known, about to end */
        {ACCOUNT_T1, NULL, {{SEND_PATH("T1"), TEXT_BODY, .reply = DONE}}, VERDICT_DONE, 0, NULL},
        {"{}",
         NULL,
         {{TOKEN_PATH, TOKEN_BODY, .reply = TOKEN_T2}, {SEND_PATH("T2"), TEXT_BODY, .reply = DONE}},
         VERDICT_DONE,
         0,
         ACCOUNT_T2},
        {"",
         NULL,
         {{TOKEN_PATH, TOKEN_BODY, .e = ERR_TIMEOUT, .sent = true}},
         VERDICT_AGAIN,
         0,
         NULL},
        {"{\"accessToken\":\"T1\",\"expiresAt\":1714037359000}",
         NULL,
         {{TOKEN_PATH, TOKEN_BODY, .reply = TOKEN_T2}, {SEND_PATH("T2"), TEXT_BODY, .reply = DONE}},
         VERDICT_DONE,
         0,
         ACCOUNT_T2},
        {"{\"accessToken\":\"T1\",\"expiresAt\":1714037359001}",
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = DONE}},
         VERDICT_DONE,
         0,
         NULL},
        {"{\"accessToken\":\"T 1/\",\"expiresAt\":1714044259000}",
         NULL,
         {{SEND_PATH("T%201%2F"), TEXT_BODY, .reply = DONE}},
         VERDICT_DONE,
         0,
         NULL},
        /* not good any more: once anew */
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = ERRCODE("42001")},
          {TOKEN_PATH, TOKEN_BODY, .reply = TOKEN_T2},
          {SEND_PATH("T2"), TEXT_BODY, .reply = DONE}},
         VERDICT_DONE,
         0,
         ACCOUNT_T2},
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = ERRCODE("40001")},
          {TOKEN_PATH, TOKEN_BODY, .reply = TOKEN_T2},
          {SEND_PATH("T2"), TEXT_BODY, .reply = ERRCODE("40014")}},
         VERDICT_AGAIN,
         60 * 1000,
         "{}"},
        {"{}",
         NULL,
         {{TOKEN_PATH, TOKEN_BODY, .reply = TOKEN_T2},
          {SEND_PATH("T2"), TEXT_BODY, .reply = ERRCODE("40001")}},
         VERDICT_AGAIN,
         60 * 1000,
         "{}"},
        /* none is given */
        {"{}",
         NULL,
         {{TOKEN_PATH, TOKEN_BODY, .reply = ERRCODE("40164")}},
         VERDICT_AGAIN,
         300000,
         NULL},
        {"{}",
         NULL,
         {{TOKEN_PATH, TOKEN_BODY, .reply = ERRCODE("40002")}},
         VERDICT_AGAIN,
         300000,
         NULL},
        {"{}", NULL, {{TOKEN_PATH, TOKEN_BODY, .reply = "{}"}}, VERDICT_AGAIN, 60000, NULL},
        {"{}",
         NULL,
         {{TOKEN_PATH, TOKEN_BODY, .reply = "{\"access_token\":\"T\",\"expires_in\":86401}"}},
         VERDICT_AGAIN,
         60000,
         NULL},
        {"{}",
         NULL,
         {{TOKEN_PATH, TOKEN_BODY, .status = 502, .reply = "<html>"}},
         VERDICT_AGAIN,
         0,
         NULL},
        /* refusals */
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = ERRCODE("45015")}},
         VERDICT_SPENT,
         0,
         NULL},
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = ERRCODE("45047")}},
         VERDICT_SPENT,
         0,
         NULL},
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = ERRCODE("45002")}},
         VERDICT_REFUSED,
         0,
         NULL},
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = ERRCODE("87014")}},
         VERDICT_REFUSED,
         0,
         NULL},
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = ERRCODE("40003")}},
         VERDICT_REFUSED,
         0,
         NULL},
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = ERRCODE("43004")}},
         VERDICT_SPENT,
         0,
         NULL},
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = ERRCODE("43019")}},
         VERDICT_REFUSED,
         0,
         NULL},
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = ERRCODE("44004")}},
         VERDICT_REFUSED,
         0,
         NULL},
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = ERRCODE("99999")}},
         VERDICT_AGAIN,
         300000,
         NULL},
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = ERRCODE("-99")}},
         VERDICT_AGAIN,
         300000,
         NULL},
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = ERRCODE("45009")}},
         VERDICT_AGAIN,
         60 * 60 * 1000,
         NULL},
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = ERRCODE("48001")}},
         VERDICT_AGAIN,
         300000,
         NULL},
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = ERRCODE("-1")}},
         VERDICT_AGAIN,
         0,
         NULL},
        /* no answer */
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .e = ERR_NETWORK}},
         VERDICT_AGAIN,
         0,
         NULL},
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .e = ERR_TIMEOUT, .sent = true}},
         VERDICT_UNKNOWN,
         0,
         NULL},
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = "<html>"}},
         VERDICT_UNKNOWN,
         0,
         NULL},
        {ACCOUNT_T1,
         NULL,
         {{SEND_PATH("T1"), TEXT_BODY, .reply = "{\"errcode\":\"0\"}"}},
         VERDICT_UNKNOWN,
         0,
         NULL},
        {ACCOUNT_T1, NULL, {{SEND_PATH("T1"), TEXT_BODY, .status = 502}}, VERDICT_UNKNOWN, 0, NULL},
        {ACCOUNT_T1, NULL, {{SEND_PATH("T1"), TEXT_BODY, .status = 503}}, VERDICT_AGAIN, 0, NULL},
        {ACCOUNT_T1, NULL, {{SEND_PATH("T1"), TEXT_BODY, .status = 404}}, VERDICT_AGAIN, 0, NULL},
        /* menus */
        {ACCOUNT_T1, BUTTONS, {{SEND_PATH("T1"), MENU_BODY, .reply = DONE}}, VERDICT_DONE, 0, NULL},
        {ACCOUNT_T1,
         BUTTONS,
         {{SEND_PATH("T1"), MENU_BODY, .reply = ERRCODE("40200")},
          {SEND_PATH("T1"), TEXT_BODY, .reply = DONE}},
         VERDICT_DONE,
         0,
         MENU_T1},
        {ACCOUNT_T1,
         BUTTONS,
         {{SEND_PATH("T1"), MENU_BODY, .reply = ERRCODE("40200")},
          {SEND_PATH("T1"), TEXT_BODY, .reply = ERRCODE("40200")}},
         VERDICT_AGAIN,
         300000,
         MENU_T1},
        {MENU_T1, BUTTONS, {{SEND_PATH("T1"), TEXT_BODY, .reply = DONE}}, VERDICT_DONE, 0, NULL},
        {"{\"noMenu\":true}",
         BUTTONS,
         {{TOKEN_PATH, TOKEN_BODY, .reply = "{\"access_token\":\"T1\",\"expires_in\":7200}"},
          {SEND_PATH("T1"), TEXT_BODY, .reply = DONE}},
         VERDICT_DONE,
         0,
         MENU_T1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        struct channel_home home = home_of(false);
        struct outbound message = {
            .to = STR("u1"), .text = STR("hi"), .buttons = str_c(rows[i].buttons)};
        struct errand errand = {.arena = &arena, .message = &message};
        size_t steps = 0;
        arena_init(&arena);
        home.account = str_c(rows[i].account);
        while (steps < COUNT(rows[i].steps) && rows[i].steps[steps].path) steps++;
        run(channel_wechat_oa.send, &home, &errand, rows[i].steps, steps);
        if (errand.verdict != rows[i].verdict)
            fail_msg("row %zu: verdict %d, %s", i, (int)errand.verdict, errand.detail);
        assert_int_equal(errand.wait_ms, rows[i].wait_ms);
        assert_str(errand.new_account, str_c(rows[i].new_account));
    }
}

/* Raw UTF-8, and not one \u. */
static void texts(void **state)
{
    (void)state;
    static const struct {
        str text;
        const char *content;
    } rows[] = {
        {STR("你好 😀"), "你好 😀"},
        {STR("a\nb\tc\r\n"), "a\\nb\\tc\\n"},
        {STR("\"q\\"), "\\\"q\\\\"},
        {STR("a\0\x01\x1f"
             "b"),
         "ab"},
        {STR("a\xe2\x80\xa8"
             "b\xe2\x80\xa9"
             "c\xe2\x80\xa6"),
         "a\\nb\\nc…"},
        {STR("\xe2\x80\xa6\xe2\x82\xac"), "…€"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        struct channel_home home = home_of(false);
        struct outbound message = {.to = STR("u1"), .text = rows[i].text};
        struct errand errand = {.arena = &arena, .message = &message, .now = NOW};
        struct channel_request request = {0};
        arena_init(&arena);
        home.account = STR(ACCOUNT_T1);
        assert_true(channel_wechat_oa.send(&home, &errand, NULL, &request));
        str body =
            arena_printf(&arena,
                         "{\"touser\":\"u1\",\"msgtype\":\"text\",\"text\":{\"content\":\"%s\"}}",
                         rows[i].content);
        assert_str(request.body, body);
    }
}

static void nothing_to_send(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        AUTO(arena_done) struct arena arena;
        struct channel_home home = home_of(false);
        arena_init(&arena);
        char *much = arena_alloc(&arena, WECHAT_TEXT_BYTES_MAX + 1);
        memset(much, '\\', WECHAT_TEXT_BYTES_MAX + 1);
        struct outbound message = {
            .to = STR("u1"), .text = i ? (str){much, WECHAT_TEXT_BYTES_MAX + 1} : STR("\x01")};
        struct errand errand = {.arena = &arena, .message = &message, .now = NOW};
        struct channel_request request = {0};
        home.account = STR(ACCOUNT_T1);
        assert_false(channel_wechat_oa.send(&home, &errand, NULL, &request));
        assert_int_equal(errand.verdict, VERDICT_REFUSED);
        message.text.len = WECHAT_TEXT_BYTES_MAX;
        if (i) assert_true(channel_wechat_oa.send(&home, &errand, NULL, &request));
    }
}

static void typing(void **state)
{
    (void)state;
    static const struct {
        bool stop;
        struct exchange_row step;
        enum errand_verdict verdict;
    } rows[] = {
#define TYPING        "/cgi-bin/message/custom/typing?access_token=T1"
#define COMMAND(word) "{\"touser\":\"u1\",\"command\":\"" word "\"}"
        {false, {TYPING, COMMAND("Typing"), .reply = DONE}, VERDICT_DONE},
        {true, {TYPING, COMMAND("CancelTyping"), .reply = DONE}, VERDICT_DONE},
        {false, {TYPING, COMMAND("Typing"), .reply = ERRCODE("45081")}, VERDICT_DONE},
        {false, {TYPING, COMMAND("Typing"), .reply = ERRCODE("48001")}, VERDICT_AGAIN},
        {false, {TYPING, COMMAND("Typing"), .e = ERR_TIMEOUT, .sent = true}, VERDICT_AGAIN},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        struct channel_home home = home_of(false);
        struct errand errand = {.arena = &arena, .peer = STR("u1"), .stop = rows[i].stop};
        arena_init(&arena);
        home.account = STR(ACCOUNT_T1);
        run(channel_wechat_oa.typing, &home, &errand, &rows[i].step, 1);
        assert_int_equal(errand.verdict, rows[i].verdict);
    }
}

static void files(void **state)
{
    (void)state;
    static const struct {
        struct exchange_row steps[3];
        enum errand_verdict verdict;
        const char *bytes;
    } rows[] = {
#define MEDIA(token) "/cgi-bin/media/get?access_token=" token "&media_id=m%201"
        {{{MEDIA("T1"), .reply = "JPEG", .type = "image/jpeg"}}, VERDICT_DONE, "JPEG"},
        {{{MEDIA("T1"), .reply = ERRCODE("42001"), .type = "text/plain"},
          {TOKEN_PATH, TOKEN_BODY, .reply = TOKEN_T2},
          {MEDIA("T2"), .reply = "JPEG", .type = "image/jpeg"}},
         VERDICT_DONE,
         "JPEG"},
        {{{MEDIA("T1"), .reply = ERRCODE("40007"), .type = "application/json; encoding=utf-8"}},
         VERDICT_REFUSED,
         NULL},
        {{{MEDIA("T1"), .reply = "{\"video_url\":\"http://v.example/1\"}", .type = "text/plain"}},
         VERDICT_REFUSED,
         NULL},
        {{{MEDIA("T1"), .reply = "", .type = "image/jpeg"}}, VERDICT_REFUSED, NULL},
        {{{MEDIA("T1"), .e = ERR_TOO_LARGE, .sent = true, .status = 200}}, VERDICT_REFUSED, NULL},
        {{{MEDIA("T1"), .e = ERR_TIMEOUT, .sent = true}}, VERDICT_AGAIN, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        struct channel_home home = home_of(false);
        struct inbound_file file = {.ref = STR("{\"mediaId\":\"m 1\"}")};
        struct errand errand = {.arena = &arena, .file = &file};
        size_t steps = 0;
        arena_init(&arena);
        home.account = STR(ACCOUNT_T1);
        while (steps < COUNT(rows[i].steps) && rows[i].steps[steps].path) steps++;
        run(channel_wechat_oa.fetch, &home, &errand, rows[i].steps, steps);
        assert_int_equal(errand.verdict, rows[i].verdict);
        assert_str(errand.bytes, str_c(rows[i].bytes));
    }
}

static void kind(void **state)
{
    (void)state;
    const struct channel_ops *ops = channel_kind(STR("wechat_oa"));
    assert_ptr_equal(ops, &channel_wechat_oa);
    assert_null(ops->poll);
    assert_null(ops->login_begin);
    assert_false(ops->traits.files); /* else the core would give it some */
}

int test_wechat_oa(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures),
        cmocka_unit_test(safe_mode),
        cmocka_unit_test(damaged_plaintexts),
        cmocka_unit_test(echo),
        cmocka_unit_test(no_token_no_calls),
        cmocka_unit_test(messages),
        cmocka_unit_test(bad_messages),
        cmocka_unit_test(long_texts),
        cmocka_unit_test(forgeries),
        cmocka_unit_test(compatible_mode),
        cmocka_unit_test(sends),
        cmocka_unit_test(texts),
        cmocka_unit_test(nothing_to_send),
        cmocka_unit_test(typing),
        cmocka_unit_test(files),
        cmocka_unit_test(kind),
    };
    return cmocka_run_group_tests_name("wechat_oa", tests, NULL, NULL);
}
