/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes in from chats: polls, and what they or a call of the platform bring, into the inbox;
 * and who may write.
 *
 * Invariants:
 * 1. A cursor moves in the commit that has the messages before it. A message is looked at after that
 *    commit, so a crash loses none and the platform's repeats find it there.
 * 2. Of a person who has CHANNEL_INBOX_MAX messages waiting no more are taken until some are done, and
 *    none is lost: the cursor stays, or the call is refused, so the platform has the rest. What other
 *    people wrote beside it comes in.
 * 3. Polling waits for nobody else: neither for a person nor for an agent.
 * 4. One process polls a channel: it holds the lease, and a commit of one that has lost it fails.
 */
#include <stdlib.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/rows.h"
#include "chat/chats_int.h"
#include "net/http_client.h"
#include "server/auth.h"
#include "store/table/conversation.h"

enum {
    POLL_QUICK_MS = 300,             /* an answer that is faster and empty did not wait for news */
    POLL_PAUSE_MS = 1000,            /* then we do; or until somebody has room again */
    POLL_REPEATS_MS_MAX = 10 * 1000, /* between polls that bring the same again */
};

/* ---- what comes in ---- */

static bool listed(const struct config_channel *config, str sender)
{
    for (size_t i = 0; i < config->allow.count; i++)
        if (str_eq(config->allow.items[i], sender)) return true;
    return config->allow_all;
}

/* Who may write: those of the list; without one, who signed in, and everybody if a token was given
 * instead, since nobody knows whose it is. And whoever is linked. */
static bool allowed(const struct receive *r, const struct peer *peer, str sender)
{
    const struct config_channel *config = r->channel->config;
    bool linked = peer->user.len && peer->roles; /* by a code, not by a name in the list */
    if (listed(config, sender) || linked) return true;
    return !config->allow.count && (!r->owner.len || str_eq(r->owner, sender));
}

/* Whom they are linked to from their first word on: while there is no login, whoever is let in by name
 * is the person at the page, too. */
static str first_user(const struct receive *r, const struct inbound *in)
{
    const struct config_channel *config = r->channel->config;
    bool named = config->allow.count ? listed(config, in->sender) && !config->allow_all
                                     : r->owner.len && str_eq(r->owner, in->sender);
    return r->alone && named && !in->group ? STR("local") : STR_EMPTY;
}

/* The language of somebody whom we have not heard before: a single word tells, too; else that of most
 * people on their platform. */
static enum ui_locale first_locale(const struct channel *c, str text)
{
    bool letters = false;
    for (size_t i = 0; i < text.len; i++) {
        char lower = char_lower(text.p[i]);
        letters |= lower >= 'a' && lower <= 'z';
    }
    bool chinese = !letters && str_starts(c->config->kind, STR("we")) &&
                   !str_eq(c->config->kind, STR("webhook"));
    return text_locale(text, chinese ? UI_ZH : UI_EN);
}

/* Has this person room for it? What was delivered before needs none. */
static enum err has_room(struct receive *r, struct db *db, const struct inbound *in,
                         const struct peer *peer, bool *ret_room)
{
    size_t waiting = 0;
    bool known = false;
    enum err e = peer->id ? inbound_waiting(db, peer->id, &waiting) : OK;
    bool full = waiting >= CHANNEL_INBOX_MAX;
    if (!e && full) e = inbound_known(db, r->channel->config->name, in->id, &known);
    *ret_room = !full || known;
    return e;
}

static enum err store_one(struct receive *r, struct db *db, const struct inbound *in,
                          struct peer *peer)
{
    struct channel *c = r->channel;
    struct inbound kept = *in;
    enum err e = out_newest_asked(db, peer->id, &kept.asked);
    if (e) return e;
    str body = inbound_json(&r->arena, &kept);
    if (!body.len) return OK; /* nothing that could be kept */
    struct inbound_row row = {.channel = c->config->name,
                              .id = in->id,
                              .peer = peer->id,
                              .state = INBOUND_NEW,
                              .body = body,
                              .created = r->now};
    e = inbound_add(db, &row);
    if (e) return e == ERR_BUSY ? OK : e; /* it was delivered before */
    peer->group = in->group;
    if (in->name.len) peer->name = in->name;
    e = outbox_heard(db, &c->ops->traits, in, peer, r->now);
    if (!e) *ROWS_ADD(&r->arena, r->people, r->person_count) = peer->id;
    return e;
}

static enum err receive_one(struct receive *r, struct db *db, const struct inbound *in)
{
    struct channel *c = r->channel;
    struct peer peer;
    if (!in->id.len || !in->sender.len) return OK;
    enum err e = peer_find(db, &r->arena, c->config->name, in->sender, &peer);
    bool is_new = e == ERR_NOT_FOUND, room = true;
    if (e && !is_new) return e;
    if (is_new)
        peer = (struct peer){.channel = c->config->name,
                             .sender = in->sender,
                             .name = in->name,
                             .locale = ui_locale_name(first_locale(c, in->text)),
                             .group = in->group,
                             .user = first_user(r, in),
                             .created = r->now};
    bool may = allowed(r, &peer, in->sender);
    str rest;
    e = OK;
    if (!may && command_read(in->text, &rest) == CHAT_LINK) /* while there is one to be typed */
        e = link_exists(db, c->config->name, r->now, &may);
    if (!e && may) e = has_room(r, db, in, &peer, &room);
    if (e) return e;
    r->refused += !may;
    r->left += !room;
    if (!may || !room) return OK;
    e = is_new ? peer_add(db, &peer) : OK;
    return e ? e : store_one(r, db, in, &peer);
}

static enum err receive_run(struct job *job, struct db *db)
{
    struct receive *r = (struct receive *)(void *)job;
    struct channel *c = r->channel;
    enum err e = OK;
    r->people = NULL;
    r->person_count = r->refused = r->left = 0;
    if (r->polled) e = lease_renew(db, c->lease, c->holder, c->epoch, r->now);
    for (size_t i = 0; !e && i < r->count; i++) e = receive_one(r, db, &r->inbounds[i]);
    if (!e && r->left) r->cursor = STR_EMPTY; /* what is left comes again */
    if (!e && r->cursor.len) e = channel_set_cursor(db, c->config->name, r->cursor);
    if (!e && r->account.len) e = channel_store_account(c, db, r->account);
    return e;
}

static void receive_done(struct job *job, enum err e)
{
    struct receive *r = (struct receive *)(void *)job;
    struct channel *c = r->channel;
    if (!e) {
        if (r->refused)
            log_info("channel.not_allowed", LOG_STR("channel", c->config->name),
                     LOG_U64("messages", r->refused));
        if (r->left)
            log_info("channel.full", LOG_STR("channel", c->config->name),
                     LOG_U64("messages", r->left));
        if (r->cursor.len) channel_keep_cursor(c, r->cursor);
        if (r->account.len) channel_keep_account(c, r->account);
        for (size_t i = 0; i < r->person_count; i++)
            person_want(c, r->people[i], WANT_DESK | WANT_SEND);
    }
    r->done(r, e);
}

void receive_start(struct receive *r, struct channel *c)
{
    r->job = (struct job){.run = receive_run, .done = receive_done};
    r->channel = c;
    r->now = clock_wall(&clock_system);
    /* Who signed in, where somebody has to: read here, for the account is the loop's. */
    struct json *account = NULL;
    if (json_parse(&r->arena, c->home.account, &account, NULL)) account = NULL;
    r->owner = arena_str(&r->arena, json_text(json_get(account, STR("userId"))));
    r->alone = !auth_required(c->all->server->auth);
    store_write(c->all->server->store, &r->job);
}

/* ---- polling ---- */

static void poll_later(struct channel *c)
{
    struct poller *p = &c->poller;
    msec wait = backoff_short_ms(p->failures, INT64_MAX);
    if (p->errand.wait_ms > wait) wait = p->errand.wait_ms;
    timer_start(p->timer, wait);
}

/* Stored. A lease that is lost is another process's: it polls now. */
static void poll_stored(struct receive *r, enum err e)
{
    struct channel *c = r->channel;
    struct poller *p = &c->poller;
    bool repeat = r->count && !r->person_count && !r->cursor.len && !r->left;
    p->repeats = repeat ? p->repeats + 1 : 0;
    /* If the next one would be answered the same at once. */
    bool quick = loop_now(c->all->server->loop) - p->began < POLL_QUICK_MS;
    msec pause = p->repeats ? backoff_short_ms(p->repeats, POLL_REPEATS_MS_MAX)
                 : r->left || (!r->count && quick) ? POLL_PAUSE_MS
                                                   : 0;
    p->storing = false;
    arena_done(&r->arena);
    free(r);
    if (c->all->stopping) return;
    if (e) {
        p->failures++;
        log_warn("channel.unstored", LOG_STR("channel", c->config->name),
                 LOG_CSTR("reason", err_title(e)));
        channel_say(c, CHANNEL_TROUBLE,
                    e == ERR_BUSY ? "another process polls it" : "what came in cannot be stored");
        poll_later(c);
        return;
    }
    p->failures = 0;
    channel_say(c, CHANNEL_ONLINE, "");
    timer_start(p->timer, pause);
}

static void on_polled(void *arg, struct errand *errand)
{
    struct channel *c = arg;
    struct poller *p = &c->poller;
    p->trip = NULL;
    p->wait_hint_ms = errand->wait_hint_ms;
    if (errand->verdict != VERDICT_DONE) {
        bool login = errand->verdict == VERDICT_LOGIN;
        channel_say(c, login ? CHANNEL_NEEDS_LOGIN : CHANNEL_TROUBLE, errand->detail);
        if (login && c->ops->traits.logs_in) return; /* until somebody signs in */
        p->failures =
            login ? UINT16_MAX : p->failures + 1; /* a token that is wrong may be mended */
        poll_later(c);
        return;
    }
    if (errand->detail[0]) /* something that came cannot be understood, and is left behind */
        log_warn("channel.skipped", LOG_STR("channel", c->config->name),
                 LOG_CSTR("reason", errand->detail));
    struct receive *r = calloc(1, sizeof *r);
    if (!r) abort();
    arena_init(&r->arena);
    r->inbounds = errand->inbounds;
    r->count = errand->inbound_count;
    r->cursor = str_eq(errand->new_cursor, c->cursor) ? STR_EMPTY : errand->new_cursor;
    r->account = errand->new_account;
    r->polled = true;
    r->done = poll_stored;
    p->storing = true;
    receive_start(r, c);
}

void poller_go(struct channel *c)
{
    struct poller *p = &c->poller;
    const struct server *server = c->all->server;
    if (!c->ops->poll || p->trip || p->storing || p->held || c->all->stopping) return;
    timer_stop(p->timer);
    arena_reset(&p->arena);
    p->errand =
        (struct errand){.arena = &p->arena, .cursor = c->cursor, .wait_hint_ms = p->wait_hint_ms};
    p->began = loop_now(server->loop);
    p->trip = platform_request_go(server->client, &clock_system, &c->home, c->ops->poll, &p->errand,
                                  on_polled, c);
}

/* ---- signing in ---- */

struct sign_in {
    struct job job;
    struct arena arena;
    struct channel *channel;
    str account;
    bool anew; /* another account, or another token of it */
    void (*done)(void *arg, enum err e);
    void *arg;
};

static enum err sign_in_run(struct job *job, struct db *db)
{
    struct sign_in *s = (struct sign_in *)(void *)job;
    struct channel_row row = channel_row_of(s->channel);
    row.account = s->account;
    row.cursor = STR_EMPTY;
    row.state = CHANNEL_STARTING;
    row.detail = STR_EMPTY;
    enum err e = channel_put(db, &row);
    return e || !s->anew ? e : peers_forget_tokens(db, row.name); /* they were the old token's */
}

static void sign_in_done(struct job *job, enum err e)
{
    struct sign_in *s = (struct sign_in *)(void *)job;
    struct channel *c = s->channel;
    c->poller.held = false;
    if (!e && !c->all->stopping) {
        channel_keep_account(c, s->account);
        channel_keep_cursor(c, STR_EMPTY);
        c->poller.failures = 0;
        channel_say(c, CHANNEL_STARTING, "");
    }
    poller_go(c);
    s->done(s->arg, e);
    arena_done(&s->arena);
    free(s);
}

void channel_signed_in(struct channel *channel, str account, void (*done)(void *arg, enum err e),
                       void *arg)
{
    struct sign_in *s = calloc(1, sizeof *s);
    if (!s) abort();
    arena_init(&s->arena);
    s->job = (struct job){.run = sign_in_run, .done = sign_in_done};
    s->channel = channel;
    s->account = arena_str(&s->arena, account.len ? account : channel->home.account);
    s->anew = account.len > 0;
    s->done = done;
    s->arg = arg;
    trip_cancel(
        TAKE(channel->poller.trip)); /* as who we were: what it brings is not ours any more */
    channel->poller.held = true;
    store_write(channel->all->server->store, &s->job);
}
