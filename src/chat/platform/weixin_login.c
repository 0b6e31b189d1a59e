/* SPDX-License-Identifier: Apache-2.0
 *
 * Signing in to WeChat: a QR code is shown, a person scans it with the app and confirms, and the
 * server gives us a token. There is no other way, and no way to renew a token but this one.
 *
 *   login_begin  get_bot_qrcode: what the code says, and a key to ask about it
 *   login_poll   get_qrcode_status, held by the server, again and again:
 *
 *     WAIT ─ scaned ─► SCANNED ─ confirmed ─► DONE
 *      │                 │ ▲
 *      │ expired         │ │ the right number
 *      ▼                 ▼ │
 *     EXPIRED ◄─ too ── VERIFY   (the phone shows a number)
 *                many
 *
 * Invariants:
 * 1. We ask only at the address of the configuration and at hosts of the platform.
 * 2. A code that was typed is sent once.
 * 3. What goes wrong on the way changes no state: the next poll tells how it stands.
 *
 * To know one more status: a row in statuses[].
 */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "chat/platform/weixin_int.h"
#include "chat/platform_request.h"

enum {
    BEGIN_MS = 60 * 1000,  /* it may be slow */
    STATUS_MS = 43 * 1000, /* the server holds it for 35 s */
    KEY_BYTES_MAX = 1024,
    CONTENT_BYTES_MAX = 2048, /* what a QR code holds, with room */
    HOST_BYTES_MAX = 253,
};

/* ---- ends ---- */

static bool weixin_login_fail(struct errand *errand, const char *why)
{
    errand->login->state = LOGIN_FAILED;
    snprintf(errand->login->detail, sizeof errand->login->detail, "%s", why);
    return errand_end(errand, VERDICT_REFUSED, "%s", why);
}

/* ---- beginning ---- */

bool weixin_login_begin(const struct channel_home *home, struct errand *errand,
                        const struct channel_reply *reply, struct channel_request *ret_request)
{
    struct login *login = errand->login;
    const struct json *root = NULL;
    if (!reply) {
        struct weixin_account account = weixin_account(home, errand->arena);
        struct json_doc body; /* the token that we have */
        weixin_body_begin(&body);
        json_key(&body.w, STR("local_token_list"));
        json_array(&body.w);
        if (account.token.len) json_string(&body.w, account.token);
        json_array_end(&body.w);
        *ret_request = (struct channel_request){.method = "POST",
                                                .body = weixin_body_end(&body, errand->arena, NULL),
                                                .timeout_ms = BEGIN_MS};
        ret_request->url = arena_printf(errand->arena, "%.*s/ilink/bot/get_bot_qrcode?bot_type=3",
                                        STR_ARG(home->base_url));
        weixin_headers(home, errand, ret_request);
        return true;
    }
    if (!weixin_answer(home, errand, reply, WEIXIN_ASKS, &root)) return false;
    str key = json_text(json_get(root, STR("qrcode")));
    str content = json_text(json_get(root, STR("qrcode_img_content")));
    if (!key.len || key.len > KEY_BYTES_MAX || !content.len || content.len > CONTENT_BYTES_MAX ||
        !weixin_is_visible(content))
        return weixin_login_fail(errand, "WeChat gives no QR code");
    *login = (struct login){
        .state = LOGIN_WAIT, .key = key, .content = content, .base_url = home->base_url};
    return errand_done(errand);
}

/* ---- how it stands ---- */

typedef bool status_fn(const struct channel_home *home, struct errand *errand,
                       const struct json *root);

/* Another data centre has the code now. */
static bool on_redirect(const struct channel_home *home, struct errand *errand,
                        const struct json *root)
{
    str host = json_text(json_get(root, STR("redirect_host")));
    if (!host.len) return errand_done(errand);
    for (size_t i = 0; i < host.len; i++) {
        char c = char_lower(host.p[i]);
        if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && !strchr(".-:", c))
            return weixin_login_fail(errand, "WeChat names a host that is none");
    }
    bool plain = weixin_is_here(home) && str_starts(home->base_url, STR("http://"));
    str url = arena_printf(errand->arena, "%s://%.*s", plain ? "http" : "https", STR_ARG(host));
    if (host.len > HOST_BYTES_MAX || !platform_request_may(home->base_url, url, WEIXIN_HOSTS))
        return weixin_login_fail(errand, "WeChat names a host that is not its own");
    errand->login->base_url = url;
    return errand_done(errand);
}

/* The server knows our old token. */
static bool on_bound(const struct channel_home *home, struct errand *errand,
                     const struct json *root)
{
    (void)root;
    if (!weixin_account(home, errand->arena).token.len)
        return weixin_login_fail(
            errand, "WeChat says that this is signed in already, but there is no token; "
                    "begin again");
    return errand_done(errand);
}

static bool on_confirmed(const struct channel_home *home, struct errand *errand,
                         const struct json *root)
{
    str token = str_trim(json_text(json_get(root, STR("bot_token"))));
    str bot = json_text(json_get(root, STR("ilink_bot_id")));
    str user = json_text(json_get(root, STR("ilink_user_id")));
    str base = json_text(json_get(root, STR("baseurl")));
    struct json_doc account;
    if (!token.len || token.len > CHANNEL_TOKEN_BYTES_MAX || !weixin_is_visible(token) ||
        !bot.len || bot.len > CHANNEL_ID_BYTES_MAX || user.len > CHANNEL_ID_BYTES_MAX)
        return weixin_login_fail(errand, "WeChat confirms, but gives no account");
    if (base.len > WEIXIN_URL_BYTES_MAX || !weixin_is_visible(base) ||
        !platform_request_may(home->base_url, base, WEIXIN_HOSTS))
        base = STR_EMPTY; /* the one of the configuration */
    weixin_body_begin(&account);
    json_member(&account.w, STR("botToken"), token);
    json_member(&account.w, STR("baseUrl"), base);
    json_member(&account.w, STR("botId"), bot);
    json_member(&account.w, STR("userId"), user);
    errand->new_account = weixin_body_end(&account, errand->arena, NULL);
    return errand_done(errand);
}

/* as the server spells it, what it means, what it says to a person, what is to be done */
static const struct {
    str name;
    enum login_state state;
    const char *detail;
    status_fn *act;
} statuses[] = {
    {STR("scaned"), LOGIN_SCANNED, "", NULL},
    {STR("scaned_but_redirect"), LOGIN_SCANNED, "", on_redirect},
    {STR("need_verifycode"), LOGIN_VERIFY, "", NULL},
    {STR("verify_code_blocked"), LOGIN_EXPIRED, "too many wrong numbers", NULL},
    {STR("expired"), LOGIN_EXPIRED, "", NULL},
    {STR("binded_redirect"), LOGIN_DONE, "", on_bound},
    {STR("confirmed"), LOGIN_DONE, "", on_confirmed},
};

static bool on_status(const struct channel_home *home, struct errand *errand,
                      const struct json *root, bool typed)
{
    struct login *login = errand->login;
    str status = json_text(json_get(root, STR("status")));
    for (size_t i = 0; i < COUNT(statuses); i++) {
        if (!str_eq(status, statuses[i].name)) continue;
        bool wrong = typed && statuses[i].state == LOGIN_VERIFY;
        login->state = statuses[i].state;
        snprintf(login->detail, sizeof login->detail, "%s",
                 wrong ? "that number was wrong" : statuses[i].detail);
        return statuses[i].act ? statuses[i].act(home, errand, root) : errand_done(errand);
    }
    return errand_done(errand); /* "wait", or one we do not know: as it was */
}

/* ---- asking ---- */

bool weixin_login_poll(const struct channel_home *home, struct errand *errand,
                       const struct channel_reply *reply, struct channel_request *ret_request)
{
    const struct json *root = NULL;
    if (!reply) {
        struct login *login = errand->login;
        str base = login->base_url.len ? login->base_url : home->base_url;
        str key = url_escape(errand->arena, login->key, ""), code = str_trim(login->verify_code);
        str typed = url_escape(errand->arena, code, "");
        errand->step = code.len ? 2 : 1;
        login->verify_code = STR_EMPTY;
        *ret_request = (struct channel_request){.method = "GET", .timeout_ms = STATUS_MS};
        if (!str_eq(base, home->base_url)) ret_request->only_host = WEIXIN_HOSTS;
        ret_request->url =
            arena_printf(errand->arena, "%.*s/ilink/bot/get_qrcode_status?qrcode=%.*s%s%.*s",
                         STR_ARG(base), STR_ARG(key), code.len ? "&verify_code=" : "",
                         STR_ARG(typed));
        weixin_headers(home, errand, ret_request);
        return true;
    }
    if (reply->e == ERR_TIMEOUT && reply->sent) return errand_done(errand);
    if (!weixin_answer(home, errand, reply, WEIXIN_ASKS, &root)) return false;
    return on_status(home, errand, root, errand->step == 2);
}
