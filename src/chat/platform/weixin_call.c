/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to WeChat's iLink API and what its answers mean.
 *
 * Every request has the headers of the protocol; a POST has a random number of its own besides, and
 * the token. The same refusal is written in two ways ("ret", "errcode"): both are looked at, always.
 *
 * Invariants:
 * 1. Tokens, context tokens and addresses with a query never come into errand->detail.
 * 2. A token goes to the address of the configuration or to a host of the platform, nowhere else.
 * 3. A send that may have arrived is VERDICT_UNKNOWN, never VERDICT_AGAIN.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/crypto.h"
#include "base/limits.h"
#include "chat/platform/weixin_int.h"
#include "chat/platform_request.h"
#include "ui/text.h"

enum {
    CODE_SESSION = -14, /* the token is dead: too old, or another instance has signed in */
    CODE_RATE = -12,
    CODE_REFUSED = -2, /* the budget is spent, or too fast: errmsg tells */
    RATE_WAIT_MS = 10 * 1000,
    ERRMSG_CHARS = 60,
};

/* ---- who we are ---- */

bool weixin_is_here(const struct channel_home *home)
{
    return platform_request_may(home->base_url, STR("http://127.0.0.1"), WEIXIN_HOSTS);
}

bool weixin_is_visible(str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] <= ' ' || text.p[i] > '~') return false;
    return true;
}

/* Without line ends too, as a file has them. */
static str trimmed(str text)
{
    str t = str_trim(text);
    while (t.len && (t.p[t.len - 1] == '\n' || t.p[t.len - 1] == '\r')) {
        t.len--;
        t = str_trim(t);
    }
    return t;
}

struct weixin_account weixin_account(const struct channel_home *home, struct arena *arena)
{
    struct weixin_account account = {trimmed(home->token), home->base_url};
    struct json *stored = NULL;
    if (json_parse(arena, home->account, &stored, NULL)) stored = NULL;
    str token = trimmed(json_text(json_get(stored, STR("botToken"))));
    str base = json_text(json_get(stored, STR("baseUrl")));
    if (token.len) account.token = token;
    if (!weixin_is_visible(account.token) || account.token.len > CHANNEL_TOKEN_BYTES_MAX)
        account.token = STR_EMPTY; /* not to be put into a header */
    while (str_ends(base, STR("/"))) base.len--;
    if (base.len && platform_request_may(home->base_url, base, WEIXIN_HOSTS))
        account.base_url = base;
    return account;
}

/* ---- how an errand ends ---- */

bool weixin_needs_login(const struct channel_home *home, struct errand *errand)
{
    return errand_end(errand, VERDICT_LOGIN,
                      "not signed in to WeChat: run `fermata channel login %.*s` or use the "
                      "settings page",
                      STR_ARG(home->name));
}

bool weixin_stuck(const struct channel_home *home, struct errand *errand, const char *what)
{
    return errand_end(errand, VERDICT_AGAIN,
                      "WeChat's answer %s, and it comes again; if that lasts, sign in again: "
                      "fermata channel login %.*s",
                      what, STR_ARG(home->name));
}

/* ---- requests ---- */

str weixin_uin(struct arena *arena, uint32_t number)
{
    char digits[16], text[BASE64_BYTES(sizeof digits)];
    int len = snprintf(digits, sizeof digits, "%u", number);
    crypto_base64((str){digits, (size_t)len}, text);
    return arena_str(arena, str_c(text));
}

/* "2.4.9" is 2 * 65536 + 4 * 256 + 9. */
static uint32_t version_number(str version)
{
    uint32_t number = 0;
    str rest = version;
    for (int i = 0; i < 3; i++) {
        uint64_t part = 0;
        str text = rest.p ? str_split(&rest, '.') : STR_EMPTY;
        if (str_to_u64(text, &part) || part > 255) part = 0;
        number = number << 8 | (uint32_t)part;
    }
    return number;
}

static void add_header(struct channel_request *request, const char *name, str value)
{
    assert(request->header_count < CHANNEL_HEADERS_MAX);
    request->headers[request->header_count++] = (struct channel_header){name, value};
}

void weixin_headers(const struct channel_home *home, struct errand *errand,
                    struct channel_request *request)
{
    const unsigned char *r = errand->random;
    add_header(request, "iLink-App-Id", STR("bot"));
    add_header(request, "iLink-App-ClientVersion",
               arena_printf(errand->arena, "%u", version_number(home->version)));
    if (strcmp(request->method, "POST") != 0) return;
    uint32_t number = (uint32_t)r[0] << 24 | (uint32_t)r[1] << 16 | (uint32_t)r[2] << 8 | r[3];
    add_header(request, "Content-Type", STR("application/json"));
    add_header(request, "AuthorizationType", STR("ilink_bot_token"));
    add_header(request, "X-WECHAT-UIN", weixin_uin(errand->arena, number));
}

void weixin_body_begin(struct json_doc *body)
{
    json_doc_open(body, WEIXIN_BODY_BYTES_MAX);
    json_object(&body->w);
}

str weixin_body_end(struct json_doc *body, struct arena *arena, const struct channel_home *home)
{
    struct json_writer *w = &body->w;
    if (home) {
        uint32_t version = version_number(home->version);
        str text =
            arena_printf(arena, "%u.%u.%u", version >> 16, version >> 8 & 255, version & 255);
        json_key(w, STR("base_info"));
        json_object(w);
        json_member(w, STR("channel_version"), text);
        json_member(w, STR("bot_agent"), arena_printf(arena, "Fermata/%.*s", STR_ARG(text)));
        json_object_end(w);
    }
    json_object_end(w);
    str bytes = body->buf.full ? STR_EMPTY : json_doc_copy(body, arena);
    json_doc_done(body);
    return bytes;
}

bool weixin_post(const struct channel_home *home, struct errand *errand, const char *path, str body,
                 msec timeout_ms, struct channel_request *ret_request)
{
    struct weixin_account account = weixin_account(home, errand->arena);
    if (!account.token.len) return weixin_needs_login(home, errand);
    if (!body.len) return errand_end(errand, VERDICT_REFUSED, "it is too long for WeChat");
    *ret_request =
        (struct channel_request){.method = "POST", .body = body, .timeout_ms = timeout_ms};
    ret_request->url =
        arena_printf(errand->arena, "%.*s/ilink/bot/%s", STR_ARG(account.base_url), path);
    weixin_headers(home, errand, ret_request);
    add_header(ret_request, "Authorization",
               arena_printf(errand->arena, "Bearer %.*s", STR_ARG(account.token)));
    return true;
}

/* ---- JSON of the platform ---- */

/* \uXXXX at the start of the text; -1 if there is none. */
static long unit_at(str text)
{
    long code = 0;
    if (text.len < 6 || text.p[0] != '\\' || text.p[1] != 'u') return -1;
    for (int i = 2; i < 6; i++) {
        char c = char_lower(text.p[i]);
        bool digit = c >= '0' && c <= '9';
        if (!digit && (c < 'a' || c > 'f')) return -1;
        code = code << 4 | (digit ? c - '0' : c - 'a' + 10);
    }
    return code;
}

/* What stands first in the text is copied, or U+FFFD for what is broken: half a surrogate pair, a
 * byte that is no UTF-8, a control character. Returns how many bytes of the text that took. */
static size_t mend_next(struct buf *out, str text)
{
    unsigned char c = (unsigned char)text.p[0];
    long unit = unit_at(text);
    size_t len = 1;
    if (unit >= 0xd800 && unit <= 0xdbff) {
        long low = unit_at(str_drop(text, 6));
        len = low >= 0xdc00 && low <= 0xdfff ? 12 : 6;
    } else if (unit >= 0 || (c == '\\' && text.len > 1)) {
        len = unit >= 0 ? 6 : 2;
    } else if (c >= 0x80) {
        while (len < 4 && len < text.len && !utf8_valid((str){text.p, len})) len++;
        if (!utf8_valid((str){text.p, len})) {
            buf_append(out, STR("\xef\xbf\xbd"));
            return 1;
        }
    }
    bool half = unit >= 0xd800 && unit <= 0xdfff && len == 6;
    buf_append(out, half ? STR("\\ufffd") : c < ' ' ? STR(" ") : (str){text.p, len});
    return len;
}

const struct json *weixin_json(struct arena *arena, str text)
{
    struct json *root = NULL;
    if (!json_parse(arena, text, &root, NULL)) return root;
    struct buf mended;
    buf_init(&mended, 3 * (size_t)CHANNEL_REPLY_BYTES_MAX);
    while (text.len && !mended.full) text = str_drop(text, mend_next(&mended, text));
    str again = mended.full ? STR_EMPTY : arena_str(arena, buf_str(&mended));
    buf_done(&mended);
    return json_parse(arena, again, &root, NULL) ? NULL : root;
}

str weixin_id(const struct json *value)
{
    if (!value || (value->type != JSON_NUMBER && value->type != JSON_STRING)) return STR_EMPTY;
    if (!value->text.len || value->text.len > CHANNEL_ID_BYTES_MAX) return STR_EMPTY;
    if (value->type == JSON_STRING) return weixin_is_visible(value->text) ? value->text : STR_EMPTY;
    for (size_t i = 0; i < value->text.len; i++)
        if (value->text.p[i] < '0' || value->text.p[i] > '9') return STR_EMPTY;
    return str_eq(value->text, STR("0")) ? STR_EMPTY : value->text;
}

/* ---- answers ---- */

/* A code as a number or as text; 0 if it is not there, -1 if it says something else. */
static int64_t code_of(const struct json *value)
{
    int64_t code = -1;
    if (!value || value->type == JSON_NULL) return 0;
    struct json number = {.type = JSON_NUMBER, .text = value->text, .raw = value->text};
    if (value->type == JSON_STRING && !value->text.len) return 0;
    if (value->type != JSON_STRING && value->type != JSON_NUMBER) return -1;
    return json_i64(&number, &code) ? -1 : code;
}

/* "rate limited", "freq limit", "too frequent"; not "failed to generate". */
static bool says_too_often(str errmsg)
{
    static const str words[] = {STR("rate"), STR("freq")};
    for (size_t i = 0; i + 4 <= errmsg.len; i++) {
        char before = i ? char_lower(errmsg.p[i - 1]) : ' ';
        if (before >= 'a' && before <= 'z') continue;
        for (size_t k = 0; k < COUNT(words); k++)
            if (str_eq_nocase((str){errmsg.p + i, 4}, words[k])) return true;
    }
    return false;
}

static bool is_question(enum weixin_purpose purpose)
{
    return purpose == WEIXIN_ASKS || purpose == WEIXIN_POLLS;
}

static bool refused(const struct channel_home *home, struct errand *errand, int64_t code,
                    str errmsg, enum weixin_purpose purpose)
{
    if (code == CODE_SESSION) return weixin_needs_login(home, errand);
    bool often = code == CODE_RATE || (code == CODE_REFUSED && says_too_often(errmsg));
    enum errand_verdict verdict = often && purpose != WEIXIN_POLLS ? VERDICT_OFTEN
                                  : often || is_question(purpose)  ? VERDICT_AGAIN
                                  : code == CODE_REFUSED           ? VERDICT_SPENT
                                                                   : VERDICT_REFUSED;
    errand->wait_ms = often ? RATE_WAIT_MS : 0;
    str line = ui_line(errand->arena, errmsg, ERRMSG_CHARS);
    /* Nobody shall read in a log what it may repeat: our token, a person's, an address. */
    const str secrets[] = {STR("://"), weixin_account(home, errand->arena).token,
                           errand->reply_token,
                           errand->message ? errand->message->reply_token : STR_EMPTY};
    for (size_t i = 0; i < COUNT(secrets); i++)
        if (secrets[i].len && str_find(errmsg, secrets[i]) >= 0) line = STR_EMPTY;
    return errand_end(errand, verdict, "WeChat refuses: code %lld%s%.*s", (long long)code,
                      line.len ? ", " : "", STR_ARG(line));
}

/* An HTTP status that is not one of success. A gateway may have lost the answer alone; other
 * refusals come before anything happens. */
static bool wrong_status(const struct channel_home *home, struct errand *errand, int status,
                         enum weixin_purpose purpose)
{
    if (status == 401) return weixin_needs_login(home, errand);
    bool doubt = purpose == WEIXIN_SENDS && (status >= 500 || status == 408);
    bool never = !is_question(purpose) && (status == 400 || status == 413 || status == 422);
    if (status == 429) errand->wait_ms = RATE_WAIT_MS;
    return errand_end(errand,
                      doubt                                      ? VERDICT_UNKNOWN
                      : never                                    ? VERDICT_REFUSED
                      : status == 429 && purpose != WEIXIN_POLLS ? VERDICT_OFTEN
                                                                 : VERDICT_AGAIN,
                      "WeChat answers with HTTP %d", status);
}

bool weixin_answer(const struct channel_home *home, struct errand *errand,
                   const struct channel_reply *reply, enum weixin_purpose purpose,
                   const struct json **ret_root)
{
    enum errand_verdict doubt = purpose == WEIXIN_SENDS ? VERDICT_UNKNOWN : VERDICT_AGAIN;
    if (purpose == WEIXIN_POLLS && reply->e == ERR_TOO_LARGE)
        return weixin_stuck(home, errand, "is too large");
    if (reply->e)
        return errand_end(errand, reply->sent ? doubt : VERDICT_AGAIN, "WeChat: %s",
                          reply->reason && reply->reason[0] ? reply->reason : err_title(reply->e));
    if (reply->status < 200 || reply->status > 299)
        return wrong_status(home, errand, reply->status, purpose);
    const struct json *root = weixin_json(errand->arena, reply->body);
    if ((!root || root->type != JSON_OBJECT) && purpose == WEIXIN_POLLS)
        return weixin_stuck(home, errand, "cannot be read");
    if (!root || root->type != JSON_OBJECT)
        return errand_end(errand, doubt, "WeChat's answer is not a JSON object");
    int64_t ret = code_of(json_get(root, STR("ret")));
    int64_t errcode = code_of(json_get(root, STR("errcode")));
    if (errcode == CODE_SESSION || !ret) ret = errcode;
    if (ret) return refused(home, errand, ret, json_text(json_get(root, STR("errmsg"))), purpose);
    *ret_root = root;
    return true;
}
