/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as an answer of WeChat's iLink. The first says to which call (letters, so that a kept input can be read);
 * an upper-case letter is a platform on this machine. Whatever comes, an errand ends with a verdict, a message that it
 * gives can be kept, a request that it makes is well formed and goes to a host that it may go to, and tokens stay out of
 * what people read.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "chat/channel.h"
#include "chat/platform_request.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { STEPS_MAX = 8 };

#define SECRET  "S3cr3tT0k3n"
#define CONTEXT "C0nt3xtT0k3n"

static bool printable(str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] <= ' ' || text.p[i] > '~') return false;
    return true;
}

static void check_json(struct arena *arena, str text)
{
    struct json *root = NULL;
    if (json_parse(arena, text, &root, NULL) || root->type != JSON_OBJECT) abort();
}

static void check_request(const struct channel_home *home, struct errand *errand,
                          const struct channel_request *request)
{
    bool json = false;
    if (!request->url.len || !printable(request->url) || request->timeout_ms <= 0) abort();
    if (!request->only_host && !str_starts(request->url, home->base_url)) abort();
    for (size_t i = 0; i < request->header_count; i++) {
        const struct channel_header *header = &request->headers[i];
        bool bearer = strcmp(header->name, "Authorization") == 0;
        if (!printable(bearer ? str_drop(header->value, strlen("Bearer ")) : header->value))
            abort();
        json |= str_eq(header->value, STR("application/json"));
    }
    if (json) check_json(errand->arena, request->body);
}

static void check_inbound(struct arena *arena, const struct inbound *in)
{
    struct inbound kept;
    str json = inbound_json(arena, in);
    if (!json.len || inbound_parse(arena, json, &kept)) abort();
    if (!str_eq(kept.id, in->id) || !str_eq(kept.sender, in->sender)) abort();
    if (kept.group != in->group) abort();
    if (!str_eq(kept.reply_token, in->reply_token) || kept.file_count != in->file_count) abort();
}

static void check_end(const struct channel_home *home, struct errand *errand)
{
    const struct login *login = errand->login;
    str detail = str_c(errand->detail);
    if (errand->verdict >= VERDICT_COUNT) abort();
    if ((errand->verdict == VERDICT_DONE) != (detail.len == 0)) abort();
    if (!utf8_valid(detail) || str_find_char(detail, '\n') >= 0) abort();
    if (str_find(detail, STR(SECRET)) >= 0 || str_find(detail, STR(CONTEXT)) >= 0) abort();
    for (size_t i = 0; i < errand->inbound_count; i++)
        check_inbound(errand->arena, &errand->inbounds[i]);
    if (errand->new_cursor.len > CHANNEL_CURSOR_BYTES_MAX) abort();
    if (errand->new_account.len > CHANNEL_JSON_BYTES_MAX) abort();
    if (errand->new_account.len) check_json(errand->arena, errand->new_account);
    if (errand->new_account.len && login->state != LOGIN_DONE) abort();
    if (login->base_url.len && !str_eq(login->base_url, home->base_url) &&
        !platform_request_may(home->base_url, login->base_url, ".weixin.qq.com"))
        abort();
}

/* Every answer is the same bytes, but the first ones, which are good. */
static void walk(const struct channel_home *home, struct errand *errand, errand_fn *step,
                 const char *const *good, str body)
{
    struct channel_request request = {.method = "GET"};
    struct channel_reply reply = {.sent = true, .status = 200, .wanted = STR("param")};
    bool more = step(home, errand, NULL, &request);
    for (int i = 0; more; i++) {
        if (i == STEPS_MAX) abort();
        check_request(home, errand, &request);
        reply.body = *good ? str_c(*good++) : body;
        request = (struct channel_request){.method = "GET"};
        more = step(home, errand, &reply, &request);
    }
    check_end(home, errand);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static const char *const none[] = {NULL};
    static const char *const code[] = {"{\"qrcode\":\"k\",\"qrcode_img_content\":\"c\"}", NULL};
    static const char *const slot[] = {"{\"upload_param\":\"p\"}", "", NULL};
    if (!size) return 0;
    bool here = data[0] >= 'A' && data[0] <= 'Z';
    str body = {(const char *)data + 1, size - 1};
    struct arena arena;
    struct login login = {.key = STR("k/")};
    struct outbound text = {
        .to = STR("u"), .client_id = STR("c"), .reply_token = STR(CONTEXT), .text = STR("t")};
    struct outbound file = text;
    file.text = STR_EMPTY;
    file.file_name = STR("f");
    struct inbound_file ref = {.ref = body};
    struct channel_home home = {.name = STR("wx"),
                                .base_url = here ? STR("http://127.0.0.1:9")
                                                 : STR("https://ilinkai.weixin.qq.com"),
                                .account = STR("{\"botToken\":\"" SECRET "\"}"),
                                .version = STR("1.2.3")};
    arena_init(&arena);
    struct errand errand = {.arena = &arena, .login = &login, .message = &text, .file = &ref};
    switch (char_lower((char)data[0])) {
    case 'p':
        walk(&home, &errand, channel_weixin.poll, none, body);
        break;
    case 'l':
        walk(&home, &errand, channel_weixin.login_poll, none, body);
        break;
    case 'b':
        walk(&home, &errand, channel_weixin.login_begin, none, body);
        break;
    case 's':
        walk(&home, &errand, channel_weixin.send, none, body);
        break;
    case 't':
        walk(&home, &errand, channel_weixin.typing, none, body);
        break;
    case 'r':
        walk(&home, &errand, channel_weixin.fetch, none, STR("0123456789abcdef"));
        break;
    case 'u':
        errand.message = &file;
        walk(&home, &errand, channel_weixin.send, none, body);
        break;
    case 'm':
        errand.message = &file;
        walk(&home, &errand, channel_weixin.send, slot, body);
        break;
    case 'a': /* the account as it was stored */
        home.account = body;
        walk(&home, &errand, channel_weixin.login_begin, code, body);
        break;
    default:
        break;
    }
    arena_done(&arena);
    return 0;
}
