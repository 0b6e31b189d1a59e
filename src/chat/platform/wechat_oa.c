/* SPDX-License-Identifier: Apache-2.0
 *
 * WeChat's Official Account, the kind "wechat_oa": messages out, menus, files in, its access token;
 * pure. WeChat calls us (chat/platform/wechat_hook.c); here is what we ask of it. Every request
 * needs an access token that lives two hours:
 *
 *     begin ─► token known ─────────► call ─► its end
 *        └───► ask for a token ──────► ▲ │
 *                     ▲                │ └─ 40200, a menu: again, as text
 *                     └─ 40001 ... ────┴─ once
 *
 * The account, {"accessToken","expiresAt","noMenu"}, is replaced when something was learned: a new
 * token, or that the account may not send menus. Two errands that learn at the same time are given
 * the same token by the platform.
 *
 * A question with buttons is a menu (msgmenu): tappable lines, of which the id comes back with a tap.
 *
 * Texts are sent without \u escapes, which some clients show as they are: so what JSON cannot hold
 * otherwise is left out.
 *
 * To add a request: a struct purpose and its errand_fn. To add an error: a row in codes[].
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "chat/platform/platform_errand.h"
#include "chat/platform/wechat_hook.h"
#include "ui/text.h"

/* ---- between the steps ---- */

struct oa {
    str token; /* empty: none that is good */
    msec expires;
    bool no_menu;   /* the account may not send them */
    bool renewed;   /* the token, in this errand */
    bool asking;    /* for a token; else the purpose's own call is under way */
    bool sent_menu; /* by the call under way */
};

struct purpose {
    /* Fill in the request; false: it cannot be made, and errand->verdict says why. */
    bool (*ask)(const struct channel_home *home, struct errand *errand, struct oa *oa,
                struct channel_request *request);
    /* The answer has come whole, and the token was good. True: ask once more. */
    bool (*take)(struct errand *errand, struct oa *oa, const struct channel_reply *reply);
    bool harmless; /* done twice, it does no harm */
};

static struct oa *oa_begin(const struct channel_home *home, struct errand *errand)
{
    struct oa *oa = ARENA_NEW(errand->arena, struct oa);
    struct json *account = NULL;
    errand->own = oa;
    if (json_parse(errand->arena, home->account, &account, NULL)) return oa;
    const struct json *no_menu = json_get(account, STR("noMenu"));
    oa->no_menu = no_menu && no_menu->type == JSON_TRUE;
    if (json_i64(json_get(account, STR("expiresAt")), &oa->expires) == OK &&
        oa->expires > errand->now + WECHAT_TOKEN_SPARE_MS)
        oa->token = json_text(json_get(account, STR("accessToken")));
    return oa;
}

/* What was learned shall be stored. */
static void oa_learned(struct errand *errand, const struct oa *oa)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, CHANNEL_JSON_BYTES_MAX);
    json_object(&doc.w);
    if (oa->token.len) {
        json_member(&doc.w, STR("accessToken"), oa->token);
        json_member_i64(&doc.w, STR("expiresAt"), oa->expires);
    }
    if (oa->no_menu) json_member_bool(&doc.w, STR("noMenu"), true);
    json_object_end(&doc.w);
    errand->new_account = json_doc_copy(&doc, errand->arena);
}

/* ---- how it ended ---- */

/* errcode, what it means here, and a word for the operator. A refusal is about one message or one
 * person; any other code may be about the account, so what it met is sent again. */
static const struct code {
    int64_t code;
    enum errand_verdict verdict;
    msec wait_ms;
    const char *hint;
} codes[] = {
    {-1, VERDICT_AGAIN, 0, "the platform is busy"},
    {45015, VERDICT_SPENT, 0, "they have not written for 48 hours, or do not follow any more"},
    {45047, VERDICT_SPENT, 0, "no more messages until they write again"},
    {40003, VERDICT_REFUSED, 0, "there is nobody with this openid"},
    {43004, VERDICT_SPENT, 0, "they do not follow any more"},
    {43019, VERDICT_REFUSED, 0, "they are on the account's blocklist"},
    {40007, VERDICT_REFUSED, 0, "there is no such file any more"},
    {40008, VERDICT_REFUSED, 0, "the type of the message is not taken"},
    {40033, VERDICT_REFUSED, 0, "the text has characters that are not taken"},
    {44004, VERDICT_REFUSED, 0, "the text is empty"},
    {45002, VERDICT_REFUSED, 0, "the text is too long"},
    {47001, VERDICT_REFUSED, 0, "the message cannot be read there"},
    {87014, VERDICT_REFUSED, 0, "the text is not allowed there"},
    {45009, VERDICT_AGAIN, 60 * 60 * 1000, "the account's calls of today are used up"},
    {45011, VERDICT_AGAIN, 60 * 1000, "too many calls in this minute"},
    {48001, VERDICT_AGAIN, WECHAT_OPERATOR_WAIT_MS, "the account has no right to this call"},
    {40013, VERDICT_AGAIN, WECHAT_OPERATOR_WAIT_MS, "the app id is wrong"},
    {40125, VERDICT_AGAIN, WECHAT_OPERATOR_WAIT_MS, "the app secret is wrong"},
    {40164, VERDICT_AGAIN, WECHAT_OPERATOR_WAIT_MS, "our address is not on the account's list"},
    {89503, VERDICT_AGAIN, WECHAT_OPERATOR_WAIT_MS, "the account's administrator has to confirm"},
};

enum { CODE_NONE = INT32_MIN, CODE_NO_MENU = 40200, CODE_LONG_AGO = 45080, CODE_TYPING = 45081 };

/* errcode of an answer; CODE_NONE: it has none. */
static int64_t reply_code(struct errand *errand, const struct channel_reply *reply, str *ret_words)
{
    struct json *answer = NULL;
    int64_t code = CODE_NONE;
    *ret_words = STR_EMPTY;
    if (json_parse(errand->arena, reply->body, &answer, NULL)) return CODE_NONE;
    *ret_words = ui_line(errand->arena, json_text(json_get(answer, STR("errmsg"))), 80);
    return json_i64(json_get(answer, STR("errcode")), &code) == OK ? code : CODE_NONE;
}

static bool end_code(struct errand *errand, int64_t code, str words)
{
    for (size_t i = 0; i < COUNT(codes); i++)
        if (codes[i].code == code)
            return errand_end_for(errand, codes[i].verdict, codes[i].wait_ms,
                                  "%s (%" PRId64 ": %.*s)", codes[i].hint, code, STR_ARG(words));
    return errand_end_for(errand, VERDICT_AGAIN, WECHAT_OPERATOR_WAIT_MS,
                          "refused with a code that is not known here (%" PRId64 ": %.*s)", code,
                          STR_ARG(words));
}

/* An answer came whole; otherwise the errand has ended. */
static bool answered(struct errand *errand, const struct channel_reply *reply, bool harmless)
{
    if (reply->e)
        return errand_end_for(errand, harmless || !reply->sent ? VERDICT_AGAIN : VERDICT_UNKNOWN, 0,
                              "%s", reply->reason ? reply->reason : err_title(reply->e));
    if (reply->status == 200) return true;
    bool clear = harmless || reply->status < 500 || reply->status == 503;
    return errand_end_for(errand, clear ? VERDICT_AGAIN : VERDICT_UNKNOWN, 0, "HTTP status %d",
                          reply->status);
}

/* ---- requests ---- */

static str base_of(const struct channel_home *home)
{
    return home->base_url.len ? home->base_url : STR("https://api.weixin.qq.com");
}

/* Base and path, the token, and one more parameter if it has a name. */
static str url_of(const struct channel_home *home, struct errand *errand, const struct oa *oa,
                  const char *path, const char *name, str value)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, WECHAT_CALL_BYTES_MAX);
    buf_append(&out, base_of(home));
    buf_append(&out, str_c(path));
    buf_append(&out, STR("?access_token="));
    buf_append(&out, url_escape(errand->arena, oa->token, ""));
    if (name) {
        buf_printf(&out, "&%s=", name);
        buf_append(&out, url_escape(errand->arena, value, ""));
    }
    assert(!out.full);
    return arena_str(errand->arena, buf_str(&out));
}

static void post_json(struct errand *errand, struct channel_request *request, str url,
                      const struct buf *body)
{
    assert(!body->full);
    *request = (struct channel_request){
        .method = "POST",
        .url = url,
        .headers = {{"Content-Type", STR("application/json; charset=utf-8")}},
        .header_count = 1,
        .body = arena_str(errand->arena, buf_str(body)),
        .timeout_ms = WECHAT_CALL_MS_MAX,
        .bytes_max = WECHAT_REPLY_BYTES_MAX,
    };
}

/* ---- the token ---- */

static void ask_token(const struct channel_home *home, struct errand *errand, struct oa *oa,
                      struct channel_request *request)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, WECHAT_CALL_BYTES_MAX);
    json_object(&doc.w);
    json_member(&doc.w, STR("grant_type"), STR("client_credential"));
    json_member(&doc.w, STR("appid"), home->app_id);
    json_member(&doc.w, STR("secret"), home->secret);
    json_member_bool(&doc.w, STR("force_refresh"), false);
    json_object_end(&doc.w);
    str base = base_of(home);
    str url = arena_printf(errand->arena, "%.*s/cgi-bin/stable_token", STR_ARG(base));
    post_json(errand, request, url, &doc.buf);
    oa->asking = true;
}

static bool take_token(struct errand *errand, struct oa *oa, const struct channel_reply *reply)
{
    struct json *answer = NULL;
    uint64_t seconds = 0;
    if (!answered(errand, reply, true)) return false;
    str words;
    int64_t code = reply_code(errand, reply, &words);
    if (code != CODE_NONE && code != 0) {
        (void)end_code(errand, code, words);
        if (errand->verdict != VERDICT_AGAIN) { /* of the account, not of the message */
            errand->verdict = VERDICT_AGAIN;
            errand->wait_ms = WECHAT_OPERATOR_WAIT_MS;
        }
        return false;
    }
    if (json_parse(errand->arena, reply->body, &answer, NULL) == OK)
        oa->token = json_text(json_get(answer, STR("access_token")));
    if (!oa->token.len || oa->token.len > CHANNEL_TOKEN_BYTES_MAX ||
        json_u64(json_get(answer, STR("expires_in")), &seconds) || seconds > WECHAT_TOKEN_S_MAX)
        return errand_end_for(errand, VERDICT_AGAIN, WECHAT_TOKEN_WAIT_MS,
                              "no access token in the answer");
    oa->expires = errand->now + (msec)seconds * 1000;
    oa_learned(errand, oa);
    return true;
}

/* ---- the steps of every errand ---- */

static bool call(const struct channel_home *home, struct errand *errand, struct oa *oa,
                 const struct purpose *purpose, struct channel_request *request)
{
    oa->asking = false;
    return purpose->ask(home, errand, oa, request);
}

static bool walk(const struct channel_home *home, struct errand *errand,
                 const struct channel_reply *reply, struct channel_request *request,
                 const struct purpose *purpose)
{
    struct oa *oa = reply ? errand->own : oa_begin(home, errand);
    str words;
    if (!reply && !oa->token.len) {
        oa->renewed = true;
        ask_token(home, errand, oa, request);
        return true;
    }
    if (!reply) return call(home, errand, oa, purpose, request);
    if (oa->asking)
        return take_token(errand, oa, reply) && call(home, errand, oa, purpose, request);
    if (!answered(errand, reply, purpose->harmless)) return false;
    int64_t code = reply_code(errand, reply, &words);
    if (code == 40001 || code == 40014 || code == 42001) { /* the token was not good */
        oa->token = STR_EMPTY;
        oa_learned(errand, oa);
        if (oa->renewed)
            return errand_end_for(errand, VERDICT_AGAIN, WECHAT_TOKEN_WAIT_MS,
                                  "the platform does not take the access token that it gave");
        oa->renewed = true;
        ask_token(home, errand, oa, request);
        return true;
    }
    return purpose->take(errand, oa, reply) && call(home, errand, oa, purpose, request);
}

/* ---- a message ---- */

/* Without what JSON would escape with \u: controls go, line and paragraph separators become ends of
 * lines. */
static str raw_text(struct arena *arena, str text)
{
    char *out = arena_alloc(arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == 0xe2 && text.len - i > 2 && (unsigned char)text.p[i + 1] == 0x80 &&
            ((unsigned char)text.p[i + 2] & 0xfe) == 0xa8) {
            out[len++] = '\n';
            i += 2;
        } else if (c >= ' ' || c == '\n' || c == '\t') {
            out[len++] = (char)c;
        }
    }
    return (str){out, len};
}

static void write_menu(struct json_writer *w, struct arena *arena, str text,
                       const struct json *buttons)
{
    json_member(w, STR("msgtype"), STR("msgmenu"));
    json_key(w, STR("msgmenu"));
    json_object(w);
    json_member(w, STR("head_content"), text);
    json_key(w, STR("list"));
    json_array(w);
    for (const struct json *button = buttons->child; button; button = button->next) {
        json_object(w);
        json_member(w, STR("id"), json_text(json_get(button, STR("data"))));
        json_member(w, STR("content"), raw_text(arena, json_text(json_get(button, STR("label")))));
        json_object_end(w);
    }
    json_array_end(w);
    json_member(w, STR("tail_content"), STR_EMPTY);
    json_object_end(w);
}

static bool ask_send(const struct channel_home *home, struct errand *errand, struct oa *oa,
                     struct channel_request *request)
{
    const struct outbound *message = errand->message;
    str text = raw_text(errand->arena, message->text);
    struct json *buttons = NULL;
    if (!text.len)
        return errand_end_for(errand, VERDICT_REFUSED, 0, "there is no text in the message");
    if (text.len > WECHAT_TEXT_BYTES_MAX)
        return errand_end_for(errand, VERDICT_REFUSED, 0, "the text is too long");
    oa->sent_menu = !oa->no_menu && message->buttons.len &&
                    json_parse(errand->arena, message->buttons, &buttons, NULL) == OK &&
                    buttons->type == JSON_ARRAY && buttons->count > 0;
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, WECHAT_CALL_BYTES_MAX + 8 * message->buttons.len);
    json_object(&doc.w);
    json_member(&doc.w, STR("touser"), message->to);
    if (oa->sent_menu) {
        write_menu(&doc.w, errand->arena, text, buttons);
    } else {
        json_member(&doc.w, STR("msgtype"), STR("text"));
        json_key(&doc.w, STR("text"));
        json_object(&doc.w);
        json_member(&doc.w, STR("content"), text);
        json_object_end(&doc.w);
    }
    json_object_end(&doc.w);
    str url = url_of(home, errand, oa, "/cgi-bin/message/custom/send", NULL, STR_EMPTY);
    post_json(errand, request, url, &doc.buf);
    return true;
}

static bool take_send(struct errand *errand, struct oa *oa, const struct channel_reply *reply)
{
    str words;
    int64_t code = reply_code(errand, reply, &words);
    if (code == CODE_NO_MENU && oa->sent_menu) {
        oa->no_menu = true;
        oa_learned(errand, oa);
        return true;
    }
    if (code == 0)
        errand->verdict = VERDICT_DONE;
    else if (code == CODE_NONE)
        (void)errand_end_for(errand, VERDICT_UNKNOWN, 0, "the answer is not readable");
    else
        (void)end_code(errand, code, words);
    return false;
}

static bool oa_send(const struct channel_home *home, struct errand *errand,
                    const struct channel_reply *reply, struct channel_request *ret_request)
{
    static const struct purpose purpose = {ask_send, take_send, false};
    return walk(home, errand, reply, ret_request, &purpose);
}

/* ---- typing ---- */

static bool ask_typing(const struct channel_home *home, struct errand *errand, struct oa *oa,
                       struct channel_request *request)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, WECHAT_CALL_BYTES_MAX);
    json_object(&doc.w);
    json_member(&doc.w, STR("touser"), errand->peer);
    json_member(&doc.w, STR("command"), errand->stop ? STR("CancelTyping") : STR("Typing"));
    json_object_end(&doc.w);
    str url = url_of(home, errand, oa, "/cgi-bin/message/custom/typing", NULL, STR_EMPTY);
    post_json(errand, request, url, &doc.buf);
    return true;
}

static bool take_typing(struct errand *errand, struct oa *oa, const struct channel_reply *reply)
{
    str words;
    int64_t code = reply_code(errand, reply, &words);
    (void)oa;
    if (code == 0 || code == CODE_LONG_AGO || code == CODE_TYPING)
        errand->verdict = VERDICT_DONE;
    else if (code == CODE_NONE)
        (void)errand_end_for(errand, VERDICT_AGAIN, 0, "the answer is not readable");
    else
        (void)end_code(errand, code, words);
    return false;
}

static bool oa_typing(const struct channel_home *home, struct errand *errand,
                      const struct channel_reply *reply, struct channel_request *ret_request)
{
    static const struct purpose purpose = {ask_typing, take_typing, true};
    return walk(home, errand, reply, ret_request, &purpose);
}

/* ---- a file that came in ---- */

static bool ask_file(const struct channel_home *home, struct errand *errand, struct oa *oa,
                     struct channel_request *request)
{
    struct json *ref = NULL;
    str media_id = STR_EMPTY;
    if (json_parse(errand->arena, errand->file->ref, &ref, NULL) == OK)
        media_id = json_text(json_get(ref, STR("mediaId")));
    if (!media_id.len)
        return errand_end_for(errand, VERDICT_REFUSED, 0, "the file has no media id");
    *request = (struct channel_request){
        .method = "GET",
        .url = url_of(home, errand, oa, "/cgi-bin/media/get", "media_id", media_id),
        .timeout_ms = WECHAT_FILE_MS_MAX,
        .bytes_max = CHANNEL_FILE_BYTES_MAX,
        .want = "Content-Type",
    };
    return true;
}

/* Files have a type of their own; refusals, and where a video lies, are JSON. */
static bool take_file(struct errand *errand, struct oa *oa, const struct channel_reply *reply)
{
    str words;
    bool told = str_starts(reply->wanted, STR("application/json")) ||
                str_starts(reply->wanted, STR("text/plain"));
    int64_t code = told ? reply_code(errand, reply, &words) : 0;
    (void)oa;
    if (told && code != CODE_NONE) return end_code(errand, code, words);
    if (told || !reply->body.len)
        return errand_end_for(errand, VERDICT_REFUSED, 0, "the platform gave no file");
    errand->bytes = reply->body;
    errand->verdict = VERDICT_DONE;
    return false;
}

static bool oa_fetch(const struct channel_home *home, struct errand *errand,
                     const struct channel_reply *reply, struct channel_request *ret_request)
{
    static const struct purpose purpose = {ask_file, take_file, true};
    if (reply && reply->e == ERR_TOO_LARGE)
        return errand_end_for(errand, VERDICT_REFUSED, 0, "the file is too large");
    return walk(home, errand, reply, ret_request, &purpose);
}

/* ---- the kind ---- */

const struct channel_ops channel_wechat_oa = {
    .traits = {.kind = "wechat_oa",
               .chars_max = 600,
               .bytes_max = 2000,
               .sends_max = 5,
               .sends_kept = 1,
               .window_ms = 48 * 60 * 60 * 1000,
               .buttons_max = 8,
               .button_bytes_max = 64,
               .typing = true},
    .send = oa_send,
    .typing = oa_typing,
    .fetch = oa_fetch,
    .hook = wechat_hook,
};
