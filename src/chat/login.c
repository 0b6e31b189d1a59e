/* SPDX-License-Identifier: Apache-2.0
 *
 * A login to a platform by QR code, driven to its end.
 *
 *     begin ─► a code is shown ─► poll ─┬─ wait, scanned: poll again, a second later
 *       ▲                               ├─ verify: nothing, until the number is there
 *       └──────── up to 3 codes ────────┼─ expired
 *                                       ├─ done: stored (channel_signed_in) ─► DONE
 *                                       └─ failed ─► FAILED
 *     CHANNEL_LOGIN_MS_MAX after the beginning ─► EXPIRED
 *
 * Invariants:
 * 1. An errand, or the store, or a pause, or the wait for a number: one of them while `active`, none
 *    afterwards.
 * 2. An end is told for CHANNEL_LOGIN_TOLD_MS; who asks later begins a new login.
 * 3. What a login remembers between two errands is copied: each errand has an arena of its own, so
 *    that a long login does not grow.
 */
#include "chat/login.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/log.h"
#include "chat/platform_request.h"
#include "net/loop.h"
#include "server/server.h"
#include "ui/qr.h"

struct sign_on {
    struct channel_logins *all;
    struct channel *channel;
    bool active;
    bool saving;
    bool told; /* it has ended, and somebody may want to know how */
    struct login login;
    struct arena kept; /* its texts */
    struct errand errand;
    struct arena arena; /* of the errand */
    struct trip *trip;
    struct timer *pause, *limit, *forget;
    unsigned codes;
    msec expires; /* wall clock */
};

struct channel_logins {
    struct server *server;
    struct sign_on *items[CHANNELS_MAX];
    size_t count;
    bool stopping;
};

static str name_of(const struct sign_on *s)
{
    return channel_home(s->channel)->name;
}

/* ---- the end ---- */

static void rest(struct sign_on *s)
{
    trip_cancel(TAKE(s->trip));
    timer_stop(s->pause);
    timer_stop(s->limit);
    s->active = s->saving = false;
}

static void login_end(struct sign_on *s, enum login_state state, const char *detail)
{
    rest(s);
    s->login.state = state;
    s->login.content = STR_EMPTY;
    if (detail != s->login.detail) snprintf(s->login.detail, sizeof s->login.detail, "%s", detail);
    s->told = true;
    timer_start(s->forget, CHANNEL_LOGIN_TOLD_MS);
    if (state == LOGIN_DONE)
        log_info("channel.signed_in", LOG_STR("channel", name_of(s)));
    else
        log_warn("channel.login_failed", LOG_STR("channel", name_of(s)),
                 LOG_CSTR("reason", s->login.detail));
}

static void on_forget(void *arg)
{
    struct sign_on *s = arg;
    s->told = false;
}

static void on_limit(void *arg)
{
    struct sign_on *s = arg;
    if (!s->saving) login_end(s, LOGIN_EXPIRED, "nobody signed in within eight minutes");
}

/* ---- errands ---- */

/* The texts of the login lie in the errand's arena: keep them. */
static void keep_texts(struct sign_on *s)
{
    struct login *login = &s->login;
    str *const texts[] = {&login->key, &login->content, &login->base_url, &login->verify_code};
    struct arena next;
    arena_init(&next);
    for (size_t i = 0; i < COUNT(texts); i++) *texts[i] = arena_str(&next, *texts[i]);
    arena_done(&s->kept);
    s->kept = next;
}

static void start(struct sign_on *s, errand_fn *step,
                  void (*on_done)(void *arg, struct errand *errand))
{
    struct server *server = s->all->server;
    arena_reset(&s->arena);
    s->errand = (struct errand){.arena = &s->arena, .login = &s->login};
    s->trip = platform_request_go(server->client, &clock_system, channel_home(s->channel), step,
                                  &s->errand, on_done, s);
}

static void on_pause(void *arg);
static void on_begun(void *arg, struct errand *errand);

static void begin_code(struct sign_on *s)
{
    s->login.state = LOGIN_WAIT;
    s->login.key = s->login.content = s->login.verify_code = STR_EMPTY;
    s->codes++;
    start(s, channel_ops(s->channel)->login_begin, on_begun);
}

static void on_begun(void *arg, struct errand *errand)
{
    struct sign_on *s = arg;
    s->trip = NULL;
    keep_texts(s);
    if (errand->verdict == VERDICT_DONE && s->login.content.len)
        timer_start(s->pause, 0);
    else
        login_end(s, LOGIN_FAILED,
                  errand->detail[0] ? errand->detail : "the platform gives no code");
}

static void on_saved(void *arg, enum err e)
{
    struct sign_on *s = arg;
    if (s->all->stopping) return;
    s->saving = false;
    if (e)
        login_end(s, LOGIN_FAILED, "signed in, but it could not be stored; try again");
    else
        login_end(s, LOGIN_DONE, "");
}

/* What a poll has found out. */
static void go_on(struct sign_on *s, const struct errand *errand)
{
    switch (s->login.state) {
    case LOGIN_WAIT:
    case LOGIN_SCANNED:
        timer_start(s->pause, CHANNEL_LOGIN_POLL_MS);
        break;
    case LOGIN_VERIFY: /* on with take_code */
        break;
    case LOGIN_DONE:
        s->saving = true;
        channel_signed_in(s->channel, errand->new_account, on_saved, s);
        break;
    case LOGIN_EXPIRED:
        if (s->codes < CHANNEL_LOGIN_CODES_MAX)
            begin_code(s);
        else
            login_end(s, LOGIN_EXPIRED,
                      s->login.detail[0] ? s->login.detail
                                         : "three codes were shown and none was used");
        break;
    case LOGIN_FAILED:
        login_end(s, LOGIN_FAILED, s->login.detail[0] ? s->login.detail : "the platform refused");
        break;
    }
}

/* That the platform cannot be reached for a while ends nothing. */
static void on_polled(void *arg, struct errand *errand)
{
    struct sign_on *s = arg;
    s->trip = NULL;
    keep_texts(s);
    if (errand->verdict == VERDICT_DONE)
        go_on(s, errand);
    else if (errand->verdict == VERDICT_AGAIN || errand->verdict == VERDICT_UNKNOWN)
        timer_start(s->pause, errand->wait_ms > CHANNEL_LOGIN_POLL_MS ? errand->wait_ms
                                                                      : CHANNEL_LOGIN_POLL_MS);
    else
        login_end(s, LOGIN_FAILED, errand->detail[0] ? errand->detail : "the platform refused");
}

static void on_pause(void *arg)
{
    struct sign_on *s = arg;
    start(s, channel_ops(s->channel)->login_poll, on_polled);
}

/* ---- who asks ---- */

static struct sign_on *sign_on_of(struct channel_logins *logins, struct channel *channel)
{
    for (size_t i = 0; i < logins->count; i++)
        if (logins->items[i]->channel == channel) return logins->items[i];
    assert(logins->count < CHANNELS_MAX);
    struct sign_on *s = calloc(1, sizeof *s);
    if (!s) abort();
    s->all = logins;
    s->channel = channel;
    arena_init(&s->arena);
    arena_init(&s->kept);
    s->pause = timer_new(logins->server->loop, on_pause, s);
    s->limit = timer_new(logins->server->loop, on_limit, s);
    s->forget = timer_new(logins->server->loop, on_forget, s);
    logins->items[logins->count++] = s;
    return s;
}

static void begin(struct sign_on *s)
{
    rest(s);
    timer_stop(s->forget);
    s->login = (struct login){0};
    s->told = false;
    s->active = true;
    s->codes = 0;
    s->expires = clock_wall(&clock_system) + CHANNEL_LOGIN_MS_MAX;
    timer_start(s->limit, CHANNEL_LOGIN_MS_MAX);
    log_info("channel.login", LOG_STR("channel", name_of(s)));
    begin_code(s);
}

static bool digits(str text)
{
    bool fits = text.len > 0 && text.len <= CHANNEL_VERIFY_BYTES_MAX;
    for (size_t i = 0; i < text.len; i++) fits = fits && text.p[i] >= '0' && text.p[i] <= '9';
    return fits;
}

static enum err take_code(struct sign_on *s, str code, struct fault *reterr)
{
    if (!digits(code))
        return fault_field(reterr, ERR_INVALID_FIELD, "verifyCode",
                           "verifyCode is the number that the phone shows: digits alone");
    if (!s->active || s->login.state != LOGIN_VERIFY)
        return fault(reterr, ERR_NOT_CURRENT, "no code is waited for");
    s->login.verify_code = arena_str(&s->kept, code);
    s->login.state = LOGIN_SCANNED;
    s->login.detail[0] = '\0';
    timer_start(s->pause, 0);
    return OK;
}

enum err channel_login(struct channel_logins *logins, struct channel *channel,
                       const struct login_wish *wish, struct fault *reterr)
{
    if (!channel_ops(channel)->login_begin)
        return fault_field(reterr, ERR_INVALID_FIELD, "name",
                           "nobody signs in to a channel of the kind %s; its token is in the "
                           "configuration",
                           channel_ops(channel)->traits.kind);
    if (logins->stopping) return ERR_SHUTTING_DOWN;
    struct sign_on *s = sign_on_of(logins, channel);
    if (wish->verify_code.len) return take_code(s, wish->verify_code, reterr);
    bool wanted = wish->restart || (!s->active && !s->told);
    if (wanted && !s->saving) begin(s);
    return OK;
}

/* ---- what is told ---- */

static const char *const state_names[] = {
    [LOGIN_WAIT] = "wait", [LOGIN_SCANNED] = "scanned", [LOGIN_VERIFY] = "verify",
    [LOGIN_DONE] = "done", [LOGIN_EXPIRED] = "expired", [LOGIN_FAILED] = "failed",
};

/* Who has signed in, as the account of the kind has it. */
static void write_user(struct sign_on *s, struct json_writer *w)
{
    AUTO(arena_done) struct arena arena;
    struct json *account = NULL;
    arena_init(&arena);
    if (json_parse(&arena, channel_home(s->channel)->account, &account, NULL)) return;
    str user = json_text(json_get(account, STR("userId")));
    if (user.len) json_member(w, STR("user"), user);
}

static void write_code(struct sign_on *s, struct json_writer *w)
{
    AUTO(arena_done) struct arena arena;
    struct qr qr;
    arena_init(&arena);
    json_member(w, STR("content"), s->login.content);
    if (qr_make(&arena, s->login.content, &qr)) return; /* too long for one: the address is there */
    json_key(w, STR("qr"));
    qr_json(&qr, w);
}

void channel_login_write(struct channel_logins *logins, struct channel *channel,
                         struct json_writer *w)
{
    struct sign_on *s = sign_on_of(logins, channel);
    enum login_state state = s->saving ? LOGIN_SCANNED : s->login.state;
    char expires[RFC3339_BYTES];
    clock_rfc3339(s->expires, expires);
    json_object(w);
    json_member(w, STR("state"), str_c(state_names[state]));
    if (s->login.content.len && utf8_valid(s->login.content)) write_code(s, w);
    json_member(w, STR("expiresAt"), str_c(expires));
    if (state == LOGIN_DONE) write_user(s, w);
    if (s->login.detail[0] && utf8_valid(str_c(s->login.detail)))
        json_member(w, STR("detail"), str_c(s->login.detail));
    json_object_end(w);
}

/* ---- life ---- */

struct channel_logins *channel_logins_new(struct server *server)
{
    struct channel_logins *logins = calloc(1, sizeof *logins);
    if (!logins) abort();
    logins->server = server;
    return logins;
}

void channel_logins_stop(struct channel_logins *logins)
{
    if (!logins) return;
    logins->stopping = true;
    for (size_t i = 0; i < logins->count; i++) {
        rest(logins->items[i]);
        timer_stop(logins->items[i]->forget);
    }
}

void channel_logins_free(struct channel_logins *logins)
{
    for (size_t i = 0; logins && i < logins->count; i++) {
        struct sign_on *s = logins->items[i];
        rest(s);
        timer_free(s->pause);
        timer_free(s->limit);
        timer_free(s->forget);
        arena_done(&s->arena);
        arena_done(&s->kept);
        free(s);
    }
    free(logins);
}
