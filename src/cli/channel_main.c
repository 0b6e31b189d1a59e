/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata channel list | login | link | unlink`: chat channels, a login with its QR code, links of
 * people. The first two ask the running server through its admin socket: it is the one that talks
 * to the platforms. Links are rows: without a server they are written here, under the folder's
 * lock.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/say.h"
#include "chat/link_job.h"
#include "cli/cli.h"
#include "cli/home.h"
#include "config/option.h"
#include "server/key_job.h"
#include "ui/qr.h"

/* ---- words ---- */

enum login_word {
    WORD_NONE,     /* no channel is configured */
    WORD_SCAN,     /* scan it */
    WORD_OPEN,     /* or open the address */
    WORD_RENEWED,  /* the code before has expired */
    WORD_SCANNED,  /* confirm on the phone */
    WORD_NUMBER,   /* the prompt */
    WORD_WRONG,    /* it was another number */
    WORD_DIGITS,   /* that is no number */
    WORD_DONE,     /* signed in */
    WORD_EXPIRED,  /* nobody scanned it */
    WORD_FAILED,   /* it failed */
    WORD_LINK,     /* what to do with the code */
    WORD_UNLINKED, /* done */
    WORD_COUNT,
};

static const char *const words[LANG_COUNT][WORD_COUNT] = {
    [LANG_EN] =
        {
            [WORD_NONE] = "There are no channels. docs/CONFIGURATION.md says how to add one.",
            [WORD_SCAN] = "Scan this code with WeChat:",
            [WORD_OPEN] = "or open this address on the phone:",
            [WORD_RENEWED] = "The code has expired; here is a new one.",
            [WORD_SCANNED] = "Scanned. Confirm it on the phone.",
            [WORD_NUMBER] = "Number that the phone shows: ",
            [WORD_WRONG] = "That was not the number; try again.",
            [WORD_DIGITS] = "Type the digits alone.",
            [WORD_DONE] = "Signed in",
            [WORD_EXPIRED] = "Nobody signed in in time; run it again.",
            [WORD_FAILED] = "Signing in failed",
            [WORD_LINK] =
                "Send this in the chat within 15 minutes, where nobody else reads along: /link",
            [WORD_UNLINKED] = "Unlinked.",
        },
    [LANG_ZH] =
        {
            [WORD_NONE] = "没有配置渠道。添加方法见 docs/CONFIGURATION.md。",
            [WORD_SCAN] = "请用微信扫描二维码：",
            [WORD_OPEN] = "或在手机上打开此地址：",
            [WORD_RENEWED] = "二维码已过期，这是新的二维码。",
            [WORD_SCANNED] = "已扫码，请在手机上确认。",
            [WORD_NUMBER] = "请输入手机上显示的数字：",
            [WORD_WRONG] = "数字不对，请重新输入。",
            [WORD_DIGITS] = "只能输入数字。",
            [WORD_DONE] = "登录成功",
            [WORD_EXPIRED] = "登录超时，请重新运行。",
            [WORD_FAILED] = "登录失败",
            [WORD_LINK] = "请在 15 分钟内在单独的聊天中发送（不要让别人看到）：/link",
            [WORD_UNLINKED] = "已解除绑定。",
        },
};

static const char *word(enum login_word which)
{
    return words[lang_asked(environ)][which];
}

/* ---- the running server ---- */

static enum err known(const struct config *config, str name, struct fault *reterr)
{
    struct nearest n;
    nearest_init(&n, name);
    for (size_t i = 0; i < config->channels.count; i++) {
        if (str_eq(config->channels.items[i].name, name)) return OK;
        nearest_offer(&n, config->channels.items[i].name, config->channels.items[i].name.p);
    }
    return fault(reterr, ERR_NOT_FOUND, "there is no channel \"%s\"%s", say(name).text,
                 say_nearest(&n, "`fermata channel list` shows them all").text);
}

/* There must be one. */
static enum err find_server(struct home *home, struct fault *reterr)
{
    enum err e = home_lock(home, reterr);
    if (e || !home->lock) return e;
    return fault(reterr, ERR_NOT_FOUND,
                 "no server runs on %s; start it with `fermata serve`, and try again",
                 home->folder);
}

/* ---- list ---- */

static void print_channel(const struct json *channel)
{
    const struct json *address = json_get(channel, STR("webhookUrl"));
    const struct json *detail = json_get(channel, STR("detail"));
    static const struct {
        const char *name;
        int width;
    } texts[] = {{"name", 16}, {"kind", 10}, {"agent", 16}, {"state", 12}};
    static const char *const counts[] = {"people", "waiting", "parked"};
    for (size_t i = 0; i < COUNT(texts); i++)
        printf("%-*s", texts[i].width,
               say(json_text(json_get(channel, str_c(texts[i].name)))).text);
    for (size_t i = 0; i < COUNT(counts); i++) {
        const struct json *count = json_get(channel, str_c(counts[i]));
        printf("%7.*s %s", STR_ARG(count ? count->raw : STR("?")), counts[i]);
    }
    if (detail && say_plain(detail->text))
        printf("  %.*s", STR_ARG(detail->text));
    else if (detail)
        printf("  %s", say(detail->text).text);
    if (address) printf("  %.*s", STR_ARG(address->text));
    printf("\n");
}

int channel_list_main(const struct config *config, struct arena *arena, const struct args *args)
{
    (void)args;
    AUTO(home_done) struct home home = {.folder = config->data.p, .arena = arena};
    struct fault why = {0};
    struct json *list = NULL;
    if (find_server(&home, &why) ||
        home_ask(&home, &(struct home_request){.method = "GET", .path = "/channels"}, &list, &why))
        return home_failed(&why);
    const struct json *channels = json_get(list, STR("channels"));
    if (!channels || !channels->count) fprintf(stderr, "%s\n", word(WORD_NONE));
    for (const struct json *c = channels ? channels->child : NULL; c; c = c->next) print_channel(c);
    return EXIT_OK;
}

/* ---- login ---- */

struct show {
    const struct home *home; /* its arena is reset between two questions */
    str name;
    struct arena kept;
    str content; /* of the code that stands there; empty: none yet */
    bool scanned;
};

/* To a file or a pipe only the address goes: blocks and colours would help nobody there. */
static void show_code(struct show *show, str content)
{
    if (str_eq(show->content, content)) return;
    if (show->content.len) fprintf(stderr, "%s\n", word(WORD_RENEWED));
    arena_reset(&show->kept);
    show->content = arena_str(&show->kept, content);
    show->scanned = false;
    struct qr qr;
    if (isatty(STDOUT_FILENO) && qr_make(show->home->arena, content, &qr) == OK) {
        AUTO(buf_done) struct buf out;
        buf_init(&out, CHANNEL_LOGIN_BYTES_MAX);
        qr_terminal(&qr, &out);
        fprintf(stderr, "%s\n", word(WORD_SCAN));
        fwrite(out.p, 1, out.len, stdout);
    }
    fflush(stdout);
    fprintf(stderr, "%s\n", word(WORD_OPEN));
    printf("%.*s\n", STR_ARG(content));
    fflush(stdout);
}

/* Ask the person until they have typed digits; false: there is nobody. */
static bool read_number(char number[static CHANNEL_VERIFY_BYTES_MAX + 1])
{
    char line[256];
    for (;;) {
        fprintf(stderr, "%s", word(WORD_NUMBER));
        fflush(stderr);
        if (!fgets(line, sizeof line, stdin)) return false;
        str text = str_trim(option_line(str_c(line)));
        bool fits = text.len > 0 && text.len <= CHANNEL_VERIFY_BYTES_MAX;
        for (size_t i = 0; i < text.len; i++) fits = fits && text.p[i] >= '0' && text.p[i] <= '9';
        if (fits) {
            snprintf(number, CHANNEL_VERIFY_BYTES_MAX + 1, "%.*s", STR_ARG(text));
            return true;
        }
        fprintf(stderr, "%s\n", word(WORD_DIGITS));
    }
}

static bool is_over(str state)
{
    return str_eq(state, STR("done")) || str_eq(state, STR("expired")) ||
           str_eq(state, STR("failed"));
}

static int say_end(const struct json *answer, str state)
{
    str user = json_text(json_get(answer, STR("user")));
    str detail = json_text(json_get(answer, STR("detail")));
    if (str_eq(state, STR("done"))) {
        fprintf(stderr, "%s%s%s\n", word(WORD_DONE), user.len ? ": " : "",
                user.len ? say(user).text : "");
        return EXIT_OK;
    }
    bool expired = str_eq(state, STR("expired"));
    fprintf(stderr, "fermata: %s", word(expired ? WORD_EXPIRED : WORD_FAILED));
    if (!expired && detail.len) {
        if (say_plain(detail))
            fprintf(stderr, ": %.*s", STR_ARG(detail));
        else
            fprintf(stderr, ": %s", say(detail).text);
    }
    fprintf(stderr, "\n");
    return EXIT_FAILED;
}

/* One look: show what is new, and what to say next in *ret_body. false: nobody is there to type. */
static bool show_state(struct show *show, const struct json *answer, str state, str *ret_body)
{
    str content = json_text(json_get(answer, STR("content")));
    if (content.len) show_code(show, content);
    *ret_body = STR("{}");
    if (str_eq(state, STR("scanned")) && !show->scanned) {
        fprintf(stderr, "%s\n", word(WORD_SCANNED));
        show->scanned = true;
    }
    if (!str_eq(state, STR("verify"))) return true;
    char number[CHANNEL_VERIFY_BYTES_MAX + 1];
    if (json_get(answer, STR("detail"))) fprintf(stderr, "%s\n", word(WORD_WRONG));
    if (!read_number(number)) return false;
    show->scanned = true;
    /* outlives the arena of this look */
    *ret_body = arena_printf(&show->kept, "{\"verifyCode\":\"%s\"}", number);
    return true;
}

static int run_login(struct show *show, struct fault *reterr)
{
    str body = STR("{}");
    for (bool first = true;; first = false) {
        struct json *answer = NULL;
        arena_reset(show->home->arena);
        str path = arena_printf(show->home->arena, "/channels/%.*s/login", STR_ARG(show->name));
        if (home_ask(show->home,
                     &(struct home_request){.method = "POST", .path = path.p, .body = body},
                     &answer, reterr))
            return home_failed(reterr);
        str state = json_text(json_get(answer, STR("state")));
        if (is_over(state) && !first) return say_end(answer, state);
        if (is_over(state)) { /* of a login before this one */
            body = STR("{\"restart\":true}");
            continue;
        }
        if (!show_state(show, answer, state, &body)) {
            fault(reterr, ERR_CANCELLED, "there is nobody to type the number");
            return home_failed(reterr);
        }
        if (body.len == 2) nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    }
}

int channel_login_main(const struct config *config, struct arena *arena, const struct args *args)
{
    AUTO(home_done) struct home home = {.folder = config->data.p, .arena = arena};
    struct fault why = {0};
    if (known(config, args->operand, &why) || find_server(&home, &why)) return home_failed(&why);
    AUTO(arena_done) struct arena look;
    arena_init(&look);
    struct home asking = {.folder = home.folder, .arena = &look};
    struct show show = {.home = &asking, .name = args->operand};
    arena_init(&show.kept);
    int code = run_login(&show, &why);
    arena_done(&show.kept);
    return code;
}

/* ---- link, unlink ---- */

static enum err make_link(const struct home *home, const struct args *args, str *ret_code,
                          struct fault *reterr)
{
    if (home->store) {
        struct channel_link *link = ARENA_NEW(home->arena, struct channel_link);
        channel_link_init(link, args->operand, args->user,
                          key_roles_of(args->roles.items, args->roles.count));
        enum err e = channel_job_fault(store_run(home->store, &link->job), args->user, reterr);
        if (!e) *ret_code = str_c(link->code);
        return e;
    }
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, 64 * 1024);
    json_object(&doc.w);
    json_member(&doc.w, STR("user"), args->user);
    json_key(&doc.w, STR("roles"));
    json_array(&doc.w);
    for (size_t i = 0; i < args->roles.count; i++) json_string(&doc.w, args->roles.items[i]);
    json_array_end(&doc.w);
    json_object_end(&doc.w);
    struct json *answer = NULL;
    str path = arena_printf(home->arena, "/channels/%.*s/links", STR_ARG(args->operand));
    enum err e = home_ask(
        home, &(struct home_request){.method = "POST", .path = path.p, .body = buf_str(&doc.buf)},
        &answer, reterr);
    if (!e) *ret_code = json_text(json_get(answer, STR("code")));
    return e;
}

int channel_link_main(const struct config *config, struct arena *arena, const struct args *args)
{
    AUTO(home_done) struct home home = {.folder = config->data.p, .arena = arena};
    struct fault why = {0};
    str code = STR_EMPTY;
    if (known(config, args->operand, &why) || home_open(&home, &why) ||
        make_link(&home, args, &code, &why))
        return home_failed(&why);
    printf("%.*s\n", STR_ARG(code));
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "fermata: the code could not be printed; it expires in 15 minutes\n");
        return EXIT_FAILED;
    }
    fprintf(stderr, "%s %.*s\n", word(WORD_LINK), STR_ARG(code));
    return EXIT_OK;
}

static enum err cut_link(const struct home *home, const struct args *args, struct fault *reterr)
{
    if (home->store) {
        struct channel_unlink unlink;
        channel_unlink_init(&unlink, home->arena, args->operand, args->second);
        return channel_job_fault(store_run(home->store, &unlink.job), args->second, reterr);
    }
    AUTO(json_doc_done) struct json_doc doc;
    struct json *answer = NULL;
    json_doc_open(&doc, 16 * 1024);
    json_object(&doc.w);
    json_member(&doc.w, STR("sender"), args->second);
    json_object_end(&doc.w);
    str path = arena_printf(home->arena, "/channels/%.*s/links", STR_ARG(args->operand));
    return home_ask(
        home, &(struct home_request){.method = "DELETE", .path = path.p, .body = buf_str(&doc.buf)},
        &answer, reterr);
}

int channel_unlink_main(const struct config *config, struct arena *arena, const struct args *args)
{
    AUTO(home_done) struct home home = {.folder = config->data.p, .arena = arena};
    struct fault why = {0};
    if (known(config, args->operand, &why) || home_open(&home, &why) || cut_link(&home, args, &why))
        return home_failed(&why);
    fprintf(stderr, "%s\n", word(WORD_UNLINKED));
    return EXIT_OK;
}
